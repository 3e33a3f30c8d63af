# SPDX-License-Identifier: GPL-2.0-or-later
"""What a test suite does. The list, with minutes, is the top meson.build's."""

import fnmatch
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from . import kernel, tap
from .build import Build, python_env
from .common import SYSTEM_PYTHON, TOP, OdpError, build_dir, output
from .tap import Result
from .tree import Tree, overlay_files, patches
from . import source

FUNCTIONAL = TOP / 'tests/functional/odp'
QTESTS = TOP / 'tests/qtest/odp/meson.build'

#: QEMU's own qtests for what our patches touch, cheap ones.
QEMU_QTESTS = ('qos-test', 'device-introspect-test', 'qmp-cmd-test',
               'arm-cpu-features')


@dataclass
class Functional:
    """A functional test and what its header says."""
    path: Path
    minutes: int = 5
    long: bool = False
    x86: bool = False
    kernels: list = field(default_factory=list)

    @property
    def name(self):
        return 'functional-' + self.path.stem[len('test_'):]


def functional():
    """The functional tests, sorted. A comment near the top of a test,
    `# odp: minutes=N`, sets its budget, `long-minutes=N` that of a long run;
    `long` keeps it for long runs, `x86_64` asks for that emulator too,
    `kernel=sva` (once or more) for that kernel: it is built before, outside the
    budget."""
    found = []
    budget = 'long-minutes' if os.environ.get('ODP_LONG') else 'minutes'
    for path in sorted(FUNCTIONAL.glob('test_*.py')):
        test = Functional(path)
        minutes = {}
        head = '\n'.join(path.read_text().splitlines()[:40])
        for line in re.findall(r'^# odp: *(.*)$', head, re.M):
            for word in line.replace(',', ' ').split():
                key, _, value = word.partition('=')
                if key in ('minutes', 'long-minutes') and value.isdigit():
                    minutes[key] = int(value)
                elif key == 'long':
                    test.long = True
                elif key == 'x86_64':
                    test.x86 = True
                elif key == 'kernel' and value in kernel.names():
                    test.kernels.append(value)
                else:
                    raise OdpError(f'{path.name}: "# odp: {word}" is none of '
                                   'minutes=N, long-minutes=N, long, x86_64, '
                                   'kernel=NAME')
        test.minutes = minutes.get(budget, minutes.get('minutes',
                                                       test.minutes))
        found.append(test)
    return found


def our_qtests(target):
    """Names of our qtests for a target, from their meson.build."""
    return [m[1] for m in re.finditer(
        r"^\s*'([^']+)': \[\[([^\]]*)\]", QTESTS.read_text(), re.M)
        if f"'{target}'" in m[2]]


def builds_for(name):
    """[(target, asan, ninja goals)] that the suite needs built first."""
    def goals(target):
        return [f'qemu-system-{target}'] + [
            f'tests/qtest/odp/odp-{n}' for n in our_qtests(target)]

    if name == 'qtest-x86_64':
        return [('x86_64', False, goals('x86_64'))]
    if name in ('qtest-asan', 'coverage'):
        return [('aarch64', True, goals('aarch64'))]
    if name in ('qtest-aarch64', 'mutants'):
        return [('aarch64', False, goals('aarch64'))]
    if name == 'qtest-qemu':
        return [('aarch64', False, ['qemu-system-aarch64'] + [
            f'tests/qtest/{n}' for n in QEMU_QTESTS])]
    if name.startswith('functional-'):
        needs = [('aarch64', False, ['qemu-system-aarch64'])]
        if any(t.x86 for t in functional() if t.name == name):
            needs.append(('x86_64', False, ['qemu-system-x86_64']))
        return needs
    return []


def kernels_for(name):
    """Names of kernels that the suite needs built first."""
    return [k for t in functional() if t.name == name for k in t.kernels]


def results_file(name):
    return build_dir('results', name + '.json')


def run_suite(name):
    """Run one suite; print its TAP and leave its results in
    build/results/NAME.json. Returns the exit status."""
    out = results_file(name)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.unlink(missing_ok=True)
    if name.startswith('functional-'):
        results = run_functional(name)
    else:
        results = SUITES[name]()
    out.write_text(json.dumps([vars(r) for r in results], indent=1) + '\n')
    sys.stdout.write(tap.render(results))
    return 1 if any(r.outcome == 'fail' for r in results) else 0


# -- style ------------------------------------------------------------------

def style_exceptions():
    """[(file pattern, part of a message)] of tests/style-exceptions.txt."""
    rules = []
    for line in (TOP / 'tests/style-exceptions.txt').read_text().splitlines():
        if line.strip() and not line.startswith('#'):
            name, text, _ = line.split(maxsplit=2)
            rules.append((name, text.replace('_', ' ')))
    return rules


def style():
    """QEMU's checkpatch over our files and over the series; SPDX lines."""
    tree = Tree().prepare()
    checkpatch = tree / 'scripts/checkpatch.pl'
    results = []
    exceptions = style_exceptions()

    def kept(what, line):
        return any(fnmatch.fnmatchcase(what, f) and text in line
                   for f, text in exceptions)

    def check(what, *args):
        proc = subprocess.run([checkpatch, '--no-tree', '--terse', *args],
                              cwd=tree, text=True, errors='replace',
                              stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        lines = [line for line in proc.stdout.splitlines()
                 if re.search(r'(ERROR|WARNING):', line)
                 # A series has no say in MAINTAINERS.
                 and 'need updating MAINTAINERS' not in line
                 and 'added, moved or deleted' not in line
                 and not kept(what, line)]
        bad = proc.returncode not in (0, 1) and proc.stdout or \
            '\n'.join(lines[:30])
        results.append(Result(f'checkpatch {what}',
                              'fail' if bad else 'pass', bad))

    for path in overlay_files():
        text = (TOP / path).read_text()
        if path.suffix in ('.c', '.h', '.S', '.inc'):
            check(str(path), '-f', path)
        if 'SPDX-License-Identifier: GPL-2.0-or-later' not in \
                '\n'.join(text.splitlines()[:25]):
            results.append(Result(f'SPDX {path}', 'fail',
                                  'no SPDX line near the top'))
    for patch in patches(source.version_of(tree)):
        check(patch.name, patch)
    for path in sorted((TOP / 'scripts').rglob('*.py')) + [TOP / 'odp']:
        long = [n for n, line in enumerate(path.read_text().splitlines(), 1)
                if len(line) > 80 or line != line.rstrip()]
        results.append(Result(f'lines of {path.relative_to(TOP)}',
                              'fail' if long else 'pass',
                              f'too long or blank at the end: {long}'
                              if long else ''))
    return results


# -- unit tests of odp ------------------------------------------------------

def tools():
    """unittest over tests/tools."""
    with tempfile.TemporaryDirectory() as work:
        proc = subprocess.run(
            [SYSTEM_PYTHON, TOP / 'tests/tools/run.py'], cwd=work, text=True,
            env=dict(os.environ, PYTHONPATH=str(TOP / 'scripts'),
                     PYTHONDONTWRITEBYTECODE='1'), errors='replace',
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT)
    return tap.parse(proc.stdout, 'tools', proc.returncode)


# -- qtests -----------------------------------------------------------------

def inner_tests(build, suite=None, names=None, env=None, jobs=2):
    """Run tests of a QEMU build directory through its meson; results of
    their single test points."""
    meson = build.dir / 'pyvenv/bin/meson'
    args = [meson, 'test', '-C', build.dir, '--no-rebuild', '-q',
            '--num-processes', str(jobs)]
    full_env = {**python_env(), **(env or {})}
    listed = json.loads(output([meson, 'introspect', '--tests', build.dir],
                               env=full_env))
    if suite:
        wanted = [t['name'] for t in listed
                  if suite in [s.rpartition(':')[2] for s in t['suite']]]
    else:
        wanted = [t['name'] for t in listed if t['name'] in names]
        missing = set(names) - set(wanted)
        if missing:
            return [Result(n, 'fail', 'QEMU has no such test')
                    for n in sorted(missing)]
    if not wanted:
        return []
    log = build.dir / 'meson-logs/testlog.json'
    log.unlink(missing_ok=True)
    proc = subprocess.run([str(a) for a in args + wanted], text=True,
                          errors='replace',
                          env=dict(os.environ, **full_env),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    if not log.exists():
        return [Result('meson test', 'fail', proc.stdout[-4000:])]
    results = []
    for line in log.read_text().splitlines():
        entry = json.loads(line)
        name = entry['name'].rpartition(' / ')[2] \
            if ' / ' in entry['name'] else entry['name']
        status = None if entry['result'] == 'TIMEOUT' else \
            entry.get('returncode', 0)
        points = tap.parse(entry.get('stdout', ''), name, status)
        worst = [p for p in points if p.outcome == 'fail']
        if worst:
            # What TAP says of the failure, then what QEMU said.
            said = [s for s in entry.get('stdout', '').splitlines()
                    if s.startswith(('#', 'Bail'))][-3:]
            text = (entry.get('stderr') or '').strip().splitlines()
            worst[-1].note = '\n'.join(
                [worst[-1].note] + said + text[-40:]).strip()
        elif entry['result'] not in ('OK', 'SKIP', 'EXPECTEDFAIL'):
            points.append(Result(name, 'fail', entry['result']))
        for p in points:
            if not p.name.startswith(name):
                p.name = f'{name}:{p.name}'
        results += points
    return results


def qtest(target, asan=False):
    build = Build(target, 'minimal', asan)
    env = {}
    if asan:
        env = {'ASAN_OPTIONS': 'detect_leaks=0:abort_on_error=1:'
                               'detect_stack_use_after_return=0'}
    return inner_tests(build, suite='odp-' + target, env=env)


def qtest_qemu():
    build = Build('aarch64', 'minimal')
    return inner_tests(
        build, names=[f'qtest-aarch64/{n}' for n in QEMU_QTESTS])


# -- functional -------------------------------------------------------------

def run_functional(name):
    """One tests/functional/odp/test_*.py."""
    test = next(t for t in functional() if t.name == name)
    log = build_dir('results', name + '.log')
    env = dict(os.environ, PYTHONPATH=str(TOP / 'scripts'),
               PYTHONDONTWRITEBYTECODE='1', ODP_TOP=str(TOP),
               ODP_QEMU=str(Build('aarch64').binary))
    if test.x86:
        env['ODP_QEMU_X86_64'] = str(Build('x86_64').binary)
    with open(log, 'w') as err:
        proc = subprocess.run([SYSTEM_PYTHON, test.path], cwd=TOP, env=env,
                              text=True, errors='replace',
                              stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=err)
    results = tap.parse(proc.stdout, name, proc.returncode)
    with open(log, 'a') as out:
        out.write('\n-- stdout --\n' + proc.stdout)
    failed = [r for r in results if r.outcome == 'fail']
    if failed:
        said = log.read_text().split('\n-- stdout --\n')[0].splitlines()
        failed[-1].note = '\n'.join([failed[-1].note] + said[-20:]).strip()
    return results


def clean_root():
    """scripts/clean-root-test in a fresh Debian 12."""
    log = build_dir('results', 'clean-root.log')
    with open(log, 'w') as out:
        start = time.monotonic()
        proc = subprocess.run([TOP / 'scripts/clean-root-test'], cwd=TOP,
                              stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=out)
        used = (time.monotonic() - start) / 60
    results = tap.parse(proc.stdout, 'clean-root', proc.returncode)
    failed = [r for r in results if r.outcome == 'fail']
    if failed:
        failed[-1].note = f'{used:.0f} min; {log}\n' + '\n'.join(
            log.read_text().splitlines()[-30:])
    return results


def verdicts(suite, proc, good, bad, note, said):
    """Results of a script that prints `good` or `bad`, two blanks, a name.
    note: of each bad one; said: what is told when it failed without any."""
    results = []
    for line in proc.stdout.splitlines():
        word, _, name = line.partition('  ')
        if word == good:
            results.append(Result(f'{suite} {name}', 'pass', ''))
        elif word == bad:
            results.append(Result(f'{suite} {name}', 'fail', note))
    if proc.returncode and not any(r.outcome == 'fail' for r in results):
        results.append(Result(suite, 'fail', said[-4000:]))
    return results


def mutants():
    """tests/mutants/run: each bug, built into the model, is noticed."""
    build = Build('aarch64', 'minimal')
    proc = subprocess.run([TOP / 'tests/mutants/run', '--tree',
                           build_dir('qemu'), '--build', build.dir],
                          cwd=TOP, text=True, env=dict(os.environ,
                                                       **build.env()),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    return verdicts('mutant', proc, 'caught', 'ALIVE',
                    'the tests do not notice this bug', proc.stdout)


def coverage():
    """tests/coverage/run: how much of the register file is reached."""
    build = Build('aarch64', 'minimal', True)
    proc = subprocess.run([TOP / 'tests/coverage/run', '--lines', '--build',
                           build.dir], cwd=TOP, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    return verdicts('coverage', proc, 'ok', 'LOW', proc.stdout, proc.stderr)


SUITES = {
    'style': style,
    'tools': tools,
    'qtest-aarch64': lambda: qtest('aarch64'),
    'qtest-x86_64': lambda: qtest('x86_64'),
    'qtest-qemu': qtest_qemu,
    'qtest-asan': lambda: qtest('aarch64', asan=True),
    'clean-root': clean_root,
    'coverage': coverage,
    'mutants': mutants,
}
