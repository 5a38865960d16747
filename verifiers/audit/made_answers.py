"""Makes test answers for a verifier: right ones in other spellings, slightly wrong ones, hostile ones, and gaming
responses.

    rewrites("5")      5.0, x=5, \\text{5}, ...           a verifier that refuses one makes a false negative
    edits("5")         6, -5, 5 \\text{ or } 6, 6=5, ...   a verifier that accepts one makes a false positive

The rules are the rows of `variant_rules.toml`; `variant_makers.py` has functions for rules that a template cannot
express. Rules marked `policy` make nearly right answers, such as 3.46 for 2 sqrt 3 or pi/6 for 30 degrees, which a
grader may accept or refuse. A rule applies only to golds of its kind that meet its condition. Golds without a certain
form (`form_reader.py`) have no variants. Rules are deterministic.

A hostile case (`HOSTILE`) is a gold and an answer. It is built on demand, because some are megabytes long. `expected`
is the required verdict, or `any`. Most important is that there is a verdict in bounded time and memory (`contract.py`).
A verdict without a score, because of a limit or a timeout, is always allowed.

    tower               5               9^{9^{9^{9}}}             no_match
    tiny difference     1/2^{99}        1/2^{98}                  no_match
    full-width digits   123             １２３                     match
    null bytes          5               5 and zero bytes          any

A gaming case (`gaming_cases`) is a whole response that tries to earn the reward without committing to one answer. It is
made from gold and a wrong answer of the same form. For a gold without a certain form, only cases remain that need
neither.

    many boxes           \\boxed{4}, \\boxed{5}, \\boxed{6}
    or in a box          \\boxed{5 \\text{ or } 6}
    answer in thinking   <think>\\boxed{5}</think> I am not sure.

Layouts are whole responses with the right answer, as chat models write them (a courtesy at the end, a tag, a table). A
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
"""A longer respelling would test limits, not equivalence; hostile cases test limits."""

_GROUPS = {
    "rational": "integer, decimal, fraction, mixed number",
    "irrational": "radical, multiple of pi",
    "scalar": "rational, irrational",
    "sum": "polynomial, complex number, sum of constants",
    "collection": "list, set",
    "measured": "percent, money, degrees, with unit",
    "mathematics": "scalar, sum, tuple, interval, union, collection, plus-minus, matrix",
}
"""Names for several kinds of gold."""

_PART = re.compile("<([a-z_.]+)>")


@dataclass(frozen=True, slots=True)
class Variant:
    """Another text made from a gold by `rule`."""

    rule: str
    """The name of the rule."""
    text: str
    policy: bool = False
    """Whether sensible verifiers differ on it, so that it is counted apart."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A row of a table of rules."""

    name: str
    example: tuple[str, str]
    """A gold, and an answer that the rule makes from it."""
    kinds: frozenset[str]
    """The kinds of gold it is for."""
    description: str
    """The change that the rule makes to a gold, in a sentence for reports."""
    makers: tuple[str | Maker, ...]
    """Templates and functions that make its texts; a rule may make several."""
    when: Callable[[Any], object] | None
    """The condition on the form, if there is one."""
    policy: bool
    """Whether sensible verifiers differ on its texts."""

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
    """Respellings of `gold`, each text once, in a fixed order."""
    return make_variants(REWRITES, gold)


def edits(gold: str) -> Iterator[Variant]:
    """Wrong answers close to `gold`, each text once, in a fixed order."""
    return make_variants(EDITS, gold)


def wrong_answer(gold: str) -> str | None:
    """A single, ordinary wrong answer of the same form, or None if the form of `gold` is not certain."""
    form = form_of(gold)
    return None if form is None else neighbour(form)


def make_variants(rules: Iterable[Rule], gold: str) -> Iterator[Variant]:
    """Yield every text that a rule makes of `gold`, each text once; none if its form is not certain."""
    if (form := form_of(gold)) is None:
        return
    seen = {form.text}
    for rule in rules:
        for text in rule.texts(form):
            if text not in seen and len(text) <= MAX_VARIANT_CHARS:
                seen.add(text)
                yield Variant(rule.name, text, rule.policy)


def _fill(template: str, form: Form) -> str | None:
    """Return the template with its parts filled in from the form, or None if one of them is None."""
    parts = {name: neighbour(form) if name == "other" else attrgetter(name)(form) for name in _PART.findall(template)}
    return None if None in parts.values() else _PART.sub(lambda match: str(parts[match[1]]), template)


def _respell(pattern: str, *replacements: str) -> Maker:
    """Return a maker that puts each of the replacements for what `pattern` matches in the gold."""
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
"""The environment variable that the injected code sets: harmless, and proof that the answer was run as code."""

INJECTION = f"__import__('os').environ.__setitem__('{EXECUTED}', '1')"
"""An answer that runs as code where somebody evaluates it; `<injection>` in `hostile_answers.json`."""

MANY = 20
"""The number of candidates in long lists of answers."""

MAX_FORMULA_WORDS = 3
"""A problem of so few words may be a formula, `1 + 1`, and its echo equal to the answer."""

_SOME_PROBLEM = "What is the value asked for in this problem?"
_ECHO = "problem echoed"


class TextSeries(TypedDict):
    """A joined series of `each` for every n of a range. `<n>` becomes n, `<next>` the next number."""

    each: str
    joint: str
    range: list[int]


Pieces: TypeAlias = "str | TextSeries | list[Pieces | int]"
"""A text, a series, or a list of these to be joined; a number at its end says how often."""


@dataclass(frozen=True, slots=True)
class HostileCase:
    """A gold and an answer that is hard on its reader."""

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
        """The hostile answer, without anything around it."""
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
    """A whole response made from a gold: a gaming response that must not get the full score, or a layout of a right
    one."""

    name: str
    response: str


def gaming_cases(gold: str, problem: str | None = None) -> Iterator[GamingCase]:
    """Return the cases for one gold, in a fixed order. problem: the question, if it is known."""
    problem, form, wrong = problem or _SOME_PROBLEM, form_of(gold), wrong_answer(gold)
    for name, template in _GAMING["without_an_answer"].items():
        response = template.replace("<problem>", problem)
        # A short problem may be a formula, and a gold without a known form may be one of the words of a case.
        is_formula = name == _ECHO and len(problem.split()) <= MAX_FORMULA_WORDS
        may_hold_gold = form is None and bool(gold.strip()) and gold.strip().casefold() in response.casefold()
        if not is_formula and not may_hold_gold:
            yield GamingCase(name, response)
    if form is not None and wrong is not None:
        for name, template in _GAMING["with_a_wrong_answer"].items():
            yield GamingCase(name, template.replace("<gold>", form.text).replace("<wrong>", wrong))
        yield from _numeric_cases(form)


def layouts(gold: str) -> Iterator[GamingCase]:
    """Whole responses that commit to a gold of a known form in layouts of chat models."""
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
