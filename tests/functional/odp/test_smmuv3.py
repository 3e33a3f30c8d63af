#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# odp: minutes=6
"""Unmodified kernels behind an SMMUv3 with everything on: NVMe, e1000e and
virtio-net do their DMA through it, ATS and PASID get enabled on a function
that has them, a page request is denied cleanly, and the performance monitor
counts what the model counts."""

import atexit
import hashlib
import os
import re
import tempfile

import odptest

DISK = 8 << 20

# Binds the exerciser, which no driver knows.
BIND = '''set -e
d=/sys/bus/pci/devices/0000:00:04.0
modprobe uio_pci_generic
if [ ! -e $d/driver ]; then
    echo uio_pci_generic >$d/driver_override
    echo 0000:00:04.0 >/sys/bus/pci/drivers/uio_pci_generic/bind
fi
setpci -s 00:04.0 COMMAND=6:6
'''

# A page request by hand; Linux has nobody to serve it.
PRI = BIND + '''setpci -s 00:04.0 ECAP_PRI+c.L=20 ECAP_PRI+4.W=1
cat >/tmp/pri.py <<'EOF'
import mmap, os, time
fd = os.open('/sys/bus/pci/devices/0000:00:04.0/resource0', os.O_RDWR)
regs = memoryview(mmap.mmap(fd, 0x10000)).cast('I')
regs[0x10 // 4] = 0x12345000
regs[0x14 // 4] = 0
regs[0x90 // 4] = 1 << 16 | 1 << 18 | 7     # read, last, group 7
for i in range(100):
    if regs[0x98 // 4]:
        break
    time.sleep(0.1)
last = regs[0x9c // 4]
print('responses', regs[0x98 // 4], 'group', last & 0x1ff,
      'code', last >> 12 & 3)
EOF
python3 /tmp/pri.py
'''

# A DMA by hand to where nothing is mapped.
STALL = BIND + '''cat >/tmp/stall.py <<'EOF'
import mmap, os, time
fd = os.open('/sys/bus/pci/devices/0000:00:04.0/resource0', os.O_RDWR)
regs = memoryview(mmap.mmap(fd, 0x10000)).cast('I')
for reg, val in (0x0c, 0), (0x10, 0x12345000), (0x14, 0), (0x18, 8), (0x8, 1):
    regs[reg // 4] = val
for i in range(100):
    if regs[0xa0 // 4]:
        break
    time.sleep(0.01)
print('stalls', regs[0xa0 // 4], flush=True)
regs[0x1000 // 4] = 1 << 31     # given up, unless it has been answered
print('status', regs[0x1c // 4] & 3)
EOF
python3 /tmp/stall.py
'''

# Debian's perf counts while the disk is read.
PERF = '''set -e
cat >/tmp/read.py <<'EOF'
import mmap, os
disk = os.open('/dev/nvme0n1', os.O_RDONLY | os.O_DIRECT)
buf = mmap.mmap(-1, 65536)
while os.readv(disk, [buf]):
    pass
EOF
pmu=$(basename /sys/bus/event_source/devices/smmuv3_pmcg_*)
for e in %s; do set -- "$@" -e $pmu/$e/; done
perf stat -a -x, -o /tmp/perf "$@" -- python3 /tmp/read.py
cat /tmp/perf
'''
TOTALS = {
    'transaction': 'transactions', 'tlb_miss': 'tlb-misses',
    'config_cache_miss': 'config-misses',
    'trans_table_walk_access': 'walk-accesses',
}

# For odptest.NET: the disk, and the cards' drivers.
NET = '''set -e -- /dev/nvme0n1
modprobe -a nvme virtio_pci virtio_net e1000e
for i in $(seq 100); do [ -e $1 ] && break; sleep 0.1; done
''' + odptest.NET


def make_disk():
    """A disk of known noise; its path and MD5."""
    fd, path = tempfile.mkstemp(prefix='odp-disk-')
    atexit.register(os.unlink, path)
    data = os.urandom(DISK)
    with os.fdopen(fd, 'wb') as f:
        f.write(data)
    return path, hashlib.md5(data).hexdigest()


class SmmuV3:
    iommu = 'smmuv3'
    packages = ('linux-perf',)
    options = ''
    allow_log = (r'unexpected PRI request|uio_pci_generic|sid 0x.*group'
                 r'|event: F_TRANSLATION client: 0000:00:04.0|event 0x10 rec'
                 r'|arm-smmu-v3 [^ ]+ (.*unpriv data read|\s*0x0)')

    @classmethod
    def setUpClass(cls):
        cls.disk, cls.md5 = make_disk()
        cls.qemu_args = cls.firmware() + [
            '-machine', 'smmuv3.ats=on,smmuv3.pri=on,smmuv3.ssidsize=20,'
            'smmuv3.stall-model=stall,smmuv3.httu=ad,smmuv3.oas=52,'
            'smmuv3.pmcg=on' + cls.options,
            '-drive', f'file={cls.disk},format=raw,if=none,readonly=on,id=d0',
            '-device', 'nvme,drive=d0,serial=x,addr=2',
            '-device', 'pcie-exerciser,addr=4',
            # Two network cards, joined back to back
            '-netdev', 'hubport,id=n0,hubid=0', '-netdev',
            'hubport,id=n1,hubid=0', '-device',
            'e1000e,netdev=n0,mac=52:54:00:00:00:01,romfile=,addr=5',
            '-device', 'virtio-net-pci,netdev=n1,mac=52:54:00:00:00:02,'
            'disable-legacy=on,iommu_platform=on,romfile=,addr=6']
        super().setUpClass()

    @staticmethod
    def firmware():
        return []

    def test_probe(self):
        log = self.sh('dmesg')
        self.assertRegex(log, r'arm-smmu-v3 .*oas 52-bit')
        self.assertNotRegex(log, 'arm-smmu-v3.*(overridden|failed|error)')
        kind = self.sh('cat /sys/kernel/iommu_groups/*/type').split()
        self.assertLessEqual(set(kind), {'DMA', 'DMA-FQ'})

    def test_lspci(self):
        out = self.sh(BIND + 'lspci -vv -s 00:04.0')
        self.assertRegex(out, r'ATSCtl:\s+Enable\+, Smallest Translation Unit: 00')
        self.assertRegex(out, r'PASIDCtl:\s+Enable\+')

    def test_net(self):
        """A file from NVMe by virtio-net to e1000e, each in a network
        namespace."""
        out = self.sh(NET)
        self.assertEqual(out.split(), [self.md5] * 2)

    def test_page_request(self):
        """Denied: a failure, once, and the kernel says so."""
        self.assertIn('responses 1 group 7 code 2', self.sh(PRI))
        self.assertIn('unexpected PRI request', self.sh('dmesg'))

    def test_stall(self):
        """The kernel knows, by device tree or DSDT, that the function can
        stall. One without CONFIG_IOMMU_IOPF, as Debian's are, then has
        nobody who answers: the function gives its transaction up."""
        out = self.sh(STALL)
        self.assertIn('stalls 1', out)
        self.assertIn('status 2', out)
        self.assertIn('event 0x10 received', self.sh('dmesg'))

    def test_perf(self):
        path = self.guest.smmu()

        def totals():
            return {k: self.guest.qmp('qom-get', path=path, property=v)
                    for k, v in TOTALS.items()}

        self.sh('modprobe -a nvme arm_smmuv3_pmu; for i in $(seq 100); do '
                '[ -e /dev/nvme0n1 ] && break; sleep 0.1; done')
        before = totals()
        out = self.sh(PERF % ' '.join(TOTALS))
        after = totals()
        got = {k: int(v) for v, k in re.findall(
            r'^(\d+),[^,]*,smmuv3_pmcg_\w+/(\w+)/,', out, re.M)}
        self.assertEqual(set(got), set(TOTALS), out)
        self.assertGreater(got['transaction'], 1000, out)
        self.assertGreater(got['tlb_miss'], 100, out)
        for name in TOTALS:
            want = after[name] - before[name]
            self.assertAlmostEqual(got[name], want, delta=max(2, want // 100),
                                   msg=f'{name}: {out}')


class StableDeviceTree(SmmuV3, odptest.GuestTest):
    kernel_name = 'stable'
    options = ',smmuv3.msi=on'

    def test_tells_by_msi(self):
        """Both queues' interrupts come by the ITS. That CMD_SYNC's do shows
        in that the kernel is up: it waits for nothing else."""
        self.sh(PRI)
        self.sh(STALL)
        out = self.sh('cat /proc/interrupts; dmesg | grep smmu')
        self.assertNotIn('wired irqs', out)
        self.assertNotIn('MSI write aborted', out)
        for queue in 'evtq', 'priq':
            row = re.search(rf'^ *\d+: +(\d.*?) (\S*MSI\S*) .*smmu-v3-{queue}',
                            out, re.M)
            self.assertTrue(row, out)
            self.assertGreater(sum(map(int, row[1].split())), 0, out)


class StockAcpi(SmmuV3, odptest.GuestTest):
    kernel_name = 'stock'

    firmware = staticmethod(odptest.efi_firmware)

    def test_acpi(self):
        self.assertIn('ACPI: IORT', self.sh('dmesg'))


odptest.main(__name__)
