"""Right and wrong answers made from a gold answer by rules, in tables that can be read row by row.

spelling, words      how values are written; units and words whose meaning is certain
forms, reading       what a gold is, and how that is told
neighbours, rules    one wrong answer of the same form; the engine of the tables
rewrites, edits      the tables: REWRITES keep the meaning, EDITS change it
"""

from truegold.verifiers.audit.variants.edits import EDITS, edits, wrong_answer
from truegold.verifiers.audit.variants.forms import Form
from truegold.verifiers.audit.variants.reading import form_of
from truegold.verifiers.audit.variants.rewrites import REWRITES, rewrites
from truegold.verifiers.audit.variants.rules import MAX_VARIANT_CHARS, Rule, Variant

__all__ = [
    "EDITS",
    "MAX_VARIANT_CHARS",
    "REWRITES",
    "Form",
    "Rule",
    "Variant",
    "edits",
    "form_of",
    "rewrites",
    "wrong_answer",
]
