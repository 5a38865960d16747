"""Several accepted golds of one row: a response that matches any of them is right.

    gold "1/2", verifier_args {"other_golds": ["0.5", "50 %"]}

The first gold stands where every row has it; the others are the argument `other_golds`, a list of texts that every
verifier has and none sees. Each gold is tried in turn until one earns the full score, and `evidence["gold"]` names it.
Where none does, the best score counts; but it is None where a gold could not be judged, because the response may have
been that one.

    gold ["1/2", "0.5"]       the same row as gold "1/2" with other_golds ["0.5"]        (`golds_in`)

That holds wherever a gold is handed over as an object: a call, an `Item`, a trainer's column, a request. A text is one
gold, also where it looks like a list; but `"['72', '73']"` in a column of data is a list that a writer of CSV turned
into text (`quoted_list`). Of `choice` with `multiple` a list is one answer: all of its options are needed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Number
from typing import Any

from truegold.verifiers.verdict import Reason, Verdict, Verifier

OTHER_GOLDS = "other_golds"
"""The argument of every verifier with the accepted golds beside the first."""
MAX_GOLDS = 64
"""More would let one row cost as much as a data set; a gold with so many forms needs a verifier of its own."""

OF_VALUES = ("math", "math_verify", "numeric", "choice")
"""Verifiers whose golds are numbers, formulas and letters: a text in quotes is none."""

_QUOTED = re.compile(r"\"((?:[^\"\\]|\\.){1,200})\"|'((?:[^'\\]|\\.){1,200})'", re.DOTALL)
_QUOTED_LIST = re.compile(rf"\s*\[\s*(?:{_QUOTED.pattern})(?:[\s,]\s*,?\s*(?:{_QUOTED.pattern}))*\s*\]\s*", re.DOTALL)


class BadGold(ValueError):
    """What stands in place of gold is no answer and no list of answers; the text says what it is."""


def golds_in(value: Any) -> list[str]:
    """Return the accepted golds that a value holds: a text or number, or a list, tuple, array or tensor of these.

    golds_in("[1, 2]") == ["[1, 2]"], golds_in([["1"], 2]) == ["1", "2"], golds_in(np.float32(0.5)) == ["0.5"]

    None, not-a-number and blank entries are no golds. Raises BadGold for anything else, such as an object of JSON.
    """
    if value is None:
        return []
    if isinstance(value, str):
        return [str(value)]
    if isinstance(value, Number):
        text = str(value)
        return [] if text.lower() == "nan" else [text]
    if hasattr(value, "detach"):
        return golds_in(_array_of(value))
    if getattr(value, "shape", None) == ():
        scalar = value[()]
        return golds_in(scalar if isinstance(scalar, Number) else value.item())
    if isinstance(value, Mapping | bytes | bytearray) or not (hasattr(value, "__len__") and hasattr(value, "__iter__")):
        raise BadGold(f"gold is a text, a number or a list of these; this is {type(value).__name__} {value!r:.60}")
    entries = [golds_in(entry) for entry in value]
    if len(entries) > 1 and any(len(golds) > 1 for golds in entries):
        raise BadGold(f"gold is a list of accepted golds; this is a list of lists {value!r:.60}")
    return list(dict.fromkeys(gold for golds in entries for gold in golds if gold.strip()))


def quoted_list(text: object) -> list[str] | None:
    """Return the texts that a text lists in quotes, None where it is anything else."""
    if not isinstance(text, str) or _QUOTED_LIST.fullmatch(text) is None:
        return None
    # JSON and repr write a backslash twice.
    return [(entry[1] or entry[2]).replace("\\\\", "\\") for entry in _QUOTED.finditer(text)]


def needs_all_golds(verifier: str, arguments: Mapping[str, Any]) -> bool:
    """Say whether a list of golds is one answer for this verifier: the options that have to be chosen together."""
    return verifier == "choice" and arguments.get("multiple") is True


def gold_and_arguments(
    golds: list[str], verifier: str, arguments: Mapping[str, Any]
) -> tuple[str | None, Mapping[str, Any]]:
    """Return the gold of a row and its arguments with the other golds, out of all that stand where gold does."""
    if len(golds) < 2:
        return next(iter(golds), None), arguments
    if needs_all_golds(verifier, arguments):
        return ", ".join(golds), arguments
    others = arguments.get(OTHER_GOLDS) or ()
    if mistake_in_golds(others) is not None:  # The check of arguments says so.
        return golds[0], arguments
    return golds[0], {**arguments, OTHER_GOLDS: [*golds[1:], *others]}


def _array_of(tensor: Any) -> Any:
    """Return the array of numpy behind a tensor of torch, which prints 0.1 as 0.1 in any precision."""
    tensor = tensor.detach().cpu()
    try:
        return tensor.numpy()
    except TypeError:  # numpy has no bfloat16.
        return tensor.float().numpy()


def all_golds(gold: str | None, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Return every accepted gold of a row, the first one first; empty where it has none."""
    others = arguments.get(OTHER_GOLDS) or ()
    return (*(() if gold is None else (gold,)), *others)


def mistake_in_golds(value: object) -> str | None:
    """Return why `other_golds` is no list of accepted golds; None where it is one."""
    if not isinstance(value, list | tuple) or not all(isinstance(gold, str) for gold in value):
        return f"{OTHER_GOLDS} must be a list of texts, got {value!r:.60}"
    if len(value) >= MAX_GOLDS:
        return f"{OTHER_GOLDS} has {len(value)} texts; a row may have {MAX_GOLDS} golds"
    return None


def judge_any(
    verifier: Verifier, response: str, gold: str | None, problem: str | None, info: Mapping[str, Any]
) -> Verdict:
    """Return the verdict of `verifier` against whichever accepted gold the response does best by."""
    others = info.get(OTHER_GOLDS)
    if others is None:
        return verifier(response, gold, problem=problem, info=info)
    if (mistake := mistake_in_golds(others)) is not None:
        return Verdict(None, Reason.VERIFIER_ERROR, evidence={"error": mistake})
    arguments = {name: value for name, value in info.items() if name != OTHER_GOLDS}
    verdicts: list[tuple[str | None, Verdict]] = []
    for accepted in all_golds(gold, info) or (None,):
        verdict = verifier(response, accepted, problem=problem, info=arguments)
        verdicts.append((accepted, verdict))
        if verdict.passed:
            break
    matched, verdict = _decisive(verdicts)
    return replace(verdict, evidence={**verdict.evidence, "gold": matched, "golds": 1 + len(others)})


def _decisive(verdicts: Sequence[tuple[str | None, Verdict]]) -> tuple[str | None, Verdict]:
    """Return the gold and the verdict that count."""
    if verdicts[-1][1].passed:
        return verdicts[-1]
    unjudged = next((entry for entry in verdicts if entry[1].score is None), None)
    return unjudged or max(verdicts, key=lambda entry: entry[1].score or 0.0)
