"""What positives of each origin came to: the pass rates of their rows before and after training, beside those of rows
that had never passed either and got none.

    Reflect, then retry     12 rows     .06 -> .41
    none                    31 rows     .05 -> .12
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from truegold.pipeline.tables.rows import KEY
from truegold.pipeline.tables.run_files import RunFiles

NO_POSITIVE = "none"


@dataclass(frozen=True)
class OriginGain:
    """Rows whose positives come from one strategy."""

    origin: str
    """The strategy; `none` for rows without a positive."""
    rows: int
    """Those that were profiled before and after training."""
    before: float
    """The mean of their expected pass rates, as the means of the posteriors have it."""
    after: float


def measure_gains_by_origin(files: RunFiles) -> tuple[OriginGain, ...]:
    """Return what each origin came to, the largest gain first and `none` last; a row counts for each of its origins.

    Nothing where there are no positives, or no profile after training.
    """
    positives = files.table("synth", "distilled.parquet")
    before, after = files.table("profile", "profile.parquet"), files.table("profile_after", "profile.parquet")
    if positives is None or before is None or after is None:
        return ()
    expected = pl.col("posterior_a") / (pl.col("posterior_a") + pl.col("posterior_b"))
    measured = before.select(*KEY, "pass_rate", before=expected).join(after.select(*KEY, after=expected), on=KEY)
    origins = positives.select(*KEY, origin="strategy").unique()
    with_positive = measured.join(origins, on=KEY)
    without = measured.filter(pl.col("pass_rate") == 0).join(origins, on=KEY, how="anti")
    rows = pl.concat(
        [
            with_positive.select("origin", "before", "after"),
            without.select(pl.lit(NO_POSITIVE).alias("origin"), "before", "after"),
        ]
    )
    means = rows.group_by("origin").agg(pl.len().alias("rows"), pl.col("before", "after").mean())
    ordered = means.sort(pl.col("origin") == NO_POSITIVE, pl.col("before") - pl.col("after"), "origin")
    return tuple(OriginGain(**gain) for gain in ordered.collect(engine="streaming").to_dicts())
