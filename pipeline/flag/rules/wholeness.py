"""Rules about a prompt that is not whole: cut off, or pointing at a picture that did not come along.

Some prompts and their findings:

    "Tom has 12 apples. He buys 9 more and gives away 5. How many apples does"     truncated_text
    "As shown in the figure below, Tom has some apples. He buys 9 more. ..."      missing_figure
    "What is the value of x if 3x + 2 ="                                          nothing: a blank to fill
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from truegold.pipeline.flag.rules.detector import Finding, detector
from truegold.pipeline.flag.rules.prose import CHINESE, FORMULA, asks, excerpt, sentences, without_formulas
from truegold.pipeline.rows import Row

_TERMINAL = re.compile(r"[.?!。？！:：;；)\]）】}\"'”’$>|=_%]$|" + FORMULA + "$")
_DANGLING_WORD = re.compile(
    r"(?:^|\s)(?:the|an|and|or|but|if|because|while|whose|how|how many|his|their|its|your|every)$", re.IGNORECASE
)
_DANGLING_MARK = re.compile(r"[,，、]$|(?<=[A-Za-z])-$")
_DANGLING_CHINESE = re.compile(r"[一-鿿](?:和|与|或|把|被|如果|因为|并且|以及)$")
_TRAILING_DOTS = re.compile(r"(?:\b[a-z]{1,20}|[一-鿿])\s?(?:\.{3,}|…+)$")
_LEFT_OPEN = re.compile(r"\b(?:is|are|was|were|be|equals?|to|by|of|than|from|into|as)$", re.IGNORECASE)
"""A statement that stops here is often meant to be completed, as in "The square root of 16 is"."""
MIN_STORY_WORDS = 10
"""A single sentence of fewer words without a question is taken for an expression or a title, not for a cut story."""
_OPEN_DOLLAR = re.compile(r"(?<!\\)\$")
_LATEX = re.compile(r"\\[A-Za-z]+|[\^_]\{")

# Such questions stop before their verb: "How many apples does Tom", "How many birds are in", "How many apples".
_HALF_QUESTION = re.compile(
    r"(?:and\s+)?how\s+(?:many|much)\s+"
    r"(?:(?:[a-z]+\s+){0,3}(?:does|do|did)(?:\s+(?:the\s+)?[a-z]+)?"
    r"|(?:[a-z]+\s+){1,3}(?:is|are|was|were)(?:\s+(?:in|on|at|from))?"
    r"|[a-z]+)",
    re.IGNORECASE,
)


def _has_open_formula(text: str) -> bool:
    """Whether a formula opens and never closes. Amounts of money leave odd dollars too, so LaTeX must follow."""
    marks = [match.start() for match in _OPEN_DOLLAR.finditer(text)]
    return len(marks) % 2 == 1 and bool(_LATEX.search(text, marks[-1]))


def _has_open_brace(text: str) -> bool:
    """Whether a LaTeX argument opens and never closes."""
    bare = text.replace("\\{", "").replace("\\}", "")
    return bool(_LATEX.search(bare)) and bare.count("{") > bare.count("}") and not _TERMINAL.search(text)


def _signs_of_a_cut(text: str) -> Iterator[tuple[str, float]]:
    """Yield what shows that a text was cut, and the confidence of each sign."""
    prose = without_formulas(text).strip()
    if _has_open_formula(text):
        yield "a formula is not closed", 0.8
    if _has_open_brace(text):
        yield "a brace is not closed", 0.8
    if _TRAILING_DOTS.search(prose):
        yield "trailing dots", 0.7
    if _DANGLING_MARK.search(prose):
        yield "ends with a comma or a hyphen", 0.85
    if not prose or _TERMINAL.search(prose):
        return
    if _DANGLING_WORD.search(prose) or _DANGLING_CHINESE.search(prose):
        yield "ends with a word that must go on", 0.9
    parts = sentences(prose)
    if _HALF_QUESTION.fullmatch(parts[-1]):
        yield "the question has no verb", 0.85
    story = (len(parts) > 1 or len(prose.split()) >= MIN_STORY_WORDS) and not CHINESE.search(prose)
    if story and not _LEFT_OPEN.search(prose) and not asks(prose):
        yield "ends within a sentence and asks nothing", 0.8


@detector("truncated_text", version="1")
def truncated_text(row: Row) -> list[Finding]:
    """The prompt stops in the middle of a sentence or a formula."""
    if row["domain"] == "code":  # A code prompt may well end in an open signature.
        return []
    text = row["prompt"].strip()
    for sign, confidence in _signs_of_a_cut(text):
        return [Finding("truncated_text", confidence, {"sign": sign, "end": excerpt(text, 60)})]
    return []


_PICTURE = (
    r"(?:figures?|diagrams?|graphs?|pictures?|images?|charts?|tables?|drawings?|illustrations?|pictographs?"
    r"|histograms?)"
)
_POINTER = re.compile(
    rf"\b{_PICTURE}\s+(?:is\s+|are\s+|as\s+)?(?:shown|below|above|on\s+the\s+(?:right|left))\b"
    rf"|\b(?:shown|given|pictured|illustrated|depicted|displayed|see|refer\s+to)\s+(?:in|on|by)?\s*(?:the\s+)?"
    rf"(?:(?:accompanying|attached|following|adjacent|above|below)\s+)?(?:figure|diagram|graph|chart|illustration)\b"
    rf"|\bthe\s+(?:following|accompanying|attached|adjacent)\s+(?:figure|diagram|graph|picture|image|chart|drawing)\b"
    r"|\b(?:in|from)\s+the\s+(?:figure|diagram)\b"
    r"|\bas\s+(?:shown|pictured|illustrated|depicted)(?:\s+(?:below|above|here|on\s+the\s+right|to\s+the\s+right)|[,.])"
    r"|\b(?:shown|pictured)\s+(?:below|to\s+the\s+right)\b",
    re.IGNORECASE,
)
_POINTER_CHINESE = re.compile(
    r"如[下上左右]?图|[下上左右]图(?!书|画|形)|图中|图示|如下?表|(?<!一)下表|见图|看图|(?:图|表)所示"
)
_EMBEDDED = re.compile(r"!\[[^\]]{0,300}\]\(|<img\b|\\includegraphics")
_HAS_DRAWING = re.compile(
    r"\[asy\]|\\begin\{(?:tikzpicture|tabular|array|asy|picture|align|pmatrix|bmatrix)|\n\s*\|.*\|.*\n|\t"
)


def _has_typed_table(text: str) -> bool:
    """Whether lines with numbers follow, which are the table itself."""
    return sum(any(char.isdigit() for char in line) for line in text.split("\n")[1:]) >= 2


@detector("missing_figure", version="1")
def missing_figure(row: Row) -> list[Finding]:
    """The prompt points at a figure or table, and its text has neither."""
    text = row["prompt"]
    embedded = _EMBEDDED.search(text)
    if embedded:
        return [Finding("missing_figure", 0.9, {"embeds": excerpt(embedded[0])})]
    pointer = _POINTER.search(text) or _POINTER_CHINESE.search(text)
    if pointer is None or _HAS_DRAWING.search(text) or _has_typed_table(text[pointer.end() :]):
        return []
    return [Finding("missing_figure", 0.85, {"mentions": pointer[0]})]
