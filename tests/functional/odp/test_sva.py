#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# odp: long minutes=10 kernel=sva
"""Shared virtual addressing behind the SMMUv3, which stalls what is absent:
with and without ATS."""

import odptest
from svatest import Keys, Sva


class Stall(Sva, odptest.GuestTest):
    """Path 1: the SMMU suspends an untranslated access."""
    portal_options = ',x-portal-no-ats=on'


class Ats(Sva, Keys, odptest.GuestTest):
    """Path 2: ATS on top; what it does not grant is asked untranslated."""
    smmu = (*Sva.smmu, 'ats=on')
    ats = True


odptest.main(__name__)
