"""What the rules say of their own texts, against a reading that shares nothing with them: sympy and arithmetic."""

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction

import sympy
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from property_tests import examples
from sympy.parsing.sympy_parser import implicit_multiplication_application, parse_expr, standard_transformations

from truegold.verifiers.audit import edits, rewrites
from truegold.verifiers.audit.made_answers import form_of, wrong_answer

WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
WRAPPERS = [
    r"\$\$(.*)\$\$",
    r"\$(.*)\$",
    r"\\\[(.*)\\\]",
    r"\\\((.*)\\\)",
    r"\\(?:boxed|text|mathbf)\{(.*)\}",
    r"\\displaystyle (.*)",
    r"(.*[^.])\.",
]
FRACTION = r"\\[dtc]?frac ?(?:\{([^{}]*)\}\{([^{}]*)\}|(\d)(\d))"
POINT = {
    name: sympy.Rational(prime, 99991) for name, prime in zip("xyan", (123457, 200003, 314159, 271829), strict=True)
}
"""No small polynomial has a root there."""

sizes = st.integers(-10_000_000, 10_000_000)
fractions_ = st.builds(Fraction, st.integers(-500, 500), st.integers(2, 400)).filter(lambda f: f.denominator > 1)
decimals = st.builds(
    lambda n, digits: f"{'-' if n < 0 else ''}{abs(n) // 10**digits}.{abs(n) % 10**digits:0{digits}}",
    sizes,
    st.integers(1, 4),
)


def latex(value: Fraction) -> str:
    return f"{'-' if value < 0 else ''}\\frac{{{abs(value.numerator)}}}{{{value.denominator}}}"


def unwrapped(text: str) -> str:
    while match := next((m for pattern in WRAPPERS if (m := re.fullmatch(pattern, text))), None):
        text = match[1]
    return text.strip()


def to_sympy(text: str) -> sympy.Expr:
    """One expression, read by rewriting it into what sympy reads."""
    text = unicodedata.normalize("NFKC", unwrapped(text)).replace("⁄", "/").replace("−", "-").replace("×", "*")
    text = "".join(str(int(char)) if char.isdigit() else char for char in text).lstrip("+")
    if text in WORDS:
        return sympy.Integer(WORDS.index(text))
    text = re.sub(r"(?<=\d)(?:\\,|\{,\}|,\\!|,| )(?=\d{3}(?!\d|/))", "", text)
    text = re.sub(r"(\d+) (\d+/\d+)$", r"(\1+\2)", text)
    text = re.sub(rf"(\d+){FRACTION}$", lambda m: f"({m[1]}+{m[2] or m[4]}/{m[3] or m[5]})", text)
    text = re.sub(r"(\d+)\.(\d*)\\overline\{(\d+)\}", repeating, text)
    text = re.sub(r"\\sqrt\[3\]\{(\d+)\}", r"((\1)**(1/3))", text)
    text = re.sub(r"\\sqrt\{(\d+)\}|√\(?(\d+)\)?", lambda m: f"(sqrt({m[1] or m[2]}))", text)
    text = text.replace("\\pi", "(pi)").replace("π", "(pi)")
    text = re.sub(FRACTION, lambda m: f"(({m[1] or m[3]})/({m[2] or m[4]}))", text)
    text = re.sub(r"\\times|\\cdot|·", "*", text)
    text = re.sub(r"\^\{([^{}]*)\}", r"**(\1)", text).replace("^", "**")
    text = re.sub(r"(?<=[a-z])(?=[a-z]\b)", "*", text) if "sqrt" not in text and "pi" not in text else text
    assert "\\" not in text and "{" not in text, text
    names = {**{name: sympy.Symbol(name) for name in POINT}, "i": sympy.I}
    return parse_expr(
        text, local_dict=names, transformations=(*standard_transformations, implicit_multiplication_application)
    )


def repeating(match: re.Match[str]) -> str:
    whole, head, period = match.groups()
    ending = Fraction(int(period), 10 ** len(head) * (10 ** len(period) - 1))
    return f"({Fraction(int(whole + head), 10 ** len(head)) + ending})"


def same(a: sympy.Expr, b: sympy.Expr) -> bool:
    difference = (sympy.nsimplify(a, rational=True) - sympy.nsimplify(b, rational=True)).subs(POINT)
    return bool(abs(sympy.N(difference, 40)) < sympy.Float("1e-25"))


def values(text: str) -> list[sympy.Expr]:
    """Every side of a chain of equalities, the name of the unknown and an approximation at its end aside."""
    sides = [side.strip() for side in unwrapped(text).split("\\approx")[0].split("=")]
    return [to_sympy(side) for side in sides if side != "x"]


def check_rewrites(gold: str) -> None:
    gold_value = to_sympy(gold)
    respelled = [variant for variant in rewrites(gold) if not variant.policy]
    assert respelled
    for variant in respelled:
        assert all(same(value, gold_value) for value in values(variant.text)), variant


MANY_VALUED = re.compile(r",|\bor\b|\band\b|\\pm|\\le|>|\[.*\]|\\text\{ to \}|=")


def check_edits(gold: str) -> None:
    gold_value = to_sympy(gold)
    single_valued = [
        variant
        for variant in edits(gold)
        if not variant.policy and not MANY_VALUED.search(variant.text.replace("\\sqrt[3]", ""))
    ]
    assert single_valued
    for variant in single_valued:
        assert not same(to_sympy(variant.text), gold_value), variant


@settings(max_examples=examples(25), deadline=None)
@given(sizes)
def test_integers_keep_their_value_under_rewrites_and_lose_it_under_edits(value: int) -> None:
    check_rewrites(str(value))
    check_edits(str(value))


@settings(max_examples=examples(25), deadline=None)
@given(fractions_)
def test_fractions_keep_their_value_under_rewrites_and_lose_it_under_edits(value: Fraction) -> None:
    check_rewrites(latex(value))
    check_edits(latex(value))


@settings(max_examples=examples(25), deadline=None)
@given(decimals)
def test_decimals_keep_their_value_under_rewrites_and_lose_it_under_edits(text: str) -> None:
    check_rewrites(text)
    check_edits(text)


@settings(max_examples=examples(25), deadline=None)
@given(st.integers(-60, 60), st.integers(2, 300), st.integers(1, 12), st.booleans())
def test_radicals_and_multiples_of_pi_keep_and_lose_their_value(top: int, radicand: int, bottom: int, pi: bool) -> None:
    symbol = "\\pi" if pi else f"\\sqrt{{{radicand}}}"
    assume(top and Fraction(top, bottom).denominator == bottom)
    sign, size = ("-" if top < 0 else ""), "" if abs(top) == 1 else str(abs(top))
    gold = f"{sign}\\frac{{{size}{symbol}}}{{{bottom}}}" if bottom > 1 else f"{sign}{size}{symbol}"
    assume(form_of(gold) is not None)
    check_rewrites(gold)
    check_edits(gold)


coefficients = st.integers(-9, 9).filter(bool)


@settings(max_examples=examples(25), deadline=None)
@given(
    st.lists(coefficients, min_size=2, max_size=4),
    st.sampled_from([["x^2", "x", ""], ["", "i"], ["", "\\sqrt{3}"], ["n", "", "a"], ["x^3", "y", "a", ""]]),
)
def test_sums_keep_and_lose_their_value(numbers: list[int], symbols: list[str]) -> None:
    parts = [
        f"{'+' if n > 0 else '-'}{abs(n) if abs(n) > 1 or not s else ''}{s}"
        for n, s in zip(numbers, symbols, strict=False)
    ]
    gold = "".join(parts).removeprefix("+")
    assume(len(parts) > 1)
    check_rewrites(gold)
    check_edits(gold)


distinct_integers = st.lists(st.integers(-99, 99), min_size=2, max_size=4, unique=True)


def members(text: str) -> set[int] | tuple[int, ...]:
    """A list, set, or tuple of whole numbers, read by its digits; a tuple keeps its order."""
    text = unicodedata.normalize("NFKC", text).replace("−", "-")
    numbers = tuple(map(int, re.findall(r"-?\d+", text)))
    return numbers if "(" in text.replace("\\(", "") else set(numbers)


@given(distinct_integers)
def test_lists_keep_their_members_under_rewrites_and_lose_them_under_edits(numbers: list[int]) -> None:
    for gold in (", ".join(map(str, numbers)), f"\\{{{', '.join(map(str, numbers))}\\}}"):
        assert all(members(variant.text) == set(numbers) for variant in rewrites(gold))
        assert all(members(variant.text) != set(numbers) for variant in edits(gold))


@given(distinct_integers)
def test_tuples_keep_their_members_in_order(numbers: list[int]) -> None:
    gold = f"({','.join(map(str, numbers))})"
    assert all(members(variant.text) == tuple(numbers) for variant in rewrites(gold))
    for variant in edits(gold):
        assert (
            "or" in variant.text
            or "]" in variant.text
            or "[" in variant.text
            or members(variant.text) != tuple(numbers)
        )


def contains(text: str, point: Fraction) -> bool:
    """Whether a union of intervals, or a condition on x, holds at a point."""
    text = re.sub(r"\\left|\\right|\\text|x ?\\in", "", text.strip("$.")).replace("−", "-")
    text = re.sub(r"\\boxed\{(.*)\}|\\\((.*)\\\)", lambda m: m[1] or m[2], text)
    text = re.sub(r"\\leq?(?:slant)?(?![a-z])", "≤", re.sub(r"\\geq?(?:slant)?(?![a-z])", "≥", text))
    text = re.sub(r"\\infty|∞", "10**9", re.sub(r"\\[, ]|\\quad|~|\s", "", text))
    if "x" in text:
        python = text.replace("≤", "<=").replace("≥", ">=")
        return bool(eval(re.sub(r"(?<![<>])=(?!=)", "==", python), {"x": point}))
    held = False
    for left, low, high, right in re.findall(r"([(\[])([^,()\[\]]+),([^,()\[\]]+)([)\]])", text):
        low_holds = eval(low) < point or (left == "[" and eval(low) == point)
        held |= low_holds and (point < eval(high) or (right == "]" and eval(high) == point))
    return held


def where(text: str, points: list[Fraction]) -> list[bool]:
    return [contains(text, point) for point in points]


@settings(deadline=None)
@given(st.integers(-20, 20), st.integers(1, 20), st.sampled_from(["[)", "(]", "[]", "-)", "-]", "(+", "[+"]))
def test_intervals_keep_their_points_under_rewrites_and_lose_some_under_edits(low: int, width: int, ends: str) -> None:
    left, right = ends.replace("-", "(").replace("+", ")")
    inner = [str(low), str(low + width)]
    inner[0] = "-\\infty" if ends[0] == "-" else inner[0]
    inner[1] = "\\infty" if ends[1] == "+" else inner[1]
    gold = f"{left}{','.join(inner)}{right}"
    points = [Fraction(n, 2) for n in range(2 * low - 5, 2 * (low + width) + 6)] + [Fraction(10**6), Fraction(-(10**6))]
    assert where(gold, points).count(True) >= 1
    for variant in rewrites(gold):
        assert where(variant.text, points) == where(gold, points), variant
    for variant in edits(gold):
        assert where(variant.text, points) != where(gold, points), variant


BRACKETS = st.lists(st.sampled_from(["()", "[)", "(]", "[]"]), min_size=2, max_size=3)


@settings(deadline=None)
@given(st.integers(-9, 9), st.lists(st.integers(1, 4), min_size=5, max_size=5), BRACKETS, st.booleans(), st.booleans())
def test_unions_keep_and_lose_points_and_their_wrong_answer_is_wrong_in_any_combination(
    low: int, steps: list[int], brackets: list[str], from_below: bool, meeting: bool
) -> None:
    ends, pieces = [low], list[str]()
    for step in steps:
        ends.append(ends[-1] + step)
    if meeting:  # The first two pieces meet in a point that neither has.
        brackets, ends = [brackets[0][0] + ")", "(" + brackets[1][1], *brackets[2:]], [*ends[:2], *ends[1:]]
    for index, (left, right) in enumerate(brackets):
        pieces.append(f"{left}{ends[2 * index]},{ends[2 * index + 1]}{right}")
    if from_below:
        pieces[0] = f"(-\\infty,{pieces[0].split(',')[1]}"
    gold = "\\cup".join(pieces)
    points = [Fraction(n, 2) for n in range(2 * low - 4, 2 * ends[-1] + 5)] + [Fraction(-(10**6))]
    held = where(gold, points)
    for variant in rewrites(gold):
        assert where(variant.text, points) == held, variant
    for variant in edits(gold):
        assert "\\cap" in variant.text or where(variant.text, points) != held, variant
    wrong = where(str(wrong_answer(gold)), points)
    assert [a or b for a, b in zip(held, wrong, strict=True)] != held
    assert [a and b for a, b in zip(held, wrong, strict=True)] != held


@settings(deadline=None)
@given(st.integers(-20, 20), st.sampled_from(["<", ">", "\\le", "\\ge", "\\leq", "\\geq"]), st.booleans())
def test_inequalities_keep_their_points_under_rewrites_and_lose_some_under_edits(
    bound: int, sign: str, turned: bool
) -> None:
    gold = f"{bound} {sign} x" if turned else f"x {sign} {bound}"
    points = [Fraction(n, 2) for n in range(2 * bound - 6, 2 * bound + 7)]
    for variant in rewrites(gold):
        assert where(variant.text, points) == where(gold, points), variant
    for variant in edits(gold):
        assert where(variant.text, points) != where(gold, points), variant


@given(st.integers(2, 10), st.integers(0, 10**6))
def test_numbers_in_a_base_keep_their_value(base: int, value: int) -> None:
    digits, rest = "", value
    while rest:
        digits, rest = f"{rest % base}{digits}", rest // base
    gold = f"{digits}_{{{base}}}"
    assume(form_of(gold) is not None)
    for variant in rewrites(gold):
        read = re.fullmatch(r"\(?(\d+)\)?(?:_\{?(\d+)\}?)?", variant.text)
        assert read is not None
        assert variant.rule == "base dropped" or int(read[1], int(read[2] or 10)) == value
    for variant in edits(gold):
        read = re.fullmatch(r"(\d+)_\{(\d+)\}", variant.text)
        assert read is not None
        assert int(read[1], int(read[2])) != value


MATRIX = re.compile(
    r"\\begin\{(?:[pb]?matrix\}|array\}\{(?:[^{}]|\{[^{}]*\})*\})(.*)\\end\{(?:[pb]?matrix|array)\}", re.DOTALL
)


def cells(text: str) -> list[list[str]]:
    match = MATRIX.search(text)
    assert match is not None
    return [[cell.strip() for cell in row.split("&")] for row in match[1].split("\\\\")]


@given(st.integers(1, 3), st.integers(1, 3), st.data())
def test_matrices_keep_their_cells_under_rewrites_and_lose_them_under_edits(
    height: int, width: int, data: st.DataObject
) -> None:
    rows = [[str(data.draw(st.integers(-9, 9))) for _ in range(width)] for _ in range(height)]
    gold = "\\begin{pmatrix} " + " \\\\ ".join(" & ".join(row) for row in rows) + " \\end{pmatrix}"
    assert all(cells(variant.text) == rows for variant in rewrites(gold))
    for variant in edits(gold):
        assert " or " in variant.text or cells(variant.text) != rows


def minutes(text: str) -> int:
    """The minutes after midnight of a time, where one without letters counts 24 hours."""
    match = re.search(r"(\d+):(\d\d)(?:\D*([ap])\.?m)?", text.replace("\\text", "").replace("\\,", "").lower())
    assert match is not None
    hour, minute, half = int(match[1]), int(match[2]), match[3]
    return (hour if half is None else hour % 12 + 12 * (half == "p")) * 60 + minute


@given(st.integers(1, 12), st.integers(0, 59), st.sampled_from(["a", "p"]))
def test_times_keep_their_minutes_under_rewrites_and_lose_them_under_edits(hour: int, minute: int, half: str) -> None:
    gold = f"{hour}:{minute:02}\\text{{ {half}.m.}}"
    assert all(minutes(variant.text) == minutes(gold) for variant in rewrites(gold))
    assert all(minutes(variant.text) != minutes(gold) for variant in edits(gold))


@given(st.integers(0, 60), st.integers(2, 60))
def test_congruences_keep_their_class_under_rewrites_and_lose_it_under_edits(residue: int, modulus: int) -> None:
    assume(residue < modulus)
    for variants, same in ((rewrites, True), (edits, False)):
        for variant in variants(f"x \\equiv {residue} \\pmod{{{modulus}}}"):
            numbers = list(map(int, re.findall(r"-?\d+", variant.text)))
            if not variant.policy:
                assert (numbers[1] == modulus and numbers[0] % modulus == residue) is same
