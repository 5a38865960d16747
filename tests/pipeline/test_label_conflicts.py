"""What a word about one side of a conflict of labels does to the others, in the stage `settle`."""

from __future__ import annotations

import json

import polars as pl
import pytest
from test_decisions import decide_row, make_flag, make_row

from truegold.pipeline.config.stages import SettleConfig
from truegold.pipeline.review.stage import settle
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.tables.ledger import FLAG_SCHEMA
from truegold.pipeline.tables.rows import content_key, read_rows, write_rows


@pytest.fixture
def run(tmp_path):
    """Settles rows of one problem, with the golds given, by words (row, word, gold) about some of them."""

    def settle_rows(golds, words, flags=(), config=None, in_conflict=True, **more):
        rows = [
            {**make_row(f"r{index}", index), "prompt": "What is 6*7?", "gold": gold} for index, gold in enumerate(golds)
        ]
        conflict = [{**make_flag(row, "conflicting_labels"), "evidence": '{"golds":1}'} for row in rows if in_conflict]
        write_rows(tmp_path / "rows.parquet", rows)
        write_rows(
            tmp_path / "flags.parquet",
            [*conflict, *(make_flag(rows[i], reason, blocks) for i, reason, blocks in flags)],
            FLAG_SCHEMA,
        )
        for index, word, gold in words:
            decide_row(tmp_path / "decisions", f"r{index}", word, gold=gold, **more)
        out = tmp_path / "out"
        out.mkdir()
        names = {"rows": "rows.parquet", "flags": "flags.parquet", "decisions": "decisions"}
        report = settle(
            {name: tmp_path / file for name, file in names.items()}, config or SettleConfig(), out, NullProgress()
        )
        passed = {row["source_row"]: row["gold"] for row in read_rows(out / "rows.parquet")}
        dropped = {row["source_row"]: row["drop_reason"] for row in read_rows(out / "dropped.parquet")}
        assert len(passed) + len(dropped) == len(rows)
        return passed, dropped, report

    return settle_rows


@pytest.mark.parametrize(
    ("golds", "words", "passed", "dropped"),
    [
        (["42", "48"], [(1, "drop", None)], {0: "42"}, {1: "reviewer_drop"}),
        (["42", "48"], [(0, "keep", None)], {0: "42"}, {1: "conflict_overruled"}),
        (["42", "48"], [(1, "fix", "42")], {0: "42"}, {1: "settled_duplicate"}),
        (["42", "48"], [(1, "fix", "42.0")], {0: "42"}, {1: "settled_duplicate"}),
        (["42", "48"], [(1, "fix", "54")], {1: "54"}, {0: "conflict_overruled"}),
        (["42", "48"], [(1, "fix", "see picture")], {}, {0: "held_for_review", 1: "fix_unpayable"}),
        (["42", "48"], [(0, "fix", "54"), (1, "fix", "54")], {0: "54"}, {1: "settled_duplicate"}),
        (["42", "48"], [(0, "keep", None), (1, "keep", None)], {0: "42", 1: "48"}, {}),
        (["42", "48"], [(0, "drop", None), (1, "drop", None)], {}, {0: "reviewer_drop", 1: "reviewer_drop"}),
        (["42", "48"], [(1, "unsure", None)], {}, {0: "held_for_review", 1: "held_for_review"}),
        (["42", "48", "54"], [(1, "drop", None)], {}, {0: "held_for_review", 1: "reviewer_drop", 2: "held_for_review"}),
        (
            ["42", "48", "54"],
            [(1, "drop", None), (2, "drop", None)],
            {0: "42"},
            {1: "reviewer_drop", 2: "reviewer_drop"},
        ),
        (["42", "48", "54"], [(1, "fix", "42")], {0: "42"}, {1: "settled_duplicate", 2: "conflict_overruled"}),
    ],
)
def test_settling_one_side_settles_the_others(run, golds, words, passed, dropped):
    assert run(golds, words)[:2] == (passed, dropped)


def test_a_freed_row_that_another_flag_holds_stays_held(run):
    assert run(["42", "48"], [(1, "drop", None)], flags=[(0, "proof", True)])[1] == {
        1: "reviewer_drop",
        0: "held_for_review",
    }


def test_the_ledger_says_whose_word_freed_a_row(run, tmp_path):
    run(["42", "48"], [(1, "drop", None)])
    records = pl.read_parquet(tmp_path / "out" / "ledger.parquet").filter(pl.col("source_row") == 0).to_dicts()
    assert [(record["action"], record["reason"]) for record in records] == [("keep", "conflict_settled")]
    assert json.loads(records[0]["evidence"]) == {"decided": "made.jsonl:1", "reviewers": ["ada"], "gold": None}


def test_a_decision_about_what_a_row_was_is_not_applied(run, tmp_path):
    passed, dropped, report = run(["42", "48"], [(1, "drop", None)], seen="0" * 20)
    assert (passed, dropped) == ({}, {0: "held_for_review", 1: "held_for_review"})
    assert report.facts["stale_decisions"] == {"count": 1, "gone": 0, "changed": 1, "ids": ["r1"]}
    assert report.counts["flag:stale_decision"] == 1
    (line,) = map(json.loads, (tmp_path / "out" / "stale_decisions.jsonl").read_text().splitlines())
    assert (line["why"], line["id"], line["reviewer"]) == ("changed", "r1", "ada")


def test_a_decision_about_the_row_as_it_is_applies(run):
    seen = content_key({**make_row("r1", 1), "prompt": "What is 6*7?", "gold": "48"})
    assert run(["42", "48"], [(1, "drop", None)], seen=seen)[0] == {0: "42"}


def test_rows_that_pass_by_a_word_are_named_for_later_stages(run, tmp_path):
    run(["42", "48", "54"], [(0, "keep", None), (1, "fix", "54")])
    decided = pl.read_parquet(tmp_path / "out" / "decided.parquet")
    assert decided["source_row"].to_list() == [0]


@pytest.mark.parametrize(
    ("drawn", "word", "reason", "outcome"),
    [
        ("random:7", "keep", "proof", "kept"),
        ("random:7", "drop", "proof", "held_for_review"),
        ("random:7", "drop", "multi_part", "held_for_review"),
        ("random:7", "keep", "multi_part", "kept"),
        ("suspicious", "keep", "proof", "held_for_review"),
        ("suspicious", "drop", "multi_part", "kept"),
    ],
)
def test_decisions_about_rows_drawn_at_random_set_what_a_flag_may_do(run, drawn, word, reason, outcome, tmp_path):
    config = SettleConfig.model_validate({"tiers": "decisions", "min_decisions": 5})
    golds = [str(n) for n in range(6)]
    flags = [(index, reason, reason == "proof") for index in range(6)]
    words = [(index, word, None) for index in range(5)]
    passed, dropped, report = run(golds, words, flags, config, in_conflict=False, drawn=drawn)
    assert dropped.get(5, "kept") == outcome
    (measured,) = report.facts["precision"]
    assert (measured["right"], measured["decided"]) == (5 * (word == "drop"), 5)
    has_changed = outcome != ("held_for_review" if reason == "proof" else "kept")
    assert report.facts["tiers"] == ({reason: outcome != "kept"} if has_changed else {})
    if has_changed:
        blocks = pl.read_parquet(tmp_path / "out" / "flags.parquet")["blocks"]
        assert blocks.to_list() == [outcome != "kept"] * 6
    assert 5 in (passed if outcome == "kept" else dropped)
