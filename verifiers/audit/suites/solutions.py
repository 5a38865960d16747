"""Runs worked solutions on their own tests, and repairs the tests so that they pass: step 2 of `vetting.py`.

    result of the worked solution                          diagnosis and repair
    a case passes in one run and fails in another          the case is flaky and is removed
    the solution reads past the end of its input           the input is cut off; the case is removed
    the solution needs 3 s, the limit is 2 s               the limit is raised
    output 0.333333, expected 0.3333                       numbers are compared with a tolerance
    output "2 1", expected "1 2", "in any order"           any order is accepted
    output "YES 3 4", expected "YES 4 3"                   several answers are right: a checker program is needed
    any other failure                                      the solution or the tests are wrong; a person has to decide

The problem's text, or the outputs of a worked solution, determine how outputs are compared:

    "You can print each letter in any case", outputs YES and NO        case is ignored
    "... error does not exceed 10^-4", outputs 0.33, 2                 numbers within 1e-4; 2 equals 2.0
    "Print the points in any order", outputs of several lines          lines in any order

The checker, which compares outputs, is only made more lenient, and only as far as the evidence shows. A checker program
of the tests is never changed. If several answers are right, only a checker program can judge. Two different outputs for
one input are a sign of several right answers if they are alike:

    "YES\\n0 0\\n3 4"   and  "YES\\n0 0\\n4 3"      alike: another solution of the same shape
    "PATH\\n2 5 1"     and  "PATH\\n2 5 1 7"      alike: the same first line, then a solution of another length
    "0\\n4\\n1\\n2"     and  "4\\n0\\n1\\n2"         alike: the same values in another order
    "17"             and  "18"                not alike: a single value differs
    "1\\n2\\n3"        and  "1\\n2\\n4"            not alike: one value for each of several questions
    "2\\n1 5\\n3 4"    and  "1\\n2 6"             alike only if the problem asks for a construction
    [1, 2, 3]        and  [3, 1, 2]           alike
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from truegold.verifiers.audit.suites.trials import CaseAttempt, Trial
from truegold.verifiers.audit.suites.vet_state import Severity, Spec, SuiteFinding, VetReason, VetState, evidence_text
from truegold.verifiers.code.outcomes import ONE_PROCESS
from truegold.verifiers.code.output_comparison import NUMBER_PATTERN, checker_of, read_spec, tolerance_options
from truegold.verifiers.code.suite.reading import Calls, Stdio
from truegold.verifiers.code.suite.statement import Statement
from truegold.verifiers.code.value_comparison import call_checker_of, read_call_spec
from truegold.verifiers.sandbox.execution import CPU_S_BOUNDS, Limits
from truegold.verifiers.verdict import Reason

STRETCH = 10.0
"""A worked solution that exceeds its limit is run again with this many times the limit."""

ROOM = 4.0
"""A raised limit is this many times the CPU time that the worked solution needs."""

MIN_RUNS = 2
"""Number of runs of a solution that is too slow for `options.runs` runs. Two runs can show that the results vary. A
solution slower than `options.max_repeat_s` runs once."""

SHUFFLES = 2
"""Maximum number of runs with the calls in another order."""
SHOWN_CASES = 20
"""Maximum number of indexes of cases in the evidence."""
EXPLAINED_CASES = 5
"""Maximum number of cases that the evidence describes."""

_NO_MODULE = re.compile(r"No module named '([\w.]{1,100})'")
_READS = re.compile(r"\binput\(|stdin|readline|\bread\(|\bnext\(|\.split\(|\bopen\(0")
"""Code in a traceback that reads input."""
_ENDS = re.compile(r"(?m)^(EOFError|ValueError|IndexError|StopIteration)\b")
"""Exceptions of a program whose input ends too early."""

Run = Sequence[CaseAttempt]
"""One attempt at each case."""

DEFAULT_TOLERANCE = 1e-6
"""The verifier's tolerance if a checker names none."""
LOOSE = 1e-4
"""Largest tolerance that is tried if the problem's text does not name one."""
MAX_WORDS = 8
"""If all outputs have at most this many different words, the words count as fixed answers, such as YES and NO."""
_INTEGER = re.compile(r"[+-]?\d+")
MAX_COMPARED_CHARS = 2**20
"""Maximum number of characters of an output that are compared."""
MIN_TEXT_CHARS = 3
"""Two different words count as alike only if they have the same length, and at least this many characters."""
MIN_DISTINCT = 3
"""The same values in another order count as alike only if at least this many values are different."""
Line = Sequence[str]
"""The words of a line of output."""


def run_solutions(state: VetState, programs: Sequence[str]) -> None:
    """Run the solutions, repair the tests if needed, and set `state.reference` to a solution that passes."""
    if not programs:
        state.report(VetReason.NO_REFERENCE, Severity.NOTE, {})
        return
    if state.dropped:
        return
    trials = {program: _run_repeatedly(state, program) for program in dict.fromkeys(programs)}
    main = max(trials, key=lambda program: sum(each.passed for trial in trials[program] for each in trial.attempts))
    diagnosis = diagnose(state.suite.tests, trials[main], state.statement)
    state.findings += diagnosis.findings
    if any(finding.severity is Severity.DROP for finding in diagnosis.findings):
        return
    state.repair(diagnosis.without, diagnosis.checker)
    runs = _run_repeatedly(state, main) if diagnosis.without or diagnosis.checker else trials[main]
    state.reference, state.trial = main, max(runs, key=lambda trial: trial.cpu_s or 0.0)
    _check_agreement(state, [program for program in trials if program != main])
    _check_order(state, main)
    _check_headroom(state, state.trial)


def _run_repeatedly(state: VetState, program: str) -> list[Trial]:
    """Run a program with different hash seeds; raise the suite's limit if the program needs more time."""
    first = state.bench().run(program)
    if first.timed_out:
        if (longer := _stretch(state, program, first)) is None:
            return [first]
        first = longer
    options = state.options
    fewest = MIN_RUNS if first.spent_s <= options.max_repeat_s else 1
    runs = max(options.affordable(options.runs, first.spent_s), min(options.runs, fewest))
    bench = state.bench()
    return [first, *(bench.run(program, hash_seed=seed) for seed in range(1, runs))]


def _stretch(state: VetState, program: str, first: Trial) -> Trial | None:
    """Run the cases that timed out again with a higher limit, and raise the suite's limit to the time that they need.

    Returns None if the limit cannot be raised, or if a case still times out.
    """
    limit = state.suite.limits.cpu_s
    allowed = min(STRETCH * limit, state.options.max_repeat_s)
    if allowed <= limit:
        return None
    longer = _run_longer(state, program, first, replace(state.suite.limits, cpu_s=allowed))
    if longer is None or longer.timed_out or longer.cpu_s is None:
        return None
    _raise_limit(state, longer.cpu_s)
    return longer


def _run_longer(state: VetState, program: str, first: Trial, limits: Limits) -> Trial | None:
    """Run the cases that timed out again, or all cases if they share a process.

    Returns None if a case times out again, or if all of them together take too long.
    """
    bench = state.bench()
    if not isinstance(state.suite.tests, Stdio):
        return bench.run(program, limits=limits)
    attempts, times, spent = list(first.attempts), [first.cpu_s or 0.0], 0.0
    for index in [index for index, attempt in enumerate(attempts) if attempt.timed_out]:
        if spent > state.options.max_repeat_s:
            return None
        longer = bench.run(program, limits=limits, order=[index])
        attempts[index] = longer.attempts[0]
        times.append(longer.cpu_s or 0.0)
        spent += longer.spent_s
        if attempts[index].timed_out:
            return None
    return replace(first, attempts=attempts, cpu_s=max(times), spent_s=first.spent_s + spent)


def _raise_limit(state: VetState, needed: float) -> None:
    limit = state.suite.limits.cpu_s
    raised = float(min(max(math.ceil(ROOM * needed), limit), CPU_S_BOUNDS[1]))
    evidence = {"needs_s": needed, "limit_s": limit, "raised_to_s": raised}
    state.report(VetReason.TIGHT_LIMIT, Severity.REPAIR, evidence)
    state.repair(cpu_s=raised)


def _check_agreement(state: VetState, programs: Sequence[str]) -> None:
    """Run the other worked solutions on the repaired tests."""
    failing = {}
    for position, program in enumerate(programs, 1):
        findings = diagnose(state.suite.tests, _run_repeatedly(state, program), state.statement).findings
        checker = next((finding for finding in findings if finding.reason is VetReason.NEEDS_CHECKER), None)
        if checker is not None:
            state.findings.append(checker)
            return
        if findings:
            failing[str(position)] = dict(findings[0].evidence)
        else:
            state.agreeing.append(program)
    if failing:
        suggestion = "find out which of the solutions is right"
        state.report(VetReason.REFERENCES_DISAGREE, Severity.FLAG, {"failing": failing}, suggestion)


def _check_order(state: VetState, program: str) -> None:
    """Run the calls in other orders, and flag tests that depend on their order."""
    spent = state.trial.spent_s if state.trial is not None else 0.0
    for seed in range(state.options.affordable(SHUFFLES, spent)):
        if (trial := state.bench().run_shuffled(program, seed)) is None:
            return
        failing = [index for index, attempt in enumerate(trial.attempts) if not attempt.passed]
        if failing:
            evidence = {"cases": failing[:SHOWN_CASES], "count": len(failing)}
            state.report(VetReason.ORDER_DEPENDENT, Severity.FLAG, evidence, "make the cases independent of each other")
            return


def _check_headroom(state: VetState, trial: Trial) -> None:
    if trial.isolation == ONE_PROCESS:
        state.report(VetReason.ONE_PROCESS, Severity.NOTE, {})
    if trial.cpu_s is not None and trial.cpu_s > state.options.max_headroom * state.suite.limits.cpu_s:
        _raise_limit(state, trial.cpu_s)


@dataclass(slots=True)
class Diagnosis:
    """The reasons why a solution fails, and the repair of its tests. Without findings the solution passes."""

    findings: list[SuiteFinding] = field(default_factory=list)
    without: set[int] = field(default_factory=set)
    """The indexes of the cases to remove."""
    checker: dict[str, Any] | None = None
    """The new checker, or None to keep the old one."""


def diagnose(tests: object, trials: Sequence[Trial], statement: Statement) -> Diagnosis:
    """Return the reasons why a solution fails. trials: runs of this solution on all cases."""
    if (error := next((trial.error for trial in trials if trial.error is not None), None)) is not None:
        return Diagnosis([missing_package(error) or _solution_fails({"error": evidence_text(error)})])
    runs = [_fill_up(trial) for trial in trials]
    failing = [index for index in range(len(runs[0])) if not all(run[index].passed for run in runs)]
    if not failing:
        return Diagnosis()
    messages = (f"{runs[0][index].why}\n{runs[0][index].stderr}" for index in failing)
    if missing := next(filter(None, map(missing_package, messages)), None):
        return Diagnosis([missing])
    if isinstance(tests, Stdio | Calls):
        return _diagnose_cases(tests, runs, failing, statement)
    evidence = _show_cases(runs, failing)
    if _are_flaky(runs, failing):  # Cases cannot be removed from test code automatically.
        flaky = SuiteFinding(VetReason.FLAKY, Severity.DROP, evidence, "remove the flaky assertions")
        return Diagnosis([flaky])
    return Diagnosis([_solution_fails(evidence)])


def _diagnose_cases(tests: Stdio | Calls, runs: Sequence[Run], failing: list[int], statement: Statement) -> Diagnosis:
    diagnosis = Diagnosis()
    cut_off = [index for index in failing if all(_ran_out_of_input(run[index]) for run in runs)]
    if cut_off and len(cut_off) <= len(runs[0]) // 2:
        diagnosis.without |= set(cut_off)
        diagnosis.findings.append(SuiteFinding(VetReason.TRUNCATED, Severity.REPAIR, _show_cases(runs, cut_off)))
        failing = [index for index in failing if index not in cut_off]
    if not failing:
        return diagnosis
    evidence = _show_cases(runs, failing, _expected(tests))
    has_program = has_own_checker(tests)
    if not has_program and (better := _better_checker(tests, runs, failing, statement)) is not None:
        reason, diagnosis.checker = better[0], dict(better[1])
        evidence["checker"] = diagnosis.checker
        diagnosis.findings.append(SuiteFinding(reason, Severity.REPAIR, evidence))
    elif not has_program and _look_right(tests, runs, failing, statement):
        diagnosis.findings.append(needs_checker("outputs", evidence, statement, tests))
    elif _are_flaky(runs, failing):
        diagnosis.without |= set(failing)
        diagnosis.findings.append(SuiteFinding(VetReason.FLAKY, Severity.REPAIR, evidence))
    else:
        diagnosis.findings.append(_solution_fails(evidence))
    return diagnosis


def _are_flaky(runs: Sequence[Run], failing: Sequence[int]) -> bool:
    return all(any(run[index].passed for run in runs) for index in failing)


def missing_package(message: str) -> SuiteFinding | None:
    """Return the finding for a missing package if Python's message names one, else None."""
    if (module := _NO_MODULE.search(message)) is None:
        return None
    suggestion = "install it, or name an interpreter that has it"
    return SuiteFinding(VetReason.MISSING_PACKAGE, Severity.DROP, {"module": module[1]}, suggestion)


def _better_checker(
    tests: Stdio | Calls, runs: Sequence[Run], failing: Sequence[int], statement: Statement
) -> tuple[VetReason, Spec] | None:
    """Return the first plausible checker that accepts every output of every run, with its reason, or None."""
    if statement.several_answers is not None or any(run[index].output is None for run in runs for index in failing):
        return None
    varies = any(repr(run[index].output) != repr(runs[0][index].output) for run in runs for index in failing)
    for reason, checker, is_sure in candidate_checkers(tests, statement):
        # If the order of a right solution's output varies between runs, the problem cannot require an order.
        if (is_sure or varies) and _accepts(tests, checker, runs, failing):
            return reason, checker
    return None


def _accepts(tests: Stdio | Calls, checker: Spec, runs: Sequence[Run], failing: Sequence[int]) -> bool:
    differs: Any = checker_of(checker) if isinstance(tests, Stdio) else call_checker_of(checker)
    expected = _expected(tests)
    return all(differs(expected[index], run[index].output) is None for run in runs for index in failing)


def _look_right(tests: Stdio | Calls, runs: Sequence[Run], failing: Sequence[int], statement: Statement) -> bool:
    """Return whether the failures look like other right answers, by the problem's text or by the outputs."""
    # A timeout does not show an answer; a crash shows that the solution is wrong.
    attempts = [(index, run[index]) for run in runs for index in failing]
    failures = [(index, attempt) for index, attempt in attempts if not (attempt.passed or attempt.timed_out)]
    if not failures or any(attempt.output is None or attempt.reason is not Reason.MISMATCH for _, attempt in failures):
        return False
    expected = _expected(tests)
    return statement.several_answers is not None or are_all_alike(
        [(expected[index], attempt.output) for index, attempt in failures], statement.constructs is not None
    )


def _ran_out_of_input(attempt: CaseAttempt) -> bool:
    """Return whether the program failed because its input ended."""
    if attempt.passed or attempt.output is not None:
        return False
    errors = _ENDS.findall(attempt.stderr)
    return bool(errors) and (errors[-1] == "EOFError" or _READS.search(attempt.stderr) is not None)


def _fill_up(trial: Trial) -> Run:
    """Return an attempt at every case; cases without a result, after a process died, count as failed."""
    missing = trial.total - len(trial.attempts)
    return [*trial.attempts, *[CaseAttempt(False, Reason.MISMATCH, "the program ended before this case")] * missing]


def _expected(tests: Stdio | Calls) -> list[Any]:
    return [case.output if isinstance(tests, Stdio) else case.expected for case in tests.cases]  # type: ignore[union-attr]


_ADVICE = {
    "PermissionError": "the sandbox forbids an operation of the solution: judge it elsewhere",
    "FileNotFoundError": "add the missing files to the tests, or correct the solution or the tests",
    "": "correct the solution or the tests",
}
"""Maps the error of a solution to advice."""


def _solution_fails(evidence: dict[str, Any]) -> SuiteFinding:
    advice = next(text for error, text in _ADVICE.items() if error in str(evidence))
    return SuiteFinding(VetReason.REFERENCE_FAILS, Severity.DROP, evidence, advice)


def _show_cases(runs: Sequence[Run], cases: Sequence[int], expected: Sequence[Any] | None = None) -> dict[str, Any]:
    """Return evidence on the first few cases."""
    entries = []
    for index in cases[:EXPLAINED_CASES]:
        attempt = next((run[index] for run in runs if not run[index].passed), runs[0][index])
        passes = sum(run[index].passed for run in runs)
        entry: dict[str, Any] = {"case": index, "passes": f"{passes} of {len(runs)} runs"}
        if attempt.why:
            entry["why"] = evidence_text(attempt.why)
        if expected is not None and attempt.output is not None:
            entry |= {"expected": evidence_text(expected[index]), "got": evidence_text(attempt.output)}
        entries.append(entry)
    return {"count": len(cases), "of": len(runs[0]), "cases": entries}


CheckerCandidate: TypeAlias = tuple[VetReason, Spec, bool]
"""A checker to try if a worked solution fails: the fault of the tests, the checker, and whether the checker is right
beyond doubt if the solution passes with it."""


def has_own_checker(tests: object) -> bool:
    """Return whether a program of the tests (a checker or an interactor) judges the outputs."""
    if getattr(tests, "interactor", None) is not None:
        return True
    checker = getattr(tests, "checker", None)
    return isinstance(checker, Mapping) and checker.get("type") == "program"


def candidate_checkers(tests: Stdio | Calls, statement: Statement) -> Iterator[CheckerCandidate]:
    """Yield checkers that may explain why a right program fails, the strictest first."""
    spec = checker_spec(tests)
    is_order_free = statement.any_order is not None
    if isinstance(tests, Calls):
        tolerance = max(statement.tolerance or LOOSE, DEFAULT_TOLERANCE)
        yield VetReason.TOLERANCE, {**spec, "abs_tol": tolerance, "rel_tol": tolerance}, True
        yield VetReason.ANY_ORDER, {**spec, "unordered": True}, is_order_free
        return
    if spec["type"] not in ("tokens", "floats"):
        # `tokens` ignores blanks at the ends of lines and the number of blanks between words.
        spec = {"type": "tokens", **{key: value for key, value in spec.items() if key == "case_sensitive"}}
        yield VetReason.TOLERANCE, spec, False
    tolerance = max(statement.tolerance or DEFAULT_TOLERANCE, DEFAULT_TOLERANCE)
    for size in (tolerance, LOOSE) if statement.tolerance is None else (tolerance,):
        floats = {**spec, "type": "floats", "abs_tol": size, "rel_tol": size}
        yield VetReason.TOLERANCE, floats, True
    yield VetReason.CASE, {**spec, "case_sensitive": False}, True
    for unit in ("tokens_in_line", "lines", "tokens"):
        yield VetReason.ANY_ORDER, {**spec, "unordered": unit}, is_order_free


def checker_spec(tests: Stdio | Calls) -> dict[str, Any]:
    """Return the tests' checker as an object with all its options, also if the tests use a short name."""
    if isinstance(tests, Calls):
        return {"type": "values", **read_call_spec(tests.checker, "checker")}
    kind, options = read_spec(tests.checker, "checker")
    return {"type": kind if kind in ("floats", "lines", "exact", "program") else "tokens", **options}


def requested_checker(tests: Stdio | Calls, statement: Statement) -> tuple[dict[str, Any] | None, list[SuiteFinding]]:
    """Return the checker that the problem's text requires (None for no change), and findings on the changes."""
    spec = checker_spec(tests)
    findings: list[SuiteFinding] = []
    for reason, changes, sentence in _changes(tests, spec, statement):
        if changes is None:
            suggestion = "set tests.checker to one that accepts any order that the problem allows"
            findings.append(SuiteFinding(reason, Severity.FLAG, {"said": sentence}, suggestion))
        else:
            spec = {**spec, **changes}
            findings.append(SuiteFinding(reason, Severity.REPAIR, {"said": sentence, "checker": dict(spec)}))
    return (spec if spec != checker_spec(tests) else None), findings


def _changes(
    tests: Stdio | Calls, spec: dict[str, Any], statement: Statement
) -> Iterator[tuple[VetReason, dict[str, Any] | None, str | None]]:
    """Yield a reason, the checker's options to set (None if none fits), and the sentence that requires them."""
    if isinstance(tests, Calls):
        if statement.order_of_output and not spec.get("unordered") and not statement.several_answers:
            lists = all(isinstance(case.expected, list) for case in tests.cases)
            yield VetReason.ANY_ORDER, {"unordered": True} if lists else None, statement.order_of_output
        return
    if spec["type"] not in ("tokens", "floats"):
        return
    outputs = [case.output for case in tests.cases]
    if statement.any_case and spec.get("case_sensitive", True) and _have_few_words(outputs):
        yield VetReason.CASE, {"case_sensitive": False}, statement.any_case
    if changes := _tolerance_options(spec, outputs, statement):
        kind = "a relative error" if statement.tolerance_is_relative else "an error"
        yield VetReason.TOLERANCE, changes, f"{kind} of {statement.tolerance:g} is allowed"
    if statement.order_of_output and not spec.get("unordered") and not statement.several_answers:
        unit = _unordered_unit(outputs)
        yield VetReason.ANY_ORDER, {"unordered": unit} if unit else None, statement.order_of_output


def _have_few_words(outputs: Sequence[str]) -> bool:
    words = {token.casefold() for output in outputs for token in output.split() if token.isalpha()}
    return 0 < len(words) <= MAX_WORDS


def _tolerance_options(spec: dict[str, Any], outputs: Sequence[str], statement: Statement) -> dict[str, Any] | None:
    if statement.tolerance is None:
        return None
    tokens = [token for output in outputs for token in output.split()]
    if not tokens or not all(NUMBER_PATTERN.fullmatch(token) for token in tokens):
        return None
    changes: dict[str, Any] = {}
    if spec["type"] == "tokens" and any(_INTEGER.fullmatch(token) for token in tokens):
        changes["type"] = "floats"
    for option, size in tolerance_options(statement.tolerance, statement.tolerance_is_relative).items():
        if spec.get(option, 0.0) < size:
            changes[option] = size
    return changes


def _unordered_unit(outputs: Sequence[str]) -> str | None:
    """Return the value of `unordered` that fits the outputs, or None if none clearly does."""
    shapes = [[len(line.split()) for line in output.splitlines() if line.strip()] for output in outputs]
    longest = [max(shape, default=0) for shape in shapes]
    if all(len(shape) <= 2 for shape in shapes) and max(longest, default=0) > 1:
        return "tokens_in_line"
    if all(length <= 1 for length in longest) and any(len(shape) > 1 for shape in shapes):
        return "lines"
    return None


AnswersSign: TypeAlias = Literal["text", "outputs", "same_input"]
"""The evidence for several right answers: the problem's text, an output of the worked solution that resembles the
expected one (`are_alike`), or two cases with the same input and outputs that resemble each other."""


CHECKER_SKELETON = """\
def check(input, output, answer):
    # {said}
    given, got, jury = input.split(), output.split(), answer.split()
    if got == jury:
        return True
    # Return whether `got` is a right answer, as good as `jury`.
    raise NotImplementedError
"""
"""A checker for a person to complete; it accepts only the expected answer."""


def needs_checker(
    sign: AnswersSign, evidence: dict[str, Any], statement: Statement, tests: Stdio | Calls
) -> SuiteFinding:
    """Return the finding that several answers are right, with a checker to complete.

    If a sentence of the problem says so, that sentence replaces other evidence.
    """
    if statement.several_answers is not None:
        sign = "text"
    sentence = statement.several_answers or statement.any_order or statement.constructs
    quote = " ".join((sentence or "Several answers are right.").split())
    evidence = {"sign": sign, "said": sentence, **evidence}
    suggestion = "list the right answers and set tests.checker to values with any_of"
    if isinstance(tests, Stdio):
        code = CHECKER_SKELETON.format(said=evidence_text(quote))
        evidence["proposal"] = {"type": "program", "code": code}
        suggestion = "complete the proposed checker and set tests.checker to it"
    return SuiteFinding(VetReason.NEEDS_CHECKER, Severity.DROP, evidence, suggestion)


def are_all_alike(pairs: Sequence[tuple[Any, Any]], constructs: bool = False) -> bool:
    """Return whether there are pairs of outputs and each pair is alike. constructs: see `are_alike`."""
    return bool(pairs) and all(are_alike(left, right, constructs) for left, right in pairs)


def are_alike(left: Any, right: Any, constructs: bool = False) -> bool:
    """Return whether two different outputs look like two right answers.

    constructs: whether the problem asks for a construction.
    """
    if isinstance(left, str) and isinstance(right, str):
        return _are_texts_alike(_lines(left[:MAX_COMPARED_CHARS]), _lines(right[:MAX_COMPARED_CHARS]), constructs)
    collections = (list, tuple, dict, set)
    return isinstance(left, collections) and isinstance(right, collections) and len(left) == len(right) > 1


def _lines(text: str) -> list[Line]:
    return [line.split() for line in text.splitlines() if line.strip()]


def _are_texts_alike(left: Sequence[Line], right: Sequence[Line], constructs: bool) -> bool:
    has_same_shape = [len(line) for line in left] == [len(line) for line in right]
    differing = [pair for pair in zip(left, right, strict=False) if pair[0] != pair[1]]
    if has_same_shape and all(_are_lines_alike(*pair, constructs) for pair in differing):
        return True
    if _are_reordered(left, right):
        return True
    if constructs:
        return _has_list(left) and _has_list(right)
    return _has_list(left[1:]) and _has_list(right[1:]) and left[0] == right[0]


def _has_list(lines: Sequence[Line]) -> bool:
    return any(len(line) > 1 for line in lines)


def _are_lines_alike(left: Line, right: Line, constructs: bool) -> bool:
    if len(left) > 1:
        return True
    has_digit = any(char.isdigit() for char in left[0] + right[0])  # This covers 17, 5/6 and 0x1f.
    # In a construction, digits such as 0110 may be a text.
    is_text = not has_digit or (constructs and len(left[0]) > MIN_TEXT_CHARS)
    return is_text and len(left[0]) == len(right[0]) >= MIN_TEXT_CHARS


def _are_reordered(left: Sequence[Line], right: Sequence[Line]) -> bool:
    values = Counter(word for line in left for word in line)
    return len(values) >= MIN_DISTINCT and values == Counter(word for line in right for word in line)
