# SPDX-License-Identifier: GPL-2.0-or-later
"""Where QEMU's source comes from."""

import hashlib
import os
import re
import shutil
import urllib.error
import urllib.request
from pathlib import Path

from .aptroot import AptRoot
from .common import (OdpError, TOP, cache_dir, locked, remove_tree, run, say)

#: The release that the series is made for.
VERSION = '10.2.2'

#: The suite whose source index has it.
SUITE = 'sid'

RELEASE = f'https://download.qemu.org/qemu-{VERSION}.tar.xz'
#: Of that tarball, as ten build recipes that do not know each other have it.
RELEASE_SHA256 = \
    '784b296ff29c1417aa72323abcb2d2ea9ab9771724f577dcd785c3b04f21e176'


def series_dir(version):
    """The patch series for a QEMU version, e.g. '10.2.2'."""
    path = TOP / 'patches' / ('qemu-' + '.'.join(version.split('.')[:2]))
    if not path.is_dir():
        raise OdpError(f'there is no series for QEMU {version}; there is one '
                       f'for {", ".join(releases())}')
    return path


def releases():
    """The QEMU releases that fit, e.g. ['10.2']."""
    return sorted(p.name[len('qemu-'):]
                  for p in (TOP / 'patches').glob('qemu-*') if p.is_dir())


def version_of(directory):
    """VERSION of a QEMU source tree; OdpError when it is none."""
    try:
        return (Path(directory) / 'VERSION').read_text().strip()
    except OSError:
        raise OdpError(f'{directory} is no QEMU source tree: it has no '
                       'VERSION file') from None


class Source:
    """A tarball or a directory. key: changes when the content may have."""

    def __init__(self, path):
        self.path = Path(path).absolute()
        if not self.path.exists():
            raise OdpError(f'no QEMU source at {self.path} (ODP_QEMU_SOURCE)')
        if self.path.is_dir():
            version_of(self.path)
            what = f'{self.path} {(self.path / "VERSION").stat().st_mtime_ns}'
        else:
            stat = self.path.stat()
            what = f'{self.path.name} {stat.st_size}'
        self.key = hashlib.sha256(what.encode()).hexdigest()[:16]

    def unpack(self, dest):
        """Put the source's files into dest, which must not exist."""
        dest = Path(dest)
        if self.path.is_dir():
            shutil.copytree(self.path, dest, symlinks=True,
                            ignore=shutil.ignore_patterns('.git', '__pycache__')
                            if (self.path / '.git').exists() else None)
            remove_tree(dest / 'build')
            return
        part = dest.with_name(dest.name + '.part')
        remove_tree(part)
        part.mkdir(parents=True)
        run(['tar', '-xf', self.path, '-C', part, '--strip-components=1',
             '--no-same-owner'], quiet=True, what=f'unpacking {self.path}')
        version_of(part)
        part.rename(dest)


def find():
    """The QEMU source to use: what ODP_QEMU_SOURCE names, else the
    distribution's source package, else upstream's release."""
    named = os.environ.get('ODP_QEMU_SOURCE')
    if named:
        return Source(named)
    try:
        files = AptRoot().source('qemu', SUITE, f'1:{VERSION}')
        tarball = [f for f in files
                   if re.fullmatch(r'qemu_.*\.orig\.tar\.\w+', f.name)]
        return Source(tarball[0])
    except OdpError as err:
        say(f"no QEMU {VERSION} from the distribution's source package: "
            f'{str(err).splitlines()[0]}')
    return upstream()


def upstream():
    """Upstream's release tarball, checked before anybody opens it."""
    expected = os.environ.get('ODP_QEMU_SHA256', RELEASE_SHA256)
    expected = expected.strip().lower()
    dest = cache_dir('source') / RELEASE.rsplit('/', 1)[1]
    if not re.fullmatch('[0-9a-f]{64}', expected):
        raise OdpError(f'ODP_QEMU_SHA256={expected} is no SHA-256; it takes '
                       'the 64 digits of the tarball that you trust')
    with locked(dest.with_suffix('.lock'), 'fetching QEMU'):
        if not dest.exists():
            say(f'fetching {RELEASE}')
            part = dest.with_suffix('.part')
            try:
                with urllib.request.urlopen(RELEASE, timeout=60) as reply, \
                        open(part, 'wb') as out:
                    shutil.copyfileobj(reply, out)
            except (urllib.error.URLError, OSError) as err:
                raise OdpError(
                    f'could not fetch {RELEASE}: {err}; set ODP_QEMU_SOURCE '
                    'to a tarball or a directory') from None
            part.rename(dest)
        with open(dest, 'rb') as f:
            found = hashlib.file_digest(f, 'sha256').hexdigest()
        if found != expected:
            dest.unlink()
            raise OdpError(f'{RELEASE} has SHA-256 {found}, not {expected}; '
                           'it was deleted')
    return Source(dest)
