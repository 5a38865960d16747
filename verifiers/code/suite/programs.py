"""Reads the descriptions of checkers and interactors: programs that a suite brings along.

    "#include \\"testlib.h\\"\\nint main(..."             {"type": "program", "code": "...", "language": "cpp"}
    {"code": "def check(input, output, answer): ..."}   {"type": "program", "code": "...", "language": "python"}

Files that the suite has (`files`, such as the `params.h` of a problem of Library Checker) are there for both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from truegold.verifiers.code.bad_suite import BadSuite, require_files
from truegold.verifiers.code.comparison.outputs import read_spec
from truegold.verifiers.sandbox.languages import edition_name

_CPP = re.compile(r"^[ \t]*#[ \t]*include\b", re.MULTILINE)
_PYTHON = re.compile(r"^(?:import|from|def|class) ", re.MULTILINE)


def read_checker(options: Mapping[str, Any], path_prefix: str) -> str | Mapping[str, Any]:
    """Return the checker of a suite of printed outputs; a program with its language and files. Raises `BadSuite`."""
    spec = options.get("checker") or "tokens"
    if isinstance(spec, str) and is_source(spec):
        spec = {"type": "program", "code": spec}
    kind, _ = read_spec(spec, f"{path_prefix}checker")
    if kind != "program":
        return spec
    return _complete(spec, options, path_prefix)


def read_interactor(options: Mapping[str, Any], path_prefix: str) -> Mapping[str, Any] | None:
    """Return the interactor of a suite, where it has one. Raises `BadSuite`."""
    spec = options.get("interactor")
    if spec is None or spec == "":
        if options.get("type") == "interactive":
            raise BadSuite(f"{path_prefix}interactor is missing: a program that talks to the solution")
        return None
    spec = {"code": spec} if isinstance(spec, str) else spec
    if not isinstance(spec, Mapping):
        raise BadSuite(
            f"{path_prefix}interactor must be a program or an object with its code, got {type(spec).__name__}"
        )
    read_spec({**spec, "type": "program"}, f"{path_prefix}interactor")
    return _complete({**spec, "type": "program"}, options, path_prefix)


def _complete(spec: Any, options: Mapping[str, Any], path_prefix: str) -> dict[str, Any]:
    files = options.get("files") or {}
    require_files(files, f"{path_prefix}files")
    code, language = spec["code"], spec.get("language")
    if language is None:
        language = "cpp" if _CPP.search(code) else "python"
    return {**spec, "language": edition_name(language), "files": {**files, **(spec.get("files") or {})}}


def is_source(text: str) -> bool:
    """Whether a text is a program rather than the name of a checker."""
    return "\n" in text.strip() and (_CPP.search(text) is not None or _PYTHON.search(text) is not None)
