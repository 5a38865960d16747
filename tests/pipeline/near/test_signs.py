r"""Signs that mean something tell problems apart: `⌊x⌋` and `⌈x⌉`, `10⁵` and `105`; how a sign is written does not."""

from __future__ import annotations

import json

import polars as pl
import pytest
from numbered_rows import plain_row
from tables import rows

from truegold.pipeline.config.stages import DedupConfig
from truegold.pipeline.decontaminate.matches import find_leaks_in_file
from truegold.pipeline.dedup.stage import dedup
from truegold.pipeline.near.squashed import squash
from truegold.pipeline.problems import ProblemColumns
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.tables.rows import ROW_SCHEMA, read_rows, write_rows

OTHER_PROBLEMS = {
    "products of vectors": (
        r"For two nonzero vectors with $|\vec a\cdot\vec b| = 6$ in space, decide whether the angle is acute.",
        r"For two nonzero vectors with $|\vec a\times\vec b| = 6$ in space, decide whether the angle is acute.",
    ),
    "a difference": (
        "Points A, B, C and D lie on a line in this order. Is the value of AB - CD always less than 10 units?",
        "Points A, B, C and D lie on a line in this order. Is the value of AB CD always less than 10 units?",
    ),
    "a raised number": (
        "Consider the number 10⁵ and all of its divisors. Is the sum of those divisors an odd number or not?",
        "Consider the number 105 and all of its divisors. Is the sum of those divisors an odd number or not?",
    ),
    "dots between numbers": (
        "Evaluate the whole expression 2·3+4·5 by hand and say whether the outcome is a number below 30.",
        "Evaluate the whole expression 23+45 by hand and say whether the outcome is a number below 30.",
    ),
    "a second derivative": (
        "Let f be a smooth function with f''(1) = 3 on the whole real line. Must it be increasing near this point?",
        "Let f be a smooth function with f'(1) = 3 on the whole real line. Must it be increasing near this point?",
    ),
    "a Greek letter": (
        "Here a and α are two unequal numbers above zero. Is the square of α larger than the number 4 itself?",
        "Here a and α are two unequal numbers above zero. Is the square of a larger than the number 4 itself?",
    ),
    "a Greek letter in LaTeX": (
        r"Suppose that $\rho$ and $p$ differ and both are prime. Is the number $\rho + 7$ always an even number?",
        r"Suppose that $\rho$ and $p$ differ and both are prime. Is the number $p + 7$ always an even number?",
    ),
    "a ratio": (
        "Two numbers a and b are given with a:b equal to 12 exactly. Is it true that both are whole numbers?",
        "Two numbers a and b are given with ab equal to 12 exactly. Is it true that both are whole numbers?",
    ),
    "rounding down and up": (
        "How many real numbers x between 0 and 9 satisfy the equation ⌊x⌋ + ⌊2x⌋ = 14 in this interval?",
        "How many real numbers x between 0 and 9 satisfy the equation ⌈x⌉ + ⌈2x⌉ = 14 in this interval?",
    ),
    "a factorial": (
        "Let n be a positive whole number below 8. Is the last digit of n! always different from the digit 5?",
        "Let n be a positive whole number below 8. Is the last digit of n always different from the digit 5?",
    ),
    "a negation": (
        "Suppose the statement ~p is true while the statement q is false. Does it follow that q implies p?",
        "Suppose the statement p is true while the statement q is false. Does it follow that q implies p?",
    ),
    "a unit's prefix": (
        "A device draws 5 mW of power over a period of 2 hours. How much energy does it take in all this time?",
        "A device draws 5 MW of power over a period of 2 hours. How much energy does it take in all this time?",
    ),
    "and, or": (
        "The proposition p ∧ q is known to be true for two statements p and q. Must the statement p be true?",
        "The proposition p ∨ q is known to be true for two statements p and q. Must the statement p be true?",
    ),
    "less, more": (
        "Find how many whole numbers x with x > 3 there are among the whole numbers between 1 and 20 here.",
        "Find how many whole numbers x with x < 3 there are among the whole numbers between 1 and 20 here.",
    ),
    "a sum, a difference": (
        "For the two unknown numbers x and y it holds that x + y = 10. Is the number x larger than the number y?",
        "For the two unknown numbers x and y it holds that x - y = 10. Is the number x larger than the number y?",
    ),
    "absolute value": (
        "Let x be a real number for which |x - 2| = 5 holds. How many such real numbers are there in total?",
        "Let x be a real number for which x - 2 = 5 holds. How many such real numbers are there in total?",
    ),
    "union, intersection": (
        "The sets A and B have 5 and 8 elements and A ∪ B has 8 elements. Is A contained in the set B?",
        "The sets A and B have 5 and 8 elements and A ∩ B has 8 elements. Is A contained in the set B?",
    ),
    "a fraction": (
        "Consider the number 12/5 on the number line. Is it closer to the number 2 than to the number 100?",
        "Consider the number 125 on the number line. Is it closer to the number 2 than to the number 100?",
    ),
    "a raised number in markup": (
        "Consider the number 10<sup>6</sup> and all of its divisors. Is their sum an odd number or not an odd one?",
        "Consider the number 106 and all of its divisors. Is their sum an odd number or not an odd one?",
    ),
    "plus, minus, or plus alone": (
        "Take the two expressions 7 ± 3 and multiply what they give. Is the outcome larger than the number 39?",
        "Take the two expressions 7 + 3 and multiply what they give. Is the outcome larger than the number 39?",
    ),
}
PLAIN = (
    "Let x be a positive number with 2 × 3x ≤ 10^5 and f'(x) - 4 = ⌊x⌋ for a well-known function. What is its value?"
)
ONE_PROBLEM = {
    "full width": "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in PLAIN),
    "tags": PLAIN.replace("positive", "<b>positive</b>").replace("well-known", "<i>well-known</i>"),
    "a raised number in markup": PLAIN.replace("10^5", "10<sup>5</sup>"),
    "a raised number": PLAIN.replace("10^5", "10⁵"),
    "braces": PLAIN.replace("10^5", "10^{5}"),
    "LaTeX": PLAIN.replace("2 × 3x ≤ 10^5", r"$2\times 3x \leq 10^{5}$"),
    "another product": PLAIN.replace("×", r"\cdot"),
    "floors": PLAIN.replace("⌊x⌋", r"$\lfloor x \rfloor$"),
    "floors that grow": PLAIN.replace("⌊x⌋", r"$\left\lfloor x\right\rfloor$"),
    "a prime": PLAIN.replace("f'(x)", "f′(x)"),
    "a curly prime": PLAIN.replace("f'(x)", "f’(x)"),
    "a prime in LaTeX": PLAIN.replace("f'(x)", r"$f^{\prime}(x)$"),
    "a minus sign": PLAIN.replace(" - ", " − "),
    "a dash": PLAIN.replace(" - ", " – "),
    "a hyphen": PLAIN.replace("well-known", "well\u2010known"),
    "no hyphen": PLAIN.replace("well-known", "well known"),
    "a broken word": PLAIN.replace("positive", "posi-\ntive"),
    "look-alikes": PLAIN.replace("positive", "роsіtіvе"),
    "Greek look-alikes": PLAIN.replace("positive number", "pοsιτινe numβer".replace("β", "b")),
    "soft hyphens": PLAIN.replace("function", "func\u00adtion"),
    "quotes": PLAIN.replace("well-known", "“well-known”"),
    "no blanks around signs": PLAIN.replace(" ≤ ", "≤").replace(" = ", "="),
}


def squashed(text: str) -> str:
    return squash(pl.Series([text], dtype=pl.String)).decode().removesuffix("\0")


def leaks(tmp_path, item, text):
    """The kinds of leaks that a text is called."""
    for name, prompt in (("evals", item), ("train", text)):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"id": "1", "question": prompt}), encoding="utf-8")
    evals = {str(tmp_path / "evals.jsonl"): ProblemColumns()}
    find_leaks_in_file(tmp_path / "train.jsonl", evals, tmp_path, ProblemColumns(), NullProgress())
    return pl.read_parquet(tmp_path / "matches.parquet")["kind"].to_list()


def deduplicated(folder, prompts, golds):
    """How many rows stay, and how many flags there are."""
    rows = [{**plain_row(*row), "source_row": number} for number, row in enumerate(zip(prompts, golds, strict=True), 1)]
    write_rows(folder / "in.parquet", rows, ROW_SCHEMA)
    dedup({"rows": folder / "in.parquet"}, DedupConfig(), folder, NullProgress())
    return tuple(len(list(read_rows(folder / file))) for file in ("rows.parquet", "flags.parquet"))


@pytest.mark.parametrize("kind", OTHER_PROBLEMS)
def test_other_signs_are_another_problem(kind, tmp_path):
    left, right = OTHER_PROBLEMS[kind]
    assert squashed(left) != squashed(right)
    assert leaks(tmp_path, left, right) == []
    assert leaks(tmp_path, right, left) == []
    assert leaks(tmp_path, left, f"Solve this. {right} Think well.") == []
    assert deduplicated(tmp_path, (left, right), ("yes", "no")) == (2, 0)
    assert deduplicated(tmp_path, (left, right), ("yes", "yes")) == (2, 0)


@pytest.mark.parametrize("kind", ONE_PROBLEM)
def test_signs_in_another_layout_are_the_same_problem(kind, tmp_path):
    disguised = ONE_PROBLEM[kind]
    assert disguised != PLAIN
    assert squashed(disguised) == squashed(PLAIN)
    assert leaks(tmp_path, PLAIN, disguised)
    assert leaks(tmp_path, PLAIN, f"Solve this. {disguised} Think well.")
    assert deduplicated(tmp_path, (PLAIN, disguised), ("3", "3")) == (1, 0)
    assert deduplicated(tmp_path, (PLAIN, disguised), ("3", "5")) == (2, 2)


@rows(
    "left, right",
    [
        ("What is 2+3?", "What is 2+3=?"),
        ("What is 2 + 3 = ( )", "What is 2+3"),
        ("the x-axis", "the x axis"),
        ("3 x 4 cards", "3×4 cards"),
        ("3*4 cards", r"$3\cdot 4$ cards"),
        (r"$2\cdot x$", "2x"),
        ("x⁻¹²", "x^{-12}"),
        ("10₂", "10_2"),
        (r"$a\mid b$", "a | b"),
        (r"$p\land q$", "p ∧ q"),
        (r"$\neg p$", "~p"),
        ("f″(1)", "f''(1)"),
        ("ratio 3 : 4", "ratio 3：4"),
    ],
)
def test_ways_of_writing_a_sign(left, right):
    assert squashed(left) == squashed(right)


@rows(
    "left, right",
    [
        ("5!!", "5!"),
        ("x ∉ A", "x ∈ A"),
        ("x̄ = 1", "x = 1"),
        ("5 cm²", "5 cm"),
        ("sinα", "sin a"),
        ("2αx", "2ax"),
        ("10₂", "102"),
        ("2·3·4", "2·34"),
        ("f'''(x)", "f''(x)"),
    ],
)
def test_signs_that_are_no_layout(left, right):
    assert squashed(left) != squashed(right)


def test_accents_are_layout_for_leaks_alone(tmp_path):
    item = "Das ist ein schön langes Wort in einem langen Satz. Wie viele Buchstaben hat es wohl?"
    plain = item.replace("ö", "o")
    assert leaks(tmp_path, item, plain)
    assert deduplicated(tmp_path, (item, plain), ("5", "6")) == (2, 0)


def test_case_of_a_unit_counts_where_a_text_has_case(tmp_path):
    text = "A lamp draws 5 mW of power. How many hours does it take to draw twice as much energy as before?"
    assert leaks(tmp_path, text, text.upper()) == ["exact"]
    assert leaks(tmp_path, text, text.replace("mW", "MW")) == []
