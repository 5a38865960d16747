"""Runs the stages of a plan (`truegold.flows.plan`) one after the other in a run directory.

Each stage is called directly or as a Prefect task (`Call`). All other steps are in this module, so that both ways give
the same output. Before the first stage, `check_remote` looks up the sets and models that stages will fetch from the
hub. So a wrong name is an error at once, not after hours of earlier stages:

    data: {type: hf, name: openai/gsm9k}         Cannot open the dataset openai/gsm9k: ...
    model: {path: Qwen/Qwen9}                    model.path: the hub has no model Qwen/Qwen9, and no such folder exists.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path

import polars as pl

from truegold.flows.config import RunConfig
from truegold.flows.console import Terminal, errors, print_line, with_options_of
from truegold.flows.plan import GROUP_SIZE, report_stage
from truegold.pipeline.config.base import RunnerConfig
from truegold.pipeline.config.sources import HubSource, SeveralSources
from truegold.pipeline.config.stages import DecontaminateConfig, ReportConfig
from truegold.pipeline.curation.plan import check_hub
from truegold.pipeline.review.decisions import DECISIONS, load_decisions
from truegold.pipeline.review.reviewed_run import BEFORE_SETTLE, ReviewedRun
from truegold.pipeline.review.stage import OPEN_FLAGS_FILE
from truegold.pipeline.running.disk import DigestCache, disk_errors_reported, write_whole
from truegold.pipeline.running.parts import Runner, run_locally, set_runner
from truegold.pipeline.running.ray_cluster import ray_runner
from truegold.pipeline.running.slurm import check_slurm, run_on_slurm
from truegold.pipeline.running.stage import (
    Output,
    Stage,
    StageReport,
    StageResult,
    cached_result,
    free_reserve,
    load_record,
    run_stage,
    work_folder,
)
from truegold.pipeline.running.waiting_parts import wait_for_parts
from truegold.pipeline.sources.records import REJECT, REJECTS_FILE, describe_rejects, first_rejects
from truegold.pipeline.tables.losses import NO_BOUNDS, LossBounds, loss_lines
from truegold.pipeline.tables.rows import KEY
from truegold.pipeline.tables.run_files import HELD_REASONS, check_intact, read_manifest, read_resolved
from truegold.train.config.models import PathModel
from truegold.train.guards.doctor import record_stop, unfinished_training
from truegold.train.model.checkpoints import look_up
from truegold.verifiers import ConfigError, GuardError

TRAIN = "train"
"""The stage whose errors are recorded as alarms."""

Call = Callable[[Stage], StageResult]
"""Runs one stage and returns its result."""


@contextmanager
def open_run(config: RunConfig) -> Iterator[Path]:
    """Yield the run's directory with the resolved configuration in it, locked against a second run.

    Raises ConfigError if another run holds the lock.
    """
    run_dir = config.run_dir
    with disk_errors_reported(run_dir):
        run_dir.mkdir(parents=True, exist_ok=True)
        with held_run(run_dir):
            settings = config.resolved().model_dump(mode="json")
            # An invalid decision raises here, before the settings that `truegold decide` reads are replaced.
            for path in map(Path, settings["decisions"]):
                if path.exists() and not load_decisions(path) and path != (run_dir / DECISIONS).absolute():
                    print_line(f"decisions: none in {path} yet", errors)
            # The path of the run's own decisions is left out, since a copy of the run has another path.
            run_decisions = str((run_dir / DECISIONS).absolute())
            settings["decisions"] = [path for path in settings["decisions"] if path != run_decisions]
            _write_json(run_dir / "config.resolved.json", settings)
            yield run_dir


@contextmanager
def held_run(run_dir: Path) -> Iterator[None]:
    """Lock a run's directory against other processes. Raises ConfigError if another run holds the lock."""
    with (run_dir / ".lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock.seek(0)
            raise ConfigError(
                f"Another truegold run (process {lock.read().strip() or '?'}) is working in {run_dir}.",
                "Wait for it, or give this one another name.",
            ) from error
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


@contextmanager
def open_runner(config: RunnerConfig, run_dir: Path) -> Iterator[Runner]:
    """Yield the function that processes the parts of tables. Raises SetupError if its machines are not available."""
    match config.runner:
        case "local":
            yield run_locally
        case "ray":
            with ray_runner(config.ray, run_dir) as runner:
                yield runner
        case "slurm":
            check_slurm()
            yield partial(run_on_slurm, run_dir, config.slurm)
        case "wait":
            yield partial(wait_for_parts, run_dir)


def stage_caller(run_dir: Path, terminal: Terminal, runner: Runner = run_locally) -> Call:
    """Return a function that runs one stage in `run_dir`, shows its progress and prints its result."""
    digests = DigestCache(run_dir / ".digests.json")

    def call(stage: Stage) -> StageResult:
        with terminal.stage(stage.name), set_runner(runner):
            result = run_stage(stage, run_dir, digests, terminal)
        terminal.tell(describe(result))
        for line in rejects_in_words(result):
            terminal.tell(line)
        return result

    return call


def all_cached(stages: Sequence[Stage], run_dir: Path) -> list[StageResult] | None:
    """Return the results of all stages if every one is in the cache, else None."""
    digests = DigestCache(run_dir / ".digests.json")
    finished = []
    for stage in stages:
        if (result := cached_result(stage, run_dir, digests)) is None:
            return None
        finished.append(result)
    return finished


def execute(stages: Sequence[Stage], run_dir: Path, call: Call, bounds: LossBounds = NO_BOUNDS) -> list[StageResult]:
    """Call every stage in order and return the results. The manifest is updated after each.

    A run that is stopped still gets a report. If all rows are lost, or more than `bounds` allow, InputError is raised
    after the report is written.
    """
    check_remote(stages, run_dir)
    finished: list[StageResult] = []
    for stage in stages:
        try:
            finished.append(call(stage))
            write_manifest(run_dir, finished)
            bounds.check(stage.name, finished[-1].report, [result.report for result in finished[:-1]])
        except Exception as error:
            _leave_traces(stage, [result.name for result in finished], stages[-1], run_dir, call, error)
            raise
    return finished


def _leave_traces(
    stage: Stage, finished: Sequence[str], last: Stage, run_dir: Path, call: Call, error: Exception
) -> None:
    """Write the report of a run that was stopped by a guard, by an error in training, or by too many lost rows.

    A failed training also gets an alarm with the cause.
    """
    is_lost = stage.name in finished
    if stage.name != TRAIN and not is_lost and not isinstance(error, GuardError):
        return
    unfinished = None
    try:
        if stage.name == TRAIN:
            unfinished = work_folder(stage, run_dir, DigestCache(run_dir / ".digests.json"))
            free_reserve(unfinished)
            if load_record(unfinished) is None:  # A finished training must stay as its record describes it.
                record_stop(unfinished, error)
        if isinstance(last.config, ReportConfig) and "ingest" in finished:
            call(report_stage(last.config.name, finished, last.config.group_size, unfinished))
    except Exception as mistake:
        # The original error must not be hidden by an error in writing the report.
        print_line(f"the report could not be written: {mistake}", errors)


def write_manifest(run_dir: Path, finished: Sequence[StageResult]) -> None:
    """Write manifest.json: the stages of the run with their keys, counts and times."""
    _write_json(
        run_dir / "manifest.json",
        {
            "truegold": version("truegold"),
            "stages": [
                {
                    "name": result.name,
                    "key": result.key,
                    "rows_in": result.report.rows_in,
                    "rows_out": result.report.rows_out,
                    "counts": dict(result.report.counts),
                    "facts": dict(result.report.facts),
                    "seconds": result.seconds,
                }
                for result in finished
            ],
        },
    )


def _write_json(path: Path, content: object) -> None:
    write_whole(path, (json.dumps(content, indent=2, sort_keys=True) + "\n").encode())


def report_again(run_dir: Path, terminal: Terminal) -> StageResult:
    """Write the report of a run from its finished stages and its unfinished training.

    Raises InputError if `run_dir` is not a run.
    """
    names = [name for name in read_manifest(run_dir) if name != "report"]
    finished = [name for name in names if load_record(run_dir / name) is not None]
    for name in finished:
        check_intact(run_dir / name)
    unfinished = None if TRAIN in finished else unfinished_training(run_dir)
    train = read_resolved(run_dir).get("train")
    group_size = int((train or {}).get("group_size", GROUP_SIZE))
    # The user has asked for the report, so it is written again even if it is in the cache.
    shutil.rmtree(run_dir / "report", ignore_errors=True)
    with disk_errors_reported(run_dir):
        return stage_caller(run_dir, terminal)(report_stage(run_dir.name, finished, group_size, unfinished))


def rejects_in_words(result: StageResult) -> list[str]:
    """Return lines on the records that a stage could not read, and the file that lists all of them."""
    counts = result.report.counts
    rejected = {name.removeprefix(REJECT): count for name, count in counts.items() if name.startswith(REJECT) and count}
    path = result.path / REJECTS_FILE
    if not rejected or not path.is_file():
        return []
    lines = describe_rejects(rejected, result.report.rows_in, first_rejects([path]))
    return [*(with_options_of({"--set"}, line) for line in lines), f"  all of them: {path}"]


def losses_in_words(run_dir: Path) -> list[str]:
    """Return lines on the heavy losses of a finished run, and on its loss of all training rows. Empty if healthy."""
    records = {name: load_record(run_dir / name) for name in read_manifest(run_dir)}
    reports = {name: StageReport(**record["report"]) for name, record in records.items() if record is not None}
    lines = loss_lines(reports.values())
    leaked = reports["dedup"].counts.get("drop:leaked_heldout", 0) if "dedup" in reports else 0
    rows = run_dir / "settle" / "rows.parquet"
    if leaked and rows.exists() and set(pl.read_parquet(rows, columns=["split"])["split"]) <= {"heldout"}:
        lines.append(
            f"No row is left to train on: {leaked:,} {_rows(leaked)} repeat held-out rows, and the rest is held out.\n"
            "  Hold back other rows: --set data.heldout_path=FILE, or a share: --set data.heldout=0.1"
        )
    return lines


def next_steps(run_dir: Path, command: str) -> list[str]:
    """Return a line for each next step after a run. command: the command of the run."""
    counts = (load_record(run_dir / "settle") or {"report": {"counts": {}}})["report"]["counts"]
    held = sum(rows for name, rows in counts.items() if name.removeprefix("drop:") in HELD_REASONS)
    run = shlex.quote(str(run_dir))
    steps: list[tuple[str, str]] = []
    if held:
        steps.append((f"decide about {held:,} held {_rows(held)}", f"truegold review {run}"))
    if advised := _count_advised(run_dir):
        step = f"look at {advised:,} {_rows(advised)} that {'stays' if advised == 1 else 'stay'} with a flag"
        steps.append((step, f"truegold review {run}"))
    is_reviewable = any(load_record(run_dir / stage) for stage in BEFORE_SETTLE)
    if is_reviewable and (dropped := ReviewedRun.open(run_dir).count_restorable()):
        step = f"look at {dropped:,} dropped {_rows(dropped)} that can return"
        steps.append((step, f"truegold review {run}  # outcome: dropped"))
    if steps:
        steps.append(("then, with the decisions", command))
    if (run_dir / "export").is_dir():
        steps.append(("the set for a trainer", f"truegold export {run} --format trl --out SET"))
    width = max((26, *(len(what) for what, _ in steps)))
    return ["next:", *(f"  {what:<{width}}  {how}" for what, how in steps)] if steps else []


def _rows(count: int) -> str:
    return "row" if count == 1 else "rows"


def _count_advised(run_dir: Path) -> int:
    """Return how many rows of a run were kept with a flag that no reviewer has decided about."""
    path = run_dir / "settle" / OPEN_FLAGS_FILE
    return pl.read_parquet(path, columns=list(KEY)).n_unique() if path.is_file() else 0


def describe(result: StageResult) -> str:
    """Return one line on a finished stage: rows, the most frequent reasons, and its folder."""
    report = result.report
    rows = f"{report.rows_in:,} -> {report.rows_out:,} rows" if report.rows_in or report.rows_out else ""
    counts = sorted(report.counts.items(), key=lambda entry: -entry[1])
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in counts[:4] if count)
    duration = "from the cache" if result.cached else f"{result.seconds:.1f} s"
    return "  ".join(part for part in (f"{result.name:<13} {duration:<14}", rows, reasons, f"in {result.path}") if part)


def with_states(stages: Sequence[Stage], run_dir: Path) -> Iterator[tuple[Stage, bool]]:
    """Yield each stage and whether it will come from the cache. Stages that read from a stage to run will run too."""
    digests = DigestCache(run_dir / ".digests.json") if run_dir.is_dir() else None
    fresh: set[str] = set()
    for stage in stages:
        sources = {source.stage for source in stage.inputs.values() if isinstance(source, Output)}
        is_cached = digests is not None and not sources & fresh and cached_result(stage, run_dir, digests) is not None
        if not is_cached:
            fresh.add(stage.name)
        yield stage, is_cached


def check_remote(stages: Sequence[Stage], run_dir: Path) -> None:
    """Open every set and look up every model that a stage will fetch. Stages in the cache are skipped.

    Raises InputError if a set or model does not exist, and SetupError if the hub cannot be reached.
    """
    fetching = HubSource | SeveralSources | DecontaminateConfig | PathModel
    if not any(isinstance(stage.config, fetching) for stage in stages):
        return
    for stage, is_cached in with_states(stages, run_dir):
        if is_cached:
            continue
        if isinstance(stage.config, PathModel):
            look_up(stage.config)
        else:
            check_hub(stage.config)
