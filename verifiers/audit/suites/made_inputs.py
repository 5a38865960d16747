"""Makes further inputs that resemble the inputs of a suite's cases, so that the problem should allow them.

    make_inputs([([1, 2], 2), ([7], 1)], 3, seed=0)      ([2, 2], 2), ([7, 1], 2), ([1], 1)

    inputs of the cases            made inputs
    [3, 1, 2] and [5, 9]           lists of 2 to 4 integers from 1 to 14, in any order, perhaps repeated
    "24-01-2000", "01-12-1999"     texts with digits and dashes in the same positions
    ([1, 2], 2), ([7], 1)          a list and its length

Made inputs keep the properties that all seen values share: types, signs, sorted order (also rotated), distinct items,
equal lengths, matching brackets, and the kind of character in each position. They also keep three relations between two
arguments: the first is the length of the second, both have the same length, or the first is never larger.

Ranges are widened by about half. Signs and emptiness never change, since the problem may not allow values that its
tests do not show.

Inputs on stdin are read as values, so that further inputs can be made from them, and values are written as inputs:

    "3\\n1 5 2\\n", "2\\n7 7\\n"              (3, [1, 5, 2]), (2, [7, 7])
    "2 abc\\n", "5 x\\n"                    (2, "abc"), (5, "x")
    "2\\n1 2\\n3 4\\n", "1\\n5 6\\n"         (2, [(1, 2), (3, 4)]), (1, [(5, 6)])

If a line has the same number of words in all inputs, each word is a value; otherwise the line is a list. If the number
of lines varies, the lines from the second on are a list; they must all have the same number of words.
"""

from __future__ import annotations

import math
import operator
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, permutations
from typing import Any, TypeVar

MIN_SEEN = 2
"""Minimum number of cases from which shared properties are learnt."""

TRIES = 12
"""Maximum number of attempts for each requested input."""

FEW_VALUES = 2
"""If all cases have at most this many different values, and one of them twice, the value is a choice among them."""

MAX_CHANCE = 0.01
"""Rotation becomes a rule if all seen lists are rotated and the probability of this by chance is below MAX_CHANCE."""

EQUAL_SHARE = 0.2
"""The share of inputs in which a number may be set equal to another argument."""

MIN_PAIRS = 3
"""Two arguments that are equal in all cases are kept equal only if they have at least this many different values."""

ROOM = 3
"""Minimum widening of a range of integers."""

MAX_POOL = 500
"""Maximum number of seen values that are kept for reuse."""

Arguments = tuple[Any, ...]
"""The arguments of one input."""

T = TypeVar("T")

_Feature = tuple[str, int]
"""A number of an argument: ("value", 0) is the first argument, ("length", 1) the length of the second one."""

_SIGNS: dict[str, Callable[[float, float], bool]] = {"==": operator.eq, "<": operator.lt, "<=": operator.le}


@dataclass(slots=True)
class Shape:
    """The common properties of the values seen for one argument."""

    values: list[Any]
    """The seen values."""
    parts: Shape | None = None
    """The shape of the items of lists and sets, or of the values of dicts."""
    rules: list[Callable[[Any], bool]] = field(default_factory=list)
    """Rules that hold for every seen value."""

    @property
    def kind(self) -> type | None:
        """The type of the values, or None if they have several."""
        kinds = {type(value) for value in self.values}
        return kinds.pop() if len(kinds) == 1 else None

    @property
    def is_choice(self) -> bool:
        """Whether the value seems to be a choice among few values."""
        texts = {repr(value) for value in self.values}
        return len(self.values) > len(texts) and len(texts) <= FEW_VALUES


def make_inputs(seen: Sequence[Arguments], count: int, seed: int) -> list[Arguments]:
    """Return up to `count` new inputs, or an empty list if there are too few seen inputs to learn from."""
    if len(seen) < MIN_SEEN or len({len(arguments) for arguments in seen}) != 1 or not seen[0]:
        return []
    rng = random.Random(seed)
    shapes = [learn([arguments[index] for arguments in seen]) for index in range(len(seen[0]))]
    relations = list(_relations(seen))
    known = {repr(arguments) for arguments in seen}
    inputs: list[Arguments] = []
    for _ in range(TRIES * count):
        arguments = list(rng.choice(seen))
        for index in rng.sample(range(len(arguments)), rng.choice((1, 1, min(2, len(arguments)), len(arguments)))):
            for _ in range(rng.choice((1, 1, 2, 3))):
                arguments[index] = vary(arguments[index], shapes[index], rng)
        _equate(arguments, shapes, rng)
        _restore_lengths(arguments, relations)
        varied = tuple(arguments)
        if repr(varied) in known or not all(_holds(varied, *relation) for relation in relations):
            continue
        known.add(repr(varied))
        inputs.append(varied)
        if len(inputs) == count:
            break
    return inputs


def _features(arguments: Arguments) -> dict[_Feature, float]:
    features: dict[_Feature, float] = {}
    for index, value in enumerate(arguments):
        if isinstance(value, int | float) and not isinstance(value, bool):
            features["value", index] = value
        elif isinstance(value, list | tuple | str | set | dict):
            features["length", index] = len(value)
    return features


def _relations(seen: Sequence[Arguments]) -> Iterator[tuple[_Feature, str, _Feature]]:
    """Yield the relations between two arguments that hold in all cases."""
    features = [_features(arguments) for arguments in seen]
    shared = set(features[0]).intersection(*features[1:])
    for first, second in permutations(sorted(shared), 2):
        pairs = [(each[first], each[second]) for each in features]
        signs = [sign for sign, holds in _SIGNS.items() if all(holds(*pair) for pair in pairs)]
        if first[0] == second[0] == "value" and signs[:1] == ["=="] and len(set(pairs)) < MIN_PAIRS:
            continue
        if signs and first[1] != second[1]:
            yield first, signs[0], second


def _equate(arguments: list[Any], shapes: Sequence[Shape], rng: random.Random) -> None:
    """Sometimes set a number equal to another argument, if that value is within the range of the number."""
    index, other = rng.randrange(len(arguments)), rng.randrange(len(arguments))
    value: Any = arguments[other]
    shape = shapes[index]
    is_number = type(value) in (int, float) and shape.kind is type(value)
    if rng.random() < EQUAL_SHARE and is_number and not shape.is_choice:
        low, high = _bounds(shape.values)
        if low <= value <= high:
            arguments[index] = value


def _holds(arguments: Arguments, first: _Feature, sign: str, second: _Feature) -> bool:
    features = _features(arguments)
    return first in features and second in features and _SIGNS[sign](features[first], features[second])


def _restore_lengths(arguments: list[Any], relations: Sequence[tuple[_Feature, str, _Feature]]) -> None:
    """Restore relations of lengths: set a number to the length of a list, or cut two lists to the same length."""
    for (first, index), sign, (second, other) in relations:
        if sign != "==":
            continue
        if first == "value" and second == "length" and isinstance(arguments[index], int):
            arguments[index] = len(arguments[other])
        elif first == second == "length" and all(isinstance(arguments[each], list | str) for each in (index, other)):
            length = min(len(arguments[index]), len(arguments[other]))
            arguments[index], arguments[other] = arguments[index][:length], arguments[other][:length]


def learn(values: Sequence[Any]) -> Shape:
    """Return the common properties of values."""
    shape = Shape(list(values)[:MAX_POOL])
    kind = shape.kind
    if kind in (list, tuple, set):
        elements = [item for value in values for item in value]
        shape.parts = learn(elements) if elements else None
        shape.rules = [rule for rule in _LIST_RULES if all(map(rule, values))]
        if {_is_sorted, _is_falling} <= {*shape.rules}:  # All items are equal, which does not show an order.
            shape.rules = [rule for rule in shape.rules if rule not in (_is_sorted, _is_falling)]
        if kind is not set and _are_rotated(values):
            shape.rules.append(_is_rotated)
        least = min(2, *(len(value) for value in values)) if values else 0
        shape.rules.append(lambda value: len(value) >= least)
        if len({len(value) for value in values}) == 1 and len(values) > 1:
            length = len(values[0])
            shape.rules.append(lambda value: len(value) == length)
    elif kind is dict and any(values):
        shape.parts = learn([item for value in values for item in value.values()])
    elif kind is str:
        shape.rules = [rule for rule in _TEXT_RULES if all(map(rule, values))]
        patterns = {_pattern(value) for value in values}
        if len(patterns) == 1 and len(values) > 1 and not all(value.isalpha() for value in values):
            shape.rules.append(lambda value: _pattern(value) in patterns)
    return shape


def _is_sorted(elements: Sequence[Any]) -> bool:
    try:
        return all(first <= second for first, second in pairwise(elements))
    except TypeError:
        return False


def _is_falling(elements: Sequence[Any]) -> bool:
    return _is_sorted(list(elements)[::-1])


def _is_rotated(elements: Sequence[Any]) -> bool:
    """Return whether a list is sorted, or becomes sorted by moving a part from its end to its front."""
    try:
        return sum(bool(first > second) for first, second in pairwise([*elements, *elements[:1]])) <= 1
    except TypeError:
        return False


def _are_rotated(values: Sequence[Any]) -> bool:
    """Return whether all lists are rotated sorted lists, and this is unlikely to be chance.

    Of the n! orders of n different items, n are rotations. Repeated items have fewer orders.
    """
    log_chance = 0.0
    for value in filter(None, values):
        repeats = Counter(map(repr, value)).values()
        log_orders = math.lgamma(len(value) + 1) - sum(math.lgamma(count + 1) for count in repeats)
        log_chance += min(0.0, math.log(len(value)) - log_orders)
    return log_chance < math.log(MAX_CHANCE) and all(map(_is_rotated, values))


def _has_equal_rows(value: Any) -> bool:
    return all(isinstance(item, list | tuple) for item in value) and len({len(item) for item in value}) <= 1


def _has_matching_brackets(text: str) -> bool:
    open_brackets: list[str] = []
    pairs = {")": "(", "]": "[", "}": "{", ">": "<"}
    for char in text:
        if char in pairs.values():
            open_brackets.append(char)
        elif char in pairs and (not open_brackets or open_brackets.pop() != pairs[char]):
            return False
    return not open_brackets


def _pattern(text: str) -> str:
    """Return the text with "0" for each digit and "a" for each letter: `A-12` -> `a-00`."""
    return re.sub(r"[^\W\d_]", "a", re.sub(r"\d", "0", text))


_LIST_RULES: tuple[Callable[[Any], bool], ...] = (
    *(_is_sorted, _is_falling, _has_equal_rows, bool),
    lambda value: len({repr(item) for item in value}) == len(value),
)
_TEXT_RULES: tuple[Callable[[str], bool], ...] = (
    *(str.isdigit, str.isalpha, str.isalnum, str.islower, str.isupper, str.istitle, str.isidentifier, str.isascii),
    *(_has_matching_brackets, bool),
    lambda text: re.fullmatch(r"-?\d+(?:[.,]\d+)?", text) is not None,
    lambda text: set(text) <= {"0", "1"},
    lambda text: text == " ".join(text.split()),
    lambda text: text == text[::-1],
    lambda text: not text.startswith("0"),
)


def vary(value: Any, shape: Shape, rng: random.Random) -> Any:
    """Return a value of the shape that is near to this one, or else one of the seen values."""
    if not shape.is_choice and shape.kind is type(value):
        for _ in range(8):
            varied = _vary(value, shape, rng)
            if repr(varied) != repr(value) and all(rule(varied) for rule in shape.rules):
                return varied
    return rng.choice(shape.values)


def _vary(value: Any, shape: Shape, rng: random.Random) -> Any:  # noqa: PLR0911  (One per type.)
    match value:
        case bool():
            return rng.random() < 0.5
        case int():
            least, most = map(int, _bounds(shape.values))
            steps = [value + step for step in (-2, -1, 1, 2)]
            return min(max(rng.choice([*steps, least, most, rng.randint(least, most)]), least), most)
        case float():
            low, high = _bounds(shape.values)
            digits = max(len(repr(each).partition(".")[2]) for each in shape.values)
            moved = rng.choice([value + 1, value - 1, rng.uniform(low, high)])
            return round(float(min(max(moved, low), high)), min(digits, 12))
        case str():
            return _vary_text(value, shape, rng)
        case tuple() if value:
            index = rng.randrange(len(value))
            alike = [item for other in shape.values for item in other if type(item) is type(value[index])]
            return (*value[:index], vary(value[index], learn(alike[:MAX_POOL]), rng), *value[index + 1 :])
        case list():
            return _order(_vary_items(value, shape, rng), shape, rng)
        case set():
            return set(_vary_items(sorted(value, key=repr), shape, rng))
        case dict() if value and shape.parts is not None:
            varied = dict(value)
            key = rng.choice(list(varied))
            if rng.random() < 0.3 and len(varied) > 1:
                del varied[key]
            else:
                varied[key] = vary(varied[key], shape.parts, rng)
            return varied
    return value


def _bounds(values: Sequence[float]) -> tuple[float, float]:
    """Return the seen range, widened by about half without changing signs."""
    low, high = min(values), max(values)
    room = max((high - low) / 2 + 1, ROOM if low < high else 1)
    if low > 0:
        return max(low - room, min(1, low)), high + room
    return (0 if low == 0 else low - room), (min(0, high + room) if high <= 0 and low < 0 else high + room)


def _vary_text(text: str, shape: Shape, rng: random.Random) -> str:
    """Return a text with its words or its characters edited."""
    words = text.split(" ")
    if len(words) > 1 and rng.random() < 0.5:
        pool = [word for value in shape.values for word in value.split(" ")]
        return " ".join(_edit(words, pool, len(words) + 1, lambda word: rng.choice(pool), rng))
    alphabet = "".join(shape.values) or "a"
    return "".join(_edit(list(text), alphabet, _longest(shape), lambda char: rng.choice(alphabet), rng))


def _edit(elements: list[T], pool: Sequence[T], most: int, vary_item: Callable[[T], T], rng: random.Random) -> list[T]:
    """Return the list with an item dropped, doubled, swapped, added from the pool or varied, or the list reversed."""
    edited, has_room = list(elements), len(elements) < most
    index = rng.randrange(len(elements)) if elements else 0
    match rng.randrange(6):
        case 0 if elements:
            del edited[index]
        case 1 if elements and has_room:
            edited.insert(index, elements[index])
        case 2 if has_room:
            edited.insert(index, rng.choice(pool))
        case 3 if len(elements) > 1:
            other = rng.randrange(len(elements))
            edited[index], edited[other] = edited[other], edited[index]
        case 4:
            edited.reverse()
        case _ if elements:
            edited[index] = vary_item(elements[index])
    return edited


def _longest(shape: Shape) -> int:
    return max(map(len, shape.values)) * 3 // 2 + 1


def _vary_items(elements: list[Any], shape: Shape, rng: random.Random) -> list[Any]:
    if (parts := shape.parts) is None:
        return elements
    return _edit(elements, parts.values, _longest(shape), lambda item: vary(item, parts, rng), rng)


def _order(elements: list[Any], shape: Shape, rng: random.Random) -> list[Any]:
    rises, falls = _is_sorted in shape.rules, _is_falling in shape.rules
    if rises == falls and _is_rotated not in shape.rules:
        return elements
    try:
        ordered = sorted(elements, reverse=falls)
    except TypeError:  # Items of several types cannot be sorted; the rules refuse the list later.
        return elements
    start = 0 if rises or falls or not elements else rng.randrange(len(elements))
    return ordered[start:] + ordered[:start]


Value = Any
_Lines = Sequence[Sequence[Value]]


def read_inputs(texts: Sequence[str]) -> tuple[list[tuple[Value, ...]], Callable[[Sequence[Value]], str]] | None:
    """Return the inputs as values, and a function that writes values as an input.

    Returns None if the inputs do not have a common form.
    """
    inputs = [[[_word(word) for word in line.split()] for line in text.strip().splitlines()] for text in texts]
    if not all(inputs) or any(_write(lines) != _squeezed(text) for lines, text in zip(inputs, texts, strict=True)):
        return None
    if len({len(lines) for lines in inputs}) == 1:
        return _read_lines(inputs, len(inputs[0]))
    widths = {len(line) for lines in inputs for line in lines[1:]}
    if len(widths) != 1 or 0 in widths:
        return None
    wide = widths != {1}
    read = _read_lines([lines[:1] for lines in inputs], 1)
    rests = [[tuple(line) if wide else line[0] for line in lines[1:]] for lines in inputs]
    values = [(*first, rest) for first, rest in zip(read[0], rests, strict=True)]

    def write(arguments: Sequence[Value]) -> str:
        return read[1](arguments[:-1]) + _write([line if wide else [line] for line in arguments[-1]])

    return values, write


def _read_lines(
    inputs: Sequence[_Lines], count: int
) -> tuple[list[tuple[Value, ...]], Callable[[Sequence[Value]], str]]:
    """Return the values of inputs with `count` lines, and a function that writes values as an input."""
    widths = [{len(lines[index]) for lines in inputs} for index in range(count)]
    # None stands for a line whose number of words varies, which is a list.
    fixed = [width.pop() if len(width) == 1 else None for width in widths]

    def write(arguments: Sequence[Value]) -> str:
        rest = list(arguments)
        lines = []
        for width in fixed:
            taken = rest[0] if width is None else rest[:width]
            rest = rest[1 if width is None else width :]
            lines.append(taken)
        return _write(lines)

    values: list[tuple[Value, ...]] = []
    for lines in inputs:
        parts = [[list(line)] if width is None else line for line, width in zip(lines, fixed, strict=True)]
        values.append(tuple(value for part in parts for value in part))
    return values, write


def _word(word: str) -> Value:
    """Return the number that a word spells, or else the word."""
    for kind in (int, float):
        try:
            value = kind(word)
        except ValueError:
            continue
        if str(value) == word:
            return value
    return word


def _write(lines: _Lines) -> str:
    return "".join(" ".join(map(str, line)) + "\n" for line in lines)


def _squeezed(text: str) -> str:
    return "".join(" ".join(line.split()) + "\n" for line in text.strip().splitlines())
