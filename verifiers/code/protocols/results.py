"""What came back from calls: lines of JSON that a solution's process wrote, as values.

Nothing in them is trusted but as the values they claim. Where the results are known that shall come (`Hoped`) and what
came reads the same, nothing is taken apart; else plain lines are read together, and others one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from truegold.verifiers.code.execution import Execution
from truegold.verifiers.code.inside.wire import Undecodable, are_plain, decode, from_json, to_json
from truegold.verifiers.code.judging import ended, last_line
from truegold.verifiers.code.limits import Limits
from truegold.verifiers.code.lowering import Raised
from truegold.verifiers.code.protocols.lines import MAX_PARTS, Parts, lines, parts_of
from truegold.verifiers.code.sandbox.job import BOX_MB, MB
from truegold.verifiers.verdict import Reason

ROOM_FACTOR = 2
"""Where many or large results are expected, so many times as much may come: other spaces, other types."""

_LOADED = b'{"loaded":true}'

TOO_LARGE = "ResultTooLarge"
"""What a call has raised whose result does not fit, here or where it was made (`inside/wire/encoding.py`)."""


class Hoped:
    """Results that shall come, all of them plain data. text: as JSON, which the same results also read as."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = values
        self.text = to_json(values)

    @property
    def room(self) -> int:
        """Bytes that results may take up."""
        return ROOM_FACTOR * len(self.text)

    @property
    def parts(self) -> int:
        """Values within values that results may have."""
        return ROOM_FACTOR * parts_of(self.text)


@dataclass(frozen=True, slots=True)
class Called:
    """What came of a batch of calls: for each its value, `Raised`, or `Missed` where the process ended before."""

    results: Sequence[Any]
    trouble: tuple[Reason, str] | None
    """Why the process ended early, if it did."""
    load_error: str | None = None


@dataclass(frozen=True, slots=True)
class Missed:
    """The process ended before, or during, this call."""


def read_results(
    done: Execution, wanted: int, codecs: Mapping[str, Any], limits: Limits, hoped: Hoped | None
) -> Called:
    """wanted: how many calls were made."""
    at_once = _read_at_once(done.result, wanted, codecs, limits, hoped)
    return _read(done, wanted, codecs, limits, hoped) if at_once is None else Called(at_once, ended(done))


def explained(got: Any, called: Called) -> tuple[Reason, str] | None:
    """Why a call has no value; None where it has one."""
    if isinstance(got, Missed):
        return called.trouble or (Reason.MISMATCH, called.load_error or "the program ended before this call returned")
    if isinstance(got, Raised):
        reason = Reason.LIMIT if got.type == TOO_LARGE else Reason.MISMATCH
        return reason, f"it raised {got.type}: {got.message}"
    return None


def _read(done: Execution, wanted: int, codecs: Mapping[str, Any], limits: Limits, hoped: Hoped | None) -> Called:
    most = max(limits.output_mb * MB, BOX_MB * MB, hoped.room if hoped else 0)
    parts = Parts(max(MAX_PARTS, hoped.parts if hoped else 0))
    load_error: str | None = None
    results: list[Any] = []
    trouble = ended(done)
    for line in lines(done.result):
        if len(results) == wanted:
            break
        if not parts.allow(line):
            trouble = trouble or (Reason.LIMIT, "its results are larger than the limit")
            break
        if len(line) > limits.output_mb * MB:
            results.append(Raised(TOO_LARGE, f"the result takes {len(line)} bytes, the limit is {limits.output_mb} MB"))
            continue
        try:
            message = from_json(line)
            if "load_error" in message:
                load_error = ": ".join(map(str, message["load_error"][:2]))
            elif "missing" in message:
                load_error = f"the program has no {message['missing']!r}"
            elif "r" in message:
                value = message["r"]
                results.append(value if are_plain([value]) else decode(value, codecs))
            elif "raised" in message:
                results.append(Raised(*[str(part) for part in message["raised"][:2]]))
        except (TypeError, LookupError, Undecodable):
            results.append(Raised("Unreadable", "what it returned cannot be read"))
    if len(results) < wanted and len(done.result) >= most:
        trouble = Reason.LIMIT, "its results are larger than the limit"
    if trouble is None and len(results) < wanted and load_error is None:
        trouble = Reason.MISMATCH, f"the program ended early: {last_line(done.stderr)}".removesuffix(": ")
    results += [Missed()] * (wanted - len(results))
    return Called(results, trouble, load_error)


def _read_at_once(
    result: bytes, wanted: int, codecs: Mapping[str, Any], limits: Limits, hoped: Hoped | None
) -> Sequence[Any] | None:
    """What all calls returned: the usual case. None where one did not return, or cannot be read."""
    if result.count(b"\n") != wanted + 1:
        return None
    first, *lines, rest = result.split(b"\n")
    if first != _LOADED or rest:
        return None
    if hoped and b"[%b]" % b",".join([line[5:-1] for line in lines]) == hoped.text:
        return hoped.values
    return _plain_values(lines, codecs, int(limits.output_mb * MB))


def _plain_values(lines: Sequence[bytes], codecs: Mapping[str, Any], most: int) -> list[Any] | None:
    joined = b"[%b]" % b",".join(lines)
    if len(joined) > most or not Parts().allow(joined):
        return None
    try:
        found = [message["r"] for message in from_json(joined) if len(message) == 1]
        if b'"$"' in joined:
            found = [decode(value, codecs) for value in found]
        elif not are_plain(found):
            return None
    except (TypeError, LookupError, Undecodable):
        return None
    return found if len(found) == len(lines) else None
