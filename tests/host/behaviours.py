# SPDX-License-Identifier: MIT
"""What a client and an upstream see of a host with a sardine cache, whichever the host is.

The host of a subclass allows UDP replies of 4096 bytes and keeps failures for 2 seconds."""
import os
import re
import subprocess
import time

import dnsmsg
from dnsmsg import A, TXT, Message, a, opt, query, reply


class Behaviours:
    """Mixed into a TestCase that has `host` and `upstream`."""

    def name(self, label="www"):
        """A name that no other test asks for."""
        return f"{label}.{self.id().rsplit('.', 1)[-1].replace('_', '-')[:40]}.example"

    def test_dig_twice(self):
        name = self.name("WwW")
        self.upstream.on(name, A, [a(name.lower(), 300, "192.0.2.7")])

        def dig(asked_name):
            return subprocess.run(
                ["dig", "+tries=1", "+time=30", "-p", str(self.host.port), "@127.0.0.1", asked_name, "A"],
                capture_output=True,
                text=True,
                check=True,
                timeout=60,
            ).stdout

        dig(name)
        time.sleep(1.2)
        other_case = name.swapcase()
        text = dig(other_case)
        self.assertEqual(self.upstream.asked(name), 1)
        self.assertIn("status: NOERROR", text)
        self.assertRegex(text, rf"(?m)^;{re.escape(other_case)}\.\s+IN\s+A$")
        found = re.search(rf"(?m)^{re.escape(other_case)}\.\s+(\d+)\s+IN\s+A\s+192\.0\.2\.7$", text)
        self.assertIsNotNone(found, text)
        self.assertLess(int(found.group(1)), 300)
        self.assertGreater(int(found.group(1)), 200)

    def test_kdig_over_tcp(self):
        name = self.name()
        self.upstream.on(name, A, [a(name, 300, "192.0.2.7")])
        for transport in ("+tcp", "+notcp"):
            text = subprocess.run(
                ["kdig", "+retry=0", "+time=30", transport, "-p", str(self.host.port), "@127.0.0.1", name, "A"],
                capture_output=True,
                text=True,
                check=True,
                timeout=60,
            ).stdout
            self.assertIn("192.0.2.7", text)
        self.assertEqual(self.upstream.asked(name), 1)

    def b08_answer_bits_are_replayed(self):
        for label, bits in (("resolver", dnsmsg.RA), ("authority", dnsmsg.AA)):
            name = self.name(label)
            self.upstream.on(name, A, lambda m, _: reply(m, answer=[a(m.qname, 300)], flags=bits))
            for _ in range(2):
                flags = self.host.ask(query(name)).flags
                self.assertEqual(flags & (dnsmsg.AA | dnsmsg.RA | dnsmsg.RD | dnsmsg.CD), bits | dnsmsg.RD)
            self.assertEqual(self.upstream.asked(name), 1)

    def b10_cookies_share_an_entry(self):
        name = self.name()
        self.upstream.on(name, A, lambda m, _: reply(m, answer=[a(m.qname, 300)], edns=opt()))
        for _ in range(20):
            answer = self.host.ask(query(name, edns=opt(options=[(dnsmsg.COOKIE, os.urandom(8))])))
            self.assertEqual(len(answer.answer), 1)
        self.assertEqual(self.upstream.asked(name), 1)

    def b11_no_cookie_of_another_client(self):
        name = self.name()

        def script(message, _):
            cookies = [(code, value + b"S" * 8) for code, value in message.edns_options if code == dnsmsg.COOKIE]
            return reply(message, answer=[a(message.qname, 300)], edns=opt(options=cookies))

        self.upstream.on(name, A, script)
        self.host.ask(query(name, edns=opt(options=[(dnsmsg.COOKIE, b"first..1")])))
        wire = self.host.ask(query(name, edns=opt(options=[(dnsmsg.COOKIE, b"second.2")]))).data
        self.assertEqual(self.upstream.asked(name), 1)
        self.assertNotIn(b"first..1", wire)
        self.assertNotIn(b"SSSSSSSS", wire)

    def b14_payload_sizes_share_an_entry(self):
        name = self.name()
        self.upstream.on(name, TXT, [dnsmsg.txt(name, 300, "x" * 1200)])
        full = self.host.ask(query(name, TXT, edns=opt(4096)))
        self.assertEqual(len(full.answer), 1)
        self.assertGreater(len(full.data), 1232)
        for size, limit in ((1232, 1232), (100, 512)):
            cut = self.host.ask(query(name, TXT, edns=opt(size)))
            self.assertTrue(cut.flags & dnsmsg.TC, size)
            self.assertLessEqual(len(cut.data), limit)
        again = self.host.ask(query(name, TXT, edns=opt(1400)))
        self.assertFalse(again.flags & dnsmsg.TC)
        self.assertEqual(again.answer[0].data, full.answer[0].data)
        self.assertEqual(self.upstream.asked(name), 1)

    def b15_udp_and_tcp_share_an_entry(self):
        name = self.name()
        records = [dnsmsg.txt(name, 300, letter * 500) for letter in "abcdef"]
        self.upstream.on(name, TXT, records)
        full = self.host.ask(query(name, TXT), tcp=True)
        self.assertEqual(len(full.answer), 6)
        cut = self.host.ask(query(name, TXT, edns=opt(1232)))
        self.assertTrue(cut.flags & dnsmsg.TC)
        self.assertLessEqual(len(cut.data), 1232)
        wide = self.host.ask(query(name, TXT, edns=opt(4096)))
        self.assertFalse(wide.flags & dnsmsg.TC)
        self.assertEqual([r.data for r in wide.answer], [r.data for r in records])
        self.assertEqual(self.upstream.asked(name), 1)

    def b15_tcp_gets_what_udp_fetched(self):
        name = self.name()
        self.upstream.on(name, A, [a(name, 300)])
        self.host.ask(query(name))
        self.assertEqual(len(self.host.ask(query(name), tcp=True).answer), 1)
        self.assertEqual(self.upstream.asked(name), 1)

    def b15_truncated_answers_are_not_for_tcp(self):
        name = self.name()

        def script(message, transport):
            if transport == "udp":
                return reply(message, flags=dnsmsg.TC | dnsmsg.RA)
            return reply(message, answer=[dnsmsg.txt(name, 300, "whole")])

        self.upstream.on(name, TXT, script)
        self.assertTrue(self.host.ask(query(name, TXT)).flags & dnsmsg.TC)
        whole = self.host.ask(query(name, TXT), tcp=True)
        self.assertFalse(whole.flags & dnsmsg.TC)
        self.assertEqual(len(whole.answer), 1)
        self.assertEqual(self.upstream.asked(name), 2)
        # and now the whole one is there for UDP too
        self.assertEqual(len(self.host.ask(query(name, TXT)).answer), 1)
        self.assertEqual(self.upstream.asked(name), 2)

    def b26_case_is_echoed(self):
        name = self.name("wWw[{")
        target = "TaRgEt.Elsewhere.Example"
        self.upstream.on(
            name, A, lambda m, _: reply(m, answer=[dnsmsg.cname(m.qname, 300, target), a(target, 300)])
        )
        self.host.ask(query(name))
        asked = query(name.swapcase())
        answer = self.host.ask(asked)
        self.assertEqual(self.upstream.asked(name), 1)
        self.assertEqual(answer.question_wire, asked[12:])
        self.assertEqual(answer.answer[0].name, name.swapcase())
        self.assertEqual(answer.answer[1].name, target)
        # [ and { differ by the bit that upper and lower case differ by, and are not letters
        other = name.replace("[", "{")
        self.upstream.on(other, A, [a(other, 300, "192.0.2.99")])
        self.assertEqual(self.host.ask(query(other)).answer[0].data[-1], 99)

    def b28_no_ttl_of_zero_and_exact_expiry(self):
        name = self.name()
        self.upstream.on(name, A, [a(name, 2)])
        started = time.monotonic()
        while time.monotonic() - started < 2.5 or self.upstream.asked(name) < 2:
            answer = self.host.ask(query(name))
            self.assertIn(answer.answer[0].ttl, (1, 2))
            self.assertLess(time.monotonic() - started, 60)
            time.sleep(0.1)
        # once a second at most
        self.assertLessEqual(self.upstream.asked(name), 2 + time.monotonic() - started)

    def b28_ttl_zero_is_passed_on_and_not_kept(self):
        name = self.name()
        self.upstream.on(name, A, [a(name, 0)])
        for n in (1, 2):
            self.assertEqual(self.host.ask(query(name)).answer[0].ttl, 0)
            self.assertEqual(self.upstream.asked(name), n)

    def b29_failures_are_kept_for_the_failure_ttl(self):
        name = self.name()
        self.upstream.on(name, A, lambda m, _: reply(m, rcode=dnsmsg.SERVFAIL))
        started = time.monotonic()
        for _ in range(3):
            self.assertEqual(self.host.ask(query(name)).rcode, dnsmsg.SERVFAIL)
        # 2: when the clock's second changed in between
        self.assertLessEqual(self.upstream.asked(name), 2 + time.monotonic() - started)
        before = self.upstream.asked(name)
        time.sleep(2.2)
        self.host.ask(query(name))
        self.assertEqual(self.upstream.asked(name), before + 1)

    def b29_a_bare_header_is_relayed(self):
        name = self.name()
        bare = lambda m, _: reply(m, rcode=dnsmsg.REFUSED)[:4] + bytes(8)
        self.upstream.on(name, A, bare)
        for _ in range(2):
            self.assertEqual(self.host.ask(query(name)).rcode, dnsmsg.REFUSED)

    def b29_an_empty_answer_without_soa_is_not_kept(self):
        name = self.name()
        self.upstream.on(name, A, lambda m, _: reply(m))
        for n in (1, 2):
            self.assertEqual(self.host.ask(query(name)).rcode, dnsmsg.NOERROR)
            self.assertEqual(self.upstream.asked(name), n)

    def b31_negative_answers_live_by_minimum(self):
        name = self.name()
        script = lambda m, _: reply(m, authority=[dnsmsg.soa("example", 3600, 60)], rcode=dnsmsg.NXDOMAIN)
        self.upstream.on(name, A, script)
        self.host.ask(query(name))
        answer = self.host.ask(query(name))
        self.assertEqual(answer.rcode, dnsmsg.NXDOMAIN)
        self.assertEqual(self.upstream.asked(name), 1)
        self.assertLessEqual(answer.authority[0].ttl, 60)

    def b34_opt_has_no_ttl(self):
        name = self.name()
        self.upstream.on(name, A, lambda m, _: reply(m, answer=[a(m.qname, 300)], edns=opt(4096)))
        self.host.ask(query(name, edns=opt()))
        time.sleep(1.2)
        answer = self.host.ask(query(name, edns=opt()))
        self.assertEqual(self.upstream.asked(name), 1)
        self.assertEqual(answer.opt.ttl, 0)

    def signed(self, message, _):
        """An upstream of a signed zone."""
        records = [a(message.qname, 300)] + ([dnsmsg.rrsig(message.qname, 300, A)] if message.do else [])
        return reply(message, answer=records, edns=opt(flags=dnsmsg.DO if message.do else 0) if message.opt else None)

    def b45_unsigned_data_is_not_for_do_clients(self):
        name = self.name()
        self.upstream.on(name, A, self.signed)
        self.assertEqual(self.host.ask(query(name)).types(), [A])
        for n in range(2):
            answer = self.host.ask(query(name, edns=opt(flags=dnsmsg.DO)))
            self.assertEqual(answer.types(), [A, dnsmsg.RRSIG])
            self.assertEqual(self.upstream.asked(name), 2)
        self.assertEqual(self.host.ask(query(name)).types(), [A])
        self.assertEqual(self.upstream.asked(name), 2)

    def b46_signatures_are_only_for_do_clients(self):
        name, nothing = self.name(), self.name("nothing")
        self.upstream.on(name, A, self.signed)
        self.upstream.on(
            nothing,
            A,
            lambda m, _: reply(
                m,
                authority=[
                    dnsmsg.soa("example", 300, 300),
                    dnsmsg.rrsig("example", 300, dnsmsg.SOA),
                    dnsmsg.nsec("a.example", 300, "z.example"),
                    dnsmsg.rrsig("a.example", 300, dnsmsg.NSEC),
                ],
                rcode=dnsmsg.NXDOMAIN,
                edns=opt(flags=dnsmsg.DO),
            ),
        )
        for asked, plain in ((name, [A]), (nothing, [dnsmsg.SOA])):
            with_do = self.host.ask(query(asked, edns=opt(flags=dnsmsg.DO)))
            self.assertIn(dnsmsg.RRSIG, with_do.types())
            for edns in (None, opt()):
                answer = self.host.ask(query(asked, edns=edns))
                self.assertEqual(answer.types(), plain)
                self.assertEqual(answer.rcode, with_do.rcode)
            self.assertEqual(self.upstream.asked(asked), 1)

    def b49_udp_replies_fit_the_client(self):
        name = self.name()
        records = [dnsmsg.txt(name, 300, f"{i:03}" * 50) for i in range(28)]
        self.upstream.on(name, TXT, records)
        self.assertEqual(len(self.host.ask(query(name, TXT), tcp=True).answer), 28)
        for edns, limit in ((None, 512), (opt(512), 512), (opt(1232), 1232), (opt(4096), 4096)):
            answer = self.host.ask(query(name, TXT, edns=edns))  # its counts match, or it does not parse
            self.assertLessEqual(len(answer.data), limit)
            self.assertTrue(answer.flags & dnsmsg.TC)
            self.assertEqual(len(answer.opts), 1 if edns else 0)
        self.assertEqual(self.upstream.asked(name), 1)

    def b54_hits_have_an_opt_for_edns_clients(self):
        names = {
            "yes": lambda m, _: reply(m, answer=[a(m.qname, 300)], edns=opt(4096)),
            "no": lambda m, _: reply(m, authority=[dnsmsg.soa("example", 300, 300)], rcode=dnsmsg.NXDOMAIN, edns=opt()),
            "failed": lambda m, _: reply(m, rcode=dnsmsg.SERVFAIL, edns=opt()),
        }
        for label, script in names.items():
            name = self.name(label)
            self.upstream.on(name, A, script)
            self.host.ask(query(name, edns=opt(flags=dnsmsg.DO)))
            for flags in (0, dnsmsg.DO):
                answer = self.host.ask(query(name, edns=opt(flags=flags)))
                self.assertEqual(len(answer.opts), 1)
                self.assertEqual(answer.opt.name, "")
                self.assertEqual(answer.opt.ttl, flags)
            self.assertEqual(self.upstream.asked(name), 1)

    def b55_no_opt_for_others(self):
        name = self.name()
        options = [(3, b"ns1"), (dnsmsg.COOKIE, b"c" * 16), (dnsmsg.PADDING, bytes(50))]
        self.upstream.on(name, A, lambda m, _: reply(m, answer=[a(m.qname, 300)], edns=opt(4096, options=options)))
        self.host.ask(query(name, edns=opt()))
        self.assertEqual(self.host.ask(query(name)).opts, [])
        self.assertEqual(self.host.ask(query(name, edns=opt())).edns_options, [])
        self.assertEqual(self.upstream.asked(name), 1)

    def b71_newer_data_replaces_older_with_a_longer_ttl(self):
        name = self.name()

        def script(message, _):
            if message.do:
                return reply(message, answer=[a(message.qname, 60, "192.0.2.2")], edns=opt(flags=dnsmsg.DO))
            return reply(message, answer=[a(message.qname, 3600, "192.0.2.1")])

        self.upstream.on(name, A, script)
        self.assertEqual(self.host.ask(query(name)).answer[0].data[-1], 1)
        self.assertEqual(self.host.ask(query(name, edns=opt(flags=dnsmsg.DO))).answer[0].data[-1], 2)
        answer = self.host.ask(query(name))
        self.assertEqual(self.upstream.asked(name), 2)
        self.assertEqual(answer.answer[0].data[-1], 2)
        self.assertLessEqual(answer.answer[0].ttl, 60)

    def b25_only_plain_queries_are_kept(self):
        name = self.name()
        script = lambda m, _: reply(m, rcode=dnsmsg.REFUSED)
        self.upstream.on(name, dnsmsg.SOA, script)
        notify = query(name, dnsmsg.SOA, flags=4 << 11)
        for n in (1, 2):
            self.host.udp(notify)
            self.assertEqual(self.upstream.asked(name), n)

