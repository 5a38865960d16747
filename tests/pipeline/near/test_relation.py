"""Pairs of problems: which relation they have, and that candidates and links do not depend on how the work is cut."""

from __future__ import annotations

import random

import numpy as np
import pytest
from tables import rows

from truegold.pipeline.near import arrays, related_pairs
from truegold.pipeline.near.arrays import pack_pairs, unpack_pairs
from truegold.pipeline.near.confirmation import Cuts, confirm_links
from truegold.pipeline.near.corpus import CorpusBuilder
from truegold.pipeline.near.features import FeatureBuilder, Features
from truegold.pipeline.near.measures import Comparer, Relation, may_relate, relate
from truegold.pipeline.near.related_pairs import (
    SILENT,
    Links,
    bucket_pairs,
    find_candidates,
    find_links,
    find_neighbours,
)

BACKGROUND = [
    f"{name} {verb} {count} {goods} and {other} of them are {colour}. How many {goods} are not {colour}?"
    for count, (name, verb, goods, other, colour) in enumerate(
        [
            ("Maria", "collects", "stamps", "nine", "green"),
            ("Peter", "paints", "fences", "eleven", "white"),
            ("Olga", "grows", "tulips", "thirteen", "yellow"),
            ("Ahmed", "repairs", "bicycles", "fourteen", "black"),
            ("Chen", "reads", "novels", "fifteen", "long"),
            ("Fatima", "bakes", "loaves", "sixteen", "dark"),
        ],
        31,
    )
]


def build(*texts: str) -> Features:
    builder = FeatureBuilder()
    builder.add(list(texts))
    return builder.finish()


def relation(left: str, right: str, golds: tuple[str | None, str | None] = (None, None)) -> Relation:
    """What the two are to each other, among a few other problems."""
    builder = CorpusBuilder()
    texts = [left, right, *BACKGROUND]
    builder.add(texts, [*golds, *[None] * len(BACKGROUND)], [0] * len(texts))
    corpus = builder.finish()
    comparer = Comparer(corpus.features)
    links = confirm_links(find_links(corpus.features, comparer), corpus, comparer)
    is_pair = (links.left == 0) & (links.right == 1)
    return Relation(int(links.relation[is_pair][0])) if is_pair.any() else Relation.UNRELATED


TOM = "Tom has 37 red cars and buys 45 more at the market. How many cars has Tom got in total?"
CASES = {
    "reworded": (
        "Natalia sold clips to 48 of her friends in April, and then she sold half as many clips in May. How many clips"
        " did Natalia sell altogether in April and May?",
        "In April, Natalia sold clips to 48 friends of hers. In May she then sold half as many clips. What is the total"
        " number of clips that Natalia sold in April and May?",
        Relation.SAME_PROBLEM,
    ),
    "numbers in words": (TOM, TOM.replace("37", "thirty-seven"), Relation.SAME_PROBLEM),
    "harmless words": (TOM, TOM.replace("at the market", "at market"), Relation.SAME_PROBLEM),
    "renumbered": (TOM, TOM.replace("37", "58").replace("45", "19"), Relation.SAME_TEMPLATE),
    "one number changed": (TOM, TOM.replace("45", "46"), Relation.SAME_TEMPLATE),
    "numbers swapped": (TOM, TOM.replace("37", "x").replace("45", "37").replace("x", "45"), Relation.EDITED_VARIANT),
    "premise removed": (TOM, TOM.replace("37 red", "some red"), Relation.EDITED_VARIANT),
    "more became less": (TOM, TOM.replace("buys 45 more", "sells 45"), Relation.EDITED_VARIANT),
    "another story with the same numbers": (
        TOM,
        "A bus with 37 passengers stops and 45 people get on. What is the mass of the bus now?",
        Relation.UNRELATED,
    ),
    "unrelated": (TOM, BACKGROUND[0], Relation.UNRELATED),
    "chinese renumbered": (
        "小明有37个红苹果，又买了45个青苹果，小明一共有多少个苹果？",
        "小明有58个红苹果，又买了19个青苹果，小明一共有多少个苹果？",
        Relation.SAME_TEMPLATE,
    ),
    "programs": (
        "Write a function that returns the longest palindrome of a string.\n```python\ndef f(s):\n```",
        "Write a function that returns the number of palindromes in a string of letters.\n```python\ndef g(s):\n```",
        Relation.EDITED_VARIANT,
    ),
}


@rows("name", CASES)
def test_what_two_problems_are_to_each_other(name):
    left, right, expected = CASES[name]
    assert relation(left, right) == relation(right, left) == expected


def test_equal_golds_let_a_near_copy_with_other_words_be_the_same_problem():
    other = TOM.replace("market", "fair")
    assert relation(TOM, other) == Relation.EDITED_VARIANT
    assert relation(TOM, other, ("82", "82.0")) == Relation.SAME_PROBLEM
    assert relation(TOM, other, ("82", "8")) == Relation.EDITED_VARIANT


def sentences(count: int, seed: int = 0) -> list[str]:
    """Made-up problems, many of them near copies of one another."""
    draw = random.Random(seed)
    names, things = ["ann", "bob", "eve", "joe", "kim", "lee"], ["pens", "cups", "hats", "keys", "nuts", "toys"]
    texts = []
    for _ in range(count):
        name, goods, first, second = draw.choice(names), draw.choice(things), draw.randint(2, 30), draw.randint(2, 30)
        if texts and draw.random() < 0.3:
            words = draw.choice(texts).split()
            words[draw.randrange(len(words))] = draw.choice(["blue", "old", str(first)])
            texts.append(" ".join(words))
        else:
            texts.append(
                f"{name} has {first} {goods} and finds {second} more {goods} near the river. How many {goods}?"
            )
    return texts


def all_links(features: Features) -> Links:
    return find_links(features, Comparer(features))


def test_links_do_not_depend_on_how_many_shards_there_are(monkeypatch):
    features = build(*sentences(400))
    whole = all_links(features)
    monkeypatch.setattr(related_pairs, "SHARD_ROWS", 30)
    monkeypatch.setattr(related_pairs, "MERGED_PAIRS", 100)
    monkeypatch.setattr(arrays, "TABLE_ROWS", 70)
    monkeypatch.setattr(related_pairs, "BATCH", 50)
    parts = all_links(features)
    assert len(whole) > 300
    for name in ("left", "right", "relation", "score"):
        assert np.array_equal(getattr(whole, name), getattr(parts, name))


def test_no_related_pair_is_passed_over_before_it_is_measured():
    features = build(
        *sentences(300), *(left for left, _, _ in CASES.values()), *(right for _, right, _ in CASES.values())
    )
    left, right = (indices.astype(np.int64) for indices in np.triu_indices(len(features), 1))
    measures = Comparer(features).measure(left, right)
    related = relate(measures, len(features))[0] > Relation.UNRELATED
    assert related.any() and not related.all()
    assert may_relate(measures, len(features))[related].all()


def test_texts_that_share_two_rare_features_are_candidates():
    features = build("the zebra saw a kiwi", "a kiwi met the zebra", "the zebra slept", *["the dog ran home"] * 3)
    pairs = {(int(code) >> 32, int(code) & 0xFFFFFFFF) for code in find_candidates(features, None, SILENT)}
    assert (0, 1) in pairs
    assert (0, 2) not in pairs
    assert {(3, 4), (3, 5), (4, 5)} <= pairs


def test_only_rows_of_different_sides_are_paired_where_there_are_sides():
    features = build(*sentences(200))
    side = np.arange(200) % 2
    codes = find_candidates(features, side, SILENT)
    assert len(codes) > 100
    assert (side[codes >> 32] != side[codes & 0xFFFFFFFF]).all()


def test_texts_that_are_passed_over_share_no_key_with_one_of_the_first():
    draw = random.Random(1)
    words = ["".join(draw.choices("bdfgklmnprt", k=6)) for _ in range(100)]
    features = build(*(" ".join(draw.sample(words, 5)) for _ in range(600)))
    chosen = find_neighbours(features, 2)
    side = (np.arange(600) >= 2).astype(np.int64)
    left, right = unpack_pairs(find_candidates(features, side, SILENT))
    assert len(left) > 5
    assert 2 < len(chosen) < 300
    assert np.isin(right, chosen).all()
    few = find_candidates(features.take(chosen), side[chosen], SILENT)
    assert np.array_equal(pack_pairs(left, np.searchsorted(chosen, right)), few)


def test_the_work_in_a_large_bucket_is_proportional_to_its_texts():
    rows = np.arange(5000)
    keys_, quantities = np.zeros(5000, np.uint64), np.repeat(np.arange(50, dtype=np.uint64), 100)
    codes = bucket_pairs(keys_, rows, quantities)
    assert len(codes) < 5 * 5000
    assert {(0, 1), (0, 4999), (100, 199)} <= {(int(code) >> 32, int(code) & 0xFFFFFFFF) for code in codes}
    assert len(bucket_pairs(keys_[:6], rows[:6], quantities[:6])) == 15


@pytest.mark.parametrize("texts", [[], ["one text"], ["", ""], ["?", "..."], ["a b c"] * 40])
def test_small_and_odd_inputs_are_no_error(texts):
    assert len(all_links(build(*texts))) >= 0


def test_conflicts_have_a_cut_of_their_own():
    agreement = np.array([0, 1, -1, 0], np.int8)
    assert (np.array([1.0, 3.0, 1.0, 3.0]) >= Cuts(0.9, 0.6).least_scores(agreement)).tolist() == [
        False,
        True,
        True,
        True,
    ]
    assert (np.array([1.0, 3.0, 1.0, 3.0]) >= Cuts(0.6, 0.9).least_scores(agreement)).tolist() == [
        True,
        True,
        False,
        True,
    ]


def test_a_swap_of_quantities_is_another_problem_even_with_the_same_gold():
    assert relation("What is 9+31?", "What is 31+9?", ("40", "40")) != Relation.SAME_PROBLEM
    assert relation("What is 9+1?", "What is 1+9?", ("10", "10")) != Relation.SAME_PROBLEM
