# SPDX-License-Identifier: GPL-2.0-or-later
"""Paths, messages and processes that every verb shares."""

import contextlib
import fcntl
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

#: Top of the checkout.
TOP = Path(__file__).resolve().parents[2]

#: The distribution's python3: what QEMU's build and the private meson run
#: with, because only it sees the distribution's modules.
SYSTEM_PYTHON = '/usr/bin/python3'

VERBOSE = bool(os.environ.get('ODP_VERBOSE'))


class OdpError(Exception):
    """A failure that the user can act on: shown as one line, no traceback.

    status: what the process exits with.
    """

    def __init__(self, message, status=1):
        super().__init__(message)
        self.status = status


def cache_dir(*parts):
    """Per-user cache: ODP_CACHE, or qemu-odp below XDG_CACHE_HOME, or below
    ~/.cache. Everything in it can be deleted and comes back by itself."""
    base = os.environ.get('ODP_CACHE')
    if not base:
        xdg = os.environ.get('XDG_CACHE_HOME')
        base = Path(xdg or Path.home() / '.cache') / 'qemu-odp'
    path = Path(base).absolute().joinpath(*parts)
    path.mkdir(parents=True, exist_ok=True)
    return path


def build_dir(*parts):
    """Below build/ of this checkout (ODP_BUILD names another place)."""
    base = Path(os.environ.get('ODP_BUILD') or TOP / 'build').absolute()
    return base.joinpath(*parts)


def say(message):
    """A progress line: stderr, so that stdout stays the command's own."""
    print(f'odp: {message}', file=sys.stderr, flush=True)


def run(cmd, *, log=None, env=None, cwd=None, what=None, quiet=False):
    """Run cmd; on failure raise OdpError that names it and shows the end of
    its output. log: a file that receives the whole output. quiet: show
    nothing unless it fails."""
    cmd = [str(c) for c in cmd]
    if VERBOSE:
        say('+ ' + shlex.join(cmd))
    full_env = dict(os.environ, **(env or {}))
    if log is None and not quiet:
        status = subprocess.run(cmd, env=full_env, cwd=cwd).returncode
        tail = ''
    else:
        proc = subprocess.run(cmd, env=full_env, cwd=cwd, text=True,
                              errors='replace', stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        status = proc.returncode
        if log is not None:
            Path(log).parent.mkdir(parents=True, exist_ok=True)
            Path(log).write_text(proc.stdout)
        tail = '\n'.join(proc.stdout.splitlines()[-25:])
    if status:
        where = f' (whole output: {log})' if log else ''
        raise OdpError(f'{what or shlex.join(cmd)} failed with status '
                       f'{status}{where}' + (f'\n{tail}' if tail else ''))


def output(cmd, *, env=None, cwd=None, check=True):
    """stdout of cmd as text."""
    cmd = [str(c) for c in cmd]
    proc = subprocess.run(cmd, env=dict(os.environ, **(env or {})), cwd=cwd,
                          text=True, errors='replace',
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    if check and proc.returncode:
        tail = '\n'.join(proc.stderr.strip().splitlines()[-10:])
        raise OdpError(f'{shlex.join(cmd)} failed with status '
                       f'{proc.returncode}\n{tail}')
    return proc.stdout


@contextlib.contextmanager
def locked(path, why=None):
    """Hold an exclusive lock on the file `path` (made when absent), so that
    two runs can share a cache or a build directory."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, 'a+') as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f'waiting for another run{" that is " + why if why else ""}'
                f' (lock {path})')
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def write_if_changed(path, text):
    """Write text unless the file has it already; True when it was written."""
    path = Path(path)
    try:
        if path.read_text() == text:
            return False
    except (FileNotFoundError, UnicodeDecodeError):
        pass
    path.parent.mkdir(parents=True, exist_ok=True)
    tmp = path.with_name(path.name + '.new')
    tmp.write_text(text)
    tmp.replace(path)
    return True


def remove_tree(path):
    """Delete a directory tree or a file, present or not."""
    path = Path(path)
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir():
        shutil.rmtree(path)


def run_limited(cmd, seconds, *, env=None, cwd=None, stdout=None):
    """Run cmd in a process group of its own, with a time limit. Returns
    (status, seconds used); status is None when the limit ended it. The whole
    group is ended in any case, also on Ctrl-C."""
    start = time.monotonic()
    proc = subprocess.Popen([str(c) for c in cmd], cwd=cwd,
                            env=dict(os.environ, **(env or {})),
                            stdin=subprocess.DEVNULL, stdout=stdout,
                            stderr=subprocess.STDOUT if stdout else None,
                            start_new_session=True)
    try:
        status = proc.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        status = None
    finally:
        for sig in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(proc.pid, sig)
            if proc.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    proc.wait(timeout=5)
        proc.wait()
    return status, time.monotonic() - start
