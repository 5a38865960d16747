"""Stage `report`: writes the report on a run, one self-contained page and its numbers."""

from truegold.pipeline.report.render import ReviewSettings, open_page
from truegold.pipeline.report.stage import report

__all__ = ["ReviewSettings", "open_page", "report"]
