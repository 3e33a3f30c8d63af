# SPDX-License-Identifier: GPL-2.0-or-later
"""The HCA's tables: one truth in the sources, the rest follows."""

import importlib.util
import subprocess
import sys
import unittest

from odp.common import TOP


def script(name):
    spec = importlib.util.spec_from_file_location(
        name.replace('-', '_'), TOP / f'scripts/{name}.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Specification(unittest.TestCase):
    def test_tables_are_the_sources(self):
        proc = subprocess.run([sys.executable, TOP / 'scripts/mlx5-spec.py',
                               '--check'], text=True, stdout=subprocess.PIPE)
        self.assertEqual(proc.returncode, 0, proc.stdout)

    def test_commands_are_found(self):
        rows = script('mlx5-spec').commands()
        for row in ('| 0x104 | ENABLE_HCA | mlx5-hca.c |',
                    '| 0x503 | INIT2RTR_QP | mlx5-qp.c |'):
            self.assertIn(row, rows)
        opcodes = [row.split('|')[1] for row in rows[2:]]
        self.assertEqual(len(opcodes), len(set(opcodes)))


class Layout(unittest.TestCase):
    def test_table_names_what_sources_use(self):
        layout = script('mlx5-layout')
        text = layout.TABLE.read_text()
        fields, structs = layout.used()
        self.assertEqual({(a, b) for a, b, _, _ in layout.ROW.findall(text)},
                         set(fields))
        self.assertEqual({a for a, _ in layout.SROW.findall(text)},
                         set(structs))
        self.assertGreater(len(fields), 300)
