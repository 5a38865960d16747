"""Chooses the problems worth training on: those whose groups are expected to teach, in the proportions asked for.

    68 % of its groups are expected to teach   ->  selected.parquet
    9 %, because they would be all right       ->  dropped, `too_easy`
    flagged by the profile                     ->  dropped, `held_for_review`
    more than `max_rows`, target or quotas take    ->  reserve.parquet in the order they would follow, `in_reserve`
    never passed, more than `zero_share` takes     ->  at the end of it, `in_reserve`
    the same, where a rule advises against the row ->  dropped, `over_zero_share`

Rows of the split `heldout` are never selected; they go to heldout.parquet. after.parquet holds the selected and the
held-out rows, to be profiled again after training. hard.parquet lists the rows that lack positives: those that are too
hard, and those beyond `zero_share`. Nothing is lost: dropped rows stay in dropped.parquet with their reason
(`DropReason`).

The stage `take_rows` stands in where nothing has profiled the rows: every row goes to training as it is. So it is where
`profile: null` leaves the profile out, and where training is on dialogues (`train.turns`), whose worth cannot be told
from single answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from statistics import fmean

import pyarrow as pa

from truegold.pipeline.config.base import StageConfig
from truegold.pipeline.config.stages import SelectConfig
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.running.stage import StageReport, stage_function
from truegold.pipeline.select.candidates import Candidate, Judgement, known_pass_rate, remedy_for_none, teaching_facts
from truegold.pipeline.select.choice import Choice, choose
from truegold.pipeline.tables.ledger import Ledger
from truegold.pipeline.tables.reasons import DropReason
from truegold.pipeline.tables.rows import (
    PROFILE_SCHEMA,
    ROW_SCHEMA,
    ProfileRow,
    Row,
    TableWriter,
    read_rows,
    row_key,
    write_rows,
)
from truegold.verifiers import InputError

SELECTED_SCHEMA = pa.schema(
    [
        *ROW_SCHEMA,
        pa.field("pass_rate", pa.float64()),
        PROFILE_SCHEMA.field("posterior"),
        pa.field("suspicion", pa.float64()),
    ]
)
"""The columns of selected.parquet and reserve.parquet: `pass_rate` is the expected one, the mean of the posterior."""


@stage_function(version=8)
def select(inputs: Mapping[str, Path], config: SelectConfig, out_dir: Path, progress: Progress) -> StageReport:
    """Select from the profile's `rows`, by its tables `profile`, `flags` and `suspicion`, and by `open_flags`,
    `decided` and `checks` of `settle` where there are any.

    Raises InputError where nothing is left, or nothing that teaches, unless `config.may_be_empty`.
    """
    progress.start("selecting")
    judgement = Judgement(inputs, config)
    rows_in = heldout_rows = 0
    candidates: list[Candidate] = []
    with (
        Ledger(out_dir, "select") as ledger,
        TableWriter(out_dir / "heldout.parquet", ROW_SCHEMA) as heldout,
        TableWriter(out_dir / "hard.parquet", ROW_SCHEMA) as hard,
    ):
        for row in read_rows(inputs["rows"]):
            rows_in += 1
            if row["split"] == "heldout":
                heldout.write(row)
                heldout_rows += 1
                continue
            considered = judgement.consider(row)
            if isinstance(considered, Candidate):
                candidates.append(considered)
            else:
                _drop(ledger, row, considered, judgement, config)
                if considered is DropReason.TOO_HARD:
                    hard.write(row)
        choice = choose(candidates, config)
        selected, reserve = choice.selected, list(choice.reserve)
        for candidate in reserve:
            _drop(ledger, candidate.row, DropReason.IN_RESERVE, judgement, config)
        for candidate in choice.over_zero_share:
            # Of rows that never passed, those that a rule advises against are nearly always at fault.
            reason = DropReason.OVER_ZERO_SHARE if candidate.is_flagged else DropReason.IN_RESERVE
            _drop(ledger, candidate.row, reason, judgement, config, over_zero_share=True)
            hard.write(candidate.row)
            if not candidate.is_flagged:
                reserve.append(candidate)
        write_rows(out_dir / "selected.parquet", map(_record, selected), SELECTED_SCHEMA)
        write_rows(out_dir / "reserve.parquet", map(_record, reserve), SELECTED_SCHEMA)
    with TableWriter(out_dir / "after.parquet", ROW_SCHEMA) as after:
        for candidate in selected:
            after.write(candidate.row)
        for row in read_rows(out_dir / "heldout.parquet"):
            after.write(row)
    if not selected and not config.may_be_empty:
        raise _nothing_left(judgement, rows_in, ledger.counts)
    facts = {
        **(teaching_facts([judgement.profile[row_key(each.row)] for each in selected], config) if selected else {}),
        "mean_pass_rate": round(fmean(each.known.mean for each in selected), 4) if selected else None,
        "heldout": heldout_rows,
        "reserve": len(reserve),
        "demands": [asdict(fulfilment) for fulfilment in choice.fulfilments],
        "label_checks": {**asdict(judgement.record), "is_trusted": judgement.record.is_trusted},
    }
    for line in _misses(choice, config):
        progress.note(line)
    return StageReport(rows_in, len(selected), {**ledger.counts, "heldout": heldout_rows}, facts)


def _drop(
    ledger: Ledger, row: Row, reason: DropReason, judgement: Judgement, config: SelectConfig, **evidence: bool
) -> None:
    summary = judgement.profile[row_key(row)]
    known = known_pass_rate(summary)
    ledger.drop(
        row,
        reason,
        passes=summary["passes"],
        judged=summary["judged"],
        expected_pass_rate=None if known is None else round(known.mean, 4),
        teaching_share=None if known is None else round(known.teaching_share(config.group_size), 4),
        flags=judgement.blocked_by.get(row_key(row)),
        **evidence,
    )


def _record(candidate: Candidate) -> Row:
    known = candidate.known
    return {
        **candidate.row,
        "pass_rate": known.mean,
        "posterior": known.components(),
        "suspicion": candidate.suspicion,
    }


def _misses(choice: Choice, config: SelectConfig) -> list[str]:
    """Return a sentence on each demand that could not be met, and on a selection that its demands keep small."""
    selected = len(choice.selected)
    lines = [
        f"{fulfilment.name}: {fulfilment.rows:,} of {selected:,} selected rows, not {fulfilment.share:.1%}; there are "
        f"{fulfilment.available:,} such rows"
        for fulfilment in choice.fulfilments
        if not fulfilment.is_met
    ]
    if config.max_rows is None and len(choice.reserve) > selected:
        used_up = [each.name for each in choice.fulfilments if 0 < each.available == each.rows]
        reason = f": all rows of {' and '.join(used_up)} are selected" if used_up else ""
        lines.append(
            f"the shares leave {len(choice.reserve):,} of {selected + len(choice.reserve):,} rows in reserve{reason}; "
            "with select.max_rows shares are met as far as rows allow"
        )
    if over := choice.over_zero_share:
        flagged = sum(candidate.is_flagged for candidate in over)
        lines.append(
            f"{len(over):,} rows that never passed are more than select.zero_share ({config.zero_share:g}) takes: "
            f"{len(over) - flagged:,} are at the end of the reserve, {flagged:,} that rules advise against are dropped"
        )
    return lines


def _nothing_left(judgement: Judgement, rows_in: int, counts: Mapping[str, int]) -> InputError:
    why = ", ".join(f"{count} {key.removeprefix('drop:')}" for key, count in sorted(counts.items()))
    training_rows: list[ProfileRow] = [row for row in judgement.profile.values() if row["split"] != "heldout"]
    return InputError(
        f"None of {rows_in} profiled rows is left to train on ({why or 'there were no training rows'}).",
        remedy_for_none(training_rows, {key.removeprefix("drop:"): count for key, count in counts.items()}, rows_in),
    )


class TakeRowsConfig(StageConfig):
    """Nothing is to be set."""


@stage_function(version=1)
def take_rows(inputs: Mapping[str, Path], config: TakeRowsConfig, out_dir: Path, progress: Progress) -> StageReport:
    """Write the input `rows` as selected.parquet, those of the split `heldout` as heldout.parquet, and an empty
    reserve.parquet."""
    progress.start("taking rows")
    unknown = dict.fromkeys(SELECTED_SCHEMA.names)
    counts = {"selected": 0, "heldout": 0}
    with (
        TableWriter(out_dir / "selected.parquet", SELECTED_SCHEMA) as selected,
        TableWriter(out_dir / "heldout.parquet", ROW_SCHEMA) as heldout,
    ):
        for row in read_rows(inputs["rows"]):
            if row["split"] == "heldout":
                heldout.write(row)
                counts["heldout"] += 1
            else:
                selected.write({**unknown, **row})
                counts["selected"] += 1
    write_rows(out_dir / "reserve.parquet", [], SELECTED_SCHEMA)
    return StageReport(sum(counts.values()), counts["selected"], {"heldout": counts["heldout"]})
