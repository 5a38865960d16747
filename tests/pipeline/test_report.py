"""The report's numbers: they add up, they are those worked out by hand, and a lost row is named with its stage."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import fake_run as fake
import polars as pl
import pytest
from report_pages import Page, run_report, shown_rows

from truegold.pipeline.tables.ledger import DROPPED_SCHEMA
from truegold.pipeline.tables.rows import write_rows
from truegold.pipeline.tables.run_files import RunFiles
from truegold.verifiers.rates import wilson_interval


def test_headline(full: tuple[Path, str, dict[str, Any]]) -> None:
    assert full[2]["headline"] == {
        "records_in": 16,
        "rows_left": 4,
        "heldout_pass_rate_before": 0.5,
        "heldout_pass_rate_after": 0.875,
        "adds_up": True,
    }
    assert "16 → 4" in Page(full[1]).visible_text
    assert "50.0 % → 87.5 %" in Page(full[1]).visible_text


def test_the_rewards_to_expect_stand_in_page_numbers_and_table(full: tuple[Path, str, dict[str, Any]]) -> None:
    folder, html, numbers = full
    table = pl.read_parquet(folder / "report" / "reward_ratio.parquet")
    assert table.to_dicts() == numbers["reward_ratio"]
    both = {row["when"]: row for row in table.filter(pl.col("by") == "all").to_dicts()}
    assert (both["profiled"]["rows"], both["selected"]["rows"]) == (len(fake.RATES), 4)
    # 13 of 28 samples passed.
    assert 0.25 < both["profiled"]["ones"] < 0.75
    assert all(abs(row["dead"] + row["saturated"] + row["informative"] - 1) < 1e-9 for row in both.values())
    text = Page(html).visible_text
    assert "Rewards to expect in training" in text
    assert f"{100 * both['profiled']['informative']:.1f} %" in text


def test_every_record_ends_somewhere(full: tuple[Path, str, dict[str, Any]]) -> None:
    ends = {(e["kind"], e["stage"], e["reason"]): e["rows"] for e in full[2]["accounting"]["ends"]}
    assert ends == {
        ("reject", "ingest", "invalid_json"): 1,
        ("reject", "ingest", "missing_gold"): 1,
        ("drop", "dedup", "exact_duplicate"): 2,
        ("drop", "settle", "held_for_review"): 3,
        ("drop", "select", "too_easy"): 1,
        ("drop", "select", "held_for_review"): 1,
        ("reserve", "select", "in_reserve"): 1,
        ("heldout", "select", "held out"): 2,
        ("selected", "select", "selected"): 4,
    }
    assert sum(ends.values()) == 16


@pytest.mark.parametrize(
    ("kind", "planted", "detected", "any_means", "hits", "precision", "trained_on"),
    [
        ("exact_duplicate", 1, 1, 1, 2, 1.0, 0),
        # Its clean original went in its stead.
        ("format_duplicate", 1, 1, 1, 2, 1.0, 1),
        ("rephrased", 1, 0, 0, 0, None, 1),
        # One is detected by a rule, one by the samples, one is missed; and the decoy is hit.
        ("wrong_gold", 3, 2, 2, 3, 2 / 3, 1),
        # One is flagged and one rejected; and a clean row is hit.
        ("truncated", 2, 2, 2, 2, 0.5, 0),
    ],
)
def test_planted_kinds(
    full: tuple[Path, str, dict[str, Any]],
    kind: str,
    planted: int,
    detected: int,
    any_means: int,
    hits: int,
    precision: float | None,
    trained_on: int,
) -> None:
    scores = {score["kind"]: score for score in full[2]["planted"]["kinds"]}
    assert list(scores) == ["exact_duplicate", "format_duplicate", "rephrased", "wrong_gold", "truncated"]
    score = scores[kind]
    assert (score["planted"], score["found"], score["found_by_any"]) == (planted, detected, any_means)
    assert (score["hits"], score["precision"], score["trained_on"]) == (hits, precision, trained_on)
    assert score["recall"] == detected / planted


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
    # The NaN between is left out.
    assert numbers["curves"]["entropy"] == [[0, 1.5], [2, 1.0]]


def test_every_record_is_in_the_page_the_most_suspicious_first(full: tuple[Path, str, dict[str, Any]]) -> None:
    _, html, numbers = full
    rows = shown_rows(html)
    ends = Counter((row["outcome"], row["stage"], row["reason"]) for row in rows)
    kinds = {"reject": "rejected", "drop": "dropped", "reserve": "in reserve", "heldout": "held out"}
    expected = Counter()
    for end in numbers["accounting"]["ends"]:
        is_held = end["reason"] == "held_for_review"
        outcome = "held for review" if is_held else kinds.get(end["kind"], end["kind"])
        reason = end["reason"] if end["kind"] in ("reject", "drop", "reserve") else ""
        expected[outcome, end["stage"], reason] += end["rows"]
    assert ends == expected
    # Samples say .92 of line 6; then those held back, the flags that advise, and the rest in the data's order.
    assert [row["row"] for row in rows[:7]] == [6, 10, 5, 8, 11, 7, 9]
    assert [row["fault"] for row in rows[:5]] == [0.92, 0.9, 0.8, 0.6, None]
    rest = [(row["source"], row["row"]) for row in rows[7:-2]]
    assert rest == sorted(rest)
    assert [row["outcome"] for row in rows[-2:]] == ["rejected"] * 2


def test_a_row_has_what_its_card_shows(full: tuple[Path, str, dict[str, Any]]) -> None:
    rows = {(row["source"], row["row"]): row for row in shown_rows(full[1])}
    suspect = rows["raw.jsonl", 6]
    flag = suspect["detail"]["flags"][0]
    assert (flag["reason"], flag["strength"], flag["blocks"]) == ("suspect_gold", "75% of samples agree", True)
    assert suspect["detail"]["ledger"][-1]["reason"] == "held_for_review"
    assert [sample["reason"] for sample in suspect["detail"]["samples"]] == ["mismatch"] * 4
    assert (suspect["passes"], suspect["judged"], suspect["verdicts"]) == (0, 4, ["mismatch"])
    assert suspect["detail"]["weighed"] == "prior −2.9, model +4.0, samples +0.4"
    assert suspect["detail"]["told"] == [["asked", "verdict model_contradiction"]]
    assert suspect["fault_by"] == "model"
    kept, dropped = rows["raw.jsonl", 1], rows["raw.jsonl", 2]
    order = [(row["source"], row["row"]) for row in shown_rows(full[1])]
    linked = kept["detail"]["neighbours"][0], dropped["detail"]["neighbours"][0]
    assert [order[neighbour["row"]] for neighbour in linked] == [("raw.jsonl", 2), ("raw.jsonl", 1)]
    edited = rows["raw.jsonl", 11]["detail"]["ledger"][0]
    assert edited["action"] == "edit" and edited["before"] == edited["after"] + "  "


def test_what_holds_a_row_back_says_how_likely_it_is_at_fault(full: tuple[Path, str, dict[str, Any]]) -> None:
    by_line = {row["row"]: row for row in shown_rows(full[1]) if row["source"] == "raw.jsonl"}
    assert (by_line[10]["fault"], by_line[10]["fault_by"]) == (0.9, "truncated_text")
    # The confidence of `suspect_gold` is an agreement: without a suspicion nothing is known of the row.
    assert by_line[7]["flags"] == ["suspect_gold"] and by_line[7]["fault"] is None
    # A flag that only advises does not count.
    assert not by_line[11]["holds"] and by_line[11]["fault"] is None


def test_flags_are_counted_with_what_they_hold_back(full: tuple[Path, str, dict[str, Any]]) -> None:
    flagged = full[2]["flagged"]
    assert (flagged["rows"], flagged["held"]) == (7, 4)
    reasons = {reason["reason"]: (reason["rows"], reason["blocking"]) for reason in flagged["reasons"]}
    assert reasons["suspect_gold"] == (2, 1)
    assert reasons["truncated_text"] == (2, 1)
    assert "7 rows flagged, 4 of them held back" in Page(full[1]).visible_text


@pytest.mark.parametrize("last", ["ingest", "clean", "dedup", "verify_gold", "flag", "settle", "profile", "select"])
def test_a_run_may_stop_anywhere(tmp_path: Path, last: str) -> None:
    stages = fake.FULL[: fake.FULL.index(last) + 1]
    fake.FakeRun(tmp_path / "fake").build(stages)
    stage_report, html, numbers = run_report(tmp_path / "fake", stages)
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
    assert stage_report.rows_out == numbers["headline"]["rows_left"] == left[last]
    Page(html)


def test_a_curation_has_no_sections_on_models(tmp_path: Path) -> None:
    fake.FakeRun(tmp_path / "fake").build(fake.CURATION)
    _, html, numbers = run_report(tmp_path / "fake", fake.CURATION)
    assert numbers["training"] is None and numbers["pass_rates"] == []
    ids = [attrs.get("id") for tag, attrs in Page(html).tags if tag == "section"]
    assert ids == ["account", "flagged", "verifier", "cost", "planted", "stages"]


def test_data_without_plants_has_no_such_section(tmp_path: Path) -> None:
    run = fake.FakeRun(tmp_path / "fake")
    for row in run.rows.values():
        row["meta"] = '{"level": "easy"}'
    run.build(fake.CURATION[1:])
    assert run_report(tmp_path / "fake", fake.CURATION[1:])[2]["planted"] is None


def test_of_more_rows_than_a_page_holds_the_most_suspicious_are_shown(tmp_path: Path) -> None:
    fake.FakeRun(tmp_path / "fake").build(fake.FULL)
    _, html, _ = run_report(tmp_path / "fake", fake.FULL, max_rows=2)
    assert [row["row"] for row in shown_rows(html)] == [6, 10]
    assert "2 of 16 records: the most suspicious, and others at random" in Page(html).visible_text


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


def test_flags_of_rows_that_a_reviewer_kept_held_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "fake"
    fake.FakeRun(folder).build(fake.FULL)
    dropped = pl.read_parquet(folder / "settle" / "dropped.parquet")
    dropped.filter(pl.col("source_row") != 5).write_parquet(folder / "settle" / "dropped.parquet")
    records = {name: folder / name / "stage.json" for name in fake.FULL}
    flags = RunFiles.open(records, fake.FULL).flags(after_training=True)
    held = {(flag["source_row"], flag["reason"]) for flag in flags.filter("blocks").collect().iter_rows(named=True)}
    assert held == {(8, "solution_contradicts_gold"), (10, "truncated_text"), (6, "suspect_gold")}


def test_the_card_of_the_verifier_stands_in_the_overview(tmp_path: Path) -> None:
    run = fake.FakeRun(tmp_path / "fake").build(fake.CURATION)
    assert "truegold verifiers audit math --data DATA" in Page(run_report(run.folder, fake.CURATION)[1]).visible_text
    rate = {"rate": 0.0125, "low": 0.01, "high": 0.02}
    card = {
        "verifier": {"name": "math", "version": "7"},
        "date": "2026-11-23",
        "summary": {"right answers refused": rate},
        "youden": {"j": 0.97, "low": 0.95, "high": 0.98, "meaning": "Noise slows training."},
    }
    (run.folder / "verifier_card.json").write_text(json.dumps(card))
    text = Page(run_report(run.folder, fake.CURATION)[1]).visible_text
    assert "J 0.97 Youden's J (0.95 to 0.98)" in text
    assert "1.2 % right answers refused (1.0 % to 2.0 %)" in text
    assert "math 7, audited 2026-11-23. Noise slows training." in text


def test_the_page_says_where_its_numbers_come_from(tmp_path: Path) -> None:
    run = fake.FakeRun(tmp_path / "fake").build(fake.CURATION)
    path = run.folder / "ingest" / "stage.json"
    record = json.loads(path.read_text())
    record |= {"truegold": "1.2.3", "config": {"path": "/data/<b>train.jsonl"}}
    record["outputs"] = {"rows.parquet": {"digest": "f" * 32}}
    path.write_text(json.dumps(record))
    (run.folder / "config.resolved.json").write_text("{}")
    os.utime(path, (0, 0))
    for stage in fake.CURATION:
        os.utime(run.folder / stage / "stage.json", (1_700_000_000, 1_700_000_000))
    html = run_report(run.folder, fake.CURATION)[1]
    text = Page(html).visible_text
    for part in ("2023-11-14 22:13 UTC", "truegold 1.2.3", "data /data/<b>train.jsonl", "rows ffffffffffffffff"):
        assert part in text
    links = [attrs["href"] for tag, attrs in Page(html).tags if tag == "a" and str(attrs["href"]).startswith("../")]
    assert links == ["../config.resolved.json", "../manifest.json"]
