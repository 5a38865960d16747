"""The page that lays two runs side by side: what moved, and why."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import fake_run as fake
import pytest
from report_pages import Page

from truegold.pipeline.report.run_diff import diff_page
from truegold.pipeline.tables.rows import row_id
from truegold.verifiers import InputError

GERMAN = ("Anna hat drei Stifte und kauft noch vier dazu. Wie viele Stifte hat sie jetzt?", "7")
PROBLEMS = [
    (f"Ann has {n} pens and buys {n + 1} more at the shop. How many has she now?", str(2 * n + 1)) for n in range(9)
]


def test_the_page_has_what_the_difference_has(curate: Callable[..., Path], tmp_path: Path) -> None:
    first = curate(tmp_path, [*PROBLEMS, GERMAN], name="a")
    second = curate(tmp_path, [*PROBLEMS, GERMAN], name="b", clean={"languages": ["en"]})
    page = Page(diff_page(first, second))
    assert page.open == []
    text = page.visible_text
    assert "a and b" in text and "10 → 9 rows left" in text
    assert "clean.languages : nothing → en" in text
    assert f"kept clean: other language 1 {row_id(*GERMAN)} clean.languages : nothing → en" in text


def test_two_runs_of_the_same_have_no_difference(tmp_path: Path) -> None:
    for name in ("a", "b"):
        fake.FakeRun(tmp_path / name).build(fake.FULL)
    text = Page(diff_page(tmp_path / "a", tmp_path / "b")).visible_text
    assert "Every row of both runs ended in the same way." in text
    assert "47.2 % → 47.2 % mean pass rate of 9 rows" in text


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    fake.FakeRun(tmp_path / "a").build(fake.CURATION)
    with pytest.raises(InputError, match=r"nowhere is not a run of truegold"):
        diff_page(tmp_path / "a", tmp_path / "nowhere")
