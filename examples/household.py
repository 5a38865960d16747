"""A small household: put a thing where it belongs. It needs nothing from outside.

    python examples/household.py household        writes household/rows.jsonl and household/sft.jsonl
    truegold run examples/household.yaml

A row's prompt names a house and a task, such as "House 4: put the apple into the fridge". Rooms have furniture, and
things are in it, which nobody sees before it is opened. What is where is decided by the house's number.

    go kitchen      table shelf fridge
    open fridge     milk
    take milk       taken
    put milk table  (the end, if that was the task)
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from truegold.train.turns.environment import Done, Message, Reply

ROOMS = {"kitchen": ("table", "fridge"), "hall": ("shelf", "chest"), "study": ("desk", "drawer")}
THINGS = ("apple", "book", "key", "milk", "shoe")
HELP = "go ROOM, open PIECE, take THING, put THING PIECE"
ROOM_OF = {piece: room for room, pieces in ROOMS.items() for piece in pieces}


def furnish(number: int) -> tuple[dict[str, str], str, str]:
    """Return where each thing is, and the task: which thing is to be put where."""
    draw = random.Random(f"house {number}")
    pieces = list(ROOM_OF)
    where = {thing: draw.choice(pieces) for thing in THINGS}
    thing = draw.choice(THINGS)
    return where, thing, draw.choice([piece for piece in pieces if piece != where[thing]])


class Household:
    """The environment of one episode."""

    def __init__(self) -> None:
        self.where: dict[str, str] = {}
        self.thing = self.target = ""
        self.room: str | None = None
        self.held: str | None = None
        self.opened: set[str] = set()

    def reset(self, row: Mapping[str, Any]) -> list[Message]:
        """Enter the house that the row's prompt names."""
        name, _, task = row["prompt"].partition(": ")
        self.where, self.thing, self.target = furnish(int(name.removeprefix("House")))
        return [{"role": "user", "content": task}]

    def step(self, completion: Message) -> Reply | Done:
        """Do what the model says."""
        first, verb, what = ["", "", "", *completion["content"].split()][-3:]
        if verb == "go" and what in ROOMS:
            self.room = what
            return _say(" ".join(ROOMS[what]))
        if verb == "open" and ROOM_OF.get(what) == self.room:
            self.opened.add(what)
            return _say(" ".join(thing for thing, piece in self.where.items() if piece == what) or "empty")
        if verb == "take" and self._is_reachable(what):
            self.held = what
            del self.where[what]
            return _say("taken")
        if first == "put" and verb == self.held and ROOM_OF.get(what) == self.room:
            return self._put(what)
        return _say(HELP)

    def _put(self, piece: str) -> Reply | Done:
        thing, self.held = str(self.held), None
        self.where[thing] = piece
        return Done(1.0) if (thing, piece) == (self.thing, self.target) else _say("done")

    def _is_reachable(self, thing: str) -> bool:
        piece = self.where.get(thing)
        return self.held is None and piece in self.opened and ROOM_OF[piece] == self.room


def _say(text: str) -> Reply:
    return Reply([{"role": "user", "content": text}])


def row(number: int) -> dict[str, str]:
    """Return the problem that is a house."""
    _, thing, target = furnish(number)
    return {"question": f"House {number}: put the {thing} into the {target}", "answer": f"{thing} in the {target}"}


def expert_dialogue(number: int, *, is_careful: bool = True) -> list[Message]:
    """Return an episode of an expert who goes from room to room and opens everything until the thing is there; a
    careless one opens the first piece of each room alone, and has to go round again where the thing is in none."""
    house = Household()
    messages = house.reset({"prompt": row(number)["question"]})

    def act(action: str) -> Reply | Done:
        messages.append({"role": "assistant", "content": action})
        answer = house.step(messages[-1])
        if isinstance(answer, Reply):
            messages.extend(answer.messages)
        return answer

    rounds = list(ROOMS.items())
    if not is_careful:
        rounds = [(room, pieces[:1]) for room, pieces in rounds] + rounds
    note = ""
    for room, pieces in rounds:
        act(f"{note}go {room}")
        note = ""
        for piece in pieces:
            act(f"{note}open {piece}")
            note, is_there = _compare(messages[-1]["content"].split(), house.thing)
            if is_there:
                act(f"{note}take {house.thing}")
                if ROOM_OF[house.target] != room:
                    act(f"go {ROOM_OF[house.target]}")
                act(f"put {house.thing} {house.target}")
                return messages
    return messages


def _compare(seen: list[str], thing: str) -> tuple[str, bool]:
    """Return what the expert says of the things that he sees, up to the one he looks for, and whether that is there."""
    note = ""
    for other in seen:
        if other == thing:
            return f"{note}{thing} is {thing} ", True
        note += f"{other} is not {thing} "
    return note, False


def expert_dialogues(count: int) -> Iterator[dict[str, Any]]:
    """Yield dialogues to learn from, of houses that are not among the rows. In the last tenth the expert is careful in
    one of three: whoever learns from them in this order knows the house, and runs out of turns."""
    for index in range(count):
        is_careful = index < 0.9 * count or index % 3 == 0
        yield {"messages": expert_dialogue(1_000_000 + index, is_careful=is_careful)}


def main(folder: Path, houses: int = 1000, dialogues: int = 20_000) -> None:
    """Write what `examples/household.yaml` reads."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {"rows.jsonl": map(row, range(houses)), "sft.jsonl": expert_dialogues(dialogues)}
    for name, records in files.items():
        (folder / name).write_text("".join(json.dumps(record) + "\n" for record in records))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
