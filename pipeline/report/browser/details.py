"""What the card of a row shows beyond the table's line: flags, answers with votes, samples, neighbours, its ledger.

All tables are read once for the rows that the page shows, whose position in the page stands for them.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from truegold.pipeline.report.browser.ends import SUSPICION_STAGES
from truegold.pipeline.report.browser.facts import describe_reading, list_facts, read_evidence
from truegold.pipeline.report.browser.neighbours import link_neighbours
from truegold.pipeline.report.browser.readings import ROWS_READ, read_answers
from truegold.pipeline.report.flagged import describe_confidence
from truegold.pipeline.tables.ledger import LEDGER_FILE, Action
from truegold.pipeline.tables.reasons import ANSWERS_FILE, SUSPICION_FILE
from truegold.pipeline.tables.rows import KEY, RowKey, group_by_row, row_key
from truegold.pipeline.tables.run_files import Fields, RunFiles, fetch
from truegold.pipeline.text.shown import visible

ANSWERS_SHOWN = 8
"""The classes of answers that a card shows; the rest is counted."""
SYSTEMS_SHOWN = 80
"""The systems that are named behind one answer."""

_TOLD_ELSEWHERE = ("rows", "texts", "golds", "kept", "kept_id")
"""Evidence that the card shows as neighbours."""


@dataclass(frozen=True)
class Cuts:
    """How much of the texts a page shows. What is cut stands whole in the run's tables."""

    prompt: int
    """Characters of a prompt and of a solution."""
    completion: int
    """Characters of a completion, of its beginning and its end."""
    samples: int
    """Completions of a row: of different answers first."""
    edited: int = 1_500
    """Characters of a text before and after an edit."""
    answer: int = 200
    """Characters of an answer."""


CUTS = ((2_000, Cuts(4_000, 2_000, 8)), (12_000, Cuts(2_000, 600, 4)))
"""Up to so many rows these cuts hold; the last ones of `FEWEST` beyond."""
FEWEST = Cuts(800, 300, 2)
WHOLE = Cuts(*[sys.maxsize] * 5)
"""What a row is shown with whose whole texts are asked for."""


def cuts_for(rows: int) -> Cuts:
    """Return the cuts for a page of so many rows."""
    return next((cuts for most, cuts in CUTS if rows <= most), FEWEST)


def middle_cut(text: str, limit: int) -> str:
    """Return beginning and end of a text, which has its answer at the end, saying how much is missing."""
    if len(text) <= limit:
        return visible(text)
    head, tail = limit * 2 // 3, limit - limit * 2 // 3
    # What is left out need not be made visible.
    return f"{visible(text[:head])} … ({len(text) - limit:,} characters left out) … {visible(text[-tail:])}"


def longer_than(limit: int, *texts: str | None) -> dict[str, int]:
    """Return under `chars` the length of the longest of these texts, where it is cut."""
    longest = max((len(text) for text in texts if text is not None), default=0)
    return {"chars": longest} if longest > limit else {}


def gather_details(files: RunFiles, rows: pl.DataFrame, cuts: Cuts) -> list[Fields]:
    """Return the detail of each row, in their order; what is not known of a row has no key."""
    keys = rows.select(KEY)
    flags = _flags(files, keys)
    answers = _answers(files, keys, cuts)
    samples = _samples(files, keys, cuts)
    ledger, evidence = _ledger(files, keys, cuts)
    suspicion = _suspicion_facts(files, keys)
    neighbours = link_neighbours(rows, flags, evidence)
    details = []
    columns = [*KEY, "solution", "gold", "verifier", "verifier_args"]
    for position, row in enumerate(rows.select(columns).iter_rows(named=True)):
        key = row_key(row)
        is_read = position < ROWS_READ and key in answers and key not in samples
        detail: Fields = {
            "solution": row["solution"] and middle_cut(row["solution"], cuts.prompt),
            "flags": [_flag(flag) for flag in flags.get(key, ())],
            "answers": answers.get(key),
            "readings": read_answers(row, answers[key]) if is_read else None,
            "samples": samples.get(key),
            "neighbours": neighbours.get(key),
            "ledger": ledger.get(key),
            "votes": suspicion.get(key),
        }
        details.append({name: value for name, value in detail.items() if value})
    return details


def _flags(files: RunFiles, keys: pl.DataFrame) -> dict[RowKey, list[Fields]]:
    table = files.flags(after_training=True)
    if table is None:
        return {}
    records = fetch(table, keys, ["reason", "detector", "confidence", "blocks", "evidence", "suggestion"])
    for record in records:
        record["evidence"] = read_evidence(record["evidence"])
    records.sort(key=lambda flag: (not flag["blocks"], -flag["confidence"], flag["reason"], flag["detector"]))
    return group_by_row(records)


def _flag(flag: Mapping[str, Any]) -> Fields:
    return {
        "reason": visible(flag["reason"]),
        "detector": visible(flag["detector"]),
        "strength": describe_confidence(flag["reason"], flag["confidence"]),
        "blocks": flag["blocks"],
        "facts": list_facts(flag["evidence"], _TOLD_ELSEWHERE),
        "suggestion": flag["suggestion"] and visible(flag["suggestion"]),
    }


def _answers(files: RunFiles, keys: pl.DataFrame, cuts: Cuts) -> dict[RowKey, list[Fields]]:
    """Return the classes of answers of each row; the last stage that counted them counts."""
    answers: dict[RowKey, list[Fields]] = {}
    for _, table in files.tables(ANSWERS_FILE, SUSPICION_STAGES):
        counted = group_by_row(fetch(table, keys, ["kind", "spellings", "votes", "systems"]))
        for key, classes in counted.items():
            shown = classes[:ANSWERS_SHOWN]
            answers[key] = [
                {
                    "kind": entry["kind"],
                    "texts": [middle_cut(text, cuts.answer) for text in entry["spellings"]],
                    **longer_than(cuts.answer, *entry["spellings"]),
                    "votes": entry["votes"],
                    "systems": [visible(name) for name in entry["systems"][:SYSTEMS_SHOWN] if name != "-"],
                }
                for entry in shown
            ]
            if len(classes) > len(shown):
                rest = sum(entry["votes"] for entry in classes[ANSWERS_SHOWN:])
                answers[key].append({"kind": "others", "texts": [], "votes": rest, "systems": []})
    return answers


def _samples(files: RunFiles, keys: pl.DataFrame, cuts: Cuts) -> dict[RowKey, list[Fields]]:
    """Return some completions of each row: the first of each answer, then the second of each, and so on."""
    table = files.table("profile", "samples.parquet")
    if table is None:
        return {}
    columns = ["sample", "completion", "finish_reason", "score", "reason", "extracted", "evidence"]
    among = table.select(*KEY, *columns).join(keys.lazy(), on=KEY, how="semi")
    turn = pl.col("sample").rank("ordinal").over([*KEY, "extracted", "score"]).alias("turn")
    shown = (
        among.with_columns(turn)
        .sort([*KEY, "turn", "sample"])
        .group_by(KEY, maintain_order=True)
        .head(cuts.samples)
        .collect()
    )
    samples: dict[RowKey, list[Fields]] = {}
    for record in shown.iter_rows(named=True):
        samples.setdefault(row_key(record), []).append(
            {
                "text": middle_cut(record["completion"], cuts.completion),
                **longer_than(cuts.completion, record["completion"]),
                "score": record["score"],
                "reason": record["reason"],
                "answer": record["extracted"] and middle_cut(record["extracted"], cuts.answer),
                "finish": record["finish_reason"],
                "reading": describe_reading(read_evidence(record["evidence"])),
            }
        )
    return samples


def _ledger(files: RunFiles, keys: pl.DataFrame, cuts: Cuts) -> tuple[dict[RowKey, list[Fields]], list[Fields]]:
    """Return the records of each row in the order of the stages, and those records whose evidence names other rows."""
    ledger: dict[RowKey, list[Fields]] = {}
    linked: list[Fields] = []
    for stage, table in files.tables(LEDGER_FILE):
        for record in fetch(table, keys, ["action", "reason", "evidence", "before", "after"]):
            evidence = read_evidence(record["evidence"])
            if "kept_id" in evidence:
                linked.append({**record, "evidence": evidence})
            if record["action"] == Action.FLAG:
                # The card shows flags on their own.
                continue
            entry: Fields = {
                "stage": stage,
                "action": record["action"],
                "reason": visible(record["reason"]),
                "facts": list_facts(evidence, _TOLD_ELSEWHERE),
            }
            if record["action"] == Action.EDIT:
                entry["before"], entry["after"] = (
                    None if record[side] is None else middle_cut(record[side], cuts.edited)
                    for side in ("before", "after")
                )
                entry |= longer_than(cuts.edited, record["before"], record["after"])
            ledger.setdefault(row_key(record), []).append(entry)
    return ledger, linked


def _suspicion_facts(files: RunFiles, keys: pl.DataFrame) -> dict[RowKey, list[list[str]]]:
    """Return in words what the samples tell of each row."""
    facts: dict[RowKey, list[list[str]]] = {}
    for _, table in files.tables(SUSPICION_FILE, SUSPICION_STAGES):
        counted = table.drop_nulls("suspicion").select(pl.col("row_id").alias("id"), "source", "source_row", "evidence")
        for record in fetch(counted, keys, ["evidence"]):
            facts[row_key(record)] = list_facts(read_evidence(record["evidence"]))
    return facts
