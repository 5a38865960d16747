"""Rules for notation that readers take for something else.

4:00 p.m.               a time of day, no ratio that 5:00 would equal
5 cm, 5 kg              the same number of unlike units
i=3, e=5                letters that the problem uses as unknowns, no constants
\\begin{array}{c|c}      what stands in the braces says how columns are set
x \\equiv 3 \\pmod{7}     a class of numbers, of which 10 is one as well
"""

from __future__ import annotations

from truegold.verifiers.audit.variants.forms import Congruence, Matrix, TimeOfDay, WithUnit
from truegold.verifiers.audit.variants.neighbours import shift
from truegold.verifiers.audit.variants.rules import Rule, rule
from truegold.verifiers.audit.variants.words import UNLIKE

_SQUARE = r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}"
_TIME = r"4:30\text{ p.m.}"
_CLASS = r"x \equiv 3 \pmod{7}"
_HALF_DAY = 12


def _as_arrays(form: Matrix) -> list[str]:
    """The matrix as an array, with the columns specified in several ways."""
    width = len(form.rows[0])
    specifications = ("c" * width, "r" * width, "|".join("c" * width), f"@{{}}{'l' * width}@{{}}", f"*{{{width}}}{{c}}")
    return [_array(form, specification) for specification in specifications]


def _array(form: Matrix, specification: str) -> str:
    left, right = "()" if form.environment == "pmatrix" else "[]"
    body = " \\\\ ".join(" & ".join(map(str, row)) for row in form.rows)
    return f"\\left{left}\\begin{{array}}{{{specification}}} {body} \\end{{array}}\\right{right}"


def _array_with_other_entry(form: Matrix) -> str:
    (first, *row), *rows = form.rows
    body = " \\\\ ".join(" & ".join(map(str, cells)) for cells in ((shift(first), *row), *rows))
    return f"\\left(\\begin{{array}}{{{'c' * (len(row) + 1)}}} {body} \\end{{array}}\\right)"


def _spell_time(form: TimeOfDay) -> list[str]:
    letters = form.half.upper() + "M"
    return [f"{form.digits} {letters}", f"{form.digits} {letters.lower()}", f"{form.digits}\\text{{ {letters}}}",
            f"{form.digits} {form.half}.m.", f"{form.digits}\\,\\text{{{form.half}.m.}}"]  # fmt: skip


def _as_24_hours(form: TimeOfDay) -> str:
    hour = form.hour % _HALF_DAY + (_HALF_DAY if form.half == "p" else 0)
    return f"{hour}:{form.minute:02}"


def _with_equal_ratio(form: TimeOfDay) -> str | None:
    """Another time whose hour is to its minutes as this one's, so that a reader of ratios takes the two for one."""
    if form.minute == 0:
        return form.spell(form.hour % _HALF_DAY + 1, 0, form.half)
    if form.hour % 2 == 0 and form.minute % 2 == 0:
        return form.spell(form.hour // 2, form.minute // 2, form.half)
    return form.spell(2 * form.hour, 2 * form.minute, form.half) if form.hour <= 6 and form.minute < 30 else None


def _with_unlike_unit(form: WithUnit) -> list[str]:
    return [f"{form.bare}\\text{{ {unit}}}" for unit in UNLIKE.get(form.unit, ())]


def _spell_class(form: Congruence) -> list[str]:
    start = f"{form.variable} \\equiv {form.residue}"
    return [f"{start} \\mod {form.modulus}", f"{start} \\ (\\text{{mod }} {form.modulus})",
            f"{start} \\bmod {form.modulus}", f"{start} (mod {form.modulus})"]  # fmt: skip


# fmt: off
NOTATION_REWRITES: tuple[Rule, ...] = (
    rule("time spelling", (_TIME, "4:30 PM"), "time of day",
         "A time of day with other letters for the half of the day.", _spell_time),
    rule("24-hour time", (_TIME, "16:30"), "time of day",
         "A time of the afternoon in the notation of 24 hours.", _as_24_hours, when=lambda form: form.half == "p"),
    rule("letter as unknown", ("i=3", "i = 3"), "equation",
         "A value for a letter that is a constant elsewhere, with other blanks or without its letter.",
         "<variable> = <right>", r"<variable>\,=\,<right>", "$<variable>=<right>$",
         when=lambda form: form.variable in "ei"),
    rule("array", (_SQUARE, r"\left(\begin{array}{cc} 1 & 2 \\ 3 & 4 \end{array}\right)"), "matrix",
         "An array, whatever says how its columns are set.", _as_arrays),
    rule("other representative", (_CLASS, r"x \equiv 10 \pmod{7}"), "congruence",
         "Another number of the same class.",
         lambda form: [form.spell(form.residue + form.modulus, form.modulus),
                       form.spell(form.residue - form.modulus, form.modulus)]),
    rule("congruence spelling", (_CLASS, r"x \equiv 3 \mod 7"), "congruence",
         "The modulus with another command, in brackets, or as plain text.", _spell_class),
)

NOTATION_EDITS: tuple[Rule, ...] = (
    rule("other time", (_TIME, r"5:30\text{ p.m.}"), "time of day", "An hour later.", "<other>"),
    rule("other half of the day", (_TIME, r"4:30\text{ a.m.}"), "time of day", "The morning for the afternoon.",
         lambda form: form.spell(form.hour, form.minute, "a" if form.half == "p" else "p")),
    rule("time of equal ratio", (_TIME, r"2:15\text{ p.m.}"), "time of day",
         "A time whose hour and minutes have the same ratio.", _with_equal_ratio),
    rule("unlike unit", (r"5\text{ cm}", r"5\text{ kg}"), "with unit",
         "The same number of a unit of another quantity.",
         _with_unlike_unit, when=lambda form: form.amount.value and form.power == 1),
    rule("constant for an unknown", ("e=5", "e=2.718"), "equation",
         "The value of the constant that the letter is elsewhere.",
         lambda form: "e=2.718" if form.variable == "e" else r"i=\sqrt{-1}", when=lambda form: form.variable in "ei"),
    rule("array entry+1", (_SQUARE, r"\left(\begin{array}{cc} 2 & 2 \\ 3 & 4 \end{array}\right)"), "matrix",
         "An array whose first entry is one higher.", _array_with_other_entry),
    rule("other residue", (_CLASS, r"x \equiv 4 \pmod{7}"), "congruence", "The next class.", "<other>"),
    rule("other modulus", (_CLASS, r"x \equiv 3 \pmod{8}"), "congruence", "The same residue of another modulus.",
         lambda form: form.spell(form.residue, form.modulus + 1)),
    rule("equality for a congruence", (_CLASS, "x=3"), "congruence", "One number of the class alone.",
         "<variable>=<residue>", policy=True),
)
# fmt: on
