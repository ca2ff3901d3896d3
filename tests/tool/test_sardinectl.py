# SPDX-License-Identifier: MIT
"""sardinectl: every command, wrong usage, and files that are damaged, cut or hostile."""
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest

TOOL, MAKE = sys.argv[1:3]


def run(*arguments):
    done = subprocess.run([TOOL, *arguments], capture_output=True, timeout=60)
    return done.returncode, done.stdout.decode("ascii"), done.stderr.decode()


class Sardinectl(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = os.path.join(cls.folder.name, "snapshot")
        subprocess.run([MAKE, cls.path], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def lines(self, *arguments):
        status, out, err = run(*arguments, self.path)
        self.assertEqual((status, err), (0, ""))
        return [line.split("\t") for line in out.splitlines()]

    def test_check(self):
        told = dict(self.lines("check"))
        self.assertEqual(told["damaged"], "0")
        self.assertEqual(told["answers"], "13")
        self.assertEqual(int(told["bytes"]), os.path.getsize(self.path))
        self.assertLess(int(told["age"]), 100)

    def test_list(self):
        lines = self.lines("list")
        self.assertEqual(len(lines), 13)
        self.assertTrue(all(len(line) == 8 for line in lines))
        self.assertEqual(sum(line[0] == "cdn.example." and line[6].startswith("10.0.") for line in lines), 5)

    def test_list_filters(self):
        self.assertEqual({line[0] for line in self.lines("list", "--name", "EXAMPLE.com", "--below")}, {"a.example.com."})
        self.assertEqual(self.lines("list", "-n", "example.com"), [])
        self.assertEqual([line[2] for line in self.lines("list", "-r", "nxdomain")], ["NXDOMAIN"])
        self.assertEqual([line[7] for line in self.lines("list", "--tag", "tenant")], ["tenant"])
        self.assertEqual({line[1] for line in self.lines("list", "-t", "CAA")}, {"CAA"})
        self.assertEqual(len(self.lines("list", "-l", "3")), 3)

    def test_list_json(self):
        _, out, _ = run("list", "--json", self.path)
        answers = [json.loads(line) for line in out.splitlines()]
        self.assertEqual(len(answers), 13)
        tagged = [a for a in answers if "tag" in a]
        self.assertEqual([(a["name"], a["tag"], a["type"]) for a in tagged], [("a.example.com.", "tenant", "A")])
        self.assertEqual(sum("network" in a for a in answers), 5)

    def test_top(self):
        lines = self.lines("top")
        self.assertEqual(lines[0][:2], ["a.example.com.", "A"])
        self.assertGreater(int(lines[0][2]), 0)
        self.assertEqual(len(self.lines("top", "--limit", "2")), 2)

    def test_b87_names_for_another_node(self):
        names = [line[0] for line in self.lines("names")]
        self.assertEqual(names[0], "a.example.com. A")
        self.assertEqual(len(names), len(set(names)))
        self.assertIn("text.example. CAA", names)

    def test_size(self):
        lines = self.lines("size")
        types = {line[0]: line for line in lines[1 : lines.index([""])]}
        self.assertEqual(types["A"][1], "9")
        zones = {line[0]: line for line in lines[lines.index([""]) + 2 :]}
        self.assertEqual(zones["example.com."][1], "3")

    def test_predict(self):
        told = dict(self.lines("predict", "--entries", "1000000"))
        self.assertEqual(told["entries"], "1000000")
        self.assertGreater(float(told["bytes an entry"]), 20)
        self.assertGreater(int(told["max_bytes"]), 20000000)

    def test_wrong_usage(self):
        for arguments in ([], ["list"], ["nothing", self.path], ["list", "-t", "NOTYPE", self.path],
                          ["list", "-l", "0", self.path], ["list", "-l", "x", self.path], ["--nonsense"],
                          ["list", "-r", "BADVERS", self.path], ["list", "-n", "a..b", self.path]):
            status, out, err = run(*arguments)
            self.assertEqual((status, out), (2, ""), arguments)
            self.assertIn("--help", err)

    def test_help_and_version(self):
        status, out, _ = run("--help")
        self.assertEqual(status, 0)
        for word in ("check", "list", "top", "names", "size", "predict", "Exit status"):
            self.assertIn(word, out)
        self.assertTrue(run("--version")[1].startswith("sardinectl "))

    def test_what_is_no_snapshot(self):
        self.assertEqual(run("check", "/dev/null")[0], 1)
        self.assertEqual(run("check", self.folder.name)[0], 1)
        self.assertEqual(run("check", self.path + ".none")[0], 3)

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([TOOL, "list", self.path], stdout=full, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 3)

    def test_hostile_files(self):
        with open(self.path, "rb") as file:
            good = file.read()
        chance = random.Random(1)
        path = os.path.join(self.folder.name, "hostile")
        for round in range(150):
            data = bytearray(good)
            if round % 3 == 0:
                data = data[: chance.randrange(len(data))]
            else:
                for _ in range(chance.randrange(1, 5)):
                    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            with open(path, "wb") as file:
                file.write(data)
            command = ("check", "list", "top", "names", "size", "predict")[round % 6]
            self.assertIn(run(command, path)[0], (1, 3), round)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
