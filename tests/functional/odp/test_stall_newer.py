#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# odp: long minutes=20 kernel=zdma
"""The page-fault handler of test_stall_module.py with a newer kernel (7.2 or
later), whose arm-smmu writes RESUME itself after it has called the handler: the
access stalls once more before the worker gets to it."""

import odptest
import test_stall_module


class Newer(test_stall_module.StallModule):
    kernel_name = 'zdma'
    resumes = True
    stalls = ('--stalls', 2)


class NewerSmp2(Newer, odptest.GuestTest):
    smp = 2


class NewerSmp1(Newer, odptest.GuestTest):
    smp = 1


odptest.main(__name__)
