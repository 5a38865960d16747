"""The tables of pairs and responses by kind: what `math_kinds.txt`, `math_kind_responses.jsonl` and
`chosen_options.jsonl` say of themselves.

The rows were written before the code that reads them. A row whose hash is even was looked at while the code was made,
and has to come out right; of the others only the rates are pinned.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from tables import rows

from truegold.verifiers import MathVerifier, Verdict, equivalent, resolve

HERE = Path(__file__).parent
SCORES = {"=": (1.0,), "!": (0.0, None), "?": (None,)}
LOOKED_AT_WHOLE = frozenset(
    {
        "forms_of_golds", "spellings", "labels of physics", "approximate labels", "marks of names",
        "spellings of letters", "conditions behind a value", "several equations",
        "positive letters", "quantum notation",
        "values with their conditions", "square brackets", "components and densities", "answers of exams",
        "attacks on formulas", "layout_of_pages", "said_twice",
        "brackets of functions", "limits and sides", "names with subscripts", "greek letters",
        "operators of fields", "vectors and their accents", "proportions", "formulas of chemistry",
        "equations of reactions", "electron configurations", "isotopes", "oxidation numbers",
        "powers of ten", "angles and times", "money and shares", "ordinals, names and truth",
        "chemistry attacks",
        "directions",
        "several named values",
        "numbers and units of chemistry",
        "groups and modules",
        "more signs",
        "attacks on qualifiers",
        "named functions by value",
        "statements about sets, integrals and lone parts",
    }
)  # fmt: skip
"""Kinds whose rows were all looked at: they were written down from what failed, or beside the code."""

MIN_ACCEPTED = 0.9
"""The share of right answers that were only counted, and have to be accepted."""

KNOWN_GAPS = {
    ("10000", "1,0000"),
    ("3k+1", "3n+1"),
    ("\\text{base } 7", "7"),
    ("\\text{max } 5", "5"),
    ("\\text{maximum } 5", "\\max = 5"),
    ("maximum: 5", "max: 5"),
    ("maximum 5", "5"),
}
"""Right answers that the verifier does not know; each is refused or undecided, and none of them is wrongly paid."""


class Case(NamedTuple):
    """A row of the table."""

    kind: str
    expected: str
    gold: str
    answer: str
    problem: str | None

    @property
    def looked_at(self) -> bool:
        """The row was read while the verifier was made."""
        return (
            self.kind in LOOKED_AT_WHOLE
            or int(hashlib.sha256(f"{self.gold}|{self.answer}".encode()).hexdigest(), 16) % 2 == 0
        )


def read_cases() -> list[Case]:
    cases, kind = [], ""
    for line in (HERE / "math_kinds.txt").read_text(encoding="utf8").splitlines():
        if line.startswith("[") and line.endswith("]") and " | " not in line:
            kind = line[1:-1]
        elif line and not line.startswith("#"):
            gold, answer, *problem = line[2:].split(" | ")
            answer = answer.replace("\\n", "\n") if "```" in answer else answer
            cases.append(Case(kind, line[0], gold, answer, problem[0] if problem else None))
    return cases


def judge(case: Case) -> Verdict:
    if case.problem is None:
        return equivalent(case.answer, gold=case.gold)
    return MathVerifier()(f"\\boxed{{{case.answer}}}", case.gold, problem=case.problem)


CASES = read_cases()
RESPONSES = [json.loads(line) for line in (HERE / "math_kind_responses.jsonl").read_text(encoding="utf8").splitlines()]
CHOICES = [json.loads(line) for line in (HERE / "chosen_options.jsonl").read_text(encoding="utf8").splitlines()]


def test_each_kind_has_right_and_wrong_answers():
    marks = defaultdict(set)
    for case in CASES:
        marks[case.kind].add(case.expected)
    assert len(marks) >= 23 and all({"=", "!"} <= kinds for kinds in marks.values())


@rows("case", [case for case in CASES if case.looked_at])
def test_pair_that_was_looked_at(case):
    verdict = judge(case)
    if (case.gold, case.answer) in KNOWN_GAPS:
        assert verdict.score != 1.0, f"{case} is no gap any more: take it off the list"
    else:
        assert verdict.score in SCORES[case.expected], (case, verdict)


def test_pairs_that_were_only_counted():
    counted = [(case, judge(case).score) for case in CASES if not case.looked_at]
    assert [case for case, score in counted if case.expected == "!" and score == 1.0] == []
    accepted = [score == 1.0 for case, score in counted if case.expected == "="]
    assert sum(accepted) >= MIN_ACCEPTED * len(accepted) > 200


@rows("row", RESPONSES)
def test_response(row):
    verdict = MathVerifier()(row["response"], row["gold"], problem=row.get("problem"))
    assert (verdict.score == 1.0) == row["expected"], verdict


@rows("row, verifier", [(row, verifier) for row in CHOICES for verifier in row.get("verifiers", ["choice", "math"])])
def test_chosen_option(row, verifier):
    options = {"options": row["options"]} if row["options"] else {}
    verdict = resolve(verifier)(row["response"], row["gold"], problem=row.get("problem"), info=options)
    assert (verdict.score == 1.0) == row["expected"], verdict
