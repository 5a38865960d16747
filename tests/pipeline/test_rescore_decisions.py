"""Rollouts judged again by the golds that reviewers stand for, and the page of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from report_pages import Page

from truegold.pipeline.rescore import rescore
from truegold.pipeline.rescore.rollout_report import describe, write_report
from truegold.pipeline.review.decisions import Decision, append_decision
from truegold.pipeline.review.reviewed_run import ReviewedRun, decided_rows
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.tables.rows import content_key, row_id
from truegold.verifiers import InputError

QUESTIONS = [f"Ann has {n} pens and buys {n + 1} more at the shop. How many pens has she now?" for n in range(3, 9)]
GOLDS = [str(2 * n + 1) for n in range(3, 9)]
HOSTILE = "</script><script>alert(1)</script> \\boxed{7}"


def lines(path: Path, records: list[dict[str, Any]]) -> Path:
    """Write records as JSON Lines."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """For each question one response with the gold, refused, and one with 7, paid."""
    records = []
    for question, gold in zip(QUESTIONS, GOLDS, strict=True):
        for text, score in ((f"\\boxed{{{gold}}}", 0.0), (HOSTILE, 1.0)):
            records.append({"input": question, "output": text, "gts": gold, "score": score, "step": 1})
    return lines(tmp_path / "1.jsonl", records)


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """The set that was trained on."""
    problems = zip(QUESTIONS, GOLDS, strict=True)
    return lines(tmp_path / "set.jsonl", [{"question": question, "answer": gold} for question, gold in problems])


def decide(folder: Path, position: int, decision: str, gold: str | None = None, reviewer: str = "ann") -> None:
    """Store a decision about a question."""
    stored = {"id": row_id(QUESTIONS[position], GOLDS[position]), "decision": decision, "gold": gold}
    append_decision(folder, Decision.model_validate({**stored, "reviewer": reviewer, "at": "2026-11-23T09:00:00Z"}))


def judge(log: Path, data: Path, out: Path, folder: Path | None) -> dict[str, Any]:
    """Judge the log again by decisions too, and return the summary."""
    stands = decided_rows(data, folder)
    assert stands is not None
    rescored = rescore([log], out, NullProgress(), data=data, workers=1, decide=stands)
    return write_report(out, rescored, None)


def test_every_judge_is_measured_by_what_reviewers_settled(log: Path, dataset: Path, tmp_path: Path) -> None:
    folder = tmp_path / "decisions"
    decide(folder, 1, "keep")
    decide(folder, 2, "fix", "7")
    decide(folder, 3, "drop")
    decide(folder, 4, "keep")
    decide(folder, 4, "drop", reviewer="bob")  # They disagree, so that it counts for nothing.
    summary = judge(log, dataset, tmp_path / "out", folder)
    decided = summary["decided"]
    assert (decided["rollouts"], decided["of_dropped_rows"], decided["of_dropped_rows_paid"]) == (6, 2, 1)
    separations = {entry["judge"]: entry for entry in decided["separation"]}
    # Two right ones: the kept gold, which the log refused, and the fixed one, which it paid.
    log_counts = [separations["log"][name] for name in ("right", "paid_right", "wrong", "paid_wrong", "j")]
    assert log_counts == [2, 1, 2, 1, 0.0]
    assert [separations["a"][name] for name in ("paid_right", "paid_wrong", "j")] == [1, 1, 0.0]
    assert any("The log by decisions: J 0.000, 1 of 2 right ones refused" in line for line in describe(summary))


def test_the_page_has_each_flip_with_both_readings_and_its_cost(log: Path, dataset: Path, tmp_path: Path) -> None:
    decide(tmp_path / "decisions", 1, "fix", "7")
    judge(log, dataset, tmp_path / "out", tmp_path / "decisions")
    page = Page((tmp_path / "out" / "report.html").read_text(encoding="utf-8"))
    text = page.visible_text
    assert page.open == [] and "Paid by the log, wrong by A" in text and "Refused by the log, right by A" in text
    assert text.count("cost ") >= 10 and "fix to 7" in text and "alert(1)" in text
    assert not any("alert(1)" in script for script in page.scripts)
    assert "By reviewers' decisions" in text


def test_a_stale_decision_counts_for_nothing(curate: Callable[..., Path], log: Path, tmp_path: Path) -> None:
    run_dir = curate(tmp_path, list(zip(QUESTIONS, GOLDS, strict=True)))
    run = ReviewedRun.open(run_dir)
    for position, seen in ((1, None), (2, "0" * 20)):
        about = {"id": row_id(QUESTIONS[position], GOLDS[position]), "decision": "keep", "seen": seen}
        stored = {**about, "reviewer": "ann", "at": "2026-11-23T09:00:00Z"}
        append_decision(run.folder, Decision.model_validate(stored))
    assert judge(log, run_dir, tmp_path / "out", None)["decided"]["rollouts"] == 2


def test_a_folder_without_decisions_is_one_line(dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no decisions"):
        decided_rows(dataset, tmp_path / "decisions")
    assert decided_rows(dataset) is None


def test_changes_of_tests_are_not_carried_out_twice(tmp_path: Path) -> None:
    tests = {"type": "asserts", "code": "assert f(1) == 1\nassert f(2) == 5\nassert f(3) == 3\n"}
    row: Any = {"id": "a", "prompt": "Write f.", "gold": None, "verifier": "code", "verifier_args": json.dumps(tests)}
    stored = {"id": "a", "seen": content_key(row), "decision": "fix", "gold": "drop 1", "reviewer": "ann"}
    append_decision(tmp_path, Decision.model_validate({**stored, "at": "2026-11-23T09:00:00Z"}))
    stands = decided_rows(tmp_path / "set.jsonl", tmp_path)
    assert stands is not None
    fixed = stands(row)
    assert fixed is not None and fixed.row is not None
    assert json.loads(fixed.row["verifier_args"])["code"] == "assert f(1) == 1\nassert f(3) == 3\n"
    assert stands(fixed.row) == fixed, "an exported row has lost its case 1 already"
