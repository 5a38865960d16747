"""Rows of problems in mathematics, for tests that care about little else of them."""

from __future__ import annotations

from typing import Any

from truegold.pipeline.tables.rows import Row, row_id


def plain_row(prompt: str, gold: str | None, **more: Any) -> Row:
    """Return a row of a problem; `more` has further columns, or other values of these."""
    return {
        "id": row_id(prompt, gold),
        "prompt": prompt,
        "gold": gold,
        "domain": "math",
        "verifier": "math",
        "verifier_args": "{}",
        "solution": None,
        "source": "train.jsonl",
        "source_row": 1,
        "split": "train",
        "meta": "{}",
        "context": None,
        **more,
    }


def make_row(problem: int, split: str = "train", gold: str = "5") -> Row:
    """Return a row of a numbered problem."""
    return plain_row(f"Problem number <{problem}>", gold, source_row=problem, split=split)
