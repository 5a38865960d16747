"""How hard an item looks: a few counts over its text, the weak prior that pass rates are compared with.

    "Tom has 3 apples and buys 2 more. ..."  solution "3+2=5"     ->  short, one step: nobody should fail it

Features are logarithms of counts (words, numbers, lines and steps and characters of the solution, its largest number),
standardised over the items; a text that is missing counts as average. What they mean for difficulty is learnt from the
pass rates by ridge regression (`ability`), never from labels of bad items. This is the explanatory item-response model
of Fischer 1973 (linear logistic test model) with an error term.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from truegold.pipeline.flag.suspicion.items import Item

_NUMBER = re.compile(r"\d[\d,]{0,15}\.?\d{0,10}")
_WORD = re.compile(r"[A-Za-z]+|[一-鿿]")
_CALCULATOR = re.compile(r"<<[^<>]{0,200}>>")
MAX_CHARS = 20_000
"""Longer texts are read to here."""


def features(items: Sequence[Item]) -> NDArray[np.float64]:
    """(n, 6), each column with mean 0 and standard deviation 1; all 0 where it says nothing."""
    table = np.array([_counts(item) for item in items], dtype=np.float64).reshape(len(items), 6)
    known = np.isfinite(table)
    n = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, table, 0.0).sum(axis=0) / n
    centred = np.where(known, table - mean, 0.0)
    spread = np.sqrt((centred**2).sum(axis=0) / n)
    scaled: NDArray[np.float64] = centred / np.where(spread > 1e-9, spread, 1.0)
    return scaled


def _counts(item: Item) -> list[float]:
    values = [math.nan] * 6
    if item.prompt:
        prompt = item.prompt[:MAX_CHARS]
        values[0] = math.log1p(len(_WORD.findall(prompt)))
        values[1] = math.log1p(len(_NUMBER.findall(prompt)))
    if item.solution:
        solution = _CALCULATOR.sub("", item.solution[:MAX_CHARS])
        numbers = [float(text.replace(",", "")) for text in _NUMBER.findall(solution)]
        values[2] = math.log1p(solution.count("\n"))
        values[3] = math.log1p(solution.count("="))
        values[4] = math.log1p(len(solution))
        values[5] = math.log1p(max(numbers, default=0.0))
    return values
