"""Measures the stage `select` on made-up profiles: peak memory, CPU time a row, and how many rows are selected.

    python benchmarks/scale_select.py FOLDER [--rows 100000 500000] [--prompt 400] [--set max_rows=1000]

The tables of a profile are written to FOLDER/ROWS, where they stay: problems of five sources and four domains in 4 to
16 samples, 2 % held out, 4 % flagged by the profile, 10 % by rules, each with a suspicion. `--set` sets fields of
`SelectConfig`, as JSON. The stage runs in a process of its own.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from truegold.pipeline.config.stages import SelectConfig
from truegold.pipeline.rates import Mixture, fit_prior
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.select.stage import select
from truegold.pipeline.tables.ledger import FLAG_SCHEMA
from truegold.pipeline.tables.reasons import CHECK_SCHEMA, SUSPICION_SCHEMA
from truegold.pipeline.tables.rows import BATCH_ROWS, PROFILE_SCHEMA, ROW_SCHEMA

SOURCES, DOMAINS = ("web", "books", "olympiads", "school", "synthetic"), ("algebra", "geometry", "code", "numbers")
SAMPLES = (4, 6, 8, 16)
HELD_OUT, BLOCKED, FLAGGED, DECIDED = 0.02, 0.04, 0.1, 0.01
BLOCK = 64 * BATCH_ROWS
TABLES = ("rows", "profile", "flags", "suspicion", "open_flags", "decided", "checks")
SCHEMAS = {
    "rows": ROW_SCHEMA,
    "profile": PROFILE_SCHEMA,
    "flags": FLAG_SCHEMA,
    "suspicion": SUSPICION_SCHEMA,
    "open_flags": FLAG_SCHEMA,
    "decided": pa.schema([ROW_SCHEMA.field(name) for name in ("id", "source", "source_row")]),
    "checks": CHECK_SCHEMA,
}


def posteriors() -> tuple[pa.Array, dict[tuple[int, int, int], int]]:
    """Return the components of each posterior, and its place by domain, samples and passes."""
    mixtures: list[Any] = []
    place_by_counts = {}
    for domain in range(len(DOMAINS)):
        prior = fit_prior({(4, 0): 40 + 10 * domain, (4, 1): 15, (4, 2): 10, (4, 3): 10, (4, 4): 25})
        assert isinstance(prior, Mixture)
        for judged in SAMPLES:
            for passes in range(judged + 1):
                place_by_counts[domain, judged, passes] = len(mixtures)
                mixtures.append(prior.after(judged, passes).components())
    return pa.array(mixtures, PROFILE_SCHEMA.field("posterior").type), place_by_counts


def make(folder: Path, rows: int, prompt: int) -> None:
    """Write the tables of a profile."""
    folder.mkdir(parents=True)
    writers = {name: pq.ParquetWriter(folder / f"{name}.parquet", SCHEMAS[name], compression="zstd") for name in TABLES}
    components, place_by_counts = posteriors()
    place_of = np.full((len(DOMAINS), max(SAMPLES) + 1, max(SAMPLES) + 1), -1)
    for counts, mixture_index in place_by_counts.items():
        place_of[counts] = mixture_index
    for start in range(0, rows, BLOCK):
        draw = np.random.default_rng(start)
        count = min(BLOCK, rows - start)
        numbers = np.arange(start, start + count)
        ids = [f"{row_index * 0x9E3779B97F4A7C15 % 2**80:020x}" for row_index in numbers.tolist()]
        source, domain = draw.integers(len(SOURCES), size=count), draw.integers(len(DOMAINS), size=count)
        judged = draw.choice(SAMPLES, size=count)
        rate = np.where(draw.random(count) < 0.3, 0.0, draw.beta(0.7, 0.7, size=count))
        passes = draw.binomial(judged, rate)
        split = np.where(draw.random(count) < HELD_OUT, "heldout", "train")
        words = draw.integers(10_000, 99_999, size=(count, prompt // 6 + 1))
        key = {"id": ids, "source": [SOURCES[each] for each in source], "source_row": numbers}
        texts = [" ".join(map(str, each))[:prompt] for each in words.tolist()]
        columns: dict[str, dict[str, Any]] = {
            "rows": {
                **key,
                "prompt": texts,
                "gold": ["7"] * count,
                "domain": [DOMAINS[each] for each in domain],
                "verifier": ["math"] * count,
                "verifier_args": ["{}"] * count,
                "split": split,
                "meta": ["{}"] * count,
            },
            "profile": {
                **key,
                "split": split,
                "n": judged,
                "judged": judged,
                "passes": passes,
                "pass_at": ['{"1":0.375,"2":0.642857,"4":0.928571,"8":1.0}'] * count,
                "posterior": components.take(pa.array(place_of[domain, judged, passes])),
                "truncated": draw.random(count) * 0.1,
            },
            "suspicion": {**key, "row_id": ids, "suspicion": np.round(draw.beta(0.2, 2, size=count), 3)},
        }
        for name, share in (("flags", BLOCKED), ("open_flags", FLAGGED), ("decided", DECIDED)):
            named = np.flatnonzero(draw.random(count) < share)
            columns[name] = {column: np.array(values)[named] for column, values in key.items()}
            if name != "decided":
                columns[name] |= {"reason": ["a_rule"] * len(named), "blocks": [name == "flags"] * len(named)}
        for name, values in columns.items():
            size = len(next(iter(values.values())))
            nulls = {column: pa.nulls(size, SCHEMAS[name].field(column).type) for column in SCHEMAS[name].names}
            table = pa.table({**nulls, **values}).select(SCHEMAS[name].names).cast(SCHEMAS[name])
            writers[name].write_table(table, row_group_size=BATCH_ROWS)
    for writer in writers.values():
        writer.close()


def peak_memory() -> int:
    """Return the most that this process has held, in megabytes."""
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) >> 10


def measure(folder: Path, settings: dict[str, Any]) -> None:
    """Run the stage, and print what it cost."""
    inputs = {name: folder / f"{name}.parquet" for name in TABLES}
    rows = pq.read_metadata(inputs["rows"]).num_rows
    out = folder / "select"
    out.mkdir(exist_ok=True)
    start = peak_memory()
    began, cpu = time.monotonic(), time.process_time()
    report = select(inputs, SelectConfig.model_validate(settings), out, NullProgress())
    cpu, seconds = time.process_time() - cpu, time.monotonic() - began
    (out / "report.json").write_bytes(orjson.dumps([report.counts, report.facts], option=orjson.OPT_SORT_KEYS))
    highest = peak_memory()
    each = (highest - start) * 2**20 / rows
    print(
        f"{rows:,} rows, {report.rows_out:,} selected: {cpu / rows * 1e3:.3f} ms CPU a row, {seconds:.0f} s, "
        f"peak {highest:,} MB, {each:,.0f} bytes a row above the {start:,} MB of the start",
        flush=True,
    )


def main() -> None:
    """Write missing tables, and measure each size in a separate process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 500_000])
    parser.add_argument("--prompt", type=int, default=400)
    parser.add_argument("--set", nargs="*", default=[])
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    settings = {name: orjson.loads(value) for name, value in (setting.split("=", 1) for setting in arguments.set)}
    for rows in arguments.rows:
        folder = arguments.folder / str(rows)
        if arguments.child:
            measure(folder, settings)
            continue
        if not folder.exists():
            make(folder, rows, arguments.prompt)
        again = [sys.executable, __file__, str(arguments.folder), "--rows", str(rows), "--child", "--set"]
        subprocess.run([*again, *arguments.set], check=True)


if __name__ == "__main__":
    main()
