#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# odp: minutes=8 long-minutes=90 kernel=sva
"""Shared virtual addressing behind the SMMUv3, which stalls what is absent:
with and without ATS."""

import re

import odptest
from svatest import Giant, Keys, Lives, Moved, NoAts, Sva, Tests, WithAts


class Stall(NoAts, Tests, odptest.GuestTest):
    """Path 1: the SMMU suspends an untranslated access."""


class Ats(WithAts, Tests, Keys, odptest.GuestTest):
    """Path 2: ATS on top; what it does not grant is asked untranslated."""


class Kill(Lives, Sva, odptest.GuestTest):
    """Owners that go, in mid-fault too."""
    flaws = ('iopf-removal', 'late-release')

    def test_owner(self):
        """Their keys are worth nothing, under the next owner with the same
        PASID neither."""
        iters = 1000 if odptest.LONG else 4
        out = self.odp('owner', '--iters', iters, seconds=3600)
        reused = int(re.search(r'PASIDs reused: (\d+)', out)[1])
        self.assertEqual(reused, iters)

    def test_kill(self):
        self.many('kill', 1000 if odptest.LONG else 20)


class Unbind(Lives, Sva, odptest.GuestTest):
    """The driver taken away in mid-fault."""
    flaws = ('unbind-keeps-pasid', 'unbind-keeps-vectors', *Kill.flaws)

    def test_unbind(self):
        self.many('unbind', 200 if odptest.LONG else 6)

    def test_vectors(self):
        """A function with MSIs, which portals do not have."""
        out = self.sh('grep -l 0xed01 /sys/bus/pci/devices/*/device')
        self.try_sh(f'echo {out.split("/")[-2]} '
                    '>/sys/bus/pci/drivers/uio_pci_sva/unbind')
        bad = self.guest.bad_log_lines(self.allow_log, self.flaws)
        self.assertEqual(bad, [], bad and self.sh('dmesg | tail -n 60'))
        self.assertTrue(self.guest.met['unbind-keeps-vectors'])
        self.guest.restart()


class MovedStall(NoAts, Moved, Sva, odptest.GuestTest):
    """64 stalls in a snapshot."""


class MovedAts(WithAts, Moved, Sva, odptest.GuestTest):
    """The same with ATS on top."""


class GiantAts(WithAts, Giant, odptest.GuestTest):
    """One stall for 1 GiB."""


class Denied(Sva, odptest.GuestTest):
    """PRI on the SMMUv3: its driver denies."""
    smmu = ('oas=52', 'ssidsize=16', 'ats=on', 'pri=on')
    hca = 1
    ats = True
    allow_log = f'{Sva.allow_log}|PRI request'

    def test_denied(self):
        pci = self.portals[0]
        # Nobody enables the function's PRI: 16 credits, enable.
        self.sh(f'setpci -s {pci} 12c.l=10; setpci -s {pci} 124.w=1')
        self.assertIn('Enable+', self.sh(
            f'lspci -vvs {pci} | grep PRICtl'))
        out = self.odp('denied', '--iters', 20)
        self.assertIn('page requests 20, stalls 0, denied 20', out)
        self.assertIn('PRI request received', self.sh('dmesg'))


odptest.main(__name__)
