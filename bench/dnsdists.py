# SPDX-License-Identifier: MIT
"""The dnsdist servers of bench/dnsdist-compare and bench/restart, their upstream, and the load on them."""
import atexit
import os
import re
import socket
import subprocess
import sys
import time

from report import BUILD, ROOT

CACHES = ['builtin', 'sardine']


def die(text):
    sys.exit(f'{os.path.basename(sys.argv[0])}: {text}')


def start(*command, **options):
    process = subprocess.Popen(command, **options)
    atexit.register(stop, process)
    return process


def stop(process):
    if process.poll() is None:
        process.terminate()
        process.wait(10)


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tcp:
        tcp.bind(('127.0.0.1', 0))
        return tcp.getsockname()[1]


class Upstream:
    def __init__(self):
        self.process = start(f'{BUILD}/bench/upstream', '--listen', '127.0.0.1:0', '--ttl', '86400',
                             stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().split()[-1]

    def queries(self):
        host, port = self.address.split(':')
        answer = subprocess.run(['dig', f'@{host}', '-p', port, 'queries', 'CH', 'TXT', '+short'], check=True,
                                capture_output=True, text=True)
        return int(answer.stdout.strip().strip('"'))


class Server:
    """One dnsdist. The names of its cache's statistics are read from a file that it writes once a second."""
    def __init__(self, cache, upstream, names, work, snapshot=''):
        self.cache = cache
        self.port = free_port()
        self.status = f'{work}/status-{cache}'
        self.log = f'{work}/log-{cache}'
        # The built-in cache divides its entries among 20 shards, evenly only in the mean: leave it some room.
        entries = names + names // 10
        self.environment = dict(os.environ, LISTEN=f'127.0.0.1:{self.port}', UPSTREAMS=upstream.address, CACHE=cache,
                                ENTRIES=str(entries), STATUS=self.status, SNAPSHOT=snapshot,
                                LUA_PATH=f'{BUILD}/lua/?.lua;;', SARDINE_LIBRARY=f'{BUILD}/plugin/libsardine.so')
        self.run()

    def run(self):
        if os.path.exists(self.status):
            os.unlink(self.status)
        with open(self.log, 'a') as log:
            self.process = start('dnsdist', '--supervised', '-C', f'{ROOT}/bench/dnsdist.conf', stdout=log, stderr=log,
                                 env=self.environment)
        for _ in range(1000):
            if os.path.exists(self.status):
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.01)
        die(f'dnsdist with {self.cache} did not start:\n' + open(self.log).read())

    def stats(self):
        return {name: int(value) for name, value in (line.split() for line in open(self.status))}

    def settled_stats(self):
        time.sleep(2.5)  # the status file is written once a second
        return self.stats()

    def rss(self):
        fields = open(f'/proc/{self.process.pid}/statm').read().split()
        return int(fields[1]) * os.sysconf('SC_PAGESIZE')

    def cpu_seconds(self):
        fields = open(f'/proc/{self.process.pid}/stat').read().rsplit(')', 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')

    def start_load(self, names, *limits, outstanding=100):
        """Send queries with EDNS, at most so many of them unanswered at a time."""
        return start('dnsperf', '-s', '127.0.0.1', '-p', str(self.port), '-d', names, '-e', '-c', '4', '-q',
                     str(outstanding), *limits, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def load(self, names, *limits, watch=None):
        dnsperf = self.start_load(names, *limits)
        while watch and dnsperf.poll() is None:
            watch()
            time.sleep(0.5)
        return loaded(dnsperf)


def loaded(dnsperf):
    """What came of a load, when it is over."""
    text, _ = dnsperf.communicate()
    found = {key: re.search(pattern, text) for key, pattern in
             {'sent': r'Queries sent:\s+(\d+)', 'lost': r'Queries lost:\s+(\d+)',
              'qps': r'Queries per second:\s+([\d.]+)'}.items()}
    if dnsperf.returncode or not all(found.values()):
        die(f'dnsperf failed:\n{text}')
    return {key: float(match.group(1)) for key, match in found.items()}
