"""Measures deduplication: rewordings found, numeric variants kept apart, time and memory up to a million problems.

    python benchmarks/curation_dedup.py DATA_DIR [--odd] [--sizes 10000 100000 1000000] [--no-rensa] [--json FILE]

DATA_DIR is laid out like the labelled corpora (gsm8k_test_rephrased.jsonl, gsm_plus_testmini.jsonl ...).

- Rewordings: one file with the originals and the rewordings of GSM8K, without gold. A pair (original, rewording) is
  found if both are in one cluster. This is measured twice: with these problems only, and among the problems of other
  corpora, where every other problem in the cluster of an original counts against precision.
- Variants: one file with all originals and their variants (GSM-Plus, MATH-Perturb, UMWP, MiP, backward questions).
  Reported is the share of each kind in one cluster with its original. `problem understanding` is a rewording. Variants
  with "same answer" may be in one cluster with their original; all others must not.
- Speed: the command `truegold dedup`, and rensa's deduplicator with word 3-grams (threshold .7, 128 permutations) on
  the same file, each in a separate process. Problems are those of the corpora with up to 1,000 characters, and copies
  of them with 2 to 40 % of their words exchanged.
- Rewordings and variants by rensa's deduplicator.

--odd: only pairs whose original has an odd hash; thresholds and weights were chosen on the even ones.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
from curation_decontamination import edited, is_odd, pool_texts, rows

from truegold.pipeline.dedup.clusters import find_clusters
from truegold.pipeline.problems import ProblemColumns
from truegold.pipeline.running.progress import NullProgress

REWORDINGS = "gsm8k_test_rephrased"
MAX_CHARS = 1000
"""Longer problems are left out where speed is measured: the rest has 230 characters on average, as prompts have."""
Pair = tuple[str, str, str, str | None, str | None, str]
"""Kind, original, variant, their golds, and what is hashed to halve the pairs."""


def clusters(texts: list[str], golds: list[str | None], work: Path) -> list[int]:
    """The cluster of each text."""
    path = work / "problems.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for text, gold in zip(texts, golds, strict=True):
            file.write(json.dumps({"prompt": text, "gold": gold}) + "\n")
    find_clusters(path, work / "out", ProblemColumns("prompt"), None, NullProgress())
    cluster_ids: list[int] = pl.read_parquet(work / "out" / "clusters.parquet")["cluster"].to_list()
    return cluster_ids


def rensa_clusters(texts: list[str], golds: list[str | None], work: Path) -> list[int]:
    """The same by rensa's deduplicator, as `RENSA` runs it: for a text that goes, one that it is called a copy of."""
    from rensa import RMinHash, RMinHashDeduplicator

    dedup = RMinHashDeduplicator(0.7, 128, True)
    cluster_ids = []
    for index, text in enumerate(texts):
        words = re.findall(r"\w+", text.lower())
        minhash = RMinHash(num_perm=128, seed=42)
        minhash.update([" ".join(words[i : i + 3]) for i in range(max(1, len(words) - 2))])
        added = dedup.add(str(index), minhash)
        cluster_ids.append(index if added else min(map(int, dedup.get_duplicates(minhash))))
    return cluster_ids


Grouper = Callable[[list[str], list[str | None], Path], list[int]]
"""Texts and their golds -> the cluster of each text."""


def rewordings(folder: Path, only_odd: bool, work: Path, in_pool: bool, group: Grouper = clusters) -> dict[str, float]:
    """Precision, recall and F1 of cross pairs."""
    pairs = [
        (row["original"], row["rephrased"])
        for row in rows(folder, REWORDINGS)
        if not only_odd or is_odd(f"{REWORDINGS}.jsonl{row['id']}")
    ]
    texts = [first for first, _ in pairs] + [second for _, second in pairs]
    labelled_texts = len(texts)
    if in_pool:
        texts += [text for text in pool_texts(folder) if text not in set(texts)]
    cluster = group(texts, [None] * len(texts), work)
    members: dict[int, list[int]] = defaultdict(list)
    for index, cluster_id in enumerate(cluster):
        members[cluster_id].append(index)
    half = labelled_texts // 2
    cross_pairs = [
        (first, second)
        for group in members.values()
        for first in group
        for second in group
        if first < half and second >= half
    ]
    right = sum(second - first == half for first, second in cross_pairs)
    precision, recall = right / max(1, len(cross_pairs)), right / len(pairs)
    return {
        "texts": len(texts),
        "pairs": len(pairs),
        "precision": precision,
        "recall": recall,
        "F1": 2 * precision * recall / max(1e-9, precision + recall),
    }


def variant_pairs(folder: Path) -> list[Pair]:
    """All labelled pairs that are no plain rewordings."""
    labelled_pairs: list[Pair] = []

    def add(file: str, kind: str, first: str, second: str, golds: tuple[Any, Any], key: Any) -> None:
        if second.strip():
            labelled_pairs.append((kind, first, second, _text(golds[0]), _text(golds[1]), f"{file}.jsonl{key}"))

    for row in rows(folder, "gsm_plus_testmini"):
        golds, seed = (row["seed_answer"], row["answer"]), row["seed_question"]
        add("gsm_plus_testmini", f"GSM-Plus {row['perturbation_type']}", seed, str(row["question"]), golds, seed)
    simple, hard = rows(folder, "math_perturb_simple"), rows(folder, "math_perturb_hard")
    for first, second in zip(simple, hard, strict=False):
        golds, key = (first["answer"], second["answer"]), first["problem_id"]
        add("math_perturb_simple", "MATH-Perturb hard", first["problem"], second["problem"], golds, key)
    umwp = {row["id"]: row for row in rows(folder, "umwp")}
    for row in umwp.values():
        for second in (second for second in row["relevant_ids"] or () if second in umwp):
            add("umwp", "UMWP unanswerable", umwp[second]["question"], row["question"], (None, None), second)
    for row in rows(folder, "mip_gsm8k"):
        first = row["question"]
        add("mip_gsm8k", "MiP premise removed", first, row["insufficient_question"], (None, None), first)
    for row in rows(folder, "gsm8k_backward"):
        first = row["original_question"]
        add("gsm8k_backward", "backward question", first, row["question"], (None, None), first)
    return labelled_pairs


def _text(value: Any) -> str | None:
    return None if value in (None, "None", "") else str(value)


def variants(
    folder: Path, only_odd: bool, work: Path, with_gold: bool, group: Grouper = clusters
) -> dict[str, dict[str, float]]:
    """For each kind the pairs and the share of them in one cluster."""
    pairs = [pair for pair in variant_pairs(folder) if not only_odd or is_odd(pair[5])]
    texts = [text for pair in pairs for text in pair[1:3]]
    golds = [gold if with_gold else None for pair in pairs for gold in pair[3:5]]
    cluster = group(texts, golds, work)
    merged: dict[str, list[bool]] = defaultdict(list)
    for index, pair in enumerate(pairs):
        merged[pair[0]].append(cluster[2 * index] == cluster[2 * index + 1])
    return {kind: {"pairs": len(values), "merged": sum(values) / len(values)} for kind, values in merged.items()}


def write_problems(folder: Path, size: int, path: Path, seed: int = 0) -> None:
    """So many problems: the corpora's own first, then edited copies of them."""
    draw = random.Random(seed)
    texts = [text for text in pool_texts(folder) if len(text) <= MAX_CHARS]
    with path.open("w", encoding="utf-8") as file:
        for index in range(size):
            text = texts[index % len(texts)]
            text = text if index < len(texts) else edited(text, texts, draw)
            file.write(json.dumps({"id": index, "prompt": text}, ensure_ascii=False) + "\n")


MEASURED = """
import resource, runpy, sys
try:
    {body}
finally:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    # Of this program alone: ru_maxrss also knows the process that started it.
    peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
    print(sum(usage.ru_utime + usage.ru_stime for usage in usages), peak // 1024, file=sys.stderr)
"""
TRUEGOLD_SCRIPT = 'runpy.run_module("truegold.flows.cli", run_name="__main__")'


def timed(body: str, arguments: list[str]) -> dict[str, float]:
    """Run a Python process and return its wall and CPU seconds and its peak resident memory (MB)."""
    began = time.monotonic()
    program = MEASURED.format(body=body.strip().replace("\n", "\n    "))
    done = subprocess.run(
        [sys.executable, "-P", "-c", program, *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{body[:80]}: {done.stderr[-500:]}")
    cpu, peak = done.stderr.split()[-2:]
    return {"wall_s": round(time.monotonic() - began, 1), "cpu_s": round(float(cpu), 1), "peak_mb": int(peak)}


RENSA = """
import json, re, sys
from rensa import RMinHash, RMinHashDeduplicator
dedup = RMinHashDeduplicator(0.7, 128, True)
copies = 0
for number, line in enumerate(open(sys.argv[1], encoding="utf-8")):
    words = re.findall(r"\\w+", json.loads(line)["prompt"].lower())
    shingles = [" ".join(words[i : i + 3]) for i in range(max(1, len(words) - 2))]
    minhash = RMinHash(num_perm=128, seed=42)
    minhash.update(shingles)
    copies += not dedup.add(str(number), minhash)
"""


def speed(folder: Path, sizes: list[int], with_rensa: bool, work: Path) -> dict[str, Any]:
    """Time and memory by size."""
    measurements: dict[str, Any] = {}
    for size in sizes:
        path = work / f"problems-{size}.jsonl"
        write_problems(folder, size, path)
        measurements[f"truegold {size}"] = timed(
            TRUEGOLD_SCRIPT, ["dedup", "--data", str(path), "--out", str(work / "out")]
        )
        if with_rensa:
            measurements[f"rensa {size}"] = timed(RENSA, [str(path)])
        path.unlink()
    return measurements


def measure(
    folder: Path, only_odd: bool, sizes: list[int], with_rensa: bool, work: Path, tell: Callable[[str, Any], None]
) -> dict[str, Any]:
    """Everything above; `tell` is called with each part's name and result as it is done."""
    parts: dict[str, Callable[[], Any]] = {
        "rewordings alone": lambda: rewordings(folder, only_odd, work, in_pool=False),
        "rewordings in a pool": lambda: rewordings(folder, only_odd, work, in_pool=True),
        "variants without gold": lambda: variants(folder, only_odd, work, with_gold=False),
        "variants with gold": lambda: variants(folder, only_odd, work, with_gold=True),
        "speed": lambda: speed(folder, sizes, with_rensa, work),
    }
    if with_rensa:
        parts["rensa: rewordings alone"] = lambda: rewordings(folder, only_odd, work, False, rensa_clusters)
        parts["rensa: variants"] = lambda: variants(folder, only_odd, work, False, rensa_clusters)
    measurements = {}
    for name, part in parts.items():
        measurements[name] = part()
        tell(name, measurements[name])
    return measurements


def main() -> None:
    """Measure what the command line asks for, and print it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data_dir", type=Path)
    parser.add_argument("--odd", action="store_true")
    parser.add_argument("--sizes", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--no-rensa", action="store_true")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    if not (args.data_dir / f"{REWORDINGS}.jsonl").exists():
        sys.exit(f"{args.data_dir} has no {REWORDINGS}.jsonl.")

    def tell(name: str, result: Any) -> None:
        print(name, json.dumps(result), flush=True)

    with tempfile.TemporaryDirectory() as folder:
        measurements = measure(args.data_dir, args.odd, args.sizes, not args.no_rensa, Path(folder), tell)
    if args.json:
        args.json.write_text(json.dumps(measurements, indent=1))


if __name__ == "__main__":
    main()
