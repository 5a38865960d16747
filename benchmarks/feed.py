"""Compares the orders in which a training's feed draws its problems, in rollout tokens, on the demo's tiny model.

    truegold select examples/demo.yaml
    python benchmarks/feed.py runs/demo --json feed.json [--seeds 0 1 2 3 4] [--hopeless 0.6] [--write PAGE.md]

The training continues from a policy that already solves most of its problems: the cold start is trained for WARM_UP
steps, and all problems are profiled with the result. No problem is left out by selection, so many groups would be all
right. From there, each order trains with the same seeds, learning rate and number of groups with advantages per step.
Tokens are all sampled tokens, refills included. The demo's planted defects are left out. A share of the problems
(--hopeless), products of three-digit numbers, cannot be learnt by the model.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from proof_training import accuracy_at, heldout_rows, interval, train, training_settings
from publishing import publish

from truegold.flows.config import load_config
from truegold.pipeline.config.sources import DemoSource
from truegold.pipeline.demo.stage import make_demo_data
from truegold.pipeline.profile import profile
from truegold.pipeline.running.disk import DigestCache
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.running.stage import plan_stage, run_stage
from truegold.pipeline.select import select
from truegold.pipeline.select.stage import SELECTED_SCHEMA
from truegold.pipeline.tables.rows import Row, read_rows, row_id, write_rows

DEMO = Path(__file__).parents[1] / "examples" / "demo.yaml"
WARM_UP, STEPS = 20, 60
HELDOUT, EVAL_SAMPLES, EVAL_EVERY = 1000, 4, 10
ORDERS = ("uniform", "signal")

HEAD = """The demo's tiny model, 20 steps after its cold start, on its sound problems and as many products of
three-digit numbers, which it cannot learn, as make up {hopeless:.0%} of all; none are selected away. Held-out accuracy
on 1,000 problems x 4 samples; tokens are those sampled for steps and refills.

```
truegold select examples/demo.yaml
python benchmarks/feed.py runs/demo --json feed.json --write benchmarks/results/feed.md
```

"""


def prepare(run: Path, work: Path, *, hopeless: float) -> dict[str, Path]:
    """Train the cold start a little, profile all rows with it, and return the inputs of the trainings."""
    rows = [row for row in read_rows(run / "settle" / "rows.parquet") if row["split"] == "train"]
    rows = [row for row in rows if json.loads(row["meta"])["planted"] is None]
    draw = random.Random(0)
    beyond = round(len(rows) * hopeless / (1 - hopeless))
    rows += [_beyond_the_model(rows[index % len(rows)], index, draw) for index in range(beyond)]
    draw.shuffle(rows)
    write_rows(work / "rows.parquet", rows)
    make_demo_data({}, DemoSource(heldout_problems=HELDOUT, sft_examples=64), work, NullProgress())
    digests = DigestCache(work / ".digests.json")
    heldout = heldout_rows(work / "heldout.jsonl", work, digests)
    first = {"model": run / "sft" / "checkpoint", "heldout": heldout, "rows": work / "first.parquet"}
    first["reserve"] = work / "reserve.parquet"
    write_rows(first["rows"], rows, SELECTED_SCHEMA)
    write_rows(first["reserve"], [], SELECTED_SCHEMA)
    (work / "first").mkdir()
    train(first, work / "first", training_settings(WARM_UP, 100, WARM_UP, HELDOUT, EVAL_SAMPLES), DEMO)
    config = load_config(DEMO, [])
    section = config.profile.model_copy(update={"engine": config.engine, "chat": config.chat})
    model = work / "first" / "train" / "checkpoint"
    everything = config.select.model_copy(update={"min_teaching": 0.0, "zero_share": 1.0})
    profiled = plan_stage("profile", profile, section, {"rows": work / "rows.parquet", "model": model})
    tables = {name: work / "profile" / f"{name}.parquet" for name in ("rows", "profile", "flags", "suspicion")}
    run_stage(profiled, work, digests, NullProgress())
    run_stage(plan_stage("select", select, everything, tables), work, digests, NullProgress())
    return {
        "model": model,
        "heldout": heldout,
        "rows": work / "select" / "selected.parquet",
        "reserve": first["reserve"],
        "samples": work / "profile" / "samples.parquet",
    }


def _beyond_the_model(row: Row, index: int, draw: random.Random) -> Row:
    """Return a row like another one, with a problem that a model of this size cannot solve."""
    left, right = draw.randint(100, 999), draw.randint(100, 999)
    prompt, gold = f"What is {left} times {right}?", str(left * right)
    identity = {"id": row_id(prompt, gold, row["verifier_args"]), "source": "products", "source_row": index}
    return cast("Row", {**row, **identity, "prompt": prompt, "gold": gold, "solution": None})


def tokens_to(points: Sequence[tuple[int, int, float]], accuracy: float) -> int | None:
    """Return the tokens after which an accuracy is reached, between the evaluations around; None where it never is."""
    before: tuple[int, float] | None = None
    for _, tokens, rate in points:
        if rate >= accuracy:
            if before is None:
                return tokens
            return round(before[0] + (tokens - before[0]) * (accuracy - before[1]) / (rate - before[1]))
        before = tokens, rate
    return None


def _report(measured: Mapping[str, list[tuple[int, int, float]]]) -> str:
    seeds = sorted({key.split("|")[1] for key in measured})
    lines = [
        "| seed | uniform: thousand tokens, accuracy | signal | signal at uniform's half of the tokens, and at all "
        "| tokens to uniform's end, share |",
        "|---" * 5 + "|",
    ]
    gains, shares = [], []
    for seed in seeds:
        uniform, signal = (measured.get(f"{order}|{seed}") for order in ORDERS)
        if uniform is None or signal is None:
            continue
        budget, end = uniform[-1][1], uniform[-1][2]
        needed = tokens_to(signal, end)
        same = accuracy_at(signal, budget)
        early = accuracy_at(signal, budget // 2), accuracy_at(uniform, budget // 2)
        if early[0] is not None and early[1] is not None:
            gains.append(early[0] - early[1])
        if needed is not None:
            shares.append(needed / budget)
        cells = [
            seed,
            f"{budget / 1000:,.0f}, {end:.3f}",
            f"{signal[-1][1] / 1000:,.0f}, {signal[-1][2]:.3f}",
            f"{_rate(early[0])} (uniform {_rate(early[1])}), {_rate(same)}",
            "never" if needed is None else f"{needed / budget:.2f}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    if gains:
        lines.append(f"\nGain at half of the tokens, 95 % interval: {interval(gains)}.")
    if shares:
        lines.append(
            f"Share of the tokens to uniform's end: mean {statistics.fmean(shares):.2f} of {len(shares)} seeds."
        )
    return "\n".join(lines)


def _rate(accuracy: float | None) -> str:
    return "—" if accuracy is None else f"{accuracy:.3f}"


def main() -> None:
    """Train with each order and seed that is not measured yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, metavar="RUN_DIR", help="of the demo, at least up to sft")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--hopeless", type=float, default=0.6, help="the share of problems beyond the model")
    parser.add_argument("--work", type=Path, help="an empty folder for the trainings, to look at them afterwards")
    parser.add_argument("--json", type=Path, required=True, help="keep the figures here; what is in it is not repeated")
    parser.add_argument("--write", type=Path, help="write the table into this Markdown file")
    arguments = parser.parse_args()
    measured: dict[str, Any] = json.loads(arguments.json.read_text()) if arguments.json.exists() else {}
    missing = [(order, seed) for seed in arguments.seeds for order in ORDERS if f"{order}|{seed}" not in measured]
    with tempfile.TemporaryDirectory(prefix="truegold-feed-") as folder:
        work = arguments.work or Path(folder)
        inputs = prepare(arguments.run.resolve(), work, hopeless=arguments.hopeless) if missing else {}
        for order, seed in missing:
            out = work / f"{order}-{seed}"
            out.mkdir()
            settings = training_settings(STEPS, seed, EVAL_EVERY, HELDOUT, EVAL_SAMPLES)
            points = train(inputs, out, {**settings, "feed.order": order}, DEMO)
            measured[f"{order}|{seed}"] = points
            arguments.json.write_text(json.dumps(measured))
            print(order, seed, points, file=sys.stderr, flush=True)
    publish(
        measured,
        HEAD.format(hopeless=arguments.hopeless) + _report(measured),
        arguments.json,
        arguments.write,
        "Orders of the feed",
    )


if __name__ == "__main__":
    main()
