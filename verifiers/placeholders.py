"""Golds that stand in place of an answer: a row that has one has no gold, whatever a response says.

    "see the solution below", "answers may vary", "证明略"      refers elsewhere: no verifier can compare with it
    "N/A", "TBD", "null", "-", "?", "\\boxed{}"                 a placeholder, unless such texts are the answers
    "none", "no solution", "undefined", "0"                     answers

A verdict on them has no score: 0 would teach that right answers are wrong, and a match would pay for writing "N/A".
"""

from __future__ import annotations

import re

MAX_CHARS = 2_000
"""A longer gold says something."""

_ELSEWHERE = re.compile(
    r"(?:please\s+)?(?:see|refer\s+to)\s+(?:the\s+)?(?:\w+\s+)?(?:solutions?|above|below|explanation|figures?|pictures?|images?"
    r"|diagrams?|graphs?|proof|text|attached|answer\b|notes?|back|book|page|appendix|table|work).*"
    r"|(?:the\s+)?(?:answers?|graphs?|proofs?|solutions?)\s+(?:will\s+|may\s+|can\s+)?(?:var(?:y|ies)|differ|(?:is\s+|are\s+)?(?:omitted|missing|not\s+\w+|shown\s+\w+|left\s+to\s+.*)).*"
    r"|(?:answer|solution)?\s*(?:is\s+)?(?:not\s+(?:given|available|provided|known|applicable)|omitted|missing|tbc|pending)"
    r"|(?:答案)?(?:略|不唯一|暂无)|暂无答案|见(?:解析|解答|详解|答案|图|上|下).*|证明(?:略|见.*)",
    re.IGNORECASE,
)
_NOTHING = re.compile(
    r"n\.?\s*/\s*a\.?|n\.a\.|tb[dac]|to\s*do|nan|null|unknown|no\s+answer|none\s+given|blank|empty|(?:the\s+)?proof|q\.?e\.?d\.?"
    r"|error|undefined\s+answer|x{3,}"
    r"|[-–—_.…*?？\s\"'$]*|\(\s*\)|\{\s*\}|\[\s*\]|\\(?:boxed|text)\s*\{\s*\}|<[^<>]{0,20}>"
    r"|(?:答案)?无|无答案",
    re.IGNORECASE,
)
_WRITTEN_NULL = "None"
"""Python's None turned into text; "none" in other spellings is a possible answer."""


def refers_elsewhere(gold: str) -> bool:
    """Return whether a gold says that the answer is somewhere else, or that there is none."""
    return len(gold) <= MAX_CHARS and _ELSEWHERE.fullmatch(gold.strip()) is not None


def is_placeholder(gold: str) -> bool:
    """Return whether a gold stands in place of an answer that nobody wrote down."""
    text = gold.strip()
    if text[:1].isdigit() or (text[:1] == "\\" and text[1:2] not in "bt"):
        # No pattern begins like this, and most golds do.
        return False
    is_nothing = text == _WRITTEN_NULL or (len(text) <= MAX_CHARS and _NOTHING.fullmatch(text) is not None)
    return is_nothing or refers_elsewhere(gold)
