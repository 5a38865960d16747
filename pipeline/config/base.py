"""The base of all configuration: frozen pydantic models that refuse unknown keys.

The docstring under a field describes the setting in the reference. `mistakes.py` explains what pydantic refuses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
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
NUMBERS = (int, float, int | None, float | None)
"""The types of settings that are numbers."""


def _check_filled(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    return text


Filled = Annotated[str, AfterValidator(_check_filled)]
"""A name or a path, which is not empty: an empty path would mean the working directory."""


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
    keys_are_roles: ClassVar[bool] = False
    """True for a section that maps roles to the user's columns."""

    @model_validator(mode="wrap")
    @classmethod
    def _refuse_what_cannot_be(cls, values: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        """Raise ValidationError for moved settings, together with all other mistakes in the section.

        Integers of more than 64 bits are refused too, since tables cannot hold them.
        """
        if (huge := _find_huge_number(values)) is not None:
            raise ValueError(f"{huge} is a number of more than 64 bits, which no setting needs")
        values = cls._without_numbers_from_words(cls._fill_in_defaults(values))
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

    @classmethod
    def _without_numbers_from_words(cls, values: Any) -> Any:
        """Return the settings with true and false as texts where a number belongs, since pydantic reads true as 1."""
        if not isinstance(values, dict):
            return values
        numbers = {name for name, field in cls.model_fields.items() if field.annotation in NUMBERS}
        wrong = {name: str(values[name]).lower() for name in numbers & values.keys() if isinstance(values[name], bool)}
        return values | wrong


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
    hostfile: Filled | None = None
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


class RayConfig(StageConfig):
    """A Ray cluster, which processes each part of a table as a task on any node.

    All nodes need the same version of truegold, and the same paths of the run's folder, working directory and code.
    """

    address: Filled | None = None
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
