"""A verifier of your own: prices per unit, such as `$2.50 per kg`.

A row, and the scores of four responses:

    prompt    3 kg of rice cost $7.50. What is the price per kilogram?
    gold      2.50 USD/kg
    response  ... so it is \\boxed{$2.5 per kg}        -> 1.0

    right price, other unit ($2.50 per g)              -> 0.5
    no price at all                                    -> 0.0
    gold that is not a unit price                      -> None: this row cannot be judged

Name it in a config, for all rows or in a row's `verifier` column:

    verifier: examples/custom_verifier.py:unit_price

and give it arguments in the row's `verifier_args`, here how far a price may be off:

    {"tolerance": 0.01}

Run this file to see it judge three rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from truegold.verifiers import Item, committed_answer, verifier, verify_batch

PRICE = re.compile(r"(?:\$|USD)?\s?(\d{1,9}(?:\.\d{1,4})?)\s?(?:\$|USD|dollars)?\s?(?:/|per)\s?([a-z]{1,20})")


@verifier(version="1")
def unit_price(response: str, gold: str, *, info: Mapping[str, Any]) -> float | None:
    """Return 1 for the price and the unit, 0.5 for the price alone, None where gold is no unit price."""
    expected = PRICE.search(gold)
    if expected is None:
        return None
    answer = committed_answer(response)
    answered = PRICE.search(answer.text.replace("\\", "")) if answer else None
    if answered is None:
        return 0.0
    if abs(float(answered[1]) - float(expected[1])) > info.get("tolerance", 0.0):
        return 0.0
    return 1.0 if answered[2] == expected[2] else 0.5


def main() -> None:
    """Judge three rows and print their verdicts."""
    spelling = f"{__file__}:unit_price"
    rows = [
        Item(r"7.50 / 3 = 2.50, so it is \boxed{$2.5 per kg}.", "2.50 USD/kg", spelling),
        Item("The answer is $2.51 per g", "2.50 USD/kg", spelling, '{"tolerance": 0.02}'),
        Item("Rice is cheap.", "2.50 USD/kg", spelling),
    ]
    for row, verdict in zip(rows, verify_batch(rows), strict=True):
        print(f"{verdict.score}  {verdict.reason:<10}  {row.response}")


if __name__ == "__main__":
    main()
