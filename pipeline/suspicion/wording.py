"""Probability that the wording of a problem allows several readings, even if all systems choose the same reading.

    "Kim is three times older than Leo, who is 4."                      12, or 16?          0.5
    "15 minutes a day and an hour on Sunday. How long is that a week?"  minutes, or hours?  0.12

Systems that learnt from the same texts read such a sentence alike, so their votes are not evidence. The probabilities
are the shares of rejected rows among rows with such a wording in a reviewed corpus (docs/explain/suspicion.md).
"""

from __future__ import annotations

import re

MULTIPLE, DURATION = 0.5, 0.12
"""The probabilities for "three times older" and for a duration without a unit."""

_COUNT_WORD = (
    r"(?:\d+(?:\.\d+)?|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty"
    r"|hundred|thousand)"
)
_MULTIPLE = re.compile(rf"\b{_COUNT_WORD} times (?:more|fewer|less|older|younger)\b(?! often)", re.IGNORECASE)
"""A multiple of either the difference or the whole: "three times older"; not "three times as many", "two more
times"."""
_DURATION = re.compile(r"\bhow (?:long|much time)\b[^.?!]*", re.IGNORECASE)
"""A question for a duration."""
_UNIT = r"(?:second|minute|hour|day|week|month|year)s?"
_NAMED_UNIT = re.compile(rf"\b{_UNIT}\b", re.IGNORECASE)
_STATED_UNIT = re.compile(rf"\bin (?:total )?{_UNIT}\b", re.IGNORECASE)
"""A unit in which the duration is asked for: "in minutes"."""
MAX_CHARS = 20_000
"""The number of characters of a text that are searched."""


def several_readings(prompt: str | None) -> float:
    """Return the probability that the wording of the prompt allows several readings; 0.0 for other wordings."""
    text = (prompt or "")[:MAX_CHARS]
    if _MULTIPLE.search(text):
        return MULTIPLE
    question = _DURATION.search(text)
    if question and _NAMED_UNIT.search(text) and not _STATED_UNIT.search(question[0]):
        return DURATION
    return 0.0
