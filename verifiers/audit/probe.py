"""A verifier in a separate process, watched: its verdicts, what they cost, how it fails.

    with VerifierProbe("math") as probe:
        probe.judge("\\\\boxed{5}", "5").score      # 1.0

A crash, a hang, an overrun of CPU time or memory becomes the `failure` of one observation, and a fresh process judges
the next. The verifier is given by its name, as in a config, or as an object that can be pickled. One that turns against
the process on purpose is not covered.
"""

from __future__ import annotations

import base64
import json
import pickle
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any, Self

from truegold.verifiers.registry import resolve
from truegold.verifiers.running.batch import Item
from truegold.verifiers.sandbox.child_process import ChildDied, ChildProcess, DeadlinePassed, describe_start
from truegold.verifiers.sandbox.errors import ConfigError, SetupError
from truegold.verifiers.verdict import Reason, Verifier

DEFAULT_CPU_S = 1.0
"""CPU time for one verdict. A reward computation judges thousands of responses between two updates."""

DEFAULT_WALL_S = 30.0
"""Time until a verdict counts as never coming: generous, since the machine may be busy with other things."""

DEFAULT_MEMORY_BYTES = 2 * 2**30
"""Memory that the process may take besides what it holds once the verifier is loaded."""

MANY_ROWS_FACTOR = 10
"""Operations that judge many rows at once, such as the threads', may take so many times as long."""

RESPONSE_FORMS = {"boxed": "The answer is \\boxed{<answer>}.", "phrase": "The answer is <answer>", "bare": "<answer>"}

"""Responses around an answer: a verifier finds it, and judges the answer alone."""

GOLDS_TRIED = 20
"""Enough to tell which form a verifier reads."""

_CHILD_MODULE = "truegold.verifiers.audit._probe_child"
_START_S = 120.0


class VerifierNotLoaded(Exception):
    """The verifier could not be made in another process: it is not picklable, or not importable there."""


@dataclass(frozen=True, slots=True)
class Observed:
    """One verdict as seen from outside."""

    score: float | None
    reason: Reason | None
    extracted: str | None
    failure: str | None
    """Why there is no verdict, if there is none."""
    not_json: str | None = None
    """Why the evidence is no JSON, if it is none."""
    cpu_s: float = 0.0
    process_lost: bool = False
    """Whether the process was lost with it: a crash, a kill or a deadline."""
    weakness: str | None = None
    """What the evidence says a response made for it could do about its verdict."""

    @property
    def outcome(self) -> tuple[float | None, Reason | None, str | None, str | None]:
        """What must not change from one time to the next."""
        return self.score, self.reason, self.extracted, self.failure

    @property
    def paid(self) -> bool:
        """Whether it earned the full score."""
        return self.score == 1.0


class VerifierProbe:
    """One verifier in one process at a time, which is replaced when it is lost."""

    def __init__(
        self,
        verifier: Verifier | str,
        cpu_s: float = DEFAULT_CPU_S,
        wall_s: float = DEFAULT_WALL_S,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
        info: Mapping[str, Any] | None = None,
    ) -> None:
        """info: what the verifier gets as `info` with every response."""
        self.wall_s = wall_s
        self._info = json.dumps(dict(info or {}))
        self.cpu_s = cpu_s
        self.verifier = load(verifier)
        self._label = f"the verifier {self.verifier.name!r}"
        self._hello = {"path": sys.path, "cpu_s": cpu_s, "memory_bytes": memory_bytes, **_reference(verifier)}
        self._child: ChildProcess | None = None

    def __enter__(self) -> Self:
        self._ensure_child()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def row(self, response: str, gold: str | None) -> Item:
        """A response and its gold as `judge_in` takes them."""
        return Item(response, gold, verifier_args=self._info)

    def judge(self, response: str, gold: str | None) -> Observed:
        """The verdict on one response."""
        try:
            (reply,) = self._exchange("judge", self.wall_s, rows=[astuple(self.row(response, gold))])
        except (ChildDied, DeadlinePassed) as error:
            return Observed(None, None, None, self._describe_loss(error), process_lost=True)
        return _observed(reply)

    def judge_in(self, way: str, rows: Sequence[Item]) -> list[tuple[int, Observed]]:
        """Judge all rows in a `pickled` copy, a `thread`, several `threads` or asyncio `task`s.

        The index of the row comes with each observation. Raises VerifierNotLoaded where the copy cannot be made.
        """
        try:
            reply = self._exchange(way, self.wall_s * MANY_ROWS_FACTOR, rows=[astuple(row) for row in rows])
        except (ChildDied, DeadlinePassed) as error:
            return [(0, Observed(None, None, None, self._describe_loss(error), process_lost=True))]
        if isinstance(reply, dict):
            raise VerifierNotLoaded(reply["not_pickled"])
        return [(verdict.pop("row"), _observed(verdict)) for thread in reply for verdict in thread]

    def gold_response(self, gold: str) -> tuple[str | None, str | None]:
        """The response that must earn the full score, and how making it failed."""
        try:
            reply = self._exchange("gold_response", self.wall_s, gold=gold)
        except (ChildDied, DeadlinePassed) as error:
            return None, f"gold_response {self._describe_loss(error)}"
        return reply["response"], reply["failure"]

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
            child = ChildProcess(_CHILD_MODULE)
            try:
                child.send(self._hello, time.monotonic() + _START_S)
                reply = child.receive(time.monotonic() + _START_S)
            except (ChildDied, DeadlinePassed) as error:
                child.kill()
                raise SetupError(
                    f"the process that probes {self._label} did not start: {describe_start(_CHILD_MODULE, error)}.",
                    f"See why: python -P -m {_CHILD_MODULE} < /dev/null, and import the verifier on its own.",
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
            return f"was stopped beyond {self.cpu_s:g} s of CPU time"
        return f"lost its process, which {error}"


def load(verifier: Verifier | str) -> Verifier:
    """The verifier itself. Raises ConfigError where a name spells none."""
    resolved = resolve(verifier) if isinstance(verifier, str) else verifier
    if not isinstance(resolved, Verifier):
        raise ConfigError(
            f"{resolved!r} is not a verifier.",
            "Decorate a plain function with @verifier, or name it: path/to/file.py:name.",
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


def respond(form: str, answer: str) -> str:
    """A whole response that commits to `answer`."""
    return RESPONSE_FORMS[form].replace("<answer>", answer)


def form_read_by(probe: VerifierProbe, golds: Sequence[str]) -> str:
    """The form in which most golds pass; the first of RESPONSE_FORMS where none does better."""
    tried = golds[:GOLDS_TRIED]
    passes = {form: sum(probe.judge(respond(form, gold), gold).paid for gold in tried) for form in RESPONSE_FORMS}
    return max(RESPONSE_FORMS, key=lambda form: passes[form])
