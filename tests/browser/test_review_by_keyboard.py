"""A reviewer's work in a real browser: suggestions, notes, many rows at once, similar rows, programs with tests."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fake_run as fake
import pytest
from review_server import Server

from truegold.pipeline.tables.ledger import FLAG_SCHEMA, Ledger
from truegold.pipeline.tables.rows import dump_json, read_rows, write_rows

FLAGGED = range(20, 44)
"""The lines with a gold that the solution contradicts: 24 rows."""
CUT_OFF = range(44, 50)
"""The lines whose prompt is cut off: 6 rows."""
PROGRAM, FORMULA = 50, 51
UNREADABLE = (52, 53)
"""The lines that `verify_gold` drops."""
STDIO = {"type": "stdio", "cases": [{"input": "1 2\n", "output": "3\n"}, {"input": "  7\t8\n", "output": "15\n"}]}


class FlaggedRun(fake.FakeRun):
    """A curated run of thirty rows that are held back, a program and a gold that is a formula."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        for line in (*FLAGGED, *CUT_OFF, PROGRAM, FORMULA, *UNREADABLE):
            prompt = f"Ann has {line} apples and buys 9 more for her friends. How many?"
            self.rows[line] = fake.make_row(line, prompt=prompt) | {"meta": dump_json({"source_id": f"own-{line}"})}
        settings = {"verifier": "code", "gold": None, "solution": "if True:\n    print(3)"}
        self.rows[PROGRAM] |= {**settings, "verifier_args": dump_json(STDIO)}
        self.rows[FORMULA]["gold"] = r"10\frac{1}{12}"

    def record(self, name: str, rows_in: int, rows_out: int, **facts: Any) -> None:
        """Write a stage's record that counts the further rows in."""
        more = 0 if name == "settle" else len(FLAGGED) + len(CUT_OFF) + 4
        super().record(name, rows_in + more, rows_out + (more if name in ("ingest", "clean") else 0), **facts)

    def _verify_gold(self, out: Path) -> None:
        with Ledger(out, "verify_gold") as ledger:
            for line in UNREADABLE:
                ledger.drop(self.rows[line], "unverifiable_gold", verdict="unparsable_gold")
        write_rows(out / "flags.parquet", [], FLAG_SCHEMA)
        self._pass_on("verify_gold", out, 12, without=UNREADABLE)

    def _settle(self, out: Path) -> None:
        wrong = {"reason": "solution_contradicts_gold", "confidence": 0.9, "blocks": True, "extracted": "7"}
        flags = [fake.flag_of(self.rows[line], **wrong) | {"suggestion": "7"} for line in FLAGGED]
        flags += [fake.flag_of(self.rows[line], "truncated_text", 0.8, True, end="more") for line in CUT_OFF]
        flags += [fake.flag_of(self.rows[PROGRAM], "guessable", 1.0, False, chance=0.1481)]
        path = self.folder / "flag" / "flags.parquet"
        write_rows(path, [*read_rows(path), *flags], FLAG_SCHEMA)
        held = (5, 8, 10, *FLAGGED, *CUT_OFF)
        with Ledger(out, "settle") as ledger:
            for line in held:
                ledger.drop(self.rows[line], "held_for_review")
        self._pass_on("settle", out, len(self.rows), without=held)


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of such a run."""
    return FlaggedRun(tmp_path_factory.mktemp("keyboard") / "rows").build(fake.CURATION).folder


@pytest.fixture
def server(browser: Any, run_dir: Path, tmp_path: Path) -> Iterator[Server]:
    """A review of the run with no decisions yet."""
    started = Server(run_dir, tmp_path / "decisions")
    yield started
    started.kill()


@pytest.fixture(scope="module")
def undecided(browser: Any, run_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A review of the run that tests share which decide nothing."""
    started = Server(run_dir, tmp_path_factory.mktemp("undecided"))
    yield started
    started.kill()


def open_rows(visit: Callable[..., Any], server: Server, query: str = "") -> Any:
    """Return the page with its first row chosen."""
    page = visit().open(server.address(query))
    page.locator("#card article").wait_for()
    return page


def press(page: Any, key: str) -> None:
    """Press a key and wait until another row is chosen."""
    before = page.get_attribute("#card article", "aria-label")
    page.keyboard.press(key)
    page.locator(f"#card article:not([aria-label='{before}'])").wait_for()


def status(page: Any, text: str) -> None:
    """Wait until the line below the keys says this."""
    page.locator("#review .status", has_text=re.compile(text)).wait_for()


def test_thirty_rows_are_decided_as_suggested_noted_and_undone(server: Server, visit: Callable[..., Any]) -> None:
    page = open_rows(visit, server, "?q=buys 9 more for her friends&outcome=held for review")
    assert page.inner_text(".accept").startswith("Accept: fix gold to 7")
    for turn in range(30):
        if turn == 10:
            page.keyboard.press("n")
            page.keyboard.type("k and d are no keys here")
            page.keyboard.press("Enter")
        press(page, "k" if turn % 5 == 4 else "a") if turn < 29 else page.keyboard.press("k")
    page.locator("#progress span", has_text="30 of").wait_for()
    page.keyboard.press("z")
    page.locator("#progress span", has_text="29 of").wait_for()
    page.keyboard.press("a")
    page.locator("#progress span", has_text="30 of").wait_for()
    lines = server.lines()
    decided = {line["id"]: line for line in lines if line["decision"] not in ("undo", "note")}
    kinds = [line["decision"] for line in decided.values()]
    assert len(decided) == 30
    assert (kinds.count("fix"), kinds.count("drop"), kinds.count("keep")) == (20, 5, 5)
    assert {line["gold"] for line in decided.values() if line["decision"] == "fix"} == {"7"}
    assert [line["note"] for line in decided.values() if "note" in line] == ["k and d are no keys here"]


def test_keys_pressed_at_once_are_about_one_row_each(server: Server, visit: Callable[..., Any]) -> None:
    page = open_rows(visit, server)
    page.evaluate(
        """() => [...'kdknkd'].forEach(
            (key) => document.body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true })))"""
    )
    page.locator("#note:focus").wait_for()
    lines = server.lines()
    assert [line["decision"] for line in lines] == ["keep", "drop", "keep"]
    assert len({line["id"] for line in lines}) == 3


def test_no_key_acts_on_a_row_that_the_filters_hide(undecided: Server, visit: Callable[..., Any]) -> None:
    page = open_rows(visit, undecided)
    page.fill("#search", "zzzqqq")
    page.locator("#matching", has_text=re.compile("^0 of")).wait_for()
    page.keyboard.press("Escape")
    for key in "kadun":
        page.keyboard.press(key)
    page.locator("#card", has_text="Choose a row.").wait_for()
    assert undecided.lines() == []


def test_a_note_stays_when_the_row_is_left_undecided(server: Server, visit: Callable[..., Any]) -> None:
    page = open_rows(visit, server)
    page.keyboard.press("n")
    page.keyboard.type("which year?")
    page.keyboard.press("Enter")
    status(page, "Note kept")
    press(page, "ArrowRight")
    assert page.input_value("#note") == ""
    press(page, "ArrowLeft")
    assert page.input_value("#note") == "which year?"
    # Another browser knows it from the disk, and a decision takes it along; undone, the note is there still.
    other = open_rows(visit, server)
    assert other.input_value("#note") == "which year?"
    press(other, "k")
    other.keyboard.press("z")
    status(other, "Undone")
    assert other.input_value("#note") == "which year?"
    assert [(line["decision"], line.get("note")) for line in server.lines()][:2] == [
        ("note", "which year?"),
        ("keep", "which year?"),
    ]


def test_a_note_outlives_a_closed_tab(server: Server, visit: Callable[..., Any]) -> None:
    page = open_rows(visit, server)
    page.keyboard.press("n")
    page.keyboard.type("half a th")
    page.close()
    assert open_rows(visit, server).input_value("#note") in ("", "half a th")
    again = page.context.new_page()
    again.goto(server.address())
    again.wait_for_selector("body[data-ready]")
    assert again.input_value("#note") == "half a th"
    assert [line["note"] for line in server.lines()] == ["half a th"]


def test_a_note_outlives_a_server_that_is_gone(server: Server, visit: Callable[..., Any]) -> None:
    made = visit()
    page = made.open(server.address())
    page.locator("#card article").wait_for()
    server.kill()
    page.keyboard.press("n")
    page.keyboard.type("while it was away")
    page.keyboard.press("Enter")
    status(page, "kept in this browser")
    server.start()
    page.reload()
    page.wait_for_selector("body[data-ready]")
    assert page.input_value("#note") == "while it was away"
    assert [line["note"] for line in server.lines()] == ["while it was away"]
    made.complaints = [text for text in made.complaints if "ERR_CONNECTION_REFUSED" not in text]


def test_all_rows_of_a_filter_are_decided_and_undone_as_one(server: Server, visit: Callable[..., Any]) -> None:
    page = open_rows(visit, server, "?q=buys 9 more for her friends&outcome=held for review")
    press(page, "k")
    page.keyboard.press("b")
    assert page.inner_text("#bulk h2") == "29 open rows"
    page.keyboard.press("k")
    assert len(server.lines()) == 1
    page.get_by_role("button", name="Accept the suggestions: 23 fixed, 6 dropped").click()
    status(page, "29 of 29 rows decided together")
    lines = server.lines()
    assert len(lines) == 30 and {line["drawn"] for line in lines} == {"suspicious"}
    assert "one of 29 decided together" in lines[-1]["note"]
    page.keyboard.press("z")
    status(page, "Undone: 29 rows")
    page.locator("#progress span", has_text="1 of").wait_for()
    assert [line["decision"] for line in server.lines()].count("undo") == 29


def test_dropped_rows_are_brought_back_one_by_one_and_together(server: Server, visit: Callable[..., Any]) -> None:
    page = open_rows(visit, server, "?outcome=dropped&stage=verify_gold")
    # They are no part of what is to be decided: nothing counts them.
    assert page.inner_text("#progress span") == "0 of 0"
    status(page, "Dropped by verify gold, before review. Keep or fix brings it back.")
    first, second = page.evaluate("truegold.active.map((row) => row.id)")
    press(page, "k")
    status(page, "Dropped by verify gold")
    [made] = server.lines()
    assert (made["id"], made["decision"], len(made["seen"])) == (first, "keep", 20)
    page.keyboard.press("b")
    page.click("#bulk button:text-matches('^Keep 1$')")
    status(page, "1 of 1 rows decided together")
    assert [(line["id"], line["decision"]) for line in server.lines()] == [(first, "keep"), (second, "keep")]
    page = open_rows(visit, server)
    page.keyboard.press("b")
    page.wait_for_selector("#bulk-title")
    open_ones = page.evaluate("truegold.rows.filter((row) => truegold.isReviewable(row) && !row.decision).length")
    assert page.inner_text("#bulk-title") == f"{open_ones} open rows"


def test_similar_rows_come_first_to_the_eye(undecided: Server, visit: Callable[..., Any]) -> None:
    page = open_rows(visit, undecided, f"?q=raw.jsonl:{CUT_OFF[0]}")
    page.keyboard.press("s")
    page.locator("#queue select[name=queue] >> visible=true").wait_for()
    places = page.evaluate("truegold.active.map((row) => row.place)")
    assert places[0] == f"raw.jsonl:{CUT_OFF[0]}"
    assert set(places[1:6]) == {f"raw.jsonl:{line}" for line in CUT_OFF[1:]}
    page.reload()
    page.wait_for_selector("body[data-ready]")
    assert page.evaluate("truegold.active.map((row) => row.place)") == places


@pytest.mark.parametrize("name", ["raw.jsonl:5", "own-33"])
def test_a_row_is_found_by_its_name(undecided: Server, visit: Callable[..., Any], name: str) -> None:
    page = open_rows(visit, undecided)
    page.fill("#search", name)
    page.locator("#matching", has_text=re.compile("^1 of")).wait_for()
    page.locator("#card .top", has_text=name).wait_for()


def test_what_the_search_found_is_marked(undecided: Server, visit: Callable[..., Any]) -> None:
    page = open_rows(visit, undecided)
    page.fill("#search", "HER friends")
    page.locator("#card mark.hit", has_text="her friends").wait_for()
    assert page.locator("#table mark.hit").first.inner_text() == "her friends"


def test_a_reason_is_explained_where_it_stands(undecided: Server, visit: Callable[..., Any]) -> None:
    page = open_rows(visit, undecided, f"?q=raw.jsonl:{FLAGGED[0]}")
    tag = page.locator("#card .flag .tag")
    assert "Such as: " in tag.get_attribute("title")
    assert "The answer is 8." in page.inner_text("#card .flag .verdict")
    assert "solution contradicts gold" in page.locator("#table [title*='Such as: ']").first.get_attribute("title")


def test_the_summary_of_decisions_is_made_anew(server: Server, visit: Callable[..., Any]) -> None:
    page = open_rows(visit, server, "?flag=solution_contradicts_gold")
    page.click("#guidelines summary")
    for decided in (1, 2):
        press(page, "d")
        page.locator("#measures td", has_text=f"{decided} of {decided}").wait_for()


def test_a_program_is_judged_from_its_card(undecided: Server, visit: Callable[..., Any]) -> None:
    page = open_rows(visit, undecided, f"?q=raw.jsonl:{PROGRAM}")
    card = page.locator("#card")
    assert card.locator(".cases th").all_inner_texts() == ["case", "stdin", "expected output"]
    assert card.locator(".cases .number").all_inner_texts() == ["0", "1"]
    assert card.locator(".cases pre").all_text_contents() == ["1 2", "3", "  7\t8", "15"]
    assert card.locator("details pre", has_text="print(3)").text_content() == "if True:\n    print(3)"
    for block in card.locator("pre").all():
        assert "monospace" in block.evaluate("node => getComputedStyle(node).fontFamily")
    assert "chance that a blind guess passes" in card.inner_text()


def test_the_tests_of_a_program_are_changed_line_by_line(server: Server, visit: Callable[..., Any]) -> None:
    page = open_rows(visit, server, f"?q=raw.jsonl:{PROGRAM}")
    page.keyboard.press("f")
    page.locator(".reading", has_text="drop 1 removes case 1 (the first is 0)").wait_for()
    page.fill("#gold", "hello")
    page.locator(".reading", has_text="a case to add is not JSON").wait_for()
    page.fill("#gold", "drop 0")
    page.press("#gold", "Shift+Enter")
    page.locator("#gold").press_sequentially('{"input": "4 4", "output": "8"}')
    page.locator(".reading", has_text='drops 0: {"input": "1 2').wait_for()
    page.press("#gold", "Enter")
    page.locator("#review .status", has_text="fix: drop 0").wait_for()
    (line,) = server.lines()
    assert (line["decision"], line["gold"]) == ("fix", 'drop 0\n{"input": "4 4", "output": "8"}')


def test_a_gold_without_dollar_signs_is_drawn_as_a_formula(undecided: Server, visit: Callable[..., Any]) -> None:
    page = open_rows(visit, undecided, f"?q=raw.jsonl:{FORMULA}")
    assert page.locator("#card .answers .katex .mfrac").count() == 1


SEEN = """(text) => {
    const cell = document.querySelector(".tabulator-cell[tabulator-field=prompt]");
    const { font, paddingLeft, paddingRight } = getComputedStyle(cell);
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = font;
    const room = cell.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
    return (text.length * room) / pen.measureText(text).width;
}"""
SENTENCE = "There are 14 hats in a box. Tom takes out 7 and adds 5 more. How many hats are in the box now?"


def test_sixty_characters_of_a_prompt_are_seen(undecided: Server, visit: Callable[..., Any], small_report: str) -> None:
    page = open_rows(visit, undecided)
    assert page.evaluate(SEEN, SENTENCE) >= 60
    heads = page.locator("#table .tabulator-col-title").all_inner_texts()
    assert [head for head in heads if head.strip()] == ["#", "Risk", "Prompt", "Gold", "Status"]
    # Of a run that was trained there are the pass rates too.
    assert visit().open(f"{small_report}#rows").evaluate(SEEN, SENTENCE) >= 60
