#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# odp: long minutes=60 kernel=sva-16k kernel=sva-64k
"""Shared virtual addressing with pages of 16 and of 64 KiB, behind an SMMUv3
that stalls, with and without ATS."""

import odptest
from svatest import Moved, NoAts, Sva, Tests, WithAts


class Pages:
    rounds = 5000

    def test_pages(self):
        """The kernel is what it says."""
        thp = '/sys/kernel/mm/transparent_hugepage/hpage_pmd_size'
        self.assertEqual(
            self.sh('python3 -c "import mmap; print(mmap.PAGESIZE)"; '
                    f'cat {thp}').split(),
            [str(self.page << 10), str(self.huge << 10)])


class Sva16K(Pages, Sva):
    kernel_name = 'sva-16k'
    page = 16
    huge = 32 << 10
    huges = 4
    slot = 512


class Sva64K(Pages, Sva):
    kernel_name = 'sva-64k'
    page = 64
    huge = 512 << 10
    huges = 2
    slot = 512
    mem = '6G'


class Stall16K(NoAts, Sva16K, Tests, odptest.GuestTest):
    pass


class Ats16K(WithAts, Sva16K, Tests, odptest.GuestTest):
    pass


class MovedStall16K(NoAts, Moved, Sva16K, odptest.GuestTest):
    pass


class MovedAts16K(WithAts, Moved, Sva16K, odptest.GuestTest):
    pass


class Stall64K(NoAts, Sva64K, Tests, odptest.GuestTest):
    pass


class Ats64K(WithAts, Sva64K, Tests, odptest.GuestTest):
    pass


class MovedStall64K(NoAts, Moved, Sva64K, odptest.GuestTest):
    pass


class MovedAts64K(WithAts, Moved, Sva64K, odptest.GuestTest):
    pass


odptest.main(__name__)
