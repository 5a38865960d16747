r"""Decides by the clause around a value whether the value is stated as the answer.

A bar separates the deciding words from the value or its clause. In these examples 5 is stated:

    We conclude that | the answer is 5.
    Nobody doubts that | it is 5.                                    two negations affirm
    Tom skips | 5 stones.    We exclude | 5 students.                5 is a count, which these words do not exclude

In these examples 5 is not stated as the answer:

    I deny that | the answer is 5.    The rumour that | it is 5      the main clause does not assert it
    That | the answer is 5 | was never shown.                        the main clause denies it
    Bob's | answer is 5.    In his opinion | the answer is 5.        it is the answer of another person
    My first | answer was 5.    Last year | the answer was 5.        it is an earlier answer
    Without the rule | the answer would be 5.                        it is hypothetical
    The condition forbids | 5.    The answer skips | 5.              5 is excluded
    5 | flunks the test.    5 | is too few.    5 | apples too few    5 is rejected by the words after it
    答案从来不是 | 5。    没有证据表明 | 答案是5。    课本的 | 答案是5。  the same in Chinese

    main clause                                          the subordinate clause is
    `We conclude that`: an asserting word                asserted
    `Nobody doubts that`: two negating words             asserted
    `I deny that`: one negating word                     not asserted
    `The rumour that`: neither kind of word              not asserted

A sentence after an answer takes it back if it calls the answer wrong, withdraws it, or only says no (`takes_back`):

    \boxed{5}. On reflection, this is wrong.    \boxed{5}. I take it back.     Answer: 5. Nope.    Answer: 5 (kidding)
    \boxed{5}. The other root is wrong.         \boxed{5}. This is not a coincidence.              nothing is taken back

Not covered: irony, and languages other than English and Chinese, for which `denials` has lists.
"""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from importlib.resources import files
from itertools import repeat
from typing import Final

from truegold.verifiers.extract.stated_values import is_plain
from truegold.verifiers.written_numbers import plain_number

MAX_CLAUSE_CHARS = 200
"""Maximum number of characters that are read before a value, and after it."""
MAX_TAIL_CHARS = 400
"""Maximum number of characters after an answer that are searched for a sentence that takes the answer back."""
MAX_TAIL_SENTENCES = 4
"""Maximum number of sentences after an answer that are searched."""

_TABLE: Final = tomllib.loads(files(__package__).joinpath("clauses.toml").read_text(encoding="utf-8"))
_CLASSES = {name: f"(?:{'|'.join(words)})" for name, words in _TABLE.items() if isinstance(words, list)}
"""Maps each word class of `clauses.toml` to its pattern. Other patterns of the file refer to a class as `<name>`."""
_NAMED_CLASS = re.compile(r"(?<!\?P)<(\w+)>")


def _patterns(section: str) -> dict[str, re.Pattern[str]]:
    """Return the compiled patterns of a section of the table, with `<name>` replaced by the words of that class."""
    filled = {
        name: _NAMED_CLASS.sub(lambda match: _CLASSES.get(match[1], match[0]), pattern)
        for name, pattern in _TABLE[section].items()
    }
    return {name: re.compile(pattern, re.IGNORECASE) for name, pattern in filled.items()}


_CLAUSE, _BEHIND, _BACK, _CHINESE = map(_patterns, ("patterns", "behind", "back", "chinese"))
_BREAK = re.compile(
    r"[.;:—]\s|[;:—]|\b(?:but(?! for\b)|yet|so|hence|thus|therefore|(?<!back )then|consequently)\b", re.IGNORECASE
)
"""The end of a clause: punctuation, or a word such as `but` or `so`."""
_DENIED_BEHIND = re.compile("|".join(pattern.pattern for pattern in _BEHIND.values()), re.IGNORECASE)
_SOURCE = re.compile(rf"\b(?i:according to|per|says) {_CLASSES['sources']}")
"""A source that a value is ascribed to: `according to the book`."""
_INSERTED = re.compile(r",[^,]{1,40},")
_COPULAS = (" is ", " are ", " was ")
_ENDING = " .$*)\\]}!"
_LEFT_OUT = ("this", "that", "it", "value", "answer", "possibility", "case", "root", "out")
"""Last words of a sentence that excludes a value: `the test excludes this`."""
_ASIDE_MARKS = frozenset("(（[—–")
_NEW_SENTENCE = re.compile(r"[\s$)*\]}\\]*?(?:[.!?…;,—–(（\[，。！\n]|-\s)")
"""The punctuation that ends the sentence of an answer."""
_SENTENCES = re.compile(r"(?<=[.!?…])\s+|\n+|\s?[\[(（—–]\s?|[)）\]]")


def disowns(before: str, after: str) -> bool:
    """Return whether the clause around a value denies or excludes the value, or gives it as another answer."""
    return _disowns(before[-MAX_CLAUSE_CHARS:].rstrip(" $\\(*{[") + " ", after[:MAX_CLAUSE_CHARS].rstrip(_ENDING))


@lru_cache(maxsize=64)
def _disowns(before: str, after: str) -> bool:
    if after and _is_denied_behind(after):
        return True
    if is_plain(before):
        return False
    if not before.isascii() and ("答案" in before or "若" in before or "假" in before):
        return _is_denied_in_chinese(before)
    clause = _BREAK.split(before)[-1]
    return (
        _leaves_out(clause, after)
        or _SOURCE.search(before) is not None
        or _CLAUSE["opined"].search(before) is not None
        or _is_subordinate_denied(clause, after)
    )


def restates(value: str, after: str) -> bool:
    """Return whether the words after a number correct it to another one: `5 (that is, 6)`."""
    match = _CLAUSE["restated"].match(after)
    return match is not None and plain_number(match["other"].strip("$")) != plain_number(value.strip("$ "))


def _is_denied_behind(after: str) -> bool:
    """Return whether the words after a value deny it: `5 | flunks the test`, `5 | (kidding)`."""
    if _DENIED_BEHIND.match(after) is not None:
        return True
    return after.lstrip(" $*")[:1] in _ASIDE_MARKS and takes_back(after)


def _leaves_out(clause: str, after: str) -> bool:
    """Return whether the clause excludes a number, or says that another person found it.

    Examples: `we can discard | 5`, `a careless reader gets | 5`.
    """
    if _CLAUSE["parted"].search(clause) and _CLAUSE["parted_end"].match(after):
        return True
    if _CLAUSE["bare_end"].match(after) is None or clause.endswith(_COPULAS):
        return False
    return any(_CLAUSE[name].search(clause) for name in ("save", "does_not", "excludes", "answered"))


def _is_subordinate_denied(clause: str, after: str) -> bool:
    """Return whether a clause such as `the answer is` names another answer, or is not asserted by its main clause."""
    if (clausal := _CLAUSE["clausal"].match(clause)) and _CLAUSE["named"].match(clause[clausal.start("how") :]):
        return clausal["how"].lower() != "that" or _CLAUSE["upheld"].match(after) is None
    if (named := _CLAUSE["named"].search(clause)) is not None:
        if _CLAUSE["formerly"].match(after) or _CLAUSE["meanwhile"].search(named[0]):
            return True
        if named["that"] and _CLAUSE["spoken_of"].match(after):
            return _CLAUSE["upheld"].match(after) is None
        return _is_of_another(clause, named) or _is_unasserted(clause[: named.start()], named["that"] is not None)
    that_it = _CLAUSE["that_it"].search(clause)
    return that_it is not None and _is_unasserted(clause[: that_it.start()], True)


def _is_of_another(clause: str, named: re.Match[str]) -> bool:
    """Return whether the answer of a clause is another one: of another person, of an earlier time, or hypothetical."""
    owner, front, is_past = named["owner"] or "", clause[: named.start()], _CLAUSE["past"].search(named[0]) is not None
    if _CLAUSE["owner"].match(owner) or _CLAUSE["elsewhere"].match(front):
        return True
    if owner and (_CLAUSE["former"].search(named["kind"]) or (is_past and owner.lower().startswith("your"))):
        return True
    if owner and (is_past or owner.lower().startswith(("my", "your"))) and _CLAUSE["ordinal"].search(named["kind"]):
        return True
    if (is_past and _CLAUSE["then"].match(front)) or _CLAUSE["given_by"].search(named[0]):
        return True
    if "would" not in named[0]:
        return False
    return _CLAUSE["unreal"].match(front) is not None or ("have been" in named[0] and bool(front.strip()))


def _is_unasserted(matrix: str, has_that: bool) -> bool:
    """Return whether the words before a clause leave the clause unasserted: `I deny (that)`."""
    if not has_that and _CLAUSE["contact"].search(matrix) is None:
        return False
    if (subject := _CLAUSE["subject"].search(matrix)) is not None:
        is_inverted = _CLAUSE["inverted"].search(matrix, 0, subject.start()) is not None
        matrix = matrix if is_inverted else matrix[subject.start() :]
    matrix = _INSERTED.sub(" ", matrix)
    if not matrix.strip(" ,"):
        return False
    if flips := len(_CLAUSE["flip"].findall(matrix)):
        return flips % 2 == 1
    if "agree" not in matrix and (
        _CLAUSE["others"].match(matrix) or (_CLAUSE["opinion"].search(matrix) and not _CLAUSE["speaker"].match(matrix))
    ):
        return True
    return _CLAUSE["assertive"].search(matrix) is None


def _is_denied_in_chinese(before: str) -> bool:
    """Return whether the Chinese words before an answer deny, doubt or suppose it."""
    if _CHINESE["unreal"].search(before):
        return True
    if (named := _CHINESE["named"].search(before)) is None:
        return False
    if _CHINESE["affirmed"].search(named["clause"]):
        return False
    return _CHINESE["denial"].search(named["clause"]) is not None or _CHINESE["copula"].match(named["verb"]) is None


def kept(sentence: str) -> str:
    """Return the clause of a sentence that takes a value after rejecting others: `rejecting -3 leaves | 5`.

    Other sentences are returned whole.
    """
    names = ("kept", "since") if sentence.isascii() else ("kept", "since", "kept_in_chinese")
    match = next((match for name in names if (match := _CLAUSE[name].match(sentence))), None)
    return match["main"] if match is not None else sentence


def affirms(before: str) -> bool:
    """Return whether two negations before an answer cancel out: `it is impossible to deny that the answer is`."""
    named = _CLAUSE["named"].search(before)
    if named is None or named["that"] is None:
        return _CHINESE["affirmed"].search(before) is not None
    turns = len(_CLAUSE["flip"].findall(before[: named.start()]))
    return turns > 1 and turns % 2 == 0


def takes_back(tail: str, *, is_letter: bool = False) -> bool:
    """Return whether one of the first sentences after an answer calls it wrong, withdraws it, or only says no.

    is_letter: whether the answer is the letter of an option. After a letter, `no` is not a denial, because it may be
    the option's text.
    """
    if _NEW_SENTENCE.match(tail) is None:
        return False
    sentences = _SENTENCES.split(tail[:MAX_TAIL_CHARS].lstrip(" .$*)]}\\!?…,;:—–，。！"), maxsplit=MAX_TAIL_SENTENCES)
    plain = [sentence.strip(" *_,.…!") for sentence in sentences[:MAX_TAIL_SENTENCES]]
    return any(map(_takes_back, filter(None, plain), repeat(is_letter)))


def _takes_back(sentence: str, is_letter: bool) -> bool:
    return any(
        pattern.match(sentence)
        for name, pattern in _BACK.items()
        if not ((is_letter and name == "nay") or (name == "left_out" and not sentence.endswith(_LEFT_OUT)))
    )
