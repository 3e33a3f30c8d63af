# SPDX-License-Identifier: GPL-2.0-or-later
"""The top meson.build: set it up and call it."""

import json
import os
import shutil
import subprocess
from pathlib import Path

from . import packages
from .build import PACKAGES, python_env
from .common import (OdpError, SYSTEM_PYTHON, TOP, build_dir, locked, output,
                     remove_tree, run)


class Driver:
    """build/meson."""

    def __init__(self):
        packages.ensure(PACKAGES)
        self.dir = build_dir('meson')
        self.env = dict(python_env(), PYTHONDONTWRITEBYTECODE='1')
        self.meson = [SYSTEM_PYTHON, '-m', 'mesonbuild.mesonmain']

    def setup(self):
        """Configure, or again when the build files or the list of tests
        changed."""
        with locked(build_dir('meson.lock'), 'setting up'):
            if not (self.dir / 'build.ninja').exists():
                remove_tree(self.dir)
                run(self.meson + ['setup', self.dir, TOP], env=self.env,
                    quiet=True, what='meson setup')
            else:
                run(self.meson + ['setup', '--reconfigure', self.dir, TOP],
                    env=self.env, quiet=True, what='meson setup')

    def tests(self):
        """[{'name', 'suite', 'timeout'}] as meson knows them; timeout is the
        budget in seconds."""
        text = output(self.meson + ['introspect', '--tests', self.dir],
                      env=self.env)
        tests = json.loads(text)
        for t in tests:
            t['suite'] = [s.rpartition(':')[2] for s in t['suite']]
        return tests

    def test(self, name):
        """Run one test, which has twice its budget. True when meson says
        that it passed."""
        proc = subprocess.run(
            [str(c) for c in self.meson
             + ['test', '-C', self.dir, '--no-rebuild', '-q',
                '--timeout-multiplier', '2', name]],
            env=dict(os.environ, **self.env), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return proc.returncode == 0
