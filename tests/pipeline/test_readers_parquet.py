"""Parquet: nested values, files with one huge row group, values Python cannot hold, damaged files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from truegold.pipeline.sources.data_files import open_file
from truegold.pipeline.sources.records import Record, Reject
from truegold.verifiers import InputError


def write(path: Path, table: pa.Table) -> Path:
    pq.write_table(table, path)
    return path


def read(path: Path, limit: int = 2**20) -> list[Record | Reject]:
    return list(open_file(path, "auto", limit).records)


def test_structs_and_lists_come_as_dicts_and_lists(tmp_path):
    values = {"prompt": [{"role": "user", "content": "1+1?"}], "reward_model": {"ground_truth": "2"}}
    source = open_file(write(tmp_path / "a.parquet", pa.Table.from_pylist([values])), "auto", 2**20)
    (record,) = source.records
    assert source.total == 1
    assert isinstance(record, Record)
    assert (record.row_number, record.values) == (1, values)


def test_texts_that_are_not_utf8_reject_their_row_only(tmp_path):
    texts = pa.array([b"good", b"caf\xe9", b"fine"]).view(pa.string())
    records = read(write(tmp_path / "a.parquet", pa.table({"question": texts})))
    assert [getattr(record, "reason", "row") for record in records] == ["row", "invalid_utf8", "row"]


def test_dates_that_python_has_not_reject_their_row_only(tmp_path):
    days = pa.array([0, 2**31 - 1, 1], pa.int32()).cast(pa.date32())
    records = read(write(tmp_path / "a.parquet", pa.table({"day": days})))
    assert [getattr(record, "reason", "row") for record in records] == ["row", "unreadable_value", "row"]


def test_rows_above_the_bound_are_rejected(tmp_path):
    table = pa.table({"question": ["short", "x" * 1000]})
    records = read(write(tmp_path / "a.parquet", table), limit=500)
    assert [getattr(record, "reason", "row") for record in records] == ["row", "row_too_long"]


def test_files_that_are_none_or_cut_short_are_errors(tmp_path):
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1 but not really")
    with pytest.raises(InputError, match="not an intact Parquet file"):
        read(path)
    write(path, pa.table({"question": [f"{i * 7919}" for i in range(20_000)]}))
    data = bytearray(path.read_bytes())
    data[1000:60_000] = b"\x00" * 59_000
    path.write_bytes(data)
    with pytest.raises(InputError, match="is damaged after row"):
        read(path)


def test_a_file_of_one_row_group_is_not_held_whole(tmp_path):
    path = tmp_path / "a.parquet"
    with pq.ParquetWriter(
        path, pa.schema([("question", pa.string())]), compression="none", use_dictionary=False
    ) as out:
        out.write_table(pa.table({"question": [f"{i:08d}" * 128 for i in range(60_000)]}), row_group_size=60_000)
    assert pq.read_metadata(path).num_row_groups == 1
    program = (
        "import sys, pyarrow as pa\nfrom pathlib import Path\n"
        "from truegold.pipeline.sources.data_files import open_file\n"
        "for record in open_file(Path(sys.argv[1]), 'auto', 2**20).records: pass\n"
        "print(record.row_number, pa.default_memory_pool().max_memory())"
    )
    answer = subprocess.run(
        [sys.executable, "-P", "-c", program, str(path)], capture_output=True, check=True, text=True
    )
    last, peak = map(int, answer.stdout.split())
    assert last == 60_000
    assert peak < 25 * 2**20 < path.stat().st_size // 2
