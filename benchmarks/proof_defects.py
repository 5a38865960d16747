"""Word problems with defects that mislead a training, and not only waste its time: what `proof.py` trains on.

near_miss      the gold is wrong by 1 to 3; in half of them the worked solution ends in it too
conflicting    the same problem told in another way, with another gold
format         a right gold that a comparison of texts rejects: `16 apples`, `16.00`, `\\boxed{16}`
repeated       the same row twice more
leaked         the prompt ends in the answer
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from truegold.verifiers import verifier

Record = dict[str, Any]

MIX = {"near_miss": 0.4, "conflicting": 0.15, "format": 0.2, "repeated": 0.1, "leaked": 0.15}
"""The parts of the kinds among the damaged rows."""
COPIES = 3
NAMES = ("Tom", "Ann", "Sam", "Mia", "Ben", "Eva", "Leo", "Zoe")


@verifier
def contains(response: str, gold: str) -> bool:
    """Whether the gold's text occurs in the response, which a list of numbers satisfies: the simplest reward of all."""
    return gold in response


def damage(records: Sequence[Record], share: float, seed: int) -> list[Record]:
    """Return the records with `share` of all rows damaged, in random order. A record has question, solution, answer.

    Each gets the column `defect`, None where it is sound, which nothing but the oracle reads.
    """
    draw = random.Random(f"proof {seed}")
    order = list(records)
    draw.shuffle(order)
    damaged_rows = round(share * len(order))
    kinds = _kinds(damaged_rows, draw)
    damaged: list[Record] = []
    while kinds:
        kind = kinds.pop()
        damaged += _MAKERS[kind](order[len(damaged) % len(order)], draw)
    sound = [{**record, "defect": None} for record in order[len(damaged) :]]
    rows = sound + damaged[: len(order)]
    draw.shuffle(rows)
    return rows


def count_defects(records: Sequence[Record]) -> dict[str, int]:
    """Return how many rows have each defect."""
    return dict(Counter(str(record["defect"]) for record in records if record["defect"]))


def _kinds(rows: int, draw: random.Random) -> list[str]:
    """Return the kinds of as many makers as make so many rows, shuffled."""
    kinds = [
        kind for kind, part in MIX.items() for _ in range(round(rows * part / (COPIES if kind == "repeated" else 1)))
    ]
    draw.shuffle(kinds)
    return kinds


def _wrong(answer: str, draw: random.Random) -> str:
    value = int(answer)
    return str(draw.choice([value + step for step in (-3, -2, -1, 1, 2, 3) if value + step >= 0]))


def _near_miss(record: Record, draw: random.Random) -> list[Record]:
    gold = _wrong(record["answer"], draw)
    solution = record["solution"]
    if draw.random() < 0.5:
        right, wrong = (f"{value} \\boxed{{{value}}}" for value in (record["answer"], gold))
        solution = solution.replace(right, wrong)
    return [{**record, "answer": gold, "solution": solution, "defect": "near_miss"}]


def _conflicting(record: Record, draw: random.Random) -> list[Record]:
    names = [name for name in NAMES if name in record["question"]]
    question = record["question"]
    if names:
        question = question.replace(names[0], draw.choice([name for name in NAMES if name != names[0]]))
    gold = _wrong(record["answer"], draw)
    return [
        {**record, "defect": None},
        {**record, "question": question, "answer": gold, "solution": None, "defect": "conflicting"},
    ]


def _format(record: Record, draw: random.Random) -> list[Record]:
    answer = record["answer"]
    things = re.findall(r"\b(apples|books|cards|coins|eggs|pens|shells|hats)\b", record["question"])
    forms = [f"{answer}.00", f"\\boxed{{{answer}}}", f"{answer} {things[0]}" if things else f"= {answer}"]
    return [{**record, "answer": draw.choice(forms), "defect": "format"}]


def _repeated(record: Record, draw: random.Random) -> list[Record]:
    return [{**record, "defect": None}, *({**record, "defect": "repeated"} for _ in range(COPIES - 1))]


def _leaked(record: Record, draw: random.Random) -> list[Record]:
    return [{**record, "question": f"{record['question']} {record['answer']}.", "defect": "leaked"}]


_MAKERS: dict[str, Callable[[Record, random.Random], list[Record]]] = {
    "near_miss": _near_miss,
    "conflicting": _conflicting,
    "format": _format,
    "repeated": _repeated,
    "leaked": _leaked,
}
