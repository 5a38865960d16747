"""How one row is cleaned: its texts, its verifier where it is a multiple-choice question, and what is noted of it."""

from truegold.pipeline.cleaning.boilerplate import Boilerplate
from truegold.pipeline.cleaning.edits import EDITS, Edit, clean_code, clean_prose
from truegold.pipeline.cleaning.golds import GOLD_TYPES, gold_note
from truegold.pipeline.cleaning.language import language_of
from truegold.pipeline.cleaning.leaks import Announced, announced_answers, without_answer_line
from truegold.pipeline.cleaning.options import Options, chosen, find_options

__all__ = [
    "EDITS",
    "GOLD_TYPES",
    "Announced",
    "Boilerplate",
    "Edit",
    "Options",
    "announced_answers",
    "chosen",
    "clean_code",
    "clean_prose",
    "find_options",
    "gold_note",
    "language_of",
    "without_answer_line",
]
