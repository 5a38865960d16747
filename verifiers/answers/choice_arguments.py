"""The arguments of the verifier `choice` for rows whose prompt lists its options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

from truegold.verifiers.answers.choice import ChoiceVerifier
from truegold.verifiers.extract.listed_options import Options, find_options

LETTER_GOLD = re.compile(r"\s*\(?[A-J]\)?\s*")
"""A gold that is the letter of an option."""


def chosen_letters(options: Options, gold: str) -> str | None:
    """Return the letters that gold names, by letter or by the text of a single option, or None if it names none."""
    plain = re.sub(r"[\s,，、;；$(){}（）.]|\\(?:text|textbf|mathrm|mathbf)", "", gold)
    if 1 < len(plain) <= len(options.texts) and re.fullmatch("[A-J]+", plain):
        ordered = "".join(sorted(set(plain)))
        return ordered if ordered == plain and set(plain) <= set(options.letters) else None
    if options.may_be_parts and not re.fullmatch("[A-Ja-j]", plain):
        return None
    verifier = ChoiceVerifier()
    info = {"options": list(options.texts)}
    named = [letter for letter in options.letters if verifier(f"\\boxed{{{gold}}}", letter, info=info).passed]
    return named[0] if len(named) == 1 else None


def choice_arguments(row: Mapping[str, Any]) -> str | None:
    """Return the arguments of the verifier `choice`, where the prompt lists its options whole and gold is one of them.

    None if the row is not a choice question, or has its options already.
    """
    arguments = orjson.loads(row["verifier_args"] or "{}")
    if "options" in arguments or row["gold"] is None or (options := find_options(row["prompt"])) is None:
        return None
    if (letters := chosen_letters(options, row["gold"])) is None:
        return None
    changed = {**arguments, "options": list(options.texts), **({"multiple": True} if len(letters) > 1 else {})}
    return orjson.dumps(changed, option=orjson.OPT_SORT_KEYS).decode()
