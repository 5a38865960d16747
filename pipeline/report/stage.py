"""Stage `report`: one page on what became of every row and of the model, and its numbers for machines.

    inputs {"ingest": runs/demo/ingest/stage.json, ...}  ->  index.html, summary.json, reward_ratio.parquet

All are functions of the run's files alone. Where rows went missing on the way there is an error and no report.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import orjson

from truegold.pipeline.config.stages import ReportConfig
from truegold.pipeline.report.contents import gather, summarise
from truegold.pipeline.report.render import render
from truegold.pipeline.report.rewards import write_rewards
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.running.stage import StageReport, stage_function
from truegold.pipeline.tables.run_files import RunFiles

PAGE = "index.html"
SUMMARY = "summary.json"


@stage_function(version=7)
def report(inputs: Mapping[str, Path], config: ReportConfig, out_dir: Path, progress: Progress) -> StageReport:
    """Report on the stages in `config.stages`, by the `stage.json` of each. RuntimeError where rows went missing."""
    progress.start("reading the run")
    contents = gather(RunFiles.open(inputs, config.stages), config)
    progress.start("writing the page")
    page = render(contents).encode("utf-8")
    (out_dir / PAGE).write_bytes(page)
    numbers = orjson.dumps(
        summarise(contents), option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS
    )
    (out_dir / SUMMARY).write_bytes(numbers + b"\n")
    if contents.rewards is not None:
        write_rewards(contents.rewards, out_dir)
    before, after = contents.heldout
    facts = {
        "page": PAGE,
        "page_bytes": len(page),
        "heldout_pass_rate": [before and before.mean, after and after.mean],
        "flagged_rows": contents.flagged.rows if contents.flagged else 0,
    }
    return StageReport(contents.account.records_in, contents.left, {}, facts)
