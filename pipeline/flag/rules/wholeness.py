"""Rules about a prompt that is not whole: cut off, or pointing at a picture that did not come along.

Some prompts and their findings:

    "Tom has 12 apples. He buys 9 more and gives away 5. How many apples does"     truncated_text
    "As shown in the figure below, Tom has some apples. He buys 9 more. ..."      missing_figure
    "What is the value of x if 3x + 2 ="                                          nothing: a blank to fill
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from truegold.pipeline.flag.rules.detector import Finding, detector
from truegold.pipeline.tables.rows import Row
from truegold.pipeline.text.options import find_options
from truegold.pipeline.text.prose import CHINESE, FORMULA, asks, ending, sentences, without_formulas

_MARKS_THAT_GO_ON = frozenset(",，、-‐–—・、،")
"""Marks of punctuation after which a sentence goes on; all others, of any script, may end one."""
_ENDS_FORMULA = re.compile(r"[$>|=_%^]$|" + FORMULA + "$")
_DANGLING_WORD = re.compile(
    r"(?:^|\s)(?:the|an|and|or|but|if|while|whose|how|how many|his|their|its|your|every)$", re.IGNORECASE
)
_DANGLING_MARK = re.compile(r"[,，、]$|(?<=[A-Za-z])-$")
_DANGLING_CHINESE = re.compile(r"[一-鿿](?:和|与|或|把|被|如果|因为|并且|以及)$")
_TRAILING_DOTS = re.compile(r"\b[a-z]{1,20}\s?(?:\.{3,}|…+)$|[一-鿿]\s?(?:\.{6,}|…{2,})$")
_LEFT_OPEN = re.compile(
    r"\b(?:is|are|was|were|be|equals?|to|by|of|than|from|into|as|on|in|at|for|that|because|except|satisf(?:y|ies)|called|form|means?"
    r"|has|have|can|will|would|must|should|and/or|approximately|about)$"
    r"|\b(?:following|statements?|above|except|satisf(?:y|ies)|equivalent|closest|correct|argument)\b",
    re.IGNORECASE,
)
"""A statement that stops here, or speaks of options, is meant to be completed: "The square root of 16 is", "All of the
following hold, except"."""
MIN_STORY_WORDS = 10
"""A single sentence of fewer words without a question is taken for an expression or a title, not for a cut story."""
_OPEN_DOLLAR = re.compile(r"(?<!\\)\$")
_PROSE = re.compile(r"\b[a-z]{3,} [a-z]{2,} [a-z]{3,}")
_LATEX = re.compile(r"\\[A-Za-z]+|[\^_]\{")

# Such questions stop before their verb: "How many apples does Tom", "How many birds are in", "How many apples".
_HALF_QUESTION = re.compile(
    r"(?:and\s+)?how\s+(?:many|much)\s+"
    r"(?:(?:[a-z]+\s+){0,3}(?:does|do|did)(?:\s+(?:the\s+)?[a-z]+)?"
    r"|(?:[a-z]+\s+){1,3}(?:is|are|was|were)(?:\s+(?:in|on|at|from))?"
    r"|[a-z]+)",
    re.IGNORECASE,
)


_HALF_CONDITION = re.compile(
    r"(?:If|When|Since|Suppose|After|Given|While)\b(?:(?!\b(?i:how|what|which|find)\b)[^,?:])*|(?:What|How|Which|Who|When)",
    re.ASCII,
)
"""Such a last sentence breaks off: "If there are 6 servings of", "What"."""


def _has_open_formula(text: str) -> bool:
    """Whether a formula opens and never closes. Amounts of money leave odd dollars too, so LaTeX must follow."""
    marks = [match.start() for match in _OPEN_DOLLAR.finditer(text)]
    if len(marks) % 2 == 0 or _PROSE.search(text, marks[-1]):
        return False
    return bool(_LATEX.search(text, marks[-1]))


def _has_open_brace(text: str) -> bool:
    """Whether a LaTeX argument opens and never closes."""
    bare = text.replace("\\{", "").replace("\\}", "")
    return bool(_LATEX.search(bare)) and bare.count("{") > bare.count("}") and not _ends_whole(text)


def _ends_whole(text: str) -> bool:
    """Whether the last character may end a prompt: a mark of punctuation of any script, or a formula."""
    last = text[-1:]
    is_mark = unicodedata.category(last or " ")[0] == "P" and last not in _MARKS_THAT_GO_ON
    return is_mark or bool(_ENDS_FORMULA.search(text))


def _signs_of_a_cut(text: str) -> Iterator[str]:
    """Yield what shows that a text was cut."""
    prose = without_formulas(text).strip()
    if _has_open_formula(text):
        yield "a formula is not closed"
    if _has_open_brace(text):
        yield "a brace is not closed"
    if _TRAILING_DOTS.search(prose):
        yield "trailing dots"
    if _DANGLING_MARK.search(prose) and not _LEFT_OPEN.search(prose.rstrip(",-")):
        yield "ends with a comma or a hyphen"
    if not prose or _ends_whole(prose):
        return
    if _DANGLING_WORD.search(prose) or _DANGLING_CHINESE.search(prose):
        yield "ends with a word that must go on"
    parts = sentences(prose)
    if _HALF_QUESTION.fullmatch(parts[-1]):
        yield "the question has no verb"
    if len(parts) > 1 and _HALF_CONDITION.fullmatch(parts[-1]):
        yield "a condition without its question"
    story = (len(parts) > 1 or len(prose.split()) >= MIN_STORY_WORDS) and not CHINESE.search(prose)
    if story and not _LEFT_OPEN.search(parts[-1]) and not asks(prose):
        yield "ends within a sentence and asks nothing"


@detector("truncated_text", version="2")
def truncated_text(row: Row) -> list[Finding]:
    """The prompt stops in the middle of a sentence or a formula."""
    # A code prompt may well end in an open signature, and the stem of a choice in the middle of a sentence.
    if row["domain"] == "code" or row.get("verifier") == "choice" or find_options(row["prompt"]) is not None:
        return []
    text = row["prompt"].strip()
    sign = next(_signs_of_a_cut(text), None)
    return [] if sign is None else [Finding("truncated_text", evidence={"sign": sign, "end": ending(text, 60)})]


MAX_CHARS = 5_000
"""The part of a prompt that is searched for shapes."""
_PICTURE = (
    r"(?:figures?|diagrams?|graphs?|pictures?|images?|charts?|tables?|drawings?|illustrations?|pictographs?"
    r"|histograms?)"
)
_POINTER = re.compile(
    rf"\b{_PICTURE}\s+(?:is\s+|are\s+|as\s+)?(?:shown|below|above|(?:on|to)\s+the\s+(?:right|left))\b"
    rf"|\baccording\s+to\s+(?:the|this)\s+{_PICTURE}\b"
    rf"|\b(?:shown|given|pictured|illustrated|depicted|displayed|see|refer\s+to)\s+(?:in|on|by)?\s*(?:the\s+)?"
    rf"(?:(?:accompanying|attached|following|adjacent|above|below)\s+)?(?:figure|diagram|graph|chart|illustration)\b"
    rf"|\bthe\s+(?:following|accompanying|attached|adjacent)\s+(?:figure|diagram|graph|picture|image|chart|drawing)\b"
    r"|\b(?:in|from)\s+the\s+(?:figure|diagram)\b"
    r"|\bas\s+(?:shown|pictured|illustrated|depicted)\s+(?:below|above|here|on\s+the\s+right|to\s+the\s+right)\b"
    r"|\b(?:shown|pictured)\s+(?:below|to\s+the\s+right)\b"
    rf"|(?:^|[.?!:]\s+)(?:from|in|with|using|use|based\s+on|look(?:ing)?\s+at|refer(?:ring)?\s+to|see|consider|study|observe"
    rf"|examine)\s+(?:the|this)\s+(?:[a-z]+\s+)?{_PICTURE}\s*[,.:;]",
    re.IGNORECASE,
)
"""The last kind is a sentence, or its opening, that says no more of the picture: "Look at the chart." A picture that
the text describes goes on: "In the graph of $y = x^2$, ..."."""
_SHAPE = (
    r"(?:triangles?|circles?|squares?|rectangles?|trapezoids?|semicircles?|polygons?|pentagons?|hexagons?|quadrilaterals?|angles?"
    r"|regions?|shaded|radi(?:us|i)|tangent|cubes?|pyramids?|folded|lines?)"
)
_SHAPE_AS_SHOWN = re.compile(
    rf"\b{_SHAPE}\b.*\bas\s+(?:shown|pictured|illustrated)\s*[,.]"
    r"|\b(?:array|grid|map|spinner|number\s+line|dartboard|shape|polygon|triangle|circle|square|rectangle)\s+(?:shown\s+)?below\b",
    re.IGNORECASE | re.DOTALL,
)
"""A shape that is "as shown" was drawn; a sum or a sequence is shown in the text itself."""
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


@detector("missing_figure", version="3")
def missing_figure(row: Row) -> list[Finding]:
    """The prompt points at a figure or table, and its text has neither."""
    text = row["prompt"]
    embedded = _EMBEDDED.search(text)
    if embedded:
        return [Finding("missing_figure", evidence={"embeds": ending(embedded[0])})]
    pointer = _POINTER.search(text) or _SHAPE_AS_SHOWN.search(text[:MAX_CHARS]) or _POINTER_CHINESE.search(text)
    if pointer is None or _HAS_DRAWING.search(text) or _has_typed_table(text[pointer.end() :]):
        return []
    return [Finding("missing_figure", evidence={"mentions": ending(pointer[0], 60)})]
