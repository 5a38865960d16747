"""Makes test answers for a verifier: other spellings, slightly wrong answers, hostile answers, and gaming responses.

    rewrites("5")      5.0, x=5, \\text{5}, ...           refusing one is a false negative
    edits("5")         6, -5, 5 \\text{ or } 6, 6=5, ...   accepting one is a false positive

The rules are the rows of `variant_rules.toml`; a rule that a template cannot express has a function (`MAKERS`). A rule
applies only to golds of its kind that meet its condition. Rules marked `policy` make answers that a verifier may accept
or refuse, such as 3.46 for 2 sqrt 3 or pi/6 for 30 degrees. A gold whose form is unknown (`form_reader.py`) has no
variants. Rules are deterministic.

A hostile case (`HOSTILE`) is a gold and an answer. Answers are built on demand, because some have megabytes. `expected`
is the required verdict, or `any`. A verdict without a score is always allowed. A hostile case checks that there is a
verdict in bounded time and memory (`contract.py`).

    name                gold            answer                    expected
    tower               5               9^{9^{9^{9}}}             no_match
    tiny difference     1/2^{99}        1/2^{98}                  no_match
    full-width digits   123             １２３                     match
    null bytes          5               5 and zero bytes          any

A gaming case (`gaming_cases`) is a whole response that tries to earn the reward without committing to one answer. Most
cases are made from gold and a wrong answer of the same form. A gold whose form is unknown has only the other cases.

    many boxes           \\boxed{4}, \\boxed{5}, \\boxed{6}
    or in a box          \\boxed{5 \\text{ or } 6}
    answer in thinking   <think>\\boxed{5}</think> I am not sure.

Layouts are whole responses with the right answer in the style of chat models (a courtesy at the end, a tag, a table). A
verifier may refuse some of them as its policy.

A maker takes the form of a gold and returns an answer, a list of answers, or None if it cannot make any. A condition
says whether a rule applies to a form:

    MAKERS["x10"](form_of("180"))                        "1800"
    CONDITIONS["plus sign"](form_of("180"))              True: the value is positive
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from importlib.resources import files
from operator import attrgetter
from typing import Any, Literal, TypeAlias, TypedDict

import truegold.verifiers.audit.gold_forms as forms
from truegold.verifiers.audit.form_reader import CLOSE, form_of
from truegold.verifiers.audit.gold_forms import Form, Irrational, Quantity, Rational, neighbour

Maker = Callable[[Any], object]
"""A function that takes a form and returns one text, a list of texts, or None."""

_FULL_WIDTH = str.maketrans("0123456789-.", "０１２３４５６７８９－．")
_ARABIC = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")
_VULGAR_FRACTIONS = {(1, 2): "½", (1, 3): "⅓", (2, 3): "⅔", (1, 4): "¼", (3, 4): "¾", (1, 5): "⅕", (1, 8): "⅛"}
_COORDINATES = {2: ("(x,y)=", "(x, y) = "), 3: ("(x,y,z)=", "(x, y, z) = ")}
_OTHER_SIGNS = {"<=": (r"\leq", "≤", r"\leqslant"), ">=": (r"\geq", "≥", r"\geqslant")}
_TURNED = str.maketrans("<>", "><")
_WITH_OR_WITHOUT_BOUND = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
_OTHER_BRACKET = {"(": "[", "[": "(", ")": "]", "]": ")"}
_HALF_DAY = 12


def _has_plain_digits(form: forms.Rational) -> bool:
    return re.fullmatch(r"[\d.-]+", form.text) is not None


def _is_whole_multiple(form: forms.Irrational) -> bool:
    return form.coefficient.denominator == 1 and abs(form.coefficient) > 1


def _differ(a: forms.Scalar, b: forms.Scalar) -> bool:
    return abs(a.approx - b.approx) > CLOSE * max(abs(a.approx), abs(b.approx))


def _with_unicode_symbols(form: forms.Irrational | forms.Sum) -> list[str]:
    text = re.sub(r"\\sqrt(?:\{(\d+)\}|(\d))", lambda match: f"√{match[1] or match[2]}", form.text)
    text = text.replace("\\pi", "π")
    return [] if "frac" in text else [text, re.sub(r"√(\d+)", r"√(\1)", text)]


def _with_chinese_punctuation(form: forms.Pair | forms.Collection) -> str:
    inner = "，".join(map(str, form.entries))
    if isinstance(form, forms.Pair):
        return f"（{inner}）"
    return f"{{{inner}}}" if form.kind == "set" and "\\" not in inner else inner


def _convert_unit(form: forms.Quantity) -> str | None:
    if form.unit not in forms.CONVERSIONS:
        return None
    unit, factor = forms.CONVERSIONS[form.unit]
    return f"{forms.latex(form.amount.value * factor**form.power)}\\text{{ {unit}}}{form.exponent}"


def _spell_money(form: forms.Quantity) -> list[str]:
    value = form.amount.value
    texts = [f"\\${form.bare}", f"{form.bare}\\text{{ dollars}}", f"{form.bare} dollars", f"USD {form.bare}"]
    if (value * 100).denominator == 1:
        texts.append(f"\\${forms.fixed(value, 2)}")
    if value.denominator == 1 and value >= 1000:
        texts.append(f"\\${int(value):,}")
    return texts


def _show_last_step(form: forms.Rational) -> list[str]:
    """Return the gold as the result of a computation: `6 \\cdot 2=12`."""
    texts = []
    if form.kind == "integer" and form.value > 0:
        size = int(form.value)
        factor = next((n for n in (6, 5, 7, 3, 2) if size > n and size % n == 0), None)
        texts = [f"{factor} \\cdot {size // factor}={form.text}"] if factor else []
    return [*texts, f"{forms.latex(form.value - 1)}+1={form.text}"]


def _spell_out(form: forms.Rational) -> list[str]:
    words: list[str] = forms.WORDS["numerals"]
    return [f"\\text{{{words[int(form.value)]}}}", words[int(form.value)]] if 0 <= form.value < len(words) else []


def _group_digits(separator: str) -> Maker:
    return lambda form: f"{int(form.value):,}".replace(",", separator) if abs(form.value) >= 1000 else None


def _spell_scientific(form: forms.Rational) -> list[str]:
    exponent = len(str(abs(form.value))) - 1
    if (short := forms.exact_decimal(form.value / 10**exponent)) is None or abs(form.value) < 10_000:
        return []
    return [*(f"{short} {times} 10^{{{exponent}}}" for times in ("\\times", "\\cdot")), f"{short}e{exponent}"]


def _spell_mixed(form: forms.Rational) -> list[str]:
    whole, rest = divmod(abs(form.value.numerator), form.value.denominator)
    if not whole or not rest:
        return []
    start, bottom = f"{forms.sign(form.value)}{whole}", form.value.denominator
    # `2 345/7` may be read as the number 2345 with a blank, divided by 7.
    plain = [] if len(str(rest)) == 3 else [f"{start} {rest}/{bottom}"]
    return [start + forms.fraction(rest, bottom), *plain]


def _move_sign_inside(form: forms.Rational) -> list[str]:
    top, bottom = abs(form.value.numerator), form.value.denominator
    return [forms.fraction(-top, bottom), forms.fraction(top, -bottom), f"-{top}/{bottom}"] if form.value < 0 else []


def _append_approximation(form: forms.Rational | forms.Irrational) -> str | None:
    is_exact = isinstance(form, forms.Rational) and forms.exact_decimal(form.value) is not None
    return None if is_exact else f"{form.text} \\approx {form.approx:.3f}"


def _spell_ascii(form: forms.Irrational) -> str:
    symbol = "pi" if form.radicand is None else f"sqrt({form.radicand})"
    product = f"{form.coefficient.numerator}*{symbol}".removeprefix("1*").replace("-1*", "-")
    return product if form.coefficient.denominator == 1 else f"{product}/{form.coefficient.denominator}"


def _split_coefficient(form: forms.Sum) -> str | None:
    (coefficient, symbol), *rest = form.terms
    return forms.terms_sum([(coefficient - 1, symbol), (1, symbol), *rest]) if coefficient > 1 else None


def _take_out_two(form: forms.Sum) -> str | None:
    if len(form.terms) < 2 or any(coefficient % 2 for coefficient, _ in form.terms):
        return None
    return f"2({forms.terms_sum((coefficient // 2, symbol) for coefficient, symbol in form.terms)})"


def _spell_starred(form: forms.Sum) -> str | None:
    if any(symbol[1:2] not in {"", "^"} or len(symbol) > 3 for _, symbol in form.terms):
        return None
    stars = [(size, "*" if symbol and abs(size) > 1 else "", symbol.replace("^", "**")) for size, symbol in form.terms]
    return forms.terms_sum((size, star + power) for size, star, power in stars)


def _respell_entries(form: forms.Pair) -> list[str]:
    with_slashes = forms.point(entry.value if isinstance(entry, forms.Rational) else entry for entry in form.entries)
    decimals = [forms.exact_decimal(e.value) if isinstance(e, forms.Rational) else str(e) for e in form.entries]
    return [with_slashes, forms.point(decimals, ", ")] if all(decimals) else [with_slashes]


def _state_condition(form: forms.Interval) -> str | None:
    """Return the condition on x for the interval: [0,1) -> `0 \\le x < 1`."""
    relation, turned = ("<", ">") if form.left == "(" else ("\\le", "\\ge")
    bound = f"x {'<' if form.right == ')' else forms.SIGNS['<=']} {form.high}"
    if form.low and form.high:
        return f"{form.low} {relation} {bound}"
    if form.low:
        return f"x {turned} {form.low}"
    return bound if form.high else None


def _state_solutions(form: forms.Inequality) -> str:
    """Return the interval of solutions of an inequality."""
    is_closed = "=" in form.relation
    if form.relation[0] == ">":
        return f"{'[' if is_closed else '('}{form.bound},\\infty)"
    return f"(-\\infty,{form.bound}{']' if is_closed else ')'}"


def _join_with_and(form: forms.Collection) -> list[str]:
    *most, last = map(str, form.entries)
    return [f"{', '.join(most)} \\text{{ and }} {last}", f"{', '.join(most)} and {last}"]


def _change_brackets(form: forms.MatrixForm) -> list[str]:
    other = "bmatrix" if form.environment == "pmatrix" else "pmatrix"
    bare = form.text.replace(f"{{{form.environment}}}", "{matrix}")
    return [form.text.replace(form.environment, other), f"\\left({bare}\\right)"]


def _array(rows: Iterable[Iterable[object]], columns: str, brackets: str) -> str:
    """Return a matrix as a LaTeX array in brackets. columns: its column specification, such as `cc`."""
    return f"\\left{brackets[0]}\\begin{{array}}{{{columns}}} {forms.rows_of(rows)} \\end{{array}}\\right{brackets[1]}"


def _as_arrays(form: forms.MatrixForm) -> list[str]:
    width, brackets = len(form.rows[0]), "()" if form.environment == "pmatrix" else "[]"
    columns = ("c" * width, "r" * width, "|".join("c" * width), f"@{{}}{'l' * width}@{{}}", f"*{{{width}}}{{c}}")
    return [_array(form.rows, each, brackets) for each in columns]


def _as_array_with_other_entry(form: forms.MatrixForm) -> str:
    (first, *row), *rows = form.rows
    return _array([[forms.shift(first), *row], *rows], "c" * (len(row) + 1), "()")


def _spell_time(form: forms.ClockForm) -> list[str]:
    big, small = form.half.upper() + "M", f"{form.half}.m."
    endings = (f" {big}", f" {big.lower()}", f"\\text{{ {big}}}", f" {small}", f"\\,\\text{{{small}}}")
    return [form.digits + ending for ending in endings]


def _spell_class(form: forms.Congruence) -> list[str]:
    endings = (r"\mod <m>", r"\ (\text{mod } <m>)", r"\bmod <m>", "(mod <m>)")
    start = f"{form.variable} \\equiv {form.residue}"
    return [f"{start} {ending.replace('<m>', str(form.modulus))}" for ending in endings]


def _with_constant_raised(form: forms.Sum) -> str:
    constants = [coefficient for coefficient, symbol in form.terms if not symbol]
    others = [(coefficient, symbol) for coefficient, symbol in form.terms if symbol]
    return forms.terms_sum([*others, ((constants[0] if constants else 0) + 1, "")])


def _with_last_sign_turned(form: forms.Sum) -> str | None:
    *most, (coefficient, symbol) = form.terms
    return forms.terms_sum([*most, (-coefficient, symbol)]) if most else None


def _with_an_end_moved(form: forms.Interval) -> str | None:
    if form.low is not None:
        return f"{form.left}{forms.move(form.low, -1)},{form.high_text}{form.right}"
    return None if form.high is None else f"{form.left}-\\infty,{forms.move(form.high, 1)}{form.right}"


def _with_largest_shifted(form: forms.Collection) -> str | None:
    entries = sorted(form.entries, key=lambda entry: entry.approx)
    return forms.collection(form.kind, [*entries[:-1], forms.shift(entries[-1])]) if entries[-1].approx > 0 else None


def _with_rows_swapped(form: forms.MatrixForm) -> str | None:
    if len(form.rows) > 1 and any(_differ(a, b) for a, b in zip(form.rows[0], form.rows[1], strict=True)):
        return forms.matrix(form.environment, [form.rows[1], form.rows[0], *form.rows[2:]])
    return None


def _transpose(form: forms.MatrixForm) -> str | None:
    """Return the transposed matrix, or None if the matrix is symmetric or not square."""
    columns = list(zip(*form.rows, strict=True))
    if len(columns) != len(form.rows):
        return None
    pairs = [pair for row, column in zip(form.rows, columns, strict=True) for pair in zip(row, column, strict=True)]
    return forms.matrix(form.environment, columns) if any(_differ(a, b) for a, b in pairs) else None


def _with_other_variable(form: forms.Equation) -> str | None:
    variable = "k" if form.variable != "k" else "x"
    return None if isinstance(form.right, forms.Sum) else f"{variable}={form.right}"


def _relate(form: forms.Inequality, sign_of_relation: str) -> str:
    return f"{form.variable} {sign_of_relation} {form.bound}"


def _negate(form: forms.Rational | forms.Irrational | forms.Sum) -> str | None:
    if isinstance(form, forms.Sum):
        return forms.terms_sum((-coefficient, symbol) for coefficient, symbol in form.terms)
    if isinstance(form, forms.Irrational):
        return forms.surd(-form.coefficient, form.symbol)
    return form.spell(-form.value) if form.value else None


def _swap_digits(form: forms.Rational) -> str | None:
    """Return the number with its first two digits exchanged, or None if they are equal or the second is 0."""
    digits = str(abs(form.value))
    if len(digits) < 2 or digits[1] in {"0", digits[0]}:
        return None
    return f"{forms.sign(form.value)}{digits[1]}{digits[0]}{digits[2:]}"


def _multiply_parts(form: forms.Rational) -> str:
    whole, rest = divmod(abs(form.value), 1)
    return f"{forms.sign(form.value)}{whole} \\cdot {forms.latex(rest)}"


def _with_other_unit(form: forms.Quantity) -> str | None:
    if form.kind == "money":
        return f"{form.bare}\\text{{ euros}}"
    unit, _ = forms.CONVERSIONS.get(form.unit, (None, 0))
    return f"{form.bare}\\text{{ {unit}}}{form.exponent}" if unit else None


def _with_other_last_digit(form: forms.BaseForm) -> str | None:
    digit = (int(form.digits[-1]) + 1) % form.base
    if digit >= 10 or (not digit and len(form.digits) == 1):
        return None
    return f"{form.digits[:-1]}{digit}_{{{form.base}}}"


def _with_equal_ratio(form: forms.ClockForm) -> str | None:
    """Return another time with the same ratio of hour and minutes, which a reader of ratios takes for equal."""
    if form.minute == 0:
        return form.spell(form.hour % _HALF_DAY + 1, 0, form.half)
    if form.hour % 2 == 0 and form.minute % 2 == 0:
        return form.spell(form.hour // 2, form.minute // 2, form.half)
    return form.spell(2 * form.hour, 2 * form.minute, form.half) if form.hour <= 6 and form.minute < 30 else None


def _approximate(form: forms.Irrational | forms.Sum) -> str | None:
    values = {"": 1.0, "\\pi": math.pi}
    if isinstance(form, forms.Irrational):
        value = form.approx
    else:
        terms = [(size, values.get(symbol) or math.sqrt(int(symbol[6:-1]))) for size, symbol in form.terms]
        value = sum(size * factor for size, factor in terms)
    return f"{value:.2f}" if abs(value) < 1e12 else None


def _with_coarse_pi(form: forms.Irrational) -> str:
    value = form.coefficient * Fraction(314, 100)
    is_short = (value * 10_000).denominator == 1
    return forms.fixed(value, 4).rstrip("0").rstrip(".") if is_short else f"{float(value):.2f}"


MAKERS: dict[str, Maker] = {
    # Rewrites.
    "no blanks": lambda form: re.sub(r"(\\[a-zA-Z]+)?\s+", lambda m: f"{m[1]} " if m[1] else "", form.text),
    "unicode sqrt/pi": _with_unicode_symbols,
    "unicode fraction": lambda form: _VULGAR_FRACTIONS.get(form.value.as_integer_ratio()),
    "full-width digits": lambda form: form.text.translate(_FULL_WIDTH) if _has_plain_digits(form) else None,
    "arabic-indic digits": lambda form: form.text.translate(_ARABIC) if form.text.isdigit() else None,
    "chinese punctuation": _with_chinese_punctuation,
    "unit spelling": lambda f: None if " " in f.unit else f"{f.bare}\\,\\mathrm{{{f.unit}}}{f.exponent}",
    "unit conversion": _convert_unit,
    "degrees as radians": lambda form: forms.surd(form.amount.value / 180, r"\pi"),
    "money spelling": _spell_money,
    "percent as fraction": lambda f: [
        text for spell in (forms.latex, forms.exact_decimal) if (text := spell(f.amount.value / 100))
    ],
    "base spelling": lambda form: [
        *([f"{form.digits}_{form.base}"] if form.base < 10 else []),
        f"{form.digits}_{{{form.base}}}",
        f"({form.digits})_{{{form.base}}}",
    ],
    "base ten": lambda form: int(form.digits, form.base),
    "equality chain": _show_last_step,
    "spelled out": _spell_out,
    "thousands comma": _group_digits(","),
    "{,} sep": _group_digits("{,}"),
    r",\! sep": _group_digits(r",\!"),
    "thin space sep": _group_digits(r"\,"),
    "blank sep": _group_digits(" "),
    "scientific": _spell_scientific,
    "leading zero dropped": lambda form: [
        re.sub(r"^(-?)0\.", r"\1.", form.text),
        re.sub(r"^(-?)\.", r"\g<1>0.", form.text),
    ],
    "decimal as fraction": str,
    "slash->frac": str,
    "exact decimal": lambda form: forms.exact_decimal(form.value),
    "repeating decimal": lambda form: forms.repeating(form.value),
    "unreduced": lambda form: [
        forms.sign(form.value) + forms.fraction(abs(form.value.numerator) * factor, form.value.denominator * factor)
        for factor in (2, 3)
    ],
    "short frac": lambda form: [re.sub(r"\{(\d)\}\{(\d)\}", digits, str(form)) for digits in (r"\1\2", r" \1\2")],
    "sign inside": _move_sign_inside,
    "mixed number": _spell_mixed,
    "approximation appended": _append_approximation,
    "fraction factored": lambda form: [forms.latex(form.coefficient) + form.symbol, str(form)],
    "under root": lambda form: forms.sign(form.coefficient) + forms.root(int(form.coefficient) ** 2 * form.radicand),
    "half power": lambda form: f"{form.coefficient} \\cdot {form.radicand}^{{1/2}}".removeprefix("1 \\cdot "),
    "ascii": _spell_ascii,
    "term reorder": lambda form: [forms.terms_sum(form.terms[::-1]), forms.terms_sum((*form.terms[1:], form.terms[0]))],
    "split coefficient": _split_coefficient,
    "common factor": _take_out_two,
    "braced power": lambda form: re.sub(r"\^([23])", r"^{\1}", str(form)),
    "ascii product": _spell_starred,
    "entries respelled": _respell_entries,
    "named entries": lambda form: [name + form.text for name in _COORDINATES.get(len(form.entries), ())],
    "x in": lambda form: f"x\\in{form.text}" if form.text[0] in "([" else None,
    "as inequality": _state_condition,
    "union reorder": lambda form: r" \cup ".join(form.pieces[::-1]),
    "unicode union": lambda form: "∪".join(form.pieces).replace(r"\infty", "∞"),
    "list reorder": lambda form: forms.collection(form.kind, form.entries[::-1]),
    "as set": lambda form: forms.collection("set" if form.kind == "list" else "list", form.entries),
    "and-joined": _join_with_and,
    "solutions joined by or": lambda form: [
        joint.join(f"x={entry}" for entry in form.entries) for joint in (r" \text{ or } ", ", ")
    ],
    "bmatrix": _change_brackets,
    "matrix respelled": lambda form: forms.matrix(form.environment, form.rows),
    "all on one side": lambda f: (
        forms.terms_sum([(1, f.variable), *((-size, symbol) for size, symbol in f.right.terms)]) + "=0"
    ),
    "inequality turned": lambda form: f"{form.bound} {forms.SIGNS[form.relation.translate(_TURNED)]} {form.variable}",
    "inequality spelling": lambda form: [_relate(form, spelling) for spelling in _OTHER_SIGNS.get(form.relation, ())],
    "as interval": _state_solutions,
    "lower-case letter": lambda form: form.word.lower(),
    "word markup": lambda form: None if " " in form.word else f"\\mathrm{{{form.word}}}",
    "word case": lambda form: [form.word[0].upper() + form.word[1:], f"\\text{{{form.word.lower()}}}"],
    "time spelling": _spell_time,
    "24-hour time": lambda form: f"{form.hour % _HALF_DAY + _HALF_DAY}:{form.minute:02}" if form.half == "p" else None,
    "array": _as_arrays,
    "other representative": lambda form: [
        form.spell(form.residue + form.modulus, form.modulus),
        form.spell(form.residue - form.modulus, form.modulus),
    ],
    "congruence spelling": _spell_class,
    # Edits of parts.
    "range around": lambda form: [
        f"[{form.value - 1},{form.value + 1}]",
        f"{form.value - 1} \\text{{ to }} {form.value + 1}",
    ],
    "expr constant+1": _with_constant_raised,
    "expr inner sign": _with_last_sign_turned,
    "term dropped": lambda form: forms.terms_sum(form.terms[:-1]) if len(form.terms) > 1 else None,
    "tuple order swapped": lambda form: forms.point([form.entries[1], form.entries[0], *form.entries[2:]], ", "),
    "tuple entry+1": lambda form: forms.point([*form.entries[:-1], forms.shift(form.entries[-1])], ", "),
    "tuple entry dropped": lambda form: [
        forms.point(rest) for rest in (form.entries[:-1], [*form.entries, 0]) if len(rest) > 1
    ],
    "open/closed flip left": lambda form: f"{_OTHER_BRACKET[form.left]}{form.low},{form.high_text}{form.right}",
    "open/closed flip right": lambda form: f"{form.left}{form.low_text},{form.high}{_OTHER_BRACKET[form.right]}",
    "open/closed flip of a pair": lambda form: [
        f"[{forms.point(form.entries)[1:]}",
        f"{forms.point(form.entries)[:-1]}]",
    ],
    "endpoint": _with_an_end_moved,
    "drop one piece": lambda form: [" \\cup ".join(form.pieces[:-1]), " \\cup ".join(form.pieces[1:])],
    "intersection": lambda form: " \\cap ".join(form.pieces),
    "drop element": lambda form: [forms.collection(form.kind, rest) for rest in (form.entries[:-1], form.entries[1:])],
    "element+1": _with_largest_shifted,
    "other offset": lambda form: form.with_offset(forms.shift(form.offset)) if form.offset.approx > 0 else None,
    "matrix rows swapped": _with_rows_swapped,
    "matrix transposed": _transpose,
    "other variable": _with_other_variable,
    "strict/non-strict": lambda form: _relate(form, forms.SIGNS[_WITH_OR_WITHOUT_BOUND[form.relation]]),
    "inequality reversed": lambda form: _relate(form, forms.SIGNS[form.relation.translate(_TURNED)]),
    "other bound": lambda form: f"{form.variable} {forms.SIGNS[form.relation]} {forms.shift(form.bound)}",
    # Edits of the value.
    "-1": lambda form: form.spell(form.value - 1),
    "+0.5": lambda form: forms.exact_decimal(form.value + Fraction(1, 2)),
    "last decimal": lambda form: forms.fixed(form.value + Fraction(1, 10**form.decimals), form.decimals),
    "denominator+1": lambda form: (
        forms.sign(form.value) + forms.fraction(abs(form.value.numerator), form.value.denominator + 1)
    ),
    "inverted": lambda form: forms.latex(1 / form.value) if abs(form.value) not in {0, 1} else None,
    "sign flip": _negate,
    "x10": lambda form: form.spell(form.value * 10),
    "digits swapped": _swap_digits,
    "mixed number as product": _multiply_parts,
    "radicand+1": lambda form: forms.surd(form.coefficient, forms.root(form.radicand + 1)),
    "root dropped": lambda form: forms.latex(form.coefficient * form.radicand),
    "cube root": lambda form: forms.surd(form.coefficient, f"\\sqrt[3]{{{form.radicand}}}"),
    "coefficient+1": lambda form: forms.surd(form.coefficient + 1, form.symbol) if form.coefficient != -1 else None,
    "pi dropped": lambda form: forms.latex(form.coefficient),
    "wrong unit": _with_other_unit,
    "wrong power of the unit": lambda form: f"{form.bare}\\text{{ {form.unit}}}^{form.power + 1}",
    "other base": lambda form: f"{form.digits}_{{{form.base + 1}}}" if len(form.digits) > 1 else None,
    "last digit": _with_other_last_digit,
    "other choice letter": lambda form: f"({chr(ord(form.word) + 1)})",
    "/100": lambda form: forms.sign(form.value) + forms.fraction(abs(form.value), 100),
    "rounded to 2 decimals": lambda form: forms.fixed(form.value, 2) if (form.value * 100).denominator != 1 else None,
    "2-decimal approximation": _approximate,
    "pi=3.14": _with_coarse_pi,
    "other half of the day": lambda form: form.spell(form.hour, form.minute, "a" if form.half == "p" else "p"),
    "time of equal ratio": _with_equal_ratio,
    "unlike unit": lambda form: [f"{form.bare}\\text{{ {unit}}}" for unit in forms.UNLIKE.get(form.unit, ())],
    "constant for an unknown": lambda form: {"e": "e=2.718", "i": r"i=\sqrt{-1}"}.get(form.variable),
    "array entry+1": _as_array_with_other_entry,
    "other modulus": lambda form: form.spell(form.residue, form.modulus + 1),
}

CONDITIONS: dict[str, Callable[[Any], object]] = {
    "named entries": lambda form: not form.is_rising,
    "tuple order swapped": lambda form: _differ(*form.entries[:2]),
    "unlike unit": lambda form: form.amount.value and form.power == 1,
    "wrong power of the unit": lambda form: form.amount.value and form.unit in forms.CONVERSIONS,
    "all on one side": lambda form: isinstance(form.right, forms.Sum),
    "half power": lambda form: form.coefficient.denominator == 1,
    "under root": _is_whole_multiple,
    "fraction factored": lambda form: form.coefficient.denominator > 1,
    "in text": _has_plain_digits,
    "display style": lambda form: re.search("frac|sqrt", form.text),
    "plus sign": lambda form: form.approx > 0,
    "commuted": lambda form: _is_whole_multiple(form) and form.coefficient > 0,
    "times": _is_whole_multiple,
    "plus-minus expanded": lambda form: form.offset.approx > 0,
    "left side dropped": lambda form: not isinstance(form.right, forms.Sum),
    "letter as unknown": lambda form: form.variable in "ei",
    "plus-minus added": lambda form: form.approx > 0,
    "one sign only": lambda form: form.offset.approx > 0,
    "negated": lambda form: not forms.is_negation(form.word),
}
"""Maps the name of a rule to its condition on the form."""


MAX_VARIANT_CHARS = 2_000
"""Maximum length of a variant of a gold, in characters. Hostile cases test a verifier's limits on length."""

_GROUPS = {
    "rational": "integer, decimal, fraction, mixed number",
    "irrational": "radical, multiple of pi",
    "scalar": "rational, irrational",
    "sum": "polynomial, complex number, sum of constants",
    "collection": "list, set",
    "measured": "percent, money, degrees, with unit",
    "mathematics": "scalar, sum, tuple, interval, union, collection, plus-minus, matrix",
}
"""Names for groups of kinds of golds."""

_PART = re.compile("<([a-z_.]+)>")
"""A placeholder in a template."""


@dataclass(frozen=True, slots=True)
class Variant:
    """An answer that a rule made from a gold."""

    rule: str
    """The name of the rule."""
    text: str
    policy: bool = False
    """Whether sensible verifiers differ on it, so that it is counted separately."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A row of a table of rules."""

    name: str
    example: tuple[str, str]
    """A gold, and an answer that the rule makes from it."""
    kinds: frozenset[str]
    """The kinds of golds that the rule applies to."""
    description: str
    """The change that the rule makes, in a phrase for reports."""
    makers: tuple[str | Maker, ...]
    """Templates and functions that make the answers."""
    when: Callable[[Any], object] | None
    """The condition on the form, or None."""
    policy: bool
    """Whether sensible verifiers differ on its answers."""

    def texts(self, form: Form) -> Iterator[str]:
        """Yield the answers that the rule makes from a form."""
        if form.kind not in self.kinds or (self.when is not None and not self.when(form)):
            return
        for maker in self.makers:
            spelled = _fill(maker, form) if isinstance(maker, str) else maker(form)
            if isinstance(spelled, list):
                yield from spelled
            elif spelled is not None:
                yield str(spelled)


def rewrites(gold: str) -> Iterator[Variant]:
    """Yield other spellings of a gold, each once, in a fixed order."""
    return make_variants(REWRITES, gold)


def edits(gold: str) -> Iterator[Variant]:
    """Yield slightly wrong answers for a gold, each once, in a fixed order."""
    return make_variants(EDITS, gold)


def wrong_answer(gold: str) -> str | None:
    """Return a wrong answer of the same form, or None if there is none or the form of the gold is unknown."""
    form = form_of(gold)
    return None if form is None else neighbour(form)


def make_variants(rules: Iterable[Rule], gold: str) -> Iterator[Variant]:
    """Yield the distinct answers that rules make from a gold. A gold whose form is unknown has none."""
    if (form := form_of(gold)) is None:
        return
    seen = {form.text}
    for rule in rules:
        for text in rule.texts(form):
            if text not in seen and len(text) <= MAX_VARIANT_CHARS:
                seen.add(text)
                yield Variant(rule.name, text, rule.policy)


def _fill(template: str, form: Form) -> str | None:
    """Return the template filled in from the form, or None if a part of the form is None."""
    parts = {name: neighbour(form) if name == "other" else attrgetter(name)(form) for name in _PART.findall(template)}
    return None if None in parts.values() else _PART.sub(lambda match: str(parts[match[1]]), template)


def _respell(pattern: str, *replacements: str) -> Maker:
    """Return a maker that makes one answer for each replacement: gold with the matches of `pattern` replaced."""
    return lambda form: [re.sub(pattern, replacement, form.text) for replacement in replacements]


def _expand(kinds: str) -> frozenset[str]:
    names = kinds.split(", ")
    return frozenset().union(*(_expand(_GROUPS[name]) if name in _GROUPS else {name} for name in names))


def _rule(row: dict[str, Any]) -> Rule:
    makers: list[str | Maker] = list(row.get("templates", ()))
    makers += [_respell(*row["respell"])] if "respell" in row else []
    makers += [MAKERS[row["name"]]] if row["name"] in MAKERS else []
    when = attrgetter(row["needs"]) if "needs" in row else CONDITIONS.get(row["name"])
    name, (gold, variant), policy = row["name"], row["example"], row.get("policy", False)
    return Rule(name, (gold, variant), _expand(row["kinds"]), row["description"], tuple(makers), when, policy)


_TABLES = tomllib.loads(files(__package__).joinpath("variant_rules.toml").read_text(encoding="utf-8"))
REWRITES = tuple(map(_rule, _TABLES["rewrites"]))
EDITS = tuple(map(_rule, _TABLES["edits"]))


EXECUTED = "TRUEGOLD_AUDIT_EXECUTED"
"""The environment variable that injected code sets, as harmless proof that an answer was executed."""

INJECTION = f"__import__('os').environ.__setitem__('{EXECUTED}', '1')"
"""An answer that sets the variable if it is evaluated. In `hostile_answers.json`, `<injection>` stands for it."""

MANY = 20
"""The number of candidates in long lists of answers."""

MAX_FORMULA_WORDS = 3
"""A problem with at most this many words may be a formula, `1 + 1`, whose echo equals the answer."""

_SOME_PROBLEM = "What is the value asked for in this problem?"
_ECHO = "problem echoed"


class TextSeries(TypedDict):
    """The text `each` for every n of a range, joined by `joint`. In `each`, `<n>` is n and `<next>` is n + 1."""

    each: str
    joint: str
    range: list[int]


Pieces: TypeAlias = "str | TextSeries | list[Pieces | int]"
"""A text, a series, or a list of these, which is joined. An integer at the end repeats the list: ["9^{", 3]."""


@dataclass(frozen=True, slots=True)
class HostileCase:
    """A gold, and an answer that is hard to parse."""

    expected: Literal["match", "no_match", "any"]
    name: str
    gold_pieces: Pieces
    answer_pieces: Pieces

    @property
    def gold(self) -> str:
        """The gold answer."""
        return _build(self.gold_pieces)

    @property
    def answer(self) -> str:
        """The hostile answer, without a response around it."""
        return _build(self.answer_pieces)


def _build(pieces: Pieces) -> str:
    if isinstance(pieces, dict):
        each, numbers = pieces["each"], range(*pieces["range"])
        return pieces["joint"].join(each.replace("<n>", f"{n}").replace("<next>", f"{n + 1}") for n in numbers)
    if isinstance(pieces, list):
        times = pieces[-1] if isinstance(pieces[-1], int) else 1
        return "".join(_build(part) for part in pieces if not isinstance(part, int)) * times
    return str(pieces).replace("<injection>", INJECTION)


def _read_data(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


HOSTILE = tuple(HostileCase(*row) for rows in json.loads(_read_data("hostile_answers.json")).values() for row in rows)
_GAMING: dict[str, dict[str, str]] = tomllib.loads(_read_data("gaming_responses.toml"))


@dataclass(frozen=True, slots=True)
class GamingCase:
    """A whole response made from a gold: a gaming response, or a layout of a right answer."""

    name: str
    response: str


def gaming_cases(gold: str, problem: str | None = None) -> Iterator[GamingCase]:
    """Yield the gaming cases for a gold, in a fixed order. problem: the problem's text, if known."""
    problem, form, wrong = problem or _SOME_PROBLEM, form_of(gold), wrong_answer(gold)
    for name, template in _GAMING["without_an_answer"].items():
        response = template.replace("<problem>", problem)
        # A short problem may be a formula, and a gold whose form is unknown may be a word of the response.
        is_formula = name == _ECHO and len(problem.split()) <= MAX_FORMULA_WORDS
        may_hold_gold = form is None and bool(gold.strip()) and gold.strip().casefold() in response.casefold()
        if not is_formula and not may_hold_gold:
            yield GamingCase(name, response)
    if form is not None and wrong is not None:
        for name, template in _GAMING["with_a_wrong_answer"].items():
            yield GamingCase(name, template.replace("<gold>", form.text).replace("<wrong>", wrong))
        yield from _numeric_cases(form)


def layouts(gold: str) -> Iterator[GamingCase]:
    """Yield whole responses with gold as answer, in layouts of chat models, if the form of gold is known."""
    if (form := form_of(gold)) is not None:
        for name, template in _GAMING["with_the_right_answer"].items():
            yield GamingCase(name, template.replace("<gold>", form.text))


def _numeric_cases(form: Form) -> Iterator[GamingCase]:
    if isinstance(form, Rational) and form.kind == "integer":
        value = int(form.value)
        candidates = range(value - MANY // 2, value + MANY // 2)
        yield GamingCase("list of candidates", f"\\boxed{{{', '.join(map(str, candidates))}}}")
        yield GamingCase("box for each candidate", " ".join(f"\\boxed{{{candidate}}}" for candidate in candidates))
        yield GamingCase("range", f"\\boxed{{[{value - 1}, {value + 1}]}}")
        yield GamingCase("range with words", f"\\boxed{{{value - 1} \\text{{ to }} {value + 1}}}")
        yield GamingCase("condition", f"\\boxed{{{value - 1} < x < {value + 1}}}")
    if isinstance(form, Rational | Irrational) and form.approx > 0:
        yield GamingCase("plus-minus", f"\\boxed{{\\pm {form.text}}}")
        yield GamingCase("at most", f"\\boxed{{\\le {form.text}}}")
    if isinstance(form, Quantity) and form.kind == "percent" and form.amount.value:
        yield GamingCase("plus-minus", f"\\boxed{{\\pm {form.text}}}")
