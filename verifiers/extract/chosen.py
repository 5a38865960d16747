r"""Finds the option that a response chooses: by its letter, its place in the list or its text.

    Therefore, the value of BF is (B).   -> B: the predicate of the sentence
    Hence D is correct. I choose D.      -> D: called right, or chosen by a verb
    Thus, option D     So we have 8. D   -> D: a named option, or a letter that stands alone
    Choice (D) is correct; (C) is small. -> D: `correct` counts more than a mention
    A is wrong, so it is B, not C.       -> B: a denied option is not chosen
    the incorrect statement is C         -> C: `incorrect` belongs to the noun and denies nothing
    Option A or option B is right.       -> A and B: undecided
    We argue as in A.                    -> nothing: a letter in prose
    Option #3 fits. The third option.    -> C
    The capital is Rome.                 -> C, if Rome is the text of C and no other option is named
    No, there are more bikes.            -> B, if the options are Yes and No

If no answer is announced (`committed`), the last line before courtesies is read (`chosen`), and then the first line.
The first line may be a letter with reasons below it. A list that repeats all options chooses none. A *verdict* is a
word that calls an option right or wrong, such as `correct`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import takewhile

from truegold.verifiers.extract.closings import without_closings
from truegold.verifiers.extract.committed import (
    Committed,
    answering_parts,
    boxed,
    committed_answer,
    final_part,
    holds_in_one_case,
    last_line,
)
from truegold.verifiers.extract.declared import behind, is_taken_back, or_another
from truegold.verifiers.extract.denials import is_claimed, is_conditional, is_counterfactual, is_doubted
from truegold.verifiers.extract.judged import MAX_JUDGED_CHARS, asks_for_wrong, judged_letters, with_turned_verdicts
from truegold.verifiers.extract.stated_values import ANY_OF, MAX_LINE_CHARS, may_deny

MAX_PLAIN_CHARS = 2_000
"""Maximum number of characters of a text that are normalised. Stops text made to be slow to normalise."""
_NOT_FOLDED = ("<super>", "<sub>", "<fraction>")
"""Unicode forms with a meaning of their own, which `plain` keeps: 5² is not 52."""
WRAPPER = re.compile(r"\\(?:text|textbf|mathrm|mathbf|boxed|fbox)\s{0,3}(?=\{)")
"""Commands that typeset a text without changing its meaning."""
_ACCENTED = re.compile(r"\\([a-z]{2,16})\s{0,3}\{?\s{0,3}([A-Za-z])\}?")
r"""A letter with an accent, which names no option: `\overline{A}`."""
UNANNOUNCED = ("whole_response", "first_line", "last_line", "conclusion")
"""Forms of answers that are not announced. An option that the response chooses is preferred to them."""
_OPERATOR = re.compile(
    r"\\(?!(?:text|textbf|mathrm|mathbf|boxed|fbox|quad|qquad|left|right|bf|rm)(?![a-z]))[a-z]{2,20}"
)
r"""A command of mathematics: next to one, a letter names no option (`A \cap B`, `2\pi A`)."""
LETTERS = 10
"""Number of letters, from A on, that may name an option if the options are not known."""
_DELIMITERS = str.maketrans("${}\\", "    ")
MAX_LINES = 60
"""Maximum number of lines that are searched for restated options."""
MAX_MENTIONS = 30
"""Maximum number of letters in a line that chooses an option. Stops lines with thousands of letters."""
MIN_TEXT_LETTERS = 3
"""Minimum number of letters in an option's text that is searched for in a sentence."""
MIN_STEM_LETTERS = 5
"""Endings of words are ignored (`_ENDING`) only if each stem of the options has at least this many letters."""
_ENDING = re.compile(r"(?:ent|ence|es|ed|ing|s|e)$")
"""Endings that are ignored if every option is a single word: `diverges` names the option `divergent`."""

_X, _IN_BRACKETS, _BY_TEXT = "\ue000", "\ue001", "\ue002"
"""Marks that are put into a text: `_X` before the letter of an option, `_IN_BRACKETS` after a letter in brackets, and
`_BY_TEXT` after a letter that replaces the text of its option."""
_OPTION = rf"(?:{_X}.|{_X}.{_IN_BRACKETS}|{_X}.{_BY_TEXT})"
_MARKED = re.compile(rf"{_X}(.)")
"""The letter of a marked option."""
_LETTER = re.compile(
    r"(?<![A-Za-z0-9)])[(\[【]\s?(?:option\s|choice\s)?([A-Z])\s?[)\]】]"
    r"|(?<![A-Za-zÀ-ɏЀ-ӿ0-9_'’\\=+^<>|.-])(?<![=+]\s)(?<![A-Za-z0-9)][(\[])(?:([B-HJ-Z])|(A)(?!\s[a-zà-ÿ])|(A)(?=\s(?:"
    + ANY_OF["after_letters"]
    + r")\b))"
    r"(?![A-Za-zÀ-ɏЀ-ӿ0-9_'’^+<>|]|\s?[=*·×]\s?\w|\s?=|-\w|[/:]\d)"
)
"""A letter that names an option: B, (B), [B]. The article A and the letters of `x = A` and `vitamin-C` do not match."""
_LETTERED = re.compile(rf"\b(?:{ANY_OF['lettered_nouns']})(?:\s(?:is|was|must be))?[\s:\"'“]*$", re.IGNORECASE)
"""Words before a letter that does not name an option: `vitamin C`, `the chemical symbol is C`."""
_SMALL = re.compile(
    r"^(\W{0,4})([a-j])(?=[).:、](?:\s|[^\x00-\u024f])|[)\]]?[\s*_.。]{0,3}$|\s\([^()]{2,80}\)\W*$|\s(?:[^\x00-\u024f]|[-–—]\s[^\W\d_]{2}))"
    r"|(?<![^\W_])([(\[]?(?<![^\W_][(\[]))([a-j])(?=[)\]]?\s(?:is|was|must be|seems)\s(?:the\s)?(?:only\s|best\s)?"
    r"(?:correct|right|true|best|answer|wrong|incorrect|false)\b)"
    r"|((?:\b(?:options?|choices?|statements?)\s|选项|選択肢)[(\[]?)([a-j])(?![\w'’])",
    re.IGNORECASE,
)
"""A small letter that names an option: `c. text`, `c (text)`, `(c)`, `c is correct`. `a fact` does not match."""
_SMALL_BESIDE_KANA = re.compile(r"(?<![A-Za-z0-9=+*/^_\\])()([a-j])(?![A-Za-z0-9=+*/^_])")
"""A small letter next to Japanese text."""
HAN = re.compile(r"[一-鿿]{2}")
"""Two Chinese characters."""
_KANA = re.compile(r"[ぁ-ヶ]")
_OPTION_WORDS = f"{ANY_OF['option_words']}|{ANY_OF['answer_words']}"
_CLAUSE_END = re.compile(
    rf"[,，](?!\s?{_X})|{ANY_OF['clause_ends']}|[.;；。!?]"
    rf"|,(?=\s?{_X}.{_IN_BRACKETS}?(?:\s(?:is|was|has|does|fits|works|would|gives|seems|must|cannot)\b|项?是?[正错不]))",
    re.IGNORECASE,
)
"""The end of a clause. A comma before another option ends a clause only if a verb or a verdict follows the option."""
_WORD = rf"(?:(?:{_OPTION_WORDS})\W{{0,3}}){{0,3}}"
"""Nouns before a letter: `option`, `the answer`."""
_DETERMINER = r"(?:(?:the|an?|la|le|el|los|die|der|das|o|os|il)\s|l['’])?"
_VERDICTS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_OPTION}\W{{0,3}}(?:{_OPTION_WORDS})?\s?(?:{ANY_OF['verdicts']})",
        rf"(?:{ANY_OF['choosing_words']})[^\w{_X}]{{0,3}}(?:(?:is|be|for|with|to|that|it['’]s)\s){{0,2}}{_DETERMINER}{_WORD}{_X}",
        rf"(?:{ANY_OF['letter_copulas']})[^\w{_X}]{{0,4}}(?:\w{{2,12}}ly\s)?{_DETERMINER}{_WORD}"
        rf"{_X}.(?:{_IN_BRACKETS}|\s?(?:{ANY_OF['postposed_words']}|选?项|项?正确|번)?[^\w{_X}]*$|\s[(:–—]|:|\s-\s(?=[^\W\d_]{{2}}|\d\S*\s))",
        rf"^\W*{_WORD}{_X}.{_IN_BRACKETS}?\s?(?:{ANY_OF['postposed_words']}|项)?\W*$",
        rf"[,:–—-]\s*{_WORD}{_X}.{_IN_BRACKETS}?\W*$",
    )
)
"""Patterns of clauses that choose an option: by a verdict, a verb of choosing, or `is`."""
_MENTIONS = (
    re.compile(rf"(?:{_OPTION_WORDS})\W{{0,3}}{_X}", re.IGNORECASE),
    re.compile(rf"{_X}.{_IN_BRACKETS}"),
)
"""Patterns of clauses that only name an option. They count if no clause matches `_VERDICTS`."""
_ANNOUNCED_MENTIONS = (*_MENTIONS, re.compile(rf"{_X}.{_IN_BRACKETS}?\W*$"))
"""Patterns of clauses that name an option after an announcement."""
_LETTER_LAST = re.compile(rf"{_X}.[^\w{_IN_BRACKETS}]*$")
_TURNED_DOWN = re.compile(
    rf"(?:\b(?:and|but|et|und|y|e)\s)?(?:{ANY_OF['turned_down']}){_DETERMINER}{_WORD}{_OPTION}(?:\W{{0,3}}(?:(?:or|nor|and|或|和)\s?)?{_WORD}{_OPTION})*",
    re.IGNORECASE,
)
"""Options that are turned down: `and not C or D`."""
_QUESTION = re.compile(r"[^.!?。]{0,300}[?？]")
_SECOND_THOUGHT = re.compile(
    rf"\b(?:or|oder|ou|o|maybe|perhaps|possibly|either|also|alternatively)\b[^\w{_X}]*(?:it['’]s\s|it is\s)?"
    rf"{_DETERMINER}{_WORD}{_X}(.)|[或/]\s?{_X}(.)",
    re.IGNORECASE,
)
"""Another option that is considered: `or B`, `maybe B`."""
_HEDGED = re.compile(
    rf"{_X}.{_IN_BRACKETS}?\W{{1,3}}(?:or\W+)?(?:maybe|perhaps|possibly)\W+{_DETERMINER}{_WORD}{_X}(.)", re.IGNORECASE
)
"""An option with a less certain one after it: `A (maybe B)`."""
UNSURE = re.compile(r"\b(?:maybe|perhaps|possibly|could|might|may)\b|可能(?!性[がは](?:最も)?高)", re.IGNORECASE)
"""Words of a clause that is not sure of its option."""
_LEFT_OPEN = re.compile(
    rf"{UNSURE.pattern}|\b(?:whether|unclear|unsure|not sure)\b|也许|或许|大概|不确定", re.IGNORECASE
)
"""Words of a clause that leaves its option open."""
NEGATION = ANY_OF["option_denials"]
DENIED_BEFORE = re.compile(NEGATION, re.IGNORECASE)
_DENIED_BEHIND = re.compile(
    rf"{_OPTION}[\s,]*(?:(?:{_OPTION_WORDS}|\w{{2,12}}ly)\s?){{0,3}}(?:(?:{ANY_OF['auxiliaries']})\b.*?(?:{NEGATION})"
    r"|\w{2,6}n['’]t\b"
    r"|(?:cannot|can not|may not|fails)\s(?:(?:both |all )?be (?:right|correct|the|true|valid)|to|hold|work|satisf|fit)"
    r"|(?:是|为|[はがも는은이가]\s?)?(?:不|错|誤|間違|有误|被?排除|틀)|[はがも].{0,12}(?:ない|ません)|[는은이가].{0,12}아니"
    r"|(?::\s|=>\s|-\s?)?(?:(?:là|bị) )?(?:sai|loại|không)(?!\w)|yanlış|doğru değil|غير|ليس|خطأ|خاطئ)",
    re.IGNORECASE,
)
"""An option with a denial after it: `C cannot be right`, `C is not the answer`."""
_NOUN_IS_DENIED = re.compile(
    r"^\W*(?:(?:so|thus|hence|therefore)\W+)?(?:the|which|only)\b"
    r"(?!.*\b(?:that (?:the|it)|say|said|think|believe|claim)\b)"
    r"(?!.*\b(?:wrong|incorrect|false) (?:answer|choice|option)s?\b)"
    rf".*\b(?:is|are|was)[\s:]*{_DETERMINER}{_WORD}[^\w]*$|(?:不|错误|有误)[^,。]{{0,20}}的(?![^,。]{{0,8}}(?:答案|原因|理由|地方))[^,。是为有]{{0,8}}(?:是|为|有):?\W*(?:选项)?\W*$",
    re.IGNORECASE,
)
"""The subject of a clause that names a wrong option on purpose: `the incorrect statement is`, 不正确的一项是."""
MAX_RETRACTION_CHARS = 400
"""Maximum number of characters after an announced option that are searched for a retraction."""
_TAKEN_BACK = re.compile(
    rf"(?:^|[\s?!.,;:…(（？。，—–-])(?:{ANY_OF['retracted']}|{ANY_OF['doubted']})(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
"""Words that take an option back, and the text after them."""
_LABELLED = re.compile(
    rf"\W*{_X}(.)(?:{_IN_BRACKETS}|[.):、]|,(?!\s?{_X})|\s[-–—]\s(?=[^\W\d_]{{2}}|\d\S*\s)|\s\()\s*(?=\S)"
)
"""A line with a letter as its label: `A) 2`."""
_ENDS_IN_LETTER = re.compile(r"\w \([A-Z]\)\.?$")
"""The text of an option that ends in a symbol: `ampere (A)`."""
_REJECTED, _REJECTION = (re.compile(ANY_OF[name], re.IGNORECASE) for name in ("rejections", "failures"))
"""Predicates that reject an option. A predicate of `_REJECTION` may also be the text of an option."""
_REJECTED_LATER = re.compile(
    rf"{_X}.*,\s(?:but|although|though|however,?) (?:it|this|that) (?:is|was)(?: not|n['’]t)"
    r" (?:the )?(?:correct|right)\b",
    re.IGNORECASE,
)
"""A remark that rejects the option before it: `(B), but this is not the correct answer`."""
_ALONE = re.compile(rf"\W*{_X}(.){_IN_BRACKETS}?\W*")
"""A line that consists of one letter."""
_ASKED = re.compile(r"\W*\w+\W*[?？]\W*")
"""A line that only asks for one option: `B?`, `Yes?`."""
_BESIDE = re.compile(rf"{_X}.{_IN_BRACKETS}?\W{{0,4}}(.{{1,200}}?)\W*$")
"""A letter with a text after it at the end of a line."""
_ORDINALS = (*("first", "second", "third", "fourth", "fifth", "sixth"), *"一二三四五六")
_NTH = re.compile(
    r"\b(first|second|third|fourth|fifth|sixth|last)\s(?:option|choice|answer)\b|第([一二三四五六])(?:个?选项|项)"
    r"|\b(?:option|choice)\s(?:number\s|no\.?\s?)?#?([1-6]|one|two|three|four|five|six)\b(?![.,]\d)"
    r"|(?<![\d.,])([1-6])\s?[번番](?!째)",
    re.IGNORECASE,
)
"""An option by its place: `the third option`, `option #3`, 第三项."""
_SEVERAL_ORDINALS = re.compile(
    rf"\b(?:{'|'.join(_ORDINALS[:6])})\s(?:or|and)\s(?:the\s)?(?:{'|'.join(_ORDINALS[:6])})\b", re.IGNORECASE
)
"""Two places joined by `or` or `and`."""
_NUMBERS = ("one", "two", "three", "four", "five", "six")
"""Number words for places of options."""
_ITEM = r"[(\[]?(?<![A-Za-z0-9])(?:[A-J]|[a-j](?=\W))(?![A-Za-z0-9'’])[)\]]?(?:选?项)?"
_LIST = re.compile(
    rf"(?:\b(?:both|options?|choices?|statements?)\s)*{_ITEM}(?:\s?(?:(?:[,;、&+]|(?:,\s?)?\b(?:and|und|et|y)\b|[和及与과와と])\s?|(?=\()){_ITEM})+(?:\s(?:only|alone)\b)?(?P<plural>\s(?:are|were)\b(?:\s(?:both|all)\b)?)?"
    r"|(?<![A-Za-z0-9])[A-J]{2,10}(?=[^\x00-\u024f])",
    re.IGNORECASE,
)
"""Letters in a row: `A, C and E`, `(A)(C)`, ACE正确."""
_LETTER_OF_LIST = re.compile(r"(?<![A-Z])[A-J](?![A-Z])")
MAX_LIST_LETTERS, MAX_LISTS = 26, 16
EITHER = re.compile(
    r"\b(?:or|oder|ou|either|one of|maybe|perhaps|possibly)\b|[或/]|また?は|もしくは|あるいは|또는|혹은"
)
"""Words that make several options alternatives."""
_ANNOUNCES_BELOW = re.compile(r"(?::|\banswers?|答案)$", re.IGNORECASE)
"""The end of a line that announces an option below it."""
_OTHERS_LISTED = re.compile(
    r"(?:^|(?<=[\n。.;；]))[^\n。.;；]{0,40}(?:\bothers?\b|\bremaining\b|\brest\b|其他|其它|其余)[^\n。.:：]{0,60}[:：]"
    r"(?=[\s*_•-]{0,12}(?:options?\s)?[(（]?[A-J](?:[)）.．、:：]|\s(?:and|or|&)\s[A-J]\b|\s\())",
    re.IGNORECASE,
)
"""The heading of a list of all other options: `The other statements are right: A. Wool is protein. B. ...`"""
_OPTION_WORD = re.compile(r"^(?:options?|choices?|statements?)\s", re.IGNORECASE)
"""A noun before the letter of a line: `Option A:`."""
_OTHERS = re.compile(r"\b(?:others?|rest|remaining|remainder)\b|其他|其它|其余|他の|나머지", re.IGNORECASE)
"""Words for the options that are not the answer."""
_INTERJECTIONS = frozenset(ANY_OF["interjections"].split("|"))
"""Words such as yes and no, which may be a whole answer."""
_OTHER_WORDS = {
    **{"是的": "是", "不是": "否", "对的": "对", "不对": "错"},
    **{"correct": "true", "right": "true", "incorrect": "false", "wrong": "false"},
}
"""Maps a word of a response to the option's text that it stands for."""
_JUDGEMENTS = frozenset(("correct", "incorrect", "right", "wrong", "true", "false", "valid", "invalid"))
"""Options that may also be adjectives of other nouns."""
_QUOTED = re.compile(r"[`\"“][^`\"“”\s]+\s[^`\"“”]*[`\"”]")
"""Several words in quotes, such as an expression that is judged: `the result of "not True" is False`."""
_PREDICATIVE = r"(?:(?<!\bthe\s)(?<!\ba\s)(?<!\ban\s)|(?=\w+\s\w+\W*$))"
"""Rejects a judgement that belongs to a noun: `the correct answer is 5`. `5 is the correct answer` is allowed."""
_ANSWERS = _INTERJECTIONS | {"是的", "不是", "对的", "不对"}
"""Words that may answer at the beginning of a sentence."""
_CALLED = re.compile(
    r"\b(?:statement|claim|assertion|it|this|that)\s(?:is|was)\s(?:\w+ly\s)?(?P<word>correct|incorrect|right|wrong)\W*$|(?<![不非])是(?P<han>对|错)的\W*$",
    re.IGNORECASE,
)
"""A verdict on a statement at the end of a line: `this statement is correct`."""
_SUPPOSED = re.compile(
    rf"{_LEFT_OPEN.pattern}|可能|如果|若|假[设如]|猜|说(?!法)|未必|不一定|[?？]\W*$|\b(?:if|suppose|assum\w+)\b",
    re.IGNORECASE,
)
"""Words of a sentence that does not itself affirm a statement: `if`, `some say`."""
_COMPARED = re.compile(rf"\b(?:than|unlike|like|except|besides)\s(?:the\s)?{_X}", re.IGNORECASE)
"""An option that serves only as a comparison: `unlike C`."""


def plain(text: str) -> str:
    """Return a text without markup, maths delimiters and runs of blanks, with full-width and circled letters as A-Z."""
    text = "".join(map(_fold, text[:MAX_PLAIN_CHARS]))
    text = WRAPPER.sub("", text).replace("**", "")
    if "\\" in text:
        text = _ACCENTED.sub(r"\1\2", text)
    text = text.translate(_DELIMITERS)
    return " ".join(text.split()).strip("*_`。 ")


def _fold(character: str) -> str:
    """Return a character in its normal form: A for Ａ and Ⓐ."""
    if character == "（":
        return " ("
    if character < "\u0080" or unicodedata.decomposition(character).startswith(_NOT_FOLDED):
        return character
    return unicodedata.normalize("NFKC", character)


def letters_in(text: str, count: int = LETTERS, *, announced: bool = False) -> frozenset[str]:
    """Return the letters of the options that a text chooses. Several letters are a hedge.

    announced: whether the text follows words such as `the answer is`. A letter at either end of it is then chosen.
    """
    marked = _with_letters_marked(plain(_OPERATOR.sub("=", text) if "\\" in text else text), count)
    return _chosen_in(f": {marked}" if announced else marked, _ANNOUNCED_MENTIONS if announced else _MENTIONS)


def committed_choice(
    response: str, options: Sequence[str] = (), *, several: bool = False, problem: str | None = None
) -> Committed | None:
    """Return the announced answer of a response, or else the option that it chooses. Used if gold is an option.

    several: whether gold has several options. problem: the problem's text. If the problem asks for the wrong option,
    the option that the response calls wrong is the answer.
    """
    committed = committed_answer(response, several=several)
    if several and committed is not None and committed.form == "boxed":
        # Boxes with `or` between them are alternatives and not parts of one answer.
        joined = committed_answer(response)
        committed = joined if joined is not None and EITHER.search(joined.text) else committed
    if committed is not None and committed.form not in UNANNOUNCED:
        another = or_another(final_part(response), committed.text)
        other = _instead(response, committed.text) or _labelled_below(response, committed.text)
        text = ", ".join(sorted(other)) or committed.text
        if another and letters_in(committed.text, announced=True):
            text = f"{committed.text} or {another}"
        return Committed(text, committed.form)
    is_wrong_asked = problem is not None and asks_for_wrong(problem)
    turned = _without_others(with_turned_verdicts(response) if is_wrong_asked else response)
    if (letters := judged_letters(final_part(response), problem, several=several)) is not None:
        return Committed(", ".join(sorted(letters)), "option") if letters else None
    if several and (choice := _chosen_set(turned)) is not None:
        return choice
    if (choice := chosen(turned, options)) is not None:
        if several and EITHER.search(last_line(turned)):
            choice = Committed(choice.text.replace(", ", " or "), choice.form)
        return None if holds_in_one_case(final_part(response), choice, problem) else choice
    # A letter in prose is not an answer, and neither is the last line of a list of all options.
    if committed is None or len(letters_in(committed.text, announced=True)) == 1:
        return None
    return None if _LABELLED.match(_with_letters_marked(plain(committed.text), LETTERS)) else committed


def _without_others(text: str) -> str:
    """Return a text without a list of all other options at its end."""
    headings = list(_OTHERS_LISTED.finditer(text, max(0, len(text) - MAX_JUDGED_CHARS)))
    lines = _plain_lines(without_closings(text[headings[-1].end() :])) if headings else []
    line = _OPTION_WORD.sub("", lines[-1]) if lines else ""
    return text[: headings[-1].start()] if _LABELLED.match(_with_letters_marked(line, LETTERS)) else text


def _labelled_below(response: str, text: str) -> frozenset[str]:
    """Return the letters of several labelled lines below an announcement: `The answer is:`, `A) 2`, `B) 3`."""
    lines, label = _plain_lines(final_part(response)), plain(text).lstrip("-•> ")
    for start in range(len(lines) - 1, 0, -1):
        above, line = lines[start - 1 : start + 1]
        # `Answer: A` begins with an A that is not a label.
        begins = line.startswith(label) and not line[len(label) :][:1].isalnum()
        if line.rstrip(".").endswith(label) and not begins:  # The answer ends the line of the announcement.
            return frozenset()
        if begins and _ANNOUNCES_BELOW.search(above):
            letters = _labels_of(lines[start:])
            return frozenset(letters) if len(letters) > 1 else frozenset()
    return frozenset()


def _plain_lines(text: str) -> list[str]:
    """Return the last lines of a text that are not blank, without markup and bullets."""
    return [plain(line[:MAX_LINE_CHARS]).lstrip("-•> ") for line in text.splitlines()[-MAX_LINES:] if line.strip()]


def _labels_of(lines: Iterable[str]) -> list[str]:
    """Return the letters that label the first lines. Lines that deny their option are left out."""
    marked = (_with_letters_marked(line, LETTERS) for line in lines)
    labelled = takewhile(_LABELLED.match, marked)
    return [line[line.index(_X) + 1] for line in labelled if not _is_denied(line)]


def _chosen_set(response: str) -> Committed | None:
    """Return the options that the last line chooses as a list: `A and C are right, B is not`."""
    for part in answering_parts(response):
        if boxed(part, several=0) is not None:
            continue
        lines = _plain_lines(part)
        if len(letters := _labels_of(lines)) == len(lines) > 1:
            return Committed(", ".join(letters), "option")
        line, lists = _with_lists_named(plain(last_line(without_closings(part))))
        if lists and (names := _chosen_in(_with_letters_marked(line, MAX_LIST_LETTERS), _MENTIONS)):
            letters = sorted({letter for name in names for letter in lists.get(name, [name])})
            return Committed((" or " if EITHER.search(line) else ", ").join(letters), "option")
    return None


def _with_lists_named(line: str) -> tuple[str, dict[str, list[str]]]:
    """Return a line with (Z), (Y), ... for its lists of letters, and the lists: `A and C fit` -> `(Z) fit`, Z: A, C."""
    lists: dict[str, list[str]] = {}

    def name(match: re.Match[str]) -> str:
        if len(lists) >= MAX_LISTS:
            return match[0]
        letter = chr(ord("Z") - len(lists))
        letters = match[0].removesuffix(match["plural"] or "")
        lists[letter] = _LETTER_OF_LIST.findall(letters.upper()) or list(letters)
        return f"({letter}) is" if match["plural"] else f"({letter})"

    return _LIST.sub(name, line), lists


def _instead(response: str, text: str) -> frozenset[str]:
    """Return the letters that replace an announced option: B for `Answer: C? No, B`.

    Answer: C. ... Wait, it is B.       B: a later paragraph begins with the retraction and chooses B
    """
    label = _LABELLED.match(_with_letters_marked(plain(text), LETTERS))
    if not (label or letters_in(text, announced=True)):
        return frozenset()
    first, *below = behind(final_part(response), text)[:MAX_JUDGED_CHARS].split("\n\n")
    if (taken_back := _TAKEN_BACK.search(first[:MAX_RETRACTION_CHARS])) is not None:
        return letters_in(taken_back["rest"])
    for paragraph in below:
        if (taken_back := _TAKEN_BACK.match(paragraph.lstrip()[:MAX_RETRACTION_CHARS])) is not None:
            rest = plain(taken_back["rest"])
            return _chosen_in(_with_letters_marked(rest, LETTERS), (_LETTER_LAST,))
    return frozenset()


def chosen(response: str, options: Sequence[str] = ()) -> Committed | None:
    """Return the options that a response chooses without an announcement, by letter, place or text."""
    for part in answering_parts(response):
        if boxed(part, several=0) is not None:
            continue
        for text in dict.fromkeys((part, without_closings(part))):
            if letters := _at_end(text, options):
                return Committed(", ".join(sorted(letters)), "option")
    return None


def _at_end(text: str, options: Sequence[str]) -> frozenset[str]:
    """Return the letters that the last line of a text chooses, or else its first line."""
    count = len(options) or LETTERS
    written = last_line(text)
    if len(written) > MAX_LINE_CHARS or not (line := plain(written)) or _ASKED.fullmatch(line):
        return frozenset()
    for index, option in enumerate(map(plain, options)):
        if _ENDS_IN_LETTER.search(option):
            line = line.replace(option.rstrip("."), f"({chr(ord('A') + index)})")
    marked = _with_letters_marked(line, count)
    is_label, is_list = _LABELLED.match(marked), _restates(text, count)
    if is_label and is_list and (letters := _announced_by_colon(text, is_label[1], count)):
        return letters
    taken_back = _TAKEN_BACK.search(marked)
    has_first = taken_back is not None and _X in marked[: taken_back.start()]
    if is_conditional(line) or (marked.count(_X) == 1 and _REJECTED_LATER.search(marked)):
        return frozenset()
    letters = _chosen_in(taken_back["rest"], _MENTIONS) if taken_back is not None and has_first else frozenset()
    if not letters and not (is_label and is_list):
        letters = _chosen_in(marked, _MENTIONS)
    is_rejected = is_label and not is_list and _is_rejected(is_label[1], marked[is_label.end() :], options)
    if not letters and is_label and not is_list and not is_rejected:
        letters = frozenset(is_label[1]) | _second_thoughts(marked)
    if letters:
        if not (is_label or _ALONE.fullmatch(marked) or any(pattern.search(marked) for pattern in _MENTIONS)):
            letters = letters.union(*(_same_text(letter, options) for letter in letters))
        beside = _BESIDE.search(marked)
        return letters | (_same_text(beside[1], options) if beside is not None else frozenset())
    if is_label and is_list:
        return _answered_first(text, "", options, is_list)
    named = place_of(line, options) or texts_in(line, options)
    return named if named or is_rejected else _answered_first(text, line, options, is_list)


def _announced_by_colon(text: str, letter: str, count: int) -> frozenset[str]:
    """Return the letter of the last line if the line above announces it: `The false statement is:`, `C. Wool`."""
    above = (_plain_lines(text)[-2:-1] or [""])[0]
    if not above.endswith(":") or _OTHERS.search(above):
        return frozenset()
    return _chosen_in(f"{_with_letters_marked(above, count)} {_X}{letter}", ())


def _same_text(text: str, options: Sequence[str]) -> frozenset[str]:
    """Return the letter of the option with this text. A label is ignored: `(C) Paris` gives B if option B is Paris."""
    key = plain(text).casefold()
    return frozenset(chr(ord("A") + index) for index, option in enumerate(options) if plain(option).casefold() == key)


def _answered_first(text: str, last: str, options: Sequence[str], is_list: bool) -> frozenset[str]:
    """Return the letter in the first line, or the letter of the yes or no that begins the first or the last line."""
    first = plain(text.strip().partition("\n")[0][:MAX_LINE_CHARS])
    marked = _with_letters_marked(first, len(options) or LETTERS)
    if label := _ALONE.fullmatch(marked) or (None if is_list else _LABELLED.match(marked)):
        return frozenset(label[1])
    words = {plain(option).casefold(): chr(ord("A") + index) for index, option in enumerate(options)}
    if _INTERJECTIONS.isdisjoint(words):
        return frozenset()
    words |= {other: words[word] for other, word in _OTHER_WORDS.items() if word in words}
    last = "" if _SUPPOSED.search(last) else last
    if match := _CALLED.search(last):
        return frozenset(words.get((match["word"] or match["han"]).casefold(), ""))
    interjections = "|".join(map(re.escape, sorted(words.keys() & _ANSWERS, key=len, reverse=True)))
    pattern = re.compile(
        rf"(?:^|[.!?。]\s?|(?<!\bif the )(?<!\bwhether the )\b(?:final )?answer(?:\sis)?\W{{1,6}}"
        rf"|\b(?:so|thus|then|therefore),?\s|(?:所以|因此|故)[，,]?)\W*({interjections})"
        r"(?=\W*$|[,.!;:，。、]|\s(?:it|they|he|she|there|this|that|we)\b)",
        re.IGNORECASE,
    )
    verdicts = {(word, text) for word in pattern.findall(first)[:1]} | {(word, last) for word in pattern.findall(last)}
    is_kept = {word: not is_taken_back(source.partition(word)[2], word) for word, source in verdicts}
    return frozenset(words[word.casefold()] for word in is_kept if is_kept[word])


def _restates(text: str, count: int) -> bool:
    """Return whether lines of a text have different letters as labels, as the options of the problem have."""
    lines = text.split("\n")[-MAX_LINES:]
    labels = (_LABELLED.match(_with_letters_marked(plain(line[:40].strip("*_#> \t-")), count)) for line in lines)
    return len({label[1] for label in labels if label}) > 1


def place_of(line: str, options: Sequence[str]) -> frozenset[str]:
    """Return the letter of the option that a line names by its place: `the third option`, `Option #3 fits`."""

    def letter(match: re.Match[str]) -> str:
        word = next(filter(None, match.groups())).casefold()
        if word == "last":
            return chr(ord("A") + len(options) - 1) if options else ""
        if word.isdigit() and word in options:
            return ""
        names = next(names for names in (_ORDINALS[:6], _ORDINALS[6:], _NUMBERS, "123456") if word in names)
        return chr(ord("A") + names.index(word))

    if _SEVERAL_ORDINALS.search(line):
        return frozenset()
    marked = _NTH.sub(lambda match: f"{_X}{letter(match)}{_IN_BRACKETS}" if letter(match) else match[0], line)
    return _chosen_in(marked, _MENTIONS) if _X in marked else frozenset()


def texts_in(line: str, options: Sequence[str]) -> frozenset[str]:
    """Return the letter of the option whose text a line affirms, or an empty set if the line affirms several."""
    texts = [plain(option).rstrip(".;") for option in options]
    # Genotypes such as AaBb and aabb differ only by case.
    fold = str.casefold if len({text.casefold() for text in texts}) == len(texts) else str
    folded = fold(line)
    keys = {fold(text): chr(ord("A") + index) for index, text in enumerate(texts)}
    if _JUDGEMENTS.issuperset(keys):
        folded = _QUOTED.sub(" ", folded)
    stems = {_ENDING.sub("", key): letter for key, letter in keys.items() if key.isascii() and key.isalpha()}
    if stems and len(stems) == len(keys) and min(map(len, stems)) >= MIN_STEM_LETTERS:
        lead = _PREDICATIVE if _JUDGEMENTS.issuperset(keys) else ""
        folded = re.sub(
            rf"{lead}\b({'|'.join(stems)})(?:{_ENDING.pattern[:-1]})?\b",
            lambda m: f"{_X}{stems[m[1]]}{_BY_TEXT}",
            folded,
        )
    for key in sorted(keys, key=len, reverse=True):
        if sum(character.isalpha() for character in key) < MIN_TEXT_LETTERS and key.isascii():
            continue
        if key in folded and (key not in _INTERJECTIONS or key in ("true", "false")):
            mark = f"{_X}{keys[key]}{_BY_TEXT}"
            # Chinese words have no blanks around them.
            edges = (r"", r"") if HAN.search(key) else (rf"(?<![^\W_{_X}])", r"(?![^\W_])")
            edges = (f"{_PREDICATIVE}{edges[0]}", edges[1]) if key in _JUDGEMENTS else edges
            folded = re.sub(re.escape(key).join(edges), mark, folded)
    if _X not in folded or line.endswith(("?", "？")):
        return frozenset()
    clauses = [clause for clause in _CLAUSE_END.split(_TURNED_DOWN.sub("", folded)) if _X in clause]
    if any(map(_LEFT_OPEN.search, clauses)):
        return frozenset()
    letters = frozenset(name for clause in clauses if not _is_denied(clause) for name in _MARKED.findall(clause))
    if len(letters) != 1 or _COMPARED.search(folded):
        return frozenset()
    verdict = options[ord(min(letters)) - ord("A")]
    return frozenset() if is_taken_back(line[folded.index(_X) :], verdict) else letters


def _with_capital_letters(text: str) -> str:
    """Return a line with a capital for each small letter that names an option."""
    pattern = _SMALL_BESIDE_KANA if _KANA.search(text) else _SMALL
    return pattern.sub(lambda match: match[0][:-1] + match[0][-1].upper(), text)


def _with_letters_marked(text: str, count: int) -> str:
    """Return a text with `_X` before each of the first `count` letters that names an option."""

    def mark(match: re.Match[str]) -> str:
        letter = match[1] or match[2] or match[3] or match[4]
        if ord(letter) - ord("A") >= count or (not match[1] and _LETTERED.search(text, 0, match.start())):
            return match[0]
        return _X + letter + (_IN_BRACKETS if match[1] else "")

    return _LETTER.sub(mark, _with_capital_letters(text))


def _chosen_in(marked: str, mentions: Sequence[re.Pattern[str]]) -> frozenset[str]:
    """Return the letters in clauses with a verdict, or else in clauses that match `mentions`."""
    if not 0 < marked.count(_X) <= MAX_MENTIONS:
        return frozenset()
    several = marked.count(_X) > 1
    marked = _TURNED_DOWN.sub("", _QUESTION.sub("", marked))
    hedged = frozenset(_HEDGED.findall(marked))
    marked = _without_claims(marked, is_contrast=several)
    clauses = [clause for clause in _CLAUSE_END.split(marked) if _X in clause and not _is_denied(clause)]
    for patterns in (_VERDICTS, mentions):
        choosing = [
            clause for clause in clauses if not UNSURE.search(clause) and any(p.search(clause) for p in patterns)
        ]
        if choosing:
            letters = frozenset(letter for clause in choosing for letter in _MARKED.findall(clause))
            letters -= _denied_last(marked) if patterns is mentions else frozenset()
            return letters | hedged | _second_thoughts(marked)
    return frozenset()


def _second_thoughts(marked: str) -> frozenset[str]:
    """Return the letters of options that a text considers besides the chosen one: `or B`."""
    return frozenset(letter for pair in _SECOND_THOUGHT.findall(marked) for letter in pair if letter)


def _without_claims(marked: str, *, is_contrast: bool) -> str:
    """Return a text without the marks of letters that are asked for, supposed or attributed to another person.

    is_contrast: whether the text has several letters, as in `not A but B`. Then doubts about a letter are ignored.
    """
    if not may_deny(marked):
        return marked
    if is_counterfactual(marked):
        return ""

    def unmark(match: re.Match[str]) -> str:
        before = marked[: match.start()]
        is_none = (not is_contrast and is_doubted(before, "")) or is_claimed(before, marked[match.end() :])
        if _NOUN_IS_DENIED.search(before):
            return match[0]
        return match[1].lower() if is_none else match[0]

    return _MARKED.sub(unmark, marked)


def _is_rejected(letter: str, text: str, options: Sequence[str]) -> bool:
    """Tell whether the words after a label reject the option, at their beginning or end: `B) fails, because ...`.

    Words of the option itself do not count.
    """
    option = plain(options[ord(letter) - ord("A")]).casefold() if options else text.casefold()
    is_own = option.startswith(text[: len(option)].casefold().rstrip("."))
    return bool(letter in _denied_last(text) or _REJECTED.match(text) or (_REJECTION.match(text) and not is_own))


def _denied_last(marked: str) -> frozenset[str]:
    """Return the letters in the last clause that has letters, if this clause denies them. The set may be empty."""
    clause = next((clause for clause in reversed(_CLAUSE_END.split(marked)) if _X in clause), "")
    return frozenset(_MARKED.findall(clause)) if _DENIED_BEHIND.search(clause) else frozenset()


def _is_denied(clause: str) -> bool:
    """Return whether a clause denies its option, before or after the letter."""
    lead = clause[: clause.index(_X)]
    if DENIED_BEFORE.search(lead) and not _NOUN_IS_DENIED.search(lead):
        return True
    return _DENIED_BEHIND.search(clause) is not None
