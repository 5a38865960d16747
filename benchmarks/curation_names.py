"""Replaces names of persons in problems of an evaluation set, and counts how many are found as leaks.

    python benchmarks/curation_names.py DATA_DIR

DATA_DIR is laid out like the labelled corpora. Items are the problems of gsm8k_platinum.jsonl; training records are
those with their names exchanged for others (half of them with the other pronouns) among the problems of GSM8K train.
Every other match counts against precision. Numbers are reported for halves, by a hash of the item; nothing was chosen
on the odd half.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import tempfile
from pathlib import Path

import polars as pl
from curation_decontamination import is_odd, rows

from truegold.pipeline.decontaminate.matches import find_leaks_in_file
from truegold.pipeline.near.embedding import Encoder
from truegold.pipeline.problems import ProblemColumns
from truegold.pipeline.running.progress import NullProgress

NAMES = (
    "Alice Brian Carla Derek Elena Felix Grace Hassan Ivy Jonas Kira Liam Mona Nadia Oscar Priya Quentin Rosa Stefan"
    " Tina Uma Viktor Wanda Xavier Yusuf Zelda"
).split()
MONTHS = "January February March April May June July August September October November December".split()
PRONOUNS = {"he": "she", "she": "he", "his": "her", "her": "his"}


def renamed(text: str, common: set[str], draw: random.Random) -> str | None:
    """The text with other names, None where it has none that does or owns something."""
    names = [
        name
        for name in dict.fromkeys(re.findall(r"\b[A-Z][a-z]{2,}\b", text))
        if name.lower() not in common
        and name not in MONTHS
        and re.search(rf"\b{name}(?:'s| (?:has|had|is|was|\w+s|\w+ed)\b)", text)
    ]
    if not names:
        return None
    others = draw.sample([name for name in NAMES if name not in text], len(names))
    exchanged = dict(zip(names, others, strict=True))
    changed = re.sub(r"\b[A-Z][a-z]{2,}\b", lambda match: exchanged.get(match[0], match[0]), text)
    if draw.random() < 0.5:
        changed = re.sub(r"\b(?:he|she|his|her)\b", lambda match: PRONOUNS[match[0]], changed)
    return changed


def measure(folder: Path, work: Path, encoder: Encoder | None = None, pool_size: int | None = None) -> dict[str, str]:
    """Return the number of found items with other names, by half, and the number of other matches."""
    draw = random.Random(5)
    train = rows(folder, "gsm8k_train")
    common = {word for row in train for word in re.findall(r"\b[a-z]+\b", row["question"])}
    eval_items = {str(row["id"]): row["question"] for row in rows(folder, "gsm8k_platinum")[:pool_size]}
    planted = {key: renamed(text, common, draw) for key, text in eval_items.items()}
    planted = {key: text for key, text in planted.items() if text is not None}
    records = [*planted.items(), *((f"train-{n}", row["question"]) for n, row in enumerate(train[:pool_size]))]
    for name, pairs in (("records", records), ("evals", list(eval_items.items()))):
        lines = (json.dumps({"id": key, "prompt": text}) + "\n" for key, text in pairs)
        (work / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    find_leaks_in_file(
        work / "records.jsonl",
        {str(work / "evals.jsonl"): ProblemColumns()},
        work,
        ProblemColumns(),
        NullProgress(),
        encoder,
    )
    matches = pl.read_parquet(work / "matches.parquet")
    matched = set(zip(matches["id"], matches["against_id"], strict=True))
    figures = {}
    for half in ("even", "odd"):
        keys = [key for key in planted if is_odd(f"names{key}") == (half == "odd")]
        figures[half] = f"{sum((key, key) in matched for key in keys)} of {len(keys)}"
    return {**figures, "other matches": str(sum(key != item for key, item in matched))}


def main() -> None:
    """Measure, and print it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data_dir", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measure(args.data_dir, Path(folder))))


if __name__ == "__main__":
    main()
