# SPDX-License-Identifier: GPL-2.0-or-later
"""`odp test`: build what is needed, run the suites, count."""

import fnmatch
import json
import os
import re
import time

from . import kernel, suites
from .build import Build
from .cli import Parser
from .common import OdpError, TOP, say
from .driver import Driver
from .tap import Result

EXPECTED_SKIPS = TOP / 'tests/expected-skips.txt'


def expected_skips():
    """[(suite pattern, test pattern, reason)]."""
    rules = []
    for number, line in enumerate(EXPECTED_SKIPS.read_text().splitlines(), 1):
        line = line.strip()
        if not line or line.startswith('#'):
            continue
        words = re.split(r'\s+', line, maxsplit=2)
        if len(words) != 3:
            raise OdpError(f'{EXPECTED_SKIPS.name}:{number}: wants "SUITE '
                           'TEST REASON"')
        rules.append(tuple(words))
    return rules


def judge(name, results, rules):
    """A skip that nobody expects is a failure."""
    for r in results:
        if r.outcome != 'skip':
            continue
        if not any(fnmatch.fnmatchcase(name, s)
                   and fnmatch.fnmatchcase(r.name, t) for s, t, _ in rules):
            r.outcome = 'fail'
            r.note = (f'skipped ({r.note or "no reason given"}), which '
                      f'tests/{EXPECTED_SKIPS.name} does not expect')


def choose(tests, wanted, long):
    """Tests to run, in meson's order. wanted: names, patterns or meson
    suites; empty: all, those for long runs only when asked."""
    chosen = []
    for pattern in wanted:
        if not any(fnmatch.fnmatchcase(t['name'], pattern)
                   or pattern in t['suite'] for t in tests):
            names = ', '.join(t['name'] for t in tests)
            raise OdpError(f'there is no suite "{pattern}"; there are {names}',
                           status=2)
    for t in tests:
        if wanted:
            hit = any(fnmatch.fnmatchcase(t['name'], p) or p in t['suite']
                      for p in wanted)
        else:
            hit = long or 'long' not in t['suite']
        if hit and t['name'] == 'qtest-x86_64' and not wanted and \
                not suites.our_qtests('x86_64'):
            hit = False
        if hit:
            chosen.append(t)
    return chosen


def count(results):
    return tuple(sum(r.outcome == o for r in results)
                 for o in ('pass', 'fail', 'skip'))


def report(name, results, used, budget):
    """A line for the suite, and what went wrong in it."""
    passed, failed, skipped = count(results)
    over = '  OVER ITS BUDGET' if used > budget else ''
    print(f'{name:28} {passed:4} passed {failed:3} failed {skipped:3} skipped'
          f'   {used / 60:5.1f} of {budget / 60:.0f} min{over}', flush=True)
    for r in results:
        if r.outcome == 'fail':
            print(f'    FAIL {r.name}')
            for line in r.note.splitlines():
                print(f'        {line}')
    if failed:
        print(end='', flush=True)


def main(args):
    p = Parser(prog='odp test', description='Build what the tests need and '
               'run them. The last line counts them.')
    p.add_argument('--long', action='store_true',
                   help='whole-length runs, and suites that take long')
    p.add_argument('--list', action='store_true', help='only list the suites')
    p.add_argument('suite', nargs='*', metavar='SUITE',
                   help='a suite or a pattern; all by default')
    opts = p.parse_args(args)
    if opts.long:
        os.environ['ODP_LONG'] = '1'

    driver = Driver()
    driver.setup()
    tests = driver.tests()
    if opts.list:
        for t in tests:
            print(f'{t["name"]:28} {t["timeout"] // 60:3} min  '
                  f'{", ".join(t["suite"])}')
        return 0
    chosen = choose(tests, opts.suite, opts.long)
    rules = expected_skips()
    start = time.monotonic()
    total, built = [], {}
    for t in chosen:
        results = []
        for target, asan, goals in suites.builds_for(t['name']):
            key = (target, asan, tuple(goals))
            if key not in built:
                built[key] = build(target, asan, goals)
            if built[key]:
                results.append(Result(t['name'], 'fail',
                                      f'not run: {built[key]}'))
        for kern in suites.kernels_for(t['name']):
            if kern not in built:
                built[kern] = prepare_kernel(kern)
            if built[kern]:
                results.append(Result(t['name'], 'fail',
                                      f'not run: {built[kern]}'))
        used = 0.0
        if not results:
            began = time.monotonic()
            ok = driver.test(t['name'])
            used = time.monotonic() - began
            results = collect(t['name'], ok)
        judge(t['name'], results, rules)
        report(t['name'], results, used, t['timeout'])
        total += results
    say(f'{(time.monotonic() - start) / 60:.1f} minutes in all')
    passed, failed, skipped = count(total)
    print(f'{passed} passed, {failed} failed, {skipped} skipped', flush=True)
    return 1 if failed or not passed else 0


def build(target, asan, goals):
    """Build an emulator and tests; returns what went wrong, or None."""
    began = time.monotonic()
    wrong = None
    try:
        Build(target, 'minimal', asan).make(goals)
    except OdpError as err:
        print(f'    {err}', flush=True)
        wrong = 'the build for it failed'
    name = f'build {target}' + (' asan' if asan else '')
    print(f'{name:28} {"FAILED" if wrong else "done":40}'
          f'{(time.monotonic() - began) / 60:5.1f} min', flush=True)
    return wrong


def prepare_kernel(name):
    """Fetch or build a guest's kernel; returns what went wrong, or None."""
    began = time.monotonic()
    wrong = None
    try:
        kernel.find(name)
    except OdpError as err:
        print(f'    {err}', flush=True)
        wrong = 'there is no kernel for it'
    print(f'{"kernel " + name:28} {"FAILED" if wrong else "done":40}'
          f'{(time.monotonic() - began) / 60:5.1f} min', flush=True)
    return wrong


def collect(name, ok):
    """What a suite left in its results file."""
    try:
        raw = json.loads(suites.results_file(name).read_text())
        results = [Result(**r) for r in raw]
    except (OSError, ValueError):
        return [Result(name, 'fail', 'broke off or ran out of time (see '
                       'build/meson/meson-logs/testlog.txt)')]
    if not ok and not any(r.outcome == 'fail' for r in results):
        results.append(Result(name, 'fail', 'the suite itself failed (see '
                              'build/meson/meson-logs/testlog.txt)'))
    return results
