r"""Reads the sentences that give an answer: announcements, conclusions, and what takes an answer back.

An announcement says that the answer follows (`announced`):

    The final answer is $5$. I hope it is correct.      Answer: 5       **Final Answer**\n\n5      A: 5
    La respuesta es 5.   La réponse est 5.   Die Antwort lautet 5.   Ответ: 5   A resposta é 5.   答えは5です。
    정답은 5입니다.   الجواب هو 5   उत्तर 5 है   所以答案是5。   故选：B．   答：小明走了12千米。

`if the answer is 5` announces nothing, nor do `the answer is not 5`, `la respuesta no es 5` and `I doubt that the
answer is 5`. Not covered: announcements without a word for answer (`conclusion` reads the last line).

The answer is cut out of the words after an announcement (`narrow`):

    $5$. I hope it is correct.            $5$
    5, because 2 + 3 = 5                  5
    that John has 5 apples left           5 apples, see `stated_values`
    小明一共走了12千米。                     12千米
    5です。                                5
    009\]                                 009: the formula was opened before the announcement
    found by adding the two sides         nothing: a method is no answer

Units, dollars and LaTeX stay on the answer, for the verifier to read.

A response that announces nothing answers by what its last line concludes (`last_expression`, `conclusion`):

    ... prose ...\n**5**            a last line that is one expression                               5
    ... \[ x = 5 \]                 the same, displayed                                              x = 5
    Therefore, John has 5 apples.   the value that the last sentence states                          5 apples
    She paid 3 for 2 apples.        nothing: two values, and no word which of them is meant
    So the total is 12 and          nothing: the sentence is cut off
    Is it 5?                        nothing: a question states no value
    Output score: 1.0               nothing: it speaks to the grader
    The answer isn't 5.             nothing: a denial, see `denials`
    x = -3 fails, hence x = 8.      8: the last of its clauses that concludes
    So there is no solution.        no solution

At most one value is read, from a line that the response cannot choose, so naming several values earns nothing. Not
covered: lines further up, lines of code and of tables.

An answer may be taken back after its announcement (`retraction`):

    Answer: 5? No: 6                           6
    The answer is 12? No, wait: 13.            13
    Answer: 15? Hmm, or 16?                    15 or 16: a hedge
    Answer: 7. Scratch that.                   nothing
    答案：5？不对，是6                           6
    Answer: 14? No: 15? No: 16                 16
    Answer: 5. No further step is needed.      5: nothing is taken back

Weak words take an answer back only where another value follows them at once; strong ones do so in any case. Not
covered: an answer that is taken back further down, which commits to what is announced there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

from truegold.verifiers.extract import clauses, denials, stated_values

MAX_TEXT_WORDS = 5
"""The longest answer in words. Stops sentences about the answer from being taken for it."""

_ABBREVIATED = "".join(
    [rf"(?<!\b{word}\.)" for word in stated_values.PATTERNS["titles"]]
    + [rf"(?!(?<=\b{word}\.)\s{{1,2}}[a-z\d])" for word in stated_values.PATTERNS["abbreviations"]]
)
"""The full stop of `Dr.` and of `No. 5` ends no sentence."""
_CUT = re.compile(
    rf"(?P<formula>{stated_values.FORMULA})|(?P<brace>[{{}}])"
    rf"|(?P<end>[.?]{_ABBREVIATED}(?=[*_`\")\]]{{0,3}}(?:\s|$))|!(?=\s{{1,3}}[A-Z])|[。！؟।]|．(?=\s|$))"
    rf"|(?P<why>{stated_values.ANY_OF['reasons']})"
)
_CONCLUDING = re.compile(stated_values.ANY_OF["concluding_words"])
"""Words that begin a sentence also if no full stop ends the one before."""
_POSTPOSED = re.compile(rf"\s?(?:{stated_values.ANY_OF['postposed_words']})[。.]?$")
_ABOUT = re.compile(rf"(?:[,\s]*(?:{stated_values.ANY_OF['adverbs']})(?![a-z])[,\s]*){{1,4}}")
_BRACKETED = re.compile(r"\s*[【〖]([^【〖】〗\n]{1,200})[】〗][\s.。]*")
_LABELLED_TEXT = re.compile(r"[A-J]\.\s+(\S[^.!?\n]{0,80})\.?")
"""B. Rome: a letter and the text of its option, which are one sentence."""
_DENIED_AT_ONCE = ("not ", "n't", "不")

MAX_RETRACTION_CHARS = 400
"""Characters after an announcement that are searched at most."""
_STRONG, _WEAK = stated_values.ANY_OF["retracted"], stated_values.ANY_OF["doubted"]
_RETRACTION = re.compile(
    rf"(?:^|[\s?!.,;:…(（？。，—–-])(?:(?P<strong>{_STRONG})|(?P<weak>{_WEAK}))(?P<rest>.*)", re.IGNORECASE | re.DOTALL
)
_IS_STRONG = re.compile(rf"(?:^|[\s,.;!])(?:{_STRONG})", re.IGNORECASE)
_WITHDRAWN = re.compile(
    r"[\s$.。\\)\]!,;]{0,12}(?:(?:no|wait|hmm+|oops|actually),? )?(?:" + stated_values.ANY_OF["withdrawn"] + ")",
    re.IGNORECASE,
)
_EITHER_IN_JAPANESE = re.compile(r"(?<=\d)か(?=\d)")
_WORDS_AROUND = re.compile(r"[^\W\d_]{2,}\s[^\W\d_]+|[一-鿿]")
_ENDING = " \t\r\n$.。\\)]}*_!"
MAX_SCANNED_TAIL = 2_000
"""Characters after an answer that are searched for a second thought at most."""
_RECONSIDERED = re.compile(
    r"[^\w(]{0,12}\(?(?:wait|hmm+|oops|oh no|hold on|but wait|corrected|等等|等一下|不对)\b", re.IGNORECASE
)
_GONE_ON = re.compile(rf"[.!?\s$)*\\\]]{{1,8}}(?:{stated_values.ANY_OF['gone_on']})", re.IGNORECASE)
_CONFIRMED_LATER = re.compile(
    r"\b(?:yes|correct|right|indeed|confirm\w*|holds?|checks?|same|fine|okay|ok|good|valid|consistent|verified|matches)\b"
    r"|正确|没错|一致|成立",
    re.IGNORECASE,
)
_PLAIN_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{3,}")
"""A word outside of commands: `12 than 11` is not a value."""
_WEAK_AGAIN = re.compile(
    rf"(?:[\s,.:;!…—–(（，。]|(?:{_WEAK}|{_STRONG}|it(?:'s| is)|the answer(?: is)?"
    r"|i (?:meant|mean)|make that|that|应该|答案|是|为))*",
    re.IGNORECASE,
)
_DOUBT = re.compile(r"\b(?:or|maybe|perhaps|possibly)\b|也许|可能|或", re.IGNORECASE)
_DOUBTED = re.compile(
    r"[?？]\s*(?:hmm+,?\s*)?(?:or|maybe|perhaps|possibly|或)\s*(?P<rest>.+)", re.IGNORECASE | re.DOTALL
)
_VALUE_FIRST = re.compile(r"[-+−±(\[{$\\√π¥€£]{0,3}\s?(?:\d|\\[a-z]|[a-z]\s?=)", re.IGNORECASE)
MAX_SCANNED_LINES = 200
"""The last lines that are searched, at most. Stops a response of a million lines `Answer:`."""
MAX_ANNOUNCED_CHARS = 20_000
"""Characters at the end that are searched. Stops the patterns, which are slow, from being run over a long text."""
_LINK = (
    r"(?:\b(?:is|are|was|equals|(?:will|would|should|must)[ ]be|comes[ ](?:out[ ])?to)\b"
    r"(?:[ ](?:therefore|thus|then|simply|indeed|exactly|clearly|just|equal[ ]to|given[ ]by|as[ ]follows))?"
    r"|[:：=→⇒])[*_]{0,3}[ \t]{0,3}[:：]?"
)
_ENGLISH = re.compile(
    r"(?<!if the )(?<!If the )(?<!whether the )"
    r"(?:(?:\b|(?<=_))(?:[Aa]nswers?|ANSWERS?)(?:[ ](?:choice|option))?|\b[Cc]orrect[ ](?:choice|option))\b"
    r"(?:[*_]{1,3})?[ \t]{0,3}(?:\([^()\n]{1,40}\)[ ]?)?"
    r"(?:,[ ][a-z]{2,12},[ ])?(?:(?:to|for|of|in)[ ][^\n.:=$\\]{1,80}?[ ](?=is\b|are\b))?"
    + _LINK
    + r"|\bAns(?:[.:]|[ ]?=)"
)
_CHINESE = re.compile(stated_values.ANY_OF["chinese_announcements"])
_WORDS = stated_values.PATTERNS["answer_words"]
_LINKS = stated_values.ANY_OF["links"]
_FOREIGN = re.compile(
    rf"(?:{stated_values.ANY_OF['answer_words']})[^\d$\\.。:：=\n*]{{0,30}}?(?:\*{{0,2}})(?:{_LINKS})"
    r"|(?:उत्तर|উত্তর|பதில்|விடை|సమాధానం|జవాబు|válasz|cevap|پاسخ|جواب|ответ)"
    r"(?=[ ](?:[\d$\\]|[A-H]\b))|답은|คำตอบ(?:ที่ถูกต้อง)?คือ",
    re.IGNORECASE,
)
_FIRST_WORD = re.compile(r"^\W*[^\s,;(（，。]*")
_LAST_LINE_A = re.compile(r"\**A\**[ \t]{0,3}[:：]\**[ \t]{0,3}(\S.*)")
_HEADINGS = frozenset({"answer", "final answer", "最终答案", "答案"})
_EMPHASIS = "*_` \t"
_EMPTY = frozenset({"", "$$", "\\[", "\\(", "$"})
"""Texts after an announcement that say that the answer is on the next line."""
MAX_CONFIRMING_CHARS = 40
"""Characters after a question that are searched for the words that answer it."""
_OTHERWISE = re.compile(r"\W*(?:otherwise|else|if not|否则|否則|sonst|sinon|altrimenti|иначе)\b", re.IGNORECASE)
MAX_TAIL_CHARS = 4_000
"""Characters at the end that are searched for the last line or the last displayed formula."""
MAX_DISPLAY_LINES = 12
_NOT_PROSE = re.compile(stated_values.ANY_OF["not_prose"])
_UNFINISHED = re.compile(f"(?:{stated_values.ANY_OF['unfinished']})$")
_PLAN = re.compile(f"(?:now,? |next,? |first,? |so,? )?(?:{stated_values.ANY_OF['plans']})", re.IGNORECASE)
_CONCLUDING_CLAUSE = re.compile(f".*(?:{stated_values.ANY_OF['concluding_clauses']})(.+)$", re.DOTALL)
_WE_GET = re.compile(
    r"(?!.{0,120}\b(?:if|assum\w+|suppos\w+|when|for|try\w*|test\w*|plug\w*|substitut\w*|tak\w+|with|say|case|let|were|had)\b)"
    r"[^,;]{3,120}(?:,\s(?:we|I|you) (?:get|obtain|have|find|reach|are left with)"
    r"|(?<!that)(?<!what)(?<!which)\s(?:we|I|you) (?:get|obtain|reach|arrive at|end up with))\s(.+)$",
    re.IGNORECASE,
)
"""Rejecting -3, we get 5: what is derived, and not what it is derived from."""
_CONDITION = re.compile(r"\b(?:if|when|unless|suppose|assuming)\b", re.IGNORECASE)
_REASON = re.compile(
    r",?\s(?:since|because"
    r"|(?:although|though|even though|whereas)(?! (?:it|this|that)(?:['’]s| is| could| might| may)))\s"
    r"|,\s(?:as\s|(?=(?:attained|achieved|reached|occurring)\b))|，?因[为為]",
    re.IGNORECASE,
)
_NO_VALUE = re.compile(f"(?:{stated_values.ANY_OF['no_value']})[.。]?$", re.IGNORECASE)
_GRADING = re.compile(r"\b(?:score|grade|reward|rating|marks?)\b[^.]{0,20}[:=]", re.IGNORECASE)
"""Words to a grader of the response are not an answer."""


def narrow(text: str) -> str | None:
    """Return the answer in what follows an announcement, or None if there is none."""
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
    """Return a text without an adverb before its value: `about 5`, `always 18`."""
    about = _ABOUT.match(text)
    return text[about.end() :] if about and about.end() < len(text) else text


def _until_cut(text: str) -> str:
    """Return `text` up to the end of its first sentence, or to where it begins to explain itself."""
    depth = 0
    for match in _CUT.finditer(text):
        kind = match.lastgroup
        if kind == "brace":
            depth += 1 if match.group() == "{" else -1
        elif kind != "formula" and depth <= 0 and text[: match.start()].strip(stated_values.MARKS):
            return text[: match.start()]
    return text


def sentence_around(line: str, position: int) -> tuple[str, str]:
    """Return the sentence of a line that a position stands in: what is before the position, and the rest."""
    start = 0
    for match in _CUT.finditer(line):
        if match.lastgroup == "end":
            if match.end() > position:
                return line[start:position], line[position : match.end()]
            start = match.end()
    return line[start:position], line[position:]


def last_sentence(line: str) -> str:
    """Return the last sentence of a line, with its mark; a full stop inside a formula ends nothing."""
    start, stop = 0, len(line.rstrip(stated_values.MARKS))
    for match in _CUT.finditer(line):
        if match.lastgroup == "end" and match.end() < stop:
            start = match.end()
    for match in _CONCLUDING.finditer(line, start):
        if match.end() < stop and line.count("$", start, match.start()) % 2 == 0:
            start = match.start()
    return line[start:].strip(stated_values.MARKS)


def _without_strays(text: str) -> str:
    """Cut off the closing mark of a formula that was opened before the announcement."""
    for opening, closing in (("\\[", "\\]"), ("\\(", "\\)"), ("{", "}")):
        if text.count(opening) < text.count(closing):
            text = text.removesuffix(closing).removeprefix(closing).strip()
    return text[:-1].strip() if text.endswith("$") and text.count("$") % 2 else text


def retraction(tail: str, answer: str | None) -> str | None:
    """Return what the text after an answer puts in its place.

    None: it takes nothing back. An empty text: it takes the answer back and names no other.
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
    later = retraction(remainder, value) if remainder else None
    return later if later is not None and _is_all(remainder, later) else replaced


def _instead_of_denied(value: str, rest: str, answer: str | None) -> str | None:
    """Return the 7 of `Hmm, 5 is wrong. It is 7.`; an empty text without another, or None if 5 was not the answer."""
    if answer is not None and value not in answer:
        return None
    other = _value_of(rest)
    return other if other is not None and not denials.is_negated_later(rest, other) else ""


def is_withdrawn(tail: str, answer: str) -> bool:
    """Return whether the text after an answer takes it back at once, or thinks anew and comes to none, or gives up."""
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
    """Tell whether a text does nothing but retract: `Scratch that.`, `No, 7.`, and not `No, 5 is excluded.`"""
    rest = remainder.rpartition(later)[2] if later else ""
    return not rest.strip(stated_values.MARKS + " ,.:;!)") and not _PLAIN_WORD.search(later)


def _value_of(text: str) -> str | None:
    text = text.strip(stated_values.MARKS + " ,.:;?!)）。？！")
    if not stated_values.has_value(text):
        return None
    sentence = re.split(r"(?<=\d)[.?!。](?:\s|$)", text, maxsplit=1)[0]
    return stated_values.stated(sentence) or sentence


Announcement: TypeAlias = tuple[str, str]
"""The text after an announcement, on its line or on the next, and its sentence, which may deny the answer. The sentence
is empty if nothing in it can."""


def announced(text: str) -> Iterator[Announcement]:
    """Yield what follows each announcement, the last one first."""
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
            # `**Final Answer**` as a heading has no colon.
            yield _block_at(lines, index + 1), ""


def _on_line(line: str, match: re.Match[str], answer: str) -> Iterator[Announcement]:
    """Yield what a line announces, unless it denies that, makes a condition of it, or puts it into another mouth."""
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
        # If n is even the answer is 4; here n = 3, so 5.
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
    """Return whether an announcement stands in quotation marks and its line goes on around them."""
    for opening, closing in (('"', '"'), ("“", "”"), ("«", "»"), ("「", "」")):
        first = line.rfind(opening, 0, start)
        if first == -1 or line.rfind(closing, first + 1, start) != -1 or (last := line.find(closing, end)) == -1:
            continue
        is_open = opening != closing or line.count(opening, 0, start) % 2 == 1
        if is_open and (_WORDS_AROUND.search(line[:first]) or _WORDS_AROUND.search(line[last:])):
            return True
    return False


def after_a(line: str) -> str | None:
    """Return the text after the `A:` of a line, or None."""
    match = _LAST_LINE_A.fullmatch(line[: stated_values.MAX_LINE_CHARS])
    return match.group(1) if match else None


def _patterns_for(text: str) -> list[re.Pattern[str]]:
    """Return the patterns whose words occur at all: to look for a word is far cheaper than to run a pattern."""
    folded = text.casefold()
    patterns = []
    if "ans" in folded or "correct" in folded:
        patterns.append(_ENGLISH)
    if any(map(folded.__contains__, _WORDS)):
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
    """Return the last line where it is one expression and no sentence."""
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


def conclusion(text: str) -> str | None:
    """Return the value that the last sentence states, or its words for there being none."""
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
    """Return the value that a sentence states and does not deny or take back."""
    if (reason := _REASON.search(sentence)) and stated_values.has_value(sentence[: reason.start()]):
        sentence = sentence[: reason.start()]
    if (value := stated_values.stated(sentence)) is None or denials.is_denied(sentence, value):
        return None
    if denials.is_mere_subject(sentence, value):
        return None
    taken_back = retraction(sentence.rpartition(value)[2], value)
    return without_about(value) if taken_back is None else taken_back


def _last_line(text: str) -> str | None:
    """Return the last line, or the displayed formula that ends with it; None for code, tables and long lines."""
    tail = text[-MAX_TAIL_CHARS:].rstrip()
    line = tail.rpartition("\n")[2].strip()
    if (closing := next((mark for mark in ("\\]", "$$") if line.endswith(mark)), None)) is not None:
        opening = tail.rfind("\\[" if closing == "\\]" else "$$", 0, len(tail) - 2)
        if opening != -1 and tail.count("\n", opening) <= MAX_DISPLAY_LINES and opening < len(tail) - len(line):
            line = " ".join(tail[opening:].split())
    return None if len(line) > stated_values.MAX_LINE_CHARS or _NOT_PROSE.match(line) else line


def _is_cut_off(sentence: str) -> bool:
    return bool(_UNFINISHED.search(sentence.rstrip(stated_values.MARKS)))
