r"""HTML that was left in a text: entities, and the tags that only lay it out.

    "AB&nbsp;&lt; 5"                             "AB\u00a0< 5"
    "the following:<br/>① (x-1)<sup>2</sup>"     "the following:\n① (x-1)^{2}"
    "<tr><td>a</td><td>1</td></tr>"              "| a | 1 |\n"
    "if a<b and c>d"                             stays: no tag
    "<img src=...>"                              stays, for the rule `missing_figure` to see

An entity never becomes a letter, a digit, `#` or `;`, so that no new entity can arise. A tag of one letter counts only
beside its closing tag: `<b>` may well be an inequality.
"""

from __future__ import annotations

import re
from html import unescape
from html.entities import html5

_AMPERSANDS = r"&(?:(?:amp|AMP|#38|#[xX]26);)*"
_ENTITY = re.compile(
    rf"{_AMPERSANDS}(?P<name>[A-Za-z][A-Za-z0-9]{{1,30}}|#\d{{2,7}}|#[xX][0-9A-Fa-f]{{2,6}});", re.ASCII
)
_ATTRIBUTES = r"(?:\s+[a-zA-Z][\w:-]{0,30}\s?=\s?(?:\"[^\"<>]{0,300}\"|'[^'<>]{0,300}'|[\w.#%-]{1,60})){0,12}\s*"
_LAID_OUT = (
    r"p|b|i|u|em|strong|span|div|font|center|small|big|br|hr|ul|ol|li|blockquote|section|article|tbody|thead|table"
    r"|h[1-6]|a"
)
_TAG = re.compile(rf"<(?P<close>/?)(?P<name>{_LAID_OUT}|tr|td|th){_ATTRIBUTES}/?>", re.IGNORECASE)
_SCRIPT = re.compile(r"<(?P<name>sup|sub)>(?P<body>[^<>]{1,60})</(?P=name)>", re.IGNORECASE)
_CELL_END = re.compile(r"</t[dh]>\s{0,20}(?=</tr>)", re.IGNORECASE)
_ORDINAL = re.compile(r"(?:st|nd|rd|th)", re.IGNORECASE)
_CLOSING = re.compile(r"</(?P<name>[a-z])>", re.IGNORECASE)

_BREAKS = frozenset({"br", "hr", "p", "div", "li", "ul", "ol", "table", "tbody", "thead", "section", "article"})
_BREAKS_ALWAYS = frozenset({"br", "hr", "li"})


def decode_entities(text: str) -> str:
    """Return the text with characters for `&lt;` and its like, also where they are escaped twice as in `&amp;lt;`."""
    return _ENTITY.sub(_decode, text) if "&" in text and ";" in text else text


def _decode(match: re.Match[str]) -> str:
    name = match["name"]
    if name[0] != "#" and f"{name};" not in html5:
        return match[0]
    character = unescape(f"&{name};")
    stays = not 1 <= len(character) <= 2 or character in ("#", ";") or (character.isascii() and character.isalnum())
    return match[0] if stays or "\ufffd" in character else character


def replace_tags(text: str) -> str:
    """Return the text with its layout as plain text: line breaks, powers and indices, the cells of a table."""
    if "<" not in text or ">" not in text:
        return text
    paired = {match["name"].lower() for match in _CLOSING.finditer(text)}
    text = _CELL_END.sub(" |", _SCRIPT.sub(_lay_out_script, text))
    return _TAG.sub(lambda match: _lay_out_tag(match, paired), text)


def _lay_out_script(match: re.Match[str]) -> str:
    body = match["body"].strip()
    is_raised = match["name"].lower() == "sup"
    if is_raised and _ORDINAL.fullmatch(body):
        # The text is an ordinal such as 1<sup>st</sup>.
        return body
    return f"{'^' if is_raised else '_'}{{{body}}}"


def _lay_out_tag(match: re.Match[str], paired: set[str]) -> str:
    name = match["name"].lower()
    if len(name) == 1 and name not in paired:
        return match[0]
    if name in ("td", "th"):
        return " | " if match["close"] else ""
    if name == "tr":
        return "\n" if match["close"] else "| "
    breaks = name in _BREAKS_ALWAYS or (name in _BREAKS and match["close"]) or name in ("table", "ul", "ol")
    return "\n" if breaks or name[0] == "h" else ""
