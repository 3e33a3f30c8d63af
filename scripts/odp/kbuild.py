# SPDX-License-Identifier: GPL-2.0-or-later
"""Guest kernels built from Debian's unmodified linux-source package with our
configurations (tests/guest/kernel): what the packaged kernels leave out, SVA
above all.

    built('sva') -> {'image', 'modules', 'release', 'version'}

A kernel is found again by the name of its source package, its configuration,
its compiler and its patches. Only sva-pri has any: tests/guest/patches,
examples of work on a driver with our models.
"""

import os
import re
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from . import image, packages
from .aptroot import AptRoot, unpack
from .common import OdpError, output, remove_tree, run, say

#: Where the source comes from.
SUITE = 'sid'
PACKAGE = 'linux-source'
#: The first version with a driver that binds an address space to a device.
OLDEST = (7, 2)

CONFIG = image.RECIPE / 'kernel'
PATCHES = image.RECIPE / 'patches'


@dataclass
class Arch:
    """How a kernel for one architecture is built.

    image: what make leaves. needs: host packages and why.
    """
    make: str
    prefix: str
    target: str
    image: str
    needs: dict


COMMON_NEEDS = {
    'bc': 'builds kernels',
    'bison': 'builds kernels',
    'flex': 'builds kernels',
    'gcc': 'compiler',
    'libc6-dev': 'compiler',
    'make': 'builds kernels',
    'perl': 'builds kernels',
    'xz-utils': "unpacks the kernel's source",
}

ARCHS = {
    'arm64': Arch('arm64', 'aarch64-linux-gnu-', 'Image',
                  'arch/arm64/boot/Image',
                  {'gcc-aarch64-linux-gnu': 'compiles for arm64 guests'}),
}


@dataclass
class Recipe:
    """config: files of CONFIG, in order: a later one's setting of a symbol
    replaces an earlier one's. patched: with PATCHES. headers: keep what modules
    of ours (guestmodule.py) need."""
    arch: str
    config: tuple
    patched: bool = False
    headers: bool = False


KERNELS = {
    'sva': Recipe('arm64', ('sva.config', 'arm64.config')),
    'sva-16k': Recipe('arm64', ('sva.config', 'arm64.config', '16k.config')),
    'sva-64k': Recipe('arm64', ('sva.config', 'arm64.config', '64k.config')),
    'sva-pri': Recipe('arm64', ('sva.config', 'arm64.config'), patched=True),
    'zdma': Recipe('arm64', ('sva.config', 'arm64.config', 'zdma.config'),
                   headers=True),
}

#: What a build of a module wants of a source tree and of `build` in it.
HEADERS = ('Makefile', 'Kbuild', 'Kconfig', 'scripts', 'include',
           'arch/arm64/Makefile', 'arch/arm64/include', 'tools/include',
           'tools/scripts', 'build/Makefile', 'build/.config',
           'build/Module.symvers', 'build/scripts', 'build/include',
           'build/arch/arm64/include')


def source():
    """(package, version, path of the .deb) of the newest kernel source."""
    apt = AptRoot()
    meta = f'{PACKAGE}:arm64'
    version = apt.policy([meta], SUITE)[PACKAGE]
    names = [d for d in apt.depends(meta, SUITE)
             if re.fullmatch(r'linux-source-\d+\.\d+', d)] if version else []
    if len(names) != 1:
        raise OdpError(f'{SUITE} has no package {PACKAGE}')
    found = tuple(int(n) for n in names[0].split('-')[-1].split('.'))
    if found < OLDEST:
        raise OdpError(f'{names[0]} of {SUITE} is too old: shared virtual '
                       'addressing wants {}.{} or newer'.format(*OLDEST))
    return names[0], version, apt.download([f'{names[0]}:arm64'], SUITE)[0]


def merged(texts):
    """One configuration: the last setting of a symbol is the one that
    stays."""
    setting = re.compile(r'(?:# )?(CONFIG_\w+)(?:=.*| is not set)$')
    lines = [line for text in texts for line in text.splitlines(True)]
    last = {m[1]: i for i, line in enumerate(lines)
            if (m := setting.match(line))}
    return ''.join(line for i, line in enumerate(lines)
                   if not (m := setting.match(line)) or last[m[1]] == i)


def built(name, update=False):
    """The kernel of a recipe, built when it is not there."""
    recipe = KERNELS[name]
    spec = ARCHS[recipe.arch]
    patches = sorted(PATCHES.glob('*.patch')) if recipe.patched else []
    # Nothing is added to what names an unpatched kernel.
    more = [p.read_text() for p in patches]
    config = merged((CONFIG / c).read_text() for c in recipe.config)
    packages.ensure({**COMMON_NEEDS, **spec.needs})
    cc = output([spec.prefix + 'gcc', '-dumpfullversion']).strip()

    def make():
        package, version, deb = source()
        key = image.digest(deb.name, config, cc, *more)
        dest = image.guest_cache('kernels') / \
            f'{name}-{recipe.arch}-{key[:12]}'
        result = {'image': str(dest / Path(spec.image).name),
                  'modules': str(dest / 'modules.cpio.lz4'),
                  'version': version}
        if not (dest / 'release').exists():
            say(f'building the {name} kernel for {recipe.arch} from {package} '
                f'{version}: about 20 minutes of processor time')
            _build(spec, deb, config, dest, patches, recipe.headers)
        result['release'] = (dest / 'release').read_text().strip()
        return result
    return image.remembered('kernel', [name, recipe.arch, SUITE, config, cc,
                                       *more],
                            lambda r: [r['image'], r['modules']], make,
                            update)


def _build(spec, deb, config, dest, patches, headers):
    start = time.monotonic()
    tmp = image.guest_cache('kernel-work') / dest.name
    log = tmp.with_name(tmp.name + '.log')
    remove_tree(tmp)
    tmp.mkdir()
    try:
        unpack(deb, tmp)
        archive = next((tmp / 'usr/src').glob('linux-source-*.tar.xz'))
        run(['tar', '-C', tmp, '-xf', archive, '--exclude=Documentation/*/*'],
            quiet=True)
        archive.unlink()
        tree = next(tmp.glob('linux-source-*'))
        for patch in patches:
            run(['git', 'apply', patch], cwd=tree, quiet=True,
                env={'GIT_CEILING_DIRECTORIES': str(tmp)},
                what=f'applying {patch.name}')
        # Below the source, so that no path of ours gets into the objects.
        out = tree / 'build'
        out.mkdir()
        (out / 'all.config').write_text(config)
        make = ['make', '-s', '-C', tree, 'O=build', f'ARCH={spec.make}',
                f'CROSS_COMPILE={spec.prefix}', 'KBUILD_BUILD_TIMESTAMP=@0',
                'KBUILD_BUILD_USER=odp', 'KBUILD_BUILD_HOST=odp']
        if shutil.which('ccache'):
            make.append(f'CC=ccache {spec.prefix}gcc')
        run(make + [f'KCONFIG_ALLCONFIG={out}/all.config', 'allnoconfig'],
            quiet=True, what="the kernel's configuration")
        _check_config(out / '.config', config)
        _make(make + [f'-j{os.cpu_count()}', spec.target, 'modules'], log)
        mods = tmp / 'mods'
        run(make + ['modules_install', f'INSTALL_MOD_PATH={mods}',
                    'INSTALL_MOD_STRIP=1', 'DEPMOD=true'], quiet=True,
            what='installing modules')
        release = (out / 'include/config/kernel.release').read_text().strip()
        from .kernel import module_layer
        dest.mkdir(parents=True, exist_ok=True)
        module_layer(mods / 'lib/modules' / release, release,
                     dest / 'modules.cpio.lz4', everything=True)
        if headers:
            _keep_headers(tree, dest / 'headers')
        shutil.copy(out / '.config', dest / 'config')
        shutil.copy(out / spec.image, dest / Path(spec.image).name)
        (dest / 'release').write_text(release + '\n')
        log.unlink()
    finally:
        remove_tree(tmp)
    say(f'built kernel {release} in {(time.monotonic() - start) / 60:.0f} '
        'minutes')


def _keep_headers(tree, dest):
    """What a module needs is built with `make -C DEST O=build M=DIR`."""
    remove_tree(dest)
    for name in HEADERS:
        if (tree / name).is_dir():
            shutil.copytree(tree / name, dest / name, symlinks=True)
        else:
            (dest / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(tree / name, dest / name)


def _check_config(path, wanted):
    """Every symbol that we set must have come through."""
    have = dict(re.findall(r'^(CONFIG_\w+)=(.*)$', path.read_text(), re.M))
    bad = [f'{k}={v}' for k, v in
           dict(re.findall(r'^(CONFIG_\w+)=(.*)$', wanted, re.M)).items()
           if have.get(k) != v]
    bad += [f'{k} is not set' for k in
            re.findall(r'^# (CONFIG_\w+) is not set$', wanted, re.M)
            if k in have]
    if bad:
        raise OdpError('the kernel does not take these settings of '
                       f'tests/guest/kernel: {", ".join(bad)}')


def _make(cmd, log):
    """Run make; a sign of life now and then, errors at the end."""
    with open(log, 'w') as out:
        proc = subprocess.Popen([str(c) for c in cmd], stdout=out, stderr=out,
                                stdin=subprocess.DEVNULL)
        try:
            while True:
                try:
                    status = proc.wait(60)
                    break
                except subprocess.TimeoutExpired:
                    say('still building the kernel')
        finally:
            if proc.poll() is None:
                proc.terminate()
                proc.wait()
    if status:
        lines = Path(log).read_text(errors='replace').splitlines()
        raise OdpError(f'the kernel does not build (whole output: {log})\n'
                       + '\n'.join(lines[-30:]))

