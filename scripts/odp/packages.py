# SPDX-License-Identifier: GPL-2.0-or-later
"""Packages of the host's own distribution."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from .common import OdpError, output, run, say


def missing(names):
    """Those of names that are not installed, in their order."""
    if shutil.which('dpkg-query') is None:
        raise OdpError('this is not a Debian system (no dpkg-query): install '
                       'what docs/build.md lists, then set ODP_NO_PACKAGES=1')
    text = output(['dpkg-query', '-W', '-f',
                   '${Package} ${db:Status-Status}\\n'] + list(names),
                  check=False)
    have = {line.split()[0] for line in text.splitlines()
            if line.endswith(' installed')}
    return [n for n in names if n not in have]


def ensure(wanted):
    """Install what is missing of wanted ({package: why}), after printing
    what and why. As root without a terminal no question is asked."""
    if os.environ.get('ODP_NO_PACKAGES'):
        return
    todo = missing(wanted)
    if not todo:
        return
    say('packages that are missing here:')
    for name in todo:
        print(f'       {name:24} {wanted[name]}', file=sys.stderr)
    install = ['apt-get', 'install', '-y', '--no-install-recommends'] + todo
    by_hand = 'apt-get install ' + ' '.join(todo)
    if os.geteuid() != 0:
        raise OdpError(f'as root, run: {by_hand}', status=3)
    if sys.stdin.isatty():
        answer = input('Install them with apt-get? [Y/n] ').strip().lower()
        if answer not in ('', 'y', 'yes'):
            raise OdpError(f'these packages are needed: {by_hand}', status=3)
    env = {'DEBIAN_FRONTEND': 'noninteractive'}
    if not any(Path('/var/lib/apt/lists').glob('*Packages*')):
        run(['apt-get', '-qq', 'update'], what='apt-get update')
    say('installing them')
    quiet = subprocess.run(install, env=dict(os.environ, **env), text=True,
                           errors='replace', stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if quiet.returncode:
        # Most often lists that are older than the archive.
        run(['apt-get', '-qq', 'update'], what='apt-get update')
        run(install, env=env, quiet=True)
