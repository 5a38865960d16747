"""`truegold verifiers ...`: what it prints, what it writes, how it ends."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from command_line import run_command

EXAMPLE = Path(__file__).parents[3] / "examples" / "custom_verifier.py"


def truegold(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return run_command("verifiers", *arguments, cwd=cwd)


def test_list_names_every_built_in_with_a_line_about_it(tmp_path: Path) -> None:
    done = truegold("list", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert {"math", "choice", "exact"} <= lines.keys()
    assert "built in" in lines["choice"] and "multiple-choice" in lines["choice"]


def test_show_prints_version_fingerprint_and_documentation(tmp_path: Path) -> None:
    done = truegold("show", f"{EXAMPLE}:unit_price", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "fingerprint  unit_price@1+" in done.stdout
    assert "1 for the price and the unit" in done.stdout and '{"tolerance": 0.01}' in done.stdout


def test_check_ends_with_0_where_the_contract_is_kept(tmp_path: Path) -> None:
    done = truegold("check", f"{EXAMPLE}:unit_price", "--gold", "2.50 USD/kg", "--gold", "$3/l", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAILED" not in done.stdout and "ok       deterministic" in done.stdout


def test_check_ends_with_6_and_the_findings_where_it_is_broken(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "def dice(response, gold):\n    import random\n    return random.random() < 0.5\n"
    )
    done = truegold("check", "mine.py:dice", cwd=tmp_path)
    assert done.returncode == 6, done.stderr
    assert "FAILED   deterministic" in done.stdout and ", then " in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["check", "mat"], 2, "Did you mean 'math'?"),
        (["show", "nope.py:x"], 2, "there is no file"),
        (["check", "math", "--args", "{"], 2, "--args is not JSON"),
        (["check", "math", "--args", "[1]"], 2, "not a JSON object"),
        (["audit", "math", "--data", "none.jsonl"], 3, "does not exist"),
        (
            ["audit", "math", "--data", "rows.jsonl", "--gold-column", "answer"],
            3,
            "has no column 'answer'; it has: gold",
        ),
        (["audit", "math", "--data", "empty.jsonl"], 3, "no row has a gold answer"),
    ],
)
def test_a_mistake_is_one_line_and_an_exit_code(tmp_path: Path, arguments: list[str], code: int, words: str) -> None:
    (tmp_path / "rows.jsonl").write_text('{"gold": "5"}\n')
    (tmp_path / "empty.jsonl").write_text('{"gold": null}\n')
    done = truegold(*arguments, cwd=tmp_path)
    assert done.returncode == code
    assert words in done.stderr and "Traceback" not in done.stderr


def test_audit_writes_the_card_and_skips_bad_rows_by_name(tmp_path: Path) -> None:
    rows = ['{"target": 5}', '{"target": "B"}', '{"target": ""}', "{broken", '{"other": 1}', '{"target": 5}']
    (tmp_path / "rows.jsonl").write_text("\n".join(rows) + "\n")
    done = truegold(
        "audit", "exact", "--data", "rows.jsonl", "--gold-column", "target", "--output", "out", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "gold refused" in done.stdout and "contract: kept" in done.stdout
    for line in ("skipped line 3: empty gold", "skipped line 4: invalid_json", "skipped line 5: no gold column"):
        assert line in done.stderr
    card = json.loads((tmp_path / "out" / "verifier_card.json").read_text())
    assert (card["data"]["golds_given"], card["data"]["golds_distinct"]) == (3, 2)
    assert card["data"]["skipped"] == {"empty gold": 1, "invalid_json": 1, "no gold column": 1}
    text = (tmp_path / "out" / "verifier_card.md").read_text()
    assert text.startswith("# Verifier card: `exact`") and "`rows.jsonl`" in text


ALWAYS = "def {name}(response, gold):\n    return {value}\n"


@pytest.mark.parametrize(
    ("verifier", "options", "code", "words"),
    [
        pytest.param("exact", [], 0, "", marks=pytest.mark.long_run),
        ("mine.py:yes", [], 6, "contract: BROKEN: tells wrong from right"),
        pytest.param("mine.py:no", [], 6, "gold passes itself", marks=pytest.mark.long_run),
        ("exact", ["--max-fn", "0.2"], 7, "--max-fn: right answers refused"),
        pytest.param("exact", ["--max-fp", "0"], 0, "", marks=pytest.mark.long_run),
        ("math", ["--max-fp", "0.01", "--max-fn", "0.2"], 0, "Youden's J"),
    ],
)
def test_audit_ends_as_the_contract_and_the_limits_say(
    tmp_path: Path, verifier: str, options: list[str], code: int, words: str
) -> None:
    (tmp_path / "mine.py").write_text(ALWAYS.format(name="yes", value=True) + ALWAYS.format(name="no", value=False))
    (tmp_path / "rows.jsonl").write_text('{"gold": "12"}\n{"gold": "\\\\frac{1}{2}"}\n')
    done = truegold("audit", verifier, "--data", "rows.jsonl", *options, cwd=tmp_path)
    assert done.returncode == code, done.stdout + done.stderr
    assert words in done.stdout + done.stderr


def test_audit_reads_tables_too_and_heeds_the_limit(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("gold\n" + "".join(f"{n}\n" for n in range(20)))
    done = truegold("audit", "exact", "--data", "rows.csv", "--limit", 4, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    card = json.loads((tmp_path / "verifier_card.json").read_text())
    assert (card["data"]["golds_distinct"], card["data"]["golds_audited"]) == (20, 4)


def test_a_check_that_could_check_nothing_does_not_pass(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "def dates(response, gold):\n    return None if gold is None or gold.count('-') != 2 else gold in response\n"
    )
    done = truegold("check", "mine.py:dates", cwd=tmp_path)
    assert done.returncode == 2, done.stdout
    assert "lines of the contract could not be checked" in done.stderr
    assert "truegold verifiers check mine.py:dates --gold ANSWER" in done.stderr
    done = truegold("check", "mine.py:dates", "--gold", "2024-01-02", "--gold", "2025-03-04", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    wrong = truegold("check", "length", "--args", '{"maximum": 3}', cwd=tmp_path)
    assert wrong.returncode == 2
    assert "length has no option 'maximum'" in wrong.stderr and "needs the option 'max'" in wrong.stderr


BOXED = """
import re
def boxed(response, gold):
    boxes = re.findall(r"\\\\boxed\\{([^{}]*)\\}", response)
    return bool(boxes) and bool(gold) and boxes[-1] == gold
def odd(response, gold):
    return bool(gold) and response == f"RESULT={gold};"
"""


def test_an_audit_of_a_verifier_of_boxed_answers_measures_it_and_names_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(BOXED)
    (tmp_path / "rows.jsonl").write_text('{"gold": "12"}\n{"gold": "7"}\n')
    audit = ("audit", "mine.py:boxed", "--data", "rows.jsonl")
    done = truegold(*audit, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "contract: kept" in done.stdout and "0 of 2" in done.stdout
    assert "@verifier(gold_response=" in done.stdout
    odd = truegold("audit", "mine.py:odd", "--data", "rows.jsonl", cwd=tmp_path)
    assert odd.returncode == 6 and "--gold-response" in odd.stdout
    given = truegold("audit", "mine.py:odd", "--data", "rows.jsonl", "--gold-response", "RESULT={gold};", cwd=tmp_path)
    assert given.returncode == 0, given.stdout + given.stderr
    checked = truegold("check", "mine.py:odd", "--gold", "12", "--gold-response", "RESULT={gold};", cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("template", ["", "42", "\\boxed{{gold}}", "{gold} {x}", "{gold.real}", "{", "{}", "{0}"])
def test_a_template_without_gold_is_refused_with_what_to_write(template: str, tmp_path: Path) -> None:
    done = truegold("check", "exact", "--gold-response", template, cwd=tmp_path)
    assert done.returncode == 2
    assert "must have {gold}" in done.stderr and "\\boxed{{{gold}}}" in done.stderr


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--host", "0.0.0.0"], "--allow 10.0.0.0/8"),
        (["--host", "0.0.0.0", "--allow", "0.0.0.0/0"], "allows every address"),
        (["--allow", "trainer-1"], "not a host name"),
        (["--token-file", "missing"], "cannot be read"),
        (["--token-file", "empty"], "is empty"),
    ],
)
def test_a_service_that_lets_everybody_in_does_not_start(options: list[str], says: str, tmp_path: Path) -> None:
    pytest.importorskip("uvicorn", reason="needs truegold[serve]")
    (tmp_path / "empty").write_text(" \n")
    done = run_command("serve-verifier", *options, cwd=tmp_path)
    assert done.returncode == 2 and says in done.stderr
