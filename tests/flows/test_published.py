"""Runs at a place: whole stages and whole parts at any moment, taken up by a machine that has nothing of them."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import orjson
import pytest
from command_line import run_command
from numbered_rows import plain_row
from s3_server import s3_server

from truegold.flows import published as publishing
from truegold.flows.config import RunConfig, validate_config
from truegold.flows.published import PublishedRun, published
from truegold.pipeline.running.disk import part_path
from truegold.pipeline.running.stage import RECORD
from truegold.pipeline.tables.rows import read_rows, write_rows
from truegold.verifiers import ConfigError, SetupError

fsspec = pytest.importorskip("fsspec")
pytestmark = pytest.mark.usefixtures("cache")

URL = "memory://place/runs"


def write_stage(run_dir: Path, name: str, key: str, tables: dict[str, bytes]) -> None:
    folder = run_dir / name
    folder.mkdir(parents=True, exist_ok=True)
    for table, content in tables.items():
        (folder / table).parent.mkdir(parents=True, exist_ok=True)
        (folder / table).write_bytes(content)
    (folder / RECORD).write_text(json.dumps({"key": key, "outputs": {}}))


def write_part(run_dir: Path, work: str, index: int, content: bytes, *, is_done: bool = True) -> None:
    folder = run_dir / ".partial" / work
    table = folder / "rows.parquet"
    table.mkdir(parents=True, exist_ok=True)
    part_path(table, index, 2).write_bytes(content)
    if is_done:
        marker = folder / "scratch" / "done" / f"{index:05d}.json"
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.write_bytes(orjson.dumps({"key": "k", "files": {"rows.parquet": len(content)}}))


def files_of(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Return what the files of a run hold and when they were changed, without those that stay on a machine."""
    files = (file for file in folder.rglob("*") if file.is_file() and file.name != ".lock")
    return {str(file.relative_to(folder)): (file.read_bytes(), file.stat().st_mtime_ns) for file in files}


def test_a_run_comes_back_as_it_was(memory: Any, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    write_stage(
        here, "clean", "c1", {"rows.parquet/part-00000.parquet": b"one", "rows.parquet/part-00001.parquet": b"2"}
    )
    write_part(here, "flag-1", 0, b"done")
    (here / "manifest.json").write_text("{}")
    (here / ".samples").mkdir()
    (here / ".samples" / "log.jsonl").write_text("{}\n")
    PublishedRun(here, URL).publish()
    PublishedRun(there, URL).fetch()
    assert files_of(there) == files_of(here)
    assert memory.cat_file("/place/runs/clean/rows.parquet/part-00000.parquet") == b"one"
    # What is not finished, and what is only of use on this machine, stays there.
    write_part(here, "flag-1", 1, b"half", is_done=False)
    (here / ".digests.json").write_text("{}")
    (here / "logs").mkdir()
    (here / "logs" / "train.log").write_text("...")
    run = PublishedRun(here, URL)
    run.fetch()
    run.publish()
    names = [path.removeprefix("/place/runs/") for path in memory.find("/place/runs")]
    assert not [name for name in names if "digests" in name or "logs" in name]
    assert ".partial/flag-1/rows.parquet/part-00001.parquet" not in names


def test_parts_that_are_published_are_copied_there_when_their_stage_is_done(
    memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_dir = tmp_path / "run"
    write_part(run_dir, "flag-1", 0, b"done")
    run = PublishedRun(run_dir, URL)
    run.publish()
    write_part(run_dir, "flag-1", 1, b"more")
    (run_dir / ".partial" / "flag-1").rename(run_dir / "flag")
    (run_dir / "flag" / RECORD).write_text(json.dumps({"key": "f1"}))
    sent: list[str] = []
    put = memory.put
    monkeypatch.setattr(memory, "put", lambda here, there: (sent.extend(there), put(here, there)))
    run.publish()
    assert [path.rpartition("/")[2] for path in sent if "rows.parquet" in path] == ["part-00001.parquet"]
    assert memory.cat_file("/place/runs/flag/rows.parquet/part-00000.parquet") == b"done"
    assert not [path for path in memory.find("/place/runs") if ".partial" in path]


def test_a_kill_while_a_stage_is_published_anew_leaves_the_old_or_nothing_of_it(
    memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_dir = tmp_path / "run"
    old, new = {"a": b"old", "b": b"old", "c": b"same"}, {"a": b"new", "b": b"new", "c": b"same"}
    write_stage(run_dir, "clean", "old", old)
    run = PublishedRun(run_dir, URL)
    run.publish()
    write_stage(run_dir, "clean", "new", new)
    calls = [(name, getattr(memory, name)) for name in ("put_file", "pipe_file", "rm_file")]
    before = dict(memory.store)
    for moment in range(12):
        memory.store.clear()
        memory.store.update(before)
        left = moment

        def killed(call: Any) -> Any:
            def step(*arguments: Any, **more: Any) -> Any:
                nonlocal left
                if left == 0:
                    raise KeyboardInterrupt
                left -= 1
                return call(*arguments, **more)

            return step

        with monkeypatch.context() as patches:
            for name, call in calls:
                patches.setattr(memory, name, killed(call))
            again = PublishedRun(run_dir, URL)
            try:
                again.fetch()
                write_stage(run_dir, "clean", "new", new)
                again.publish()
            except KeyboardInterrupt:
                pass
        fresh = tmp_path / f"fresh-{moment}"
        PublishedRun(fresh, URL).fetch()
        held = {name: (fresh / "clean" / name).read_bytes() for name in old if (fresh / "clean" / RECORD).exists()}
        assert held in ({}, old, new), moment
    assert held == new


def test_a_stage_of_other_settings_is_set_aside_for_that_of_the_place(memory: Any, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    write_stage(here, "clean", "1" * 32, {"a": b"mine"})
    write_stage(there, "clean", "2" * 32, {"a": b"theirs"})
    PublishedRun(there, URL).publish()
    PublishedRun(here, URL).fetch()
    assert (here / "clean" / "a").read_bytes() == b"theirs"
    assert (here / ".superseded" / f"clean-{'1' * 12}" / "a").read_bytes() == b"mine"
    assert memory.exists("/place/runs/clean/a")


def test_a_file_that_grows_is_published_as_long_as_it_was_and_again_at_the_end(memory: Any, tmp_path: Path) -> None:
    log = tmp_path / "run" / ".samples" / "log.jsonl"
    log.parent.mkdir(parents=True)
    log.write_text("1\n")
    run = PublishedRun(tmp_path / "run", URL)
    run.publish()
    with log.open("a") as file:
        file.write("2\n")
    run.publish()
    assert memory.cat_file("/place/runs/.samples/log.jsonl") == b"1\n"
    run.publish(is_last=True)
    assert memory.cat_file("/place/runs/.samples/log.jsonl") == b"1\n2\n"


def config_at(url: str) -> RunConfig:
    return validate_config({"name": "run", "runs_dir": url, "data": {"path": "train.jsonl"}}, "test")


def test_publishing_that_fails_is_told_while_the_run_goes_on_and_is_an_error_at_the_end(
    memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, told = config_at(URL), []
    monkeypatch.setattr(publishing, "EVERY_S", 0.02)

    def fail(*arguments: Any, **more: Any) -> None:
        raise ConnectionError("the network is down")

    with pytest.raises(SetupError, match="cannot be reached"), published(config, told.append):
        with monkeypatch.context() as patches:
            patches.setattr(memory, "put", fail)
            write_stage(config.run_dir, "clean", "c1", {"a": b"1"})
            deadline = time.monotonic() + 60
            while not told and time.monotonic() < deadline:
                time.sleep(0.01)
        while not memory.exists("/place/runs/run/.index/clean.json") and time.monotonic() < deadline:
            time.sleep(0.01)  # The network is there again.
        monkeypatch.setattr(memory, "put", fail)
        write_stage(config.run_dir, "flag", "f1", {"a": b"1"})
    assert len(told) >= 1
    assert "the network is down" in told[0]
    assert memory.exists("/place/runs/run/clean/a")


def test_a_run_that_is_worked_on_here_is_not_fetched_beside_it(memory: Any, tmp_path: Path) -> None:
    from truegold.flows.execute import held_run

    write_stage(tmp_path / "run", "clean", "c1", {})
    PublishedRun(tmp_path / "run", URL).publish()
    with held_run(tmp_path / "run"), pytest.raises(ConfigError, match="Another truegold run"):
        PublishedRun(tmp_path / "run", URL).fetch()
    assert memory.exists("/place/runs/clean/stage.json")


def test_a_run_at_a_place_comes_from_the_cache_on_another_machine(
    memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = [{"question": row["prompt"], "answer": row["gold"]} for row in ROWS[:20]]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    command = ("curate", "train.jsonl", "--engine", "local", "--set", f"runs_dir={URL}", "--set", "name=run")
    first = run_command(*command, cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert "published: memory://place/runs/run" in first.stdout
    assert b"<html" in memory.cat_file("/place/runs/run/report/index.html")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    assert "nothing to do: all" in run_command(*command, cwd=tmp_path).stderr
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "third"))
    shown = run_command("report", f"{URL}/run", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert (tmp_path / "third/truegold/runs/memory/place/runs/run/report/index.html").is_file()
    assert "nothing is published" in run_command("report", f"{URL}/none", cwd=tmp_path).stderr


SCRIPT = """
import sys
from pathlib import Path
from truegold.flows import published as publishing
from truegold.flows.config import validate_config
from truegold.pipeline.clean import clean
from truegold.pipeline.config.stages import CleanConfig, FlagConfig
from truegold.pipeline.flag import flag
from truegold.pipeline.running.disk import DigestCache
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.running.stage import Output, plan_stage, run_stage

publishing.EVERY_S = 0.1
config = validate_config({"name": "run", "runs_dir": sys.argv[1], "data": {"path": "in.parquet"}}, "test")
with publishing.published(config, print):
    config.run_dir.mkdir(parents=True, exist_ok=True)
    rows = Path("in.parquet").absolute()
    for function, settings in ((clean, CleanConfig(workers=1)), (flag, FlagConfig(workers=1))):
        stage = plan_stage(function.__name__, function, settings, {"rows": rows})
        result = run_stage(stage, config.run_dir, DigestCache(config.run_dir / ".digests.json"), NullProgress())
        print(stage.name, result.cached)
        rows = Output(function.__name__, "rows.parquet")
"""
ROWS = [plain_row(f"Ada has {n} apples and buys {n + 3} more. How many in all?", str(2 * n + 3)) for n in range(800)]
PARTS = 8
KILLS = 2


@pytest.mark.long_run
def test_a_run_at_s3_that_is_killed_goes_on_on_a_machine_that_has_nothing_of_it(tmp_path: Path) -> None:
    """Killed at random moments, each time with a fresh folder to work in: no part that is published is done again."""
    (tmp_path / "in.parquet").mkdir()
    for index in range(PARTS):
        write_rows(part_path(tmp_path / "in.parquet", index, PARTS), ROWS[index::PARTS])
    (tmp_path / "script.py").write_text(SCRIPT)
    with s3_server() as environment:
        fs = fsspec.filesystem(
            "s3",
            endpoint_url=environment["AWS_ENDPOINT_URL"],
            key="key",
            secret="secret",
            skip_instance_cache=True,
            use_listings_cache=False,
        )
        fs.mkdir("bucket")

        def start(machine: str, runs_dir: str) -> subprocess.Popen[str]:
            variables = {**os.environ, **environment, "XDG_CACHE_HOME": str(tmp_path / machine)}
            command = [sys.executable, str(tmp_path / "script.py"), runs_dir]
            return subprocess.Popen(command, cwd=tmp_path, env=variables, stdout=subprocess.PIPE, text=True)

        assert start("calm", str(tmp_path / "calm")).communicate()[0] == "clean False\nflag False\n"
        moments = random.Random(0)
        before: dict[str, int] = {}
        for kill in range(KILLS):
            process = start(f"machine-{kill}", "s3://bucket/runs")
            while process.poll() is None and not published_parts(fs).keys() - before.keys():
                time.sleep(0.02)
            time.sleep(moments.uniform(0, 0.3))
            process.kill()
            process.communicate()
            now = published_parts(fs)
            assert {part: now.get(part) for part in before} == before
            before = now
        assert before
        assert start("last", "s3://bucket/runs").communicate()[0].endswith("flag False\n")
        now = published_parts(fs)
        assert {part: now.get(part) for part in before} == before
        assert len(now) == 2 * PARTS
        assert start("reader", "s3://bucket/runs").communicate()[0] == "clean True\nflag True\n"
    run_dir = tmp_path / "reader" / "truegold" / "runs" / "s3" / "bucket" / "runs" / "run"
    tables = sorted((tmp_path / "calm" / "run").glob("*/*.parquet"))
    assert len(tables) > 5
    for table in tables:
        fetched = run_dir / table.parent.name / table.name
        assert list(read_rows(fetched)) == list(read_rows(table)), fetched


def published_parts(fs: Any) -> dict[str, int]:
    """Return when the rows of each part that is at the place were written, of unfinished stages too."""
    times: dict[str, int] = {}
    try:
        indices = [orjson.loads(fs.cat_file(path)) for path in fs.find("bucket/runs/run/.index")]
    except FileNotFoundError:  # One has been taken away meanwhile.
        return times
    for path, (_, changed) in (entry for index in indices for entry in index.items()):
        table, _, part = path.removeprefix(".partial/").partition("/rows.parquet/")
        if part:
            times[f"{table.partition('-')[0]} {part}"] = changed
    return times
