# SPDX-License-Identifier: MIT
"""usage: packaged.py ROOT

Run the dnsdist of a system in a folder, where the Debian packages are installed: its own configuration file, with
the line of the guide at the top and a cache as it would be for dnsdist's own. Then the same without the cache library.
"""
import subprocess
import sys

import dnsmsg
from harness import Host, Upstream, free_port

LINE = "require('sardine').replace()\n"
root = sys.argv[1]
config = root + "/etc/dnsdist/dnsdist.conf"


def run(*command):
    done = subprocess.run(["chroot", root, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    return done.returncode, done.stdout


with open(config, encoding="utf-8") as file:
    stock = file.read()
upstream, port = Upstream(), free_port()
upstream.on("www.example", dnsmsg.A, [dnsmsg.a("www.example", 300)])
try:
    with open(config, "w", encoding="utf-8") as file:
        file.write(
            LINE + stock + f"setLocal('127.0.0.1:{port}')\nnewServer('127.0.0.1:{upstream.port}'):setUp()\n"
            "pc = newPacketCache(10000, {maxTTL=3600})\ngetPool(''):setCache(pc)\n"
        )
    status, text = run("dnsdist", "--check-config")
    assert status == 0, text
    # As the service does it, with the privileges that it keeps.
    host = Host(["chroot", root, "dnsdist", "--supervised", "--disable-syslog", "-u", "_dnsdist", "-g", "_dnsdist"], port)
    try:
        for name in ("www.example", "WWW.Example"):
            reply = host.ask(dnsmsg.query(name))
            assert reply.rcode == 0 and reply.qname == name and len(reply.answer) == 1, vars(reply)
        assert upstream.asked("www.example") == 1, upstream.asked("www.example")
    finally:
        host.close()
    print(run("dnsdist", "--version")[1].splitlines()[0] + ": two queries, one of them upstream")
    with open(config, "w", encoding="utf-8") as file:
        file.write("require('sardine').replace()\nnewPacketCache(10, {maxTLL=1})\n")
    status, text = run("dnsdist", "--check-config")
    assert status != 0 and "maxTLL" in text, text
finally:
    with open(config, "w", encoding="utf-8") as file:
        file.write(stock)
    upstream.close()
