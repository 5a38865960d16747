"""Checks what a Python user hands over, and speaks of it as the user does.

curate(rows, flags={})                ->  curate has no argument 'flags'. Did you mean 'flag'? There are: clean, ...
curate(rows, columns={"question": 1}) ->  columns: there is no role 'question'. There are: prompt, gold, ...
curate(rows, dedup={"reword": False}) ->  curate: dedup.reword: unknown setting; did you mean reworded?
deduplicate([{"titel": "x"}])         ->  rows has no prompt column ..., where a temporary file holds the rows
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from truegold.pipeline.config.base import describe_mistakes
from truegold.pipeline.config.sources import Columns
from truegold.pipeline.config.stages import CurationConfig
from truegold.pipeline.sources.column_names import find_column
from truegold.pipeline.sources.problem_batches import MAX_ROW_BYTES, ProblemColumns, guess_columns_with_options
from truegold.pipeline.sources.readers import open_file
from truegold.pipeline.sources.records import LOOK_AHEAD, sample_values
from truegold.verifiers import ConfigError, TruegoldError
from truegold.verifiers.user_code import did_you_mean

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
        guessed["gold"] = ProblemColumns().resolve(samples, source.location).gold
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
