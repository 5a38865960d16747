"""Times of day and days of the calendar: what one side leaves open, the other may say."""

from __future__ import annotations

from truegold.verifiers.math.evaluation.exact import rational
from truegold.verifiers.math.outcome import OPEN, OTHER_STRUCTURE, Outcome
from truegold.verifiers.math.tree import Clock, Day, Node, Num, Ratio

_HALF_DAY = 12 * 60


def clock_of(node: Node) -> Clock | None:
    """Return the time of day that a node is, or may be."""
    if isinstance(node, Ratio):
        return node.clock
    return node if isinstance(node, Clock) else None


def same_clocks(gold: Node, answer: Node) -> Outcome:
    """Compare two sides of which at least one is a time; 4:30, or 4 for 4:00 p.m., may be in either half of the day."""
    gold_clock, answer_clock = clock_of(gold), clock_of(answer)
    if gold_clock is not None and answer_clock is not None:
        is_open = "" in (gold_clock.half, answer_clock.half)
        difference = gold_clock.minutes - answer_clock.minutes
        return Outcome(difference % _HALF_DAY == 0 if is_open else difference == 0, "structure")
    clock, other = (gold_clock, answer) if gold_clock is not None else (answer_clock, gold)
    if clock is None or clock.half not in ("am", "pm") or clock.minutes % 60 or not isinstance(other, Num):
        return OTHER_STRUCTURE
    minutes = clock.minutes % _HALF_DAY
    return Outcome(other.value * 60 in (minutes, minutes + _HALF_DAY), "structure")


def may_be_ratio(node: Node) -> bool:
    """Tell whether `4:30` may be a ratio, as `4:00` may not."""
    return isinstance(node, Ratio) and all(rational(part) != 0 for part in node.parts)


def same_days(gold: Node, answer: Node) -> Outcome:
    """Compare two sides of which at least one is a day. A year that only gold says is needed."""
    if not isinstance(gold, Day) or not isinstance(answer, Day):
        return OTHER_STRUCTURE
    pairs = [
        (gold.year, answer.year), (gold.month, answer.month), (gold.day, answer.day), (gold.weekday, answer.weekday),
    ]  # fmt: skip
    both_say = [(a, b) for a, b in pairs if a is not None and b is not None]
    if not both_say or any(a != b for a, b in both_say):
        return OTHER_STRUCTURE
    answer_is_coarser = any(a is not None and b is None for a, b in pairs[1:3])
    if answer_is_coarser:
        return OTHER_STRUCTURE
    return OPEN if gold.year is not None and answer.year is None else Outcome(True, "structure")
