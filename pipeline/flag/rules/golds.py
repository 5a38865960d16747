"""Rules about the gold answer: a placeholder instead of an answer, or a worked solution that ends elsewhere.

What becomes of such rows:

    {"gold": "see solution"}                                       empty_or_placeholder_gold
    {"gold": "17", "solution": "12+9=21-5=16 \\boxed{16}"}         solution_contradicts_gold, suggests 16
    {"gold": "50%", "solution": "... #### 0.5"}                    nothing: the same number, written otherwise
"""

from __future__ import annotations

import re

from truegold.pipeline.flag.rules.detector import Finding, detector
from truegold.pipeline.flag.rules.numbers import MAX_CHARS, Number, plain, read_number
from truegold.pipeline.flag.rules.prose import excerpt
from truegold.pipeline.rows import Row

_PLACEHOLDER = re.compile(
    r"(?:please\s+)?(?:see|refer\s+to)\s+(?:the\s+)?(?:solutions?|above|below|explanation|figure|proof|text|attached|answer\b).*"
    r"|(?:the\s+)?answers?\s+(?:will|may|can)?\s*var(?:y|ies).*"
    r"|(?:answer|solution)?\s*(?:is\s+)?(?:not\s+(?:given|available|provided|known)|omitted|missing)"
    r"|n\.?\s*/\s*a\.?|n\.a\.|tb[da]|to\s*do|nan|null|unknown|no\s+answer|(?:the\s+)?proof|q\.?e\.?d\.?"
    r"|[-–—_.…*\s]*|\(\s*\)|\{\s*\}|\\boxed\s*\{\s*\}"
    r"|(?:答案)?(?:略|不唯一|无|暂无)|无答案|暂无答案|见(?:解析|解答|详解|答案|上|下).*|证明(?:略|见.*)",
    re.IGNORECASE,
)
_WRITTEN_NULL = "None"
"""Python's None turned into text; "none" in other spellings is a possible answer."""

_HASHES = "####"
_ARITHMETIC_END = re.compile(r"[\d)%]\s*=\s*(\$?-?[\d.,]*\d%?)\s*(?:[a-z]{2,}\s*){0,2}[.。]?\s*\Z", re.IGNORECASE)


@detector("empty_or_placeholder_gold", version="1")
def empty_or_placeholder_gold(row: Row) -> list[Finding]:
    """No answer where one should be: empty, "see solution", "N/A", "answers will vary", "?"."""
    gold = row["gold"]
    if gold is None:
        # Code is judged by its tests, and a verifier of one's own may need no gold: nothing to say about those.
        return [] if row["domain"] != "math" else [Finding("empty_or_placeholder_gold", 0.95, {"gold": None})]
    text = gold.strip()
    if len(text) <= MAX_CHARS and (text == _WRITTEN_NULL or _PLACEHOLDER.fullmatch(text)):
        return [Finding("empty_or_placeholder_gold", 0.95, {"gold": text})]
    if text.endswith(("?", "？")):
        return [Finding("empty_or_placeholder_gold", 0.9, {"gold": excerpt(text)})]
    return []


def final_value(solution: str) -> tuple[Number, str] | None:
    """The number a worked solution ends in and where it stood: after `####`, in the last box, after a last `=`."""
    _, hashes, after = solution.rpartition(_HASHES)
    if hashes:
        number = read_number(after.strip().partition("\n")[0].strip())
        return None if number is None else (number, _HASHES)
    start = solution.rfind("\\boxed{")
    if start >= 0:
        number = read_number(_braced(solution, start + len("\\boxed{")))
        return None if number is None else (number, "boxed")
    ending = _ARITHMETIC_END.search(solution[-MAX_CHARS:])
    number = read_number(ending[1]) if ending else None
    return None if number is None else (number, "last =")


def _braced(text: str, start: int) -> str:
    """What stands from `start` to the brace that closes the one before it."""
    depth = 1
    for place in range(start, min(len(text), start + MAX_CHARS)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return text[start:place]
    return text[start:]


@detector("solution_contradicts_gold", version="1")
def solution_contradicts_gold(row: Row) -> list[Finding]:
    """The worked solution ends in a number other than the gold. One of the two is wrong; a reviewer says which."""
    gold = read_number(row["gold"])
    if gold is None or not row["solution"]:
        return []
    found = final_value(row["solution"])
    if found is None or found[0].same_as(gold):
        return []
    number, place = found
    confidence = 0.6 if place == "last =" else 0.9
    evidence = {"gold": row["gold"], "solution_ends": excerpt(row["solution"]), "found": place}
    return [Finding("solution_contradicts_gold", confidence, evidence, suggestion=plain(number))]
