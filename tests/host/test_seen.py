# SPDX-License-Identifier: MIT
"""Real dnsdist: what an operator sees of the cache: metrics, page, dump, options, explanations."""
import base64
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

import dnsmsg
import harness
import loader
from cases import CACHE, DnsdistTest
from dnsmsg import A, a, opt, query, reply

AAAA, TXT = 28, 16
PASSWORD, KEY = "secret", "api-key"
SOURCE = pathlib.Path(__file__).resolve().parents[2]

SAMPLE = re.compile(r'^(sardine_\w+)(\{((?:\w+="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (\S+)$')


def parse_metrics(text):
    """Prometheus' text format, strictly: {name: {labels: value}}; every family is described once, before its samples,
    which stand together."""
    assert text.endswith("\n")
    families, kinds, current = {}, {}, None
    for line in text.splitlines():
        if line.startswith("# HELP "):
            _, _, name, _ = line.split(" ", 3)
            assert name not in families, line
            current, families[name] = name, {}
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == current and not families[name] and kind in ("counter", "gauge"), line
            assert name.endswith("_total") == (kind == "counter"), line
            kinds[name] = kind
        else:
            found = SAMPLE.match(line)
            assert found, line
            assert found[1] == current, line
            labels = tuple(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', found[3] or ""))
            assert labels not in families[current], line
            families[current][labels] = float(found[4])
    assert set(kinds) == set(families)
    return families


SKIPPING = CACHE + "addAction('skip.example.', SetSkipCacheAction())"


class Seen(DnsdistTest):
    def start_web(self, config=SKIPPING, **more):
        """With the version's own web server, or with sardine-web where that one must not run Lua."""
        self.web = harness.free_port()
        if harness.dnsdist_version() < (1, 9, 5):
            host = self.start(config, **more)
            folder = pathlib.Path(host.folder)
            (folder / "password").write_text(PASSWORD + "\n", encoding="utf-8")
            lines = pathlib.Path(host.config_file).read_text(encoding="utf-8").splitlines()
            console = [line for line in lines if line.startswith(("controlSocket(", "setKey("))]
            (folder / "console").write_text("\n".join(console), encoding="utf-8")
            server = subprocess.Popen(  # pylint: disable=consider-using-with
                [SOURCE / "lua" / "sardine-web", "-C", folder / "console", "-l", f"127.0.0.1:{self.web}", "-p", folder / "password"],
                env={**os.environ, **host.environment},
            )
            self.addCleanup(server.wait, harness.TIMEOUT)
            self.addCleanup(server.terminate)
        else:
            host = self.start(
                config + f"\nwebserver('127.0.0.1:{self.web}')\n"
                f"setWebserverConfig({{password='{PASSWORD}', apiKey='{KEY}', acl='127.0.0.0/8'}})\n"
                "require('sardine').web()\n",
                **more,
            )
        host.wait_until_it_listens(self.web)
        return host

    def get(self, path, password=PASSWORD, method="GET", key=None):
        request = urllib.request.Request(f"http://127.0.0.1:{self.web}{path}", method=method)
        if password:
            credentials = base64.b64encode(f"x:{password}".encode()).decode()
            request.add_header("Authorization", "Basic " + credentials)
        if key:
            request.add_header("X-API-Key", key)
        with urllib.request.urlopen(request, timeout=harness.TIMEOUT) as response:
            return response.headers, response.read().decode("utf-8")

    def metrics(self):
        headers, text = self.get("/sardine/metrics")
        self.assertEqual(headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
        return parse_metrics(text)

    def wait_for_survey(self, entries):
        """Counted in the background, at most every ten seconds."""
        for _ in harness.looks(2 * harness.TIMEOUT):
            _, text = self.get("/sardine/data")
            (cache,) = json.loads(text)["caches"]
            if cache["survey"] and cache["survey"]["all"]["entries"] == entries:
                return cache
        raise AssertionError(f"no survey of {entries} entries: {text}")

    def fill(self, host):
        """A known mix: 3 entries, one of them NXDOMAIN; 5 hits, 5 misses, 2 bypassed; 2 refused."""
        self.serve("a.x.example", "b.x.example", "a.skip.example")
        self.upstream.on("zero.example", A, [a("zero.example", 0)])
        negative = lambda m, _: reply(m, authority=[dnsmsg.soa("example", 60, 60)], rcode=dnsmsg.NXDOMAIN)
        self.upstream.on("no.example", TXT, negative)
        for n in range(3):
            host.ask(query("a.x.example"), tcp=n == 1)
            host.ask(query("b.x.example"))
        for _ in range(2):
            host.ask(query("zero.example"))
            host.ask(query("no.example", TXT))
            host.ask(query("a.skip.example"))

    def test_a_snapshot_is_seen(self):
        with tempfile.TemporaryDirectory() as folder:
            host = self.start_web(CACHE.replace("{", f"{{snapshot='{folder}/cache', snapshotInterval=0, ", 1))
            self.fill(host)
            self.assertEqual(self.metrics()["sardine_snapshot_saves_total"], {(("cache", "default"),): 0})
            self.assertNotIn("sardine_snapshot_age_seconds", self.metrics())
            host.console("pc:save()")
            for _ in harness.looks(harness.TIMEOUT):
                if "sardine_snapshot_age_seconds" in self.metrics():
                    break
            metrics = self.metrics()
            self.assertEqual(metrics["sardine_snapshot_entries"], {(("cache", "default"),): 4})
            self.assertEqual(metrics["sardine_snapshot_bytes"][("cache", "default"),], os.path.getsize(f"{folder}/cache"))
            self.assertEqual(metrics["sardine_snapshot_failures_total"], {(("cache", "default"),): 0})
            (cache,) = json.loads(self.get("/sardine/data")[1])["caches"]
            self.assertRegex(cache["snapshot"]["text"], r"^saved \d+ s ago, 4 entries, \d+ bytes$")
            self.assertFalse(cache["snapshot"]["failing"])
            host.stop()

    def b74_metrics_add_up(self):
        host = self.start_web()
        self.fill(host)
        metrics = self.metrics()
        lookups = {dict(labels)["outcome"]: n for labels, n in metrics["sardine_lookups_total"].items()}
        expected = {"hit": 5, "stale": 0, "refresh": 0, "miss": 5, "bypass": 2, "cache_only_miss": 0, "wait": 0}
        self.assertEqual(lookups, expected)
        inserts = {dict(labels)["outcome"]: n for labels, n in metrics["sardine_inserts_total"].items()}
        self.assertEqual(inserts, {"stored": 3, "replaced": 0, "refreshed": 0, "refused": 2})
        for name, total, reason in (("bypassed", 2, "host"), ("refused", 2, "ttl_zero")):
            samples = metrics[f"sardine_{name}_total"]
            self.assertEqual(sum(samples.values()), total)
            self.assertEqual(samples[("cache", "default"), ("reason", reason)], total)
        self.assertEqual(metrics["sardine_entries"], {(("cache", "default"),): 3})
        self.assertIn('"lookups": 12', host.console("pc:getStats()"))

    def b74_the_survey_adds_up(self):
        host = self.start_web()
        self.fill(host)
        cache = self.wait_for_survey(3)
        survey = cache["survey"]
        self.assertEqual([(t["label"], t["entries"]) for t in survey["types"]], [("A", 2), ("TXT", 1)])
        self.assertEqual({r["label"]: r["entries"] for r in survey["rcodes"]}, {"NOERROR": 2, "NXDOMAIN": 1})
        for part in ("types", "rcodes", "lives"):
            self.assertEqual(sum(one["entries"] for one in survey[part]), 3)
            self.assertEqual(sum(one["bytes"] for one in survey[part]), survey["all"]["bytes"])
        metrics = self.metrics()
        self.assertEqual(metrics["sardine_type_entries"][("cache", "default"), ("type", "A")], 2)
        self.assertEqual(metrics["sardine_ttl_left_entries"][("cache", "default"), ("le", "+Inf")], 3)
        self.assertIn("a.x.example.", [row[3] for row in cache["top"]])
        self.assertEqual({row[1] for row in cache["refused"]}, {"ttl_zero"})
        self.assertEqual(cache["stats"]["entries"], 3)
        # a point was taken at the start, another one comes within the step
        for _ in harness.looks(2 * harness.TIMEOUT):
            if len(cache["history"]) >= 2:
                break
            cache = json.loads(self.get("/sardine/data")[1])["caches"][0]
        first, last = cache["history"][0], cache["history"][-1]
        self.assertGreater(last[0], first[0])
        columns = json.loads(self.get("/sardine/data")[1])["columns"]
        self.assertEqual(last[columns.index("hits")], cache["stats"]["hits"])
        since = json.loads(self.get(f"/sardine/data?since={last[0]}")[1])["caches"][0]["history"]
        self.assertNotIn(last, since)

    @unittest.skipIf("SARDINE_PRELOAD" in os.environ, "a sanitizer's dlopen() does not keep two Luas apart")
    def test_the_policys_hooks_are_counted(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "policy.lua"
            path.write_text("return { key = function(q) if q.qtype == 28 then error('six') end end }", encoding="utf-8")
            host = self.start_web(CACHE.replace("{", f"{{policy='{path}', ", 1))
            self.serve("a.x.example")
            for kind in (A, A, AAAA):
                host.ask(query("a.x.example", kind))
            self.assertIn("policy loaded", host.console("pc:reloadPolicy()"))
        metrics = self.metrics()
        labels = (("cache", "default"), ("hook", "key"))
        self.assertEqual(metrics["sardine_policy_calls_total"][labels], 3)
        self.assertEqual(metrics["sardine_policy_errors_total"][labels], 1)
        self.assertEqual(sum(metrics["sardine_policy_errors_total"].values()), 1)
        loads = {dict(labels)["outcome"]: n for labels, n in metrics["sardine_policy_loads_total"].items()}
        self.assertEqual(loads, {"loaded": 2, "failed": 0})
        (cache,) = json.loads(self.get("/sardine/data")[1])["caches"]
        rows = {row["label"]: row["n"] for row in cache["policy"]}
        self.assertEqual(rows, {"loaded": 2, "did not load": 0, "key: calls": 3, "key: errors": 1})

    def test_the_page_is_guarded_and_self_contained(self):
        self.start_web()
        for path in ("/sardine", "/sardine/data", "/sardine/metrics", "/sardine/page.js"):
            with self.assertRaises(urllib.error.HTTPError) as refused:
                self.get(path, password="wrong")
            refused.exception.close()
            self.assertEqual(refused.exception.code, 401)
            headers, text = self.get(path)
            self.assertIn("default-src 'self'", headers["Content-Security-Policy"])
            self.assertNotIn("{{", text)
            self.assertEqual([url for url in re.findall(r"https?://[^\s'\"]+", text) if "www.w3.org/2000/svg" not in url], [])
        headers, text = self.get("/sardine")
        self.assertEqual(headers["Content-Type"], "text/html; charset=utf-8")
        self.assertIn('<script src="/sardine/page.js">', text)

    def test_old_versions_do_not_run_lua_for_the_web(self):
        """Their web server and everything else use one Lua state at the same time: that ended dnsdist within minutes."""
        if harness.dnsdist_version() >= (1, 9, 5):
            self.skipTest("this dnsdist's web server is safe")
        host = self.start(CACHE)
        self.assertIn("serve the page with sardine-web", host.console("require('sardine').web()"))
        self.assertIn("must be like", host.console("require('sardine').webContent('sardine', '', 0)"))
        self.assertEqual(host.console("tostring(require('sardine').webContent('/sardine', '/none', 0))"), "nil")

    def test_the_data_is_whole_each_time(self):
        host = self.start_web()
        self.fill(host)
        shapes = set()
        for _ in range(100 if harness.dnsdist_version() < (1, 9, 5) else 3000):
            said = json.loads(self.get("/sardine/data")[1])
            shapes.add((tuple(sorted(said)), tuple(sorted(said["caches"][0])), tuple(sorted(said["caches"][0]["stats"]))))
        self.assertEqual(len(shapes), 1)

    def test_several_caches(self):
        host = self.start_web(
            CACHE + "other = sardine.newPacketCache(77, {name='odd.name'})\n"
            "sardine.attach(other, 'p')\nsardine.attach(other, 'say \"q\\\\\"')\n"
        )
        metrics = self.metrics()
        self.assertEqual(metrics["sardine_max_entries"], {(("cache", "default"),): 10000, (("cache", "odd.name"),): 77})
        pools = [dict(labels) for labels in metrics["sardine_pool_info"]]
        self.assertIn({"cache": "odd.name", "pool": r'say \"q\\\"'}, pools)
        self.assertEqual(len(json.loads(self.get("/sardine/data")[1])["caches"]), 2)
        host.console("local s = require('sardine') s.detach() s.detach('p') s.detach('say \"q\\\\\"')")
        self.assertEqual(json.loads(self.get("/sardine/data")[1])["caches"], [])
        self.assertNotIn("sardine_entries", self.metrics())

    def b77_names_are_removed_over_http(self):
        host = self.start_web()
        self.serve("a.x.example", "b.x.example", "badx.example")
        for name in ("a.x.example", "b.x.example", "badx.example"):
            host.ask(query(name))
        remove = lambda path: json.loads(self.get("/api/v1/cache" + path, None, "DELETE", KEY)[1])
        try:
            self.assertEqual(remove("?pool=&name=a.x.example&type=AAAA"), {"purged": "0"})
        except urllib.error.HTTPError as error:
            error.close()
            if error.code in (405, 501):
                self.skipTest("this dnsdist's web server lets nothing be deleted")
            raise
        self.assertEqual(remove("?pool=&name=a.x.example&type=A"), {"purged": "1"})
        self.assertEqual(remove("?pool=&name=x.example&suffix="), {"purged": "1"})
        self.expect_upstream(host, "badx.example", 0)
        for path, code in (("?pool=none&name=a", 404), ("?pool=", 400), ("?pool=&name=a..b", 400)):
            with self.assertRaises(urllib.error.HTTPError) as refused:
                remove(path)
            refused.exception.close()
            self.assertEqual(refused.exception.code, code, path)
        with self.assertRaises(urllib.error.HTTPError) as refused:
            self.get("/api/v1/cache?pool=&name=a", PASSWORD, "DELETE")
        refused.exception.close()
        self.assertEqual(refused.exception.code, 401)

    def test_every_metric_of_the_dashboard_exists(self):
        host = self.start_web()
        self.fill(host)
        self.wait_for_survey(3)
        known = set(self.metrics())
        dashboard = json.loads((SOURCE / "lua" / "grafana" / "sardine.json").read_text(encoding="utf-8"))
        expressions = re.findall(r"sardine_\w+", json.dumps(dashboard))
        self.assertGreater(len(set(expressions)), 8)
        self.assertEqual(set(expressions) - known, set())
        targets = [t["expr"] for panel in dashboard["panels"] for t in panel.get("targets", [])]
        for expression in targets:
            for name in re.findall(r"(sardine_\w+)", expression):
                if name.endswith("_total"):
                    self.assertRegex(expression, rf"(rate|increase)\({name}", expression)


class Dump(DnsdistTest):
    def dump(self, host, filters):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "dump")
            said = host.console(f"pc:dump('{path}', {{{filters}}})")
            self.assertRegex(said, r"^Dumped \d+ records$")
            with open(path, encoding="ascii") as file:
                entries = [json.loads(line) for line in file]
            self.assertEqual(said, f"Dumped {len(entries)} records")
            return sorted(entries, key=lambda entry: (entry["name"], entry["type"]))

    def b76_json_lines_with_filters(self):
        host = self.start(CACHE.replace("{", "{staleWindow=600, "))
        self.serve("a.x.example", "b.x.example", "badx.example")
        self.upstream.on("a.x.example", TXT, [dnsmsg.txt("a.x.example", 300, "x" * 200)])
        self.upstream.on("short.x.example", A, [a("short.x.example", 1)])
        self.upstream.on("no.x.example", A, lambda m, _: reply(m, authority=[dnsmsg.soa("example", 60, 60)], rcode=3))
        for name in ("a.x.example", "b.x.example", "badx.example", "short.x.example", "no.x.example"):
            host.ask(query(name, flags=dnsmsg.RD | dnsmsg.CD if name[0] == "b" else dnsmsg.RD))
        asked = time.monotonic()
        host.ask(query("a.x.example", TXT, edns=opt(flags=dnsmsg.DO)))
        time.sleep(1.2)
        names = lambda filters: [entry["name"] for entry in self.dump(host, filters)]
        everything = ["a.x.example.", "a.x.example.", "b.x.example.", "badx.example.", "no.x.example.", "short.x.example."]
        self.assertEqual(names(""), everything)
        self.assertEqual(names("name='A.x.example'"), ["a.x.example."] * 2)
        self.assertEqual(names("suffix='x.example', type='TXT'"), ["a.x.example."])
        self.assertEqual(names("suffix='x.example', type=1"), ["a.x.example.", "b.x.example.", "no.x.example.", "short.x.example."])
        self.assertEqual(names("rcode=3"), ["no.x.example."])
        self.assertEqual(names("stale=true"), ["short.x.example."])
        self.assertEqual(names("stale=false, suffix='x.example', type='A'"), ["a.x.example.", "b.x.example.", "no.x.example."])
        self.assertEqual(names("minBytes=200"), ["a.x.example."])
        self.assertEqual(names("expiresWithin=60"), ["no.x.example."])
        self.assertEqual(names("tag='tenant'"), [])
        self.assertEqual(names("tag=''"), everything)
        self.assertEqual(len(names("max=2")), 2)
        self.assertEqual(names("minHits=7"), [])
        first, text = self.dump(host, "name='a.x.example', raw=true")
        self.assertEqual((first["type"], text["type"]), ("A", "TXT"))
        self.assertEqual((text["do"], text["rd"], text["cd"], text["rcode"], text["expired"]), (1, 1, 0, 0, 0))
        passed = int(time.monotonic() - asked) + 1
        self.assertIn(text["ttl"], range(300 - passed, 301))
        self.assertLessEqual(text["age"], passed)
        message = dnsmsg.Message(base64.b64decode(text["response"], validate=True))
        self.assertEqual((message.qname, message.types()), ("a.x.example", [TXT]))
        for wrong, expected in (("colour=1", "unknown filter colour"), ("rcode='x'", "must be a whole number"),
                                ("name='a', suffix='b'", "either name or suffix"), ("type='NONSENSE'", "is not a type"),
                                ("format='xml'", "only other format"), ("name='a..b'", "not a domain name")):
            self.assertIn(expected, host.console(f"pc:dump('/nowhere', {{{wrong}}})"), wrong)
        self.assertIn("No such file", host.console("pc:dump('/nowhere/at/all', {})"))

    def b76_size_top_and_refused(self):
        host = self.start(CACHE)
        host.console("pc:top()")
        self.serve("a.x.example", "b.x.example", "c.y.example")
        self.upstream.on("zero.example", A, [a("zero.example", 0)])
        for name in ("a.x.example", "b.x.example", "b.x.example", "b.x.example", "c.y.example", "zero.example", "zero.example"):
            host.ask(query(name))
        size = host.console("pc:size()")
        self.assertRegex(size, r"(?m)^all +3 +100\.0 %")
        self.assertRegex(size, r"(?m)^A +3 +100\.0 %")
        self.assertRegex(size, r"(?m)^x\.example\. +2 +66\.7 %")
        self.assertRegex(size, r"(?m)^y\.example\. +1 +33\.3 %")
        self.assertRegex(host.console("pc:size(1)"), r"(?m)^example\. +3 +100\.0 %")
        self.assertRegex(size, r"Memory in all: .* for 3 entries")
        top = host.console("pc:top()").splitlines()
        self.assertRegex(top[1], r"^ +3 +66\.7 % +A +b\.x\.example\.$")
        missing = host.console("pc:top(5, true)").splitlines()
        self.assertRegex(missing[1], r"^ +2 +A +zero\.example\.$")
        self.assertRegex(host.console("pc:refused()"), r"(?s)^ *\d+ s ago  A +zero\.example\.  \(ttl_zero: a TTL in it was 0\)\n.*zero")


class Options(DnsdistTest):
    # option, value given, what getOptions() says then, its default
    TABLE = (
        ("maxTTL", "3600", 3600, 86400),
        ("minTTL", "5", 5, 0),
        ("temporaryFailureTTL", "30", 30, 60),
        ("temporaryFailureTTL", "900", 300, 60),
        ("staleTTL", "60", 60, 30),
        ("dontAge", "true", True, False),
        ("maxNegativeTTL", "600", 600, 3600),
        ("cookieHashing", "true", True, False),
        ("maximumEntrySize", "4096", 4096, 65535),
        ("truncatedTTL", "2", 2, 0),
        ("shuffle", "true", True, False),
        ("maxBytes", "5000000", 5000000, 1024 * 10000),
        ("udpPayloadSize", "1400", 1400, 1232),
        ("splitOptions", "{65001, 65002}", "65001 65002", ""),
        ("alwaysDO", "true", True, False),
        ("staleWindow", "3600", 3600, 0),
        ("staleBackoff", "10", 10, 30),
        ("stalePositive", "true", True, False),
        ("refreshPercent", "10", 10, 0),
        ("capBySignature", "true", True, False),
        ("oneHitShare", "20", 20, 10),
        ("negativeShare", "30", 30, 25),
        ("staleShare", "30", 30, 25),
        ("keptShare", "40", 40, 50),
        ("policyWatch", "5", 5, 0),
        ("policyLibraries", "true", True, False),
        ("snapshotInterval", "60", 60, 600),
        ("name", "'x'", "x", None),
    )
    WITHOUT_EFFECT = {
        "numberOfShards": "10", "deferrableInsertLock": "false", "parseECS": "true", "keepStaleData": "true",
        "skipOptions": "{10, 12}", "payloadRanks": "{512, 1232}",
    }

    def b91_each_option_alone_and_its_effect(self):
        host = self.start("sardine = require 'sardine'")

        def values(options):
            text = host.console(
                f"local o = sardine.newPacketCache(10000, {{{options}}}):getOptions() local lines = {{}}"
                " for name, value in pairs(o) do table.insert(lines, name .. '=' .. tostring(value)) end"
                " collectgarbage() return table.concat(lines, '\\n')"
            )
            return dict(line.split("=", 1) for line in text.splitlines())

        lua = lambda value: str(value).lower() if isinstance(value, bool) else str(value)
        defaults = values("")
        for option, given, effective, default in self.TABLE:
            if default is not None:
                self.assertEqual(defaults[option], lua(default), option)
            expected = {**defaults, option: lua(effective)}
            if option == "cookieHashing":
                expected["splitOptions"] = "10"
            got = values(f"{option}={given}")
            if option != "name":
                expected["name"] = got["name"]  # the cache's number
            self.assertEqual(got, expected, option)
        for option, given in self.WITHOUT_EFFECT.items():
            self.assertEqual({**values(f"{option}={given}"), "name": ""}, {**defaults, "name": ""}, option)
            text = host.console(f"sardine.newPacketCache(10, {{{option}={given}}}):printOptions()")
            self.assertIn(f"Given, without effect: {option}", text)
        # No option is missing here.
        known = set(host.console("return table.concat(require('sardine').options(), ' ')").split())
        named = {option for option, *_ in self.TABLE} | set(self.WITHOUT_EFFECT)
        named |= {"policy", "snapshot"}  # those with a file have tests of their own
        self.assertEqual(known - named, set())

    def b91_the_effective_configuration_is_printed(self):
        host = self.start(CACHE + "setStaleCacheEntriesTTL(600)")
        text = host.console("pc:printOptions()")
        self.assertRegex(text, r"(?m)^\* temporaryFailureTTL  2 ")
        self.assertRegex(text, r"(?m)^  maxTTL +86400 ")
        self.assertRegex(text, r"(?m)^  maxEntries +10000 ")
        self.assertIn("while no backend is up (setStaleCacheEntriesTTL)", text)
        self.assertRegex(text, r"(?m)^  snapshot +none ")


class Explain(DnsdistTest):
    def setUp(self):
        super().setUp()
        self.host = self.start(CACHE.replace("{", "{staleWindow=600, splitOptions={65001}, "))

    def explain(self, arguments):
        return self.host.console(f"pc:explain({arguments})")

    def test_hits_and_misses(self):
        self.serve("a.example")
        self.assertRegex(self.explain("'a.example'"), r"^MISS\nThere is no answer to this question here")
        self.host.ask(query("a.example"))
        hit = self.explain("'A.example', 'A'")
        self.assertRegex(hit, r"^HIT\nThe answer here: NOERROR, 5 min left, life 5 min, \d+ bytes, popularity \d of 7, fetched without DO\.")
        self.assertRegex(hit, r"The reply has \d+ bytes\.$")
        self.assertRegex(self.explain("'a.example', 'A', {['do']=true}"), "^MISS\nThe answer was fetched without DO")
        self.assertRegex(self.explain("newDNSName('a.example'), 1, {cd=true}"), "^MISS\nAn answer is here for queries with RD=1 CD=0 only")
        self.assertRegex(self.explain("'a.example', 'A', {rd=false}"), "^MISS\nAn answer is here for queries with RD=1 CD=0 only")
        self.assertRegex(self.explain("'a.example', 'AAAA'"), "^MISS\nThere is no answer")
        self.assertRegex(self.explain("'a.example', 'A', {tag='tenant'}"), "^MISS\nAn answer is here under another tag")
        self.assertRegex(self.explain("'a.example', 'A', {skip=true}"), r"^BYPASS\n.*\(host\)\.$")
        self.assertRegex(self.explain("'a.example', 'AXFR'"), r"^BYPASS\n.*\(qtype\)\.$")
        # and it has left no trace: only the real query was counted
        self.assertIn('"lookups": 1,', self.host.console("pc:getStats()"))

    def test_expired_truncated_and_refused(self):
        self.upstream.on("short.example", A, [a("short.example", 1)])
        self.upstream.on("zero.example", A, [a("zero.example", 0)])
        self.upstream.on("big.example", TXT, [dnsmsg.txt("big.example", 300, "x" * 900)])
        self.host.ask(query("short.example"))
        self.host.ask(query("zero.example"))
        self.host.ask(query("big.example", TXT), tcp=True)
        time.sleep(1.2)
        self.assertRegex(self.explain("'short.example'"), r"^MISS\nThe answer has expired\. It would stand in if the backend failed")
        self.assertRegex(self.explain("'ZERO.example'"), r"^MISS\n.*\n.*\nA response was not kept \d+ s ago: a TTL in it was 0 \(ttl_zero\)\.$")
        self.assertRegex(self.explain("'big.example', 'TXT'"), r"The reply has \d+ bytes, cut to what the client takes \(TC\)\.$")
        self.assertRegex(self.explain("'big.example', 'TXT', {transport='dot'}"), r"The reply has 9\d\d bytes\.$")

    def test_a_truncated_response(self):
        self.upstream.on("cut.example", A, lambda message, _: reply(message, flags=dnsmsg.RA | dnsmsg.TC, answer=[a("cut.example", 300)]))
        self.host.ask(query("cut.example"))
        self.assertRegex(
            self.explain("'cut.example'"),
            r"^MISS\n.*\n.*\nA response was not kept \d+ s ago: the response was truncated \(truncated\)\.$",
        )

    def test_purged_evicted_and_never_there(self):
        self.host = self.start(CACHE.replace("10000", "100"))
        names = [f"n{n}.example" for n in range(100)]
        self.serve("a.example", *names)
        self.assertRegex(self.explain("'a.example'"), r"^MISS\n.*\nNothing has been evicted so far: it never came")
        self.host.ask(query("a.example"))
        self.host.console("pc:expungeByName(newDNSName('a.example'))")
        self.assertRegex(self.explain("'a.example'"), r"^MISS\n.*\nA purge \d+ s ago removed what was here then\.$")
        self.host.console("pc:expungeList('192.0.2.77')")
        self.assertRegex(self.explain("'b.example'"), r"^MISS\n.*\nA purge \d+ s ago may have removed it")
        self.host = self.start(CACHE.replace("10000", "10"))
        for name in names:
            self.host.ask(query(name))
        self.assertRegex(self.explain("'n0.example'"), r"^MISS\n.*\nIt never came, .* or was evicted, as \d+ answers were so far\.$")

    def test_networks(self):
        self.host = self.start(CACHE, server="useClientSubnet=true")

        def script(message, _):
            ((code, value),) = message.edns_options
            return reply(message, answer=[a(message.qname, 300)], edns=opt(options=[(code, value[:3] + b"\x10" + value[4:])]))

        self.upstream.on("a.example", A, script)
        self.host.ask(query("a.example"))
        self.assertRegex(self.explain("'a.example'"), "^MISS\nThe backend tailors this answer to client networks")
        self.assertRegex(self.explain("'a.example', 'A', {client='127.0.9.9'}"), "^HIT\n")
        self.assertRegex(self.explain("'a.example', 'A', {client='192.0.2.1'}"), "^MISS\nThe backend tailors")
        self.assertRegex(self.explain("'a.example', 'A', {ecs='127.0.0.0/24'}"), "^HIT\n")
        self.assertRegex(self.explain("'a.example', 'A', {ecs='192.0.2.0/24'}"), "^MISS\n")

    def test_mistakes(self):
        for arguments, expected in (("'a..b'", "not a domain name"), ("'a', 'NONSENSE'", "is not a type"), ("'a', 'A', {colour=1}", "unknown field colour"),
                                    ("'a', 'A', {transport='pigeon'}", "transport must be"), ("'a', 'A', {client='x'}", "must be an address")):
            self.assertIn(expected, self.explain(arguments), arguments)


class AroundTheCache(DnsdistTest):
    @harness.timely(5)
    def b75_rings_and_dynamic_rules_see_hits(self):
        host = self.start(
            CACHE + "local group = dynBlockRulesGroup()\ngroup:setQueryRate(5, 10, 'too many', 60)\n"
            "function maintenance() group:apply() end\n"
        )
        self.serve("a.example")
        for _ in range(100):
            host.ask(query("a.example"))
        self.assertEqual(self.upstream.asked("a.example"), 1)
        self.assertRegex(host.console("topQueries(1)"), r"a\.example\. +100 ")
        for _ in harness.looks(harness.TIMEOUT / 10):  # the console takes its time, too
            if "127.0.0.1" in host.console("showDynBlocks()"):
                break
        self.assertIn("too many", host.console("showDynBlocks()"))
        self.expect_silence(host, query("a.example"))

    def b89_ttl_caps_of_rules_hold_for_hits(self):
        if "SetMaxReturnedTTLAction" not in subprocess.run(
            ["dnsdist", "--check-config", "-C", self.lua("print(SetMaxReturnedTTLAction and 'SetMaxReturnedTTLAction')")],
            capture_output=True, text=True, check=False, timeout=60,
        ).stdout:
            self.skipTest("this dnsdist cannot cap the TTLs of what it returns")
        host = self.start(CACHE + "addAction('capped.example.', SetMaxReturnedTTLAction(5))")
        self.serve("a.capped.example", "a.example")
        for _ in range(3):
            self.assertLessEqual(host.ask(query("a.capped.example")).answer[0].ttl, 5)
            self.assertGreater(host.ask(query("a.example")).answer[0].ttl, 200)
        self.assertEqual(self.upstream.asked("a.capped.example"), 1)
        self.assertRegex(host.console("pc:explain('a.capped.example')"), "^HIT\n.*(min|[12]\\d\\d s) left")

    def lua(self, text):
        file = tempfile.NamedTemporaryFile("w", suffix=".conf")
        self.addCleanup(file.close)
        file.write(text + "\n")
        file.flush()
        return file.name

    def test_rules_for_hits_can_be_removed_and_moved(self):
        host = self.start(
            "require('sardine').replace()\n"
            "addCacheHitResponseAction('drop.example.', DropResponseAction(), {name='drop hits'})\n"
            "addCacheHitResponseAction('drop.example.', AllowResponseAction())\n"
            "pc = newPacketCache(1000)\ngetPool(''):setCache(pc)\n"
        )
        self.serve("a.drop.example")
        host.ask(query("a.drop.example"))
        self.expect_silence(host, query("a.drop.example"))
        host.console("mvCacheHitResponseRuleToTop()")  # now the one that allows is first
        host.ask(query("a.drop.example"))
        host.console("mvCacheHitResponseRule(0, 2)")
        self.expect_silence(host, query("a.drop.example"))
        host.console("rmCacheHitResponseRule('drop hits')")
        host.ask(query("a.drop.example"))
        host.console("addCacheHitResponseAction('drop.example.', DropResponseAction())")
        host.console("rmCacheHitResponseRule(0)")
        self.expect_silence(host, query("a.drop.example"))
        host.console("rmCacheHitResponseRule(0)")
        host.ask(query("a.drop.example"))
        self.assertEqual(self.upstream.asked("a.drop.example"), 1)


class TimeOuts(DnsdistTest):
    def b37_expired_data_after_a_time_out(self):
        host = self.start(
            "setUDPTimeout(3)\n" + CACHE.replace("{", "{staleWindow=600, staleBackoff=30, "),
        )
        if host.console("tostring(addTimeoutResponseAction)") == "nil":
            self.skipTest("this dnsdist has no rules for time-outs")
        self.serve("a.example", "a.fresh.example", ttl=1)
        for name in ("a.example", "a.fresh.example"):
            host.ask(query(name))
        time.sleep(2.2)
        silence = lambda m, _: None
        self.upstream.on("a.example", A, silence)
        self.upstream.on("a.other.example", A, silence)
        answer = host.ask(query("a.example", edns=opt()))
        self.assertEqual(answer.answer[0].data[-1], 1)
        self.assertEqual([code for code, _ in answer.edns_options], [dnsmsg.EDE])
        asked = self.upstream.asked("a.example")
        host.ask(query("a.example"))  # at once, without the backend
        self.assertEqual(self.upstream.asked("a.example"), asked)
        self.expect_silence(host, query("a.other.example"))
        self.assertEqual(host.ask(query("a.fresh.example")).answer[0].ttl, 1)


if __name__ == "__main__":
    loader.main()
