#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# odp: long minutes=60 x86_64
"""Shared virtual addressing behind the Intel IOMMU: ATS, and page requests for
what is absent. The kernel is Debian's as shipped, with the one driver that it
leaves out built from the same source."""

import odptest
from odp import intree, kernel
from svatest import Giant, Keys, Lives, Moved, Sva, Tests


class Intel(Sva):
    kernel_name = 'stock'
    iommu = 'intel'
    smmu = ()
    ats = True
    asked = 'pcie_pri_request'
    stopped = ()
    load = 'modprobe uio; insmod /root/uio_pci_generic_sva.ko'

    @classmethod
    def settings(cls):
        module = intree.build('drivers/uio/uio_pci_generic_sva.c',
                              kernel.find('stock', arch='amd64'))
        found = super().settings()
        found['copies'] = [*found['copies'], f'{module}:/root/{module.name}']
        return found


class Pri(Intel, Tests, Keys, odptest.GuestTest):
    """Path 3: page requests."""


class Kill(Lives, Intel, odptest.GuestTest):
    """Owners killed in mid-fault."""
    smmu = ()
    flaws = ('intel-lost-drain', 'late-release')

    def test_kill(self):
        self.many('kill', 200 if odptest.LONG else 20)


class GiantPri(Intel, Giant, odptest.GuestTest):
    """One page request for 1 GiB."""


class MovedPri(Moved, Intel, odptest.GuestTest):
    """64 page requests in a snapshot."""


odptest.main(__name__)
