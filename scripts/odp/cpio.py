# SPDX-License-Identifier: GPL-2.0-or-later
"""Archives for the kernel's initramfs: cpio in the "newc" format, lz4.

Written by us rather than by cpio(1) so that owners are root and times are
zero whoever builds the archive: the same files give the same bytes.
"""

import os
import shutil
import stat
import subprocess
from pathlib import Path

from .aptroot import AptRoot
from .common import OdpError


class CpioWriter:
    """Writes one archive to a binary file object; close it when done."""

    def __init__(self, out):
        self.out = out
        self.ino = 0
        self.size = 0
        self.dirs = set()

    def _write(self, data):
        self.out.write(data)
        self.size += len(data)

    def _pad(self, to):
        self._write(bytes(-self.size % to))

    def _entry(self, name, mode, data=b''):
        self.ino += 1
        raw = os.fsencode(name) + b'\0'
        fields = (self.ino, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0,
                  len(raw), 0)
        self._write(b'070701' + b''.join(b'%08X' % f for f in fields) + raw)
        self._pad(4)
        self._write(data)
        self._pad(4)

    def _parents(self, name):
        parent = os.path.dirname(name)
        if parent and parent not in self.dirs:
            self.directory(parent)

    def directory(self, name, mode=0o755):
        """A directory and, when they are new to this archive, its parents."""
        name = name.strip('/')
        if not name or name in self.dirs:
            return
        self._parents(name)
        self.dirs.add(name)
        self._entry(name, stat.S_IFDIR | mode)

    def symlink(self, name, target):
        name = name.strip('/')
        self._parents(name)
        self._entry(name, stat.S_IFLNK | 0o777, os.fsencode(target))

    def file(self, name, data, mode=0o644):
        name = name.strip('/')
        self._parents(name)
        self._entry(name, stat.S_IFREG | mode, data)

    def tree(self, root, prefix='', keep=lambda name: True):
        """All below the host's directory root, in sorted order. keep: says
        of a path relative to root whether it is wanted."""
        root = Path(root)
        for path in sorted(root.rglob('*')):
            rel = str(path.relative_to(root))
            if keep(rel):
                self.copy(path, os.path.join(prefix, rel))

    def copy(self, path, name):
        """One file, link or directory (not what is in it) of the host."""
        st = os.lstat(path)
        if stat.S_ISLNK(st.st_mode):
            self.symlink(name, os.readlink(path))
        elif stat.S_ISDIR(st.st_mode):
            self.directory(name, stat.S_IMODE(st.st_mode))
        elif stat.S_ISREG(st.st_mode):
            self.file(name, Path(path).read_bytes(), stat.S_IMODE(st.st_mode))
        else:
            raise OdpError(f'{path} is neither file, link nor directory')

    def close(self):
        self._entry('TRAILER!!!', 0)
        # The kernel wants the next archive at a multiple of four.
        self._pad(512)


def _lz4():
    """Command that compresses stdin to stdout as the kernel's lz4 wants it.
    Frames of this format can be put one after the other."""
    tool = shutil.which('lz4')
    if tool is None:
        tool = AptRoot().tool(['lz4'], 'host') / 'usr/bin/lz4'
    return [str(tool), '-l', '-c', '-q']


def write_lz4(path, fill):
    """Make the file path, an lz4-compressed archive that fill(CpioWriter)
    fills. It appears whole or not at all."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    tmp = path.with_name(f'{path.name}.{os.getpid()}')
    try:
        with open(tmp, 'wb') as out:
            proc = subprocess.Popen(_lz4(), stdin=subprocess.PIPE, stdout=out)
            with proc.stdin as pipe:
                writer = CpioWriter(pipe)
                fill(writer)
                writer.close()
            if proc.wait():
                raise OdpError(f'lz4 failed with status {proc.returncode}')
        tmp.replace(path)
    finally:
        tmp.unlink(missing_ok=True)
