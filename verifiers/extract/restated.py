r"""Reads sentences that restate the problem with its answer, and cuts off those that explain one.

    "What were Nike's current assets at the end of 2019?"
    Nike had current assets of $16,525 million at the end of 2019.      $16,525 million: 2019 is the problem's
    The ratio is 1.73. This is calculated by dividing 26 by 15.         The ratio is 1.73.
    The ratio is 26/15. This is found to be 1.73.                       as it is: the last sentence goes on

Not covered: numbers that the problem writes otherwise, as `two thousand` and 2,000.
"""

from __future__ import annotations

import re

from truegold.verifiers.extract.stated_values import ANY_OF, has_value

MAX_PROBLEM_CHARS = 20_000
"""Only so much of a problem is searched for numbers."""
MAX_TAIL_CHARS = 2_000
"""Only so much of the end of a response is read."""
MAX_EXPLANATIONS = 4

_NUMERAL = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
_EXPLANATION = re.compile(rf"(?:{ANY_OF['explanations']})(?!.*(?:=|\bto be\b|≈))", re.IGNORECASE | re.DOTALL)
_SENTENCE_START = re.compile(r"[.!?][*_)\"']{0,3}\s+(?=[A-Z])|\n")


def without_given_numbers(text: str, problem: str) -> str | None:
    """Return the end of a text with X for the numbers that the problem has; None where it has none of them."""
    numerals = set(_NUMERAL.findall(problem[:MAX_PROBLEM_CHARS]))
    tail = text[-MAX_TAIL_CHARS:]
    masked = _NUMERAL.sub(lambda match: "X" if match[0] in numerals else match[0], tail)
    return None if masked == tail or _NUMERAL.search(masked) is None else masked


def without_explanations(text: str) -> str:
    """Return a text without the sentences at its end that say where the value before them comes from."""
    text = text.rstrip()
    for _ in range(MAX_EXPLANATIONS):
        starts = [match.end() for match in _SENTENCE_START.finditer(text, max(0, len(text) - MAX_TAIL_CHARS))]
        if not starts or _EXPLANATION.match(text, starts[-1]) is None or not has_value(text[: starts[-1]]):
            break
        text = text[: starts[-1]].rstrip()
    return text
