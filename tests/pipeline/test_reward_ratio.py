"""The reward-ratio view: groups of rows, before and after selection."""

from __future__ import annotations

import polars as pl
import pytest

from truegold.pipeline.report.reward_ratios import measure_reward_ratios

POSTERIORS = {
    (4, 2): [{"weight": 1.0, "a": 500.0, "b": 500.0}],
    (4, 4): [{"weight": 1.0, "a": 300.0, "b": 1.0}],
    (2, 1): [{"weight": 0.5, "a": 1.0, "b": 1.0}, {"weight": 0.5, "a": 2.0, "b": 1.0}],
}
"""What is known of the pass rate after so many samples and passes."""


def tables(entries):
    """(source, split, verifier, n, judged, passes), one problem each."""
    rows = [
        {
            "id": f"{i:020x}",
            "source": source,
            "source_row": i,
            "split": split,
            "n": n,
            "judged": judged,
            "passes": passes,
            "posterior": POSTERIORS.get((judged, passes), []),
        }
        | {"domain": "math", "verifier": verifier}
        for i, (source, split, verifier, n, judged, passes) in enumerate(entries)
    ]
    frame = pl.DataFrame(rows).lazy()
    return frame.drop("domain", "verifier"), frame.select("id", "source", "source_row", "domain", "verifier"), frame


def test_groups_are_told_before_and_after_selection_without_held_out_rows():
    entries = [("a", "train", "math", 4, 4, 2)] * 60 + [("b", "train", "exact", 4, 4, 4)] * 70
    entries += [("a", "heldout", "math", 4, 4, 0)] * 50
    profile, rows, everything = tables(entries)
    selected = everything.filter(pl.col("source") == "a", pl.col("split") == "train")
    ratios = {(ratio.by, ratio.name, ratio.when): ratio for ratio in measure_reward_ratios(profile, rows, selected, 8)}
    assert ratios["all", "all", "profiled"].rows == 130
    assert ratios["all", "all", "selected"].rows == 60
    assert list(ratios)[2] == ("source", "b", "profiled")
    assert ratios["source", "b", "selected"].rows == 0
    assert ratios["source", "b", "selected"].ones is None
    half = ratios["source", "a", "profiled"]
    assert half.ones == pytest.approx(0.5, abs=0.01)
    assert half.informative == pytest.approx(1 - 2 * 0.5**8, abs=0.01)
    assert ratios["verifier", "exact", "profiled"].saturated > 0.95
    assert half.dead + half.saturated + half.informative == pytest.approx(1)


def test_unjudged_samples_are_left_out_and_counted():
    profile, rows, _ = tables([("a", "train", "math", 4, 0, 0), ("a", "train", "math", 4, 2, 1)])
    ratio = measure_reward_ratios(profile, rows, None, 8)[0]
    assert (ratio.rows, ratio.judged_rows, ratio.unjudged) == (2, 1, 0.75)
    profile, rows, _ = tables([("a", "train", "math", 4, 0, 0)])
    nothing = measure_reward_ratios(profile, rows, None, 8)[0]
    assert (nothing.ones, nothing.dead, nothing.unjudged) == (None, None, 1.0)


def test_no_training_rows_no_ratios():
    profile, rows, _ = tables([("a", "heldout", "math", 4, 4, 1)])
    assert measure_reward_ratios(profile, rows, None, 8) == []


def test_shares_are_those_of_the_profiles_mixtures():
    profile, rows, _ = tables([("a", "train", "math", 4, 2, 1)] * 3)
    ratio = measure_reward_ratios(profile, rows, None, 2)[0]
    # Beta(1, 1) and Beta(2, 1): means 1/2 and 2/3; both of two samples pass with 1/3 and 1/2, none with 1/3 and 1/6.
    assert (ratio.ones, ratio.saturated, ratio.dead) == pytest.approx((7 / 12, 5 / 12, 1 / 4))
    assert ratio.informative == pytest.approx(1 / 3)
