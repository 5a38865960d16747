"""What changed between two runs, and why: `diff_runs` finds it, `diff_lines` puts it into words."""

from truegold.pipeline.report.diff.compare import Difference, diff_runs
from truegold.pipeline.report.diff.text import diff_lines

__all__ = ["Difference", "diff_lines", "diff_runs"]
