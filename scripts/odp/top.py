# SPDX-License-Identifier: GPL-2.0-or-later
"""`odp top`: the counters of the models in a running machine, and their rates.

Reads QOM properties over QMP, so it works for every QEMU with our models that
has a QMP socket, whoever started it.
"""

import json
import socket
import sys
import tempfile
import time
from pathlib import Path

from .cli import Parser
from .common import OdpError
from .machine import PREFIX

#: Types whose counters we show (as the composition tree names them), and
#: the properties that hold them: a name, the beginning of names (with -), or
#: a set of counters.
MODELS = {
    'mlx5-hca': ('odp-', 'fault-counters'),
    'arm-mmu500': ('stats',),
    'arm-smmuv3': ('transactions', 'tlb-misses', 'config-misses',
                   'walk-accesses', 'config-accesses', 'ats-requests',
                   'translated-transactions'),
    'pcie-exerciser': ('stalls', 'page-requests', 'atc-'),
}
#: Where devices hang in the tree; deeper ones are no devices of a machine.
ROOTS = ('/machine', '/machine/peripheral', '/machine/peripheral-anon',
         '/machine/soc', '/machine/unattached')


class Qmp:
    """Just enough of the protocol: commands, one at a time."""

    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(10)
        try:
            self.sock.connect(str(path))
            self.file = self.sock.makefile('rw')
            if 'QMP' not in self._answer():
                raise OdpError(f'{path} is no QMP socket')
            self.call('qmp_capabilities')
        except TimeoutError as e:
            raise OdpError(f'{path} does not answer: another client may hold '
                           'it') from e
        except (OSError, ValueError) as e:
            raise OdpError(f'{path}: {e}; name the QMP socket of a running '
                           'QEMU (-qmp unix:PATH,server=on,wait=off)') from e

    def _answer(self):
        line = self.file.readline()
        if not line:
            raise EOFError
        return json.loads(line)

    def call(self, command, **arguments):
        self.file.write(json.dumps({'execute': command,
                                    'arguments': arguments}) + '\n')
        self.file.flush()
        while True:
            answer = self._answer()
            if 'return' in answer:
                return answer['return']
            if 'error' in answer:
                raise OdpError(answer['error']['desc'])


def parser():
    p = Parser(prog='odp top', description=__doc__.split('\n')[0])
    p.add_argument('socket', nargs='?', help="QMP socket; default: that of "
                   "the 'odp guest' that started last")
    p.add_argument('--interval', type=float, default=1, metavar='SECONDS')
    p.add_argument('--count', type=int, default=0, metavar='N',
                   help='end after N looks (default: with the machine)')
    return p


def newest_socket():
    found = sorted(Path(tempfile.gettempdir()).glob(f'{PREFIX}*/qmp'),
                   key=lambda p: p.stat().st_mtime)
    if not found:
        raise OdpError("no 'odp guest' is running; name a QMP socket")
    return found[-1]


def devices(qmp):
    """[(path, name, properties)] of our models in the machine."""
    found = []
    for root in ROOTS:
        try:
            children = qmp.call('qom-list', path=root)
        except OdpError:
            continue              # a machine without that container
        for prop in children:
            kind = prop['type'].removeprefix('child<').removesuffix('>')
            if kind != prop['type'] and kind in MODELS:
                found.append((f'{root}/{prop["name"]}',
                              f'{prop["name"]} ({kind})', MODELS[kind]))
    return found


def wanted(name, properties):
    return any(name.startswith(p) if p.endswith('-') else name == p
               for p in properties)


def flat(value, name):
    """{name: number} of a property: a number, a set of counters, or lists of
    such sets. Of the HCA's lists only that of its functions is shown: keys
    and queue pairs come and go."""
    out = {}
    if isinstance(value, int) and not isinstance(value, bool):
        out[name] = value
    elif isinstance(value, dict):
        for key, part in sorted(value.items()):
            if isinstance(part, int):
                out.update(flat(part, key))
            elif key == 'functions':
                for one in part:
                    own = f'function-{one["function"]}-'
                    out.update({own + k: n for k, n in sorted(one.items())
                                if k not in ('function', 'latency')})
    return out


def counters(qmp, path, properties):
    """{name: number} of one device."""
    out = {}
    for prop in sorted(qmp.call('qom-list', path=path),
                       key=lambda p: p['name']):
        name = prop['name']
        if wanted(name, properties):
            out.update(flat(qmp.call('qom-get', path=path, property=name),
                            name))
    return out


def look(qmp, found, before, seconds):
    """One screenful; returns what it read, for the rates of the next."""
    now = {}
    for path, title, properties in found:
        print(title)
        now[path] = counters(qmp, path, properties)
        for name, number in now[path].items():
            line = f'  {name:32} {number:>16}'
            if path in before and seconds:
                rate = (number - before[path].get(name, 0)) / seconds
                line += f' {rate:>14.1f}/s'
            print(line)
    print(flush=True)
    return now


def main(argv):
    opts = parser().parse_args(argv)
    qmp = Qmp(opts.socket or newest_socket())
    found = devices(qmp)
    if not found:
        raise OdpError('the machine has no device of ours')
    before, then, looks = {}, None, 0
    try:
        while True:
            if sys.stdout.isatty():
                print('\033[H\033[2J', end='')
            at = time.monotonic()
            before = look(qmp, found, before, at - then if then else 0)
            then = at
            looks += 1
            if looks == opts.count:
                return 0
            time.sleep(opts.interval)
    except (EOFError, BrokenPipeError, ConnectionError):
        return 0                  # the machine ended
