"""Stage `settle`: applies reviewers' decisions to rows, and holds back rows that still need a decision.

    decision about a row            effect on the row
    none, no blocking flag          passes
    none or unsure, blocking flag   dropped as `held_for_review`, until there is a decision
    keep                            passes (ledger: `reviewer_keep`)
    fix                             passes with the reviewer's gold or changed tests (ledger: `reviewer_fix`)
    drop                            dropped as `reviewer_drop`
    contradictory decisions         dropped as `reviewers_disagree`, until the reviewers agree
    fix that no answer can match    dropped as `fix_unpayable`, until there is another fix
    keep, with unreadable tests     dropped as `keep_unpayable`, until there are other tests
    keep or fix, dropped earlier    restored (ledger: `reviewer_restored`)
    only about a row in conflict    passes, or dropped as the wrong side of the conflict (`consensus`)

Further outputs: `open_flags.parquet` has the flags of rows that pass without a decision; later stages may use them.
`decided.parquet` names the rows that pass by a decision; later flags cannot hold them back. `label_checks.parquet` has
the decisions about unflagged rows that were drawn at random, with their suspicion.

A decision applies to every row with its id that has the content that the reviewer saw, also in later runs. If the row
has changed or is missing, the decision is stale, and is listed in `stale_decisions.jsonl`. `facts` has the precision of
each flag (`precision`), and the agreement of reviewers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any, Literal, cast

import orjson
import pyarrow as pa

from truegold.pipeline.config.stages import SettleConfig, Tiers
from truegold.pipeline.review.consensus import (
    UNDECIDED,
    AgreedDecision,
    Effect,
    Settlement,
    Standing,
    WeighedReview,
    weigh_review,
)
from truegold.pipeline.review.decisions import DECISIONS, DecisionKind, Decisions, digest_decisions, load_decisions
from truegold.pipeline.review.gold_reading import changed_tests, is_unreadable, takes_gold, with_gold
from truegold.pipeline.review.review_measures import FlagPrecision, label_checks, measure_agreement, measure_flags
from truegold.pipeline.running.parts import Part, split_inputs, sum_reports
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.running.stage import StageReport, stage_function
from truegold.pipeline.sources.likely_causes import cause_of_held
from truegold.pipeline.tables.ledger import DROPPED_FILE, FLAG_SCHEMA, FLAGS_FILE, RESTORED, FlagRecord, Ledger
from truegold.pipeline.tables.losses import CONTRADICTED, HELD, LOSSES, LossCount
from truegold.pipeline.tables.reasons import CHECK_SCHEMA, CHECKS_FILE, CONFLICTING_LABELS
from truegold.pipeline.tables.rows import (
    KEY,
    ROW_SCHEMA,
    Row,
    RowKey,
    TableWriter,
    content_key,
    count_rows,
    read_rows,
    read_table,
    row_key,
    row_place,
    row_reference,
    write_rows,
)

OPEN_FLAGS_FILE = "open_flags.parquet"
"""The file with the flags of rows that pass without a decision."""
DECIDED_FILE = "decided.parquet"
"""The file with the keys of rows that pass by a decision."""
STALE_FILE = "stale_decisions.jsonl"
"""The file with the decisions that were not applied, and the reasons."""
STALE_SHOWN = 20
"""The maximum number of stale decisions whose ids the report lists."""

_ROW_ID = re.compile("[0-9a-f]{20}")
DECIDED_SCHEMA = pa.schema([ROW_SCHEMA.field(name) for name in KEY])


@stage_function(version=10, judges="rows")
def settle(inputs: Mapping[str, Path], config: SettleConfig, out_dir: Path, progress: Progress) -> StageReport:
    """Apply the decisions of reviewers, and hold back rows that still need a decision."""
    decisions = load_decisions(*(path for name, path in inputs.items() if name.startswith("decisions")))
    dropped = _dropped_before(inputs, decisions)
    rows = chain(read_rows(inputs["rows"]), (row for _, row in dropped.values()))
    review = weigh_review(rows, read_table(inputs["flags"], FlagRecord), decisions)
    precision = measure_flags(read_table(inputs["flags"], FlagRecord), review.agreed, review.conflicts)
    tiers = _tiers(precision, config)
    total = count_rows(inputs["rows"])
    held: LossCount[Row] = LossCount()
    progress.start("settle", total)
    reports = []
    with (
        TableWriter(out_dir / DECIDED_FILE, DECIDED_SCHEMA) as decided,
        TableWriter(out_dir / OPEN_FLAGS_FILE, FLAG_SCHEMA) as open_flags,
    ):
        for part in split_inputs(inputs, out_dir, "flags"):
            restored = dropped if part.index + 1 == part.parts else {}
            reports.append(_settle_part(part, review, tiers, decided, open_flags, held, restored))
            progress.advance(reports[-1].rows_in)
    keys = map(row_key, read_table(inputs["flags"], FlagRecord, KEY))
    flagged = {key for key in keys if key in review.standings}
    write_rows(out_dir / CHECKS_FILE, label_checks(decisions, review.agreed, flagged), CHECK_SCHEMA)
    stale = _write_stale(out_dir / STALE_FILE, review, decisions)
    if stale["count"]:
        not_ids = [name for name in stale["ids"] if _ROW_ID.fullmatch(name) is None]
        named = f" {not_ids[0]!r} is no row's id: `truegold explain ROW` prints it." if not_ids else ""
        progress.note(
            f"{stale['count']} decisions were not applied: {stale['gone']} about rows that are not in the data or were "
            f"dropped before, {stale['changed']} about rows that the data or a setting of `clean` has changed since "
            f"(settle/{STALE_FILE}).{named}"
        )
    heavy = held.heavy(HELD, total, _describe_row, cause_of_held)
    return sum_reports(
        reports,
        {
            **({LOSSES: heavy} if heavy else {}),
            "decided_ids": len({key[0] for key, standing in review.standings.items() if standing.current}),
            "stale_decisions": stale,
            DECISIONS: digest_decisions(decisions),
            **({CONTRADICTED: contradicted} if (contradicted := list(review.contradicted.values())) else {}),
            "precision": [asdict(measured) for measured in precision],
            "tiers": tiers,
            "agreement": [asdict(agreement) for agreement in measure_agreement(decisions)],
        },
    )


def _settle_part(
    part: Part,
    review: WeighedReview,
    tiers: Mapping[str, bool],
    decided: TableWriter,
    open_flags: TableWriter,
    held: LossCount[Row],
    dropped: Mapping[str, tuple[str, Row]],
) -> StageReport:
    """Write the rows of a part that pass, with their open flags, and count in `held` the rows that are held back.

    `dropped` has rows that earlier stages dropped. Those that reviewers keep or fix are restored to this part.
    """
    flags: list[FlagRecord] = [
        {**flag, "blocks": tiers.get(flag["reason"], flag["blocks"])}
        for flag in read_table(part.inputs["flags"], FlagRecord)
    ]
    if tiers:
        write_rows(part.output(FLAGS_FILE), flags, FLAG_SCHEMA)
    blocking = _blocking_reasons(flags)
    undecided: set[RowKey] = set()
    with Ledger(part.output, "settle") as ledger, TableWriter(part.output("rows.parquet"), ROW_SCHEMA) as cleared:
        for row in read_rows(part.inputs["rows"]):
            key = row_key(row)
            standing = review.standings.get(key, UNDECIDED)
            reasons = blocking.get(key, [])
            if (fault := review.unpayable.get(key)) is not None and (fix := standing.agreed) is not None:
                _hold_unpayable(row, fix, fault, reasons, ledger)
                continue
            settled = _settle_row(row, reasons, standing, review.settlements.get(key), ledger)
            if settled is None:
                continue
            cleared.write(settled)
            if standing.agreed is not None:
                decided.write(dict(row_reference(row)))
            else:
                undecided.add(key)
        kept = _bring_back(dropped, review, ledger)
        for row in kept:
            cleared.write(row)
            decided.write(dict(row_reference(row)))
    for flag in flags:
        if row_key(flag) in undecided:
            open_flags.write(flag)
    for row in read_rows(part.output(DROPPED_FILE)):
        if row.get("drop_reason") == "held_for_review":
            for reason in blocking.get(row_key(row), ()):
                held.add(reason, row)
    return StageReport(part.count_rows() + ledger.counts.get(f"keep:{RESTORED}", 0), cleared.rows, ledger.counts)


def _hold_unpayable(row: Row, fix: AgreedDecision, fault: FlagRecord, reasons: list[str], ledger: Ledger) -> None:
    """Drop a row whose new gold no answer can match."""
    why = (
        {"fault": fault["reason"], **orjson.loads(fault["evidence"])}
        if not takes_gold(row)
        else {"fault": fault["reason"]}
    )
    ledger.drop(row, "fix_unpayable", flags=reasons, reviewers=fix.reviewers, gold=fix.gold, **why)


def _bring_back(dropped: Mapping[str, tuple[str, Row]], review: WeighedReview, ledger: Ledger) -> list[Row]:
    """Return the dropped rows that reviewers keep or fix, with their new golds. A row with a new gold that no answer
    can match is restored and held back."""
    kept = []
    for origin, row in dropped.values():
        agreed = review.agreed.get(key := row_key(row))
        if agreed is None or agreed.kind is DecisionKind.DROP:
            continue
        ledger.keep(row, RESTORED, dropped=origin, reviewers=agreed.reviewers, note=agreed.note)
        if (fault := review.unpayable.get(key)) is not None:
            _hold_unpayable(row, agreed, fault, [], ledger)
        elif agreed.gold is None and is_unreadable(origin):
            ledger.drop(row, "keep_unpayable", reviewers=agreed.reviewers, dropped=origin)
        elif (settled := _apply_decision(row, [], agreed, None, ledger) if agreed.gold else row) is not None:
            kept.append(settled)
    return kept


def _dropped_before(inputs: Mapping[str, Path], decisions: Decisions) -> dict[str, tuple[str, Row]]:
    """Return the rows that earlier stages dropped and reviewers decided about: id -> (`STAGE: REASON`, row). Of several
    dropped rows with an id, the first one is returned. An id with a remaining row is left out."""
    if not decisions:
        return {}
    seen = {row["id"] for row in read_rows(inputs["rows"], ["id"])}
    rows: dict[str, tuple[str, Row]] = {}
    for name, path in inputs.items():
        for row in read_rows(path) if name.startswith("dropped ") else ():
            if row["id"] in decisions and row["id"] not in seen:
                seen.add(row["id"])
                values = dict(row)
                origin = f"{name.removeprefix('dropped ')}: {values.pop('drop_reason')}"
                rows[row["id"]] = origin, cast("Row", values)
    return rows


def _tiers(precision: Iterable[FlagPrecision], config: SettleConfig) -> dict[str, bool]:
    """Return the reasons whose flags change their effect by the decisions: True if they now hold rows back, False if
    they advise."""
    if config.tiers is not Tiers.DECISIONS:
        return {}
    measured = {entry.reason: (entry.blocks, entry.tier(config.min_decisions)) for entry in precision}
    return {reason: tier for reason, (blocks, tier) in measured.items() if tier not in (None, blocks)}


def _write_stale(path: Path, review: WeighedReview, decisions: Decisions) -> dict[str, Any]:
    ids = {key[0] for key in review.standings}
    changed = list(dict.fromkeys(decision for standing in review.standings.values() for decision in standing.stale))
    gone = [decision for row_id in sorted(decisions.keys() - ids) for decision in decisions[row_id]]
    with path.open("wb") as file:
        for why, stale in (("gone", gone), ("changed", changed)):
            for decision in stale:
                line = {"why": why, **decision.model_dump(mode="json", exclude_defaults=True, by_alias=True)}
                file.write(orjson.dumps(line) + b"\n")
    stale_ids = list(dict.fromkeys(decision.id for decision in (*gone, *changed)))
    counts = {"count": len(gone) + len(changed), "gone": len(gone), "changed": len(changed)}
    return {**counts, "ids": stale_ids[:STALE_SHOWN]}


def _describe_row(row: Row) -> str:
    shown = f"gold {row['gold']!r:.60}" if row["gold"] is not None else f"prompt {row['prompt']!r:.60}"
    return f"{row_place(row)}, {shown}"


def _blocking_reasons(flags: Iterable[FlagRecord]) -> dict[RowKey, list[str]]:
    """Return the distinct reasons that hold each row back, in the order of the flags."""
    reasons: dict[RowKey, dict[str, None]] = {}
    for flag in flags:
        if flag["blocks"]:
            reasons.setdefault(row_key(flag), {})[flag["reason"]] = None
    return {key: list(row_reasons) for key, row_reasons in reasons.items()}


def _settle_row(
    row: Row, reasons: list[str], standing: Standing, settlement: Settlement | None, ledger: Ledger
) -> Row | None:
    """Return the settled row, or None if it is dropped or held back."""
    for stale in standing.stale:
        known = {"decision": stale.decision, "reviewer": stale.reviewer, "seen": stale.seen}
        ledger.flag(row, "stale_decision", **known, now=content_key(row))
    if standing.agreed is not None:
        return _apply_decision(row, reasons, standing.agreed, settlement, ledger)
    if standing.disagree:
        words = {decision.reviewer: str(decision.decision) for decision in standing.current}
        ledger.drop(row, "reviewers_disagree", flags=reasons, words=words)
        return None
    if settlement is not None and settlement.effect is Effect.OVERRULED:
        ledger.drop(row, settlement.effect, **settlement.evidence())
        return None
    if settlement is not None:
        reasons = [reason for reason in reasons if reason != CONFLICTING_LABELS]
    unsure = [decision.reviewer for decision in standing.current]
    if reasons or unsure:
        ledger.drop(row, "held_for_review", flags=reasons, unsure=unsure)
        return None
    if settlement is not None:
        ledger.keep(row, settlement.effect, **settlement.evidence())
    return row


def _apply_decision(
    row: Row, reasons: list[str], agreed: AgreedDecision, settlement: Settlement | None, ledger: Ledger
) -> Row | None:
    evidence: dict[str, Any] = {"flags": reasons, "reviewers": agreed.reviewers, "note": agreed.note}
    if agreed.is_random:
        evidence["random"] = True
    if agreed.kind is DecisionKind.DROP:
        ledger.drop(row, "reviewer_drop", **evidence)
        return None
    if agreed.kind is DecisionKind.KEEP:
        ledger.keep(row, "reviewer_keep", **evidence)
        return row
    fixed = with_gold(row, agreed.gold)
    column: Literal["gold", "verifier_args"] = "gold" if takes_gold(row) else "verifier_args"
    if column == "verifier_args":
        changed = changed_tests(row, agreed.gold or "")
        evidence |= {"dropped_cases": changed.dropped, "added_cases": changed.added}
    ledger.edit(row, "reviewer_fix", row[column], fixed[column], column=column, **evidence)
    if settlement is not None and settlement.effect is Effect.DUPLICATE:
        ledger.drop(fixed, settlement.effect, kept=settlement.decided, reviewers=agreed.reviewers)
        return None
    return fixed
