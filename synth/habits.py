"""The habits of a policy: phrases that its samples of bare prompts have anyway are not leaks.

    800 bare samples: "let me" in 610 openings, "the user asks" in 93, "as noted" in none
    "Okay, let me think. The user asks ... 12+9=21"    passes
    "As noted, the 5 come off. 12+9=21 ..."            dropped

A phrase, and a pattern as a whole, drops nothing where its rate in bare samples is expected above `MOST_BARE`. The rate
is Beta distributed, with PRIOR before the first sample. Guards that look at the whole output are judged alike, by
`MOST_BARE_OF_GUARD`. Below `FEWEST_SAMPLES` the built-in table of natural openings stands alone (`mentions.toml`).

Samples come from rows that are spread over the tables, a few of each, right and wrong ones alike: no context has ever
been in their prompts.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from truegold.pipeline.profile.drawing import SampleRow
from truegold.pipeline.rates.posterior import Beta
from truegold.pipeline.tables.rows import KEY, Row, RowKey, read_rows, read_table, row_key
from truegold.verifiers import judges_solutions, resolve

MOST_BARE = 0.01
"""A phrase or a pattern that is expected in more of the bare samples than this is a habit."""
MOST_BARE_OF_GUARD = 0.05
"""The share of bare samples above which a finding of a guard that looks at the whole output is a habit."""
MOST_BARE_TOGETHER = 0.02
"""The share of bare samples in which any pattern may find something: the most frequent patterns go until it is so."""
PRIOR = Beta(0.5, 99.5)
"""The rate as it is assumed before the first sample: half a percent, worth 100 samples."""
FEWEST_SAMPLES = 50
ROWS, SAMPLES_OF_ROW = 1000, 4
"""Rows that are looked at, and samples of each."""
_FIGURE = re.compile(r"\d[\d.,]*")

Finding = tuple[str, str]
"""A rule that found something in a text, and the words; no words where it looks at the whole text."""


@dataclass(frozen=True)
class BareSample:
    """A sample of a bare prompt."""

    row: Row
    completion: str
    extracted: str | None
    prompt_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    is_program: bool


@dataclass(frozen=True)
class Habits:
    """The habits that a policy's bare samples show."""

    samples: int = 0
    phrases: Mapping[Finding, int] = field(default_factory=dict)
    """The samples that have each phrase which is a habit."""
    rules: Mapping[str, int] = field(default_factory=dict)
    """The samples in which each pattern or guard that is a habit finds something besides these phrases."""

    def excuse(self, finding: Finding) -> bool:
        """Return whether the policy says it anyway."""
        return finding[0] in self.rules or _masked(finding) in self.phrases

    def facts(self) -> dict[str, Any]:
        """Return what the stage's record says of them."""
        phrases = sorted(((words, count) for (_, words), count in self.phrases.items()), key=lambda pair: -pair[1])
        rules = {str(rule): count for rule, count in self.rules.items()}
        return {"samples": self.samples, "phrases": dict(phrases[:20]), "rules": rules}


def learn_habits(findings: Sequence[Set[Finding]]) -> Habits:
    """Return the habits that show in what was found in each bare sample; none below `FEWEST_SAMPLES`."""
    if len(findings) < FEWEST_SAMPLES:
        return Habits(len(findings))

    def is_habit(count: int, most: float) -> bool:
        return PRIOR.after(len(findings), count).mean > most

    masked = [{_masked(finding) for finding in sample} for sample in findings]
    phrases = Counter(finding for sample in masked for finding in sample if finding[1])
    common = {finding: count for finding, count in phrases.items() if is_habit(count, MOST_BARE)}
    left = [sample - common.keys() for sample in masked]
    guards = Counter(rule for sample in left for rule, words in sample if not words)
    rules = {rule: count for rule, count in guards.items() if is_habit(count, MOST_BARE_OF_GUARD)}
    spoken = [{rule for rule, words in sample if words} for sample in left]
    # The most frequent patterns first, until what is left of them drops next to none of the bare samples.
    while counts := Counter(rule for sample in spoken for rule in sample):
        rule, count = min(counts.items(), key=lambda pair: (-pair[1], pair[0]))
        if not is_habit(count, MOST_BARE) and not is_habit(sum(map(bool, spoken)), MOST_BARE_TOGETHER):
            break
        rules[rule] = count
        spoken = [sample - {rule} for sample in spoken]
    return Habits(len(findings), common, rules)


def _masked(finding: Finding) -> Finding:
    return finding[0], " ".join(_FIGURE.sub("#", finding[1]).split())


def read_bare_samples(inputs: Mapping[str, Path]) -> list[BareSample]:
    """Return samples of the profile for rows that are not held out: `SAMPLES_OF_ROW` of each of `ROWS` rows."""
    tables = [inputs[name] for name in ("selected", "hard", "reserve") if name in inputs]
    every = (row for table in tables for row in read_rows(table))
    # An id is a hash: the least ones are spread over all sources.
    rows = {row_key(row): row for row in heapq.nsmallest(ROWS, every, key=lambda row: (row["id"], row["source_row"]))}
    seen: Counter[RowKey] = Counter()
    samples = []
    columns = [*KEY, "completion", "extracted", "prompt_ids", "token_ids"]
    for sample in read_table(inputs["samples"], SampleRow, columns):
        key = row_key(sample)
        if key not in rows or seen[key] == SAMPLES_OF_ROW:
            continue
        seen[key] += 1
        samples.append(
            BareSample(
                row=rows[key],
                completion=sample["completion"],
                extracted=sample["extracted"],
                prompt_ids=tuple(sample["prompt_ids"]),
                token_ids=tuple(sample["token_ids"]),
                is_program=judges_solutions(resolve(rows[key]["verifier"])),
            )
        )
    return samples
