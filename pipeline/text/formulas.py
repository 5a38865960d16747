"""Finds formulas in a text by their delimiters."""

from __future__ import annotations

import re

FORMULA = re.compile(
    r"(?<!\\)\$\$[^$]{1,2000}\$\$|(?<![\\$])\$(?!\$)[^$\n]{1,1000}(?<!\\)\$|\\\([^$]{1,1000}?\\\)|\\\[[^$]{1,2000}?\\\]"
)
"""A formula with its delimiters; the bounds keep a text of dollar signs from taking quadratic time."""
