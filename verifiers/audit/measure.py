"""How often does a verifier err on your golds? `audit("math", golds)` measures it.

    identity    a gold that does not pass itself
    rewrites    the right answer in another spelling, refused: false negatives, by rule
    edits       a wrong answer next to the right one, accepted: false positives, by rule
    gaming      a response that commits to nothing, paid

Rewrites, edits and gaming are tried for golds that pass themselves, in the form of response that the verifier reads
(`responses.py`); the answers are made by rules whose truth is certain, so no labels are needed. Verdicts without a
score and rules of policy are counted apart. Not covered: the answers that models really give, and golds of no certain
form, for which there is identity and a part of gaming only.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from truegold.verifiers.audit.gaming import gaming_cases
from truegold.verifiers.audit.probe import DEFAULT_CPU_S, DEFAULT_WALL_S, NotLoaded, Observed, Probe
from truegold.verifiers.audit.responses import form_read_by, respond
from truegold.verifiers.audit.speed import Speed, speed_of
from truegold.verifiers.audit.variants import edits, form_of, rewrites
from truegold.verifiers.errors import ConfigError
from truegold.verifiers.rates import Rate
from truegold.verifiers.verdict import Verifier

DEFAULT_LIMIT = 500
"""Golds audited: about 30,000 verdicts, and intervals of a few tenths of a per cent."""

EXAMPLES_KEPT = 3
"""Failures shown for each rule."""

PASSING_KEPT = 12
"""Golds handed on to a check of the contract, which is about behaviour and not about rates."""

EXAMPLE_CHARS = 400
"""How much of each text is kept in an example."""

_OTHER_KIND = "other"


@dataclass(frozen=True, slots=True)
class Example:
    """One failure: what the verifier was shown, and what it said."""

    gold: str
    answer: str
    score: float | None
    reason: str


@dataclass
class RuleCount:
    """What became of one rule over all golds. For policy rules an error is no fault, only a fact."""

    rule: str
    policy: bool
    rate: Rate = field(default_factory=Rate)
    examples: list[Example] = field(default_factory=list)


@dataclass
class AuditReport:
    """The whole measurement. `rewrites`, `edits` and `gaming` are by rule, in the order of the rules."""

    name: str
    version: str
    form: str
    given: int
    distinct: int
    seed: int
    info: Mapping[str, Any]
    kinds: dict[str, int] = field(default_factory=dict)
    passing: list[str] = field(default_factory=list)
    """The first few golds that pass themselves: golds that fit the verifier."""
    identity: RuleCount = field(default_factory=lambda: RuleCount("identity", policy=False))
    rewrites: dict[str, RuleCount] = field(default_factory=dict)
    edits: dict[str, RuleCount] = field(default_factory=dict)
    gaming: dict[str, RuleCount] = field(default_factory=dict)
    undecided: Counter[str] = field(default_factory=Counter)
    speed: Speed = field(default_factory=lambda: speed_of(()))

    @property
    def audited(self) -> int:
        """Golds that were looked at, after the limit."""
        return sum(self.kinds.values())

    @property
    def false_negatives(self) -> Rate:
        return _total(self.rewrites)

    @property
    def false_positives(self) -> Rate:
        return _total(self.edits)

    @property
    def gamed(self) -> Rate:
        return _total(self.gaming)


def audit(
    verifier: Verifier | str,
    golds: Iterable[str],
    *,
    info: Mapping[str, Any] | None = None,
    limit: int = DEFAULT_LIMIT,
    seed: int = 0,
    cpu_s: float = DEFAULT_CPU_S,
    wall_s: float = DEFAULT_WALL_S,
    on_gold: Callable[[], None] | None = None,
) -> AuditReport:
    """Measure a verifier, given by name or as an object, on gold answers.

    info: what the verifier gets as `info`, for all golds alike. limit: of more distinct golds so many are drawn, the
    same ones for the same `seed`. cpu_s, wall_s: what one verdict may cost before it counts as undecided. on_gold: is
    called after each gold.
    """
    given = list(golds)
    distinct = list(dict.fromkeys(given))
    if not any(gold.strip() for gold in distinct):
        raise ConfigError("an audit needs at least one gold answer.")
    chosen = _drawn(distinct, limit, seed)
    try:
        with Probe(verifier, cpu_s, wall_s, info=info) as probe:
            form = form_read_by(probe, chosen)
            found = probe.verifier
            report = AuditReport(found.name, found.version, form, len(given), len(distinct), seed, dict(info or {}))
            _measure(probe, chosen, report, on_gold)
    except NotLoaded as error:
        raise ConfigError(
            f"the verifier cannot be made in another process: {error}.", "Name it: path/to/file.py:object."
        ) from error
    return report


def _drawn(golds: list[str], limit: int, seed: int) -> list[str]:
    if len(golds) <= limit:
        return golds
    order = sorted(golds, key=lambda gold: hashlib.sha256(f"{seed}:{gold}".encode(errors="replace")).digest())
    chosen = set(order[:limit])
    return [gold for gold in golds if gold in chosen]


def _measure(probe: Probe, golds: list[str], report: AuditReport, on_gold: Callable[[], None] | None) -> None:
    costs: list[float] = []
    for gold in golds:
        form = form_of(gold)
        kind = form.kind if form else _OTHER_KIND
        report.kinds[kind] = report.kinds.get(kind, 0) + 1
        if _passes_itself(probe, gold, report):
            for part, rule, policy, wrong_if_paid, answer, response in _trials(report, gold):
                seen = probe.judge(response, gold)
                costs.append(seen.cpu_s)
                count = part.setdefault(rule, RuleCount(rule, policy))
                _count(count, report, gold, answer, seen, error=seen.paid == wrong_if_paid)
        if on_gold is not None:
            on_gold()
    report.speed = speed_of(costs)


def _passes_itself(probe: Probe, gold: str, report: AuditReport) -> bool:
    """Count identity; True where the gold also passes in the form in which variants are shown."""
    response, failure = probe.gold_response(gold)
    if response is None:
        seen = Observed(None, None, None, failure or "no response that should earn the full score")
    else:
        seen = probe.judge(response, gold)
    _count(report.identity, report, gold, response or gold, seen, error=not seen.paid)
    if seen.paid and len(report.passing) < PASSING_KEPT:
        report.passing.append(gold)
    return seen.paid and probe.judge(respond(report.form, gold), gold).paid


def _trials(report: AuditReport, gold: str) -> Iterator[tuple[dict[str, RuleCount], str, bool, bool, str, str]]:
    """Part of the report, rule, policy, whether full pay is the error, the answer and the whole response."""
    for variant in rewrites(gold):
        yield report.rewrites, variant.rule, variant.policy, False, variant.text, respond(report.form, variant.text)
    for variant in edits(gold):
        yield report.edits, variant.rule, variant.policy, True, variant.text, respond(report.form, variant.text)
    for case in gaming_cases(gold):
        yield report.gaming, case.name, False, True, case.response, case.response


def _count(count: RuleCount, report: AuditReport, gold: str, answer: str, seen: Observed, error: bool) -> None:
    if seen.failure is not None or seen.score is None:
        count.rate += Rate(undecided=1)
        report.undecided[
            str(seen.reason) if seen.reason else "lost its process" if seen.process_lost else "failed"
        ] += 1
        return
    count.rate += Rate(int(error), 1)
    if error and len(count.examples) < EXAMPLES_KEPT:
        shown = Example(gold[:EXAMPLE_CHARS], answer[:EXAMPLE_CHARS], seen.score, str(seen.reason))
        count.examples.append(shown)


def _total(counts: Mapping[str, RuleCount]) -> Rate:
    return sum((count.rate for count in counts.values() if not count.policy), Rate())
