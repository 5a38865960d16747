"""The base of all configuration: frozen pydantic models that refuse unknown keys.

The docstring under a field describes the setting in the reference. `describe_mistakes` translates pydantic's errors
about settings into one line for each mistake:

    {"dedup": {"reword": false}}     ->  dedup.reword: unknown setting; did you mean reworded?
    {"data": {"limit": 0}}           ->  data.limit: must be at least 1 (given: 0)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from truegold.verifiers.running.batch import DEADLINE_S, MAX_TIMEOUTS
from truegold.verifiers.user_code import close_match

PATTERN_SIGNS = frozenset("*?[")
"""Characters that make a path a pattern for several files."""
ROUNDING = 1e-6
"""The tolerance of a sum of shares: three shares of .333333 count as 1."""
MOVED = "moved"
"""The type of the error for an old spelling of a setting; its context has the `new` spelling."""
SECRET = "secret"
"""The type of an error about a setting that may hold a secret key. Its message does not show the value."""
TEXT_ALONE = "chat"
"""The engine type `chat`. It returns text without token ids, so only some sections accept it."""
LIST = "list"
"""The tag of the list in a union of types, such as one data source or a list of them."""
OFFERING = ("literal_error", "enum")
"""Pydantic's types of errors for a word outside the allowed values."""
USUAL_FIELDS = ("path", "prompt", "against", "target")
"""A text in place of a section is probably meant for one of these settings: `data: a.jsonl` for `data.path`."""
PLAIN_WORDS = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (r"^Value error, ", ""),
        (r"^Field required$", "is missing"),
        (r"^Extra inputs are not permitted$", "is unknown"),
        (r"^Input should be a finite number$", "must be a number"),
        (r"^Input should be a valid number\b.*", "must be a number"),
        (r"^Input should be a valid integer\b.*", "must be a whole number"),
        (r"^Input should be a valid boolean\b.*", "must be true or false"),
        (r"^Input should be a valid string\b.*", "must be a text"),
        (r"^Input should be a valid (?:tuple|list|array)\b.*", "must be a list, such as [a, b]"),
        (r"^Input should be a valid dictionary\b.*", "must be a section, with settings of its own"),
        (r"^Input should be (?:greater than or equal to|at least) ", "must be at least "),
        (r"^Input should be less than or equal to ", "must be at most "),
        (r"^Input should be greater than ", "must be more than "),
        (r"^Input should be ", "must be "),
        (r"^String should have at least 1 character$", "must not be empty"),
        (r"^\w+ should have at (least|most) (\d+) (\w+).*", r"must have at \1 \2 \3"),
        (r"^String should match pattern '\^\[a-z\]\{2,3\}\$'$", "must be a language's code, such as en"),
        (r"^String should match pattern '\S*/\S*'$", "must have the form OWNER/NAME"),
        (r"^String should match pattern '\^\[A-Za-z0-9\]\[\S+\]\*\$'$", "must be letters, digits and . _ - alone"),
        (r"^String should match pattern ", "must have the form "),
    )
)
"""Patterns of pydantic's messages, with truegold's words for them."""
PLAIN_TYPES = ("str", "int", "float", "bool")
"""Pydantic's names for the scalar members of a union."""


class StageConfig(BaseModel):
    """The base of all configuration."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, protected_namespaces=(), allow_inf_nan=False
    )

    moved: ClassVar[Mapping[str, str]] = {}
    """Maps old settings of this section to their new spelling. A new spelling is relative to the section; with a
    leading slash, it is relative to the whole configuration."""
    in_list: ClassVar[bool] = False
    """True for a section that is an element of a list."""

    @model_validator(mode="wrap")
    @classmethod
    def _refuse_what_cannot_be(cls, values: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        """Raise ValidationError for moved settings, together with all other mistakes in the section.

        Integers of more than 64 bits are refused too, since tables cannot hold them.
        """
        if (huge := _find_huge_number(values)) is not None:
            raise ValueError(f"{huge} is a number of more than 64 bits, which no setting needs")
        values = cls._fill_in_defaults(values)
        old_names = [name for name in cls.moved if isinstance(values, dict) and name in values]
        if not old_names:
            return validate(values)
        errors = [
            InitErrorDetails(type=moved_error(cls.moved[name]), loc=(name,), input=values[name]) for name in old_names
        ]
        try:
            validate({name: value for name, value in values.items() if name not in old_names})
        except ValidationError as error:
            errors += [_as_init_error(other) for other in error.errors()]
        raise ValidationError.from_exception_data(cls.__name__, errors)

    @classmethod
    def _fill_in_defaults(cls, values: Any) -> Any:
        """Return the settings, with this model's defaults filled into sections that are set in part.

        For example, SFT has its own default learning rate, and keeps it if `optimizer` sets only a dtype.
        """
        if not isinstance(values, dict):
            return values
        kept = {
            name: {**field.default.model_dump(include=field.default.model_fields_set), **values[name]}
            for name, field in cls.model_fields.items()
            if isinstance(field.default, StageConfig) and isinstance(values.get(name), dict)
        }
        return values | kept


class VerdictConfig(StageConfig):
    """The time limit of verdicts. A row whose verifier exceeds it gets no score; the run stops if this is frequent."""

    deadline_s: float = Field(default=DEADLINE_S, gt=0)
    """Maximum number of seconds for one verdict. A slower verifier is stopped, and the verdict has the reason
    `timeout` and no score."""
    max_timeouts: float = Field(default=MAX_TIMEOUTS, gt=0, le=1)
    """The largest share of a verifier's verdicts that may time out before the run stops; 1 allows all."""


class LaunchConfig(StageConfig):
    """The processes that a stage runs in: usually one on each GPU."""

    ranks: int = Field(default=1, ge=1)
    """The number of processes on this machine."""
    hostfile: str | None = None
    """DeepSpeed's list of machines (`worker-1 slots=8`). If given, DeepSpeed starts the processes over ssh. Every
    machine needs the run's folder and the same installation, under the same paths."""
    gpu_gb: float | None = Field(default=None, gt=0)
    """The memory of each GPU in GB, for the memory plan; needed if the GPUs are in other machines."""

    @model_validator(mode="after")
    def _is_one_or_the_other(self) -> LaunchConfig:
        if self.hostfile is not None and self.ranks != 1:
            raise ValueError("ranks are of this machine alone: the hostfile has the slots of each machine")
        return self


def moved_error(new: str) -> PydanticCustomError:
    """Return the error for an old spelling of a setting. new: the new spelling, as in `StageConfig.moved`."""
    return PydanticCustomError(MOVED, "moved to {new}", {"new": new})


def _as_init_error(error: ErrorDetails) -> InitErrorDetails:
    context = error.get("ctx", {})
    kind = moved_error(context["new"]) if error["type"] == MOVED else error["type"]
    return InitErrorDetails(type=kind, loc=error["loc"], input=error["input"], ctx=context)


def _find_huge_number(value: Any, path: str = "") -> str | None:
    """Return the path of an integer that is too large for JSON and tables, or None."""
    if isinstance(value, int):
        return path if abs(value) >= 2**63 else None
    if isinstance(value, Mapping):
        parts = [(f"{path}.{key}" if path else str(key), part) for key, part in value.items()]
    elif isinstance(value, list | tuple):
        parts = [(f"{path}.{index}", part) for index, part in enumerate(value)]
    else:
        return None
    return next((name for name in (_find_huge_number(part, name) for name, part in parts) if name is not None), None)


def by_type(default: str) -> Discriminator:
    """Return a discriminator that picks the member of a union by `type`; a missing type means the default."""

    def kind_of(value: Any) -> str:
        if isinstance(value, list | tuple):
            return LIST
        kind = value.get("type", default) if isinstance(value, dict) else getattr(value, "type", default)
        return str(kind)

    return Discriminator(kind_of)


def describe_mistakes(error: ValidationError, root: type[BaseModel]) -> list[str]:
    """Return one line for each mistake in settings that were validated as a `root`."""
    problems = _of_meant_members(error.errors(), root)
    return list(dict.fromkeys(_explain_mistake(problem, root) for problem in problems))


def _of_meant_members(problems: Sequence[Any], root: type[BaseModel]) -> list[Any]:
    """Drop the mistakes about members of a union that the user did not mean.

    A mistake inside a setting shows which type is meant, so that "not of that type" says nothing more. "Not a list" is
    dropped if the same setting is a word outside the allowed values.
    """
    paths = [_follow([str(part) for part in problem["loc"]], root)[0] for problem in problems]
    inside = {tuple(path[:end]) for path in paths for end in range(len(path))}
    listing_paths = {
        tuple(path)
        for path, problem in zip(paths, problems, strict=True)
        if problem["type"] in OFFERING and isinstance(problem["input"], str)
    }
    is_tagged = [len(path) < len(problem["loc"]) for path, problem in zip(paths, problems, strict=True)]
    return [
        problem
        for path, problem, tagged in zip(paths, problems, is_tagged, strict=True)
        if not (tagged and tuple(path) in inside) and (problem["type"] in OFFERING or tuple(path) not in listing_paths)
    ]


def _explain_mistake(problem: Any, root: type[BaseModel]) -> str:
    path = [str(part) for part in problem["loc"]]
    typed, _ = _follow(path, root)
    field = ".".join(typed) or "(whole file)"
    if problem["type"] == "extra_forbidden":
        sections = _follow(path[:-1], root)[1]
        known = list(sections[0].model_fields) if sections else []
        close = close_match(path[-1], known)
        elsewhere = [] if close or len(typed) > 2 else _sections_with(path[-1], root)
        meant = f"; known: {', '.join(sorted(known))}"
        if close or elsewhere:
            meant = f"; did you mean {close or ' or '.join(elsewhere)}?"
        return f"{field}: unknown setting{meant if known else ''}"
    if problem["type"] == MOVED:
        new = str(problem["ctx"]["new"])
        return f"{field}: moved to {new[1:] if new.startswith('/') else '.'.join([*typed[:-1], new])}"
    if problem["type"] == "union_tag_invalid" and problem["ctx"]["tag"] == TEXT_ALONE:
        return (
            f"{field}: an engine of the type chat gives text alone, and here token ids or log-probabilities are needed:"
            " set type vllm or server"
        )
    if problem["type"] == "union_tag_invalid":
        names = [name.strip(" '") for name in problem["ctx"]["expected_tags"].split(",")]
        kinds = [name for name in names if name != LIST]
        return f"{field}.type: {_offer(problem['ctx']['tag'], kinds)}"
    if problem["type"] in OFFERING and isinstance(problem["input"], str):
        words = re.findall(r"'([^']*)'", problem["msg"])
        return f"{field}: {_offer(problem['input'], words)}"
    is_shown = path and problem["type"] not in ("missing", SECRET) and path[-1:] != [LIST]
    message = plain_words(problem["msg"]) + (_shown(problem["input"]) if is_shown else "")
    return f"{field}: {message}{_right_form(problem, path, root)}" if path else message


def _right_form(problem: Any, path: Sequence[str], root: type[BaseModel]) -> str:
    """Return the form of a section for which a text was given, and of a path for which a list was; else ""."""
    value, typed = problem["input"], _follow(path, root)[0]
    if problem["type"] == "string_type" and isinstance(value, list) and typed[-1] == "path":
        return ". It names one file, a folder, or a pattern such as 'data/*.jsonl'; `data` may be a list of sources"
    if problem["type"] not in ("model_type", "dict_type") or not isinstance(value, str):
        return ""
    above, sections = _follow(path[:-1], root)[1], _follow(path, root)[1]
    fields = {name for section in sections for name in section.model_fields}
    is_type = value in map(_type_of, above)
    name = "type" if is_type else next((name for name in USUAL_FIELDS if name in fields), None)
    known = f"; known: {', '.join(sorted(fields))}" if fields else ""
    meant = f"{{{name}: {value}}}" if name else f"{{SETTING: VALUE}}{known}"
    return f". Write {typed[-1]}: {meant}" if not typed[-1].isdecimal() else f". Write {meant}"


def _sections_with(name: str, root: type[BaseModel]) -> list[str]:
    """Return the sections that have a setting of this name: `data.columns` for `columns`."""
    return [
        f"{section}.{name}"
        for section, field in root.model_fields.items()
        if any(name in model.model_fields for model in _models_in(field.annotation))
    ][:3]


def plain_words(message: str) -> str:
    """Return one of pydantic's messages in plain words: "must be at least 1"."""
    for pattern, words in PLAIN_WORDS:
        if pattern.search(message):
            return pattern.sub(words, message)
    return message


def _offer(word: str, names: Sequence[str]) -> str:
    near = close_match(word, names)
    meant = f"; did you mean {near}?" if near else "."
    return f"there is no {word!r}{meant} There are: {', '.join(names)}."


def _shown(value: Any) -> str:
    """Return the given value as YAML writes it."""
    written = {"None": "nothing", "True": "true", "False": "false"}
    return f" (given: {written.get(repr(value)) or f'{value!r:.80}'})"


def _follow(path: Sequence[str], root: type[BaseModel]) -> tuple[list[str], list[type[BaseModel]]]:
    """Return a path as a user types it, and the sections that it may refer to.

    pydantic adds the chosen members of unions to the path, such as `list`; users do not type these.
    """
    typed: list[str] = []
    sections: list[type[BaseModel]] = [root]
    may_choose = False
    for step in path:
        if step == LIST:
            sections = [section for section in sections if getattr(section, "in_list", False)]
            continue
        if _is_tag(step, sections):
            continue
        if may_choose and (members := [section for section in sections if _type_of(section) == step]):
            sections, may_choose = members, False
            continue
        typed.append(step)
        may_choose = True
        if step.isdecimal():
            continue
        sections = [
            model
            for section in sections
            if step in section.model_fields
            for model in _models_in(section.model_fields[step].annotation)
        ]
    return typed, sections


def _is_tag(step: str, sections: Sequence[type[BaseModel]]) -> bool:
    """Return True if a step of a path is pydantic's name for a member of a union: `tuple[...]`, `constrained-float`."""
    if any(mark in step for mark in "-[(") or any(section.__name__ == step for section in sections):
        return True
    is_field = any(step in section.model_fields for section in sections)
    return step in PLAIN_TYPES and not is_field


def _type_of(section: type[BaseModel]) -> Any:
    return section.model_fields["type"].default if "type" in section.model_fields else None


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in getattr(annotation, "__args__", ()) for model in _models_in(part)]


class RayConfig(StageConfig):
    """A Ray cluster, which processes each part of a table as a task on any node.

    All nodes need the same version of truegold, and the same paths of the run's folder, working directory and code.
    """

    address: str | None = None
    """The cluster's address, such as `head:6379`. By default the first that exists: RAY_ADDRESS, the cluster of this
    machine, or a new cluster for the run."""
    memory_gb: float | None = Field(default=None, gt=0)
    """The memory in GB that Ray reserves for each task; by default Ray reserves only CPUs."""


class SlurmConfig(StageConfig):
    """A Slurm cluster, which processes parts of tables in a job array.

    Every node needs the run's folder, the working directory and the Python environment under the same paths.
    """

    tasks: int = Field(default=64, ge=1, le=1_000)
    """The largest number of tasks in an array; the parts of tables are divided among them."""
    options: tuple[str, ...] = ()
    """More options for sbatch, such as `--partition=cpu`, `--mem=4G` or `--cpus-per-task=4`."""
    submissions: int = Field(default=3, ge=1)
    """The number of times that unfinished parts are submitted before the run stops."""


class RunnerConfig(StageConfig):
    """The machines that process parts of tables."""

    runner: Literal["local", "ray", "slurm", "wait"] = "local"
    """`local`: processes of this machine; `ray`: a Ray cluster; `slurm`: job arrays; `wait`: calls of `truegold part`,
    by hand or by another scheduler."""
    ray: RayConfig = RayConfig()
    """The cluster for `runner: ray`."""
    slurm: SlurmConfig = SlurmConfig()
    """The job arrays for `runner: slurm`."""
