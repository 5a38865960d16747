"""`truegold review` in a real browser: what is decided is on the disk, whatever becomes of server and page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fake_run as fake
import pytest
from review_server import TOKEN, Server


@pytest.fixture
def server(browser: Any, tmp_path: Path) -> Iterator[Server]:
    """A review of the small run. (Without a browser none is started.)"""
    fake.FakeRun(tmp_path / "fake").build(fake.FULL)
    started = Server(tmp_path / "fake", tmp_path / "decisions")
    yield started
    started.kill()


def decide(page: Any, key: str) -> None:
    """Press a key and wait until the page has gone on."""
    before = page.get_attribute("#card article", "aria-label")
    page.keyboard.press(key)
    page.locator(f"#card article:not([aria-label='{before}'])").wait_for()


def test_a_killed_server_loses_nothing(server: Server, visit: Callable[..., Any]) -> None:
    made = visit()
    page = made.open(server.address())
    page.locator("#card article").wait_for()
    for key in "kdu":
        decide(page, key)
    server.kill()
    page.keyboard.press("k")
    page.locator("#review .trouble", has_text="nothing was saved").wait_for()
    assert [line["decision"] for line in server.lines()] == ["keep", "drop", "unsure"]
    server.start()
    page.reload()
    page.locator("#progress span", has_text=re.compile("^3 of")).wait_for()
    page.keyboard.press("k")
    page.locator("#progress span", has_text=re.compile("^[34] of")).wait_for()
    made.complaints = [text for text in made.complaints if "ERR_CONNECTION_REFUSED" not in text]


def test_a_new_gold_is_read_while_it_is_typed(server: Server, visit: Callable[..., Any]) -> None:
    page = visit().open(server.address("?q=raw.jsonl:6"))
    page.locator("#card article").wait_for()
    page.keyboard.press("f")
    page.fill("#gold", "99")
    page.locator(".reading", has_text="0 → 4 of 4 samples pass").wait_for()
    page.fill("#gold", "1/(")
    page.locator(".reading", has_text="cannot read").wait_for()
    page.fill("#gold", "99")
    page.press("#gold", "Enter")
    page.locator("#review .status", has_text="fix to 99").wait_for()
    (line,) = server.lines()
    assert (line["decision"], line["gold"], line["reviewer"]) == ("fix", "99", "ann")


def test_two_tabs_and_undo(server: Server, visit: Callable[..., Any]) -> None:
    page = visit().open(server.address())
    other = visit().open(server.address())
    for turn, tab in enumerate((page, other, page, other)):
        tab.locator("#table .tabulator-row").nth(turn).click()
        tab.locator("#card article").wait_for()
        decide(tab, "k")
    page.reload()
    page.locator("#progress span", has_text=re.compile("^4 of")).wait_for()
    other.keyboard.press("z")
    other.locator("#review .status", has_text="Undone").wait_for()
    page.reload()
    page.locator("#progress span", has_text=re.compile("^3 of")).wait_for()
    assert [line["decision"] for line in server.lines()] == ["keep"] * 4 + ["undo"]


def test_a_drawn_sample_is_read_in_its_order(browser: Any, visit: Callable[..., Any], tmp_path: Path) -> None:
    fake.FakeRun(tmp_path / "fake").build(fake.FULL)
    server = Server(tmp_path / "fake", tmp_path / "decisions", "--random", "3", "--seed", "5", "--among", "all")
    try:
        page = visit().open(f"http://127.0.0.1:{server.port}/?token={TOKEN}")
        page.locator("#progress span", has_text="0 of 3").wait_for()
        queue = page.evaluate("truegold.settings.review.queue.map(([, source, row]) => `${source}:${row}`)")
        assert page.evaluate("truegold.active.map((row) => row.place)") == queue
        page.locator("#card article").wait_for()
        decide(page, "d")
        page.locator("#progress span", has_text="1 of 3").wait_for()
        assert [line["drawn"].split(":")[0] for line in server.lines()] == ["random"]
    finally:
        server.kill()
