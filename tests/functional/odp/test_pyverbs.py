#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# odp: minutes=9 long-minutes=150
"""rdma-core's own test suite on the HCA, in the newest stock kernel.

tests/pyverbs-expected.txt says which of its tests do not pass, and why. A
test that does not pass and is not listed, a listed one that passes (unless it
is a "maybe"), and a line that names no test are failures.
"""

import fnmatch
import json
import re
import time
from pathlib import Path

import odptest

TOP = Path(__file__).resolve().parents[3]
EXPECTED = TOP / 'tests/pyverbs-expected.txt'

#: What must pass 50 times in a row (a long run).
REPEATED = ('test_odp.', 'test_mlx5_dc.', 'test_mlx5_mkey.', 'test_mr.',
            'test_qp.', 'test_cq.', 'test_srq.')
REPEATS = 50


def expected():
    """[(section, result, pattern)] of the list."""
    rows, section = [], None
    for number, line in enumerate(EXPECTED.read_text().splitlines(), 1):
        line = line.split('#')[0].strip()
        if not line:
            continue
        if line.startswith('['):
            section = line.strip('[]')
            continue
        result, pattern, reason = line.split(None, 2)
        if section not in ('never', 'open') or not reason or (
                result not in (('skip',) if section == 'never'
                               else ('skip', 'fail', 'error', 'maybe'))):
            raise ValueError(f'{EXPECTED.name}:{number}: {line}')
        rows.append((section, result, pattern))
    return rows


def compare(results, rows):
    """Sentences about what is not as the list says."""
    wrong, used = [], set()
    for test in results:
        name = test['id'].removeprefix('tests.')
        match = [r for r in rows if fnmatch.fnmatchcase(name, r[2])]
        used.update(match)
        if any(r[1] == 'maybe' for r in match):
            continue
        if test['result'] == 'pass':
            if match:
                wrong.append(f'{name} passes: take it off the list')
        elif not any(r[1] == test['result'] for r in match):
            wrong.append(f'{name}: {test["result"]}: {test["why"]}')
    wrong += [f'no test is named {r[2]}' for r in rows if r not in used]
    return wrong


class Pyverbs(odptest.GuestTest):
    hca = 2
    # With the 52 bits of -cpu max, each child of an implicit region has 16 GiB
    # of translations, which the guest's kernel fills in for each of hundreds
    # of faults.
    cpu = 'cortex-a57'
    packages = ('python3-scapy',)
    append = ('hugepages=64',)
    copies = (f'{TOP}/tests/guest/pyverbs-suite:/usr/local/bin/pyverbs-suite',)
    #: Bad requests that the suite makes on purpose.
    allow_log = (r'mlx5_0.*(Creation|modify|create|Invalid|wrong)'
                 r'|CQ error on CQN 0x[0-9a-f]+, syndrome 0x1$')

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # For the tests of the connection manager: IPoIB.
        cls.guest.sh('modprobe ib_ipoib; sleep 1; ip link set ib0 up; '
                     'ip addr add 10.9.0.1/24 dev ib0; sleep 2')

    def run_suite(self, *args, seconds=900):
        out = self.sh(f'python3 /usr/local/bin/pyverbs-suite '
                      f'{" ".join(args)}', seconds)
        rows = [json.loads(line) for line in out.splitlines()
                if re.match(r'\{"(id|end)"', line)]
        self.assertIn('end', rows[-1], out[-2000:])
        self.assertEqual(rows[-1]['end'], rows[-1]['of'])
        return rows[:-1]

    def test_suite(self):
        results = self.run_suite('--limit', '60')
        count = {kind: sum(t['result'] == kind for t in results)
                 for kind in ('pass', 'skip', 'fail', 'error')}
        print('# ' + ', '.join(f'{n} {kind}' for kind, n in count.items()),
              flush=True)
        wrong = compare(results, expected())
        self.assertEqual(wrong, [], '\n'.join(wrong))

    if odptest.LONG:
        def test_repeated(self):
            rows = expected()
            for number in range(1, REPEATS + 1):
                began = time.monotonic()
                results = self.run_suite('--limit', '120', *REPEATED)
                wrong = [w for w in compare(results, rows)
                         if not w.startswith('no test')]
                self.assertEqual(wrong, [], f'round {number}:\n'
                                 + '\n'.join(wrong))
                passed = sum(t['result'] == 'pass' for t in results)
                print(f'# round {number} of {REPEATS}: {passed} of '
                      f'{len(results)} pass, '
                      f'{time.monotonic() - began:.0f} s', flush=True)


odptest.main(__name__)
