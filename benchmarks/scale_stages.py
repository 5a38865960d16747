"""Measures the stages of curation, export and report: peak memory and CPU time a row of each.

    python benchmarks/scale_stages.py FOLDER [--rows 100000 500000] [--stages ingest dedup export] [--results FILE]

The records of each size are written to FOLDER/ROWS and kept: generated problems of about 300 characters, of which 3 %
are copies, 3 % rewordings, 1 % copies with another gold, and 1 % items of an evaluation set of 2,000; with the answers
of four systems to each problem. Each stage runs in a separate process. `peak` is the peak memory of the process and its
workers, `anonymous` the part of it that is not backed by files. If a stage is left out, the next stage reads the output
of the last stage before it. Stages with results in FOLDER/ROWS/scale are not measured again.
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from threading import Event, Thread
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from truegold.flows.config import RunConfig
from truegold.flows.plan import report_stage
from truegold.pipeline.config.stages import ExportConfig, SampleSource, SuspicionConfig
from truegold.pipeline.curation.plan import curation_stages, rows_of
from truegold.pipeline.export import export
from truegold.pipeline.running.disk import DigestCache
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.running.stage import RECORD, Output, Stage, plan_stage, run_stage
from truegold.pipeline.suspicion import suspect

EVALUATION = 2_000
COPIES, REWORDED, CONFLICTS, LEAKS = 0.03, 0.03, 0.01, 0.01
SYSTEMS = 4
WORDS = 50_000
EARLIER = 5_000
"""Copies are of one of so many records before."""
SAMPLE_EVERY_S = 0.05

ONSETS = ("b", "br", "ch", "d", "f", "gl", "h", "k", "l", "m", "n", "p", "r", "st", "t", "v")
RHYMES = ("a", "an", "el", "er", "i", "in", "o", "on", "or", "u", "um", "ay")
SENTENCES = (
    "{name} has {a} {thing} and buys {b} more from {other} in {place}.",
    "In {place} a {thing} costs {a} dollars, and {name} pays with {b} coins of {other}.",
    "{name} and {other} share {a} {thing} that {b} people of {place} had left behind.",
    "On the way to {place}, {name} counts {a} {thing} beside {b} carts that belong to {other}.",
    "Every week {other} makes {a} {thing}, of which {b} are sent to {name} in {place}.",
    "After {a} days {name} has sold {b} {thing} at the market of {place}, more than {other}.",
    "The {thing} of {name} weighs {a} kilograms, {b} grams more than what {other} found in {place}.",
    "{other} packs {a} boxes with {b} {thing} each, which {name} carries to {place}.",
)
QUESTIONS = (
    "How many {thing} does {name} have in the end?",
    "What is the number of {thing} that {name} gave to {other}?",
    "How much did {name} pay in {place} for all {thing}?",
    "How many {thing} are left in {place}?",
)
Record = dict[str, Any]


def word(draw: random.Random) -> str:
    """Return one of the made-up words."""
    return made_up(draw.randrange(WORDS))


@cache
def made_up(seed: int) -> str:
    """Return a made-up word."""
    draw = random.Random(seed)
    return "".join(draw.choice(ONSETS) + draw.choice(RHYMES) for _ in range(draw.choice((2, 3, 3, 4))))


def problem(draw: random.Random) -> list[str]:
    """Return the sentences of a problem."""
    slots = {"name": word(draw).title(), "other": word(draw).title(), "place": word(draw).title()}
    chosen = draw.sample(SENTENCES, 3)
    parts = [
        sentence.format(**slots, thing=word(draw) + "s", a=draw.randint(2, 999), b=draw.randint(2, 99))
        for sentence in chosen
    ]
    return [*parts, draw.choice(QUESTIONS).format(**slots, thing=word(draw) + "s")]


def records(rows: int) -> Iterator[Record]:
    """Yield the records of a set."""
    draw = random.Random(1)
    evaluation = list(evaluation_set())
    earlier: list[tuple[list[str], str]] = []
    for row_index in range(rows):
        kind = draw.random()
        parts, gold = problem(draw), str(draw.randint(2, 99_999))
        if earlier and kind < COPIES + REWORDED + CONFLICTS:
            parts, first_gold = draw.choice(earlier)
            if kind < COPIES + REWORDED:
                gold = first_gold
            if COPIES <= kind < COPIES + REWORDED:
                parts = sorted(parts[:-1]) + parts[-1:]
        elif kind > 1 - LEAKS:
            parts = [draw.choice(evaluation)["question"]]
        if len(earlier) < EARLIER:
            earlier.append((parts, gold))
        else:
            earlier[draw.randrange(EARLIER)] = parts, gold
        yield {"id": f"q{row_index}", "question": " ".join(parts), "answer": gold}


def evaluation_set() -> Iterator[Record]:
    """Yield the items of an evaluation set."""
    draw = random.Random(2)
    for row_index in range(EVALUATION):
        yield {"id": f"e{row_index}", "question": " ".join(problem(draw)), "answer": str(draw.randint(2, 99_999))}


def make(folder: Path, rows: int) -> None:
    """Write the records, the evaluation set and the answers of systems."""
    folder.mkdir(parents=True)
    write_lines(folder / "evaluation.jsonl", evaluation_set())
    write_lines(folder / "data.jsonl", records(rows))
    draw = random.Random(3)
    schema = pa.schema({"id": pa.string(), "system": pa.string(), "answer": pa.string()})
    with (folder / "data.jsonl").open("rb") as lines, pq.ParquetWriter(folder / "samples.parquet", schema) as writer:
        samples: list[Record] = []
        for record in map(orjson.loads, lines):
            for system in range(SYSTEMS):
                answer = record["answer"] if draw.random() < 0.4 + system / 10 else str(draw.randint(2, 99))
                samples.append({"id": record["id"], "system": f"model-{system}", "answer": answer})
            if len(samples) >= 40_000:
                writer.write_table(pa.Table.from_pylist(samples, schema))
                samples.clear()
        writer.write_table(pa.Table.from_pylist(samples, schema))


def write_lines(path: Path, rows: Iterator[Record]) -> None:
    """Write a file of JSON lines."""
    with path.open("wb") as file:
        for row in rows:
            file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))


def plan(folder: Path, workers: int) -> list[Stage]:
    """Return all stages in their order."""
    settings: dict[str, Any] = {name: {"workers": workers} for name in ("clean", "verify_gold", "flag")}
    config = RunConfig.model_validate(
        {
            "name": "scale",
            "runs_dir": str(folder),
            "data": {"path": str(folder / "data.jsonl"), "heldout": 0.01},
            "decontaminate": {"against": [str(folder / "evaluation.jsonl")]},
            **settings,
        }
    )
    stages = curation_stages(config)
    suspicion = SuspicionConfig(files=(SampleSource(),), workers=workers)
    answers: dict[str, Path | Output] = {"samples 0": folder / "samples.parquet"}
    answers |= {**rows_of("settle"), "flags": Output("flag", "flags.parquet")}
    stages.append(plan_stage("suspect", suspect, suspicion, answers))
    records_of = {stage.name: Output(stage.name, RECORD) for stage in stages}
    suspicions = ExportConfig(suspicion=str(folder / "scale/suspect/suspicion.parquet"))
    evidence = {"suspicion": Output("suspect", "suspicion.parquet")}
    stages.append(plan_stage("export", export, suspicions, {**rows_of("settle"), **records_of, **evidence}))
    return [*stages, report_stage("scale", [stage.name for stage in stages], 8)]


def pass_by(stages: list[Stage], chosen: list[str]) -> list[Stage]:
    """Return the chosen stages, each with its inputs if all other stages are left out."""
    names = [stage.name for stage in stages]
    last = {name: [earlier for earlier in names[: names.index(name) + 1] if earlier in chosen] for name in names}

    def source_of(source: Path | Output) -> Path | Output | None:
        if isinstance(source, Path) or source.stage in chosen:
            return source
        if source.name == "flags.parquet":
            return replace(source, stage="dedup") if "dedup" in chosen else None
        earlier = [name for name in last[source.stage] if name != "suspect"]
        return replace(source, stage=earlier[-1]) if source.name == "rows.parquet" and earlier else None

    kept = []
    for stage in stages:
        if stage.name not in chosen:
            continue
        inputs = {name: passed for name, source in stage.inputs.items() if (passed := source_of(source)) is not None}
        config = stage.config
        if stage.name == "export" and "suspect" not in chosen:
            config = ExportConfig()
        kept.append(replace(stage, inputs=inputs, config=config))
    if kept[-1].name == "report":
        kept[-1] = report_stage("scale", [stage.name for stage in kept[:-1]], 8)
    return kept


def held(kind: str, process: str = "self") -> int:
    """Return the memory in bytes of a process and its child processes; 0 if it has ended."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
        children = " ".join(path.read_text() for path in Path(f"/proc/{process}/task").glob("*/children"))
    except OSError:
        return 0
    own_bytes = int(status.partition(f"{kind}:")[2].split()[0]) << 10 if kind in status else 0
    return own_bytes + sum(held(kind, child) for child in children.split())


def measure(stage: Stage, run_dir: Path) -> dict[str, Any]:
    """Run a stage, and return what it cost."""
    peaks, ended = {"VmRSS": 0, "RssAnon": 0}, Event()

    def watch() -> None:
        while not ended.wait(SAMPLE_EVERY_S):
            for kind, peak in peaks.items():
                peaks[kind] = max(peak, held(kind))

    start = held("VmRSS")
    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    began, cpu = time.monotonic(), used()
    report = run_stage(stage, run_dir, DigestCache(run_dir / ".digests.json"), NullProgress()).report
    cpu, seconds = used() - cpu, time.monotonic() - began
    ended.set()
    watcher.join()
    own_bytes = int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) << 10
    return {
        "rows": report.rows_in,
        "cpu": cpu,
        "seconds": seconds,
        "start": start,
        "peak": max(own_bytes, peaks["VmRSS"]),
        "anonymous": peaks["RssAnon"],
    }


def used() -> float:
    """Return the CPU time in seconds of this process and its ended child processes."""
    times = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in times)


def show(name: str, rows: int, cost: dict[str, Any]) -> None:
    """Print a line on a stage."""
    start, peak, anonymous = (cost[key] >> 20 for key in ("start", "peak", "anonymous"))
    each = (cost["peak"] - cost["start"]) / rows
    print(
        f"{rows:>9,} {name:<14} {cost['cpu'] / rows * 1e3:6.3f} ms CPU a row, {cost['seconds']:5.0f} s, peak {peak:,} "
        f"MB ({anonymous:,} anonymous), {each:,.0f} bytes a row above the {start:,} MB of the start",
        flush=True,
    )


def main() -> None:
    """Write missing records, and measure each stage in a separate process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 500_000])
    parser.add_argument("--stages", nargs="*")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    measured: dict[str, dict[str, Any]] = {}
    for rows in arguments.rows:
        folder = arguments.folder / str(rows)
        if not folder.exists():
            make(folder, rows)
        all_stages = plan(folder, arguments.workers)
        stages = pass_by(all_stages, arguments.stages or [stage.name for stage in all_stages])
        if arguments.child:
            stage = next(stage for stage in stages if stage.name == arguments.child)
            print(orjson.dumps(measure(stage, folder / "scale")).decode())
            return
        (folder / "scale").mkdir(exist_ok=True)
        for stage in stages:
            if (folder / "scale" / stage.name).exists():
                continue
            options = ["--rows", str(rows), "--workers", str(arguments.workers), "--child", stage.name]
            again = [sys.executable, __file__, str(arguments.folder), *options, "--stages", *(s.name for s in stages)]
            cost = orjson.loads(subprocess.run(again, check=True, stdout=subprocess.PIPE).stdout.splitlines()[-1])
            show(stage.name, rows, cost)
            measured.setdefault(stage.name, {})[str(rows)] = cost
    if arguments.results:
        arguments.results.write_bytes(orjson.dumps(measured, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n")


if __name__ == "__main__":
    main()
