"""The habits of a policy: phrases that it also writes without feedback in its prompt, so feedback is not their cause.

    800 samples of bare prompts (the problem alone): "let me" in 610 openings, "the user asks" in 93, "as noted" in none
    "Okay, let me think. The user asks ... 12+9=21"    passes
    "As noted, the 5 come off. 12+9=21 ..."            dropped

A phrase, or a whole pattern, is a habit if its expected rate in bare samples is above MOST_BARE. The rate has a Beta
distribution with the prior PRIOR. Guards that concern the whole output have the higher threshold MOST_BARE_OF_GUARD.
With fewer than FEWEST_SAMPLES samples, only the built-in table of natural openings counts (`mentions.toml`).

The samples come from rows that are spread over the tables, a few of each row, right and wrong ones. Their prompts never
had a context.
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
"""The expected rate in bare samples above which a phrase or a pattern is a habit."""
MOST_BARE_OF_GUARD = 0.05
"""The expected rate in bare samples above which a finding about the whole output is a habit."""
MOST_BARE_TOGETHER = 0.02
"""The largest rate of bare samples that match any pattern. The most frequent patterns are excluded to reach it."""
PRIOR = Beta(0.5, 99.5)
"""The assumed rate before the first sample: half a percent, with the weight of 100 samples."""
FEWEST_SAMPLES = 50
"""Minimum number of bare samples from which habits are learned."""
ROWS, SAMPLES_OF_ROW = 1000, 4
"""Maximum number of rows in the sample, and of samples of each row."""
_FIGURE = re.compile(r"\d[\d.,]*")

Finding = tuple[str, str]
"""The rule that matched, and the matched words (empty for rules about the whole text)."""


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
    """The habits in a policy's bare samples."""

    samples: int = 0
    phrases: Mapping[Finding, int] = field(default_factory=dict)
    """The number of samples with each phrase that is a habit."""
    rules: Mapping[str, int] = field(default_factory=dict)
    """The number of samples matched by each pattern or guard that is a habit. Matches of `phrases` do not count."""

    def excuse(self, finding: Finding) -> bool:
        """Return whether a finding is a habit of the policy."""
        return finding[0] in self.rules or _masked(finding) in self.phrases

    def facts(self) -> dict[str, Any]:
        """Return the habits for the record of the stage."""
        phrases = sorted(((words, count) for (_, words), count in self.phrases.items()), key=lambda pair: -pair[1])
        rules = {str(rule): count for rule, count in self.rules.items()}
        return {"samples": self.samples, "phrases": dict(phrases[:20]), "rules": rules}


def learn_habits(findings: Sequence[Set[Finding]]) -> Habits:
    """Return the habits in the findings of each bare sample. Empty below FEWEST_SAMPLES."""
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
    # The most frequent patterns are excluded first, until the others drop almost no bare sample.
    while counts := Counter(rule for sample in spoken for rule in sample):
        rule, count = min(counts.items(), key=lambda pair: (-pair[1], pair[0]))
        if not is_habit(count, MOST_BARE) and not is_habit(sum(map(bool, spoken)), MOST_BARE_TOGETHER):
            break
        rules[rule] = count
        spoken = [sample - {rule} for sample in spoken]
    return Habits(len(findings), common, rules)


def _masked(finding: Finding) -> Finding:
    """Return a finding with # for each number in its words."""
    return finding[0], " ".join(_FIGURE.sub("#", finding[1]).split())


def read_bare_samples(inputs: Mapping[str, Path]) -> list[BareSample]:
    """Return samples of the profile for rows that are not held out: SAMPLES_OF_ROW for each of ROWS rows."""
    tables = [inputs[name] for name in ("selected", "hard", "reserve") if name in inputs]
    every = (row for table in tables for row in read_rows(table))
    # An id is a hash, so the smallest ids are spread over all sources.
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
