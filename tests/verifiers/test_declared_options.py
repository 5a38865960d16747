"""Options that a response declares further up, above reasons or remarks on other options."""

from __future__ import annotations

import pytest

from truegold.verifiers import verify

C_DECLARED = [
    "The correct sequence is **C. Zn, KOH**.\n\nWhy other options are incorrect:\n* **A:** No.\n* **B:** No.",
    "The most plausible explanation is:\n\nC. At promoters\n\nThis is because the cross-linker is longer.",
    "The correct sequence is **Option C**:\n\n**C. Zn, KOH**\n\nIt fits.\n\n**Why other options are incorrect:**\n\n"
    "* **Option A:** It is incorrect.\n* **Option B:** It is incorrect.\n* **Option D:** The order is incorrect.\n\n"
    "Let me know if you have any other questions!",
    "So the compound is the epoxide (Option C).\n\nThe reaction would open the ring.",
    "Therefore, the final product is the acetal (Option C).\n\n**Explanation for why other options are incorrect:**\n\n"
    "* **A and B (a triketone):** These options need a ring.\n* **D (the acid):** This option suggests an oxidation.",
    "**The Answer:**\n\n**C. Cold medium.**\n\n**Why other options are less likely:**\n\n* Hot gas shines.",
    "The mass is\n\\[\\boxed{0.85}\\]\n\nSo the correct option is:\n\nC. 0.85\n",
    "Our options:\nA. tin: soft\nB. lead: heavy\nC. iron: fits\nD. gold: dear\n\nThe correct answer is C. iron",
    "Our options:\nA. This is false.\nB. This is false.\nC. It holds.\n\nTherefore, the correct answer is C.",
    "The only option that satisfies both conditions is **C. 138 m**.\n\nNote that the masses cancel.",
    "The best answer here is **C. First you culture it.** Here's why: it grows fast.\n\nCulturing is cheap.",
    "The correct procedure is **Option C**:\n\nIt avoids the side product, which the first step would form.",
    "The compound that matches the data is:\n\nC. ethyl benzoate\n\nThis compound has an ester group.",
    "Here's the breakdown and the correct answer:\n\n**Step 1**\n\n* **D. y:** It should not hold.\n\n"
    "**Therefore, the correct structure is **C. x**.",
    "The correct answer is:\n\nB. 2 peaks\n\nHowever, this is not available. The closest correct answer is:\n\nC. 4\n\n"
    "It is the best choice.",
]
NOTHING_DECLARED = [
    "The most common wrong answer is **C. Zn**.\n\nIt forgets the acid.",
    "A student says the correct answer is **C. Zn**.\n\nHe forgets the acid.",
    "If the ring opens, the most likely product is C. the acid.\n\nWe cannot know.",
    "The correct answer is not **C. Zn**.\n\nIt is too dear.",
    "The most likely product might be **C. Zn**.\n\nWe would have to check.",
    "The least likely product is **C. Zn**.\n\nIt is slow.",
    "The most likely product is **C. Zn**. However, this option seems to be wrong.\n\nWe stop.",
    "The best distractor is **C. Zn**.\n\nThe metal is D.",
    "Therefore the question is: C. Zn?\n\nIt dissolves.",
    "So what remains is C. Zn and D. Pb\n\nBoth dissolve.",
    "So the metal is zinc (Option C) or lead (Option D).\n\nThe reaction needs heat.",
    "Thus iron is weaker than zinc (Option C).\n\nHence the metal may be lead.",
    "Options:\n\nA. tin\nB. lead\nC. iron\n\nI cannot decide.",
    "It may be that the correct answer is **C. iron**.\n\nThe scales would tell.",
    "The likely cause is **A. x rays**.\n\nThe most likely cause is **C. light**.\n\nThe sample was cold when it came.",
]
TWO_NAMED = [
    "The most likely answer is either B. 4 or C. 8.",
    "The answer is B. 4 or C. 8.",
    "The correct answer is **C. ((R)-2)benzene** or **B. ((S)-2)benzene**.",
    "The correct answer is C. iron or, less likely, B. tin.",
    "The answer is C or possibly B.",
]


@pytest.mark.parametrize("response", C_DECLARED)
def test_the_declared_option_is_the_answer(response: str) -> None:
    assert verify(response, gold="C", verifier="choice").score == 1.0
    assert all(verify(response, gold=other, verifier="choice").score == 0.0 for other in "ABD")


@pytest.mark.parametrize("response", NOTHING_DECLARED)
def test_a_doubted_or_replaced_option_is_not_declared(response: str) -> None:
    assert verify(response, gold="C", verifier="choice").score == 0.0


@pytest.mark.parametrize("response", TWO_NAMED)
@pytest.mark.parametrize("verifier", ["choice", "math"])
def test_an_option_or_another_one_is_a_hedge(response: str, verifier: str) -> None:
    assert all(verify(response, gold=gold, verifier=verifier).score != 1.0 for gold in "BC")


def test_the_only_false_statement_is_no_declaration_where_the_false_one_is_asked() -> None:
    response = "The only true statement is **C. Wool is protein**.\n\nIt is not metal."
    problem = "Which statement is NOT true?"
    assert verify(response, gold="C", verifier="choice", problem=problem).score == 0.0


@pytest.mark.parametrize(
    "response",
    [
        "Correct. \nThe answer is: 100 pounds.",
        "Judgement: Correct\n\nThe answer is: 16 times.",
        "**Correct**\n\nThe answer is: x = 1",
        "The answer is: Correct. The right value is 40 degrees.",
        "Correct. The sum holds, since all steps do.\n\nThe answer is: 6 units",
        "## Judgement\nCorrect\n\nThe answer is: $5",
        "Verdict: **Correct.**\nThe answer is: 20 cars drove by.",
        "The judgement is: Correct\nThe answer is: 5",
        "correct\nThe answer is: 26 slices were eaten.",
        "Label: Correct.\n\nThe answer is: \\boxed{70}",
    ],
)
def test_an_option_in_words_that_opens_a_line_is_chosen_if_the_announced_value_is_no_option(response: str) -> None:
    info = {"options": ["Correct", "Incorrect"]}
    assert verify(response, gold="Correct", verifier="choice", **info).score == 1.0
    assert verify(response, gold="Incorrect", verifier="choice", **info).score == 0.0


@pytest.mark.parametrize(
    "response",
    [
        "Correct\nThe answer is: Incorrect",
        "Correct\n\nIncorrect\n\nThe answer is: 5",
        "Correct the error first.\nThe answer is: 5",
        "It is not correct.\nThe answer is: 5",
        "Not: Correct\n\nIt fails.",
        "Opposite: Correct\n\nIt fails.",
        "Arithmetic: Correct\nLogic: flawed\nIt fails.",
    ],
)
def test_two_options_or_a_longer_sentence_choose_none(response: str) -> None:
    assert verify(response, gold="Correct", verifier="choice", options=["Correct", "Incorrect"]).score == 0.0


@pytest.mark.parametrize(
    ("response", "gold"),
    [
        (
            "The answer is: Incorrect. \n\nStep 1: 10.\n\nTherefore, the correct answer is 17 stickers, not 18.",
            "Incorrect",
        ),
        ("Judgement: Incorrect\n\nSo the correct value is 5.", "Incorrect"),
        ("The answer is: Incorrect\n\nThe correct calculation is 3 + 5, so the correct sum is 8.", "Incorrect"),
        ("The solution is incorrect.", "Incorrect"),
        ("The given answer of 48 is correct.", "Correct"),
        ("48 is the correct answer.", "Correct"),
        ("Therefore, the solution's final answer is correct.", "Correct"),
        ("So the correct total is 48.", None),
        ("The correct answer is 48.", None),
        ("An incorrect step leads to 5.", None),
    ],
)
def test_a_judgement_beside_a_noun_judges_nothing(response: str, gold: str | None) -> None:
    options = ["Correct", "Incorrect"]
    paid = [name for name in options if verify(response, gold=name, verifier="choice", options=options).score == 1.0]
    assert paid == ([gold] if gold else [])


@pytest.mark.parametrize(
    ("response", "gold", "score"),
    [
        ("The answer is: **7 dozen eggs**.", "7", 1.0),
        ("She uses 7 dozens of eggs.", "7", 1.0),
        ("\\boxed{7\\text{ dozen}}", "7", 1.0),
        ("2.5 dozen", "2.5", 1.0),
        ("7", "7", 1.0),
        ("The answer is 8 dozen.", "7", 0.0),
        ("The answer is 7 hundred.", "7", 0.0),
        ("A: 84", "7", 0.0),
        ("84 eggs", "7", 0.0),
        ("84 dozens of eggs", "7", 0.0),
        ("84 dozen", "7", 0.0),
        ("$84", "7", 0.0),
    ],
)
def test_dozens_are_counted_where_they_are_asked_for(response: str, gold: str, score: float) -> None:
    assert verify(response, gold=gold, problem="How many dozens of eggs does she use?").score == score
