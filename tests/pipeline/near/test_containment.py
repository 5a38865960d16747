"""Runs of tokens: which share of an item a text holds, by rarity."""

from __future__ import annotations

import numpy as np

from truegold.pipeline.near import containment
from truegold.pipeline.near.containment import Containment, GramIndex
from truegold.pipeline.near.features import FeatureBuilder

ITEM = "Tom has 3 red cars and buys 4 more at the market on Sunday. How many cars has he?"
POOL = [f"On day {day} somebody saw {day + 7} birds over the river. How many birds were there?" for day in range(40)]


def held(eval_items: list[str], texts: list[str], share: float = 0.0) -> dict[tuple[int, int], float]:
    """The share of each item in each text, by (text, item) from 0."""
    builder, index = FeatureBuilder(), GramIndex()
    builder.listen(index.learn)
    builder.add(eval_items)
    builder.listen(index.look_up)
    builder.add(texts)
    builder.finish()
    shares = index.contained(share, 0.0)
    return {
        (text - len(eval_items), item): round(float(value), 2)
        for text, item, value in zip(shares.text.tolist(), shares.item.tolist(), shares.share, strict=True)
    }


def test_a_copy_in_a_longer_text_is_held_whole_and_a_renumbered_one_in_part():
    texts = [
        f"Solve this. {ITEM} Think well.",
        ITEM.upper().replace("3", "THREE"),
        ITEM.replace("3", "5").replace("4", "9"),
        "Something else.",
        *POOL,
    ]
    shares = held([ITEM, "What is 6 * 7?"], texts)
    assert shares[0, 0] == shares[1, 0] == 1.0
    assert 0.2 < shares[2, 0] < 0.6
    assert len(shares) == 3


def test_runs_that_everybody_has_count_little():
    asked = "How many birds were there?"
    shares = held([f"A fox with 5 cubs counted to 19 slowly. {asked}"], [f"Well then. {asked}", *POOL])
    rare = held([f"A fox with 5 cubs counted to 19 slowly. {asked}"], [f"Well then. {asked}"])
    assert shares[0, 0] < rare[0, 0]


def test_items_shorter_than_a_run_and_no_items_and_no_texts():
    assert held(["Solve it now"], ["Solve it now"]) == {}
    assert held([], POOL) == {}
    assert held([ITEM], []) == {}


def test_a_run_that_ties_too_many_pairs_is_not_followed(monkeypatch):
    monkeypatch.setattr(containment, "MAX_PAIRS", 5)
    shares = held([POOL[3]], POOL)
    assert max(shares.values()) < 1.0
    assert isinstance(GramIndex().contained(0.5, 1.0), Containment)
    assert np.all([share > 0 for share in shares.values()])
