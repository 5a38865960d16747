"""The pairs of texts worth measuring, in files by their first text.

Keys bring up a pair in several shards, because texts share many keys; so the pairs of all shards of keys are gone
through once by their outlines, and what is left is put in order of the rows. A shard of pairs holds those whose first
text is in one range of rows; shards are independent of each other.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from truegold.pipeline.near.arrays import Ints, run_starts, sort_values
from truegold.pipeline.near.features import Features
from truegold.pipeline.near.keys import Keys, write_keys
from truegold.pipeline.near.outline import Outlines
from truegold.pipeline.near.workers import map_in_threads
from truegold.pipeline.running.progress import Progress

BATCH = 20_000
"""Pairs whose outlines are compared at a time."""


@dataclass(frozen=True)
class Candidates:
    """Files of pairs, 8 bytes each; a pair may be in its file several times."""

    folder: Path
    shards: int

    def pairs(self, shard: int) -> Ints:
        """Return the distinct pairs of a shard as left << 32 | right, left < right, sorted."""
        codes = sort_values(np.fromfile(self.shard_file(shard), dtype=np.int64))
        distinct: Ints = codes[run_starts(codes)]
        return distinct

    def shard_file(self, shard: int) -> Path:
        """Return the file that has the pairs of a shard."""
        return self.folder / f"pairs-{shard:05}"


def write_candidates(features: Features, folder: Path, split: Ints | None, progress: Progress) -> Candidates:
    """Write the candidates among all texts to files in `folder`: some 270 bytes a text for keys, 120 for pairs.

    With `split` only pairs whose rows have different numbers in it are candidates.
    """
    keys = write_keys(features, folder)
    outlines = Outlines(features)
    candidates = Candidates(folder, keys.shards)
    ends = np.arange(1, keys.shards, dtype=np.int64) * len(features) // keys.shards << 32
    progress.start("pairing", keys.shards)

    def promising_pairs(shard: int) -> Ints:
        return _promising_pairs(keys, shard, split, outlines)

    with ExitStack() as opened:
        files = [opened.enter_context(candidates.shard_file(shard).open("wb")) for shard in range(keys.shards)]
        for codes in map_in_threads(promising_pairs, range(keys.shards)):
            for file, part in zip(files, np.split(codes, np.searchsorted(codes, ends)), strict=True):
                part.tofile(file)
            progress.advance()
    return candidates


def _promising_pairs(keys: Keys, shard: int, split: Ints | None, outlines: Outlines) -> Ints:
    """Return the pairs that share a key of the shard and may be related, sorted."""
    codes = keys.pairs(shard, split)
    parts = (codes[start : start + BATCH] for start in range(0, len(codes), BATCH))
    marks = [outlines.may_relate(part >> 32, part & 0xFFFFFFFF) for part in parts]
    promising: Ints = codes[np.concatenate([np.zeros(0, dtype=bool), *marks])]
    return promising
