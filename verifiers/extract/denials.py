r"""Tells whether a sentence answers with a value, or denies, doubts or only mentions it.

    Sentence                                                                                Result
    The answer isn't 5.   It does not come out to 5.   答えは5ではない。   5 is too large.       denied
    It might be 5.   \boxed{5?}   5 or so   答案可能是5。                                       doubted
    I doubt that it is 5.   My friend says 5.   I hope it is 5.   Suppose it is 5.          attributed or supposed
    Thus it is less than 7.   It is almost 7.                                             a bound; `at least 7` answers
    The answer is 12 if n is even, and 13 if n is odd.                                      two values on two conditions
    The opposite of the answer is 5.   The answer to the previous problem is 5.             another answer
    There isn't enough information to find f(0).   I tried 7 methods and none worked.       no answer
    \cancel{5}   ~~5~~                                                                      struck out
    The answer is not 5 but 7.   5, nicht 7                                                 the other value answers

A negation denies a value only if the words between them are infinitives, adverbs or articles (`light_words`).
None of these sentences denies 5:

    It is not hard to see that the answer is 5.     Those who do not play are 5.     So 5 students did not pass.
    The answer, not surprisingly, is 5.             If x > 0 the answer is 5.        It cannot be anything but 5.

Doubts, suppositions and quotations reach up to the next comma, colon, `but` or `so`. `probably 5` and `about 5` are
answers. Not covered: irony, languages that `denials.toml` lacks, and doubt without a word for it.
"""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files
from itertools import islice

from truegold.verifiers.extract import clauses
from truegold.verifiers.extract.stated_values import ANY_OF as SPEECH
from truegold.verifiers.extract.stated_values import has_value, may_deny, only_announces

PATTERNS: dict[str, list[str]] = tomllib.loads(files(__package__).joinpath("denials.toml").read_text(encoding="utf-8"))
"""Alternatives of regular expressions, in named lists."""
_ANY_OF = {name: "|".join(alternatives) for name, alternatives in PATTERNS.items()}

MAX_GOVERNING_CHARS = 160
"""Maximum number of characters that are read before a value, and after it. Stops long lines made to be slow."""
MAX_TOUCHING_CHARS = 80
"""Maximum number of characters before a value that are searched for words right next to the value."""
MAX_LATER_CHARS = 2_000
"""Maximum number of characters after an answer that are searched for words that deny its value."""
MAX_NUMBERS = 8
"""Maximum number of numbers in a line that are examined."""
_MARKUP = r"[\s$\\(\[*_{}\"“”«»]{0,6}"
"""Marks that may stand between a word and a formula."""
_WORD_START = r"(?:(?<![A-Za-z])(?=[A-Za-z])|^|(?=[^\x00-\x7f]|\\|n['’]t))"
"""A position where an alternative may begin: about a fifth of all positions, which saves time."""
_BOUNDARY = re.compile(r"(?:^|(?<=[|:>]))\\b")
"""A word boundary at the beginning of an alternative. It is replaced by `_WORD_START`."""
_CAPITAL = re.compile(r"(?<![\\?])[A-Z]")


def _any_of(name: str, behind: str = "", start: str = "") -> re.Pattern[str]:
    """Return a pattern that finds any alternative of a list."""
    return re.compile(rf"{start}(?:{_ANY_OF[name]}){behind}", re.IGNORECASE | re.DOTALL)


def _folded(alternatives: str, behind: str = "") -> re.Pattern[str]:
    """Return a pattern for texts in lower case, which tries alternatives only where a word begins."""
    alternatives = _CAPITAL.sub(lambda match: match[0].lower(), _BOUNDARY.sub("", alternatives))
    return re.compile(rf"{_WORD_START}(?:{alternatives}){behind}", re.DOTALL)


_NEGATED = rf"(?:{_ANY_OF['negations']})(?:[\s*_]{{1,3}}(?:{_ANY_OF['light_words']}|(?!only)[a-z]{{2,15}}ly)\b){{0,7}}"
"""A negation with the light words after it: `is not equal to`."""
_DENIED_BEFORE = _folded(rf"{_NEGATED}|{_ANY_OF['denied_before']}", behind=rf"{_MARKUP}$")
_NEGATED_BEFORE = _folded(_NEGATED, behind=rf"{_MARKUP}$")
_ASIDE_BEFORE = re.compile(r",[^,.;\d]{1,30},\s*$")
_ASIDE_BEHIND = re.compile(r"^,[^,.;\d]{1,30},(?=\s)")
"""Words between commas: `not, in fact, 5` and `5, however, is wrong`."""
_NOT_DENIED = _any_of("not_denied", behind=rf"{_MARKUP}$", start=_WORD_START)
_DENIED_BEHIND = re.compile(_ANY_OF["denied_behind"].replace("|^", "|").removeprefix("^"), re.IGNORECASE | re.DOTALL)
_EMBEDDING = _folded(_ANY_OF["embedding"])
_OPENING = re.compile(r"^(?:\W{0,12}(?:\\[a-zA-Z]{1,12}\s?\{|<[a-z]{1,12}>)){1,4}")
"""Commands and tags before the first clause of a text: `\\boxed{\\text{`, `<answer>`."""
_PREDICATE = re.compile(
    r"\s(?:(?:is|was|has|makes|solves|satisfies|gives|implies|means|leads|only|contradicts|causes|breaks|yields|stays"
    r"|remains|belongs|lies|fails)\b|would (?:contradict|imply|violate|make|lead|give|mean|be)\b)"
)
"""The verb of a sentence whose subject is a value: `5 solves`, `5 would contradict`."""
_ACTING = re.compile(
    r"\s(?:(?!times|hours|days|minutes|dollars|cents|euros|pounds|miles|points)[a-z]{2,12}s\s(?:the|its|my|our|an?)\s"
    r"(?!next|first|second|last|other|following|same|rest|day|week|month|year|hour|minute|second|night|person|piece)"
    r"|(?:goes|gets)\b|(?:drops|steps|bows|backs) (?:off|out|away|down)\b)"
)
"""A verb that shows that a value is not the answer: `5 bites the dust`."""
_CLAUSE_START = re.compile(
    r"(?:^|[,;])\W*(?:(?:so|hence|thus|therefore|then|and|but)\b,?\s?)?[\s$\\(*]*(?:[a-z]\s?=\s?)?$", re.IGNORECASE
)
"""The beginning of a clause, up to a value: `so x = `."""
_NEXT_SENTENCE = re.compile(r"[\s$*)\]}\\]{0,6}[.!]\s")
_FRAMES: dict[str, list[re.Pattern[str]]] = {}
"""Maps a word, or `*` for any word, to patterns of sentences that mention a value (`§`) without answering with it."""
for _cues, _, _frame in (frame.partition(" :: ") for frame in PATTERNS["frames"]):
    for _cue in _cues.split():
        _FRAMES.setdefault(_cue, []).append(re.compile(_frame, re.IGNORECASE))
_FRAME_WORD = re.compile(r"[^\W\d_]+")
_ANY = frozenset("*")
_VALUE_MARK = "§"
"""Stands for the value in the patterns of `_FRAMES`."""
_FRAME_MARKUP, _CLOSING_MARKUP = re.compile(r"[$\\(*_{]{1,6}$"), re.compile(r"^[$\\)*_}]{1,6}")
_AFFIRMING = _any_of("affirming")
_BOUND = _any_of("bound", behind=rf"{_MARKUP}$", start=_WORD_START)
_PART = _any_of("part", behind=rf"{_MARKUP}$", start=_WORD_START)
_NO_BOUND = re.compile(rf"(?:{_ANY_OF['negations']}|\bno|不|沒|没)(?: (?:be|any|much|es|ist|sein))?\W*$", re.IGNORECASE)
"""A negation that turns a bound into an answer: `no more than 7`."""
_CLAUSE_BREAK = re.compile(
    r"[;:；，：、—]|,(?! ?(?:that|dass|daß|ob|że|czy|что|che|que)\b)"
    r"|\b(?:but|yet|so|hence|thus|therefore|then|pero|aber|mais|также|но)\b|所以|因此|那么|[但故]"
)
"""The end of a clause: punctuation, or a word such as `but` or `so`."""
_NEGATION = _folded(rf"(?P<verb>{_ANY_OF['negations']})|(?P<subject>{_ANY_OF['negative_subjects']})")
_SUBCLAUSE = re.compile(r"\b(?:and|because|since)\b")
_RELATIVE = re.compile(
    r"\b(?:who|which|that|whose|whom|if|when|where|die|der|das|que|qui|che|które|który|котор\w+)\b", re.IGNORECASE
)
"""Words that begin a relative clause or a condition."""
_PRONOUN_SUBJECT = re.compile(
    r"\W*(?:(?:and|so|now|clearly|however|actually|please|here|also) )?"
    r"(?:I|we|one|you|it|this|that|there|they|he|she|do|does|did|is|are|was|has|have|had|can|ca|could|should|would|will"
    r"|wo|must|might|may|need|am|m|d|ll|ve|re|s|['’\s])*",
    re.IGNORECASE,
)
"""A clause up to its negation, if its subject is a pronoun: `we do`, `it is`."""
_LITOTES = _any_of("litotes")
_NO_MORE = re.compile(
    r"\b(?:exceed|surpass|more|less|fewer|greater|larger|smaller|go (?:over|beyond))\b", re.IGNORECASE
)
_SUPPOSING = r"if|whether|unless|lest|granted|as though|given that|(?<=^)provided"
_HYPOTHESIS = re.compile(rf"\b(?:{_SUPPOSING})\b(?!.*\b(?:if|whether|unless|lest)\b)|^\W*when\b", re.IGNORECASE)
"""A condition that is still open at the end of a clause: `if the answer is`."""
_FINITE = re.compile(
    rf"{SPEECH['copulas']}|[<>≤≥≠]|\b(?:get|gets|gives|yields|has|have|holds|follows)\b", re.IGNORECASE
)
"""A verb or a relation, which makes a clause complete."""
_SUBJECT = re.compile(r"\b(?:the|it|we|you|he|she|they|I|this|there|its|his|her|their|our|my)\b", re.IGNORECASE)
_AFFIRMED = re.compile(rf"\bonly\W*$|(?:{_ANY_OF['negations']}|impossible|fails?)\b.*\bunless\W*$", re.IGNORECASE)
"""Words before a condition that affirm the value: `only if`, `impossible unless`."""
_WITHHELD = _any_of("withheld", start=_WORD_START)
_COUNTERFACTUAL = _any_of("counterfactual")
_RESIGNED = _any_of("resigned")
_VALUE_BEHIND = re.compile(
    r"[,;:，；：—](?!\s*(?:not|nor|even|only|just|despite|because|since|as|given|with|without|although|though)\b)"
    r"|\b(?:yet|but)\b"
)
"""The break between a reason for withholding and a value: `r is not given, yet the ratio is 5`."""
_DIGITS = rf"{_MARKUP}[-+−]?\d[\d.,/]{{0,20}}{_MARKUP}"
_DENIAL = rf"(?:{_ANY_OF['negations']}|n't|\bno (?:es|son)|\bnão é|\bnon è|不是|并非|並非)"
_INSTEAD = (
    r"(?:but(?: rather| instead)?|rather,?|it is|it['’]s|sino|sondern|mais|mas?|maar|lecz|tylko"
    r"|e sim|а|mà|melainkan|而是)"
)
_CONTRAST = re.compile(
    rf"{_DENIAL}(?: là|\s[a-z]{{1,12}}){{0,2}}\s?{_DIGITS}\s?[,;，；]?\s?{_INSTEAD}\s?,?\s?(?:it is|it['’]s|là)?\s?"
    rf"(?P<instead>{_DIGITS}[^\s\d,，]{{0,12}})[\s.。!$]*$"
    rf"|{_DIGITS}[^\s\d、]{{0,3}}?(?:ではなく(?:て)?|じゃなくて|(?:가|이) 아니라|değil|नहीं)[、,]?\s?"
    rf"(?P<behind>{_DIGITS}(?!.{{0,8}}(?:ない|ません|아니|아닙|değil|नहीं)).{{0,12}}?)$",
    re.IGNORECASE,
)
"""A denied number and the one that replaces it: `not 5 but 7`, 5ではなく7."""
_TURNED_DOWN = re.compile(
    r"\s?[,(]?\s?(?<=[\s(])(?:(?:and|but|et|und|en|e|y|a|и|а|ve|và|dan) )?"
    r"(?:not|no|non|nicht|niet|nie|не|não|bukan|không phải|و?ليس"
    r"|rather than|instead of|plutôt que|statt)\s{1,4}(?=[$\\(*]{0,4}[-\d√])"
    r"|[，,（(]?(?:而(?:不是|非)|(?<=[，,（(])不是)"
    r"(?=\s?[-\d$\\])"
)
"""The beginning of a value that is turned down: `15 | rather than 14`, `5 | , not 7`."""
_FRACTION = r"\\[dt]?(?:frac|sqrt|binom)\{[^{}]{0,40}\}(?:\{[^{}]{0,40}\})?"
"""A fraction, root or binomial in LaTeX."""
_FIGURES = re.compile(rf"{_FRACTION}|(?<![\d.,])[-−]?\d[\d.,/]{{0,40}}")
_ITEM_BREAK = re.compile(r"[,;]\s(?:(?:and|but|only|so|while)\s)*")
"""The break between the items of a sentence: `4 fails, | 5 works`."""
_DENIES_ITEM = re.compile(rf"(?:{_ANY_OF['negations']}|\bfail(?:s|ed)?\b)", re.IGNORECASE)
WORDS_BEFORE = re.compile(r"(?:[a-z]{1,20} ){1,6}(?=[-−$\d])")
"""Words at the beginning of a value that are not its unit: `cell 5` of `stored in cell 5`."""
_OPTION = re.compile(r"(?<![A-Za-z\\'’])[A-Z](?![A-Za-z'’])|(?<![^\W\d_]\()(?<=\()[a-j](?=\))")
"""A letter that names an option."""
_UP_TO_FIGURES = re.compile(r".*(?:\d[%)\]]{0,2}|[$}])", re.DOTALL)
"""A value up to its last digit."""
_OTHER_ANSWERS = _any_of("other_answers")
_OTHER_PROBLEMS = _any_of("other_problems")
_ANSWER = re.compile(r"\b(?:answer|solution)\b", re.IGNORECASE)
_IN_OTHER_PROBLEM = re.compile(rf"\W*(?:{_ANY_OF['other_problems']})", re.IGNORECASE)
_CONDITION = _any_of("conditions", start=_WORD_START)
_DEPENDS = re.compile(r"\bdepend(?:s|ing) on\b|取决于|\bhängt\b.*\bab\b", re.IGNORECASE)
"""A statement that the answer depends on something."""
_CASES = re.compile(
    rf"[,;，；]|\bthen\b|\b(?:and|or|but|while|whereas|und|et|y|e|и)\s"
    rf"(?=(?:{_ANY_OF['conditions']}|it\b|the answer|[$\\(]{{0,3}}-?\d))",
    re.IGNORECASE,
)
"""Breaks between the cases of a sentence with conditions."""
_CASE = (
    rf"{_FRACTION}|-?\d[\d./]{{0,20}}"
    r"|(?-i:(?<![A-Za-z\\])(?:[B-J]|A(?!\s(?!if|when|for|and|or)[a-z]))(?![A-Za-z'’=]))"
)
"""The value of a case: a number, or the letter of an option."""
_CASE_VALUE = re.compile(
    rf"(?:^\W*|(?:{SPEECH['copulas']}|\b(?:get|gives|otherwise|else)\b|否则)[:,\s$\\(]{{0,4}})({_CASE})",
    re.IGNORECASE,
)
_VALUE_ON_CONDITION = re.compile(rf"({_CASE})[\s$\\)]{{0,4}}\(?(?:{_ANY_OF['conditions']})", re.IGNORECASE)
"""A value right before its condition: `12 if`."""
_MAIN_VALUE = re.compile(
    r"(?:\b(?:answer|result|value|it|we get)(?: (?:is|are|equals|would be)|['’]s)?|答案[是为])"
    rf"[\s$\\(]{{1,4}}({_CASE})",
    re.IGNORECASE,
)
"""A value after a condition: `the answer is 12`."""
_QUESTION = re.compile(r"^[^\w.!。]{0,6}[?？](?P<rest>.{0,40})", re.DOTALL)
"""A question mark after a value, and the words after it, which may confirm the value."""
_CONFIRMED = re.compile(rf"\W*(?:{_ANY_OF['confirming']}|\d)", re.IGNORECASE)
"""Words after a question that confirm its value."""
_NEARLY = re.compile(r"\b(?:almost|nearly|not quite|close to|near|just about)\W*$", re.IGNORECASE)
"""Words that call a letter only near the answer: `close to B`."""
_STRUCK = _any_of("struck")
_CUE = re.compile(r"(?<![\\a-zA-Z])[^\W\d_]{2,}|\s\(")
"""A word between two numbers, which shows that they are not one value."""
_TEXT_COMMAND = re.compile(r"\\(?:text|textbf|textit|mathrm|mbox|ensuremath)\s?\{([^{}]*)\}|\\[ ,;:!]")
"""A command that typesets words, or a space."""


def contrasted(sentence: str) -> str | None:
    """Return the value that replaces a denied one, or None: `7` for `not 5 but 7`."""
    match = _CONTRAST.search(sentence)
    return (match["instead"] or match["behind"]).strip() if match is not None else None


def affirmed_last(sentence: str) -> str:
    """Return the last clause that affirms a value after clauses that deny one: `5 works` for `4 fails, 5 works`.

    Other sentences are returned whole.
    """
    *others, last = _ITEM_BREAK.split(sentence)
    value = _FIGURES.match(last)
    if not others or value is None or _AFFIRMING.match(last, value.end()) is None:
        return sentence
    return last if all(map(_DENIES_ITEM.search, others)) else sentence


def preferred(sentence: str) -> str:
    """Return a sentence without a value that it turns down: `15` for `15 rather than 14`."""
    if "\\text" in sentence:
        sentence = _TEXT_COMMAND.sub(r" \1 ", sentence)
    match = _TURNED_DOWN.search(sentence)
    return sentence[: match.start()] if match is not None and has_value(sentence[: match.start()]) else sentence


def is_withheld(sentence: str) -> bool:
    """Return whether a sentence says that there is no answer, and gives none.

    `r is not given` -> True, `r is not given, yet the ratio is 5` -> False.
    """
    if _RESIGNED.search(sentence):
        return True
    return any(not _gives_value(sentence[match.end() :]) for match in _WITHHELD.finditer(sentence))


def _gives_value(rest: str) -> bool:
    """Return whether the words after a withheld answer state a value after all."""
    clause = _VALUE_BEHIND.search(rest)
    return clause is not None and has_value(rest[clause.end() :])


def is_resigned(text: str) -> bool:
    """Return whether a text ends with words that give up: `I cannot solve this.`"""
    return any(not text[match.end() :].strip(" .!)") for match in _RESIGNED.finditer(text))


def is_counterfactual(sentence: str) -> bool:
    """Return whether a sentence says what would be true in another case: `if it were prime, x would be 5`."""
    return _COUNTERFACTUAL.search(sentence) is not None


def is_conditional(sentence: str) -> bool:
    """Tell whether a sentence gives different values on different conditions, or the value of another case."""
    if _COUNTERFACTUAL.search(sentence):
        return True
    if _DEPENDS.search(sentence):
        return len(set(_CASE_VALUE.findall(sentence)) | set(_VALUE_ON_CONDITION.findall(sentence))) > 0
    if len(list(islice(_CONDITION.finditer(sentence), 2))) < 2:
        return False
    values: set[str] = set()
    for case in _CASES.split(sentence):
        is_condition = _CONDITION.match(case.lstrip(" (")) is not None and not _CASE_VALUE.match(case.lstrip(" ("))
        values.update((_MAIN_VALUE if is_condition else _CASE_VALUE).findall(case))
        values.update(_VALUE_ON_CONDITION.findall(case))
    return len(values) > 1


def is_attributed(lead: str, *, framed: bool = True) -> bool:
    """Return whether the words before a value doubt or suppose it, or attribute it to another person."""
    lead = _OPENING.sub("", lead)
    clause = _CLAUSE_BREAK.split(lead[-MAX_GOVERNING_CHARS:])[-1]
    if framed and _is_framed(lead[-MAX_GOVERNING_CHARS:], " _"):
        return True
    if _IN_OTHER_PROBLEM.match(lead) or _is_hypothetical(clause):
        return True
    if (_EMBEDDING.search(clause.lower()) or _is_negated(clause)) and not clauses.affirms(clause):
        return True
    named = _ANSWER.search(clause)
    return named is not None and is_of_another(clause[: named.start()], clause[named.end() :])


def _is_negated(clause: str) -> bool:
    """Return whether a negation earlier in the clause denies the value: `none of them is`, `we don't get`.

    The subject has to be a pronoun (`we don't`) or negative itself (`none`). Two sentences that affirm: `those who do
    not play are 5`, `it is not hard to see that it is 5`.
    """
    *others, clause = _SUBCLAUSE.split(clause)
    clause = clause.lower()
    if (negation := _NEGATION.search(clause)) is None:
        return False
    lead, rest = clause[: negation.start()], clause[negation.end() :]
    if _RELATIVE.search(lead) or _LITOTES.search(rest) or _NO_MORE.search(rest) or _NOT_DENIED.search(clause):
        return False
    is_of_noun = bool(others) and negation["subject"] is None and not lead.strip()
    return not is_of_noun and _PRONOUN_SUBJECT.fullmatch(lead) is not None


def _is_hypothetical(clause: str) -> bool:
    """Tell whether a value belongs to a condition: `if the answer is`."""
    if (condition := _HYPOTHESIS.search(clause)) is None or _AFFIRMED.search(clause[: condition.end()]):
        return False
    if condition[0].strip().casefold() != "unless" and _AFFIRMED.search(clause[: condition.start()]):
        return False
    rest = clause[condition.end() :]
    return len(list(islice(_FINITE.finditer(rest), 2))) < 2 and len(list(islice(_SUBJECT.finditer(rest), 2))) < 2


def is_of_another(lead: str, link: str) -> bool:
    """Return whether an announcement speaks of another answer: `a wrong | answer is`, `the | answer to part 1 is`."""
    return _OTHER_ANSWERS.search(lead) is not None or _OTHER_PROBLEMS.search(link) is not None


def _is_framed(before: str, after: str) -> bool:
    """Return whether a sentence mentions a value without answering with it: `the proof took 5 steps`."""
    framed = f"{_FRAME_MARKUP.sub('', before)}{_VALUE_MARK}{_CLOSING_MARKUP.sub('', after)}"
    words = frozenset(_FRAME_WORD.findall(framed.casefold()))
    if not (before.isascii() and after.isascii()):
        words |= _ANY
    return any(pattern.search(framed) for cue in words if cue in _FRAMES for pattern in _FRAMES[cue])


def is_doubted(before: str, after: str) -> bool:
    """Return whether the words before and after a value deny or doubt it, or attribute it to another person."""
    if _NEXT_SENTENCE.match(after) is not None:
        # The next sentence is left to `clauses.takes_back`.
        after = ""
    if clauses.disowns(before, after):
        return True
    after = _ASIDE_BEHIND.sub("", after[:MAX_GOVERNING_CHARS])
    before = before[-MAX_GOVERNING_CHARS:]
    if not may_deny(f"{before} {after}", framed=False):
        return is_claimed(before, after)
    return _DENIED_BEHIND.match(after) is not None or _is_denied_before(before) or is_claimed(before, after)


def _is_denied_before(before: str) -> bool:
    """Return whether the words right before a value deny it. Words between commas are skipped: `not, in fact, 5`."""
    touching = before[-MAX_TOUCHING_CHARS:].lower()
    is_negated = _DENIED_BEFORE.search(touching)
    if is_negated is None and (aside := _ASIDE_BEFORE.search(touching)) is not None:
        is_negated = _DENIED_BEFORE.search(f"{touching[: aside.start()]} ")
    return is_negated is not None and _NOT_DENIED.search(before) is None


def is_claimed(before: str, after: str) -> bool:
    """Tell whether the words around a value ask for it, suppose it, or only mention it."""
    question = _QUESTION.match(after)
    if question is not None and not _CONFIRMED.match(question["rest"]):
        return True
    if _is_framed(before, after):
        return True
    return may_deny(f"{before} {after}", framed=False) and is_attributed(before, framed=False)


def is_bound(before: str) -> bool:
    """Return whether the words before a value make it a bound (`less than`) or a part of another value (`half of`)."""
    before = _ASIDE_BEFORE.sub(" ", before[-MAX_TOUCHING_CHARS:])
    if (bound := _BOUND.search(before)) is not None:
        return _NO_BOUND.search(before, 0, bound.start()) is None
    return _PART.search(before) is not None


def is_mere_subject(sentence: str, value: str) -> bool:
    """Return whether a value is only the subject of another statement: `x = 5 is forbidden`."""
    figures = _UP_TO_FIGURES.match(value)
    before, _, after = sentence.rpartition(figures[0] if figures else value)
    after = after.lstrip("$*)\\")
    if _PREDICATE.match(after) is None and (_ACTING.match(after) is None or _CLAUSE_START.search(before) is None):
        return False
    return _AFFIRMING.match(after) is None


def is_denied(sentence: str, value: str, *, first: bool = False) -> bool:
    """Return whether the words next to a value deny or doubt it, or make it a bound.

    first: examine the first occurrence of the value, as after an announcement. By default the last one is examined.
    """
    # The value may end with words that are not its unit: `4 does`.
    figures = _UP_TO_FIGURES.match(value)
    value = figures[0] if figures else value
    if not (starts := occurrences(sentence, value)):
        return False
    start = starts[0] if first else starts[-1]
    if (words := WORDS_BEFORE.match(value)) is not None:
        start, value = start + words.end(), value[words.end() :]
    before, after = sentence[:start], sentence[start + len(value) :]
    if clauses.restates(value, after):
        return True
    if not may_deny(sentence):
        return clauses.disowns(before, after) or _is_framed(before, after)
    return is_bound(before) or is_doubted(before, after)


def without_struck(text: str) -> str:
    """Return a text with a blank for each part that is struck out."""
    return _STRUCK.sub(" ", text) if any(map(text.__contains__, "~<\\(（")) else text


def is_negated_later(text: str, value: str) -> bool:
    """Return whether a text after an answer denies the same value: `5 ... Hmm, 5 is wrong.`"""
    for start in occurrences(text[:MAX_LATER_CHARS], value)[:MAX_NUMBERS] if value in text else ():
        before = text[max(0, start - MAX_GOVERNING_CHARS) : start].lower()
        after = text[start + len(value) :][:MAX_GOVERNING_CHARS]
        is_negated = _NEGATED_BEFORE.search(before) is not None and _NOT_DENIED.search(before) is None
        if is_negated or (_DENIED_BEHIND.match(after) and not _NEXT_SENTENCE.match(after)):
            return True
    return False


def is_refused(text: str, *, letters: bool = False) -> bool:
    r"""Tell whether an answer denies or doubts its own value: `not 5`, `5?`, `~~5~~`, `\text{maybe } 5`.

    letters: whether the letter of an option counts as a value.
    """
    if only_announces(text):
        return False
    whole = _TEXT_COMMAND.sub(r" \1 ", text)
    text = _TEXT_COMMAND.sub(r" \1 ", without_struck(text))
    figures = list(islice(_FIGURES.finditer(text), MAX_NUMBERS))
    if not figures and letters:
        figures = list(islice(_OPTION.finditer(text), MAX_NUMBERS))
        if len({figure[0] for figure in figures}) > 1:
            # `not A but B` is left to `chosen`, which reads the clauses of letters.
            return False
    if not figures:
        return text != whole and (letters or has_value(whole))
    first, last = figures[0], figures[-1]
    value = first if _CUE.search(text, first.end(), last.start()) else last
    after = text[value.start() + len(value[0].rstrip(".,")) :]
    before = text[: first.start()]
    return (
        clauses.restates(value[0], after)
        or clauses.takes_back(after, is_letter=value[0].isalpha())
        or is_doubted(before, after.removeprefix(")"))
        or (letters and first[0].isalpha() and _NEARLY.search(before) is not None)
    )


def denies_a_number(text: str) -> bool:
    """Return whether the words right before a number in a text deny it."""
    figures = islice(_FIGURES.finditer(text), MAX_NUMBERS)
    return any(_DENIED_BEFORE.search(text[: match.start()].lower()) for match in figures)


def is_link_denied(link: str) -> bool:
    """Return whether the words that announce an answer end with a denial: `la respuesta no es`."""
    return _DENIED_BEFORE.search(link.lower()) is not None


def occurrences(sentence: str, value: str) -> list[int]:
    """Return the positions of a value in a sentence, except inside longer numbers."""
    pattern = re.escape(value)
    if value[:1].isdigit():
        pattern = rf"(?<![\d−-])(?<!\d[.,]){pattern}"
    if value[-1:].isdigit():
        pattern = rf"{pattern}(?![.,]?\d)"
    return [match.start() for match in re.finditer(pattern, sentence)]
