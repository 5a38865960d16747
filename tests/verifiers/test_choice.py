"""Multiple choice."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import rows

from truegold.verifiers import ChoiceVerifier, Reason
from truegold.verifiers.answers.gold_types import gold_note

judge = ChoiceVerifier()
COLOURS = {"options": ["red", "dark blue", "green"]}


@rows(
    "response",
    [
        "\\boxed{C}",
        "\\boxed{\\text{C}}",
        "\\boxed{\\textbf{(C)}}",
        "It cannot be A or B. The answer is (C).",
        "Answer: C",
        "**Answer: C**",
        "Answer: C) the third one",
        "Answer: **C. the third one**",
        "The answer is option C",
        "The correct option is C.",
        "So it is choice (C)",
        "We rule the others out.\n\nC",
        "We rule the others out.\n(C)",
        "We rule the others out.\n**C.**",
        "The answer is C because A and B are too small.",
        "The answer is C, green.",
        "The answer is most likely C.",
        "答案是C。",
        "所以选C",
        "C",
        "c",
        "<think>\\boxed{A}</think>\\boxed{C}",
    ],
)
def test_the_committed_letter_is_found(response):
    verdict = judge(response, "C")
    assert verdict.score == 1.0, verdict
    assert judge(response, "D").score == 0.0


@pytest.mark.parametrize("gold", ["B", "(B)", "B.", "B) dark blue", "(B) dark blue", "b", "\\text{B}"])
def test_gold_may_be_written_in_several_ways(gold):
    assert judge("Answer: B", gold).score == 1.0


@pytest.mark.parametrize(
    "response",
    [
        "\\boxed{A or B}",
        "\\boxed{A, B}",
        "The answer is A and B.",
        "Answer: (A), (B)",
        "A or B",
        "Answer: A) red or B) blue",
    ],
)
def test_naming_two_letters_is_hedging(response):
    verdict = judge(response, "B")
    assert (verdict.score, verdict.reason) == (0.0, Reason.HEDGED)


def test_the_text_of_an_option_counts_as_its_letter():
    assert judge("\\boxed{Dark  blue}", "B", info=COLOURS).score == 1.0
    assert judge("The answer is green.", "B", info=COLOURS).score == 0.0
    assert judge("Answer: B", "dark blue", info=COLOURS).score == 1.0


@pytest.mark.parametrize("response", ["", "I cannot decide between these four options today.", "\\boxed{"])
def test_no_commitment_earns_nothing(response):
    verdict = judge(response, "B")
    assert (verdict.score, verdict.reason) == (0.0, Reason.NO_ANSWER)


@rows(
    "gold, info, reason",
    [
        (None, {}, Reason.GOLD_MISSING),
        (" ", {}, Reason.GOLD_MISSING),
        ("42", {}, Reason.GOLD_UNPARSED),
        ("A or B", {}, Reason.GOLD_UNPARSED),
        ("8.5", {"options": ["7", "8", "9"]}, Reason.GOLD_UNPARSED),
        ("BAD", {}, Reason.GOLD_UNPARSED),
        ("A, E", {"options": ["7", "8", "9"]}, Reason.GOLD_UNPARSED),
        ("A", {"options": "red"}, Reason.VERIFIER_ERROR),
    ],
)
def test_what_cannot_be_judged_has_no_score(gold, info, reason):
    verdict = judge("Answer: A", gold, info=info)
    assert (verdict.score, verdict.reason) == (None, reason)


NUMBERS = {"options": ["40", "41", "42", "5²"]}


@rows(
    "response",
    [
        "选C",
        "所以选 C。",
        "故选：C．",
        "故选：Ｃ．",
        "应选C",
        "答案是Ｃ",
        "正确答案为(C)",
        "答案：C",
        "【答案】C",
        "因此答案选C",
        "Ⓒ",
    ],
)
def test_chinese_forms(response):
    assert judge(response, "C").passed
    assert judge(f"我们先排除A。\n{response}", "C").passed
    assert judge(response, "B").score == 0.0


@pytest.mark.parametrize("response", ["(c)", "\\boxed{c}", "The answer is c", "c) 42", "Answer: (c) 42", "c. 42"])
def test_lower_case_letters_count(response):
    assert judge(response, "C", info=NUMBERS).passed


@rows(
    "response",
    [
        *[
            "not C",
            "\\boxed{not C}",
            "The answer is not C.",
            "So option C is wrong.",
            "不选C",
            "选A，不选C",
            "选项C错误",
        ],
        *["It isn't option C.", "We can rule out option C.", "Option C is incorrect."],
    ],
)
def test_a_letter_that_is_denied_is_not_chosen(response):
    assert judge(response, "C", info=NUMBERS).score == 0.0


@pytest.mark.parametrize(
    "response",
    [
        "Option A is wrong, so option C.",
        "\\boxed{C, not A}",
        "The answer is C rather than A",
        "不选A，故选C",
        "选C，不选A",
    ],
)
def test_what_is_chosen_beside_a_denied_letter_counts(response):
    assert judge(response, "C").passed


@rows("answer", ["42", "42.0", "\\frac{84}{2}", "$42$", "\\text{42}", "C. 42", "42 (C)", "(C) 42.0", "C"])
def test_the_text_of_an_option_counts_by_what_it_says(answer):
    assert judge(f"\\boxed{{{answer}}}", "C", info=NUMBERS).passed
    assert judge(f"\\boxed{{{answer}}}", "42", info=NUMBERS).passed
    assert judge(f"\\boxed{{{answer}}}", "A", info=NUMBERS).score == 0.0


@pytest.mark.parametrize("answer", ["C. 41", "41 (C)", "(C) 41.0", "C or 41", "A) 40 or C) 42"])
def test_a_letter_against_the_text_of_another_option_is_hedging(answer):
    verdict = judge(f"\\boxed{{{answer}}}", "C", info=NUMBERS)
    assert verdict.score == 0.0
    assert verdict.reason in (Reason.HEDGED, Reason.UNREAD)
    assert judge("\\boxed{C. 41}", "C", info=NUMBERS).reason is Reason.HEDGED


def test_a_letter_decides_beside_a_text_that_is_no_option():
    assert judge("\\boxed{C. forty-two}", "C", info=NUMBERS).passed


def test_an_exponent_is_not_flattened():
    assert judge("\\boxed{52}", "D", info=NUMBERS).score == 0.0
    assert judge("\\boxed{5²}", "D", info=NUMBERS).passed


def test_labels_inside_the_options_are_left_out():
    labelled = {"options": ["A. red", "B. dark blue", "C) green"]}
    assert judge("\\boxed{dark blue}", "B", info=labelled).passed
    assert judge("\\boxed{green}", "(C) green", info=labelled).passed


def test_options_that_are_letters_themselves():
    assert judge("\\boxed{R}", "B", info={"options": ["P", "R", "I", "S", "M"]}).passed


@pytest.mark.parametrize("gold", ["AC", "A, C", "A and C", "(A)(C)", "['A', 'C']", "C、A"])
@pytest.mark.parametrize("answer", ["AC", "A, C", "C and A", "(A), (C)", "A、C", "[A, C]"])
def test_several_right_letters_are_all_needed(gold, answer):
    several = {"multiple": True}
    assert judge(f"\\boxed{{{answer}}}", gold, info=several).passed
    assert judge(f"\\boxed{{{answer}}}", "A, B, C", info=several).score == 0.0
    assert judge(f"\\boxed{{{answer}}}", "A", info=several).score == 0.0


def test_one_letter_or_another_is_hedging_among_several_as_well():
    verdict = judge("\\boxed{A or C}", "AC", info={"multiple": True})
    assert (verdict.score, verdict.reason) == (0.0, Reason.HEDGED)
    assert judge("\\boxed{A}", "A or C", info={"multiple": True}).reason is Reason.GOLD_UNPARSED
    assert judge("故选：A、C", "AC", info={"multiple": True}).passed


@pytest.mark.parametrize("info", [{"multiple": "yes"}, {"options": [1, 2]}, {"options": ["x"] * 27}])
def test_bad_options_are_no_verdict(info):
    assert judge("\\boxed{A}", "A", info=info).reason is Reason.VERIFIER_ERROR


def test_a_gold_letter_beyond_the_options_is_a_fault_of_the_data():
    assert judge("\\boxed{E}", "E", info=COLOURS).reason is Reason.GOLD_UNPARSED


def test_a_gold_that_is_no_letter_says_so():
    error = judge("\\boxed{8.5}", "8.5", info=COLOURS).evidence["error"]
    assert error == "gold is not one of the 3 options; if it is a value, use the verifier math"


@pytest.mark.parametrize(
    ("gold", "letters"), [("A,C", "AC"), ('["C", "A"]', "AC"), ("①③", "AC"), ("b", "B"), ("green", "C"), ("8.5", None)]
)
def test_the_type_of_a_gold_is_its_letters(gold, letters):
    assert gold_note(gold, "choice", COLOURS["options"]) == ("choice", letters)


def test_an_endless_answer_earns_nothing_instead_of_opting_out():
    verdict = judge("\\boxed{" + "C" * 10_000 + "}", "C")
    assert (verdict.score, verdict.reason) == (0.0, Reason.UNREAD)


@given(st.text(max_size=80), st.booleans())
def test_any_text_gets_a_verdict_without_an_error(text, multiple):
    assert judge(text, "C", info={"multiple": multiple, "options": ["40", text[:9], "x+1"]}).score in (0.0, 1.0)
    assert judge("\\boxed{C}", text, info={"multiple": multiple}).score in (0.0, 1.0, None)


def test_letters_behind_a_comma_are_several_answers():
    assert judge("The answer is C, a, b", "C").score == 0.0


CRIMSON = "Hint: answer with a letter.\nQuestion: Is Crimson the minimum?\nChoices:\n(A) yes\n(B) no"


@rows(
    "problem, response, letter",
    [
        (CRIMSON, "Crimson is not the minimum.", "B"),
        (CRIMSON, "Crimson isn't the minimum, as it has a value of 70.", "B"),
        (CRIMSON, "Thus, Crimson is the minimum.", "A"),
        ("Does the red line cross the axis?", "The red line crosses the axis.", "A"),
        ("Do cats outnumber dogs?", "Cats do not outnumber dogs.", "B"),
        ("Are there fewer cars than buses?", "There are fewer cars than buses.", "A"),
        ("Is the number of cars that are left less than 5?", "The number of cars left is less than 5.", "A"),
        (CRIMSON, "Crimson is the maximum.", ""),
        (CRIMSON, "Red is the minimum.", ""),
        (CRIMSON, "Is Crimson the minimum?", ""),
        (CRIMSON, "Is Crimson the minimum", ""),
        (CRIMSON, "It is not true that Crimson is the minimum.", ""),
        (CRIMSON, "Crimson may be the minimum.", ""),
        (CRIMSON, "Perhaps Crimson is the minimum.", ""),
        (CRIMSON, "Crimson is the minimum if x > 0.", ""),
        (CRIMSON, "Crimson is the minimum, but Red is lower.", ""),
        (CRIMSON, "Crimson is the minimum. Crimson is not the minimum.", ""),
        (CRIMSON, "Crimson is not not the minimum.", ""),
        ("Is A greater than B?", "B is greater than A.", ""),
        ("Is A greater than B?", "A is less than B.", ""),
        ("Are there fewer cars than buses?", "There are fewer buses than cars.", ""),
        ("Is red the top? Is blue the top?", "Blue is the top.", ""),
    ],
)
def test_a_statement_in_the_words_of_the_question_says_yes_or_no(problem, response, letter):
    info = {"options": ["yes", "no"]}
    scores = {gold: ChoiceVerifier()(response, gold, problem=problem, info=info).score for gold in "AB"}
    assert scores == {gold: float(gold == letter) for gold in "AB"}
    swapped = ChoiceVerifier()(response, "A", problem=problem, info={"options": ["No", "Yes"]})
    assert swapped.score == float(letter == "B")


VITAMINS = {"options": ["vitamin C", "vitamin D", "vitamin A", "vitamin B"]}


@pytest.mark.parametrize(
    "response",
    [
        "The answer is vitamin C.", "Answer: vitamin **C**", "\\boxed{\\text{note C}}", "So the answer is **grade C**.",
        "The musical note is C.", "The blood type is **C**.", "It is written in the programming language C.",
        "The chemical symbol is **C**.", "Answer: hepatitis C",
    ],
)  # fmt: skip
def test_a_letter_that_belongs_to_a_noun_is_no_option(response: str) -> None:
    assert judge(response, "C").score == 0.0
    assert judge(response, "C", info=COLOURS).score == 0.0


@pytest.mark.parametrize(
    "response",
    [
        "The best graph is option C.", "Answer: graph C", "The answer is statement C.", "Answer: definitely C",
        "Answer key: C", "The answer is point C.", "The answer is scenario C.", "My final mark: C",
    ],
)  # fmt: skip
def test_a_letter_after_a_noun_of_options_is_chosen(response: str) -> None:
    assert judge(response, "C").score == 1.0


@pytest.mark.parametrize("response", ["C?", "(C)?", "Yes?"])
def test_an_option_with_a_question_mark_is_not_chosen(response: str) -> None:
    assert judge(response, "C", info={"options": ["No", "Perhaps", "Yes"]}).score == 0.0


def test_vitamin_c_is_the_option_with_this_text() -> None:
    assert judge("The answer is vitamin C.", "A", info=VITAMINS).score == 1.0
    assert judge("The answer is vitamin C.", "C", info=VITAMINS).score == 0.0
    symbols = {"options": ["Fe", "C", "Au", "Ag"]}
    assert judge("The symbol of the most expensive metal: it is C", "C", info=symbols).score == 0.0
    assert judge("The answer is (C).", "C", info=symbols).score == 1.0


@pytest.mark.parametrize(
    "response",
    [
        "Wait, that is not correct. The sum is wrong.", "Hmm, no, the statement is wrong.", "No, that was wrong.",
        "Let me recheck. 3*4 = 12. So it is not correct.", "Sorry, I take that back.", "I was mistaken.",
        "On reflection, it is not.", "I changed my mind.", "Actually, that is incorrect.",
    ],
)  # fmt: skip
@pytest.mark.parametrize("between", [" ", "\n\n"])
def test_a_verdict_that_is_taken_back_is_no_answer(response: str, between: str) -> None:
    for verdict, other in (("Correct", "Incorrect"), ("Yes", "No"), ("True", "False")):
        assert judge(f"{verdict}.{between}{response}", "A", info={"options": [verdict, other]}).score == 0.0


@pytest.mark.parametrize(
    "response",
    [
        "The sum holds.", "There is nothing wrong with the reasoning.", "If it were 6, it would be wrong.",
        "No error is found.", "I hope this helps!", "A wrong reading would use 3.",
        "However, it is not true for negative numbers.", "But it would be wrong to generalize.",
    ],
)  # fmt: skip
def test_a_verdict_stands_beside_other_remarks(response: str) -> None:
    for verdict, other in (("Correct", "Incorrect"), ("True", "False")):
        assert judge(f"{verdict}.\n\n{response}", "A", info={"options": [verdict, other]}).score == 1.0
    assert judge("Incorrect.\n\nTherefore it is wrong.", "B", info={"options": ["Correct", "Incorrect"]}).score == 1.0


@pytest.mark.parametrize(
    "retraction",
    [
        "Wait, B is wrong, so it is D.", "Actually it is D.", "No, D.", "Sorry, I meant D.", "Correction: D.",
        "Oops, I misread; D.", "Hmm, on second thought, the answer should be D", "等等，应该是D。",
    ],
)  # fmt: skip
def test_a_later_paragraph_may_replace_the_option(retraction: str) -> None:
    assert judge(f"The answer is B.\n\n{retraction}", "D").score == 1.0
    assert judge(f"The answer is B.\n\n{retraction}", "B").score == 0.0


@pytest.mark.parametrize(
    "remark",
    [
        "A, C and D are wrong.", "Note that D is right only if n is odd.", "Wait, is D right? No. B it is.",
        "Actually C and D are both wrong.", "Actually, this follows from the theorem of Gauss.",
        "Actually, mitosis (A) also divides cells.", "Sorry for the brevity! C and D are transport processes.",
    ],
)  # fmt: skip
def test_a_later_paragraph_may_discuss_other_options(remark: str) -> None:
    assert judge(f"The answer is B.\n\n{remark}", "B").score == 1.0
