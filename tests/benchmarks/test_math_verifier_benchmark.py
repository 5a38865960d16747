"""The comparison of graders counts right, keeps what it has judged, and says what it lacks. The peers here are toys."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import math_counts  # noqa: E402
import math_rows  # noqa: E402
from math_peers.streams import PeerFailed, Runner, find, kept, verdicts  # noqa: E402
from publishing import publish  # noqa: E402

TOY = '''
"""Accepts equal strings; "?" it cannot judge; some answers break it. Notes every call."""
import os, subprocess, sys, time
from pathlib import Path

LOG = Path(__file__).with_name("calls.log")

class Toy:
    packages = ("pytest",)

    def pair(self, gold, answer, options):
        if answer.startswith("row"):
            with LOG.open("a") as log:
                log.write(answer + "\\\\n")
        if answer == "row raise":
            raise ValueError
        if answer == "row hang":
            time.sleep(600)
        if answer == "row crash":
            os._exit(9)
        if answer == "row child":
            subprocess.run([sys.executable, "-P", "-c", "sum(range(10_000_000))"])
        return (None if answer == "?" else gold == answer), ""

class Broken:
    packages = ("pytest",)

    def __init__(self):
        raise RuntimeError("no grammar for this version")

class Absent:
    packages = ("a-package-that-nobody-has",)
'''


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "toy_peer.py").write_text(TOY.replace("\\\\n", "\\n"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


def runner(name: str = "Toy") -> Runner:
    found = find(name.lower(), f"toy_peer:{name}", [sys.executable])
    assert isinstance(found, Runner)
    return found


def tasks(*answers: str) -> list[dict[str, object]]:
    return [
        {"key": f"k{number}", "kind": "pair", "gold": "row right", "text": answer, "options": None}
        for number, answer in enumerate(answers)
    ]


def calls(folder: Path) -> list[str]:
    log = folder / "calls.log"
    return log.read_text().splitlines() if log.exists() else []


def pair(id_: str, gold: str, answer: str, equivalent: bool | None, **more: object) -> dict[str, object]:
    return {"id": id_, "corpus": "c", "gold": gold, "answer": answer, "equivalent": equivalent, **more}


def data(folder: Path, **files: list[dict[str, object]]) -> Path:
    names = {**math_rows.FILES}
    for name, rows in files.items():
        (folder / names[name]).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def toy_score(row: math_rows.Row) -> dict[str, object]:
    score = None if row.text == "?" else row.gold == row.text
    return {"key": row.key, "score": score, "note": "", "cpu_ms": 1.0}


def counts(rows: list[math_rows.Row]) -> dict[str, Any]:
    return math_counts.summary([(row, toy_score(row)) for row in rows])


def test_errors_are_counted_on_labelled_rows_and_policy_and_noise_stand_apart(tmp_path: Path) -> None:
    hard = pair("hard-0", "3", "4", True, **{"class": "label noise, corrupted gold"})
    folder = data(
        tmp_path,
        pairs=[
            pair("a", "1", "1", True),
            pair("b", "1", "2", True),
            pair("c", "1", "?", True),
            pair("d", "1", "2", False),
            pair("e", "1", "1", False, rule="+1"),
            pair("f", "1", "?", False),
            pair("g", "1", "1", None),
            pair("h", "1", "1%", False, rule="percent of int"),
            pair("i", "3", "4", True),
        ],
        hard=[hard, pair("hard-1", "5", "V", True, **{"class": "numerals"})],
    )
    sets, _ = math_rows.load_sets(folder)
    found = counts(sets["pairs"])
    tally = {"positives": 3, "fn": 2, "negatives": 3, "fp": 1, "unjudged": 2, "hangs": 0}
    assert found["main"] == found["all"] == tally
    halves = [found[half]["all"] for half in ("read", "counted only")]
    assert {kind: halves[0][kind] + halves[1][kind] for kind in tally} == tally
    assert sum(found[half]["real corpora"]["negatives"] for half in ("read", "counted only")) == 2
    assert found["by_rule"]["+1"]["fp"] == 1
    assert found["policy"] == {
        "c": {"rows": 1, "accepted": 1, "unjudged": 0},
        "percent of int": {"rows": 1, "accepted": 0, "unjudged": 0},
    }
    assert found["noise"] == {"c": {"rows": 1, "accepted": 0, "unjudged": 0}}
    assert counts(sets["hard"])["by_rule"] == {
        "numerals": {"positives": 1, "fn": 1, "negatives": 0, "fp": 0, "unjudged": 0, "hangs": 0}
    }


def test_only_a_class_that_begins_with_label_noise_takes_a_row_out(tmp_path: Path) -> None:
    hard = pair("hard-0", "3", "4", True, **{"class": "text, perhaps label noise"})
    sets, _ = math_rows.load_sets(data(tmp_path, pairs=[pair("i", "3", "4", True)], hard=[hard]))
    assert [row.standing for row in sets["pairs"]] == ["counted"]


def test_choice_gaming_and_chinese_rows_are_in_the_wider_total_alone(tmp_path: Path) -> None:
    choice = pair("a", "A", "B", True, options=["1", "2"]) | {"corpus": math_rows.CHOICE_CORPUS}
    sets, _ = math_rows.load_sets(data(tmp_path, pairs=[choice, pair("b", "1", "1", True)]))
    found = counts(sets["pairs"])
    assert (found["main"]["positives"], found["all"]["positives"]) == (1, 2)
    assert (found["main"]["fn"], found["all"]["fn"]) == (0, 1)
    assert [row.task()["options"] for row in sets["pairs"]] == [["1", "2"], None]


def test_a_limit_keeps_every_corpus_and_label_and_the_order(tmp_path: Path) -> None:
    rows = [pair(str(number), "1", "1", number % 4 > 0) for number in range(400)]
    rows.append(pair("rare", "1", "1", True) | {"corpus": "rare"})
    sets, _ = math_rows.load_sets(data(tmp_path, pairs=rows))
    chosen = math_rows.stratified(sets["pairs"], 40)
    by_label = [sum(row.label is label and row.corpus == "c" for row in chosen) for label in (True, False)]
    assert by_label == [30, 10]
    assert [row.corpus for row in chosen].count("rare") == 1
    assert chosen == [row for row in sets["pairs"] if row in chosen]
    assert chosen == math_rows.stratified(sets["pairs"], 40)


def test_speed_is_rows_over_cpu_time_with_nearest_ranks() -> None:
    speed = math_counts.speed([1.0] * 98 + [2.0, 900.0])
    assert speed["per_cpu_s"] == 100.0
    assert (speed["p50_ms"], speed["p99_ms"], speed["max_ms"]) == (1.0, 900.0, 900.0)


def test_the_probes_are_those_of_the_study() -> None:
    sets, _ = math_rows.load_sets(Path("/nonexistent"))
    probes = sets["probes"]
    assert len({row.key for row in probes}) == len(probes) == 107
    counted = [row.label for row in probes if row.standing == "counted"]
    assert (counted.count(True), counted.count(False)) == (77, 24)


def test_a_second_run_judges_nothing_again(toy: Path) -> None:
    rows = tasks("row right", "row other")
    first = verdicts(runner(), rows, toy / "work")
    assert [record["score"] for record in first] == [True, False]
    assert verdicts(runner(), rows, toy / "work") == first
    assert calls(toy) == ["row right", "row other"]


def test_a_killed_run_goes_on_behind_its_last_whole_line(toy: Path) -> None:
    rows = tasks("row right", "row 1", "row 2")
    whole = verdicts(runner(), rows, toy / "work")
    [stream] = (toy / "work").rglob("*.jsonl")
    lines = stream.read_text().splitlines(keepends=True)
    stream.write_text(lines[0] + lines[1][:20])
    assert [record["key"] for record in kept(stream)] == ["k0"]
    again = verdicts(runner(), rows, toy / "work")
    assert [(record["key"], record["score"]) for record in again] == [
        (record["key"], record["score"]) for record in whole
    ]
    assert calls(toy) == ["row right", "row 1", "row 2", "row 1", "row 2"]
    assert len(stream.read_text().splitlines()) == 3


def test_other_rows_or_another_version_start_a_stream_of_their_own(toy: Path) -> None:
    verdicts(runner(), tasks("row 1"), toy / "work")
    verdicts(runner(), tasks("row 1", "row 2"), toy / "work")
    verdicts(Runner("toy", "toy_peer:Toy", sys.executable, {"pytest": "0"}), tasks("row 1"), toy / "work")
    assert calls(toy) == ["row 1", "row 1", "row 2", "row 1"]


def test_what_breaks_a_peer_could_not_be_judged_and_the_rest_is(toy: Path) -> None:
    rows = tasks("row raise", "row hang", "row crash", "row right")
    found = verdicts(runner(), rows, toy / "work", hang_s=1.5)
    assert [(record["score"], record["note"]) for record in found] == [
        (None, "raised ValueError"),
        (None, "hang"),
        (None, "crash"),
        (True, ""),
    ]


def test_cpu_time_of_children_is_counted(toy: Path) -> None:
    alone, with_child = verdicts(runner(), tasks("row right", "row child"), toy / "work")
    assert with_child["cpu_ms"] > 20 + alone["cpu_ms"]


def test_a_peer_that_cannot_start_says_why(toy: Path) -> None:
    with pytest.raises(PeerFailed, match="no grammar for this version"):
        verdicts(runner("Broken"), tasks("row 1"), toy / "work")


def test_a_peer_that_is_not_installed_is_named_with_the_package(toy: Path) -> None:
    why = find("absent", "toy_peer:Absent", [sys.executable])
    assert why == "a-package-that-nobody-has is not installed"


def test_a_page_of_results_is_written_whole(tmp_path: Path) -> None:
    page, numbers = tmp_path / "page.md", tmp_path / "numbers.json"
    page.write_text("# Old words\n")
    publish({"fn": 1}, "first\n", numbers, page, "Math verifier")
    assert page.read_text() == "# Math verifier\n\nfirst\n"
    assert json.loads(numbers.read_text()) == {"fn": 1}


def test_the_command_counts_writes_tables_and_says_what_is_missing(tmp_path: Path) -> None:
    folder = data(tmp_path, pairs=[pair("a", "7", "7", True), pair("b", "7", "8", False), pair("c", "7", "8", True)])
    command = [sys.executable, str(BENCHMARKS / "math_verifier.py"), str(folder), "--peers", "truegold"]
    command += ["--no-hostile", "--work", str(tmp_path / "work"), "--json", str(tmp_path / "out.json")]
    command += ["--write", str(tmp_path / "page.md")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "responses.jsonl is not in" in done.stderr
    results = json.loads((tmp_path / "out.json").read_text())
    main = results["peers"]["truegold"]["pairs"]["main"]
    assert (main["positives"], main["fn"], main["negatives"], main["fp"]) == (2, 1, 1, 0)
    assert "| truegold | 1/2 = 50.0 % | 0/1 = 0.0 % |" in (tmp_path / "page.md").read_text()


def test_a_folder_that_is_not_there_is_one_helpful_line(tmp_path: Path) -> None:
    command = [sys.executable, str(BENCHMARKS / "math_verifier.py"), str(tmp_path / "nowhere")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1 and "is not a folder" in done.stderr
