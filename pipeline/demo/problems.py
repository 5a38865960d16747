"""The demo's word problems, the stories in which they are told, and the defects planted among them.

The problem `Problem("+-", (12, 9, 5))` has the answer 16, and the worked solution a small model can learn to write:

    12+9=21-5=16 \\boxed{16}

`tell(Problem("+-", (12, 9, 5)), Telling(STORIES[0], PEOPLE[0], "apples"))` gives

    Tom has 12 apples. He buys 9 more and gives away 5. How many apples does Tom have now?

Values on the way lie between 0 and 30, so that a model of 0.4M parameters can know all of it. The stories
(`stories.json`) have few words, used often, so that prompts are short for a small vocabulary. Whether a problem is held
out depends on its operations and numbers alone, never on the story or the seed: what is held out was seen nowhere.

There is a maker for each kind of defect, and for one decoy that is no defect. Most of them take a fresh problem:
`truncated` turns the row

    {"question": "Tom has 12 apples. He buys 9 more. How many apples does Tom have now?", "answer": "21", ...}
    into
    {"question": "Tom has 12 apples. He buys 9 more. How many apples does", "answer": "21", ..., "planted": "truncated"}

A maker of copies takes a clean row and returns a second one that repeats it. `planted` serves the report
alone, which scores the detectors by it (`planted_scores`); no detector reads it.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import accumulate, count, product

FIRST = range(2, 21)
SECOND = range(2, 13)
THIRD = range(2, 10)
LARGEST_VALUE = 30
HELD_OUT_ONE_IN = 8
"""One problem in this many is held out."""
ONE_STEP_EVERY = 8
"""One problem in this many has one step, the others two: there are far fewer problems of one step."""


@dataclass(frozen=True)
class Problem:
    """A start, and what is added to it and taken from it."""

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
        """Whether the problem is kept from training, by a hash of its operations and numbers."""
        digest = hashlib.sha256(f"{self.operations}:{self.numbers}".encode()).digest()
        return digest[0] % HELD_OUT_ONE_IN == 0

    def working(self, final: int | None = None) -> str:
        """Return the worked solution, which ends in `final` where it is to end wrongly."""
        text = str(self.numbers[0])
        steps = list(zip(self.operations, self.numbers[1:], self.values[1:], strict=True))
        for index, (sign, operand, value) in enumerate(steps):
            shown = final if final is not None and index == len(steps) - 1 else value
            text += f"{sign}{operand}={shown}"
        return f"{text} \\boxed{{{self.answer if final is None else final}}}"


@dataclass(frozen=True)
class Pools:
    """All problems of one or two steps: those that are held out, or the others."""

    one_step: tuple[Problem, ...]
    two_steps: tuple[Problem, ...]

    def draw(self, rng: random.Random) -> Iterator[Problem]:
        """Yield problems without end, none twice before all have come."""
        one_step, two_steps = _cycle(self.one_step, rng), _cycle(self.two_steps, rng)
        for index in count():
            yield next(one_step if index % ONE_STEP_EVERY == 0 else two_steps)


def _cycle(problems: tuple[Problem, ...], rng: random.Random) -> Iterator[Problem]:
    while True:
        order = list(problems)
        rng.shuffle(order)
        yield from order


def make_pools(*, held_out: bool) -> Pools:
    """Return the problems that are held out, or those that are not."""

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
    """Return another value, off by 1 to 3 and not negative."""
    return rng.choice([value + off for off in (-3, -2, -1, 1, 2, 3) if value + off >= 0])


@dataclass(frozen=True)
class Person:
    """Somebody whom a story is about."""

    name: str
    pronoun: str


@dataclass(frozen=True)
class StoryTemplate:
    """A way to tell a problem."""

    frame: str
    """The text, with {start} and {events} to fill in."""
    adding: Sequence[str]
    """The phrases for adding, as the first and as the second event."""
    taking: Sequence[str]
    """The phrases for taking away, likewise."""
    about_person: bool
    """Whether a person has things, so that any other such story can tell the same problem."""


@dataclass(frozen=True)
class Telling:
    """The choice of a story, a person and things to tell a problem with."""

    story: StoryTemplate
    person: Person
    things: str


STORY_TEXTS = json.loads((files(__package__) / "stories.json").read_text(encoding="utf-8"))
"""The texts of stories, and the people and things in them."""
PEOPLE = tuple(Person(name, pronoun) for name, pronoun in STORY_TEXTS["people"].items())
THINGS = tuple(STORY_TEXTS["things"])
STORIES = tuple(StoryTemplate(**story) for story in STORY_TEXTS["stories"])
PERSON_STORIES = tuple(story for story in STORIES if story.about_person)


def pick_telling(rng: random.Random, stories: tuple[StoryTemplate, ...] = STORIES) -> Telling:
    """Return a random story with a person and things."""
    return Telling(rng.choice(stories), rng.choice(PEOPLE), rng.choice(THINGS))


def tell_events(problem: Problem, story: StoryTemplate, vague: Mapping[int, str] | None = None) -> str:
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


RawRow = dict[str, str | None]

DECOY = "format_variant_gold"
"""The kind of a right gold that is written otherwise. A detector that flags it is wrong."""


@dataclass(frozen=True)
class ToldProblem:
    """A problem as it was told, so that it can be told again."""

    problem: Problem
    telling: Telling


Maker = Callable[[ToldProblem, random.Random], RawRow]


def clean_row(item: ToldProblem) -> RawRow:
    """Return the row of a problem without a defect."""
    return {
        "question": tell(item.problem, item.telling),
        "solution": item.problem.working(),
        "answer": str(item.problem.answer),
        "planted": None,
    }


def _plant(item: ToldProblem, kind: str, **changed: str) -> RawRow:
    return {**clean_row(item), **changed, "planted": kind}


# Copies of a clean row.


def exact_duplicate(item: ToldProblem, rng: random.Random) -> RawRow:
    """Repeat the row as it is."""
    return _plant(item, "exact_duplicate")


_FULL_WIDTH = str.maketrans("0123456789", "０１２３４５６７８９")


def format_duplicate(item: ToldProblem, rng: random.Random) -> RawRow:
    """Repeat the text with other spaces, letters or line ends."""
    text = str(clean_row(item)["question"])
    variant = rng.choice(
        [
            text.replace(". ", ".  ").replace("How", " How") + " \n",
            f"Question: {text}",
            text.translate(_FULL_WIDTH),
            text.replace(". ", ".\r\n"),
            text.replace(" ", " \u200b", 2),
            text.upper(),
        ]
    )
    return _plant(item, "format_duplicate", question=variant)


def rephrased(item: ToldProblem, rng: random.Random) -> RawRow:
    """Tell the same person, things and numbers in another story."""
    others = [story for story in PERSON_STORIES if story is not item.telling.story]
    telling = Telling(rng.choice(others), item.telling.person, item.telling.things)
    return _plant(ToldProblem(item.problem, telling), "rephrased")


COPIES: Mapping[str, Maker] = {maker.__name__: maker for maker in (exact_duplicate, format_duplicate, rephrased)}

# Defects of a fresh problem.


def wrong_gold(item: ToldProblem, rng: random.Random, *, solution_agrees: bool) -> RawRow:
    """Give a wrong answer; the worked solution is right, or agrees with the answer."""
    wrong = wrong_by_a_little(item.problem.answer, rng)
    solution = item.problem.working(wrong if solution_agrees else None)
    return _plant(item, "wrong_gold", answer=str(wrong), solution=solution)


def conflicting_pair(item: ToldProblem, rng: random.Random) -> tuple[RawRow, RawRow]:
    """Give the same prompt two answers, each with its solution; both are marked, as no rule can tell which is right."""
    wrong = wrong_by_a_little(item.problem.answer, rng)
    right = _plant(item, "conflicting_label")
    return right, _plant(item, "conflicting_label", answer=str(wrong), solution=item.problem.working(wrong))


def ambiguous(item: ToldProblem, rng: random.Random) -> RawRow:
    """Ask for a share that is no whole number: is it 4, 4.5 or 5?"""
    total, parts = rng.choice([(total, parts) for parts in (2, 4, 5) for total in range(5, 30) if total % parts])
    person = item.telling.person
    question = rng.choice(STORY_TEXTS["sharing"]).format(
        name=person.name, He=person.pronoun.capitalize(), things=item.telling.things, total=total, parts=parts
    )
    answer = f"{total / parts:g}"
    solution = f"{total}/{parts}={answer} \\boxed{{{answer}}}"
    return _plant(item, "ambiguous", question=question[0].upper() + question[1:], answer=answer, solution=solution)


def unanswerable(item: ToldProblem, rng: random.Random) -> RawRow:
    """Leave out a number that the question needs."""
    hidden_index = rng.randrange(len(item.problem.numbers))
    vague = {hidden_index: rng.choice(("some", "a few", "several"))}
    question = ". ".join(part[0].upper() + part[1:] for part in tell(item.problem, item.telling, vague).split(". "))
    return _plant(item, "unanswerable", question=question)


def truncated(item: ToldProblem, rng: random.Random) -> RawRow:
    """Cut the question in the middle of a sentence, after its seventh word and before the last two."""
    words = tell(item.problem, item.telling).split()
    lengths = [length for length in range(7, len(words) - 2) if words[length - 1][-1] not in ".?"]
    return _plant(item, "truncated", question=" ".join(words[: rng.choice(lengths)]))


def multi_part(item: ToldProblem, rng: random.Random) -> RawRow:
    """Ask a second question after the first."""
    second_question = rng.choice(
        (
            "And how many were there at first?",
            "How many would there be with 3 more?",
            "How many are missing to make 40?",
        )
    )
    return _plant(item, "multi_part", question=f"{tell(item.problem, item.telling)} {second_question}")


def missing_figure(item: ToldProblem, rng: random.Random) -> RawRow:
    """Leave the first number to a figure that is not there."""
    telling = pick_telling(rng, PERSON_STORIES[:1])
    question = rng.choice(STORY_TEXTS["figures"]).format(
        name=telling.person.name,
        He=telling.person.pronoun.capitalize(),
        things=telling.things,
        events=tell_events(item.problem, telling.story),
    )
    return _plant(item, "missing_figure", question=question)


def proof(item: ToldProblem, rng: random.Random) -> RawRow:
    """Ask for a proof instead of an answer."""
    first, *rest = item.problem.numbers
    terms = str(first) + "".join(f"{sign}{term}" for sign, term in zip(item.problem.operations, rest, strict=True))
    parity = "odd" if item.problem.answer % 2 else "even"
    claim = rng.choice((f"Prove that {terms} is {parity}.", f"Show that the value of {terms} is {parity}."))
    return _plant(item, "proof", question=claim)


def unparsable_gold(item: ToldProblem, rng: random.Random) -> RawRow:
    """Give a gold that says no answer."""
    golds = ("see solution", "twelve or so??", "N/A", "answers will vary", f"about {item.problem.answer} I think??")
    return _plant(item, "unparsable_gold", answer=rng.choice(golds))


def format_variant_gold(item: ToldProblem, rng: random.Random) -> RawRow:
    """Write the right answer otherwise, which is no defect."""
    right = item.problem.answer
    answers = (f"{right}.0", f"{right} {item.telling.things}", f"${right}$", f"{right}.")
    return _plant(item, DECOY, answer=rng.choice(answers))


_DEFECTS = (ambiguous, unanswerable, truncated, multi_part, missing_figure, proof, unparsable_gold, format_variant_gold)
FRESH: Mapping[str, Maker] = {maker.__name__: maker for maker in _DEFECTS}
