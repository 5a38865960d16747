"""What positives came to, by their strategy, against rates computed by hand."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from truegold.pipeline.report.origins import OriginGain, measure_gains_by_origin
from truegold.pipeline.tables.run_files import RunFiles


def files_of(folder: Path, **tables: pl.DataFrame) -> RunFiles:
    for stage, table in tables.items():
        (folder / stage).mkdir()
        table.write_parquet(folder / stage / ("distilled.parquet" if stage == "synth" else "profile.parquet"))
    return RunFiles({stage: folder / stage for stage in tables}, {stage: {} for stage in tables})


def profile(*rates: tuple[str, float, float, float]) -> pl.DataFrame:
    ids, passed, a, b = zip(*rates, strict=True)
    return pl.DataFrame(
        {"id": ids, "source": "s", "source_row": ids, "pass_rate": passed, "posterior_a": a, "posterior_b": b}
    )


def positives(*origins: tuple[str, str]) -> pl.DataFrame:
    ids, strategies = zip(*origins, strict=True)
    return pl.DataFrame({"id": ids, "source": "s", "source_row": ids, "strategy": strategies})


def test_rows_count_for_each_of_their_origins_and_those_without_stand_last(tmp_path: Path) -> None:
    files = files_of(
        tmp_path,
        profile=profile(("a", 0.0, 1, 9), ("b", 0.0, 1, 4), ("c", 0.0, 1, 3), ("d", 0.5, 5, 5), ("e", 0.0, 1, 9)),
        profile_after=profile(("a", 1.0, 9, 1), ("b", 0.0, 1, 4), ("c", 0.5, 2, 2), ("d", 1.0, 9, 1)),
        synth=positives(("a", "reflect"), ("a", "reflect"), ("a", "retry"), ("b", "retry"), ("e", "retry")),
    )
    gains = measure_gains_by_origin(files)
    # e was not profiled again, and d passed before.
    assert gains == (
        OriginGain("reflect", 1, 0.1, 0.9),
        OriginGain("retry", 2, pytest.approx(0.15), pytest.approx(0.55)),
        OriginGain("none", 1, 0.25, 0.5),
    )


def test_a_run_without_a_second_profile_or_positives_says_nothing(tmp_path: Path) -> None:
    before = profile(("a", 0.0, 1, 9))
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    assert measure_gains_by_origin(files_of(tmp_path / "one", profile=before, synth=positives(("a", "x")))) == ()
    assert measure_gains_by_origin(files_of(tmp_path / "two", profile=before, profile_after=before)) == ()
