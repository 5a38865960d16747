"""Compares rules of how often to sample a problem, and checks what posteriors promise, on simulated problems.

    python benchmarks/profile_simulation.py DATA_DIR [--rows 100000] [--write PAGE.md]

DATA_DIR holds gsm8k_platinum.jsonl, whose problems have the answers of up to 60 systems: the share of the systems that
are right is the pass rate of a problem, drawn with replacement. Other problems have pass rates of Beta distributions,
also with a share that never passes, as where labels are wrong.
Each has 16 samples, and every rule sees as many of them as it asks for, in their order:

    fixed           the first 4, 8 or 12
    Reinforce-Ada   rounds of 4 until one sample is right, or until one is right and one is wrong (arXiv 2510.04996, its
                    rules "positive" and "balanced")
    SPRT            one by one until every boundary of the decisions is settled by Wald's test ("Sequential Tests of
                    Statistical Hypotheses", 1945), error rates 5 %; the hypotheses are a third of the odds and three
                    times them
    truegold        the profile's own schedule: 4, then further ones where they could change the decision

A decision counts where all 16 samples give it a probability of .8 or more. Every rule's decisions are the most probable
ones under its own counts, with the prior fitted to these.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from publishing import publish, say

from truegold.pipeline.profile.schedule import PILOT_ROWS, SampledRow, Schedule
from truegold.pipeline.profile.stopping_rule import BOUNDS, PassRateBand, decide
from truegold.pipeline.rates.posterior import Prior, expected_shares, fit_prior
from truegold.verifiers import equivalent

SAMPLES = 16
FIRST = 4
ROUND = 4
DECISIVE = 0.8
GROUP_SIZE = 8
SPRT_ERROR = 0.05
SPRT_ODDS = 3.0
LEVEL = 0.9
FEWEST = 40
"""A decision that fewer rows come to has no figure of its own."""

Outcomes = np.ndarray[Any, np.dtype[np.bool_]]
"""Which samples pass. Shape [rows, SAMPLES]."""
Lengths = np.ndarray[Any, np.dtype[np.int64]]
"""How many samples of each row a rule asks for. Shape [rows]."""


def platinum_rates(path: Path) -> list[float]:
    """Return the share of the systems that solve each problem, by its reviewed gold where there is one."""
    rates = []
    for row in map(json.loads, path.read_text().splitlines()):
        gold = row["gold_platinum"] or row["gold_original"]
        answers = [answer for answer in row["preds"].values() if answer is not None]
        verdicts = {answer: equivalent(str(answer), gold=str(gold)).score == 1.0 for answer in set(answers)}
        rates.append(sum(verdicts[answer] for answer in answers) / len(answers))
    return rates


def fixed(samples: int) -> Callable[[Outcomes], Lengths]:
    """Return the rule that asks for as many samples of every row."""
    return lambda outcomes: np.full(len(outcomes), samples)


def reinforce_ada(*, balanced: bool) -> Callable[[Outcomes], Lengths]:
    """Return the rule that goes on in rounds until a sample is right; balanced: until one is wrong, too."""

    def rule(outcomes: Outcomes) -> Lengths:
        lengths = np.full(len(outcomes), SAMPLES)
        for drawn in range(SAMPLES - ROUND, 0, -ROUND):
            passes = outcomes[:, :drawn].sum(axis=1)
            lengths[(passes > 0) & (~np.bool_(balanced) | (passes < drawn))] = drawn
        return lengths

    return rule


def sprt(outcomes: Outcomes) -> Lengths:
    """Return the samples that Wald's test of every boundary needs, SAMPLES at most."""
    limit = math.log((1 - SPRT_ERROR) / SPRT_ERROR)
    settled = np.ones((len(outcomes), SAMPLES), dtype=bool)
    for bound in BOUNDS:
        odds = bound / (1 - bound)
        low, high = (odds * factor / (1 + odds * factor) for factor in (1 / SPRT_ODDS, SPRT_ODDS))
        steps = np.where(outcomes, math.log(high / low), math.log((1 - high) / (1 - low)))
        settled &= np.logical_or.accumulate(np.abs(steps.cumsum(axis=1)) >= limit, axis=1)
    settled[:, -1] = True
    lengths: Lengths = settled.argmax(axis=1) + 1
    return lengths


def truegold(outcomes: Outcomes) -> Lengths:
    """Return the samples that the profile draws."""
    pilot = random.Random(0).sample(range(len(outcomes)), min(PILOT_ROWS, len(outcomes)))
    chosen = set(pilot)
    others = (_sampled_row(index) for index in range(len(outcomes)) if index not in chosen)
    schedule = Schedule([_sampled_row(index) for index in sorted(pilot)], others, FIRST, SAMPLES, 1.0, len(outcomes))
    lengths = np.zeros(len(outcomes), dtype=np.int64)
    while not schedule.finished:
        for sampled, sample in schedule.draws(1024):
            lengths[sampled.index] += 1
            schedule.record(sampled, float(outcomes[sampled.index, sample]), None)
    return lengths


def _sampled_row(index: int) -> SampledRow:
    row: Any = {"split": "train"}
    return SampledRow(row, index, (), "")


RULES: dict[str, Callable[[Outcomes], Lengths]] = {
    "fixed, 4": fixed(4),
    "fixed, 8": fixed(8),
    "fixed, 12": fixed(12),
    "Reinforce-Ada, positive": reinforce_ada(balanced=False),
    "Reinforce-Ada, balanced": reinforce_ada(balanced=True),
    "SPRT": sprt,
    "truegold": truegold,
}


class Known:
    """What a rule's samples say of every row."""

    def __init__(self, outcomes: Outcomes, lengths: Lengths) -> None:
        drawn = np.arange(outcomes.shape[1]) < lengths[:, None]
        self.passes = (outcomes & drawn).sum(axis=1)
        self.lengths = lengths
        self.counts = Counter(zip(lengths.tolist(), self.passes.tolist(), strict=True))
        prior = fit_prior(self.counts)
        assert prior is not None
        self.prior: Prior = prior
        posteriors = {key: prior.after(*key) for key in self.counts}
        self._decisions = {key: decide(known) for key, known in posteriors.items()}
        self._intervals = {key: known.interval(LEVEL) for key, known in posteriors.items()}

    def keys(self) -> Iterable[tuple[int, int]]:
        """Yield judged samples and passes of each row."""
        return zip(self.lengths.tolist(), self.passes.tolist(), strict=True)

    def decisions(self) -> list[tuple[PassRateBand, float]]:
        """Return the decision on each row, and its probability."""
        return [self._decisions[key] for key in self.keys()]

    def covers(self, rates: Any) -> float:
        """Return the share of the rows whose pass rate lies in the posterior's interval."""
        ends = np.array([self._intervals[key] for key in self.keys()])
        return float(((ends[:, 0] <= rates) & (rates <= ends[:, 1])).mean())


def compare(rates: Any, seed: int) -> list[dict[str, Any]]:
    """Return what every rule spends, decides and promises on rows of these pass rates."""
    outcomes = np.random.default_rng(seed).random((len(rates), SAMPLES)) < rates[:, None]
    teaching = float((1 - rates**GROUP_SIZE - (1 - rates) ** GROUP_SIZE).mean())
    full = Known(outcomes, np.full(len(rates), SAMPLES)).decisions()
    figures = []
    for name, rule in RULES.items():
        known = Known(outcomes, rule(outcomes))
        agreed: Counter[str] = Counter()
        decisive: Counter[str] = Counter()
        for (decision, probability), (early, _) in zip(full, known.decisions(), strict=True):
            if probability >= DECISIVE:
                decisive[decision] += 1
                agreed[decision] += early == decision
        _, dead, saturated = expected_shares(known.counts, known.prior, GROUP_SIZE)
        figures.append(
            {
                "rule": name,
                "tokens": float(known.lengths.mean() / SAMPLES),
                "alike": agreed.total() / decisive.total(),
                "by_decision": {str(kind): [agreed[kind], decisive[kind]] for kind in PassRateBand if decisive[kind]},
                "covers": known.covers(rates),
                "teaching": [1 - dead - saturated, teaching],
            }
        )
    return figures


def _table(name: str, figures: list[dict[str, Any]]) -> str:
    shown = [kind for kind in PassRateBand if figures[0]["by_decision"].get(kind, [0, 0])[1] >= FEWEST]
    lines = [
        f"## {name}\n",
        f"| rule | tokens | decided alike | {' | '.join(shown)} | 90 % intervals cover | teach, foretold (true) |",
        "|---" * (5 + len(shown)) + "|",
    ]
    for figure in figures:
        cells = [
            f"{agreed / total:.3f} of {total:,}" for agreed, total in (figure["by_decision"][kind] for kind in shown)
        ]
        foretold, true = figure["teaching"]
        row = [figure["rule"], f"{figure['tokens']:.3f}", f"{figure['alike']:.3f}", *cells]
        lines.append("| " + " | ".join([*row, f"{figure['covers']:.3f}", f"{foretold:.3f} ({true:.3f})"]) + " |")
    return "\n".join(lines)


def main() -> None:
    """Simulate all populations, and print or write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="DATA_DIR")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", type=Path, help="write the tables into this Markdown file")
    arguments = parser.parse_args()
    generator = np.random.default_rng(arguments.seed)
    path = arguments.data / "gsm8k_platinum.jsonl"
    populations: dict[str, Any] = {}
    if path.exists():
        populations["Reviewed GSM8K, the share of 60 systems"] = generator.choice(platinum_rates(path), arguments.rows)
    else:
        say(f"{path} is absent: only Beta distributions are simulated")
    for a, b in ((1, 1), (0.3, 1.5), (0.4, 0.4), (4, 4)):
        populations[f"Beta({a}, {b})"] = generator.beta(a, b, arguments.rows)
    for share, a, b in ((0.1, 5, 1.5), (0.4, 1.5, 2.5)):
        never = generator.random(arguments.rows) < share
        rates = np.where(never, 0.0, generator.beta(a, b, arguments.rows))
        populations[f"{share:.0%} that never pass, the others Beta({a}, {b})"] = rates
    figures = {}
    for name, rates in populations.items():
        figures[name] = compare(rates, arguments.seed)
        say(f"{name}: done")
    tables = "\n\n".join(_table(name, lines) for name, lines in figures.items())
    command = (
        "```\npython benchmarks/profile_simulation.py DATA_DIR --write benchmarks/results/profile_simulation.md\n```"
    )
    text = f"{arguments.rows:,} problems each; `tokens` are samples as a share of 16 for all.\n\n{command}\n\n{tables}"
    publish(figures, text, None, arguments.write, "Rules of how often to sample a problem, simulated")


if __name__ == "__main__":
    main()
