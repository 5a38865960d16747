"""The whole configuration of a run, read from YAML with every mistake reported at once.

A hand-written file is sparse; what a run used is written whole to `config.resolved.json`.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, Field, ValidationError, model_validator

from truegold.pipeline.config.base import StageConfig
from truegold.pipeline.config.engines import ChatConfig, EngineConfig, ServerEngineConfig, VllmEngineConfig
from truegold.pipeline.config.sources import DataConfig, DemoSource
from truegold.pipeline.config.stages import (
    CleanConfig,
    DedupConfig,
    ExportConfig,
    FlagConfig,
    ProfileConfig,
    SelectConfig,
    SettleConfig,
    VerifyGoldConfig,
    VetTestsConfig,
)
from truegold.train.config.grpo import GrpoConfig
from truegold.train.config.models import ModelConfig, SftConfig, TinyModel
from truegold.verifiers import ConfigError


class RunConfig(StageConfig):
    """Everything `truegold run` needs. Sections that are left out take their defaults; `model`, `sft` and `train` are
    skipped where they are not given."""

    name: str = Field(default="run", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    """The run's folder inside `runs_dir`."""
    runs_dir: str = "runs"
    data: DataConfig
    """Where the raw rows come from."""
    clean: CleanConfig = CleanConfig()
    dedup: DedupConfig = DedupConfig()
    verify_gold: VerifyGoldConfig = VerifyGoldConfig()
    vet_tests: VetTestsConfig = VetTestsConfig()
    flag: FlagConfig = FlagConfig()
    settle: SettleConfig = SettleConfig()
    decisions: str | None = None
    """A folder of reviewers' decisions (JSON Lines, one file a reviewer)."""
    model: ModelConfig | None = None
    """The model to profile and train."""
    chat: ChatConfig = ChatConfig()
    """How prompts are put to the model; sft, profile and train use it unless they set their own."""
    engine: EngineConfig = VllmEngineConfig()
    """Where completions come from; profile and train use it unless they set their own."""
    sft: SftConfig | None = None
    """SFT cold start."""
    profile: ProfileConfig = ProfileConfig()
    select: SelectConfig = SelectConfig()
    export: ExportConfig = ExportConfig()
    train: GrpoConfig | None = None
    """GRPO."""
    profile_after: bool = True
    """Profile the selected and the held-out rows again after training."""

    @model_validator(mode="after")
    def _parts_fit_together(self) -> RunConfig:
        if self.model is None and (self.sft or self.train):
            raise ValueError("sft and train need a model: set model.path")
        if isinstance(self.model, TinyModel) and self.sft is None:
            raise ValueError("a tiny model knows nothing before its cold start: set sft")
        if (
            isinstance(self.model, TinyModel)
            and not isinstance(self.data, DemoSource)
            and not (self.sft and self.sft.data)
        ):
            raise ValueError("a tiny model learns its vocabulary from SFT texts: set sft.data")
        train_engine = self.train.engine if self.train and "engine" in self.train.model_fields_set else self.engine
        if self.train and not isinstance(train_engine, VllmEngineConfig | ServerEngineConfig):
            raise ValueError("train needs an engine that takes weights: set train.engine.type to vllm or server")
        if self.train and isinstance(train_engine, ServerEngineConfig) and train_engine.weights_dir is None:
            raise ValueError(
                "train needs engine.weights_dir, a folder that the trainer and the server both see, or an engine of "
                "its own: set train.engine.type to vllm"
            )
        return self

    @property
    def run_dir(self) -> Path:
        return Path(self.runs_dir) / self.name


def load_config(path: Path, overrides: Sequence[str] = ()) -> RunConfig:
    """Read a YAML file, apply `a.b=value` overrides (values are YAML), and validate.

    Raises ConfigError with one line a mistake, naming the field and, for an unknown one, what was probably meant.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except IsADirectoryError as error:
        raise ConfigError(f"{path} is a directory.", "Give a YAML file; `truegold init` writes one.") from error
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: no such file.", "`truegold init` writes a starter configuration.") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text (byte {error.start}).") from error
    try:
        values = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(values, dict):
        raise ConfigError(f"{path} holds no settings.", "`truegold init` writes a starter configuration.")
    for override in overrides:
        _apply(values, override)
    return validate_config(values, str(path))


def validate_config(values: Any, where: str) -> RunConfig:
    """Validate settings already read; `where` names them in errors."""
    try:
        return RunConfig.model_validate(values)
    except ValidationError as error:
        lines = [_explain(problem) for problem in error.errors()]
        count = f"{len(lines)} mistake" + ("s" if len(lines) > 1 else "")
        raise ConfigError(f"{where}: {count}\n  " + "\n  ".join(lines)) from error


def _apply(values: dict[str, Any], override: str) -> None:
    path, separator, text = override.partition("=")
    if not separator:
        raise ConfigError(f"--set {override}: expected FIELD=VALUE.", "Such as --set data.limit=200.")
    *parents, last = path.split(".")
    place = values
    for parent in parents:
        child = place.setdefault(parent, {})
        if not isinstance(child, dict):
            raise ConfigError(f"--set {override}: {parent} is not a section.")
        place = child
    try:
        place[last] = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"--set {override}: the value is not valid YAML.") from error


def _explain(problem: Any) -> str:
    path = [str(part) for part in problem["loc"]]
    field = ".".join(path) or "(whole file)"
    if problem["type"] == "extra_forbidden":
        known = _fields_at(RunConfig, path[:-1])
        close = difflib.get_close_matches(path[-1], known, n=1)
        meant = f"; did you mean {close[0]}?" if close else f"; known: {', '.join(sorted(known))}"
        return f"{field}: unknown setting{meant if known else ''}"
    message = problem["msg"].removeprefix("Value error, ")
    given = "" if problem["type"] == "missing" else f" (given: {problem['input']!r:.80})"
    return f"{field}: {message}{given}" if path else f"{message}"


def _fields_at(model: type[BaseModel], path: Sequence[str]) -> list[str]:
    """The settings of the section at `path`; union tags inside a location are stepped over."""
    if not path:
        return list(model.model_fields)
    field = model.model_fields.get(path[0])
    if field is None:
        return []
    options = _models_in(field.annotation) + [m for meta in field.metadata for m in _models_in(meta)]
    rest = path[1:]
    for option in options:
        kind = option.model_fields.get("type")
        if rest and kind is not None and kind.default == rest[0]:
            return _fields_at(option, rest[1:])
    return _fields_at(options[0], rest) if options else []


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in getattr(annotation, "__args__", ()) for model in _models_in(part)]
