"""The policy and the budget of a comparison, its possible results, and its errors.

The policy decides questions that mathematics alone does not, with one option for each, such as {"units": "strict"}. A
row sets options in its `verifier_args`; `equivalent` takes them as keywords. Other options may be set by the text of
the problem (`policy_for`), if it asks for a percentage, a ratio, an order, or the parts (a) and (b).

All work of a verdict is charged to one budget before it is done: terms, digits, nodes, readings and comparisons, in
steps of about a microsecond. Separate limits would multiply, as in a sum of sums. Counting steps, unlike a clock, gives
the same verdict on every machine.

A cached result (`remembered`) is charged again at each use, so no verdict depends on earlier ones. Outside of a verdict
there is no limit.
"""

from __future__ import annotations

import difflib
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache, wraps
from typing import Any, Literal, NamedTuple, Self, TypeVar, get_args, get_origin, get_type_hints

from truegold.verifiers.math.vocabulary import ANY_OF, WORDS
from truegold.verifiers.sandbox.errors import ConfigError

REMEMBERED_PROBLEMS = 1_024
MAX_QUANTITY_CHARS = 40
"""Longer golds are not a number with a letter."""
_LAST_LETTERS = re.compile(r"^[^A-Za-z]*\d[^A-Za-z]*?([A-Za-z]{1,3})$")
"""The T of a gold of `5T`."""
_IN_UNITS = re.compile(r"\b(?:in|units? of)\s(?:[A-Za-z]{1,3})(?=[\s.,;:?!)\]]*(?:$|[.,;:?!)\]]\s|\(|to |with ))")
"""The V of `Find the voltage in V.`, which is a unit in a gold of `5 V`."""
_FORMULA = re.compile(r"\$[^$]{1,400}\$|\\\(.{1,400}?\\\)", re.DOTALL)
# Words of a problem that set options which the row leaves open.
_PERCENT = re.compile(ANY_OF["percentages"], re.IGNORECASE)
_ORDER = re.compile(ANY_OF["orders"], re.IGNORECASE)
_NO_ORDER = re.compile(ANY_OF["no_orders"], re.IGNORECASE)
_PARTS = re.compile(r"[(（](?:a|i|1)[)）].*[(（](?:b|ii|2)[)）]", re.DOTALL)
_ROOT = re.compile(r"\\sqrt|\\l(?:n|og)|\^\{?\(?(?:-?\d/2|-?\\[dt]?frac)|\^\{?\d\}?\s*=")
"""Below a root, in a logarithm and below a broken exponent it counts whether letters are positive."""
_MATRICES = re.compile(r"\bmatri(?:x|ces)\b|\bcommutators?\b|\bcartesian\b|\bdo(?:es)? not commute|矩阵", re.IGNORECASE)
_RATIO = re.compile(r"\bratios?\b|\bproportions?\b|\bodds\b|\bscale\b|比", re.IGNORECASE)

MAX_STEPS = 25_000
"""Steps that a verdict may cost: six times as much as the dearest of ten thousand labelled rows. Stops nested sums."""
MAX_GOLD_STEPS = MAX_STEPS // 2
"""If the budget is exceeded and gold alone costs more than this, gold is at fault, else the answer."""
SECONDS_A_STEP = 1e-6
_UNLIMITED = 1 << 60
T = TypeVar("T")
CACHED_READINGS = 8_192
"""How many texts are remembered by each of the functions that read them."""
MAX_REMEMBERED_CHARS = 300
"""Longer texts are read anew each time. Stops memory from filling with the trees of long answers."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules for when two answers are the same; the defaults are what most data sets of mathematics mean."""

    rounding: bool | Literal["measured"] = True
    """A gold with two or more decimals, or with one and at least three digits, counts as rounded. An exact answer
    matches when it rounds to gold or is cut to it, a decimal with at least two places more when it rounds to gold. An
    integer, a fraction or a radical as gold asks for exactly its value. measured: a gold with a point, a power of ten
    or a unit is a measured number, and an answer of two figures or more may differ by a hundredth of it; a whole gold
    of three digits is answered by a decimal that rounds to it, a fraction or a root by a decimal of three figures."""
    decimals: int | None = None
    """Numbers must agree only to this many decimals."""
    tolerance: float | None = None
    """Numbers may differ by this relative error."""
    answer_digits: int | None = None
    """Significant digits that a decimal answer needs to be accepted for an exact gold; all of them have to be right."""
    units: Literal["convert", "strict", "ignore"] = "convert"
    """convert: a unit that one side leaves out is understood, another one is converted (5 cm is 50 mm) or else wrong.
    strict: where gold has a unit, the answer needs one. ignore: only the numbers count."""
    letters: Literal["auto", "units", "variables"] = "auto"
    """The meaning of the letter in a gold of `5T`. auto: a unit after a blank (`5 T`), and where the answer has a
    unit; else a variable. units: a unit in any case, so that 5 answers. variables: a variable in any case."""
    percent: Literal["value", "either"] = "value"
    """value: 50% is 0.5, so a bare gold of 50 is not 50%; gold with a percent sign may be answered without it.
    either: N% also matches N."""
    degrees: Literal["convert", "strict"] = "convert"
    """convert: 30 degrees is pi/6. strict: degrees match degrees only."""
    order: Literal["auto", "ordered", "unordered"] = "auto"
    """auto: bare lists and sets are unordered, tuples, vectors and matrices are ordered."""
    constant: Literal["required", "optional"] = "required"
    """Whether the answer must have the + C that gold has."""
    parameters: Literal["rename", "strict"] = "rename"
    """rename: k\\pi with integer k is n\\pi with integer n."""
    base: Literal["optional", "required", "value"] = "optional"
    """Accepted answers to a gold of 2516_8. optional: 2516_8 or 2516. required: only with the subscript. value: also
    1358."""
    log: Literal["either", "natural", "ten"] = "either"
    """The base of a `log` without one. either: the other side decides, so that log 2 is ln 2 and log_{10} 2."""
    colon: Literal["auto", "ratio", "time"] = "auto"
    """The meaning of `4:30`. auto: a time of day where both sides may be one, else a ratio."""
    factors: Literal["auto", "commute", "ordered"] = "auto"
    """Whether AB equals BA. auto: yes, unless the problem speaks of matrices, or a side has A^{-1} or A^T and another
    capital letter. ordered: capital letters never commute."""
    mixed: Literal["sum", "product"] = "sum"
    """Whether 2\\frac13 is 7/3 or 2/3. With a blank and a slash, 2 1/3 is 7/3 in either case."""
    signs: Literal["auto", "any", "positive"] = "auto"
    """positive: letters below roots and in logarithms are positive, as masses and frequencies are, so that
    \\sqrt{\\omega^2} is \\omega; coordinates, times, charges and angles may be negative. auto: where a problem is of
    physics."""
    comma: Literal["auto", "decimal", "answers"] = "auto"
    """decimal: gold and answers have decimal commas, so that 2,25 is 2.25 and 1.234 may be 1234; an answer may have
    points as well. answers: the same, of a gold with a point. auto: a comma is read as the other side has it."""
    options: tuple[str, ...] = ()
    """The texts of the options, if gold is the letter of one. Its text is then a right answer too."""

    def changed_options(self) -> dict[str, Any]:
        """Return the options that differ from their defaults."""
        return {field.name: value for field in fields(self) if (value := getattr(self, field.name)) != field.default}


DEFAULT = Policy()


def parse_policy(arguments: Mapping[str, Any]) -> Policy:
    """Return the policy that `arguments` describe. Raises ConfigError, which names every mistake."""
    if not arguments:
        return DEFAULT
    options = {name: tuple(value) if isinstance(value, list) else value for name, value in arguments.items()}
    try:
        return _checked_policy(tuple(sorted(options.items())))
    except TypeError as error:
        # An unhashable value is never allowed.
        raise ConfigError(f"math verifier: {error}.") from error


@lru_cache(maxsize=256)
def _checked_policy(options: tuple[tuple[str, Any], ...]) -> Policy:
    known = _ALLOWED
    mistakes = []
    for name, value in options:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            mistakes.append(f"there is no option {name!r}" + (f" (did you mean {close[0]!r}?)" if close else ""))
            continue
        is_allowed, description = _ALLOWED[name]
        if not is_allowed(value):
            mistakes.append(f"{name} is {value!r}, expected {description}")
    if mistakes:
        raise ConfigError(f"math verifier: {'; '.join(mistakes)}.", f"Its options are {', '.join(known)}.")
    return Policy(**dict(options))


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_small_count(value: object) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 100)


def _choice(*choices: str) -> tuple[Any, str]:
    return (lambda value: value in choices), f"one of {', '.join(choices)}"


_ALLOWED: dict[str, tuple[Any, str]] = {
    "rounding": (lambda value: isinstance(value, bool) or value == "measured", "true, false or measured"),
    "decimals": (_is_small_count, "a whole number of at most 100"),
    "tolerance": (lambda value: value is None or (_is_number(value) and 0 <= value < 1), "a number from 0 to below 1"),
    "answer_digits": (_is_small_count, "a whole number of at most 100"),
    **{name: _choice(*get_args(hint)) for name, hint in get_type_hints(Policy).items() if get_origin(hint) is Literal},
    "options": (
        lambda value: isinstance(value, tuple) and len(value) <= 26 and all(isinstance(text, str) for text in value),
        "a list of at most 26 texts",
    ),
}
"""The check of each option's value, and the allowed values as the message names them."""


class Spent(Exception):
    """The budget of a verdict is used up."""


class _Account(threading.local):
    """The steps left to the verdict that this thread is working on."""

    steps_left: int = _UNLIMITED
    is_open: bool = False


_ACCOUNT = _Account()


def charge(steps: int) -> None:
    """Charge work that is about to be done. Raises Spent if it goes beyond the budget."""
    steps_left = _ACCOUNT.steps_left - steps
    _ACCOUNT.steps_left = steps_left
    if steps_left < 0:
        raise Spent


def seconds_left() -> float:
    """Return the rest of the budget as CPU seconds, for work that does not count steps."""
    return min(_ACCOUNT.steps_left, MAX_STEPS) * SECONDS_A_STEP


def digit_steps(bits: int) -> int:
    """Return the steps of one operation on rationals of this many bits, including their common divisor."""
    return 1 + bits * bits // 1_000_000


class StepBudget:
    """A context manager that limits the work inside to one budget. An inner one uses the budget of the outer one."""

    __slots__ = ("_account_before", "_is_separate", "_steps")

    def __init__(self, steps: int = MAX_STEPS, *, separate: bool = False) -> None:
        """separate: the budget is a new one in any case."""
        self._steps = steps
        self._is_separate = separate

    def __enter__(self) -> Self:
        self._account_before = _ACCOUNT.steps_left, _ACCOUNT.is_open
        if self._is_separate or not _ACCOUNT.is_open:
            _ACCOUNT.steps_left, _ACCOUNT.is_open = self._steps, True
        return self

    def __exit__(self, *_: object) -> None:
        steps_before, was_open = self._account_before
        if self._is_separate or not was_open:
            _ACCOUNT.steps_left, _ACCOUNT.is_open = steps_before, was_open


def remembered(maxsize: int) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Decorate a function with a cache that stores results with their steps, and charges the steps at each use."""

    def decorate(function: Callable[..., T]) -> Callable[..., T]:
        known: dict[tuple[Any, ...], tuple[T, int]] = {}

        @wraps(function)
        def call(*args: Any) -> T:
            if (entry := known.get(args)) is not None:
                value, price = entry
                if price:
                    charge(price)
                return value
            before = _ACCOUNT.steps_left
            value = function(*args)
            if isinstance(args[0], str) and len(args[0]) > MAX_REMEMBERED_CHARS:
                return value
            if len(known) >= maxsize:
                # Clearing the whole cache is faster than tracking the last uses.
                known.clear()
            known[args] = value, before - _ACCOUNT.steps_left
            return value

        return call

    return decorate


class Sameness(NamedTuple):
    """Whether two sides are the same, and which rung of the ladder decided that."""

    same: bool | None
    """None if nothing could be concluded."""
    rung: str
    hedged: bool = False
    """The answer holds gold among other values."""


SAME_NUMBER, OTHER_NUMBER = Sameness(True, "exact"), Sameness(False, "exact")
SAME_STRUCTURE, OTHER_STRUCTURE = Sameness(True, "structure"), Sameness(False, "structure")
UNDECIDED = Sameness(None, "structure")
OPEN = Sameness(None, "open")
"""No rule can decide whether both sides mean the same, so the verdict has no score. `UNDECIDED` only passes to the next
rung."""


class TooLarge(Exception):
    """A budget was met; the message names it."""


class UnreadableAnswer(Exception):
    """The text is not an answer that the reader knows."""


class _Topics(NamedTuple):
    """The topics of a problem."""

    percent: bool
    ratio: bool
    matrices: bool
    order: bool


@lru_cache(maxsize=REMEMBERED_PROBLEMS)
def _topics(problem: str) -> _Topics:
    """Return the topics of a problem, which are remembered: problems repeat, once for each completion of a group."""
    return _Topics(
        percent=_PERCENT.search(problem) is not None,
        ratio=_RATIO.search(problem) is not None,
        matrices=_MATRICES.search(problem) is not None,
        order=_ORDER.search(_NO_ORDER.sub(" ", problem)) is not None,
    )


def policy_for(problem: str, gold: str | None, policy: Policy, info: Mapping[str, Any]) -> Policy:
    """Return the policy. Options that the row leaves open are set by the problem's text."""
    topics = _topics(problem)
    if policy.percent == "either" and "percent" not in info and not topics.percent:
        policy = replace(policy, percent="value")
    if policy.colon == "auto" and topics.ratio:
        policy = replace(policy, colon="ratio")
    if policy.factors == "auto" and topics.matrices:
        policy = replace(policy, factors="ordered")
    if policy.order == "auto" and gold and (_asks_for_parts(problem, gold) or topics.order):
        policy = replace(policy, order="ordered")
    if policy.signs == "auto" and gold and _ROOT.search(gold) and _is_of_physics(problem):
        policy = replace(policy, signs="positive")
    if policy.letters == "auto" and gold and (letters := _LAST_LETTERS.search(gold[:MAX_QUANTITY_CHARS])):
        is_glued = gold[letters.start(1) - 1].isdigit()
        if not _has_variable(problem if is_glued else _IN_UNITS.sub(" ", problem), letters[1]):
            policy = replace(policy, letters="units")
        elif policy.units == "convert":
            # Where V is a letter, `5` does not answer `5 V`, but `5 volts` does.
            policy = replace(policy, units="strict")
    return policy


def _is_of_physics(problem: str) -> bool:
    """Tell whether a problem has two words of physics: `a particle of mass m`, `the frequency of the oscillator`."""
    return len(WORDS["physics"].intersection(re.findall("[a-z]+", problem.lower()))) > 1


def _has_variable(problem: str, letters: str) -> bool:
    """Tell whether the problem's formulas, or its text if it has none, contain a letter that does not follow a
    number."""
    text = "".join(_FORMULA.findall(problem)) if "$" in problem or "\\(" in problem else problem
    return any(re.search(rf"(?<![A-Za-z\\\d])(?<!\d\s){letter}(?![A-Za-z])", text) for letter in letters)


def _asks_for_parts(problem: str, gold: str) -> bool:
    """Tell whether gold, `5; 7`, answers the parts (a) and (b) of the problem. Their order then counts."""
    return ";" in gold and _PARTS.search(problem) is not None
