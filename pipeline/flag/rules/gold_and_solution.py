r"""Finds golds with text around the answer, and wrong calculations in worked solutions.

Some golds and solutions, and their findings:

    "#### 72", "Answer: 72", "The answer is 72.", "ans=72", "= 72"     gold_wrapped: a heading, suggestion 72
    "72 (rounded)", "72 [verified]", "72 # check this"                 gold_wrapped: a remark, suggestion 72
    "<answer>72</answer>", "72</s>", "**72**"                          gold_wrapped: markup, suggestion 72
    "There are 72 in total."                                           gold_wrapped: a sentence, suggestion 72
    "72 apples", "x = 3", "5 (mod 7)", "\frac{1}{2}", "(1, 2]"         no finding

Verifiers that parse golds often understand a wrapped gold. Verifiers that compare texts reject right answers to it.

    solution "5 * 7 = 36 apples ... #### 36"                           arithmetic_error, shows 5 * 7 = 35

`calculations` reads the calculations of a solution.
"""

from __future__ import annotations

import re
from fractions import Fraction

from truegold.pipeline.flag.rules.calculations import calculations
from truegold.pipeline.flag.rules.detector import Finding, any_of, detector
from truegold.pipeline.tables.rows import Row

# gold_wrapped
READ_BY_MEANING = ("math", "numeric")
"""Verifiers whose golds are values. For other verifiers, the answer itself may be a heading or a sentence."""
MAX_CHARS = 200
"""Golds with more characters are prose. `verify_gold` flags them."""

_HEADING = re.compile(rf"\s*(?:{any_of('gold_headings')})\s*(?=\S*\d)", re.IGNORECASE)
"""Words before an answer: "####", "Answer:", "The answer is", "ans=", "= "."""
_MARKUP = re.compile(r"</?[a-z_]{1,20}>|<\|[^|<>]{1,20}\|>|</?s>|^\*\*|\*\*$|^`|`$", re.IGNORECASE)
"""Tags, special tokens of chat templates, and bold type."""
_REMARK = re.compile(rf"(?<=\S)\s*(?:{any_of('gold_remarks')})\s*\Z", re.IGNORECASE | re.DOTALL)
"""Remarks after an answer: "(rounded)", "[verified]", "# check"."""
_SENTENCE = re.compile(
    r"\s*(?:it|they|there|he|she|we|you|this|that|total)\b(?:\s[a-z']+){0,4}[\s:]+(?P<value>-?\$?(?:\d[\d,.]*\d|\d))(?![-\w])"
    r"(?:\s[a-z']+){0,4}\s*\.?",
    re.IGNORECASE,
)
"""A sentence with one number: "It is 100.", "There are 1640 in total."."""


@detector("gold_wrapped", version="2")
def gold_wrapped(row: Row) -> list[Finding]:
    """Find a gold with a heading, markup, a remark or a sentence around the answer."""
    gold = (row["gold"] or "").strip()
    if row["verifier"] not in READ_BY_MEANING or len(gold) > MAX_CHARS or not any(char.isdigit() for char in gold):
        return []
    parts = {
        "heading": (match := _HEADING.match(gold)) and gold[match.end() :],
        "markup": _MARKUP.search(gold) and _MARKUP.sub("", gold),
        "remark": (match := _REMARK.search(gold)) and gold[: match.start()],
        "sentence": (match := _SENTENCE.fullmatch(gold)) and match["value"],
    }
    for name, inner in parts.items():
        if inner and inner.strip():
            evidence = {"gold": gold, "has": name}
            return [Finding("gold_wrapped", evidence=evidence, suggestion=inner.strip().rstrip("."))]
    return []


# arithmetic_error
MAX_SHOWN = 5
"""The largest number of wrong calculations in the evidence."""

_OTHER_BASE = re.compile(r"\b(?:in|what|which|some|to|from)\s+base\b|\bbase[-\s]\$?\d", re.IGNORECASE)
"""Words about number bases. In other bases, `44 * 55 = 3506` may be true."""


@detector("arithmetic_error", version="3")
def arithmetic_error(row: Row) -> list[Finding]:
    """Find a wrong calculation in the solution. A reviewer has to see whether the answer is wrong too."""
    if not row["solution"] or row["domain"] != "math":
        return []
    if _OTHER_BASE.search(row["prompt"]):
        return []
    wrong = [calculation for calculation in calculations(row["solution"]) if not calculation.holds]
    if not wrong:
        return []
    shown = [f"{step.left} = {_format(step.result)} (it is {_format(step.value)})" for step in wrong[:MAX_SHOWN]]
    return [Finding("arithmetic_error", evidence={"wrong": shown})]


def _format(value: Fraction) -> str:
    if value.denominator == 1:
        return str(value.numerator)
    return f"{float(value):.6g}"
