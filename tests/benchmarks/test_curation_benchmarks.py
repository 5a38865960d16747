"""The benchmarks of flagging count right and say what is not there. Their data here is tiny."""

from __future__ import annotations

import json
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import curation_label_noise  # noqa: E402
import curation_rules  # noqa: E402
import curation_suspicion  # noqa: E402
import flag_readings  # noqa: E402
import pytest  # noqa: E402
from ranking_scores import area_under_roc, average_precision  # noqa: E402

from truegold.pipeline import curate  # noqa: E402
from truegold.pipeline.flag.rules import BUILT_IN  # noqa: E402
from truegold.pipeline.tables.reasons import CONFLICTING_LABELS, GOLD_REASONS, POSSIBLE_TRANSLATION  # noqa: E402

SYSTEMS = {"good": 1.0, "fair": 0.8, "poor": 0.5}


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def reviewed(n):
    """n items with gold "7"; the first is mislabeled: every system says 9."""
    for index in range(n):
        preds = {name: "7" if index % 10 < 10 * rate else "8" for name, rate in SYSTEMS.items()}
        if index == 0:
            preds = dict.fromkeys(SYSTEMS, "9")
        status = "revised" if index == 0 else "kept"
        yield {
            "id": index,
            "question": f"What is item {index}?",
            "gold_original": "7",
            "status": status,
            "preds": preds,
        }


def test_scores_are_those_computed_by_hand():
    assert average_precision([True, False, True], [0.9, 0.5, 0.4]) == pytest.approx(5 / 6)
    assert area_under_roc([True, False, True], [0.9, 0.5, 0.4]) == pytest.approx(0.5)


def test_the_report_on_reviewed_items_ranks_the_bad_one_first():
    lines = list(curation_suspicion.gsm8k(list(reviewed(40))))
    assert lines[0].startswith("40 items, 1 bad")
    of_all = next(line for line in lines if line.startswith("all"))
    assert of_all.split()[1] == "3"
    assert of_all.split()[4] == "1.000"
    assert any(line.startswith("half of the items") for line in lines)


def test_the_report_on_choice_items_counts_wrong_labels():
    rows = [
        {"id": n, "question": "?", "gold_original": "A", "error_type": "wrong_groundtruth" if n < 2 else "ok"}
        | {"preds": dict.fromkeys(SYSTEMS, "A" if n else "B")}
        for n in range(20)
    ]
    lines = list(curation_suspicion.mmlu(rows))
    assert lines[0] == "20 items, 2 with a wrong label, 2 bad of any kind"
    assert any("no system disagrees with: 1 of 2" in line for line in lines)


def test_replaced_labels_are_wrong_counted_as_bad_and_the_same_at_every_run():
    rows = [row | {"bad": row["status"] != "kept"} for row in reviewed(400)]
    noisy = curation_label_noise.replace_labels(rows, 0.3, seed=0, closed=False)
    changed = [new for old, new in zip(rows, noisy, strict=True) if old["gold_original"] != new["gold_original"]]
    assert 80 < len(changed) < 160
    assert all(row["bad"] for row in changed)
    assert noisy == curation_label_noise.replace_labels(rows, 0.3, seed=0, closed=False)
    assert noisy[0]["bad"]  # Already so by the review.


def test_the_report_under_noise_gives_both_halves_apart_and_pooled(monkeypatch):
    monkeypatch.setattr(curation_label_noise, "SHARES", (0.1,))
    rows = [row | {"bad": row["status"] != "kept"} for row in reviewed(60)]
    lines = list(curation_label_noise.report({curation_label_noise.GSM8K: rows}, seeds=1))
    assert lines[1].startswith("  all         10%")
    assert lines[1].count("|") == 3
    assert any(line.split()[:2] == ["both", "all"] for line in lines)


def test_reach_and_false_alarms_are_shares_of_their_own_rows():
    whole = {"question": "Ann has 3 eggs and buys 4 eggs. How many eggs has she?", "answer": "3 + 4 = 7\n#### 7"}
    rows = [whole | {"insufficient_question": "Ann has some eggs and buys 4 eggs. How many eggs has she now?"}]
    cases = list(curation_rules.mip_gsm8k(rows, with_solution=True))
    assert [(case.ill, case.gold) for case in cases] == [(False, "7"), (True, "7")]
    lines = list(curation_rules.report("mip_gsm8k.jsonl", cases))
    assert "ill-posed     1: flagged 1 = 100.0%" in lines[0]
    assert any("intact        1: flagged 0 = 0.0%" in line for line in lines)
    assert lines[-1] == "  precision 1.00 at recall 1.00"


@pytest.mark.parametrize(
    "benchmark", [curation_label_noise, curation_rules, curation_suspicion], ids=lambda module: module.__name__
)
def test_a_missing_file_is_left_out_and_said(benchmark, tmp_path, monkeypatch, capsys):
    write(tmp_path / "svamp.jsonl", [{"ID": "a", "Body": "Ann has 3 eggs", "Question": "Is it so?", "Answer": 3.0}])
    monkeypatch.setattr(sys, "argv", ["benchmark", str(tmp_path)])
    benchmark.main()
    assert "not there: left out" in capsys.readouterr().out


def test_readers_have_a_question_for_every_reason():
    duplicates = {"exact_duplicate", "same_problem"}
    assert set(flag_readings.QUESTIONS) == {
        *BUILT_IN, *GOLD_REASONS, CONFLICTING_LABELS, POSSIBLE_TRANSLATION, *duplicates,
    }  # fmt: skip


def test_flagged_rows_are_drawn_with_controls_and_without_their_reason(tmp_path):
    story = "Ann has {} eggs in her basket and buys {} more. How many eggs has she now?"
    rows = [{"question": story.format(n, n * n), "answer": str(n + n * n)} for n in range(2, 9)]
    rows += [
        {"question": "Is the square of every odd number odd?", "answer": "yes"},
        {"question": story.format(2, 4), "answer": "6"},
        {"question": story.format(3, 9), "answer": "13"},
    ]
    curate(rows, work_dir=tmp_path / "run")
    run = flag_readings.Curated("eggs", tmp_path / "run" / "run")
    assert {reason: len(found) for reason, found in run.findings.items()} == {
        "yes_no_answer": 1, "exact_duplicate": 1, CONFLICTING_LABELS: 1,
    }  # fmt: skip
    drawn = flag_readings.draw([run], dict.fromkeys(flag_readings.QUESTIONS, 5), pooled=False, seed=1)
    keyed = {(key["reason"], key["control"]): (item, key) for item, key in drawn}
    assert len(drawn) == len(keyed) == 6
    item, key = keyed["yes_no_answer", False]
    assert item == {
        "ask": flag_readings.QUESTIONS["yes_no_answer"].ask, "problem": rows[7]["question"],
        "options": ["yes", "no"], "gold": "yes", "solution": None, "other": None,
    }  # fmt: skip
    assert (key["corpus"], key["blocks"], key["source_row"]) == ("eggs", True, 8)
    assert keyed["yes_no_answer", True][0]["ask"] == item["ask"]
    assert keyed["yes_no_answer", True][0]["problem"] != item["problem"]
    assert keyed[CONFLICTING_LABELS, False][0]["other"]["prompt"] == story.format(3, 9)
    assert {keyed[CONFLICTING_LABELS, False][0]["gold"], keyed[CONFLICTING_LABELS, False][0]["other"]["gold"]} == {
        "12", "13",
    }  # fmt: skip
    pair, _ = keyed["exact_duplicate", True]
    assert pair["other"]["prompt"] not in (pair["problem"], story.format(3, 9))
    unflagged = flag_readings.draw_unflagged([run], rows=100, seed=1)
    assert sorted(key["source_row"] for _, key in unflagged) == [1, 3, 4, 5, 6, 7]


def test_readings_are_counted_by_reason_and_controls():
    keys = [
        {"item": n, "corpus": "eggs", "reason": "yes_no_answer", "blocks": n < 4, "control": n >= 4} for n in range(6)
    ]  # fmt: skip
    first = {0: "yes", 1: "yes", 2: "yes", 3: "no", 4: "no", 5: "yes"}
    second = {0: "yes", 1: "yes", 2: "unclear", 3: "no", 4: "no", 5: "no"}
    (line,) = flag_readings.count(keys, [first, second])
    assert (line["corpus"], line["rows"]) == ("eggs", 6)
    # Agreement 4 of 6; by chance (4 * 2 + 2 * 3) / 36.
    assert line["kappa"] == pytest.approx((4 / 6 - 14 / 36) / (1 - 14 / 36), abs=1e-3)
    proof = line["reasons"]["yes_no_answer"]
    assert (proof["read"], proof["both"], proof["either"], proof["blocks"]) == (4, 2, 3, True)
    assert proof["interval"] == [0.15, 0.85]
    assert (proof["controls"]["read"], proof["controls"]["both"], proof["controls"]["either"]) == (2, 0, 1)
    fit = [{"item": 0, "corpus": "eggs", "reason": flag_readings.UNFLAGGED, "blocks": False, "control": False}]
    (line,) = flag_readings.count(fit, [{0: "wrong_gold"}, {0: "fine"}])
    unfit = line["reasons"]["unflagged"]
    assert (unfit["both"], unfit["either"]) == (0, 1)


def test_corpora_give_rows_by_turns():
    assert flag_readings.by_turns([1, 5, 9], 7) == [1, 3, 3]
    assert flag_readings.by_turns([1, 0, 2], 7) == [1, 0, 2]


def test_known_rows_and_flags_that_block_are_left_out(tmp_path):
    rows = [{"question": f"Is {n} an even number?", "answer": "yes"} for n in (4, 6)]
    rows += [
        {"question": f"Ann has {n} eggs. She buys 3 more eggs. How many has she?", "answer": f"{n + 3}"} for n in (4, 9)
    ]
    curate(rows, work_dir=tmp_path)
    known = [("yes_no_answer", "eggs", 1), ("yes_no_answer", "other", 2), ("multi_part", "eggs", 2)]
    run = flag_readings.Curated("eggs", tmp_path / "run", known=known)
    assert [finding.row["source_row"] for finding in run.findings["yes_no_answer"]] == [2]
    assert not flag_readings.Curated("eggs", tmp_path / "run", advising=True).findings["yes_no_answer"]
