# SPDX-License-Identifier: GPL-2.0-or-later
"""`odp bench faults`: what a page costs that the device finds absent, on each
path (device ODP, SMMUv3 stall, ATS and stall, Intel ATS and PRI), beside the
processor's own touch of a cold page; and what memory that is present costs,
beside pinned memory in the same guest and the same state of the IOMMU."""

from odp import build, guestprog, image, intree, kernel, machine
from odp.cli import Parser
from odp.common import OdpError, say

SUMMARY = 'faults of each path beside pinned memory and the processor'

STALL = ('oas=52', 'ssidsize=16', 'stall-model=stall')

#: name: (iommu, SMMU's properties, HCA's properties, kernel parameters)
PATHS = {
    'stall': ('smmuv3', STALL, ',x-portal-no-ats=on', []),
    'ats+stall': ('smmuv3', (*STALL, 'ats=on'), ',ats=on', []),
    'passthrough': ('smmuv3', (*STALL, 'ats=on'), ',ats=on',
                    ['iommu.passthrough=1']),
    'pri': ('intel', (), ',ats=on', []),
}

#: A server's processor. QEMU's `max` has every extension, and under TCG these
#: cost something at each jump and each switch of threads.
CPU = 'neoverse-n1'

#: Binds the first portal, prepares memory, measures so many times.
SCRIPT = """set -e
echo madvise >/sys/kernel/mm/transparent_hugepage/enabled
echo 4096 >/sys/kernel/debug/fault_around_bytes
modprobe uio_pci_generic_sva 2>/dev/null ||
    { modprobe uio; insmod /root/uio_pci_generic_sva.ko; }
pci=$(basename $(ls -d /sys/bus/pci/devices/*.1 | head -1))
echo uio_pci_sva >/sys/bus/pci/devices/$pci/driver_override
echo $pci >/sys/bus/pci/drivers/uio_pci_sva/bind
for run in $(seq %d); do
    odp-sva bench --portal $pci
    # The kernel's release of it must not meet the next one (late-release).
    sleep 1
done
"""


def best(path, opts):
    """{name: number}, the least of several processes in one guest. Where code
    and data of a process happen to be decides how much of the path TCG finds
    translated at once; as within a process, what is in the way only ever
    adds."""
    runs = measure(path, opts)
    each = ', '.join(f'{stall_cost(got):.1f}' for got in runs)
    say(f'{path}: a fault, in CPU touches, in each process: {each}')
    return {name: min(got[name] for got in runs) for name in runs[0]}


def stall_cost(got):
    """A fault of a portal, one outstanding, in touches of the processor."""
    return (got['first-4K-sva-1'] - got['after-4K-sva-1']) / got['cpu-touch']


def measure(path, opts):
    """[{name: number} of an odp-sva bench]"""
    iommu, smmu, options, append = PATHS[path]
    arch = machine.arch_of(iommu)
    qemu = build.emulator(machine.ARCHS[arch].target)
    kern = kernel.find('stock' if iommu == 'intel' else 'sva', arch=arch)
    copies = guestprog.copies('odp-sva', arch=arch)
    if iommu == 'intel':
        module = intree.build('drivers/uio/uio_pci_generic_sva.c', kern)
        copies.append((module, f'/root/{module.name}'))
    args = [a for opt in smmu for a in ('-global', f'arm-smmuv3.{opt}')]
    config = machine.Config(
        qemu=qemu, kernel=kern, iommu=iommu, hca=1, smp=opts.smp,
        cpu='max' if iommu == 'intel' else opts.cpu,
        append=append,
        layers=[image.userland(arch=arch)['layer'], kern.modules],
        hca_options=f'link=ib,sva-portals=1{options}', qemu_args=args,
        copies=[image.parse_copy(f'{exe}:{place}') for exe, place in copies])
    out = []
    with machine.Guest(config) as guest:
        guest.wait_ready()
        status = guest.run(SCRIPT % opts.runs, stdout=out.append,
                           stderr=out.append, seconds=1200 * opts.runs)
    text = b''.join(out).decode(errors='replace')
    if status:
        raise OdpError(f'path {path}: status {status}\n{text}')
    runs = []
    for row in map(str.split, text.splitlines()):
        if len(row) == 2 and row[1].replace('.', '').isdigit():
            if row[0] == 'cpu-touch':
                runs.append({})
            runs[-1][row[0]] = float(row[1])
    return runs


def show(path, got):
    """Ratios within the run; the times stand beside them."""
    cpu = got['cpu-touch']
    print(f'\n{path}: the processor touches a cold page in {cpu:.1f} us')
    print(f'  {"4 KiB pages, first touch":34} {"us":>8} {"faults/s":>9} '
          f'{"CPU touches":>12}')
    for how in ('sva', 'odp'):
        for n in (1, 8):
            first = got[f'first-4K-{how}-{n}']
            fault = first - got[f'after-4K-{how}-{n}']
            rate = 1e6 / fault if fault > 0 else float('inf')
            print(f'  {how + f", {n} outstanding":34} {first:8.1f} '
                  f'{rate:9.0f} {fault / cpu:12.1f}')
    print(f'  prefetch, a page: madvise {got["prefetch-4K-sva-1"]:.1f} us, '
          f'ibv_advise_mr {got["prefetch-4K-odp-1"]:.1f} us')
    print(f'  {"against pinned in this run":34} {"pinned us":>9} {"sva":>7} '
          f'{"odp":>7}')
    names = [f'{a}-{size}-{{}}-1' for size in ('4K', '2M')
             for a in ('first', 'after')]
    names += ['prefetched-4K-{}-1']
    names += [f'set-{k}K-{o}-{{}}' for k in (256, 1024, 4096)
              for o in ('sequential', 'random', 'mixed')]
    for name in names:
        base = got[name.format('pinned')]
        print(f'  {name.replace("-{}", ""):34} {base:9.1f} '
              f'{got[name.format("sva")] / base:7.2f} '
              f'{got[name.format("odp")] / base:7.2f}')


def main(args):
    p = Parser(prog='odp bench faults', description=__doc__)
    p.add_argument('path', nargs='*', metavar='PATH',
                   help='one of ' + ', '.join(PATHS) + ' (default: all)')
    p.add_argument('--runs', type=int, default=3, metavar='N',
                   help='the best of so many processes (default: '
                   '%(default)s)')
    p.add_argument('--smp', type=int, default=1, metavar='N',
                   help='processors of the guest (default: %(default)s)')
    p.add_argument('--cpu', default=CPU, metavar='C',
                   help='processor of an arm64 guest (default: %(default)s)')
    opts = p.parse_args(args)
    if opts.runs < 1:
        raise OdpError('--runs: at least 1', status=2)
    for path in opts.path:
        if path not in PATHS:
            raise OdpError(f'no path "{path}"; there are ' + ', '.join(PATHS),
                           status=2)
    for path in opts.path or PATHS:
        say(f'measuring {path}')
        show(path, best(path, opts))
    return 0
