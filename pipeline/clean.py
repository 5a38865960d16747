r"""Stage `clean`: texts in one shape, rows without a usable prompt or gold dropped, every change in the ledger.

    prompt="Question 3: How many\u00a0apples does Ann have? \r\n"  gold="42\n"  becomes
    prompt="How many apples does Ann have?"                        gold="42"    with the ledger records

    edit whitespace  {"column": "prompt"}  edit boilerplate {"column": "prompt"}  edit whitespace {"column": "gold"}

Input: `rows`. Reasons of edits: control_characters, unicode, whitespace, boilerplate (prompts only). Reasons of drops:
prompt_too_short, prompt_too_long, gold_too_long, empty_gold; a dropped row is kept as it came in and has no edits.
Lengths are those of the cleaned text. A solution of nothing but whitespace becomes null. Ids stay what they were.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from truegold.pipeline.config import CleanConfig
from truegold.pipeline.ledger import Ledger
from truegold.pipeline.pacing import paced
from truegold.pipeline.progress import Progress
from truegold.pipeline.rows import ROW_SCHEMA, Row, TableWriter, count_rows, read_rows
from truegold.pipeline.stage import StageReport
from truegold.pipeline.text_cleaning import Boilerplate, Edit, clean_code, clean_prose

ROWS_FILE = "rows.parquet"
COLUMNS = ("prompt", "gold", "solution")
LEDGER_CHARS = 20_000
"""What the ledger keeps of a text before and after: all of it, but for the occasional megabyte of a solution."""


def clean(inputs: Mapping[str, Path], config: CleanConfig, out_dir: Path, progress: Progress) -> StageReport:
    """Clean every row; drop those without a usable prompt or gold."""
    boilerplate = Boilerplate(config)
    total = count_rows(inputs["rows"])
    with Ledger(out_dir, "clean") as ledger, TableWriter(out_dir / ROWS_FILE, ROW_SCHEMA) as rows:
        for row in paced(read_rows(inputs["rows"]), progress, "cleaning", total):
            edits = {column: _edits(row, column, config, boilerplate) for column in COLUMNS}
            cleaned = {**row, **{column: made[-1].after for column, made in edits.items() if made}}
            fault = _fault(cleaned, config)
            if fault is not None:
                reason, evidence = fault
                ledger.drop(row, reason, **evidence)
                continue
            cleaned["solution"] = cleaned["solution"] or None
            for column, made in edits.items():
                for edit in made:
                    _record(ledger, row, column, edit)
            rows.write(cleaned)
    return StageReport(total, rows.rows, dict(ledger.counts))


def _edits(row: Row, column: str, config: CleanConfig, boilerplate: Boilerplate) -> list[Edit]:
    text = row[column]
    if text is None:
        return []
    if row["domain"] == "code":
        return list(clean_code(text))
    edits = list(clean_prose(text))
    if column == "prompt":
        text = edits[-1].after if edits else text
        # A prompt above the bound is dropped anyway; cutting "Q:" a million times off its start would take hours.
        if len(text) <= config.max_prompt_chars and (rest := boilerplate.cut(text)) != text:
            edits.append(Edit("boilerplate", text, rest))
    return edits


def _fault(row: Row, config: CleanConfig) -> tuple[str, dict[str, int]] | None:
    """The reason to drop a cleaned row, with the length and the limit."""
    prompt, gold = row["prompt"], row["gold"]
    if len(prompt) < config.min_prompt_chars:
        return "prompt_too_short", {"length": len(prompt), "limit": config.min_prompt_chars}
    if len(prompt) > config.max_prompt_chars:
        return "prompt_too_long", {"length": len(prompt), "limit": config.max_prompt_chars}
    if gold is not None and not gold.strip():
        return "empty_gold", {"length": 0, "limit": 1}
    if gold is not None and len(gold) > config.max_gold_chars:
        return "gold_too_long", {"length": len(gold), "limit": config.max_gold_chars}
    return None


def _record(ledger: Ledger, row: Row, column: str, edit: Edit) -> None:
    evidence: dict[str, object] = {"column": column}
    if max(len(edit.before), len(edit.after)) > LEDGER_CHARS:
        evidence["cut_to_chars"] = LEDGER_CHARS
    ledger.edit(row, edit.reason, edit.before[:LEDGER_CHARS], edit.after[:LEDGER_CHARS], **evidence)
