"""The problems of a table of rows, and the names by which samples (answers of models) refer to them.

    row   source's id   truegold's id   problem   names
    0     "17"          9f0c...         0         "17", 9f0c...
    1     "18"          51aa...         1         51aa...         "18" is not a name, since two problems share it
    2     "18"          77de...         2         77de...
    3     "17"          9f0c...         0         "17", 9f0c...   a copy of row 0

Texts lie on disk; memory holds 40 bytes a row. Names are compared by hashes of 64 bits: among ten million names, two
have the same hash with a probability of 3e-6.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
import orjson
import xxhash

from truegold.pipeline.near.arrays import Ints, OnDisk, places_in
from truegold.pipeline.suspicion.answer_classes import LabelledProblem
from truegold.pipeline.tables.rows import count_rows, read_rows


class RowKeys:
    """Finds the problem for a name. Rows with the same key are copies, and share a problem."""

    def __init__(self, rows: Path, *, by_source_id: bool) -> None:
        """Read the names of the rows.

        `by_source_id` is true if samples may refer to rows by the ids of their source. Samples that truegold drew refer
        to rows only by truegold's ids, because rows of several sources may share source ids.
        """
        self._by_source_id = by_source_id
        total = count_rows(rows)
        pairs = ((_hash(source_id(row)), _hash(row["id"])) for row in read_rows(rows, ["id", "meta"]))
        named = np.fromiter(pairs, np.dtype((np.uint64, 2)), total)
        source_ids, ids = (named[:, 0], named[:, 1]) if by_source_id else (named[:, 1], named[:, 1])
        order = np.lexsort((ids, source_ids))
        same_name = source_ids[order][1:] == source_ids[order][:-1]
        differ = same_name & (ids[order][1:] != ids[order][:-1])
        shared = np.unique(source_ids[order][1:][differ])
        self._shared: set[int] = set(shared.tolist())
        keys = np.where(np.isin(source_ids, shared), ids, source_ids)
        _, first, inverse, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
        rank = places_in(np.argsort(first))
        self.problem: Ints = rank[inverse]
        """The problem of each row. Problems are numbered in order of first appearance."""
        self.is_repeated = np.zeros(len(first), dtype=bool)
        """Whether each problem has several rows."""
        self.is_repeated[rank[counts > 1]] = True
        # Keys come first, so that a key wins over an equal source id.
        names, problems = np.concatenate([keys, ids]), np.concatenate([self.problem, self.problem])
        names, position = np.unique(names, return_index=True)
        self._names, self._problem_of_name = names, problems[position].astype(np.int32)

    @property
    def shared(self) -> int:
        """The number of source ids that different problems share. Samples cannot refer to a problem by a shared id."""
        return len(self._shared)

    def key_of(self, row: Mapping[str, Any]) -> str:
        """Return the name by which samples refer to a row."""
        key = source_id(row) if self._by_source_id else str(row["id"])
        return str(row["id"]) if self._shared and _hash(key) in self._shared else key

    def get(self, name: str, /) -> int | None:
        """Return the number of the problem with this name, or None for an unknown name."""
        name_hash = np.uint64(_hash(name))
        position = int(self._names.searchsorted(name_hash))
        if position == len(self._names) or self._names[position] != name_hash:
            return None
        return int(self._problem_of_name[position])


def source_id(row: Mapping[str, Any]) -> str:
    """Return the id of a row in its source, or else truegold's id."""
    known_id = json.loads(row["meta"]).get("source_id") if row["meta"] else None
    return str(row["id"] if known_id is None else known_id)


def _hash(name: str) -> int:
    return xxhash.xxh3_64_intdigest(name.encode("utf-8", "surrogatepass"))


class ProblemFile(Sequence[LabelledProblem]):
    """A sequence of problems in a temporary file, which is deleted with the object."""

    def __init__(self, problems: Iterable[LabelledProblem], folder: Path) -> None:
        data, ends = OnDisk(np.uint8, folder), [0]
        for problem in problems:
            fields = (
                problem.id,
                problem.gold,
                problem.prompt,
                problem.solution,
                problem.verifier,
                problem.verifier_args,
                problem.source,
            )
            data.extend(np.frombuffer(orjson.dumps(fields), np.uint8))
            ends.append(len(data))
        self._data, self._ends = data.array.data, np.array(ends)

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, index: int) -> LabelledProblem: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[LabelledProblem]: ...

    def __getitem__(self, index: int | slice) -> LabelledProblem | Sequence[LabelledProblem]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        fields = orjson.loads(self._data[self._ends[index] : self._ends[index + 1]])
        key, gold, prompt, solution, verifier, arguments, source = fields
        return LabelledProblem(key, gold, prompt, solution, sys.intern(verifier), arguments, sys.intern(source))

    def __iter__(self) -> Iterator[LabelledProblem]:
        return map(self.__getitem__, range(len(self)))
