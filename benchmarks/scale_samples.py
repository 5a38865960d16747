"""Measures the store of samples: memory and disk space per sample, and the time of opening, adding and reading.

    python benchmarks/scale_samples.py FOLDER [--samples 1000000] [--tokens 16] [--each 8]

The store in FOLDER is filled up to `--samples` samples of `--tokens` random tokens, `--each` samples per prompt;
existing samples are kept. Then a new process opens it and reports its memory (`anonymous` memory cannot be reclaimed by
the system, `mapped` can), its memory after a million look-ups, and the time of reading in the order of writing.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from truegold.pipeline.engines.base import Completion
from truegold.pipeline.profile.sample_parts import GROUP_ROWS, PART_SCHEMA
from truegold.pipeline.profile.sample_store import PART_SAMPLES, SampleStore, prompt_key
from truegold.pipeline.running.disk import digest_json

IDENTITY = {"model": "none"}
LOOK_UPS = 1_000_000
READ = 50_000
MOST_TOKEN = 100_000


def memory() -> str:
    """Return what this process holds."""
    status = Path("/proc/self/status").read_text()
    held = {name: int(status.partition(f"{key}:")[2].split()[0]) >> 10 for name, key in KINDS.items()}
    return ", ".join(f"{name} {megabytes:,} MB" for name, megabytes in held.items())


KINDS = {"anonymous": "RssAnon", "mapped": "RssFile"}


def key_of(sample_index: int, each: int) -> tuple[str, int]:
    """Return prompt and number of a sample."""
    return prompt_key([sample_index // each]), sample_index % each


def write_part(path: Path, numbers: range, tokens: int, each: int) -> None:
    """Write a part of samples as the store does."""
    draw = np.random.default_rng(numbers.start)
    with pq.ParquetWriter(path, PART_SCHEMA, compression="zstd") as writer:
        for start in range(numbers.start, numbers.stop, GROUP_ROWS):
            keys = [key_of(sample_index, each) for sample_index in range(start, min(start + GROUP_ROWS, numbers.stop))]
            ids = pa.array(draw.integers(MOST_TOKEN, size=len(keys) * tokens, dtype=np.int32))
            offsets = pa.array(np.arange(0, len(ids) + 1, tokens, dtype=np.int32))
            columns = {
                "prompt": [prompt for prompt, _ in keys],
                "sample": [sample for _, sample in keys],
                "token_ids": pa.ListArray.from_arrays(offsets, ids),
                "logprobs": [()] * len(keys),
                "finish_reason": ["stop"] * len(keys),
                "counted": [None] * len(keys),
            }
            writer.write_table(pa.table(columns, PART_SCHEMA))


def fill(folder: Path, samples: int, tokens: int, each: int) -> None:
    """Write the parts that are missing, and add the last samples as a profile does."""
    store_folder = folder / digest_json(IDENTITY)[:16]
    store_folder.mkdir(parents=True, exist_ok=True)
    parts = samples // PART_SAMPLES
    for part in range(parts):
        path = store_folder / f"part-{part:06d}.parquet"
        if not path.exists():
            write_part(path, range(part * PART_SAMPLES, (part + 1) * PART_SAMPLES), tokens, each)
    began, cpu = time.monotonic(), time.process_time()
    store = SampleStore(folder, IDENTITY)
    print(f"indexes made or opened in {time.monotonic() - began:.1f} s ({time.process_time() - cpu:.1f} s CPU)")
    rest = [
        sample_index for sample_index in range(parts * PART_SAMPLES, samples) if key_of(sample_index, each) not in store
    ]
    began, cpu = time.monotonic(), time.process_time()
    for sample_index in rest:
        ids = tuple((sample_index * token) % MOST_TOKEN for token in range(tokens))
        store.add(*key_of(sample_index, each), Completion(ids, (), "stop"))
    store.close()
    if rest:
        cost = (time.process_time() - cpu) / len(rest)
        print(f"{len(rest):,} added in {time.monotonic() - began:,.0f} s, {cost * 1e6:.1f} us CPU each", flush=True)


def measure(folder: Path, samples: int, each: int) -> None:
    """Print what the open store costs."""
    print("before:", memory())
    began, cpu = time.monotonic(), time.process_time()
    store = SampleStore(folder, IDENTITY)
    print(f"opened in {time.monotonic() - began:.2f} s ({time.process_time() - cpu:.2f} s CPU):", memory())
    draw = random.Random(1)
    keys = [key_of(draw.randrange(samples), each) for _ in range(LOOK_UPS)]
    print("before looking up:", memory())
    cpu = time.process_time()
    if not all(key in store for key in keys):
        sys.exit("a sample is missing")
    print(f"looked up at {(time.process_time() - cpu) / LOOK_UPS * 1e6:.1f} us CPU:", memory())
    cpu = time.process_time()
    for sample_index in range(min(READ, samples)):
        store.read(*key_of(sample_index, each))
    print(f"read in order at {(time.process_time() - cpu) / min(READ, samples) * 1e6:.1f} us CPU:", memory())
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{size / samples:.0f} bytes a sample on disk")


def main() -> None:
    """Fill a store, and measure it in a separate process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--tokens", type=int, default=16)
    parser.add_argument("--each", type=int, default=8)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        measure(arguments.folder, arguments.samples, arguments.each)
        return
    fill(arguments.folder, arguments.samples, arguments.tokens, arguments.each)
    subprocess.run([sys.executable, __file__, *sys.argv[1:], "--child"], check=True)


if __name__ == "__main__":
    main()
