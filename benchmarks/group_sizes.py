"""Groups by posterior against equal ones, at equal tokens, on the demo's tiny model; and a reward for diversity.

    truegold select examples/demo.yaml
    python benchmarks/group_sizes.py runs/demo --json groups.json [--seeds 0 1 2 3 4] [--arms equal by_posterior]

The trainings begin where those of `feed.py` do: some steps after the cold start, all sound problems profiled with that
policy, none selected away, and products of three-digit numbers, which it cannot learn, among them (--beyond).
All arms have the same seeds, rows and completions in a step; accuracy on held-out problems is read where the arm with
the fewest tokens ends. A problem is hard where the profile has at most one of eight right and it is no product.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
from feed import DEMO, prepare
from proof import accuracy_at, interval, train, training_settings
from publishing import publish

HARD = 1 / 8
ARMS: dict[str, dict[str, Any]] = {
    "equal": {},
    "by_posterior": {"groups.sizes": "by_posterior", "groups.least": 4, "groups.most": 32},
    "diversity": {"reward.diversity.weight": 0.1},
}

HEAD = """The demo's tiny model, 20 steps after its cold start, on its sound problems and as many products of
three-digit numbers, which it cannot learn, as make up {beyond:.0%} of all; none are selected away. {steps} steps,
held-out accuracy at the tokens of the arm that used fewest. A problem is hard where the profile has at most one of
eight right and it is no product.

```
truegold select examples/demo.yaml
python benchmarks/group_sizes.py runs/demo --json groups.json --write benchmarks/results/group_sizes.md
```

"""


def measure(inputs: Mapping[str, Path], out: Path) -> dict[str, float]:
    """Return what a training's groups came to: the share that teaches, of hard problems the share with a right
    completion, right ones a step, and the share of distinct 4-grams."""
    rows = pl.read_parquet(inputs["rows"]).select("id", "pass_rate", "source")
    completions = pl.read_parquet(out / "train" / "completions" / "*.parquet").join(rows, on="id")
    hard = completions.filter((pl.col("pass_rate") <= HARD) & (pl.col("source") != "products"))
    groups = hard.group_by("step", "group").agg(right=(pl.col("score") == 1.0).sum(), size=pl.len())
    steps = completions["step"].n_unique()
    lines = [json.loads(line) for line in (out / "train" / "metrics.jsonl").read_text().splitlines()]
    taken = [line for line in lines if "groups_teaching" in line]
    return {
        "teaching": statistics.fmean(line["groups_teaching"] for line in taken),
        "distinct_ngrams": statistics.fmean(line["distinct_ngrams"] for line in taken),
        "hard_groups": groups.height / steps,
        "hard_with_a_right": float((groups["right"] > 0).mean() or 0.0),
        "hard_right": float(groups["right"].sum()) / steps,
        "hard_size": float(groups["size"].mean() or 0.0),
    }


def _report(measured: Mapping[str, dict[str, Any]]) -> str:
    seeds = sorted({key.split("|")[1] for key in measured})
    names = [name for name in ARMS if any(key.startswith(f"{name}|") for key in measured)]
    lines = [
        "| groups | groups that teach | hard: size | with a right completion | right ones a step | distinct 4-grams "
        "| accuracy at equal tokens | minus equal, 95 % interval |",
        "|---" * 8 + "|",
    ]
    rates: dict[str, list[float]] = {name: [] for name in names}
    for seed in seeds:
        runs = {name: measured[f"{name}|{seed}"] for name in names if f"{name}|{seed}" in measured}
        if len(runs) < len(names):
            continue
        budget = min(run["points"][-1][1] for run in runs.values())
        for name, run in runs.items():
            rates[name].append(accuracy_at(run["points"], budget) or 0.0)
    for name in names:
        groups = [measured[f"{name}|{seed}"]["groups"] for seed in seeds if f"{name}|{seed}" in measured]
        mean = {key: statistics.fmean(group[key] for group in groups) for key in groups[0]}
        gains = [rate - equal for rate, equal in zip(rates[name], rates["equal"], strict=True)]
        cells = [
            name,
            f"{mean['teaching']:.1%}",
            f"{mean['hard_size']:.1f}",
            f"{mean['hard_with_a_right']:.1%}",
            f"{mean['hard_right']:.1f}",
            f"{mean['distinct_ngrams']:.3f}",
            f"{statistics.fmean(rates[name]):.3f} ({len(gains)} seeds)",
            "" if name == "equal" else interval(gains),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, metavar="RUN_DIR", help="of the demo, at least up to sft")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--arms", nargs="+", default=list(ARMS), choices=ARMS)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--heldout", type=int, default=500, help="problems of an evaluation, 2 samples each")
    parser.add_argument("--beyond", type=float, default=0.3, help="the share of problems beyond the model")
    parser.add_argument("--json", type=Path, required=True, help="keep the figures here; what is in it is not repeated")
    parser.add_argument("--write", type=Path, help="write the table into this Markdown file")
    arguments = parser.parse_args()
    measured: dict[str, Any] = json.loads(arguments.json.read_text()) if arguments.json.exists() else {}
    missing = [(arm, seed) for seed in arguments.seeds for arm in arguments.arms if f"{arm}|{seed}" not in measured]
    with tempfile.TemporaryDirectory(prefix="truegold-groups-") as folder:
        work = Path(folder)
        inputs = prepare(arguments.run.resolve(), work, hopeless=arguments.beyond) if missing else {}
        for arm, seed in missing:
            out = work / f"{arm}-{seed}"
            out.mkdir()
            settings = training_settings(arguments.steps, seed, arguments.steps // 2, arguments.heldout, 2)
            points = train(inputs, out, {**settings, **ARMS[arm]}, DEMO)
            measured[f"{arm}|{seed}"] = {"points": points, "groups": measure(inputs, out)}
            arguments.json.write_text(json.dumps(measured))
            print(arm, seed, measured[f"{arm}|{seed}"], file=sys.stderr, flush=True)
    head = HEAD.format(beyond=arguments.beyond, steps=arguments.steps)
    publish(measured, head + _report(measured), arguments.json, arguments.write, "Sizes of groups")


if __name__ == "__main__":
    _main()
