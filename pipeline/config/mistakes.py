"""Says in the user's words what pydantic finds wrong with settings: one line for each mistake.

{"dedup": {"reword": false}}     ->  dedup.reword: unknown setting; did you mean reworded?
{"data": {"limit": 0}}           ->  data.limit: Input should be greater than or equal to 1 (given: 0)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from truegold.pipeline.config.base import LIST, MOVED
from truegold.pipeline.config.sources import Listing
from truegold.verifiers.user_code import close_match

_SECTION = re.compile(r"a valid dictionary(?: or (?:an )?(?:instance|object) .*| or instance of \w+)?$")
PLAIN_TYPES = ("str", "int", "float", "bool")
"""What pydantic calls the plain members of a union."""


def describe_mistakes(error: ValidationError, root: type[BaseModel]) -> list[str]:
    """Return one line for each mistake in settings that were validated as a `root`."""
    problems = _of_meant_members(error.errors(), root)
    return list(dict.fromkeys(_explain_mistake(problem, root) for problem in problems))


def _of_meant_members(problems: Sequence[Any], root: type[BaseModel]) -> list[Any]:
    """Leave out that a setting is not of another kind, where what is wrong inside of it says which kind is meant."""
    paths = [_follow([str(part) for part in problem["loc"]], root)[0] for problem in problems]
    inside = {tuple(path[:end]) for path in paths for end in range(len(path))}
    is_tagged = [len(path) < len(problem["loc"]) for path, problem in zip(paths, problems, strict=True)]
    return [
        problem
        for path, problem, tagged in zip(paths, problems, is_tagged, strict=True)
        if not (tagged and tuple(path) in inside)
    ]


def _explain_mistake(problem: Any, root: type[BaseModel]) -> str:
    path = [str(part) for part in problem["loc"]]
    typed, _ = _follow(path, root)
    field = ".".join(typed) or "(whole file)"
    if problem["type"] == "extra_forbidden":
        sections = _follow(path[:-1], root)[1]
        known = list(sections[0].model_fields) if sections else []
        close = close_match(path[-1], known)
        meant = f"; did you mean {close}?" if close else f"; known: {', '.join(sorted(known))}"
        return f"{field}: unknown setting{meant if known else ''}"
    if problem["type"] == MOVED:
        new = str(problem["ctx"]["new"])
        return f"{field}: moved to {new[1:] if new.startswith('/') else '.'.join([*typed[:-1], new])}"
    message = _SECTION.sub("a section", problem["msg"].removeprefix("Value error, ").replace("a valid tuple", "a list"))
    is_shown = problem["type"] != "missing" and path[-1:] != [LIST]
    setting = f" (given: {problem['input']!r:.80})" if is_shown else ""
    return f"{field}: {message}{setting}" if path else message


def _follow(path: Sequence[str], root: type[BaseModel]) -> tuple[list[str], list[type[BaseModel]]]:
    """Return a path as a user types it, and the sections that may stand there.

    pydantic puts into the path what tells the members of a union apart, a type or a list, which nobody types.
    """
    typed: list[str] = []
    sections: list[type[BaseModel]] = [root]
    may_choose = False
    for step in path:
        if step == LIST:
            sections = [section for section in sections if issubclass(section, Listing)]
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
    """Say whether a step of a path is what pydantic calls a member of a union: `tuple[...]`, `constrained-float`."""
    if any(mark in step for mark in "-[(") or any(section.__name__ == step for section in sections):
        return True
    is_field = any(step in section.model_fields for section in sections)
    return step in PLAIN_TYPES and not is_field


def _type_of(section: type[BaseModel]) -> Any:
    return section.model_fields["type"].default if "type" in section.model_fields else None


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in getattr(annotation, "__args__", ()) for model in _models_in(part)]
