"""The verifier `math`: extracts the answer that a response commits to, and compares it with gold (`ladder`).

The verdict also depends on the problem's text: it may list options, ask for a direction, or count in millions.

An answer that is missing or cannot be read earns 0. The reason is `unread` if the response ends with a value in an
unknown form, or if gold stands at its end but another value was extracted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache, partial
from typing import Any, ClassVar

from gmpy2 import mpq

from truegold.verifiers.extract import (
    GUESSED,
    committed_answer,
    ends_with_value,
    final_part,
    last_line,
    names_gold,
    several_values,
)
from truegold.verifiers.extract.chosen import committed_choice
from truegold.verifiers.extract.listed_options import option_texts
from truegold.verifiers.extract.stated_names import bold_words, named_in_predicate
from truegold.verifiers.gold import without_reference
from truegold.verifiers.math.choice_letters import (
    choice_and_value,
    choice_letter,
    letter_of_text,
    small_choice,
    with_capital_labels,
)
from truegold.verifiers.math.comparison import compare
from truegold.verifiers.math.comparison.single_values import MAX_PHRASE_WORDS
from truegold.verifiers.math.ladder import (
    MAX_PROSE_CHARS,
    MIN_PROSE_CHARS,
    compare_texts,
    count_elements,
    same_as_option,
    verdict_of,
    with_pointed_gold,
)
from truegold.verifiers.math.policy import DEFAULT, Policy, Spent, StepBudget, parse_policy, policy_for
from truegold.verifiers.math.reading.answers import Unread, read_gold, read_text, simple_number
from truegold.verifiers.math.reading.chemistry import same_chemistry
from truegold.verifiers.math.reading.normal import normal, normal_gold, normal_text
from truegold.verifiers.math.reading.qualifiers import MAY_BE_DIRECTED, qualified
from truegold.verifiers.math.tree import BareList, Measure, Num, Text, show
from truegold.verifiers.math.vocabulary import MARKS_OF_TRUTH
from truegold.verifiers.options import BadOption
from truegold.verifiers.sandbox.errors import ConfigError
from truegold.verifiers.verdict import NO_INFO, Reason, Verdict

REMEMBERED_GOLDS = 4_096
"""The number of golds whose kind is cached."""
_IN_WORDS = re.compile(r"(?=.*(?:[a-zà-ÿа-я]{2}|[一-鿿぀-ヿ가-힣]{2}))[^\W\d_][^\d\\$^_=+*/<>|(){}\[\]]*")
"""A gold that consists of words, without a formula."""
_WORD_KEY = re.compile(r"[^\W_]+")
"""A word or a number, for comparing texts word by word."""
_MAY_BE_CHOICE = re.compile(r"[\[$\s]*(?:\\[a-z]{4,6}\s*\{\s*)*\(?\s*(?:\\[a-z]{4,6}\s*\{\s*)*[A-J](?![A-Za-z])")
r"""The start of a gold that may be the letter of an option: `(B)`, `\text{B}`."""
RESPONSES = Policy(percent="either")
"""The default policy for whole responses: `25%` answers a gold of 25."""
_SCALE = re.compile(
    r"\b(?:in|of)\s+(?:the\s+)?(?:nearest\s+)?(?:(?:US\s?D|USD|US\$|dollars?|euros?|EUR|GBP|RMB|INR|JPY|[$€£¥₹])\s*(?:in\s+)?)?"
    r"\(?(thousand|million|billion|trillion)s\b|[(（]\s*(?:\$|USD|US\$)?\s*(thousand|million|billion|trillion)s?\s*[)）]"
    r"|(?:单位|以)\s*[:：]?\s*(百万|千万|万|亿)",
    re.IGNORECASE,
)
"""A problem that asks for thousands or millions, such as `in USD millions`. `$5 million` then answers a gold of 5."""
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12,
           "万": 10**4, "百万": 10**6, "千万": 10**7, "亿": 10**8}  # fmt: skip
"""Maps a word of `_SCALE` to its number."""
MAX_DECIMALS = 16
"""The most decimals of a scaled number."""
_ASKS_DIRECTION = re.compile(r"\b(?:direction|which way|vectors?|velocity|displacement)\b", re.IGNORECASE)
"""A problem that asks for a direction."""
_TRUTHS = (("对", "错"), ("正确", "错误"), ("是", "否"))
"""Chinese words for true and false, which are the options of a problem that lists none."""
_ASKS_NAME = re.compile(
    r"\b(?:symbols?|formulas?|formulae|names?|named|called|stands? for|denoted?)\b|符号|化学式|分子式|名称",
    re.IGNORECASE,
)
"""A problem that asks for the name of a substance or for its formula."""


@dataclass(frozen=True, slots=True)
class MathVerifier:
    """Compares mathematical answers by value: 1/2, 0.5 and \\frac{2}{4} are the same.

    The default policy is that of `equivalent`, except that `25%` answers a gold of 25. It does not if the problem is
    known and does not mention percentages.
    """

    options: ClassVar[tuple[str, ...]] = tuple(option.name for option in fields(Policy))

    policy: Policy = field(default=RESPONSES)
    """The policy of every row. The options in a row's `info` override it."""
    name: str = "math"
    version: str = "13"

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
        if problem:
            policy = policy_for(problem, gold, policy, info)
            if "options" not in info and _is_choice(gold):
                policy = replace(policy, options=option_texts(problem))
        with StepBudget():
            verdict = _judge_response(response, gold, problem, policy)
            if verdict.reason in (Reason.UNREAD, Reason.NO_ANSWER) and gold:
                verdict = _judge_words(response, gold, problem, policy, verdict)
            if verdict.score != 1.0 and gold and (letter := small_choice(gold, problem)) is not None:
                verdict = _judge_response(with_capital_labels(response), letter, problem, policy)
            elif verdict.score == 0.0 and gold and (listed := _options_of(gold, problem, policy)):
                chosen = _judge_option(response, gold, problem, replace(policy, options=listed))
                verdict = verdict if chosen is None else chosen
            is_gold_at_fault = verdict.score == 0.0 and gold is not None and is_sentence(gold)
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
    elif verdict.reason is Reason.MISMATCH and problem and gold:
        verdict = _compare_scaled(committed.text, gold, problem, policy, verdict)
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
    """Tell whether the answer only repeats the problem's name of a substance, although its formula is asked for.

    Also tell so of an answer that repeats the formula, although the name is asked for.
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

    The words may be in bold, the whole response, the extracted text, or what follows the verb of the last sentence.
    """
    in_bold, whole = bold_words(response), final_part(response).strip()
    mark = whole if whole.strip("\ufe0f") in MARKS_OF_TRUTH else None
    for kind, alone in (("bold", in_bold), ("whole_response", mark)):
        if alone is not None and (by_meaning := compare_texts(alone, gold, policy)).passed:
            return replace(by_meaning, evidence={**by_meaning.evidence, "form": kind})
    if _IN_WORDS.fullmatch(gold) is None or len(gold) > MAX_PROSE_CHARS:
        return verdict
    forms = {"bold": in_bold, "whole_response": whole, verdict.evidence.get("form"): verdict.extracted}
    forms["predicate"] = named_in_predicate(response, problem)
    gold_words = _words_of(gold)
    for form, text in forms.items():
        if text and text[-1] not in "?？" and _words_of(text[: 2 * MAX_PROSE_CHARS]) == gold_words:
            return Verdict(1.0, Reason.MATCH, text, {"form": form, "rung": "words"})
    return verdict


def _words_of(text: str) -> list[str]:
    """Return the words of a text in lower case, without an article before them."""
    words = _WORD_KEY.findall(text.casefold())
    return words[1:] if len(words) > 1 and words[0] in ("the", "a", "an") else words


def _options_of(gold: str, problem: str | None, policy: Policy) -> tuple[str, ...]:
    """Return the options of the policy, or those that the problem lists, or 对 and 错 if gold is one of these."""
    return policy.options or option_texts(problem or "") or next((pair for pair in _TRUTHS if gold.strip() in pair), ())


def _judge_option(response: str, gold: str, problem: str | None, policy: Policy) -> Verdict | None:
    """Return the verdict on a response that chooses the letter of the option whose text is gold.

    Return None if the letter is wrong, and if gold is a letter itself or the text of no option.
    """
    if _is_choice(gold) or len(gold) > MAX_PROSE_CHARS:
        return None
    letter = letter_of_text(normal_gold(gold), policy.options, partial(same_as_option, policy))
    verdict = _judge_response(response, letter, problem, policy) if letter is not None else None
    return verdict if verdict is not None and verdict.score == 1.0 else None


def _compare_scaled(answer: str, gold: str, problem: str, policy: Policy, verdict: Verdict) -> Verdict:
    """Compare with a gold that counts thousands or millions: `$32.78 billion` with 32780 `in USD millions`.

    Return `verdict` if the problem does not count so, or if the answer is wrong.
    """
    gold_number = simple_number(normal_gold(gold))
    if gold_number is None or (match := _SCALE.search(problem)) is None:
        return verdict
    tree, scale = read_text(normal_text(answer), policy.mixed), _SCALES[match[match.lastindex or 0].lower()]
    value = tree.value if isinstance(tree, Measure) else tree
    if not isinstance(value, Num):
        return verdict
    counted = _in_full(value.value / scale)
    is_money = isinstance(tree, Measure) and tree.unit.is_money
    outcome = compare(
        gold_number, replace(tree, value=counted) if isinstance(tree, Measure) and not is_money else counted, policy
    )
    return verdict_of(outcome, answer, show(gold_number), f"{show(tree)} / {scale}") if outcome.same else verdict


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

    Gold is then within the words that were extracted, or in the last line, from which another value was guessed.
    """
    if verdict.reason is not Reason.MISMATCH:
        return False
    if verdict.evidence["form"] in GUESSED:
        # The values of a list may be on several lines.
        line = response if gold and several_values(gold) else last_line(response)
        if names_gold(line, gold):
            return True
    return verdict.evidence.get("rung") == "words" and names_gold(verdict.extracted or "", gold)
