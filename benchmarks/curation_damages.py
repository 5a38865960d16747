r"""Twenty kinds of damage, each in two implementations: `design` and `report`.

A damage is a function of a problem, another problem and a random generator. It returns the damaged problem, or None if
the damage does not apply to the problem.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping

from curation_damage_edits import Damage, Problem, edit_gold, edit_question

_UNITS = (
    r"(?:hours?|minutes?|seconds?|days?|weeks?|months?|years?|miles?|feet|inch(?:es)?|yards?|meters?|cm|km|grams?|pounds?"
    r"|ounces?|liters?|gallons?|cups?|percent|degrees|dollars|cents)"
)
_WHOLE = re.compile(r"(?<![\w.,\\{])\d[\d,]*(?:\.\d+)?(?![\w,]*\d)")
_WORDS = "two three four five six seven eight nine ten twelve twenty thirty fifty".split()


def _whole(problem: Problem) -> int | None:
    return int(problem.answer) if re.fullmatch(r"-?\d{1,12}", problem.answer) else None


def _cut_out(pattern: str, keep: str = "") -> Callable[[str, random.Random], str | None]:
    compiled = re.compile(pattern)

    def cut(text: str, rng: random.Random) -> str | None:
        spans = list(compiled.finditer(text))
        if not spans:
            return None
        span = rng.choice(spans)
        return re.sub(r"  +", " ", text[: span.start()] + keep + text[span.end() :])

    return cut


def _mojibake(charsets: tuple[str, ...], quote: bool) -> Callable[[str, random.Random], str | None]:
    def break_text(text: str, rng: random.Random) -> str | None:
        curly = re.sub(r"(?<=\w)'(?=\w)", "’", text).replace(" - ", " – ")
        if quote:
            curly = re.sub(r"\b([A-Z][a-z]+)\b", r"“\1”", curly, count=1).replace("e", "é", 1)
        if curly.isascii():
            return None
        return curly.encode("utf-8").decode(rng.choice(charsets), "replace")

    return break_text


def _middle_words(text: str, rng: random.Random) -> str | None:
    words = text.split(" ")
    if len(words) < 24:
        return None
    start = rng.randrange(5, len(words) // 2)
    return " ".join(words[:start] + words[start + len(words) // 4 :])


def _middle_characters(text: str, rng: random.Random) -> str | None:
    if len(text) < 140:
        return None
    start = rng.randrange(30, len(text) // 2)
    return text[:start] + text[start + len(text) // 3 :]


def _end(low: float, high: float, words: bool) -> Callable[[str, random.Random], str | None]:
    def cut(text: str, rng: random.Random) -> str | None:
        if len(text) < 60:
            return None
        kept = text[: int(len(text) * rng.uniform(low, high))]
        return kept.rsplit(" ", 1)[0] if words else kept

    return cut


def _leak(templates: tuple[str, ...]) -> Damage:
    def damage(problem: Problem, _: Problem, rng: random.Random) -> Problem:
        text = rng.choice(templates).replace("QUESTION", problem.question).replace("GOLD", problem.answer)
        return problem._replace(question=text)

    return damage


def _slip(gold: str, rng: random.Random) -> str | None:
    return str(int(gold) + rng.choice((-1, 1))) if re.fullmatch(r"-?\d{1,12}", gold) else None


def _far_slip(gold: str, rng: random.Random) -> str | None:
    return str(int(gold.replace(",", "")) + rng.choice((1, -1))) if re.fullmatch(r"-?[\d,]{1,12}", gold) else None


def _sign(gold: str, _: random.Random) -> str | None:
    if gold == "0":
        return None
    return gold.removeprefix("-") if gold.startswith("-") else f"-{gold}"


def _sign_unicode(gold: str, _: random.Random) -> str | None:
    return f"−{gold}" if re.fullmatch(r"\d+", gold) and gold != "0" else None


def _point(gold: str, rng: random.Random) -> str | None:
    return f"{gold[:-1]}.{gold[-1]}" if re.fullmatch(r"\d{2,9}", gold) else None


def _point_shifted(gold: str, rng: random.Random) -> str | None:
    return (
        rng.choice((f"{gold}0", f"0.{gold}", f"{int(gold) / 100:g}")) if re.fullmatch(r"[1-9]\d{0,8}", gold) else None
    )


def _swap(gold: str, rng: random.Random) -> str | None:
    if not re.fullmatch(r"\d{2,9}", gold):
        return None
    index = rng.randrange(len(gold) - 1)
    return gold[:index] + gold[index + 1] + gold[index] + gold[index + 2 :]


def _reverse(gold: str, _: random.Random) -> str | None:
    return gold[::-1] if re.fullmatch(r"\d{2,9}", gold) else None


def _ocr(table: dict[str, str]) -> Callable[[str, random.Random], str | None]:
    def damage(gold: str, rng: random.Random) -> str | None:
        spots = [index for index, char in enumerate(gold) if char in table]
        if not spots or not re.fullmatch(r"\d{2,9}", gold):
            return None
        index = rng.choice(spots)
        return gold[:index] + table[gold[index]] + gold[index + 1 :]

    return damage


def _other_gold(problem: Problem, other: Problem, _: random.Random) -> Problem | None:
    return problem._replace(answer=other.answer)


def _other_question(problem: Problem, other: Problem, _: random.Random) -> Problem | None:
    return problem._replace(question=other.question)


def _other_last_sentence(problem: Problem, other: Problem, _: random.Random) -> Problem | None:
    head, gap, _tail = problem.question.rpartition(". ")
    asked = other.question.rpartition(". ")[2]
    return problem._replace(question=f"{head}. {asked}") if gap else None


def _letter_gold(stems: tuple[str, ...]) -> Damage:
    def damage(problem: Problem, _: Problem, rng: random.Random) -> Problem:
        question = f"{problem.question} {rng.choice(stems)}".rstrip()
        return problem._replace(question=question, answer=rng.choice("ABCDE"))

    return damage


def _without_drawing(question: str, _: random.Random) -> str | None:
    return re.sub(r"\s*\[asy\].*?\[/asy\]\s*", " ", question, flags=re.DOTALL) if "[asy]" in question else None


def _pointer(pointers: tuple[str, ...]) -> Callable[[str, random.Random], str | None]:
    def damage(question: str, rng: random.Random) -> str | None:
        return rng.choice(pointers) + question[:1].lower() + question[1:]

    return damage


def _garble_words(style: str) -> Callable[[str, random.Random], str | None]:
    def damage(question: str, rng: random.Random) -> str | None:
        matches = [match for match in re.finditer(r"\b[a-z]+\b", question) if match[0] in _WORDS]
        if not matches:
            return None
        match = rng.choice(matches)
        word = match[0]
        index = rng.randrange(1, len(word) - 1) if len(word) > 2 else 0
        swapped = word[:index] + word[index + 1] + word[index] + word[index + 2 :]
        digits = word.translate(str.maketrans("oeist", "03157"))
        return question[: match.start()] + (swapped if style == "swap" else digits) + question[match.end() :]

    return damage


def _html(makers: tuple[tuple[str, str], ...]) -> Callable[[str, random.Random], str | None]:
    def damage(question: str, rng: random.Random) -> str | None:
        before, after = rng.choice(makers)
        return f"{before}{question.replace('&', '&amp;').replace('<', '&lt;')}{after}"

    return damage


def _joined(glue: str) -> Damage:
    return lambda problem, other, rng: problem._replace(question=f"{problem.question}{glue}{other.question}")


def _solution_as_gold(limit: int) -> Damage:
    def damage(problem: Problem, _: Problem, rng: random.Random) -> Problem | None:
        return problem._replace(answer=problem.solution[:limit]) if len(problem.solution) > 80 else None

    return damage


def _put(golds: tuple[str, ...]) -> Callable[[str, random.Random], str]:
    return lambda _, rng: rng.choice(golds)


_FOREIGN = {
    "design": (
        " Combien de personnes restent dans la salle après le départ du premier groupe ?",
        " 他又从商店买了三个苹果。",
        " Bitte geben Sie die Antwort als ganze Zahl an und erklären Sie den Rechenweg.",
        " Сколько всего яблок осталось у мальчика?",
    ),
    "report": (
        " Escriba el resultado final redondeado al número entero más cercano.",
        " 彼は友達に二つあげました。",
        " 然后把剩下的分给同学们，每人一样多。",
        " Il resto dei biglietti viene venduto il giorno dopo allo stesso prezzo.",
    ),
}


def _foreign(texts: tuple[str, ...]) -> Callable[[str, random.Random], str | None]:
    def damage(question: str, rng: random.Random) -> str | None:
        cuts = [match.end() for match in re.finditer(r"[.?!](?= )", question)]
        if not cuts:
            return None
        start = rng.choice(cuts)
        return question[:start] + rng.choice(texts) + question[start:]

    return damage


POINTERS = ("In the diagram shown below, ", "Using the graph to the right, ", "According to the table, ")
WRAPPERS = (
    ("<p>", "</p>"),
    ('<div class="q">', "<br/></div>"),
    ("&nbsp;", "&nbsp;&#160;"),
    ('<span style="color:red">', "</span>"),
    ("<td>", "</td>"),
    ("", "<script>var x=1;</script>"),
    ("<!-- q -->", "&quot;"),
)

DAMAGES: Mapping[str, Mapping[str, Damage]] = {
    "unit removed": {
        "design": edit_question(_cut_out(rf"(?<=\d) {_UNITS}\b")),
        "report": edit_question(_cut_out(rf"(?<=\d)[ -]{_UNITS}\b|\$(?=\d)|(?<=\d)%")),
    },
    "mojibake": {
        "design": edit_question(_mojibake(("latin-1", "cp1252", "gb18030"), quote=True)),
        "report": edit_question(_mojibake(("cp1252", "mac_roman", "gbk", "shift_jis", "cp1251", "big5"), quote=True)),
    },
    "middle cut": {"design": edit_question(_middle_words), "report": edit_question(_middle_characters)},
    "end cut": {
        "design": edit_question(_end(0.4, 0.8, words=True)),
        "report": edit_question(_end(0.5, 0.9, words=False)),
    },
    "gold in the prompt": {
        "design": _leak(("QUESTION Answer: GOLD", "QUESTION (The answer is GOLD.)", "QUESTION GOLD")),
        "report": _leak(
            (
                "QUESTION\n\nFinal answer - GOLD",
                "QUESTION You will find that this comes to GOLD.",
                "The solution to the following is GOLD. QUESTION",
                "QUESTION <!-- GOLD -->",
                "QUESTION Ans. GOLD",
                "QUESTION \\boxed{GOLD}",
            )
        ),
    },
    "gold off by one": {"design": edit_gold(_slip), "report": edit_gold(_far_slip)},
    "sign of gold": {"design": edit_gold(_sign), "report": edit_gold(_sign_unicode)},
    "decimal point of gold": {"design": edit_gold(_point), "report": edit_gold(_point_shifted)},
    "digits of gold swapped": {"design": edit_gold(_swap), "report": edit_gold(_reverse)},
    "gold misread": {
        "design": edit_gold(_ocr({"0": "O", "1": "l", "5": "S", "8": "B"})),
        "report": edit_gold(_ocr({"0": "o", "1": "|", "2": "Z", "6": "b", "9": "g", "4": " 4", "7": ",7"})),
    },
    "another row's gold": {"design": _other_gold, "report": _other_gold},
    "another row's question": {"design": _other_question, "report": _other_last_sentence},
    "options lost": {
        "design": _letter_gold(("",)),
        "report": _letter_gold(("Which of the following is correct?", "Choose the correct option.", "")),
    },
    "figure lost": {"design": edit_question(_without_drawing), "report": edit_question(_pointer(POINTERS))},
    "number removed": {
        "design": edit_question(_cut_out(_WHOLE.pattern)),
        "report": edit_question(_cut_out(r"\$?" + _WHOLE.pattern)),
    },
    "number word garbled": {
        "design": edit_question(_garble_words("swap")),
        "report": edit_question(_garble_words("digits")),
    },
    "HTML left over": {"design": edit_question(_html(WRAPPERS[:3])), "report": edit_question(_html(WRAPPERS[3:]))},
    "two problems joined": {"design": _joined(" "), "report": _joined("\n\n")},
    "solution instead of gold": {"design": _solution_as_gold(600), "report": _solution_as_gold(120)},
    "gold like empty": {
        "design": edit_gold(_put(("N/A", "-", "see solution", "None", "?"))),
        "report": edit_gold(_put(("[]", "not provided", "tbd", "\\text{}", "no answer", "null", "see above", "_____"))),
    },
    "translated fragment": {
        "design": edit_question(_foreign(_FOREIGN["design"])),
        "report": edit_question(_foreign(_FOREIGN["report"])),
    },
}
"""The kinds of damage, each in two implementations."""
