"""Goes from one row to one verdict: what the caller's process and the child processes of `verify_batch` share."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from truegold.verifiers.registry import resolve
from truegold.verifiers.several_golds import judge_any
from truegold.verifiers.verdict import Reason, Verdict, Verifier


@dataclass(frozen=True, slots=True)
class Item:
    """One response to judge, with everything that its verifier needs."""

    response: str
    """What is judged, as the model wrote it."""
    gold: str | None
    """The reference answer; None for verifiers that need none."""
    verifier: str = "math"
    """The verifier's name or import string."""
    verifier_args: str = "{}"
    """A JSON object, which the verifier gets as `info`."""
    problem: str | None = None
    """The question, for verifiers that look at it."""


class TimedVerdict(NamedTuple):
    """A verdict and what it cost, which is no part of it: equal rows have equal verdicts and different costs."""

    verdict: Verdict
    cpu_ms: float | None
    """CPU milliseconds of the thread that judged, without those of processes that the verifier itself started;
    None where the judging process died or was killed."""


class ResolvedVerifiers:
    """The verifiers of a batch, each of which is resolved once."""

    def __init__(self) -> None:
        self._by_name: dict[str, Verifier] = {}

    def resolve(self, name: str) -> Verifier:
        """Return the verifier that `name` spells. Raises ConfigError where there is none."""
        if name not in self._by_name:
            self._by_name[name] = resolve(name)
        return self._by_name[name]

    def judge(self, item: Item) -> TimedVerdict:
        """Return the verdict on an item; a field of another type than its own leaves it without a score."""
        # Importing the verifier comes before the clock starts, because it is not this item's cost.
        verifier = self.resolve(item.verifier)
        start = time.thread_time()
        verdict = _judge(verifier, item)
        return TimedVerdict(verdict, (time.thread_time() - start) * 1000)


def _judge(verifier: Verifier, item: Item) -> Verdict:
    for name, text in (("response", item.response), ("gold", item.gold)):
        if not isinstance(text, str) and (name == "response" or text is not None):
            return _unjudgeable(f"{name} is a text; this is {type(text).__name__} {text!r:.60}")
    try:
        info = json.loads(item.verifier_args)
    except (ValueError, RecursionError) as error:
        return _unjudgeable(f"verifier_args is not a JSON object: {error}")
    if not isinstance(info, dict):
        return _unjudgeable(f"verifier_args is not a JSON object: it is {item.verifier_args[:40]}")
    return judge_any(verifier, item.response, item.gold, item.problem, info)


def _unjudgeable(error: str) -> Verdict:
    return Verdict(None, Reason.VERIFIER_ERROR, evidence={"error": error})


def verdict_to_json(verdict: Verdict) -> dict[str, Any]:
    """Return the verdict as an object that `json` can write, where its evidence is one."""
    return {
        "score": verdict.score,
        "reason": verdict.reason,
        "extracted": verdict.extracted,
        "evidence": dict(verdict.evidence),
    }


def verdict_from_json(fields: Mapping[str, Any]) -> Verdict:
    """Return the verdict that `verdict_to_json` turned into `fields`."""
    return Verdict(fields["score"], Reason(fields["reason"]), fields["extracted"], fields["evidence"])
