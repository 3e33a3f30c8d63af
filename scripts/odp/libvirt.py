# SPDX-License-Identifier: GPL-2.0-or-later
"""libvirt for one domain, without its daemon and without installing it.

virt-qemu-run comes from the machine when a recent one is installed; else from
Debian's packages (the machine's suite and its backports), unpacked below our
cache and laid over /usr in a mount namespace of its own.
"""

import os
import re
import shlex
import shutil
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

from . import image
from .aptroot import AptRoot, unpack
from .common import OdpError, TOP, cache_dir, locked, remove_tree, say

EXAMPLE = TOP / 'docs/examples/odp-hca.xml'
QEMU_NS = 'http://libvirt.org/schemas/domain/qemu/1.0'

#: 9.0, Debian 12's own, passes -no-acpi, which QEMU 9.0 and newer reject.
MINIMUM = (9, 3)

PACKAGE = 'libvirt-daemon-driver-qemu'
#: What a machine has anyway, and emulators that are not ours.
DROP = ('adduser', 'cron', 'dbus', 'debconf', 'dpkg', 'dmsetup', 'libc6',
        'libpam-runtime', 'logrotate', 'mount', 'passwd', 'perl', 'perl-base',
        'qemu-kvm', 'qemu-system', 'systemd', 'systemd-container', 'tar',
        'usrmerge', 'init-system-helpers')

#: For one user's domain in a directory of its own.
QEMU_CONF = '''\
stdio_handler = "file"
security_driver = "none"
user = "root"
group = "root"
dynamic_ownership = 0
remember_owner = 0
namespaces = []
cgroup_controllers = []
'''


class Unavailable(OdpError):
    """This machine cannot run libvirt; the message is one line."""


def _private_root():
    """Directory with libvirt's packages unpacked, /usr merged."""
    debs = AptRoot().closure([PACKAGE], 'host-backports', drop=DROP)
    name = image.digest(sorted(d.name for d in debs))
    root = cache_dir('libvirt') / name
    with locked(root.with_suffix('.lock'), 'unpacking libvirt'):
        if (root / '.done').exists():
            return root
        say(f'unpacking libvirt ({len(debs)} packages)')
        remove_tree(root)
        for deb in debs:
            unpack(deb, root)
        for name in ('bin', 'sbin', 'lib', 'lib64'):
            if (root / name).is_dir():
                shutil.copytree(root / name, root / 'usr' / name,
                                symlinks=True, dirs_exist_ok=True)
        # libvirt knows one user by name even where it does not use it.
        for file, line in (('passwd', 'libvirt-qemu:x:64055:64055::/:/bin/'
                            'false'), ('group', 'libvirt-qemu:x:64055:')):
            text = Path('/etc', file).read_text()
            if 'libvirt-qemu:' not in text:
                text += line + '\n'
            (root / file).write_text(text)
        (root / '.done').touch()
    return root


def _installed():
    """virt-qemu-run of the machine when it is recent enough."""
    tool = shutil.which('virt-qemu-run')
    if tool is None:
        return None
    text = subprocess.run(['dpkg-query', '-W', '-f', '${Version}', PACKAGE],
                          text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL).stdout
    version = tuple(int(n) for n in re.findall(r'\d+', text)[:2])
    return tool if version >= MINIMUM else None


def _namespace():
    """Command that runs a shell command in namespaces of its own; all its
    processes end with it."""
    if shutil.which('unshare') is None:
        raise Unavailable('there is neither a recent virt-qemu-run nor '
                          'unshare here')
    user = [] if os.geteuid() == 0 else ['--map-root-user']
    cmd = ['unshare', *user, '--mount', '--pid', '--fork', '--kill-child',
           '--mount-proc', 'sh', '-ec']
    probe = subprocess.run(
        cmd + ['mount -t overlay overlay -o lowerdir=/etc:/usr /usr'],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if probe.returncode:
        raise Unavailable('there is no recent virt-qemu-run here, and this '
                          'machine does not let us mount an overlay in a '
                          'namespace of our own')
    return cmd


def command(state, domain):
    """Command that runs the domain (path of an XML file) until one of the two
    ends. state: directory for all that libvirt keeps."""
    state = Path(state)
    (state / 'etc').mkdir(parents=True, exist_ok=True)
    (state / 'etc/qemu.conf').write_text(QEMU_CONF)
    run = ['virt-qemu-run', '-r', str(state), str(domain)]
    if _installed() and os.geteuid() == 0:
        return run
    namespace = _namespace()
    root = _private_root()
    setup = [['mount', '--bind', root / 'passwd', '/etc/passwd'],
             ['mount', '--bind', root / 'group', '/etc/group'],
             ['mount', '-t', 'overlay', 'overlay', '-o',
              f'lowerdir={root}/usr:/usr', '/usr']]
    script = '\n'.join(shlex.join(str(w) for w in c) for c in setup)
    return namespace + [f'{script}\nexec {shlex.join(run)}']


def fill(emulator, kernel, initrd, *, name='odp', smp=2, mem=2048,
         iommu='smmuv3', hca_options='link=ib'):
    """Text of the example with its paths and sizes (mem in MiB)."""
    text = EXAMPLE.read_text()
    changes = {
        '/path/to/qemu-system-aarch64': str(emulator),
        '/path/to/vmlinuz': str(kernel),
        '/path/to/initrd': str(initrd),
        '<name>odp</name>': f'<name>{name}</name>',
        "<memory unit='GiB'>2</memory>": f"<memory unit='MiB'>{mem}</memory>",
        '<vcpu>2</vcpu>': f'<vcpu>{smp}</vcpu>',
        '"link":"ib"': ','.join(
            f'"{k}":"{v}"' for k, _, v in
            (o.partition('=') for o in hca_options.split(',') if o)),
    }
    if iommu == 'none':
        changes["    <iommu model='smmuv3'/>\n"] = ''
    for old, new in changes.items():
        if old not in text:
            raise OdpError(f'{EXAMPLE.name} has no {old}')
        text = text.replace(old, new)
    return text


def add_ports(text, sockets, console):
    """The domain with virtio ports ({name: socket path}, to which QEMU
    connects) and its console in a file."""
    ET.register_namespace('qemu', QEMU_NS)
    domain = ET.fromstring(text)
    devices = domain.find('devices')
    for serial in devices.findall('serial'):
        devices.remove(serial)
    serial = ET.SubElement(devices, 'serial', type='file')
    ET.SubElement(serial, 'source', path=str(console))
    for name, path in sockets.items():
        channel = ET.SubElement(devices, 'channel', type='unix')
        ET.SubElement(channel, 'source', mode='connect', path=str(path))
        ET.SubElement(channel, 'target', type='virtio', name=name)
    return ET.tostring(domain, encoding='unicode')
