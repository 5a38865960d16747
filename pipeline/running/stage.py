"""Runs one stage: a plain function from files to a folder that is complete or absent, cached by content.

    @stage_function(version=2)
    def clean(inputs: Mapping[str, Path], config: CleanConfig, out_dir: Path, progress: Progress) -> StageReport

The key of a stage is the hash of its name, code version, resolved configuration, the digests of its inputs and the
fingerprints of the verifiers that it uses. `run_stage` works in `.partial/NAME-KEY`, which survives a kill so that a
stage may take up its work again, and renames it to `NAME` when done. What another configuration made earlier moves to
`.superseded/NAME-KEY` and comes back from there with its configuration.

Settings that a stage declares as `tunable` are not part of the key of unfinished work: with a lower learning rate a
training goes on where it stopped. A finished stage's key has them all. Settings that are `aims` are not part of it
either: a profile that was drawn for a selection of 1,000 rows serves one of 2,000, too.
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
"""The file in a stage's folder that says what was done; a folder with it is complete."""
SCRATCH = "scratch"
"""A folder of this name inside a stage's folder holds what only a resumed run needs; it goes when the stage is done."""

RESERVE, RESERVED = "reserve", 4 * 2**20
"""A file in a stage's scratch folder and its bytes: room for alarms and the report of a stage that fills the disk."""

STORE = "store"
"""The name of the input by which a stage function gets its store, where it has one: a folder that stays for as long as
the run, also where the stage's key changes."""
REPLIES = "replies"
"""The folder in a store with the replies of models that are paid for."""

Inputs = Mapping[str, "Path | Output"]
"""Maps the names of parameters of the stage's function to its inputs."""

_TRAITS: dict[Callable[..., StageReport], dict[str, Any]] = {}
"""The version of each stage function, whether it is isolated, what it judges, and its store."""


@dataclass(frozen=True)
class StageReport:
    """The result of a stage function."""

    rows_in: int
    """Rows that the stage read."""
    rows_out: int
    """Rows that the stage wrote."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Rows by reason, such as `drop:empty_gold`."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Further facts that are worth showing; JSON has to be able to hold them."""


@dataclass(frozen=True)
class Output:
    """A file or folder that an earlier stage of the same run makes."""

    stage: str
    """The stage that writes it."""
    name: str
    """Its name in that stage's folder."""


@dataclass(frozen=True)
class Stage:
    """One step of a plan."""

    name: str
    """The stage's name, and that of its folder in the run."""
    fn: str
    """The import string of the stage's function."""
    version: int
    """The version of the function's code, raised by hand whenever its output could change."""
    config: BaseModel
    """Its settings, which are part of the cache key."""
    inputs: Inputs = field(default_factory=dict)
    """Maps the names of parameters of its function to the files that it reads."""
    isolated: bool = False
    """Whether the stage runs in another process, which gives all memory back and keeps torch, vLLM and DeepSpeed out of
    this one."""
    judges: str | None = None
    """The input whose rows name verifiers that decide the output, so that an edited verifier runs the stage again."""
    extra: Mapping[str, str] = field(default_factory=dict)
    """The versions of all else that decides the output, by name."""
    launch: LaunchConfig = field(default_factory=LaunchConfig)
    """The processes of an isolated stage."""
    part_rows: int | None = None
    """Rows in a part of the tables, for a stage that cuts them. It is not part of the key: a finished table stays as it
    is cut."""
    tunable: tuple[str, ...] = ()
    """Settings, such as `optimizer.lr`, that may change while the stage is unfinished."""
    aims: tuple[str, ...] = ()
    """Settings that only say what the output will be used for: when they change, a finished one stays."""
    store: str | None = None
    """The folder of the stage's store in the run, where it has one. What lies there never decides the output, only how
    much of it has to be worked out again."""


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
    """Declare next to a stage's function what every plan has to know of it; the fields of `Stage` explain the
    arguments.

    Where a stage has no input of the name `judges`, it judges nothing.
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
    """Make a step of a plan out of a declared stage function.

    The function's import string names the package that exports it, so that a stage's key outlives moves inside of the
    package.
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
    """Its folder."""
    key: str
    """The digest of inputs, settings and version by which it is cached."""
    report: StageReport
    """The counts of the stage."""
    seconds: float
    """How long it ran."""
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
    """Return 32 hex digits that change whenever the stage's output could, save by its aims."""
    return _key(stage, stage.config.model_dump(mode="json", exclude=set(stage.aims)), run_dir, digests)


def work_key(stage: Stage, run_dir: Path, digests: DigestCache) -> str:
    """Return the key of the stage's unfinished work, which its tunable settings have no part in."""
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
        # The stage as a whole is meant: everything but the times in its record.
        return digest_json([record["key"], record["report"]["counts"], record["outputs"]])
    digests = _digests(record, source.name)
    if not digests:
        raise KeyError(f"stage {source.stage} made no {source.name}")
    return digest_json(digests)


def _digests(record: Mapping[str, Any], name: str) -> dict[str, str]:
    """Return the digests of a file in a stage's folder, or of the files of a folder in it."""
    outputs = record.get("outputs", {}).items()
    return {path: entry["digest"] for path, entry in outputs if path == name or path.startswith(f"{name}/")}


def table_digest(record: Mapping[str, Any], name: str) -> str | None:
    """Return one digest of a table that a stage's record has, of one file or of parts, or None if the record lacks the
    table."""
    digests = list(_digests(record, name).values())
    return digest_json(digests) if len(digests) > 1 else next(iter(digests), None)


def run_stage(stage: Stage, run_dir: Path, digests: DigestCache, progress: Progress) -> StageResult:
    """Return the stage's finished folder, from the cache where its key is known, else by running it.

    Raises the errors of the stage function. The unfinished folder then stays for the next try.
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
    """Write a file of noise, which `free_reserve` removes where the disk is full in the end."""
    scratch.mkdir(exist_ok=True)
    if not (scratch / RESERVE).exists():
        write_whole(scratch / RESERVE, os.urandom(RESERVED))


def free_reserve(partial: Path) -> None:
    """Make room for what is written of a stage that has failed."""
    (partial / SCRATCH / RESERVE).unlink(missing_ok=True)


def cached_result(stage: Stage, run_dir: Path, digests: DigestCache) -> StageResult | None:
    """Return the stage's result where its folder is finished and current, else None. Nothing is run or moved."""
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
    """Return whether every output is there at its recorded size; after a deleted or cut file the stage runs again."""
    return all(
        (folder / name).is_file() and (folder / name).stat().st_size == entry["bytes"]
        for name, entry in record["outputs"].items()
    )


def _restore(run_dir: Path, name: str, key: str, partial: Path) -> None:
    """Put a finished folder of this key in place that was set aside earlier, or that a kill left before its rename.

    Files that such a kill left in `partial` under another key are set aside, because they are not unfinished work.
    """
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
    """Move a stage's finished folder away, to where it is found again by its key."""
    final = run_dir / name
    if not final.exists():
        return
    if (record := load_record(final)) is None:
        raise ConfigError(
            f"{final} is in the way: it is not a folder that a truegold stage made.", "Move it, or choose another name."
        )
    final.rename(_folder_aside(run_dir, name, record["key"]))


def _folder_aside(run_dir: Path, name: str, key: str) -> Path:
    """Return where a finished folder is set aside, with nothing there."""
    aside = run_dir / ".superseded" / f"{name}-{key[:12]}"
    aside.parent.mkdir(exist_ok=True)
    if aside.exists():
        shutil.rmtree(aside)
    return aside
