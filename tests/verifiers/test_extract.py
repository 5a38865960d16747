"""Which answer a response commits to."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truegold.verifiers import committed_answer
from truegold.verifiers.extract import MAX_SCANNED_CHARS


def answer(response: str) -> str | None:
    found = committed_answer(response)
    return found.text if found else None


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (r"So \boxed{7}.", "7"),
        (r"\boxed{\frac{1}{\sqrt{2}}}", r"\frac{1}{\sqrt{2}}"),
        (r"\fbox{7}", "7"),
        (r"\boxed {7}", "7"),
        (r"\boxed{\left\{1,2\right\}}", r"\left\{1,2\right\}"),
        (r"First \boxed{4}, corrected: \boxed{5}", "5"),
        (r"\boxed{\boxed{5}}", r"\boxed{5}"),
        (r"\boxed{}", None),
        (r"It is \boxed{12", None),
        (r"The answer is \boxed{\frac{1}{2}", None),
        (r"\boxed{3} and then \boxed{4", "3"),
        (r"<think>maybe \boxed{1}</think> It is \boxed{2}", "2"),
        (r"<think>\boxed{1}</think> I cannot tell you.", None),
        (r"<think>a</think>b</think> \boxed{3}", "3"),
        ("6 * 7 = 42\n#### 42", "42"),
        ("#### 42\nLet me know if you need more.", "42"),
        ("#### Step 2\nand then I stopped thinking about it", None),
        ("##### 5\nthen the proof goes on for long", None),
        ("The answer is 12.", "12"),
        ("The final answer is $x = 3.5$. I hope that helps.", "$x = 3.5$"),
        ("Final Answer: The final answer is $5$. I hope it is correct.", "$5$"),
        ("**Answer:** 12", "12"),
        ("**Answer**: 12", "12"),
        ("**Final Answer**\n\n12", "12"),
        ("Answer:\n12", "12"),
        ("The answer is 3.\nNo wait, the answer is 4.", "4"),
        ("some steps that lead there\nA: 12", "12"),
        ("所以答案是12。", "12"),
        ("答案为：12", "12"),
        ("答案：$\\frac12$", "$\\frac12$"),
        ("42", "42"),
        ("$\\frac{3}{4}$", "$\\frac{3}{4}$"),
        ("5 apples", "5 apples"),
        ("x = 5", "x = 5"),
        ("Yes", "Yes"),
        ("I do not know that", None),
        ("There are 5 apples and they cost 6 dollars", None),
        ("", None),
        ("   \n", None),
    ],
)
def test_committed_answer(response, expected):
    assert answer(response) == expected


def test_a_factorial_keeps_its_mark():
    assert answer("The answer is 5!") == "5!"


@settings(max_examples=300)
@given(st.text(max_size=300))
def test_random_text_never_raises(text):
    committed_answer(text)


MARKS = r"\boxed{ \fbox{ { } \{ \ #### answer_is_ Answer: A: 答案 5 $ </think> ** ."
MARKUP = st.lists(st.sampled_from([" ", "\n", *MARKS.split()]), max_size=60).map(lambda m: "".join(m).replace("_", " "))


@settings(max_examples=500)
@given(MARKUP)
def test_random_markup_never_raises_and_yields_part_of_the_response(text):
    found = committed_answer(text)
    assert found is None or (found.text and found.text in text)


@given(st.from_regex(r"[0-9a-z+\-^ ]{1,30}", fullmatch=True).filter(str.strip), st.text(max_size=100))
def test_a_final_box_wins_over_whatever_came_before(content, before):
    before = before.replace("\\", "")
    assert answer(f"{before} \\boxed{{{content}}}") == content.strip()


@pytest.mark.parametrize(
    "attack",
    [
        "\\boxed{" * 60_000,
        "{" * MAX_SCANNED_CHARS,
        "\\boxed{" + "{}" * 150_000,
        "answer" * 60_000,
        "Answer:\n" * 50_000,
        "the answer is " * 30_000,
        "#### " * 80_000,
        "####\n" * 80_000,
        "答案" * 200_000,
        "A: " * 130_000,
        "$" * MAX_SCANNED_CHARS,
        " " * MAX_SCANNED_CHARS + "x",
        "answer " + "*" * MAX_SCANNED_CHARS,
        "The answer is " + ". " * 900,
        "<" * MAX_SCANNED_CHARS * 4,
    ],
    ids=lambda attack: attack[:12],
)
def test_hostile_responses_cost_little(attack):
    start = time.process_time()
    committed_answer(attack)
    assert time.process_time() - start < 2.0
