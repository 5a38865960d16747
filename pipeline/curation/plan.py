"""The stages that need no model, wired: from raw rows to rows that may be profiled. Nothing is run here.

make_data -> ingest -> clean -> decontaminate -> dedup -> verify_gold -> vet_tests -> flag -> well_posed -> settle
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from truegold.pipeline.clean import clean
from truegold.pipeline.config.sources import (
    Columns,
    DemoSource,
    FileSource,
    HubSource,
    ListedFile,
    ListedSource,
    SeveralSources,
)
from truegold.pipeline.config.stages import (
    CurationConfig,
    DedupConfig,
    SampleSource,
    SuspicionConfig,
    WellPosedConfig,
)
from truegold.pipeline.curation.early_checks import check_reasons, resolve_eval_sets, resolve_sources, resolve_stages
from truegold.pipeline.decontaminate import decontaminate
from truegold.pipeline.dedup import dedup
from truegold.pipeline.demo import make_demo_data
from truegold.pipeline.flag import flag
from truegold.pipeline.flag.rules import detector_versions
from truegold.pipeline.flag.well_posed import well_posed
from truegold.pipeline.ingest import ingest
from truegold.pipeline.ingest.stage import SOURCES_FILE
from truegold.pipeline.review import settle
from truegold.pipeline.running.stage import Output, Stage, plan_stage
from truegold.pipeline.sources.data_files import check_file
from truegold.pipeline.suspicion import suspect
from truegold.pipeline.suspicion.stage import SampleFile
from truegold.pipeline.verify import verify_gold
from truegold.pipeline.verify.vet import vet_tests
from truegold.verifiers import InputError
from truegold.verifiers.user_code import source_digest, split_spelling

DEMO_COLUMNS = Columns.model_validate({"prompt": "question", "gold": "answer", "solution": "solution"})
DEMO_SFT_TEXTS = Output("make_data", "sft.jsonl")
"""The demo's texts for a cold start."""


def curation_stages(config: CurationConfig) -> list[Stage]:
    """Return the stages in their order.

    Raises InputError or ConfigError for anything that the configuration names and that is not there: files, columns,
    rules, verifiers and their options (`truegold.pipeline.curation.early_checks`).
    """
    stages, source, files = _source(config)
    may_hold_code = resolve_sources(source, files)
    stages += [
        plan_stage("ingest", ingest, source, files),
        plan_stage("clean", clean, config.clean, rows_of("ingest")),
    ]
    if config.decontaminate is not None:
        inputs = rows_of("clean") | resolve_eval_sets(config.decontaminate)
        stages.append(plan_stage("decontaminate", decontaminate, config.decontaminate, inputs))
    is_list = isinstance(source, SeveralSources)
    priority: dict[str, Path | Output] = {"sources": Output("ingest", SOURCES_FILE)} if is_list else {}
    stages += [
        _deduplicate(config.dedup, {**rows_of(stages[-1].name), **priority}),
        plan_stage("verify_gold", verify_gold, config.verify_gold, rows_of("dedup")),
    ]
    if config.vet_tests.enabled and not isinstance(config.data, DemoSource) and may_hold_code:
        vetted = {**rows_of("verify_gold"), "flags": Output("verify_gold", "flags.parquet")}
        stages.append(plan_stage("vet_tests", vet_tests, config.vet_tests, vetted))
    verified = stages[-1].name
    flagged = {
        **rows_of(verified),
        "dedup_flags": Output("dedup", "flags.parquet"),
        "gold_flags": Output(verified, "flags.parquet"),
    }
    check_reasons(config.flag)
    rules = config.flag.model_copy(update={"model": None})
    stages.append(plan_stage("flag", flag, rules, flagged, extra=detector_versions(config.flag.detectors)))
    if config.flag.model is not None:
        stages.append(_ask_model(config.flag.model))
    last = stages[-1].name
    settled: dict[str, Path | Output] = {**rows_of(last), "flags": Output(last, "flags.parquet")}
    if config.decisions:
        settled["decisions"] = _decisions_folder(config.decisions)
    stages.append(plan_stage("settle", settle, config.settle, settled))
    resolve_stages(stages)
    return stages


def _deduplicate(config: DedupConfig, inputs: dict[str, Path | Output]) -> Stage:
    """Plan deduplication; an encoder is an input, or its code a version, so that it is made again with another one."""
    extra: dict[str, str] = {}
    if config.embedder is not None:
        spelling = split_spelling(config.embedder)
        if spelling is not None:
            extra["embedder"] = source_digest(spelling[0], f"encoder {config.embedder!r}")
        elif Path(config.embedder).is_dir():
            inputs = {**inputs, "embedder": Path(config.embedder)}
    return plan_stage("dedup", dedup, config, inputs, extra=extra)


def _ask_model(config: WellPosedConfig) -> Stage:
    inputs: dict[str, Path | Output] = {**rows_of("flag"), "flags": Output("flag", "flags.parquet")}
    if config.model is not None:
        inputs["model"] = Path(config.model).expanduser()
    return plan_stage("well_posed", well_posed, config, inputs)


def flagging_stages(config: CurationConfig, samples: Sequence[SampleFile]) -> list[Stage]:
    """Return the stages that say which rows are suspicious: reading, verified golds, rules, and the answers of systems.

    `samples` are the files of answers. Raises what `curation_stages` raises.
    """
    planned = {stage.name: stage for stage in curation_stages(config)}
    inputs = rows_of("ingest")
    for index, file in enumerate(samples):
        inputs[f"samples {index}"] = data_file(str(file.path))
    sources = tuple(SampleSource(system=file.system, step=file.step) for file in samples)
    asked = [planned["well_posed"]] if "well_posed" in planned else []
    gold_flags = {"gold_flags": Output("verify_gold", "flags.parquet")}
    return [
        planned["ingest"],
        replace(planned["verify_gold"], inputs=rows_of("ingest")),
        replace(planned["flag"], inputs=rows_of("ingest") | gold_flags),
        *asked,
        plan_stage("suspect", suspect, SuspicionConfig(files=sources), inputs),
    ]


def last_flagging(config: CurationConfig) -> str:
    """Return the name of the stage whose flags are all flags."""
    return "flag" if config.flag.model is None else "well_posed"


def rows_of(stage: str) -> dict[str, Path | Output]:
    """Return the rows that a stage leaves as the input `rows` of another one."""
    return {"rows": Output(stage, "rows.parquet")}


def data_file(path: str) -> Path:
    """Return the path of a file that the configuration names; raises InputError where it cannot be read."""
    file = Path(path).expanduser()
    check_file(file)
    return file


def _source(
    config: CurationConfig,
) -> tuple[list[Stage], FileSource | HubSource | SeveralSources, dict[str, Path | Output]]:
    """Return what has to be run before `ingest`, and the source or sources and files that it reads."""
    data = config.data
    if isinstance(data, tuple):
        # Shares of the selection are none of ingest's business, and no reason to read everything again.
        sources = tuple(source.model_copy(update={"quota": None, "weight": None}) for source in data)
        return [], SeveralSources(sources=sources), _listed_files(data)
    files: dict[str, Path | Output] = {}
    if isinstance(data, DemoSource):
        files = {"data": Output("make_data", "raw.jsonl"), "heldout": Output("make_data", "heldout.jsonl")}
        source = FileSource(
            path="raw.jsonl", heldout_path="heldout.jsonl", columns=DEMO_COLUMNS, verifier="math", domain="math"
        )
        return [plan_stage("make_data", make_demo_data, data)], source, files
    if isinstance(data, FileSource):
        files["data"] = data_file(data.path)
        if data.heldout_path:
            files["heldout"] = data_file(data.heldout_path)
    return [], data, files


def _listed_files(sources: Sequence[ListedSource]) -> dict[str, Path | Output]:
    files: dict[str, Path | Output] = {}
    for index, source in enumerate(sources):
        if isinstance(source, ListedFile):
            try:
                files[f"data {index}"] = data_file(source.path)
                if source.heldout_path:
                    files[f"heldout {index}"] = data_file(source.heldout_path)
            except InputError as error:
                raise InputError(f"Source {source.label!r} (data.{index}): {error.message}", error.hint) from None
    return files


def _decisions_folder(path: str) -> Path:
    folder = Path(path).expanduser()
    if not folder.is_dir():
        shown = folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder
        raise InputError(f"decisions: {shown} is not a folder.", "Make it, or leave `decisions` out.")
    return folder
