#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: test_cost.py COST
What the largest and worst messages cost, kept or refused: instructions of sardine_insert(), counted by callgrind in the
program COST, which no busy machine changes. Skipped without valgrind."""
import shutil
import subprocess
import sys
import tempfile

# A millisecond or so: the worst message that is kept, 7.8 million, was measured to take 0.99 ms.
MOST = 9_000_000


def count(cost, message):
    with tempfile.TemporaryDirectory() as folder:
        said = subprocess.run(['valgrind', '--tool=callgrind', '--toggle-collect=sardine_insert',
                               f'--callgrind-out-file={folder}/out', cost, message],
                              check=True, timeout=300, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
        with open(f'{folder}/out') as file:
            total = next(int(line.split()[1]) for line in file if line.startswith('totals:'))
    print(f'{message:32} {total:10} {said}', end='', flush=True)
    return total


def b64_the_worst_messages_cost_little(cost):
    messages = subprocess.run([cost], check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    assert len(messages) > 5
    totals = [count(cost, message) for message in messages]
    assert 1000 < min(totals) and max(totals) < MOST, totals


if __name__ == '__main__':
    if not shutil.which('valgrind'):
        sys.exit(77)
    b64_the_worst_messages_cost_little(sys.argv[1])
