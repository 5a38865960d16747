"""The local back end: programs in the sandbox of this machine, compiled first where their language asks for it.

    with Local().prepare(Program("cpp", source), Limits()) as ready:
        if ready.compiled is None or ready.compiled.ok:
            ready.run(b"3 4\\n").stdout

A program is compiled once and its binary handed to each run, which finds nothing else in its folder. Compiling has a
CPU limit and a memory allowance of its own.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from truegold.verifiers.code.execution import End, Execution, Prepared, Program, SandboxError
from truegold.verifiers.code.inside.confine.preload import warm_modules
from truegold.verifiers.code.limits import Limits
from truegold.verifiers.code.sandbox.job import Job
from truegold.verifiers.code.sandbox.languages import LANGUAGES, Toolchain, available
from truegold.verifiers.code.sandbox.pool import Kind, Sandbox, sandbox
from truegold.verifiers.code.sandbox.reach import closed_folder
from truegold.verifiers.code.sandbox.tiers import Tier

PYTHON = "python"
COMPILE_MEMORY_MB = 2048
COMPILE_OUTPUT_MB = 64.0
_SIGNALLED_FROM = 128


def installed_languages() -> list[str]:
    """The languages of which programs can run on this machine."""
    return sorted({PYTHON, *available()})


def closed_languages(tier: Tier) -> list[str]:
    """What is wrong with those languages whose toolchain is installed where programs in this tier cannot read it."""
    places = {name: closed_folder(toolchain.expose, tier) for name, toolchain in available().items()}
    return [closed_to_programs(name, place) for name, place in places.items() if place is not None]


def closed_to_programs(language: str, folder: str) -> str:
    return (
        f"the toolchain for {language!r} lies in {folder}, which the user that programs run as may not enter: "
        "install it for all users, in /usr/local or /opt"
    )


@dataclass(frozen=True, slots=True)
class Local:
    """Back end `local`. tier, python, hash_seed: as in `Kind`."""

    tier_wanted: Tier | None = None
    python: str = sys.executable
    hash_seed: int = 0

    @property
    def name(self) -> str:
        return "local"

    @property
    def tier(self) -> str:
        return str(self.sandbox().tier)

    def sandbox(self) -> Sandbox:
        """The sandbox for Python programs."""
        return sandbox(Kind(self.tier_wanted, self.python, self.hash_seed))

    def languages(self) -> frozenset[str]:
        return frozenset(installed_languages())

    def prepare(self, program: Program, limits: Limits) -> Prepared:
        """Ready to run; compiled where the language is. SandboxError where its toolchain is not installed."""
        if program.language == PYTHON and not program.files:
            return _Python(self.sandbox(), program.source.encode("utf-8", "surrogatepass"), limits)
        return self.prepare_script(program, limits, ())

    def prepare_script(self, program: Program, limits: Limits, arguments: Sequence[str]) -> Prepared:
        """The same with arguments on its command line."""
        if program.language == PYTHON:
            return _Script(self.sandbox(), program, limits, arguments)
        language = LANGUAGES.get(program.language)
        toolchain = language.toolchain() if language else None
        if language is None or toolchain is None:
            known = ", ".join(sorted(self.languages()))
            raise SandboxError(f"there is no toolchain for {program.language!r} on this machine, only for {known}")
        expose = tuple(dict.fromkeys(path for found in available().values() for path in found.expose))
        box = sandbox(Kind(self.tier_wanted, self.python, self.hash_seed, expose))
        if (closed := closed_folder(toolchain.expose, box.tier)) is not None:
            raise SandboxError(closed_to_programs(program.language, closed))
        files = {language.file_for(program.source): program.source.encode("utf-8", "replace"), **program.files}
        run = [*language.command(toolchain.run, program.source, limits), *arguments]
        if toolchain.compile is None:
            return _Native(box, None, files, run, toolchain, limits)
        argv = language.command(toolchain.compile, program.source, limits)
        compiled, made = _compile(box, argv, files, toolchain, limits)
        return _Native(box, compiled, {**made, **program.files}, run, toolchain, limits)


class _Prepared:
    compiled: Execution | None = None

    def close(self) -> None:
        """Nothing is held between runs."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


class _Python(_Prepared):
    def __init__(self, box: Sandbox, source: bytes, limits: Limits) -> None:
        self._box, self._source, self._limits = box, source, limits
        self._warm = warm_modules(source)

    def run(self, stdin: bytes) -> Execution:
        return self._box.run(Job("main", self._source, self._limits, stdin, warm=self._warm))


class _Script(_Prepared):
    def __init__(self, box: Sandbox, program: Program, limits: Limits, arguments: Sequence[str]) -> None:
        self._box, self._limits = box, limits
        files = {name: content.decode("utf-8", "surrogateescape") for name, content in program.files.items()}
        request = {"source": program.source, "arguments": list(arguments), "files": files}
        self._payload = json.dumps(request).encode()
        self._warm = warm_modules(program.source.encode("utf-8", "replace"))

    def run(self, stdin: bytes) -> Execution:
        return self._box.run(Job("script", self._payload, self._limits, stdin, warm=self._warm))


class _Native(_Prepared):
    def __init__(
        self,
        box: Sandbox,
        compiled: Execution | None,
        files: Mapping[str, bytes],
        argv: list[str],
        toolchain: Toolchain,
        limits: Limits,
    ) -> None:
        self.compiled = compiled
        self._box, self._limits = box, limits
        self._payload = _payload(files, argv, toolchain.environment, [])

    def run(self, stdin: bytes) -> Execution:
        return _as_ended(self._box.run(Job("native", self._payload, self._limits, stdin, native=True)))


def _compile(
    box: Sandbox, argv: list[str], files: Mapping[str, bytes], toolchain: Toolchain, limits: Limits
) -> tuple[Execution, dict[str, bytes]]:
    payload = _payload(files, argv, toolchain.environment, toolchain.made)
    allowed = dataclasses.replace(
        limits,
        cpu_s=limits.compile_cpu_s,
        memory_mb=max(limits.memory_mb, COMPILE_MEMORY_MB),
        output_mb=COMPILE_OUTPUT_MB,
    )
    execution = _as_ended(box.run(Job("native", payload, allowed, native=True)))
    if not execution.ok:
        return execution, {}
    made = _unpacked(execution.result)
    if not made:
        return dataclasses.replace(execution, status=1, stderr=b"compiling made nothing to run\n"), {}
    return execution, made


def _payload(files: Mapping[str, bytes], argv: list[str], environment: Mapping[str, str], collect: list[str]) -> bytes:
    head = {
        "files": [[name, len(content)] for name, content in files.items()],
        "argv": argv,
        "env": {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", **environment},
        "collect": collect,
    }
    return b"".join([json.dumps(head).encode(), b"\n", *files.values()])


def _unpacked(result: bytes) -> dict[str, bytes]:
    """The files that compiling made. They come from a sandboxed process: names are checked, sizes are."""
    head, _, contents = result.partition(b"\n")
    try:
        listed: list[Any] = json.loads(head)["files"]
        made, at = {}, 0
        for name, size in listed:
            if not isinstance(name, str) or "/" in name or not isinstance(size, int) or size < 0:
                return {}
            made[name] = contents[at : at + size]
            at += size
    except (ValueError, TypeError, KeyError):
        return {}
    return made


def _as_ended(execution: Execution) -> Execution:
    """The command's own end: its signal comes as an exit status, as from a shell."""
    if execution.end is End.EXITED and execution.status > _SIGNALLED_FROM:
        return dataclasses.replace(execution, end=End.SIGNALLED, status=execution.status - _SIGNALLED_FROM)
    return execution
