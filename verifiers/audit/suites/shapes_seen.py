"""What the inputs of a suite have in common, so that further inputs can be made that the problem would allow.

    seen [3, 1, 2] and [5, 9]       lists of 1 to 4 whole numbers from 1 to 14, neither sorted nor without repeats
    seen "24-01-2000", "01-12-1999" texts of digits and dashes in these places
    seen ([1, 2], 2), ([7], 1)      the number is the length of the list

Whatever all seen values share is kept: types, signs, sorted order (rotated too), distinct items, equal lengths,
brackets that match, the sort of character in each place. Ranges are widened by half of what was seen, and signs and
emptiness never change: a problem may not allow what its tests do not show.
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

FEW_VALUES = 2
"""So few different values, in more cases than that, are taken for a choice between them."""

MAX_CHANCE = 0.01
"""How likely a rule may be by chance that is learnt all the same."""

MAX_POOL = 500
"""Parts of seen values that are kept to be used again."""

Arguments = tuple[Any, ...]


@dataclass(slots=True)
class Shape:
    """What the values seen at one position share."""

    values: list[Any]
    """All that were seen there."""
    parts: Shape | None = None
    """The shape of the items of lists, sets and the values of dictionaries."""
    keys: Shape | None = None
    rules: list[Callable[[Any], bool]] = field(default_factory=list)
    """What held for every value."""

    @property
    def kind(self) -> type | None:
        """The type of the values; None where they have several."""
        kinds = {type(value) for value in self.values}
        return kinds.pop() if len(kinds) == 1 else None

    @property
    def is_choice(self) -> bool:
        """Whether there seem to be few values to choose from."""
        texts = {repr(value) for value in self.values}
        return len(self.values) > len(texts) and len(texts) <= FEW_VALUES


def learn(values: Sequence[Any]) -> Shape:
    """Return what values have in common."""
    shape = Shape(list(values)[:MAX_POOL])
    kind = shape.kind
    if kind in (list, tuple, set):
        elements = [item for value in values for item in value]
        shape.parts = learn(elements) if elements else None
        shape.rules = [rule for rule in _LIST_RULES if all(rule(value) for value in values)]
        if kind is not set and _are_rotated(values):
            shape.rules.append(_is_rotated)
        if len({len(value) for value in values}) == 1 and len(values) > 1:
            length = len(values[0])
            shape.rules.append(lambda value: len(value) == length)
    elif kind is dict:
        shape.keys = learn([key for value in values for key in value]) if any(values) else None
        shape.parts = learn([item for value in values for item in value.values()]) if any(values) else None
    elif kind is str:
        shape.rules = [rule for rule in _TEXT_RULES if all(rule(value) for value in values)]
        patterns = {_pattern(value) for value in values}
        if len(patterns) == 1 and len(values) > 1 and not all(value.isalpha() for value in values):
            pattern = patterns.pop()
            shape.rules.append(lambda value: _pattern(value) == pattern)
    return shape


def _is_sorted(value: Any) -> bool:
    return _are_ordered(list(value))


def _is_falling(value: Any) -> bool:
    return _are_ordered(list(value)[::-1])


def _are_ordered(elements: list[Any]) -> bool:
    try:
        return all(first <= second for first, second in pairwise(elements))
    except TypeError:
        return False


def _is_rotated(value: Any) -> bool:
    """Whether a part was moved from the front of a sorted list to its end, or none was."""
    elements = list(value)
    try:
        falls: list[bool] = [first > second for first, second in pairwise([*elements, *elements[:1]])]
    except TypeError:
        return False
    return sum(falls) <= 1


def _are_rotated(values: Sequence[Any]) -> bool:
    """Whether all lists are rotated, and not by chance: of the orders of n different items, n are. Repeated items have
    fewer orders."""
    log_chance = 0.0
    for value in filter(None, values):
        repeats = Counter(map(repr, value)).values()
        log_orders = math.lgamma(len(value) + 1) - sum(math.lgamma(count + 1) for count in repeats)
        log_chance += min(0.0, math.log(len(value)) - log_orders)
    return log_chance < math.log(MAX_CHANCE) and all(map(_is_rotated, values))


def _is_distinct(value: Any) -> bool:
    return len({repr(item) for item in value}) == len(value)


def _has_equal_rows(value: Any) -> bool:
    return all(isinstance(item, list | tuple) for item in value) and len({len(item) for item in value}) <= 1


_LIST_RULES: tuple[Callable[[Any], bool], ...] = (_is_sorted, _is_falling, _is_distinct, _has_equal_rows, bool)


def _has_matching_brackets(text: str) -> bool:
    open_brackets: list[str] = []
    pairs = {")": "(", "]": "[", "}": "{", ">": "<"}
    for char in text:
        if char in pairs.values():
            open_brackets.append(char)
        elif char in pairs and (not open_brackets or open_brackets.pop() != pairs[char]):
            return False
    return not open_brackets


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?\d+(?:[.,]\d+)?", text) is not None


def _is_binary(text: str) -> bool:
    return set(text) <= {"0", "1"}


def _has_single_blanks(text: str) -> bool:
    return text == " ".join(text.split())


def _is_symmetric(text: str) -> bool:
    return text == text[::-1]


def _has_no_leading_zero(text: str) -> bool:
    return not text.startswith("0")


_TEXT_RULES: tuple[Callable[[str], bool], ...] = (
    *(str.isdigit, str.isalpha, str.isalnum, str.islower, str.isupper, str.istitle, str.isidentifier, str.isascii),
    *(_has_matching_brackets, _is_number, _is_binary, _has_single_blanks, _is_symmetric, _has_no_leading_zero, bool),
)


def _pattern(text: str) -> str:
    """Return the sort of each character: a digit, a letter, or the character itself."""
    return re.sub(r"[^\W\d_]", "a", re.sub(r"\d", "0", text))


def vary(value: Any, shape: Shape, rng: random.Random) -> Any:
    """Return another value of the shape, near to this one; the value itself where none came of it."""
    if shape.is_choice or shape.kind is None or type(value) is not shape.kind:
        return rng.choice(shape.values)
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
            low, high = _bounds([each for each in shape.values if isinstance(each, int)])
            low, high = int(low), int(high)
            steps = [value + step for step in (-2, -1, 1, 2)]
            return min(max(rng.choice([*steps, low, high, rng.randint(low, high)]), low), high)
        case float():
            low, high = _bounds([each for each in shape.values if isinstance(each, int | float)])
            digits = max(len(repr(each).partition(".")[2]) for each in shape.values)
            moved = rng.choice([value + 1, value - 1, rng.uniform(low, high)])
            return round(float(min(max(moved, low), high)), min(digits, 12))
        case str():
            return _vary_text(value, shape, rng)
        case tuple():
            index = rng.randrange(len(value)) if value else 0
            return (*value[:index], *_vary_item(value[index : index + 1], shape, rng), *value[index + 1 :])
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
    """Return the range that was seen, wider by half of it, on the same side of zero."""
    low, high = min(values), max(values)
    room = (high - low) / 2 + 1
    if low > 0:
        return max(low - room, min(1, low)), high + room
    return (0 if low == 0 else low - room), (min(0, high + room) if high <= 0 and low < 0 else high + room)


def _vary_item(elements: Sequence[Any], shape: Shape, rng: random.Random) -> list[Any]:
    if not elements:
        return []
    same_kind = [item for value in shape.values for item in value if type(item) is type(elements[0])]
    return [vary(elements[0], learn(same_kind[:MAX_POOL]), rng)]


def _vary_items(elements: list[Any], shape: Shape, rng: random.Random) -> list[Any]:
    """Return a list with an item dropped, doubled, moved, taken from elsewhere or varied."""
    if shape.parts is None:
        return elements
    elements = list(elements)
    longest = max(map(len, shape.values)) * 3 // 2 + 1
    index = rng.randrange(len(elements)) if elements else 0
    match rng.randrange(7):
        case 0 if elements:
            del elements[index]
        case 1 if elements and len(elements) < longest:
            elements.insert(rng.randrange(len(elements) + 1), elements[index])
        case 2:
            rng.shuffle(elements)
        case 3 if len(elements) < longest:
            elements.insert(index, rng.choice(shape.parts.values))
        case 4 if len(elements) > 2:
            elements = elements[index:] or elements
        case _ if elements:
            elements[index] = vary(elements[index], shape.parts, rng)
    return elements


def _order(elements: list[Any], shape: Shape, rng: random.Random) -> list[Any]:
    rises, falls = _is_sorted in shape.rules, _is_falling in shape.rules
    if rises == falls and _is_rotated not in shape.rules:
        return elements
    try:
        ordered = sorted(elements, reverse=falls)
        start = 0 if rises or falls or not elements else rng.randrange(len(elements))
        return ordered[start:] + ordered[:start]
    except TypeError:  # They are of several types; the rule, which is asked afterwards, refuses them.
        return elements


def _vary_text(text: str, shape: Shape, rng: random.Random) -> str:  # noqa: PLR0911  (One per change.)
    alphabet = "".join(shape.values) or "a"
    longest = max(map(len, shape.values)) * 3 // 2 + 1
    words = text.split(" ")
    if len(words) > 1 and rng.random() < 0.5:
        pool = [word for value in shape.values for word in value.split(" ")]
        index = rng.randrange(len(words))
        others = [rng.choice(pool)]
        words[index : index + 1] = rng.choice([[], others, [words[index]] * 2, [words[index], *others]])
        return " ".join(words)
    index = rng.randrange(len(text)) if text else 0
    match rng.randrange(6):
        case 0 if text:
            return text[:index] + text[index + 1 :]
        case 1 if text and len(text) < longest:
            return text[:index] + text[index] + text[index:]
        case 2 if len(text) < longest:
            return text[:index] + rng.choice(alphabet) + text[index:]
        case 3 if len(text) > 1:
            other = rng.randrange(len(text))
            chars = list(text)
            chars[index], chars[other] = chars[other], chars[index]
            return "".join(chars)
        case 4:
            return text[::-1]
    return text[:index] + rng.choice(alphabet) + text[index + 1 :]
