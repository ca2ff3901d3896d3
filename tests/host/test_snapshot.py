# SPDX-License-Identifier: MIT
"""Real dnsdist: what is in the cache outlives it, however it ends."""
import os
import random
import re
import signal
import subprocess
import tempfile
import time

import harness
import loader
from cases import DnsdistTest
from dnsmsg import A, Message, a, query, reply

NAMES = 1000  # in traces


class Snapshot(DnsdistTest):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "cache")

    def cache(self, options=""):
        return (
            "local sardine = require 'sardine'\n"
            f"pc = sardine.newPacketCache(10000, {{snapshot='{self.path}', {options}}})\nsardine.attach(pc)\n"
        )

    def fill(self, host, *names):
        for name in names:
            self.upstream.on(name, A, [a(name, 300)])
            host.ask(query(name))

    def await_file(self, there=True):
        for _ in harness.looks(harness.TIMEOUT):
            if os.path.exists(self.path) == there:
                return
        self.fail(f"{self.path} is {'not ' if there else ''}there")

    def expect_warm(self, *names, there=True):
        """A new dnsdist answers these without asking anybody."""
        host = self.start(self.cache())
        for _ in harness.looks(harness.TIMEOUT / 10):  # the console takes its time, too
            if int(re.search(r'"entries": (\d+)', host.console("pc:getStats()"))[1]) >= len(names):
                break
        for name in names:
            before = self.upstream.asked(name)
            answer = host.ask(query(name))
            self.assertEqual(len(answer.answer), 1)
            self.assertLessEqual(answer.answer[0].ttl, 300)
            self.assertEqual(self.upstream.asked(name) - before, 0 if there else 1)
        return host

    def b84_sigterm(self):
        host = self.start(self.cache())
        self.fill(host, "one.example", "two.example")
        status = host.stop()
        self.assertIn(status, (0, -signal.SIGTERM, 128 + signal.SIGTERM))
        self.expect_warm("one.example", "two.example")

    def b84_sigint(self):
        host = self.start(self.cache())
        self.fill(host, "one.example")
        host.stop(signal.SIGINT)
        self.expect_warm("one.example")

    def b84_shutdown_from_the_console(self):
        host = self.start(self.cache())
        self.fill(host, "one.example")
        try:
            host.console("shutdown()")
        except Exception:  # the console ends with the rest
            pass
        host.process.wait(60)
        self.expect_warm("one.example")

    def b84_killed_after_an_interval(self):
        host = self.start(self.cache("snapshotInterval=1"))
        self.fill(host, "one.example")
        self.await_file()
        time.sleep(1.5)
        host.stop(signal.SIGKILL)
        self.expect_warm("one.example")

    def b70_a_purge_survives_a_crash(self):
        host = self.start(self.cache())
        self.fill(host, "one.example", "two.example")
        host.console("pc:save()")
        self.await_file()
        host.console("pc:expungeByName('one.example')")
        host.stop(signal.SIGKILL)
        warm = self.expect_warm("two.example")
        self.assertEqual(self.upstream.asked("one.example"), 1)
        warm.ask(query("one.example"))
        self.assertEqual(self.upstream.asked("one.example"), 2)

    def test_how_it_does_is_seen(self):
        host = self.start(self.cache("snapshotInterval=0"))
        self.fill(host, "one.example")
        self.assertRegex(host.console("pc:printStats()"), r"(?m)^Snapshot: +not saved yet$")
        host.console("pc:save()")
        self.await_file()
        for _ in harness.looks(harness.TIMEOUT / 10):  # the console takes its time, too
            if "ago" in (text := host.console("pc:printStats()")):
                break
        self.assertRegex(text, r"(?m)^Snapshot: +saved \d+ s ago, 1 entries, \d+ bytes$")
        os.mkdir(self.path + ".new")  # where the next one would be written
        host.console("pc:save()")
        for _ in harness.looks(harness.TIMEOUT / 10):
            if "not saved" in (text := host.console("pc:printStats()")):
                break
        self.assertRegex(text, r"(?m)^Snapshot: +not saved: .+; saved \d+ s ago, 1 entries")

    def b84_by_hand(self):
        other = self.path + ".copy"
        host = self.start(self.cache())
        self.fill(host, "one.example")
        self.assertIn("Saved 1 entries", host.console(f"pc:save('{other}')"))
        self.assertIn("Loaded 0 entries (0 expired, 1 fresher here", host.console(f"pc:load('{other}')"))
        self.assertIn("Error", host.console("pc:load('/nowhere')"))
        self.assertIn("Error", host.console("pc:save('/nowhere/at/all')"))

    def b85_a_damaged_file_is_a_cold_start(self):
        with open(self.path, "wb") as file:
            file.write(b"sardsnap" + os.urandom(5000))
        host = self.start(self.cache())
        self.fill(host, "one.example")
        host.stop()
        self.expect_warm("one.example")

    def b84_without_its_folder_the_cache_works(self):
        self.path = "/nowhere/at/all"
        host = self.start(self.cache())
        self.fill(host, "one.example", "one.example")
        self.assertEqual(self.upstream.asked("one.example"), 1)

    def b84_the_stale_window_may_be_set_after_the_load(self):
        host = self.start(self.cache())
        self.fill(host, "one.example")
        host.stop()
        host = self.start(
            self.cache()
            + "local deadline = os.time() + 30\n"
            + "repeat until pc:getStats().entries > 0 or os.time() > deadline\n"
            + "setStaleCacheEntriesTTL(3600)\n"
        )
        self.assertNotIn("has no effect", host.text())
        host.ask(query("one.example"))

    def b87_a_list_of_names_warms_a_new_node(self):
        weights = [1 / (1 + rank) for rank in range(NAMES)]

        def trace(seed, queries):
            return [f"n{n}.example" for n in random.Random(seed).choices(range(NAMES), weights, k=queries)]

        def ratio(host, names):
            before = len(self.upstream.log)
            for name in names:
                self.assertEqual(len(host.ask(query(name)).answer), 1)
            return 1 - (len(self.upstream.log) - before) / len(names)

        self.upstream.respond = self.respond_to_all
        old, new, cold = (self.start(f"pc = require('sardine').newPacketCache(10000, {{}})\nrequire('sardine').attach(pc)\n") for _ in range(3))
        ratio(old, trace(1, 4000))
        old.console(f"pc:save('{self.path}')")
        tool = os.environ["SARDINECTL"]
        top = subprocess.run([tool, "top", "-l", str(NAMES), self.path], capture_output=True, text=True, check=True).stdout
        popularity = {line.split("\t")[0]: int(line.split("\t")[2]) for line in top.splitlines()}
        listed = subprocess.run([tool, "names", "-l", "400", self.path], capture_output=True, text=True, check=True).stdout
        names = [line.split() for line in listed.splitlines()]
        self.assertEqual(len(names), 400)
        self.assertTrue(all(word[1] == "A" for word in names))
        # in order, and what was asked most is what is first
        order = [popularity[word[0]] for word in names]
        self.assertEqual(order, sorted(order, reverse=True))
        self.assertGreater(order[0], order[-1])
        first = {word[0] for word in names[:40]}
        self.assertGreaterEqual(sum(f"n{n}.example." in first for n in range(10)), 9)
        for name, _ in names:
            new.ask(query(name))
        again = trace(2, 400)
        kept, warmed, unwarmed = (ratio(host, again) for host in (old, new, cold))
        print(f"hit ratios of the old node, the new one, and one that was not warmed: {kept:.3f}, {warmed:.3f}, {unwarmed:.3f}")
        self.assertGreaterEqual(warmed, 0.9 * kept)
        self.assertLess(unwarmed, 0.9 * kept)

    def respond_to_all(self, data, _):
        message = Message(data)
        with self.upstream.lock:
            self.upstream.log.append((message, "udp"))
        return reply(message, answer=[a(message.qname, 3600)])

    def b91_wrong_options_are_told(self):
        for wrong in ("snapshot='relative'", "snapshot=1"):
            with self.assertRaises(RuntimeError):
                self.start(
                    f"require('sardine').newPacketCache(10, {{{wrong}}})\n",
                )


if __name__ == "__main__":
    loader.main()
