#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Which test holds which rule. Rules B01..B91 are what operators have asked of packet caches; a test that holds one
is named after it (b26_case_is_the_clients; several ids in front mean several rules).

usage: rules.py            compare tests/RULES.md with the sources; exit status 1 if it is not up to date
       rules.py --write    write it
"""
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).parent

# In a few words. The groups are those of the contract.
GROUPS = [
    ('A: what splits the cache', [
        ('B01', 'equal hashes with other flags do not share'),
        ('B02', 'the question is compared in full, the hash is keyed'),
        ('B03', 'client subnets that collide do not share'),
        ('B04', "RD and CD of a reply are the client's; one key for lookup and insert"),
        ('B05', 'RD is part of the key'),
        ('B06', 'data fetched with CD=1 never answers CD=0'),
        ('B07', 'AD is stored once and shown to those who understand it'),
        ('B08', 'AA and RA are replayed'),
        ('B09', 'one truth with and without EDNS'),
        ('B10', 'cookies do not split'),
        ('B11', 'no cookie travels from client to client'),
        ('B12', 'ignored options are ignored whole'),
        ('B13', 'unknown options split only if the operator says so'),
        ('B14', 'the UDP size is not identity'),
        ('B15', 'one entry for all transports; no truncated answer on a stream'),
        ('B16', 'how the answer was fetched does not matter'),
        ('B17', 'the key comes from one function'),
        ('B18', 'an answer serves its whole ECS scope'),
        ('B19', 'subnet answers are found while backends are down'),
        ('B20', 'the longest scope wins, variants live apart'),
        ('B21', "a refresh is the variant's own"),
        ('B22', 'scoped negatives stay in their scope'),
        ('B23', 'no ECS option travels from client to client'),
        ('B24', 'tags keep tenants apart, option order does not matter'),
        ('B25', 'only plain questions are cached'),
        ('B26', "letter case is the client's in the question, the upstream's elsewhere"),
        ('B27', "waiting callers are told apart as the cache's entries are"),
    ]),
    ('B: lifetimes, negative, failed and stale answers', [
        ('B28', 'no TTL 0 from a fresh entry, TTL 0 is not kept'),
        ('B29', 'answers without records'),
        ('B30', 'failures have their own, capped life'),
        ('B31', "negative life is bounded by the SOA's MINIMUM"),
        ('B32', 'negative answers without SOA are not kept'),
        ('B33', 'all caps hold for negative answers'),
        ('B34', 'OPT has no TTL'),
        ('B35', 'clock steps'),
        ('B36', 'ageing can be off'),
        ('B37', 'stale answers after a failure or time-out, with back-off'),
        ('B38', 'stale data never keeps fresh data out'),
        ('B39', 'the operator says what may be stale'),
        ('B40', 'fresh negatives displace stale positives'),
        ('B41', 'failures never hide usable data'),
        ('B42', "a message lives as long as the shortest RRset in it"),
        ('B43', 'the stale TTL is never above the original'),
        ('B44', 'odd TTLs; chains count whole; signatures end a life'),
    ]),
    ('C: DNSSEC', [
        ('B45', 'DO data serves both and is not lost to a fetch without DO'),
        ('B46', 'signatures go to those who asked'),
        ('B47', 'one body for DO and without'),
        ('B48', 'extended errors are stored with the answer'),
    ]),
    ('D: size', [
        ('B49', 'no reply exceeds what the client takes'),
        ('B50', 'bare TC answers: off by default, never for streams'),
        ('B51', 'partial answers are not kept'),
        ('B52', 'anything stored can be had, anything refused is counted'),
        ('B53', 'counts must match content'),
    ]),
    ('E: EDNS', [
        ('B54', 'an OPT for those who sent one'),
        ('B55', 'and none for others'),
        ('B56', 'versions and extended rcodes'),
        ('B57', 'EDE on stale answers, padding for this client'),
    ]),
    ('F: hostile input', [
        ('B58', 'crafted OPTs'),
        ('B59', 'bad rdata is never stored'),
        ('B60', 'what one side ignores and the other honours bypasses'),
        ('B61', 'odd configurations, use under load'),
        ('B62', "other names' records answer nothing"),
        ('B63', 'answers to other questions are refused'),
        ('B64', 'cost is bounded: pointer chains, networks of a name, collisions'),
        ('B65', 'sections and order are kept'),
    ]),
    ('G: eviction', [
        ('B66', 'a full cache takes new answers'),
        ('B67', 'hot entries stay, expired ones can be renewed'),
        ('B68', 'limits hold in every order of requests'),
        ('B69', 'removal does not stop lookups'),
        ('B70', 'what was purged stays purged'),
        ('B71', 'newer wins, also with a shorter TTL'),
    ]),
    ('H: memory', [
        ('B72', 'the budget in bytes holds'),
        ('B73', 'nearly all of the nominal capacity is usable'),
    ]),
    ('I: seeing and removing', [
        ('B74', 'counters add up'),
        ('B75', 'the host hears what it sent'),
        ('B76', 'walking with filters'),
        ('B77', 'removal takes every variant and nothing else'),
        ('B78', 'negative answers keep their SOA'),
    ]),
    ('J: refresh, waiting, order', [
        ('B79', 'one caller is asked to refresh'),
        ('B80', 'one asks upstream, the others wait'),
        ('B81', 'record order: stable, or turned'),
    ]),
    ('K: threads', [
        ('B82', 'readers are never refused'),
        ('B83', 'maintenance terminates, is free of races'),
    ]),
    ('L: persistence', [
        ('B84', 'snapshots'),
        ('B85', 'imported data is validated'),
        ('B86', 'sharing between instances'),
        ('B87', 'warm-up lists'),
    ]),
    ('M: policy', [
        ('B88', 'cache-only lookups'),
        ('B89', 'store one version, deliver another'),
        ('B90', 'purge by suffix list and by content'),
        ('B91', 'options mean what they say'),
    ]),
]

# What has no test of its own, and why.
NOTES = {
    'B17': '`cache_key()` is the only place that makes a key from a query; the token carries it to the insert. '
           'Every test that fills and then hits goes through it.',
}

NAME = re.compile(r'\b(?:test_)?((?:b\d\d_)+[a-z0-9_]+)\b')


def tests():
    """Rule id -> sorted 'folder/file: function'."""
    found = {}
    for path in sorted(HERE.rglob('*')):
        if path.suffix not in ('.c', '.py', '.lua') or path.name == 'rules.py':
            continue
        text = path.read_text(errors='replace')
        for name in set(NAME.findall(text)):
            defined = re.search(r'(static void |def (?:test_)?|function test\.)' + name + r'\(', text)
            if not defined:
                continue
            for rule in re.match(r'(?:b\d\d_)+', name).group(0).rstrip('_').split('_'):
                found.setdefault(rule.upper(), set()).add((str(path.relative_to(HERE)), name))
    return found


def table():
    found = tests()
    lines = ['# From rule to test', '',
             'Written by `tests/rules.py --write`; a test compares it with the sources.', '']
    for group, rules in GROUPS:
        lines += ['## ' + group, '', '| rule | what | tests |', '|---|---|---|']
        for rule, what in rules:
            by_file = {}
            for path, name in sorted(found.pop(rule, ())):
                by_file.setdefault(path, []).append('`' + name + '`')
            cell = '; '.join(path + ': ' + ', '.join(names) for path, names in by_file.items())
            cell = '. '.join(part for part in (cell, NOTES.get(rule)) if part)
            lines.append('| {} | {} | {} |'.format(rule, what, cell or '**none**'))
        lines.append('')
    if found:
        sys.exit('rules.py: tests for rules that do not exist: ' + ', '.join(sorted(found)))
    return '\n'.join(lines)


def main():
    page = HERE / 'RULES.md'
    text = table()
    if '--write' in sys.argv[1:]:
        page.write_text(text)
    elif not page.exists() or page.read_text() != text:
        sys.exit('tests/RULES.md is not up to date: run tests/rules.py --write')
    missing = re.findall(r'\| (B\d\d) .*\*\*none\*\*', text)
    if missing:
        sys.exit('no test and no note: ' + ' '.join(missing))


main()
