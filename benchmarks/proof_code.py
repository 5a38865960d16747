"""Measures the effect of weak tests, and of vetting them, on the training of a tiny model that writes one-line Python
functions.

    python benchmarks/proof_code.py WORK_DIR --json benchmarks/results/proof_weak_tests.json
                                    [--seeds 0 1] [--steps 60] [--arms raw oracle]

The model comes from a cold start with two bad habits (`proof_code_tasks`): for two of six kinds of task it mostly
solves a similar, wrong task. Programs are judged in the sandbox. Every arm trains the model with the same number of
steps and a reward for passing all tests:

    raw         rows of these two kinds have two tests that programs of the habit pass too
    vetted      these rows after the stage `vet_tests`, with its repairs and without dropped rows
    mended      rows that `vet_tests` drops or flags get strong tests
    proposed    rows after `vet_tests` with `mend`, which adds proposed cases to their tests
    oracle      all tests are strong

Reported are the shares of completions of held-out tasks, 8 samples each at temperature 1, that have the right format,
whose program runs, and whose program passes strong tests, for all tasks, for the two kinds and for all other kinds; and
the share of programs of the habit. WORK_DIR keeps the model and the vetted rows.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import polars as pl
from proof_code_tasks import LAYOUT, WEAK_KINDS, Weak, examples, rows, split_tasks
from proof_training import interval
from publishing import publish, say
from synthesis import ENGINE, Meter, cold_start, run_stage, sampled_tokens

from truegold.pipeline.config.stages import ProfileConfig, VetTestsConfig
from truegold.pipeline.select.stage import SELECTED_SCHEMA
from truegold.pipeline.tables.rows import write_rows
from truegold.train.config.grpo import GrpoConfig

PROMPTS, GROUP = 16, 8
MAX_TOKENS = 48
JUDGES = 4
"""Processes that judge programs, which mostly wait."""
EVAL_SAMPLES = 8
FIGURES = ("layout", "runs", "passes", "weak kinds", "other kinds", "habit")
ARMS: Mapping[str, Weak] = {
    "raw": "kinds",
    "oracle": "none",
    "vetted": "kinds",
    "mended": "kinds",
    "proposed": "kinds",
}
VETTINGS = {"vetted": "vet", "mended": "vet", "proposed": "vet_mend"}
"""The folder of the vetting that an arm's rows come from."""


def vet_rows(table: Path, work: Path, name: str) -> dict[str, Any]:
    """Vet the tests of rows into WORK/NAME; return what became of weak and of strong ones, and what it cost."""
    meter = Meter()
    config = VetTestsConfig(mend=name == "vet_mend")
    folder = run_stage(work, name, "truegold.pipeline.verify.vet:vet_tests", {"rows": table}, config)
    suites = pl.read_parquet(folder / "suites.parquet").to_dicts()
    kinds = {row["id"]: json.loads(row["meta"])["kind"] for row in pl.read_parquet(table).to_dicts()}
    counts: dict[str, dict[str, int]] = {"weak kinds": {}, "other kinds": {}}
    for suite in suites:
        counted = counts["weak kinds" if kinds[suite["id"]] in WEAK_KINDS else "other kinds"]
        outcome = "+".join([suite["outcome"], *suite["reasons"]])
        counted[outcome] = counted.get(outcome, 0) + 1
    return {**meter.read(), "counts": counts}


def rows_of(arm: str, tables: Mapping[Weak, Path], work: Path) -> list[dict[str, Any]]:
    """Return the rows that an arm is trained on."""
    raw = pl.read_parquet(tables[ARMS[arm]])
    if arm not in VETTINGS:
        return raw.to_dicts()
    vetted = work / VETTINGS[arm]
    kept, flags = pl.read_parquet(vetted / "rows.parquet"), pl.read_parquet(vetted / "flags.parquet")
    if arm != "mended":
        held = flags.filter("blocks").select("id")
        return kept.join(held, on="id", how="anti", maintain_order="left").to_dicts()
    flagged = flags.select("id")
    unflagged = kept.join(flagged, on="id", how="anti", maintain_order="left")
    strong = pl.read_parquet(tables["none"]).join(unflagged, on="source_row", how="anti", maintain_order="left")
    return [*unflagged.to_dicts(), *strong.to_dicts()]


def train(kept: Sequence[Mapping[str, Any]], model: Path, steps: int, seed: int, work: Path) -> tuple[Path, int]:
    """Train the model on rows; return the checkpoint and the tokens that it sampled."""
    inputs = {name: work / f"{name}.parquet" for name in ("rows", "reserve", "heldout")}
    for name, records in {"rows": kept, "reserve": [], "heldout": []}.items():
        write_rows(inputs[name], records, SELECTED_SCHEMA)
    config = GrpoConfig.model_validate(
        {
            "steps": steps,
            "prompts_per_step": PROMPTS,
            "group_size": GROUP,
            "sampling": {"max_tokens": MAX_TOKENS, "refills": 0},
            "reward": {"workers": JUDGES},
            "optimizer": {"lr": 4e-4, "warmup_steps": 5, "schedule": "constant", "dtype": "float32"},
            "evaluation": {"every": 0},
            "checkpoint_every": steps,
            "seed": seed,
        }
    )
    config = config.model_copy(update={"engine": ENGINE})
    out = run_stage(work, "train", "truegold.train.grpo:grpo", {**inputs, "model": model}, config)
    return out / "checkpoint", sampled_tokens(out)


def evaluate(model: Path, held_out: Path, work: Path) -> dict[str, float]:
    """Return the shares of a checkpoint's completions of held-out tasks."""
    config = ProfileConfig(
        engine=ENGINE, samples=EVAL_SAMPLES, first_samples=None, max_tokens=MAX_TOKENS, workers=JUDGES
    )
    inputs = {"rows": held_out, "model": model}
    folder = run_stage(work, "evaluation", "truegold.pipeline.profile:profile", inputs, config)
    tasks = {row["id"]: json.loads(row["meta"]) for row in pl.read_parquet(held_out).to_dicts()}
    samples = pl.read_parquet(folder / "samples.parquet").to_dicts()
    weak = [sample for sample in samples if tasks[sample["id"]]["kind"] in WEAK_KINDS]
    others = [sample for sample in samples if tasks[sample["id"]]["kind"] not in WEAK_KINDS]
    return {
        "layout": fmean(re.fullmatch(LAYOUT, sample["completion"]) is not None for sample in samples),
        "runs": fmean(_runs(sample) for sample in samples),
        "passes": fmean(sample["score"] == 1.0 for sample in samples),
        "weak kinds": fmean(sample["score"] == 1.0 for sample in weak),
        "other kinds": fmean(sample["score"] == 1.0 for sample in others),
        "habit": fmean(tasks[sample["id"]]["habit"] in sample["completion"] for sample in weak),
    }


def _runs(sample: Mapping[str, Any]) -> bool:
    """Return whether a sample's function gave a value to its first failing case, where one failed."""
    return sample["score"] == 1.0 or "got" in json.loads(sample["evidence"]).get("failed", {})


def _report(measured: Mapping[str, dict[str, Any]], steps: int) -> str:
    runs: dict[str, dict[str, dict[str, Any]]] = {}
    for key, figures in measured.items():
        arm, _, seed = key.partition("|")
        runs.setdefault(arm, {})[seed] = figures
    lines = [
        f"{steps} steps of {PROMPTS} x {GROUP} completions.",
        "",
        "| arm | rows | laid out | runs | passes | of the two kinds | of the others | habit | passes less raw, 95 % "
        "interval | passes, by seed | tokens | CPU s | wall s |",
        "|---" * 13 + "|",
    ]
    for arm in ("before", *ARMS):
        if not (by_seed := runs.get(arm)):
            continue
        cells = [arm, _mean(by_seed, "rows", ",.0f"), *(_mean(by_seed, name, ".3f") for name in FIGURES)]
        raw = runs.get("raw", {}) if arm not in ("before", "raw") else {}
        gains = [figures["passes"] - raw[seed]["passes"] for seed, figures in by_seed.items() if seed in raw]
        cells += [interval(gains) if gains else ""]
        cells += [", ".join(format(figures["passes"], ".3f") for figures in by_seed.values())]
        cells += [_mean(by_seed, name, ",.0f") for name in ("tokens", "cpu_s", "wall_s")]
        lines.append(f"| {' | '.join(cells)} |")
    for name, vetting in (("Vetting", runs.get("vet")), ("Vetting with `mend`", runs.get("vet_mend"))):
        lines += ["", f"{name}: {json.dumps(vetting['0'])}"] if vetting else []
    return "\n".join(lines)


def _mean(by_seed: Mapping[str, Mapping[str, Any]], name: str, form: str) -> str:
    return format(fmean(figures[name] for figures in by_seed.values()), form)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path, metavar="WORK_DIR")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
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
    heldout_table = base / "heldout.parquet"
    write_rows(heldout_table, rows(held_out, "none", seed=0))
    measured: dict[str, dict[str, Any]] = json.loads(arguments.json.read_text()) if arguments.json.exists() else {}

    def keep(key: str, figures: dict[str, Any]) -> None:
        # Two of these commands with different seeds may write into one file.
        if arguments.json.exists():
            measured.update(json.loads(arguments.json.read_text()))
        measured[key] = figures
        arguments.json.write_text(json.dumps(measured, indent=1) + "\n")
        say(f"{key}: {figures}")

    tables = {weak: base / f"{weak}.parquet" for weak in set(ARMS.values())}
    for weak, table in tables.items():
        write_rows(table, rows(tasks, weak, seed=0))
    if "before|0" not in measured:
        with tempfile.TemporaryDirectory(prefix="truegold-proof-code-") as folder:
            before = evaluate(model, heldout_table, Path(folder))
            keep("before|0", {"rows": 0, "tokens": 0, "cpu_s": 0, "wall_s": 0} | before)
    for seed in arguments.seeds:
        for arm in arguments.arms:
            if f"{arm}|{seed}" in measured:
                continue
            if (vetting := VETTINGS.get(arm)) is not None and f"{vetting}|0" not in measured:
                keep(f"{vetting}|0", vet_rows(tables["kinds"], base, vetting))
            kept = rows_of(arm, tables, base)
            with tempfile.TemporaryDirectory(prefix="truegold-proof-code-") as folder:
                work, meter = Path(folder), Meter()
                trained, tokens = train(kept, model, arguments.steps, seed, work)
                figures = {"rows": len(kept), "tokens": tokens, **meter.read()}
                keep(f"{arm}|{seed}", figures | evaluate(trained, heldout_table, work))
    publish(
        measured, _report(measured, arguments.steps), arguments.json, arguments.write, "Weak tests in one kind of task"
    )


if __name__ == "__main__":
    _main()
