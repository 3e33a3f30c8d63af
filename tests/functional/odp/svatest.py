# SPDX-License-Identifier: GPL-2.0-or-later
"""What tests of shared virtual addressing have in common: an unmodified kernel
(tests/guest/kernel) that hands the HCA's portals and the PCIe exerciser to
processes with uio_pci_generic_sva, and what these then do with memory that
nobody registered."""

import contextlib
import dataclasses
import re
import tempfile
from pathlib import Path

import odptest
from odp import guestprog, machine

#: DMA of the exerciser in the address space of this process.
EXERCISER = r'''
import ctypes, mmap, os, sys, time
pci = sys.argv[1]
dev = '/sys/bus/pci/devices/' + pci
uio = os.listdir(dev + '/uio')[0]
fd = os.open('/dev/' + uio, os.O_RDWR)
regs = memoryview(mmap.mmap(fd, 0x10000)).cast('I')
data = mmap.mmap(fd, 1 << 20, offset=mmap.PAGESIZE)   # the second mapping
pasid = int(open(dev + '/pasid').read())
assert pasid > 0, pasid
regs[0x84 // 4] = 5     # page requests and ATC where they are enabled

def faults():
    return regs[0xa0 // 4] + regs[0xa4 // 4]

def dma(addr, length, write, pasid=pasid):
    ch = 0x1000 // 4
    for i, v in ((1, 0), (2, addr & 0xffffffff), (3, addr >> 32), (4, length),
                 (5, 4), (6, pasid), (0, 0x41 | write << 4)):
        regs[ch + i] = v
    while regs[ch] & 1:
        time.sleep(0.001)
    return regs[ch + 5] & 3

libc = ctypes.CDLL(None, use_errno=True)
PAGES = 64
SIZE = PAGES * mmap.PAGESIZE
mem = mmap.mmap(-1, SIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
addr = ctypes.addressof(ctypes.c_char.from_buffer(mem))
before = faults()
data[0:65536] = bytes(range(256)) * 256
for off in range(0, SIZE, 65536):
    assert dma(addr + off, 65536, 1) == 0
assert mem[:] == data[0:65536] * (SIZE // 65536)
print('pages', PAGES, 'faults', faults() - before)
before = faults()
data[0:65536] = bytes(65536)
assert dma(addr, 65536, 0) == 0
assert data[0:65536] == mem[0:65536]
print('again', faults() - before)
# madvise(DONTNEED), then a read: zeroes
assert libc.madvise(ctypes.c_void_p(addr), ctypes.c_size_t(65536), 4) == 0
assert dma(addr, 65536, 0) == 0
assert data[0:65536] == bytes(65536)
# what no process may reach
print('refused', dma(0, 4, 1), dma(0xffff800000000000, 4, 0),
      dma(addr, 4, 1, pasid + 1000))
mem[0:8] = b'unharmed'
assert mem[0:8] == b'unharmed'
regs.release()
'''


class Sva:
    """A guest whose functions are bound; subclasses say how faults
    travel."""
    kernel_name = 'sva'
    #: KiB of its pages, and of a huge one.
    page = 4
    huge = 2048
    #: Huge pages to count with.
    huges = 8
    #: KiB of a piece of memory of the traffic, and its length in long runs.
    slot = 128
    rounds = 20000
    iommu = 'smmuv3'
    mem = '3G'
    hca = 2
    #: What stopped what was to be stopped.
    allow_log = r'arm-smmu-v3.*event|uio_pci_sva'
    #: Properties of the IOMMU.
    smmu = ('oas=52', 'ssidsize=16', 'stall-model=stall')
    portal_options = ''
    ats = False
    #: Functions for it: portals, the exerciser.
    bound = '0x15b3:0x7f5a:|0x13b5:0xed01:'
    #: Loads the driver that binds address spaces.
    load = 'modprobe uio_pci_generic_sva'

    @classmethod
    def setUpClass(cls):
        cls.copies = [f'{exe}:{place}' for exe, place in
                      guestprog.copies('odp-sva',
                                       arch=machine.arch_of(cls.iommu))]
        cls.hca_options = 'link=ib,sva-portals=2' + cls.portal_options
        cls.qemu_args = ['-device', 'pcie-exerciser,addr=6']
        for opt in cls.smmu:
            cls.qemu_args += ['-global', f'arm-smmuv3.{opt}']
        super().setUpClass()

    @classmethod
    def start_guest(cls):
        """Also after one that hung."""
        guest = super().start_guest()
        cls.prepare(guest)
        return guest

    @classmethod
    def prepare(cls, guest):
        """After each start: swap, and the drivers bound."""
        guest.sh(f'''set -e
echo never >/sys/kernel/mm/transparent_hugepage/enabled
echo 4096 >/sys/kernel/debug/fault_around_bytes
modprobe zram && echo 512M >/sys/block/zram0/disksize
mkswap /dev/zram0 >/dev/null && swapon /dev/zram0
{cls.load}
cat >/tmp/exerciser.py <<'EOF'
{EXERCISER}EOF
for d in /sys/bus/pci/devices/*; do
    case "$(cat $d/vendor $d/device | tr '\\n' :)" in
    {cls.bound})
        echo uio_pci_sva >$d/driver_override
        echo ${{d##*/}} >/sys/bus/pci/drivers/uio_pci_sva/bind;;
    esac
done
''')
        found = guest.sh('grep -l 0x7f5a /sys/bus/pci/devices/*/device')
        cls.portals = re.findall(r'devices/([^/]*)/', found)
        first = cls.portals[0][:-1] + '0' if cls.portals else ''
        cls.hcas = guest.sh(
            f'ls /sys/bus/pci/devices/{first}/infiniband; '
            'ls /sys/class/infiniband').split()

    @contextlib.contextmanager
    def traced(self, *events):
        """Lines of QEMU's trace while this lasts, when it has ended:
        [(event, what it says)]."""
        found = []
        log = self.guest.dir / 'qemu.log'
        start = log.stat().st_size
        for event in events:
            self.guest.qmp('trace-event-set-state', name=event, enable=True)
        try:
            yield found
        finally:
            for event in events:
                self.guest.qmp('trace-event-set-state', name=event,
                               enable=False)
        with open(log, 'rb') as f:
            f.seek(start)
            text = f.read().decode(errors='replace')
        found += re.findall(rf'^({"|".join(events)}) (.*)$', text, re.M)

    def odp(self, mode, *args, portals=1, seconds=odptest.LIMIT):
        """Run odp-sva on portals of the first HCA."""
        words = ['odp-sva', mode, '--device', self.hcas[0]]
        for pci in self.portals[:portals]:
            words += ['--portal', pci]
        out = self.sh(' '.join(words + [str(a) for a in args]), seconds)
        print(''.join(f'# {line}\n' for line in out.splitlines()), end='',
              flush=True)
        return out


class NoAts:
    """The SMMU sees untranslated accesses alone."""
    portal_options = ',x-portal-no-ats=on'


class WithAts:
    """ATS on top of stalls."""
    smmu = (*Sva.smmu, 'ats=on')
    ats = True


class Tests(Sva):
    """What every path can do."""

    def test_bound(self):
        """Groups of their own, PASID on, ATS as the SMMU has it."""
        self.assertEqual(len(self.portals), 4)
        groups = set()
        for pci in self.portals:
            dev = f'/sys/bus/pci/devices/{pci}'
            group = self.sh(f'readlink {dev}/iommu_group').strip()
            self.assertEqual(self.sh(f'ls {dev}/iommu_group/devices').split(),
                             [pci])
            groups.add(group)
            caps = self.sh(f'lspci -vvs {pci}')
            self.assertRegex(caps, r'PASIDCtl: Enable\+')
            self.assertEqual('ATSCtl:\tEnable+' in caps, self.ats, caps)
        self.assertEqual(len(groups), 4)

    def test_exerciser(self):
        out = self.sh('pci=$(grep -l 0xed01 /sys/bus/pci/devices/*/device); '
                      'pci=${pci%/device}; '
                      'python3 /tmp/exerciser.py ${pci##*/}')
        self.assertIn('pages 64 faults 64', out)
        self.assertIn('again 0', out)
        self.assertIn('refused 2 2 2', out)

    def test_count(self):
        """Faults are distinct absent pages, exactly."""
        self.odp('count', '--kib', 256 * self.page)

    def test_count_huge(self):
        """With huge pages: one fault for each."""
        thp = '/sys/kernel/mm/transparent_hugepage/enabled'
        self.sh(f'echo madvise >{thp}')
        try:
            self.odp('count', '--kib', self.huges * self.huge, '--huge')
        finally:
            self.sh(f'echo never >{thp}')

    def test_traffic(self):
        self.odp('traffic', '--iters', self.rounds if odptest.LONG else 300,
                 '--threads', 2, '--kib', self.slot, seconds=1800)

    def vmstat(self):
        """What the kernel counts of huge pages and swap."""
        names = 'thp_collapse_alloc', 'thp_split_pmd', 'pswpin', 'pswpout'
        return {k: int(v) for k, v in re.findall(
            r'^(\w+) (\d+)$', self.sh('cat /proc/vmstat'), re.M)
            if k in names}

    def test_disturbed(self):
        """While the kernel takes pages away, forks, collapses and splits."""
        thp = '/sys/kernel/mm/transparent_hugepage/enabled'
        self.sh(f'echo madvise >{thp}')
        before = self.vmstat()
        try:
            out = self.odp('traffic', '--iters',
                           self.rounds // 4 if odptest.LONG else 200,
                           '--threads', 2, '--kib', self.slot, '--disturb',
                           seconds=1800)
        finally:
            self.sh(f'echo never >{thp}')
        for what in 'forks', 'page-outs', 'collapses':
            self.assertGreater(int(re.search(rf'{what} (\d+)', out)[1]), 0)
        # What the kernel says that it did.
        did = {k: v - before[k] for k, v in self.vmstat().items()}
        print(f'# {did}', flush=True)
        for what, count in did.items():
            self.assertGreater(count, 0, what)

    def test_two_hcas(self):
        """The peer is another HCA with ordinary memory."""
        self.odp('traffic', '--iters', 300, '--kib', self.slot, '--peer',
                 self.hcas[2])

    #: The trace event of what the IOMMU cannot grant at once: PASID, address.
    asked = 'smmuv3_stall'
    #: Trace events of what it stopped.
    stopped = ('smmuv3_record_event', 'smmuv3_eventq_overflow')

    def test_isolation(self):
        """Attempts at another process's memory: what the HCA does not stop the
        IOMMU does, with an event for each, and there are no others."""
        iters = 10000 if odptest.LONG else 200
        with self.traced(self.asked, *self.stopped) as trace:
            out = self.odp('isolate', '--iters', iters, '--list',
                           '/tmp/reached', portals=2, seconds=3600)
        errors, no_key, reached = map(int, re.search(
            r'completion (\d+), no key given (\d+); .* (\d+)', out).groups())
        own = int(re.search(r'A: PASID (\d+)', out)[1])
        want = [(int(p, 16), int(a, 16) >> 12) for p, a in re.findall(
            r'(\S+) (\S+)', self.sh('cat /tmp/reached'))]
        self.assertEqual(len(want), reached)
        # Without an address space: a configuration error, without an address.
        config = [w for w in want if w[0] != own]
        want = [w for w in want if w[0] == own]
        got = [re.search(r'(?:ssid|pasid)=(\w+) addr=(\w+)', line).groups()
               for event, line in trace if event == self.asked]
        self.assertEqual([(int(p, 16), int(a, 16) >> 12) for p, a in got],
                         want)
        events = [line.split() for event, line in trace
                  if event == 'smmuv3_record_event']
        faults = [e for e in events if e[0] == 'SMMU_EVT_F_TRANSLATION']
        self.assertEqual(len(events) - len(faults), len(config))
        if self.asked == 'smmuv3_stall':
            self.assertEqual(len(events), reached)
            self.assertEqual(len({sid for _, sid in events}), 1)
        else:
            self.assertEqual(events, [])
        self.assertNotIn('smmuv3_eventq_overflow', dict(trace))
        print(f'# {errors + no_key} denied: {len(got)} asked of the IOMMU'
              f', {len(config)} without an address space', flush=True)

    def test_permissions(self):
        self.odp('perm', '--iters', 1000 if odptest.LONG else 100)


class Keys:
    """For paths with ATS, where keys end with their process; and what takes
    long once."""

    def test_memory_limit(self):
        """A quarter of the buffer must do."""
        # The kernel kills the child that pins.
        self.allow_log = f'{type(self).allow_log}|oom|Call [Tt]race'
        mib = 64 if odptest.LONG else 24
        out = self.sh(f'''set -e
cg=/sys/fs/cgroup/odp
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
mkdir -p $cg
echo {mib // 4}M >$cg/memory.max
( echo 0 >$cg/cgroup.procs
  exec odp-sva limit --device {self.hcas[0]} --portal {self.portals[0]} \\
       --kib {mib << 10} )
echo peak $(cat $cg/memory.peak)
''', seconds=1800 if odptest.LONG else odptest.LIMIT)
        print(''.join(f'# {line}\n' for line in out.splitlines()), end='')
        self.assertRegex(out, 'pinned: (refused|killed)')
        for how in 'SVA', 'device ODP':
            saved = re.search(rf'{how}: all of {mib} MiB .* saved (\d+) KiB',
                              out)
            self.assertGreaterEqual(int(saved[1]), mib * 3 // 4 << 10)
        self.assertLessEqual(int(re.search(r'peak (\d+)', out)[1]),
                             mib // 4 << 20)


class Giant(Sva):
    """A page of 1 GiB."""
    hca = 1
    mem = '4G'
    append = ('hugepagesz=1G', 'hugepages=1')

    def test_giant(self):
        self.odp('giant')


class Moved:
    """A machine that is saved with accesses waiting, and loaded."""
    hca = 1
    PENDING = 64

    def wait_out(self, text):
        return self.guest.wait_out(text, 'odp-sva', 240)

    def test_snapshot(self):
        first = self.guest
        pid = first.sh(
            f'odp-sva pending --device {self.hcas[0]} --portal '
            f'{self.portals[0]} --iters {self.PENDING} --release /tmp/go '
            '>/tmp/out 2>&1 </dev/null & echo $!').strip()
        self.assertIn(f'holding {self.PENDING}', self.wait_out('holding'))
        with tempfile.TemporaryDirectory() as tmp:
            state = Path(tmp) / 'state'
            try:
                first.save(state)
            finally:
                first.stop()
            second = odptest.TestGuest(dataclasses.replace(
                first.config, qemu_args=first.config.qemu_args
                + ['-incoming', f'file:{state}']))
            type(self).guest = second
            second.start()
            second.go_on()
        self.assertNotIn('released', self.sh('cat /tmp/out'))
        self.sh('touch /tmp/go')
        out = self.wait_out('released')
        self.assertIn(f'released: {self.PENDING} completed, 0 wrong', out)
        # A release that comes after the next open unbinds that one.
        self.sh(f'while readlink /proc/{pid}/exe; do sleep 0.1; done; '
                'sleep 0.5')
        self.odp('traffic', '--iters', 100, '--kib', self.slot)


class Lives(WithAts):
    """A guest whose kernel may break down under what we do to it, by flaws
    that are known: it is restarted then, in the same emulator."""
    reboot = True
    hca = 1

    #: Says that the kernel needs a restart.
    BROKEN = 'reboot is needed|Oops: '
    #: After these it may go on, but its memory is not to be trusted.
    CORRUPT = ('iopf-removal', 'intel-lost-drain', 'late-release')
    BATCH = 20 if odptest.LONG else 10

    #: Bytes that TCG keeps for a block of translated code until it drops all
    #: of them: a node of a tree, a place in a hash table.
    BLOCK = 72

    def resident(self):
        """KiB of QEMU's memory, without the guest's and what translated code
        takes: each start of a kernel adds 140,000 blocks."""
        text = Path(f'/proc/{self.guest.proc.pid}/smaps').read_text()
        maps = re.findall(r'^[0-9a-f]+-[0-9a-f]+ (\S+).*\nSize: +(\d+) kB'
                          r'(?:\n\w.*)*?\nRss: +(\d+) kB', text, re.M)
        jit = self.guest.qmp('x-query-jit')['human-readable-text']
        blocks = int(re.search(r'TB count +(\d+)', jit)[1])
        return sum(int(rss) for perms, size, rss in maps
                   if 'wx' not in perms and int(size) < 128 << 10) \
            - (blocks * self.BLOCK >> 10)

    def nothing_left(self):
        """Nothing waits in the HCA's functions or keys, nor in the SMMU, and
        no key has outlived its owner."""
        got = self.guest.qmp('qom-get', path='/machine/peripheral/hca0',
                             property='fault-counters')
        for kind in 'functions', 'keys', 'qps':
            for item in got[kind]:
                self.assertEqual(item['pending'], 0, item)
        for function in got['functions']:
            self.assertEqual(function['prg-pending'], 0, function)
        self.assertEqual(got['keys'], [])
        if self.iommu == 'smmuv3':
            self.assertEqual(self.guest.qmp(
                'qom-get', path=self.guest.smmu(), property='stalls'), '')

    @classmethod
    def prepare(cls, guest):
        # What a guest says that hangs later.
        guest.sh('dmesg -n 7')
        cls.console_seen = len(guest.console())
        super().prepare(guest)

    def ended_by_flaw(self):
        """The guest hangs or panicked, and its console tells a flaw that
        explains it."""
        if self.guest.proc.poll() is not None:
            return False
        lines = self.guest.console()[self.console_seen:].splitlines()
        met = odptest.without_flaws(lines, self.flaws)[1]
        print(f'# the guest broke down: {met}', flush=True)
        return any(met.get(n) for n in self.CORRUPT)

    def trusted(self, lines):
        """Lines of the kernel's log from before a flaw corrupted it."""
        patterns = '|'.join(odptest.known_flaws()[n]['log']
                            for n in self.CORRUPT)
        first = re.search(rf'^\[ *([\d.]+)\].*(?:{patterns})',
                          self.sh('dmesg'), re.M)
        return [line for line in lines
                if float(re.match(r'\[ *([\d.]+)', line)[1])
                < float(first[1])]

    def batch(self, mode, count, seed):
        """(how many of count were done, whether the kernel broke)."""
        out = []
        # The program may be what hangs: then it stays behind.
        status = self.guest.run(
            f'''odp-sva {mode} --device {self.hcas[0]} --iters {count} \\
        --portal {self.portals[0]} --seed {seed} </dev/null &
pid=$!
while kill -0 $pid 2>/dev/null; do
    sleep 0.5
    if dmesg | grep -Eq '{self.BROKEN}'; then exit 77; fi
done
wait $pid
''', stdout=out.append, stderr=out.append, seconds=300)
        text = b''.join(out).decode(errors='replace')
        done = len(re.findall(rf'^{mode} \d+$', text, re.M))
        bad = self.guest.bad_log_lines(self.allow_log, self.flaws)
        if any(self.guest.met.get(n) for n in self.CORRUPT):
            bad = self.trusted(bad)
        self.assertEqual(bad, [], bad and self.sh('dmesg | tail -n 120'))
        broken = status == 77 or any(self.guest.met.get(n)
                                     for n in self.CORRUPT)
        if status not in (0, 77) and not broken:
            raise AssertionError(f'status {status}\n{text}')
        print(f'# {text.splitlines()[-1]}' if not status else
              f'# broken after {done}', flush=True)
        return done, broken

    def many(self, mode, wanted):
        done = batches = grown = 0
        last = None
        boots = []
        while done < wanted:
            try:
                n, broken = self.batch(mode, min(self.BATCH, wanted - done),
                                       batches + 1)
            except (machine.GuestHung, machine.GuestEnded):
                if not self.ended_by_flaw():
                    raise
                n, broken = 0, True
            done += n
            batches += 1
            if broken:
                self.guest.revive()
                self.prepare(self.guest)
                boots.append(self.resident())
                last = None
                continue
            self.nothing_left()
            now = self.resident()
            # What the first batch after a start costs is not a leak.
            grown += now - (last or now)
            last = now
        print(f'# {done} times {mode}, {len(boots)} restarts; QEMU grew by '
              f'{grown} KiB, after restarts it had {boots} KiB', flush=True)
        self.assertLess(grown, 16384)
        if len(boots) > 2:
            self.assertLess(boots[-1] - boots[1], 32768)
