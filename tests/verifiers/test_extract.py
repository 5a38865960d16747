"""Which answer a response commits to. The cases, written for truegold, are in `extract_cases.json`."""

import json
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from property_tests import examples
from real_data import real_data
from tables import rows

from truegold.verifiers import committed_answer
from truegold.verifiers.extract import final_part, last_line
from truegold.verifiers.extract.committed import MAX_SCANNED_CHARS

CASES = json.loads(Path(__file__).with_name("extract_cases.json").read_text())


def answer(response: str, several: bool = False) -> str | None:
    """Return the text of the committed answer."""
    committed = committed_answer(response, several=several)
    return committed.text if committed else None


@rows("case", CASES)
def test_the_committed_answer_and_its_form(case):
    committed = committed_answer(case["response"], several=case.get("several", False))
    assert (committed and committed.text, committed and committed.form) == (case["text"], case["form"])


@rows(
    "response, value",
    [
        ("The answer is 8 Half Moon Grass.", "8"),
        ("She sold 6 Half Dome posters.", "6"),
        ("There are 10 Quarter Horse foals.", "10"),
        ("Answer: 5 Third Avenue houses", "5"),
        ("It weighs 2 Kilograms.", "2 Kilograms"),
    ],
)
def test_a_name_that_begins_with_a_part_is_no_unit(response: str, value: str) -> None:
    assert answer(response) == value


def test_case_ids_are_unique():
    assert len({case["id"] for case in CASES}) == len(CASES)


def test_the_final_part_is_what_stands_after_the_thinking():
    assert final_part("<think> 4? </think>\n It is 5. \n") == "It is 5."
    assert final_part("<think> 4? ") == ""
    assert last_line("a\n **b** \n\n") == "b"


numbers = st.integers(-(10**6), 10**6)
prose = st.text(st.characters(exclude_characters="\\<#[◁", exclude_categories=["Cs"]), max_size=100)


@given(st.from_regex(r"[0-9a-z+\-^ ]{1,30}", fullmatch=True).filter(str.strip), prose)
def test_a_final_box_wins_over_whatever_came_before(content, before):
    assert answer(f"{before} \\boxed{{{content}}}") == content.strip()


@given(numbers, numbers)
def test_of_two_boxes_with_a_correction_between_the_last_one_counts(first, last):
    assert answer(f"So \\boxed{{{first}}}. Wait, no.\n\nIt is \\boxed{{{last}}}.") == str(last)


@given(
    st.lists(numbers, min_size=2, max_size=6, unique=True), st.sampled_from([" or ", " and ", ", ", r" \text{ or } "])
)
def test_unequal_boxes_side_by_side_come_out_together(values, connective):
    text = connective.join(f"\\boxed{{{value}}}" for value in values)
    joined = answer(f"The result is {text}.")
    assert joined is not None
    assert all(str(value) in joined for value in values)
    assert answer(text, several=True) == ", ".join(map(str, values))


@given(prose, numbers)
def test_thinking_is_never_read(thinking, value):
    assert answer(f"<think>{thinking} \\boxed{{7}} the answer is 8</think>The answer is {value}.") == str(value)
    assert answer(f"<think>{thinking} \\boxed{{{value}}}") is None


@given(numbers, numbers)
def test_what_follows_in_the_next_problem_does_not_count(value, other):
    ramble = f"\n\nQuestion: How many are left?\nThe answer is {other}. So \\boxed{{{other}}}."
    assert answer(f"The answer is {value}.{ramble}") == str(value)
    assert answer(f"So it is \\boxed{{{value}}}.{ramble}") == str(value)


@given(numbers, numbers)
def test_two_values_that_a_last_sentence_joins_are_not_one(first, second):
    assert answer(f"We add them up.\nThe total is {first} or {second}.") == f"{first} or {second}"


@settings(max_examples=examples(300))
@given(st.text(max_size=300))
def test_random_text_never_raises(text):
    committed_answer(text)
    committed_answer(text, several=True)


MARKS = (
    r"\boxed{ \boxed \fbox{ { } \{ \ \( \) \[ \] $ $$ ** . ? 。 = is or and , 5 x 1,000 √ ( ) #### answer_is_ Answer:"
    " A: 答案 答案是 所以 是 故选 답은 千米 <answer> </answer> <think> </think> <|begin_of_box|> <|end_of_box|> </s>"
    " Question:"
)
MARKUP = st.lists(st.sampled_from([" ", "\n", *MARKS.split()]), max_size=60).map(lambda m: "".join(m).replace("_", " "))


@settings(max_examples=examples(1000))
@given(MARKUP, st.booleans())
def test_random_markup_never_raises_nor_yields_an_empty_answer(text, several):
    committed = committed_answer(text, several=several)
    assert committed is None or committed.text.strip()


@rows(
    "attack",
    [
        "\\boxed{" * 60_000,
        "{" * MAX_SCANNED_CHARS,
        "\\boxed{" + "{}" * 150_000,
        "\\boxed{5}, " * 30_000,
        "answer" * 60_000,
        "Answer:\n" * 50_000,
        "the answer is " * 30_000,
        ("The answer is " + "\\(" * 900 + "\n") * 200,
        ("the answer to " + "a " * 900 + "\n") * 200,
        ("respuesta " * 190 + "\n") * 200,
        "#### " * 80_000,
        "####\n" * 80_000,
        "答案" * 200_000,
        "A: " * 130_000,
        "$" * MAX_SCANNED_CHARS,
        "So it is " + "$a" * 900,
        "So it is " + "1 " * 900,
        "So it is 5" + " " * 1_900 + "x",
        " " * MAX_SCANNED_CHARS + "x",
        "answer " + "*" * MAX_SCANNED_CHARS,
        "The answer is " + ". " * 900,
        "\nQuestion: x" * 33_000,
        "<think>" * 60_000,
        "\ud800" * MAX_SCANNED_CHARS,
        "\0The answer is 5\0" * 20_000,
        "<" * MAX_SCANNED_CHARS * 4,
    ],
)
def test_hostile_responses_come_to_an_end(attack):
    committed_answer(attack)


def test_nearly_every_right_response_of_the_corpora_commits_to_an_answer():
    with real_data("math/responses.jsonl").open() as lines:
        right = [row["response"] for row in map(json.loads, lines) if row["correct"]]
    silent = sum(committed_answer(response) is None for response in right)
    assert silent <= len(right) * 0.001
