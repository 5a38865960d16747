"""CodeContests: of the problems whose reference solution fails because several answers are right, how many vetting
recognises, and how many others it takes for such.

Plain Python shows which reference solutions fail with a wrong answer. For half of the problems, a person has labelled
the reason (`code_vet_labels.json`), independently of the rules of vetting:

    several_answers   another right answer than the expected one
    wrong_reference   the reference solution is wrong
    truncated         the input or the expected output is cut off
    slow              it is too slow
    other             letter case, interaction

For the other half there are only counts.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import code_plain
import code_rows
from code_plain import Plain
from code_rows import Record
from code_vet_suites import Problem, Vetted, summary

from truegold.verifiers.audit.suites import Severity, VetReason

LABELS = Path(__file__).with_name("code_vet_labels.json")
SEVERAL = "several_answers"
NOT_READ = "not read"
_NO_ANSWER = ("exit status", "signal", "no end")
"""How plain Python says that a program gave no answer to a case."""

Say = Callable[[str], None]


def measure(
    records: Sequence[Record], vet_all: Callable[[Sequence[Problem]], list[Vetted]], jobs: int, say: Say
) -> dict[str, Any]:
    """Vet CodeContests, and compare with labels by hand."""
    rows = code_rows.codecontests(list(records))
    plain = code_plain.all_pass(rows, jobs, say)
    say(f"codecontests: {sum(each.passed for each in plain)} of {len(rows)} reference solutions pass plainly")
    vetted = vet_all([Problem(row, record["problem"]) for row, record in zip(rows, records, strict=True)])
    pairs = list(zip(plain, vetted, strict=True))
    labels = json.loads(LABELS.read_text(encoding="utf-8"))["problems"]
    failing = [each for reference, each in pairs if _answers_wrongly(reference)]
    passing = [each for reference, each in pairs if reference.passed]
    return {
        **summary(vetted),
        "plain_passing": len(passing),
        "plain_failing": len(failing),
        "plain_no_answer": len(pairs) - len(passing) - len(failing),
        "failing": _by_label(failing, labels),
        "passing": _called(passing, labels),
        "examples": [_example(each, labels) for each in failing if each.key in labels],
    }


def sign_of(each: Vetted) -> str | None:
    """Return the reason by which vetting recognises several right answers, or None if it does not."""
    if each.has(VetReason.NEEDS_CHECKER):
        return str(each.evidence(VetReason.NEEDS_CHECKER)["sign"])
    order = (finding for finding in each.vetting.findings if finding.reason is VetReason.ANY_ORDER)
    return "order" if any(finding.severity is Severity.REPAIR for finding in order) else None


def _answers_wrongly(reference: Plain) -> bool:
    return not reference.passed and not reference.explanation.partition(": ")[2].startswith(_NO_ANSWER)


def _by_label(vetted: Sequence[Vetted], labels: dict[str, Any]) -> dict[str, dict[str, Any]]:
    entries: dict[str, dict[str, Any]] = {}
    for each in vetted:
        entry = entries.setdefault(_label(each, labels), {"problems": 0, "recognised": 0, "signs": Counter()})
        entry["problems"] += 1
        if (sign := sign_of(each)) is not None:
            entry["recognised"] += 1
            entry["signs"][sign] += 1
    return {label: {**entry, "signs": dict(entry["signs"])} for label, entry in sorted(entries.items())}


def _called(vetted: Sequence[Vetted], labels: dict[str, Any]) -> dict[str, Any]:
    """Return counts of the problems that vetting says have several right answers, although their reference passes."""
    called = [each for each in vetted if sign_of(each) is not None]
    by_label = Counter(_label(each, labels) for each in called)
    return {
        "problems": len(vetted),
        "read": sum(each.problem.row.may_be_read for each in vetted),
        "called": len(called),
        "signs": dict(Counter(sign_of(each) for each in called)),
        "truly": by_label[SEVERAL],
        "not_read": by_label[NOT_READ],
        "false": len(called) - by_label[SEVERAL] - by_label[NOT_READ],
    }


def _label(each: Vetted, labels: dict[str, Any]) -> str:
    """Return the label of a problem. A readable problem without a label is "no label"."""
    if not each.problem.row.may_be_read:
        return NOT_READ
    return str(labels[each.key]["label"]) if each.key in labels else "no label"


def _example(each: Vetted, labels: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": each.key,
        "label": labels[each.key]["label"],
        "why": labels[each.key]["why"],
        "outcome": str(each.vetting.outcome),
        "reason": each.vetting.reasons[0] if each.vetting.reasons else "",
        "sign": sign_of(each),
    }
