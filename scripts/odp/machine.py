# SPDX-License-Identifier: GPL-2.0-or-later
"""One emulated machine with our guest in it: start it, run commands in it,
end it. For `odp guest` and for the functional tests.

    config = Config(kernel=kernel.find('stock'), layers=[...])
    with Guest(config) as guest:
        guest.wait_ready()
        status = guest.run('uname -a', stdout=sys.stdout.buffer.write)

The guest's init (tests/guest/init) talks over virtio ports; QEMU connects
them to sockets on which we listen. Everything of a run lies in a directory
of its own, and goes with it.
"""

import base64
import contextlib
import ctypes
import functools
import mmap
import os
import platform
import secrets
import selectors
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from . import image
from .common import OdpError, VERBOSE, say
from .kernel import Kernel

IOMMUS = ('none', 'smmuv3', 'mmu500', 'intel')
PORTS = ('ctl', 'stdin', 'stdout', 'stderr')

#: Exit statuses that are not the command's.
HUNG = 124
ENDED = 125

#: A guest that has not said a word by then is hung (seconds).
BOOT_LIMIT = 300

#: Of the directories of runs.
PREFIX = 'odp-guest-'

PANIC = b'Kernel panic - not syncing'


class GuestError(OdpError):
    """The guest did not do what it was to do; the message ends with what its
    console said last."""


class GuestHung(GuestError):
    """Out of time."""


class GuestEnded(GuestError):
    """It panicked, powered off or restarted, or QEMU ended."""


@dataclass
class Config:
    """What to start.

    layers: archives of the initramfs, the kernel's modules among them.
    hca: number of HCAs, each behind a root port of its own. hca_options:
    their properties. reboot: whether the guest may restart. terminal: with
    a terminal for run_tty(). copies: of image.parse_copy().
    """
    qemu: Path
    kernel: Kernel
    layers: list
    iommu: str = 'none'
    cpu: str = 'max'
    smp: int = 2
    mem: str = '2G'
    hca: int = 0
    hca_options: str = 'link=ib'
    copies: list = field(default_factory=list)
    qemu_args: list = field(default_factory=list)
    append: list = field(default_factory=list)
    reboot: bool = False
    terminal: bool = False
    verbose: bool = False


@dataclass
class Arch:
    """What differs between guests: QEMU's name of the target, the console,
    and -cpu for `max`."""
    target: str
    console: str
    max_cpu: str


#: By Debian's names.
ARCHS = {
    'arm64': Arch('aarch64', 'ttyAMA0', 'max'),
    # Linux binds no address space where 5-level tables are in use and the
    # IOMMU walks 4 levels.
    'amd64': Arch('x86_64', 'ttyS0', 'max,la57=off'),
}


def arch_of(iommu):
    """The architecture of guests with this IOMMU."""
    return 'amd64' if iommu == 'intel' else 'arm64'


@functools.cache
def tsc_khz():
    """The rate of this machine's TSC, which TCG's x86 guests read, too; None
    where that is not to be had."""
    if platform.machine() != 'x86_64':
        return None
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ
                         | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError:
        return None
    # rdtsc; shl $32, %rdx; or %rdx, %rax; ret
    page.write(bytes.fromhex('0f31 48c1e220 4809d0 c3'))
    rdtsc = ctypes.CFUNCTYPE(ctypes.c_uint64)(
        ctypes.addressof(ctypes.c_char.from_buffer(page)))

    def sample():
        # The one with the least between its two clocks.
        found = []
        for _ in range(9):
            start, ticks = time.monotonic_ns(), rdtsc()
            found.append((time.monotonic_ns() - start, start, ticks))
        return min(found)[1:]
    ns, ticks = sample()
    time.sleep(0.05)
    ns2, ticks2 = sample()
    return (ticks2 - ticks) * 1000000 // (ns2 - ns)


def _machine(iommu):
    """Arguments for the machine and its IOMMU."""
    if iommu == 'intel':
        # The IOMMU stands before all devices that it is to serve.
        return ['-machine', 'q35', '-device',
                'intel-iommu,intremap=on,device-iotlb=on,x-scalable-mode=on,'
                'x-flts=on,x-pasid-mode=on,x-pri=on,aw-bits=48']
    return ['-machine', 'virt,gic-version=3'
            + ('' if iommu == 'none' else f',iommu={iommu}')]


def hca_args(count, options):
    """Arguments for HCAs, each behind a root port (ids hca0.., odp-port0..)."""
    args = []
    for i in range(count):
        args += ['-device', f'pcie-root-port,id=odp-port{i},bus=pcie.0,'
                 f'chassis={100 + i},slot={100 + i}',
                 '-device', f'mlx5-hca,id=hca{i},bus=odp-port{i}'
                 + (f',{options}' if options else '')]
    return args


def command_line(config, rundir):
    """The whole command, with its sockets and files in rundir."""
    arch = ARCHS[arch_of(config.iommu)]
    append = [f'console={arch.console}', 'rdinit=/odp/init', 'panic=-1']
    if config.iommu == 'intel':
        append.append('intel_iommu=on,sm_on')
        # On a busy host the timer's first ticks come late: the kernel panics
        # for want of them, or takes the TSC for many times slower than it is.
        append.append('no_timer_check')
        if khz := tsc_khz():
            append.append(f'tsc_early_khz={khz}')
    if not config.verbose:
        append.append('quiet')
    serial = ['-device', 'virtio-serial-pci,id=odp-serial,addr=1e'] \
        if config.iommu == 'intel' else \
        ['-global', 'virtio-mmio.force-legacy=false',
         '-device', 'virtio-serial-device,id=odp-serial']
    cmd = [config.qemu, *_machine(config.iommu), '-accel', 'tcg', '-cpu',
           arch.max_cpu if config.cpu == 'max' else config.cpu,
           '-smp', config.smp,
           '-m', config.mem, '-nodefaults', '-display', 'none',
           '-kernel', config.kernel.image, '-initrd', rundir / 'initrd',
           '-append', ' '.join(append + config.append),
           '-chardev', f'file,id=odp-console,path={rundir}/console.log',
           '-serial', 'chardev:odp-console',
           '-qmp', f'unix:{rundir}/qmp,server=on,wait=off',
           *serial]
    if not config.reboot:
        cmd.append('-no-reboot')
    for port in PORTS:
        cmd += ['-chardev', f'socket,id=odp-{port},path={rundir}/{port}',
                '-device', f'virtserialport,bus=odp-serial.0,'
                f'chardev=odp-{port},name=odp.{port}']
    if config.terminal:
        cmd += ['-chardev', f'socket,id=odp-tty,path={rundir}/tty',
                '-device', 'virtconsole,bus=odp-serial.0,chardev=odp-tty']
    cmd += hca_args(config.hca, config.hca_options)
    return [str(c) for c in cmd + config.qemu_args]


def _die_with_parent():
    """In the child: end when the parent does, however it does."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def _sweep():
    """Remove what runs left that were killed without a chance to."""
    for path in Path(tempfile.gettempdir()).glob(f'{PREFIX}*'):
        with contextlib.suppress(OSError, ValueError):
            if path.stat().st_uid == os.getuid():
                os.kill(int((path / 'owner').read_text()), 0)
                continue
        with contextlib.suppress(OSError):
            if path.stat().st_uid == os.getuid() and \
                    (path / 'owner').exists():
                shutil.rmtree(path, ignore_errors=True)


class _Output:
    """One output stream of a command: passes bytes on until the mark."""

    def __init__(self, mark, sink):
        self.mark = b'\0' + mark.encode() + b'\n'
        self.sink = sink
        self.held = b''
        self.done = False

    def feed(self, data):
        data = self.held + data
        end = data.find(self.mark)
        if end >= 0:
            self.done = True
            self.held = b''
            data = data[:end]
        else:
            # What could be the start of the mark waits for the rest.
            at = data.rfind(b'\0', -len(self.mark))
            keep = len(data)
            if at >= 0 and self.mark.startswith(data[at:]):
                keep = at
            self.held = data[keep:]
            data = data[:keep]
        if data and self.sink:
            self.sink(data)


class Guest:
    """A running machine. Not to be used from two threads at a time."""

    def __init__(self, config):
        self.config = config
        self.dir = None
        self.proc = None
        self.release = None
        self._listen = {}
        self._sock = {}
        self._pidfd = None
        self._lines = b''
        self._count = 0
        self._panic_at = None
        self._console_seen = 0

    # -- life ---------------------------------------------------------------

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *exc):
        self.stop()

    def command(self):
        """What start() runs; its files go to self.dir."""
        return command_line(self.config, self.dir)

    def start(self):
        _sweep()
        self.dir = Path(tempfile.mkdtemp(prefix=PREFIX))
        (self.dir / 'owner').write_text(str(os.getpid()))
        image.write_initrd(self.dir / 'initrd', self.config.layers,
                           self.config.copies)
        cmd = self.command()
        names = PORTS + (('tty',) if self.config.terminal else ())
        for name in names:
            sock = socket.socket(socket.AF_UNIX)
            sock.bind(str(self.dir / name))
            sock.listen(1)
            self._listen[name] = sock
        if VERBOSE:
            say('+ ' + shlex.join(cmd))
        with open(self.dir / 'qemu.log', 'wb') as log:
            self.proc = subprocess.Popen(cmd, stdin=subprocess.DEVNULL,
                                         stdout=log, stderr=log,
                                         start_new_session=True,
                                         preexec_fn=_die_with_parent)
        self._pidfd = os.pidfd_open(self.proc.pid)
        for name in names:
            self._accept(name)

    def _accept(self, name):
        """QEMU connects to each socket as it starts, or it ends."""
        with selectors.DefaultSelector() as sel:
            sel.register(self._listen[name], selectors.EVENT_READ)
            sel.register(self._pidfd, selectors.EVENT_READ)
            ready = [key.fileobj for key, _ in sel.select(60)]
        if self._listen[name] not in ready:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.proc.wait(5)
            raise GuestEnded('QEMU did not start'
                             + self._status_text() + self._qemu_log(), ENDED)
        self._sock[name] = self._listen[name].accept()[0]

    def stop(self):
        """End QEMU, whatever state it is in, and remove the run's files."""
        if self.proc is not None:
            for sig in (signal.SIGTERM, signal.SIGKILL):
                if self.proc.poll() is None:
                    self.proc.send_signal(sig)
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        self.proc.wait(5)
        for sock in [*self._listen.values(), *self._sock.values()]:
            sock.close()
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None
        if self.dir is not None:
            shutil.rmtree(self.dir, ignore_errors=True)
            self.dir = None

    # -- what it said -------------------------------------------------------

    @property
    def qmp_path(self):
        return str(self.dir / 'qmp')

    def console(self):
        """All that the console said so far, as text."""
        try:
            data = (self.dir / 'console.log').read_bytes()
        except FileNotFoundError:
            return ''
        return data.decode(errors='replace').replace('\r', '')

    def console_tail(self, lines=40):
        tail = self.console().rstrip().splitlines()[-lines:]
        if not tail:
            return "\n(the guest's console is empty)"
        return "\nThe guest's console ended with:\n  " + '\n  '.join(tail)

    def _qemu_log(self):
        text = (self.dir / 'qemu.log').read_text(errors='replace').rstrip()
        return '\n  ' + '\n  '.join(text.splitlines()[-20:]) if text else ''

    def _status_text(self):
        status = self.proc.poll()
        if status is None or status == 0:
            return ''
        if status < 0:
            return f' (ended by {signal.Signals(-status).name})'
        return f' (status {status})'

    # -- the loop -----------------------------------------------------------

    def _check(self, limit, doing):
        """Once in a while: is it still alive, is there time left?"""
        now = time.monotonic()
        with contextlib.suppress(FileNotFoundError):
            with open(self.dir / 'console.log', 'rb') as f:
                f.seek(max(0, self._console_seen - len(PANIC)))
                data = f.read()
                self._console_seen = f.tell()
            if self._panic_at is None and PANIC in data:
                self._panic_at = now
        if self._panic_at is not None and now - self._panic_at > 5:
            raise GuestEnded(f"the guest's kernel panicked {doing}"
                             + self.console_tail(), ENDED)
        if limit is not None and now > limit:
            raise GuestHung(f'the guest ran out of time {doing}'
                            + self.console_tail(), HUNG)

    def _ended(self, doing):
        self.proc.wait()
        tail = self.console_tail()
        if PANIC.decode() in tail:
            what = f"the guest's kernel panicked {doing}"
        elif self.proc.returncode:
            what = f'QEMU failed {doing}{self._status_text()}' \
                + self._qemu_log()
        else:
            what = f'the guest powered off or restarted {doing}'
        return GuestEnded(what + tail, ENDED)

    def _loop(self, readers, done, limit, doing):
        """Pass what arrives to readers ({file: function of bytes}) until
        done(). An empty read ends a reader."""
        with selectors.DefaultSelector() as sel:
            sel.register(self._pidfd, selectors.EVENT_READ)
            for fileobj in readers:
                try:
                    sel.register(fileobj, selectors.EVENT_READ)
                except PermissionError:
                    # A regular file: all of it is there.
                    while data := os.read(fileobj.fileno(), 65536):
                        readers[fileobj](data)
                    readers[fileobj](b'')
            while not done():
                events = sel.select(0.5)
                ended = False
                for key, _ in events:
                    if key.fileobj == self._pidfd:
                        ended = True
                        continue
                    data = os.read(key.fileobj.fileno(), 65536)
                    if not data:
                        sel.unregister(key.fileobj)
                    readers[key.fileobj](data)
                # What QEMU said before it ended is read first.
                if ended and len(events) == 1 and not done():
                    raise self._ended(doing)
                self._check(limit, doing)

    def _limit(self, seconds):
        return None if seconds is None else time.monotonic() + seconds

    def _ctl_lines(self, handle):
        """A reader of the control port that passes whole lines."""
        def feed(data):
            *lines, self._lines = (self._lines + data).split(b'\n')
            for line in lines:
                handle(line.decode(errors='replace').split())
        return feed

    # -- what callers use ---------------------------------------------------

    def forget(self):
        """Forget what the guest said, a panic too: it is stopped and will be
        reset."""
        with contextlib.suppress(BlockingIOError):
            while self._sock['ctl'].recv(4096, socket.MSG_DONTWAIT):
                pass
        self._lines = b''
        self._console_seen = (self.dir / 'console.log').stat().st_size \
            + len(PANIC)
        self._panic_at = None

    def wait_ready(self, seconds=BOOT_LIMIT):
        """Wait for the guest's init, after the start or a restart."""
        found = []

        def line(words):
            if words[:1] == ['ready']:
                self.release = words[1]
                found.append(words)
        self._loop({self._sock['ctl']: self._ctl_lines(line)},
                   lambda: found, self._limit(seconds), 'while it booted')
        # QEMU holds it in memory, also for a restart.
        (self.dir / 'initrd').unlink(missing_ok=True)

    def run(self, script, *, stdout=None, stderr=None, stdin=None,
            seconds=None):
        """Run a shell script in the guest; returns its exit status. stdout,
        stderr: called with bytes as they come. stdin: a binary file, passed
        on to its end (in one command of a guest's life). Without it a command
        sees the end at once."""
        self._count += 1
        mark = secrets.token_hex(16)
        outs = {'stdout': _Output(mark, stdout),
                'stderr': _Output(mark, stderr)}
        status = []

        def line(words):
            if words[:2] == ['exit', str(self._count)]:
                status.append(int(words[2]))
        readers = {self._sock[name]: out.feed for name, out in outs.items()}
        readers[self._sock['ctl']] = self._ctl_lines(line)
        if stdin is not None:
            # A thread, since the command may not read its input.
            threading.Thread(target=self._feed_stdin, args=(stdin,),
                             daemon=True).start()
        self._request('run' if stdin is None else 'pipe', mark, script)
        self._loop(readers,
                   lambda: status and all(o.done for o in outs.values()),
                   self._limit(seconds), 'while it ran the command')
        return status[0]

    def run_tty(self, script, keyboard, screen, seconds=None):
        """Run a script on the guest's terminal, connected to two files."""
        self._count += 1
        status = []

        def line(words):
            if words[:2] == ['exit', str(self._count)]:
                status.append(int(words[2]))

        def show(data):
            screen.write(data)
            screen.flush()

        def typed(data):
            tty.sendall(data, socket.MSG_NOSIGNAL)
        tty = self._sock['tty']
        self._request('tty', '-', script)
        self._loop({self._sock['ctl']: self._ctl_lines(line),
                    tty: show, keyboard: typed},
                   lambda: status, self._limit(seconds),
                   'while the shell ran')
        tty.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while data := tty.recv(65536):
                show(data)
        return status[0]

    def _request(self, verb, mark, script):
        text = base64.b64encode(script.encode()).decode()
        self._sock['ctl'].sendall(
            f'{verb} {self._count} {mark} {text}\n'.encode(),
            socket.MSG_NOSIGNAL)

    def _feed_stdin(self, source):
        """Pass a file on to its end."""
        sock = self._sock['stdin']
        # The guest may be gone by then.
        with contextlib.suppress(OSError):
            while data := os.read(source.fileno(), 65536):
                sock.sendall(data, socket.MSG_NOSIGNAL)
            sock.shutdown(socket.SHUT_WR)
