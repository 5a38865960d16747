"""Parts of a run on Ray, on Slurm and by processes that share a folder: the same tables, ledger and flags as here, when
nodes are lost and drivers are killed, too."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from command_line import run_command
from curated_runs import (
    RUN,
    finish,
    kill_after_part,
    run_digests,
    start_curation,
    wait_for_part,
    write_problems,
    written_parts,
)
from slurm_machine import slurm_machine

TESTS = Path(__file__).parents[1]
KILLS = 3
needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="needs the extra `ray`")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The digests of a run in one part."""
    folder = write_problems(tmp_path_factory.mktemp("whole"))
    finish(start_curation(folder, "--set", "parts.rows=10000"))
    digests = run_digests(folder / RUN)
    assert {"clean/ledger.parquet", "flag/flags.parquet", "settle/dropped.parquet"} < digests.keys()
    assert (folder / RUN / "clean" / "rows.parquet").is_file()
    return digests


@pytest.mark.parametrize(("rows", "parts"), [pytest.param(1_500, 2, marks=pytest.mark.long_run), (450, 7)])
def test_a_run_is_the_same_in_several_parts(whole: dict[str, str], tmp_path: Path, rows: int, parts: int) -> None:
    finish(start_curation(write_problems(tmp_path), "--set", f"parts.rows={rows}"))
    assert len(list((tmp_path / RUN / "flag" / "rows.parquet").iterdir())) == parts
    assert run_digests(tmp_path / RUN) == whole


# Processes that share a folder


def start_share(folder: Path, share: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-P", "-m", "truegold.flows.cli", "part", str(RUN), "--of", "2", "--at", str(share)]
    return subprocess.Popen(command, cwd=folder, text=True, stderr=subprocess.PIPE)


@pytest.mark.long_run
def test_processes_that_share_a_folder_do_its_parts(whole: dict[str, str], tmp_path: Path) -> None:
    """Both of them and the run are killed again and again; only parts under way are done again."""
    write_problems(tmp_path)
    moments = random.Random(3)
    (tmp_path / RUN).mkdir(parents=True)
    run = start_curation(tmp_path, runner="wait")
    shares = [start_share(tmp_path, share) for share in (0, 1)]
    try:
        for kill in range(KILLS):
            kill_after_part(tmp_path / RUN, shares[kill % 2], moments.uniform(0, 1))
            kill_after_part(tmp_path / RUN, run, moments.uniform(0, 1))
            run = start_curation(tmp_path, runner="wait")
            shares[kill % 2] = start_share(tmp_path, kill % 2)
        before = written_parts(tmp_path / RUN)
        for process in (run, *shares):
            finish(process)
    finally:
        for process in (run, *shares):
            process.kill()
    after = written_parts(tmp_path / RUN)
    assert {part: after.get(part) for part in before} == before
    assert run_digests(tmp_path / RUN) == whole


def test_a_share_of_work_that_does_not_wait_is_an_error(tmp_path: Path) -> None:
    (tmp_path / RUN).mkdir(parents=True)
    done = run_command("part", RUN, "clean", cwd=tmp_path)
    assert (done.returncode, "No parts of clean wait in" in done.stderr) == (3, True), done.stderr
    done = run_command("part", RUN, "clean", "--of", "8", "--at", "8", cwd=tmp_path)
    assert (done.returncode, "numbered from 0" in done.stderr) == (2, True), done.stderr


# Ray


@pytest.fixture
def cluster() -> Iterator[subprocess.Popen[str]]:
    """The program of a cluster of two nodes, whose address is the first line that it prints."""
    program = subprocess.Popen(
        [sys.executable, TESTS / "ray_nodes.py"], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    yield program
    program.communicate(timeout=120)


def read_line(program: subprocess.Popen[str]) -> str:
    assert program.stdout is not None
    line = program.stdout.readline().strip()
    assert line, program.poll()
    return line


@needs_ray
@pytest.mark.real
@pytest.mark.long_run
def test_a_node_that_is_lost_and_drivers_that_are_killed_cost_the_parts_under_way(
    whole: dict[str, str], tmp_path: Path, cluster: subprocess.Popen[str]
) -> None:
    write_problems(tmp_path)
    address = f"run.ray.address={read_line(cluster)}"
    moments = random.Random(1)
    for _ in range(KILLS):
        run = start_curation(tmp_path, "--set", address, runner="ray")
        kill_after_part(tmp_path / RUN, run, moments.uniform(0, 1))
    before = written_parts(tmp_path / RUN)
    run = start_curation(tmp_path, "--set", address, runner="ray")
    wait_for_part(tmp_path / RUN, len(before), run)
    assert cluster.stdin is not None
    cluster.stdin.write("lose\n")
    cluster.stdin.flush()
    assert read_line(cluster) == "lost"
    assert run.poll() is None
    finish(run)
    after = written_parts(tmp_path / RUN)
    assert {part: after.get(part) for part in before} == before
    assert run_digests(tmp_path / RUN) == whole


@needs_ray
@pytest.mark.real
@pytest.mark.long_run
def test_a_node_that_does_not_see_the_folder_is_named_before_the_first_stage(
    tmp_path: Path, cluster: subprocess.Popen[str]
) -> None:
    write_problems(tmp_path, 20)
    address = read_line(cluster)
    (tmp_path / "runs").mkdir()
    start = f'mount -t tmpfs none "{tmp_path}/runs" && exec ray start --address {address} --num-cpus 1 --block'
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    with subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", start], env={**os.environ, "PATH": path}, text=True, stderr=subprocess.PIPE
    ) as node:
        time.sleep(15)
        if node.poll() is not None:
            pytest.skip(f"a node with folders of its own cannot be started: {node.communicate()[1].strip()[-200:]}")
        run = start_curation(tmp_path, "--set", f"run.ray.address={address}", runner="ray")
        told = run.communicate(timeout=200)[1]
        node.terminate()
    assert run.returncode == 4, told
    assert "of the Ray cluster does not see the run's folder" in told
    assert not (tmp_path / RUN / "ingest").exists()


@needs_ray
@pytest.mark.real
def test_a_task_that_no_node_has_the_memory_for_is_told_before_the_first_stage(tmp_path: Path) -> None:
    run = start_curation(write_problems(tmp_path, 20), "--set", "run.ray.memory_gb=100000", runner="ray")
    told = run.communicate(timeout=200)[1]
    assert run.returncode == 4, told
    assert "run.ray.memory_gb is 100000, and no node of the Ray cluster has more than" in told
    assert not (tmp_path / RUN / "ingest").exists()


# Slurm


STAND_IN = """#!{python}
# Stands in for sbatch and scancel: runs the tasks of an array as processes of this machine, one after another.
# {lost} in `lose` is the number of tasks that are killed before the others are let run.
import os, subprocess, sys
from pathlib import Path

home = Path(__file__).parent
match Path(sys.argv[0]).name:
    case "sbatch":
        options = dict(option.split("=", 1) for option in sys.argv[1:] if "=" in option)
        with (home / "submitted").open("a") as file:
            print(*sys.argv[1:], file=file)
        lost = int((home / "lose").read_text())
        (home / "lose").write_text("0" if lost < 100 else "100")
        count = int(options["--array"].partition("-")[2]) + 1
        tasks = " ".join(str(task) for task in range(lost, count))
        log = options["--output"].replace("%a", "$t")
        loop = f'for t in {{tasks}}; do SLURM_ARRAY_TASK_ID=$t sh "{{sys.argv[-1]}}" > "{{log}}" 2>&1; done'
        process = subprocess.Popen(["sh", "-c", loop], start_new_session=True, stdout=subprocess.DEVNULL)
        print(process.pid)
    case "scancel":
        os.killpg(int(sys.argv[-1]), 9)
"""
QUEUE = """#!/bin/sh
# Stands in for squeue, which is asked every moment. A job that has ended, but was not waited for (Z), is not listed.
for job; do :; done
case "$(cut -d ' ' -f 3 "/proc/$job/stat" 2> /dev/null)" in
  "" | Z) echo "slurm_load_jobs error: Invalid job id specified" >&2; exit 1 ;;
  *) echo "$job R" ;;
esac
"""


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, lost: int) -> Path:
    """Put programs in front of Slurm's that lose the first tasks of the first array; 100: all of every array."""
    folder.mkdir()
    program = STAND_IN.format(python=sys.executable, lost="a number")
    for name, text in (("sbatch", program), ("squeue", QUEUE), ("scancel", program)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    (folder / "lose").write_text(str(lost))
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    monkeypatch.setattr("truegold.pipeline.running.slurm.ASK_EVERY_S", 0.2)
    monkeypatch.setattr("truegold.pipeline.running.slurm.LOOK_EVERY_S", 0.2)
    return folder / "submitted"


def test_parts_that_an_array_has_not_done_are_submitted_again(
    whole: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With programs that stand in for Slurm's: task 0 of the first array is lost."""
    write_problems(tmp_path)
    submitted = stand_in(tmp_path / "bin", monkeypatch, 1)
    options = ("--set", "parts.rows=450", "--set", "run.slurm.tasks=2", "--set", "run.slurm.options=['--mem=1G']")
    done = run_command("curate", "p.jsonl", "--engine", "local", "--runner", "slurm", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    arrays = submitted.read_text().splitlines()
    assert len(arrays) == 4, arrays
    assert all("--array=0-1" in array and "--mem=1G" in array for array in arrays)
    assert done.stderr.count("Parts left by the array") == 1
    assert run_digests(tmp_path / RUN) == whole


def test_a_run_whose_arrays_do_nothing_stops_after_a_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    submitted = stand_in(tmp_path / "bin", monkeypatch, 100)
    write_problems(tmp_path, 20)
    done = run_command("curate", "p.jsonl", "--engine", "local", "--runner", "slurm", cwd=tmp_path)
    assert (done.returncode, len(submitted.read_text().splitlines())) == (4, 3)
    assert "Parts left after 3 job arrays: 1" in done.stderr


def test_slurm_that_is_not_there_is_told_before_the_first_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    write_problems(tmp_path, 20)
    done = run_command("curate", "p.jsonl", "--engine", "local", "--runner", "slurm", cwd=tmp_path)
    assert (done.returncode, "there is no sbatch on this machine" in done.stderr) == (4, True), done.stderr
    assert not (tmp_path / RUN / "ingest").exists()


@pytest.fixture
def slurm(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A real Slurm of this machine alone."""
    with slurm_machine(tmp_path_factory.mktemp("slurm")) as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        yield


def wait_for_array(run_dir: Path) -> str:
    """Return the number of the array that is submitted next."""
    deadline = time.monotonic() + 100
    while not (jobs := list(run_dir.glob(".partial/clean-*/scratch/slurm/job"))):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return jobs[0].read_text()


@pytest.mark.usefixtures("slurm")
@pytest.mark.real
@pytest.mark.long_run
def test_slurm_goes_on_while_drivers_are_killed_and_lost_tasks_are_submitted_again(
    whole: dict[str, str], tmp_path: Path
) -> None:
    write_problems(tmp_path)
    # Each task takes the whole node, so that they run one after the other.
    options = ("--set", "run.slurm.tasks=2", "--set", "run.slurm.options=['--cpus-per-task=2']")
    run = start_curation(tmp_path, *options, runner="slurm")
    array = wait_for_array(tmp_path / RUN)
    subprocess.run(["scontrol", "hold", f"{array}_1"], check=True)
    kill_after_part(tmp_path / RUN, run, 0)
    before = written_parts(tmp_path / RUN)
    run = start_curation(tmp_path, *options, runner="slurm")
    assert run.stderr is not None
    while "that wait for the array" not in (line := run.stderr.readline()):
        assert line
    assert f"that wait for the array {array} of" in line, "another array was submitted while the first one was there"
    subprocess.run(["scancel", f"{array}_1"], check=True)
    told = finish(run)
    after = written_parts(tmp_path / RUN)
    assert {part: after.get(part) for part in before} == before
    assert f"Parts left by the array {array} of Slurm: 10" in told
    assert run_digests(tmp_path / RUN) == whole
