"""What all configuration shares: models are frozen and refuse unknown keys; the docstring under a field is its help."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Discriminator


class StageConfig(BaseModel):
    """The base of all configuration."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, protected_namespaces=())


def by_type(default: str) -> Discriminator:
    """Tell the members of a union apart by their `type`, which may be left out for the default one."""

    def kind_of(value: Any) -> str:
        kind = value.get("type", default) if isinstance(value, dict) else getattr(value, "type", default)
        return str(kind)

    return Discriminator(kind_of)
