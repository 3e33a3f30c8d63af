# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs for guests: C in tests/guest, compiled for their architecture.

A program NAME is tests/guest/NAME.c, or all of tests/guest/NAME/*.c, with
tests/guest/common/*.c. It is compiled against the headers and libraries of
Debian's arm64 packages and cached by the content of all its sources.

    build('odp-stress') -> Path of the executable
    python3 -m odp.guestprog NAME   prints that path
"""

import hashlib
import shutil
import sys
from pathlib import Path

from . import packages
from .aptroot import AptRoot
from .common import OdpError, TOP, cache_dir, locked, output, run, say

SOURCES = TOP / 'tests/guest'
COMMON = SOURCES / 'common'

#: Of an architecture: GNU triplet, and the packages of its compiler.
ARCHS = {
    'arm64': ('aarch64-linux-gnu', {
        'gcc-aarch64-linux-gnu': 'compiles programs for arm64 guests',
        'libc6-dev-arm64-cross': 'their C library',
    }),
    'amd64': ('x86_64-linux-gnu', {
        'gcc': 'compiles programs for amd64 guests',
        'libc6-dev': 'their C library',
    }),
}

#: The oldest suite that guests come from: what is linked with it runs with
#: the newer ones too.
SUITE = 'trixie'
LIBRARIES = ('libibverbs-dev', 'libibverbs1', 'ibverbs-providers')

FLAGS = ['-std=gnu11', '-D_GNU_SOURCE', '-O2', '-g', '-Wall', '-Wextra',
         '-Werror', '-Wno-unused-parameter', '-pthread']


def sources(name):
    """The C files of a program and the headers they can see."""
    own = SOURCES / name
    files = sorted(own.glob('*.c')) if own.is_dir() else \
        [own.with_name(name + '.c')]
    if not files or not all(f.exists() for f in files):
        raise OdpError(f'there is no guest program {name} in {SOURCES}')
    headers = sorted(own.glob('*.h')) if own.is_dir() else []
    return files + sorted(COMMON.glob('*.c')), \
        headers + sorted(COMMON.glob('*.h'))


def compiler(arch='arm64'):
    triplet, needs = ARCHS[arch]
    found = shutil.which(triplet + '-gcc')
    # What builds a kernel needs no C library, and may have come first.
    if found is None or '/' not in output([found, '-print-file-name=libc.so']):
        packages.ensure(needs)
        found = shutil.which(triplet + '-gcc')
    if found is None:
        raise OdpError(f'{triplet}-gcc is missing: install the package '
                       + next(iter(needs)))
    return found


def build(name, arch='arm64'):
    """Path of the program, compiled when its sources are new."""
    files, headers = sources(name)
    cc = compiler(arch)
    key = hashlib.sha256()
    for word in [output([cc, '-dumpfullversion']), arch, SUITE, *LIBRARIES,
                 *FLAGS]:
        key.update(word.encode() + b'\0')
    for path in files + headers:
        key.update(path.name.encode() + b'\0' + path.read_bytes() + b'\0')
    place = cache_dir('guest', 'programs') / f'{name}-{key.hexdigest()[:16]}'
    exe = place / name
    with locked(place.with_suffix('.lock'), 'compiling'):
        if exe.exists():
            return exe
        say(f'compiling {name} for {arch}')
        root = AptRoot().tool([f'{p}:{arch}' for p in LIBRARIES], SUITE)
        lib = root / 'usr/lib' / ARCHS[arch][0]
        place.mkdir(exist_ok=True)
        new = place / (name + '.new')
        # What the library itself needs is in the guest, not here.
        run([cc, *FLAGS, f'-I{COMMON}', f'-I{SOURCES / name}',
             f'-idirafter{root / "usr/include"}', '-o', new, *files,
             f'-L{lib}', '-Wl,--as-needed', '-libverbs', '-lmlx5',
             '-Wl,--allow-shlib-undefined'],
            quiet=True, what=f'compiling {name}')
        new.replace(exe)
    return exe


def copies(*names, where='/usr/local/bin', arch='arm64'):
    """[(file here, path in the guest)] of these programs."""
    return [(build(n, arch), f'{where}/{n}') for n in names]


if __name__ == '__main__':
    for arg in sys.argv[1:]:
        print(build(arg))
