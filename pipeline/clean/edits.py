r"""The edits of one text, step by step, so that every change can be told with its reason.

    "How many&nbsp;apples?<br>"  ->  html_entities  ->  html_tags  ->  whitespace  ->  "How many apples?"

The steps run in rounds until nothing changes any more: what one of them uncovers, an earlier one may have to clean.
Of code only CRLF and NUL are changed: its indentation and its strings are its meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import get_args

from truegold.pipeline.clean.characters import drop_control_characters, simplify_whitespace, unify_encoding
from truegold.pipeline.clean.latex import (
    drop_stray_dollar,
    halve_backslashes,
    repair_commands,
    restore_backslashes,
    unescape_newlines,
)
from truegold.pipeline.clean.markup import decode_entities, replace_tags
from truegold.pipeline.config.stages import EditName
from truegold.pipeline.text.encodings import repair_mojibake

MAX_ROUNDS = 6
"""Rounds over one text. Ordinary texts need two; this stops a text that was made to uncover something each time."""

Step = tuple[str, Callable[[str], str]]
"""A reason and the function that makes the edit."""

PROSE: tuple[Step, ...] = (
    ("mojibake", repair_mojibake),
    ("damaged_latex", repair_commands),
    ("control_characters", drop_control_characters),
    ("html_entities", decode_entities),
    ("html_tags", replace_tags),
    ("unicode", unify_encoding),
    ("whitespace", simplify_whitespace),
    ("doubled_backslashes", halve_backslashes),
    ("written_newlines", unescape_newlines),
    ("lost_backslashes", restore_backslashes),
    ("stray_dollar", drop_stray_dollar),
)
"""The steps of a round, in order. Mojibake and damaged LaTeX come first: their remains are control characters."""

CODE: tuple[Step, ...] = (
    ("control_characters", lambda text: text.replace("\x00", "")),
    ("whitespace", lambda text: text.replace("\r\n", "\n")),
)
"""The steps for a program or a prompt made of code."""

EDITS: tuple[EditName, ...] = get_args(EditName)
"""All reasons for which a row may be edited."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One step that changed a text."""

    reason: str
    """The name of the step."""
    before: str
    """The text before the step."""
    after: str
    """The text after it."""


def clean_prose(text: str, skip: Collection[str] = (), extra_steps: Iterable[Step] = ()) -> list[Edit]:
    """Return the edits that clean a text, none where it is clean. `extra_steps` come after the common ones."""
    steps = [step for step in (*PROSE, *extra_steps) if step[0] not in skip]
    edits: list[Edit] = []
    for _ in range(MAX_ROUNDS):
        round_edits = _run_steps(text, steps)
        if not round_edits:
            break
        edits += round_edits
        text = round_edits[-1].after
    return edits


def clean_code(text: str, skip: Collection[str] = ()) -> list[Edit]:
    """Return the edits that a program or a prompt made of code gets."""
    return _run_steps(text, [step for step in CODE if step[0] not in skip])


def _run_steps(text: str, steps: Iterable[Step]) -> list[Edit]:
    edits = []
    for reason, step in steps:
        after = step(text)
        if after != text:
            edits.append(Edit(reason, text, after))
            text = after
    return edits
