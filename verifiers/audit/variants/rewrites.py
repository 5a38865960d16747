"""Respellings of a gold answer that keep its meaning: `rewrites("5")` yields `5.0`, `x=5`, `\\text{5}`, ...

A verifier that refuses one of them has made a false negative. Those marked `policy` keep the mathematical value, and
yet a grader may fairly refuse them, such as pi/6 for 30 degrees. Golds of no certain form (`reading.py`) have none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from truegold.verifiers.audit.variants.forms import (
    Collection,
    Inequality,
    Interval,
    Irrational,
    Matrix,
    Money,
    Pair,
    Rational,
    Sum,
    WithUnit,
)
from truegold.verifiers.audit.variants.neighbours import SIGNS
from truegold.verifiers.audit.variants.notation import NOTATION_REWRITES
from truegold.verifiers.audit.variants.rules import Maker, Rule, Variant, make_variants, respell, rule
from truegold.verifiers.audit.variants.spelling import (
    collection,
    exact_decimal,
    fixed,
    fraction,
    latex,
    matrix,
    point,
    repeating,
    root,
    sign,
    surd,
    terms_sum,
)
from truegold.verifiers.audit.variants.words import CONVERSIONS, NUMERALS

_FULL_WIDTH = str.maketrans("0123456789-.", "０１２３４５６７８９－．")
_ARABIC = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")
_VULGAR_FRACTIONS = {(1, 2): "½", (1, 3): "⅓", (2, 3): "⅔", (1, 4): "¼", (3, 4): "¾", (1, 5): "⅕", (1, 8): "⅛"}
_COORDINATES = {2: ("(x,y)=", "(x, y) = "), 3: ("(x,y,z)=", "(x, y, z) = ")}
_OTHER_SIGNS = {"<=": (r"\leq", "≤", r"\leqslant"), ">=": (r"\geq", "≥", r"\geqslant")}
_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def rewrites(gold: str) -> Iterator[Variant]:
    """Respellings of `gold`, each text once, in a fixed order."""
    return make_variants(REWRITES, gold)


def _has_plain_digits(form: Rational) -> bool:
    return re.fullmatch(r"[\d.-]+", form.text) is not None


def _is_whole_multiple(form: Irrational) -> bool:
    return form.coefficient.denominator == 1 and abs(form.coefficient) > 1


def _with_unicode_symbols(form: Irrational | Sum) -> list[str]:
    text = re.sub(r"\\sqrt(?:\{(\d+)\}|(\d))", lambda match: f"√{match[1] or match[2]}", form.text)
    text = text.replace("\\pi", "π")
    return [] if "frac" in text else [text, re.sub(r"√(\d+)", r"√(\1)", text)]


def _with_chinese_punctuation(form: Pair | Collection) -> str:
    inner = "，".join(map(str, form.entries))
    if isinstance(form, Pair):
        return f"（{inner}）"
    return f"{{{inner}}}" if form.kind == "set" and "\\" not in inner else inner


def _convert_unit(form: WithUnit) -> str:
    unit, factor = CONVERSIONS[form.unit]
    return f"{latex(form.amount.value * factor**form.power)}\\text{{ {unit}}}{form.exponent}"


def _spell_money(form: Money) -> list[str]:
    value = form.amount.value
    texts = [f"\\${form.bare}", f"{form.bare}\\text{{ dollars}}", f"{form.bare} dollars"]
    if (value * 100).denominator == 1:
        texts.append(f"\\${fixed(value, 2)}")
    if value.denominator == 1 and value >= 1000:
        texts.append(f"\\${int(value):,}")
    return texts


def _show_last_step(form: Rational) -> list[str]:
    """The gold as the right side of the last step of its computation."""
    texts = []
    if form.kind == "integer" and form.value > 0:
        size = int(form.value)
        factor = next((n for n in (6, 5, 7, 3, 2) if size > n and size % n == 0), None)
        texts = [f"{factor} \\cdot {size // factor}={form.text}"] if factor else []
    return [*texts, f"{latex(form.value - 1)}+1={form.text}"]


def _group_digits(separator: str) -> Maker:
    return lambda form: f"{int(form.value):,}".replace(",", separator)


def _has_groups(form: Rational) -> bool:
    return abs(form.value) >= 1000


def _spell_scientific(form: Rational) -> list[str]:
    exponent = len(str(abs(form.value))) - 1
    short = exact_decimal(form.value / 10**exponent)
    if short is None:
        return []
    return [*(f"{short} {times} 10^{{{exponent}}}" for times in ("\\times", "\\cdot")), f"{short}e{exponent}"]


def _spell_mixed(form: Rational) -> list[str]:
    whole, rest = divmod(abs(form.value.numerator), form.value.denominator)
    if not whole or not rest:
        return []
    start, bottom = f"{sign(form.value)}{whole}", form.value.denominator
    # `2 345/7` may be a number of four digits with a blank in it.
    plain = [] if len(str(rest)) == 3 else [f"{start} {rest}/{bottom}"]
    return [start + fraction(rest, bottom), *plain]


def _move_sign_inside(form: Rational) -> list[str]:
    top, bottom = abs(form.value.numerator), form.value.denominator
    return [fraction(-top, bottom), fraction(top, -bottom), f"-{top}/{bottom}"]


def _has_no_exact_decimal(form: Rational | Irrational) -> bool:
    return isinstance(form, Irrational) or exact_decimal(form.value) is None


def _spell_ascii(form: Irrational) -> str:
    symbol = "pi" if form.radicand is None else f"sqrt({form.radicand})"
    product = f"{form.coefficient.numerator}*{symbol}".removeprefix("1*").replace("-1*", "-")
    return product if form.coefficient.denominator == 1 else f"{product}/{form.coefficient.denominator}"


def _split_coefficient(form: Sum) -> str | None:
    (coefficient, symbol), *rest = form.terms
    return terms_sum([(coefficient - 1, symbol), (1, symbol), *rest]) if coefficient > 1 else None


def _take_out_two(form: Sum) -> str | None:
    if len(form.terms) < 2 or any(coefficient % 2 for coefficient, _ in form.terms):
        return None
    return f"2({terms_sum((coefficient // 2, symbol) for coefficient, symbol in form.terms)})"


def _spell_starred(form: Sum) -> str | None:
    if any(symbol[1:2] not in {"", "^"} or len(symbol) > 3 for _, symbol in form.terms):
        return None
    stars = [(size, "*" if symbol and abs(size) > 1 else "", symbol.replace("^", "**")) for size, symbol in form.terms]
    return terms_sum((size, star + power) for size, star, power in stars)


def _respell_entries(form: Pair) -> list[str]:
    with_slashes = point(entry.value if isinstance(entry, Rational) else entry for entry in form.entries)
    decimals = [exact_decimal(entry.value) if isinstance(entry, Rational) else str(entry) for entry in form.entries]
    return [with_slashes, point(decimals, ", ")] if all(decimals) else [with_slashes]


def _state_condition(form: Interval) -> str | None:
    """The condition on x that the interval is."""
    relation, turned = ("<", ">") if form.left == "(" else ("\\le", "\\ge")
    bound = f"x {'<' if form.right == ')' else SIGNS['<=']} {form.high}"
    if form.low and form.high:
        return f"{form.low} {relation} {bound}"
    if form.low:
        return f"x {turned} {form.low}"
    return bound if form.high else None


def _join_with_and(form: Collection) -> list[str]:
    *most, last = map(str, form.entries)
    return [f"{', '.join(most)} \\text{{ and }} {last}", f"{', '.join(most)} and {last}"]


def _change_brackets(form: Matrix) -> list[str]:
    other = "bmatrix" if form.environment == "pmatrix" else "pmatrix"
    bare = form.text.replace(f"{{{form.environment}}}", "{matrix}")
    return [form.text.replace(form.environment, other), f"\\left({bare}\\right)"]


def _state_solutions(form: Inequality) -> str:
    """The interval that the inequality is."""
    is_closed = "=" in form.relation
    if form.relation[0] == ">":
        return f"{'[' if is_closed else '('}{form.bound},\\infty)"
    return f"(-\\infty,{form.bound}{']' if is_closed else ')'}"


# fmt: off
REWRITES: tuple[Rule, ...] = (
    # These change what surrounds an answer: delimiters, punctuation, boxes, blanks, digits of other scripts.
    rule("dollars", ("973", "$973$"), "mathematics", "Dollar signs around it.", "$<text>$"),
    rule("display dollars", ("973", "$$973$$"), "scalar, sum",
         "The delimiters of displayed mathematics around it.", "$$<text>$$", r"\[<text>\]"),
    rule("inline delimiters", ("973", r"\(973\)"), "mathematics",
         "LaTeX's inline delimiters around it.", r"\(<text>\)"),
    rule("trailing period", ("3224", "3224."), "mathematics", "The full stop of the sentence it ended.", "<text>."),
    rule("boxed again", ("5", r"\boxed{5}"), "mathematics",
         "A box of its own, inside whatever box the response has.", r"\boxed{<text>}"),
    rule("in text", ("128", r"\text{128}"), "integer, decimal",
         "A number set as text.", r"\text{<text>}", when=_has_plain_digits),
    rule("bold", ("128", r"\mathbf{128}"), "scalar", "Set in bold face.", r"\mathbf{<text>}"),
    rule("display style", (r"\frac{1}{2}", r"\displaystyle \frac{1}{2}"), "scalar, sum",
         "A style command before it.", r"\displaystyle <text>", when=lambda form: re.search("frac|sqrt", form.text)),
    rule("wide blanks", ("x^2+1", "x^2 + 1"), "sum, plus-minus",
         "Blanks around the signs.", respell(r"(?<=[\w}])\s*([+-])\s*", r" \1 ")),
    rule("no blanks", ("x^2 + 1", "x^2+1"), "mathematics", "No blanks at all, except after a command.",
         lambda form: re.sub(r"(\\[a-zA-Z]+)?\s+", lambda match: f"{match[1]} " if match[1] else "", form.text)),
    rule("thin blanks", ("(4,10)", r"(4,\,10)"), "tuple, interval, collection", "A LaTeX blank after each comma.",
         respell(r",(?!\\!|\})\s*", r",\\,", r",\\ ", ",~", r",\\quad ")),
    rule("left/right", ("(4,10)", r"\left(4,10\right)"), "tuple, interval",
         "Growing brackets.", respell(r"(?s)^([(\[].*)(.)$", r"\\left\1\\right\2")),
    rule("no left/right", (r"\left(4,10\right)", "(4,10)"), "tuple, interval, union, collection",
         "Growing brackets made plain.", respell(r"\\left(?=[(\[\\])|\\right(?=[)\]\\])", "")),
    rule("unicode minus", ("-5", "−5"), "scalar, sum, tuple, interval, collection",
         "The typographic minus sign.", respell("-", "−")),
    rule("unicode sqrt/pi", (r"25 \pi", "25 π"), "irrational, sum", "π and √ as characters.", _with_unicode_symbols),
    rule("unicode fraction", (r"\frac{1}{2}", "½"), "rational", "A fraction that has a character of its own.",
         lambda form: _VULGAR_FRACTIONS.get(form.value.as_integer_ratio())),
    rule("full-width digits", ("-123", "－１２３"), "integer, decimal",
         "The digits of East Asian typography.", lambda form: form.text.translate(_FULL_WIDTH), when=_has_plain_digits),
    rule("arabic-indic digits", ("123", "١٢٣"), "integer",
         "The digits of Arabic script.", lambda form: form.text.translate(_ARABIC),
         when=lambda form: form.text.isdigit()),
    rule("chinese punctuation", ("(1,2)", "（1，2）"), "tuple, collection",
         "Full-width commas and parentheses.", _with_chinese_punctuation),

    # These are for numbers with a unit, in degrees, dollars or percent, and for numbers in a base.
    rule("unit dropped", (r"65 \text{ tickets}", "65"), "with unit, degrees, money", "The number alone.", "<bare>"),
    rule("unit spelling", (r"5\text{ cm}", r"5\,\mathrm{cm}"), "with unit",
         "The unit in other type, with another blank, or as plain text.",
         r"<bare>\text{ <unit>}<exponent>", r"<bare>\ \text{<unit>}<exponent>", "<bare> <unit><exponent>",
         lambda form: None if " " in form.unit else f"{form.bare}\\,\\mathrm{{{form.unit}}}{form.exponent}"),
    rule("unit conversion", (r"5\text{ cm}", r"50\text{ mm}"), "with unit",
         "The same quantity in another unit.", _convert_unit, when=lambda form: form.unit in CONVERSIONS),
    rule("degree spelling", (r"30^\circ", "30°"), "degrees", "The degree sign in its several spellings.",
         "<amount.text>°", r"<amount.text>^\circ", r"<amount.text>^{\circ}",
         r"<amount.text>\text{ degrees}", "<amount.text> degrees"),
    rule("degrees as radians", (r"30^\circ", r"\frac{\pi}{6}"), "degrees", "The same angle in radians.",
         lambda form: surd(form.amount.value / 180, r"\pi"), when=lambda form: form.amount.value, policy=True),
    rule("money spelling", (r"\$6", r"6\text{ dollars}"), "money",
         "Dollars before or after the amount, and with cents.", _spell_money),
    rule("percent spelling", (r"50\%", "50%"), "percent",
         "The percent sign without its backslash, after a blank, or as a word.",
         r"<amount.text>\%", "<amount.text>%", r"<amount.text> \%", r"<amount.text>\text{ percent}"),
    rule("percent as fraction", (r"50\%", r"\frac{1}{2}"), "percent", "The part of one that the percentage is.",
         lambda form: latex(form.amount.value / 100), lambda form: exact_decimal(form.amount.value / 100)),
    rule("percent sign dropped", (r"50\%", "50"), "percent",
         "The number of the percentage alone, as where the question asks for percent.", "<amount.text>", policy=True),
    rule("base spelling", ("101_2", "101_{2}"), "base n",
         "The base with and without braces, the digits in parentheses.",
         lambda form: f"{form.digits}_{form.base}" if form.base < 10 else None,
         "<digits>_{<base>}", "(<digits>)_{<base>}"),
    rule("base dropped", ("2516_8", "2516"), "base n",
         "The digits alone, as where the question names the base.", "<digits>", policy=True),
    rule("base ten", ("101_2", "5"), "base n",
         "The same number in ordinary notation.", lambda form: int(form.digits, form.base), policy=True),

    # These are for single values: numbers, radicals and multiples of pi.
    rule("int.0", ("54", "54.0"), "integer", "A whole number with a decimal zero.", "<value>.0", "<value>.00"),
    rule("plus sign", ("5", "+5"), "scalar",
         "A sign before a positive value.", "+<text>", when=lambda form: form.approx > 0),
    rule("x= prefix", ("625", "x=625"), "scalar", "The name of the unknown before it.", "x=<text>", "x = <text>"),
    rule("equality chain", ("42", r"6 \cdot 7=42"), "integer, fraction",
         "The last step of the computation before it.", _show_last_step),
    rule("spelled out", ("3", "three"), "integer", "A small number as a word.",
         lambda form: [f"\\text{{{NUMERALS[int(form.value)]}}}", NUMERALS[int(form.value)]],
         when=lambda form: 0 <= form.value < len(NUMERALS)),
    rule("thousands comma", ("1260", "1,260"), "integer",
         "Groups of three digits, with commas.", _group_digits(","), when=_has_groups),
    rule("{,} sep", ("1710", "1{,}710"), "integer",
         "Groups of three digits, with commas in braces.", _group_digits("{,}"), when=_has_groups),
    rule(r",\! sep", ("3255", r"3,\!255"), "integer",
         "Groups of three digits, with commas that take no room.", _group_digits(r",\!"), when=_has_groups),
    rule("thin space sep", ("1041", r"1\,041"), "integer",
         "Groups of three digits, with thin spaces.", _group_digits(r"\,"), when=_has_groups),
    rule("blank sep", ("12345", "12 345"), "integer",
         "Groups of three digits, with blanks.", _group_digits(" "), when=_has_groups),
    rule("no sep", (r"3,\!255", "3255"), "integer", "The groups of three digits joined.", "<value>"),
    rule("scientific", ("300000000", r"3 \times 10^{8}"), "integer",
         "An exact power of ten times a short decimal.",
         _spell_scientific, when=lambda form: abs(form.value) >= 10_000),
    rule("leading zero dropped", ("0.5", ".5"), "decimal",
         "A decimal that begins with its point, and the other way round.",
         respell(r"^(-?)0\.", r"\1."), respell(r"^(-?)\.", r"\g<1>0.")),
    rule("trailing zero", ("3.5", "3.50"), "decimal", "One more zero after the decimals.", "<text>0"),
    rule("decimal as fraction", ("3.14", r"\frac{157}{50}"), "decimal", "The exact fraction of a decimal.", str),
    rule("exact decimal", (r"\frac{9}{32}", "0.28125"), "fraction, mixed number",
         "The whole decimal expansion of a fraction, where it ends.", lambda form: exact_decimal(form.value)),
    rule("repeating decimal", (r"\frac{1}{3}", r"0.\overline{3}"), "fraction, mixed number",
         "The decimal expansion of a fraction with its period marked.", lambda form: repeating(form.value)),
    rule("unreduced", (r"\frac{2}{3}", r"\frac{4}{6}"), "fraction", "A fraction with a common factor.",
         lambda form: [sign(form.value) + fraction(abs(form.value.numerator) * factor, form.value.denominator * factor)
                       for factor in (2, 3)]),
    rule("frac->slash", (r"\frac{24}{7}", "24/7"), "fraction", "A fraction with a slash.", "<value>"),
    rule("slash->frac", ("24/7", r"\frac{24}{7}"), "fraction, mixed number",
         "A fraction built up, whatever its spelling was.", str),
    rule("dfrac", (r"\frac{37}{11}", r"\dfrac{37}{11}"), "scalar",
         r"The display and the text style of a fraction, and \cfrac.",
         respell(r"\\[dt]?frac(?=\{)", r"\\dfrac", r"\\tfrac", r"\\cfrac")),
    rule("short frac", (r"\frac{1}{2}", r"\frac12"), "fraction", "A fraction of two digits without braces.",
         lambda form: [re.sub(r"\{(\d)\}\{(\d)\}", digits, str(form)) for digits in (r"\1\2", r" \1\2")]),
    rule("sign inside", (r"-\frac{1}{2}", r"\frac{-1}{2}"), "fraction",
         "The sign of a negative fraction in the numerator or in the denominator.",
         _move_sign_inside, when=lambda form: form.value < 0),
    rule("mixed number", (r"\frac{58}{7}", r"8\frac{2}{7}"), "fraction, decimal",
         "An improper fraction as a whole number and a proper one.", _spell_mixed),
    rule("approximation appended", (r"\frac{1}{3}", r"\frac{1}{3} \approx 0.333"), "fraction, irrational",
         "The exact value, then its first decimals.",
         lambda form: f"{form.text} \\approx {form.approx:.3f}", when=_has_no_exact_decimal),
    rule("commuted", (r"49\pi", r"\pi \cdot 49"), "irrational", "The irrational factor first.",
         r"<symbol> \cdot <coefficient>", when=lambda form: _is_whole_multiple(form) and form.coefficient > 0),
    rule("times", (r"8\sqrt{3}", r"8 \times \sqrt{3}"), "irrational", "A multiplication sign between the factors.",
         r"<coefficient> \times <symbol>", r"<coefficient> \cdot <symbol>", "<coefficient> * <symbol>",
         "<coefficient> · <symbol>", "<coefficient> × <symbol>", when=_is_whole_multiple),
    rule("fraction factored", (r"\frac{3\pi}{4}", r"\frac{3}{4}\pi"), "irrational",
         "The fraction before the irrational factor.", lambda form: latex(form.coefficient) + form.symbol, str,
         when=lambda form: form.coefficient.denominator > 1),
    rule("under root", (r"24\sqrt{2}", r"\sqrt{1152}"), "radical", "The coefficient brought under the root.",
         lambda form: sign(form.coefficient) + root(int(form.coefficient) ** 2 * form.radicand),
         when=_is_whole_multiple),
    rule("half power", (r"24\sqrt{2}", r"24 \cdot 2^{1/2}"), "radical", "The root as a power.",
         lambda form: f"{form.coefficient} \\cdot {form.radicand}^{{1/2}}".removeprefix("1 \\cdot "),
         when=lambda form: form.coefficient.denominator == 1),
    rule("ascii", (r"4\sqrt{3}", "4*sqrt(3)"), "irrational", "The spelling of a programming language.", _spell_ascii),

    # These are for sums, tuples, intervals, lists, matrices, equations, letters and words.
    rule("term reorder", ("1+274i", "274i+1"), "sum", "The terms of a sum from last to first.",
         lambda form: terms_sum(form.terms[::-1]), lambda form: terms_sum((*form.terms[1:], form.terms[0]))),
    rule("split coefficient", ("2x^2+3x", "x^2+x^2+3x"), "sum",
         "One term written as the sum of two.", _split_coefficient),
    rule("common factor", ("2x^2+4x", "2(x^2+2x)"), "sum", "A common factor of two taken out.", _take_out_two),
    rule("braced power", ("x^2+1", "x^{2}+1"), "sum",
         "Exponents in braces.", lambda form: re.sub(r"\^([23])", r"^{\1}", str(form))),
    rule("ascii product", ("2x^2+3x", "2*x**2+3*x"), "polynomial",
         "Stars for products and powers, as a programming language has them.", _spell_starred),
    rule("entries respelled", (r"(\frac{1}{2},3)", "(1/2,3)"), "tuple",
         "Fractions in the entries with a slash, or as decimals where they end.", _respell_entries),
    rule("named entries", ("(3,-4)", "(x,y)=(3,-4)"), "tuple",
         "The names of the coordinates before it, for what can be no interval.",
         lambda form: [name + form.text for name in _COORDINATES.get(len(form.entries), ())],
         when=lambda form: not form.is_rising),
    rule("x in", ("[0,1]", r"x \in [0,1]"), "interval, union", "The unknown as an element of it.",
         r"x \in <text>", lambda form: f"x\\in{form.text}" if form.text[0] in "([" else None),
    rule("as inequality", (r"[1,\infty)", r"x \ge 1"), "interval",
         "The condition that the interval is.", _state_condition),
    rule("union reorder", (r"(-\infty,0)\cup(1,2)", r"(1,2) \cup (-\infty,0)"), "union",
         "The pieces from last to first.", lambda form: r" \cup ".join(form.pieces[::-1])),
    rule("unicode union", (r"(-\infty,0)\cup(1,2)", "(-∞,0)∪(1,2)"), "union",
         "∪ and ∞ as characters.", lambda form: "∪".join(form.pieces).replace(r"\infty", "∞")),
    rule("list reorder", ("9,-7", "-7, 9"), "collection",
         "The values from last to first.", lambda form: collection(form.kind, form.entries[::-1])),
    rule("as set", ("3, 5, 7", r"\{3, 5, 7\}"), "collection", "A bare list in set braces, and the other way round.",
         lambda form: collection("set" if form.kind == "list" else "list", form.entries)),
    rule("and-joined", ("6, -2", r"6 \text{ and } -2"), "list", "`and` before the last value.", _join_with_and),
    rule("solutions joined by or", ("1,2", r"x=1 \text{ or } x=2"), "list",
         "The unknown named before each value.",
         lambda form: [joint.join(f"x={entry}" for entry in form.entries) for joint in (r" \text{ or } ", ", ")]),
    rule("plus-minus expanded", (r"1 \pm \sqrt{19}", r"1+\sqrt{19}, 1-\sqrt{19}"), "plus-minus",
         "Both values written out.", "<upper>, <lower>", "<lower>, <upper>", when=lambda form: form.offset.approx > 0),
    rule("bmatrix", (r"\begin{pmatrix} 3 & 6 \\ 2 & 7 \end{pmatrix}", r"\begin{bmatrix} 3 & 6 \\ 2 & 7 \end{bmatrix}"),
         "matrix", "The other brackets, or brackets set by hand.", _change_brackets),
    rule("matrix respelled", (r"\begin{pmatrix}1/2\\3\end{pmatrix}", r"\begin{pmatrix} \frac{1}{2} \\ 3 \end{pmatrix}"),
         "matrix", "Every entry in its ordinary spelling.", lambda form: matrix(form.environment, form.rows)),
    rule("left side dropped", ("x = 3", "3"), "equation",
         "The value alone.", "<right>", when=lambda form: not isinstance(form.right, Sum)),
    rule("sides swapped", ("x = 3", "3=x"), "equation", "The value on the left.", "<right>=<variable>"),
    rule("all on one side", ("y = 2x+1", "y-2x-1=0"), "equation", "The equation of a line with 0 on the right.",
         lambda form: terms_sum([(1, form.variable), *((-size, symbol) for size, symbol in form.right.terms)]) + "=0",
         when=lambda form: isinstance(form.right, Sum)),
    rule("inequality turned", ("x>3", "3 < x"), "inequality", "The bound on the left.",
         lambda form: f"{form.bound} {SIGNS[_TURNED[form.relation]]} {form.variable}"),
    rule("inequality spelling", (r"x \ge 3", r"x \geq 3"), "inequality",
         "The other commands and characters for the sign.",
         lambda form: [f"{form.variable} {relation} {form.bound}" for relation in _OTHER_SIGNS.get(form.relation, ())]),
    rule("as interval", ("x>3", r"(3,\infty)"), "inequality", "The set of solutions.", _state_solutions),
    rule("letter spelling", ("C", "(C)"), "choice letter",
         "A choice with parentheses, as text, in bold face, with a full stop.",
         "(<letter>)", r"\text{<letter>}", r"\text{(<letter>)}", r"\textbf{(<letter>)}", "<letter>", "<letter>.",
         r"\mathrm{<letter>}"),
    rule("lower-case letter", ("C", "c"), "choice letter",
         "A choice in lower case, which may be taken for a variable.", lambda form: form.letter.lower(), policy=True),
    rule("word markup", (r"\text{even}", r"\mathrm{even}"), "word", "A word with other markup or none.",
         r"\text{<word>}", r"\textbf{<word>}", "<word>", r"\text{ <word> }", "<word>.",
         lambda form: None if " " in form.word else f"\\mathrm{{{form.word}}}"),
    rule("word case", (r"\text{even}", "Even"), "word", "A word with a capital letter, or all in lower case.",
         lambda form: form.word[0].upper() + form.word[1:], lambda form: f"\\text{{{form.word.lower()}}}"),
    *NOTATION_REWRITES,
)
# fmt: on
