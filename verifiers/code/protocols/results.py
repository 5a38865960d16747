"""What came back from calls: lines of JSON that a solution's process wrote, as values.

The lines are trusted for nothing but the values that they state. Where the expected results are known
(`ExpectedResults`) and what came reads the same, nothing is taken apart; otherwise plain lines are read together, and
others one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from truegold.verifiers.code.checks.terms import Raised
from truegold.verifiers.code.judging import Failure, failed_end, last_line
from truegold.verifiers.code.protocols.lines import MAX_PARTS, PartsBudget, count_parts, lines
from truegold.verifiers.sandbox.execution import Execution
from truegold.verifiers.sandbox.inside.wire import Undecodable, are_plain, decode, from_json, to_json
from truegold.verifiers.sandbox.limits import BOX_MB, MB, Limits
from truegold.verifiers.verdict import Reason

ROOM_FACTOR = 2
"""Where many or large results are expected, so many times as much may come, with other spaces and other types."""

_LOADED = b'{"loaded":true}'

TOO_LARGE = "ResultTooLarge"
"""What a call is taken to have raised whose result does not fit, here or where it was made
(`inside/wire/encoding.py`)."""


class ExpectedResults:
    """Results that ought to come, all of them plain data."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = values
        self.json = to_json(values)

    @property
    def max_bytes(self) -> int:
        """Bytes that results may take up."""
        return ROOM_FACTOR * len(self.json)

    @property
    def max_parts(self) -> int:
        """Values within values that results may have."""
        return ROOM_FACTOR * count_parts(self.json)


@dataclass(frozen=True, slots=True)
class CallOutcomes:
    """What came of a batch of calls."""

    outcomes: Sequence[Any]
    """For each call its value, `Raised`, or `NotReturned`."""
    failure: Failure | None
    """Why the process ended early, if it did."""
    load_error: str | None = None


@dataclass(frozen=True, slots=True)
class NotReturned:
    """The process ended before, or during, this call."""


def failed_call(outcome: Any, calls: CallOutcomes) -> Failure | None:
    """Return why a call has no value; None where it has one."""
    if isinstance(outcome, NotReturned):
        return calls.failure or (Reason.MISMATCH, calls.load_error or "the program ended before this call returned")
    if isinstance(outcome, Raised):
        reason = Reason.LIMIT if outcome.type == TOO_LARGE else Reason.MISMATCH
        return reason, f"it raised {outcome.type}: {outcome.message}"
    return None


def read_results(
    execution: Execution,
    call_count: int,
    codecs: Mapping[str, Any],
    limits: Limits,
    expected: ExpectedResults | None,
) -> CallOutcomes:
    """Read what came of the calls that a job made."""
    returned = _read_together(execution.result, call_count, codecs, limits, expected)
    if returned is not None:
        return CallOutcomes(returned, failed_end(execution))
    max_bytes = max(limits.output_mb * MB, BOX_MB * MB, expected.max_bytes if expected else 0)
    budget = PartsBudget(max(MAX_PARTS, expected.max_parts if expected else 0))
    load_error: str | None = None
    outcomes: list[Any] = []
    failure = failed_end(execution)
    for line in lines(execution.result):
        if len(outcomes) == call_count:
            break
        if not budget.spend(line):
            failure = failure or (Reason.LIMIT, "its results are larger than the limit")
            break
        if len(line) > limits.output_mb * MB:
            message = f"the result takes {len(line)} bytes, the limit is {limits.output_mb} MB"
            outcomes.append(Raised(TOO_LARGE, message))
            continue
        try:
            message = from_json(line)
            if "load_error" in message:
                load_error = ": ".join(map(str, message["load_error"][:2]))
            elif "missing" in message:
                load_error = f"the program has no {message['missing']!r}"
            elif "r" in message:
                value = message["r"]
                outcomes.append(value if are_plain([value]) else decode(value, codecs))
            elif "raised" in message:
                outcomes.append(Raised(*[str(part) for part in message["raised"][:2]]))
        except (TypeError, LookupError, Undecodable):
            outcomes.append(Raised("Unreadable", "what it returned cannot be read"))
    missing = call_count - len(outcomes)
    if missing and len(execution.result) >= max_bytes:
        failure = Reason.LIMIT, "its results are larger than the limit"
    if failure is None and missing and load_error is None:
        failure = Reason.MISMATCH, f"the program ended early: {last_line(execution.stderr)}".removesuffix(": ")
    return CallOutcomes([*outcomes, *[NotReturned()] * missing], failure, load_error)


def _read_together(
    result: bytes, call_count: int, codecs: Mapping[str, Any], limits: Limits, expected: ExpectedResults | None
) -> Sequence[Any] | None:
    """Return what all calls returned, the usual case; None where one did not return, or cannot be read."""
    if result.count(b"\n") != call_count + 1:
        return None
    first, *lines, rest = result.split(b"\n")
    if first != _LOADED or rest:
        return None
    if expected and b"[%b]" % b",".join([line[5:-1] for line in lines]) == expected.json:
        return expected.values
    return _plain_values(lines, codecs, int(limits.output_mb * MB))


def _plain_values(lines: Sequence[bytes], codecs: Mapping[str, Any], max_bytes: int) -> list[Any] | None:
    joined = b"[%b]" % b",".join(lines)
    if len(joined) > max_bytes or not PartsBudget().spend(joined):
        return None
    try:
        values = [message["r"] for message in from_json(joined) if len(message) == 1]
        if b'"$"' in joined:
            values = [decode(value, codecs) for value in values]
        elif not are_plain(values):
            return None
    except (TypeError, LookupError, Undecodable):
        return None
    return values if len(values) == len(lines) else None
