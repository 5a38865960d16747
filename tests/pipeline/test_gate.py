"""A data set gated as code is: clean sets pass, and each planted fault fails for its own reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import polars as pl
import pytest
from real_data import real_data
from typer.testing import CliRunner

from truegold import pipeline
from truegold.flows.cli.app import app
from truegold.pipeline.config.sources import FileSource
from truegold.pipeline.curation.gate import (
    INNOCENT_EDITS,
    Check,
    Gated,
    GateOptions,
    gate,
    junit_xml,
    parse_bound,
    sarif_log,
    why_nothing_is_tested,
)
from truegold.pipeline.running.progress import NullProgress
from truegold.verifiers import ConfigError, InputError

SUMS = [
    {"question": f"Ann has {n} pens and buys {n + 4} more. How many pens has she now?", "answer": f"#### {2 * n + 4}"}
    for n in range(3, 23)
]
ADD = {
    "text": "Write a function to add two numbers.",
    "code": "def add(a, b):\n    return a + b",
    "test_list": ["assert add(1, 2) == 3", "assert add(2, 2) == 4", "assert add(0, -5) == -5"],
}
CARD = "---\nlicense: mit\n---\n# Sums\n"


def run(tmp_path: Path, records: list[dict[str, Any]], *, card: str | None = CARD, **options: Any) -> Gated:
    """Write records with a card, and gate them on every check that is named or applies."""
    data = tmp_path / "set.jsonl"
    data.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    if card is not None:
        (tmp_path / "README.md").write_text(card, encoding="utf-8")
    held_out = tmp_path / "heldout.jsonl"
    held_out.write_text(
        '{"question": "A train of 120 m passes a pole in 6 s. How fast is it in m/s?", "answer": "20"}\n'
    )
    settings = {"fail_on": list(Check), "against": [str(held_out)], "workers": 1, **options}
    return gate(data, GateOptions(**settings), NullProgress())


def test_clean_sets_pass_every_check(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    for folder, records in ((tmp_path, SUMS), (tmp_path / "code", [ADD])):
        gated = run(folder, records)
        assert gated.failed == [] and gated.violations == [], gated.violations
        assert gated.rows == len(records) and len(gated.checks) == len(Check)


def lenient(response: str, gold: str) -> bool:
    """Pay whatever mentions gold."""
    return gold in response


def pays_silence(response: str, gold: str) -> bool:
    """Pay an empty answer, "because nothing was wrong in it"."""
    return response.strip() in ("", gold, f"\\boxed{{{gold}}}")


FAULTS: dict[Check, tuple[dict[str, Any], dict[str, Any]]] = {
    Check.GOLD: ({"question": "How many pens are 3 and 4 pens, taken together?", "answer": "#### see \\frac{1"}, {}),
    Check.EMPTY: (SUMS[0], {"verifier": f"{__file__}:pays_silence"}),
    Check.NULL: ({**ADD, "test_list": ["assert add(1, 2) is not True"] * 3}, {}),
    Check.SKIPPED: (
        {
            "prompt": "def add(a, b):\n",
            "canonical_solution": "    return a + b\n",
            "entry_point": "add",
            "test": "import unittest\nclass T(unittest.TestCase):\n    @unittest.skip('slow')\n    def test_a(self):\n"
            "        self.assertEqual(add(1, 2), 3)\n",
        },
        {},
    ),
    Check.HACK: (SUMS[0], {"verifier": f"{__file__}:lenient"}),
    Check.UNUSABLE: ({"question": "", "answer": "#### 7"}, {}),
    Check.LEAK: (
        {"question": "A train of 120 m passes a pole in 6 s. How fast is it in m/s?", "answer": "#### 20"},
        {},
    ),
    Check.HELD: (
        {"question": "A pack has 81 cards. How many cards does he get if he buys -3 packs?", "answer": "#### 243"},
        {},
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_planted_fault_fails_for_its_own_reason(fault: Check, tmp_path: Path) -> None:
    record, source = FAULTS[fault]
    others = [] if "text" in record or "test" in record else SUMS[1:]
    gated = run(tmp_path, [*others, record], source=FileSource(path="x", **source), bounds={Check.HELD: 0})
    assert fault in gated.failed, gated.violations
    if fault in (Check.UNUSABLE, Check.LEAK, Check.HELD, Check.GOLD):
        assert gated.failed == [fault]
        assert {violation.row for violation in gated.violations} == {len(SUMS)}


def test_without_a_card_or_a_licence_the_card_fails(tmp_path: Path) -> None:
    for folder, card, reason in (
        ("none", None, "no card"),
        ("bare", "# x", "no YAML header"),
        ("open", "---\na: b\n---\n", "license"),
    ):
        (tmp_path / folder).mkdir()
        gated = run(tmp_path / folder, SUMS[:2], card=card, fail_on=[Check.CARD])
        assert gated.failed == [Check.CARD] and reason in gated.violations[0].message


def test_a_share_may_be_allowed(tmp_path: Path) -> None:
    record, _ = FAULTS[Check.GOLD]
    assert run(tmp_path, [*SUMS, record], bounds={Check.GOLD: 0.05}).failed == []


@pytest.mark.parametrize(
    ("text", "bound"),
    [("gold=3", ("gold", 3)), ("gold=1", ("gold", 1)), ("gold=1.0", ("gold", 1.0)), ("proof=2%", ("proof", 0.02))],
)
def test_a_bound_is_a_number_of_rows_or_a_share(text: str, bound: tuple[str, float]) -> None:
    name, value = parse_bound(text)
    assert (name, value) == bound and isinstance(value, type(bound[1]))


@pytest.mark.parametrize("text", ["gold", "gold=", "gold=-1", "gold=1.5", "gold=200%", "gold=x", "gold=nan"])
def test_what_is_no_bound_is_an_error(text: str) -> None:
    with pytest.raises(ConfigError, match="is not a bound"):
        parse_bound(text)


def test_a_kind_with_a_bound_counts_in_no_check(tmp_path: Path) -> None:
    asked = [
        {
            "question": f"A pack has {n} cards. How many cards does he get if he buys -3 packs?",
            "answer": f"#### {3 * n}",
        }
        for n in (81, 90, 17)
    ]
    records = [*SUMS, *asked, {"question": "Is 91 a prime number?", "answer": "#### No"}]
    for bounds, failed in (
        ({"negative_count": 3, Check.HELD: 1}, []),
        ({"negative_count": 2, Check.HELD: 1}, [Check.HELD, Check.FLAGS]),
        ({"negative_count": 3, Check.HELD: 0}, [Check.HELD]),
        ({"negative_count": 3, Check.HELD: 1, Check.FLAGS: 0}, [Check.FLAGS]),
    ):
        gated = run(tmp_path, records, bounds=bounds)
        assert gated.failed == failed, bounds
        assert gated.tally(Check.HELD) == "4 of 24 rows: 3 negative_count, 1 yes_no_answer"


def test_flags_that_only_advise_fail_a_bound_of_none(tmp_path: Path) -> None:
    record = {"question": "Tom has some apples. He buys 9 more. How many apples has he now?", "answer": "#### 16"}
    gated = run(tmp_path, [*SUMS, record], bounds={Check.FLAGS: 0})
    assert gated.failed == [Check.FLAGS] and gated.count(Check.HELD) == 0
    assert [violation.kind for violation in gated.of_check(Check.FLAGS)] == ["missing_quantity"]


def test_the_gate_names_what_curation_names(tmp_path: Path) -> None:
    records = [
        *SUMS,
        SUMS[3],
        {"question": "Tom has 12 apples. He <b>buys</b> 9 more. How many has he?", "answer": "#### see picture"},
        {"question": "Jo sets 12 chairs into -3 rows. How many chairs does he have?", "answer": "#### 36"},
        {"question": "What is 2?", "answer": None},
    ]
    gated = run(tmp_path, records, against=[], fail_on=[])
    curated = pipeline.curate(tmp_path / "set.jsonl")
    changes = curated.ledger.filter(
        pl.col("action").is_in(["drop", "edit"]) & ~pl.col("reason").is_in([*INNOCENT_EDITS, "held_for_review"])
    )
    named = set(curated.flags.select("source_row", "reason").iter_rows())
    named |= set(changes.select("source_row", "reason").iter_rows())
    named |= set(curated.rejects.select("row", "reason").iter_rows())
    assert {(violation.row, violation.kind) for violation in gated.violations} == named
    assert len(named) >= 5


def test_what_applies_is_checked_where_nothing_is_named(tmp_path: Path) -> None:
    gated = run(tmp_path, SUMS[:2], fail_on=[], against=[])
    assert not {Check.LEAK, Check.CARD} & set(gated.checks) and Check.GOLD in gated.checks


def test_each_accepted_gold_must_pass_alone(tmp_path: Path) -> None:
    record = {"question": "What is one half, as a number between 0 and 1?", "golds": ["1/2", "\\frac{1"]}
    gated = run(tmp_path, [record])
    (violation,) = gated.violations
    assert gated.failed == [Check.GOLD] and '"other_gold":"\\\\frac{1"' in violation.message


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("def check(f):\n    f(1)", "nothing is asserted"),
        ("def check(f):\n    assert f(1) == 2", None),
        ("import numpy as np\ndef check(f):\n    np.testing.assert_allclose(f(1), 2)", None),
        ("def check(f):\n    if f(1) != 2:\n        raise ValueError", None),
    ],
)
def test_tests_without_an_assertion_test_nothing(code: str, why: str | None) -> None:
    arguments = {"type": "asserts", "entry_point": "f", "code": code}
    row: Any = {"verifier": "code", "verifier_args": json.dumps(arguments)}
    assert why_nothing_is_tested(row) == why


SKIPS = {
    "class": "@unittest.skip('x')\nclass T(unittest.TestCase):\n    def test_a(self):\n        self.fail()",
    "skipIf": "class T(unittest.TestCase):\n    @unittest.skipIf(1, 'x')\n    def test_a(self):\n        self.fail()",
    "skipTest": "class T(unittest.TestCase):\n    def test_a(self):\n        'why'\n        self.skipTest('x')",
    "raise": "class T(unittest.TestCase):\n    def test_a(self):\n        raise unittest.SkipTest('x')",
    "pass": "class T(unittest.TestCase):\n    def test_a(self):\n        pass",
}


@pytest.mark.parametrize("kind", SKIPS)
def test_every_way_to_skip_a_test_is_seen(kind: str) -> None:
    arguments = {"type": "unittest", "code": f"import unittest\n{SKIPS[kind]}\n"}
    row: Any = {"verifier": "code", "verifier_args": json.dumps(arguments)}
    why = why_nothing_is_tested(row)
    reason = "its code does not assert anything about a program" if kind == "pass" else "all its tests are skipped"
    assert why == f"they judge nothing: the suite has no tests: {reason}"


def test_junit_and_sarif_say_which_check_failed_and_where(tmp_path: Path) -> None:
    record, _ = FAULTS[Check.UNUSABLE]
    gated = run(tmp_path, [*SUMS[:3], record])
    (suite,) = ElementTree.fromstring(junit_xml([gated]))
    assert (suite.get("tests"), suite.get("failures")) == (str(len(Check)), "1")
    failing = [case.get("name") for case in suite if case.find("failure") is not None]
    assert failing == ["unusable"]
    (run_of_tool,) = sarif_log([gated])["runs"]
    (result,) = run_of_tool["results"]
    assert (result["ruleId"], result["level"]) == ("unusable", "error")
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 4}
    assert run_of_tool["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "unusable"
    json.dumps(sarif_log([gated]))


@pytest.mark.parametrize(
    "record",
    [
        {"prompt": "Think before you say it.", "verifier": "format"},
        {"prompt": "Say it briefly.", "verifier": "length", "verifier_args": {"max": 9}},
        {"prompt": "Say when.", "verifier": "regex", "verifier_args": {"pattern": "now"}},
    ],
)
def test_rows_that_are_judged_without_gold_need_none(tmp_path: Path, record: dict[str, Any]) -> None:
    gated = run(tmp_path, [record], fail_on=[Check.GOLD, Check.EMPTY, Check.UNUSABLE])
    assert (gated.failed, gated.rows) == ([], 1), gated.violations


NO_ROWS: tuple[dict[str, Any], ...] = (
    *({"question": "Who?", "answer": {"value": number}} for number in range(3)),
    {"question": "Who?", "answer": "me", "image": "a.png"},
)


@pytest.mark.parametrize(("bound", "fails"), [(0.0, True), (0.79, True), (0.81, False), (1.0, False)])
def test_what_is_unusable_is_a_share_of_all_records(tmp_path: Path, bound: float, fails: bool) -> None:
    gated = run(tmp_path, [SUMS[0], *NO_ROWS], fail_on=[Check.UNUSABLE], bounds={Check.UNUSABLE: bound})
    assert gated.fails(Check.UNUSABLE) is fails
    assert gated.tally(Check.UNUSABLE) == "4 of 5 records: 3 gold_not_text, 1 pictures"
    assert (gated.tally(Check.UNUSABLE) in junit_xml([gated]).decode()) is fails


def test_the_command_counts_what_is_unusable_by_reason(tmp_path: Path) -> None:
    data = tmp_path / "set.jsonl"
    data.write_text("".join(json.dumps(record) + "\n" for record in [*SUMS[:2], *NO_ROWS]))
    command = ["gate", str(data), "--fail-on", "unusable,empty", "--workers", "1"]
    failed = CliRunner().invoke(app, command)
    assert failed.exit_code == 8
    assert "FAILED   unusable  4 of 6 records: 3 gold_not_text, 1 pictures\n" in failed.stdout
    assert "set.jsonl:3: gold_not_text: column 'answer' holds an object" in failed.stdout
    assert CliRunner().invoke(app, [*command, "--max", "unusable=0.7"]).exit_code == 0


@pytest.mark.long_run
@pytest.mark.parametrize(
    ("file", "bounds"),
    [
        ("curation/gsm8k_train.jsonl", {}),
        ("code/humaneval.jsonl", {Check.NULL: 0.01}),
        ("code/mbpp.jsonl", {Check.NULL: 0.02}),
    ],
)
def test_known_sets_pass_with_the_bounds_that_the_docs_state(file: str, bounds: dict[Check, float]) -> None:
    assert gate(real_data(file), GateOptions(bounds=bounds), NullProgress()).failed == []


def test_the_action_and_the_hook_call_the_command_with_options_that_it_has() -> None:
    import yaml
    from house import ROOT

    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert hook["entry"] == "truegold gate" and hook["require_serial"] and hook["args"] == ["--skip-others"]
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    steps = action["runs"]["steps"]
    (command,) = [step["run"] for step in steps if "truegold gate" in step["run"]]
    source = (ROOT / "flows" / "cli" / "set_commands.py").read_text()
    assert (
        all(f"{option}: Annotated" in source for option in ("junit", "sarif", "skip_others")) and "--junit" in command
    )
    (install,) = [step for step in steps if "pip install" in step["run"]]
    assert install["run"].endswith('"$ACTION_PATH[curate]"')
    assert install["env"] == {"ACTION_PATH": "${{ github.action_path }}"}


def test_several_files_make_one_report(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    good.write_text("".join(json.dumps(record) + "\n" for record in SUMS[:10]))
    bad.write_text("".join(json.dumps(record) + "\n" for record in [*SUMS[10:], FAULTS[Check.UNUSABLE][0]]))
    for paths, code in (([good, bad], 8), ([bad, good], 8), ([good, good], 0)):
        outputs = ["--junit", str(tmp_path / "gate.xml"), "--sarif", str(tmp_path / "gate.sarif")]
        done = CliRunner().invoke(app, ["gate", *map(str, paths), "--workers", "1", *outputs])
        assert done.exit_code == code, done.output
        lines = done.stdout.splitlines()
        assert [line for line in lines if line.startswith(str(tmp_path))] == list(map(str, paths))
        suites = ElementTree.fromstring((tmp_path / "gate.xml").read_bytes())
        assert [suite.get("name") for suite in suites] == list(map(str, paths))
        findings = json.loads((tmp_path / "gate.sarif").read_text())["runs"][0]["results"]
        files = {entry["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for entry in findings}
        assert files == ({str(bad)} if bad in paths else set())


def test_golds_of_leaks_and_copies_are_checked_too(tmp_path: Path) -> None:
    sums = [{**record, "answer": record["answer"].removeprefix("#### ")} for record in SUMS]
    records = [*sums, {**sums[3], "answer": "#N/A"}, {"question": "How long is the rope?", "answer": "see solution"}]
    against = tmp_path / "evals.csv"
    pl.DataFrame(records).write_csv(against)
    for options in ({"against": []}, {"against": [str(against)]}):
        gated = run(tmp_path, records, fail_on=[Check.GOLD, Check.DROPPED, Check.LEAK], **options)
        assert {violation.row for violation in gated.of_check(Check.GOLD)} >= {len(SUMS) + 1, len(SUMS) + 2}, options
    assert gated.count(Check.LEAK) == len(records)


def test_a_humaneval_suite_of_one_assertion_pays_its_constant(tmp_path: Path) -> None:
    one = {
        "prompt": 'def add(a, b):\n    """Return a + b."""\n',
        "canonical_solution": "    return a + b\n",
        "entry_point": "add",
        "test": "def check(candidate):\n    assert candidate(3, 4) == 7\n",
    }
    gated = run(tmp_path, [one], fail_on=[Check.NULL, Check.DROPPED])
    assert gated.failed == [Check.NULL] and "returns 7" in gated.violations[0].message
    more = {**one, "test": one["test"] + "    assert candidate(1, 1) == 2\n"}
    assert run(tmp_path, [more], fail_on=[Check.NULL]).failed == []


def test_a_file_that_cannot_be_read_is_an_error_of_its_own_in_both_reports(tmp_path: Path) -> None:
    good, bad, metrics = tmp_path / "good.jsonl", tmp_path / "bad.jsonl", tmp_path / "metrics.csv"
    good.write_text("".join(json.dumps(record) + "\n" for record in SUMS[:10]))
    bad.write_text("".join(json.dumps(record) + "\n" for record in [*SUMS[10:], FAULTS[Check.UNUSABLE][0]]))
    metrics.write_text("step,loss\n1,0.5\n")
    outputs = ["--junit", str(tmp_path / "gate.xml"), "--sarif", str(tmp_path / "gate.sarif"), "--workers", "1"]
    for paths, code in (([metrics, good], 3), ([good, metrics, bad], 8), ([metrics], 3), ([tmp_path / "no.csv"], 3)):
        done = CliRunner().invoke(app, ["gate", *map(str, paths), *outputs])
        code_of_error = done.exception.exit_code if isinstance(done.exception, InputError) else done.exit_code
        assert code_of_error == code, done.output
        suites = ElementTree.fromstring((tmp_path / "gate.xml").read_bytes())
        assert [suite.get("name") for suite in suites] == list(map(str, paths))
        assert sum(int(suite.get("errors", "")) for suite in suites) == 1
        (tool_run,) = json.loads((tmp_path / "gate.sarif").read_text())["runs"]
        (unread,) = [entry for entry in tool_run["results"] if entry["ruleId"] == "unread"]
        assert tool_run["tool"]["driver"]["rules"][unread["ruleIndex"]]["id"] == "unread"


def test_what_is_no_set_of_problems_is_skipped_where_asked(tmp_path: Path) -> None:
    files = {
        "metrics.csv": "step,loss\n1,0.5\n",
        "log.jsonl": '{"ts": 1, "level": "info"}\n',
        "set.jsonl": json.dumps(SUMS[0]) + "\n",
        "no_gold.csv": "question,points\nWhat is 1+1?,3\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    paths = [str(tmp_path / name) for name in files]
    done = CliRunner().invoke(app, ["gate", *paths[:3], "--skip-others", "--workers", "1"])
    assert done.exit_code == 0, done.output
    skipped = [line for line in done.stdout.splitlines() if line.startswith("skipped")]
    assert [line.split(": ")[0].rpartition("/")[2] for line in skipped] == ["metrics.csv", "log.jsonl"]
    assert "step, loss" in skipped[0]
    # A set whose golds are missing is one of problems all the same.
    assert isinstance(CliRunner().invoke(app, ["gate", paths[3], "--skip-others"]).exception, InputError)


def test_a_bound_is_shown_beside_the_count(tmp_path: Path) -> None:
    data = tmp_path / "set.jsonl"
    data.write_text("".join(json.dumps(record) + "\n" for record in [*SUMS, FAULTS[Check.GOLD][0]]))
    for bound, shown in (("gold=1", "(1 row may)"), ("gold=2", "(2 rows may)"), ("gold=0.1", "(10 % may)")):
        done = CliRunner().invoke(app, ["gate", str(data), "--fail-on", "gold", "--max", bound, "--workers", "1"])
        assert done.exit_code == 0 and shown in done.stdout, done.output
    done = CliRunner().invoke(app, ["gate", str(data), "--max", "gold=2.5"])
    assert isinstance(done.exception, ConfigError) and "Give a number of rows" in str(done.exception)


def test_a_bound_that_no_row_meets_is_said(tmp_path: Path) -> None:
    data = tmp_path / "set.jsonl"
    data.write_text("".join(json.dumps(record) + "\n" for record in SUMS))
    done = CliRunner().invoke(
        app, ["gate", str(data), "--workers", "1", "--max", "truncated_text=2", "--max", "gold=1"]
    )
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[-1] == "--max truncated_text: no row has this reason."


def test_columns_that_are_not_known_are_named_with_their_options(tmp_path: Path) -> None:
    data = tmp_path / "set.csv"
    data.write_text("aufgabe,loesung\nWas ist 2+2?,4\n")
    done = CliRunner().invoke(app, ["gate", str(data)])
    assert isinstance(done.exception, InputError) and "--prompt-column COLUMN --gold-column COLUMN" in str(
        done.exception.hint
    )


@pytest.mark.parametrize(
    "around",
    [
        "{}<script>alert(1)</script>",
        "<script src='x.js'></script>{}",
        "<style>p {{color: red}}</style>{}",
        "<html>{}</html>",
    ],
)
def test_what_a_page_runs_is_mended_and_said(around: str, tmp_path: Path) -> None:
    record = {**SUMS[0], "question": around.format(SUMS[0]["question"])}
    gated = run(tmp_path, [record, *SUMS[1:]], bounds={Check.EDITED: 0})
    assert gated.failed == [Check.EDITED] and [violation.kind for violation in gated.violations] == ["html_tags"]
