"""The curves of `proof.py`: accuracy on held-out problems over the tokens that were sampled, the profile's included.

    python benchmarks/proof_plot.py proof.json docs/pictures/proof.svg [--share 0.2]

Thick lines are means over the seeds of an arm, thin ones its seeds.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from math import ceil
from pathlib import Path
from statistics import fmean
from typing import Any

import matplotlib
from matplotlib import pyplot as plt
from proof import ARMS, accuracy_at

POINTS = 60
"""A mean is drawn through so many budgets."""
COLUMNS = 3


def draw(measured: Mapping[str, Mapping[str, Any]], share: str, path: Path) -> None:
    """Draw the arms that were measured at one share of damaged rows, each beside the raw one."""
    runs = {
        arm.name: [result for key, result in measured.items() if key.startswith(f"{share}|{arm.name}|")] for arm in ARMS
    }
    runs = {arm: trainings for arm, trainings in runs.items() if trainings}
    budget = min(result["points"][-1][1] for result in runs["raw"])
    others = [arm for arm in runs if arm != "raw"]
    # The same drawing has the same bytes.
    matplotlib.rcParams |= {"svg.hashsalt": "proof", "font.size": 8}
    rows = ceil(len(others) / COLUMNS)
    figure, axes = plt.subplots(rows, COLUMNS, figsize=(2.6 * COLUMNS, 2.3 * rows), sharey=True, squeeze=False)
    for axis, arm in zip_longest(axes.flat, others):
        if arm is None:
            axis.remove()
            continue
        for name, colour in (("raw", "tab:gray"), (arm, "tab:blue")):
            lines = [
                [(result["spent"] + tokens, rate) for _, tokens, rate in result["points"]] for result in runs[name]
            ]
            for line in lines:
                axis.plot(*zip(*line, strict=True), color=colour, alpha=0.3, linewidth=0.7)
            axis.plot(*zip(*_mean(lines, budget), strict=True), color=colour, linewidth=2, label=name)
        axis.set(xlim=(0, budget), ylim=(0, 1), xlabel="tokens")
        axis.xaxis.set_major_formatter(lambda tokens, _: f"{tokens / 1000:.0f}k")
        axis.legend(loc="lower right", frameon=False)
        axis.grid(alpha=0.2)
    for axis in axes[:, 0]:
        axis.set_ylabel("held-out accuracy")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def _mean(lines: Sequence[Sequence[tuple[int, float]]], budget: int) -> list[tuple[int, float]]:
    """Return the mean of several curves where all of them have values."""
    points = []
    for tokens in (round(budget * index / POINTS) for index in range(POINTS + 1)):
        rates = [accuracy_at([(0, spent, rate) for spent, rate in line], tokens) for line in lines]
        present = [rate for rate in rates if rate is not None]
        if len(present) == len(lines):
            points.append((tokens, fmean(present)))
    return points


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figures", type=Path, help="what proof.py has kept")
    parser.add_argument("picture", type=Path)
    parser.add_argument("--share", default="0.2", help="of the rows that are damaged")
    arguments = parser.parse_args()
    draw(json.loads(arguments.figures.read_text()), arguments.share, arguments.picture)


if __name__ == "__main__":
    _main()
