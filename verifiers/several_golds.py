"""Several accepted golds of one row: a response that matches any of them is right.

    gold "1/2", verifier_args {"other_golds": ["0.5", "50 %"]}

The first gold stands where every row has it; the others are the argument `other_golds`, a list of texts that every
verifier has and none sees. Each gold is tried in turn until one earns the full score, and `evidence["gold"]` names it.
Where none does, the best score counts; but it is None where a gold could not be judged, because the response may have
been that one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from truegold.verifiers.verdict import Reason, Verdict, Verifier

OTHER_GOLDS = "other_golds"
"""The argument of every verifier with the accepted golds beside the first."""
MAX_GOLDS = 64
"""More would let one row cost as much as a data set; a gold with so many forms needs a verifier of its own."""


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
