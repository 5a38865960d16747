"""Tests of the flag stage: rows pass unchanged, flags are gathered, and a broken detector stops nothing."""

from __future__ import annotations

import json

import pytest
from numbered_rows import plain_row

from truegold.pipeline.config.stages import FlagConfig
from truegold.pipeline.flag.stage import flag
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.tables.ledger import FLAG_SCHEMA
from truegold.pipeline.tables.measured_flags import MEASURED
from truegold.pipeline.tables.rows import ROW_SCHEMA, read_rows, write_rows
from truegold.verifiers import ConfigError


class Notes(NullProgress):
    """A progress that keeps its notes."""

    def __init__(self):
        self.texts = []

    def note(self, text):
        """Keep the note."""
        self.texts.append(text)


def make_row(source_row, prompt, gold="5"):
    """Return a canonical row."""
    return plain_row(prompt, gold, source="made.jsonl", source_row=source_row)


ROWS = [
    make_row(1, "Tom has 12 apples and buys 9. How many apples has he now?", "21"),
    make_row(2, "Prove that 12+8 is even.", "20"),
    make_row(3, "Prove that the figure below shows a square.", "N/A"),
]


def earlier_flag(row, reason):
    """Return a flag that another stage gave the row."""
    return {
        **{key: row[key] for key in ("id", "source", "source_row")},
        "reason": reason,
        "detector": "dedup",
        "confidence": 1.0,
        "blocks": True,
        "evidence": "{}",
        "suggestion": None,
    }


@pytest.fixture
def rows(tmp_path):
    """Write the rows to a file and return its path."""
    write_rows(tmp_path / "in.parquet", ROWS)
    return tmp_path / "in.parquet"


def run(inputs, config, folder, progress=None):
    """Run the stage into a new folder and return its report."""
    folder.mkdir()
    return flag(inputs, config, folder, progress or NullProgress())


def test_rows_pass_unchanged_and_flags_stand_beside_them(rows, tmp_path):
    report = run({"rows": rows}, FlagConfig(detectors=("all",)), tmp_path / "out")
    assert list(read_rows(tmp_path / "out" / "rows.parquet")) == ROWS
    flags = [(flag["source_row"], flag["reason"]) for flag in read_rows(tmp_path / "out" / "flags.parquet")]
    assert flags == [(2, "proof"), (3, "proof"), (3, "missing_figure")]
    assert (report.rows_in, report.rows_out) == (3, 3)
    assert report.counts == {"flag:proof": 2, "flag:missing_figure": 1}
    assert (report.facts["flagged_rows"], report.facts["blocked_rows"]) == (2, 0)


def test_a_flag_tells_a_reviewer_what_was_seen(rows, tmp_path):
    run({"rows": rows}, FlagConfig(detectors=("proof",)), tmp_path / "out")
    first = next(read_rows(tmp_path / "out" / "flags.parquet"))
    assert json.loads(first["evidence"]) == {"asks": "Prove that", "measured": MEASURED["proof"].shown()}
    assert first["id"] == ROWS[1]["id"]
    assert 0 < first["confidence"] <= 1


def test_earlier_flags_are_taken_over_and_stay_out_of_this_ledger(rows, tmp_path):
    write_rows(tmp_path / "dedup.parquet", [earlier_flag(ROWS[0], "conflicting_label")], FLAG_SCHEMA)
    write_rows(tmp_path / "gold.parquet", [earlier_flag(ROWS[2], "gold_unparsed")], FLAG_SCHEMA)
    inputs = {"rows": rows, "dedup_flags": tmp_path / "dedup.parquet", "gold_flags": tmp_path / "gold.parquet"}
    report = run(inputs, FlagConfig(detectors=("proof",)), tmp_path / "out")
    flags = [(f["source_row"], f["reason"]) for f in read_rows(tmp_path / "out" / "flags.parquet")]
    assert flags == [(1, "conflicting_label"), (2, "proof"), (3, "gold_unparsed"), (3, "proof")]
    assert [r["reason"] for r in read_rows(tmp_path / "out" / "ledger.parquet")] == ["proof", "proof"]
    assert report.counts == {"flag:proof": 2}
    assert report.facts["flagged_rows"] == 3


def test_flags_of_a_row_that_has_been_dropped_since_end_there(rows, tmp_path):
    gone = make_row(9, "A program whose tests were of no use.")
    write_rows(tmp_path / "dedup.parquet", [earlier_flag(gone, "conflicting_label")], FLAG_SCHEMA)
    report = run({"rows": rows, "dedup_flags": tmp_path / "dedup.parquet"}, FlagConfig(detectors=()), tmp_path / "out")
    assert list(read_rows(tmp_path / "out" / "flags.parquet")) == []
    assert report.facts["flagged_rows"] == 0


def test_reasons_to_advise_only_do_not_block_whoever_gave_them(rows, tmp_path):
    earlier = [earlier_flag(ROWS[0], "conflicting_label"), earlier_flag(ROWS[2], "gold_unparsed")]
    write_rows(tmp_path / "dedup.parquet", earlier, FLAG_SCHEMA)
    config = FlagConfig(advise_only=("conflicting_label", "proof"))
    report = run({"rows": rows, "dedup_flags": tmp_path / "dedup.parquet"}, config, tmp_path / "out")
    blocks = {(f["source_row"], f["reason"]): f["blocks"] for f in read_rows(tmp_path / "out" / "flags.parquet")}
    assert not blocks[1, "conflicting_label"]
    assert not blocks[2, "proof"]
    assert blocks[3, "gold_unparsed"]
    assert report.facts["blocked_rows"] == 1


BROKEN = """
from truegold.pipeline.rules import Finding, detector

@detector("broken", version="1")
def broken(row):
    raise KeyError("no such column")

@detector("wrong_type", version="1")
def wrong_type(row):
    return ["a string"]

@detector("not_json", version="1")
def not_json(row):
    return [Finding("odd", 0.5, {"row": object()})]
"""


@pytest.mark.parametrize("name", ["broken", "wrong_type", "not_json"])
def test_a_detector_that_fails_is_counted_and_told_once(name, rows, tmp_path):
    (tmp_path / "checks.py").write_text(BROKEN)
    notes = Notes()
    config = FlagConfig(detectors=(f"{tmp_path}/checks.py:{name}", "proof"))
    report = run({"rows": rows}, config, tmp_path / "out", notes)
    assert report.counts == {"flag:proof": 2, f"error:{name}": 3}
    assert len(notes.texts) == 1
    assert f"Detector {name} failed on made.jsonl:1" in notes.texts[0]


def test_an_unknown_detector_stops_before_any_work(rows, tmp_path):
    with pytest.raises(ConfigError, match="Did you mean 'proof'"):
        run({"rows": rows}, FlagConfig(detectors=("prof",)), tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_the_same_rows_give_the_same_bytes(rows, tmp_path):
    for name in ("first", "second"):
        run({"rows": rows}, FlagConfig(), tmp_path / name)
    files = ("rows.parquet", "flags.parquet", "ledger.parquet")
    assert all((tmp_path / "first" / f).read_bytes() == (tmp_path / "second" / f).read_bytes() for f in files)


def test_no_rows_make_empty_tables(tmp_path):
    write_rows(tmp_path / "in.parquet", [], ROW_SCHEMA)
    report = run({"rows": tmp_path / "in.parquet"}, FlagConfig(), tmp_path / "out")
    assert report.rows_out == 0
    assert list(read_rows(tmp_path / "out" / "flags.parquet")) == []
