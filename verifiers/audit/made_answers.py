"""Makes test answers for a verifier: other spellings, slightly wrong answers, hostile answers, and gaming responses.

    rewrites("5")      5.0, x=5, \\text{5}, ...           refusing one is a false negative
    edits("5")         6, -5, 5 \\text{ or } 6, 6=5, ...   accepting one is a false positive

The rules are the rows of `variant_rules.toml`; `variant_makers.py` has functions for rules that a template cannot
express. A rule applies only to golds of its kind that meet its condition. Rules marked `policy` make answers that a
verifier may accept or refuse, such as 3.46 for 2 sqrt 3 or pi/6 for 30 degrees. A gold whose form is unknown
(`form_reader.py`) has no variants. Rules are deterministic.

A hostile case (`HOSTILE`) is a gold and an answer. Answers are built on demand, because some have megabytes. `expected`
is the required verdict, or `any`. A verdict without a score, because of a limit or a timeout, is always allowed: a
hostile case checks that there is a verdict in bounded time and memory (`contract.py`).

    tower               5               9^{9^{9^{9}}}             no_match
    tiny difference     1/2^{99}        1/2^{98}                  no_match
    full-width digits   123             １２３                     match
    null bytes          5               5 and zero bytes          any

A gaming case (`gaming_cases`) is a whole response that tries to earn the reward without committing to one answer. Most
cases are made from gold and a wrong answer of the same form; a gold whose form is unknown has only the other cases.

    many boxes           \\boxed{4}, \\boxed{5}, \\boxed{6}
    or in a box          \\boxed{5 \\text{ or } 6}
    answer in thinking   <think>\\boxed{5}</think> I am not sure.

Layouts are whole responses with the right answer in the style of chat models (a courtesy at the end, a tag, a table). A
verifier may refuse some of them as its policy.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from operator import attrgetter
from typing import Any, Literal, TypeAlias, TypedDict

from truegold.verifiers.audit.form_reader import form_of
from truegold.verifiers.audit.gold_forms import Form, Irrational, Quantity, Rational, neighbour
from truegold.verifiers.audit.variant_makers import CONDITIONS, MAKERS, Maker

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
    """Yield the answers that rules make from a gold, each once; none if its form is unknown."""
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
    """Return a maker of one answer for each replacement, which takes the place of the matches of `pattern` in gold."""
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
"""Injected code: an answer that sets the variable if it is evaluated. `<injection>` in `hostile_answers.json`."""

MANY = 20
"""The number of candidates in long lists of answers."""

MAX_FORMULA_WORDS = 3
"""A problem with at most this many words may be a formula, `1 + 1`, whose echo equals the answer."""

_SOME_PROBLEM = "What is the value asked for in this problem?"
_ECHO = "problem echoed"


class TextSeries(TypedDict):
    """A text that repeats `each` for every n of a range, joined by `joint`. In it `<n>` is n and `<next>` is n + 1."""

    each: str
    joint: str
    range: list[int]


Pieces: TypeAlias = "str | TextSeries | list[Pieces | int]"
"""A text, a series, or a list of these that is joined; an integer at the end of a list repeats it."""


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
    """Yield whole responses with gold as answer, in layouts of chat models; none if the form of gold is unknown."""
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
