"""Records and reports of vetted test suites.

The result of vetting one row is kept on disk as JSON while the stage runs, so that no row is vetted twice. A line that
a kill cut short is left out when the file is read again:

    {"key": ["9f0c...", "train.jsonl", 17], "outcome": "repair", "findings": [...], "repaired": "{...}", ...}

The report is made from `suites.parquet` alone: a few lines for the terminal and a page in Markdown.

    164 suites: 163 keep, 1 drop
    low_kill_rate 15, leaked_cases 22, memorizable 3, paid_null 1
    humaneval.jsonl:100   kill rate 0.37 (11 of 30)   line 11: if value.count('.') == 1:  ->  ...
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import orjson
import pyarrow as pa

from truegold.pipeline.tables.rows import Row, RowKey, dump_json, read_table, row_key
from truegold.verifiers.audit.suites import SuiteOutcome, Vetting

NOT_VETTED = "not_vetted"
"""The reason of a row's flag where the sandbox failed, so that nothing is known of the tests."""

SUITES_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("source", pa.string()),
        ("source_row", pa.int64()),
        ("source_id", pa.string()),
        ("type", pa.string()),
        ("outcome", pa.string()),
        ("reasons", pa.list_(pa.string())),
        ("cases", pa.int64()),
        ("kept", pa.int64()),
        ("references", pa.int64()),
        ("mutants", pa.int64()),
        ("kill_rate", pa.float64()),
        ("kill_low", pa.float64()),
        ("kill_high", pa.float64()),
        ("survivors", pa.list_(pa.string())),
        ("equivalent", pa.int64()),
        ("undecided", pa.int64()),
        ("paid", pa.list_(pa.string())),
        ("headroom", pa.float64()),
        ("guess_chance", pa.float64()),
        ("leaked", pa.float64()),
        ("caught", pa.float64()),
        ("findings", pa.string()),
    ]
)
_ID_NAMES = ("source_id", "task_id", "problem_id", "question_id", "id", "name")
"""What sources call the identifier of a problem, the likeliest first."""

_NOT_IN_TABLE = ("key", "repaired")


def make_record(row: Row, vetting: Vetting) -> dict[str, Any]:
    """Return the record of a row that was vetted."""
    low, high = vetting.kills.interval or (None, None)
    findings = [
        {
            "reason": str(finding.reason),
            "severity": str(finding.severity),
            "evidence": dict(finding.evidence),
            "suggestion": finding.suggestion,
        }
        for finding in vetting.findings
    ]
    return {
        "key": list(row_key(row)),
        "outcome": str(vetting.outcome),
        "reasons": vetting.reasons,
        "findings": findings,
        "repaired": None if vetting.repaired is None else dump_json(vetting.repaired),
        "cases": vetting.cases,
        "kept": vetting.kept,
        "references": vetting.references,
        "mutants": vetting.kills.mutants,
        "kill_rate": vetting.kill_rate,
        "kill_low": low,
        "kill_high": high,
        "survivors": [mutant.description for mutant in vetting.kills.survivors],
        "equivalent": vetting.kills.equivalent,
        "undecided": vetting.kills.undecided,
        "paid": list(vetting.paid),
        "headroom": vetting.headroom,
        "guess_chance": vetting.guess_chance,
        "leaked": vetting.leaked,
        "caught": vetting.caught,
    }


def make_failed_record(row: Row, error: str) -> dict[str, Any]:
    """Return the record of a row whose programs the sandbox could not run."""
    finding = {"reason": NOT_VETTED, "severity": "flag", "evidence": {"error": error}, "suggestion": "run it again"}
    return {
        "key": list(row_key(row)),
        "outcome": str(SuiteOutcome.KEEP),
        "reasons": [NOT_VETTED],
        "findings": [finding],
        "repaired": None,
    }


def suite_row(row: Row, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the line of `suites.parquet` for a row and its record."""
    arguments = orjson.loads(row["verifier_args"])
    tests = arguments.get("tests")
    kind = tests.get("type") if isinstance(tests, dict) else arguments.get("type")
    values = {name: value for name, value in record.items() if name not in _NOT_IN_TABLE}
    identity = {name: row[name] for name in ("id", "source", "source_row")}
    # The source's own id is what a reader finds the problem by.
    meta = orjson.loads(row["meta"] or "{}")
    source_id = next((str(meta[name]) for name in _ID_NAMES if isinstance(meta.get(name), str | int)), None)
    named = {"source_id": source_id, "type": kind}
    return {**identity, **values, **named, "findings": dump_json(record["findings"])}


class Finished:
    """The records of rows that are done, in a file that only grows; a context manager."""

    def __init__(self, path: Path) -> None:
        path.touch()
        self._offsets = dict(_read_offsets(path))
        self._records = path.open("rb")
        self._file = path.open("ab")
        self._file.write(b"\n")  # It ends a line that a kill cut short.

    def get(self, row: Row) -> dict[str, Any] | None:
        """Return the row's record where an earlier run left one, else None."""
        offset = self._offsets.get(row_key(row))
        if offset is None:
            return None
        self._records.seek(offset)
        record: dict[str, Any] = orjson.loads(self._records.readline())
        return record

    def add(self, record: Mapping[str, Any]) -> None:
        """Append a record, so that it survives a kill of this process."""
        self._file.write(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))
        self._file.flush()

    def __enter__(self) -> Finished:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._file.close()
        self._records.close()


def _read_offsets(path: Path) -> Iterator[tuple[RowKey, int]]:
    """Yield the row of each whole record, and the byte that the record begins at."""
    offset = 0
    with path.open("rb") as file:
        for line in file:
            if len(line) > 1 and line.endswith(b"\n"):
                with suppress(orjson.JSONDecodeError):  # A kill has cut the line short.
                    yield tuple(orjson.loads(line)["key"]), offset
            offset += len(line)


MAX_WEAKEST = 10
"""The report names this many of the weakest suites."""
MAX_SURVIVORS = 5
"""The page shows this many uncaught faults of each of them."""
MAX_LISTED = 500
"""The page lists the findings of this many suites; the table has those of all."""

_COLUMNS = [
    *("source", "source_row", "source_id", "outcome", "reasons", "cases", "kept", "mutants"),
    *("kill_rate", "kill_low", "kill_high", "survivors", "paid", "findings"),
]

SuiteRow = dict[str, Any]
"""A row of `suites.parquet`."""


def read_suites(path: Path) -> list[SuiteRow]:
    """Return the columns of all suites that the report needs."""
    return list(read_table(path, SuiteRow, _COLUMNS))


def summary_lines(suites: Sequence[SuiteRow]) -> list[str]:
    """Return the lines for the terminal."""
    outcomes = Counter(suite["outcome"] for suite in suites)
    reasons = Counter(reason for suite in suites for reason in suite["reasons"])
    lines = [f"{len(suites):,} suites: " + ", ".join(f"{count:,} {name}" for name, count in outcomes.most_common())]
    lines += [f"{count:>8,}  {reason}" for reason, count in reasons.most_common()]
    weakest = _weakest(suites)
    if weakest:
        lines.append("the weakest:")
        lines += [f"  {_location(suite):<32} {_strength(suite)}" for suite in weakest]
    return lines


def _weakest(suites: Sequence[SuiteRow]) -> list[SuiteRow]:
    """Return the suites that pay null programs, then those with the lowest kill rates."""
    weak = [suite for suite in suites if suite["paid"] or (suite["kill_rate"] is not None and suite["kill_rate"] < 1)]
    return sorted(weak, key=lambda suite: (not suite["paid"], suite["kill_rate"] or 0.0))[:MAX_WEAKEST]


def markdown(title: str, suites: Sequence[SuiteRow]) -> str:
    """Return the page; `title` names the data."""
    return "\n".join(_markdown(title, suites)) + "\n"


def _markdown(title: str, suites: Sequence[SuiteRow]) -> Iterator[str]:
    yield f"# Test suites of {_escape(title)}\n"
    yield from _count_table("outcome", Counter(suite["outcome"] for suite in suites))
    yield from _count_table("reason", Counter(reason for suite in suites for reason in suite["reasons"]))
    rates = [suite["kill_rate"] for suite in suites if suite["kill_rate"] is not None]
    if rates:
        mutants = sum(suite["mutants"] for suite in suites if suite["kill_rate"] is not None)
        mean = 100 * sum(rates) / len(rates)
        yield f"{mutants:,} faults were planted in {len(rates):,} worked solutions. On average a suite catches"
        yield f"{mean:.1f} % of them; some faults change nothing that a test could see.\n"
    yield from _weakest_section(_weakest(suites))
    yield from _findings_section([suite for suite in suites if suite["reasons"]])


def _witnesses(suite: SuiteRow) -> dict[str, dict[str, str]]:
    """Return for the survivors of a weak suite the input that each should have failed on."""
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
        return f"pays: {', '.join(suite['paid'][:3])}"
    rate, low, high = suite["kill_rate"], suite["kill_low"], suite["kill_high"]
    caught = suite["mutants"] - len(suite["survivors"] or [])
    return f"kill rate {rate:.2f} ({caught} of {suite['mutants']}; {low:.2f} to {high:.2f})"


def _shorten(evidence: Any) -> str:
    text = json.dumps(evidence, ensure_ascii=False)
    return text if len(text) <= 300 else f"{text[:300]}…"


def _as_code(text: str) -> str:
    """Return the text as code in Markdown, whatever is in it."""
    line = " ".join(text.split())
    return f"`` {line.replace('``', '` `')} ``"


def _escape(text: str) -> str:
    """Return the text so that Markdown shows it as it is."""
    return "".join(f"\\{char}" if char in "\\`*_{}[]<>#|$" else char for char in " ".join(text.split()))
