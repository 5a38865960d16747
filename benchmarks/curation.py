"""Measures curation against labelled corpora, all parts in one run: suspicion, rules, deduplication, decontamination.

    python benchmarks/curation.py DATA_DIR [--only PART ...] [--odd] [--sizes N ...] [--json FILE]
                                  [--write PAGE.md]

DATA_DIR holds gsm8k_platinum.jsonl, gsm8k_test_rephrased.jsonl and so on; a part whose files are missing says so.
Parts: suspicion, label_noise, rules, dedup, decontamination; each is also a program of its own (`curation_PART.py`),
with its definitions at the top. --odd: deduplication and decontamination on those pairs alone that no weight or
threshold was chosen on.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import curation_decontamination
import curation_dedup
import curation_label_noise
import curation_rules
import curation_suspicion
from publishing import publish, say

PARTS = ("suspicion", "label_noise", "rules", "dedup", "decontamination")
POOL = 100_000
COMMANDS = """```
python benchmarks/curation.py DATA_DIR --write benchmarks/results/curation.md
```"""


def suspicion(folder: Path) -> Iterator[str]:
    """Yield the report on suspicion."""
    for name, report in (
        (curation_suspicion.GSM8K, curation_suspicion.gsm8k),
        (curation_suspicion.MMLU, curation_suspicion.mmlu),
    ):
        yield f"{name}:"
        yield from report(curation_suspicion.read(folder / name)) if (folder / name).exists() else ["not there"]
        yield ""


def rules(folder: Path) -> Iterator[str]:
    """Yield the report on rules."""
    for file, note, cases in curation_rules.SOURCES:
        yield f"{file}{f' ({note})' if note else ''}"
        path = folder / file
        yield from (
            curation_rules.report(file, cases(curation_suspicion.read(path))) if path.exists() else ["  not there"]
        )


def pairs(measurements: dict[str, Any]) -> Iterator[str]:
    """Numbers by name, one line for each name."""
    for name, value in measurements.items():
        if isinstance(value, dict) and any(isinstance(inner, dict) for inner in value.values()):
            yield f"{name}:"
            yield from (f"  {line}" for line in pairs(value))
        else:
            yield f"{name}: {json.dumps(value, ensure_ascii=False)}"


def measure(arguments: argparse.Namespace) -> dict[str, list[str]]:
    """The lines of each part."""
    folder: Path = arguments.data

    def dedup() -> Iterator[str]:
        if not (folder / f"{curation_dedup.REWORDINGS}.jsonl").exists():
            return iter([f"{curation_dedup.REWORDINGS}.jsonl is not there"])
        with tempfile.TemporaryDirectory() as work:
            measured = curation_dedup.measure(
                folder, arguments.odd, arguments.sizes, True, Path(work), lambda name, _: say(f"dedup: {name}")
            )
        return pairs(measured)

    def decontamination() -> Iterator[str]:
        with tempfile.TemporaryDirectory() as work:
            return pairs(curation_decontamination.measure(folder, POOL, arguments.odd, Path(work)))

    parts: dict[str, Callable[[], Iterator[str]]] = {
        "suspicion": lambda: suspicion(folder),
        "label_noise": lambda: curation_label_noise.report(
            curation_label_noise.load(folder), curation_label_noise.SEEDS
        ),
        "rules": lambda: rules(folder),
        "dedup": dedup,
        "decontamination": decontamination,
    }
    measurements: dict[str, list[str]] = {}
    for name in (name for name in PARTS if name in arguments.only):
        began = time.monotonic()
        measurements[name] = list(parts[name]())
        say(f"{name}: {time.monotonic() - began:.0f} s")
    return measurements


def report(measurements: dict[str, list[str]], odd: bool) -> str:
    """Return the page as Markdown."""
    sections = [COMMANDS]
    for name, lines in measurements.items():
        half = " (odd half)" if odd and name in ("dedup", "decontamination") else ""
        sections.append(f"## {name.capitalize()}{half}\n\n```\n" + "\n".join(lines).rstrip() + "\n```")
    return "\n\n".join(sections)


def main() -> None:
    """Measure what the command line asks for, and write it down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="DATA_DIR")
    parser.add_argument("--only", nargs="+", default=list(PARTS), choices=PARTS, metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--odd", action="store_true", help="pairs that nothing was chosen on")
    parser.add_argument("--sizes", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--json", type=Path, help="write the lines of each part to this file")
    parser.add_argument("--write", type=Path, help="write the report into this Markdown file")
    arguments = parser.parse_args()
    if not arguments.data.is_dir():
        sys.exit(f"{arguments.data} is not a folder. Give the folder that holds gsm8k_platinum.jsonl and so on.")
    measurements = measure(arguments)
    text = report(measurements, arguments.odd)
    publish(measurements, text, arguments.json, arguments.write, "Curation against labelled corpora")


if __name__ == "__main__":
    main()
