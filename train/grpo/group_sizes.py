"""How many completions each prompt of a step gets, where hard ones get more of them.

    posterior    expected pass rate    size (least 2, 4 on average)
    Beta(9, 1)   .9                    2
    Beta(1, 1)   .5                    4
    Beta(1, 9)   .1                    6

A group of n teaches where it has right and wrong completions. What that is worth is the room above the pass rate p:

    worth(n) = E[(1 - p) (1 - p^n - (1 - p)^n)],  p ~ Beta(a, b)

Every further completion adds less than the one before, so that handing them out one by one, always where the next one
adds most, gives the largest sum that the budget allows. To share a budget of rollouts as a knapsack whose values are
the probability of a gradient and what is gained by it is Knapsack RL's (arXiv 2509.25849), which takes the pass rate
for known; here it is a distribution.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betaln

from truegold.train.grpo.posteriors import Floats


def share_budget(a: Floats, b: Floats, chances: Floats, budget: int, least: int, most: int) -> list[int]:
    """Return the size of each row's group; together they are `budget`.

    a, b: the posterior Beta(a, b) of each row's pass rate. chances: how probable it is that the row can teach at all.
    Of equal gains the smaller group grows first, and then the earlier row's.
    """
    rows = len(a)
    if not rows * least <= budget <= rows * most:
        raise ValueError(f"{rows} groups of {least} to {most} completions cannot have {budget} together")
    gains = chances[:, None] * marginal_worth(a, b, np.arange(least, most, dtype=np.float64))
    # Gains fall along a row, so that the largest of all of them are the first ones of each.
    grown = np.argsort(-gains.T.ravel(), kind="stable")[: budget - rows * least] % rows
    return [least + int(count) for count in np.bincount(grown, minlength=rows)]


def marginal_worth(a: Floats, b: Floats, sizes: Floats) -> Floats:
    """Return what one more completion adds to a group of each size: worth(n + 1) - worth(n). Shape [rows, sizes].

    That is E[p^n (1 - p)^2] + E[p (1 - p)^(n + 1)], of which each is a ratio of Beta functions.
    """
    a, b, sizes = a[:, None], b[:, None], sizes[None, :]
    whole = betaln(a, b)
    gains: Floats = np.exp(betaln(a + sizes, b + 2) - whole) + np.exp(betaln(a + 1, b + sizes + 1) - whole)
    return gains
