"""What is wrong with cases by their texts alone, and how easily their outputs are guessed.

inputs "3", "3" with outputs "6", "6"            duplicates [1]
inputs "3", "3" with outputs "6", "7"            contradictions [0, 1], rival outputs [("6", "7")]
input "200000\\n5 1 7 ..."                        cut off [0]: data sets cut long inputs and put three dots
inputs "", "3\\n"                                 empty [0]

outputs YES, NO                                  guess chance 0.25: two guesses between two words
outputs 7, 7, 7                                  guess chance 1.0: a program that prints 7
outputs 17, 42, 99                               guess chance 0.0: nobody guesses these
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from truegold.verifiers.audit.suites.known_cases import KnownCase
from truegold.verifiers.code.suite import Calls, Stdio

_DOTS = re.compile(r"(?:\.\.\.|…|\.\.\.\s*\(\d+ (?:more )?(?:characters|chars|lines)\))\s*\Z")
MIN_CUT_CHARS = 60
"""A shorter text that ends in dots may well mean them."""

_COMMON_GUESSES = frozenset(
    {"true", "false", "none", "null", "0", "1", "-1", "", "''", "[]", "()", "{}", "set()", "0.0", "yes", "no", "y", "n"}
)


def find_duplicates(cases: Sequence[KnownCase]) -> list[int]:
    """Return the cases that an earlier case equals in input and output."""
    seen: set[tuple[str, str]] = set()
    duplicates = []
    for index, case in enumerate(cases):
        key = (case.input.strip(), case.output.strip())
        if key in seen:
            duplicates.append(index)
        seen.add(key)
    return duplicates


def find_contradictions(cases: Sequence[KnownCase]) -> list[int]:
    """Return the cases whose input also has another output."""
    outputs: dict[str, set[str]] = {}
    for case in cases:
        outputs.setdefault(case.input.strip(), set()).add(" ".join(case.output.split()))
    return [index for index, case in enumerate(cases) if len(outputs[case.input.strip()]) > 1]


def rival_outputs(cases: Sequence[KnownCase]) -> list[tuple[Any, Any]]:
    """Return the pairs of outputs of one input that differ: what is printed, or the values returned."""
    first_cases: dict[str, KnownCase] = {}
    rivals = []
    for case in cases:
        first = first_cases.setdefault(case.input.strip(), case)
        if first.value != case.value:
            printed = isinstance(case.value, str)
            rivals.append((first.output, case.output) if printed else (first.value, case.value))
    return rivals


def find_cut_off(tests: Stdio | Calls) -> list[int]:
    """Return the cases whose input or output ends in dots that a data set put there."""
    if not isinstance(tests, Stdio):
        return []
    return [index for index, case in enumerate(tests.cases) if _is_cut_off(case.input) or _is_cut_off(case.output)]


def find_empty_inputs(tests: Stdio | Calls) -> list[int]:
    """Return the cases without input, where others have some."""
    if not isinstance(tests, Stdio):
        return []
    empty = [index for index, case in enumerate(tests.cases) if not case.input.strip()]
    return empty if len(empty) < len(tests.cases) else []


def guess_chance(values: Sequence[Any]) -> float | None:
    """Return the chance that a guesser passes all cases; None where no outputs are known.

    The guesser knows how often each output occurs, and guesses each case alone, or prints the most frequent output if
    that passes everything. An output that occurs once is not guessed, unless everybody tries it: a truth value, an
    empty value, 0, 1, -1, YES, NO.
    """
    if not values:
        return None
    outputs = [value if isinstance(value, str) else repr(value) for value in values]
    counts = Counter(outputs)
    if len(counts) == 1 and (len(outputs) > 1 or _is_common_guess(outputs[0])):
        return 1.0
    chance = 1.0
    for output, count in counts.items():
        if count == 1 and not _is_common_guess(output):
            return 0.0
        chance *= (count / len(outputs)) ** count
    return chance


def _is_cut_off(text: str) -> bool:
    return len(text) >= MIN_CUT_CHARS and _DOTS.search(text[-80:]) is not None


def _is_common_guess(output: str) -> bool:
    return output.strip().casefold() in _COMMON_GUESSES
