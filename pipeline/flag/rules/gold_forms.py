r"""Rules about how gold is written: with more around the answer than the answer.

Some golds and their findings:

    "#### 72", "Answer: 72", "The answer is 72.", "ans=72", "= 72"     gold_wrapped: a heading, suggestion 72
    "72 (rounded)", "72 [verified]", "72 # check this"                 gold_wrapped: a remark, suggestion 72
    "<answer>72</answer>", "72</s>", "**72**"                          gold_wrapped: markup, suggestion 72
    "There are 72 in total."                                           gold_wrapped: a sentence, suggestion 72
    "1.234,50"                                                         decimal_comma, suggestion 1234.50
    "72 apples", "x = 3", "5 (mod 7)", "\frac{1}{2}", "(1, 2]"         nothing

Verifiers that read golds often understand such a gold; those that compare texts, and other people's, do not.
"""

from __future__ import annotations

import re

from truegold.pipeline.flag.rules.detector import Finding, any_of, detector
from truegold.pipeline.tables.rows import Row

READ_BY_MEANING = ("math", "numeric")
"""Verifiers whose golds are values: for others a heading or a sentence may be what is asked for."""
MAX_CHARS = 200
"""Longer golds are prose, which `verify_gold` speaks of."""

_HEADING = re.compile(rf"\s*(?:{any_of('gold_headings')})\s*(?=\S*\d)", re.IGNORECASE)
"""What stands before an answer: "####", "Answer:", "The answer is", "ans=", "= "."""
_MARKUP = re.compile(r"</?[a-z_]{1,20}>|<\|[^|<>]{1,20}\|>|</?s>|^\*\*|\*\*$|^`|`$", re.IGNORECASE)
"""Tags, tokens of a chat template, bold type."""
_REMARK = re.compile(rf"(?<=\S)\s*(?:{any_of('gold_remarks')})\s*\Z", re.IGNORECASE | re.DOTALL)
"""What stands behind an answer: "(rounded)", "[verified]", "# check"."""
_SENTENCE = re.compile(
    r"\s*(?:it|they|there|he|she|we|you|this|that|total)\b(?:\s[a-z']+){0,4}[\s:]+(?P<value>-?\$?(?:\d[\d,.]*\d|\d))(?![-\w])"
    r"(?:\s[a-z']+){0,4}\s*\.?",
    re.IGNORECASE,
)
"""A sentence with one number: "It is 100.", "There are 1640 in total."."""

_DECIMAL_COMMA = re.compile(r"[$€£]?\s*(?P<whole>-?\d{1,3}(?:\.\d{3})+),(?P<part>\d+)\s*[$€£]?")


@detector("gold_wrapped", version="1")
def gold_wrapped(row: Row) -> list[Finding]:
    """Gold has a heading, markup, a remark or a sentence around the answer."""
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


@detector("decimal_comma", version="1")
def decimal_comma(row: Row) -> list[Finding]:
    """Gold groups thousands by points and has a decimal comma, where most readers see two numbers or another one."""
    match = _DECIMAL_COMMA.fullmatch((row["gold"] or "").strip())
    if row["verifier"] not in READ_BY_MEANING or match is None:
        return []
    plain = f"{match['whole'].replace('.', '')}.{match['part']}"
    return [Finding("decimal_comma", evidence={"gold": row["gold"]}, suggestion=plain)]
