r"""Texts without what makes no difference: one way of writing each formula, no drawings, no requests for a form.

"$\dfrac12\,x \leq 1{,}000$. Express your answer as a fraction."  ->  "$\frac{1}{2} x ≤ 1000$."
"""

from __future__ import annotations

import hashlib
import re

_DRAWING = re.compile(r"\[asy\].*?(?:\[/asy\]|$)", re.DOTALL)
_FORM_REQUEST = re.compile(
    r"(?:^|(?<=[.?!\n]))\s*\(?(?:please )?(?:express|enter|give|write|round|leave|state|provide|simplify|put|submit)"
    r" (?:your|the final|the answers?|all (?:possible |the )?(?:values|solutions|answers)|the solutions|answers?|as )"
    r"[^?]*?(?:[.](?=\s|$)|$)",
    re.IGNORECASE,
)
_ENDS_COMMAND = r"(?![a-zA-Z])"
_COMMANDS = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\\\$", " "),
        (r"\\(?:begin|end)\s*\{\w+\*?\}(?:\s*\{[|clr ]+\})?|\\hline|(?<!\\)&|\\\\", " "),
        (r"\\%", "%"),
        (rf"\^\s*\{{?\s*\\circ\s*\}}?|\\degree{_ENDS_COMMAND}", " "),
        (r"\\[dtc]frac", r"\\frac"),
        (r"\\frac\s*(\d)\s*(\d)", r"\\frac{\1}{\2}"),
        (
            rf"\\(?:left|right|[bB]igg?|displaystyle|limits|q?quad|[lc]dots|dots[bmc]?){_ENDS_COMMAND}|\\[,;!: ]",
            " ",
        ),
        (
            r"\\(?:text|math(?:rm|bf|bb|cal)|text(?:bf|it)|operatorname|bold|bm|boldsymbol|vec|overline|mbox|rm|bf|it|cal)"
            + _ENDS_COMMAND,
            " ",
        ),
        (rf"\\(?:le|leq|leqslant){_ENDS_COMMAND}", "≤"),
        (rf"\\(?:ge|geq|geqslant){_ENDS_COMMAND}", "≥"),
        (rf"\\neq?{_ENDS_COMMAND}", "≠"),
        (rf"\\(?:times|cdot|ast){_ENDS_COMMAND}", "*"),
        (rf"\\div{_ENDS_COMMAND}", "/"),
        (rf"\\pi{_ENDS_COMMAND}", "π"),
    )
)
_GROUPED = re.compile(r"(?<=\d)(?:,|\{,\})(?=\d{3}(?!\d))")
_SIGNS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-", "—": "-", "：": ":", "∶": ":", "﹕": ":"})
_SIGNS |= str.maketrans({"％": "%", "°": " ", "~": " "})


def unify_layout(text: str) -> tuple[str, str]:
    """Return the text in one layout, and a digest of its drawings, empty where there are none."""
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
    return _GROUPED.sub("", text), drawing
