"""Gates a data set as code is gated: what may not be in a set that is trained on, checked row by row.

    gate(Path("train.jsonl"), GateOptions(against=("math500",)), NullProgress()).failed          [Check.GOLD, ...]

Rules, copies in evaluation sets, and the empty answers are tried on every row. Gaming responses are tried on a share of
the rows, the same ones every time, which `Gated.hacked_rows` counts; a verifier that pays one of them does so on most.
`junit` and `sarif` write the outcome for machines: CI shows JUnit as tests, code hosts show SARIF beside lines.

The checks:

gold        gold earns the full score from its own verifier (of programs: the worked solution), every accepted one
empty       an empty answer, and one that says nothing, earn nothing
null        programs that solve nothing pass no tests
skipped     the tests test something: all of them are run, and something is asserted
hack        responses that are known to earn rewards without an answer earn none
unusable    every record is a row
leak        no row stands in a named evaluation set
flags       the share of rows that a rule would hold back
card        a card is attached, and it states a licence
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import tee
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import orjson
import polars as pl
import yaml

from truegold.pipeline.config.sources import FileSource
from truegold.pipeline.config.stages import FlagConfig
from truegold.pipeline.curation.gate_questions import (
    MESSAGE_CHARS,
    Check,
    Question,
    Violation,
    is_sampled,
    questions_of,
    why_nothing_is_tested,
)
from truegold.pipeline.decontaminate.matches import find_leaks_in_file
from truegold.pipeline.export.convert import read_tables, rejects_of, tables_of
from truegold.pipeline.flag import flag
from truegold.pipeline.problems import ProblemColumns
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.sources.records import describe_reasons
from truegold.pipeline.tables.ledger import FLAGS_FILE
from truegold.pipeline.tables.rows import Row, count_rows, read_rows, write_rows
from truegold.pipeline.text.shown_text import visible
from truegold.verifiers import Item, verify_batch
from truegold.verifiers.running.batch import DEADLINE_S

HACKED_ROWS = 300
"""The rows of a larger set that gaming responses, some forty a row, are tried on, about."""
MAX_SHARE: Mapping[Check, float] = {Check.FLAGS: 0.05}
"""The share of rows that may violate a check, where it is not none."""

SHOWN = 50
"""The rows that a failing test of the JUnit file names."""
SARIF_RESULTS = 5_000
"""The violations in a SARIF file; code hosts refuse files with many more."""
FINDINGS_A_ROW = 3
"""A row that pays forty gaming responses is one finding; its first three violations say enough."""


@dataclass(frozen=True)
class GateOptions:
    """What a gate looks at."""

    fail_on: Sequence[Check] = ()
    """The checks; all that apply where none is named."""
    against: Sequence[str] = ()
    """Evaluation sets, by name or as files."""
    card: Path | None = None
    """The set's card; README.md beside the data where not given."""
    max_share: Mapping[Check, float] = field(default_factory=dict)
    """The share of rows that may violate a check, where it is another than the default."""
    source: FileSource = field(default_factory=lambda: FileSource(path=""))
    """How a file is read."""
    workers: int = 0
    deadline_s: float = DEADLINE_S


@dataclass
class Gated:
    """The outcome of a gate."""

    data: Path
    rows: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    """Records that could not become rows, by reason."""
    hacked_rows: int = 0
    """Rows on which gaming responses were tried."""
    checks: list[Check] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    bounds: dict[Check, float] = field(default_factory=dict)
    """The share of rows that may violate each check; 0 where there is none."""

    def count(self, check: Check) -> int:
        """Return how many rows violate a check."""
        if check is Check.UNUSABLE:
            return self.rejected.total()
        return len({(violation.source, violation.row) for violation in self.violations if violation.check is check})

    def fails(self, check: Check) -> bool:
        """Return whether a check is violated more often than it may be."""
        return self.count(check) > self.bounds.get(check, 0.0) * max(self.judged(check), 1)

    def judged(self, check: Check) -> int:
        """Return the number of rows that a check looked at; for `unusable`, of records."""
        return self.rows + (self.rejected.total() if check is Check.UNUSABLE else 0)

    def tally(self, check: Check) -> str:
        """Return how often a check is violated, in words: `36 of 57 records: 30 gold_not_text, 6 system_message`."""
        if check is not Check.UNUSABLE:
            return f"{self.count(check):,} of {self.judged(check):,} rows: {check.description}"
        return f"{self.count(check):,} of {self.judged(check):,} records: {describe_reasons(self.rejected)}"

    @property
    def failed(self) -> list[Check]:
        """The checks that fail."""
        return [check for check in self.checks if self.fails(check)]


def gate(data: Path, options: GateOptions, progress: Progress) -> Gated:
    """Run the checks. Raises InputError where the data cannot be read at all."""
    gated = Gated(data, checks=_checks(options), bounds={**MAX_SHARE, **options.max_share})
    with tempfile.TemporaryDirectory(prefix="truegold-") as scratch:
        folder = Path(scratch)
        rows = _read(data, options, folder, gated, progress)
        gated.rows = count_rows(rows)
        if asked_checks := {Check.GOLD, Check.EMPTY, Check.NULL, Check.HACK} & set(gated.checks):
            _ask_verifiers(rows, options, asked_checks, gated, progress)
        if Check.SKIPPED in gated.checks:
            for row in read_rows(rows):
                if (why := why_nothing_is_tested(row)) is not None:
                    gated.violations.append(Violation(Check.SKIPPED, row["source_row"], row["source"], why))
        if Check.FLAGS in gated.checks:
            _flag(rows, folder, gated, progress)
        if Check.LEAK in gated.checks:
            _find_leaks(rows, options, folder, gated, progress)
    if Check.CARD in gated.checks:
        _check_card(data, options.card, gated)
    return gated


def _checks(options: GateOptions) -> list[Check]:
    if options.fail_on:
        return list(dict.fromkeys(options.fail_on))
    needs = {Check.LEAK: bool(options.against), Check.CARD: options.card is not None}
    return [check for check in Check if needs.get(check, True)]


def _read(data: Path, options: GateOptions, folder: Path, gated: Gated, progress: Progress) -> Path:
    """Return the table of rows, with what could not be read as violations."""
    tables, gated.rejected = tables_of(data, options.source, folder, progress)
    for rejects in rejects_of(folder) if Check.UNUSABLE in gated.checks else ():
        for line in rejects.read_bytes().splitlines():
            reject = orjson.loads(line)
            text = f"{reject['reason']}: {reject['detail']}"[:MESSAGE_CHARS]
            gated.violations.append(Violation(Check.UNUSABLE, reject["source_row"], data.name, text))
    path = folder / "rows.parquet"
    # The rows of a run have what curation added; the checks need the canonical columns.
    write_rows(path, map(_canonical, read_tables(tables)))
    return path


def _canonical(row: Row) -> Mapping[str, object]:
    return {name: value for name, value in row.items() if name in Row.__required_keys__}


def _ask_verifiers(rows: Path, options: GateOptions, checks: set[Check], gated: Gated, progress: Progress) -> None:
    total = count_rows(rows)
    share = min(1.0, HACKED_ROWS / max(total, 1))
    progress.start("asking verifiers", total)

    def questions() -> Iterator[tuple[Row, Question]]:
        for row in read_rows(rows):
            hacks = Check.HACK in checks and is_sampled(row, share)
            gated.hacked_rows += hacks
            for question in questions_of(row, hacks):
                if question.check in checks:
                    yield row, question
            progress.advance()

    to_judge, to_read = tee(questions())
    asked: Iterator[Item] = (question.item for _, question in to_judge)
    verdicts = verify_batch(asked, options.workers, item_deadline_s=options.deadline_s)
    seen: Counter[tuple[Check, int]] = Counter()
    with closing(verdicts):  # type: ignore[type-var]
        for verdict, (row, question) in zip(verdicts, to_read, strict=True):
            violation = question.violation(row, verdict)
            if violation is not None and seen[violation.check, row["source_row"]] < FINDINGS_A_ROW:
                seen[violation.check, row["source_row"]] += 1
                gated.violations.append(violation)


def _flag(rows: Path, folder: Path, gated: Gated, progress: Progress) -> None:
    out = folder / "flag"
    out.mkdir()
    flag({"rows": rows}, FlagConfig(), out, progress)
    blocking = pl.read_parquet(out / FLAGS_FILE).filter("blocks").sort("source_row")
    for source, line, reason, evidence in blocking.select("source", "source_row", "reason", "evidence").iter_rows():
        gated.violations.append(Violation(Check.FLAGS, line, source, f"{reason}: {evidence}"[:MESSAGE_CHARS]))


def _find_leaks(rows: Path, options: GateOptions, folder: Path, gated: Gated, progress: Progress) -> None:
    out = folder / "leaks"
    columns = ProblemColumns("prompt", "gold", "id")
    find_leaks_in_file(rows, dict.fromkeys(options.against, ProblemColumns()), out, columns, progress)
    matches = pl.read_parquet(out / "matches.parquet").unique(["row", "against"], keep="first", maintain_order=True)
    lines = [(row["source"], row["source_row"]) for row in read_rows(rows, ["source", "source_row"])]
    for position, against, kind, item in matches.select("row", "against", "kind", "against_id").iter_rows():
        source, line = lines[position - 1]
        gated.violations.append(Violation(Check.LEAK, line, source, f"{kind} of item {item} of {against}"))


def _check_card(data: Path, card: Path | None, gated: Gated) -> None:
    folder = data if data.is_dir() else data.parent
    candidates = [card] if card is not None else [folder / "README.md", folder / "export" / "README.md"]
    path = next((file for file in candidates if file.is_file()), None)
    problem = None
    if path is None:
        problem = f"there is no card: {candidates[0]}"
    else:
        parts = path.read_text(encoding="utf-8").split("---\n", 2)
        head = yaml.safe_load(parts[1]) if len(parts) == 3 and not parts[0].strip() else None
        if not isinstance(head, dict):
            problem = f"{path} has no head in YAML"
        elif not head.get("license"):
            problem = f"{path} states no license"
    if problem is not None:
        gated.violations.append(Violation(Check.CARD, None, str(data), problem))


def junit(gated: Gated) -> bytes:
    """Return the outcome as JUnit's XML: one test for each check."""
    suite = ElementTree.Element(
        "testsuite", name=f"truegold gate {gated.data}", tests=str(len(gated.checks)), failures=str(len(gated.failed))
    )
    for check in gated.checks:
        case = ElementTree.SubElement(suite, "testcase", classname="truegold.gate", name=str(check))
        violations = [violation for violation in gated.violations if violation.check is check]
        lines = [f"{violation.source}:{violation.row or ''}: {violation.message}" for violation in violations]
        more = [f"... and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
        text = visible("\n".join([*lines[:SHOWN], *more]))
        if gated.fails(check):
            message = gated.tally(check)
            ElementTree.SubElement(case, "failure", message=message, type=str(check)).text = text
        elif text:
            ElementTree.SubElement(case, "system-out").text = text
    document: bytes = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def sarif(gated: Gated) -> dict[str, Any]:
    """Return the outcome as SARIF 2.1.0: one result for each violation, an error where its check fails."""
    rules = [{"id": str(check), "shortDescription": {"text": check.description}} for check in gated.checks]
    findings = [_sarif_result(violation, gated) for violation in gated.violations[:SARIF_RESULTS]]
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": {"name": "truegold gate", "rules": rules}}, "results": findings}],
    }


def _sarif_result(violation: Violation, gated: Gated) -> dict[str, Any]:
    region = {"region": {"startLine": violation.row}} if violation.row else {}
    return {
        "ruleId": str(violation.check),
        "ruleIndex": gated.checks.index(violation.check),
        "level": "error" if gated.fails(violation.check) else "note",
        "message": {"text": visible(violation.message)},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": gated.data.as_posix()}, **region}}],
    }
