# SPDX-License-Identifier: MIT
"""What bench/ladder/run and bench/peers/run have in common: building, and what is said about the machine."""
import json
import os
import platform
import re
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(ROOT, 'build-release')


def progress(text, end=False):
    if sys.stderr.isatty():
        print(f'\r\033[K{text}', end='\n' if end else '', file=sys.stderr, flush=True)
    elif end:
        print(text, file=sys.stderr, flush=True)


def build(*purposes):
    steps = [[f'{ROOT}/tests/setup', 'build', *purposes], ['ninja', '-C', BUILD, '--quiet']]
    if not os.path.exists(f'{BUILD}/build.ninja'):
        steps.insert(1, ['meson', 'setup', BUILD, ROOT, '--buildtype', 'release', '-Dtests=false'])
    for step in steps:
        if subprocess.run(step, stdout=sys.stderr).returncode:
            sys.exit('failed: ' + ' '.join(step))


def commit():
    def git(*args):
        return subprocess.run(['git', '-C', ROOT, *args], capture_output=True, text=True).stdout.strip()
    changed = ' and changes' if git('status', '--porcelain', '--untracked-files=no') else ''
    return (git('rev-parse', '--short', 'HEAD') or 'unknown') + changed


def machine():
    cpu = re.search(r'model name\s*: (.*)', open('/proc/cpuinfo').read())
    memory = int(re.search(r'MemTotal:\s+(\d+)', open('/proc/meminfo').read()).group(1))
    return (f'{os.cpu_count()} x {cpu.group(1) if cpu else platform.machine()}, {memory / 2**20:.0f} GiB, '
            f'Linux {platform.release()}')


def about(options):
    """What every result begins with. The load tells how quiet the machine was."""
    return {'date': time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime()), 'commit': commit(), 'machine': machine(),
            'load_before': os.getloadavg()[0], 'options': options}


def heading(result):
    load = result['load_before']
    busy = '' if load < 0.7 else f'. **The machine was not idle**: load {load:.1f} before the run'
    return f"{result['date'][:10]}, {result['machine']}, commit {result['commit']}{busy}."


def markdown(rows):
    rows = [[str(cell) for cell in row] for row in rows]
    rows.insert(1, ['---'] * len(rows[0]))
    return '\n'.join('| ' + ' | '.join(row) + ' |' for row in rows)


def write(folder, name, result, text):
    with open(os.path.join(folder, name + '.json'), 'w') as file:
        json.dump(result, file, indent=2)
        file.write('\n')
    with open(os.path.join(folder, name + '.md'), 'w') as file:
        file.write(text)


def plot(folder, name, script, **variables):
    """Run gnuplot on a script with `data` (folder/name.dat), `out` and more set."""
    given = {'data': os.path.join(folder, name + '.dat'), 'out': os.path.join(folder, name + '.svg')} | variables
    setting = '; '.join(f'{key}={value!r}' if isinstance(value, str) else f'{key}={value}'
                        for key, value in given.items())
    subprocess.run(['gnuplot', '-e', setting, script], check=True)
