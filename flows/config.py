"""Reads the whole configuration of a run from YAML, and reports all mistakes at once.

A hand-written file needs only a few settings. All settings of a run are written to `config.resolved.json`. The file is
YAML, with three differences:

                         here                   plain YAML
    off: [slow]          the setting `off`      the key false
    tolerance: 1e-3      a number               a text; 1.0e-3 is a number
    a setting twice      a mistake              the last value counts
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import Field, ValidationError, model_validator

from truegold.pipeline.config.base import PATTERN_SIGNS, ROUNDING, Filled, RunnerConfig, StageConfig
from truegold.pipeline.config.engines import (
    ChatConfig,
    EngineConfig,
    ScriptedEngineConfig,
    ServerEngineConfig,
    VllmEngineConfig,
)
from truegold.pipeline.config.mistakes import describe_mistakes
from truegold.pipeline.config.sources import DemoSource, source_quotas
from truegold.pipeline.config.stages import CurationConfig, ExportConfig, OpinionConfig, ProfileConfig, SelectConfig
from truegold.pipeline.curation.plan import check_settings
from truegold.pipeline.review.decisions import DECISIONS
from truegold.pipeline.sources.data_files import (
    check_file,
    data_files,
    form_by_suffix,
    is_named_as_data,
    refuse_other_files,
)
from truegold.pipeline.sources.places import place_url, working_folder
from truegold.pipeline.tables.losses import LossBounds
from truegold.synth.config import SynthConfig
from truegold.train.config.grpo import GrpoConfig
from truegold.train.config.models import ModelConfig, PushConfig, SftConfig, TinyModel
from truegold.verifiers import ConfigError
from truegold.verifiers.user_code import near_path

Section = TypeVar("Section", bound=StageConfig)

YAML = (".yaml", ".yml")
INIT = "`truegold init DATA` writes a configuration for a data file."
NO_SETTINGS = (
    "A configuration is a text in YAML; data are JSON Lines, Parquet or CSV (as which "
    "workbooks are saved), with a name that says so."
)
SETTING_LINE = re.compile(r"\s*(?:- +)*([\w.-]+): +(\S.*?)\s*$")
"""A line of YAML with a setting and its value."""
COLON = "A plain colon and a plain space stand between a setting and its value: data: {path: train.jsonl}"
YAML_ADVICE = (
    ("another document", "A file holds one configuration: remove the line of dashes between two."),
    ("scanning a quoted scalar", "A quote is opened and not closed."),
    ("^\\s*[\\w.-]+\uff1a", COLON),
    ("mapping values", "The settings of a section begin in the same column; a text with a colon is put in quotes."),
)
"""Patterns of a YAML error and its text, each with advice."""
QUOTES = "\"'"
"""The quotes of YAML."""
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
"""Control characters, which show that a file is not text."""


class RunConfig(CurationConfig):
    """Everything that `truegold run` needs.

    Sections that are left out have their defaults. Without `model`, `sft`, `synth` or `train`, a run skips that stage.
    """

    name: str = Field(default="run", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    """The run's folder inside `runs_dir`."""
    runs_dir: Filled = "runs"
    """The folder that holds the folders of runs; or a place, such as s3://bucket/runs, where they are published."""
    run: RunnerConfig = RunnerConfig()
    """The machines that work on the parts of stages."""
    model: ModelConfig | None = None
    """The model to profile and train."""
    chat: ChatConfig = ChatConfig()
    """The chat prompt; sft, profile and train use it unless they set their own."""
    engine: EngineConfig = VllmEngineConfig()
    """The engine that completes prompts; profile and train use it unless they set their own."""
    sft: SftConfig | None = None
    """The SFT before profile and RL (cold start)."""
    profile: ProfileConfig | None = ProfileConfig()
    """The measurement of pass rates. If null, training uses all rows and learns their pass rates as it goes."""
    select: SelectConfig = SelectConfig()
    """The selection of rows for training."""
    export: ExportConfig = ExportConfig()
    """The curated set and its card."""
    synth: SynthConfig | None = None
    """The synthesis of right completions (positives) for rows that hardly ever pass, before training."""
    distill: SftConfig | None = None
    """SFT on the positives of `synth`, before RL. Their tokens are weighted (`distill.weight`)."""
    train: GrpoConfig | None = None
    """The training with GRPO."""
    profile_after: bool = True
    """Whether the selected and the held-out rows are profiled again after training."""
    push_to_hub: PushConfig | None = None
    """The name on the Hugging Face hub under which the trained model is published: `owner/name`."""

    @model_validator(mode="after")
    def _parts_fit_together(self) -> RunConfig:
        if "://" not in self.runs_dir and PATTERN_SIGNS & {*self.runs_dir}:
            raise ValueError("runs_dir has one of * ? [, which stand for several files: name another folder")
        self._check_sources()
        self._check_models()
        if self.profile is not None and self.select.min_passes > self.profile.samples:
            raise ValueError(
                f"select.min_passes ({self.select.min_passes}) exceeds profile.samples ({self.profile.samples}): no "
                "row could be selected"
            )
        self._check_training_engine()
        return self

    def _check_sources(self) -> None:
        by_source = {name: share for name, share in self.selection.quotas.items() if name.startswith("source:")}
        sources = self.data if isinstance(self.data, tuple) else (self.data,)
        labels = [f"source:{source.label}" for source in sources if not isinstance(source, DemoSource)]
        if labels and (unknown := sorted(by_source.keys() - set(labels))):
            raise ValueError(f"select.quotas names {unknown[0]}; the sources are {', '.join(labels)}")
        if (total := sum(by_source.values())) > 1 + ROUNDING:
            raise ValueError(f"the shares of the sources in data and select.quotas add up to {total:g}, more than 1")

    def _check_models(self) -> None:
        """Raise ValueError for a stage without the model or the texts that it needs, or that excludes another stage."""
        if self.model is None and (self.sft or self.train):
            raise ValueError("sft and train need a model: set model.path")
        if self.synth and self.train and self.train.turns is not None:
            raise ValueError("synth makes single answers, and train.turns holds dialogues: leave one of them out")
        if self.synth and self.profile is None:
            raise ValueError("synth needs to know which rows hardly ever pass: leave `profile: null` out")
        if self.synth and self.model is None and not isinstance(self.engine, ScriptedEngineConfig):
            raise ValueError("synth needs a model: set model.path")
        if self.distill and (self.synth is None or self.distill.data):
            raise ValueError("distill is SFT on the positives of synth: set synth, and leave distill.data out")
        if isinstance(self.model, TinyModel):
            if self.sft is None:
                raise ValueError("a tiny model knows nothing before its cold start: set sft")
            if not self.sft.data and not isinstance(self.data, DemoSource):
                raise ValueError("a tiny model learns its vocabulary from SFT texts: set sft.data")

    def _check_training_engine(self) -> None:
        if self.train is None:
            return
        engine = self.train.engine if "engine" in self.train.model_fields_set else self.engine
        takes_weights = isinstance(engine, VllmEngineConfig | ServerEngineConfig)
        if not takes_weights:
            raise ValueError("train needs an engine that takes weights: set train.engine.type to vllm or server")
        if isinstance(engine, ServerEngineConfig) and engine.weights_dir is None:
            raise ValueError(
                "train needs engine.weights_dir, a folder that the trainer and the server both see, or an engine of "
                "its own: set train.engine.type to vllm"
            )

    @property
    def selection(self) -> SelectConfig:
        """The section `select`, with the quotas of the sources added to its own."""
        quotas = source_quotas(self.data, self.select.quotas)
        return self.select if quotas == self.select.quotas else self.select.model_copy(update={"quotas": quotas})

    def resolved(self) -> RunConfig:
        """Return the configuration with every section as its stage gets it.

        Settings that sections share (chat, engine, the size of a group) are filled in where a section leaves them out.
        So the configuration that is shown and written is the one that runs. Resolving it again changes nothing.
        """
        shared: dict[str, Any] = {"chat": self.chat, "engine": self.engine}
        if self.train is not None:
            shared["group_size"] = self.train.group_size
        further: dict[str, dict[str, Any]] = {
            "profile": {
                "rows_to_select": self.select.max_rows,
                "quotas": self.selection.quotas,
                "zero_share": self.select.zero_share,
            },
            "select": {"may_be_empty": self.synth is not None},
        }
        if self.profile is not None:
            further["synth"] = {"max_tokens": self.profile.max_tokens}
        sections: dict[str, StageConfig | None] = {
            "sft": self.sft,
            "profile": self.profile,
            "select": self.selection,
            "synth": self.synth,
            "distill": self.distill,
            "train": self.train,
        }
        changes: dict[str, StageConfig] = {}
        for name, section in sections.items():
            if section is None:
                continue
            settings = {**shared, **further.get(name, {})}
            unset = type(section).model_fields.keys() - section.model_fields_set
            filled = {field: value for field, value in settings.items() if field in unset}
            changes[name] = section.model_copy(update=filled)
        training = changes.get("train")
        if isinstance(training, GrpoConfig) and self.distill is not None:
            changes["train"] = _without_profile_guard(training)
        return self.model_copy(update={**changes, "decisions": self._decision_paths()})

    def _decision_paths(self) -> tuple[str, ...]:
        """Return the paths of reviewers' decisions: the configured ones, and the run's own folder of decisions."""
        paths = [Path(path).expanduser() for path in self.decisions]
        reviews = self.run_dir / DECISIONS
        if all(path.is_file() for path in paths) and reviews.is_dir():
            paths.append(reviews)
        return tuple(str(path.absolute()) for path in paths)

    @property
    def run_dir(self) -> Path:
        """The run's folder."""
        return working_folder(self.runs_dir) / self.name

    @property
    def loss_bounds(self) -> LossBounds:
        """The limits on the rows that the run may lose."""
        return LossBounds(self.max_rejected, self.max_held)


def _without_profile_guard(training: GrpoConfig) -> GrpoConfig:
    """Return the training without the guard `profile`, because `distill` changes the model after its profile."""
    off = tuple(dict.fromkeys((*training.guards.off, "profile")))
    return training.model_copy(update={"guards": training.guards.model_copy(update={"off": off})})


def load_config(path: Path, overrides: Sequence[str] = (), *, last_turn_only: bool = False) -> RunConfig:
    """Return the configuration in a YAML file, changed by overrides such as `data.limit=200`, whose values are YAML.

    `path` may also be a data file (`train.jsonl`), a folder or a pattern. All settings then have their defaults, and
    the run has the name of the file. `last_turn_only` sets this option for every source.

    Raises ConfigError with one line for each mistake, which names the field and suggests a known one.
    """
    url = place_url(path)
    is_data = is_named_as_data(path) if url is not None or path.is_file() else data_files(path) not in ([], [path])
    values = {"name": run_name(path), "data": {"path": url or str(path)}} if is_data else _read_yaml(path)
    _apply_overrides(values, overrides)
    if last_turn_only:
        data = values.get("data")
        for source in data if isinstance(data, list) else [data]:
            if isinstance(source, dict):
                source["last_turn_only"] = True
    return validate_config(values, str(path))


def run_name(path: Path) -> str:
    """Return the name of a run that is named after a file: its stem, with safe characters only."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).strip("-._") or "run"


def _read_yaml(path: Path, advice: str = INIT) -> dict[str, Any]:
    """Return the settings in a file. If it seems to be data, the error says how data are named."""
    try:
        return _read_settings(path, advice)
    except ConfigError:
        if path.suffix in (*YAML, ".json", ".toml") or not path.is_file():
            raise
        refuse_other_files(path)
        with path.open("rb") as file:
            has_rows = file.read(2) == b'{"'
        if has_rows:
            form_by_suffix(path)
        raise


def _read_settings(path: Path, advice: str) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except IsADirectoryError as error:
        raise ConfigError(f"{path} is a directory without data files.", advice) from error
    except FileNotFoundError as error:
        if path.suffix not in YAML:
            check_file(path)  # Raises a more precise error for some paths.
        raise ConfigError(f"{path}: no such file.", near_path(path) or advice) from error
    except PermissionError as error:
        raise ConfigError(
            f"{path} may not be read by this user.", f"Allow it: chmod u+r {shlex.quote(str(path))}"
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text (byte {error.start}).", NO_SETTINGS) from error
    if (control := CONTROL.search(text)) is not None:
        raise ConfigError(f"{path} is not a text: it has the character {control[0]!r}.", NO_SETTINGS)
    try:
        values = parse_settings(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}{_describe_yaml(error)}", _yaml_hint(text, error)) from error
    if values is None:
        raise ConfigError(f"{path} holds no settings.", advice)
    if not isinstance(values, dict):
        kind = {"list": "a list", "str": "a text"}.get(type(values).__name__, "a value")
        is_joined = isinstance(values, str) and re.match(r"\w+\s?[:\uff1a=]", values)
        raise ConfigError(f"{path} holds {kind}, not settings by name.", COLON if is_joined else advice)
    return values


def _describe_yaml(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    line = "" if mark is None else f", line {mark.line + 1}"
    problem = getattr(error, "problem", None) or " ".join(str(error).split())
    return f"{line}: this is not valid YAML: {problem}."


def _yaml_hint(text: str, error: yaml.YAMLError) -> str | None:
    lines = text.splitlines() if "another document" not in str(error) else ()
    for mark in (getattr(error, "problem_mark", None), getattr(error, "context_mark", None)):
        line = lines[mark.line] if mark is not None and mark.line < len(lines) else ""
        if "\t" in line:
            return "YAML is indented with spaces: replace the tab."
        if (setting := SETTING_LINE.match(line)) is not None and (advice := _quoting(*setting.groups())) is not None:
            return advice
    return next((advice for pattern, advice in YAML_ADVICE if re.search(pattern, f"{error}\n{text}", re.M)), None)


def _quoting(name: str, value: str) -> str | None:
    """Return the advice to put a text in quotes, if it has characters that mean something else in YAML."""
    quoted = f"{name}: {json.dumps(value, ensure_ascii=False)}"
    if value[0] in "{[":
        return f"A text that begins with {value[0]} is put in quotes ({quoted}); else a bracket is not closed."
    if value[0] in "*&!%@`|>" or (": " in value and value[0] not in QUOTES):
        return f"Put the text in quotes: {quoted}"
    return None


def section_config(
    command: str, out: Path, name: str, sections: Mapping[str, Mapping[str, Any]], overrides: Sequence[str]
) -> RunConfig:
    """Return the configuration of a command that needs only some sections of a run.

    sections: the settings of these sections; None means not set. overrides: values of `--set` for these sections. An
    override that names no section changes the first section. The run's folder is `out/name`.
    """
    values = {
        section: {field: value for field, value in settings.items() if value is not None}
        for section, settings in sections.items()
    }
    main, whole = next(iter(values)), []
    for override in overrides:
        field, separator, _ = override.partition("=")
        if not separator or ("." in field and field.partition(".")[0] not in values):
            spellings = " or ".join(f"{section}.FIELD=VALUE" for section in values)
            raise ConfigError(f"--set {override}: expected {spellings}.", "Such as --set data.limit=200.")
        whole.append(override if "." in field else f"{main}.{override}")
    _apply_overrides(values, whole)
    return validate_config({"name": name, "runs_dir": str(out), **values}, command)


def read_opinion(who: str) -> OpinionConfig:
    """Return the second opinion that a command line names: a verifier, or a YAML file with settings."""
    values: Any = who
    if who.endswith(YAML):
        values = _read_yaml(Path(who), "The file has the settings of a second opinion, such as verifier: math_verify.")
    opinion = _validate(OpinionConfig, values, who)
    check_settings(opinion, who)
    return opinion


def validate_config(values: Any, label: str) -> RunConfig:
    """Return the validated configuration. label: its name in errors."""
    return _validate(RunConfig, values, label)


def _validate(root: type[Section], values: Any, label: str) -> Section:
    try:
        return root.model_validate(values)
    except ValidationError as error:
        lines = describe_mistakes(error, root)
        count = f"{len(lines)} mistake" + ("s" if len(lines) > 1 else "")
        raise ConfigError(f"{label}: {count}\n  " + "\n  ".join(lines)) from error


def _apply_overrides(values: dict[str, Any], overrides: Sequence[str]) -> None:
    """Set values in place, one after the other.

    `train.engine.dtype=float32` changes only the dtype: the other settings of `train.engine` come from the run's
    `engine`, unless the file itself sets `train.engine`. The same holds for `chat`, and for other sections.
    """
    begun = set()
    for override in overrides:
        match override.partition("=")[0].split("."):
            case [name, "chat" | "engine" as shared, _, *_] if shared not in (values.get(name) or {}):
                begun.add((name, shared))
        _apply_override(values, override)
    for name, shared in begun:
        changed, common = values[name][shared], values.get(shared)
        if not isinstance(common, dict):
            continue
        kind = common.get("type", "vllm")
        if changed.get("type", kind) == kind:
            values[name][shared] = {**common, **changed}


def _apply_override(values: dict[str, Any], override: str) -> None:
    """Set one value in place: `data.0.limit=200` sets `limit` of the first entry of the list `data`."""
    path, separator, text = override.partition("=")
    if not separator or not path:
        raise ConfigError(f"--set {override}: expected FIELD=VALUE.", "Such as --set data.limit=200.")
    *parents, last = path.split(".")
    section: Any = values
    for parent in parents:
        if isinstance(section, dict):
            if section.get(parent) is None:
                section[parent] = {}
            child = section[parent]
        else:
            child = section[int(parent)] if parent.isdecimal() and int(parent) < len(section) else None
        if not isinstance(child, dict | list):
            raise ConfigError(f"--set {override}: {parent} is not a section.")
        section = child
    if isinstance(section, list):
        raise ConfigError(f"--set {override}: {'.'.join(parents)} is a list.", "Such as --set data.0.limit=200.")
    try:
        section[last] = parse_settings(text)
    except yaml.YAMLError as error:
        quoted = shlex.quote(f"{path}={json.dumps(text, ensure_ascii=False)}")
        raise ConfigError(
            f"--set {override}: the value is not valid YAML.", f"If it is a text, put it in quotes: --set {quoted}"
        ) from error


class _SettingsLoader(yaml.SafeLoader):
    """The safe loader of YAML, except that keys are always texts and may occur only once."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return a section with its keys as they are written. Raises YAMLError for a key that occurs twice."""
        written: set[str] = set()
        for key_node, _ in node.value:
            problem = None
            if not isinstance(key_node, yaml.ScalarNode):
                problem = "a setting's name is a text"
            elif key_node.value in written:
                problem = f"{key_node.value!r} is set twice in one section"
            if problem is not None:
                raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
            written.add(key_node.value)
        self.flatten_mapping(node)  # Settings that `<<` merges come first, so that the section's own ones win.
        return {key_node.value: self.construct_object(value_node, deep=True) for key_node, value_node in node.value}


_SettingsLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)[eE][-+]?\d+"), list("-+0123456789.")
)


def parse_settings(text: str) -> Any:
    """Return the value of a YAML text. Raises YAMLError, whose text names the line."""
    # The loader is a safe one: it makes only plain values.
    return yaml.load(text, Loader=_SettingsLoader)
