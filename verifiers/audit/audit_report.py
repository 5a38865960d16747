"""Measures how often a verifier errs on your golds (`audit("math", golds)`), and writes the card that says so.

    identity    a gold that does not pass itself
    rewrites    the right answer in another spelling, refused: false negatives, by rule
    edits       a wrong answer next to the right one, accepted: false positives, by rule
    gaming      a response that commits to nothing, paid

Rewrites, edits and gaming are tried for golds that pass themselves, in the form of response that the verifier reads
(`RESPONSE_FORMS`); the answers are made by rules whose truth is certain, so no labels are needed. Verdicts without a
score and rules of policy are counted apart. The answers that models really give are not covered, and for golds of no
certain form there is identity and a part of gaming only.

The verifier card is what an audit found, as Markdown for people and as JSON for programs:

    card = Card(report, contract, fingerprint="math@1", data="train.jsonl", date="2026-01-31")
    markdown(card), as_json(card)

It says what was measured, on what, with which version, and what that does not show. The date is the caller's: no clock
is read here, and the same audit gives the same card, its times aside. Every text of the data is shown as code.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from truegold.verifiers.audit.contract import CheckResult
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

CARD_FORMAT = 1
"""The version of the JSON, which rises when a field changes its meaning."""
EXAMPLES_SHOWN = 40
"""Rows of the table of failures; the JSON has all that were kept."""
TEXT_CHARS = 120
"""The characters of a text that a table shows."""
_YOUDEN_SOURCE = (
    "J is the share of right answers paid less that of wrong ones paid. How a policy drifts depends on J alone: near 0 "
    "learning is slow, below 0 the policy collapses (arXiv 2601.04411)."
)
_ESCAPED_BAR = "\\|"
_MARK = {True: "kept", False: "BROKEN", None: "not checked"}


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


@dataclass(frozen=True, slots=True)
class Card:
    """An audit and what surrounds it."""

    report: AuditReport
    contract: Sequence[CheckResult]
    fingerprint: str
    """Name and version of the verifier with what else decides its verdicts."""
    data: str
    """The name of the data set."""
    date: str
    description: str = ""
    skipped: Mapping[str, int] | None = None
    """Rows of the data that gave no gold, counted by reason."""


def as_json(card: Card) -> dict[str, Any]:
    """Everything that the card knows, ready for JSON."""
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
    """The card as GitHub-flavoured Markdown."""
    report = card.report
    limits = ["## What this does not show", "", *(f"- {limit}" for limit in _limits(card))]
    parts = (_head_lines(card), _rate_lines(report), _contract_lines(card), _cost_lines(report), _failure_lines(report))
    return "\n".join([line for part in (*parts, limits) for line in part]) + "\n"


def summary_lines(report: AuditReport) -> Iterator[str]:
    """The rates in plain text, for a terminal."""
    for name, rate in _summary(report):
        undecided = f", {rate.undecided} not judged" if rate.undecided else ""
        yield f"{name:<22} {_share(rate):>8}  {_interval(rate):<17} {rate.errors} of {rate.judged}{undecided}"
    yield _youden_line(report)


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
    for title, part in [*parts, ("Gaming responses paid", report.gaming)]:
        yield from (f"## {title}", "")
        yield from _rule_lines([count for count in part.values() if not count.policy])
    policies = [count for part in (report.rewrites, report.edits) for count in part.values() if count.policy]
    if policies:
        yield from ("## Matters of policy", "", "Sensible verifiers differ on these; they are in no rate above.", "")
        refused = {id(count) for count in report.rewrites.values()}
        rows = [[code(c.rule), *_verdicts(c, refused=id(c) in refused)] for c in policies]
        yield from _table(["rule", "accepted", "refused", "not judged"], rows)


def _youden_line(report: AuditReport) -> str:
    if (youden := report.youden) is None:
        return "Youden's J: not known, since right or wrong answers were not judged."
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
        yield from ("Nothing was tried: no gold has a form that the rules know, or none passes itself.", "")


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
    # What pays for wrong answers first, and of each rule one example before any has a second.
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
            yield from (f"{len(rows) - EXAMPLES_SHOWN} more are in the JSON.", "")


def _limits(card: Card) -> Iterator[str]:
    report = card.report
    yield "The answers were made by rules from gold answers. What a model under training writes differs; sample it."
    if other := report.kinds.get("other", 0):
        yield f"{other} of {report.audited} golds have no form that the rules know: they have no rewrites or edits."
    if failed := report.identity.rate.errors + report.identity.rate.undecided:
        yield f"{failed} golds did not pass themselves: nothing else was tried with them."
    if report.undecided:
        reasons = ", ".join(f"{count} {_plain(reason)}" for reason, count in report.undecided.most_common())
        yield f"Verdicts without a score are in no rate: {reasons}."
    for weakness, count in report.weaknesses.most_common():
        yield f"{count} verdicts are weak: {_plain(weakness)}."
    if report.audited < report.distinct_count:
        yield f"{report.distinct_count - report.audited} distinct golds were not drawn."
    unchecked = [result.name for result in card.contract if result.ok is None]
    if unchecked:
        yield f"Of the contract, not checked: {', '.join(unchecked)}."
    yield "The intervals take verdicts for independent. Several answers come from each gold, so they are too narrow."


def code(text: str) -> str:
    """Any text as one code span on one line, cut after TEXT_CHARS characters."""
    text = text if len(text) <= TEXT_CHARS else f"{text[:TEXT_CHARS]}…"
    # Line ends, surrogates and other invisible characters are shown as escapes.
    shown = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    if not shown:
        return "(empty)"
    ticks = "`" * (max(map(len, re.findall("`+", shown)), default=0) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") or shown.strip() != shown else ""
    return f"{ticks}{pad}{shown}{pad}{ticks}"


def _plain(text: str) -> str:
    """A text of the caller's as a text of Markdown, without markup."""
    return re.sub(r"([\\`*_{}\[\]<>#$~])", r"\\\1", " ".join(text.split()))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    # A bar ends a cell even inside a code span, and there alone a backslash keeps it from doing so.
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
