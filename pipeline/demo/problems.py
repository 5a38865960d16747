"""Generates the demo's word problems and tells them as stories.

The problem `Problem("+-", (12, 9, 5))` has the answer 16 and a worked solution that a small model can learn to write:

    12+9=21-5=16 \\boxed{16}

`tell(Problem("+-", (12, 9, 5)), Telling(STORIES[0], PEOPLE[0], "apples"))` gives

    Tom has 12 apples. He buys 9 more and gives away 5. How many apples does Tom have now?

All values are from 0 to 30, so that a model of 0.4M parameters can learn all of them. The stories (`stories.json`) use
few words, for a small vocabulary and short prompts. Operations and numbers decide whether a problem is held out; story
and seed have no effect. So no held-out calculation occurs in the training data.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import accumulate, count, product

FIRST = range(2, 21)
SECOND = range(2, 13)
THIRD = range(2, 10)
LARGEST_VALUE = 30
HELD_OUT_ONE_IN = 8
"""One in this number of problems is held out."""
ONE_STEP_EVERY = 8
"""One in this number of problems has a single step. The others have two, because there are far more problems of two
steps."""

STORY_TEXTS = json.loads((files(__package__) / "stories.json").read_text(encoding="utf-8"))
"""The stories, with the people and things in them."""

THINGS = tuple(STORY_TEXTS["things"])


@dataclass(frozen=True)
class Problem:
    """A start value, with numbers that are added to it or subtracted."""

    operations: str
    """A sign for each number after the first."""
    numbers: tuple[int, ...]

    @property
    def values(self) -> tuple[int, ...]:
        """The start and the value after each step."""
        start, *operands = self.numbers
        steps = [int(f"{sign}{operand}") for sign, operand in zip(self.operations, operands, strict=True)]
        return tuple(accumulate(steps, initial=start))

    @property
    def answer(self) -> int:
        """The value after the last step."""
        return self.values[-1]

    @property
    def held_out(self) -> bool:
        """True if the problem is held out from training, by a hash of its operations and numbers."""
        digest = hashlib.sha256(f"{self.operations}:{self.numbers}".encode()).digest()
        return digest[0] % HELD_OUT_ONE_IN == 0

    def working(self, final: int | None = None) -> str:
        """Return the worked solution. With `final`, it ends in that number instead of the answer."""
        text = str(self.numbers[0])
        steps = list(zip(self.operations, self.numbers[1:], self.values[1:], strict=True))
        for index, (sign, operand, value) in enumerate(steps):
            shown = final if final is not None and index == len(steps) - 1 else value
            text += f"{sign}{operand}={shown}"
        return f"{text} \\boxed{{{self.answer if final is None else final}}}"


@dataclass(frozen=True)
class Pools:
    """All held-out problems of one or two steps, or all other such problems."""

    one_step: tuple[Problem, ...]
    two_steps: tuple[Problem, ...]

    def draw(self, rng: random.Random) -> Iterator[Problem]:
        """Yield problems without end. All of them come once before any is repeated."""
        one_step, two_steps = _cycle(self.one_step, rng), _cycle(self.two_steps, rng)
        for index in count():
            yield next(one_step if index % ONE_STEP_EVERY == 0 else two_steps)


def _cycle(problems: tuple[Problem, ...], rng: random.Random) -> Iterator[Problem]:
    while True:
        order = list(problems)
        rng.shuffle(order)
        yield from order


def make_pools(*, held_out: bool) -> Pools:
    """Return all held-out problems, or all others."""

    def select(problems: Iterator[Problem]) -> tuple[Problem, ...]:
        return tuple(
            problem
            for problem in problems
            if all(0 <= value <= LARGEST_VALUE for value in problem.values) and problem.held_out == held_out
        )

    one_step = (Problem(signs, numbers) for signs in "+-" for numbers in product(FIRST, SECOND))
    signs_of_two = ("".join(signs) for signs in product("+-", repeat=2))
    two_steps = (Problem(signs, numbers) for signs in signs_of_two for numbers in product(FIRST, SECOND, THIRD))
    return Pools(select(one_step), select(two_steps))


def wrong_by_a_little(value: int, rng: random.Random) -> int:
    """Return a wrong value: not negative, and off by 1 to 3."""
    return rng.choice([value + off for off in (-3, -2, -1, 1, 2, 3) if value + off >= 0])


@dataclass(frozen=True)
class Person:
    """A person in a story."""

    name: str
    pronoun: str


@dataclass(frozen=True)
class StoryTemplate:
    """A template of a story."""

    frame: str
    """The text, with {start}, {events} and other fields to fill in."""
    adding: Sequence[str]
    """Two phrases for adding: for the first and for the second event."""
    taking: Sequence[str]
    """Two phrases for taking away: for the first and for the second event."""
    about_person: bool
    """True if a person owns the things. All such stories can tell the same problem."""


@dataclass(frozen=True)
class Telling:
    """The choice of a story, a person and things to tell a problem with."""

    story: StoryTemplate
    person: Person
    things: str


PEOPLE = tuple(Person(name, pronoun) for name, pronoun in STORY_TEXTS["people"].items())
STORIES = tuple(StoryTemplate(**story) for story in STORY_TEXTS["stories"])
PERSON_STORIES = tuple(story for story in STORIES if story.about_person)


def pick_telling(rng: random.Random, stories: tuple[StoryTemplate, ...] = STORIES) -> Telling:
    """Return a random story with a person and things."""
    return Telling(rng.choice(stories), rng.choice(PEOPLE), rng.choice(THINGS))


def tell_events(problem: Problem, story: StoryTemplate, vague: Mapping[int, str] | None = None) -> str:
    """Return the events after the start, such as `buys 9 more and gives away 5`; `tell` explains `vague`."""
    events = []
    for index, (sign, operand) in enumerate(zip(problem.operations, problem.numbers[1:], strict=True), start=1):
        phrase = (story.adding if sign == "+" else story.taking)[index - 1]
        events.append(phrase.format(n=(vague or {}).get(index, operand)))
    return " and ".join(events)


def tell(problem: Problem, telling: Telling, vague: Mapping[int, str] | None = None) -> str:
    """Return the problem as a story. `vague` maps the index of a number to a word for it, such as {0: "some"}."""
    return telling.story.frame.format(
        name=telling.person.name,
        he=telling.person.pronoun,
        He=telling.person.pronoun.capitalize(),
        things=telling.things,
        start=(vague or {}).get(0, problem.numbers[0]),
        events=tell_events(problem, telling.story, vague),
    )
