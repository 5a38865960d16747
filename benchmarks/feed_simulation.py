"""Compares trainings with and without a profile on simulated policies, by teaching groups per number of samples.

    python benchmarks/feed_simulation.py [--rows 4000] [--steps 800] [--only A C] [--json FILE] [--write PAGE.md]

The policy's pass rates come from the populations of `profile_simulation`. Every teaching group, with right and wrong
samples, raises the log-odds of all problems by the same small amount, and each problem also drifts randomly. Problems
with pass rate 0 or 1 do not change. A step has 64 groups of 8 samples, drawn by the feed of truegold's training:

    uniform            all rows in turn, without a profile
    signal             rows that are likely to teach, by earlier groups; nothing is known at first
    profile, uniform   a profile first; then the half of the rows that it selects, in turn
    profile, signal    the same half, with rows that are likely to teach, by the profile and earlier groups

Compared is the number of teaching groups after the same number of samples, those of the profile included.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from profile_simulation import GROUP_SIZE, POPULATIONS, Floats, Known, Population, draw_problems, truegold
from publishing import publish, say

from truegold.pipeline.tables.rows import Row
from truegold.train.config.grpo import FeedConfig
from truegold.train.grpo.feed import Feed, GroupScore

GROUPS = 64
GAIN = 1e-4
"""The log-odds that a group which teaches adds to all problems."""
WANDER = 0.02
"""The standard deviation of each problem's own way in a step."""
SELECTED = 0.5
ARMS = {
    "uniform": (False, "uniform"),
    "signal": (False, "signal"),
    "profile, uniform": (True, "uniform"),
    "profile, signal": (True, "signal"),
}
SHOWN = (25, 50, 100, 200, 400, 800)
"""The steps after which arms are compared."""


def simulate(population: Population, rows: int, steps: int, seed: int) -> dict[str, list[tuple[int, int]]]:
    """Return for each arm how many samples were drawn and how many groups have taught, at first and after each step."""
    problems = draw_problems(population, rows, seed)
    known = Known(problems, truegold(SELECTED)(problems))
    scores = known.foretold[known.cell_of.ravel()]
    best = np.argsort(-scores, kind="stable")[: round(SELECTED * rows)]
    profiled = int(known.lengths.sum())
    courses = {}
    for arm, (has_profile, order) in ARMS.items():
        chosen = best if has_profile else np.arange(rows)
        posteriors = (
            [known.known[known.cell_of.ravel()[index]].components() for index in chosen] if has_profile else None
        )
        feed_rows = [
            {"id": str(index), **({"posterior": posteriors[position]} if posteriors else {})}
            for position, index in enumerate(chosen)
        ]
        config = FeedConfig.model_validate({"order": order})
        feed = Feed(cast("Sequence[Row]", feed_rows), [], config, group_size=GROUP_SIZE, steps=steps, seed=seed)
        courses[arm] = _train(feed, problems.rates[chosen], steps, seed, profiled if has_profile else 0)
    return courses


def _train(feed: Feed, rates: Floats, steps: int, seed: int, samples: int) -> list[tuple[int, int]]:
    generator = np.random.default_rng(seed)
    with np.errstate(divide="ignore"):
        log_odds = np.log(rates) - np.log1p(-rates)
    taught, course = 0, [(samples, 0)]
    position = {row["id"]: index for index, row in enumerate(feed.all_rows())}
    for _ in range(steps):
        drawn = np.array([position[row["id"]] for row in feed.take(GROUPS)])
        right = generator.binomial(GROUP_SIZE, 1 / (1 + np.exp(-log_odds[drawn])))
        groups = {
            group: GroupScore(int(count), GROUP_SIZE, teaches=0 < count < GROUP_SIZE)
            for group, count in enumerate(right)
        }
        feed.finish_step(groups)
        teaching = int(sum(score.teaches for score in groups.values()))
        taught += teaching
        samples += GROUPS * GROUP_SIZE
        # Infinite log-odds stay where they are.
        log_odds = log_odds + GAIN * teaching + generator.normal(0, WANDER, len(log_odds))
        course.append((samples, taught))
    return course


def break_even(with_profile: Sequence[tuple[int, int]], without: Sequence[tuple[int, int]]) -> int | None:
    """Return the samples from which on the training with a profile has taught more groups, None where it never has."""
    samples, taught = (np.array(values, dtype=float) for values in zip(*without, strict=True))
    ahead: int | None = None
    for count, groups in with_profile:
        if count > samples[-1]:
            break
        if groups <= np.interp(count, samples, taught):
            ahead = None
        elif ahead is None:
            ahead = count
    return ahead


def _taught_at(course: Sequence[tuple[int, int]], samples: float) -> float:
    counts, taught = (np.array(values, dtype=float) for values in zip(*course, strict=True))
    return float(np.interp(samples, counts, taught))


def _steps_until_ahead(draws: Sequence[Mapping[str, list[tuple[int, int]]]], arm: str, without: str) -> str:
    if arm == without:
        return "—"
    evens = [break_even(draw[arm], draw[without]) for draw in draws]
    known = [even / GROUPS / GROUP_SIZE for even in evens if even is not None]
    return f"{np.median(known):.0f}" if len(known) == len(evens) else "never"


def report(figures: Mapping[str, list[dict[str, list[tuple[int, int]]]]], rows: int, steps: int) -> str:
    """Return the tables."""
    shown = [step for step in SHOWN if step <= steps]
    lines = [
        "| population | arm | " + " | ".join(f"{step} steps" for step in shown) + " | ahead of uniform, of signal |",
        "|---" * (3 + len(shown)) + "|",
    ]
    for key, draws in figures.items():
        for arm in ARMS:
            means = [
                np.mean([_taught_at(draw[arm], step * GROUPS * GROUP_SIZE) for draw in draws]) / (step * GROUPS)
                for step in shown
            ]
            evens = [_steps_until_ahead(draws, arm, without) for without in ("uniform", "signal")]
            lines.append(
                f"| {key} | {arm} | " + " | ".join([*(f"{mean:.3f}" for mean in means), ", ".join(evens)]) + " |"
            )
    titles = "\n".join(f"- {key}: {POPULATIONS[key].title}" for key in figures)
    draws = len(next(iter(figures.values())))
    return f"""{rows:,} problems, {draws} draws of each population; 64 groups of 8 a step. Groups that have taught, as a
share of those that the samples so far would make: a profile's samples count. It selects {SELECTED:.0%} of the rows. The
last column has the step from which on a training stays ahead of the one by uniform, and by signal, without a profile.

{titles}

```
python benchmarks/feed_simulation.py --write benchmarks/results/feed_simulation.md
```

{chr(10).join(lines)}
"""


def main() -> None:
    """Simulate all populations, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=tuple(POPULATIONS), default=["A", "C", "D", "F", "G", "H", "I"])
    parser.add_argument("--json", type=Path, help="write the courses into this file")
    parser.add_argument("--write", type=Path, help="write the table into this Markdown file")
    arguments = parser.parse_args()
    figures: dict[str, Any] = {}
    for key in arguments.only:
        figures[key] = [
            simulate(POPULATIONS[key], arguments.rows, arguments.steps, seed) for seed in range(arguments.draws)
        ]
        say(f"{key}: done")
        if arguments.json:
            arguments.json.write_text(json.dumps(figures))
    text = report(figures, arguments.rows, arguments.steps)
    publish(figures, text, None, arguments.write, "Trainings with a profile and without one, simulated")


if __name__ == "__main__":
    main()
