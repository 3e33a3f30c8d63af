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


#: Of the device, by QMP.
COUNTERS = ('odp-operations', 'odp-faults', 'odp-joined', 'odp-resumed',
            'odp-failed', 'odp-pending')


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

    def device_counter(self, name):
        return self.guest.qmp('qom-get', path='/machine/peripheral/hca0',
                              property=name)

    def test_dontneed(self):
        """At least one operation in ten faults, as the device counts them."""
        before = {name: self.device_counter(name) for name in COUNTERS}
        text = self.stress(f'--mode dontneed --iters {iters(1000)} '
                           '--min-faulted 10')
        self.assertGreaterEqual(self.faulted(text), 10)
        after = {name: self.device_counter(name) for name in COUNTERS}
        used = {name: after[name] - before[name] for name in COUNTERS}
        done = re.search(r'operations (\d+), completed (\d+)', text)
        self.assertEqual(done[1], done[2], text)
        print(f'# of {done[1]} operations, by the device: {used}')
        self.assertGreaterEqual(used['odp-operations'], int(done[1]) / 10)
        # Each of these waited for an event: its own or another's.
        self.assertLessEqual(used['odp-operations'],
                             used['odp-faults'] + used['odp-joined'])
        self.assertLessEqual(used['odp-operations'], int(done[1]))
        # Nothing was refused, nothing is left.
        self.assertEqual(used['odp-failed'], 0)
        self.assertEqual(after['odp-pending'], 0)

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
    """The other page fault scheme. With 48-bit addresses: here the driver
    gives up a fault that takes it a second, and with more address bits the
    children of implicit MRs are so large that a loaded guest needs that."""
    hca_options = 'link=ib,odp=transport'
    cpu = 'cortex-a57'


odptest.main(__name__)
