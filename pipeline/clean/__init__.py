"""Stage `clean`: characters, markup, boilerplate, options and leaks: edits that have one reading, all in the ledger."""

from truegold.pipeline.clean.edits import EDITS, Boilerplate, Edit, clean_code, clean_prose
from truegold.pipeline.clean.stage import clean
from truegold.pipeline.text.golds import GOLD_TYPES, gold_note
from truegold.pipeline.text.language import language_of
from truegold.pipeline.text.leaks import AnnouncedAnswer, announced_answers, drop_answer_line
from truegold.pipeline.text.options import Options, chosen_letters, find_options

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
