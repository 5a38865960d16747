"""Rows of numbered problems, for tests that only need to tell them apart."""

from __future__ import annotations

from truegold.pipeline.rows import Row, row_id


def make_row(problem: int, split: str = "train", gold: str = "5") -> Row:
    """Return a row of a numbered problem."""
    prompt = f"Problem number <{problem}>"
    return {
        "id": row_id(prompt, gold),
        "prompt": prompt,
        "gold": gold,
        "domain": "math",
        "verifier": "math",
        "verifier_args": "{}",
        "solution": None,
        "source": "train.jsonl",
        "source_row": problem,
        "split": split,
        "meta": "{}",
    }
