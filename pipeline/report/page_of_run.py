"""The page of a run that lies on disk, made without writing anything: what `truegold review` serves."""

from __future__ import annotations

from pathlib import Path

from truegold.pipeline.config.stages import ReportConfig
from truegold.pipeline.report.contents import gather
from truegold.pipeline.report.render import ReviewSettings, render
from truegold.pipeline.tables.run_files import open_finished


def open_page(run_dir: Path, review: ReviewSettings | None = None) -> str:
    """Return the page of a run. InputError where it is no run, or has no rows yet."""
    files = open_finished(run_dir)
    stages = tuple(name for name in files.folders if name != "report")
    config = ReportConfig(name=run_dir.resolve().name, stages=stages)
    is_blind = review is not None and review.blind
    return render(gather(files.only(stages), config, is_blind=is_blind), review)
