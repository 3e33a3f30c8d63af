#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# odp: minutes=3 long-minutes=20 kernel=stock-16k
"""Pages of 16 KiB: Debian's own kernel of that kind, on-demand paging of the
device, behind an SMMU and (in long runs) without one."""

import odptest
from odp import guestprog


class Pages16K(odptest.GuestTest):
    kernel_name = 'stock-16k'
    iommu = 'smmuv3'
    hca = 1

    @classmethod
    def setUpClass(cls):
        cls.copies = [f'{exe}:{place}' for exe, place in
                      guestprog.copies('odp-stress')]
        super().setUpClass()

    def test_stress(self):
        self.assertEqual(self.sh('python3 -c "import mmap; '
                                 'print(mmap.PAGESIZE)"'), '16384\n')
        iters = 1000 if odptest.LONG else 50
        for mode in 'dontneed', 'mix':
            out = self.sh(f'odp-stress --mode {mode} --iters {iters}', 1800)
            print(''.join(f'# {line}\n' for line in out.splitlines()[-2:]),
                  end='', flush=True)
            self.assertIn(f'odp-stress {mode}: ok', out)


if odptest.LONG:
    class Pages16KBare(Pages16K):
        iommu = 'none'


odptest.main(__name__)
