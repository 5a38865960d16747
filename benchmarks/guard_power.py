"""Measures the guards on simulated runs: how often they act on a healthy run, and how soon they notice a fault.

    python benchmarks/guard_power.py healthy OUT [--sizes 4 8 16] [--runs 1000] [--steps 200]
    python benchmarks/guard_power.py faults OUT [--sizes 4 16 64] [--runs 100]
    python benchmarks/guard_power.py table OUT [--write PAGE.md]

The policy of a healthy run never changes: each problem has a fixed pass rate, and every step draws other problems. The
guards are those of the trainer (`GuardWatch`); only the metrics of steps are simulated.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median

import numpy as np
import numpy.typing as npt
from publishing import publish

from truegold.train.guards.watch import GuardWatch
from truegold.verifiers.rates import wilson_interval

Floats = npt.NDArray[np.float64]
GROUP = 8
SIZES = (4, 8, 16, 32, 64, 128, 512)
START = 30
"""The step at which a fault sets in."""
PATIENCE = 60
"""So many steps are waited for a guard."""


def _mostly_zero(draw: np.random.Generator, count: int) -> Floats:
    return np.where(draw.random(count) < 0.75, 0.0, draw.beta(1.0, 2.0, count))


SHAPES: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "Beta": lambda draw, count: draw.beta(1.0, 3.0, count),
    "U-shaped": lambda draw, count: draw.beta(0.25, 0.75, count),
    "mostly 0": _mostly_zero,
}
"""How the pass rates of problems are spread."""


@dataclass
class Policy:
    """The behaviour of a simulated policy, and the changes by a fault."""

    passing: float = 1.0
    length: float = 1.0
    truncated: float = 0.0
    """Added to the share that is cut."""
    entropy: float = 1.0
    kl: float = 1.0
    alike: bool = False
    rate: float = 1.0
    never_ends: bool = False


FAULTS: dict[str, Policy] = {
    "pass rate halves": Policy(passing=0.5),
    "pass rate falls to 0": Policy(passing=0.0),
    "completions 2.5 times as long": Policy(length=2.5),
    "60 % more are cut": Policy(truncated=0.6),
    "entropy collapses": Policy(entropy=0.01),
    "KL times 10": Policy(kl=10.0),
    "members of a group alike": Policy(alike=True),
    "no completion ends": Policy(never_ends=True),
    "rate of 0": Policy(rate=0.0),
}


class Run:
    """A simulated run: the metrics of its steps."""

    def __init__(self, shape: str, size: int, seed: int) -> None:
        self.draw = np.random.default_rng([seed, size, sorted(SHAPES).index(shape)])
        self.shape, self.size = shape, size
        # Runs differ in what is usual.
        self.cut = float(self.draw.uniform(0.0, 0.2))
        self.entropy, self.norm = (float(self.draw.uniform(0.1, 1.0)) for _ in range(2))

    def step(self, step: int, policy: Policy) -> dict[str, float | None]:
        """Return the metrics of a step."""
        draw, size = self.draw, self.size
        rates = SHAPES[self.shape](draw, size)
        # The profile has eight samples of each problem, and a prior that is nearly flat.
        seen = draw.binomial(8, rates * (1 - self.cut))
        a, b = seen + 0.3, 8 - seen + 0.7
        expected, future = _teaching(a, b), rates * policy.passing
        right = draw.binomial(1, np.repeat(future[:, None], GROUP, axis=1))
        cuts = draw.beta(self.cut / 0.4 + 1e-3, (1 - self.cut) / 0.4, size)
        cuts = np.ones(size) if policy.never_ends else np.minimum(cuts + policy.truncated, 1.0)
        cut = draw.binomial(1, np.repeat(cuts[:, None], GROUP, axis=1))
        if policy.alike:
            right, cut = (np.repeat(each[:, :1], GROUP, axis=1) for each in (right, cut))
        right *= 1 - cut
        lengths = policy.length * 200 * np.exp(draw.normal(0, 0.4, (size, 1)) + draw.normal(0, 0.4, (size, GROUP)))
        repeated = np.minimum(draw.gamma(0.05, 0.2, (size, GROUP)), 1.0)
        groups = right.mean(1)
        mixed = (groups > 0) & (groups < 1)
        # A right completion of a group of few weighs more.
        trained = float((mixed[:, None] & (cut == 0)).sum())
        noise = 1.0 / np.sqrt(size)
        metrics: dict[str, float | None] = {
            "pass_rate": float(right.mean()),
            "profile_pass_rate": float((a / (a + b)).mean()),
            "judged": float(size * GROUP),
            "groups": float(size),
            "reward": float(right.mean()),
            "reward_spread": float(right.max() - right.min()),
            "reward_gap": 1.0 if 0 < right.sum() < right.size else None,
            "unjudged": 0.0,
            "groups_teaching": float(mixed.mean()),
            "feed_expected_teaching": float(expected.mean()),
            "trained_completions": trained,
            "truncated": float(cut.mean()),
            "length_mean": float(lengths.mean()),
            "repetition": float(repeated.mean()),
            "foreign_script": 0.0,
            "positive_token_mass": 0.5 if trained else 0.0,
            **{
                f"{name}_between": float(values.mean(1).std(ddof=1))
                for name, values in (("pass_rate", right), ("truncated", cut), ("repetition", repeated))
            },
        }
        if trained:
            metrics |= {
                "entropy": policy.entropy * self.entropy * float(np.exp(draw.normal(0, 0.05 + 0.8 * noise))),
                "kl": policy.kl * 0.3 * float(np.exp(draw.normal(0, 0.05 + noise))),
                "grad_norm": self.norm * float(np.exp(draw.normal(0, 0.3) + draw.standard_t(4) * noise)),
                "loss": float(draw.normal(0, 0.1 * noise)),
                "clip_share": 0.003 * float(np.exp(draw.normal(0, 1.0))),
                "mismatch_abs": 0.01 * float(np.exp(draw.normal(0, 0.1 + noise))),
                "push_gap": 2.0 + float(draw.normal(0, noise)),
                "lr": policy.rate * 1e-6,
                "weights_moved": float(policy.rate > 0),
            }
        return metrics


def _teaching(a: Floats, b: Floats) -> Floats:
    """Return the probability that a group has right and wrong completions, by posteriors of pass rates."""
    from scipy.special import betaln

    alike = np.exp(betaln(a + GROUP, b) - betaln(a, b)) + np.exp(betaln(a, b + GROUP) - betaln(a, b))
    return np.asarray(1.0 - alike, dtype=float)


def healthy_run(cell: tuple[str, int, int, int]) -> tuple[list[str], list[str]]:
    """Return the guards that acted on a healthy run, and those that warned."""
    shape, size, seed, steps = cell
    run, watch, healthy = Run(shape, size, seed), GuardWatch(), Policy()
    acted, warned = [], []
    for step in range(steps):
        for alarm in watch.observe(step, run.step(step, healthy)):
            (warned if alarm.action == "warn" else acted).append(alarm.guard)
    return acted, warned


def fault_run(cell: tuple[str, str, int, int]) -> tuple[int, str] | None:
    """Return how many steps after a fault the first guard fires, and which; None where none does in `PATIENCE`."""
    fault, shape, size, seed = cell
    run, watch = Run(shape, size, 10_000 + seed), GuardWatch()
    for step in range(START + PATIENCE):
        alarms = watch.observe(step, run.step(step, FAULTS[fault] if step >= START else Policy()))
        if alarms and step >= START:
            return step - START + 1, alarms[0].guard
    return None


def healthy(out: Path, sizes: list[int], runs: int, steps: int) -> None:
    """Write a file a cell: how many healthy runs were acted on, and warned of."""
    with get_context("fork").Pool(2) as pool:
        for size in sizes:
            for shape in SHAPES:
                outcomes = pool.map(healthy_run, [(shape, size, seed, steps) for seed in range(runs)], 4)
                record = {
                    "shape": shape,
                    "size": size,
                    "runs": runs,
                    "acted": sum(bool(acted) for acted, _ in outcomes),
                    "warned": sum(bool(warned) for _, warned in outcomes),
                    "by": Counter(name for acted, _ in outcomes for name in set(acted)).most_common(),
                    "warned_by": Counter(name for _, warned in outcomes for name in set(warned)).most_common(),
                }
                print(json.dumps(record), flush=True)
                (out / f"healthy-{size}-{shape.replace(' ', '-')}.json").write_text(json.dumps(record))


def faults(out: Path, sizes: list[int], runs: int) -> None:
    """Write a file a fault and size: after how many steps it was noticed."""
    with get_context("fork").Pool(2) as pool:
        for fault in FAULTS:
            for size in sizes:
                for shape in ("Beta", "U-shaped"):
                    outcomes = pool.map(fault_run, [(fault, shape, size, seed) for seed in range(runs)], 4)
                    delays = [outcome[0] for outcome in outcomes if outcome is not None]
                    record = {
                        "fault": fault,
                        "shape": shape,
                        "size": size,
                        "runs": runs,
                        "noticed": len(delays),
                        "median": median([*delays, *[PATIENCE + 1] * (runs - len(delays))]),
                        "by": Counter(outcome[1] for outcome in outcomes if outcome is not None).most_common(2),
                    }
                    print(json.dumps(record), flush=True)
                    name = f"fault-{fault}-{size}-{shape}".replace(" ", "-").replace("%", "percent")
                    (out / f"{name}.json").write_text(json.dumps(record))


def table(out: Path) -> str:
    """Return the tables of all cells as Markdown."""
    records = [json.loads(path.read_text()) for path in sorted(out.glob("*.json"))]
    by_cell = {(each["shape"], each["size"]): each for each in records if "acted" in each}
    sizes = sorted({size for _, size in by_cell})
    lines = [
        f"| healthy, acted on (upper 95 % limit) | {' | '.join(map(str, sizes))} |",
        "|---" * (len(sizes) + 1) + "|",
    ]
    for shape in SHAPES:
        cells = [_share(by_cell[shape, size]) for size in sizes if (shape, size) in by_cell]
        lines.append(f"| {shape} | {' | '.join(cells)} |")
    delays = {(each["fault"], each["size"], each["shape"]): each for each in records if "fault" in each}
    columns = sorted({(size, shape) for _, size, shape in delays})
    heads = [f"{size}, {shape}" for size, shape in columns]
    lines += ["", f"| median steps to notice | {' | '.join(heads)} |", "|---" * (len(columns) + 1) + "|"]
    for fault in FAULTS:
        cells = [_delay(delays[fault, size, shape]) for size, shape in columns if (fault, size, shape) in delays]
        lines.append(f"| {fault} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _share(record: Mapping[str, float]) -> str:
    _, high = wilson_interval(int(record["acted"]), int(record["runs"]))
    return f"{record['acted'] / record['runs']:.1%} ({high:.1%})"


def _delay(record: Mapping[str, float]) -> str:
    shown = "never" if record["median"] > PATIENCE else f"{record['median']:g}"
    return shown if record["noticed"] == record["runs"] else f"{shown} ({record['noticed'] / record['runs']:.0%})"


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["healthy", "faults", "table"])
    parser.add_argument("out", type=Path)
    parser.add_argument("--sizes", nargs="*", type=int, default=None)
    parser.add_argument("--runs", type=int, default=None)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--write", type=Path)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.what == "healthy":
        healthy(arguments.out, arguments.sizes or [*SIZES], arguments.runs or 1000, arguments.steps)
    elif arguments.what == "faults":
        faults(arguments.out, arguments.sizes or [4, 16, 64], arguments.runs or 100)
    else:
        publish(None, table(arguments.out), None, arguments.write, "Guards")


if __name__ == "__main__":
    main()
