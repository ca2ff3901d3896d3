# SPDX-License-Identifier: MIT
"""sardinectl: every command, wrong usage, and files that are damaged, cut or hostile."""
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import time
import unittest

TOOL, MAKE, CAPTURE_KIT = sys.argv[1:4]
CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "corpus", "responses.txt")


def udp(payload, source=53, destination=40000):
    return struct.pack(">4H", source, destination, 8 + len(payload), 0) + payload


def ipv4(payload):
    return struct.pack(">BBHHHBBH8s", 0x45, 0, 20 + len(payload), 0, 0, 64, 17, 0, bytes(8)) + payload


def pcap(packets, order="<", magic=0xA1B2C3D4):
    """`packets`: (second, bytes), IP at once."""
    out = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 65535, 101)
    return out + b"".join(struct.pack(order + "4I", at, 0, len(p), len(p)) + p for at, p in packets)


def pcapng(packets, order="<", resolution=6):
    def block(kind, body):
        body += bytes(-len(body) % 4)
        return struct.pack(order + "II", kind, 12 + len(body)) + body + struct.pack(order + "I", 12 + len(body))

    out = block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))
    out += block(1, struct.pack(order + "HHI", 101, 0, 0) + struct.pack(order + "HHB3xHH", 9, 1, resolution, 0, 0))
    out += block(5, bytes(16))  # of no interest
    for at, packet in packets:
        ticks = at * (1 << (resolution & 0x7F) if resolution & 0x80 else 10**resolution)
        head = struct.pack(order + "5I", 0, ticks >> 32, ticks & 0xFFFFFFFF, len(packet), len(packet))
        out += block(6, head + packet)
    return out + block(3, struct.pack(order + "I", 1) + b"x")


def run(*arguments):
    done = subprocess.run([TOOL, *arguments], capture_output=True, timeout=300)
    return done.returncode, done.stdout.decode("ascii"), done.stderr.decode()


class Sardinectl(unittest.TestCase):
    def setUp(self):
        """A snapshot of its own for each test: some of what is in it lives for a minute only."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.path = folder.name, os.path.join(folder.name, "snapshot")
        self.made = time.monotonic()
        subprocess.run([MAKE, self.path], check=True)

    def lines(self, *arguments):
        status, out, err = run(*arguments, self.path)
        self.assertEqual((status, err), (0, ""))
        return [line.split("\t") for line in out.splitlines()]

    def test_check(self):
        told = dict(self.lines("check"))
        self.assertEqual(told["damaged"], "0")
        self.assertEqual(told["answers"], "13")
        self.assertEqual(int(told["bytes"]), os.path.getsize(self.path))
        self.assertLessEqual(int(told["age"]), time.monotonic() - self.made + 1)

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

    def predict(self, capture, *arguments, status=0):
        path = os.path.join(self.folder, "capture")
        with open(path, "wb") as file:
            file.write(capture)
        done, out, err = run("predict", "--pcap", *arguments, path)
        self.assertEqual(done, status, err)
        return {name: float(value) for name, value in (line.split("\t") for line in out.splitlines())}

    def test_predict_from_the_corpus(self):
        with open(CORPUS) as file:
            messages = [bytes.fromhex(line.split()[1]) for line in file]
        packets = [(100 + n, ipv4(udp(message))) for n, message in enumerate(messages)]
        told = self.predict(pcap(packets))
        self.assertEqual(told["packets"], len(messages))
        self.assertLessEqual(told["responses"], len(messages))
        refused = sum(value for name, value in told.items() if name.startswith("not kept: "))
        self.assertGreater(refused, 10)
        self.assertGreater(told["answers"], 900)
        self.assertLessEqual(told["answers"], told["responses"] - refused)
        self.assertEqual(told["entries"], told["answers"])
        self.assertTrue(0 < told["fresh at the end"] < told["answers"])
        self.assertTrue(20 < told["bytes an entry"] < 400)
        # the same in other clothes
        for other in (pcap(packets, ">"), pcapng(packets), pcapng(packets, ">", 9), pcapng(packets, "<", 0x8A),
                      pcap(packets, "<", 0xA1B23C4D)):
            self.assertEqual({**self.predict(other), "packets": told["packets"]}, told)
        with open(os.path.join(self.folder, "capture"), "rb") as file:
            done = subprocess.run([TOOL, "predict", "-p", "-"], stdin=file, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0)
        self.assertIn("answers\t%d\n" % told["answers"], done.stdout)

    def test_predict_reads_responses_of_one_port(self):
        with open(CORPUS) as file:
            message = bytes.fromhex(next(file).split()[1])
        query = message[:2] + b"\1\0" + message[4:]
        headless = udp(message, 5300)  # in a packet whose IP header says that it is shorter than one can be
        headless = b"\x44" + ipv4(headless)[1:16] + headless
        packets = [(1, ipv4(udp(message, 5300))), (2, ipv4(udp(query, 53))), (3, ipv4(udp(message, 40000, 53)))]
        packets.append((4, headless))
        self.assertEqual(self.predict(pcap(packets), status=3)["responses"], 0)
        told = self.predict(pcap(packets), "--port", "5300", "-N", "1000000")
        self.assertEqual((told["responses"], told["answers"], told["entries"]), (1, 1, 1000000))

    def test_predict_from_what_is_no_capture(self):
        good = pcapng([(1, ipv4(udp(b"x" * 30)))] * 3)
        self.assertEqual(self.predict(b"no capture", status=3), {})
        self.assertEqual(self.predict(b"", status=3), {})
        self.assertEqual(run("predict", "-p", self.path + ".none")[0], 3)
        chance = random.Random(2)
        for round in range(150):
            data = bytearray(good if round % 2 else pcap([(1, ipv4(udp(b"y" * 30)))] * 3))
            if round % 3 == 0:
                data = data[: chance.randrange(len(data))]
            for _ in range(chance.randrange(1, 4)):
                if data:
                    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            path = os.path.join(self.folder, "hostile.pcap")
            with open(path, "wb") as file:
                file.write(data)
            status, _, err = run("predict", "--pcap", path)
            self.assertIn(status, (1, 3), round)
            # nothing but that: a sanitizer's last words come with status 1, too
            self.assertTrue(all(line.startswith("sardinectl: ") for line in err.splitlines()), err)

    def test_what_is_predicted_fits(self):
        small, large = (os.path.join(self.folder, name) for name in ("small", "large"))
        subprocess.run([CAPTURE_KIT, "make", small, "10000"], check=True)
        subprocess.run([CAPTURE_KIT, "make", large, "200000"], check=True)
        _, out, _ = run("predict", "--pcap", "--entries", "200000", small)
        told = dict(line.split("\t") for line in out.splitlines())
        self.assertEqual((told["responses"], told["answers"]), ("10000", "10000"))

        def fit(share):
            out = subprocess.check_output([CAPTURE_KIT, "fit", large, str(int(int(told["max_bytes"]) * share))])
            return [int(word) for word in out.split()]

        entries, evicted, _ = fit(1)
        self.assertEqual((entries, evicted), (200000, 0))
        entries, evicted, _ = fit(0.85)
        self.assertGreater(evicted, 1000)

    def test_purge(self):
        """The library's tests have what a load makes of it (b70_purges_missed_while_down)."""
        journal = self.path + ".purges"
        self.addCleanup(lambda: os.path.exists(journal) and os.unlink(journal))
        for arguments, record in (
            (["-n", "WWW.Example"], b"\0\x17\0\0\0\0\0\x0d\3www\7example\0\0\0"),
            (["-b", "-n", "example", "-t", "MX"], b"\0\x13\1\0\x0f\0\0\x09\7example\0\0\0"),
            (["-T", "tenant"], b"\0\x10\2\0\0\0\0\0\6tenant\0"),
            (["-r", "NXDOMAIN"], b"\0\x0a\4\0\0\0\3\0\0\0"),
        ):
            self.assertEqual(run("purge", *arguments, self.path), (0, "", ""))
            with open(journal, "rb") as file:
                self.assertTrue(file.read().endswith(record), arguments)
        self.assertEqual(os.stat(journal).st_mode & 0o777, 0o600)
        os.unlink(journal)
        os.symlink("/nowhere", journal)
        self.assertEqual(run("purge", "-n", "a", self.path)[0], 3)
        os.unlink(journal)
        self.assertEqual(run("purge", "-n", "a", self.path + ".none")[0], 3)

    def test_wrong_usage(self):
        for arguments in ([], ["list"], ["nothing", self.path], ["list", "-t", "NOTYPE", self.path],
                          ["list", "-l", "0", self.path], ["list", "-l", "x", self.path], ["--nonsense"],
                          ["list", "-r", "BADVERS", self.path], ["list", "--pcap", self.path],
                          ["predict", "--port", "65536", self.path], ["purge", self.path], ["purge", "-b", self.path],
                          ["purge", "-T", "x" * 129, self.path], ["list", "-n", "a..b", self.path]):
            status, out, err = run(*arguments)
            self.assertEqual((status, out), (2, ""), arguments)
            self.assertIn("--help", err)

    def test_help_and_version(self):
        status, out, _ = run("--help")
        self.assertEqual(status, 0)
        for word in ("check", "list", "top", "names", "size", "purge", "predict", "Exit status"):
            self.assertIn(word, out)
        self.assertTrue(run("--version")[1].startswith("sardinectl "))

    def test_what_is_no_snapshot(self):
        self.assertEqual(run("check", "/dev/null")[0], 1)
        self.assertEqual(run("check", self.folder)[0], 1)
        self.assertEqual(run("check", self.path + ".none")[0], 3)

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([TOOL, "list", self.path], stdout=full, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 3)

    def test_hostile_files(self):
        with open(self.path, "rb") as file:
            good = file.read()
        chance = random.Random(1)
        path = os.path.join(self.folder, "hostile")
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
