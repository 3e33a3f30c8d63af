#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# odp: minutes=14
"""odp-stress on the HCA: verbs traffic whose every byte is checked while the
memory under it is dropped, remapped, protected, forked, deregistered. Short
runs; with ODP_LONG the whole ones. Seeds are printed."""

import re

import odptest
from odp import guestprog

#: Iterations of a short run, per cent of a whole one.
SHARE = 100 if odptest.LONG else 10


def iters(whole):
    return max(1, whole * SHARE // 100)


class Stress:
    hca = 1

    @classmethod
    def setUpClass(cls):
        exe, place = guestprog.copies('odp-stress')[0]
        cls.copies = (f'{exe}:{place}',)
        super().setUpClass()

    def stress(self, args, seconds=3600 if odptest.LONG else 400):
        status, text = self.try_sh(f'odp-stress {args}', seconds)
        for line in text.splitlines():
            print(f'# {line}', flush=True)
        self.assertEqual(status, 0, text)
        return text

    def faulted(self, text):
        """Share of operations that faulted, in per cent."""
        found = re.search(r'pages faulted \d+ \(([\d.]+)%', text)
        self.assertIsNotNone(found, text)
        return float(found[1])

    def test_dontneed(self):
        text = self.stress(f'--mode dontneed --iters {iters(1000)} '
                           '--min-faulted 10')
        self.assertGreaterEqual(self.faulted(text), 10)

    def test_mix(self):
        self.faulted(self.stress(f'--mode mix --iters {iters(1000)}'))

    def test_mix_events(self):
        self.stress(f'--mode mix --iters {iters(300)} --events')

    def test_pinned(self):
        text = self.stress(f'--mode mix --iters {iters(20000)} --no-odp')
        # The driver counts faults of ODP regions only: there is none here.
        self.assertNotRegex(text, r'pages faulted [1-9]')

    def test_perm(self):
        self.stress('--mode perm --iters 1')

    def test_dereg(self):
        self.stress(f'--mode dereg --iters {iters(600)}')

    def test_storm(self):
        self.stress(f'--mode storm --iters {iters(200)} --threads 1 --qps 63')

    def test_pending(self):
        text = self.stress('--mode pending --pending 64')
        self.assertIn('holding 64', text)
        self.assertIn('64 operations completed, 0 wrong', text)


class StockMax(Stress, odptest.GuestTest):
    pass


class StockMaxSmmu(Stress, odptest.GuestTest):
    iommu = 'smmuv3'


class StableA57Smmu(Stress, odptest.GuestTest):
    kernel_name, cpu, iommu = 'stable', 'cortex-a57', 'smmuv3'


class StockMaxMmu500(Stress, odptest.GuestTest):
    iommu = 'mmu500'


if odptest.LONG:
    class StableA57Mmu500(StockMaxMmu500):
        kernel_name, cpu = 'stable', 'cortex-a57'


class Transport(Stress, odptest.GuestTest):
    """The other page fault scheme."""
    hca_options = 'link=ib,odp=transport'


odptest.main(__name__)
