"""Measures the rules that need no model: the share of ill-posed questions that they find, false alarms on intact ones.

    python benchmarks/curation_rules.py DATA_DIR

Ill-posed questions: mip_gsm8k.jsonl (a premise removed, with and without the old solution), mip_svamp.jsonl (the
question of another story), umwp.jsonl (answerable or not), valimath.jsonl (labels of people). Intact questions:
gsm8k_train.jsonl, math_train_7474.jsonl, math500.jsonl, svamp.jsonl, all rows, with solutions if they have them. A flag
on an intact question counts as a false alarm, although it may be right. Missing files are skipped. Rules were developed
on rows whose sha256(file name + id) begins with an even hex digit; "odd" is the other half.

The files come, as JSON Lines, from github.com/MingLiiii/MiP-Overthinking (mip_*), Yuki-Asuuna/UMWP, scuuy/MathQ-Verify
(ValiMath), openai/grade-school-math (GSM8K, its answer in a column of its own), hendrycks/math (MATH, MATH-500 as
HuggingFaceH4 has it; answers taken out of the box) and arkilpatel/SVAMP.
"""

from __future__ import annotations

import argparse
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curation_suspicion import read

from truegold.pipeline.flag.rules import load_detectors
from truegold.pipeline.tables.measured_flags import MEASURED

SHOWN = 6
"""Reasons listed for each file."""
UNKNOWN = "1"
"""Gold where a file has none for its ill-posed questions: it must not tell them apart."""


@dataclass(frozen=True)
class Case:
    """One question. ill: whether something is wrong with it."""

    key: str
    prompt: str
    gold: str | None
    solution: str | None
    ill: bool


def gsm8k_gold(solution: str) -> str:
    """Return the gold at the end of a solution of GSM8K."""
    return solution.rpartition("####")[2].strip()


def mip_gsm8k(rows: Iterable[dict[str, Any]], with_solution: bool) -> Iterator[Case]:
    """Yield each question whole and with a premise removed."""
    for row in rows:
        gold, solution = gsm8k_gold(row["answer"]), row["answer"] if with_solution else None
        yield Case(row["question"], row["question"], gold, solution, False)
        yield Case(row["question"], row["insufficient_question"], gold, solution, True)


def mip_svamp(rows: Iterable[dict[str, Any]]) -> Iterator[Case]:
    """Yield questions that belong to another story."""
    for row in rows:
        yield Case(row["insufficient_question"], row["insufficient_question"], number_text(row["answer"]), None, True)


def umwp(rows: Iterable[dict[str, Any]]) -> Iterator[Case]:
    """Yield questions that can be answered or not."""
    for row in rows:
        yield Case(str(row["id"]), row["question"], UNKNOWN, None, not row["answerable"])


def valimath(rows: Iterable[dict[str, Any]]) -> Iterator[Case]:
    """Yield questions that people found valid or not."""
    for row in rows:
        yield Case(str(row["question_no"]), row["question"], UNKNOWN, None, not row["gt"])


def intact(rows: Iterable[dict[str, Any]], prompt: str, gold: str, solution: str | None) -> Iterator[Case]:
    """Yield the questions of a set as they are."""
    for row in rows:
        yield Case(row[prompt], row[prompt], str(row[gold]), row[solution] if solution else None, False)


def svamp(rows: Iterable[dict[str, Any]]) -> Iterator[Case]:
    """Yield SVAMP's questions with their stories."""
    for row in rows:
        yield Case(row["ID"], f"{row['Body'].rstrip('.')}. {row['Question']}", number_text(row["Answer"]), None, False)


def number_text(value: float) -> str:
    """Return a number as gold has it."""
    return f"{value:g}"


SOURCES = (
    ("mip_gsm8k.jsonl", "bare question", lambda rows: mip_gsm8k(rows, False)),
    ("mip_gsm8k.jsonl", "with solution", lambda rows: mip_gsm8k(rows, True)),
    ("mip_svamp.jsonl", "", mip_svamp),
    ("umwp.jsonl", "", umwp),
    ("valimath.jsonl", "", valimath),
    ("gsm8k_train.jsonl", "bare question", lambda rows: intact(rows, "question", "answer", None)),
    ("gsm8k_train.jsonl", "with solution", lambda rows: intact(rows, "question", "answer", "solution")),
    ("math_train_7474.jsonl", "", lambda rows: intact(rows, "problem", "answer", None)),
    ("math500.jsonl", "", lambda rows: intact(rows, "problem", "answer", None)),
    ("svamp.jsonl", "", svamp),
)


def is_odd(file: str, key: str) -> bool:
    """Return whether a row is in the odd half."""
    return int(hashlib.sha256(f"{file}{key}".encode()).hexdigest()[0], 16) % 2 == 1


def reasons(case: Case) -> list[tuple[str, bool]]:
    """Reason and whether it blocks, of each finding."""
    row = {
        "id": case.key,
        "prompt": case.prompt,
        "gold": case.gold,
        "solution": case.solution,
        "domain": "math",
        "verifier": "math",
        "verifier_args": "{}",
    }
    return [
        (finding.reason, finding.reason in MEASURED and MEASURED[finding.reason].blocks)
        for rule in load_detectors(["all"])
        for finding in rule.detect(row)
    ]


def report(file: str, cases: Iterable[Case]) -> Iterator[str]:
    """Yield the lines of the report on one file."""
    seen = [(case, is_odd(file, case.key), reasons(case)) for case in cases]
    ill = [entry for entry in seen if entry[0].ill]
    good = [entry for entry in seen if not entry[0].ill]
    for name, part in (("ill-posed", ill), ("intact", good)):
        if not part:
            continue
        odd = [entry for entry in part if entry[1]]
        yield (
            f"  {name:<9} {len(part):>5}: flagged {share(part)} (odd {share(odd)}),"
            f" held for review {share([e for e in part if any(blocks for _, blocks in e[2])], len(part))}"
        )
        counts = Counter(reason for _, _, findings in part for reason in {name for name, _ in findings})
        if counts:
            yield "            " + ", ".join(f"{reason} {n}" for reason, n in counts.most_common(SHOWN))
    hits, false = (sum(bool(findings) for _, _, findings in part) for part in (ill, good))
    if ill and good and hits:
        yield f"  precision {hits / (hits + false):.2f} at recall {hits / len(ill):.2f}"


def share(part: list[tuple[Case, bool, list[tuple[str, bool]]]], row_count: int | None = None) -> str:
    """Return how many cases are flagged, and their share of all or of `row_count`."""
    hits = sum(bool(findings) for _, _, findings in part)
    total = row_count or len(part)
    return f"{hits} = {hits / total:.1%}" if total else "-"


def main() -> None:
    """Print the report on each file that is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data_dir", type=Path)
    folder: Path = parser.parse_args().data_dir
    for file, note, cases in SOURCES:
        path = folder / file
        print(f"\n{file}{f' ({note})' if note else ''}")
        for line in report(file, cases(read(path))) if path.exists() else ["  not there: left out"]:
            print(line)


if __name__ == "__main__":
    main()
