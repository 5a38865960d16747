"""Measures cleaning on real problems: how often each edit and each rule of `clean` fires, and hits to look at.

    python benchmarks/curation_cleaning.py DATA_DIR                       a table over all *.jsonl of the folder
    python benchmarks/curation_cleaning.py DATA_DIR --show html_tags 50   fifty random hits with what was changed

A file's prompt and gold are taken from the usual columns (PROMPTS, GOLDS); files of programs are left out. Rows whose
sha256(file name + id) begins with an even hex digit are those that patterns were developed on; "odd" is the other half,
where they are counted. Also checked of every row: cleaning it again changes nothing, and undoing the edits gives it
back.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from truegold.pipeline.clean import EDITS
from truegold.pipeline.clean.stage import NOTES, Cleaner, clean_row
from truegold.pipeline.config.stages import CleanConfig
from truegold.pipeline.flag.rules import BUILT_IN
from truegold.pipeline.tables.rows import Row, dump_json

PROMPTS = ("prompt", "question", "problem", "input", "content", "original_text", "insufficient_question")
GOLDS = ("gold_original", "answer", "target", "Answer", "ans", "correct", "label")
RULES = ("choice_remnant", "yes_no_answer", "answer_in_prompt", "solution_in_prompt")
PROGRAMS = ("tests", "test", "traces")
SHOWN_CHARS = 100
HALVES = ("even", "odd")


@dataclass
class Measured:
    """Counts of one half of the rows; `hits` by reason: (place, before, after or evidence)."""

    rows: int = 0
    seconds: float = 0.0
    languages: Counter[str] = field(default_factory=Counter)
    gold_types: Counter[str] = field(default_factory=Counter)
    files: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    hits: dict[str, list[tuple[str, str, str]]] = field(default_factory=lambda: defaultdict(list))


def main() -> None:
    """Print the table, or examples of one edit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--show", nargs=2, metavar=("REASON", "N"), help="hits of the even half")
    options = parser.parse_args()
    measured = measure(options.data)
    if options.show:
        reason, count = options.show
        hits = measured["even"].hits[reason]
        for location, before, after in random.Random(0).sample(hits, min(int(count), len(hits))):
            print(f"{location}\n    {before!r}\n    {after!r}")
    else:
        print(table(measured))


def measure(folder: Path) -> dict[str, Measured]:
    """Clean every row and run the rules on it. AssertionError where a second cleaning or an undoing goes wrong."""
    config = CleanConfig()
    cleaner = Cleaner(config)
    measured = {half: Measured() for half in HALVES}
    for half, row in rows(folder):
        half_counts = measured[half]
        started = time.process_time()
        cleaned, changes = clean_row(row, config, cleaner)
        half_counts.seconds += time.process_time() - started
        half_counts.rows += 1
        location = f"{row['source']}:{row['source_row']}"
        again, more = clean_row(cleaned, config, cleaner)
        assert (again, more) == (cleaned, []), f"{location}: cleaned twice, it is another row"
        for edit in {edit.reason: edit for _, edit in changes}.values():  # a row counts once
            _count(half_counts, edit.reason, row, *_around(edit.before, edit.after))
        assert _undone(cleaned, changes) == row, f"{location}: undoing its edits does not give it back"
        for name in RULES:
            for finding in BUILT_IN[name].detect(cleaned):
                _count(half_counts, finding.reason, row, cleaned["prompt"][-SHOWN_CHARS:], dump_json(finding.evidence))
        notes = json.loads(cleaned["meta"])[NOTES]
        half_counts.languages[notes["language"]] += 1
        half_counts.gold_types[notes.get("gold_type", "none")] += 1
    return measured


def rows(folder: Path) -> Iterator[tuple[str, Row]]:
    """The half and the row of every problem in the folder's files."""
    for path in sorted(folder.glob("*.jsonl")):
        with path.open(encoding="utf-8") as lines:
            for line_number, line in enumerate(lines, start=1):
                values = json.loads(line)
                prompt = _prompt(values)
                if prompt is None or any(name in values for name in PROGRAMS):
                    continue
                own_id = str(values.get("id", values.get("idx", line_number - 1)))
                digest = hashlib.sha256((path.name + own_id).encode()).hexdigest()
                yield HALVES[int(digest[0], 16) % 2], _row(path.name, line_number, prompt, values)


def _prompt(values: Mapping[str, Any]) -> str | None:
    value = next((values[name] for name in PROMPTS if values.get(name)), None)
    if isinstance(value, list):
        value = value[-1].get("content") if value and isinstance(value[-1], dict) else None
    return value if isinstance(value, str) else None


def _row(source: str, line_number: int, prompt: str, values: Mapping[str, Any]) -> Row:
    model = values.get("reward_model")
    gold = model.get("ground_truth") if isinstance(model, dict) else None
    if gold is None:
        gold = next((values[name] for name in GOLDS if values.get(name) is not None), None)
    if isinstance(gold, list):
        gold = gold[0] if gold else None
    solution = next((values[name] for name in ("solution", "gold_solution", "rationale") if values.get(name)), None)
    return {
        "id": "0" * 20,
        "prompt": prompt,
        "gold": None if gold is None else str(gold),
        "domain": "math",
        "verifier": "math",
        "verifier_args": "{}",
        "solution": solution if isinstance(solution, str) else None,
        "source": source,
        "source_row": line_number,
        "split": "train",
        "meta": "{}",
    }


def _undone(cleaned: Row, changes: list[Any]) -> Row:
    row = {**cleaned, "meta": "{}"}
    for column, edit in reversed(changes):
        row[column] = edit.before
    return row


def _count(half_counts: Measured, reason: str, row: Row, before: str, after: str) -> None:
    half_counts.files[reason][row["source"]] += 1
    half_counts.hits[reason].append((f"{row['source']}:{row['source_row']}", before, after))


def _around(before: str, after: str) -> tuple[str, str]:
    """The two texts from shortly before their first difference on."""
    same = next(
        (i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after))
    )
    start = max(0, same - 20)
    return before[start : start + SHOWN_CHARS], after[start : start + SHOWN_CHARS]


def table(measured: Mapping[str, Measured]) -> str:
    """Counts by reason and half, with the files that have most of them."""
    even, odd = (measured[half] for half in HALVES)
    lines = ["| reason | even | odd | most in |", "|---|---|---|---|"]
    for reason in (*EDITS, *RULES):
        counts = [sum(half.files[reason].values()) for half in (even, odd)]
        most = (even.files[reason] + odd.files[reason]).most_common(3)
        named = ", ".join(f"{Path(name).stem} {count:,}" for name, count in most)
        lines.append(f"| {reason} | {counts[0]:,} | {counts[1]:,} | {named} |")
    rows_ = even.rows + odd.rows
    micro = 1e6 * (even.seconds + odd.seconds) / max(rows_, 1)
    lines += ["", f"{even.rows:,} even and {odd.rows:,} odd rows, {micro:.0f} µs of CPU time each."]
    for name, counted in (("Languages", even.languages + odd.languages), ("Golds", even.gold_types + odd.gold_types)):
        lines.append(f"{name}: " + ", ".join(f"{key} {count:,}" for key, count in counted.most_common()) + ".")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
