"""Stage `clean`: repairs characters, markup and boilerplate where one reading is possible, and records every edit."""

from truegold.pipeline.clean.edits import EDITS, Boilerplate, clean_prose
from truegold.pipeline.clean.stage import clean

__all__ = ["EDITS", "Boilerplate", "clean", "clean_prose"]
