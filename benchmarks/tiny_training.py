"""Trains the demo's tiny model with every advantage and loss, with five seeds, and with 40 % of the golds wrong.

    truegold select examples/demo.yaml
    python benchmarks/tiny_training.py runs/demo [--only NAME ...] [--steps 80] [--json FILE]
                                       [--write PAGE.md]

All runs begin from the same cold start. The name of a run says how its settings differ from the demo's. Reported are
the pass rate on held-out problems, 8 samples each at temperature 1, before, during and after the training, and the
seconds of rollouts, updates and syncs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
from publishing import publish

from truegold.flows.config import load_config
from truegold.pipeline.config.base import LaunchConfig
from truegold.pipeline.running.isolation import call_isolated
from truegold.pipeline.running.progress import NullProgress
from truegold.train.config.grpo import GrpoConfig
from truegold.train.objective import ADVANTAGES, PASS_AT_K

DEMO = Path(__file__).parents[1] / "examples" / "demo.yaml"
EVAL_EVERY = 20
EVAL_SAMPLES = 8
WRONG_SHARE = 0.4
COLLAPSED = 0.5
"""A run has collapsed where it ends below this share of the best held-out pass rate it had."""


@dataclass(frozen=True)
class Variant:
    """One run: the settings in which it differs, by their dotted names, and whether its golds are spoilt."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    wrong_golds: bool = False


def _variants() -> Iterator[Variant]:
    for seed in range(5):
        yield Variant(f"seed {seed}", {"seed": seed})
    for seed in range(3):
        yield Variant(f"40 % of golds wrong, seed {seed}", {"seed": seed}, wrong_golds=True)
    for name in (*ADVANTAGES, *PASS_AT_K):
        if name != "grpo":
            yield Variant(f"advantage {name}", {"objective.advantage": name})
    for loss in ("gspo", "gspo_token", "cispo", "topr"):
        yield Variant(f"loss {loss}", {"objective.loss": loss})
    dr_grpo = {"objective.advantage": "dr_grpo", "objective.aggregation": "constant"}
    yield Variant("Dr. GRPO: advantage dr_grpo, aggregation constant", dr_grpo)
    yield Variant("aggregation sequence", {"objective.aggregation": "sequence"})
    yield Variant("dual clip 3", {"objective.clip.dual": 3.0})
    yield Variant("positive floor 1", {"objective.positives.floor": 1.0})
    yield Variant("top entropy .2", {"objective.masks.top_entropy": 0.2})
    yield Variant("2 iterations", {"objective.num_iterations": 2})
    bounded = {"sampling.refills": 2, "sampling.right_share": [0.25, 0.75]}
    yield Variant("refills 2, right share .25 to .75", bounded)


def _settings(variant: Variant, steps: int) -> GrpoConfig:
    evaluation = {"evaluation.every": EVAL_EVERY, "evaluation.samples": EVAL_SAMPLES}
    changes = {"steps": steps, "checkpoint_every": steps, **evaluation, **variant.settings}
    overrides = [f"train.{name}={json.dumps(setting)}" for name, setting in changes.items()]
    config = load_config(DEMO, overrides)
    assert config.train is not None
    return config.train.model_copy(update={"engine": config.engine})


def _spoil(rows: Path, out: Path) -> Path:
    """Write the rows with another whole number for gold in four of ten, the same ones at every run."""
    table = pl.read_parquet(rows)

    def spoil_gold(row_id: str, gold: str) -> str:
        draw = hashlib.sha256(row_id.encode()).digest()
        # Golds such as "16 apples" and "$8$" have their number replaced.
        digits = re.search(r"\d+", gold)
        return str(int(digits[0]) + 1 + draw[1] % 3) if digits and draw[0] < WRONG_SHARE * 256 else gold

    golds = [spoil_gold(row_id, gold) for row_id, gold in table.select("id", "gold").iter_rows()]
    table.with_columns(pl.Series("gold", golds)).write_parquet(out)
    return out


def _train(variant: Variant, run: Path, steps: int, work: Path) -> dict[str, Any]:
    """Return the held-out pass rates by step and the seconds of one run."""
    inputs = {name: run / "select" / f"{name}.parquet" for name in ("heldout", "reserve")}
    inputs |= {"model": run / "sft" / "checkpoint", "rows": run / "select" / "selected.parquet"}
    if variant.wrong_golds:
        inputs |= {name: _spoil(inputs[name], work / f"{name}.parquet") for name in ("rows", "reserve")}
    out = work / "train"
    out.mkdir()
    config = _settings(variant, steps)
    call_isolated(
        "truegold.train.grpo:grpo", inputs, config, out, NullProgress(), work / "log", LaunchConfig(), work / "scratch"
    )
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    rates = {line["step"]: line["heldout_pass_rate"] for line in lines if "heldout_pass_rate" in line}
    seconds = sum(line.get(f"seconds_{part}", 0.0) for line in lines for part in ("rollout", "update", "sync"))
    trained = [line for line in lines if "pass_rate" in line]
    entropies = [line["entropy"] for line in trained if "entropy" in line]
    return {
        "heldout": rates,
        "seconds": round(seconds, 1),
        "entropy": [entropies[0], entropies[-1]],
        "grad_norm_max": max(line.get("grad_norm", 0.0) for line in trained),
    }


def _report(measured: Mapping[str, dict[str, Any]]) -> str:
    steps = list(next(iter(measured.values()))["heldout"])
    lines = [
        "| run | " + " | ".join(f"step {step}" for step in steps) + " | entropy, first and last | seconds |",
        "|---" * (len(steps) + 3) + "|",
    ]
    for name, result in measured.items():
        rates = " | ".join(f"{rate:.3f}" for rate in result["heldout"].values())
        first, last = result["entropy"]
        lines.append(f"| {name} | {rates} | {first:.2f}, {last:.2f} | {result['seconds']:.0f} |")
    ends = {name: list(result["heldout"].values()) for name, result in measured.items()}
    collapsed = [name for name, rates in ends.items() if rates[-1] < COLLAPSED * max(rates)]
    lines += ["", f"Collapsed: {', '.join(collapsed) or 'none'}."]
    return "\n".join(lines)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, metavar="RUN_DIR", help="of the demo, at least up to select")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="runs whose name has one of these in it")
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--json", type=Path, help="keep the figures here; runs that are in it are not repeated")
    parser.add_argument("--write", type=Path, help="write the table into this Markdown file")
    arguments = parser.parse_args()
    chosen = [
        variant for variant in _variants() if not arguments.only or any(part in variant.name for part in arguments.only)
    ]
    if not chosen:
        sys.exit(
            f"No run is named like {arguments.only}; there are: {', '.join(variant.name for variant in _variants())}"
        )
    measured: dict[str, dict[str, Any]] = {}
    if arguments.json and arguments.json.exists():
        measured = json.loads(arguments.json.read_text())
    for variant in chosen:
        if variant.name in measured:
            continue
        with tempfile.TemporaryDirectory() as work:
            measured[variant.name] = _train(variant, arguments.run.resolve(), arguments.steps, Path(work))
        if arguments.json:
            arguments.json.write_text(json.dumps(measured))
        print(f"{variant.name}: {measured[variant.name]}", file=sys.stderr, flush=True)
    text = _report(measured)
    publish(measured, text, arguments.json, arguments.write, "The tiny model, by advantage and loss")


if __name__ == "__main__":
    _main()
