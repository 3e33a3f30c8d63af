#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# odp: minutes=4
"""QEMU's xlnx-zcu102 with the SoC's SMMU: the newest stock kernel with a
device tree of ours (fixed clocks, no firmware) uses GEM and SDHCI behind it."""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import odptest
from odp import build, image, kernel
from odp.aptroot import AptRoot

DISK = 16 << 20         # a card's size is a power of two

#: First process of the guest: there is no host to talk to, so it does all
#: and prints what the test reads.
INIT = """#!/usr/bin/busybox sh
export PATH=/usr/sbin:/usr/bin:/odp/bin
/usr/bin/busybox mkdir -p /odp/bin; /usr/bin/busybox --install -s /odp/bin
mount -t proc proc /proc; mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev 2>/dev/null
mount -t tmpfs run /run; mount -t tmpfs tmp /tmp
say() { echo "@ $*"; }
say release $(uname -r)
modprobe -a mmc_block sdhci_of_arasan macb
for i in $(seq 200); do [ -e /dev/mmcblk0 ] && break; sleep 0.1; done
say card $(dd if=/dev/mmcblk0 bs=1M 2>/dev/null | md5sum)
dd if=/dev/mmcblk0 of=/tmp/part bs=1M count=2 2>/dev/null
dd if=/tmp/part of=/dev/mmcblk0 bs=1M seek=8 conv=fsync 2>/dev/null
echo 3 >/proc/sys/vm/drop_caches
say part $(md5sum /tmp/part)
say back $(dd if=/dev/mmcblk0 bs=1M skip=8 count=2 2>/dev/null | md5sum)
net() { %s }
net /dev/mmcblk0 >/tmp/net
say net $(cat /tmp/net)
for d in /sys/kernel/iommu_groups/*; do
    for m in $d/devices/*; do say group $(cat $d/type) ${m##*/}; done
done
dmesg | sed 's/^/@ dmesg /'
poweroff -f
""" % odptest.NET


def dtb(where):
    dtc = shutil.which('dtc') or \
        AptRoot().tool(['device-tree-compiler'], 'host') / 'usr/bin/dtc'
    out = where / 'zcu102.dtb'
    subprocess.run([dtc, '-q', '-O', 'dtb', '-o', out,
                    image.RECIPE / 'zcu102.dts'], check=True)
    return out


class Zcu102:
    """The machine with a kernel, whose first process is `init`."""
    limit = 150
    init = INIT

    @classmethod
    def setUpClass(cls):
        cls.dir = Path(tempfile.mkdtemp(prefix='odp-zcu102-'))
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        cls.addClassCleanup(cls.keep_console)
        data = os.urandom(DISK)
        card = cls.dir / 'card'
        card.write_bytes(data)
        cls.md5 = hashlib.md5(data).hexdigest()
        kern = kernel.find(cls.kernel_name)
        image.write_initrd(cls.dir / 'initrd',
                           [image.userland()['layer'], kern.modules],
                           files={'odp/zcu102': (cls.init, 0o755)})
        qmp = cls.dir / 'qmp'
        console = cls.dir / 'console'
        cmd = [build.emulator('aarch64'), '-machine', 'xlnx-zcu102,smmu=on',
               '-smp', '2', '-m', '1G', '-display', 'none', '-no-reboot',
               '-no-shutdown', '-kernel', kern.image,
               '-initrd', cls.dir / 'initrd', '-dtb', dtb(cls.dir),
               '-append', 'console=ttyPS0,115200 rdinit=/odp/zcu102 panic=-1 '
               'quiet', '-serial', f'file:{console}', '-monitor', 'none',
               '-qmp', f'unix:{qmp},server=on,wait=off',
               '-drive', f'if=sd,format=raw,file={card}']
        for i in range(2):
            cmd += ['-netdev', f'hubport,id=n{i},hubid=0', '-net',
                    f'nic,netdev=n{i},macaddr=52:54:00:00:00:0{i + 1}']
        with open(cls.dir / 'log', 'wb') as log:
            proc = subprocess.Popen([str(c) for c in cmd], stdout=log,
                                    stderr=log, stdin=subprocess.DEVNULL)
        cls.addClassCleanup(proc.wait)
        cls.addClassCleanup(proc.kill)
        end = time.monotonic() + cls.limit
        while not qmp.exists() and proc.poll() is None:
            time.sleep(0.1)
        if proc.poll() is not None:
            raise AssertionError((cls.dir / 'log').read_text())
        mon = odptest.Qmp(str(qmp))
        while mon('query-status')['status'] != 'shutdown':
            text = console.read_text(errors='replace')
            if time.monotonic() > end or 'Kernel panic' in text:
                raise AssertionError('not done in time:\n' + text[-4000:])
            time.sleep(0.5)
        cls.stats = mon('qom-get', path='/machine/soc/mmu500',
                        property='stats')
        cls.streams = mon('qom-get', path='/machine/soc/mmu500',
                          property='streams')
        mon.close()
        text = console.read_text(errors='replace')
        cls.said = re.findall(r'^@ (.*?)\r*$', text, re.M)

    @classmethod
    def keep_console(cls):
        if keep := os.environ.get('ODP_KEEP'):
            shutil.copy(cls.dir / 'console',
                        Path(keep) / f'zcu102-{cls.kernel_name}.log')

    def after(self, word):
        return [line[len(word) + 1:].split() for line in self.said
                if line.split()[0] == word]

    def dmesg(self):
        return '\n'.join(line[6:] for line in self.said
                         if line.startswith('dmesg'))

    def test_probe(self):
        log = self.dmesg()
        self.assertIn('SMMUv2 with:', log)
        self.assertIn('stream matching with 48 register groups', log)
        self.assertIn('16 context banks (0 stage-2 only)', log)
        bad = [line for line in log.splitlines()
               if odptest.BAD_LINES.search(line)
               and not odptest.HARMLESS.search(line)
               and not re.search(r'arm-smmu.*probing', line)]
        self.assertEqual(bad, [])


class CardAndNet(Zcu102):
    """SDHCI and GEM."""

    def test_behind_the_smmu(self):
        """GEM and SDHCI are in groups, with the streams of the SoC, and what
        they moved went through the SMMU without a fault."""
        groups = {name: kind for kind, name in self.after('group')}
        for name in 'ff0b0000.ethernet', 'ff0c0000.ethernet', 'ff160000.mmc':
            self.assertIn(groups[name], ('DMA', 'DMA-FQ'))
        for sid in 0x870, 0x874, 0x875:
            self.assertRegex(self.streams,
                             f'id {sid:#06x} mask 0x0000 translate bank')
        self.assertGreater(self.stats['transactions'], 2 * DISK // 4096)
        self.assertEqual(self.stats['context-faults'], 0)
        self.assertEqual(self.stats['global-faults'], 0)

    def test_card(self):
        self.assertEqual(self.after('card')[0][0], self.md5)
        self.assertEqual(self.after('part')[0][0], self.after('back')[0][0])

    def test_net(self):
        """The card's content from one GEM to the other."""
        received, sent = self.after('net')[0]
        self.assertEqual(received, sent)


class StockZcu102(CardAndNet, unittest.TestCase):
    kernel_name = 'stock'


if odptest.LONG:
    class StableZcu102(CardAndNet, unittest.TestCase):
        kernel_name = 'stable'


odptest.main(__name__)
