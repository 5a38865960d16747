"""What a text is compared by: stems, the question, quantities with their neighbours; the same however it comes in."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truegold.pipeline.near.features import ASKED, STRONG, FeatureBuilder, Features
from truegold.pipeline.near.tokens import TokenKind as Kind
from truegold.pipeline.near.tokens import formula_form, interpret, stem


def build(*texts: str) -> Features:
    builder = FeatureBuilder()
    builder.add(list(texts))
    return builder.finish()


def words(features: Features, row: int) -> set[str]:
    return {features.stems[code] for code in features.words[[row]].indices}


def asked(features: Features, row: int) -> set[str]:
    words_of_row = features.words[[row]]
    return {features.stems[code] for code in words_of_row.indices[words_of_row.data == ASKED]}


def numbers(features: Features, row: int) -> dict[str, float]:
    numbers_of_row = features.numbers[[row]]
    return {
        features.stems[code][1:]: round(float(value), 2)
        for code, value in zip(numbers_of_row.indices, numbers_of_row.data, strict=True)
    }


def test_a_problem_becomes_stems_its_question_and_its_quantities():
    features = build("Tom buys twenty-five apples at $1.50. He eats 3 of them. How many apples are left?")
    assert words(features, 0) == set("tom bui appl at he eat of them how many are left".split())
    assert asked(features, 0) == {"how", "many", "appl", "are", "left"}
    assert numbers(features, 0) == {"25": 1.0, "3/2": 1.0, "3": 1.0}
    assert int(features.tokens[0]) == 16


def test_a_quantity_given_twice_counts_twice():
    assert numbers(build("3 apples and three pears"), 0) == {"3": 2.0}


def test_without_a_question_mark_the_last_sentence_asks():
    assert asked(build("Ann has 3 pens. Find the sum of all digits."), 0) == set("find the sum of all digit".split())


def test_formulas_count_as_quantities_and_dollar_prices_do_not_become_formulas():
    features = build("Let $A$ be on $x^2 + y^2 = 4$.", "It costs $5 more than the other, which costs $7 today.")
    assert numbers(features, 0)["x^2+y^2=4"] == 1.0
    assert set(numbers(features, 1)) == {"5", "7"}


def test_the_same_formula_in_another_layout_is_the_same():
    assert formula_form(r"$\left( x^2 + 1 \right)$") == formula_form("$ x^2+1.$") == "x^2+1"
    assert formula_form("$x$") == formula_form("$5 and then$") == ""


def test_chinese_is_compared_by_pairs_of_characters():
    features = build("小明有三个苹果")
    assert words(features, 0) == {"小明", "明有", "个苹", "苹果"}
    assert numbers(features, 0) == {"3": 1.0}


@pytest.mark.parametrize(
    ("left", "right"), [("baking", "bakes"), ("stopped", "stops"), ("cookies", "cookie"), ("Tom's", "Tom")]
)
def test_forms_of_a_word_have_one_stem(left, right):
    assert stem(left.lower()) == stem(right.lower())


def test_kinds_of_tokens():
    kinds = {
        token: interpret(token).kind for token in ("?", ".", "the", "apple", "three", "3", "三", "苹", "+", "\\pi")
    }
    assert list(kinds.values()) == [
        Kind.QUESTION, Kind.PERIOD, Kind.STOP, Kind.WORD, Kind.NUMERAL, Kind.NUMERAL, Kind.NUMERAL, Kind.HAN, Kind.SIGN,
        Kind.WORD,
    ]  # fmt: skip


TEXTS = st.lists(
    st.one_of(
        st.text(max_size=60),
        st.sampled_from(
            ["Tom has 3 apples. How many?", "小明有三个苹果。有多少个？", "$x^2=4$ and $\\frac{1}{2}$", "", "?.!"]
        ),
    ),
    max_size=12,
)


@settings(max_examples=60)
@given(texts=TEXTS, cut=st.integers(0, 12))
def test_features_do_not_depend_on_how_texts_come_in(texts, cut):
    texts = [text.encode("utf-8", "replace").decode() for text in texts]
    whole = FeatureBuilder()
    whole.add(texts)
    parts = FeatureBuilder()
    parts.add(texts[:cut])
    parts.add(texts[cut:])
    left, right = whole.finish(), parts.finish()
    assert len(left) == len(right) == len(texts)
    for row in range(len(texts)):
        assert words(left, row) == words(right, row)
        assert asked(left, row) == asked(right, row)
        assert numbers(left, row) == numbers(right, row)
    assert np.array_equal(left.tokens, right.tokens)


def test_a_listener_hears_the_tokens_of_each_text_by_their_meaning():
    heard = []
    builder = FeatureBuilder()
    builder.add(["not heard"])
    builder.listen(lambda row, token, rows: heard.append((row.tolist(), token.tolist(), rows)))
    builder.add(["Three apples?", "3 apples"])
    builder.finish()
    ((rows, tokens, count),) = heard
    assert (rows, count) == ([1, 1, 2, 2], 2)
    assert tokens[:2] == tokens[2:]


def test_programs_are_told_from_problems():
    features = build(
        "Write it.\n```python\ndef f(x):\n```", "What is the class solution rate of f(x)?", "def is a word"
    )
    assert features.code.tolist() == [True, True, False]


def test_only_strong_quantities_have_contexts():
    assert STRONG > 0.3
    features = build("one apple", "two apples")
    assert np.diff(features.contexts.indptr).tolist() == [0, 1]
