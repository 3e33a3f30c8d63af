#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# odp: minutes=14
"""The distribution's own verbs programs on the HCA: pingpongs and perftest,
pinned and on demand, on the stable and the newest stock kernel, behind both
SMMUs. Long runs take the stable kernel behind the MMU-500 too."""

import re

import odptest
from odp import perf


class Verbs:
    hca = 1

    def pingpong(self, name, flags):
        """A pingpong with itself over the first HCA; -c checks the bytes."""
        cmd = f'ibv_{name}_pingpong -d {perf.HCA} {flags}'
        out = self.sh(f'{cmd} >/tmp/server 2>&1 & server=$!\n'
                      f'{perf.LISTENING}'
                      f'{cmd} 127.0.0.1 || {{ cat /tmp/server; exit 1; }}\n'
                      'wait $server')
        self.assertRegex(out, r'\d+ iters in')
        self.assertNotIn('invalid data', out)
        return out

    def perf(self, tool, *flags):
        value = perf.measure(self.guest, tool, perf.HCA, list(flags))
        self.assertGreater(value, 0)
        return value

    def test_devinfo(self):
        out = self.sh(f'ibv_devinfo -v -d {perf.HCA}')
        self.assertIn('PORT_ACTIVE', out)
        self.assertRegex(out, r'vendor_id:\s+0x02c9')
        self.assertIn('ODP_SUPPORT', out)
        self.assertIn('SUPPORT_RECV', out)

    def test_rc_pingpong(self):
        self.pingpong('rc', '-c -n 200 -s 65536')

    def test_rc_pingpong_events(self):
        self.pingpong('rc', '-c -e -n 100 -s 4096')

    def test_rc_pingpong_odp(self):
        self.pingpong('rc', '-c -o -n 200 -s 65536')

    def test_rc_pingpong_implicit(self):
        self.pingpong('rc', '-c -O -n 200 -s 65536')

    def test_rc_pingpong_prefetch(self):
        self.pingpong('rc', '-c -O -P -n 200 -s 65536')

    def test_uc_pingpong(self):
        self.pingpong('uc', '-c -n 200 -s 4096')

    def test_ud_pingpong(self):
        self.pingpong('ud', '-c -n 200 -s 2048')

    def test_srq_pingpong(self):
        self.pingpong('srq', '-c -n 200 -q 8')

    def test_bandwidth(self):
        for tool in ('ib_write_bw', 'ib_read_bw', 'ib_send_bw'):
            for odp in ([], ['--odp']):
                with self.subTest(tool=tool, odp=odp):
                    self.perf(tool, '-s', '65536', '-n', '200', *odp)

    def test_bandwidth_several_qps(self):
        self.perf('ib_write_bw', '-s', '8192', '-n', '200', '-q', '8')

    def test_bandwidth_datagram(self):
        self.perf('ib_send_bw', '-c', 'UD', '-s', '2048', '-n', '200')

    def test_latency(self):
        for tool in ('ib_write_lat', 'ib_read_lat', 'ib_send_lat',
                     'ib_atomic_lat'):
            flags = ['-n', '200'] + ([] if 'atomic' in tool else ['-s', '2'])
            with self.subTest(tool=tool):
                self.perf(tool, *flags)

    def test_fault_counters(self):
        """`rdma statistic` shows faults of an ODP region while it lives."""
        out = self.sh(
            f'ibv_rc_pingpong -d {perf.HCA} -O -n 20000 >/tmp/server 2>&1 &\n'
            'sleep 1; '
            f'ibv_rc_pingpong -d {perf.HCA} -O -n 20000 127.0.0.1 '
            '>/tmp/client 2>&1 &\n'
            'for i in $(seq 50); do rdma statistic show mr; sleep 0.1; done; '
            'wait')
        faults = [int(n) for n in re.findall(r'page_faults (\d+)', out)]
        self.assertTrue(faults and max(faults) > 0, out)


class StockMax(Verbs, odptest.GuestTest):
    pass


class StableA57Smmu(Verbs, odptest.GuestTest):
    kernel_name, cpu, iommu = 'stable', 'cortex-a57', 'smmuv3'


class StockMaxPassthrough(Verbs, odptest.GuestTest):
    iommu = 'smmuv3'
    append = ('iommu.passthrough=1',)


class StockMaxMmu500(Verbs, odptest.GuestTest):
    iommu = 'mmu500'


if odptest.LONG:
    class StableA57Mmu500(StockMaxMmu500):
        kernel_name, cpu = 'stable', 'cortex-a57'


odptest.main(__name__)
