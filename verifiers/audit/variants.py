"""Rules that turn a gold answer into another text, and the book they are registered in.

    @BOOK.rule("sign flip", ("5", "-5"), Number)
    def sign_flip(form: Number) -> Iterator[str]:
        \"\"\"The negative of a number.\"\"\"

A rule gets the form of a gold (`forms.py`) and yields texts; for a form that it was not registered for, or of which it
is not certain, it yields nothing. Rules are deterministic. The docstring is the rule's one-line description, the pair
its example: a test holds every rule to it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from truegold.verifiers.audit.forms import Form
from truegold.verifiers.audit.reading import form_of

MAX_VARIANT_CHARS = 2_000
"""A respelling that has grown beyond this tests limits, not equivalence; `hostile.py` does that."""

Make = TypeVar("Make", bound=Callable[..., Iterator[str]])


@dataclass(frozen=True, slots=True)
class Variant:
    """Another text made from a gold by `rule`. `policy`: sensible verifiers differ on it, so it is counted apart."""

    rule: str
    text: str
    policy: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """A named rule. `example`: a gold, and a text that the rule makes of it."""

    name: str
    description: str
    example: tuple[str, str]
    forms: tuple[type, ...]
    policy: bool
    make: Callable[[Any], Iterator[str]]


class RuleBook:
    """The rules of one sort, in the order in which they were written down."""

    def __init__(self) -> None:
        self.rules: dict[str, Rule] = {}

    def rule(self, name: str, example: tuple[str, str], *forms: type, policy: bool = False) -> Callable[[Make], Make]:
        """Register the function that follows under `name`, for golds of these `forms`."""

        def register(make: Make) -> Make:
            assert name not in self.rules
            self.rules[name] = Rule(name, inspect.getdoc(make) or "", example, forms, policy, make)
            return make

        return register

    def variants(self, gold: str) -> Iterator[Variant]:
        """Every text that a rule makes of `gold`; none where its form is not certain."""
        form = form_of(gold)
        if form is not None:
            yield from self.of(form)

    def of(self, form: Form) -> Iterator[Variant]:
        seen = {form.text}
        for rule in self.rules.values():
            if not isinstance(form, rule.forms):
                continue
            for text in rule.make(form):
                if text not in seen and len(text) <= MAX_VARIANT_CHARS:
                    seen.add(text)
                    yield Variant(rule.name, text, rule.policy)


REWRITES = RuleBook()
EDITS = RuleBook()
