"""Properties of `equivalent` on golds of every kind: reflexive, symmetric, deaf to respelling, alert to changes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from property_tests import examples

from truegold.verifiers import equivalent
from truegold.verifiers.audit import edits, rewrites

DIGITS = st.integers(1, 999)
SMALL = st.integers(2, 12)
integers = st.integers(-(10**9), 10**9).map(str)
fractions = st.builds(lambda a, b, sign: f"{sign}\\frac{{{a}}}{{{b}}}", DIGITS, SMALL, st.sampled_from(["", "-"]))
radicals = st.builds(lambda a, b: f"{a}\\sqrt{{{b}}}", SMALL, st.sampled_from([2, 3, 5, 6, 7, 10, 11]))
angles = st.builds(
    lambda a, b: f"\\frac{{{a}\\pi}}{{{b}}}", st.sampled_from([1, 5, 7, 11]), st.sampled_from([2, 3, 4, 6])
)
values = st.one_of(integers, fractions, radicals, angles)
polynomials = st.builds(lambda a, b, c: f"{a}x^2+{b}x-{c}", SMALL, SMALL, SMALL)
tuples = st.lists(values, min_size=2, max_size=4).map(lambda elements: f"({', '.join(elements)})")
lists = st.lists(st.integers(-50, 50), min_size=2, max_size=4, unique=True).map(
    lambda elements: ", ".join(map(str, elements))
)
sets = lists.map(lambda elements: f"\\{{{elements}\\}}")
intervals = st.builds(
    lambda low, width, left, right: f"{left}{low}, {low + width}{right}",
    st.integers(-20, 20), st.integers(1, 20), st.sampled_from("(["), st.sampled_from(")]"),
)  # fmt: skip
unions = st.builds(lambda a, b: f"(-\\infty, {a}] \\cup [{a + b}, \\infty)", st.integers(-20, 20), SMALL)
matrices = st.lists(st.tuples(SMALL, SMALL), min_size=2, max_size=2).map(
    lambda rows: "\\begin{pmatrix} " + " \\\\ ".join(f"{a} & {b}" for a, b in rows) + " \\end{pmatrix}"
)
measures = st.builds(lambda n, unit: f"{n}\\text{{ {unit}}}", DIGITS, st.sampled_from(["cm", "hours", "dollars"]))
relations = st.builds(
    lambda n, sign: f"x {sign} {n}", st.integers(-20, 20), st.sampled_from(["<", ">", "\\le", "\\ge"])
)
golds = st.one_of(values, polynomials, tuples, lists, sets, intervals, unions, matrices, measures, relations)

PIECES = [
    "\\frac", "\\sqrt", "{", "}", "(", ")", "[", "]", "\\{", "\\}", "|", "1", "2", "3.5", "x", "y", "\\pi", "+",
    "-", "*", "/", "^", "_", "=", "<", "\\le", ",", ";", "or", "and", "\\cup", "\\in", "\\mathbb{R}", "\\infty",
    "\\begin{pmatrix}", "\\end{pmatrix}", "\\\\", "&", "\\pm", "!", "%", "^\\circ", "\\sin", "\\log", "\\sum",
    "\\int", "dx", "\\text{", "cm", "no", "\\left", "\\right.", "\\boxed{", "$", "元", "或", "１", "√", "½", ":", ".",
    "...", "f(x)", "\\quad", "\x00", "\u200b", "\ud800", "1,234", "k\\in", "for", "where", "1e10", "'", "\\%", " ",
]  # fmt: skip
SOUP = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)


@given(golds)
def test_everything_equals_itself(gold: str) -> None:
    assert equivalent(gold, gold=gold).score == 1.0
    assert equivalent(f"  ${gold}$. ", gold=gold).score == 1.0


@given(golds, golds)
def test_neither_side_is_special_among_exact_answers(left: str, right: str) -> None:
    assert equivalent(right, gold=left).score == equivalent(left, gold=right).score


@settings(max_examples=examples(300))
@given(golds)
def test_a_respelling_changes_nothing(gold: str) -> None:
    for variant in rewrites(gold):
        if not variant.policy:
            verdict = equivalent(variant.text, gold=gold)
            assert verdict.score == 1.0, (variant, verdict)


@settings(max_examples=examples(300))
@given(golds)
def test_a_change_of_meaning_is_seen(gold: str) -> None:
    for variant in edits(gold):
        if not variant.policy:
            verdict = equivalent(variant.text, gold=gold)
            assert verdict.score != 1.0, (variant, verdict)


@settings(max_examples=examples(400))
@given(st.one_of(st.text(max_size=60), SOUP), st.one_of(st.text(max_size=60), SOUP))
def test_no_text_raises(gold: str, answer: str) -> None:
    verdict = equivalent(answer, gold=gold)
    assert verdict.score in (None, 0.0, 1.0)
    if gold.strip() and verdict.reason != "gold_missing":
        assert equivalent(gold, gold=gold).score == 1.0
