"""Looks for what a right output owes to its context, and drops it where that is too much.

    guidance  "The 5 apples that he gave away were forgotten; subtract them at the end."
    output    "The 5 apples that he gave away were forgotten, so ..."      quoted: a run of words
    output    "One must not overlook what was given away at the end."      retold: the same concepts, nothing derived
    output    "别忘了最后减去送出的。12+9=21 ..."                               retold, and in another language
    output    "12+9=21, 21-5=16."                                          neither: it does what it was told
    output    "The answer is 16, because 12+9=21 and 21-5=16."             answer first

What stands in the problem or in the failed attempt is no quotation: the model comes to it by itself. Sentences that
compute something are never retold: to follow advice is what synthesis is for.

"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from truegold.pipeline.text.prose import UNKNOWN, language_of, sure_language
from truegold.synth.concepts import HAN, OPERATION, concepts, content_stems, normal, runs, sentences, words
from truegold.synth.config import LeakConfig
from truegold.synth.mentions import find_mentions
from truegold.synth.records import Weights

_TOKEN = re.compile(r"\w+|[^\w\s]")


class LeakReason(StrEnum):
    """Why a right output is not trained on."""

    MENTIONS_ATTEMPT = "mentions_attempt"
    """It speaks of an earlier attempt."""
    MENTIONS_ADVICE = "mentions_advice"
    """It speaks of feedback, a hint, or of its giver."""
    QUOTES = "quotes_guidance"
    """It repeats the guidance in its words."""
    RETELLS = "retells_guidance"
    """It repeats the guidance in other words or in another language."""
    OTHER_LANGUAGE = "other_language"
    """It is in another language than its problem."""
    ANSWER_FIRST = "answer_first"
    """It states its answer, and derives it afterwards."""
    IMPLAUSIBLE = "implausible"
    """It is too improbable behind the bare prompt."""
    NEAR_COPY = "near_copy"
    """The row has nearly the same positive already."""
    OVER_SHARE = "over_share"
    """Its strategy has brought as large a share of the positives as it may."""


@dataclass(frozen=True)
class Sources:
    """The texts that an output is compared with."""

    problem: str
    guidance: str
    """What somebody wrote about an attempt: feedback, reflection, the gold."""
    attempt: str
    """The failed attempt."""


@dataclass(frozen=True)
class LeakReport:
    """What the guards say of an output."""

    reasons: tuple[LeakReason, ...]
    """Why it is dropped; none where it is fit to be trained on."""
    measures: Mapping[str, Any]
    """What was measured, fit for JSON."""


def check_output(
    output: str, sources: Sources, extracted: str | None, weights: Weights, config: LeakConfig, *, is_program: bool
) -> LeakReport:
    """Look for what an output owes to its context. Programs have no order of steps, and comments of their own."""
    mentions = find_mentions(output, sources.problem, is_program=is_program) if config.mentions else []
    kinds = {kind for kind, _ in mentions}
    quote = find_quote(output, sources.guidance, sources.problem, sources.attempt, config)
    retold = retold_share(output, sources.guidance, sources.problem, sources.attempt)
    is_foreign = not is_program and is_in_another_language(output, sources.problem)
    is_early = config.answer_first and not is_program and states_answer_first(output, sources.problem, extracted)
    flagged = {
        LeakReason.MENTIONS_ATTEMPT: "attempt" in kinds,
        LeakReason.MENTIONS_ADVICE: "advice" in kinds,
        LeakReason.QUOTES: quote is not None,
        LeakReason.RETELLS: retold >= config.retold_share,
        LeakReason.OTHER_LANGUAGE: is_foreign,
        LeakReason.ANSWER_FIRST: is_early,
        LeakReason.IMPLAUSIBLE: weights.geometric < config.min_geometric_weight,
    }
    measures = {
        "mentions": [words for _, words in mentions][:5],
        "quote": quote,
        "retold_share": round(retold, 3),
        "geometric_weight": round(weights.geometric, 4),
    }
    return LeakReport(tuple(reason for reason, is_flagged in flagged.items() if is_flagged), measures)


def is_near_copy(output: str, others: Sequence[str], share: float) -> bool:
    """Return whether one of the others has so much of an output's runs of three tokens (Jaccard)."""
    triples = _triples(output)
    for other in others:
        others_triples = _triples(other)
        if len(triples & others_triples) >= share * max(len(triples | others_triples), 1):
            return True
    return False


def _triples(text: str) -> set[tuple[str, ...]]:
    tokens = _TOKEN.findall(normal(text))
    return runs(tokens, 3) or {tuple(tokens)}


MIN_WORDS = 5
"""A sentence of guidance with fewer words is not looked for as a whole."""
COMPUTING_TIMES = 2
"""A sentence of guidance that computes something is quoted only by so much longer runs: whoever derives the same says
much the same."""
MIN_STEMS = 3
"""With fewer words of the same meaning, which the problem does not explain, no sentence is retold."""
_ENGLISH = re.compile(r"[A-Za-z'’-]{2,}(?:,? [A-Za-z'’-]+){5,}")
_DIGIT = re.compile(r"\d")
FOREIGN_LETTERS = 4
"""So many letters of a script that the problem does not have are of another language."""
SURE_WORDS = 7
"""A sentence with fewer words is in no certain language."""
_LATIN_WORD = re.compile(r"[A-Za-zÀ-ÿ]{2,}")
_SCRIPTS = {
    "Chinese": HAN,
    "Japanese": re.compile(r"[\u3041-\u30fa]"),
    "Korean": re.compile(r"[\uac00-\ud7af]"),
    "Cyrillic": re.compile(r"[\u0400-\u04ff]"),
    "Arabic": re.compile(r"[\u0600-\u06ff]"),
    "Devanagari": re.compile(r"[\u0900-\u097f]"),
}


def find_quote(output: str, guidance: str, problem: str, attempt: str, config: LeakConfig) -> str | None:
    """Return a run of words that the output shares with the guidance alone; None where there is none."""
    output_words, known = words(normal(output)), normal(f"{problem}\n{attempt}")
    known_words = words(known)
    for sentence in sentences(normal(guidance)):
        told_words = words(sentence)
        if len(told_words) < MIN_WORDS:
            continue
        # Two Chinese characters are about a word.
        length = config.quote_words + config.quote_words // 2 if HAN.search(sentence) else config.quote_words
        if OPERATION.search(sentence):
            length *= COMPUTING_TIMES
        elif not _DIGIT.search(sentence):
            length = min(length, len(told_words))
        shared = runs(told_words, length) & runs(output_words, length)
        unexplained = shared - runs(known_words, length)
        if unexplained:
            return " ".join(min(unexplained))
    return None


def retold_share(output: str, guidance: str, problem: str, attempt: str) -> float:
    """Return the largest share of a guidance sentence's own meaning that one of the output's sentences has, in any of
    the two languages; sentences that compute something are left out."""
    known = normal(f"{problem}\n{attempt}")
    known_stems, known_concepts = content_stems(known), concepts(normal(problem))
    guidance_sentences = [sentence for sentence in sentences(normal(guidance)) if not OPERATION.search(sentence)]
    candidates = [sentence for sentence in sentences(normal(output)) if not OPERATION.search(sentence)]
    largest = 0.0
    for sentence in guidance_sentences:
        own_stems = content_stems(sentence) - known_stems
        own_concepts = concepts(sentence) - known_concepts
        for candidate in candidates:
            is_translated = bool(HAN.search(candidate)) != bool(HAN.search(sentence))
            meanings = own_concepts if is_translated else own_stems | own_concepts
            have = concepts(candidate) if is_translated else content_stems(candidate) | concepts(candidate)
            if len(meanings & have) >= MIN_STEMS:
                largest = max(largest, len(meanings & have) / len(meanings))
    return largest


def is_in_another_language(output: str, problem: str) -> bool:
    """Return whether a part of an output is in another language than its problem: by its script, Chinese in an English
    answer or a run of English words in a Chinese one, or by a sentence that is certainly in another language.

    Problems of hardly any words are in no language.
    """
    problem_words = words(normal(problem))
    if len(problem_words) < MIN_WORDS:
        return False
    foreign = {script for script, pattern in _SCRIPTS.items() if len(pattern.findall(output)) >= FOREIGN_LETTERS}
    if any(not _SCRIPTS[script].search(problem) for script in foreign):
        return True
    if HAN.search(problem):
        return _ENGLISH.search(output) is not None and not _ENGLISH.search(problem)
    language = language_of(problem)
    plain = [part for part in sentences(output) if len(_LATIN_WORD.findall(part)) >= SURE_WORDS and "\\" not in part]
    return language != UNKNOWN and any(sure_language(part) not in (language, UNKNOWN) for part in plain)


NEAR = 30
"""An answer stands within so many characters of the words that state it."""
_STATEMENT = re.compile(
    r"\banswer\b[^.\n]{0,20}?(?:is|:|=|be)|\bresult\b[^.\n]{0,12}?(?:is|:|=)|\\boxed"
    r"|\b(?:comes? (?:out )?(?:to|at)|arrive at|amounts? to|(?:has|have|ought) to (?:be|equal)"
    r"|(?:must|should|will) (?:be|equal))"
    r"|答案(?:是|为|:|：)?|结果(?:是|为|应)|因此是|应该?(?:等于|得到?|是|为)|得到"
)
_NUMERAL = re.compile(r"(?<![a-z\d.])-?\d[\d,]*(?:\.\d+)?(?![a-z\d]|\.\d)")
_DERIVES = re.compile(r"\bbecause\b|\bsince\b|\bas\b|\bstep\b|\bfirst\b|\bso\b|因为|由于|首先|步")


def states_answer_first(output: str, problem: str, extracted: str | None) -> bool:
    """Return whether the answer stands in the output before the first step towards it."""
    answer = normal(extracted or "").strip().strip("$").strip()
    if not answer or "\n" in answer:
        return False
    text = normal(output)
    start = _position(text, answer)
    if start is None:
        return False
    before, after = text[:start], text[start + len(answer) :]
    is_stated = any(match.end() <= start and start - match.end() <= NEAR for match in _STATEMENT.finditer(before))
    if not OPERATION.search(after) and not (is_stated and _DERIVES.search(after)):
        return False
    before = _STATEMENT.sub(" ", before)
    if OPERATION.search(before):
        return False
    if is_stated:
        return True
    # A number that nobody has mentioned yet, in front of all steps.
    return bool(_NUMERAL.fullmatch(answer)) and _position(normal(problem), answer) is None and answer not in "0 1 2"


def _position(text: str, answer: str) -> int | None:
    """Return where an answer stands first, a number only where it is a whole one."""
    if _NUMERAL.fullmatch(answer):
        plain = answer.replace(",", "")
        return next((match.start() for match in _NUMERAL.finditer(text) if match[0].replace(",", "") == plain), None)
    start = text.find(answer)
    return None if start < 0 else start
