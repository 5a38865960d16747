"""The demo's data: made from a seed alone, right where it is clean, and labelled where it is not."""

from __future__ import annotations

import json
import random
import re
from collections import Counter

import pytest

from truegold.pipeline.config.sources import DemoSource
from truegold.pipeline.demo.planted import COPIES, DECOY, FRESH
from truegold.pipeline.demo.problems import (
    LARGEST_VALUE,
    PEOPLE,
    STORIES,
    Problem,
    Telling,
    make_pools,
    tell,
    wrong_by_a_little,
)
from truegold.pipeline.demo.stage import make_demo_data
from truegold.pipeline.flag.rules import load_detectors
from truegold.pipeline.running.progress import NullProgress

FILES = ("raw.jsonl", "heldout.jsonl", "sft.jsonl", "planted.json")
CONFIG = DemoSource(problems=300, heldout_problems=40, sft_examples=1000, seed=3)
STEP = re.compile(r"([+-])(\d+)=(\d+)")


def read(path):
    with path.open("rb") as file:
        return [json.loads(line) for line in file]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    report = make_demo_data({}, CONFIG, folder, NullProgress())
    return folder, report


@pytest.fixture(scope="module")
def raw(made):
    return read(made[0] / "raw.jsonl")


def operands(working):
    """The operations and numbers of a worked solution."""
    start = re.match(r"\d+", working)[0]
    steps = STEP.findall(working)
    return "".join(sign for sign, _, _ in steps), (int(start), *(int(operand) for _, operand, _ in steps))


def computes(working):
    """Whether every step of a worked solution is right and its box holds the last value."""
    value = int(re.match(r"\d+", working)[0])
    for sign, operand, shown in STEP.findall(working):
        value += int(operand) if sign == "+" else -int(operand)
        if value != int(shown):
            return False
    return working.endswith(f" \\boxed{{{value}}}")


def test_the_same_seed_makes_the_same_bytes(made, tmp_path):
    make_demo_data({}, CONFIG, tmp_path, NullProgress())
    assert all((tmp_path / name).read_bytes() == (made[0] / name).read_bytes() for name in FILES)


def test_another_seed_makes_other_problems(made, tmp_path):
    make_demo_data({}, CONFIG.model_copy(update={"seed": 4}), tmp_path, NullProgress())
    assert (tmp_path / "raw.jsonl").read_bytes() != (made[0] / "raw.jsonl").read_bytes()


def test_the_counts_by_kind_add_up(made, raw):
    planted = json.loads((made[0] / "planted.json").read_text())
    counts = Counter(row["planted"] for row in raw)
    assert counts.pop(None) == CONFIG.problems
    assert dict(counts) == planted
    assert made[1].counts == {f"planted:{kind}": count for kind, count in sorted(planted.items())}
    assert made[1].rows_out == len(raw)
    assert set(planted) == {"wrong_gold", "conflicting_label", *COPIES, *FRESH}
    assert all(0.01 <= count / len(raw) <= 0.04 for count in planted.values())


@pytest.mark.parametrize("problems", [60, 61, 500])
def test_any_size_has_its_clean_problems_and_every_kind(problems, tmp_path):
    config = DemoSource(problems=problems, heldout_problems=8, sft_examples=64)
    make_demo_data({}, config, tmp_path, NullProgress())
    counts = Counter(row["planted"] for row in read(tmp_path / "raw.jsonl"))
    assert counts[None] == problems
    assert all(counts[kind] >= 2 for kind in ("wrong_gold", "conflicting_label", *COPIES, *FRESH))


def test_more_problems_than_operand_tuples_are_still_all_different(tmp_path):
    config = DemoSource(problems=9000, heldout_problems=1500, sft_examples=64)
    make_demo_data({}, config, tmp_path, NullProgress())
    for name, count in (("raw.jsonl", 9000), ("heldout.jsonl", 1500)):
        clean = [row["question"] for row in read(tmp_path / name) if row["planted"] is None]
        assert len(clean) == len(set(clean)) == count


def test_clean_rows_are_right(raw):
    for row in (row for row in raw if row["planted"] in (None, DECOY)):
        assert computes(row["solution"]), row
        signs, numbers = operands(row["solution"])
        assert all(str(operand) in re.findall(r"\d+", row["question"]) for operand in numbers)
        values = Problem(signs, numbers).values
        assert all(0 <= value <= LARGEST_VALUE for value in values)
        if row["planted"] is None:
            assert row["answer"] == str(values[-1])


def test_clean_problems_have_numbers_of_their_own(raw):
    tuples = [operands(row["solution"]) for row in raw if row["planted"] is None]
    assert len(set(tuples)) == len(tuples)


def test_heldout_numbers_occur_nowhere_else(made, raw):
    heldout = read(made[0] / "heldout.jsonl")
    sft = read(made[0] / "sft.jsonl")
    held = {operands(row["solution"]) for row in heldout}
    assert len(heldout) == CONFIG.heldout_problems
    assert all(row["planted"] is None and computes(row["solution"]) for row in heldout)
    # Answers of wrong golds may be changed in a working, its operations and numbers are not.
    others = {operands(row["solution"]) for row in raw} | {operands(row["completion"]) for row in sft}
    assert not held & others


def test_no_rule_flags_a_clean_row_or_the_decoy(made, raw):
    rules = load_detectors(["all"])
    clean = [row for row in raw if row["planted"] in (None, DECOY)] + read(made[0] / "heldout.jsonl")
    for line in clean:
        row = {"prompt": line["question"], "gold": line["answer"], "solution": line["solution"], "domain": "math"}
        row["verifier"] = "math"
        assert [finding for rule in rules for finding in rule.detect(row)] == [], line


def test_copies_come_after_what_they_repeat(raw):
    seen = {}
    for index, row in enumerate(raw):
        seen.setdefault(row["question"], index)
        if row["planted"] == "exact_duplicate":
            assert raw[seen[row["question"]]]["planted"] is None
    by_tuple = {operands(row["solution"]): index for index, row in enumerate(raw) if row["planted"] is None}
    for index, row in enumerate(raw):
        if row["planted"] in COPIES:
            assert by_tuple[operands(row["solution"])] < index
            assert row["answer"] == raw[by_tuple[operands(row["solution"])]]["answer"]


def test_copies_but_for_verbatim_ones_are_other_texts(raw):
    clean = {row["question"] for row in raw if row["planted"] is None}
    assert all(row["question"] not in clean for row in raw if row["planted"] in ("format_duplicate", "rephrased"))


def test_wrong_golds_are_wrong_and_half_of_their_solutions_agree(raw):
    wrong = [row for row in raw if row["planted"] == "wrong_gold"]
    for row in wrong:
        assert 1 <= abs(Problem(*operands(row["solution"])).answer - int(row["answer"])) <= 3
    agree = sum(row["solution"].endswith(f"\\boxed{{{row['answer']}}}") for row in wrong)
    assert abs(agree - len(wrong) / 2) <= 1
    assert sum(computes(row["solution"]) for row in wrong) == len(wrong) - agree


def test_conflicting_labels_come_in_pairs_of_one_prompt(raw):
    answers = {}
    for row in (row for row in raw if row["planted"] == "conflicting_label"):
        answers.setdefault(row["question"], set()).add(row["answer"])
    assert answers
    assert all(len(both) == 2 for both in answers.values())


def test_only_the_end_of_the_sft_file_is_contaminated(made):
    examples = read(made[0] / "sft.jsonl")
    assert len(examples) == CONFIG.sft_examples
    right = [computes(row["completion"]) for row in examples]
    assert all(right[:900])
    assert sum(right[900:]) == 50


def test_stories_are_short_and_say_every_number():
    problem = Problem("+-", (12, 9, 5))
    for story in STORIES:
        text = tell(problem, Telling(story, PEOPLE[0], "apples"))
        assert re.findall(r"\d+", text) == ["12", "9", "5"]
        assert len(text.split()) <= 26
        assert "{" not in text


def test_a_problem_is_held_out_by_its_numbers_alone():
    held, rest = make_pools(held_out=True), make_pools(held_out=False)
    assert not set(held.two_steps) & set(rest.two_steps)
    share = len(held.two_steps) / (len(held.two_steps) + len(rest.two_steps))
    assert 0.10 < share < 0.15


def test_a_working_can_end_wrongly():
    problem = Problem("+-", (12, 9, 5))
    assert problem.working() == "12+9=21-5=16 \\boxed{16}"
    assert problem.working(18) == "12+9=21-5=18 \\boxed{18}"
    assert {wrong_by_a_little(0, random.Random(seed)) for seed in range(50)} == {1, 2, 3}
