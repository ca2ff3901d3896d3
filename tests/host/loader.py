# SPDX-License-Identifier: MIT
"""Tests of a rule of behaviour are named by its id (b26_...), others test_..."""
import re
import unittest


class Loader(unittest.TestLoader):
    def getTestCaseNames(self, case):
        return [name for name in sorted(dir(case)) if re.match(r"b\d\d_|test_", name)]


def main():
    unittest.main(testLoader=Loader(), verbosity=2)
