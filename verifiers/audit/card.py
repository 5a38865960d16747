"""Writes the results of an audit as a verifier card, in Markdown or JSON.

    card = Card(report, contract, fingerprint="math@1", data="train.jsonl", date="2026-01-31")
    markdown(card), as_json(card)

A card names the data, the version of the verifier, the measured rates, and the limits of the audit. The caller passes
the date, so that the same audit gives the same card, apart from measured times. Texts from the data are shown as code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from truegold.verifiers.audit.audit_report import EXAMPLES_KEPT, AuditReport, RuleCount
from truegold.verifiers.audit.contract import FORM_REMEDY, CheckResult
from truegold.verifiers.rates import Rate
from truegold.verifiers.response_forms import fill_form

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
