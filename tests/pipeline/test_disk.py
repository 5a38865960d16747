"""Whatever keeps a file from being written is one line that names it and says what to do."""

from __future__ import annotations

import errno
import resource
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from truegold.pipeline.running.disk import append_lines, disk_errors_reported, read_whole_lines
from truegold.verifiers import SetupError

FULL_DEVICE = Path("/dev/full")

Write = Callable[[Path], object]


def write_wrapped(path: Path) -> None:
    try:
        path.write_text("x" * 100_000)
    except OSError as error:
        raise RuntimeError("the checkpoint could not be saved") from error


def write_sqlite(path: Path) -> None:
    raise sqlite3.OperationalError("database or disk is full")


WRITERS: dict[str, Write] = {
    "text": lambda path: path.write_text("x" * 100_000),
    "numpy": lambda path: np.zeros(100_000).tofile(path),
    "polars": lambda path: pl.DataFrame({"n": range(100_000)}).write_parquet(path),
    "arrow": lambda path: pq.write_table(pa.table({"n": list(range(100_000))}), path),
    "sqlite": write_sqlite,
    "wrapped": write_wrapped,
}


@pytest.mark.skipif(not FULL_DEVICE.exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_a_full_disk_is_told_whichever_library_meets_it(write: Write, tmp_path: Path) -> None:
    # A library deletes the file that it could not finish: it may have the link, and not the device.
    full = tmp_path / "full"
    full.symlink_to(FULL_DEVICE)
    with pytest.raises(SetupError, match="No space left on the disk of"), disk_errors_reported(tmp_path):
        write(full)
    assert FULL_DEVICE.exists()


def test_a_file_where_a_folder_should_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("")
    with pytest.raises(SetupError, match=r"runs.*name (a|another) folder"), disk_errors_reported(tmp_path):
        (tmp_path / "runs" / "one").mkdir(parents=True)
    with pytest.raises(SetupError, match=r"runs: File exists"), disk_errors_reported(tmp_path):
        (tmp_path / "runs").mkdir()


@pytest.mark.parametrize(
    "number", [errno.EROFS, errno.EACCES, errno.EDQUOT, errno.EIO, errno.EFBIG, errno.ENAMETOOLONG]
)
def test_other_refusals_of_the_system_are_one_line(number: int, tmp_path: Path) -> None:
    with pytest.raises(SetupError) as caught, disk_errors_reported(tmp_path):
        raise OSError(number, "no", "some/file")
    assert "some/file" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bugs_pass_with_their_traceback(tmp_path: Path) -> None:
    for bug in (
        ValueError("x"),
        KeyError("full"),
        OSError("something else"),
        ConnectionError(errno.ECONNREFUSED, "no"),
        RuntimeError("quota exceeded for requests per minute"),
    ):
        with pytest.raises(type(bug)), disk_errors_reported(tmp_path):
            raise bug


def test_a_bug_met_while_a_missing_file_was_handled_is_not_put_down_to_the_file(tmp_path: Path) -> None:
    with pytest.raises(KeyError), disk_errors_reported(tmp_path):
        try:
            (tmp_path / "missing").read_text()
        except FileNotFoundError:
            {}["fallback"]
    with pytest.raises(SetupError, match="missing: No such file"), disk_errors_reported(tmp_path):
        try:
            (tmp_path / "missing").read_text()
        except FileNotFoundError as error:
            raise RuntimeError("wrapped") from error


def test_lines_that_do_not_fit_leave_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "alarms.jsonl"
    append_lines(path, {"step": 1})
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 5, limit[1]))
    try:
        with pytest.raises(OSError, match="No space left"):
            append_lines(path, {"step": 2}, {"step": 3})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    append_lines(path, {"step": 4})
    assert read_whole_lines(path) == [{"step": 1}, {"step": 4}]
