"""Rules that turn a gold answer into other texts, as rows of a table.

    rule("bold", ("128", r"\\mathbf{128}"), "rational, radical", "Set in bold face.", r"\\mathbf{<text>}")
    rule("x10", ("180", "1800"), "integer", "Ten times as much.", lambda form: form.value * 10)

A rule has a name, an example (a gold and a text that it makes of it; a test holds every rule to it), the kinds of gold
it is for, a description, and makers of texts. A maker is a template or a function of the form. `<name>` in a template
is that attribute of the form (`forms.py`), and `<other>` is a wrong answer (`neighbours.py`). A rule makes nothing of a
gold of another kind, of one that fails its condition, and where a part is None. Rules are deterministic.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from truegold.verifiers.audit.variants.forms import Form
from truegold.verifiers.audit.variants.neighbours import neighbour
from truegold.verifiers.audit.variants.reading import form_of

MAX_VARIANT_CHARS = 2_000
"""A longer respelling would test limits, not equivalence; `hostile.py` tests limits."""

Maker = str | Callable[[Any], object]
"""A template, or a function that takes a form and returns one text, a list of texts, or None."""

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
    makers: tuple[Maker, ...]
    """What makes its texts; a rule may make several."""
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


def rule(
    name: str,
    example: tuple[str, str],
    kinds: str,
    description: str,
    *makers: Maker,
    when: Callable[[Any], object] | None = None,
    policy: bool = False,
) -> Rule:
    """Return a rule for golds of the `kinds`, which may be groups of them."""
    return Rule(name, example, _expand(kinds), description, makers, when, policy)


def _expand(kinds: str) -> frozenset[str]:
    names = kinds.split(", ")
    return frozenset().union(*(_expand(_GROUPS[name]) if name in _GROUPS else {name} for name in names))


def _fill(template: str, form: Form) -> str | None:
    """Return the template with its parts filled in from the form; None where one of them is None."""
    parts = {name: neighbour(form) if name == "other" else attrgetter(name)(form) for name in _PART.findall(template)}
    if None in parts.values():
        return None
    return _PART.sub(lambda match: str(parts[match[1]]), template)


def respell(pattern: str, *replacements: str) -> Maker:
    """Return a maker that puts each of the replacements for what `pattern` matches in the gold."""
    return lambda form: [re.sub(pattern, replacement, form.text) for replacement in replacements]


def make_variants(rules: Iterable[Rule], gold: str) -> Iterator[Variant]:
    """Yield every text that a rule makes of `gold`, each text once; none where its form is not certain."""
    form = form_of(gold)
    if form is None:
        return
    seen = {form.text}
    for rule_entry in rules:
        for text in rule_entry.texts(form):
            if text not in seen and len(text) <= MAX_VARIANT_CHARS:
                seen.add(text)
                yield Variant(rule_entry.name, text, rule_entry.policy)
