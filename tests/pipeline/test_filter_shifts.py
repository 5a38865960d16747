"""What a filter moved: found where it prefers rows of a kind, and not where it takes rows at random."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from numbered_rows import make_row

from truegold.pipeline.report.filter_effects import FilterShift, measure_filter_shifts
from truegold.pipeline.tables.ledger import DROPPED_FILE
from truegold.pipeline.tables.rows import PROFILE_SCHEMA, Row, row_reference, write_rows
from truegold.pipeline.tables.run_files import RunFiles


def rows(count: int = 800) -> list[Row]:
    """Return rows of two domains, with prompts of all lengths."""
    made: list[Row] = []
    for problem in range(1, count + 1):
        row = make_row(problem, gold=str(problem) if problem % 3 else "x + 1")
        made.append({**row, "domain": "algebra" if problem % 2 else "geometry", "prompt": "p" * (problem % 97 + 3)})
    return made


def shifts(folder: Path, keeps: Callable[[Row], bool], made: list[Row] | None = None) -> list[FilterShift]:
    """Return what the stage `clean` moved when it dropped the rows that are not kept."""
    table = made or rows()
    stage = folder / "clean"
    stage.mkdir()
    write_rows(stage / "rows.parquet", [row for row in table if keeps(row)])
    write_rows(stage / DROPPED_FILE, [row for row in table if not keeps(row)])
    return measure_filter_shifts(RunFiles({"clean": stage}, {"clean": {}}))


def test_a_filter_that_takes_rows_at_random_moves_nothing(tmp_path: Path) -> None:
    for seed in range(5):
        draw = random.Random(seed)
        (tmp_path / str(seed)).mkdir()
        assert shifts(tmp_path / str(seed), lambda _, draw=draw: draw.random() < 0.7) == []


def test_a_filter_that_prefers_a_domain_is_seen_with_shares_before_and_after(tmp_path: Path) -> None:
    moved = shifts(tmp_path, lambda row: row["domain"] == "algebra" or row["source_row"] % 4 == 0)
    assert {shift.feature for shift in moved} == {"domain algebra", "domain geometry"}
    algebra = next(shift for shift in moved if shift.feature == "domain algebra")
    assert (algebra.before, algebra.after) == (0.5, pytest.approx(2 / 3))
    # (2/3 - 1/2) / sqrt(1/2 * 1/2)
    assert algebra.deviations == pytest.approx(1 / 3)


def test_the_most_moved_comes_first(tmp_path: Path) -> None:
    moved = shifts(
        tmp_path, lambda row: len(row["prompt"]) < 60 and (row["gold"] != "x + 1" or row["source_row"] % 2 == 0)
    )
    assert moved[0].feature == "prompt, characters"
    assert moved[0].after < moved[0].before
    assert "gold kind expression" in {shift.feature for shift in moved}
    assert [abs(shift.deviations) for shift in moved] == sorted((abs(s.deviations) for s in moved), reverse=True)


def test_held_out_rows_and_a_handful_of_drops_do_not_count(tmp_path: Path) -> None:
    made = rows()
    (tmp_path / "few").mkdir()
    assert shifts(tmp_path / "few", lambda row: row["source_row"] > 20, made) == []
    heldout: list[Row] = [{**row, "split": "heldout"} for row in made]
    (tmp_path / "heldout").mkdir()
    assert shifts(tmp_path / "heldout", lambda row: row["domain"] == "algebra", heldout) == []


def test_a_pass_rate_moves_by_deviations_of_observed_rates_not_of_expected_ones(tmp_path: Path) -> None:
    made = rows(100)
    # Of 4 samples each, none or one passes, which moves what is expected of a row by .04 alone.
    known = [(0.08, 0.0) if index < 50 else (0.12, 0.25) for index in range(100)]
    profile = [
        {**row_reference(row), "expected_rate": expected, "pass_rate": observed}
        for row, (expected, observed) in zip(made, known, strict=True)
    ]
    for stage in ("select", "profile"):
        (tmp_path / stage).mkdir()
    write_rows(tmp_path / "profile" / "profile.parquet", profile, PROFILE_SCHEMA)
    write_rows(tmp_path / "select" / "selected.parquet", made[50:])
    write_rows(tmp_path / "select" / DROPPED_FILE, made[:50])
    files = RunFiles({stage: tmp_path / stage for stage in ("select", "profile")}, {"select": {}, "profile": {}})
    (shift,) = [shift for shift in measure_filter_shifts(files) if shift.feature == "pass rate"]
    assert (shift.before, shift.after) == (pytest.approx(0.1), pytest.approx(0.12))
    # Half of the observed rates lie .125 below and half above their mean: 100 / 99 * .125 ** 2 = .1256 ** 2.
    assert shift.deviations == pytest.approx(0.02 / 0.125630, abs=1e-5)
