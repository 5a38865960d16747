"""Plans the next samples of a profile: a few for every row, then more for the rows where they may change the selection.

    1  Random rows, the pilot, get 4 samples each. One row in 32 of them gets all `samples`, a number in the settings. A
       first stopping rule is computed from these samples.
    2  The rows of the pilot get up to 8 samples, as the first rule decides. Then the final rule is computed. Meanwhile,
       all other rows get 4 samples each.
    3  Each row gets further samples, usually 2 at a time, until the final rule stops it or it has all `samples`.

Two kinds of rows always get all `samples`: held-out rows, because they measure a model, and rows with a doubtful gold.
A gold is doubtful if none of the row's samples passes, and most of them agree on one answer.

The number of samples of a row depends only on the verdicts on the pilot and on the row itself. Their order has no
effect. So a profile that was killed and resumed ends with the same samples.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from truegold.pipeline.profile.stopping_rule import (
    MOST_STRATA,
    Allocation,
    Cell,
    SavedRule,
    Stratum,
    StratumKey,
    allocate,
    find_cuts,
)
from truegold.pipeline.rates import fit_priors
from truegold.pipeline.tables.rows import Row, row_key

PILOT_ROWS = 4096
"""The maximum number of rows in the pilot."""
WHOLE_SHARE = 1 / 32
"""The share of the pilot that gets all samples at once. It shows how often rows that passed four times still pass."""
HALFWAY = 2
"""The pilot follows the first rule up to this index of `Allocation.levels`. For the levels 4, 6, 8, ... this is 8
samples."""
ROUNDS = 2
"""The number of times that a rule is computed: the first and the final one."""
OPEN_ROWS = 4096
"""The maximum number of rows in memory, in addition to those of the pilot."""


@dataclass(slots=True)
class SampledRow:
    """A row with the state of its samples."""

    row: Row
    index: int
    """The row's index in its file, from 0."""
    prompt: tuple[int, ...]
    """The token ids of the prompt."""
    prompt_key: str
    """A digest of the prompt."""
    planned: int = 0
    """The number of samples planned so far."""
    unjudged: int = 0
    """The number of planned samples without a verdict."""
    judged: int = 0
    """The number of samples with a score."""
    passes: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    """The answers of samples that did not pass, with the number of samples for each."""


Draw = tuple[SampledRow, int]
"""A row, and the index of the sample to draw."""


@dataclass(frozen=True)
class Selection:
    """The settings of the later stage `select`, as far as they are known."""

    group_size: int
    """The number of samples in a training group."""
    rows: int | None
    """The number of rows to select, or None if it is unknown."""
    quotas: Mapping[str, float] = field(default_factory=dict)
    """The maximum share of the selection for each `domain:NAME` or `source:NAME`."""
    zero_share: float = 1.0
    """The maximum share of selected rows without a pass."""

    def quotas_of(self, source: str, domain: str) -> frozenset[str]:
        """Return the quotas that a row of this source and domain counts towards."""
        return frozenset({f"source:{source}", f"domain:{domain}"} & self.quotas.keys())


ALL_OTHERS: StratumKey = ((None, None), frozenset())
"""The stratum of all rows that are not in one of the largest strata (`Stratum`)."""


class Schedule:
    """Holds the rows that are being sampled, and plans their next samples."""

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
        """Plan at least `first_samples` and at most `samples` for each row. If both are equal, there is no pilot.

        `pilot` has only training rows, and `others` has all other rows. `training_rows` is the number of training rows
        in both. The gold of a row is doubtful if none of its samples passes, and at least the share `suspect_agreement`
        of them agree on one answer. Such a row gets all samples, because a few may agree by chance.
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
        """True if the final rule exists, or if no rule is needed."""
        self._rounds = 0
        """The number of times that the rule was computed."""
        self._resting: dict[int, SampledRow] = {}
        """Rows that wait for a rule. Rows of the pilot wait for the next one, other rows for the final one."""
        self._is_kept: Callable[[SampledRow, int], bool] | None = None
        """The function given to `stop`, or None if `stop` was not called."""
        self._rules: dict[bool, Allocation] = {}
        """The stopping rules for rows of the pilot (True) and for other rows (False). There are none before the first
        rule."""
        self._strata: dict[Cell, StratumKey] = {}
        """The stratum of each source and domain."""
        self.counts: dict[Cell, Counter[tuple[int, int]]] = {}
        """The number of finished training rows, by (source, domain) and by (judged samples, passes)."""
        self.settled = 0
        """The number of finished rows, which get no more samples."""
        self.rule = rule
        """The final rule, or None before the end of the pilot."""
        if rule is not None:
            self._rules, self._strata = dict(rule.allocations), dict(rule.strata)
            self._rounds, self._is_whole = ROUNDS, True
        whole = set(random.Random(seed).sample(sorted(self._pilot), round(len(pilot) * WHOLE_SHARE)))
        for sampled in pilot:
            self._admit(sampled, is_whole=sampled.index in whole)

    @property
    def is_piloting(self) -> bool:
        """True while the pilot is running."""
        return not self._is_whole

    @property
    def finished(self) -> bool:
        """True if all rows are finished."""
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
        """Record the score and the answer of one sample, and plan the next samples of its row."""
        sampled.unjudged -= 1
        if answer is not None and score != 1.0:
            sampled.answers[answer] += 1
        sampled.judged += score is not None
        sampled.passes += score == 1.0
        if not sampled.unjudged:
            self._go_on(sampled)

    @property
    def stopped(self) -> bool:
        """True if `stop` was called."""
        return self._is_kept is not None

    def stop(self, is_kept: Callable[[SampledRow, int], bool]) -> None:
        """Stop sampling. From this time on, only samples that exist are planned: those for which `is_kept` returns
        True.

        Samples that are being drawn are finished.
        """
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
        """Plan the next step of a row whose planned samples are all judged."""
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
            # No sample of this row, or of the whole pilot, could be judged. More samples would not help.
            return True
        if not sampled.passes and max(sampled.answers.values(), default=0) >= self._suspect_agreement * sampled.planned:
            return False
        identity = "-".join(map(str, row_key(sampled.row)))
        draw = random.Random(f"{self._seed}-{identity}-{sampled.judged}-{self._rounds}")
        stratum = self._strata.get(_cell(sampled.row))
        return self._rule(sampled).is_enough(stratum, sampled.judged, sampled.passes, draw)

    def _rest(self, sampled: SampledRow) -> None:
        """Let a row wait for a rule. Once all rows of the pilot wait, compute the next rule."""
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
        """Compute the rules from the verdicts on the pilot. If no sample was judged, there are no rules."""
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
        """The stopping rule for rows outside of the pilot. Before this rule exists, the rule of the pilot, or None."""
        return self._rules.get(False, self._rules.get(True))

    def _settle(self, sampled: SampledRow) -> None:
        del self._open[sampled.index]
        self.settled += 1
        if sampled.row["split"] != "heldout":
            self.counts.setdefault(_cell(sampled.row), Counter())[sampled.judged, sampled.passes] += 1
        self._on_settled(sampled)


def _cell(row: Row) -> Cell:
    return row["source"], row["domain"]
