"""Entities of HTML in golds and answers: `&frac12;` is one half, and the cells of a matrix stay what they are."""

from __future__ import annotations

from tables import rows

import truegold.verifiers as tv
from truegold.verifiers.entities import decode_entities

PAIRS = {
    "&frac12;": "\\frac12",
    "&#189;": "0.5",
    "&#xBD;": "0.5",
    "&amp;frac12;": "1/2",
    "1&half;": "1.5",
    "1&#47;2": "0.5",
    "&minus;3": "-3",
    "&pm;2": "\\pm 2",
    "3 &times; 4": "12",
    "1&divide;2": "0.5",
    "&radic;2": "\\sqrt2",
    "&pi;r&sup2;": "\\pi r^2",
    "45&deg;": "45",
    "x &le; 3": "x\\le 3",
    "x&lt;3": "x<3",
    "2&nbsp;000": "2000",
    "&infin;": "\\infty",
}


@rows("entity", PAIRS)
def test_an_entity_is_the_character_it_stands_for(entity: str) -> None:
    plain = PAIRS[entity]
    assert tv.verify(f"\\boxed{{{plain}}}", gold=entity).score == 1.0
    assert tv.verify(f"\\boxed{{{entity}}}", gold=plain).score == 1.0
    assert tv.verify("\\boxed{77}", gold=entity).score == 0.0


def test_what_only_looks_like_an_entity_stays() -> None:
    matrix = "\\begin{pmatrix}1&pi; 2\\\\3&4\\end{pmatrix}"
    for text in ("a & b; c", "&nosuchname;", "AT&T", "1 &amp", matrix.replace("pi;", "2;")):
        assert decode_entities(text) == text
    cells = "\\begin{pmatrix}1 & 2\\\\3 & 4\\end{pmatrix}"
    assert tv.verify(f"\\boxed{{{cells}}}", gold=cells.replace(" ", "")).score == 1.0
