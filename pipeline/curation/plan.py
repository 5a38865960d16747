"""Plans the stages of curation, from raw records to rows that may be profiled. Nothing is run here.

make_data -> ingest -> clean -> decontaminate -> dedup -> verify_gold -> vet_tests -> flag
-> well_posed -> suspect                                        only if a model is asked
-> settle

Everything that a configuration names is checked before the first stage runs:

    columns: {gold: answr}                        train.jsonl has no column 'answr' (columns.gold). Did you mean ...?
    verifier_args: {tolerence: 0.1}               data.verifier_args: math has no option 'tolerence'; ...
    engine: {type: scripted, path: nothing.jsonl} profile: engine.path: nothing.jsonl does not exist.

    flag: {advise_only: [prof]}                   no flag of curation has the reason 'prof'. Did you mean 'proof'?

So a mistake in the configuration is reported before a long run. To check columns, this module reads the first records
of each file. Sets on the hub are opened before the first stage (`check_hub`). A user's detector may flag for any
reason. With such a detector, all names of reasons are accepted.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import MappingProxyType

from pydantic import BaseModel

from truegold.pipeline.clean import Boilerplate, clean
from truegold.pipeline.config import stages as stage_settings
from truegold.pipeline.config.base import LaunchConfig
from truegold.pipeline.config.engines import (
    ChatEngineConfig,
    RepliesEngineConfig,
    ScriptedEngineConfig,
    ServerEngineConfig,
    VllmEngineConfig,
)
from truegold.pipeline.config.sources import (
    Columns,
    DemoSource,
    FileSource,
    HubSource,
    ListedFile,
    ListedSource,
    SeveralSources,
)
from truegold.pipeline.decontaminate import decontaminate
from truegold.pipeline.decontaminate.eval_sets import check_apart, find_local, read_eval_set
from truegold.pipeline.decontaminate.stage import problem_columns
from truegold.pipeline.dedup import dedup
from truegold.pipeline.demo import make_demo_data
from truegold.pipeline.engines.checkpoint_files import check_checkpoint
from truegold.pipeline.engines.scripted import name_model
from truegold.pipeline.flag import flag
from truegold.pipeline.flag.rules import BUILT_IN, GROUPS, detector_versions
from truegold.pipeline.flag.well_posed import well_posed
from truegold.pipeline.ingest import ingest
from truegold.pipeline.ingest.stage import SOURCES_FILE
from truegold.pipeline.judge.audit import check_audit
from truegold.pipeline.review import settle
from truegold.pipeline.running.stage import Output, Stage, plan_stage
from truegold.pipeline.running.stage_table import DROPPING_STAGES
from truegold.pipeline.sources.columns import compile_column
from truegold.pipeline.sources.data_files import at_hand, check_data, check_file, is_within, open_file
from truegold.pipeline.sources.hub import open_hub
from truegold.pipeline.sources.presets import check_columns, check_preset, check_spelling, choose_layout, source_named
from truegold.pipeline.sources.records import LOOK_AHEAD, look_ahead
from truegold.pipeline.suspicion import suspect
from truegold.pipeline.suspicion.stage import SampleFile
from truegold.pipeline.tables.ledger import DROPPED_FILE
from truegold.pipeline.tables.reasons import ASKED_FILE, CONFLICTING_LABELS, GOLD_REASONS, POSSIBLE_TRANSLATION
from truegold.pipeline.verify import verify_gold
from truegold.pipeline.verify.vet import NOT_VETTED, vet_tests
from truegold.verifiers import ConfigError, InputError, fingerprint
from truegold.verifiers.audit.suites.vet_state import VetReason
from truegold.verifiers.registry import find_option_mistakes
from truegold.verifiers.user_code import did_you_mean, load_object, source_digest, split_spelling

CODE_VERIFIER = "code"
NEVER_CODE = ("gsm8k", "math")
"""The presets whose rows never have the verifier `code`."""

NAMED_FILES = ((ScriptedEngineConfig, "path"), (ServerEngineConfig, "urls_file"), (LaunchConfig, "hostfile"))
"""The sections with settings that name a file."""

Files = Mapping[str, Path | Output]

EARLIER_REASONS = (CONFLICTING_LABELS, POSSIBLE_TRANSLATION, *GOLD_REASONS, NOT_VETTED, *map(str, VetReason))
"""The reasons of flags by stages before `flag`. The stage `flag` gathers these flags."""

DEMO_COLUMNS = Columns.model_validate({"prompt": "question", "gold": "answer", "solution": "solution"})
DEMO_SFT_TEXTS = Output("make_data", "sft.jsonl")
"""The demo's texts for supervised fine-tuning before GRPO."""


def resolve_sources(source: FileSource | HubSource | SeveralSources, files: Files) -> bool:
    """Check the names in the settings of sources, and return whether a source may have programs with tests.

    `files` has the inputs of `ingest`. Raises ConfigError for an unknown preset, extract, verifier or option, and
    InputError for a column that is not in the file.
    """
    if not isinstance(source, SeveralSources):
        return _resolve_source(source, files.get("data"), files.get("heldout"))
    may_hold_code = False
    for index, part in enumerate(source.sources):
        with source_named(part, f" (data.{index})"):
            held = _resolve_source(part, files.get(f"data {index}"), files.get(f"heldout {index}"))
        may_hold_code = may_hold_code or held
    return may_hold_code


def _resolve_source(config: FileSource | HubSource, data: Path | Output | None, heldout: Path | Output | None) -> bool:
    check_spelling(config)
    if config.verifier is not None:
        fingerprint(config.verifier)
    verifier = config.verifier
    filled = {field for field in ("verifier", "verifier_args") if getattr(config.columns, field) is not None}
    if isinstance(data, Path) and isinstance(config, FileSource):
        verifier, filled = _look_into(config, data, heldout if isinstance(heldout, Path) else None)
    rows_differ = config.verifier is None and "verifier" in filled
    if verifier is not None and config.verifier_args and not rows_differ:
        is_whole = "verifier_args" not in filled and config.columns.tests is None
        if mistakes := find_option_mistakes(verifier, config.verifier_args, complete=is_whole):
            raise ConfigError(f"data.verifier_args: {' '.join(mistakes)}")
    return _may_hold_code(config, verifier, rows_differ)


def _look_into(config: FileSource, data: Path, heldout: Path | None) -> tuple[str | None, set[str]]:
    """Return the verifier of a file's rows, and the columns among `verifier` and `verifier_args` that the rows have.
    The verifier is None if no record of the file can be read. `ingest` reports such a file."""
    opened = open_file(data, config.format, config.max_row_bytes)
    samples = [record.values for record in look_ahead(islice(opened.records, LOOK_AHEAD), lambda reject: None)]
    if not samples:
        return config.verifier, set()
    layout = choose_layout(config, opened.location, samples)
    if heldout is not None:
        held = open_file(heldout, config.format, config.max_row_bytes)
        held_samples = [record.values for record in look_ahead(islice(held.records, LOOK_AHEAD), lambda reject: None)]
        if held_samples:
            check_columns(config, layout, held.location, held_samples)
    specs = {"verifier": layout.columns.verifier, "verifier_args": layout.columns.verifier_args}
    columns = {field: compile_column(spec, field) for field, spec in specs.items() if spec is not None}
    filled = {field for field, column in columns.items() if any(column.text(values) for values in samples)}
    return config.verifier or layout.verifier, filled


def _may_hold_code(config: FileSource | HubSource, verifier: str | None, rows_differ: bool) -> bool:
    """Return whether a source may have programs. A hub set without preset and verifier may have them."""
    if config.verifier is not None:
        return config.verifier == CODE_VERIFIER
    if rows_differ or config.columns.tests is not None:
        return True
    if config.preset in NEVER_CODE:
        return False
    return isinstance(config, HubSource) or verifier in (CODE_VERIFIER, None)


def check_training_rows_remain(files: Files, decontaminating: stage_settings.DecontaminateConfig | None) -> None:
    """Raise InputError if all rows of a source are also held out, or are what they are decontaminated against.

    `files` has the inputs of `ingest`.
    """
    held = [path for name, path in files.items() if name.startswith("heldout") and isinstance(path, Path)]
    named = [entry.set for entry in decontaminating.against] if decontaminating is not None else []
    for name, path in files.items():
        if not name.startswith("data") or not isinstance(path, Path):
            continue
        if is_within(path, held):
            raise InputError(
                f"heldout_path has all rows of {name.replace(' ', '.')}.path ({path}), so that none is left to train "
                "on.",
                "Name another file; or leave heldout_path out, and hold back a share: heldout: 0.1.",
            )
        check_apart(path, named)


def resolve_eval_sets(config: stage_settings.DecontaminateConfig) -> dict[str, Path | Output]:
    """Return the files and folders of evaluation sets as inputs, so that they are part of the cache key.

    Raises InputError for a missing set, and for a column that is not in the first records of a file.
    """
    inputs: dict[str, Path | Output] = {}
    for index, entry in enumerate(config.against):
        check_preset(entry.preset)
        if (path := find_local(entry.set)) is not None:
            inputs[f"against {index}"] = path
            if path.is_file():
                next(read_eval_set(entry.set, problem_columns(entry)), None)
    return inputs


def check_hub(config: BaseModel) -> None:
    """Open every set on the hub that the stages of this configuration will read.

    Planning does not call this. Raises InputError for a missing set, and SetupError if the hub cannot be reached.
    """
    match config:
        case HubSource() as source:
            open_hub(source)
        case SeveralSources(sources=parts):
            for index, part in enumerate(parts):
                if isinstance(part, HubSource):
                    with source_named(part, f" (data.{index})"):
                        open_hub(part)
        case stage_settings.DecontaminateConfig(against=entries):
            for entry in entries:
                path = find_local(entry.set)
                if path is None or path.is_dir():
                    next(read_eval_set(entry.set, problem_columns(entry)), None)
        case _:
            pass


def resolve_stages(stages: Iterable[Stage]) -> None:
    """Check the files, models, programs and patterns that are named in the settings of stages.

    Raises ConfigError or InputError, whose message begins with the stage and the setting.
    """
    for stage in stages:
        check_settings(stage.config, stage.name)


def check_settings(settings: BaseModel, name: str) -> None:
    """Check the names in the settings of a section and its subsections. Raises the errors of `resolve_stages`."""
    for path, section in _sections(settings, name):
        _check_section(path, section)


def _sections(section: BaseModel, path: str) -> Iterator[tuple[str, BaseModel]]:
    yield path, section
    for name in type(section).model_fields:
        value = getattr(section, name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, BaseModel):
                yield from _sections(part, f"{path}.{name}")


def _check_section(path: str, section: BaseModel) -> None:
    for kind, setting in NAMED_FILES:
        if isinstance(section, kind) and (file := getattr(section, setting)) is not None:
            _check_named_file(f"{path}.{setting}", file)
    match section:
        case ServerEngineConfig() | ChatEngineConfig() if (
            name := section.api_key_env
        ) is not None and not os.environ.get(name):
            raise ConfigError(
                f"{path}.api_key_env: the environment variable {name} is not set.",
                f"Set it to the server's key (export {name}=...), or leave the setting out.",
            )
        case stage_settings.AskedModelConfig() if not isinstance(
            section.engine, ScriptedEngineConfig | ChatEngineConfig | RepliesEngineConfig
        ):
            if section.model is None:
                raise ConfigError(f"{path} names no model.", f"Name its folder: {path}.model.")
            folder = Path(section.model).expanduser()
            if not folder.is_dir():
                raise InputError(
                    f"{path}.model: {section.model} is not a folder with a checkpoint.",
                    "Download the model, and name it.",
                )
            label, is_loaded = f"{path}.model: {section.model}", isinstance(section.engine, VllmEngineConfig)
            check_checkpoint(folder, label, weights=is_loaded)
        case stage_settings.AuditedOpinionConfig():
            check_audit(section)
        case stage_settings.OpinionConfig(verifier=str(name)):
            fingerprint(name)
        case stage_settings.VetTestsConfig(python=str(python)) if shutil.which(python) is None:
            raise ConfigError(
                f"{path}.python: {python} is not a program.", "Name an interpreter, such as /usr/bin/python3."
            )
        case stage_settings.DedupConfig(embedder=str(embedder)) if (spelling := split_spelling(embedder)) is not None:
            load_object(*spelling, f"encoder {embedder!r}")
        case stage_settings.CleanConfig():
            Boilerplate(section)
        case _:
            pass


def _check_named_file(setting: str, name: str) -> None:
    try:
        check_file(Path(name).expanduser())
    except InputError as error:
        raise InputError(f"{setting}: {error.message}", error.hint) from None


def check_reasons(config: stage_settings.FlagConfig) -> None:
    """Raise ConfigError for a reason in `advise_only` that is not a reason of any flag."""
    known = {*BUILT_IN, *EARLIER_REASONS}
    has_own = any(name not in BUILT_IN and name not in GROUPS for name in config.detectors)
    for reason in config.advise_only:
        if reason in set(stage_settings.Fault):
            raise ConfigError(
                f"flag.advise_only: {reason} is a reason of the asked model, whose flags only advise by default.",
                "flag.model.blocks names the reasons that hold rows back.",
            )
        if reason not in known and not has_own:
            hint = did_you_mean(reason, known) or f"There are: {', '.join(sorted(known))}."
            raise ConfigError(f"flag.advise_only: no flag of curation has the reason {reason!r}.", hint)


def curation_stages(config: stage_settings.CurationConfig) -> list[Stage]:
    """Return the stages of curation in order.

    Raises InputError or ConfigError for names in the configuration that do not exist: files, columns, rules, verifiers
    and their options (`truegold.pipeline.curation.plan`).
    """
    stages, source, files = _source(config)
    check_training_rows_remain(files, config.decontaminate)
    may_hold_code = resolve_sources(source, files)
    stages.append(plan_stage("ingest", ingest, source, files, part_rows=config.parts.rows))
    is_list = isinstance(source, SeveralSources)
    priority: dict[str, Path | Output] = {"sources": Output("ingest", SOURCES_FILE)} if is_list else {}
    vets = config.vet_tests.enabled and not isinstance(config.data, DemoSource) and may_hold_code
    stages += stages_after_ingest(config, rows_of("ingest"), vets=vets, priority=priority)
    resolve_stages(stages)
    return stages


def stages_after_ingest(
    config: stage_settings.CurationConfig,
    rows: Mapping[str, Path | Output],
    *,
    vets: bool,
    priority: Mapping[str, Path | Output] = MappingProxyType({}),
) -> list[Stage]:
    """Return the stages that curate the rows of `ingest`, given as the input `rows`.

    `vets`: whether the tests of programs are vetted. `priority` is the input of deduplication that ranks sources.
    Raises the errors of `curation_stages` for evaluation sets and reasons.
    """
    stages = [plan_stage("clean", clean, config.clean, rows)]
    if config.decontaminate is not None:
        inputs = rows_of("clean") | resolve_eval_sets(config.decontaminate)
        stages.append(plan_stage("decontaminate", decontaminate, config.decontaminate, inputs))
    stages += [
        _deduplicate(config.dedup, {**rows_of(stages[-1].name), **priority}),
        plan_stage("verify_gold", verify_gold, config.verify_gold, rows_of("dedup")),
    ]
    if vets:
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
    settled |= {f"decisions {index}": _decisions_at(path) for index, path in enumerate(config.decisions)}
    if config.decisions:
        dropping = [stage.name for stage in stages if stage.name in DROPPING_STAGES]
        settled |= {f"dropped {name}": Output(name, DROPPED_FILE) for name in dropping}
    if config.flag.model is not None:
        inputs = rows_of(last) | evidence_of_rows(config)
        stages.append(plan_stage("suspect", suspect, stage_settings.SuspicionConfig(), inputs))
    stages.append(plan_stage("settle", settle, config.settle, settled))
    return stages


def _deduplicate(config: stage_settings.DedupConfig, inputs: dict[str, Path | Output]) -> Stage:
    """Plan deduplication. The cache key depends on the encoder: its folder is an input, and the code of a user's
    encoder is an extra version."""
    extra: dict[str, str] = {}
    if config.embedder is not None:
        if (spelling := split_spelling(config.embedder)) is not None:
            extra["embedder"] = source_digest(spelling[0], f"encoder {config.embedder!r}")
        elif Path(config.embedder).is_dir():
            inputs = {**inputs, "embedder": Path(config.embedder)}
    return plan_stage("dedup", dedup, config, inputs, extra=extra)


def _ask_model(config: stage_settings.WellPosedConfig) -> Stage:
    inputs: dict[str, Path | Output] = {**rows_of("flag"), "flags": Output("flag", "flags.parquet")}
    if config.model is not None:
        inputs["model"] = Path(config.model).expanduser()
    if config.known is not None:
        inputs["known"] = data_file(config.known)
    if isinstance(config.engine, RepliesEngineConfig):
        name_model(Path(config.engine.path), config.engine.model)
        inputs["replies"] = Path(config.engine.path)
    return plan_stage("well_posed", well_posed, config, inputs)


def flagging_stages(config: stage_settings.CurationConfig, samples: Sequence[SampleFile]) -> list[Stage]:
    """Return the stages that find suspicious rows, by verified golds, by rules, and by the answers of systems.

    `samples` has the files of answers. Raises the errors of `curation_stages`.
    """
    planned = {stage.name: stage for stage in curation_stages(config)}
    inputs = rows_of("ingest") | evidence_of_rows(config)
    for index, file in enumerate(samples):
        inputs[f"samples {index}"] = data_file(str(file.path))
    sources = tuple(stage_settings.SampleSource(system=file.system, step=file.step) for file in samples)
    asked = [planned["well_posed"]] if "well_posed" in planned else []
    gold_flags = {"gold_flags": Output("verify_gold", "flags.parquet")}
    return [
        planned["ingest"],
        replace(planned["verify_gold"], inputs=rows_of("ingest")),
        replace(planned["flag"], inputs=rows_of("ingest") | gold_flags),
        *asked,
        plan_stage("suspect", suspect, stage_settings.SuspicionConfig(files=sources), inputs),
    ]


def last_flagging(config: stage_settings.CurationConfig) -> str:
    """Return the name of the last flagging stage, whose table has all flags."""
    return "flag" if config.flag.model is None else "well_posed"


def evidence_of_rows(config: stage_settings.CurationConfig) -> dict[str, Path | Output]:
    """Return the inputs with evidence other than samples: `flags`, and `asked` if a model is asked."""
    inputs: dict[str, Path | Output] = {"flags": Output(last_flagging(config), "flags.parquet")}
    return inputs if config.flag.model is None else inputs | {"asked": Output("well_posed", ASKED_FILE)}


def rows_of(stage: str) -> dict[str, Path | Output]:
    """Return the output rows of a stage, as the input `rows` of another stage."""
    return {"rows": Output(stage, "rows.parquet")}


def data_file(path: str) -> Path:
    """Return the path of a file in the configuration. Raises InputError if it cannot be read."""
    file = at_hand(Path(path).expanduser())
    check_file(file)
    return file


def _data_path(path: str) -> Path:
    """Return the path of data, which is a file, a folder, or a pattern. Raises InputError if it cannot be read."""
    data = at_hand(Path(path).expanduser())
    check_data(data)
    return data


def _source(
    config: stage_settings.CurationConfig,
) -> tuple[list[Stage], FileSource | HubSource | SeveralSources, dict[str, Path | Output]]:
    """Return the stages that run before `ingest`, the source or sources that `ingest` reads, and the files of these."""
    data = config.data
    if isinstance(data, tuple):
        # Shares of the selection do not affect `ingest`. They are left out of its cache key.
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
        files["data"] = _data_path(data.path)
        if data.heldout_path:
            files["heldout"] = _data_path(data.heldout_path)
    return [], data, files


def _listed_files(sources: Sequence[ListedSource]) -> dict[str, Path | Output]:
    files: dict[str, Path | Output] = {}
    for index, source in enumerate(sources):
        if isinstance(source, ListedFile):
            with source_named(source, f" (data.{index})"):
                files[f"data {index}"] = _data_path(source.path)
                if source.heldout_path:
                    files[f"heldout {index}"] = _data_path(source.heldout_path)
    return files


def _decisions_at(path: str) -> Path:
    full = Path(path).expanduser()
    if not full.exists():
        shown = full.relative_to(Path.cwd()) if full.is_relative_to(Path.cwd()) else full
        raise InputError(f"decisions: {shown} does not exist.", "Name a file or a folder, or leave `decisions` out.")
    return full
