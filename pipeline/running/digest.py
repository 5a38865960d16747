"""Content digests of files and folders, remembered by size and modification time so that a rerun need not read again.

A digest of a file above `SAMPLED_ABOVE` bytes inside a folder (model weights) covers its size, head and tail only:
reading 140 GB of weights to learn that they have not changed would cost more than the stage it saves. Data files are
always read whole.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import orjson

from truegold.pipeline.running.aside import write_whole

SAMPLED_ABOVE = 512 * 2**20
"""A file of a folder is sampled where it is larger than this many bytes."""
SAMPLE = 4 * 2**20
"""This many bytes are read of its head, and as many of its tail."""


def digest_bytes(data: bytes) -> str:
    """Return 32 hex digits over `data` (BLAKE2b)."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def digest_json(value: object) -> str:
    """Return 32 hex digits over a value as JSON, whatever the order of its keys."""
    return digest_bytes(orjson.dumps(value, option=orjson.OPT_SORT_KEYS))


def digest_file(path: Path, *, sample_large: bool = False) -> str:
    """Return 32 hex digits over the file's content; of a large one over its size, head and tail with `sample_large`."""
    hasher = hashlib.blake2b(digest_size=16)
    size = path.stat().st_size
    with path.open("rb") as file:
        if sample_large and size > SAMPLED_ABOVE:
            hasher.update(str(size).encode())
            hasher.update(file.read(SAMPLE))
            file.seek(-SAMPLE, os.SEEK_END)
            hasher.update(file.read(SAMPLE))
        else:
            while chunk := file.read(2**20):
                hasher.update(chunk)
    return hasher.hexdigest()


class DigestCache:
    """Digests of paths outside the run directory, remembered in one JSON file by (size, mtime, inode)."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, list[object]] = {}
        if path.exists():
            try:
                self._known = orjson.loads(path.read_bytes())
            except orjson.JSONDecodeError:
                self._known = {}  # A kill has cut it short; it is only a cache, so it starts again.

    def file(self, path: Path, *, sample_large: bool = False) -> str:
        """Return a file's digest, from memory where its size, time and inode are those of before."""
        stat = path.stat()
        stamp = [stat.st_size, stat.st_mtime_ns, stat.st_ino]
        name = str(path.resolve())
        known = self._known.get(name)
        if known and known[:3] == stamp:
            return str(known[3])
        digest = digest_file(path, sample_large=sample_large)
        self._known[name] = [*stamp, digest]
        self._save()
        return digest

    def path(self, path: Path) -> str:
        """Return a file's digest, or a folder's: over the names and digests of its files."""
        if path.is_file():
            return self.file(path)
        files = sorted(p for p in path.rglob("*") if p.is_file())
        return digest_json([[str(p.relative_to(path)), self.file(p, sample_large=True)] for p in files])

    def _save(self) -> None:
        write_whole(self._path, orjson.dumps(self._known))
