"""What a forked process can be asked to do with its payload, by name.

main, script      run a program as `python program.py` would
to_end            the same, and say a word where it comes to its end
native            run a compiler or a program of another language
calls             make calls of a program's functions and hand back what each returned
serve, tests      the two partners of a test session (`test_session`): the solution and its tests
one_process       run a program and its tests in one process
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module

Role = Callable[[bytes], None]

_MODULES = {
    "main": ("roles.script", "run_main"),
    "script": ("roles.script", "run_script"),
    "to_end": ("roles.script", "run_to_end"),
    "native": ("roles.native", "run_native"),
    "calls": ("roles.calls", "run_calls"),
    "serve": ("test_session", "run_serve"),
    "tests": ("test_session", "run_tests"),
    "one_process": ("roles.one_process", "run_in_one_process"),
}


class _Roles(Mapping[str, Role]):
    """Loads what plays a role when it is asked for: whatever a zygote has loaded makes each of its jobs dearer."""

    def __getitem__(self, name: str) -> Role:
        module, function = _MODULES[name]
        package = __name__.rpartition(".")[0]
        role: Role = getattr(import_module(f"{package}.{module}"), function)
        return role

    def __iter__(self) -> Iterator[str]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)


ROLES: Mapping[str, Role] = _Roles()
