"""Compares rules for the number of samples per problem by the problems that they select, on simulated pass rates.

    python benchmarks/profile_simulation.py [--rows 5000] [--draws 8] [--only A B] [--json FILE] [--write PAGE.md]

Each problem has 16 samples. A rule sees them one after another, until it stops:

    fixed           the first n
    Reinforce-Ada   rounds of 4 until one sample is right, or until one is right and one is wrong (arXiv 2510.04996, its
                    rules "positive" and "balanced")
    truegold        the profile's schedule, for a selection of a half or a quarter of the rows, or of unknown size

Then priors are fitted to the rule's counts, and the problems whose groups are most likely to teach are selected. The
true share of teaching groups follows from their pass rates. A rule is compared with a fixed number of samples of the
same total (interpolated between two numbers), and with 16 samples of every problem. Each population is drawn several
times; errors are standard errors of the mean.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from publishing import publish, say

from truegold.pipeline.config.stages import ProfileConfig, SelectConfig
from truegold.pipeline.profile.schedule import PILOT_ROWS, SampledRow, Schedule, Selection
from truegold.pipeline.rates import Mixture, Priors, fit_priors

SAMPLES = 16
FIRST = 4
ROUND = 4
GROUP_SIZE = 8
SUSPECT_AGREEMENT: float = ProfileConfig.model_fields["suspect_agreement"].default
CUTS = (0.5, 0.25)
ZERO_SHARE: float = SelectConfig.model_fields["zero_share"].default
LEVEL = 0.9
LEAST_CELL = 0.01
"""A cell of problems with the same source and counts has a figure of its own from this share of the rows on."""

Floats = np.ndarray[Any, np.dtype[np.float64]]
Outcomes = np.ndarray[Any, np.dtype[np.bool_]]
"""Which samples pass. Shape [rows, SAMPLES]."""
Lengths = np.ndarray[Any, np.dtype[np.int64]]
"""How many samples of each row a rule asks for. Shape [rows]."""
Draw = Callable[[np.random.Generator, int], Floats]


def beta(a: float, b: float) -> Draw:
    """Return what draws pass rates of a Beta distribution."""
    return lambda generator, rows: generator.beta(a, b, rows)


def mixed(*parts: tuple[float, float | Draw]) -> Draw:
    """Return what draws pass rates of several kinds, each with its share: one rate, or what draws some."""

    def draw(generator: np.random.Generator, rows: int) -> Floats:
        kinds = generator.choice(len(parts), rows, p=[share for share, _ in parts])
        rates = np.zeros(rows)
        for kind, (_, rate) in enumerate(parts):
            chosen = kinds == kind
            rates[chosen] = rate(generator, int(chosen.sum())) if callable(rate) else rate
        return rates

    return draw


def logit_normal(mean: float, deviation: float) -> Draw:
    """Return what draws pass rates whose log-odds are normal."""
    return lambda generator, rows: 1 / (1 + np.exp(-generator.normal(mean, deviation, rows)))


def uniform(low: float, high: float) -> Draw:
    """Return what draws pass rates between two ends."""
    return lambda generator, rows: generator.uniform(low, high, rows)


@dataclass(frozen=True)
class Population:
    """Problems of one or several sources."""

    title: str
    sources: Sequence[tuple[float, Draw]]
    """The share and the pass rates of each."""


def of_one_source(title: str, *parts: tuple[float, float | Draw]) -> Population:
    """Return a population of one source."""
    return Population(title, [(1.0, mixed(*parts))])


POPULATIONS = {
    "A": of_one_source("15 % at 0, 25 % at 1, others Beta(2, 2)", (0.15, 0.0), (0.25, 1.0), (0.6, beta(2, 2))),
    "B": of_one_source("35 % at .05, 30 % at .5, 35 % at .95", (0.35, 0.05), (0.3, 0.5), (0.35, 0.95)),
    "C": of_one_source("40 % at 0, others uniform to .2", (0.4, 0.0), (0.6, uniform(0, 0.2))),
    "D": of_one_source("60 % at 1, 10 % at 0, others Beta(8, 2)", (0.6, 1.0), (0.1, 0.0), (0.3, beta(8, 2))),
    "E": of_one_source("70 % at .02, 30 % at 1", (0.7, 0.02), (0.3, 1.0)),
    "F": Population("10 % Beta(8, 2), another source Beta(.3, 3)", [(0.1, beta(8, 2)), (0.9, beta(0.3, 3))]),
    "G": of_one_source("98 % at 0, others Beta(4, 4)", (0.98, 0.0), (0.02, beta(4, 4))),
    "H": Population(
        "three sources: 50 % Beta(1, 4), 30 % Beta(5, 2), 20 % Beta(.5, .5)",
        [(0.5, beta(1, 4)), (0.3, beta(5, 2)), (0.2, beta(0.5, 0.5))],
    ),
    "I": of_one_source("20 % at 1, log-odds of others normal (-.5, 1.5)", (0.2, 1.0), (0.8, logit_normal(-0.5, 1.5))),
}
UNTUNED = ("H", "I")
"""The populations on which no constant of the product was chosen."""


@dataclass(frozen=True)
class Problems:
    """A draw of a population."""

    rates: Floats
    sources: Lengths
    """The number of each row's source."""
    outcomes: Outcomes

    @property
    def teaching(self) -> Floats:
        """The share of each row's groups that teach."""
        return teaching_share(self.rates)

    def answer(self, row: int, sample: int) -> str | None:
        """Return the wrong answer of a sample. Simulated ones give none."""
        return None

    def passes(self, lengths: Lengths) -> Lengths:
        """Return the passes of so many samples of each row."""
        before = np.concatenate([np.zeros((len(self.rates), 1), dtype=np.int64), self.outcomes.cumsum(axis=1)], axis=1)
        passes: Lengths = before[np.arange(len(self.rates)), lengths]
        return passes


def teaching_share(rates: Floats) -> Floats:
    """Return the shares of the groups that are neither all right nor all wrong."""
    shares: Floats = 1 - rates**GROUP_SIZE - (1 - rates) ** GROUP_SIZE
    return shares


def draw_problems(population: Population, rows: int, seed: int) -> Problems:
    """Draw rows with their pass rates and samples."""
    generator = np.random.default_rng(seed)
    shares = [share for share, _ in population.sources]
    sizes = np.diff(np.round(np.cumsum([0.0, *shares]) * rows).astype(int))
    rates = np.concatenate([draw(generator, size) for (_, draw), size in zip(population.sources, sizes, strict=True)])
    order = generator.permutation(rows)
    sources = np.repeat(np.arange(len(sizes)), sizes)[order]
    return Problems(rates[order], sources, generator.random((rows, SAMPLES)) < rates[order, None])


def fixed(samples: int) -> Callable[[Problems], Lengths]:
    """Return the rule with the same number of samples for every row."""
    return lambda problems: np.full(len(problems.rates), samples)


def reinforce_ada(*, balanced: bool) -> Callable[[Problems], Lengths]:
    """Return the rule that goes on in rounds until a sample is right; balanced: until one is wrong, too."""

    def rule(problems: Problems) -> Lengths:
        lengths = np.full(len(problems.rates), SAMPLES)
        for drawn in range(SAMPLES - ROUND, 0, -ROUND):
            passes = problems.outcomes[:, :drawn].sum(axis=1)
            lengths[(passes > 0) & (~np.bool_(balanced) | (passes < drawn))] = drawn
        return lengths

    return rule


def truegold(
    selected: float | None, quotas: dict[str, float] | None = None, zero_share: float = 1.0
) -> Callable[[Problems], Lengths]:
    """Return the rule of the profile, told which share of the rows will be selected."""

    def rule(problems: Problems) -> Lengths:
        rows = len(problems.rates)
        pilot = set(random.Random(0).sample(range(rows), min(PILOT_ROWS, rows)))
        others = (_sampled_row(problems, index) for index in range(rows) if index not in pilot)
        selection = Selection(
            GROUP_SIZE, None if selected is None else round(selected * rows), quotas or {}, zero_share
        )
        pilot_rows = [_sampled_row(problems, index) for index in sorted(pilot)]
        schedule = Schedule(pilot_rows, others, FIRST, SAMPLES, SUSPECT_AGREEMENT, rows, selection)
        lengths = np.zeros(rows, dtype=np.int64)
        while not schedule.finished:
            for sampled, sample in schedule.draws(1024):
                lengths[sampled.index] += 1
                answer = problems.answer(sampled.index, sample)
                schedule.record(sampled, float(problems.outcomes[sampled.index, sample]), answer)
        return lengths

    return rule


def _sampled_row(problems: Problems, index: int) -> SampledRow:
    source = str(problems.sources[index])
    row: Any = {"split": "train", "id": str(index), "source": source, "source_row": index, "domain": "math"}
    return SampledRow(row, index, (), "")


class Known:
    """The posteriors of all rows from the samples of a rule."""

    def __init__(self, problems: Problems, lengths: Lengths) -> None:
        self.problems, self.lengths, self.passes = problems, lengths, problems.passes(lengths)
        columns = (problems.sources, lengths, self.passes)
        self.cells, self.cell_of, self.sizes = np.unique(
            np.stack(columns, axis=1), axis=0, return_inverse=True, return_counts=True
        )
        counts: dict[tuple[str, str], Counter[tuple[int, int]]] = {}
        for (source, judged, passes), rows in zip(self.cells.tolist(), self.sizes.tolist(), strict=True):
            counts.setdefault((str(source), "math"), Counter())[judged, passes] += rows
        priors = fit_priors(counts)
        assert priors is not None
        self.priors: Priors = priors
        self.known: list[Mixture] = [
            priors.after(str(source), "math", judged, passes) for source, judged, passes in self.cells.tolist()
        ]
        self.foretold = np.array([known.teaching_share(GROUP_SIZE) for known in self.known])
        """The teaching share of each cell."""

    @property
    def tokens(self) -> float:
        """The samples, as a share of SAMPLES for every row."""
        return float(self.lengths.mean()) / SAMPLES

    def selected(self, share: float, zero_share: float = 1.0) -> float:
        """Return the share of the groups that teach, of the best rows by what is known; of equal ones the mean. Of
        those that were selected at most `zero_share` never passed; rows that are lacking for that teach nothing."""
        rows = share * len(self.lengths)
        true = np.bincount(self.cell_of.ravel(), weights=self.problems.teaching) / self.sizes
        never = self.cells[:, 2] == 0
        room = (
            rows
            if zero_share == 1
            else min(zero_share * rows, self.sizes[~never].sum() * zero_share / (1 - zero_share))
        )
        taken = total = 0.0
        for cell in np.argsort(-self.foretold, kind="stable"):
            count = min(float(self.sizes[cell]), rows - taken, room if never[cell] else rows)
            room -= count * never[cell]
            total, taken = total + count * true[cell], taken + count
        return total / rows

    def selected_by_quotas(self, share: float, quotas: Sequence[float]) -> tuple[float, float]:
        """Return the same where each source has a share of the selection, and the least share of a quota that is met
        by rows of which a fifth of the groups is foretold to teach, as selection asks for."""
        scores = self.foretold[self.cell_of.ravel()]
        total, met = 0.0, 1.0
        for source, quota in enumerate(quotas):
            members = np.flatnonzero((self.problems.sources == source) & (scores >= 0.2))
            rows = min(round(quota * share * len(scores)), int((self.problems.sources == source).sum()))
            best = members[np.argsort(-scores[members], kind="stable")][:rows]
            total += self.problems.teaching[best].sum()
            met = min(met, len(best) / rows)
        return total / (share * len(scores)), met

    def intervals(self) -> dict[str, float]:
        """Return how many rates the 90 % intervals hold, and how wide they are."""
        ends = np.array([known.interval(LEVEL) for known in self.known])[self.cell_of.ravel()]
        rates = self.problems.rates
        is_in = (ends[:, 0] <= rates) & (rates <= ends[:, 1])
        is_between, is_failed = (rates > 0) & (rates < 1), self.passes == 0
        return {
            "covers": float(is_in.mean()),
            "covers_between": float(is_in[is_between].mean()),
            "covers_failed": float(is_in[is_failed].mean()) if is_failed.any() else float("nan"),
            "width": float((ends[:, 1] - ends[:, 0]).mean()),
        }


def true_cells(population: Population, cells: Lengths, generator: np.random.Generator) -> Floats:
    """Return the true teaching share of each cell: that of many rows of its source, weighed by how probable it is that
    they come to it."""
    true = np.zeros(len(cells))
    for source, (_, draw) in enumerate(population.sources):
        rates = draw(generator, 200_000)
        teaching = teaching_share(rates)
        for index in np.flatnonzero(cells[:, 0] == source):
            _, judged, passes = cells[index]
            weights = rates**passes * (1 - rates) ** (judged - passes)
            true[index] = (weights * teaching).sum() / max(weights.sum(), 1e-300)
    return true


RULES: dict[str, Callable[[Problems], Lengths]] = {
    "Reinforce-Ada, positive": reinforce_ada(balanced=False),
    "Reinforce-Ada, balanced": reinforce_ada(balanced=True),
    "truegold, half": truegold(0.5),
    "truegold, quarter": truegold(0.25),
    "truegold": truegold(None),
}


def measure(population: Population, rows: int, seed: int) -> dict[str, Any]:
    """Return what every rule spends, selects and foretells on one draw."""
    problems = draw_problems(population, rows, seed)
    by_count = {count: Known(problems, fixed(count)(problems)) for count in range(FIRST, SAMPLES + 1)}
    selected = {cut: [known.selected(cut) for known in by_count.values()] for cut in CUTS}
    intervals = {count: by_count[count].intervals() for count in (FIRST, *range(6, SAMPLES + 1, 2))}
    figures: dict[str, Any] = {}
    for name, rule in RULES.items():
        known = Known(problems, rule(problems))
        mean = known.tokens * SAMPLES
        figure: dict[str, Any] = {"tokens": known.tokens}
        for cut in CUTS:
            same = float(np.interp(mean, list(by_count), selected[cut]))
            figure[f"gain {cut}"] = known.selected(cut) - same
            figure[f"gap {cut}"] = selected[cut][-1] - same
        if name.startswith("truegold"):
            true = true_cells(population, known.cells, np.random.default_rng(seed))
            off, is_large = np.abs(known.foretold - true), known.sizes >= LEAST_CELL * rows
            figure |= {
                **known.intervals(),
                "width_fixed": float(np.interp(mean, list(intervals), [each["width"] for each in intervals.values()])),
                "worst_cell": float(off[is_large].max()),
                "worst_large_cell": float(off[known.sizes >= 2 * LEAST_CELL * rows].max()),
                "mean_cell": float((off * known.sizes).sum() / rows),
                "off": {
                    str(cell): foretold - in_truth
                    for cell, foretold, in_truth in zip(
                        known.cells[is_large].tolist(), known.foretold[is_large], true[is_large], strict=True
                    )
                },
                "foretold": float((known.foretold * known.sizes).sum() / rows),
                "teaching": float(problems.teaching.mean()),
            }
        figures[name] = figure
    figures["zeros"] = measure_zeros(problems, by_count)
    if len(population.sources) > 1:
        figures["quotas"] = _measure_quotas(problems, by_count, len(population.sources))
    return figures


def _measure_quotas(problems: Problems, by_count: dict[int, Known], sources: int) -> dict[str, float]:
    """Return the same for a selection of half of the rows, with equal numbers from each source."""
    quotas = [1 / sources] * sources
    rule = truegold(0.5, {f"source:{source}": share for source, share in enumerate(quotas)})
    known = Known(problems, rule(problems))
    value, met = known.selected_by_quotas(0.5, quotas)
    same = [each.selected_by_quotas(0.5, quotas)[0] for each in by_count.values()]
    fixed_value = float(np.interp(known.tokens * SAMPLES, list(by_count), same))
    least = min(float(known.lengths[problems.sources == source].mean()) for source in range(sources))
    return {
        "tokens": known.tokens,
        "gain": value - fixed_value,
        "gap": same[-1] - fixed_value,
        "met": met,
        "least_samples": least / float(known.lengths.mean()),
    }


def measure_zeros(problems: Problems, by_count: dict[int, Known]) -> dict[str, float]:
    """Return what half of the rows, of which a tenth may never have passed, have by the rule that does not know of
    that tenth, and by the one that does."""
    figures: dict[str, float] = {}
    same = [known.selected(0.5, ZERO_SHARE) for known in by_count.values()]
    for name, zero_share in (("untold", 1.0), ("told", ZERO_SHARE)):
        known = Known(problems, truegold(0.5, zero_share=zero_share)(problems))
        fixed_value = float(np.interp(known.tokens * SAMPLES, list(by_count), same))
        figures[f"tokens {name}"] = known.tokens
        figures[f"gain {name}"] = known.selected(0.5, ZERO_SHARE) - fixed_value
        figures[f"gap {name}"] = same[-1] - fixed_value
    return figures


def _mean(draws: Sequence[dict[str, Any]], rule: str, figure: str) -> float:
    return float(np.nanmean([draw[rule][figure] for draw in draws]))


def _error(draws: Sequence[dict[str, Any]], rule: str, figure: str) -> float:
    values = [draw[rule][figure] for draw in draws]
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def _selection_table(figures: dict[str, list[dict[str, Any]]], cut: float, rule: str) -> str:
    rules = ["Reinforce-Ada, positive", "Reinforce-Ada, balanced", *dict.fromkeys((rule, "truegold"))]
    lines = ["| population | " + " | ".join(rules) + " |", "|---" * (1 + len(rules)) + "|"]
    sums: dict[str, list[tuple[float, float]]] = {name: [] for name in rules}
    for key, draws in figures.items():
        cells = []
        for name in rules:
            gain, gap = (_mean(draws, name, f"{kind} {cut}") for kind in ("gain", "gap"))
            sums[name].append((gain, gap))
            tokens = _mean(draws, name, "tokens")
            cells.append(f"{tokens:.2f}: {gain:+.4f} ± {_error(draws, name, f'gain {cut}'):.4f} of {gap:.4f}")
        lines.append(f"| {key} | " + " | ".join(cells) + " |")
    shares = [sum(gain for gain, _ in sums[name]) / sum(gap for _, gap in sums[name]) for name in rules]
    lines.append("| share of the gap, all | " + " | ".join(f"{share:.2f}" for share in shares) + " |")
    return "\n".join(lines)


def _worst_on_average(draws: Sequence[dict[str, Any]], rule: str) -> str:
    """Return by how much a cell is off on average of the draws, where that is most: what more rows would not mend."""
    cells = set.intersection(*(set(draw[rule]["off"]) for draw in draws))
    off = {cell: [draw[rule]["off"][cell] for draw in draws] for cell in sorted(cells)}
    worst = max(off.values(), key=lambda values: abs(float(np.mean(values))))
    error = float(np.std(worst, ddof=1) / np.sqrt(len(worst))) if len(worst) > 1 else 0.0
    return f"{float(np.mean(worst)):+.3f} ± {error:.3f}"


def _posterior_table(figures: dict[str, list[dict[str, Any]]]) -> str:
    lines = [
        "| population | rule | tokens, from draw to draw | intervals hold: all / between 0 and 1 / 0 passes "
        "| width (fixed) | foretold (true) | cells off by | a cell off on average |",
        "|---" * 8 + "|",
    ]
    for key, draws in figures.items():
        for rule in (name for name in RULES if name.startswith("truegold")):
            tokens = [draw[rule]["tokens"] for draw in draws]
            covers = [_mean(draws, rule, name) for name in ("covers", "covers_between", "covers_failed")]
            cells = [
                key,
                rule,
                f"{min(tokens):.3f} to {max(tokens):.3f} ({max(tokens) / min(tokens) - 1:.0%})",
                " / ".join(f"{share:.3f}" for share in covers),
                f"{_mean(draws, rule, 'width'):.3f} ({_mean(draws, rule, 'width_fixed'):.3f})",
                f"{_mean(draws, rule, 'foretold'):.3f} ({_mean(draws, rule, 'teaching'):.3f})",
                ", ".join(
                    f"{_mean(draws, rule, name):.3f}" for name in ("worst_cell", "worst_large_cell", "mean_cell")
                ),
                _worst_on_average(draws, rule),
            ]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _quota_table(figures: dict[str, list[dict[str, Any]]]) -> str:
    lines = [
        "| population | tokens | gain of gap | least met of a quota | fewest samples of a source |",
        "|---" * 5 + "|",
    ]
    for key, draws in figures.items():
        if "quotas" in draws[0]:
            tokens, gain, gap, met, least = (
                _mean(draws, "quotas", name) for name in ("tokens", "gain", "gap", "met", "least_samples")
            )
            error = _error(draws, "quotas", "gain")
            lines.append(f"| {key} | {tokens:.2f} | {gain:+.4f} ± {error:.4f} of {gap:.4f} | {met:.2f} | {least:.2f} |")
    return "\n".join(lines)


def zero_table(figures: dict[str, list[dict[str, Any]]]) -> str:
    """Return what half of the rows have by the two rules, of all populations."""
    lines = ["| population | the rule without that share | the rule |", "|---" * 3 + "|"]
    sums = {"untold": np.zeros(2), "told": np.zeros(2)}
    for key, draws in figures.items():
        cells = []
        for name in sums:
            tokens, gain, gap = (_mean(draws, "zeros", f"{kind} {name}") for kind in ("tokens", "gain", "gap"))
            sums[name] += gain, gap
            cells.append(f"{tokens:.2f}: {gain:+.4f} ± {_error(draws, 'zeros', f'gain {name}'):.4f} of {gap:.4f}")
        lines.append(f"| {key} | " + " | ".join(cells) + " |")
    lines.append("| share of the gap, all | " + " | ".join(f"{gain / gap:.2f}" for gain, gap in sums.values()) + " |")
    return "\n".join(lines)


def report(figures: dict[str, list[dict[str, Any]]], rows: int) -> str:
    """Return the tables."""
    titles = "\n".join(f"- {key}: {POPULATIONS[key].title}" for key in figures)
    draws = len(next(iter(figures.values())))
    return f"""{rows:,} problems, {draws} draws of each population; tokens are samples as a share of 16 for all, errors
those of the mean. No constant was chosen on {" and ".join(UNTUNED)}.

{titles}

```
python benchmarks/profile_simulation.py --write benchmarks/results/profile_simulation.md
```

## The best half

What the selected rows teach more than by a fixed count of as many samples, of what 16 samples of each add to that.

{_selection_table(figures, 0.5, "truegold, half")}

## The best quarter

{_selection_table(figures, 0.25, "truegold, quarter")}

## Quotas

Half of the rows, of which each source is to have as many as the others. Samples are those of the source that gets the
fewest, as a share of the mean.

{_quota_table(figures)}

## Rows that never passed

Half of the rows, of which a tenth may have no right sample: `select.zero_share`.

{zero_table(figures)}

## What posteriors promise

In brackets the width by a fixed count of as many samples. A cell is the problems of one source with the same counts;
the worst one with {LEAST_CELL:.0%} of the rows stands there, the worst one with {2 * LEAST_CELL:.0%}, and the mean. The
last column has the one with {LEAST_CELL:.0%} that is off most on average of the draws, too high or too low.

{_posterior_table(figures)}
"""


def main() -> None:
    """Simulate all populations, and print or write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--only", nargs="+", choices=tuple(POPULATIONS), default=list(POPULATIONS))
    parser.add_argument("--json", type=Path, help="write the figures of each draw into this file")
    parser.add_argument("--write", type=Path, help="write the tables into this Markdown file")
    arguments = parser.parse_args()
    figures: dict[str, list[dict[str, Any]]] = {}
    for key in arguments.only:
        seeds = [1000 * list(POPULATIONS).index(key) + draw for draw in range(arguments.draws)]
        figures[key] = [measure(POPULATIONS[key], arguments.rows, seed) for seed in seeds]
        say(f"{key}: done")
        if arguments.json:
            arguments.json.write_text(json.dumps(figures))
    text = report(figures, arguments.rows)
    publish(figures, text, None, arguments.write, "Rules of how often to sample a problem, simulated")


if __name__ == "__main__":
    main()
