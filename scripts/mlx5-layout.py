#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Keep hw/rdma/mlx5/mlx5-layout.h true.

The device model names command and context fields as MLX5_GET(p, qpc, state).
This script collects every (structure, field) pair that our sources use, asks
the C compiler where a kernel's own mlx5_ifc.h puts each of them, and then

  --write   rewrites the table in mlx5-layout.h, or
  --check   compares the committed table with that header (exit 1: they differ).

The header is only read: it is not part of this project.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parent.parent
TABLE = TOP / 'hw/rdma/mlx5/mlx5-layout.h'
SOURCES = ('hw/rdma/mlx5', 'tests/qtest/odp')
# MLX5_GET(pointer, struct, field ...): the pointer may be any expression.
USE = re.compile(r'\bMLX5_(?:GET|SET|GET64|SET64|ADDR|BITS)\(')
# Names in tables of fields: MLX5_AT(struct, field ...)
ROWS = re.compile(r'\bMLX5_(?:AT|CAP|FLD)\(\s*(\w+)\s*,\s*(\w+)\s*[,)]')
SIZE = re.compile(r'\bMLX5_BYTES\(\s*(\w+)\s*\)')
ROW = re.compile(r'^\s*X\((\w+), (\w+), (0x[0-9a-f]+), (\d+)\)', re.M)
SROW = re.compile(r'^\s*S\((\w+), (\d+)\)', re.M)
BEGIN, END = '/* BEGIN TABLE', '/* END TABLE */'


def arguments(text, pos):
    """The arguments of the call whose parenthesis opens before @pos."""
    args, depth, start = [], 0, pos
    while pos < len(text):
        if text[pos] in ',)' and not depth:
            args.append(text[start:pos].strip())
            start = pos + 1
            if text[pos] == ')':
                break
        depth += {'(': 1, '[': 1, ')': -1, ']': -1}.get(text[pos], 0)
        pos += 1
    return args


def used():
    """(structure, field) pairs and structures whose size our code needs."""
    fields, structs = set(), set()
    for folder in SOURCES:
        for path in sorted((TOP / folder).glob('*.[ch]')):
            if path == TABLE:
                continue
            text = path.read_text()
            calls = (arguments(text, m.end()) for m in USE.finditer(text))
            fields.update(tuple(a[1:3]) for a in calls if len(a) >= 3
                          and a[1] not in ('s', 'st'))
            fields.update(m.groups() for m in ROWS.finditer(text)
                          if m.group(1) not in ('s', 'st'))
            structs.update(m.group(1) for m in SIZE.finditer(text)
                           if m.group(1) not in ('s', 'st'))
    return sorted(fields), sorted(structs)


def measure(header, fields, structs):
    """Bit offset and width of each field, byte size of each structure."""
    text = header.read_text()
    fpga = header.with_name('mlx5_ifc_fpga.h')
    if fpga.exists():
        text = fpga.read_text() + text
    text = re.sub(r'^#include.*$', '', text, flags=re.M)
    unsized = {(s, f) for s, body in re.findall(
                   r'^struct mlx5_ifc_(\w+)_bits \{(.*?)^\};', text,
                   re.M | re.S)
               for f in re.findall(r'(\w+)\[\](?:\[\w+\])*;', body)}
    lines = ['#include <stddef.h>', '#include <stdio.h>',
             'typedef unsigned char u8;',
             'typedef unsigned int __be32; typedef unsigned short __be16;',
             'typedef unsigned long long __be64; typedef unsigned int u32;',
             '#define DECLARE_FLEX_ARRAY(t, n) '
             'struct { struct {} e_##n; t n[]; }',
             '#define BIT(n) (1UL << (n))', '#define BIT_ULL(n) (1ULL << (n))',
             '#define GENMASK(h, l) (((~0UL) << (l)) & (~0UL >> (63 - (h))))',
             text, 'int main(void) {']
    for s, f in fields:
        t = f'struct mlx5_ifc_{s}_bits'
        m = f.replace('__', '.')
        w = '(size_t)0' if (s, f) in unsized else f'sizeof((({t} *)0)->{m})'
        lines.append(f'printf("F {s} {f} %zu %zu\\n", '
                     f'offsetof({t}, {m}), {w});')
    for s in structs:
        lines.append(f'printf("S {s} %zu\\n",'
                     f' sizeof(struct mlx5_ifc_{s}_bits) / 8);')
    lines.append('return 0; }')
    with tempfile.TemporaryDirectory() as tmp:
        src = pathlib.Path(tmp, 'm.c')
        src.write_text('\n'.join(lines))
        exe = pathlib.Path(tmp, 'm')
        cc = subprocess.run(['cc', '-w', '-o', exe, src],
                            capture_output=True, text=True)
        if cc.returncode:
            bad = re.findall(r"error: (.*)", cc.stderr)
            sys.exit('mlx5-layout: the header lacks what we name:\n  ' +
                     '\n  '.join(sorted(set(bad))[:40]))
        out = subprocess.run([exe], capture_output=True, text=True,
                             check=True).stdout
    got_f, got_s = {}, {}
    for line in out.splitlines():
        kind, *rest = line.split()
        if kind == 'F':
            got_f[rest[0], rest[1]] = (int(rest[2]), int(rest[3]))
        else:
            got_s[rest[0]] = int(rest[1])
    return got_f, got_s


def write(got_f, got_s):
    text = TABLE.read_text()
    head, rest = text.split(BEGIN, 1)
    first, rest = rest.split('\n', 1)
    tail = rest.split(END, 1)[1]
    body = ['#define MLX5_FIELDS(X) \\']
    body += [f'    X({s}, {f}, {o:#x}, {w}) \\'
             for (s, f), (o, w) in sorted(got_f.items())]
    body += ['    /* end */', '', '#define MLX5_STRUCTS(S) \\']
    body += [f'    S({s}, {n}) \\' for s, n in sorted(got_s.items())]
    body += ['    /* end */', '']
    TABLE.write_text(head + BEGIN + first + '\n' + '\n'.join(body) + END + tail)


def check(got_f, got_s):
    text = TABLE.read_text()
    have_f = {(a, b): (int(o, 16), int(w)) for a, b, o, w in ROW.findall(text)}
    have_s = {a: int(n) for a, n in SROW.findall(text)}
    bad = []
    for have, got in ((have_f, got_f), (have_s, got_s)):
        for key in sorted(set(have) | set(got)):
            if have.get(key) != got.get(key):
                bad.append(f'{key}: ours {have.get(key)},'
                           f' kernel {got.get(key)}')
    for line in bad:
        print(line)
    print(f'{len(got_f)} fields and {len(got_s)} structures compared,'
          f' {len(bad)} differ')
    return 1 if bad or not got_f else 0


def main():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawTextHelpFormatter)
    ap.add_argument('header', type=pathlib.Path,
                    help='include/linux/mlx5/mlx5_ifc.h of a kernel')
    how = ap.add_mutually_exclusive_group(required=True)
    how.add_argument('--write', action='store_true')
    how.add_argument('--check', action='store_true')
    args = ap.parse_args()
    fields, structs = used()
    got = measure(args.header, fields, structs)
    if args.write:
        write(*got)
        return 0
    return check(*got)


if __name__ == '__main__':
    sys.exit(main())
