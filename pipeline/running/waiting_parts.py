"""Leaves the work on the parts of tables to calls of `truegold part`, on any machine that can access the run's folder.

`wait_for_parts` writes the work to RUN/.partial/clean-KEY/scratch/waiting.pkl, and waits until all parts are done. A
scheduler such as Slurm, or a person, starts the other processes:

    truegold part RUN clean --of 8 --at 3        does every eighth part of the stage, beginning with the fourth
    truegold part RUN --of 8 --at 3              does the same for every stage, until the run is done
"""

from __future__ import annotations

import pickle
import shlex
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from truegold.pipeline.running.disk import write_whole
from truegold.pipeline.running.parts import DONE, WORKERS, Part, PartWork, run_locally, unfinished
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.running.stage import SCRATCH, load_record
from truegold.pipeline.running.workers import Whereabouts
from truegold.verifiers import InputError

WAITING = "waiting.pkl"
"""The file in a stage's scratch folder with the work that waits for other processes."""
REPORT = "report"
"""The last stage of every run."""
LOOK_EVERY_S = 2.0
"""The interval between checks for finished parts, in seconds."""


def wait_for_parts(run_dir: Path, work: PartWork, parts: Sequence[Part], progress: Progress) -> None:
    """Wait until other processes have done the work."""
    waiting = leave_waiting(work, parts)
    progress.note(
        f"Parts that wait for other processes: {len(parts):,}. truegold part {shlex.quote(str(run_dir))} --of N --at I "
        "(I from 0), on any machine that sees this folder"
    )
    while parts := drop_done(work, parts, progress):
        time.sleep(LOOK_EVERY_S)
    waiting.unlink()


def stage_of(parts: Sequence[Part]) -> str:
    """Return the name of the stage that the parts belong to."""
    return parts[0].out_dir.name.rpartition("-")[0]


def leave_waiting(work: PartWork, parts: Sequence[Part]) -> Path:
    """Write the file from which other processes read the work, and return its path.

    If a killed run left a file with the same work, it is kept, because other processes may still be working on it.
    """
    path = parts[0].out_dir / SCRATCH / WAITING
    if not waits_already(path, work, parts):
        path.parent.mkdir(parents=True, exist_ok=True)
        # The work is pickled separately. A process has to set its module path (`Whereabouts`) before it unpickles the
        # work.
        write_whole(path, pickle.dumps((Whereabouts.here(), pickle.dumps((work, tuple(parts))))))
    return path


def waits_already(path: Path, work: PartWork, parts: Sequence[Part]) -> bool:
    """Return whether the file has this work on these parts. It may have other parts, too."""
    if not path.exists():
        return False
    waiting_work, waiting = pickle.loads(read_waiting(path)[1])
    keys = {part.index: waiting_work.key(part) for part in waiting}
    return all(keys.get(part.index) == work.key(part) for part in parts)


def read_waiting(path: Path) -> tuple[Whereabouts, bytes]:
    """Return the whereabouts of the waiting process, and the pickled work and parts."""
    whereabouts, content = pickle.loads(path.read_bytes())
    return whereabouts, content


def drop_done(work: PartWork, parts: Sequence[Part], progress: Progress) -> list[Part]:
    """Return the parts that are not done yet, and report the rows of the finished parts."""
    # A network file system may show files of other machines only after their folder was listed.
    list((parts[0].out_dir / SCRATCH / DONE).glob("*"))
    left = unfinished(work, parts)
    waiting = {part.index for part in left}
    progress.advance(sum(part.count_rows() for part in parts if part.index not in waiting))
    return left


_OF_A_RUN = ("config.resolved.json", ".partial")
"""Files and folders by which a run is recognised."""


def do_shares(
    run_dir: Path, stage: str | None, progress: Progress, *, shares: int = 1, share: int = 0, workers: int | None = None
) -> int:
    """Do a share of the waiting work, the parts `share`, `share + shares`, ..., and return the number of parts done.

    - `stage`: the stage whose work is done. Raises InputError if it has no waiting work. By default, the work of every
      stage is waited for and done, until the run has a new report
    - `workers`: the number of workers, by default the number in the stage's settings
    """
    run_dir, done = run_dir.absolute(), 0
    if stage is None:
        may_become_one = not run_dir.exists() or (run_dir.is_dir() and not any(run_dir.iterdir()))
        if not (may_become_one or any((run_dir / name).exists() for name in _OF_A_RUN)):
            raise InputError(f"{run_dir} is not a run of truegold.", "Give the run's folder, such as runs/NAME.")
        progress.note(f"waiting for parts of {run_dir}{'' if run_dir.exists() else ', which does not exist yet'}")
    report = load_record(run_dir / REPORT)
    while True:
        files = list(run_dir.glob(f".partial/{stage or '*'}-*/{SCRATCH}/{WAITING}"))
        for waiting in files:
            done += _do_share(waiting, progress, slice(share, None, shares), workers)
        if not files and stage is not None:
            raise InputError(
                f"No parts of {stage} wait in {run_dir}.",
                "truegold run CONFIG --runner wait makes the parts of each stage wait.",
            )
        if stage is not None or load_record(run_dir / REPORT) != report:
            return done
        time.sleep(LOOK_EVERY_S)


def _do_share(waiting: Path, progress: Progress, share: slice, workers: int | None) -> int:
    try:
        whereabouts, content = read_waiting(waiting)
        whereabouts.enter()
        work, parts = pickle.loads(content)
        missing = unfinished(work, parts[share])
        # This file is deleted before the markers when a stage is done. If it is gone, parts without a marker may be
        # done.
        is_current = read_waiting(waiting) == (whereabouts, content)
    except FileNotFoundError:
        is_current = False
    if not is_current or not missing:
        return 0
    if workers is not None:
        work = replace(work, config=work.config.model_copy(update={WORKERS: workers}))
    progress.start(stage_of(parts), sum(part.count_rows() for part in missing))
    run_locally(work, missing, progress)
    return len(missing)
