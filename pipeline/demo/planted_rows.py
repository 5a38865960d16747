"""Makes the rows of the demo: clean ones, copies of them, and one kind of row for each defect.

Most makers of defects take a fresh problem. `truncated`, for example, turns the row

    {"question": "Tom has 12 apples. He buys 9 more. How many apples does Tom have now?", "answer": "21", ...}
    into
    {"question": "Tom has 12 apples. He buys 9 more. How many apples does", "answer": "21", ..., "planted": "truncated"}

A maker of copies (`COPIES`) takes a clean row and returns a second one that repeats it. One kind, the decoy, has a
correct gold in an unusual form. Only the report reads `planted`, to score the detectors (`planted_scores`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from truegold.pipeline.demo.problems import (
    PERSON_STORIES,
    STORY_TEXTS,
    Problem,
    Telling,
    pick_telling,
    tell,
    tell_events,
    wrong_by_a_little,
)

RawRow = dict[str, str | None]

DECOY = "format_variant_gold"
"""The kind of a correct gold in another form. A flag on it is a false alarm."""

_FULL_WIDTH = str.maketrans("0123456789", "０１２３４５６７８９")


@dataclass(frozen=True)
class ToldProblem:
    """A problem with the story that was chosen for it, so that it can be told again."""

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
    """Return an exact copy of the row."""
    return _plant(item, "exact_duplicate")


def format_duplicate(item: ToldProblem, rng: random.Random) -> RawRow:
    """Return a copy of the row with other spaces, letters or line ends."""
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
    """Return the same problem in another story, with the same person, things and numbers."""
    others = [story for story in PERSON_STORIES if story is not item.telling.story]
    telling = Telling(rng.choice(others), item.telling.person, item.telling.things)
    return _plant(ToldProblem(item.problem, telling), "rephrased")


COPIES: Mapping[str, Maker] = {maker.__name__: maker for maker in (exact_duplicate, format_duplicate, rephrased)}

# Defects of a fresh problem.


def wrong_gold(item: ToldProblem, rng: random.Random, *, solution_agrees: bool) -> RawRow:
    """Return a row with a wrong answer; its worked solution is right, or ends in the wrong answer."""
    wrong = wrong_by_a_little(item.problem.answer, rng)
    solution = item.problem.working(wrong if solution_agrees else None)
    return _plant(item, "wrong_gold", answer=str(wrong), solution=solution)


def conflicting_pair(item: ToldProblem, rng: random.Random) -> tuple[RawRow, RawRow]:
    """Return two rows with one prompt and different answers. Both are marked: no rule can know the right answer."""
    wrong = wrong_by_a_little(item.problem.answer, rng)
    right = _plant(item, "conflicting_label")
    return right, _plant(item, "conflicting_label", answer=str(wrong), solution=item.problem.working(wrong))


def ambiguous(item: ToldProblem, rng: random.Random) -> RawRow:
    """Return a question for a share that is not a whole number: is it 4, 4.5 or 5?"""
    total, parts = rng.choice([(total, parts) for parts in (2, 4, 5) for total in range(5, 30) if total % parts])
    person = item.telling.person
    question = rng.choice(STORY_TEXTS["sharing"]).format(
        name=person.name, He=person.pronoun.capitalize(), things=item.telling.things, total=total, parts=parts
    )
    answer = f"{total / parts:g}"
    solution = f"{total}/{parts}={answer} \\boxed{{{answer}}}"
    return _plant(item, "ambiguous", question=question[0].upper() + question[1:], answer=answer, solution=solution)


def unanswerable(item: ToldProblem, rng: random.Random) -> RawRow:
    """Return a problem without one of the numbers that it needs."""
    hidden_index = rng.randrange(len(item.problem.numbers))
    vague = {hidden_index: rng.choice(("some", "a few", "several"))}
    question = ". ".join(part[0].upper() + part[1:] for part in tell(item.problem, item.telling, vague).split(". "))
    return _plant(item, "unanswerable", question=question)


def truncated(item: ToldProblem, rng: random.Random) -> RawRow:
    """Return a question that is cut within a sentence: seven words or more are kept, and three or more are cut."""
    words = tell(item.problem, item.telling).split()
    lengths = [length for length in range(7, len(words) - 2) if words[length - 1][-1] not in ".?"]
    return _plant(item, "truncated", question=" ".join(words[: rng.choice(lengths)]))


def multi_part(item: ToldProblem, rng: random.Random) -> RawRow:
    """Return a problem with a second question after the first."""
    second_question = rng.choice(
        (
            "And how many were there at first?",
            "How many would there be with 3 more?",
            "How many are missing to make 40?",
        )
    )
    return _plant(item, "multi_part", question=f"{tell(item.problem, item.telling)} {second_question}")


def missing_figure(item: ToldProblem, rng: random.Random) -> RawRow:
    """Return a problem whose first number is in a figure that is missing."""
    telling = pick_telling(rng, PERSON_STORIES[:1])
    question = rng.choice(STORY_TEXTS["figures"]).format(
        name=telling.person.name,
        He=telling.person.pronoun.capitalize(),
        things=telling.things,
        events=tell_events(item.problem, telling.story),
    )
    return _plant(item, "missing_figure", question=question)


def proof(item: ToldProblem, rng: random.Random) -> RawRow:
    """Return a problem that asks for a proof instead of an answer."""
    first, *rest = item.problem.numbers
    terms = str(first) + "".join(f"{sign}{term}" for sign, term in zip(item.problem.operations, rest, strict=True))
    parity = "odd" if item.problem.answer % 2 else "even"
    claim = rng.choice((f"Prove that {terms} is {parity}.", f"Show that the value of {terms} is {parity}."))
    return _plant(item, "proof", question=claim)


def unparsable_gold(item: ToldProblem, rng: random.Random) -> RawRow:
    """Return a row whose gold is not an answer."""
    golds = ("see solution", "twelve or so??", "N/A", "answers will vary", f"about {item.problem.answer} I think??")
    return _plant(item, "unparsable_gold", answer=rng.choice(golds))


def format_variant_gold(item: ToldProblem, rng: random.Random) -> RawRow:
    """Return a row whose right answer has another form, which is not a defect."""
    right = item.problem.answer
    answers = (f"{right}.0", f"{right} {item.telling.things}", f"${right}$", f"{right}.")
    return _plant(item, DECOY, answer=rng.choice(answers))


_DEFECTS = (ambiguous, unanswerable, truncated, multi_part, missing_figure, proof, unparsable_gold, format_variant_gold)
FRESH: Mapping[str, Maker] = {maker.__name__: maker for maker in _DEFECTS}
