"""What training on distilled positives is worth, at the same budget of tokens, on held-out problems of the weak family.

    python benchmarks/synthesis.py WORK_DIR
    python benchmarks/synthesis_training.py WORK_DIR [--seeds 5] [--steps 64] [--tokens-per-row 60] [--only ARM ...]
                                            [--json FILE] [--write PAGE.md]

All arms train on the same rows of the family, from the same cold start (`synthesis.py`), with the same tokens:
`without` takes all steps, the others as many fewer as their synthesis cost, which has `--tokens-per-row` tokens for
each row without a positive. `SFT` trains on the positives alone before RL, `members` has them in the groups, by each
weight. `SFT, context left in` trains on the same outputs behind the prompts that they were sampled from.
`self-distillation` has no positives, and its loss draws the policy to what it would do if it saw a right completion of
the group. Given is the pass rate on held-out problems of the family, 4 samples each at temperature 1, after each
quarter of the tokens, and for each arm the mean difference to `without` at the same tokens, over the seeds, with its
interval (95 %, Student's t on the pairs).
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import polars as pl
from proof_training import accuracy_at
from publishing import publish, say
from synthesis import ATTEMPTS, ENGINE, KEY, MAX_TOKENS, STRATEGY_FILE, family_rows, run_stage

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
FLOAT32 = {"dtype": "float32"}
QUARTERS, EVALUATIONS = 4, 8
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
T_95 = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57, 7: 2.45, 8: 2.36, 9: 2.31, 10: 2.26}
"""Student's t for an interval of 95 %, by the number of seeds."""


def _tables(work: Path) -> dict[str, Path]:
    """Write what the training reads beside the positives: all rows of the family with their posteriors, and held-out
    ones."""
    profile = pl.read_parquet(work / "profile" / "profile.parquet")
    rows = pl.read_parquet(work / "profile" / "rows.parquet").join(
        profile.select(*KEY, "posterior", pass_rate="expected_rate"), on=KEY, maintain_order="left"
    )
    known = rows.with_columns(pl.lit(0.0).alias("suspicion"))
    tables = {name: work / f"train-{name}.parquet" for name in ("rows", "heldout", "reserve")}
    write_rows(tables["rows"], known.select(SELECTED_SCHEMA.names).to_dicts(), SELECTED_SCHEMA)
    write_rows(tables["heldout"], family_rows(HELD_OUT, held_out=True, rng=random.Random("heldout")))
    write_rows(tables["reserve"], [], SELECTED_SCHEMA)
    return tables


def _config(arm: Mapping[str, Any], steps: int, every: int, seed: int) -> GrpoConfig:
    values: dict[str, Any] = {
        "steps": steps,
        "prompts_per_step": PROMPTS,
        "group_size": GROUP,
        "sampling": {"max_tokens": MAX_TOKENS, "allow_long": True, "refills": 0},
        "objective": {"loss": "ppo", **{name: arm[name] for name in arm if name != "sft"}},
        "optimizer": {"lr": 4e-4, "warmup_steps": 5, **FLOAT32},
        "evaluation": {"every": every, "samples": 4, "problems": HELD_OUT},
        "guards": {"off": ["all", "prompts"]},
        "checkpoint_every": steps,
        "seed": seed,
    }
    return GrpoConfig.model_validate(values).model_copy(update={"engine": ENGINE})


def _leave_context_in(work: Path, positives: Path, attempts: pl.DataFrame) -> None:
    """Write the positives behind the prompts that they were sampled from beside them."""
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


def _train(work: Path, name: str, seed: int, steps: int, fewer: int, made: Path) -> list[tuple[int, int, float]]:
    """Return step, tokens so far (in steps' worth) and held-out pass rate of each evaluation of one training."""
    arm = ARMS[name]
    model = work / "sft" / "checkpoint"
    slug = name.replace(", ", "-").replace(" ", "-")
    if "sft" in arm:
        optimizer = OptimizerConfig(lr=3e-4, dtype="float32")
        config = SftConfig(batch_size=16, epochs=2, optimizer=optimizer, seed=seed)
        inputs = {"model": model, "distilled": made / arm["sft"]}
        model = run_stage(work, f"{slug}-distill-{seed}", "truegold.train.sft:sft", inputs, config) / "checkpoint"
    inputs = {**_tables(work), "model": model, "samples": work / "profile" / "samples.parquet"}
    if "distilled" in arm:
        inputs["distilled"] = made / "distilled.parquet"
    spent = fewer if inputs.keys() & {"distilled"} or "sft" in arm else 0
    folder = run_stage(
        work,
        f"{slug}-{steps - spent}-{seed}",
        "truegold.train.grpo:grpo",
        inputs,
        _config(arm, steps - spent, steps // EVALUATIONS, seed),
    )
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [
        (line["step"], spent + line["step"], line["heldout_pass_rate"])
        for line in lines
        if line.get("heldout_pass_rate") is not None
    ]


def _interval(differences: Sequence[float]) -> tuple[float, float, float]:
    mean = fmean(differences)
    if len(differences) < 2:
        return mean, math.nan, math.nan
    half = T_95[len(differences)] * stdev(differences) / math.sqrt(len(differences))
    return mean, mean - half, mean + half


def _report(figures: Mapping[str, Any]) -> str:
    steps = figures["steps"]
    budgets = [steps * quarter // QUARTERS for quarter in range(1, QUARTERS + 1)]
    lines = [
        f"{steps} steps of {PROMPTS} x {GROUP} completions; the synthesis cost {figures['synth_tokens']:,} tokens "
        f"for {figures['positives']} positives, for which arms with them take {figures['fewer_steps']} steps fewer.",
        "",
        "| arm | at the start | " + " | ".join(f"after {budget} steps' tokens" for budget in budgets) + " | by seed |",
        "|---" * (QUARTERS + 3) + "|",
    ]
    base = figures["arms"]["without"]
    for name, runs in figures["arms"].items():
        cells = [name, f"{runs[0][0][2]:.3f}"]
        for budget in budgets:
            rates = [accuracy_at(points, budget) for points in runs]
            others = [accuracy_at(points, budget) for points in base]
            mean, low, high = _interval([mine - other for mine, other in zip(rates, others, strict=True)])
            difference = "" if name == "without" else f", {mean:+.3f} ({low:+.3f} to {high:+.3f})"
            cells.append(f"{fmean(rates):.3f}{difference}")
        cells.append(", ".join(f"{points[-1][2]:.3f}" for points in runs))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path, metavar="WORK_DIR")
    parser.add_argument("--seeds", type=int, default=5, choices=range(1, 11))
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--tokens-per-row", type=int, default=60)
    parser.add_argument("--only", nargs="+", default=list(ARMS), choices=list(ARMS), metavar="ARM")
    parser.add_argument("--json", type=Path, help="keep the figures here")
    parser.add_argument("--write", type=Path, help="write the table into this Markdown file")
    arguments = parser.parse_args()
    work = arguments.work.resolve()
    made = _make_positives(work, arguments.tokens_per_row)
    attempts = pl.read_parquet(made / "attempts.parquet")
    samples = pl.read_parquet(work / "profile" / "samples.parquet")
    step_tokens = float(samples["token_ids"].list.len().mean()) * PROMPTS * GROUP  # type: ignore[arg-type]
    fewer = math.ceil(int(attempts["tokens"].sum()) / step_tokens)
    figures: dict[str, Any] = {
        "steps": arguments.steps,
        "synth_tokens": int(attempts["tokens"].sum()),
        "positives": int(attempts["kept"].sum()),
        "fewer_steps": fewer,
        "arms": {},
    }
    _leave_context_in(work, made / "distilled.parquet", attempts)
    for name in dict.fromkeys(["without", *arguments.only]):
        figures["arms"][name] = [
            _train(work, name, seed, arguments.steps, fewer, made) for seed in range(arguments.seeds)
        ]
        say(f"{name}: {figures['arms'][name]}")
    publish(figures, _report(figures), arguments.json, arguments.write, "Training on distilled positives")


if __name__ == "__main__":
    _main()
