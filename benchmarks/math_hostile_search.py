"""Searches for the mathematical text that takes the math verifier the longest time.

Texts are trees of templates: a sum in a sum, a list of powers, an environment in an environment, repeated and nested.
The slowest texts so far are changed, and slower variants replace them. A text is tried as answer and as gold, compared
with itself and with golds of every kind, and as a response; its cost is the time of the slowest of these verdicts.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from truegold.verifiers import MathVerifier, equivalent

LEAVES = (
    "1 2 3 5 7 100 199 2000 20000 0.5 999999999 1e10 1e3000 x y n a k \\pi e i \\infty \\sqrt{2} -1 "
    "5\\% 1,234 3\\frac12 \\frac12 0.\\overline{3} 0.1666... 101_2 4:30 30^\\circ \\pm the cm \\text{cm} \\emptyset "
    "\\mathbb{R} \\dots".split()
)
TEMPLATES = (
    "{}+{}", "{}-{}", "{}{}", "{}*{}", "{}/{}", "({})", "({})^{{{}}}", "{}^{{{}}}", "{}!", "({})!", "-{}", "\\pm {}",
    "\\frac{{{}}}{{{}}}", "\\sqrt{{{}}}", "\\sqrt[{}]{{{}}}", "\\binom{{{}}}{{{}}}", "\\sin {}", "\\sin({})",
    "\\arctan({})", "\\log_{{{}}} {}", "\\ln({})", "\\exp({})", "f({})", "|{}|", "\\lfloor {} \\rfloor",
    "\\gcd({},{})", "\\max({},{})", "\\sum_{{k=1}}^{{199}} {}", "\\sum_{{n=1}}^{{{}}} {}", "\\prod_{{a=1}}^{{150}} {}",
    "\\int_{{0}}^{{1}} {} dx", "\\int {} dx", "\\lim_{{x\\to {}}} {}", "{}={}", "{}<{}", "{} \\le x < {}", "x \\in {}",
    "{},{}", "{};{}", "{} \\text{{ or }} {}", "{} \\text{{ and }} {}", "({},{})", "[{},{})", "(-\\infty,{}]",
    "\\{{{},{}\\}}", "\\{{x : {}\\}}", "{}\\cup {}", "{}\\cap {}", "{}\\setminus {}", "{}:{}", "{}_{{{}}}",
    "\\begin{{pmatrix}} {} & {} \\\\ {} & {} \\end{{pmatrix}}", "\\begin{{vmatrix}} {} & {} \\end{{vmatrix}}",
    "\\begin{{aligned}} {} \\\\ {} \\end{{aligned}}", "\\begin{{array}}{{cc}} {} & {} \\\\ {} \\end{{array}}",
    "\\begin{{cases}} {} & {} \\\\ {} \\end{{cases}}", "\\text{{{}}}", "\\boxed{{{}}}", "${}$", "{} is {}", "{} cm {}",
    "{} for all {}", "{} where k is an integer", "{} ({}\\in \\mathbb{{Z}})", "{} \\Rightarrow {}", "{} \\approx {}",
    "{{{}}}", "{{{}}}^{{\\circ}}", "{} \\pmod{{{}}}", "{}:{} p.m.", "\\left({}\\right)", "\\overline{{{}}}",
    "{}\\quad {}", "the answer is {}", "{} million {}", "{}'", "({}) {}", "\\frac{}{}", "\\color{{red}}{{{}}}",
    "<answer>{}</answer>", "#### {}\n{}", "{}\n\n{}", "**{}**", "{}. {}",
)  # fmt: skip
PARTNERS = ("5", "3.14", "x", "(1,2)", "[0,1]", "1,2,3", "x=5", "\\sqrt{2}", "x+y", "\\{1,2\\}", "\\text{even}",
            "\\begin{pmatrix}1\\\\2\\end{pmatrix}", "5\\text{ cm}", "2:3", "101_2", "C", "1,234", "\\pm 5", "x>3",
            "f(x)=x^2", "k\\pi, k\\in\\mathbb{Z}", "50\\%", "x^2+C", "\\int_0^x t dt", "")  # fmt: skip
REPEATS = (1, 1, 1, 2, 3, 5, 10, 30, 100)
SEPARATORS = ("", "+", ",", "*", "=", "<", "\\cup ", "\\cap ", " ", ";", " or ", "/", "^", "&", "\\\\", "\n", "-", ":")
MAX_TEXT_CHARS = 30_000
KEPT = 60


@dataclass
class Part:
    """A template with its parts, the whole repeated and nested in itself."""

    template: str
    parts: list[Part] = field(default_factory=list)
    repeats: int = 1
    separator: str = ""
    depth: int = 1
    """How often the template stands within itself, in the place of its last part."""

    def text(self) -> str:
        """Return the text, or a piece of it where it is too long."""
        inner = [part.text() for part in self.parts]
        text = self.template.format(*inner) if inner else self.template
        for _ in range(self.depth - 1):
            if not inner or len(text) > MAX_TEXT_CHARS:
                break
            text = self.template.format(*inner[:-1], text)
        return self.separator.join([text] * self.repeats)[:MAX_TEXT_CHARS]

    def walk(self) -> Iterator[Part]:
        """Yield this part and all below it."""
        yield self
        for part in self.parts:
            yield from part.walk()

    def copy(self) -> Part:
        """Return a copy that shares nothing."""
        return Part(self.template, [p.copy() for p in self.parts], self.repeats, self.separator, self.depth)


def random_part(dice: random.Random, depth: int) -> Part:
    """Return a random tree, at most so deep."""
    if depth == 0 or dice.random() < 0.15:
        return Part(dice.choice(LEAVES))
    template = dice.choice(TEMPLATES)
    parts = [random_part(dice, depth - 1) for _ in range(template.replace("{{", "").replace("}}", "").count("{}"))]
    nested = dice.choice((1, 1, 1, 2, 4, 8, 15, 38)) if parts else 1
    return Part(template, parts, dice.choice(REPEATS), dice.choice(SEPARATORS), nested)


def changed(dice: random.Random, tree: Part) -> Part:
    """Return a copy with one part replaced, wrapped, repeated more or nested deeper."""
    tree = tree.copy()
    part = dice.choice(list(tree.walk()))
    kind = dice.random()
    if kind < 0.35:
        new = random_part(dice, 2)
    elif kind < 0.55:
        new = random_part(dice, 1)
        if new.parts:
            new.parts[-1] = part.copy()
    else:
        new = part.copy()
        if kind < 0.8:
            new.repeats = max(1, int(new.repeats * dice.choice((0.5, 2, 3))) + dice.choice((-1, 0, 1)))
            new.separator = dice.choice(SEPARATORS) if dice.random() < 0.5 else new.separator
        else:
            new.depth = max(1, new.depth + dice.choice((-3, -1, 1, 3, 10)))
    part.template, part.parts, part.repeats = new.template, new.parts, min(new.repeats, 2_000)
    part.separator, part.depth = new.separator, min(new.depth, 60)
    return tree


def costs(text: str, verifier: MathVerifier, partners: tuple[str, ...]) -> Iterator[tuple[float, str, str]]:
    """Yield the CPU milliseconds of each verdict on a text, with its gold and its answer."""
    pairs = [(partner, text) for partner in partners] + [(text, partner) for partner in partners]
    for gold, answer in [*pairs, (text, text + "+0"), (text, text[::-1])]:
        start = time.process_time()
        equivalent(answer, gold=gold)
        yield 1000 * (time.process_time() - start), gold, answer
    start = time.process_time()
    verifier(f"So it is $\\boxed{{{text}}}$.", "5")
    verifier(text, partners[0])
    yield 1000 * (time.process_time() - start), "5", f"\\boxed{{{text}}}"


def search(seconds: float, seed: int) -> list[tuple[float, str, str]]:
    """Return the slowest verdicts as CPU milliseconds, gold and answer. Exceptions of the verifier are not caught."""
    dice = random.Random(seed)
    verifier = MathVerifier()
    ranked: list[tuple[float, str, str, Part]] = []
    end = time.process_time() + seconds
    gc.disable()
    while time.process_time() < end:
        tree = changed(dice, dice.choice(ranked)[3]) if ranked and dice.random() < 0.7 else random_part(dice, 4)
        text = tree.text()
        cost, gold, answer = max(costs(text, verifier, tuple(dice.sample(PARTNERS, 3))), key=lambda entry: entry[0])
        if cost > 3.0:
            # What was dear by accident, because the machine was busy, is not dear again.
            start = time.process_time()
            equivalent(answer, gold=gold)
            cost = min(cost, 1000 * (time.process_time() - start) + 3.0)
        ranked.append((cost, gold, answer, tree))
        ranked.sort(key=lambda entry: -entry[0])
        if len(ranked) > KEPT:
            ranked.pop(dice.randrange(KEPT // 2, len(ranked)) if dice.random() < 0.2 else -1)
        gc.collect(0)
    gc.enable()
    return [entry[:3] for entry in ranked]
