# SPDX-License-Identifier: GPL-2.0-or-later
"""What our functional tests share: guests, TAP output, kernel logs.

    class Probe(odptest.GuestTest):
        hca = 1
        def test_devinfo(self):
            self.assertIn('PORT_ACTIVE', self.sh('ibv_devinfo'))

    odptest.main(__name__)

One guest is booted for a class and serves all of its tests. After each test
the kernel's log is looked through: a warning, an oops or an error of the
driver fails the test. Environment: ODP_QEMU (the emulator), ODP_LONG (run
what takes long, too), ODP_KEEP (a directory for the consoles of guests).
"""

import fnmatch
import os
import re
import sys
import time
import traceback
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / 'scripts'))

from odp import build, image, kernel, machine  # noqa: E402
from odp.aptroot import AptRoot  # noqa: E402
from odp.common import OdpError  # noqa: E402

LONG = bool(os.environ.get('ODP_LONG'))

#: Seconds for a command in the guest, unless the caller says otherwise.
LIMIT = 240

#: Lines of a kernel log that fail a test.
BAD_LINES = re.compile(
    r'WARNING:|BUG:|\bBUG at|Oops|Call trace|Internal error|Unable to handle'
    r'|INFO: (task|rcu)|soft lockup|hung task|use-after-free|refcount_t:'
    r'|general protection|Kernel panic|UBSAN|KASAN|possible recursive locking'
    r'|possible circular locking|mlx5_(core|ib) [^ ]+ .*\b(err|failed|timeout'
    r'|timed out)|mlx5.*(ERR|cmd_work_handler|wait_func|health)'
    r'|infiniband .*(err|failed)|DMAR:.*(fault|error)'
    r'|arm-smmu.*(event|fault|error|Unhandled)', re.I)

#: Lines of a stock boot on this machine that mean nothing to us. The HCA has
#: no vendor-specific PCI capability, the way to the firmware's own dumps.
HARMLESS = re.compile(
    r'arm-smmu-v3 [^ ]+: (ias|allocated|option)'
    r'|calibrate_delay_direct'
    r'|error reporting|EDAC|Failed to (create|find) .*(cpufreq|devfreq)'
    r'|mlx5_core .*: (firmware version|mlx5_pci_vsc_init)', re.I)

FLAWS = TOP / 'tests/kernel-flaws.txt'

#: Begins and ends a report of the kernel.
REPORT = re.compile(r'cut here|Unable to handle|kernel BUG at|Internal error'
                    r'|general protection|BUG: ')
REPORT_END = re.compile(r'end trace')
LONGEST = 150


#: Shell script: waits for two network cards with the MAC addresses
#: 52:54:00:00:00:01 and 02, gives each a network namespace, and sends the file
#: or disk that $1 names from the second to the first. Prints the MD5 of what
#: was received and of what was sent.
NET = """
ip() { command /usr/bin/ip "$@"; }  # not the shell's own
for i in $(seq 100); do
    [ $(grep -l 52:54:00 /sys/class/net/*/address | wc -l) = 2 ] && break
    sleep 0.1
done
for i in 1 2; do
    dev=$(grep -l 52:54:00:00:00:0$i /sys/class/net/*/address | cut -d/ -f5)
    ip netns add n$i
    ip link set $dev netns n$i
    ip -n n$i addr add 10.9.0.$i/24 dev $dev
    ip -n n$i link set $dev up
done
cat >/tmp/net.py <<'EOF'
import hashlib, socket, sys, time
if len(sys.argv) == 1:
    listen = socket.create_server(('10.9.0.1', 4000))
    print('ready', file=sys.stderr, flush=True)
    data = listen.accept()[0].makefile('rb').read()
else:
    data = open(sys.argv[1], 'rb').read()
    for i in range(20):     # the link comes up
        try:
            link = socket.create_connection(('10.9.0.1', 4000))
            break
        except OSError:
            time.sleep(1)
    link.sendall(data)
    link.close()
print(hashlib.md5(data).hexdigest(), flush=True)
EOF
ip netns exec n1 timeout 120 python3 /tmp/net.py 2>/tmp/ready &
for i in $(seq 100); do grep -qs ready /tmp/ready && break; sleep 0.1; done
ip netns exec n2 python3 /tmp/net.py $1
wait
ip netns del n1
ip netns del n2
"""


def qemu_python():
    """Make QEMU's own python packages importable."""
    binary = build.emulator('aarch64')
    config = binary.parent / 'config-host.mak'
    src = re.search(r'^SRC_PATH=(.*)$', config.read_text(), re.M)[1]
    path = os.path.join(binary.parent, src, 'python')
    if path not in sys.path:
        sys.path.append(path)


def efi_firmware():
    """QEMU arguments for UEFI, which describes the machine by ACPI."""
    root = AptRoot().tool(['qemu-efi-aarch64'], 'host')
    return ['-bios', str(Path(root) /
                         'usr/share/qemu-efi-aarch64/QEMU_EFI.fd')]


def has_device(name, binary=None):
    """Whether the emulator knows a device."""
    from odp.common import output
    text = output([binary or build.emulator('aarch64'), '-machine', 'none',
                   '-device', 'help'])
    return f'name "{name}"' in text


def known_flaws(text=None):
    """{name: {'kernel', 'log', 'test'}} of tests/kernel-flaws.txt."""
    found = {}
    flaw = None
    for line in (text or FLAWS.read_text()).splitlines():
        if not line.strip() or line.startswith('#'):
            continue
        key, _, value = line.partition(': ')
        if key == 'flaw':
            flaw = found[value] = {}
        else:
            flaw[key] = value
    return found


def without_flaws(lines, names):
    """(lines of a kernel log that are in no report of these known flaws,
    {name: reports})."""
    patterns = {n: re.compile(known_flaws()[n]['log']) for n in names}
    met = dict.fromkeys(names, 0)
    rest = []
    while lines:
        if not REPORT.search(lines[0]):
            rest.append(lines[0])
            lines = lines[1:]
            continue
        end = next((i for i, li in enumerate(lines[:LONGEST])
                    if REPORT_END.search(li)), 0) + 1
        report = '\n'.join(lines[:end])
        name = next((n for n, p in patterns.items() if p.search(report)),
                    None)
        if name:
            met[name] += 1
        else:
            rest += lines[:end]
        lines = lines[end:]
    return rest, met


class Qmp:
    """The guest's QMP connection (QEMU's own client), with dashes and
    keyword arguments."""

    def __init__(self, path):
        qemu_python()
        from qemu.qmp.legacy import QEMUMonitorProtocol
        self._mon = QEMUMonitorProtocol(path)
        self._mon.connect()

    def __call__(self, command, **args):
        """Run a command; its 'return'. An error raises."""
        return self._mon.cmd(command, **{k.replace('_', '-'): v
                                         for k, v in args.items()})

    def hmp(self, line):
        return self('human-monitor-command', command_line=line)

    def events(self):
        return self._mon.get_events()

    def wait_event(self, name, seconds=60):
        """The next event of that name."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            event = self._mon.pull_event(
                wait=max(0.1, deadline - time.monotonic()))
            if event and event['event'] == name:
                return event
        raise AssertionError(f'no event {name} in {seconds} s')

    def close(self):
        self._mon.close()


class TestGuest(machine.Guest):
    """A guest whose commands answer with text."""

    def __init__(self, config):
        super().__init__(config)
        self._qmp = None
        self.log_seen = 0
        #: Known flaws of the kernel that bad_log_lines() last met: reports.
        self.met = {}

    @property
    def qmp(self):
        if self._qmp is None:
            self._qmp = Qmp(self.qmp_path)
        return self._qmp

    def stop(self):
        keep = os.environ.get('ODP_KEEP')
        if keep and self.dir:
            Path(keep).mkdir(parents=True, exist_ok=True)
            (Path(keep) / f'{self.dir.name}.log').write_text(self.console())
        if self._qmp is not None:
            self._qmp.close()
            self._qmp = None
        super().stop()

    def try_sh(self, script, seconds=LIMIT):
        """(status, stdout and stderr as one text) of a shell script."""
        out = []
        status = self.run(script, stdout=out.append, stderr=out.append,
                          seconds=seconds)
        return status, b''.join(out).decode(errors='replace')

    def sh(self, script, seconds=LIMIT):
        """Output of a script, which must succeed."""
        status, text = self.try_sh(script, seconds)
        if status:
            raise AssertionError(f'status {status} from: {script}\n{text}')
        return text

    def wait_out(self, text, program, seconds):
        """/tmp/out, when it has text or the program's complaint."""
        deadline = time.monotonic() + seconds
        while True:
            out = self.sh('cat /tmp/out')
            if text in out or f'{program}:' in out:
                return out
            if time.monotonic() >= deadline:
                raise AssertionError(f'no "{text}" in {seconds} s: {out}')
            time.sleep(0.5)

    def bad_log_lines(self, allow=None, flaws=()):
        """Lines of the kernel's log, since the last call, that no test
        should cause. allow: a pattern of those that this one may; flaws: known
        ones of the kernel whose reports it may."""
        lines = self.sh('dmesg').splitlines()
        # The log is a ring: find where we were by the last line seen.
        new = lines
        if self.log_seen and self.log_seen in lines:
            new = lines[lines.index(self.log_seen) + 1:]
        if lines:
            self.log_seen = lines[-1]
        new, self.met = without_flaws(new, flaws)
        for name, count in self.met.items():
            if count:
                print(f'# known flaw of the kernel: {name}, {count} times',
                      flush=True)
        return [li for li in new if BAD_LINES.search(li)
                and not HARMLESS.search(li)
                and not (allow and re.search(allow, li))]

    def smmu(self):
        """QOM path of the virt machine's SMMUv3."""
        for child in self.qmp('qom-list', path='/machine/unattached'):
            if child['type'] == 'child<arm-smmuv3>':
                return '/machine/unattached/' + child['name']
        raise AssertionError('no SMMUv3')

    def save(self, path, seconds=120):
        """Stop the machine and write its state to a file."""
        self.qmp('stop')
        self.qmp('migrate', uri=f'file:{path}')
        deadline = time.monotonic() + seconds
        while True:
            info = self.qmp('query-migrate')
            if info['status'] in ('completed', 'failed'):
                break
            assert time.monotonic() < deadline, info
            time.sleep(0.2)
        assert info['status'] == 'completed', info

    def go_on(self, seconds=120):
        """Run the machine once it is loaded: it was saved stopped, so it
        stays that until told."""
        deadline = time.monotonic() + seconds
        while self.qmp('query-status')['status'] == 'inmigrate':
            assert time.monotonic() < deadline, 'still loading'
            time.sleep(0.2)
        self.qmp('cont')

    def restart(self):
        """Reset the machine and wait for the guest to be back."""
        self.qmp('system_reset')
        self.back()

    def revive(self):
        """The same for a guest that hung, or panicked and is restarting by
        itself."""
        self.qmp('stop')
        self.forget()
        self.qmp('system_reset')
        self.qmp('cont')
        self.back()

    def restart_by(self, script):
        """The guest restarts itself."""
        self._request('run', '-', script)
        self.back()

    def back(self):
        """Wait for the guest after a restart."""
        self.log_seen = 0
        self.wait_ready()


def boot(*, kernel_name='stock', packages=(), copies=(),
         guest_class=None, **settings):
    """Start a TestGuest and wait until it serves. settings: of
    machine.Config."""
    arch = machine.arch_of(settings.get('iommu'))
    target = machine.ARCHS[arch].target
    kern = kernel.find(kernel_name, arch=arch)
    layers = [image.userland(arch=arch)['layer'], kern.modules,
              image.extra(packages, arch=arch)]
    config = machine.Config(
        qemu=build.emulator(target), kernel=kern,
        layers=[la for la in layers if la],
        copies=[image.parse_copy(c) for c in copies], **settings)
    guest = (guest_class or TestGuest)(config)
    try:
        guest.start()
        guest.wait_ready()
    except BaseException:
        guest.stop()
        raise
    return guest


class GuestTest(unittest.TestCase):
    """Tests of one guest. Attributes say which."""

    kernel_name = 'stock'
    cpu = 'max'
    smp = 2
    mem = '2G'
    iommu = 'none'
    append = ()
    qemu_args = ()
    packages = ()
    copies = ()
    hca = 0
    hca_options = 'link=ib'
    reboot = False
    #: Kernel log lines that tests of this class may cause.
    allow_log = None
    #: Known flaws of the kernel (tests/kernel-flaws.txt) that they may meet.
    flaws = ()
    guest = None

    @classmethod
    def settings(cls):
        return {'kernel_name': cls.kernel_name, 'cpu': cls.cpu,
                'smp': cls.smp, 'mem': cls.mem, 'iommu': cls.iommu,
                'append': list(cls.append), 'qemu_args': list(cls.qemu_args),
                'packages': cls.packages, 'copies': cls.copies,
                'hca': cls.hca, 'hca_options': cls.hca_options,
                'reboot': cls.reboot}

    @classmethod
    def setUpClass(cls):
        if cls.hca and not has_device('mlx5-hca'):
            raise unittest.SkipTest('this QEMU has no mlx5-hca')
        cls.guest = cls.start_guest()

    @classmethod
    def start_guest(cls):
        return boot(**cls.settings())

    @classmethod
    def tearDownClass(cls):
        if cls.guest is not None:
            cls.guest.stop()
            cls.guest = None

    def setUp(self):
        if self.guest.proc.poll() is not None:
            type(self).guest = self.start_guest()

    def tearDown(self):
        if self.guest.proc.poll() is not None:
            return
        bad = self.guest.bad_log_lines(self.allow_log, self.flaws)
        self.assertEqual(bad, [], 'the kernel complained:\n'
                         + '\n'.join(bad))

    def sh(self, script, seconds=LIMIT):
        return self.guest.sh(script, seconds)

    def try_sh(self, script, seconds=LIMIT):
        return self.guest.try_sh(script, seconds)


class Tap(unittest.TestResult):
    """Prints a test's result as a line of TAP as soon as it is known."""

    def __init__(self, out):
        super().__init__()
        self.out = out
        self.count = 0
        self.started = {}

    def _line(self, ok, test, extra=''):
        self.count += 1
        # Of a class that was skipped: "setUpClass (__main__.Class)".
        name = re.sub(r'^(\w+) \(.*\.(\w+)\)$', r'\2.\1',
                      test.id()).removeprefix('__main__.')
        used = time.monotonic() - self.started.get(test, time.monotonic())
        self.out.write(f'{"" if ok else "not "}ok {self.count} - {name}{extra}'
                       f'\n# {used:.1f} s\n')
        self.out.flush()

    def _comment(self, err):
        text = ''.join(traceback.format_exception(*err))
        if issubclass(err[0], (AssertionError, OdpError)):
            # What went wrong, not how unittest got there.
            text = f'{err[0].__name__}: {err[1]}\n' + ''.join(
                traceback.format_tb(err[2])[-1:])
        for line in text.rstrip().splitlines():
            self.out.write(f'# {line}\n')

    def startTest(self, test):
        super().startTest(test)
        self.started[test] = time.monotonic()

    def addSuccess(self, test):
        super().addSuccess(test)
        self._line(True, test)

    def _bad(self, test, err):
        self._line(False, test)
        self._comment(err)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._bad(test, err)

    def addError(self, test, err):
        super().addError(test, err)
        self._bad(test, err)
        # A guest that hung is of no use to the next test.
        guest = getattr(test, 'guest', None)
        if issubclass(err[0], machine.GuestError) and guest is not None:
            guest.stop()

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._line(True, test, f' # SKIP {reason}')

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._bad(subtest, err)


def main(name):
    """Run the tests of a script (or those that its arguments name by
    pattern) and exit: 0 none failed, 1 some did."""
    if name != '__main__':
        return
    suite = unittest.defaultTestLoader.loadTestsFromModule(
        sys.modules[name])

    def flat(tests):
        for test in tests:
            if isinstance(test, unittest.TestSuite):
                yield from flat(test)
            else:
                yield test
    tests = list(flat(suite))
    if sys.argv[1:]:
        tests = [t for t in tests
                 if any(fnmatch.fnmatchcase(t.id(), f'*{p}*')
                        for p in sys.argv[1:])]
    print('TAP version 13', flush=True)
    result = Tap(sys.stdout)
    try:
        unittest.TestSuite(tests).run(result)
    except KeyboardInterrupt:
        print('Bail out! stopped')
        sys.exit(130)
    print(f'1..{result.count}')
    sys.exit(0 if result.wasSuccessful() and result.count else 1)
