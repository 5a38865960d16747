"""What the page's table of all rows is made of: every record of a run, where it ended, and what is known of it."""

from truegold.pipeline.report.browser.completions import pack_completions
from truegold.pipeline.report.browser.payload import Browser, gather_browser, whole_texts

__all__ = ["Browser", "gather_browser", "pack_completions", "whole_texts"]
