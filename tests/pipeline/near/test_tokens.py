"""Texts cut by pieces give the tokens and formulas that cutting them whole gives, whatever stands between spaces."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from property_tests import examples

from truegold.pipeline.near import tokens
from truegold.pipeline.near.tokens import CLEANED, FORMULAS, TOKENS, Cutter, TextNumbers, lower_texts
from truegold.verifiers.written_numbers import NUMBER_WORDS

BITS = [
    *NUMBER_WORDS, "and", "a", "percent", "%", "\\%", "％", "5th", "3", "1,234", "1.5", "3/4", "/", "-", "tom's", "三",
    "分之", "二十", "苹", "$", "$x^2$", "\\frac{1}{2}", "\\[", "\\]", "?", ".", "ß", "\0", "\1", "\n",
]  # fmt: skip
TEXTS = st.lists(
    st.lists(st.tuples(st.sampled_from(BITS), st.sampled_from(["", " ", " ", "-", "  "])), max_size=9).map(
        lambda parts: "".join(bit + gap for bit, gap in parts)
    ),
    min_size=1,
    max_size=20,
)


def whole(texts: list[str], pattern: str) -> list[list[str]]:
    """All matches of each text, found in the whole of it."""
    series = lower_texts(pl.Series(texts, dtype=pl.String))
    for before, after in CLEANED:
        series = series.str.replace_all(before, after)
    matches: list[list[str]] = series.str.extract_all(pattern).to_list()
    return matches


def in_pieces(texts: list[str], rows: int) -> tuple[list[list[str]], list[list[str]]]:
    """Tokens and formulas of each text, from chunks of so many rows."""
    cutter = Cutter()
    names: list[str] = []
    forms: list[str] = []
    tokens: list[list[str]] = []
    formulas: list[list[str]] = []
    series = lower_texts(pl.Series(texts, dtype=pl.String))
    chunks = [series.slice(start, rows) for start in range(0, len(series), rows)]
    for several in (chunks[:2], chunks[2:]):
        for cut in cutter.cut(several) if several else ():
            names += cut.new_tokens
            forms += cut.new_formulas
            for into, texts_by_number, numbers, lengths in (
                (tokens, names, cut.tokens.tolist(), cut.lengths.tolist()),
                (formulas, forms, cut.formulas.tolist(), cut.formula_lengths.tolist()),
            ):
                for length in lengths:
                    into.append([texts_by_number[token] for token in numbers[:length]])
                    del numbers[:length]
    return tokens, formulas


@settings(max_examples=examples(150))
@given(texts=TEXTS, rows=st.integers(1, 7))
def test_pieces_give_the_tokens_and_formulas_of_whole_texts(texts: list[str], rows: int) -> None:
    assert in_pieces(texts, rows) == (whole(texts, TOKENS), whole(texts, FORMULAS))


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        (
            "Two hundred and five of 3 1/2 dozen, 5 % each.",
            ["two hundred and five", "of", "3 1/2", "dozen", "5 %", "each", "."],
        ),
        ("half a dozen", ["half a dozen"]),
        ("twenty-one a b", ["twenty-one", "a", "b"]),
        ("5\0% and", ["5", "and"]),
    ],
)
def test_a_token_may_go_over_a_space(text: str, tokens: list[str]) -> None:
    assert in_pieces([text], 1)[0] == [tokens]


def test_a_formula_of_a_long_text_is_bounded() -> None:
    text = "$" + "x+" * 200 + "$ and $x+1$"
    assert in_pieces([text, "$x+1$"], 2)[1] == whole([text, "$x+1$"], FORMULAS)


def test_forgetting_pieces_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"tom has {count} apples and {count % 7} pears." for count in range(60)]
    before = in_pieces(texts, 5)
    monkeypatch.setattr(tokens, "MAX_PIECES", 20)
    assert in_pieces(texts, 5) == before


@given(st.lists(st.lists(st.integers(0, 30), max_size=15), max_size=8))
def test_distinct_texts_are_numbered_in_the_order_in_which_they_come(batches: list[list[int]]) -> None:
    numbers, expected = TextNumbers(), dict[str, int]()
    for batch in batches:
        texts = [f"text {value}" for value in batch]
        assigned, new_texts = numbers.assign(pl.Series(texts, dtype=pl.String))
        known = len(expected)
        for text in texts:
            expected.setdefault(text, len(expected))
        assert assigned.tolist() == [expected[text] for text in texts]
        assert new_texts.to_list() == list(expected)[known:]
