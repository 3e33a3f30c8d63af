# SPDX-License-Identifier: GPL-2.0-or-later
"""The list of known flaws of guest kernels (tests/kernel-flaws.txt)."""

import importlib.util
import re
import unittest

from odp import suites
from odp.common import TOP

SPEC = importlib.util.spec_from_file_location(
    'odptest', TOP / 'tests/functional/odp/odptest.py')
odptest = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(odptest)

LOG = '''fine before
------------[ cut here ]------------
WARNING: CPU: 0 PID: 283 at drivers/iommu/iommu.c:3363
Call trace:
 iommu_device_unuse_default_domain+0x30/0x40 (P)
---[ end trace 0000000000000000 ]---
fine between
Unable to handle kernel NULL pointer dereference at virtual address 0
pc : {}+0xf8/0x1e4
---[ end trace 0000000000000000 ]---
fine after'''.splitlines()


class Flaws(unittest.TestCase):
    def test_complete(self):
        """Each flaw has a pattern, and a reproducer that exists."""
        found = odptest.known_flaws()
        self.assertTrue(found)
        by_name = {t.name: t.path for t in suites.functional()}
        for name, flaw in found.items():
            self.assertEqual(set(flaw), {'kernel', 'log', 'test'}, name)
            re.compile(flaw['log'])
            suite, test = flaw['test'].split()
            text = by_name[suite].read_text()
            cls, method = test.split('.')
            self.assertRegex(text, rf'(?m)^class {cls}\(')
            self.assertIn(f'def {method}(', text)

    def test_report(self):
        """Only reports of the flaws that a test names are let pass."""
        log = [li.format('iopf_queue_remove_device') for li in LOG]
        rest, met = odptest.without_flaws(
            log, ['unbind-keeps-pasid', 'iopf-removal'])
        self.assertEqual(rest, ['fine before', 'fine between', 'fine after'])
        self.assertEqual(met, {'unbind-keeps-pasid': 1, 'iopf-removal': 1})
        rest, met = odptest.without_flaws(log, ['iopf-removal'])
        self.assertEqual(len(rest), 8)
        other = [li.format('mlx5_cmd_exec') for li in LOG]
        rest, met = odptest.without_flaws(
            other, ['unbind-keeps-pasid', 'iopf-removal'])
        self.assertEqual(len(rest), 6)
        self.assertEqual(odptest.without_flaws(log, ())[0], log)
