"""Reviewing in a real browser, in the report as a file: by keyboard alone; a reload loses nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fake_run as fake
import pytest
from report_pages import run_report

from truegold.pipeline.review.stage import load_decisions

ROWS = 60


@pytest.fixture(scope="module")
def long_report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a report on more than fifty rows that a person may decide about."""
    run = fake.FakeRun(tmp_path_factory.mktemp("review") / "long")
    for line in range(20, 20 + ROWS):
        run.rows[line] = fake.make_row(line, prompt=f"Ann has {line} apples and buys 9 more. How many has she?")
    run.record = _without_counts(run)  # type: ignore[method-assign]
    run.build(fake.CURATION)
    run_report(run.folder, fake.CURATION)
    return (run.folder / "report" / "index.html").as_uri()


def _without_counts(run: fake.FakeRun) -> Callable[..., None]:
    """Return a writer of records that counts the further rows in."""
    record = type(run).record

    def with_more(name: str, rows_in: int, rows_out: int, **facts: Any) -> None:
        is_counted = name in ("ingest", "clean")
        record(run, name, rows_in + ROWS, rows_out + ROWS if is_counted else rows_out, **facts)

    return with_more


def decided(page: Any) -> int:
    """Return how many rows the page says are decided."""
    return int(page.inner_text("#progress span").split(" of ")[0].replace(",", ""))


def test_fifty_rows_by_keyboard_alone_and_all_is_there_after_a_reload(
    visit: Callable[..., Any], long_report: str, tmp_path: Path
) -> None:
    page = visit().open(f"{long_report}#rows?queue=suspicious&size=50")
    assert page.inner_text("#progress span") == "0 of 50"
    page.wait_for_selector("#card article")
    keys = ["k", "d", "u", "k", "d"]
    for turn in range(50):
        before = page.get_attribute("#card article", "aria-label")
        page.keyboard.press(keys[turn % 5])
        if turn < 49:
            page.locator(f"#card article:not([aria-label='{before}'])").wait_for()
    assert decided(page) == 50
    page.keyboard.press("z")
    page.locator("#progress span", has_text="49 of 50").wait_for()
    page.keyboard.press("f")
    assert page.locator("#gold").evaluate("node => node === document.activeElement")
    page.keyboard.type("1/2")
    page.keyboard.press("Enter")
    page.locator("#progress span", has_text="50 of 50").wait_for()
    page.keyboard.press("n")
    page.keyboard.type("half of it")
    page.keyboard.press("Enter")
    page.locator("#review .status", has_text="Note kept").wait_for()
    page.reload()
    page.locator("#progress span", has_text="50 of 50").wait_for()
    page.fill("#reviewer", "Ann Lee")
    with page.expect_download() as waiting:
        page.click("#download")
    assert waiting.value.suggested_filename == "decisions-Ann-Lee.jsonl"
    folder = tmp_path / "decisions"
    folder.mkdir()
    waiting.value.save_as(folder / "ann.jsonl")
    decisions = [decision for words in load_decisions(folder).values() for decision in words]
    kinds = sorted(str(decision.decision) for decision in decisions)
    assert (len(kinds), kinds.count("fix"), kinds.count("keep")) == (50, 1, 20)
    assert {decision.reviewer for decision in decisions} == {"Ann Lee"}
    (fix,) = (decision for decision in decisions if decision.decision == "fix")
    assert (fix.gold, fix.note, fix.drawn) == ("1/2", "half of it", "suspicious")


def test_two_tabs_lose_nothing_of_each_other(visit: Callable[..., Any], long_report: str) -> None:
    first = visit()
    page = first.open(f"{long_report}#rows?queue=suspicious&size=20")
    other = page.context.new_page()
    other.goto(f"{long_report}#rows?queue=suspicious&size=20")
    other.wait_for_selector("body[data-ready]")
    for tab in (page, other):
        tab.bring_to_front()
    for turn, tab in enumerate((page, other, page, other)):
        tab.locator("#table .tabulator-row").nth(turn).click()
        tab.locator("#card article").wait_for()
        tab.keyboard.press("k")
    page.reload()
    page.locator("#progress span", has_text="4 of 20").wait_for()


def test_a_random_sample_is_the_same_for_the_same_draw(visit: Callable[..., Any], long_report: str) -> None:
    page = visit().open(f"{long_report}#rows?queue=random&size=20&seed=7")
    drawn = []
    for seed in (7, 8, 7):
        page.fill("#queue input[name=seed]", str(seed))
        page.press("#queue input[name=seed]", "Tab")
        drawn.append(page.evaluate("truegold.active.map((row) => row.place)"))
    assert drawn[0] == drawn[2] != drawn[1]
    assert len(set(drawn[0])) == 20
    assert page.evaluate("truegold.drawnAs()") == "random:7"
    # What is chosen by more than a flag is no random sample.
    page.fill("#search", "apples")
    page.locator("#matching", has_text="20 of").wait_for()
    assert page.evaluate("truegold.drawnAs()") == "suspicious"


def test_a_record_that_left_before_is_not_decided_about(visit: Callable[..., Any], long_report: str) -> None:
    page = visit().open(f"{long_report}#rows?outcome=rejected")
    page.wait_for_selector("#card article")
    assert page.is_disabled("button[data-decision=keep]")
    page.keyboard.press("k")
    assert json.loads(page.evaluate("JSON.stringify(truegold.rows.filter((row) => row.decision))")) == []


def test_keys_can_be_switched_off(visit: Callable[..., Any], long_report: str) -> None:
    page = visit().open(f"{long_report}#rows")
    page.wait_for_selector("#card article")
    page.click("#help summary")
    page.uncheck("#keys-on")
    page.keyboard.press("k")
    assert decided(page) == 0
