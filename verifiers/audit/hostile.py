"""Answers made to crash, stall or bloat whoever reads them: `HOSTILE`.

Each case is a gold and an answer, built when it is asked for, because some are megabytes long. `expected` says what the
verdict must be where that is certain, `any` elsewhere. What counts first is that there is a verdict at all, in bounded
time and memory (`contract.py`); one without a score, for a limit or a timeout, always counts as an answer to it.

    name                gold            answer                    expected
    tower               5               9^{9^{9^{9}}}             no_match
    tiny difference     1/2^{99}        1/2^{98}                  no_match
    full-width digits   123             １２３                     match
    null bytes          5               5 and zero bytes          any

The cases stand in `hostile_numbers.py` (large values) and `hostile_text.py` (long, deep and odd texts).
"""

from __future__ import annotations

from truegold.verifiers.audit.hostile_case import HostileCase
from truegold.verifiers.audit.hostile_numbers import NUMBERS
from truegold.verifiers.audit.hostile_text import TEXTS

HOSTILE: tuple[HostileCase, ...] = (*NUMBERS, *TEXTS)
