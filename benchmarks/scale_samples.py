"""Measures the store of samples: memory and disk a sample, opening, adding and reading.

    python benchmarks/scale_samples.py FOLDER [--samples 1000000] [--tokens 16] [--each 8]

The store in FOLDER is filled up to `--samples` samples, `--each` of a prompt, of `--tokens` random tokens; what is
there stays. Then it is opened in a process of its own, which says what memory it holds after that (`anonymous` cannot
be given back, `mapped` can) and after a million look-ups, and what reading costs in the order of writing.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import time
from pathlib import Path

from truegold.pipeline.engines.base import Completion
from truegold.pipeline.profile.sample_store import SampleStore, prompt_key

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


def key_of(number: int, each: int) -> tuple[str, int]:
    """Return prompt and number of a sample."""
    return prompt_key([number // each]), number % each


def fill(folder: Path, samples: int, tokens: int, each: int) -> None:
    """Add the samples that are missing."""
    store = SampleStore(folder, IDENTITY)
    draw = random.Random(0)
    began, cpu, first = time.monotonic(), time.process_time(), None
    for number in range(samples):
        key = key_of(number, each)
        if first is None and key in store:
            continue
        first = number if first is None else first
        ids = tuple(draw.randrange(MOST_TOKEN) for _ in range(tokens))
        store.add(*key, Completion(ids, (), "stop"))
    store.close()
    if first is not None:
        count = samples - first
        cost = (time.process_time() - cpu) / count
        print(f"{count:,} added in {time.monotonic() - began:,.0f} s, {cost * 1e6:.1f} us CPU each", flush=True)


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
    for number in range(min(READ, samples)):
        store.read(*key_of(number, each))
    print(f"read in order at {(time.process_time() - cpu) / min(READ, samples) * 1e6:.1f} us CPU:", memory())
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{size / samples:.0f} bytes a sample on disk")


def main() -> None:
    """Fill a store, and measure it in a process of its own."""
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
