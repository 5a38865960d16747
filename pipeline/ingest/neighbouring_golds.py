r"""Finds blocks of rows whose golds belong to the questions of neighbouring rows, in a source without solutions.

    "Solve: $2x=8$"        gold "$y = 3x + 2$"      the equation that the next row asks for
    "Find the equation"    gold "$(-\infty, 4)$"    and so on, for 20 rows

A gold has a kind (a whole number below ten, an equation, an interval), letters, words and a size. It may also be the
result of one operation on two numbers of a question. The fit of a gold to a question is a sum of log ratios, one for
each of these signs: how often question and gold have such a pair of values in one row, divided by how often in rows far
apart. All frequencies come from the source itself. A shifted block is too small to change them.

A block is the segment of rows with the greatest sum of (fit to the neighbour's question - fit to its own). This sum is
the gain. Where golds are in place, the sum falls with every row. By chance it rises no higher than the logarithm of the
number of rows (Karlin and Altschul 1990, PNAS 87, 2264). In sorted files, neighbouring golds have one kind and fit all
neighbours. So the gain of the best of FAR_SHIFTS on the same segment is subtracted.

A block needs 20 rows to be found if kinds differ (college maths), and 40 to 80 if most golds are whole numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from truegold.pipeline.text.prose import asks, sentences, without_formulas
from truegold.pipeline.text.quantities import read_number

SHIFTS = (1, -1, 2, -2)
"""The shifts that are tried. With shift 1, the gold of row i belongs to the question of row i + 1."""
FAR_SHIFTS = (5, -5, 7, -7, 11, -11, 17, -17, 23, -23)
"""Shifts between unrelated rows, for comparison."""
MIN_ROWS = 200
"""The minimum number of rows. A smaller source does not show which kinds of golds its questions have."""
MIN_MARGIN = 15.0
"""The minimum gain of a block over the best far shift, in nats. By chance, the greatest gain in 40 files was 11."""
MIN_GAIN = 0.5
"""The minimum gain of a block per row, in nats. With less, rows are variants of their neighbours."""
MAX_SHARE = 0.5
"""The maximum share of a source's rows that a block may have."""
MAX_RATIO = 3.0
"""The maximum gain or loss of one row, in nats."""
PRIOR_ROWS = 8
"""Each estimated frequency is drawn towards a more general frequency. The general frequency counts as much
as this number of rows."""
MIN_OPENINGS = 5
"""The minimum number of questions with the same first words (an opening). Rarer openings are treated as one."""
MAX_NUMBERS = 8
MAX_DIGITS = 7
SIGNS = 4
LEVELS = 32
"""The number of values of each sign (`_signs`)."""

Integers = np.ndarray[Any, np.dtype[np.int64]]
Floats = np.ndarray[Any, np.dtype[np.float64]]

_LETTER = re.compile(r"(?<![A-Za-z\\])[B-HJ-Zb-z](?![A-Za-z])")
_COMMAND = re.compile(r"\\[A-Za-z]+")
_WORD = re.compile(r"[a-z]{3,}|[\u4e00-\u9fff]")
_FIGURE = re.compile(r"\d+(?:\.\d+)?")
_HOW = re.compile(r"how\s+[a-z]+|多少.?|几")
_FORMS = {
    "interval": re.compile(r"\\infty|\\cup|\[[^\[\],]+,[^\[\],]+[)\]]|\([^(),]+,[^(),]+\]"),
    "equation": re.compile("="),
    "inequality": re.compile(r"[<>]|\\[lg]eq?\b|\\neq?\b"),
    "matrix": re.compile("matrix|array"),
    "tuple": re.compile(r"[(<][^()]+,[^()]+[)>]"),
    "words": re.compile(r"(?<![\\A-Za-z])[A-Za-z]{3,}[\s~]+[A-Za-z]{3,}"),
    "list": re.compile(r",|\band\b|\bor\b"),
}
"""Forms of golds that are not numbers, the most specific first."""
_PARTS = {
    "letters": _LETTER,
    "root": re.compile("sqrt"),
    "fraction": re.compile("frac"),
    "pi": re.compile("pi"),
    "function": re.compile(r"\\(?:sin|cos|tan|ln|log|sec|csc|cot|arc[a-z]+)\b"),
}


class _Row(NamedTuple):
    """The features of a question and its gold."""

    opening: tuple[str, ...]
    """The first three words of the question, or the first two of "how many apples ..."."""
    letters: frozenset[str]
    words: frozenset[str]
    numbers: frozenset[float]
    steps: frozenset[float]
    """The results of one operation on two of the numbers."""
    kind: str
    gold_letters: frozenset[str]
    gold_words: frozenset[str]
    value: float | None


@dataclass(frozen=True, slots=True)
class ShiftedBlock:
    """A block of questions from `first` to `last`. Its golds are shifted by `shift` rows."""

    first: int
    last: int
    shift: int


def find_block(questions: Sequence[tuple[str, str]]) -> ShiftedBlock | None:
    """Return the block of questions whose golds fit the questions `shift` rows later, or None.

    `questions` are (question, gold) in the order of the source.
    """
    if len(questions) < MIN_ROWS:
        return None
    rows = [_read(question, gold) for question, gold in questions]
    fit = _Fit(rows)
    far = [fit.gains(shift) for shift in FAR_SHIFTS]
    blocks: list[tuple[float, ShiftedBlock]] = []
    for shift in SHIFTS:
        gains = fit.gains(shift)
        total, first, last = _greatest_segment(gains)
        margin = total - max(0.0, *(float(other[first:last].sum()) for other in far))
        size = last - first
        if margin >= MIN_MARGIN and total >= MIN_GAIN * size and size <= MAX_SHARE * len(rows):
            blocks.append((margin, ShiftedBlock(first, last - 1, shift)))
    return max(blocks, key=lambda block: block[0])[1] if blocks else None


def _read(question: str, gold: str) -> _Row:
    prose = sentences(without_formulas(question))
    asking = next((text for text in reversed(prose) if asks(text)), (prose or [question])[-1]).lower()
    how = _HOW.search(asking)
    numbers = [float(text) for text in dict.fromkeys(_FIGURE.findall(question.replace(",", ""))) if len(text) < 15]
    parsed = read_number(gold)
    return _Row(
        tuple(how[0].split()) if how else tuple(re.findall(r"[a-z]+|[\u4e00-\u9fff]", asking)[:3]),
        frozenset(_LETTER.findall(_COMMAND.sub(" ", question))),
        frozenset(_WORD.findall(question.lower())),
        frozenset(numbers),
        _steps(numbers[:MAX_NUMBERS]),
        _kind(gold),
        frozenset(_LETTER.findall(_COMMAND.sub(" ", gold))),
        frozenset(_WORD.findall(_COMMAND.sub(" ", gold.lower()))),
        None if parsed is None or abs(parsed.value) > 1e15 else abs(float(parsed.value)),
    )


def _steps(numbers: Sequence[float]) -> frozenset[float]:
    pairs = list(combinations(numbers, 2))
    values = {value for left, right in pairs for value in (left + right, abs(left - right), left * right)}
    values.update(top / bottom for pair in pairs for top, bottom in (pair, pair[::-1]) if bottom)
    return frozenset(round(value, 4) for value in values)


def _kind(gold: str) -> str:
    """Return the kind of a gold: for a number its size, else its form."""
    gold = gold.strip().strip("$").strip()
    if (parsed := read_number(gold)) is not None:
        value = abs(parsed.value)
        unit = re.sub(r"[^A-Za-z%.-]", "", _COMMAND.sub("", gold))[:1]
        if value.denominator != 1:
            return f"fraction{unit}"
        return f"{min(len(str(value)), MAX_DIGITS) if value > 1 else value}{unit}"
    form = next((name for name, pattern in _FORMS.items() if pattern.search(gold)), None)
    parts = [name for name, pattern in _PARTS.items() if pattern.search(gold)]
    return form or "+".join(parts) or gold.lower()[:3]


def _signs(question: _Row, gold: _Row) -> tuple[int, int, int, int]:
    """Return codes for how a gold's letters, words, size and value relate to a question. A missing part has the code
    0."""
    size = value = 0
    if gold.value is not None:
        most = max(question.numbers, default=0.0)
        size = 1 + min(7, max(0, round(2 * np.log10((gold.value + 0.5) / (most + 0.5))) + 4)) if most else 9
        exact = round(gold.value, 4)
        value = 1 + 3 * min(3, len(str(int(gold.value))) - 1)
        value += 2 - (exact in question.steps) if exact not in question.numbers else 0
    return (
        _overlap(gold.gold_letters, question.letters) or 4 * bool(question.letters),
        _overlap(gold.gold_words, question.words),
        size,
        value,
    )


def _overlap(part: frozenset[str], whole: frozenset[str]) -> int:
    if not part or part <= whole:
        return int(bool(part))
    return 3 - bool(part & whole)


class _Fit:
    """The fit of a source's golds to its questions, in nats."""

    def __init__(self, rows: Sequence[_Row]) -> None:
        self._rows = rows
        kinds = {kind: index for index, kind in enumerate(sorted({row.kind for row in rows}))}
        self._kinds = np.array([kinds[row.kind] for row in rows])
        self._share = np.bincount(self._kinds, minlength=len(kinds)) / len(rows)
        self._openings = [self._numbered([row.opening[:words] for row in rows]) for words in (1, 3)]
        self._counts = [self._count(openings, len(kinds)) for openings in self._openings]
        self._ratios = np.zeros((SIGNS, LEVELS))
        in_place, far = self._pairs(0), np.concatenate([self._pairs(shift)[0] for shift in FAR_SHIFTS])
        for sign in range(SIGNS):
            chance = np.bincount(far[:, sign], minlength=LEVELS) / len(far)
            here = np.bincount(in_place[0][:, sign], minlength=LEVELS) + PRIOR_ROWS * chance
            known = chance > 0
            self._ratios[sign, known] = np.log(here[known] / (len(rows) + PRIOR_ROWS) / chance[known])
        self._in_place = self._sum(*in_place, is_in_place=True)

    def gains(self, shift: int) -> Floats:
        """Return for each row how much better its gold fits the question `shift` rows later than its own question."""
        signs, questions, golds = self._pairs(shift)
        gains = np.full(len(self._rows), -MAX_RATIO)
        gains[golds] = np.clip(
            self._sum(signs, questions, golds, is_in_place=False) - self._in_place[golds], -MAX_RATIO, MAX_RATIO
        )
        return gains

    def _pairs(self, shift: int) -> tuple[Integers, Integers, Integers]:
        """Return the signs of all pairs of a question and the gold `shift` rows earlier, and their indices."""
        pairs = range(max(0, -shift), len(self._rows) - max(0, shift))
        signs = np.array([_signs(self._rows[gold + shift], self._rows[gold]) for gold in pairs])
        golds = np.array(pairs)
        return signs, golds + shift, golds

    def _sum(self, signs: Integers, questions: Integers, golds: Integers, *, is_in_place: bool) -> Floats:
        kinds = self._kinds[golds]
        share = self._share[kinds]
        # The row itself is subtracted from the counts of its question.
        is_known = is_in_place | (self._kinds[questions] == kinds)
        for openings, counts in zip(self._openings, self._counts, strict=True):
            opening = openings[questions]
            seen = counts[opening, kinds] - is_known + PRIOR_ROWS * share
            share = np.where(opening > 0, seen / (counts.sum(axis=1)[opening] - 1 + PRIOR_ROWS), share)
        fit: Floats = np.log(np.maximum(share, 1e-9) / self._share[kinds])
        for sign in range(SIGNS):
            fit = fit + self._ratios[sign, signs[:, sign]]
        return fit

    @staticmethod
    def _numbered(openings: Sequence[tuple[str, ...]]) -> Integers:
        """Return a number for each opening; 0 for rare ones."""
        texts = [" ".join(words) for words in openings]
        _, inverse, counts = np.unique(texts, return_inverse=True, return_counts=True)
        frequent = np.cumsum(counts >= MIN_OPENINGS) * (counts >= MIN_OPENINGS)
        return np.asarray(frequent[inverse], dtype=np.int64)

    def _count(self, openings: Integers, kinds: int) -> Integers:
        counts = np.zeros((int(openings.max()) + 1, kinds), dtype=np.int64)
        np.add.at(counts, (openings, self._kinds), 1)
        return counts


def _greatest_segment(gains: Floats) -> tuple[float, int, int]:
    """Return the greatest sum of neighbouring values, with its start and end (Kadane's algorithm)."""
    best, total, start = (0.0, 0, 0), 0.0, 0
    for index, gain in enumerate(gains):
        if total <= 0:
            total, start = 0.0, index
        total += float(gain)
        if total > best[0]:
            best = (total, start, index + 1)
    return best
