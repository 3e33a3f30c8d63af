# SPDX-License-Identifier: GPL-2.0-or-later
"""`odp libvirt-xml`: print a domain with this project's emulator, a stock
kernel and the guest's userland."""

import re
from pathlib import Path

from . import image, kernel, libvirt
from .cli import Parser
from .common import OdpError, cache_dir, say
from .guest import find_qemu


def mebibytes(text):
    """'2G' or '512M' as MiB."""
    m = re.fullmatch(r'(\d+)([MG])', text)
    if not m:
        raise OdpError(f'--mem {text}: a number and M or G, e.g. 2G')
    return int(m[1]) * (1024 if m[2] == 'G' else 1)


def main(argv):
    p = Parser(prog='odp libvirt-xml',
               description='Print a libvirt domain with an SMMUv3 and an HCA. '
               'docs/libvirt.md tells how to start it.')
    p.add_argument('--name', default='odp')
    p.add_argument('--kernel', default='stock', metavar='K',
                   help='stock, stable or a path, as for odp guest')
    p.add_argument('--iommu', choices=('none', 'smmuv3'), default='smmuv3')
    p.add_argument('--smp', type=int, default=2, metavar='N')
    p.add_argument('--mem', default='2G', metavar='M')
    p.add_argument('--hca-options', default='link=ib', metavar='PROPERTIES')
    p.add_argument('--qemu', metavar='BIN')
    p.add_argument('--initrd', metavar='FILE',
                   help="a file for the guest's initramfs (default: one in "
                   'the cache)')
    opts = p.parse_args(argv)
    mem = mebibytes(opts.mem)
    if not re.fullmatch(r'[\w.+-]+', opts.name):
        raise OdpError(f'--name {opts.name}: letters, digits and . _ + -')
    qemu = find_qemu(opts.qemu)
    kern = kernel.find(opts.kernel)
    layers = [image.userland()['layer'], kern.modules]
    initrd = Path(opts.initrd or cache_dir('guest', 'libvirt')
                  / f'{opts.name}.initrd').absolute()
    image.write_initrd(initrd, [la for la in layers if la])
    say(f'{kernel.describe(kern)}; initramfs {initrd}')
    print(libvirt.fill(qemu, kern.image.absolute(), initrd, name=opts.name,
                       smp=opts.smp, mem=mem, iommu=opts.iommu,
                       hca_options=opts.hca_options), end='')
    return 0
