"""The type of a damage: a function of a problem, another problem and a random generator."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple


class Problem(NamedTuple):
    """A row of the run."""

    question: str
    answer: str
    solution: str


Damage = Callable[[Problem, Problem, random.Random], Problem | None]


def edit_question(make: Callable[[str, random.Random], str | None]) -> Damage:
    """Return the damage that edits the question alone, where `make` can."""

    def damage(problem: Problem, _: Problem, rng: random.Random) -> Problem | None:
        text = make(problem.question, rng)
        return None if text is None else problem._replace(question=text)

    return damage


def edit_gold(make: Callable[[str, random.Random], str | None]) -> Damage:
    """Return the damage that edits the gold alone, where `make` can."""

    def damage(problem: Problem, _: Problem, rng: random.Random) -> Problem | None:
        text = make(problem.answer, rng)
        return None if text is None else problem._replace(answer=text)

    return damage
