r"""Compares single values, quantities, ratios, times, congruences and words.

Values (`same_values`) are equal, or equal after rounding. For quantities (`same_amounts`), the policy decides about
missing and convertible units, percent signs and angles. It also decides about rounding:

    gold 21.93, answer 21\frac{13}{14} = 21.9285...    same: the answer rounds to gold
    gold 6.01, answer 6\frac{1}{64} = 6.0156...        same: the answer is truncated to gold
    gold 326.5, answer 326.53                          different: the answer needs two places more than gold
    gold 1/3, answer 0.333                             different: gold is exact

Each other kind has a function:

    Function           Gold                   Right answer
    `same_ratios`      2:3                    4:6, 2/3
    `same_numerals`    101_2                  101 (unless the policy says 5)
    `same_clocks`      4:30 p.m.              16:30
    `same_days`        May 3                  May 3, 2020
    `same_residues`    x \equiv 3 \pmod 7     x \equiv -4 \pmod 7, 7k+3
    `same_texts`       the function is odd    odd
    `same_names`       no                     NO, which is read as a product of N and O
"""

from __future__ import annotations

from dataclasses import replace

from gmpy2 import mpq

from truegold.verifiers.math.comparison.matrix_letters import is_spelled_alike, same_in_matrices
from truegold.verifiers.math.comparison.measured import agree_as_measured, real_value, written
from truegold.verifiers.math.exact import base_value, rational
from truegold.verifiers.math.identity import same_value
from truegold.verifiers.math.measures import (
    DEGREE,
    PERCENT,
    POUND,
    STERLING,
    Conversion,
    Unit,
    conversion,
    label_unit,
    may_count_the_same,
    unit_of,
)
from truegold.verifiers.math.policy import OPEN, OTHER_STRUCTURE, SAME_STRUCTURE, Policy, Sameness
from truegold.verifiers.math.tree import (
    PLUS_ONE,
    VALUES,
    Add,
    BareList,
    BaseN,
    Chain,
    Const,
    Day,
    FunctionCall,
    Measure,
    Mul,
    Named,
    Node,
    Num,
    Pow,
    Ratio,
    Residues,
    Sym,
    Text,
    TimeOfDay,
    labelled,
    substituted,
    symbols,
)
from truegold.verifiers.math.vocabulary import NAMED_WORDS, STOP_WORDS

MAX_APPROXIMATION = 5
"""The error of an approximation is at most the exact value divided by this number."""

MIN_DECIMALS = 2
MIN_DIGITS = 3
"""A gold is a rounded value if it has `MIN_DECIMALS` decimals, or a point and `MIN_DIGITS` digits."""

EXTRA_DECIMALS = 2
"""Minimum number of decimals that a decimal answer has beyond those of gold, if it rounds to gold."""

MONEY_TOLERANCE = 0.0005
"""Maximum relative difference from a measured amount of money with cents. Without cents, amounts must be equal."""

CENTS = 2
"""The decimals of an amount of money with cents."""

_SCALES_AND_LETTERS = frozenset((unit_of(f"°{letter}"), unit_of(letter)) for letter in "CF")
"""Pairs of a temperature scale and its letter. 20 C may mean 20 °C, although C alone is an electric charge."""
OTHER_VALUE = Sameness(False, "exact")
_PRODUCTS = frozenset({Mul, Add, Pow})
"""Types of values with factors that may not commute."""
OTHER_UNIT = Sameness(False, "units")
UNKNOWN_UNIT = Sameness(None, "units")

_HALF_DAY = 12 * 60
_LAST_HOUR = 24
"""The largest hour of a time."""
_ResidueClasses = tuple[int, frozenset[int]]
"""A modulus and the remainders."""
_QUANTIFIERS = frozenset({"all", "any", "every", "each", "for", "must"})
"""Words that are ignored in statements such as `all odd n` and `n must be odd`."""
_VERBS = frozenset({"converges", "diverges", "exists", "oscillates", "increases", "decreases", "vanishes"})
"""Verbs that may be a whole gold. An answer may add a subject: `the series diverges`."""
_SUBJECTS = frozenset({"series", "sequence", "integral", "limit", "function", "sum", "product", "it", "this", "that"})
"""Subjects that an answer may add to a verb of `_VERBS`."""
_COPULAS = ("is", "are", "was", "were")
"""Verbs between a subject and its predicate."""
_SHORT_WORD = 4
"""Maximum number of letters in a word whose plural is not recognised."""
MAX_INVERTED_WORDS = 2
"""Maximum number of words in a statement whose order is ignored. In longer statements the order shows the subject."""
MAX_PHRASE_WORDS = 4
"""Maximum number of words in a text that can be compared. Longer texts are sentences, whose wording may differ."""


def agrees_when_rounded(gold: Node, answer: Node, policy: Policy) -> bool:
    """Tell whether two unequal values are the same by the rounding that the policy allows."""
    if policy.decimals is not None or policy.tolerance is not None:
        return _is_near(gold, answer, policy)
    if policy.answer_digits is not None and _has_enough_digits(gold, answer, policy.answer_digits):
        return True
    if policy.rounding and _rounds_to(gold, answer):
        return True
    return policy.rounding == "measured" and agree_as_measured(gold, answer)


def is_approximately(exact: Node, written: Node) -> bool | None:
    """Tell whether `exact \\approx written` is true to the last digit of `written`: 314 is about 100\\pi.

    Final zeros of a whole number are not digits: 300 is about 314. Return None if a side has no value.
    """
    if isinstance(exact, Measure) and isinstance(written, Measure):
        if exact.unit == written.unit:
            return is_approximately(exact.value, written.value)
        return same_amounts(exact, written, Policy()).same
    if isinstance(written, Measure) and written.unit == PERCENT and isinstance(written.value, Num):
        share = written.value
        written = Num(share.value / 100, (share.decimals or 0) + 2)
    exact_value, written_value = real_value(exact), real_value(written)
    if exact_value is None or written_value is None:
        return None
    decimals = written.decimals if isinstance(written, Num) else None
    unit = mpq(1, 10**decimals) if decimals is not None else mpq(1)
    if decimals is None and written_value.denominator == 1 and written_value:
        digits = str(abs(written_value.numerator))
        unit = mpq(10 ** (len(digits) - len(digits.rstrip("0"))))
    distance = abs(exact_value - written_value)
    return bool(distance < unit and distance * MAX_APPROXIMATION <= abs(exact_value))


def _is_near(gold: Node, answer: Node, policy: Policy) -> bool:
    gold_value, answer_value = real_value(gold), real_value(answer)
    if gold_value is None or answer_value is None:
        return False
    distance = abs(gold_value - answer_value)
    if policy.decimals is not None and distance <= mpq(1, 2 * 10**policy.decimals):
        return True
    return policy.tolerance is not None and distance <= mpq(policy.tolerance) * abs(gold_value)


def _has_enough_digits(gold: Node, answer: Node, digits: int) -> bool:
    decimal = _as_number(answer)
    gold_number = _as_number(gold)
    if decimal is None or decimal.decimals is None or (gold_number is not None and gold_number.decimals is not None):
        return False
    significant = len(str(abs(decimal.value.numerator * 10**decimal.decimals // decimal.value.denominator)))
    return significant >= digits and _fits(decimal, gold)


def _rounds_to(gold: Node, answer: Node) -> bool:
    """Tell whether gold is a rounded value and the answer rounds to it."""
    if (decimal := _as_number(gold)) is None or decimal.decimals is None:
        return False
    digits = len(str(abs(int(decimal.value * 10**decimal.decimals))))
    if decimal.decimals < MIN_DECIMALS and digits < MIN_DIGITS:
        return False
    if (answer_number := _as_number(answer)) is None:
        return _fits(decimal, answer, cut=True)
    if answer_number.decimals is None:
        # A whole number is not more precise than gold.
        return answer_number.value.denominator != 1 and _fits(decimal, answer, cut=True)
    return answer_number.decimals >= decimal.decimals + EXTRA_DECIMALS and _fits(decimal, answer)


def _fits(decimal: Num, value: Node, *, cut: bool = False) -> bool:
    """Tell whether `value`, rounded to the decimals of `decimal`, equals `decimal`.

    cut: also accept a value that equals `decimal` if it is truncated to these decimals.
    """
    if (exact := real_value(value)) is None or decimal.decimals is None:
        return False
    unit = mpq(1, 10**decimal.decimals)
    if abs(exact - decimal.value) <= unit / 2:
        return True
    return cut and abs(exact) >= abs(decimal.value) and abs(exact - decimal.value) < unit and exact * decimal.value > 0


def _as_number(node: Node) -> Num | None:
    if isinstance(node, Measure):
        node = node.value
    return node if isinstance(node, Num) else None


def same_values(gold: Node, answer: Node, policy: Policy) -> Sameness:
    """Compare two values under a policy. Raises TooLarge."""
    outcome = same_value(gold, answer)
    if outcome.same:
        is_product = type(gold) in _PRODUCTS and len(symbols(gold)) > 1 and policy.factors != "commute"
        if is_product and same_in_matrices(gold, answer, all_capitals=policy.factors == "ordered") is False:
            return OTHER_VALUE
        return outcome
    if outcome.same is None and is_spelled_alike(gold, answer):
        return SAME_STRUCTURE
    if agrees_when_rounded(gold, answer, policy):
        return Sameness(True, "rounding")
    return outcome


def same_amounts(gold: Node, answer: Node, policy: Policy) -> Sameness:  # noqa: PLR0911, one for each kind of unit
    """Compare two values, at least one of which has a unit. Raises TooLarge."""
    gold_value, gold_unit = (gold.value, gold.unit) if isinstance(gold, Measure) else (gold, None)
    answer_value, answer_unit = (answer.value, answer.unit) if isinstance(answer, Measure) else (answer, None)
    if policy.rounding == "measured":
        gold_value, policy = _as_measured(gold_value, gold_unit, answer_unit, policy)
    if policy.units == "strict" and gold_unit is not None and not gold_unit.is_label and answer_unit is None:
        return OTHER_UNIT
    if PERCENT in (gold_unit, answer_unit):
        other = answer_unit if gold_unit == PERCENT else gold_unit
        if other is not None and other.dimension == PERCENT.dimension:
            return _same_converted(gold_value, gold_unit or PERCENT, answer_value, answer_unit or PERCENT, policy)
        if other is not None and policy.units != "ignore":
            return UNKNOWN_UNIT if other.is_label else OTHER_UNIT
        return _same_percentages(gold_value, gold_unit == PERCENT, answer_value, answer_unit == PERCENT, policy)
    mixes_angles = DEGREE in (gold_unit, answer_unit) and gold_unit != answer_unit and policy.degrees == "convert"
    if mixes_angles and _same_angles(gold_value, gold_unit == DEGREE, answer_value, answer_unit == DEGREE):
        return Sameness(True, "units")
    if policy.units == "ignore" or gold_unit is None or answer_unit is None:
        if policy.units != "ignore" and symbols(gold_value) != symbols(answer_value):
            # `0 K` is not zero, because K may be a unit in another reading.
            return OTHER_UNIT
        outcome = same_values(gold_value, answer_value, policy)
        if not outcome.same and gold_unit is None and answer_unit is not None and policy.units != "ignore":
            return _same_share(gold_value, answer_value, answer_unit, policy) or outcome
        return outcome
    if gold_unit.is_label or answer_unit.is_label:
        outcome = same_values(gold_value, answer_value, policy)
        # The labels are unknown words, which may mean the same.
        return outcome if may_count_the_same(gold_unit, answer_unit) or not outcome.same else UNKNOWN_UNIT
    return _same_converted(gold_value, gold_unit, answer_value, answer_unit, policy)


def _same_share(gold: Node, answer: Node, answer_unit: Unit, policy: Policy) -> Sameness | None:
    """Compare 0.0025 with `25 basis points`. Return None for other units."""
    if answer_unit.dimension != PERCENT.dimension:
        return None
    return same_values(gold, Mul((Num(answer_unit.factor / 100), answer)), policy)


def _same_converted(gold: Node, gold_unit: Unit, answer: Node, answer_unit: Unit, policy: Policy) -> Sameness:
    """Compare two values with units, after converting the answer to gold's unit. Raises TooLarge."""
    has_scale = bool(gold_unit.zero or answer_unit.zero)
    is_named = DEGREE in (gold_unit, answer_unit) or (gold_unit, answer_unit) in _SCALES_AND_LETTERS
    if has_scale and is_named and policy.units != "strict":
        # `20 degrees` may omit its scale.
        return same_values(gold, answer, policy)
    if (ratio := conversion(gold_unit, answer_unit)) is None:
        is_same_money = gold_unit.currency is not None and gold_unit.currency == answer_unit.currency
        is_named = is_same_money and any(unit.is_money and not unit.per for unit in (gold_unit, answer_unit))
        # `$5` may omit `per hour`, and `5 pounds` are money if the other side is.
        is_named = is_named or {gold_unit, answer_unit} == {POUND, STERLING}
        return same_values(gold, answer, policy) if is_named else OTHER_UNIT
    if ratio == (1, 0) and gold_unit.zero == answer_unit.zero:
        return same_values(gold, answer, policy)
    outcome = same_values(gold, _converted(answer, answer_unit, ratio, gold_unit), policy)
    if outcome.same or not policy.rounding:
        return outcome
    if has_scale and gold_unit.factor == answer_unit.factor:
        # Many books use 273 instead of 273.15.
        gold_unit, answer_unit = (replace(unit, zero=unit.zero // 1) for unit in (gold_unit, answer_unit))
        if same_values(gold, _converted(answer, answer_unit, ratio, gold_unit), policy).same:
            return Sameness(True, "rounding")
    # A converted number may be rounded: `100 km/h` is `27.8 m/s`.
    inverse = conversion(answer_unit, gold_unit) or ratio
    is_rounded = _is_rounded(gold, _converted(answer, answer_unit, ratio, gold_unit)) or _is_rounded(
        answer, _converted(gold, gold_unit, inverse, answer_unit)
    )
    return Sameness(True, "rounding") if is_rounded else outcome


def _is_rounded(node: Node, exact: Node) -> bool:
    """Tell whether `node` is `exact`, rounded to three significant digits or more."""
    spelled, value = written(node), real_value(exact)
    has_figures = spelled is not None and bool(spelled.last) and spelled.figures >= MIN_DIGITS
    return spelled is not None and has_figures and value is not None and abs(value - spelled.value) <= spelled.last / 2


def _converted(value: Node, unit: Unit, ratio: Conversion, target: Unit) -> Node:
    """Return a value that is converted from `unit` to `target`."""
    factors: list[Node] = [Num(ratio.factor), value if unit.zero == 0 else Add((value, Num(unit.zero)))]
    if ratio.pi_power:
        factors.append(Pow(Const("pi"), Num(mpq(ratio.pi_power))))
    return Mul(tuple(factors)) if target.zero == 0 else Add((Mul(tuple(factors)), Num(-target.zero)))


def _as_measured(value: Node, gold_unit: Unit | None, answer_unit: Unit | None, policy: Policy) -> tuple[Node, Policy]:
    """Return the value and the policy by which a measured gold is compared.

    25 kg      the whole number is marked as a measured number
    $97.31     97.33 is an answer: amounts with cents have the tolerance `MONEY_TOLERANCE`
    $97        only 97 is an answer
    $2.568     compared like a number that is not money, because the decimals cannot be cents
    """
    decimals = value.decimals if isinstance(value, Num) else None
    is_worked_out = decimals is not None and (decimals > CENTS or (gold_unit is None and decimals < CENTS))
    if not is_worked_out and any(unit is not None and unit.currency for unit in (gold_unit, answer_unit)):
        has_cents = bool(decimals)
        return value, replace(policy, rounding=True, tolerance=MONEY_TOLERANCE if has_cents else None)
    is_counted = gold_unit is None or gold_unit.is_label or gold_unit == DEGREE
    if is_counted or not isinstance(value, Num) or value.value.denominator != 1 or value.decimals is not None:
        return value, policy
    return (value if value.last_power is not None else Num(value.value, 0)), policy


def _same_percentages(gold: Node, gold_has_sign: bool, answer: Node, answer_has_sign: bool, policy: Policy) -> Sameness:
    if gold_has_sign == answer_has_sign:
        return same_values(gold, answer, policy)
    if gold_has_sign:
        as_written = same_values(gold, answer, policy)
        return as_written if as_written.same else same_values(_hundredth(gold), answer, policy)
    as_value = same_values(gold, _hundredth(answer), policy)
    return as_value if as_value.same or policy.percent == "value" else same_values(gold, answer, policy)


def _hundredth(node: Node) -> Node:
    if isinstance(node, Num):
        return Num(node.value / 100, None if node.decimals is None else node.decimals + 2)
    return Mul((Num(mpq(1, 100)), node))


def _same_angles(gold: Node, gold_in_degrees: bool, answer: Node, answer_in_degrees: bool) -> bool:
    """Compare degrees with radians."""
    gold_angle = FunctionCall("degree", (gold,)) if gold_in_degrees else gold
    answer_angle = FunctionCall("degree", (answer,)) if answer_in_degrees else answer
    return bool(same_value(gold_angle, answer_angle).same)


def clock_of(node: Node) -> TimeOfDay | None:
    """Return the time of day that a node is or may be, or None for other nodes."""
    if isinstance(node, Ratio):
        return node.clock
    return node if isinstance(node, TimeOfDay) else None


def same_clocks(gold: Node, answer: Node) -> Sameness:
    """Compare two sides, at least one of which is a time. 4:30, or 4 for 4:00, may be in either half of the day."""
    gold_clock, answer_clock = clock_of(gold), clock_of(answer)
    if gold_clock is not None and answer_clock is not None:
        is_open = "" in (gold_clock.half, answer_clock.half)
        difference = gold_clock.minutes - answer_clock.minutes
        # 10:30 may be in either half of the day, unless the other side has 24 hours, as in 22:30.
        is_open &= "24" not in (gold_clock.half, answer_clock.half)
        return Sameness(difference % _HALF_DAY == 0 if is_open else difference == 0, "structure")
    clock, other = (gold_clock, answer) if gold_clock is not None else (answer_clock, gold)
    if clock is None or clock.half not in ("am", "pm") or clock.minutes % 60 or not isinstance(other, Num):
        return OTHER_STRUCTURE
    minutes = clock.minutes % _HALF_DAY
    return Sameness(other.value * 60 in (minutes, minutes + _HALF_DAY), "structure")


def may_be_ratio(node: Node) -> bool:
    """Tell whether a node may be a ratio rather than a time: `4:30` may, `4:00` may not."""
    return isinstance(node, Ratio) and all(rational(part) != 0 for part in node.parts)


def same_days(gold: Node, answer: Node) -> Sameness:
    """Compare two sides, at least one of which is a day. If gold has a year, the answer needs it too."""
    if not isinstance(gold, Day) or not isinstance(answer, Day):
        return OTHER_STRUCTURE
    pairs = [
        (gold.year, answer.year), (gold.month, answer.month), (gold.day, answer.day), (gold.weekday, answer.weekday),
    ]  # fmt: skip
    both_say = [(a, b) for a, b in pairs if a is not None and b is not None]
    if not both_say or any(a != b for a, b in both_say):
        return OTHER_STRUCTURE
    if any(a is not None and b is None for a, b in pairs[1:3]):
        return OTHER_STRUCTURE
    return OPEN if gold.year is not None and answer.year is None else Sameness(True, "structure")


def same_residues(gold: Node, answer: Node) -> Sameness:
    """Compare two sides, at least one of which is a congruence."""
    gold_classes, answer_classes = _residue_classes(gold), _residue_classes(answer)
    if gold_classes is not None and answer_classes is not None:
        return Sameness(gold_classes == answer_classes, "structure")
    if isinstance(gold, Residues) and gold_classes is None:
        return OPEN
    if isinstance(gold, Residues):
        outcome = _same_as_remainder(gold, answer)
        # x = 3 is only one solution of x = 3 mod 7.
        return OPEN if outcome.same and gold.label else outcome
    return _same_as_remainder(answer, gold) if isinstance(answer, Residues) else OTHER_STRUCTURE


def _same_as_remainder(congruence: Residues, other: Node) -> Sameness:
    r"""Compare x \equiv 10 \pmod 7 with the number 10 or 3."""
    value = rational(other) if isinstance(other, VALUES) else None
    if value is None or len(congruence.remainders) != 1:
        return OTHER_STRUCTURE
    written, modulus = rational(congruence.remainders[0]), rational(congruence.modulus)
    if written is None or not modulus:
        return OPEN
    return Sameness(True, "exact") if value in (written, written % modulus) else OTHER_STRUCTURE


def _residue_classes(node: Node) -> _ResidueClasses | None:
    """Return the modulus and the remainders of a congruence or of `7k+3`, or None for other nodes."""
    if isinstance(node, Residues):
        modulus = _whole(node.modulus)
        remainders = [_whole(part) for part in node.remainders]
        if not modulus or None in remainders:
            return None
        return abs(modulus), frozenset(part % abs(modulus) for part in remainders if part is not None)
    value = labelled(node)[1] if isinstance(node, Chain) else node
    elements = value.elements if isinstance(value, BareList) else (value,)
    classes = [_class_of_expression(element) for element in elements]
    if None in classes:
        return None
    moduli = {pair[0] for pair in classes if pair is not None}
    return (moduli.pop(), frozenset(pair[1] for pair in classes if pair)) if len(moduli) == 1 else None


def _class_of_expression(node: Node | None) -> tuple[int, int] | None:
    """Return the modulus 7 and the remainder 3 of 7k+3, or None for other nodes."""
    if not isinstance(node, VALUES) or len(symbols(node)) != 1:
        return None
    name = next(iter(symbols(node)))
    values = [_whole(substituted(node, {name: Num(mpq(point))})) for point in (0, 1, 2, 5)]
    if None in values:
        return None
    start, *rest = (value for value in values if value is not None)
    if not (slope := rest[0] - start) or [value - start for value in rest] != [slope, 2 * slope, 5 * slope]:
        return None
    return abs(slope), start % abs(slope)


def _whole(node: Node) -> int | None:
    value = rational(node) if isinstance(node, VALUES) else None
    return int(value) if value is not None and value.denominator == 1 else None


def same_ratios(gold: Node, answer: Node, policy: Policy) -> Sameness:
    """Compare two sides, at least one of which is a Ratio. A value is its ratio to 1, and 4:30 may be a time."""
    if policy.colon != "ratio" and clock_of(gold) is not None and clock_of(answer) is not None:
        outcome = same_clocks(gold, answer)
        if outcome.same or policy.colon == "time" or not (may_be_ratio(gold) and may_be_ratio(answer)):
            return outcome
        return OPEN if _same_proportions(gold, answer).same else outcome
    outcome = _same_proportions(gold, answer)
    if outcome.same and policy.colon != "ratio" and (_is_misspelled(gold, answer) or _is_misspelled(answer, gold)):
        return OPEN if policy.colon == "auto" else OTHER_STRUCTURE
    return outcome


def _is_misspelled(clock: Node, other: Node) -> bool:
    """Tell whether a ratio like 8:60, compared with a time, may be a misspelt time."""
    if clock_of(clock) is None or not isinstance(other, Ratio) or len(other.parts) != 2:
        return False
    hour, minute = map(rational, other.parts)
    return hour is not None and minute is not None and hour <= _LAST_HOUR and 60 <= minute < 100


def _same_proportions(gold: Node, answer: Node) -> Sameness:
    """Compare two ratios part by part, without regard to a common factor."""
    gold_parts, answer_parts = _ratio_parts(gold), _ratio_parts(answer)
    if gold_parts is None or answer_parts is None or len(gold_parts) != len(answer_parts):
        return OTHER_STRUCTURE
    if any(rational(part) == 0 for part in (*gold_parts, *answer_parts)):
        # Ratios with a zero must be the same as written: 12:0 is not 5:0.
        return Sameness(list(map(rational, gold_parts)) == list(map(rational, answer_parts)), "exact")
    outcome = Sameness(True, "exact")
    for gold_part, answer_part in zip(gold_parts[1:], answer_parts[1:], strict=True):
        outcome = same_value(Mul((gold_parts[0], answer_part)), Mul((gold_part, answer_parts[0])))
        if not outcome.same:
            return outcome
    return outcome


def _ratio_parts(node: Node) -> tuple[Node, ...] | None:
    if isinstance(node, Ratio):
        return node.parts
    if isinstance(node, Chain):
        value = labelled(node)[1]
        return _ratio_parts(value) if value is not None and not isinstance(value, Chain) else None
    return (node, PLUS_ONE) if isinstance(node, VALUES) else None


def same_numerals(gold: Node, answer: Node, policy: Policy) -> Sameness:
    """Compare two sides, at least one of which is a BaseN. The policy decides about numbers without a base."""
    if isinstance(gold, BaseN):
        if isinstance(answer, BaseN):
            same = gold.base == answer.base and gold.digits.lstrip("0") == answer.digits.lstrip("0")
            return Sameness(same, "structure")
        if (answer_value := _whole(answer)) is None:
            return OTHER_STRUCTURE
        if policy.base == "value" and answer_value == base_value(gold):
            return Sameness(True, "exact")
        return Sameness(policy.base != "required" and str(answer_value) == gold.digits, "structure")
    assert isinstance(answer, BaseN)
    gold_value = _whole(gold)
    same = gold_value is not None and gold_value == base_value(answer)
    return Sameness(same, "exact" if same else "structure")


def same_texts(gold: Node, answer: Node) -> Sameness:
    """Compare two sides, at least one of which is a Text. If gold is a sentence in other words, nothing is decided."""
    gold_words, answer_words = _words(gold), _words(answer)
    if gold_words is not None and answer_words is not None:
        same = gold_words == answer_words or "".join(gold_words) == "".join(answer_words)
        same = same or list(map(_singular, gold_words)) == list(map(_singular, answer_words))
        same = same or _is_letter_with_word(gold_words, answer_words)
        same = same or _say_the_same(gold, answer, set(gold_words), set(answer_words))
        if same or _predicate(gold) == answer_words or _predicate(answer) == gold_words:
            return Sameness(True, "words")
    is_sentence = isinstance(gold, Text) and len(gold.words) > MAX_PHRASE_WORDS
    return Sameness(None if is_sentence else False, "words")


def is_prose(node: Node) -> bool:
    """Tell whether a list is really a sentence with commas: `Yes, because ...`."""
    elements = node.elements if isinstance(node, BareList) else ()
    return any(isinstance(element, Text) and len(element.words) > MAX_PHRASE_WORDS for element in elements)


def same_names(gold: Node, answer: Node) -> Sameness:
    """Compare two sides, at least one of which is Named."""
    name = _name_of(gold)
    return Sameness(name is not None and name == _name_of(answer), "words")


def _say_the_same(gold: Node, answer: Node, gold_words: set[str], answer_words: set[str]) -> bool:
    """Tell whether two texts differ only by a copula or a subject.

    Such texts are `isosceles triangle` and `the triangle is isosceles`, or `diverges` and `the series diverges`.
    """
    if not isinstance(gold, Text) or not isinstance(answer, Text):
        return False
    if gold_words == answer_words and len(gold_words) == MAX_INVERTED_WORDS:
        return ("is" in gold.words) != ("is" in answer.words)
    (verb, *others) = gold.words
    subject = {word for word in answer.words[:-1] if word not in STOP_WORDS}
    return not others and verb in _VERBS and answer.words[-1] == verb and subject <= _SUBJECTS


def _singular(word: str) -> str:
    """Return neutron for neutrons. Short words are returned unchanged, because they may not be plurals."""
    return label_unit(word).label if len(word) > _SHORT_WORD else word


def _is_letter_with_word(gold_words: tuple[str, ...], answer_words: tuple[str, ...]) -> bool:
    """Tell whether both texts are the same word about the same letter: `odd n`, `n odd`, `n is odd`, `all odd n`."""
    gold_set, answer_set = set(gold_words) - _QUANTIFIERS, set(answer_words) - _QUANTIFIERS
    return gold_set == answer_set and len(gold_set) == 2 and any(len(word) == 1 for word in gold_set)


def _predicate(node: Node) -> tuple[str, ...] | None:
    """Return the words after the verb, such as `odd` of `the function is odd`, or None if there is no verb."""
    if not isinstance(node, Text):
        return None
    if (verb := next((word for word in _COPULAS if word in node.words), None)) is not None:
        rest = node.words[len(node.words) - node.words[::-1].index(verb) :]
        return tuple(word for word in rest if word not in STOP_WORDS) or None
    return None


def _words(node: Node) -> tuple[str, ...] | None:
    """Return the words of a node in words, without stop words, or None for other nodes."""
    if isinstance(node, Text):
        return tuple(word for word in node.words if word not in STOP_WORDS) or node.words
    if isinstance(node, Named):
        return tuple(node.name.split())
    if isinstance(node, BareList) and node.joined == ",":
        parts = [element.words for element in node.elements if isinstance(element, Text)]
        return tuple(word for part in parts for word in part) if len(parts) == len(node.elements) else None
    letters = node.factors if isinstance(node, Mul) else (node,)
    if all(isinstance(letter, Sym) for letter in letters):
        return ("".join(letter.name for letter in letters if isinstance(letter, Sym)).lower(),)
    return None


def _name_of(node: Node) -> str | None:
    """Return the name of the set or truth value that a node stands for, or None."""
    if isinstance(node, Named):
        return node.name
    words = _words(node)
    return NAMED_WORDS.get("".join(words)) if words is not None else None
