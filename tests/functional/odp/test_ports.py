#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# odp: minutes=3
"""A card with two ports: two functions of one slot, each an HCA. And what
iproute2's rdma and devlink show of them: counters and their modes, resources,
health, versions."""

import json
import re

import odptest
from hcatest import GONE, PINGPONG
from odp import perf

#: Lines like "  rdma_tx_packets 12".
COUNTER = re.compile(r'\b(\w+) (\d+)\b')


class Ports(odptest.GuestTest):
    qemu_args = (
        '-device', 'pcie-root-port,id=card,bus=pcie.0,chassis=9,slot=9',
        '-device', 'mlx5-hca,id=hca0,bus=card,addr=0.0,multifunction=on',
        '-device', 'mlx5-hca,id=hca1,bus=card,addr=0.1')

    def pair(self, a, b, flags=''):
        out = self.sh(f'{PINGPONG}\npair {a} {b} "{flags}" 18515')
        self.assertIn('100 iters in', out)
        self.assertNotIn('invalid data', out)

    def json(self, command):
        return json.loads(self.sh(command))

    def during(self, script, seconds=3, tool='ib_write_bw'):
        """Output of a script, run after some seconds, while a queue pair of
        mlx5_0 talks to another."""
        return self.sh(
            f'{tool} -d mlx5_0 -F -D 60 >/tmp/server 2>&1 & server=$!\n'
            f'{perf.LISTENING}'
            f'{tool} -d mlx5_0 -F -D 60 127.0.0.1 >/tmp/client 2>&1 & '
            f'client=$!\nsleep {seconds}\n{script}\nstatus=$?\n'
            'kill $client $server; wait\nexit $status')

    # The card.

    def test_card(self):
        """Two functions, ports 1 and 2 of one card, both up."""
        functions = self.sh('cd /sys/class/infiniband; '
                            'for d in mlx5_0 mlx5_1; do '
                            'basename $(readlink -f $d/device); done').split()
        self.assertEqual([f.rpartition('.')[2] for f in functions],
                         ['0', '1'])
        self.assertEqual(len({f.rpartition('.')[0] for f in functions}), 1)
        guids = {}
        for name in ('sys_image_guid', 'node_guid'):
            guids[name] = self.sh('cat /sys/class/infiniband/mlx5_[01]/'
                                  + name).split()
        self.assertEqual(len(set(guids['sys_image_guid'])), 1, guids)
        self.assertEqual(len(set(guids['node_guid'])), 2, guids)
        links = {link['ifname']: link for link in self.json('rdma -j link')}
        for name in ('mlx5_0', 'mlx5_1'):
            self.assertEqual(links[name]['state'], 'ACTIVE', links)
        self.assertNotEqual(links['mlx5_0']['lid'], links['mlx5_1']['lid'])

    def test_traffic(self):
        """Through each port, and between them both ways."""
        for a in ('mlx5_0', 'mlx5_1'):
            for b in ('mlx5_0', 'mlx5_1'):
                for flags in ('', '-o'):
                    with self.subTest(a=a, b=b, flags=flags):
                        self.pair(a, b, flags)

    def test_one_port_goes(self):
        """Reset and unbinding of one function leave the other alone."""
        self.allow_log = GONE + r'|mlx5_core .*'
        second = self.sh('basename $(readlink -f '
                         '/sys/class/infiniband/mlx5_1/device)').strip()
        self.during(f'echo {second} >/sys/bus/pci/drivers/mlx5_core/unbind; '
                    'sleep 1; kill -0 $client $server; '
                    '! [ -e /sys/class/infiniband/mlx5_1 ]', 1)
        self.sh(f'echo 1 >/sys/bus/pci/devices/{second}/reset; '
                f'echo {second} >/sys/bus/pci/drivers/mlx5_core/bind; '
                'for i in $(seq 200); do ibv_devinfo -d mlx5_1 2>/dev/null | '
                'grep -q PORT_ACTIVE && exit 0; sleep 0.1; done; exit 1')
        self.pair('mlx5_0', 'mlx5_1')

    # rdma statistic.

    def test_statistic(self):
        """The port's own counters."""
        out = self.during('rdma -j statistic show link mlx5_0/1')
        shown = json.loads(out)[0]
        self.assertGreater(shown['rx_write_requests'], 0, shown)
        self.assertEqual(shown['out_of_sequence'], 0, shown)
        self.assertIn('mlx5_1', self.sh('rdma statistic show'))

    def test_statistic_auto(self):
        """Sets that queue pairs get by their type."""
        self.sh('rdma statistic qp set link mlx5_0/1 auto type on')
        mode = self.sh('rdma statistic qp mode link mlx5_0/1')
        self.assertRegex(mode, r'mlx5_0/1 mode qp auto type on')
        shown = json.loads(self.during('rdma -j statistic qp show link '
                                       'mlx5_0/1'))
        sets = [s for s in shown if s.get('rx_write_requests')]
        self.assertTrue(sets, shown)
        self.assertTrue(sets[0]['lqpn'], shown)
        self.sh('rdma statistic qp set link mlx5_0/1 auto off')
        self.assertRegex(self.sh('rdma statistic qp mode link mlx5_0/1'),
                         r'mlx5_0/1 mode qp auto off')

    def test_statistic_bound(self):
        """A set that one queue pair is bound to by hand, and then not."""
        self.sh('rdma statistic qp set link mlx5_0/1 auto off')
        # Both ends write: a queue pair takes a set when it can send.
        out = self.during(
            'qpn=$(rdma res show qp link mlx5_0/1 | '
            "sed -n 's/.*lqpn \\([0-9]*\\) .*type RC state RTS.*/\\1/p' | "
            'head -1)\n'
            'rdma statistic qp bind link mlx5_0/1 lqpn $qpn || exit 1\n'
            'sleep 2; rdma statistic qp show link mlx5_0/1\n'
            'id=$(rdma statistic qp show link mlx5_0/1 | '
            "sed -n 's/.*cntn \\([0-9]*\\).*/\\1/p' | head -1)\n"
            'rdma statistic qp unbind link mlx5_0/1 cntn $id lqpn $qpn '
            '|| exit 1\n'
            'echo after: $(rdma statistic qp show link mlx5_0/1)',
            tool='ib_write_lat')
        before, _, after = out.partition('after:')
        self.assertRegex(before, r'cntn \d+')
        self.assertNotIn('cntn', after)
        counts = {k: int(n) for k, n in COUNTER.findall(before)}
        self.assertGreater(counts['rx_write_requests'], 0, before)

    def test_optional_counters(self):
        """Counters of packets, which are rules of flow steering."""
        names = ('rdma_tx_packets', 'rdma_tx_bytes', 'rdma_rx_packets',
                 'rdma_rx_bytes')
        supported = self.sh('rdma statistic mode supported link mlx5_0/1')
        for name in names:
            self.assertIn(name, supported)
        self.sh('rdma statistic set link mlx5_0/1 optional-counters '
                + ','.join(names))
        mode = self.sh('rdma statistic mode link mlx5_0/1')
        for name in names:
            self.assertIn(name, mode)
        out = self.during('rdma statistic show link mlx5_0/1')
        counts = {k: int(n) for k, n in COUNTER.findall(out)}
        for name in names:
            self.assertGreater(counts[name], 0, out)
        self.sh('rdma statistic unset link mlx5_0/1 optional-counters')
        self.assertNotIn('rdma_tx_packets',
                         self.sh('rdma statistic mode link mlx5_0/1'))

    # rdma resource.

    def test_resources(self):
        """Who has which object; with details of the device's own."""
        self.pair('mlx5_0', 'mlx5_0')   # the kernel keeps what it makes
        idle = self.json('rdma -j res show')[0]
        out = self.during('rdma -j res show; '
                          'for k in qp cq mr pd ctx; do echo ==; '
                          'rdma -j res show $k; done')
        summary, qps, cqs, mrs, pds, ctxs = map(json.loads, out.split('=='))
        self.assertEqual(summary[0]['qp'], idle['qp'] + 2, summary)
        rc = [q for q in qps if q.get('type') == 'RC']
        self.assertEqual(len(rc), 2, qps)
        self.assertEqual({q['comm'] for q in rc}, {'ib_write_bw'})
        self.assertEqual({q['state'] for q in rc}, {'RTR', 'RTS'})
        self.assertEqual({q['rqpn'] for q in rc}, {q['lqpn'] for q in rc})
        for rows in (cqs, mrs, pds):
            self.assertTrue([r for r in rows
                             if r.get('comm') == 'ib_write_bw'], rows)
        self.assertEqual(len([c for c in ctxs
                              if c['comm'] == 'ib_write_bw']), 2, ctxs)
        self.assertEqual(self.json('rdma -j res show')[0], idle)

    def test_resource_dump(self):
        """The contexts themselves, as the device tells them, or an error that
        says that this firmware has no such dump."""
        status, out = self.try_sh('rdma -r res show qp link mlx5_0/1')
        self.assertTrue(not status or 'not supported' in out.lower(), out)

    # devlink.

    def test_info(self):
        for function in self.sh('grep -l 0x15b3 /sys/bus/pci/devices/*/vendor'
                                ).split():
            bdf = function.split('/')[-2]
            info = self.json(f'devlink -j dev info pci/{bdf}')['info']
            info = info[f'pci/{bdf}']
            self.assertEqual(info['driver'], 'mlx5_core')
            versions = info['versions']
            self.assertEqual(versions['fixed']['fw.psid'], 'QODP000000001')
            running = versions['running']
            self.assertRegex(running['fw.version'], r'^\d+\.\d+\.\d+$')
            self.assertEqual(versions['stored']['fw.version'],
                             running['fw.version'])
            self.assertIn(running['fw.version'],
                          self.sh('ibv_devinfo -d mlx5_0'))

    def test_health(self):
        """Each function has its reporters, well."""
        health = self.json('devlink -j health show')['health']
        self.assertEqual(len(health), 2, health)
        for reporters in health.values():
            state = {r['reporter']: r['state'] for r in reporters}
            self.assertEqual(state['fw'], 'healthy')
            self.assertEqual(state['fw_fatal'], 'healthy')
        for bdf in health:
            out = self.sh(f'devlink health diagnose {bdf} reporter fw')
            self.assertRegex(out, r'Syndrome: 0')


odptest.main(__name__)
