"""Deduplication in shards on a real local Ray cluster: the same result as in threads."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import polars as pl
import pytest

pytestmark = [
    pytest.mark.real,
    pytest.mark.filterwarnings("default"),
    pytest.mark.skipif(find_spec("ray") is None, reason="needs the extra `ray`"),
]

NAMES = ("Tom", "Ann", "Bela", "Chen", "Dora", "Emil", "Fumi", "Gus", "Hana", "Ivo")
NOUNS = ("cars", "apples", "stamps", "marbles", "books", "coins", "shells", "pens", "cards", "buttons")


def problems() -> list[dict[str, str]]:
    """Two hundred stories in ten templates, each with a rewording of every fifth, and some copies."""
    rows = []
    for index in range(200):
        name, noun, a, b = NAMES[index % 10], NOUNS[index // 20], 11 + index, 3 * index + 7
        rows.append({"question": f"{name} has {a} red {noun} and buys {b} more. How many {noun} has {name} now?"})
        if index % 5 == 0:
            rows.append({"question": f"{name}, who has {a} red {noun}, buys {b} more. How many {noun} has {name} now?"})
        if index % 20 == 0:
            rows.append(dict(rows[-2]))
    return rows


RUN = """
import sys
from importlib.util import find_spec
from pathlib import Path
from truegold.pipeline.near.ray_shards import on_ray
from truegold.pipeline.dedup.clusters import find_clusters
from truegold.pipeline.near import related_pairs
from truegold.pipeline.near.related_pairs import run_in_threads
from truegold.pipeline.problems import ProblemColumns
from truegold.pipeline.running.progress import NullProgress

related_pairs.BATCH, related_pairs.SHARD_BATCHES = 20, 2
for name, run_shards in (("threads", run_in_threads), ("ray", on_ray(None))):
    find_clusters(Path(sys.argv[1]), Path(sys.argv[2]) / name, ProblemColumns(), None, NullProgress(), run_shards)
"""


@pytest.mark.long_run
def test_shards_on_ray_give_what_threads_give(tmp_path: Path) -> None:
    data = tmp_path / "problems.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in problems()))
    command = [sys.executable, "-P", "-c", RUN, str(data), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr
    threads, on_ray = (pl.read_parquet(tmp_path / name / "clusters.parquet") for name in ("threads", "ray"))
    assert threads.equals(on_ray)
    assert set(threads["relation"]) >= {"exact", "same_problem", "same_template"}
    written = [sorted(path.name for path in (tmp_path / name).iterdir()) for name in ("threads", "ray")]
    assert written[0] == written[1]
