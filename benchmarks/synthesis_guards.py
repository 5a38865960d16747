"""Measures the guards of synthesis: how many planted leaks they drop, and how many solutions that used no context.

    python benchmarks/synthesis_guards.py [--outputs FILE.jsonl] [--json FILE] [--write PAGE.md]

Leaks are those of `tests/data/leaks.jsonl`, without log-probabilities. Solutions are GSM8K's, AQuA's rationales and the
answers of four GPT-3 systems to GSM8K, from the folder TRUEGOLD_DATA; their guidance is the feedback of a wrong answer,
for GPT-3 the gold's own solution too. FILE.jsonl has outputs of chat and thinking models, which are not in this
repository: {"set": ..., "problem": ..., "response": ..., "failed": ...} in each line, `failed` a wrong answer to the
same problem or null. Half of each set, by its hash, stands for the bare samples of a profile; the other is counted:

    as a whole, and as an opening of two sentences with a derivation behind it
    with the built-in table of openings alone, and with the habits of the first half
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from publishing import publish

from truegold.synth.config import LeakConfig
from truegold.synth.leaks import BareSample, Habits, Sources, check_output, find_in_bare, learn_habits
from truegold.synth.records import Weights

LEAKS = Path(__file__).parents[1] / "tests" / "data" / "leaks.jsonl"
DATA = Path(os.environ.get("TRUEGOLD_DATA", "."))
SAME = Weights(1.0, 1.0, 1.0)
"""What is as likely without the context as with it: the texts alone decide."""
CONFIG = LeakConfig()
FEEDBACK = "Its final answer was read as {failed}, which is not right."
DERIVATION = "\n1 + 1 = 2. \\boxed{2}"
_SENTENCE = re.compile(r"(?<=[.!?。！？\n])\s*")
HALVES = ("even", "odd")


def is_dropped(
    output: str,
    problem: str,
    *,
    guidance: str = "",
    attempt: str = "",
    failed: str | None = None,
    answer: str | None = None,
    habits: Habits | None = None,
) -> bool:
    """Return whether the guards drop an output."""
    sources = Sources(problem, guidance, attempt, failed)
    report = check_output(output, sources, answer, SAME, CONFIG, habits or Habits(), is_program=False)
    return bool(report.reasons)


def half(text: str) -> int:
    """Return in which half a text lies: 0 or 1."""
    return hashlib.sha256(text.encode()).digest()[0] % 2


def count_leaks() -> dict[str, dict[str, Any]]:
    """Return of each kind of planted leaks how many there are and how many are caught, by half where both are told."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for leak in map(json.loads, LEAKS.read_text().splitlines()):
        way = leak["way"]
        if "," not in way and way not in ("clean", "opening"):
            way = f"{way}, {HALVES[half(leak['output'])]} half"
        caught = is_dropped(
            leak["output"],
            leak["problem"],
            guidance=leak["guidance"],
            attempt=leak["attempt"],
            failed=leak.get("failed"),
            answer=leak["answer"],
        )
        counts[way].update(["all", *(["dropped"] if caught else [])])
    return {way: dict(tally) for way, tally in sorted(counts.items())}


def clean_solutions() -> Iterator[tuple[str, str, str, str]]:
    """Yield real solutions: the set, problem, output and guidance."""
    wrong = FEEDBACK.format(failed="12345")
    for line in (DATA / "curation/gsm8k_train.jsonl").read_text().splitlines()[::5]:
        row = json.loads(line)
        yield "GSM8K's solutions", row["question"], row["solution"], wrong
    for name in ("aqua_dev", "aqua_test"):
        for line in (DATA / f"curation/{name}.jsonl").read_text().splitlines():
            row = json.loads(line)
            yield "AQuA's rationales", f"{row['question']} {' '.join(row['options'])}", row["rationale"], wrong
    rows = map(json.loads, (DATA / "curation/gsm8k_platinum.jsonl").read_text().splitlines())
    golds = {row["id"]: row for row in rows}
    for line in (DATA / "curation/gsm8k_example_traces.jsonl").read_text().splitlines()[::4]:
        trace = json.loads(line)
        if (gold := golds.get(trace["id"])) is not None:
            for output in trace["traces"].values():
                yield "four GPT-3 systems", gold["question"], output, f"{wrong}\n{gold['gold_solution']}"


def count_clean() -> dict[str, dict[str, int]]:
    """Return of each set of real solutions how many there are and how many are dropped."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for name, problem, output, guidance in clean_solutions():
        dropped = is_dropped(output, problem, guidance=guidance, failed="12345")
        counts[name].update(["all", *(["dropped"] if dropped else [])])
    return {name: dict(tally) for name, tally in counts.items()}


def opening(output: str) -> str:
    """Return the first two sentences, with the mark behind which a model thinks."""
    parts = [part for part in _SENTENCE.split(output.strip()) if part.strip() and part.strip() != "<think>"][:2]
    return ("<think>\n" if output.strip().startswith("<think>") else "") + " ".join(parts)


def count_outputs(path: Path) -> dict[str, dict[str, int]]:
    """Return of each set of outputs how many are counted, and how many are dropped in each of the four ways."""
    sets: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for record in map(json.loads, path.read_text().splitlines()):
        sets[record["set"]].append(record)
    return {name: _count_set(records) for name, records in sorted(sets.items())}


def _count_set(records: list[Mapping[str, Any]]) -> dict[str, int]:
    bare, counted = ([each for each in records if half(each["response"]) == which] for which in (0, 1))
    habits = learn_habits([find_in_bare(_as_sample(record), CONFIG) for record in bare])
    counts = Counter({"bare": len(bare), "all": len(counted)})
    for record in counted:
        problem, output, failed = record["problem"], record["response"], record.get("failed")
        feedback = FEEDBACK.format(failed=failed or "12345")
        for name, known in (("table", Habits()), ("habits", habits)):
            counts[f"opening, {name}"] += is_dropped(opening(output) + DERIVATION, problem, habits=known)
            counts[f"whole, {name}"] += is_dropped(output, problem, guidance=feedback, failed=failed, habits=known)
    return dict(counts)


def _as_sample(record: Mapping[str, Any]) -> BareSample:
    row: Any = {"prompt": record["problem"]}
    return BareSample(row, record["response"], None, (), (), is_program=False)


def _report(figures: Mapping[str, Any]) -> str:
    lines = ["| leaks | caught | of |", "|---|---|---|"]
    lines += [f"| {way} | {tally.get('dropped', 0)} | {tally['all']} |" for way, tally in figures["leaks"].items()]
    lines += ["", "| solutions without any context | dropped | of |", "|---|---|---|"]
    lines += [f"| {name} | {tally.get('dropped', 0)} | {tally['all']} |" for name, tally in figures["clean"].items()]
    if outputs := figures["outputs"]:
        ways = ("opening, table", "opening, habits", "whole, table", "whole, habits")
        lines += [
            "",
            f"| outputs of models, dropped | bare samples | counted | {' | '.join(ways)} |",
            "|---|" + "---|" * 6,
        ]
        for name, tally in outputs.items():
            shown = " | ".join(str(tally.get(way, 0)) for way in ways)
            lines.append(f"| {name} | {tally['bare']} | {tally['all']} | {shown} |")
    return "\n".join(lines)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--outputs", type=Path, help="outputs of chat and thinking models")
    parser.add_argument("--json", type=Path, help="keep the figures here")
    parser.add_argument("--write", type=Path, help="write the tables into this Markdown file")
    arguments = parser.parse_args()
    outputs = count_outputs(arguments.outputs) if arguments.outputs else {}
    figures = {"leaks": count_leaks(), "clean": count_clean(), "outputs": outputs}
    publish(figures, _report(figures), arguments.json, arguments.write, "Guards of synthesis")


if __name__ == "__main__":
    _main()
