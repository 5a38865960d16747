r"""Measures a whole curation on rows damaged in twenty ways: 10,000 rows of GSM8K and MATH with solutions, ten a kind.

    python benchmarks/curation_damage.py DATA_DIR [--seed 2] [--wordings last] [--draw labels.jsonl] [--write PAGE.md]

Every kind of damage has four implementations. Rules were written with `design`, and later corrected with `report` and
`fresh`; `last` is only reported. `blocked` rows were dropped or have a flag that excludes them, `advised` rows have
another flag, `repaired` rows were edited by cleaning. --draw writes forty blocking and forty advisory flags for
reading, of damaged and undamaged rows.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from curation_damage_edits import Problem
from curation_damage_wordings import WORDINGS
from curation_damages import DAMAGES
from publishing import publish

from truegold import pipeline
from truegold.verifiers.columns import last_boxed

ROWS = 10_000
EACH = 10
DRAWN = 40
REPAIRS = ("mojibake", "html_tags", "html_entities", "unicode")
"""Edits of cleaning that undo damage."""


def problems(folder: Path) -> list[Problem]:
    """GSM8K train and MATH with solutions, in the order of the files."""
    rows: list[Problem] = []
    for name, question in (("gsm8k_train", "question"), ("math_test_5000", "problem")):
        with (folder / f"{name}.jsonl").open(encoding="utf-8") as lines:
            for line in map(json.loads, lines):
                gold = line.get("answer") or last_boxed(line["solution"])
                if gold is not None:
                    rows.append(Problem(line[question], gold, line["solution"]))
    return rows


def damaged_rows(folder: Path, seed: int, wordings: str) -> tuple[list[Problem], dict[int, str], dict[int, Problem]]:
    """The rows of a run, the kind of damage of each damaged one by its number from 1, and what they were before."""
    rng = random.Random(seed)
    rows = rng.sample(problems(folder), ROWS)
    free = rng.sample(range(ROWS), ROWS)
    kinds: dict[int, str] = {}
    originals: dict[int, Problem] = {}
    for kind, makers in DAMAGES.items():
        planted = 0
        while planted < EACH:
            index = free.pop()
            other = rows[rng.choice(free)]
            damaged = ({**makers, **WORDINGS[kind]})[wordings](rows[index], other, rng)
            if damaged is not None and damaged != rows[index]:
                kinds[index + 1], originals[index + 1] = kind, rows[index]
                rows[index] = damaged
                planted += 1
    return rows, kinds, originals


def measure(folder: Path, seed: int, wordings: str) -> dict[str, Any]:
    """Curate the damaged rows, and return what became of each."""
    rows, kinds, originals = damaged_rows(folder, seed, wordings)
    curated = pipeline.curate([row._asdict() for row in rows])
    blocking: dict[int, list[str]] = defaultdict(list)
    advising: dict[int, list[str]] = defaultdict(list)
    for flag in curated.flags.iter_rows(named=True):
        (blocking if flag["blocks"] else advising)[flag["source_row"]].append(flag["reason"])
    for row in curated.dropped.iter_rows(named=True):
        if row["drop_reason"] != "held_for_review":
            blocking[row["source_row"]].append(row["drop_reason"])
    for row in curated.rejects.iter_rows(named=True):
        blocking[row["row"]].append(row["reason"])
    edits = curated.ledger.filter(curated.ledger["reason"].is_in(REPAIRS))["source_row"]
    repaired = set(edits) & set(originals)
    return {
        "rows": rows,
        "kinds": kinds,
        "blocking": dict(blocking),
        "advising": dict(advising),
        "repaired": repaired,
    }


def report(outcome: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the table of kinds, and the number of flags on undamaged rows."""
    yield "| damage | found | blocked | advised | repaired | by |"
    yield "|---|---|---|---|---|---|"
    kinds: dict[int, str] = outcome["kinds"]
    for kind in DAMAGES:
        numbers = [row_number for row_number, name in kinds.items() if name == kind]
        blocked = [row_number for row_number in numbers if row_number in outcome["blocking"]]
        advised = [n for n in numbers if n in outcome["advising"] and n not in outcome["blocking"]]
        repaired = [row_number for row_number in numbers if row_number in outcome["repaired"]]
        any_way = {*blocked, *advised, *repaired}
        reasons = Counter(
            reason for n in numbers for reason in {*outcome["blocking"].get(n, ()), *outcome["advising"].get(n, ())}
        )
        yield (
            f"| {kind} | {len(any_way)} of {len(numbers)} | {len(blocked)} | {len(advised)} | {len(repaired)} |"
            f" {', '.join(f'{reason} {count}' for reason, count in reasons.most_common(4))} |"
        )
    for name in ("blocking", "advising"):
        flagged: dict[int, list[str]] = outcome[name]
        hits = sum(row_number in kinds for row_number in flagged)
        others = Counter(reason for n, reasons in flagged.items() if n not in kinds for reason in set(reasons))
        yield ""
        yield (
            f"{name}: {len(flagged)} rows, {hits} of them damaged; on the others: "
            + ", ".join(f"{reason} {count}" for reason, count in others.most_common())
        )


def draw(outcome: dict[str, Any], seed: int) -> Iterator[dict[str, Any]]:
    """Rows to read, without the reason: forty with a blocking flag, forty with an advisory one."""
    rng = random.Random(seed)
    for name in ("blocking", "advising"):
        pairs = [(row_number, reason) for row_number, reasons in sorted(outcome[name].items()) for reason in reasons]
        for row_number, reason in rng.sample(pairs, min(DRAWN, len(pairs))):
            yield {"tier": name, "row": row_number, **outcome["rows"][row_number - 1]._asdict(), "hidden": reason}


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="DATA_DIR")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--wordings", choices=("design", "report", "fresh", "last"), default="design")
    parser.add_argument("--draw", type=Path, help="write the rows to read to this file")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--write", type=Path)
    arguments = parser.parse_args()
    outcome = measure(arguments.data, arguments.seed, arguments.wordings)
    if arguments.draw:
        lines = (json.dumps(entry, ensure_ascii=False) + "\n" for entry in draw(outcome, arguments.seed))
        arguments.draw.write_text("".join(lines), encoding="utf-8")
    lines = list(report(outcome))
    publish(lines, "\n".join(lines), arguments.json, arguments.write, "Curation of damaged rows")


if __name__ == "__main__":
    main()
