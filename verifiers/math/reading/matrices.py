r"""Matrices in other spellings than LaTeX's environments, as environments.

\begin{pmatrix} 1 & 2 \ 3 & 4 \end{pmatrix}     a backslash of each row was lost
\begin{pmatrix} 1 & 2 \\[4pt] 3 & 4 \end{pmatrix}
\pmatrix{1 & 2 \cr 3 & 4}     [1 2; 3 4]     Matrix([[1, 2], [3, 4]])
"""

from __future__ import annotations

import re

MAX_MATRIX_CHARS = 1_000
"""Longer texts are left as they are."""

_ROW_GAP = re.compile(r"\\\\\s*\[\s*-?[\d.]{1,6}\s*(?:pt|em|ex|cm|mm|in)\s*\]")
_BODY = re.compile(r"(\\begin\{[a-zA-Z]{0,6}matrix\})((?:[^\\]|\\(?!end|\\)){1,800})(\\end)")
_LOST_ROW = re.compile(r"\\(?=[\s\d-])")
_PLAIN_TEX = re.compile(r"\\([pbvBV]?)matrix\s*\{([^{}]{1,400}(?:\{[^{}]*\}[^{}]{0,400}){0,40})\}")
_SEMICOLONS = re.compile(r"\[\s*(-?[\d./]+(?:\s+-?[\d./]+)*(?:\s*;\s*-?[\d./]+(?:\s+-?[\d./]+)*)+)\s*\]")
_CONSTRUCTOR = re.compile(r"(?:np\.|sp\.|sympy\.)?(?:Matrix|array|matrix)\s*\((\[.*\])\)", re.DOTALL)


def with_matrix_environments(text: str) -> str:
    """Return the text with its matrices as environments of LaTeX."""
    if len(text) > MAX_MATRIX_CHARS or not ("atrix" in text or "\\\\" in text or ";" in text or text.endswith(")")):
        return text
    if "\\\\" in text:
        text = _ROW_GAP.sub(r"\\\\", text)
    elif "matrix}" in text:
        text = _BODY.sub(lambda m: m[1] + _LOST_ROW.sub(r"\\\\", m[2]) + m[3], text)
    if "matrix{" in text or "matrix {" in text:
        text = _PLAIN_TEX.sub(_from_plain_tex, text)
    if ";" in text and (rows := _SEMICOLONS.fullmatch(text)) is not None:
        body = r" \\ ".join(" & ".join(row.split()) for row in rows[1].split(";"))
        return rf"\begin{{bmatrix}} {body} \end{{bmatrix}}"
    constructed = _CONSTRUCTOR.fullmatch(text) if text.endswith("])") else None
    return constructed[1] if constructed is not None else text


def _from_plain_tex(match: re.Match[str]) -> str:
    body = match[2].replace("\\cr", r" \\ ")
    return rf"\begin{{{match[1]}matrix}} {body} \end{{{match[1]}matrix}}"
