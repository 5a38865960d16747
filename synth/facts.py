"""What synthesis came to: positives for their tokens, by strategy and difficulty, rows that became trainable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from truegold.synth.attempt import Attempt
from truegold.synth.budget import Budget
from truegold.synth.hard_rows import HardRow

EXAMPLES = 5
EXAMPLE_CHARS = 600


def synthesis_facts(rows: Sequence[HardRow], budget: Budget) -> dict[str, Any]:
    """Return what the stage's record and the report say of a synthesis."""
    with_positive = [hard for hard in rows if hard.positives]
    return {
        "hard_rows": len(rows),
        "rows_with_positive": len(with_positive),
        "became_trainable": sum(hard.origin == "hard" for hard in with_positive),
        "tokens": budget.spent,
        "budget_tokens": budget.config.budget_tokens,
        "rounds": budget.rounds,
        "strategies": _by_strategy(rows),
        "difficulties": _by_difficulty(rows),
        "dropped": _dropped(rows),
        "examples": _examples(with_positive),
    }


def _by_strategy(rows: Sequence[HardRow]) -> list[dict[str, Any]]:
    sums: dict[tuple[str, str], dict[str, Any]] = {}
    kept = sum(hard.positives for hard in rows)
    for hard in rows:
        for attempt in hard.attempts:
            empty = {"attempts": 0, "right": 0, "positives": 0, "tokens": 0}
            tally = sums.setdefault((attempt.strategy, hard.difficulty), empty)
            tally["attempts"] += 1
            tally["right"] += attempt.passed
            tally["positives"] += attempt.kept
            tally["tokens"] += attempt.tokens
    return [
        {
            "strategy": strategy,
            "difficulty": difficulty,
            **tally,
            "per_thousand_tokens": round(1000 * tally["positives"] / tally["tokens"], 3) if tally["tokens"] else None,
            "share": round(tally["positives"] / kept, 4) if kept else None,
        }
        for (strategy, difficulty), tally in sorted(sums.items())
    ]


def _by_difficulty(rows: Sequence[HardRow]) -> dict[str, dict[str, int]]:
    sums: dict[str, dict[str, int]] = {}
    for hard in rows:
        tally = sums.setdefault(hard.difficulty, {"rows": 0, "with_positive": 0})
        tally["rows"] += 1
        tally["with_positive"] += bool(hard.positives)
    return dict(sorted(sums.items()))


def _dropped(rows: Sequence[HardRow]) -> dict[str, int]:
    reasons: dict[str, int] = {}
    for hard in rows:
        for attempt in hard.attempts:
            if attempt.dropped is not None:
                reasons[str(attempt.dropped)] = reasons.get(str(attempt.dropped), 0) + 1
    return dict(sorted(reasons.items(), key=lambda entry: -entry[1]))


def _examples(rows: Sequence[HardRow]) -> list[dict[str, Any]]:
    """Return a few positives with what led to them, of different strategies first."""
    firsts: dict[str, tuple[HardRow, Attempt]] = {}
    others: list[tuple[HardRow, Attempt]] = []
    for hard in rows:
        for attempt in hard.attempts:
            if attempt.kept and attempt.strategy not in firsts:
                firsts[attempt.strategy] = hard, attempt
            elif attempt.kept:
                others.append((hard, attempt))
    chosen = [*firsts.values(), *others][:EXAMPLES]
    return [
        {
            "id": hard.row["id"],
            "prompt": hard.row["prompt"][:EXAMPLE_CHARS],
            "strategy": attempt.strategy,
            "failed": attempt.parent.completion[:EXAMPLE_CHARS] if attempt.parent is not None else None,
            "feedback": attempt.feedback,
            "reflection": attempt.reflection[:EXAMPLE_CHARS] if attempt.reflection else None,
            "completion": attempt.completion[:EXAMPLE_CHARS],
            "geometric_weight": round(attempt.leaks["weights"][2], 4),
        }
        for hard, attempt in chosen
    ]
