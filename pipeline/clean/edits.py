r"""The edits of one text, step by step, so that every change can be told with its reason.

    "How many&nbsp;apples?<br>"  ->  html_entities  ->  html_tags  ->  whitespace  ->  "How many apples?"

The steps run in rounds until nothing changes any more: what one of them uncovers, an earlier one may have to clean.
Code is left alone but for CRLF and NUL: its indentation and its strings are its meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import get_args

from truegold.pipeline.clean.characters import one_encoding, plain_whitespace, without_control
from truegold.pipeline.clean.latex import (
    lost_backslashes,
    paired_dollars,
    single_backslashes,
    undamaged_commands,
    written_newlines,
)
from truegold.pipeline.clean.markup import without_entities, without_tags
from truegold.pipeline.config.stages import EditName

MAX_ROUNDS = 6
"""Rounds over one text. Ordinary texts need two; this stops one that was made to uncover something each time."""

Step = tuple[str, Callable[[str], str]]

PROSE: tuple[Step, ...] = (
    ("damaged_latex", undamaged_commands),
    ("control_characters", without_control),
    ("html_entities", without_entities),
    ("html_tags", without_tags),
    ("unicode", one_encoding),
    ("whitespace", plain_whitespace),
    ("doubled_backslashes", single_backslashes),
    ("written_newlines", written_newlines),
    ("lost_backslashes", lost_backslashes),
    ("stray_dollar", paired_dollars),
)
"""In the order of the rounds. Damaged LaTeX comes first, because its remains are control characters."""

CODE: tuple[Step, ...] = (
    ("control_characters", lambda text: text.replace("\x00", "")),
    ("whitespace", lambda text: text.replace("\r\n", "\n")),
)

EDITS: tuple[EditName, ...] = get_args(EditName)
"""All reasons for which a row may be edited."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One step that changed a text."""

    reason: str
    before: str
    after: str


def clean_prose(text: str, skip: Collection[str] = (), more: Iterable[Step] = ()) -> list[Edit]:
    """The edits that clean a text, none where it is clean. `more`: steps of this text's own, after the common ones."""
    steps = [step for step in (*PROSE, *more) if step[0] not in skip]
    edits: list[Edit] = []
    for _ in range(MAX_ROUNDS):
        made = _round(text, steps)
        if not made:
            break
        edits += made
        text = made[-1].after
    return edits


def clean_code(text: str, skip: Collection[str] = ()) -> list[Edit]:
    """The edits that a program or a prompt made of code gets."""
    return _round(text, [step for step in CODE if step[0] not in skip])


def _round(text: str, steps: Iterable[Step]) -> list[Edit]:
    made = []
    for reason, step in steps:
        after = step(text)
        if after != text:
            made.append(Edit(reason, text, after))
            text = after
    return made
