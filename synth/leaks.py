"""Finds right outputs that repeat the guidance in their prompt, so that they are not trained on.

Guidance is a text about a failed attempt: feedback, a reflection, or the gold. The prompt of a retry has the problem
and guidance. Training uses the problem alone (the bare prompt). An output that repeats guidance does not fit this
prompt:

    guidance  "The 5 apples that he gave away were forgotten; subtract them at the end."

    output                                                       finding
    "The 5 apples that he gave away were forgotten, so ..."      quotes: the same sequence of words
    "One must not overlook what was given away at the end."      retells: the same concepts, nothing is computed
    "别忘了最后减去送出的。12+9=21 ..."                               retells in another language
    "12+9=21, 21-5=16."                                          none: an output should follow the guidance
    "As noted, the 5 come off. 12+9=21 ..."                      mentions the guidance (`concepts`)
    "Not 26: 12+9=21, 21-5=16."                                  denies 26, the answer of the failed attempt
    "12+9+5=26. No, that is not 26: ..."                         none: the output derives 26 before
    "The answer is 16, because 12+9=21 and 21-5=16."             states its answer first
    "16. First add 12 and 9 ..."                                 states its answer first
    "12+9=21, 21-5=16. The answer is 16."                        none: the answer is derived
    "The answer is 16."                                          none: nothing is derived

Words of the problem or of the failed attempt are not quotations, because the model can write them without guidance.

A habit is a phrase or a pattern that the policy also writes after bare prompts. Habits are not findings. They are
learned from samples of the profile, whose prompts had no guidance:

    800 samples: "let me" in 610 openings, "the user asks" in 93, "as noted" in none
    "Okay, let me think. The user asks ... 12+9=21"    no finding

The expected rate of a habit in these samples is above MOST_BARE. The rate has a Beta distribution with the prior PRIOR.
With fewer than FEWEST_SAMPLES samples, only the built-in list of natural openings is used (`mentions.toml`).
"""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from truegold.pipeline.profile.drawing import SampleRow
from truegold.pipeline.rates import Beta
from truegold.pipeline.tables.rows import KEY, Row, RowKey, read_rows, read_table, row_key
from truegold.pipeline.text.prose import UNKNOWN, language_of, sure_language
from truegold.synth.concepts import (
    HAN,
    OPERATION,
    concepts,
    content_stems,
    find_mentions,
    normal,
    runs,
    sentences,
    words,
)
from truegold.synth.config import LeakConfig
from truegold.synth.records import Weights
from truegold.verifiers import judges_solutions, resolve

NEAR = 30
"""The maximum number of characters between words like "the answer is" and the answer."""
_STATEMENT = re.compile(
    r"\banswer\b[^.\n]{0,20}?(?:is|:|=|be)|\bresult\b[^.\n]{0,12}?(?:is|:|=)|\\boxed"
    r"|\b(?:comes? (?:out )?(?:to|at)|arrive at|amounts? to|(?:has|have|ought) to (?:be|equal)"
    r"|(?:must|should|will) (?:be|equal))"
    r"|答案(?:是|为|:|：)?|结果(?:是|为|应)|因此是|应该?(?:等于|得到?|是|为)|得到"
)
"""Words that state an answer, such as "the answer is", "the result:", "it comes out to" or "答案是"."""
_NUMERAL = re.compile(r"(?<![a-z\d.])-?\d[\d,]*(?:\.\d+)?(?![a-z\d]|\.\d)")
"""A number in a text: -3, 1,200 or 0.5. The 2 of x2 and the 1.5 of 1.5.2 do not match."""
_DERIVES = re.compile(r"\bbecause\b|\bsince\b|\bas\b|\bstep\b|\bfirst\b|\bso\b|因为|由于|首先|步")
"""Words of a derivation without operations, such as "because all of them are even"."""
_DENIED_BEFORE = re.compile(
    r"(?:\b(?:not|never|isn't|wasn't|can't|couldn't|cannot|instead|rather|other|unlike|no longer)"
    r"(?: (?:be|of|than|just|simply|merely|only|equal|to|exactly|the|an?|at|as|get|gives?|\w+ing))*"
    r"|不(?:是|等于|应该?是|能是|可能是|会是|止|只是?|能只?)[算到得写停在为是]*|而非|并非|别只?[算到得写停]+)[\s$(\\]*$"
)
"""Words that deny the number after them, such as "not just 26", "rather than the 26" or "不能只算到26"."""
_DENIED_BEHIND = re.compile(
    r"[)$%°]*(?: [a-z/]+){0,3}?,? (?:"
    r"(?:is|are|was|were|would be|would have been|seems?|looks?|comes out) (?:\w+ ){0,2}?"
    r"(?:wrong|incorrect|false|not|too|off|mistaken|impossible|premature)"
    r"|would (?:only |just )?(?:be|have been|hold|mean)"
    r"|(?:\w+ )?(?:ignores?|forgets?|misses|overlooks?|omits|neglects|leaves? out|does not|doesn't|cannot|can't|fails)"
    r")\b"
    r"|[\u3400-\u9fff]{0,5}?(?:不对|不正确|有误|错|多算|少算|漏|没[有算减加扣考包]|忘|太[多少大小])"
)
"""Words that deny the number before them, such as "26 is too many", "26 would be right if" or "26多算了"."""
_DERIVED = re.compile(
    r"(?:[=≈→]|\b(?:is|are|gets?|got|gives?|makes?|leaves?|equals?|to|has|have|be)|[得到于为是剩有共])[\s$(\\]*$"
)
"""Words and signs after which a number is the result of a step."""
_NEW_SENTENCE = re.compile(r"(?:^|[.!?;:\n。！？；：,，>])\s*$")
"""The beginning of a text, or the end of a sentence or clause."""
_WORD_BEHIND = re.compile(r"(?: ?[%°]?,? [a-z]{2,}| ?[\u3400-\u9fff])(?! ?[-+*/=×÷])")
"""A word right after a number, unless an operation follows the word."""
MIN_DIGITS = 2
"""A number with fewer digits at the beginning of a sentence is not taken for an answer. It may be a count or the number
of a step."""


def states_answer_first(output: str, problem: str, extracted: str | None) -> bool:
    """Return whether the answer comes before the first step of its derivation.

    `extracted` is the answer as the verifier read it. "16. First add ..." does not state the number as the answer. Such
    a number counts only if the problem does not contain it.
    """
    answer = _plain(extracted)
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
    # A number before all steps that is not in the problem.
    return bool(_NUMERAL.fullmatch(answer)) and _position(normal(problem), answer) is None and answer not in "0 1 2"


def find_denial(output: str, problem: str, failed: str | None, extracted: str | None) -> str | None:
    """Return the words by which an output denies the answer of the failed attempt, or begins with this answer. Else
    return None.

    `failed` is the answer of the attempt, `extracted` the answer of the output, both as the verifier read them. A
    number is not denied if the output derives it, or if the problem contains it. Answers that are not numbers are
    ignored, because an output may consider and reject options, words and formulas.
    """
    answer = _plain(failed)
    if not _NUMERAL.fullmatch(answer) or answer == _plain(extracted) or _position(normal(problem), answer) is not None:
        return None
    text = normal(output)
    start = _position(text, answer)
    if start is None:
        return None
    before, behind = text[:start], text[start + len(answer) :]
    if match := _DENIED_BEFORE.search(before):
        return f"{match[0]}{answer}"
    if _DERIVED.search(before):
        return None
    if match := _DENIED_BEHIND.match(behind):
        return f"{answer}{match[0]}"
    # A derivation begins with numbers of the problem. Another number at the beginning comes from the failed attempt.
    digits = sum(map(str.isdigit, answer))
    is_first = digits >= MIN_DIGITS and not OPERATION.search(before) and _NEW_SENTENCE.search(before)
    match = _WORD_BEHIND.match(behind)
    return f"{answer}{match[0]}" if is_first and match else None


def _plain(answer: str | None) -> str:
    return normal(answer or "").strip().strip("$").strip()


def _position(text: str, answer: str) -> int | None:
    """Return the position of an answer in a text, or None. In "112 and 12", the number 12 has the position 8."""
    if _NUMERAL.fullmatch(answer):
        plain = answer.replace(",", "")
        return next((match.start() for match in _NUMERAL.finditer(text) if match[0].replace(",", "") == plain), None)
    start = text.find(answer)
    return None if start < 0 else start


MOST_BARE = 0.01
"""A phrase or a pattern with a higher expected rate in bare samples is a habit."""
MOST_BARE_OF_GUARD = 0.05
"""A finding about an output as a whole (`WHOLE_OUTPUT`) with a higher expected rate in bare samples is a habit."""
MOST_BARE_TOGETHER = 0.02
"""The most frequent patterns become habits until at most this share of bare samples matches any other pattern."""
PRIOR = Beta(0.5, 99.5)
"""The rate before the first sample: half a percent, with the weight of 100 samples."""
FEWEST_SAMPLES = 50
"""The minimum number of bare samples from which habits are learned."""
ROWS, SAMPLES_OF_ROW = 1000, 4
"""Habits are learned from at most 4 samples each of at most 1,000 rows."""
_FIGURE = re.compile(r"\d[\d.,]*")

Finding = tuple[str, str]
"""A rule that matched, and the matched words. A rule about the whole output has no words."""


@dataclass(frozen=True)
class BareSample:
    """A sample of the profile, whose prompt was the problem alone."""

    row: Row
    completion: str
    extracted: str | None
    prompt_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    is_program: bool


@dataclass(frozen=True)
class Habits:
    """The habits of a policy, with the number of bare samples from which they were learned."""

    samples: int = 0
    phrases: Mapping[Finding, int] = field(default_factory=dict)
    """Phrases that are habits, with the number of samples that have them."""
    rules: Mapping[str, int] = field(default_factory=dict)
    """Rules that are habits, with the number of samples in which words other than `phrases` match them."""

    def excuse(self, finding: Finding) -> bool:
        """Return whether a finding is a habit of the policy."""
        return finding[0] in self.rules or _masked(finding) in self.phrases

    def facts(self) -> dict[str, Any]:
        """Return the habits for the record of the stage."""
        phrases = sorted(((words, count) for (_, words), count in self.phrases.items()), key=lambda pair: -pair[1])
        rules = {str(rule): count for rule, count in self.rules.items()}
        return {"samples": self.samples, "phrases": dict(phrases[:20]), "rules": rules}


def learn_habits(findings: Sequence[Set[Finding]]) -> Habits:
    """Return the habits, given the findings in each bare sample. Fewer than FEWEST_SAMPLES samples give no habits."""
    if len(findings) < FEWEST_SAMPLES:
        return Habits(len(findings))

    def is_habit(count: int, most: float) -> bool:
        return PRIOR.after(len(findings), count).mean > most

    masked = [{_masked(finding) for finding in sample} for sample in findings]
    phrases = Counter(finding for sample in masked for finding in sample if finding[1])
    common = {finding: count for finding, count in phrases.items() if is_habit(count, MOST_BARE)}
    left = [sample - common.keys() for sample in masked]
    guards = Counter(rule for sample in left for rule, words in sample if not words)
    rules = {rule: count for rule, count in guards.items() if is_habit(count, MOST_BARE_OF_GUARD)}
    spoken = [{rule for rule, words in sample if words} for sample in left]
    # The most frequent patterns become habits, until almost no bare sample matches any other pattern.
    while counts := Counter(rule for sample in spoken for rule in sample):
        rule, count = min(counts.items(), key=lambda pair: (-pair[1], pair[0]))
        if not is_habit(count, MOST_BARE) and not is_habit(sum(map(bool, spoken)), MOST_BARE_TOGETHER):
            break
        rules[rule] = count
        spoken = [sample - {rule} for sample in spoken]
    return Habits(len(findings), common, rules)


def _masked(finding: Finding) -> Finding:
    return finding[0], " ".join(_FIGURE.sub("#", finding[1]).split())


def read_bare_samples(inputs: Mapping[str, Path]) -> list[BareSample]:
    """Return at most SAMPLES_OF_ROW samples of the profile for each of at most ROWS rows that are not held out."""
    tables = [inputs[name] for name in ("selected", "hard", "reserve") if name in inputs]
    every = (row for table in tables for row in read_rows(table))
    # An id is a hash, so the smallest ids are spread over all sources.
    rows = {row_key(row): row for row in heapq.nsmallest(ROWS, every, key=lambda row: (row["id"], row["source_row"]))}
    seen: Counter[RowKey] = Counter()
    samples = []
    columns = [*KEY, "completion", "extracted", "prompt_ids", "token_ids"]
    for sample in read_table(inputs["samples"], SampleRow, columns):
        key = row_key(sample)
        if key not in rows or seen[key] == SAMPLES_OF_ROW:
            continue
        seen[key] += 1
        samples.append(
            BareSample(
                row=rows[key],
                completion=sample["completion"],
                extracted=sample["extracted"],
                prompt_ids=tuple(sample["prompt_ids"]),
                token_ids=tuple(sample["token_ids"]),
                is_program=judges_solutions(resolve(rows[key]["verifier"])),
            )
        )
    return samples


_TOKEN = re.compile(r"\w+|[^\w\s]")
"""A word, a number, or a single sign. `x+12` has three tokens."""
_DIGIT = re.compile(r"\d")
MIN_WORDS = 5
"""A sentence of the guidance with fewer words cannot be quoted. The language of a shorter problem is unknown."""
COMPUTING_TIMES = 2
"""A quotation of a computation must be longer by this factor, since derivations of one result are much alike."""
MIN_STEMS = 3
"""A retelling has at least this number of concepts and stems in common with a sentence of the guidance."""
_ENGLISH_RUN = re.compile(r"[A-Za-z'’-]{2,}(?:,? [A-Za-z'’-]+){5,}")
"""Six English words in sequence, such as "subtract the five apples, he says"."""
FOREIGN_LETTERS = 4
"""An output with at least this number of letters of a script that the problem does not use is in another language."""
SURE_WORDS = 7
"""The language of a sentence with fewer words is not determined."""
_LATIN_WORD = re.compile(r"[A-Za-zÀ-ÿ]{2,}")
_SCRIPTS = {
    "Chinese": HAN,
    "Japanese": re.compile(r"[\u3041-\u30fa]"),
    "Korean": re.compile(r"[\uac00-\ud7af]"),
    "Cyrillic": re.compile(r"[\u0400-\u04ff]"),
    "Arabic": re.compile(r"[\u0600-\u06ff]"),
    "Devanagari": re.compile(r"[\u0900-\u097f]"),
}
"""A pattern of one letter of each script."""


class LeakReason(StrEnum):
    """The reasons to leave a right output out of the training."""

    MENTIONS_ATTEMPT = "mentions_attempt"
    """The output mentions an earlier attempt, or denies the answer of that attempt."""
    MENTIONS_ADVICE = "mentions_advice"
    """The output mentions feedback, a hint, or the person who gave it."""
    QUOTES = "quotes_guidance"
    """The output repeats words of the guidance."""
    RETELLS = "retells_guidance"
    """The output repeats the guidance in other words or in another language."""
    OTHER_LANGUAGE = "other_language"
    """The output is in another language than the problem."""
    ANSWER_FIRST = "answer_first"
    """The output states an answer before deriving it."""
    IMPLAUSIBLE = "implausible"
    """The output is too improbable after the bare prompt."""
    UNCONFIRMED = "unconfirmed"
    """The answer can be guessed, and guessing explains the right samples of this row on the bare prompt."""
    NEAR_COPY = "near_copy"
    """The output is nearly the same as another positive of the row."""
    OVER_SHARE = "over_share"
    """The strategy of the output has more than its maximum share of the positives."""


WHOLE_OUTPUT = (LeakReason.OTHER_LANGUAGE, LeakReason.ANSWER_FIRST)
"""The reasons that are about an output as a whole. They can be habits."""


@dataclass(frozen=True)
class Sources:
    """The texts that an output is compared with."""

    problem: str
    guidance: str
    """The texts about the failed attempt in the prompt: feedback, reflection, the gold."""
    attempt: str
    """The failed attempt."""
    failed: str | None
    """The answer of the failed attempt, as the verifier read it."""


@dataclass(frozen=True)
class LeakReport:
    """The findings about one output."""

    reasons: tuple[LeakReason, ...]
    """The reasons to drop the output, the main one first. Empty if it can be trained on."""
    measures: Mapping[str, Any]
    """The measurements, as JSON values: {"quote": None, "retold_share": 0.1, ...}."""


def check_output(
    output: str,
    sources: Sources,
    extracted: str | None,
    weights: Weights,
    config: LeakConfig,
    habits: Habits,
    *,
    is_program: bool,
) -> LeakReport:
    """Return all findings about an output.

    `extracted` is the answer of the output, as the verifier read it. In a program (`is_program`), comments are
    searched, too. The language and the order of a program are not checked.
    """
    mentions = [
        mention
        for mention in (find_mentions(output, sources.problem, is_program=is_program) if config.mentions else [])
        if not habits.excuse((mention.rule, mention.words))
    ]
    denial = None
    if config.mentions and not is_program:
        denial = find_denial(output, sources.problem, sources.failed, extracted)
    kinds = {mention.kind for mention in mentions}
    quote = find_quote(output, sources.guidance, sources.problem, sources.attempt, config)
    retold = retold_share(output, sources.guidance, sources.problem, sources.attempt)
    whole = set() if is_program else _whole_output_reasons(output, sources.problem, extracted, config)
    flagged = {
        LeakReason.MENTIONS_ATTEMPT: "attempt" in kinds or denial is not None,
        LeakReason.MENTIONS_ADVICE: "advice" in kinds,
        LeakReason.QUOTES: quote is not None,
        LeakReason.RETELLS: retold >= config.retold_share,
        **{reason: reason in whole and not habits.excuse((reason, "")) for reason in WHOLE_OUTPUT},
        LeakReason.IMPLAUSIBLE: weights.geometric < config.min_geometric_weight,
    }
    measures = {
        "mentions": [*([] if denial is None else [denial]), *(mention.words for mention in mentions)][:5],
        "quote": quote,
        "retold_share": round(retold, 3),
        "geometric_weight": round(weights.geometric, 4),
    }
    return LeakReport(tuple(reason for reason, is_flagged in flagged.items() if is_flagged), measures)


def find_in_bare(sample: BareSample, config: LeakConfig) -> set[Finding]:
    """Return the findings in a sample of the bare prompt, for `learn_habits`."""
    problem = sample.row["prompt"]
    mentions = find_mentions(sample.completion, problem, is_program=sample.is_program)
    findings: set[Finding] = {(mention.rule, mention.words) for mention in mentions}
    if not sample.is_program:
        whole = _whole_output_reasons(sample.completion, problem, sample.extracted, config)
        findings |= {(reason, "") for reason in whole}
    return findings


def _whole_output_reasons(output: str, problem: str, extracted: str | None, config: LeakConfig) -> set[LeakReason]:
    """Return the reasons in `WHOLE_OUTPUT` that apply to an output."""
    flagged = {
        LeakReason.OTHER_LANGUAGE: is_in_another_language(output, problem),
        LeakReason.ANSWER_FIRST: config.answer_first and states_answer_first(output, problem, extracted),
    }
    return {reason for reason, is_flagged in flagged.items() if is_flagged}


def is_near_copy(output: str, others: Sequence[str], share: float) -> bool:
    """Return whether an output and one of the others have at least this share of token triples in common (Jaccard)."""
    triples = _triples(output)
    return any(len(triples & other) >= share * max(len(triples | other), 1) for other in map(_triples, others))


def _triples(text: str) -> set[tuple[str, ...]]:
    """Return the token triples of a text. A text of fewer than three tokens gives a tuple of all its tokens."""
    tokens = _TOKEN.findall(normal(text))
    return runs(tokens, 3) or {tuple(tokens)}


def find_quote(output: str, guidance: str, problem: str, attempt: str, config: LeakConfig) -> str | None:
    """Return words that the output quotes from the guidance, or None. Words of the problem or of the attempt are not
    quotations."""
    output_words, known = words(normal(output)), normal(f"{problem}\n{attempt}")
    known_words = words(known)
    for sentence in sentences(normal(guidance)):
        told_words = words(sentence)
        if len(told_words) < MIN_WORDS:
            continue
        # An English word is about as long as one and a half Chinese characters.
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
    """Return the largest share of a sentence of the guidance that one sentence of the output retells.

    The share counts stems and concepts. Those of problem or attempt are left out. Sentences that compute something are
    skipped, since an output should follow the guidance.
    """
    known = normal(f"{problem}\n{attempt}")
    known_stems, known_concepts = content_stems(known), concepts(normal(problem))
    guiding = [sentence for sentence in sentences(normal(guidance)) if not OPERATION.search(sentence)]
    candidates = [sentence for sentence in sentences(normal(output)) if not OPERATION.search(sentence)]
    largest = 0.0
    for sentence in guiding:
        new_stems = content_stems(sentence) - known_stems
        new_concepts = concepts(sentence) - known_concepts
        for candidate in candidates:
            is_translated = bool(HAN.search(candidate)) != bool(HAN.search(sentence))
            # Concepts are the same in all languages. Stems differ.
            meanings = new_concepts if is_translated else new_stems | new_concepts
            retold = meanings & (concepts(candidate) if is_translated else content_stems(candidate))
            if len(retold) >= MIN_STEMS:
                largest = max(largest, len(retold) / len(meanings))
    return largest


def is_in_another_language(output: str, problem: str) -> bool:
    """Return whether a part of an output is in another language than its problem.

    Examples are Chinese in an English answer, six English words in sequence in a Chinese answer, or a sentence that is
    certainly in another language. Returns False if the problem has fewer than MIN_WORDS words.
    """
    problem_words = words(normal(problem))
    if len(problem_words) < MIN_WORDS:
        return False
    foreign = {script for script, pattern in _SCRIPTS.items() if len(pattern.findall(output)) >= FOREIGN_LETTERS}
    if any(not _SCRIPTS[script].search(problem) for script in foreign):
        return True
    if HAN.search(problem):
        return _ENGLISH_RUN.search(output) is not None and not _ENGLISH_RUN.search(problem)
    language = language_of(problem)
    plain = [part for part in sentences(output) if len(_LATIN_WORD.findall(part)) >= SURE_WORDS and "\\" not in part]
    return language != UNKNOWN and any(sure_language(part) not in (language, UNKNOWN) for part in plain)
