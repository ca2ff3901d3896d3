# SPDX-License-Identifier: MIT
"""Real dnsdist: nothing of its own cache is lost. Its options, methods and rules, as far as no other test shows them."""
import os
import time

import dnsmsg
import harness
import loader
from cases import CACHE, DnsdistTest
from dnsmsg import A, NXDOMAIN, SERVFAIL, a, opt, query, reply

LINE = "require('sardine').replace()\n"
STOCK = "pc = newPacketCache(10000)\ngetPool(''):setCache(pc)\n"


class Complete(DnsdistTest):
    def has(self, host, name):
        return host.console(f"tostring({name})") != "nil"

    def fail(self, name):
        self.upstream.on(name, A, lambda m, _: reply(m, rcode=SERVFAIL))


class Methods(Complete):
    def test_methods_and_fields_of_its_own_cache(self):
        host = self.start("own = newPacketCache(10)\n" + LINE + STOCK)
        missing = host.console(
            "local names, stats = {}, pc:getStats()"
            " for name in pairs(own:getStats()) do if stats[name] == nil then table.insert(names, name) end end"
            " for _, name in ipairs{'dump', 'expunge', 'expungeByName', 'getAddressListByDomain', 'getDomainListByAddress',"
            " 'getStats', 'isFull', 'printStats', 'purgeExpired', 'toString'} do"
            " if not pcall(function() return pc[name] end) then table.insert(names, name) end end"
            " return 'missing: ' .. table.concat(names, ' ')"
        )
        self.assertEqual(missing, "missing:")

    def test_full(self):
        host = self.start(CACHE.replace("10000", "100"))
        self.assertEqual(host.console("tostring(pc:isFull())"), "false")
        names = [f"n{n}.example" for n in range(400)]
        self.serve(*names)
        for name in names:
            host.ask(query(name))
        self.assertEqual(host.console("pc:toString() .. ' ' .. tostring(pc:isFull())"), "100/100 true")
        self.expect_upstream(host, names[-1], 0)

    def test_removal_by_number(self):
        host = self.start(CACHE)
        short, long = [f"s{n}.example" for n in range(5)], [f"l{n}.example" for n in range(7)]
        self.serve(*short, ttl=1)
        self.serve(*long)
        for name in short + long:
            host.ask(query(name))
        time.sleep(1.2)
        self.assertEqual(host.console("pc:purgeExpired(10)"), "2")
        self.assertEqual(host.console("pc:purgeExpired(0)"), "3")
        self.assertEqual(host.console("pc:toString()"), "7/10000")
        self.assertEqual(host.console("pc:expunge(4)"), "3")
        self.assertEqual(host.console("pc:expunge(0)"), "4")
        self.assertEqual(host.console("pc:toString()"), "0/10000")


class Options(Complete):
    def b30_min_ttl(self):
        host = self.start(CACHE.replace("{", "{minTTL=10, "))
        self.serve("short.example", ttl=9)
        self.serve("long.example", ttl=10)
        self.expect_upstream(host, "short.example", 3)
        self.expect_upstream(host, "long.example", 1)
        self.assertIn('"ttlTooShorts": 3', host.console("pc:getStats()"))

    @harness.timely(5)
    def b33_max_negative_ttl(self):
        host = self.start(CACHE.replace("{", "{maxNegativeTTL=3, "))
        negative = lambda m, _: reply(m, authority=[dnsmsg.soa("example", 600, 600)], rcode=NXDOMAIN)
        self.upstream.on("no.example", A, negative)
        self.serve("yes.example")
        self.expect_upstream(host, "no.example", 1)
        self.expect_upstream(host, "yes.example", 1)
        time.sleep(3.2)
        self.expect_upstream(host, "no.example", 1, queries=1)
        self.expect_upstream(host, "yes.example", 0)

    def b30_failures_are_not_kept_with_a_ttl_of_zero(self):
        host = self.start(CACHE.replace("temporaryFailureTTL=2", "temporaryFailureTTL=0"))
        self.fail("a.example")
        self.expect_upstream(host, "a.example", 3)

    def b10_cookies_split_if_wanted(self):
        host = self.start(CACHE.replace("{", "{cookieHashing=true, "))
        self.serve("a.example")
        for cookie in (b"12345678", b"87654321", b"12345678"):
            host.ask(query("a.example", edns=opt(options=[(dnsmsg.COOKIE, cookie)])))
        self.assertEqual(self.upstream.asked("a.example"), 2)

    def b91_what_has_no_effect_is_said_once(self):
        status, text = harness.check_config(
            LINE + "for _ = 1, 2 do newPacketCache(100, {numberOfShards=10, deferrableInsertLock=false, parseECS=true,"
            " keepStaleData=true, skipOptions={10, 12}, payloadRanks={512, 1232}}) end\n"
        )
        self.assertEqual(status, 0, text)
        for option in ("numberOfShards", "deferrableInsertLock", "parseECS", "keepStaleData", "skipOptions", "payloadRanks"):
            self.assertEqual(text.count(f"option {option} has no effect"), 1, option)


class Around(Complete):
    def test_fields_of_lua_actions(self):
        host = self.start(
            CACHE + "addAction('skip.example.', LuaAction(function(dq) dq.skipCache = true return DNSAction.None end))\n"
            "addAction('off.example.', LuaAction(function(dq) dq.tempFailureTTL = 0 return DNSAction.None end))\n"
        )
        self.serve("a.skip.example", "a.example")
        self.fail("a.off.example")
        self.expect_upstream(host, "a.skip.example", 3)
        self.expect_upstream(host, "a.off.example", 3)
        self.expect_upstream(host, "a.example", 1)

    def b89_ttls_changed_before_and_after_the_cache(self):
        host = self.start(
            CACHE + "if SetMaxTTLResponseAction then\n"
            "addResponseAction('max.example.', SetMaxTTLResponseAction(50))\n"
            "addResponseAction('min.example.', SetMinTTLResponseAction(500))\n"
            "addResponseAction('limit.example.', LimitTTLResponseAction(20, 60))\n"
            "addResponseAction('reduced.example.', SetReducedTTLResponseAction(50))\n"
            "addResponseAction('returned.example.', SetMaxReturnedTTLResponseAction(40))\n"
            "end\n"
        )
        if not self.has(host, "SetMaxTTLResponseAction"):
            self.skipTest("this dnsdist has no such actions")
        # what is kept, as a query sees it that no rule changes; the last one is capped after it was kept
        for name, first, later in (("a.max.example", 50, 50), ("a.min.example", 500, 500), ("a.limit.example", 60, 60),
                                   ("a.reduced.example", 150, 150), ("a.returned.example", 40, 300)):
            self.serve(name)
            started = time.monotonic()
            answers = [host.ask(query(name)) for _ in range(2)]
            passed = int(time.monotonic() - started) + 1
            self.assertEqual(self.upstream.asked(name), 1)
            self.assertEqual(answers[0].answer[0].ttl, first, name)
            self.assertIn(answers[1].answer[0].ttl, range(later - passed, later + 1), name)

    def test_rules_for_what_was_kept(self):
        host = self.start(
            LINE + "if addCacheInsertedResponseAction then\n"
            "addCacheInsertedResponseAction('drop.example.', DropResponseAction(), {name='drop kept'})\n"
            "addCacheInsertedResponseAction('cap.example.', SetMaxReturnedTTLResponseAction(5))\n"
            "end\n" + STOCK + "addResponseAction('not.drop.example.', SetSkipCacheResponseAction())\n"
        )
        if not self.has(host, "addCacheInsertedResponseAction"):
            self.skipTest("this dnsdist has no such rules")
        self.serve("a.drop.example", "b.drop.example", "c.drop.example", "not.drop.example", "a.cap.example", "late.example")
        self.expect_silence(host, query("a.drop.example"))
        self.expect_upstream(host, "a.drop.example", 0)  # it was kept, and a hit does not meet the rule
        self.expect_upstream(host, "not.drop.example", 3)
        self.assertEqual(host.ask(query("a.cap.example")).answer[0].ttl, 5)
        self.assertGreater(host.ask(query("a.cap.example")).answer[0].ttl, 200)
        # in any order with other rules, and at run time
        host.console("addResponseAction('b.drop.example.', SetSkipCacheResponseAction())")
        self.expect_upstream(host, "b.drop.example", 3)
        host.console("addCacheInsertedResponseAction('late.example.', DropResponseAction())")
        self.expect_silence(host, query("late.example"))
        host.console("rmCacheInsertedResponseRule('drop kept')")
        self.expect_upstream(host, "c.drop.example", 1)

    def test_emptied_chains_keep_what_the_cache_needs(self):
        host = self.start(
            LINE + "setStaleCacheEntriesTTL(600)\n" + STOCK + "addResponseAction('skip.example.', SetSkipCacheResponseAction())\n"
            "addSelfAnsweredResponseAction(AllRule(), DropResponseAction())\n"
            "addAction('spoof.example.', SpoofAction('192.0.2.200'))\n"
        )
        if not self.has(host, "clearResponseRules"):
            self.skipTest("this dnsdist empties no chain of response rules")
        self.serve("a.skip.example", "a.example")
        self.expect_upstream(host, "a.skip.example", 2, queries=2)
        self.expect_silence(host, query("a.spoof.example"))
        host.console("clearResponseRules() clearSelfAnsweredResponseRules()")
        self.expect_upstream(host, "a.skip.example", 1)
        self.assertEqual(host.ask(query("a.spoof.example")).answer[0].data[-1], 200)
        self.serve("short.example", ttl=1)
        host.ask(query("short.example"))
        time.sleep(1.2)
        host.console("server:setDown()")
        self.assertEqual(len(host.ask(query("short.example")).answer), 1)
        self.expect_silence(host, query("other.example"))

    def test_settings_of_pools_and_cleaning(self):
        host = self.start(
            LINE + "setCacheCleaningDelay(30)\nsetCacheCleaningPercentage(50)\n" + STOCK + "getPool(''):setECS(true)\n"
            "if pcall(function() return getPool('').setZeroScope end) and getPool('').setZeroScope then"
            " getPool(''):setZeroScope(false) end\n",
            server="useClientSubnet=true, disableZeroScope=true",
        )
        self.assertEqual(host.console("tostring(getPool(''):getECS())"), "true")
        self.serve("a.example")
        self.expect_upstream(host, "a.example", 1)
        host.console("server:setDown()")
        self.expect_upstream(host, "a.example", 0)


class Yaml(Complete):
    def test_stale_data_while_no_backend_is_up(self):
        host = self.start_yaml(LINE + "getPool(''):setCache(newPacketCache(1000, {staleWindow=600}))\n")
        self.serve("a.example", ttl=1)
        host.ask(query("a.example"))
        time.sleep(1.2)
        host.console("getServer(0):setDown()")
        self.assertEqual(len(host.ask(query("a.example")).answer), 1)
        self.expect_silence(host, query("other.example"))


if __name__ == "__main__":
    loader.main()
