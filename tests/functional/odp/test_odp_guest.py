#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`odp guest` as its users meet it: output, status, files, packages; and
guests that hang, panic or are interrupted."""
# odp: minutes=8

import os
import pty
import select
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import odptest

ODP = odptest.TOP / 'odp'


def odp_guest(*args, stdin=b'', seconds=300):
    return subprocess.run([ODP, 'guest', *args], input=stdin,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=seconds)


def state(pid):
    """State letter and parent of a process; none when it is gone."""
    try:
        text = Path(f'/proc/{pid}/stat').read_text()
    except OSError:
        return 'Z', 0
    fields = text.rpartition(')')[2].split()
    return fields[0], int(fields[1])


def alive(pids):
    return [p for p in pids if state(p)[0] != 'Z']


def our_processes(parent):
    """Ids of the live children of a run."""
    pids = [int(p.name) for p in Path('/proc').glob('[0-9]*')]
    return [p for p in alive(pids) if state(p)[1] == parent]


class Command(unittest.TestCase):
    def test_output_and_status(self):
        with tempfile.TemporaryDirectory() as tmp:
            src = Path(tmp) / 'tree/deep'
            src.mkdir(parents=True)
            (src / 'file').write_text('from the host\n')
            data = bytes(range(256)) * 64
            p = odp_guest(
                '--package', 'qperf', '--copy', f'{tmp}/tree:/srv/tree',
                '--copy', f'{src}/file:/usr/bin/', '--append', 'odp.x=1',
                '--cpu', 'cortex-a57', '--smp', '1', '--mem', '1G', '--',
                'echo bad >&2; cat /srv/tree/deep/file /usr/bin/file; '
                'qperf --version | head -1; nproc; '
                'grep -o odp.x=1 /proc/cmdline; cat; exit 41', stdin=data)
        head, _, tail = p.stdout.partition(b'odp.x=1\n')
        self.assertEqual(p.returncode, 41, p.stderr.decode())
        self.assertIn(b'from the host\nfrom the host\nqperf ', head)
        self.assertTrue(head.endswith(b'\n1\n'), head)
        self.assertEqual(tail, data)
        self.assertIn(b'bad\n', p.stderr)
        self.assertNotIn(b'bad', p.stdout)

    def test_arguments_as_they_are(self):
        p = odp_guest('--kernel', 'stable', '--', 'printf', '%s|', 'a b',
                      '$HOME', "it's", '--', '')
        self.assertEqual(p.stdout, b"a b|$HOME|it's|--||")
        self.assertEqual(p.returncode, 0)

    def test_endless_input(self):
        """A command need not read what it is given."""
        with subprocess.Popen(['yes'], stdout=subprocess.PIPE) as source:
            p = subprocess.run([ODP, 'guest', '--', 'head -n 1; sleep 1'],
                               stdin=source.stdout, stdout=subprocess.PIPE,
                               timeout=300)
            source.kill()
        self.assertEqual((p.returncode, p.stdout), (0, b'y\n'))

    def test_user_errors(self):
        for args, words in (
                (['--kernel', 'no-such'], ['--kernel no-such', 'stock']),
                (['--copy', '/no/such/file'], ['--copy', '/no/such/file']),
                (['--package', 'no-such-package'], ['no-such-package']),
                (['--iommu', 'intel', '--kernel', 'stock-16k'],
                 ['--kernel stock-16k', 'arm64']),
                (['--qemu', '/no/such/qemu'], ['--qemu /no/such/qemu']),
                (['--qemu-arg=-device', '--qemu-arg=no-such-device'],
                 ['no-such-device'])):
            with self.subTest(args=args):
                p = odp_guest(*args, '--', 'true')
                self.assertEqual(p.returncode, 125)
                text = p.stderr.decode()
                for word in words:
                    self.assertIn(word, text)
                self.assertNotIn('Traceback', text)


class Trouble(unittest.TestCase):
    def test_panic(self):
        p = odp_guest('--', 'echo before; sync; echo c >/proc/sysrq-trigger; '
                      'sleep 1000')
        self.assertEqual(p.returncode, 125)
        self.assertEqual(p.stdout, b'before\n')
        self.assertIn(b'panicked', p.stderr)
        self.assertIn(b'sysrq_handle_crash', p.stderr)

    def test_power_off(self):
        p = odp_guest('--', 'poweroff -f; sleep 1000')
        self.assertEqual(p.returncode, 125)
        self.assertIn(b'powered off', p.stderr)

    def test_hang(self):
        # An init that never speaks: the guest hangs in its boot.
        start = time.monotonic()
        p = odp_guest('--append', 'rdinit=/usr/bin/busybox -- sleep 9999',
                      '--timeout', '30', '--', 'true')
        self.assertEqual(p.returncode, 124)
        self.assertIn(b'out of time', p.stderr)
        self.assertLess(time.monotonic() - start, 60)

    def interrupt(self, sig, status):
        run = subprocess.Popen([ODP, 'guest', '--',
                                'echo started; sleep 1000'],
                               stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL,
                               start_new_session=True)
        with run:
            self.assertEqual(run.stdout.readline(), b'started\n')
            children = our_processes(run.pid)
            self.assertEqual(len(children), 1)
            os.killpg(run.pid, sig)
            self.assertEqual(run.wait(30), status)
        deadline = time.monotonic() + 10
        while our_processes(run.pid) + alive(children):
            self.assertLess(time.monotonic(), deadline, 'QEMU was left')
            time.sleep(0.1)
        left = [d for d in Path(tempfile.gettempdir()).glob('odp-guest-*')
                if (d / 'owner').exists()
                and (d / 'owner').read_text() == str(run.pid)]
        if sig != signal.SIGKILL:
            self.assertEqual(left, [])

    def test_ctrl_c(self):
        self.interrupt(signal.SIGINT, 130)

    def test_sigterm(self):
        self.interrupt(signal.SIGTERM, 143)

    def test_sigkill(self):
        self.interrupt(signal.SIGKILL, -signal.SIGKILL)


class Top(unittest.TestCase):
    def top(self, *options):
        """What `odp top` prints of a guest, twice."""
        run = subprocess.Popen([ODP, 'guest', '--hca', '1', *options,
                                '--', 'echo started; sleep 1000'],
                               stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL,
                               start_new_session=True)
        with run:
            try:
                self.assertEqual(run.stdout.readline(), b'started\n')
                d, = [d for d in Path(tempfile.gettempdir())
                      .glob('odp-guest-*')
                      if (d / 'owner').read_text() == str(run.pid)]
                p = subprocess.run([ODP, 'top', d / 'qmp', '--count', '2',
                                    '--interval', '0.2'], timeout=60,
                                   stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
            finally:
                run.terminate()
                run.wait(30)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual(p.stdout.count('hca0 (mlx5-hca)'), 2, p.stdout)
        return p.stdout

    def test_counters(self):
        out = self.top('--iommu', 'mmu500', '--hca-options',
                       'link=ib,sva-portals=1', '--qemu-arg=-device',
                       '--qemu-arg=pcie-exerciser')
        # The driver's command queue went through the IOMMU; no rate at first.
        self.assertRegex(out, r'(?m)^  transactions +[1-9]\d*$')
        for name in ('odp-faults', 'function-0-stalls', 'function-1-stalls',
                     'stalls', 'atc-misses'):
            self.assertRegex(out, rf'(?m)^  {name} +0 +0\.0/s$')
        self.assertIn('(pcie-exerciser)', out)

    def test_counters_smmuv3(self):
        out = self.top('--iommu', 'smmuv3', '--qemu-arg=-global',
                       '--qemu-arg=arm-smmuv3.pmcg=on')
        self.assertIn('(arm-smmuv3)', out)
        self.assertRegex(out, r'(?m)^  transactions +[1-9]\d*$')
        self.assertRegex(out, r'(?m)^  walk-accesses +[1-9]\d*$')

    def test_no_machine(self):
        with tempfile.TemporaryDirectory() as tmp:
            p = subprocess.run([ODP, 'top', f'{tmp}/no'], timeout=60,
                               stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
        self.assertEqual(p.returncode, 1)
        self.assertRegex(p.stderr, r'^odp top: .*name the QMP socket.*\n$')


class Shell(unittest.TestCase):
    def test_interactive(self):
        ours, theirs = pty.openpty()
        run = subprocess.Popen([ODP, 'guest'], stdin=theirs, stdout=theirs,
                               stderr=theirs, start_new_session=True)
        os.close(theirs)
        seen = b''

        def until(text, seconds=120):
            nonlocal seen
            deadline = time.monotonic() + seconds
            while text not in seen:
                left = deadline - time.monotonic()
                self.assertGreater(left, 0, f'no {text} in {seen}')
                if select.select([ours], [], [], left)[0]:
                    seen += os.read(ours, 4096)
        try:
            until(b'guest:~#')
            # Ctrl-C goes to the guest's program, not to us.
            os.write(ours, b'echo in-$((40+2)); sleep 1000\n')
            until(b'in-42')
            seen = b''
            # As a person would: once more when nothing came of it, since the
            # shell that has not yet started the program drops the first one.
            deadline = time.monotonic() + 120
            while b'guest:~#' not in seen:
                self.assertLess(time.monotonic(), deadline, seen)
                os.write(ours, b'\x03')
                if select.select([ours], [], [], 3)[0]:
                    time.sleep(0.5)
                    seen += os.read(ours, 4096)
            # A late one drops what is typed ahead: let them all arrive.
            time.sleep(1)
            os.write(ours, b'echo out-$((40+3)); exit 9\n')
            until(b'out-43')
            self.assertEqual(run.wait(30), 9)
        finally:
            os.close(ours)
            if run.poll() is None:
                run.terminate()
                run.wait(20)


odptest.main(__name__)
