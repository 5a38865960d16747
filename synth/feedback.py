"""Describes the verdict on a failed attempt for the next one, in English or Chinese, without revealing the gold.

    the answer 12 was read in "\\boxed{12}", the gold is 15    "Its final answer was read as 12, which is not right."
    the answer is (1, 2], the gold is a number                "... It is an interval, where a number is asked for."
    2 of 5 tests of a program pass                            "It passes 2 of 5 tests. This one fails: ..."

At most the kind of the gold is mentioned, and only if the attempt's answer is of another kind. Of a failing test, the
input, the expected output and the actual output are shown, since the tests are part of the task.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from truegold.synth.config import Language
from truegold.verifiers import Reason

SHOWN_CHARS = 300
"""Maximum number of characters of an answer, input or output that are shown."""


Phrases = Mapping[str, Mapping[str, str]]
"""Phrases of one language, by section and name."""
PHRASES: Mapping[str, Phrases] = tomllib.loads(files("truegold.synth").joinpath("feedback.toml").read_text("utf-8"))
"""Phrases by language: the `sentences`, the `details` of a failing test, and the `kinds` of answers."""

# The first kind that matches counts. Examples: 1,200; 1/2 or 1e-5; (C); (1, 2]; \{1, 2\}; x + \pi.
_KINDS = (
    ("whole", re.compile(r"[-+]?\d[\d,]*")),
    ("number", re.compile(r"[-+]?[\d.,]*\d(?:\s*/\s*\d+)?\s*%?|\\d?frac\{\d+\}\{\d+\}|[-+]?\d+(?:\.\d+)?e[-+]?\d+")),
    ("choice", re.compile(r"\(?[A-H]\)?")),
    ("tuple", re.compile(r"[(\[].*,.*[)\]]", re.DOTALL)),
    ("set", re.compile(r"\\?\{.*\}", re.DOTALL)),
    # The only words of an expression are LaTeX commands, names of functions, and letters.
    (
        "expression",
        re.compile(r"(?:\\[a-zA-Z]+|\b(?:sin|cos|tan|log|ln|exp|sqrt|pi|max|min)\b|\b[a-zA-Z]{1,2}\b|[^a-zA-Z一-鿿])+"),
    ),
)


def describe_verdict(
    reason: str,
    extracted: str | None,
    evidence: Mapping[str, Any],
    language: Language,
    *,
    is_program: bool,
    is_cut: bool,
) -> str:
    """Return the feedback on an attempt. is_program: its verifier runs programs. is_cut: it hit a length limit."""
    phrases = PHRASES[language]
    sentences = phrases["sentences"]
    shown = _cut(extracted or "")
    if is_cut and extracted is None:
        return sentences["cut"]
    if is_program and "total" in evidence:
        return _describe_tests(evidence, phrases)
    if reason in (Reason.MISMATCH, Reason.PARTIAL):
        return _describe_mismatch(shown, evidence, phrases)
    is_named = reason in (Reason.NO_ANSWER, Reason.HEDGED, Reason.UNREAD)
    return sentences[reason if is_named else "unjudged"].format(extracted=shown, reason=reason.replace("_", " "))


def kind_of(answer: str) -> str:
    """Return the kind of an answer by its form: a whole number, a number, a set, ..."""
    return next((kind for kind, pattern in _KINDS if pattern.fullmatch(answer.strip())), "text")


def _describe_mismatch(shown: str, evidence: Mapping[str, Any], phrases: Phrases) -> str:
    answer = _cut(str(evidence.get("answer") or "")) or shown
    if not answer:
        return phrases["sentences"]["wrong_unread"]
    text = phrases["sentences"]["wrong"].format(answer=answer)
    gold = evidence.get("gold")
    if isinstance(gold, str) and gold:
        answer_kind, gold_kind = kind_of(answer), kind_of(gold)
        # Different kinds of numbers may be equal, and telling them apart would reveal something of the gold.
        if answer_kind != gold_kind and {answer_kind, gold_kind} != {"whole", "number"}:
            kinds = {"answer_kind": phrases["kinds"][answer_kind], "gold_kind": phrases["kinds"][gold_kind]}
            text += " " + phrases["sentences"]["other_kind"].format(**kinds)
    return text


def _describe_tests(evidence: Mapping[str, Any], phrases: Phrases) -> str:
    lines = [phrases["sentences"]["tests"].format(passed=evidence.get("passed", 0), total=evidence["total"])]
    failed = evidence.get("failed")
    if isinstance(failed, Mapping):
        lines.append(phrases["sentences"]["fails"])
        for name, label in phrases["details"].items():
            if failed.get(name) not in (None, ""):
                lines.append(f"{label}: {_cut(str(failed[name]))}")
    return "\n".join(lines)


def _cut(text: str) -> str:
    text = text.strip()
    return text if len(text) <= SHOWN_CHARS else text[:SHOWN_CHARS] + " ..."
