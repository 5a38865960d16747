"""Rules that turn a gold answer into other texts: `rewrites` of the same meaning, `edits` of another.

    rewrites("5")      5.0, x=5, \\text{5}, ...           a verifier that refuses one makes a false negative
    edits("5")         6, -5, 5 \\text{ or } 6, 6=5, ...   a verifier that accepts one makes a false positive

The rules are the rows of `variant_rules.toml`, and `variant_makers.py` has what their templates cannot say. Those
marked `policy` are nearly right, such as 3.46 for 2 sqrt 3 or pi/6 for 30 degrees, and a grader may fairly take either
side. A rule makes nothing of a gold of another kind, of one that fails its condition, and where a part is None; golds
of no certain form (`form_reader.py`) have no variants. Rules are deterministic.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from operator import attrgetter
from typing import Any

from truegold.verifiers.audit.form_reader import form_of
from truegold.verifiers.audit.gold_forms import Form, neighbour
from truegold.verifiers.audit.variant_makers import CONDITIONS, MAKERS, Maker

MAX_VARIANT_CHARS = 2_000
"""A longer respelling would test limits, not equivalence; `attacks.py` tests limits."""

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
    """A gold, and a text that the rule makes of it."""
    kinds: frozenset[str]
    """The kinds of gold it is for."""
    description: str
    """What it does to a gold, in a sentence for reports."""
    makers: tuple[str | Maker, ...]
    """Templates and functions that make its texts; a rule may make several."""
    when: Callable[[Any], object] | None
    """The condition on the form, if there is one."""
    policy: bool
    """Whether sensible verifiers differ on its texts."""

    def texts(self, form: Form) -> Iterator[str]:
        """Yield what the rule makes of one form."""
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
    """A single, ordinary wrong answer of the same form; None where the form of `gold` is not certain."""
    form = form_of(gold)
    return None if form is None else neighbour(form)


def make_variants(rules: Iterable[Rule], gold: str) -> Iterator[Variant]:
    """Yield every text that a rule makes of `gold`, each text once; none where its form is not certain."""
    if (form := form_of(gold)) is None:
        return
    seen = {form.text}
    for rule in rules:
        for text in rule.texts(form):
            if text not in seen and len(text) <= MAX_VARIANT_CHARS:
                seen.add(text)
                yield Variant(rule.name, text, rule.policy)


def _fill(template: str, form: Form) -> str | None:
    """Return the template with its parts filled in from the form; None where one of them is None."""
    parts = {name: neighbour(form) if name == "other" else attrgetter(name)(form) for name in _PART.findall(template)}
    if None in parts.values():
        return None
    return _PART.sub(lambda match: str(parts[match[1]]), template)


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
    gold, variant = row["example"]
    return Rule(
        row["name"],
        (gold, variant),
        _expand(row["kinds"]),
        row["description"],
        tuple(makers),
        attrgetter(row["needs"]) if "needs" in row else CONDITIONS.get(row["name"]),
        row.get("policy", False),
    )


_TABLES = tomllib.loads(files(__package__).joinpath("variant_rules.toml").read_text(encoding="utf-8"))
REWRITES = tuple(map(_rule, _TABLES["rewrites"]))
EDITS = tuple(map(_rule, _TABLES["edits"]))
