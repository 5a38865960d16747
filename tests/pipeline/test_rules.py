"""Tests of the built-in rules: what they flag, what they leave alone, and how seldom they are wrong on real data.

`rule_cases.json` holds prompts written for this test, each with the reasons that all rules together must give.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from numbered_rows import plain_row
from real_data import real_data
from tables import rows

from truegold.pipeline.flag.rules import BUILT_IN, Finding, detector, detector_versions, load_detectors
from truegold.pipeline.tables.measured_flags import MEASURED, MIN_PRECISION
from truegold.pipeline.text.quantities import read_number
from truegold.verifiers import ConfigError

HERE = Path(__file__).parent
CASES = json.loads((HERE / "rule_cases.json").read_text("utf-8"))


def make_row(prompt, gold="5", solution=None, domain="math"):
    """Return a canonical row, as far as rules read it."""
    row = {"prompt": prompt, "gold": gold, "solution": solution, "domain": domain}
    return {**row, "verifier": "math", "verifier_args": "{}"}


def reasons(row):
    """Return the reasons that the built-in rules give for a row."""
    return [finding.reason for rule in load_detectors(["all"]) for finding in rule.detect(row)]


@rows("case", CASES)
def test_each_case_gets_exactly_its_flags(case):
    row = make_row(case["prompt"], case["gold"], case.get("solution"), case.get("domain", "math"))
    assert sorted(reasons(row)) == sorted(case["flags"])


def test_every_rule_has_cases_for_and_against_it():
    flagged = {reason for case in CASES for reason in case["flags"]}
    assert flagged == set(BUILT_IN)
    assert sum(not case["flags"] for case in CASES) > len(CASES) / 3
    assert len({case["id"] for case in CASES}) == len(CASES)


def test_rules_that_are_seldom_right_run_only_where_they_are_named():
    assert {rule.name for rule in load_detectors(["all"])} == set(BUILT_IN)
    *by_default, mojibake = [rule.name for rule in load_detectors(["default", "proof", "mojibake"])]
    assert min(MEASURED[name].precision for name in by_default) >= MIN_PRECISION > MEASURED[mojibake].precision


@rows(
    "text, value",
    [
        ("16", 16),
        ("16.", 16),
        ("-4.5", -4.5),
        ("−3", -3),
        ("$1{,}250$", 1250),
        ("1,250,000 people", 1250000),
        ("\\frac{9}{2}", 4.5),
        ("\\frac12", 0.5),
        ("2 1/2", 2.5),
        ("25\\%", 25),
        ("30^\\circ", 30),
        ("\\text{about } 3", 3),
        ("3个", 3),
        (".5", 0.5),
    ],
)
def test_plain_numbers_are_read(text, value):
    written = read_number(text)
    assert written is not None
    assert float(written.value) == value


@rows(
    "text",
    [None, "", "x", "2x", "3, 4", "3 or 4", "2\\pi", "2 pi", "5 million", "三十", "1/0", "2^4", "1e5", "9" * 200],
)
def test_what_is_not_plainly_a_number_is_not_read(text):
    assert read_number(text) is None


@rows(
    "attack",
    [
        "$" * 20_000,
        "{" * 20_000 + "\\frac",
        "\n" * 20_000 + "shown below",
        "as shown below\n" + "1" * 20_000,
        "![" * 10_000,
        "(a) " * 5_000,
        "some some " * 2_000 + "how many now?",
        "." + " " * 20_000,
        "how many how many " * 1_000,
        "\\begin{a}" * 2_000,
        "如图" * 10_000,
        "a" * 20_000 + "...",
        "|\n" * 10_000 + "table below",
    ],
)
def test_no_prompt_keeps_the_rules_busy(attack):
    started = time.process_time()
    reasons(make_row(attack, gold=attack[:2000], solution=attack * 5))
    assert time.process_time() - started < 2.0


def test_real_problems_are_seldom_flagged():
    with real_data("curation/gsm8k_train.jsonl").open("rb") as file:
        lines = [json.loads(line) for line in file][::4]
    rules = load_detectors(["all"])
    assert len(lines) > 1_800
    for with_solution in (True, False):
        rows = [
            make_row(line["question"], line["answer"], line["solution"] if with_solution else None) for line in lines
        ]
        findings_of_rows = [[finding for rule in rules for finding in rule.detect(row)] for row in rows]
        assert sum(map(bool, findings_of_rows)) / len(lines) <= 0.02
        reasons_of_rows = [{finding.reason for finding in findings} for findings in findings_of_rows]
        blocking = {reason for reason, measured in MEASURED.items() if measured.blocks}
        assert sum(bool(flagged & blocking) for flagged in reasons_of_rows) / len(lines) <= 0.002


def test_named_detectors_come_in_their_order():
    assert [rule.name for rule in load_detectors(("proof", "multi_part"))] == ["proof", "multi_part"]
    assert detector_versions(("proof",)) == {"proof": BUILT_IN["proof"].version}


CHECKS = """
from truegold.pipeline.rules import Finding, detector

@detector("shouting", version="2")
def shouting(row):
    return [Finding("shouting", 0.8, {})] if row["prompt"].isupper() else []

class Quiet:
    name = "quiet"
    version = "1"
    def detect(self, row):
        return []

not_a_detector = 3
"""


def test_own_detectors_are_loaded_from_a_file(tmp_path):
    (tmp_path / "checks.py").write_text(CHECKS)
    loud, quiet = load_detectors((f"{tmp_path}/checks.py:shouting", f"{tmp_path}/checks.py:Quiet"))
    assert (loud.name, loud.version, quiet.name) == ("shouting", "2", "quiet")
    assert loud.detect(make_row("HOW MANY?")) == [Finding("shouting", 0.8, {})]


def test_own_detectors_are_loaded_from_a_module(tmp_path, monkeypatch):
    (tmp_path / "my_rule_checks.py").write_text(CHECKS)
    monkeypatch.syspath_prepend(tmp_path)
    assert load_detectors(("my_rule_checks:shouting",))[0].name == "shouting"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("prof",), "Did you mean 'proof'?"),
        (("xyzzy",), "There are: default, all, truncated_text"),
        (("no_such_package.checks:rule",), "there is no module 'no_such_package' to import"),
        (("no/such/file.py:rule",), "there is no file"),
        (("CHECKS:shoutin",), "Did you mean 'shouting'?"),
        (("CHECKS:not_a_detector",), "is not a detector"),
        (("proof", "proof"), "more than one detector is called proof"),
        (("prof", "multipart"), "no detector 'multipart'"),
    ],
)
def test_a_name_that_cannot_be_loaded_is_one_helpful_line(names, message, tmp_path):
    (tmp_path / "checks.py").write_text(CHECKS)
    names = tuple(name.replace("CHECKS", f"{tmp_path}/checks.py") for name in names)
    with pytest.raises(ConfigError) as caught:
        load_detectors(names)
    assert message in str(caught.value)


def test_a_confidence_is_a_probability():
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        Finding("x", 1.5)


def test_the_decorator_keeps_name_and_version():
    @detector("mine", version="3")
    def mine(row):
        return []

    assert (mine.name, mine.version, mine.detect({})) == ("mine", "3", [])


def test_a_slip_between_two_number_words_means_the_first_of_them():
    evidence = [
        finding.evidence
        for detector in load_detectors(["garbled_number"])
        for finding in detector.detect(plain_row("Tom has eightt apples and eats 3. How many are left?", "5"))
    ]
    assert evidence == [{"says": "eightt", "meant": "eight"}]
