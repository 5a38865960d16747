"""What is planted among the demo's clean problems: one maker per kind of defect, and one decoy that is no defect.

A maker of defects from nothing else takes a fresh problem: `truncated` turns the row

    {"question": "Tom has 12 apples. He buys 9 more. How many apples does Tom have now?", "answer": "21", ...}
    into
    {"question": "Tom has 12 apples. He buys 9 more. How many apples does", "answer": "21", ..., "planted": "truncated"}

A maker of copies takes a clean row and gives a second one that repeats it. `planted` serves the final report alone,
which scores the detectors by it; no detector reads it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from truegold.pipeline.ingest.demo.problems import Problem, wrong_by_a_little
from truegold.pipeline.ingest.demo.stories import PERSON_STORIES, Telling, pick_telling, tell, tell_events

RawRow = dict[str, str | None]

DECOY = "format_variant_gold"
"""A right gold, written otherwise. Whoever flags it is wrong."""


@dataclass(frozen=True)
class Item:
    """A problem as it was told, so that it can be told again."""

    problem: Problem
    telling: Telling


def clean_row(item: Item) -> RawRow:
    """The row of a problem without a defect."""
    return {
        "question": tell(item.problem, item.telling),
        "solution": item.problem.working(),
        "answer": str(item.problem.answer),
        "planted": None,
    }


def _mark(item: Item, kind: str, **changed: str) -> RawRow:
    return {**clean_row(item), **changed, "planted": kind}


# ---- copies of a clean row


def exact_duplicate(item: Item, rng: random.Random) -> RawRow:
    return _mark(item, "exact_duplicate")


_FULL_WIDTH = str.maketrans("0123456789", "０１２３４５６７８９")


def format_duplicate(item: Item, rng: random.Random) -> RawRow:
    """The same text in another dress."""
    text = str(clean_row(item)["question"])
    dressed = rng.choice(
        [
            text.replace(". ", ".  ").replace("How", " How") + " \n",
            f"Question: {text}",
            text.translate(_FULL_WIDTH),
            text.replace(". ", ".\r\n"),
            text.replace(" ", " \u200b", 2),
            text.upper(),
        ]
    )
    return _mark(item, "format_duplicate", question=dressed)


def rephrased(item: Item, rng: random.Random) -> RawRow:
    """The same person, things and numbers in another story."""
    others = [story for story in PERSON_STORIES if story is not item.telling.story]
    telling = Telling(rng.choice(others), item.telling.person, item.telling.things)
    return _mark(Item(item.problem, telling), "rephrased")


COPIES: dict[str, Callable[[Item, random.Random], RawRow]] = {
    "exact_duplicate": exact_duplicate,
    "format_duplicate": format_duplicate,
    "rephrased": rephrased,
}

# ---- defects of a fresh problem


def wrong_gold(item: Item, rng: random.Random, *, solution_agrees: bool) -> RawRow:
    """A wrong answer; the worked solution is right, or agrees with it."""
    wrong = wrong_by_a_little(item.problem.answer, rng)
    solution = item.problem.working(wrong if solution_agrees else None)
    return _mark(item, "wrong_gold", answer=str(wrong), solution=solution)


def conflicting_pair(item: Item, rng: random.Random) -> tuple[RawRow, RawRow]:
    """The same prompt with two answers, each with its solution. No rule can tell which is right: both are marked."""
    wrong = wrong_by_a_little(item.problem.answer, rng)
    right = _mark(item, "conflicting_label")
    return right, _mark(item, "conflicting_label", answer=str(wrong), solution=item.problem.working(wrong))


_SHARING_STORIES = (
    "{name} has {total} {things}. {He} gives the same number to each of {parts} friends. "
    "How many {things} does a friend get?",
    "{things} cost {parts} dollars apiece. How many {things} can {name} buy with {total} dollars?",
)


def ambiguous(item: Item, rng: random.Random) -> RawRow:
    """A sharing that does not come out whole: is it 4, 4.5 or 5?"""
    total, parts = rng.choice([(total, parts) for parts in (2, 4, 5) for total in range(5, 30) if total % parts])
    person = item.telling.person
    question = rng.choice(_SHARING_STORIES).format(
        name=person.name, He=person.pronoun.capitalize(), things=item.telling.things, total=total, parts=parts
    )
    answer = f"{total / parts:g}"
    solution = f"{total}/{parts}={answer} \\boxed{{{answer}}}"
    return _mark(item, "ambiguous", question=question[0].upper() + question[1:], answer=answer, solution=solution)


def unanswerable(item: Item, rng: random.Random) -> RawRow:
    """A number that the question needs is not given."""
    place = rng.randrange(len(item.problem.numbers))
    vague = {place: rng.choice(("some", "a few", "several"))}
    question = ". ".join(part[0].upper() + part[1:] for part in tell(item.problem, item.telling, vague).split(". "))
    return _mark(item, "unanswerable", question=question)


def truncated(item: Item, rng: random.Random) -> RawRow:
    """Cut somewhere between its first sentence and the last word but two, in the middle of a sentence."""
    words = tell(item.problem, item.telling).split()
    places = [place for place in range(7, len(words) - 2) if words[place - 1][-1] not in ".?"]
    return _mark(item, "truncated", question=" ".join(words[: rng.choice(places)]))


def multi_part(item: Item, rng: random.Random) -> RawRow:
    again = rng.choice(
        (
            "And how many were there at first?",
            "How many would there be with 3 more?",
            "How many are missing to make 40?",
        )
    )
    return _mark(item, "multi_part", question=f"{tell(item.problem, item.telling)} {again}")


_FIGURE_STORIES = (
    "The figure below shows the {things} of {name}. {He} {events}. How many {things} does {name} have now?",
    "As shown in the diagram, {name} has a box of {things}. {He} {events}. How many {things} does {name} have now?",
    "{name} has the {things} in the picture below. {He} {events}. How many {things} does {name} have now?",
)


def missing_figure(item: Item, rng: random.Random) -> RawRow:
    telling = pick_telling(rng, PERSON_STORIES[:1])
    question = rng.choice(_FIGURE_STORIES).format(
        name=telling.person.name,
        He=telling.person.pronoun.capitalize(),
        things=telling.things,
        events=tell_events(item.problem, telling.story),
    )
    return _mark(item, "missing_figure", question=question)


def proof(item: Item, rng: random.Random) -> RawRow:
    first, *rest = item.problem.numbers
    terms = str(first) + "".join(f"{sign}{number}" for sign, number in zip(item.problem.operations, rest, strict=True))
    parity = "odd" if item.problem.answer % 2 else "even"
    claim = rng.choice((f"Prove that {terms} is {parity}.", f"Show that the value of {terms} is {parity}."))
    return _mark(item, "proof", question=claim)


def unparsable_gold(item: Item, rng: random.Random) -> RawRow:
    golds = ("see solution", "twelve or so??", "N/A", "answers will vary", f"about {item.problem.answer} I think??")
    return _mark(item, "unparsable_gold", answer=rng.choice(golds))


def format_variant_gold(item: Item, rng: random.Random) -> RawRow:
    """No defect: the right answer, written otherwise."""
    value = item.problem.answer
    return _mark(
        item, DECOY, answer=rng.choice((f"{value}.0", f"{value} {item.telling.things}", f"${value}$", f"{value}."))
    )


FRESH: dict[str, Callable[[Item, random.Random], RawRow]] = {
    "ambiguous": ambiguous,
    "unanswerable": unanswerable,
    "truncated": truncated,
    "multi_part": multi_part,
    "missing_figure": missing_figure,
    "proof": proof,
    "unparsable_gold": unparsable_gold,
    DECOY: format_variant_gold,
}
