"""Stage `report`: writes a page about the outcomes of rows and the pass rates of the model, and its numbers as JSON.

inputs {"ingest": runs/demo/ingest/stage.json, ...}  ->  index.html, summary.json, reward_ratio.parquet
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import orjson

from truegold.pipeline.config.stages import ReportConfig
from truegold.pipeline.report.render import render
from truegold.pipeline.report.reward_ratios import RewardRatio
from truegold.pipeline.report.sections import gather, summarise
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.running.stage import StageReport, stage_function
from truegold.pipeline.tables.rows import arrow_schema, write_rows
from truegold.pipeline.tables.run_files import RunFiles

PAGE = "index.html"
SUMMARY = "summary.json"
REWARD_RATIO_FILE = "reward_ratio.parquet"


@stage_function(version=11)
def report(inputs: Mapping[str, Path], config: ReportConfig, out_dir: Path, progress: Progress) -> StageReport:
    """Report on the stages in `config.stages`. Raises RuntimeError if the rows do not add up (`accounting`)."""
    progress.start("reading the run")
    sections = gather(RunFiles.open(inputs, config.stages), config)
    progress.start("writing the page")
    page = render(sections).encode("utf-8")
    (out_dir / PAGE).write_bytes(page)
    numbers = orjson.dumps(
        summarise(sections), option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS
    )
    (out_dir / SUMMARY).write_bytes(numbers + b"\n")
    if sections.rewards is not None:
        write_rows(out_dir / REWARD_RATIO_FILE, map(asdict, sections.rewards.ratios), arrow_schema(RewardRatio))
    before, after = sections.heldout
    facts = {
        "page": PAGE,
        "page_bytes": len(page),
        "heldout_pass_rate": [before and before.mean, after and after.mean],
        "flagged_rows": sections.flagged.rows if sections.flagged else 0,
    }
    return StageReport(sections.account.records_in, sections.left, {}, facts)
