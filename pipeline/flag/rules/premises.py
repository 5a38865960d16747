"""Rules about a story without a question, and about counts that cannot be, seen without a model.

Some prompts and their findings:

    "If each pack costs 81 dollars, how much will it cost to buy -33 packs?"             negative_count
    "Each pack costs 107 dollars. There is a discount of 106 dollars on each pack."      no_question

Most missing premises show in no word or number, and are missed. `negative_count` reads English only.
"""

from __future__ import annotations

import re

from truegold.pipeline.flag.rules.detector import Finding, detector
from truegold.pipeline.tables.rows import Row
from truegold.pipeline.text.options import find_options
from truegold.pipeline.text.prose import FORMULA, ending, sentences, without_formulas

_ASKED = re.compile(r"\bhow\s+(?:many|much)\b", re.IGNORECASE)

_NEGATIVE_COUNT = re.compile(
    r"(?<![\d)\]}=+*/%])\s[-−]\d+(?:\.\d+)?\s+(?!degrees?\b|°|points?\b|feet\b|meters?\b|and\b|to\b|or\b|is\b|in\b|as\b|from\b"
    r"|on\b|have\b|are\b|c\b|f\b|celsius|fahrenheit|times\b|units?\b|percent)(?P<noun>[a-z]{3,})",
    re.IGNORECASE,
)
_COUNT_FOLLOWS = re.compile(
    r"\b(?:has|had|have|buys?|bought|sells?|sold|gets?|got|gives?|gave|eats?|ate|needs?|found|made|makes?|with|are|were|costs?|lost"
    r"|saw|picked|planted|read|took|takes|of|for|by|only|another|added|removed|ordered|received|collected|earns?|earned|spent)\s*$",
    re.IGNORECASE,
)


@detector("negative_count", version="1")
def negative_count(row: Row) -> list[Finding]:
    """A story counts a negative number of things that come whole."""
    prompt = row["prompt"]
    if row["domain"] != "math" or not _ASKED.search(prompt):
        return []
    for match in _NEGATIVE_COUNT.finditer(without_formulas(prompt)):
        before = match.string[: match.start()]
        if _COUNT_FOLLOWS.search(before[-40:]):
            return [Finding("negative_count", evidence={"says": match[0].strip()})]
    return []


_ASKS = re.compile(
    r"[?？]|(?:\\?_){2,}|\S[ \t]{3,}\S|\s\.\Z"
    r"|\b(?:how|what|which|who|whose|when|where|why|whether)\b|多少|几|求|吗|何|什么",
    re.IGNORECASE,
)
MIN_STORY_WORDS = 8
"""A shorter text is a title or an expression, and tells no story."""
_INSTRUCTS = re.compile(
    r"(?:\(?[\divxIVX]{1,3}[.)]\s*)?(?:(?:please|then|now|also|so|and|hence|next)\s+,?\s*)*(?:construct|draw|make|double|cut|find|compute|calculate|determine|evaluate|solve|simplify|express|write"
    r"|give|list|name|round|convert|estimate|prove|show|state|answer|complete|choose|fill|count|work\s+out|figure|tell|help|use)\b"
    r"|.*(?:[,;:]|\band)\s+(?:then\s+)?(?:construct|draw|double|form|find|compute|calculate|determine|evaluate|solve|express|prove|show"
    r"|estimate|list|figure\s+out|work\s+out)\b",
    re.IGNORECASE | re.DOTALL,
)
_TELLS = re.compile(
    r"(?:the|an?|he|she|it|they|there|his|her|their|this|that|these|those|if|in|on|at|after|then|each|every|[A-Z][a-z]+"
    r"|\d+)\b.*\b(?:is|are|was|were|has|have|had|can|will|costs?|gets?|[a-z]+(?:ed|es|s)|bought|sold|gave|ate|made|found|took|got"
    r"|put|went|left|came)\b",
    re.IGNORECASE | re.DOTALL,
)


@detector("no_question", version="3")
def no_question(row: Row) -> list[Finding]:
    """The sentences tell a story and ask nothing."""
    prompt = row["prompt"].strip()
    if row["domain"] != "math" or _ASKS.search(prompt) or find_options(prompt) is not None:
        return []
    prose = without_formulas(prompt)
    parts = sentences(prose)
    if FORMULA in prose or not prose.endswith((".", "!", "。")) or prose.endswith(".."):
        return []
    if len(prose.split()) < MIN_STORY_WORDS:
        return []
    if any(_INSTRUCTS.match(part) for text in parts for part in re.split(r"\.\.(?=[A-Z])", text)) or not _TELLS.match(
        parts[-1]
    ):
        return []
    return [Finding("no_question", evidence={"ends": ending(prompt, 80)})]
