"""Checks a verifier against the contract of `truegold.verifiers.verdict`: `check("math")`. The lines of the contract:

    gold passes itself       tells wrong from right    returns a verdict         deterministic
    same in a fresh process  picklable                 works in a thread         safe in many threads
    works in asyncio         evidence is JSON          stands a missing gold     stands hostile answers and golds

All checks run in separate processes, so that a hang or a crash is a finding. The `ok` of a result is None if the check
was not possible. Not covered: errors of verdicts (see `audit_report.py`), and faults that show only on other machines.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from operator import attrgetter
from typing import Any

from truegold.verifiers.audit.made_answers import HOSTILE
from truegold.verifiers.audit.probe import (
    DEFAULT_CPU_S,
    DEFAULT_MEMORY_BYTES,
    DEFAULT_WALL_S,
    FEW_GOLDS,
    SLOW_S,
    Observed,
    VerdictCount,
    VerifierNotLoaded,
    VerifierProbe,
    load,
)
from truegold.verifiers.response_forms import RESPONSE_FORMS, fill_form
from truegold.verifiers.running.batch import Item
from truegold.verifiers.verdict import Reason, Verifier

STANDARD_GOLDS = ("42", "-7", "3.5", "\\frac{1}{2}", "(1,2)", "x^2+1", "B", "\\text{even}", "Paris")
"""The default golds. Golds that the verifier does not judge are ignored."""

MAX_LOST = 3
"""Number of lost processes after which a check ends, since each may have taken a whole deadline."""

DETERMINISTIC, TELLS_APART, PASSES_ITSELF = "deterministic", "tells wrong from right", "gold passes itself"
ALWAYS_CHECKED = (PASSES_ITSELF, TELLS_APART, "returns a verdict", DETERMINISTIC, "evidence is JSON")
"""Lines of the contract that are checked even if the time is up."""
NO_TIME = "not checked: no time was left"
STANDS_ANSWERS, STANDS_GOLDS = "stands hostile answers", "stands hostile golds"

ROUNDS = 10
"""Maximum number of times that each thread judges every row. It is more than 1, since races are rare."""
PASSES = 5
"""Number of times that the checks without threads judge every row, for estimating the total number of verdicts."""
FORM_REMEDY = (
    "Gold was refused in every form that was tried. Define the form of a right response: "
    "@verifier(gold_response=\"\\\\boxed{{{gold}}}\"), or --gold-response '\\boxed{{{gold}}}'."
)

NONSENSE = ("", "</answer>", "<think> It could be 5, or", "\\boxed{", "\x00 \ud800", "word " * 4_000_000)
"""Responses of very different form and length. A verifier that accepts all of them accepts everything."""

_PAYS_ALL = "it accepts every response: right, wrong, empty and very long ones"
_PAYS_NOTHING = "it refuses every response, even gold itself; pass golds of the kind that it judges"

MAX_SHOWN = 8
"""Maximum number of findings that are kept for each check."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result for one line of the contract."""

    name: str
    ok: bool | None
    """Whether the verifier keeps this line, or None if it was not checked."""
    detail: str
    """The result in words."""
    findings: tuple[str, ...] = ()
    """The ways in which the line was broken."""


def find_unchecked(checked: Sequence[CheckResult]) -> list[str]:
    """Return the names of unchecked lines if no gold fits the verifier, else an empty list.

    Single unchecked lines are normal, for example for a verifier that does not read gold. But if not even determinism
    could be checked, nothing was judged, and the contract must not count as kept.
    """
    unchecked = [line.name for line in checked if line.ok is None]
    return unchecked if DETERMINISTIC in unchecked else []


@dataclass
class _Session:
    """The state that the checks share."""

    probe: VerifierProbe
    new_probe: Callable[[], VerifierProbe]
    end: float
    """The time of the monotonic clock after which no check begins."""
    golds: list[str] = field(default_factory=list)
    """Golds that the verifier judges."""
    failures: list[str] = field(default_factory=list)
    """Golds that did not pass themselves, each with the reason."""
    rows: list[Item] = field(default_factory=list)
    """Rows with these golds and right, wrong and empty responses."""
    first: list[Observed] = field(default_factory=list)
    """The first verdict on each of the rows."""
    refuses: bool = False
    """Whether the verifier refused a wrong or empty response."""
    left_out: dict[bool, int] = field(default_factory=dict)
    """Numbers of hostile texts that were not tried for lack of time: as answers (key False) and as golds (key True)."""


def check(
    verifier: Verifier | str,
    *,
    golds: Sequence[str] = (),
    info: Mapping[str, Any] | None = None,
    cpu_s: float = DEFAULT_CPU_S,
    wall_s: float = DEFAULT_WALL_S,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
    gold_response: str | None = None,
    seconds: float = math.inf,
    on_verdicts: Callable[[int, int], None] | None = None,
) -> list[CheckResult]:
    """Return the result for every line of the contract, in a fixed order.

    verifier: the name or the object. golds: answers of the kind that the verifier judges; standard ones by default.
    info: the `info` of all verdicts. cpu_s, wall_s, memory_bytes: the limits of one verdict. gold_response: a template
    of a right response, such as `\\boxed{{{gold}}}`; by default the form is found by trying. seconds: checks that have
    not begun by then are left out. on_verdicts: called with the number of verdicts so far and the estimated total.
    """
    load(verifier)
    count = VerdictCount(on_verdicts)

    def new_probe() -> VerifierProbe:
        return VerifierProbe(verifier, cpu_s, wall_s, memory_bytes, info, gold_response, count.add)

    try:
        with new_probe() as probe:
            session = _Session(probe, new_probe, time.monotonic() + seconds)
            _prepare(session, golds)
            planned = len(session.rows) * (PASSES + rounds_of(session)) + 2 * len(HOSTILE)
            in_time = (session.end - time.monotonic()) / max(probe.verdict_s, 1e-9)
            count.total = count.so_far + max(1, int(min(planned, in_time)))
            return [_check_line(session, name) for name in _CHECKS]
    except VerifierNotLoaded as error:
        why = f"it cannot be loaded in another process: {error}"
        rest = [CheckResult(name, None, "not checked: it is not picklable") for name in _CHECKS if name != "picklable"]
        return [CheckResult("picklable", False, "broken", (why,)), *rest]


def assert_contract(
    verifier: Verifier | str,
    *,
    golds: Sequence[str] = (),
    info: Mapping[str, Any] | None = None,
    cpu_s: float = DEFAULT_CPU_S,
    wall_s: float = DEFAULT_WALL_S,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
) -> None:
    """Raise AssertionError with every broken line of the contract, for your tests; the arguments are those of `check`.

    def test_my_verifier_keeps_the_contract():
        assert_contract("my_package/checks.py:unit_price", golds=["2.50 USD/kg"])

    It also raises if no gold fits the verifier, since nothing can be checked then: pass `golds`.
    """
    __tracebackhide__ = True  # pytest then shows the caller's line.
    contract = check(verifier, golds=golds, info=info, cpu_s=cpu_s, wall_s=wall_s, memory_bytes=memory_bytes)
    broken = [line for line in contract if line.ok is False or (line.ok is None and line.name == DETERMINISTIC)]
    if broken:
        lines = [f"{verifier!r} breaks {len(broken)} of {len(contract)} lines of the contract:"]
        for line in broken:
            lines.append(f"  {line.name}: {line.detail}")
            lines += [f"    {finding}" for finding in line.findings]
        raise AssertionError("\n".join(lines))


def _prepare(session: _Session, golds: Sequence[str]) -> None:
    probe, right = session.probe, list[Item]()
    probe.read_form(golds or STANDARD_GOLDS)
    for gold in golds or STANDARD_GOLDS:
        if len(session.golds) >= FEW_GOLDS and probe.verdict_s > SLOW_S:
            break
        response, failure = probe.gold_response(gold)
        row = probe.row(probe.respond(gold) if response is None else response, gold)
        observed = probe.judge(row.response, gold)
        if failure or observed.failure:
            session.failures.append(f"{gold!r}: {failure or observed.failure}")
        elif observed.score is not None or golds:
            right.append(row)
            if response is not None:
                session.golds.append(gold)
                session.failures += [] if observed.paid else [f"{gold!r} got {observed.score} ({observed.reason})"]
        if observed.process_lost and len(session.failures) >= MAX_LOST:
            break
    wrong = [probe.row(a.response, b.gold) for a, b in pairwise([*right, *right[:1]]) if a.gold != b.gold]
    empty = [probe.row(text, row.gold) for row in right[:1] for text in ("", "I do not know.", ":")]
    session.rows = [*right, *wrong, *empty]
    session.first = [probe.judge(row.response, row.gold) for row in session.rows]
    session.refuses = not all(observed.paid for observed in session.first[len(right) :])


def _tells_apart(session: _Session) -> Iterator[str] | None:
    """Return findings, or None for a verifier that does not depend on gold, such as a verifier of form or length.

    Such a verifier accepts all wrong answers and refuses a part of `NONSENSE`.
    """
    if not session.refuses:
        gold = session.rows[0].gold if session.rows else STANDARD_GOLDS[0]
        return iter([_PAYS_ALL]) if all(session.probe.judge(text, gold).paid for text in NONSENSE) else None
    scores = {observed.score for observed in session.first}
    if scores == {0.0}:
        forms = (session.probe.judge(fill_form(form, gold), gold) for gold in session.golds for form in RESPONSE_FORMS)
        return iter(()) if any(observed.paid for observed in forms) else iter([_PAYS_NOTHING])
    return iter(())


def _deterministic(session: _Session) -> Iterator[str] | None:
    return _compare(session, enumerate(session.probe.judge(row.response, row.gold) for row in session.rows))


def _fresh_process(session: _Session) -> Iterator[str] | None:
    with session.new_probe() as fresh:
        observations = [fresh.judge(row.response, row.gold) for row in session.rows]
    return _compare(session, enumerate(observations))


def _picklable(session: _Session) -> Iterator[str] | None:
    try:
        return _compare(session, session.probe.judge_in("pickled", session.rows))
    except VerifierNotLoaded as error:
        return iter([f"it cannot be pickled: {error}"])


def _same_verdicts(way: str, session: _Session) -> Iterator[str] | None:
    rounds = rounds_of(session) if way == "threads" else 1
    return _compare(session, session.probe.judge_in(way, session.rows, rounds) if session.rows else ())


def rounds_of(session: _Session) -> int:
    """Return the number of times that each thread judges every row within the deadline, at most `ROUNDS`."""
    one_round_s = max(session.probe.verdict_s * len(session.rows), 1e-6)
    return min(ROUNDS, max(1, int(session.probe.wall_s / one_round_s)))


def _describe_faults(fault: Callable[[Observed], str | None], session: _Session) -> Iterator[str] | None:
    """Return a line for each ordinary response whose verdict has a fault, or None without verdicts."""
    if not session.first:
        return None
    observed_rows = zip(session.rows, session.first, strict=True)
    return (f"{_describe_row(row)}: {fault(observed)}" for row, observed in observed_rows if fault(observed))


def _no_gold(session: _Session) -> Iterator[str]:
    for gold in (None, "", "   "):
        for response in ("", fill_form("boxed", "5"), fill_form("boxed", "")):
            observed = session.probe.judge(response, gold)
            # A function that raises here is not at fault: `@verifier` returns a verdict without a score.
            is_fault = observed.failure and observed.reason is not Reason.VERIFIER_ERROR
            if is_fault or (observed.paid and session.refuses):
                yield f"gold {gold!r}, response {response!r}: {observed.failure or 'got the full score'}"


def _stands_hostile(as_gold: bool, session: _Session) -> Iterator[str]:
    """Yield findings on hostile cases, until too many processes are lost. as_gold: exchange answer and gold."""
    # A verifier that does not read mathematics need not match spellings such as full-width digits.
    reads_mathematics = session.probe.judge(session.probe.respond("\\frac{2}{4}"), "\\frac{1}{2}").paid
    lost = 0
    for tried, case in enumerate(HOSTILE):
        if time.monotonic() > session.end:
            session.left_out[as_gold] = len(HOSTILE) - tried
            return
        answer, gold = (case.gold, case.answer) if as_gold else (case.answer, case.gold)
        observed = session.probe.judge(session.probe.respond(answer), gold)
        if observed.cpu_s > session.probe.cpu_s and not observed.process_lost:
            # The first verdict may include loading, so it is repeated. The blank avoids a cached verdict.
            observed = session.probe.judge(f"{session.probe.respond(answer)} ", gold)
        finding = _describe_cost(session, observed)
        is_refused_match = case.expected == "match" and observed.score is not None and not observed.paid
        if finding is None and not as_gold and case.expected == "no_match" and observed.paid and session.refuses:
            finding = "got the full score for a wrong answer"
        elif finding is None and not as_gold and is_refused_match and reads_mathematics:
            finding = f"got {observed.score} ({observed.reason}) for a right answer"
        if finding is not None:
            yield f"{case.name}{' as gold' if as_gold else ''}: {finding}"
        lost += observed.process_lost
        if lost >= MAX_LOST:
            yield "stopped here: too many processes lost"
            return


_CHECKS: dict[str, Callable[[_Session], Iterator[str] | None]] = {
    PASSES_ITSELF: lambda session: iter(session.failures) if session.golds or session.failures else None,
    TELLS_APART: _tells_apart,
    "returns a verdict": partial(_describe_faults, attrgetter("failure")),
    DETERMINISTIC: _deterministic,
    "same in a fresh process": _fresh_process,
    "picklable": _picklable,
    "works in a thread": partial(_same_verdicts, "thread"),
    "safe in many threads": partial(_same_verdicts, "threads"),
    "works in asyncio": partial(_same_verdicts, "task"),
    "evidence is JSON": partial(_describe_faults, attrgetter("not_json")),
    "stands a missing gold": _no_gold,
    STANDS_ANSWERS: partial(_stands_hostile, False),
    STANDS_GOLDS: partial(_stands_hostile, True),
}


def _check_line(session: _Session, name: str) -> CheckResult:
    if time.monotonic() > session.end and name not in ALWAYS_CHECKED:
        return CheckResult(name, None, NO_TIME)
    findings = _CHECKS[name](session)
    if findings is None:
        if name == TELLS_APART:
            return CheckResult(name, None, "not checked: no answer was refused for any gold")
        return CheckResult(name, None, "not checked: no gold fits it; pass golds of the kind that it judges")
    listed = list(findings)
    left_out = session.left_out.get(name == STANDS_GOLDS, 0) if name in (STANDS_ANSWERS, STANDS_GOLDS) else 0
    if not listed and left_out == len(HOSTILE):
        return CheckResult(name, None, NO_TIME)
    missed = f", {left_out} of {len(HOSTILE)} left out for lack of time" if left_out else ""
    if not listed:
        return CheckResult(name, True, f"kept{missed}")
    more = f", {len(listed)} findings" if len(listed) > 1 else ""
    remedy = f". {FORM_REMEDY}" if name == PASSES_ITSELF and len(session.failures) >= len(session.golds) else ""
    return CheckResult(name, False, f"broken{more}{missed}{remedy}", tuple(listed[:MAX_SHOWN]))


def _compare(session: _Session, verdicts: Iterable[tuple[int, Observed]]) -> Iterator[str] | None:
    """Return a line for each row with a verdict that differs from its first verdict, or None without rows."""
    if not session.rows:
        return None
    changed: dict[int, str] = {}
    for index, again in verdicts:
        before = session.first[index]
        if again.outcome != before.outcome and index not in changed:
            outcomes = f"{_describe_outcome(before)}, then {_describe_outcome(again)}"
            changed[index] = f"{_describe_row(session.rows[index])}: {outcomes}"
    return iter(changed.values())


def _describe_cost(session: _Session, observed: Observed) -> str | None:
    if observed.failure is not None:
        return observed.failure
    if observed.cpu_s > session.probe.cpu_s:
        return f"took {observed.cpu_s:.1f} s of CPU time, more than {session.probe.cpu_s:g} s"
    return None


def _describe_outcome(observed: Observed) -> str:
    return observed.failure or f"{observed.score} ({observed.reason}, {observed.extracted!r})"


def _describe_row(row: Item) -> str:
    return f"gold {row.gold!r}, response {row.response!r}"
