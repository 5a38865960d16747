"""Answers that are long, deeply nested, unbalanced or made of odd characters: cost by length, depth and repetition."""

from __future__ import annotations

from truegold.verifiers.audit.hostile_case import HostileCase, either, match, no_match


def _nested(opening: str, inner: str, closing: str, depth: int) -> str:
    return opening * depth + inner + closing * depth


def _matrix(size: int, last: int) -> str:
    rows = [[1] * size for _ in range(size)]
    rows[-1][-1] = last
    body = " \\\\ ".join(" & ".join(map(str, row)) for row in rows)
    return f"\\begin{{pmatrix}} {body} \\end{{pmatrix}}"


TEXTS: tuple[HostileCase, ...] = (
    # depth
    either("5000 parentheses", "5", lambda: _nested("(", "5", ")", 5_000)),
    either("200 fractions", "5", lambda: _nested("\\frac{1}{1+", "5", "}", 200)),
    no_match("1000 roots", "5", lambda: _nested("\\sqrt{", "5", "}", 1_000)),
    either("2000 boxes", "5", lambda: _nested("\\boxed{", "5", "}", 2_000)),
    either("3000 growing parentheses", "5", lambda: _nested("\\left(", "5", "\\right)", 3_000)),
    no_match("2000 exponents", "5", lambda: _nested("a^{", "a", "}", 2_000)),
    no_match("4000 exponents without braces", "5", lambda: "a" + "^a" * 4_000),
    no_match("3000 subscripts", "5", lambda: _nested("x_{", "x", "}", 3_000)),
    either("3000 absolute bars", "5", lambda: _nested("|", "5", "|", 3_000)),
    no_match("3000 sines", "5", lambda: "\\sin" * 3_000 + " x"),
    no_match("100k brackets", "5", lambda: "[" * 100_000),
    no_match("2000 open \\left(", "5", lambda: "\\left(" * 2_000),
    # length
    no_match("100k digits", "5", lambda: "9" * 100_000),
    either("100k digits twice", lambda: "9" * 100_000, lambda: "9" * 100_000),
    no_match("sum of 100k", "5", lambda: "+".join(["1"] * 50_000)),
    no_match("100k letters", "5", lambda: "xy" * 50_000),
    no_match("10k decimals", "2", lambda: f"0.{'3' * 10_000}"),
    no_match("list of 30k", "5", lambda: ", ".join(map(str, range(30_000)))),
    no_match("10k and", "5", lambda: "1 and " * 10_000),
    no_match("5000 unions", "(0,1)", lambda: " \\cup ".join(f"({n},{n + 1})" for n in range(5_000))),
    no_match("40x40 matrix", "5", lambda: _matrix(40, 1)),
    no_match("40x40 matrices that differ", _matrix(40, 1), lambda: _matrix(40, 2)),
    no_match("200x200 matrix", "5", lambda: _matrix(200, 1)),
    no_match("1000 cases", "5", lambda: "\\begin{cases} " + "x & x > 1 \\\\ " * 1_000 + "\\end{cases}"),
    either("a million blanks", "5", lambda: " " * 500_000 + "5" + " " * 500_000),
    no_match("blanks before a point", "5", lambda: "6" + " \t" * 50_000 + "."),
    no_match("100001 minus signs", "5", lambda: "-" * 100_001 + "5"),
    # chains
    no_match("chain of 3000 unequal", "3000", lambda: "=".join(map(str, range(1, 3_001)))),
    either("chain of 3000 equal", "5", lambda: "=".join(["5"] * 3_000)),
    no_match("10k equal signs", "5", lambda: "=" * 10_000),
    no_match("chain of 3000 bounds", "5", lambda: "<".join(map(str, range(3_000)))),
    no_match("10k commas", "5", lambda: "," * 10_000),
    no_match("thousands of primes", "5", lambda: "f" + "'" * 10_000 + "(x)"),
    either("5000 percent signs", "5", lambda: "5" + "\\%" * 5_000),
    no_match("chain of exponents e", "5", lambda: "1" + "e1" * 3_000),
    # unbalanced
    no_match("20k open braces", "5", lambda: "{" * 20_000),
    no_match("20k closing braces", "5", lambda: "}" * 20_000),
    either("fraction without its end", "\\frac{1}{2}", "\\frac{1}{2"),
    no_match("5000 open boxes", "5", lambda: "\\boxed{" * 5_000),
    no_match("5000 open texts", "5", lambda: "\\text{" * 5_000),
    no_match("5000 bare \\frac", "5", lambda: "\\frac" * 5_000),
    no_match("20k dollars", "5", lambda: "$" * 20_000),
    no_match("10k backslashes", "5", lambda: "\\" * 10_000),
    either("10k thinking ends", "5", lambda: "</think>" * 10_000 + "5"),
    no_match("5000 phrases", "5", lambda: "the answer is " * 5_000),
    # characters
    either("null bytes", "5", "5\x00\x00"),
    either("direction and zero width", "5", "\u202e\u200b5\u200b"),
    either("lone surrogates", "5", "5\ud800\udfff"),
    either("10k combining characters", "5", lambda: "5" + "\u0301" * 10_000),
    either("control characters", "5", "".join(map(chr, range(1, 32))) + "5"),
    either("vulgar fraction", "\\frac{1}{2}", "½"),
    no_match("roman numeral", "5", "Ⅷ"),
    no_match("pictures", "5", "🧮" * 1_000),
    match("plain, after all this", "5", "5"),
)
