"""Does an output repeat its guidance (feedback, reflection, gold): in its words, in others, or in another language?

    guidance  "The 5 apples that he gave away were forgotten; subtract them at the end."
    output    "The 5 apples that he gave away were forgotten, so ..."      quoted: a run of words
    output    "One must not overlook what was given away at the end."      retold: the same concepts, nothing derived
    output    "别忘了最后减去送出的。12+9=21 ..."                               retold, and in another language
    output    "12+9=21, 21-5=16."                                          neither: it does what it was told

What stands in the problem or in the failed attempt is no quotation: the model comes to it by itself. Sentences that
compute something are never retold: to follow advice is what synthesis is for.
"""

from __future__ import annotations

import re

from truegold.pipeline.text.language import UNKNOWN, language_of, sure_language
from truegold.synth.config import LeakConfig
from truegold.synth.guards.text import HAN, OPERATION, concepts, content_stems, normal, runs, sentences, words

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
