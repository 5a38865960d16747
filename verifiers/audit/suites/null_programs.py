"""Makes null programs, which solve nothing and must fail the tests.

    Programs that read stdin    print nothing, the input, its first line, or success messages
                                print a constant for every input: 0, 1, YES, NO, or one of the expected outputs
                                exit before they print
    Functions                   return their first argument, or an object that claims to equal everything
                                return a constant: None, 0, 1, "", [], True, False, nan, infinity, one of the expected
                                values, or an empty array if the suite uses numpy
                                exit, or print success messages

All null programs are in Python, also where programs in other languages read stdin and print. For test code in another
language, the only null program is empty.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from truegold.verifiers.audit.suites.known_cases import known_cases, tested_names
from truegold.verifiers.audit.suites.text_checks import leaked_cases
from truegold.verifiers.code.suite.reading import Inserted, Stdio, Suite

MAX_CONSTANTS = 12
"""Maximum number of expected outputs that are tried as constants, the most frequent first."""

MAX_CONSTANT_CHARS = 20_000
"""Maximum length of an output that is tried as a constant, in characters."""

MAX_NAME_CHARS = 40
"""Maximum number of characters of an output in the name of the program that prints the output."""

_COMMON_OUTPUTS = ("0", "1", "-1", "YES", "NO", "Yes", "No")
_COMMON_VALUES = ("None", "0", "1", "''", "[]", "True", "False", "float('nan')", "float('inf')")
_EMPTY_ARRAY = "__import__('numpy').empty((0, 1))"
"""An empty array, which numpy's comparisons take as equal to any array that it broadcasts with."""
_EXITS = (("sys", "exit(0)"), ("os", "_exit(0)"))
_PRINT_SUCCESS = "print('OK\\nPASSED\\nAll tests passed\\n1\\n')\n"
_ALWAYS_EQUAL = """\
class _Always:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 0
    def __bool__(self): return True
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __contains__ = __lt__
    def __call__(self, *args, **kwargs): return self
    def __getattr__(self, name): return self
"""


@dataclass(frozen=True, slots=True)
class NullProgram:
    """A program that solves nothing."""

    name: str
    """The program's behaviour, in a few words."""
    source: str
    attacks_tests: bool = False
    """Whether it attacks the tests: it exits, returns an object that equals everything, or prints success messages."""
    answers_single_case: bool = False
    """Whether it returns the answer to the only known case, which the problem's text does not show."""


def null_programs(suite: Suite, prompt: str | None = None) -> list[NullProgram]:
    """Return the null programs of a suite, each once; none for test code whose tested names are unknown.

    If a suite has a single case without an input, a program that prints its output solves the problem. Such a program
    counts as a null program only if the problem's text shows the output.
    """
    outputs, is_single = _repeatable_outputs(suite, prompt)
    programs = [NullProgram("empty program", "")]
    if isinstance(suite.tests, Stdio):
        programs += _printing_programs()
        repeating = _printing_constants(outputs)
    elif names := tested_names(suite.tests):
        programs += _returning_programs(names)
        if "numpy" in getattr(suite.tests, "code", ""):
            programs += _returning_constants(names, [_EMPTY_ARRAY])
        repeating = _returning_constants(names, outputs)
    elif isinstance(suite.tests, Inserted):
        return programs
    else:
        return []
    programs += (replace(program, answers_single_case=is_single) for program in repeating)
    # Of two programs with the same source, the first one is kept.
    return list({program.source: program for program in reversed(programs)}.values())[::-1]


def _repeatable_outputs(suite: Suite, prompt: str | None) -> tuple[list[str], bool]:
    """Return the most frequent outputs, and whether there is a single case whose output the prompt does not show."""
    cases = known_cases(suite.tests)
    is_single = len(cases) == 1 and not (prompt and leaked_cases(cases, prompt, isinstance(suite.tests, Stdio)))
    if is_single and not cases[0].input.strip():
        return [], True
    usable = (case.output for case in cases if len(case.output) <= MAX_CONSTANT_CHARS)
    return [output for output, _ in Counter(usable).most_common(MAX_CONSTANTS)], is_single


def _printing_constants(outputs: Sequence[str]) -> Iterator[NullProgram]:
    for output in outputs:
        yield NullProgram(f"prints {_shortened(output)}", f"print({output!r}, end='')\n")


def _returning_constants(names: Sequence[str], values: Sequence[str]) -> Iterator[NullProgram]:
    for value in values:
        yield NullProgram(f"returns {_shortened(value)}", _define(names, value))


def _printing_programs() -> Iterator[NullProgram]:
    yield NullProgram("prints its input", "import sys\nsys.stdout.write(sys.stdin.read())\n")
    yield NullProgram("prints the first line of its input", "import sys\nprint(sys.stdin.readline().rstrip())\n")
    yield from _printing_constants(_COMMON_OUTPUTS)
    yield _attack("prints success messages", _PRINT_SUCCESS)
    for module, function in _EXITS:
        yield _attack(f"exits with {module}.{function}", f"import {module}\n{module}.{function}\n")


def _returning_programs(names: Sequence[str]) -> Iterator[NullProgram]:
    yield from _returning_constants(names, _COMMON_VALUES)
    first_argument = "args[0] if args else next(iter(named.values()), None)"
    yield NullProgram("returns its first argument", _define(names, first_argument))
    yield _attack("returns an object that equals everything", _ALWAYS_EQUAL + _define(names, "_Always()"))
    yield _attack("prints success messages", _PRINT_SUCCESS + _define(names, "None"))
    for module, function in _EXITS:
        name = f"exits with {module}.{function}"
        yield _attack(f"{name} when loaded", f"import {module}\n{module}.{function}\n")
        yield _attack(f"{name} when called", _define(names, f"__import__({module!r}).{function}"))


def _attack(name: str, source: str) -> NullProgram:
    return NullProgram(name, source, attacks_tests=True)


def _define(names: Sequence[str], expression: str) -> str:
    """Return the source of functions or methods with these names (`Solution().twoSum`) that return the expression."""
    return "".join(_definition(name.replace("()", "").split("."), expression, "") for name in names)


def _definition(parts: Sequence[str], expression: str, indent: str) -> str:
    """Return the source of a function, or for ["Solution", "twoSum"] of a class with a method."""
    if len(parts) == 1:
        first = "self, " if indent else ""
        return f"{indent}def {parts[0]}({first}*args, **named):\n{indent}    return {expression}\n"
    return f"{indent}class {parts[0]}:\n{_definition(parts[1:], expression, indent + '    ')}"


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_NAME_CHARS else f"{line[:MAX_NAME_CHARS]}…"
