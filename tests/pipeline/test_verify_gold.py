"""verify_gold: gold that its own verifier does not accept is flagged, with the reason; nothing is dropped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tables import rows

from truegold.pipeline.config.stages import VerifyGoldConfig
from truegold.pipeline.flag.rules import BUILT_IN
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.running.stage import StageReport
from truegold.pipeline.tables.rows import ROW_SCHEMA, Row, read_rows, row_id, write_rows
from truegold.pipeline.verify.gold_stage import verify_gold
from truegold.pipeline.verify.measured_golds import MeasuredTally, ProposalBySource, find_sign
from truegold.verifiers import ConfigError, Item, verify_batch

CHECKS = """
from truegold.verifiers import Reason, Verdict

class Checks:
    name = "checks"
    version = "1"

    def __call__(self, response, gold, *, problem=None, info={}):
        if gold == "unreadable":
            return Verdict(None, Reason.GOLD_UNPARSED, evidence={"where": "at 1"})
        if gold == "slow":
            return Verdict(None, Reason.TIMEOUT)
        if gold == "half":
            return Verdict(0.5, Reason.PARTIAL, extracted="h")
        return Verdict(float(response == "R:" + gold), Reason.MATCH)

    def gold_response(self, gold, solution):
        return None if gold == "picture" else "R:" + gold

class Programs:
    name = "programs"
    version = "1"
    judges_solutions = True

    def __call__(self, response, gold, *, problem=None, info={}):
        passed = response == "run: print(1)" and info == {"tests": "its own"}
        return Verdict(float(passed), Reason.MATCH if passed else Reason.MISMATCH, evidence={"case": 3})

    def gold_response(self, gold, solution):
        return "run: " + solution
"""


def make(gold: str | None, verifier: str = "math", **more: Any) -> Row:
    return {
        "id": row_id("What?", gold),
        "prompt": "What?",
        "gold": gold,
        "domain": "math",
        "verifier": verifier,
        "verifier_args": "{}",
        "solution": None,
        "source": "train.jsonl",
        "split": "train",
        "meta": "{}",
        "context": None,
        **more,
    }


def run(folder: Path, *rows: Row, workers: int = 1) -> tuple[StageReport, list[Row], list[Row]]:
    """The report, the flags and the ledger."""
    numbered = [{**row, "source_row": index} for index, row in enumerate(rows, 1)]
    write_rows(folder / "in.parquet", numbered, ROW_SCHEMA)
    out = folder / "out"
    out.mkdir(exist_ok=True)
    report = verify_gold({"rows": folder / "in.parquet"}, VerifyGoldConfig(workers=workers), out, NullProgress())
    assert report.rows_in == report.rows_out == len(rows)
    assert list(read_rows(out / "rows.parquet")) == numbered
    flags = list(read_rows(out / "flags.parquet"))
    assert sum(count for key, count in report.counts.items() if key.startswith("flag:")) == len(flags)
    return report, flags, list(read_rows(out / "ledger.parquet"))


@pytest.fixture
def checks(tmp_path) -> str:
    (tmp_path / "checks.py").write_text(CHECKS)
    return f"{tmp_path / 'checks.py'}:Checks"


PAYS = """
def always(response, gold):
    return True

def unreadable(response, gold):
    return not gold.isdecimal() or response == gold

def within(response, gold):
    return gold in response

def length(response, gold):
    return len(response) == len(gold)
"""


@pytest.mark.parametrize(
    ("name", "golds", "flagged"),
    [
        ("always", ["12", "see page 3", "yes"], ["12", "see page 3", "yes"]),
        ("always", ["12"], ["12"]),
        ("unreadable", ["12", "15", "see page 3"], ["see page 3"]),
        ("within", ["1", "12", "112", "no", "north", "(B)", "B"], []),
        ("length", ["A", "B", "C"], ["A", "B", "C"]),
    ],
)
def test_golds_for_which_a_verifier_of_ones_own_pays_another_answer_are_held(
    name: str, golds: list[str], flagged: list[str], tmp_path: Path
) -> None:
    (tmp_path / "pays.py").write_text(PAYS)
    _, flags, _ = run(tmp_path, *(make(gold, f"{tmp_path / 'pays.py'}:{name}") for gold in golds))
    assert [json.loads(flag["evidence"])["gold"] for flag in flags] == flagged
    assert all((flag["reason"], flag["blocks"]) == ("gold_unmatchable", True) for flag in flags)
    assert {json.loads(flag["evidence"])["why"] for flag in flags} <= {"any_answer"}


def test_gold_that_passes_its_verifier_leaves_no_trace(tmp_path):
    report, flags, ledger = run(tmp_path, make("42"), make(r"\frac{1}{2}"), make("B", "choice"), make("Paris", "exact"))
    assert dict(report.counts) == {}
    assert flags == ledger == []


def test_what_does_not_pass_is_flagged_by_why(tmp_path, checks):
    golds = ["fine", "unreadable", "slow", "half", "picture", None, "fine too"]
    report, flags, ledger = run(tmp_path, *(make(gold, checks) for gold in golds))
    assert dict(report.counts) == {
        "flag:gold_unparsed": 1,
        "flag:gold_unverified": 1,
        "flag:gold_fails_verifier": 1,
        "skip:no_gold_response": 2,
    }
    assert [(flag["source_row"], flag["reason"]) for flag in flags] == [
        (2, "gold_unparsed"),
        (3, "gold_unverified"),
        (4, "gold_fails_verifier"),
    ]
    assert all((flag["detector"], flag["confidence"], flag["blocks"]) == ("verify_gold", 1.0, True) for flag in flags)
    evidence = [json.loads(flag["evidence"]) for flag in flags]
    assert [entry["reason"] for entry in evidence] == ["gold_unparsed", "timeout", "partial"]
    assert evidence[0]["verifier"] == checks
    assert evidence[0]["verdict"] == {"where": "at 1"}
    assert (evidence[2]["gold"], evidence[2]["score"], evidence[2]["extracted"]) == ("half", 0.5, "h")
    assert [json.loads(entry["evidence"]) for entry in ledger] == evidence


def test_of_a_row_without_gold_the_solution_has_to_pass_its_tests(tmp_path, checks):
    programs = f"{tmp_path / 'checks.py'}:Programs"

    def program(solution: str | None) -> Row:
        return make(None, programs, solution=solution, domain="code", verifier_args='{"tests":"its own"}')

    report, flags, _ = run(tmp_path, program("print(1)"), program("print(2)"), program(None))
    assert dict(report.counts) == {"flag:gold_fails_verifier": 1, "skip:no_gold_response": 1}
    assert [flag["source_row"] for flag in flags] == [2]
    evidence = json.loads(flags[0]["evidence"])
    assert (evidence["gold"], evidence["score"], evidence["verdict"]) == (None, 0.0, {"case": 3})


def test_a_solution_is_no_gold_for_a_verifier_that_does_not_judge_solutions(tmp_path, checks):
    report, _, _ = run(tmp_path, make(None, checks, solution="because"), make(None, "math", solution="because"))
    assert dict(report.counts) == {"flag:gold_unmatchable": 1, "skip:no_gold_response": 2}


def test_many_rows_in_processes_keep_their_order(tmp_path, checks):
    rows = [make("half" if index % 7 == 0 else f"g{index}", checks) for index in range(300)]
    _, flags, _ = run(tmp_path, *rows, workers=2)
    assert [flag["source_row"] for flag in flags] == [index + 1 for index in range(300) if index % 7 == 0]


def test_an_unknown_verifier_is_an_error_that_names_the_row(tmp_path):
    with pytest.raises(ConfigError, match=r"train\.jsonl:2.*no verifier 'mth'.*'math'"):
        run(tmp_path, make("1"), make("2", "mth"))
    with pytest.raises(ConfigError, match=r"train\.jsonl:1"):
        run(tmp_path, make("1", "nowhere.checks:f"))


def test_an_empty_table_stays_one(tmp_path):
    report, flags, _ = run(tmp_path)
    assert (dict(report.counts), flags) == ({}, [])


GOLD_CASES = json.loads((Path(__file__).parent / "gold_cases.json").read_text("utf-8"))
"""Golds with the flags that they get: no right answer can match them, or their own solution ends elsewhere."""


def test_each_gold_gets_exactly_its_flags(tmp_path):
    rows = [
        make(
            case["gold"],
            "choice" if "options" in case else "math",
            prompt=case["prompt"],
            solution=case.get("solution"),
            verifier_args=json.dumps({"options": case["options"]} if "options" in case else {}),
        )
        for case in GOLD_CASES
    ]
    _, flags, _ = run(tmp_path, *rows)
    by_row: dict[int, list[str]] = {}
    for flag in flags:
        by_row.setdefault(flag["source_row"], []).append(flag["reason"])
    got = {case["id"]: by_row.get(number, []) for number, case in enumerate(GOLD_CASES, 1)}
    assert got == {case["id"]: case["flags"] for case in GOLD_CASES}


def test_a_contradicting_solution_suggests_its_own_value(tmp_path):
    _, flags, _ = run(tmp_path, make("17", prompt="12+9-5=", solution="12+9=21-5=16 \\boxed{16}"))
    (flag,) = flags
    assert (flag["reason"], flag["suggestion"], flag["blocks"]) == ("solution_contradicts_gold", "16", False)
    evidence = json.loads(flag["evidence"])
    assert (evidence["gold"], evidence["extracted"], evidence["form"]) == ("17", "16", "boxed")
    assert evidence["measured"]["precision"] > 0.8


@pytest.mark.parametrize(
    ("gold", "kind"),
    [
        ("The current is moving at about 10 miles per hour.", "prose"),
        ("They are the same, and this is what had to be shown.", "prose"),
        ("Recall that proj is linear, so that we have $u=v$ for every vector of the space.", "derivation"),
        ("Multiplying both sides by 3, it follows that the value is $x=12$.", "derivation"),
        (r"$\propto$ solutions", "notation"),
        (r"60^\bullet", "notation"),
        (r"$\$ 300 @ 11 \%$; $\$ 240 @ 7 \%$", "several_values"),
        (r"$\$ 300 @ 4.6 \%$ $\$ 450$ @ 6.6\%", "several_values"),
        ("see the figure", "placeholder"),
    ],
)
def test_golds_that_cannot_be_matched_are_told_by_kind(gold: str, kind: str, tmp_path: Path) -> None:
    _, (flag,), _ = run(tmp_path, make(gold, prompt="What is it?"))
    assert (flag["reason"], json.loads(flag["evidence"])["why"]) == ("gold_unmatchable", kind)


VALUES_IN_SENTENCES = [
    ("Show that the answer is 25.", "25"),
    ("Prove that x = 3", "3"),
    ("The answer is 7 (see figure)", "7"),
    ("The answer is 25, as shown below.", "25"),
    ("The answer is $x=3$; see solution.", "3"),
    ("The final answer is 12 (proof omitted).", "12"),
    ("Show that the sum equals $\\frac{1}{2}$.", "1/2"),
    ("18, see the explanation", "18"),
    ("$\\boxed{8}$ (see figure)", "8"),
    ("Prove the answer is 6.", "6"),
    ("证明答案为25。", "25"),
    ("答案是7（见图）", "7"),
    ("答案：16，如图所示", "16"),
    ("结果为 $\\frac{1}{2}$，见解析", "1/2"),
]
ORDERS_TO_PROVE = [
    *("Show that $f$ is continuous.", "Prove there are infinitely many.", "Prove that no such number exists."),
    *("Show that the sequence converges.", "Show that $a^2+b^2 \\ge 2ab$.", "Prove that the set is countable."),
    *("Prove that $x+y$ is at most 12.", "Show that the answer is not an integer.", "Prove it.", "Prove by induction."),
    *("Prove or disprove.", "证明三角形是等腰的。", "证明 $f$ 是连续的。"),
]


@pytest.mark.parametrize(("gold", "value"), VALUES_IN_SENTENCES)
def test_the_value_that_a_sentence_states_as_the_answer_is_read(gold: str, value: str, tmp_path: Path) -> None:
    _, flags, _ = run(tmp_path, make(gold, prompt="What is it?"))
    assert flags == []
    (verdict,) = verify_batch([Item(f"\\boxed{{{value}}}", gold, "math", "{}", "What is it?")], workers=1)
    assert verdict.passed


@pytest.mark.parametrize("gold", ORDERS_TO_PROVE)
def test_an_order_to_prove_something_is_no_gold(gold: str, tmp_path: Path) -> None:
    _, (flag,), _ = run(tmp_path, make(gold, prompt="What is it?"))
    assert (flag["reason"], json.loads(flag["evidence"])["why"]) in [
        ("gold_unmatchable", "prose"),
        ("gold_unmatchable", "notation"),
    ]


@pytest.mark.parametrize(
    "nothing",
    ["None.", "none", "NONE.", "nil", "Nothing.", "No answer.", "no answers", "\\text{none}", "没有。", "없음"],
)
def test_an_answer_that_says_nothing_is_a_placeholder_where_a_large_share_of_a_set_has_it(
    nothing: str, tmp_path: Path
) -> None:
    for share, flagged in ((10, True), (1, False)):
        (folder := tmp_path / str(share)).mkdir()
        rows = [make(nothing, prompt="What is it?") for _ in range(share)]
        _, flags, _ = run(folder, *rows, *(make(str(n)) for n in range(30 - share)))
        whys = [json.loads(flag["evidence"])["why"] for flag in flags if flag["blocks"]]
        assert whys == ["placeholder"] * share * flagged


def test_none_is_an_answer_where_the_problem_names_it_or_lists_it_as_an_option(tmp_path: Path) -> None:
    asked = [make("None.", prompt="Which of them is prime? Write None if there is none.") for _ in range(10)]
    options = json.dumps({"options": ["2", "3", "None", "5"]})
    chosen = [make("None", "choice", prompt="Which is it?", verifier_args=options) for _ in range(10)]
    _, flags, _ = run(tmp_path, *asked, *chosen, *(make(str(n)) for n in range(10)))
    assert flags == []


def test_a_few_golds_that_are_compared_as_text_are_counted_and_many_are_a_fault(tmp_path: Path) -> None:
    keys = [make(r"60^\bullet", prompt="What is the angle?")]
    for others, flagged in ((5, []), (3, ["gold_unmatchable"])):
        (folder := tmp_path / str(others)).mkdir()
        report, flags, _ = run(folder, *keys, *(make(str(n)) for n in range(others)))
        assert [flag["reason"] for flag in flags] == flagged
        assert report.counts.get("skip:gold_compared_as_text", 0) == (not flagged)


def test_a_sentence_may_be_the_gold_of_another_verifier(tmp_path):
    sentence = "Recall that the determinant of a product is the product of the determinants."
    _, flags, _ = run(tmp_path, make(sentence), make(sentence, "exact"))
    assert [(flag["source_row"], flag["reason"]) for flag in flags] == [(1, "gold_unmatchable")]
    assert json.loads(flags[0]["evidence"])["why"] == "prose"


@pytest.mark.parametrize(
    ("golds", "flagged"),
    [
        (["5"] * 20, 20),
        (["5"] * 16 + ["1", "2", "3", "4"], 16),
        (["5"] * 15 + ["1", "2", "3", "4", "6"], 0),
        (["5"] * 19, 0),
        (["B"] * 30, 30),
    ],
)
def test_one_gold_of_nearly_all_rows_is_flagged(golds: list[str], flagged: int, tmp_path: Path) -> None:
    report, flags, _ledger = run(tmp_path, *(make(gold) for gold in golds))
    same = [json.loads(flag["evidence"]) for flag in flags if flag["reason"] == "same_gold"]
    assert len(same) == flagged == report.counts.get("flag:same_gold", 0)
    assert all(evidence["of"] == len(golds) and evidence["rows"] == flagged for evidence in same)


def test_a_flag_names_the_accepted_gold_that_fails(tmp_path: Path) -> None:
    row = make("1/2", verifier_args=json.dumps({"other_golds": ["0.5", "\\frac{1"]}))
    _, (flag,), _ = run(tmp_path, row)
    assert flag["reason"] == "gold_fails_verifier" and json.loads(flag["evidence"])["other_gold"] == "\\frac{1"


def test_a_heading_in_gold_is_advice_where_gold_is_read() -> None:
    (finding,) = BUILT_IN["gold_wrapped"].detect(make("#### 36"))
    assert finding.suggestion == "36"
    assert BUILT_IN["gold_wrapped"].detect(make("#### 36", "exact")) == []


def test_options_are_proposed_where_golds_look_measured_and_only_there(tmp_path):
    physics = [
        make(f"{n}.3", prompt=f"A car drives {n} s at 3.4 m/s. How far?", source="physics.jsonl") for n in range(12)
    ]
    algebra = [make(f"{n}.5", prompt=f"What is {2 * n + 1} divided by 2?", source="algebra.jsonl") for n in range(40)]
    decided = [make(f"{n}e24", verifier_args='{"tolerance": 0.02}', source="chemistry.jsonl") for n in range(12)]
    report, flags, _ = run(tmp_path, *physics, *algebra, *decided)
    assert not flags
    (source,) = report.facts["proposed_verifier_args"]
    proposal = report.facts["proposed_verifier_args"][source]
    assert source == "physics.jsonl" and proposal["verifier_args"] == {"rounding": "measured"}
    assert (proposal["golds_with_figures"], proposal["measured"]) == (12, 12)
    assert run(tmp_path, *algebra)[0].facts == {}


@pytest.mark.parametrize(("comma", "proposes"), [("decimal", False), ("answers", True), ("auto", True)])
def test_thousands_of_a_source_with_decimal_commas_are_no_decimals(comma: str, proposes: bool) -> None:
    counted = ProposalBySource()
    for gold in (*(f"{n}.250" for n in range(1, 25)), "1024.125"):
        counted.add(make(gold, verifier_args=json.dumps({"comma": comma})))
    assert bool(counted.as_json()) is proposes


def test_options_are_proposed_where_golds_are_computed_to_decimals() -> None:
    def proposes(*golds: str) -> bool:
        tally = MeasuredTally()
        for gold in golds:
            tally.add(gold, "What is the price of the bond?")
        return tally.proposes

    written_by_program = [f"{n}.333" for n in range(6)] + ["0.14400000000000002"] * 6 + ["2000.0"] * 12
    assert proposes(*written_by_program)
    assert proposes(*[f"${n}.3125" for n in range(12)], *["5"] * 20)
    assert proposes(*[f"{n}.7%" for n in range(20)], *["1,204"] * 40)
    assert not proposes(*[f"{n}%" for n in range(60)])
    assert not proposes(*[f"{n}.0" for n in range(60)])
    assert not proposes(*[f"{n}.25" for n in range(1, 60)])
    assert not proposes(*[f"{n}.125" for n in range(12)], *map(str, range(60)))
    assert not proposes(*["0.000"] * 60)


@rows(
    "text, measured",
    [
        ("6.0\\times 10^{24}", True),
        ("2.8 x 10^-26", True),
        ("5.97e24", True),
        ("12 \\mathrm{~J}", True),
        ("a speed of 3 m/s", True),
        ("25 apples", False),
        ("5 km and 3 hours", False),
        ("$10^{4}$", False),
        ("$12.50", False),
        ("3x + 10^2", False),
        ("45^\\circ", False),
    ],
)
def test_measured_numbers_are_told_by_powers_of_ten_and_units_of_physics(text: str, measured: bool):
    assert (find_sign(text) is not None) == measured
