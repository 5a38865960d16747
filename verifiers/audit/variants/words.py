"""Units and words that the audit knows: only for these is it certain what dropping, converting or negating does."""

from __future__ import annotations

from fractions import Fraction

CONVERSIONS: dict[str, tuple[str, Fraction]] = {
    "mm": ("cm", Fraction(1, 10)),
    "cm": ("mm", Fraction(10)),
    "m": ("cm", Fraction(100)),
    "km": ("m", Fraction(1000)),
    "meters": ("centimeters", Fraction(100)),
    "centimeters": ("millimeters", Fraction(10)),
    "kilometers": ("meters", Fraction(1000)),
    "feet": ("inches", Fraction(12)),
    "yards": ("feet", Fraction(3)),
    "hours": ("minutes", Fraction(60)),
    "minutes": ("seconds", Fraction(60)),
    "days": ("hours", Fraction(24)),
    "weeks": ("days", Fraction(7)),
    "kg": ("g", Fraction(1000)),
    "kilograms": ("grams", Fraction(1000)),
}
"""A unit, a smaller or larger one for the same quantity, and how many of that make one."""

UNLIKE: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("mm", "cm", "m", "km", "meters", "centimeters", "feet", "inches", "yards", "miles"), ("kg", "hours")
    ),
    **dict.fromkeys(("hours", "minutes", "seconds", "days", "weeks", "months", "years"), ("cm", "pounds")),
    **dict.fromkeys(("kg", "kilograms", "grams", "pounds", "ounces"), ("meters", "liters")),
    **dict.fromkeys(("liters", "gallons"), ("kg", "hours")),
    **dict.fromkeys(("mph", "miles per hour"), ("knots", "miles")),
    **dict.fromkeys(("students", "people", "children", "girls", "boys"), ("dollars", "hours")),
}
"""A unit, and others of which the same number is another quantity."""

_MEASURES = {
    *CONVERSIONS,
    *(other for other, _ in CONVERSIONS.values()),
    *("inch", "inches", "foot", "ft", "yard", "mile", "miles", "meter", "centimeter", "hour", "minute", "second"),
    *("day", "week", "month", "months", "year", "years", "liters", "gallons", "pounds", "ounces", "mph", "s"),
    *("square meters", "square feet", "square inches", "square centimeters", "square miles", "cubic feet"),
    *("cubic inches", "cubic centimeters", "miles per hour", "sq. units", "sq units"),
}
_COUNTED = {
    *("unit", "units", "square units", "cubic units", "ways", "integers", "numbers", "points", "students", "people"),
    *("children", "girls", "boys", "tickets", "coins", "apples", "books", "pages", "triangles", "squares", "marbles"),
    *("games", "cards", "cookies", "pieces", "bags", "pencils", "pens", "cars", "dogs", "cats", "chairs", "eggs"),
}
UNITS = frozenset(_MEASURES | _COUNTED)

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_OPPOSITES = (
    *(("even", "odd"), ("yes", "no"), ("true", "false"), ("positive", "negative"), ("increasing", "decreasing")),
    *(("convergent", "divergent"), ("converges", "diverges"), ("prime", "composite"), ("rational", "irrational")),
    *(("left", "right"), ("red", "blue"), ("ellipse", "hyperbola"), ("parabola", "circle"), ("linear", "quadratic")),
    *(("odd function", "even function"), ("acute", "obtuse"), ("first", "second"), ("north", "south")),
)
OTHER_WORD: dict[str, str] = {
    **{a: b for pair in _OPPOSITES for a, b in (pair, pair[::-1])},
    **{day.lower(): DAYS[(index + 1) % 7] for index, day in enumerate(DAYS)},
    **{month.lower(): MONTHS[(index + 1) % 12] for index, month in enumerate(MONTHS)},
}
"""A word in lower case and another one that would be a wrong answer for it."""

NEGATIONS = frozenset({"no", "not", "none", "neither", "never", "nothing", "nobody"})
KNOWN_WORDS = frozenset(OTHER_WORD) | NEGATIONS | {"both", "always", "sometimes", "undefined", "infinite"}
NUMERALS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
)
