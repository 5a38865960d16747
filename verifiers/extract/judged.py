"""Reads options that a response judges true or false one by one, and questions that ask for the wrong option.

    A. Wool is protein, so A is true. B. ... so B is true. C. ... false.  -> C, if the problem asks for the false one
    A错误；B正确；C错误；D错误。                                            -> B: the only different one
    A. True.  B. False.  C. True.  D. False.                              -> none, unless gold has several letters
    Only C is wrong.                                                      -> C, if the problem asks for the wrong one

A *verdict* is a word that calls an option true or false. It stands at the beginning or the end of the option's text. If
the first and the last verdict on an option contradict each other, neither counts.
"""

from __future__ import annotations

import re
import unicodedata

MAX_JUDGED_CHARS = 8_000
"""Maximum number of characters at the end of a text that are searched for verdicts."""
MIN_JUDGED, MIN_ALIKE = 2, 3
"""Minimum number of options with a verdict: MIN_JUDGED if the verifier has the problem's text, else MIN_ALIKE."""

_WRONG = (
    r"(?:not|n['’]t|never) (?:correct|true|right|valid|accurate)|incorrect|false|wrong|untrue|invalid|inaccurate"
    r"|不正确|不对|不成立|不符合?|有误|错误?|誤り|正しくない|틀린|옳지 않|\b(?:sai|không đúng)\b"
)
_RIGHT = r"correct|true|right|valid|accurate|正确|成立|对|正しい|옳은|\bđúng\b"
IS_WRONG = re.compile(_WRONG, re.IGNORECASE)
"""A verdict that calls an option or a statement wrong."""
_NAMED = r"(?:(?:options?|statements?|choices?|选项|選択肢)\s?)?[(\[]?(?P<letter>[A-J])[)\]]?"
"""The name of an option: `C`, `(C)`, `option C`."""
_LABEL = re.compile(
    rf"(?:^|(?<=[\n。；;.]))[ \t#>*•-]*{_NAMED}"
    r"(?=[.):、,]|\s?选?项|\s(?:is|was|sai|đúng|loại)\b|\s?[-–—]\s|的|[正错不])",
    re.IGNORECASE,
)
"""The name of an option at the beginning of a sentence or line: `C.`, `C is`, `C项`."""
_VERDICT = rf"(?P<verdict>{_WRONG}|{_RIGHT})"
_FITS = re.compile(r"(不)?符合(?:题意|要求)")
"""`符合题意` (fits the question) and its negation. They say whether an option is the answer, not whether it is true."""
_NOUN = r"(?:[该此这本]|the |an? |only |statements?|one|选?项|的|说法|叙述|描述|表述|结论|是|为|均|都|\s)*"
"""Words between an option and its verdict: `is the only`, 的说法是."""
_FIRST = re.compile(
    rf"[\W_]*(?:(?:this|it|that)\s)?(?:is|was|that['’]s|it['’]s)?\s?{_NOUN}{_VERDICT}"
    r"(?:的|です)?\s?(?=[\W_]*$|[,.:;，。：；]|\s(?:because|since|as|for|statement|因)\b)",
    re.IGNORECASE,
)
"""A verdict at the beginning of an option's text: `True.`, `This is false because`."""
_LAST = re.compile(
    rf"(?:(?<=[,.:;，。：；\s])|^|[故则即])[\W_]*(?:so|thus|hence|therefore|is|was|are|故|所以|因此|{_NAMED}|\s)*"
    rf"(?:is|are)?\s?{_NOUN}{_VERDICT}(?:的|です)?[\W_]*$",
    re.IGNORECASE,
)
"""A verdict at the end of an option's text: `... so C is false.`"""
_PREDICATE = re.compile(
    rf"(?P<subject>(?<![A-Za-z0-9])[A-J](?![A-Za-z0-9])[)\]]?(?:选?项)?)(?P<link>\s(?:is|are|was)\s|\s)?{_NOUN}{_VERDICT}"
    r"(?! (?:answer|choice|option))",
    re.IGNORECASE,
)
"""A verdict as the predicate of an option: `C is wrong`."""
_NO_CLAUSE = r"(?:(?!\b(?:if|when|that|who|where|because|since|reason|why)\b)[^,;:.?!\n]){0,80}?"
"""Words of a question up to `not`, without a subordinate clause."""
_ASKS_WRONG = re.compile(
    rf"\b(?i:which|what)\b{_NO_CLAUSE}\b(?:(?i:not|cannot|incorrect|incorrectly|false|wrong|untrue|inaccurate|least)\b|\w+n['’]t\b)"
    r"|\b(?i:select|choose|identify|pick|find|mark)\s(?i:the|an?)\s(?:\w+\s)?(?i:incorrect|false|wrong|untrue|inaccurate)\b"
    rf"|\b(?i:which|all|each|every)\b{_NO_CLAUSE}\b(?i:except)\b|\bEXCEPT\b|\b[Ww]hich\b[^?\n]{{0,200}}\bNOT\b"
    r"|(?:错误|有误|不(?:正确|(?!正确)[^的，。\s]{1,12}))的(?:是|有|为|(?:一|选)项|一组|[^，。的]{0,6}[是为有])"
    r"|(?:誤|不適切|正しくな|適切でな)[^。？\n]{0,12}(?:もの|選|どれ)"
    r"|(?:옳지 않|틀린|아닌|적절하지 않)[^.?\n]{0,12}것"
)
"""A question for the wrong option: `which is NOT`, `all of these except`, 错误的是."""


def asks_for_wrong(problem: str) -> bool:
    """Return whether a problem asks for the option that is wrong: `which is NOT correct`, 错误的是."""
    return _ASKS_WRONG.search(problem[-MAX_JUDGED_CHARS:]) is not None


def with_turned_verdicts(text: str) -> str:
    """Return an answer with reversed verdicts, for a problem that asks for the wrong option.

    C is wrong.       -> C is correct.      C is the answer
    C is correct.     -> unchanged          a line without `wrong` already names the answer
    """
    start = max(0, len(text) - MAX_JUDGED_CHARS)
    if IS_WRONG.search(text, start) is None:
        return text

    def turned(match: re.Match[str]) -> str:
        words = ("wrong", "correct") if match["verdict"].isascii() else ("错误", "正确")
        verdict = words[IS_WRONG.fullmatch(match["verdict"]) is not None]
        return f"{match['subject']}{' is ' if match['link'] else ''}{verdict}"

    lines = text[start:].split("\n")
    return text[:start] + "\n".join(_PREDICATE.sub(turned, line) if IS_WRONG.search(line) else line for line in lines)


def judged(text: str) -> tuple[dict[str, bool], bool]:
    """Return the verdict on each judged option (True for right), and whether the text ends with the last of them."""
    folded = unicodedata.normalize("NFKC", text[-MAX_JUDGED_CHARS:]).replace("*", "").strip()
    if IS_WRONG.search(folded) is None:
        return {}, False
    if not (labels := list(_LABEL.finditer(folded))):
        return {}, False
    end = folded.find("\n", labels[-1].end())
    ends = [*(label.start() for label in labels[1:]), end if end != -1 else len(folded)]
    verdicts: dict[str, bool] = {}
    for label, end in zip(labels, ends, strict=True):
        remark = folded[label.end() : end].lstrip(").:、, \t").strip()
        first, last = _FIRST.match(remark), _LAST.search(remark)
        if fits := _FITS.search(remark):
            verdicts[label["letter"].upper()], is_judged = fits[1] is None, True
            continue
        named = {IS_WRONG.fullmatch(match["verdict"]) is None for match in (first, last) if match is not None}
        is_of_other = last is not None and last["letter"] not in (None, label["letter"])
        is_judged = len(named) == 1 and not is_of_other
        if is_judged:
            verdicts[label["letter"].upper()] = named.pop()
    return verdicts, is_judged and not folded[end:].strip()


def judged_letters(text: str, problem: str | None, *, several: bool) -> frozenset[str] | None:
    """Return the letters that the verdicts on all options choose.

    several: whether gold has several letters. Only then, and only with the problem's text, several letters are
    returned. The set is empty if the verdicts leave the choice open. The result is None if too few options have one.
    """
    verdicts, is_last = judged(text)
    if not is_last or len(verdicts) < (MIN_ALIKE if problem is None else MIN_JUDGED):
        return None
    is_right = sum(verdicts.values()) == 1 if problem is None else not asks_for_wrong(problem)
    is_right = is_right or _FITS.search(text) is not None
    letters = frozenset(letter for letter, verdict in verdicts.items() if verdict == is_right)
    return letters if len(letters) == 1 or (several and problem is not None) else frozenset()
