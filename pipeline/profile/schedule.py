"""Plans which sample is drawn next: a few of every row, then further ones where they can change what is decided.

    pilot rows, a random choice   4 samples each  ->  the prior, and from it the stopping rule (`stopping_rule`)
    all rows, in their order      4 samples each, drawn meanwhile
    rows that are still open      2 more, judged, and again, until the rule says enough or `samples` are reached
    rows whose gold is doubtful   the same against the rule: none of their samples passes, and most agree

Which samples a row gets depends on the verdicts of the pilot and on its own alone, never on what was finished first: a
killed profile comes to the same samples. Rows of the split `heldout` measure a model, so that they get all samples.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from truegold.pipeline.profile.stopping_rule import FURTHER_SAMPLES, Allocation, allocate
from truegold.pipeline.rates.posterior import fit_prior
from truegold.pipeline.tables.rows import Row

PILOT_ROWS = 4096
"""The rows that the prior of the stopping rule is fitted to. By 512, which 4 samples each say little of, rare decisions
came out as impossible in one simulation of four, and nothing was spent on them."""
OPEN_ROWS = 4096
"""The rows that are in memory at a time, apart from the pilot's."""


@dataclass(slots=True)
class SampledRow:
    """A row that samples are drawn of."""

    row: Row
    index: int
    """The row's number in its file, from 0."""
    prompt: tuple[int, ...]
    """The ids of its prompt."""
    prompt_key: str
    """A digest of the prompt."""
    planned: int = 0
    """The samples that are to be drawn, as far as is known."""
    unjudged: int = 0
    """Planned samples without a verdict yet."""
    judged: int = 0
    """Samples with a score."""
    passes: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    """The answers of the samples that did not pass."""


Draw = tuple[SampledRow, int]
"""A row, and which of its samples is to be drawn."""


class Schedule:
    """The rows that are being sampled, and what comes next."""

    def __init__(
        self,
        pilot: Sequence[SampledRow],
        others: Iterator[SampledRow],
        first_samples: int,
        samples: int,
        suspect_agreement: float,
        problems: int,
    ) -> None:
        """Plan for each of so many rows `first_samples` and at most `samples`.

        Where these are equal the pilot is like the others.

        The rows of the pilot are training rows, and `others` are all rows that are not in it. A row without a pass of
        whose samples at least `suspect_agreement` give one answer gets all `samples`: a few may agree by chance.
        """
        self._others = others
        self._suspect_agreement = suspect_agreement
        self._first, self._most, self._problems = first_samples, samples, problems
        self._ready: deque[Draw] = deque()
        self._open: dict[int, SampledRow] = {}
        self._exhausted = False
        self._pilot = {sampled.index for sampled in pilot}
        self._pilot_left = len(self._pilot)
        """Rows of the pilot whose first samples are not judged yet."""
        self._pilot_counts: Counter[tuple[int, int]] = Counter()
        self._waiting: list[SampledRow] = []
        """Rows whose first samples were judged before there was a rule."""
        self._is_kept: Callable[[SampledRow, int], bool] | None = None
        """Which samples may still be planned, where sampling has stopped."""
        self.allocation: Allocation | None = None
        """The stopping rule, once the pilot has shown the prior."""
        self.counts: Counter[tuple[int, int]] = Counter()
        """The settled rows of training, by judged samples and passes."""
        self.settled = 0
        """Rows that get no further samples."""
        for sampled in pilot:
            self._admit(sampled)

    @property
    def finished(self) -> bool:
        """Whether no row is open and none is left to come."""
        return self._exhausted and not self._open

    def draws(self, count: int) -> list[Draw]:
        """Return at most `count` samples to draw next."""
        while len(self._ready) < max(count, 1) and len(self._open) < OPEN_ROWS + len(self._pilot):
            if (sampled := next(self._others, None)) is None:
                self._exhausted = True
                break
            self._admit(sampled)
        return [self._ready.popleft() for _ in range(min(count, len(self._ready)))]

    def record(self, sampled: SampledRow, score: float | None, answer: str | None) -> None:
        """Count the verdict on one sample of a row, with the answer that was read, and plan what follows from it."""
        sampled.unjudged -= 1
        if answer is not None and score != 1.0:
            sampled.answers[answer] += 1
        sampled.judged += score is not None
        sampled.passes += score == 1.0
        if sampled.unjudged:
            return
        if sampled.index in self._pilot and sampled.planned == self._first:
            self._pilot_left -= 1
            self._pilot_counts[sampled.judged, sampled.passes] += 1
        if self._pilot_left and not self.stopped:
            self._waiting.append(sampled)
            return
        if self.allocation is None:
            self._make_rule()
        for waiting in [*self._waiting, sampled]:
            self._go_on(waiting)
        self._waiting.clear()

    @property
    def stopped(self) -> bool:
        """Whether nothing is planned any more but samples that are kept."""
        return self._is_kept is not None

    def stop(self, is_kept: Callable[[SampledRow, int], bool]) -> None:
        """Plan nothing further but what `is_kept` says to be there, which costs nothing: rows end with that and with
        the samples that are on their way."""
        self._is_kept = is_kept
        ready, waiting = list(self._ready), self._waiting
        self._ready, self._waiting = deque(), []
        for draw in ready:
            if is_kept(*draw):
                self._ready.append(draw)
            else:
                draw[0].unjudged -= 1
        if self.allocation is None:
            self._make_rule()
        lost = {sampled.index: sampled for sampled, _ in ready if not sampled.unjudged}
        for sampled in {**lost, **{sampled.index: sampled for sampled in waiting}}.values():
            self._go_on(sampled)

    def _admit(self, sampled: SampledRow) -> None:
        self._open[sampled.index] = sampled
        self._plan(sampled, self._first if sampled.row["split"] != "heldout" else self._most)

    def _plan(self, sampled: SampledRow, count: int) -> None:
        samples = range(sampled.planned, sampled.planned + count)
        draws = [(sampled, sample) for sample in samples if self._is_kept is None or self._is_kept(sampled, sample)]
        self._ready.extend(draws)
        sampled.planned += count
        sampled.unjudged += len(draws)
        if not draws:
            self._settle(sampled)

    def _make_rule(self) -> None:
        prior = fit_prior(self._pilot_counts)
        if prior is not None and self._first < self._most:
            self.allocation = allocate(prior.simplest, self._first, self._most, self._problems)

    def _go_on(self, sampled: SampledRow) -> None:
        further = min(FURTHER_SAMPLES, self._most - sampled.planned)
        if not further or self._is_enough(sampled):
            self._settle(sampled)
        else:
            self._plan(sampled, further)

    def _is_enough(self, sampled: SampledRow) -> bool:
        if self.allocation is None or not sampled.judged:
            # Nothing can be judged of it, or of any row: further samples would show as little.
            return True
        if not sampled.passes and max(sampled.answers.values(), default=0) >= self._suspect_agreement * sampled.planned:
            return False
        return self.allocation.is_enough(sampled.judged, sampled.passes)

    def _settle(self, sampled: SampledRow) -> None:
        del self._open[sampled.index]
        self.settled += 1
        if sampled.row["split"] != "heldout":
            self.counts[sampled.judged, sampled.passes] += 1
