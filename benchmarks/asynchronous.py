"""Compares synchronous with asynchronous training, and frequent with rare weight syncs, on the demo's training.

    truegold select examples/demo.yaml
    python benchmarks/asynchronous.py runs/demo --json FILE [--arms sync "every 5" ...] [--seeds 0 1 2] [--steps 80]

    truegold select benchmarks/asynchronous_smollm2.yaml
    python benchmarks/asynchronous.py runs/asynchronous-smollm2 --config benchmarks/asynchronous_smollm2.yaml ...

All arms except the longer one take the same number of steps, from the run's cold start and on its selected rows.
Reported are the wall time of the steps without evaluations, the shares of it in which the sampler and the trainer
worked, the staleness of trained groups, the number of tokens, and the final held-out pass rate. In synchronous arms
sampler and trainer wait for each other; in asynchronous arms each has one core.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import polars as pl
from publishing import publish, say

from truegold.flows.config import load_config
from truegold.pipeline.config.base import LaunchConfig
from truegold.pipeline.running.isolation import call_isolated
from truegold.pipeline.running.progress import NullProgress
from truegold.train.config.grpo import GrpoConfig

DEMO = Path(__file__).parents[1] / "examples" / "demo.yaml"
ARMS: Mapping[str, Mapping[str, Any]] = {
    "sync": {},
    "every 5": {"sync_every": 5},
    "every 10": {"sync_every": 10},
    "every 20": {"sync_every": 20},
    "one step off": {"asynchronous": {"max_staleness": 1}},
    "bound 4": {"asynchronous": {"max_staleness": 4}},
    "bound 4, longer": {"asynchronous": {"max_staleness": 4}},
    "bound 4, fresh": {"asynchronous": {"max_staleness": 4, "order": "fresh"}},
    "bound 4, in flight": {"asynchronous": {"max_staleness": 4, "in_flight": True}},
}
LONGER = {"bound 4, longer": 1.25}
"""Arms that take this many times the steps of the others."""


def plan_training(
    run: Path, settings: Mapping[str, Any], config_path: Path = DEMO
) -> tuple[dict[str, Path], GrpoConfig]:
    """Return inputs and configuration of a training on what a run has selected, with changed settings by their dotted
    names."""
    changes = [f"train.{name}={json.dumps(value)}" for name, value in settings.items()]
    config = load_config(config_path, changes).resolved()
    assert config.train is not None
    names = {"rows": "selected", "heldout": "heldout", "reserve": "reserve"}
    inputs = {key: run / "select" / f"{name}.parquet" for key, name in names.items()}
    return inputs | {"model": run / "sft" / "checkpoint", "samples": run / "profile" / "samples.parquet"}, config.train


def train(
    run: Path, arm: Mapping[str, Any], steps: int, seed: int, heldout: int, config_path: Path
) -> dict[str, float]:
    """Return what came of one training."""
    evaluation = {"evaluation.every": steps, "evaluation.samples": 4, "evaluation.problems": heldout}
    settings = {**arm, **evaluation, "steps": steps, "seed": seed, "checkpoint_every": steps}
    inputs, config = plan_training(run, settings, config_path)
    with tempfile.TemporaryDirectory(prefix="truegold-asynchronous-") as folder:
        out = Path(folder) / "train"
        out.mkdir()
        fn, log = "truegold.train.grpo:grpo", Path(folder) / "log"
        call_isolated(fn, inputs, config, out, NullProgress(), log, LaunchConfig(), Path(folder) / "scratch")
        lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        tokens = sum(
            pl.scan_parquet(path).select(pl.col("token_ids").list.len().sum()).collect().item()
            for path in (out / "completions").glob("*.parquet")
        )
    taken = [line for line in lines if "seconds_rollout" in line]
    seconds = {name: sum(line[f"seconds_{name}"] for line in taken) for name in ("rollout", "update", "sync")}
    wall = sum(seconds.values())
    is_beside = "asynchronous" in arm
    return {
        "wall": wall,
        "sampling": 1 - taken[-1]["sampler_starved"] if is_beside else seconds["rollout"] / wall,
        "updating": seconds["update"] / wall,
        "staleness": fmean(line["staleness"] for line in taken),
        "stale_groups": sum(line.get("stale_groups", 0) for line in taken),
        "tokens": tokens,
        "accuracy": lines[-1]["heldout_pass_rate"],
    }


def _report(measured: Mapping[str, dict[str, float]]) -> str:
    lines = [
        "| arm | seconds | to `sync` | sampling | updating | staleness | groups too old | tokens | held-out |",
        "|---" * 9 + "|",
    ]

    def mean(arm: str, name: str) -> float:
        return fmean(run[name] for key, run in measured.items() if key.rpartition("|")[0] == arm)

    for arm in dict.fromkeys(key.rpartition("|")[0] for key in measured):
        accuracies = [run["accuracy"] for key, run in measured.items() if key.rpartition("|")[0] == arm]
        cells = [
            arm,
            f"{mean(arm, 'wall'):.0f}",
            f"{mean(arm, 'wall') / mean('sync', 'wall'):.2f}",
            f"{mean(arm, 'sampling'):.0%}",
            f"{mean(arm, 'updating'):.0%}",
            f"{mean(arm, 'staleness'):.1f}",
            f"{mean(arm, 'stale_groups'):.0f}",
            f"{mean(arm, 'tokens'):,.0f}",
            f"{fmean(accuracies):.3f} ({min(accuracies):.3f} to {max(accuracies):.3f}, {len(accuracies)} seeds)",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, metavar="RUN_DIR", help="at least up to select")
    parser.add_argument("--config", type=Path, default=DEMO, help="what RUN_DIR was made with, the demo's by default")
    parser.add_argument("--arms", nargs="+", default=list(ARMS), choices=list(ARMS), metavar="ARM")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--heldout", type=int, default=500, help="problems of the evaluation at the end")
    parser.add_argument("--json", type=Path, required=True, help="keep the figures here; what is in it is not repeated")
    parser.add_argument("--write", type=Path, help="write the table into this Markdown file")
    arguments = parser.parse_args()
    measured: dict[str, dict[str, float]] = json.loads(arguments.json.read_text()) if arguments.json.exists() else {}
    for seed in arguments.seeds:
        for arm in dict.fromkeys(["sync", *arguments.arms]):
            key = f"{arm}|{seed}"
            if key not in measured:
                run, config = arguments.run.resolve(), arguments.config.resolve()
                steps = round(arguments.steps * LONGER.get(arm, 1))
                measured[key] = train(run, ARMS[arm], steps, seed, arguments.heldout, config)
                arguments.json.write_text(json.dumps(measured))
                say(f"{key}: {measured[key]}")
    publish(measured, _report(measured), arguments.json, arguments.write, "Rollouts beside the update")


if __name__ == "__main__":
    _main()
