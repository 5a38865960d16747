"""Small faults planted in a program, to see whether its tests notice.

    mutants_of("def low(a, b):\\n    return a < b\\n", 2)
        Mutant(operator="comparison", line=2, before="return a < b", after="return (a <= b)", ...)
        Mutant(operator="return", line=2, before="return a < b", after="return True", ...)

A mutant is the program's text with one change, so comments and layout stay. `operators` says what is changed. The seed
chooses among the changes, in turn over the kinds of faults, so that a program full of numbers is not only tried with
other numbers; the choice is the same on every machine. No two mutants are the same program.

Some mutants do what the program does (a bound that is never met): tests cannot notice those, and not every suite can
reach a kill rate of 1. Languages other than Python are not covered.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from truegold.verifiers.audit.suites.operators import Change, changes_of
from truegold.verifiers.code.python_source import parse

MAX_SHOWN = 160
"""The part of a changed line that is shown. Stops tables of constants on one line from filling reports."""

_LINE_END = re.compile(rb"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Mutant:
    """A program with one fault planted."""

    operator: str
    """The kind of the fault."""
    line: int
    """The line with the fault, counted from 1."""
    before: str
    """The line as it was."""
    after: str
    """The line as it is, or a few words on what became of it."""
    source: str
    """The whole program with the fault."""
    is_fallback: bool = False
    """Whether the fault is another value where there is no answer."""

    @property
    def description(self) -> str:
        """The line before and after, for reports."""
        return f"line {self.line}: {self.before}  ->  {self.after}"


def mutants_of(source: str, count: int, seed: int = 0, entry_points: Sequence[str] = ()) -> list[Mutant]:
    """Return up to `count` mutants; none where the source does not parse.

    entry_points: names that are used from outside.
    """
    tree = parse(source)
    if tree is None or count <= 0:
        return []
    mutants: list[Mutant] = []
    seen = {source}
    data = source.encode("utf-8", "surrogatepass")
    starts = _line_starts(data)
    for change in _in_turn(list(changes_of(tree, data, starts, entry_points)), seed):
        changed = _apply(change, data)
        if changed in seen or parse(changed) is None:
            continue
        seen.add(changed)
        mutants.append(_make_mutant(source, changed, change))
        if len(mutants) == count:
            break
    return mutants


def _in_turn(changes: list[Change], seed: int) -> Iterator[Change]:
    """Yield one change of each kind after another, in an order that the seed decides."""
    kinds: dict[str, list[Change]] = {}
    for change in changes:
        kinds.setdefault(change.operator, []).append(change)
    choice = random.Random(seed)
    for kind in kinds.values():
        choice.shuffle(kind)
    waiting = list(kinds.values())
    choice.shuffle(waiting)
    while waiting:
        for kind in waiting:
            yield kind.pop()
        waiting = [kind for kind in waiting if kind]


def _apply(change: Change, data: bytes) -> str:
    changed = data[: change.start] + change.text.encode("utf-8", "surrogatepass") + data[change.end :]
    return changed.decode("utf-8", "surrogatepass")


def _make_mutant(source: str, changed: str, change: Change) -> Mutant:
    old, new = source.split("\n"), changed.split("\n")
    index = min(change.line, len(old)) - 1
    if change.description is not None:
        return Mutant(change.operator, index + 1, _cut(old[index]), change.description, changed, change.is_fallback)
    index = next((n for n in range(index, min(len(old), len(new))) if old[n] != new[n]), index)
    return Mutant(change.operator, index + 1, _cut(old[index]), _cut(new[index]), changed, change.is_fallback)


def _cut(line: str) -> str:
    text = line.strip()
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def _line_starts(data: bytes) -> list[int]:
    """Return the byte where each line begins, as `ast` counts lines."""
    return [0, *(end.end() for end in _LINE_END.finditer(data))]
