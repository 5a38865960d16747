r"""The verifier `math`: extracts the answer that a response commits to, and compares it with gold, the right answer.

The comparison tries tests, called rungs, from the cheapest to the most expensive:

    rung        gold and answer are                          decided in
    text        the same characters, once normalised         this module
    words       a choice's letter, yes and true, a phrase    `choice_letters`, `comparison.single_values`
    exact       the same rational number or function         this module (plain numbers), `identity`
    structure   the same list, set, interval, matrix, ...    `comparison`
    units       the same quantity in another unit            `comparison.single_values`
    rounding    an exact value and its rounded one           `comparison.single_values`
    numeric     constants that agree to 320 bits             `identity`
    sampled     expressions that agree at random points      `identity`
    symbolic    the same integral, limit or long sum         `worker`: sympy, in a killable process

The first rung that can decide gives the verdict. The evidence names the rung and shows how both sides were read. If
notation has several readings (`1,234`, `1/2x`, `5m`), the usual one is tried first. The verdict also depends on the
problem's text: it may list options, ask for a direction, or count in millions.

There is no score if gold cannot be read or exceeds the budget of work. An answer earns 0 if it is missing, cannot be
read, exceeds the budget, or leaves an integral to be computed where gold has none. (Without a score, a model in
training could avoid hard problems by such answers.) The reason is `unread` if the response ends with a value in an
unknown form, or if gold stands at its end but another value was extracted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, ClassVar

from gmpy2 import mpq

from truegold.verifiers.checked import checked
from truegold.verifiers.decimal_commas import with_points
from truegold.verifiers.extract import (
    GUESSED,
    Committed,
    committed_answer,
    ends_with_value,
    final_part,
    last_line,
    names_gold,
    several_values,
    without_hidden,
)
from truegold.verifiers.extract.chosen import committed_choice
from truegold.verifiers.extract.listed_options import option_texts
from truegold.verifiers.extract.repeated_question import restated_gold
from truegold.verifiers.extract.stated_names import (
    bold_beside,
    has_initials,
    named_in_predicate,
    truth_called,
    without_gloss,
    without_points,
)
from truegold.verifiers.gold import is_placeholder, without_reference
from truegold.verifiers.math import worker
from truegold.verifiers.math.choice_letters import (
    choice_and_value,
    choice_letter,
    letter_of_text,
    names_choice,
    small_choice,
    with_capital_labels,
)
from truegold.verifiers.math.comparison import compare
from truegold.verifiers.math.comparison.single_values import MAX_PHRASE_WORDS
from truegold.verifiers.math.named_functions import letters_used, may_name_function, with_named_functions
from truegold.verifiers.math.policy import (
    DEFAULT,
    MAX_GOLD_STEPS,
    MAX_STEPS,
    OPEN,
    OTHER_NUMBER,
    OTHER_STRUCTURE,
    SAME_NUMBER,
    Policy,
    Sameness,
    Spent,
    StepBudget,
    TooLarge,
    parse_policy,
    policy_for,
    seconds_left,
)
from truegold.verifiers.math.reading.answers import Unread, read_gold, read_text, simple_number
from truegold.verifiers.math.reading.chemistry import MAY_BE_CHEMISTRY, same_chemistry
from truegold.verifiers.math.reading.days_and_times import read_day
from truegold.verifiers.math.reading.lexer import MAX_CHARS
from truegold.verifiers.math.reading.normal import key_of, normal, normal_gold, normal_text, same_but_for_looks
from truegold.verifiers.math.reading.other_readings import other_readings
from truegold.verifiers.math.reading.qualifiers import MAY_BE_DIRECTED, Qualified, qualified
from truegold.verifiers.math.reading.typesetting import matching_brace
from truegold.verifiers.math.tree import (
    MAX_SHOWN_CHARS,
    BareList,
    Day,
    Group,
    Measure,
    Node,
    Num,
    Text,
    show,
    with_log_base_ten,
)
from truegold.verifiers.math.vocabulary import (
    LABELS,
    MARKS_OF_TRUTH,
    NAMED_WORDS,
    OPPOSITES,
    PLAIN_COMMANDS,
    STOP_WORDS,
)
from truegold.verifiers.options import BadOption
from truegold.verifiers.sandbox.errors import ConfigError, TruegoldError
from truegold.verifiers.verdict import NO_INFO, Reason, Verdict
from truegold.verifiers.written_numbers import plain_number, roman_number

_UNSURE = re.compile(r"\b(?:maybe|perhaps|possibly|probably|either|(?:not|un) ?sure|alternatively|guess)\b", re.I)
"""Words of doubt. If an answer in prose has such a word near its end, no value in the answer counts."""
_ANNOUNCED = frozenset({"boxed", "answer_tag", "hashes", "phrase"})
"""Forms of extraction that announce an answer. A sentence that merely ends with a number announces nothing."""
MIN_PROSE_CHARS = 200
"""An answer with more characters than this, and with many blanks, is prose around a formula."""
MAX_PROSE_CHARS = 20_000
"""Maximum length of a text that is compared. For longer texts the verdict has the reason `limit`."""
SHOWN_PLACEHOLDER = 60
"""The number of characters of a placeholder gold that the evidence shows."""
_NO_GOLD: Any = object()
"""The default of `gold`. It is not None, because a row without gold may pass None."""
_WORD_LABEL = re.compile(
    r"(?:\\(?:text|mathrm)\s?\{)?\s?((?=[A-Za-z ]{0,40}[a-z])[A-Za-z][A-Za-z ]{1,40}?)\s?\}?\s?[:=][^:=,;]+"
)
r"""A label and one value: `Tom: 4`, `\text{pH} = 3`. A list of several values does not match."""
_IDLE_LABELS = frozenset({"answer", "result", "value", "ans", "total", "final"})
"""Labels that any value may have."""
_COMMAND = re.compile(r"\\[A-Za-z]+")
_WORD = re.compile(r"(?<![A-Za-z\\])[A-Za-z]{2,20}(?![A-Za-z])|(?<=\\)m(?:ax|in)\b")
r"""A word, or the `max` of \max."""
_X_OF_Y = re.compile(r"\b([A-Za-z]{1,20}) of ([A-Za-z]{1,20})(?![A-Za-z])")
"""Two words joined by `of`: `north of east` is not `east of north`."""
_BOLD_PRODUCT = re.compile(r"\\(?:math)?bf\s*\{?\s*[A-Z]\s*\}?\s*\\(?:math)?bf\s*\{?\s*[A-Z]\b")
r"""A product of matrices: `\mathbf{A}\mathbf{B}`."""
_INNER_CAPITAL = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]")
"""Mixed case within a word, as in `pH` and `NaCl`."""
_TEXT_COMMAND = re.compile(r"\\(?:text|mathrm)\s*\{([^{}]{0,200}(?:\{[^{}]{0,20}\}[^{}]{0,200}){0,8})\}")
r"""A text command: `\mathrm{Ca(OH)_2}`, which becomes Ca(OH)_2."""
_COUNT_OF_ATOMS = re.compile(r"(?:(?<=[A-Z)\]])|(?<=[A-Z][a-z]))_(\d{1,3})")
"""The subscript of Ca(OH)_2, which becomes Ca(OH)2."""
_CHARGE = re.compile(r"(?<=[A-Za-z)\d])\^([+-])$")
"""The charge of Na^+, which becomes Na+."""
_BRACED_WORD = re.compile(r"\{\s*(\w+|[+-])\s*\}(?!\s*\{)")
"""A word or a sign alone in braces: `{max}` becomes `max`."""
_GAP = re.compile(r"\\[,;:! ]")
r"""A spacing command: `\,`."""
_WORKED = re.compile(
    r"([^\s\d(\\]?-?\d[\d,.]{0,40}(?:\s?\\?%)?) \((?:= ?)?"
    r"([^()]{0,60}(?:[/*+%-]|\\[a-z])[^()]{1,60}|(?<=% \()[\d.]{1,20}|[\d.]{1,20}\\?%)\)"
)
"""A value and its calculation: `0.68 (5,121.3 / 7,491.5)`."""
_MAY_BE_QUALIFIED = re.compile(rf"{MAY_BE_DIRECTED.pattern}|\d.*[A-Za-z}}] .*[A-Za-z]{{2}}", re.IGNORECASE)
"""A quick test for a quantity with a direction or a substance: `10 N to the left`, `146 g HCl`."""
_MAY_BE_ROMAN = frozenset("IVXLCDMivxlcdm")
_FUNCTION_MARKS = ("_", "i(", "i (", "i}", "psi")
r"""A quick test: every text that applies a named function, such as `\mathrm{Li}_2(x)`, has one of these marks."""


@checked
def equivalent(answer: str, *more: object, gold: str | None = _NO_GOLD, **policy: Any) -> Verdict:
    r"""Compare an answer with gold: `equivalent("0.5", gold="1/2").score` is 1.0.

    `answer` is the extracted answer (`committed_answer`), not the whole response. Gold is passed by keyword, because
    swapped texts would silently get other verdicts. The other keywords are the fields of `Policy`. Raises ConfigError
    for a second positional text, for a missing gold and for a wrong policy.
    """
    if more or gold is _NO_GOLD:
        raise ConfigError(
            "equivalent takes the answer first and gold by keyword.", "Type equivalent(answer, gold=gold)."
        )
    return compare_texts(answer, gold, parse_policy(policy) if policy else DEFAULT)


def compare_texts(answer: str, gold: str | None, policy: Policy, *, boxed: bool = False) -> Verdict:
    """Return the verdict on an extracted answer.

    boxed: the answer was in a box. If the box contains prose, only an announced value in it counts.
    """
    if gold is None or not gold.strip():
        return Verdict(None, Reason.GOLD_MISSING)
    if is_placeholder(gold):
        return Verdict(None, Reason.GOLD_MISSING, evidence={"placeholder": gold[:SHOWN_PLACEHOLDER]})
    if not answer.strip():
        return Verdict(0.0, Reason.NO_ANSWER)
    if answer == gold:
        return _same_text(answer, answer)
    for side, text in (("gold", gold), ("answer", answer)):
        if len(text) > MAX_PROSE_CHARS:
            return _limit(side, answer, f"{len(text)} characters, the limit is {MAX_PROSE_CHARS}")
    compare_sides = _compare_within_budget if policy.comma == "auto" else _compare_with_commas
    return compare_sides(answer, gold, policy, boxed)


def _compare_with_commas(answer: str, gold: str, policy: Policy, boxed: bool) -> Verdict:
    """Compare the answer as written, and then with points in place of its decimal commas."""
    (gold, _), policy = with_pointed_gold(gold, policy), replace(policy, comma="auto")
    verdict = _compare_within_budget(answer, gold, policy, boxed)
    pointed = with_points(answer)
    if verdict.score != 0.0 or pointed == answer:
        return verdict
    other = _compare_within_budget(pointed, gold, policy, boxed)
    return other if other.score == 1.0 else verdict


def with_pointed_gold(gold: str, policy: Policy) -> tuple[str, Policy]:
    """Return gold and its policy. Under `comma: decimal`, gold gets points in place of its decimal commas."""
    return (with_points(gold), replace(policy, comma="answers")) if policy.comma == "decimal" else (gold, policy)


def _compare_within_budget(answer: str, gold: str, policy: Policy, boxed: bool) -> Verdict:
    """Compare by one rung after another, within a budget of steps. Errors become verdicts."""
    with StepBudget():
        try:
            gold_text, answer_text = normal_gold(gold), normal_text(answer)
            verdict = _compare_unread(answer_text, gold_text, answer, gold, policy)
            return verdict if verdict is not None else _compare_read(answer_text, gold_text, answer, policy, boxed)
        except Spent:
            side = "gold" if _is_too_dear(gold, policy) else "answer"
            return _limit(side, answer, _TOO_DEAR, rung="budget")
        except TruegoldError:
            raise
        except Exception as error:
            # A bug in this code must not end a training run, and must not earn the answer a score.
            return Verdict(None, Reason.VERIFIER_ERROR, answer, {"error": f"{type(error).__name__}: {error}"})


def _is_too_dear(gold: str, policy: Policy) -> bool:
    """Tell whether gold alone, read and compared with itself, takes more than half of the budget."""
    with StepBudget(MAX_GOLD_STEPS, separate=True):
        try:
            tree = read_gold(normal_gold(gold), policy.mixed)
            if not isinstance(tree, Unread):
                compare(tree, tree, policy)
        except Spent:
            return True
        except TooLarge:
            return False
    return False


def _compare_unread(answer_text: str, gold_text: str, extracted: str, gold: str, policy: Policy) -> Verdict | None:
    """Return the verdict of the rungs that need no tree, or None if they cannot decide."""
    marks = {_AROUND_BRACKETS.sub("", text) for text in (gold, extracted)}
    are_brackets = all(map(_BRACKETS.fullmatch, marks))
    if not answer_text or are_other_ranges(gold_text, answer_text) or (are_brackets and len(marks) > 1):
        return Verdict(0.0, Reason.MISMATCH if answer_text else Reason.NO_ANSWER, extracted)
    if are_brackets or gold_text == answer_text or key_of(gold_text) == key_of(answer_text):
        return _same_text(extracted, answer_text)
    exact = policy.decimals is None and policy.tolerance is None
    if exact and (outcome := _compare_simple(gold_text, answer_text)) is not None:
        return verdict_of(outcome, extracted, gold_text, answer_text)
    if not gold_text:
        return Verdict(None, Reason.GOLD_UNPARSED, extracted, {"rung": "text", "gold": gold[:MAX_SHOWN_CHARS]})
    if same_but_for_looks(gold_text, answer_text):
        return _same_text(extracted, answer_text)
    return _compare_names(gold_text, answer_text, extracted, policy)


def are_other_ranges(gold: str, answer: str) -> bool:
    """Tell whether gold is a range, or several, and the answer has other ends: `9-11` and `(11-13)`.

    As differences both would be -2. A single number, such as -2, does not answer `9-11` either.
    """
    first, second = (
        [_RANGE.fullmatch(part.strip("()[] ")) for part in _RANGES_APART.split(text)] for text in (gold, answer)
    )
    golds, answers = ([match for match in matches if match] for matches in (first, second))
    if len(golds) < len(first):
        return False
    if len(answers) < len(second):
        low, high = _ends(golds[0])
        return len(golds) == 1 and low < high and not golds[0]["unit"] and plain_number(answer) is not None
    pairs = [[_is_other_range(gold, answer) for answer in answers] for gold in golds]
    return any(map(all, pairs)) or any(map(all, zip(*pairs, strict=True)))


def _is_other_range(first: re.Match[str], second: re.Match[str]) -> bool:
    """Tell whether two ranges have different ends. Ranges in different units differ unless they are proportional."""
    (low, high), (other_low, other_high) = map(_ends, (first, second))
    if first["unit"] == second["unit"] or not (first["unit"] and second["unit"]):
        return (low, high) != (other_low, other_high)
    return low * other_high != high * other_low


def _ends(match: re.Match[str]) -> tuple[Fraction, Fraction]:
    """Return the ends of a range. An end that is not a number is 0."""
    low, high = (plain_number(_THOUSANDS.sub("", text.strip(".,"))) for text in match.group("low", "high"))
    return low or Fraction(), high or Fraction()


def _same_roman(gold_text: str, answer_text: str) -> bool | None:
    """Tell whether a Roman numeral equals the other side: XIV equals 14 and xiv, but not XVI.

    Return None if neither side is a Roman numeral, and for letters that may name segments, such as CD and DC.
    """
    gold, answer = roman_number(gold_text), roman_number(answer_text)
    if gold is None and answer is None:
        return None
    if gold is None or answer is None:
        digits = simple_number(gold_text if gold is None else answer_text)
        return True if digits is not None and digits.value == (gold or answer) else None
    if gold == answer and gold_text.isupper():
        return True
    return gold == answer if set(gold_text.upper()) <= {"I", "V", "X"} else None


def _compare_simple(gold_text: str, answer_text: str) -> Sameness | None:
    """Compare two plain numbers. Return None if a side is not a number, or if one may be the other rounded."""
    gold = simple_number(gold_text)
    answer = simple_number(answer_text) if gold is not None else None
    if gold is None or answer is None:
        return None
    if gold.value == answer.value:
        return SAME_NUMBER
    return OTHER_NUMBER if gold.decimals is None and answer.decimals is None else None


def _compare_names(gold_text: str, answer_text: str, extracted: str, policy: Policy) -> Verdict | None:
    """Compare with a gold that is a name, or return None for other golds.

    Names are formulas of chemistry, Roman numerals, letters of options, and quantities with a direction or substance.
    """
    is_same = same_chemistry(gold_text, answer_text) if MAY_BE_CHEMISTRY.search(gold_text) is not None else None
    if is_same is None and not _MAY_BE_ROMAN.isdisjoint(gold_text[-1:] + answer_text[-1:]):
        is_same = _same_roman(gold_text, answer_text)
    if is_same is not None:
        return verdict_of(Sameness(is_same, "words"), extracted, gold_text, answer_text)
    if (letter := choice_letter(gold_text)) is not None:
        return _compare_with_letter(letter, answer_text, extracted, policy, gold_text)
    may_be_qualified = len(gold_text) < MIN_PROSE_CHARS and _MAY_BE_QUALIFIED.search(gold_text) is not None
    if may_be_qualified and (named := qualified(gold_text)) is not None:
        return _compare_with_qualified(named, answer_text, extracted, policy)
    choice = choice_and_value(gold_text)
    return None if choice is None else _compare_with_letter_and_value(*choice, answer_text, extracted, policy)


def _compare_with_qualified(gold: Qualified, answer_text: str, extracted: str, policy: Policy) -> Verdict | None:
    """Compare with a gold like `10 N to the left` or `146 g HCl`. The answer may omit the direction or substance."""
    answer = qualified(answer_text) or Qualified(answer_text, None, frozenset())
    has_other = (gold.direction is not None and answer.direction not in (None, gold.direction)) or (
        gold.substance and answer.substance and gold.substance.isdisjoint(answer.substance)
    )
    # A gold of `20 % up` needs its direction: `20 %` may be down.
    is_left_out = gold.direction is not None and answer.direction is None
    is_unclear = is_left_out and MAY_BE_DIRECTED.search(answer_text) is not None
    lacks_sign = is_left_out and "%" in gold.quantity
    if has_other or is_unclear or lacks_sign or (gold.quantity and not answer.quantity):
        return verdict_of(Sameness(False, "words"), extracted, str(gold.direction), answer_text[:MAX_SHOWN_CHARS])
    if not gold.quantity:
        return None if answer.quantity else _same_text(extracted, answer_text)
    unread = _compare_unread(answer.quantity, gold.quantity, extracted, gold.quantity, policy)
    return (
        unread if unread is not None else _compare_read(answer.quantity, gold.quantity, extracted, policy, boxed=True)
    )


def _compare_with_letter(
    letter: str, answer_text: str, extracted: str, policy: Policy, gold_text: str
) -> Verdict | None:
    """Compare with the letter of an option. Return None if the answer names no option and gold is a bare letter."""
    named = names_choice(letter, answer_text, policy.options, partial(same_as_option, policy))
    if named is None and not gold_text.endswith(")"):
        return None
    return verdict_of(Sameness(named or False, "words"), extracted, letter, answer_text[:MAX_SHOWN_CHARS])


def _compare_with_letter_and_value(
    letter: str, value: str, answer_text: str, extracted: str, policy: Policy
) -> Verdict | None:
    """Compare with `(C) 42`. The letter, the value or both are right; the letter with another value is wrong."""
    answer_letter, answer_value = choice_and_value(answer_text) or (letter, answer_text)
    verdict = _compare_with_letter(letter, answer_text, extracted, policy, letter)
    is_contradicted = any(map(str.isdigit, answer_text)) and not names_gold(answer_text, value)
    if answer_letter != letter or (verdict is not None and is_contradicted):
        return verdict_of(Sameness(False, "words"), extracted, letter, answer_text[:MAX_SHOWN_CHARS])
    if verdict is not None and answer_value == answer_text:
        return verdict
    return _compare_parts(answer_value, value, extracted, policy)


def _compare_parts(answer: str, gold: str, extracted: str, policy: Policy) -> Verdict:
    """Compare two normalised texts by value."""
    unread = _compare_unread(answer, gold, extracted, gold, policy)
    return unread if unread is not None else _compare_read(answer, gold, extracted, policy, boxed=True)


def same_as_option(policy: Policy, option: str, answer_text: str) -> bool:
    """Tell whether a normalised answer has the value of a normalised option."""
    option_tree, answer_tree = read_gold(option, policy.mixed), read_text(answer_text, policy.mixed)
    if isinstance(option_tree, Unread) or isinstance(answer_tree, Unread):
        return False
    try:
        return compare(option_tree, answer_tree, policy).same is True
    except TooLarge:
        return False


def _compare_read(answer_text: str, gold_text: str, extracted: str, policy: Policy, boxed: bool) -> Verdict:
    """Compare the trees of both texts. If the answer is prose, compare the formula or number that it commits to."""
    if "(B)" in answer_text and "(A)" in answer_text and "(B)" not in gold_text:
        # The answer lists the options. Read as a product, `(A) 1 (B) 0` would be 0.
        return Verdict(0.0, Reason.HEDGED, extracted, {"rung": "words", "gold": gold_text[:MAX_SHOWN_CHARS]})
    if any(map(f"{gold_text} {answer_text}".__contains__, _FUNCTION_MARKS)):
        letters = letters_used(gold_text)
        if letters or may_name_function(gold_text) or may_name_function(answer_text):
            gold_text, answer_text = (with_named_functions(text, letters) for text in (gold_text, answer_text))
    gold_tree = read_gold(gold_text, policy.mixed)
    if isinstance(gold_tree, Unread):
        return _compare_with_unread_gold(gold_tree, answer_text, gold_text, extracted)
    is_long = len(answer_text) > MIN_PROSE_CHARS and answer_text.count(" ") > MIN_PROSE_CHARS // 10
    if is_long and (part := _committed_part(extracted, gold_tree, boxed)) is not None:
        return _compare_tree(gold_tree, part, gold_text, extracted, policy)[0]
    verdict, may_be_prose = _compare_tree(gold_tree, answer_text, gold_text, extracted, policy)
    if verdict.score != 1.0 and answer_text.endswith(")") and (worked := _WORKED.fullmatch(answer_text)) is not None:
        restated = f"{''.join(c for c in worked[2] if c.isascii())} \\approx {worked[1]}"
        verdict = _compare_tree(gold_tree, restated, gold_text, extracted, policy)[0]
    if verdict.score == 1.0 or not may_be_prose:
        return verdict
    if (part := _committed_part(extracted, gold_tree, boxed)) is None or part == answer_text:
        return verdict
    return _compare_tree(gold_tree, part, gold_text, extracted, policy)[0]


def _compare_with_unread_gold(refused: Unread, answer_text: str, gold_text: str, extracted: str) -> Verdict:
    if refused.too_large:
        return _limit("gold", extracted, refused.why)
    if _loose_key(gold_text) == _loose_key(answer_text):
        return _same_text(extracted, answer_text)
    evidence = {"rung": "read", "gold": gold_text[:MAX_SHOWN_CHARS], "unread": refused.why[:MAX_SHOWN_CHARS]}
    return Verdict(None, Reason.GOLD_UNPARSED, extracted, evidence)


def _loose_key(text: str) -> str:
    """Return a key that is the same for two spellings of a statement.

    Used for golds that have no tree, such as statements with quantifiers. Everything that may have a meaning stays in
    the key: case (Co is not CO), decimal points, primes.
    """
    text = _TEXT_COMMAND.sub(r"\1", text) if "{" in text else text
    text = _COMMAND.sub(lambda match: f"{PLAIN_COMMANDS.get(match[0], match[0])} ", text[:MAX_CHARS])
    text = _BRACED_WORD.sub(r"\1", _GAP.sub("", text)).replace(": ", "=").replace(";", ",").strip()
    if text.startswith("{") and matching_brace(text, 0) == len(text) - 1:
        text = text[1:-1]
    text = _CHARGE.sub(r"\1", _COUNT_OF_ATOMS.sub(r"\1", text.removeprefix("{}")))
    return "".join(c for c in text if not c.isspace() and c not in "\\$~")


def _committed_part(answer: str, gold_tree: Node, boxed: bool) -> str | None:
    """Return the formula or number that a sentence commits to, normalised, or None if it commits to none."""
    if _UNSURE.search(answer[-MIN_PROSE_CHARS:]):
        return None
    committed = committed_answer(answer, several=count_elements(gold_tree))
    if committed is None or (boxed and committed.form not in _ANNOUNCED):
        return None
    return normal_text(committed.text)


def _compare_tree(gold: Node, answer_text: str, gold_text: str, extracted: str, policy: Policy) -> tuple[Verdict, bool]:
    """Return the verdict on one text, and whether the text may be prose around a formula."""
    answer_tree = read_text(answer_text, policy.mixed)
    if isinstance(answer_tree, Unread):
        if answer_tree.too_large:
            return _limit("answer", extracted, answer_tree.why), len(answer_text) > MAX_CHARS
        shown_answer, why = answer_text[:MAX_SHOWN_CHARS], answer_tree.why[:MAX_SHOWN_CHARS]
        evidence = {"rung": "read", "gold": show(gold), "answer": shown_answer, "unread": why}
        return Verdict(0.0, Reason.UNREAD, extracted, evidence), True
    verdict = _climb(gold, answer_tree, (gold_text, answer_text), extracted, policy)
    has_words = "\\boxed" in answer_text or _holds_words(answer_tree)
    return verdict, has_words and not (isinstance(gold, Text) and isinstance(answer_tree, Text))


def _holds_words(tree: Node) -> bool:
    if isinstance(tree, BareList):
        return any(isinstance(element, Text) for element in tree.elements)
    return isinstance(tree, Text)


def _climb(gold_tree: Node, answer_tree: Node, texts: tuple[str, str], extracted: str, policy: Policy) -> Verdict:
    """Compare two trees. If they differ, compare other readings of their texts; if nothing decides, ask sympy."""
    if policy.log == "ten":
        gold_tree, answer_tree = with_log_base_ten(gold_tree), with_log_base_ten(answer_tree)
    if policy.factors == "auto" and "bf" in texts[0] and _BOLD_PRODUCT.search(texts[0]):
        policy = replace(policy, factors="ordered")
    shown = show(gold_tree), show(answer_tree)
    try:
        outcome = compare(gold_tree, answer_tree, policy)
        if not outcome.same:
            for other_gold, other_answer in other_readings(gold_tree, answer_tree, *texts, policy):
                other_outcome = compare(other_gold, other_answer, policy)
                if other_outcome.same:
                    outcome, shown = other_outcome, (show(other_gold), show(other_answer))
                    break
        if outcome.same and _differ_in_meaning(*texts, outcome.rung == "words"):
            outcome = OTHER_STRUCTURE
        elif outcome.same and _names_other(*texts):
            outcome = OPEN
    except TooLarge as error:
        evidence = {"rung": "numeric", "error": str(error), "gold": shown[0], "answer": shown[1]}
        return Verdict(0.0, Reason.LIMIT, extracted, evidence)
    if outcome.same is None and worker.might_know(gold_tree, answer_tree):
        return _ask_sympy(gold_tree, answer_tree, extracted, shown)
    if outcome.same is None and worker.is_unfinished(answer_tree):
        # The answer is unfinished, and the evidence says so.
        return _limit("answer", extracted, "the answer has an integral, a limit or a long sum that is not evaluated")
    return verdict_of(outcome, extracted, *shown)


def _differ_in_meaning(gold_text: str, answer_text: str, are_words: bool) -> bool:
    """Tell whether texts with equal trees differ in meaning: `north` and `south`, `CO` and `Co`."""
    gold_words, answer_words = _WORD.findall(gold_text), _WORD.findall(answer_text)
    if gold_words == answer_words:
        return False
    turned = {(second.lower(), first.lower()) for first, second in _X_OF_Y.findall(gold_text)}
    if any((first.lower(), second.lower()) in turned for first, second in _X_OF_Y.findall(answer_text)):
        return True
    gold_sides = {OPPOSITES[word.lower()] for word in gold_words if word.lower() in OPPOSITES}
    answer_sides = {OPPOSITES[word.lower()] for word in answer_words if word.lower() in OPPOSITES}
    if any((axis, -side) in answer_sides and (axis, side) not in answer_sides for axis, side in gold_sides):
        return True
    spelled = {word.lower(): word for word in answer_words}
    return are_words and any(_is_other_symbol(word, spelled.get(word.lower(), word)) for word in gold_words)


def _names_other(gold_text: str, answer_text: str) -> bool:
    """Tell whether the sides give their only value different names: pH = 3 and pOH = 3, Tom: 4 and Bob: 4."""
    names: list[set[str]] = []
    for text in (gold_text, answer_text):
        if (match := _WORD_LABEL.fullmatch(text)) is None:
            return False
        words = [LABELS.get(word, word) for word in match[1].lower().split() if word not in STOP_WORDS]
        names.append(set(words) - _IDLE_LABELS)
    return all(names) and names[0].isdisjoint(names[1])


def _is_other_symbol(word: str, other: str) -> bool:
    """Tell whether two symbols differ in meaning by their case: CO and Co, the genes AA and Aa (but not Aa and aA)."""
    if word == other or word.lower() in NAMED_WORDS:
        return False
    pairs, other_pairs = ([sorted(side[i : i + 2]) for i in range(0, len(side), 2)] for side in (word, other))
    if all(pair[0].lower() == pair[-1].lower() for pair in pairs) and len(word) % 2 == 0:
        return pairs != other_pairs
    if len(word) == len("Co"):
        return word.lower() not in (word, other)
    return _INNER_CAPITAL.search(f"{word} {other}") is not None


def _ask_sympy(gold_tree: Node, answer_tree: Node, extracted: str, shown: tuple[str, str]) -> Verdict:
    reply = worker.compare(gold_tree, answer_tree, worker.CPU_S + seconds_left())
    score = {Reason.MATCH: 1.0, Reason.MISMATCH: 0.0}.get(reply.reason)
    evidence = {"rung": "symbolic", "gold": shown[0], "answer": shown[1], **reply.evidence}
    return Verdict(score, reply.reason, extracted, evidence)


def verdict_of(outcome: Sameness, extracted: str, shown_gold: str, shown_answer: str) -> Verdict:
    """Return the verdict for the outcome of a comparison."""
    evidence = {"rung": outcome.rung, "gold": shown_gold, "answer": shown_answer}
    if outcome.same:
        return Verdict(1.0, Reason.MATCH, extracted, evidence)
    if outcome.same is None and outcome.rung == "words":
        # Rules cannot compare the meaning of two sentences.
        return Verdict(None, Reason.GOLD_UNPARSED, extracted, evidence)
    if outcome.same is None and outcome.rung in ("open", "units"):
        # The values agree, but the units are unknown words: `5 frobs` and `5 glorps`.
        return Verdict(None, Reason.DECLINED, extracted, evidence)
    return Verdict(0.0, Reason.HEDGED if outcome.hedged else Reason.MISMATCH, extracted, evidence)


def _same_text(extracted: str, text: str) -> Verdict:
    shown = text[:MAX_SHOWN_CHARS]
    return Verdict(1.0, Reason.MATCH, extracted, {"rung": "text", "gold": shown, "answer": shown})


def _limit(side: str, extracted: str, error: str, rung: str = "read") -> Verdict:
    score = None if side == "gold" else 0.0
    return Verdict(score, Reason.LIMIT, extracted[:MAX_PROSE_CHARS], {"rung": rung, "side": side, "error": error})


def count_elements(tree: Node) -> int:
    """Return the number of elements of a list or a set; 0 for other trees."""
    if isinstance(tree, BareList) or (isinstance(tree, Group) and tree.opening == "{"):
        return max(len(tree.elements), 1)
    return 0


REMEMBERED_GOLDS = 4_096
"""The number of golds whose kind is cached."""
_IN_WORDS = re.compile(r"(?=.*(?:[a-zà-ÿа-я]{2}|[一-鿿぀-ヿ가-힣]{2}))[^\W\d_][^\d\\$^_=+*/<>|(){}\[\]]*")
"""A gold that consists of words, without a formula."""
_RANGE = re.compile(
    r"(?P<sign>[^\w\s()\[\]{}+*/^=<>|.,–—-]\s?)?(?P<low>\d[\d.,]*)\s?[-–—]\s?(?(sign)(?:(?P=sign))?)(?P<high>\d[\d.,]*)"
    r"(?P<unit>(?:\s?[^\W\d_][^\d+*/^=]*|\s?%)?)"
)
"""A range of numbers, with a unit: `9-11 mm`, `$5-10`."""
_TOO_DEAR = f"a verdict may cost {MAX_STEPS} steps at most"
_RANGES_APART = re.compile(r"\s*(?:\b(?:or|and)\b|;|,\s)\s*")
_THOUSANDS = re.compile(r",(?=\d{3}(?!\d))")
_TEXT = re.compile(r"\\(?:text|textbf|textrm|mathrm)\b")
_WORD_KEY = re.compile(r"[^\W_]+")
"""A word or a number, for comparing texts word by word."""
_VERB_ENDING = re.compile(
    r"(?<=[一-鿿]{2})(?:し(?:た|て(?:いる|います)|ました|ます)|する|です|でした|だ|だった|である|了)[。.]?$"
    r"|(?<=[가-힣]{2})(?:했다|했습니다|하였다|하였습니다|한다|합니다|입니다|이다)[。.]?$"
)
"""The ending of a verb that is made of a noun. The answer `減少した` means its noun, 減少."""
_MAY_BE_CHOICE = re.compile(r"[\[$\s]*(?:\\[a-z]{4,6}\s*\{\s*)*\(?\s*(?:\\[a-z]{4,6}\s*\{\s*)*[A-J](?![A-Za-z])")
r"""The start of a gold that may be the letter of an option: `(B)`, `\text{B}`."""
RESPONSES = Policy(percent="either")
"""The default policy for whole responses: `25%` answers a gold of 25."""
_SCALE = re.compile(
    r"\b(?:in|of)\s+(?:the\s+)?(?:nearest\s+)?(?:(?:US\s?D|USD|US\$|dollars?|euros?|EUR|GBP|RMB|INR|JPY|[$€£¥₹])\s*(?:in\s+)?)?"
    r"\(?(thousand|million|billion|trillion)s\b|[(（]\s*(?:\$|USD|US\$)?\s*(thousand|million|billion|trillion)s?\s*[)）]"
    r"|(?:单位|単位|以)\s*[:：]?\s*(百万|千万|万|亿|千|億|兆)|[(（]\s*(百万|千|億|兆)円\s*[)）]"
    r"|\bhow many\s+(dozen)s?\b",
    re.IGNORECASE,
)
"""A problem that asks for dozens, thousands or millions: `in USD millions`. `$5 million` then answers a gold of 5."""
_DOZEN = re.compile(r"\bdozen\b", re.IGNORECASE)
"""An answer that is read as twelve times its number, `7 dozen eggs`. A bare `84` is not read in dozens."""
_SCALES = {"dozen": 12, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12,
           "千": 10**3, "万": 10**4, "百万": 10**6, "千万": 10**7, "亿": 10**8, "億": 10**8, "兆": 10**12}  # fmt: skip
"""Maps a word of `_SCALE` to its number."""
_BEHIND_NUMBER = re.compile(r"(?<=\d)[^\d]+$")
_LAYOUT_BUT_LINES = re.compile(
    r"\\(?:begin|end)\{(?:align\w*|gather\w*|split)\*?\}|&|\\text\s?\{[\s.]*\}|\$\$|(?<!\\)\\[\[\]]"
)
_LAYOUT = re.compile(rf"{_LAYOUT_BUT_LINES.pattern}|\\\\")
"""Commands that lay out a displayed formula, and its line breaks."""
_GROUP = re.compile(r"\\begin\{(array|[bpv]?matrix)\}.*?\\end\{\1\}|[({\[][^(){}\[\]]*[)}\]]", re.DOTALL)
_SEVERAL_EQUATIONS = re.compile(
    r"[,;](?!\d{3})\s*\S|\\q?quad|\\text|\\\\[\s&]*(?![\s&]|=|[-+]|\\(?:approx|cong|simeq|times|cdot|end)|$)"
)
"""A sign of several equations: a comma, words, or a new line that does not begin with `=` or another operator."""
_UNEQUAL = re.compile(
    r"[<>≤≥≠]|\\(?:neq?|[lg](?:eq?|t))(?![a-z])|\b(?:not|never|wrong|incorrect|false|if|suppose|assume)\b",
    re.IGNORECASE,
)
_EQUALS = re.compile(r"=|\\(?:approx|cong|simeq)\b")
_BRACKETS = re.compile(r"[()\[\]{}<>]+")
"""An answer of brackets alone, such as `})}`. Two such answers must be the same text, apart from `_AROUND_BRACKETS`."""
_AROUND_BRACKETS = re.compile(r"[\s`'\",$.]|\\(?=[{}])")
_RATE_POINTS = re.compile(r"(?:率|\bpercent|\brate|\bmargin)[^。?？]*(?:何ポイント|\bpoints)", re.IGNORECASE)
"""A problem that asks by how many points a rate changes. `3 points` is then read as 3%."""
_POINTS = re.compile(r"(?<=\d)[%％]?(?:ポイント| points?)$")
MAX_DECIMALS = 16
"""Maximum number of decimals in a scaled number."""
_ASKS_DIRECTION = re.compile(r"\b(?:direction|which way|vectors?|velocity|displacement)\b", re.IGNORECASE)
_TRUTHS = (("对", "错"), ("正确", "错误"), ("是", "否"))
"""Chinese words for true and false, which are the options of a problem that lists none."""
_YES_AND_NO = ("yes", "no", "是", "否", "是的", "不是")
"""Golds for which `The statement is true.` is not read as yes: if the problem asks "Is it wrong?", it means no."""
_ASKS_NAME = re.compile(
    r"\b(?:symbols?|formulas?|formulae|names?|named|called|stands? for|denoted?)\b|符号|化学式|分子式|名称",
    re.IGNORECASE,
)
"""A problem that asks for the name of a substance or for its formula."""


@dataclass(frozen=True, slots=True)
class MathVerifier:
    """Compares mathematical answers by value: 1/2, 0.5 and \\frac{2}{4} are the same.

    The default policy differs from that of `equivalent` in one point: `25%` answers a gold of 25. If the problem is
    known, this holds only if it mentions percentages.
    """

    options: ClassVar[tuple[str, ...]] = tuple(option.name for option in fields(Policy))

    policy: Policy = field(default=RESPONSES)
    """The policy of every row. The options in a row's `info` override it."""
    name: str = "math"
    version: str = "15"

    def __call__(
        self, response: str, gold: str | None, *, problem: str | None = None, info: Mapping[str, Any] = NO_INFO
    ) -> Verdict:
        """Return the verdict on the answer that the response commits to. A wrong option in `info` gives no score."""
        try:
            policy = parse_policy({**self.policy.changed_options(), **info}) if info else self.policy
        except ConfigError as error:
            return Verdict(None, Reason.VERIFIER_ERROR, evidence={"error": str(error)})
        if gold:
            gold, policy = with_pointed_gold(gold, policy)
        is_name = gold is not None and "." in gold and not policy.options and has_initials(gold, problem)
        if gold and is_name and not option_texts(problem or ""):
            gold, response = without_points(gold), without_points(response)
            return _as_name(self._judge(response, gold, problem, policy, info), gold)
        return self._judge(response, gold, problem, policy, info)

    def _judge(
        self, response: str, gold: str | None, problem: str | None, policy: Policy, info: Mapping[str, Any]
    ) -> Verdict:
        if problem:
            policy = policy_for(problem, gold, policy, info)
            if "options" not in info and _is_choice(gold):
                policy = replace(policy, options=option_texts(problem))
        response = without_hidden(response)
        try:
            with StepBudget():
                verdict = _judge_response(response, gold, problem, policy)
                if verdict.reason in (Reason.UNREAD, Reason.NO_ANSWER) and gold:
                    verdict = _judge_words(response, gold, problem, policy, verdict)
                is_open = verdict.score == 0.0 and verdict.evidence.get("form") in (None, *GUESSED)
                if is_open and gold and problem and (restated := _restated(response, gold, problem)) is not None:
                    verdict = restated
                if verdict.score != 1.0 and gold and (letter := small_choice(gold, problem)) is not None:
                    verdict = _judge_response(with_capital_labels(response), letter, problem, policy)
                elif verdict.score is not None and gold and (listed := _options_of(gold, problem, policy)):
                    verdict = _judge_option(response, gold, problem, replace(policy, options=listed), verdict)
                is_gold_at_fault = verdict.score == 0.0 and gold is not None and is_sentence(gold)
        except Spent:
            return _limit("answer", response, _TOO_DEAR, rung="budget")
        return replace(verdict, score=None, reason=Reason.GOLD_UNPARSED) if is_gold_at_fault else verdict

    def check_options(self, info: Mapping[str, Any]) -> None:
        """Raise BadOption for an unknown option or a wrong value."""
        try:
            parse_policy(info)
        except ConfigError as error:
            raise BadOption(error.message.removeprefix("math verifier: ").removesuffix(".")) from error

    def gold_response(self, gold: str, solution: str | None) -> str | None:
        r"""Return a perfect response for `gold`: gold in a `\boxed`."""
        return f"\\boxed{{{without_reference(gold)}}}"


def _judge_response(response: str, gold: str | None, problem: str | None, policy: Policy) -> Verdict:
    """Extract the answer of a response, and return the verdict on it."""
    if _is_choice(gold):
        committed = committed_choice(response, policy.options, problem=problem)
    else:
        committed = committed_answer(response, several=count_answers(gold), problem=problem)
    if committed is None:
        verdict = compare_texts("", gold, policy)
        is_unread = ends_with_value(response, problem) or names_gold(response, gold, problem)
        return replace(verdict, reason=Reason.UNREAD) if verdict.score == 0.0 and is_unread else verdict
    verdict = compare_texts(committed.text, gold, policy, boxed=committed.form == "boxed")
    evades = (_lacks_direction, _repeats_the_other_name)
    if verdict.score == 1.0 and problem and gold and any(test(gold, committed.text, problem) for test in evades):
        verdict = replace(verdict, score=0.0, reason=Reason.MISMATCH)
    elif verdict.reason in (Reason.MISMATCH, Reason.DECLINED) and problem and gold:
        verdict = _compare_as_asked(committed.text, gold, problem, policy, verdict)
    if verdict.score == 0.0 and (side := _last_side(committed.text, verdict)) is not None:
        by_side = compare_texts(side, gold, policy)
        verdict = by_side if by_side.passed else verdict
    evidence = {**verdict.evidence, "form": committed.form}
    verdict = Verdict(verdict.score, verdict.reason, verdict.extracted, evidence)
    return replace(verdict, reason=Reason.UNREAD) if _is_misread(verdict, response, gold) else verdict


@lru_cache(maxsize=REMEMBERED_GOLDS)
def count_answers(gold: str | None) -> int:
    """Return the number of items if gold is a list or a set, else 0. An answer may give each item in its own box."""
    if gold is None or len(gold) > MAX_PROSE_CHARS:
        return 0
    with StepBudget(separate=True):
        try:
            tree = read_gold(normal_gold(gold), DEFAULT.mixed)
        except Spent:
            return 0
    return 0 if isinstance(tree, Unread) else count_elements(tree)


def _lacks_direction(gold: str, answer: str, problem: str) -> bool:
    """Tell whether the answer lacks a direction that gold names and the problem asks for."""
    if MAY_BE_DIRECTED.search(gold) is None or _ASKS_DIRECTION.search(problem) is None:
        return False
    named, answered = qualified(normal_gold(gold)), qualified(normal_text(answer))
    is_named = named is not None and named.direction is not None
    return is_named and (answered is None or answered.direction is None)


def _repeats_the_other_name(gold: str, answer: str, problem: str) -> bool:
    """Tell whether an answer is the name of a substance where its formula is asked for, or the formula for the name.

    The problem must have the answer: "What is the formula of water?", answer `water`, gold `H2O`.
    """
    if _ASKS_NAME.search(problem) is None:
        return False
    gold, answer = normal_gold(gold), normal_text(answer)
    if _words_of(gold) == _words_of(answer) or not same_chemistry(gold, answer):
        return False
    repeated = re.search(rf"(?<![^\W_]){re.escape(answer)}(?![^\W_])", problem, re.IGNORECASE if len(answer) > 3 else 0)
    return repeated is not None and gold.casefold() not in problem.casefold()


def _judge_words(response: str, gold: str, problem: str | None, policy: Policy, verdict: Verdict) -> Verdict:
    """Return the verdict on words that stand alone, or else `verdict`.

    The words may be in bold, the whole response, or the extracted text. They may also stand after the verb of the last
    sentence: `The statement is false.`
    """
    extracted = Committed(verdict.extracted, verdict.evidence.get("form", "")) if verdict.extracted else None
    in_bold, whole = bold_beside(response, extracted), final_part(response).strip()
    mark = whole if whole.strip("\ufe0f") in MARKS_OF_TRUTH else None
    called = truth_called(response) if gold.strip().casefold() not in _YES_AND_NO else None
    for kind, alone in (("bold", in_bold), ("whole_response", mark), ("predicate", called)):
        if alone is not None and (by_meaning := compare_texts(alone, gold, policy)).passed:
            return replace(by_meaning, evidence={**by_meaning.evidence, "form": kind})
    if _IN_WORDS.fullmatch(gold) is None or len(gold) > MAX_PROSE_CHARS:
        return verdict
    forms = {"bold": in_bold, "whole_response": whole, verdict.evidence.get("form"): verdict.extracted}
    forms["predicate"] = named_in_predicate(response, problem)
    gold_words = _words_of(gold)
    for form, text in forms.items():
        if not text or text[-1] in "?？":
            continue
        if _words_of(without_gloss(text[: 2 * MAX_PROSE_CHARS].rstrip(".。"))) == gold_words:
            return Verdict(1.0, Reason.MATCH, text, {"form": form, "rung": "words"})
    return verdict


def _restated(response: str, gold: str, problem: str) -> Verdict | None:
    """Return the verdict on a response that repeats the problem as a sentence with gold in it. Otherwise None."""
    if len(gold) > MIN_PROSE_CHARS or not any(map(str.isalpha, gold)):
        return None
    restated = restated_gold(response, gold, problem, partial(_is_day, read_day(normal_gold(gold))))
    return None if restated is None else Verdict(1.0, Reason.MATCH, restated, {"form": "restated", "rung": "words"})


def _is_day(day: Day | None, text: str) -> bool:
    """Tell whether a text names the same day, with its year if that is given."""
    if day is None or (other := read_day(normal_text(text))) is None:
        return False
    return (day.year, day.month, day.day) == (other.year, other.month, other.day)


def _words_of(text: str) -> list[str]:
    """Return the words of a text in lower case, without an article before them."""
    words = _WORD_KEY.findall(_VERB_ENDING.sub("", text.casefold()))
    return words[1:] if len(words) > 1 and words[0] in ("the", "a", "an") else words


def _as_name(verdict: Verdict, gold: str) -> Verdict:
    """Return the verdict on a name with initials, whose order counts: H. D. Rao is not D. H. Rao."""
    is_other = "".join(_words_of(_TEXT.sub(" ", verdict.extracted or ""))) != "".join(_words_of(gold))
    if not is_other and verdict.evidence.get("form") == "boxed":
        return replace(verdict, score=1.0, reason=Reason.MATCH)
    is_wrong = verdict.reason is Reason.DECLINED or (verdict.score == 1.0 and is_other)
    return replace(verdict, score=0.0, reason=Reason.MISMATCH) if is_wrong else verdict


def _options_of(gold: str, problem: str | None, policy: Policy) -> tuple[str, ...]:
    """Return the options of the policy, or those that the problem lists, or 对 and 错 if gold is one of these."""
    return policy.options or option_texts(problem or "") or next((pair for pair in _TRUTHS if gold.strip() in pair), ())


def _judge_option(response: str, gold: str, problem: str | None, policy: Policy, verdict: Verdict) -> Verdict:
    """Return the verdict on a response that may choose the option with gold as its text by the option's letter.

    verdict: the verdict on the value of the response. It is returned if the response chooses no letter, if gold is
    itself a letter, or if no option has gold as its text. A letter and a value of different options are a hedge.
    """
    if _is_choice(gold) or len(gold) > MAX_PROSE_CHARS:
        return verdict
    is_same = partial(same_as_option, policy)
    if (letter := letter_of_text(normal_gold(gold), policy.options, is_same)) is None:
        return verdict
    if verdict.score == 1.0:
        choice = committed_choice(response, policy.options, problem=problem)
        text = normal(choice.text) if choice is not None and choice.form != "option" else ""
        other = choice_letter(text) or (choice_and_value(text) or [None])[0]
        is_hedge = other is not None and other != letter
    else:
        chosen = _judge_response(response, letter, problem, policy)
        value = letter_of_text(normal_text(verdict.extracted or ""), policy.options, is_same)
        is_hedge = chosen.score == 1.0 and value not in (None, letter)
        verdict = chosen if chosen.score == 1.0 else verdict
    return replace(verdict, score=0.0, reason=Reason.HEDGED) if is_hedge else verdict


def _last_side(text: str, verdict: Verdict) -> str | None:
    """Return the last side of a displayed calculation: 5 J for `$$E = \\int F dx = 5 J$$`.

    Return None for other texts, for several equations, and for a calculation that can be read and has another number.
    """
    if not text.startswith(("$$", "\\[")) or _EQUALS.search(text) is None:
        return None
    if verdict.reason is Reason.HEDGED and "\\" not in text.strip("$\\[]"):
        return None
    outside, counted = _LAYOUT_BUT_LINES.sub(" ", text), 1
    while counted:
        outside, counted = _GROUP.subn("", outside)
    if _SEVERAL_EQUATIONS.search(outside.strip(" .,")) or _UNEQUAL.search(outside):
        return None
    *sides, last = (side.strip(" .,;") for side in _EQUALS.split(_LAYOUT.sub(" ", text)))
    if verdict.reason is not Reason.UNREAD and any(_has_value(side) for side in sides):
        return None
    return last if all(last.count(opening) == last.count(closing) for opening, closing in ("{}", "()", "[]")) else None


def _has_value(text: str) -> bool:
    return not any(map(str.isalpha, text.replace("\\times", ""))) and any(map(str.isdigit, text))


def _compare_as_asked(answer: str, gold: str, problem: str, policy: Policy, verdict: Verdict) -> Verdict:
    """Compare in the unit that the problem asks for. Return `verdict` without such a unit, or for a wrong answer.

    problem                 gold               right answer
    in USD millions         32780              $32.78 billion
    in USD millions         $32,780 million    32780
    points of a rate        3 points           3%
    """
    if verdict.reason is Reason.DECLINED:
        if _RATE_POINTS.search(problem) is None:
            return verdict
        answer, gold = _POINTS.sub("%", answer), _POINTS.sub("%", gold)
    elif (asked := _SCALE.search(problem)) is None:
        return verdict
    else:
        word, behind = asked[asked.lastindex or 0].lower(), _BEHIND_NUMBER.search(gold)
        if (counted_gold := simple_number(normal_gold(gold))) is not None:
            return _compare_scaled(answer, counted_gold, _SCALES[word], policy, verdict)
        if behind is None or word not in behind[0].lower() or simple_number(normal_text(answer)) is None:
            return verdict
        answer += behind[0]
    same = compare_texts(answer, gold, policy)
    return same if same.passed else verdict


def _compare_scaled(answer: str, gold: Num, scale: int, policy: Policy, verdict: Verdict) -> Verdict:
    """Compare with a gold that counts thousands or millions. Return `verdict` if the answer is wrong."""
    tree = read_text(normal_text(answer), policy.mixed)
    value = tree.value if isinstance(tree, Measure) else tree
    if not isinstance(value, Num) or (scale == _SCALES["dozen"] and not _DOZEN.search(answer)):
        return verdict
    counted = _in_full(value.value / scale)
    is_money = isinstance(tree, Measure) and tree.unit.is_money
    outcome = compare(
        gold, replace(tree, value=counted) if isinstance(tree, Measure) and not is_money else counted, policy
    )
    return verdict_of(outcome, answer, show(gold), f"{show(tree)} / {scale}") if outcome.same else verdict


def _in_full(value: mpq) -> Num:
    """Return a fraction as a decimal with all its digits: 302.578 for 302578/1000."""
    decimals = next((d for d in range(MAX_DECIMALS) if (value * 10**d).denominator == 1), 0)
    return Num(value, decimals or None)


def is_sentence(gold: str) -> bool:
    """Tell whether gold is a sentence. A right answer may be worded differently, so a mismatch has no score."""
    if gold.count(" ") < MAX_PHRASE_WORDS or len(gold) > MAX_PROSE_CHARS:
        return False
    try:
        if qualified(text := normal_gold(gold)) is not None:
            return False
        tree = read_gold(text, DEFAULT.mixed)
    except Spent:
        return False
    parts = tree.elements if isinstance(tree, BareList) else (tree,)
    return any(isinstance(part, Text) and len(part.words) > MAX_PHRASE_WORDS for part in parts)


@lru_cache(maxsize=REMEMBERED_GOLDS)
def _is_choice(gold: str | None) -> bool:
    """Tell whether gold is the letter of an option, alone or before its value."""
    if gold is None or len(gold) > MIN_PROSE_CHARS or _MAY_BE_CHOICE.match(gold) is None:
        return False
    text = normal(gold)
    return choice_letter(text) is not None or choice_and_value(text) is not None


def _is_misread(verdict: Verdict, response: str, gold: str | None) -> bool:
    """Tell whether the extraction overlooked gold.

    Gold is then within the extracted words, or in the last line, from which another value was guessed.
    """
    if verdict.reason is not Reason.MISMATCH:
        return False
    if verdict.evidence["form"] in GUESSED:
        # The values of a list may be on several lines.
        line = response if gold and several_values(gold) else last_line(response)
        if names_gold(line, gold):
            return True
    return verdict.evidence.get("rung") == "words" and names_gold(verdict.extracted or "", gold)
