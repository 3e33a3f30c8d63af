# SPDX-License-Identifier: GPL-2.0-or-later
"""perftest in a guest, on the HCA and on rxe (soft RoCE), its peer there.

Both get the same binary, flags and depth; each talks to itself.
"""

import re
import shlex
import statistics

from .common import OdpError

#: rxe on a dummy device with jumbo frames.
RXE_SETUP = """\
modprobe -a rdma_rxe ib_uverbs rdma_ucm && modprobe dummy numdummies=0 &&
ip link add dummy0 type dummy && ip link set dummy0 mtu 9000 up &&
ip addr add 10.0.0.1/24 dev dummy0 &&
rdma link add rxe0 type rxe netdev dummy0 || exit 1
for i in $(seq 100); do
    grep -qs 0a00:0001 /sys/class/infiniband/rxe0/ports/1/gids/1 && exit 0
    sleep 0.1
done
echo 'rxe0 has no GID for 10.0.0.1' >&2; exit 1
"""

#: Wait until the server listens (port 18515), not a guessed time.
LISTENING = """\
for i in $(seq 200); do
    cat /proc/net/tcp /proc/net/tcp6 | grep -q ':4853 .* 0A ' && break
    sleep 0.05
done
"""

_RUN = """\
{cmd} >/tmp/perf-server 2>&1 & server=$!
""" + LISTENING + """\
{cmd} 127.0.0.1; status=$?
[ $status = 0 ] || {{ cat /tmp/perf-server; kill $server; }}
wait $server
exit $status
"""

HCA = 'mlx5_0'
RXE = 'rxe0'


def device_flags(device):
    return ['-d', device] + (['-x', '1'] if device == RXE else [])


def command(tool, device, flags):
    return shlex.join([tool, *device_flags(device), '-F', *flags])


def script(tool, device, flags):
    """Shell script of one measurement."""
    return _RUN.format(cmd=command(tool, device, flags))


def rows(text):
    """The numbers of perftest's table, a list a row."""
    found = []
    table = False
    for line in text.splitlines():
        if line.lstrip().startswith('#bytes'):
            table = True
        elif table and re.match(r'\s*\d+\s', line):
            found.append([float(w) for w in line.split()])
    return found


def result(tool, text):
    """The one number: MiB/s on average, or the typical latency in us."""
    table = rows(text)
    if not table:
        raise OdpError(f'{tool} printed no result:\n{text.strip()[-2000:]}')
    # #bytes #iterations BW-peak BW-average MsgRate
    # #bytes #iterations t_min t_max t_typical t_avg ...
    return table[-1][4 if tool.endswith('_lat') else 3]


#: perftest says so when the guest's clocks ran apart while it compared them,
#: as on a busy host; its numbers are then 0.
_UNCLOCKED = 'Correlation coefficient'


def measure(guest, tool, device, flags, seconds=120):
    """Run one measurement in a machine.Guest; its number."""
    for _ in range(4):
        status, text = run_text(guest, script(tool, device, flags), seconds)
        if status:
            raise OdpError(f'{command(tool, device, flags)}: status {status}\n'
                           f'{text.strip()[-2000:]}')
        if _UNCLOCKED not in text:
            return result(tool, text)
    raise OdpError(f'{command(tool, device, flags)}: its clock cannot be '
                   f'calibrated\n{text.strip()[-2000:]}')


def run_text(guest, shell, seconds=120):
    """(status, output and error output as text) of a script in a guest."""
    out = []
    status = guest.run(shell, stdout=out.append, stderr=out.append,
                       seconds=seconds)
    return status, b''.join(out).decode(errors='replace')


def setup_rxe(guest):
    status, text = run_text(guest, RXE_SETUP)
    if status:
        raise OdpError(f'rxe in the guest: {text.strip()}')


median = statistics.median
