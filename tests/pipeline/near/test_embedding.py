"""Proposals of an encoder: more pairs are read, and the reading decides as ever."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from truegold.pipeline.dedup.near import Comparer, Corpus, CorpusBuilder, Relation, confirm_links, find_links
from truegold.pipeline.dedup.near.arrays import Floats
from truegold.pipeline.dedup.near.embedding import add_proposed_links
from truegold.pipeline.engines.encoder import load_encoder
from truegold.verifiers import SetupError

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
    proposed = add_proposed_links(nothing, corpus, comparer, same_vectors, len(ITEMS), 5)
    assert (proposed.left < len(ITEMS)).all() and (proposed.right >= len(ITEMS)).all()
    same = confirm_links(proposed, corpus, comparer, 5).having(Relation.SAME_PROBLEM)
    assert list(zip(same.left.tolist(), same.right.tolist(), strict=True)) == [(0, 2)]


def test_links_that_are_known_are_not_proposed_twice():
    corpus = corpus_of(ITEMS + RECORDS)
    comparer = Comparer(corpus.features)
    links = find_links(corpus.features, comparer, split=np.array([0, 0, 1, 1, 1]), texts=5)
    joined = add_proposed_links(links, corpus, comparer, same_vectors, len(ITEMS), 5)
    codes = (joined.left << 32) | joined.right
    assert len(np.unique(codes)) == len(codes) >= len(links)


def test_an_encoder_that_is_not_there_is_named(tmp_path: Path):
    pytest.importorskip("transformers")
    with pytest.raises(SetupError, match="no-such-encoder"):
        load_encoder(str(tmp_path / "no-such-encoder"))
