"""Stage `clean`: characters, markup, boilerplate, options and leaks: edits that have one reading, all in the ledger."""

from truegold.pipeline.clean.edits import EDITS, Boilerplate, clean_prose
from truegold.pipeline.clean.stage import clean

__all__ = ["EDITS", "Boilerplate", "clean", "clean_prose"]
