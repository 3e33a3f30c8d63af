#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# odp: minutes=2
"""The emulated processor and its interrupt controller, where patches of ours
touch them: programs without a system under them say what they see."""

import subprocess
import tempfile
import unittest
from pathlib import Path

import odptest
from odp import build, guestprog

BARE = odptest.TOP / 'tests/guest/bare'

#: Of a machine with the RAM where the programs want it.
LINK = ('-nostdlib', '-static', '-Wl,-Ttext=0x40200000',
        '-Wl,--build-id=none')

ROUNDS = 1000
NONE, UNDEFINED, TRAPPED = '--', '0000', '0018'


def run(name, *args):
    """[words of a line that tests/guest/bare/NAME.S prints]"""
    with tempfile.TemporaryDirectory() as where:
        program = Path(where) / name
        subprocess.run([guestprog.compiler('arm64'), *LINK, '-o', program,
                        BARE / f'{name}.S', BARE / 'serial.S'], check=True)
        out = subprocess.run(
            [build.emulator(), '-machine', 'virt,gic-version=3', '-nodefaults',
             '-display', 'none', '-serial', 'stdio', '-kernel', program, *args],
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=60, check=True).stdout
    return [line.split() for line in out.splitlines()]


class Sysreg:
    args = ()

    @classmethod
    def setUpClass(cls):
        cls.said = {case: rest for case, *rest in
                    run('sysreg', '-cpu', cls.cpu, *cls.args)}

    def check(self, **cases):
        for case, want in cases.items():
            with self.subTest(case):
                self.assertEqual(self.said[case.replace('_', '-')],
                                 want.split())

    def test_sp_el0(self):
        """Undefined where it is the stack pointer, and at EL0; nothing is
        read or written then."""
        self.check(spx_write=f'{NONE} 1230', spx_read=f'{NONE} 1230',
                   sp0_read=f'{UNDEFINED} 0000', sp0_write=f'{UNDEFINED} 4560',
                   spx_read_again=f'{NONE} 1230',
                   el0_read=f'{UNDEFINED} 0000')

    def test_same_code(self):
        """One instruction, translated once, in turns with SPSel 1 and 0."""
        self.check(turns_spx=f'{NONE} 0000', turns_sp0=f'{NONE} {ROUNDS:04x}')

    def test_daif(self):
        """At EL0 it is the kernel's to allow."""
        self.check(daif=f'{NONE} 03c0', el0_daif_read=f'{TRAPPED} 0000',
                   el0_daif_write=f'{TRAPPED} 03c0',
                   uma_daif_read=f'{NONE} 0000',
                   uma_daif_write=f'{NONE} 03c0')

    def test_device(self):
        """A device's register that is read among other instructions: each of
        them runs once, the written-back address moves once."""
        self.check(device=f'{NONE} {3 * ROUNDS:04x}')


class NeoverseN1(Sysreg, unittest.TestCase):
    cpu = 'neoverse-n1'


class Max(Sysreg, unittest.TestCase):
    cpu = 'max'


class Counted(Sysreg, unittest.TestCase):
    """Blocks are cut by their count of instructions, too."""
    cpu = 'cortex-a57'
    args = ('-icount', 'shift=3')


class Lpi(unittest.TestCase):
    def test_order(self):
        """By priority, then by number; what is not enabled, never."""
        got = [int(number, 16) for _, number in run('lpi', '-cpu', 'max')]
        self.assertEqual(got, [65534, 16383, 16384, 8256, 8255, 8193, 8192,
                               40000, 65535])


odptest.main(__name__)
