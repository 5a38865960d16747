"""Mean pass rates of a profile, where all problems got as many samples and where they did not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import polars as pl
import pytest

from truegold.pipeline.report.pass_rates import measure_pass_rates


def mean_rate(counts: list[tuple[int, int]]) -> float | None:
    """Return the mean that the report gives for problems with these samples and passes, and the prior Beta(1, 1)."""
    table: dict[str, list[Any]] = {
        "split": ["train"] * len(counts),
        "n": [n for n, _ in counts],
        "judged": [n for n, _ in counts],
        "pass_rate": [passes / n for n, passes in counts],
        "expected_rate": [(1.0 + passes) / (2.0 + n) for n, passes in counts],
        "expected_deviation": [0.1 for _ in counts],
        "unread": [0] * len(counts),
        "truncated": [0.0] * len(counts),
        "tokens_mean": [3.0] * len(counts),
    }
    profile = pl.LazyFrame(table)
    files = SimpleNamespace(table=lambda stage, _: profile if stage == "profile" else None)
    (group,) = measure_pass_rates(cast("Any", files))
    assert group.before is not None
    return group.before.mean


def test_equal_samples_give_the_mean_of_the_observed_rates() -> None:
    assert mean_rate([(8, 0), (8, 4)]) == pytest.approx(0.25)


def test_samples_that_depend_on_what_came_before_give_the_mean_of_the_posteriors() -> None:
    # (1 / 6 + 5 / 18) / 2
    assert mean_rate([(4, 0), (16, 4)]) == pytest.approx(2 / 9)
