"""Plans which sample is drawn next: a few of every row, then further ones where they can change what is selected.

    pilot rows, a random choice   4 samples each, a few rows all  ->  pass rates of all problems, and a stopping rule
    the same rows                 where the rule goes on, up to 8 ->  both anew, by all that is known by then
    all rows, in their order      4 samples each, drawn meanwhile
    rows that are still open      2 more, judged, and again, until the rule says enough or `samples` are reached
    rows whose gold is doubtful   the same against the rule: none of their samples passes, and most agree

Which samples a row gets depends on the verdicts of the pilot and on its own alone, never on what was finished first: a
killed profile comes to the same samples. Rows of the split `heldout` measure a model, so that they get all samples.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from truegold.pipeline.profile.saved_rule import Cell, SavedRule, StratumKey
from truegold.pipeline.profile.stopping_rule import MOST_STRATA, Allocation, Stratum, allocate, find_cuts
from truegold.pipeline.rates.posterior import fit_priors
from truegold.pipeline.tables.rows import Row, row_key

PILOT_ROWS = 4096
"""The rows that the prior of the stopping rule is fitted to."""
WHOLE_SHARE = 1 / 32
"""The share of the pilot's rows that get all samples at once: four of each row alone do not tell whether those that
always passed will go on to."""
HALFWAY = 2
"""The pilot takes this many steps by the first rule, which four samples of most rows have shown."""
ROUNDS = 2
"""So often the rule is made."""
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


@dataclass(frozen=True)
class Selection:
    """The selection that follows, as far as it is known."""

    group_size: int
    """The samples of a group in training."""
    rows: int | None
    """The rows that it takes at most, or None if that is not known."""
    quotas: Mapping[str, float] = field(default_factory=dict)
    """Shares of the selection by `domain:NAME` or `source:NAME`."""
    zero_share: float = 1.0
    """The share of rows without a pass that it takes at most."""

    def quotas_of(self, source: str, domain: str) -> frozenset[str]:
        """Return the quotas that a row of this source and domain counts for."""
        return frozenset({f"source:{source}", f"domain:{domain}"} & self.quotas.keys())


ALL_OTHERS: StratumKey = ((None, None), frozenset())


class Schedule:
    """The rows that are being sampled, and what comes next."""

    def __init__(
        self,
        pilot: Sequence[SampledRow],
        others: Iterator[SampledRow],
        first_samples: int,
        samples: int,
        suspect_agreement: float,
        training_rows: int,
        selection: Selection,
        seed: int = 0,
        *,
        rule: SavedRule | None = None,
        on_settled: Callable[[SampledRow], None] = lambda sampled: None,
    ) -> None:
        """Plan for each row `first_samples` and at most `samples`; this many rows are of training.

        Where these are equal the pilot is like the others.

        The rows of the pilot are training rows, and `others` are all rows that are not in it. A row without a pass of
        whose samples at least `suspect_agreement` give one answer gets all `samples`: a few may agree by chance.
        """
        self._others = others
        self._suspect_agreement = suspect_agreement
        self._first, self._most, self._seed = first_samples, samples, seed
        self._selection, self._on_settled = selection, on_settled
        self._training_rows = training_rows
        selected = None if selection.rows is None else min(1.0, selection.rows / max(training_rows, 1))
        self._cuts = find_cuts(selected)
        self._ready: deque[Draw] = deque()
        self._open: dict[int, SampledRow] = {}
        self._exhausted = False
        self._pilot = {sampled.index: sampled for sampled in pilot}
        self._is_whole = first_samples == samples or not pilot
        """Whether the rule for all rows is there, or none is needed."""
        self._rounds = 0
        """How often the rule was made."""
        self._resting: dict[int, SampledRow] = {}
        """Rows that wait for the rule: those of the pilot for the next one, others for the last."""
        self._is_kept: Callable[[SampledRow, int], bool] | None = None
        """Tells which samples may still be planned, where sampling has stopped."""
        self._rules: dict[bool, Allocation] = {}
        """The stopping rule for rows of the pilot (True) and for others, once the pilot has shown the prior."""
        self._strata: dict[Cell, StratumKey] = {}
        """The stratum of each source and domain."""
        self.counts: dict[Cell, Counter[tuple[int, int]]] = {}
        """The settled rows of training by source and domain, and by judged samples and passes."""
        self.settled = 0
        """Rows that get no further samples."""
        self.rule = rule
        """The rule for all rows, once the pilot has shown it."""
        if rule is not None:
            self._rules, self._strata = dict(rule.allocations), dict(rule.strata)
            self._rounds, self._is_whole = ROUNDS, True
        whole = set(random.Random(seed).sample(sorted(self._pilot), round(len(pilot) * WHOLE_SHARE)))
        for sampled in pilot:
            self._admit(sampled, is_whole=sampled.index in whole)

    @property
    def is_piloting(self) -> bool:
        """Whether the pilot is still to show how many samples other rows get."""
        return not self._is_whole

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
        if not sampled.unjudged:
            self._go_on(sampled)

    @property
    def stopped(self) -> bool:
        """Whether nothing is planned any more but samples that are kept."""
        return self._is_kept is not None

    def stop(self, is_kept: Callable[[SampledRow, int], bool]) -> None:
        """Plan nothing further but what `is_kept` says to be there, which costs nothing: rows end with that and with
        the samples that are on their way."""
        self._is_kept = is_kept
        ready, self._ready = list(self._ready), deque()
        for draw in ready:
            if is_kept(*draw):
                self._ready.append(draw)
            else:
                draw[0].unjudged -= 1
        for sampled in {draw[0].index: draw[0] for draw in ready if not draw[0].unjudged}.values():
            self._go_on(sampled)

    def _admit(self, sampled: SampledRow, *, is_whole: bool = False) -> None:
        self._open[sampled.index] = sampled
        until = self._most if is_whole or sampled.row["split"] == "heldout" else self._first
        self._plan(sampled, until if self.rule is None else self.rule.planned.get(sampled.index, until))

    def _plan(self, sampled: SampledRow, until: int) -> None:
        samples = range(sampled.planned, until)
        draws = [(sampled, sample) for sample in samples if self._is_kept is None or self._is_kept(sampled, sample)]
        self._ready.extend(draws)
        sampled.planned = until
        sampled.unjudged += len(draws)
        if not draws:
            self._go_on(sampled)

    def _go_on(self, sampled: SampledRow) -> None:
        """Plan what follows when all planned samples of a row are judged."""
        if self._is_whole:
            if sampled.planned < self._most and not self._is_enough(sampled):
                self._plan(sampled, self._rule(sampled).next_level(sampled.planned))
            else:
                self._settle(sampled)
        elif self._rounds and sampled.index in self._pilot and not self._is_halfway(sampled):
            if self._is_enough(sampled):
                self._rest(sampled)
            else:
                self._plan(sampled, self._rule(sampled).next_level(sampled.planned))
        else:
            self._rest(sampled)

    def _rule(self, sampled: SampledRow) -> Allocation:
        return self._rules[sampled.index in (self._pilot if self.rule is None else self.rule.planned)]

    def _is_halfway(self, sampled: SampledRow) -> bool:
        if not self._rules:
            return True
        levels = self._rule(sampled).levels
        return sampled.planned >= levels[min(HALFWAY, len(levels) - 1)]

    def _is_enough(self, sampled: SampledRow) -> bool:
        if not self._rules or not sampled.judged:
            # Nothing can be judged of it, or of any row: further samples would show as little.
            return True
        if not sampled.passes and max(sampled.answers.values(), default=0) >= self._suspect_agreement * sampled.planned:
            return False
        identity = "-".join(map(str, row_key(sampled.row)))
        draw = random.Random(f"{self._seed}-{identity}-{sampled.judged}-{self._rounds}")
        stratum = self._strata.get(_cell(sampled.row))
        return self._rule(sampled).is_enough(stratum, sampled.judged, sampled.passes, draw)

    def _rest(self, sampled: SampledRow) -> None:
        """Let a row wait for the next rule, which is made once all rows of the pilot wait for it."""
        self._resting[sampled.index] = sampled
        if not self._pilot.keys() <= self._resting.keys():
            return
        self._rounds += 1
        self._is_whole = self._rounds == ROUNDS
        self._make_rules()
        if self._is_whole:
            planned = {index: waiting.planned for index, waiting in self._pilot.items()}
            self.rule = SavedRule(self._rules, self._strata, planned, self._training_rows)
        resting, self._resting = self._resting, {}
        for waiting in resting.values():
            self._go_on(waiting)

    def _make_rules(self) -> None:
        """Make the rules by all that is known of the pilot; there are none if nothing was judged."""
        counts: dict[Cell, Counter[tuple[int, int]]] = {}
        for sampled in self._pilot.values():
            if sampled.judged:
                counts.setdefault(_cell(sampled.row), Counter())[sampled.judged, sampled.passes] += 1
        priors = fit_priors(counts)
        if priors is None:
            return
        keys = {cell: (priors.group(*cell), self._selection.quotas_of(*cell)) for cell in counts}
        sizes: Counter[StratumKey] = Counter()
        for cell, key in keys.items():
            sizes[key] += counts[cell].total()
        largest = sorted(sizes, key=lambda key: (-sizes[key], str(key)))[: MOST_STRATA - 1]
        self._strata = {cell: key if key in largest else ALL_OTHERS for cell, key in keys.items()}
        sums: dict[StratumKey, Counter[tuple[int, int]]] = {}
        for cell in sorted(counts):
            sums.setdefault(self._strata[cell], Counter()).update(counts[cell])
        strata = {key: Stratum(priors.of_group(key[0]), counted, key[1]) for key, counted in sums.items()}
        for is_pilot in (True, False) if self._is_whole else (True,):
            self._rules[is_pilot] = allocate(
                strata,
                self._first,
                self._most,
                group_size=self._selection.group_size,
                cuts=self._cuts,
                quotas=self._selection.quotas,
                zero_share=self._selection.zero_share,
                is_fresh=not is_pilot,
            )

    @property
    def allocation(self) -> Allocation | None:
        """The stopping rule for rows of which nothing is known yet, or None if none was made."""
        return self._rules.get(False)

    def _settle(self, sampled: SampledRow) -> None:
        del self._open[sampled.index]
        self.settled += 1
        if sampled.row["split"] != "heldout":
            self.counts.setdefault(_cell(sampled.row), Counter())[sampled.judged, sampled.passes] += 1
        self._on_settled(sampled)


def _cell(row: Row) -> Cell:
    return row["source"], row["domain"]
