#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# odp: minutes=4
"""A machine saved with 64 page faults pending, loaded in a fresh QEMU: all
operations complete, bytes right, each atomic once."""

import dataclasses
import tempfile
import unittest
from pathlib import Path

import odptest
from odp import guestprog

PENDING = 64


class Snapshot(unittest.TestCase):
    def check(self, iommu):
        if not odptest.has_device('mlx5-hca'):
            self.skipTest('this QEMU has no mlx5-hca')
        exe, place = guestprog.copies('odp-stress')[0]
        with tempfile.TemporaryDirectory() as tmp:
            state = Path(tmp) / 'state'
            first = odptest.boot(hca=1, iommu=iommu,
                                 copies=[f'{exe}:{place}'])
            try:
                first.sh('odp-stress --mode pending --timeout 120 '
                         f'--pending {PENDING} --release /tmp/go '
                         '>/tmp/out 2>&1 </dev/null &')
                self.assertIn(f'holding {PENDING}',
                              first.wait_out('holding', 'odp-stress', 120))
                first.save(state)
                config = first.config
            finally:
                first.stop()
            second = odptest.TestGuest(dataclasses.replace(
                config, qemu_args=config.qemu_args
                + ['-incoming', f'file:{state}']))
            try:
                second.start()
                second.go_on()
                self.assertNotIn('released', second.sh('cat /tmp/out'))
                second.sh('touch /tmp/go')
                out = second.wait_out('odp-stress pending:', 'odp-stress', 120)
                self.assertIn(f'released: {PENDING} operations completed, '
                              '0 wrong', out)
                self.assertIn('odp-stress pending: ok', out)
                # And it goes on working.
                second.sh('odp-stress --mode dontneed --iters 20')
                self.assertEqual(second.bad_log_lines(), [])
            finally:
                second.stop()

    def test_64_faults(self):
        self.check('none')

    def test_64_faults_smmu(self):
        self.check('smmuv3')


odptest.main(__name__)
