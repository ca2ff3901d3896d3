# SPDX-License-Identifier: MIT
"""usage: guide.py ROOT

Follow the operator's guide with the dnsdist of a system in a folder where sardine is installed: its own configuration file,
what an operator has in it, and then what the guide says, word for word: the examples are taken from lua/*.md.
"""
import base64
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request

import dnsmsg
import harness
from harness import Host, Upstream, free_port

LUA = pathlib.Path(__file__).resolve().parents[2] / "lua"
ROOT = sys.argv[1]
CONFIG = ROOT + "/etc/dnsdist/dnsdist.conf"
PASSWORD, KEY = "secret", "api-key"
NAMES = ("www.example.com", "n1.example.com", "n2.example.com", "example.org")
STATE = "/var/lib/sardine"


def text_of(file):
    return (LUA / file).read_text(encoding="utf-8")


def blocks(file, language):
    """The examples of a file in a language, as they stand there."""
    return [found[2] for found in re.finditer(r"(?ms)^( *)```" + language + r"\n(.*?)^\1```", text_of(file))]


def example(file, language, part):
    return next(block for block in blocks(file, language) if part in block)


def inside(*command, user=None, check=True):
    prefix = ["chroot"] + ([f"--userspec={user}"] if user else []) + [ROOT]
    done = subprocess.run(prefix + list(command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
    assert not check or done.returncode == 0, (command, done.stdout)
    return done.stdout if check else (done.returncode, done.stdout)


class Operator:
    """Has a dnsdist with a cache, behind which is `upstream`."""

    def __init__(self, stock, upstream):
        self.stock, self.upstream = stock, upstream
        self.port, self.console_port, self.web_port = free_port(), free_port(), free_port()
        self.host = self.web = None
        version = re.match(r"dnsdist (\d+)\.(\d+)\.(\d+)", inside("dnsdist", "--version"))
        self.runs_lua_for_the_web = tuple(int(number) for number in version.groups()) >= (1, 9, 5)

    def write(self, before, cache, after=""):
        with open(CONFIG, "w", encoding="utf-8") as file:
            file.write(
                f"{before}{self.stock}setLocal('127.0.0.1:{self.port}')\n"
                f"newServer({{address='127.0.0.1:{self.upstream.port}'}}):setUp()\n"
                f"controlSocket('127.0.0.1:{self.console_port}')\nsetKey('{harness.Dnsdist.KEY}')\n"
                f"{cache}getPool(''):setCache(pc)\n{after}"
            )

    def check_config(self):
        return inside("dnsdist", "--check-config", user="_dnsdist:_dnsdist", check=False)

    def start(self):
        """As the service does."""
        status, text = self.check_config()
        assert status == 0, text
        command = ["chroot", "--userspec=_dnsdist:_dnsdist", ROOT, "/usr/bin/dnsdist", "--supervised", "--disable-syslog"]
        self.host = Host(command, self.port)

    def start_web(self):
        """What the guide has for versions whose own web server cannot serve the page."""
        command = example("WATCH.md", "sh", "sardine-web -C")
        assert "127.0.0.1:8084" in command and "/etc/dnsdist/console.conf" in command and "/etc/dnsdist/web-password" in command
        lines = example("WATCH.md", "lua", "setKey")
        lines = lines.replace("5199", str(self.console_port)).replace("'...'", f"'{harness.Dnsdist.KEY}'")
        pathlib.Path(ROOT + "/etc/dnsdist/console.conf").write_text(lines, encoding="utf-8")
        pathlib.Path(ROOT + "/etc/dnsdist/web-password").write_text(PASSWORD + "\n", encoding="utf-8")
        self.web = Host(["chroot", ROOT] + command.replace("8084", str(self.web_port)).split(), self.web_port)

    def stop(self):
        if self.web is not None:
            self.web.close()
            self.web = None
            for file in ("console.conf", "web-password"):
                os.unlink(f"{ROOT}/etc/dnsdist/{file}")
        host, self.host = self.host, None
        if host is not None:
            host.close()

    def ask(self, name):
        """Returns how often the backend was asked."""
        before = self.upstream.asked(name.lower())
        reply = self.host.ask(dnsmsg.query(name))
        assert reply.rcode == 0 and reply.qname == name and len(reply.answer) == 1, vars(reply)
        return self.upstream.asked(name.lower()) - before

    def console(self, command):
        text = inside("dnsdist", "-e", command)
        assert not re.search(r"(?i)\berror\b|exception|no method|attempt to|not found", text), (command, text)
        return text.strip()

    def get(self, path, password=PASSWORD, method="GET", key=None):
        request = urllib.request.Request(f"http://127.0.0.1:{self.web_port}{path}", method=method)
        request.add_header("Authorization", "Basic " + base64.b64encode(f"any:{password}".encode()).decode())
        if key:
            request.add_header("X-API-Key", key)
        try:
            with urllib.request.urlopen(request, timeout=harness.TIMEOUT) as response:
                return response.status, response.read().decode("utf-8")
        except urllib.error.HTTPError as error:
            error.close()
            return error.code, ""

    def web_block(self):
        block = example("WATCH.md", "lua", ".web()")
        assert "127.0.0.1:8083" in block and "password='...'" in block
        return block.replace("8083", str(self.web_port)).replace("password='...'", f"password='{PASSWORD}', apiKey='{KEY}'")


def state_folder():
    """Empty, as systemd makes it for the drop-in."""
    state = pathlib.Path(ROOT + STATE)
    shutil.rmtree(state, ignore_errors=True)
    state.mkdir()
    inside("chown", "_dnsdist:_dnsdist", STATE)
    inside("chmod", "750", STATE)
    return state


def drop_in(operator):
    line = example("README.md", "lua", "require('sardine').replace()\n")
    assert line == "require('sardine').replace()\n", line
    operator.write(line, "pc = newPacketCache(10000, {maxTTL=3600, staleTTL=60, numberOfShards=4})\n")
    operator.start()
    counts = [operator.ask(name) for name in ("www.example.com", "WWW.Example.com")]
    assert counts == [1, 0], counts
    (command,) = re.findall(r"(?m)^> (.*printStats\(\))$", text_of("README.md"))
    assert re.search(r"Hits: +1 ", operator.console(command)), operator.console(command)
    operator.stop()
    return line


def examples_are_configurations(operator, line):
    """All of them, as the guide has them."""
    for file in ("README.md", "WARM.md", "WATCH.md", "POLICY.md"):
        for block in blocks(file, "lua"):
            if ".web()" in block and not operator.runs_lua_for_the_web:
                continue
            if "enableLuaConfiguration" in block or "return {" in block:
                continue  # for YAML, which the guide has for 2.0 only; a policy, which is another file
            block = block.replace("'/etc/dnsdist/policy.lua'", "'/tmp/policy.lua'")
            with open(CONFIG, "w", encoding="utf-8") as config:
                config.write(("" if "require" in block else line) + operator.stock + block)
            status, text = operator.check_config()
            assert status == 0, (file, block, text)


def watch(operator, line):
    state = state_folder()
    own = operator.runs_lua_for_the_web
    operator.write(line, "pc = newPacketCache(10000)\n", operator.web_block() if own else "")
    operator.start()
    if not own:
        operator.start_web()
    for name in NAMES + NAMES:
        operator.ask(name)
    assert operator.get("/sardine", password="wrong")[0] == 401
    status, page = operator.get("/sardine")
    assert status == 200 and "<html" in page
    assert json.loads(operator.get("/sardine/data")[1])["caches"][0]["name"] == "default"
    status, metrics = operator.get("/sardine/metrics")
    assert 'sardine_lookups_total{cache="default",outcome="hit"} 4' in metrics, metrics
    # What the tables and examples have to type at the console, in their order.
    typed = []
    for file in ("README.md", "WATCH.md", "SIZE.md", "WARM.md", "TROUBLESHOOT.md"):
        typed += re.findall(r"(?m)^> (.*)$", text_of(file)) + re.findall(r"`(pc:\w+\([^`]*\))`", text_of(file))
    assert len(typed) > 20, typed
    for command in dict.fromkeys(typed):
        command = command.replace("(name, type)", "('www.example.com', 'A')").replace("'/path'", "'/tmp/sardine-copy'")
        print("   >", command)
        text = operator.console(command)
        assert text or "expunge" in command or "dump" in command or "get" in command, command
    (dumped,) = [json.loads(text) for text in (state / "wrong.json").read_text(encoding="utf-8").splitlines()]
    assert dumped["name"] == "www.example.com." and dumped["response"], dumped
    operator.ask("www.example.com")
    status, text = operator.get("/api/v1/cache?pool=&name=example.com&suffix=", method="DELETE", key=KEY)
    if not own:
        assert status == 501, status
    else:
        assert (status, json.loads(text)["purged"]) == (200, "3"), (status, text)
    operator.stop()


def warm(operator, line):
    """A restart."""
    state = state_folder()
    file = STATE + "/main.cache"
    cache = example("WARM.md", "lua", "snapshot")
    assert file in cache
    operator.write(line, cache)
    inside("dnsdist", "--check-config")  # as root, which must not take the folder away from the service
    assert not list(state.iterdir()), list(state.iterdir())
    operator.start()
    assert [operator.ask(name) for name in NAMES] == [1] * len(NAMES)
    operator.stop()
    saved = (state / "main.cache").stat()
    assert saved.st_size > 0 and saved.st_uid != 0
    inside("dnsdist", "--check-config")
    left = (state / "main.cache").stat()
    assert (left.st_ino, left.st_mtime_ns, left.st_uid) == (saved.st_ino, saved.st_mtime_ns, saved.st_uid)
    operator.start()
    deadline = time.monotonic() + 20
    while not operator.console("pc:toString()").startswith(f"{len(NAMES)}/"):
        assert time.monotonic() < deadline, operator.console("pc:toString()")
    assert [operator.ask(name) for name in NAMES] == [0] * len(NAMES)
    # The tool, on the file of a running dnsdist; by root, on that of one that is down.
    commands = re.findall(r"(?m)^(sardinectl .*)$", text_of("WARM.md"))
    assert len(commands) > 6, commands
    for purges in (False, True):
        for command in commands:
            if ("purge" in command) == purges:
                print("   $", command)
                text = inside("sh", "-ec", "cd /tmp\n" + command.replace("FILE", file))
                assert text or purges or ">" in command, command
        if not purges:
            assert "example.org" in pathlib.Path(ROOT + "/tmp/names").read_text(encoding="utf-8")
            operator.stop()
    operator.start()
    while not operator.console("pc:toString()").startswith("1/"):
        assert time.monotonic() < deadline + 30, operator.console("pc:toString()")
    assert [operator.ask(name) for name in NAMES] == [1, 1, 1, 0]
    assert operator.console("pc:expungeByName('example.org')") == "1"
    operator.stop()
    assert (state / "main.cache").stat().st_uid == saved.st_uid


def mistakes(operator, line):
    """What is in the table of what keeps dnsdist from starting."""
    operator.write(line, "pc = newPacketCache(10, {maxTLL=1})\n")
    status, text = operator.check_config()
    assert status != 0 and "unknown option maxTLL" in text, text


def main():
    with open(CONFIG, encoding="utf-8") as file:
        stock = file.read()
    upstream = Upstream()
    for name in NAMES:
        upstream.on(name, dnsmsg.A, [dnsmsg.a(name, 300)])
    operator = Operator(stock, upstream)
    operator.version = inside("dnsdist", "--version").splitlines()[0]
    pathlib.Path(ROOT + "/tmp/policy.lua").write_text("return {}", encoding="ascii")
    try:
        line = drop_in(operator)
        print("  drop in")
        examples_are_configurations(operator, line)
        print("  every example is a configuration")
        watch(operator, line)
        print("  watch, and find out why")
        warm(operator, line)
        print("  restart with a snapshot")
        mistakes(operator, line)
        print("  mistakes")
        print(f"  passed with {operator.version}")
    finally:
        operator.stop()
        with open(CONFIG, "w", encoding="utf-8") as file:
            file.write(stock)
        upstream.close()
        for name in ("policy.lua", "sardine-copy", "names"):
            if os.path.exists(f"{ROOT}/tmp/{name}"):
                os.unlink(f"{ROOT}/tmp/{name}")


if __name__ == "__main__":
    main()
