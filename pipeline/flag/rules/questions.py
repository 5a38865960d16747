"""Rules about what a prompt asks for, where one gold answer cannot cover it.

Some prompts and their findings:

    "... How many apples does Tom have now? And how many pears did he buy?"    multi_part
    "Prove that 12+8 is even."                                                 proof
    "How can she prove that she paid? She has 5 receipts. How many ...?"       nothing: a story
"""

from __future__ import annotations

import re

from truegold.pipeline.flag.rules.detector import Finding, detector
from truegold.pipeline.tables.rows import Row
from truegold.pipeline.text.options import find_options
from truegold.pipeline.text.prose import FORMULA, ending, sentences, without_formulas

_QUANTITY = re.compile(
    r"\b(?:how\s+(?:many|much|long|far|old|tall|fast|big|heavy|often)|what\s+(?:is|are|was|were|will|percent|percentage|fraction))\b"
    r"|多少|几(?!何|乎)|求",
    re.IGNORECASE,
)
_PART = re.compile(
    r"(?:(?<=\s)|^)\(?([a-e])[.)]\s+|(?<![A-Za-z0-9_])[（(]([1-5])[)）]|(?:(?<=\s)|^)\(?(i{1,3}|iv)\)\s+"
)
_INSTRUCTION = re.compile(
    r"(?:find|compute|calculate|determine|evaluate|solve|prove|show|simplify|express|write|how|what|which)\b"
    r"|.*[?？]|.*(?:求|多少|证明|写出|计算)",
    re.IGNORECASE | re.DOTALL,
)
# These questions repeat another, are spoken in the story, or, as "What is $m+n$?", only reformat the first answer.
_NOT_SEPARATE = re.compile(
    r"(?:that\s+is\b|in\s+other\s+words|i\.e\.|hint\b)|.*[\"“”]|what\s+is\s+" + FORMULA + r"\s*\?",
    re.IGNORECASE | re.DOTALL,
)
_QUOTED_BEFORE = re.compile(
    r"\banswer\s+(?:of|to)\s+the\s+(?:above|previous|first)\s+(?:question|problem)\s+is\b", re.IGNORECASE
)
_GOLD_LIST = re.compile(r"(?<!\d),|,(?!\d{3})|[;，；、]|\band\b|\n")


_SOLVED_PART = re.compile(r"\\boxed\s*\{|\bfinal\s+answer\s*:", re.IGNORECASE)


def _labelled_parts(prose: str) -> list[str]:
    """Return the texts of the parts (a), (b), ... or (1), (2), ...; none unless all are in order and ask something."""
    marks = list(_PART.finditer(prose))
    labels = [next(label for label in mark.groups() if label) for mark in marks]
    for family in (["a", "b", "c", "d", "e"], ["1", "2", "3", "4", "5"], ["i", "ii", "iii", "iv"]):
        chosen = [mark for mark, label in zip(marks, labels, strict=True) if label in family]
        if len(chosen) < 2 or [label for label in labels if label in family] != family[: len(chosen)]:
            continue
        ends = [mark.start() for mark in chosen[1:]] + [len(prose)]
        texts = [prose[mark.end() : end].strip() for mark, end in zip(chosen, ends, strict=True)]
        if all(_INSTRUCTION.match(text) for text in texts):
            return texts
    return []


def _questions(prose: str) -> list[str]:
    """Return the sentences that end in a question mark and ask for a further quantity."""
    if _QUOTED_BEFORE.search(prose):
        return []
    return [
        text
        for text in sentences(prose)
        if text.endswith(("?", "？")) and _QUANTITY.search(text) and not _NOT_SEPARATE.match(text)
    ]


def _has_options(row: Row) -> bool:
    """Whether it is a multiple-choice question; small letters may label its parts."""
    options = find_options(row["prompt"])
    return row.get("verifier") == "choice" or (options is not None and not options.may_be_parts)


@detector("multi_part", version="3")
def multi_part(row: Row) -> list[Finding]:
    """Several things are asked, and the gold is one answer."""
    prose = without_formulas(row["prompt"])
    asked = _labelled_parts(prose) or list(dict.fromkeys(_questions(prose)))
    answers = len(_GOLD_LIST.split(row["gold"] or ""))
    # Options may be questions, and parts that are followed by their solutions are no longer asked.
    if row["domain"] == "code" or len(asked) < 2 or answers >= len(asked):
        return []
    if _has_options(row) or _SOLVED_PART.search(row["prompt"]):
        return []
    return [Finding("multi_part", evidence={"asks": [ending(text, 80) for text in asked[:5]], "answers": answers})]


_PROOF = re.compile(
    r"(?:^|[.;:?!,，。；：]\s*|\)\s*|\b(?:and|then|please|hence)\s+)((?:prove|show)(?:\s+(?:that|the\s+following)\b|\s*:))"
    r"|(?:^|[.;:?!]\s*)(prove\s+(?!it\b)\S+)"
    r"|(求证|(?<!身份)(?<!学历)证明(?=[:：，,]|(?:对|当|若|不等式|方程|函数|存在|任意|数列|四边形|三角形|直线|平面|[A-Za-z$\\∠△⟦])))",
    re.IGNORECASE,
)
_VALUE_ASKED = re.compile(
    r"\b(?:find|compute|calculate|determine|evaluate|how\s+(?:many|much)|what\s+(?:is|are|was)|for\s+(?:what|which))\b"
    r"|多少|求(?!证)|几(?!何)",
    re.IGNORECASE,
)


@detector("proof", version="2")
def proof(row: Row) -> list[Finding]:
    """A proof is asked for, which no comparison with a gold answer can judge."""
    prose = without_formulas(row["prompt"]).strip()
    match = _PROOF.search(prose)
    if match is None or row["domain"] == "code" or _VALUE_ASKED.search(prose) or _has_options(row):
        return []
    return [Finding("proof", evidence={"asks": next(group for group in match.groups() if group)})]
