# SPDX-License-Identifier: MIT
"""Real dnsdist: expired data in place of failures, while no backend is up, and answers fetched ahead of time."""
import threading
import time

import dnsmsg
import harness
import loader
from cases import DnsdistTest
from dnsmsg import A, NOERROR, NXDOMAIN, REFUSED, SERVFAIL, a, opt, query, reply


def cache(options, before="", after=""):
    return (
        f"local sardine = require 'sardine'\n{before}\n"
        f"pc = sardine.newPacketCache(10000, {{temporaryFailureTTL=600, {options}}})\n"
        f"{after}\nsardine.attach(pc)\n"
    )


class StaleTest(DnsdistTest):
    def fail(self, name, rcode=SERVFAIL):
        self.upstream.on(name, A, lambda m, _: reply(m, rcode=rcode))

    def expire(self, host, *names, records=None, ttl=1):
        """Have the names cached and expired."""
        for name in names:
            self.upstream.on(name, A, records or [a(name, ttl)])
            host.ask(query(name))
        time.sleep(ttl + 0.2)

    def expect_stale(self, answer, ttl=1):
        self.assertEqual(answer.rcode, NOERROR)
        self.assertEqual([record.ttl for record in answer.answer], [ttl])


class Failures(StaleTest):
    def b37_failures_are_replaced(self):
        host = self.start(cache("staleWindow=600"))
        for name, rcode in (("servfail.example", SERVFAIL), ("refused.example", REFUSED)):
            self.expire(host, name)
            self.fail(name, rcode)
            self.expect_stale(host.ask(query(name)))
            self.assertEqual(self.upstream.asked(name), 2)
        stats = host.console("pc:getStats()")
        self.assertIn('"rescued": 2', stats)
        self.assertIn('"staleHits": 0', stats)

    def b37_as_the_client_asked(self):
        name = "WwW.ClIeNt.example"
        clients = {
            "plain": (query(name.swapcase()), False),
            "edns": (query(name, edns=opt(1400)), False),
            "tcp": (query(name, edns=opt(512)), True),
            "dropped flags": (query(name, flags=dnsmsg.RD | dnsmsg.AD), False),
            "ecs": (query(name, edns=opt(options=[(dnsmsg.ECS, b"\0\1\x18\0\xc0\0\2")])), False),
        }
        for label, (asked, tcp) in clients.items():
            with self.subTest(label):
                host = self.start(cache("staleWindow=600"))
                self.expire(host, name.lower())
                self.fail(name)
                answer = host.ask(asked, tcp)
                sent = dnsmsg.Message(asked)
                self.expect_stale(answer)
                self.assertEqual(answer.question_wire, sent.question_wire)
                self.assertEqual(answer.answer[0].name, sent.qname)
                self.assertEqual(len(answer.opts), len(sent.opts))
                self.assertEqual(answer.flags & (dnsmsg.RD | dnsmsg.CD), sent.flags & (dnsmsg.RD | dnsmsg.CD))
                if sent.opts:
                    options = dict(answer.edns_options)
                    self.assertEqual(options[dnsmsg.EDE][:2], b"\0\3")
                    self.assertEqual(dnsmsg.ECS in options, label == "ecs")

    def b37_rules_that_change_flags(self):
        host = self.start(cache("staleWindow=600") + "addAction('rd.example.', SetNoRecurseAction())\n")
        self.expire(host, "a.rd.example")
        self.fail("a.rd.example")
        answer = host.ask(query("a.rd.example"))
        self.expect_stale(answer)
        self.assertTrue(answer.flags & dnsmsg.RD)

    def b38_no_upstream_query_during_the_back_off(self):
        patient, eager = self.start(cache("staleWindow=600, staleBackoff=600")), self.start(cache("staleWindow=600, staleBackoff=2"))
        name, other = "a.example", "b.example"
        self.expire(patient, name)
        self.expire(eager, other)
        self.fail(name)
        self.fail(other)
        self.expect_stale(self.expect_upstream(patient, name, 1))
        self.expect_stale(self.expect_upstream(patient, name, 0, tcp=True))
        self.assertIn('"staleHits": 5', patient.console("pc:getStats()"))
        # and then it is asked again
        self.expect_stale(self.expect_upstream(eager, other, 1, queries=1))
        time.sleep(3.1)
        self.expect_stale(self.expect_upstream(eager, other, 1, queries=1))
        # and once it works again, what it says counts
        time.sleep(3.1)
        self.serve(other)
        self.assertEqual(self.expect_upstream(eager, other, 1).answer[0].ttl, 300)

    def b43_stale_ttl(self):
        host = self.start(cache("staleWindow=600, staleTTL=2"))
        self.expire(host, "long.example", ttl=3)
        self.expire(host, "short.example", ttl=1)
        for name, ttl in (("long.example", 2), ("short.example", 1)):
            self.fail(name)
            self.expect_stale(host.ask(query(name)), ttl)

    def b37_only_within_the_window(self):
        host = self.start(cache("staleWindow=1"))
        self.expire(host, "a.example")
        time.sleep(2)
        self.fail("a.example")
        self.assertEqual(host.ask(query("a.example")).rcode, SERVFAIL)

    def b37_only_if_asked_for(self):
        for config in (cache(""), cache("staleWindow=0", before="setStaleCacheEntriesTTL(600)")):
            host = self.start(config)
            self.expire(host, "a.example")
            self.fail("a.example")
            self.assertEqual(host.ask(query("a.example")).rcode, SERVFAIL)

    def b37_negative_answers_too_unless_forbidden(self):
        for options, expected in (("staleWindow=600", NXDOMAIN), ("staleWindow=600, stalePositive=true", SERVFAIL)):
            host = self.start(cache(options))
            self.upstream.on(
                "no.example", A, lambda m, _: reply(m, authority=[dnsmsg.soa("example", 1, 1)], rcode=NXDOMAIN)
            )
            self.assertEqual(host.ask(query("no.example")).rcode, NXDOMAIN)
            time.sleep(1.2)
            self.fail("no.example")
            answer = host.ask(query("no.example", edns=opt()))
            self.assertEqual(answer.rcode, expected)
            if expected == NXDOMAIN:
                self.assertEqual(dict(answer.edns_options)[dnsmsg.EDE][:2], b"\0\x13")

    def b41_failures_without_stale_data_are_kept(self):
        host = self.start(cache("staleWindow=600"))
        self.fail("a.example")
        self.assertEqual(self.expect_upstream(host, "a.example", 1, queries=2).rcode, SERVFAIL)

    def test_skip_cache_response_action(self):
        host = self.start(
            cache("staleWindow=600") + "addResponseAction(RCodeRule(DNSRCode.SERVFAIL), SetSkipCacheResponseAction())"
        )
        self.expire(host, "a.example")
        self.fail("a.example")
        self.assertEqual(self.expect_upstream(host, "a.example", 2, queries=2).rcode, SERVFAIL)


class NoServer(StaleTest):
    def down(self, host):
        host.console("server:setDown()")

    def b37_while_no_backend_is_up(self):
        configs = {
            "own option": cache("staleWindow=600"),
            "dnsdist's, before": cache("", before="setStaleCacheEntriesTTL(600)"),
            "dnsdist's, after": cache("keepStaleData=true", after="setStaleCacheEntriesTTL(600)"),
            "dnsdist's, last": cache("") + "setStaleCacheEntriesTTL(600)",
        }
        for label, config in configs.items():
            with self.subTest(label):
                host = self.start(config)
                before = self.upstream.asked("a.example")
                self.expire(host, "a.example")
                self.down(host)
                for tcp in (False, True):
                    asked = query("A.exAMple", edns=opt())
                    answer = host.ask(asked, tcp)
                    self.expect_stale(answer)
                    self.assertEqual(answer.question_wire, dnsmsg.Message(asked).question_wire)
                    self.assertEqual(dict(answer.edns_options)[dnsmsg.EDE][:2], b"\0\3")
                self.assertEqual(self.upstream.asked("a.example") - before, 1)
                self.expect_silence(host, query("other.example"))

    def test_dnsdists_option_says_nothing_about_failures(self):
        host = self.start(cache("", before="setStaleCacheEntriesTTL(600)"))
        self.expire(host, "a.example")
        self.fail("a.example")
        self.assertEqual(host.ask(query("a.example")).rcode, SERVFAIL)

    def test_servfail_when_no_server(self):
        for config in (
            cache("staleWindow=600", before="setServFailWhenNoServer(true)"),
            cache("staleWindow=600") + "setServFailWhenNoServer(true)",
        ):
            host = self.start(config)
            self.expire(host, "a.example")
            self.down(host)
            self.expect_stale(host.ask(query("a.example")))
            for message in (query("other.example"), query("other.example", qclass=3)):
                self.assertEqual(host.ask(message, tcp=True).rcode, SERVFAIL)
            host.console("setServFailWhenNoServer(false)")
            self.expect_silence(host, query("other.example"))

    def test_what_is_not_for_the_cache_is_dropped_too(self):
        host = self.start(
            "sardine = require 'sardine'\n"
            "addAction('skip.example.', SetSkipCacheAction())\n"
            "addAction('pool.example.', PoolAction('p'))\n"
            "addAction('servfail.example.', RCodeAction(DNSRCode.SERVFAIL))\n" + cache("staleWindow=600")
        )
        self.down(host)
        for name in ("a.skip.example", "a.pool.example"):
            self.expect_silence(host, query(name))
        self.assertEqual(host.ask(query("a.servfail.example")).rcode, SERVFAIL)
        host.console("sardine.detach()")
        self.expect_silence(host, query("a.example"))

    def test_flags_and_rules_for_hits(self):
        host = self.start(
            "local sardine = require 'sardine'\n"
            "addSelfAnsweredResponseAction(AllRule(), DropResponseAction())\n"
            "addCacheHitResponseAction('drop.example.', DropResponseAction())\n"
            "addAction('rd.example.', SetNoRecurseAction())\n" + cache("staleWindow=600, staleBackoff=0")
        )
        self.expire(host, "a.drop.example", "a.rd.example", "a.example")
        self.down(host)
        host.console("mvSelfAnsweredResponseRuleToTop()")
        self.expect_silence(host, query("a.drop.example"))
        self.expect_stale(host.ask(query("a.example")))
        self.assertTrue(host.ask(query("a.rd.example")).flags & dnsmsg.RD)


class Refresh(StaleTest):
    @harness.timely(9)
    def b79_one_query_goes_ahead(self):
        host = self.start(cache("refreshPercent=50"))
        name = "a.example"
        go_on = threading.Event()
        self.addCleanup(go_on.set)
        self.upstream.on(name, A, [a(name, 10, "192.0.2.1")])
        self.expect_upstream(host, name, 1)

        def slow(message, _):
            go_on.wait(harness.TIMEOUT)
            return reply(message, answer=[a(name, 10, "192.0.2.2")])

        self.upstream.on(name, A, slow)
        time.sleep(5.3)
        answers = []
        winner = threading.Thread(target=lambda: answers.append(host.ask(query(name))))
        winner.start()
        for _ in harness.looks(harness.TIMEOUT):
            if self.upstream.asked(name) >= 2:
                break
        for tcp in (False, True, False):  # served while the winner waits
            self.assertEqual(host.ask(query(name), tcp).answer[0].data[-1], 1)
        self.assertEqual(answers, [])
        go_on.set()
        winner.join(harness.TIMEOUT)
        self.assertEqual(answers[0].answer[0].data[-1], 2)
        self.assertEqual(self.upstream.asked(name), 2)
        self.assertEqual(host.ask(query(name)).answer[0].data[-1], 2)
        self.assertGreater(host.ask(query(name)).answer[0].ttl, 5)

    @harness.timely(9)
    def b79_a_failed_refresh_harms_nobody(self):
        host = self.start(cache("refreshPercent=50"))
        name = "a.example"
        self.upstream.on(name, A, [a(name, 10)])
        self.expect_upstream(host, name, 1)
        self.fail(name)
        time.sleep(5.3)
        answer = self.expect_upstream(host, name, 1)
        self.assertEqual(answer.rcode, NOERROR)

    @harness.timely(9)
    def b21_with_the_do_of_what_it_replaces(self):
        host = self.start(cache("refreshPercent=50"))
        name = "a.example"

        def signed(message, _):
            records = [a(name, 10)] + ([dnsmsg.rrsig(name, 10, A)] if message.do else [])
            edns = opt(flags=dnsmsg.DO) if message.do else None
            return reply(message, answer=records, edns=edns)

        self.upstream.on(name, A, signed)
        for _ in range(2):
            host.ask(query(name, edns=opt(flags=dnsmsg.DO)))
        time.sleep(5.3)
        answer = host.ask(query(name))
        self.assertEqual(self.upstream.asked(name), 2)
        self.assertTrue(self.upstream.queries(name)[-1].do)
        self.assertEqual(answer.types(), [A])
        self.assertEqual(answer.opts, [])
        answer = host.ask(query(name, edns=opt(flags=dnsmsg.DO)))
        self.assertEqual(answer.types(), [A, dnsmsg.RRSIG])
        self.assertGreater(answer.answer[0].ttl, 5)
        self.assertEqual(self.upstream.asked(name), 2)


if __name__ == "__main__":
    loader.main()
