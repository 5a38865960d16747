"""A rule about a prompt with a hole in its middle, where a mark stands for what was there.

"Tom has [NUM] apples and buys 9 more. How many has he?"             gap_in_text: a placeholder
"Tom has 12 apples. He buys 9 [...] does he have?"                   gap_in_text: words were left out
"Tom has 12 apples. He buys ... gives away 5. How many are left?"    gap_in_text: dots between words
"Find 1 + 2 + ... + 100."   "[ABC] is the area of triangle ABC."     nothing
"End your reply with 'Result: <number>'."   "Use <value> </value>."  nothing: this says how an answer is written
"""

from __future__ import annotations

import re

from truegold.pipeline.flag.rules.detector import Finding, detector
from truegold.pipeline.tables.rows import Row
from truegold.pipeline.text.options import find_options
from truegold.pipeline.text.prose import ending, without_formulas

MIN_NUMBERS = 2
"""Dots in a text with fewer numbers are more often a quotation than a cut."""
SHOWN_CHARS = 25
"""Characters shown on each side of a gap."""

_DRAWING = re.compile(r"\[asy\].*?(?:\[/asy\]|$)|\\begin\{.*?\\end\{[a-z*]+\}", re.DOTALL)
_PLACEHOLDER = re.compile(
    r"(?<![\\A-Za-z])(?:\[{1,2}|<{1,2}|\{{1,2})\s*"
    r"(?:num(?:ber)?s?|values?|quantity|amounts?|blank|mask(?:ed)?|missing|unk(?:nown)?|redacted|removed|deleted|placeholder"
    r"|todo|tbd|x{3,}|names?|person|object|item|unit|entity|date|place|city|insert [a-z ]{2,20})"
    r"[_ ]?\d{0,2}\s*(?:\]{1,2}|>{1,2}|\}{1,2})",
    re.IGNORECASE,
)
"""A word for the kind of what is missing, in brackets; `[ABC]` is an area."""
_LEFT_OUT = re.compile(
    r"[\[(<{]\s*(?:\.{3,}|…+|truncated|snip(?:ped)?|omitted|text missing|continued)\s*[\])>}]", re.IGNORECASE
)
_DOTS = re.compile(r"\b[a-z]{2,}\s*(?:\.{3,}|…+)\s*[a-z]{2,}\b|[a-z]{2,}\s(?:\.{3,}|…+)\s[A-Za-z\d]")
_SENTENCE_END = re.compile(r"(?<=[.?!])['\")]*\s+|(?<!:)\n\s*\n")
_ABOUT_FORM = re.compile(
    r"\b(?:(?:the|your|final) (?:\w+ )?(?:answer|response|reply|output)|answer\s*[:=]"
    r"|answer (?:as|in|with|using|format)\b|respond (?:as|in|with)|of the form"
    r"|(?:in|using|with|follow) (?:the|this) (?:following |exact )?(?:form|format|template)"
    r"|(?:in|with|between|inside|into|these|xml) (?:the )?(?:\S+ )?tags?|boxed"
    r"|(?:enclose|wrap|put|write) (?:it|your|the \w+ in)"
    r"|your (?:final |last )?(?:results?|solutions?|conclusions?|line|work|message)"
    r"|(?:final|last) (?:line|sentence) (?:should|must|has to)|(?:results?|conclusion|final)\s*[:=])",
    re.IGNORECASE,
)
"""A sentence with such a word tells how the answer is to be written: its brackets are for the reader to fill."""
_DIGITS = re.compile(r"\d+")
_BLANK = re.compile(r"\b(?:fill|blanks?|complete|choose)\b|_{2,}", re.IGNORECASE)
"""Where something is to be filled in, dots are the question."""


@detector("gap_in_text", version="2")
def gap_in_text(row: Row) -> list[Finding]:
    """Words or numbers in the middle of the prompt are gone."""
    if row["domain"] == "code" or row.get("verifier") == "choice" or find_options(row["prompt"]) is not None:
        return []
    prose = without_formulas(_DRAWING.sub(" ", row["prompt"]))
    signs = [("a placeholder", _PLACEHOLDER), ("words were left out", _LEFT_OUT)]
    if _BLANK.search(prose) is None and len(_DIGITS.findall(prose)) >= MIN_NUMBERS:
        signs.append(("dots between words", _DOTS))
    for sign, pattern in signs:
        for match in pattern.finditer(prose):
            if _is_about_form(prose, match):
                continue
            around = prose[max(0, match.start() - SHOWN_CHARS) : match.end() + SHOWN_CHARS]
            return [Finding("gap_in_text", evidence={"sign": sign, "at": ending(around)})]
    return []


def _is_about_form(prose: str, match: re.Match[str]) -> bool:
    """Return whether a mark is part of an instruction on the answer's form: by its sentence, or as a pair of tags."""
    name = match[0].strip("<> ")
    if match[0].startswith("<") and re.search(rf"</\s*{re.escape(name)}\s*>", prose[match.end() :]):
        return True
    start = max((end.end() for end in _SENTENCE_END.finditer(prose, 0, match.start())), default=0)
    end = _SENTENCE_END.search(prose, match.end())
    return _ABOUT_FORM.search(prose, start, end.start() if end else len(prose)) is not None
