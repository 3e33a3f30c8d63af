# SPDX-License-Identifier: GPL-2.0-or-later
"""`odp bench verbs`: the HCA against rxe in the same guest, and against the
host's memcpy. All measurements are interleaved, round after round."""

from odp import guest as guest_verb
from odp import machine, perf
from odp.cli import Parser
from odp.common import TOP, cache_dir, output, run, say

SUMMARY = 'HCA, rxe in the same guest and host memcpy: bandwidth and latency'

#: Three seconds of traffic, and the middle one counts: an ODP region's first
#: touch lies before it.
_WINDOW = ['-D', '3', '-f', '1']
#: name: (tool, device, flags). The same flags and depth for both devices.
WRITE_64K = ['-s', '65536', *_WINDOW]
WRITE_1M = ['-s', '1048576', *_WINDOW]
LAT_2 = ['-s', '2', '-n', '1000']
MEASURES = {
    'hca-write-64k': ('ib_write_bw', perf.HCA, WRITE_64K),
    'hca-write-64k-odp': ('ib_write_bw', perf.HCA, WRITE_64K + ['--odp']),
    'hca-write-1m': ('ib_write_bw', perf.HCA, WRITE_1M),
    'hca-write-1m-odp': ('ib_write_bw', perf.HCA, WRITE_1M + ['--odp']),
    'hca-read-64k': ('ib_read_bw', perf.HCA, WRITE_64K),
    'hca-write-lat-2': ('ib_write_lat', perf.HCA, LAT_2),
    'rxe-write-64k': ('ib_write_bw', perf.RXE, WRITE_64K),
    'rxe-write-lat-2': ('ib_write_lat', perf.RXE, LAT_2),
}
MEMCPY = 'host-memcpy-256m'

#: (what, numerator, denominator, at least?, goal)
RATIOS = [
    ('64 KiB write bandwidth, HCA / rxe', 'hca-write-64k', 'rxe-write-64k',
     True, 30),
    ('1 MiB write bandwidth, HCA / host memcpy', 'hca-write-1m', MEMCPY,
     True, 0.5),
    ('2-byte write latency, HCA / rxe', 'hca-write-lat-2', 'rxe-write-lat-2',
     False, 0.5),
    ('64 KiB write, ODP / pinned', 'hca-write-64k-odp', 'hca-write-64k',
     True, 0.95),
    ('1 MiB write, ODP / pinned', 'hca-write-1m-odp', 'hca-write-1m',
     True, 0.95),
]


def memcpy_program():
    exe = cache_dir('bench') / 'memcpy'
    src = TOP / 'bench/memcpy.c'
    if not exe.exists() or exe.stat().st_mtime < src.stat().st_mtime:
        run(['cc', '-O2', '-o', exe, src], quiet=True)
    return exe


def unit(name):
    return 'us' if '-lat-' in name else 'MiB/s'


def parser():
    p = Parser(prog='odp bench verbs', description=SUMMARY)
    p.add_argument('--rounds', type=int, default=7, metavar='N')
    p.add_argument('--iommu', default='none', choices=machine.IOMMUS)
    p.add_argument('--kernel', default='stock')
    p.add_argument('--cpu', default='max')
    p.add_argument('--qemu', metavar='BIN')
    p.add_argument('--hca-options', default='link=ib')
    return p


def report(samples):
    print(f'{"":20}{"unit":>6}  {"median":>9}  all rounds')
    for name, values in samples.items():
        print(f'{name:20}{unit(name):>6}  {perf.median(values):9.1f}  '
              + ' '.join(f'{v:.1f}' for v in values))
    print()
    missed = 0
    for what, top, bottom, at_least, goal in RATIOS:
        # Within a round, so that a machine that slows down does not show.
        ratio = perf.median([a / b for a, b in
                             zip(samples[top], samples[bottom])])
        met = ratio >= goal if at_least else ratio <= goal
        missed += not met
        print(f'{what:42} {ratio:9.3g}   goal {">=" if at_least else "<="} '
              f'{goal:<5} {"met" if met else "MISSED"}')
    return missed


def main(argv):
    """Always 0 when it could measure: a benchmark is no test."""
    opts = parser().parse_args(argv)
    args = ['--hca', '1', '--iommu', opts.iommu, '--kernel', opts.kernel,
            '--cpu', opts.cpu, '--hca-options', opts.hca_options]
    if opts.qemu:
        args += ['--qemu', opts.qemu]
    config = guest_verb.prepare(guest_verb.parser().parse_args(args))
    memcpy = memcpy_program()
    samples = {name: [] for name in [*MEASURES, MEMCPY]}
    with machine.Guest(config) as guest:
        guest.wait_ready()
        perf.setup_rxe(guest)
        for i in range(opts.rounds):
            say(f'round {i + 1} of {opts.rounds}')
            # There and back again, so that nobody is always the first.
            order = list(MEASURES.items())[::-1 if i % 2 else 1]
            for name, (tool, device, flags) in order:
                samples[name].append(perf.measure(guest, tool, device, flags))
            samples[MEMCPY].append(float(output([memcpy])))
    print(f'kernel {config.kernel.release}, iommu {opts.iommu}, cpu '
          f'{opts.cpu}, {opts.rounds} rounds')
    report(samples)
    return 0
