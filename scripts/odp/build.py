# SPDX-License-Identifier: GPL-2.0-or-later
"""`odp build`: QEMU with our series and overlay."""

import os
import re
import shutil
import subprocess
import time
from pathlib import Path

from . import packages
from .aptroot import AptRoot
from .cli import Parser
from .common import (OdpError, SYSTEM_PYTHON, TOP, VERBOSE, build_dir, locked,
                     output, remove_tree, run, say)
from .tree import Tree

TARGETS = ('aarch64', 'x86_64')
PROFILES = ('minimal', 'full')

#: What QEMU itself needs, and why.
PACKAGES = {
    'gcc': 'compiler',
    'libc6-dev': 'compiler',
    'git': 'applies the patch series',
    'xz-utils': "unpacks QEMU's source",
    'pkg-config': 'finds libraries',
    'ninja-build': 'runs the build',
    'python3-venv': "QEMU's configure",
    'flex': 'device tree compiler',
    'bison': 'device tree compiler',
    'device-tree-compiler': 'device tree blobs',
    'libglib2.0-dev': "QEMU's main loop",
    'libfdt-dev': 'device trees of Arm machines',
    'libpixman-1-dev': 'display code of Arm boards',
}

#: What boards and cards load at reset; Debian packages it apart from QEMU.
FIRMWARE = ('qemu-system-data', 'seabios', 'ipxe-qemu')
FIRMWARE_DIRS = ('usr/share/qemu', 'usr/share/seabios', 'usr/lib/ipxe/qemu')

MINIMAL = ['--without-default-features', '--enable-tcg', '--enable-fdt=system',
           '--enable-system', '--enable-pixman', '--disable-docs',
           '--disable-download', '--disable-install-blobs',
           '--enable-trace-backends=log']

#: What a QEMU that libvirt manages is expected to have. The distribution's
#: libraries, no graphics stack.
FULL = ['--without-default-features', '--enable-system', '--enable-tools',
        '--enable-tcg', '--enable-kvm', '--enable-fdt=system',
        '--disable-docs', '--disable-download', '--disable-install-blobs',
        '--enable-trace-backends=log', '--enable-plugins',
        # sandbox and sockets of libvirt, TLS of migration, VNC and NBD
        '--enable-seccomp', '--enable-cap-ng', '--enable-gnutls',
        '--enable-membarrier', '--enable-malloc-trim',
        # network
        '--enable-slirp', '--enable-vhost-net', '--enable-vhost-user',
        '--enable-vhost-kernel', '--enable-vhost-vdpa',
        '--enable-colo-proxy', '--enable-l2tpv3',
        # storage
        '--enable-linux-aio', '--enable-linux-io-uring', '--enable-attr',
        '--enable-virtfs', '--enable-zstd', '--enable-replication',
        '--enable-qcow1', '--enable-vdi', '--enable-vpc', '--enable-vvfat',
        '--enable-dmg', '--enable-parallels', '--enable-qed',
        '--enable-vhost-user-blk-server', '--enable-curl',
        # memory, TPM, host devices
        '--enable-numa', '--enable-tpm', '--enable-libusb',
        '--enable-usb-redir', '--enable-libudev', '--enable-multiprocess',
        # screens
        '--enable-pixman', '--enable-vnc', '--enable-vnc-sasl',
        '--enable-vnc-jpeg', '--enable-png', '--enable-curses',
        '--enable-iconv']

FULL_PACKAGES = {
    'libattr1-dev': 'shared directories (9p)',
    'libaio-dev': 'disks with io=native',
    'libcap-ng-dev': 'helpers that drop privileges',
    'libcurl4-gnutls-dev': 'disk images over HTTP',
    'libgnutls28-dev': 'TLS of migration, VNC and NBD',
    'libjpeg-dev': 'VNC',
    'libncurses-dev': 'text screen',
    'libnuma-dev': 'binding guest memory to host nodes',
    'libpng-dev': 'screenshots',
    'libsasl2-dev': 'VNC log-in',
    'libseccomp-dev': 'the sandbox that libvirt asks for',
    'libslirp-dev': 'user-mode network',
    'libudev-dev': 'host devices',
    'libusb-1.0-0-dev': 'host USB devices',
    'libusbredirparser-dev': 'USB redirection',
    'liburing-dev': 'disks with io=io_uring',
    'libzstd-dev': 'compressed migration and images',
}

MESON_MINIMUM = (1, 5)


def python_env():
    """Environment in which the distribution's python3 has a meson that is
    new enough: its own, else that of the backports in a private root."""
    probe = ('import pycotap\n'
             'from mesonbuild.coredata import version\n'
             'print(version)')
    found = output([SYSTEM_PYTHON, '-c', probe], check=False).strip()
    if tuple(int(n) for n in re.findall(r'\d+', found)[:2]) >= MESON_MINIMUM:
        return {}
    root = AptRoot().tool(['meson', 'python3-pycotap'], 'host-backports')
    return {'PYTHONPATH': f'{root}/usr/lib/python3/dist-packages'}


def firmware():
    """Directory with the firmware images, filled from the distribution's
    packages through the private apt root."""
    dest = build_dir('firmware')
    with locked(build_dir('firmware.lock'), 'fetching firmware'):
        if not dest.exists():
            root = AptRoot().tool(FIRMWARE, 'host')
            part = build_dir('firmware.part')
            remove_tree(part)
            for sub in FIRMWARE_DIRS:
                shutil.copytree(root / sub, part, dirs_exist_ok=True,
                                ignore_dangling_symlinks=True)
            part.rename(dest)
    return dest


class Build:
    """One configured build directory."""

    def __init__(self, target='aarch64', profile='minimal', asan=False):
        self.target, self.profile, self.asan = target, profile, asan
        name = f'{target}-{profile}' + ('-asan' if asan else '')
        self.dir = build_dir(name)
        self.binary = self.dir / f'qemu-system-{target}'

    def configure_args(self):
        args = [f'--python={SYSTEM_PYTHON}',
                f'--target-list={self.target}-softmmu']
        args += MINIMAL if self.profile == 'minimal' else FULL
        if self.asan:
            args += ['--enable-asan', '--disable-werror']
        return args

    def env(self):
        env = python_env()
        if shutil.which('ccache'):
            env['CC'] = 'ccache gcc'
            # Other checkouts, and the ASan build's common parts, hit too.
            env['CCACHE_BASEDIR'] = str(TOP.parent)
            env['CCACHE_NOHASHDIR'] = '1'
        return env

    def make(self, goals=()):
        """Configure when needed and build; returns the emulator's path.
        goals: ninja targets; the emulator if none (all, for `full`)."""
        packages.ensure({**PACKAGES, **FULL_PACKAGES}
                        if self.profile == 'full' else PACKAGES)
        start = time.monotonic()
        tree = Tree().prepare()
        env = self.env()
        with locked(self.dir.with_name(self.dir.name + '.lock'), 'building'):
            self._configure(tree, env)
            self._firmware()
            self._ninja(env, goals or self._default_goals())
        used = time.monotonic() - start
        say(f'{", ".join(goals) or self.binary} is up to date '
            f'({used:.0f} s)')
        return self.binary

    def _configure(self, tree, env):
        args = self.configure_args()
        wanted = '\n'.join([str(tree), env.get('CC', 'gcc')] + args) + '\n'
        stamp = self.dir / 'odp-configured'
        if stamp.exists() and stamp.read_text() == wanted and \
                (self.dir / 'build.ninja').exists():
            return
        self.dir.mkdir(parents=True, exist_ok=True)
        say(f'configuring QEMU for {self.target}, profile {self.profile}'
            + (', with address sanitizer' if self.asan else ''))
        run([tree / 'configure'] + args, cwd=self.dir, env=env,
            log=self.dir / 'odp-configure.log', what="QEMU's configure")
        stamp.write_text(wanted)

    def _default_goals(self):
        return [self.binary.name] if self.profile == 'minimal' else []

    def _firmware(self):
        """Put the firmware where an emulator that runs from its build
        directory looks. (A --firmwarepath would do, but it gets into
        config-host.h and keeps ccache from knowing another checkout.)"""
        bundle = self.dir / 'qemu-bundle/usr/local/share/qemu'
        have = firmware()
        bundle.mkdir(parents=True, exist_ok=True)
        for path in have.iterdir():
            link = bundle / path.name
            if not link.is_symlink() and not link.exists():
                link.symlink_to(path)

    def _ninja(self, env, goals):
        cmd = ['ninja', '-C', self.dir] + list(goals)
        if VERBOSE:
            run(cmd, env=env)
            return
        ninja(cmd, env, self.dir / 'odp-ninja.log')


def ninja(cmd, env, log):
    """Run ninja; show its progress now and then, and on failure the output
    of the step that failed."""
    shown = time.monotonic()
    tail = []
    with open(log, 'w') as out:
        proc = subprocess.Popen([str(c) for c in cmd], text=True,
                                env=dict(os.environ, **env),
                                stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, errors='replace',
                                stderr=subprocess.STDOUT)
        try:
            for line in proc.stdout:
                out.write(line)
                step = re.match(r'\[(\d+)/(\d+)\] ', line)
                if step and time.monotonic() - shown > 20:
                    shown = time.monotonic()
                    say(f'building, {step[1]} of {step[2]}')
                if 'warning:' in line:
                    say(line.rstrip())
                tail.append(line.rstrip())
                del tail[:-60]
            status = proc.wait()
        finally:
            if proc.poll() is None:
                proc.terminate()
                proc.wait()
    if status:
        first = next((i for i, line in enumerate(tail)
                      if line.startswith('FAILED:')), 0)
        raise OdpError('the build failed (whole output: '
                       f'{log})\n' + '\n'.join(tail[first:]))


#: Variables that name a ready emulator.
NAMED = {'aarch64': 'ODP_QEMU', 'x86_64': 'ODP_QEMU_X86_64'}


def emulator(target='aarch64', profile='minimal'):
    """Path of an emulator, built when it is not there and no variable of
    NAMED names one."""
    named = os.environ.get(NAMED[target])
    if named:
        if not os.access(named, os.X_OK):
            raise OdpError(f'{NAMED[target]} names {named}, which is no '
                           'program')
        return Path(named)
    return Build(target, profile).make()


def main(args):
    p = Parser(prog='odp build',
               description='Build QEMU with the models of this project.')
    p.add_argument('--profile', choices=PROFILES, default='minimal',
                   help='minimal: what the tests need; full: a QEMU to keep, '
                   'with the features that libvirt users want')
    p.add_argument('--target', choices=TARGETS, default='aarch64')
    p.add_argument('--asan', action='store_true',
                   help='with the address sanitizer, in a directory of its '
                   'own')
    p.add_argument('goal', nargs='*', help='ninja targets, e.g. a qtest')
    opts = p.parse_args(args)
    binary = Build(opts.target, opts.profile, opts.asan).make(opts.goal)
    if not opts.goal:
        print(binary)
    return 0
