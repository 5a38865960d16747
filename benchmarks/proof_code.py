"""What rewards for programs teach: a tiny model that writes one-line Python functions, judged in the sandbox.

    python benchmarks/proof_code.py WORK_DIR --json proof_code.json [--seeds 0 1 2] [--steps 60] [--arms format tests]

The model comes from a careless cold start (`proof_code_tasks`). Every arm trains it with as many steps of the same
tasks, and differs in what it is rewarded for:

    format            a code block with one line that begins as a function does
    tests             all tests pass
    format and tests  both
    share of tests    the share of the tests that pass
    weak tests        all tests pass, which for half of the rows are two cases that many a wrong program passes
    weak, vetted      the same without the rows whose tests the stage `vet_tests` drops or flags

Given are the shares of held-out tasks' completions, 4 samples each at temperature 1, that are laid out as asked for,
whose program runs, and whose program passes tests that are not weak. WORK_DIR keeps the model.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import polars as pl
from proof_code_tasks import LAYOUT, Task, examples, rows, split_tasks
from publishing import publish, say
from synthesis import ENGINE, cold_start, run_stage

from truegold.pipeline.config.stages import ProfileConfig, VetTestsConfig
from truegold.pipeline.select.stage import SELECTED_SCHEMA
from truegold.pipeline.tables.rows import write_rows
from truegold.train.config.grpo import GrpoConfig

PROMPTS, GROUP = 16, 8
MAX_TOKENS = 48
EVAL_SAMPLES = 4
FIGURES = ("layout", "runs", "passes")
LAYOUT_TERM = {"name": "layout", "verifier": "regex", "args": {"pattern": LAYOUT, "where": "response", "full": True}}


@dataclass(frozen=True)
class Arm:
    """One reward."""

    terms: Sequence[Mapping[str, Any]] = ({"name": "correct"},)
    counts_share: bool = False
    """Whether a completion earns the share of the tests that it passes."""
    weak_share: float = 0.0
    """The share of the rows whose tests are weak."""
    is_vetted: bool = False
    guards_off: tuple[str, ...] = ()


ARMS = {
    # The guard stops it otherwise, once all completions have the layout.
    "format": Arm(({"name": "correct", "weight": 0.0}, LAYOUT_TERM), guards_off=("reward_constant",)),
    "tests": Arm(),
    "format and tests": Arm(({"name": "correct"}, {**LAYOUT_TERM, "weight": 0.5})),
    "share of tests": Arm(counts_share=True),
    "weak tests": Arm(weak_share=0.5),
    "weak, vetted": Arm(weak_share=0.5, is_vetted=True),
}


def train(arm: Arm, model: Path, tasks: Sequence[Task], steps: int, seed: int, work: Path) -> tuple[Path, int]:
    """Train the model with one reward; return the checkpoint and how many rows it was trained on."""
    table = work / "raw.parquet"
    write_rows(table, rows(tasks, weak_share=arm.weak_share, seed=seed))
    if arm.is_vetted:
        table = _vetted(table, work)
    kept = pl.read_parquet(table).to_dicts()
    if arm.counts_share:
        kept = [{**row, "verifier_args": _with_share(row["verifier_args"])} for row in kept]
    inputs = {name: work / f"{name}.parquet" for name in ("rows", "reserve", "heldout")}
    for name, records in {"rows": kept, "reserve": [], "heldout": []}.items():
        write_rows(inputs[name], records, SELECTED_SCHEMA)
    config = GrpoConfig.model_validate(
        {
            "steps": steps,
            "prompts_per_step": PROMPTS,
            "group_size": GROUP,
            "sampling": {"max_tokens": MAX_TOKENS, "refills": 0},
            "reward": {"terms": arm.terms},
            "guards": {"off": arm.guards_off},
            "optimizer": {"lr": 4e-4, "warmup_steps": 5, "schedule": "constant", "dtype": "float32"},
            "evaluation": {"every": 0},
            "checkpoint_every": steps,
            "seed": seed,
        }
    )
    config = config.model_copy(update={"engine": ENGINE})
    out = run_stage(work, "train", "truegold.train.grpo:grpo", {**inputs, "model": model}, config)
    return out / "checkpoint", len(kept)


def _vetted(table: Path, work: Path) -> Path:
    """Return the rows that neither lose their place nor get a flag when their tests are vetted."""
    folder = run_stage(work, "vet", "truegold.pipeline.verify.vet.stage:vet_tests", {"rows": table}, VetTestsConfig())
    flagged = pl.read_parquet(folder / "flags.parquet").select("id")
    kept = pl.read_parquet(folder / "rows.parquet").join(flagged, on="id", how="anti", maintain_order="left")
    kept.write_parquet(work / "vetted.parquet")
    return work / "vetted.parquet"


def _with_share(verifier_args: str) -> str:
    return json.dumps({**json.loads(verifier_args), "reward": "pass_rate"})


def evaluate(model: Path, held_out: Path, work: Path) -> dict[str, float]:
    """Return the shares of a checkpoint's completions that are laid out as asked for, that run and that pass."""
    config = ProfileConfig(engine=ENGINE, samples=EVAL_SAMPLES, first_samples=None, max_tokens=MAX_TOKENS, workers=2)
    inputs = {"rows": held_out, "model": model}
    folder = run_stage(work, "evaluation", "truegold.pipeline.profile:profile", inputs, config)
    samples = pl.read_parquet(folder / "samples.parquet").to_dicts()
    return {
        "layout": fmean(re.fullmatch(LAYOUT, sample["completion"]) is not None for sample in samples),
        "runs": fmean(_runs(sample) for sample in samples),
        "passes": fmean(sample["score"] == 1.0 for sample in samples),
    }


def _runs(sample: Mapping[str, Any]) -> bool:
    """Return whether a sample's function gave a value to its first failing case, where one failed."""
    return sample["score"] == 1.0 or "got" in json.loads(sample["evidence"]).get("failed", {})


def _report(measured: Mapping[str, dict[str, float]], steps: int) -> str:
    lines = [
        f"{steps} steps of {PROMPTS} x {GROUP} completions.",
        "",
        "| reward | rows | laid out | runs | passes | by seed |",
        "|---" * 6 + "|",
    ]
    for arm in dict.fromkeys(key.rpartition("|")[0] for key in measured):
        by_seed = [figures for key, figures in measured.items() if key.rpartition("|")[0] == arm]
        cells = [arm, f"{fmean(figures['rows'] for figures in by_seed):,.0f}"]
        cells += [f"{fmean(figures[name] for figures in by_seed):.3f}" for name in FIGURES]
        lines.append(f"| {' | '.join(cells)} | {', '.join(format(figures['passes'], '.3f') for figures in by_seed)} |")
    return "\n".join(lines)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path, metavar="WORK_DIR")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--examples", type=int, default=40_000, help="of the cold start")
    parser.add_argument("--arms", nargs="+", default=list(ARMS), choices=list(ARMS), metavar="ARM")
    parser.add_argument("--json", type=Path, required=True, help="keep the figures here; what is in it is not repeated")
    parser.add_argument("--write", type=Path, help="write the table into this Markdown file")
    arguments = parser.parse_args()
    base = arguments.work.resolve()
    base.mkdir(parents=True, exist_ok=True)
    tasks, held_out = split_tasks()
    model = cold_start(base, examples(tasks, arguments.examples, seed=0), seed=0)
    table = base / "heldout.parquet"
    write_rows(table, rows(held_out, weak_share=0.0, seed=0))
    measured: dict[str, dict[str, float]] = json.loads(arguments.json.read_text()) if arguments.json.exists() else {}
    for seed in arguments.seeds:
        for name in ("before", *arguments.arms):
            key = f"{name}|{seed}"
            if key in measured or (name == "before" and seed != arguments.seeds[0]):
                continue
            with tempfile.TemporaryDirectory(prefix="truegold-proof-code-") as folder:
                work = Path(folder)
                trained, count = (
                    (model, 0) if name == "before" else train(ARMS[name], model, tasks, arguments.steps, seed, work)
                )
                measured[key] = {"rows": count, **evaluate(trained, table, work)}
            arguments.json.write_text(json.dumps(measured))
            say(f"{key}: {measured[key]}")
    publish(measured, _report(measured, arguments.steps), arguments.json, arguments.write, "Rewards for programs")


if __name__ == "__main__":
    _main()
