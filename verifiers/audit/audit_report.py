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
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from truegold.verifiers.audit.form_reader import form_of
from truegold.verifiers.audit.made_answers import edits, gaming_cases, layouts, rewrites
from truegold.verifiers.audit.probe import (
    DEFAULT_CPU_S,
    DEFAULT_WALL_S,
    Observed,
    VerdictCount,
    VerifierNotLoaded,
    VerifierProbe,
)
from truegold.verifiers.rates import Rate, difference_interval
from truegold.verifiers.response_forms import RESPONSE_FORMS
from truegold.verifiers.sandbox.errors import ConfigError
from truegold.verifiers.verdict import Verifier

DEFAULT_LIMIT = 500
"""Golds audited: about 30,000 verdicts, and intervals of a few tenths of a per cent."""

FEWEST_TRIALS = 12
"""Answers of a gold that are tried at least, if there is no time for all."""

BARE_TRIED = 3
"""Golds that are shown by themselves, to tell whether the verifier takes them so."""

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
    """The results of one rule over all golds."""

    rule: str
    policy: bool
    """Whether an error is only a fact about the verifier, rather than a fault."""
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
    """Mean, median, 99th percentile and maximum of CPU times in seconds; zeros if there are none."""
    if not seconds:
        return Speed(0, 0.0, 0.0, 0.0, 0.0)
    costs = sorted(1000 * cost for cost in seconds)

    def quantile(share: float) -> float:
        return costs[min(len(costs) - 1, math.ceil(share * len(costs)) - 1)]

    return Speed(len(costs), sum(costs) / len(costs), quantile(0.5), quantile(0.99), costs[-1])


@dataclass(frozen=True, slots=True)
class Youden:
    """Youden's J, the share of right answers that are accepted minus the share of wrong ones (Youden 1950, Cancer 3, p.
    32).

    How fast a policy learns from a verifier depends on J alone (arXiv 2601.04411).
    """

    j: float
    low: float
    """The interval of 95 %."""
    high: float

    @property
    def meaning(self) -> str:
        """The meaning of the interval for a training."""
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
    """The form in which answers were shown: a name of `RESPONSE_FORMS`, `OWN_FORM`, or a template of the caller's."""
    gold_count: int
    distinct_count: int
    """Different golds, before the limit."""
    seed: int
    info: Mapping[str, Any]
    """The `info` that the verifier got."""
    unsaid_form: str | None = None
    """The template of responses that the verifier reads, where it refuses gold by itself and does not say so."""
    most_trials: int | None = None
    """Answers of a gold that were tried, where there was no time for all."""
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
    """Maps a `weakness` in the evidence to the number of verdicts that a response could bend through it."""
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
        """Gaming responses that were accepted."""
        return _total(self.gaming)

    @property
    def youden(self) -> Youden | None:
        """Youden's J over all rewrites and edits that count, or None if one of the two was not judged."""
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
    gold_response: str | None = None,
    seconds: float | None = None,
    on_verdicts: Callable[[int, int], None] | None = None,
) -> AuditReport:
    """Measure a verifier, given by name or as an object, on gold answers.

    info: what the verifier gets as `info`, for all golds alike. limit: the most distinct golds that are drawn, the
    same ones for the same `seed`. cpu_s, wall_s: what one verdict may cost before it counts as undecided.
    gold_response: a template of the response that is right for a gold, such as `\\boxed{{{gold}}}`; else it is found.
    seconds: where all would take longer, fewer golds and answers are drawn. on_verdicts: is called with the verdicts so
    far and about how many there will be.
    """
    golds = list(golds)
    distinct = list(dict.fromkeys(golds))
    if not any(gold.strip() for gold in distinct):
        raise ConfigError("an audit needs at least one gold answer.")
    sample = _draw(distinct, limit, seed)
    count, began = VerdictCount(on_verdicts), time.monotonic()
    count.total = sum(map(_count_trials, sample))
    try:
        with VerifierProbe(verifier, cpu_s, wall_s, info=info, form=gold_response, on_verdicts=count.add) as probe:
            form, loaded = probe.read_form(sample), probe.verifier
            report = AuditReport(loaded.name, loaded.version, form, len(golds), len(distinct), seed, dict(info or {}))
            report.unsaid_form = _find_unsaid(probe, sample)
            end = math.inf if seconds is None else began + seconds
            sample, report.most_trials = _fit(sample, (end - time.monotonic()) / max(probe.verdict_s, 1e-9), seed)
            count.total = count.so_far + sum(1 + _count_trials(gold, report.most_trials) for gold in sample)
            _measure(probe, sample, report, count, end)
    except VerifierNotLoaded as error:
        raise ConfigError(
            f"the verifier cannot be made in another process: {error}.", "Name it: path/to/file.py:object."
        ) from error
    return report


def _find_unsaid(probe: VerifierProbe, golds: Sequence[str]) -> str | None:
    if probe.says_form or any(probe.judge(gold, gold).paid for gold in golds[:BARE_TRIED]):
        return None
    return RESPONSE_FORMS.get(probe.form, probe.form)


def _draw(golds: list[str], limit: int, seed: int) -> list[str]:
    """At most `limit` of the golds, in their order; a gold's rank does not depend on the other golds."""
    if len(golds) <= limit:
        return golds
    order = sorted(golds, key=lambda gold: hashlib.sha256(f"{seed}:{gold}".encode(errors="replace")).digest())
    drawn = set(order[:limit])
    return [gold for gold in golds if gold in drawn]


def _fit(golds: list[str], verdicts: float, seed: int) -> tuple[list[str], int | None]:
    """Return the golds for which this number of verdicts is enough, and how many answers of each; None for all of
    them."""
    if sum(1 + _count_trials(gold) for gold in golds) <= verdicts:
        return golds, None
    most = max(FEWEST_TRIALS, int(verdicts / len(golds)) - 1)
    return _draw(golds, max(1, int(verdicts / (most + 1))), seed), most


def _count_trials(gold: str, most: int | None = None) -> int:
    """Return how many answers are tried of a gold that passes itself."""
    trials = sum(1 for _ in _trials(gold))
    return trials if most is None else min(most, trials)


def _measure(probe: VerifierProbe, golds: list[str], report: AuditReport, count: VerdictCount, end: float) -> None:
    """Judge the golds and their answers, until `end` by the monotonic clock."""
    costs: list[float] = []
    for gold in golds:
        if costs and time.monotonic() > end:
            break
        form = form_of(gold)
        kind = form.kind if form else _OTHER_KIND
        report.kinds[kind] = report.kinds.get(kind, 0) + 1
        trials = list(_trials(gold))
        if report.most_trials is not None:
            drawn = set(_draw([trial.key for trial in trials], report.most_trials, report.seed))
            trials = [trial for trial in trials if trial.key in drawn]
        if not _passes_itself(probe, gold, report):
            count.add(len(trials))
            continue
        for trial in trials:
            if costs and time.monotonic() > end:
                break
            response = trial.answer if trial.is_whole else probe.respond(trial.answer)
            observed = probe.judge(response, gold)
            costs.append(observed.cpu_s)
            counts: dict[str, RuleCount] = getattr(report, trial.part)
            rule_count = counts.setdefault(trial.rule, RuleCount(trial.rule, trial.policy))
            _count(rule_count, report, gold, trial.answer, observed, error=observed.paid != trial.is_right)
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
    shown = probe.respond(gold)
    return observed.paid and (shown == response or probe.judge(shown, gold).paid)


@dataclass(frozen=True, slots=True)
class _Trial:
    """An answer that is tried of a gold."""

    part: str
    """The field of the report that counts it."""
    rule: str
    policy: bool
    is_right: bool
    answer: str
    is_whole: bool = False
    """Whether the answer is a whole response."""

    @property
    def key(self) -> str:
        """The key that tells this trial from the gold's other trials."""
        return f"{self.part} {self.answer}"


def _trials(gold: str) -> Iterator[_Trial]:
    for part, variants, is_right in (("rewrites", rewrites(gold), True), ("edits", edits(gold), False)):
        for variant in variants:
            yield _Trial(part, variant.rule, variant.policy, is_right, variant.text)
    for case in layouts(gold):
        yield _Trial("rewrites", case.name, True, True, case.response, is_whole=True)
    for case in gaming_cases(gold):
        yield _Trial("gaming", case.name, False, False, case.response, is_whole=True)


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
