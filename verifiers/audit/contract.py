"""Checks whether a verifier keeps the contract of `truegold.verifiers.verdict`: `check("math")`.

    gold passes itself       tells wrong from right    returns a verdict         deterministic
    same in a fresh process  picklable                 works in a thread         safe in many threads
    works in asyncio         evidence is JSON          stands a missing gold     stands hostile answers and golds

Everything is tried in separate processes, so that a hang or a crash is a finding. `ok` is None where a check could not
be made. Whether verdicts are right is for `audit_report.py`; what only another machine would show is not covered.
"""

from __future__ import annotations

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
    RESPONSE_FORMS,
    Observed,
    VerifierNotLoaded,
    VerifierProbe,
    form_read_by,
    load,
    respond,
)
from truegold.verifiers.running.batch import Item
from truegold.verifiers.verdict import Reason, Verifier

STANDARD_GOLDS = ("42", "-7", "3.5", "\\frac{1}{2}", "(1,2)", "x^2+1", "B", "\\text{even}", "Paris")
"""Tried where the caller gives no golds; those that a verifier declines to judge do not count."""

MAX_LOST = 3
"""After so many lost processes a check ends: each may have cost a whole deadline."""

DETERMINISTIC, TELLS_APART = "deterministic", "tells wrong from right"

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
    """Whether it was kept; None where it could not be checked."""
    detail: str
    findings: tuple[str, ...] = ()
    """How it was broken."""


def find_unchecked(checked: Sequence[CheckResult]) -> list[str]:
    """Return the lines that were not checked, where that is because no gold answer fits; else none.

    A single line may be without meaning for a verifier, such as one that reads no gold. Where not even the same verdict
    could be asked for twice, nothing was judged, and silence must not pass for a contract that is kept.
    """
    unchecked = [line.name for line in checked if line.ok is None]
    return unchecked if DETERMINISTIC in unchecked else []


@dataclass
class _Session:
    """What the checks share."""

    probe: VerifierProbe
    new_probe: Callable[[], VerifierProbe]
    golds: list[str] = field(default_factory=list)
    """Golds that the verifier judges."""
    failures: list[str] = field(default_factory=list)
    """Golds that did not pass themselves, and why."""
    form: str = "boxed"
    """The form of response that the verifier reads."""
    rows: list[Item] = field(default_factory=list)
    """Right, wrong and empty responses to those golds."""
    first: list[Observed] = field(default_factory=list)
    """The verdict that each of the rows got at first."""
    refuses: bool = False
    """Whether it ever refused a response that is wrong or none."""


def check(
    verifier: Verifier | str,
    *,
    golds: Sequence[str] = (),
    info: Mapping[str, Any] | None = None,
    cpu_s: float = DEFAULT_CPU_S,
    wall_s: float = DEFAULT_WALL_S,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
) -> list[CheckResult]:
    """Check every line of the contract, in a fixed order.

    verifier: a name as in a config, or an object. golds: answers it is made for; without them standard ones are tried.
    info: what it gets as `info`. cpu_s, wall_s, memory_bytes: what one verdict may cost.
    """
    load(verifier)

    def new_probe() -> VerifierProbe:
        return VerifierProbe(verifier, cpu_s, wall_s, memory_bytes, info)

    try:
        with new_probe() as probe:
            session = _Session(probe, new_probe)
            _prepare(session, golds)
            return [_result(name, check_line(session)) for name, check_line in _CHECKS.items()]
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
    for gold in golds or STANDARD_GOLDS:
        response, failure = probe.gold_response(gold)
        row = probe.row(respond("boxed", gold) if response is None else response, gold)
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
    session.form = form_read_by(probe, session.golds)
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
        forms = (session.probe.judge(respond(form, gold), gold) for gold in session.golds for form in RESPONSE_FORMS)
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
    return _compare(session, session.probe.judge_in(way, session.rows) if session.rows else ())


def _describe_faults(fault: Callable[[Observed], str | None], session: _Session) -> Iterator[str] | None:
    """Name what `fault` tells of the verdicts on ordinary responses."""
    if not session.first:
        return None
    observed_rows = zip(session.rows, session.first, strict=True)
    return (f"{_describe_row(row)}: {fault(observed)}" for row, observed in observed_rows if fault(observed))


def _no_gold(session: _Session) -> Iterator[str]:
    for gold in (None, "", "   "):
        for response in ("", respond("boxed", "5"), respond("boxed", "")):
            observed = session.probe.judge(response, gold)
            # A plain function may raise here: `@verifier` makes a verdict without a score of that.
            is_fault = observed.failure and observed.reason is not Reason.VERIFIER_ERROR
            if is_fault or (observed.paid and session.refuses):
                yield f"gold {gold!r}, response {response!r}: {observed.failure or 'got the full score'}"


def _stands_hostile(as_gold: bool, session: _Session) -> Iterator[str]:
    """Findings on hostile cases, `as_gold` with their two sides exchanged, until too many processes are lost."""
    # A verifier that does not read mathematics need not know other digits either.
    reads_mathematics = session.probe.judge(respond(session.form, "\\frac{2}{4}"), "\\frac{1}{2}").paid
    lost = 0
    for case in HOSTILE:
        answer, gold = (case.gold, case.answer) if as_gold else (case.answer, case.gold)
        observed = session.probe.judge(respond(session.form, answer), gold)
        if observed.cpu_s > session.probe.cpu_s and not observed.process_lost:
            # What is loaded on first use is no cost of a verdict; the blank keeps a cache from answering.
            observed = session.probe.judge(f"{respond(session.form, answer)} ", gold)
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
    "gold passes itself": lambda session: iter(session.failures) if session.golds or session.failures else None,
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
    "stands hostile answers": partial(_stands_hostile, False),
    "stands hostile golds": partial(_stands_hostile, True),
}


def _result(name: str, findings: Iterator[str] | None) -> CheckResult:
    if findings is None:
        if name == TELLS_APART:
            return CheckResult(name, None, "not checked: no answer was refused, whatever the gold")
        return CheckResult(name, None, "not checked: no gold fits it; give it golds it is made for")
    if not (listed := list(findings)):
        return CheckResult(name, True, "kept")
    more = f", {len(listed)} findings" if len(listed) > 1 else ""
    return CheckResult(name, False, f"broken{more}", tuple(listed[:MAX_SHOWN]))


def _compare(session: _Session, verdicts: Iterable[tuple[int, Observed]]) -> Iterator[str] | None:
    """Where a row got another verdict than at first, once for each row."""
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
