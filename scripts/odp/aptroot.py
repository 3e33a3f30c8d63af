# SPDX-License-Identifier: GPL-2.0-or-later
"""Packages of other suites and architectures, through a private apt root.

Lists, state and downloaded packages lie below one cache directory; the
machine's own apt configuration is read (its mirror, its proxies) and never
changed. Signatures are checked with the distribution's keyring.

    apt = AptRoot(cache_dir('apt'))
    apt.download(['rdma-core:arm64'], 'trixie')       -> [Path]
    apt.closure(['perftest:arm64'], 'trixie', drop=['udev']) -> [Path]
    apt.policy(['linux-image-arm64:arm64'], 'trixie-backports') -> {name: ver}
    apt.source('qemu', 'sid', '1:10.2.2')             -> [Path]
    apt.tool(['meson'], 'host-backports')             -> Path, unpacked

Suites: any suite of the archive ('trixie', 'sid'); one that ends in
'-backports' stands on its base suite and prefers the backport. 'host' and
'host-backports' are the suites of the machine itself. All packages of one
call have one architecture: that of their ':arch' suffix, else the host's.
"""

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

from .common import (OdpError, cache_dir, locked, output, remove_tree, run,
                     say, write_if_changed)

KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg'

#: Lists older than this are fetched again before they are used.
MAX_AGE = 12 * 3600

#: How long a tool's version stands before the archive is asked again.
TOOL_AGE = 30 * 24 * 3600


def os_release():
    """/etc/os-release as a dict."""
    fields = {}
    for line in Path('/etc/os-release').read_text().splitlines():
        key, sep, value = line.partition('=')
        if sep:
            fields[key] = value.strip('"\'')
    return fields


def host_suite():
    """The machine's suite by codename, e.g. 'bookworm'."""
    codename = os_release().get('VERSION_CODENAME')
    if not codename:
        raise OdpError('/etc/os-release names no VERSION_CODENAME: '
                       'packages can only be fetched on Debian')
    return codename


def host_arch():
    return output(['dpkg', '--print-architecture']).strip()


def mirror():
    """Base URI of the Debian archive: ODP_DEBIAN_MIRROR, else the one from
    which the machine itself gets its suite."""
    forced = os.environ.get('ODP_DEBIAN_MIRROR')
    if forced:
        return forced
    if shutil.which('apt-get') is None:
        raise OdpError('no apt-get here: packages can only be fetched on '
                       'Debian')
    codename = host_suite()
    lines = output(['apt-get', 'indextargets', '--format',
                    '$(REPO_URI) $(RELEASE) $(COMPONENT) $(CODENAME) $(SUITE)',
                    'Identifier: Packages']).splitlines()
    for line in lines:
        words = line.split()
        if len(words) < 3 or words[2] != 'main':
            continue
        if os_release().get('ID') == 'debian' and codename in words[1:]:
            return words[0]
    raise OdpError("the machine's apt configuration has no entry for Debian "
                   f"{codename} main: set ODP_DEBIAN_MIRROR to the base URI "
                   'of a Debian archive')


def _machine_settings():
    """How the machine fetches (proxies, retries, certificates), as apt.conf
    lines: only Acquire, none of its hooks."""
    keep = []
    for line in output(['apt-config', 'dump']).splitlines():
        if not line.startswith('Acquire::'):
            continue
        if re.match(r'Acquire::(IndexTargets|Changelogs|Languages|GzipIndexes'
                    r'|CompressionTypes)', line):
            continue
        keep.append(line)
    return keep


class _Root:
    """One private root: one set of suites, one architecture."""

    def __init__(self, base, suite, arch, source):
        self.suite = suite
        self.arch = arch
        name = f'{suite}-source' if source else f'{suite}-{arch}'
        self.dir = Path(base) / name
        self.archives = Path(base) / 'archives'
        self.conf = self.dir / 'apt.conf'
        self.lists = self.dir / 'lists'
        self.stamp = self.dir / 'updated'
        self.lock = self.dir / 'lock'
        self.source = source

    def env(self):
        return {'APT_CONFIG': str(self.conf), 'LC_ALL': 'C.UTF-8'}

    def write(self):
        if not Path(KEYRING).exists():
            raise OdpError(f'{KEYRING} is missing: install the package '
                           'debian-archive-keyring')
        for sub in ('lists/partial', 'state', 'cache/archives/partial', 'etc'):
            (self.dir / sub).mkdir(parents=True, exist_ok=True)
        self.archives.mkdir(parents=True, exist_ok=True)
        kind = 'deb-src' if self.source else 'deb'
        opts = f'signed-by={KEYRING}'
        if not self.source:
            opts = f'arch={self.arch} {opts}'
        suites = [self.suite]
        if self.suite.endswith('-backports'):
            suites.insert(0, self.suite[:-len('-backports')])
        sources = ''.join(f'{kind} [{opts}] {mirror()} {s} main\n'
                          for s in suites)
        changed = write_if_changed(self.dir / 'etc/sources.list', sources)
        status = self.dir / 'state/status'
        if not status.exists():
            status.write_text('')
        d = self.dir
        conf = [
            'Dir::Etc::parts "/dev/null";',
            'Dir::Etc::main "/dev/null";',
            f'Dir::State "{d}/state";',
            f'Dir::State::status "{d}/state/status";',
            f'Dir::State::lists "{d}/lists";',
            f'Dir::Cache "{d}/cache";',
            f'Dir::Etc::sourcelist "{d}/etc/sources.list";',
            'Dir::Etc::sourceparts "/dev/null";',
            'Dir::Etc::preferences "/dev/null";',
            'Dir::Etc::preferencesparts "/dev/null";',
            f'Dir::Log "{d}/state";',
            f'APT::Architecture "{self.arch}";',
            f'APT::Architectures {{"{self.arch}";}};',
            f'APT::Default-Release "{self.suite}";',
            'APT::Install-Recommends "false";',
            # Private directories need not be readable for apt's own user.
            'APT::Sandbox::User "root";',
            # A pocket that was released long ago is still what it is: the
            # signature is checked, its expiry is not.
            'Acquire::Check-Valid-Until "false";',
            'Acquire::Languages "none";',
        ] + _machine_settings()
        write_if_changed(self.conf, '\n'.join(conf) + '\n')
        if changed and self.stamp.exists():
            self.stamp.unlink()

    def update(self, force=False):
        """Bring the lists; old ones do when the network is not there."""
        self.write()
        have = self.stamp.exists()
        if have and not force and \
                time.time() - self.stamp.stat().st_mtime < MAX_AGE:
            return
        say(f'fetching package lists of {self.suite} '
            f'({"sources" if self.source else self.arch})')
        proc = subprocess.run(
            ['apt-get', '-qq', '-o', 'APT::Update::Error-Mode=any', 'update'],
            env=dict(os.environ, **self.env()), text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT)
        if proc.returncode == 0:
            self.stamp.touch()
        elif have:
            say(f'could not refresh the lists of {self.suite}; using those '
                'of the last time')
        else:
            raise OdpError(f'apt-get update failed for {self.suite} from '
                           f'{mirror()}:\n{proc.stdout.strip()}')


class AptRoot:
    """Private apt roots below one directory, which may be shared by several
    runs at a time."""

    def __init__(self, base=None):
        self.base = Path(base or cache_dir('apt'))

    # -- what callers use ---------------------------------------------------

    def policy(self, packages, suite):
        """{name: candidate version}; None where the suite has no such
        package."""
        names, root = self._root(packages, suite)
        with locked(root.lock, 'using apt'):
            root.update()
            return self._policy(root, names)

    def depends(self, package, suite):
        """Names that `package` depends on directly (real packages)."""
        names, root = self._root([package], suite)
        with locked(root.lock, 'using apt'):
            root.update()
            text = output(['apt-cache', 'depends', '--no-recommends',
                           '--no-suggests', '--no-conflicts', '--no-breaks',
                           '--no-replaces', '--no-enhances', names[0]],
                          env=root.env())
        return re.findall(r'^\s*\|?(?:Pre)?Depends: ([^<\s]+)', text, re.M)

    def search(self, regex, suite, arch=None):
        """Sorted names of packages whose whole name matches regex."""
        root = _Root(self.base, self._suite(suite), arch or host_arch(), False)
        with locked(root.lock, 'using apt'):
            root.update()
            text = output(['apt-cache', 'pkgnames'], env=root.env())
        want = re.compile(regex)
        return sorted(n for n in text.split() if want.fullmatch(n))

    def download(self, packages, suite):
        """Fetch just these packages ('name:arch' or 'name:arch=version').
        Returns the .deb paths, in the order asked."""
        names, root = self._root(packages, suite)
        with locked(root.lock, 'using apt'):
            root.update()
            return self._retry(root, lambda: self._fetch(root, names))

    def closure(self, packages, suite, drop=()):
        """Fetch these packages and all that they depend on (no Recommends),
        resolved by apt against an empty system. drop: packages that count as
        installed already and are left out, with what only they need.
        Returns the .deb paths."""
        names, root = self._root(packages, suite)
        with locked(root.lock, 'using apt'):
            root.update()

            def resolve():
                wanted = self._resolve(root, names, drop)
                return self._fetch(root, wanted)
            return self._retry(root, resolve)

    def source(self, package, suite, version=None):
        """Fetch a source package. version: what the version must start with.
        Returns the paths of its .dsc and tarballs."""
        suite = self._suite(suite)
        root = _Root(self.base, suite, host_arch(), True)
        with locked(root.lock, 'using apt'):
            root.update()
            found = self._source_version(root, package, version)
            if found is None:
                root.update(force=True)
                found = self._source_version(root, package, version)
            if found is None:
                raise OdpError(f'{suite} has no source package {package}'
                               + (f' {version}' if version else ''))
            spec = f'{package}={found}'
            want = self._uris(root, ['source', '--download-only', spec])
            self._get(root, ['source', '--download-only', spec], want)
            return [root.archives / name for name, _, _ in want]

    def tool(self, packages, suite):
        """Fetch just these packages and unpack them together. Returns the
        directory, named by content: it can be used in place. A choice of
        versions stands for TOOL_AGE, so that a build asks nobody."""
        tools = self.base / 'tools'
        choice = tools / '-'.join([self._suite(suite), *packages]).replace(
            '/', '-')
        with contextlib.suppress(OSError):
            dest = tools / choice.read_text().strip()
            if time.time() - choice.stat().st_mtime < TOOL_AGE and \
                    (dest / '.done').exists():
                return dest
        debs = self.download(packages, suite)
        key = hashlib.sha256('\n'.join(d.name for d in debs).encode())
        dest = tools / key.hexdigest()[:16]
        with locked(self.base / 'tools.lock'):
            if not (dest / '.done').exists():
                remove_tree(dest)
                for deb in debs:
                    unpack(deb, dest)
                (dest / '.done').touch()
            choice.write_text(dest.name + '\n')
        return dest

    # -- how ----------------------------------------------------------------

    @staticmethod
    def _suite(suite):
        if suite == 'host':
            return host_suite()
        if suite == 'host-backports':
            return host_suite() + '-backports'
        return suite

    def _root(self, packages, suite):
        names, archs = [], set()
        for spec in packages:
            name, sep, version = spec.partition('=')
            name, _, arch = name.partition(':')
            archs.add(arch or host_arch())
            names.append(name + sep + version)
        if len(archs) != 1:
            raise OdpError('one architecture at a time, not '
                           + ', '.join(sorted(archs)))
        return names, _Root(self.base, self._suite(suite), archs.pop(), False)

    @staticmethod
    def _policy(root, names):
        found = {n: None for n in names}
        text = output(['apt-cache', 'policy'] + names, env=root.env())
        current = None
        for line in text.splitlines():
            if not line.startswith(' ') and line.endswith(':'):
                current = line[:-1].partition(':')[0]
            m = re.match(r'\s+Candidate: (\S+)', line)
            if m and current in found and m[1] != '(none)':
                found[current] = m[1]
        return found

    @staticmethod
    def _source_version(root, package, version):
        text = output(['apt-cache', 'showsrc', '--only-source', package],
                      env=root.env(), check=False)
        for found in re.findall(r'^Version: (\S+)', text, re.M):
            if version is None or re.match(
                    re.escape(version) + r'(?![0-9])', found):
                return found
        return None

    @staticmethod
    def _uris(root, args):
        """[(file, size, (hash name, hash))] of what apt would fetch."""
        text = output(['apt-get', '-qq', '--print-uris', '-y'] + args,
                      env=root.env())
        found = []
        for line in text.splitlines():
            m = re.match(r"'[^']+' (\S+) (\d+) (?:(\w+):(\w+))?", line)
            if m:
                found.append((m[1], int(m[2]), (m[3], m[4])))
        return found

    @staticmethod
    def _good(path, size, digest):
        """The file is there and is what the signed index says."""
        if not path.is_file() or path.stat().st_size != size:
            return False
        if digest[0] is None:
            return True
        with open(path, 'rb') as f:
            got = hashlib.file_digest(f, digest[0].lower())
        return got.hexdigest() == digest[1]

    def _get(self, root, args, want):
        """Run apt-get in a directory of its own and move what it fetched
        (and checked) into the archive directory."""
        missing = [w for w in want
                   if not self._good(root.archives / w[0], *w[1:])]
        if not missing:
            return
        total = sum(w[1] for w in missing)
        say(f'fetching {len(missing)} file(s), {total / 1e6:.1f} MB, '
            f'from {root.suite}')
        work = root.dir / 'fetch'
        remove_tree(work)
        work.mkdir()
        run(['apt-get', '-qq'] + args, env=root.env(), cwd=work, quiet=True,
            what='apt-get ' + ' '.join(args[:4]))
        for name, size, digest in missing:
            if not self._good(work / name, size, digest):
                raise OdpError(f'apt-get did not bring {name}')
            (work / name).replace(root.archives / name)
        remove_tree(work)

    def _fetch(self, root, names):
        if not names:
            return []
        absent = [n for n, v in self._policy(
            root, [n.partition('=')[0] for n in names]).items() if v is None]
        if absent:
            raise OdpError(f'{root.suite} has no package '
                           f'{", ".join(absent)} for {root.arch}')
        # One call for all; apt answers in an order of its own.
        want = {w[0].split('_')[0]: w
                for w in self._uris(root, ['download'] + names)}
        ours = [(n, want[n.partition('=')[0]]) for n in names]
        todo = [(n, w) for n, w in ours
                if not self._good(root.archives / w[0], *w[1:])]
        if todo:
            self._get(root, ['download'] + [n for n, _ in todo],
                      [w for _, w in todo])
        return [root.archives / w[0] for _, w in ours]

    def _resolve(self, root, names, drop):
        """['name=version'] that an empty system would need for names."""
        status = root.dir / 'state/status'
        # apt takes a dropped package for one that is installed. Only with
        # Multi-Arch: allowed does it meet a dependency on 'perl:any'.
        status.write_text(''.join(
            f'Package: {d.partition(":")[0]}\n'
            'Status: install ok installed\nMaintainer: none\n'
            f'Architecture: {root.arch}\nMulti-Arch: allowed\n'
            'Version: 999:0\n'
            'Description: left out\n\n' for d in drop))
        try:
            # --print-uris with archives that are in no cache: lists all.
            want = self._uris(root, ['install'] + names)
        finally:
            status.write_text('')
        resolved = []
        for name, _, _ in want:
            package, version, _ = name.rsplit('.', 1)[0].split('_')
            resolved.append(f'{package}={version.replace("%3a", ":")}')
        return sorted(resolved)

    @staticmethod
    def _retry(root, action):
        """The archive moves on under our lists: fetch them again, once."""
        try:
            return action()
        except OdpError as first:
            fresh = time.time() - root.stamp.stat().st_mtime < 60
            if fresh:
                raise
            say(f'{str(first).splitlines()[0]}; refreshing the lists')
            root.update(force=True)
            return action()


def unpack(deb, dest):
    """Unpack one .deb below dest (made when absent)."""
    Path(dest).mkdir(parents=True, exist_ok=True)
    run(['dpkg-deb', '-x', deb, dest], quiet=True)
