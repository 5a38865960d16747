r"""Stage `clean`: cleans texts, drops rows without a usable prompt or gold, and records every change in the ledger.

    prompt="Question 3: Which is prime?&nbsp;\r\n(A) 4\n(B) 7\n(C) 9"  gold="B\n"  verifier="math"  becomes
    prompt="Which is prime?\n(A) 4\n(B) 7\n(C) 9"                      gold="B"    verifier="choice"
    verifier_args={"options": ["4", "7", "9"]}  meta={..., "truegold": {"gold_type": "choice", "language": "en", ...}}

Input: `rows`. The reasons of edits are in `edits.EDITS`. The ledger holds the whole text before and after each edit, so
undoing a row's edits from last to first restores the row that came in. The reasons of drops are prompt_too_short,
prompt_too_long, gold_too_long, empty_gold and other_language. A dropped row keeps its original texts and has no edits.
Lengths are measured on the cleaned text. A blank solution becomes null. Ids stay unchanged.

The notes on a row, such as its language, go into `meta.truegold`. They count as an edit only if they replace other
notes there. Golds with decimal commas are written with points (`_write_points`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import orjson
import polars as pl

from truegold.pipeline.clean.edits import Boilerplate, Edit, clean_code, clean_prose
from truegold.pipeline.config.stages import CleanConfig
from truegold.pipeline.running.parts import Part, PartWork, run_parts, split_inputs, sum_reports
from truegold.pipeline.running.progress import Progress, paced
from truegold.pipeline.running.stage import StageReport, stage_function
from truegold.pipeline.tables.ledger import DROPPED_FILE, LEDGER_FILE, DropRecord, Ledger
from truegold.pipeline.tables.losses import CUT, DROPPED, LOSSES, LOUD_SHARE, Cause, LossCount
from truegold.pipeline.tables.rows import (
    FILE,
    NOTES,
    PROVENANCE_NOTES,
    ROW_SCHEMA,
    Row,
    TableWriter,
    dump_json,
    read_rows,
    read_table,
    row_place,
)
from truegold.pipeline.text.announced_answers import drop_answer_line
from truegold.pipeline.text.prose import UNKNOWN, known_languages, language_of
from truegold.pipeline.text.shown_text import cut
from truegold.verifiers import ConfigError
from truegold.verifiers.answers.choice_arguments import choice_arguments
from truegold.verifiers.answers.gold_types import gold_note
from truegold.verifiers.decimal_commas import with_points
from truegold.verifiers.gold import OTHER_GOLDS

ROWS_FILE = "rows.parquet"
TextColumn = Literal["gold", "solution", "prompt"]
_TEXTS: tuple[TextColumn, ...] = ("gold", "solution", "prompt")
"""The columns that are cleaned. The prompt comes last: the cleaned gold is needed to find a leak in it."""
MIN_CUT = 0.02
"""A cut phrase is reported if at least this share of prompts had it. Rarer phrases are exercise numbers and the
like."""
CUTS_SHOWN, CUT_CHARS = 3, 160
KEPT_NOTES = (*PROVENANCE_NOTES, FILE)
"""The notes that `ingest` wrote and `clean` keeps."""
_Changes = list[tuple[str, Edit]]
"""The edits of a row, each with its column."""
_Fault = tuple[str, dict[str, Any]]
"""The reason to drop a row, with the value that was found and the allowed value."""


@stage_function(version=6, tunable=("workers",), aims=("workers",))
def clean(inputs: Mapping[str, Path], config: CleanConfig, out_dir: Path, progress: Progress) -> StageReport:
    """Clean every row, part by part, and drop rows without a usable prompt or gold."""
    # The language model takes 80 MB. Only the workers need it.
    if config.languages and (unknown := sorted(set(config.languages) - known_languages())):
        raise ConfigError(
            f"clean.languages: unknown: {', '.join(unknown)}.", "Give ISO 639-1 codes, such as en, zh, de."
        )
    work = PartWork(f"{__name__}:clean_part", config)
    report = sum_reports(run_parts(work, split_inputs(inputs, out_dir), progress, "cleaning"))
    edits = pl.scan_parquet(out_dir / LEDGER_FILE).filter(pl.col("reason") == "boilerplate").select("before", "after")
    phrases = describe_cuts(edits, report.rows_in)
    for line in phrases:
        progress.note(line)
    facts = {CUT: phrases, LOSSES: _heavy_losses(out_dir / DROPPED_FILE, report)}
    return replace(report, facts={name: lines for name, lines in facts.items() if lines})


def _heavy_losses(dropped: Path, report: StageReport) -> list[dict[str, Any]]:
    """Return the reasons of many drops as facts of the stage, except for languages, which the user has chosen."""
    lost: LossCount[DropRecord] = LossCount()
    is_heavy = report.rows_in - report.rows_out > LOUD_SHARE * report.rows_in
    for row in read_table(dropped, DropRecord) if is_heavy else ():
        if row["drop_reason"] != "other_language":
            lost.add(row["drop_reason"], row)
    return lost.heavy(
        DROPPED, report.rows_in, lambda row: f"{row_place(row)}, prompt {row['prompt']!r:.60}", _explain_drops
    )


def _explain_drops(reason: str, rows: list[DropRecord]) -> Cause:
    """Return a cause if the prompts are shorter than the golds. Then their columns may be exchanged."""
    if reason != "prompt_too_short" or any(len(row["gold"] or "") <= len(row["prompt"]) for row in rows):
        return Cause()
    return Cause(
        "These golds are longer than their prompts: are the columns of prompt and gold swapped?",
        "Exchange their names: --prompt-column COLUMN --gold-column COLUMN",
    )


def describe_cuts(edits: pl.LazyFrame, rows: int) -> list[str]:
    """Return a line for each phrase that was cut off many prompts."""
    before, after = pl.col("before"), pl.col("after")
    excess = before.str.len_chars() - after.str.len_chars()
    at_end = before.str.starts_with(after)
    phrase = pl.when(at_end).then(before.str.tail(excess)).otherwise(before.str.head(excess)).str.strip_chars()
    counted = edits.group_by(phrase.alias("phrase")).len().filter(pl.col("len") >= max(2, MIN_CUT * rows))
    frequent = counted.sort("len", "phrase", descending=[True, False]).head(CUTS_SHOWN).collect(engine="streaming")
    return [
        f"'{cut(' '.join(text.split()), CUT_CHARS)}' stands in {count:,} of {rows:,} prompts and is taken out; "
        "clean.skip: [boilerplate] keeps it"
        for text, count in frequent.iter_rows()
    ]


def clean_part(part: Part, config: CleanConfig, shared: None, progress: Progress) -> StageReport:
    """Clean the rows of one part of the table."""
    cleaner = Cleaner(config)
    rows_in = 0
    with Ledger(part.output, "clean") as ledger, TableWriter(part.output(ROWS_FILE), ROW_SCHEMA) as rows:
        for row in paced(read_rows(part.inputs["rows"]), progress, "cleaning"):
            rows_in += 1
            cleaned, changes = clean_row(row, config, cleaner)
            if (fault := _find_fault(cleaned, config)) is not None:
                ledger.drop(row, fault[0], **fault[1])
                continue
            for column, edit in changes:
                ledger.edit(row, edit.reason, edit.before, edit.after, column=column)
            rows.write(cleaned)
    return StageReport(rows_in, rows.rows, ledger.counts)


def clean_row(row: Row, config: CleanConfig, cleaner: Cleaner) -> tuple[Row, _Changes]:
    """Return the cleaned row with its notes, and its edits in order."""
    cleaned = row.copy()
    changes: _Changes = []
    for column in _TEXTS:
        text = cleaned[column]
        for edit in () if text is None else cleaner.edits(column, text, cleaned["gold"], cleaned["domain"]):
            cleaned[column] = edit.after
            changes.append((column, edit))
    cleaned["solution"] = cleaned["solution"] or None
    if "decimal_comma" not in config.skip:
        changes += _write_points(cleaned)
    if "multiple_choice" not in config.skip:
        changes += _turn_into_choice(cleaned, config)
    noted = _with_notes(cleaned)
    if noted != row["meta"] and set(_read_object(row["meta"]).get(NOTES, {})) - set(KEPT_NOTES):
        changes.append(("meta", Edit("notes", row["meta"], noted)))
    cleaned["meta"] = noted
    return cleaned, changes


class Cleaner:
    """Cleans single texts by one configuration."""

    def __init__(self, config: CleanConfig | None = None) -> None:
        self._config = config or CleanConfig()
        self._boilerplate = Boilerplate(self._config)

    def edits(self, column: TextColumn, text: str, gold: str | None, domain: str) -> list[Edit]:
        """Return the edits that clean a text. `gold` and `domain` belong to the text's row."""
        config = self._config
        if domain == "code":
            return clean_code(text, config.skip)
        # A prompt above the limit is dropped. Cutting "Q:" off its start a million times would take hours.
        if column != "prompt" or len(text) > 4 * config.max_prompt_chars:
            return clean_prose(text, config.skip)

        def cut_leak(prompt: str) -> str:
            return drop_answer_line(prompt, gold, config.min_prompt_chars)

        return clean_prose(text, config.skip, (("leaked_answer", cut_leak), ("boilerplate", self._boilerplate.cut)))

    def clean(self, column: TextColumn, text: str, gold: str | None, domain: str) -> str:
        """Return the cleaned text."""
        edits = self.edits(column, text, gold, domain)
        return edits[-1].after if edits else text


def _write_points(row: Row) -> _Changes:
    """Replace the decimal commas of the golds by points, if the row has the option `comma: decimal`.

    The option becomes `comma: answers`: answers may have a comma or a point. This is an edit only if a gold changes.
    """
    if row["verifier"] != "math" or row["gold"] is None or '"decimal"' not in row["verifier_args"]:
        return []
    arguments = _read_object(row["verifier_args"])
    if arguments.get("comma") != "decimal":
        return []
    others = {OTHER_GOLDS: list(map(with_points, golds))} if (golds := arguments.get(OTHER_GOLDS)) else {}
    gold, rest = with_points(row["gold"]), dump_json({**arguments, **others, "comma": "answers"})
    changes = [("gold", Edit("decimal_comma", row["gold"], gold))] if gold != row["gold"] else []
    if changes or others.get(OTHER_GOLDS) != golds:
        changes.append(("verifier_args", Edit("decimal_comma", row["verifier_args"], rest)))
    row["gold"], row["verifier_args"] = gold, rest
    return changes


def _turn_into_choice(row: Row, config: CleanConfig) -> _Changes:
    """Change the verifier from `math` to `choice` if the row has all its options and its gold is one of them."""
    if row["verifier"] != "math" or row["gold"] is None or len(row["prompt"]) > config.max_prompt_chars:
        return []
    if (after := choice_arguments(row)) is None:
        return []
    changes = [
        ("verifier", Edit("multiple_choice", row["verifier"], "choice")),
        ("verifier_args", Edit("multiple_choice", row["verifier_args"], after)),
    ]
    row["verifier"], row["verifier_args"] = "choice", after
    return changes


def _with_notes(row: Row) -> str:
    """Return the row's `meta` with its notes."""
    notes: dict[str, str] = {"language": language_of(row["prompt"])}
    options = _read_object(row["verifier_args"]).get("options", ()) if row["verifier"] == "choice" else ()
    if row["domain"] != "code" and (note := gold_note(row["gold"], row["verifier"], options)) is not None:
        notes["gold_type"] = note[0]
        if note[1] is not None:
            notes["gold_normal"] = note[1]
    meta = _read_object(row["meta"])
    kept = {name: value for name, value in meta.get(NOTES, {}).items() if name in KEPT_NOTES}
    return dump_json({**meta, NOTES: {**kept, **notes}})


def _read_object(text: str | None) -> dict[str, Any]:
    value = orjson.loads(text or "{}")
    return value if isinstance(value, dict) else {}


def _find_fault(row: Row, config: CleanConfig) -> _Fault | None:
    prompt, gold = row["prompt"], row["gold"]
    if len(prompt) < config.min_prompt_chars:
        return "prompt_too_short", {"length": len(prompt), "limit": config.min_prompt_chars}
    if len(prompt) > config.max_prompt_chars:
        return "prompt_too_long", {"length": len(prompt), "limit": config.max_prompt_chars}
    if gold is not None and not gold.strip():
        return "empty_gold", {"length": 0, "limit": 1}
    if gold is not None and len(gold) > config.max_gold_chars:
        return "gold_too_long", {"length": len(gold), "limit": config.max_gold_chars}
    if config.languages:
        language = _read_object(row["meta"])[NOTES]["language"]
        if language not in (*config.languages, UNKNOWN):
            return "other_language", {"language": language, "languages": list(config.languages)}
    return None
