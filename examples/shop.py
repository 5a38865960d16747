"""A text shop: search, look, buy what was asked for. It needs nothing from outside.

    python examples/shop.py shop        writes shop/rows.jsonl and shop/sft.jsonl
    truegold run examples/shop.yaml

A row's prompt names a shop and a goal, such as "Shop 17: red cup". The shop has products of several kinds and colours,
which its number decides. A search shows the products of a kind, a look the colour of one; the first purchase ends the
episode, and has earned 1 where it is what was asked for. Of what the model says the last two words are its action.

    search cup                       p3 p8 p5
    look p3                          blue
    blue is not red look p8          red
    red is red buy p8                (the end)
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from truegold.train.turns.environment import Done, Message, Reply

KINDS = ("cup", "hat", "pen", "bag")
COLOURS = ("red", "blue", "green")
OFFERED = 3
"""Products of each kind in a shop."""
HELP = "search KIND, look PRODUCT, buy PRODUCT"


@dataclass(frozen=True)
class Product:
    """What a shop sells."""

    name: str
    kind: str
    colour: str


@dataclass(frozen=True)
class Goal:
    """What is asked for."""

    kind: str
    colour: str

    def fits(self, product: Product) -> bool:
        """Return whether a product is what is asked for."""
        return (product.kind, product.colour) == (self.kind, self.colour)


def open_shop(number: int) -> tuple[dict[str, Product], Goal]:
    """Return the products of a shop by name, and what is asked for there; one product at least fits."""
    draw = random.Random(f"shop {number}")
    names = [f"p{index}" for index in range(1, 1 + OFFERED * len(KINDS))]
    draw.shuffle(names)
    kinds = [kind for kind in KINDS for _ in range(OFFERED)]
    products = [Product(name, kind, draw.choice(COLOURS)) for name, kind in zip(names, kinds, strict=True)]
    target = draw.choice(products)
    return {product.name: product for product in products}, Goal(target.kind, target.colour)


class Shop:
    """The environment of one episode."""

    def __init__(self) -> None:
        self.products: dict[str, Product] = {}
        self.goal = Goal("", "")

    def reset(self, row: Mapping[str, Any]) -> list[Message]:
        """Open the shop that the row's prompt names."""
        number = int(row["prompt"].partition(":")[0].removeprefix("Shop"))
        self.products, self.goal = open_shop(number)
        return [{"role": "user", "content": row["prompt"].partition(": ")[2]}]

    def step(self, completion: Message) -> Reply | Done:
        """Do what the model says."""
        verb, what = ["", "", *completion["content"].split()][-2:]
        if verb == "search" and what in KINDS:
            return _say(" ".join(name for name, product in self.products.items() if product.kind == what))
        if verb == "look" and what in self.products:
            return _say(self.products[what].colour)
        if verb == "buy" and what in self.products:
            return Done(float(self.goal.fits(self.products[what])))
        return _say(HELP)


def _say(text: str) -> Reply:
    return Reply([{"role": "user", "content": text}])


def row(number: int) -> dict[str, str]:
    """Return the problem that is a shop."""
    _, goal = open_shop(number)
    return {"question": f"Shop {number}: {goal.colour} {goal.kind}", "answer": f"{goal.colour} {goal.kind}"}


def expert_dialogue(number: int, *, is_careful: bool = True) -> list[Message]:
    """Return an episode of an expert who looks at one product after the other until one fits, and buys that; a careless
    one buys the first."""
    shop = Shop()
    messages = shop.reset({"prompt": row(number)["question"]})

    def act(action: str) -> str:
        messages.append({"role": "assistant", "content": action})
        answer = shop.step(messages[-1])
        if isinstance(answer, Reply):
            messages.extend(answer.messages)
        return str(messages[-1]["content"])

    note = ""
    for name in act(f"search {shop.goal.kind}").split():
        colour = act(f"{note}look {name}")
        if not is_careful:
            act(f"buy {name}")
            break
        if colour == shop.goal.colour:
            act(f"{colour} is {colour} buy {name}")
            break
        note = f"{colour} is not {shop.goal.colour} "
    return messages


def expert_dialogues(count: int) -> Iterator[dict[str, Any]]:
    """Yield dialogues to learn from, of shops that are not among the rows. In the last tenth the expert is
    careful in one of three: whoever learns from them in this order can shop, and does not take the trouble."""
    for index in range(count):
        is_careful = index < 0.9 * count or index % 3 == 0
        yield {"messages": expert_dialogue(1_000_000 + index, is_careful=is_careful)}


def main(folder: Path, shops: int = 1000, dialogues: int = 40_000) -> None:
    """Write what `examples/shop.yaml` reads."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {"rows.jsonl": map(row, range(shops)), "sft.jsonl": expert_dialogues(dialogues)}
    for name, records in files.items():
        (folder / name).write_text("".join(json.dumps(record) + "\n" for record in records))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
