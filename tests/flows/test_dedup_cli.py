"""The commands `truegold dedup` and `truegold decontaminate`: what they print, write and refuse."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from command_line import run_command

TOM = "Tom has 37 red cars and buys 45 more at the market. How many cars has Tom got in total?"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    rows = [TOM, TOM.replace("37", "thirty-seven"), TOM.replace("37", "58"), "Else?"]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps({"Frage": text}) + "\n" for text in rows))
    (tmp_path / "evals.jsonl").write_text(json.dumps({"id": "g", "question": TOM}) + "\n")
    return tmp_path


def test_dedup_writes_clusters_and_prints_what_it_found(project: Path) -> None:
    done = run_command("dedup", "--data", "train.jsonl", "--out", "found/here", "--prompt-column", "Frage", cwd=project)
    assert done.returncode == 0, done.stderr
    lines = [line.rsplit(maxsplit=1) for line in done.stdout.splitlines()]
    assert [[name.strip(), count] for name, count in lines[2:5]] == [
        ["records", "4"],
        ["keep", "3"],
        ["drop same_problem", "1"],
    ]
    assert ["clusters:", "found/here/clusters.parquet"] in lines
    assert "| drop same_problem | 1 |" in (project / "found" / "here" / "report.md").read_text()
    assert ["kept:", "found/here/kept.jsonl"] in lines
    rows = (project / "train.jsonl").read_text().splitlines()
    assert (project / "found" / "here" / "kept.jsonl").read_text().splitlines() == [rows[0], *rows[2:]]
    assert (project / "found" / "here" / "dropped.jsonl").read_text().splitlines() == [rows[1]]
    clusters = pl.read_parquet(project / "found" / "here" / "clusters.parquet")
    assert clusters["relation"].to_list() == ["same_problem", "same_problem", "same_template", "unrelated"]


def test_decontaminate_writes_matches_and_prints_them_by_kind(project: Path) -> None:
    arguments = ("decontaminate", "--data", "train.jsonl", "--against", "evals.jsonl", "--out", "found")
    done = run_command(*arguments, "--prompt-column", "Frage", cwd=project)
    assert done.returncode == 0, done.stderr
    assert [line.split() for line in done.stdout.splitlines()][2:4] == [["records", "4"], ["matching", "2"]]
    page = (project / "found" / "report.md").read_text()
    assert "| exact evals.jsonl | 1 |" in page
    rows = (project / "train.jsonl").read_text().splitlines()
    assert (project / "found" / "kept.jsonl").read_text().splitlines() == rows[2:]
    matches = pl.read_parquet(project / "found" / "matches.parquet")
    assert matches.columns == ["id", "row", "against", "against_id", "kind", "score", "evidence"]
    assert matches["id"].to_list() == ["1", "2"]


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (("dedup", "--data", "absent.jsonl", "--out", "o"), 3, "absent.jsonl does not exist"),
        (("dedup", "--data", "train.jsonl", "--out", "o"), 3, "has no prompt column"),
        (("decontaminate", "--data", "evals.jsonl", "--against", "nothing", "--out", "o"), 3, "Known by name: aime24"),
        (("decontaminate", "--data", "evals.jsonl", "--out", "o"), 2, "--against"),
    ],
)
def test_a_mistake_is_one_helpful_line(project: Path, arguments: tuple[str, ...], code: int, expected: str) -> None:
    done = run_command(*arguments, cwd=project)
    assert done.returncode == code
    assert expected in done.stderr
    assert "Traceback" not in done.stderr
