#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# odp: long minutes=4 kernel=zdma
"""xlnx-zcu102 with the SoC's SMMU: the kernel's own dmatest moves data by ZDMA
through it, with unmodified source and the options that Debian leaves off."""

import re
import unittest

import odptest
import test_zcu102

ITERATIONS = 2000 if odptest.LONG else 50

INIT = """#!/usr/bin/busybox sh
export PATH=/usr/sbin:/usr/bin:/odp/bin
/usr/bin/busybox mkdir -p /odp/bin; /usr/bin/busybox --install -s /odp/bin
mount -t proc proc /proc; mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev 2>/dev/null
say() { echo "@ $*"; }
say release $(uname -r)
modprobe -a zynqmp_dma dmatest
for i in $(seq 100); do
    [ -e /sys/class/dma/dma2chan0 ] && break
    sleep 0.1
done
say channels $(ls /sys/class/dma)
cd /sys/module/dmatest/parameters
echo %d >iterations
echo 2 >threads_per_chan
echo "" >channel
say dmatest $(cat channel)
echo 1 >run
cat wait >/dev/null
for d in /sys/kernel/iommu_groups/*; do
    for m in $d/devices/*; do say group $(cat $d/type) ${m##*/}; done
done
dmesg | sed 's/^/@ dmesg /'
poweroff -f
""" % ITERATIONS


class Zdma(test_zcu102.Zcu102, unittest.TestCase):
    kernel_name = 'zdma'
    init = INIT
    limit = 240

    def test_dmatest(self):
        """Two GDMA channels and one ADMA, each byte checked by dmatest."""
        found = re.findall(r'dmatest: (dma\dchan0)-copy\d: summary (\d+) '
                           r'tests, (\d+) failures', self.dmesg())
        print(''.join(f'# {" ".join(f)}\n' for f in found), end='')
        self.assertEqual(sorted(found), sorted(
            (f'dma{i}chan0', str(ITERATIONS), '0') for i in range(3)
            for _ in range(2)))

    def test_behind_the_smmu(self):
        groups = {name: kind for kind, name in self.after('group')}
        for name in 'fd500000', 'fd510000', 'ffa80000':
            self.assertIn(groups[f'{name}.dma-controller'],
                          ('DMA', 'DMA-FQ'))
        for sid in 0x14e8, 0x14e9, 0x868:
            self.assertRegex(self.streams,
                             f'id {sid:#06x} mask 0x0000 translate bank')
        # A read, a write and two descriptors at least for each copy.
        self.assertGreater(self.stats['transactions'], 4 * 6 * ITERATIONS)
        self.assertEqual(self.stats['context-faults'], 0)
        self.assertEqual(self.stats['global-faults'], 0)


odptest.main(__name__)
