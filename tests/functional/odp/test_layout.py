#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# odp: minutes=3
"""Our layouts of mlx5 structures against the headers of the newest stock
guest kernel: every field of commands, contexts and capabilities that our
sources use, and the structures of work requests and completions."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / 'scripts'))

from odp import kernel  # noqa: E402
from odp.aptroot import AptRoot, unpack  # noqa: E402

#: Our structure, the kernel's, and members that are named the same way.
STRUCTS = (
    ('Mlx5WqeCtrl', 'mlx5_wqe_ctrl_seg',
     'opmod_idx_opcode qpn_ds signature fm_ce_se imm'),
    ('Mlx5WqeRaddr', 'mlx5_wqe_raddr_seg', 'raddr rkey reserved'),
    ('Mlx5WqeAtomic', 'mlx5_wqe_atomic_seg', 'swap_add compare'),
    ('Mlx5WqeData', 'mlx5_wqe_data_seg', 'byte_count lkey addr'),
    ('Mlx5WqeAv', 'mlx5_av',
     'key dqp_dct stat_rate_sl fl_mlid rlid rmac tclass hop_limit '
     'grh_gid_fl rgid'),
    ('Mlx5WqeXrc', 'mlx5_wqe_xrc_seg', 'xrc_srqn'),
    ('Mlx5WqeSrqNext', 'mlx5_wqe_srq_next_seg', 'next_wqe_index signature'),
    ('Mlx5Cqe64', 'mlx5_cqe64',
     'ml_path slid flags_rqpn hds_ip_ext l4_l3_hdr_type vlan_info srqn '
     'byte_cnt timestamp_h timestamp_l sop_drop_qpn wqe_counter signature '
     'op_own'),
    ('Mlx5ErrCqe', 'mlx5_err_cqe',
     'srqn vendor_err_synd syndrome s_wqe_opcode_qpn wqe_counter signature '
     'op_own'),
)

#: Ours where the kernel's name differs.
OURS = {'key': 'qkey'}


def headers():
    """Unpacked include/linux/mlx5 of the newest stock kernel, and its
    package's version."""
    suite, package = kernel.STOCK['stock']
    apt = AptRoot()
    main = [d for d in apt.depends(f'{package}:arm64', suite)
            if re.match(r'linux-image-\d', d)][0]
    release = main[len('linux-image-'):]
    common = re.sub(r'-(cloud-|rt-)?arm64(-16k)?$', '', release)
    names = [f'linux-headers-{common}-common:all',
             f'linux-headers-{common}-common:arm64']
    last = None
    for name in names:
        try:
            deb = apt.download([name], suite)[0]
            break
        except Exception as err:  # pylint: disable=broad-except
            last = err
    else:
        raise last
    dest = tempfile.mkdtemp(prefix='odp-')
    unpack(deb, dest)
    found = list(Path(dest).glob('usr/src/*/include/linux/mlx5'))
    return found[0], deb.name


def body(text, struct):
    """A struct's definition, up to its closing brace."""
    start = re.search(r'^struct %s \{' % struct, text, re.M).start()
    return text[start:text.index('\n};', start) + 1].rstrip() + ' };'


def offsets(where):
    """Member offsets of the kernel's structures, by the compiler."""
    text = (where / 'qp.h').read_text() + (where / 'device.h').read_text()
    lines = ['#include <stddef.h>', '#include <stdio.h>',
             '#define __packed __attribute__((packed))',
             '#define DECLARE_FLEX_ARRAY(t, n) t n[0]',
             '#define struct_group(n, ...) struct { __VA_ARGS__ }',
             'typedef unsigned char u8; typedef unsigned short __be16;',
             'typedef unsigned int __be32; typedef unsigned int u32;',
             'typedef unsigned long long __be64;']
    lines += [body(text, theirs) for _, theirs, _ in STRUCTS]
    lines.append('int main(void) {')
    for ours, theirs, members in STRUCTS:
        lines.append(f'printf("{ours} size %zu\\n",'
                     f' sizeof(struct {theirs}));')
        for m in members.split():
            lines.append(f'printf("{ours} {OURS.get(m, m)} %zu\\n",'
                         f' offsetof(struct {theirs}, {m}));')
    return compiled(lines)


def our_offsets():
    """Member offsets of our structures."""
    text = (TOP / 'hw/rdma/mlx5/mlx5-wqe.h').read_text()
    lines = ['#include <stddef.h>', '#include <stdio.h>',
             '#include <stdint.h>',
             '#define QEMU_PACKED __attribute__((packed))',
             '#define QEMU_BUILD_BUG_ON(x)',
             re.sub(r'^#include.*$', '', text, flags=re.M),
             'int main(void) {']
    for ours, _, members in STRUCTS:
        lines.append(f'printf("{ours} size %zu\\n", sizeof({ours}));')
        for m in members.split():
            m = OURS.get(m, m)
            lines.append(f'printf("{ours} {m} %zu\\n",'
                         f' offsetof({ours}, {m}));')
    return compiled(lines)


def compiled(lines):
    with tempfile.TemporaryDirectory(prefix='odp-') as tmp:
        src, exe = Path(tmp, 'm.c'), Path(tmp, 'm')
        src.write_text('\n'.join(lines + ['return 0; }', '']))
        subprocess.run(['cc', '-w', '-o', exe, src], check=True)
        return subprocess.run([exe], check=True, text=True,
                              stdout=subprocess.PIPE).stdout.splitlines()


def main():
    print('1..2')
    where, name = headers()
    print(f'# {name}')
    check = subprocess.run(
        [sys.executable, TOP / 'scripts/mlx5-layout.py',
         where / 'mlx5_ifc.h', '--check'],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    for line in check.stdout.splitlines():
        print(f'# {line}')
    print('not ' * bool(check.returncode) + 'ok 1 - fields of mlx5_ifc.h')
    ours, theirs = our_offsets(), offsets(where)
    for a, b in zip(ours, theirs):
        if a != b:
            print(f'# ours: {a}; kernel: {b}')
    print(f'# {len(theirs)} members and sizes compared')
    bad = ours != theirs or len(theirs) < 40
    print('not ' * bad + 'ok 2 - work requests and completions')
    subprocess.run(['rm', '-rf', str(where).split('/usr/src')[0]], check=True)
    return 1 if bad or check.returncode else 0


if __name__ == '__main__':
    os.environ.setdefault('LC_ALL', 'C')
    sys.exit(main())
