"""What the page says of reasons and of tests."""

from __future__ import annotations

import json
import re
from pathlib import Path

from truegold.pipeline.report.reason_docs import exemplify_reason, explain_reason, explain_reasons
from truegold.pipeline.report.row_tests import shown_tests

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
REASONS, FINDINGS = REFERENCE / "reasons.md", REFERENCE / "test-findings.md"


def test_every_reason_that_the_documentation_lists_is_explained() -> None:
    lists = REASONS.read_text(encoding="utf-8").partition("## All of them")[2].partition("\n\n`gold_unmatchable`")[0]
    named = {name for group in re.findall(r"`([^`]+)`", lists) for name in re.findall(r"[a-z]\w+", group)}
    assert len(named) > 100
    assert named - explain_reasons().keys() == set()


def test_every_finding_about_tests_says_what_it_means() -> None:
    table = FINDINGS.read_text(encoding="utf-8").partition("## Findings")[2].partition("\n\nA checker")[0]
    named = {
        name
        for line in table.splitlines()
        for name in re.findall(r"`(\w+)`", line.split("|")[1] if "|" in line else "")
    }
    unexplained = {name for name in named if not explain_reasons().get(name, {}).get("means")}
    assert "guessable" in named
    assert unexplained == set()


def test_a_reason_is_explained_by_what_it_means_an_example_and_what_to_do() -> None:
    assert (
        explain_reason("invalid_json") == "Such as: a line not json. mend the line; ingest/rejects.jsonl has its number"
    )
    assert explain_reason("gold_wrapped").endswith('suggests the answer alone. Such as: gold "Answer: 72"')
    assert explain_reason("evaluation_overlap") == "Such as: a row that shares a long passage with one of MATH-500"
    assert exemplify_reason("guessable").startswith("a guess often passes, because there are few different outputs")
    assert explain_reason("a_rule_of_mine") == exemplify_reason("a_rule_of_mine") == ""


def shown(limit: int = 1_000, **tests: object) -> dict:
    """Return the tests of a row as its card shows them."""
    return shown_tests(json.dumps(tests), limit)


def test_cases_are_shown_as_what_goes_in_and_what_comes_out() -> None:
    stdio = shown(type="stdio", cases=[{"input": "1 2\n", "output": "3\n"}])
    assert (stdio["heads"], stdio["cases"]) == (["stdin", "expected output"], [["1 2", "3"]])
    calls = shown(type="calls", entry_point="add", cases=[{"args": [1, "b"], "kwargs": {"c": None}, "expected": [3]}])
    assert (calls["cases"], calls["settings"]) == ([["add(1, 'b', c=None)", "[3]"]], [["function", "add"]])


def test_code_is_shown_with_what_stands_before_it() -> None:
    assert (
        shown(type="asserts", prelude="import math", code="assert f(1)")["code"]
        == "import math\n\nassert f(1)  # case 0"
    )


def test_long_tests_are_cut_and_their_number_and_length_said() -> None:
    tests = shown(limit=100, type="stdio", cases=[{"input": "7" * 90, "output": "1"}] * 5)
    assert (len(tests["cases"]), tests["more"], tests["chars"]) == (2, 3, 455)
    assert tests["cases"][0][0] == f"{'7' * 50} … (40 more characters)"


def test_tests_that_cannot_be_read_are_shown_as_they_are() -> None:
    tests = shown(type="calls")
    assert tests["code"] == '{"type": "calls"}'
    assert "entry_point must name the function" in tests["settings"][0][1]
