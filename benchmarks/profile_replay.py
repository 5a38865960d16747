"""Compares rules for the number of samples per problem by the problems that they select, on stored samples of models.

    python benchmarks/profile_replay.py draw RUN NAME [--samples 96]     samples a run that was profiled
    python benchmarks/profile_replay.py replay [--replays 20] [--write benchmarks/results/profile_replay.md]

`draw` samples every training row of the run many times, with its model and settings. For each row it stores the number
of passes, the numbers of equal wrong answers and the lengths, but no text (`results/profile_replay_NAME.json`).

A replay draws rows with replacement, and a random order of each row's samples. The rules of `profile_simulation` get up
to 16 samples in this order, and so does a fixed number of samples with the same tokens. The probability that a group of
the row teaches is estimated without bias from the row's other samples: the share of all possible groups of them that
have right and wrong samples.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from profile_sampling import settings, some_rows
from profile_simulation import (
    CUTS,
    FIRST,
    GROUP_SIZE,
    RULES,
    SAMPLES,
    Floats,
    Known,
    Lengths,
    Problems,
    fixed,
    measure_zeros,
    zero_table,
)
from publishing import publish, say

from truegold.pipeline.profile import stage as profile_stage
from truegold.pipeline.running.progress import NullProgress

COUNTS_FOLDER = Path(__file__).parent / "results"
KEPT_ANSWERS = 3
"""Rows whose samples agree on a wrong answer are sampled further. More answers than that cannot decide it."""

COLUMNS = ("source", "passes", "judged", "tokens", "answers")
"""Of each row: its source, the samples that passed and those that were judged, their mean length, and how many samples
give each of the wrong answers that are given most."""


@dataclass(frozen=True)
class Replay(Problems):
    """Rows in a random order of their samples."""

    rest: Floats
    """The share of each row's groups that teach, by the samples that no rule sees."""
    tokens: Floats
    """The mean length of each row's samples."""
    answers: Lengths
    """Which wrong answer each sample gives, 0 for one that is hardly given twice. Shape [rows, SAMPLES]."""

    @property
    def teaching(self) -> Floats:
        """The share of each row's groups that teach."""
        return self.rest

    def answer(self, row: int, sample: int) -> str | None:
        """Return the wrong answer of a sample."""
        return str(self.answers[row, sample]) if self.answers[row, sample] else None

    def share(self, lengths: Lengths) -> float:
        """Return the tokens of so many samples of each row, as a share of those of SAMPLES."""
        return float(lengths @ self.tokens / (SAMPLES * self.tokens.sum()))


def teaching_of(passes: Lengths, judged: Lengths) -> Floats:
    """Return which share of the groups that can be made of so many samples, without replacement, teach."""
    before = np.arange(GROUP_SIZE)
    alike = [
        (np.maximum(kind[:, None] - before, 0) / (judged[:, None] - before)).prod(axis=1)
        for kind in (passes, judged - passes)
    ]
    shares: Floats = 1 - alike[0] - alike[1]
    return shares


def replay(kept: dict[str, Any], seed: int) -> Replay:
    """Return rows drawn with replacement, and of each its samples in a random order."""
    generator = np.random.default_rng(seed)
    rows = [kept["rows"][index] for index in generator.integers(len(kept["rows"]), size=len(kept["rows"]))]
    sources = sorted({row["source"] for row in kept["rows"]})
    orders = []
    for row in rows:
        # -1 passes, 1 and more are wrong answers that others give, 0 are all others.
        repeated = [answer for answer, votes in enumerate(row["answers"], 1) for _ in range(votes)]
        others = row["judged"] - row["passes"] - len(repeated)
        orders.append(generator.permutation([-1] * row["passes"] + repeated + [0] * others))
    seen = np.array([order[:SAMPLES] for order in orders])
    rest = [order[SAMPLES:] for order in orders]
    passes, judged = np.array([(order == -1).sum() for order in rest]), np.array([len(order) for order in rest])
    return Replay(
        np.array([row["passes"] / row["judged"] for row in rows]),
        np.array([sources.index(row["source"]) for row in rows]),
        seen == -1,
        teaching_of(passes, judged),
        np.array([row["tokens"] for row in rows]),
        np.maximum(seen, 0),
    )


def measure(kept: dict[str, Any], seed: int) -> dict[str, Any]:
    """Return tokens and selection in one replay: of each rule, of a fixed number of samples, and of all samples."""
    problems = replay(kept, seed)
    by_count = {count: Known(problems, fixed(count)(problems)) for count in range(FIRST, SAMPLES + 1)}
    selected = {cut: [known.selected(cut) for known in by_count.values()] for cut in CUTS}
    figures: dict[str, Any] = {"zeros": measure_zeros(problems, by_count)}
    for name, rule in RULES.items():
        lengths = rule(problems)
        known, share = Known(problems, lengths), problems.share(lengths)
        figures[name] = {"tokens": share}
        for cut in CUTS:
            same = float(np.interp(share * SAMPLES, list(by_count), selected[cut]))
            taught = known.selected(cut)
            figures[name] |= {
                f"taught {cut}": taught,
                f"gain {cut}": taught - same,
                f"gap {cut}": selected[cut][-1] - same,
            }
    return figures


def _table(replays: list[dict[str, Any]], cut: float) -> str:
    lines = ["| rule | tokens | by the rule | gain | 16 of each would add |", "|---" * 5 + "|"]
    for name in RULES:
        if name == ("truegold, quarter" if cut == max(CUTS) else "truegold, half"):
            continue
        mean = {key: float(np.mean([each[name][key] for each in replays])) for key in replays[0][name]}
        spread = float(np.std([each[name][f"gain {cut}"] for each in replays], ddof=1))
        figures = f"{mean[f'taught {cut}']:.4f} | {mean[f'gain {cut}']:+.4f} ± {spread:.4f} | {mean[f'gap {cut}']:.4f}"
        lines.append(f"| {name} | {mean['tokens']:.2f} | {figures} |")
    return "\n".join(lines)


def report(figures: dict[str, list[dict[str, Any]]], kept: dict[str, dict[str, Any]]) -> str:
    """Return the tables."""
    replays = len(next(iter(figures.values())))
    parts = [
        f"""The share of the groups of {GROUP_SIZE} that really teach, of the best rows by each rule; what that is
more than by a fixed count of as many tokens (behind ± the standard deviation in {replays} replays: by how much one
profile may differ); and what {SAMPLES} samples of each add to that count. Tokens are a share of those of {SAMPLES} for
all rows.

```
python benchmarks/profile_replay.py replay --write benchmarks/results/profile_replay.md
```"""
    ]
    for name, measured in figures.items():
        rows = kept[name]["rows"]
        passes, judged = (np.array([row[key] for row in rows]) for key in ("passes", "judged"))
        never, always = float((passes == 0).mean()), float((passes == judged).mean())
        rate, teaching = float((passes / judged).mean()), float(teaching_of(passes, judged).mean())
        parts += [
            f"## {kept[name]['title']}",
            f"{len(rows):,} rows, {int(judged.min())} samples of each or more; {never:.0%} never passed, "
            f"{always:.0%} always. "
            f"The mean pass rate is {rate:.2f}, and {teaching:.2f} of all groups teach.",
        ]
        for cut, title in zip(CUTS, ("The best half", "The best quarter"), strict=True):
            parts += [f"{title}:", _table(measured, cut)]
    parts += [
        "## Rows that never passed",
        """Half of the rows, of which a tenth may have no right sample (`select.zero_share`): tokens, and what the
selection teaches more than by a fixed count of as many samples, of what 16 of each add to that. Errors are those of the
mean.""",
        zero_table(figures),
    ]
    return "\n\n".join(parts)


def draw(arguments: argparse.Namespace) -> None:
    """Sample the rows of a run, and write their counts."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        config, model = settings(arguments.run, samples=arguments.samples, first_samples=None)
        inputs = {"rows": some_rows(arguments.run, arguments.rows, out), "model": model}
        inputs["store"] = arguments.run / ".samples"
        (out / "profile").mkdir()
        profile_stage.profile(inputs, config, out / "profile", NullProgress())
        samples = pl.read_parquet(
            out / "profile" / "samples.parquet",
            columns=["id", "source", "source_row", "score", "extracted", "token_ids"],
        )
    rows = []
    for (_, source, _), of_row in samples.group_by("id", "source", "source_row", maintain_order=True):
        wrong = of_row.filter(pl.col("score") != 1.0)["extracted"].drop_nulls()
        votes = [votes for _, votes in Counter(wrong).most_common(KEPT_ANSWERS) if votes > 1]
        passes, judged = int((of_row["score"] == 1.0).sum()), int(of_row["score"].count())
        tokens = round(of_row["token_ids"].list.len().sum() / len(of_row), 1)
        if judged >= SAMPLES + GROUP_SIZE:
            rows.append((source, passes, judged, tokens, votes))
    lines = ",\n".join(map(json.dumps, rows))
    head = f'"title": {json.dumps(arguments.title or arguments.name)}, "columns": {json.dumps(COLUMNS)}'
    (COUNTS_FOLDER / f"profile_replay_{arguments.name}.json").write_text(f'{{{head}, "rows": [\n{lines}\n]}}\n')


def read_kept(path: Path) -> dict[str, Any]:
    """Return the stored counts of a run: its title, and its rows by column."""
    kept = json.loads(path.read_text())
    return {**kept, "rows": [dict(zip(kept["columns"], row, strict=True)) for row in kept["rows"]]}


def main() -> None:
    """Draw samples, or replay those that were drawn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    drawing = commands.add_parser("draw", help="sample the rows of a run")
    drawing.add_argument("run", type=Path)
    drawing.add_argument("name")
    drawing.add_argument("--title", help="the model and the problems, in words")
    drawing.add_argument("--rows", type=int, default=1 << 30, help="the first so many of the run")
    drawing.add_argument("--samples", type=int, default=96, help="of each row")
    drawing.set_defaults(run_command=draw)
    replaying = commands.add_parser("replay", help="compare the rules on what was drawn")
    replaying.add_argument("--replays", type=int, default=20)
    replaying.add_argument("--write", type=Path, help="write the tables into this Markdown file")
    replaying.set_defaults(run_command=replay_all)
    arguments = parser.parse_args()
    arguments.run_command(arguments)


def replay_all(arguments: argparse.Namespace) -> None:
    """Compare the rules on all samples that were drawn."""
    figures, kept = {}, {}
    for path in sorted(COUNTS_FOLDER.glob("profile_replay_*.json")):
        name = path.stem.removeprefix("profile_replay_")
        kept[name] = read_kept(path)
        figures[name] = [measure(kept[name], seed) for seed in range(arguments.replays)]
        say(f"{name}: done")
    title = "Rules of how often to sample a problem, replayed on samples of real models"
    publish(figures, report(figures, kept), None, arguments.write, title)


if __name__ == "__main__":
    main()
