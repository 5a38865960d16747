"""Defines the canonical row and its id, and reads and writes tables of rows as Parquet files.

The line `{"question": "Natalia sold clips to 48 ...", "answer": "... #### 72"}` of GSM8K becomes the row

    id="9f0c..."  prompt="Natalia sold clips to 48 ..."  gold="72"  domain="math"  verifier="math"  verifier_args="{}"
    solution="Natalia sold 48/2 = ..."  source="gsm8k_train.jsonl"  source_row=1  split="train"  meta="{}"

`id` is a hash of the content at ingest. It stays the same when a stage edits the row, so that the ledger and reviewers'
decisions can refer to it. Rows with the same content have the same id; `source` and `source_row` (a line number, from
1) distinguish them. `verifier_args` and `meta` are JSON strings, because their structure varies from row to row.

Rows are dicts, typed as `TypedDict`s. The schemas of tables are derived from these types.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from types import NoneType, TracebackType
from typing import Annotated, Any, NotRequired, TypedDict, TypeVar, cast, get_args, get_origin, get_type_hints

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from truegold.pipeline.rates import Component
from truegold.pipeline.running.disk import make_room, part_path, table_parts, written_aside
from truegold.verifiers.conversation import Message, write_out

ARROW_TYPES: dict[Any, pa.DataType] = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
"""The column type for each Python type. A field of a typed row may have another column type (`Annotated`)."""

Int32 = Annotated[int, pa.int32()]
TextList = Annotated[list[str], pa.list_(pa.string())]
Int32List = Annotated[list[int], pa.list_(pa.int32())]
Float32List = Annotated[list[float], pa.list_(pa.float32())]
Posterior = Annotated[
    list[Component], pa.list_(pa.struct([(name, pa.float64()) for name in Component.__annotations__]))
]
"""The posterior distribution of a pass rate: the components of a mixture of Beta distributions (`rates`)."""

NOTES = "truegold"
"""The key in `meta` for truegold's notes on a row: language, licence, origin and file."""
PROVENANCE_NOTES = ("license", "origin")
"""The keys of the notes on the licence and the origin of a row."""

FILE = "file"
"""The key of the note on the file of a row, if its source has several files: `part1.jsonl:21`."""

KEY = ["id", "source", "source_row"]
"""The columns that identify a row."""

RowKey = tuple[str, str, int]
"""The values of the columns KEY."""

TableRow = TypeVar("TableRow")

BATCH_ROWS = 1024
"""The maximum number of rows that readers and writers hold in memory at a time."""

BATCH_BYTES = 32 * 2**20
"""The maximum amount of text that a writer holds in memory."""

PART_BYTES = 256 * 2**20
"""A part of a table ends after this amount of text, even if it has few rows."""

_SPACE = re.compile(r"\s+")
_GROUPED = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?", re.ASCII)
"""A number with commas between thousands. The same gold of GSM8K is 1,080 on the hub and 1080 in some copies."""


def arrow_schema(row_type: type) -> pa.Schema:
    """Return the schema of a typed row, in the order of its fields. Fields that are not required are left out."""
    hints = get_type_hints(row_type, include_extras=True)
    return pa.schema([(name, _arrow_type(hint)) for name, hint in hints.items() if get_origin(hint) is not NotRequired])


def _arrow_type(hint: Any) -> pa.DataType:
    if get_origin(hint) is Annotated:
        return hint.__metadata__[0]
    (kind,) = {*(get_args(hint) or (hint,))} - {NoneType}
    return ARROW_TYPES[kind]


class RowReference(TypedDict):
    """The columns by which every table refers to a row."""

    id: str
    source: str
    source_row: int


def row_reference(row: RowReference) -> RowReference:
    """Return the columns by which every table refers to this row."""
    return {"id": row["id"], "source": row["source"], "source_row": row["source_row"]}


def file_of(row: Mapping[str, Any]) -> str | None:
    """Return the file and line of a row, such as `part1.jsonl:21`, or None if its source is a single file."""
    meta = row.get("meta") or ""
    if f'"{FILE}":' not in meta:
        return None
    notes = orjson.loads(meta).get(NOTES)
    return notes.get(FILE) if isinstance(notes, dict) else None


def row_place(row: Mapping[str, Any]) -> str:
    """Return the location of a row: `train.jsonl:17`, or for a folder `parts:43 (part1.jsonl:21)`."""
    file = file_of(row)
    return f"{row['source']}:{row['source_row']}{f' ({file})' if file else ''}"


class Row(TypedDict):
    """The canonical row, which includes the columns of RowReference."""

    id: str
    prompt: str
    gold: str | None
    domain: str
    verifier: str
    verifier_args: str
    solution: str | None
    source: str
    source_row: int
    split: str
    meta: str
    context: str | None
    """The messages before the prompt as JSON, or null if there are none."""
    pass_rate: NotRequired[float]
    """The expected pass rate. The stage `select` adds this field and the following ones (SELECTED_SCHEMA)."""
    posterior: NotRequired[list[Component]]
    """The posterior distribution of the pass rate (`rates`)."""
    suspicion: NotRequired[float]
    """The probability that the row is at fault."""


ROW_SCHEMA = arrow_schema(Row)


def row_key(row: Mapping[str, Any]) -> RowKey:
    """Return the values of the columns KEY. `row` may come from any table with these columns."""
    return row["id"], row["source"], row["source_row"]


def group_by_row(records: Iterable[TableRow]) -> dict[RowKey, list[TableRow]]:
    """Return the records grouped by row, in their order."""
    groups: dict[RowKey, list[TableRow]] = {}
    for record in records:
        groups.setdefault(row_key(cast("Mapping[str, Any]", record)), []).append(record)
    return groups


def normalise_for_id(text: str) -> str:
    """Return `text` in NFC, with single spaces and trimmed ends."""
    return _SPACE.sub(" ", unicodedata.normalize("NFC", text)).strip()


def row_id(prompt: str, gold: str | None, verifier_args: str = "{}") -> str:
    """Return a row's id: 20 hex digits of the SHA-256 of the normalised prompt, gold and verifier arguments.

    The golds 1,080 and 1080 give the same id.
    """
    gold_part = "" if gold is None else normalise_for_id(gold)
    if _GROUPED.fullmatch(gold_part):
        gold_part = gold_part.replace(",", "")
    parts = [normalise_for_id(prompt), gold_part, verifier_args]
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "big"))
        digest.update(encoded)
    return digest.hexdigest()[:20]


def content_key(row: Mapping[str, Any]) -> str:
    """Return a hash of a row's conversation, gold, verifier and arguments. It shows whether a row has changed.

    When a stage edits a row, its content key changes, and its `id` stays. Reviewers' decisions store both.
    """
    seen = f"{row.get('context') or ''}{row['prompt']}"
    return row_id(seen, row["gold"], f"{row['verifier']} {row['verifier_args']}")


def context_of(row: Mapping[str, Any]) -> list[Message]:
    """Return the messages before the question, empty for most rows."""
    text = row.get("context")
    messages: list[Message] = orjson.loads(text) if text else []
    return messages


def messages_of_row(row: Mapping[str, Any]) -> list[Message]:
    """Return the whole conversation, with the question as last message."""
    return [*context_of(row), {"role": "user", "content": row["prompt"]}]


def problem_of(row: Mapping[str, Any]) -> str:
    """Return the whole conversation as one text. Verifiers get it as `problem`."""
    prompt: str = row["prompt"]
    return write_out(messages_of_row(row)) if row.get("context") else prompt


def dump_json(value: Any) -> str:
    """Return compact JSON with sorted keys. Equal values give equal strings."""
    return orjson.dumps(
        value, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY
    ).decode()


class TableWriter:
    """A context manager that writes dicts to one Parquet file, in batches of bounded size."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._schema = schema
        self._names = frozenset(schema.names)
        self._writer = pq.ParquetWriter(path, schema, compression="zstd")
        self._buffer: list[Mapping[str, Any]] = []
        self._buffered_bytes = 0
        self._flushed_bytes = 0
        self.rows = 0

    def write(self, row: Mapping[str, Any]) -> None:
        """Add a row. Missing columns become null. Raises KeyError for an unknown column."""
        if not row.keys() <= self._names:
            raise KeyError(f"columns not in the table: {sorted(row.keys() - self._names)}")
        self._buffer.append(row)
        for value in row.values():
            if isinstance(value, str):
                self._buffered_bytes += len(value)
        self.rows += 1
        if len(self._buffer) >= BATCH_ROWS or self._buffered_bytes >= BATCH_BYTES:
            self._flush()

    @property
    def bytes(self) -> int:
        """The amount of text written so far, in characters."""
        return self._flushed_bytes + self._buffered_bytes

    def _flush(self) -> None:
        if self._buffer:
            self._writer.write_table(pa.Table.from_pylist(self._buffer, schema=self._schema))
            self._buffer.clear()
            self._flushed_bytes += self._buffered_bytes
            self._buffered_bytes = 0

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if kind is None:
            self._flush()
        self._writer.close()

    def close(self) -> None:
        """Write the remaining rows, and close the file."""
        self.__exit__(None, None, None)


class PartsWriter:
    """A context manager that writes dicts to a table in parts of `part_rows` rows.

    A part also ends when its text reaches PART_BYTES. If all rows fit into one part, the table is a single file.
    """

    def __init__(self, path: Path, schema: pa.Schema, part_rows: int) -> None:
        self._path, self._schema, self._part_rows = path, schema, part_rows
        make_room(path, 1)
        self._writer = TableWriter(path, schema)
        self._closed_rows = 0
        self._parts = 1

    @property
    def rows(self) -> int:
        """The number of rows written so far."""
        return self._closed_rows + self._writer.rows

    def write(self, row: Mapping[str, Any]) -> None:
        """Add a row."""
        if self._writer.rows >= self._part_rows or self._writer.bytes >= PART_BYTES:
            self._begin_part()
        self._writer.write(row)

    def _begin_part(self) -> None:
        self._writer.close()
        if self._parts == 1:
            first = self._path.rename(self._path.with_name(self._path.name + ".tmp"))
            make_room(self._path, 2)
            first.rename(part_path(self._path, 0, 2))
        self._closed_rows += self._writer.rows
        self._parts += 1
        self._writer = TableWriter(part_path(self._path, self._parts - 1, self._parts), self._schema)

    def __enter__(self) -> PartsWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._writer.__exit__(kind, error, tb)


def read_batches(path: Path, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Yield a Parquet table in batches of at most BATCH_ROWS rows. The table is a single file or has parts."""
    for part in table_parts(path):
        with pq.ParquetFile(part, pre_buffer=False) as file:
            # A batch over several row groups may have too much text. So each row group is read separately.
            for group in range(file.num_row_groups):
                yield from file.iter_batches(batch_size=BATCH_ROWS, row_groups=[group], columns=columns)


def read_table(path: Path, kind: type[TableRow], columns: list[str] | None = None) -> Iterator[TableRow]:
    """Yield the rows of a table as dicts of the type `kind`, with only `columns` if they are given."""
    for batch in read_batches(path, columns):
        yield from batch.to_pylist()


def copy_table(path: Path, target: Path) -> None:
    """Write a table, a single file or parts, to a single file."""
    parts = table_parts(path)
    if len(parts) == 1:
        shutil.copyfile(parts[0], target)
        return
    with written_aside(target) as aside, pq.ParquetWriter(aside, table_schema(path), compression="zstd") as writer:
        for batch in read_batches(path):
            writer.write_batch(batch)


def table_schema(path: Path) -> pa.Schema:
    """Return the schema of a table, a single file or parts."""
    return pq.read_schema(table_parts(path)[0])


def read_rows(path: Path, columns: list[str] | None = None) -> Iterator[Row]:
    """Yield the rows of a table of canonical rows (`read_table`)."""
    return read_table(path, Row, columns)


def read_shards(path: Path, rows: int) -> Iterator[list[Row]]:
    """Yield a table of canonical rows in lists of `rows` rows. The last list may be shorter."""
    source = read_rows(path)
    while shard := list(islice(source, rows)):
        yield shard


def count_rows(path: Path) -> int:
    """Return the number of rows of a table, from the footers of its files."""
    return sum(int(pq.read_metadata(part).num_rows) for part in table_parts(path))


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]], schema: pa.Schema = ROW_SCHEMA) -> int:
    """Write all rows to one Parquet file, and return their number."""
    with TableWriter(path, schema) as writer:
        for row in rows:
            writer.write(row)
    return writer.rows


class ProfileRow(RowReference):
    """A row of `profile.parquet`: the pass rate of one problem."""

    split: str
    n: Int32
    """The number of samples of the problem."""
    judged: Int32
    """The number of samples with a score."""
    passes: Int32
    unread: Int32
    """The number of complete samples whose answer could not be read."""
    pass_rate: float | None
    """The share of passes among the judged samples, or None if no sample was judged."""
    low: float
    """The lower end of Wilson's 95 % interval of the pass rate."""
    high: float
    pass_at: str
    """A JSON object that maps k (1, 2, 4, ...) to pass@k."""
    posterior: Posterior
    """The posterior distribution of the pass rate (`rates`), empty if no sample was judged. If the first samples of a
    problem decided how many it got, `pass_rate` is biased, but `posterior` is not."""
    expected_rate: float | None
    """The mean of the posterior."""
    expected_deviation: float | None
    """The standard deviation of the posterior."""
    likely_low: float | None
    """The lower end of the 90 % interval of the posterior."""
    likely_high: float | None
    decision: str | None
    """The most probable band of the pass rate (`PassRateBand`)."""
    decision_probability: float | None
    """The posterior probability of the band `decision`."""
    tokens_mean: float
    tokens_max: Int32
    truncated: float
    """The share of samples that ended at a length limit."""
    repeating: float
    """The share of samples that ended in a loop, including those that the engine stopped (`stop_loops`)."""
    answers: Int32
    """The number of different answers of the samples."""
    majority_answer: str | None
    """The most frequent answer of the samples."""
    majority_agreement: float
    """The share of all samples with the majority answer."""


PROFILE_SCHEMA = arrow_schema(ProfileRow)
