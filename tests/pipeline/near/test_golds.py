"""Golds of one problem: the same, different, or undecided, which is no conflict."""

from __future__ import annotations

import numpy as np
import polars as pl
from tables import rows

from truegold.pipeline.near.gold_keys import NO_GOLD, gold_keys
from truegold.pipeline.near.golds import GoldComparison, compare_golds, unify_golds

DIFFERENT = [("5 km", "5 cm"), ("7", "8"), ("odd", "even"), ("B", "C"), ("\\frac{1}{2}", "0.25"), ("x+1", "x+2")]
SAME = [("5 km", "5000 m"), ("15 minutes", "15"), ("1+x", "x+1"), ("(A)", "A")]
UNDECIDED = [
    ("Recall that the projection is linear, so it is.", "5"),
    ("B", "12"),
    ("Yes, since both of them are even numbers", "No, because neither of the two is"),
    ("see the figure above", "x+1"),
    ("N/A", "5"),
    ("see solution", "x = 3"),
    ("答案略", "12"),
    ("$x=3-2t, y=t$", "$x=s, y=\\frac{3-s}{2}$"),
]


@rows("compared", [*DIFFERENT, *SAME, *UNDECIDED])
def test_only_golds_that_can_be_compared_differ(compared):
    expected = GoldComparison.UNDECIDED
    if compared in DIFFERENT:
        expected = GoldComparison.DIFFERENT
    elif compared in SAME:
        expected = GoldComparison.SAME
    assert compare_golds(*compared) == compare_golds(*reversed(compared)) == expected


def test_a_cluster_is_contradicted_by_golds_that_are_known_to_differ_alone():
    golds = ["4", "8", "B", "12", None, "1/2", "0.50"]
    cluster = np.array([0, 0, 2, 2, 2, 5, 5])
    unified = unify_golds(gold_keys(golds), pl.Series(golds, dtype=pl.String), cluster)
    assert unified.contradicted.tolist() == [0]
    assert unified.gold[4] == NO_GOLD
    assert unified.gold[5] == unified.gold[6]
