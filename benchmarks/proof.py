"""What curation is worth: the demo's tiny model trained with the same tokens on raw data, with each stage alone, with
all of them, and on an oracle's choice.

    truegold select examples/demo.yaml
    python benchmarks/proof.py runs/demo --json proof.json [--shares 0.2] [--seeds 0 1] [--arms raw all]

A fifth of the rows is damaged (`proof_defects`). Every arm has the tokens that the raw one uses in its steps; what an
arm spends on profiling is taken from it. The learning rate is constant, so that the accuracy at the end of the budget
can be read between two evaluations. It is that on 1,000 held-out problems, 4 samples each, judged rightly in all arms.
The arms without truegold's verifier are trained with a naive one (`--naive`): `contains` pays where the gold's text is
anywhere in the completion, `exact` where the completion's last number is written as the gold is.

Another model and another size: `--config` names the configuration that RUN_DIR was made with, which must be of the
demo's data; its `train` section and `data.problems` count.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
from proof_defects import count_defects, damage
from publishing import publish

from truegold.flows.config import RunConfig, load_config
from truegold.pipeline.clean import clean
from truegold.pipeline.config.base import LaunchConfig
from truegold.pipeline.config.sources import DemoSource, FileSource
from truegold.pipeline.curation.plan import DEMO_COLUMNS, rows_of
from truegold.pipeline.dedup import dedup
from truegold.pipeline.demo.stage import make_demo_data
from truegold.pipeline.flag.stage import flag
from truegold.pipeline.ingest import ingest
from truegold.pipeline.profile import profile
from truegold.pipeline.review.stage import settle
from truegold.pipeline.running.disk import DigestCache
from truegold.pipeline.running.isolation import call_isolated
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.running.stage import Output, Stage, plan_stage, run_stage
from truegold.pipeline.select import select
from truegold.pipeline.select.stage import SELECTED_SCHEMA
from truegold.pipeline.tables.rows import count_rows, write_rows
from truegold.pipeline.verify import verify_gold

DEMO = Path(__file__).parents[1] / "examples" / "demo.yaml"
MIN_SFT_EXAMPLES = 64
"""As few as the demo's data allow: the cold start is RUN_DIR's."""
MATH = "math"
NAIVE = {"contains": f"{Path(__file__).with_name('proof_defects.py')}:contains", "exact": "exact"}
"""The verifiers of the arms without truegold's."""


@dataclass(frozen=True)
class Setting:
    """What all arms share: the run that the model comes from, and the sizes."""

    run: Path
    config_path: Path
    naive: str
    heldout: int
    eval_samples: int
    evaluations: int
    """In the raw arm's steps."""

    @cached_property
    def config(self) -> RunConfig:
        """What is in the file of the configuration."""
        return load_config(self.config_path, [])

    @property
    def steps(self) -> int:
        """The steps of the raw arm, whose tokens are the budget of all."""
        assert self.config.train is not None
        return self.config.train.steps

    @property
    def model(self) -> Path:
        """The checkpoint that every arm starts from."""
        return self.run / "sft" / "checkpoint"


@dataclass(frozen=True)
class Arm:
    """One way to prepare the same data."""

    name: str
    verifies: bool
    """Whether it has truegold's verifier."""
    stages: tuple[str, ...]


ARMS = (
    Arm("raw", False, ()),
    Arm("verifier", True, ()),
    Arm("clean, dedup", False, ("clean", "dedup")),
    Arm("flag", False, ("verify_gold", "flag", "settle")),
    Arm("profile, select", False, ("profile", "select")),
    Arm("all", True, ("clean", "dedup", "verify_gold", "flag", "settle", "profile", "select")),
    Arm("oracle", True, ()),
)


def prepare(
    arm: Arm, records: Sequence[Mapping[str, Any]], setting: Setting, work: Path
) -> tuple[dict[str, Path], int, int]:
    """Return the inputs of the training, its rows, and the tokens that were spent on preparing them."""
    if arm.name == "oracle":
        records = [record for record in records if record["defect"] is None]
    (work / "raw.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    verifier = MATH if arm.verifies else setting.naive
    source = FileSource(path="raw.jsonl", columns=DEMO_COLUMNS, verifier=verifier, domain="math")
    stages = [plan_stage("ingest", ingest, source, {"data": work / "raw.jsonl"})]
    for name in arm.stages:
        stages.append(_plan(name, setting, [stage.name for stage in stages]))
    digests = DigestCache(work / ".digests.json")
    finished = {stage.name: run_stage(stage, work, digests, NullProgress()) for stage in stages}
    heldout = heldout_rows(work.parent / "data" / "heldout.jsonl", work, digests)
    inputs = {"model": setting.model, "heldout": heldout}
    if "select" in finished:
        inputs |= {"rows": work / "select" / "selected.parquet", "reserve": work / "select" / "reserve.parquet"}
        inputs["samples"] = work / "profile" / "samples.parquet"
    else:
        inputs |= {"rows": work / "rows.parquet", "reserve": work / "reserve.parquet"}
        last = pl.read_parquet(work / stages[-1].name / "rows.parquet")
        write_rows(inputs["rows"], last.to_dicts(), SELECTED_SCHEMA)
        write_rows(inputs["reserve"], [], SELECTED_SCHEMA)
    spent = 0
    if "profile" in finished:
        record = json.loads((work / "profile" / "stage.json").read_text())
        spent = record["report"]["facts"]["sampling"]["tokens"]
    return inputs, count_rows(inputs["rows"]), spent


def _plan(name: str, setting: Setting, before: Sequence[str]) -> Stage:
    """Plan one stage after those before it."""
    config = setting.config
    rows: dict[str, Path | Output] = rows_of(before[-1])
    flags = {"dedup_flags": "dedup", "gold_flags": "verify_gold"}
    section = config.profile.model_copy(update={"engine": config.engine, "chat": config.chat})
    tables = ("rows", "profile", "flags", "suspicion")
    selected: dict[str, Path | Output] = {table: Output("profile", f"{table}.parquet") for table in tables}
    if "settle" in before:
        selected |= {name: Output("settle", f"{name}.parquet") for name in ("open_flags", "decided")}
    plans = {
        "clean": (clean, config.clean, rows),
        "dedup": (dedup, config.dedup, rows),
        "verify_gold": (verify_gold, config.verify_gold, rows),
        "flag": (
            flag,
            config.flag,
            rows | {key: Output(stage, "flags.parquet") for key, stage in flags.items() if stage in before},
        ),
        "settle": (settle, config.settle, rows | {"flags": Output("flag", "flags.parquet")}),
        "profile": (profile, section, rows | {"model": setting.model}),
        "select": (select, config.select, selected),
    }
    return plan_stage(name, *plans[name])


def heldout_rows(problems: Path, work: Path, digests: DigestCache) -> Path:
    """Write the held-out problems as rows that are judged rightly, and return their table."""
    folder = work / "heldout"
    folder.mkdir()
    source = FileSource(path=problems.name, columns=DEMO_COLUMNS, verifier=MATH, domain="math")
    stage = plan_stage("ingest", ingest, source, {"data": problems})
    run_stage(stage, folder, digests, NullProgress())
    rows = pl.read_parquet(folder / "ingest" / "rows.parquet").with_columns(split=pl.lit("heldout"))
    rows.write_parquet(work / "heldout.parquet")
    return work / "heldout.parquet"


def training_settings(steps: int, seed: int, eval_every: int, heldout: int, eval_samples: int) -> dict[str, Any]:
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
    tokens, points = 0, []
    for line in map(json.loads, (out / "metrics.jsonl").read_text().splitlines()):
        if line.get("heldout_pass_rate") is not None:
            points.append((line["step"], tokens, line["heldout_pass_rate"]))
        completions = out / "completions" / f"step-{line['step']:06d}.parquet"
        if completions.exists():
            tokens += pl.scan_parquet(completions).select(pl.col("token_ids").list.len().sum()).collect().item()
    return points


def accuracy_at(points: Sequence[tuple[int, int, float]], budget: int) -> float | None:
    """Return the accuracy when so many tokens were sampled, between the evaluations around; None beyond the last."""
    for (_, low, before), (_, high, after) in pairwise(points):
        if low <= budget <= high:
            return before + (after - before) * (budget - low) / max(high - low, 1)
    return None


def run_arm(arm: Arm, share: float, seed: int, setting: Setting, budget: int | None) -> dict[str, Any]:
    """Prepare and train one arm with one seed. budget: the tokens, None for the raw arm, which sets it."""
    assert isinstance(setting.config.data, DemoSource)
    with tempfile.TemporaryDirectory(prefix="truegold-proof-") as folder:
        work = Path(folder)
        (work / "data").mkdir()
        data = DemoSource(
            problems=setting.config.data.problems, heldout_problems=setting.heldout, sft_examples=MIN_SFT_EXAMPLES
        )
        make_demo_data({}, data, work / "data", NullProgress())
        lines = map(json.loads, (work / "data" / "raw.jsonl").read_text().splitlines())
        sound = [record for record in lines if record.pop("planted") is None]
        records = damage(sound, share, seed)
        (work / "arm").mkdir()
        inputs, rows, spent = prepare(arm, records, setting, work / "arm")
        steps, eval_every = setting.steps, setting.steps // setting.evaluations
        if budget is not None:
            # Tokens of a step differ between arms: some more steps than the raw arm's would need.
            steps = max(eval_every, round(setting.steps * 1.4 * (1 - spent / budget)))
        settings = training_settings(steps, seed, eval_every, setting.heldout, setting.eval_samples)
        points = train(inputs, work / "arm", settings, setting.config_path)
    return {"rows": rows, "spent": spent, "points": points, "defects": count_defects(records)}


def _report(measured: Mapping[str, dict[str, Any]]) -> str:
    lines = [
        "| damaged | arm | rows | profile tokens | accuracy at the budget | minus raw, 95 % interval |",
        "|---" * 6 + "|",
    ]
    shares = sorted({key.split("|")[0] for key in measured})
    for share in shares:
        raw = _accuracies(measured, share, "raw")
        for arm in ARMS:
            rates = _accuracies(measured, share, arm.name)
            if not rates:
                continue
            runs = [measured[f"{share}|{arm.name}|{seed}"] for seed in rates]
            gains = [rates[seed] - raw[seed] for seed in rates if seed in raw]
            cells = [
                f"{float(share):.0%}",
                arm.name,
                f"{statistics.fmean(result['rows'] for result in runs):,.0f}",
                f"{statistics.fmean(result['spent'] for result in runs):,.0f}",
                f"{statistics.fmean(rates.values()):.3f} ({len(rates)} seeds)",
                "" if arm.name == "raw" else interval(gains),
            ]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _accuracies(measured: Mapping[str, dict[str, Any]], share: str, arm: str) -> dict[str, float]:
    """Return the accuracy of an arm at the raw arm's budget, by seed."""
    rates = {}
    for key, result in measured.items():
        key_share, key_arm, seed = key.split("|")
        raw = measured.get(f"{share}|raw|{seed}")
        if (key_share, key_arm) == (share, arm) and raw is not None:
            rate = accuracy_at(result["points"], raw["points"][-1][1] - result["spent"])
            if rate is not None:
                rates[seed] = rate
    return rates


def interval(gains: Sequence[float]) -> str:
    """Return mean and Student's interval of the differences with the same seeds."""
    from scipy.stats import t

    mean = statistics.fmean(gains)
    if len(gains) < 2:
        return f"{mean:+.3f}"
    half = t.ppf(0.975, len(gains) - 1) * statistics.stdev(gains) / len(gains) ** 0.5
    return f"{mean:+.3f} ({mean - half:+.3f} to {mean + half:+.3f})"


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, metavar="RUN_DIR", help="of the demo, at least up to sft")
    parser.add_argument("--config", type=Path, default=DEMO, help="what RUN_DIR was made with, the demo's by default")
    parser.add_argument("--naive", choices=NAIVE, default="contains", help="the verifier of arms without truegold's")
    parser.add_argument("--heldout", type=int, default=1000, help="problems of an evaluation")
    parser.add_argument("--eval-samples", type=int, default=4, help="completions of each")
    parser.add_argument("--evaluations", type=int, default=8, help="in the steps of the raw arm")
    parser.add_argument("--shares", type=float, nargs="+", default=[0.2])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--arms", nargs="+", default=[arm.name for arm in ARMS])
    parser.add_argument("--json", type=Path, required=True, help="keep the figures here; what is in it is not repeated")
    parser.add_argument("--write", type=Path, help="write the table into this Markdown file")
    arguments = parser.parse_args()
    setting = Setting(
        arguments.run.resolve(),
        arguments.config,
        NAIVE[arguments.naive],
        arguments.heldout,
        arguments.eval_samples,
        arguments.evaluations,
    )
    measured: dict[str, dict[str, Any]] = json.loads(arguments.json.read_text()) if arguments.json.exists() else {}
    for seed in arguments.seeds:
        for share in arguments.shares:
            for arm in ARMS:
                key = f"{share}|{arm.name}|{seed}"
                if key in measured or (arm.name not in arguments.arms and arm.name != "raw"):
                    continue
                raw = measured.get(f"{share}|raw|{seed}")
                budget = raw["points"][-1][1] if raw else None
                measured[key] = run_arm(arm, share, seed, setting, budget)
                arguments.json.write_text(json.dumps(measured))
                print(f"{key}: {measured[key]}", file=sys.stderr, flush=True)
    publish(measured, _report(measured), arguments.json, arguments.write, "What curation is worth")


if __name__ == "__main__":
    _main()
