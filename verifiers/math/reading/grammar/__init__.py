r"""The grammar of one expression, for school and contest mathematics.

    relation < union, difference < sum, ± < product, quotient, side by side < sign < power, !, %, ° < atom

Where notation is ambiguous, the reading is fixed here: `2\frac13` is a mixed number, `1/2x` is (1/2)x (both as the
notation says), `\sin 2x` takes the product and `\sin(x)y` does not, `f(x)` is an application for the letters f, g, h
and a product otherwise, `x1` is x with a subscript. What is no expression raises Unreadable, what is nested too deeply
TooLarge. Not covered: lists without brackets, and words (`answers`).
"""

from truegold.verifiers.math.reading.grammar.levels import ExpressionReader

__all__ = ["ExpressionReader"]
