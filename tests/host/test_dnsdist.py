# SPDX-License-Identifier: MIT
"""Real dnsdist with sardine: the behaviours, and what belongs to dnsdist: rules, pools, the console, start-up."""
import base64
import os
import re
import subprocess
import tempfile
import time
import unittest

import dnsmsg
import harness
import loader
from behaviours import Behaviours
from cases import CACHE, DnsdistTest
from dnsmsg import A, a, opt, query, reply

class BehavioursInDnsdist(Behaviours, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.upstream = harness.Upstream()
        cls.addClassCleanup(cls.upstream.close)
        cls.host = harness.Dnsdist(cls.upstream, CACHE)
        cls.addClassCleanup(cls.host.close)


class Fronts(DnsdistTest):
    def b15_dot_and_doh_share_the_entry_too(self):
        dot, doh = harness.free_port(), harness.free_port()
        certificate, key = self.certificate()
        host = self.start(
            CACHE + f"addTLSLocal('127.0.0.1:{dot}', '{certificate}', '{key}')\n"
            f"addDOHLocal('127.0.0.1:{doh}', '{certificate}', '{key}', '/dns-query')\n"
        )
        for port in (dot, doh):
            host.wait_until_it_listens(port)
        self.serve("a.example", "b.example")
        fronts = {"+notcp": host.port, "+tls": dot, "+https": doh}
        for name, order in (("a.example", ("+notcp", "+tls", "+https")), ("b.example", ("+https", "+tls", "+notcp"))):
            for front in order:
                text = subprocess.run(
                    ["kdig", "+retry=0", "+time=30", front, "-p", str(fronts[front]), "@127.0.0.1", name, "A"],
                    capture_output=True,
                    text=True,
                    check=False,
                    timeout=60,
                ).stdout
                self.assertIn("192.0.2.1", text, front)
            self.assertEqual(self.upstream.asked(name), 1)

    def test_every_thread_uses_the_cache(self):
        host = self.start(
            CACHE + "for _ = 1, 3 do addLocal(listen, {reusePort=true}) end",
        )
        self.serve("a.example")
        self.expect_upstream(host, "a.example", 1, queries=1)
        # each of these comes from another port, so the kernel spreads them over the listeners
        self.expect_upstream(host, "a.example", 0, queries=100)


class Rules(DnsdistTest):
    def b04_flags_changed_by_a_rule(self):
        host = self.start(
            CACHE + "addAction('rd.example.', SetNoRecurseAction())\n"
            "addAction('cd.example.', SetDisableValidationAction())\n"
        )
        self.serve("a.rd.example", "a.cd.example")
        for name, flag, sent in (("a.rd.example", dnsmsg.RD, dnsmsg.RD), ("a.cd.example", dnsmsg.CD, dnsmsg.RD)):
            for _ in range(3):
                answer = host.ask(query(name, flags=sent))
                self.assertEqual(answer.flags & (dnsmsg.RD | dnsmsg.CD), sent, name)
            (asked,) = self.upstream.queries(name)
            self.assertNotEqual(asked.flags & flag, sent & flag, "the rule did not work")

    def test_skip_cache_action(self):
        host = self.start(CACHE + "addAction('skip.example.', SetSkipCacheAction())")
        self.serve("a.skip.example", "a.keep.example")
        self.expect_upstream(host, "a.skip.example", 3)
        self.expect_upstream(host, "a.keep.example", 1)

    def test_skip_cache_response_action(self):
        host = self.start(CACHE + "addResponseAction('skip.example.', SetSkipCacheResponseAction())")
        self.serve("a.skip.example", "a.keep.example")
        self.expect_upstream(host, "a.skip.example", 3)
        self.expect_upstream(host, "a.keep.example", 1)

    def test_failure_ttl_action(self):
        host = self.start(
            CACHE + "addAction('off.example.', SetTempFailureCacheTTLAction(0))\n"
            "addAction('long.example.', SetTempFailureCacheTTLAction(100))\n"
        )
        for name in ("a.off.example", "a.long.example"):
            self.upstream.on(name, A, lambda m, _: reply(m, rcode=dnsmsg.SERVFAIL))
        self.expect_upstream(host, "a.off.example", 3)
        self.expect_upstream(host, "a.long.example", 1)
        time.sleep(2.2)  # the cache's own failure TTL
        self.expect_upstream(host, "a.long.example", 0)

    def test_rules_added_later_still_come_before_the_lookup(self):
        host = self.start(CACHE)
        self.serve("a.late.example")
        self.expect_upstream(host, "a.late.example", 1)
        host.console("addAction('late.example.', SpoofAction('192.0.2.200'))")
        self.assertEqual(self.expect_upstream(host, "a.late.example", 0).answer[0].data[-1], 200)
        host.console("mvRuleToTop()")  # moves the spoofing rule, not the lookup
        self.assertRegex(host.console("showRules()"), r"(?s)^[^\n]*\n0 .*spoof.*\n1 +sardine lookup")
        host.console("rmRule(0)")
        self.assertEqual(self.expect_upstream(host, "a.late.example", 0).answer[0].data[-1], 1)
        host.console("clearRules()")
        self.expect_upstream(host, "a.late.example", 0)
        host.console("setRules({newRuleAction(AllRule(), SetSkipCacheAction())})")
        self.expect_upstream(host, "a.late.example", 3)

    def test_response_rules_added_later_still_come_before_storing(self):
        host = self.start(CACHE + "addResponseAction(AllRule(), DelayResponseAction(1))")
        self.serve("a.late.example")
        host.console("addResponseAction('late.example.', SetSkipCacheResponseAction())")
        self.expect_upstream(host, "a.late.example", 3)

    def test_allow_actions_do_not_keep_the_cache_out(self):
        host = self.start(
            "local sardine = require 'sardine'\n"
            "addAction('allowed.example.', AllowAction())\n"
            "addResponseAction('allowed-response.example.', AllowResponseAction())\n" + CACHE
        )
        self.serve("a.allowed.example", "a.allowed-response.example")
        self.expect_upstream(host, "a.allowed.example", 1)
        self.expect_upstream(host, "a.allowed-response.example", 1)

    def b48_extended_errors_of_answers_without_records(self):
        host = self.start(CACHE.replace("TTL=2", "TTL=60") + "addAction('rd.example.', SetNoRecurseAction())\n")
        error = (dnsmsg.EDE, b"\0\6bogus")
        for name in ("a.example", "a.rd.example"):
            script = lambda m, _: reply(m, rcode=dnsmsg.SERVFAIL, edns=opt(flags=m.opt.ttl, options=[error]))
            self.upstream.on(name, A, script)
            host.ask(query(name, edns=opt()))
            for tcp in (False, True):
                answer = host.ask(query(name, flags=dnsmsg.RD, edns=opt()), tcp)
                self.assertEqual((answer.rcode, answer.edns_options), (dnsmsg.SERVFAIL, [error]))
                self.assertTrue(answer.flags & dnsmsg.RD)
                self.assertEqual(host.ask(query(name), tcp).opts, [])
            self.assertEqual(self.upstream.asked(name), 1)

    def test_response_rules_for_hits(self):
        host = self.start(
            CACHE + "addCacheHitResponseAction('drop-hits.example.', DropResponseAction())\n"
            "addSelfAnsweredResponseAction(AllRule(), DropResponseAction())\n"
            "addAction('spoofed.example.', SpoofAction('192.0.2.200'))\n"
        )
        self.serve("a.drop-hits.example", "a.other.example")
        # A hit runs the rules for hits, and not those for answers that dnsdist makes.
        self.expect_upstream(host, "a.other.example", 1)
        self.expect_upstream(host, "a.drop-hits.example", 1, queries=1)
        for name in ("a.drop-hits.example", "a.spoofed.example"):
            self.expect_silence(host, query(name))


class Pools(DnsdistTest):
    def test_pool_action(self):
        other = harness.Upstream()
        self.addCleanup(other.close)
        host = self.start(
            "sardine = require 'sardine'\n"
            "addAction('early.example.', PoolAction('p'))\n"  # made before the cache is attached
            f"newServer{{address='127.0.0.1:{other.port}', pool={{'p', 'uncached'}}}}:setUp()\n"
            "pc = sardine.newPacketCache(1000)\n"
            "sardine.attach(pc)\n"
            "pc2 = sardine.newPacketCache(1000)\n"
            "sardine.attach(pc2, 'p')\n"
            "addAction('late.example.', PoolAction('p'))\n"
            "addAction('uncached.example.', PoolAction('uncached'))\n"
        )
        self.serve("a.default.example")
        for name in ("a.early.example", "a.late.example", "a.uncached.example"):
            other.on(name, A, [a(name, 300, "192.0.2.9")])
        self.expect_upstream(host, "a.default.example", 1)
        for name, count in (("a.early.example", 1), ("a.late.example", 1), ("a.uncached.example", 3)):
            for tcp in (False, True, False):
                self.assertEqual(host.ask(query(name), tcp).answer[0].data[-1], 9)
            self.assertEqual(other.asked(name), count, name)
            self.assertEqual(self.upstream.asked(name), 0)
        self.assertEqual(host.console("pc:toString() .. ' ' .. pc2:toString()"), "1/1000 2/1000")

    def test_one_cache_in_two_pools(self):
        host = self.start(
            CACHE + "server:addPool('p')\nsardine_module = require 'sardine'\nsardine_module.attach(pc, 'p')\n"
            "addAction('tcp.example.', PoolAction('p'))\n"
        )
        self.serve("a.tcp.example", "a.udp.example")
        self.expect_upstream(host, "a.tcp.example", 1)
        self.expect_upstream(host, "a.udp.example", 1)
        self.assertEqual(host.console("pc:toString()"), "2/10000")

    def test_detach_and_exchange_at_run_time(self):
        host = self.start("sardine = require 'sardine'\npc = sardine.newPacketCache(1000)\nsardine.attach(pc)")
        self.serve("a.example")
        self.expect_upstream(host, "a.example", 1)
        host.console("pc = sardine.newPacketCache(500) sardine.attach(pc) collectgarbage()")
        self.expect_upstream(host, "a.example", 1)
        self.assertEqual(host.console("pc:toString()"), "1/500")
        host.console("sardine.detach() pc = nil collectgarbage()")
        self.expect_upstream(host, "a.example", 3)
        host.console("pc = sardine.newPacketCache(100) sardine.attach(pc)")
        self.expect_upstream(host, "a.example", 1)


class Backends(DnsdistTest):
    def b16_backend_transport_and_state_do_not_matter(self):
        host = self.start(CACHE, server="tcpOnly=true")
        self.serve("a.example")
        self.expect_upstream(host, "a.example", 1)
        self.expect_upstream(host, "a.example", 0, tcp=True)
        host.console("server:setDown()")
        self.expect_upstream(host, "a.example", 0)

    def b19_client_subnet_and_backends_down(self):
        host = self.start(CACHE, server="useClientSubnet=true")

        def script(scope):
            def answer(message, _):
                ((code, value),) = message.edns_options
                self.assertEqual(code, dnsmsg.ECS)
                echoed = value[:3] + bytes([scope]) + value[4:]
                return reply(message, answer=[a(message.qname, 300)], edns=opt(options=[(code, echoed)]))

            return answer

        for name, scope in (("scoped.example", 24), ("wide.example", 16), ("all.example", 0)):
            self.upstream.on(name, A, script(scope))
            self.expect_upstream(host, name, 1)
        host.console("server:setDown()")
        for name in ("scoped.example", "wide.example", "all.example"):
            answer = self.expect_upstream(host, name, 0)
            self.assertEqual(answer.opts, [])


class Options(DnsdistTest):
    """Those that the behaviours do not show."""

    def b81_shuffle(self):
        records = [a("many.example", 300, f"192.0.2.{n}") for n in (1, 2, 3, 4)]
        for shuffle in ("true", "false"):
            host = self.start(CACHE.replace("{", "{shuffle=" + shuffle + ", "))
            self.upstream.on("many.example", A, records)
            replies = [host.ask(query("many.example")) for _ in range(60)]
            first = {reply.answer[0].data[-1] for reply in replies}
            self.assertEqual(first, {1, 2, 3, 4} if shuffle == "true" else {1})
            for answer in replies:
                self.assertEqual(sorted(record.data[-1] for record in answer.answer), [1, 2, 3, 4])

    def b50_truncated_ttl(self):
        host = self.start(CACHE.replace("{", "{truncatedTTL=2, "))

        def script(message, transport):
            if transport == "udp":
                return reply(message, flags=dnsmsg.TC | dnsmsg.RA)
            return reply(message, answer=[dnsmsg.txt(message.qname, 300, "whole")])

        self.upstream.on("a.example", dnsmsg.TXT, script)
        started = time.monotonic()
        for _ in range(3):
            self.assertTrue(host.ask(query("a.example", dnsmsg.TXT)).flags & dnsmsg.TC)
        # 2: when the clock's second changed in between
        self.assertLessEqual(self.upstream.asked("a.example"), 2 + time.monotonic() - started)
        time.sleep(2.2)
        before = self.upstream.asked("a.example")
        host.ask(query("a.example", dnsmsg.TXT))
        self.assertEqual(len(host.ask(query("a.example", dnsmsg.TXT), tcp=True).answer), 1)
        self.assertEqual(self.upstream.asked("a.example"), before + 2)

    def b52_maximum_entry_size(self):
        host = self.start(CACHE.replace("{", "{maximumEntrySize=600, "))
        for name, size, count in (("small.example", 400, 1), ("large.example", 700, 3)):
            self.upstream.on(name, dnsmsg.TXT, [dnsmsg.txt(name, 300, "x" * size)])
            for _ in range(3):
                self.assertEqual(len(host.ask(query(name, dnsmsg.TXT, edns=opt(1232))).answer), 1)
            self.assertEqual(self.upstream.asked(name), count, name)
        self.assertIn('"refused_too_large": 3', host.console("pc:getStats()"))

    def b44_cap_by_signature(self):
        host = self.start(CACHE.replace("{", "{capBySignature=true, "))

        def script(message, _):
            signature = dnsmsg.rrsig(message.qname, 300, A, expires=int(time.time()) + 2)
            return reply(message, answer=[a(message.qname, 300), signature], edns=opt(flags=dnsmsg.DO))

        self.upstream.on("a.example", A, script)
        host.ask(query("a.example", edns=opt(flags=dnsmsg.DO)))
        time.sleep(2.2)
        self.expect_upstream(host, "a.example", 1, queries=1)

    def b13_split_options(self):
        host = self.start(CACHE.replace("{", "{splitOptions={65001}, "))
        self.serve("a.example")
        for value in (b"one", b"two", b"one"):
            host.ask(query("a.example", edns=opt(options=[(65001, value), (65002, value)])))
        self.assertEqual(self.upstream.asked("a.example"), 2)

    def b30_the_life_of_an_answer(self):
        short = self.start(CACHE.replace("{", "{maxTTL=2, minTTL=1, dontAge=true, "))
        long = self.start(CACHE.replace("{", "{maxTTL=100, minTTL=1, dontAge=true, "))
        self.serve("a.example", "b.example", ttl=300)
        self.expect_upstream(long, "a.example", 1)
        short.ask(query("b.example"))
        time.sleep(2.2)
        self.assertEqual(self.expect_upstream(long, "a.example", 0).answer[0].ttl, 300)
        self.assertEqual(self.expect_upstream(short, "b.example", 1, queries=1).answer[0].ttl, 300)


class Console(DnsdistTest):
    def test_methods(self):
        host = self.start(CACHE)
        names = ["a.x.example", "b.x.example", "badx.example"]
        self.serve(*names)
        for name in names:
            self.expect_upstream(host, name, 1)
        self.assertEqual(host.console("pc:toString()"), "3/10000")
        self.assertEqual(host.console("tostring(pc:isFull())"), "false")
        stats = host.console("pc:printStats()")
        self.assertRegex(stats, r"(?m)^Entries: +3 of 10,000 \(0\.0 %\)$")
        self.assertRegex(stats, r"(?m)^Hits: +6 \(66\.7 % of hits and misses\)$")
        self.assertRegex(stats, r"(?m)^Misses: +3$")
        self.assertIn('"hits": 6', host.console("pc:getStats()"))
        self.assertEqual(host.console("pc:expungeByName('A.X.example', DNSQType.AAAA)"), "0")
        self.assertEqual(host.console("pc:expungeByName(newDNSName('A.X.example'), DNSQType.A)"), "1")
        self.assertEqual(host.console("pc:expungeByName('x.example', 255, true)"), "1")
        self.expect_upstream(host, "badx.example", 0)
        self.expect_upstream(host, "a.x.example", 1)
        self.assertEqual(host.console("pc:purgeExpired(0)"), "0")
        self.assertEqual(host.console("pc:expunge(1)"), "1")
        self.assertEqual(host.console("pc:toString()"), "1/10000")
        self.assertIn("no method", host.console("pc:nonsense()"))

    def b76_dump(self):
        host = self.start(CACHE)
        self.serve("A.x.example", "b.x.example")
        asked = int(time.time()) - 1
        for name in ("A.x.example", "b.x.example"):
            host.ask(query(name, flags=dnsmsg.RD | dnsmsg.CD if name[0] == "b" else dnsmsg.RD))
        self.upstream.on("no.example", dnsmsg.TXT, lambda m, _: reply(m, authority=[dnsmsg.soa("example", 60, 60)], rcode=3))
        host.ask(query("no.example", dnsmsg.TXT, edns=opt(flags=dnsmsg.DO)))
        with tempfile.TemporaryDirectory() as folder:
            for raw in ("", ", true"):
                path = os.path.join(folder, f"dump{len(raw)}")
                self.assertEqual(host.console(f"pc:dump('{path}'{raw})"), "Dumped 3 records")
                with open(path, encoding="ascii") as file:
                    lines = file.read().splitlines()
                self.assertEqual(lines[:2], ["; dnsdist's packet cache dump follows", ";"])
                one, two, three = sorted(lines[2:])
                end = r", base64response (\S+)$" if raw else "$"
                form = (
                    r"^{} (\d+) IN {} ; ecs empty, rcode {}, key 0, length (\d+), received over UDP 1,"
                    r" added (\d+), dnssecOK {}, raw query flags {}" + end
                )
                found = re.search(form.format(r"a\.x\.example\.", "A", 0, 0, 1), one)
                self.assertIsNotNone(found, one)
                now = int(time.time())
                self.assertIn(int(found[1]), range(300 - (now + 1 - asked), 301))
                self.assertIn(int(found[3]), range(asked, now + 1))
                self.assertRegex(two, form.format(r"b\.x\.example\.", "A", 0, 0, 1 | 16 << 8))
                self.assertRegex(three, form.format(r"no\.example\.", "TXT", 3, 1, 1))
                if raw:
                    message = dnsmsg.Message(base64.b64decode(found[4], validate=True))
                    self.assertEqual(len(message.data), int(found[2]))
                    self.assertEqual((message.qname, message.types()), ("a.x.example", [A]))
                self.assertIn("File exists", host.console(f"pc:dump('{path}'{raw})"))
                with open(path, encoding="ascii") as file:
                    self.assertEqual(file.read().splitlines(), lines)
            self.assertIn("No such file", host.console("pc:dump('/nowhere/at/all')"))

    def b76_dump_of_networks(self):
        host = self.start(CACHE, server="useClientSubnet=true")

        def script(message, _):
            ((code, value),) = message.edns_options
            echoed = value[:3] + b"\x10" + value[4:]
            return reply(message, answer=[a(message.qname, 300)], edns=opt(options=[(code, echoed)]))

        self.upstream.on("a.example", A, script)
        host.ask(query("a.example"))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "dump")
            self.assertEqual(host.console(f"pc:dump('{path}', true)"), "Dumped 1 records")
            with open(path, encoding="ascii") as file:
                line = file.read().splitlines()[2]
        found = re.search(r"^a\.example\. (\d+) IN A ; ecs 127\.0\.0\.0/16, .*base64response (\S+)$", line)
        self.assertIsNotNone(found, line)
        message = dnsmsg.Message(base64.b64decode(found[2], validate=True))
        self.assertEqual(message.types(), [A])
        self.assertIn(message.answer[0].ttl, (int(found[1]), int(found[1]) - 1))
        self.assertEqual(host.console("return table.concat(pc:getDomainListByAddress('192.0.2.1'))"), "a.example.")

    def b76_names_and_addresses(self):
        host = self.start(CACHE)
        six = bytes.fromhex("20010db8000000000000000000000001")
        self.upstream.on("www.example", A, [dnsmsg.cname("www.example", 300, "web.example"), a("web.example", 300)])
        self.upstream.on("www.example", dnsmsg.AAAA, [dnsmsg.Record("www.example", dnsmsg.AAAA, 300, six)])
        self.upstream.on("other.example", A, [a("other.example", 300), a("other.example", 300, "192.0.2.2")])
        self.upstream.on("www.example", dnsmsg.TXT, [dnsmsg.txt("www.example", 300, "\xc0\0\2\2")])
        for name, qtype in (("www.example", A), ("www.example", dnsmsg.AAAA), ("www.example", dnsmsg.TXT), ("other.example", A)):
            host.ask(query(name, qtype))
        show = "local list = {} for _, e in ipairs(%s) do table.insert(list, tostring(e.toString and e:toString() or e)) end return table.concat(list, ' ')"
        show_names = "return table.concat(%s, ' ')"
        for call, expected in (
            (show_names % "pc:getDomainListByAddress('192.0.2.1')", "other.example. www.example."),
            (show_names % "pc:getDomainListByAddress(newCA('192.0.2.2'))", "other.example."),
            (show_names % "pc:getDomainListByAddress('2001:db8::1')", "www.example."),
            (show_names % "pc:getDomainListByAddress('192.0.2.3')", ""),
            (show % "pc:getAddressListByDomain(newDNSName('WWW.example'))", "192.0.2.1 2001:db8::1"),
            (show % "pc:getAddressListByDomain('other.example')", "192.0.2.1 192.0.2.2"),
            (show % "pc:getAddressListByDomain('example')", ""),
        ):
            self.assertEqual(host.console(call), expected)
        self.assertIn("is not an address", host.console("pc:getDomainListByAddress('nonsense')"))
        self.assertIn("is not a domain name", host.console("pc:getAddressListByDomain('a..b')"))

    @unittest.skipIf("SARDINE_PRELOAD" in os.environ, "the sanitizer is preloaded")
    def test_jemalloc_preloaded(self):
        host = self.start(CACHE, environment={"LD_PRELOAD": "libjemalloc.so.2"})
        with open(f"/proc/{host.process.pid}/maps", encoding="ascii") as maps:
            self.assertIn("libjemalloc", maps.read())
        self.serve("a.example")
        self.expect_upstream(host, "a.example", 1)
        self.expect_upstream(host, "a.example", 0, tcp=True)


class StartUp(unittest.TestCase):
    """dnsdist --check-config says what is wrong, and fails."""

    def refused(self, options, expected, environment=None):
        status, text = harness.check_config(
            f"local sardine = require 'sardine'\nsardine.attach(sardine.newPacketCache({options}))", environment
        )
        self.assertEqual(status, 1, text)
        self.assertRegex(text, expected)

    def test_every_option_of_dnsdist_is_accepted(self):
        status, text = harness.check_config(
            "local sardine = require 'sardine'\n"
            "local options = {maxTTL=3600, minTTL=1, temporaryFailureTTL=30, staleTTL=30, dontAge=true,"
            " numberOfShards=10, deferrableInsertLock=false, maxNegativeTTL=600, parseECS=true, keepStaleData=true,"
            " cookieHashing=true, skipOptions={10, 12}, maximumEntrySize=4096, truncatedTTL=5,"
            " payloadRanks={512, 1232}, shuffle=true}\n"
            "sardine.newPacketCache(1000, options)\n"
            "sardine.attach(sardine.newPacketCache(1000, options))\n"
            "sardine.newPacketCache(0, {maxBytes=1000000, udpPayloadSize=1400, splitOptions={65001}, alwaysDO=true,"
            " staleWindow=3600, staleBackoff=10, stalePositive=true, refreshPercent=10, capBySignature=true})\n"
        )
        self.assertEqual(status, 0, text)
        self.assertEqual(text.count("option numberOfShards has no effect"), 1, text)

    def test_wrong_options(self):
        self.refused("100, {maxTtl=3}", "unknown option maxTtl")
        self.refused("100, {maxTTL='3'}", "maxTTL must be a whole number")
        self.refused("100, {maxTTL=-1}", "maxTTL must be a whole number")
        self.refused("100, {maxTTL=1.5}", "maxTTL must be a whole number")
        self.refused("100, {dontAge=1}", "dontAge must be true or false")
        self.refused("100, {numberOfShards=true}", "numberOfShards must be a whole number")
        self.refused("100, {skipOptions=10}", "skipOptions must be a list")
        self.refused("100, {splitOptions={65536}}", "splitOptions must be a list")
        self.refused("100, {alwaysDO=1}", "alwaysDO must be true or false")
        self.refused("100, {refreshPercent=51}", "refreshPercent must be a whole number from 0 to 50")
        self.refused("100, {staleWindow=true}", "staleWindow must be a whole number")
        self.refused("100, {maximumEntrySize=100}", "max_entry_size")
        self.refused("100, 3600", "must be a table")
        self.refused("-1", "first argument")
        self.refused("", "first argument")
        self.refused("0", "maxBytes")

    def test_missing_files(self):
        self.refused("100", "cannot load the library: /nowhere/lib.so", {"SARDINE_LIBRARY": "/nowhere/lib.so"})
        self.refused("100", "libc.so.6 is not libsardine", {"SARDINE_LIBRARY": "libc.so.6"})
        self.refused("100", "module 'sardine' not found", {"LUA_PATH": "/nowhere/?.lua"})

    def test_version_mismatch(self):
        with tempfile.TemporaryDirectory() as folder:
            for file in os.listdir(os.environ["SARDINE_LUA"]):
                if not file.endswith(".lua"):
                    continue
                with open(os.path.join(os.environ["SARDINE_LUA"], file), encoding="utf-8") as source:
                    text = source.read()
                with open(os.path.join(folder, file), "w", encoding="utf-8") as copy:
                    copy.write(text.replace("abi_version = 1,", "abi_version = 99,"))
            self.refused("100", r"sardine\.lua is of version .*ABI 99.*but the library", {"LUA_PATH": f"{folder}/?.lua;;"})


if __name__ == "__main__":
    loader.main()
