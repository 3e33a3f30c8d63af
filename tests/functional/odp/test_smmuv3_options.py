#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# odp: minutes=5 long-minutes=15
"""The options of QEMU's own SMMU test (tests/functional/aarch64/test_smmu.py,
which wants KVM) with our guest under TCG: range invalidation or not, stages,
iommu.passthrough and iommu.strict. A disk is read and written and a file goes
from one network card to another, all through the SMMU."""

import hashlib
import os
import re
import tempfile

import odptest

DISK = 4 << 20
COPY = 1 << 20      # where the guest writes, and how much

SCRIPT = f'''set -e -- /dev/vda
modprobe -a virtio_pci virtio_blk virtio_net
for i in $(seq 100); do [ -e $1 ] && break; sleep 0.1; done
dd if=$1 of=/tmp/part bs={COPY} count=1 2>/dev/null
dd if=/tmp/part of=$1 bs={COPY} seek={DISK // COPY} conv=fsync 2>/dev/null
echo 3 >/proc/sys/vm/drop_caches
dd if=$1 bs={COPY} skip={DISK // COPY} count=1 2>/dev/null | md5sum
cat /sys/kernel/iommu_groups/*/type | sort -u
''' + odptest.NET

MODES = {
    # name: (kernel parameters, domain types that groups may have)
    'default': ([], {'DMA', 'DMA-FQ'}),
    'passthrough': (['iommu.passthrough=1'], {'identity'}),
    'strict': (['iommu.strict=1'], {'DMA'}),
    'nostrict': (['iommu.strict=0'], {'DMA-FQ'}),
}


class Options:
    iommu = 'smmuv3'
    mem = '1G'
    options = ''
    mode = 'default'

    @classmethod
    def setUpClass(cls):
        fd, cls.disk = tempfile.mkstemp(prefix='odp-disk-')
        cls.addClassCleanup(os.unlink, cls.disk)
        cls.data = os.urandom(DISK)
        with os.fdopen(fd, 'wb') as f:
            f.write(cls.data + bytes(COPY))
        addon = ('iommu_platform=on,disable-modern=off,disable-legacy=on')
        if 'ats=on' in cls.options:
            addon += ',ats=on'
        nic = f'{addon},romfile=,mac=52:54:00:00:00:0'
        cls.append = MODES[cls.mode][0]
        cls.qemu_args = [
            '-machine', cls.options or 'iommu=smmuv3',
            '-drive', f'file={cls.disk},format=raw,if=none,id=d0',
            '-device', f'virtio-blk-pci,drive=d0,werror=stop,{addon}',
            '-netdev', 'hubport,id=n0,hubid=0',
            '-netdev', 'hubport,id=n1,hubid=0',
            '-device', f'virtio-net-pci,netdev=n0,{nic}1',
            '-device', f'virtio-net-pci,netdev=n1,{nic}2']
        super().setUpClass()

    def test_works(self):
        out = self.sh(SCRIPT).split()
        md5 = hashlib.md5(self.data + self.data[:COPY]).hexdigest()
        self.assertEqual(out[0], hashlib.md5(self.data[:COPY]).hexdigest())
        self.assertEqual(out[-2:], [md5] * 2)
        kinds = set(out[2:-2])
        self.assertTrue(kinds and kinds <= MODES[self.mode][1], kinds)
        log = self.sh('dmesg')
        self.assertRegex(log, r'arm-smmu-v3 .*allocated \d+ entries for evtq')
        # what the guest wrote is in the file
        with open(self.disk, 'rb') as f:
            f.seek(DISK)
            self.assertEqual(f.read(), self.data[:COPY])


def add(mode, options=''):
    name = ''.join(w.capitalize() for w in re.findall(
        r'\w+', (options or 'ril').replace('smmuv3.', '')) + [mode])
    globals()[name] = type(name, (Options, odptest.GuestTest),
                           {'mode': mode, 'options': options})


for mode in 'default', 'passthrough', 'nostrict':
    add(mode)
    add(mode, 'smmuv3.ril=off')
for stage in '2', 'nested':
    add('strict', f'smmuv3.stage={stage}')
    if odptest.LONG:
        for mode in 'default', 'passthrough', 'nostrict':
            add(mode, f'smmuv3.stage={stage}')

# Each feature with each stage; cards and disk have ATS where the SMMU has
if odptest.LONG:
    for stage in '1', '2', 'nested':
        for feature in ('stall-model=stall', 'stall-model=forced', 'ats=on',
                        'ats=on,smmuv3.pri=on', 'msi=on'):
            add('strict', f'smmuv3.stage={stage},smmuv3.{feature}')

odptest.main(__name__)
