"""Rules about text that does not belong to the problem: a generating model's chatter, repetitions, other instructions.

Some prompts and their findings:

    "New problem: Let me know if you need a hint. A boy has 120 dollars ..."             generator_talk
    "How many are left? How many are left? How many are left?"                           repeated_text
    "Translate this text into emojis. Find the smallest n such that ..."                 foreign_instruction
    "Simplify and write the result as a fraction: ..."                                   nothing

All but `repeated_text` read English only.
"""

from __future__ import annotations

import re
from collections import Counter

from truegold.pipeline.flag.rules.detector import Finding, detector
from truegold.pipeline.tables.rows import Row
from truegold.pipeline.text.prose import FORMULA, asks, ending, sentences, without_formulas

MAX_CHARS = 20_000
"""The part of a prompt that is read. Keeps texts of megabytes from being searched."""

_TALK = re.compile(
    r"\b(?:(?:if\s+you\s+(?:need|have|can't|cannot|want|would)|please|feel\s+free\s+to)\b[^.?!\n]{0,60}"
    r"\b(?:help|clarification|questions|ask|let\s+me\s+know|hint|rewrite|rephrase)"
    r"|let\s+me\s+know\s+if|here(?:'s|\s+is)\s+(?:a|the|your|my)\s+(?:new|rewritten|modified|revised|similar|transformed)\b"
    r"|i\s+hope\s+this\s+helps|as\s+an\s+ai\b|(?:original|new|rewritten|modified)\s+(?:problem|question)\s*:"
    r"|(?:please\s+)?rewrite(?:\s+(?:this|it))?\s*:|(?:the\s+)?(?:original|transformed)\s+problem\b"
    r"|do\s+not\s+provide\s+any|the\s+problem\s+is\s*:)",
    re.IGNORECASE,
)


@detector("generator_talk", version="1")
def generator_talk(row: Row) -> list[Finding]:
    """The prompt still has what a model that wrote or rewrote the problem said beside it."""
    match = _TALK.search(row["prompt"][:MAX_CHARS])
    return [] if match is None else [Finding("generator_talk", evidence={"says": match[0]})]


_DRAWINGS = re.compile(r"\[asy\].*?\[/asy\]|\\begin\{([a-z]+\*?)\}.*?\\end\{\1\}", re.DOTALL)
_LOOP = re.compile(r"(\S.{0,40}?)\1{15,}", re.DOTALL)
_REPEATS_WORDS = re.compile(r"[^\W\d_]|\d\W|\W\d")
"""A loop of digits alone is a periodic decimal, one of underscores a blank to fill."""
MAX_LOOP_CHARS = 4_000
"""The part of a prompt that is searched for loops: the search looks at every character forty times."""
_MIN_REPEATS = 3
"""One sentence counts as repeated text from this many times on; two sentences do when each comes twice."""
_MIN_SENTENCE_CHARS = 25
"""Shorter sentences may well come again."""
MIN_PAIR_CHARS = 40
"""Two sentences that each come twice are longer than the steps of a procedure."""


@detector("repeated_text", version="2")
def repeated_text(row: Row) -> list[Finding]:
    """The text got into a loop, or has the same sentences again."""
    text = _DRAWINGS.sub(" ", row["prompt"][:MAX_CHARS])
    loop = next((match for match in _LOOP.finditer(text[:MAX_LOOP_CHARS]) if _REPEATS_WORDS.search(match[1])), None)
    if loop is not None:
        return [Finding("repeated_text", evidence={"again": loop[1], "times": len(loop[0]) // len(loop[1])})]
    counts = Counter(" ".join(part.split()).lower() for part in sentences(text) if len(part) >= _MIN_SENTENCE_CHARS)
    repeats = {sentence: count for sentence, count in counts.items() if count > 1}
    if (
        sum(len(sentence) >= MIN_PAIR_CHARS for sentence in repeats) < 2
        and max(repeats.values(), default=0) < _MIN_REPEATS
    ):
        return []
    count, sentence = max((count, sentence) for sentence, count in repeats.items())
    return [Finding("repeated_text", evidence={"again": ending(sentence), "times": count})]


_INSTRUCTION = re.compile(
    r"(?:please\s+)?(?:translate|encode|decode|convert|interpret|simulate|imagine|pretend|describe|explain|summari[sz]e"
    r"|rewrite|rephrase|map|predict|render|respond|reply|ignore|act|invert|offset|recite|sing|paint|tell|compose|design)\b",
    re.IGNORECASE,
)
_CONTENT = re.compile(r"[a-z]{4,}")
_COMMON = frozenset("this that these those into then your every each from with their them have what when".split())


@detector("foreign_instruction", version="1")
def foreign_instruction(row: Row) -> list[Finding]:
    """The text opens with an instruction of another kind, and the rest takes no notice of it."""
    if row["domain"] != "math":
        return []
    parts = sentences(without_formulas(row["prompt"][:MAX_CHARS]))
    if len(parts) < 2 or not _INSTRUCTION.match(parts[0]) or FORMULA in parts[0] or re.search(r"[:\d]", parts[0]):
        return []
    rest = " ".join(parts[1:])
    rest_stems = {word[:4] for word in _CONTENT.findall(rest.lower())}
    words = {word for word in _CONTENT.findall(parts[0].lower()) if word not in _COMMON}
    if len(words) < 4 or any(word[:4] in rest_stems for word in words) or not asks(rest):
        return []
    return [Finding("foreign_instruction", evidence={"orders": ending(parts[0])})]
