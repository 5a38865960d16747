"""Rows in clusters: no chains, the best row stays, golds that differ stay and are a conflict, templates are capped."""

from __future__ import annotations

import random
from dataclasses import fields

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from truegold.pipeline.near import arrays, confirmation
from truegold.pipeline.near.arrays import Numbering
from truegold.pipeline.near.confirmation import Cuts, confirm_links, confirm_star_links
from truegold.pipeline.near.corpus import Corpus, CorpusBuilder
from truegold.pipeline.near.duplicates import Duplicates, cluster_texts, find_duplicates
from truegold.pipeline.near.measures import Comparer, Relation
from truegold.pipeline.near.related_pairs import Links, find_links

TOM = "Tom has 37 red cars and buys 45 more at the market. How many cars has Tom got in total?"
TOM_SAID_ANEW = TOM.replace("37", "thirty-seven")
OTHERS = [
    "Maria collects stamps, nine of them green. How many are not green if she has 31 in all?",
    "A fence of 13 meters is painted by Peter in two hours. How long does he need for one meter?",
]


def corpus_of(*rows: tuple[str, str | None, int]) -> Corpus:
    builder = CorpusBuilder()
    prompts, golds, solutions = zip(*rows, strict=True) if rows else ((), (), ())
    builder.add(list(prompts), list(golds), list(solutions))
    return builder.finish()


def duplicates(*rows: tuple[str, str | None, int], cap: int | None = None) -> Duplicates:
    corpus = corpus_of(*rows, *((other, None, 0) for other in OTHERS))
    comparer = Comparer(corpus.features)
    return find_duplicates(corpus, confirm_links(find_links(corpus.features, comparer), corpus, comparer), cap)


def links(*pairs: tuple[int, int, Relation, float]) -> Links:
    left, right, relation, score = zip(*sorted(pairs), strict=True)
    return Links(np.array(left), np.array(right), np.array(relation, np.uint8), np.array(score, np.float32))


def test_a_row_joins_only_a_row_that_it_is_linked_to():
    same = Relation.SAME_PROBLEM
    clusters = cluster_texts(links((0, 1, same, 1.0), (1, 2, same, 3.0)), np.array([0, 1, 2]))
    assert clusters.founder.tolist() == [0, 0, 2]
    assert clusters.relation.tolist() == [same, same, same]
    assert clusters.other.tolist() == [1, 0, 1]
    clusters = cluster_texts(links((0, 1, same, 1.0), (1, 2, same, 3.0)), np.array([1, 0, 2]))
    assert clusters.founder.tolist() == [1, 1, 1]


def test_a_template_is_built_around_its_most_linked_instance():
    template = Relation.SAME_TEMPLATE
    pairs = [(0, 3, template, 0.0), (1, 3, template, 0.0), (2, 3, template, 0.0), (4, 5, template, 0.0)]
    clusters = cluster_texts(links(*pairs), np.arange(7))
    assert clusters.template.tolist() == [3, 3, 3, 3, 4, 4, 6]
    assert clusters.founder.tolist() == list(range(7))


def test_the_best_row_stays_one_with_gold_then_complete_then_with_the_longer_solution():
    outcome = duplicates((TOM_SAID_ANEW, None, 900), (TOM, "82", 10), (TOM, "82", 300))
    assert outcome.kept_for.tolist()[:3] == [2, 2, 2]
    assert outcome.cluster.tolist()[:3] == [2, 2, 2]
    assert outcome.relation.tolist()[:3] == [Relation.SAME_PROBLEM, Relation.EXACT, Relation.EXACT]
    assert outcome.other.tolist()[:3] == [2, 2, 1]
    assert outcome.keep.tolist() == [False, False, True, True, True]
    assert not outcome.conflict.any()


def test_rows_of_a_cluster_with_other_golds_stay_and_are_a_conflict():
    outcome = duplicates((TOM, "82", 0), (TOM_SAID_ANEW, "83", 0), (TOM, "83.0", 0), (TOM, None, 0))
    assert outcome.kept_for.tolist()[:4] == [0, 1, 1, 0]
    assert outcome.conflict.tolist()[:4] == [True] * 4
    assert set(outcome.cluster.tolist()[:4]) == {0}


def test_golds_that_the_verifier_finds_equal_are_no_conflict():
    outcome = duplicates((TOM, "x+1", 5), (TOM, "1+x", 0), (TOM, "\\frac{1}{2}", 0))
    assert outcome.kept_for.tolist()[:3] == [0, 0, 2]
    outcome = duplicates((TOM, "x+1", 5), (TOM, "1+x", 0))
    assert outcome.kept_for.tolist()[:2] == [0, 0]
    assert not outcome.conflict.any()


def test_rows_beyond_a_templates_cap_go_for_its_best_row():
    rows = [(TOM.replace("37", str(cars)), str(cars + 45), cars) for cars in (51, 62, 73, 84)]
    assert duplicates(*rows).keep.all()
    outcome = duplicates(*rows, cap=2)
    assert outcome.keep.tolist()[:4] == [False, False, True, True]
    assert outcome.capped.tolist()[:4] == [True, True, False, False]
    assert outcome.kept_for.tolist()[:2] == [3, 3]
    assert len(set(outcome.template.tolist()[:4])) == 1
    assert outcome.template.tolist()[4:] == [-1, -1]


def test_empty_prompts_are_like_nothing_else():
    outcome = duplicates(("", "1", 0), ("  ", "1", 0), (TOM, None, 0))
    assert outcome.keep.all()
    assert outcome.relation.tolist() == [Relation.UNRELATED] * 5
    assert outcome.other.tolist() == [-1] * 5


def test_no_rows_at_all():
    corpus = corpus_of()
    outcome = find_duplicates(corpus, find_links(corpus.features, Comparer(corpus.features)), 1)
    assert len(outcome.keep) == 0


VARIANTS = [
    TOM,
    TOM.replace("at the market", "at market"),
    TOM.replace("37", "thirty-seven"),
    TOM.replace("red cars", "cars that are red"),
    TOM.replace("buys", "gets"),
    TOM.replace("Tom", "Ann"),
    TOM.replace("37", "73"),
    "At the market Tom, who has 37 red cars, buys 45 more. What is the number of cars that he has got in total?",
    "How many cars has Tom got in total if he has 37 red cars and buys 45 more at the market?",
    *OTHERS,
]


@settings(max_examples=40)
@given(
    rows=st.lists(
        st.tuples(st.sampled_from(VARIANTS), st.sampled_from([None, "82", "83"]), st.integers(0, 3)), max_size=14
    ),
    cuts=st.sampled_from([Cuts(), Cuts(0.9, 0.72), Cuts(0.5, 0.99)]),
)
def test_pairs_that_no_cluster_depends_on_need_no_reading(rows, cuts):
    corpus = corpus_of(*rows)
    comparer = Comparer(corpus.features)
    candidates = find_links(corpus.features, comparer)
    everything = find_duplicates(corpus, confirm_links(candidates, corpus, comparer, cuts=cuts))
    stars = find_duplicates(corpus, confirm_star_links(candidates, corpus, comparer, cuts))
    for field in fields(Duplicates):
        assert np.array_equal(getattr(everything, field.name), getattr(stars, field.name), equal_nan=True), field.name


def test_reading_in_processes_changes_nothing(monkeypatch):
    goods = [f"{name} has {n} {thing} and buys {n + 5} more at the market. How many {thing} has {name} got in total?"
             for n in range(12, 24) for name, thing in (("Tom", "red cars"), ("Ann", "old stamps"))]  # fmt: skip
    copies = [text.replace(" buys", " then buys").replace("at the market", "at market") for text in goods]
    corpus = corpus_of(*((text, None, 0) for text in goods + copies))
    comparer = Comparer(corpus.features)
    candidates = find_links(corpus.features, comparer)
    alone = confirm_star_links(candidates, corpus, comparer)
    monkeypatch.setattr(confirmation, "GROUP_PAIRS", 2)
    monkeypatch.setattr(confirmation, "usable_cores", lambda: 2)
    in_processes = confirm_star_links(candidates, corpus, comparer)
    assert len(alone.having(Relation.SAME_PROBLEM)) >= 10
    for field in ("left", "right", "relation", "score"):
        assert np.array_equal(getattr(alone, field), getattr(in_processes, field))


ROWS = st.lists(
    st.tuples(
        st.sampled_from([TOM, TOM.upper(), TOM_SAID_ANEW, TOM.replace("37", "58"), "", OTHERS[0]]),
        st.sampled_from([None, "82", "82.0", "103", "yes"]),
        st.integers(0, 3),
    ),
    max_size=12,
)


@given(rows=ROWS, cap=st.sampled_from([None, 1, 2]))
def test_whatever_the_rows_each_has_one_that_stays_for_it(rows, cap):
    outcome = duplicates(*rows, cap=cap)
    kept = outcome.kept_for
    assert (kept[kept] == kept).all()
    assert (outcome.cluster[outcome.cluster] == outcome.cluster).all()
    inside = ~outcome.capped
    assert (outcome.cluster[kept[inside]] == outcome.cluster[inside]).all()
    assert ((outcome.other >= 0) == (outcome.relation > Relation.UNRELATED)).all()
    if cap is None:
        assert outcome.keep[outcome.cluster].all()
        # One row stays for each gold of a cluster.
        golds = {(outcome.cluster[row], str(float(gold)) if gold not in (None, "yes") else gold)
                 for row, (_, gold, _) in enumerate(rows) if gold is not None}  # fmt: skip
        alone = {cluster for cluster in outcome.cluster if cluster not in {with_gold for with_gold, _ in golds}}
        assert outcome.keep.sum() == len(golds) + len(alone)


def test_keys_keep_their_numbers_when_they_are_sorted_in(monkeypatch):
    monkeypatch.setattr(arrays, "TABLE_ROWS", 5)
    draw, numbering, expected = random.Random(1), Numbering(), dict[int, int]()
    for _ in range(40):
        keys = [draw.getrandbits(7) << 57 for _ in range(draw.randrange(9))]
        numbers = [expected.setdefault(key, len(expected)) for key in keys]
        assert numbering.number_keys(np.array(keys, dtype=np.uint64)).tolist() == numbers
        assert len(numbering) == len(expected)


@given(st.lists(st.lists(st.integers(0, 30), max_size=15), max_size=8))
def test_distinct_texts_are_numbered_in_the_order_in_which_they_come(batches):
    builder, expected = CorpusBuilder(), dict[int, int]()
    for batch in batches:
        builder.add([f"text {value}" for value in batch], [None] * len(batch), [0] * len(batch))
        for value in batch:
            expected.setdefault(value, len(expected))
    corpus = builder.finish()
    assert corpus.text.tolist() == [expected[value] for batch in batches for value in batch]
    assert corpus.texts.read(range(builder.distinct_texts)) == [f"text {value}" for value in expected]
