"""Notes about rows that were kept although a part of them was left out or not understood.

12 row(s) were cut to their last user message; what they lost: 10 system_message, 2 pictures.
3 row(s) say a split that is none, the first 'fold_1' (number 7); it stays in their meta.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass
class RowWarnings:
    """The warnings about the rows of a source."""

    lost: Counter[str] = field(default_factory=Counter)
    """What rows lost that were cut to their last user message: `system_message`, `pictures`, ..."""
    cut: int = 0
    """How many rows were."""
    unknown_splits: int = 0
    """How many rows say a split that is none."""
    first_split: str = ""
    """The first of them."""

    def add_lost(self, reasons: Iterable[str]) -> None:
        """Count a row that was cut to its last user message."""
        self.lost.update(list(reasons))
        self.cut += 1

    def add_split(self, value: object, row_number: int) -> None:
        """Count a row that says a split that is none."""
        self.first_split = self.first_split or f"{value!r:.40} (number {row_number})"
        self.unknown_splits += 1

    def counts(self) -> dict[str, int]:
        """Return the counts for the stage's report."""
        counts = {"warn:last_turn_only": self.cut, "warn:unknown_split": self.unknown_splits}
        return {name: count for name, count in counts.items() if count}

    def lines(self) -> list[str]:
        """Return what is said, a line for each kind."""
        lines = []
        if self.cut:
            lost = ", ".join(f"{count:,} {reason}" for reason, count in self.lost.most_common())
            lines.append(f"{self.cut:,} row(s) were cut to their last user message; what they lost: {lost}.")
        if self.unknown_splits:
            lines.append(
                f"{self.unknown_splits:,} row(s) say a split that is none, the first {self.first_split}; "
                "it stays in their meta."
            )
        return lines
