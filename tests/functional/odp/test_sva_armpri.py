#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# odp: long minutes=60 kernel=sva-pri
"""Shared virtual addressing by page requests on the SMMUv3: with the kernel
patch of tests/guest/patches, an example of work on a driver."""

import odptest
from svatest import Keys, Lives, Moved, Sva, Tests


class Pri(Tests, Keys, odptest.GuestTest):
    kernel_name = 'sva-pri'
    smmu = ('oas=52', 'ssidsize=16', 'ats=on', 'pri=on')
    ats = True
    asked = 'smmuv3_pri_request'


class Kill(Lives, Sva, odptest.GuestTest):
    """The patch flushes the queue before the function leaves it, so the flaw
    that kills meet with stalls is not met."""
    kernel_name = 'sva-pri'
    smmu = Pri.smmu
    flaws = ('late-release',)

    def test_kill(self):
        self.many('kill', 200 if odptest.LONG else 20)


class MovedPri(Moved, Sva, odptest.GuestTest):
    """64 page requests in a snapshot."""
    kernel_name = 'sva-pri'
    smmu = Pri.smmu
    ats = True


odptest.main(__name__)
