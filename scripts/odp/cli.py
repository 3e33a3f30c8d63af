# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds the module of a verb and runs it.

A verb is a module of this package with `HELP` (one line), and `main(args)`
that returns the exit status. Dashes in a verb are underscores in its module.
"""

import argparse
import importlib
import importlib.util
import os
import signal
import sys

from .common import OdpError

#: Verbs in the order of the help text: what a verb is for, in a few words.
VERBS = {
    'build': 'build QEMU with the models of this project',
    'demo': 'boot a stock guest and show a device taking page faults',
    'guest': 'boot a guest, run a command in it',
    'test': 'run the tests',
    'bench': 'run the benchmarks',
    'apply': 'put the patches and our files into your own QEMU checkout',
    'libvirt-xml': 'print a libvirt domain that uses the models',
    'top': 'watch the counters of a running guest',
}


class Parser(argparse.ArgumentParser):
    """argparse, with one clear line in place of the usage dump."""

    def error(self, message):
        self.exit(2, f'{self.prog}: {message} (see {self.prog} --help)\n')


def usage():
    lines = ['usage: odp VERB [ARGUMENT...]', '',
             'odp VERB --help tells more. Verbs:']
    lines += [f'  {verb:12} {text}' for verb, text in VERBS.items()]
    return '\n'.join(lines)


def main(argv):
    """Run `odp argv...`; returns the exit status."""
    if not argv or argv[0] in ('-h', '--help', 'help'):
        print(usage(), file=sys.stdout if argv else sys.stderr)
        return 0 if argv else 2
    verb, args = argv[0], argv[1:]
    if verb not in VERBS:
        print(f'odp: there is no verb "{verb}"; there are '
              + ', '.join(VERBS), file=sys.stderr)
        return 2
    name = f'{__package__}.{verb.replace("-", "_")}'
    if importlib.util.find_spec(name) is None:
        print(f'odp: "{verb}" is not there yet', file=sys.stderr)
        return 1
    # A reader of our output that went away ends us quietly.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    # SIGTERM unwinds like Ctrl-C does, so that nothing is left running.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return importlib.import_module(name).main(args) or 0
    except OdpError as err:
        print(f'odp {verb}: {err}', file=sys.stderr)
        return err.status
    except KeyboardInterrupt:
        print(f'odp {verb}: stopped', file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
