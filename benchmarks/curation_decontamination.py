"""Plants leaks of evaluation sets in a pool of other problems and counts what decontamination finds.

    python benchmarks/curation_decontamination.py DATA_DIR [--pool 100000] [--odd] [--work DIR] [--json FILE]

DATA_DIR is laid out like the labelled corpora (gsm8k_test_rephrased.jsonl, gsm_plus_testmini.jsonl, math500.jsonl ...).
Planted for half of the items of each kind, never two for one item:

    verbatim    a copy; a copy in other case and spacing; a copy between instructions; a copy in a longer text
    reworded    a language model's rewording (GSM8K)
    renumbered  decoys: the same words, other quantities and another answer (GSM-Plus, MATH-Perturb): no leaks

The pool has the problems of other corpora and copies of them with exchanged words, without exact copies of items. With
--embedder, an encoder also proposes pairs to truegold. Truegold is compared with the rules "any run of 8 (13) words in
common". A found pair counts if it names the right item. Every other reported leak counts against precision, also true
leaks that the pool already has. --odd: only items with an odd hash, on which no threshold was chosen.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from truegold.pipeline.decontaminate.matches import find_leaks_in_file
from truegold.pipeline.engines.text_vectors import load_text_encoder
from truegold.pipeline.near.embedding import Encoder
from truegold.pipeline.problems import ProblemColumns
from truegold.pipeline.running.progress import NullProgress

POOL_FILES = (
    "gsm8k_train", "math_train_7474", "ape210k_test", "ape210k_valid", "qwen_college_math", "qwen_mawps", "qwen_cmath",
    "leetcode_train", "mmlu_redux_helm", "olympiad_bench_675", "aime_1983_2023", "aqua_dev", "aqua_test",
    "qwen_carp_en",
)  # fmt: skip
COLUMNS = ("question", "problem", "prompt", "original_text", "input", "content")
TRUEGOLD, EIGHT, THIRTEEN = "truegold", "8-gram", "13-gram"


@dataclass
class Planted:
    """Evaluation items by id, and training records with the item that each is a leak of (None: a decoy or the pool)."""

    eval_items: dict[str, str] = field(default_factory=dict)
    records: list[tuple[str, str]] = field(default_factory=list)
    truth: dict[str, tuple[str, str | None]] = field(default_factory=dict)

    def add(self, kind: str, item: str, text: str, leak: bool = True) -> None:
        """One more record made of an item."""
        name = f"{kind}-{len(self.records)}"
        self.records.append((name, text))
        self.truth[name] = (kind, item if leak else None)


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    """The records of one file of the folder; none where it is absent."""
    path = folder / f"{name}.jsonl"
    if not path.exists():
        return []
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def is_odd(text: str) -> bool:
    """Return whether a text is in the odd half."""
    return int(hashlib.sha256(text.encode()).hexdigest()[0], 16) % 2 == 1


def plant(folder: Path, pool_size: int, only_odd: bool, seed: int = 0) -> Planted:
    """The items and the training records, shuffled."""
    draw = random.Random(seed)
    planted = Planted()
    pool = list(pool_texts(folder))
    fillers = draw.sample(pool, min(2000, len(pool)))
    for row in rows(folder, "gsm8k_test_rephrased"):
        if only_odd and not is_odd(f"gsm8k_test_rephrased.jsonl{row['id']}"):
            continue
        item = f"gsm8k-{row['id']}"
        planted.eval_items[item] = row["original"]
        choice = draw.random()
        if choice < 0.35:
            planted.add("reworded", item, row["rephrased"])
        elif choice < 0.6:
            verbatim(planted, item, row["original"], draw, fillers)
    for index, row in enumerate(rows(folder, "math500")):
        if only_odd and not is_odd(f"math500.jsonl{index}"):
            continue
        planted.eval_items[f"math500-{index}"] = row["problem"]
        if draw.random() < 0.3:
            verbatim(planted, f"math500-{index}", row["problem"], draw, fillers)
    renumbered(folder, planted, only_odd)
    texts = {" ".join(text.split()).lower() for text in planted.eval_items.values()}
    clean = [text for text in pool if " ".join(text.split()).lower() not in texts]
    for index in range(max(0, pool_size - len(planted.records))):
        text = clean[index % len(clean)]
        planted.records.append((f"pool-{index}", text if index < len(clean) else edited(text, clean, draw)))
    draw.shuffle(planted.records)
    return planted


def verbatim(planted: Planted, item: str, text: str, draw: random.Random, fillers: list[str]) -> None:
    """One copy in one of four dresses."""
    dress = draw.randrange(4)
    if dress == 0:
        planted.add("verbatim", item, text)
    elif dress == 1:
        planted.add("verbatim", item, "  ".join(text.upper().split(" ") if "$" not in text else text.split(" ")) + "\n")
    elif dress == 2:
        planted.add(
            "verbatim", item, f"Solve the following problem step by step.\n\n{text}\n\nPut the answer in a box."
        )
    else:
        planted.add("verbatim", item, f"{draw.choice(fillers)}\n\n{text}\n\n{draw.choice(fillers)}")


def renumbered(folder: Path, planted: Planted, only_odd: bool) -> None:
    """Decoys; their originals become items where they are none yet."""
    known = {text: item for item, text in planted.eval_items.items()}
    pairs = [
        (row["seed_question"], row["question"])
        for row in rows(folder, "gsm_plus_testmini")
        if row["perturbation_type"] in ("numerical substitution", "digit expansion")
        and str(row["answer"]) != str(row["seed_answer"])
    ]
    simple, hard = rows(folder, "math_perturb_simple"), rows(folder, "math_perturb_hard")
    pairs += [(simple_row["problem"], hard_row["problem"]) for simple_row, hard_row in zip(simple, hard, strict=False)]
    for index, (original, decoy) in enumerate(pairs):
        if only_odd and not is_odd(original):
            continue
        item = known.setdefault(original, f"decoy-{index}")
        planted.eval_items.setdefault(item, original)
        planted.add("renumbered", item, decoy, leak=False)


def pool_texts(folder: Path) -> Iterator[str]:
    """Yield the distinct problems of the pool's files."""
    seen = set()
    for name in POOL_FILES:
        for row in rows(folder, name):
            text = next((row[column] for column in COLUMNS if isinstance(row.get(column), str)), "")
            if len(text) > 10 and text not in seen:
                seen.add(text)
                yield text


def edited(text: str, others: list[str], draw: random.Random) -> str:
    """Return the text with 2 to 40 % of its words replaced by words of other texts."""
    share = draw.uniform(0.02, 0.4)
    vocabulary = draw.choice(others).split() or ["word"]
    return " ".join(draw.choice(vocabulary) if draw.random() < share else word for word in text.split())


def truegold_matches(planted: Planted, work: Path, encoder: Encoder | None = None) -> set[tuple[str, str]]:
    """The pairs (record, item) that `truegold decontaminate` writes."""
    data, evals = work / "train.jsonl", work / "evals.jsonl"
    data.write_text("".join(json.dumps({"id": name, "prompt": text}) + "\n" for name, text in planted.records))
    evals.write_text(
        "".join(json.dumps({"id": name, "prompt": text}) + "\n" for name, text in planted.eval_items.items())
    )
    find_leaks_in_file(data, {str(evals): ProblemColumns()}, work / "out", ProblemColumns(), NullProgress(), encoder)
    matches = pl.read_parquet(work / "out" / "matches.parquet")
    return set(zip(matches["id"], matches["against_id"], strict=True))


def ngram_rule(planted: Planted, size: int) -> set[tuple[str, str]]:
    """The pairs that share any run of `size` words (letters and digits, lower case)."""
    where: dict[tuple[str, ...], list[str]] = {}
    for item, text in planted.eval_items.items():
        for gram in set(grams(text, size)):
            where.setdefault(gram, []).append(item)
    return {
        (name, item) for name, text in planted.records for gram in grams(text, size) for item in where.get(gram, ())
    }


def grams(text: str, size: int) -> Iterator[tuple[str, ...]]:
    """Yield the runs of so many words."""
    words = re.findall(r"\w+", text.lower())
    return zip(*(words[start:] for start in range(size)), strict=False)


def score(planted: Planted, matches: set[tuple[str, str]]) -> dict[str, Any]:
    """Recall by kind, decoys called leaks, and the precision over records."""
    right = Counter(kind for name, (kind, item) in planted.truth.items() if item and (name, item) in matches)
    total = Counter(kind for kind, _ in planted.truth.values())
    called = {name for name, _ in matches}
    true = {name for name, item in matches if planted.truth.get(name, ("", None))[1] == item and item}
    return {
        "called": len(called),
        "precision": len(true) / max(1, len(called)),
        "recall verbatim": right["verbatim"] / max(1, total["verbatim"]),
        "recall reworded": right["reworded"] / max(1, total["reworded"]),
        "decoys called": sum(name in called for name, (kind, _) in planted.truth.items() if kind == "renumbered"),
        "decoys": total["renumbered"],
        "pool called": sum(name.startswith("pool-") for name in called),
    }


def measure(folder: Path, pool: int, only_odd: bool, work: Path, embedder: str | None = None) -> dict[str, Any]:
    """All rules on one planted pool."""
    planted = plant(folder, pool, only_odd)
    measurements: dict[str, Any] = {"records": len(planted.records), "items": len(planted.eval_items)}
    rules = {TRUEGOLD: lambda: truegold_matches(planted, work)}
    if embedder is not None:
        encoder = load_text_encoder(embedder)
        rules[f"truegold with {embedder}"] = lambda: truegold_matches(planted, work, encoder)
    rules |= {name: (lambda size=size: ngram_rule(planted, size)) for name, size in ((EIGHT, 8), (THIRTEEN, 13))}
    for name, rule in rules.items():
        began = time.monotonic()
        matches = rule()
        measurements[name] = {**score(planted, matches), "seconds": round(time.monotonic() - began, 1)}
    return measurements


def main() -> None:
    """Measure on one planted pool, and print it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data_dir", type=Path)
    parser.add_argument("--pool", type=int, default=100_000)
    parser.add_argument("--odd", action="store_true")
    parser.add_argument("--embedder", help="a name on the hub or a folder")
    parser.add_argument("--work", type=Path)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    if not (args.data_dir / "gsm8k_test_rephrased.jsonl").exists():
        sys.exit(f"{args.data_dir} has no gsm8k_test_rephrased.jsonl.")
    with tempfile.TemporaryDirectory() as folder:
        work = args.work or Path(folder)
        work.mkdir(parents=True, exist_ok=True)
        measurements = measure(args.data_dir, args.pool, args.odd, work, args.embedder)
    for name, values in measurements.items():
        print(name, json.dumps(values))
    if args.json:
        args.json.write_text(json.dumps(measurements, indent=1))


if __name__ == "__main__":
    main()
