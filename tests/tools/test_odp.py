# SPDX-License-Identifier: GPL-2.0-or-later
"""The odp command and what it is made of."""

import hashlib
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from odp import (build, cli, common, kbuild, packages, source, suites, tap,
                 test, tree)
from odp.common import OdpError, TOP


def odp(*args, **env):
    return subprocess.run([TOP / 'odp', *args], text=True,
                          env={**os.environ, **env},
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)


class CommandLine(unittest.TestCase):
    """A mistake gives one line that names it."""

    def one_line(self, proc, *words):
        self.assertNotEqual(proc.returncode, 0)
        self.assertEqual(proc.stdout, '')
        self.assertEqual(len(proc.stderr.splitlines()), 1, proc.stderr)
        for word in words:
            self.assertIn(word, proc.stderr)

    def test_no_verb(self):
        proc = odp()
        self.assertEqual(proc.returncode, 2)
        self.assertIn('usage: odp VERB', proc.stderr)

    def test_help(self):
        proc = odp('--help')
        self.assertEqual(proc.returncode, 0)
        for verb in cli.VERBS:
            self.assertIn(verb, proc.stdout)

    def test_unknown_verb(self):
        self.one_line(odp('biuld'), 'biuld', 'build')

    def test_unknown_option(self):
        self.one_line(odp('build', '--profil3', 'x'), 'odp build', '--profil3')

    def test_bad_choice(self):
        self.one_line(odp('build', '--target', 'vax'), 'vax', 'aarch64')

    def test_unknown_suite(self):
        with self.assertRaisesRegex(OdpError, 'no suite "nonesuch"'):
            test.choose([{'name': 'style', 'suite': ['fast'], 'timeout': 1}],
                        ['nonesuch'], False)

    def test_apply_needs_a_checkout(self):
        with tempfile.TemporaryDirectory() as work:
            self.one_line(odp('apply', work), work)
        self.one_line(odp('apply', '/nonesuch'), '/nonesuch')

    def test_missing_source(self):
        with tempfile.TemporaryDirectory() as work:
            proc = odp('build', ODP_QEMU_SOURCE='/nonesuch',
                       ODP_NO_PACKAGES='1', ODP_BUILD=work)
        self.one_line(proc, '/nonesuch', 'ODP_QEMU_SOURCE')

    def test_odp_qemu_names_no_program(self):
        for target, name in build.NAMED.items():
            with mock.patch.dict(os.environ, {name: '/nonesuch'}):
                with self.assertRaisesRegex(OdpError,
                                            f'{name} names /nonesuch'):
                    build.emulator(target)

    def test_a_named_emulator_is_not_built(self):
        with mock.patch.dict(os.environ, ODP_QEMU_X86_64='/bin/true'):
            self.assertEqual(str(build.emulator('x86_64')), '/bin/true')


class Sources(unittest.TestCase):
    def test_no_series_names_those_there_are(self):
        with self.assertRaisesRegex(OdpError, r'QEMU 1\.2\.3.*10\.2'):
            source.series_dir('1.2.3')

    def upstream(self, work, **env):
        tarball = Path(work) / 'qemu.tar.xz'
        tarball.write_bytes(b'a release')
        with mock.patch.object(source, 'RELEASE', tarball.as_uri()), \
                mock.patch.dict(os.environ, {'ODP_CACHE': f'{work}/cache',
                                             **env}):
            return source.upstream()

    def test_upstream_checked(self):
        right = hashlib.sha256(b'a release').hexdigest()
        with tempfile.TemporaryDirectory() as work:
            got = self.upstream(work, ODP_QEMU_SHA256=right)
            self.assertEqual(got.path.read_bytes(), b'a release')

    def test_upstream_not_the_release(self):
        with tempfile.TemporaryDirectory() as work:
            with self.assertRaisesRegex(OdpError, source.RELEASE_SHA256):
                self.upstream(work)
            self.assertEqual(list(Path(work, 'cache').rglob('*.xz')), [])

    def test_upstream_checksum_malformed(self):
        with mock.patch.dict(os.environ, ODP_QEMU_SHA256='beef'):
            with self.assertRaisesRegex(OdpError, 'ODP_QEMU_SHA256'):
                source.upstream()

    def test_directory_without_version(self):
        with tempfile.TemporaryDirectory() as work:
            with self.assertRaisesRegex(OdpError, 'no VERSION file'):
                source.Source(work)


class TinyTree(unittest.TestCase):
    """A tree out of a source of a few files."""

    PATCH = """\
From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001
From: A U Thor <author@example.org>
Date: Thu, 1 Jan 2026 00:00:00 +0000
Subject: [PATCH] change {name}

---
diff --git a/{name} b/{name}
--- a/{name}
+++ b/{name}
@@ -1 +1 @@
-old
+{new}
"""

    def setUp(self):
        work = tempfile.TemporaryDirectory()
        self.addCleanup(work.cleanup)
        self.top = Path(work.name) / 'top'
        self.series = self.top / 'patches/qemu-10.2'
        self.series.mkdir(parents=True)
        (self.top / 'hw/our').mkdir(parents=True)
        (self.top / 'hw/our/a.c').write_text('a\n')
        self.src = Path(work.name) / 'src'
        self.src.mkdir()
        (self.src / 'VERSION').write_text('10.2.2\n')
        for name in 'one', 'two':
            (self.src / name).write_text('old\n')
        (self.src / 'hw').mkdir()
        (self.src / 'hw/theirs.c').write_text('theirs\n')
        self.tree = tree.Tree(Path(work.name) / 'tree')
        for module in source, tree:
            patcher = mock.patch.object(module, 'TOP', self.top)
            patcher.start()
            self.addCleanup(patcher.stop)
        quiet = mock.patch.object(tree, 'say')
        quiet.start()
        self.addCleanup(quiet.stop)

    def patch(self, number, name, new):
        (self.series / f'{number}-x.patch').write_text(
            self.PATCH.format(name=name, new=new))

    def prepare(self):
        self.tree.prepare(source.Source(self.src))

    def read(self, name):
        return (self.tree.path / name).read_text()

    def test_series_and_overlay(self):
        self.patch('0001', 'one', 'new')
        self.prepare()
        self.assertEqual(self.read('one'), 'new\n')
        self.assertTrue((self.tree.path / 'hw/our/a.c').is_symlink())
        log = self.tree.git('log', '--format=%an %s', 'base..').strip()
        self.assertEqual(log, 'A U Thor change one')

    def test_changed_series_leaves_other_files_alone(self):
        self.patch('0001', 'one', 'new')
        self.prepare()
        before = (self.tree.path / 'one').stat().st_mtime_ns
        self.patch('0002', 'two', 'newer')
        self.prepare()
        self.assertEqual(self.read('two'), 'newer\n')
        self.assertEqual((self.tree.path / 'one').stat().st_mtime_ns, before)

    def test_overlay_follows_the_checkout(self):
        self.prepare()
        (self.top / 'hw/our/a.c').unlink()
        (self.top / 'hw/b.c').write_text('b\n')
        self.prepare()
        self.assertFalse((self.tree.path / 'hw/our').exists())
        self.assertEqual(self.read('hw/b.c'), 'b\n')

    def test_overlay_may_not_hide_a_file_of_qemu(self):
        (self.top / 'hw/theirs.c').write_text('ours\n')
        with self.assertRaisesRegex(OdpError, 'hw/theirs.c is a file of QEMU'):
            self.prepare()

    def test_work_in_the_tree_is_kept(self):
        self.patch('0001', 'one', 'new')
        self.prepare()
        (self.tree.path / 'two').write_text('mine\n')
        self.prepare()
        self.patch('0002', 'two', 'newer')
        with self.assertRaisesRegex(OdpError, 'not committed'):
            self.prepare()
        self.assertEqual(self.read('two'), 'mine\n')

    def test_patch_that_does_not_fit(self):
        self.patch('0001', 'one', 'new')
        self.patch('0002', 'one', 'newer')
        with self.assertRaisesRegex(OdpError, '0002-x.patch does not apply'):
            self.prepare()


class Tap(unittest.TestCase):
    def outcomes(self, text, status=0):
        return [(r.name, r.outcome) for r in tap.parse(text, 'prog', status)]

    def test_results(self):
        self.assertEqual(
            self.outcomes('1..3\nok 1 a\nnot ok 2 - b\nok 3 c # SKIP why\n',
                          1),
            [('a', 'pass'), ('b', 'fail'), ('c', 'skip')])

    def test_broken_off(self):
        self.assertEqual(self.outcomes('1..2\nok 1 a\n'),
                         [('a', 'pass'), ('prog', 'fail')])
        self.assertEqual(self.outcomes('ok 1 a\n'),
                         [('a', 'pass'), ('prog', 'fail')])
        self.assertEqual(self.outcomes(''), [('prog', 'fail')])

    def test_status_counts(self):
        self.assertEqual(self.outcomes('ok 1 a\n1..1\n', 3)[1],
                         ('prog', 'fail'))
        self.assertEqual(self.outcomes('ok 1 a\n1..1\n', None)[1],
                         ('prog', 'fail'))

    def test_bail_out(self):
        self.assertEqual(self.outcomes('1..1\nok 1 a\nBail out! x\n')[1],
                         ('prog', 'fail'))

    def test_whole_program_skipped(self):
        self.assertEqual(self.outcomes('1..0 # SKIP no libvirt\n'),
                         [('prog', 'skip')])

    def test_round_trip(self):
        results = [tap.Result('a', 'pass'), tap.Result('b', 'skip', 'why')]
        self.assertEqual(tap.parse(tap.render(results), 'prog', 0), results)


class Judging(unittest.TestCase):
    def test_new_skip_is_a_failure(self):
        results = [tap.Result('old', 'skip', 'x'), tap.Result('new', 'skip')]
        test.judge('suite', results, [('suite', 'old', 'reason')])
        self.assertEqual([r.outcome for r in results], ['skip', 'fail'])

    def test_expected_skips_have_reasons(self):
        for suite, name, reason in test.expected_skips():
            self.assertGreater(len(reason), 10, (suite, name))

    def test_functional_headers(self):
        for found in suites.functional():
            self.assertGreater(found.minutes, 0)


class KernelConfigs(unittest.TestCase):
    def test_last_setting_stays(self):
        self.assertEqual(kbuild.merged(
            ['# what for\nCONFIG_A=y\nCONFIG_AB=y\n# CONFIG_C is not set\n',
             '# CONFIG_A is not set\nCONFIG_C=m\n']),
            '# what for\nCONFIG_AB=y\n# CONFIG_A is not set\nCONFIG_C=m\n')

    def test_one_page_size(self):
        sizes = {}
        for name, recipe in kbuild.KERNELS.items():
            text = kbuild.merged((kbuild.CONFIG / c).read_text()
                                 for c in recipe.config)
            sizes[name] = re.findall(r'^CONFIG_ARM64_(\d+K)_PAGES=y$', text,
                                     re.M)
        self.assertEqual(sizes.pop('sva-16k'), ['16K'])
        self.assertEqual(sizes.pop('sva-64k'), ['64K'])
        for name, found in sizes.items():
            self.assertEqual(found, ['4K'], name)


class Helpers(unittest.TestCase):
    def test_time_limit_ends_the_group(self):
        status, used = common.run_limited(['sh', '-c', 'sleep 60 & wait'], 0.2)
        self.assertIsNone(status)
        self.assertLess(used, 30)

    def test_missing_packages(self):
        self.assertEqual(packages.missing(['no-such-package-here']),
                         ['no-such-package-here'])
        self.assertEqual(packages.missing(['dpkg']), [])


if __name__ == '__main__':
    unittest.main()
