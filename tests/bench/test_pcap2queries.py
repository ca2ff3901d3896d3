#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The converter reads what a capture may hold, and prints the questions alone. usage: test_pcap2queries.py PROGRAM"""
import struct
import subprocess
import sys
import tempfile

ETHERNET, RAW, SLL, SLL2 = 1, 101, 113, 276


def name(text):
    return b''.join(bytes([len(label)]) + label.encode() for label in text.split('.') if label) + b'\0'


def query(text, qtype, flags=0x0100, more=b''):
    return struct.pack('>6H', 7, flags, 1, 0, 0, 0) + name(text) + struct.pack('>HH', qtype, 1) + more


def udp(payload, port=53, length=None):
    return struct.pack('>4H', 40000, port, length or 8 + len(payload), 0) + payload


def ipv4(payload, protocol=17, fragment=0, options=b''):
    words = 5 + len(options) // 4
    return struct.pack('>BBHHHBBH8s', 0x40 | words, 0, 4 * words + len(payload), 0, fragment, 64, protocol, 0,
                       bytes(8)) + options + payload


def ipv6(payload, following=17):
    return struct.pack('>IHBB32s', 6 << 28, len(payload), following, 64, bytes(32)) + payload


def ethernet(payload, kind=0x0800, tags=()):
    return bytes(12) + b''.join(struct.pack('>HH', tag, 1) for tag in tags) + struct.pack('>H', kind) + payload


def pcap(link, packets, cut=None):
    out = struct.pack('<IHHiIII', 0xa1b2c3d4, 2, 4, 0, 0, 65535, link)
    for packet in packets:
        seen = packet[:cut]
        out += struct.pack('<4I', 0, 0, len(seen), len(packet)) + seen
    return out


def convert(capture, *args):
    with tempfile.NamedTemporaryFile(suffix='.pcap') as file:
        file.write(capture)
        file.flush()
        return subprocess.run([sys.argv[1], file.name, *args], capture_output=True, text=True)


def expect(what, capture, lines, *args):
    done = convert(capture, *args)
    assert done.returncode == 0, f'{what}: {done.stderr}'
    assert done.stdout.splitlines() == lines, f'{what}: {done.stdout!r} is not {lines}'


def main():
    one = query('www.Example.com', 1)
    opt = b'\0' + struct.pack('>HHIH', 41, 1232, 0x8000, 0)
    six = struct.pack('>6H', 7, 0x0100, 1, 0, 0, 1) + query('a.b', 28)[12:] + opt
    expect('plain, VLAN, two VLANs, IPv6, IPv4 options', pcap(ETHERNET, [
        ethernet(ipv4(udp(one))), ethernet(ipv4(udp(query('x', 16))), tags=[0x8100]),
        ethernet(ipv4(udp(query('y', 65))), tags=[0x88a8, 0x8100]), ethernet(ipv6(udp(six)), 0x86dd),
        ethernet(ipv4(udp(query('', 2)), options=bytes(8)))]),
        ['www.Example.com. A', 'x. TXT', 'y. HTTPS', 'a.b. AAAA', '. NS'])
    expect('other links', pcap(RAW, [ipv4(udp(one)), ipv6(udp(one))]), ['www.Example.com. A'] * 2)
    expect('cooked', pcap(SLL, [bytes(16) + ipv4(udp(one))]), ['www.Example.com. A'])
    expect('cooked, version 2', pcap(SLL2, [bytes(20) + ipv4(udp(one))]), ['www.Example.com. A'])
    expect('escapes and unknown types', pcap(RAW, [ipv4(udp(query('a b', 64000)))]), ['a\\032b. TYPE64000'])
    expect('another port', pcap(RAW, [ipv4(udp(one, 5300)), ipv4(udp(one))]), ['www.Example.com. A'], '5300')
    expect('not queries', pcap(ETHERNET, [
        ethernet(ipv4(udp(query('r', 1, 0x8180)))), ethernet(ipv4(udp(one), protocol=6)),
        ethernet(ipv4(udp(one), fragment=0x2000)), ethernet(ipv4(udp(one), fragment=100)),
        ethernet(ipv4(udp(one, length=4))), ethernet(ipv4(udp(one, length=4000))), ethernet(b'', 0x0806),
        ethernet(ipv4(b'')), ethernet(ipv6(udp(one), following=44), 0x86dd), b'', b'\0' * 13,
        ethernet(ipv4(udp(one[:20]))), ethernet(ipv4(udp(b'')))]), [])
    whole = ethernet(ipv4(udp(one)), tags=[0x8100])
    for cut in range(len(whole)):
        expect(f'cut after {cut} bytes', pcap(ETHERNET, [whole], cut), [])
    assert convert(b'no capture').returncode == 1
    assert subprocess.run([sys.argv[1]], capture_output=True).returncode == 2


main()
