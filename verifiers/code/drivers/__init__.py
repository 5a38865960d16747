"""Drivers: programs around a solution in another language that make calls of it and print what each returned.

    compose("cpp", "class Solution { public: int add(int a, int b) ... };", Target("Solution().add"))
        the whole program in C++, which reads `[1, 2]` on a line of its input and prints `{"r":3}`

The lines are those of the role `calls` (`inside/roles/calls.py`). What the solution prints goes to stderr. Types are
the program's own: C++ deduces them, Java and Go reflect on them, Rust infers them from the function. Where
nothing in JSON stands for a type the driver says so with `NO_FORM`.
"""

from truegold.verifiers.code.drivers.compose import (
    LANGUAGES,
    NO_FORM,
    Signature,
    Target,
    compose,
    defines,
    language_name_of,
    probe,
    read_signature,
    signature_of_stub,
)

__all__ = [
    "LANGUAGES",
    "NO_FORM",
    "Signature",
    "Target",
    "compose",
    "defines",
    "language_name_of",
    "probe",
    "read_signature",
    "signature_of_stub",
]
