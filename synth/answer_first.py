"""Finds outputs that state their answer, and derive it afterwards: the answer came from the context.

"The answer is 16, because 12+9=21 and 21-5=16."     stated before the first step
"16. First add 12 and 9 ..."                         a number of which the problem does not speak
"12+9=21, 21-5=16. The answer is 16."                no: derived first
"The answer is 16."                                  no: nothing is derived at all
"""

from __future__ import annotations

import re

from truegold.synth.concepts import OPERATION, normal

NEAR = 30
"""An answer within so many characters of words such as "the answer is" is stated by them."""
_STATEMENT = re.compile(
    r"\banswer\b[^.\n]{0,20}?(?:is|:|=|be)|\bresult\b[^.\n]{0,12}?(?:is|:|=)|\\boxed"
    r"|\b(?:comes? (?:out )?(?:to|at)|arrive at|amounts? to|(?:has|have|ought) to (?:be|equal)"
    r"|(?:must|should|will) (?:be|equal))"
    r"|答案(?:是|为|:|：)?|结果(?:是|为|应)|因此是|应该?(?:等于|得到?|是|为)|得到"
)
"""Words that state an answer: "the answer is", "the result:", "it comes out to", "it must be", "答案是"."""
_NUMERAL = re.compile(r"(?<![a-z\d.])-?\d[\d,]*(?:\.\d+)?(?![a-z\d]|\.\d)")
"""A whole number as it stands in a text: -3, 1,200 and 0.5, but neither the 2 of x2 nor the 1.5 of 1.5.2."""
_DERIVES = re.compile(r"\bbecause\b|\bsince\b|\bas\b|\bstep\b|\bfirst\b|\bso\b|因为|由于|首先|步")
"""Words of a derivation that has no operation in it: "because all of them are even"."""


def states_answer_first(output: str, problem: str, extracted: str | None) -> bool:
    """Return whether the answer stands in the output before the first step towards it, which follows.

    extracted: the answer as the verifier has read it. A bare number counts only where the problem does not have it.
    """
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
    """Return where an answer stands first in a text: 12 in "112 and 12" at 8, since it is a part of 112 before."""
    if _NUMERAL.fullmatch(answer):
        plain = answer.replace(",", "")
        return next((match.start() for match in _NUMERAL.finditer(text) if match[0].replace(",", "") == plain), None)
    start = text.find(answer)
    return None if start < 0 else start
