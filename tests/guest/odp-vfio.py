#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A PCI function in the hands of a program: odp-vfio.py MODE HOW PCI

HOW: type1 or iommufd. MODE: exerciser, hca or portal, whatever PCI is. The
function is bound to vfio-pci. Prints what happened; an assertion is a
failure."""

import ctypes
import fcntl
import glob
import mmap
import os
import struct
import sys
import time

IOVA, LEN = 0x40000000, 1 << 20

# _IO(';', n) of linux/vfio.h and linux/iommufd.h
SET_IOMMU, GROUP_STATUS, SET_CONTAINER, GET_DEVICE = 0x3b66, 0x3b67, 0x3b68, \
    0x3b6a
REGION_INFO, SET_IRQS, DEVICE_RESET = 0x3b6c, 0x3b6e, 0x3b6f
MAP_DMA, UNMAP_DMA = 0x3b71, 0x3b72
BIND_IOMMUFD, ATTACH_PT = 0x3b76, 0x3b77
IOAS_ALLOC, IOAS_MAP, IOAS_UNMAP = 0x3b81, 0x3b85, 0x3b86
CONFIG_REGION = 7


def ioctl(fd, request, fmt, *values):
    """With a struct; what it holds afterwards."""
    buf = bytearray(struct.pack(fmt, *values))
    fcntl.ioctl(fd, request, buf)
    return struct.unpack(fmt, buf)


class Type1:
    """Container and group."""

    def __init__(self, pci):
        group = os.path.basename(os.readlink(
            f'/sys/bus/pci/devices/{pci}/iommu_group'))
        self.container = os.open('/dev/vfio/vfio', os.O_RDWR)
        self.group = os.open(f'/dev/vfio/{group}', os.O_RDWR)
        viable = ioctl(self.group, GROUP_STATUS, 'II', 8, 0)[1] & 1
        assert viable, 'the group is not viable'
        ioctl(self.group, SET_CONTAINER, 'i', self.container)
        fcntl.ioctl(self.container, SET_IOMMU, 3)       # type1v2
        self.fd = fcntl.ioctl(self.group, GET_DEVICE,
                              bytearray(pci.encode() + b'\0'))

    def map(self, iova, addr, size):
        ioctl(self.container, MAP_DMA, 'IIQQQ', 32, 3, addr, iova, size)

    def unmap(self, iova, size):
        ioctl(self.container, UNMAP_DMA, 'IIQQ', 24, 0, iova, size)


class Iommufd:
    """The function's own device node."""

    def __init__(self, pci):
        node = os.path.basename(glob.glob(
            f'/sys/bus/pci/devices/{pci}/vfio-dev/vfio*')[0])
        self.iommufd = os.open('/dev/iommu', os.O_RDWR)
        self.fd = os.open(f'/dev/vfio/devices/{node}', os.O_RDWR)
        ioctl(self.fd, BIND_IOMMUFD, 'IIiI', 16, 0, self.iommufd, 0)
        self.ioas = ioctl(self.iommufd, IOAS_ALLOC, 'III', 12, 0, 0)[2]
        ioctl(self.fd, ATTACH_PT, 'III', 12, 0, self.ioas)

    def map(self, iova, addr, size):
        # fixed address, readable, writable
        ioctl(self.iommufd, IOAS_MAP, 'IIIIQQQ', 40, 7, self.ioas, 0, addr,
              size, iova)

    def unmap(self, iova, size):
        ioctl(self.iommufd, IOAS_UNMAP, 'IIQQ', 24, self.ioas, iova, size)


class Memory:
    """Anonymous memory."""

    def __init__(self, size):
        self.mem = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE
                             | mmap.MAP_ANONYMOUS)
        self.addr = ctypes.addressof(ctypes.c_char.from_buffer(self.mem))


def region(dev, index):
    """(offset, size)"""
    got = ioctl(dev.fd, REGION_INFO, 'IIIIQQ', 32, 0, index, 0, 0, 0)
    return got[5], got[4]


def bar(dev, index):
    offset, size = region(dev, index)
    return mmap.mmap(dev.fd, size, offset=offset)


def bus_master(dev):
    offset = region(dev, CONFIG_REGION)[0] + 4
    command = struct.unpack('<H', os.pread(dev.fd, 2, offset))[0]
    os.pwrite(dev.fd, struct.pack('<H', command | 6), offset)


def exerciser(dev):
    """DMA while the mapping comes and goes, and to a doorbell."""
    bus_master(dev)
    regs = memoryview(bar(dev, 0)).cast('I')
    data = bar(dev, 1)
    memory = Memory(LEN)
    refused = through = 0

    def start(n, addr, size):
        ch = (0x1000 + n * 0x20) // 4
        for i, v in ((1, 0), (2, addr & 0xffffffff), (3, addr >> 32),
                     (4, size), (5, 4), (0, 0x11)):
            regs[ch + i] = v

    def end(n):
        ch = (0x1000 + n * 0x20) // 4
        limit = time.monotonic() + 30
        while regs[ch] & 1:
            assert time.monotonic() < limit, 'a transfer does not end'
        return regs[ch + 5] & 3

    for i in range(100):
        dev.map(IOVA, memory.addr, LEN)
        data[0:65536] = bytes([i]) * 65536
        for n in range(16):
            start(n, IOVA + n * 65536, 65536)
        if i & 1:
            dev.unmap(IOVA, LEN)
        done = [end(n) for n in range(16)]
        for n, status in enumerate(done):
            assert status in (0, 2), status
            if not status:
                assert memory.mem[n * 65536:(n + 1) * 65536] == \
                    data[0:65536]
        if i & 1:
            # Nothing arrives after the unmap.
            memory.mem[0:8] = b'unharmed'
            start(0, IOVA, 4096)
            assert end(0) == 2
            assert memory.mem[0:8] == b'unharmed'
            refused += 1
        else:
            assert done == [0] * 16
            dev.unmap(IOVA, LEN)
        through += done.count(0)
    print('transfers', through, 'refused after an unmap', refused)
    # A doorbell of MSIs that nobody mapped, there and at its place in the
    # machine: stopped.
    for doorbell in 0x8000040, 0x8090040:
        data[0:4] = struct.pack('<I', 0)
        start(0, doorbell, 4)
        assert end(0) == 2
    print('doorbells refused 2')

    # With an MSI of its own the doorbell is mapped. Who writes is known: of
    # 256 events there only its own one is an interrupt, and nobody else's.
    event = os.eventfd(0, os.EFD_NONBLOCK)
    # an eventfd as trigger of MSI-X vector 0
    ioctl(dev.fd, SET_IRQS, 'IIIIIi', 24, 0x24, 2, 0, 1, event)

    def fired():
        limit = time.monotonic() + 10
        while time.monotonic() < limit:
            try:
                return os.eventfd_read(event)
            except BlockingIOError:
                time.sleep(0.01)
        return 0

    def others():
        with open('/proc/interrupts') as f:
            return [line.split() for line in f if 'mlx5' in line]

    regs[0] = 1 << 31
    assert fired() == 1
    before = others()
    assert before
    for number in reversed(range(256)):
        data[0:4] = struct.pack('<I', number)
        start(0, 0x8000040, 4)
        assert end(0) == 0
    assert fired() == 1
    assert others() == before
    print('MSIs written 256, interrupts 1')


def hca(dev):
    """A command by hand: the HCA reads and answers it in mapped memory."""
    bus_master(dev)
    seg = memoryview(bar(dev, 0)).cast('I')
    memory = Memory(8192)

    def swap(value):
        return struct.unpack('<I', struct.pack('>I', value))[0]

    def put(offset, value):
        seg[offset // 4] = swap(value)

    def get(offset):
        return swap(seg[offset // 4])

    def command(opcode):
        entry = bytearray(64)
        entry[0] = 7                            # transport: PCI
        entry[4:8] = struct.pack('>I', 16)
        entry[16:18] = struct.pack('>H', opcode)
        entry[56:60] = struct.pack('>I', 16)
        entry[60] = 1
        entry[63] = 1                           # the HCA owns it
        memory.mem[0:64] = bytes(entry)
        put(0x18, 1)
        limit = time.monotonic() + 2
        while memory.mem[63] & 1:
            if time.monotonic() > limit:
                return None
        return memory.mem[63] >> 1, memory.mem[32]

    fcntl.ioctl(dev.fd, DEVICE_RESET)
    bus_master(dev)
    dev.map(IOVA, memory.addr, 8192)
    put(0x10, 0)
    put(0x14, IOVA)
    limit = time.monotonic() + 10
    while get(0x1fc) >> 31:
        assert time.monotonic() < limit, 'it does not initialise'
    enable = command(0x104)                     # ENABLE_HCA
    assert enable == (0, 0), enable
    for _ in range(25):
        assert command(0x105) == (0, 0)         # DISABLE_HCA
        assert command(0x104) == (0, 0)         # ENABLE_HCA
    dev.unmap(IOVA, 8192)
    gone = command(0x105)
    assert gone is None, gone
    dev.map(IOVA, memory.addr, 8192)
    print('commands 51, none without a mapping')


def portal(dev):
    """Registers and function-level reset; no DMA without a PASID."""
    regs = memoryview(bar(dev, 0)).cast('I')
    assert regs[0] == 0x50415653, hex(regs[0])
    bus_master(dev)
    regs[0x14 // 4] = 1 << 31 | 1
    regs[0x24 // 4] = 1
    regs[0x3c // 4] = 1
    print('key without PASID: result', regs[0x40 // 4])
    assert regs[0x40 // 4] != 0 and regs[0x38 // 4] == 0
    fcntl.ioctl(dev.fd, DEVICE_RESET)
    bus_master(dev)
    assert regs[0x14 // 4] == 0
    memory = Memory(LEN)
    dev.map(IOVA, memory.addr, LEN)
    dev.unmap(IOVA, LEN)


{'exerciser': exerciser, 'hca': hca, 'portal': portal}[sys.argv[1]](
    {'type1': Type1, 'iommufd': Iommufd}[sys.argv[2]](sys.argv[3]))
print('done')
