"""What the flag `possible_translation` says: which row in another script has the same numbers and the same question.

    train.jsonl:3   "Paul has 52 marbles ..."   flag possible_translation {"row": "zh.jsonl:8", ...}
    zh.jsonl:8      "保罗有52颗弹珠……"             flag possible_translation {"row": "train.jsonl:3", ...}

Both rows stay: a person may want both languages.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from truegold.pipeline.dedup.conflicts import shown_text
from truegold.pipeline.dedup.rewordings import Translation
from truegold.pipeline.tables.ledger import FlagRecord, flag_record
from truegold.pipeline.tables.reasons import POSSIBLE_TRANSLATION
from truegold.pipeline.tables.rows import RowReference, read_rows

SURE, UNSURE = 0.8, 0.3
"""How likely the two are one problem where their questions agree, and where these leave it open."""
_COLUMNS = ["source", "source_row", "prompt", "gold"]


def translation_evidence(path: Path, translations: Sequence[Translation]) -> dict[int, list[dict[str, Any]]]:
    """Return the evidence of each row's flags, by its position; the file is only read where there are any."""
    named = {row for pair in translations for row in (pair.row, pair.other)}
    shown: dict[int, dict[str, Any]] = {}
    for position, row in enumerate(read_rows(path, _COLUMNS)) if named else ():
        if position in named:
            text = shown_text(row["prompt"], row["gold"])
            shown[position] = {"row": f"{row['source']}:{row['source_row']}", "text": text}
    evidence: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for pair in translations:
        for here, there in ((pair.row, pair.other), (pair.other, pair.row)):
            evidence[here].append({**shown[there], "questions_agree": pair.is_sure})
    return evidence


def translation_flag(row: RowReference, evidence: Mapping[str, Any]) -> FlagRecord:
    """Return the flag of a row that may be translated in another one; it never holds rows back."""
    confidence = SURE if evidence["questions_agree"] else UNSURE
    return flag_record(
        row, POSSIBLE_TRANSLATION, detector="dedup", evidence=evidence, confidence=confidence, blocks=False
    )
