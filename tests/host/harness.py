# SPDX-License-Identifier: MIT
"""A scripted upstream and the hosts under test, each on free loopback ports, all bounded in time."""
import functools
import os
import random
import re
import shutil
import signal
import socket
import socketserver
import struct
import subprocess
import tempfile
import threading
import time

import dnsmsg

TIMEOUT = 30  # seconds for anything that should happen at once, on a machine that has other things to do


def sanitizer(environment):
    """What a host needs to load a library that was built with the address sanitizer."""
    preload = os.environ.get("SARDINE_PRELOAD")
    if preload is None:
        return environment
    return {"LD_PRELOAD": preload, "ASAN_OPTIONS": "detect_leaks=0:detect_odr_violation=0", **environment}


def ports():
    """Port numbers outside of those that the kernel gives to anybody's sockets, in an order of this process."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
        first, last = (int(number) for number in file.read().split())
    numbers = [port for port in range(10000, 65536) if not first <= port <= last]
    if len(numbers) < 5000:  # it leaves us next to nothing: take our chance
        numbers = list(range(10000, 65536))
    random.Random(os.getpid()).shuffle(numbers)
    yield from numbers


PORTS = ports()
TAKEN = []  # sockets that stand for ports


def take_port(port):
    """False if another process that runs tests has it: between our look and its use by a host it is not to be seen."""
    sign = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        sign.bind(f"\0sardine-test-port-{port}")
    except OSError:
        sign.close()
        return False
    TAKEN.append(sign)
    return True


def free_port():
    """A port that is free for UDP and TCP, and stays so until somebody is told to use it: none is given twice."""
    for port in filter(take_port, PORTS):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tcp, socket.socket(
            socket.AF_INET, socket.SOCK_DGRAM
        ) as udp:
            try:
                tcp.bind(("127.0.0.1", port))
                udp.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("no free port")


def looks(seconds):
    """To wait for a condition: look as often as one can in so many seconds. What counts is the looks, so that a pause of the
    whole machine does no harm."""
    for number in range(int(seconds / 0.02)):
        yield number
        time.sleep(0.02)


def timely(seconds):
    """What a test of real dnsdist says is true for so many seconds from its start, while something that lives for a moment is
    alive. If it fails and took longer, it has shown nothing: again, from the start."""

    def decorate(test):
        @functools.wraps(test)
        def run(self):
            for attempt in range(10):
                started = time.monotonic()
                try:
                    return test(self)
                except (AssertionError, OSError):
                    if time.monotonic() - started < seconds or attempt == 9:
                        raise
                self.doCleanups()
                self.setUp()

        return run

    return decorate


def receive(stream, size):
    data = b""
    while len(data) < size:
        part = stream.recv(size - len(data))
        if not part:
            raise EOFError
        data += part
    return data


class Upstream:
    """Answers from a script and remembers what it was asked.

    A script is called with the Message and "udp" or "tcp", and returns the response's bytes, or None for silence."""

    def __init__(self):
        self.port = free_port()
        self.lock = threading.Lock()
        self.scripts = {}
        self.log = []
        upstream = self

        class Udp(socketserver.BaseRequestHandler):
            def handle(self):
                data, sock = self.request
                response = upstream.respond(data, "udp")
                if response is not None:
                    sock.sendto(response, self.client_address)

        class Tcp(socketserver.BaseRequestHandler):
            def handle(self):
                self.request.settimeout(60)
                try:
                    while True:
                        (size,) = struct.unpack("!H", receive(self.request, 2))
                        response = upstream.respond(receive(self.request, size), "tcp")
                        if response is not None:
                            self.request.sendall(struct.pack("!H", len(response)) + response)
                except (EOFError, OSError):
                    pass

        class UdpServer(socketserver.UDPServer):
            max_packet_size = 65535

        class TcpServer(socketserver.ThreadingTCPServer):
            allow_reuse_address = True
            daemon_threads = True

        self.servers = [UdpServer(("127.0.0.1", self.port), Udp), TcpServer(("127.0.0.1", self.port), Tcp)]
        for server in self.servers:
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def close(self):
        for server in self.servers:
            server.shutdown()
            server.server_close()

    def on(self, name, qtype, script):
        """Answer this question by the script from now on; a list of records is an answer section."""
        if not callable(script):
            records = script
            script = lambda message, _: dnsmsg.reply(message, answer=records)
        with self.lock:
            self.scripts[name.lower(), qtype] = script

    def respond(self, data, transport):
        message = dnsmsg.Message(data)
        with self.lock:
            self.log.append((message, transport))
            script = self.scripts.get((message.qname.lower(), message.qtype))
        if script is None:
            return dnsmsg.reply(message, rcode=dnsmsg.REFUSED)
        return script(message, transport)

    def asked(self, name, qtype=None):
        """How many queries there were for a name."""
        return len(self.queries(name, qtype))

    def queries(self, name, qtype=None):
        with self.lock:
            return [m for m, _ in self.log if m.qname.lower() == name.lower() and qtype in (None, m.qtype)]


class Host:
    """A server process under test."""

    def __init__(self, command, port, environment=None):
        self.port = port
        self.output = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
        )
        try:
            self.wait_until_it_listens(port)
        except BaseException:
            self.close()
            raise

    def wait_until_it_listens(self, port):
        # Sockets are bound before threads start: queries sent to this port from now on are queued.
        for _ in looks(2 * TIMEOUT):
            if self.process.poll() is not None:
                raise RuntimeError(f"the host ended at once:\n{self.text()}")
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return
            except OSError:
                pass
        raise RuntimeError(f"the host does not listen:\n{self.text()}")

    def text(self):
        self.output.flush()
        self.output.seek(0)
        return self.output.read()

    def stop(self, how=signal.SIGTERM):
        """Returns the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(how)
            for _ in looks(TIMEOUT):
                if self.process.poll() is not None:
                    break
            else:
                self.process.kill()
                self.process.wait()
                raise RuntimeError("the host did not stop")
        return self.process.returncode

    def close(self):
        """Stop, if it has not stopped by itself. A sanitizer's report is an error."""
        self.stop()
        text = self.text()
        self.output.close()
        if re.search(r"runtime error:|Sanitizer", text):
            raise RuntimeError(text)

    def udp(self, query):
        """Send a query, return the reply's bytes."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.settimeout(TIMEOUT)
            sock.connect(("127.0.0.1", self.port))
            sock.send(query)
            return sock.recv(65535)

    def tcp(self, query):
        with socket.create_connection(("127.0.0.1", self.port), timeout=TIMEOUT) as sock:
            sock.sendall(struct.pack("!H", len(query)) + query)
            (size,) = struct.unpack("!H", receive(sock, 2))
            return receive(sock, size)

    def ask(self, query, tcp=False):
        """Send a query, return the reply as a Message that is known to belong to it."""
        message = dnsmsg.Message(self.tcp(query) if tcp else self.udp(query))
        assert message.id == dnsmsg.Message(query).id, "another query's id"
        assert message.flags & dnsmsg.QR, "not a response"
        return message


class Forwarder(Host):
    def __init__(self, upstream, *options):
        port = free_port()
        super().__init__(
            [os.environ["SARDINE_FORWARDER"], "--listen", f"127.0.0.1:{port}", "--upstream", f"127.0.0.1:{upstream.port}"]
            + list(options),
            port,
        )


class Dnsdist(Host):
    """`config` is what follows the standard lines; a console is there for commands at run time."""

    KEY = "MXNeLFWHUe4363BBKrY06cAsH8NWNb+Se2eXU5+Bb74="

    def __init__(self, upstream, config, server="", environment=None):
        port, self.folder = free_port(), tempfile.mkdtemp()
        self.environment = sanitizer(environment or {})
        self.config_file = os.path.join(self.folder, "dnsdist.conf")
        with open(self.config_file, "w", encoding="utf-8") as file:
            file.write(
                f"listen = '127.0.0.1:{port}'\n"
                "setLocal(listen, {reusePort=true})\n"
                # a script that is late is not a backend that fails
                f"setUDPTimeout({TIMEOUT})\nsetTCPRecvTimeout({TIMEOUT})\nsetTCPSendTimeout({TIMEOUT})\n"
                "setSecurityPollSuffix('')\n"
                f"controlSocket('127.0.0.1:{free_port()}')\n"
                f"setKey('{self.KEY}')\n"
                f"server = newServer{{address='127.0.0.1:{upstream.port}', {server}}}\n"
                "server:setUp()\n"
                f"{config}\n"
            )
        self.run(port)

    def run(self, port):
        super().__init__(["dnsdist", "--supervised", "--disable-syslog", "-C", self.config_file], port, self.environment)

    def console(self, command):
        """Returns what the console prints."""
        return subprocess.run(
            ["dnsdist", "-C", self.config_file, "-e", command],
            capture_output=True,
            text=True,
            check=True,
            timeout=2 * TIMEOUT,
            env={**os.environ, **self.environment},
        ).stdout.strip()

    def close(self):
        super().close()
        shutil.rmtree(self.folder, ignore_errors=True)


def dnsdist_version():
    said = subprocess.run(["dnsdist", "--version"], capture_output=True, text=True, check=True, timeout=TIMEOUT).stdout
    return tuple(int(number) for number in re.match(r"dnsdist (\d+)\.(\d+)\.(\d+)", said).groups())


class DnsdistYaml(Dnsdist):
    """The standard lines are in YAML, and so is `more`; `lua` is the file in Lua beside them."""

    # pylint: disable=super-init-not-called
    def __init__(self, upstream, lua, more):
        port, self.folder = free_port(), tempfile.mkdtemp()
        self.environment = sanitizer({})
        self.config_file = os.path.join(self.folder, "dnsdist.yml")
        with open(os.path.join(self.folder, "dnsdist.lua"), "w", encoding="utf-8") as file:
            file.write(lua)
        with open(self.config_file, "w", encoding="utf-8") as file:
            file.write(
                "security_polling:\n  suffix: ''\n"
                f"console:\n  listen_address: '127.0.0.1:{free_port()}'\n  key: '{self.KEY}'\n"
                f"binds:\n  - listen_address: '127.0.0.1:{port}'\n    protocol: 'Do53'\n"
                f"backends:\n  - address: '127.0.0.1:{upstream.port}'\n    protocol: 'Do53'\n"
                f"    health_checks:\n      mode: 'up'\n{more}"
            )
        self.run(port)


def check_config(config, environment=None):
    """Run dnsdist --check-config; returns the exit status and what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "dnsdist.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write(config)
        done = subprocess.run(
            ["dnsdist", "--check-config", "-C", path],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=2 * TIMEOUT,
            env={**os.environ, **sanitizer(environment or {})},
        )
        return done.returncode, done.stdout
