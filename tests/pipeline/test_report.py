"""The report: that it adds up, that its numbers are those worked out by hand, and that no row can harm its reader."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
import tomllib
from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl
import pytest

from truegold.pipeline.config import ReportConfig
from truegold.pipeline.ledger import DROPPED_SCHEMA
from truegold.pipeline.passrate import wilson_interval
from truegold.pipeline.progress import NullProgress
from truegold.pipeline.report import render, report
from truegold.pipeline.report.charts import MAX_POINTS, line_chart, thinned, ticks
from truegold.pipeline.report.render import json_for_script
from truegold.pipeline.report.shown_text import cut, has_maths, visible
from truegold.pipeline.report.training import COLUMNS, Curve, Metric
from truegold.pipeline.rows import write_rows
from truegold.pipeline.stage import StageReport

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


def _load_fake_run() -> ModuleType:
    """Tests are no packages: a neighbour is loaded from its file."""
    spec = importlib.util.spec_from_file_location("report_fake_run", Path(__file__).with_name("test_report_run.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


fake = _load_fake_run()


class Page(HTMLParser):
    """What a browser would make of the page, as far as these tests ask."""

    VOID = ("meta", "input", "br", "img", "link")

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.scripts: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        elif not self.open or self.open[-1] != "style":
            self.text.append(data)

    @property
    def said(self) -> str:
        return " ".join(" ".join(self.text).split())


def run_report(folder: Path, stages: Iterable[str], **settings: Any) -> tuple[StageReport, str, dict[str, Any]]:
    names = tuple(stages)
    out = folder / "report"
    out.mkdir(exist_ok=True)
    inputs = {name: folder / name / "stage.json" for name in names}
    told = report(inputs, ReportConfig(name=folder.name, stages=names, **settings), out, NullProgress())
    return told, (out / "index.html").read_text(encoding="utf-8"), json.loads((out / "summary.json").read_bytes())


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("full") / "fake"
    fake.FakeRun(folder).build(fake.FULL)
    told, html, numbers = run_report(folder, fake.FULL)
    assert (told.rows_in, told.rows_out) == (16, 4)
    return folder, html, numbers


# ---- numbers


def test_headline(full: tuple[Path, str, dict[str, Any]]) -> None:
    assert full[2]["headline"] == {
        "records_in": 16,
        "rows_left": 4,
        "heldout_pass_rate_before": 0.5,
        "heldout_pass_rate_after": 0.875,
        "adds_up": True,
    }
    assert "16 → 4" in Page(full[1]).said
    assert "50.0 % → 87.5 %" in Page(full[1]).said


def test_the_rewards_to_expect_stand_in_page_numbers_and_table(full: tuple[Path, str, dict[str, Any]]) -> None:
    folder, html, numbers = full
    table = pl.read_parquet(folder / "report" / "reward_ratio.parquet")
    assert table.to_dicts() == numbers["reward_ratio"]
    both = {row["when"]: row for row in table.filter(pl.col("by") == "all").to_dicts()}
    assert (both["profiled"]["rows"], both["selected"]["rows"]) == (len(fake.RATES), 4)
    assert 0.25 < both["profiled"]["ones"] < 0.75  # 13 of 28 samples passed
    assert all(abs(row["dead"] + row["saturated"] + row["informative"] - 1) < 1e-9 for row in both.values())
    said = Page(html).said
    assert "Rewards to expect in training" in said
    assert f"{100 * both['profiled']['informative']:.1f} %" in said


def test_every_record_ends_somewhere(full: tuple[Path, str, dict[str, Any]]) -> None:
    ends = {(e["kind"], e["stage"], e["reason"]): e["rows"] for e in full[2]["accounting"]["ends"]}
    assert ends == {
        ("reject", "ingest", "invalid_json"): 1,
        ("reject", "ingest", "missing_gold"): 1,
        ("drop", "dedup", "exact_duplicate"): 2,
        ("drop", "settle", "held_for_review"): 3,
        ("drop", "select", "all_pass"): 1,
        ("drop", "select", "held_for_review"): 1,
        ("reserve", "select", "over_max_rows"): 1,
        ("heldout", "select", "held out"): 2,
        ("selected", "select", "selected"): 4,
    }
    assert sum(ends.values()) == 16


@pytest.mark.parametrize(
    ("kind", "planted", "found", "any_means", "hits", "precision", "trained_on"),
    [
        ("exact_duplicate", 1, 1, 1, 2, 1.0, 0),
        ("format_duplicate", 1, 1, 1, 2, 1.0, 1),  # its clean original went in its stead
        ("rephrased", 1, 0, 0, 0, None, 1),
        ("wrong_gold", 3, 2, 2, 3, 2 / 3, 1),  # by a rule, by the samples, missed; and the decoy was hit
        ("truncated", 2, 2, 2, 2, 0.5, 0),  # one flagged, one rejected; and a clean row was hit
    ],
)
def test_planted_kinds(
    full: tuple[Path, str, dict[str, Any]],
    kind: str,
    planted: int,
    found: int,
    any_means: int,
    hits: int,
    precision: float | None,
    trained_on: int,
) -> None:
    scores = {score["kind"]: score for score in full[2]["planted"]["kinds"]}
    assert list(scores) == ["exact_duplicate", "format_duplicate", "rephrased", "wrong_gold", "truncated"]
    score = scores[kind]
    assert (score["planted"], score["found"], score["found_by_any"]) == (planted, found, any_means)
    assert (score["hits"], score["precision"], score["trained_on"]) == (hits, precision, trained_on)
    assert score["recall"] == found / planted


def test_false_alarms(full: tuple[Path, str, dict[str, Any]]) -> None:
    clean, decoy = full[2]["planted"]["alarms"]
    assert (clean["rows_of"], clean["rows"], clean["hit"]) == ("clean rows", 6, 2)
    assert clean["by_reason"] == {"missing_quantity": 1, "truncated_text": 1}
    assert (decoy["rows_of"], decoy["rows"], decoy["hit"]) == ("decoy: format_variant_gold", 1, 1)


def test_labels_that_the_trained_model_disputes(full: tuple[Path, str, dict[str, Any]]) -> None:
    assert full[2]["planted"]["disputed"] == {"rows": 1, "defective": 1, "by_kind": {"wrong_gold": 1}}
    assert "Labels that the trained model disputes" in full[1]


def test_pass_rates(full: tuple[Path, str, dict[str, Any]]) -> None:
    heldout, selected, everything = full[2]["pass_rates"]
    assert (heldout["before"]["bars"], heldout["after"]["bars"]) == ([0, 1, 0, 1, 0], [0, 0, 0, 1, 1])
    assert (selected["before"]["bars"], selected["after"]["bars"]) == ([0, 1, 2, 1, 0], [1, 0, 0, 1, 2])
    assert (everything["before"]["problems"], everything["before"]["never"], everything["before"]["always"]) == (
        7,
        1,
        1,
    )
    assert everything["after"] is None
    # Rates .25 and .75: variance .125, so .0625 for the mean of two, of which .5 * .5 / 8 is what eight samples have.
    effect = 0.0625 / (0.25 / 8)
    low, high = wilson_interval(4, 8, 1.96 * effect**0.5)
    assert heldout["before"]["low"] == pytest.approx(low)
    assert heldout["before"]["high"] == pytest.approx(high)


def test_training_numbers(full: tuple[Path, str, dict[str, Any]]) -> None:
    numbers = full[2]["training"]
    assert (numbers["steps"], numbers["problems_seen"]) == (3, 2)
    assert numbers["metrics"]["pass_rate"] == {"first": [0, 0.25], "last": [2, 0.75]}
    assert numbers["curves"]["entropy"] == [[0, 1.5], [2, 1.0]]  # the NaN between is left out


def test_flagged_rows_come_most_suspicious_first(full: tuple[Path, str, dict[str, Any]]) -> None:
    _, html, numbers = full
    assert numbers["flagged"]["rows"] == numbers["flagged"]["shown"] == 7
    reasons = {reason["reason"]: (reason["rows"], reason["blocking"]) for reason in numbers["flagged"]["reasons"]}
    assert reasons["suspect_gold"] == (2, 2)
    assert reasons["truncated_text"] == (2, 1)
    items = [attrs for tag, attrs in Page(html).tags if tag == "article" and "data-reasons" in attrs]
    assert [item["data-reasons"] for item in items] == [
        "truncated_text",
        "solution_contradicts_gold",
        "suspect_gold",
        "solution_contradicts_gold",
        "suspect_gold",
        "missing_quantity",
        "truncated_text",
    ]
    assert ["blocks" in str(item["class"]) for item in items] == [True] * 5 + [False] * 2
    assert f"truegold explain {fake.make_row(10)['id']} --run {full[0]}" in Page(html).said


# ---- parts of a run


@pytest.mark.parametrize("last", ["ingest", "clean", "dedup", "verify_gold", "flag", "settle", "profile", "select"])
def test_a_run_may_stop_anywhere(tmp_path: Path, last: str) -> None:
    stages = fake.FULL[: fake.FULL.index(last) + 1]
    fake.FakeRun(tmp_path / "fake").build(stages)
    told, html, numbers = run_report(tmp_path / "fake", stages)
    assert sum(end["rows"] for end in numbers["accounting"]["ends"]) == 16
    left = {
        "ingest": 14,
        "clean": 14,
        "dedup": 12,
        "verify_gold": 12,
        "flag": 12,
        "settle": 9,
        "profile": 9,
        "select": 4,
    }
    assert told.rows_out == numbers["headline"]["rows_left"] == left[last]
    Page(html)


def test_a_curation_has_no_sections_on_models(tmp_path: Path) -> None:
    fake.FakeRun(tmp_path / "fake").build(fake.CURATION)
    _, html, numbers = run_report(tmp_path / "fake", fake.CURATION)
    assert numbers["training"] is None and numbers["pass_rates"] == []
    ids = [attrs.get("id") for tag, attrs in Page(html).tags if tag == "section"]
    assert ids == ["rows", "planted", "flagged", "changes", "stages"]


def test_data_without_plants_has_no_such_section(tmp_path: Path) -> None:
    run = fake.FakeRun(tmp_path / "fake")
    for row in run.rows.values():
        row["meta"] = '{"level": "easy"}'
    run.build(fake.CURATION[1:])
    assert run_report(tmp_path / "fake", fake.CURATION[1:])[2]["planted"] is None


def test_max_items_bounds_what_is_shown(tmp_path: Path) -> None:
    fake.FakeRun(tmp_path / "fake").build(fake.FULL)
    _, html, numbers = run_report(tmp_path / "fake", fake.FULL, max_items=2)
    assert (numbers["flagged"]["rows"], numbers["flagged"]["shown"]) == (7, 2)
    assert "The 2 most suspicious of 7 rows" in Page(html).said
    run_report(tmp_path / "fake", fake.FULL, max_items=0)


# ---- accounting errors


def test_a_lost_row_raises_and_names_the_stage(tmp_path: Path) -> None:
    run = fake.FakeRun(tmp_path / "fake").build(fake.CURATION)
    path = run.folder / "dedup" / "rows.parquet"
    path.write_bytes((run.folder / "settle" / "rows.parquet").read_bytes())
    with pytest.raises(
        RuntimeError, match=r"stage 'dedup' do not add up: 14 rows came in, 9 went on and 2 were dropped"
    ):
        run_report(run.folder, fake.CURATION)


def test_a_drop_without_a_ledger_record_raises(tmp_path: Path) -> None:
    run = fake.FakeRun(tmp_path / "fake").build(fake.CURATION)
    dropped = pl.read_parquet(run.folder / "settle" / "dropped.parquet").to_dicts()
    write_rows(run.folder / "settle" / "dropped.parquet", dropped[:2], DROPPED_SCHEMA)
    with pytest.raises(RuntimeError, match=r"'settle'.*its ledger records"):
        run_report(run.folder, fake.CURATION)


def test_records_that_ingest_lost_raise(tmp_path: Path) -> None:
    run = fake.FakeRun(tmp_path / "fake").build(fake.CURATION)
    (run.folder / "ingest" / "rejects.jsonl").write_bytes(b"")
    with pytest.raises(RuntimeError, match="'ingest'"):
        run_report(run.folder, fake.CURATION)


# ---- the page


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
    assert "alert(1)" in page.said  # it is shown, as text
    tags = {tag for tag, _ in page.tags}
    assert not tags & {"img", "iframe", "object", "embed", "link", "base"}
    assert not [attrs for _, attrs in page.tags if any(name.startswith("on") for name in attrs)]
    assert "alert(1)" not in "".join(page.scripts)
    assert "\0" not in html and "\x1b" not in html and "\u202e" not in html
    assert fake.CHINESE in html


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


# ---- charts


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 0.003), (0, 2.2e-7), (0, 0), (0, 187), (-3, 12)])
def test_ticks_span_the_values(low: float, high: float) -> None:
    found = ticks(low, high)
    assert 3 <= len(found) <= 7
    assert found[0] <= low and found[-1] >= high


def test_long_lines_are_thinned() -> None:
    metric = Metric("entropy", tuple((step, float(step)) for step in range(5000)))
    kept = thinned(metric)
    assert len(kept) == MAX_POINTS and kept[0] == (0, 0.0) and kept[-1] == (4999, 4999.0)
    chart = line_chart(Curve("Entropy", (metric,)))
    xs = [float(point.split(",")[0]) for point in chart.lines[0].points.split()]
    assert xs == sorted(xs) and xs[0] == 44 and xs[-1] == 312


def test_it_reads_columns_that_training_writes() -> None:
    pytest.importorskip("torch", reason="the schema of completions lies in truegold.train, which needs torch")
    from truegold.train.completions import COMPLETION_SCHEMA

    assert {*COLUMNS, "trained"} <= set(COMPLETION_SCHEMA.names)


# ---- in a browser


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
        maths = page.locator(".items .text.maths").first
        maths.scroll_into_view_if_needed()
        maths.locator(".katex").first.wait_for()
        assert maths.locator("a").count() == 0
        assert r"\[\notacommand{x}\]" in maths.inner_text()  # what cannot be drawn is shown as it stands
        maths.locator("button.source").click()
        assert r"\(\frac{1}{2}+\sqrt{3}\)" in maths.inner_text()
        browser.close()
    assert complaints == []
