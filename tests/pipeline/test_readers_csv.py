"""CSV: quoted line breaks, wrong field counts, stray quotes, bytes that are no text, records above the bound."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from truegold.pipeline.sources.data_files import open_file
from truegold.pipeline.sources.records import Record, Reject
from truegold.verifiers import InputError

HEADER = b"question,answer\n"


def read(folder: Path, data: bytes, limit: int = 2**20) -> list[Record | Reject]:
    path = folder / "data.csv"
    path.write_bytes(data)
    return list(open_file(path, "auto", limit).records)


def outcomes(records: list[Record | Reject]) -> list[tuple[int, str]]:
    return [(record.row_number, record.reason if isinstance(record, Reject) else "row") for record in records]


def test_a_record_is_numbered_by_the_line_it_starts_on(tmp_path):
    records = read(tmp_path, HEADER + b'"What is 6*7,\nplease?",42\n\nHow many?,7\n')
    assert outcomes(records) == [(2, "row"), (5, "row")]
    assert isinstance(records[0], Record)
    assert records[0].values == {"question": "What is 6*7,\nplease?", "answer": "42"}


def test_crlf_and_byte_order_mark_leave_no_trace(tmp_path):
    (record,) = read(tmp_path, b"\xef\xbb\xbfquestion,answer\r\nHow many?,7\r\n")
    assert isinstance(record, Record)
    assert record.values == {"question": "How many?", "answer": "7"}


def test_bad_records_are_rejected_and_reading_goes_on(tmp_path):
    lines = [b"a,b,c", b"only one", b'"quote"d,1', b"caf\xe9,1", b"x" * 400 + b",1", b"good,1"]
    assert outcomes(read(tmp_path, HEADER + b"\n".join(lines), limit=300)) == [
        (2, "wrong_field_count"),
        (3, "wrong_field_count"),
        (4, "invalid_csv"),
        (5, "invalid_utf8"),
        (6, "row_too_long"),
        (7, "row"),
    ]


def test_a_quote_that_is_never_closed_does_not_swallow_the_file(tmp_path):
    rows = b"".join(b"q%d,%d\n" % (i, i) for i in range(100))
    reasons = outcomes(read(tmp_path, HEADER + b'"open,1\n' + rows, limit=200))
    assert reasons[0] == (2, "row_too_long")
    assert sum(reason == "row" for _, reason in reasons) > 50


def test_a_quote_left_open_at_the_end_is_a_reject(tmp_path):
    assert outcomes(read(tmp_path, HEADER + b'a,1\n"b,2\n')) == [(2, "row"), (3, "invalid_csv")]


def test_fields_above_the_csv_modules_own_limit_are_read_and_the_limit_is_put_back(tmp_path):
    before = csv.field_size_limit()
    (record,) = read(tmp_path, HEADER + b"x" * 300_000 + b",1")
    assert isinstance(record, Record)
    assert csv.field_size_limit() == before


def test_a_header_that_is_none_is_an_error(tmp_path):
    with pytest.raises(InputError, match="'a' more than once"):
        read(tmp_path, b"a,b,a\n1,2,3\n")
    with pytest.raises(InputError, match="is empty"):
        read(tmp_path, b"\n\n")
    with pytest.raises(InputError, match="its header"):
        read(tmp_path, b'"a"b,c\n1,2\n')


def test_a_line_that_states_the_separator_is_no_record(tmp_path):
    (record,) = read(tmp_path, b"sep=;\nquestion;answer\n1,2 or 3?;4\n")
    assert isinstance(record, Record)
    assert record.values == {"question": "1,2 or 3?", "answer": "4"}


def test_a_letter_or_a_quote_is_no_separator(tmp_path):
    for line in (b"sep=a", b'sep="'):
        first, *_ = read(tmp_path, line + b"\na,b\n1,2\n")
        assert isinstance(first, Reject)


def test_columns_without_a_name_are_numbered_and_empty_fields_at_the_end_are_no_fault(tmp_path):
    first, second = read(tmp_path, b",question,answer\n0,a,1,,\n1,b,2\n")
    assert isinstance(first, Record) and isinstance(second, Record)
    assert first.values == {"column 1": "0", "question": "a", "answer": "1"}


def test_a_wrong_count_of_fields_names_the_separator_that_fits(tmp_path):
    rejected, _ = read(tmp_path, HEADER + b"a;1\nb,2\n")
    assert isinstance(rejected, Reject)
    assert rejected.detail == "by the separator ',' it has 1 field, but the header 2; by ';' it has 2"


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"PK\x03\x04....", "is an Excel workbook or another ZIP archive. Save the sheet as CSV UTF-8"),
        (b'{"question": "1+1?", "answer": "2"}\n', "is JSON Lines, not CSV. Name it"),
        ("question,answer\n1+1?,2\n".encode("utf-16-le"), "iconv -f utf-16le -t utf-8"),
        (b"question,answer\r1+1?,2\r", r"tr '\\r' '\\n' < "),
    ],
)
def test_what_is_no_csv_is_named_with_a_remedy(tmp_path, data, line):
    with pytest.raises(InputError) as caught:
        read(tmp_path, data)
    assert line.replace("\\\\", "\\") in str(caught.value)
