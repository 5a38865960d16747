"""The page of the report: no row harms its reader, nothing comes from outside, and its charts show what they should."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import fake_run as fake
import pytest
from report_pages import Page, run_report, shown_rows
from tables import rows

from truegold.pipeline.report import ReviewSettings, open_page
from truegold.pipeline.report.render import MAX_POINTS, PAGE, THIRD_PARTY, json_for_script, line_chart, thinned, ticks
from truegold.pipeline.report.training import COMPLETION_COLUMNS, Curve, Metric
from truegold.pipeline.tables.rows import content_key
from truegold.pipeline.text.shown_text import cut, has_maths, visible


def test_the_page_is_the_same_every_time(full: tuple[Path, str, dict[str, Any]]) -> None:
    folder, html, numbers = full
    for _ in range(2):
        _, again, numbers_again = run_report(folder, fake.FULL)
        assert (again, numbers_again) == (html, numbers)


def test_no_row_becomes_markup(full: tuple[Path, str, dict[str, Any]]) -> None:
    html = full[1]
    page = Page(html)
    assert page.open == []
    assert fake.PAYLOAD not in html
    # It is there, as text for the page's script.
    assert any(fake.PAYLOAD in row["prompt"] for row in shown_rows(html))
    tags = {tag for tag, _ in page.tags}
    assert not tags & {"img", "iframe", "object", "embed", "link", "base"}
    assert not [attrs for _, attrs in page.tags if any(name.startswith("on") for name in attrs)]
    assert "alert(1)" not in "".join(page.scripts)
    texts = json.dumps(shown_rows(html), ensure_ascii=False)
    assert not [character for character in ("\0", "\x1b", "\u202e") if character in texts or character in html]
    assert fake.CHINESE in texts


def test_the_page_says_what_sampling_cost_and_what_came_of_each_server(tmp_path: Path) -> None:
    run = fake.FakeRun(tmp_path / "run")
    run.build(fake.FULL)
    path = tmp_path / "run" / "profile" / "stage.json"
    record = json.loads(path.read_text())
    server = {"url": "http://a:1/v1", "state": "out", "why": "its text <b>lies</b>", "requests": 9, "completions": 7}
    server |= {"tokens": 1234, "failures": 2, "late": 1, "idle_share": 0.25}
    record["report"]["facts"] |= {
        "train": {"spent": {"useful": {"problems": 4, "samples": 34, "tokens": 700}}},
        "sampling": {
            "drawn": 34,
            "kept": 3,
            "tokens": 1234,
            "seconds": 2.5,
            "tokens_per_s": 493.6,
            "servers": [server],
        },
    }
    path.write_text(json.dumps(record))
    page = Page(run_report(tmp_path / "run", fake.FULL)[1])
    text = page.visible_text
    assert "What sampling cost" in text
    assert "useful 4 34 8.5 700" in text
    assert "http://a:1/v1 out 9 7 1,234 2 1 25.0 % its text <b>lies</b>" in text


def test_the_page_needs_nothing_from_outside(full: tuple[Path, str, dict[str, Any]]) -> None:
    page = Page(full[1])
    links = [attrs[name] for _, attrs in page.tags for name in ("src", "href", "action") if name in attrs]
    # The run's own files stand beside the report's folder.
    assert links and all(str(link).startswith(("#", "../")) for link in links)
    policy = next(attrs for tag, attrs in page.tags if attrs.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in str(policy["content"])
    assert str(policy["content"]).count("sha256-") == 3
    assert "unsafe" not in str(policy["content"]).replace("style-src 'unsafe-inline'", "")
    assert "connect-src" not in str(policy["content"])
    assert "url(fonts/" not in full[1] and "sourceMappingURL" not in full[1]


def test_the_page_of_a_review_may_call_its_own_server_alone(full: tuple[Path, str, dict[str, Any]]) -> None:
    html = open_page(
        full[0], ReviewSettings("ann", "secret", guidelines="Read </script> twice.", queue=(("id", "s", 1),))
    )
    page = Page(html)
    policy = next(attrs for tag, attrs in page.tags if attrs.get("http-equiv") == "Content-Security-Policy")
    assert "connect-src 'self';" in str(policy["content"])
    assert "Read </script> twice." in page.visible_text
    assert json.loads(page.scripts[0])["review"]["queue"] == [["id", "s", 1]]


def test_a_second_reader_sees_nothing_of_the_first(full: tuple[Path, str, dict[str, Any]]) -> None:
    rows = shown_rows(open_page(full[0], ReviewSettings("bob", "secret", blind=True)))
    by_line = {row["row"]: row for row in rows if row["source"] == "raw.jsonl"}
    assert [(by_line[line]["outcome"], by_line[line]["stage"]) for line in (1, 5, 6, 10)] == [("left", "flag")] * 4
    assert "settle" not in json.dumps(rows) and "held_for_review" not in json.dumps(rows)
    # What the samples say of a row is no reviewer's word.
    assert (by_line[6]["suspicion"], by_line[6]["passes"]) == (0.92, 0)


def test_rows_can_be_decided_about_unless_a_copy_is_left(tmp_path: Path) -> None:
    run = fake.FakeRun(tmp_path / "run")
    run.rows[4]["id"] = run.rows[3]["id"]
    run.build(fake.CURATION)
    rows = {(row["source"], row["row"]): row for row in shown_rows(run_report(run.folder, fake.CURATION)[1])}
    assert rows["raw.jsonl", 5]["seen"] == content_key(fake.make_row(5))
    # Lines 2 and 4 were dropped; line 4 is a copy of line 3, which is left. Line 12 never became a row.
    assert rows["raw.jsonl", 2]["seen"] == content_key(fake.make_row(2))
    assert [rows["raw.jsonl", line]["seen"] for line in (4, 12)] == [None, None]


def test_no_json_of_the_data_is_shown(full: tuple[Path, str, dict[str, Any]]) -> None:
    facts = [fact for row in shown_rows(full[1]) for flag in row["detail"].get("flags", ()) for fact in flag["facts"]]
    assert ["nested", "a 1, a␀b␛[2Jc\ufffdd"] in facts
    assert not [text for _, text in facts if text.startswith(("{", "["))]


def test_katex_is_there_only_for_maths(tmp_path: Path, full: tuple[Path, str, dict[str, Any]]) -> None:
    assert "katex" in full[1] and len(full[1]) > 500_000
    run = fake.FakeRun(tmp_path / "fake")
    run.rows[11]["prompt"] = "He pays $5 and gets $2 back; the rest costs $7."
    run.build(fake.CURATION)
    assert "katex.render=" not in run_report(run.folder, fake.CURATION)[1].replace(" ", "")
    assert "KaTeX_Main" not in run_report(run.folder, fake.CURATION)[1]


@rows(
    "text, maths",
    [
        ("$x_1$", True),
        ("find $$x$$ now", True),
        (r"so \(x\) holds", True),
        (r"\[ x \]", True),
        ("it costs $5 and then $7", False),
        ("from $5-$7", False),
        (r"\$5 and \$6", False),
        ("one $ sign", False),
        (r"\frac{1}{2}", False),
        ("$x\n$", False),
    ],
)
def test_maths_is_told_from_money(text: str, maths: bool) -> None:
    assert has_maths(text) is maths


def test_texts_are_made_visible_and_short() -> None:
    assert visible("a\0b\x1b[2J\x7f\x85\u202e\r\nc\t") == "a␀b␛[2J␡\ufffd\ufffd\nc\t"
    assert cut("x" * 5000, 10) == "x" * 10 + " … (4,990 more characters)"


def test_json_for_scripts_closes_no_script() -> None:
    assert "<" not in json_for_script({"a": fake.PAYLOAD})
    assert json.loads(json_for_script({"a": fake.PAYLOAD})) == {"a": fake.PAYLOAD}


def test_everything_the_page_is_made_of_is_packaged() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    for package, folders in {"report": [PAGE, PAGE.parent / "script"], "": [THIRD_PARTY]}.items():
        root = THIRD_PARTY.parent / package
        patterns = project["tool"]["setuptools"]["package-data"][f"truegold.pipeline.{package}".rstrip(".")]
        packaged = {path for pattern in patterns for path in root.glob(pattern) if path.is_file()}
        assert packaged == {path for folder in folders for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 0.003), (0, 2.2e-7), (0, 0), (0, 187), (-3, 12)])
def test_ticks_span_the_values(low: float, high: float) -> None:
    marks = ticks(low, high)
    assert 3 <= len(marks) <= 7
    assert marks[0] <= low and marks[-1] >= high


def test_long_lines_are_thinned() -> None:
    metric = Metric("entropy", tuple((step, float(step)) for step in range(5000)))
    kept = thinned(metric)
    assert len(kept) == MAX_POINTS and kept[0] == (0, 0.0) and kept[-1] == (4999, 4999.0)
    chart = line_chart(Curve("Entropy", (metric,)))
    xs = [float(point.split(",")[0]) for point in chart.lines[0].points.split()]
    assert xs == sorted(xs) and xs[0] == 44 and xs[-1] == 312


def test_it_reads_columns_that_training_writes() -> None:
    pytest.importorskip("torch", reason="the schema of completions lies in truegold.train, which needs torch")
    from truegold.train.grpo.groups import COMPLETION_SCHEMA

    assert {*COMPLETION_COLUMNS, "trained"} <= set(COMPLETION_SCHEMA.names)


def test_no_rule_of_the_page_reaches_into_formulas() -> None:
    styles = re.sub(r"\{[^}]*\}", "{", "".join(path.read_text() for path in PAGE.glob("*.css")))
    katex = (THIRD_PARTY / "katex" / "katex.min.js").read_text()
    bare = {
        selector.strip()
        for rule in styles.split("{")
        for selector in rule.split(",")
        if re.fullmatch(r"\s*\.[\w-]+(:[^(\s]*)?\s*", selector)
    }
    classes = {selector[1:].split(":")[0] for selector in bare} - {"katex", "katex-display"}
    assert "row-text" in classes
    assert {name for name in classes if re.search(rf"""["']{re.escape(name)}["']""", katex)} == set()
