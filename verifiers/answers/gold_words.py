"""Finds golds that no right answer can match, by the words of gold and problem.

    Problem                        Gold                                              Fault
    "How many moves are needed?"   "see picture"                                     placeholder
    "How many moves are needed?"   "Tom"                                             words
    "Is the matrix invertible?"    "Yes, since its determinant is 3, and hence ..."  prose
    "How many apples are left?"    "l99", "1S"                                       garbled
    "How many apples are left?"    "2 8", "4,0"                                      several_numbers
    "How many apples are left?"    "twelve or so??"                                  question
    "Which day is it?"             "Tuesday", "the day before", "星期二"                none: right answers say so
    "Which book is it?"            "The Doctrine of the Mean", "Ctrl+A"              none: names and codes

A right answer repeats names, choices, yes and no, and short phrases word for word. It hardly ever repeats a sentence
word for word.
"""

from __future__ import annotations

import re

from truegold.verifiers.extract import committed_answer
from truegold.verifiers.gold import is_placeholder

MAX_CHARS = 2_000
"""Maximum number of characters of a gold that are read. The rest is ignored."""
MAX_PHRASE_WORDS = 6
MAX_PHRASE_HAN = 25
"""Right answers repeat a phrase of up to `MAX_PHRASE_WORDS` words, or of `MAX_PHRASE_HAN` Chinese characters."""
MAX_STATEMENT_CHARS = 200
MAX_STATEMENT_FORMULAS = 2
"""A gold with more than MAX_STATEMENT_CHARS characters or MAX_STATEMENT_FORMULAS formulas is a solution."""

_FORMULA = re.compile(r"\$\$.*?\$\$|\$[^$]*\$|\\\(.*?\\\)|\\\[.*?\\\]|\\begin\{(\w+)\}.*?\\end\{\1\}", re.DOTALL)
"""A formula: `$x^2$`, `$$x$$`, `\\(x\\)`, `\\[x\\]`, `\\begin{cases}...\\end{cases}`."""
_MARKUP = re.compile(r"\\(?:text|textbf|mathrm|mathbf|textit|mbox)\s*|\\[A-Za-z]+|[{}$]")
"""Commands, braces and dollar signs, which are removed: `\\text{two apples}` -> `two apples`."""
_WORD = re.compile(r"[A-Za-z][a-z'’]+")
"""A word of two or more letters with small letters. `x` and `AB` are symbols, not words."""
_HAN = re.compile(r"[一-鿿]")
_PREDICATE = re.compile(
    r"\b(?:is|are|was|were|be|been|has|have|had|does|do|did|can|cannot|will|would|must|should|may|let|means?|implies|gives?"
    r"|follows?|exists?|shows?|equals?|becomes?|recall|since|because|therefore|thus|hence|suppose|assume|note|we|it|they|this"
    r"|that|which|so|then|if)\b",
    re.IGNORECASE,
)
"""Words that turn a phrase into a sentence: "the number *is* even", but not "the largest even number"."""
_ARGUES = re.compile(r"因为|所以|因此|证明|由于|根据|故选|解[:：]|[。；].*[。；]", re.DOTALL)
"""Chinese words of an argument (because, so, proof, since, hence the choice is, solution), or two sentences."""
_ORDERS_PROOF = re.compile(
    r"\s*(?:(?:dis)?prove\b(?:\s+that\b)?|show\s+(?:that\b|(?=(?:the|it|why|how)\b))|(?:试?证明|求证)[:：]?(?=.))",
    re.IGNORECASE,
)
"""The beginning of a gold that asks for a proof: "Prove that x = 3"."""
_DERIVES = re.compile(
    r"\bwe\b|\bfirst\b|\bsince\b|\bthen\b|\bso\b|\b\w+ing\b[^.]{0,40},|<<|=[^=]*=[^=]*=", re.IGNORECASE
)
"""A step of a solution, which an answer does not have: "we get", "multiplying by 2, ...", `<<3+4=7>>`, `a=b=c=d`."""
_SEVERAL_VALUES = re.compile(
    r"(?<!\\);\s*\S|(?<!\\)\$\s*,?\s*(?<!\\)\$\s*\S|\S\s+(?:and|or)\s+\S|,\s*[A-Za-z]\w*\s*[=:]"
)
"""Several values: "a; b", "$a$ $b$", "a and b", "x=1, y=2"."""
_MARKUP_SPACE = re.compile(r"\\[,;:! ]")
"""A space command of LaTeX, such as `\\,`."""
_NO_VALUE = re.compile(
    r"none|no\s+(?:real\s+)?solutions?|(?:no|zero|infinite(?:ly\s+many)?|countless|all|any)\b.*|undefined|does\s+not\s+exist|dne"
    r"|cannot\s+be\s+.*|not\s+.*|impossible|insufficient.*|无数.*|无穷.*|无解|不能.*|一样.*|同样.*",
    re.IGNORECASE,
)
"""Answers to "how many" that are not amounts: "no solutions", "undefined", "cannot be determined"."""
_AMOUNT_WORDS = re.compile(
    r"\b(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|twenty|thirty|forty|fifty|sixty"
    r"|seventy|eighty|ninety|hundred|thousand|million|dozen|half|third|quarter|once|twice|thrice|single|both)\b"
    r"|[零一二两三四五六七八九十百千万亿半]",
    re.IGNORECASE,
)
"""Words that name an amount: "twelve", "half", "twice", "both", `三`."""
_COUNT_ASKED = re.compile(r"\bhow\s+(?:many|much|old|far|long|tall|fast|heavy)\b|多少|几(?!何)", re.IGNORECASE)
"""A question for an amount: "how many"; `几`, except in `几何` (geometry)."""
_GARBLED = re.compile(r"-?\$?(?=[\d.,lIOoSBZ|]*\d)(?=[\d.,]*[lIOoSBZ|])[\d.,lIOoSBZ|]{2,12}")
"""A number with a letter in place of a digit: `l99`, `1S`, `$1O.5`."""
_AMOUNT = r"[$€£]?\d[\d,.]*(?:\s?[A-Za-z%]{2,})?"
"""A number, perhaps with a currency sign or a unit."""
_RANGE = re.compile(r"\$?(\d+(?:\.\d+)?)\s*-\s*\$?(\d+(?:\.\d+)?)")
"""Two numbers with a hyphen: the range `10-44`, or the difference `44-10`."""
_SEVERAL_NUMBERS = re.compile(
    r"-?\d+\s+\d+|-?\d{1,3},\d{1,2}"
    rf"|(?:between\s+|from\s+|either\s+)?{_AMOUNT}\s*(?:,?\s*\(?or(?:\s+(?:maybe|perhaps|possibly))?|to|或者?|到|至|~|–|—|±"
    rf"|\+/-|\\pm)\s*{_AMOUNT}\)?\.?"
    rf"|(?:at\s+(?:least|most)|(?:no\s+)?(?:more|less|fewer)\s+than|over|under|up\s+to)\s+{_AMOUNT}\.?"
    rf"|{_AMOUNT}\s+or\s+(?:more|less|fewer)\.?",
    re.IGNORECASE,
)
"""Several numbers in place of one: `2 8`, `4,0` (not grouped thousands), `12 or 43`, `3 to 39`, `2±2`, `at least 9`, `9
or more`."""
_ASKS_SEVERAL = re.compile(
    r"\b(?:and|both|each|they|are\s+(?:the|their)|respectively|list|pair|values|solutions)\b|、|和|各|分别",
    re.IGNORECASE,
)
"""Words of a question that asks for more than one amount: "how many does each of them have?"."""


MAX_NAME_WORDS = 12
_NAME_WORD = re.compile(r"[(“\"']?(?:[A-Z][^\W\d_]*(?:['’.&/-][^\W\d_]*)*|\d+(?:st|nd|rd|th))[)”\"']?|[+&/-]")
"""A capitalised word of a name: `Bank`, `People's`, `19th`."""
_NAME_CODE = re.compile(r"[A-Z]+\d+[A-Z\d]*")
"""A word with digits that is part of a name: `S15`, `C7M`."""
_NAME_NUMBER = re.compile(r"['’]?\d{2,4}(?:\.\d)?(?:[-–]\d{2,4})?|\d\.\d")
"""A number that may be part of a name: "2007 Surfing Pro", "Radio 101.9 Davao"."""
_SMALL_WORDS = frozenset(
    "a against an and as at between by de del di du for from in into la le of on over per the through to under upon "
    "van von with".split()
)
"""Small words that may stand within a name."""
_CODE = re.compile(
    r"[A-Za-z]{2,}\d*(?:[+/-][A-Za-z][A-Za-z0-9]*){1,4}|(?:/[a-z]\w*){2,}|\d{1,3}(?:\.\d{1,3}){3}|[A-Z][a-z]?\d?[+-]"
)
"""Codes, paths and formulas of chemistry: `Ctrl+A`, `CSMA/CD`; `/etc/hosts`; `192.168.0.1`; `Ca2+`."""

_TRUTH = {  # Words for yes, no, true and false.
    **dict.fromkeys(("yes", "是", "是的"), "yes"),
    **dict.fromkeys(("no", "否", "不是"), "no"),
    **dict.fromkeys(("true", "正确", "对", "√", "✓"), "true"),
    **dict.fromkeys(("false", "错误", "错", "不正确", "×", "✗"), "false"),
}
_PAIRS = tuple(
    tuple(pair.split("/")) for pair in "yes/no true/false 是/否 是的/不是 对/错 正确/错误 正确/不正确 √/× ✓/✗".split()
)
"""Pairs of words for yes and no."""
_WRAPPED = re.compile(r"\\(?:text|textbf|mathrm|mathbf)\s?\{\s?([^{}]{1,20})\s?\}")
"""A word in a text command: `\\text{Yes}`."""
MAX_TRUTH_CHARS = 40
"""The longest gold that is read as yes, no, true or false."""


def truth_of(gold: str) -> str | None:
    """Return `yes`, `no`, `true` or `false` if gold consists of this word alone, else None."""
    if len(gold) > MAX_TRUTH_CHARS:
        return None
    return _TRUTH.get(_plain(gold))


def _plain(gold: str) -> str:
    return _WRAPPED.sub(r"\1", gold.strip().strip("$")).strip().rstrip(".。!").strip().casefold()


def truth_options(gold: str) -> tuple[str, ...]:
    """Return the pair of words that gold belongs to, `No` -> `("yes", "no")`, or an empty tuple for any other gold."""
    return next((pair for pair in _PAIRS if len(gold) <= MAX_TRUTH_CHARS and _plain(gold) in pair), ())


def is_name(gold: str) -> bool:
    """Say whether gold is a name or a code, which a right answer repeats: "People's Bank of China", "Ctrl+A"."""
    if _CODE.fullmatch(gold):
        return True
    words = gold.split()
    numbers = [word for word in words if _NAME_NUMBER.fullmatch(word)]
    words = [word for word in words if word not in numbers]
    capitals = [word for word in words if _NAME_WORD.fullmatch(word) or _NAME_CODE.fullmatch(word)]
    is_named = bool(words) and words[0] in capitals and all(word in _SMALL_WORDS or word in capitals for word in words)
    return is_named and len(numbers) <= 1 and len(capitals) > 1 and len(words) <= MAX_NAME_WORDS


def shorter_answers(gold: str) -> list[str]:
    """Return the parts of a prose gold that a right answer may be: formulas, and the answer that gold commits to."""
    formulas = [match[0].strip("$ \n") for match in _FORMULA.finditer(gold)]
    if len(gold) > MAX_STATEMENT_CHARS or len(formulas) > MAX_STATEMENT_FORMULAS or _DERIVES.search(gold):
        return []
    committed = committed_answer(gold)
    answers = [*formulas[:1], *formulas[-1:], *([committed.text] if committed else [])]
    answers += [gold[order.end() :].strip()] if (order := _ORDERS_PROOF.match(gold)) else []
    return [answer for answer in dict.fromkeys(answers) if answer and not _is_prose(answer)]


def unmatchable_because(gold: str, problem: str) -> str | None:  # noqa: PLR0911, one return for each fault
    """Return the reason why no right answer can match `gold`, or None."""
    text = gold.strip()[:MAX_CHARS]
    if is_placeholder(text):
        return "placeholder"
    if truth_of(text) is not None:
        return None
    if _is_prose(text) and not is_name(text):
        return "prose"
    if text.endswith(("?", "？")):
        return "question"
    if (letters := set(re.findall(r"[A-Za-z|]", text))) and _GARBLED.fullmatch(text) and not _names(problem, letters):
        return "garbled"
    if not _asks_one_count(problem):
        return None
    rising = (match := _RANGE.fullmatch(text)) is not None and float(match[1]) < float(match[2])
    if rising or _SEVERAL_NUMBERS.fullmatch(text):
        return "several_numbers"
    return "words" if _names_no_value(text) else None


def gold_fault_kind(fault: str, gold: str) -> str:
    """Return the kind of a gold's fault, which tells a reviewer what to do.

    Gold                              Fault            Kind
    "Adding 2 gives x=3, so x^2=9"    prose            derivation: take its last result
    "1,8"                             several_numbers  several_values: find the value that the problem asks for
    "3000 @ 11; 24000 @ 7"            notation         several_values
    "h=gi"                            notation         notation: the verifier cannot read it
    """
    if fault == "prose" and _DERIVES.search(gold):
        return "derivation"
    if fault == "several_numbers" or (fault == "notation" and _SEVERAL_VALUES.search(_MARKUP_SPACE.sub(" ", gold))):
        return "several_values"
    return fault


def _is_prose(text: str) -> bool:
    """Say whether a gold consists of sentences, which a right answer would word differently."""
    plain = _MARKUP.sub(" ", _FORMULA.sub(" ⟦⟧ ", text))
    if _ORDERS_PROOF.match(plain):
        return True
    han = len(_HAN.findall(plain))
    if han > MAX_PHRASE_HAN or (han > MAX_PHRASE_WORDS and _ARGUES.search(plain)):
        return True
    words = len(_WORD.findall(plain))
    return words > MAX_PHRASE_WORDS or (words >= MAX_PHRASE_WORDS // 2 + 1 and bool(_PREDICATE.search(plain)))


def _names(problem: str, letters: set[str]) -> bool:
    """Say whether the problem uses one of the letters as a symbol or a unit."""
    return any(re.search(rf"(?<![A-Za-z]){re.escape(letter)}(?![a-z])", problem) for letter in letters)


def _asks_one_count(problem: str) -> bool:
    """Say whether the last question for an amount in the problem asks for a single amount."""
    sentences = re.split(r"(?<=[.?!。？！])\s*", problem.strip())
    question = next((sentence for sentence in reversed(sentences) if _COUNT_ASKED.search(sentence)), None)
    return question is not None and not _ASKS_SEVERAL.search(question)


def _names_no_value(text: str) -> bool:
    """Say whether a gold consists of words that do not name an amount."""
    plain = _MARKUP.sub(" ", text).strip()
    has_value = bool(re.search(r"\d|\\(?:pi|frac|sqrt|infty)|∞|π", text) or _AMOUNT_WORDS.search(plain))
    is_words = bool(re.fullmatch(r"(?:[A-Za-z][a-z'’-]{2,}\s*){1,6}[.]?|[一-鿿]{2,}", plain))
    return is_words and not has_value and not _NO_VALUE.fullmatch(plain)
