"""Proposals of an encoder: more pairs are read, and the reading decides as ever."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from truegold.pipeline.engines.text_vectors import load_text_encoder
from truegold.pipeline.near.arrays import Floats
from truegold.pipeline.near.confirmation import confirm_links
from truegold.pipeline.near.corpus import Corpus, CorpusBuilder
from truegold.pipeline.near.embedding import add_proposed_links, find_translations, is_translation, propose
from truegold.pipeline.near.measures import Comparer, Relation
from truegold.pipeline.near.problem_text import read_text
from truegold.pipeline.near.related_pairs import find_links
from truegold.verifiers import ConfigError, SetupError

ITEMS = [
    "Tom has 37 red cars and buys 45 more at the market. How many cars has Tom got in total?",
    "A fence of 13 meters is painted in 4 hours. How long does one meter take?",
]
RECORDS = [
    "At the market Tom, who owns thirty-seven red cars, buys 45 others. What is the number of cars that Tom has then?",
    "Tom has 38 red cars and buys 46 more at the market. How many cars has Tom got in total?",
    "Tom has 37 red cars and sells 45 blue ones. How long did that take?",
]


def corpus_of(texts: Sequence[str]) -> Corpus:
    builder = CorpusBuilder()
    builder.add(texts, [None] * len(texts), [0] * len(texts))
    return builder.finish()


def same_vectors(texts: Sequence[str]) -> Floats:
    return np.ones((len(texts), 4), np.float32) / 2


def test_what_an_encoder_proposes_is_read_like_other_pairs():
    corpus = corpus_of(ITEMS + RECORDS)
    comparer = Comparer(corpus.features)
    side = np.array([0, 0, 1, 1, 1])
    links = find_links(corpus.features, comparer, split=side, texts=5)
    nothing = links.take(np.zeros(len(links), dtype=bool))
    proposed = add_proposed_links(nothing, comparer, propose(corpus, same_vectors, len(ITEMS)), 5)
    assert (proposed.left < len(ITEMS)).all() and (proposed.right >= len(ITEMS)).all()
    same = confirm_links(proposed, corpus, comparer, 5).having(Relation.SAME_PROBLEM)
    assert list(zip(same.left.tolist(), same.right.tolist(), strict=True)) == [(0, 2)]


def test_links_that_are_known_are_not_proposed_twice():
    corpus = corpus_of(ITEMS + RECORDS)
    comparer = Comparer(corpus.features)
    links = find_links(corpus.features, comparer, split=np.array([0, 0, 1, 1, 1]), texts=5)
    joined = add_proposed_links(links, comparer, propose(corpus, same_vectors, len(ITEMS)), 5)
    codes = (joined.left << 32) | joined.right
    assert len(np.unique(codes)) == len(codes) >= len(links)


def test_an_encoder_that_is_not_there_is_named(tmp_path: Path):
    pytest.importorskip("transformers")
    with pytest.raises(SetupError, match="no-such-encoder"):
        load_text_encoder(str(tmp_path / "no-such-encoder"))


MARBLES = "Paul has 52 marbles. His friend gave him 28 marbles. Then he lost 1/4 of them. How many does Paul have left?"
CHINESE_MARBLES = "保罗有52颗弹珠。他的朋友给了他28颗。后来他丢了四分之一的弹珠。保罗还剩多少颗弹珠？"


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (MARBLES, CHINESE_MARBLES, True),
        (MARBLES, CHINESE_MARBLES.replace("28", "38"), False),
        (MARBLES, CHINESE_MARBLES.replace("保罗还剩多少颗弹珠", "他丢了多少颗弹珠"), None),
        (MARBLES, CHINESE_MARBLES.replace("保罗还剩多少颗弹珠", "他比朋友多多少颗弹珠"), False),
        (MARBLES, MARBLES, False),
        ("What is 12?", "12是什么？", False),
    ],
)
def test_numbers_and_question_tell_a_translation(left, right, expected):
    assert is_translation(read_text(left), read_text(right), left, right) is expected


def test_translations_are_sought_among_the_texts_of_other_scripts():
    corpus = corpus_of([*ITEMS, MARBLES, *RECORDS, CHINESE_MARBLES])
    translations = find_translations(corpus, propose(corpus, same_vectors))
    assert list(zip(translations.left.tolist(), translations.right.tolist(), strict=True)) == [(2, 6)]
    assert translations.is_sure.all()


def test_an_encoder_may_be_a_function_of_the_users(tmp_path: Path):
    (tmp_path / "encoder.py").write_text("def encode(texts):\n    return [[3.0, 4.0]] * len(texts)\n")
    vectors = load_text_encoder(f"{tmp_path / 'encoder.py'}:encode")(["a", "b"])
    assert np.allclose(vectors, [[0.6, 0.8]] * 2)


def test_an_encoder_that_returns_too_few_vectors_is_named(tmp_path: Path):
    (tmp_path / "encoder.py").write_text("def encode(texts):\n    return [[1.0]]\n")
    with pytest.raises(ConfigError, match="shape"):
        load_text_encoder(f"{tmp_path / 'encoder.py'}:encode")(["a", "b"])
