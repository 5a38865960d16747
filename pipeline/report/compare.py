"""Two runs side by side, as a page: the report on the second run, whose rows say how they ended in the first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from truegold.pipeline.config.stages import ReportConfig
from truegold.pipeline.report.contents import Contents, gather
from truegold.pipeline.report.diff import Difference, diff_runs
from truegold.pipeline.report.diff.rows import pair
from truegold.pipeline.report.render import render
from truegold.pipeline.report.training import Curve, Metric
from truegold.pipeline.tables.rows import KEY
from truegold.pipeline.tables.run_files import SOURCE_KEY, RunFiles, open_finished


@dataclass(frozen=True)
class Figure:
    """One number of both runs."""

    name: str
    first: float | None
    second: float | None
    is_share: bool = False
    """Whether it is shown in percent."""


@dataclass(frozen=True)
class Comparison:
    """What the page says of both runs."""

    first: str
    second: str
    figures: tuple[Figure, ...]
    difference: Difference
    curves: tuple[Curve, ...]
    """The metrics of both trainings in one chart each; none where only one run has trained."""


def compare_runs(first_dir: Path, second_dir: Path) -> str:
    """Return the page that compares two runs. InputError where a folder is no run, or has no rows yet."""
    first_files, second_files = _finished(first_dir), _finished(second_dir)
    first = gather(first_files, _config(first_dir, first_files))
    second = gather(second_files, _config(second_dir, second_files), earlier=_earlier(first_files, second_files))
    names = _names(first_dir, second_dir)
    curves = _curves(first, second, names)
    difference = diff_runs(first_dir, second_dir)
    return render(second, comparison=Comparison(*names, _figures(first, second), difference, curves))


def _finished(run_dir: Path) -> RunFiles:
    files = open_finished(run_dir)
    return files.only(name for name in files.folders if name != "report")


def _config(run_dir: Path, files: RunFiles) -> ReportConfig:
    return ReportConfig(name=run_dir.resolve().name, stages=tuple(files.folders))


def _names(first_dir: Path, second_dir: Path) -> tuple[str, str]:
    """Return the runs' names, or their paths where both have one name."""
    names = first_dir.resolve().name, second_dir.resolve().name
    return names if names[0] != names[1] else (str(first_dir), str(second_dir))


def _earlier(first: RunFiles, second: RunFiles) -> pl.DataFrame:
    """Return for each row of the second run how it ended in the first, where otherwise, and its pass rate there."""
    common = [stage for stage in first.records if stage in second]
    pairs = pair(first.only(common), second.only(common))
    here = [pl.col("id"), *(pl.col(f"{name}_b").alias(name) for name in SOURCE_KEY)]
    change = pl.col("outcome") + pl.lit(" → ") + pl.col("outcome_b")
    is_other = pl.col("outcome") != pl.col("outcome_b")
    there = [pl.col(name).alias(f"{name}_first") for name in SOURCE_KEY]
    both = pairs.both.select(*here, *there, change=pl.when(is_other).then(change))
    new = pairs.only_second.select(*KEY, change=pl.lit("not in the data → ") + pl.col("outcome"))
    profile = first.table("profile", "profile.parquet")
    if profile is None:
        rates = pl.DataFrame(schema={"id": pl.String, "source": pl.String, "source_row": pl.Int64, "rate": pl.Float64})
    else:
        rates = profile.select(*KEY, pl.col("pass_rate").alias("rate")).collect()
    rates = rates.rename({"source": "source_first", "source_row": "source_row_first", "rate": "earlier_rate"})
    joined = both.join(rates, on=["id", "source_first", "source_row_first"], how="left")
    earlier = pl.concat([joined.select(*KEY, "change", "earlier_rate"), new], how="diagonal")
    return earlier.unique(KEY, keep="first", maintain_order=True)


def _figures(first: Contents, second: Contents) -> tuple[Figure, ...]:
    def figure(name: str, values: Sequence[float | None], is_share: bool = False) -> Figure:
        return Figure(name, values[0], values[1], is_share)

    runs = (first, second)
    heldout = [run.heldout for run in runs]
    return (
        figure("records in", [run.account.records_in for run in runs]),
        figure("rows left", [run.left for run in runs]),
        figure("rows flagged", [run.flagged.rows if run.flagged else None for run in runs]),
        figure("rows held back", [run.flagged.held if run.flagged else None for run in runs]),
        figure("wrong labels among the rows left", [run.labels.rate if run.labels else None for run in runs], True),
        figure("held-out pass rate before training", [before.mean if before else None for before, _ in heldout], True),
        figure("held-out pass rate after training", [after.mean if after else None for _, after in heldout], True),
        figure("tokens", [run.tokens or None for run in runs]),
        figure("seconds", [round(sum(stage.seconds for stage in run.stages), 1) for run in runs]),
    )


def _curves(first: Contents, second: Contents, names: tuple[str, str]) -> tuple[Curve, ...]:
    """Return one curve for each metric that both trainings have, with a line for each run."""
    if first.training is None or second.training is None:
        return ()
    tables = [{metric.name: metric for metric in run.training.table} for run in (first, second) if run.training]
    drawn = [metric.name for curve in second.training.curves for metric in curve.metrics]
    return tuple(
        Curve(metric, tuple(Metric(name, table[metric].points) for name, table in zip(names, tables, strict=True)))
        for metric in dict.fromkeys(drawn)
        if all(metric in table for table in tables)
    )
