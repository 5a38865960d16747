r"""Counts doubts (responses which say that the problem lacks something), as evidence that a problem is ill-posed.

    "... so the total cannot be determined, since the price is not given in the problem."     a doubt
    "Could you please provide the price? Assuming that each costs $2, it is \boxed{8}."        a doubt
    "Let x be the price, and assume x > 0."                                                    a step, not a doubt

A system may doubt every problem. So the doubts about a row are compared with the doubts of the same systems about all
rows of the file. With k doubts in n responses, the likelihood ratio is

    ratio = B(k + 1, n - k + 1) / prod over systems s of  b_s^k_s (1 - b_s)^(n_s - k_s)

The Beta function B is the marginal likelihood under a uniform prior. b_s is the system's share of doubts (posterior
mean with Jeffreys' prior). A row without doubts may be ill-posed, too, because most systems invent a missing premise. A
single doubt does not count. Each further doubt multiplies the odds by at most `MOST_EACH`. k doubts of one system count
as k / (1 + (k - 1)/2) doubts (`votes.SAME_SYSTEM`).
"""

from __future__ import annotations

import math
import re
import tomllib
from array import array
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files

import numpy as np

from truegold.pipeline.suspicion.answer_classes import Sample
from truegold.pipeline.suspicion.votes import SAME_SYSTEM, NumberedNames

MOST_EACH = 10.0
"""The maximum factor by which each doubt after the first multiplies the odds.

On problems whose figure was not shown, 26 % of the responses had a doubt, and on other problems .6 %: a factor of 45.
The factor for ill-posed problems was not measured.
"""
MAX_CHARS = 20_000
"""The number of characters at the end of a response that are searched."""
_DOUBT = re.compile(
    "|".join(
        pattern
        for patterns in tomllib.loads(files(__package__).joinpath("doubts.toml").read_text("utf-8")).values()
        for pattern in patterns
    ),
    re.IGNORECASE,
)
"""Matches a doubt in a response (`doubts.toml`)."""


def finds_lacking(response: str) -> bool:
    """Return whether a response says that its problem cannot be answered, or assumes a missing premise."""
    return _DOUBT.search(response[-MAX_CHARS:]) is not None


class DoubtCounter:
    """Counts the doubts in a stream of samples, in eight bytes a response."""

    def __init__(self, rows: NumberedNames) -> None:
        self._rows = rows
        self._systems: dict[str, int] = {}
        self._heard = array("i")  # Two integers for each response: the row, and 2 * system, plus 1 for a doubt.

    def watch(self, samples: Iterable[Sample]) -> Iterator[Sample]:
        """Yield the samples unchanged, and count their doubts."""
        for sample in samples:
            if sample.doubts is not None and (row := self._rows.get(sample.id)) is not None:
                system = self._systems.setdefault(sample.system, len(self._systems))
                self._heard.extend((row, 2 * system + sample.doubts))
            yield sample

    def log_ratios(self) -> Mapping[int, tuple[float, int, int]]:
        """Return for each row with doubts its log likelihood ratio, number of doubts and number of responses."""
        n_systems = max(1, len(self._systems))
        heard = np.frombuffer(self._heard, dtype=np.int32).reshape(-1, 2).astype(np.int64)
        cell, doubts = heard[:, 0] * n_systems + heard[:, 1] // 2, heard[:, 1] % 2
        cells, entry = np.unique(cell, return_inverse=True)
        total, doubting = np.bincount(entry), np.bincount(entry, weights=doubts)
        system, row = cells % n_systems, cells // n_systems
        share = (np.bincount(system, weights=doubting) + 0.5) / (np.bincount(system, weights=total) + 1.0)
        log_base = doubting * np.log(share[system]) + (total - doubting) * np.log1p(-share[system])
        independent = doubting / (1.0 + np.maximum(doubting - 1.0, 0.0) * SAME_SYSTEM)
        doubts_of, responses_of, base_of, independent_of = (
            np.bincount(row, weights=weights) for weights in (doubting, total, log_base, independent)
        )
        ratios = {}
        for index in np.flatnonzero(doubts_of).tolist():
            k, n = int(doubts_of[index]), int(responses_of[index])
            log = _log_beta(k + 1, n - k + 1) - float(base_of[index])
            most = math.log(MOST_EACH) * max(0.0, float(independent_of[index]) - 1.0)
            ratios[index] = (max(0.0, min(log, most)), k, n)
        return ratios


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
