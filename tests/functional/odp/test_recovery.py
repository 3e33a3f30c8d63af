#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# odp: minutes=4 long-minutes=150
"""What breaks a device under full load, again and again: function reset,
driver unbound, the firmware's death, restarts of the guest. The driver comes
back each time and moves the right bytes. With ODP_LONG a hundred times each."""

import json
import time

import odptest
from hcatest import GONE, Base

TIMES = 100 if odptest.LONG else 2

#: All that a fatal event makes the driver say, besides.
FATAL = GONE + r'|mlx5_core .*|INFO: task odp-stress'


class Stock(Base, odptest.GuestTest):
    iommu = 'smmuv3'

    def load(self):
        """Traffic that faults, of several processes, while the test goes
        on."""
        self.sh('for mode in dontneed mix storm; do\n'
                'odp-stress --mode $mode --iters 1000000 --timeout 100 '
                '>/tmp/out.$mode 2>&1 </dev/null & echo $! >/tmp/pid.$mode\n'
                'done; sleep 1\n'
                'for f in /tmp/pid.*; do kill -0 $(cat $f) || exit 1; done')

    def end_load(self):
        self.sh('for f in /tmp/pid.*; do pid=$(cat $f); rm $f; '
                'kill -9 $pid 2>/dev/null\n'
                'for i in $(seq 300); do kill -0 $pid 2>/dev/null || break; '
                'sleep 0.1; done\n'
                'if kill -0 $pid 2>/dev/null; then cat /proc/$pid/stack; '
                'exit 1; fi\ndone')

    def again(self, number):
        self.wait_device()
        self.end_load()
        if number % 10 == 0 or number == TIMES - 1:
            self.traffic()
            print(f'# {number + 1} of {TIMES}', flush=True)

    def test_function_reset(self):
        """Behind the driver's back: it finds the device disabled in its
        health poll, and recovers."""
        self.allow(FATAL)
        bdf = self.bdf()
        self.no_grace()
        self.sh(f'echo flr >/sys/bus/pci/devices/{bdf}/reset_method')
        for i in range(TIMES):
            self.load()
            done = self.reporter('fw_fatal')['recover']
            self.sh(f'echo 1 >/sys/bus/pci/devices/{bdf}/reset')
            self.until('fw_fatal', 'recover', done + 1)
            self.again(i)

    def test_unbind(self):
        self.allow(FATAL)
        bdf = self.bdf()
        for i in range(TIMES):
            self.load()
            self.sh(f'cd /sys/bus/pci/drivers/mlx5_core; echo {bdf} >unbind; '
                    f'echo {bdf} >bind')
            self.again(i)

    def reporter(self, name):
        text = self.sh(f'devlink -j health show pci/{self.bdf()} '
                       f'reporter {name}')
        return next(iter(json.loads(text)['health'].values()))[0]

    def no_grace(self):
        """Recover from a fatal event soon after another, too."""
        self.sh(f'devlink health set pci/{self.bdf()} reporter fw_fatal '
                'grace_period 0')

    def until(self, name, key, value, seconds=120):
        """The reporter's key has a value."""
        limit = time.monotonic() + seconds
        while self.reporter(name)[key] != value:
            if time.monotonic() > limit:
                self.fail(self.sh(f'devlink health show pci/{self.bdf()}; '
                                  'dmesg | tail -40'))
            self.sh('sleep 0.2')

    def set_health(self, syndrome):
        self.guest.qmp('qom-set', path='/machine/peripheral/hca0',
                       property='health-syndrome', value=syndrome)

    def test_health(self):
        """The firmware dies: the driver sees it, resets the device and is
        back."""
        self.allow(FATAL)
        self.no_grace()
        before = self.reporter('fw_fatal')
        for i in range(TIMES):
            self.load()
            self.set_health(1)
            self.until('fw_fatal', 'recover', before['recover'] + i + 1)
            self.again(i)
            after = self.reporter('fw_fatal')
            self.assertEqual(after['state'], 'healthy')
            self.assertEqual(after['error'], before['error'] + i + 1)

    def test_health_warning(self):
        """Too warm: reported, and nothing else."""
        self.allow(r'mlx5_core .*(Health issue|High temperature|assert|fw_ver'
                   r'|severity|synd|time|hw_id|rfr|crr|irisc)')
        before = self.reporter('fw')['error']
        diagnose = f'devlink health diagnose pci/{self.bdf()} reporter fw'
        self.set_health(0x10)
        self.assertIn('High temperature', self.sh(diagnose))
        self.until('fw', 'error', before + 1)
        self.traffic()
        self.set_health(0)
        self.assertNotIn('temperature', self.sh(diagnose))


class Restarts(Base, odptest.GuestTest):
    iommu = 'smmuv3'
    reboot = True

    load = Stock.load

    def test_restart(self):
        """The guest restarts itself, and is restarted."""
        for i in range(TIMES):
            self.load()
            if i % 2:
                self.guest.restart()
            else:
                self.guest.restart_by('reboot -f')
            self.wait_device()
            if i % 10 == 0 or i == TIMES - 1:
                print(f'# {i + 1} of {TIMES}', flush=True)
        self.traffic()


odptest.main(__name__)
