"""Processes the parts of tables on Slurm, by a job array whose tasks call `truegold part`.

    sbatch --array=0-63 scratch/slurm/array.sh           submits 64 tasks; each calls:
    truegold part RUN clean --of 64 --at $SLURM_ARRAY_TASK_ID

Parts may be left when the array has ended, because a node was lost or a task ran out of time. Up to
`run.slurm.submissions` arrays are submitted for them. If the waiting process is killed, the array goes on. The same
command then waits for that array instead of submitting another one.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from truegold.pipeline.config.base import SlurmConfig
from truegold.pipeline.running.disk import write_whole
from truegold.pipeline.running.parts import Part, PartWork
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.running.stage import SCRATCH
from truegold.pipeline.running.waiting_parts import (
    LOOK_EVERY_S,
    WAITING,
    drop_done,
    leave_waiting,
    stage_of,
    waits_already,
)
from truegold.verifiers import SetupError

ASK_EVERY_S = 20.0
"""The interval between requests to Slurm for the state of the array, in seconds."""
FOLDER = "slurm"
"""The subfolder of a stage's scratch folder with the script, the number of the array, and the output of its tasks."""
SCRIPT = """#!/bin/sh
exec {python} -m truegold.flows.cli part {run} {stage} --of {tasks} --at "$SLURM_ARRAY_TASK_ID" --workers {workers}
"""


def check_slurm() -> None:
    """Raise SetupError if this machine has no Slurm commands."""
    if missing := [name for name in ("sbatch", "squeue", "scancel") if shutil.which(name) is None]:
        raise SetupError(
            f"Slurm cannot be used: there is no {missing[0]} on this machine.",
            "Start the run where jobs are submitted, or set run.runner to local.",
        )


def run_on_slurm(run_dir: Path, config: SlurmConfig, work: PartWork, parts: Sequence[Part], progress: Progress) -> None:
    """Do the work in job arrays. Raises SetupError if parts are left after `config.submissions` arrays."""
    folder = parts[0].out_dir / SCRATCH / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    job = _job_under_way(folder, work, parts)
    for submission in range(config.submissions):
        if job is None:
            job = _submit(folder, run_dir, config, work, parts, is_first=submission == 0)
        progress.note(f"Parts that wait for the array {job} of Slurm: {len(parts):,}")
        try:
            parts = _follow(job, work, parts, progress)
        except BaseException:
            _call_slurm("scancel", job)
            raise
        if not parts:
            (folder.parent / WAITING).unlink()
            return
        progress.note(f"Parts left by the array {job} of Slurm: {len(parts):,}. {_last_words(folder)}".strip())
        job = None
    raise SetupError(
        f"Parts left after {config.submissions} job arrays: {len(parts):,}. {_last_words(folder)}".strip(),
        f"The output of the tasks is in {folder}. The same command continues from here.",
    )


def _submit(
    folder: Path, run_dir: Path, config: SlurmConfig, work: PartWork, parts: Sequence[Part], *, is_first: bool
) -> str:
    """Submit an array for these parts, and return its number. From the second array on, tasks have two workers. Then a
    row that kills its worker loses only its verdict."""
    (folder.parent / WAITING).unlink(missing_ok=True)
    leave_waiting(work, parts)
    for log in folder.glob("*.log"):
        log.unlink()
    tasks = min(config.tasks, len(parts))
    script = SCRIPT.format(
        python=shlex.quote(sys.executable),
        run=shlex.quote(str(run_dir)),
        stage=shlex.quote(stage_of(parts)),
        tasks=tasks,
        workers='"${SLURM_CPUS_PER_TASK:-1}"' if is_first else 2,
    )
    (folder / "array.sh").write_text(script)
    name = f"--job-name=truegold-{stage_of(parts)}"
    options = ("--parsable", f"--array=0-{tasks - 1}", f"--output={folder / '%a.log'}", name, *config.options)
    # This run may be a Slurm job. The array must not inherit the allocation of this job.
    environment = {name: value for name, value in os.environ.items() if name == "SLURM_CONF" or name[:6] != "SLURM_"}
    done = subprocess.run(
        ["sbatch", *options, folder / "array.sh"], capture_output=True, text=True, env=environment, check=False
    )
    if done.returncode != 0:
        raise SetupError(f"Slurm rejected the job: {done.stderr.strip()}", "Check its options in run.slurm.options.")
    job = done.stdout.strip().partition(";")[0]
    write_whole(folder / "job", job.encode())
    return job


def _job_under_way(folder: Path, work: PartWork, parts: Sequence[Part]) -> str | None:
    """Return the number of the array that an earlier process submitted for this work, if it is queued, else None.

    If the earlier array is for other work, it is cancelled.
    """
    if not (folder / "job").exists():
        return None
    job = (folder / "job").read_text()
    if waits_already(folder.parent / WAITING, work, parts):
        return job if _is_queued(job) else None
    _call_slurm("scancel", job)
    while _is_queued(job):
        time.sleep(LOOK_EVERY_S)
    return None


def _follow(job: str, work: PartWork, parts: Sequence[Part], progress: Progress) -> list[Part]:
    """Wait until all parts are done or the array has left the queue. Return the parts that are left."""
    asked = time.monotonic()
    while left := drop_done(work, parts, progress):
        if time.monotonic() - asked >= ASK_EVERY_S:
            if not _is_queued(job):
                # The last parts may have been finished since the previous check.
                return drop_done(work, left, progress)
            asked = time.monotonic()
        parts = left
        time.sleep(LOOK_EVERY_S)
    return []


def _is_queued(job: str) -> bool:
    """Return whether the array is in the queue. If Slurm does not answer, return True, and the caller asks again."""
    done = _call_slurm("squeue", "--noheader", "--jobs", job)
    return done.stdout.strip() != "" or (done.returncode != 0 and "Invalid job id" not in done.stderr)


def _call_slurm(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _last_words(folder: Path) -> str:
    """Return the first log whose last line is an error, with this line. Return an empty text if there is none."""
    for log in sorted(folder.glob("*.log")):
        lines = log.read_text(errors="replace").strip().splitlines()
        with suppress(IndexError):
            if "error" in lines[-1].lower():
                return f"{log.name}: {lines[-1].strip()}"
    return ""
