"""What a format is: how a row becomes a record, what a record must look like, and who reads it at the target.

ExportRow(row, flags=("yes_no_answer",)).golds          ("1/2", "0.5")
FORMATS["trl"].record(export_row, 0)                    {"prompt": [...], "solution": "\\\\boxed{72}", ...}
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict

from truegold.pipeline.sources.provenance import Provenance, carry, provenance_of_row
from truegold.pipeline.tables.rows import Row
from truegold.verifiers import gold_response, resolve
from truegold.verifiers.gold import all_golds

SPLIT_NAMES = {"train": "train", "heldout": "test"}
"""What trainers call truegold's splits."""


@dataclass(frozen=True)
class ExportRow:
    """A row to export, with what formats take from it."""

    row: Row
    flags: Sequence[str] = ()
    """The reasons of the flags that it carries."""
    system: str | None = None
    """A system message before its prompt."""

    @cached_property
    def arguments(self) -> dict[str, Any]:
        """The verifier's arguments."""
        arguments: dict[str, Any] = orjson.loads(self.row["verifier_args"] or "{}")
        return arguments

    @cached_property
    def provenance(self) -> Provenance:
        """Its licence and origin."""
        return provenance_of_row(self.row)

    @property
    def golds(self) -> tuple[str, ...]:
        """Every accepted gold, the first one first."""
        return all_golds(self.row["gold"], self.arguments)

    @property
    def messages(self) -> list[dict[str, str]]:
        """The prompt as a conversation."""
        system = [{"role": "system", "content": self.system}] if self.system else []
        return [*system, {"role": "user", "content": self.row["prompt"]}]

    @property
    def prompt(self) -> str | list[dict[str, str]]:
        """The prompt as a text, or as a conversation where there is a system message."""
        return self.messages if self.system else self.row["prompt"]

    @cached_property
    def perfect_response(self) -> str:
        """A response that earns the full score; empty where none can be made up."""
        return gold_response(resolve(self.row["verifier"]), self.row["gold"], self.row["solution"]) or ""

    @property
    def ground_truth(self) -> str:
        """What a trainer that knows one text as the truth gets: gold, or of a program the verifier's arguments."""
        return self.row["verifier_args"] if self.row["gold"] is None else self.row["gold"]

    @cached_property
    def carried(self) -> str:
        """The whole row but its prompt, as JSON text."""
        return carry(self.row, self.provenance, self.flags)

    @property
    def verifier_columns(self) -> dict[str, str]:
        """The columns that say who judges."""
        return {"verifier": self.row["verifier"], "verifier_args": self.row["verifier_args"]}

    @property
    def source_columns(self) -> dict[str, str | None]:
        """The columns that say whose the row is, and carry the rest of it."""
        return {**self.provenance._asdict(), "truegold": self.carried}


class Message(BaseModel):
    """One message of a conversation."""

    model_config = ConfigDict(strict=True)

    role: Literal["system", "user", "assistant", "tool"]
    content: str


class ExportRecord(BaseModel):
    """A record of a format. What a trainer hands on without reading it is allowed; a wrong type is not."""

    model_config = ConfigDict(strict=True, extra="allow")


@dataclass(frozen=True)
class Format:
    """One format."""

    name: str
    title: str
    """Who reads it, in a few words."""
    suffix: Literal["parquet", "jsonl"]
    record: Callable[[ExportRow, int], Mapping[str, Any]]
    """A function from a row and its number in the split to its record."""
    schema: type[ExportRecord]
    """What the target's documentation and code say that a record has."""
    package: str | None = None
    """The target's package, where there is one to install."""
    load: Callable[[Path], int] | None = None
    """The target's own reader of a split, which returns the number of rows and raises where a file does not fit."""
    companions: Mapping[str, str] = field(default_factory=dict)
    """Further files to write, such as the trainer's reward function, and the files in `companions/` with their text."""
    data_dir: str = ""
    """The folder of the splits within the exported one."""


@contextmanager
def dataset_of(path: Path) -> Iterator[Any]:
    """Load a split as most trainers do, with Hugging Face's `datasets`, for as long as the context lasts."""
    import datasets

    kind = "parquet" if path.suffix == ".parquet" else "json"
    with tempfile.TemporaryDirectory(prefix="truegold-") as cache:
        yield datasets.load_dataset(kind, data_files=str(path), split="train", cache_dir=cache)


def load_with_datasets(path: Path) -> int:
    """Load a split with `datasets` and return the number of its rows."""
    with dataset_of(path) as dataset:
        return len(dataset)
