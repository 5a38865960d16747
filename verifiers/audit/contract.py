"""Does a verifier keep the contract of `truegold.verifiers.verdict`? `check("math")` finds out.

    gold passes itself       tells wrong from right    returns a verdict         deterministic
    same in a fresh process  picklable                 works in a thread         safe in many threads
    works in asyncio         evidence is JSON          stands a missing gold     stands hostile answers and golds

Everything is tried in processes of their own, so that a hang or a crash is a finding. `ok` is None where a check could
not be made. Not covered: whether verdicts are right (`measure.py`), and what only another machine would show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from truegold.verifiers.audit.hostile import HOSTILE
from truegold.verifiers.audit.probe import (
    DEFAULT_CPU_S,
    DEFAULT_MEMORY_BYTES,
    DEFAULT_WALL_S,
    NotLoaded,
    Observed,
    Probe,
    loaded,
)
from truegold.verifiers.audit.responses import form_read_by, respond
from truegold.verifiers.running.item import Item
from truegold.verifiers.verdict import Reason, Verifier

STANDARD_GOLDS = ("42", "-7", "3.5", "\\frac{1}{2}", "(1,2)", "x^2+1", "B", "\\text{even}", "Paris")
"""Tried where the caller gives no golds; those that a verifier declines to judge do not count."""

MAX_LOST = 3
"""After so many lost processes a check ends: each may have cost a whole deadline."""

DETERMINISTIC, TELLS_APART = "deterministic", "tells wrong from right"

MAX_SHOWN = 8
"""Findings kept for each check."""

_STOPPED = "stopped here: too many processes lost"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One line of the contract: kept, broken, or None where it could not be checked. `findings` say how it broke."""

    name: str
    ok: bool | None
    detail: str
    findings: tuple[str, ...] = ()


@dataclass
class _Session:
    """What the checks share: the watched verifier, golds it judges, items with the verdict each got at first."""

    probe: Probe
    new_probe: Callable[[], Probe]
    golds: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    """Golds that did not pass themselves, and why."""
    form: str = "boxed"
    items: list[Item] = field(default_factory=list)
    first: list[Observed] = field(default_factory=list)
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
    """Every line of the contract, in a fixed order.

    verifier: a name as in a config, or an object. golds: answers it is made for; without them standard ones are tried.
    info: what it gets as `info`. cpu_s, wall_s, memory_bytes: what one verdict may cost.
    """
    loaded(verifier)

    def new_probe() -> Probe:
        return Probe(verifier, cpu_s, wall_s, memory_bytes, info)

    try:
        with new_probe() as probe:
            session = _Session(probe, new_probe)
            _prepare(session, golds)
            return [_result(name, make(session)) for name, make in _CHECKS.items()]
    except NotLoaded as error:
        why = f"it cannot be made in another process: {error}"
        rest = [CheckResult(name, None, "not checked: it is not picklable") for name in _CHECKS if name != "picklable"]
        return [CheckResult("picklable", False, "broken", (why,)), *rest]


def _prepare(session: _Session, golds: Sequence[str]) -> None:
    probe, right = session.probe, list[Item]()
    for gold in golds or STANDARD_GOLDS:
        response, failure = probe.gold_response(gold)
        item = probe.item(respond("boxed", gold) if response is None else response, gold)
        seen = probe.judge(item.response, gold)
        if failure or seen.failure:
            session.failures.append(f"{gold!r}: {failure or seen.failure}")
        elif seen.score is not None or golds:
            right.append(item)
            if response is not None:
                session.golds.append(gold)
                session.failures += [] if seen.paid else [f"{gold!r} got {seen.score} ({seen.reason})"]
        if seen.process_lost and len(session.failures) >= MAX_LOST:
            break
    session.form = form_read_by(probe, session.golds)
    wrong = [probe.item(a.response, b.gold) for a, b in pairwise([*right, *right[:1]]) if a.gold != b.gold]
    loose = [probe.item(text, item.gold) for item in right[:1] for text in ("", "I do not know.", ":")]
    session.items = [*right, *wrong, *loose]
    session.first = [probe.judge(item.response, item.gold) for item in session.items]
    session.refuses = not all(seen.paid for seen in session.first[len(right) :])


def _gold_passes(session: _Session) -> Iterator[str] | None:
    return iter(session.failures) if session.golds or session.failures else None


def _tells_apart(session: _Session) -> Iterator[str] | None:
    """None for one that pays whatever the gold is: a verifier of form or length does, and is right to."""
    return iter(()) if session.refuses else None


def _deterministic(session: _Session) -> Iterator[str] | None:
    return _compared(session, enumerate(session.probe.judge(item.response, item.gold) for item in session.items))


def _fresh_process(session: _Session) -> Iterator[str] | None:
    with session.new_probe() as fresh:
        seen = [fresh.judge(item.response, item.gold) for item in session.items]
    return _compared(session, enumerate(seen))


def _picklable(session: _Session) -> Iterator[str] | None:
    try:
        return _compared(session, iter(session.probe.judge_in("pickled", session.items)))
    except NotLoaded as error:
        return iter([f"it cannot be pickled: {error}"])


def _in_a_thread(session: _Session) -> Iterator[str] | None:
    return _compared(session, iter(session.probe.judge_in("thread", session.items)) if session.items else iter(()))


def _in_threads(session: _Session) -> Iterator[str] | None:
    return _compared(session, iter(session.probe.judge_in("threads", session.items)) if session.items else iter(()))


def _in_asyncio(session: _Session) -> Iterator[str] | None:
    return _compared(session, iter(session.probe.judge_in("task", session.items)) if session.items else iter(()))


def _evidence(session: _Session) -> Iterator[str] | None:
    if not session.first:
        return None
    return (
        f"{_shown(item)}: {seen.not_json}"
        for item, seen in zip(session.items, session.first, strict=True)
        if seen.not_json
    )


def _score(session: _Session) -> Iterator[str] | None:
    """What the verifier returned at all: a Verdict, and no failure of any kind, on ordinary responses."""
    if not session.first:
        return None
    return (
        f"{_shown(item)}: {seen.failure}"
        for item, seen in zip(session.items, session.first, strict=True)
        if seen.failure
    )


def _no_gold(session: _Session) -> Iterator[str]:
    for gold in (None, "", "   "):
        for response in ("", respond("boxed", "5"), respond("boxed", "")):
            seen = session.probe.judge(response, gold)
            # A plain function may raise here: `@verifier` makes a verdict without a score of that.
            if (seen.paid and session.refuses) or (seen.failure and seen.reason is not Reason.VERIFIER_ERROR):
                yield f"gold {gold!r}, response {response!r}: {seen.failure or 'got the full score'}"


def _hostile_answers(session: _Session) -> Iterator[str]:
    half = session.probe.judge(respond(session.form, "\\frac{2}{4}"), "\\frac{1}{2}")
    lost = 0
    for case in HOSTILE:
        seen = session.probe.judge(respond(session.form, case.answer), case.gold)
        finding = _too_costly(session, seen)
        if finding is None and case.expected == "no_match" and seen.paid and session.refuses:
            finding = "got the full score for a wrong answer"
        # A verifier that does not read mathematics need not know other digits either.
        if finding is None and case.expected == "match" and half.paid and seen.score is not None and not seen.paid:
            finding = f"got {seen.score} ({seen.reason}) for a right answer"
        if finding is not None:
            yield f"{case.name}: {finding}"
        lost += seen.process_lost
        if lost >= MAX_LOST:
            yield _STOPPED
            return


def _hostile_golds(session: _Session) -> Iterator[str]:
    lost = 0
    for case in HOSTILE:
        seen = session.probe.judge(respond(session.form, case.gold), case.answer)
        finding = _too_costly(session, seen)
        if finding is not None:
            yield f"{case.name} as gold: {finding}"
        lost += seen.process_lost
        if lost >= MAX_LOST:
            yield _STOPPED
            return


_CHECKS: dict[str, Callable[[_Session], Iterator[str] | None]] = {
    "gold passes itself": _gold_passes,
    TELLS_APART: _tells_apart,
    "returns a verdict": _score,
    DETERMINISTIC: _deterministic,
    "same in a fresh process": _fresh_process,
    "picklable": _picklable,
    "works in a thread": _in_a_thread,
    "safe in many threads": _in_threads,
    "works in asyncio": _in_asyncio,
    "evidence is JSON": _evidence,
    "stands a missing gold": _no_gold,
    "stands hostile answers": _hostile_answers,
    "stands hostile golds": _hostile_golds,
}


def _result(name: str, found: Iterator[str] | None) -> CheckResult:
    if found is None:
        if name == TELLS_APART:
            return CheckResult(name, None, "not checked: no answer was refused, whatever the gold")
        return CheckResult(name, None, "not checked: no gold fits it; give it golds it is made for")
    findings = list(found)
    if not findings:
        return CheckResult(name, True, "kept")
    more = f", {len(findings)} findings" if len(findings) > 1 else ""
    return CheckResult(name, False, f"broken{more}", tuple(findings[:MAX_SHOWN]))


def _compared(session: _Session, seen: Iterator[tuple[int, Observed]]) -> Iterator[str] | None:
    """Where an item got another verdict than at first, once for each item."""
    if not session.items:
        return None
    changed: dict[int, str] = {}
    for index, now in seen:
        before = session.first[index]
        if now.outcome != before.outcome and index not in changed:
            changed[index] = f"{_shown(session.items[index])}: {_said(before)}, then {_said(now)}"
    return iter(changed.values())


def _too_costly(session: _Session, seen: Observed) -> str | None:
    if seen.failure is not None:
        return seen.failure
    if seen.cpu_s > session.probe.cpu_s:
        return f"took {seen.cpu_s:.1f} s of CPU time, more than {session.probe.cpu_s:g} s"
    return None


def _said(seen: Observed) -> str:
    return seen.failure or f"{seen.score} ({seen.reason}, {seen.extracted!r})"


def _shown(item: Item) -> str:
    return f"gold {item.gold!r}, response {item.response!r}"
