# SPDX-License-Identifier: GPL-2.0-or-later
"""Each line of behaviour that docs/specs/smmuv3.md numbers, and the MMU-500's,
34, has a qtest and a mutant that are named after it."""

import re
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
LINES = set(range(1, 35))


def lines(numbers):
    """The lines that '01', '02-06' or '24-25' name."""
    first, *rest = (int(n) for n in numbers.split('-'))
    return set(range(first, (rest or [first])[-1] + 1))


class Lines(unittest.TestCase):
    def check(self, found):
        self.assertEqual(LINES, set().union(*map(lines, found)))

    def test_each_has_a_qtest(self):
        text = ''.join(f.read_text() for f in sorted(
            (TOP / 'tests/qtest/odp').glob('*mu*-test.c')))
        self.check(re.findall(
            r'"/?(?:smmuv3|mmu500)/\w+/(\d\d(?:-\d\d)*)-', text))

    def test_each_has_a_mutant(self):
        text = ''.join(f.read_text() for f in sorted(
            (TOP / 'tests/mutants').glob('*.mutants')))
        self.check(re.findall(r'^(\d\d) .*\|', text, re.M))


if __name__ == '__main__':
    unittest.main()
