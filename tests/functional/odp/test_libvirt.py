#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# odp: minutes=5
"""The domain of docs/examples, run by the distribution's libvirt: the same
guest, the SMMUv3, the HCA, and ODP traffic on it."""

import subprocess
import unittest
import xml.etree.ElementTree as ET

import odptest
from odp import libvirt, machine
from odp.common import OdpError


class LibvirtGuest(odptest.TestGuest):
    """Started by virt-qemu-run in place of us."""

    def command(self):
        text = libvirt.fill(self.config.qemu, self.config.kernel.image,
                            self.dir / 'initrd')
        sockets = {f'odp.{p}': self.dir / p for p in machine.PORTS}
        domain = self.dir / 'domain.xml'
        domain.write_text(libvirt.add_ports(text, sockets,
                                            self.dir / 'console.log'))
        return libvirt.command(self.dir / 'libvirt', domain)


class Libvirt(odptest.GuestTest):
    hca = 1

    @classmethod
    def start_guest(cls):
        try:
            return odptest.boot(guest_class=LibvirtGuest, **cls.settings())
        except libvirt.Unavailable as why:
            raise unittest.SkipTest(str(why)) from why

    def test_devices(self):
        self.assertNotEqual(
            self.sh('ls /sys/kernel/iommu_groups').split(), [])
        self.assertIn('arm-smmu-v3', self.sh('dmesg'))
        self.assertIn('PORT_ACTIVE', self.sh('ibv_devinfo -d mlx5_0'))

    def test_odp_traffic(self):
        counters = ('for i in $(seq 20); do rdma statistic show mr; '
                    'sleep 0.1; done')
        out = self.sh(
            'ibv_rc_pingpong -d mlx5_0 -O -c -n 2000 -s 65536 '
            '>/tmp/server 2>&1 & server=$!\n'
            "for i in $(seq 300); do grep -q ':4853 .* 0A ' /proc/net/tcp "
            '/proc/net/tcp6 && break; sleep 0.1; done\n'
            f'({counters}) >/tmp/counters & \n'
            'ibv_rc_pingpong -d mlx5_0 -O -c -n 2000 -s 65536 127.0.0.1 '
            '|| exit 1\nwait $server || exit 1\nwait; cat /tmp/counters')
        self.assertIn('2000 iters in', out)
        self.assertNotIn('invalid data', out)
        self.assertRegex(out, r'page_faults [1-9]')


class Example(unittest.TestCase):
    """What the user gets to see."""

    def test_xml(self):
        p = subprocess.run([odptest.TOP / 'odp', 'libvirt-xml', '--name', 'a',
                            '--mem', '512M', '--smp', '3', '--kernel',
                            'stable', '--iommu', 'none'],
                           stdout=subprocess.PIPE, check=True, text=True)
        domain = ET.fromstring(p.stdout)
        self.assertEqual(domain.find('name').text, 'a')
        self.assertEqual(domain.find('memory').text, '512')
        self.assertEqual(domain.find('vcpu').text, '3')
        self.assertIsNone(domain.find('devices/iommu'))
        self.assertNotIn('/path/to', p.stdout)

    def test_needs_the_example(self):
        """A change of the example that the tool misses is an error."""
        self.assertRaises(OdpError, self._fill_broken)

    @staticmethod
    def _fill_broken():
        whole = libvirt.EXAMPLE
        try:
            libvirt.EXAMPLE = odptest.TOP / 'LICENSE'
            libvirt.fill('a', 'b', 'c')
        finally:
            libvirt.EXAMPLE = whole


odptest.main(__name__)
