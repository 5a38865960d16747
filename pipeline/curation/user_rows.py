"""Takes what a Python user hands over: rows in any form as a file for the stages and back, columns and settings.

    write_rows_file([{"question": "1+1?", "answer": "2"}], folder)   ->  folder/rows.jsonl
    write_rows_file(polars_frame, folder)                            ->  folder/rows.parquet
    write_rows_file("train.csv", folder)                             ->  train.csv, where it lies
    keep_rows(polars_frame, [1, 3])                                  ->  a polars frame of its first and third row

Forms: frames of polars (lazy ones too) and pandas, `datasets.Dataset`, sequences of dicts, and paths of JSON Lines,
Parquet and CSV files. Rows are counted from 1, as everywhere; those of a path come back as a list of dicts.

Errors speak of it as the user does:

    curate(rows, flags={})                ->  curate has no argument 'flags'. Did you mean 'flag'? There are: clean, ...
    curate(rows, columns={"question": 1}) ->  columns: there is no role 'question'. There are: prompt, gold, ...
    curate(rows, dedup={"reword": False}) ->  curate: dedup.reword: unknown setting; did you mean reworded?
    deduplicate([{"titel": "x"}])         ->  rows has no prompt column ..., where a temporary file holds the rows
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pyarrow.parquet as pq
from pydantic import ValidationError

from truegold.pipeline.config.base import describe_mistakes
from truegold.pipeline.config.sources import Columns
from truegold.pipeline.config.stages import CurationConfig
from truegold.pipeline.problems import (
    BATCH_ROWS,
    ProblemColumns,
    guess_columns_with_options,
)
from truegold.pipeline.sources.columns import find_column, json_safe
from truegold.pipeline.sources.data_files import MAX_ROW_BYTES, check_file, open_file
from truegold.pipeline.sources.records import LOOK_AHEAD, Record, Unusable, first_line, sample_values
from truegold.verifiers import ConfigError, InputError, TruegoldError
from truegold.verifiers.user_code import did_you_mean

Rows = Any
"""A frame of polars or pandas, a `datasets.Dataset`, a sequence of dicts, or the path of a file."""

FORMS = "a polars or pandas frame, a datasets.Dataset, a list of dicts, or the path of a file"


def hold_rows(rows: Rows) -> Rows:
    """Return rows that can be read more than once: what can only be walked through once becomes a list.

    Raises InputError where `rows` are no rows.
    """
    if isinstance(rows, str | Path | pl.DataFrame | pl.LazyFrame) or _package(rows) == "pandas":
        return rows
    if isinstance(rows, Mapping) or not isinstance(rows, Iterable):
        hint = "Take one of its splits, such as rows['train']." if _package(rows) == "datasets" else None
        raise InputError(f"Rows are {FORMS}; this is {_describe(rows)}.", hint)
    if isinstance(rows, Sequence) or (_package(rows) == "datasets" and hasattr(rows, "__len__")):
        return rows
    return list(rows)


def write_rows_file(rows: Rows, folder: Path, name: str = "rows") -> Path:
    """Write rows to a file in `folder` and return its path; rows that are a file stay where they are.

    `rows` are as `hold_rows` returns them. Raises InputError where there are none or a file cannot be read.
    """
    if isinstance(rows, str | Path):
        path = Path(rows).expanduser()
        check_file(path)
        return path
    if isinstance(rows, pl.LazyFrame):
        rows = rows.collect()
    if isinstance(rows, pl.DataFrame):
        return _write_parquet(rows, folder / f"{name}.parquet")
    package = _package(rows)
    if package == "datasets":
        return _write_arrow(rows, folder / f"{name}.parquet")
    if package == "pandas":
        rows = rows.to_dict("records")
    return _write_json_lines(rows, folder / f"{name}.jsonl")


def keep_rows(rows: Rows, row_numbers: Sequence[int]) -> Rows:
    """Return the rows of these numbers (from 1, rising) in the form that `rows` has."""
    indices = [row_number - 1 for row_number in row_numbers]
    if isinstance(rows, str | Path):
        kept_numbers = set(row_numbers)
        records = open_file(Path(rows).expanduser(), "auto", MAX_ROW_BYTES).records
        return [
            dict(record.values)
            for record in records
            if isinstance(record, Record) and record.row_number in kept_numbers
        ]
    if isinstance(rows, pl.LazyFrame):
        return rows.collect()[indices]
    if isinstance(rows, pl.DataFrame):
        return rows[indices]
    if _package(rows) == "pandas":
        return rows.iloc[indices]
    if _package(rows) == "datasets":
        return rows.select(indices)
    return [rows[index] for index in indices]


def _write_parquet(frame: pl.DataFrame, path: Path) -> Path:
    if frame.is_empty():
        raise InputError("The frame has no rows.")
    try:
        frame.write_parquet(path)
    except pl.exceptions.PolarsError as error:
        raise InputError(f"The frame cannot be written: {first_line(error)}.", "Leave that column out.") from None
    return path


def _write_arrow(dataset: Any, path: Path) -> Path:
    """Write a `datasets.Dataset`, as it is indexed, without the progress bar of its `to_parquet`."""
    if len(dataset) == 0:
        raise InputError("The dataset has no rows.")
    batches = dataset.with_format("arrow").iter(BATCH_ROWS)
    first = next(batches)
    with pq.ParquetWriter(path, first.schema) as writer:
        writer.write_table(first)
        for batch in batches:
            writer.write_table(batch)
    return path


def _write_json_lines(rows: Iterable[Any], path: Path) -> Path:
    count = 0
    with path.open("wb") as file:
        for count, row in enumerate(rows, 1):
            if not isinstance(row, Mapping):
                raise InputError(f"Row {count} is {_describe(row)}, not a dict.", f"Rows are {FORMS}.")
            try:
                file.write(orjson.dumps(json_safe(row), option=orjson.OPT_APPEND_NEWLINE))
            except Unusable:
                # Half a character in one row is that row's mistake, which is read as any other file's.
                file.write(json.dumps(row, default=str, skipkeys=True).encode() + b"\n")
    if not count:
        raise InputError("There are no rows.")
    return path


def _package(rows: Rows) -> str:
    return type(rows).__module__.partition(".")[0]


def _describe(value: Any) -> str:
    text = repr(value)
    return f"{type(value).__name__} {''.join(islice(text, 40))}"


FILE_PREFIX = "data.file."
"""Settings of the data are arguments here: `columns`, not `data.file.columns`."""


def make_config(function: str, path: Path, source: Mapping[str, Any], sections: Mapping[str, Any]) -> CurationConfig:
    """Return the configuration of curation for a file; raises ConfigError with every mistake in it.

    `function` names what the user called; `source` has the settings of the file (`columns`, `verifier`, ...).
    """
    data = {"path": str(path), **source}
    try:
        return CurationConfig.model_validate({**sections, "data": data})
    except ValidationError as error:
        mistakes = [line.removeprefix(FILE_PREFIX) for line in describe_mistakes(error, CurationConfig)]
        raise ConfigError(f"{function}: {'; '.join(mistakes)}.") from error


def check_names(names: Iterable[str], known: Iterable[str], statement: str) -> None:
    """Raise ConfigError for a name that is not known; `statement` says of what there is none by that name."""
    known = list(known)
    for name in names:
        if name not in known:
            near = did_you_mean(name, known)
            raise ConfigError(f"{statement} {name!r}.", f"{near + ' ' if near else ''}There are: {', '.join(known)}.")


def merge_columns(columns: Mapping[str, Any] | None, **names: str | None) -> dict[str, Any]:
    """Return the columns that are named, by their role: in `columns`, or each by an argument of its own.

    Raises ConfigError for a role that does not exist or is named twice.
    """
    merged = dict(columns or {})
    check_names(merged, Columns.model_fields, "columns: there is no role")
    for role, name in names.items():
        if name is None:
            continue
        if role in merged:
            raise ConfigError(f"The column of {role} is named twice: by {role}= and in columns.", "Leave one out.")
        merged[role] = name
    return merged


def add_guessed_columns(path: Path, columns: Mapping[str, Any], *, options_apart: bool) -> dict[str, Any]:
    """Return the named columns and those that a run would ask for beside them, guessed as everywhere.

    A prompt that is named alone gets its gold, and its worked solution in any case: without it, rules that read the
    solution would be silent. With `options_apart` a question counts as a prompt although its answer options stand in a
    column of their own.
    """
    if options_apart and not columns:
        return dict(guess_columns_with_options(path) or {})
    if "prompt" not in columns:
        return dict(columns)
    source = open_file(path, "auto", MAX_ROW_BYTES)
    samples = sample_values(islice(source.records, LOOK_AHEAD))
    guessed: dict[str, Any] = {}
    if not columns.keys() & {"gold", "tests", "verifier"}:
        guessed["gold"] = ProblemColumns().resolve(samples, source.location).columns.gold
    if "solution" not in columns:
        taken = [name for name in columns.values() if isinstance(name, str)]
        guessed["solution"] = find_column("solution", samples, exclude=taken)
    return {**columns, **{role: name for role, name in guessed.items() if name is not None}}


@contextmanager
def named_in_errors(files: Mapping[Path, str]) -> Iterator[None]:
    """Call files in errors by what the user handed over: `against[0]`, not the temporary file that holds it."""
    try:
        yield
    except TruegoldError as error:
        for path, name in files.items():
            error.message = error.message.replace(str(path), name)
            error.hint = error.hint and error.hint.replace(str(path), name)
        error.args = (error.message,)
        raise
