"""Answers made to crash, stall or bloat whoever reads them: `HOSTILE`.

Each case is a gold and an answer, built when it is asked for, because some are megabytes long. `expected` says what the
verdict must be where that is certain, `any` elsewhere. What counts first is that there is a verdict at all, in bounded
time and memory (`contract.py`); one without a score, for a limit or a timeout, always counts as an answer to it.

    name                gold            answer                    expected
    tower               5               9^{9^{9^{9}}}             no_match
    tiny difference     1/2^{99}        1/2^{98}                  no_match
    full-width digits   123             １２３                     match
    null bytes          5               5 and zero bytes          any
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

EXECUTED = "TRUEGOLD_AUDIT_EXECUTED"
"""The environment variable that the injected code sets: harmless, and proof that the answer was run as code."""

INJECTION = f"__import__('os').environ.__setitem__('{EXECUTED}', '1')"
"""An answer that runs as code where somebody evaluates it."""

_Text = str | Callable[[], str]


@dataclass(frozen=True, slots=True)
class HostileCase:
    """A gold and an answer that is hard on whoever reads it."""

    name: str
    expected: Literal["match", "no_match", "any"]
    make_gold: Callable[[], str]
    make_answer: Callable[[], str]

    @property
    def gold(self) -> str:
        """The gold answer."""
        return self.make_gold()

    @property
    def answer(self) -> str:
        """The hostile answer, without anything around it."""
        return self.make_answer()


def _case(expected: Literal["match", "no_match", "any"], name: str, gold: _Text, answer: _Text) -> HostileCase:
    return HostileCase(name, expected, _maker(gold), _maker(answer))


def _maker(text: _Text) -> Callable[[], str]:
    return (lambda: text) if isinstance(text, str) else text


_wrong, _right, _unsettled = partial(_case, "no_match"), partial(_case, "match"), partial(_case, "any")


def _nested(opening: str, inner: str, closing: str, depth: int) -> str:
    return opening * depth + inner + closing * depth


def _matrix(size: int, last: int) -> str:
    rows = [[1] * size for _ in range(size)]
    rows[-1][-1] = last
    body = " \\\\ ".join(" & ".join(map(str, row)) for row in rows)
    return f"\\begin{{pmatrix}} {body} \\end{{pmatrix}}"


def _roots(start: int) -> str:
    return ", ".join(f"\\sqrt{{{100 * n + start}}}" for n in range(1, 101))


_DOUBLE_SUM = "\\sum_{a=1}^{150}\\sum_{b=1}^{150} \\sqrt{a+b}"

HOSTILE: tuple[HostileCase, ...] = (
    # These answers are short and have enormous values, or values that only look equal.
    _wrong("tower", "5", "9^{9^{9^{9}}}"),
    _wrong("ascii tower", "5", "9**9**9**9"),
    _wrong("tower of tens plus one", "10^{10^{10}}", "10^{10^{10}}+1"),
    _wrong("tower of factorials", "1", "((10!)!)!"),
    _wrong("factorial of 100000", "1", "100000!"),
    _wrong("2 to the 1e9", "5", "2^{1000000000}"),
    _wrong("tiny difference", "\\frac{1}{2^{99}}", "\\frac{1}{2^{98}}"),
    _wrong("tiny is not zero", "0", "10^{-10^{10}}"),
    _wrong("far decimal is not zero", "0", lambda: f"0.{'0' * 10_000}1"),
    _wrong("large neighbours", "100000000000000000000", "100000000000000000001"),
    _unsettled("(x+1)^200 reordered", "(x+1)^{200}", "(1+x)^{200}"),
    _wrong("(x+1)^200 and (x+1)^199", "(x+1)^{200}", "(x+1)^{199}"),
    _wrong("sum to 1e9", "5", "\\sum_{k=1}^{1000000000} k"),
    _wrong("product to 1e5", "5", "\\prod_{k=1}^{100000} k"),
    _wrong("integral of x^x", "1", "\\int_0^1 x^x \\, dx"),
    _wrong("huge binomial", "5", "\\binom{1000000000}{500000000}"),
    _wrong("sine of a tower", "2", "\\sin(10^{10^{5}})"),
    _wrong("five-storey tower", "5", "5^{5^{5^{5^{5}}}}"),
    _wrong("rising tower", "5", "2^{3^{4^{5^{6}}}}"),
    _wrong("tower of tens", "5", "10^{10^{10^{10}}}"),
    _wrong("gamma of 1e8", "5", "\\Gamma(100000000)"),
    _wrong("sum of 200 radicals", "5", lambda: "+".join(f"\\sqrt{{{n}}}" for n in range(1, 201))),
    _unsettled("radicals that vanish", "0", "\\sqrt{2}+\\sqrt{3}-\\sqrt{5+2\\sqrt{6}}"),
    _wrong("26 variables to the 50th", "5", f"({'+'.join('abcdefghijklmnopqrstuvwxyz')})^{{50}}"),
    _wrong("logarithm of a tower", "5", "\\log(9^{9^{9^{9}}})"),
    _wrong("remainder of a tower", "9", "9^{9^{9^{9}}} \\bmod 7"),
    _wrong("heavy trigonometry", "1000", "(\\sin x+\\cos x)^{40}(\\sin 2x+\\cos 3x)^{40}\\tan^{40}(x/7)"),
    _wrong("root of order 1e9", "1", "\\sqrt[1000000000]{2}"),
    _wrong("exponent of nine digits", "5", "1e999999999"),
    _wrong("negative exponent of nine digits", "0", "1e-999999999"),
    _wrong("chain of factorials", "5", "5!!!!!!!!!!!!!!!!"),
    _wrong("power of a sum of roots", "5", "(\\sqrt{2}+\\sqrt{3}+\\sqrt{5}+\\sqrt{7}+\\sqrt{11})^{400}"),
    _wrong("continued powers of a decimal", "5", "1.0000000001^{10^{30}}"),
    _wrong("zero over zero", "0", "\\frac{0}{0}"),
    _wrong("five over zero", "5", "\\frac{5}{0}"),
    _unsettled("infinity from a division", "\\infty", "\\frac{1}{0}"),
    _unsettled("zero to the zero", "1", "0^{0}"),
    _wrong("NaN", "5", "NaN"),
    _unsettled("NaN twice", "NaN", "NaN"),
    _wrong("complex infinity", "5", "zoo"),
    _right("arabic-indic digits", "123", "١٢٣"),
    _right("full-width digits", "123", "１２３"),
    _right("full-width tuple", "(1,2)", "（１，２）"),
    _unsettled("chinese unit", "12", "12元"),
    _unsettled("chinese degrees", "30", "30度"),
    _unsettled("superscript exponent", "5", "5²⁵⁰⁰"),
    _wrong("injected code", "5", INJECTION),
    _wrong("injected code in a list", "1, 2", f"1, 2, {INJECTION}"),
    _wrong("injected code with pi", "2\\pi", f"2*pi*{INJECTION}"),
    _wrong("injected lambda", "5", "(lambda: [].__class__.__base__.__subclasses__())()"),
    _wrong("format string", "5", "{0.__class__.__init__.__globals__}%n%n%s"),
    _wrong("file to be read", "5", "\\input{/etc/passwd}"),
    # These are cheap part by part, and their parts multiply.
    _wrong("three nested sums", "5", "\\sum_{a=1}^{100}\\sum_{b=1}^{100}\\sum_{c=1}^{100} \\sin(abc)"),
    _wrong("four nested sums", "5", lambda: "".join(f"\\sum_{{{name}=1}}^{{200}}" for name in "abcd") + "(a+b)(c+d)"),
    _wrong("products of sums", "5", "\\prod_{a=1}^{150}\\sum_{b=1}^{150}\\prod_{c=1}^{150} \\frac{a+b}{b+c}"),
    _wrong("sums in bounds of sums", "x", lambda: _nested("\\sum_{n=1}^{y} ", "3^{\\sum_{n=1}^{y} y}", "", 12)),
    _wrong(
        "powers of nested sums", "5", "(\\sum_{a=1}^{150}\\sum_{b=1}^{150} \\sqrt{a+b})^{\\sum_{c=1}^{150}\\sqrt{c}}"
    ),
    _wrong("list of nested sums", "1, 2", lambda: ", ".join([_DOUBLE_SUM] * 50)),
    _wrong("matrix of nested sums", _matrix(3, 1), lambda: _matrix(3, 1).replace("1", _DOUBLE_SUM)),
    _wrong("binomials of nested sums", "5", lambda: f"\\binom{{{_DOUBLE_SUM}}}{{{_DOUBLE_SUM}}}!"),
    _wrong("300 factorials", "5", lambda: "+".join(["20000!"] * 300) + "+x"),
    _wrong("200 gamma values", "x", lambda: "+".join(["(x+1.5)!"] * 200)),
    _wrong("100 powers with long exponents", "5", lambda: "+".join(f"(x+{n})^{{2^{{19000}}}}" for n in range(100))),
    _wrong("120 coprime fractions", "5", lambda: "+".join(f"{n}^{{-4000}}" for n in range(2, 122))),
    _wrong("floor of a tower", "5", "\\lfloor 10^{10^{10}} \\rfloor"),
    _wrong("two lists of 100 roots", lambda: _roots(2), lambda: _roots(3)),
    _wrong("intersections of unions", "(0,2)", lambda: "\\cap".join(["(" + "\\cup".join(["(0,1)"] * 40) + ")"] * 6)),
    _wrong(
        "environments in environments", "5", lambda: _nested("\\begin{aligned}", " x 5 5 \\foo ", "\\end{aligned}", 14)
    ),
    _wrong("signs over 100 functions", "5", lambda: "\\pm\\pm\\pm\\pm\\sin(" + "+".join(["\\arctan x"] * 100) + ")"),
    _wrong("quantities in quantities", "5", lambda: "3 feet 5 " * 400),
    _wrong("20k full stops", "5", lambda: "6" + "\n\n." * 6_600 + "7"),
    _wrong("displays that only open", "5", lambda: "6 " + "?\\[" * 6_600 + "7"),
    _unsettled("pages of blanks in an answer", "5", lambda: "the answer is" + " " * 19_000 + "\n\nAnswer: 5"),
    _wrong("quantities without an end", "5", lambda: "1.of " * 800),
    _unsettled("choose without arguments", "36", "{\\choose}^2"),
    _unsettled("choose", "36", "{4 \\choose 2}^2"),
    # These are deeply nested.
    _unsettled("5000 parentheses", "5", lambda: _nested("(", "5", ")", 5_000)),
    _unsettled("200 fractions", "5", lambda: _nested("\\frac{1}{1+", "5", "}", 200)),
    _wrong("1000 roots", "5", lambda: _nested("\\sqrt{", "5", "}", 1_000)),
    _unsettled("2000 boxes", "5", lambda: _nested("\\boxed{", "5", "}", 2_000)),
    _unsettled("3000 growing parentheses", "5", lambda: _nested("\\left(", "5", "\\right)", 3_000)),
    _wrong("2000 exponents", "5", lambda: _nested("a^{", "a", "}", 2_000)),
    _wrong("4000 exponents without braces", "5", lambda: "a" + "^a" * 4_000),
    _wrong("3000 subscripts", "5", lambda: _nested("x_{", "x", "}", 3_000)),
    _unsettled("3000 absolute bars", "5", lambda: _nested("|", "5", "|", 3_000)),
    _wrong("3000 sines", "5", lambda: "\\sin" * 3_000 + " x"),
    _wrong("100k brackets", "5", lambda: "[" * 100_000),
    _wrong("2000 open \\left(", "5", lambda: "\\left(" * 2_000),
    # These are long.
    _wrong("100k digits", "5", lambda: "9" * 100_000),
    _unsettled("100k digits twice", lambda: "9" * 100_000, lambda: "9" * 100_000),
    _wrong("sum of 100k", "5", lambda: "+".join(["1"] * 50_000)),
    _wrong("100k letters", "5", lambda: "xy" * 50_000),
    _wrong("10k decimals", "2", lambda: f"0.{'3' * 10_000}"),
    _wrong("list of 30k", "5", lambda: ", ".join(map(str, range(30_000)))),
    _wrong("10k and", "5", lambda: "1 and " * 10_000),
    _wrong("5000 unions", "(0,1)", lambda: " \\cup ".join(f"({n},{n + 1})" for n in range(5_000))),
    _wrong("40x40 matrix", "5", lambda: _matrix(40, 1)),
    _wrong("40x40 matrices that differ", _matrix(40, 1), lambda: _matrix(40, 2)),
    _wrong("200x200 matrix", "5", lambda: _matrix(200, 1)),
    _wrong("1000 cases", "5", lambda: "\\begin{cases} " + "x & x > 1 \\\\ " * 1_000 + "\\end{cases}"),
    _unsettled("a million blanks", "5", lambda: " " * 500_000 + "5" + " " * 500_000),
    _wrong("blanks before a point", "5", lambda: "6" + " \t" * 50_000 + "."),
    _wrong("100001 minus signs", "5", lambda: "-" * 100_001 + "5"),
    # These are long chains.
    _wrong("chain of 3000 unequal", "3000", lambda: "=".join(map(str, range(1, 3_001)))),
    _unsettled("chain of 3000 equal", "5", lambda: "=".join(["5"] * 3_000)),
    _wrong("10k equal signs", "5", lambda: "=" * 10_000),
    _wrong("chain of 3000 bounds", "5", lambda: "<".join(map(str, range(3_000)))),
    _wrong("10k commas", "5", lambda: "," * 10_000),
    _wrong("thousands of primes", "5", lambda: "f" + "'" * 10_000 + "(x)"),
    _unsettled("5000 percent signs", "5", lambda: "5" + "\\%" * 5_000),
    _wrong("chain of exponents e", "5", lambda: "1" + "e1" * 3_000),
    # These are unbalanced.
    _wrong("20k open braces", "5", lambda: "{" * 20_000),
    _wrong("20k closing braces", "5", lambda: "}" * 20_000),
    _unsettled("fraction without its end", "\\frac{1}{2}", "\\frac{1}{2"),
    _wrong("5000 open boxes", "5", lambda: "\\boxed{" * 5_000),
    _wrong("5000 open texts", "5", lambda: "\\text{" * 5_000),
    _wrong("5000 bare \\frac", "5", lambda: "\\frac" * 5_000),
    _wrong("20k dollars", "5", lambda: "$" * 20_000),
    _wrong("10k backslashes", "5", lambda: "\\" * 10_000),
    _unsettled("10k thinking ends", "5", lambda: "</think>" * 10_000 + "5"),
    _wrong("5000 phrases", "5", lambda: "the answer is " * 5_000),
    # These are of odd characters.
    _unsettled("null bytes", "5", "5\x00\x00"),
    _unsettled("direction and zero width", "5", "\u202e\u200b5\u200b"),
    _unsettled("lone surrogates", "5", "5\ud800\udfff"),
    _unsettled("10k combining characters", "5", lambda: "5" + "\u0301" * 10_000),
    _unsettled("control characters", "5", "".join(map(chr, range(1, 32))) + "5"),
    _unsettled("vulgar fraction", "\\frac{1}{2}", "½"),
    _wrong("roman numeral", "5", "Ⅷ"),
    _wrong("pictures", "5", "🧮" * 1_000),
    _right("plain, after all this", "5", "5"),
)
