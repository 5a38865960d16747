"""Plans the stages of a run from its configuration, without running them. A run can end after each phase:

    Phase      Stages
    curate     those of `truegold.pipeline.curation.plan`
    profile    model -> sft -> profile
    select     select
    synth      synth
    train      distill -> train -> profile_after
    report     report

`report` is the last stage of every run. `export` follows the last planned stage of curate, profile and select.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from truegold.flows.config import RunConfig
from truegold.pipeline.config.engines import ScriptedEngineConfig, VllmEngineConfig
from truegold.pipeline.config.sources import DemoSource
from truegold.pipeline.config.stages import ProfileConfig, ReportConfig
from truegold.pipeline.curation.plan import (
    DEMO_SFT_TEXTS,
    curation_stages,
    data_file,
    evidence_of_rows,
    resolve_stages,
    rows_of,
)
from truegold.pipeline.export import export
from truegold.pipeline.profile import profile
from truegold.pipeline.report import report
from truegold.pipeline.review.stage import DECIDED_FILE, OPEN_FLAGS_FILE
from truegold.pipeline.running.stage import RECORD, Output, Stage, plan_stage
from truegold.pipeline.running.stage_table import Phase, phase_of
from truegold.pipeline.select import select
from truegold.pipeline.select.stage import TakeRowsConfig, take_rows
from truegold.pipeline.tables.reasons import CHECKS_FILE
from truegold.pipeline.tables.run_files import UNFINISHED
from truegold.synth import synth
from truegold.synth.config import SynthConfig
from truegold.synth.records import DISTILLED_FILE
from truegold.synth.strategies import strategy_fingerprint
from truegold.train.config.grpo import GrpoConfig
from truegold.train.config.models import PathModel, SmolLM2Model, TinyModel
from truegold.train.grpo import grpo
from truegold.train.guards.run_log import ALARMS
from truegold.train.model.checkpoints import build_tiny, check_local, convert_smollm2, download, is_local
from truegold.train.model.machine_checks import check_lengths, check_training, settings_of
from truegold.train.sft import check_examples, dialogues_of, sft
from truegold.train.turns.environment import environment_fingerprint, load_environment
from truegold.verifiers import ConfigError, fingerprint

GROUP_SIZE: int = GrpoConfig.model_fields["group_size"].default
"""The group size for expected rewards in the report of a run without training."""


def plan(config: RunConfig, until: Phase = Phase.REPORT) -> list[Stage]:
    """Return the stages up to and including the phase `until`, and the report on them.

    Raises ConfigError, InputError or SetupError for mistakes that can be found in advance, such as a phase whose
    section is missing, or a data file or a model folder that does not exist.
    """
    config = config.resolved()
    if Path(config.runs_dir).is_file():
        raise ConfigError(f"runs_dir: {config.runs_dir} is a file.", "Name a folder.")
    phases = list(Phase)[: list(Phase).index(until) + 1]
    stages = curation_stages(config)
    has_engine = config.model is not None or isinstance(config.engine, ScriptedEngineConfig)
    _check_sections(config, until, has_engine=has_engine)
    _check_lengths(config, phases)
    if Phase.PROFILE in phases and config.train is not None and _trains_on_all_rows(config.train, config):
        stages += _plan_cold_start(config)
        if Phase.SELECT in phases:
            stages.append(plan_stage("take_rows", take_rows, TakeRowsConfig(), rows_of("settle")))
        stages.append(_plan_export(config, stages))
        if Phase.TRAIN in phases:
            stages.append(_plan_training_on_all_rows(config, config.train))
    elif Phase.PROFILE in phases and has_engine and config.profile is not None:
        profiling = _plan_profile("profile", config, config.profile, rows_of("settle"), _current_model(config))
        stages += [*_plan_cold_start(config), profiling]
        if Phase.SELECT in phases:
            stages.append(_plan_selection(config))
        stages.append(_plan_export(config, stages))
        if Phase.SYNTH in phases and config.synth is not None:
            stages.append(_plan_synthesis(config, config.synth))
        if Phase.TRAIN in phases and config.train is not None:
            stages += _plan_training(config)
    else:
        stages.append(_plan_export(config, stages))
    resolve_stages(stages)
    group_size = config.train.group_size if config.train is not None else GROUP_SIZE
    stages.append(report_stage(config.name, [stage.name for stage in stages], group_size))
    return stages


def _check_sections(config: RunConfig, until: Phase, *, has_engine: bool) -> None:
    """Raise ConfigError for a phase whose section is missing."""
    if until in (Phase.PROFILE, Phase.SELECT, Phase.SYNTH, Phase.TRAIN) and not has_engine:
        raise ConfigError(f"{until} needs a model.", "Set model.path in the configuration.")
    if until in (Phase.PROFILE, Phase.SELECT) and config.profile is None:
        raise ConfigError(f"{until} needs a profile.", "Leave `profile: null` out.")
    if until is Phase.SYNTH and config.synth is None:
        raise ConfigError("There is no `synth` section to run.", "Write `synth: {}` for its defaults.")
    if until is Phase.TRAIN and config.train is None:
        raise ConfigError("There is no `train` section to run.", "`truegold init` shows one.")


def _check_lengths(config: RunConfig, phases: Sequence[Phase]) -> None:
    """Raise ConfigError for prompts and completions that are too long for the model, or engines that cannot train."""
    if config.model is None:
        return
    samplers = {Phase.PROFILE: config.profile, Phase.SYNTH: config.synth}
    for phase, section in samplers.items():
        if phase in phases and section is not None and (config.train is None or config.train.turns is None):
            most = f"{phase}.max_tokens", section.max_tokens
            check_lengths(section.engine, most, settings_of(config.model), _engine_setting(config, phase))
    if Phase.TRAIN in phases and config.train is not None:
        check_training(config.train, config.model, _engine_setting(config, "train"))


def _engine_setting(config: RunConfig, section: str) -> str:
    """Return the setting of a section's engine: `engine`, unless the section has its own."""
    return "engine" if getattr(config, section).engine is config.engine else f"{section}.engine"


def _plan_cold_start(config: RunConfig) -> list[Stage]:
    stages: list[Stage] = []
    base = _base_model(config, stages)
    if config.sft is not None and base is not None:
        section = config.sft
        turns = config.train.turns if config.train is not None else None
        if turns is not None:
            # The prompts of examples get the same additions (tools, a reminder) as those of rollouts.
            explicit = {name: getattr(section.dialogues, name) for name in section.dialogues.model_fields_set}
            section = section.model_copy(update={"dialogues": dialogues_of(turns).model_copy(update=explicit)})
        inputs: dict[str, Path | Output] = {"model": base}
        if section.data:
            check_examples(examples := data_file(section.data))
            inputs["data"] = examples
        elif isinstance(config.data, DemoSource):
            inputs["data"] = DEMO_SFT_TEXTS
        else:
            inputs |= rows_of("settle")
        stages.append(plan_stage("sft", sft, section, inputs, launch=section.launch))
    return stages


def _trains_on_all_rows(section: GrpoConfig, config: RunConfig) -> bool:
    """Return whether the training uses all rows, because there is no profile to select by.

    There is none with `profile: null`, and none for dialogues, since a profile measures single answers.
    """
    return section.turns is not None or config.profile is None


def _plan_profile(
    name: str, config: RunConfig, section: ProfileConfig, rows: dict[str, Path | Output], model: Path | Output | None
) -> Stage:
    inputs = {**rows, **evidence_of_rows(config)}
    if model is not None:
        inputs["model"] = model
    return plan_stage(name, profile, section, inputs)


def _plan_selection(config: RunConfig) -> Stage:
    inputs: dict[str, Path | Output] = {
        name: Output("profile", f"{name}.parquet") for name in ("rows", "profile", "flags", "suspicion")
    }
    inputs |= {"open_flags": Output("settle", OPEN_FLAGS_FILE), "decided": Output("settle", DECIDED_FILE)}
    inputs["checks"] = Output("settle", CHECKS_FILE)
    return plan_stage("select", select, config.select, inputs)


def _plan_synthesis(config: RunConfig, section: SynthConfig) -> Stage:
    inputs: dict[str, Path | Output] = {
        name: Output("select", f"{name}.parquet") for name in ("hard", "selected", "reserve")
    }
    inputs |= {name: Output("profile", f"{name}.parquet") for name in ("profile", "suspicion", "samples")}
    if (model := _current_model(config)) is not None:
        inputs["model"] = model
    strategies = {spelling: strategy_fingerprint(spelling) for spelling in section.strategies}
    return plan_stage("synth", synth, section, inputs, extra=strategies)


def _plan_export(config: RunConfig, stages: Sequence[Stage]) -> Stage:
    """Plan the export of the selected rows. Without a selection, plan the export of the last stage's rows."""
    last = stages[-1].name
    tables: dict[str, Path | Output] = rows_of(last)
    if phase_of(last) is Phase.SELECT:
        tables = {name: Output(last, f"{name}.parquet") for name in ("selected", "heldout")}
    records: dict[str, Path | Output] = {stage.name: Output(stage.name, RECORD) for stage in stages}
    suspicion = config.export.suspicion
    evidence: dict[str, Path | Output] = {} if suspicion is None else {"suspicion": data_file(suspicion)}
    return plan_stage("export", export, config.export, {**tables, **records, **evidence})


def _plan_training(config: RunConfig) -> list[Stage]:
    assert config.train is not None and config.profile is not None
    model = _current_model(config)
    assert model is not None
    distilled: dict[str, Path | Output] = {}
    if config.synth is not None:
        distilled["distilled"] = Output("synth", DISTILLED_FILE)
    stages: list[Stage] = []
    if config.distill is not None:
        launch = config.distill.launch
        stages.append(plan_stage("distill", sft, config.distill, {"model": model, **distilled}, launch=launch))
        model = Output("distill", "checkpoint")
    inputs: dict[str, Path | Output] = {
        "model": model,
        "rows": Output("select" if config.synth is None else "synth", "selected.parquet"),
        "heldout": Output("select", "heldout.parquet"),
        "reserve": Output("select" if config.synth is None else "synth", "reserve.parquet"),
        "samples": Output("profile", "samples.parquet"),
        **distilled,
        **_evaluation_sets(config.train),
    }
    stages.append(_plan_grpo(config.train, inputs))
    if config.profile_after:
        rows: dict[str, Path | Output] = {
            "rows": Output("select", "after.parquet"),
            "earlier": Output("profile", "samples.parquet"),
        }
        # These rows are profiled only to compare pass rates. No further selection follows.
        section = config.profile.model_copy(update={"rows_to_select": None, "quotas": {}, "zero_share": 1.0})
        stages.append(_plan_profile("profile_after", config, section, rows, Output("train", "checkpoint")))
    return stages


def _plan_grpo(section: GrpoConfig, inputs: dict[str, Path | Output]) -> Stage:
    """Plan a training with GRPO. Raises ConfigError if the environment of its dialogues cannot be loaded."""
    extra = {term.verifier: fingerprint(term.verifier) for term in section.reward.composition if term.verifier}
    if section.turns is not None:
        load_environment(section.turns)
        extra["environment"] = environment_fingerprint(section.turns)
    return plan_stage("train", grpo, section, inputs, extra=extra, launch=section.launch)


def _plan_training_on_all_rows(config: RunConfig, section: GrpoConfig) -> Stage:
    model = _current_model(config)
    assert model is not None
    names = {"rows": "selected", "heldout": "heldout", "reserve": "reserve"}
    inputs: dict[str, Path | Output] = {key: Output("take_rows", f"{name}.parquet") for key, name in names.items()}
    return _plan_grpo(section, {"model": model, **inputs, **_evaluation_sets(section)})


def _evaluation_sets(section: GrpoConfig) -> dict[str, Path | Output]:
    """Return the evaluation sets of a training as inputs. Raises InputError for a file that cannot be read."""
    return {f"evaluation {name}": data_file(path) for name, path in section.evaluation.sets.items()}


def report_stage(name: str, stages: Sequence[str], group_size: int, unfinished: Path | None = None) -> Stage:
    """Plan the report on `stages`. unfinished: the folder of a training that failed or was stopped, if any."""
    inputs: dict[str, Path | Output] = {stage: Output(stage, RECORD) for stage in stages}
    if unfinished is not None:
        inputs[UNFINISHED] = unfinished / ALARMS
    return plan_stage("report", report, ReportConfig(name=name, stages=tuple(stages), group_size=group_size), inputs)


def _base_model(config: RunConfig, stages: list[Stage]) -> Path | Output | None:
    """Return the location of the untrained model. If a stage has to make the model, add this stage to `stages`."""
    model = config.model
    if isinstance(model, TinyModel):
        texts = data_file(config.sft.data) if config.sft and config.sft.data else DEMO_SFT_TEXTS
        stages.append(plan_stage("model", build_tiny, model, {"texts": texts}))
    elif isinstance(model, SmolLM2Model):
        stages.append(plan_stage("model", convert_smollm2, model))
    elif isinstance(model, PathModel):
        if is_local(model.path):
            return check_local(model.path, weights=_needs_weights(config))
        stages.append(plan_stage("model", download, model))
    else:
        return None
    return Output("model", "checkpoint")


def _needs_weights(config: RunConfig) -> bool:
    """Return whether a model is loaded here. One that is only sampled from servers needs just its tokenizer."""
    engines = [section.engine for section in (config.profile, config.synth, config.train) if section is not None]
    trains = config.sft is not None or config.train is not None
    return trains or any(isinstance(engine, VllmEngineConfig) for engine in engines)


def _current_model(config: RunConfig) -> Path | Output | None:
    """Return the model that is profiled and trained: the one after SFT, if there is SFT."""
    return Output("sft", "checkpoint") if config.sft is not None else _base_model(config, [])
