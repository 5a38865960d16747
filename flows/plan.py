"""From a configuration to the stages of a run, in order. Nothing is run here.

make_data -> ingest -> clean -> dedup -> verify_gold -> vet_tests -> flag -> settle curate
-> model -> sft -> profile                                                          profile
-> select                                                                           select
-> export                                             after the last of these that is run
-> train -> profile_after                                                           train
-> report
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from truegold.flows.config import RunConfig
from truegold.pipeline.config.base import StageConfig
from truegold.pipeline.config.engines import ScriptedEngineConfig
from truegold.pipeline.config.sources import Columns, DemoSource, FileSource, HubSource
from truegold.pipeline.config.stages import ProfileConfig, ReportConfig, VetTestsConfig
from truegold.pipeline.flag.rules import detector_versions
from truegold.pipeline.ingest.code_sources import may_hold_code
from truegold.pipeline.ingest.readers import check_file
from truegold.pipeline.running.stage import RECORD, Output, Stage
from truegold.train.config.grpo import GrpoConfig
from truegold.train.config.models import PathModel, SftConfig, SmolLM2Model, TinyModel
from truegold.train.model.checkpoints import check_local, is_local
from truegold.verifiers import ConfigError, InputError, fingerprint

DEMO_COLUMNS = Columns.model_validate({"prompt": "question", "gold": "answer", "solution": "solution"})

GROUP_SIZE: int = GrpoConfig.model_fields["group_size"].default
"""For the rewards that a report expects of a run that does not train."""

PHASES = ("curate", "profile", "select", "train", "report")

Section = TypeVar("Section", SftConfig, ProfileConfig, GrpoConfig)


def plan(config: RunConfig, until: str = "report") -> list[Stage]:
    """The stages up to and including the phase `until`, and the report on them.

    Raises ConfigError, InputError or SetupError for what can be known to fail before any work: a phase whose section
    is missing, a data file or a model folder that does not exist.
    """
    wanted = PHASES[: PHASES.index(until) + 1]
    stages = _curation(config)
    needs_model = config.model is not None or isinstance(config.engine, ScriptedEngineConfig)
    if until in ("profile", "select", "train") and not needs_model:
        raise ConfigError(f"{until} needs a model.", "Set model.path in the configuration.")
    if until == "train" and config.train is None:
        raise ConfigError("There is no `train` section to run.", "`truegold init` shows one.")
    if "profile" in wanted and needs_model:
        stages += _profiling(config)
        if "select" in wanted:
            stages.append(_selection(config))
        stages.append(_export(config, stages))
        if "train" in wanted and config.train is not None:
            stages += _training(config)
    else:
        stages.append(_export(config, stages))
    group_size = config.train.group_size if config.train is not None else GROUP_SIZE
    stages.append(report_stage(config.name, [stage.name for stage in stages], group_size))
    return stages


def phase_of(stage: str) -> str:
    """The phase that a stage belongs to."""
    phases = {"model": "profile", "sft": "profile", "profile": "profile", "select": "select", "train": "train"}
    phases |= {"profile_after": "train", "report": "report"}
    return phases.get(stage, "curate")


def _curation(config: RunConfig) -> list[Stage]:
    stages: list[Stage] = []
    data = config.data
    ingest_inputs: dict[str, Path | Output] = {}
    if isinstance(data, DemoSource):
        stages.append(Stage("make_data", "truegold.pipeline.ingest.demo:make_demo_data", 1, data))
        raw, heldout = Output("make_data", "raw.jsonl"), Output("make_data", "heldout.jsonl")
        ingest_inputs = {"data": raw, "heldout": heldout}
        source: FileSource | HubSource = FileSource(
            path="raw.jsonl", heldout_path="heldout.jsonl", columns=DEMO_COLUMNS, verifier="math", domain="math"
        )
    else:
        source = data
        if isinstance(data, FileSource):
            ingest_inputs["data"] = _data_file(data.path)
            if data.heldout_path:
                ingest_inputs["heldout"] = _data_file(data.heldout_path)
    stages.append(Stage("ingest", "truegold.pipeline.ingest:ingest", 1, source, ingest_inputs))
    stages.append(Stage("clean", "truegold.pipeline.clean:clean", 2, config.clean, _rows("ingest")))
    stages.append(Stage("dedup", "truegold.pipeline.dedup:dedup", 2, config.dedup, _rows("clean")))
    stages.append(
        Stage(
            "verify_gold",
            "truegold.pipeline.verify:verify_gold",
            1,
            config.verify_gold,
            _rows("dedup"),
            judges="rows",
        )
    )
    last = "verify_gold"
    if config.vet_tests.enabled and not isinstance(data, DemoSource) and _may_hold_code(source, ingest_inputs):
        stages.append(_vetting(config.vet_tests))
        last = "vet_tests"
    flag_inputs = {
        **_rows(last),
        "dedup_flags": Output("dedup", "flags.parquet"),
        "gold_flags": Output(last, "flags.parquet"),
    }
    detectors = detector_versions(config.flag.detectors)
    stages.append(Stage("flag", "truegold.pipeline.flag:flag", 1, config.flag, flag_inputs, extra=detectors))
    settle_inputs: dict[str, Path | Output] = {**_rows("flag"), "flags": Output("flag", "flags.parquet")}
    if config.decisions:
        settle_inputs["decisions"] = _decisions_folder(config.decisions)
    stages.append(Stage("settle", "truegold.pipeline.review:settle", 1, config.settle, settle_inputs))
    return stages


def _may_hold_code(source: FileSource | HubSource, inputs: dict[str, Path | Output]) -> bool:
    file = inputs.get("data")
    return may_hold_code(source, file if isinstance(file, Path) else None)


def _vetting(settings: VetTestsConfig) -> Stage:
    inputs: dict[str, Path | Output] = {**_rows("verify_gold"), "flags": Output("verify_gold", "flags.parquet")}
    return Stage("vet_tests", "truegold.pipeline.verify.vet:vet_tests", 1, settings, inputs, judges="rows")


def _profiling(config: RunConfig) -> list[Stage]:
    stages: list[Stage] = []
    base = _base_model(config, stages)
    if config.sft is not None and base is not None:
        inputs: dict[str, Path | Output] = {"model": base}
        if config.sft.data:
            inputs["data"] = _data_file(config.sft.data)
        elif isinstance(config.data, DemoSource):
            inputs["data"] = Output("make_data", "sft.jsonl")
        else:
            inputs |= _rows("settle")
        judges = "rows" if "rows" in inputs else None
        settings, launch = _shared(config.sft, config), config.sft.launch
        stages.append(
            Stage("sft", "truegold.train.sft:sft", 2, settings, inputs, isolated=True, judges=judges, launch=launch)
        )
    stages.append(_profile_stage("profile", config, _rows("settle"), _current_model(config)))
    return stages


def _profile_stage(name: str, config: RunConfig, rows: dict[str, Path | Output], model: Path | Output | None) -> Stage:
    inputs = dict(rows)
    if model is not None:
        inputs["model"] = model
    settings = _shared(config.profile, config)
    return Stage(name, "truegold.pipeline.profile:profile", 2, settings, inputs, isolated=True, judges="rows")


def _selection(config: RunConfig) -> Stage:
    inputs: dict[str, Path | Output] = {
        name: Output("profile", f"{name}.parquet") for name in ("rows", "profile", "flags")
    }
    return Stage("select", "truegold.pipeline.select:select", 1, config.select, inputs)


def _export(config: RunConfig, stages: Sequence[Stage]) -> Stage:
    """The curated set: what was selected, or what the last of `stages` has left."""
    last = stages[-1].name
    tables: dict[str, Path | Output] = dict(_rows(last))
    if last == "select":
        tables = {name: Output("select", f"{name}.parquet") for name in ("selected", "heldout")}
    records: dict[str, Path | Output] = {stage.name: Output(stage.name, RECORD) for stage in stages}
    given = {"suspicion": config.export.suspicion, "matches": config.export.matches}
    named: dict[str, Path | Output] = {name: _data_file(path) for name, path in given.items() if path}
    return Stage("export", "truegold.pipeline.export:export", 2, config.export, {**tables, **records, **named})


def _training(config: RunConfig) -> list[Stage]:
    assert config.train is not None
    model = _current_model(config)
    assert model is not None
    inputs: dict[str, Path | Output] = {
        "model": model,
        "rows": Output("select", "selected.parquet"),
        "heldout": Output("select", "heldout.parquet"),
        "reserve": Output("select", "reserve.parquet"),
        "samples": Output("profile", "samples.parquet"),
    }
    settings, launch = _shared(config.train, config), config.train.launch
    terms = {term.verifier: fingerprint(term.verifier) for term in config.train.reward if term.verifier}
    stages = [
        Stage(
            "train",
            "truegold.train.grpo:grpo",
            3,
            settings,
            inputs,
            isolated=True,
            judges="rows",
            extra=terms,
            launch=launch,
        )
    ]
    if config.profile_after:
        rows: dict[str, Path | Output] = {"rows": Output("select", "after.parquet")}
        stages.append(_profile_stage("profile_after", config, rows, Output("train", "checkpoint")))
    return stages


def report_stage(name: str, stages: Sequence[str], group_size: int) -> Stage:
    """The stage that reports on `stages`."""
    inputs: dict[str, Path | Output] = {stage: Output(stage, RECORD) for stage in stages}
    settings = ReportConfig(name=name, stages=tuple(stages), group_size=group_size)
    return Stage("report", "truegold.pipeline.report:report", 2, settings, inputs)


def _rows(stage: str) -> dict[str, Path | Output]:
    return {"rows": Output(stage, "rows.parquet")}


def _shared(section: Section, config: RunConfig) -> Section:
    """A section with the run's chat and engine settings wherever it sets none of its own."""
    given = section.model_fields_set
    shared: dict[str, StageConfig] = {} if "chat" in given else {"chat": config.chat}
    if "engine" in type(section).model_fields and "engine" not in given:
        shared["engine"] = config.engine
    return section.model_copy(update=shared)


def _base_model(config: RunConfig, stages: list[Stage]) -> Path | Output | None:
    """Where the untrained model is; adds the stage that makes it, where there is one."""
    model = config.model
    if isinstance(model, TinyModel):
        texts = _data_file(config.sft.data) if config.sft and config.sft.data else None
        inputs: dict[str, Path | Output] = {"texts": texts or Output("make_data", "sft.jsonl")}
        stages.append(Stage("model", "truegold.train.model.checkpoints:build_tiny", 1, model, inputs, isolated=True))
    elif isinstance(model, SmolLM2Model):
        stages.append(Stage("model", "truegold.train.model.checkpoints:convert_smollm2", 1, model, isolated=True))
    elif isinstance(model, PathModel):
        if is_local(model.path):
            return check_local(model.path)
        stages.append(Stage("model", "truegold.train.model.checkpoints:download", 1, model, isolated=True))
    else:
        return None
    return Output("model", "checkpoint")


def _current_model(config: RunConfig) -> Path | Output | None:
    """The model that is profiled and trained: after SFT where there is one."""
    return Output("sft", "checkpoint") if config.sft is not None else _base_model(config, [])


def _data_file(path: str) -> Path:
    file = Path(path).expanduser()
    check_file(file)
    return file


def _decisions_folder(path: str) -> Path:
    folder = Path(path).expanduser()
    if not folder.is_dir():
        raise InputError(f"decisions: {path} is not a folder.", "Make it, or leave `decisions` out.")
    return folder
