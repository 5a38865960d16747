"""Checks whether a verifier keeps the contract of `truegold.verifiers.verdict`: `check("math")`.

    gold passes itself       tells wrong from right    returns a verdict         deterministic
    same in a fresh process  picklable                 works in a thread         safe in many threads
    works in asyncio         evidence is JSON          stands a missing gold     stands hostile answers and golds

Everything is tried in separate processes, so that a hang or a crash is a finding. `ok` is None if a check could not
be made. Whether verdicts are right is for `audit_report.py`; what only another machine would show is not covered.
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
"""Tried where the caller gives no golds; those that a verifier declines to judge do not count."""

MAX_LOST = 3
"""Lost processes after which a check ends: each may have cost a whole deadline."""

DETERMINISTIC, TELLS_APART, PASSES_ITSELF = "deterministic", "tells wrong from right", "gold passes itself"
ALWAYS_CHECKED = (PASSES_ITSELF, TELLS_APART, "returns a verdict", DETERMINISTIC, "evidence is JSON")
NO_TIME = "not checked: no time was left"
STANDS_ANSWERS, STANDS_GOLDS = "stands hostile answers", "stands hostile golds"

ROUNDS = 10
"""Rounds in which each of several threads judges every row: races need chances."""
PASSES = 5
"""How often every row is judged in other ways than by several threads."""
FORM_REMEDY = (
    "Gold was refused in every form that was tried. Say how a right response looks: "
    "@verifier(gold_response=\"\\\\boxed{{{gold}}}\"), or --gold-response '\\boxed{{{gold}}}'."
)

NONSENSE = ("", "</answer>", "<think> It could be 5, or", "\\boxed{", "\x00 \ud800", "word " * 4_000_000)
"""No verifier of form, of length or of anything else pays for all of these: one does that pays for everything."""

_PAYS_ALL = "it pays for every response: right, wrong, empty and endless ones"
_PAYS_NOTHING = "it pays for no response, not for a gold answer itself either; give it golds that it is made for"

MAX_SHOWN = 8
"""Findings kept for each check."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One line of the contract."""

    name: str
    ok: bool | None
    """Whether it was kept, or None if it could not be checked."""
    detail: str
    findings: tuple[str, ...] = ()
    """How it was broken."""


def find_unchecked(checked: Sequence[CheckResult]) -> list[str]:
    """Return the lines that were not checked, where that is because no gold answer fits, or else none.

    A single line may be without meaning for a verifier, such as one that reads no gold. Where not even the same verdict
    could be asked for twice, nothing was judged, and silence must not pass for a contract that is kept.
    """
    unchecked = [line.name for line in checked if line.ok is None]
    return unchecked if DETERMINISTIC in unchecked else []


@dataclass
class _Session:
    """The state that the checks share."""

    probe: VerifierProbe
    new_probe: Callable[[], VerifierProbe]
    end: float
    """The time on the monotonic clock after which no check begins."""
    golds: list[str] = field(default_factory=list)
    """Golds that the verifier judges."""
    failures: list[str] = field(default_factory=list)
    """Golds that did not pass themselves, and why."""
    rows: list[Item] = field(default_factory=list)
    """Right, wrong and empty responses to those golds."""
    first: list[Observed] = field(default_factory=list)
    """The verdict that each of the rows got at first."""
    refuses: bool = False
    """Whether it ever refused a response that is wrong or none."""
    left_out: dict[bool, int] = field(default_factory=dict)
    """Hostile answers, and golds (True), that were left out for want of time."""


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
    """Check every line of the contract, in a fixed order.

    verifier: a name as in a config, or an object. golds: answers it is made for; without them standard ones are tried.
    info: what it gets as `info`. cpu_s, wall_s, memory_bytes: what one verdict may cost. gold_response: a template of
    the response that is right for a gold, such as `\\boxed{{{gold}}}`; else it is found. seconds: checks that have
    not begun by then are left out. on_verdicts: is called with the verdicts so far and about how many there will be.
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
        why = f"it cannot be made in another process: {error}"
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

    Where no gold fits the verifier nothing could be checked, and that counts as broken as well: give `golds`.
    """
    __tracebackhide__ = True  # Pytest then shows the caller's line.
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
    """None for one that pays for any gold but not for every form or length, and for one that declines to judge."""
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
    """Return how often each of several threads judges every row: as often as the deadline surely allows."""
    one_round_s = max(session.probe.verdict_s * len(session.rows), 1e-6)
    return min(ROUNDS, max(1, int(session.probe.wall_s / one_round_s)))


def _describe_faults(fault: Callable[[Observed], str | None], session: _Session) -> Iterator[str] | None:
    """Name what `fault` tells of the verdicts on ordinary responses."""
    if not session.first:
        return None
    observed_rows = zip(session.rows, session.first, strict=True)
    return (f"{_describe_row(row)}: {fault(observed)}" for row, observed in observed_rows if fault(observed))


def _no_gold(session: _Session) -> Iterator[str]:
    for gold in (None, "", "   "):
        for response in ("", fill_form("boxed", "5"), fill_form("boxed", "")):
            observed = session.probe.judge(response, gold)
            # A plain function may raise here: `@verifier` makes a verdict without a score of that.
            is_fault = observed.failure and observed.reason is not Reason.VERIFIER_ERROR
            if is_fault or (observed.paid and session.refuses):
                yield f"gold {gold!r}, response {response!r}: {observed.failure or 'got the full score'}"


def _stands_hostile(as_gold: bool, session: _Session) -> Iterator[str]:
    """Findings on hostile cases, `as_gold` with their two sides exchanged, until too many processes are lost."""
    # A verifier that does not read mathematics need not know other digits either.
    reads_mathematics = session.probe.judge(session.probe.respond("\\frac{2}{4}"), "\\frac{1}{2}").paid
    lost = 0
    for tried, case in enumerate(HOSTILE):
        if time.monotonic() > session.end:
            session.left_out[as_gold] = len(HOSTILE) - tried
            return
        answer, gold = (case.gold, case.answer) if as_gold else (case.answer, case.gold)
        observed = session.probe.judge(session.probe.respond(answer), gold)
        if observed.cpu_s > session.probe.cpu_s and not observed.process_lost:
            # Loading on first use is not a cost of a verdict; the blank keeps a cache from answering.
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
            return CheckResult(name, None, "not checked: no answer was refused, whatever the gold")
        return CheckResult(name, None, "not checked: no gold fits it; give it golds it is made for")
    listed = list(findings)
    left_out = session.left_out.get(name == STANDS_GOLDS, 0) if name in (STANDS_ANSWERS, STANDS_GOLDS) else 0
    if not listed and left_out == len(HOSTILE):
        return CheckResult(name, None, NO_TIME)
    missed = f", {left_out} of {len(HOSTILE)} left out for want of time" if left_out else ""
    if not listed:
        return CheckResult(name, True, f"kept{missed}")
    more = f", {len(listed)} findings" if len(listed) > 1 else ""
    remedy = f". {FORM_REMEDY}" if name == PASSES_ITSELF and len(session.failures) >= len(session.golds) else ""
    return CheckResult(name, False, f"broken{more}{missed}{remedy}", tuple(listed[:MAX_SHOWN]))


def _compare(session: _Session, verdicts: Iterable[tuple[int, Observed]]) -> Iterator[str] | None:
    """Describe each row whose verdict differs from its first one, once for each row."""
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
