# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs the unit tests beside it and prints TAP."""

import sys
import traceback
import unittest
from pathlib import Path

from odp import tap


class Recorder(unittest.TestResult):
    """Remembers results as tap.render wants them."""

    def __init__(self):
        super().__init__()
        self.results = []

    def note(self, test, outcome, note=''):
        self.results.append(tap.Result(test.id(), outcome, note))

    def addSuccess(self, test):
        self.note(test, 'pass')

    def addSkip(self, test, reason):
        self.note(test, 'skip', reason)

    def addFailure(self, test, err):
        self.note(test, 'fail', ''.join(traceback.format_exception(*err)))

    addError = addFailure


recorder = Recorder()
unittest.defaultTestLoader.discover(Path(__file__).parent).run(recorder)
sys.stdout.write(tap.render(recorder.results))
sys.exit(any(r.outcome == 'fail' for r in recorder.results))
