"""Answers behind a bracketed word and before a token that ends them; sentences that deny the value in them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tables import rows

from truegold.verifiers import committed_answer, resolve
from truegold.verifiers.extract.denials import is_denied, is_withheld

ANSWERS = {
    "【答案】3": "3",
    "解：……\n【答案】：$\\frac{1}{2}$<eoa>": "$\\frac{1}{2}$",
    "〖正确答案〗B": "B",
    "［答案］: 12": "12",
    "（答案）20": "20",
    "<答案> 3 </答案>": "3",
    "【答案：36】": "36",
    "[Answer: 36]": "36",
    "答案是【B】": "B",
    "[Answer] 19": "19",
    "**[Final Answer]** 17": "17",
    "[ANS] 3/8": "3/8",
    "[ANSWER: 5]": "5",
    "【答 案】12": "12",
    "【答え】$x=5$": "$x=5$",
    "[정답] 45": "45",
    "【答案】4\n验算有误。\n【答案】5": "5",
    "【答案】B 【解析】A 项错误；C 项应为 9。": "B",
    "【答案】8\n【难度】0.65\n【分值】5分": "8",
    "【解答】4 加 3，一共 7 个苹果。": "7 个苹果",
    "\\boxed{7}<eoa>": "7",
    "The answer is 5.</s></s>": "5",
}

DENIALS = (
    "The answer isn't 5.",
    "The answer isn’t 5.",
    "So the answer cannot be 5.",
    "Thus 5 is incorrect.",
    "This rules out 5.",
    "There is no way that the answer is 5.",
    "I don't think the answer is 5.",
    "The answer is not $\\boxed{5}$.",
    "\\boxed{5}\n\nScratch that. This is wrong.",
    "Answer: 5 (this is wrong)",
    "I would say 5, but that can't be right.",
    "A careless student would answer 5.",
    "So the total is less than 5.",
    "The answer is 5 if n is even, and 6 if n is odd.",
    "If the rate had stayed the same, it would have been 5.",
    "The problem does not provide enough information to determine f(5).",
    "I tried 5 methods and none worked.",
    "I have tried for 5 minutes and I give up.",
    "I don't know, maybe 5.",
    "It exceeds 5.",
    "5 is ruled out.",
    "The result is different from 5.",
    "It would be wrong to say 5.",
    "Nobody would answer 5 here.",
    "There is no solution with x = 5.",
    "I ran out of time at step 5.",
    "5は正しくない。",
    "Η απάντηση δεν είναι 5.",
    "La respuesta no es 5.",
    "La réponse n'est pas 5.",
    "Die Antwort ist nicht 5.",
    "Ответ не равен 5.",
    "답은 5가 아닙니다.",
    "答えは5ではない。",
    "所以不可能是5。",
    "题目条件不足，无法求出第 5 项。",
)

STATEMENTS = (
    "The answer is not 4 but 5.",
    "No es 4, sino 5.",
    "答えは4ではなく5です。",
    "It isn't hard to see that the answer is 5.",
    "It cannot be 4, so the answer is 5.",
    "x = -3 is impossible since lengths are positive, hence x = 5.",
    "So we get 5 rather than 4.",
    "Answer: 5 (not 6)",
    "The answer does not depend on n: it is always 5.",
    "You need at least 5 socks to be sure of a pair, so the answer is 5.",
    "At first there seems to be not enough information, but the area is 5.",
    "There is no remainder, so it is 5.",
    "The answer is 5, isn't it?",
    "不难得出答案是5。",
    "So 5 students did not pass.",
    "The number of students who do not play is 5.",
    "The smallest number that does not divide 24 is 5.",
    "The number of wrong answers is 5.",
    "5 statements are false.",
    "The lines do not intersect when m = 5.",
    "The answer is 5, because 15 does not divide 100.",
    "x = 5, since x = -5 is rejected.",
    "The minimum is 5 since it cannot be less than 5.",
    "The answer is 5, which may not be obvious but is correct.",
    "Answer: x = 5 (x = -1 is extraneous)",
    "Since order doesn't matter there are 5 ways.",
    "The answer is not 4, it is 5.",
    "So the unknown number is 5.",
    "The problem does not state r, yet the ratio is 5.",
    "Giving up coffee saves him 5 dollars.",
    "Tom couldn't solve 5 problems.",
    "None of the other options works, leaving 5.",
    "The number of people who said yes is 5.",
    "Many students would say 6, but the answer is 5.",
    "The maximum cannot exceed 5.",
    "Chaque pas mesure 5 cm.",
    "The minimum is 5, so it cannot be less than 5.",
    "The answer is 5 (cannot be reduced).",
    "If his brother eats 1/2 as many, he eats 10 * 1/2 = 5 in a week.",
    "Réponse : 5 élèves ne jouent pas.",
    "No hay otras soluciones, por lo tanto x = 5.",
    "所以没有参加的学生有5人。",
    "答案是5，因为15不是质数。",
    "Is it 4? No, it's not: \\boxed{5}",
    "\\boxed{5}. I made a mistake at first, but this value is checked.",
)

NOT_PAID = (
    "The answer is \\boxed{7}. A common mistake is to give [answer: 5].",
    "The answer is 4, and I do not doubt it, but 5 is what my friend got.",
    "So the total is 4, but I checked 5 times.",
    "Tom has 4, but Jane has 5.",
    "答えは4ではなく、5ではない。",
    "Incorrect: 5",
    "The answer is 【5】4 or 6",
)


@rows("response", ANSWERS)
def test_an_answer_stands_behind_a_bracketed_word_and_before_a_token(response):
    committed = committed_answer(response)
    assert committed is not None
    assert committed.text == ANSWERS[response]


@rows("response", DENIALS)
def test_a_value_that_is_denied_or_withheld_is_no_answer(response):
    assert resolve("math")(response, "5").score == 0.0


@rows("response", STATEMENTS)
def test_a_value_in_a_sentence_with_another_denial_is_the_answer(response):
    assert resolve("math")(response, "5").score == 1.0


@pytest.mark.parametrize("response", NOT_PAID)
def test_a_value_beside_the_answer_is_not_paid(response):
    assert resolve("math")(response, "5").score == 0.0


@pytest.mark.parametrize("verifier", ["math", "numeric"])
@pytest.mark.parametrize(
    "response",
    [
        "<!-- The answer is 5. -->", "<!--\n\\boxed{5}\n-->", "The answer is 6. <!-- Answer: 5", "<del>5</del>",
        "~~The answer is 5.~~", "~~\\boxed{5}~~", "\\iffalse \\boxed{5} \\fi",
        "The answer is 5. Alternatively, 6.", "The answer is 5. It could also be 6.", "The answer is 5. Psych!",
        "The answer is 5. Another possibility is 6.", "The answer is 5. But 6 is also correct.",
        "The answer is 5. The opposite is true.", "The answer is 5. We must still double it.",
        "As an example, the answer is 5.", "Sample output: The answer is 5.", "An example of an answer: 5",
        "The answer is 5 according to Bob.", "The answer is 5 for a different problem.",
        "> The answer is 5.\n\nThat quote is wrong.",
    ],
)  # fmt: skip
def test_a_hidden_or_replaced_value_is_not_paid(response: str, verifier: str) -> None:
    assert resolve(verifier)(response, "5").score == 0.0


@pytest.mark.parametrize("verifier", ["math", "numeric", "exact"])
@pytest.mark.parametrize(
    "response",
    [
        "Answer: 5 <!-- done -->", "~~6~~ 5", "Answer: ~~6~~ 5", "<answer><del>6</del> 5</answer>",
        "The answer is 5. Alternatively, 10/2 = 5.", "The answer is 5. It may be noted that the sum is even.",
        "The answer is 5. But 6 is too large.", "As an example, take n=2. The answer is 5.",
        "The answer is 5. We should still add that this is exact.",
        "The answer is 5. The other candidate, 6, is excluded.",
        "`<!--` opens a comment. The answer is 5.",
    ],
)  # fmt: skip
def test_a_value_beside_hidden_text_or_a_remark_is_paid(response: str, verifier: str) -> None:
    assert resolve(verifier)(response, "5").score == 1.0


def test_an_option_may_say_that_nothing_can_be_determined():
    for response in ("The answer is (D) not enough information.", "The correct answer is D) Cannot be determined."):
        assert resolve("choice")(response, "D").score == 1.0
    assert resolve("choice")("【答案】D选项正确", "D").score == 1.0
    assert resolve("choice")("Options A and C do not work, but option B does.", "B").score == 1.0


def test_that_there_is_no_solution_is_an_answer_and_no_number_in_its_sentence():
    response = "Both sides reduce to 0 = 1, so there is no solution."
    assert resolve("math")(response, "no solution").score == 1.0
    assert resolve("math")(response, "1").score == 0.0


def test_denials_are_looked_for_in_the_clause_of_the_value():
    assert is_denied("x is not 5, it is 7", "5")
    assert not is_denied("x is not 5, it is 7", "7")
    assert not is_denied("x is 7", "9")
    assert is_withheld("the problem does not say how old he is")
    assert not is_withheld("the problem does not say how old he is, but he is 7")


def fresh(name):
    """Return the cases of an author who had read the documentation and not the code; `want` is his."""
    text = Path(__file__).with_name(f"fresh_{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


NOT_COVERED = {"token glued to e", "token numeric"}


@rows("case", [*fresh("marks"), *fresh("denials")])
def test_responses_of_another_author(case):
    verdict = resolve(case["verifier"])(case["response"], case["gold"], info=case["info"])
    assert (verdict.score == case["want"]) == (case["name"] not in NOT_COVERED), verdict


def sentences():
    """Return the lines of the table: whether the response is paid, its verifier, its gold, and the response.

    `-` is not to be paid and `+` is; `?` marks a line that is not covered.
    """
    lines = Path(__file__).with_name("sentences.txt").read_text(encoding="utf-8").splitlines()
    for line in lines:
        sign, verifier, gold, response = line.split(" ", 3)
        if "?" not in sign:
            # A command such as `\\neq` is no line break.
            yield sign == "+", verifier, gold, re.sub(r"(?:\\n){2}|\\n(?=Answer)", "\n\n", response)


@rows("paid, verifier, gold, response", list(sentences()))
def test_a_sentence_is_read_before_it_is_paid(paid, verifier, gold, response):
    info = {"options": ["Paris", "Rome", "Madrid", "Lisbon"]} if verifier == "choice" else {}
    assert (resolve(verifier)(response, gold, info=info).score == 1.0) == paid
