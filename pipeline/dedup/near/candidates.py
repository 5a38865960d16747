"""The pairs of texts worth measuring, each once, in files by their first text.

Keys bring up a pair in several shards, because texts share many keys; so the pairs of all shards of keys are gone
through once by their outlines, and what is left is put in order of the rows. A shard of pairs holds those whose first
text is in one range of rows; shards are independent of each other.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from truegold.pipeline.dedup.near.features import Features
from truegold.pipeline.dedup.near.growing import in_order, run_starts
from truegold.pipeline.dedup.near.keys import Keys, write_keys
from truegold.pipeline.dedup.near.outline import Outlines
from truegold.pipeline.dedup.near.sparse import Ints
from truegold.pipeline.dedup.near.workers import in_order_of
from truegold.pipeline.running.progress import Progress

BATCH = 20_000
"""Pairs whose outlines are compared at a time."""


@dataclass(frozen=True)
class Candidates:
    """Files of pairs, 8 bytes each, a pair perhaps several times."""

    folder: Path
    shards: int

    def pairs(self, shard: int) -> Ints:
        """The distinct pairs of a shard as left << 32 | right, left < right, sorted."""
        codes = in_order(np.fromfile(self._file(shard), dtype=np.int64))
        distinct: Ints = codes[run_starts(codes)]
        return distinct

    def _file(self, shard: int) -> Path:
        return self.folder / f"pairs-{shard:05}"


def write_candidates(features: Features, folder: Path, split: Ints | None, progress: Progress) -> Candidates:
    """Find the candidates among all texts, with files in `folder`: some 270 bytes a text for keys, 120 for pairs.

    split: where given, only pairs whose rows have different numbers here.
    """
    keys = write_keys(features, folder)
    outlines = Outlines(features)
    candidates = Candidates(folder, keys.shards)
    ends = np.arange(1, keys.shards, dtype=np.int64) * len(features) // keys.shards << 32
    progress.start("pairing", keys.shards)
    with ExitStack() as opened:
        files = [opened.enter_context(candidates._file(shard).open("wb")) for shard in range(keys.shards)]
        for codes in in_order_of(range(keys.shards), lambda shard: _promising(keys, shard, split, outlines)):
            for file, part in zip(files, np.split(codes, np.searchsorted(codes, ends)), strict=True):
                part.tofile(file)
            progress.advance()
    return candidates


def _promising(keys: Keys, shard: int, split: Ints | None, outlines: Outlines) -> Ints:
    """The pairs that share a key of the shard and may be related, sorted."""
    codes = keys.pairs(shard, split)
    parts = (codes[start : start + BATCH] for start in range(0, len(codes), BATCH))
    marks = [outlines.may_relate(part >> 32, part & 0xFFFFFFFF) for part in parts]
    promising: Ints = codes[np.concatenate([np.zeros(0, dtype=bool), *marks])]
    return promising
