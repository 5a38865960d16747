r"""Examples of a step's completions: a few lines on the terminal, and a table in the trackers.

    step 12: right (match), reward 1, gold 72 | Natalia sold clips to 48 of her ... | 48/2 = 24 ... \boxed{72}

Right and wrong completions alternate, as long as the step has both. All completions are read from the file of rank 0
in `completions/`.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import polars as pl

from truegold.pipeline.running.progress import Progress
from truegold.pipeline.text.shown_text import visible
from truegold.train.config.grpo import ShownConfig
from truegold.train.model.training_log import MetricsLog

COLUMNS = tuple("prompt completion gold extracted score reason reward advantage truncated trained version id".split())
"""The columns of the table in the trackers."""
PROMPT_CHARS, START_CHARS, END_CHARS = 70, 40, 110
"""The number of characters of a prompt, of the start and of the end of a completion on the terminal."""


def show_completions(out_dir: Path, step: int, config: ShownConfig, log: MetricsLog, progress: Progress) -> None:
    """Print completions of a finished step and write them to the trackers, every `config.every` steps. Rank 0 only."""
    if not config.every or step % config.every:
        return
    rows = choose_completions(out_dir / "completions" / f"step-{step:06d}.parquet", max(config.shown, config.rows))
    for row in rows[: config.shown]:
        progress.note(describe_completion(step, row))
    if table := [[row[column] for column in COLUMNS] for row in rows[: config.rows]]:
        log.write_table(step, "completions", COLUMNS, table)


def choose_completions(path: Path, most: int) -> list[dict[str, Any]]:
    """Return at most `most` completions of a step's file, right completions alternating with all others."""
    sampled = pl.read_parquet(path, columns=list(COLUMNS))
    is_right = sampled["score"].eq_missing(1.0)
    right, others = (sampled.filter(kind).head(most).to_dicts() for kind in (is_right, ~is_right))
    return [row for row in chain(*zip_longest(right, others)) if row is not None][:most]


def describe_completion(step: int, row: Mapping[str, Any]) -> str:
    """Return the line on the terminal for a completion."""
    score = row["score"]
    verdict = {None: "not judged", 1.0: "right", 0.0: "wrong"}.get(score) or f"score {score:g}"
    reward = "none" if row["reward"] is None else f"{row['reward']:.3g}"
    cut_off = ", cut off" if row["truncated"] else ""
    prompt = _shorten(row["prompt"], PROMPT_CHARS, 0)
    completion = _shorten(row["completion"], START_CHARS, END_CHARS)
    gold = _shorten(row["gold"] or "none", END_CHARS, 0)
    return f"step {step}: {verdict} ({row['reason']}){cut_off}, reward {reward}, gold {gold} | {prompt} | {completion}"


def _shorten(text: str, start: int, end: int) -> str:
    """Return the start and the end of a text on one line, with symbols in place of control characters."""
    line = visible(" ".join(text.split()))
    return line if len(line) <= start + end + 5 else f"{line[:start]} ... {line[len(line) - end :]}".rstrip()
