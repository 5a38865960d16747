"""Where raw rows come from: files, hub sets, and the demo."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, Tag, model_validator

from truegold.pipeline.config.base import StageConfig, by_type


class ColumnSpec(StageConfig):
    """Where a value comes from: a column of the source, and what to take from it."""

    column: str
    """The source's column; dots reach into structs and JSON objects (`reward_model.ground_truth`)."""
    extract: str | None = None
    """What to take: `after MARKER` (the text after the last MARKER), `boxed` (the last \\boxed{}), `regex:PATTERN`
    (its first group)."""


class Columns(StageConfig):
    """Which column of the source is which; a preset fills what is not given."""

    prompt: ColumnSpec | None = None
    """The problem."""
    gold: ColumnSpec | None = None
    """The reference answer."""
    solution: ColumnSpec | None = None
    """A worked solution."""
    id: ColumnSpec | None = None
    """The source's own identifier; kept in `meta.source_id`, never used as truegold's identity."""
    tests: ColumnSpec | None = None
    """Test cases, for code; goes into `verifier_args.tests`."""
    verifier: ColumnSpec | None = None
    """A column that names each row's verifier."""
    verifier_args: ColumnSpec | None = None
    """A column holding each row's verifier arguments, as an object or a JSON string."""

    @model_validator(mode="before")
    @classmethod
    def _column_names_stand_for_specs(cls, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: {"column": spec} if isinstance(spec, str) else spec for key, spec in value.items()}
        return value


class SourceConfig(StageConfig):
    """What every kind of data source shares."""

    preset: str | None = None
    """The shape of the source: gsm8k, math, leetcode, humaneval, mbpp, livecodebench, apps, codecontests, verl, trl.
    Without one and without `columns`, the preset whose columns fit is taken."""
    columns: Columns = Columns()
    """Columns that are not to be taken from the preset or guessed."""
    domain: str | None = None
    """math, code, choice, ...; the preset's where not given."""
    verifier: str | None = None
    """A built-in name, an entry point or an import string; the preset's where not given."""
    verifier_args: dict[str, Any] = Field(default_factory=dict)
    """Arguments for the verifier, the same for every row."""
    limit: int | None = Field(default=None, ge=1)
    """Take only the first so many rows."""
    heldout: float = Field(default=0.0, ge=0.0, lt=1.0)
    """The share of rows set aside for evaluation, chosen by the hash of their content: never trained on."""
    max_row_bytes: int = Field(default=8 * 2**20, ge=1)
    """A longer line is rejected without being read into memory."""


class FileSource(SourceConfig):
    """A JSON Lines, Parquet or CSV file."""

    type: Literal["file"] = "file"
    path: str
    """The file, relative to the working directory."""
    format: Literal["auto", "jsonl", "parquet", "csv"] = "auto"
    """By the file's suffix where `auto`."""
    heldout_path: str | None = None
    """A file of the same shape whose rows are all set aside for evaluation."""


class HubSource(SourceConfig):
    """A Hugging Face dataset: a hub name, or a folder written by `save_to_disk` or holding data files."""

    type: Literal["hf"] = "hf"
    name: str
    """A hub name (`openai/gsm8k`) or a local folder."""
    subset: str | None = None
    """The hub's configuration name."""
    split: str = "train"
    """The split to read."""
    revision: str | None = None
    """The hub revision; the newest where not given."""


class DemoSource(StageConfig):
    """School-maths word problems made on the spot, with planted and labelled defects."""

    type: Literal["demo"] = "demo"
    problems: int = Field(default=1600, ge=60)
    """Clean problems; the planted defects come on top, at about two to five."""
    heldout_problems: int = Field(default=192, ge=8)
    """Further problems, without defects, that are set aside for evaluation."""
    sft_examples: int = Field(default=24000, ge=64)
    """Texts for the cold start."""
    seed: int = 0
    """It decides the problems and where the defects are planted."""


DataConfig = Annotated[
    Annotated[FileSource, Tag("file")] | Annotated[HubSource, Tag("hf")] | Annotated[DemoSource, Tag("demo")],
    by_type("file"),
]
