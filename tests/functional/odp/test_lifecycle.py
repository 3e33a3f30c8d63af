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
from odp import guestprog

SEED = int(os.environ.get('ODP_SEED') or random.randrange(1 << 32))

#: What mlx5_core says when its device is taken away under way.
GONE = (r'mlx5_core .*(mlx5_cmd|cmd_|wait_func|health|poll_health|'
        r'Failed to|failed|synd)|infiniband mlx5_')

PINGPONG = '''
# pair SERVER-DEVICE CLIENT-DEVICE FLAGS PORT
# The server listens when it has said so.
pair() {
    timeout 60 ibv_rc_pingpong -d $1 -p $4 -c -n 100 -s 65536 $3 \
        >/tmp/server 2>&1 & server=$!
    port=$(printf %04X $4)
    for i in $(seq 300); do
        grep -q ":$port .* 0A " /proc/net/tcp /proc/net/tcp6 && break
        kill -0 $server || break
        sleep 0.1
    done
    timeout 60 ibv_rc_pingpong -d $2 -p $4 -c -n 100 -s 65536 $3 127.0.0.1 \
        || { cat /tmp/server; exit 1; }
    wait $server || { cat /tmp/server; exit 1; }
}
'''


class Base:
    """A guest with an HCA that works before each test."""

    hca = 1
    reboot = True
    # Linux 7.3 suspends an empty root port and turns its hot-plug interrupt
    # off; QEMU's root port sends no PME when a device comes.
    append = ('pcie_port_pm=off',)

    @classmethod
    def setUpClass(cls):
        exe, place = guestprog.copies('odp-stress')[0]
        cls.copies = (f'{exe}:{place}',)
        super().setUpClass()

    def setUp(self):
        super().setUp()
        try:
            self.wait_device(seconds=20)
        except AssertionError:
            # What the last test left must not fail this one.
            self.guest.stop()
            super().setUp()
            self.wait_device()

    def wait_device(self, name='mlx5_0', seconds=60):
        """Until the port is active again."""
        self.sh(f'for i in $(seq {seconds * 10}); do\n'
                f'  ibv_devinfo -d {name} 2>/dev/null | grep -q PORT_ACTIVE '
                '&& exit 0\n  sleep 0.1\ndone\n'
                f'ibv_devinfo; dmesg | tail -20; exit 1')

    def traffic(self, a='mlx5_0', b='mlx5_0'):
        """A pinned and an on-demand transfer with every byte checked."""
        for flags in ('', '-o'):
            out = self.sh(f'{PINGPONG}\npair {a} {b} "{flags}" 18515')
            self.assertIn('100 iters in', out)
            self.assertNotIn('invalid data', out)

    def bdf(self, index=0):
        return self.sh('grep -l 0x15b3 /sys/bus/pci/devices/*/vendor'
                       ).split()[index].split('/')[-2]

    def kill_pending(self, *, uffd):
        """Killed with 64 faults waiting, on pages of the process's own
        userfaultfd or of a file system whose server dies with it. (One that
        lives and does not answer keeps a process for ever: the faults hold
        its address space, and closing the device waits for them.)"""
        self.traffic()
        before = self.sh('rdma resource show')
        self.sh('odp-stress --mode pending --pending 64 --timeout 100 '
                f'{"--uffd" if uffd else ""} '
                '--release /tmp/never >/tmp/out 2>&1 </dev/null & '
                'echo $! >/tmp/pid; for i in $(seq 300); do '
                'grep -q holding /tmp/out && exit 0; sleep 0.1; done; '
                'cat /tmp/out; exit 1')
        self.assertIn('holding 64', self.sh('cat /tmp/out'))
        pending = self.guest.qmp('qom-get', path='/machine/peripheral/hca0',
                                 property='odp-pending')
        self.assertEqual(pending, 64)
        # Not ps: it would wait for the address space, too.
        self.sh('pid=$(cat /tmp/pid); server=$(cat /proc/$pid/task/*/children)'
                f'; [ {"-z" if uffd else "-n"} "$server" ] || exit 1; '
                'kill -9 $server $pid; '
                'for i in $(seq 300); do kill -0 $pid 2>/dev/null || exit 0; '
                'sleep 0.1; done; cat /proc/$pid/stack; exit 1', 120)
        self.resources(before)
        self.traffic()

    def resources(self, before):
        """Until `rdma resource show` says again what it said."""
        # Spaces do not count: some versions end the line with one.
        self.sh('for i in $(seq 100); do '
                '[ "$(echo $(rdma resource show))" = "'
                f'{" ".join(before.split())}" ] && exit 0; sleep 0.1; done; '
                'rdma resource show; exit 1')

    def allow(self, pattern):
        """The kernel may complain of what the rest of this test does."""
        self.allow_log = pattern


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
