# SPDX-License-Identifier: GPL-2.0-or-later
"""What the `odp` command calls: one verb or one subject a module."""
