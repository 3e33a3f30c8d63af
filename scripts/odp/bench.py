# SPDX-License-Identifier: GPL-2.0-or-later
"""`odp bench`: a benchmark is a file of bench/ with SUMMARY and main(args)."""

import importlib.util

from .common import OdpError, TOP

BENCH = TOP / 'bench'


def load(path):
    spec = importlib.util.spec_from_file_location(
        f'{__package__}_bench_{path.stem}', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(argv):
    known = {p.stem.replace('_', '-'): p for p in sorted(BENCH.glob('*.py'))}
    if not argv or argv[0] in ('-h', '--help'):
        print('usage: odp bench NAME [ARGUMENT...]\n\n'
              'Measures in one run and prints ratios. Benchmarks:')
        for name, path in known.items():
            print(f'  {name:12} {load(path).SUMMARY}')
        return 0 if argv else 2
    if argv[0] not in known:
        raise OdpError(f'no benchmark "{argv[0]}"; there are '
                       + ', '.join(known), status=2)
    return load(known[argv[0]]).main(argv[1:])
