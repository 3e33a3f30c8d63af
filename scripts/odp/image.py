# SPDX-License-Identifier: GPL-2.0-or-later
"""The guest's root file system: an initramfs made of layers.

    userland   packages of one suite, unpacked (tests/guest/packages.list)
    extra      packages on request, without what the userland has
    modules    of one kernel (kernel.py)
    run        tests/guest/init and the files of one run

Each layer is an archive of its own, cached by the names of what is in it; an
initramfs is their concatenation. Package scripts are not run.
"""

import fnmatch
import gzip
import hashlib
import json
import shutil
import tempfile
import time
from pathlib import Path

from .aptroot import AptRoot, unpack
from .common import OdpError, TOP, cache_dir, locked, say
from .cpio import CpioWriter, write_lz4

SUITE = 'sid'
RECIPE = TOP / 'tests/guest'

#: Count up when the making of a layer changes.
VERSION = 1

#: How long a choice of versions stands before the archive is asked again.
MAX_AGE = 24 * 3600

#: Packages that the userland does without, and with them what only they need.
DROP = ('debconf', 'udev', 'systemd', 'dpkg', 'perl', 'perl-base')
#: The same for packages on request, which may be in Perl.
DROP_EXTRA = ('debconf', 'udev', 'systemd', 'dpkg')

LEAVE_OUT = ('usr/share/doc/*', 'usr/share/man/*', 'usr/share/locale/*',
             'usr/share/info/*', 'usr/share/lintian/*', 'usr/share/bug/*',
             'usr/share/zoneinfo/*', 'usr/share/bash-completion/*',
             'usr/share/perl5/*', 'usr/lib/*/gconv/*',
             'usr/lib/python3*/idlelib/*', 'usr/lib/python3*/test/*',
             'usr/lib/systemd/*', 'usr/lib/udev/*')
TAKE_IN = ('usr/share/doc/rdma-core/tests', 'usr/share/doc/rdma-core/tests/*')

#: A merged /usr, and directories that programs expect.
LINKS = {'bin': 'usr/bin', 'sbin': 'usr/sbin', 'lib': 'usr/lib'}
DIRS = ('dev', 'etc', 'home', 'mnt', 'odp', 'proc', 'root', 'run', 'sys',
        'tmp', 'usr/bin', 'usr/lib', 'usr/sbin', 'var/log', 'var/tmp')
FILES = {
    'etc/passwd': 'root:x:0:0:root:/root:/bin/sh\n'
                  'nobody:x:65534:65534:nobody:/nonexistent:/bin/false\n',
    'etc/group': 'root:x:0:\ntty:x:5:\nrdma:x:100:\nnogroup:x:65534:\n',
    'etc/hosts': '127.0.0.1 localhost odp\n::1 localhost\n',
    'etc/hostname': 'odp\n',
    'etc/nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files\n',
}


def guest_cache(*parts):
    return cache_dir('guest', *parts)


def read_list(path):
    """Words of a list file: one a line, # starts a comment."""
    words = []
    for line in Path(path).read_text().splitlines():
        word = line.partition('#')[0].strip()
        if word:
            words.append(word)
    return words


def digest(*what):
    """Short hash of anything that JSON can hold."""
    text = json.dumps([VERSION, *what], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def remembered(kind, request, paths, make, update=False):
    """The result (JSON) of make() for this request, made again after a day,
    when update is set, or when a file that paths(result) names has gone."""
    memo = guest_cache() / f'{kind}-{digest(request)}.json'
    with locked(memo.with_suffix('.lock'), 'preparing a guest'):
        if memo.exists() and not update:
            fresh = time.time() - memo.stat().st_mtime < MAX_AGE
            result = json.loads(memo.read_text())
            if fresh and all(Path(p).exists() for p in paths(result)):
                return result
        result = make()
        memo.write_text(json.dumps(result, indent=1))
        return result


def wanted(name):
    """Whether a path of a package goes into a guest."""
    if any(fnmatch.fnmatchcase(name, p) for p in TAKE_IN):
        return True
    return not any(fnmatch.fnmatchcase(name, p) for p in LEAVE_OUT)


def _unpack(debs, root):
    """Unpack with a merged /usr, whatever the packages say."""
    for name, target in LINKS.items():
        (root / target).mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(target)
    for deb in debs:
        unpack(deb, root)
    # Debian packs examples; Python wants them unpacked.
    for path in (root / 'usr/share/doc/rdma-core').rglob('*.gz'):
        path.with_suffix('').write_bytes(gzip.decompress(path.read_bytes()))
        path.unlink()


def _layer(debs, base, name, what):
    """Archive of these packages. base: whether it is the one that carries
    the skeleton."""
    path = guest_cache('layers') / f'{name}.cpio.lz4'
    if path.exists():
        return path
    say(f'unpacking {what} ({len(debs)} packages)')
    with tempfile.TemporaryDirectory(prefix='odp-') as tmp:
        root = Path(tmp) / 'root'
        root.mkdir()
        _unpack(debs, root)

        def fill(cpio):
            if base:
                for d in DIRS:
                    cpio.directory(d, 0o1777 if d.endswith('tmp') else 0o755)
                for link, target in LINKS.items():
                    cpio.symlink(link, target)
                for file, text in FILES.items():
                    cpio.file(file, text.encode())
                if not (root / 'usr/bin/sh').exists():
                    cpio.symlink('usr/bin/sh', 'busybox')
                if not (root / 'usr/bin/env').exists():
                    cpio.symlink('usr/bin/env', 'busybox')
            cpio.tree(root, keep=lambda n: n not in LINKS and wanted(n)
                      and n not in FILES)
        write_lz4(path, fill)
    return path


def _is_local(package):
    return package.endswith('.deb')


def _of(arch, names):
    return [f'{n}:{arch}' for n in names]


def _arch_key(arch):
    return [] if arch == 'arm64' else [arch]


def userland(suite=SUITE, update=False, arch='arm64'):
    """{'layer': path, 'debs': [file name]} of the standard userland."""
    names = read_list(RECIPE / 'packages.list')

    def make():
        say(f'choosing the guest\'s packages from {suite}')
        debs = AptRoot().closure(_of(arch, names), suite, drop=DROP)
        files = sorted(d.name for d in debs)
        layer = _layer(debs, True, f'userland-{digest(files, LEAVE_OUT)}',
                       f"the guest's userland from {suite}")
        return {'layer': str(layer), 'debs': files}
    return remembered('userland', [suite, names, DROP, LEAVE_OUT,
                                   *_arch_key(arch)],
                      lambda r: [r['layer']], make, update)


def extra(packages, suite=SUITE, update=False, arch='arm64'):
    """Path of the layer for packages on request: names of the suite, or .deb
    files (which bring themselves only)."""
    if not packages:
        return None
    have = set(userland(suite, update, arch)['debs'])
    local = [Path(p) for p in packages if _is_local(p)]
    for deb in local:
        if not deb.is_file():
            raise OdpError(f'--package {deb}: there is no such file')
    names = sorted(p for p in packages if not _is_local(p))
    stats = [[str(d.absolute()), d.stat().st_mtime_ns] for d in local]

    def make():
        debs = []
        if names:
            debs = AptRoot().closure(_of(arch, names), suite,
                                     drop=DROP_EXTRA)
        debs = [d for d in debs if d.name not in have] + local
        files = sorted(d.name for d in debs)
        layer = _layer(debs, False, f'extra-{digest(files, stats)}',
                       'extra packages')
        return {'layer': str(layer)}
    return Path(remembered('extra', [suite, names, stats, sorted(have),
                                     *_arch_key(arch)],
                           lambda r: [r['layer']], make, update)['layer'])


def parse_copy(spec):
    """'HOST:GUEST' (or 'HOST', to the same name in /root) as two paths."""
    host, _, guest = spec.rpartition(':')
    if not host:
        host, guest = spec, ''
    path = Path(host)
    if not path.exists():
        raise OdpError(f'--copy {spec}: there is no {host} here')
    if not guest:
        guest = f'root/{path.absolute().name}'
    elif guest.endswith('/'):
        guest += path.absolute().name
    elif not guest.startswith('/'):
        guest = f'root/{guest}'
    return path, guest.strip('/')


def write_initrd(path, layers, copies=(), files=None):
    """Make the initramfs of one run at path. layers: archives, in order.
    copies: of parse_copy(). files: {guest path: (text, mode)}.

    The run's own layer comes first, uncompressed: an uncompressed archive
    may stand before compressed ones, but not after them. What it carries for
    other places lies below /odp/copy until init moves it there."""
    with open(path, 'wb') as out:
        cpio = CpioWriter(out)
        cpio.directory('odp/copy')
        cpio.copy(RECIPE / 'init', 'odp/init')
        for name, (text, mode) in sorted((files or {}).items()):
            cpio.file(name, text.encode(), mode)
        for host, guest in copies:
            name = f'odp/copy/{guest}'
            if host.is_dir():
                cpio.directory(name)
                cpio.tree(host, name)
            else:
                cpio.copy(host.resolve(), name)
        cpio.close()
        for layer in layers:
            if layer:
                with open(layer, 'rb') as part:
                    shutil.copyfileobj(part, out, 1 << 20)
