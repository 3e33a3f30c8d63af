# SPDX-License-Identifier: GPL-2.0-or-later
"""The Test Anything Protocol, as far as our tests speak it."""

import re
from dataclasses import dataclass


@dataclass
class Result:
    """One test. outcome: 'pass', 'fail' or 'skip'; note: why skipped, or what
    went wrong."""
    name: str
    outcome: str
    note: str = ''


_LINE = re.compile(r'(not )?ok\b\s*(\d+)?\s*(?:- )?(.*?)'
                   r'(?:\s+#\s*(SKIP|TODO)\b\s*(.*))?$', re.I)


def parse(text, whole, status):
    """Results in the TAP output `text` of the program `whole`, which ended
    with `status` (None: out of time; 77: all was skipped). A program that
    breaks off, prints nothing or exits with an error is a failure of its own.
    Comments after a failure become its note."""
    results, plan, bail, ended = [], None, None, 0
    last = None
    for line in text.splitlines():
        found = re.fullmatch(r'1\.\.(\d+)(?:\s+#\s*SKIP\b\s*(.*))?',
                             line.strip(), re.I)
        if found:
            plan = int(found[1])
            if plan == 0:
                results.append(Result(whole, 'skip', found[2] or ''))
            continue
        if line.startswith('Bail out!'):
            bail = line[len('Bail out!'):].strip() or 'bailed out'
            continue
        if line.startswith('#') and last is not None and \
                last.outcome == 'fail':
            last.note += ('\n' if last.note else '') + line[1:].strip()
        found = _LINE.match(line)
        if not found:
            continue
        ended += 1
        name = found[3].strip() or f'test {found[2] or ended}'
        if (found[4] or '').upper() == 'SKIP':
            results.append(Result(name, 'skip', found[5] or ''))
        else:
            results.append(Result(name, 'fail' if found[1] else 'pass'))
        last = results[-1]
    trouble = None
    if status is None:
        trouble = 'out of time'
    elif bail:
        trouble = bail
    elif status == 77 and results and \
            all(r.outcome == 'skip' for r in results):
        pass
    elif status and not any(r.outcome == 'fail' for r in results):
        trouble = f'exit status {status}'
    elif plan is None:
        trouble = 'no plan: broke off, or prints no TAP'
    elif plan != ended:
        trouble = f'{ended} of {plan} tests reported'
    if trouble:
        results.append(Result(whole, 'fail', trouble))
    return results


def render(results):
    """TAP text of results."""
    lines = []
    for number, r in enumerate(results, 1):
        head = 'not ok' if r.outcome == 'fail' else 'ok'
        tail = f' # SKIP {r.note}' if r.outcome == 'skip' else ''
        lines.append(f'{head} {number} {r.name}{tail}')
        if r.outcome == 'fail' and r.note:
            lines += ['# ' + line for line in r.note.splitlines()]
    return '\n'.join(lines + [f'1..{len(results)}']) + '\n'
