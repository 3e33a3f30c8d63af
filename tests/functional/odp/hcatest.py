# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of an HCA that breaks, goes and comes: what they share."""

from odp import guestprog

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
