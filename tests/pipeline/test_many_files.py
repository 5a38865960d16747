"""Data in several files, in packed files, and in one JSON array."""

from __future__ import annotations

import gzip
import json
import random
import tempfile
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ingest_files import read_file, rejects, write_lines

from truegold.pipeline.running.disk import DigestCache
from truegold.pipeline.sources import jsonl
from truegold.pipeline.sources.data_files import check_data, open_file, split_file
from truegold.pipeline.sources.jsonl import is_json_array
from truegold.pipeline.sources.records import Record
from truegold.pipeline.tables.rows import file_of, row_place
from truegold.verifiers import InputError

ROWS = [{"question": f"{number}+1?", "answer": str(number + 1)} for number in range(5)]


def as_lines(rows: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def golds(folder: Path, path: Path, **config: Any) -> list[str | None]:
    return [row["gold"] for row in read_file(path, folder, **config)[1]]


def test_a_folder_is_read_file_by_file(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "train").mkdir(parents=True)
    pl.DataFrame(ROWS[:2]).write_parquet(data / "train" / "a.parquet")
    write_lines(data, *ROWS[2:4], name="b.jsonl")
    (data / "c.csv").write_text("question,answer\n4+1?,5\n")
    (data / "README.md").write_text("no data")
    (data / ".cache").mkdir()
    write_lines(data / ".cache", *ROWS, name="old.jsonl")
    _, rows = read_file(data, tmp_path)
    assert [row["gold"] for row in rows] == ["3", "4", "5", "1", "2"]
    assert len({row["source_row"] for row in rows}) == 5 and {row["source"] for row in rows} == {"data"}
    files = ["b.jsonl:1", "b.jsonl:2", "c.csv:2", "train/a.parquet:1", "train/a.parquet:2"]
    assert list(map(file_of, rows)) == files and row_place(rows[2]).endswith(" (c.csv:2)")


def test_a_pattern_names_files(tmp_path: Path) -> None:
    for name, row in zip(("x-2.jsonl", "x-1.jsonl", "y.jsonl"), ROWS, strict=False):
        write_lines(tmp_path, row, name=name)
    assert golds(tmp_path, tmp_path / "x-*.jsonl") == ["2", "1"]
    check_data(tmp_path / "x-*.jsonl")


def test_what_a_pattern_matches_decides_its_digest(tmp_path: Path) -> None:
    cache = DigestCache(tmp_path / "digests.json")
    pattern = tmp_path / "x-*.jsonl"
    write_lines(tmp_path, ROWS[0], name="x-1.jsonl")
    first = cache.path(pattern)
    assert cache.path(pattern) == first
    write_lines(tmp_path, ROWS[1], name="x-2.jsonl")
    assert cache.path(pattern) != first


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("none", "does not exist"),
        ("empty", "has no data file"),
        ("x-*.jsonl", "has no data file"),
        ("saved", "was saved to disk"),
        ("run", "is a run of truegold, not data"),
    ],
)
def test_what_holds_no_data_is_an_error(tmp_path: Path, path: str, message: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "state.json").write_text("{}")
    (tmp_path / "run").mkdir()
    for name in ("manifest.json", "config.resolved.json"):
        (tmp_path / "run" / name).write_text("{}")
    with pytest.raises(InputError, match=message):
        check_data(Path(path) if path.startswith("hf") else tmp_path / path)


@pytest.mark.parametrize("packing", ["gzip", "zstd"])
def test_packed_files_are_read_and_split_in_their_own_form(tmp_path: Path, packing: str) -> None:
    path = tmp_path / ("x.jsonl.gz" if packing == "gzip" else "x.jsonl.zst")
    packed = gzip.compress(as_lines(ROWS)) if packing == "gzip" else pa.compress(as_lines(ROWS), "zstd", asbytes=True)
    path.write_bytes(packed)
    assert golds(tmp_path, path) == ["1", "2", "3", "4", "5"]
    kept, dropped = split_file(path, {2, 3}, tmp_path)
    assert (kept.suffix, dropped.suffix) == (path.suffix, path.suffix)
    assert (golds(tmp_path, kept), golds(tmp_path, dropped)) == (["1", "4", "5"], ["2", "3"])


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_damaged_packed_file_is_an_error(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x.jsonl{suffix}"
    lines = as_lines([{"question": random.Random(1).randbytes(50_000).hex(), "answer": "1"}] * 3)
    packed = gzip.compress(lines) if suffix == ".gz" else pa.compress(lines, "zstd", asbytes=True)
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(InputError, match=r"intact|damaged"):
        golds(tmp_path, path)


@pytest.mark.parametrize("indent", [None, 2])
def test_an_array_of_objects_is_read_object_by_object(tmp_path: Path, indent: int | None) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(ROWS, indent=indent))
    _, rows = read_file(path, tmp_path)
    assert [(row["gold"], row["source_row"]) for row in rows] == [(str(n), n) for n in range(1, 6)]


def test_a_bad_object_of_an_array_is_a_reject(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('[{"question": "1?", "answer": "1"}, {"question": NaN}, {"question": "2?", "answer": "2"}]')
    assert golds(tmp_path, path) == ["1", "2"]
    assert [(each["source_row"], each["reason"]) for each in rejects(tmp_path)] == [(2, "invalid_json")]


def test_a_long_object_of_an_array_is_a_reject(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps([ROWS[0], {"question": "x" * 300_000, "answer": "1"}, ROWS[1]]))
    assert golds(tmp_path, path, max_row_bytes=1000) == ["1", "2"]
    assert [each["reason"] for each in rejects(tmp_path)] == ["row_too_long"]


def test_a_cut_array_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(ROWS)[:-30])
    with pytest.raises(InputError, match="ends within its array, after 4 objects"):
        golds(tmp_path, path)


values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text('a"\\{}[]é\n', max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('k"\\{', max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.lists(st.dictionaries(st.text("ab", min_size=1, max_size=2), values, max_size=3), min_size=1), st.integers(1, 9)
)
def test_any_array_comes_back_whatever_the_size_of_a_piece(objects: list[dict[str, Any]], piece: int) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonl, "SKIP_BYTES", piece)
        path = Path(folder) / "x.json"
        path.write_text(json.dumps(objects))
        assert is_json_array(path)
        records = list(open_file(path, "auto", 10_000).records)
        assert [record.values for record in records if isinstance(record, Record)] == objects


def test_entries_that_are_no_objects_are_rejects(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('[{"question": "1?", "answer": "1"}, null, "x{", 5, {"question": "2?", "answer": "2"}]')
    assert golds(tmp_path, path) == ["1", "2"] and len(rejects(tmp_path)) == 1


def test_what_follows_an_array_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(ROWS, indent=1) + "\n" + json.dumps(ROWS[0]) + "\n")
    with pytest.raises(InputError, match="has text after its array"):
        golds(tmp_path, path)


def test_a_folder_of_several_splits_is_an_error(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for name in ("train-0.jsonl", "test-0.jsonl", "dataset_info.json"):
        write_lines(data, ROWS[0], name=name)
    with pytest.raises(InputError, match="several splits: test, train"):
        check_data(data)
    assert golds(tmp_path, data / "train*") == ["1"]


def test_an_array_in_a_line_of_its_own_is_a_reject_among_records(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps(ROWS[:2]) + "\n" + json.dumps(ROWS[4]) + "\n")
    assert golds(tmp_path, path) == ["5"]
    assert [each["reason"] for each in rejects(tmp_path)] == ["not_an_object"]


def test_what_lies_beside_data_is_not_read(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    write_lines(data, *ROWS[:2], name="part-0.jsonl")
    pl.DataFrame(ROWS[2:3]).write_parquet(data / "part-1.parquet")
    for name in ("._part-0.jsonl", ".part-9.jsonl", "_part-9.jsonl", "_SUCCESS", "README.md", "notes.txt"):
        write_lines(data, *ROWS[3:], name=name)
    (data / "dataset_infos.json").write_text('{"default": {"splits": {"train": 3}}}')
    (data / "stats.json").write_text(json.dumps({"rows": 3, "files": ["part-0.jsonl"]}, indent=2))
    for path in (data, data / "*", data / "[._a-zA-Z]*"):
        assert golds(tmp_path, path) == ["1", "2", "3"], path


def test_a_json_file_of_one_record_or_of_lines_is_data(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "a.json").write_text(json.dumps(ROWS[0]))
    (data / "b.json").write_text(json.dumps(ROWS[1:3]))
    write_lines(data, *ROWS[3:], name="c.json")
    assert golds(tmp_path, data) == ["1", "2", "3", "4", "5"]


def test_links_to_one_file_are_read_once(tmp_path: Path) -> None:
    blobs, snapshot = tmp_path / "hub" / "blobs", tmp_path / "hub" / "snapshots" / "abc"
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    blob = write_lines(blobs, *ROWS[:2], name="0123abcd")
    (snapshot / "train.jsonl").symlink_to(Path("../../blobs/0123abcd"))
    (tmp_path / "hub" / "snapshots" / "def").mkdir()
    (tmp_path / "hub" / "snapshots" / "def" / "train.jsonl").symlink_to(blob)
    assert golds(tmp_path, snapshot) == ["1", "2"]
    assert golds(tmp_path, tmp_path / "hub") == ["1", "2"]
    assert golds(tmp_path, tmp_path / "hub" / "snapshots" / "*" / "*.jsonl") == ["1", "2"]
    plain = write_lines(tmp_path / "hub", *ROWS[2:4], name="a.jsonl")
    (tmp_path / "hub" / "b.jsonl").hardlink_to(plain)
    (tmp_path / "hub" / "latest.jsonl").symlink_to(plain)
    assert golds(tmp_path, tmp_path / "hub") == ["3", "4", "1", "2"]


def test_a_link_to_nothing_is_named(tmp_path: Path) -> None:
    write_lines(tmp_path, *ROWS, name="a.jsonl")
    (tmp_path / "b.jsonl").symlink_to("gone.jsonl")
    with pytest.raises(InputError, match=r"b.jsonl is a broken link \(gone.jsonl\)"):
        golds(tmp_path, tmp_path)


def test_an_empty_file_among_others_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    write_lines(data, *ROWS[:2], name="a.jsonl")
    (data / "b.jsonl").touch()
    write_lines(data, *ROWS[2:3], name="c.jsonl")
    assert golds(tmp_path, data) == ["1", "2", "3"]
    assert [(entry["reason"], entry["detail"]) for entry in rejects(tmp_path)] == [
        ("empty_file", "the file is empty (b.jsonl:1)")
    ]
    assert golds(tmp_path, data / "*.jsonl") == ["1", "2", "3"]
    (data / "a.jsonl").write_text("")
    (data / "c.jsonl").write_text("")
    with pytest.raises(InputError, match=r"All 3 data files of .*data are empty"):
        golds(tmp_path, data)
    with pytest.raises(InputError, match=r"a\.jsonl is empty"):
        golds(tmp_path, data / "a.jsonl")


def test_a_table_of_structs_and_lists_is_read(tmp_path: Path) -> None:
    options = {"text": ["iron", "argon"], "label": ["A", "B"]}
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Which is a noble gas?"}]
    pl.DataFrame([{"prompt": messages, "choices": options, "answerKey": "B"}]).write_parquet(tmp_path / "a.parquet")
    _, (row,) = read_file(tmp_path / "a.parquet", tmp_path)
    assert (row["prompt"], row["gold"]) == ("Which is a noble gas?\n\nA. iron\nB. argon", "B")
    assert json.loads(row["context"] or "") == messages[:1]
