#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# odp: minutes=2
"""`odp bench mmu500`: the same numbers in every run, parameters that do what
they are for, and a machine that is told to take -icount."""

import subprocess
import unittest

import odptest
from odp import bench, build


class Time(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.bench = bench.load(bench.BENCH / 'mmu500.py')
        cls.qemu = build.emulator('aarch64')
        cls.results, cls.same = cls.bench.measure_all(cls.qemu, 2, 16)

    def mean(self, config, what, kib):
        return self.results[config][0][what, kib]['mean']

    def test_same_numbers(self):
        self.assertTrue(self.same)

    def test_faults(self):
        """Each page faults once, or each group that the handler maps."""
        for rows, counters in self.results.values():
            for (what, kib), row in rows.items():
                self.assertEqual(row['faults'], {
                    'fault': kib // 4, 'fault-around': kib // 64,
                    }.get(what, 0))
            self.assertEqual(counters['stalls'],
                             sum(r['faults'] for r in rows.values()))

    def test_pinned_is_cheapest(self):
        for config in self.results:
            for kib in 256, 1024, 4096:
                self.assertLess(self.mean(config, 'pinned', kib),
                                self.mean(config, 'fault-around', kib))
                self.assertLess(self.mean(config, 'fault-around', kib),
                                self.mean(config, 'fault', kib))

    def test_random_gains_nothing_from_prefetch(self):
        self.assertGreaterEqual(
            self.mean('prefetch-size=64K', 'random', 4096),
            self.mean('default', 'random', 4096))
        self.assertLess(self.mean('prefetch-size=64K', 'pinned', 4096),
                        self.mean('default', 'pinned', 4096))

    def test_wants_icount(self):
        out = subprocess.run(
            [self.qemu, '-machine', 'virt,iommu=mmu500', '-display', 'none',
             '-nodefaults', '-global', 'arm-mmu500.timing=on'],
            stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertEqual(out.returncode, 1)
        self.assertIn('add -icount', out.stderr)


odptest.main(__name__)
