"""Flags suspicious rows by rules that need no model. Rows are neither changed nor dropped here.

The row `{"id": "9f0c...", "prompt": "Prove that 12+8 is even.", ...}` stays as it is, and gets a row in `flags.parquet`

    {"id": "9f0c...", "reason": "proof", "detector": "proof", "confidence": 1.0, "blocks": true,
     "evidence": "{\\"asks\\": \\"Prove that\\", \\"measured\\": {\\"precision\\": 1.0, \\"rows\\": 14, ...}}", ...}

A built-in rule's confidence, and whether its flags hold rows back, follow from its measured precision (`measured`); a
user's own rule says both itself.

`flags.parquet` holds the flags of the earlier stages as well, so that one table is enough to settle them; the ledger
holds the new ones only. A reason in `advise_only` is reported and holds no row back. A detector that raises on a row
gives no finding for it; its errors are counted as `error:NAME`, and the first of them is noted.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from truegold.pipeline.config.stages import FlagConfig
from truegold.pipeline.flag.rules import BUILT_IN, Detector, Finding, load_detectors
from truegold.pipeline.running.progress import Progress, paced
from truegold.pipeline.running.row_workers import map_rows
from truegold.pipeline.running.stage import StageReport, stage_function
from truegold.pipeline.tables.conversation import read_compared_rows
from truegold.pipeline.tables.ledger import FLAG_SCHEMA, FLAGS_FILE, FlagRecord, Ledger, flag_record
from truegold.pipeline.tables.measured_flags import measured_flag
from truegold.pipeline.tables.rows import Row, RowKey, TableWriter, count_rows, read_table, row_key

EARLIER_FLAGS = ("dedup_flags", "gold_flags")
"""The inputs that hold flags of earlier stages, in the order they are taken over."""


@stage_function(version=2)
def flag(inputs: Mapping[str, Path], config: FlagConfig, out_dir: Path, progress: Progress) -> StageReport:
    """Run the detectors over `rows` and gather all flags: `rows.parquet`, `flags.parquet` and the ledger."""
    detectors = load_detectors(config.detectors)
    total = count_rows(inputs["rows"])
    flagged: set[RowKey] = set()
    blocked: set[RowKey] = set()
    errors: Counter[str] = Counter()

    with Ledger(out_dir, "flag") as ledger, TableWriter(out_dir / FLAGS_FILE, FLAG_SCHEMA) as flags:

        def write_flag(record: FlagRecord) -> None:
            record["blocks"] = record["blocks"] and record["reason"] not in config.advise_only
            flags.write(record)
            key = row_key(record)
            flagged.add(key)
            if record["blocks"]:
                blocked.add(key)

        for path in (inputs[name] for name in EARLIER_FLAGS if name in inputs):
            for record in read_table(path, FlagRecord):
                write_flag(record)
        compared = read_compared_rows(inputs["rows"])
        flagged_rows = map_rows(compared, total, partial(_flagger, config.detectors), config.workers)
        for row, (records, failures) in paced(flagged_rows, progress, "flag", total):
            for name, message in failures:
                if name not in errors:
                    progress.note(f"Detector {name} failed on {row['source']}:{row['source_row']} ({message}).")
                errors[name] += 1
            for record in records:
                write_flag(record)
                ledger.flag(row, record["reason"], detector=record["detector"], confidence=record["confidence"])

    shutil.copyfile(inputs["rows"], out_dir / "rows.parquet")
    return StageReport(
        rows_in=total,
        rows_out=total,
        counts={**ledger.counts, **{f"error:{name}": count for name, count in sorted(errors.items())}},
        facts={
            "detectors": {detector.name: detector.version for detector in detectors},
            "flagged_rows": len(flagged),
            "blocked_rows": len(blocked),
        },
    )


def _flagger(names: Sequence[str]) -> Callable[[Row], tuple[list[FlagRecord], list[tuple[str, str]]]]:
    """Return a function from a row to its flag records and the detectors that raised on it, with their errors."""
    detectors = load_detectors(names)

    def find_flags(row: Row) -> tuple[list[FlagRecord], list[tuple[str, str]]]:
        records: list[FlagRecord] = []
        failures: list[tuple[str, str]] = []
        for detector in detectors:
            # A detector's own code may raise anything, and must not stop the others.
            try:
                records += [_record(row, detector, finding) for finding in detector.detect(row)]
            except Exception as error:
                failures.append((detector.name, f"{type(error).__name__}: {error}"))
        return records, failures

    return find_flags


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
