"""Reads the four columns by which any row says how it is judged and what it is for.

    {"prompt": "pi to 2 decimals", "gold": "3.14", "verifier": "numeric", "verifier_args": {"rel_tol": 0.01}}
    {"prompt": "What is 1/2?", "gold": "1/2", "other_golds": ["0.5", "50 %"], "split": "test"}

The first is judged by `numeric` with that tolerance. The second has three accepted golds and is held out. A row that
names a verifier that does not exist, or options that its verifier does not have, is a reject with what was meant.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

import orjson

from truegold.pipeline.config.sources import Columns, ColumnSpec, SourceConfig
from truegold.pipeline.sources.columns import MISSING, Column, Samples, distinct, json_safe, listed_golds, text_of
from truegold.pipeline.sources.jsonl import parse_structure
from truegold.pipeline.sources.records import Unusable
from truegold.pipeline.tables.rows import dump_json
from truegold.verifiers import ConfigError, judges_solutions, resolve
from truegold.verifiers.gold import OTHER_GOLDS
from truegold.verifiers.registry import BUILT_IN, available, find_option_mistakes
from truegold.verifiers.user_code import did_you_mean, split_spelling

ROW_COLUMNS = ("verifier", "verifier_args", OTHER_GOLDS, "split")
"""The names under which every file may have these columns."""
SPLIT_WORDS = {
    **dict.fromkeys(("train", "training", "训练", "训练集"), "train"),
    **dict.fromkeys(("test", "testing", "validation", "valid", "val", "dev", "development"), "heldout"),
    **dict.fromkeys(("eval", "evaluation", "heldout", "holdout", "测试", "测试集", "验证", "验证集"), "heldout"),
}
"""What a column `split` may say, in lower case and without blanks, hyphens and underscores; `test_sft` is a test."""
DOMAINS = {"code": "code", "choice": "choice"}
"""The domain of rows that name one of these verifiers."""
MEASURES = ("format", "length")
"""Verifiers that look at how a response is written, and at no gold."""
CODE_SETTINGS = ("reward", "stop", "limits")
"""The options of programs that are checked here. The rest of their arguments are tests, which `vet_tests` looks at."""
CACHED_BYTES = 1000
"""Longer arguments are not kept to know them again; they hardly ever are the same in two rows."""


def with_row_columns(columns: Columns, config: SourceConfig, used: frozenset[str]) -> Columns:
    """Return the columns of a layout and these four, save those that it takes as something else or has elsewhere.

    `used` are columns that the layout reads in its own way. A verifier of the configuration leaves the column alone.
    """
    taken = {spec.column.split(".")[0] for _, spec in columns if spec is not None} | used
    free = [name for name in ROW_COLUMNS if getattr(columns, name) is None and name not in taken]
    if config.verifier is not None and "verifier" in free:
        free.remove("verifier")
    return columns.model_copy(update={name: ColumnSpec(column=name) for name in free})


def read_verifier(value: Any, column: str, trusted: bool) -> str | None:
    """Return the verifier that a row names, None where it names none; raise Unusable where there is no such verifier.

    trusted: whether rows may name code, which is loaded then: only where the configuration allows it.
    """
    if _is_empty(value):
        return None
    if not isinstance(value, str):
        raise Unusable("unknown_verifier", f"column {column!r} holds {type(value).__name__} {value!r:.60}, not a name")
    name = value.strip()
    if (mistake := _mistake_in(name, trusted)) is not None:
        raise Unusable("unknown_verifier", mistake)
    return name


def needs_gold(verifier: str, arguments: Mapping[str, Any]) -> bool:
    """Say whether a row of this verifier and these arguments cannot be judged without gold."""
    if verifier in MEASURES or (verifier == "regex" and arguments.get("pattern") is not None):
        return False
    return not judges_solutions(resolve(verifier))


def judged_without_gold(config: SourceConfig, samples: Samples) -> list[bool]:
    """Say of each sample record whether the verifier that it names judges without gold; nothing where none names any.

    A verifier of the configuration is that of every record. One of the user's own may judge by
    other columns than gold.
    """
    trusted = config.verifier is not None or config.columns.verifier is not None
    spec, arguments_spec = config.columns.verifier, config.columns.verifier_args
    column = Column(spec.column if spec is not None else "verifier")
    arguments_column = Column(arguments_spec.column if arguments_spec is not None else "verifier_args")
    if config.verifier is None and all(_is_empty(column(values)) for values in samples):
        return []

    def judges_without(values: Mapping[str, Any]) -> bool:
        try:
            verifier = config.verifier or read_verifier(column(values), column.name, trusted)
            arguments = {**read_arguments(arguments_column(values), arguments_column.name), **config.verifier_args}
        except Unusable:
            return False
        if verifier is None:
            return False
        return (trusted and verifier not in BUILT_IN) or not needs_gold(verifier, arguments)

    return [judges_without(values) for values in samples]


def read_arguments(value: Any, column: str) -> dict[str, Any]:
    """Return the arguments that a row has for its verifier: an object, or the JSON text of one."""
    structure = parse_structure(value)
    if _is_empty(structure) or structure == "null":
        return {}
    if not isinstance(structure, Mapping):
        raise Unusable("invalid_verifier_args", f"column {column!r} holds no JSON object")
    # A table of structs has nulls for the keys of other rows.
    arguments = {name: option for name, option in structure.items() if option is not None}
    if OTHER_GOLDS in arguments:
        arguments[OTHER_GOLDS] = listed_golds(arguments[OTHER_GOLDS], f"{column}.{OTHER_GOLDS}")
    return arguments


def with_golds(arguments: Mapping[str, Any], golds: list[str]) -> tuple[str | None, dict[str, Any]]:
    """Return a row's gold, the first one, and its arguments with all other accepted golds."""
    accepted = distinct([*golds, *arguments.get(OTHER_GOLDS, ())])
    rest = {name: option for name, option in arguments.items() if name != OTHER_GOLDS}
    return next(iter(accepted), None), {**rest, OTHER_GOLDS: accepted[1:]} if accepted[1:] else rest


def check_arguments(verifier: str, arguments: Mapping[str, Any], complete: bool) -> None:
    """Raise Unusable for options that the verifier does not have, that mean nothing, or that it needs and lacks."""
    options = {name: option for name, option in arguments.items() if name != OTHER_GOLDS}
    if verifier == "code":
        options = {name: option for name, option in options.items() if name in CODE_SETTINGS}
    text = dump_json(json_safe(options))
    find = _option_mistakes if len(text) <= CACHED_BYTES else _option_mistakes.__wrapped__
    if mistakes := find(verifier, text, complete):
        raise Unusable("invalid_verifier_args", mistakes)


def read_split(value: Any) -> str | None:
    """Return train or heldout, as a row says, and train where it says nothing; None for what is no known word."""
    if _is_empty(value):
        return "train"
    if not isinstance(value, str):
        return None
    words = _JOINTS.split(value.strip().lower())
    return SPLIT_WORDS.get("".join(words)) or SPLIT_WORDS.get(words[0])


_JOINTS = re.compile(r"[\s_.-]+")


def _is_empty(value: Any) -> bool:
    return value is MISSING or value is None or (not isinstance(value, Mapping | list) and text_of(value) is None)


@cache
def _known() -> tuple[str, ...]:
    return tuple(available())


@lru_cache(maxsize=1024)
def _mistake_in(name: str, trusted: bool) -> str | None:
    """Return why there is no such verifier, None where there is; rows repeat a few names."""
    if name in _known():
        return None
    if split_spelling(name) is None:
        near = did_you_mean(name[:CACHED_BYTES], _known())
        return f"there is no verifier {name!r:.60}; known are {', '.join(_known())}{f'. {near}' if near else ''}"
    if not trusted:
        return f"{name!r:.60} names code, which is not loaded because a row says so; columns.verifier allows it"
    try:
        resolve(name)
    except ConfigError as error:
        return str(error).rstrip(".")
    return None


@lru_cache(maxsize=1024)
def _option_mistakes(verifier: str, options: str, complete: bool) -> str:
    return " ".join(find_option_mistakes(verifier, orjson.loads(options), complete=complete)).rstrip(".")
