r"""Determines the type of a gold (a right answer), and its normal form, as the math verifier reads it.

    Gold               Type         Normal form    Gold               Type         Normal form
    "\frac{6}{8}"      number       3/4            "(1, 2)"           tuple        (1, 2)
    "$x = 5$"          equation     x = 5          "[0, \infty)"      interval     [0, inf)
    "1, 2, 3"          list         1, 2, 3        "5\text{ cm}"      quantity     5 cm
    "Yes"              truth        yes            "(B)"              choice       B
    "one of the kings" text         ...            "a^2 + b"          expression   a^2 + b
    "\frac{1}{"        unreadable                  "25\%"             percentage   25 %

Golds of verifiers other than `math`, `numeric` and `choice` have the type `text`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from gmpy2 import mpq

from truegold.verifiers.answers.choice import gold_letters
from truegold.verifiers.answers.gold_words import truth_of
from truegold.verifiers.math import tree as t
from truegold.verifiers.math.choice_letters import choice_letter
from truegold.verifiers.math.reading.answers import Unread, read_gold
from truegold.verifiers.math.reading.normal import normal_gold
from truegold.verifiers.math.tree import show

GOLD_TYPES = tuple(
    "number expression equation inequality percentage quantity list set interval tuple matrix"
    " ratio number_in_base time date congruence family truth choice text unreadable".split()
)
"""Every type that a gold may have."""

_WHOLE = re.compile(r"-?(?:0|[1-9]\d{0,30})", re.ASCII)
"""A whole number, which needs no parsing."""
TYPE_OF_NODE: dict[type, str] = {
    t.BareList: "list",
    t.Matrix: "matrix",
    t.SetOf: "set",
    t.Ratio: "ratio",
    t.BaseN: "number_in_base",
    t.TimeOfDay: "time",
    t.Day: "date",
    t.Residues: "congruence",
    t.Family: "family",
    t.Text: "text",
}
"""The gold type of each class of tree nodes that has only one type."""
Note = tuple[str, str | None]
"""A type of GOLD_TYPES, and the normal form of the gold, or None if the gold has no normal form."""


def gold_note(gold: str | None, verifier: str, options: Sequence[str] = ()) -> Note | None:
    """Return the type and the normal form of a gold (at most 200 characters), or None if there is no gold."""
    if gold is None:
        return None
    if (truth := truth_of(gold)) is not None:
        return "truth", truth
    if verifier == "choice":
        return "choice", gold_letters(gold, [str(option) for option in options])
    if _WHOLE.fullmatch(gold):
        return "number", gold
    return _read_mathematics(gold) if verifier in ("math", "numeric") else ("text", None)


def _read_mathematics(gold: str) -> Note:
    text = normal_gold(gold)
    if (letter := choice_letter(text)) is not None:
        return "choice", letter
    try:
        tree = read_gold(text, "sum")
    except Exception:  # A defect of the parser must not stop the run.
        return "unreadable", None
    if isinstance(tree, Unread):
        return "unreadable", None
    if isinstance(tree, t.Measure):
        return _note_quantity(tree)
    # In a list, `show` writes 5 cm as `5 (0.01 m)`, which is not a normal form.
    has_unit = any(isinstance(node, t.Measure) for node in t.walk(tree))
    return _type_of(tree), None if has_unit else show(tree)


def _note_quantity(measure: t.Measure) -> Note:
    """Return the note of a quantity, in base units: 2 hours -> 7200 s. A count loses its noun: 5 apples -> 5."""
    if not isinstance(measure.value, t.Num):
        return "quantity" if not measure.unit.is_label else "text", None
    if measure.unit.is_label:
        return "quantity", show(measure.value)
    if str(measure.unit) == "percent":
        return "percentage", f"{show(measure.value)} %"
    base = replace(measure.unit, factor=mpq(1)) if not measure.unit.zero else measure.unit
    return "quantity", f"{show(t.Num(measure.value.value * measure.unit.factor))} {base}"


def _type_of(tree: t.Node) -> str:
    """Return the type of a tree that is not a quantity."""
    if isinstance(tree, t.Group):
        return _type_of_group(tree)
    if isinstance(tree, t.Chain):
        return "equation" if set(tree.operators) <= {"="} else "inequality"
    if isinstance(tree, t.SetOps):
        intervals = all(isinstance(part, t.Group) and _type_of_group(part) != "set" for part in tree.parts)
        return "interval" if intervals else "set"
    if isinstance(tree, t.Named):
        # A sentence that ends in "is correct" is parsed as true, but its type is text.
        return "text" if tree.name in ("true", "false") else "set"
    if isinstance(tree, t.VALUES):
        return "expression" if any(isinstance(node, t.Sym) for node in t.walk(tree)) else "number"
    return TYPE_OF_NODE[type(tree)]


def _type_of_group(group: t.Group) -> str:
    """Return the type of a group in brackets.

    A finite pair in round brackets is a tuple, since only the problem could tell that it is an open interval.
    """
    if "{" in group.opening:
        return "set"
    if len(group.elements) != 2:
        return "tuple"
    is_interval = {group.opening, group.closing} & {"[", "]"} or t.facts(group).has_infinity
    return "interval" if is_interval else "tuple"
