# SPDX-License-Identifier: GPL-2.0-or-later
"""The QEMU tree that is built: source, patch series, overlay.

The tree is a git repository: the tag `base` is QEMU's source, on top of it
is one commit per patch. Our own files are symbolic links into the checkout,
which git does not see there. Who develops a patch commits in the tree and
exports it (docs/build.md); such work is never overwritten.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

from . import source
from .common import (OdpError, TOP, build_dir, locked, output, remove_tree,
                     run, say, write_if_changed)

#: Directories of the checkout whose files belong into the QEMU tree.
OVERLAY = ('hw', 'include', 'tests/qtest', 'tests/unit', 'tests/functional')

IDENTITY = {
    'GIT_AUTHOR_NAME': 'qemu-odp', 'GIT_AUTHOR_EMAIL': 'qemu-odp@example.org',
    'GIT_COMMITTER_NAME': 'qemu-odp',
    'GIT_COMMITTER_EMAIL': 'qemu-odp@example.org',
    # The machine's settings (hooks, signing, line ends) do not matter here.
    'GIT_CONFIG_GLOBAL': '/dev/null', 'GIT_CONFIG_NOSYSTEM': '1',
}


def tree_dir():
    return build_dir('qemu')


def overlay_files():
    """Our files, as paths relative to the top, sorted."""
    found = []
    for top in OVERLAY:
        for path in sorted((TOP / top).rglob('*')):
            if not path.is_file() or '__pycache__' in path.parts:
                continue
            if re.search(r'(~|\.(pyc|o|orig|rej|swp|new))$', path.name):
                continue
            found.append(path.relative_to(TOP))
    return found


def patches(version):
    return sorted(source.series_dir(version).glob('[0-9]*.patch'))


class Tree:
    """The tree below build/qemu."""

    def __init__(self, path=None):
        self.path = Path(path or tree_dir())
        self.state = self.path / '.git/odp'

    def git(self, *args, env=None, check=True):
        return output(['git', '-C', self.path, '-c', 'gc.auto=0',
                       '-c', 'core.autocrlf=false'] + list(args),
                      env={**IDENTITY, **(env or {})}, check=check)

    def prepare(self, src=None):
        """Bring the tree up to date with the source, the patches and the
        overlay. Files that stay the same keep their time stamps."""
        with locked(self.path.parent / 'qemu.lock', 'preparing the tree'):
            if src is None and not self._unpacked():
                src = source.find()
            if src is not None:
                self._unpack(src)
            self._series()
            self._link()
        return self.path

    # -- source -------------------------------------------------------------

    def _unpacked(self):
        """There is a tree of the release that we want, and nobody named
        another source: nothing to look for."""
        return (not os.environ.get('ODP_QEMU_SOURCE')
                and (self.state / 'source').exists()
                and source.version_of(self.path) == source.VERSION)

    def _unpack(self, src):
        key = self.state / 'source'
        if key.exists() and key.read_text() == src.key:
            return
        if self.path.exists():
            if (self.state / 'series').exists():
                self._refuse_if_edited('the QEMU source changed')
            remove_tree(self.path)
        say(f'unpacking QEMU from {src.path}')
        src.unpack(self.path)
        self.git('init', '-q', '-b', 'odp')
        self.git('add', '-Af', '.')
        self.git('commit', '-q', '-m',
                 f'QEMU {source.version_of(self.path)} source')
        self.git('tag', 'base')
        self.state.mkdir()
        key.write_text(src.key)

    # -- patches ------------------------------------------------------------

    def _refuse_if_edited(self, why):
        applied = (self.state / 'series').read_text().split()[0]
        head = self.git('rev-parse', 'HEAD').strip()
        dirty = self.git('status', '--porcelain', '-uno').strip()
        if head != applied or dirty:
            what = ('changes that are not committed' if dirty
                    else 'commits of your own')
            raise OdpError(
                f'{why}, but {self.path} has {what}: export them into '
                'patches/ (docs/build.md) and `git reset --hard base` there, '
                'or delete the directory')

    def _series(self):
        """Apply the series without touching a file that it leaves alone."""
        version = source.version_of(self.path)
        files = patches(version)
        base = self.git('rev-parse', 'base').strip()
        wanted = output(['git', 'hash-object', '--'] + files).split() \
            if files else []
        stamp = ' '.join([base] + wanted)
        state = self.state / 'series'
        if state.exists():
            _, _, old = state.read_text().partition(' ')
            if old == stamp:
                return
            head = self.git('rev-parse', 'HEAD').strip()
            if head == base:
                pass            # somebody reset it, as we asked
            else:
                self._refuse_if_edited('the patches changed')
        say(f'applying {len(files)} patches')
        commit = self._commits(base, files)
        self.git('reset', '-q', '--hard', commit)
        state.write_text(f'{commit} {stamp}')

    def _commits(self, commit, files):
        """One commit per patch on top of `commit`, by way of an index of
        their own; returns the last."""
        index = self.state / 'index'
        remove_tree(index)
        env = {'GIT_INDEX_FILE': str(index)}
        self.git('read-tree', commit, env=env)
        for patch in files:
            msg, diff = self.state / 'msg', self.state / 'diff'
            with open(patch, 'rb') as stream:
                info = subprocess.run(['git', 'mailinfo', msg, diff],
                                      stdin=stream, text=True, check=True,
                                      stdout=subprocess.PIPE).stdout
            field = dict(line.split(': ', 1) for line in info.splitlines()
                         if ': ' in line)
            proc = subprocess.run(
                ['git', '-C', self.path, 'apply', '--cached',
                 '--whitespace=nowarn', diff],
                env={**os.environ, **env, **IDENTITY}, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if proc.returncode:
                fits = ', '.join(source.releases())
                raise OdpError(
                    f'{patch.name} does not apply to QEMU '
                    f'{source.version_of(self.path)} (the series is for '
                    f'{fits}):\n{proc.stdout.strip()}')
            tree = self.git('write-tree', env=env).strip()
            message = self.state / 'message'
            message.write_text(f'{field.get("Subject", patch.name)}\n\n'
                               + msg.read_text())
            commit = self.git('commit-tree', tree, '-p', commit,
                              '-F', message, env={
                                  'GIT_AUTHOR_NAME': field['Author'],
                                  'GIT_AUTHOR_EMAIL': field['Email'],
                                  'GIT_AUTHOR_DATE': field['Date'],
                                  'GIT_COMMITTER_DATE': field['Date'],
                              }).strip()
        remove_tree(index)
        return commit

    # -- overlay ------------------------------------------------------------

    def _link(self):
        """A symbolic link for each of our files; links of files that are
        gone are removed."""
        wanted = overlay_files()
        tracked = set(self.git('ls-files', '--', *OVERLAY).splitlines())
        clash = [str(f) for f in wanted if str(f) in tracked]
        if clash:
            raise OdpError(f'{clash[0]} is a file of QEMU: change it with a '
                           'patch')
        listing = self.state / 'overlay'
        before = set(listing.read_text().splitlines()) \
            if listing.exists() else set()
        for gone in before - {str(f) for f in wanted}:
            link = self.path / gone
            if link.is_symlink():
                link.unlink()
            for parent in link.parents:
                if parent == self.path or not parent.is_dir() or \
                        any(parent.iterdir()):
                    break
                parent.rmdir()
        for name in wanted:
            link, target = self.path / name, TOP / name
            if link.is_symlink() and os.readlink(link) == str(target):
                continue
            link.parent.mkdir(parents=True, exist_ok=True)
            remove_tree(link)
            link.symlink_to(target)
        listing.write_text(''.join(f'{f}\n' for f in wanted))
        write_if_changed(self.path / '.git/info/exclude',
                         ''.join(f'/{f}\n' for f in wanted)
                         + '/build/\n__pycache__/\n*.pyc\n')
