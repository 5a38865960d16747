"""What the model wrote while it trained, step by step, packed for the page: some problems of each step, and which
problems come again, so that their completions can be laid side by side.

    {"steps": [{"step": 0, "problems": [{"id": "9f0c...", "prompt": ..., "gold": "18", "attempts": [...]}]}, ...]}
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from truegold.pipeline.report.browser.details import longer_than, middle_cut
from truegold.pipeline.report.browser.payload import pack
from truegold.pipeline.report.training import steps_of
from truegold.pipeline.tables.run_files import Fields

STEPS_SHOWN = 100
"""The steps of the page, evenly over the training, the first and the last among them."""
PROBLEMS_SHOWN = 12
"""The problems of each of them: those first that come in other steps of the page too."""
ATTEMPTS_SHOWN = 8
COMPLETION_CHARS = 800
PROMPT_CHARS = 1_000

COLUMNS = ["id", "prompt", "gold", "completion", "truncated", "score", "reason", "extracted", "advantage"]
"""What is read of a step's completions."""


def pack_completions(training: Path | None) -> str | None:
    """Return the packed completions of a training's folder; None where it has none."""
    steps = steps_of(training) if training is not None else []
    if not steps:
        return None
    last = len(steps) - 1
    count = min(len(steps), STEPS_SHOWN)
    chosen = sorted({round(index * last / max(count - 1, 1)) for index in range(count)})
    ids = {index: _ids(steps[index][1]) for index in chosen}
    occurrences = Counter(problem for problems in ids.values() for problem in problems)
    shown = []
    for index in chosen:
        step, parts = steps[index]
        # Among equals the id decides, in every step alike, so that the same problems are chosen wherever they come.
        ordered = sorted(ids[index], key=lambda problem: (-occurrences[problem], problem))[:PROBLEMS_SHOWN]
        folder = f"{parts[0].parent.parent.name}/{parts[0].parent.name}"
        files = f"{folder}/{parts[0].name.split('.', 1)[0]}*.parquet"
        shown.append({"step": step, "files": files, "problems": _problems(parts, ordered)})
    return pack({"steps": shown, "all": len(steps)})


def _ids(parts: Sequence[Path]) -> list[str]:
    ids = pl.scan_parquet(list(parts)).select(pl.col("id").unique(maintain_order=True)).collect()
    return [str(id_) for id_ in ids["id"]]


def _problems(parts: Sequence[Path], ids: Sequence[str]) -> list[Fields]:
    rows = pl.scan_parquet(list(parts)).select(COLUMNS).filter(pl.col("id").is_in(list(ids))).collect().to_dicts()
    problems = []
    for id_ in ids:
        attempts = [row for row in rows if row["id"] == id_]
        first = attempts[0]
        problems.append(
            {
                "id": id_,
                "prompt": middle_cut(first["prompt"], PROMPT_CHARS),
                **longer_than(PROMPT_CHARS, first["prompt"]),
                "gold": None if first["gold"] is None else middle_cut(first["gold"], 200),
                "attempts": [_attempt(row) for row in attempts[:ATTEMPTS_SHOWN]],
                "right": sum(row["score"] == 1.0 for row in attempts),
                "n": len(attempts),
            }
        )
    return problems


def _attempt(row: Mapping[str, Any]) -> Fields:
    return {
        "text": middle_cut(row["completion"], COMPLETION_CHARS),
        **longer_than(COMPLETION_CHARS, row["completion"]),
        "score": row["score"],
        "reason": row["reason"],
        "answer": None if row["extracted"] is None else middle_cut(row["extracted"], 200),
        "advantage": None if row["advantage"] is None else round(row["advantage"], 3),
        "truncated": row["truncated"],
    }
