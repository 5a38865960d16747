"""Judges responses in parts, and stores the verdicts of each part. A call after a kill does not judge them again.

    judge_parts(questions, out_dir / "verdicts", workers=0, deadline_s=10.0)     # writes verdicts/3f2a....jsonl, ...

The name of a part is a hash of its questions and of the versions of its verifiers. If a response, a gold or a verifier
changes, the part is judged again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import asdict, astuple
from pathlib import Path

import orjson

from truegold.pipeline.running.disk import digest_bytes, write_whole
from truegold.pipeline.tables.rows import dump_json
from truegold.verifiers import BatchVerifier, Item, Reason, Verdict, fingerprint

PART_ITEMS, PART_CHARS = 5_000, 2**26
"""A part ends after 5,000 questions, or after 2**26 characters of responses."""


def judge_parts(questions: Iterable[Item], folder: Path, workers: int, deadline_s: float) -> Iterator[Verdict]:
    """Yield a verdict for each question, in order, as `verify_batch` does. Parts in `folder` are not judged again."""
    folder.mkdir(parents=True, exist_ok=True)
    with closing(BatchVerifier(workers, item_deadline_s=deadline_s)) as verifier:
        for part in _cut(questions):
            verifiers = {name: fingerprint(name) for name in sorted({item.verifier for item in part})}
            key = digest_bytes(dump_json([verifiers, deadline_s, *map(astuple, part)]).encode())
            path = folder / f"{key}.jsonl"
            if path.exists():
                yield from map(_read, path.read_bytes().splitlines())
                continue
            lines = []
            for verdict in verifier.verify(part):
                lines.append(dump_json(asdict(verdict)))
                yield verdict
            write_whole(path, "\n".join(lines).encode())


def _cut(questions: Iterable[Item]) -> Iterator[list[Item]]:
    part: list[Item] = []
    chars = 0
    for item in questions:
        part.append(item)
        chars += len(item.response)
        if len(part) >= PART_ITEMS or chars >= PART_CHARS:
            yield part
            part, chars = [], 0
    if part:
        yield part


def _read(line: bytes) -> Verdict:
    fields = orjson.loads(line)
    return Verdict(**{**fields, "reason": Reason(fields["reason"])})
