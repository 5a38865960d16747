"""What is wrong with cases by their texts alone.

inputs "3", "3" with outputs "6", "6"            duplicates [1]
inputs "3", "3" with outputs "6", "7"            contradictions [0, 1], rivals [("6", "7")]
input "200000\\n5 1 7 ..."                        cut_off [0]: data sets cut long inputs and put three dots
inputs "", "3\\n"                                 empty [0]
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from truegold.verifiers.code.suite import Calls, Stdio
from truegold.verifiers.code.vet.known_cases import KnownCase

_DOTS = re.compile(r"(?:\.\.\.|…|\.\.\.\s*\(\d+ (?:more )?(?:characters|chars|lines)\))\s*\Z")
MIN_CUT_CHARS = 60
"""A shorter text that ends in dots may well mean them."""


def duplicates(cases: Sequence[KnownCase]) -> list[int]:
    """Cases that stood before with the same output."""
    seen: set[tuple[str, str]] = set()
    found = []
    for number, case in enumerate(cases):
        key = (case.input.strip(), case.output.strip())
        if key in seen:
            found.append(number)
        seen.add(key)
    return found


def contradictions(cases: Sequence[KnownCase]) -> list[int]:
    """Cases whose input also stands with another output."""
    outputs: dict[str, set[str]] = {}
    for case in cases:
        outputs.setdefault(case.input.strip(), set()).add(" ".join(case.output.split()))
    return [number for number, case in enumerate(cases) if len(outputs[case.input.strip()]) > 1]


def rivals(cases: Sequence[KnownCase]) -> list[tuple[Any, Any]]:
    """The pairs of outputs that stand with one input and differ: what is printed, or the values returned."""
    firsts: dict[str, KnownCase] = {}
    found = []
    for case in cases:
        first = firsts.setdefault(case.input.strip(), case)
        if first.value != case.value:
            printed = isinstance(case.value, str)
            found.append((first.output, case.output) if printed else (first.value, case.value))
    return found


def cut_off(tests: Stdio | Calls) -> list[int]:
    """Cases whose input or output ends in dots that its data set put there."""
    if not isinstance(tests, Stdio):
        return []
    return [number for number, case in enumerate(tests.cases) if _is_cut(case.input) or _is_cut(case.output)]


def empty(tests: Stdio | Calls) -> list[int]:
    """Cases without input, where others have one."""
    if not isinstance(tests, Stdio):
        return []
    found = [number for number, case in enumerate(tests.cases) if not case.input.strip()]
    return found if len(found) < len(tests.cases) else []


def _is_cut(text: str) -> bool:
    return len(text) >= MIN_CUT_CHARS and _DOTS.search(text[-80:]) is not None
