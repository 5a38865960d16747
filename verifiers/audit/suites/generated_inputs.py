"""Makes further inputs of the kind that the cases of a suite have.

    generate_inputs([([1, 2], 2), ([7], 1)], 3, seed=0)      ([2, 2], 2), ([7, 1], 2), ([1], 1)

`shapes_seen` varies each argument. What holds between arguments in all cases is kept: one is the length of another,
both have the same length, one is at most the other, or at most the other's length.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Any

from truegold.verifiers.audit.suites.shapes_seen import Arguments, learn, vary

MIN_SEEN = 2
"""With fewer cases nothing can be told of what inputs share."""

TRIES = 12
"""Attempts for each input that is asked for."""

_Feature = tuple[str, int]
"""`value` of a number or `length` of what has one, and the argument's position."""


def generate_inputs(seen: Sequence[Arguments], count: int, seed: int) -> list[Arguments]:
    """Return up to `count` inputs that are not among those seen; none where these tell too little."""
    if len(seen) < MIN_SEEN or len({len(arguments) for arguments in seen}) != 1 or not seen[0]:
        return []
    rng = random.Random(seed)
    shapes = [learn([arguments[index] for arguments in seen]) for index in range(len(seen[0]))]
    relations = list(_relations(seen))
    known = {repr(arguments) for arguments in seen}
    inputs: list[Arguments] = []
    for _ in range(TRIES * count):
        arguments = list(rng.choice(seen))
        for index in rng.sample(range(len(arguments)), rng.choice((1, 1, min(2, len(arguments))))):
            for _ in range(rng.choice((1, 1, 2, 3))):
                arguments[index] = vary(arguments[index], shapes[index], rng)
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
    """Yield what holds between two arguments in all cases."""
    features = [_features(arguments) for arguments in seen]
    shared = set(features[0]).intersection(*features[1:])
    for first, second in permutations(sorted(shared), 2):
        pairs = [(each[first], each[second]) for each in features]
        if first[1] == second[1]:
            continue
        if all(left == right for left, right in pairs):
            yield first, "==", second
        elif all(left < right for left, right in pairs):
            yield first, "<", second
        elif all(left <= right for left, right in pairs):
            yield first, "<=", second


def _holds(arguments: Arguments, first: _Feature, sign: str, second: _Feature) -> bool:
    features = _features(arguments)
    if first not in features or second not in features:
        return False
    left, right = features[first], features[second]
    return {"==": left == right, "<": left < right, "<=": left <= right}[sign]


def _restore_lengths(arguments: list[Any], relations: Sequence[tuple[_Feature, str, _Feature]]) -> None:
    """Make a number the length that it was, and two lists as long as the shorter of them."""
    for (first, index), sign, (second, other) in relations:
        if sign != "==":
            continue
        if first == "value" and second == "length" and isinstance(arguments[index], int):
            arguments[index] = len(arguments[other])
        elif first == second == "length" and all(isinstance(arguments[each], list | str) for each in (index, other)):
            length = min(len(arguments[index]), len(arguments[other]))
            arguments[index], arguments[other] = arguments[index][:length], arguments[other][:length]
