"""The third step of a vetting: which null programs, planted faults and programs of known worth the tests catch.

A null program solves nothing, and tests that pay one of them pay for nothing:

    programs that print: the empty program; the input, its first line; 0, 1, YES, NO, each of the expected outputs,
                         whatever the input; success messages; an exit before anything is printed
    functions:           None, 0, 1, "", [], True, False, each of the expected values, whatever the arguments; their
                         first argument; an object that says it equals everything; an exit

Each is really run. All are in Python, also where a suite of programs that print is for another language; on test code
in other languages only the empty program is tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from truegold.verifiers.audit.suites.known_cases import known_cases, tested_names
from truegold.verifiers.audit.suites.mutants import Mutant, mutants_of
from truegold.verifiers.audit.suites.survivors import Kills, Witness, count_kills
from truegold.verifiers.audit.suites.text_checks import leaked_cases
from truegold.verifiers.audit.suites.trials import PYTHON
from truegold.verifiers.audit.suites.vet_state import Severity, VetReason, VetState
from truegold.verifiers.code.suite import Inserted, Stdio, Suite
from truegold.verifiers.sandbox.limits import Limits

FAULTY_CPU_S = 0.25
FAULTY_CPU_FACTOR = 5.0
"""A faulty program may use `FAULTY_CPU_S` seconds, or this many times what the worked solution uses. Stops loops
without end, which planted faults often make, from taking the whole limit each; one that is ended counts as caught."""

MIN_MUTANTS = 4
"""With fewer mutants the share that survives says nothing."""

SHOWN_SURVIVORS = 10
"""The most survivors that evidence shows."""

MAX_CONSTANTS = 12
"""Distinct expected outputs that are tried as constants, the most frequent first: if not one of these passes all cases,
a less frequent one cannot."""

MAX_CONSTANT_CHARS = 20_000
"""Longer outputs are not tried as constants. Stops programs of megabytes from being run."""

_EXITS = (("sys", "exit(0)"), ("os", "_exit(0)"))
_SUCCESS_MESSAGES = "OK\\nPASSED\\nAll tests passed\\n1\\n"
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
_CONSTANTS: tuple[Any, ...] = (None, 0, 1, "", [], True, False)
_COMMON_OUTPUTS = ("0", "1", "-1", "YES", "NO", "Yes", "No")


def find_paid_nulls(state: VetState) -> list[str]:
    """Return the names of the null programs that pass."""
    bench, limits, order = state.bench(), _faulty_limits(state), _cheapest_first(state)
    paid = [
        program.name
        for program in null_programs(state.suite, state.prompt)
        if bench.first_failure(program.source, limits, order, language=PYTHON) is None
    ]
    if paid:
        state.report(VetReason.PAID_NULL, Severity.DROP, {"programs": paid}, "add cases that they fail")
    return paid


def measure_kills(state: VetState) -> Kills:
    """Plant faults in the worked solution that passes, and see which of them the tests catch."""
    if state.reference is None or state.suite.language != PYTHON:
        return Kills()
    names = [name.partition(".")[0].removesuffix("()") for name in tested_names(state.suite.tests)]
    spent = state.trial.spent_s if state.trial is not None else 0.0
    count = state.options.affordable(state.options.mutants, spent)
    mutants = mutants_of(state.reference, count, state.options.seed, names)
    bench, limits, order = state.bench(), _faulty_limits(state), _cheapest_first(state)
    survivors = []
    for mutant in mutants:
        caught_by = bench.first_failure(mutant.source, limits, order)
        if caught_by is None:
            survivors.append(mutant)
        elif caught_by in order:
            # The case that caught one fault is likely to catch the next.
            order.remove(caught_by)
            order.insert(0, caught_by)
    ordered = tuple(sorted(survivors, key=lambda mutant: (mutant.line, mutant.after)))
    kills = count_kills(state, len(mutants), ordered, limits)
    _report_weakness(state, kills)
    return kills


def caught_share(state: VetState, wrong: Sequence[str]) -> float | None:
    """Return the share of programs known to be wrong that fail."""
    passed = _try_programs(state, wrong, _faulty_limits(state))
    if any(passed):
        accepted = [index for index, passes in enumerate(passed) if passes]
        state.report(VetReason.WRONG_ACCEPTED, Severity.FLAG, {"programs": accepted}, "add cases that they fail")
    return passed.count(False) / len(passed) if passed else None


def accepted_share(state: VetState, right: Sequence[str]) -> float | None:
    """Return the share of programs known to be right that pass."""
    passed = _try_programs(state, right, state.suite.limits)
    if not all(passed):
        rejected = [index for index, passes in enumerate(passed) if not passes]
        state.report(
            VetReason.RIGHT_REJECTED, Severity.FLAG, {"programs": rejected}, "look at the cases that they fail"
        )
    return passed.count(True) / len(passed) if passed else None


def _report_weakness(state: VetState, kills: Kills) -> None:
    if kills.rate is None or kills.mutants < MIN_MUTANTS or kills.doubted_rate >= state.options.min_kill_rate:
        return
    survivors = [_show_survivor(mutant, kills.witnesses.get(mutant)) for mutant in kills.survivors[:SHOWN_SURVIVORS]]
    rates = {"rate": round(kills.rate, 4), "interval": [round(bound, 4) for bound in kills.interval or ()]}
    left_out = {"equivalent": kills.equivalent, "undecided": kills.undecided}
    evidence = {**rates, "mutants": kills.mutants, **left_out, "survivors": survivors}
    suggestion = "add the cases that catch the survivors"
    if not kills.witnesses:
        suggestion = "add cases that catch the survivors, unless they do what the solution does"
    state.report(VetReason.WEAK, Severity.FLAG, evidence, suggestion)


def _show_survivor(mutant: Mutant, witness: Witness | None) -> Any:
    """Return what evidence says of a survivor: its change, and what shows that it is wrong."""
    if witness is None:
        return mutant.description
    shown = {"input": witness.input, "expected": witness.expected, "got": witness.got, "case": witness.case}
    return {"fault": mutant.description, **shown}


def _try_programs(state: VetState, programs: Sequence[str], limits: Limits) -> list[bool]:
    """Return for each program whether it passes."""
    bench, order = state.bench(), _cheapest_first(state)
    return [bench.first_failure(program, limits, order) is None for program in programs]


def _faulty_limits(state: VetState) -> Limits:
    limits = state.suite.limits
    needed = (state.trial.cpu_s if state.trial is not None else None) or 0.0
    return replace(limits, cpu_s=min(limits.cpu_s, max(FAULTY_CPU_S, FAULTY_CPU_FACTOR * needed)))


def _cheapest_first(state: VetState) -> list[int]:
    """Return the cases in the order to try them; none where programs do not print, and cases share a run."""
    if not isinstance(state.suite.tests, Stdio):
        return []
    order = list(range(state.cases))
    trial = state.trial
    if trial is not None and len(trial.attempts) == len(order):
        order.sort(key=lambda index: trial.attempts[index].cpu_s or 0.0)
    return order


@dataclass(frozen=True, slots=True)
class NullProgram:
    """A program that solves nothing."""

    name: str
    """What it does, in a few words."""
    source: str


def null_programs(suite: Suite, prompt: str | None = None) -> list[NullProgram]:
    """Return the null programs of a suite, each once; none for test code that does not show which names it tests.

    Where there is a single case, the program that gives its output is no null program, unless the problem's text shows
    that output: whoever gives it has solved the case.
    """
    tests = suite.tests
    programs: list[NullProgram] = []
    if isinstance(tests, Stdio):
        programs = list(_printing_programs(_repeatable_outputs(suite, prompt)))
    elif isinstance(tests, Inserted):
        programs = [NullProgram("empty program", "")]
    elif names := tested_names(tests):
        programs = list(_returning_programs(names, _repeatable_outputs(suite, prompt)))
    unique = {program.source: program for program in reversed(programs)}
    return list(reversed(unique.values()))


def _repeatable_outputs(suite: Suite, prompt: str | None) -> list[str]:
    """Return the most frequent outputs that a program that solves nothing may repeat."""
    cases = known_cases(suite.tests)
    if len(cases) == 1 and not (prompt and leaked_cases(cases, prompt, isinstance(suite.tests, Stdio))):
        return []
    usable = (case.output for case in cases if len(case.output) <= MAX_CONSTANT_CHARS)
    return [output for output, _ in Counter(usable).most_common(MAX_CONSTANTS)]


def _printing_programs(outputs: Sequence[str]) -> Iterator[NullProgram]:
    yield NullProgram("empty program", "")
    yield NullProgram("prints its input", "import sys\nsys.stdout.write(sys.stdin.read())\n")
    yield NullProgram("prints the first line of its input", "import sys\nprint(sys.stdin.readline().rstrip())\n")
    for output in [*_COMMON_OUTPUTS, *outputs]:
        yield NullProgram(f"prints {_cut(output)}", f"print({output!r}, end='')\n")
    yield NullProgram("prints success messages", f"print('{_SUCCESS_MESSAGES}')\n")
    for module, function in _EXITS:
        yield NullProgram(f"exits with {module}.{function}", f"import {module}\n{module}.{function}\n")


def _returning_programs(names: Sequence[str], outputs: Sequence[str]) -> Iterator[NullProgram]:
    yield NullProgram("empty program", "")
    for constant in map(repr, _CONSTANTS):
        yield NullProgram(f"returns {constant}", _define(names, constant))
    for output in outputs:
        yield NullProgram(f"returns {_cut(output)}", _define(names, output))
    first_argument = "args[0] if args else next(iter(named.values()), None)"
    yield NullProgram("returns its first argument", _define(names, first_argument))
    yield NullProgram("returns an object that equals everything", _ALWAYS_EQUAL + _define(names, "_Always()"))
    yield NullProgram("prints success messages", f"print('{_SUCCESS_MESSAGES}')\n" + _define(names, "None"))
    for module, function in _EXITS:
        name = f"exits with {module}.{function}"
        yield NullProgram(f"{name} when loaded", f"import {module}\n{module}.{function}\n")
        yield NullProgram(f"{name} when called", _define(names, f"__import__({module!r}).{function}"))


def _define(names: Sequence[str], expression: str) -> str:
    """Return the source of functions of these names, `Solution().twoSum` among them, that return the expression."""
    return "".join(_definition(name.replace("()", "").split("."), expression, "") for name in names)


def _definition(parts: Sequence[str], expression: str, indent: str) -> str:
    if len(parts) == 1:
        first = "self, " if indent else ""
        return f"{indent}def {parts[0]}({first}*args, **named):\n{indent}    return {expression}\n"
    return f"{indent}class {parts[0]}:\n{_definition(parts[1:], expression, indent + '    ')}"


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 40 else f"{line[:40]}…"
