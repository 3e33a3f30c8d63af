# SPDX-License-Identifier: GPL-2.0-or-later
"""`odp bench mmu500`: what DMA behind the MMU-500 costs in virtual time, with
the default parameters and with those that ExaNeSt recommends. A payload on
the bare machine (mmu500-payload.c) does the transfers and answers the faults;
instructions and translations take virtual time, so the host's load does not
show and every run gives the same numbers. That is checked: each
configuration runs twice."""

import json
import os
import socket
import subprocess
import tempfile
from pathlib import Path

from odp import build, guestprog
from odp.cli import Parser
from odp.common import OdpError, TOP, cache_dir, run, say

SUMMARY = 'MMU-500 in virtual time: pinned, faulting, parameters'

#: What ExaNeSt recommends, each by itself and all.
KNOBS = {
    'utlb-entries': '64',
    'tbu-queue-depth': '32',
    'ptw-parallelism': '16',
    'prefetch-size': '64K',
}
CONFIGS = {'default': {}, 'recommended': KNOBS,
           **{f'{k}={v}': {k: v} for k, v in KNOBS.items()}}

FLAGS = ['-O2', '-Wall', '-Wextra', '-Werror', '-ffreestanding', '-nostdlib',
         '-static', '-mstrict-align', '-mgeneral-regs-only', '-fno-builtin',
         '-fno-stack-protector', '-fno-pic', '-no-pie',
         '-Wl,-Ttext=0x40200000,--build-id=none']

#: Where the payload looks for how many pages the handler maps at a fault of
#: the measurement "fault-around".
AROUND_AT = 0x48000000

COUNTERS = ('utlb-hits', 'mtlb-hits', 'walks', 'descriptors', 'prefetches',
            'prefetch-hits', 'stalls', 'held', 'retries', 'queue-peak',
            'queue-waits', 'walks-peak', 'walk-waits', 'outstanding-peak')

LIMIT = 600


def payload():
    exe = cache_dir('bench') / 'mmu500-payload'
    src = TOP / 'bench/mmu500-payload.c'
    if not exe.exists() or exe.stat().st_mtime < src.stat().st_mtime:
        run([guestprog.compiler(), *FLAGS, '-o', exe, src], quiet=True)
    return exe


class Qmp:
    """Enough of it for two commands."""

    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(str(path))
        self.file = self.sock.makefile('rw')
        self.file.readline()
        self('qmp_capabilities')

    def __call__(self, command, **arguments):
        self.file.write(json.dumps({'execute': command,
                                    'arguments': arguments}) + '\n')
        self.file.flush()
        while True:
            answer = json.loads(self.file.readline())
            if 'return' in answer:
                return answer['return']
            if 'error' in answer:
                raise OdpError(f"{command}: {answer['error']['desc']}")


def measure(qemu, props, around):
    """(rows, counters) of one run. A row: (what, KiB): numbers."""
    with tempfile.TemporaryDirectory(prefix='odp-bench-') as tmp:
        qmp = Path(tmp) / 'qmp'
        cmd = [qemu, '-machine', 'virt,iommu=mmu500,gic-version=3',
               '-cpu', 'cortex-a57,cntfrq=1000000000',
               '-icount', 'shift=0,sleep=off', '-m', '1G', '-nodefaults',
               '-display', 'none', '-no-shutdown',
               '-chardev', f'file,id=out,path={tmp}/out', '-serial',
               'chardev:out', '-qmp', f'unix:{qmp},server=on,wait=off',
               '-device', 'pcie-exerciser,addr=1.0', '-kernel', payload(),
               '-device', f'loader,addr={AROUND_AT:#x},data={around},'
               'data-len=4', '-global', 'arm-mmu500.timing=on', '-S']
        for name, value in props.items():
            cmd += ['-global', f'arm-mmu500.{name}={value}']
        log = Path(tmp) / 'log'
        with open(log, 'wb') as err:
            proc = subprocess.Popen([str(c) for c in cmd], stdout=err,
                                    stdin=subprocess.DEVNULL, stderr=err)
        try:
            while not qmp.exists() and proc.poll() is None:
                os.sched_yield()
            if proc.poll() is not None:
                raise OdpError('QEMU did not start: ' + log.read_text())
            mon = Qmp(qmp)
            mon('cont')
            mon.sock.settimeout(LIMIT)
            while json.loads(mon.file.readline()).get('event') != 'SHUTDOWN':
                pass
            stats = mon('qom-get', path='/machine/mmu500', property='stats')
            mon('quit')
            proc.wait(60)
        finally:
            proc.kill()
            proc.wait()
        lines = (Path(tmp) / 'out').read_text().split('\n')
    if 'end' not in lines or any('error' in line for line in lines):
        raise OdpError('the payload failed:\n' + '\n'.join(lines))
    rows = {}
    for line in lines[:lines.index('end')]:
        name, kib, pages, mean, p99, total, faults = line.split()
        rows[name, int(kib)] = {
            'pages': int(pages), 'mean': int(mean), 'p99': int(p99),
            'total': int(total), 'faults': int(faults)}
    return rows, {k: stats[k] for k in COUNTERS}


def parser():
    p = Parser(prog='odp bench mmu500', description=SUMMARY)
    p.add_argument('--runs', type=int, default=2, metavar='N',
                   help='how often each configuration runs (default 2)')
    p.add_argument('--around', type=int, default=16, metavar='PAGES',
                   help='what the handler of "fault-around" maps (16)')
    p.add_argument('--qemu', metavar='BIN')
    p.add_argument('--json', action='store_true')
    return p


def measure_all(qemu, runs, around):
    """({config: (rows, counters)}, whether all runs agree)"""
    results = {}
    same = True
    for name, props in CONFIGS.items():
        say(f'{name}, {runs} runs')
        seen = [measure(qemu, props, around) for _ in range(runs)]
        same = same and all(s == seen[0] for s in seen)
        results[name] = seen[0]
    return results, same


def change(new, old):
    return f'{100 * new / old - 100:+.0f}%'


def report(results, same, runs, around):
    default, tuned = results['default'][0], results['recommended'][0]
    print(f'a page of 4 KiB, ns of virtual time; fault-around maps {around} '
          'pages at a fault')
    print(f'{"":13}{"KiB":>6}{"faults":>8}{"average: default":>18}'
          f'{"recommended":>13}{"":>7}{"p99: default":>14}{"recommended":>13}'
          f'{"":>7}')
    for key, row in default.items():
        new = tuned[key]
        print(f'{key[0]:13}{key[1]:6}{row["faults"]:8}{row["mean"]:18}'
              f'{new["mean"]:13}{change(new["mean"], row["mean"]):>7}'
              f'{row["p99"]:14}{new["p99"]:13}'
              f'{change(new["p99"], row["p99"]):>7}')
    print('\nthe whole buffer, ns: default, recommended')
    for key, row in default.items():
        print(f'{key[0]:13}{key[1]:6}{row["total"]:10}'
              f'{tuned[key]["total"]:10}')
    print('\naverages with one parameter changed')
    for name, (rows, _) in results.items():
        print(f'{name:20}' + ''.join(f'{rows[key]["mean"]:>8}'
                                     for key in default))
    print('\ncounters')
    for counter in COUNTERS:
        print(f'{counter:18}' + ''.join(f'{counters[counter]:>10}'
                                        for _, counters in results.values()))
    print(f'{"":18}' + ' '.join(results))
    print(f'\n{runs} runs of each: the numbers are '
          + ('the same' if same else 'NOT the same'))


def main(argv):
    opts = parser().parse_args(argv)
    qemu = opts.qemu or build.emulator('aarch64')
    results, same = measure_all(qemu, opts.runs, opts.around)
    if opts.json:
        print(json.dumps({
            'same': same,
            'configs': {name: {'rows': [{'what': k[0], 'kib': k[1], **row}
                                        for k, row in rows.items()],
                               'counters': counters}
                        for name, (rows, counters) in results.items()}},
            indent=1))
    else:
        report(results, same, opts.runs, opts.around)
    return 0 if same else 1
