"""A text that the page cuts can be had whole: from the server of a review, or by the table that the page names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fake_run as fake
import pytest
from report_pages import run_report, shown_rows

from truegold.pipeline.report.page_rows import whole_texts
from truegold.pipeline.tables.run_files import open_finished

LONG = f"Tom has {'many ' * 1_500}apples \u202eand\0 they end here."
DROPPED = "raw.jsonl", 2
KEPT = "raw.jsonl", 1


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small run with a long prompt in a row that stays and in its copy, which is dropped."""
    run = fake.FakeRun(tmp_path_factory.mktemp("whole") / "fake")
    for line in (1, 2):
        run.rows[line]["prompt"] = LONG
    run.rows[1]["solution"] = "1 + 1 = 2\n" * 900
    run.build(fake.FULL)
    return run.folder


def row_of(html: str, line: int) -> dict[str, Any]:
    """Return the page's row of a line of raw.jsonl."""
    return next(row for row in shown_rows(html) if (row["source"], row["row"]) == ("raw.jsonl", line))


def test_the_page_says_what_it_cut_and_in_which_table_it_stands(run_dir: Path) -> None:
    _, html, _ = run_report(run_dir, fake.FULL)
    row = row_of(html, 1)
    assert row["detail"]["cut"] == {"prompt": len(LONG), "solution": 9_000, "table": "flag/rows.parquet"}
    assert len(row["prompt"]) < len(LONG)
    assert row_of(html, 2)["detail"]["cut"]["table"] == "dedup/dropped.parquet"
    assert "cut" not in row_of(html, 3)["detail"]


@pytest.mark.parametrize("is_blind", [False, True])
def test_whole_texts_are_visible_to_their_end(run_dir: Path, is_blind: bool) -> None:
    files = open_finished(run_dir)
    row_id = fake.FakeRun(run_dir).rows[1]["id"]
    texts = whole_texts(files, row_id, KEPT, is_blind=is_blind)
    assert texts is not None
    assert texts["prompt"] == LONG.replace("\u202e", "\ufffd").replace("\0", "\u2400")
    assert texts["detail"]["solution"].count("1 + 1 = 2") == 900
    assert len(texts["detail"]["samples"]) == 4


def test_a_row_that_left_early_has_its_texts_too(run_dir: Path) -> None:
    files = open_finished(run_dir)
    row_id = fake.FakeRun(run_dir).rows[2]["id"]
    for source_key in (DROPPED, None):
        texts = whole_texts(files, row_id, source_key, is_blind=False)
        assert texts is not None and texts["prompt"].endswith("they end here.")
    assert whole_texts(files, "0" * 20, None, is_blind=False) is None
    assert whole_texts(files, row_id, ("raw.jsonl", 999), is_blind=False) is None
