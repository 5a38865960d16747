"""Reports heavy losses: more than a fifth of the rows is rejected, held back or dropped for the same reason.

    300 of 300 rows (100 %) are held back: gold_unparsed. The first is train.jsonl:1, gold '72'.
      Every gold is a number: is `math` meant? --set data.verifier=math, or --verifier math

Stages store their heavy losses among their facts, where the command line, the report and the Python API read them. A
run that loses all its rows, or more than its bounds allow (`LossBounds`), ends with an `InputError`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, TypeVar

from truegold.pipeline.running.stage import StageReport
from truegold.pipeline.tables.run_files import HELD_REASONS
from truegold.verifiers import InputError

LOUD_SHARE = 0.2
"""A loss for one reason is heavy if its share of all rows is larger than this."""
SAMPLE = 20
"""The cause of a loss is guessed from at most this number of rows."""
LOSSES = "losses"
"""The key of a stage's heavy losses among its facts."""
CONTRADICTED = "contradicted_fixes"
"""The name of the fact of `settle` with the fixes that worked solutions contradict."""
CUT = "cut"
"""The key, among the facts of `clean`, of the phrases that it removes from many prompts."""
REJECTED, HELD, DROPPED = "rejected", "held back", "dropped"
"""The kinds of losses: `ingest` rejects rows, `settle` holds them back, and `vet_tests` drops them."""

Lost = TypeVar("Lost")


@dataclass(frozen=True, slots=True)
class Cause:
    """The cause of a loss, and its remedy. A text is empty if it is not known."""

    cause: str = ""
    """A sentence, such as `Every gold is a number: is `math` meant?`"""
    remedy: str = ""
    """The command to run, or the data to check."""


@dataclass(frozen=True, slots=True)
class Loss:
    """The rows that were lost for one reason."""

    kind: str
    """`rejected`, `held back` or `dropped`."""
    reason: str
    rows: int
    rows_in: int
    """The number of rows that the stage read."""
    example: str
    """The first lost row: its file, its number and its fault."""
    cause: str
    """The cause, or an empty text if it is not known."""
    remedy: str
    """The advice on what to do."""

    @property
    def share(self) -> float:
        """The lost share of the rows that the stage read."""
        return self.rows / self.rows_in if self.rows_in else 0.0

    def lines(self) -> list[str]:
        """Return the lines to print."""
        unit = "records" if self.kind == REJECTED else "rows"
        first = f"{self.rows:,} of {self.rows_in:,} {unit} ({100 * self.share:.0f} %) are {self.kind}: {self.reason}."
        advice = " ".join(filter(None, (self.cause, self.remedy)))
        return [f"{first} The first is {self.example}.", *([f"  {advice}"] if advice else [])]


@dataclass
class LossCount(Generic[Lost]):
    """Counts lost rows by reason, and stores the first SAMPLE rows of each reason."""

    counts: Counter[str] = field(default_factory=Counter)
    samples: dict[str, list[Lost]] = field(default_factory=dict)

    def add(self, reason: str, row: Lost) -> None:
        """Count a row."""
        self.counts[reason] += 1
        sample = self.samples.setdefault(reason, [])
        if len(sample) < SAMPLE:
            sample.append(row)

    def heavy(
        self, kind: str, rows_in: int, describe: Callable[[Lost], str], explain: Callable[[str, list[Lost]], Cause]
    ) -> list[dict[str, Any]]:
        """Return the heavy losses as facts of a stage, the largest loss first."""
        losses = []
        for reason, rows in self.counts.most_common():
            if rows > LOUD_SHARE * rows_in:
                why = explain(reason, self.samples[reason])
                first = describe(self.samples[reason][0])
                losses.append(asdict(Loss(kind, reason, rows, rows_in, first, why.cause, why.remedy)))
        return losses


@dataclass(frozen=True, slots=True)
class LossBounds:
    """Bounds on the shares of a data set that may be lost. None means no bound."""

    max_rejected: float | None = None
    """The maximum share of the records that may be rejected."""
    max_held: float | None = None
    """The maximum share of the rows that may be held back."""

    def check(self, stage: str, report: StageReport, earlier: Iterable[StageReport] = ()) -> None:
        """Raise InputError if the stage `stage` lost more rows than allowed, or all rows.

        `earlier` has the reports of the stages before it. The error lists their losses, too.
        """
        earlier = list(earlier)
        if stage == "ingest":
            rejected = {name: rows for name, rows in report.counts.items() if name.startswith("reject:")}
            _check_bound(report, REJECTED, rejected, "max_rejected", self.max_rejected)
        elif stage == "settle":
            held = {name: rows for name, rows in report.counts.items() if name.removeprefix("drop:") in HELD_REASONS}
            _check_bound(report, HELD, held, "max_held", self.max_held)
            if report.rows_out == 0 and any(before.rows_in for before in (*earlier, report)):
                raise InputError(_nothing_left(report, sum(held.values()), earlier), _advice(*earlier, report))


NO_BOUNDS = LossBounds()
"""No bounds. Only the loss of all rows is an error."""


def _check_bound(report: StageReport, kind: str, lost: Mapping[str, int], name: str, bound: float | None) -> None:
    rows = sum(lost.values())
    if bound is None or rows <= bound * report.rows_in:
        return
    share = f"{rows:,} of {report.rows_in:,} rows ({100 * rows / report.rows_in:.0f} %) are {kind}"
    reasons = ", ".join(f"{count:,} {reason.partition(':')[2]}" for reason, count in lost.items())
    raise InputError(f"{share}, above {name} = {bound:g}: {reasons}.", _advice(report))


def _nothing_left(report: StageReport, held: int, earlier: Iterable[StageReport]) -> str:
    drops: Counter[str] = Counter()
    for before in (*earlier, report):
        drops.update({name: rows for name, rows in before.counts.items() if name.startswith("drop:")})
    if held == drops.total() > 0:
        return f"No row is left of {report.rows_in:,}."
    reasons = ", ".join(f"{rows:,} {name.removeprefix('drop:')}" for name, rows in drops.most_common())
    return f"No row is left; dropped were {reasons}." if reasons else "No row is left."


def _advice(*reports: StageReport) -> str | None:
    return "\n  ".join(loss_lines(reports)) or None


def read_losses(report: StageReport) -> list[Loss]:
    """Return the heavy losses that a stage reports."""
    return [Loss(**loss) for loss in report.facts.get(LOSSES, ())]


def loss_lines(reports: Iterable[StageReport]) -> list[str]:
    """Return the lines to print about the stages' heavy losses and dubious fixes, empty for a healthy run."""
    reports = list(reports)
    lines = [line for report in reports for loss in read_losses(report) for line in loss.lines()]
    if fixes := [fix for report in reports for fix in report.facts.get(CONTRADICTED, ())]:
        rows = "1 fixed row" if len(fixes) == 1 else f"{len(fixes):,} fixed rows"
        lines.append(f"{rows}: the worked solution fails after the fix. The first is {fixes[0]}.")
        lines.append("  The fixes are applied. Look at them again with `truegold review`.")
    return lines
