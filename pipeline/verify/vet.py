"""Stage `vet_tests`: checks whether the tests of programs can serve as a reward, and reports on the result.

    finding                                                               consequence
    the worked solution fails, because any of several answers is right    drop needs_checker
    3 of 20 inputs are cut off                                            edit truncated_cases: 17 cases remain
    the tests catch 12 of 30 planted faults                               flag low_kill_rate, the row is kept

Only rows with the verifier `code` are vetted; others pass unchanged. The tests of a row are called a suite.
`truegold.verifiers.audit.suites` explains the checks, and `suites.parquet` has their results for each suite. If several
reasons drop a row, the ledger names the gravest one, and its evidence names the others. A repaired row keeps its id.

The flag `references_disagree` holds a row back for review. So does `paid_null` (a program that solves nothing passes)
if a reviewer can add proposed test cases. With the setting `mend`, these cases are added at once (`edit cases_added`).
If the solution passes after a repair, earlier flags of `verify_gold` on the row are removed (`keep reference_passes`).
If the sandbox fails, the row is kept and flagged `not_vetted`.

The tests are run on the row's solution and on programs that its source put into `meta` (APPS, TACO, CodeContests):

    solution "print(1)", meta {"solutions": ["print(1)", "print(2 - 1)"]}     references: both programs
    meta {"solutions": {"language": [2, 3], "solution": ["int main ...", "print(1)"]}}   references: "print(1)"
    meta {"incorrect_solutions": {...}}                                       wrong programs: those in Python 3

Rows are vetted in threads, and each program runs in a process of the sandbox. The record of each finished row is stored
on disk. A run that was killed continues after the last finished row:

    {"key": ["9f0c...", "train.jsonl", 17], "outcome": "repair", "findings": [...], "repaired": "{...}", ...}

The report on `suites.parquet` is printed, or written as Markdown. It counts outcomes and reasons, and names the weakest
suites. The kill rate of a suite is the share of planted faults that its tests catch:

164 suites: 163 keep, 1 drop
low_kill_rate 15, leaked_cases 22, memorizable 3, paid_null 1
humaneval.jsonl:100   kill rate 0.37 (11 of 30)   line 11: if value.count('.') == 1:  ->  ...

`SourceFindings` finds lines that many prompts of a source share, and prompts that give hints:

58 of 60 prompts of a.jsonl have the line 'Notes: read from standard input.'
12 of 60 prompts of a.jsonl say how they are solved or how hard they are (categories, tags, difficulty)
"""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import sys
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
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
from truegold.verifiers.audit.suites import PROPOSED, Severity, SuiteOutcome, VetOptions, VetReason, Vetting, vet
from truegold.verifiers.code.response_program import worked_program
from truegold.verifiers.sandbox import close_all
from truegold.verifiers.sandbox.child_process import usable_cores
from truegold.verifiers.sandbox.execution import SandboxError
from truegold.verifiers.strict_json import parse_structure

MAX_WEAKEST = 10
"""The maximum number of weakest suites in the report."""
MAX_SURVIVORS = 5
"""The maximum number of missed faults that the page shows for each suite."""
EVIDENCE_CHARS = 300
"""The maximum number of characters of evidence on the page."""
MAX_LISTED = 500
"""The maximum number of suites whose findings the page lists. The table has all suites."""

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
    """Return the weakest suites. Suites that a program which solves nothing passes come first, then those that miss
    faults."""
    weak = [suite for suite in suites if suite["paid"] or (suite["kill_rate"] is not None and suite["kill_rate"] < 1)]
    return sorted(weak, key=lambda suite: (not suite["paid"], suite["kill_rate"] or 0.0))[:MAX_WEAKEST]


def markdown(title: str, suites: Sequence[SuiteRow]) -> str:
    """Return the report as Markdown. `title` names the data."""
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
    """Return an input that shows each missed fault, with the expected and the wrong output, by fault."""
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
    line = " ".join(text.split())
    return f"`` {line.replace('``', '` `')} ``"


def _escape(text: str) -> str:
    return "".join(f"\\{char}" if char in "\\`*_{}[]<>#|$" else char for char in " ".join(text.split()))


MIN_PROMPTS = 5
"""A line is boilerplate if at least MIN_PROMPTS prompts of a source and at least the share MIN_SHARE of them have
it."""
MIN_SHARE = 0.5
MIN_LINE_CHARS = 12
"""Lines with fewer characters are not boilerplate: they are headings such as `Input`."""
MAX_LINES = 5
"""The maximum number of lines of boilerplate that are listed."""
MAX_PROMPT_LINES = 500
MAX_KNOWN_LINES = 200_000
"""The maximum number of different lines that are counted. It limits memory."""

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
        """Count a prompt. `reasons` are the reasons of the findings about its suite."""
        counted = self._sources[source]
        counted.prompts += 1
        counted.memorizable += str(VetReason.MEMORIZABLE) in reasons
        counted.hints += _HINT.search(prompt) is not None
        lines = {" ".join(line.split()) for line in prompt.split("\n", MAX_PROMPT_LINES)[:MAX_PROMPT_LINES]}
        for line in lines:
            if len(line) >= MIN_LINE_CHARS and (line in counted.lines or len(counted.lines) < MAX_KNOWN_LINES):
                counted.lines[line] += 1

    def facts(self) -> Mapping[str, dict[str, Any]]:
        """Return the findings about each source. Sources without findings are left out."""
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


NOT_VETTED = "not_vetted"
"""The flag on a row whose tests could not be vetted, because the sandbox failed."""

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
"""Columns that may have the source's id of a problem, the most likely first."""

_NOT_IN_TABLE = ("key", "repaired")

VERIFIER = "code"
ROWS_FILE = "rows.parquet"
SUITES_FILE = "suites.parquet"
DETECTOR = "vet_tests"

SHOWN_CHARS = 200
"""The maximum number of characters that are shown of the evidence of a frequent drop."""
LEDGER_CHARS = 20_000
"""The maximum number of characters of tests that the ledger shows before and after a repair."""

AHEAD = 4
"""The maximum number of waiting rows for each thread. It limits memory."""

Pending = tuple[Row, "Future[dict[str, Any]] | dict[str, Any] | None"]
"""A row with its record: a future of the record, the record of an earlier attempt, or None if the row is not vetted."""


def make_record(row: Row, vetting: Vetting) -> dict[str, Any]:
    """Return the record of a vetted row."""
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
    meta = orjson.loads(row["meta"] or "{}")
    source_id = next((str(meta[name]) for name in _ID_NAMES if isinstance(meta.get(name), str | int)), None)
    named = {"source_id": source_id, "type": kind}
    return {**identity, **values, **named, "findings": dump_json(record["findings"])}


class Finished:
    """A context manager for the file with the records of finished rows."""

    def __init__(self, path: Path) -> None:
        path.touch()
        self._offsets = dict(_read_offsets(path))
        self._records = path.open("rb")
        self._file = path.open("ab")
        self._file.write(b"\n")  # End a line that a kill has cut.

    def get(self, row: Row) -> dict[str, Any] | None:
        """Return the row's record from an earlier attempt, or None."""
        if (offset := self._offsets.get(row_key(row))) is None:
            return None
        self._records.seek(offset)
        record: dict[str, Any] = orjson.loads(self._records.readline())
        return record

    def add(self, record: Mapping[str, Any]) -> None:
        """Append a record. It survives if this process is killed."""
        self._file.write(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))
        self._file.flush()

    def __enter__(self) -> Finished:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._file.close()
        self._records.close()


def _read_offsets(path: Path) -> Iterator[tuple[RowKey, int]]:
    """Yield the key of each complete record, and the offset of its first byte."""
    offset = 0
    with path.open("rb") as file:
        for line in file:
            if len(line) > 1 and line.endswith(b"\n"):
                with suppress(orjson.JSONDecodeError):  # A kill has cut the line.
                    yield tuple(orjson.loads(line)["key"]), offset
            offset += len(line)


@stage_function(version=7, judges="rows", tunable=("workers",), aims=("workers",))
def vet_tests(inputs: Mapping[str, Path], config: VetTestsConfig, out_dir: Path, progress: Progress) -> StageReport:
    """Vet the tests of every code row, and drop, repair or flag rows. Parts are processed one after the other."""
    parts = split_inputs(inputs, out_dir, "flags")
    reports = run_parts(PartWork(f"{__name__}:vet_part", config), parts, progress, "vetting tests", run_here)
    return sum_reports(reports, _gather_facts(inputs["rows"], out_dir))


def vet_part(part: Part, config: VetTestsConfig, shared: None, progress: Progress) -> StageReport:
    """Vet the tests of one part. Rows with a stored record are not vetted again."""
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
    """Return facts about all parts: outcomes, the mean kill rate, findings about sources, and frequent drops. The dict
    is empty if no row has tests."""
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
    """Yield each row in order with its record, or with None if it is not vetted."""
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
    """Return at most `limit` worked solutions, the row's own first, and at most `limit` wrong programs."""
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
    """Return True if a finding holds its row back: `references_disagree`, or `paid_null` with proposed cases."""
    is_mendable = finding["reason"] == VetReason.PAID_NULL and PROPOSED in finding["evidence"]
    return is_mendable or finding["reason"] == VetReason.REFERENCES_DISAGREE


class _Output:
    """Writes the tables of a part."""

    def __init__(self, part: Part, flags_by_row: dict[RowKey, list[FlagRecord]], stack: ExitStack) -> None:
        self.kept = 0
        """The number of rows that were not dropped."""
        self._earlier = flags_by_row
        self._ledger = stack.enter_context(Ledger(part.output, DETECTOR))
        self._rows = stack.enter_context(TableWriter(part.output(ROWS_FILE), ROW_SCHEMA))
        self._flags = stack.enter_context(TableWriter(part.output(FLAGS_FILE), FLAG_SCHEMA))
        self._suites = stack.enter_context(TableWriter(part.output(SUITES_FILE), SUITES_SCHEMA))

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of rows by outcome and reason: `drop:needs_checker`."""
        return dict(self._ledger.counts)

    def write(self, row: Row, record: Mapping[str, Any] | None) -> None:
        """Write a row and the consequences of its record."""
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
        """Return the earlier flags that are still valid. The ledger records the removal of the others."""
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
