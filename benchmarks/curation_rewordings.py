"""Plants rewordings in real corpora, with another gold or with numbers in words, and counts how many are found.

    python benchmarks/curation_rewordings.py DATA_DIR [--json FILE]

DATA_DIR is laid out like the labelled corpora. All numbers are reported for halves: rows with an even hash, on which
weights and thresholds were chosen, and all other rows.

- Conflicts: rewordings with a gold that no row has, in MATH (`tests/data/dedup/math_rewordings.jsonl`, written by hand;
  clauses in another order and synonyms, by rule) and in GSM8K (by a language model). A conflict is found if the
  rewording is in one cluster with its original and flagged. Conflicts among the corpus's own rows are reported too.
- Numbers: problems with at least three numbers, all written in words; found if both are in one cluster.
- Read pairs: pairs that a person labelled without knowing truegold's result, drawn among similar ones
  (`tests/data/dedup/read_pairs.jsonl`) and among those that truegold reported (`reported_pairs.jsonl`). Pairs that
  truegold calls the same problem are right or wrong by these labels; the whole corpus is deduplicated.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from curation_decontamination import is_odd, rows

from truegold.pipeline.near.confirmation import Cuts, add_copies, confirm_star_links
from truegold.pipeline.near.corpus import Corpus, CorpusBuilder
from truegold.pipeline.near.duplicates import find_duplicates
from truegold.pipeline.near.measures import Comparer
from truegold.pipeline.near.related_pairs import find_links
from truegold.pipeline.near.squashed import SquashedKeys
from truegold.verifiers.columns import last_boxed

LABELS = Path(__file__).parent.parent / "tests" / "data" / "dedup"
OTHER_GOLD = 70_001
"""Planted rewordings have golds from here on, which no row of the corpora has."""
PLANTED = 200


@dataclass(frozen=True)
class Problem:
    """A row of a corpus."""

    key: str
    text: str
    gold: str | None


def load(folder: Path, corpus: str) -> list[Problem]:
    """The rows of a corpus, by `file:position`."""
    files: dict[str, tuple[tuple[str, ...], str, Callable[[dict[str, Any]], Any]]] = {
        "math": (
            ("math_train_7474", "math_test_5000"),
            "problem",
            lambda row: row.get("answer") or boxed(row.get("solution")),
        ),
        "ape210k": (("ape210k_test", "ape210k_valid"), "original_text", lambda row: row["ans"]),
        "college": (("qwen_college_math",), "question", lambda row: row["answer"]),
        "gsm8k": (("gsm8k_train",), "question", lambda row: row["answer"]),
        "carp": (("qwen_carp_en",), "content", lambda row: row["answer"]),
        "cmath": (("qwen_cmath",), "question", lambda row: row["answer"]),
        "olympiad": (("olympiad_bench_675",), "problem", lambda row: row["answer"]),
        "mawps": (("qwen_mawps",), "input", lambda row: row["target"]),
        "asdiv": (("qwen_asdiv",), "question", lambda row: row["answer"].split(" (")[0]),
        "bigmath": (("bigmath_tinyv_5k",), "prompt", lambda row: row["reward_model"]["ground_truth"]),
    }
    names, text, gold = files[corpus]
    return [
        Problem(f"{name}:{position}", problem_text(row, text), None if gold(row) is None else str(gold(row)))
        for name in names
        for position, row in enumerate(rows(folder, name))
    ]


def problem_text(row: dict[str, Any], column: str) -> str:
    """The problem of a row without what some corpora write around it."""
    text = row[column] if isinstance(row[column], str) else row[column][-1]["content"]
    return " ".join(filter(None, (row.get("body"), text.split(" Let's think step by step")[0])))


def boxed(solution: str | None) -> str | None:
    """The last boxed answer of a worked solution."""
    return last_boxed(solution) if solution else None


@dataclass(frozen=True)
class Outcome:
    """The rows and clusters of a list of problems after deduplication."""

    cluster: list[int]
    conflict: list[bool]
    copies_conflict: list[bool]
    kept_for: list[int]
    text: list[int]


def deduplicated(problems: list[Problem], confidence: float = 0.5, conflict_confidence: float = 0.71) -> Outcome:
    """Deduplicate as `truegold dedup` does; with other probabilities as a run does."""
    builder, keys = CorpusBuilder(), SquashedKeys()
    builder.listen_to_texts(keys.add)
    builder.add([each.text for each in problems], [each.gold for each in problems], [0] * len(problems))
    corpus: Corpus = builder.finish()
    comparer = Comparer(corpus.features)
    links = find_links(corpus.features, comparer)
    links = confirm_star_links(links, corpus, comparer, Cuts(confidence, conflict_confidence))
    links = add_copies(links, keys.copies(corpus.texts.read), corpus)
    duplicates = find_duplicates(corpus, links)
    return Outcome(
        duplicates.cluster.tolist(),
        duplicates.conflict.tolist(),
        duplicates.copies_conflict.tolist(),
        duplicates.kept_for.tolist(),
        corpus.text.tolist(),
    )


def reordered(text: str) -> str | None:
    """Return the text with the question before the premises, or None if there is only one sentence."""
    sentences = re.split(r"(?<=[.?!])\s+(?=[A-Z$])", text.strip())
    if len(sentences) < 2 or "[asy]" in text:
        return None
    return " ".join([sentences[-1], *sentences[:-1]])


SYNONYMS = (
    ("largest", "greatest"), ("smallest", "least"), ("Find", "Determine"), ("Compute", "Calculate"),
    ("What is the value of", "Evaluate"), ("How many", "What is the number of"), ("distinct", "different"),
    ("Suppose that", "Assume that"), ("Suppose", "Assume"), ("selected", "chosen"), ("probability", "chance"),
    ("Simplify", "Write in simplest form"), ("Evaluate", "Find the value of"), ("sum of", "total of"),
    ("integer", "whole number"), ("is divisible by", "is a multiple of"), ("Let", "Say that"),
)  # fmt: skip


def synonymous(text: str) -> str | None:
    """Return the text with words replaced by synonyms, or None if it has no word with a synonym."""
    changed = text
    for word, other in SYNONYMS:
        changed = re.sub(rf"\b{word}\b", other, changed)
    return None if changed == text or "[asy]" in text else changed


def plantings(folder: Path) -> Iterator[tuple[str, str, list[tuple[Problem, str]]]]:
    """Kinds of rewordings: a name, the corpus that they are planted in, and originals with what they become."""
    math = load(folder, "math")
    by_key = {problem.key: problem for problem in math}
    written = [json.loads(line) for line in (LABELS / "math_rewordings.jsonl").read_text().splitlines()[1:]]
    for half in ("even", "odd"):
        yield (
            f"MATH, reworded by hand ({half})",
            "math",
            [(by_key[row["original"]], row["text"]) for row in written if row["half"] == half],
        )
    draw = random.Random(4711)
    for name, change in (("clauses in another order", reordered), ("synonyms", synonymous)):
        made = [(problem, text) for problem in math if problem.gold and (text := change(problem.text)) is not None]
        yield f"MATH, {name}", "math", draw.sample(made, min(PLANTED, len(made)))
    pairs = rows(folder, "gsm8k_test_rephrased")
    originals = [(Problem(f"rephrased:{row['id']}", row["original"], "1"), row["rephrased"]) for row in pairs]
    yield "GSM8K, reworded by a language model", "gsm8k", draw.sample(originals, min(PLANTED, len(originals)))


def conflicts(folder: Path, kind: str, corpus: str, planted: list[tuple[Problem, str]]) -> dict[str, Any]:
    """Return the found planted rewordings, by half, and the number of conflicts among the corpus's own rows."""
    base = load(folder, corpus)
    known = {problem.key for problem in base}
    base += [problem for problem, _ in planted if problem.key not in known]
    copies = [Problem(f"planted:{n}", text, str(OTHER_GOLD + n)) for n, (_, text) in enumerate(planted)]
    outcome = deduplicated(base + copies)
    position = {problem.key: n for n, problem in enumerate(base)}
    linked: dict[str, list[bool]] = {"even": [], "odd": []}
    for n, (original, _) in enumerate(planted):
        first, second = position[original.key], len(base) + n
        half = "odd" if is_odd("reworded" + original.key) else "even"
        linked[half].append(outcome.cluster[first] == outcome.cluster[second] and outcome.conflict[second])
    clusters = Counter(c for c, flagged in zip(outcome.cluster[: len(base)], outcome.conflict, strict=False) if flagged)
    own_conflicts = sum(count > 1 for count in clusters.values())
    shares = {half: f"{sum(values)}/{len(values)}" for half, values in linked.items()}
    return {"kind": kind, **shares, "conflicts among the corpus's own rows": own_conflicts}


UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
    " eighteen nineteen".split()
)
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()


def in_words(value: int) -> str:
    """A number below a billion in English words: 1,205 is "one thousand, two hundred and five"."""
    if value < 20:
        return UNITS[value]
    if value < 100:
        rest = value % 10
        return TENS[value // 10 - 2] + (f"-{UNITS[rest]}" if rest else "")
    for scale, name in ((10**6, "million"), (1000, "thousand"), (100, "hundred")):
        if value >= scale:
            rest = value % scale
            joint = " and " if rest < 100 else ", "
            return f"{in_words(value // scale)} {name}" + (f"{joint}{in_words(rest)}" if rest else "")
    raise ValueError(value)


def number_in_words(match: re.Match[str]) -> str:
    """Digits in words, with a fraction, decimals, an ordinal ending, a dollar or a percent sign."""
    whole, decimals, ordinal = match["whole"].replace(",", ""), match["decimals"], match["ordinal"]
    if len(whole) > 9 or ordinal:
        return match[0]
    words = in_words(int(whole))
    if decimals and (not match["dollar"] or decimals.strip("0")):
        words += " point " + " ".join(UNITS[int(digit)] for digit in decimals)
    return words + (" dollars" if match["dollar"] else "") + (" percent" if match["percent"] else "")


DIGITS = re.compile(
    r"(?<![\w.,/:-])(?P<dollar>\$)?(?P<whole>\d{1,3}(?:,\d{3})+|\d+)(?:\.(?P<decimals>\d+))?(?P<ordinal>st|nd|rd|th)?"
    r"(?P<percent>%)?(?![\d/:])(?!-\d)"
)
HAN = "零一二三四五六七八九"


def in_chinese(value: int) -> str:
    """A number below a hundred million in Chinese numerals."""
    if value >= 10**4:
        rest = value % 10**4
        return (
            in_chinese(value // 10**4) + "万" + ("零" if 0 < rest < 1000 else "") + (in_chinese(rest) if rest else "")
        )
    text, zero = "", False
    for scale, name in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit = value // scale % 10
        if digit:
            text += ("零" if zero and text else "") + (HAN[digit] + name)
        zero = not digit
    return (text[1:] if text.startswith("一十") else text) or "零"


def number_in_chinese(match: re.Match[str]) -> str:
    """Digits in Chinese numerals, with decimals and a percent sign."""
    words = in_chinese(int(match["whole"]))
    if match["decimals"]:
        words += "点" + "".join(HAN[int(digit)] for digit in match["decimals"])
    return f"百分之{words}" if match["percent"] else words


CHINESE_DIGITS = re.compile(
    r"(?<![\d./(a-zA-Z])(?P<whole>\d{1,7})(?:\.(?P<decimals>\d+))?(?P<percent>%)?(?![\d/)a-zA-Z*])"
)


def numbers(folder: Path) -> dict[str, dict[str, str]]:
    """Problems with three numbers or more and their copies in words, and how many of them are joined, by half."""
    shares: dict[str, dict[str, str]] = {}
    for name, corpus, pattern, change in (
        ("English (GSM8K)", "gsm8k", DIGITS, number_in_words),
        ("Chinese (ape210k)", "ape210k", CHINESE_DIGITS, number_in_chinese),
    ):
        # Nobody writes the numbers of a formula in words.
        problems = [
            each
            for each in load(folder, corpus)
            if len(pattern.findall(each.text)) >= 3 and not re.search(r"[=+*:：(^]|\d/|\d[-–]", each.text)
        ]
        sample = random.Random(99).sample(problems, 300)
        copies = [Problem(f"words:{each.key}", pattern.sub(change, each.text), each.gold) for each in sample]
        outcome = deduplicated(sample + copies)
        joined: dict[str, list[bool]] = {"even": [], "odd": []}
        for n, each in enumerate(sample):
            half = "odd" if is_odd(each.key) else "even"
            joined[half].append(outcome.cluster[n] == outcome.cluster[len(sample) + n])
        shares[name] = {half: f"{sum(values)}/{len(values)}" for half, values in joined.items()}
    return shares


def read_pairs(folder: Path, file: str) -> dict[str, dict[str, int]]:
    """Of the labelled pairs of each corpus and half, how many drops and conflicts are right and wrong."""
    lines = (LABELS / file).read_text(encoding="utf-8").splitlines()[1:]
    labels = [json.loads(line) for line in lines]
    counts: dict[str, Counter[str]] = {}
    for corpus in sorted({label["corpus"] for label in labels}):
        problems = load(folder, corpus)
        position = {problem.key: n for n, problem in enumerate(problems)}
        outcome = deduplicated(problems)
        for label in labels:
            if label["corpus"] != corpus:
                continue
            left, right = position[label["left"]], position[label["right"]]
            count = counts.setdefault(f"{corpus} {label['half']}", Counter())
            same = {True: "same", False: "not same", None: "a matter of taste"}[label["same"]]
            count[same] += 1
            if outcome.cluster[left] == outcome.cluster[right]:
                count[f"{verdict(outcome, left, right)}, {same}"] += 1
    return {name: dict(count) for name, count in counts.items()}


def verdict(outcome: Outcome, left: int, right: int) -> str:
    """Return the result for two rows of one cluster: drop, undecided, or a conflict."""
    if outcome.kept_for[left] == outcome.kept_for[right]:
        return "drop"
    if not outcome.conflict[right]:
        return "undecided"
    return "conflict of copies" if outcome.copies_conflict[right] else "conflict of rewordings"


def main() -> None:
    """Measure what the command line asks for, and print it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data_dir", type=Path)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    if not (args.data_dir / "math_train_7474.jsonl").exists():
        sys.exit(f"{args.data_dir} has no math_train_7474.jsonl.")
    figures: dict[str, Any] = {"numbers in words": numbers(args.data_dir)}
    print(json.dumps(figures), flush=True)
    figures["conflicts"] = []
    for planting in plantings(args.data_dir):
        figures["conflicts"].append(conflicts(args.data_dir, *planting))
        print(json.dumps(figures["conflicts"][-1]), flush=True)
    for file in ("read_pairs.jsonl", "reported_pairs.jsonl"):
        figures[file] = read_pairs(args.data_dir, file)
        for name, count in figures[file].items():
            print(file, name, json.dumps(count), flush=True)
    if args.json:
        args.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    np.seterr(all="ignore")
    main()
