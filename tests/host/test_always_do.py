# SPDX-License-Identifier: MIT
"""Real dnsdist with alwaysDO: backends are asked with DO for every client, and one answer serves all."""
import os
import subprocess
import unittest

import dnsmsg
import harness
import loader
from behaviours import Behaviours
from cases import DnsdistTest
from dnsmsg import A, NOERROR, NXDOMAIN, REFUSED, RRSIG, SERVFAIL, TXT, a, opt, query, reply, rrsig

CACHE = """
local sardine = require 'sardine'
pc = sardine.newPacketCache(10000, {alwaysDO=true, temporaryFailureTTL=2, udpPayloadSize=4096})
sardine.attach(pc)
"""
WITH_DO = opt(flags=dnsmsg.DO)


class BehavioursWithAlwaysDO(Behaviours, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.upstream = harness.Upstream()
        cls.addClassCleanup(cls.upstream.close)
        cls.host = harness.Dnsdist(cls.upstream, CACHE)
        cls.addClassCleanup(cls.host.close)

    def b45_unsigned_data_is_not_for_do_clients(self):
        """There is none: all data is fetched with DO."""
        name = self.name()
        self.upstream.on(name, A, self.signed)
        self.assertEqual(self.host.ask(query(name)).types(), [A])
        self.assertEqual(self.host.ask(query(name, edns=WITH_DO)).types(), [A, RRSIG])
        self.assertEqual(self.upstream.asked(name), 1)

    def b71_newer_data_replaces_older_with_a_longer_ttl(self):
        """One answer for both kinds of client: nothing newer comes before it expires."""
        name = self.name()
        self.upstream.on(name, A, self.signed)
        for edns in (None, WITH_DO, opt(), None):
            self.host.ask(query(name, edns=edns))
        self.assertEqual(self.upstream.asked(name), 1)


class AlwaysDO(DnsdistTest):
    def signed(self, name, **more):
        """The upstream has a signature for those who ask for it, and AD for all."""

        def script(message, _):
            records = [a(name, 300)] + ([rrsig(name, 300, A)] if message.do else [])
            edns = opt(flags=dnsmsg.DO if message.do else 0) if message.opt else None
            return reply(message, answer=records, edns=edns, **more)

        self.upstream.on(name, A, script)

    def b47_one_query_for_both_worlds(self):
        host = self.start(CACHE)
        clients = (("plain", None), ("edns", opt()), ("do", WITH_DO))
        for label, first in clients:
            name = f"{label}.example"
            self.signed(name)
            for edns in (first, None, opt(), WITH_DO):
                answer = host.ask(query(name, edns=edns))
                self.assertEqual(answer.types(), [A, RRSIG] if edns is WITH_DO else [A])
                self.assertEqual([o.ttl for o in answer.opts], [edns.ttl] if edns else [])
            (asked,) = self.upstream.queries(name)
            self.assertTrue(asked.do)
        self.assertIn('"entries": 3', host.console("pc:getStats()"))

    def b07_ad_is_for_those_who_know_it(self):
        host = self.start(CACHE)
        for label, flags, edns, expected in (
            ("plain", 0, None, 0),
            ("ad", dnsmsg.AD, None, dnsmsg.AD),
            ("do", 0, WITH_DO, dnsmsg.AD),
        ):
            name = f"{label}.example"
            self.signed(name, flags=dnsmsg.RA | dnsmsg.AD)
            for _ in range(2):
                answer = host.ask(query(name, flags=dnsmsg.RD | flags, edns=edns))
                self.assertEqual(answer.flags & dnsmsg.AD, expected, label)

    def b26_the_first_reply_has_the_clients_case_and_flags(self):
        host = self.start(CACHE + "addAction('rd.example.', SetNoRecurseAction())\n")
        name = "a.RD.example"
        self.upstream.on(name, A, lambda m, _: reply(m, answer=[a(name, 300)]))
        asked = query(name.swapcase(), flags=dnsmsg.RD | dnsmsg.CD)
        answer = host.ask(asked)
        self.assertEqual(answer.question_wire, dnsmsg.Message(asked).question_wire)
        self.assertEqual(answer.flags & (dnsmsg.RD | dnsmsg.CD), dnsmsg.RD | dnsmsg.CD)

    def b46_proofs_are_only_for_do_clients(self):
        host = self.start(CACHE)
        name = "no.example"
        self.upstream.on(
            name,
            A,
            lambda m, _: reply(
                m,
                authority=[
                    dnsmsg.soa("example", 300, 300),
                    rrsig("example", 300, dnsmsg.SOA),
                    dnsmsg.nsec("a.example", 300, "z.example"),
                    rrsig("a.example", 300, dnsmsg.NSEC),
                ],
                rcode=NXDOMAIN,
                edns=WITH_DO,
            ),
        )
        answer = host.ask(query(name))
        self.assertEqual((answer.rcode, answer.types(), answer.opts), (NXDOMAIN, [dnsmsg.SOA], []))
        self.assertEqual(len(host.ask(query(name, edns=WITH_DO)).authority), 4)
        self.assertEqual(self.upstream.asked(name), 1)

    def b49_the_first_reply_fits_the_client(self):
        host = self.start(CACHE)
        name = "big.example"
        self.upstream.on(name, TXT, lambda m, _: reply(m, answer=[dnsmsg.txt(name, 300, "x" * 900)], edns=WITH_DO))
        answer = host.ask(query(name, TXT))
        self.assertTrue(answer.flags & dnsmsg.TC)
        self.assertLessEqual(len(answer.data), 512)
        self.assertEqual(len(host.ask(query(name, TXT), tcp=True).answer), 1)
        self.assertEqual(self.upstream.asked(name), 1)

    def b15_truncated_by_the_backend(self):
        host = self.start(CACHE)
        name = "big.example"

        def script(message, transport):
            if transport == "udp":
                return reply(message, flags=dnsmsg.TC | dnsmsg.RA, edns=WITH_DO)
            return reply(message, answer=[dnsmsg.txt(name, 300, "whole")], edns=WITH_DO)

        self.upstream.on(name, TXT, script)
        for edns in (None, opt()):
            answer = host.ask(query(name, TXT, edns=edns))
            self.assertEqual((answer.rcode, answer.types()), (NOERROR, []))
            self.assertTrue(answer.flags & dnsmsg.TC)
            self.assertEqual(len(answer.opts), 1 if edns else 0)
        answer = host.ask(query(name, TXT), tcp=True)
        self.assertEqual((answer.types(), answer.opts), ([TXT], []))
        self.assertFalse(host.ask(query(name, TXT)).flags & dnsmsg.TC)
        self.assertEqual(self.upstream.asked(name), 3)

    def test_what_cannot_be_written_is_a_failure(self):
        host = self.start(CACHE)
        scripts = {
            "cut": lambda m, _: reply(m, answer=[a(m.qname, 300)], edns=WITH_DO)[:-14],
            "trailing": lambda m, _: reply(m, answer=[a(m.qname, 300)], edns=WITH_DO) + b"more",
            "badvers": lambda m, _: reply(m, edns=opt(ext_rcode=1)),
        }
        for label, script in scripts.items():
            self.upstream.on(f"{label}.example", A, script)
            for edns in (None, opt()):
                answer = host.ask(query(f"{label}.example", edns=edns))
                self.assertEqual((answer.rcode, answer.types()), (SERVFAIL, []), label)
                self.assertEqual(len(answer.opts), 1 if edns else 0)

    def b29_failures(self):
        host = self.start(CACHE)
        self.upstream.on("servfail.example", A, lambda m, _: reply(m, rcode=SERVFAIL, edns=WITH_DO))
        self.upstream.on("bare.example", A, lambda m, _: reply(m, rcode=REFUSED)[:4] + bytes(8))
        for name, rcode in (("servfail.example", SERVFAIL), ("bare.example", REFUSED)):
            answer = host.ask(query(name))
            self.assertEqual((answer.rcode, answer.opts), (rcode, []))

    def b37_stale_data(self):
        host = self.start(CACHE.replace("alwaysDO", "staleWindow=600, alwaysDO"))
        self.upstream.on("a.example", A, lambda m, _: reply(m, answer=[a("a.example", 1), rrsig("a.example", 1, A)]))
        host.ask(query("a.example"))
        harness.time.sleep(1.2)
        self.upstream.on("a.example", A, lambda m, _: reply(m, rcode=SERVFAIL, edns=WITH_DO))
        answer = host.ask(query("a.example"))
        self.assertEqual((answer.rcode, answer.types(), answer.opts), (NOERROR, [A], []))
        self.assertEqual(host.ask(query("a.example", edns=WITH_DO)).types(), [A, RRSIG])

    def test_no_server(self):
        host = self.start(CACHE + "setServFailWhenNoServer(true)")
        host.console("server:setDown()")
        for edns in (None, opt()):
            answer = host.ask(query("a.example", edns=edns))
            self.assertEqual((answer.rcode, len(answer.opts)), (SERVFAIL, 1 if edns else 0))
        host.console("setServFailWhenNoServer(false)")
        self.expect_silence(host, query("a.example"))

    def test_skip_cache_actions(self):
        host = self.start(
            CACHE + "addAction('skip.example.', SetSkipCacheAction())\n"
            "addResponseAction('skip-response.example.', SetSkipCacheResponseAction())\n"
        )
        for name in ("a.skip.example", "a.skip-response.example"):
            self.signed(name)
            for n in (1, 2):
                answer = host.ask(query(name))
                self.assertEqual((answer.types(), answer.opts), ([A], []))
                self.assertEqual(self.upstream.asked(name), n)
        self.assertIsNone(self.upstream.queries("a.skip.example")[0].opt)

    def b17_client_subnet_added_by_dnsdist(self):
        host = self.start(CACHE, server="useClientSubnet=true")

        def script(message, _):
            ((code, value),) = [o for o in message.edns_options if o[0] == dnsmsg.ECS]
            scoped = value[:3] + b"\x18" + value[4:]
            return reply(message, answer=[a(message.qname, 300)], edns=opt(flags=dnsmsg.DO, options=[(code, scoped)]))

        for label, edns in (("plain", None), ("edns", opt())):
            name = f"{label}.example"
            self.upstream.on(name, A, script)
            for _ in range(2):
                answer = host.ask(query(name, edns=edns))
                self.assertEqual(answer.edns_options, [])
                self.assertEqual(len(answer.opts), 1 if edns else 0)
            self.assertEqual(self.upstream.asked(name), 1)
            self.assertTrue(self.upstream.queries(name)[0].do)

    def test_options_of_the_client_reach_the_backend(self):
        host = self.start(CACHE)
        self.signed("a.example")
        host.ask(query("a.example", edns=opt(1400, options=[(65001, b"hello")])))
        (asked,) = self.upstream.queries("a.example")
        self.assertEqual(asked.edns_options, [(65001, b"hello")])
        self.assertEqual(asked.opt.rclass, 4096)

    def b16_backend_over_tcp(self):
        host = self.start(CACHE, server="tcpOnly=true")
        self.signed("a.example")
        self.upstream.on(
            "big.example", TXT, lambda m, _: reply(m, answer=[dnsmsg.txt("big.example", 300, "x" * 900)], edns=WITH_DO)
        )
        answer = host.ask(query("a.example"))
        self.assertEqual((answer.types(), answer.opts), ([A], []))
        self.assertTrue(host.ask(query("big.example", TXT)).flags & dnsmsg.TC)
        self.assertEqual(len(host.ask(query("big.example", TXT, edns=opt(4096))).answer), 1)
        self.assertEqual(self.upstream.asked("big.example"), 1)

    def b15_dot_and_doh(self):
        certificate, key = self.certificate()
        dot, doh = harness.free_port(), harness.free_port()
        host = self.start(
            CACHE + f"addTLSLocal('127.0.0.1:{dot}', '{certificate}', '{key}')\n"
            f"addDOHLocal('127.0.0.1:{doh}', '{certificate}', '{key}', '/dns-query')\n"
        )
        for port in (dot, doh):
            host.wait_until_it_listens(port)

        def script(message, transport):
            if transport == "udp":
                return reply(message, flags=dnsmsg.TC | dnsmsg.RA, edns=WITH_DO)
            records = [dnsmsg.txt(message.qname, 300, "whole"), rrsig(message.qname, 300, TXT)]
            return reply(message, answer=records, edns=WITH_DO)

        fronts = [("+tls", dot), ("+tcp", host.port)]
        if "SARDINE_PRELOAD" not in os.environ:
            # dnsdist 1.7.3 reads freed memory when a truncated answer makes it ask again for a DoH client, with or
            # without a cache, and the sanitizer would end it.
            fronts.append(("+https", doh))
        for front, port in fronts:
            name = f"{front[1:]}.example"
            self.upstream.on(name, TXT, script)
            text = subprocess.run(
                ["kdig", "+retry=0", "+time=30", front, "-p", str(port), "@127.0.0.1", name, "TXT"],
                capture_output=True,
                text=True,
                check=False,
                timeout=60,
            ).stdout
            self.assertIn('"whole"', text, front)
            self.assertNotIn("RRSIG", text, front)
            self.assertTrue(all(m.do for m in self.upstream.queries(name)))
            self.assertEqual(host.ask(query(name, TXT, edns=WITH_DO)).types(), [TXT, RRSIG])


if __name__ == "__main__":
    loader.main()
