r"""Reads a name that the last line states as the answer: alone in bold, or after the verb of a sentence.

    It was **Tom Watson**.                     -> Tom Watson
    The capital is Rome.                       -> Rome, if the problem asks for a capital
    中国的首都是北京。                            -> 北京
    It may have been **Tom Watson**.           -> None: in doubt
    His rival was Tom Watson.                  -> None: the problem does not speak of a rival

A name is not read if it is denied, doubted or supposed, if its sentence is a question, or if the line has two names.
"""

from __future__ import annotations

import re

from truegold.verifiers.extract.chosen import DENIED_BEFORE, EITHER, HAN, NEGATION, UNSURE
from truegold.verifiers.extract.committed import Committed, final_part
from truegold.verifiers.extract.denials import is_attributed, is_conditional, is_doubted
from truegold.verifiers.extract.stated_values import MAX_LINE_CHARS, has_value
from truegold.verifiers.extract.unread import GUESSED

_ANNOUNCES = re.compile(r"\banswer(?: is|:)\s*$", re.IGNORECASE)
_BOLD = re.compile(r"(?<![*A-Za-z0-9])\*\*([^*\n]{1,200})\*\*(?!\*)")
_PREDICATE = re.compile(
    r"(?P<lead>(?:(?:so|thus|hence|therefore|then|also|donc|luego|quindi|daher|portanto),?\s)?"
    r"(?:(?:it|he|she|es|er|sie|het)\s(?:is|was|ist|war)|(?:it|he|she)['’]s|c['’](?:est|était)|es|fue|era|è|é|foi"
    r"|(?P<subject>[^\W\d_][^\d.,;:!?()]{2,80}?)\s(?:is|was))\s)(?P<name>[^,;:!?()。，？]{1,200}?)[.!]*",
    re.IGNORECASE,
)
"""A sentence that states a name: `It was ...`, `The capital is ...`."""
_CHINESE_PREDICATE = re.compile(
    r"(?P<lead>(?:(?:所以|因此|因而|故|综上)[，,]?)?"
    r"(?P<subject>[^\s，,。；;：:？?！!是为]{0,20})[是为])"
    r"(?P<name>[^\s，,。；;：:？?！!]{1,40})[。.！!]?"
)
"""A Chinese sentence that states a name: 首都是北京。"""
_OPEN_SUBJECT = re.compile(
    r"[不没非未无别误错假旧曾猜说疑或若]|可能|也许|如果|认为|以为|应|恐怕|大概|从前|以前|原来|除了|要么|似乎|好像|据"
)
"""Signs of a Chinese subject that is denied, in doubt, or not the one asked for: 不, 可能, 以前."""
_NEUTRAL = frozenset(
    "the a an of in for to on at by this that with answer solution name person correct right final 's".split()
)
"""Words that any subject may have."""
_ROLES = frozenset(
    "capital city town country state river lake ocean mountain island continent planet element man woman author "
    "writer poet artist painter composer inventor scientist discoverer founder director actor singer king queen "
    "president winner language currency company animal plant bird word colour color material".split()
)
"""Nouns that a subject may have if the problem is not known."""
_NEUTRAL_SIGNS = frozenset("答案正确最终名字叫这该个它他她的就即便也")
"""Chinese characters that any subject may have."""
_SUBJECT_WORD = re.compile(r"['’]s\b|[^\W\d_]+(?:-[^\W\d_]+)*")
_STEM_LETTERS = 4
"""Number of letters at the start of a word that are compared with the problem."""
_CONTRASTED = re.compile(rf"{NEGATION}|\b(?:than|unlike|like|after|before|besides)\s$", re.IGNORECASE)
"""Words right before a name that contrast or deny it: `unlike`, `than`."""
_CALLED = re.compile(
    r"(?:(?:so|thus|hence|therefore|consequently),?\s)?(?:the|this|that)\s(?:(?:given|above|stated)\s)?"
    r"(?:statement|claim|proposition|assertion)\s(?:is|must be)\s(?:therefore\s|indeed\s|always\s)?(?P<denied>not\s)?"
    r"(?:(?P<true>true|correct|right)|false|incorrect|wrong)"
    r"|(?:(?:所以|因此|因而|故|综上(?:所述)?|可见)[，,]?)?(?:(?:[该此本]|[这那]一?[个种句]?|题目|上述|题中|前述)的?)?"
    r"(?:命题|说法|判断|结论|话|陈述|表述)[是为]?(?:(?P<chinese>正确|对|真命题|真|成立)|错误?|假命题|假|不正确|不对|不成立|有误)的?",
    re.IGNORECASE,
)
"""A sentence that calls a statement true or false: `The statement is false.`, 该命题错误。"""
_SENTENCE_END = re.compile(r"[.!。！\n]+\s*")


def truth_called(response: str) -> str | None:
    """Return `true` or `false` if the last sentence calls a statement so and no other sentence contradicts it."""
    sentences = [text.strip("*_ ") for text in _SENTENCE_END.split(final_part(response)[-MAX_LINE_CHARS:])]
    sentences = [text for text in sentences if text]
    called = [_CALLED.fullmatch(text) for text in sentences]
    if not called or called[-1] is None or (sentences[-2:-1] and sentences[-2].endswith((":", "："))):
        return None
    verdicts = {bool(match["true"] or match["chinese"]) != bool(match["denied"]) for match in called if match}
    return str(verdicts.pop()).lower() if len(verdicts) == 1 else None


_INITIAL = re.compile(r"(?<![\w.])([A-Z])\.[\s-]?(?=[A-Z])|(?<=[A-Z]\.)([A-Z])\.[\s-]?(?=[A-Z])")
"""An initial before another one or a name: the `H.` and `D.` of `H. D. Rao`."""
_WITH_INITIALS = re.compile(
    r"(?:[A-ZÀ-Þ][\w'’-]+\.?\s){0,3}(?P<initials>(?:[A-Z]\.[\s-]?){1,4})[A-ZÀ-Þ][\w'’-]+(?:[\s.][A-ZÀ-Þ][\w'’-]+){0,2}[\s.]?"
)
"""A name with initials: `H. D. Rao`, `George W. Bush`."""
MAX_NAME_CHARS = 200
"""Maximum length, in characters, of a name that `has_initials` and `without_gloss` read."""
MAX_GLOSS_WORDS = 8
_GLOSS = re.compile(r"(?P<name>[^()（）\n]+?)\s?[（(](?P<gloss>[^()（）\n]{2,})[)）]")
"""A name with its spelling in Latin letters after it: `孔子（Confucius）`."""
_CJK = re.compile("[一-鿿぀-ヿ가-힣]")
_LATIN_NAME = re.compile(r"[A-ZÀ-Þ][\w'’.:&-]*")
_NO_NAME = re.compile(
    r"(?:not?|or|nor|non|wrong|false|incorrect|un\w+|maybe|perhaps|possibly|probably|likely|except|never|else|rather"
    r"|instead|actually|old|former\w*)\W*",
    re.IGNORECASE,
)
"""A word of a remark on a name: `（Not Confucius）`."""
_ASKS_PERSON = re.compile(
    r"\b(?:who|whom|whose|kdo|koho|komu|kým|wer|wen|wem|qui|quién|quem|chi|kto|kogo|кто|кого)\b|[谁誰]|누구|누가",
    re.IGNORECASE,
)


def has_initials(gold: str, problem: str | None) -> bool:
    """Tell whether gold is a name with initials: `A. L. Rao`, or `A. Rao` if the problem asks for a person."""
    match = _WITH_INITIALS.fullmatch(gold.strip()) if len(gold) <= MAX_NAME_CHARS else None
    if match is None:
        return False
    return match.start("initials") > 0 or match["initials"].count(".") > 1 or bool(_ASKS_PERSON.search(problem or ""))


def without_points(text: str) -> str:
    """Return a text without the points of initials: `H D Rao` for `H. D. Rao`."""
    return _INITIAL.sub(lambda match: f"{match[1] or match[2]} ", text)


def without_gloss(text: str) -> str:
    """Return a name without its spelling in Latin letters: 孔子 for `孔子（Confucius）`."""
    match = _GLOSS.fullmatch(text) if len(text) <= MAX_NAME_CHARS else None
    if match is None or _CJK.search(match["name"]) is None:
        return text
    words = match["gloss"].replace(",", " ").split()
    is_name = all(_LATIN_NAME.fullmatch(word) and not _NO_NAME.fullmatch(word) for word in words)
    return match["name"] if is_name and len(words) <= MAX_GLOSS_WORDS else text


def bold_words(response: str) -> str | None:
    """Return the only words in bold of the last line: `It was **Tom Watson**.` Return None if they are in doubt."""
    line = final_part(response).rstrip().rpartition("\n")[2][:MAX_LINE_CHARS]
    match = _BOLD.search(line)
    if match is None or _BOLD.search(line, match.end()) is not None or is_conditional(line) or UNSURE.search(line):
        return None
    before, words, after = line[: match.start()], match[1].strip(), line[match.end() :]
    is_open = _CONTRASTED.search(before) or any(map(EITHER.search, (before, after)))
    return None if is_open or is_attributed(before) or is_doubted(before, after) else words


def bold_beside(response: str, answer: Committed | None) -> str | None:
    """Return the words in bold of the last line, or None if the response commits to another answer.

    A guessed answer of another kind does not count: a number, if the bold words are a name.
    """
    words = bold_words(response)
    if words is None or answer is None or (len(words) > 1 and words in answer.text):
        return words
    if _ANNOUNCES.search(response.rpartition(f"**{words}")[0][-MAX_LINE_CHARS:]):
        return words
    is_value = has_value(words) or len(words.strip("().")) == 1
    return words if answer.form in GUESSED and is_value != has_value(answer.text.strip("$\\[]() ")) else None


def named_in_predicate(response: str, problem: str | None) -> str | None:
    """Return the name that the last line states: `It was Tom Watson.`, `The capital is Rome.`, 首都是北京。

    The subject of the sentence has to be a pronoun, or made of words of the problem.
    """
    *above, line = (final_part(response).rstrip()[-MAX_LINE_CHARS:]).rsplit("\n", 1)
    line = line.replace("**", "").strip("*_ ")
    is_chinese = HAN.search(line) is not None
    match = (_CHINESE_PREDICATE if is_chinese else _PREDICATE).fullmatch(line)
    if match is None or (above and above[0].rstrip().endswith((":", "："))) or is_conditional(line):
        return None
    before, subject = match["lead"], match["subject"] or ""
    if _CONTRASTED.search(before) or EITHER.search(line) or UNSURE.search(before) or is_attributed(before):
        return None
    if subject and problem and (DENIED_BEFORE.search(problem) or line.rstrip(".").casefold() in problem.casefold()):
        return None  # The problem is negated, or repeats this very sentence.
    is_asked = _is_chinese_subject(subject, problem) if is_chinese else _is_subject(subject, problem)
    return None if not is_asked or is_doubted(before, "") else match["name"]


def _is_subject(subject: str, problem: str | None) -> bool:
    """Tell whether a subject has only words of the problem. Without a problem, names and `_ROLES` are allowed."""
    words = _SUBJECT_WORD.findall(subject)
    asked = {word[:_STEM_LETTERS].casefold() for word in _SUBJECT_WORD.findall(problem or "")}
    known = _NEUTRAL if problem else _NEUTRAL | _ROLES
    says_what = any(word.islower() and word not in ("the", "a", "an", "of", "'s", "’s") for word in words)
    return (not subject or says_what) and all(
        word.casefold() in known or word[:_STEM_LETTERS].casefold() in asked or (not problem and word[0].isupper())
        for word in words
    )


def _is_chinese_subject(subject: str, problem: str | None) -> bool:
    """Tell whether all characters of a Chinese subject occur in the problem or in any subject."""
    is_known = problem is None or all(sign in problem or sign in _NEUTRAL_SIGNS for sign in subject)
    return is_known and _OPEN_SUBJECT.search(subject) is None
