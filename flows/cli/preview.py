"""What `--dry-run` shows: how many rows there are, which stages would run, and how long that may take.

    data      train.jsonl: 8 records
    model     none
    stage          state     last time
    ingest         cached    0.1 s
    clean          to run    2 s for 8 rows
    expected  about 3 s for 4 of 5 stages; no time is known of: profile

Times are those of the same stages when they last ran in this folder; `--json` has the whole resolved configuration.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from truegold.flows.config import RunConfig
from truegold.flows.console import describe_seconds
from truegold.flows.remote import with_states
from truegold.pipeline.config.sources import DemoSource, FileSource, HubSource
from truegold.pipeline.running.stage import Stage, load_record
from truegold.pipeline.sources.readers import form_by_suffix, open_file

COUNT_BYTES = 4 * 2**30
"""Lines of a larger file are not counted: a dry run takes seconds."""
BLOCK = 2**20


def preview_json(config: RunConfig, stages: Sequence[Stage]) -> dict[str, Any]:
    """Return the resolved configuration and the stages for a program."""
    states = {stage.name: cached for stage, cached in with_states(stages, config.run_dir)}
    return {
        "config": config.resolved().model_dump(mode="json"),
        "stages": [
            {"name": stage.name, "function": stage.fn, "isolated": stage.isolated, "cached": states[stage.name]}
            for stage in stages
        ],
    }


def preview_lines(config: RunConfig, stages: Sequence[Stage]) -> Iterator[str]:
    """Yield the lines of a dry run."""
    yield f"run       {config.name} in {config.run_dir}"
    for source in config.data if isinstance(config.data, tuple) else (config.data,):
        yield f"data      {_describe_source(source)}"
    model = getattr(config.model, "path", None) or getattr(config.model, "type", "none")
    yield f"model     {model}"
    yield f"{'stage':<14} {'state':<9} last time"
    expected, timed, unknown = 0.0, 0, []
    for stage, cached in with_states(stages, config.run_dir):
        record = load_record(config.run_dir / stage.name)
        last = "not run before"
        if record is not None:
            last = f"{record['seconds']:.1f} s for {record['report']['rows_in']:,} rows"
        yield f"{stage.name:<14} {'cached' if cached else 'to run':<9} {last}"
        if cached:
            continue
        if record is None:
            unknown.append(stage.name)
        else:
            expected, timed = expected + record["seconds"], timed + 1
    yield f"expected  {_describe_time(expected, timed, unknown)}"
    yield "--json prints every setting of every stage."


def _describe_time(expected: float, timed: int, unknown: Sequence[str]) -> str:
    if not timed and not unknown:
        return "nothing to do: all stages come from the cache"
    unknown_part = f"no time is known of {len(unknown)} stages that have not run here: {', '.join(unknown)}"
    if not timed:
        return unknown_part
    known_part = f"about {describe_seconds(expected)} for {timed} stages, as long as they took last time"
    return f"{known_part}; {unknown_part}" if unknown else known_part


def _describe_source(source: FileSource | HubSource | DemoSource) -> str:
    if isinstance(source, DemoSource):
        return f"the demo: {source.problems:,} problems and what is planted among them"
    if isinstance(source, HubSource):
        limit = f", the first {source.limit:,} rows" if source.limit else ""
        return f"{source.name}, split {source.split}{limit}; counted when it is read"
    count = _count_records(Path(source.path).expanduser(), source.format)
    records = "its records are counted when it is read" if count is None else f"{count:,} records"
    return f"{source.path}: {records}{f', of which the first {source.limit:,} are taken' if source.limit else ''}"


def _count_records(path: Path, form: str) -> int | None:
    """Return the number of records, by lines where the format has them; None where counting takes long."""
    form = form_by_suffix(path) if form == "auto" else form
    if form == "parquet":
        return open_file(path, form, BLOCK).total
    if form != "jsonl" or path.suffix == ".gz" or path.stat().st_size > COUNT_BYTES:
        return None
    with path.open("rb") as file:
        return sum(line.strip() != b"" for line in file)
