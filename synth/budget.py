"""Chooses the attempts that are worth their tokens: they probably bring a positive to a row that has no other way.

    score = P(positive) x usefulness / expected tokens

P(positive) of a strategy on a row is a Beta mean. Its prior is the row's own posterior from the profile, moved by what
the strategy has shown on rows of the same difficulty, and its strength is small (STRENGTH): rows differ. Every failed
attempt at the row itself then counts against it. Usefulness is the probability that the row's label is right, times
the share of the row's groups that would be all wrong without help, halved for every positive that it has.

Which strategy a row gets is drawn in proportion to how probable it is to be the best (Thompson 1933): those that are
little tried come up until they have shown what they are worth. Nothing here depends on the order in which samples were
finished, so that a killed synthesis makes the same choices again.
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
"""How many attempts what is known of other rows counts for."""
FIRST_TOKENS = 0.5
"""The share of the longest completion that an attempt is expected to take before any was made."""


@dataclass
class Tally:
    """The results of a strategy on rows of one difficulty."""

    attempts: int = 0
    right: int = 0
    """Attempts that passed, those that the guards dropped included."""
    positives: int = 0
    """Attempts that were kept."""
    tokens: int = 0
    by_chance: float = 0.0
    """Attempts that would be right if each were so at the row's pass rate."""

    def add(self, hard: HardRow, attempt: Attempt) -> None:
        """Count an attempt at a row."""
        self.by_chance += hard.known.mean
        self.attempts += 1
        self.right += attempt.passed
        self.positives += attempt.kept
        self.tokens += attempt.tokens


@dataclass
class PlannedAttempt:
    """An attempt to make, and what its round prepares for it."""

    hard: HardRow
    strategy: Strategy
    parent: Attempt | None
    """The failed attempt that it goes on from."""
    feedback: str = ""
    reflection: str | None = None
    reflection_tokens: int = 0
    context: str = ""
    prompt: tuple[int, ...] = ()
    """The tokens that the model goes on from."""
    values: dict[str, str] = field(default_factory=dict)
    """The values of the templates' placeholders."""


@dataclass
class TokenBudget:
    """Counts what was spent, and chooses the attempts of the next round."""

    config: SynthConfig
    strategies: Sequence[Strategy]
    tallies: defaultdict[tuple[str, str], Tally] = field(default_factory=lambda: defaultdict(Tally))
    """The results by strategy and difficulty."""
    spent: int = 0
    """Sampled tokens."""
    rounds: int = 0

    def record(self, hard: HardRow, attempt: Attempt) -> None:
        """Count an attempt that was made and looked through."""
        self.tallies[attempt.strategy, hard.difficulty].add(hard, attempt)
        self.spent += attempt.tokens

    def choose(self, rows: Sequence[HardRow], impossible: Mapping[int, set[str]]) -> list[PlannedAttempt]:
        """Return the attempts of the next round, the most promising ones first; none if the budget is spent.

        impossible: by row, strategies whose prompt leaves the model no room.
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
        """Return how much an attempt is worth for its tokens."""
        hard = action.hard
        usefulness = (1 - hard.suspicion) * hard.known.dead_share(self.config.group_size) * 0.5**hard.positives
        chance = self.chance(action.strategy, hard)
        return chance * usefulness / self.expected_tokens(action.strategy, hard)

    def chance(self, strategy: Strategy, hard: HardRow) -> float:
        """Return how probable it is that the next attempt brings a positive."""
        tally = self.tallies[strategy.name, hard.difficulty]
        prior = (STRENGTH * hard.known.mean + tally.positives) / (STRENGTH + tally.attempts)
        failures = sum(not attempt.kept for attempt in hard.attempts)
        return STRENGTH * prior / (STRENGTH + failures)

    def expected_tokens(self, strategy: Strategy, hard: HardRow) -> float:
        """Return the probable cost of an attempt: the mean of known attempts, of any difficulty."""
        known = [tally for (name, _), tally in self.tallies.items() if name == strategy.name and tally.attempts]
        if known:
            return max(1.0, sum(tally.tokens for tally in known) / sum(tally.attempts for tally in known))
        longest = self.config.max_tokens + (self.config.reflection_tokens if strategy.reflection else 0)
        return max(1.0, FIRST_TOKENS * longest)

    def _choose_strategy(self, hard: HardRow, impossible: set[str]) -> PlannedAttempt | None:
        """Return the attempt with the strategy that a draw from what is known of each makes the best."""
        parent = self._parent(hard)
        possible = [
            strategy
            for strategy in self.strategies
            if strategy.name not in impossible
            and (strategy.for_programs is None or strategy.for_programs == hard.is_program)
            and (parent is not None or not strategy.needs_failure)
            and not (strategy.uses_gold and hard.row["gold"] is None)
        ]
        # What the gold is shown for proves least: it is the last attempt at a row on which all else has failed.
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
        """Return the failed attempt to go on from: one that no attempt has gone on from yet, the latest first."""
        failed = [attempt for attempt in hard.attempts if attempt.score is not None and not attempt.passed]
        candidates = [attempt for attempt in [*reversed(failed), *hard.failures] if attempt.depth < self.config.depth]
        return min(candidates, key=lambda attempt: attempt.uses, default=None)
