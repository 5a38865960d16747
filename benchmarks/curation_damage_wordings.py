r"""The kinds of damage in two more implementations, `fresh` and `last`, written before their author had read a rule.

Rules were corrected with results of `fresh`; `last` was run once, after the last change.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping

from curation_damage_edits import Damage, Problem, edit_gold, edit_question

Edit = Callable[[str, random.Random], str | None]

_MEASURES = (
    r"(?:kilometers?|kilograms?|centimeters?|millimeters?|square \w+|cubic \w+|pints?|quarts?|tons?|acres?|mph|kg|mm|ft"
    r"|lbs?|oz|hours?|minutes?|seconds?|days?|weeks?|months?|years?|miles?|feet|inch(?:es)?|yards?|meters?|cm|km|pounds?)"
)
_INTEGER = re.compile(r"(?<![\w.,\\{])\d+(?![\w.,]*\d)")
_NUMBER_WORD = re.compile(r"\b(?:three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty)\b")


def _remove(pattern: str, *replacements: str) -> Edit:
    compiled = re.compile(pattern)

    def remove(text: str, rng: random.Random) -> str | None:
        matches = list(compiled.finditer(text))
        if not matches:
            return None
        match = rng.choice(matches)
        return re.sub(r"  +", " ", text[: match.start()] + rng.choice(replacements or ("",)) + text[match.end() :])

    return remove


def _curly(text: str) -> str | None:
    curly = re.sub(r"(?<=\w)'(?=\w)", "’", text).replace(" - ", " — ").replace('"', "”")
    return None if curly.isascii() else curly


def _decoded_twice(text: str, rng: random.Random) -> str | None:
    curly = _curly(text)
    if curly is None:
        return None
    for _ in range(2):
        curly = curly.encode("utf-8").decode("cp1252", "ignore")
    return curly


def _lost_characters(text: str, rng: random.Random) -> str | None:
    curly = _curly(text)
    if curly is None:
        return None
    style = rng.choice(("\ufffd", "\ufffd\ufffd\ufffd", "escape"))
    if style == "escape":
        return "".join(char if char.isascii() else f"\\u{ord(char):04x}" for char in curly)
    return re.sub(r"[^\x00-\x7f]", style, curly)


def _middle(glues: tuple[str, ...]) -> Edit:
    def cut(text: str, rng: random.Random) -> str | None:
        words = text.split(" ")
        if len(words) < 25:
            return None
        start = rng.randrange(4, len(words) // 2)
        stop = start + rng.randrange(6, 12)
        return " ".join(words[:start]) + rng.choice(glues) + " ".join(words[stop:])

    return cut


def _end_of_words(text: str, rng: random.Random) -> str | None:
    words = text.split(" ")
    kept = rng.randrange(len(words) // 2, len(words) - 2) if len(words) > 14 else 0
    return " ".join(words[:kept]) + rng.choice(("...", "…", "", " [...]")) if kept else None


def _end_of_characters(text: str, rng: random.Random) -> str | None:
    return text[: -rng.randrange(12, 60)] if len(text) > 120 else None


def _leak(*templates: str) -> Damage:
    def damage(problem: Problem, _: Problem, rng: random.Random) -> Problem:
        text = rng.choice(templates).replace("QUESTION", problem.question).replace("GOLD", problem.answer)
        return problem._replace(question=text)

    return damage


def _any_integer_off(gold: str, rng: random.Random) -> str | None:
    matches = list(re.finditer(r"\d{1,9}", gold))
    if not matches:
        return None
    match = rng.choice(matches)
    return f"{gold[: match.start()]}{int(match[0]) + 1}{gold[match.end() :]}"


def _off_with_dress(gold: str, rng: random.Random) -> str | None:
    return rng.choice(("${}$", "{}.0", "{}")).format(int(gold) - 1) if re.fullmatch(r"[1-9]\d{0,8}", gold) else None


def _minus(*forms: str) -> Edit:
    def change(gold: str, rng: random.Random) -> str | None:
        if not re.fullmatch(r"[1-9]\d{0,8}|\\frac\{\d+\}\{\d+\}", gold):
            return None
        return rng.choice(forms).replace("GOLD", gold)

    return change


def _comma(gold: str, rng: random.Random) -> str | None:
    return f"{gold[:-1]},{gold[-1]}" if re.fullmatch(r"[1-9]\d{1,6}", gold) else None


def _ten_times(gold: str, rng: random.Random) -> str | None:
    if not re.fullmatch(r"[1-9]\d{1,6}(?:\.\d+)?", gold):
        return None
    return f"{float(gold) * rng.choice((0.001, 0.01, 0.1, 10)):.10g}"


def _ends_swapped(gold: str, _: random.Random) -> str | None:
    swapped = gold[-1:] + gold[1:-1] + gold[:1]
    return swapped if re.fullmatch(r"\d{2,9}", gold) and swapped != gold else None


def _doubled_or_lost(gold: str, rng: random.Random) -> str | None:
    if not re.fullmatch(r"[1-9]\d{1,8}", gold):
        return None
    index = rng.randrange(len(gold))
    return gold[:index] + gold[index] * rng.choice((0, 2)) + gold[index + 1 :]


def _misread(table: Mapping[str, str]) -> Edit:
    def damage(gold: str, rng: random.Random) -> str | None:
        indices = [index for index, char in enumerate(gold) if char in table]
        if not indices or not re.fullmatch(r"\d{2,9}", gold):
            return None
        index = rng.choice(indices)
        return gold[:index] + table[gold[index]] + gold[index + 1 :]

    return damage


def _other_gold(problem: Problem, other: Problem, _: random.Random) -> Problem:
    return problem._replace(answer=other.answer)


def _number_of_question(problem: Problem, _: Problem, rng: random.Random) -> Problem | None:
    numbers = [digits for digits in _INTEGER.findall(problem.question) if digits != problem.answer]
    return problem._replace(answer=rng.choice(numbers)) if numbers else None


def _other_start(problem: Problem, other: Problem, _: random.Random) -> Problem | None:
    _first, gap, rest = problem.question.partition(". ")
    return problem._replace(question=f"{other.question.partition('. ')[0]}. {rest}") if gap else None


def _other_half(problem: Problem, other: Problem, _: random.Random) -> Problem | None:
    sentences = re.split(r"(?<=[.?!]) ", problem.question)
    others = re.split(r"(?<=[.?!]) ", other.question)
    if min(len(sentences), len(others)) < 3:
        return None
    return problem._replace(question=" ".join(sentences[: len(sentences) // 2] + others[len(others) // 2 :]))


def _letter_gold(*stems: str) -> Damage:
    def damage(problem: Problem, _: Problem, rng: random.Random) -> Problem:
        return problem._replace(question=f"{problem.question} {rng.choice(stems)}", answer=rng.choice("ABCDE"))

    return damage


def _before(*pointers: str) -> Edit:
    return lambda question, rng: rng.choice(pointers) + question


def _letter_doubled_or_dropped(word: str, rng: random.Random) -> str:
    index = rng.randrange(1, len(word))
    return word[:index] + word[index] * rng.choice((0, 2)) + word[index + 1 :]


def _neighbour_key(word: str, rng: random.Random) -> str:
    neighbours = dict(zip("abcdefghilnorstuvwxy", "svxfrdfyjokbpetyirbqscu"[:20], strict=True))
    index = rng.randrange(len(word))
    return word[:index] + neighbours.get(word[index], "x") + word[index + 1 :]


def _garbled(garble: Callable[[str, random.Random], str]) -> Edit:
    def damage(question: str, rng: random.Random) -> str | None:
        matches = list(_NUMBER_WORD.finditer(question))
        if not matches:
            return None
        match = rng.choice(matches)
        return question[: match.start()] + garble(match[0], rng) + question[match.end() :]

    return damage


def _marked_up(*marks: tuple[str, str]) -> Edit:
    def damage(question: str, rng: random.Random) -> str | None:
        words = question.split(" ")
        if len(words) < 8:
            return None
        start = rng.randrange(2, len(words) - 4)
        before, after = rng.choice(marks)
        return " ".join([*words[:start], before + words[start], words[start + 1] + after, *words[start + 2 :]])

    return damage


def _joined(*forms: str) -> Damage:
    def damage(problem: Problem, other: Problem, rng: random.Random) -> Problem:
        text = rng.choice(forms).replace("FIRST", problem.question).replace("SECOND", other.question)
        return problem._replace(question=text)

    return damage


def _solution_sentence(index: int) -> Damage:
    def damage(problem: Problem, _: Problem, rng: random.Random) -> Problem | None:
        sentences = re.split(r"(?<=[.!])\s+", problem.solution.partition("####")[0].strip())
        sentence = sentences[index].strip() if len(sentences) > 2 else ""
        return problem._replace(answer=sentence) if len(sentence) > 30 and "boxed" not in sentence else None

    return damage


def _put(*golds: str) -> Edit:
    return lambda _, rng: rng.choice(golds)


def _inserted(*fragments: str) -> Edit:
    def damage(question: str, rng: random.Random) -> str | None:
        sentences = re.split(r"(?<=[.?!]) ", question)
        if len(sentences) < 2:
            return None
        index = rng.randrange(1, len(sentences))
        return " ".join([*sentences[:index], rng.choice(fragments), *sentences[index:]])

    return damage


WORDINGS: Mapping[str, Mapping[str, Damage]] = {
    "unit removed": {
        "fresh": edit_question(_remove(rf"(?<=\d)[ -]{_MEASURES}\b")),
        "last": edit_question(_remove(r"(?<=\d)(?: ?\\%|%|\^\\circ| degrees| cents| dollars)|\\?\$(?=\d[^$]*$)")),
    },
    "mojibake": {"fresh": edit_question(_decoded_twice), "last": edit_question(_lost_characters)},
    "middle cut": {
        "fresh": edit_question(_middle((" ", " ", "\n"))),
        "last": edit_question(_middle((" ... ", " [...] ", "… "))),
    },
    "end cut": {"fresh": edit_question(_end_of_words), "last": edit_question(_end_of_characters)},
    "gold in the prompt": {
        "fresh": _leak(
            "QUESTION Hint: the result is GOLD.",
            "QUESTION\nCorrect answer: GOLD",
            "QUESTION [GOLD]",
            "QUESTION => GOLD",
            "#### GOLD\nQUESTION",
            "QUESTION (correct response = GOLD)",
        ),
        "last": _leak(
            "QUESTION The expected output is GOLD",
            "QUESTION\n\nKey: GOLD",
            "GOLD is what you should get. QUESTION",
            "QUESTION <answer>GOLD</answer>",
            "QUESTION Sol: GOLD.",
            "QUESTION It turns out to be GOLD.",
        ),
    },
    "gold off by one": {"fresh": edit_gold(_any_integer_off), "last": edit_gold(_off_with_dress)},
    "sign of gold": {
        "fresh": edit_gold(_minus("- GOLD", "(-GOLD)", "-GOLD")),
        "last": edit_gold(_minus("–GOLD", "minus GOLD", "$-GOLD$")),
    },
    "decimal point of gold": {"fresh": edit_gold(_comma), "last": edit_gold(_ten_times)},
    "digits of gold swapped": {"fresh": edit_gold(_ends_swapped), "last": edit_gold(_doubled_or_lost)},
    "gold misread": {
        "fresh": edit_gold(_misread({"0": "D", "1": "I", "3": "E", "5": "$", "7": "?"})),
        "last": edit_gold(_misread({"0": "Q", "1": "!", "2": "?", "4": "A", "6": "G", "8": "&"})),
    },
    "another row's gold": {"fresh": _other_gold, "last": _number_of_question},
    "another row's question": {"fresh": _other_start, "last": _other_half},
    "options lost": {
        "fresh": _letter_gold("Which one of these is true?", "Select one.", "Pick the best answer."),
        "last": _letter_gold("Mark the right letter.", "Which of these could be the answer?", "The answer is (A-E):"),
    },
    "figure lost": {
        "fresh": edit_question(_before("From the picture: ", "Look at the chart. ", "As illustrated here. ")),
        "last": edit_question(
            _before("The figure shows the situation. ", "Refer to the drawing. ", "<image>\n", "![](images/q17.png) ")
        ),
    },
    "number removed": {
        "fresh": edit_question(_remove(rf"\b{_NUMBER_WORD.pattern} |\$?{_INTEGER.pattern} ")),
        "last": edit_question(_remove(_INTEGER.pattern, "[NUM]", "#", "__", "XX")),
    },
    "number word garbled": {
        "fresh": edit_question(_garbled(_letter_doubled_or_dropped)),
        "last": edit_question(_garbled(_neighbour_key)),
    },
    "HTML left over": {
        "fresh": edit_question(_marked_up(("<b>", "</b>"), ("<br>", ""), ("&ndash; ", "&rsquo;"), ("<li>", "</li>"))),
        "last": edit_question(
            _marked_up(
                ('<font face="Arial">', "</font>"),
                ("&lt;p&gt;", "&lt;/p&gt;"),
                ('<img src="a.gif"/>', ""),
                ('<a href="/q/5">', "</a>"),
                ("<u>", "</u>"),
            )
        ),
    },
    "two problems joined": {
        "fresh": _joined("1. FIRST\n2. SECOND", "FIRST\n\nProblem: SECOND", "FIRST SECOND"),
        "last": _joined("FIRST\n---\nSECOND", "(a) FIRST (b) SECOND", "FIRST | SECOND", "FIRST\nSECOND"),
    },
    "solution instead of gold": {"fresh": _solution_sentence(0), "last": _solution_sentence(1)},
    "gold like empty": {
        "fresh": edit_gold(_put("nan", "unknown", "...", "n.a.", "{}", "TODO", "\\boxed{}", "NaN")),
        "last": edit_gold(_put("(blank)", "--", "#N/A", "skip", "Answer not available", "missing", "$$", "?")),
    },
    "translated fragment": {
        "fresh": edit_question(
            _inserted(
                "Le reste a été partagé entre les voisins.",
                "Depois disso, ele comprou mais dois livros.",
                "그는 나머지를 친구에게 주었다.",
                "ثم أعطى الباقي لأخته الصغيرة.",
            )
        ),
        "last": edit_question(
            _inserted(
                "De rest werd de volgende dag verkocht.",
                "Kalanını komşularına dağıttı.",
                "Resztę oddał swojej młodszej siostrze.",
                "बाकी उसने अपनी बहन को दे दिया।",
                "Phần còn lại anh ấy chia cho các bạn.",
            )
        ),
    },
}
"""The kinds of `curation_damages.DAMAGES`, each in the implementations `fresh` and `last`."""
