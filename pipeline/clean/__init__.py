"""Stage `clean`: characters, markup, boilerplate, options and leaks: edits that have one reading, all in the ledger."""

from truegold.pipeline.clean.boilerplate import Boilerplate
from truegold.pipeline.clean.edits import EDITS, Edit, clean_code, clean_prose
from truegold.pipeline.clean.golds import GOLD_TYPES, gold_note
from truegold.pipeline.clean.language import language_of
from truegold.pipeline.clean.leaks import Announced, announced_answers, without_answer_line
from truegold.pipeline.clean.options import Options, chosen, find_options
from truegold.pipeline.clean.stage import clean

__all__ = [
    "EDITS",
    "GOLD_TYPES",
    "Announced",
    "Boilerplate",
    "Edit",
    "Options",
    "announced_answers",
    "chosen",
    "clean",
    "clean_code",
    "clean_prose",
    "find_options",
    "gold_note",
    "language_of",
    "without_answer_line",
]
