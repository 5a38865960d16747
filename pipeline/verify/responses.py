r"""Judges a whole file of responses: `truegold verify --input rows.jsonl --output verdicts.parquet`.

    {"id": "7", "response": "... so \\boxed{42}", "gold": "42"}   ->   row=1, sample=0, id="7", score=1.0, ...
    {"id": "8", "response": ["\\boxed{8}", "9"], "gold": "8"}     ->   two verdicts: sample=0 and sample=1

The user may name columns; the others are guessed (`sources.presets`). Golds, tests, verifiers and their arguments are
read as in a run (`problems.ItemReader`). If a file has the columns of HumanEval, for example, its tests judge the
responses. A record that cannot be read gives a row with the reason and without a score.

`cpu_ms` is the CPU time of judging the row in milliseconds, without subprocesses of the verifier. It is null if the
judging process died. At the end, the throughput, the slowest rows and the rejects are printed.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain, islice, tee
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from truegold.pipeline.config.stages import OpinionConfig
from truegold.pipeline.judge.opinions import open_opinion, verify_and_hear
from truegold.pipeline.problems import ItemReader, ProblemColumns, make_item_reader, missing_gold
from truegold.pipeline.running.disk import written_aside
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.sources.columns import describe_columns
from truegold.pipeline.sources.data_files import MAX_ROW_BYTES, SUFFIXES, open_file
from truegold.pipeline.sources.records import LOOK_AHEAD, Record, Reject, sample_values
from truegold.pipeline.tables.rows import TableWriter, dump_json
from truegold.verifiers import ConfigError, InputError, Item, Reason, Verdict, resolve
from truegold.verifiers.running.batch import DEADLINE_S, MAX_TIMEOUTS, verify_batch_timed
from truegold.verifiers.running.unread_tally import UnreadTally

VERDICT_SCHEMA = pa.schema(
    [
        ("row", pa.int64()),
        ("sample", pa.int64()),
        ("id", pa.string()),
        ("score", pa.float64()),
        ("reason", pa.string()),
        ("extracted", pa.string()),
        ("verifier", pa.string()),
        ("evidence", pa.string()),
        ("cpu_ms", pa.float64()),
    ]
)

SLOW_MS = 100.0
"""A row that takes more CPU time than this is slow. An ordinary verdict takes about a millisecond."""
MAX_SLOW_ROWS = 5
_TRIAL_ROWS = 20
"""If there is no gold column, and the verifier needed a gold in each of this number of rows, an error is raised."""


def verify_file(
    source: Path,
    target: Path,
    verifier: str | None,
    workers: int,
    progress: Progress,
    named_columns: ProblemColumns | None = None,
    deadline_s: float = DEADLINE_S,
    max_timeouts: float = MAX_TIMEOUTS,
    second_opinion: OpinionConfig | None = None,
) -> dict[str, int]:
    """Write one verdict for each response of `source`, and return the number of verdicts by reason.

    A record has one response, or a list of samples with a verdict for each. `verifier` judges the rows that do not name
    one. If it is None, `code` judges files with tests, and `math` other files. A configured second opinion is stored in
    the evidence. Raises InputError if the file cannot be read, has no response column, or has no golds although the
    verifier needs them, and GuardError if a verifier hangs.
    """
    if verifier is not None:
        resolve(verifier)
    form = _output_form(target)
    opened = open_file(source, "auto", MAX_ROW_BYTES)
    first_records = list(islice(opened.records, LOOK_AHEAD))
    reader = make_item_reader(opened, first_records, named_columns or ProblemColumns(), verifier)
    progress.start("verifying", opened.total)
    records = chain(first_records, opened.records)
    samples = ((record, sample, item) for record in records for sample, item in enumerate(reader.read(record)))
    to_judge, to_write = tee(samples)
    judged = (item for _, _, item in to_judge if isinstance(item, Item))
    costs: deque[float | None] = deque()

    def verify_all(rows: Iterable[Item]) -> Iterator[Verdict]:
        for timed in verify_batch_timed(rows, workers, item_deadline_s=deadline_s, max_timeouts=max_timeouts):
            costs.append(timed.cpu_ms)
            yield timed.verdict

    opinion = open_opinion(second_opinion, target.with_name(f".{target.name}"))
    verdicts = verify_and_hear(judged, verify_all, opinion)
    outcomes, unread = _Outcomes(), UnreadTally()
    with written_aside(target) as aside:
        with closing(verdicts), TableWriter(aside, VERDICT_SCHEMA) as writer:
            for record, sample, item in to_write:
                line: dict[str, Any] = {"row": record.row_number, "sample": sample, "id": reader.id_of(record)}
                if isinstance(item, Reject):
                    line |= {"reason": outcomes.add_reject(item), "evidence": dump_json({"detail": item.detail})}
                else:
                    verdict, cpu_ms = next(verdicts), costs.popleft()
                    outcomes.add_verdict(record.row_number, verdict.reason, cpu_ms)
                    ended, origin = not reader.was_cut(record, sample), reader.source_of(record)
                    unread.add(item, verdict, ended=ended, source=origin)
                    for text in unread.take_lines():
                        progress.note(text)
                    line |= {
                        "score": verdict.score,
                        "reason": str(verdict.reason),
                        "extracted": verdict.extracted,
                        "verifier": item.verifier,
                        "evidence": dump_json(dict(verdict.evidence)),
                        "cpu_ms": cpu_ms,
                    }
                writer.write(line)
                outcomes.several += sample == 1
                progress.advance(int(sample == 0))
                if outcomes.judged == _TRIAL_ROWS:
                    _check_gold_column(reader, outcomes, first_records, opened.location)
        _check_gold_column(reader, outcomes, first_records, opened.location)
        if set(outcomes.counts) == {str(Reason.GOLD_MISSING)}:
            column = reader.rows.columns.get("gold") or reader.rows.columns["golds"]
            raise InputError(
                f"{opened.location}: no row has a gold answer in column {column.name!r}.",
                f"It has: {describe_columns(sample_values(first_records))}. Name the gold column: --gold-column COLUMN",
            )
        if form != "parquet":
            _convert(aside, form)
    if opinion is not None:
        opinion.facts(progress)
        opinion.close()
    for text in (*unread.finish(), *outcomes.lines(opened.location)):
        progress.note(text)
    return outcomes.counts


def _check_gold_column(
    reader: ItemReader, outcomes: _Outcomes, first_records: Sequence[Record | Reject], location: str
) -> None:
    """Raise InputError if there is no gold column, and the verifier needed a gold for all judged rows."""
    if not reader.reads_gold and outcomes.judged == outcomes.counts[str(Reason.GOLD_MISSING)] > 0:
        raise missing_gold(sample_values(first_records), location)


def _output_form(target: Path) -> str:
    """Return the format for the suffix of a file name: `parquet`, `jsonl`, ... Raises ConfigError if it is unknown."""
    if target.is_dir():
        raise ConfigError(f"{target} is a folder.", f"Name a file in it: {target / 'verdicts.parquet'}.")
    if (form := SUFFIXES.get(target.suffix.lower())) is None:
        raise ConfigError(f"{target} has no suffix of a format.", "End it in .parquet, .jsonl or .csv.")
    return form


def _convert(path: Path, form: str) -> None:
    """Replace a Parquet file by the same table as JSON Lines or CSV."""
    table = pl.scan_parquet(path)
    with written_aside(path) as other:
        if form == "jsonl":
            table.sink_ndjson(other)
        else:
            table.sink_csv(other, separator="\t" if ".tsv" in path.suffixes else ",")


@dataclass
class _Outcomes:
    """Counts the results of the rows for the final report."""

    began: float = field(default_factory=time.monotonic)
    counts: Counter[str] = field(default_factory=Counter)
    first_rejects: dict[str, Reject] = field(default_factory=dict)
    """The first reject by reason."""
    judged: int = 0
    several: int = 0
    """The number of records with more than one sample."""
    cpu_ms: float = 0.0
    slow: list[tuple[float, int]] = field(default_factory=list)
    """The CPU time and the number of each slow row."""

    def add_reject(self, reject: Reject) -> str:
        """Count a row that cannot be judged, and return its reason for the table."""
        self.first_rejects.setdefault(reject.reason, reject)
        reason = f"rejected:{reject.reason}"
        self.counts[reason] += 1
        return reason

    def add_verdict(self, row: int, reason: Reason, cpu_ms: float | None) -> None:
        """Count a judged row. `cpu_ms` is None if it is unknown."""
        self.counts[str(reason)] += 1
        self.judged += 1
        self.cpu_ms += cpu_ms or 0.0
        if cpu_ms is not None and cpu_ms > SLOW_MS:
            self.slow = sorted([*self.slow, (cpu_ms, row)], reverse=True)[:MAX_SLOW_ROWS]

    def lines(self, location: str) -> Iterator[str]:
        """Yield the lines of the final report."""
        if self.judged:
            seconds = max(time.monotonic() - self.began, 0.001)
            what = "responses" if self.several else "rows"
            yield (
                f"{self.judged:,} {what} in {seconds:,.1f} s, {self.judged / seconds:,.0f} a second;"
                f" {self.cpu_ms / self.judged:,.2f} ms CPU each"
            )
        if self.several:
            yield f"{self.several:,} rows have several samples: the column `sample` counts them from 0"
        if self.slow:
            yield "slowest: " + ", ".join(f"row {row} ({cpu_ms:,.0f} ms)" for cpu_ms, row in self.slow)
        for reason, first in self.first_rejects.items():
            count = self.counts[f"rejected:{reason}"]
            yield f"{location}: {count:,} rejected as {reason}, the first is row {first.row_number}: {first.detail}"
