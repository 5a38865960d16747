r"""Finds questions that have several parts, ask for a proof, have lost their options, or are easily guessed.

Some rows and their findings:

    "... How many apples does Tom have now? And how many pears did he buy?"        multi_part
    "Prove that 12+8 is even."                                                     proof
    "How can she prove that she paid? She has 5 receipts. How many ...?"           no finding: part of a story
    "Which of the following is prime?"  gold "B"                                   choice_remnant: options are missing
    "Which is prime? (A) 4 (B) 8 (C) 9"  gold "7"                                  choice_remnant: gold is not an option
    "Which is prime? (A) 4 (B) 7 (C) 9"  gold "B", verifier choice                 no finding: `clean` made it a choice
    "Which is prime?\n(A) 4\n(B) 7\n(C) 7"  gold "B"                               spoilt_options: two are the same
    "Is 91 prime?"  gold "No"                                                      yes_no_answer
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from truegold.pipeline.flag.rules.detector import Finding, any_of, detector
from truegold.pipeline.tables.rows import Row
from truegold.pipeline.text.prose import FORMULA, ending, is_said_twice, sentences, without_formulas
from truegold.verifiers.answers.choice_arguments import chosen_letters
from truegold.verifiers.answers.gold_words import truth_of
from truegold.verifiers.extract.listed_options import Options, find_options
from truegold.verifiers.extract.listed_options import spoilt_options as what_spoils_options

MAX_PROMPT_CHARS = 50_000
"""Prompts with more characters are not searched for options."""

# multi_part
_QUANTITY = re.compile(rf"\b{any_of('quantity_questions')}\b|多少|几(?!何|乎)|求", re.IGNORECASE)
_PART_LABEL = re.compile(
    r"(?:(?<=\s)|^)\(?([a-e])[.)]\s+|(?<![A-Za-z0-9_])[（(]([1-5])[)）]|(?:(?<=\s)|^)\(?(i{1,3}|iv)\)\s+"
)
"""The label of a part: "(a) ", "a. ", "(1)", "（1）" or "ii) ". The argument of "f(1)" does not match."""
_LABELS = (["a", "b", "c", "d", "e"], ["1", "2", "3", "4", "5"], ["i", "ii", "iii", "iv"])
_INSTRUCTION = re.compile(rf"{any_of('part_orders')}\b|.*[?？]|.*(?:求|多少|证明|写出|计算)", re.IGNORECASE | re.DOTALL)
"""A question or an instruction: "Find the area.", "How many are left?", "求面积"."""
# Questions that do not count as a part. They repeat another question, are part of the story, or ask for another form of
# the first answer ("What is $m+n$?").
_NOT_SEPARATE = re.compile(
    r"(?:that\s+is\b|in\s+other\s+words|i\.e\.|hint\b)|.*[\"“”]|what\s+is\s+" + FORMULA + r"\s*\?",
    re.IGNORECASE | re.DOTALL,
)
_ANSWER_TOLD = re.compile(
    r"\banswer\s+(?:of|to)\s+the\s+(?:above|previous|first)\s+(?:question|problem)\s+is\b", re.IGNORECASE
)
"""A sentence that gives the answer to an earlier question. Then only the last question is asked."""
_BETWEEN_ANSWERS = re.compile(r"(?<!\d),|,(?!\d{3})|[;，；、]|\band\b|\n")
"""Separators between the answers in a gold: "3, 4", "3 and 4". The comma of "1,000" does not match."""

_SOLVED_PART = re.compile(r"\\boxed\s*\{|\bfinal\s+answer\s*:", re.IGNORECASE)
"""The answer of a worked solution that follows a part."""

# proof
_PROOF = re.compile(
    r"(?:^|[.;:?!,，。；：]\s*|\)\s*|\b(?:and|then|please|hence)\s+)((?:prove|show)(?:\s+(?:that|the\s+following)\b|\s*:))"
    r"|(?:^|[.;:?!]\s*)(prove\s+(?!it\b)\S+)"
    r"|(求证(?=[:：，,]?\s*[^，。；、]*[A-Za-z\d∠△⟦角边线形数])"
    r"|(?:^|[。；;，,：:！？\s）)试请并再求能来])证明(?=[:：]|[:：，,]?\s*(?:对|当|若|不等式|方程|函数|存在|任意|数列|四边形|三角形|直线|平面|[A-Za-z$\\∠△⟦])))",
    re.IGNORECASE,
)
"""An instruction to prove, at the start of a clause: "Prove that", "and show that", "Prove Cauchy's", 求证. These do
    not
match: "he can prove that", "prove it", and 证明 in the sense of evidence (予以证明, 证明文件, 举证证明).
"""
_MATHEMATICS = re.compile(
    FORMULA + rf"|[=<>≤≥∠△]|\d\s?[-+*/^]\s?\d|\b[b-hj-zA-HJ-Z]\b|\b{any_of('proved_things')}\b"
    r"|[整质素奇偶有理实复]数|函数|数列|方程|不等式|[角边]形|直线|平面|向量|矩阵|集合|定理"
)
"""Mathematical words and signs. A proof must have one. Texts on law and science also say "show" and "prove"."""
_VALUE_ASKED = re.compile(rf"\b{any_of('value_questions')}\b|多少|求(?!证)|几(?!何)", re.IGNORECASE)

# choice_remnant
_SEQUENCE = re.compile(r"(?:[A-Z]|\d+)(?:\W+(?:[A-Z]|\d+))+")
"""A sequence of letters or numbers: "A → C → A", "0 1 0"."""
_LETTER = re.compile(
    r"(?:(?:[Oo]ption|[Cc]hoice|OPTION|选项?)\s*)?\\?(?:text|textbf|mathrm|mathbf)?\s?\{?\s?[(（]?\s?([A-H])\s?[)）]?\s?\}?[.。]?"
)
"""A gold that is one letter: "B", "(B)", "\\text{B}", "B.", "Option B"."""
_WHICH_FOLLOWING = re.compile(
    r"\bwhich\s+(?:one\s+|ones\s+|two\s+)?of\s+(?:the\s+following|these)\b(?![^.?!]{0,60}\b(?:above|given)\b)"
    r"|下列[^，。？?]{0,30}(?:正确|错误|不正确|成立|符合|属于)的(?:是|有|个数)|下列[^，。？?]{0,20}中",
    re.IGNORECASE,
)
"""A question before options: "Which of the following is prime?", "下列说法正确的是"."""
_LISTED = re.compile(
    r"\n\s*(?:[-*•]|\(?[ivx]{1,4}[.)]|\(?\d{1,2}[.)]|[①-⑳])|[①-⑳]|\b(?:I|II)[.)]\s|\([a-eA-E]\)|[:：]\s*\S|\[asy\]|\|.*\|"
)
"""A list that may be the options: a line "- 4", "2)" or "iv.", "①", "(b)", "primes: 4", a drawing or a table."""
_OPTION_LABEL = re.compile(r"(?<!\w)[(（]\s?([A-E])\s?[)）]")
MAX_COMMAS = 1
"""The maximum number of commas in a question without options. "Which of these is prime: 4, 7, or 9?" has options."""


def _labelled_parts(prose: str) -> list[str]:
    """Return the texts of the parts (a), (b), ... or (1), (2), ... of a problem. The result is empty unless the labels
    are in order, and all parts ask for something."""
    marks = list(_PART_LABEL.finditer(prose))
    labels = [next(label for label in mark.groups() if label) for mark in marks]
    for family in _LABELS:
        chosen = [mark for mark, label in zip(marks, labels, strict=True) if label in family]
        if len(chosen) < 2 or [label for label in labels if label in family] != family[: len(chosen)]:
            continue
        ends = [mark.start() for mark in chosen[1:]] + [len(prose)]
        texts = [prose[mark.end() : end].strip() for mark, end in zip(chosen, ends, strict=True)]
        if all(_INSTRUCTION.match(text) for text in texts):
            return texts
    return []


def _questions(prose: str) -> list[str]:
    """Return the questions that ask for separate quantities."""
    if _ANSWER_TOLD.search(prose):
        return []
    return [
        text
        for text in sentences(prose)
        if text.endswith(("?", "？")) and _QUANTITY.search(text) and not _NOT_SEPARATE.match(text)
    ]


def _has_options(row: Row) -> bool:
    """Return True for a choice question. Small letters do not count as options if they may label parts."""
    options = find_options(row["prompt"])
    return row.get("verifier") == "choice" or (options is not None and not options.may_be_parts)


@detector("multi_part", version="4")
def multi_part(row: Row) -> list[Finding]:
    """Find a prompt with several questions and a gold with fewer answers."""
    prose = without_formulas(row["prompt"])
    asked = _labelled_parts(prose) or list(dict.fromkeys(_questions(prose)))
    answers = len(_BETWEEN_ANSWERS.split(row["gold"] or ""))
    # Options may be questions themselves. Parts with solutions are no longer questions.
    if row["domain"] == "code" or len(asked) < 2 or answers >= len(asked):
        return []
    if _has_options(row) or _SOLVED_PART.search(row["prompt"]) or is_said_twice(row["prompt"]):
        return []
    return [Finding("multi_part", evidence={"asks": [ending(text, 80) for text in asked[:5]], "answers": answers})]


@detector("proof", version="4")
def proof(row: Row) -> list[Finding]:
    """Find a question for a proof. A comparison with a gold cannot judge a proof."""
    prose = without_formulas(row["prompt"]).strip()
    match = _PROOF.search(prose)
    if match is None or row["domain"] == "code" or _VALUE_ASKED.search(prose) or _has_options(row):
        return []
    if _MATHEMATICS.search(prose) is None:
        return []
    return [Finding("proof", evidence={"asks": next(group for group in match.groups() if group)})]


@detector("choice_remnant", version="1")
def choice_remnant(row: Row) -> list[Finding]:
    """Find a choice question that has lost its options, or whose gold is not one of them."""
    prompt, gold = row["prompt"], row["gold"]
    if row["domain"] == "code" or row.get("verifier") == "choice" or not gold or len(prompt) > MAX_PROMPT_CHARS:
        return []
    if orjson.loads(row.get("verifier_args") or "{}").get("options"):
        return []
    options = find_options(prompt)
    evidence = _lost_options(prompt, gold) if options is None else _foreign_gold(prompt, gold, options)
    return [] if evidence is None else [Finding("choice_remnant", evidence=evidence)]


@detector("spoilt_options", version="1")
def spoilt_options(row: Row) -> list[Finding]:
    """Find a choice question with an empty option, or with two options of the same letter or text."""
    prompt, gold = row["prompt"], (row["gold"] or "").strip()
    if row["domain"] == "code" or len(prompt) > MAX_PROMPT_CHARS:
        return []
    options = orjson.loads(row.get("verifier_args") or "{}").get("options") if row.get("verifier") == "choice" else None
    if options:
        texts = [str(text).strip() for text in (options.values() if isinstance(options, dict) else options)]
        why = "two options are the same" if len(set(texts)) < len(texts) else None
        why = why if all(texts) else "an option has no text"
    else:
        why = what_spoils_options(prompt) if _LETTER.fullmatch(gold) and find_options(prompt) is None else None
    return [] if why is None else [Finding("spoilt_options", evidence={"why": why})]


def _foreign_gold(prompt: str, gold: str, options: Options) -> dict[str, Any] | None:
    """Return evidence that the gold is not one of the options.

    Conditions (A) and (B) are not options. Letters are not options if the gold is a sequence: "A → C → A".
    """
    if chosen_letters(options, gold) is not None or options.may_be_parts or prompt.rstrip().endswith(("?", "？")):
        return None
    if _SEQUENCE.fullmatch(gold.strip()):
        return None
    return {"gold_is_no_option": gold[:200], "options": list(options.texts)}


def _lost_options(prompt: str, gold: str) -> dict[str, Any] | None:
    """Return evidence that options were lost: the gold is a letter, or the question announces options."""
    letter = _LETTER.fullmatch(gold.strip())
    if letter and not re.search(rf"(?<![a-z]){letter[1]}(?![a-z])", prompt):
        return {"gold": gold, "options": "missing"}
    if (question := _question_before_options(prompt)) is not None:
        return {"asks": ending(question), "options": "missing"}
    labels = "".join(sorted(set(_OPTION_LABEL.findall(prompt)))) if letter else ""
    # Labels with a gap, such as A, C, D, are what remains of options. `find_options` finds complete options.
    has_gap = len(labels) >= 2 and not "ABCDE".startswith(labels)
    return {"gold": gold, "labels": list(labels)} if has_gap else None


def _question_before_options(prompt: str) -> str | None:
    """Return the last sentence if it announces options that do not follow."""
    prose = without_formulas(prompt).strip()
    match = _WHICH_FOLLOWING.search(prose)
    if match is None or _LISTED.search(prose):
        return None
    parts = sentences(prose)
    last = parts[-1] if parts else ""
    if not _WHICH_FOLLOWING.search(last) or FORMULA in last.split("following", 1)[-1] or last.count(",") > MAX_COMMAS:
        return None
    return last


@detector("yes_no_answer", version="1")
def yes_no_answer(row: Row) -> list[Finding]:
    """Find an answer of yes or no, true or false. Half of the guesses at it are right, and are rewarded."""
    if row["domain"] == "code" or not row["gold"] or (answer := truth_of(row["gold"])) is None:
        return []
    return [Finding("yes_no_answer", evidence={"gold": row["gold"], "read_as": answer})]
