"""Reports on vetted test suites from `suites.parquet`: lines for the terminal, and a page in Markdown.

The lines count the outcomes, then the flags by reason (`verifiers.audit.suites`), and name the weakest suites. The kill
rate of a suite is the share of planted faults that its tests catch:

164 suites: 163 keep, 1 drop
low_kill_rate 15, leaked_cases 22, memorizable 3, paid_null 1
humaneval.jsonl:100   kill rate 0.37 (11 of 30)   line 11: if value.count('.') == 1:  ->  ...

`SourceFindings` finds lines that many prompts of a source share, and prompts that give hints:

58 of 60 prompts of a.jsonl have the line 'Notes: read from standard input.'
12 of 60 prompts of a.jsonl say how they are solved or how hard they are (categories, tags, difficulty)
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from truegold.pipeline.tables.rows import read_table
from truegold.verifiers.audit.suites import VetReason

MAX_WEAKEST = 10
"""The number of weakest suites in the report."""
MAX_SURVIVORS = 5
"""The number of missed faults that the page shows for each suite."""
EVIDENCE_CHARS = 300
"""The number of characters of evidence that the page shows."""
MAX_LISTED = 500
"""The number of suites whose findings the page lists; the table has all."""

_COLUMNS = [
    *("source", "source_row", "source_id", "outcome", "reasons", "cases", "kept", "mutants"),
    *("kill_rate", "kill_low", "kill_high", "survivors", "paid", "findings"),
]

SuiteRow = dict[str, Any]
"""A row of `suites.parquet`."""


def read_suites(path: Path) -> list[SuiteRow]:
    """Return all suites, with the columns that the report needs."""
    return list(read_table(path, SuiteRow, _COLUMNS))


def summary_lines(suites: Sequence[SuiteRow]) -> list[str]:
    """Return the lines for the terminal."""
    outcomes = Counter(suite["outcome"] for suite in suites)
    reasons = Counter(reason for suite in suites for reason in suite["reasons"])
    lines = [f"{len(suites):,} suites: " + ", ".join(f"{count:,} {name}" for name, count in outcomes.most_common())]
    lines += [f"{count:>8,}  {reason}" for reason, count in reasons.most_common()]
    if weakest := _weakest(suites):
        lines.append("the weakest:")
        lines += [f"  {_location(suite):<32} {_strength(suite)}" for suite in weakest]
    return lines


def _weakest(suites: Sequence[SuiteRow]) -> list[SuiteRow]:
    """Return the weakest suites: first those that accept a program which solves nothing, then by lowest kill rate."""
    weak = [suite for suite in suites if suite["paid"] or (suite["kill_rate"] is not None and suite["kill_rate"] < 1)]
    return sorted(weak, key=lambda suite: (not suite["paid"], suite["kill_rate"] or 0.0))[:MAX_WEAKEST]


def markdown(title: str, suites: Sequence[SuiteRow]) -> str:
    """Return the page; `title` names the data."""
    return "\n".join(_markdown(title, suites)) + "\n"


def _markdown(title: str, suites: Sequence[SuiteRow]) -> Iterator[str]:
    yield f"# Test suites of {_escape(title)}\n"
    yield from _count_table("outcome", Counter(suite["outcome"] for suite in suites))
    yield from _count_table("reason", Counter(reason for suite in suites for reason in suite["reasons"]))
    if rates := [suite["kill_rate"] for suite in suites if suite["kill_rate"] is not None]:
        mutants = sum(suite["mutants"] for suite in suites if suite["kill_rate"] is not None)
        mean = 100 * sum(rates) / len(rates)
        yield f"{mutants:,} faults were planted in {len(rates):,} worked solutions. On average a suite catches"
        yield f"{mean:.1f} % of them; some faults change nothing that a test could see.\n"
    yield from _weakest_section(_weakest(suites))
    yield from _findings_section([suite for suite in suites if suite["reasons"]])


def _witnesses(suite: SuiteRow) -> dict[str, dict[str, str]]:
    """Return an input that shows the fault, for each fault that the tests missed."""
    findings = json.loads(suite["findings"])
    survivors = [each for finding in findings for each in finding["evidence"].get("survivors", ())]
    return {each["fault"]: each for each in survivors if isinstance(each, dict)}


def _count_table(heading: str, counts: Counter[str]) -> Iterator[str]:
    yield f"| {heading} | suites |\n|---|---|"
    for name, count in counts.most_common():
        yield f"| `{name}` | {count:,} |"
    yield ""


def _weakest_section(suites: Sequence[SuiteRow]) -> Iterator[str]:
    if not suites:
        return
    yield "## The weakest\n"
    for suite in suites:
        yield f"- {_escape(_location(suite))}: {_escape(_strength(suite))}"
        witnesses = _witnesses(suite)
        for survivor in (suite["survivors"] or [])[:MAX_SURVIVORS]:
            yield f"    - {_as_code(survivor)}"
            if (witness := witnesses.get(survivor)) is not None:
                yield f"        - input {_as_code(witness['input'])}: expected {_as_code(witness['expected'])},"
                yield f"          got {_as_code(witness['got'])}. Add {_as_code(witness['case'])}"
    yield ""


def _findings_section(suites: Sequence[SuiteRow]) -> Iterator[str]:
    if not suites:
        return
    yield "## Findings\n"
    for suite in suites[:MAX_LISTED]:
        yield f"- {_escape(_location(suite))}: {suite['outcome']}"
        for finding in json.loads(suite["findings"]):
            advice = f" ({_escape(finding['suggestion'])})" if finding["suggestion"] else ""
            yield f"    - `{finding['reason']}` {_as_code(_shorten(finding['evidence']))}{advice}"
    if len(suites) > MAX_LISTED:
        yield f"- and {len(suites) - MAX_LISTED:,} more: `suites.parquet`"
    yield ""


def _location(suite: SuiteRow) -> str:
    position = f"{suite['source']}:{suite['source_row']}"
    return position if suite["source_id"] is None else f"{suite['source_id']} ({position})"


def _strength(suite: SuiteRow) -> str:
    if suite["paid"]:
        return f"accepts: {', '.join(suite['paid'][:3])}"
    rate, low, high = suite["kill_rate"], suite["kill_low"], suite["kill_high"]
    caught = suite["mutants"] - len(suite["survivors"] or [])
    return f"kill rate {rate:.2f} ({caught} of {suite['mutants']}; {low:.2f} to {high:.2f})"


def _shorten(evidence: Any) -> str:
    text = json.dumps(evidence, ensure_ascii=False)
    return text if len(text) <= EVIDENCE_CHARS else f"{text[:EVIDENCE_CHARS]}…"


def _as_code(text: str) -> str:
    """Return any text as Markdown code."""
    line = " ".join(text.split())
    return f"`` {line.replace('``', '` `')} ``"


def _escape(text: str) -> str:
    """Return the text escaped for Markdown."""
    return "".join(f"\\{char}" if char in "\\`*_{}[]<>#|$" else char for char in " ".join(text.split()))


MIN_PROMPTS = 5
"""The least number of prompts with the same line, for the line to be boilerplate."""
MIN_SHARE = 0.5
"""The least share of a source's prompts with the same line."""
MIN_LINE_CHARS = 12
"""The least length of a line of boilerplate; shorter ones are headings, such as `Input`."""
MAX_LINES = 5
"""The largest number of lines of boilerplate that are listed."""
MAX_PROMPT_LINES = 500
MAX_KNOWN_LINES = 200_000
"""The largest number of different lines that are counted, which bounds memory."""

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
    """Counts repeated lines and hints in the prompts of each source."""

    def __init__(self) -> None:
        self._sources: defaultdict[str, _Source] = defaultdict(_Source)

    def add(self, source: str, prompt: str, reasons: list[str]) -> None:
        """Count a prompt, with the findings of its suite."""
        counted = self._sources[source]
        counted.prompts += 1
        counted.memorizable += str(VetReason.MEMORIZABLE) in reasons
        counted.hints += _HINT.search(prompt) is not None
        lines = {" ".join(line.split()) for line in prompt.split("\n", MAX_PROMPT_LINES)[:MAX_PROMPT_LINES]}
        for line in lines:
            if len(line) >= MIN_LINE_CHARS and (line in counted.lines or len(counted.lines) < MAX_KNOWN_LINES):
                counted.lines[line] += 1

    def facts(self) -> Mapping[str, dict[str, Any]]:
        """Return the findings about each source with any."""
        return {source: shown for source, counted in self._sources.items() if (shown := _shown(counted))}


def _shown(counted: _Source) -> dict[str, Any]:
    least = max(MIN_PROMPTS, MIN_SHARE * counted.prompts)
    repeated = [[line, count] for line, count in counted.lines.most_common(MAX_LINES) if count >= least]
    shown = {"memorizable": counted.memorizable, "hints": counted.hints, "boilerplate": repeated}
    filled = {name: value for name, value in shown.items() if value}
    return {"prompts": counted.prompts, **filled} if filled else {}


def source_lines(facts: Mapping[str, dict[str, Any]]) -> list[str]:
    """Return the lines about sources for the terminal."""
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
