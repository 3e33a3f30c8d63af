#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# odp: minutes=5
"""A page-fault handler in the manner of ExaNeSt's (tests/guest/odp-stall): the
PCIe exerciser and an SVA portal of the HCA use a process's own addresses
behind the MMU-500, nothing is pinned or registered, and what they fault on is
mapped while they wait. With two CPUs and with one."""

import re

import odptest
from odp import guestmodule, guestprog, kernel

PROGRAM = r"""
import mmap, os, random, sys, time

rng = random.Random(int(sys.argv[1]))
PAGE = 4096
pci = '/sys/bus/pci/devices/0000:00:04.0/'
regs = memoryview(mmap.mmap(os.open(pci + 'resource0', os.O_RDWR),
                            0x10000)).cast('I')
buf = mmap.mmap(os.open(pci + 'resource1', os.O_RDWR), 0x100000)
dev = os.open('/dev/odp-stall-0000:00:04.0', os.O_RDWR)

PAGES = 512
mem = mmap.mmap(-1, PAGES * PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
import ctypes
base = ctypes.addressof(ctypes.c_char.from_buffer(mem))
os.write(dev, b'%x %x' % (base, PAGES * PAGE))
libc = ctypes.CDLL(None, use_errno=True)

def start(ch, addr, offset, size, write):
    r = (0x1000 + ch * 0x20) // 4
    for i, v in ((5, 4), (1, offset), (2, addr & 0xffffffff), (3, addr >> 32),
                 (4, size), (0, 0x11 if write else 1)):
        regs[r + i] = v

def wait(ch):
    r = (0x1000 + ch * 0x20) // 4
    end = time.monotonic() + 60
    while regs[r] & 1:
        if time.monotonic() > end:
            sys.exit('channel %d hangs: %s' % (ch, counters()))
        time.sleep(0.0005)
    return regs[r + 5] & 3

def dma(addr, offset, size, write):
    start(0, addr, offset, size, write)
    return wait(0)

def to_buf(offset, data):       # whole words: it is a device's memory
    words = memoryview(buf).cast('I')
    for i in range(0, len(data), 4):
        words[(offset + i) // 4] = int.from_bytes(data[i:i + 4], 'little')

def of_buf(offset, size):
    words = memoryview(buf).cast('I')
    return b''.join(words[(offset + i) // 4].to_bytes(4, 'little')
                    for i in range(0, size, 4))

def counters():
    return os.pread(dev, 256, 0).decode()

def same(what, a, b):
    if a != b:
        sys.exit('%s: wrong bytes; %s' % (what, counters()))

def word():
    return rng.getrandbits(512).to_bytes(64, 'little')

# untouched memory, across pages
data = b''.join(word() for i in range(192))
to_buf(0, data)
assert dma(base + 100 * 4, 0, len(data), True) == 0
same('write', mem[400:400 + len(data)], data)
# what the process wrote; then what it dropped: zeros
mem[0x20000:0x20000 + 4096] = data[:4096]
assert dma(base + 0x20000, 0x4000, 4096, False) == 0
same('read', of_buf(0x4000, 4096), data[:4096])
mem.madvise(mmap.MADV_DONTNEED, 0x20000, 4096)
assert dma(base + 0x20000, 0x4000, 4096, False) == 0
same('dropped', of_buf(0x4000, 4096), bytes(4096))
# read first, then a write: of the zero page, and of a page of its own
assert dma(base + 0x20000, 0, 64, True) == 0
same('zero page', mem[0x20000:0x20040], data[:64])
mem[0x50000:0x50040] = data[64:128]
assert dma(base + 0x50000, 0x4000, 64, False) == 0
assert dma(base + 0x50000, 0, 64, True) == 0
same('upgrade', mem[0x50000:0x50040], data[:64])
# a child has the page as it was; the master goes on in the parent
mem[0x30000:0x30040] = data[64:128]
assert dma(base + 0x30000, 0x4000, 64, False) == 0
r, w = os.pipe()
pid = os.fork()
if not pid:
    os.read(r, 1)
    os._exit(0 if mem[0x30000:0x30040] == data[64:128] else 1)
assert dma(base + 0x30000, 0, 64, True) == 0
os.write(w, b'x')
assert os.waitpid(pid, 0)[1] == 0, 'the child saw the DMA'
same('fork', mem[0x30000:0x30040], data[:64])
# what the process may not do, its master may not
assert libc.mprotect(ctypes.c_void_p(base + 0x40000), 4096, 1) == 0
assert dma(base + 0x40000, 0, 64, True) == 2, 'wrote to read-only memory'
assert dma(base + PAGES * PAGE + 0x10000, 0, 64, False) == 2, 'beyond'
assert libc.mprotect(ctypes.c_void_p(base + 0x40000), 4096, 3) == 0

# many at a time, while pages come and go
shadow = {}
for turn in range(int(sys.argv[2])):
    jobs = []
    for ch in range(8):
        page = rng.randrange(256, PAGES)
        if any(j[1] == page for j in jobs):
            continue
        if rng.random() < 0.4:
            mem.madvise(mmap.MADV_DONTNEED, page * PAGE, PAGE)
            shadow.pop(page, None)
        data = word()
        write = rng.random() < 0.6
        if write:
            to_buf(ch * 64, data)
        jobs.append((ch, page, data, write))
    for ch, page, data, write in jobs:
        start(ch, base + page * PAGE, ch * 64, 64, write)
    for ch, page, data, write in jobs:
        assert wait(ch) == 0, counters()
        if write:
            shadow[page] = data
            same('turn %d' % turn, mem[page * PAGE:page * PAGE + 64], data)
        else:
            same('turn %d' % turn, of_buf(ch * 64, 64),
                 shadow.get(page, bytes(64)))
print('done', counters())
"""


class StallModule:
    kernel_name = 'stable'
    iommu = 'mmu500'
    hca = 1
    # A held access is resumed, and waits again, for each fault before it.
    hca_options = 'link=ib,sva-portals=1,x-portal-no-pasid=on,' \
                  'fault-retries=1000000'
    # With a device tree, kernels before 7.0 learn of the IOMMU too late to turn
    # ACS on in the root port, and its functions would share a group.
    append = ('pci=config_acs=111x1@pci:1b36:000c',)
    qemu_args = ('-device', 'pcie-exerciser,addr=4')
    exerciser = '0000:00:04.0'
    # What arm-smmu says of an access beyond, where it does.
    allow_log = r'arm-smmu.*probing'
    turns = 2000 if odptest.LONG else 100
    #: The kernel's own interrupt handler writes RESUME: a stall more a fault.
    resumes = False
    stalls = ()

    @classmethod
    def setUpClass(cls):
        cls.copies = [*guestmodule.copies('odp-stall',
                                          kernel.find(cls.kernel_name)),
                      *(f'{exe}:{place}' for exe, place in
                        guestprog.copies('odp-sva'))]
        super().setUpClass()

    @classmethod
    def start_guest(cls):
        guest = super().start_guest()
        guest.sh('insmod /root/odp_stall.ko\n'
                 'echo never >/sys/kernel/mm/transparent_hugepage/enabled\n'
                 'echo 4096 >/sys/kernel/debug/fault_around_bytes')
        found = guest.sh('grep -l 0x7f5a /sys/bus/pci/devices/*/device')
        cls.portal = re.search('devices/([^/]*)/', found)[1]
        return guest

    def stats(self):
        return self.guest.qmp('qom-get', path='/machine/mmu500',
                              property='stats')

    def counters(self, pci):
        """Of the module, between two processes."""
        out = self.sh(f'exec 3<>/dev/odp-stall-{pci}; cat <&3')
        return {k: int(v) for k, v in re.findall(r'([a-z-]+) (\d+)', out)}

    def look(self, pci):
        """The module's counters, and the SMMU's with smmu- before them."""
        out = self.counters(pci)
        out.update({f'smmu-{k}': v for k, v in self.stats().items()})
        return out

    def watch(self, pci, script, seconds=odptest.LIMIT):
        """Run a script; its output, and by how much each counter moved."""
        before = self.look(pci)
        out = self.sh(script, seconds)
        after = self.look(pci)
        moved = {k: v - before[k] for k, v in after.items()}
        print(''.join(f'# {line}\n' for line in out.splitlines()), end='')
        print('# ' + ', '.join(f'{k} {v}' for k, v in moved.items() if v),
              flush=True)
        if self.resumes:
            # One call of the handler, and what the worker finds stalled again.
            self.assertEqual(moved['smmu-stalls'],
                             moved['faults'] + moved['served'])
        else:
            # Each stall is one call of the handler, one turn of the worker.
            self.assertEqual(moved['smmu-stalls'], moved['faults'])
            self.assertEqual(moved['served'], moved['faults'])
        self.assertEqual(moved['mapped'] + moved['refused'], moved['served'])
        self.assertEqual(moved['smmu-terminations'], moved['refused'])
        return out, moved

    def test_process_memory(self):
        for seed in (1, 2) if odptest.LONG else (1,):
            out, moved = self.watch(
                self.exerciser,
                f"cat >/tmp/stall.py <<'EOF'\n{PROGRAM}\nEOF\n"
                f'python3 /tmp/stall.py {seed} {self.turns}')
            self.assertIn('done', out)
            self.assertGreater(moved['smmu-stalls'], self.turns)
            self.assertGreater(moved['taken-back'], 0)
            self.assertGreater(moved['upgraded'], 0)

    def verbs(self, mode, *args, seconds=odptest.LIMIT):
        """odp-sva, which checks each byte, on memory that nobody registered:
        by how much the counters have moved."""
        out, moved = self.watch(
            self.portal, ' '.join(['odp-sva', mode, '--portal', self.portal,
                                   *map(str, args)]), seconds)
        # What the HCA saw suspended are the stalls, and what was held behind
        # one: no fault, and counted apart.
        seen = re.findall(r'\bstalls (\d+)', out)
        if seen:
            self.assertEqual(int(seen[-1]),
                             moved['smmu-stalls'] + moved['smmu-held'])
        return moved

    def test_verbs_count(self):
        """RDMA on absent pages: each faults once. One request at a time: the
        HCA's stalls are the SMMU's are the handler's calls."""
        moved = self.verbs('count', '--kib', 512, *self.stalls)
        self.assertEqual(moved['smmu-held'], 0)
        self.assertEqual(moved['refused'], 0)
        self.assertEqual(moved['smmu-retries'], moved['smmu-stalls'])
        self.assertEqual(moved['large'], 0)

    def test_verbs_count_huge(self):
        """2 MiB of the process are one fault and one entry of the SMMU."""
        thp = '/sys/kernel/mm/transparent_hugepage/enabled'
        self.sh(f'echo madvise >{thp}')
        try:
            moved = self.verbs('count', '--kib', 8192, '--huge',
                               *self.stalls)
        finally:
            self.sh(f'echo never >{thp}')
        self.assertGreater(moved['large'], 10)

    def test_verbs_traffic(self):
        """Random requests; memory of all kinds comes, goes, is paged out."""
        moved = self.verbs('traffic', '--iters',
                           20000 if odptest.LONG else 300, '--threads', 2,
                           '--kib', 128, '--disturb', seconds=1800)
        self.assertGreater(moved['faults'], 300)
        self.assertGreater(moved['taken-back'], 300)
        self.assertEqual(moved['refused'], 0)

    def test_verbs_permissions(self):
        moved = self.verbs('perm', '--iters', 1000 if odptest.LONG else 100)
        self.assertGreater(moved['refused'], 30)

    def test_verbs_kill(self):
        """kill -9 in mid-fault; the next owner has nothing of the last."""
        self.verbs('kill', '--iters', 1000 if odptest.LONG else 10,
                   seconds=3600)

    def test_process_dies(self):
        """Killed with its memory lent: the bank serves the next one."""
        self.sh('python3 -c "\n'
                'import mmap, os, ctypes, signal\n'
                'd = os.open(\'/dev/odp-stall-0000:00:04.0\', os.O_RDWR)\n'
                'm = mmap.mmap(-1, 1 << 20)\n'
                'a = ctypes.addressof(ctypes.c_char.from_buffer(m))\n'
                'os.write(d, b\'%x %x\' % (a, 1 << 20))\n'
                'os.kill(os.getpid(), signal.SIGKILL)\n" || true')
        self.test_process_memory()

    def test_unbind(self):
        """The driver goes and comes back."""
        self.sh('rmmod odp_stall && insmod /root/odp_stall.ko')
        self.test_process_memory()


class StableSmp2(StallModule, odptest.GuestTest):
    smp = 2


class StableSmp1(StallModule, odptest.GuestTest):
    smp = 1


odptest.main(__name__)
