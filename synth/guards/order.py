"""Does an output state its answer before it has derived it?

"The answer is 16, because 12+9=21 and 21-5=16."     yes
"We have to arrive at 16: 12+9=21, 21-5=16."          yes: 16 is not in the problem
"12+9=21, 21-5=16. The answer is 16."                 no
"16"                                                  no: nothing is derived at all
"""

from __future__ import annotations

import re

from truegold.synth.guards.text import OPERATION, normal

NEAR = 30
"""An answer stands within so many characters of the words that state it."""
_STATEMENT = re.compile(
    r"\banswer\b[^.\n]{0,20}?(?:is|:|=|be)|\bresult\b[^.\n]{0,12}?(?:is|:|=)|\\boxed"
    r"|\b(?:comes? (?:out )?(?:to|at)|arrive at|amounts? to|(?:has|have|ought) to (?:be|equal)"
    r"|(?:must|should|will) (?:be|equal))"
    r"|答案(?:是|为|:|：)?|结果(?:是|为|应)|因此是|应该?(?:等于|得到?|是|为)|得到"
)
_NUMERAL = re.compile(r"(?<![a-z\d.])-?\d[\d,]*(?:\.\d+)?(?![a-z\d]|\.\d)")
_DERIVES = re.compile(r"\bbecause\b|\bsince\b|\bas\b|\bstep\b|\bfirst\b|\bso\b|因为|由于|首先|步")


def states_answer_first(output: str, problem: str, extracted: str | None) -> bool:
    """Return whether the answer stands in the output before the first step towards it."""
    answer = normal(extracted or "").strip().strip("$").strip()
    if not answer or "\n" in answer:
        return False
    text = normal(output)
    start = _position(text, answer)
    if start is None:
        return False
    before, after = text[:start], text[start + len(answer) :]
    is_stated = any(match.end() <= start and start - match.end() <= NEAR for match in _STATEMENT.finditer(before))
    if not OPERATION.search(after) and not (is_stated and _DERIVES.search(after)):
        return False
    before = _STATEMENT.sub(" ", before)
    if OPERATION.search(before):
        return False
    if is_stated:
        return True
    # A number that nobody has mentioned yet, in front of all steps.
    return bool(_NUMERAL.fullmatch(answer)) and _position(normal(problem), answer) is None and answer not in "0 1 2"


def _position(text: str, answer: str) -> int | None:
    """Return where an answer stands first, a number only where it is a whole one."""
    if _NUMERAL.fullmatch(answer):
        plain = answer.replace(",", "")
        return next((match.start() for match in _NUMERAL.finditer(text) if match[0].replace(",", "") == plain), None)
    start = text.find(answer)
    return None if start < 0 else start
