# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernel modules for guests: C in tests/guest, built for a stock kernel from
Debian's packages of its headers, or for one of kbuild.py's that keeps them.

A module NAME is tests/guest/NAME/*.c with a Kbuild file. The headers are the
kernel's own arm64 packages; the programs that build with them come from the
host's suite, since the arm64 ones do not run here: the same version, or else
the newest that the suite has.

    build('odp-stall', kernel.find('stable')) -> Path of the .ko
"""

import hashlib
import re
import shutil

from . import guestprog, packages
from .aptroot import AptRoot
from .common import OdpError, cache_dir, locked, output, run, say

TOOLS = {'make': 'builds modules for guests'}


def _kbuild(apt, version):
    """The directory of build programs for a version like 6.12.1+deb13."""
    exact = re.sub(r'\+deb\d+$', '', version)
    series = '.'.join(exact.split('.')[:2])
    for suite in 'host', 'host-backports':
        names = apt.search(rf'linux-kbuild-{re.escape(exact)}(\+deb\d+)?',
                           suite) or \
            apt.search(rf'linux-kbuild-{re.escape(series)}[.+].*', suite)
        if names:
            name = sorted(names, key=lambda n: [
                int(x) for x in re.findall(r'\d+', n)])[-1]
            root = apt.tool([name], suite)
            return next((root / 'usr/lib').glob('linux-kbuild-*'))
    raise OdpError(f'no package linux-kbuild for {version} in this machine\'s '
                   'suite or its backports: modules for that kernel cannot '
                   'be built here')


def _headers(suite, release):
    """Our copy of a kernel's headers, made to work where it lies."""
    common = re.sub(r'-[^-]*$', '', release)
    apt = AptRoot()
    place = cache_dir('guest', 'headers') / release
    tree = place / f'usr/src/linux-headers-{release}'
    with locked(place.with_suffix('.lock'), 'unpacking headers'):
        if (place / 'done').exists():
            return tree
        kbuild = _kbuild(apt, common)
        shutil.rmtree(place, ignore_errors=True)
        debs = apt.download([f'linux-headers-{release}:arm64'], suite) + \
            apt.download([f'linux-headers-{common}-common:arm64'], suite)
        for deb in debs:
            run(['dpkg-deb', '-x', deb, place], quiet=True)
        base = tree.with_name(f'linux-headers-{common}-common')
        for where in tree, base:
            for name in 'scripts', 'tools':
                (where / name).unlink(missing_ok=True)
                (where / name).symlink_to(kbuild / name)
        (tree / 'Makefile').write_text(f'include {base}/Makefile\n')
        # No type information; nothing that only a newer compiler knows.
        (tree / 'vmlinux').unlink(missing_ok=True)
        conf = tree / 'include/config/auto.conf'
        conf.write_text(re.sub('^CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT=.*\n',
                               '', conf.read_text(), flags=re.M))
        (place / 'done').touch()
    return tree


def build(name, kern, suite='trixie'):
    """Path of module NAME for a stock kernel of a suite, or for a kernel of
    ours."""
    src = guestprog.SOURCES / name
    files = sorted(src.glob('*.[ch]')) + [src / 'Kbuild']
    if not kern.version:
        raise OdpError(f'{name}: only kernels of packages have headers')
    packages.ensure(TOOLS)
    cc = guestprog.compiler()
    tree = kern.image.parent / 'headers'
    where = ['-C', tree, 'O=build']
    if not tree.is_dir():
        tree = _headers(suite, kern.release)
        where = ['-C', tree]
    own = kern.image.parent.name if len(where) > 2 else ''
    key = hashlib.sha256(f'{kern.release} {kern.version} {own}'.encode()
                         + output([cc, '-dumpfullversion']).encode())
    for path in files:
        key.update(path.name.encode() + b'\0' + path.read_bytes() + b'\0')
    place = cache_dir('guest', 'programs') / f'{name}-{key.hexdigest()[:16]}'
    module = place / (name.replace('-', '_') + '.ko')
    with locked(place.with_suffix('.lock'), 'compiling'):
        if module.exists():
            return module
        say(f'compiling {name} for {kern.release}')
        work = place.with_suffix('.new')
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        for path in files:
            shutil.copy(path, work)
        run(['make', '-s', *where, f'M={work}', 'ARCH=arm64',
             f'CC={cc}', 'CROSS_COMPILE=aarch64-linux-gnu-', 'modules'],
            quiet=True, what=f'compiling {name}')
        place.mkdir(exist_ok=True)
        shutil.copy(work / module.name, module)
        shutil.rmtree(work)
    return module


def copies(name, kern, where='/root'):
    """Copies for a guest: 'HERE:THERE'."""
    module = build(name, kern)
    return (f'{module}:{where}/{module.name}',)
