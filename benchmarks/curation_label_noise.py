"""Measures the tiers under label noise: reviewed corpora with a share of their labels replaced by wrong ones.

    python benchmarks/curation_label_noise.py DATA_DIR [--seeds N] [--json FILE]

DATA_DIR has gsm8k_platinum.jsonl and mmlu_redux_helm.jsonl (`curation_suspicion`). A label is bad if reviewers found it
wrong, or if it was replaced here. A replaced label is, in equal parts,

    near     a number nearby: one off, ten times, a tenth more, a digit changed; of options another letter
    row      the label of another row
    system   a wrong answer that one of the systems gave: the hard kind, because systems agree with it

Suspicion is computed on the whole corpus and reported for halves: constants were chosen on "even"
(`curation_suspicion.is_even`), not on "odd". Each number is pooled over the seeds. Ensembles:

    all            every system
    weak + mid     those that agree with less than 88 % of the labels
    top 15, top 8  by agreement
    random 8, 4    drawn with a fixed seed
    6 weak         below 72 %
    one strong     one of the best and four weak ones
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from curation_suspicion import GSM8K, MID, MMLU, WEAK, is_even, measure, rates, read
from numpy.typing import NDArray
from ranking_scores import average_precision

from truegold.pipeline.suspicion.answer_classes import key_of
from truegold.verifiers.rates import wilson_interval

SHARES = (0.02, 0.05, 0.1, 0.2, 0.3)
SEEDS = 3
KINDS = ("near", "row", "system")
OPTIONS = "ABCD"

Rows = list[dict[str, Any]]
Mask = NDArray[np.bool_]


@dataclass
class Count:
    """Drops of one corpus, ensemble and half."""

    dropped: int = 0
    right: int = 0
    bad: int = 0

    def add(self, dropped: Mask, bad: Mask) -> None:
        """Count the items."""
        self.dropped += int(dropped.sum())
        self.right += int((dropped & bad).sum())
        self.bad += int(bad.sum())

    def describe(self) -> str:
        """Return the precision with its 95 % interval, and the recall."""
        if not self.dropped:
            return "none dropped"
        low, high = wilson_interval(self.right, self.dropped)
        precision = f"{self.right}/{self.dropped} = {self.right / self.dropped:.3f} [{low:.2f}, {high:.2f}]"
        return f"{precision} R {self.right / max(1, self.bad):.2f}"


def replace_labels(rows: Sequence[Mapping[str, Any]], share: float, seed: int, closed: bool) -> Rows:
    """Return copies of the rows, each with its `bad`; a share of them with another label."""
    rng = random.Random(f"{seed} {share}")
    replaced = []
    for row in rows:
        label, bad = str(row["gold_original"]), row["bad"]
        if rng.random() < share:
            label, bad = _wrong_label(row, rows, rng, closed), True
        replaced.append({**row, "gold_original": label, "bad": bad})
    return replaced


def _wrong_label(row: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], rng: random.Random, closed: bool) -> str:
    label, kind = str(row["gold_original"]), rng.choice(KINDS)
    candidates: list[str] = []
    if kind == "row":
        candidates = [str(rng.choice(rows)["gold_original"])]
    elif kind == "system":
        is_answer = re.compile(f"[{OPTIONS}]" if closed else r"-?[\d,]+\.?\d*")
        candidates = [str(answer) for answer in row["preds"].values() if is_answer.fullmatch(str(answer))]
    candidates = [text for text in candidates if key_of(text) != key_of(label)]
    if not candidates:
        candidates = [letter for letter in OPTIONS if letter != label] if closed else _near(label, rng)
    return rng.choice(candidates)


def _near(label: str, rng: random.Random) -> list[str]:
    try:
        value = float(label.replace(",", ""))
    except ValueError:
        return [f"{label}1"]
    digits = str(abs(int(value)))
    position = rng.randrange(len(digits))
    other = digits[:position] + str((int(digits[position]) + rng.randint(1, 9)) % 10) + digits[position + 1 :]
    near = [value + 1, value - 1, value * 10, round(value * 1.1), round(value * 0.9), value * 2, float(other)]
    return [f"{candidate:.10g}" for candidate in near if candidate != value]


def ensembles(rows: Rows, verifier: str) -> dict[str, list[str]]:
    """Return the sets of systems by name, chosen by their agreement with the labels as they came."""
    rate = rates(rows, verifier)
    ranked = sorted(rate, key=lambda name: (-rate[name], name))
    weak = [name for name in ranked if rate[name] < WEAK]
    rng = random.Random(0)
    sets = {
        "all": ranked,
        "weak + mid": [name for name in ranked if rate[name] < MID],
        "top 15": ranked[:15],
        "top 8": ranked[:8],
        "random 8": rng.sample(ranked, min(8, len(ranked))),
        "random 4": rng.sample(ranked, min(4, len(ranked))),
        "6 weak": rng.sample(weak, min(6, len(weak))),
        "one strong": ranked[:1] + rng.sample(weak, min(4, len(weak))),
    }
    distinct = {name: systems for name, systems in sets.items() if systems}
    return {name: systems for name, systems in distinct.items() if name == "all" or set(systems) != set(ranked)}


def report(corpora: Mapping[str, Rows], seeds: int) -> Iterator[str]:
    """Yield the tables: by corpus, ensemble and share of replaced labels, then pooled."""
    pooled: dict[tuple[str, str, str], Count] = defaultdict(Count)
    for file, rows in corpora.items():
        closed = file == MMLU
        verifier = "choice" if closed else "math"
        even = np.array([is_even(file, row["id"]) for row in rows])
        yield f"{file}: drop precision [95 %] and recall, even | odd half; average precision of suspicion, even | odd"
        for name, systems in ensembles(rows, verifier).items():
            for share in SHARES:
                counts, precisions = {"even": Count(), "odd": Count()}, []
                for seed in range(seeds):
                    replaced = replace_labels(rows, share, seed, closed)
                    bad = np.array([row["bad"] for row in replaced])
                    measured = measure(replaced, systems, verifier)
                    for half, mask in (("even", even), ("odd", ~even)):
                        for count in (counts[half], pooled[file, name, half], pooled["both", name, half]):
                            count.add(measured.dropped[mask], bad[mask])
                    precisions.append(
                        [average_precision(bad[mask], measured.suspicion[mask]) for mask in (even, ~even)]
                    )
                ap_even, ap_odd = np.mean(precisions, axis=0)
                yield (
                    f"  {name:<11}{share:>4.0%}  {counts['even'].describe()} | {counts['odd'].describe()}"
                    f" | AP {ap_even:.3f} | {ap_odd:.3f}"
                )
    yield "pooled over the shares:"
    names = dict.fromkeys((file, name) for file, name, _ in pooled)
    for file, name in sorted(names, key=lambda key: key[0] == "both"):
        even_text, odd_text = (pooled[file, name, half].describe() for half in ("even", "odd"))
        yield f"  {file:<24} {name:<11} {even_text} | {odd_text}"


def load(folder: Path) -> dict[str, Rows]:
    """Return the corpora that are there, each row with its `bad`."""
    is_bad = {GSM8K: lambda row: row["status"] != "kept", MMLU: lambda row: row["error_type"] != "ok"}
    paths = {file: folder / file for file in is_bad}
    return {
        file: [{**row, "bad": is_bad[file](row)} for row in read(path)] for file, path in paths.items() if path.exists()
    }


def main() -> None:
    """Print the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data_dir", type=Path)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    corpora = load(arguments.data_dir)
    for missing in {GSM8K, MMLU} - corpora.keys():
        print(f"{missing}: not there: left out")
    lines = list(report(corpora, arguments.seeds)) if corpora else []
    print("\n".join(lines))
    if arguments.json:
        arguments.json.write_text(json.dumps(lines, indent=1) + "\n")


if __name__ == "__main__":
    main()
