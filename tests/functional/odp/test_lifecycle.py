#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# odp: minutes=8
"""The HCA comes and goes: probe, driver unbound and bound, modules removed
and loaded, function reset, hot unplug and plug, guest restarts, processes
killed in the middle of faults, several HCAs. After each the device works."""

import os
import random
import time

import odptest
from hcatest import GONE, Base

SEED = int(os.environ.get('ODP_SEED') or random.randrange(1 << 32))


class Lifecycle(Base):
    def test_probe(self):
        bdf = self.bdf()
        driver = self.sh(f'readlink /sys/bus/pci/devices/{bdf}/driver')
        self.assertIn('mlx5_core', driver)
        self.assertIn('state ACTIVE', self.sh('rdma link show'))
        log = self.sh('dmesg | grep mlx5 | grep -v mlx5_pci_vsc_init')
        self.assertNotRegex(log, r'(?i)\b(err|error|failed|timeout)\b')
        self.assertEqual(self.sh('cat /proc/sys/kernel/tainted').strip(), '0')
        self.traffic()

    def test_unbind_bind(self):
        bdf = self.bdf()
        for _ in range(10 if odptest.LONG else 3):
            self.sh(f'cd /sys/bus/pci/drivers/mlx5_core; echo {bdf} >unbind; '
                    '! ls /sys/class/infiniband/mlx5_0 2>/dev/null; '
                    f'echo {bdf} >bind')
            self.wait_device()
        self.traffic()

    def test_unbind_in_traffic(self):
        self.allow(GONE)
        bdf = self.bdf()
        self.sh('odp-stress --mode dontneed --iters 100000 --timeout 100 '
                '>/tmp/out 2>&1 </dev/null & echo $! >/tmp/pid; sleep 2')
        self.sh('kill -0 $(cat /tmp/pid)')
        self.sh(f'echo {bdf} >/sys/bus/pci/drivers/mlx5_core/unbind')
        self.sh('kill -9 $(cat /tmp/pid); true')
        self.sh(f'echo {bdf} >/sys/bus/pci/drivers/mlx5_core/bind')
        self.wait_device()
        self.traffic()

    def test_modules(self):
        for _ in range(2):
            self.sh('rmmod mlx5_ib && rmmod mlx5_core && '
                    '! ls /sys/class/infiniband/mlx5_0 2>/dev/null && '
                    'modprobe -a mlx5_core mlx5_ib')
            self.wait_device()
        self.traffic()

    def test_kill(self):
        """Processes killed at random moments of traffic that faults: nothing
        stays behind and the device goes on."""
        rng = random.Random(SEED)
        print(f'# seed {SEED} (ODP_SEED)')
        # The driver makes its UMR queue pair's CQ with the first region.
        self.traffic()
        before = self.sh('rdma resource show')
        for _ in range(200 if odptest.LONG else 8):
            delay = rng.uniform(0.3, 2.5)
            mode = rng.choice(('dontneed', 'mix', 'storm'))
            self.sh(f'odp-stress --mode {mode} --iters 1000000 --timeout 100 '
                    '>/tmp/out 2>&1 </dev/null & pid=$!; '
                    f'sleep {delay:.2f}; kill -9 $pid; wait $pid; true')
        self.resources(before)
        self.traffic()

    def test_function_reset(self):
        bdf = self.bdf()
        methods = self.sh(f'cat /sys/bus/pci/devices/{bdf}/reset_method '
                          '2>/dev/null; true').split()
        self.assertIn('flr', methods)
        self.sh(f'echo {bdf} >/sys/bus/pci/drivers/mlx5_core/unbind; '
                f'echo flr >/sys/bus/pci/devices/{bdf}/reset_method; '
                f'echo 1 >/sys/bus/pci/devices/{bdf}/reset && '
                f'echo {bdf} >/sys/bus/pci/drivers/mlx5_core/bind')
        self.wait_device()
        self.traffic()

    def test_restart(self):
        # In the middle of traffic, by the machine's own reset.
        self.sh('odp-stress --mode dontneed --iters 1000000 --timeout 100 '
                '>/dev/null 2>&1 </dev/null & sleep 1')
        self.guest.restart()
        self.wait_device()
        self.traffic()
        # And by the guest itself.
        self.guest.restart_by('reboot -f')
        self.wait_device()
        self.traffic()

    def unplug(self):
        self.guest.qmp('device_del', id='hca0')
        self.guest.qmp.wait_event('DEVICE_DELETED', 90)
        # pciehp gives a slot a second to lose its power, and overlooks what
        # is plugged in meanwhile.
        self.sh('sleep 4')

    def plug(self):
        self.guest.qmp('device_add', driver='mlx5-hca', id='hca0',
                       bus='odp-port0', link='ib')
        self.wait_device()

    def test_hotplug(self):
        self.unplug()
        self.assertEqual(self.sh('ls /sys/class/infiniband').strip(), '')
        self.plug()
        self.traffic()

    def test_unplug_in_traffic(self):
        self.allow(GONE)
        self.sh('odp-stress --mode dontneed --iters 1000000 --timeout 100 '
                '>/dev/null 2>&1 </dev/null & echo $! >/tmp/pid; sleep 1')
        self.unplug()
        self.sh('kill -9 $(cat /tmp/pid); true')
        self.plug()
        self.traffic()


class StockSmmu(Lifecycle, odptest.GuestTest):
    iommu = 'smmuv3'

    def test_kill_pending(self):
        self.kill_pending(uffd=True)


class StablePending(Base, odptest.GuestTest):
    """By FUSE, as the newest stock kernel cannot: tests/kernel-flaws.txt,
    hmm-read-error."""

    kernel_name, cpu = 'stable', 'cortex-a57'
    iommu = 'smmuv3'

    def test_kill_pending(self):
        self.kill_pending(uffd=False)


if odptest.LONG:
    class StableA57(Lifecycle, odptest.GuestTest):
        kernel_name, cpu = 'stable', 'cortex-a57'


class Several(odptest.GuestTest):
    """Three HCAs on one fabric."""

    hca = 3
    iommu = 'smmuv3'

    wait_device = Base.wait_device
    traffic = Base.traffic

    def test_fabric(self):
        names = [f'mlx5_{i}' for i in range(self.hca)]
        lids = set()
        for name in names:
            self.wait_device(name)
            lids.add(self.sh(f'cat /sys/class/infiniband/{name}/ports/1/lid'))
        self.assertEqual(len(lids), self.hca)
        for a, b in ((0, 1), (1, 2), (2, 0)):
            start = time.monotonic()
            self.traffic(names[a], names[b])
            print(f'# {names[a]} to {names[b]}: '
                  f'{time.monotonic() - start:.1f} s')

    def test_one_goes(self):
        """The others do not notice."""
        for name in ('mlx5_0', 'mlx5_1', 'mlx5_2'):
            self.wait_device(name)
        self.guest.qmp('device_del', id='hca1')
        self.guest.qmp.wait_event('DEVICE_DELETED', 90)
        self.traffic('mlx5_0', 'mlx5_2')


odptest.main(__name__)
