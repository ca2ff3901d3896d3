# SPDX-License-Identifier: MIT
"""What tests with real dnsdist share."""
import os
import subprocess
import tempfile
import unittest

import harness
from dnsmsg import A, a, query

CACHE = """
local sardine = require 'sardine'
pc = sardine.newPacketCache(10000, {temporaryFailureTTL=2, udpPayloadSize=4096})
sardine.attach(pc)
"""


class DnsdistTest(unittest.TestCase):
    def setUp(self):
        self.upstream = harness.Upstream()
        self.addCleanup(self.upstream.close)

    def start(self, config, **more):
        host = harness.Dnsdist(self.upstream, config, **more)
        self.addCleanup(host.close)
        return host

    def start_yaml(self, lua, more=""):
        """With a YAML configuration beside one in Lua, from dnsdist 2.0 on."""
        version = subprocess.run(["dnsdist", "--version"], capture_output=True, text=True, check=True, timeout=harness.TIMEOUT)
        if " yaml" not in version.stdout:
            self.skipTest("this dnsdist reads no YAML")
        host = harness.DnsdistYaml(self.upstream, "enableLuaConfiguration()\n" + lua, more)
        self.addCleanup(host.close)
        return host

    def expect_upstream(self, host, name, count, queries=3, tcp=False):
        """Ask for the A record `queries` times: the upstream hears `count` of them."""
        before = self.upstream.asked(name)
        for _ in range(queries):
            answer = host.ask(query(name), tcp)
        self.assertEqual(self.upstream.asked(name) - before, count, name)
        return answer

    def serve(self, *names, ttl=300):
        for name in names:
            self.upstream.on(name, A, [a(name, ttl)])

    def certificate(self):
        """The files of a certificate and its key."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        certificate, key = os.path.join(folder.name, "certificate"), os.path.join(folder.name, "key")
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
            + ["-keyout", key, "-out", certificate],
            check=True,
            capture_output=True,
        )
        return certificate, key

    def expect_silence(self, host, message, tcp=False):
        """The host drops the query."""
        patience, harness.TIMEOUT = harness.TIMEOUT, 0.5
        try:
            with self.assertRaises((TimeoutError, EOFError, ConnectionError)):
                host.ask(message, tcp)
        finally:
            harness.TIMEOUT = patience
