"""Rules about the gold answer: a placeholder instead of an answer, or a worked solution that ends elsewhere.

Some rows and their findings:

    {"gold": "see solution"}                                       empty_or_placeholder_gold
    {"gold": "17", "solution": "12+9=21-5=16 \\boxed{16}"}         solution_contradicts_gold, suggests 16
    {"gold": "50%", "solution": "... #### 0.5"}                    nothing: the same number, written otherwise
"""

from __future__ import annotations

import re

from truegold.pipeline.flag.rules.detector import Finding, detector
from truegold.pipeline.flag.rules.numbers import MAX_CHARS, WrittenNumber, format_number, read_number
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
        # Code is judged by its tests, and a user's own verifier may need no gold, so only math has to have one.
        return [] if row["domain"] != "math" else [Finding("empty_or_placeholder_gold", 0.95, {"gold": None})]
    text = gold.strip()
    if len(text) <= MAX_CHARS and (text == _WRITTEN_NULL or _PLACEHOLDER.fullmatch(text)):
        return [Finding("empty_or_placeholder_gold", 0.95, {"gold": text})]
    if text.endswith(("?", "？")):
        return [Finding("empty_or_placeholder_gold", 0.9, {"gold": excerpt(text)})]
    return []


def _final_value(solution: str) -> tuple[WrittenNumber | None, str]:
    """Return the number that a worked solution ends in, and the mark before it: `####`, a box, or a last `=`."""
    _, hashes, after = solution.rpartition(_HASHES)
    if hashes:
        return read_number(after.strip().partition("\n")[0].strip()), _HASHES
    start = solution.rfind("\\boxed{")
    if start >= 0:
        return read_number(_read_braced(solution, start + len("\\boxed{"))), "boxed"
    ending = _ARITHMETIC_END.search(solution[-MAX_CHARS:])
    return read_number(ending[1]) if ending else None, "last ="


def _read_braced(text: str, start: int) -> str:
    """Return the text from `start` to the brace that closes the one before it."""
    depth = 1
    for end in range(start, min(len(text), start + MAX_CHARS)):
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        if depth == 0:
            return text[start:end]
    return text[start:]


@detector("solution_contradicts_gold", version="1")
def solution_contradicts_gold(row: Row) -> list[Finding]:
    """The worked solution ends in a number other than gold. One of the two is wrong; a reviewer says which."""
    gold = read_number(row["gold"])
    if gold is None or not row["solution"]:
        return []
    final, mark = _final_value(row["solution"])
    if final is None or final.same_as(gold):
        return []
    confidence = 0.6 if mark == "last =" else 0.9
    evidence = {"gold": row["gold"], "solution_ends": excerpt(row["solution"]), "found": mark}
    return [Finding("solution_contradicts_gold", confidence, evidence, suggestion=format_number(final))]
