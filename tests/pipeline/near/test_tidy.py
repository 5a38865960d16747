"""Tidy texts: the same as normalising, respacing and trimming every one of them."""

from __future__ import annotations

import unicodedata

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from truegold.pipeline.dedup.near.tidy import tidy

ODD = "e\u0301 \u2126\u00a0\u3000\u2003\u1100\u1161\t\n\r\x85\x1caé苹，１"


@given(texts=st.lists(st.one_of(st.text(max_size=8), st.text(ODD, max_size=8)), max_size=6))
def test_tidying_is_normalising_and_trimming(texts: list[str]) -> None:
    series = pl.Series([text.encode("utf-8", "replace").decode() for text in texts], dtype=pl.String)
    found, untidy = tidy(series)
    expected = series.str.normalize("NFC").str.replace_all(r"\s+", " ").str.strip_chars()
    assert found.to_list() == expected.to_list()
    changed = [one != other for one, other in zip(series, expected, strict=True)]
    assert all(mark >= was for mark, was in zip(untidy.tolist(), changed, strict=True))


def test_plain_texts_are_left_alone() -> None:
    texts = ["Tom has 3 cars.", "小明有三个苹果，１个！", "naïve – “yes”"]
    found, untidy = tidy(pl.Series(texts))
    assert found.to_list() == texts and not untidy.any()
    assert all(unicodedata.is_normalized("NFC", text) for text in texts)
