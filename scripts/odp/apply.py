# SPDX-License-Identifier: GPL-2.0-or-later
"""`odp apply DIR`: series and overlay as commits on a user's QEMU checkout."""

import os
import shutil
import subprocess
from pathlib import Path

from . import source
from .cli import Parser
from .common import OdpError, TOP, output, say
from .tree import IDENTITY, overlay_files, patches


def git(checkout, *args, check=True, env=None):
    proc = subprocess.run(['git', '-C', checkout, *map(str, args)], text=True,
                          errors='replace', stdout=subprocess.PIPE,
                          env=dict(os.environ, **(env or {})),
                          stderr=subprocess.STDOUT)
    if check and proc.returncode:
        raise OdpError(f'git {args[0]} in {checkout} failed:\n'
                       + proc.stdout.strip())
    return proc


def committer(checkout):
    """The user's identity, ours where none is set up."""
    if git(checkout, 'var', 'GIT_COMMITTER_IDENT', check=False).returncode:
        return {k: v for k, v in IDENTITY.items() if k.startswith('GIT_A')
                or k.startswith('GIT_COMMITTER')}
    return {}


def apply(checkout):
    """Put the series and the overlay on top of HEAD; all or nothing."""
    checkout = Path(checkout)
    if not checkout.is_dir():
        raise OdpError(f'{checkout} is not a directory')
    top = git(checkout, 'rev-parse', '--show-toplevel', check=False)
    if top.returncode or Path(top.stdout.strip()) != checkout.resolve():
        raise OdpError(f'{checkout} is not the top of a git checkout')
    version = source.version_of(checkout)
    series = patches(version) if source.series_dir(version) else []
    if git(checkout, 'status', '--porcelain', '-uno').stdout.strip():
        raise OdpError(f'{checkout} has changes that are not committed: '
                       'commit or stash them first')
    ours = overlay_files()
    clash = [f for f in ours if (checkout / f).exists()]
    if clash:
        raise OdpError(f'{checkout} has a file {clash[0]} already: was the '
                       'series applied before?')
    before = git(checkout, 'rev-parse', 'HEAD').stdout.strip()
    env = committer(checkout)
    done = False
    try:
        proc = git(checkout, 'am', '-q', *series, check=False, env=env)
        if proc.returncode:
            git(checkout, 'am', '--abort', check=False)
            raise OdpError(
                f'the series does not apply to QEMU {version} as it is in '
                f'{checkout}; it is made for {source.VERSION}, and releases '
                f'that fit are {", ".join(r + ".x" for r in source.releases())}'
                f':\n{proc.stdout.strip()}')
        for name in ours:
            (checkout / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(TOP / name, checkout / name)
        git(checkout, 'add', '-f', '--', *ours)
        revision = output(['git', '-C', TOP, 'describe', '--always',
                           '--dirty'], check=False).strip() or 'unknown'
        message = ('Add the page-faulting RDMA and IOMMU models\n\n'
                   f'Files of qemu-odp, revision {revision}.')
        git(checkout, 'commit', '-q', '-m', message, env=env)
        done = True
    finally:
        if not done:
            git(checkout, 'reset', '-q', '--hard', before, check=False)
            for name in ours:
                (checkout / name).unlink(missing_ok=True)
    say(f'{len(series) + 1} commits on top of {before[:12]} in {checkout}')


def main(args):
    p = Parser(prog='odp apply', description='Put the patch series and our '
               'files as commits on a QEMU git checkout of your own.')
    p.add_argument('checkout', metavar='DIR', help='top of the checkout')
    apply(p.parse_args(args).checkout)
    return 0
