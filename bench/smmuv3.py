# SPDX-License-Identifier: GPL-2.0-or-later
"""`odp bench smmuv3`: what a translation costs in instructions of the host,
counted by valgrind's callgrind, so the host's load does not show. An ordinary
device (edu) and a function with an ATC (pcie-exerciser) repeat one DMA; the
ratios are those of issue 4: an ordinary translation against an unpatched
QEMU's (--base), and an ATC hit against a TLB hit of the model."""

import json
import re
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

from odp import build
from odp.cli import Parser
from odp.common import OdpError, say

SUMMARY = 'SMMUv3: instructions of a translation, of an ATC hit'

RAM, ECAM, MMIO, SMMU = 0x40000000, 0x3f000000, 0x10000000, 0x09050000
STRTAB, CDS, CMDQ, EVENTQ = (RAM + 0x200000 + i * 0x10000 for i in range(4))
TABLES, PAGE = RAM + 0x240000, RAM + 0x260000
VA = 0x1234000
SSID = 1


class Machine:
    """A virt machine under callgrind, driven by the qtest protocol."""

    def __init__(self, qemu, function, device, props, count):
        self.dir = tempfile.TemporaryDirectory(prefix='odp-bench-')
        where = Path(self.dir.name)
        self.out = where / 'callgrind'
        listen = socket.socket(socket.AF_UNIX)
        listen.bind(str(where / 'qtest'))
        listen.listen()
        cmd = ['valgrind', '--tool=callgrind', f'--callgrind-out-file={self.out}']
        cmd += [f'--toggle-collect={f}' for f in function]
        cmd += [qemu, '-machine',
                f'virt,iommu=smmuv3,highmem=off,gic-version=3{props}',
                '-accel', 'qtest', '-cpu', 'cortex-a57', '-m', '128',
                '-display', 'none', '-nodefaults',
                '-qtest', f'unix:{where}/qtest', '-qtest-log', 'none',
                '-qmp', 'stdio', '-device', device + ',addr=4']
        self.proc = subprocess.Popen([str(c) for c in cmd],
                                     stdin=subprocess.PIPE,
                                     stdout=subprocess.DEVNULL,
                                     stderr=subprocess.PIPE, text=True)
        listen.settimeout(300)
        self.sock = listen.accept()[0].makefile('rw')
        self.count = count

    def do(self, line):
        self.sock.write(line + '\n')
        self.sock.flush()
        while True:
            answer = self.sock.readline()
            if not answer:
                raise OdpError('the emulator ended: ' + self.proc.stderr.read())
            if answer.startswith('OK'):
                return answer.split()[1:]

    def w(self, size, addr, value):
        self.do(f'write{size} {addr:#x} {value:#x}')

    def r(self, size, addr):
        return int(self.do(f'read{size} {addr:#x}')[0], 0)

    def put(self, addr, *words):
        for i, word in enumerate(words):
            self.w('q', addr + i * 8, word)

    def set_up(self):
        """SID 0x20: stage 1, VA -> PAGE, without SubstreamID."""
        self.put(STRTAB + 0x20 * 64, 1 | 5 << 1 | CDS, 1 << 28)
        self.put(CDS, 25 | 1 << 30 | 1 << 31 | 4 << 32 | 1 << 41 | 1 << 45 |
                 1 << 46, TABLES)
        self.put(TABLES + (VA >> 30) * 8, TABLES + 0x1000 | 3)
        self.put(TABLES + 0x1000 + (VA >> 21 & 511) * 8, TABLES + 0x2000 | 3)
        self.put(TABLES + 0x2000 + (VA >> 12 & 511) * 8,
                 PAGE | 3 | 1 << 6 | 1 << 10)
        self.w('q', SMMU + 0x80, STRTAB)
        self.w('l', SMMU + 0x88, 8)
        self.w('q', SMMU + 0x90, CMDQ | 6)
        self.w('q', SMMU + 0xa0, EVENTQ | 6)
        self.w('l', SMMU + 0x20, 1 | 4 | 8)
        cfg = ECAM + (4 << 15)
        for i in range(3):
            self.w('l', cfg + 0x10 + i * 4, MMIO + (i + 1) * 0x100000)
        self.w('w', cfg + 4, 6)
        return cfg, MMIO + 0x100000

    def finish(self):
        self.proc.stdin.write('{"execute": "qmp_capabilities"}\n'
                              '{"execute": "quit"}\n')
        self.proc.stdin.flush()
        self.proc.wait(300)
        said = self.proc.stderr.read()
        m = re.search(r'Collected : (\d+)', said)
        if not m:
            raise OdpError('callgrind says nothing: ' + said[-2000:])
        return int(m[1]) / self.count


def edu(qemu, count):
    m = Machine(qemu, ['smmuv3_translate'], 'edu', '', count)
    _, regs = m.set_up()
    for _ in range(count):
        m.w('q', regs + 0x80, VA)
        m.w('q', regs + 0x88, 0x40000)
        m.w('q', regs + 0x90, 8)
        m.w('q', regs + 0x98, 1)
        m.do('clock_step 200000000')
        if m.r('l', regs + 0x98) & 1:
            raise OdpError('a DMA does not end')
    return m.finish()


def exerciser(qemu, function, atc, count):
    m = Machine(qemu, function, 'pcie-exerciser', ',smmuv3.ats=on', count)
    cfg, regs = m.set_up()
    if atc:
        m.w('w', cfg + 0x108 + 6, 0x8000)
        m.w('l', regs + 0x84, 4)
    ch = regs + 0x1000
    for reg, value in (4, 0), (8, VA), (12, 0), (16, 8), (24, 0):
        m.w('l', ch + reg, value)
    for _ in range(count):
        m.w('l', ch + 0x14, 4)
        m.w('l', ch, 1)
        if m.r('l', ch + 0x14) & 3:
            raise OdpError('a DMA fails')
    return m.finish()


def main(argv):
    p = Parser(prog='odp bench smmuv3', description=__doc__)
    p.add_argument('--base', metavar='QEMU',
                   help='an unpatched qemu-system-aarch64 10.2.2')
    p.add_argument('--count', type=int, default=2000, help='DMAs of each')
    p.add_argument('--json', action='store_true', help='machine-readable')
    opts = p.parse_args(argv)
    if not shutil.which('valgrind'):
        raise OdpError('valgrind is missing: apt-get install valgrind')
    qemu = build.emulator('aarch64')
    result = {'ordinary': edu(qemu, opts.count)}
    say(f'ordinary translation: {result["ordinary"]:.0f} instructions')
    if opts.base:
        result['unpatched'] = edu(opts.base, opts.count)
        say(f'the same, unpatched: {result["unpatched"]:.0f}')
        result['ordinary/unpatched'] = (result['ordinary'] /
                                        result['unpatched'])
    result['tlb-hit'] = exerciser(qemu, ['smmuv3_recov_translate'], False,
                                  opts.count)
    say(f'TLB hit of the model: {result["tlb-hit"]:.0f}')
    result['atc-hit'] = exerciser(
        qemu, ['pcie_atc_translate', 'pcie_atc_needs_check',
               'smmuv3_recov_translate'], True, opts.count)
    say(f'ATC hit, with the SMMU\'s check: {result["atc-hit"]:.0f}')
    result['atc-hit/tlb-hit'] = result['atc-hit'] / result['tlb-hit']
    if opts.json:
        print(json.dumps(result))
    else:
        for name, limit in (('ordinary/unpatched', 1.05),
                            ('atc-hit/tlb-hit', 0.2)):
            if name in result:
                print(f'{name:20} {result[name]:.3f}  (wanted: at most '
                      f'{limit})')
    return 0
