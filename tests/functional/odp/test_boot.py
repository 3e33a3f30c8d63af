#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian's kernels boot, unmodified, on every CPU and behind every IOMMU of
the matrix, without a complaint; soft RoCE works there."""
# odp: minutes=6

import odptest

RXE = '''set -e
modprobe -a rdma_rxe ib_uverbs rdma_ucm dummy
ip link show dummy0 >/dev/null 2>&1 || ip link add dummy0 type dummy
ip link set dummy0 mtu 9000 up
ip addr add 10.0.0.1/24 dev dummy0
rdma link add rxe0 type rxe netdev dummy0
'''


class Boot:
    """What is checked in every guest of the matrix."""

    want_iommu = None

    def test_system(self):
        release = self.sh('uname -r').strip()
        self.assertEqual(release, self.guest.release)
        self.assertEqual(release, self.guest.config.kernel.release)
        self.assertEqual(self.sh('nproc').strip(), str(self.smp))
        # What it boots is the package as Debian made it.
        self.assertEqual(self.sh('cat /proc/sys/kernel/tainted').strip(), '0')

    def test_iommu(self):
        groups = self.sh('ls /sys/kernel/iommu_groups').split()
        if self.want_iommu is None:
            self.assertEqual(groups, [])
            return
        self.assertNotEqual(groups, [])
        kind = self.sh('cat /sys/kernel/iommu_groups/*/type').split()
        self.assertEqual(set(kind), {self.want_iommu})

    def test_rxe(self):
        self.sh(RXE)
        out = self.sh('ibv_rc_pingpong -d rxe0 -g 1 -n 50 -s 4096 -c '
                      '>/tmp/server 2>&1 & sleep 2; '
                      'ibv_rc_pingpong -d rxe0 -g 1 -n 50 -s 4096 -c '
                      '127.0.0.1 && wait $!')
        self.assertIn('50 iters in', out)
        self.assertNotIn('invalid data', out)


# A device behind the IOMMU, so that there is a group.
DMA_DEVICE = ('-device', 'pcie-root-port,id=rp0,bus=pcie.0,chassis=1,slot=1',
             '-device', 'virtio-rng-pci,bus=rp0,iommu_platform=on')


class StableA57(Boot, odptest.GuestTest):
    kernel_name, cpu = 'stable', 'cortex-a57'


class StableMaxSmmu(Boot, odptest.GuestTest):
    kernel_name, iommu = 'stable', 'smmuv3'
    qemu_args = DMA_DEVICE
    want_iommu = 'DMA'


class StableA57Passthrough(Boot, odptest.GuestTest):
    kernel_name, cpu, iommu = 'stable', 'cortex-a57', 'smmuv3'
    append = ('iommu.passthrough=1',)
    qemu_args = DMA_DEVICE
    want_iommu = 'identity'


class StockMax(Boot, odptest.GuestTest):
    kernel_name = 'stock'


class StockA57Smmu(Boot, odptest.GuestTest):
    kernel_name, cpu, iommu = 'stock', 'cortex-a57', 'smmuv3'
    qemu_args = DMA_DEVICE
    want_iommu = 'DMA'


class StockMaxPassthrough(Boot, odptest.GuestTest):
    kernel_name, iommu = 'stock', 'smmuv3'
    append = ('iommu.passthrough=1',)
    qemu_args = DMA_DEVICE
    want_iommu = 'identity'


odptest.main(__name__)
