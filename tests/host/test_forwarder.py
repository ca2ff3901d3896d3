# SPDX-License-Identifier: MIT
"""The C forwarder: the behaviours, and that it starts and stops as it should."""
import os
import signal
import subprocess
import unittest

import harness
import loader
from behaviours import Behaviours
from dnsmsg import A, a, query


class ForwarderTest(Behaviours, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.upstream = harness.Upstream()
        cls.addClassCleanup(cls.upstream.close)
        cls.host = harness.Forwarder(cls.upstream, "--udp-size", "4096", "--failure-ttl", "2")
        cls.addClassCleanup(cls.host.close)

    def test_interrupt_prints_statistics(self):
        host = harness.Forwarder(self.upstream, "--threads", "1", "--entries", "100")
        self.addCleanup(host.close)
        name = self.name()
        self.upstream.on(name, A, [a(name, 300)])
        for _ in range(3):
            host.ask(query(name))
        self.assertEqual(host.stop(signal.SIGINT), 0)
        self.assertIn("lookups 3: hits 2, misses 1, bypass 0", host.text())

    def test_bad_arguments_are_refused(self):
        for options in (["--listen", "nowhere"], ["--entries", "0"], ["--entries", "1x"], ["--unknown"], []):
            done = subprocess.run(
                [os.environ["SARDINE_FORWARDER"], *options], capture_output=True, text=True, timeout=60, check=False
            )
            self.assertNotEqual(done.returncode, 0, options)
            self.assertNotEqual(done.stderr, "", options)


if __name__ == "__main__":
    loader.main()
