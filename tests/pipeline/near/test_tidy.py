"""Tidy texts: the same as normalising, respacing and trimming every one of them."""

from __future__ import annotations

import sys
import unicodedata

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from truegold.pipeline.near.exact_copies import fold_case, tidy_prompts
from truegold.pipeline.tables.rows import normalise_for_id

ODD = "e\u0301 \u2126\u00a0\u3000\u2003\u1100\u1161\t\n\r\x85\x1c\x1faé苹，１"
TEXTS = st.lists(st.one_of(st.text(max_size=8), st.text(ODD, max_size=8)), max_size=6)


def encodable(texts: list[str]) -> list[str]:
    """The texts without lone surrogates, which no table can hold."""
    return [text.encode("utf-8", "replace").decode() for text in texts]


@given(texts=TEXTS)
def test_a_tidy_text_is_as_the_identity_of_a_row_has_it(texts: list[str]) -> None:
    texts = encodable(texts)
    tidied = tidy_prompts(pl.Series(texts, dtype=pl.String))
    expected = [normalise_for_id(text) for text in texts]
    assert tidied.texts.to_list() == expected
    differs = [text != tidy_text for text, tidy_text in zip(texts, expected, strict=True)]
    assert all(mark >= changed for mark, changed in zip(tidied.untidy.tolist(), differs, strict=True))


def test_plain_texts_are_left_alone() -> None:
    texts = ["Tom has 3 cars.", "小明有三个苹果，１个！", "naïve – “yes”"]
    tidied = tidy_prompts(pl.Series(texts))
    assert tidied.texts.to_list() == texts and not tidied.untidy.any()
    assert all(unicodedata.is_normalized("NFC", text) for text in texts)


def test_every_character_is_folded_as_python_folds_it() -> None:
    characters = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    folded = fold_case(pl.Series(characters).str.to_lowercase())
    differ = [
        character
        for character, fold in zip(characters, folded.to_list(), strict=True)
        if fold != character.casefold() and unicodedata.category(character) != "Cn"
    ]
    # It may be that polars knows letters of a later version of Unicode.
    assert all(character.lower() == character.casefold() == character for character in differ)


@given(texts=st.lists(st.text("aSßΣσςİıﬁΐ µ", max_size=8), max_size=6))
def test_texts_are_folded_as_python_folds_them(texts: list[str]) -> None:
    assert fold_case(pl.Series(texts, dtype=pl.String).str.to_lowercase()).to_list() == [
        text.casefold() for text in texts
    ]
