"""Measures wrong rewards: finds flips and faulty prompts, and computes their cost and the quality of each judge.

There are three judges: the log, which has the rewards of the training, and the verifiers A and B. A judge pays a
response if it gives it at least PASSED, and otherwise refuses it. A rollout on which two judges differ is a flip.

**Cost.** An advantage is a reward minus the mean of its group, divided by the standard deviation of the group (Shao et
al. 2024, DeepSeekMath, equation 3). A wrong reward therefore changes the advantages of the whole group. The cost is the
absolute difference between the advantage by the logged rewards and by the scores of A:

    rewards of the log 1 0 0 0    advantage_logged       1.5   -.5   -.5   -.5
    scores of A        1 1 0 0    advantage_corrected    .87   .87  -.87  -.87
                                  cost                   .63  1.37   .37   .37

**J** (Youden 1950) is the share of right responses that a judge pays, minus the share of wrong responses that it pays.
A policy improves if J is above 0, and gets worse if J is below 0 (arXiv 2601.04411). J is measured only on settled
responses. Another source, such as a reviewer, says whether they are right.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from truegold.pipeline.rescore.rescore import PASSED, ROLLOUT_INDEX
from truegold.verifiers import InputError
from truegold.verifiers.rates import difference_interval, wilson_interval

MIN_SAMPLES = 4
"""A prompt needs this number of judged completions to be called mislabeled, dead or saturated."""
AGREEING = 0.5
"""A gold looks wrong if no completion of its prompt is right, and more than this share gives one other answer."""
SPREAD_FLOOR = 1e-4
"""The constant that is added to a group's standard deviation, as in GRPO."""
JUDGES = {"log": "reward", "a": "score_a", "b": "score_b"}
"""Maps each judge to its column."""


@dataclass(frozen=True)
class Separation:
    """The counts and J of one judge on settled responses."""

    judge: str
    right: int
    """The number of right responses with a verdict of the judge."""
    paid_right: int
    """The number of right responses that the judge pays."""
    wrong: int
    paid_wrong: int
    unjudged: int
    j: float | None
    """Youden's J, or None if all responses are right or all are wrong."""
    low: float | None
    high: float | None


def with_advantages(rollouts: pl.DataFrame) -> pl.DataFrame:
    """Return the rollouts with further columns: `passes_JUDGE` for each judge, both advantages, and `cost`."""
    judges = {name: column for name, column in JUDGES.items() if rollouts[column].dtype != pl.Null}
    passes = [(pl.col(column) >= PASSED).alias(f"passes_{name}") for name, column in judges.items()]
    corrected = pl.coalesce("score_a", "reward")
    table = rollouts.with_columns(*passes).with_columns(
        advantage_logged=_standardised(pl.col("reward")), advantage_corrected=_standardised(corrected)
    )
    return table.with_columns(cost=(pl.col("advantage_logged") - pl.col("advantage_corrected")).abs())


def _standardised(values: pl.Expr) -> pl.Expr:
    centred = values - values.mean().over("group")
    spread = values.std().over("group").fill_null(0.0)
    return centred / (spread + SPREAD_FLOOR)


def find_flips(table: pl.DataFrame) -> pl.DataFrame:
    """Return the flips, the costliest first. The column `between` has the judges' scores, such as `log:0 a:1`."""
    pairs = [("log", "a"), ("log", "b"), ("a", "b")]
    differences = [pl.col(f"passes_{first}") != pl.col(f"passes_{second}") for first, second in pairs]
    scores = [
        pl.when(pl.col(f"passes_{name}").is_not_null()).then(pl.format(f"{name}:{{}}", pl.col(column)))
        for name, column in JUDGES.items()
    ]
    flips = table.filter(pl.any_horizontal(*(difference.fill_null(False) for difference in differences)))
    return flips.with_columns(between=pl.concat_str(scores, separator=" ", ignore_nulls=True)).sort(
        "cost", descending=True, nulls_last=True, maintain_order=True
    )


def find_prompts(table: pl.DataFrame) -> pl.DataFrame:
    """Return every prompt with its counts, and with `looks`, which is null or one of:

    - `mislabeled`: no completion is right by A, and most of them give the same other answer
    - `dead`: no completion is right by A
    - `saturated`: all completions are right by A
    """
    answers = table.filter(pl.col("extracted_a").is_not_null() & (pl.col("score_a") < PASSED))
    key = ["prompt", "gold"]
    votes = (
        answers.group_by(*key, pl.col("extracted_a").str.strip_chars().alias("majority"))
        .len("votes")
        .sort("votes", "majority", descending=[True, False])
        .group_by(key, maintain_order=True)
        .first()
    )
    counts = table.group_by(key, maintain_order=True).agg(
        id=pl.col("id").first(),
        samples=pl.len(),
        judged=pl.col("score_a").count(),
        right=pl.col("passes_a").sum(),
        paid=pl.col("passes_log").sum(),
        errors=(pl.col("passes_log") != pl.col("passes_a")).sum(),
        cost=pl.col("cost").sum(),
    )
    joined = counts.join(votes, on=key, how="left", nulls_equal=True).with_columns(pl.col("prompt").cast(pl.String))
    enough = pl.col("judged") >= MIN_SAMPLES
    looks = (
        pl.when(enough & (pl.col("right") == 0) & (pl.col("votes") > AGREEING * pl.col("judged")))
        .then(pl.lit("mislabeled"))
        .when(enough & (pl.col("right") == 0))
        .then(pl.lit("dead"))
        .when(enough & (pl.col("right") == pl.col("judged")))
        .then(pl.lit("saturated"))
    )
    return joined.with_columns(looks=looks).sort("errors", "cost", descending=True, maintain_order=True)


def read_settled(path: Path) -> pl.DataFrame:
    """Return settled responses from a file with `correct`, `completion`, and `prompt` or `id`.

    Raises InputError if a column is missing.
    """
    table = pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_ndjson(path)
    if not {"completion", "correct"} <= set(table.columns) or not {"prompt", "id"} & set(table.columns):
        raise InputError(
            f"{path} has the columns {', '.join(table.columns)}.",
            "Settled responses have correct (true or false), completion, and prompt or id.",
        )
    return table


def measure_separation(table: pl.DataFrame, truths: pl.DataFrame) -> list[Separation]:
    """Return J of the log and of each verifier on the settled rollouts in `truths` (`find_settled`)."""
    return _separations(table.join(truths, on=ROLLOUT_INDEX))


def measure_by_decisions(table: pl.DataFrame) -> list[Separation]:
    """Return J of the log and of each verifier on the rollouts of rows that reviewers kept or fixed."""
    known = table.filter(pl.col("decided_score").is_not_null())
    return _separations(known.with_columns(correct=pl.col("decided_score") >= PASSED))


def count_decided(table: pl.DataFrame) -> dict[str, int]:
    """Return the number of rollouts of decided rows, of dropped rows, and of those that the log paid."""
    dropped = table.filter(pl.col("decision") == "drop")
    return {
        "rollouts": table["decision"].count(),
        "unjudged": table.filter((pl.col("decision") != "drop") & pl.col("decided_score").is_null()).height,
        "of_dropped_rows": dropped.height,
        "of_dropped_rows_paid": int(dropped["passes_log"].sum()),
    }


def _separations(known: pl.DataFrame) -> list[Separation]:
    return [_separation(known, judge) for judge in JUDGES if known.height and known[JUDGES[judge]].count()]


def _separation(known: pl.DataFrame, judge: str) -> Separation:
    judged = known.filter(pl.col(JUDGES[judge]).is_not_null())
    counts: dict[bool, tuple[int, int]] = {}
    for truth in (True, False):
        part = judged.filter(pl.col("correct") == truth)
        counts[truth] = (part.height, int(part[f"passes_{judge}"].sum()))
    (right, paid_right), (wrong, paid_wrong) = counts[True], counts[False]
    j = low = high = None
    if right and wrong:
        j = paid_right / right - paid_wrong / wrong
        low, high = difference_interval(
            paid_right / right,
            wilson_interval(paid_right, right),
            paid_wrong / wrong,
            wilson_interval(paid_wrong, wrong),
        )
    return Separation(judge, right, paid_right, wrong, paid_wrong, known.height - judged.height, j, low, high)


def summarise(table: pl.DataFrame, flips: pl.DataFrame, prompts: pl.DataFrame) -> dict[str, Any]:
    """Return the counts for the report."""
    judged = table.filter(pl.col("reward").is_not_null() & pl.col("score_a").is_not_null())
    wrong = judged.filter(pl.col("passes_log") != pl.col("passes_a"))
    reasons = wrong["reason_a"].value_counts()
    return {
        "judged_by_both": judged.height,
        "unjudged_in_log": table["reward"].null_count(),
        "unjudged_by_a": table["score_a"].null_count(),
        "wrong_rewards": wrong.height,
        "wrongly_paid": wrong.filter("passes_log").height,
        "wrongly_refused": wrong.filter(~pl.col("passes_log")).height,
        "flips": flips.height,
        "groups": table["group"].n_unique(),
        "groups_with_errors": wrong["group"].n_unique(),
        "mean_cost": _mean(table["cost"]),
        "mean_advantage": _mean(table["advantage_corrected"].abs()),
        "reasons": dict(reasons.sort("count", "reason_a", descending=[True, False]).iter_rows()),
        "prompts": dict(prompts.drop_nulls("looks")["looks"].value_counts().sort("looks").iter_rows()),
    }


def _mean(values: pl.Series) -> float:
    mean = values.mean()
    return float(mean) if isinstance(mean, int | float) else 0.0
