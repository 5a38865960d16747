"""Stage `report`: writes the report on a run, as one self-contained HTML page and as JSON."""

from truegold.pipeline.report.render import ReviewSettings, open_page
from truegold.pipeline.report.stage import report

__all__ = ["ReviewSettings", "open_page", "report"]
