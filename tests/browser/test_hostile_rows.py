"""Rows that want to run, to break the page, or to take its time: all of them are shown, and none does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import fake_run as fake
import pytest
from report_pages import run_report

HOSTILE = [
    "</script><script>document.title = 'ran'</script>",
    "<!--<script>alert(1)</script>--><svg onload=alert(1)><math><mtext></math><img src=x onerror=alert(1)>",
    "]]><![CDATA[<iframe srcdoc='<script>parent.document.title = 1</script>'></iframe>",
    "[x](javascript:alert(1)) javascript:alert(1) data:text/html,<script>alert(1)</script>",
    r"\(\href{javascript:alert(1)}{x}\) $\url{javascript:alert(1)}$ \[\includegraphics{http://127.0.0.1:9/x.png}\]",
    r"$\htmlClass{view}{x}$ $\htmlStyle{position:fixed;inset:0}{x}$ $\htmlId{card}{x}$ $\htmlData{a=b}{x}$",
    r"$\def\a{\a\a}\a$ $\newcommand{\b}{\b\b\b}\b$ $\gdef\truegold{1}$",
    r"$\rule{99999999em}{99999999em}$ $\kern{99999999em}x$ $\raisebox{-9999em}{x}$ $\Huge\Huge\Huge x$",
    "$x_1$ " * 700,
    "$" * 3999 + " \\(" * 1000 + "{" * 2000,
    "$" + r"\frac{1}{" * 300 + "1" + "}" * 300 + "$",
    "\u202eevil\u2066\u202d \u200b\u200d \ufeff" + "a\u0301" * 500 + "\0\x1b[2J\x7f",
    "{{ 7 * 7 }} {% raw %} ${7*7} <%= 7*7 %> #{7*7}",
    "W" * 4000,
]
NAME = "<img src=x onerror=alert(1)>'\"&.jsonl"


@pytest.fixture(scope="module")
def hostile_report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a report whose every text is hostile."""
    run = fake.FakeRun(tmp_path_factory.mktemp("hostile") / "x';alert(1)<b>")
    lines = [line for line in run.rows if line > 0]
    texts = HOSTILE + HOSTILE[: max(0, len(lines) - len(HOSTILE))]
    for line, text in zip(lines, texts, strict=False):
        run.rows[line] |= {"prompt": text, "gold": text[:300], "solution": text, "domain": NAME[:60]}
    run.rows[1]["source"] = NAME
    run.build(fake.CURATION)
    run_report(run.folder, fake.CURATION)
    return (run.folder / "report" / "index.html").as_uri()


@pytest.mark.parametrize("width", [1440, 390])
def test_all_are_shown_and_none_acts(visit: Callable[..., Any], hostile_report: str, width: int) -> None:
    page = visit(width=width).open(f"{hostile_report}#rows")
    title = page.title()
    rows = page.evaluate("truegold.rows.length")
    shown = set()
    for position in range(rows):
        started = time.monotonic()
        page.evaluate("(position) => truegold.choose(truegold.rows[position])", position)
        assert time.monotonic() - started < 5
        shown.add(page.locator("#card .row-text").first.inner_text()[:12])
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        box = page.locator("#card").bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= width
    assert len(shown) > 10
    assert page.title() == title
    assert page.locator("#rows img, #rows iframe, #rows object, #rows script, #rows a[href^='javascript']").count() == 0
    assert page.locator("#card").count() == 1
    # The page still works.
    page.evaluate("() => { truegold.filterState.q = 'evil'; truegold.applyFilters() }")
    assert page.inner_text("#matching").startswith("1 of")
