"""Chooses attempts that are worth their tokens: those likely to bring a row its first positives (right completions).

    score = P(positive) x usefulness / expected tokens

P(positive) is the probability that a strategy's attempt at a row is right and kept: the mean of a Beta distribution.
The prior is the row's own posterior from the profile, updated by the strategy's results on rows of the same difficulty.
It is weak (STRENGTH), because rows differ. Every failed attempt at the row then lowers P(positive). Usefulness is the
probability that the row's label is right, times the share of the row's groups that would have no right completion,
halved for every positive that the row has.

The strategy of a row is drawn with its probability of being the best (Thompson 1933), so that strategies with few
attempts are tried too. No choice depends on the order in which samples were finished. So a synthesis that was killed
makes the same choices again.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from truegold.synth.config import SynthConfig
from truegold.synth.hard_rows import Attempt, HardRow
from truegold.synth.strategies import Strategy

STRENGTH = 4.0
"""The weight of the prior, as a number of attempts."""
FIRST_TOKENS = 0.5
"""The expected length of a first attempt, as a share of the longest completion."""


@dataclass
class Tally:
    """The results of a strategy on rows of one difficulty."""

    attempts: int = 0
    right: int = 0
    """Attempts that passed, including those that the guards dropped."""
    positives: int = 0
    """Attempts that were kept as positives."""
    tokens: int = 0
    by_chance: float = 0.0
    """The expected number of right attempts, if each is right at its row's pass rate."""

    def add(self, hard: HardRow, attempt: Attempt) -> None:
        """Add an attempt at a row to the counts."""
        self.by_chance += hard.known.mean
        self.attempts += 1
        self.right += attempt.passed
        self.positives += attempt.kept
        self.tokens += attempt.tokens


@dataclass
class PlannedAttempt:
    """An attempt to be made, with the texts that its round prepares."""

    hard: HardRow
    strategy: Strategy
    parent: Attempt | None
    """The failed attempt that this attempt continues."""
    feedback: str = ""
    reflection: str | None = None
    reflection_tokens: int = 0
    context: str = ""
    prompt: tuple[int, ...] = ()
    """The tokens of the prompt."""
    values: dict[str, str] = field(default_factory=dict)
    """The values of the templates' placeholders."""


@dataclass
class TokenBudget:
    """Counts the spent tokens, and chooses the attempts of the next round."""

    config: SynthConfig
    strategies: Sequence[Strategy]
    tallies: defaultdict[tuple[str, str], Tally] = field(default_factory=lambda: defaultdict(Tally))
    """The results by strategy and difficulty."""
    spent: int = 0
    """Sampled tokens."""
    rounds: int = 0

    def record(self, hard: HardRow, attempt: Attempt) -> None:
        """Count an attempt that was made and checked."""
        self.tallies[attempt.strategy, hard.difficulty].add(hard, attempt)
        self.spent += attempt.tokens

    def choose(self, rows: Sequence[HardRow], impossible: Mapping[int, set[str]]) -> list[PlannedAttempt]:
        """Return the attempts of the next round, the most promising ones first. Empty if the budget is spent.

        impossible: strategies whose prompt leaves the model no tokens for an answer, by row.
        """
        scored: list[tuple[float, int, PlannedAttempt, float]] = []
        for hard in rows:
            done = hard.positives >= self.config.positives or len(hard.attempts) >= self.config.attempts
            action = None if done else self._choose_strategy(hard, impossible.get(hard.index, set()))
            if action is not None:
                expected = self.expected_tokens(action.strategy, hard)
                scored.append((self.score(action), -hard.index, action, expected))
        self.rounds += 1
        left = float(self.config.budget_tokens - self.spent)
        chosen: list[PlannedAttempt] = []
        for _, _, action, expected in sorted(scored, key=lambda entry: entry[:2], reverse=True):
            if len(chosen) == self.config.round_rows or left < expected:
                break
            left -= expected
            chosen.append(action)
        return chosen

    def score(self, action: PlannedAttempt) -> float:
        """Return the expected usefulness of an attempt per token."""
        hard = action.hard
        usefulness = (1 - hard.suspicion) * hard.known.dead_share(self.config.group_size) * 0.5**hard.positives
        chance = self.chance(action.strategy, hard)
        return chance * usefulness / self.expected_tokens(action.strategy, hard)

    def chance(self, strategy: Strategy, hard: HardRow) -> float:
        """Return the probability that the next attempt brings a positive."""
        tally = self.tallies[strategy.name, hard.difficulty]
        prior = (STRENGTH * hard.known.mean + tally.positives) / (STRENGTH + tally.attempts)
        failures = sum(not attempt.kept for attempt in hard.attempts)
        return STRENGTH * prior / (STRENGTH + failures)

    def expected_tokens(self, strategy: Strategy, hard: HardRow) -> float:
        """Return the expected tokens of an attempt: the mean over the strategy's attempts at rows of any difficulty."""
        known = [tally for (name, _), tally in self.tallies.items() if name == strategy.name and tally.attempts]
        if known:
            return max(1.0, sum(tally.tokens for tally in known) / sum(tally.attempts for tally in known))
        longest = self.config.max_tokens + (self.config.reflection_tokens if strategy.reflection else 0)
        return max(1.0, FIRST_TOKENS * longest)

    def _choose_strategy(self, hard: HardRow, impossible: set[str]) -> PlannedAttempt | None:
        """Return an attempt with the strategy that is best by a random draw from the posterior of each strategy."""
        parent = self._parent(hard)
        possible = [
            strategy
            for strategy in self.strategies
            if strategy.name not in impossible
            and (strategy.for_programs is None or strategy.for_programs == hard.is_program)
            and (parent is not None or not strategy.needs_failure)
            and not (strategy.uses_gold and hard.row["gold"] is None)
        ]
        # A positive with the gold in the prompt proves least. So it is the last attempt, after all others have failed.
        shown, unshown = ([each for each in possible if each.uses_gold is kind] for kind in (True, False))
        is_last = len(hard.attempts) >= self.config.attempts - 1 or not unshown
        possible = shown if shown and is_last and not hard.positives else unshown
        if not possible:
            return None
        draw = random.Random(f"{self.config.seed}-{self.rounds}-{hard.index}-{hard.row['id']}")

        def promise(strategy: Strategy) -> float:
            tally = self.tallies[strategy.name, hard.difficulty]
            rate = draw.betavariate(1 + tally.positives, 1 + tally.attempts - tally.positives)
            return rate / self.expected_tokens(strategy, hard)

        strategy = max(possible, key=promise)
        return PlannedAttempt(hard, strategy, parent if strategy.needs_failure else None)

    def _parent(self, hard: HardRow) -> Attempt | None:
        """Return the failed attempt to continue: one with the fewest continuations, the latest first."""
        failed = [attempt for attempt in hard.attempts if attempt.score is not None and not attempt.passed]
        candidates = [attempt for attempt in [*reversed(failed), *hard.failures] if attempt.depth < self.config.depth]
        return min(candidates, key=lambda attempt: attempt.uses, default=None)
