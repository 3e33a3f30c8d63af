# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels for guests: found by package name, unpacked, with the modules that
a guest needs (tests/guest/modules.list) as an initramfs layer."""

import fnmatch
import lzma
import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from . import image, kbuild, packages
from .aptroot import AptRoot, unpack
from .common import OdpError, run, say
from .cpio import write_lz4

#: Kernels by the name that users say: (suite, package).
STOCK = {
    'stable': ('trixie', 'linux-image-arm64'),
    'stock': ('trixie-backports', 'linux-image-arm64'),
    'stock-16k': ('trixie-backports', 'linux-image-arm64-16k'),
}

#: In a kernel's build directory.
IMAGES = {'arm64': 'arch/arm64/boot/Image', 'amd64': 'arch/x86/boot/bzImage'}


@dataclass
class Kernel:
    """A kernel to boot.

    image: file for -kernel. modules: initramfs layer with its modules, or
    None. release: as uname -r says. version: of the package, '' for a file.
    """
    image: Path
    modules: Path
    release: str
    version: str


def names():
    """All names that find() knows."""
    return sorted([*STOCK, *kbuild.KERNELS])


def find(name, update=False, arch='arm64'):
    """The Kernel of a name: one of STOCK or of kbuild.KERNELS, or the path of
    an image, or of a kernel's build directory."""
    if name in STOCK:
        suite, package = STOCK[name]
        if arch != 'arm64':
            if '64-' in package:
                raise OdpError(f'--kernel {name}: only for arm64')
            package = package.replace('arm64', arch)

        def make():
            return _packaged(suite, package, arch)
        found = image.remembered('kernel', [suite, package, _wanted()],
                                 lambda r: [r['image'], r['modules']],
                                 make, update)
        return Kernel(Path(found['image']), Path(found['modules']),
                      found['release'], found['version'])
    if name in kbuild.KERNELS:
        if arch != 'arm64':
            raise OdpError(f'--kernel {name}: only for arm64; the stock amd64 '
                           'kernel binds address spaces, --in-tree builds the '
                           'driver that it leaves out')
        found = kbuild.built(name, update)
        return Kernel(Path(found['image']), Path(found['modules']),
                      found['release'], found['version'])
    if '/' not in name and not os.path.exists(name):
        raise OdpError(f'--kernel {name}: neither a file nor one of '
                       + ', '.join(names()))
    return _from_path(Path(name), arch)


def _wanted():
    return image.read_list(image.RECIPE / 'modules.list')


def _packaged(suite, package, arch):
    """Resolve through package metadata and unpack."""
    apt = AptRoot()
    version = apt.policy([f'{package}:{arch}'], suite)[package]
    if version is None:
        raise OdpError(f'{suite} has no package {package} for {arch}')
    say(f'{package} in {suite} is {version}')
    main = [d for d in apt.depends(f'{package}:{arch}', suite)
            if re.match(r'linux-image-\d', d)]
    if len(main) != 1:
        raise OdpError(f'{package} {version} names no kernel image package')
    release = main[0][len('linux-image-'):]
    # A kernel is one package, or since 7.x one and its parts.
    names = main + [d for d in apt.depends(f'{main[0]}:{arch}', suite)
                    if d.startswith('linux-') and d.endswith(release)]
    debs = apt.download([f'{n}:{arch}' for n in names], suite)
    key = image.digest(sorted(d.name for d in debs), _wanted())
    dest = image.guest_cache('kernels') / f'{release}-{key[:8]}'
    result = {'image': str(dest / 'vmlinuz'), 'release': release,
              'modules': str(dest / 'modules.cpio.lz4'), 'version': version}
    if all(Path(result[k]).exists() for k in ('image', 'modules')):
        return result
    say(f'unpacking kernel {release}')
    with tempfile.TemporaryDirectory(prefix='odp-') as tmp:
        tmp = Path(tmp)
        for deb in debs:
            unpack(deb, tmp)
        places = [tmp / f'boot/vmlinuz-{release}',
                  tmp / f'usr/lib/modules/{release}/vmlinuz',
                  tmp / f'lib/modules/{release}/vmlinuz']
        found = [p for p in places if p.exists()]
        if not found:
            raise OdpError(f'{package} {version} has no vmlinuz where it was '
                           'expected')
        dest.mkdir(parents=True, exist_ok=True)
        moddir = next((d for d in (tmp / f'usr/lib/modules/{release}',
                                   tmp / f'lib/modules/{release}')
                       if d.is_dir()), None)
        if moddir is None:
            raise OdpError(f'{package} {version} has no modules')
        module_layer(moddir, release, Path(result['modules']))
        for config in (tmp / f'boot/config-{release}', moddir / 'config'):
            if config.exists():
                shutil.copy(config, dest / 'config')
        shutil.copy(found[0], result['image'])
    return result


def _from_path(path, arch):
    """An image file, or a build directory (its image, and its modules)."""
    if path.is_file():
        return Kernel(path, None, '', '')
    where = IMAGES[arch]
    built = path / where
    if not built.is_file():
        raise OdpError(f'--kernel {path}: neither a kernel image nor a '
                       f'directory with {where}')
    release = (path / 'include/config/kernel.release').read_text().strip()
    order = path / 'modules.order'
    if not order.exists():
        return Kernel(built, None, release, '')
    objects = [o[:-2] + '.ko' if o.endswith('.o') else o
               for o in order.read_text().split()]
    stats = [[o, (path / o).stat().st_mtime_ns] for o in objects]
    layer = image.guest_cache('kernels') / (
        f'built-{image.digest(str(path.absolute()), release, stats)}'
        '.cpio.lz4')
    if not layer.exists():
        say(f'collecting the modules of {path}')
        with tempfile.TemporaryDirectory(prefix='odp-') as tmp:
            moddir = Path(tmp) / release
            for obj in objects:
                dest = moddir / 'kernel' / obj
                dest.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path / obj, dest)
            moddir.mkdir(exist_ok=True)
            for name in ('modules.order', 'modules.builtin',
                         'modules.builtin.modinfo'):
                if (path / name).exists():
                    shutil.copy(path / name, moddir / name)
            module_layer(moddir, release, layer, everything=True)
    return Kernel(built, layer, release, '')


def _stem(name):
    """kernel/a/b.ko.xz -> kernel/a/b.ko"""
    return re.sub(r'\.(xz|zst|gz)$', '', name)


def _depmod(root, release):
    packages.ensure({'kmod': "indexes the modules of guests' kernels"})
    tool = shutil.which('depmod', path=os.environ.get('PATH', '')
                        + ':/usr/sbin:/sbin')
    if tool is None:
        raise OdpError('there is no depmod here: install kmod')
    run([tool, '-b', root, release], quiet=True)


def _unxz(path, dest):
    dest.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == '.xz':
        dest.write_bytes(lzma.decompress(path.read_bytes()))
    elif path.suffix == '.zst':
        run(['zstd', '-q', '-d', path, '-o', dest], quiet=True)
    else:
        shutil.copy(path, dest)


def _dependencies(path):
    """Names (with - as _) of the modules that a module file needs."""
    # .modinfo is NUL-separated text in the object.
    data = path.read_bytes()
    found = []
    for tag in (b'\0depends=', b'\0softdep=pre: '):
        start = data.find(tag)
        while start >= 0:
            start += len(tag)
            text = data[start:data.index(b'\0', start)].decode()
            found += re.split(r'[,\s]+', text.partition(' post:')[0])
            start = data.find(tag, start)
    return [f.replace('-', '_') for f in found if f]


def module_layer(moddir, release, dest, everything=False):
    """Archive of the wanted modules of moddir (lib/modules/RELEASE)."""
    files = {str(p.relative_to(moddir)): p
             for p in sorted((moddir / 'kernel').rglob('*.ko*'))}
    by_name = {_stem(Path(rel).name)[:-3].replace('-', '_'): rel
               for rel in files}
    todo = [rel for rel in files
            if everything or any(
                fnmatch.fnmatchcase(_stem(rel), f'kernel/{p}')
                for p in _wanted())]
    with tempfile.TemporaryDirectory(prefix='odp-') as tmp:
        root = Path(tmp)
        out = root / 'lib/modules' / release
        out.mkdir(parents=True)
        done = set()
        while todo:
            rel = todo.pop()
            if rel in done:
                continue
            done.add(rel)
            target = out / _stem(rel)
            _unxz(files[rel], target)
            todo += [by_name[d] for d in _dependencies(target)
                     if d in by_name]
        for meta in ('modules.order', 'modules.builtin',
                     'modules.builtin.modinfo'):
            if (moddir / meta).exists():
                shutil.copy(moddir / meta, out / meta)
        _depmod(root, release)
        write_lz4(dest, lambda cpio: cpio.tree(
            out, f'usr/lib/modules/{release}'))
    return dest


def describe(kernel):
    """One line for people."""
    if kernel.version:
        return f'kernel {kernel.release} (package {kernel.version})'
    return f'kernel {kernel.image}'
