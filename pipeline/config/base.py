"""What all configuration shares: models are frozen and refuse unknown keys; the docstring under a field is its help."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

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

from truegold.verifiers.running.batch import DEADLINE_S
from truegold.verifiers.running.deadlines import MAX_TIMEOUTS

ROUNDING = 1e-6
"""Shares such as three of .333333 count as adding up to 1."""
MOVED = "moved"
"""The type of the error that refuses an old spelling; its context has the `new` one."""


class StageConfig(BaseModel):
    """The base of all configuration."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, protected_namespaces=(), allow_inf_nan=False
    )

    moved: ClassVar[Mapping[str, str]] = {}
    """Settings that this section once had, with their new spelling, counted from this section; behind a slash, from the
    whole configuration."""

    @model_validator(mode="wrap")
    @classmethod
    def _refuse_what_cannot_be(cls, values: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        """Refuse what has moved, one error each, beside whatever else is wrong with the section; and any integer that
        no table holds."""
        huge = _find_huge_number(values)
        if huge is not None:
            raise ValueError(f"{huge} is a number of more than 64 bits, which no setting needs")
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


class VerdictConfig(StageConfig):
    """How long verdicts may take. A verifier that hangs costs its rows their score, and stops the run where it hangs
    often."""

    deadline_s: float = Field(default=DEADLINE_S, gt=0)
    """Seconds for one verdict; one that takes longer is given up, with no score and the reason `timeout`."""
    max_timeouts: float = Field(default=MAX_TIMEOUTS, gt=0, le=1)
    """The share of a verifier's verdicts that may be given up before the run stops; 1: any."""


class LaunchConfig(StageConfig):
    """The processes that a stage runs in: usually one on each GPU."""

    ranks: int = Field(default=1, ge=1)
    """How many, on this machine."""
    hostfile: str | None = None
    """DeepSpeed's list of machines (`worker-1 slots=8`); then its launcher starts the ranks over ssh. Every machine has
    to see the run's folder and the same installation under the same paths."""

    @model_validator(mode="after")
    def _is_one_or_the_other(self) -> LaunchConfig:
        if self.hostfile is not None and self.ranks != 1:
            raise ValueError("ranks are of this machine alone: the hostfile has the slots of each")
        return self


def moved_error(new: str) -> PydanticCustomError:
    """Return the error that refuses an old spelling and names the `new` one, counted from the section it was in."""
    return PydanticCustomError(MOVED, "moved to {new}", {"new": new})


def _as_init_error(error: ErrorDetails) -> InitErrorDetails:
    context = error.get("ctx", {})
    kind = moved_error(context["new"]) if error["type"] == MOVED else error["type"]
    return InitErrorDetails(type=kind, loc=error["loc"], input=error["input"], ctx=context)


def _find_huge_number(value: Any, path: str = "") -> str | None:
    """Return the path of an integer that can be neither written down as JSON nor kept in a table, if there is one."""
    if isinstance(value, int):
        return path if abs(value) >= 2**63 else None
    if isinstance(value, Mapping):
        parts = [(f"{path}.{key}" if path else str(key), part) for key, part in value.items()]
    elif isinstance(value, list | tuple):
        parts = [(f"{path}.{index}", part) for index, part in enumerate(value)]
    else:
        return None
    return next((name for name in (_find_huge_number(part, name) for name, part in parts) if name is not None), None)


LIST = "list"
"""The tag of a union's member that is a list."""


def by_type(default: str) -> Discriminator:
    """Tell the members of a union apart by their `type`, which may be left out for the default one."""

    def kind_of(value: Any) -> str:
        if isinstance(value, list | tuple):
            return LIST
        kind = value.get("type", default) if isinstance(value, dict) else getattr(value, "type", default)
        return str(kind)

    return Discriminator(kind_of)
