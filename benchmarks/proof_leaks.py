"""Measures the effect of held-out problems among the training rows on held-out accuracy.

The policy of `proof_world` is fine-tuned on worked solutions: word problems, which it can learn, and products, which it
cannot. Half of the held-out problems of both kinds stand among them, a third each as they are, with other names or
words around the same numbers, and told otherwise. Accuracy is given on the leaked and on the clean half:

    leaked          with the leaked rows
    decontaminated  the same, after truegold's `decontaminate` against the held-out file

By GRPO, which cannot learn the products either, it is trained on the word problems alone:

    leaked          with the leaked rows
    clean           with as many others in their place
"""

from __future__ import annotations

import random
from pathlib import Path
from statistics import fmean
from typing import Any

import polars as pl
from proof_concentrated import fresh, run_stages, write_tables
from proof_training import (
    DEMO,
    MATH,
    Record,
    heldout_rows,
    ingested_rows,
    metered,
    train,
    training_settings,
    write_lines,
)
from proof_world import ENGINE, policy, stories_of

from truegold.flows.config import validate_config
from truegold.flows.plan import plan
from truegold.pipeline.config.base import LaunchConfig
from truegold.pipeline.config.stages import ProfileConfig
from truegold.pipeline.demo.problems import PEOPLE, PERSON_STORIES, THINGS, Telling, make_pools, tell
from truegold.pipeline.profile import profile
from truegold.pipeline.running.disk import DigestCache
from truegold.pipeline.running.isolation import call_isolated
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.running.stage import plan_stage, run_stage
from truegold.pipeline.running.stage_table import Phase
from truegold.train.config.models import OptimizerConfig, SftConfig

ARMS = ("leaked", "decontaminated")
GRPO_ARMS = ("leaked", "clean")
KINDS = ("word", "product")
TRAIN, HELDOUT = 160, 80
"""Problems of each kind."""
EPOCHS, BATCH = 12, 64
EVAL_SAMPLES, GRPO_EVAL_SAMPLES = 4, 8
MAX_TOKENS = 32
GRPO_ROWS, GRPO_STEPS = 80, 64
"""Training problems beside the leaks or those in their place, and steps of 16 x 8: eight rounds and a half."""
PRODUCTS = ("What is {a} times {b}?", "What do you get for {a} times {b}?", "Multiply {a} by {b} and give the product.")
"""As it is, with other words around, told otherwise."""


def run_arm(arm: str, seed: int, run: Path) -> Record:
    """Prepare and train one arm with one seed, and return its figures."""
    folder = run / "proof" / "leaks" / f"seed-{seed}"
    train, leaks, heldout = _draw(seed)
    evaluated = write_lines(folder / "heldout.jsonl", heldout)
    rows = train + leaks
    random.Random(f"order {seed}").shuffle(rows)
    data = write_lines(folder / "rows.jsonl", rows)
    costs: Record = {}
    with metered(costs):
        table = _curate(data, folder / arm, evaluated if arm == "decontaminated" else None)
    kept = pl.read_parquet(table)["source_row"].to_list()
    forms = [row["leak"] for row in rows]
    left = [forms[row - 1] for row in kept]
    out = fresh(folder / f"arm-{arm}")
    with metered(costs):
        optimizer = OptimizerConfig(lr=1e-3, warmup_steps=5, dtype="float32")
        section = SftConfig(batch_size=BATCH, epochs=EPOCHS, seed=seed, optimizer=optimizer)
        inputs = {"model": policy(run), "rows": table}
        tuned = out / "sft"
        tuned.mkdir()
        call_isolated(
            "truegold.train.sft:sft",
            inputs,
            section,
            tuned,
            NullProgress(),
            out / "log",
            LaunchConfig(),
            out / "scratch",
        )
        rates = _evaluate(tuned / "checkpoint", evaluated, out, EVAL_SAMPLES)
    return {
        "rows": len(kept),
        "leaks": {form: forms.count(form) for form in sorted(set(forms) - {None})},
        "leaks_left": {form: left.count(form) for form in sorted(set(forms) - {None})},
        "sound_removed": forms.count(None) - left.count(None),
        "rates": rates,
        "costs": costs,
    }


def run_grpo_arm(arm: str, seed: int, run: Path) -> Record:
    """Train one arm by GRPO with one seed, and return its figures."""
    folder = run / "proof" / "leaks-grpo" / f"seed-{seed}"
    train_set, leaks, heldout = ([row for row in rows if row["kind"] == "word"] for rows in _draw(seed))
    others = train_set[GRPO_ROWS : GRPO_ROWS + len(leaks)]
    rows = train_set[:GRPO_ROWS] + (leaks if arm == "leaked" else others)
    random.Random(f"order {seed}").shuffle(rows)
    evaluated = write_lines(folder / "heldout.jsonl", heldout)
    out = fresh(folder / f"arm-{arm}")
    digests = DigestCache(out / ".digests.json")
    tables = write_tables(ingested_rows(write_lines(out / "rows.jsonl", rows), out, digests), out)
    inputs = {**tables, "model": policy(run), "heldout": heldout_rows(evaluated, folder, digests)}
    settings = training_settings(GRPO_STEPS, seed, GRPO_STEPS, HELDOUT, 1) | {"prompts_per_step": 16}
    costs: Record = {}
    with metered(costs):
        train(inputs, out, settings, DEMO)
        rates = _evaluate(out / "train" / "checkpoint", evaluated, out / "evaluation", GRPO_EVAL_SAMPLES)
    return {"rows": len(rows), "leaks": len(leaks) if arm == "leaked" else 0, "rates": rates, "costs": costs}


def _draw(seed: int) -> tuple[list[Record], list[Record], list[Record]]:
    """Return the training problems, the leaks, and the held-out problems, the first half of each kind leaked."""
    draw = random.Random(f"leaks {seed}")
    train: list[Record] = []
    leaks: list[Record] = []
    heldout: list[Record] = []
    seen: set[tuple[int, int]] = set()
    for kind in KINDS:
        for is_heldout in (False, True):
            count = HELDOUT if is_heldout else TRAIN
            problems = make_pools(held_out=is_heldout).draw(draw)
            for index in range(count):
                texts, working, answer = _product(draw, seen) if kind == "product" else _word(next(problems), draw)
                leaked = is_heldout and index < HELDOUT // 2
                row = {"solution": working, "answer": answer, "kind": kind, "leaked": leaked, "leak": None}
                (heldout if is_heldout else train).append({"question": texts[0], **row})
                if leaked:
                    form = ("as it is", "other words", "told otherwise")[index % 3]
                    leaks.append({**row, "question": texts[index % 3], "leak": f"{kind}, {form}"})
    return train, leaks, heldout


def _word(problem: Any, draw: random.Random) -> tuple[tuple[str, ...], str, str]:
    stories = [story for story in PERSON_STORIES if story in stories_of("A")]
    story, other = draw.sample(stories, 2)
    person, stranger = draw.sample(PEOPLE, 2)
    things, others = draw.sample(THINGS, 2)
    tellings = (Telling(story, person, things), Telling(story, stranger, others), Telling(other, person, things))
    return tuple(tell(problem, telling) for telling in tellings), problem.working(), str(problem.answer)


def _product(draw: random.Random, seen: set[tuple[int, int]]) -> tuple[tuple[str, ...], str, str]:
    while (pair := (draw.randrange(100, 1000), draw.randrange(100, 1000))) in seen:
        pass
    seen.add(pair)
    a, b = pair
    return tuple(form.format(a=a, b=b) for form in PRODUCTS), f"{a}*{b}={a * b} \\boxed{{{a * b}}}", str(a * b)


def _curate(data: Path, folder: Path, against: Path | None) -> Path:
    """Return the rows after ingest, clean and, where there is a file to compare with, decontaminate."""
    columns = {"prompt": "question", "gold": "answer", "solution": "solution"}
    settings: dict[str, Any] = {
        "name": folder.name,
        "runs_dir": str(folder.parent),
        "data": {"path": str(data), "columns": columns, "verifier": MATH, "domain": "math"},
    }
    last = "clean"
    if against is not None:
        named = {"set": str(against), "columns": {"prompt": "question", "gold": "answer"}}
        settings["decontaminate"] = {"against": [named]}
        last = "decontaminate"
    config = validate_config(settings, "proof")
    stages = {stage.name: stage for stage in plan(config, Phase.CURATE)}
    names = list(stages)
    run_stages([stages[name] for name in names[: names.index(last) + 1]], config.run_dir)
    return config.run_dir / last / "rows.parquet"


def _evaluate(checkpoint: Path, problems: Path, folder: Path, samples: int) -> dict[str, float]:
    """Return the share of right samples, of the leaked and of the clean half of each kind."""
    folder.mkdir(exist_ok=True)
    digests = DigestCache(folder / ".digests.json")
    rows = ingested_rows(problems, folder, digests)
    section = ProfileConfig(engine=ENGINE, samples=samples, first_samples=None, max_tokens=MAX_TOKENS)
    inputs = {"rows": folder / "ingest" / "rows.parquet", "model": checkpoint}
    run_stage(plan_stage("profile", profile, section, inputs), folder, digests, NullProgress())
    passed = pl.read_parquet(folder / "profile" / "profile.parquet").select("source_row", "pass_rate")
    halves = rows.select(
        "source_row",
        kind=pl.col("meta").str.json_path_match("$.kind"),
        leaked=pl.col("meta").str.json_path_match("$.leaked"),
    ).join(passed, on="source_row")
    rates = {}
    for kind in halves["kind"].unique(maintain_order=True):
        for half, name in (("true", "leaked"), ("false", "clean")):
            part = halves.filter(pl.col("kind") == kind, pl.col("leaked") == half)
            rates[f"{kind}, {name}"] = fmean(part["pass_rate"].to_list())
    return rates
