"""Stage `clean`: characters, markup, boilerplate, options and leaks: edits that have one reading, all in the ledger."""

from truegold.pipeline.clean.boilerplate import Boilerplate
from truegold.pipeline.clean.edits import EDITS, Edit, clean_code, clean_prose
from truegold.pipeline.clean.golds import GOLD_TYPES, gold_note
from truegold.pipeline.clean.language import language_of
from truegold.pipeline.clean.leaks import AnnouncedAnswer, announced_answers, drop_answer_line
from truegold.pipeline.clean.options import Options, chosen_letters, find_options
from truegold.pipeline.clean.stage import clean

__all__ = [
    "EDITS",
    "GOLD_TYPES",
    "AnnouncedAnswer",
    "Boilerplate",
    "Edit",
    "Options",
    "announced_answers",
    "chosen_letters",
    "clean",
    "clean_code",
    "clean_prose",
    "drop_answer_line",
    "find_options",
    "gold_note",
    "language_of",
]
