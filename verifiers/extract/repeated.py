r"""A closing that a response repeats with another value each time commits to none of them: it is a loop, or a list.

The answer is (E).\nThe answer is (F).\nThe answer is (A).      E or F or A: a hedge
#### 1\n#### 2\n#### 3                                         1 or 2 or 3
The answer is 5.\nThe answer is 5.\nThe answer is 5.            5
The answer is 5.\nThe answer is 6.                              6: the later of two replaces the earlier
The answer is 5. Wait, no.\nThe answer is 6. Hmm.\nThe answer is 7.    7: each is taken back by words
(a) The answer is 5.\n(b) The answer is 6.\n(c) ...             the last: each closes a part of its own
"""

from __future__ import annotations

import re

from truegold.verifiers.extract.stated_values import MARKS
from truegold.verifiers.extract.statements import narrow

MAX_CLOSING_CHARS = 120
"""The longest words before a value, and the longest sentence after it, that are compared."""
MIN_VALUES = 3
"""Fewer different values are a correction."""
MAX_ASIDE_CHARS = 3
"""A sentence that says more than its value is not a closing: `So 5 does not fit`."""
MAX_REPEATED = 64
"""The last repetitions that are looked at, at most."""

_AROUND = f"{MARKS}$.。"
_BEGINS = re.compile(r".*(?:\n|[.?!](?=\s)|[。！？])\s{0,9}", re.DOTALL)
_TURN = re.compile(
    r"\b(?:wait|hmm+|oops|no|actually|sorry|scratch|correction|mistaken?|wrong|incorrect|errors?|instead|not|but|let)\b"
    r"|不|错|更正|等等|아니|틀|違|待",
    re.IGNORECASE,
)
"""Words by which a response turns from one value to the next."""


def repeated_values(text: str, answer: str) -> list[str]:
    """Return the different values that the closing of `answer` names in a row at the end of a text; none of fewer."""
    position = text.rfind(answer)
    window = text[max(0, position - MAX_CLOSING_CHARS) : position]
    begins = _BEGINS.match(window)
    closing = window[begins.end() if begins is not None else 0 :]
    if position == -1 or not closing.strip() or text.count(closing, 0, position) < MIN_VALUES:
        return []
    values = {answer.strip(_AROUND): None}
    start = position - len(closing)
    for _ in range(MAX_REPEATED):
        earlier = text.rfind(closing, max(0, start - 2 * MAX_CLOSING_CHARS), start)
        if earlier == -1 or _TURN.search(between := text[earlier + len(closing) : start]):
            break
        whole = between.strip(_AROUND).removesuffix("</answer>").strip(_AROUND)
        if (value := narrow(whole)) is None or len(whole) > len(value) + MAX_ASIDE_CHARS:
            break
        values.setdefault(value.strip(_AROUND))
        start = earlier
    return list(values)[::-1] if len(values) >= MIN_VALUES else []
