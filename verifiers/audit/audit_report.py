"""Measures how often a verifier errs on your golds: `audit("math", golds)`.

    part        errors that are counted
    identity    golds that are refused as answers to themselves
    rewrites    right answers in other spellings that are refused: false negatives, by rule
    edits       slightly wrong answers that are accepted: false positives, by rule
    gaming      responses without a definite answer that get the full score

Rules make the answers from the golds. Each rule is sure to keep or to change the value, so no labels are needed.
Answers are made only from golds that pass as answers to themselves. They are put into responses of the form that the
verifier reads (`RESPONSE_FORMS`). Two results are counted separately: verdicts without a score, and rules of policy, on
which sensible verifiers differ.

Not covered: the answers that models really give. The rules know only some kinds of golds (`form_reader.form_of`), such
as fractions and intervals. For other golds, only identity and a part of gaming are measured.

The results of an audit are written as a verifier card, in Markdown or JSON:

    card = Card(report, contract, fingerprint="math@1", data="train.jsonl", date="2026-01-31")
    markdown(card), as_json(card)

A card names the data, the version of the verifier, the measured rates, and the limits of the audit. The caller passes
the date, so that the same audit gives the same card, apart from measured times. Texts from the data are shown as code.
"""

from __future__ import annotations

import hashlib
import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from truegold.verifiers.audit.contract import FORM_REMEDY, CheckResult
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
from truegold.verifiers.response_forms import RESPONSE_FORMS, fill_form
from truegold.verifiers.sandbox.errors import ConfigError
from truegold.verifiers.verdict import Verifier

DEFAULT_LIMIT = 500
"""The default number of golds. They take about 30,000 verdicts, and give intervals of a few tenths of a per cent."""

FEWEST_TRIALS = 12
"""Minimum number of answers that are tried for each gold if there is no time for all."""

BARE_TRIED = 3
"""Maximum number of golds that are tried as whole responses, to see whether the verifier accepts bare golds."""

NEAR_ZERO_J = 0.5
"""`Youden.meaning` warns of a slow training if the interval of Youden's J begins below this value."""

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
    """Whether an error under this rule is a choice of the verifier instead of a fault."""
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
    """Return mean, median, 99th percentile and maximum of CPU times in seconds, or zeros without any times."""
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
    high: float
    """The ends of the 95 % interval are `low` and `high`."""

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
    version: str
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
    """The form that the verifier should define, since it refuses bare golds. None if it defines one or needs none."""
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
    """The number of verdicts by weakness: a way, named in the evidence, in which a response could influence its own
    verdict."""
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

    info: the `info` of all verdicts. limit: the maximum number of distinct golds; the same `seed` draws the same
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
    """Judge a gold as the answer to itself, and count the verdict under `identity`.

    Return whether the gold passes. The gold must also pass in the form of response in which other answers are tried.
    """
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
    """The field of the report that counts the verdict on the answer."""
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


CARD_FORMAT = 1
"""The version of the JSON format. It is raised when a field changes its meaning."""
EXAMPLES_SHOWN = 40
"""Maximum number of failures in the Markdown table; the JSON has all."""
TEXT_CHARS = 120
"""Maximum number of characters of a text in a table."""
_YOUDEN_SOURCE = (
    "J is the share of right answers that are accepted, minus the share of wrong answers that are accepted. The drift "
    "of a policy depends on J alone: near 0 learning is slow, below 0 the policy collapses (arXiv 2601.04411)."
)
_ESCAPED_BAR = "\\|"
_MARK = {True: "kept", False: "BROKEN", None: "not checked"}


@dataclass(frozen=True, slots=True)
class Card:
    """An audit with its context."""

    report: AuditReport
    contract: Sequence[CheckResult]
    fingerprint: str
    """The verifier's name and version, and a digest of a user's code (`registry.fingerprint`)."""
    data: str
    """The name of the data set."""
    date: str
    description: str = ""
    """A sentence on the verifier, for the head of the card."""
    skipped: Mapping[str, int] | None = None
    """The number of rows without a usable gold, by reason."""


def as_json(card: Card) -> dict[str, Any]:
    """Return the card as JSON data."""
    report, youden = card.report, card.report.youden
    verifier = {"name": report.name, "version": report.version, "fingerprint": card.fingerprint}
    golds = {"given": report.gold_count, "distinct": report.distinct_count, "audited": report.audited}
    data = {"name": card.data, **{f"golds_{name}": count for name, count in golds.items()}, "seed": report.seed}
    return {
        "card_format": CARD_FORMAT,
        "verifier": {**verifier, "description": card.description, "info": dict(report.info)},
        "date": card.date,
        "data": {**data, "skipped": dict(card.skipped or {}), "kinds": report.kinds},
        "response_form": report.response_form,
        "summary": {name: _rate_json(rate) for name, rate in _summary(report)},
        "youden": None if youden is None else {**asdict(youden), "meaning": youden.meaning},
        "identity": _rule_json(report.identity),
        "rewrites": [_rule_json(count) for count in report.rewrites.values()],
        "edits": [_rule_json(count) for count in report.edits.values()],
        "gaming": [_rule_json(count) for count in report.gaming.values()],
        "undecided": dict(report.undecided),
        "weaknesses": dict(report.weaknesses),
        "contract": [asdict(result) for result in card.contract],
        "speed": asdict(report.speed),
        "limits": list(_limits(card)),
    }


def markdown(card: Card) -> str:
    """Return the card as GitHub-flavoured Markdown."""
    report = card.report
    limits = ["## What this does not show", "", *(f"- {limit}" for limit in _limits(card))]
    parts = (_head_lines(card), _rate_lines(report), _contract_lines(card), _cost_lines(report), _failure_lines(report))
    return "\n".join([line for part in (*parts, limits) for line in part]) + "\n"


def summary_lines(report: AuditReport) -> Iterator[str]:
    """Yield lines with the rates as plain text for a terminal."""
    for name, rate in _summary(report):
        undecided = f", {rate.undecided} not judged" if rate.undecided else ""
        yield f"{name:<22} {_share(rate):>8}  {_interval(rate):<17} {rate.errors} of {rate.judged}{undecided}"
    yield _youden_line(report)
    yield from _form_lines(report)
    if report.most_trials is not None:
        answers = f"{report.most_trials} answers each"
        yield f"In the available time: {report.audited} of {report.distinct_count} golds, {answers}."


def _form_lines(report: AuditReport) -> Iterator[str]:
    """Yield advice to define the form of a right response, if the verifier needs one and does not define it."""
    rate = report.identity.rate
    if rate.judged and rate.errors == rate.judged:
        yield FORM_REMEDY
    elif report.unsaid_form is not None:
        shown = fill_form(report.response_form, "42")
        yield (
            f"A bare gold is refused, so that answers were shown as {shown!r}. Define this form in the verifier, since "
            f"a run would refuse all rows otherwise: @verifier(gold_response={report.unsaid_form!r})"
        )


def _head_lines(card: Card) -> Iterator[str]:
    report = card.report
    yield f"# Verifier card: {code(report.name)}"
    yield ""
    if card.description:
        yield from (_plain(card.description), "")
    yield f"- version {code(report.version)}, fingerprint {code(card.fingerprint)}"
    yield f"- audited on {_plain(card.date)} with {code(card.data)}: {_describe_sample(report)}"
    if card.skipped:
        skipped = ", ".join(f"{count} {_plain(reason)}" for reason, count in sorted(card.skipped.items()))
        yield f"- rows without a gold: {skipped}"
    if report.info:
        yield f"- with `info` {code(str(dict(report.info)))}"
    yield f"- answers were shown in the form {code(report.response_form)}"
    kinds = sorted(report.kinds.items(), key=lambda item: -item[1])
    yield f"- forms of gold: {', '.join(f'{kind} {count}' for kind, count in kinds)}"
    yield ""


def _describe_sample(report: AuditReport) -> str:
    golds = f"{report.gold_count} golds, {report.distinct_count} distinct"
    if report.audited == report.distinct_count:
        return golds
    return f"{golds}, {report.audited} of them drawn with seed {report.seed}"


def _summary(report: AuditReport) -> Iterator[tuple[str, Rate]]:
    yield "gold refused", report.identity.rate
    yield "right answers refused", report.false_negatives
    yield "wrong answers accepted", report.false_positives
    yield "gaming paid", report.gamed


def _rate_lines(report: AuditReport) -> Iterator[str]:
    yield from ("## Rates", "")
    rows = [[name, _share(rate), _interval(rate), *_counts(rate)] for name, rate in _summary(report)]
    yield from _table(["", "rate", "95 % interval", "errors", "judged", "not judged"], rows)
    yield from (f"{_youden_line(report)} {_YOUDEN_SOURCE}", "")
    parts = [("Right answers refused, by rewrite", report.rewrites), ("Wrong answers accepted, by edit", report.edits)]
    for title, part in [*parts, ("Gaming responses accepted", report.gaming)]:
        yield from (f"## {title}", "")
        yield from _rule_lines([count for count in part.values() if not count.policy])
    policies = [count for part in (report.rewrites, report.edits) for count in part.values() if count.policy]
    if policies:
        yield from ("## Matters of policy", "", "Sensible verifiers differ on these; the rates leave them out.", "")
        refused = {id(count) for count in report.rewrites.values()}
        rows = [[code(c.rule), *_verdicts(c, refused=id(c) in refused)] for c in policies]
        yield from _table(["rule", "accepted", "refused", "not judged"], rows)


def _youden_line(report: AuditReport) -> str:
    if (youden := report.youden) is None:
        return "Youden's J: unknown, since right or wrong answers were not judged."
    return f"Youden's J {youden.j:.3f} ({youden.low:.3f} – {youden.high:.3f}). {youden.meaning}"


def _rule_lines(counts: Sequence[RuleCount]) -> Iterator[str]:
    if wrong := sorted((c for c in counts if c.rate.errors or c.rate.undecided), key=lambda c: -c.rate.errors):
        rows = [[code(c.rule), _share(c.rate), _interval(c.rate), *_counts(c.rate)] for c in wrong]
        yield from _table(["rule", "rate", "95 % interval", "errors", "judged", "not judged"], rows)
    clean = [c for c in counts if c not in wrong]
    if clean:
        yield f"No errors: {', '.join(f'{code(c.rule)} ({c.rate.judged})' for c in clean)}."
        yield ""
    if not counts:
        yield from ("Nothing was tried: the rules do not know the form of any gold, or no gold passes itself.", "")


def _contract_lines(card: Card) -> Iterator[str]:
    yield from ("## Contract", "")
    rows = [[_plain(r.name), _MARK[r.ok], "<br>".join(code(finding) for finding in r.findings)] for r in card.contract]
    yield from _table(["line", "", "findings"], rows) if rows else ("Not checked.", "")


def _cost_lines(report: AuditReport) -> Iterator[str]:
    speed = report.speed
    yield from ("## Cost", "")
    yield (
        f"{speed.verdicts} verdicts: {speed.mean_ms:.2f} ms of CPU time on average, median {speed.median_ms:.2f}, "
        f"99th percentile {speed.p99_ms:.2f}, highest {speed.max_ms:.1f}."
    )
    yield ""


def _failure_lines(report: AuditReport) -> Iterator[str]:
    # Accepted wrong answers come first. Each rule gets one example before any rule gets a second.
    parts = (("gold", {"": report.identity}), ("edit", report.edits), ("gaming", report.gaming))
    counts = [(part, count) for part, by_rule in (*parts, ("rewrite", report.rewrites)) for count in by_rule.values()]
    rows = [
        [part, code(count.rule), code(example.gold), code(example.answer), f"{example.score} {example.reason}"]
        for index in range(EXAMPLES_KEPT)
        for part, count in counts
        for example in count.examples[index : index + 1]
        if not count.policy
    ]
    if rows:
        yield from ("## Some of the failures", "")
        yield from _table(["", "rule", "gold", "answer", "verdict"], rows[:EXAMPLES_SHOWN])
        if len(rows) > EXAMPLES_SHOWN:
            yield from (f"The JSON has {len(rows) - EXAMPLES_SHOWN} more.", "")


def _limits(card: Card) -> Iterator[str]:
    report = card.report
    yield "Rules made the answers from golds. A model under training writes different answers; sample these too."
    if other := report.kinds.get("other", 0):
        yield f"The rules do not know the form of {other} of {report.audited} golds: they have no rewrites or edits."
    if failed := report.identity.rate.errors + report.identity.rate.undecided:
        yield f"{failed} golds did not pass themselves, so that no other answers were tried for them."
    if report.undecided:
        reasons = ", ".join(f"{count} {_plain(reason)}" for reason, count in report.undecided.most_common())
        yield f"The rates leave out verdicts without a score: {reasons}."
    for weakness, count in report.weaknesses.most_common():
        yield f"{count} verdicts are weak: {_plain(weakness)}."
    if report.audited < report.distinct_count:
        yield f"{report.distinct_count - report.audited} distinct golds were not drawn."
    unchecked = [result.name for result in card.contract if result.ok is None]
    if unchecked:
        yield f"Lines of the contract that were not checked: {', '.join(unchecked)}."
    yield "The intervals assume independent verdicts. Each gold has several answers, so that they are too narrow."


def code(text: str) -> str:
    """Return a text as a Markdown code span on one line, cut after TEXT_CHARS characters."""
    text = text if len(text) <= TEXT_CHARS else f"{text[:TEXT_CHARS]}…"
    # Line ends, surrogates and other invisible characters are shown as escapes.
    shown = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    if not shown:
        return "(empty)"
    ticks = "`" * (max(map(len, re.findall("`+", shown)), default=0) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") or shown.strip() != shown else ""
    return f"{ticks}{pad}{shown}{pad}{ticks}"


def _plain(text: str) -> str:
    """Return a text with the characters of Markdown escaped."""
    return re.sub(r"([\\`*_{}\[\]<>#$~])", r"\\\1", " ".join(text.split()))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    # In a table, an unescaped bar ends the cell, even inside a code span.
    yield from (f"| {' | '.join(cell.replace('|', _ESCAPED_BAR) for cell in row)} |" for row in rows)
    yield ""


def _share(rate: Rate) -> str:
    return "–" if rate.share is None else f"{100 * rate.share:.2f} %"


def _interval(rate: Rate) -> str:
    low, high = rate.interval
    return f"{100 * low:.2f} – {100 * high:.2f} %" if rate.judged else "–"


def _counts(rate: Rate) -> tuple[str, str, str]:
    return str(rate.errors), str(rate.judged), str(rate.undecided)


def _verdicts(count: RuleCount, refused: bool) -> tuple[str, str, str]:
    errors, others = count.rate.errors, count.rate.judged - count.rate.errors
    accepted, not_accepted = (others, errors) if refused else (errors, others)
    return str(accepted), str(not_accepted), str(count.rate.undecided)


def _rate_json(rate: Rate) -> dict[str, Any]:
    low, high = rate.interval
    return {**asdict(rate), "rate": rate.share, "low": low, "high": high}


def _rule_json(count: RuleCount) -> dict[str, Any]:
    examples = [asdict(example) for example in count.examples]
    return {"rule": count.rule, "policy": count.policy, **_rate_json(count.rate), "examples": examples}
