"""Goes from one row to one verdict: what the caller's process and the child processes of `verify_batch` share."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from truegold.verifiers.gold import BadGold, gold_and_arguments, golds_in, judge_any, judges_solutions
from truegold.verifiers.registry import check_options, resolve, unknown_option
from truegold.verifiers.sandbox.pool import last_run
from truegold.verifiers.verdict import Reason, Verdict, Verifier


@dataclass(frozen=True, slots=True)
class Item:
    """One response to judge, with everything that its verifier needs."""

    response: str
    """What is judged, as the model wrote it."""
    gold: Any
    """The reference answer, or a list of accepted ones, whose first stays here (`golds_in`); None for verifiers
    that need none."""
    verifier: str = "math"
    """The verifier's name or import string."""
    verifier_args: Any = "{}"
    """A JSON object, which the verifier gets as `info`. A mapping is written as one, and its options are checked."""
    problem: str | None = None
    """The question, for verifiers that look at it."""
    unread_gold: str | None = None
    """Why what was handed over as gold is none; None where it is one."""

    def __post_init__(self) -> None:
        """Raise ConfigError where a mapping has options that the verifier does not have."""
        if isinstance(self.verifier_args, Mapping):
            check_options(self.verifier, self.verifier_args)
            object.__setattr__(self, "verifier_args", json.dumps(dict(self.verifier_args)))
        if self.gold is not None and type(self.gold) is not str:
            self._read_gold()

    def _read_gold(self) -> None:
        try:
            golds = golds_in(self.gold)
        except BadGold as error:
            golds = []
            object.__setattr__(self, "unread_gold", str(error))
        gold, verifier_args = _gold_and_arguments(golds, self.verifier, self.verifier_args)
        object.__setattr__(self, "gold", gold)
        object.__setattr__(self, "verifier_args", verifier_args)


class TimedVerdict(NamedTuple):
    """A verdict and what it cost, which is no part of it: equal rows have equal verdicts and different costs."""

    verdict: Verdict
    cpu_ms: float | None
    """CPU milliseconds of the thread that judged, without those of processes that the verifier itself started;
    None where the judging process died or was killed."""
    program_s: float | None = None
    """Seconds of CPU time and waiting of the last program that ran here; None where none did."""


class ResolvedVerifiers:
    """The verifiers of a batch, each resolved once."""

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
        last_run.own_s = None
        start = time.thread_time()
        verdict = _judge(verifier, item)
        return TimedVerdict(verdict, (time.thread_time() - start) * 1000, last_run.own_s)


def _judge(verifier: Verifier, item: Item) -> Verdict:
    response: object = item.response
    if not isinstance(response, str):
        return _unjudgeable(f"response is a text; this is {type(response).__name__} {response!r:.60}")
    if item.unread_gold is not None and not judges_solutions(verifier):
        return Verdict(None, Reason.GOLD_UNPARSED, evidence={"error": item.unread_gold})
    try:
        info = json.loads(item.verifier_args)
    except (ValueError, RecursionError) as error:
        return _unjudgeable(f"verifier_args is not a JSON object: {error}")
    if not isinstance(info, dict):
        return _unjudgeable(f"verifier_args is not a JSON object: it is {item.verifier_args[:40]}")
    if info and (mistake := unknown_option(verifier, info)) is not None:
        return _unjudgeable(mistake)
    return judge_any(verifier, response, item.gold, item.problem, info)


def _gold_and_arguments(golds: list[str], verifier: str, verifier_args: str) -> tuple[str | None, str]:
    """Return the gold of a row and its arguments as JSON; what is no object of JSON stays, which is told later."""
    if len(golds) > 1:
        try:
            arguments = json.loads(verifier_args)
        except (ValueError, RecursionError):
            arguments = None
        if isinstance(arguments, dict):
            gold, arguments = gold_and_arguments(golds, verifier, arguments)
            return gold, json.dumps(arguments)
    return next(iter(golds), None), verifier_args


def _unjudgeable(error: str) -> Verdict:
    return Verdict(None, Reason.VERIFIER_ERROR, evidence={"error": error})


def verdict_to_json(verdict: Verdict) -> dict[str, Any]:
    """Return the verdict as an object that `json` can write, where its evidence is one."""
    fields = {"score": verdict.score, "reason": verdict.reason, "extracted": verdict.extracted}
    return {**fields, "evidence": dict(verdict.evidence)}


def verdict_from_json(fields: Mapping[str, Any]) -> Verdict:
    """Return the verdict that `verdict_to_json` turned into `fields`."""
    return Verdict(fields["score"], Reason(fields["reason"]), fields["extracted"], fields["evidence"])
