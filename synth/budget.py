"""Chooses the next attempts of a synthesis, within a budget of tokens. An attempt is a completion by a strategy.

A right attempt may be kept to be trained on. It is then a positive. The attempts with the highest scores are chosen:

    score = P(positive) x usefulness / expected tokens

P(positive) is the probability that the attempt becomes a positive. It starts at the row's expected pass rate, and moves
towards the strategy's share of positives on rows of the same difficulty. Every failed attempt at the row lowers it.
Usefulness is the product of the probability that the row's gold is right and the share of the row's training groups
without a right completion. It is halved for every positive that the row has.

The strategy for a row is drawn with the probability that it is the best one (Thompson 1933), so that strategies with
few attempts are tried, too. The order in which samples were finished has no effect on the choices. So a synthesis that
was killed makes the same choices again.
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
"""The row's expected pass rate has the weight of this number of attempts."""
FIRST_TOKENS = 0.5
"""Before its first attempt, a strategy is expected to take this share of the maximum number of tokens."""


@dataclass
class Tally:
    """The results of a strategy on rows of one difficulty."""

    attempts: int = 0
    right: int = 0
    """The number of right attempts, including those that the guards dropped (`leaks`)."""
    positives: int = 0
    """The number of attempts that became positives."""
    tokens: int = 0
    by_chance: float = 0.0
    """The expected number of right attempts without the strategy: the sum of the rows' pass rates."""

    def add(self, hard: HardRow, attempt: Attempt) -> None:
        """Add an attempt at a row to the counts."""
        self.by_chance += hard.known.mean
        self.attempts += 1
        self.right += attempt.passed
        self.positives += attempt.kept
        self.tokens += attempt.tokens


@dataclass
class PlannedAttempt:
    """An attempt to be made. Its texts are set later (`Synthesis`)."""

    hard: HardRow
    strategy: Strategy
    parent: Attempt | None
    """The failed attempt that this attempt continues, or None."""
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
    """Counts the spent tokens, and chooses the attempts of each round."""

    config: SynthConfig
    strategies: Sequence[Strategy]
    tallies: defaultdict[tuple[str, str], Tally] = field(default_factory=lambda: defaultdict(Tally))
    """The results by strategy and difficulty."""
    spent: int = 0
    """The number of sampled tokens."""
    rounds: int = 0

    def record(self, hard: HardRow, attempt: Attempt) -> None:
        """Count an attempt that was made and checked."""
        self.tallies[attempt.strategy, hard.difficulty].add(hard, attempt)
        self.spent += attempt.tokens

    def choose(self, rows: Sequence[HardRow], impossible: Mapping[int, set[str]]) -> list[PlannedAttempt]:
        """Return the attempts of the next round, the highest score first. The list is empty if the budget is spent.

        `impossible`: row index -> the strategies whose prompt leaves the model no tokens for an answer.
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
        """Return the score of an attempt, as the module describes."""
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
        """Return the expected number of tokens of an attempt: the mean over all attempts with the strategy."""
        known = [tally for (name, _), tally in self.tallies.items() if name == strategy.name and tally.attempts]
        if known:
            return max(1.0, sum(tally.tokens for tally in known) / sum(tally.attempts for tally in known))
        longest = self.config.max_tokens + (self.config.reflection_tokens if strategy.reflection else 0)
        return max(1.0, FIRST_TOKENS * longest)

    def _choose_strategy(self, hard: HardRow, impossible: set[str]) -> PlannedAttempt | None:
        """Return an attempt with the best strategy for a row, by a random draw from the posterior of each strategy."""
        parent = self._parent(hard)
        possible = [
            strategy
            for strategy in self.strategies
            if strategy.name not in impossible
            and (strategy.for_programs is None or strategy.for_programs == hard.is_program)
            and (parent is not None or not strategy.needs_failure)
            and not (strategy.uses_gold and hard.row["gold"] is None)
        ]
        # Strategies that show the gold prove least. They are used only for the last attempt, after all others have
        # failed.
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
        """Return the failed attempt to continue: the latest of those with the fewest continuations."""
        failed = [attempt for attempt in hard.attempts if attempt.score is not None and not attempt.passed]
        candidates = [attempt for attempt in [*reversed(failed), *hard.failures] if attempt.depth < self.config.depth]
        return min(candidates, key=lambda attempt: attempt.uses, default=None)
