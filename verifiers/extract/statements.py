r"""Reads the answer from sentences: announcements such as `the answer is 5`, conclusions, and retractions.

An announcement says that the answer follows (`announced`):

    The final answer is $5$. I hope it is correct.      Answer: 5       **Final Answer**\n\n5      A: 5
    La respuesta es 5.   La réponse est 5.   Die Antwort lautet 5.   Ответ: 5   A resposta é 5.   答えは5です。
    정답은 5입니다.   الجواب هو 5   उत्तर 5 है   所以答案是5。   故选：B．   答：小明走了12千米。

These announce nothing: `if the answer is 5`, `the answer is not 5`, `la respuesta no es 5`, `I doubt that the answer is
5`. Not covered: announcements without a word for answer (`conclusion` reads the last line).

`narrow` cuts the answer out of the words after an announcement:

    $5$. I hope it is correct.         -> $5$
    5, because 2 + 3 = 5               -> 5
    that John has 5 apples left        -> 5 apples, see `stated_values`
    小明一共走了12千米。                  -> 12千米
    5です。                             -> 5
    009\]                              -> 009: the formula was opened before the announcement
    found by adding the two sides      -> nothing: a method is not an answer

Units, dollars and LaTeX stay in the answer, for the verifier to read.

Without an announcement, the last line is read (`last_expression`, `conclusion`):

    Last line                                                                                        Answer
    ... prose ...\n**5**                  (one expression)                                           5
    ... \[ x = 5 \]                       (a displayed expression)                                   x = 5
    Therefore, John has 5 apples.         (the value that the last sentence states)                  5 apples
    She paid 3 for 2 apples.              (two values, and the sentence does not say which one)      none
    So the total is 12 and                (the sentence is cut off)                                  none
    Is it 5?                              (a question states no value)                               none
    Output score: 1.0                     (it speaks to the grader)                                  none
    The answer isn't 5.                   (a denial, see `denials`)                                  none
    x = -3 fails, hence x = 8.            (the value of the last concluding clause)                  8
    So there is no solution.                                                                         no solution

Only one value is read, and only from the last line, so a response gains nothing by naming several values. Not covered:
lines further up, lines of code and of tables.

An answer may be taken back after its announcement (`retraction`):

    Answer: 5? No: 6                        -> 6
    The answer is 12? No, wait: 13.         -> 13
    Answer: 15? Hmm, or 16?                 -> 15 or 16: a hedge
    Answer: 7. Scratch that.                -> nothing
    答案：5？不对，是6                        -> 6
    Answer: 14? No: 15? No: 16              -> 16
    Answer: 5. No further step is needed.   -> 5: nothing is taken back

Weak words (`no`, `wait`) take an answer back only if another value follows at once. Strong words (`scratch that`) need
no other value. Not covered: words further down. An answer is replaced there only by a new announcement.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

from truegold.verifiers.extract import clauses, denials, stated_values

MAX_TEXT_WORDS = 5
"""Maximum number of words in an answer in words, such as `no solution`. Longer texts are sentences about the answer."""

_ABBREVIATED = "".join(
    [rf"(?<!\b{word}\.)" for word in stated_values.PATTERNS["titles"]]
    + [rf"(?!(?<=\b{word}\.)\s{{1,2}}[a-z\d])" for word in stated_values.PATTERNS["abbreviations"]]
)
"""A pattern that rejects full stops within a sentence, as in `Dr.` and `No. 5`."""
_CUT = re.compile(
    rf"(?P<formula>{stated_values.FORMULA})|(?P<brace>[{{}}])"
    rf"|(?P<end>[.?]{_ABBREVIATED}(?=[*_`\")\]]{{0,3}}(?:\s|$))|!(?=\s{{1,3}}[A-Z])|[。！؟।]|．(?=\s|$))"
    rf"|(?P<why>{stated_values.ANY_OF['reasons']})"
)
"""The end of an answer: a full stop, or a word such as `because`. Formulas and braces match too, and are skipped."""
_CONCLUDING = re.compile(stated_values.ANY_OF["concluding_words"])
"""Words that begin a sentence even if no full stop ends the one before."""
_POSTPOSED = re.compile(rf"\s?(?:{stated_values.ANY_OF['postposed_words']})[。.]?$")
"""Words after an answer that only complete its sentence: です."""
_ABOUT = re.compile(rf"(?:[,\s]*(?:{stated_values.ANY_OF['adverbs']})(?![a-z])[,\s]*){{1,4}}")
"""Adverbs before a value: `about`, `always`."""
_BRACKETED = re.compile(r"\s*[【〖]([^【〖】〗\n]{1,200})[】〗][\s.。]*")
_LABELLED_TEXT = re.compile(r"[A-J]\.\s+(\S[^.!?\n]{0,80})\.?")
"""The letter of an option with its text: `B. Rome`."""
_DENIED_AT_ONCE = ("not ", "n't", "不")
"""Beginnings of a text that denies its value."""

MAX_RETRACTION_CHARS = 400
"""Maximum number of characters after an announcement that are searched for a retraction."""
_STRONG, _WEAK = stated_values.ANY_OF["retracted"], stated_values.ANY_OF["doubted"]
"""`_STRONG` words take an answer back in any case. `_WEAK` words take it back only before another value."""
_RETRACTION = re.compile(
    rf"(?:^|[\s?!.,;:…(（？。，—–-])(?:(?P<strong>{_STRONG})|(?P<weak>{_WEAK}))(?P<rest>.*)", re.IGNORECASE | re.DOTALL
)
"""A strong or weak word of retraction, and the text after it."""
_IS_STRONG = re.compile(rf"(?:^|[\s,.;!])(?:{_STRONG})", re.IGNORECASE)
_WITHDRAWN = re.compile(
    r"[\s$.。\\)\]!,;]{0,12}(?:(?:no|wait|hmm+|oops|actually),? )?(?:" + stated_values.ANY_OF["withdrawn"] + ")",
    re.IGNORECASE,
)
"""Words right after an answer that withdraw it."""
_EITHER_IN_JAPANESE = re.compile(r"(?<=\d)か(?=\d)")
"""The Japanese `or` between two numbers: 5か6."""
_WORDS_AROUND = re.compile(r"[^\W\d_]{2,}\s[^\W\d_]+|[一-鿿]")
_ENDING = " \t\r\n$.。\\)]}*_!"
"""Marks that may stand between an answer and the end of a response."""
MAX_SCANNED_TAIL = 2_000
"""Maximum number of characters after an answer that are searched for a second thought."""
_RECONSIDERED = re.compile(
    r"[^\w(]{0,12}\(?(?:wait|hmm+|oops|oh no|hold on|but wait|corrected|等等|等一下|不对)\b", re.IGNORECASE
)
"""A second thought right after an answer: `Wait`, 等等."""
_GONE_ON = re.compile(rf"[.!?\s$)*\\\]]{{1,8}}(?:{stated_values.ANY_OF['gone_on']})", re.IGNORECASE)
"""The beginning of a sentence that goes on from an answer to another step."""
_CONFIRMED_LATER = re.compile(
    r"\b(?:yes|correct|right|indeed|confirm\w*|holds?|checks?|same|fine|okay|ok|good|valid|consistent|verified|matches)\b"
    r"|正确|没错|一致|成立",
    re.IGNORECASE,
)
"""Words of a second thought that confirms the answer."""
_PLAIN_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{3,}")
"""A word outside of commands. A text with such a word, `12 than 11`, is not accepted as a new value."""
_WEAK_AGAIN = re.compile(
    rf"(?:[\s,.:;!…—–(（，。]|(?:{_WEAK}|{_STRONG}|it(?:'s| is)|the answer(?: is)?"
    r"|i (?:meant|mean)|make that|that|应该|答案|是|为))*",
    re.IGNORECASE,
)
"""Further words of retraction before the new value: `no, wait, I meant`."""
_DOUBT = re.compile(r"\b(?:or|maybe|perhaps|possibly)\b|也许|可能|或", re.IGNORECASE)
_DOUBTED = re.compile(
    r"[?？]\s*(?:hmm+,?\s*)?(?:or|maybe|perhaps|possibly|或)\s*(?P<rest>.+)", re.IGNORECASE | re.DOTALL
)
"""A doubt with the other value after it: `? Hmm, or 16`."""
_VALUE_FIRST = re.compile(r"[-+−±(\[{$\\√π¥€£]{0,3}\s?(?:\d|\\[a-z]|[a-z]\s?=)", re.IGNORECASE)
"""A value at the beginning of a text."""
MAX_SCANNED_LINES = 200
"""Maximum number of lines that are searched, counted from the end. Stops a response of a million lines `Answer:`."""
MAX_ANNOUNCED_CHARS = 20_000
"""Maximum number of characters at the end that are searched for announcements. The patterns are slow on long texts."""
_LINK = (
    r"(?:\b(?:is|are|was|equals|(?:will|would|should|must)[ ]be|comes[ ](?:out[ ])?to)\b"
    r"(?:[ ](?:therefore|thus|then|simply|indeed|exactly|clearly|just|equal[ ]to|given[ ]by|as[ ]follows))?"
    r"|[:：=→⇒])[*_]{0,3}[ \t]{0,3}[:：]?"
)
"""Words between `answer` and the answer: `is`, `comes out to`, `:`."""
_ENGLISH = re.compile(
    r"(?<!if the )(?<!If the )(?<!whether the )"
    r"(?:(?:\b|(?<=_))(?:[Aa]nswers?|ANSWERS?)(?:[ ](?:choice|option))?|\b[Cc]orrect[ ](?:choice|option))\b"
    r"(?:[*_]{1,3})?[ \t]{0,3}(?:\([^()\n]{1,40}\)[ ]?)?"
    r"(?:,[ ][a-z]{2,12},[ ])?(?:(?:to|for|of|in)[ ][^\n.:=$\\]{1,80}?[ ](?=is\b|are\b))?"
    + _LINK
    + r"|\bAns(?:[.:]|[ ]?=)"
)
"""An English announcement: `the answer is`, `correct option:`, `Ans.`"""
_CHINESE = re.compile(stated_values.ANY_OF["chinese_announcements"])
_WORDS = stated_values.PATTERNS["answer_words"]
_LINKS = stated_values.ANY_OF["links"]
_FOREIGN = re.compile(
    rf"(?:{stated_values.ANY_OF['answer_words']})[^\d$\\.。:：=\n*]{{0,30}}?(?:\*{{0,2}})(?:{_LINKS})"
    r"|(?:उत्तर|উত্তর|பதில்|விடை|సమాధానం|జవాబు|válasz|cevap|پاسخ|جواب|ответ)"
    r"(?=[ ](?:[\d$\\]|[A-H]\b))|답은|คำตอบ(?:ที่ถูกต้อง)?คือ"
    r"|(?:(?<![^\n])|(?<=[.>:$] )|(?<=\d:))"
    r"(?:chọn(?: (?:đáp án|phương án|câu))?|đáp án)(?=[ :]{1,2}[A-J][.]?\s*(?:\n|$))",
    re.IGNORECASE,
)
"""An announcement in another language: `la respuesta es`, 정답은."""
_FIRST_WORD = re.compile(r"^\W*[^\s,;(（，。]*")
_LAST_LINE_A = re.compile(r"\**A\**[ \t]{0,3}[:：]\**[ \t]{0,3}(\S.*)")
_HEADINGS = frozenset({"answer", "final answer", "最终答案", "答案"})
"""Headings above an answer."""
_EMPHASIS = "*_` \t"
_EMPTY = frozenset({"", "$$", "\\[", "\\(", "$"})
"""Texts after an announcement that hold no answer. The answer is then on the next line."""
MAX_CONFIRMING_CHARS = 40
"""Maximum number of characters after a question that are searched for words that confirm its value."""
_OTHERWISE = re.compile(r"\W*(?:otherwise|else|if not|否则|否則|sonst|sinon|altrimenti|иначе)\b", re.IGNORECASE)
MAX_TAIL_CHARS = 4_000
"""Maximum number of characters at the end that are searched for the last line or the last displayed formula."""
MAX_DISPLAY_LINES = 12
"""Maximum number of lines in a displayed formula."""
_NOT_PROSE = re.compile(stated_values.ANY_OF["not_prose"])
"""Lines of code and of tables."""
_UNFINISHED = re.compile(f"(?:{stated_values.ANY_OF['unfinished']})$")
"""The end of a sentence that is cut off: `and`, `=`."""
_PLAN = re.compile(f"(?:now,? |next,? |first,? |so,? )?(?:{stated_values.ANY_OF['plans']})", re.IGNORECASE)
"""The beginning of a sentence that announces a next step: `next, we compute`."""
_CONCLUDING_CLAUSE = re.compile(f".*(?:{stated_values.ANY_OF['concluding_clauses']})(.+)$", re.DOTALL)
"""A sentence with a clause that concludes: `x = -3 fails, hence | x = 8`."""
_WE_GET = re.compile(
    r"(?!.{0,120}\b(?:if|assum\w+|suppos\w+|when|for|try\w*|test\w*|plug\w*|substitut\w*|tak\w+|with|say|case|let|were|had)\b)"
    r"[^,;]{3,120}(?:,\s(?:we|I|you) (?:get|obtain|have|find|reach|are left with)"
    r"|(?<!that)(?<!what)(?<!which)\s(?:we|I|you) (?:get|obtain|reach|arrive at|end up with))\s(.+)$",
    re.IGNORECASE,
)
"""A sentence that derives a value, and the part that holds the value: `Rejecting -3, we get | 5`."""
_CONDITION = re.compile(r"\b(?:if|when|unless|suppose|assuming)\b", re.IGNORECASE)
_REASON = re.compile(
    r",?\s(?:since|because"
    r"|(?:although|though|even though|whereas)(?! (?:it|this|that)(?:['’]s| is| could| might| may)))\s"
    r"|,\s(?:as\s|(?=(?:attained|achieved|reached|occurring)\b))|，?因[为為]",
    re.IGNORECASE,
)
"""The reason after a value: `, because`."""
_NO_VALUE = re.compile(f"(?<!not )(?:{stated_values.ANY_OF['no_value']})[.。]?$", re.IGNORECASE)
"""Words that say that there is no value: `no solution`."""
_GRADING = re.compile(r"\b(?:score|grade|reward|rating|marks?)\b[^.]{0,20}[:=]", re.IGNORECASE)
"""A statement to the grader of a response, which is not an answer: `Output score:`."""


def narrow(text: str) -> str | None:
    """Return the answer in the text after an announcement, or None."""
    bracketed = _BRACKETED.fullmatch(text)
    text = bracketed[1] if bracketed else text
    labelled = _LABELLED_TEXT.fullmatch(text.strip(stated_values.MARKS)) if text[1:2] == "." else None
    if (
        labelled is not None
        and not (_CUT.search(labelled[1]) or _RETRACTION.search(f" {labelled[1]}"))
        and (stated_values.is_expression(labelled[1], 2))
    ):
        return labelled[0]
    text = _without_strays(_POSTPOSED.sub("", _until_cut(text.strip(stated_values.MARKS))).strip(stated_values.MARKS))
    text = without_about(text)
    if "か" in text:
        text = _EITHER_IN_JAPANESE.sub(" or ", text)
    if not text or text.startswith(_DENIED_AT_ONCE) or text.endswith((":", "：")) or "\\boxed" in text:
        return None
    if not stated_values.has_value(text):
        return text if stated_values.word_count(text) <= MAX_TEXT_WORDS else None
    if not stated_values.is_prose(text):
        return text
    return stated_values.stated_first(text) or stated_values.stated(text) or text


def without_about(text: str) -> str:
    """Return a text without adverbs before its value: `5` for `about 5`, `18` for `always 18`."""
    about = _ABOUT.match(text)
    return text[about.end() :] if about and about.end() < len(text) else text


def _until_cut(text: str) -> str:
    """Return `text` up to the end of its first sentence or to the beginning of an explanation."""
    depth = 0
    for match in _CUT.finditer(text):
        kind = match.lastgroup
        if kind == "brace":
            depth += 1 if match.group() == "{" else -1
        elif kind != "formula" and depth <= 0 and text[: match.start()].strip(stated_values.MARKS):
            return text[: match.start()]
    return text


def sentence_around(line: str, position: int) -> tuple[str, str]:
    """Return the sentence of a line around a position, in two parts: before the position and after it."""
    start = 0
    for match in _CUT.finditer(line):
        if match.lastgroup == "end":
            if match.end() > position:
                return line[start:position], line[position : match.end()]
            start = match.end()
    return line[start:position], line[position:]


def last_sentence(line: str) -> str:
    """Return the last sentence of a line with its punctuation. A full stop inside a formula ends no sentence."""
    start, stop = 0, len(line.rstrip(stated_values.MARKS))
    for match in _CUT.finditer(line):
        if match.lastgroup == "end" and match.end() < stop:
            start = match.end()
    for match in _CONCLUDING.finditer(line, start):
        if match.end() < stop and line.count("$", start, match.start()) % 2 == 0:
            start = match.start()
    return line[start:].strip(stated_values.MARKS)


def _without_strays(text: str) -> str:
    """Return a text without the closing mark of a formula that was opened before it. A row of brackets is kept."""
    if not text.strip("()[]{}<> "):
        return text
    for opening, closing in (("\\[", "\\]"), ("\\(", "\\)"), ("{", "}")):
        if text.count(opening) < text.count(closing):
            text = text.removesuffix(closing).removeprefix(closing).strip()
    return text[:-1].strip() if text.endswith("$") and text.count("$") % 2 else text


def retraction(tail: str, answer: str | None) -> str | None:
    """Return the answer that replaces an earlier one in the text after it.

    The result is None if nothing is taken back, and an empty text if no new answer follows.
    """
    tail = tail[:MAX_RETRACTION_CHARS]
    folded = tail.casefold()
    if not any(map(folded.__contains__, stated_values.PATTERNS["retraction_marks"])):
        return None
    doubted = _DOUBTED.search(tail)
    if doubted is not None and answer is not None and (other := _value_of(doubted["rest"])) is not None:
        return f"{answer} or {other}"
    if (match := _RETRACTION.search(tail)) is None:
        return None
    rest = match["rest"]
    fillers = _WEAK_AGAIN.match(rest)
    follows = rest[fillers.end() if fillers is not None else 0 :]
    value = _value_of(follows) if _VALUE_FIRST.match(follows) or match["strong"] else None
    if value is None:
        is_strong = match["strong"] or _IS_STRONG.search(rest) is not None
        return "" if is_strong else None
    remainder = follows.partition(value)[2]
    if denials.is_negated_later(follows, value):
        return _instead_of_denied(value, remainder, answer)
    is_doubt = _DOUBT.search(rest[: len(rest) - len(follows)]) is not None
    return _unless_taken_back(value, remainder, f"{answer} or {value}" if is_doubt and answer else value)


def _unless_taken_back(value: str, remainder: str, replaced: str) -> str:
    """Return the new answer `replaced`, or a still later one that replaces it: 16 for `No: 15? No: 16`."""
    later = retraction(remainder, value) if remainder else None
    return later if later is not None and _is_all(remainder, later) else replaced


def _instead_of_denied(value: str, rest: str, answer: str | None) -> str | None:
    """Return the value after a denied answer: 7 for `5 is wrong. It is 7.`

    The result is an empty text if no other value follows, and None if the denied value is not the answer.
    """
    if answer is not None and value not in answer:
        return None
    other = _value_of(rest)
    return other if other is not None and not denials.is_negated_later(rest, other) else ""


def is_withdrawn(tail: str, answer: str) -> bool:
    """Return whether the text after an answer withdraws it, reconsiders it without a result, or gives up."""
    if not tail.strip(_ENDING):
        return False
    near = tail[:MAX_RETRACTION_CHARS]
    if _WITHDRAWN.match(near) is not None:
        return True
    tail = tail[:MAX_SCANNED_TAIL]
    if denials.occurrences(tail, answer):
        return False
    is_letter = len(answer) == 1 and answer.isalpha()
    if clauses.takes_back(tail, is_letter=is_letter) or _GONE_ON.match(tail) is not None:
        return True
    if _RECONSIDERED.match(tail) is not None and _CONFIRMED_LATER.search(tail) is None:
        return True
    return not stated_values.has_value(tail) and denials.is_resigned(tail)


def _is_all(remainder: str, later: str) -> bool:
    """Return True for a text that only retracts, `Scratch that.` or `No, 7.`, and False for `No, 5 is excluded.`"""
    rest = remainder.rpartition(later)[2] if later else ""
    return not rest.strip(stated_values.MARKS + " ,.:;!)") and not _PLAIN_WORD.search(later)


def _value_of(text: str) -> str | None:
    """Return the value that the first sentence of a text states, or else that sentence. None if it has no value."""
    text = text.strip(stated_values.MARKS + " ,.:;?!)）。？！")
    if not stated_values.has_value(text):
        return None
    sentence = re.split(r"(?<=\d)[.?!。](?:\s|$)", text, maxsplit=1)[0]
    return stated_values.stated(sentence) or sentence


Announcement: TypeAlias = tuple[str, str]
"""The text after an announcement, and the sentence around the announcement, which may deny the answer. The sentence is
"" if it has no word of denial."""


def announced(text: str) -> Iterator[Announcement]:
    """Yield the announcements of a text, the last one first."""
    text = text[-MAX_ANNOUNCED_CHARS:]
    if not (patterns := _patterns_for(text)):
        return
    lines = [line for raw in text.split("\n")[-MAX_SCANNED_LINES:] if (line := raw.strip())]
    for index in range(len(lines) - 1, -1, -1):
        line = lines[index]
        if len(line) > stated_values.MAX_LINE_CHARS:
            continue
        matches = [match for pattern in patterns for match in pattern.finditer(line)]
        if matches:
            matches.sort(key=re.Match.end)
            last = matches.pop()
            while matches and denials.is_of_another(sentence_around(line, last.start())[0], last[0]):
                last = matches.pop()
            answer = line[last.end() :].strip(_EMPHASIS + ":：")
            if answer in _EMPTY:
                yield _block_at(lines, index + 1), ""
            else:
                yield from _on_line(line, last, answer)
        elif line.strip("#*_:：✅ \t").casefold() in _HEADINGS:
            # A heading needs no colon: `**Final Answer**`.
            yield _block_at(lines, index + 1), ""


def _on_line(line: str, match: re.Match[str], answer: str) -> Iterator[Announcement]:
    """Yield the announcement of a line, unless the line denies it, makes it conditional or attributes it."""
    if _is_quoted(line, match.start(), match.end()):
        return
    before, statement = sentence_around(line, match.start())
    rest = line[len(before) + len(statement) + line.find(before + statement) :] if before + statement else ""
    whole = before + statement
    behind = _FIRST_WORD.sub("", answer)
    may_deny = stated_values.may_deny(whole + rest[:MAX_CONFIRMING_CHARS])
    if not may_deny and stated_values.is_plain(whole):
        yield answer, ""
    elif not may_deny and denials.WORDS_BEFORE.match(answer) is None:
        if not clauses.disowns(before + match[0], behind):
            yield answer, statement
    elif (other := denials.contrasted(statement)) is not None:
        yield other, ""
    elif _CONDITION.search(before) is not None and (concluding := _CONCLUDING_CLAUSE.match(statement)) is not None:
        # The condition is followed by a conclusion: `If n is even the answer is 4; here n = 3, so 5.`
        yield concluding[1], concluding[1]
    elif not (
        denials.is_conditional(whole)
        or _OTHERWISE.match(rest)
        or denials.is_link_denied(match[0])
        or denials.is_attributed(before + match[0])
        or denials.is_of_another(before, match[0])
        or clauses.disowns(before + match[0], behind)
    ):
        yield answer, statement + rest[:MAX_CONFIRMING_CHARS] if statement.endswith(("?", "？")) else statement


def _is_quoted(line: str, start: int, end: int) -> bool:
    """Return whether an announcement stands in quotation marks, with other words outside of them."""
    for opening, closing in (('"', '"'), ("“", "”"), ("«", "»"), ("「", "」")):
        first = line.rfind(opening, 0, start)
        if first == -1 or line.rfind(closing, first + 1, start) != -1 or (last := line.find(closing, end)) == -1:
            continue
        is_open = opening != closing or line.count(opening, 0, start) % 2 == 1
        if is_open and (_WORDS_AROUND.search(line[:first]) or _WORDS_AROUND.search(line[last:])):
            return True
    return False


def after_a(line: str) -> str | None:
    """Return the text after `A:` on a line, or None."""
    match = _LAST_LINE_A.fullmatch(line[: stated_values.MAX_LINE_CHARS])
    return match.group(1) if match else None


def _patterns_for(text: str) -> list[re.Pattern[str]]:
    """Return the patterns whose words occur in a text. Searching for words is far cheaper than running patterns."""
    folded = text.casefold()
    patterns = []
    if "ans" in folded or "correct" in folded:
        patterns.append(_ENGLISH)
    if any(map(folded.__contains__, _WORDS)) or "chọn" in folded:
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


def last_expression(text: str) -> str | None:
    """Return the last line if it is one expression and not a sentence."""
    line = denials.without_struck(_last_line(text) or "").strip()
    if not line or "?" in line or not stated_values.has_value(line) or _is_cut_off(line):
        return None
    if clauses.kept(line) != line:
        return None
    preferred = denials.preferred(line) if stated_values.may_deny(line) else line
    line = preferred if _VALUE_FIRST.match(preferred) else line
    if denials.denies_a_number(line) or not stated_values.is_expression(line, stated_values.MAX_PLAIN_WORDS):
        return None
    return line.strip(stated_values.MARKS + ".。")


_YEAR_BESIDE = re.compile(r"\(\d{4}\)")
"""A year in brackets, which belongs to the name before it: `the film Alien (1979)`."""


def conclusion(text: str) -> str | None:
    """Return the value that the last sentence states, or its words for `no solution`."""
    if (line := _last_line(text)) is None:
        return None
    sentence = last_sentence(denials.without_struck(line))
    if sentence.endswith(("?", "？")) or _PLAN.match(sentence) or _GRADING.search(sentence) or _is_cut_off(sentence):
        return None
    if none := _NO_VALUE.search(sentence):
        return none[0]
    if (concluding := _CONCLUDING_CLAUSE.match(sentence)) and stated_values.has_value(concluding[1]):
        sentence = concluding[1]
    if (solved := _WE_GET.match(sentence)) and stated_values.has_value(solved[1]):
        if denials.is_attributed(sentence[: solved.start(1)]):
            return None
        sentence = solved[1]
    sentence = denials.affirmed_last(clauses.kept(sentence))
    if denials.is_withheld(sentence) or denials.is_conditional(sentence):
        return None
    return _stated_for_good(denials.contrasted(sentence) or denials.preferred(sentence))


def _stated_for_good(sentence: str) -> str | None:
    """Return the value that a sentence states, unless it denies that value or takes it back."""
    if (reason := _REASON.search(sentence)) and stated_values.has_value(sentence[: reason.start()]):
        sentence = sentence[: reason.start()]
    if (value := stated_values.stated(sentence)) is None or denials.is_denied(sentence, value):
        return None
    if denials.is_mere_subject(sentence, value) or _YEAR_BESIDE.fullmatch(value):
        return None
    taken_back = retraction(sentence.rpartition(value)[2], value)
    return without_about(value) if taken_back is None else taken_back


def _last_line(text: str) -> str | None:
    """Return the last line, or the displayed formula at the end. Code, tables and long lines give None."""
    tail = text[-MAX_TAIL_CHARS:].rstrip()
    line = tail.rpartition("\n")[2].strip()
    if (closing := next((mark for mark in ("\\]", "$$") if line.endswith(mark)), None)) is not None:
        opening = tail.rfind("\\[" if closing == "\\]" else "$$", 0, len(tail) - 2)
        if opening != -1 and tail.count("\n", opening) <= MAX_DISPLAY_LINES and opening < len(tail) - len(line):
            line = " ".join(tail[opening:].split())
    return None if len(line) > stated_values.MAX_LINE_CHARS or _NOT_PROSE.match(line) else line


def _is_cut_off(sentence: str) -> bool:
    """Return whether a sentence ends with a word that needs a continuation: `So the total is 12 and`."""
    return bool(_UNFINISHED.search(sentence.rstrip(stated_values.MARKS)))
