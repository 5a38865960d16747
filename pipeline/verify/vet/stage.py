"""Stage `vet_tests`: are the tests of code rows fit to compute a reward with?

    the worked solution fails, because any of several answers is right   ->  drop needs_checker
    3 of 20 inputs are cut off                                           ->  edit truncated_cases: 17 cases go on
    of 30 planted faults the tests catch 12                              ->  flag low_kill_rate, the row stays

Input: `rows`, and `flags`, those of `verify_gold`. Only rows of the verifier `code` are looked at; the others go on as
they are. `truegold.verifiers.audit.suites` says what is looked for and what follows. A repaired row keeps its id. The
ledger names the gravest of several reasons to drop a row, and the others in the evidence. Flags do not hold a row back,
except `references_disagree`, and `paid_null` where cases are proposed, which a person may add in review; those of
`verify_gold` on a row whose solution passes after the repair are taken back (`keep reference_passes`). With `mend` the
proposed cases are added here (`edit cases_added`). A row that could not be vetted because the sandbox failed stays,
flagged `not_vetted`.
suites.parquet has one row for each suite, with everything that was measured; what repeats itself in a source's prompts
is a fact of the stage (`SourceFindings`).

Rows are vetted in threads, each program in a process of the sandbox; what is done stays done when the stage is killed.

A row brings programs along to vet its tests with: its solution, and those that its source put into `meta` (APPS, TACO,
CodeContests). Everything else in there is left alone.

    solution "print(1)", meta {"solutions": ["print(1)", "print(2 - 1)"]}     references: both
    meta {"solutions": {"language": [2, 3], "solution": ["int main ...", "print(1)"]}}   references: the one in Python 3
    meta {"incorrect_solutions": {...}}                                       wrong: those in Python 3

The result of vetting one row is kept on disk as JSON while the stage runs, so that no row is vetted twice. A line that
a kill cut short is left out when the file is read again:

    {"key": ["9f0c...", "train.jsonl", 17], "outcome": "repair", "findings": [...], "repaired": "{...}", ...}

"""

from __future__ import annotations

import dataclasses
import json
import shutil
import sys
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from truegold.pipeline.config.stages import VetTestsConfig
from truegold.pipeline.running.parts import Part, PartWork, run_here, run_parts, split_inputs, sum_reports
from truegold.pipeline.running.progress import Progress, paced
from truegold.pipeline.running.stage import StageReport, stage_function
from truegold.pipeline.sources.presets_code import programs_in_python3
from truegold.pipeline.tables.ledger import (
    FLAG_SCHEMA,
    FLAGS_FILE,
    LEDGER_FILE,
    Action,
    FlagRecord,
    Ledger,
    LedgerRecord,
    flag_record,
)
from truegold.pipeline.tables.losses import DROPPED, LOSSES, Cause, LossCount
from truegold.pipeline.tables.rows import (
    ROW_SCHEMA,
    Row,
    RowKey,
    TableWriter,
    count_rows,
    dump_json,
    group_by_row,
    read_batches,
    read_rows,
    read_table,
    row_key,
    write_rows,
)
from truegold.pipeline.verify.vet.suite_report import SourceFindings
from truegold.verifiers.audit.suites import PROPOSED, Severity, SuiteOutcome, VetOptions, VetReason, Vetting, vet
from truegold.verifiers.code.response_program import worked_program
from truegold.verifiers.sandbox import close_all
from truegold.verifiers.sandbox.child_process import usable_cores
from truegold.verifiers.sandbox.execution import SandboxError
from truegold.verifiers.strict_json import parse_structure

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
"""The names that sources have for the identifier of a problem, the likeliest first."""

_NOT_IN_TABLE = ("key", "repaired")


VERIFIER = "code"
ROWS_FILE = "rows.parquet"
SUITES_FILE = "suites.parquet"
DETECTOR = "vet_tests"

SHOWN_CHARS = 200
"""The evidence of a heavy loss is cut here."""
LEDGER_CHARS = 20_000
"""The ledger keeps this much of the tests before and after a repair."""

AHEAD = 4
"""The rows that each thread may have waiting, which bounds memory."""

Pending = tuple[Row, "Future[dict[str, Any]] | dict[str, Any] | None"]
"""A row, and its record: to come, from an earlier run, or none if the row is not looked at."""


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
        if (offset := self._offsets.get(row_key(row))) is None:
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


@stage_function(version=7, judges="rows", tunable=("workers",), aims=("workers",))
def vet_tests(inputs: Mapping[str, Path], config: VetTestsConfig, out_dir: Path, progress: Progress) -> StageReport:
    """Vet the tests of every code row: drop, repair or flag them. Done part by part, one after the other."""
    parts = split_inputs(inputs, out_dir, "flags")
    reports = run_parts(PartWork(f"{__name__}:vet_part", config), parts, progress, "vetting tests", run_here)
    return sum_reports(reports, _gather_facts(inputs["rows"], out_dir))


def vet_part(part: Part, config: VetTestsConfig, shared: None, progress: Progress) -> StageReport:
    """Vet the tests of one part; what is done of it stays done when that is killed."""
    flags = read_table(part.inputs["flags"], FlagRecord) if "flags" in part.inputs else iter(())
    total = part.count_rows()
    if not _has_code(part.inputs["rows"]):
        shutil.copyfile(part.inputs["rows"], part.output(ROWS_FILE))
        with Ledger(part.output, DETECTOR), TableWriter(part.output(SUITES_FILE), SUITES_SCHEMA):
            write_rows(part.output(FLAGS_FILE), flags, FLAG_SCHEMA)
        return StageReport(total, total)
    with ExitStack() as stack:
        output = _Output(part, group_by_row(flags), stack)
        finished = stack.enter_context(Finished(part.scratch / "vetted.jsonl"))
        rows = paced(read_rows(part.inputs["rows"]), progress, "vetting tests")
        for row, record in _vet_rows(rows, config, finished):
            output.write(row, record)
    return StageReport(total, output.kept, output.counts)


def _gather_facts(rows: Path, out_dir: Path) -> dict[str, Any]:
    """Return the number of suites, their outcomes, their mean kill rate, and what was found of sources and losses: what
    the tables of all parts say. Nothing if no row has tests."""
    suites = read_table(out_dir / SUITES_FILE, dict, ["outcome", "kill_rate", "reasons"])
    vetted = (row for row in read_rows(rows, ["source", "prompt", "verifier"]) if row["verifier"] == VERIFIER)
    outcomes: Counter[str] = Counter()
    rates: list[float] = []
    sources = SourceFindings()
    for row, suite in zip(vetted, suites, strict=True):
        outcomes[suite["outcome"]] += 1
        if suite["kill_rate"] is not None:
            rates.append(suite["kill_rate"])
        sources.add(row["source"], row["prompt"], suite["reasons"])
    if not outcomes:
        return {}
    lost: LossCount[LedgerRecord] = LossCount()
    for record in read_table(out_dir / LEDGER_FILE, LedgerRecord):
        if record["action"] == Action.DROP:
            lost.add(record["reason"], record)
    mean = round(sum(rates) / len(rates), 4) if rates else None
    facts: dict[str, Any] = {"suites": outcomes.total(), "outcomes": dict(outcomes), "mean_kill_rate": mean}
    heavy = lost.heavy(DROPPED, count_rows(rows), _describe_drop, _explain_drop)
    further = {"sources": sources.facts(), LOSSES: heavy}
    return facts | {name: value for name, value in further.items() if value}


def _describe_drop(lost: LedgerRecord) -> str:
    return f"{lost['source']}:{lost['source_row']}: {lost['evidence']:.{SHOWN_CHARS}}"


def _explain_drop(reason: str, lost: list[LedgerRecord]) -> Cause:
    suggestion = orjson.loads(lost[0]["evidence"]).get("suggestion", "")
    advice = f"For each row: {suggestion}." if suggestion else ""
    return Cause(
        advice, f"`truegold testcases vet` shows every suite; --set vet_tests.enabled=false keeps {reason} rows."
    )


def _has_code(path: Path) -> bool:
    return any(pc.any(pc.equal(batch["verifier"], VERIFIER)).as_py() for batch in read_batches(path, ["verifier"]))


def _vet_rows(
    rows: Iterator[Row], config: VetTestsConfig, finished: Finished
) -> Iterator[tuple[Row, dict[str, Any] | None]]:
    """Yield each row, in order, with its record; None for rows that are not looked at."""
    workers = config.workers or usable_cores()
    shared = config.model_dump(include={field.name for field in dataclasses.fields(VetOptions)} - {"python"})
    options = VetOptions(**shared, python=config.python or sys.executable)
    pool = ThreadPoolExecutor(workers, thread_name_prefix="vet")
    pending: deque[Pending] = deque()
    try:
        for row in rows:
            record = finished.get(row) if row["verifier"] == VERIFIER else None
            if row["verifier"] != VERIFIER or record is not None:
                pending.append((row, record))
            else:
                pending.append((row, pool.submit(_vet_row, row, config.programs, options)))
            if len(pending) > workers * AHEAD:
                yield _await_record(pending.popleft(), finished)
        while pending:
            yield _await_record(pending.popleft(), finished)
    except BaseException:
        pool.shutdown(cancel_futures=True)
        close_all()
        raise
    pool.shutdown()


def _await_record(pending: Pending, finished: Finished) -> tuple[Row, dict[str, Any] | None]:
    row, record = pending
    if isinstance(record, Future):
        record = record.result()
        if record["reasons"] != [NOT_VETTED]:
            finished.add(record)
    return row, record


def _vet_row(row: Row, programs: int, options: VetOptions) -> dict[str, Any]:
    references, wrong = programs_of(row, programs)
    try:
        vetting = vet(
            orjson.loads(row["verifier_args"]),
            prompt=row["prompt"],
            references=references,
            wrong=wrong,
            options=options,
        )
    except SandboxError as error:
        return make_failed_record(row, str(error))
    return make_record(row, vetting)


def programs_of(row: Row, limit: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return up to `limit` worked solutions, the row's first, and up to `limit` wrong programs, all without
    repetitions."""
    meta = json.loads(row["meta"] or "{}")
    references = [row["solution"] or "", *_programs(meta.get("solutions"))]
    return _first_distinct(references, limit), _first_distinct(_programs(meta.get("incorrect_solutions")), limit)


def _programs(value: Any) -> list[str]:
    programs = parse_structure(value)
    if isinstance(programs, Mapping):
        programs = programs_in_python3(programs)
    return [text for text in programs if isinstance(text, str)] if isinstance(programs, list) else []


def _first_distinct(solutions: list[str], limit: int) -> tuple[str, ...]:
    programs = (worked_program(text).strip("\n") for text in solutions if text.strip())
    return tuple(dict.fromkeys(programs))[:limit]


def _holds_back(finding: Mapping[str, Any]) -> bool:
    """Return whether a flag holds its row back for review: a right program may earn nothing, or one that solves nothing
    earns something until the proposed cases are added."""
    is_mendable = finding["reason"] == VetReason.PAID_NULL and PROPOSED in finding["evidence"]
    return is_mendable or finding["reason"] == VetReason.REFERENCES_DISAGREE


class _Output:
    """Writes the tables of a part."""

    def __init__(self, part: Part, flags_by_row: dict[RowKey, list[FlagRecord]], stack: ExitStack) -> None:
        self.kept = 0
        """The rows that go on."""
        self._earlier = flags_by_row
        self._ledger = stack.enter_context(Ledger(part.output, DETECTOR))
        self._rows = stack.enter_context(TableWriter(part.output(ROWS_FILE), ROW_SCHEMA))
        self._flags = stack.enter_context(TableWriter(part.output(FLAGS_FILE), FLAG_SCHEMA))
        self._suites = stack.enter_context(TableWriter(part.output(SUITES_FILE), SUITES_SCHEMA))

    @property
    def counts(self) -> dict[str, int]:
        """Rows by outcome, and the reason: `drop:needs_checker`."""
        return dict(self._ledger.counts)

    def write(self, row: Row, record: Mapping[str, Any] | None) -> None:
        """Write a row and everything that follows from its record."""
        earlier = self._earlier.get(row_key(row), [])
        if record is not None:
            self._suites.write(suite_row(row, record))
            if record["outcome"] == SuiteOutcome.DROP:
                self._drop(row, record)
                return
            row = self._repair(row, record)
            earlier = self._withdraw_stale_flags(row, record, earlier)
            self._flag(row, record)
        self._rows.write(row)
        self.kept += 1
        for flag in earlier:
            self._flags.write(flag)

    def _drop(self, row: Row, record: Mapping[str, Any]) -> None:
        first = next(finding for finding in record["findings"] if finding["severity"] == Severity.DROP)
        also = [reason for reason in record["reasons"] if reason != first["reason"]]
        evidence = {**first["evidence"], **({"also": also} if also else {})}
        if first["suggestion"]:
            evidence["suggestion"] = first["suggestion"]
        self._ledger.drop(row, first["reason"], **evidence)

    def _repair(self, row: Row, record: Mapping[str, Any]) -> Row:
        if (after := record["repaired"]) is None:
            return row
        before = row["verifier_args"]
        for finding in record["findings"]:
            if finding["severity"] == Severity.REPAIR:
                evidence = {"column": "verifier_args", **finding["evidence"]}
                self._ledger.edit(row, finding["reason"], before[:LEDGER_CHARS], after[:LEDGER_CHARS], **evidence)
        return {**row, "verifier_args": after}

    def _withdraw_stale_flags(self, row: Row, record: Mapping[str, Any], earlier: list[FlagRecord]) -> list[FlagRecord]:
        """Return the earlier flags that still hold; those that do not are taken back in the ledger."""
        if not record.get("references") or record["repaired"] is None:
            return earlier
        stale = [flag for flag in earlier if flag["detector"] == "verify_gold"]
        for flag in stale:
            self._ledger.keep(row, "reference_passes", flag=flag["reason"])
        return [flag for flag in earlier if flag not in stale]

    def _flag(self, row: Row, record: Mapping[str, Any]) -> None:
        for finding in record["findings"]:
            if finding["severity"] != Severity.FLAG:
                continue
            self._ledger.flag(row, finding["reason"], **finding["evidence"])
            self._flags.write(
                flag_record(
                    row,
                    finding["reason"],
                    detector=DETECTOR,
                    evidence=finding["evidence"],
                    blocks=_holds_back(finding),
                    suggestion=finding["suggestion"],
                )
            )
