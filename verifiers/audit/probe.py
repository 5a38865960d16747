"""Runs a verifier in a separate process and observes its verdicts, their cost, and failures.

    with VerifierProbe("math") as probe:
        probe.judge("\\\\boxed{5}", "5").score      # 1.0

A crash, a hang, or an excess of CPU time or memory becomes the `failure` of one observation; a new process judges the
next response. The verifier is given by name or as a picklable object. Not covered: verifiers that attack the process on
purpose.
"""

from __future__ import annotations

import base64
import json
import pickle
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any, Self

from truegold.verifiers.registry import resolve
from truegold.verifiers.response_forms import OWN_FORM, RESPONSE_FORMS, fill_form, find_form
from truegold.verifiers.running.batch import Item
from truegold.verifiers.sandbox.child_process import (
    ChildDied,
    ChildProcess,
    DeadlinePassed,
    describe_start,
    python_module,
)
from truegold.verifiers.sandbox.errors import ConfigError, SetupError
from truegold.verifiers.verdict import Reason, Verifier

DEFAULT_CPU_S = 1.0
"""Maximum CPU time for one verdict, in seconds; training judges thousands of responses between two updates."""

DEFAULT_WALL_S = 30.0
"""Maximum wall time for one verdict, in seconds; generous, since the machine may be busy."""

DEFAULT_MEMORY_BYTES = 2 * 2**30
"""Memory that the process may use in addition to its memory after loading the verifier."""

MANY_ROWS_FACTOR = 10
"""The factor on the wall time for operations that judge many rows, such as `threads`."""

SLOW_S, FEW_GOLDS = 0.3, 2
"""A verifier that takes longer than `SLOW_S` for a verdict is tried on only `FEW_GOLDS` golds, unless rates are
measured."""

_CHILD_MODULE = "truegold.verifiers.audit._probe_child"
_START_S = 120.0


class VerifierNotLoaded(Exception):
    """Raised if the verifier cannot be loaded in another process, because it cannot be pickled or imported."""


@dataclass(frozen=True, slots=True)
class Observed:
    """A verdict as observed from the parent process."""

    score: float | None
    reason: Reason | None
    extracted: str | None
    failure: str | None
    """The reason why there is no verdict, or None if there is one."""
    not_json: str | None = None
    """The reason why the evidence is not JSON, or None if it is."""
    cpu_s: float = 0.0
    process_lost: bool = False
    """Whether the process was lost: by a crash, a kill or a deadline."""
    weakness: str | None = None
    """A way in which the response could influence its own verdict, as the evidence says, or None."""

    @property
    def outcome(self) -> tuple[float | None, Reason | None, str | None, str | None]:
        """The part of a verdict that must be the same every time."""
        return self.score, self.reason, self.extracted, self.failure

    @property
    def paid(self) -> bool:
        """Whether the response earned the full score."""
        return self.score == 1.0


class VerdictCount:
    """The number of verdicts so far, and the estimated total."""

    def __init__(self, tell: Callable[[int, int], None] | None) -> None:
        """tell: called with both numbers after verdicts."""
        self.so_far, self.total = 0, 0
        self._tell = tell

    def add(self, verdicts: int) -> None:
        """Count further verdicts."""
        self.so_far += verdicts
        if self._tell is not None:
            self._tell(self.so_far, self.total)


class VerifierProbe:
    """A verifier in a child process, which is replaced when it is lost."""

    def __init__(
        self,
        verifier: Verifier | str,
        cpu_s: float = DEFAULT_CPU_S,
        wall_s: float = DEFAULT_WALL_S,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
        info: Mapping[str, Any] | None = None,
        form: str | None = None,
        on_verdicts: Callable[[int], None] = lambda count: None,
    ) -> None:
        """info: the `info` of all verdicts. form: the form of response that the verifier reads, if known. on_verdicts:
        called with the number of new verdicts."""
        self.wall_s = wall_s
        self._info = json.dumps(dict(info or {}))
        self.cpu_s = cpu_s
        self.verifier = load(verifier)
        self._form = form
        self._on_verdicts = on_verdicts
        self.verdicts, self.seconds = 0, 0.0
        """The number of verdicts so far, and the wall time that they took."""
        self._label = f"the verifier {self.verifier.name!r}"
        self._hello = {"path": sys.path, "cpu_s": cpu_s, "memory_bytes": memory_bytes, **_reference(verifier)}
        self._child: ChildProcess | None = None

    def __enter__(self) -> Self:
        self._ensure_child()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def row(self, response: str, gold: str | None) -> Item:
        """Return a response and its gold as an item for `judge_in`."""
        return Item(response, gold, verifier_args=self._info)

    def judge(self, response: str, gold: str | None) -> Observed:
        """Return the verdict on one response."""
        began = self._started()
        try:
            (reply,) = self._exchange("judge", self.wall_s, rows=[astuple(self.row(response, gold))])
        except (ChildDied, DeadlinePassed) as error:
            return Observed(None, None, None, self._describe_loss(error), process_lost=True)
        finally:
            self._count(1, began)
        return _observed(reply)

    def judge_in(self, way: str, rows: Sequence[Item], rounds: int = 1) -> list[tuple[int, Observed]]:
        """Judge all rows and return the observations, each with the index of its row.

        way: `pickled` (by a pickled copy), `thread`, `threads` (several threads, `rounds` times) or `task` (asyncio).
        Raises VerifierNotLoaded if the copy cannot be made.
        """
        began = self._started()
        try:
            reply = self._exchange(
                way, self.wall_s * MANY_ROWS_FACTOR, rows=[astuple(row) for row in rows], rounds=rounds
            )
        except (ChildDied, DeadlinePassed) as error:
            return [(0, Observed(None, None, None, self._describe_loss(error), process_lost=True))]
        finally:
            self._count(len(rows) * rounds, began)
        if isinstance(reply, dict):
            raise VerifierNotLoaded(reply["not_pickled"])
        return [(verdict.pop("row"), _observed(verdict)) for thread in reply for verdict in thread]

    @property
    def verdict_s(self) -> float:
        """The average wall time of a verdict, in seconds."""
        return self.seconds / max(self.verdicts, 1)

    @property
    def says_form(self) -> bool:
        """Whether the verifier defines the form of a right response by `gold_response`."""
        return getattr(self.verifier, "gold_response", None) is not None

    @property
    def form(self) -> str:
        """The form of response that the verifier reads: a name of `RESPONSE_FORMS`, `OWN_FORM` or a template."""
        return self._form or next(iter(RESPONSE_FORMS))

    def read_form(self, golds: Sequence[str]) -> str:
        """Return the form of response that the verifier reads; find it by trying golds if it is unknown."""
        if self._form is None and golds:

            def respond(gold: str) -> str:
                return self._own_response(gold)[0] or gold

            self.judge(fill_form(self.form, golds[0]), golds[0])
            golds = golds[:FEW_GOLDS] if self.verdict_s > SLOW_S else golds
            made_by_verifier = respond if self.says_form else None
            self._form = find_form(lambda response, gold: self.judge(response, gold).paid, golds, made_by_verifier)
        return self.form

    def respond(self, answer: str) -> str:
        """Return a whole response with an answer, in the form that the verifier reads."""
        if self.form == OWN_FORM:
            return self._own_response(answer)[0] or answer
        return fill_form(self.form, answer)

    def gold_response(self, gold: str) -> tuple[str | None, str | None]:
        """Return a right response for a gold and None, or None and the reason why no response was made."""
        if self.says_form and (self.form == OWN_FORM or self.form in RESPONSE_FORMS):
            return self._own_response(gold)
        return self.respond(gold), None

    def _own_response(self, gold: str) -> tuple[str | None, str | None]:
        try:
            reply = self._exchange("gold_response", self.wall_s, gold=gold)
        except (ChildDied, DeadlinePassed) as error:
            return None, f"gold_response {self._describe_loss(error)}"
        return reply["response"], reply["failure"]

    def _started(self) -> float:
        """Start the process if necessary, and return the time. The start is not a cost of a verdict."""
        self._ensure_child()
        return time.monotonic()

    def _count(self, verdicts: int, began: float) -> None:
        self.verdicts += verdicts
        self.seconds += time.monotonic() - began
        self._on_verdicts(verdicts)

    def _exchange(self, operation: str, wall_s: float, **operands: object) -> Any:
        child = self._ensure_child()
        try:
            child.send({"operation": operation, **operands}, time.monotonic() + wall_s)
            return child.receive(time.monotonic() + wall_s)
        except (ChildDied, DeadlinePassed):
            self._stop()
            raise

    def _ensure_child(self) -> ChildProcess:
        if self._child is None:
            child = ChildProcess(python_module(_CHILD_MODULE))
            try:
                child.send(self._hello, time.monotonic() + _START_S)
                reply = child.receive(time.monotonic() + _START_S)
            except (ChildDied, DeadlinePassed) as error:
                child.kill()
                raise SetupError(
                    f"the process that probes {self._label} did not start: {describe_start(_CHILD_MODULE, error)}.",
                    f"Run python -P -m {_CHILD_MODULE} < /dev/null to see the error, and import the verifier alone.",
                ) from error
            if "not_started" in reply:
                child.kill()
                raise SetupError(f"the process that probes {self._label} did not start: {reply['not_started']}.")
            if "not_loaded" in reply:
                child.kill()
                raise VerifierNotLoaded(reply["not_loaded"])
            self._child = child
        return self._child

    def _stop(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child = None

    def _describe_loss(self, error: ChildDied | DeadlinePassed) -> str:
        if isinstance(error, DeadlinePassed):
            return f"gave no verdict within {self.wall_s:g} s"
        if str(error) == f"ended by signal {signal.SIGPROF.value}":
            return f"was stopped after {self.cpu_s:g} s of CPU time"
        return f"lost its process, which {error}"


def load(verifier: Verifier | str) -> Verifier:
    """Return the verifier object for a name or an object. Raises ConfigError if there is no such verifier."""
    resolved = resolve(verifier) if isinstance(verifier, str) else verifier
    if not isinstance(resolved, Verifier):
        raise ConfigError(
            f"{resolved!r} is not a verifier.",
            "Decorate a plain function with @verifier, or pass its name: path/to/file.py:name.",
        )
    return resolved


def _reference(verifier: Verifier | str) -> dict[str, Any]:
    if isinstance(verifier, str):
        return {"name": verifier, "pickle": None}
    try:
        return {"name": None, "pickle": base64.b64encode(pickle.dumps(verifier)).decode()}
    except Exception as error:
        raise VerifierNotLoaded(f"{type(error).__name__}: {error}") from error


def _observed(reply: dict[str, Any]) -> Observed:
    return Observed(**{**reply, "reason": None if reply["reason"] is None else Reason(reply["reason"])})
