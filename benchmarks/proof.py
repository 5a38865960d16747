"""Trains the demo's tiny model on rows with one kind of fault, with truegold's stages and without.

    truegold run examples/demo.yaml
    python benchmarks/proof.py concentrated runs/demo --json benchmarks/results/proof_concentrated.json
    python benchmarks/proof.py scattered runs/demo --json benchmarks/results/proof_scattered.json
    python benchmarks/proof.py real runs/demo --json benchmarks/results/proof_real.json
    python benchmarks/proof.py platinum runs/demo --seeds 0 --json benchmarks/results/proof_platinum.json
    python benchmarks/proof.py reach runs/demo --json benchmarks/results/proof_reach.json
    python benchmarks/proof.py leaks runs/demo --json benchmarks/results/proof_leaks.json
    python benchmarks/proof.py leaks-grpo runs/demo --json benchmarks/results/proof_leaks_grpo.json

Hypotheses, arms and sizes were written down before the runs (`proof_plan.md`). The numbers of each arm and seed are
written to the JSON file at once, and are not measured again. Tables are printed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from pathlib import Path

import proof_concentrated
import proof_leaks
import proof_reach
import proof_real
from proof_training import Record, accuracy_at, interval

QUARTER, END = proof_concentrated.QUARTER, proof_concentrated.STEPS
SHOWN = ((QUARTER, "all"), (QUARTER, "B"), (END, "all"), (END, "A"), (END, "B"), (END, "C"))
"""The steps and sources whose accuracy is shown."""
LEAKS = ("leaks", "leaks_left")
Figures = Mapping[str, Record]
"""What was measured, by `arm|seed`."""


def measure(experiment: str, arm: str, seed: int, run: Path, measured: Figures) -> Record:
    """Return the figures of one arm and seed."""
    if experiment in ("concentrated", "scattered", "real"):
        return proof_concentrated.run_arm(experiment, arm, seed, run)
    if experiment == "platinum":
        return proof_real.run_arm(seed, run)
    if experiment == "leaks":
        return proof_leaks.run_arm(arm, seed, run)
    if experiment == "leaks-grpo":
        return proof_leaks.run_grpo_arm(arm, seed, run)
    return proof_reach.run_arm(arm, seed, run, measured.get(f"raw|{seed}"))


def by_seed(measured: Figures, arm: str) -> dict[str, Record]:
    """Return the figures of an arm by seed."""
    return {key.split("|")[1]: figures for key, figures in measured.items() if key.split("|")[0] == arm}


def _cell(measured: Figures, arm: str, base: str, value: Callable[[str, Record], float | None]) -> str:
    """Return the mean of an arm, and the interval of its differences to the base arm with the same seeds."""
    values = {seed: value(seed, figures) for seed, figures in by_seed(measured, arm).items()}
    others = {seed: value(seed, figures) for seed, figures in by_seed(measured, base).items()}
    known = [rate for rate in values.values() if rate is not None]
    pairs = [(rate, others.get(seed)) for seed, rate in values.items()]
    gains = [rate - other for rate, other in pairs if rate is not None and other is not None]
    parts = [f"{statistics.fmean(known):.3f}"] if known else []
    return ", ".join([*parts, *([] if arm == base or not gains else [interval(gains)])])


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _mean(measured: Figures, arm: str, value: Callable[[Record], float]) -> str:
    return f"{statistics.fmean(value(figures) for figures in by_seed(measured, arm).values()):,.0f}"


def report_concentrated(measured: Figures) -> str:
    """Return accuracy by source at a quarter and at all of the steps, and what each arm took out."""
    shown = [arm for arm in proof_concentrated.ARMS if by_seed(measured, arm)]
    rows, removed = [], []
    for arm in shown:
        trained = {seed: figures for seed, figures in by_seed(measured, arm).items() if "points" in figures}
        cells = [arm, str(len(trained))]
        for step, name in SHOWN:
            cells.append(_cell(measured, arm, "raw", partial(_at_step, step=step, name=name)))
        rows.append(cells)
        removed.append(
            [
                arm,
                f"{_mean(measured, arm, lambda figures: figures['bad_removed'])} of "
                f"{_mean(measured, arm, lambda figures: figures['bad'])}",
                f"{_mean(measured, arm, lambda figures: figures['sound_removed'])} of "
                f"{_mean(measured, arm, lambda figures: figures['sound'])}",
                _mean(measured, arm, lambda figures: figures["preparation"]["tokens"]),
                _mean(measured, arm, lambda figures: figures["preparation"].get("stages_s", 0)),
                _mean(measured, arm, lambda figures: figures.get("points", [{"tokens": 0}])[-1]["tokens"]),
                _mean(measured, arm, lambda figures: figures.get("training", {}).get("cpu_s", 0)),
            ]
        )
    shown_at = ["at 25 %", "its source B", "at 100 %", "its A", "its source B", "its C"]
    head = ["arm", "bad rows removed", "sound rows removed", "tokens to choose", "seconds", "tokens to train", "CPU s"]
    return f"{_table(['arm', 'seeds', *shown_at], rows)}\n\n{_table(head, removed)}"


def _at_step(seed: str, figures: Record, *, step: int, name: str) -> float | None:
    rates = {point["step"]: point[name] for point in figures.get("points", [])}
    return rates.get(step)


def report_reach(measured: Figures) -> str:
    """Return the accuracy at a quarter, half and all of the raw arm's tokens, those of the profile counted."""
    raw = by_seed(measured, "raw")
    rows = []
    for arm in proof_reach.ARMS:
        if not by_seed(measured, arm):
            continue
        cells = [arm, str(len(by_seed(measured, arm)))]
        cells += [_mean(measured, arm, itemgetter(name)) for name in ("rows", "beyond")]
        cells += [_mean(measured, arm, lambda figures: figures["preparation"]["tokens"])]
        for share in (0.25, 0.5, 1.0):
            cells.append(_cell(measured, arm, "raw", partial(_at_share, share=share, raw=raw)))
        cells += [_mean(measured, arm, lambda figures: figures["training"]["cpu_s"] + figures["preparation"]["cpu_s"])]
        rows.append(cells)
    parts = [f"at {share} of the tokens" for share in ("25 %", "50 %", "100 %")]
    return _table(["arm", "seeds", "rows", "out of reach", "profile tokens", *parts, "CPU s"], rows)


def _at_share(seed: str, figures: Record, *, share: float, raw: Mapping[str, Record]) -> float | None:
    """Return the accuracy at a share of the raw arm's tokens, tokens of the profile included."""
    if seed not in raw:
        return None
    points = [(point["step"], point["tokens"], point["all"]) for point in figures["points"]]
    budget = round(share * raw[seed]["points"][-1]["tokens"]) - figures["preparation"]["tokens"]
    rate: float | None = points[0][2] if budget <= 0 else accuracy_at(points, budget)
    return rate


def report_leaks(measured: Figures) -> str:
    """Return the accuracy on leaked and clean halves, and how many leaks of each form were left."""
    rows, left = [], []
    for arm in proof_leaks.ARMS:
        if not by_seed(measured, arm):
            continue
        cells = [arm, str(len(by_seed(measured, arm)))]
        runs = list(by_seed(measured, arm).values())
        for kind in proof_leaks.KINDS:
            for half in ("leaked", "clean"):
                cells.append(_cell(measured, arm, "leaked", partial(_half, kind=kind, half=half)))
            cells.append(interval([_half("", figures, kind=kind, half="inflation") for figures in runs]))
        rows.append([*cells, _mean(measured, arm, lambda figures: figures["costs"]["cpu_s"])])
        sound = _mean(measured, arm, itemgetter("sound_removed"))
        for form in sorted({form for figures in runs for form in figures["leaks"]}):
            planted, kept = (f"{statistics.fmean(figures[name][form] for figures in runs):.1f}" for name in LEAKS)
            left.append([arm, form, planted, kept, sound])
    halves = [f"{kind}: {half}" for kind in proof_leaks.KINDS for half in ("leaked half", "clean half", "inflation")]
    return (
        f"{_table(['arm', 'seeds', *halves, 'CPU s'], rows)}\n\n"
        f"{_table(['arm', 'leaks', 'planted', 'left', 'sound rows removed'], left)}"
    )


def report_grpo_leaks(measured: Figures) -> str:
    """Return the accuracy on leaked and clean halves after GRPO."""
    rows = []
    for arm in proof_leaks.GRPO_ARMS:
        halves = ("leaked", "clean", "inflation")
        cells = [_cell(measured, arm, "leaked", partial(_half, kind="word", half=half)) for half in halves[:2]]
        runs = by_seed(measured, arm).values()
        if runs:
            cells.append(interval([_half("", figures, kind="word", half="inflation") for figures in runs]))
            rows.append([arm, str(len(runs)), *cells, _mean(measured, arm, lambda figures: figures["costs"]["cpu_s"])])
    return _table(["arm", "seeds", "leaked half", "clean half", "inflation", "CPU s"], rows)


def report_platinum(measured: Figures) -> str:
    """Return how many samples of GSM8K-Platinum a real model has right."""
    names = ("rows", "samples", "right", "rows_with_one", "tokens")
    rows = [[arm, *(_mean(measured, arm, itemgetter(name)) for name in names)] for arm in proof_real.ARMS]
    return _table(["model", "rows", "samples", "right", "rows with a right one", "tokens"], rows)


def _half(seed: str, figures: Record, *, kind: str, half: str) -> float:
    """Return the accuracy on one half of a kind, or by how much that on the leaked half is higher."""
    rates: dict[str, float] = figures["rates"]
    if half == "inflation":
        return rates[f"{kind}, leaked"] - rates[f"{kind}, clean"]
    return rates[f"{kind}, {half}"]


EXPERIMENTS: Mapping[str, tuple[Sequence[str], Callable[[Figures], str]]] = {
    "concentrated": (proof_concentrated.ARMS, report_concentrated),
    "scattered": (proof_concentrated.ARMS[:2], report_concentrated),
    "real": (proof_concentrated.ARMS[:3], report_concentrated),
    "platinum": (proof_real.ARMS, report_platinum),
    "reach": (proof_reach.ARMS, report_reach),
    "leaks": (proof_leaks.ARMS, report_leaks),
    "leaks-grpo": (proof_leaks.GRPO_ARMS, report_grpo_leaks),
}


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", choices=EXPERIMENTS)
    parser.add_argument("run", type=Path, metavar="RUN_DIR", help="of the demo, up to its training")
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2, 3, 4], help="none: print the tables alone")
    parser.add_argument("--arms", nargs="+", metavar="ARM", help="all where left out")
    parser.add_argument("--json", type=Path, required=True, help="keep the figures here; what is in it is not repeated")
    arguments = parser.parse_args()
    arms, report = EXPERIMENTS[arguments.experiment]
    arguments.json.touch()
    for seed in arguments.seeds:
        for arm in arguments.arms or arms:
            measured = json.loads(arguments.json.read_text() or "{}")
            key = f"{arm}|{seed}"
            if key in measured:
                continue
            figures = measure(arguments.experiment, arm, seed, arguments.run.resolve(), measured)
            # Another process may have written in between.
            measured = json.loads(arguments.json.read_text() or "{}") | {key: figures}
            arguments.json.write_text(json.dumps(measured, indent=1))
            print(f"{key}: {figures}", file=sys.stderr, flush=True)
    print(report(json.loads(arguments.json.read_text() or "{}")))


if __name__ == "__main__":
    _main()
