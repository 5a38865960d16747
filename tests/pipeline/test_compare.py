"""The page that lays two runs side by side: its figures, what moved and why, and the change of every row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import fake_run as fake
import pytest
from report_pages import Page, shown_rows

from truegold.pipeline.report.compare import compare_runs
from truegold.verifiers import InputError

GERMAN = ("Anna hat drei Stifte und kauft noch vier dazu. Wie viele Stifte hat sie jetzt?", "7")
PROBLEMS = [
    (f"Ann has {n} pens and buys {n + 1} more at the shop. How many has she now?", str(2 * n + 1)) for n in range(9)
]


def test_a_row_says_how_it_ended_in_the_first_run(curate: Callable[..., Path], tmp_path: Path) -> None:
    first = curate(tmp_path, [*PROBLEMS, GERMAN], name="a")
    second = curate(tmp_path, [*PROBLEMS, GERMAN], name="b", clean={"languages": ["en"]})
    html = compare_runs(first, second)
    changes = {row["prompt"]: row["change"] for row in shown_rows(html)}
    assert {prompt: change for prompt, change in changes.items() if change} == {
        GERMAN[0]: "kept → clean: other_language"
    }
    text = Page(html).visible_text
    assert "a beside b" in text
    assert "clean.languages : nothing → en" in text
    assert "kept clean: other language 1 clean.languages : nothing → en" in text


def test_curves_of_both_trainings_stand_in_one_chart(tmp_path: Path) -> None:
    for name in ("a", "b"):
        fake.FakeRun(tmp_path / name).build(fake.FULL)
    page = Page(compare_runs(tmp_path / "a", tmp_path / "b"))
    assert "Every row of both runs ended in the same way." in page.visible_text
    assert "held-out pass rate after training 87.5 % 87.5 %" in page.visible_text
    charts = [attrs["aria-label"] for tag, attrs in page.tags if tag == "svg"]
    assert "pass_rate by step" in charts
    rows = [row for row in shown_rows(compare_runs(tmp_path / "a", tmp_path / "b")) if row["rate"] is not None]
    assert rows and all(row["earlier_rate"] == row["rate"] for row in rows)


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    fake.FakeRun(tmp_path / "a").build(fake.CURATION)
    with pytest.raises(InputError, match=r"nowhere is no run of truegold"):
        compare_runs(tmp_path / "a", tmp_path / "nowhere")
