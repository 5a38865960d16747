r"""Brings a problem into one layout before it is read. Drawings, and requests for a form of the answer, are removed.

"$\dfrac12\,x \leq 1{,}000$. Express your answer as a fraction."  ->  "$\frac{1}{2} x ≤ 1000$. "
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from importlib.resources import files
from typing import NamedTuple

_DRAWING = re.compile(r"\[asy\].*?(?:\[/asy\]|$)", re.DOTALL)
"""A drawing in Asymptote: `[asy] draw((0,0)--(1,1)); [/asy]`."""
_FORM_REQUEST = re.compile(
    r"(?:^|(?<=[.?!\n]))\s*\(?(?:please )?(?:express|enter|give|write|round|leave|state|provide|simplify|put|submit)"
    r" (?:your|the final|the answers?|all (?:possible |the )?(?:values|solutions|answers)|the solutions|answers?|as )"
    r"[^?]*?(?:[.](?=\s|$)|$)",
    re.IGNORECASE,
)
"""A sentence that requests a form of the answer: "Please round your answer to the nearest cent."."""
_LAYOUT_TABLE = tomllib.loads(files(__package__).joinpath("latex_layout.toml").read_text("utf-8"))
_COMMANDS = [(re.compile(pattern), replacement) for pattern, replacement in _LAYOUT_TABLE["commands"]]
_GROUPING_COMMA = re.compile(r"(?<=\d)(?:,|\{,\})(?=\d{3}(?!\d))")
r"""The comma of "1,000" and of "1{,}000"."""
_SIGNS = str.maketrans("×·÷−–—：∶﹕％°~", "**/---:::%  ")
"""Signs of several spellings, each with its ASCII form. Degree signs and ties become spaces."""


class UnifiedText(NamedTuple):
    """A problem in one layout."""

    text: str
    drawing: str
    """A digest of the drawings, empty for a text without drawings."""


def unify_layout(text: str) -> UnifiedText:
    """Return the text in one layout without its drawings, and a digest of the drawings."""
    drawing = ""
    if "[asy]" in text:
        drawings = re.sub(r"\s", "", "".join(_DRAWING.findall(text)))
        drawing = hashlib.blake2b(drawings.encode("utf-8", "replace")).hexdigest()
        text = _DRAWING.sub(" ", text)
    text = _FORM_REQUEST.sub(" ", text)
    if "\\" in text:
        for pattern, replacement in _COMMANDS:
            text = pattern.sub(replacement, text)
    if not text.isascii() or "~" in text:
        text = text.translate(_SIGNS)
    if "**" in text:
        text = text.replace("**", "^")
    return UnifiedText(_GROUPING_COMMA.sub("", text), drawing)
