#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# odp: minutes=3 long-minutes=20
"""Keys for a dma-buf, with udmabuf as its exporter: with relaxed ordering
mlx5_ib has the HCA translate by ATS."""

import re

import odptest
from odp import guestprog


class Dmabuf(odptest.GuestTest):
    iommu = 'smmuv3'
    hca = 1
    hca_options = 'link=ib,ats=on'
    qemu_args = ('-global', 'arm-smmuv3.ats=on')

    @classmethod
    def setUpClass(cls):
        cls.copies = [f'{exe}:{place}' for exe, place in
                      guestprog.copies('odp-sva')]
        super().setUpClass()

    def atc(self):
        got = self.guest.qmp('qom-get', path='/machine/peripheral/hca0',
                             property='fault-counters')['functions'][0]
        return got['atc-hits'] + got['atc-misses']

    def test_keys(self):
        self.assertRegex(self.sh('lspci -vvd 15b3:'), r'ATSCtl:\s+Enable\+')
        iters = 1000 if odptest.LONG else 20
        before = self.atc()
        out = self.sh(f'odp-sva dmabuf --iters {iters}', 1800)
        self.assertEqual(len(re.findall('^relaxed: ok$', out, re.M)), iters)
        self.assertGreater(self.atc() - before, iters * 256)


odptest.main(__name__)
