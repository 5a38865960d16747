"""Right and wrong answers that were written without looking at the verifier (`math_fresh.txt` says how)."""

from __future__ import annotations

from pathlib import Path

import pytest

from truegold.verifiers import equivalent

ACCEPTED = {"first": 229, "second": 153, "third": 243, "languages": 62}
"""How many right answers of each section are accepted at least."""


def read_cases(section: str) -> list[tuple[str, str, str]]:
    text = Path(__file__).with_name("math_fresh.txt").read_text(encoding="utf8")
    lines = text.partition(f"[{section}]\n")[2].partition("\n[")[0].splitlines()
    return [(line[0], *line[2:].split(" ||| ", 1)) for line in lines if line]


@pytest.mark.parametrize("section", ACCEPTED)
def test_right_answers_are_accepted_and_wrong_ones_are_not(section):
    cases = read_cases(section)
    verdicts = [(expected, gold, answer, equivalent(answer, gold=gold)) for expected, gold, answer in cases]
    assert [case[:3] for case in verdicts if case[0] == "!" and case[3].score == 1] == []
    assert sum(expected == "=" and verdict.score == 1 for expected, _, _, verdict in verdicts) >= ACCEPTED[section]
