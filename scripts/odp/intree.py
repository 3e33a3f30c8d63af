# SPDX-License-Identifier: GPL-2.0-or-later
"""Drivers of Linux that Debian's kernels leave out, as modules for a stock
amd64 kernel: unmodified source from Debian's linux-source package of that
kernel's version, built against its packaged headers.

    build('drivers/uio/uio_pci_generic_sva.c', kernel.find('stock',
          arch='amd64')) -> Path of the .ko

The build programs of the kernel's suite may want a newer C library than this
machine's: they run with their own.
"""

import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

from . import guestprog, packages
from .aptroot import AptRoot, unpack
from .common import OdpError, cache_dir, locked, output, run, say

TOOLS = {'make': 'builds modules for guests',
         'xz-utils': "unpacks the kernel's source"}

SUITE = 'trixie-backports'
ARCH = 'amd64'

#: What the build programs run with.
RUNTIME = ('libc6', 'libelf1t64', 'zlib1g', 'libzstd1')


def _wrap_programs(tree, root):
    """Each ELF program below tree becomes a script that runs it with the
    libraries below root. (Some find their other half by their own name.)"""
    lib = root / 'usr/lib/x86_64-linux-gnu'
    for path in [p for p in tree.rglob('*') if p.is_file()
                 and not p.is_symlink() and os.access(p, os.X_OK)]:
        with open(path, 'rb') as f:
            if f.read(4) != b'\x7fELF':
                continue
        binary = path.with_name(path.name + '.bin')
        path.rename(binary)
        path.write_text(f'#!/bin/sh\nexec {lib}/ld-linux-x86-64.so.2 '
                        f'--argv0 {path} --library-path {lib} {binary} "$@"\n')
        path.chmod(0o755)


def _headers(apt, release):
    """Our copy of a kernel's headers, made to work where it lies."""
    common = re.sub(r'-[^-]*$', '', release)
    place = cache_dir('guest', 'headers') / f'{release}-whole'
    tree = place / f'usr/src/linux-headers-{release}'
    with locked(Path(f'{place}.lock'), 'unpacking headers'):
        if (place / 'done').exists():
            return tree
        shutil.rmtree(place, ignore_errors=True)
        for name in (f'linux-headers-{release}',
                     f'linux-headers-{common}-common',
                     f'linux-kbuild-{common}'):
            for deb in apt.download([f'{name}:{ARCH}'], SUITE):
                unpack(deb, place)
        kbuild = place / f'usr/lib/linux-kbuild-{common}'
        root = apt.tool([f'{p}:{ARCH}' for p in RUNTIME], SUITE)
        _wrap_programs(kbuild, root)
        base = tree.with_name(f'linux-headers-{common}-common')
        for where in tree, base:
            for name in 'scripts', 'tools':
                (where / name).unlink(missing_ok=True)
                (where / name).symlink_to(kbuild / name)
        (tree / 'Makefile').write_text(f'KBUILD_OUTPUT={tree}\n'
                                       f'include {base}/Makefile\n')
        # No type information; nothing that only a newer compiler knows.
        (tree / 'vmlinux').unlink(missing_ok=True)
        conf = tree / 'include/config/auto.conf'
        conf.write_text(re.sub(
            '^CONFIG_(CC_HAS_MIN_FUNCTION_ALIGNMENT|DEBUG_INFO_BTF.*)=.*\n',
            '', conf.read_text(), flags=re.M))
        (place / 'done').touch()
    return tree


def _source(apt, release, path):
    """One file of the kernel's source."""
    series = '.'.join(release.split('.')[:2])
    name = f'linux-source-{series}'
    deb = apt.download([f'{name}:{ARCH}'], SUITE)[0]
    say(f'unpacking {path} of {name}')
    fetch = (f'dpkg-deb --fsys-tarfile {deb} | '
             f'tar -xO ./usr/src/{name}.tar.xz | xz -d | '
             f'tar -xO --occurrence=1 {name}/{path}')
    proc = subprocess.run(['sh', '-c', fetch], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL)
    if not proc.stdout:
        raise OdpError(f'{deb.name} has no {path}')
    return proc.stdout


def build(path, kern):
    """The module of one source file of the kernel's tree."""
    if not kern.version:
        raise OdpError(f'{path}: only kernels of packages have headers')
    packages.ensure(TOOLS)
    cc = guestprog.compiler(ARCH)
    stem = Path(path).stem
    key = hashlib.sha256(f'{path} {kern.release} {kern.version} '.encode()
                         + output([cc, '-dumpfullversion']).encode())
    place = cache_dir('guest', 'programs') / f'{stem}-{key.hexdigest()[:16]}'
    module = place / f'{stem}.ko'
    with locked(Path(f'{place}.lock'), 'compiling'):
        if module.exists():
            return module
        apt = AptRoot()
        work = Path(f'{place}.new')
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        (work / Path(path).name).write_bytes(_source(apt, kern.release, path))
        (work / 'Kbuild').write_text(f'obj-m := {stem}.o\n')
        tree = _headers(apt, kern.release)
        say(f'compiling {stem} for {kern.release}')
        run(['make', '-s', '-C', tree, f'M={work}', 'ARCH=x86_64', f'CC={cc}',
             'CROSS_COMPILE=', 'modules'], quiet=True,
            what=f'compiling {stem}')
        place.mkdir(exist_ok=True)
        shutil.copy(work / module.name, module)
        shutil.rmtree(work)
    return module
