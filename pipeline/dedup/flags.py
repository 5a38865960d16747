"""The flags of dedup: `conflicting_labels` for a problem that has several golds, `possible_translation` across scripts.

    train.jsonl:12  "How many legs?"  gold "4"   flag conflicting_labels {"golds": {"4": 1, "8": 1}, "rows": [...]}
    train.jsonl:3   "Paul has 52 marbles ..."    flag possible_translation {"row": "zh.jsonl:8", ...}
    zh.jsonl:8      "保罗有52颗弹珠……"              flag possible_translation {"row": "train.jsonl:3", ...}

Translations have the same numbers and the same question. Both rows stay: a person may want both languages.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from truegold.pipeline.dedup.rewordings import Translation
from truegold.pipeline.tables.conversation import read_compared_rows
from truegold.pipeline.tables.ledger import FlagRecord, flag_record
from truegold.pipeline.tables.reasons import CONFLICTING_LABELS, POSSIBLE_TRANSLATION
from truegold.pipeline.tables.rows import RowReference

CONFIDENCE = 0.9
"""How sure it is that one of the labels of copies is wrong; now and then both are right, in other words. Two blind
readers find 6 of 6 right, of two corpora; 12 more, which they called wrong, are flagged no more."""
REWORDED_CONFIDENCE = 0.06
"""The same of rewordings: two blind readers find 2 of 33 right, of 14 corpora; the others are siblings."""
MAX_SHOWN = 10
"""Golds and rows named in a conflict's evidence: ten thousand copies of one prompt must not each list ten thousand."""
GOLD_CHARS = 200
"""Characters shown of each gold."""
PROMPT_CHARS = 1_000
"""Characters shown of each prompt."""
TRANSLATED_CONFIDENCE = 0.6
"""How likely a translation is: two blind readers find 6 of 10 right, and 3 of 23 where the questions do not agree."""
_COLUMNS = ["source", "source_row", "prompt", "gold"]


def shown_text(prompt: str, gold: str | None) -> dict[str, str]:
    """Return a row as the evidence of a flag shows it."""
    return {"prompt": prompt[:PROMPT_CHARS], "gold": (gold or "")[:GOLD_CHARS]}


@dataclass(slots=True)
class Conflict:
    """The rows of one problem and their golds, duplicates included."""

    rows: list[str | int] = field(default_factory=list)
    texts: list[dict[str, str]] = field(default_factory=list)
    """Prompt and gold of each of `rows`, so that a reader of one row's flag sees what it contradicts."""
    _golds: dict[int, str] = field(default_factory=dict)
    """Maps the key of a gold to its first spelling."""
    _counts: Counter[int] = field(default_factory=Counter)
    _others: int = 0
    """Rows whose gold is not among the first MAX_SHOWN."""

    def add(self, name: str | int, prompt: str, gold: str | None, key: int) -> None:
        """Take in one more row, which is called `name`; `key` is equal for golds that are the same."""
        if len(self.rows) < MAX_SHOWN:
            self.rows.append(name)
            self.texts.append(shown_text(prompt, gold))
        if key in self._golds or len(self._golds) < MAX_SHOWN:
            self._golds.setdefault(key, (gold or "")[:GOLD_CHARS])
            self._counts[key] += 1
        else:
            self._others += 1

    def evidence(self) -> dict[str, Any]:
        """Return what the flags of its rows say: how often each gold occurs, and the rows."""
        counts: Counter[str] = Counter()
        for key, text in self._golds.items():
            counts[text] += self._counts[key]
        evidence: dict[str, Any] = {"golds": dict(counts), "rows": self.rows, "texts": self.texts}
        return {**evidence, "rows_with_other_golds": self._others} if self._others else evidence


def conflict_flag(
    row: RowReference, evidence: Mapping[str, Any], are_copies: bool, is_settled: bool = False
) -> FlagRecord:
    """Return the flag of a row in a conflict; only one between copies that no better source settles holds rows back."""
    confidence = CONFIDENCE if are_copies else REWORDED_CONFIDENCE
    blocks = are_copies and not is_settled
    return flag_record(
        row, CONFLICTING_LABELS, detector="dedup", evidence=evidence, confidence=confidence, blocks=blocks
    )


def translation_evidence(path: Path, translations: Sequence[Translation]) -> dict[int, list[dict[str, Any]]]:
    """Return the evidence of each row's flags, by its position; the file is only read if there are any."""
    named = {row for pair in translations for row in (pair.row, pair.other)}
    shown: dict[int, dict[str, Any]] = {}
    for position, row in enumerate(read_compared_rows(path, _COLUMNS)) if named else ():
        if position in named:
            text = shown_text(row["prompt"], row["gold"])
            shown[position] = {"row": f"{row['source']}:{row['source_row']}", "text": text}
    evidence: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for pair in translations:
        for here, there in ((pair.row, pair.other), (pair.other, pair.row)):
            evidence[here].append(shown[there])
    return evidence


def translation_flag(row: RowReference, evidence: Mapping[str, Any]) -> FlagRecord:
    """Return the flag of a row that may be translated in another one; it never holds rows back."""
    return flag_record(
        row, POSSIBLE_TRANSLATION, detector="dedup", evidence=evidence, confidence=TRANSLATED_CONFIDENCE, blocks=False
    )
