"""The report in a real browser: views, filters, sorting, search, cards, maths; hostile rows; a phone; print."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import fake_run as fake
import pytest


def shown(page: Any) -> int:
    """Return how many rows the table says it shows."""
    return int(page.inner_text("#matching").split(" of ")[0].replace(",", ""))


def choose_prompt(page: Any, text: str) -> None:
    """Choose the first row whose line has this text."""
    page.locator("#table .tabulator-row", has_text=text).first.click()


def test_the_views_follow_the_address(visit: Callable[..., Any], small_report: str) -> None:
    page = visit().open(small_report)
    assert page.is_visible("#overview") and not page.is_visible("#rows")
    page.click(".tabs a[href='#details']")
    assert page.is_visible("#planted") and not page.is_visible("#overview")
    page.go_back()
    assert page.is_visible("#overview")
    page.click("#account a[href*='exact_duplicate']")
    page.wait_for_selector("#table .tabulator-row")
    assert shown(page) == 2
    assert "reason=exact_duplicate" in page.url


def test_rows_are_filtered_sorted_and_searched_and_the_address_keeps_it(
    visit: Callable[..., Any], small_report: str
) -> None:
    page = visit().open(f"{small_report}#rows")
    assert shown(page) == 16
    assert "92 %" in page.locator("#table .tabulator-row").first.inner_text()
    page.select_option("#filters select[name=flag]", "suspect_gold")
    assert shown(page) == 2
    page.select_option("#filters select[name=flag]", "")
    page.select_option("#filters select[name=outcome]", "rejected")
    assert shown(page) == 2
    page.click("text=Clear")
    page.select_option("#filters select[name=rate]", "never passed")
    assert shown(page) == 1
    page.click("text=Clear")
    page.press("body", "/")
    page.keyboard.type("raw.jsonl:6")
    page.locator("#matching", has_text=re.compile("^1 of")).wait_for()
    page.fill("#search", "")
    page.locator("#matching", has_text=re.compile("^16 of")).wait_for()
    page.click("#table .tabulator-col[tabulator-field=rate]")
    page.select_option("#filters select[name=stage]", "select")
    address = page.url
    assert "sort=" in address and "stage=select" in address
    order = page.locator("#table .tabulator-row").all_inner_texts()
    again = visit().open(address)
    assert again.locator("#table .tabulator-row").all_inner_texts() == order


@pytest.mark.parametrize("width", [400, 1440])
def test_every_address_that_the_page_writes_keeps_the_order_it_was_opened_with(
    visit: Callable[..., Any], small_report: str, width: int
) -> None:
    made = visit(width=width)
    made.page.add_init_script(
        "window.written = []; const replace = history.replaceState.bind(history);"
        "history.replaceState = (...given) => { written.push(given[2]); replace(...given); };"
    )
    page = made.open(f"{small_report}#rows?stage=select&sort=-rate")
    written = page.evaluate("written")
    assert written and all("sort=-rate" in address and "stage=select" in address for address in written)


def test_rows_can_be_grouped(visit: Callable[..., Any], small_report: str) -> None:
    page = visit().open(f"{small_report}#rows?group=outcome")
    assert "held for review (4)" in page.inner_text("#table")


def test_a_card_shows_what_is_known_of_a_row(visit: Callable[..., Any], small_report: str) -> None:
    page = visit().open(f"{small_report}#rows?q=raw.jsonl:6")
    card = page.locator("#card")
    card.locator("article").wait_for()
    text = card.inner_text()
    assert "at fault with probability 92 % (by the asked model)" in text
    assert "75% of samples agree, holds the row back" in text
    assert "held for review: suspect gold" in text
    assert "0 of 4 judged" in text
    assert "{" not in text.replace("{99}", "")


def test_neighbours_stand_side_by_side_with_differences_marked(visit: Callable[..., Any], small_report: str) -> None:
    page = visit().open(f"{small_report}#rows?q=raw.jsonl:4")
    card = page.locator("#card")
    card.locator(".neighbour").wait_for()
    assert "exact duplicate; this one stayed" in card.inner_text()
    # Lines 3 and 4 have the same text and other golds.
    assert card.locator(".neighbour .row-text mark").count() == 0
    assert card.locator(".neighbour .verdict mark").all_inner_texts() == ["13", "12"]
    card.locator(".neighbour a").click()
    page.locator("#card article[aria-label='Row raw.jsonl:3']").wait_for()
    # The filters stay, and so does the place in the list.
    assert shown(page) == 1
    page.keyboard.press("ArrowRight")
    page.locator("#card article[aria-label='Row raw.jsonl:4']").wait_for()


def test_formulas_are_drawn_whole_and_hostile_ones_shown_as_they_stand(
    visit: Callable[..., Any], small_report: str
) -> None:
    page = visit().open(f"{small_report}#rows?q=raw.jsonl:11")
    text = page.locator("#card .row-text").first
    text.locator(".katex").first.wait_for()
    assert page.locator("#card a[href^='javascript']").count() == 0
    assert r"\[\notacommand{x}\]" in text.inner_text()
    text.locator("button.source").click()
    assert r"\(\frac{1}{2}+\sqrt{3}\)" in text.inner_text()


@pytest.fixture
def formulas(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a report with a radical and a \\text in a prompt."""
    from report_pages import run_report

    run = fake.FakeRun(tmp_path_factory.mktemp("formulas") / "fake")
    run.rows[1]["prompt"] = r"Find \(\sqrt{144}\) with \(\text{the whole word}\)."
    run.build(fake.CURATION)
    run_report(run.folder, fake.CURATION)
    return (run.folder / "report" / "index.html").as_uri()


def test_a_radical_and_a_text_are_not_clipped(visit: Callable[..., Any], formulas: str) -> None:
    page = visit().open(f"{formulas}#rows?q=whole")
    box = page.locator("#card .row-text").first
    box.locator(".katex").nth(1).wait_for()
    # The radical's line and the text are as tall and wide as KaTeX has laid them out, and stand within the block.
    for part in (".katex .sqrt svg", ".katex .text"):
        measured = box.locator(part).first.evaluate(
            "node => { const b = node.getBoundingClientRect(), c = node.closest('.row-text').getBoundingClientRect();"
            " const s = getComputedStyle(node); return [b.width, b.height, b.left >= c.left, b.right <= c.right,"
            " s.maxHeight, s.textOverflow] }"
        )
        assert measured[0] > 10 and measured[1] > 4
        assert measured[2:] == [True, True, "none", "clip"]


def test_no_row_runs_and_none_breaks_the_page(visit: Callable[..., Any], small_report: str) -> None:
    opened = visit()
    page = opened.open(f"{small_report}#rows")
    for _ in range(16):
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(30)
    assert page.locator("img, iframe, object, embed").count() == 0
    assert page.evaluate("document.querySelectorAll('script').length") == page.evaluate(
        "document.querySelectorAll('body > script').length"
    )
    # A script that got into the page all the same would not run.
    page.evaluate(
        "() => { const s = document.createElement('script'); s.textContent = 'window.ran = 1';"
        " document.body.append(s) }"
    )
    assert page.evaluate("window.ran") is None
    assert [text for text in opened.complaints if "Content Security Policy" not in text] == []
    opened.complaints.clear()


@pytest.mark.parametrize("view", ["overview", "rows", "training", "details"])
def test_a_phone_scrolls_nothing_sideways(visit: Callable[..., Any], small_report: str, view: str) -> None:
    page = visit(width=390, height=844).open(f"{small_report}#{view}")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    if view == "rows":
        choose_prompt(page, "apples")
        page.wait_for_selector("#card article")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert not page.is_visible("#table")
        page.click("#close-card")
        assert page.is_visible("#table")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_follows_the_scheme_of_the_system(visit: Callable[..., Any], small_report: str, scheme: str) -> None:
    page = visit(color_scheme=scheme).open(f"{small_report}#rows")
    for selector in ("body", "#table .tabulator-row", "#card"):
        colour = page.locator(selector).first.evaluate(
            "node => { for (; node; node = node.parentElement) { const c = getComputedStyle(node).backgroundColor;"
            " if (c !== 'rgba(0, 0, 0, 0)') return c } }"
        )
        lightness = sum(int(part) for part in colour[4:-1].split(",")[:3]) / 3
        assert (lightness < 90) == (scheme == "dark"), (selector, colour)


def test_in_print_all_of_the_overview_stands_and_no_control(visit: Callable[..., Any], small_report: str) -> None:
    page = visit().open(small_report)
    page.emulate_media(media="print")
    assert page.is_visible("#account") and page.is_visible("#planted")
    assert not page.is_visible("#filters") and not page.is_visible(".tabs")


def test_completions_are_read_by_step_and_laid_beside_those_of_another(
    visit: Callable[..., Any], small_report: str
) -> None:
    page = visit().open(f"{small_report}#training")
    box = page.locator("#completions")
    box.locator("h4", has_text="Step 0: 1 of 2 right").wait_for()
    assert "match, answered 10, advantage 0.5" in box.inner_text()
    page.focus("#step")
    page.keyboard.press("ArrowRight")
    box.locator("h4", has_text="Step 2: 1 of 2 right").wait_for()
    # Line 1 comes in both steps.
    page.get_by_label("Beside it").select_option(label="step 0")
    box.locator("h4", has_text="Step 0").wait_for()
    assert box.locator("mark").all_inner_texts()[:2] == ["2", "2"]
    assert "alert(1)" in box.inner_text()
