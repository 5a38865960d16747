"""Runs one stage: a plain function from files to a folder that is complete or absent, cached by content.

    def clean(inputs: Mapping[str, Path], config: CleanConfig, out_dir: Path, progress: Progress) -> StageReport

The key of a stage is the hash of its name, code version, resolved configuration, the digests of its inputs and the
versions of the verifiers it asks. `run_stage` works in `.partial/NAME-KEY`, which
survives a kill so that a stage may take up its own work, and renames it to `NAME` when done. What another configuration
made earlier moves to `.superseded/NAME-KEY` and comes back from there when its configuration does.
"""

from __future__ import annotations

import importlib
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson
import polars as pl
from pydantic import BaseModel

from truegold.pipeline.running.digest import DigestCache, digest_file, digest_json
from truegold.pipeline.running.isolate import call_isolated
from truegold.pipeline.running.launch import LaunchConfig
from truegold.pipeline.running.progress import Progress
from truegold.verifiers import ConfigError, fingerprint

RECORD = "stage.json"
SCRATCH = "scratch"
"""A folder of this name inside a stage's folder holds what only a resumed run needs; it goes when the stage is done."""


@dataclass(frozen=True)
class StageReport:
    """What a stage tells of itself: rows in and out, counts by reason, and any facts worth showing (JSON-able)."""

    rows_in: int
    rows_out: int
    counts: Mapping[str, int] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Output:
    """A file or folder that an earlier stage of the same run makes."""

    stage: str
    name: str


@dataclass(frozen=True)
class Stage:
    """One step of a plan.

    fn: import string of the stage function. version: raised by hand whenever its output could change.
    inputs: by the names the function knows them by. isolated: run in a process of its own, which gives all memory back
    and keeps torch, vLLM and DeepSpeed out of this one. judges: the input whose rows name verifiers that decide the
    output, so that an edited verifier runs the stage again. launch: the processes of an isolated stage.
    """

    name: str
    fn: str
    version: int
    config: BaseModel
    inputs: Mapping[str, Path | Output] = field(default_factory=dict)
    isolated: bool = False
    judges: str | None = None
    extra: Mapping[str, str] = field(default_factory=dict)
    launch: LaunchConfig = field(default_factory=LaunchConfig)


@dataclass(frozen=True)
class StageResult:
    """A finished stage: where its folder is, under which key, what it reported, and whether it came from the cache."""

    name: str
    path: Path
    key: str
    report: StageReport
    seconds: float
    cached: bool


def load_record(folder: Path) -> dict[str, Any] | None:
    """A finished stage's `stage.json`, or None where the folder is not a finished stage."""
    path = folder / RECORD
    if not path.exists():
        return None
    try:
        record: dict[str, Any] = orjson.loads(path.read_bytes())
    except orjson.JSONDecodeError:
        return None
    return record


def load_result(folder: Path) -> StageResult | None:
    """The result a finished stage left in its folder."""
    record = load_record(folder)
    if record is None:
        return None
    report = StageReport(**record["report"])
    return StageResult(record["name"], folder, record["key"], report, record["seconds"], cached=True)


def resolve_inputs(stage: Stage, run_dir: Path) -> dict[str, Path]:
    """Where each input lies."""
    return {
        name: run_dir / source.stage / source.name if isinstance(source, Output) else source
        for name, source in stage.inputs.items()
    }


def stage_key(stage: Stage, run_dir: Path, digests: DigestCache) -> str:
    """32 hex digits that change whenever the stage's output could."""
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
            "config": stage.config.model_dump(mode="json"),
            "inputs": inputs,
            "verifiers": _verifiers(stage, run_dir),
            "extra": dict(stage.extra),
        }
    )


def _verifiers(stage: Stage, run_dir: Path) -> dict[str, str]:
    if stage.judges is None:
        return {}
    names = pl.scan_parquet(resolve_inputs(stage, run_dir)[stage.judges]).select(pl.col("verifier").unique()).collect()
    return {name: fingerprint(name) for name in sorted(names["verifier"])}


def _output_digest(run_dir: Path, source: Output) -> str:
    record = load_record(run_dir / source.stage)
    if record is None:
        raise ConfigError(f"stage {source.stage!r} has not been run in {run_dir}.", "Run the earlier stages first.")
    if source.name == RECORD:  # the stage as a whole: everything but the times in its record
        return digest_json([record["key"], record["report"]["counts"], record["outputs"]])
    prefix = source.name + "/"
    found = {
        name: entry["digest"]
        for name, entry in record["outputs"].items()
        if name == source.name or name.startswith(prefix)
    }
    if not found:
        raise KeyError(f"stage {source.stage} made no {source.name}")
    return digest_json(found)


def load_function(spec: str) -> Callable[..., StageReport]:
    """The function behind `package.module:name`."""
    module, _, name = spec.partition(":")
    function: Callable[..., StageReport] = getattr(importlib.import_module(module), name)
    return function


def run_stage(stage: Stage, run_dir: Path, digests: DigestCache, progress: Progress) -> StageResult:
    """Return the stage's finished folder, from the cache where its key is known, else by running it.

    Raises whatever the stage function raises; the unfinished folder then stays for the next try.
    """
    key = stage_key(stage, run_dir, digests)
    final = run_dir / stage.name
    _restore(run_dir, stage.name, key)
    done = _current(final, key)
    if done is not None:
        return done

    partial = run_dir / ".partial" / f"{stage.name}-{key[:12]}"
    partial.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    inputs = resolve_inputs(stage, run_dir)
    if stage.isolated:
        log = run_dir / "logs" / f"{stage.name}.log"
        told = call_isolated(stage.fn, inputs, stage.config, partial, progress, log, stage.launch, partial / SCRATCH)
        report = StageReport(**told)
    else:
        report = load_function(stage.fn)(inputs, stage.config, partial, progress)
    seconds = time.monotonic() - started
    shutil.rmtree(partial / SCRATCH, ignore_errors=True)
    _write_record(stage, key, partial, report, seconds)
    _set_aside(run_dir, stage.name)
    partial.rename(final)
    return StageResult(stage.name, final, key, report, seconds, cached=False)


def cached_result(stage: Stage, run_dir: Path, digests: DigestCache) -> StageResult | None:
    """The stage's result where its folder is finished and current, else None. Nothing is run or moved."""
    if any(
        isinstance(source, Output) and load_record(run_dir / source.stage) is None for source in stage.inputs.values()
    ):
        return None
    return _current(run_dir / stage.name, stage_key(stage, run_dir, digests))


def _current(final: Path, key: str) -> StageResult | None:
    record = load_record(final)
    if record is None or record["key"] != key or not _intact(final, record):
        return None
    return load_result(final)


def _write_record(stage: Stage, key: str, folder: Path, report: StageReport, seconds: float) -> None:
    outputs = {
        str(path.relative_to(folder)): {
            "bytes": path.stat().st_size,
            "digest": digest_file(path, sample_large=True),
        }
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
    aside = folder / (RECORD + ".tmp")
    aside.write_bytes(orjson.dumps(record, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS))
    aside.replace(folder / RECORD)


def _intact(folder: Path, record: Mapping[str, Any]) -> bool:
    """Whether every output is still there at its recorded size: a deleted or cut file means the stage runs again."""
    return all(
        (folder / name).is_file() and (folder / name).stat().st_size == entry["bytes"]
        for name, entry in record["outputs"].items()
    )


def _restore(run_dir: Path, name: str, key: str) -> None:
    """Put a finished folder of this key in place: one a kill left before its rename, or one set aside earlier."""
    final = run_dir / name
    current = load_record(final)
    if current is not None and current["key"] == key:
        return
    for place in (".partial", ".superseded"):
        candidate = run_dir / place / f"{name}-{key[:12]}"
        record = load_record(candidate)
        if record is not None and record["key"] == key:
            _set_aside(run_dir, name)
            candidate.rename(final)
            return


def _set_aside(run_dir: Path, name: str) -> None:
    final = run_dir / name
    if not final.exists():
        return
    record = load_record(final)
    if record is None:
        raise ConfigError(
            f"{final} is in the way: it is not a folder that a truegold stage made.", "Move it, or choose another name."
        )
    aside = run_dir / ".superseded" / f"{name}-{record['key'][:12]}"
    aside.parent.mkdir(exist_ok=True)
    if aside.exists():
        shutil.rmtree(aside)
    final.rename(aside)
