r"""Answers announced by a word in brackets, as exam papers and models of Chinese, Japanese and Korean write them.

【答案】3                          Answer: 3
〖正确答案〗：B                     Answer: B
[ANS] 3/8                        Answer: 3/8
【答案：36】                       Answer: 36
<答案>3</答案>                     Answer: 3
【解答】解：一共 7 个苹果。            解：一共 7 个苹果。     a derivation, which concludes as any other does
【答案】B 【解析】A 项错误。           Answer: B             and below it what belongs to another part
"""

from __future__ import annotations

import re

ANSWER = "\nAnswer: "
"""What announces an answer in the same way everywhere."""

_OPEN, _CLOSE = r"[【〖［\[「『《〈<（(]", r"[】〗］\]」』》〉>）)]"
_EASTERN = r"(?:(?:参考|正确|最终|最后|标准|參考|正確|最終)?答[ ]?案|答え|こたえ|正解|정답|답)"
_WORD = rf"(?:{_EASTERN}|(?:the[ ])?(?:(?:my[ ])?final[ ]|correct[ ])?answer|ans)"
_LINK = r"[ \t\u3000]{0,3}(?:[:：=＝]|是|为|為|は)?[ \t\u3000]*"
_BOLD = r"[*_]{0,3}"


def _mark(opening: str, word: str) -> str:
    return rf"{_BOLD}(?<!\\){opening}{_BOLD}[ ]?{word}[ ]?{_BOLD}[:：]?{_BOLD}{_CLOSE}{_BOLD}{_LINK}"


_LINE_MARK = re.compile(rf"(?:^|(?<=\n))[ \t#>*_]{{0,8}}{_mark(_OPEN, _WORD)}", re.IGNORECASE)
_EASTERN_MARK = re.compile(_mark(r"[【〖［\[「『《〈]", _EASTERN))
"""Eastern words stand in brackets within a line too, where `[answer]` is prose."""
_WITH_VALUE = re.compile(
    rf"(?:(?:^|(?<=\n))[ \t*]{{0,8}}(?<!\\){_OPEN}[ ]?{_WORD}|[【〖［][ ]?{_EASTERN})[ ]?[:：][ \t]*"
    rf"([^\n【〖［「『《〈】〗］」』》〉]{{1,200}}?){_CLOSE}(?=\s|[。.]|$)",
    re.IGNORECASE,
)
_CLOSING = re.compile(rf"[<＜]/[ ]?{_EASTERN}[ ]?[>＞]")
_SECTION = re.compile(
    r"[【〖［\[](?:解析|分析|点评|点睛|详解|解答|解题思路|解|考点|难度|分值|知识点|解説|해설|풀이"
    r"|[Ss]olution|[Aa]nalysis|[Ee]xplanation)[】〗］\]][:：]?"
)
_EASTERN_HINTS = ("【", "〖", "答", "正解", "답")
_HINTS = ("nswer]", "NSWER]", "nswer)", "NSWER)", "nswer*", "[Answer", "[answer", "[ANSWER", "[Final", "[final")
"""One of these stands in every mark; looking for them is far quicker than the patterns."""


def _has_mark(text: str) -> bool:
    if not text.isascii() and any(hint in text for hint in _EASTERN_HINTS):
        return True
    if "nswer" in text or "NSWER" in text:
        return any(hint in text for hint in _HINTS)
    return "NS]" in text or "ns]" in text


def with_plain_marks(text: str) -> str:
    """Return the text with `Answer:` on a line of its own in place of a bracketed word for answer."""
    if not _has_mark(text):
        return text
    text = _SECTION.sub("\n", text)
    text = _WITH_VALUE.sub(lambda match: ANSWER + match[1], text)
    text = _EASTERN_MARK.sub(ANSWER, text)
    return _CLOSING.sub("\n", _LINE_MARK.sub(_announce, text))


def _announce(match: re.Match[str]) -> str:
    # `<answer>` is a tag, which is read as one.
    return match[0] if "<" in match[0] and match[0].isascii() else ANSWER
