"""What a comparison of two values or two trees finds out."""

from __future__ import annotations

from typing import NamedTuple


class Outcome(NamedTuple):
    """Whether two sides are the same, and which rung of the ladder decided that."""

    same: bool | None
    """None where nothing could be concluded."""
    rung: str
    hedged: bool = False
    """The answer holds gold among other values."""


SAME_NUMBER, OTHER_NUMBER = Outcome(True, "exact"), Outcome(False, "exact")
SAME_STRUCTURE, OTHER_STRUCTURE = Outcome(True, "structure"), Outcome(False, "structure")
UNDECIDED = Outcome(None, "structure")
OPEN = Outcome(None, "open")
"""Both sides may mean the same, and no rule can tell: the verdict is none, unlike that of `UNDECIDED`."""
