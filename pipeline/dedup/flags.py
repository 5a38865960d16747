"""Makes the flags of dedup: `conflicting_labels` for a problem with several golds, and `possible_translation`.

    train.jsonl:12  "How many legs?"  gold "4"   flag conflicting_labels {"golds": {"4": 1, "8": 1}, "rows": [...]}
    train.jsonl:3   "Paul has 52 marbles ..."    flag possible_translation {"row": "zh.jsonl:8", ...}
    zh.jsonl:8      "保罗有52颗弹珠……"              flag possible_translation {"row": "train.jsonl:3", ...}

Translations have the same numbers and the same question. Both rows are kept: a user may want both languages.
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
"""The precision of conflicts between copies. Two blind readers found 6 of 6 flags right, from two corpora. Twelve pairs
with equal golds in different words are not counted. Such golds are not flagged."""
REWORDED_CONFIDENCE = 0.06
"""The precision of conflicts between rewordings. Two blind readers found 2 of 33 flags right, from 14 corpora. In the
other 31 pairs, the problems are different."""
MAX_SHOWN = 10
"""The maximum number of golds and of rows in a conflict's evidence. Without a limit, the evidence of each of 10,000
copies would list all 10,000."""
GOLD_CHARS = 200
"""The number of characters shown of each gold."""
PROMPT_CHARS = 1_000
"""The number of characters shown of each prompt."""
TRANSLATED_CONFIDENCE = 0.6
"""The precision of translations. Two blind readers found 6 of 10 flags right. Of pairs with different questions, only 3
of 23 were right. So these are not flagged."""
_COLUMNS = ["source", "source_row", "prompt", "gold"]


def shown_text(prompt: str, gold: str | None) -> dict[str, str]:
    """Return a row's texts for the evidence of a flag."""
    return {"prompt": prompt[:PROMPT_CHARS], "gold": (gold or "")[:GOLD_CHARS]}


@dataclass(slots=True)
class Conflict:
    """The rows of one problem and their golds, including duplicates."""

    rows: list[str | int] = field(default_factory=list)
    texts: list[dict[str, str]] = field(default_factory=list)
    """Prompt and gold of each of `rows`, so that a reviewer sees both sides of the conflict."""
    _golds: dict[int, str] = field(default_factory=dict)
    """The key of a gold -> its first spelling."""
    _counts: Counter[int] = field(default_factory=Counter)
    _others: int = 0
    """The number of rows whose gold is not among the first MAX_SHOWN golds."""

    def add(self, name: str | int, prompt: str, gold: str | None, key: int) -> None:
        """Add a row under its `name`. Equal golds have the same `key`."""
        if len(self.rows) < MAX_SHOWN:
            self.rows.append(name)
            self.texts.append(shown_text(prompt, gold))
        if key in self._golds or len(self._golds) < MAX_SHOWN:
            self._golds.setdefault(key, (gold or "")[:GOLD_CHARS])
            self._counts[key] += 1
        else:
            self._others += 1

    def evidence(self) -> dict[str, Any]:
        """Return the evidence of the conflict's flags: the rows, and the number of rows with each gold."""
        counts: Counter[str] = Counter()
        for key, text in self._golds.items():
            counts[text] += self._counts[key]
        evidence: dict[str, Any] = {"golds": dict(counts), "rows": self.rows, "texts": self.texts}
        return {**evidence, "rows_with_other_golds": self._others} if self._others else evidence


def conflict_flag(
    row: RowReference, evidence: Mapping[str, Any], are_copies: bool, is_settled: bool = False
) -> FlagRecord:
    """Return the flag of a row in a conflict. A conflict between copies that is not settled holds the row back."""
    confidence = CONFIDENCE if are_copies else REWORDED_CONFIDENCE
    blocks = are_copies and not is_settled
    return flag_record(
        row, CONFLICTING_LABELS, detector="dedup", evidence=evidence, confidence=confidence, blocks=blocks
    )


def translation_evidence(path: Path, translations: Sequence[Translation]) -> dict[int, list[dict[str, Any]]]:
    """Return the evidence of each row's flags, by position. The file is read only if there are translations."""
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
    """Return the flag of a row that may be a translation of another row. It never holds the row back."""
    return flag_record(
        row, POSSIBLE_TRANSLATION, detector="dedup", evidence=evidence, confidence=TRANSLATED_CONFIDENCE, blocks=False
    )
