"""Answers that are not read are told from wrong ones and from none, and a form that is not read is said."""

from __future__ import annotations

import pytest
from tables import rows

from truegold.verifiers import Item, Reason, Verdict, verify
from truegold.verifiers.extract import ends_with_value, names_gold
from truegold.verifiers.running import unread_tally
from truegold.verifiers.running.batch import verify_one
from truegold.verifiers.running.unread_tally import FEWEST, UnreadTally


@rows(
    "response, holds",
    [
        ("Together seventy-two dollars it is.", True),
        ("<respuesta>72</respuesta>", True),
        ("| Total | 72 |", True),
        ("\\begin{align*} T &= x^2 \\end{align*}", True),
        ("I am sorry, I cannot work that out.", False),
        ("There is not enough information to find f(0).", False),
        ("One of them is the first.", False),
        ("<think> 12 + 13 is 25, so", False),
        ("", False),
    ],
)
def test_a_value_at_the_end_may_be_an_answer(response: str, holds: bool) -> None:
    assert ends_with_value(response) is holds


def test_numbers_of_the_problem_are_no_answer() -> None:
    assert not ends_with_value("Tom has 5 apples and 7 pears. How many?", "Tom has 5 apples and 7 pears.")
    assert ends_with_value("Tom has 5 apples and 7 pears. 12 of them.", "Tom has 5 apples and 7 pears.")


@rows(
    "response, gold, names",
    [
        ("all in all seventy-two dollars", "72", True),
        ("all in all seventy-two dollars", "7", False),
        ("a total of 1,250.50 euros", "1250.5", True),
        ("a total of 1725 euros", "72", False),
        ("the share is \\frac{3}{4} of it", "0.75", True),
        ("一共二十五个", "25", True),
        ("综上，选项为 C 项。", "C", True),
        ("Clearly Carl Could", "C", False),
        ("we get $x^2 + 1$ there", "x^{2}+1", True),
        ("the capital is Paris then", "Paris", True),
        ("72 apples." + " and so on" * 100, "72", False),
        ("72", None, False),
        ("- smaller: 26\n- larger: 40", "26, 40", True),
        ("- smaller: 26\n- larger: 41", "26, 40", False),
        ("it is 1250 then", "1,250", True),
        ("x is 3 and y is 5", "(3, 5)", True),
    ],
)
def test_gold_is_found_at_the_end_by_its_value_or_its_letters(response: str, gold: str | None, names: bool) -> None:
    assert names_gold(response, gold) is names


@rows(
    "verifier, response, gold, reason",
    [
        ("math", "So altogether seventy-two dollars it is.", "72", Reason.UNREAD),
        ("math", "\\boxed{result \\to 72 dollars}", "72", Reason.UNREAD),
        ("math", "Final result → 72 km. It took 2 steps and 49 seconds.", "72", Reason.UNREAD),
        ("math", "| All eggs | 72 |", "72", Reason.UNREAD),
        ("math", "\\boxed{\\text{blue}}", "72", Reason.MISMATCH),
        ("math", "- smaller number: 26\n- larger number: 40", "26, 40", Reason.UNREAD),
        ("math", "(a) So the larger one is 40.\n\n(b) So the smaller one is 26.", "26, 40", Reason.UNREAD),
        ("math", "So the smaller one is 26.", "26, 40", Reason.MISMATCH),
        ("math", "The answer is 73.", "72", Reason.MISMATCH),
        ("math", "\\boxed{73}, which is near 72.", "72", Reason.MISMATCH),
        ("math", "I do not know.", "72", Reason.NO_ANSWER),
        ("numeric", "It is seventy-two.", "72", Reason.UNREAD),
        ("numeric", "No idea.", "72", Reason.NO_ANSWER),
        ("choice", "We argue as in C.", "C", Reason.UNREAD),
        ("choice", "Nothing speaks against C here.", "C", Reason.UNREAD),
        ("choice", "It could be C", "C", Reason.UNREAD),
        ("choice", "\\boxed{B}", "C", Reason.MISMATCH),
        ("choice", "No idea at all.", "C", Reason.NO_ANSWER),
        ("exact", "I would say that the capital city is called Paris, of course!", "Paris", Reason.UNREAD),
        ("exact", "I would say that it is London, of course!", "Paris", Reason.MISMATCH),
    ],
)
def test_the_reason_tells_an_unread_answer_from_a_wrong_one(
    verifier: str, response: str, gold: str, reason: Reason
) -> None:
    verdict = verify_one(Item(response, gold, verifier))
    assert (verdict.score, verdict.reason) == (0.0, reason), verdict


def test_a_value_that_is_no_option_is_a_wrong_answer() -> None:
    options = {"options": ["40", "41", "42"]}
    assert verify_one(Item("\\boxed{43}", "C", "choice", options)).reason is Reason.MISMATCH


def tally_of(responses: list[tuple[str, str, str]], *, ended: bool = True) -> tuple[UnreadTally, list[str]]:
    """Count (problem, response, gold) after one another; return the lines that came meanwhile."""
    tally, lines = UnreadTally(), []
    for problem, response, gold in responses:
        item = Item(response, gold, problem=problem)
        tally.add(item, verify_one(item), ended=ended, source="farm")
        lines += tally.take_lines()
    return tally, lines


UNREAD = [("Answer with a table.\n\nHow many?", f"| All eggs | {n} eggs |", str(n)) for n in range(100, 150)]
READ = [(f"How many are {n} and 0?", f"The answer is {n}.", str(n)) for n in range(200, 260)]
WRONG = [(f"How many are {n} and 1?", f"So {n} and 1 are {n + 7}, I think.", str(n + 1)) for n in range(300, 360)]


def test_a_form_that_is_not_read_is_said_after_fifty_responses_with_an_example() -> None:
    tally, (line,) = tally_of(UNREAD)
    assert tally.counts["", ""].ended == FEWEST
    assert line.startswith("50 of 50 responses")
    assert "| All eggs |" in line
    assert "49 end with gold and 0 with another row's gold" in line
    assert tally.finish() == []


def test_among_others_the_kind_of_prompt_is_named() -> None:
    mixed = [response for pair in zip(UNREAD, READ, strict=False) for response in pair]
    _, lines = tally_of(mixed)
    assert [line.split(" end in")[0] for line in lines] == [
        "25 of 25 responses to prompts that begin 'Answer with a table.'"
    ]


@pytest.mark.parametrize("healthy", [READ, WRONG, READ[:30] + WRONG[:30]], ids=["right", "wrong", "both"])
def test_nothing_is_said_of_answers_that_are_read(healthy: list[tuple[str, str, str]]) -> None:
    tally, lines = tally_of(healthy)
    assert lines + tally.finish() == []


def test_nothing_is_said_of_a_model_that_rambles_of_other_numbers() -> None:
    rambling = [
        ("How many?", f"It might be {n % 7} or {n % 5}, or {n % 3} and more of them", str(n)) for n in range(60)
    ]
    tally, lines = tally_of(READ[:50] + rambling[:40])
    assert lines + tally.finish() == []


def test_what_was_cut_at_its_limit_is_not_counted() -> None:
    tally, lines = tally_of(UNREAD, ended=False)
    assert (tally.unread, lines + tally.finish()) == (0, [])


def test_what_could_not_be_judged_is_not_counted() -> None:
    tally = UnreadTally()
    for _ in range(FEWEST):
        tally.add(Item("x", "5"), Verdict(None, Reason.GOLD_UNPARSED))
    assert tally.take_lines() + tally.finish() == []


@pytest.mark.parametrize(
    ("golds", "response"),
    [
        (["yes", "no"], "There is no way to say and I have no idea about it"),
        (["A", "B"], "I would look at the letter A once more, and then say something of it in the end"),
    ],
)
def test_golds_that_stand_in_any_text_are_no_evidence(golds: list[str], response: str) -> None:
    tally = UnreadTally()
    for number in range(60):
        item = Item(response, golds[number % 2], "exact")
        tally.add(item, verify_one(item))
    assert tally.take_lines() + tally.finish() == []


def test_one_gold_of_all_rows_is_no_evidence_where_most_are_read() -> None:
    tally = UnreadTally()
    for number in range(60):
        item = Item("Well, yes, one might think so, and I have no idea" if number % 3 == 0 else "yes", "yes", "exact")
        tally.add(item, verify_one(item))
    assert tally.unread == 20
    assert tally.take_lines() + tally.finish() == []


def test_gold_as_often_as_another_row_s_gold_is_chance() -> None:
    tally = UnreadTally()
    for number in range(60):
        item = Item(f"Perhaps {number} or {number - 1} of them, I think, or more", str(number))
        tally.add(item, verify_one(item) if number % 3 == 0 else Verdict(1.0, Reason.MATCH))
        tally.add(Item("x", str(number)), Verdict(1.0, Reason.MATCH))
    assert tally.take_lines() + tally.finish() == []


def test_the_first_lines_of_a_million_problems_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unread_tally, "MAX_KINDS", 10)
    tally, _ = tally_of(READ)
    assert len(tally.counts) == 10


@pytest.mark.parametrize("response", ["I cannot say.", "", "\\boxed{42}", "It grew by $1,137 million.", "5 or 6"])
def test_a_sentence_as_gold_has_no_score_for_any_response(response: str) -> None:
    gold = "The margin was flat in 2023, since sales and costs fell alike."
    verdict = verify(response, gold=gold)
    assert (verdict.score, verdict.reason) == (None, Reason.GOLD_UNPARSED)
    assert verify(f"\\boxed{{{gold}}}", gold=gold).score == 1.0
