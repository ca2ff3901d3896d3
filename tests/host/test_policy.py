# SPDX-License-Identifier: MIT
"""Policies in real dnsdist: the examples of lua/policies do what their comments say; the upstream's counts prove it."""
import ipaddress
import json
import os
import pathlib
import re
import socket
import subprocess
import tempfile
import threading
import time

import harness
import loader
from cases import DnsdistTest
from dnsmsg import A, ECS, NOERROR, NXDOMAIN, SERVFAIL, Message, Record, a, opt, query, reply, soa

ANY = 255
POLICIES = pathlib.Path(__file__).parent.parent.parent / "lua" / "policies"


def cache(policy, options="", after=""):
    return (
        "local sardine = require 'sardine'\n"
        f"pc = sardine.newPacketCache(10000, {{temporaryFailureTTL=1, policy={str(policy)!r}, {options}}})\n"
        f"{after}\nsardine.attach(pc)\n"
    )


def ecs_options(message):
    return [(code, value) for code, value in (message.edns_options if message.opts else []) if code == ECS]


def networks(message):
    """What a message says of its client, as text."""
    result = []
    for _, value in ecs_options(message):
        size = 4 if value[1] == 1 else 16
        address = ipaddress.ip_address(value[4:] + bytes(size + 4 - len(value)))
        result.append(f"{address}/{value[2]}")
    return result


class Policies(DnsdistTest):
    def ask_from(self, host, address, name):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.settimeout(harness.TIMEOUT)
            sock.bind((address, 0))
            sock.sendto(query(name), ("127.0.0.1", host.port))
            return Message(sock.recv(65535))

    def b24_filtered_and_unfiltered_clients_share_nothing(self):
        rule = "masks = newNMG()\nmasks:addMask('127.0.0.9/32')\n"
        rule += "addAction(NetmaskGroupRule(masks), SetTagAction('tenant', 'acme'))"
        host = self.start(cache(POLICIES / "tenants.lua", after=rule))
        self.serve("www.example")
        for address, asked in (
            ("127.0.0.1", 1),  # unfiltered
            ("127.0.0.2", 2),  # filtered
            ("127.0.0.1", 2),
            ("127.0.0.3", 2),  # filtered, too
            ("127.0.0.2", 2),
            ("127.0.0.9", 3),  # the tenant's
            ("127.0.0.9", 3),
            ("127.0.0.8", 3),  # unfiltered, too
        ):
            self.ask_from(host, address, "www.example")
            self.assertEqual(self.upstream.asked("www.example"), asked, address)
        # Each is removed for itself.
        self.assertEqual(host.console("pc:expungeByTag('filtered')"), "1")
        self.assertEqual(host.console("pc:expungeByTag('nobody')"), "0")
        for address, asked in (("127.0.0.1", 3), ("127.0.0.9", 3), ("127.0.0.2", 4)):
            self.ask_from(host, address, "www.example")
            self.assertEqual(self.upstream.asked("www.example"), asked, address)

    def b24_dnsdists_tags_and_pools_are_seen(self):
        policy = self.policy(
            "return { key = function(q)\n"
            "  assert(7 // 2 == 3 and math.type(1) == 'integer' and utf8.char(228) == '\u00e4')\n"
            "  assert(1 << 62 == 0x4000000000000000 and math.maxinteger + 1 == math.mininteger)\n"
            "  assert(_VERSION == 'Lua 5.4' and q.transport == 'udp')\n"
            "  assert(q.listener:within('127.0.0.0/8') and q.listener_port > 0)\n"
            "  if q.pool == 'lab' then return {skip = true} end\n"
            "  assert(q.pool == '')\n"
            "  return q:host_tag('tenant')\n"
            "end }"
        )
        rules = (
            "require('sardine').attach(pc, 'lab')\nserver:addPool('lab')\n"
            "masks = newNMG()\nmasks:addMask('127.0.0.9/32')\n"
            "addAction(NetmaskGroupRule(masks), SetTagAction('tenant', 'acme'))\n"
            "lab = newNMG()\nlab:addMask('127.0.0.77/32')\n"
            "addAction(NetmaskGroupRule(lab), PoolAction('lab'))\n"
        )
        host = self.start(cache(policy, after=rules))
        self.serve("www.example")
        for address in ("127.0.0.1", "127.0.0.9", "127.0.0.1", "127.0.0.9"):
            self.ask_from(host, address, "www.example")
        self.assertEqual(self.upstream.asked("www.example"), 2, host.text())
        for n in (3, 4):
            self.ask_from(host, "127.0.0.77", "www.example")
            self.assertEqual(self.upstream.asked("www.example"), n, host.text())
        self.assertIn('"key_errors": 0', host.console("pc:getPolicyStats()"))

    def b24_listeners_share_nothing(self):
        ports = [harness.free_port() for _ in range(2)]
        policy = self.policy(f"return {{ tags = {{ listeners = {{ [':{ports[0]}'] = 'x', ['127.0.0.1:{ports[1]}'] = 'y' }} }} }}")
        host = self.start("".join(f"addLocal('127.0.0.1:{port}')\n" for port in ports) + cache(policy))
        self.serve("www.example")
        for asked, port in enumerate([host.port, *ports], 1):
            host.port = port
            for _ in range(2):
                host.ask(query("www.example"))
                self.assertEqual(self.upstream.asked("www.example"), asked)

    def test_lua_5_4_is_loaded_for_a_policy_only(self):
        for policy in (None, self.policy("return {}")):
            options = f"{{policy={str(policy)!r}}}" if policy else "{}"
            host = self.start(f"local sardine = require 'sardine'\nsardine.attach(sardine.newPacketCache(1000, {options}))\n")
            maps = pathlib.Path(f"/proc/{host.process.pid}/maps").read_text(encoding="utf-8")
            for library in ("policy-lua54.so", "liblua5.4"):
                self.assertEqual(library in maps, policy is not None, library)

    def policy(self, text):
        path = pathlib.Path(tempfile.mkdtemp()) / "policy.lua"
        path.write_text(text, encoding="utf-8")
        return path

    def test_names_and_types_of_a_list_are_never_cached(self):
        host = self.start(cache(POLICIES / "never.lua"))
        for name, qtype, asked in (
            ("live.example", A, 2),
            ("a.Live.example", A, 2),
            ("alive.example", A, 1),
            ("www.example", ANY, 2),
            ("www.example", 65280, 2),
            ("www.example", A, 1),
        ):
            self.upstream.on(name, qtype, [a(name, 300)] if qtype in (A, ANY) else [Record(name, qtype, 300, b"x")])
            host.ask(query(name, qtype))
            host.ask(query(name, qtype))
            self.assertEqual(self.upstream.asked(name, qtype), asked, (name, qtype))

    def test_explain_says_that_the_policy_said_so(self):
        policy = self.policy(
            "return { never_store = {zones = {'listed.example'}},\n"
            "  key = function(q) if q.name == 'live.example.' then return {skip = true} end end,\n"
            "  store = function(q, r) if q.name == 'unwanted.example.' then return false end end }"
        )
        host = self.start(cache(policy))
        for name in ("live.example", "unwanted.example", "a.listed.example", "kept.example"):
            self.upstream.on(name, A, [a(name, 300)])
            host.ask(query(name))
        self.assertRegex(host.console("pc:explain('live.example')"), r"^BYPASS\n.*: the policy said so \(policy\)\.$")
        for name in ("unwanted.example", "a.listed.example"):
            self.assertRegex(
                host.console(f"pc:explain('{name}')"),
                r"^MISS\n.*\n.*\nA response was not kept \d+ s ago: the policy said so \(policy\)\.$",
            )
        self.assertRegex(host.console("pc:explain('kept.example')"), r"^HIT\n")

    def test_a_flood_of_random_names_takes_its_share_and_no_more(self):
        host = self.start(cache(POLICIES / "flood.lua").replace("10000", "300"))
        for name, asked in (("abcdefgh01234567x.example", 2), ("nothere.example", 1), ("no-0123456789-abc.example", 1)):
            self.upstream.on(name, A, self.no_such_name)
            if name == "nothere.example":
                started = time.monotonic()
            host.ask(query(name))
            host.ask(query(name))
            self.assertEqual(self.upstream.asked(name), asked, name)
        # It has 300 seconds by its SOA.
        text = host.console("pc:explain('nothere.example')")
        self.assertRegex(text, r"^HIT\nThe answer here: NXDOMAIN, \d+ s left")
        passed = int(time.monotonic() - started) + 1
        self.assertIn(int(re.search(r"(\d+) s left", text)[1]), range(30 - passed, 31))
        # What was asked twice outlives ten times as many short names that are not there, each asked twice as well.
        good, bad = [f"g{n}.example" for n in range(120)], [f"b{n}.example" for n in range(1500)]
        self.serve(*good)
        for name in bad:
            self.upstream.on(name, A, self.no_such_name)
        for name in good + bad:
            for _ in range(2):
                host.ask(query(name))
        for name in good:
            host.ask(query(name))
        self.assertLess(sum(self.upstream.asked(name) - 1 for name in good), len(good) // 10)

    def tell(self, *names):
        """Serve these names for the network that a query says; returns the lists of what was said, by name."""
        told = {name: [] for name in names}

        def script(message, _):
            said = networks(message)
            told[message.qname].extend(said or [None])
            echoed = [(code, value[:3] + value[2:3] + value[4:]) for code, value in ecs_options(message)]
            return reply(message, answer=[a(message.qname, 300)], edns=opt(options=echoed) if message.opts else None)

        for name in names:
            self.upstream.on(name, A, script)
        return told

    def test_client_subnets_for_content_networks_only(self):
        host = self.start(cache(POLICIES / "cdn-ecs.lua"), server="useClientSubnet=true")
        told = self.tell("www.cdn.example", "www.example")
        for name in told:
            for address in ("127.0.0.1", "127.0.0.9", "127.0.9.1", "127.0.9.2"):
                self.assertEqual(self.ask_from(host, address, name).rcode, NOERROR)
        self.assertEqual(told["www.cdn.example"], ["127.0.0.0/24", "127.0.9.0/24"])
        self.assertEqual(told["www.example"], [None])

    def test_what_clients_say_of_themselves_is_cut_as_well(self):
        for server in ("", "useClientSubnet=true"):
            with self.subTest(server):
                host = self.start(cache(POLICIES / "cdn-ecs.lua"), server=server)
                told = self.tell("www.cdn.example", "www.example")
                said = (ECS, bytes([0, 1, 32, 0, 198, 51, 100, 77]))
                for name in told:
                    for _ in range(2):
                        got = host.ask(query(name, edns=opt(options=[(10, b"12345678"), said])))
                        self.assertEqual((got.rcode, len(got.answer)), (NOERROR, 1))
                        # To the client it looks as if its own network had been asked for.
                        self.assertIn(networks(got), (["198.51.100.77/32"], []))
                self.assertEqual(told["www.cdn.example"], ["198.51.100.0/24"])
                self.assertEqual(told["www.example"], [None])
                (upstream,) = self.upstream.queries("www.cdn.example")[-1:]
                self.assertEqual([code for code, _ in upstream.edns_options], [10, ECS])

    def test_the_backend_is_told_the_network_that_the_hook_wants(self):
        policy = self.policy(
            "local networks = { four = '192.0.2.0/24', six = '2001:db8:1::/48', none = false, short = 22 }\n"
            "return { key = function(q) return {ecs = networks[q.qname:label(1)]} end }"
        )
        for options in ("", "alwaysDO=true"):
            with self.subTest(options):
                host = self.start(cache(policy, options), server="useClientSubnet=true")
                names = [f"{label}.example" for label in ("four", "six", "none", "short", "own")]
                told = self.tell(*names)
                for name in names:
                    for address in ("127.0.5.1", "127.0.5.2"):
                        got = self.ask_from(host, address, name)
                        self.assertEqual((got.rcode, len(got.answer), got.opts), (NOERROR, 1, []), (name, address))
                self.assertEqual(
                    list(told.values()),
                    [["192.0.2.0/24"], ["2001:db8:1::/48"], [None], ["127.0.4.0/22"], ["127.0.5.0/24"]],
                )
                # Who is somewhere else has its own answer only where the hook leaves it the choice.
                for name in names:
                    self.ask_from(host, "127.0.77.1", name)
                self.assertEqual([len(networks_told) for networks_told in told.values()], [1, 1, 1, 2, 2])
                self.assertIn('"key_errors": 0', host.console("pc:getPolicyStats()"))

    def test_kept_zones_stay_in_a_full_cache_and_reverse_names_go(self):
        host = self.start(cache(POLICIES / "keep.lua").replace("10000", "300"))
        kept = [f"n{n}.example.com" for n in range(20)]
        others = [f"n{n}.example" for n in range(60)]
        reverse = [f"{n}.2.0.192.in-addr.arpa" for n in range(60)]
        flood = [f"f{n}.example" for n in range(900)]
        self.serve(*kept, *others, *reverse, *flood)
        for name in kept + flood[:300]:
            host.ask(query(name))
        # All of these are popular.
        for name in (others + reverse) * 6:
            host.ask(query(name))
        for name in flood[300:]:
            host.ask(query(name))
        self.assertNotIn('"evicted": 0', host.console("pc:getStats()"))
        again = {}
        for group in (kept, others, reverse):
            before = sum(self.upstream.asked(name) for name in group)
            for name in group:
                host.ask(query(name))
            again[group[0]] = sum(self.upstream.asked(name) for name in group) - before
        self.assertEqual(again[kept[0]], 0)
        self.assertLess(again[others[0]], len(others) // 4)
        self.assertGreater(again[reverse[0]], len(reverse) * 3 // 4)

    def test_the_evict_hook_says_what_stays(self):
        policy = self.policy(
            "local verdicts = { keep = 'keep', drop = 'drop' }\n"
            "return { evict = function(e) return verdicts[e.qname:label(-2)] end }"
        )
        host = self.start(cache(policy).replace("10000", "300"))
        groups = {label: [f"n{n}.{label}.example" for n in range(50)] for label in ("keep", "drop", "other")}
        flood = [f"f{n}.flood.example" for n in range(900)]
        self.serve(*sum(groups.values(), []), *flood)
        for name in flood[:200] + groups["keep"]:
            host.ask(query(name))
        for name in (groups["drop"] + groups["other"]) * 6:
            host.ask(query(name))
        for name in flood[200:]:
            host.ask(query(name))
        again = {}
        for label, names in groups.items():
            before = sum(self.upstream.asked(name) for name in names)
            for name in names:
                host.ask(query(name))
            again[label] = sum(self.upstream.asked(name) for name in names) - before
        # Nobody has asked twice for what is kept; all of what is dropped is popular.
        self.assertLessEqual(again["keep"], 2, again)
        self.assertLess(again["other"], 15, again)
        self.assertGreater(again["drop"], 35, again)
        stats = json.loads(host.console("pc:getPolicyStats()"))
        self.assertGreater(stats["evict_calls"], 0)
        self.assertEqual(stats["evict_errors"], 0)

    @staticmethod
    def no_such_name(message, _):
        return reply(message, rcode=NXDOMAIN, authority=[soa("example", 300, 300)])

    def b39_stale_only_what_helps(self):
        host = self.start(cache(POLICIES / "stale.lua", "staleWindow=600"))
        names = (("www.example", NOERROR), ("www.bank.example", SERVFAIL), ("no.example", SERVFAIL))
        for name, _ in names:
            self.upstream.on(name, A, [a(name, 1)])
        self.upstream.on("no.example", A, lambda m, _: reply(m, rcode=NXDOMAIN, authority=[soa("example", 1, 1)]))
        for name, _ in names:
            host.ask(query(name))
        time.sleep(1.3)
        for name, rcode in names:
            self.upstream.on(name, A, lambda m, _: reply(m, rcode=SERVFAIL))
            self.assertEqual(host.ask(query(name)).rcode, rcode, name)

    def b90_groups_are_removed_at_once(self):
        policy = self.policy("return { store = function(q, r) if q.qname:within('cdn.example') then return {group = 'cdn'} end end }")
        host = self.start(cache(policy))
        names = ["a.cdn.example", "b.cdn.example", "c.example"]
        self.serve(*names)
        for name in names:
            host.ask(query(name))
        self.assertEqual(host.console("pc:expungeByGroup('cd')"), "0")
        self.assertEqual(host.console("pc:expungeByGroup('cdn')"), "2")
        for name in names:
            host.ask(query(name))
        self.assertEqual([self.upstream.asked(name) for name in names], [2, 2, 1])

    def b90_reload_and_lists_at_the_console(self):
        path = self.policy("return {}")
        host = self.start(cache(path, "policyWatch=1"))
        self.upstream.on("www.example", A, [a("www.example", 300)])
        host.ask(query("www.example"))
        self.assertEqual(host.console("pc:expungeList('example')"), "1")
        path.write_text("return { never_store = { zones = {'example'} } }", encoding="utf-8")
        self.assertEqual(host.console("pc:reloadPolicy()"), "policy loaded")
        for _ in range(2):
            host.ask(query("www.example"))
        self.assertEqual(self.upstream.asked("www.example"), 3)
        path.write_text("return {", encoding="utf-8")
        for _ in harness.looks(harness.TIMEOUT):
            if "policy reloaded in vain" in host.text():
                break
        self.assertIn("policy reloaded in vain", host.text())
        host.ask(query("www.example"))
        self.assertEqual(self.upstream.asked("www.example"), 4)

    def test_a_changed_file_is_loaded_if_wanted(self):
        path = self.policy("return {}")
        host = self.start(cache(path, "policyWatch=1"))
        self.upstream.on("www.example", A, [a("www.example", 300)])
        new = path.with_suffix(".new")
        new.write_text("return { never_store = { zones = {'.'} } }", encoding="utf-8")
        os.replace(new, path)
        for _ in harness.looks(harness.TIMEOUT / 10):  # the console takes its time, too
            if json.loads(host.console("pc:getPolicyStats()"))["loads"] == 2:
                break
        for _ in range(2):
            host.ask(query("www.example"))
        self.assertEqual(self.upstream.asked("www.example"), 2)

    def test_hostile_policies_leave_the_server_answering(self):
        for body, kind in (
            ("while true do end", "timeouts"),
            ("while true do pcall(function() while true do end end) end", "timeouts"),
            ("error('no')", "errors"),
            ("local s = 'x' while true do s = s .. s end", "errors"),
            ("local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(1000) .. i end", "timeouts"),
            ("local function g() return 1 + g() end return g()", "timeouts"),
            ("local function g(s) return (s:gsub('.', g)) end return g('x')", "errors"),
            ("local q = ... kept = kept or q return kept.name", "errors"),
            ("return load('\\27Lua')()", "errors"),
        ):
            with self.subTest(body):
                started = time.monotonic()
                host = self.start(cache(self.policy(
                    f"local function f(...) {body} end return {{ key = f, store = f, evict = f, stale = f }}")))
                name = f"n{len(body)}.example"
                self.serve(name)
                for _ in range(20):
                    self.assertEqual(host.ask(query(name)).rcode, NOERROR)
                # Without the hook's tag: all hits but the first one, and those that came when a kept view was still good.
                self.assertLessEqual(self.upstream.asked(name), 2)
                stats = json.loads(host.console("pc:getPolicyStats()"))
                self.assertGreater(stats[f"key_{kind}"], 0, stats)
                self.assertGreater(stats[f"store_{kind}"], 0, stats)
                self.assertRegex(host.text(), r"policy, hook key: \S*policy\.lua")
                said = len(re.findall("policy, hook key", host.text()))
                self.assertLessEqual(said, 1 + (time.monotonic() - started) // 60)

    def test_a_hook_has_no_way_to_call_the_cache(self):
        # Lua's module "sardine" is written in C; dnsdist's, which is found, is for its LuaJIT.
        body = "local sardine = require 'sardine' return sardine.newPacketCache(10)"
        text = f"local function f(...) {body} end return {{ key = f, store = f, evict = f, stale = f }}"
        for options in ("", "policyLibraries=true"):
            with self.subTest(options):
                host = self.start(cache(self.policy(text), options))
                name = f"n{len(options)}.example"
                self.serve(name)
                for _ in range(20):
                    self.assertEqual(host.ask(query(name)).rcode, NOERROR)
                self.assertEqual(self.upstream.asked(name), 1)
                stats = json.loads(host.console("pc:getPolicyStats()"))
                self.assertGreater(stats["key_errors"], 0, stats)
                self.assertEqual(stats["store_errors"], 1, stats)
                self.assertRegex(host.text(), "policy, hook key: .*(require|LuaJIT)")

    def test_files_that_do_not_load(self):
        path = self.policy("return { never_store = { zones = {'never.example'} } }")
        host = self.start(cache(path))
        self.serve("never.example")
        for text, why in (
            ("return {", "policy.lua:1:"),
            ("\nwhile true do end", "policy.lua:2:"),
            ("\33Lua", "binary chunk"),
            ("return { ttll = {} }", "there is no ttll here"),
            ("return 1", "must return a table"),
        ):
            path.write_text(text, encoding="utf-8")
            before = self.upstream.asked("never.example")
            # The console's client cannot read the configuration now.
            self.assertIn(why, self.at_console(host, "pc:reloadPolicy()"))
            host.ask(query("never.example"))
            host.ask(query("never.example"))
            self.assertEqual(self.upstream.asked("never.example"), before + 2)
        self.assertEqual(json.loads(self.at_console(host, "pc:getPolicyStats()"))["loadFailures"], 5)
        status, output = harness.check_config(pathlib.Path(host.config_file).read_text(encoding="utf-8"))
        self.assertNotEqual(status, 0)
        self.assertIn("must return a table", output)

    @staticmethod
    def at_console(host, command):
        """As the guide says, without the configuration: a file with what the console needs."""
        path = os.path.join(host.folder, "console.conf")
        with open(host.config_file, encoding="utf-8") as config, open(path, "w", encoding="utf-8") as file:
            file.writelines(line for line in config if line.startswith(("controlSocket(", "setKey(")))
        return subprocess.run(
            ["dnsdist", "-C", path, "-e", command],
            capture_output=True, text=True, check=True, timeout=60, env={**os.environ, **host.environment},
        ).stdout.strip()

    def test_reloads_under_load(self):
        path = self.policy("return {}")
        host = self.start(cache(path, "policyWatch=1"))
        names = [f"n{n}.example" for n in range(20)]
        self.serve(*names)
        stop, answered = threading.Event(), []

        def ask_on():
            while not stop.is_set():
                for name in names:
                    answered.append(host.ask(query(name)).rcode)

        threads = [threading.Thread(target=ask_on) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            for n in range(10):
                new = path.with_suffix(".new")
                new.write_text(
                    f"return {{ key = function(q) return 'v{n}' end, store = function(q, r) return {10 + n} end,\n"
                    f"  evict = function(e) return e.hits end, tags = {{ clients = {{ ['127.0.0.0/8'] = 'x{n}' }} }} }}",
                    encoding="utf-8",
                )
                os.replace(new, path)
                self.assertEqual(host.console("pc:reloadPolicy()"), "policy loaded")
            for _ in harness.looks(harness.TIMEOUT):
                if len(answered) > 100:
                    break
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        self.assertGreater(len(answered), 100)
        self.assertEqual(set(answered), {NOERROR})
        stats = json.loads(host.console("pc:getPolicyStats()"))
        self.assertGreaterEqual(stats["loads"], 11)
        self.assertEqual([stats[f"{hook}_errors"] for hook in ("key", "store", "evict")], [0, 0, 0])

    def test_the_guides_examples_load(self):
        """Every policy in lua/POLICY.md, as it stands there."""
        guide = (POLICIES.parent / "POLICY.md").read_text(encoding="utf-8")
        examples = [text for text in re.findall(r"```lua\n(.*?)```", guide, re.S) if re.search(r"^return ", text, re.M)]
        self.assertGreaterEqual(len(examples), 3)
        folder = pathlib.Path(tempfile.mkdtemp())
        for name in ("never.txt", "schools.txt"):
            (folder / name).write_text("", encoding="utf-8")
        for n, text in enumerate(examples):
            with self.subTest(text):
                path = folder / "policy.lua"
                path.write_text(text.replace("/etc/dnsdist/", str(folder) + "/"), encoding="utf-8")
                host = self.start(cache(path, "staleWindow=600"))
                name = f"n{n}.example"
                self.serve(name)
                self.expect_upstream(host, name, 1)
                self.assertNotRegex(host.console("pc:getPolicyStats()"), r'_(errors|timeouts|skipped)": [1-9]')


if __name__ == "__main__":
    loader.main()
