"""Parts worked on in processes: the same tables however they are cut, a kill costs the parts under way, and nothing is
left behind."""

from __future__ import annotations

import json
import os
import pickle
import random
import runpy
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from command_line import run_command
from curated_runs import wait_for_part, written_parts
from hypothesis import given, settings
from hypothesis import strategies as st
from numbered_rows import plain_row
from part_functions import Config, die_at_30, fail_at_40, square

from truegold.pipeline.clean.stage import clean
from truegold.pipeline.config.stages import (
    CleanConfig,
    DecontaminateConfig,
    DedupConfig,
    EvalSetConfig,
    FlagConfig,
    SettleConfig,
    VerifyGoldConfig,
)
from truegold.pipeline.decontaminate.stage import decontaminate
from truegold.pipeline.dedup.stage import dedup
from truegold.pipeline.flag.stage import flag
from truegold.pipeline.review.stage import settle
from truegold.pipeline.running import parts as module
from truegold.pipeline.running.parts import Part, PartWork, run_here, run_parts, set_runner, split_inputs, sum_reports
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.running.stage import StageReport
from truegold.pipeline.running.workers import WorkerKilled, map_in_workers
from truegold.pipeline.tables.rows import (
    ROW_SCHEMA,
    PartsWriter,
    Row,
    copy_table,
    count_rows,
    read_rows,
    table_schema,
    write_rows,
)
from truegold.pipeline.verify.gold_stage import verify_gold
from truegold.verifiers import ConfigError

TABLES = ("rows", "ledger", "dropped", "flags")


class Steps(NullProgress):
    """A progress that counts."""

    def __init__(self) -> None:
        self.total: int | None = None
        self.done = 0
        self.notes: list[str] = []

    def start(self, label: str, total: int | None = None) -> None:
        """Begin a step."""
        self.total, self.done = total, 0

    def advance(self, steps: int = 1, detail: str = "", total: int | None = None) -> None:
        """Count."""
        self.done += steps

    def note(self, text: str) -> None:
        """Keep the note."""
        self.notes.append(text)


@pytest.fixture
def few_rows_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FEWEST_ROWS", 0)


def test_tasks_come_back_in_their_order_from_other_processes() -> None:
    outputs = list(map_in_workers(square, iter(range(100)), 2))
    assert [(number, squared) for number, (squared, _) in outputs] == [(number, number**2) for number in range(100)]
    assert os.getpid() not in {pid for _, (_, pid) in outputs}


def test_what_the_work_raises_is_raised_here() -> None:
    with pytest.raises(LookupError, match="no 40"):
        list(map_in_workers(fail_at_40, range(100), 2))


def test_a_killed_worker_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(WorkerKilled) as killed:
        list(map_in_workers(die_at_30, range(100), 2))
    assert "lower" in str(killed.value.hint)
    assert len(list(map_in_workers(square, range(100), 2))) == 100


def test_workers_are_gone_when_the_work_is_done() -> None:
    pids = {pid for _, (_, pid) in map_in_workers(square, range(100), 2)}
    assert all(gone(pid) for pid in pids)


SLOW_WORK = """
import os, time

def work(task):
    print(os.getpid(), flush=True)
    time.sleep(60)
"""
SCRIPT = """
from slow_work import work
from truegold.pipeline.running.workers import map_in_workers

if __name__ == "__main__":
    list(map_in_workers(work, range(2), 2))
"""


def test_a_killed_parent_leaves_no_workers(tmp_path: Path) -> None:
    (tmp_path / "slow_work.py").write_text(SLOW_WORK)
    (tmp_path / "script.py").write_text(SCRIPT)
    with subprocess.Popen([sys.executable, tmp_path / "script.py"], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pids = [int(parent.stdout.readline()) for _ in range(2)]
        parent.kill()
    assert all(gone(pid) for pid in pids)


def gone(pid: int) -> bool:
    """Whether the process ends within 20 seconds."""
    for _ in range(200):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.1)
    return False


def problem(apples: int) -> Row:
    prompt = f"  Tom has {apples} apples &amp; buys 9.  How many apples has he now?"
    gold = str(apples + 9) if apples % 7 else "see picture"
    if apples % 5 == 0:
        prompt = f"Prove that {apples} + 9 is less than 100, whatever Tom says."
    if apples % 11 == 0:
        prompt = "x"
    context = json.dumps([{"role": "system", "content": "Answer in metres."}]) if apples % 3 else None
    return plain_row(
        prompt, gold, source="made.jsonl" if apples < 30 else "b.jsonl", source_row=apples, context=context
    )


ROWS = [problem(apples) for apples in range(60)]


def write_parts(table: Path, rows: Sequence[Row], sizes: Sequence[int]) -> Path:
    """Write a table cut into parts of these sizes, and of what is left."""
    ends = [sum(sizes[: index + 1]) for index in range(len(sizes))]
    cuts = [rows[start:end] for start, end in zip([0, *ends], [*ends, len(rows)], strict=True)]
    for index, cut in enumerate(cuts):
        write_rows(Part(index, len(cuts), {}, table.parent).output(table.name), cut)
    return table


def run_copy(folder: Path, config: Config, function: str = "copy_part", progress: Any = None) -> list[StageReport]:
    work = PartWork(f"part_functions:{function}", config, ["found before"])
    return run_parts(work, split_inputs({"rows": folder / "in.parquet"}, folder), progress or Steps(), "copying")


def calls(folder: Path) -> list[str]:
    """Return the parts that were worked on since the last call, in order of their numbers."""
    path = folder / "calls.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    return sorted(line.split()[0] for line in lines)


@pytest.mark.usefixtures("few_rows_are_enough")
@pytest.mark.parametrize("workers", [1, 2])
def test_parts_become_one_table_on_one_core_and_on_two(tmp_path: Path, workers: int) -> None:
    write_parts(tmp_path / "in.parquet", ROWS, [10, 0, 25])
    progress = Steps()
    reports = run_copy(tmp_path, Config(workers=workers), progress=progress)
    assert [report.rows_in for report in reports] == [10, 0, 25, 25]
    assert list(read_rows(tmp_path / "rows.parquet")) == ROWS
    assert (progress.total, progress.done) == (60, 60)
    assert calls(tmp_path) == ["0", "1", "2", "3"]


def test_only_parts_that_are_not_done_are_worked_on_again(tmp_path: Path) -> None:
    write_parts(tmp_path / "in.parquet", ROWS, [10, 10, 10])
    with pytest.raises(LookupError, match="part 2"):
        run_copy(tmp_path, Config(fails=2, workers=1))
    assert calls(tmp_path) == ["0", "1", "2"]
    progress = Steps()
    # What the work is to do is the same; how many processes do it is no part of that.
    (tmp_path / "scratch" / "done" / "00000.json").unlink()
    with pytest.raises(LookupError):
        run_copy(tmp_path, Config(fails=2, workers=0), progress=progress)
    assert calls(tmp_path) == ["0", "2"]
    assert (progress.total, progress.done) == (60, 20)


@pytest.mark.parametrize("change", ["settings", "input", "output", "function"])
def test_a_marker_counts_for_the_very_work_and_files(tmp_path: Path, change: str) -> None:
    write_parts(tmp_path / "in.parquet", ROWS, [20, 20])
    run_copy(tmp_path, Config())
    calls(tmp_path)
    run_copy(tmp_path, Config())
    assert calls(tmp_path) == []
    if change == "input":
        write_rows(tmp_path / "in.parquet" / "part-00001.parquet", ROWS[20:39])
    if change == "output":
        (tmp_path / "rows.parquet" / "part-00001.parquet").write_bytes(b"cut")
    config = Config(fails=99) if change == "settings" else Config()
    run_copy(tmp_path, config, "copy_again" if change == "function" else "copy_part")
    assert calls(tmp_path) == (["1"] if change in ("input", "output") else ["0", "1", "2"])


@pytest.mark.usefixtures("few_rows_are_enough")
def test_a_part_that_kills_its_worker_is_tried_once_more_with_processes_for_verifiers(tmp_path: Path) -> None:
    write_parts(tmp_path / "in.parquet", ROWS, [20, 20])
    reports = run_copy(tmp_path, Config(workers=2), "die_at_first")
    assert list(read_rows(tmp_path / "rows.parquet")) == ROWS
    assert reports[1].facts["shared"] == 2


def test_inputs_that_are_cut_differently_are_refused(tmp_path: Path) -> None:
    inputs = {
        "rows": write_parts(tmp_path / "in.parquet", ROWS, [20]),
        "flags": write_parts(tmp_path / "flags.parquet", ROWS, [20, 20]),
    }
    with pytest.raises(ValueError, match=r"flags.parquet has 3 parts, and .*in.parquet has 2"):
        split_inputs(inputs, tmp_path, "flags")


SHARE = """
import pickle, sys
from pathlib import Path
from truegold.pipeline.running.parts import run_part
from truegold.pipeline.running.progress import NullProgress

work, parts = pickle.loads(Path(sys.argv[1]).read_bytes())
for part in parts[int(sys.argv[2]) :: int(sys.argv[3])]:
    run_part(work, part, NullProgress())
"""


def test_work_and_parts_are_all_that_another_machine_needs(tmp_path: Path) -> None:
    """As a job array does it: each of its jobs takes its share of the parts, and the stage goes by their markers."""
    write_parts(tmp_path / "in.parquet", ROWS, [10, 20, 5])
    (tmp_path / "share.py").write_text(SHARE)

    def run_array(work: PartWork, parts: Sequence[Part], progress: Any) -> None:
        (tmp_path / "work.pkl").write_bytes(pickle.dumps((work, parts)))
        command = [sys.executable, tmp_path / "share.py", tmp_path / "work.pkl"]
        for job in ("0", "1"):
            subprocess.run([*command, job, "2"], check=True)

    work = PartWork("truegold.pipeline.clean.stage:clean_part", CleanConfig())
    parts = split_inputs({"rows": tmp_path / "in.parquet"}, tmp_path)
    (tmp_path / "here").mkdir()
    here = clean({"rows": tmp_path / "in.parquet"}, CleanConfig(workers=1), tmp_path / "here", NullProgress())
    assert sum_reports(run_parts(work, parts, Steps(), "cleaning", run_array)) == here
    assert list(read_rows(tmp_path / "rows.parquet")) == list(read_rows(tmp_path / "here" / "rows.parquet"))


def test_a_runner_that_is_set_does_the_parts_of_stages_that_have_none_of_their_own(tmp_path: Path) -> None:
    write_parts(tmp_path / "in.parquet", ROWS, [20, 20])
    sent: list[int] = []

    def run_elsewhere(work: PartWork, parts: Sequence[Part], progress: Any) -> None:
        sent.extend(part.index for part in parts)
        run_here(work, parts, progress)

    with set_runner(run_elsewhere):
        run_copy(tmp_path, Config())
        work = PartWork("part_functions:copy_again", Config())
        run_parts(work, split_inputs({"rows": tmp_path / "in.parquet"}, tmp_path), Steps(), "copying", run_here)
    assert sent == [0, 1, 2]
    run_copy(tmp_path, Config())
    assert sent == [0, 1, 2]


@pytest.mark.parametrize(("rows", "files"), [(0, 1), (7, 1), (8, 2), (15, 3)])
def test_a_table_that_fits_into_a_part_is_one_file(tmp_path: Path, rows: int, files: int) -> None:
    path = tmp_path / "rows.parquet"
    for _ in range(2):  # The second time in place of what is there.
        with PartsWriter(path, ROW_SCHEMA, 7) as writer:
            for row in ROWS[:rows]:
                writer.write(row)
        assert path.is_file() == (files == 1)
        names = [] if files == 1 else [f"part-{number:05d}.parquet" for number in range(files)]
        assert sorted(part.name for part in path.glob("*")) == names
        assert (writer.rows, count_rows(path), list(read_rows(path))) == (rows, rows, ROWS[:rows])
    copy_table(path, tmp_path / "one.parquet")
    assert list(read_rows(tmp_path / "one.parquet")) == ROWS[:rows]
    assert table_schema(path) == ROW_SCHEMA


def test_parts_end_where_their_texts_are_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truegold.pipeline.tables.rows.PART_BYTES", 1_000)
    with PartsWriter(tmp_path / "rows.parquet", ROW_SCHEMA, 10_000) as writer:
        for row in ROWS:
            writer.write(row)
    assert len(list((tmp_path / "rows.parquet").iterdir())) > 3
    assert list(read_rows(tmp_path / "rows.parquet")) == ROWS


@pytest.fixture(scope="module")
def against(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file of two items, of which one is a problem and the other a rewording of one."""
    items = [ROWS[8]["prompt"], "After buying 9 apples, how many has Tom, who had 13 apples?"]
    path = tmp_path_factory.mktemp("against") / "items.jsonl"
    path.write_text("".join(json.dumps({"question": item}) + "\n" for item in items))
    return str(path)


def curate_in_parts(
    folder: Path, rows: Sequence[Row], sizes: Sequence[int], against: str, workers: int = 1
) -> dict[str, Any]:
    """Run the stages over rows cut in this way; return the rows of all tables, and the reports."""
    inputs = {"rows": write_parts(folder / "in.parquet", rows, sizes)}
    gathered: dict[str, Any] = {}
    stages = {
        "clean": (clean, CleanConfig(workers=workers)),
        "decontaminate": (decontaminate, DecontaminateConfig(against=(EvalSetConfig(set=against),))),
        "dedup": (dedup, DedupConfig()),
        "verify_gold": (verify_gold, VerifyGoldConfig(workers=workers)),
        "flag": (flag, FlagConfig(workers=workers)),
        "settle": (settle, SettleConfig()),
    }
    earlier: dict[str, Path] = {}
    for name, (function, config) in stages.items():
        out = folder / name
        out.mkdir()
        progress = Steps()
        report = function({**inputs, **earlier}, config, out, progress)
        gathered[name] = (report, progress.notes)
        for table in TABLES:
            path = out / f"{table}.parquet"
            gathered[f"{name}/{table}"] = list(read_rows(path)) if path.exists() else None
            assert name == "settle" or not path.exists() or path.is_dir() == (len(sizes) > 0)
        inputs = {"rows": out / "rows.parquet"}
        if name == "verify_gold":
            earlier = {"dedup_flags": folder / "dedup" / "flags.parquet", "gold_flags": out / "flags.parquet"}
        if name == "flag":
            earlier = {"flags": out / "flags.parquet"}
    return gathered


SOME_ROWS = st.lists(st.integers(0, 40), max_size=30)


@settings(max_examples=15)
@given(numbers=SOME_ROWS, same_gold=st.booleans(), data=st.data())
def test_tables_and_reports_are_the_same_however_rows_are_cut(
    against: str, numbers: list[int], same_gold: bool, data: Any
) -> None:
    rows = [{**problem(number), "source_row": place} for place, number in enumerate(numbers)]
    rows = [{**row, "gold": "3.2e5 m/s", "meta": "{}"} for row in rows] if same_gold else rows
    cuts = data.draw(st.lists(st.integers(0, len(rows)), min_size=1, max_size=4).map(sorted))
    sizes = [end - start for start, end in zip([0, *cuts], cuts, strict=False)]
    with tempfile.TemporaryDirectory() as whole, tempfile.TemporaryDirectory() as cut:
        assert curate_in_parts(Path(cut), rows, sizes, against) == curate_in_parts(Path(whole), rows, [], against)


@pytest.mark.usefixtures("few_rows_are_enough")
def test_tables_are_the_same_with_one_worker_and_with_two(tmp_path: Path, against: str) -> None:
    done = []
    for workers in (1, 2):
        (tmp_path / str(workers)).mkdir()
        done.append(curate_in_parts(tmp_path / str(workers), ROWS, [25, 5], against, workers))
    assert done[0] == done[1]
    assert done[0]["flag"][0].counts["flag:proof"] > 3
    assert done[0]["clean"][0].counts["drop:prompt_too_short"] == 6
    assert done[0]["decontaminate"][0].counts["drop:evaluation_copy"] > 0


def test_a_curated_set_and_its_pages_are_the_same_in_parts(tmp_path: Path) -> None:
    """From the file on, through every stage, with the page of all rows and what is said of one of them."""
    records = [{"question": row["prompt"], "answer": row["gold"]} for row in ROWS]
    curated = {}
    for rows in (1_000, 9):
        folder = tmp_path / str(rows)
        folder.mkdir()
        (folder / "p.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
        done = run_command("curate", "p.jsonl", "--engine", "local", "--set", f"parts.rows={rows}", cwd=folder)
        assert done.returncode == 0, done.stderr
        assert (folder / "runs" / "p" / "clean" / "rows.parquet").is_dir() == (rows == 9)
        run_dir = folder / "runs" / "p"
        shared = run_command("report", "runs/p", "--share", "shared.html", "--texts", "redacted", cwd=folder)
        assert shared.returncode == 0, shared.stderr
        tables = {
            str(path.relative_to(run_dir)): list(read_rows(path))
            for path in sorted(run_dir.glob("*/*.parquet"))
            if path.parent.name != "report"
        }
        told = [run_command("explain", "runs/p", f"p.jsonl:{number}", cwd=folder).stdout for number in (6, 12)]
        curated[rows] = (tables, told)
        # Another cut changes nothing in a finished run.
        again = run_command("curate", "p.jsonl", "--engine", "local", "--set", "parts.rows=4", cwd=folder)
        assert again.returncode == 0, again.stderr
        assert (run_dir / "clean" / "rows.parquet").is_dir() == (rows == 9)
    assert curated[1_000] == curated[9]


KILLED = """
import sys
from pathlib import Path
from truegold.pipeline.config.stages import CleanConfig, FlagConfig, VerifyGoldConfig
from truegold.pipeline.clean import clean
from truegold.pipeline.flag import flag
from truegold.pipeline.running import parts
from truegold.pipeline.running.disk import DigestCache
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.running.stage import Output, plan_stage, run_stage
from truegold.pipeline.verify import verify_gold

def curate(run_dir, workers):
    run_dir.mkdir(exist_ok=True)
    rows = run_dir.parent / "in.parquet"
    for function, config in ((clean, CleanConfig), (verify_gold, VerifyGoldConfig), (flag, FlagConfig)):
        stage = plan_stage(function.__name__, function, config(workers=workers), {"rows": rows})
        run_stage(stage, run_dir, DigestCache(run_dir / ".digests.json"), NullProgress())
        rows = Output(function.__name__, "rows.parquet")

if __name__ == "__main__":
    parts.FEWEST_ROWS = 0
    curate(Path(sys.argv[1]), 2)
"""
KILLS = 3


def test_a_run_killed_at_any_moment_goes_on_with_the_parts_that_are_not_done(tmp_path: Path) -> None:
    """Killed again and again, each time at another moment: parts with a marker stay as they are. The runs that are not
    killed do without workers, whose start takes longer than the parts."""
    rows = [{**problem(place % 60), "source_row": place} for place in range(1_500)]
    write_parts(tmp_path / "in.parquet", rows, [125] * 11)
    script = tmp_path / "script.py"
    script.write_text(KILLED)
    curate = runpy.run_path(str(script))["curate"]
    curate(tmp_path / "whole", 1)
    moments = random.Random(0)
    written: Mapping[str, int] = {}
    for _ in range(KILLS):
        process = subprocess.Popen([sys.executable, script, tmp_path / "killed"])
        wait_for_part(tmp_path / "killed", len(written), process)
        time.sleep(moments.uniform(0, 0.2))
        process.kill()
        if process.wait() == 0:
            break
        now = written_parts(tmp_path / "killed")
        assert {part: now.get(part) for part in written} == written
        assert len(now) > len(written)
        written = now
    curate(tmp_path / "killed", 1)
    now = written_parts(tmp_path / "killed")
    assert {part: now.get(part) for part in written} == written
    for path in sorted((tmp_path / "whole").glob("*/*.parquet")):
        killed = tmp_path / "killed" / path.parent.name / path.name
        assert list(read_rows(killed)) == list(read_rows(path)), killed
    for record in (tmp_path / "whole").glob("*/stage.json"):
        killed = tmp_path / "killed" / record.parent.name / record.name
        assert json.loads(killed.read_bytes())["report"] == json.loads(record.read_bytes())["report"]
    assert count_rows(tmp_path / "killed" / "clean" / "rows.parquet") > 1_000


DETECTOR = """
from truegold.pipeline.flag.rules import Finding, detector

@detector("shouting", version="1")
def shouting(row):
    if row["source_row"] == 50:
        raise ValueError("fifty")
    return [Finding("shouting", 1.0, {})] if row["source_row"] == 7 else []
"""


@pytest.mark.usefixtures("few_rows_are_enough")
def test_detectors_are_loaded_by_a_path_relative_to_this_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_parts(tmp_path / "in.parquet", ROWS, [30])
    (tmp_path / "checks.py").write_text(DETECTOR)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    report = flag(
        {"rows": Path("in.parquet")},
        FlagConfig(detectors=("checks.py:shouting",), workers=2),
        tmp_path / "out",
        progress := Steps(),
    )
    assert progress.notes == ["Detector shouting failed on b.jsonl:50 (ValueError: fifty)."]
    assert [flagged["source_row"] for flagged in read_rows(tmp_path / "out" / "flags.parquet")] == [7]
    assert report.counts["error:shouting"] == 1


def test_a_detector_that_cannot_be_loaded_is_told_before_anything_starts(tmp_path: Path) -> None:
    write_rows(tmp_path / "in.parquet", ROWS)
    with pytest.raises(ConfigError, match="nothing_like_it"):
        flag(
            {"rows": tmp_path / "in.parquet"},
            FlagConfig(detectors=("nothing_like_it",), workers=2),
            tmp_path,
            NullProgress(),
        )
