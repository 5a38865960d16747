"""Settings of data sources: files, Hugging Face datasets, and the demo."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, Tag, model_validator

from truegold.pipeline.config.base import LIST, ROUNDING, Filled, StageConfig, by_type

MAX_SOURCES = 64
"""The largest number of sources in one run."""


class ColumnSpec(StageConfig):
    """A column of the source, and the part of its value that is used."""

    column: Filled
    """The source's column; dots reach into structs and JSON objects (`reward_model.ground_truth`)."""
    extract: str | None = None
    """The part of the value: `after MARKER` (the text after the last MARKER), `boxed` (the last \\boxed{}), or
    `regex:PATTERN` (its first group)."""


class Columns(StageConfig):
    """The source's columns by role. The preset sets the columns that are not given."""

    keys_are_roles: ClassVar[bool] = True

    prompt: ColumnSpec | None = None
    """The problem."""
    gold: ColumnSpec | None = None
    """The reference answer."""
    solution: ColumnSpec | None = None
    """A worked solution."""
    id: ColumnSpec | None = None
    """The source's own identifier. It is kept in `meta.source_id`; truegold makes its own ids."""
    tests: ColumnSpec | None = None
    """Test cases, for code; goes into `verifier_args.tests`."""
    golds: ColumnSpec | None = None
    """A column with a list of accepted golds. If there is no gold column, the first one in the list is the gold."""
    verifier: ColumnSpec | None = None
    """A column that names each row's verifier. It may name your own code, which is then loaded."""
    verifier_args: ColumnSpec | None = None
    """A column with the arguments of each row's verifier, as an object or a JSON string."""
    other_golds: ColumnSpec | None = None
    """A column with further accepted golds: a list, a JSON list, or one answer."""
    split: ColumnSpec | None = None
    """A column with the split: `train`, or one of `test`, `validation`, `dev`, ... for held-out rows."""

    @model_validator(mode="before")
    @classmethod
    def _column_names_stand_for_specs(cls, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: {"column": spec} if isinstance(spec, str) else spec for key, spec in value.items()}
        return value


class SourceConfig(StageConfig):
    """The settings that every kind of data source has."""

    preset: Filled | None = None
    """The format of the source: gsm8k, math, leetcode, humaneval, mbpp, livecodebench, apps, codecontests, verl, trl,
    inspect, open-instruct, accepted, truegold. By default it is chosen by the names of the columns."""
    columns: Columns = Columns()
    """The columns by role, where the preset or the guess is wrong."""
    domain: str | None = None
    """The domain of the rows: math, code, choice, ...; by default the preset's."""
    verifier: Filled | None = None
    """The verifier: a built-in name, an entry point or an import string; by default the preset's."""
    verifier_args: dict[str, Any] = Field(default_factory=dict)
    """Arguments for the verifier, the same for every row."""
    license: str | None = None
    """The licence of rows that do not state their own, such as `mit` or `cc-by-4.0`."""
    origin: str | None = None
    """The origin of rows that do not state one: a data set or an address. By default the source's name."""
    last_turn_only: bool = False
    """Keep only the last user message, and drop system messages, earlier turns, pictures and tools. If false, rows with
    pictures or tools are rejected."""
    limit: int | None = Field(default=None, ge=1)
    """The largest number of rows to read; by default all."""
    heldout: float = Field(default=0.0, ge=0.0, lt=1.0)
    """The share of rows set aside for evaluation and never trained on. A hash of each row's content decides, so equal
    rows stay together. The share is approximate for a single source, and exact in a list of sources."""
    max_row_bytes: int = Field(default=8 * 2**20, ge=1)
    """Maximum length of a line in bytes. Longer lines are rejected without being read into memory."""


class FileSource(SourceConfig):
    """A JSON Lines, Parquet or CSV file, a folder of them, or a pattern for their names."""

    type: Literal["file"] = "file"
    path: Filled
    """The file, folder or pattern (`data/*.jsonl`), relative to the working directory."""
    format: Literal["auto", "jsonl", "parquet", "csv"] = "auto"
    """The format of the file; `auto` decides by its suffix."""
    heldout_path: Filled | None = None
    """A file of the same format whose rows are all held out for evaluation."""

    @property
    def label(self) -> str:
        """The name of the source in its rows."""
        return Path(self.path).name


class HubSource(SourceConfig):
    """A Hugging Face dataset: a hub name, or a folder written by `save_to_disk` or holding data files."""

    type: Literal["hf"] = "hf"
    name: Filled
    """A hub name (`openai/gsm8k`) or a local folder."""
    subset: Filled | None = None
    """The hub's configuration name."""
    split: Filled = "train"
    """The split to read."""
    revision: Filled | None = None
    """The hub revision; by default the newest."""

    @property
    def label(self) -> str:
        """The name of the source in its rows."""
        folder = Path(self.name).expanduser()
        return folder.resolve().name if folder.is_dir() else self.name


class DemoSource(StageConfig):
    """Generated school-maths word problems with planted and labelled defects."""

    type: Literal["demo"] = "demo"
    problems: int = Field(default=1600, ge=60)
    """The number of clean problems. Planted defects add two rows for every five clean problems."""
    heldout_problems: int = Field(default=192, ge=8)
    """The number of further problems without defects, which are held out for evaluation."""
    sft_examples: int = Field(default=24000, ge=64)
    """The number of texts for the SFT before RL."""
    seed: int = 0
    """The random seed of the problems and the defects."""


class Listing(StageConfig):
    """The settings that a source has only in a list of sources."""

    in_list = True

    source: Filled | None = None
    """The name in the column `source` of its rows; by default the file's or the hub's name."""
    quota: float | None = Field(default=None, ge=0, le=1)
    """The source's share of the selection, unless `select.quotas` has one."""
    weight: float | None = Field(default=None, gt=0)
    """The source's weight in the part of the selection without quotas; 1 if only other sources have a weight."""


class ListedFile(Listing, FileSource):
    """A file in a list of sources."""

    @property
    def label(self) -> str:
        """The name of the source in its rows."""
        return self.source or super().label


class ListedHub(Listing, HubSource):
    """A Hugging Face dataset in a list of sources."""

    @property
    def label(self) -> str:
        """The name of the source in its rows."""
        return self.source or super().label


ListedSource = Annotated[Annotated[ListedFile, Tag("file")] | Annotated[ListedHub, Tag("hf")], by_type("file")]


class SeveralSources(StageConfig):
    """A list of sources that become one table, the most trusted first."""

    sources: tuple[ListedSource, ...]
    """The sources by priority: of duplicate or conflicting rows, the row of the earlier source is kept."""


def heldout_label(label: str) -> str:
    """Return the source name of the rows of `heldout_path`."""
    return f"{label}/heldout"


def _check_sources(sources: tuple[ListedSource, ...]) -> tuple[ListedSource, ...]:
    """Raise ValueError if two sources have the same name or data, or their shares are impossible."""
    labels = [source.label for source in sources]
    for first, source in enumerate(sources):
        for index, other in enumerate(sources[first + 1 :], first + 1):
            if _what_is_read(source) == _what_is_read(other):
                raise ValueError(
                    f"data.{first} ({source.label!r}) and data.{index} ({other.label!r}) read the same rows in the "
                    "same way; leave one out"
                )
    for index, label in enumerate(labels):
        if (first := labels.index(label)) != index:
            raise ValueError(f"data.{first} and data.{index} are both called {label!r}; set source: NAME in one")
        if label in map(heldout_label, labels):
            raise ValueError(f"data.{index}: rows of a heldout_path are called {label!r}; set another source: NAME")
        if sources[index].quota is not None and sources[index].weight is not None:
            raise ValueError(f"data.{index} ({label!r}) has both a quota and a weight; leave one out")
    if (total := sum(source.quota or 0 for source in sources)) > 1 + ROUNDING:
        raise ValueError(f"the quotas of the sources add up to {total:g}, more than 1")
    return sources


def _what_is_read(source: ListedSource) -> tuple[Any, ...]:
    """Return the settings that determine the rows of a source."""
    if isinstance(source, ListedFile):
        origin: tuple[Any, ...] = (Path(source.path).expanduser().resolve(),)
    else:
        origin = (source.name, source.subset, source.split, source.revision)
    return (
        *origin,
        source.preset,
        source.columns,
        source.verifier,
        json.dumps(source.verifier_args, sort_keys=True, default=str),
    )


DataConfig = Annotated[
    Annotated[FileSource, Tag("file")]
    | Annotated[HubSource, Tag("hf")]
    | Annotated[DemoSource, Tag("demo")]
    | Annotated[
        tuple[ListedSource, ...], Field(min_length=1, max_length=MAX_SOURCES), AfterValidator(_check_sources), Tag(LIST)
    ],
    by_type("file"),
]


def source_quotas(data: DataConfig, quotas: Mapping[str, float]) -> dict[str, float]:
    """Return `select.quotas`, completed by quotas for sources with a `quota` or a `weight`.

    Example: if A has the quota .5, B the weight 3, and C neither, A gets .5 and B gets .375, since C counts with weight
    1. C itself gets no quota. Raises ValueError if a source has a weight and the quotas already sum to 1.
    """
    if not isinstance(data, tuple):
        return dict(quotas)
    by_name = {f"source:{source.label}": source for source in data}
    by_source = {name: source.quota for name, source in by_name.items() if source.quota is not None}
    shares = {**by_source, **quotas}
    left = max(0.0, 1 - sum(share for name, share in shares.items() if name.startswith("source:")))
    weights = {name: source.weight or 1.0 for name, source in by_name.items() if name not in shares}
    total = sum(weights.values())
    weighty = [by_name[name].label for name in weights if by_name[name].weight is not None]
    if weighty and left <= ROUNDING:
        raise ValueError(f"the quotas of the sources leave nothing for {weighty[0]!r}, which has a weight")
    weighted = {name: left * weights[name] / total for name in weights if by_name[name].weight is not None}
    return {**shares, **weighted}
