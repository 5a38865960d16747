r"""Rules about answers that can be guessed: what is left of a multiple-choice question, yes and no.

Some rows and their findings:

    "Which of the following is prime?"  gold "B"                                   choice_remnant: options are missing
    "Which is prime? (A) 4 (B) 8 (C) 9"  gold "7"                                  choice_remnant: gold is no option
    "Which is prime? (A) 4 (B) 7 (C) 9"  gold "B", verifier choice                 nothing: `clean` made it a choice
    "Is 91 prime?"  gold "No"                                                      yes_no_answer
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from truegold.pipeline.flag.rules.detector import Finding, detector
from truegold.pipeline.tables.rows import Row
from truegold.pipeline.text.golds import truth_of
from truegold.pipeline.text.options import Options, chosen_letters, find_options
from truegold.pipeline.text.prose import FORMULA, ending, sentences, without_formulas

MAX_PROMPT_CHARS = 50_000

_LETTER = re.compile(r"\\?(?:text|textbf|mathrm|mathbf)?\s?\{?\s?\(?\s?([A-H])\s?\)?\s?\}?[.。]?")
_WHICH_FOLLOWING = re.compile(
    r"\bwhich\s+(?:one\s+|ones\s+|two\s+)?of\s+(?:the\s+following|these)\b(?![^.?!]{0,60}\b(?:above|given)\b)"
    r"|下列[^，。？?]{0,30}(?:正确|错误|不正确|成立|符合|属于)的(?:是|有|个数)|下列[^，。？?]{0,20}中",
    re.IGNORECASE,
)
_LISTED = re.compile(
    r"\n\s*(?:[-*•]|\(?[ivx]{1,4}[.)]|\(?\d{1,2}[.)]|[①-⑳])|[①-⑳]|\b(?:I|II)[.)]\s|\([a-eA-E]\)|[:：]\s*\S|\[asy\]|\|.*\|"
)
_SOME_LABELS = re.compile(r"(?<!\w)[(（]\s?([A-E])\s?[)）]")


@detector("choice_remnant", version="1")
def choice_remnant(row: Row) -> list[Finding]:
    """A multiple-choice question came without its options, or gold is none of them."""
    prompt, gold = row["prompt"], row["gold"]
    if row["domain"] == "code" or row.get("verifier") == "choice" or not gold or len(prompt) > MAX_PROMPT_CHARS:
        return []
    if orjson.loads(row.get("verifier_args") or "{}").get("options"):
        return []
    options = find_options(prompt)
    evidence = _lost_options(prompt, gold) if options is None else _foreign_gold(prompt, gold, options)
    return [] if evidence is None else [Finding("choice_remnant", evidence=evidence)]


def _foreign_gold(prompt: str, gold: str, options: Options) -> dict[str, Any] | None:
    """Return evidence that gold is none of the options. Conditions (A) and (B) of a question are no options."""
    if chosen_letters(options, gold) is not None or options.may_be_parts or prompt.rstrip().endswith(("?", "？")):
        return None
    return {"gold_is_no_option": gold[:200], "options": list(options.texts)}


def _lost_options(prompt: str, gold: str) -> dict[str, Any] | None:
    """Return evidence that options were lost: gold is a letter, or the question asks to choose among what follows."""
    letter = _LETTER.fullmatch(gold.strip())
    if letter and not re.search(rf"(?<![a-z]){letter[1]}(?![a-z])", prompt):
        return {"gold": gold, "options": "missing"}
    if (question := _question_before_options(prompt)) is not None:
        return {"asks": ending(question), "options": "missing"}
    labels = "".join(sorted(set(_SOME_LABELS.findall(prompt)))) if letter else ""
    has_gap = len(labels) >= 2 and not "ABCDE".startswith(labels)
    return {"gold": gold, "labels": list(labels)} if has_gap else None


def _question_before_options(prompt: str) -> str | None:
    """Return the last sentence where it asks to choose among what follows, and nothing follows."""
    prose = without_formulas(prompt).strip()
    match = _WHICH_FOLLOWING.search(prose)
    if match is None or _LISTED.search(prose):
        return None
    parts = sentences(prose)
    last = parts[-1] if parts else ""
    if not _WHICH_FOLLOWING.search(last) or FORMULA in last.split("following", 1)[-1] or last.count(",") >= 2:
        return None
    return last


@detector("yes_no_answer", version="1")
def yes_no_answer(row: Row) -> list[Finding]:
    """The answer is yes or no, true or false: a guess is right half the time, and so is every second reward."""
    if row["domain"] == "code" or not row["gold"] or (answer := truth_of(row["gold"])) is None:
        return []
    return [Finding("yes_no_answer", evidence={"gold": row["gold"], "read_as": answer})]
