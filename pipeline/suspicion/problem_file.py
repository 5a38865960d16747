"""The problems of a table of rows, and the names by which samples know them; texts lie on disk, 40 bytes a row do not.

    row   source's id   truegold's id   problem   named by
    0     "17"          9f0c...         0         "17", 9f0c...
    1     "18"          51aa...         1         51aa...         a sample of "18" may be of either row
    2     "18"          77de...         2         77de...
    3     "17"          9f0c...         0

Names are told apart by hashes of 64 bits: among ten million two fall together with a probability of 3e-6.
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
    """Finds the problem that a name stands for. Rows of one key share a problem: they are copies."""

    def __init__(self, rows: Path, *, by_source_id: bool) -> None:
        """`by_source_id` says whether samples may name rows by the ids of their source.

        Samples of truegold's own do not, and rows of several sources may share such ids.
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
        """The problem of each row; problems are numbered as they first come."""
        self.is_repeated = np.zeros(len(first), dtype=bool)
        """The problems that several rows have."""
        self.is_repeated[rank[counts > 1]] = True
        # A key comes before an id that is written alike.
        names, problems = np.concatenate([keys, ids]), np.concatenate([self.problem, self.problem])
        names, position = np.unique(names, return_index=True)
        self._names, self._problem_of_name = names, problems[position].astype(np.int32)

    @property
    def shared(self) -> int:
        """The number of the source's ids that rows of different content share: a sample that names one may be any
        row's."""
        return len(self._shared)

    def key_of(self, row: Mapping[str, Any]) -> str:
        """Return the name that samples know a row by."""
        key = source_id(row) if self._by_source_id else str(row["id"])
        return str(row["id"]) if self._shared and _hash(key) in self._shared else key

    def get(self, name: str, /) -> int | None:
        """Return the problem of this name, or None if there is none."""
        name_hash = np.uint64(_hash(name))
        position = int(self._names.searchsorted(name_hash))
        if position == len(self._names) or self._names[position] != name_hash:
            return None
        return int(self._problem_of_name[position])


def source_id(row: Mapping[str, Any]) -> str:
    """Return the source's id of a row, truegold's where it has none."""
    known_id = json.loads(row["meta"]).get("source_id") if row["meta"] else None
    return str(row["id"] if known_id is None else known_id)


def _hash(name: str) -> int:
    return xxhash.xxh3_64_intdigest(name.encode("utf-8", "surrogatepass"))


class ProblemFile(Sequence[LabelledProblem]):
    """Problems in a temporary file, which goes with the object."""

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
