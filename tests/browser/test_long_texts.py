"""Texts too long for the page, in a real browser: a button shows the whole text; printing takes the filtered rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import fake_run as fake
import pytest
from report_pages import run_report
from review_server import TOKEN, Server

LONG = f"Tom has {'many ' * 1_500}apples, and they end here."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The small run with a long prompt, and its report."""
    run = fake.FakeRun(tmp_path / "long")
    run.rows[9]["prompt"] = LONG
    run.build(fake.FULL)
    run_report(run.folder, fake.FULL)
    return run.folder


def test_a_cut_text_says_in_the_file_where_it_stands_whole(visit: Callable[..., Any], folder: Path) -> None:
    page = visit().open(f"{(folder / 'report' / 'index.html').as_uri()}#rows?q=raw.jsonl:9")
    card = page.locator("#card")
    card.locator("button.whole", has_text=f"Show all {len(LONG):,} characters").click()
    text = card.locator("article").inner_text()
    assert f"All {len(LONG):,} characters are in {folder}/flag/rows.parquet, column prompt of the row" in text


def test_a_review_shows_it_whole(browser: Any, visit: Callable[..., Any], folder: Path, tmp_path: Path) -> None:
    server = Server(folder, tmp_path / "decisions")
    try:
        page = visit().open(f"http://127.0.0.1:{server.port}/?token={TOKEN}#rows?q=raw.jsonl:9")
        card = page.locator("#card")
        assert "they end here" not in card.locator(".row-text").first.inner_text()
        card.locator("button.whole").first.click()
        card.locator(".row-text", has_text="they end here.").wait_for()
        assert card.locator("button.whole").count() == 0
    finally:
        server.kill()


def test_the_filtered_rows_are_printed(visit: Callable[..., Any], small_report: str) -> None:
    page = visit().open(f"{small_report}#rows?outcome=held for review")
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    lines = page.locator("#printed tbody tr").all_inner_texts()
    assert len(lines) == 4
    assert "4 of 16 records (outcome held for review)" in page.inner_text("#printed")
    assert page.is_visible("#card article") and not page.is_visible("#overview") and not page.is_visible("#table")
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.locator("#printed tr").count() == 0


def test_how_many_rows_are_printed_is_said(visit: Callable[..., Any], small_report: str) -> None:
    page = visit().open(f"{small_report}#rows")
    page.evaluate("truegold.active = Array.from({ length: 1200 }, () => truegold.rows[0])")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator("#printed tbody tr").count() == 1_000
    assert "the first 1,000 are printed" in page.locator("#printed").text_content()
