"""Measures how often a verifier errs on your golds: `audit("math", golds)`.

    identity    a gold that does not pass itself
    rewrites    the right answer in another spelling, refused: false negatives, by rule
    edits       a wrong answer next to the right one, accepted: false positives, by rule
    gaming      a response that commits to nothing, paid

Rewrites, edits and gaming are tried for golds that pass themselves, in the form of response that the verifier reads
(`RESPONSE_FORMS`); the answers are made by rules whose truth is certain, so no labels are needed. Verdicts without a
score and rules of policy are counted apart. The answers that models really give are not covered, and for golds of no
certain form there is identity and a part of gaming only.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from truegold.verifiers.audit.form_reader import form_of
from truegold.verifiers.audit.made_answers import edits, gaming_cases, rewrites
from truegold.verifiers.audit.probe import (
    DEFAULT_CPU_S,
    DEFAULT_WALL_S,
    Observed,
    VerifierNotLoaded,
    VerifierProbe,
    form_read_by,
    respond,
)
from truegold.verifiers.rates import Rate, difference_interval
from truegold.verifiers.sandbox.errors import ConfigError
from truegold.verifiers.verdict import Verifier

DEFAULT_LIMIT = 500
"""Golds audited: about 30,000 verdicts, and intervals of a few tenths of a per cent."""

NEAR_ZERO_J = 0.5
"""Below this, the card warns that learning is slow: less than half of what the reward says is about right and wrong."""

EXAMPLES_KEPT = 3
"""Failures shown for each rule."""

PASSING_KEPT = 12
"""Golds handed on to a check of the contract, which is about behaviour and not about rates."""

EXAMPLE_CHARS = 400
"""The characters of each text that an example keeps."""

_OTHER_KIND = "other"
"""The kind of a gold that has no certain form."""


@dataclass(frozen=True, slots=True)
class Example:
    """One failure: what the verifier was shown, and its verdict."""

    gold: str
    answer: str
    score: float | None
    reason: str


@dataclass
class RuleCount:
    """What became of one rule over all golds."""

    rule: str
    policy: bool
    """Whether an error is no fault, only a fact."""
    rate: Rate = field(default_factory=Rate)
    examples: list[Example] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Speed:
    """CPU time of single verdicts, in milliseconds."""

    verdicts: int
    mean_ms: float
    median_ms: float
    p99_ms: float
    max_ms: float


def speed_of(seconds: Sequence[float]) -> Speed:
    """Mean, median, 99th percentile and maximum of CPU times in seconds; zeros where there are none."""
    if not seconds:
        return Speed(0, 0.0, 0.0, 0.0, 0.0)
    costs = sorted(1000 * cost for cost in seconds)

    def quantile(share: float) -> float:
        return costs[min(len(costs) - 1, math.ceil(share * len(costs)) - 1)]

    return Speed(len(costs), sum(costs) / len(costs), quantile(0.5), quantile(0.99), costs[-1])


@dataclass(frozen=True, slots=True)
class Youden:
    """Youden's J, the share of right answers paid less that of wrong ones paid (Youden 1950, Cancer 3, p. 32).

    How fast a policy learns from a verifier depends on J alone (arXiv 2601.04411).
    """

    j: float
    low: float
    """The interval of 95 %."""
    high: float

    @property
    def meaning(self) -> str:
        """What the interval means for a training."""
        if self.high < 0:
            return "Below 0: the reward prefers wrong answers, and training on it destroys the policy."
        if self.low <= 0:
            return "Not to be told from 0: the reward says nothing about right and wrong; audit more golds."
        if self.low < NEAR_ZERO_J:
            return f"It may be below {NEAR_ZERO_J:g}: a policy learns, but slowly, since much of the reward is noise."
        return "Above 0: a policy learns, the faster the nearer J is to 1."


@dataclass
class AuditReport:
    """The whole measurement."""

    name: str
    version: str
    response_form: str
    """The form in which answers were shown, a key of `RESPONSE_FORMS`."""
    gold_count: int
    distinct_count: int
    """Different golds, before the limit."""
    seed: int
    info: Mapping[str, Any]
    """What the verifier got as `info`."""
    kinds: dict[str, int] = field(default_factory=dict)
    """Audited golds by the kind of their form."""
    passing: list[str] = field(default_factory=list)
    """The first few golds that pass themselves: golds that fit the verifier."""
    identity: RuleCount = field(default_factory=lambda: RuleCount("identity", policy=False))
    rewrites: dict[str, RuleCount] = field(default_factory=dict)
    """Counts by rule, in the order of the rules; so are the next two."""
    edits: dict[str, RuleCount] = field(default_factory=dict)
    gaming: dict[str, RuleCount] = field(default_factory=dict)
    undecided: Counter[str] = field(default_factory=Counter)
    """Verdicts without a score, by reason."""
    weaknesses: Counter[str] = field(default_factory=Counter)
    """Verdicts that a response made for it could bend, by what their evidence calls their `weakness`."""
    speed: Speed = field(default_factory=lambda: speed_of(()))

    @property
    def audited(self) -> int:
        """Golds that were looked at, after the limit."""
        return sum(self.kinds.values())

    @property
    def false_negatives(self) -> Rate:
        """Right answers refused."""
        return _total(self.rewrites)

    @property
    def false_positives(self) -> Rate:
        """Wrong answers accepted."""
        return _total(self.edits)

    @property
    def gamed(self) -> Rate:
        """Gaming responses paid."""
        return _total(self.gaming)

    @property
    def youden(self) -> Youden | None:
        """Youden's J over all rewrites and edits that count; None where one of the two was not judged."""
        refused, paid = self.false_negatives, self.false_positives
        if refused.share is None or paid.share is None:
            return None
        low, high = refused.interval
        right = 1 - refused.share
        return Youden(right - paid.share, *difference_interval(right, (1 - high, 1 - low), paid.share, paid.interval))


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
    golds = list(golds)
    distinct = list(dict.fromkeys(golds))
    if not any(gold.strip() for gold in distinct):
        raise ConfigError("an audit needs at least one gold answer.")
    sample = _draw(distinct, limit, seed)
    try:
        with VerifierProbe(verifier, cpu_s, wall_s, info=info) as probe:
            form, loaded = form_read_by(probe, sample), probe.verifier
            report = AuditReport(loaded.name, loaded.version, form, len(golds), len(distinct), seed, dict(info or {}))
            _measure(probe, sample, report, on_gold)
    except VerifierNotLoaded as error:
        raise ConfigError(
            f"the verifier cannot be made in another process: {error}.", "Name it: path/to/file.py:object."
        ) from error
    return report


def _draw(golds: list[str], limit: int, seed: int) -> list[str]:
    """At most `limit` of the golds, in their order; a gold's rank does not depend on the other golds."""
    if len(golds) <= limit:
        return golds
    order = sorted(golds, key=lambda gold: hashlib.sha256(f"{seed}:{gold}".encode(errors="replace")).digest())
    drawn = set(order[:limit])
    return [gold for gold in golds if gold in drawn]


def _measure(probe: VerifierProbe, golds: list[str], report: AuditReport, on_gold: Callable[[], None] | None) -> None:
    costs: list[float] = []
    for gold in golds:
        form = form_of(gold)
        kind = form.kind if form else _OTHER_KIND
        report.kinds[kind] = report.kinds.get(kind, 0) + 1
        if _passes_itself(probe, gold, report):
            for count, is_right, answer, response in _trials(report, gold):
                observed = probe.judge(response, gold)
                costs.append(observed.cpu_s)
                _count(count, report, gold, answer, observed, error=observed.paid != is_right)
        if on_gold is not None:
            on_gold()
    report.speed = speed_of(costs)


def _passes_itself(probe: VerifierProbe, gold: str, report: AuditReport) -> bool:
    """Count identity; True where the gold also passes in the form in which variants are shown."""
    response, failure = probe.gold_response(gold)
    if response is None:
        observed = Observed(None, None, None, failure or "no response that should earn the full score")
    else:
        observed = probe.judge(response, gold)
    _count(report.identity, report, gold, response or gold, observed, error=not observed.paid)
    if observed.paid and len(report.passing) < PASSING_KEPT:
        report.passing.append(gold)
    return observed.paid and probe.judge(respond(report.response_form, gold), gold).paid


def _trials(report: AuditReport, gold: str) -> Iterator[tuple[RuleCount, bool, str, str]]:
    """Yield where each verdict is counted, whether the response should be paid, its answer, and the response."""
    parts = ((report.rewrites, rewrites(gold), True), (report.edits, edits(gold), False))
    for counts, variants, is_right in parts:
        for variant in variants:
            count = counts.setdefault(variant.rule, RuleCount(variant.rule, variant.policy))
            yield count, is_right, variant.text, respond(report.response_form, variant.text)
    for case in gaming_cases(gold):
        count = report.gaming.setdefault(case.name, RuleCount(case.name, policy=False))
        yield count, False, case.response, case.response


def _count(count: RuleCount, report: AuditReport, gold: str, answer: str, observed: Observed, error: bool) -> None:
    if observed.failure is not None or observed.score is None:
        count.rate += Rate(undecided=1)
        failure = "lost its process" if observed.process_lost else "failed"
        report.undecided[str(observed.reason or failure)] += 1
        return
    count.rate += Rate(int(error), 1)
    if observed.weakness is not None:
        report.weaknesses[observed.weakness] += 1
    if error and len(count.examples) < EXAMPLES_KEPT:
        shown = Example(gold[:EXAMPLE_CHARS], answer[:EXAMPLE_CHARS], observed.score, str(observed.reason))
        count.examples.append(shown)


def _total(counts: Mapping[str, RuleCount]) -> Rate:
    return sum((count.rate for count in counts.values() if not count.policy), Rate())
