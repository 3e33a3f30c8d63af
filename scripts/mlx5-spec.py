#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Keep the tables of docs/specs/mlx5-hca.md true.

  --write   rewrites the command and capability tables from the sources
  --check   exit 1 when they differ from the sources
"""
import argparse
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
SRC = TOP / 'hw/rdma/mlx5'
DOC = TOP / 'docs/specs/mlx5-hca.md'
CMD = re.compile(r'(?:\{\s*|\b[A-Z]+\()0x([0-9a-f]{3}),\s*"([A-Z0-9_]+)"')
CAP = re.compile(r'\bMLX5_CAP\(\s*(\w+),\s*(\w+),\s*(\w+),\s*(\w+),\s*(\w+),'
                 r'\s*([^()]+?(?:\([^()]*\)[^()]*)?)\),')
ENUM = re.compile(r'^\s*(MLX5_\w+)\s*=\s*([^,/]+?)\s*(?:,|/\*|$)', re.M)
TYPES = {'0': 'general', '2': 'ODP', '3': 'atomic', '7': 'flow table',
         '0xc': 'QoS',
         '0xf': 'device memory', '0x20': 'general 2'}
SET = {'FIXED': 'no', 'SETTABLE': 'down from it', 'SET_FROM_0': 'up from 0',
       'SET_BITS': 'any of its bits'}
WHEN = {'ALWAYS': '', 'ATS': 'ats=on', 'ODP_ANY': 'odp=memory, transport',
        'ODP_MEMORY': 'odp=memory', 'ODP_TRANSPORT': 'odp=transport',
        'NOT_KVM': 'not under KVM'}


def strip(text):
    return re.sub(r'/\*.*?\*/', '', text, flags=re.S)


def commands():
    rows = set()
    for path in SRC.glob('*.c'):
        for table in re.findall(r'const Mlx5CmdDesc mlx5_\w+_cmds\[\] = \{'
                                r'(.*?)^\};', strip(path.read_text()),
                                re.S | re.M):
            rows.update((int(op, 16), name, path.name)
                        for op, name in CMD.findall(table))
    out = ['| opcode | command | file |', '|---|---|---|']
    out += [f'| 0x{op:03x} | {name} | {file} |' for op, name, file
            in sorted(rows)]
    return out


def constants():
    known = {}
    for path in sorted(SRC.glob('*.h')):
        for name, value in ENUM.findall(strip(path.read_text())):
            try:
                known.setdefault(name, eval(value, {}, dict(known)))
            except Exception:  # an expression of other kinds
                pass
    return known


def capabilities():
    known = constants()
    out = ['| type | field | maximum | driver may set | when |',
           '|---|---|---|---|---|']
    text = strip((SRC / 'mlx5-caps-table.c').read_text())
    text = re.sub(r'\bMLX5_CAP_USER\((\w+), 0x\w+, \d+,',
                  r'MLX5_CAP(user, \1,', text)
    for _, field, kind, when, how, value in CAP.findall(text):
        n = eval(value.replace('/', '//'), {}, known)
        out.append(f"| {TYPES[kind]} | {field.replace('__', '.')} | {n} |"
                   f' {SET[how]} | {WHEN[when]} |')
    return out


def main():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawTextHelpFormatter)
    how = ap.add_mutually_exclusive_group(required=True)
    how.add_argument('--write', action='store_true')
    how.add_argument('--check', action='store_true')
    args = ap.parse_args()
    text = DOC.read_text()
    new = text
    for name, rows in (('commands', commands()),
                       ('capabilities', capabilities())):
        begin, end = f'<!-- {name} -->\n', f'<!-- end {name} -->'
        head, rest = new.split(begin, 1)
        new = head + begin + '\n'.join(rows) + '\n' + end + \
            rest.split(end, 1)[1]
        print(f'{name}: {len(rows) - 2} rows')
    if args.write:
        DOC.write_text(new)
        return 0
    if new != text:
        print(f'{DOC.relative_to(TOP)} differs from the sources: run'
              ' scripts/mlx5-spec.py --write')
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
