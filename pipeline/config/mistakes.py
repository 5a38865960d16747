"""Explains mistakes in settings: translates pydantic's errors into one line for each mistake.

{"dedup": {"reword": false}}     ->  dedup.reword: unknown setting; did you mean reworded?
{"data": {"limit": 0}}           ->  data.limit: must be at least 1 (given: 0)
{"train": {"num_generations": 8}} -> train.num_generations: unknown setting; did you mean train.group_size?
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from datetime import date
from importlib.resources import files
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from truegold.pipeline.config.base import LIST, MOVED, SECRET, TEXT_ALONE
from truegold.verifiers.user_code import close_match

OFFERING = ("literal_error", "enum")
"""Pydantic's types of errors for a word outside the allowed values."""
USUAL_FIELDS = ("path", "prompt", "against", "target")
"""A text in place of a section is probably meant for one of these settings: `data: a.jsonl` for `data.path`."""
NO_SECTION = ("model_type", "dict_type")
"""The types of errors for a value that is not a section."""
SETTINGS_SHOWN = 8
"""The largest number of settings that are proposed for an unknown one."""
OTHER_NAMES: Mapping[str, Mapping[str, Any]] = tomllib.loads(
    files("truegold.pipeline.config").joinpath("other_names.toml").read_text("utf-8")
)
"""The names of other trainers: `settings`, with their names for each of ours; and `none`, with what replaces them."""
NO_SHARES = {"lr": "Usual learning rates are about 1e-6 in RL and 1e-5 in SFT", "betas": "", "discount": ""}
"""Settings of at most 1 that are not shares, with advice for a larger value."""
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


def describe_mistakes(error: ValidationError, root: type[BaseModel]) -> list[str]:
    """Return one line for each mistake in settings that were validated as a `root`."""
    problems = _of_meant_members(error.errors(), root)
    return list(dict.fromkeys(_explain_mistake(problem, root) for problem in problems))


def _of_meant_members(problems: Sequence[Any], root: type[BaseModel]) -> list[Any]:
    """Drop the mistakes about members of a union that the user did not mean.

    A mistake inside a setting shows which type is meant, so that "not of that type" says nothing more. Nor does it if
    the same setting has the right type and a wrong value, such as a number below the limit.
    """
    paths = [tuple(_follow([str(part) for part in problem["loc"]], root)[0]) for problem in problems]
    inside = {path[:end] for path in paths for end in range(len(path))}
    valued = {path for path, problem in zip(paths, problems, strict=True) if not problem["type"].endswith("_type")}
    return [
        problem
        for path, problem in zip(paths, problems, strict=True)
        if not ((len(path) < len(problem["loc"]) or problem["type"] == "too_short") and path in inside)
        and not (path in valued and problem["type"].endswith("_type"))
    ]


def _explain_mistake(problem: Any, root: type[BaseModel]) -> str:
    path = [str(part) for part in problem["loc"]]
    typed, _ = _follow(path, root)
    field = ".".join(typed) or "(whole file)"
    if problem["type"] == "extra_forbidden":
        return f"{field}: unknown setting{_explain_unknown(path, typed, root, problem['input'])}"
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
    is_whole = problem["type"] == "value_error" and isinstance(problem["input"], dict)
    message = plain_words(problem["msg"]) + (_shown(problem["input"]) if is_shown and not is_whole else "")
    return f"{field}: {message}{_right_form(problem, path, root)}" if path else message


def _explain_unknown(path: Sequence[str], typed: Sequence[str], root: type[BaseModel], value: Any) -> str:
    """Return where an unknown setting belongs, or the settings that are known in its place."""
    name, sections = typed[-1], _follow(path[:-1], root)[1][:1]
    fields = [field for section in sections for field in section.model_fields]
    known = f"; known: {', '.join(sorted(fields))}" if fields else ""
    if re.search("[:\uff1a\xa0]", name):
        return "; a plain colon and a plain space belong between a setting and its value"
    kinds = [section for section in _follow(typed[:-1], root)[1] if name in section.model_fields]
    if kinds and all(getattr(kind, "in_list", False) for kind in kinds):
        return f" outside a list of sources; write {typed[-2]}: [{{..., {name}: ...}}]"
    if kinds and sections and (given_type := _type_of(sections[0])) is not None:
        others = dict.fromkeys(str(_type_of(kind)) for kind in kinds if not getattr(kind, "in_list", False))
        return f" of type {given_type}; it belongs to type {' and '.join(others)}{known}"
    above, close = typed[:-1], close_match(name, fields)
    translated = [setting for leaf in _leaves(name, value) for setting in _translate(leaf, above, root)]
    roles = [setting.rpartition(".")[2] for setting in translated if ".columns." in setting]
    if sections and getattr(sections[0], "keys_are_roles", False) and (roles or close is None):
        column = value.get("column", "COLUMN") if isinstance(value, dict) else value
        return f"; the keys are roles{f': {roles[0]}: {_written(column)}' if roles else known}"
    meant = [setting for setting in translated if setting.split(".")[: len(above)] == above]
    named = _settings_named(name, sections, above)
    if isinstance(value, dict):
        meant = named or ([close] if close is not None else meant)
    meant = meant or named
    if not meant and close is not None:
        meant = [close]
    if not meant and (advice := OTHER_NAMES["none"].get(name)) is not None:
        return f"; {advice}"
    if not meant and len(typed) == 2:
        meant = _settings_named(name, [root], [], levels=1)
    meant = meant or translated or (_settings_called(name, above[:1], root) if len(above) == 2 else [])
    return f"; did you mean {' or '.join(dict.fromkeys(meant))}?" if meant else known


def _leaves(name: str, value: Any) -> list[str]:
    """Return the name of a setting; of a section also the names of its settings."""
    parts = value.items() if isinstance(value, dict) else ()
    return [*(leaf for key, part in parts for leaf in _leaves(str(key), part)), name]


def _translate(name: str, above: Sequence[str], root: type[BaseModel]) -> list[str]:
    """Return the settings that other trainers call by this name, those nearest to the section `above`."""
    called = name.rpartition(".")[2].replace("-", "_").lower()
    start = ["sft" if step == "distill" else step for step in above]
    paths = [setting.split(".") for setting, names in OTHER_NAMES["settings"].items() if called in names]
    paths = [path for path in paths if _has(path, root)]
    by_depth = ([path for path in paths if path[:depth] == start[:depth]] for depth in range(len(start), -1, -1))
    nearest = [".".join(path) for path in next(filter(None, by_depth), [])]
    return nearest if start == [*above] else [re.sub("^sft", "distill", setting) for setting in nearest]


def _has(path: Sequence[str], root: type[BaseModel]) -> bool:
    return any(path[-1] in section.model_fields for section in _follow(path[:-1], root)[1])


def _settings_called(name: str, above: Sequence[str], root: type[BaseModel]) -> list[str]:
    """Return the settings of this name in a section or its subsections."""
    path = [*above, name]
    return [".".join(path)] if _has(path, root) else _settings_named(name, _follow(above, root)[1], above)


def settings_meant(name: str, section: str, root: type[BaseModel]) -> list[str]:
    """Return the settings that are meant by a path or by a name alone; those of a section come first."""
    *above, last = name.split(".")
    if above and _has([*above, last], root):
        return [name]
    near = _settings_called(last, [section], root) if section in root.model_fields else []
    anywhere = _settings_called(last, [], root)
    meant = _translate(last, [section], root) or (anywhere if len(anywhere) == 1 else near or anywhere)
    if f"{section}.{last}" in near:
        meant = near
    return [setting for setting in meant if _takes_a_value(setting.split("."), root)]


def _takes_a_value(path: Sequence[str], root: type[BaseModel]) -> bool:
    """Return True for a setting that is not a section: a value, a list or the column of a role."""
    above = [section for section in _follow(path[:-1], root)[1] if path[-1] in section.model_fields]
    if any(getattr(section, "keys_are_roles", False) for section in above):
        return True
    kinds = [section.model_fields[path[-1]].annotation for section in above]
    return not any(_models_in(kind) and "tuple[" not in str(kind) for kind in kinds)


def _settings_named(name: str, sections: Sequence[type[BaseModel]], above: Sequence[str], levels: int = 9) -> list[str]:
    """Return the settings of this name in subsections, the least deep ones: `train.optimizer.lr` for `lr`.

    Of a section with several types, the usual type comes first, and the others count only if no section has the name.
    """
    level = [(list(above), section, True) for section in sections]
    while level and (levels := levels - 1) >= 0:
        level = [
            ([*path, field], model, is_usual and index == 0)
            for path, section, is_usual in level
            for field, info in section.model_fields.items()
            for index, model in enumerate(_models_in(info.annotation))
            if not getattr(model, "in_list", False)
        ]
        holders = [(".".join([*path, name]), usual) for path, model, usual in level if name in model.model_fields]
        if holders:
            meant = [setting for setting, is_usual in holders if is_usual] or [setting for setting, _ in holders]
            return list(dict.fromkeys(meant))[:SETTINGS_SHOWN]
    return []


def _right_form(problem: Any, path: Sequence[str], root: type[BaseModel]) -> str:
    """Return how the value is written that was probably meant, as a sentence; else ""."""
    value, kind, typed = problem["input"], problem["type"], _follow(path, root)[0]
    form = ""
    if kind in NO_SECTION:
        form = _form_of_section(value, kind, path, root)
    elif kind == "string_type" and isinstance(value, list) and typed[-1] == "path":
        form = "It names one file, a folder, or a pattern such as 'data/*.jsonl'; `data` may be a list of sources"
    elif kind == "string_type" and value is not None:
        shown = '"..."' if isinstance(value, bool | dict | list) else f'"{value}"'
        name = "" if typed[-1].isdecimal() else f"{typed[-1]}: "
        form = f"A text that YAML reads as something else is put in quotes: {name}{shown}"
    elif kind in ("less_than", "less_than_equal") and NO_SHARES.keys() & {*typed[-2:]}:
        form = next(advice for name, advice in NO_SHARES.items() if name in typed[-2:])
    elif kind in ("less_than", "less_than_equal") and 1 in problem["ctx"].values() and 2 <= value <= 100:
        form = f"It is a share: {value:g} % is {value / 100:g}"
    elif kind in ("tuple_type", "list_type") and isinstance(value, str) and value:
        form = f"Write {typed[-1]}: [{value}]"
    elif kind in ("int_parsing", "float_parsing") and "," in value:
        form = "Numbers have a point, and nothing between thousands: 0.5, 1000"
    elif kind == "float_parsing" and re.fullmatch(r"[\d.]+ ?%", value):
        form = f"Write it as a share: {float(value.rstrip(' %')) / 100:g}"
    return f". {form}" if form else ""


def _form_of_section(value: Any, kind: str, path: Sequence[str], root: type[BaseModel]) -> str:
    """Return how a section is written for which another value was given."""
    typed = _follow(path, root)[0]
    if value is None or isinstance(value, bool):
        return _switch(typed, path, root, is_on=value is True)
    start = "" if typed[-1].isdecimal() else f"{typed[-1]}: "
    above, sections = _follow(path[:-1], root)[1], _follow(path, root)[1]
    fields = {name for section in sections for name in section.model_fields}
    if isinstance(value, list) and "column" in fields:
        return "Name one column"
    if isinstance(value, list) and "against" in fields:
        return f"Write {start}{{against: [{', '.join(map(str, value))}]}}"
    if isinstance(value, list):
        return f"Write {start}{{{'NAME' if kind == 'dict_type' else 'SETTING'}: VALUE}}, without dashes"
    if (joined := re.match(r"(\w+)[:=](?=\S)", str(value))) is not None and joined[1] in fields:
        return f"A space belongs after the colon: {joined[1]}: {value[joined.end() :]}"
    is_type = value in map(_type_of, above)
    name = "type" if is_type else next((name for name in USUAL_FIELDS if name in fields), None)
    known = f"; known: {', '.join(sorted(fields))}" if fields else ""
    meant = f"{{{name}: {value}}}" if name and isinstance(value, str) else f"{{SETTING: VALUE}}{known}"
    return f"Write {start}{meant}"


def _switch(typed: Sequence[str], path: Sequence[str], root: type[BaseModel], *, is_on: bool) -> str:
    """Return how a section is turned on or off, for which true, false or null was given."""
    name, sections = typed[-1], _follow(path, root)[1]
    fields = {field: info for section in sections[:1] for field, info in section.model_fields.items()}
    needed = [field for field, info in fields.items() if info.is_required()]
    if is_on:
        settings = ", ".join(f"{field}: ..." for field in needed)
        return f"Write {name}: {{{settings}}}{'' if needed else ' for its defaults'}"
    above = [section.model_fields[name] for section in _follow(path[:-1], root)[1] if name in section.model_fields]
    if any(map(_may_be_null, above)):
        left_out = "leave it out or " if above[0].default is None else ""
        return f"To turn it off, {left_out}write {name}: null"
    if "enabled" in fields:
        return f"To turn it off, write {name}: {{enabled: false}}"
    optional = [each for each, info in root.model_fields.items() if _may_be_null(info) and _models_in(info.annotation)]
    off = f"; null turns off only {', '.join(optional)}" if optional and len(typed) == 1 else ""
    return f"It cannot be turned off; leave it out for its defaults{off}"


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
    return f" (given: {_written(value) if value is None or isinstance(value, bool | date) else f'{value!r:.80}'})"


def _written(value: Any) -> str:
    if value is None:
        return "nothing"
    return str(value).lower() if isinstance(value, bool) else str(value)


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


def _may_be_null(field: FieldInfo) -> bool:
    return type(None) in getattr(field.annotation, "__args__", ())


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in getattr(annotation, "__args__", ()) for model in _models_in(part)]
