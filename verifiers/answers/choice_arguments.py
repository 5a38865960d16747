"""Makes the arguments of the verifier `choice` for rows whose prompt lists the options: `{"options": ["40", "41"]}`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

from truegold.verifiers.answers.choice import ChoiceVerifier
from truegold.verifiers.answers.gold_words import truth_options
from truegold.verifiers.extract.listed_options import Options, find_options, worded_options

LETTER_GOLD = re.compile(r"\s*(?:\(?[A-J]\)?|\([K-Z]\))\s*")
"""A gold that is the letter of an option."""


def chosen_letters(options: Options, gold: str) -> str | None:
    """Return the letters of the options that gold names, by letters or by one option's text, or None."""
    plain = re.sub(r"[\s,，、;；$(){}（）.]|\\(?:text|textbf|mathrm|mathbf)", "", gold)
    if 1 < len(plain) <= len(options.texts) and re.fullmatch("[A-Z]+", plain):
        ordered = "".join(sorted(set(plain)))
        return ordered if ordered == plain and set(plain) <= set(options.letters) else None
    if options.may_be_parts and not re.fullmatch("[A-Ja-j]", plain):
        return None
    verifier = ChoiceVerifier()
    info = {"options": list(options.texts)}
    named = [letter for letter in options.letters if verifier(f"\\boxed{{{gold}}}", letter, info=info).passed]
    return named[0] if len(named) == 1 else None


def choice_arguments(row: Mapping[str, Any]) -> str | None:
    """Return the arguments of the verifier `choice` if the prompt lists the options and gold is one of them, else None.

    Options without letters count if gold is one of them in words. If gold is `yes` or `no`, these two are the options.
    A row that already has options gives None too.
    """
    arguments = orjson.loads(row["verifier_args"] or "{}")
    if "options" in arguments or row["gold"] is None:
        return None
    texts: tuple[str, ...] = ()
    letters: str | None = None
    if (options := find_options(row["prompt"])) is not None:
        texts, letters = options.texts, chosen_letters(options, row["gold"])
    elif not arguments:
        texts = worded_options(row["prompt"], row["gold"]) or truth_options(row["gold"])
    if not texts or (options is not None and letters is None):
        return None
    changed = {**arguments, "options": list(texts), **({"multiple": True} if letters and len(letters) > 1 else {})}
    return orjson.dumps(changed, option=orjson.OPT_SORT_KEYS).decode()
