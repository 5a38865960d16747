r"""Compares the golds (reference answers) of rows with the same problem, and chooses the best row for each gold.

    two golds               comparison
    42 · 42.0               the same, by their forms (`gold_keys.gold_form`)
    x \ge 1 · [1, \infty)   the same, says the math verifier
    5 km · 5 cm             different: both were read, and they are not equal
    Yes, since ... · 5      undecided: prose cannot be compared with a number
    see solution · 5        undecided: a placeholder is not a gold
    x=t, y=2t · x=y/2       undecided: the free parameter has different names
    1/2, or 0.5 · 0.5       the same: both rows accept 0.5

If the comparison of two golds is undecided, both rows stay, without a flag. A row without gold is dropped if its
cluster has a row with gold.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from itertools import islice, product
from typing import Protocol

import numpy as np

from truegold.pipeline.near.arrays import Ints, repeat_over_runs, run_starts
from truegold.pipeline.near.gold_keys import BETWEEN_GOLDS, NO_GOLD
from truegold.verifiers import Verdict, equivalent
from truegold.verifiers.gold import is_placeholder

MAX_GOLDS = 8
"""The maximum number of distinct golds of a problem that are compared. Further golds count as undecided."""
MAX_PAIRS = 64
"""The maximum number of pairs of golds that are compared for two rows with several accepted golds. With more pairs, two
rows without an equal gold count as undecided."""
MAX_WORDS = 3
"""The maximum number of words of a verbal answer that is compared: "odd" and "even", "on Monday"."""
DECIDING_RUNGS = frozenset(["exact", "numeric", "sampled", "symbolic", "structure"])
"""Steps of the math verifier. They are reached only if the verifier has read both sides as mathematics."""

_LAYOUT = re.compile(r"\\[a-zA-Z]+|[{}$\\]")
"""LaTeX commands and signs, which are not words."""
_WORD = re.compile(r"[^\W\d_]{2,}")
_LETTER = re.compile(r"(?<![\\a-zA-Z])[a-zA-Z](?![a-zA-Z])")
r"""A letter that stands alone in an equation, such as the t of "x=2t". The letters of `\sin` do not match."""
_CHOICE = re.compile(r"\(?[a-jA-J]\)?\.?")
"""The letter of an option: "B", "(B)", "B."."""


class GoldComparison(IntEnum):
    """The relation of two golds."""

    DIFFERENT = -1
    UNDECIDED = 0
    SAME = 1


def compare_golds(left: str, right: str) -> GoldComparison:
    """Compare the accepted golds of two rows, each joined by `gold_keys.accepted_text`.

    The result is SAME if both rows accept some gold, and DIFFERENT if every pair of golds differs.
    """
    sides = [gold.split(BETWEEN_GOLDS) for gold in (left, right)]
    pairs = islice(product(*sides), MAX_PAIRS + 1)
    comparisons = []
    for pair in pairs:
        comparisons.append(_compare(*pair))
        if comparisons[-1] is GoldComparison.SAME:
            return GoldComparison.SAME
    return max(comparisons) if len(comparisons) <= MAX_PAIRS else GoldComparison.UNDECIDED


@lru_cache(2**14)
def _compare(left: str, right: str) -> GoldComparison:
    """Compare two golds with the math verifier. Golds of different kinds (`_are_comparable`) are undecided."""
    verdicts = (equivalent(left, gold=right), equivalent(right, gold=left))
    if any(verdict.score == 1.0 for verdict in verdicts):
        return GoldComparison.SAME
    if all(_is_decided(verdict) for verdict in verdicts) and _are_comparable(left, right):
        return GoldComparison.DIFFERENT
    return GoldComparison.UNDECIDED


def _is_decided(verdict: Verdict) -> bool:
    return verdict.score == 0.0 and verdict.evidence.get("rung") in DECIDING_RUNGS | {"words"}


def _are_comparable(left: str, right: str) -> bool:
    """Return whether two unequal golds are of one kind: choices, answers of a few words, or other golds."""
    if is_placeholder(left.strip()) or is_placeholder(right.strip()) or _name_other_parameters(left, right):
        return False
    if bool(_CHOICE.fullmatch(left.strip())) != bool(_CHOICE.fullmatch(right.strip())):
        return False
    left_words, right_words = (len(_WORD.findall(_LAYOUT.sub(" ", gold))) for gold in (left, right))
    if max(left_words, right_words) > MAX_WORDS:
        return False
    has_digit = [any(char.isdigit() for char in gold) for gold in (left, right)]
    return bool(left_words) == bool(right_words) or all(has_digit)


def _name_other_parameters(left: str, right: str) -> bool:
    """Return whether both golds are equations with different letters: "x = 2t" and "x = 2s"."""
    if "=" not in left or "=" not in right:
        return False
    return set(_LETTER.findall(left)) != set(_LETTER.findall(right))


@dataclass(frozen=True)
class UnifiedGolds:
    """The golds of clustered rows after comparison."""

    gold: Ints
    """A number for each row's gold. Equal golds of a cluster have equal numbers. NO_GOLD stands for a row without
    gold."""
    contradicted: Ints
    """The clusters with two golds that differ."""


class Spellings(Protocol):
    """The golds of rows as they are written, by row number."""

    def __getitem__(self, row: int) -> str: ...


def unify_golds(gold: Ints, texts: Spellings, cluster: Ints) -> UnifiedGolds:
    """Compare the golds within each cluster.

    gold: a number for each row; equal spellings have equal numbers. cluster: the number of each row's cluster.
    """
    with_gold = np.flatnonzero(gold != NO_GOLD)
    order = with_gold[np.lexsort((with_gold, gold[with_gold], cluster[with_gold]))]
    new = run_starts(cluster[order]) | run_starts(gold[order])
    # Take one row for each gold of each cluster.
    first = order[new]
    starts = np.flatnonzero(run_starts(cluster[first]))
    counts = np.diff(starts, append=len(first))
    alias: dict[tuple[int, int], int] = {}
    contradicted = []
    for start, count in zip(starts[counts > 1].tolist(), counts[counts > 1].tolist(), strict=True):
        rows = np.sort(first[start : start + count])[:MAX_GOLDS].tolist()
        head = int(cluster[rows[0]])
        same, differ = _compare_all([texts[row] for row in rows])
        alias |= {(head, int(gold[rows[index]])): int(gold[rows[other]]) for index, other in same.items()}
        if differ:
            contradicted.append(head)
    if alias:
        gold = gold.copy()
        in_clusters = np.isin(cluster[with_gold], [head for head, _ in alias])
        for row in with_gold[in_clusters].tolist():
            gold[row] = alias.get((int(cluster[row]), int(gold[row])), gold[row])
    return UnifiedGolds(gold, np.array(contradicted, dtype=np.int64))


def _compare_all(golds: list[str]) -> tuple[dict[int, int], bool]:
    """Return {2: 0} if gold 2 equals the earlier gold 0, and so on. Also return whether any two golds differ."""
    same: dict[int, int] = {}
    different: list[int] = []
    differ = False
    for index, gold in enumerate(golds):
        comparisons = {other: compare_golds(gold, golds[other]) for other in different}
        equal = next((other for other, comparison in comparisons.items() if comparison == GoldComparison.SAME), None)
        if equal is not None:
            same[index] = equal
            continue
        differ |= GoldComparison.DIFFERENT in comparisons.values()
        different.append(index)
    return same, differ


def fill_missing_golds(gold: Ints, cluster: Ints, best_first: Ints) -> Ints:
    """Return the golds. A row without gold gets the gold of the best row with gold in its cluster."""
    main = np.full(len(gold), NO_GOLD, dtype=np.int64)
    with_gold = best_first[gold[best_first] != NO_GOLD][::-1]
    main[cluster[with_gold]] = gold[with_gold]
    return np.where(gold == NO_GOLD, main[cluster], gold)


def best_of_each_gold(cluster: Ints, gold: Ints, rank: Ints) -> Ints:
    """Return for each row the best row with the same cluster and gold."""
    order = np.lexsort((rank, gold, cluster))
    heads = np.flatnonzero(run_starts(cluster[order]) | run_starts(gold[order]))
    kept_for = np.empty(len(gold), dtype=np.int64)
    kept_for[order] = repeat_over_runs(order[heads], heads, len(order))
    return kept_for
