"""Evaluation of the weights in training on held-out rows: those of the run, and further sets of the configuration.

train.evaluation: {every: 20, sets: {gsm: gsm8k_test.jsonl, hard: olympiads.parquet}}

heldout_pass_rate               0.31     pass rate of the run's held-out rows, with standard error heldout_error
evaluation/gsm                  0.62     pass rate of the set gsm, with standard error evaluation_error/gsm
evaluation/gsm/domain/algebra   0.70     pass rate of a domain, if the set has several
evaluation/heldout/source/math  0.25     pass rate of a source, if the run's held-out rows have several
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import orjson

from truegold.pipeline.config.sources import FileSource
from truegold.pipeline.sources.data_files import open_file
from truegold.pipeline.sources.presets import choose_layout
from truegold.pipeline.sources.records import Record, Reject, look_ahead, nothing_usable
from truegold.pipeline.sources.row_builder import RowBuilder, RowWarnings
from truegold.pipeline.tables.rows import Row
from truegold.train.config.grpo import HELDOUT_SET
from truegold.train.grpo.batch_metrics import Metrics
from truegold.train.model.distributed import gathered
from truegold.verifiers.code.suite.row_tests import Unusable
from truegold.verifiers.columns import text_of

LABELS = ("source", "domain")
"""The columns by whose values pass rates are also reported separately."""
MOST_LABELS = 32
"""The largest number of values of a column that get separate pass rates. The most frequent values are taken."""


def read_set(path: Path) -> tuple[list[Row], int]:
    """Return the rows of a file in any format of `data`, and the number of unusable records.

    Raises InputError if no record is usable.
    """
    config = FileSource(path=str(path))
    source = open_file(path, "auto", config.max_row_bytes)
    records, rejects = iter(source.records), list[Reject]()
    ahead = look_ahead(records, rejects.append)
    rows: list[Row] = []
    if ahead:
        layout = choose_layout(config, source.location, [record.values for record in ahead])
        builder = RowBuilder(config, layout, source.name, RowWarnings(), all_heldout=True)
        for record in chain(ahead, records):
            rows += _build(builder, record, rejects)
    if not rows:
        raise nothing_usable(source, f"{len(rejects)} rows", next(iter(rejects), None))
    return rows, len(rejects)


def _build(builder: RowBuilder, record: Record | Reject, rejects: list[Reject]) -> Iterator[Row]:
    """Yield the row of a record, or append the record to `rejects` if it is unusable."""
    if isinstance(record, Reject):
        rejects.append(record)
        return
    try:
        yield builder.build(record)
    except Unusable as error:
        rejects.append(Reject(record.row_number, error.reason, error.detail, record.excerpt()))


def labels_of(row: Row) -> dict[str, str]:
    """Return the source and the domain of a row. Values in the row's input file come before those of the run."""
    meta = orjson.loads(row.get("meta") or "{}")
    labels = {"source": row.get("source", ""), "domain": row.get("domain", "")}
    return {name: text_of(meta.get(name)) or label for name, label in labels.items()}


@dataclass
class EvaluationRows:
    """The rows of an evaluation, set by set, with the names of their pass rates."""

    rows: list[Row] = field(default_factory=list)
    names: list[tuple[str, ...]] = field(default_factory=list)
    """The pass rates that each row counts for, such as `evaluation/gsm` and `evaluation/gsm/domain/algebra`."""

    @classmethod
    def from_sets(cls, sets: Mapping[str, Sequence[Row]]) -> EvaluationRows:
        """Return the rows of an evaluation from its sets by name."""
        made = cls()
        for name, rows in sets.items():
            made.add(name, rows)
        return made

    def add(self, name: str, rows: Sequence[Row]) -> None:
        """Add the rows of a set."""
        labels = [labels_of(row) for row in rows]
        counts = {label: Counter(each[label] for each in labels) for label in LABELS}
        told_apart = {
            label: {value for value, _ in counted.most_common(MOST_LABELS)} if len(counted) > 1 else set()
            for label, counted in counts.items()
        }
        rate = f"evaluation/{name}"
        for row, each in zip(rows, labels, strict=True):
            parts = [f"{rate}/{label}/{value}" for label, value in each.items() if value in told_apart[label]]
            self.rows.append(row)
            self.names.append((rate, *parts))


@dataclass
class _Tally:
    """The counts of one pass rate."""

    right: int = 0
    judged: int = 0
    variance: float = 0.0
    """The sum, over problems, of (variance of a problem's samples) times (their number)."""

    def add(self, passed: Sequence[bool]) -> None:
        """Count the samples of one problem."""
        self.right += sum(passed)
        self.judged += len(passed)
        if passed:
            self.variance += sum(passed) * (len(passed) - sum(passed)) / len(passed)

    def merge(self, other: _Tally) -> None:
        self.right += other.right
        self.judged += other.judged
        self.variance += other.variance

    def error(self, samples: int) -> float:
        """Return the standard error of the pass rate, for `samples` samples of each problem.

        Only the samples vary, because each evaluation has the same problems. With one sample for each problem, the
        variance is unknown, and the (larger) binomial error is returned.
        """
        variance = self.variance * samples / max(samples - 1, 1)
        if samples == 1:
            variance = self.right * (self.judged - self.right) / self.judged
        return math.sqrt(variance) / self.judged


def measure_evaluation(names: Sequence[Sequence[str]], passed: Sequence[Sequence[bool]], samples: int) -> Metrics:
    """Return the pass rates of an evaluation and their standard errors, over all ranks.

    names: the pass rates that each of this rank's rows counts for. passed: whether each judged sample of a row passed.
    samples: the number of samples of each row.
    """
    tallies: dict[str, _Tally] = {}
    for row_names, row_passed in zip(names, passed, strict=True):
        for name in row_names:
            tallies.setdefault(name, _Tally()).add(row_passed)
    merged: dict[str, _Tally] = {}
    for name, tally in chain.from_iterable(part.items() for part in gathered(tallies)):
        merged.setdefault(name, _Tally()).merge(tally)
    heldout = merged.pop(f"evaluation/{HELDOUT_SET}", _Tally())
    metrics: Metrics = {"heldout_pass_rate": None}
    if heldout.judged:
        metrics = {"heldout_pass_rate": heldout.right / heldout.judged, "heldout_error": heldout.error(samples)}
    for name, tally in sorted(merged.items()):
        metrics[name] = tally.right / tally.judged if tally.judged else None
        if tally.judged and name.count("/") == 1:
            metrics[name.replace("/", "_error/", 1)] = tally.error(samples)
    return metrics


def evaluated_rates(metrics: Mapping[str, float | None]) -> dict[str, float]:
    """Return the pass rates of an evaluation from a step's metrics, the run's held-out rows first."""
    rates = {f"evaluation/{HELDOUT_SET}": metrics.get("heldout_pass_rate")}
    rates |= {name: value for name, value in metrics.items() if name.startswith("evaluation/")}
    return {name.removeprefix("evaluation/"): value for name, value in rates.items() if value is not None}
