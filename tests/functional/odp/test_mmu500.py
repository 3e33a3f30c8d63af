#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# odp: minutes=6
"""Unmodified kernels find the MMU-500 by device tree and by ACPI; NVMe,
virtio and the HCA do their DMA through it; a stray DMA is reported as what it
is."""

import atexit
import hashlib
import os
import re
import tempfile

import odptest

DISK = 8 << 20
EXERCISER_SID = 0x20        # 00:04.0
STRAY = 0x123456000

# Binds the exerciser, which no driver knows, and has it write 4 bytes.
EXERCISER = '''set -e
d=/sys/bus/pci/devices/0000:00:04.0
modprobe uio_pci_generic
if [ ! -e $d/driver ]; then
    echo uio_pci_generic >$d/driver_override
    echo 0000:00:04.0 >/sys/bus/pci/drivers/uio_pci_generic/bind
fi
setpci -s 00:04.0 COMMAND=6:6
cat >/tmp/dma.py <<'EOF'
import mmap, os, sys, time
fd = os.open('/sys/bus/pci/devices/0000:00:04.0/resource0', os.O_RDWR)
regs = memoryview(mmap.mmap(fd, 0x10000)).cast('I')
ch = 0x1000 // 4
addr = int(sys.argv[1], 0)
for i, v in ((1, 0), (2, addr & 0xffffffff), (3, addr >> 32), (4, 4),
             (5, 4), (0, 0x11 if sys.argv[2] == 'w' else 0x1)):
    regs[ch + i] = v
while regs[ch] & 1:
    time.sleep(0.1)
print('status', regs[ch + 5] & 3)
EOF
'''

# A process of the guest owns the exerciser: its memory at an IOVA of its
# choice, and nothing else.
VFIO = """
import ctypes, fcntl, mmap, os, struct, time

def ioctl(fd, nr, arg):
    return fcntl.ioctl(fd, ord(';') << 8 | 100 + nr, arg)

container = os.open('/dev/vfio/vfio', os.O_RDWR)
name = os.path.basename(
    os.readlink('/sys/bus/pci/devices/0000:00:04.0/iommu_group'))
group = os.open('/dev/vfio/' + name, os.O_RDWR)
ioctl(group, 4, struct.pack('i', container))
ioctl(container, 2, 1)
dev = ioctl(group, 6, bytearray(b'0000:00:04.0\\0'))

def region(index):
    info = bytearray(struct.pack('IIIIQQ', 32, 0, index, 0, 0, 0))
    ioctl(dev, 8, info)
    return struct.unpack('IIIIQQ', info)[4:]

os.pwrite(dev, struct.pack('<H', 6), region(7)[1] + 4)
size, offset = region(0)
regs = memoryview(mmap.mmap(dev, size, offset=offset)).cast('I')
size, offset = region(1)
data = mmap.mmap(dev, size, offset=offset)
mem = mmap.mmap(-1, 4096)
mem[:] = b'a' * 4096
iova = 0x76543000

def dma(addr):
    ch = 0x1000 // 4
    for i, v in ((1, 0), (2, addr), (3, 0), (4, 4096), (5, 4), (0, 0x11)):
        regs[ch + i] = v
    while regs[ch] & 1:
        time.sleep(0.1)
    return regs[ch + 5] & 3

data[0:4096] = b'b' * 4096
vaddr = ctypes.addressof(ctypes.c_char.from_buffer(mem))
ioctl(container, 13, struct.pack('IIQQQ', 32, 3, vaddr, iova, 4096))
print('mapped', dma(iova), mem[:] == b'b' * 4096)
print('beyond', dma(iova + 4096))
ioctl(container, 14, bytearray(struct.pack('IIQQ', 24, 0, iova, 4096)))
data[0:4096] = b'c' * 4096
print('unmapped', dma(iova), mem[:] == b'b' * 4096)
"""

def make_disk():
    """A disk of known noise; its path and MD5."""
    fd, path = tempfile.mkstemp(prefix='odp-disk-')
    atexit.register(os.unlink, path)
    data = os.urandom(DISK)
    with os.fdopen(fd, 'wb') as f:
        f.write(data)
    return path, hashlib.md5(data).hexdigest()


class Mmu500:
    iommu = 'mmu500'
    hca = 1
    allow_log = r'arm-smmu.*probing|Unhandled context fault|FSR +=|FSYNR0 =|uio_pci_generic'

    @classmethod
    def setUpClass(cls):
        cls.disk, cls.md5 = make_disk()
        drive = f'file={cls.disk},format=raw,if=none,readonly=on,id='
        cls.qemu_args = cls.firmware() + [
            '-drive', drive + 'd0', '-device', 'nvme,drive=d0,serial=x,addr=2',
            '-drive', drive + 'd1',
            '-device', 'virtio-blk-pci,drive=d1,disable-legacy=on,'
            'iommu_platform=on,addr=3',
            '-device', 'pcie-exerciser,addr=4']
        # Two network cards, joined back to back
        for i in range(2):
            cls.qemu_args += [
                '-netdev', f'hubport,id=n{i},hubid=0', '-device',
                f'virtio-net-pci,netdev=n{i},mac=52:54:00:00:00:0{i + 1},'
                f'disable-legacy=on,iommu_platform=on,romfile=,addr={5 + i}']
        super().setUpClass()

    @staticmethod
    def firmware():
        return []

    def test_probe(self):
        log = self.sh('dmesg')
        self.assertIn('SMMUv2 with:', log)
        self.assertIn('stream matching with 128 register groups', log)
        self.assertIn('64 context banks (0 stage-2 only)', log)
        self.assertIn('coherent table walk', log)
        self.assertNotRegex(log, 'arm-smmu.*(overridden|differs|failed)')

    def test_disks(self):
        self.sh('modprobe -a nvme virtio_pci virtio_blk; '
                'for i in $(seq 100); do '
                '[ -e /dev/nvme0n1 ] && [ -e /dev/vda ] && break; sleep 0.1; '
                'done')
        out = self.sh('md5sum /dev/nvme0n1 /dev/vda')
        self.assertEqual(re.findall('^[0-9a-f]{32}', out, re.M),
                         [self.md5] * 2)
        kind = self.sh('cat /sys/kernel/iommu_groups/*/type').split()
        self.assertEqual(set(kind), {'DMA'})

    def test_net(self):
        """A file from one virtio-net card to the other, each in a network
        namespace."""
        out = self.sh(
            'modprobe -a nvme virtio_pci virtio_net; for i in $(seq 100); do '
            '[ -e /dev/nvme0n1 ] && break; sleep 0.1; done\n'
            'set -e -- /dev/nvme0n1' + odptest.NET)
        self.assertEqual(out.split(), [self.md5] * 2)

    def test_hca(self):
        for flags in '-c -n 100 -s 65536', '-c -o -n 100 -s 65536':
            cmd = f'ibv_rc_pingpong {flags}'
            out = self.sh(f'{cmd} >/tmp/server 2>&1 & s=$!; sleep 2; '
                          f'{cmd} 127.0.0.1 && wait $s')
            self.assertIn('100 iters in', out)
            self.assertNotIn('invalid data', out)

    def test_stray_dma(self):
        """A DMA to where nothing is mapped: the driver decodes it right."""
        self.sh(EXERCISER)
        for how, iova, fsynr0 in (('w', STRAY, 0x110),
                                  ('r', STRAY + 0x1000, 0x100)):
            out = self.sh(f'python3 /tmp/dma.py {iova:#x} {how}')
            self.assertIn('status 2', out)
            log = self.sh("dmesg | grep 'arm-smmu.*fault' -A 2 | tail -3")
            m = re.search(r'Unhandled context fault: fsr=0x402, '
                          rf'iova=0x0*{iova:x}, fsynr=0x([0-9a-f]+), '
                          rf'cbfrsynra=0x{EXERCISER_SID:x}, cb=\d+', log)
            self.assertTrue(m, log)
            self.assertEqual(int(m[1], 16) & ~3, fsynr0, log)
            if 'FSR    =' in log:       # newer kernels spell it out
                self.assertIn(f'[Format=2 TF], SID=0x{EXERCISER_SID:x}', log)
                self.assertEqual('WNR' in log, how == 'w')

    def test_vfio(self):
        """A guest's process drives the exerciser by VFIO."""
        out = self.sh(
            'set -e; d=/sys/bus/pci/devices/0000:00:04.0\n'
            'modprobe -a vfio-pci vfio_iommu_type1\n'
            'echo vfio-pci >$d/driver_override\n'
            '[ ! -e $d/driver ] || echo 0000:00:04.0 >$d/driver/unbind\n'
            'echo 0000:00:04.0 >/sys/bus/pci/drivers_probe\n'
            f'cat >/tmp/vfio.py <<"EOF"\n{VFIO}EOF\n'
            'python3 /tmp/vfio.py\n'
            'echo 0000:00:04.0 >$d/driver/unbind\n'
            'echo >$d/driver_override\n')
        self.assertEqual(out.splitlines(),
                         ['mapped 0 True', 'beyond 2', 'unmapped 2 True'])


class StableDeviceTree(Mmu500, odptest.GuestTest):
    kernel_name = 'stable'


class StockAcpi(Mmu500, odptest.GuestTest):
    kernel_name = 'stock'

    firmware = staticmethod(odptest.efi_firmware)

    def test_acpi(self):
        self.assertIn('ACPI: IORT', self.sh('dmesg'))


odptest.main(__name__)
