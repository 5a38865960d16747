"""Runs one stage of a run, or returns its result from the cache. A stage is a function from files to a folder:

    @stage_function(version=2)
    def clean(inputs: Mapping[str, Path], config: CleanConfig, out_dir: Path, progress: Progress) -> StageReport

The cache key of a stage is a hash of its name, code version, settings, the digests of its inputs and the fingerprints
of its verifiers. `run_stage` works in `.partial/NAME-KEY`. When the stage is done, it renames this folder to `NAME`.
After a kill, the folder is still there, and the stage can resume its work. The result of an earlier configuration is
moved to `.superseded/NAME-KEY`. It is restored when this configuration is used again.

Two kinds of settings may change without losing work. `tunable` settings may change while the stage is unfinished: a
training can be resumed with a lower learning rate. They are part of the key of the result only. `aims` may change at
any time: the profile for a selection of 1,000 rows also serves a selection of 2,000 rows. They are part of no key.
"""

from __future__ import annotations

import os
import pkgutil
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import orjson
import polars as pl
from pydantic import BaseModel

from truegold.pipeline.config.base import LaunchConfig
from truegold.pipeline.running.disk import DigestCache, digest_file, digest_json, write_whole
from truegold.pipeline.running.isolation import call_isolated
from truegold.pipeline.running.progress import Progress
from truegold.verifiers import ConfigError, fingerprint

RECORD = "stage.json"
"""The file that records a finished stage. A stage's folder is complete if it has this file."""
SCRATCH = "scratch"
"""The subfolder for files with which a stage resumes its work. It is deleted when the stage is done."""

RESERVE, RESERVED = "reserve", 4 * 2**20
"""The name and size of a file in the scratch folder. On a full disk, deleting it makes room for alarms and a report."""

STORE = "store"
"""The name of the input with a stage's store: a folder that is kept when the cache key of the stage changes."""
REPLIES = "replies"
"""The subfolder of a store with the paid replies of models."""

Inputs = Mapping[str, "Path | Output"]
"""The inputs of a stage by the names that its function uses."""

_TRAITS: dict[Callable[..., StageReport], dict[str, Any]] = {}
"""The arguments of `stage_function` for each stage function."""


@dataclass(frozen=True)
class StageReport:
    """The result of a stage function."""

    rows_in: int
    """The number of rows that the stage read."""
    rows_out: int
    """The number of rows that the stage wrote."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """The numbers of rows by action and reason, such as `drop:empty_gold`."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Further facts for the report, as data for JSON."""


@dataclass(frozen=True)
class Output:
    """An input that is a file or folder of an earlier stage of the same run."""

    stage: str
    """The stage that writes the file."""
    name: str
    """The name of the file in the stage's folder."""


@dataclass(frozen=True)
class Stage:
    """One step of a plan."""

    name: str
    """The name of the stage, and of its folder in the run."""
    fn: str
    """The import string of the stage's function."""
    version: int
    """The version of the function's code. Developers raise it whenever the output could change."""
    config: BaseModel
    """The settings of the stage, which are part of the cache key."""
    inputs: Inputs = field(default_factory=dict)
    """The files that the stage reads, by name."""
    isolated: bool = False
    """Whether the stage runs in a separate process, which frees all its memory at the end (`isolation`)."""
    judges: str | None = None
    """The input whose rows name the stage's verifiers. Their fingerprints are part of the cache key."""
    extra: Mapping[str, str] = field(default_factory=dict)
    """Versions of other things that affect the output, by name. They are part of the cache key, too."""
    launch: LaunchConfig = field(default_factory=LaunchConfig)
    """The number of processes of an isolated stage, and their machines."""
    part_rows: int | None = None
    """The number of rows in a part of the output tables. It is not part of the cache key."""
    tunable: tuple[str, ...] = ()
    """Settings, such as `optimizer.lr`, that may change while the stage is unfinished."""
    aims: tuple[str, ...] = ()
    """Settings about the later use of the output. The result of the stage stays valid when they change."""
    store: str | None = None
    """The path of the stage's store in the run, or None. Files in a store only save work; the output does not depend on
    them."""


Function = TypeVar("Function", bound=Callable[..., StageReport])


def stage_function(
    version: int,
    *,
    isolated: bool = False,
    judges: str | None = None,
    tunable: tuple[str, ...] = (),
    aims: tuple[str, ...] = (),
    store: str | None = None,
) -> Callable[[Function], Function]:
    """Declare a stage function. The arguments are the fields of `Stage`.

    `judges` is ignored if the stage has no input of this name.
    """

    def declare(function: Function) -> Function:
        _TRAITS[function] = {
            "version": version,
            "isolated": isolated,
            "judges": judges,
            "tunable": tunable,
            "aims": aims,
            "store": store,
        }
        return function

    return declare


def plan_stage(
    name: str,
    function: Callable[..., StageReport],
    config: BaseModel,
    inputs: Inputs | None = None,
    *,
    extra: Mapping[str, str] | None = None,
    launch: LaunchConfig | None = None,
    part_rows: int | None = None,
) -> Stage:
    """Return a step of a plan for a declared stage function.

    The stage names the function by the package that exports it. So moving code within the package does not change the
    key.
    """
    module = function.__module__
    package = module.rpartition(".")[0]
    exporter = package if getattr(sys.modules.get(package), function.__name__, None) is function else module
    inputs, traits = inputs or {}, dict(_TRAITS[function])
    if traits["judges"] not in inputs:
        traits["judges"] = None
    spelling = f"{exporter}:{function.__name__}"
    return Stage(
        name,
        spelling,
        config=config,
        inputs=inputs,
        extra=extra or {},
        launch=launch or LaunchConfig(),
        part_rows=part_rows,
        **traits,
    )


@dataclass(frozen=True)
class StageResult:
    """A finished stage."""

    name: str
    """The stage's name."""
    path: Path
    """The stage's folder."""
    key: str
    """The cache key: a digest of inputs, settings and version."""
    report: StageReport
    """The counts of the stage."""
    seconds: float
    """The wall time of the stage, in seconds."""
    cached: bool
    """Whether the result came from the cache."""


def load_record(folder: Path) -> dict[str, Any] | None:
    """Return a finished stage's `stage.json`, or None if the folder is not a finished stage."""
    path = folder / RECORD
    if not path.exists():
        return None
    try:
        record: dict[str, Any] = orjson.loads(path.read_bytes())
    except orjson.JSONDecodeError:
        return None
    return record


def resolve_inputs(stage: Stage, run_dir: Path) -> dict[str, Path]:
    """Return the path of each input."""
    return {
        name: run_dir / source.stage / source.name if isinstance(source, Output) else source
        for name, source in stage.inputs.items()
    }


def stage_key(stage: Stage, run_dir: Path, digests: DigestCache) -> str:
    """Return the cache key of a stage, 32 hex digits. It covers everything that affects the output, so it leaves `aims`
    out."""
    return _key(stage, stage.config.model_dump(mode="json", exclude=set(stage.aims)), run_dir, digests)


def work_key(stage: Stage, run_dir: Path, digests: DigestCache) -> str:
    """Return the key of the stage's unfinished work, which does not depend on its tunable settings."""
    settings = stage.config.model_dump(mode="json")
    for name in stage.tunable:
        *sections, last = name.split(".")
        section: dict[str, Any] | None = settings
        for section_name in sections:
            section = (section or {}).get(section_name)
        if section is not None:
            section.pop(last, None)
    return _key(stage, settings, run_dir, digests)


def work_folder(stage: Stage, run_dir: Path, digests: DigestCache) -> Path:
    """Return the folder of the stage's unfinished work."""
    return run_dir / ".partial" / f"{stage.name}-{work_key(stage, run_dir, digests)[:12]}"


def _key(stage: Stage, settings: dict[str, Any], run_dir: Path, digests: DigestCache) -> str:
    inputs = {}
    for name, source in stage.inputs.items():
        if isinstance(source, Output):
            inputs[name] = _output_digest(run_dir, source)
        else:
            inputs[name] = digests.path(source)
    return digest_json(
        {
            "name": stage.name,
            "fn": stage.fn,
            "version": stage.version,
            "config": settings,
            "inputs": inputs,
            "verifiers": _verifier_fingerprints(stage, run_dir),
            "extra": dict(stage.extra),
        }
    )


def _verifier_fingerprints(stage: Stage, run_dir: Path) -> dict[str, str]:
    if stage.judges is None:
        return {}
    names = pl.scan_parquet(resolve_inputs(stage, run_dir)[stage.judges]).select(pl.col("verifier").unique()).collect()
    return {name: fingerprint(name) for name in sorted(names["verifier"])}


def _output_digest(run_dir: Path, source: Output) -> str:
    if (record := load_record(run_dir / source.stage)) is None:
        raise ConfigError(f"stage {source.stage!r} has not been run in {run_dir}.", "Run the earlier stages first.")
    if source.name == RECORD:
        # The record stands for the whole stage. Times are left out of the digest.
        return digest_json([record["key"], record["report"]["counts"], record["outputs"]])
    digests = _digests(record, source.name)
    if not digests:
        raise KeyError(f"stage {source.stage} made no {source.name}")
    return digest_json(digests)


def _digests(record: Mapping[str, Any], name: str) -> dict[str, str]:
    """Return the digests of a file in a stage's folder, or of all files in a subfolder, by path."""
    outputs = record.get("outputs", {}).items()
    return {path: entry["digest"] for path, entry in outputs if path == name or path.startswith(f"{name}/")}


def table_digest(record: Mapping[str, Any], name: str) -> str | None:
    """Return the digest of a table from a stage's record, or None if the record does not have it."""
    digests = list(_digests(record, name).values())
    return digest_json(digests) if len(digests) > 1 else next(iter(digests), None)


def run_stage(stage: Stage, run_dir: Path, digests: DigestCache, progress: Progress) -> StageResult:
    """Return the result of a stage, from the cache if its key is unchanged, else by running it.

    Raises the errors of the stage function. After an error, the unfinished folder is kept, and the next run resumes the
    stage.
    """
    key = stage_key(stage, run_dir, digests)
    final = run_dir / stage.name
    partial = work_folder(stage, run_dir, digests)
    _restore(run_dir, stage.name, key, partial)
    if (cached := _current_result(final, key)) is not None:
        return cached

    partial.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    inputs = resolve_inputs(stage, run_dir)
    if stage.store is not None:
        inputs[STORE] = run_dir / stage.store
    if stage.isolated:
        log = run_dir / "logs" / f"{stage.name}.log"
        scratch = partial / SCRATCH
        reserve_room(scratch)
        report_fields = call_isolated(stage.fn, inputs, stage.config, partial, progress, log, stage.launch, scratch)
        report = StageReport(**report_fields)
    else:
        function: Callable[..., StageReport] = pkgutil.resolve_name(stage.fn)
        cut = {} if stage.part_rows is None else {"part_rows": stage.part_rows}
        report = function(inputs, stage.config, partial, progress, **cut)
    seconds = time.monotonic() - started
    shutil.rmtree(partial / SCRATCH, ignore_errors=True)
    _write_record(stage, key, partial, report, seconds)
    set_aside(run_dir, stage.name)
    partial.rename(final)
    return StageResult(stage.name, final, key, report, seconds, cached=False)


def reserve_room(scratch: Path) -> None:
    """Write a reserve file, which `free_reserve` deletes if the disk is full."""
    scratch.mkdir(exist_ok=True)
    if not (scratch / RESERVE).exists():
        write_whole(scratch / RESERVE, os.urandom(RESERVED))


def free_reserve(partial: Path) -> None:
    """Delete the reserve file, to make room for the files about a failed stage."""
    (partial / SCRATCH / RESERVE).unlink(missing_ok=True)


def cached_result(stage: Stage, run_dir: Path, digests: DigestCache) -> StageResult | None:
    """Return the stage's result if it is finished and its key is unchanged, else None. Nothing is run or moved."""
    if any(
        isinstance(source, Output) and load_record(run_dir / source.stage) is None for source in stage.inputs.values()
    ):
        return None
    return _current_result(run_dir / stage.name, stage_key(stage, run_dir, digests))


def _current_result(final: Path, key: str) -> StageResult | None:
    record = load_record(final)
    if record is None or record["key"] != key or not _is_intact(final, record):
        return None
    report = StageReport(**record["report"])
    return StageResult(record["name"], final, record["key"], report, record["seconds"], cached=True)


def _write_record(stage: Stage, key: str, folder: Path, report: StageReport, seconds: float) -> None:
    outputs = {
        str(path.relative_to(folder)): {"bytes": path.stat().st_size, "digest": digest_file(path, sample_large=True)}
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != RECORD
    }
    record = {
        "name": stage.name,
        "key": key,
        "fn": stage.fn,
        "version": stage.version,
        "truegold": version("truegold"),
        "config": stage.config.model_dump(mode="json"),
        "report": asdict(report),
        "seconds": round(seconds, 3),
        "outputs": outputs,
    }
    write_whole(folder / RECORD, orjson.dumps(record, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS))


def _is_intact(folder: Path, record: Mapping[str, Any]) -> bool:
    """Return whether every output file exists with its recorded size."""
    return all(
        (folder / name).is_file() and (folder / name).stat().st_size == entry["bytes"]
        for name, entry in record["outputs"].items()
    )


def _restore(run_dir: Path, name: str, key: str, partial: Path) -> None:
    """Restore a finished result with this key, from `.superseded` or from `partial` after a kill. If `partial` has a
    finished result with another key, it is moved to `.superseded`."""
    left = load_record(partial)
    if left is not None and left["key"] != key:
        partial.rename(_folder_aside(run_dir, name, left["key"]))
    final = run_dir / name
    current = load_record(final)
    if current is not None and current["key"] == key:
        return
    for candidate in (partial, run_dir / ".superseded" / f"{name}-{key[:12]}"):
        record = load_record(candidate)
        if record is not None and record["key"] == key:
            set_aside(run_dir, name)
            candidate.rename(final)
            return


def set_aside(run_dir: Path, name: str) -> None:
    """Move the finished folder of a stage to `.superseded/NAME-KEY`."""
    final = run_dir / name
    if not final.exists():
        return
    if (record := load_record(final)) is None:
        raise ConfigError(
            f"{final} is in the way: it is not the folder of a truegold stage.", "Move it, or choose another name."
        )
    final.rename(_folder_aside(run_dir, name, record["key"]))


def _folder_aside(run_dir: Path, name: str, key: str) -> Path:
    """Return the path in `.superseded` for a finished folder, and delete an earlier folder of this path."""
    aside = run_dir / ".superseded" / f"{name}-{key[:12]}"
    aside.parent.mkdir(exist_ok=True)
    if aside.exists():
        shutil.rmtree(aside)
    return aside
