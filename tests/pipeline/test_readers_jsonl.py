"""JSON Lines: every kind of bad line becomes a reject with its reason, every kind of wrong file one clear error."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from truegold.pipeline.sources.data_files import open_file
from truegold.pipeline.sources.jsonl import read_jsonl
from truegold.pipeline.sources.proposal import count_records
from truegold.pipeline.sources.records import Record, Reject
from truegold.verifiers import InputError

LIMIT = 2**20
GOOD = b'{"question": "What is 6*7?", "answer": 42}'


def read(folder: Path, data: bytes, name: str = "data.jsonl", limit: int = LIMIT) -> list[Record | Reject]:
    path = folder / name
    path.write_bytes(data)
    return list(open_file(path, "auto", limit).records)


def reject(folder: Path, line: bytes, limit: int = LIMIT) -> Reject:
    """The one reject that `line`, between two good ones, turns into."""
    first, rejected, last = read(folder, GOOD + b"\n" + line + b"\n" + GOOD, limit=limit)
    assert isinstance(first, Record)
    assert isinstance(last, Record)
    assert isinstance(rejected, Reject)
    assert (first.row_number, rejected.row_number, last.row_number) == (1, 2, 3)
    return rejected


def test_lines_are_numbered_as_in_an_editor_and_blank_ones_are_no_rows(tmp_path):
    records = read(tmp_path, b"\n" + GOOD + b"\n\n   \n" + GOOD)
    assert [record.row_number for record in records] == [2, 5]


def test_crlf_and_byte_order_mark_leave_no_trace(tmp_path):
    (record, other) = read(tmp_path, b"\xef\xbb\xbf" + GOOD + b"\r\n" + GOOD + b"\r\n")
    assert isinstance(record, Record)
    assert isinstance(other, Record)
    assert record.values == other.values == {"question": "What is 6*7?", "answer": 42}


def test_an_object_over_several_lines_is_one_record_and_a_folder_of_them_a_set(tmp_path):
    text = json.dumps(json.loads(GOOD), indent=4).encode()
    (record,) = read(tmp_path, text, "0.json")
    assert isinstance(record, Record)
    assert record.values == json.loads(GOOD)
    read(tmp_path, text.replace(b"6*7", b"7*6"), "1.json")
    assert count_records(tmp_path, "auto") == len(list(open_file(tmp_path, "auto", LIMIT).records)) == 2
    assert {type(line) for line in read(tmp_path, text + b"\n" + text, "2.json")} == {Reject}


def test_gzip_is_read_whatever_its_name(tmp_path):
    assert len(read(tmp_path, gzip.compress(GOOD + b"\n" + GOOD), "data.jsonl.gz")) == 2
    assert len(read(tmp_path, gzip.compress(GOOD), "data.jsonl")) == 1


def test_a_damaged_gzip_file_is_an_error_that_says_so(tmp_path):
    packed = gzip.compress(b"\n".join(b'{"question": "%d", "answer": "%d"}' % (i, i * 7919) for i in range(20_000)))
    with pytest.raises(InputError, match=r"data\.jsonl\.gz is damaged after line \d+"):
        read(tmp_path, packed[: len(packed) // 2], "data.jsonl.gz")


def test_invalid_utf8_names_the_byte(tmp_path):
    rejected = reject(tmp_path, b'{"question": "caf\xe9"}')
    assert rejected.reason == "invalid_utf8"
    assert "byte 17" in rejected.detail


@pytest.mark.parametrize(
    ("line", "reason", "detail"),
    [
        (b'{"question": "x", "answer": }', "invalid_json", "character 28"),
        (b'{"answer": NaN}', "invalid_json", "NaN is not JSON"),
        (b'{"answer": -Infinity}', "invalid_json", "-Infinity is not JSON"),
        (b'{"answer": 1} trailing', "invalid_json", "Extra data"),
        (b"[" * 200_000, "invalid_json", "nested too deeply"),
        (b'{"a":' * 100_000, "invalid_json", "nested too deeply"),
        (b'{"answer": ' + b"9" * 5000 + b"}", "invalid_json", "4300"),
        (b"[1, 2]", "not_an_object", "array"),
        (b'"text"', "not_an_object", "string"),
        (b"null", "not_an_object", "null"),
        (b"\x00\x00\x00", "invalid_json", "character 0"),
    ],
    ids=lambda value: value[:20].decode("latin-1") if isinstance(value, bytes) else None,
)
def test_a_bad_line_is_a_reject_with_its_reason(tmp_path, line, reason, detail):
    rejected = reject(tmp_path, line)
    assert rejected.reason == reason
    assert detail in rejected.detail
    assert len(rejected.excerpt) <= 200


def test_a_line_above_the_bound_is_rejected_with_its_size_and_reading_goes_on(tmp_path):
    rejected = reject(tmp_path, b'{"question": "' + b"x" * 500 + b'"}', limit=100)
    assert rejected.reason == "row_too_long"
    assert "516 bytes" in rejected.detail


def test_a_line_of_exactly_the_bound_is_read_with_lf_and_crlf(tmp_path):
    for end in (b"\n", b"\r\n", b""):
        (record,) = read(tmp_path, GOOD + end, limit=len(GOOD))
        assert isinstance(record, Record)


def test_integers_beyond_64_bits_stay_exact(tmp_path):
    (record,) = read(tmp_path, b'{"answer": 123456789012345678901234567890}')
    assert isinstance(record, Record)
    assert record.values["answer"] == 123456789012345678901234567890


def test_one_line_of_50_megabytes_is_skipped_in_bounded_memory(tmp_path):
    path = tmp_path / "huge.jsonl"
    with path.open("wb") as file:
        file.write(GOOD + b'\n{"question": "')
        for _ in range(50):
            file.write(b"x" * 2**20)
        file.write(b'"}\n' + GOOD)
    program = (
        "import sys, tracemalloc\nfrom pathlib import Path\nfrom truegold.pipeline.sources.jsonl import read_jsonl\n"
        "tracemalloc.start()\n"
        "reasons = [getattr(r, 'reason', 'row') for r in read_jsonl(Path(sys.argv[1]), 2**20)]\n"
        "print(*reasons, tracemalloc.get_traced_memory()[1])"
    )
    answer = subprocess.run(
        [sys.executable, "-P", "-c", program, str(path)], capture_output=True, check=True, text=True
    )
    *reasons, peak = answer.stdout.split()
    assert reasons == ["row", "row_too_long", "row"]
    assert int(peak) < 6 * 2**20


def test_other_formats_under_a_wrong_name_are_named(tmp_path):
    with pytest.raises(InputError, match="is a Parquet file"):
        read(tmp_path, b"PAR1....")


def test_utf_16_is_read_by_its_mark(tmp_path):
    assert read(tmp_path, GOOD.decode().encode("utf-16")) == read(tmp_path, GOOD)


def test_errors_before_the_first_row_say_what_to_do(tmp_path):
    with pytest.raises(InputError, match="is empty"):
        read(tmp_path, b"")
    with pytest.raises(InputError, match=r"does not exist.*data.jsonl"):
        open_file(tmp_path / "dta.jsonl", "auto", LIMIT)
    with pytest.raises(InputError, match="relative paths start at"):
        open_file(tmp_path / "nowhere" / "data.jsonl", "auto", LIMIT)
    (tmp_path / "none").mkdir()
    with pytest.raises(InputError, match="has no data file"):
        open_file(tmp_path / "none", "auto", LIMIT)
    with pytest.raises(InputError, match=r"does not show its format.*jsonl, parquet, csv"):
        read(tmp_path, GOOD, "data.txt")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_an_error(tmp_path):
    path = tmp_path / "secret.jsonl"
    path.write_bytes(GOOD)
    path.chmod(0)
    with pytest.raises(InputError, match=r"may not be read.*chmod"):
        open_file(path, "auto", LIMIT)


def test_a_named_pipe_is_refused_without_waiting_for_it(tmp_path):
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(InputError, match="not a regular file"):
        open_file(tmp_path / "pipe.jsonl", "auto", LIMIT)


def test_the_format_may_be_said(tmp_path):
    path = tmp_path / "data.txt"
    path.write_bytes(GOOD)
    assert len(list(open_file(path, "jsonl", LIMIT).records)) == len(list(read_jsonl(path, LIMIT))) == 1
