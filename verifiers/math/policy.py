"""Defines the options of the math verifier (`Policy`), the budget of work for a verdict, and results of comparisons.

The policy decides questions that mathematics alone does not, with one option for each, such as {"units": "strict"}. A
row sets options in its `verifier_args`, and `equivalent` takes them as keywords. The text of the problem sets some of
the remaining options (`policy_for`), for example if it asks for a percentage, a ratio, or an order.

The budget of a verdict is a number of steps of about a microsecond. Before its work, a function takes the steps of the
work from the budget (`charge`). `Spent` is raised if too few are left. Separate limits would multiply, as in a sum of
sums. A count of steps gives the same verdict on every machine, but a clock does not.

A cached result (`remembered`) costs its steps at each use, so no verdict depends on earlier ones. Outside of a verdict
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
"""The number of problems whose topics are cached."""
MAX_QUANTITY_CHARS = 40
"""The number of characters of gold that are searched for a number with a letter, such as `5T`."""
_LAST_LETTERS = re.compile(r"^[^A-Za-z]*\d[^A-Za-z]*?([A-Za-z]{1,3})$")
"""The T of a gold of `5T`."""
_IN_UNITS = re.compile(r"\b(?:in|units? of)\s(?:[A-Za-z]{1,3})(?=[\s.,;:?!)\]]*(?:$|[.,;:?!)\]]\s|\(|to |with ))")
"""The `in V` of `Find the voltage in V.`, which shows that V is a unit in a gold of `5 V`."""
_FORMULA = re.compile(r"\$[^$]{1,400}\$|\\\(.{1,400}?\\\)", re.DOTALL)
# The next patterns match problems whose text sets an option.
_PERCENT = re.compile(ANY_OF["percentages"], re.IGNORECASE)
"""A problem that may ask for a percentage."""
_ORDER = re.compile(ANY_OF["orders"], re.IGNORECASE)
"""A problem that asks to arrange something."""
_NO_ORDER = re.compile(ANY_OF["no_orders"], re.IGNORECASE)
"""Words that only look like a request to arrange something: `ordered pair`, `in order to`."""
_PARTS = re.compile(r"[(（](?:a|i|1)[)）].*[(（](?:b|ii|2)[)）]", re.DOTALL)
"""A problem with the parts (a) and (b)."""
_ROOT = re.compile(r"\\sqrt|\\l(?:n|og)|\^\{?\(?(?:-?\d/2|-?\\[dt]?frac)|\^\{?\d\}?\s*=")
"""A root, a logarithm or a fractional exponent in gold. Its value may depend on whether letters are positive."""
_MATRICES = re.compile(r"\bmatri(?:x|ces)\b|\bcommutators?\b|\bcartesian\b|\bdo(?:es)? not commute|矩阵", re.IGNORECASE)
"""A problem about matrices or operators, which do not commute."""
_RATIO = re.compile(r"\bratios?\b|\bproportions?\b|\bodds\b|\bscale\b|比", re.IGNORECASE)

MAX_STEPS = 25_000
"""The budget of a verdict: six times the cost of the most expensive of ten thousand labelled rows."""
MAX_GOLD_STEPS = MAX_STEPS // 2
"""If the budget is exceeded and gold alone costs more than this, the verdict blames gold, else the answer."""
SECONDS_A_STEP = 1e-6
_UNLIMITED = 1 << 60
T = TypeVar("T")
CACHED_READINGS = 8_192
"""The number of texts that each reading function caches."""
MAX_REMEMBERED_CHARS = 300
"""The longest text that is cached. Keeps the trees of long answers from filling the memory."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules by which two answers are the same. The defaults fit most data sets of mathematics."""

    rounding: bool | Literal["measured"] = True
    """Whether gold may be a rounded number. These answers match:

        rounding    gold        answer
        true        21.93       307/14: an exact value that rounds to gold, or is truncated to it
        true        21.93       21.9312: a decimal that rounds to gold, with two decimals more
        measured    0.85 m      0.849 m: 1 % apart, because gold has a point, a power of ten or a unit
        measured    138         138.2: a decimal that rounds to a whole gold of three digits
        measured    1/3         0.333: a decimal of three digits for a fraction or a root

    With true, a gold is rounded if it has two decimals or more, or one decimal and three digits or more. With measured,
    an answer needs two significant digits. With false, no gold is rounded."""
    decimals: int | None = None
    """Numbers must agree only to this many decimals."""
    tolerance: float | None = None
    """Numbers may differ by this relative error."""
    answer_digits: int | None = None
    """The number of significant digits that a decimal answer to an exact gold needs. All its digits must be right."""
    units: Literal["convert", "strict", "ignore"] = "convert"
    """convert: either side may leave out its unit, and a different unit is converted: 5 cm is 50 mm. strict: if gold
    has a unit, the answer needs one. ignore: only the numbers are compared."""
    letters: Literal["auto", "units", "variables"] = "auto"
    """The meaning of T in a gold of `5T`. units: a unit, so that 5 matches. variables: a variable. auto: a unit after a
    blank (`5 T`), if the answer has a unit, or if the problem's text has no variable T; else a variable."""
    percent: Literal["value", "either"] = "value"
    """value: 50% is 0.5 and does not match a gold of 50. If gold is 50%, the answers 50 and 0.5 match. either: 50% also
    matches a gold of 50."""
    degrees: Literal["convert", "strict"] = "convert"
    """convert: 30 degrees is pi/6. strict: degrees match only degrees."""
    order: Literal["auto", "ordered", "unordered"] = "auto"
    """auto: bare lists and sets are unordered; tuples, vectors and matrices are ordered."""
    constant: Literal["required", "optional"] = "required"
    """Whether the answer must have the `+ C` of gold."""
    parameters: Literal["rename", "strict"] = "rename"
    """rename: k\\pi with integer k is n\\pi with integer n."""
    base: Literal["optional", "required", "value"] = "optional"
    """Accepted answers to a gold of 2516_8. optional: 2516_8 and 2516. required: only 2516_8. value: also 1358."""
    log: Literal["either", "natural", "ten"] = "either"
    """The base of a `log` without a base. either: e or ten, so that log 2 matches ln 2 and log_{10} 2."""
    colon: Literal["auto", "ratio", "time"] = "auto"
    """The meaning of `4:30`. auto: a time of day if both sides may be one, else a ratio."""
    factors: Literal["auto", "commute", "ordered"] = "auto"
    """commute: AB equals BA. ordered: AB is not BA for capital letters A and B. auto: `ordered` if the problem is about
    matrices, or if a side has A^{-1} or A^T and another capital letter; else `commute`."""
    mixed: Literal["sum", "product"] = "sum"
    """The meaning of 2\\frac13. sum: 7/3. product: 2/3. (With a blank and a slash, 2 1/3 is always 7/3.)"""
    signs: Literal["auto", "any", "positive"] = "auto"
    """positive: letters in roots and logarithms are positive, like masses and frequencies, so that \\sqrt{\\omega^2} is
    \\omega. Coordinates, times, charges and angles may still be negative. any: letters may be negative. auto: positive
    if the problem is about physics."""
    comma: Literal["auto", "decimal", "answers"] = "auto"
    """decimal: gold and answers have decimal commas: 2,25 is 2.25, and 1.234 may be 1234. Answers may also have points.
    answers: answers have decimal commas, and gold has points. auto: the other side shows the meaning of a comma."""
    options: tuple[str, ...] = ()
    """The texts of the options, if gold is the letter of an option. The text of this option is then also right."""

    def changed_options(self) -> dict[str, Any]:
        """Return the options that differ from their defaults."""
        return {field.name: value for field in fields(self) if (value := getattr(self, field.name)) != field.default}


DEFAULT = Policy()


def parse_policy(arguments: Mapping[str, Any]) -> Policy:
    """Return the policy with these options. Raises ConfigError with all mistakes."""
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
    """Return the policy with these options. They are hashable, so that it can be cached. Raises ConfigError."""
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
"""Maps an option to a check of its value, and to the allowed values in words."""


class Spent(Exception):
    """The budget of a verdict is used up."""


class _Account(threading.local):
    """The remaining steps of the current verdict in this thread."""

    steps_left: int = _UNLIMITED
    is_open: bool = False


_ACCOUNT = _Account()


def charge(steps: int) -> None:
    """Take the steps of some work from the budget, before the work is done. Raises Spent if too few are left."""
    steps_left = _ACCOUNT.steps_left - steps
    _ACCOUNT.steps_left = steps_left
    if steps_left < 0:
        raise Spent


def seconds_left() -> float:
    """Return the remaining budget in CPU seconds, for work whose steps are not counted."""
    return min(_ACCOUNT.steps_left, MAX_STEPS) * SECONDS_A_STEP


def digit_steps(bits: int) -> int:
    """Return the steps of one operation on rationals of this many bits, and of reducing the result."""
    return 1 + bits * bits // 1_000_000


class StepBudget:
    """A context manager that limits the work inside to one budget. A nested one shares the budget of the outer one."""

    __slots__ = ("_account_before", "_is_separate", "_steps")

    def __init__(self, steps: int = MAX_STEPS, *, separate: bool = False) -> None:
        """separate: use a new budget even if nested."""
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
    """Decorate a function with a cache. A cached result costs the same steps as its first computation."""

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
    """The outcome of a comparison: whether two sides are the same, and the kind of comparison (*rung*) that decided."""

    same: bool | None
    """None if the rung could not decide."""
    rung: str
    hedged: bool = False
    """Whether the answer lists gold among other values."""


SAME_NUMBER, OTHER_NUMBER = Sameness(True, "exact"), Sameness(False, "exact")
SAME_STRUCTURE, OTHER_STRUCTURE = Sameness(True, "structure"), Sameness(False, "structure")
UNDECIDED = Sameness(None, "structure")
OPEN = Sameness(None, "open")
"""`UNDECIDED` passes to the next kind of comparison. `OPEN` says that no rule can decide: the verdict has no score."""


class TooLarge(Exception):
    """A limit was exceeded. The message names the limit."""


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
    """Return the topics of a problem. Cached, because all completions of a group have the same problem."""
    return _Topics(
        percent=_PERCENT.search(problem) is not None,
        ratio=_RATIO.search(problem) is not None,
        matrices=_MATRICES.search(problem) is not None,
        order=_ORDER.search(_NO_ORDER.sub(" ", problem)) is not None,
    )


def policy_for(problem: str, gold: str | None, policy: Policy, info: Mapping[str, Any]) -> Policy:
    """Return the policy with options set by the problem's text, if the row leaves them at their defaults."""
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
            # V is a variable of the problem: `5` does not answer `5 V`, but `5 volts` does.
            policy = replace(policy, units="strict")
    return policy


def _is_of_physics(problem: str) -> bool:
    """Tell whether a problem has two words of physics: `a particle of mass m`, `the frequency of the oscillator`."""
    return len(WORDS["physics"].intersection(re.findall("[a-z]+", problem.lower()))) > 1


def _has_variable(problem: str, letters: str) -> bool:
    """Tell whether a problem uses one of the letters as a variable. A letter after a number is not a variable.

    Only formulas are searched, or the whole text of a problem without formulas.
    """
    text = "".join(_FORMULA.findall(problem)) if "$" in problem or "\\(" in problem else problem
    return any(re.search(rf"(?<![A-Za-z\\\d])(?<!\d\s){letter}(?![A-Za-z])", text) for letter in letters)


def _asks_for_parts(problem: str, gold: str) -> bool:
    """Tell whether gold answers parts (a) and (b) of the problem, as `5; 7` does. Then the order matters."""
    return ";" in gold and _PARTS.search(problem) is not None
