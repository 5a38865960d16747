"""Stage `suspect`: samples of one or several systems say how likely each row's label is at fault.

    rows.parquet + samples.jsonl  ->  suspicion.parquet: id "17", suspicion 0.93, tier "review", suggestion "26", ...

Rows are neither changed nor dropped here: `tier` says what may be done (`suspicion.tiers`). A sample names its row by
the source's id, where the rows were read with one (`meta.source_id`), or by truegold's. Without samples nothing is
known, and suspicion is null. Answers of rows whose verifier runs programs have no alternatives to compare.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from truegold.pipeline.config.stages import SuspicionConfig
from truegold.pipeline.running.progress import Progress, track
from truegold.pipeline.running.stage import StageReport, stage_function
from truegold.pipeline.suspicion.assess import Assessment, Fit, assess
from truegold.pipeline.suspicion.ballot import Ballot
from truegold.pipeline.suspicion.item import Item, Sample
from truegold.pipeline.suspicion.tables import SampleCounts, SampleFile, read_samples, write_answers, write_suspicion
from truegold.pipeline.suspicion.tiers import Tier
from truegold.pipeline.tables.reasons import ANSWERS_FILE, SUSPICION_FILE
from truegold.pipeline.tables.rows import count_rows, dump_json, read_rows
from truegold.verifiers import InputError

COLUMNS = ["id", "prompt", "gold", "verifier", "verifier_args", "solution", "source", "source_row", "meta"]


@stage_function(version=4, judges="rows")
def suspect(inputs: Mapping[str, Path], config: SuspicionConfig, out_dir: Path, progress: Progress) -> StageReport:
    """Write `suspicion.parquet`. InputError where no sample belongs to any row.

    inputs: `rows`, and `samples 0`, `samples 1`, ... where there are any, in the order of `config.files`.
    """
    counts = SampleCounts()
    files = [
        SampleFile(inputs[f"samples {index}"], source.system, source.step) for index, source in enumerate(config.files)
    ]
    in_files = chain.from_iterable(read_samples(file, counts) for file in files)
    samples: Iterator[Sample] = iter(track(in_files, progress, "reading samples")) if files else iter(())
    tiers, facts = score_rows(inputs["rows"], samples, config.workers, out_dir, by_source_id=True)
    if counts.read and facts["samples_of_unknown_rows"] + counts.rejected >= counts.read:
        names = ", ".join(str(file.path) for file in files)
        keys = ", ".join(islice((_key(row) for row in read_rows(inputs["rows"], ["id", "meta"])), 3))
        if facts["shared_ids"]:
            raise InputError(
                f"{names}: the samples name rows by ids that different rows of the data share.",
                "Give each row an id of its own.",
            )
        raise InputError(
            f"{names}: none of its {counts.read:,} samples names a row of the data.",
            f"The data's ids are such as {keys}.",
        )
    total = count_rows(inputs["rows"])
    return StageReport(total, total, tiers, facts | {"samples": counts.read, "samples_rejected": counts.rejected})


def score_rows(
    rows: Path, samples: Iterable[Sample], workers: int, out_dir: Path, *, by_source_id: bool
) -> tuple[dict[str, int], dict[str, Any]]:
    """Write suspicion.parquet and answers.parquet for a table of rows; return the count of items in each tier, and
    facts for a report.

    `by_source_id` says whether samples may name rows by the ids of their source. Samples of truegold's own do not, and
    rows of several sources may share such ids.
    """
    problems: dict[str, Item] = {}
    keys: dict[str, str] = {}  # Maps truegold's ids to the keys that samples name rows by.
    shared = _shared_source_ids(rows) if by_source_id else set()

    def key_of(row: Mapping[str, Any]) -> str:
        key = _key(row) if by_source_id else row["id"]
        return row["id"] if key in shared else key

    for row in read_rows(rows, COLUMNS):
        key = key_of(row)
        problems.setdefault(key, _item(key, row))
        keys.setdefault(row["id"], key)
    ballot = Ballot(list(problems.values()), workers)
    ballot.add(_with_keys(samples, problems, keys))
    votes = ballot.count()
    fit, assessments = assess(list(problems.values()), votes)
    by_key = {assessment.id: assessment for assessment in assessments}
    write_suspicion(out_dir / SUSPICION_FILE, _rows_with_keys(rows, key_of), by_key)
    write_answers(out_dir / ANSWERS_FILE, _rows_with_keys(rows, key_of), list(problems), ballot.answers(votes))
    tiers = Counter(str(assessment.tier) for assessment in by_key.values())
    facts = _facts(fit, by_key.values(), votes.systems)
    facts |= {"samples_of_unknown_rows": votes.unknown_items, "shared_ids": len(shared)}
    return {f"tier:{tier}": tiers[str(tier)] for tier in Tier}, facts


def summary_lines(facts: Mapping[str, Any], counts: Mapping[str, int]) -> list[str]:
    """Return the few lines that a person wants to know first."""
    if not facts["samples"]:
        return ["no samples were given: suspicion is empty"]
    lines = [
        f"{facts['samples']:,} samples of {len(facts['systems'])} systems for {facts['items_with_samples']:,} items",
        f"suspicion: {counts['tier:drop']:,} drop, {counts['tier:review']:,} review, {counts['tier:keep']:,} keep",
    ]
    for share, name in (("expected_faulty", "faulty labels"), ("wrong_labels", "labels that are plainly wrong")):
        if facts[share] is not None:
            lines.append(f"expected share of {name}: {facts[share]:.1%}")
    if facts["shared_ids"]:
        lines.append(f"{facts['shared_ids']:,} ids are shared by rows of different content: samples cannot name these")
    left_out = facts["samples_of_unknown_rows"] + facts["samples_rejected"]
    if left_out:
        lines.append(f"{left_out:,} samples were left out: their ids are not in the data, or they could not be read")
    return lines


def _facts(fit: Fit, assessments: Iterable[Assessment], systems: list[str]) -> dict[str, Any]:
    known = [assessment.suspicion for assessment in assessments if assessment.suspicion is not None]
    return {
        "items_with_samples": len(known),
        "expected_faulty": round(sum(known) / len(known), 4) if known else None,
        "wrong_labels": None if fit.wrong_labels is None or not known else round(fit.wrong_labels, 4),
        "systems": {
            name: {
                "agrees_with_labels": round(float(fit.agreement[index]), 4),
                "right": round(float(fit.strength[index]), 4),
                "ability": round(float(fit.ability.theta[index]), 3),
                "counts_as": round(float(fit.learnt.system_weight[index]), 3),
            }
            for index, name in enumerate(systems)
        },
        "neighbours": fit.vicinity.half_width,
    }


def _with_keys(samples: Iterable[Sample], problems: Mapping[str, Item], keys: Mapping[str, str]) -> Iterator[Sample]:
    """Yield the samples; those that name their row by truegold's id get its key."""
    for sample in samples:
        if sample.id not in problems and sample.id in keys:
            yield replace(sample, id=keys[sample.id])
        else:
            yield sample


def _rows_with_keys(path: Path, key_of: Callable[[Mapping[str, Any]], str]) -> Iterator[dict[str, Any]]:
    for row in read_rows(path, ["id", "source", "source_row", "meta"]):
        yield {**row, "key": key_of(row)}


def _shared_source_ids(path: Path) -> set[str]:
    """Return the source's ids that rows of different content share: a sample that names one may be any row's."""
    contents: dict[str, str] = {}
    shared: set[str] = set()
    for row in read_rows(path, ["id", "meta"]):
        if contents.setdefault(key := _key(row), row["id"]) != row["id"]:
            shared.add(key)
    return shared


def _key(row: Mapping[str, Any]) -> str:
    source_id = json.loads(row["meta"]).get("source_id") if row["meta"] else None
    return row["id"] if source_id is None else str(source_id)


def _item(key: str, row: Mapping[str, Any]) -> Item:
    arguments = row["verifier_args"] or "{}"
    if not isinstance(arguments, str):
        arguments = dump_json(arguments)
    return Item(key, row["gold"], row["prompt"], row["solution"], row["verifier"] or "math", arguments)
