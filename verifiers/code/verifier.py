"""The verifier `code`, which runs the program in a response against the tests of its row.

    info {"tests": {"type": "stdio", "cases": [{"input": "3\\n4\\n", "output": "7\\n"}]}}
    info {"tests": {"type": "interactive", "cases": [{"input": "1000 42\\n"}], "interactor": "#include ..."}}
    info {"tests": {"type": "calls", "entry_point": "add", "cases": [{"args": [3, 4], "expected": 7}]}}
    info {"tests": {"type": "asserts", "entry_point": "add", "code": "def check(candidate):\\n    assert ..."}}
    info {"tests": {"type": "unittest", "code": "import unittest\\n..."}}
    info {"tests": {"type": "inserted", "code": "#<INSERT>\\nint main() ..."}, "language": "cpp"}

A `stdio` checker without a tolerance uses the error that the `problem` allows: "absolute or relative error 10^-6".

The program runs in the strongest sandbox that the machine supports, which the evidence names (`tier`). The program's
process does not contain the expected values, unless the evidence has `isolation: one_process`. The score is None if the
suite is invalid (`verifier_error`) or the sandbox failed (`sandbox_error`), never because of the program.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from truegold.verifiers.code.checks.lowering import functions_under_test
from truegold.verifiers.code.drivers import LANGUAGES as DRIVEN_LANGUAGES
from truegold.verifiers.code.drivers import language_name_of
from truegold.verifiers.code.outcomes import BadSuite, CannotJudge, Judged, cut, verdict_of
from truegold.verifiers.code.output_comparison import with_allowed_error
from truegold.verifiers.code.protocols.native_tests import judge_inserted, judge_native_calls
from truegold.verifiers.code.protocols.python_tests import TestedProgram, judge_calls, judge_code
from truegold.verifiers.code.protocols.stdio import NotCompiled, judge_stdio
from truegold.verifiers.code.python_source import parse, stub_names
from truegold.verifiers.code.response_program import Extracted, callable_in, extract_code, opened_block, worked_program
from truegold.verifiers.code.suite import reading
from truegold.verifiers.code.suite.imports import missing_package
from truegold.verifiers.code.suite.reading import Asserts, Calls, Inserted, Stdio, Suite, UnitTest
from truegold.verifiers.code.suite.statement import allowed_error
from truegold.verifiers.options import BadOption, bad_option_verdict, word_option
from truegold.verifiers.sandbox.errors import ConfigError
from truegold.verifiers.sandbox.execution import Program, SandboxError, Tier
from truegold.verifiers.sandbox.local import PYTHON, Backend, Local
from truegold.verifiers.verdict import NO_INFO, Reason, Verdict

REWARDS = ("all", "pass_rate")
STOPS = ("first", "never")


@dataclass(frozen=True, slots=True)
class CodeVerifier:
    """Runs the program in a response on its tests. `info` may set `reward` and `stop` for a row."""

    backend: str = "local"
    """`local`, or a server such as `sandboxfusion+http://host:8080` for programs that read stdin; test code always runs
    on this machine."""
    tier: Tier | None = None
    """The sandbox tier, such as `weak`, or None for the strongest that the machine supports."""
    python: str = sys.executable
    """The interpreter whose packages Python programs may use."""
    reward: str = "all"
    """`all`: 1 if every case passes, else 0. `pass_rate`: the share of passed cases; every case runs."""
    stop: str = "first"
    """`first`: stop after the first failed case. `never`: run every case."""
    hash_seed: int = 0
    """PYTHONHASHSEED of the programs."""
    name: str = "code"
    version: str = "10"

    judges_solutions = True
    deterministic = False
    """False, because programs may use random numbers and clocks."""
    options = ("reward", "stop", "tests", *reading.SUITE_OPTIONS)

    def __post_init__(self) -> None:
        """Raise ConfigError for an invalid setting."""
        if self.backend != "local":
            self._backend()
        for name, known in (("reward", REWARDS), ("stop", STOPS), ("tier", (None, *Tier))):
            if (value := getattr(self, name)) not in known:
                raise ConfigError(f"CodeVerifier: {name} is {value!r}.", f"Valid are {', '.join(map(str, known))}.")
        if self.tier is not None:
            object.__setattr__(self, "tier", Tier(self.tier))

    def check_options(self, info: Mapping[str, Any]) -> None:
        """Raise BadOption for an invalid option; the tests themselves are not checked, since each row has its own."""
        self._setting(info, "reward", REWARDS)
        self._setting(info, "stop", STOPS)
        try:
            reading.check_options(info)
        except BadSuite as error:
            raise BadOption(str(error)) from error

    def __call__(
        self, response: str, gold: str | None = None, *, problem: str | None = None, info: Mapping[str, Any] = NO_INFO
    ) -> Verdict:
        try:
            suite = reading.read_suite(info)
            _check_imports(suite, self.python)
            reward = self._setting(info, "reward", REWARDS)
            run_all = reward == "pass_rate" or self._setting(info, "stop", STOPS) == "never"
        except BadSuite as error:
            return Verdict(None, Reason.VERIFIER_ERROR, evidence={"error": str(error)})
        except BadOption as error:
            return bad_option_verdict(error)
        stub = getattr(suite.tests, "stub", "")
        extracted = extract_code(response, suite.language, _entry_point(suite), stub or opened_block(problem or ""))
        if extracted is None:
            return Verdict(0.0, Reason.NO_ANSWER, evidence={"language": suite.language})
        return self._judge(_with_allowed_error(suite, problem), extracted, stub, reward, run_all)

    def gold_response(self, gold: str | None, solution: str | None) -> str | None:
        """Return the solution, or else gold, in a code block."""
        program = solution or gold
        if program is None:
            return None
        program = worked_program(program)
        fence = "~~~~" if "```" in program else "```"
        return f"{fence}\n{program}\n{fence}"

    def _setting(self, info: Mapping[str, Any], name: str, known: Sequence[str]) -> str:
        """Return a setting from the row's `info`, or else the verifier's own. Raises BadOption."""
        default: str = getattr(self, name)
        return word_option(info, name, known, default) if name in info else default

    def _judge(self, suite: Suite, extracted: Extracted, stub: str, reward: str, run_all: bool) -> Verdict:
        evidence: dict[str, object] = {"language": suite.language, "extraction": extracted.form}
        try:
            backend = self._backend()
            evidence["tier"] = backend.tier
            if isinstance(backend, Local) and backend.stronger_tier is not None:
                evidence["stronger_tier"] = backend.stronger_tier
            judged = _run(suite, extracted.code, stub, backend, run_all)
        except NotCompiled as error:
            return Verdict(0.0, Reason.UNREAD, extracted.code, {**evidence, "error": cut(str(error))})
        except (CannotJudge, SandboxError) as error:
            reason = getattr(error, "reason", Reason.SANDBOX_ERROR)
            return Verdict(None, reason, extracted.code, {**evidence, "error": cut(str(error))})
        verdict = verdict_of(judged, reward, evidence, extracted.code)
        is_unread = verdict.reason is Reason.MISMATCH and suite.language == PYTHON and parse(extracted.code) is None
        return replace(verdict, reason=Reason.UNREAD) if is_unread else verdict

    def _backend(self) -> Backend:
        local = Local(self.tier, self.python, self.hash_seed)
        if self.backend == "local":
            return local
        from truegold.verifiers.sandbox.sandboxfusion import backend_of

        return backend_of(self.backend, local)


def _check_imports(suite: Suite, python: str) -> None:
    """Raise BadSuite if test code imports a package that this interpreter does not have."""
    if isinstance(suite.tests, Asserts | UnitTest) and python == sys.executable:
        missing = missing_package(suite.tests.code)
        if missing is not None:
            raise BadSuite(f"the tests import {missing}, which is not installed for {python}")


def _with_allowed_error(suite: Suite, problem: str | None) -> Suite:
    """Return the suite with the error that the problem's text allows, unless its checker has a tolerance."""
    if not isinstance(suite.tests, Stdio) or problem is None or (allowed := allowed_error(problem)) is None:
        return suite
    return replace(suite, tests=replace(suite.tests, checker=with_allowed_error(suite.tests.checker, *allowed)))


def _run(suite: Suite, code: str, stub: str, backend: Backend, run_all: bool) -> Judged:
    tests = suite.tests
    if isinstance(tests, Stdio):
        return judge_stdio(tests, Program(suite.language, code), backend, suite.limits, run_all)
    if isinstance(tests, Inserted):
        return judge_inserted(tests, code, suite.language, backend, suite.limits, run_all)
    if isinstance(tests, Calls) and language_name_of(suite.language) in DRIVEN_LANGUAGES:
        return judge_native_calls(tests, code, suite.language, backend, suite.limits, run_all)
    if suite.language != PYTHON:
        raise CannotJudge(
            f"tests of type {type(tests).__name__.lower()!r} need Python (calls also support "
            f"{', '.join(sorted(DRIVEN_LANGUAGES))}); the language of this row is {suite.language!r}"
        )
    prelude = f"{tests.prelude}\n{stub_names(stub, _entry_point(suite) or '')}" if stub else tests.prelude
    if tests.entry_point:
        # The response may define the function as a method of a class.
        tests = replace(tests, entry_point=callable_in(code, tests.entry_point))
    source = TestedProgram(code, prelude, backend.local, suite.limits)
    return judge_calls(tests, source, run_all) if isinstance(tests, Calls) else judge_code(tests, source, run_all)


def _entry_point(suite: Suite) -> str | None:
    """Return the name that a program has to define: the suite's entry point, or a function that assertions call."""
    entry_point: str | None = getattr(suite.tests, "entry_point", None)
    if entry_point is None and isinstance(suite.tests, Asserts):
        return next(iter(functions_under_test(suite.tests.code)), None)
    return entry_point
