"""One row to one verdict: what the process of the caller and the child processes of `verify_batch` share."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from truegold.verifiers.registry import resolve
from truegold.verifiers.verdict import Reason, Verdict, Verifier


@dataclass(frozen=True, slots=True)
class Item:
    """One response to judge. `verifier_args` is a JSON object, handed to the verifier as `info`."""

    response: str
    gold: str | None
    verifier: str = "math"
    verifier_args: str = "{}"
    problem: str | None = None


class Timed(NamedTuple):
    """A verdict and what it cost. The cost is no part of the verdict: that of the same row is always the same."""

    verdict: Verdict
    cpu_ms: float | None
    """CPU milliseconds of the thread that judged, without those of processes that the verifier itself started;
    None where the judging process died or was killed."""


class Judge:
    """Judges items, resolving each verifier name once."""

    def __init__(self) -> None:
        self._verifiers: dict[str, Verifier] = {}

    def verifier(self, name: str) -> Verifier:
        if name not in self._verifiers:
            self._verifiers[name] = resolve(name)
        return self._verifiers[name]

    def timed(self, item: Item) -> Timed:
        self.verifier(item.verifier)  # importing it is not this item's cost
        start = time.thread_time()
        verdict = self(item)
        return Timed(verdict, (time.thread_time() - start) * 1000)

    def __call__(self, item: Item) -> Verdict:
        try:
            info = json.loads(item.verifier_args)
        except (ValueError, RecursionError) as error:
            return _bad_arguments(str(error))
        if not isinstance(info, dict):
            return _bad_arguments(f"it is {item.verifier_args[:40]}")
        return self.verifier(item.verifier)(item.response, item.gold, problem=item.problem, info=info)


def _bad_arguments(what: str) -> Verdict:
    return Verdict(None, Reason.VERIFIER_ERROR, evidence={"error": f"verifier_args is not a JSON object: {what}"})


def to_json(verdict: Verdict) -> dict[str, Any]:
    return {
        "score": verdict.score,
        "reason": verdict.reason,
        "extracted": verdict.extracted,
        "evidence": dict(verdict.evidence),
    }


def from_json(data: Mapping[str, Any]) -> Verdict:
    return Verdict(data["score"], Reason(data["reason"]), data["extracted"], data["evidence"])
