# SPDX-License-Identifier: GPL-2.0-or-later
"""`odp guest`: boot a guest, run a command in it, return its status."""

import argparse
import contextlib
import os
import shlex
import shutil
import sys
import termios
import time
import tty
from pathlib import Path

from . import guestprog, image, intree, kernel, machine
from .build import emulator
from .cli import Parser
from .common import OdpError, say

#: A command that takes longer than this is hung, unless --timeout says more.
COMMAND_LIMIT = 3600

EPILOG = """\
One argument is a shell command line; several are a program and its arguments,
passed on as they are. Without any, an interactive shell. The command's input
is ours unless that is a terminal; its output and error output come out live
and apart.

Exit status: the command's, except
  124  out of time: the guest or the command hung
  125  the guest ended first (panic, power off), or could not be started
"""


def parser():
    p = Parser(prog='odp guest', usage='odp guest [OPTION...] [-- COMMAND...]',
               formatter_class=argparse.RawDescriptionHelpFormatter,
               description='Boot a guest, run COMMAND in it. It is an arm64 '
               'guest, with --iommu intel an amd64 one.',
               epilog=EPILOG)
    p.add_argument('--kernel', default='stock', metavar='K',
                   help="stock: Debian's newest in the stable suite's "
                   "backports; stable: the stable suite's; sva: Debian's "
                   'source with shared virtual addressing turned on, sva-16k, '
                   'sva-64k: that with larger pages, zdma: '
                   "that and the Zynq UltraScale+'s DMA, each built "
                   'when it is not there; or the path of an image or of a '
                   'kernel build directory (default: stock)')
    p.add_argument('--iommu', choices=machine.IOMMUS, default='none')
    p.add_argument('--cpu', default='max', metavar='C')
    p.add_argument('--smp', type=int, default=2, metavar='N')
    p.add_argument('--mem', default='2G', metavar='M')
    p.add_argument('--hca', type=int, default=0, metavar='N',
                   help='that many HCAs, each behind a root port')
    p.add_argument('--hca-options', default='link=ib', metavar='PROPERTIES',
                   help='properties of each HCA (default: link=ib)')
    p.add_argument('--package', action='append', default=[], metavar='DEB',
                   help='install this package of the suite, or this .deb '
                   'file (can be repeated)')
    p.add_argument('--copy', action='append', default=[],
                   metavar='HOST:GUEST',
                   help='copy a file or directory into the guest (can be '
                   'repeated)')
    p.add_argument('--in-tree', action='append', default=[], metavar='FILE.c',
                   help="a driver of Linux that Debian's amd64 kernel leaves "
                   'out, as a module in /root: '
                   'drivers/uio/uio_pci_generic_sva.c')
    p.add_argument('--program', action='append', default=[], metavar='NAME',
                   help='compile this program of tests/guest and put it into '
                   'the guest (can be repeated)')
    p.add_argument('--suite', default=image.SUITE,
                   help="where the guest's packages come from (default: "
                   f'{image.SUITE})')
    p.add_argument('--qemu', metavar='BIN',
                   help="QEMU to run (default: this project's build)")
    p.add_argument('--qemu-arg', action='append', default=[], metavar='A',
                   help='further argument of QEMU (can be repeated; '
                   '--qemu-arg=-device --qemu-arg=edu)')
    p.add_argument('--append', action='append', default=[], metavar='A',
                   help='further kernel parameters (can be repeated)')
    p.add_argument('--timeout', type=float, metavar='S',
                   help='seconds for boot and command together (default: '
                   f'{machine.BOOT_LIMIT} to boot and {COMMAND_LIMIT} for a '
                   'command, no limit for a shell)')
    p.add_argument('--tty', action='store_true',
                   help='run the command on a terminal')
    p.add_argument('--console', metavar='FILE',
                   help="keep the console's output in FILE")
    p.add_argument('--verbose', action='store_true',
                   help='all kernel messages to the console')
    p.add_argument('--update', action='store_true',
                   help='ask the archive for newer packages now')
    p.add_argument('command', nargs='*', help=argparse.SUPPRESS)
    return p


def find_qemu(named, target='aarch64'):
    """QEMU by --qemu, ODP_QEMU, or our build."""
    if named is None:
        return emulator(target)
    found = shutil.which(named)
    if found is None:
        raise OdpError(f'--qemu {named}: there is no such program')
    return Path(found)


def prepare(opts):
    """Config of a guest from options."""
    if opts.hca < 0 or opts.hca > 16:
        raise OdpError(f'--hca {opts.hca}: from 0 to 16')
    arch = machine.arch_of(opts.iommu)
    copies = [image.parse_copy(c) for c in opts.copy + [
        f'{exe}:{place}' for exe, place in
        guestprog.copies(*opts.program, arch=arch)]]
    # A wrong name is told at once; a build waits for what else may be wrong.
    qemu = find_qemu(opts.qemu) if opts.qemu else None
    kern = kernel.find(opts.kernel, opts.update, arch)
    for path in opts.in_tree:
        if arch != 'amd64':
            raise OdpError('--in-tree: only for amd64 guests; --kernel sva has '
                           'its drivers')
        module = intree.build(path, kern)
        copies.append(image.parse_copy(f'{module}:/root/{module.name}'))
    layers = [image.userland(opts.suite, opts.update, arch)['layer'],
              kern.modules,
              image.extra(opts.package, opts.suite, opts.update, arch)]
    return machine.Config(
        qemu=qemu or find_qemu(None, machine.ARCHS[arch].target),
        kernel=kern,
        layers=[la for la in layers if la],
        iommu=opts.iommu, cpu=opts.cpu, smp=opts.smp, mem=opts.mem,
        hca=opts.hca, hca_options=opts.hca_options, copies=copies,
        qemu_args=opts.qemu_arg, append=opts.append, verbose=opts.verbose,
        terminal=opts.tty or not opts.command)


def _script(command):
    if len(command) == 1:
        return command[0]
    return 'exec ' + shlex.join(command)


def _write(stream):
    def write(data):
        stream.write(data)
        stream.flush()
    return write


def _on_terminal(guest, command, seconds):
    """The command, or a shell, on a terminal: ours when we have one."""
    size = shutil.get_terminal_size()
    script = (f'stty rows {size.lines} cols {size.columns}\n'
              f'export TERM={shlex.quote(os.environ.get("TERM", "linux"))}\n'
              + (_script(command) if command
                 else "export PS1='guest:\\w# '\nexec sh -l"))
    keyboard = sys.stdin.buffer.raw
    with contextlib.ExitStack() as stack:
        if sys.stdin.isatty():
            saved = termios.tcgetattr(keyboard)
            stack.callback(termios.tcsetattr, keyboard, termios.TCSADRAIN,
                           saved)
            tty.setraw(keyboard)
        return guest.run_tty(script, keyboard, sys.stdout.buffer, seconds)


def _run(guest, opts):
    limit = None
    if opts.timeout is not None:
        limit = time.monotonic() + opts.timeout

    def left(default):
        if limit is None:
            return default
        return max(0.0, limit - time.monotonic())
    guest.wait_ready(left(machine.BOOT_LIMIT))
    if guest.config.terminal:
        if not opts.command:
            say(f'Linux {guest.release}; the shell\'s end ends the guest')
        return _on_terminal(guest, opts.command, left(None))
    stdin = None
    if not sys.stdin.isatty():
        stdin = sys.stdin.buffer.raw
    return guest.run(_script(opts.command), stdin=stdin,
                     stdout=_write(sys.stdout.buffer),
                     stderr=_write(sys.stderr.buffer),
                     seconds=left(COMMAND_LIMIT))


def main(argv):
    # What follows the first -- is the command, dashes and all.
    args = list(argv)
    command = []
    if '--' in args:
        at = args.index('--')
        args, command = args[:at], args[at + 1:]
    opts = parser().parse_args(args)
    opts.command = opts.command + command
    try:
        config = prepare(opts)
        say(f'{kernel.describe(config.kernel)}, cpu {config.cpu}, iommu '
            f'{config.iommu}')
        with machine.Guest(config) as guest:
            try:
                return _run(guest, opts)
            finally:
                if opts.console:
                    Path(opts.console).write_text(guest.console())
    except OdpError as err:
        # Whatever goes wrong on our side is not the command's status.
        if not isinstance(err, machine.GuestError):
            err.status = machine.ENDED
        raise
