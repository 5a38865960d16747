"""The rows that `math_verifier.py` judges, and their standing: whether errors on them are counted.

A data folder holds pairs.jsonl, responses.jsonl and hard_all_peers_wrong.jsonl (any may be missing); the capability
probes stand beside this file. Each row has a standing:

    counted   it has a label; false negatives and false positives are counted on these rows alone
    policy    no label, or a rule on which sound verifiers differ (an answer rounded, a percent sign dropped)
    noise     its label is wrong, as the catalogue of hard rows says; nothing else is taken out
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

POLICY_RULES = {"rounded to 2 decimals", "percent of int", "/100", "2-decimal approximation", "pi=3.14"}
NOISE_CLASS = "label noise"
CHOICE_CORPUS = "mathv_choice_pairs"
APART = {"gaming_cases", "zh_cases", CHOICE_CORPUS}
"""Corpora left out of the main totals: attacks, a language, and a task that most peers do not take on."""
IDENTITY_CORPUS = "math_gold_identity"
"""Golds beside themselves."""
HARD_CORPUS = "hardverify_math"

PROBES = Path(__file__).parent / "math_probes.jsonl"
FILES = {"pairs": "pairs.jsonl", "responses": "responses.jsonl", "hard": "hard_all_peers_wrong.jsonl"}
Pair = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Row:
    """One thing to judge. `label`: whether it is right; `rule`: how it was made, or its class."""

    key: str
    kind: str
    corpus: str
    gold: str
    text: str
    label: bool | None
    standing: str
    rule: str
    options: tuple[str, ...] | None = None

    @property
    def was_read(self) -> bool:
        """Whether the row is in the half that was read during development. Of the other half only counts were seen."""
        return int(hashlib.sha256(self.key.encode()).hexdigest(), 16) % 2 == 0

    def task(self) -> dict[str, Any]:
        """The fields for the judging process, without the label."""
        options = list(self.options) if self.options is not None else None
        return {"key": self.key, "kind": self.kind, "gold": self.gold, "text": self.text, "options": options}


def load_sets(folder: Path) -> tuple[dict[str, list[Row]], list[str]]:
    """The sets by name, and a line for each file that is missing."""
    records = {name: _lines(folder / file) for name, file in FILES.items() if (folder / file).exists()}
    missing = [f"{file} is not in {folder}" for name, file in FILES.items() if name not in records]
    noise = {key for row in records.get("hard", []) if row["class"].startswith(NOISE_CLASS) for key in _identities(row)}
    sets = {name: [_row(name, row, noise) for row in rows] for name, rows in records.items()}
    sets["probes"] = [_probe(row) for row in _lines(PROBES)]
    return sets, missing


def stratified(rows: Sequence[Row], limit: int) -> list[Row]:
    """About `limit` rows in their order, of each corpus and label its share, at least one: those with lowest hashes."""
    strata: dict[tuple[str, bool | None], list[Row]] = defaultdict(list)
    for row in rows:
        strata[row.corpus, row.label].append(row)
    chosen = set()
    for members in strata.values():
        share = -(-limit * len(members) // len(rows))
        chosen |= set(sorted(members, key=lambda row: hashlib.sha256(row.key.encode()).hexdigest())[:share])
    return [row for row in rows if row in chosen]


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def _identities(row: dict[str, Any]) -> list[Pair | tuple[str, str]]:
    return [(row["corpus"], row["id"]), (row["corpus"], row["gold"], row["answer"])]


def _row(name: str, row: dict[str, Any], noise: set[Any]) -> Row:
    kind = "response" if name == "responses" else "pair"
    label = row["correct"] if kind == "response" else row["equivalent"]
    rule = row.get("class" if name == "hard" else "rule") or ""
    if label is None or rule in POLICY_RULES:
        standing = "policy"
    elif kind == "pair" and noise.intersection(_identities(row)):
        standing = "noise"
    else:
        standing = "counted"
    options = tuple(row["options"]) if row.get("options") else None
    text = row["response" if kind == "response" else "answer"]
    return Row(f"{row['corpus']}:{row['id']}", kind, row["corpus"], row["gold"], text, label, standing, rule, options)


def _probe(row: dict[str, Any]) -> Row:
    want = row["want"]
    standing = "policy" if want == "policy" else "counted"
    label = (row["default"] if want == "policy" else want) == "="
    return Row(row["probe"], "pair", "probes", row["gold"], row["answer"], label, standing, want)
