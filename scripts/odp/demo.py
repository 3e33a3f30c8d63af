# SPDX-License-Identifier: GPL-2.0-or-later
"""`odp demo`: a stock guest whose device takes page faults, in a screenful."""

import sys

from . import guest as guest_verb
from . import machine, perf
from .cli import Parser
from .common import OdpError, say

#: What is compared: (title, tool, flags, unit).
COMPARED = [
    ('write, 64 KiB', 'ib_write_bw', ['-s', '65536', '-n', '500'], 'MiB/s'),
    ('read, 64 KiB', 'ib_read_bw', ['-s', '65536', '-n', '500'], 'MiB/s'),
    ('write latency, 2 B', 'ib_write_lat', ['-s', '2', '-n', '500'], 'us'),
    ('send latency, 2 B', 'ib_send_lat', ['-s', '2', '-n', '500'], 'us'),
]


def parser():
    p = Parser(prog='odp demo', description='Boot a stock Debian arm64 guest '
               'and show on-demand paging on the HCA, and the HCA next to '
               'soft RoCE.')
    p.add_argument('--kernel', default='stock')
    p.add_argument('--iommu', default='smmuv3', choices=machine.IOMMUS)
    p.add_argument('--cpu', default='max')
    p.add_argument('--qemu', metavar='BIN')
    p.add_argument('--hca-options', default='link=ib')
    return p


def compare(guest):
    perf.setup_rxe(guest)
    print(f'\n{"in this guest, same perftest flags":36} {"HCA":>11} '
          f'{"rxe":>11}')
    for title, tool, flags, unit in COMPARED:
        hca, rxe = (perf.measure(guest, tool, d, flags)
                    for d in (perf.HCA, perf.RXE))
        print(f'{title + ", " + unit:36} {hca:11.1f} {rxe:11.1f}', flush=True)


def main(argv):
    opts = parser().parse_args(argv)
    args = ['--hca', '1', '--iommu', opts.iommu, '--kernel', opts.kernel,
            '--cpu', opts.cpu, '--hca-options', opts.hca_options,
            '--program', 'odp-demo']
    if opts.qemu:
        args += ['--qemu', opts.qemu]
    config = guest_verb.prepare(guest_verb.parser().parse_args(args))
    say('booting the guest')
    with machine.Guest(config) as guest:
        guest.wait_ready()

        def write(data):
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        print(f'guest   Debian arm64 kernel package {config.kernel.version}, '
              f'unmodified; cpu {opts.cpu}, iommu {opts.iommu}', flush=True)
        status = guest.run('odp-demo', stdout=write, stderr=write,
                           seconds=300)
        if status:
            raise OdpError(f'the transfer in the guest ended with status '
                           f'{status}')
        compare(guest)
    return 0
