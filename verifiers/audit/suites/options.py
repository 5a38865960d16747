"""What can be set for vetting, and the bounds it keeps to."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from truegold.verifiers.sandbox import Tier

MAX_RUNS = 20
"""The most runs of a worked solution that can be asked for."""
MAX_MUTANTS = 1_000
"""The most planted faults that can be asked for."""


@dataclass(frozen=True, slots=True)
class VetOptions:
    """The options of a vetting. ValueError where one is out of its bounds."""

    runs: int = 3
    """Runs of each worked solution, each under another hash seed."""
    mutants: int = 30
    """Faults planted in the first worked solution that passes."""
    seed: int = 0
    """Chooses among the possible faults."""
    min_cases: int = 2
    """The cases that have to be left when broken ones are taken out."""
    min_case_share: float = 0.5
    """The share of the cases that has to be left."""
    min_kill_rate: float = 0.8
    """Tests with a lower kill rate are called weak."""
    max_guess_chance: float = 0.05
    """Tests that a guess passes with a greater chance are called guessable."""
    max_leaked: float = 0.5
    """The share of the cases that may stand in the problem's text."""
    max_headroom: float = 0.5
    """The share of the CPU limit that the worked solution may need."""
    max_repeat_s: float = 60.0
    """CPU seconds for each sort of repetition; where a solution is slow, there are fewer runs and mutants."""
    tier: Tier | None = None
    """The sandbox's tier, as `CodeVerifier` takes it."""
    python: str = sys.executable
    """The interpreter, as `CodeVerifier` takes it."""

    def __post_init__(self) -> None:
        for name, low, high in (("runs", 1, MAX_RUNS), ("mutants", 0, MAX_MUTANTS), ("min_cases", 1, 10**6)):
            if not low <= getattr(self, name) <= high:
                raise ValueError(f"{name} must be a whole number from {low} to {high}, got {getattr(self, name)!r}")
        for name in ("min_case_share", "min_kill_rate", "max_guess_chance", "max_leaked", "max_headroom"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be a number from 0 to 1, got {getattr(self, name)!r}")
        if not 0 < self.max_repeat_s < 1e9:
            raise ValueError(f"max_repeat_s must be a number of seconds, got {self.max_repeat_s!r}")

    def affordable(self, repetitions: int, seconds_each: float) -> int:
        """Return how many of the repetitions there is time for."""
        return repetitions if repetitions * seconds_each <= self.max_repeat_s else int(self.max_repeat_s / seconds_each)
