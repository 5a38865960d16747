"""Programs in the request shape of SandboxFusion.

    POST /run_code       {"code": "print(input())", "language": "python", "stdin": "3", "run_timeout": 10}
      -> {"status": "Success", "run_result": {"status": "Finished", "return_code": 0, "stdout": "3\\n", ...}, ...}

Source: sandbox/server/sandbox_api.py. A timeout bounds the program's CPU time here, and what it may wait. Files cannot
be fetched, and `args` are not handed on: a request that asks for either is answered with a SandboxError.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from truegold.verifiers.sandbox.execution import End, Execution, Program, SandboxError
from truegold.verifiers.sandbox.languages import language_name
from truegold.verifiers.sandbox.limits import CPU_S_BOUNDS, Limits
from truegold.verifiers.sandbox.local import Local

MEMORY_MB = 1024
_LIMIT_ENDS = (End.CPU_LIMIT, End.WALL_LIMIT)


class BadRequest(ValueError):
    """A request has a field that is missing or wrong; the text says which."""


def run_code(request: Mapping[str, Any]) -> dict[str, Any]:
    """Run a program in the sandbox and answer as SandboxFusion does."""
    program, limits, stdin = _read_program(request)
    if request.get("fetch_files") or request.get("args"):
        return _sandbox_error("truegold's service hands out no files and takes no arguments")
    try:
        prepared = Local().prepare(program, limits)
        compiled = prepared.compiled
        if compiled is not None and not compiled.ok:
            return _answer("Failed", compiled, None)
        execution = prepared.run(stdin.encode("utf-8", "surrogatepass"))
    except SandboxError as error:
        return _sandbox_error(str(error))
    return _answer("Success" if execution.ok else "Failed", compiled, execution)


def _read_program(request: Mapping[str, Any]) -> tuple[Program, Limits, str]:
    files = request.get("files") or {}
    try:
        contents = {name: base64.b64decode(content or "", validate=True) for name, content in files.items()}
    except (AttributeError, TypeError, binascii.Error) as error:
        raise BadRequest(f"files is an object from names to base64: {error}") from None
    memory_mb = request.get("memory_limit_MB") or -1
    if not isinstance(memory_mb, int):
        raise BadRequest("memory_limit_MB is a whole number")
    program = Program(language_name(text_field(request, "language")), text_field(request, "code"), contents)
    stdin = request.get("stdin") or ""
    if not isinstance(stdin, str):
        raise BadRequest("stdin is a text")
    try:
        limits = Limits(
            cpu_s=seconds_field(request, "run_timeout", 10.0),
            memory_mb=memory_mb if memory_mb > 0 else MEMORY_MB,
            compile_cpu_s=seconds_field(request, "compile_timeout", 10.0),
        )
    except ValueError as error:
        raise BadRequest(str(error)) from None
    return program, limits, stdin


def text_field(request: Mapping[str, Any], name: str) -> str:
    """Return a field that is a text. Raises BadRequest."""
    value = request.get(name)
    if not isinstance(value, str):
        raise BadRequest(f"{name} is a text; here it is {type(value).__name__}")
    return value


def seconds_field(request: Mapping[str, Any], name: str, default: float) -> float:
    """Return a field of seconds, within the bounds of CPU time. Raises BadRequest."""
    value = request.get(name, default)
    low, high = CPU_S_BOUNDS
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise BadRequest(f"{name} is a number of seconds from {low} to {high:g}")
    return float(value)


def _answer(status: str, compiled: Execution | None, execution: Execution | None) -> dict[str, Any]:
    return {
        "status": status,
        "message": "",
        "compile_result": None if compiled is None else _command_result(compiled),
        "run_result": None if execution is None else _command_result(execution),
        "executor_pod_name": None,
        "files": {},
    }


def _command_result(execution: Execution) -> dict[str, Any]:
    is_late = execution.end in _LIMIT_ENDS
    return {
        "status": "TimeLimitExceeded" if is_late else "Finished",
        "execution_time": execution.wall_s,
        "return_code": None if is_late else _return_code(execution),
        "stdout": execution.stdout.decode("utf-8", "replace"),
        "stderr": execution.stderr.decode("utf-8", "replace"),
    }


def _return_code(execution: Execution) -> int:
    """Return the exit code; that of a signal is negative, and a program that met another limit has failed with 1."""
    if execution.end is End.EXITED:
        return execution.status
    return -execution.status or 1


def _sandbox_error(message: str) -> dict[str, Any]:
    return {**_answer("SandboxError", None, None), "message": message}
