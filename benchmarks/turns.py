"""Measures training on dialogues with a text shop or a household, from a cold start on a scripted expert's dialogues.

    python benchmarks/turns.py WORK_DIR [--world household] [--steps 40] [--seeds 0] [--credit equal turn discounted]
                               [--json FILE]

The tiny model is trained by SFT on dialogues of an expert (`examples/shop.py`, `examples/household.py`), which is
careless in the last tenth of them. Then RL rewards episodes that reach their goal. Reported is the share of episodes
that reach it in 200 held-out shops or houses, 4 episodes each, before and after RL, with turns and time. Use one
WORK_DIR for each world.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl
from publishing import publish, say
from synthesis import run_stage

from truegold.pipeline.config.engines import VllmEngineConfig
from truegold.pipeline.config.sources import FileSource
from truegold.pipeline.ingest import ingest
from truegold.pipeline.running.disk import DigestCache
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.running.stage import plan_stage
from truegold.pipeline.running.stage import run_stage as run_planned
from truegold.pipeline.select.stage import SELECTED_SCHEMA
from truegold.pipeline.tables.rows import write_rows
from truegold.train.config.grpo import GrpoConfig
from truegold.train.config.models import OptimizerConfig, SftConfig, TinyModel


@dataclass(frozen=True)
class World:
    """One of the examples."""

    environment: str
    max_turns: int
    tokens: int
    """The longest dialogue."""

    def path(self) -> Path:
        """Return the file of the example."""
        return Path(__file__).parents[1] / "examples" / f"{self.environment.lower()}.py"


WORLDS = {"shop": World("Shop", 8, 256), "household": World("Household", 12, 512)}
EVALUATIONS = 4
HELDOUT = 200


def prepare(work: Path, world: World) -> dict[str, Path]:
    """Return the inputs of a training: the model after its cold start, and the rows."""
    data = work / "data"
    if not data.exists():
        sys.path.insert(0, str(world.path().parent))
        import_module(world.path().stem).main(data)
    digests = DigestCache(work / ".digests.json")
    columns = {"prompt": "question", "gold": "answer"}
    source = FileSource(path="rows.jsonl", columns=columns, verifier="exact", domain=world.path().stem)
    stage = plan_stage("ingest", ingest, source, {"data": data / "rows.jsonl"})
    run_planned(stage, work, digests, NullProgress())
    rows = pl.read_parquet(work / "ingest" / "rows.parquet").to_dicts()
    unknown = dict.fromkeys(SELECTED_SCHEMA.names)
    inputs = {}
    for name, part in (("rows", rows[HELDOUT:]), ("heldout", rows[:HELDOUT])):
        inputs[name] = work / f"{name}.parquet"
        write_rows(inputs[name], [{**unknown, **row} for row in part], SELECTED_SCHEMA)
    inputs["reserve"] = work / "reserve.parquet"
    write_rows(inputs["reserve"], [], SELECTED_SCHEMA)
    texts = data / "sft.jsonl"
    build = "truegold.train.model.checkpoints:build_tiny"
    model = run_stage(work, "model", build, {"texts": texts}, TinyModel(max_positions=world.tokens)) / "checkpoint"
    optimizer = OptimizerConfig(lr=3e-3, warmup_steps=20, schedule="linear", dtype="float32", micro_batch_tokens=8192)
    config = SftConfig(batch_size=64, optimizer=optimizer)
    sft = run_stage(work, "sft", "truegold.train.sft:sft", {"model": model, "data": texts}, config)
    return {**inputs, "model": sft / "checkpoint"}


def train(inputs: Mapping[str, Path], work: Path, world: World, steps: int, seed: int, credit: str) -> dict[str, Any]:
    """Return what came of one training."""
    values: dict[str, Any] = {
        "steps": steps,
        "prompts_per_step": 16,
        "group_size": 8,
        "sampling": {"max_tokens": 24, "refills": 0},
        "turns": {
            "environment": f"{world.path()}:{world.environment}",
            "max_turns": world.max_turns,
            "credit": credit,
        },
        "objective": {"loss": "ppo"},
        "optimizer": {"lr": 4e-4, "warmup_steps": 5, "dtype": "float32"},
        "evaluation": {"every": max(1, steps // EVALUATIONS), "samples": 4, "problems": HELDOUT, "temperature": 1.0},
        "checkpoint_every": steps,
        "seed": seed,
    }
    engine = VllmEngineConfig(dtype="float32", max_model_len=world.tokens, cpu_kv_cache_gib=1)
    config = GrpoConfig.model_validate(values).model_copy(update={"engine": engine})
    began = time.monotonic()
    folder = run_stage(work, f"train-{credit}-{steps}-{seed}", "truegold.train.grpo:grpo", inputs, config)
    seconds = time.monotonic() - began
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    rates = [line["heldout_pass_rate"] for line in lines if line.get("heldout_pass_rate") is not None]
    last = [line for line in lines if line.get("turns") is not None][-1]
    names = ("turns", "segments", "edited_turns", "drifted_turns", "seconds_rollout", "seconds_update", "seconds_sync")
    return {"rates": rates, "seconds": round(seconds), **{name: last.get(name) for name in names}}


def _report(measured: Mapping[str, dict[str, Any]]) -> str:
    lines = ["| credit, seed | held-out before | after | turns at the end | seconds |", "|---" * 5 + "|"]
    for name, run in measured.items():
        cells = [name, f"{run['rates'][0]:.3f}", f"{run['rates'][-1]:.3f}", f"{run['turns']:.2f}", str(run["seconds"])]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path, metavar="WORK_DIR")
    parser.add_argument("--world", choices=WORLDS, default="shop")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--credit", nargs="+", default=["equal"], choices=["equal", "turn", "discounted"])
    parser.add_argument("--json", type=Path, help="keep the figures here")
    parser.add_argument("--write", type=Path, help="write the table into this Markdown file")
    arguments = parser.parse_args()
    work = arguments.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    world = WORLDS[arguments.world]
    inputs = prepare(work, world)
    measured = {}
    for credit in arguments.credit:
        for seed in arguments.seeds:
            measured[f"{credit}, {seed}"] = train(inputs, work, world, arguments.steps, seed, credit)
            say(f"{credit}, {seed}: {measured[f'{credit}, {seed}']}")
    publish(measured, _report(measured), arguments.json, arguments.write, "Training on dialogues")


if __name__ == "__main__":
    _main()
