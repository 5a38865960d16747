"""The rules as a catalogue: documented, deterministic, silent where they are not certain."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from tables import rows

from truegold.verifiers import verify
from truegold.verifiers.audit import edits, gaming_cases, rewrites
from truegold.verifiers.audit.gold_forms import Form
from truegold.verifiers.audit.made_answers import (
    EDITS,
    MAX_VARIANT_CHARS,
    REWRITES,
    Rule,
    form_of,
    layouts,
    make_variants,
    wrong_answer,
)

RULES = [(table, rule) for table in (REWRITES, EDITS) for rule in table]
GOLDS = {
    "5": "integer",
    "-0.50": "decimal",
    "3,\\!255": "integer",
    "\\dfrac{-3}{4}": "fraction",
    "\\frac12": "fraction",
    "-3/4": "fraction",
    "1\\frac{4}{5}": "mixed number",
    "24\\sqrt2": "radical",
    "\\frac{3\\sqrt{2}}{4}": "radical",
    "\\frac{3\\pi}{4}": "multiple of pi",
    "8 + 4\\sqrt{3}": "sum of constants",
    "1+274i": "complex number",
    "x^2 - 7x + 12": "polynomial",
    "\\left( 3, -4 \\right)": "tuple",
    "[0, 1)": "interval",
    "(-\\infty,3)\\cup(3,\\infty)": "union",
    "1, -2, \\frac{1}{3}": "list",
    "\\{1, 2\\}": "set",
    "1 \\pm \\sqrt{19}": "plus-minus",
    "\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}": "matrix",
    "50\\%": "percent",
    "\\$115,000": "money",
    "40^\\circ": "degrees",
    "45 \\text{ units}^2": "with unit",
    "2516_8": "base n",
    "x = 3": "equation",
    "i=3": "equation",
    "e = 5": "equation",
    "4:30\\text{ p.m.}": "time of day",
    "12:00 AM": "time of day",
    "x \\equiv 3 \\pmod{7}": "congruence",
    "5\\text{ cm}": "with unit",
    "y = 2x+1": "equation",
    "x \\ge 3": "inequality",
    "\\text{(D)}": "choice letter",
    "\\mbox{Saturday}": "word",
}
UNCERTAIN = [
    *("", " ", "1,234", "70,110", "x", "cat", "AB", "5 \\text{ or } 6", "5\\text{ million}", "9\\text{ a.m.}", "10:30"),
    *(
        "\\sqrt{4}",
        "\\frac{1}{0}",
        "1,1",
        "(2,1]",
        "[1,\\infty]",
        "(0,1]\\cup[1,2)",
        "2,\\sqrt{4}",
        "12_2",
        "007",
        "--5",
    ),
    *("\\sin x", "(x+1)(x-1)", "e^2", "i^2", "xx+x^2", "xy+yx", "\\sqrt{2}+\\sqrt{8}", "5" * 500, "\ud800", "5\x00"),
]


@cache
def all_forms() -> list[Form]:
    """The forms of all golds here, those of the rules' examples first."""
    golds = dict.fromkeys([*(rule.example[0] for _, rule in RULES), *GOLDS])
    return [form for gold in golds if (form := form_of(gold)) is not None]


@rows("table, rule", RULES)
def test_a_rule_has_a_description_and_makes_its_own_example(table: tuple[Rule, ...], rule: Rule) -> None:
    gold, text = rule.example
    assert rule.description.endswith(".") and "\n" not in rule.description
    assert text in [variant.text for variant in make_variants(table, gold) if variant.rule == rule.name]
    assert all(variant.policy == rule.policy for variant in make_variants(table, gold) if variant.rule == rule.name)


@rows("rule", [rule for _, rule in RULES])
def test_a_rule_is_for_known_kinds_of_gold_and_every_maker_makes_texts_of_some(rule: Rule) -> None:
    assert rule.kinds <= set(GOLDS.values())
    for maker in rule.makers:
        alone = replace(rule, makers=(maker,))
        assert any(list(alone.texts(form)) for form in all_forms())


@rows("gold, kind", GOLDS.items())
def test_the_form_of_a_gold_is_recognised_and_has_variants_of_both_sorts(gold: str, kind: str) -> None:
    form = form_of(gold)
    assert form is not None and form.kind == kind
    assert list(rewrites(gold)) and list(edits(gold)) and wrong_answer(gold)


@rows("gold", UNCERTAIN)
def test_what_could_be_read_in_two_ways_is_left_alone(gold: str) -> None:
    assert form_of(gold) is None
    assert not list(rewrites(gold)) and not list(edits(gold)) and wrong_answer(gold) is None


@rows("gold", GOLDS)
def test_variants_are_the_same_every_time_each_text_once_and_never_gold_itself(gold: str) -> None:
    for make in (rewrites, edits):
        texts = [variant.text for variant in make(gold)]
        assert texts == [variant.text for variant in make(gold)]
        assert len(set(texts)) == len(texts)
        assert gold.strip() not in texts
        assert all(text.strip() and len(text) <= MAX_VARIANT_CHARS for text in texts)


@rows("gold", GOLDS)
def test_no_text_is_both_a_rewrite_and_an_edit(gold: str) -> None:
    assert not {variant.text for variant in rewrites(gold)} & {variant.text for variant in edits(gold)}


def test_the_rules_of_policy_are_marked() -> None:
    policies = {rule.name for _, rule in RULES if rule.policy}
    approximations = {"percent of int", "/100", "rounded to 2 decimals", "2-decimal approximation", "pi=3.14"}
    assert approximations <= policies


def test_names_are_unique_over_both_sorts() -> None:
    assert len({rule.name for _, rule in RULES}) == len(RULES)


@rows("gold", GOLDS)
def test_gaming_cases_have_names_of_their_own_and_never_commit_to_gold_alone(gold: str) -> None:
    cases = list(gaming_cases(gold))
    assert len({case.name for case in cases}) == len(cases) > 30
    assert not {f"\\boxed{{{gold}}}", gold, f"The answer is {gold}."} & {case.response for case in cases}


@pytest.mark.parametrize("gold", ["42", "\\frac{1}{2}", "x^2+1", "(1,2)", "12 cm"])
def test_layouts_hold_the_right_answer_and_math_reads_them(gold: str) -> None:
    cases = list(layouts(gold))
    assert len(cases) > 5
    assert [case.name for case in cases if not verify(case.response, gold=gold).passed] == []


def test_a_gold_of_no_known_form_gets_the_cases_that_need_no_answer() -> None:
    names = {case.name for case in gaming_cases("the mitochondrion, mostly")}
    assert {"empty response", "words in a box", "order to a judge"} <= names
    assert "or in a box" not in names


def test_a_case_that_would_hold_a_gold_of_no_known_form_is_left_out() -> None:
    assert "anything in a box" not in {case.name for case in gaming_cases("any value")}
    assert "a colon" not in {case.name for case in gaming_cases(":")}


def test_a_problem_is_echoed_where_it_is_prose() -> None:
    (echo,) = [c for c in gaming_cases("5", "How many pens does Ann have?") if c.name == "problem echoed"]
    assert "How many pens" in echo.response
    assert "problem echoed" not in {case.name for case in gaming_cases("2", "1 + 1")}
