"""Stage `flag`: flags suspicious rows by rules without a model. Rows are neither changed nor dropped.

The row `{"id": "9f0c...", "prompt": "Prove that 12+8 is even.", ...}` is unchanged and gets a row in `flags.parquet`:

    {"id": "9f0c...", "reason": "proof", "detector": "proof", "confidence": 1.0, "blocks": true,
     "evidence": "{\\"asks\\": \\"Prove that\\", \\"measured\\": {\\"precision\\": 1.0, \\"rows\\": 14, ...}}", ...}

The confidence of a built-in rule's flags is its measured precision (`measured`). The precision also decides whether the
flags hold rows back. A user's own rule sets both for its flags.

`flags.parquet` also has the flags of earlier stages, so that `settle` needs only one table. The ledger has only the new
flags. Flags are sorted by row, and the flags of a row by stage. Flags of dropped rows are left out. Flags with a reason
in `advise_only` are reported, but do not hold rows back. If a detector raises an exception on a row, it finds nothing
there. Its exceptions are counted as `error:NAME`, and the first is reported.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from truegold.pipeline.config.stages import FlagConfig
from truegold.pipeline.flag.rules import BUILT_IN, Detector, Finding, load_detectors
from truegold.pipeline.running.parts import Part, PartWork, run_parts, split_inputs, sum_reports
from truegold.pipeline.running.progress import Progress, paced
from truegold.pipeline.running.stage import StageReport, stage_function
from truegold.pipeline.tables.conversation import find_shared_systems, read_compared_rows
from truegold.pipeline.tables.ledger import FLAG_SCHEMA, FLAGS_FILE, FlagRecord, Ledger, flag_record
from truegold.pipeline.tables.measured_flags import measured_flag
from truegold.pipeline.tables.rows import Row, TableWriter, group_by_row, read_table, row_key, row_place
from truegold.verifiers.decimal_commas import comma_setting, with_points

EARLIER_FLAGS = ("dedup_flags", "gold_flags")
"""The inputs with flags of earlier stages, in order."""


@stage_function(version=4, tunable=("workers",), aims=("workers",))
def flag(inputs: Mapping[str, Path], config: FlagConfig, out_dir: Path, progress: Progress) -> StageReport:
    """Run the detectors over `rows`, and write `rows.parquet`, all flags (`flags.parquet`) and the ledger."""
    detectors = load_detectors(config.detectors)
    shared = sorted(find_shared_systems(inputs["rows"]))
    parts = split_inputs(inputs, out_dir, *EARLIER_FLAGS)
    reports = run_parts(PartWork(f"{__name__}:flag_part", config, shared), parts, progress, "flag")
    errors: dict[str, str] = {}
    for report in reports:
        errors = {**report.facts["errors"], **errors}
    for name, message in errors.items():
        progress.note(f"Detector {name} failed on {message}.")
    return sum_reports(
        reports,
        {
            "detectors": {detector.name: detector.version for detector in detectors},
            "flagged_rows": sum(report.facts["flagged_rows"] for report in reports),
            "blocked_rows": sum(report.facts["blocked_rows"] for report in reports),
        },
    )


def flag_part(part: Part, config: FlagConfig, shared: Sequence[Sequence[str]], progress: Progress) -> StageReport:
    """Flag the rows of one part. `shared` has (source, system message) pairs of messages that many rows share. Rules do
    not read these messages."""
    detectors = load_detectors(config.detectors)
    earlier = group_by_row(
        chain.from_iterable(read_table(part.inputs[name], FlagRecord) for name in EARLIER_FLAGS if name in part.inputs)
    )
    templates = {(source, message) for source, message in shared}
    rows = flagged = blocked = 0
    counts: Counter[str] = Counter()
    errors: dict[str, str] = {}
    with Ledger(part.output, "flag") as ledger, TableWriter(part.output(FLAGS_FILE), FLAG_SCHEMA) as flags:
        for row in paced(read_compared_rows(part.inputs["rows"], shared=templates), progress, "flag"):
            rows += 1
            records, failures = _find_flags(row, detectors)
            for name, message in failures:
                errors.setdefault(name, f"{row_place(row)} ({message})")
                counts[f"error:{name}"] += 1
            for record in records:
                ledger.flag(row, record["reason"], detector=record["detector"], confidence=record["confidence"])
            row_flags = [*earlier.get(row_key(row), ()), *records]
            for record in row_flags:
                record["blocks"] = record["blocks"] and record["reason"] not in config.advise_only
                flags.write(record)
            flagged += bool(row_flags)
            blocked += any(record["blocks"] for record in row_flags)
    shutil.copyfile(part.inputs["rows"], part.output("rows.parquet"))
    facts = {"errors": errors, "flagged_rows": flagged, "blocked_rows": blocked}
    return StageReport(rows, rows, {**ledger.counts, **dict(sorted(counts.items()))}, facts)


def _find_flags(row: Row, detectors: Sequence[Detector]) -> tuple[list[FlagRecord], list[tuple[str, str]]]:
    """Return a row's flags, and (detector, error) for each detector that raised on the row."""
    records: list[FlagRecord] = []
    failures: list[tuple[str, str]] = []
    pointed = _with_points(row)
    for detector in detectors:
        # A user's detector may raise anything, and must not stop the other detectors.
        try:
            read = pointed if detector is BUILT_IN.get(detector.name) else row
            records += [_record(row, detector, finding) for finding in detector.detect(read)]
        except Exception as error:
            failures.append((detector.name, f"{type(error).__name__}: {error}"))
    return records, failures


def _with_points(row: Row) -> Row:
    """Return the row for built-in rules: with points instead of decimal commas in its prompt and solution."""
    if comma_setting(row["verifier_args"]) is None:
        return row
    solution = row["solution"]
    return {**row, "prompt": with_points(row["prompt"]), "solution": solution and with_points(solution)}


def _record(row: Row, detector: Detector, finding: Any) -> FlagRecord:
    if not isinstance(finding, Finding):
        raise TypeError(f"detect() must return a list of Finding, not of {type(finding).__name__}")
    if detector is BUILT_IN.get(detector.name):
        return measured_flag(row, finding.reason, detector.name, finding.evidence, finding.suggestion)
    return flag_record(
        row,
        finding.reason,
        detector=detector.name,
        evidence=finding.evidence,
        confidence=finding.confidence,
        blocks=finding.blocks,
        suggestion=finding.suggestion,
    )
