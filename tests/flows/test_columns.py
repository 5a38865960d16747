"""A column that one command reads is read by all, and a gold that is not there is never missed in silence."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from command_line import run_command

ROWS = [
    {"problem_id": "p1", "question": "Tom has 3 red cars and buys 4 more. How many cars has he?", "ground_truth": 7},
    {"problem_id": "p2", "question": "Tom has 3 red cars and buys 4 more.  How many cars has he?", "ground_truth": "7"},
    {
        "problem_id": "p3",
        "question": "Ann eats 2 of her 9 plums. How many plums are left?",
        "ground_truth": "\\frac{14}{2}",
    },
    {"problem_id": "p4", "question": "What is the area of a square of side 12?", "ground_truth": "144"},
]
RESPONSES = ["So \\boxed{7}", "It is 8.", "The answer is 7.", "\\boxed{144}"]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("columns")
    rows = [{**row, "response": response} for row, response in zip(ROWS, RESPONSES, strict=True)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "evals.jsonl").write_text(json.dumps({k: v for k, v in ROWS[3].items() if k != "response"}) + "\n")
    (folder / "run.yaml").write_text("name: columns\ndata: {path: rows.jsonl}\n")
    (folder / "no_gold.jsonl").write_text(json.dumps({"question": "1+1?", "response": "2", "solved": "2"}) + "\n")
    (folder / "empty_gold.jsonl").write_text(json.dumps({"question": "1+1?", "response": "2", "gold": None}) + "\n")
    return folder


def test_run_reads_them(project: Path) -> None:
    done = run_command("curate", "run.yaml", "--engine", "local", cwd=project)
    assert done.returncode == 0, done.stderr
    rows = pl.read_parquet(project / "runs/columns/ingest/rows.parquet")
    assert rows["gold"].to_list() == ["7", "7", "\\frac{14}{2}", "144"]
    assert rows["prompt"].to_list() == [row["question"] for row in ROWS]
    assert [json.loads(meta)["source_id"] for meta in rows["meta"]] == ["p1", "p2", "p3", "p4"]


def test_dedup_reads_them(project: Path) -> None:
    done = run_command("dedup", "--data", "rows.jsonl", "--out", "dedup", cwd=project)
    assert done.returncode == 0, done.stderr
    clusters = pl.read_parquet(project / "dedup/clusters.parquet")
    assert clusters["id"].to_list() == ["p1", "p2", "p3", "p4"]
    assert clusters["relation"].to_list()[1] == "exact"
    assert "gold from ground_truth" in done.stderr


def test_flag_reads_them(project: Path) -> None:
    done = run_command("flag", "--data", "rows.jsonl", "--out", "flagged", cwd=project)
    assert done.returncode == 0, done.stderr
    assert pl.read_parquet(project / "flagged/suspicion.parquet")["id"].to_list() == ["p1", "p2", "p3", "p4"]
    rows = pl.read_parquet(project / "flagged" / "work" / "ingest" / "rows.parquet")
    assert rows["gold"].to_list() == ["7", "7", "\\frac{14}{2}", "144"]


def test_verify_reads_them(project: Path) -> None:
    done = run_command("verify", "--input", "rows.jsonl", "--output", "verdicts.parquet", cwd=project)
    assert done.returncode == 0, done.stderr
    verdicts = pl.read_parquet(project / "verdicts.parquet")
    assert verdicts["id"].to_list() == ["p1", "p2", "p3", "p4"]
    assert verdicts["score"].to_list() == [1.0, 0.0, 1.0, 1.0]


def test_a_surer_name_of_gold_goes_before_answer_and_a_conversation_ends_with_its_response(project: Path) -> None:
    chat = [{"role": "user", "content": "1+1?"}, {"role": "assistant", "content": "\\boxed{2}"}]
    row = {"question": "1+1?", "answer": "It is 3.", "ground_truth": "2", "response": chat}
    (project / "both.jsonl").write_text(json.dumps(row) + "\n")
    done = run_command("verify", "--input", "both.jsonl", "--output", "both.parquet", cwd=project)
    assert done.returncode == 0, done.stderr
    assert pl.read_parquet(project / "both.parquet")["score"].to_list() == [1.0]
    done = run_command("dedup", "--data", "both.jsonl", "--out", "both", cwd=project)
    assert "gold from ground_truth" in done.stderr


def test_decontaminate_reads_them(project: Path) -> None:
    arguments = ("--data", "rows.jsonl", "--against", "evals.jsonl", "--out", "leaks")
    done = run_command("decontaminate", *arguments, cwd=project)
    assert done.returncode == 0, done.stderr
    matches = pl.read_parquet(project / "leaks/matches.parquet")
    assert matches["id"].to_list() == ["p4"] and matches["against_id"].to_list() == ["p4"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ("verify", "--input", "no_gold.jsonl", "--output", "v.parquet"),
            "has no gold column, such as gold or ground_truth",
        ),
        (
            ("verify", "--input", "empty_gold.jsonl", "--output", "v.parquet"),
            "no row has a gold answer in column 'gold'",
        ),
        (("flag", "--data", "no_gold.jsonl", "--out", "f"), "no column has a usual name of problems or answers"),
        (("verifiers", "audit", "math", "--data", "no_gold.jsonl"), "has no gold column"),
    ],
)
def test_a_command_that_needs_gold_says_which_columns_it_saw(
    project: Path, arguments: tuple[str, ...], says: str
) -> None:
    done = run_command(*arguments, cwd=project)
    assert done.returncode == 3, done.stderr
    assert says in done.stderr
    assert "question, response" in done.stderr and ("--gold-column" in done.stderr or "columns: {" in done.stderr)


def test_dedup_says_that_golds_are_not_compared(project: Path) -> None:
    done = run_command("dedup", "--data", "no_gold.jsonl", "--out", "d", cwd=project)
    assert done.returncode == 0, done.stderr
    assert "no gold column" in done.stderr and "question, response, solved" in done.stderr
    assert "--gold-column" in done.stderr


def test_a_verifier_that_needs_no_gold_judges_without(project: Path) -> None:
    done = run_command(
        "verify", "--input", "no_gold.jsonl", "--output", "v.parquet", "--verifier", "length", cwd=project
    )
    assert done.returncode == 0, done.stderr
