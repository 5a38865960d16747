r"""What kind of answer a gold is, and one spelling for it, as the math verifier reads it.

    "\frac{6}{8}"      number       3/4            "(1, 2)"           tuple        (1, 2)
    "$x = 5$"          equation     x = 5          "[0, \infty)"      interval             [0, inf)
    "1, 2, 3"          list         1, 2, 3        "5\text{ cm}"      quantity             5 cm
    "Yes"              truth        yes            "(B)"              choice               B
    "one of the kings" text         ...            "a^2 + b"          expression           a^2 + b
    "\frac{1}{"        unreadable                  "25\%"             percentage           25 %

Golds of other verifiers than `math`, `numeric` and `choice` are `text`: their verifiers know what is in them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from truegold.pipeline.clean.options import Options, chosen

GOLD_TYPES = (
    "number",
    "expression",
    "equation",
    "inequality",
    "percentage",
    "quantity",
    "list",
    "set",
    "interval",
    "tuple",
    "matrix",
    "ratio",
    "number_in_base",
    "time",
    "family",
    "truth",
    "choice",
    "text",
    "unreadable",
)

_WHOLE = re.compile(r"-?(?:0|[1-9]\d{0,30})", re.ASCII)
_TRUTH = {
    **dict.fromkeys(("yes", "是", "是的"), "yes"),
    **dict.fromkeys(("no", "否", "不是"), "no"),
    **dict.fromkeys(("true", "正确", "对", "√", "✓"), "true"),
    **dict.fromkeys(("false", "错误", "错", "不正确", "×", "✗"), "false"),
}
_WRAPPED = re.compile(r"\\(?:text|textbf|mathrm|mathbf)\s?\{\s?([^{}]{1,20})\s?\}")
MAX_TRUTH_CHARS = 40

Note = tuple[str, str | None]


def gold_note(gold: str | None, verifier: str, options: Sequence[str] = ()) -> Note | None:
    """Type (one of GOLD_TYPES) and normal form of a gold, at most 200 characters; None where there is no gold."""
    if gold is None:
        return None
    if verifier == "choice":
        listed = Options(tuple(str(option) for option in options))
        return "choice", chosen(listed, gold) if options else _letters(gold)
    if _WHOLE.fullmatch(gold):
        return "number", gold
    if (truth := truth_of(gold)) is not None:
        return "truth", truth
    return _read(gold) if verifier in ("math", "numeric") else ("text", None)


def truth_of(gold: str) -> str | None:
    """`yes`, `no`, `true` or `false` where the gold says just that."""
    if len(gold) > MAX_TRUTH_CHARS:
        return None
    plain = _WRAPPED.sub(r"\1", gold.strip().strip("$")).strip().rstrip(".。!").strip().casefold()
    return _TRUTH.get(plain)


def _letters(gold: str) -> str | None:
    found = re.fullmatch(r"(?:\\text\{)?\(?([A-Z]{1,8})\)?[.:]?\}?", gold.strip())
    return found[1] if found else None


def _read(gold: str) -> Note:
    from truegold.verifiers.math.choices import choice_letter
    from truegold.verifiers.math.reading.cached import Refused, normal_gold, read_gold
    from truegold.verifiers.math.show import show
    from truegold.verifiers.math.tree import Measure, walk

    text = normal_gold(gold)
    if (letter := choice_letter(text)) is not None:
        return "choice", letter
    tree = read_gold(text, "sum")
    if isinstance(tree, Refused):
        return "unreadable", None
    if isinstance(tree, Measure):
        return _quantity(tree)
    # A unit inside a list is shown without the factor to its base unit, which would be another quantity.
    return _type_of(tree), None if any(isinstance(node, Measure) for node in walk(tree)) else show(tree)


def _quantity(measure: Any) -> Note:
    """A number with its unit, in base units: 2 hours are 7200 s. A count of things is shown without them."""
    from truegold.verifiers.math.show import show
    from truegold.verifiers.math.tree import Num

    if not isinstance(measure.value, Num):
        return "quantity" if not measure.unit.is_label else "text", None
    if measure.unit.is_label:
        return "quantity", show(measure.value)
    if str(measure.unit) == "percent":
        return "percentage", f"{show(measure.value)} %"
    return "quantity", f"{show(Num(measure.value.value * measure.unit.factor))} {measure.unit}"


def _type_of(tree: Any) -> str:
    """The type of a tree of `verifiers.math`, but for quantities."""
    from truegold.verifiers.math import tree as t

    if isinstance(tree, t.Group):
        return _bracketed(tree)
    if isinstance(tree, t.Chain):
        return "equation" if set(tree.operators) <= {"="} else "inequality"
    if isinstance(tree, t.SetOps):
        return "interval" if all(isinstance(p, t.Group) and _bracketed(p) != "set" for p in tree.parts) else "set"
    if isinstance(tree, t.Named):  # a sentence that ends in "is correct" is read as true, and remains a sentence
        return "text" if tree.name in ("true", "false") else "set"
    if isinstance(tree, t.VALUES):
        return "expression" if any(isinstance(node, t.Sym) for node in t.walk(tree)) else "number"
    return _kinds()[type(tree)]


@cache
def _kinds() -> dict[type, str]:
    from truegold.verifiers.math import tree as t

    return {
        t.BareList: "list",
        t.Matrix: "matrix",
        t.SetOf: "set",
        t.Ratio: "ratio",
        t.BaseN: "number_in_base",
        t.Clock: "time",
        t.Family: "family",
        t.Text: "text",
    }


def _bracketed(group: Any) -> str:
    """A finite pair in round brackets is called a tuple; only the problem can tell that it is an open interval."""
    from truegold.verifiers.math.tree import facts

    if "{" in group.opening:
        return "set"
    pair = len(group.elements) == 2
    return "interval" if pair and ({group.opening, group.closing} & {"[", "]"} or facts(group).has_infinity) else "tuple"
