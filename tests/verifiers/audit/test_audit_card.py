"""The card: complete, the same for the same audit, and Markdown that nothing in the data can break."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truegold.verifiers.audit import Card, CheckResult, as_json, audit, markdown
from truegold.verifiers.audit.audit_report import AuditReport, Example, RuleCount, code
from truegold.verifiers.rates import Rate, difference_interval

NASTY = "a|b `c` $d$ <script> \n| x | ``` \x07 \ud800"


def report() -> AuditReport:
    made = AuditReport("my|verifier", "1", "boxed", gold_count=10, distinct_count=8, seed=3, info={"decimals": 2})
    made.kinds = {"integer": 4, "other": 2}
    made.identity = RuleCount("identity", False, Rate(1, 5, 1), [Example(NASTY, NASTY, 0.0, "mismatch")])
    made.rewrites = {
        "dollars": RuleCount("dollars", False, Rate(0, 4)),
        ",\\! sep": RuleCount(",\\! sep", False, Rate(2, 4, 1), [Example("1000", "1,\\!000", 0.0, "mismatch")]),
        "base ten": RuleCount("base ten", True, Rate(3, 4)),
    }
    made.edits = {
        "+1": RuleCount("+1", False, Rate(1, 4), [Example("5", "6", 1.0, "match")]),
        "/100": RuleCount("/100", True, Rate(1, 4)),
    }
    made.gaming = {"empty response": RuleCount("empty response", False, Rate(0, 4))}
    made.undecided["timeout"] = 2
    return made


def card() -> Card:
    contract = [
        CheckResult("picklable", True, "kept"),
        CheckResult("deterministic", False, "broken", (NASTY,)),
        CheckResult("works in asyncio", None, "not checked"),
    ]
    return Card(report(), contract, "my@1+abc", NASTY, "2026-01-31", "Prices | *bold*", {"empty gold": 2})


def rows(text: str) -> list[list[str]]:
    """The cells of every table row, as GitHub splits them: at bars that no backslash precedes."""
    return [re.split(r"(?<!\\)\|", line)[1:-1] for line in text.splitlines() if line.startswith("|")]


def test_every_table_has_the_columns_of_its_head_whatever_the_data_holds() -> None:
    lines = markdown(card()).splitlines()
    heads = [index for index, line in enumerate(lines) if line.startswith("|---")]
    assert len(heads) >= 5
    for index in heads:
        width = len(rows(lines[index - 1])[0])
        end = lines.index("", index)
        table = lines[index - 1 : end]
        assert {len(row) for line in table for row in rows(line)} == {width}


def test_the_card_names_what_it_measured_and_what_it_does_not_show() -> None:
    text = markdown(card())
    for part in (
        "`my|verifier`",
        "`my@1+abc`",
        "2026-01-31",
        "10 golds, 8 distinct, 6 of them drawn with seed 3",
        "2 empty gold",
    ):
        assert part in text
    assert "Prices | \\*bold\\*" in text
    assert (
        "do not know the form of 2 of 6 golds" in text
        and "not checked: works in asyncio" in text
        and "2 timeout" in text
    )
    assert "| deterministic | BROKEN | `" in text


def test_rates_stand_beside_their_intervals_and_clean_rules_in_a_line() -> None:
    text = markdown(card())
    assert "| right answers refused | 25.00 % | 7.15 – 59.07 % | 2 | 8 | 1 |" in text
    assert "No errors: `dollars` (4)." in text
    assert "| `,\\! sep` | 50.00 %" in text


def test_policy_shows_what_was_accepted_of_rewrites_and_edits_alike() -> None:
    text = markdown(card())
    assert "| `base ten` | 1 | 3 | 0 |" in text
    assert "| `/100` | 1 | 3 | 0 |" in text


def test_failures_that_pay_for_wrong_answers_come_before_refusals() -> None:
    text = markdown(card()).split("## Some of the failures")[1]
    assert text.index("| edit |") < text.index("| rewrite |")


def test_json_holds_everything_and_can_be_written() -> None:
    data = json.loads(json.dumps(as_json(card())))
    assert data["verifier"]["fingerprint"] == "my@1+abc" and data["date"] == "2026-01-31"
    assert data["summary"]["wrong answers accepted"]["errors"] == 1
    assert data["rewrites"][1]["examples"][0]["answer"] == "1,\\!000"
    assert data["contract"][1]["findings"] == [NASTY]
    assert data["data"]["kinds"] == {"integer": 4, "other": 2}
    assert data["undecided"] == {"timeout": 2}


def test_the_same_audit_gives_the_same_card() -> None:
    assert markdown(card()) == markdown(card())
    first, second = (as_json(Card(audit("exact", ["5", "B"]), [], "f", "d", "2026-01-31")) for _ in range(2))
    assert {**first, "speed": None} == {**second, "speed": None}


def test_a_card_of_golds_that_no_rule_knows_says_so() -> None:
    text = markdown(Card(audit("exact", ["one way or another"]), [], "exact@1", "d", "2026-01-31"))
    assert "Nothing was tried" in text and "Not checked." in text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a|b", "`a|b`"),
        ("a`b", "``a`b``"),
        ("`a", "`` `a ``"),
        ("", "(empty)"),
        ("a\nb", "`a\\nb`"),
        (" a", "`  a `"),
    ],
)
def test_any_text_becomes_one_code_span(text: str, shown: str) -> None:
    assert code(text) == shown


@given(st.text())
def test_a_code_span_is_one_line_that_can_be_written_and_its_fence_is_longer_than_its_content(text: str) -> None:
    span = code(text)
    span.encode("utf-8")
    assert span.isprintable()
    fence = len(span) - len(span.lstrip("`"))
    inner = span[fence : len(span) - fence]
    assert span == "(empty)" or all(len(run) != fence for run in re.findall("`+", inner))


@pytest.mark.parametrize(
    ("refused", "paid", "j", "words"),
    [
        (Rate(1, 100), Rate(0, 100), 0.99, "a policy learns; the nearer"),
        (Rate(50, 100), Rate(20, 100), 0.30, "learns, but slowly"),
        (Rate(50, 100), Rate(50, 100), 0.0, "Not distinguishable from 0"),
        (Rate(80, 100), Rate(60, 100), -0.4, "destroys the policy"),
    ],
)
def test_youdens_j_stands_on_the_card_with_what_it_means(refused: Rate, paid: Rate, j: float, words: str) -> None:
    made = report()
    made.rewrites = {"dollars": RuleCount("dollars", False, refused)}
    made.edits = {"+1": RuleCount("+1", False, paid)}
    youden = made.youden
    assert youden is not None
    assert youden.j == pytest.approx(j)
    assert youden.low < j < youden.high
    whole = Card(made, [], "my@1", "data", "2026-01-31")
    assert f"Youden's J {j:.3f} ({youden.low:.3f} – {youden.high:.3f})" in markdown(whole)
    assert words in markdown(whole) and "arXiv 2601.04411" in markdown(whole)
    assert as_json(whole)["youden"]["j"] == pytest.approx(j)


def test_the_interval_of_a_difference_is_newcombes() -> None:
    # Example (a) of Newcombe's table II: 56/70 and 48/80 differ by .2, method 10 gives .0524 to .3339.
    first, second = Rate(56, 70), Rate(48, 80)
    interval = difference_interval(0.8, first.interval, 0.6, second.interval)
    assert interval == pytest.approx((0.0524, 0.3339), abs=2e-4)


def test_without_judged_answers_youdens_j_is_not_known() -> None:
    made = report()
    made.edits = {}
    assert made.youden is None
    assert "unknown" in markdown(Card(made, [], "my@1", "data", "2026-01-31"))
