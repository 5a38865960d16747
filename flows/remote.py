"""Looks up what a run will fetch from the hub before its first stage, where those stages have not run yet.

    data: {type: hf, name: openai/gsm9k}         Cannot open the dataset openai/gsm9k: ...
    decontaminate: {against: [math50]}           is found while the run is planned: there is no such set
    model: {path: Qwen/Qwen9}                    model.path: the hub has no model Qwen/Qwen9, and no such folder exists.

A set that cannot be opened now could not be opened an hour later either, after the stages before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from truegold.pipeline.config.sources import HubSource, SeveralSources
from truegold.pipeline.config.stages import DecontaminateConfig
from truegold.pipeline.decontaminate.eval_sets import find_local, read_eval_set
from truegold.pipeline.decontaminate.stage import problem_columns
from truegold.pipeline.running.disk import DigestCache
from truegold.pipeline.running.stage import Output, Stage, cached_result
from truegold.pipeline.sources.hub import open_hub
from truegold.train.config.models import PathModel
from truegold.train.model.checkpoints import look_up
from truegold.verifiers import TruegoldError


def with_states(stages: Sequence[Stage], run_dir: Path) -> Iterator[tuple[Stage, bool]]:
    """Yield each stage with whether it would come from the cache; what follows one that runs is run again as well."""
    digests = DigestCache(run_dir / ".digests.json") if run_dir.is_dir() else None
    fresh: set[str] = set()
    for stage in stages:
        sources = {source.stage for source in stage.inputs.values() if isinstance(source, Output)}
        is_cached = digests is not None and not sources & fresh and cached_result(stage, run_dir, digests) is not None
        if not is_cached:
            fresh.add(stage.name)
        yield stage, is_cached


def check_remote(stages: Sequence[Stage], run_dir: Path) -> None:
    """Open every set and look up every model that a stage which is not cached will fetch.

    Raises InputError for what does not exist, SetupError where the hub cannot be reached, as the stage would.
    """
    if not any(_fetches(stage) for stage in stages):
        return
    for stage, is_cached in with_states(stages, run_dir):
        if is_cached:
            continue
        match stage.config:
            case HubSource() as source:
                open_hub(source)
            case SeveralSources(sources=parts):
                for index, part in enumerate(parts):
                    if isinstance(part, HubSource):
                        _open_named(part, f"Source {part.label!r} (data.{index})")
            case DecontaminateConfig(against=entries):
                for entry in entries:
                    path = find_local(entry.set)
                    if path is None or path.is_dir():
                        next(read_eval_set(entry.set, problem_columns(entry)), None)
            case PathModel() as model:
                look_up(model)
            case _:
                pass


def _fetches(stage: Stage) -> bool:
    return isinstance(stage.config, HubSource | SeveralSources | DecontaminateConfig | PathModel)


def _open_named(source: HubSource, label: str) -> None:
    try:
        open_hub(source)
    except TruegoldError as error:
        error.message = f"{label}: {error.message}"
        error.args = (error.message,)
        raise
