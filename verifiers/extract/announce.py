r"""Announcements: where a response says that its answer follows.

    The final answer is $5$. I hope it is correct.      Answer: 5       **Final Answer**\n\n5      A: 5
    La respuesta es 5.   La réponse est 5.   Die Antwort lautet 5.   Ответ: 5   A resposta é 5.   答えは5です。
    정답은 5입니다.   الجواب هو 5   उत्तर 5 है   所以答案是5。   故选：B．   答：小明走了12千米。

Only the announcement is found here; `narrow` reads what follows it. `if the answer is 5` announces nothing, nor
do `the answer is not 5`, `la respuesta no es 5` and `I doubt that the answer is 5` (`deny`). Not covered:
announcements without a word for answer (`conclude` reads the last line).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from truegold.verifiers.extract.deny import contrasted, is_attributed, is_conditional, is_link_denied
from truegold.verifiers.extract.narrow import sentence_around
from truegold.verifiers.extract.response import MAX_LINE_CHARS

MAX_SCANNED_LINES = 200
"""Only so many last lines are searched. Stops a response of a million lines `Answer:`."""

MAX_HASHES = 16
"""Only so many `####` are looked at, from the last one on. Stops a response that consists of them."""

MAX_ANNOUNCED_CHARS = 20_000
"""Only so much of the end is searched. Stops the patterns, which are slow, from being run over a long text."""

_LINK = (
    r"(?:\b(?:is|are|was|equals|(?:will|would|should|must)[ ]be|comes[ ](?:out[ ])?to)\b"
    r"(?:[ ](?:therefore|thus|then|simply|indeed|exactly|clearly|just|equal[ ]to|given[ ]by|as[ ]follows))?"
    r"|[:：=])[*_]{0,3}[ \t]{0,3}[:：]?"
)
_ENGLISH = re.compile(
    r"(?<!if the )(?<!If the )(?<!whether the )"
    r"(?:\b(?:[Aa]nswers?|ANSWERS?)(?:[ ](?:choice|option))?|\b[Cc]orrect[ ](?:choice|option))\b"
    r"(?:[*_]{1,3})?[ \t]{0,3}(?:\([^()\n]{1,40}\)[ ]?)?"
    r"(?:,[ ][a-z]{2,12},[ ])?(?:(?:to|for|of|in)[ ][^\n.:=$\\]{1,80}?[ ](?=is\b|are\b))?"
    + _LINK
    + r"|\bAns(?:[.:]|[ ]?=)"
)
_CHINESE = re.compile(
    r"答案(?:应该|应|即|就|便)?(?:是|为|為|选|[:：])[:：]?|(?:故|应|所以|因此|本题|此题)(?:本题|此题|答案)?应?选[择:：]?"
    r"|(?:^|(?<=[\n。，,；】]))选[:：]?|答[:：]"
)
_WORDS = (
    "respuesta", "réponse", "reponse", "antwort", "lösung", "ergebnis", "risposta", "resposta",
    "ответ", "відповідь", "odpowiedź", "odpowiedz", "antwoord", "cevap", "yanıt", "jawaban",
    "svar", "vastaus", "odpověď", "απάντηση", "תשובה", "الجواب", "الإجابة", "الاجابة", "الناتج", "پاسخ", "جواب",
    "उत्तर", "উত্তর", "คำตอบ", "答え", "正解", "解答", "정답", "답은", "답:", "답이",
    "பதில்", "விடை", "సమాధానం", "జవాబు", "jibu", "válasz", "răspunsul", "răspuns", "отговор", "odgovor", "vastus",
    "atsakymas", "jawapan", "sagot", "đáp án", "đáp số", "câu trả lời", "kết quả",
)  # fmt: skip
_LINKS = (
    r"[:：=]|—|–|は|(?:은|는|이)(?=[ ])|(?<=답)(?:은|는)|(?<![^\W\d_])(?:es|son|est|sont|ist|sind|lautet|beträgt|è|é"
    r"|sono|são|to|brzmi|jest|är|er|je|on|ni|este|е|yra|là|adalah|ialah|είναι|היא|הוא|هو|هي|است|है|কি|будет|равен|является|คือ)(?![^\W\d_])"
)
_FOREIGN = re.compile(
    rf"(?:{'|'.join(_WORDS)})[^\d$\\.。:：=\n*]{{0,30}}?(?:\*{{0,2}})(?:{_LINKS})"
    r"|(?:उत्तर|উত্তর|பதில்|விடை|సమాధానం|జవాబు|válasz|cevap|پاسخ|جواب|ответ)"
    r"(?=[ ](?:[\d$\\]|[A-H]\b))|답은|คำตอบ(?:ที่ถูกต้อง)?คือ",
    re.IGNORECASE,
)
_LAST_LINE_A = re.compile(r"\**A\**[ \t]{0,3}[:：]\**[ \t]{0,3}(\S.*)")
_HASHES = re.compile(r"####(?!#)[ \t]{0,8}(\S.{0,400})")
_PLAIN_NUMBER = re.compile(r"[-+−]?[$￥¥€£]?\d[\d,]{0,40}(?:\.\d{1,40})?%?\.?")
_HEADINGS = frozenset({"answer", "final answer", "最终答案", "答案"})
_EMPHASIS = "*_` \t"
_EMPTY = frozenset({"", "$$", "\\[", "\\(", "$"})
"""What an announcement leaves on its line when the answer is on the next one."""


def after_hashes(text: str) -> str | None:
    """Return what the last `####` announces: anything on the last line, a plain number further up.

    `#### Step 2` is a heading.
    """
    start = len(text)
    for _ in range(MAX_HASHES):
        start = text.rfind("####", 0, start)
        if start == -1:
            break
        match = _HASHES.match(text, start)
        if match is None or text[start - 1 : start] not in {"", "\n"}:
            continue
        answer = match.group(1).strip(_EMPHASIS)
        if _PLAIN_NUMBER.fullmatch(answer) or not text[match.end() :].strip():
            return answer
    return None


class Announcement(NamedTuple):
    """An announced answer."""

    answer: str
    """What follows the announcement, on its line or on the next."""
    sentence: str
    """The announcement and its answer's sentence; empty where nothing in it can deny the answer."""


def announced(text: str) -> Iterator[Announcement]:
    """Yield what follows each announcement, the last one first."""
    text = text[-MAX_ANNOUNCED_CHARS:]
    patterns = _patterns_for(text)
    if not patterns:
        return
    lines = [line for raw in text.split("\n")[-MAX_SCANNED_LINES:] if (line := raw.strip())]
    for index in range(len(lines) - 1, -1, -1):
        line = lines[index]
        if len(line) > MAX_LINE_CHARS:
            continue
        matches = [match for pattern in patterns for match in pattern.finditer(line)]
        if matches:
            last = max(matches, key=re.Match.end)
            answer = line[last.end() :].strip(_EMPHASIS + ":：")
            if answer in _EMPTY:
                yield Announcement(_block_at(lines, index + 1), "")
            else:
                yield from _on_line(line, last, answer)
        elif line.strip("#*_:：✅ \t").casefold() in _HEADINGS:
            # `**Final Answer**` as a heading has no colon.
            yield Announcement(_block_at(lines, index + 1), "")


def _on_line(line: str, match: re.Match[str], answer: str) -> Iterator[Announcement]:
    """Yield what a line announces, unless it denies that, makes a condition of it, or puts it into another mouth."""
    before, statement = sentence_around(line, match.start())
    if (other := contrasted(statement)) is not None:
        yield Announcement(other, "")
    elif not (is_conditional(statement) or is_link_denied(match[0]) or is_attributed(before)):
        yield Announcement(answer, statement)


def after_a(line: str) -> str | None:
    """Return what stands behind the `A:` of a line, or None."""
    match = _LAST_LINE_A.fullmatch(line[:MAX_LINE_CHARS])
    return match.group(1) if match else None


def _patterns_for(text: str) -> list[re.Pattern[str]]:
    """Return the patterns whose words occur at all: to look for a word is far cheaper than to run a pattern."""
    folded = text.casefold()
    patterns = []
    if "ans" in folded or "correct" in folded:
        patterns.append(_ENGLISH)
    if any(word in folded for word in _WORDS):
        patterns.append(_FOREIGN)
    if not text.isascii() and ("答" in text or "选" in text):
        patterns.append(_CHINESE)
    return patterns


def _block_at(lines: list[str], index: int) -> str:
    """Return the line at `index`, or the whole displayed formula that begins there."""
    if index >= len(lines):
        return ""
    closing = {"$$": "$$", "\\[": "\\]"}.get(lines[index][:2])
    if closing is None or (len(lines[index]) > 3 and lines[index].endswith(closing)):
        return lines[index]
    block = [lines[index]]
    for line in lines[index + 1 : index + 12]:
        block.append(line)
        if line.endswith(closing):
            break
    return " ".join(block)
