"""Measures how often a verifier errs on your golds: `audit("math", golds)`.

    identity    golds that are refused as answers to themselves
    rewrites    right answers in other spellings that are refused: false negatives, by rule
    edits       slightly wrong answers that are accepted: false positives, by rule
    gaming      responses without a definite answer that get the full score

Rules make the answers from the golds. Each rule is sure to keep or to change the value, so that no labels are needed.
Answers are made only from golds that pass as answers to themselves, and are tried in the form of response that the
verifier reads (`RESPONSE_FORMS`). Verdicts without a score are counted separately, and so are rules of policy, on which
sensible verifiers differ.

Not covered: the answers that models really give. The rules know only some kinds of golds (`form_reader.form_of`), such
as fractions and intervals. For other golds, only identity and a part of gaming are measured.
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
"""The default number of golds: about 30,000 verdicts, and intervals of a few tenths of a per cent."""

FEWEST_TRIALS = 12
"""Minimum number of answers that are tried for each gold if there is no time for all."""

BARE_TRIED = 3
"""Maximum number of golds that are tried as whole responses, to see whether the verifier accepts bare golds."""

NEAR_ZERO_J = 0.5
"""If J may be lower than this, `Youden.meaning` warns of slow learning, since half of the reward or more is noise."""

EXAMPLES_KEPT = 3
"""Maximum number of failures that are kept for each rule."""

PASSING_KEPT = 12
"""Maximum number of golds that are kept for `contract.check`, which needs only a few."""

EXAMPLE_CHARS = 400
"""Maximum number of characters of each text in an example."""

_OTHER_KIND = "other"
"""The kind of golds whose form `form_of` does not know."""


@dataclass(frozen=True, slots=True)
class Example:
    """One failure: gold, answer, and the verifier's verdict."""

    gold: str
    answer: str
    score: float | None
    reason: str


@dataclass
class RuleCount:
    """The results of one rule over all golds."""

    rule: str
    policy: bool
    """Whether an error is a choice of the verifier and not a fault."""
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
    """Return mean, median, 99th percentile and maximum of CPU times in seconds; zeros without any times."""
    if not seconds:
        return Speed(0, 0.0, 0.0, 0.0, 0.0)
    costs = sorted(1000 * cost for cost in seconds)

    def quantile(share: float) -> float:
        return costs[min(len(costs) - 1, math.ceil(share * len(costs)) - 1)]

    return Speed(len(costs), sum(costs) / len(costs), quantile(0.5), quantile(0.99), costs[-1])


@dataclass(frozen=True, slots=True)
class Youden:
    """Youden's J: the share of right answers that are accepted, minus the share of wrong answers that are accepted.

    Source: Youden 1950, Cancer 3, p. 32. The speed of learning from a verifier depends on J alone (arXiv 2601.04411).
    """

    j: float
    low: float
    """The lower end of the 95 % interval."""
    high: float
    """The upper end of the 95 % interval."""

    @property
    def meaning(self) -> str:
        """The meaning of the interval for training, in a sentence."""
        if self.high < 0:
            return "Below 0: the reward prefers wrong answers, and training on it destroys the policy."
        if self.low <= 0:
            return "Not distinguishable from 0: the reward may not depend on correctness; audit more golds."
        if self.low < NEAR_ZERO_J:
            return f"It may be below {NEAR_ZERO_J:g}: a policy learns, but slowly, since much of the reward is noise."
        return "Above 0: a policy learns; the nearer J is to 1, the faster."


@dataclass
class AuditReport:
    """The results of an audit."""

    name: str
    """The verifier's name."""
    version: str
    """The verifier's version."""
    response_form: str
    """The form of the responses: a name of `RESPONSE_FORMS`, `OWN_FORM`, or a template of the caller."""
    gold_count: int
    """The number of golds given."""
    distinct_count: int
    """The number of distinct golds, before the limit."""
    seed: int
    info: Mapping[str, Any]
    """The `info` that the verifier got."""
    unsaid_form: str | None = None
    """The template of responses that the verifier reads, if it refuses bare golds and has no `gold_response`; else
    None."""
    most_trials: int | None = None
    """Maximum number of answers that were tried for each gold, or None if there was time for all."""
    kinds: dict[str, int] = field(default_factory=dict)
    """The number of audited golds, by the kind of their form."""
    passing: list[str] = field(default_factory=list)
    """The first few golds that pass as answers to themselves."""
    identity: RuleCount = field(default_factory=lambda: RuleCount("identity", policy=False))
    rewrites: dict[str, RuleCount] = field(default_factory=dict)
    """Counts of right answers in other spellings, by rule."""
    edits: dict[str, RuleCount] = field(default_factory=dict)
    """Counts of slightly wrong answers, by rule."""
    gaming: dict[str, RuleCount] = field(default_factory=dict)
    """Counts of gaming responses, by case."""
    undecided: Counter[str] = field(default_factory=Counter)
    """The number of verdicts without a score, by reason."""
    weaknesses: Counter[str] = field(default_factory=Counter)
    """The number of verdicts with each `weakness` in the evidence, a way for a response to influence its verdict."""
    speed: Speed = field(default_factory=lambda: speed_of(()))

    @property
    def audited(self) -> int:
        """The number of golds that were audited, after the limit."""
        return sum(self.kinds.values())

    @property
    def false_negatives(self) -> Rate:
        """The rate of right answers that were refused, without rules of policy."""
        return _total(self.rewrites)

    @property
    def false_positives(self) -> Rate:
        """The rate of wrong answers that were accepted, without rules of policy."""
        return _total(self.edits)

    @property
    def gamed(self) -> Rate:
        """The rate of gaming responses that were accepted."""
        return _total(self.gaming)

    @property
    def youden(self) -> Youden | None:
        """Youden's J over all rewrites and edits, or None if right or wrong answers were not judged."""
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
    """Measure the error rates of a verifier, given by name or as an object, on gold answers.

    info: the `info` of all verdicts. limit: the most distinct golds that are audited; the same `seed` draws the same
    golds. cpu_s, wall_s: the CPU time and wall time after which a verdict counts as undecided. gold_response: a
    template of a right response, such as `\\boxed{{{gold}}}`; by default the form is found by trying. seconds: the time
    for the audit; if it is too short, fewer golds and answers are drawn. on_verdicts: called with the number of
    verdicts so far and the estimated total.
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
            f"the verifier cannot be loaded in another process: {error}.", "Pass its name: path/to/file.py:object."
        ) from error
    return report


def _find_unsaid(probe: VerifierProbe, golds: Sequence[str]) -> str | None:
    if probe.says_form or any(probe.judge(gold, gold).paid for gold in golds[:BARE_TRIED]):
        return None
    return RESPONSE_FORMS.get(probe.form, probe.form)


def _draw(golds: list[str], limit: int, seed: int) -> list[str]:
    """Return at most `limit` golds in their order. The draw ranks each gold by a hash of the seed and its text."""
    if len(golds) <= limit:
        return golds
    order = sorted(golds, key=lambda gold: hashlib.sha256(f"{seed}:{gold}".encode(errors="replace")).digest())
    drawn = set(order[:limit])
    return [gold for gold in golds if gold in drawn]


def _fit(golds: list[str], verdicts: float, seed: int) -> tuple[list[str], int | None]:
    """Return the golds to audit with this number of verdicts, and the most answers for each (None for all)."""
    if sum(1 + _count_trials(gold) for gold in golds) <= verdicts:
        return golds, None
    most = max(FEWEST_TRIALS, int(verdicts / len(golds)) - 1)
    return _draw(golds, max(1, int(verdicts / (most + 1))), seed), most


def _count_trials(gold: str, most: int | None = None) -> int:
    """Return the number of answers that are tried for a gold that passes itself."""
    trials = sum(1 for _ in _trials(gold))
    return trials if most is None else min(most, trials)


def _measure(probe: VerifierProbe, golds: list[str], report: AuditReport, count: VerdictCount, end: float) -> None:
    """Judge the golds and their answers, until the time `end` of the monotonic clock."""
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
    """Count a gold's identity; return whether it also passes in the form that is used for other answers."""
    response, failure = probe.gold_response(gold)
    if response is None:
        observed = Observed(None, None, None, failure or "no right response can be made")
    else:
        observed = probe.judge(response, gold)
    _count(report.identity, report, gold, response or gold, observed, error=not observed.paid)
    if observed.paid and len(report.passing) < PASSING_KEPT:
        report.passing.append(gold)
    shown = probe.respond(gold)
    return observed.paid and (shown == response or probe.judge(shown, gold).paid)


@dataclass(frozen=True, slots=True)
class _Trial:
    """An answer that is tried for a gold."""

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
        """A key that is different for each trial of a gold."""
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
