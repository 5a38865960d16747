"""The stories the demo's problems are told in: few words, used often, so that prompts are short for a small vocabulary.

`tell(Problem("+-", (12, 9, 5)), Telling(STORIES[0], PEOPLE[0], "apples"))` gives

    Tom has 12 apples. He buys 9 more and gives away 5. How many apples does Tom have now?
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from truegold.pipeline.demo.problems import Problem


@dataclass(frozen=True)
class Person:
    """Somebody whom a story is about."""

    name: str
    pronoun: str


@dataclass(frozen=True)
class Story:
    """A way to tell a problem."""

    frame: str
    """The text, with {start} and {events} to fill in."""
    adding: tuple[str, str]
    """The phrases for adding, as the first and as the second event."""
    taking: tuple[str, str]
    """The phrases for taking away, likewise."""
    about_person: bool = False
    """Whether a person has things, so that any other such story can tell the same problem."""


@dataclass(frozen=True)
class Telling:
    """The choice of a story, a person and things to tell a problem with."""

    story: Story
    person: Person
    things: str


PEOPLE = (
    Person("Tom", "he"),
    Person("Ann", "she"),
    Person("Sam", "he"),
    Person("Mia", "she"),
    Person("Ben", "he"),
    Person("Eva", "she"),
    Person("Leo", "he"),
    Person("Zoe", "she"),
)
THINGS = ("apples", "books", "cards", "coins", "eggs", "pens", "shells", "hats")

STORIES = (
    Story(
        "{name} has {start} {things}. {He} {events}. How many {things} does {name} have now?",
        ("buys {n} more", "finds {n} more"),
        ("gives away {n}", "loses {n}"),
        about_person=True,
    ),
    Story(
        "{name} starts with {start} {things} and then {events}. How many {things} does {name} have in the end?",
        ("gets {n} more", "buys {n} more"),
        ("sells {n}", "gives away {n}"),
        about_person=True,
    ),
    Story(
        "How many {things} does {name} have in the end? {He} has {start} at first, then {events}.",
        ("finds {n} more", "gets {n} more"),
        ("loses {n}", "sells {n}"),
        about_person=True,
    ),
    Story(
        "On Monday {name} had {start} {things}. Then {he} {events}. How many {things} did {name} have then?",
        ("got {n} more", "found {n} more"),
        ("lost {n}", "sold {n}"),
        about_person=True,
    ),
    Story(
        "There are {start} {things} in a box. {name} {events}. How many {things} are in the box now?",
        ("puts in {n} more", "adds {n} more"),
        ("takes out {n}", "takes {n}"),
    ),
    Story(
        "A shop has {start} {things}. The shop {events}. How many {things} does the shop have now?",
        ("gets {n} more", "buys {n} more"),
        ("sells {n}", "loses {n}"),
    ),
    Story(
        "A bus has {start} people. At a stop {events}. How many people are on the bus now?",
        ("{n} get on", "{n} more get on"),
        ("{n} get off", "{n} go away"),
    ),
    Story(
        "There are {start} birds in a tree. Then {events}. How many birds are in the tree now?",
        ("{n} fly in", "{n} more come"),
        ("{n} fly away", "{n} go away"),
    ),
    Story(
        "{name} has {start} points in a game. {He} {events}. How many points does {name} have now?",
        ("wins {n} more", "gets {n} more"),
        ("loses {n}", "gives away {n}"),
    ),
    Story(
        "A class has {start} children. Then {events}. How many children are in the class now?",
        ("{n} come in", "{n} more come"),
        ("{n} go home", "{n} go away"),
    ),
)
PERSON_STORIES = tuple(story for story in STORIES if story.about_person)


def pick_telling(rng: random.Random, stories: tuple[Story, ...] = STORIES) -> Telling:
    """Return a random story with a person and things."""
    return Telling(rng.choice(stories), rng.choice(PEOPLE), rng.choice(THINGS))


def tell_events(problem: Problem, story: Story, vague: Mapping[int, str] | None = None) -> str:
    """Return what happens after the start, such as `buys 9 more and gives away 5`; for `vague` see `tell`."""
    events = []
    for index, (sign, operand) in enumerate(zip(problem.operations, problem.numbers[1:], strict=True), start=1):
        phrase = (story.adding if sign == "+" else story.taking)[index - 1]
        events.append(phrase.format(n=(vague or {}).get(index, operand)))
    return " and ".join(events)


def tell(problem: Problem, telling: Telling, vague: Mapping[int, str] | None = None) -> str:
    """Return the problem as a story. `vague` has words in place of numbers, by their index, such as {0: "some"}."""
    return telling.story.frame.format(
        name=telling.person.name,
        he=telling.person.pronoun,
        He=telling.person.pronoun.capitalize(),
        things=telling.things,
        start=(vague or {}).get(0, problem.numbers[0]),
        events=tell_events(problem, telling.story, vague),
    )
