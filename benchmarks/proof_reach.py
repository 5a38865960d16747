"""Measures trainings in which seven of ten problems are out of reach, with tokens for two rounds through all problems.

The policy of `proof_world` gets word problems of sources A and B, and products of three-digit numbers, which it cannot
learn. Every arm has the tokens that the raw one samples in STEPS steps; a profile is paid out of them:

    raw        all rows in turn
    feed       `profile: null` with `feed.order: signal`: groups that were sampled tell which rows teach
    profile    what a run of truegold selects by its defaults, in turn
    oracle     the word problems alone, in turn
"""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import polars as pl
from proof_concentrated import count_tokens, fresh, run_stages, write_tables
from proof_training import (
    DEMO,
    Record,
    evaluations,
    heldout_rows,
    ingested_rows,
    metered,
    train,
    training_settings,
    write_lines,
)
from proof_world import ENGINE, draw_records, policy

from truegold.flows.config import validate_config
from truegold.flows.plan import plan
from truegold.pipeline.running.disk import DigestCache
from truegold.pipeline.running.stage_table import Phase

ARMS = ("raw", "oracle", "feed", "profile")
REACHABLE, BEYOND = 27, 126
"""Word problems of each of two sources, and products."""
HELDOUT = 60
STEPS, EVALUATIONS = 24, 4
PROMPTS, EVAL_SAMPLES = 16, 4
MAX_TOKENS = 32
SPARE = 1.4
"""Steps of other arms, for each that the raw one's tokens would pay: theirs have fewer tokens."""


def run_arm(arm: str, seed: int, run: Path, raw: Record | None) -> Record:
    """Prepare and train one arm with one seed, and return its figures. `raw` are those of the raw arm."""
    folder = run / "proof" / "reach" / f"seed-{seed}"
    path = write_lines(folder / "raw.jsonl", _records(seed))
    costs: Record = {}
    spent = 0
    with metered(costs):
        if arm == "profile":
            tables = _select(folder, policy(run))
            spent = count_tokens(folder / "run" / "profile" / "samples.parquet")
        else:
            prepared = folder / f"rows-{arm}"
            prepared.mkdir(exist_ok=True)
            rows = ingested_rows(path, prepared, DigestCache(prepared / ".digests.json"))
            if arm == "oracle":
                rows = rows.filter(~pl.col("prompt").str.contains("times"))
            tables = write_tables(rows, prepared)
    taken = pl.read_parquet(tables["rows"])
    figures: Record = {
        "rows": taken.height,
        "beyond": taken.filter(pl.col("prompt").str.contains("times")).height,
        "preparation": {"tokens": spent, **costs},
    }
    steps = STEPS
    if raw is not None:
        steps = max(EVALUATIONS, math.ceil(STEPS * SPARE * (1 - spent / raw["points"][-1]["tokens"])))
    asked = draw_records(HELDOUT, "AB", random.Random("held out"), held_out=True)
    problems = write_lines(folder / "heldout.jsonl", asked)
    heldout = heldout_rows(problems, folder, DigestCache(folder / ".digests.json"))
    out = fresh(folder / f"arm-{arm}")
    settings: dict[str, Any] = training_settings(steps, seed, STEPS // EVALUATIONS, 2 * HELDOUT, EVAL_SAMPLES) | {
        "prompts_per_step": PROMPTS,
        "sampling.refills": 0,
        "feed.order": "signal" if arm == "feed" else "uniform",
    }
    trained: Record = {}
    with metered(trained):
        train({**tables, "model": policy(run), "heldout": heldout}, out, settings, DEMO)
    points = [
        {"step": line["step"], "tokens": tokens, "all": line["heldout_pass_rate"]}
        for tokens, line in evaluations(out / "train")
    ]
    return figures | {"points": points, "training": trained}


def _records(seed: int) -> list[Record]:
    draw = random.Random(f"reach {seed}")
    records = draw_records(REACHABLE, "AB", draw, held_out=False)
    for _ in range(BEYOND):
        a, b = draw.randrange(100, 1000), draw.randrange(100, 1000)
        records.append({"question": f"What is {a} times {b}?", "answer": str(a * b), "source": "products"})
    draw.shuffle(records)
    return [{**record, "id": f"{index}"} for index, record in enumerate(records)]


def _select(folder: Path, checkpoint: Path) -> dict[str, Path]:
    data = {"path": str(folder / "raw.jsonl"), "columns": {"prompt": "question", "gold": "answer"}}
    settings: dict[str, Any] = {
        "name": "run",
        "runs_dir": str(folder),
        "data": {**data, "verifier": "math", "domain": "math"},
        "model": {"path": str(checkpoint)},
        "engine": ENGINE.model_dump(),
        "profile": {"max_tokens": MAX_TOKENS},
    }
    config = validate_config(settings, "proof")
    run_stages(plan(config, Phase.SELECT), config.run_dir)
    return {
        name: config.run_dir / "select" / f"{table}.parquet"
        for name, table in {"rows": "selected", "reserve": "reserve"}.items()
    }
