#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# odp: minutes=3 long-minutes=60
"""Many queue pairs and memory regions of many processes on the HCA: made,
used, destroyed. With ODP_LONG 10,000 and 100,000 of 64 processes.

What an object costs must not depend on how many there are: the cheapest of
the last rounds against that of the first, within one run, in processor time
of QEMU (the guest's driver and the device in one). What was there before is
there again, in the guest and in QEMU.
"""

import re
import time
from pathlib import Path

import odptest

TOP = Path(__file__).resolve().parents[3]

#: Processes, queue pairs, memory regions, rounds.
WHOLE = (64, 10000, 100000, 12) if odptest.LONG else (8, 64, 512, 2)
#: Last third of the rounds to the first.
FLAT = 1.2
#: MiB that QEMU and the guest may have more at the end than before, or this
#: part of what they had more meanwhile.
GROWTH = 8
PART = 0.05


class Objects(odptest.GuestTest):
    hca = 1
    mem = '4G' if odptest.LONG else '2G'
    cpu = 'cortex-a57'
    copies = (f'{TOP}/tests/guest/odp-objects:/usr/local/bin/odp-objects',)

    def resources(self):
        """{kind: number} as the kernel counts them."""
        out = self.sh('rdma res show')
        found = {k: int(n) for k, n in
                 re.findall(r'\b(pd|cq|qp|mr|ctx|srq) (\d+)', out)}
        self.assertIn('qp', found, out)
        return found

    def all_objects(self):
        """{kind: number} of the device."""
        return self.guest.qmp('qom-get', path='/machine/peripheral/hca0',
                              property='objects')

    def objects(self):
        """Those that the driver does not keep for later, as it does keys."""
        return {k: n for k, n in self.all_objects().items() if k != 'mkey'}

    def settle(self):
        """Until the driver has given up the keys that it keeps."""
        last, now = None, self.all_objects()['mkey']
        while odptest.LONG and now != last:
            time.sleep(20)
            last, now = now, self.all_objects()['mkey']

    def free_mib(self):
        """What the guest's kernel has left, its caches dropped."""
        out = self.sh('sync; echo 3 >/proc/sys/vm/drop_caches; sleep 1; '
                      'cat /proc/meminfo')
        return int(re.search(r'MemFree: +(\d+)', out)[1]) // 1024

    def heap_mib(self):
        """What QEMU's main thread holds, which runs the device: its heap.
        Code that the guest's was translated to, and what the processors'
        threads keep of it, depends on the guest's programs."""
        path = Path(f'/proc/{self.guest.proc.pid}/smaps')
        return int(re.search(r' \[heap\]\n(?:\w+: .*\n)*?Rss: +(\d+)',
                             path.read_text())[1]) / 1024

    def used(self):
        """Seconds of processor time that QEMU took so far."""
        path = Path(f'/proc/{self.guest.proc.pid}/stat')
        utime, stime = path.read_text().rpartition(')')[2].split()[11:13]
        return (int(utime) + int(stime)) / 100

    def make(self, processes, qps, mrs, rounds):
        """{what: [microseconds of processor time per object of a round]}, the
        least that was free in the guest, the most that QEMU had."""
        costs, rest, last = {}, '', None
        peak = [10 ** 6, 0]

        def said(data):
            nonlocal rest, last
            *lines, rest = (rest + data.decode()).split('\n')
            for line in lines:
                now = self.used()
                if line != 'begin':
                    what, count, wall, free = line.split()
                    peak[:] = (min(peak[0], int(free)),
                               max(peak[1], self.heap_mib()))
                    cost = (now - last) / int(count) * 1e6
                    costs.setdefault(what, []).append(cost)
                    print(f'# {what}: {count}, each {wall} us, {cost:.0f} of '
                          'processor time', flush=True)
                last = now

        errors = []
        status = self.guest.run(
            f'ulimit -l unlimited; odp-objects --processes {processes} '
            f'--qps {qps} --mrs {mrs} --rounds {rounds}',
            stdout=said, stderr=errors.append, seconds=3000)
        self.assertEqual(status, 0, b''.join(errors).decode())
        self.assertEqual(len(costs), 5)
        return costs, *peak

    def test_objects(self):
        # What the allocators of the guest and of QEMU keep after the first
        # time is enough for the second.
        self.make(*WHOLE)
        self.settle()
        before, objects = self.resources(), self.objects()
        free, heap = self.free_mib(), self.heap_mib()
        costs, free_peak, heap_peak = self.make(*WHOLE)
        self.assertEqual(self.resources(), before)
        self.assertEqual(self.objects(), objects)
        # The driver keeps keys for a while, for who asks next.
        deadline = time.monotonic() + (300 if odptest.LONG else 60)
        while True:
            free_now, heap_now = self.free_mib(), self.heap_mib()
            told = (f'guest: {free} MiB free before, {free_peak} with all, '
                    f'{free_now} after; QEMU: {heap:.1f}, {heap_peak:.1f}, '
                    f'{heap_now:.1f} MiB')
            if (free - free_now < max(GROWTH, PART * (free - free_peak)) and
                    heap_now - heap < max(GROWTH,
                                          PART * (heap_peak - heap))):
                break
            self.assertLess(time.monotonic(), deadline, told)
            time.sleep(5)
        print(f'# {told}', flush=True)
        if not odptest.LONG:
            return
        for what in ('make_qps', 'make_mrs', 'drop_mrs', 'drop_qps'):
            # The first takes what the driver kept.
            rounds = costs[what][1:]
            third = len(rounds) // 3
            early, late = min(rounds[:third]), min(rounds[-third:])
            print(f'# {what}: {early:.0f} us early, {late:.0f} us late',
                  flush=True)
            self.assertLess(max(early, late) / min(early, late), FLAT, what)


odptest.main(__name__)
