"""Checks a data set before it is used for training, as continuous integration checks code.

    gate(Path("train.jsonl"), GateOptions(against=("math500",)), NullProgress()).failed          [Check.GOLD, ...]

The set is curated as by `truegold curate`, in a temporary folder. A row violates a check if curation rejects, drops,
flags or repairs the row, or would hold it back. Further checks are for verifiers and tests:

    row with gold "72"          must reject "", "I do not know." and "\\boxed{}" (`empty`)
    row with tests              must reject an empty program and `pass` (`empty`), and assert something (`skipped`)
    row sampled for attacks     must reject gaming responses, which try to get a reward without the answer (`hack`)

A fixed sample of rows suffices for attacks (`Gated.hacked_rows`), because a verifier that accepts a gaming response on
one row accepts it on most rows. Tests of programs are not checked against planted faults, which would take minutes
(`testcases vet`).

Every violation has a check and a kind, which is curation's reason:

    truncated_text: {"sign":"ends with a comma or a hyphen", ...}      check flags, kind truncated_text
    exact_duplicate: {"kept":"train.jsonl:3", ...}                     check dropped, kind exact_duplicate

A check and a kind may each have a bound: the number or share of rows that may violate it. `junit_xml` and `sarif_log`
write the outcomes for machines: CI shows JUnit as tests, and code hosts show SARIF at the lines of files.
"""

from __future__ import annotations

import ast
import hashlib
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import islice, tee
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import orjson
import polars as pl
import yaml

from truegold.pipeline.config.sources import FileSource
from truegold.pipeline.config.stages import (
    CurationConfig,
    DecontaminateConfig,
    EvalSetConfig,
    VerifyGoldConfig,
    VetTestsConfig,
)
from truegold.pipeline.curation.api import run_stages
from truegold.pipeline.curation.plan import CODE_VERIFIER, rows_of, stages_after_ingest
from truegold.pipeline.decontaminate.stage import REASONS as LEAK_REASONS
from truegold.pipeline.export.convert import read_tables, rejects_of, tables_of
from truegold.pipeline.report.reason_docs import explain_reasons
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.running.stage import StageResult
from truegold.pipeline.sources.columns import describe_columns
from truegold.pipeline.sources.data_files import open_file
from truegold.pipeline.sources.presets import choose_layout
from truegold.pipeline.sources.records import LOOK_AHEAD, describe_reasons, look_ahead
from truegold.pipeline.sources.row_builder import MEASURES
from truegold.pipeline.tables.ledger import FLAGS_FILE, LEDGER_FILE, Action
from truegold.pipeline.tables.reasons import UNPAYABLE_REASONS
from truegold.pipeline.tables.rows import Row, count_rows, problem_of, read_rows, write_rows
from truegold.pipeline.text.shown_text import visible
from truegold.verifiers import ConfigError, InputError, Item, Reason, Verdict, judges_solutions, resolve, verify_batch
from truegold.verifiers.audit.made_answers import gaming_cases
from truegold.verifiers.audit.suites.vet_state import VetReason
from truegold.verifiers.code.outcomes import BadSuite
from truegold.verifiers.code.suite.reading import Asserts, Calls, Stdio, Suite, UnitTest, read_suite
from truegold.verifiers.columns import find_column
from truegold.verifiers.gold import all_golds
from truegold.verifiers.running.batch import DEADLINE_S
from truegold.verifiers.user_code import did_you_mean

EMPTY_PROGRAM = "```python\npass\n```"
"""A program that does nothing. A suite that cannot judge it cannot judge any program."""
NOTHING = ("", "I do not know.", "\\boxed{}")
"""Responses without an answer."""
NO_PROGRAM = ("", "```python\npass\n```")
"""Responses without a program."""
MESSAGE_CHARS = 300
"""The maximum number of characters of a violation's message."""


class Check(StrEnum):
    """A check of a gate."""

    description: str
    """A violation of the check, described in a sentence."""

    GOLD = "gold", "Gold does not earn the full score from its own verifier."
    EMPTY = "empty", "A response without an answer earns a reward."
    NULL = "null", "A program that solves nothing passes the tests."
    SKIPPED = "skipped", "The tests test nothing."
    HACK = "hack", "A response that is known to game verifiers earns a reward."
    UNUSABLE = "unusable", "A record cannot become a row."
    LEAK = "leak", "A row is in an evaluation set."
    HELD = "held", "Curation would hold the row back for review."
    FLAGS = "flags", "A rule flags the row, whether that holds it back or only advises."
    DROPPED = "dropped", "Curation would drop the row."
    EDITED = "edited", "Curation would repair damage in the row."
    CARD = "card", "There is no card that states a licence."

    def __new__(cls, name: str, description: str) -> Check:
        check = str.__new__(cls, name)
        check._value_, check.description = name, description
        return check


@dataclass(frozen=True, slots=True)
class Violation:
    """The violation of a check by one row, or by the whole set."""

    check: Check
    row: int | None
    """The row's number in its file; None for the whole set."""
    source: str
    message: str
    """The fault, in one line."""
    kind: str = ""
    """The reason of curation for the violation; empty for checks that only a gate makes."""

    @property
    def row_key(self) -> tuple[str, int | None]:
        """The key that identifies the row: source and number."""
        return self.source, self.row

    @property
    def line(self) -> str:
        """The violation with its location: `train.jsonl:4: truncated_text: ...`."""
        return f"{self.source}:{self.row or ''}: {self.message}"


@dataclass(frozen=True, slots=True)
class Question:
    """A response that a row's verifier has to reject."""

    check: Check
    name: str
    """The name of the response."""
    item: Item

    def violation(self, row: Row, verdict: Verdict) -> Violation | None:
        """Return the violation if the verdict has a score above 0, else None."""
        if not verdict.score:
            return None
        text = f"{self.name} earns {verdict.score:g} ({verdict.reason})"
        return Violation(self.check, row["source_row"], row["source"], text[:MESSAGE_CHARS])


def questions_of(row: Row, hacks: bool) -> Iterator[Question]:
    """Yield the responses to try on a row's verifier. With `hacks`, gaming responses are included."""
    if judges_solutions(resolve(row["verifier"])):
        for text in NO_PROGRAM:
            yield _ask(row, Check.EMPTY, "an empty program", text)
        return
    if row["verifier"] in MEASURES:
        return
    for text in NOTHING:
        yield _ask(row, Check.EMPTY, f"the answer {text!r}", text)
    golds = all_golds(row["gold"], orjson.loads(row["verifier_args"] or "{}")) if hacks else ()
    for case in gaming_cases(golds[0], row["prompt"]) if golds else ():
        # Empty responses are tried above, and a longer text may contain the gold of a word problem.
        if case.response.strip():
            yield _ask(row, Check.HACK, f"{case.name} ({case.response[:60]!r})", case.response)


def _ask(row: Row, check: Check, name: str, response: str) -> Question:
    return Question(check, name, Item(response, row["gold"], row["verifier"], row["verifier_args"], problem_of(row)))


def is_sampled(row: Row, share: float) -> bool:
    """Return whether gaming responses are tried on a row. Rows are sampled by the hash of their ids."""
    return int(hashlib.sha256(row["id"].encode()).hexdigest()[:8], 16) < share * 2**32


def why_nothing_is_tested(row: Row) -> str | None:
    """Return the reason why the tests of a program test nothing, or None if they test something."""
    verifier = resolve(row["verifier"])
    if not judges_solutions(verifier):
        return None
    arguments = orjson.loads(row["verifier_args"] or "{}")
    try:
        suite = read_suite(arguments)
    except BadSuite as error:
        return f"they judge nothing: {error}"[:MESSAGE_CHARS]
    if (why := _why_empty(suite)) is not None or not isinstance(suite.tests, Asserts | UnitTest):
        return why
    verdict = verifier(EMPTY_PROGRAM, None, info=arguments)
    if verdict.reason != Reason.VERIFIER_ERROR:
        return None
    return f"they judge nothing: {verdict.evidence.get('error')}"[:MESSAGE_CHARS]


def _why_empty(suite: Suite) -> str | None:
    """Return the reason why a suite tests nothing: no cases, no assertion or no test method. Else return None."""
    tests = suite.tests
    if isinstance(tests, Stdio | Calls):
        return None if tests.cases else "there are no cases"
    if suite.language != "python":
        return None
    try:
        tree = ast.parse(tests.code)
    except SyntaxError:
        return None
    if isinstance(tests, Asserts):
        has_checks = any(isinstance(node, ast.Assert | ast.Raise | ast.With) for node in ast.walk(tree))
        called = (ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call))
        return None if has_checks or any("assert" in name.lower() for name in called) else "nothing is asserted"
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return None if any(node.name.startswith("test") for node in functions) else "there is no test method"


HACKED_ROWS = 300
"""The approximate number of rows on which gaming responses, some forty a row, are tried."""
BOUNDS: Mapping[str, int | float] = {Check.HELD: 0.05, Check.FLAGS: 0.2, Check.DROPPED: 0.1, Check.EDITED: 0.2}
"""The default bounds on the rows that violate a check: a number of rows, or a share as a float. The bound of other
checks is 0."""
VETTING = VetTestsConfig(mutants=0, runs=2, max_leaked=1.0, max_guess_chance=1.0, max_repeat_s=5.0)
"""The settings for fast checks of programs' tests, which find wrong tests, but not weak tests."""

CHECK_OF_REASON: Mapping[str, Check] = {
    **dict.fromkeys(UNPAYABLE_REASONS, Check.GOLD),
    **dict.fromkeys(LEAK_REASONS.values(), Check.LEAK),
    VetReason.REFERENCE_FAILS: Check.GOLD,
    VetReason.PAID_NULL: Check.NULL,
}
"""Maps some reasons to the check that they violate. Other reasons count for `dropped`, `edited`, `held` or `flags`."""
INNOCENT_EDITS = ("unicode", "whitespace", "stray_dollar", "boilerplate", "multiple_choice", "decimal_comma", "notes")
"""Edits that only normalise a text, and do not repair damage."""

UNREAD = "unread"
"""The rule of SARIF for a set that cannot be read. It is not a check."""
SHOWN = 50
"""The maximum number of rows that a failing test of the JUnit file lists."""
SARIF_RESULTS = 5_000
"""The maximum number of violations in a SARIF file. Code hosts refuse much larger files."""
FINDINGS_A_ROW = 3
"""The maximum number of violations that are reported for a row, since a verifier may accept all forty gaming
responses."""


@dataclass(frozen=True)
class GateOptions:
    """The settings of a gate."""

    fail_on: Sequence[Check] = ()
    """The checks to make, by default all that apply."""
    against: Sequence[str] = ()
    """Evaluation sets, by name or as files."""
    card: Path | None = None
    """The set's card, by default README.md in the folder of the data."""
    bounds: Mapping[str, int | float] = field(default_factory=dict)
    """Bounds that replace the defaults, by check or by kind of violation: a number of rows, or a share as a float.
    Violations of a kind with a bound do not count for their check."""
    source: FileSource = field(default_factory=lambda: FileSource(path="data"))
    """The settings for reading the file; its path is replaced by that of the data."""
    workers: int = 0
    """The number of processes; 0 means one per core."""
    deadline_s: float = DEADLINE_S
    """The timeout of a verdict, in seconds."""


@dataclass
class Gated:
    """The outcome of a gate."""

    data: Path
    rows: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    """The number of rejected records by reason."""
    hacked_rows: int = 0
    """The number of rows on which gaming responses were tried."""
    checks: list[Check] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    bounds: dict[str, int | float] = field(default_factory=dict)
    """The bounds by check or kind, as in `GateOptions`. Without a bound, no row may violate a check."""
    error: InputError | None = None
    """The error if the data could not be read and nothing was checked, else None."""

    def of_check(self, check: Check) -> list[Violation]:
        """Return the violations of a check. `flags` includes the flags of rows that are held back."""
        checks = (Check.HELD, Check.FLAGS) if check is Check.FLAGS else (check,)
        return [violation for violation in self.violations if violation.check in checks]

    def count(self, check: Check) -> int:
        """Return the number of rows that violate a check."""
        return len({violation.row_key for violation in self.of_check(check)})

    def errors(self, check: Check) -> list[Violation]:
        """Return the violations of a check that exceed the bound of the check, or of their kind."""
        by_bound: dict[str, list[Violation]] = {}
        for violation in self.of_check(check):
            by_bound.setdefault(violation.kind if violation.kind in self.bounds else str(check), []).append(violation)
        return [
            violation
            for name, violations in by_bound.items()
            if len({violation.row_key for violation in violations}) > self._allowed(name, check)
            for violation in violations
        ]

    def fails(self, check: Check) -> bool:
        """Return whether the violations of a check exceed its bound, or the bound of a kind."""
        return bool(self.errors(check))

    def _allowed(self, name: str, check: Check) -> float:
        bound = self.bounds.get(name, 0)
        return bound * max(self.judged(check), 1) if isinstance(bound, float) else bound

    def judged(self, check: Check) -> int:
        """Return the number of rows that were checked; for `unusable`, the number of records."""
        return self.rows + (self.rejected.total() if check is Check.UNUSABLE else 0)

    def allowance(self, check: Check) -> str:
        """Return the bound of a check in words: `2 rows may`, `5 % may`; empty for a bound of 0."""
        bound = self.bounds.get(check, 0)
        if isinstance(bound, float):
            return f"{100 * bound:g} % may"
        if bound == 0:
            return ""
        return f"{bound:,} row{'s' if bound > 1 else ''} may"

    def tally(self, check: Check) -> str:
        """Return the violations of a check in words: `36 of 57 records: 30 gold_not_text, 6 system_message`."""
        unit = "records" if check is Check.UNUSABLE else "rows"
        kinds = {(violation.row_key, violation.kind) for violation in self.of_check(check)}
        reasons = describe_reasons(Counter(kind for _, kind in kinds if kind))
        return f"{self.count(check):,} of {self.judged(check):,} {unit}: {reasons or check.description}"

    @property
    def failed(self) -> list[Check]:
        """The failed checks."""
        return [check for check in self.checks if self.fails(check)]


def parse_bound(text: str) -> tuple[str, int | float]:
    """Return the name and the bound in a text: a number of rows (`gold=3`), or a share (`gold=0.01` or `gold=1%`).

    Raises ConfigError for any other text, and for a name that is neither a check nor a reason.
    """
    name, _, value = text.partition("=")
    if value and name not in (known := {*map(str, Check), *explain_reasons()}):
        near = did_you_mean(name, known) or f"Checks: {', '.join(Check)}; reasons are in docs/reference/reasons.md."
        raise ConfigError(f"--max {text}: there is no check or reason {name!r}.", near)
    hint = "Give a number of rows (--max gold=3), or a share of the rows (--max gold=0.01, --max gold=1%)."
    try:
        if value.isdecimal():
            return name, int(value)
        share = float(value.removesuffix("%")) / (100 if value.endswith("%") else 1)
    except ValueError:
        raise ConfigError(f"--max {text} is not a bound.", hint) from None
    if not 0 <= share <= 1:
        raise ConfigError(f"--max {text} is not a bound: a share is at most 1 (100%).", hint)
    return name, share


def why_no_problems(data: Path, source: FileSource) -> str | None:
    """Return the reason why a file is not a set of problems: its records have no column of prompts. Else return None.

    A folder, a file without records, and a file whose columns are named in `source` count as sets. Raises InputError if
    the file cannot be read.
    """
    if data.is_dir() or source.preset is not None or source.columns.prompt is not None:
        return None
    opened = open_file(data, source.format, source.max_row_bytes)
    samples = [record.values for record in look_ahead(islice(opened.records, LOOK_AHEAD), lambda reject: None)]
    if not samples or find_column("prompt", samples) is not None:
        return None
    try:
        choose_layout(source, opened.location, samples)
    except InputError:
        return f"it has no column of prompts. Its columns: {describe_columns(samples)}"
    return None


def gate(data: Path, options: GateOptions, progress: Progress) -> Gated:
    """Run the checks on a data set. Raises InputError if the data cannot be read."""
    gated = Gated(data, checks=_checks(options), bounds={**BOUNDS, **options.bounds})
    violations = gated.violations
    with tempfile.TemporaryDirectory(prefix="truegold-") as scratch:
        rows = _read(data, options, Path(scratch), gated, progress)
        gated.rows = count_rows(rows)
        if set(gated.checks) - {Check.EMPTY, Check.HACK, Check.SKIPPED, Check.UNUSABLE, Check.CARD}:
            violations += _curate(rows, options, Path(scratch) / "run", progress)
        if asked_checks := {Check.EMPTY, Check.HACK} & set(gated.checks):
            _ask_verifiers(rows, options, asked_checks, gated, progress)
        if Check.SKIPPED in gated.checks:
            for row in read_rows(rows):
                if (why := why_nothing_is_tested(row)) is not None:
                    violations.append(
                        Violation(Check.SKIPPED, row["source_row"], row["source"], why, str(Check.SKIPPED))
                    )
    if Check.CARD in gated.checks and (problem := _card_problem(data, options.card)) is not None:
        violations.append(Violation(Check.CARD, None, str(data), problem))
    asked = {*gated.checks, *((Check.HELD,) if Check.FLAGS in gated.checks else ())}
    gated.violations = [violation for violation in violations if violation.check in asked]
    return gated


def _checks(options: GateOptions) -> list[Check]:
    if options.fail_on:
        return list(dict.fromkeys(options.fail_on))
    needs = {Check.LEAK: bool(options.against), Check.CARD: options.card is not None}
    return [check for check in Check if needs.get(check, True)]


def _read(data: Path, options: GateOptions, folder: Path, gated: Gated, progress: Progress) -> Path:
    """Return the table of rows, and add rejected records as violations to `gated`."""
    source = options.source.model_copy(update={"path": str(data)})
    tables, gated.rejected = tables_of(data, source, folder, progress)
    for rejects in rejects_of(folder):
        for line in rejects.read_bytes().splitlines():
            reject = orjson.loads(line)
            gated.violations.append(
                _violation(Check.UNUSABLE, reject["source_row"], data.name, reject["reason"], reject["detail"])
            )
    path = folder / "rows.parquet"
    # The rows of a run have additional columns. The checks need only the canonical columns.
    write_rows(path, map(_canonical, read_tables(tables)))
    return path


def _canonical(row: Row) -> Mapping[str, object]:
    return {name: value for name, value in row.items() if name in Row.__required_keys__}


def _violation(check: Check, row: int | None, source: str, kind: str, text: str) -> Violation:
    return Violation(check, row, source, f"{kind}: {text}"[:MESSAGE_CHARS], kind)


def _curate(rows: Path, options: GateOptions, run_dir: Path, progress: Progress) -> Iterator[Violation]:
    sets = tuple(EvalSetConfig(set=name) for name in options.against)
    config = CurationConfig(
        data=options.source,
        decontaminate=DecontaminateConfig(against=sets) if sets else None,
        verify_gold=VerifyGoldConfig(workers=options.workers, deadline_s=options.deadline_s),
        vet_tests=VETTING.model_copy(update={"workers": options.workers}),
    )
    holds_code = any(row["verifier"] == CODE_VERIFIER for row in read_rows(rows, ["verifier"]))
    stages = [
        # Check golds, tests and texts of all rows, including rows that are dropped as leaks or copies.
        replace(stage, inputs=rows_of("clean")) if stage.name == "verify_gold" else stage
        for stage in stages_after_ingest(config, {"rows": rows}, vets=holds_code)
    ]
    finished = run_stages(stages, run_dir, progress)
    yield from _flagged(finished)
    for result in finished:
        if (result.path / LEDGER_FILE).exists() and result.name != "settle":
            yield from _recorded(result.path / LEDGER_FILE)


def _flagged(finished: Sequence[StageResult]) -> Iterator[Violation]:
    (path,) = (result.path / FLAGS_FILE for result in finished if result.name == "flag")
    flags = pl.read_parquet(path, columns=["source", "source_row", "reason", "blocks", "evidence"])
    for source, row, reason, blocks, evidence in flags.sort("source_row", maintain_order=True).iter_rows():
        check = CHECK_OF_REASON.get(reason, Check.HELD if blocks else Check.FLAGS)
        yield _violation(check, row, source, reason, evidence)


def _recorded(ledger: Path) -> Iterator[Violation]:
    """Yield a violation for each drop and edit of a stage, except for the edits in INNOCENT_EDITS."""
    records = pl.read_parquet(ledger, columns=["source", "source_row", "action", "reason", "evidence"])
    for source, row, action, reason, evidence in records.iter_rows():
        if action == Action.DROP:
            yield _violation(CHECK_OF_REASON.get(reason, Check.DROPPED), row, source, reason, evidence)
        elif action == Action.EDIT and reason not in INNOCENT_EDITS:
            yield _violation(Check.EDITED, row, source, reason, evidence)


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


def _card_problem(data: Path, card: Path | None) -> str | None:
    folder = data if data.is_dir() else data.parent
    candidates = [card] if card is not None else [folder / "README.md", folder / "export" / "README.md"]
    path = next((file for file in candidates if file.is_file()), None)
    if path is None:
        return f"there is no card: {candidates[0]}"
    parts = path.read_text(encoding="utf-8").split("---\n", 2)
    head = yaml.safe_load(parts[1]) if len(parts) == 3 and not parts[0].strip() else None
    if not isinstance(head, dict):
        return f"{path} has no YAML header"
    return None if head.get("license") else f"{path} states no license"


def junit_xml(outcomes: Sequence[Gated]) -> bytes:
    """Return the outcomes as JUnit XML: a suite for each set, with a test for each check.

    A set that could not be read is a suite with a single test `read` that has an error.
    """
    suites = ElementTree.Element("testsuites", name="truegold gate")
    for gated in outcomes:
        tests = 1 if gated.error is not None else len(gated.checks)
        counts = {"tests": str(tests), "failures": str(len(gated.failed)), "errors": str(int(gated.error is not None))}
        suite = ElementTree.SubElement(suites, "testsuite", {"name": str(gated.data), **counts})
        if gated.error is not None:
            case = ElementTree.SubElement(suite, "testcase", classname=f"truegold.gate.{gated.data.name}", name="read")
            ElementTree.SubElement(case, "error", message=visible(str(gated.error)), type=UNREAD)
            continue
        for check in gated.checks:
            _add_test(suite, gated, check)
    document: bytes = ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _add_test(suite: ElementTree.Element, gated: Gated, check: Check) -> None:
    case = ElementTree.SubElement(suite, "testcase", classname=f"truegold.gate.{gated.data.name}", name=str(check))
    lines = [violation.line for violation in gated.of_check(check)]
    more = [f"... and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
    text = visible("\n".join([*lines[:SHOWN], *more]))
    if gated.fails(check):
        failure = ElementTree.SubElement(case, "failure", message=gated.tally(check), type=str(check))
        failure.text = text
    elif text:
        ElementTree.SubElement(case, "system-out").text = text


def sarif_log(outcomes: Sequence[Gated]) -> dict[str, Any]:
    """Return the outcomes as SARIF 2.1.0: a result for each violation, with level `error` if its check fails.

    A set that could not be read is a single result of the rule `unread`.
    """
    described = {**{str(check): check.description for check in Check}, UNREAD: "The file cannot be read as a data set."}
    rules = [{"id": name, "shortDescription": {"text": description}} for name, description in described.items()]
    findings = [finding for gated in outcomes for finding in _sarif_results(gated)]
    findings.sort(key=lambda finding: finding["level"])  # Errors come first, since only SARIF_RESULTS are written.
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": {"name": "truegold gate", "rules": rules}}, "results": findings[:SARIF_RESULTS]}],
    }


def _sarif_results(gated: Gated) -> Iterator[dict[str, Any]]:
    artifact = {"artifactLocation": {"uri": gated.data.as_posix()}}
    if gated.error is not None:
        yield {
            "ruleId": UNREAD,
            "ruleIndex": len(Check),
            "level": "error",
            "message": {"text": visible(str(gated.error))},
            "locations": [{"physicalLocation": artifact}],
        }
    errors = {violation for check in gated.checks for violation in gated.errors(check)}
    for violation in gated.violations:
        region = {"region": {"startLine": violation.row}} if violation.row else {}
        location = {"physicalLocation": {**artifact, **region}}
        yield {
            "ruleId": str(violation.check),
            "ruleIndex": list(Check).index(violation.check),
            "level": "error" if violation in errors else "note",
            "message": {"text": visible(violation.message)},
            "locations": [location],
        }
