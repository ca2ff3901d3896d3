# SPDX-License-Identifier: MIT
"""Policies in real dnsdist: the examples of lua/policies do what their comments say; the upstream's counts prove it."""
import os
import pathlib
import socket
import tempfile
import time

import loader
from cases import DnsdistTest
from dnsmsg import A, ECS, NOERROR, NXDOMAIN, SERVFAIL, Message, a, opt, query, reply, soa

POLICIES = pathlib.Path(__file__).parent.parent.parent / "lua" / "policies"


def cache(policy, options="", after=""):
    return (
        "local sardine = require 'sardine'\n"
        f"pc = sardine.newPacketCache(10000, {{temporaryFailureTTL=1, policy={str(policy)!r}, {options}}})\n"
        f"{after}\nsardine.attach(pc)\n"
    )


class Policies(DnsdistTest):
    def ask_from(self, host, address, name):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.settimeout(5)
            sock.bind((address, 0))
            sock.sendto(query(name), ("127.0.0.1", host.port))
            return Message(sock.recv(65535))

    def b24_filtered_and_unfiltered_clients_share_nothing(self):
        host = self.start(cache(POLICIES / "tenants.lua"))
        self.upstream.on("www.example", A, [a("www.example", 300)])
        for address in ("127.0.0.1", "127.0.0.2", "127.0.0.1", "127.0.0.3", "127.0.0.2"):
            self.ask_from(host, address, "www.example")
        self.assertEqual(self.upstream.asked("www.example"), 2)

    def b24_dnsdists_tags_and_pools_are_seen(self):
        policy = self.policy(
            "return { key = function(q)\n"
            "  assert(7 // 2 == 3 and math.type(1) == 'integer' and utf8.char(228) == '\u00e4')\n"
            "  assert(_VERSION == 'Lua 5.4' and q.pool == '' and q.transport == 'udp')\n"
            "  assert(q.listener:within('127.0.0.0/8') and q.listener_port > 0)\n"
            "  return q:host_tag('tenant')\n"
            "end }"
        )
        rule = "masks = newNMG()\nmasks:addMask('127.0.0.9/32')\n"
        rule += "addAction(NetmaskGroupRule(masks), SetTagAction('tenant', 'acme'))"
        host = self.start(cache(policy, after=rule))
        self.upstream.on("www.example", A, [a("www.example", 300)])
        for address in ("127.0.0.1", "127.0.0.9", "127.0.0.1", "127.0.0.9"):
            self.ask_from(host, address, "www.example")
        self.assertEqual(self.upstream.asked("www.example"), 2, host.text())
        self.assertIn('"key_errors": 0', host.console("pc:getPolicyStats()"))

    def policy(self, text):
        path = pathlib.Path(tempfile.mkdtemp()) / "policy.lua"
        path.write_text(text, encoding="utf-8")
        return path

    def test_names_of_a_list_are_never_cached(self):
        host = self.start(cache(POLICIES / "never.lua"))
        for name, asked in (("a.live.example", 2), ("alive.example", 1)):
            self.upstream.on(name, A, [a(name, 300)])
            host.ask(query(name))
            host.ask(query(name))
            self.assertEqual(self.upstream.asked(name), asked)

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

    def test_random_names_are_not_kept(self):
        host = self.start(cache(POLICIES / "flood.lua"))
        for name, asked in (("abcdefgh01234567x.example", 2), ("nothere.example", 1)):
            self.upstream.on(name, A, self.no_such_name)
            host.ask(query(name))
            host.ask(query(name))
            self.assertEqual(self.upstream.asked(name), asked)

    def test_client_subnets_for_content_networks_only(self):
        host = self.start(cache(POLICIES / "cdn-ecs.lua"), server="useClientSubnet=true")
        told = {}

        def script(message, _):
            options = message.edns_options if message.opts else []
            told.setdefault(message.qname, []).extend(value[2] for code, value in options if code == ECS)
            echoed = [(code, value[:3] + value[2:3] + value[4:]) for code, value in options if code == ECS]
            return reply(message, answer=[a(message.qname, 300)], edns=opt(options=echoed))

        for name, asked in (("www.cdn.example", 2), ("www.example", 1)):
            self.upstream.on(name, A, script)
            for address in ("127.0.0.1", "127.0.0.9", "127.0.9.1", "127.0.9.2"):
                self.assertEqual(self.ask_from(host, address, name).rcode, NOERROR)
            self.assertEqual(self.upstream.asked(name), asked, name)
        self.assertEqual(told["www.cdn.example"], [24, 24])
        self.assertEqual(sum(told["www.example"]), 0)

    def test_kept_zones_stay_in_a_full_cache(self):
        host = self.start(cache(POLICIES / "keep.lua").replace("10000", "300"))
        kept = [f"n{n}.example.com" for n in range(20)]
        others = [f"n{n}.example" for n in range(900)]
        self.serve(*kept, *others)
        for name in kept + others:
            host.ask(query(name))
        evicted = host.console("pc:getStats()")
        self.assertNotIn('"evicted": 0', evicted)
        for name in kept + others:
            host.ask(query(name))
        self.assertEqual([self.upstream.asked(name) for name in kept], [1] * len(kept))
        self.assertGreater(sum(self.upstream.asked(name) for name in others), len(others))

    @staticmethod
    def no_such_name(message, _):
        return reply(message, rcode=NXDOMAIN, authority=[soa("example", 300, 300)])

    def b39_stale_only_what_helps(self):
        host = self.start(cache(POLICIES / "stale.lua", "staleWindow=600"))
        for name in ("www.example", "www.bank.example"):
            self.upstream.on(name, A, [a(name, 1)])
            host.ask(query(name))
        time.sleep(1.3)
        for name, rcode in (("www.example", NOERROR), ("www.bank.example", SERVFAIL)):
            self.upstream.on(name, A, lambda m, _: reply(m, rcode=SERVFAIL))
            self.assertEqual(host.ask(query(name)).rcode, rcode)

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
        time.sleep(2.5)
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
        time.sleep(2.5)
        for _ in range(2):
            host.ask(query("www.example"))
        self.assertEqual(self.upstream.asked("www.example"), 2)

    def test_hostile_policies_leave_the_server_answering(self):
        for body in ("while true do end", "error('no')", "local s = 'x' while true do s = s .. s end"):
            with self.subTest(body):
                host = self.start(cache(self.policy(
                    f"local function f() {body} end return {{ key = f, store = f, evict = f, stale = f }}")))
                name = f"n{len(body)}.example"
                self.upstream.on(name, A, [a(name, 300)])
                for _ in range(20):
                    self.assertEqual(host.ask(query(name)).rcode, NOERROR)
                self.assertEqual(self.upstream.asked(name), 1)


if __name__ == "__main__":
    loader.main()
