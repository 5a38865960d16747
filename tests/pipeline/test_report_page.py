"""The page of the report: no row harms its reader, nothing comes from outside, and its charts show what they should."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

import fake_run as fake
import pytest
from report_pages import Page, run_report

from truegold.pipeline.report import render
from truegold.pipeline.report.charts import MAX_POINTS, line_chart, thinned, ticks
from truegold.pipeline.report.render import KATEX, PAGE, json_for_script
from truegold.pipeline.report.shown_text import cut, has_maths, visible
from truegold.pipeline.report.training import COLUMNS, Curve, Metric

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


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
    # It is shown, as text.
    assert "alert(1)" in page.visible_text
    tags = {tag for tag, _ in page.tags}
    assert not tags & {"img", "iframe", "object", "embed", "link", "base"}
    assert not [attrs for _, attrs in page.tags if any(name.startswith("on") for name in attrs)]
    assert "alert(1)" not in "".join(page.scripts)
    assert "\0" not in html and "\x1b" not in html and "\u202e" not in html
    assert fake.CHINESE in html


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
    assert links and all(str(link).startswith("#") for link in links)
    policy = next(attrs for tag, attrs in page.tags if attrs.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in str(policy["content"])
    assert str(policy["content"]).count("sha256-") == 2
    assert "url(fonts/" not in full[1]


def test_katex_is_there_only_for_maths(tmp_path: Path, full: tuple[Path, str, dict[str, Any]]) -> None:
    assert "katex" in full[1] and len(full[1]) > 500_000
    run = fake.FakeRun(tmp_path / "fake")
    run.rows[11]["prompt"] = "He pays $5 and gets $2 back; the rest costs $7."
    run.build(fake.CURATION)
    assert len(run_report(run.folder, fake.CURATION)[1]) < 100_000


@pytest.mark.parametrize(
    ("text", "maths"),
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
    folder = Path(render.__file__).parent
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = project["tool"]["setuptools"]["package-data"]["truegold.pipeline.report"]
    packaged = {path for pattern in patterns for path in folder.glob(pattern) if path.is_file()}
    assets = {path for part in ("page", "katex") for path in (folder / part).rglob("*") if path.is_file()}
    assert packaged == assets
    assert folder / "katex" / "LICENSE" in assets


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
    from truegold.train.grpo.completions import COMPLETION_SCHEMA

    assert {*COLUMNS, "trained"} <= set(COMPLETION_SCHEMA.names)


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine")
def test_in_a_browser(full: tuple[Path, str, dict[str, Any]]) -> None:
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (it is no dependency)")
    complaints: list[str] = []
    with api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
        page.goto((full[0] / "report" / "index.html").as_uri())
        shown = page.locator(".items > .item:visible")
        assert shown.count() == 7
        page.select_option("#reason", "suspect_gold")
        assert shown.count() == 2
        page.fill("#search", "raw.jsonl:6")
        assert shown.count() == 1
        page.select_option("#reason", "")
        page.fill("#search", "")
        maths = page.locator(".items .row-text.maths").first
        maths.scroll_into_view_if_needed()
        maths.locator(".katex").first.wait_for()
        assert maths.locator("a").count() == 0
        # What cannot be drawn is shown as it stands.
        assert r"\[\notacommand{x}\]" in maths.inner_text()
        maths.locator("button.source").click()
        assert r"\(\frac{1}{2}+\sqrt{3}\)" in maths.inner_text()
        browser.close()
    assert complaints == []


def test_no_rule_of_the_page_reaches_into_formulas() -> None:
    styles = re.sub(r"\{[^}]*\}", "{", (PAGE / "page.css").read_text())
    katex = (KATEX / "katex.min.js").read_text()
    bare = {
        selector.strip()
        for rule in styles.split("{")
        for selector in rule.split(",")
        if re.fullmatch(r"\s*\.[\w-]+(:[^(\s]*)?\s*", selector)
    }
    classes = {selector[1:].split(":")[0] for selector in bare} - {"katex", "katex-display"}
    assert "row-text" in classes
    assert {name for name in classes if re.search(rf"""["']{re.escape(name)}["']""", katex)} == set()


def test_on_a_phone_nothing_asks_for_more_than_its_width() -> None:
    styles = (PAGE / "page.css").read_text()
    phone = styles.split("@media (max-width: 44rem)")[1].split("@media print")[0]
    assert "table { display: block; overflow-x: auto" in phone
    assert not re.search(r"(?:min-width: |minmax\()\d{2,}rem", styles)
