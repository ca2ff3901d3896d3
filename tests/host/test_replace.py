# SPDX-License-Identifier: MIT
"""Real dnsdist: a configuration written for its own cache, with one line added at its top."""
import time

import harness
import loader
from cases import DnsdistTest
from dnsmsg import A, REFUSED, a, query

LINE = "require('sardine').replace()\n"
STOCK = """
pc = newPacketCache(10000, {maxTTL=86400, minTTL=0, temporaryFailureTTL=2, staleTTL=60, dontAge=false})
getPool(''):setCache(pc)
"""


class Replace(DnsdistTest):
    def expect_cache(self, host, name, queries=(False, True)):
        """Ours, for dnsdist's own does not share between UDP and TCP."""
        for tcp in queries:
            host.ask(query(name), tcp)
        self.assertEqual(self.upstream.asked(name), 1, name)

    def test_one_line_at_the_top(self):
        for line, asked in (("", 2), (LINE, 1)):
            host = self.start(line + STOCK)
            name = f"asked{asked}.example"
            self.serve(name)
            for tcp in (False, True, False, True):
                self.assertEqual(len(host.ask(query(name), tcp).answer), 1)
            self.assertEqual(self.upstream.asked(name), asked)
            self.assertEqual(host.console("pc:toString()"), f"{asked}/10000")
            self.assertEqual(host.console("getPool(''):getCache():toString()"), f"{asked}/10000")

    def test_rules_in_any_order(self):
        host = self.start(
            LINE + "addAction('before.example.', SpoofAction('192.0.2.200'))\n"
            "addAction('skip-before.example.', SetSkipCacheAction())\n" + STOCK + "addAction('after.example.',"
            " SpoofAction('192.0.2.200'))\n"
            "addAction('skip-after.example.', SetSkipCacheAction())\n"
            "addResponseAction('skip-response.example.', SetSkipCacheResponseAction())\n"
        )
        self.serve("a.example", "a.skip-before.example", "a.skip-after.example", "a.skip-response.example")
        self.expect_cache(host, "a.example")
        for name in ("a.before.example", "a.after.example"):
            self.assertEqual(self.expect_upstream(host, name, 0).answer[0].data[-1], 200)
        for name in ("a.skip-before.example", "a.skip-after.example", "a.skip-response.example"):
            self.expect_upstream(host, name, 3)

    def test_several_pools(self):
        host = self.start(
            LINE + "for _, pool in ipairs({'p', 'q', 'r', 'none'}) do server:addPool(pool) end\n"
            "addAction('p.example.', PoolAction('p'))\n" + STOCK + "getPool('p'):setCache(pc)\n"
            "other = newPacketCache(500)\n"
            "getPool('q'):setCache(other)\n"
            "addAction('q.example.', PoolAction('q'))\n"
            "addAction('r.example.', PoolAction('r'))\n"
            "addAction('none.example.', PoolAction('none'))\n"
            "getPool('r'):setCache(getPool('q'):getCache())\n"
        )
        self.serve("a.example", "a.p.example", "a.q.example", "a.r.example", "a.none.example")
        for name in ("a.example", "a.p.example", "a.q.example", "a.r.example"):
            self.expect_cache(host, name)
        self.expect_upstream(host, "a.none.example", 3)
        self.assertEqual(host.console("pc:toString() .. ' ' .. other:toString()"), "2/10000 2/500")

    def test_at_run_time(self):
        host = self.start(LINE + STOCK)
        self.serve("a.example")
        self.expect_upstream(host, "a.example", 1)
        host.console("getPool(''):unsetCache()")
        self.expect_upstream(host, "a.example", 3)
        host.console("getPool(''):setCache(pc)")
        self.expect_upstream(host, "a.example", 0)
        host.console("getPool(''):setCache(newPacketCache(77)) collectgarbage()")
        self.expect_upstream(host, "a.example", 1)
        self.assertEqual(host.console("getPool(''):getCache():toString()"), "1/77")
        host.console("getPool(''):getCache():expunge(0)")
        self.expect_upstream(host, "a.example", 1)

    def test_dnsdists_own_caches_and_methods_stay(self):
        host = self.start(
            "own = newPacketCache(123)\n" + LINE + STOCK + "getPool('p'):setCache(own)\n"
            "server:addPool('p')\naddAction('p.example.', PoolAction('p'))\n"
        )
        self.serve("a.p.example", "a.example")
        self.expect_upstream(host, "a.p.example", 1)
        self.expect_upstream(host, "a.p.example", 1, tcp=True)
        self.assertEqual(host.console("getPool('p'):getCache():toString()"), "2/123")
        self.assertEqual(host.console("tostring(getPool('p'):getECS())"), "false")
        # ours takes the place of its own, and the other way round
        host.console("getPool('p'):setCache(pc)")
        self.expect_upstream(host, "a.p.example", 1)
        self.expect_upstream(host, "a.p.example", 0, tcp=True)
        host.console("getPool(''):setCache(own)")
        self.expect_upstream(host, "a.example", 1)
        self.assertEqual(host.console("own:toString() .. ' ' .. pc:toString()"), "3/123 1/10000")

    def test_stale_settings_in_any_order(self):
        for config in ("setStaleCacheEntriesTTL(600)\n" + STOCK, STOCK + "setStaleCacheEntriesTTL(600)\n"):
            host = self.start(LINE + config)
            name = f"n{len(self.upstream.log)}.example"
            self.serve(name, ttl=1)
            host.ask(query(name))
            time.sleep(1.2)
            host.console("server:setDown()")
            self.assertEqual(host.ask(query(name)).answer[0].ttl, 1)

    def test_rules_that_choose_a_pool_and_go_on(self):
        other = harness.Upstream()
        self.addCleanup(other.close)
        host = self.start(
            LINE + f"newServer{{address='127.0.0.1:{other.port}', pool={{'p', 'q'}}}}:setUp()\n"
            "addAction('go-on.example.', ContinueAction(PoolAction('p')))\n"
            "addAction('stop-false.example.', PoolAction('p', false))\n"
            "addAction('allowed.go-on.example.', AllowAction())\n"
            "addAction('again.go-on.example.', PoolAction('q'))\n"
            "addAction('default.go-on.example.', PoolAction(''))\n"
            "addAction('spoof.go-on.example.', SpoofAction('192.0.2.200'))\n"
            "addAction('allow.example.', ContinueAction(AllowAction()))\n" + STOCK + "cache_p = newPacketCache(100)\n"
            "getPool('p'):setCache(cache_p)\n"
        )
        names = ("a.go-on.example", "a.stop-false.example", "allowed.go-on.example", "again.go-on.example")
        for name in names:
            other.on(name, A, [a(name, 300, "192.0.2.9")])
        self.serve("default.go-on.example", "a.allow.example")
        for name in names:
            for tcp in (False, True):
                self.assertEqual(host.ask(query(name), tcp).answer[0].data[-1], 9, name)
            self.assertEqual(other.asked(name), 2 if name.startswith("again") else 1, name)
        for name in ("default.go-on.example", "a.allow.example"):
            self.expect_cache(host, name)
        self.assertEqual(self.expect_upstream(host, "spoof.go-on.example", 0).answer[0].data[-1], 200)
        self.assertEqual(host.console("pc:toString() .. ' ' .. cache_p:toString()"), "2/10000 3/100")

    def test_yaml_configuration(self):
        host = self.start_yaml(
            LINE + STOCK + "addAction('lua.example.', RCodeAction(5))\n",
            "query_rules:\n  - name: 'from yaml'\n    selector:\n      type: 'TCP'\n      tcp: true\n"
            "    action:\n      type: 'RCode'\n      rcode: 'Refused'\n",
        )
        self.serve("a.example")
        self.expect_upstream(host, "a.example", 1)
        self.assertEqual(host.ask(query("a.lua.example")).rcode, REFUSED)
        for _ in harness.looks(harness.TIMEOUT):
            if host.ask(query("a.example"), tcp=True).rcode == REFUSED:
                break
        self.assertEqual(host.ask(query("a.example"), tcp=True).rcode, REFUSED)
        self.expect_upstream(host, "a.example", 0)

    def test_qps_pool_action(self):
        other = harness.Upstream()
        self.addCleanup(other.close)
        host = self.start(
            LINE + f"newServer{{address='127.0.0.1:{other.port}', pool='p'}}:setUp()\n"
            "addAction('none.example.', QPSPoolAction(0, 'p'))\n"
            "addAction('some.example.', QPSPoolAction(5, 'p'))\n"
            "addAction('go-on.example.', QPSPoolAction(1000, 'p', false))\n"
            "addAction('continue.example.', ContinueAction(QPSPoolAction(1000, 'p')))\n" + STOCK + "getPool('p'):setCache(pc)"
        )
        names = ("a.none.example", "a.go-on.example", "a.continue.example")
        for name in names:
            other.on(name, A, [a(name, 300, "192.0.2.9")])
            self.serve(name)
            for tcp in (False, True):
                expected = 1 if name == "a.none.example" else 9
                self.assertEqual(host.ask(query(name), tcp).answer[0].data[-1], expected, name)
            self.assertEqual(other.asked(name) + self.upstream.asked(name), 1)
        # different names, so that every one of them goes to a backend
        many = [f"n{n}.some.example" for n in range(200)]
        started = time.monotonic()
        for name in many:
            other.on(name, A, [a(name, 300, "192.0.2.9")])
            self.serve(name)
            host.ask(query(name))
        lasted = time.monotonic() - started
        limited = sum(other.asked(name) for name in many)
        self.assertGreaterEqual(limited, 5)
        self.assertLessEqual(limited, 6 + 5 * lasted)
        self.assertEqual(limited + sum(self.upstream.asked(name) for name in many), 200)

    def test_what_cannot_work_is_said_at_once(self):
        host = self.start(LINE + STOCK)
        names = ("addCacheMissAction", "setCacheMissRules")
        known = [name for name in names if host.console(f"tostring({name})") != "nil"]
        if not known:
            self.skipTest("this dnsdist is older than what cannot work")
        for name in known:
            self.assertIn("does not work with sardine", host.console(f"{name}(AllRule(), DropAction())"))


if __name__ == "__main__":
    loader.main()
