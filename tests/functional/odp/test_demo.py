#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# odp: minutes=4
"""`odp demo` shows what it says, in a screenful."""

import re
import subprocess
import unittest

import odptest


class Demo(unittest.TestCase):
    def test_demo(self):
        if not odptest.has_device('mlx5-hca'):
            self.skipTest('this QEMU has no mlx5-hca')
        p = subprocess.run([odptest.TOP / 'odp', 'demo'], text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           stdin=subprocess.DEVNULL, timeout=400)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        print(''.join(f'# {line}\n' for line in p.stdout.splitlines()))
        self.assertLessEqual(len(p.stdout.splitlines()), 30)
        rows = re.findall(r'^(\S.*|  \S.*?) +\d+ MB/s +([0-9a-f]{16}) (\S+) +'
                          r'(\d+) +(\d+)$', p.stdout, re.M)
        self.assertEqual(len(rows), 7, p.stdout)
        self.assertEqual({r[2] for r in rows}, {'ok'})
        self.assertEqual(len({r[1] for r in rows}), 1)
        faults = [int(r[3]) for r in rows]
        self.assertEqual(faults[0], 0)
        for i in (1, 3, 4, 6):
            self.assertGreater(faults[i], 0, p.stdout)
        for name in ('write, 64 KiB', 'write latency'):
            self.assertRegex(p.stdout, rf'{name}.* [\d.]+ +[\d.]+')


odptest.main(__name__)
