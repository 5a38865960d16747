"""Measures trainings with wrong golds in one of three sources: all wrong in the same way, or answers of another model.

Source B of `proof_world` has golds of one of three labellers, A and C have true ones:

    concentrated  four of five golds are one too many
    scattered     the most frequent answer of 8 samples of a weaker tiny model, right or wrong
    real          the answer of Gemma 3 270M, right or wrong

All arms are judged by truegold's verifier, take equally many steps, and differ in which rows they train on:

    raw        all rows
    oracle     the rows whose golds are right
    run        what a run of truegold leaves by its defaults: rules, a profile by the policy, selection with suspicion
    witnesses  `truegold flag --samples` with samples of three models, less the rows of tier `drop`
    reviewed   the same, less those of tier `review` too, as if a reviewer had refused them all
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import proof_real
from proof_training import (
    DEMO,
    Record,
    evaluations,
    heldout_rows,
    ingested_rows,
    metered,
    read_lines,
    sample,
    train,
    training_settings,
    write_lines,
)
from proof_world import ENGINE, JUDGE, LABELLER, draw_records, model, policy

from truegold.flows.config import RunConfig, validate_config
from truegold.flows.plan import plan
from truegold.pipeline.config.stages import ProfileConfig
from truegold.pipeline.curation.plan import flagging_stages
from truegold.pipeline.running.disk import DigestCache
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.running.stage import Stage, run_stage
from truegold.pipeline.running.stage_table import Phase
from truegold.pipeline.select.stage import SELECTED_SCHEMA
from truegold.pipeline.suspicion.stage import sample_files
from truegold.pipeline.tables.rows import write_rows

WITNESSES = ("judge", "trained")
"""The further witnesses, beside the policy."""
ARMS = ("raw", "oracle", "reviewed", "run", "witnesses")
STAGES = {"run": ("run",), "witnesses": ("run", *WITNESSES, "flagged"), "reviewed": ("run", *WITNESSES, "flagged")}
"""The folders whose stages choose an arm's rows. Arms share them: the first one that needs a stage runs it."""
ROWS, HELDOUT = 240, 40
"""Problems of each source."""
STEPS, QUARTER = 32, 8
PROMPTS, EVAL_SAMPLES = 16, 4
MAX_TOKENS = 32
LABELLED = "B"
"""The source that the labeller labels."""
ONE_TOO_MANY = 0.8
"""How many of its golds are one too many, where errors agree."""
LABELS, TESTIMONY = 8, 4
"""Samples of each row by the labeller, and by each further witness."""
SECTION = ProfileConfig(engine=ENGINE, first_samples=None, max_tokens=MAX_TOKENS)


def run_arm(labeller: str, arm: str, seed: int, run: Path) -> Record:
    """Prepare and train one arm with one seed, and return its figures."""
    folder = run / "proof" / labeller / f"seed-{seed}"
    records = _records(labeller, folder, seed, run)
    costs: Record = {}
    with metered(costs):
        table, tokens = _rows_of(arm, folder, records, run)
    trained = pl.concat([pl.read_parquet(path) for path in table.values()], how="vertical_relaxed")
    kept = set(trained["source_row"].to_list())
    bad = [row for row, record in enumerate(records, 1) if record["answer"] != record["truth"]]
    sound = [row for row, record in enumerate(records, 1) if record["answer"] == record["truth"]]
    figures: Record = {
        "rows": pl.read_parquet(table["rows"]).height,
        "bad": len(bad),
        "sound": len(sound),
        "bad_removed": len(set(bad) - kept),
        "sound_removed": len(set(sound) - kept),
        "preparation": {"tokens": tokens, "stages_s": _stage_seconds(arm, folder), **costs},
    }
    if arm in ("witnesses", "reviewed") and not figures["bad_removed"] + figures["sound_removed"]:
        # Trained on the raw arm's rows: that is the raw arm.
        return figures
    return figures | _train(arm, seed, folder, table, run)


def _stage_seconds(arm: str, folder: Path) -> float:
    """Return the wall seconds of the stages that chose an arm's rows, whichever arm they were run for."""
    records = [path for name in STAGES.get(arm, ()) for path in (folder / name).glob("*/stage.json")]
    return round(sum(json.loads(path.read_text())["seconds"] for path in records), 1)


def _train(arm: str, seed: int, folder: Path, table: Mapping[str, Path], run: Path) -> Record:
    asked = draw_records(HELDOUT, "ABC", random.Random("held out"), held_out=True)
    problems = write_lines(folder / "heldout.jsonl", asked)
    heldout = heldout_rows(problems, folder, DigestCache(folder / ".digests.json"))
    out = fresh(folder / f"arm-{arm}")
    settings = training_settings(STEPS, seed, QUARTER, 3 * HELDOUT, EVAL_SAMPLES) | {"prompts_per_step": PROMPTS}
    costs: Record = {}
    with metered(costs):
        train({**table, "model": policy(run), "heldout": heldout}, out, settings, DEMO)
    points = []
    for tokens, line in evaluations(out / "train"):
        rates = {name: line[f"evaluation/heldout/source/{name}"] for name in "ABC"}
        points.append({"step": line["step"], "tokens": tokens, "all": line["heldout_pass_rate"], **rates})
    return {"points": points, "training": costs}


def fresh(folder: Path) -> Path:
    """Return an empty folder. Files of an unfinished attempt are moved aside."""
    tries = 0
    while folder.with_name(f"{folder.name}.{tries}").exists():
        tries += 1
    if folder.exists():
        folder.rename(folder.with_name(f"{folder.name}.{tries}"))
    folder.mkdir(parents=True)
    return folder


def _records(labeller: str, folder: Path, seed: int, run: Path) -> list[Record]:
    """Return the seed's rows, those of one source with the labeller's golds."""
    path = folder / "raw.jsonl"
    if not path.exists():
        records = draw_records(ROWS, "ABC", random.Random(f"concentrated {seed}"), held_out=False)
        asked = [record for record in records if record["source"] == LABELLED]
        if labeller == "concentrated":
            for record in asked[: round(ONE_TOO_MANY * len(asked))]:
                record["answer"] = str(int(record["truth"]) + 1)
        else:
            label = proof_real.label if labeller == "real" else _label
            answers = most_frequent(label(asked, folder / "labels", run))
            for row, record in enumerate(asked, 1):
                record["answer"] = answers.get(row)
        # A row that the labeller has no answer to has no label.
        write_lines(path, [record for record in records if record["answer"] is not None])
    return read_lines(path)


def _label(records: Sequence[Record], folder: Path, run: Path) -> Path:
    return sample(model(LABELLER, run), records, folder, SECTION.model_copy(update={"samples": LABELS}))


def most_frequent(samples: Path) -> dict[int, str]:
    """Return the most frequent answer to each row; of equally frequent ones that which was drawn first."""
    table = pl.read_parquet(samples).filter(pl.col("extracted").is_not_null()).sort("source_row", "sample")
    answers: dict[int, Counter[str]] = {}
    for row, answer in table.select("source_row", "extracted").iter_rows():
        answers.setdefault(row, Counter())[answer] += 1
    return {row: counts.most_common(1)[0][0] for row, counts in answers.items()}


def _rows_of(arm: str, folder: Path, records: Sequence[Record], run: Path) -> tuple[dict[str, Path], int]:
    """Return the tables that an arm trains on, and the tokens that were sampled to choose them."""
    if arm == "run":
        selected = _run(folder, run)
        samples = folder / "run" / "profile" / "samples.parquet"
        return selected, count_tokens(samples)
    prepared = folder / f"rows-{arm}"
    prepared.mkdir(exist_ok=True)
    rows = ingested_rows(folder / "raw.jsonl", prepared, DigestCache(prepared / ".digests.json"))
    tokens = 0
    if arm == "oracle":
        right = {row for row, record in enumerate(records, 1) if record["answer"] == record["truth"]}
        rows = rows.filter(pl.col("source_row").is_in(right))
    elif arm in ("witnesses", "reviewed"):
        suspicion, tokens = _flag(folder, records, run)
        tiers = ["keep"] if arm == "reviewed" else ["keep", "review"]
        kept = suspicion.filter(pl.col("tier").is_in(tiers))["source_row"]
        rows = rows.filter(pl.col("source_row").is_in(kept.implode()))
    return write_tables(rows, prepared), tokens


def write_tables(rows: pl.DataFrame, folder: Path) -> dict[str, Path]:
    """Write rows as a training takes them, with an empty reserve, and return where."""
    tables = {name: folder / f"{name}.parquet" for name in ("rows", "reserve")}
    write_rows(tables["rows"], rows.to_dicts(), SELECTED_SCHEMA)
    write_rows(tables["reserve"], [], SELECTED_SCHEMA)
    return tables


def _run_config(folder: Path, run: Path) -> RunConfig:
    data = {"path": str(folder / "raw.jsonl"), "columns": {"prompt": "question", "gold": "answer"}, "verifier": "math"}
    settings: dict[str, Any] = {
        "name": "run",
        "runs_dir": str(folder),
        "data": {**data, "domain": "math"},
        "model": {"path": str(policy(run))},
        "engine": ENGINE.model_dump(),
        "profile": {"max_tokens": MAX_TOKENS},
    }
    return validate_config(settings, "proof")


def run_stages(stages: Sequence[Stage], folder: Path) -> None:
    """Run stages in order. Finished stages are not repeated."""
    folder.mkdir(parents=True, exist_ok=True)
    digests = DigestCache(folder / ".digests.json")
    for stage in stages:
        run_stage(stage, folder, digests, NullProgress())


def _run(folder: Path, run: Path) -> dict[str, Path]:
    config = _run_config(folder, run)
    run_stages(plan(config, Phase.SELECT), config.run_dir)
    selected = config.run_dir / "select"
    return {"rows": selected / "selected.parquet", "reserve": selected / "reserve.parquet"}


def _flag(folder: Path, records: Sequence[Record], run: Path) -> tuple[pl.DataFrame, int]:
    """Return `suspicion.parquet` of `truegold flag` by three models' samples, and how many tokens these have."""
    _run(folder, run)
    files = {"policy": folder / "run" / "profile" / "samples.parquet"}
    checkpoints = (model(JUDGE, run), run / "train" / "checkpoint")
    for name, checkpoint in zip(WITNESSES, checkpoints, strict=True):
        files[name] = sample(checkpoint, records, folder / name, SECTION.model_copy(update={"samples": TESTIMONY}))
    named = sample_files([f"{name}={path}" for name, path in files.items()])
    run_stages(flagging_stages(_run_config(folder, run), named), folder / "flagged")
    return pl.read_parquet(folder / "flagged" / "suspect" / "suspicion.parquet"), sum(map(count_tokens, files.values()))


def count_tokens(samples: Path) -> int:
    """Return how many tokens a table of samples has."""
    return int(pl.scan_parquet(samples).select(pl.col("token_ids").list.len().sum()).collect().item())
