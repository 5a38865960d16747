"""Measures training on distilled positives with the same number of tokens, on held-out problems of a family that never
passes and on ordinary problems.

    python benchmarks/synthesis_training.py WORK_DIR --json benchmarks/results/proof_synthesis.json
                                            [--seeds 0 1] [--steps 64] [--tokens-per-row 60] [--only ARM ...]

All arms train on the same rows of the family, from the same cold start (`synthesis.py`), with the same tokens. Tokens
of synthesis (`--tokens-per-row` for each row without a positive) are paid for by fewer steps than in `without`. The
arms:

    without                 RL without positives
    SFT                     SFT on the positives before RL
    SFT, context left in    the same outputs, after the prompts with context that they were sampled from
    members                 positives as members of groups, with each kind of weight
    self-distillation       no positives; the teacher is the policy with a right completion of the group in its prompt

Reported is the pass rate on held-out problems of the family, 4 samples each at temperature 1, after each quarter of the
tokens; and for each arm the mean difference from `without` at the same tokens, over the seeds, with its 95 % interval
(Student's t on pairs). At the end the pass rate on ordinary problems is reported too. WORK_DIR keeps the model, the
profile and the positives.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import polars as pl
from proof_training import accuracy_at, interval
from publishing import publish, say
from synthesis import (
    ATTEMPTS,
    ENGINE,
    KEY,
    MAX_TOKENS,
    STRATEGY_FILE,
    WRONG_MEANING,
    Meter,
    family_rows,
    ordinary_rows,
    prepare,
    run_stage,
    sampled_tokens,
)

from truegold.pipeline.config.engines import ChatConfig
from truegold.pipeline.engines.chat import load_encoder
from truegold.pipeline.select.stage import SELECTED_SCHEMA
from truegold.pipeline.tables.rows import write_rows
from truegold.synth.config import SynthConfig
from truegold.synth.records import DISTILLED_SCHEMA
from truegold.train.config.grpo import GrpoConfig
from truegold.train.config.models import OptimizerConfig, SftConfig

PROMPTS, GROUP = 16, 8
HELD_OUT = 128
ROWS, EXAMPLES = 400, 60_000
"""Of the family, and of the cold start, as `synthesis.py` has them."""
FLOAT32 = {"dtype": "float32"}
QUARTERS, EVALUATIONS = 4, 4
CONDITIONED = "conditioned.parquet"
"""The positives behind the prompts that they were sampled from."""
ARMS: Mapping[str, Mapping[str, Any]] = {
    "without": {},
    "members, token": {"distilled": {"weight": "token"}},
    "members, sequence": {"distilled": {"weight": "sequence"}},
    "members, none": {"distilled": {"weight": "none"}},
    "members, shaped": {"distilled": {"weight": "shaped"}},
    "SFT, then without": {"sft": "distilled.parquet"},
    "SFT, context left in": {"sft": CONDITIONED},
    "self-distillation": {"self_distillation": {"weight": 1.0}},
}
DEFAULT_ARMS = ("without", "SFT, then without", "SFT, context left in")
OTHERS = "ordinary"
"""The set of problems that are not of the family."""


def _tables(work: Path) -> dict[str, Path]:
    """Write the inputs of the training except the positives: all rows with their posteriors, and held-out rows."""
    profile = pl.read_parquet(work / "profile" / "profile.parquet")
    rows = pl.read_parquet(work / "profile" / "rows.parquet").join(
        profile.select(*KEY, "posterior", pass_rate="expected_rate"), on=KEY, maintain_order="left"
    )
    known = rows.with_columns(pl.lit(0.0).alias("suspicion"))
    tables = {name: work / f"train-{name}.parquet" for name in ("rows", "heldout", "reserve")}
    write_rows(tables["rows"], known.select(SELECTED_SCHEMA.names).to_dicts(), SELECTED_SCHEMA)
    write_rows(tables["heldout"], family_rows(HELD_OUT, held_out=True, rng=random.Random("heldout")))
    write_rows(tables["reserve"], [], SELECTED_SCHEMA)
    held_out = ordinary_rows(HELD_OUT // 2, held_out=True, rng=random.Random("ordinary"))
    lines = [json.dumps({"prompt": row["prompt"], "gold": row["gold"]}) for row in held_out]
    _others(work).write_text("\n".join(lines) + "\n")
    return tables


def _others(work: Path) -> Path:
    return work / f"{OTHERS}.jsonl"


def _config(arm: Mapping[str, Any], steps: int, every: int, seed: int, others: Path) -> GrpoConfig:
    values: dict[str, Any] = {
        "steps": steps,
        "prompts_per_step": PROMPTS,
        "group_size": GROUP,
        "sampling": {"max_tokens": MAX_TOKENS, "allow_long": True, "refills": 0},
        "objective": {"loss": "ppo", **{name: arm[name] for name in arm if name != "sft"}},
        "optimizer": {"lr": 4e-4, "warmup_steps": 5, **FLOAT32},
        "evaluation": {"every": every, "samples": 4, "problems": HELD_OUT, "sets": {OTHERS: str(others)}},
        "guards": {"off": ["all", "prompts"]},
        "checkpoint_every": steps,
        "seed": seed,
    }
    return GrpoConfig.model_validate(values).model_copy(update={"engine": ENGINE})


def _leave_context_in(work: Path, positives: Path, attempts: pl.DataFrame) -> None:
    """Write a second table of the positives, after the prompts with context that they were sampled from."""
    encoder = load_encoder(work / "sft" / "checkpoint", ChatConfig())
    contexts = attempts.filter("kept").select(*KEY, "attempt", "context")
    joined = pl.read_parquet(positives).join(contexts, on=[*KEY, "attempt"], validate="1:1", maintain_order="left")
    records = []
    for record in joined.to_dicts():
        prompt = record.pop("context") or record["prompt"]
        records.append({**record, "prompt_ids": encoder.encode(prompt)})
    write_rows(positives.with_name(CONDITIONED), records, DISTILLED_SCHEMA)


def _make_positives(work: Path, tokens_per_row: int) -> Path:
    """Return the folder of a synthesis with feedback, of so many tokens for each row without a positive."""
    config = SynthConfig(
        engine=ENGINE,
        strategies=(f"{STRATEGY_FILE}:STRATEGY",),
        budget_tokens=tokens_per_row * pl.read_parquet(work / "hard.parquet").height,
        attempts=ATTEMPTS,
        positives=1,
        max_tokens=MAX_TOKENS,
    )
    inputs = {name: work / "profile" / f"{name}.parquet" for name in ("profile", "suspicion", "samples")}
    inputs |= {"hard": work / "hard.parquet", "selected": work / "none.parquet", "model": work / "sft" / "checkpoint"}
    return run_stage(work, f"synth-for-training-{tokens_per_row}", "truegold.synth:synth", inputs, config)


def _train(work: Path, name: str, seed: int, figures: Mapping[str, Any], made: Path) -> dict[str, Any]:
    """Return the held-out pass rates of one training, each with its step and the tokens so far (in steps' worth), and
    what it cost."""
    arm, meter = ARMS[name], Meter()
    steps = figures["steps"]
    model = work / "sft" / "checkpoint"
    slug = name.replace(", ", "-").replace(" ", "-")
    if "sft" in arm:
        optimizer = OptimizerConfig(lr=3e-4, dtype="float32")
        config = SftConfig(batch_size=16, epochs=2, optimizer=optimizer, seed=seed)
        inputs = {"model": model, "distilled": made / arm["sft"]}
        model = run_stage(work, f"{slug}-distill-{seed}", "truegold.train.sft:sft", inputs, config) / "checkpoint"
    inputs = {**_tables(work), "model": model, "samples": work / "profile" / "samples.parquet"}
    inputs[f"evaluation {OTHERS}"] = _others(work)
    if "distilled" in arm:
        inputs["distilled"] = made / "distilled.parquet"
    spent = figures["fewer_steps"] if inputs.keys() & {"distilled"} or "sft" in arm else 0
    folder = run_stage(
        work,
        f"{slug}-{steps - spent}-{seed}",
        "truegold.train.grpo:grpo",
        inputs,
        _config(arm, steps - spent, steps // EVALUATIONS, seed, _others(work)),
    )
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    lines = [line for line in lines if line.get("heldout_pass_rate") is not None]
    return {
        "family": [(line["step"], spent + line["step"], line["heldout_pass_rate"]) for line in lines],
        OTHERS: [(line["step"], spent + line["step"], line[f"evaluation/{OTHERS}"]) for line in lines],
        "by_verb": {verb: lines[-1][f"evaluation/heldout/source/{verb}"] for verb in WRONG_MEANING},
        "tokens": sampled_tokens(folder),
        **meter.read(),
    }


def _report(figures: Mapping[str, Any]) -> str:
    steps = figures["steps"]
    budgets = [steps * quarter // QUARTERS for quarter in range(1, QUARTERS + 1)]
    lines = [
        f"{steps} steps of {PROMPTS} x {GROUP} completions; the synthesis cost {figures['synth_tokens']:,} tokens "
        f"({figures['synth_cpu_s']} CPU s) for {figures['positives']} positives, for which arms with them take "
        f"{figures['fewer_steps']} steps fewer.",
        "",
        "| arm | at the start | " + " | ".join(f"after {budget} steps' tokens" for budget in budgets) + " | by seed "
        "| by verb | ordinary ones, start and end | ordinary less `without` | tokens | CPU s | wall s |",
        "|---" * (QUARTERS + 9) + "|",
    ]
    runs_of: dict[str, dict[str, Any]] = {}
    for key, run in figures["runs"].items():
        arm, _, seed = key.rpartition("|")
        runs_of.setdefault(arm, {})[seed] = run
    base = runs_of["without"]
    for name, runs in runs_of.items():
        paired = {} if name == "without" else {seed: run for seed, run in runs.items() if seed in base}
        cells = [name, format(fmean(run["family"][0][2] for run in runs.values()), ".3f")]
        for budget in budgets:
            rates = {seed: accuracy_at(run["family"], budget) for seed, run in runs.items()}
            gains = [rates[seed] - accuracy_at(base[seed]["family"], budget) for seed in paired]  # type: ignore[operator]
            cells.append(f"{fmean(rates.values()):.3f}" + (f", {interval(gains)}" if gains else ""))  # type: ignore[type-var]
        cells.append(", ".join(f"{run['family'][-1][2]:.3f}" for run in runs.values()))
        cells.append(", ".join(f"{v} {fmean(run['by_verb'][v] for run in runs.values()):.3f}" for v in WRONG_MEANING))
        first, last = (fmean(run[OTHERS][index][2] for run in runs.values()) for index in (0, -1))
        cells.append(f"{first:.3f}, {last:.3f}")
        losses = [run[OTHERS][-1][2] - base[seed][OTHERS][-1][2] for seed, run in paired.items()]
        cells.append(interval(losses) if losses else "")
        cells += [format(fmean(run[cost] for run in runs.values()), ",.0f") for cost in ("tokens", "cpu_s", "wall_s")]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path, metavar="WORK_DIR")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--tokens-per-row", type=int, default=60)
    parser.add_argument("--only", nargs="+", default=list(DEFAULT_ARMS), choices=list(ARMS), metavar="ARM")
    parser.add_argument("--json", type=Path, required=True, help="keep the figures here; what is in it is not repeated")
    parser.add_argument("--write", type=Path, help="write the table into this Markdown file")
    arguments = parser.parse_args()
    work = arguments.work.resolve()
    prepare(work, ROWS, EXAMPLES, 0)
    figures: dict[str, Any] = json.loads(arguments.json.read_text()) if arguments.json.exists() else {}
    meter = Meter()
    made = _make_positives(work, arguments.tokens_per_row)
    if not figures:
        attempts = pl.read_parquet(made / "attempts.parquet")
        samples = pl.read_parquet(work / "profile" / "samples.parquet")
        sampled = int(samples["token_ids"].list.len().sum())
        spent = int(attempts["tokens"].sum())
        dropped = attempts.filter(pl.col("dropped").is_not_null()).group_by("dropped").len().sort("dropped")
        figures = {
            "steps": arguments.steps,
            "profile_tokens": sampled,
            "synth_tokens": spent,
            **{f"synth_{name}": seconds for name, seconds in meter.read().items()},
            "right": attempts.filter(pl.col("score") == 1.0).height,
            "dropped": dict(dropped.iter_rows()),
            "positives": int(attempts["kept"].sum()),
            "fewer_steps": math.ceil(spent * samples.height / (sampled * PROMPTS * GROUP)),
            "runs": {},
        }
        _leave_context_in(work, made / "distilled.parquet", attempts)
    for seed in arguments.seeds:
        for name in dict.fromkeys(["without", *arguments.only]):
            if f"{name}|{seed}" in figures["runs"]:
                continue
            run = _train(work, name, seed, figures, made)
            figures["runs"][f"{name}|{seed}"] = run
            arguments.json.write_text(json.dumps(figures, indent=1) + "\n")
            say(f"{name}|{seed}: {run}")
    publish(figures, _report(figures), arguments.json, arguments.write, "Training on distilled positives")


if __name__ == "__main__":
    _main()
