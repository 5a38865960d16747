"""Findings of a source: what stands in its prompts again and again, which no single suite shows.

    60 of 60 prompts show all cases                    {"memorizable": 60}
    58 of 60 prompts have the line "Notes: read ..."   {"boilerplate": [["Notes: read from standard input.", 58]]}
    12 of 60 prompts say "Categories: greedy"          {"hints": 12}

A hint tells how a problem is solved, or how hard it is: a reader of the problem does not have it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from truegold.verifiers.audit.suites import VetReason

MIN_PROMPTS = 5
"""In fewer prompts nothing is said to repeat itself."""
MIN_SHARE = 0.5
"""The share of the prompts that a line stands in, to be called boilerplate."""
MIN_LINE_CHARS = 12
"""Shorter lines are headings, such as `Input`."""
MAX_LINES = 5
"""The lines of boilerplate that are named."""
MAX_PROMPT_LINES = 500
MAX_KNOWN_LINES = 200_000
"""Lines that are counted. Stops a source of millions of prompts from filling the memory."""

_HINT = re.compile(
    r"^[\s#*>-]{0,8}(?:categor(?:y|ies)|tags?|topics?|difficulty|rating|editorial|hints?|algorithms?|approach"
    r"|expected (?:time )?complexity)\b[*_ ]{0,3}\d{0,2}[*_ ]{0,3}[:：]",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(slots=True)
class _Source:
    prompts: int = 0
    memorizable: int = 0
    hints: int = 0
    lines: Counter[str] = field(default_factory=Counter)


class SourceFindings:
    """Counts over the prompts of each source."""

    def __init__(self) -> None:
        self._sources: defaultdict[str, _Source] = defaultdict(_Source)

    def add(self, source: str, prompt: str, reasons: list[str]) -> None:
        """Count a prompt, and the findings of its suite."""
        counted = self._sources[source]
        counted.prompts += 1
        counted.memorizable += str(VetReason.MEMORIZABLE) in reasons
        counted.hints += _HINT.search(prompt) is not None
        lines = {" ".join(line.split()) for line in prompt.split("\n", MAX_PROMPT_LINES)[:MAX_PROMPT_LINES]}
        for line in lines:
            if len(line) >= MIN_LINE_CHARS and (line in counted.lines or len(counted.lines) < MAX_KNOWN_LINES):
                counted.lines[line] += 1

    def facts(self) -> Mapping[str, dict[str, Any]]:
        """Return what was found of each source that has something."""
        return {source: shown for source, counted in self._sources.items() if (shown := _shown(counted))}


def _shown(counted: _Source) -> dict[str, Any]:
    least = max(MIN_PROMPTS, MIN_SHARE * counted.prompts)
    repeated = [[line, count] for line, count in counted.lines.most_common(MAX_LINES) if count >= least]
    shown = {"memorizable": counted.memorizable, "hints": counted.hints, "boilerplate": repeated}
    filled = {name: value for name, value in shown.items() if value}
    return {"prompts": counted.prompts, **filled} if filled else {}


def source_lines(facts: Mapping[str, dict[str, Any]]) -> list[str]:
    """Return the lines on sources for the terminal."""
    lines = []
    for source, shown in facts.items():
        prompts = f"of {shown['prompts']:,} prompts of {source}"
        if count := shown.get("memorizable"):
            lines.append(f"{count:,} {prompts} show all cases")
        if count := shown.get("hints"):
            lines.append(
                f"{count:,} {prompts} say how they are solved or how hard they are (categories, tags, difficulty)"
            )
        lines += [f"{count:,} {prompts} have the line {line!r}" for line, count in shown.get("boilerplate", ())]
    return lines
