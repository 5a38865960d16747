"""Data by URL: fetched once, again when it has changed, whole or not at all, and one line where it cannot be read."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from command_line import run_command
from s3_server import s3_server

from truegold.pipeline.curation.api import find_leaks
from truegold.pipeline.sources.data_files import at_hand, open_file
from truegold.pipeline.sources.places import local_copy, place_url
from truegold.pipeline.sources.records import Record
from truegold.pipeline.tables.rows import read_rows
from truegold.verifiers import InputError, SetupError

fsspec = pytest.importorskip("fsspec")
pytestmark = pytest.mark.usefixtures("cache")

RECORDS = [{"question": f"Ada has {n} apples and buys {n + 3} more. How many?", "answer": 2 * n + 3} for n in range(60)]
LINES = "".join(json.dumps(record) + "\n" for record in RECORDS).encode()


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with s3_server() as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        fs = fsspec.filesystem("s3", skip_instance_cache=True)
        fs.mkdir("bucket")
        yield fs
        type(fs).clear_instance_cache()


class Server(BaseHTTPRequestHandler):
    """Serves a packed file, the half of one, and refuses the rest."""

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def _answer(self, with_body: bool) -> None:
        body = gzip.compress(LINES)
        path = self.path.partition("?")[0]
        status = {"/train.jsonl.gz": 200, "/cut.jsonl.gz": 200, "/secret.jsonl": 403}.get(path, 404)
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if status == 200 else 0))
        self.end_headers()
        if with_body and status == 200:
            self.wfile.write(body[: len(body) // 2] if path == "/cut.jsonl.gz" else body)

    def log_message(self, format: str, *args: object) -> None:
        del format, args


@pytest.fixture
def web() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def questions(path: str | Path) -> list[str]:
    records = open_file(Path(path), "auto", 2**20).records
    return [record.values["question"] for record in records if isinstance(record, Record)]


@pytest.mark.parametrize(
    ("path", "url"),
    [
        ("s3://bucket/train.jsonl", "s3://bucket/train.jsonl"),
        (Path("s3://bucket/train.jsonl"), "s3://bucket/train.jsonl"),
        ("https://host/a.jsonl?token=1", "https://host/a.jsonl?token=1"),
        ("data/train.jsonl", None),
        ("/data/train.jsonl", None),
        ("c:/train.jsonl", None),
        ("file:///data/train.jsonl", None),
        ("s3:", None),
    ],
)
def test_a_url_is_known_as_one_also_as_a_path_spells_it(path: str | Path, url: str | None) -> None:
    assert place_url(path) == url


def test_a_file_url_is_a_file_of_this_machine(tmp_path: Path) -> None:
    file = tmp_path / "train.jsonl"
    file.write_bytes(LINES)
    assert local_copy(f"file://{file}") == local_copy(Path(f"file://{file}")) == file
    assert len(questions(f"file://{file}")) == len(RECORDS)


def test_an_object_is_fetched_once_and_again_when_it_has_changed(memory: Any) -> None:
    memory.pipe_file("/set/train.jsonl", LINES)
    first = local_copy("memory://set/train.jsonl")
    assert (first.name, first.read_bytes()) == ("train.jsonl", LINES)
    state = first.stat()
    again = local_copy("memory://set/train.jsonl")
    assert (again, again.stat().st_ino) == (first, state.st_ino)
    memory.pipe_file("/set/train.jsonl", LINES[:-1].replace(b"apples", b"plums!"))
    changed = local_copy("memory://set/train.jsonl")
    assert b"plums!" in changed.read_bytes()
    assert first.read_bytes() == LINES  # A run that has begun reads on what it has begun with.


def test_a_folder_and_a_pattern_stand_for_their_data_files(memory: Any) -> None:
    memory.pipe_file("/set/train-1.jsonl", LINES)
    memory.pipe_file("/set/deep/train-2.jsonl", LINES)
    memory.pipe_file("/set/README.md", b"# A set")
    folder = at_hand("memory://set")
    assert sorted(str(file.relative_to(folder)) for file in folder.rglob("*.*")) == [
        "deep/train-2.jsonl",
        "train-1.jsonl",
    ]
    assert len(questions("memory://set")) == 120
    assert len(questions("memory://set/*.jsonl")) == 60
    assert len(questions("memory://set/**/*-2.jsonl")) == 60


def test_a_packed_file_is_read_from_the_web(web: str, tmp_path: Path) -> None:
    assert len(questions(f"{web}/train.jsonl.gz?download=true")) == 60
    done = run_command("dedup", "--data", f"{web}/train.jsonl.gz", "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    kept, dropped = ((tmp_path / "out" / f"{name}.jsonl.gz").read_bytes() for name in ("kept", "dropped"))
    assert sorted((gzip.decompress(kept) + gzip.decompress(dropped)).splitlines()) == sorted(LINES.splitlines())


def test_python_takes_urls_where_it_takes_files(memory: Any) -> None:
    memory.pipe_file("/set/train.jsonl", LINES)
    memory.pipe_file("/set/eval.jsonl", LINES.splitlines()[7] + b"\n")
    leaks = find_leaks("memory://set/train.jsonl", "memory://set/eval.jsonl")
    assert 8 in leaks.matches["row"].to_list()


def test_a_cut_download_is_an_error_and_leaves_nothing(web: str, cache: Path) -> None:
    with pytest.raises(SetupError) as error:
        local_copy(f"{web}/cut.jsonl.gz")
    assert "cut.jsonl.gz" in error.value.message
    assert "run the same command again" in str(error.value.hint).lower()
    assert [file for file in cache.rglob("*") if file.is_file()] == []


def test_an_object_that_is_shorter_than_the_place_says_is_an_error(
    memory: Any, monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    memory.pipe_file("/set/train.jsonl", LINES)
    monkeypatch.setattr(memory, "get", lambda names, paths: [Path(path).write_bytes(LINES[:99]) for path in paths])
    with pytest.raises(SetupError, match="ended after 99 of"):
        local_copy("memory://set/train.jsonl")
    assert [file for file in cache.rglob("*") if file.is_file()] == []


@pytest.mark.parametrize(
    ("url", "kind", "said"),
    [
        ("{web}/nothing.jsonl", InputError, "does not exist"),
        ("{web}/secret.jsonl", SetupError, "access is denied"),
        ("http://127.0.0.1:9/train.jsonl", SetupError, "cannot be reached"),
        ("hf://datasets/openai/gsm8k/x.parquet", SetupError, "offline mode"),
        ("memory://set/nothing.jsonl", InputError, "memory://set/nothing.jsonl does not exist."),
        ("memory://set/*.jsonl", InputError, "has no data file"),
        ("nowhere://set/train.jsonl", InputError, "URLs of this kind cannot be read"),
        ("oss://set/train.jsonl", SetupError, "pip install"),
    ],
)
def test_what_cannot_be_fetched_is_one_line_that_says_what_to_do(
    web: str, url: str, kind: type[Exception], said: str
) -> None:
    with pytest.raises(kind) as error:
        local_copy(url.format(web=web))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_an_export_is_sent_to_a_place(memory: Any, tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_bytes(LINES)
    command = ("export", "train.jsonl", "--format", "trl", "--out")
    assert run_command(*command, "here", cwd=tmp_path).returncode == 0
    done = run_command(*command, "memory://sets/apples", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("sent to memory://sets/apples\n")
    here = sorted(str(file.relative_to(tmp_path / "here")) for file in (tmp_path / "here").rglob("*") if file.is_file())
    assert sorted(path.removeprefix("/sets/apples/") for path in memory.find("/sets/apples")) == here
    assert not (tmp_path / "memory:").exists()
    refused = run_command("dedup", "--data", "train.jsonl", "--out", "memory://sets/x", cwd=tmp_path)
    assert refused.returncode == 2
    assert "not a folder on disk" in refused.stderr


def curate(folder: Path, data: str, *settings: str) -> dict[str, Any]:
    """Return the tables of a run on data, and its reports, without what names the place."""
    folder.mkdir(exist_ok=True)
    overrides = [part for setting in ("name=run", *settings) for part in ("--set", setting)]
    done = run_command("curate", data, "--engine", "local", *overrides, cwd=folder)
    assert done.returncode == 0, done.stderr
    run_dir = folder / "runs" / "run"
    tables = sorted(run_dir.glob("*/*.parquet"))
    return {str(path.relative_to(run_dir)): list(read_rows(path)) for path in tables if path.parent.name != "report"}


def test_a_set_of_s3_is_curated_as_the_same_set_on_disk(s3: Any, tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_bytes(LINES)
    s3.put_file(str(tmp_path / "train.jsonl"), "bucket/sets/train.jsonl")
    on_disk = curate(tmp_path / "disk", str(tmp_path / "train.jsonl"))
    assert "clean/ledger.parquet" in on_disk
    assert curate(tmp_path / "s3", "s3://bucket/sets/train.jsonl") == on_disk
    pl.read_ndjson(LINES).write_parquet(tmp_path / "train.parquet")
    s3.put_file(str(tmp_path / "train.parquet"), "bucket/tables/train.parquet")
    assert len(curate(tmp_path / "parquet", "s3://bucket/tables/*.parquet")["ingest/rows.parquet"]) == 60
    # The object changes: what hangs on it runs again.
    records = tmp_path / "s3" / "runs" / "run" / "ingest" / "stage.json"
    before = records.stat().st_mtime_ns
    curate(tmp_path / "s3", "s3://bucket/sets/train.jsonl")
    assert records.stat().st_mtime_ns == before
    s3.pipe_file("bucket/sets/train.jsonl", b"".join(LINES.splitlines(keepends=True)[:50]))
    assert len(curate(tmp_path / "s3", "s3://bucket/sets/train.jsonl")["ingest/rows.parquet"]) == 50


def test_errors_of_s3_are_one_line_each(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"s3://other/train.jsonl does not exist: The specified bucket"):
        local_copy("s3://other/train.jsonl")
    with pytest.raises(InputError, match=r"s3://bucket/train.jsonl does not exist\."):
        local_copy("s3://bucket/train.jsonl")
    with s3_server(INITIAL_NO_AUTH_ACTION_COUNT="0") as environment:
        monkeypatch.setenv("AWS_ENDPOINT_URL", environment["AWS_ENDPOINT_URL"])
        type(s3).clear_instance_cache()
        with pytest.raises(SetupError, match=r"access is denied: .*AWS_PROFILE"):
            local_copy("s3://bucket/train.jsonl")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    type(s3).clear_instance_cache()
    with pytest.raises(SetupError, match=r"Unable to locate credentials.*FSSPEC_S3_ANON"):
        local_copy("s3://bucket/train.jsonl")


def test_google_without_a_key_and_without_a_network_is_refused_by_two_short_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def refuse(server: tuple[str, int], timeout: float) -> None:
        tried.append(server[0])
        raise OSError("no route")

    monkeypatch.setattr("truegold.pipeline.sources.places.socket.create_connection", refuse)
    monkeypatch.setattr("truegold.pipeline.sources.places.getproxies", dict)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    for name in ("NO_GCE_CHECK", "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    for name in ("GOOGLE_APPLICATION_CREDENTIALS", "STORAGE_EMULATOR_HOST"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(
        SetupError, match=r"gs://b/x.jsonl cannot be reached: no connection to storage\.googleapis\.com"
    ):
        local_copy("gs://b/x.jsonl")
    assert tried == ["169.254.169.254", "storage.googleapis.com"]
