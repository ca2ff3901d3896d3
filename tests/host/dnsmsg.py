# SPDX-License-Identifier: MIT
"""DNS messages for the tests: just enough to ask, to answer and to look closely, with the standard library only."""
import random
import struct

A, NS, CNAME, SOA, TXT, AAAA, OPT, DS, RRSIG, NSEC, DNSKEY = 1, 2, 5, 6, 16, 28, 41, 43, 46, 47, 48
IN = 1
NOERROR, SERVFAIL, NXDOMAIN, REFUSED = 0, 2, 3, 5
QR, AA, TC, RD, RA, AD, CD = 0x8000, 0x0400, 0x0200, 0x0100, 0x0080, 0x0020, 0x0010
DO = 0x8000
ECS, COOKIE, PADDING, EDE = 8, 10, 12, 15


class Malformed(Exception):
    pass


def wire_name(text):
    labels = [label.encode("latin-1") for label in text.rstrip(".").split(".") if label]
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"


def read_name(data, at):
    """Returns the name as text without the final dot, and where it ends. Follows compression pointers."""
    labels, end, hops = [], None, 0
    while True:
        if at >= len(data):
            raise Malformed("name runs past the end")
        length = data[at]
        if length >= 0xC0:
            if end is None:
                end = at + 2
            at = struct.unpack_from("!H", data, at)[0] & 0x3FFF
            hops += 1
            if hops > 100:
                raise Malformed("pointer loop")
        elif length == 0:
            return ".".join(labels), end if end is not None else at + 1
        else:
            labels.append(data[at + 1 : at + 1 + length].decode("latin-1"))
            at += 1 + length


class Record:
    def __init__(self, name, rtype, ttl, data, rclass=IN):
        self.name, self.type, self.ttl, self.data, self.rclass = name, rtype, ttl, data, rclass

    def wire(self):
        return wire_name(self.name) + struct.pack("!HHIH", self.type, self.rclass, self.ttl, len(self.data)) + self.data

    def __repr__(self):
        return f"{self.name or '.'} {self.ttl} {self.type} {self.data.hex()}"


def a(name, ttl, address="192.0.2.1"):
    return Record(name, A, ttl, bytes(int(part) for part in address.split(".")))


def txt(name, ttl, text):
    data = text.encode("latin-1")
    parts = [data[i : i + 255] for i in range(0, len(data), 255)] or [b""]
    return Record(name, TXT, ttl, b"".join(bytes([len(part)]) + part for part in parts))


def cname(name, ttl, target):
    return Record(name, CNAME, ttl, wire_name(target))


def soa(zone, ttl, minimum):
    data = wire_name("ns." + zone) + wire_name("mail." + zone) + struct.pack("!IIIII", 1, 7200, 3600, 86400, minimum)
    return Record(zone, SOA, ttl, data)


def rrsig(name, ttl, covered, signer="example", expires=0x7FFFFFFF):
    """Of the right form; nobody checks the signature."""
    fixed = struct.pack("!HBBIIIH", covered, 13, name.count(".") + 1, ttl, expires, 0, 4711)
    return Record(name, RRSIG, ttl, fixed + wire_name(signer) + b"\x55" * 64)


def nsec(name, ttl, following):
    return Record(name, NSEC, ttl, wire_name(following) + b"\x00\x01\x40")


def opt(size=1232, flags=0, options=(), ext_rcode=0):
    """options: pairs of code and bytes."""
    data = b"".join(struct.pack("!HH", code, len(value)) + value for code, value in options)
    return Record("", OPT, ext_rcode << 24 | flags, data, rclass=size)


class Message:
    def __init__(self, data):
        if len(data) < 12:
            raise Malformed("short header")
        self.data = data
        self.id, self.flags, *counts = struct.unpack_from("!6H", data)
        self.rcode = self.flags & 15
        at, self.questions, self.sections = 12, [], []
        for _ in range(counts[0]):
            name, at = read_name(data, at)
            self.questions.append((name, *struct.unpack_from("!HH", data, at)))
            at += 4
        self.question_wire = data[12:at]
        for count in counts[1:]:
            section = []
            for _ in range(count):
                name, at = read_name(data, at)
                rtype, rclass, ttl, length = struct.unpack_from("!HHIH", data, at)
                at += 10
                if at + length > len(data):
                    raise Malformed("rdata runs past the end")
                section.append(Record(name, rtype, ttl, data[at : at + length], rclass))
                at += length
            self.sections.append(section)
        if at != len(data):
            raise Malformed("trailing bytes")
        self.answer, self.authority, additional = self.sections
        self.additional = [record for record in additional if record.type != OPT]
        self.opts = [record for record in additional if record.type == OPT]

    @property
    def qname(self):
        return self.questions[0][0]

    @property
    def qtype(self):
        return self.questions[0][1]

    @property
    def opt(self):
        return self.opts[0] if self.opts else None

    @property
    def do(self):
        return bool(self.opts) and bool(self.opts[0].ttl & DO)

    @property
    def edns_options(self):
        """Pairs of code and bytes."""
        result, at = [], 0
        data = self.opts[0].data if self.opts else b""
        while at < len(data):
            code, length = struct.unpack_from("!HH", data, at)
            result.append((code, data[at + 4 : at + 4 + length]))
            at += 4 + length
        return result

    def types(self):
        return sorted(record.type for section in (self.answer, self.authority, self.additional) for record in section)

    def ttls(self):
        return [record.ttl for section in (self.answer, self.authority, self.additional) for record in section]


def query(name, qtype=A, flags=RD, edns=None, qclass=IN):
    """A query with a random id; edns is a Record from opt()."""
    header = struct.pack("!6H", random.randrange(65536), flags, 1, 0, 0, 1 if edns else 0)
    return header + wire_name(name) + struct.pack("!HH", qtype, qclass) + (edns.wire() if edns else b"")


def reply(to, answer=(), authority=(), additional=(), rcode=NOERROR, flags=RA, edns=None):
    """The response to a Message. Owner names equal to the question's, in any case, become pointers to it."""
    records = [*answer, *authority, *additional] + ([edns] if edns else [])
    counts = (1, len(answer), len(authority), len(additional) + (1 if edns else 0))
    data = struct.pack("!6H", to.id, QR | (to.flags & (RD | CD)) | flags | rcode, *counts) + to.question_wire
    for record in records:
        wire = record.wire()
        if record.name and record.name.lower() == to.qname.lower():
            wire = b"\xc0\x0c" + wire[len(record.name) + 2 :]
        data += wire
    return data
