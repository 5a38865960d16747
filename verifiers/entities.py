"""Decodes HTML entities in problems and answers.

    decode_entities("&frac12;, &#189;, &amp;frac12;")      "½, ½, ½"
    decode_entities("a & b; &nosuchname;")                 unchanged

Entities of ASCII letters, digits, `#` and `;` are kept, since decoding them could form a new entity.
"""

from __future__ import annotations

import re
from html import unescape
from html.entities import html5

_AMPERSANDS = r"&(?:(?:amp|AMP|#38|#[xX]26);)*"
_ENTITY = re.compile(
    rf"{_AMPERSANDS}(?P<name>[A-Za-z][A-Za-z0-9]{{1,30}}|#\d{{2,7}}|#[xX][0-9A-Fa-f]{{2,6}});", re.ASCII
)
"""An entity, which may be escaped several times: "&lt;", "&#60;", "&amp;lt;"."""


def decode_entities(text: str) -> str:
    """Return the text with entities replaced by their characters: `<` for `&lt;` and for `&amp;lt;`."""
    return _ENTITY.sub(_decode, text) if "&" in text and ";" in text else text


def _decode(match: re.Match[str]) -> str:
    name = match["name"]
    if name[0] != "#" and f"{name};" not in html5:
        return match[0]
    character = unescape(f"&{name};")
    stays = not 1 <= len(character) <= 2 or character in ("#", ";") or (character.isascii() and character.isalnum())
    return match[0] if stays or "\ufffd" in character else character
