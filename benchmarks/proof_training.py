"""Trainings of the proof: settings, accuracy, costs, and confidence intervals of differences."""

from __future__ import annotations

import json
import resource
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl

from truegold.flows.config import load_config
from truegold.pipeline.config.base import LaunchConfig
from truegold.pipeline.config.sources import Columns, FileSource
from truegold.pipeline.config.stages import ProfileConfig
from truegold.pipeline.ingest import ingest
from truegold.pipeline.profile import profile
from truegold.pipeline.running.disk import DigestCache
from truegold.pipeline.running.isolation import call_isolated
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.running.stage import plan_stage, run_stage

Record = dict[str, Any]

DEMO = Path(__file__).parents[1] / "examples" / "demo.yaml"
MATH = "math"
COLUMNS = {"prompt": "question", "gold": "answer", "solution": "solution"}
"""The roles of a file's columns, as far as it has them."""


def heldout_rows(problems: Path, work: Path, digests: DigestCache) -> Path:
    """Write the held-out problems as rows that are judged rightly, and return their table."""
    folder = work / "heldout"
    folder.mkdir(exist_ok=True)
    rows = ingested_rows(problems, folder, digests).with_columns(split=pl.lit("heldout"))
    rows.write_parquet(work / "heldout.parquet")
    return work / "heldout.parquet"


def ingested_rows(problems: Path, folder: Path, digests: DigestCache) -> pl.DataFrame:
    """Return a file of problems as rows, which stay in `folder` too."""
    with problems.open() as lines:
        columns = {role: name for role, name in COLUMNS.items() if name in json.loads(lines.readline())}
    source = FileSource(path=problems.name, columns=Columns.model_validate(columns), verifier=MATH, domain="math")
    run_stage(plan_stage("ingest", ingest, source, {"data": problems}), folder, digests, NullProgress())
    return pl.read_parquet(folder / "ingest" / "rows.parquet")


def training_settings(steps: int, seed: int, eval_every: int, heldout: int, eval_samples: int) -> Record:
    """Return the settings of a training whose accuracy is read between two evaluations: its rate is constant."""
    return {
        "steps": steps,
        "seed": seed,
        "optimizer.schedule": "constant",
        "evaluation.every": eval_every,
        "evaluation.problems": heldout,
        "evaluation.samples": eval_samples,
        "evaluation.temperature": 1.0,
        "checkpoint_every": steps,
    }


def train(
    inputs: Mapping[str, Path], work: Path, settings: Mapping[str, Any], config_path: Path
) -> list[tuple[int, int, float]]:
    """Train into a folder as a configuration says, with changed settings by their dotted names; return step, tokens
    sampled so far and held-out accuracy of each evaluation."""
    config = load_config(config_path, [f"train.{name}={json.dumps(value)}" for name, value in settings.items()])
    assert config.train is not None
    section = config.train.model_copy(update={"engine": config.engine, "chat": config.chat})
    out = work / "train"
    out.mkdir()
    call_isolated(
        "truegold.train.grpo:grpo", inputs, section, out, NullProgress(), work / "log", LaunchConfig(), work / "scratch"
    )
    return [(line["step"], tokens, line["heldout_pass_rate"]) for tokens, line in evaluations(out)]


def evaluations(out: Path) -> Iterator[tuple[int, Record]]:
    """Yield the tokens sampled before each evaluation of a finished training, and its metrics."""
    tokens = 0
    for line in map(json.loads, (out / "metrics.jsonl").read_text().splitlines()):
        if line.get("heldout_pass_rate") is not None:
            yield tokens, line
        completions = out / "completions" / f"step-{line['step']:06d}.parquet"
        if completions.exists():
            tokens += pl.scan_parquet(completions).select(pl.col("token_ids").list.len().sum()).collect().item()


def accuracy_at(points: Sequence[tuple[int, int, float]], budget: int) -> float | None:
    """Return the accuracy when so many tokens were sampled, between the evaluations around; None beyond the last."""
    for (_, low, before), (_, high, after) in pairwise(points):
        if low <= budget <= high:
            return before + (after - before) * (budget - low) / max(high - low, 1)
    return None


def interval(gains: Sequence[float]) -> str:
    """Return mean and Student's interval of the differences with the same seeds."""
    from scipy.stats import t

    mean = statistics.fmean(gains)
    if len(gains) < 2:
        return f"{mean:+.3f}"
    half = t.ppf(0.975, len(gains) - 1) * statistics.stdev(gains) / len(gains) ** 0.5
    return f"{mean:+.3f} ({mean - half:+.3f} to {mean + half:+.3f})"


def sample(checkpoint: Path, records: Sequence[Record], folder: Path, section: ProfileConfig) -> Path:
    """Return the table of a model's samples of each record."""
    path = write_lines(folder / "asked.jsonl", records)
    digests = DigestCache(folder / ".digests.json")
    ingested_rows(path, folder, digests)
    inputs = {"rows": folder / "ingest" / "rows.parquet", "model": checkpoint}
    run_stage(plan_stage("profile", profile, section, inputs), folder, digests, NullProgress())
    return folder / "profile" / "samples.parquet"


@contextmanager
def metered(costs: Record) -> Iterator[None]:
    """Add the wall and CPU seconds of the block, child processes' among them, to `costs`."""
    began, before = time.monotonic(), _cpu_seconds()
    yield
    costs["wall_s"] = round(costs.get("wall_s", 0.0) + time.monotonic() - began, 1)
    costs["cpu_s"] = round(costs.get("cpu_s", 0.0) + _cpu_seconds() - before, 1)


def _cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def write_lines(path: Path, records: Sequence[Mapping[str, Any]]) -> Path:
    """Write JSON Lines, and return where."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return path


def read_lines(path: Path) -> list[Record]:
    """Return the records of JSON Lines."""
    with path.open() as lines:
        return [json.loads(line) for line in lines]
