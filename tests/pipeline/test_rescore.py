"""Stored rollouts judged again: every log is read, every flip shown, and no missing verdict accuses anybody."""

from __future__ import annotations

import json
import math
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from truegold.pipeline.config.sources import Columns
from truegold.pipeline.rescore import Rescored, rescore, verdict_parts
from truegold.pipeline.rescore.logs import read_logs
from truegold.pipeline.rescore.rollout_report import write_report
from truegold.pipeline.running.progress import NullProgress
from truegold.verifiers import InputError

QUESTION = "Ann has 1 pen and gets half a pen. How much of a pen did she get?"
RIGHT, WRONG = "It is \\boxed{0.5}.", "It is \\boxed{5}."


def lines(path: Path, records: list[dict[str, Any]]) -> Path:
    """Write records as JSON Lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def log_of(trainer: str, folder: Path, pairs: list[tuple[str, float | None]]) -> Path:
    """Write completions with their rewards as a trainer does."""
    texts = [text for text, _ in pairs]
    rewards = [reward for _, reward in pairs]
    if trainer == "trl":
        path = folder / "completions" / "completions_00003.parquet"
        path.parent.mkdir()
        columns = {
            "step": [3] * len(pairs),
            "prompt": [[{"role": "system", "content": "Box it."}, {"role": "user", "content": QUESTION}]] * len(pairs),
            "completion": [[{"role": "assistant", "content": text}] for text in texts],
            "faulty": [math.nan if reward is None else reward for reward in rewards],
            "advantage": [0.0] * len(pairs),
        }
        pl.DataFrame(columns).write_parquet(path)
        return folder
    if trainer == "verl":
        prompt = f"system\nBox it.\nuser\n{QUESTION} Think step by step.\nassistant\n"
        base = {"input": prompt, "gts": "1/2", "step": 3, "reason": "x"}
        records = [
            {**base, "output": text, "score": reward or 0.0, "judged": float(reward is not None)}
            for text, reward in pairs
        ]
        lines(folder / "3.jsonl", records)
        return folder
    if trainer == "verifiers":
        data = {"prompt": QUESTION, "gold": "1/2", "verifier": "math", "verifier_args": "{}"}
        traces = [
            {
                "task": {"type": "T", "data": data},
                "nodes": [
                    {"message": {"role": "user", "content": QUESTION}},
                    {"message": {"role": "assistant", "content": text}, "sampled": True},
                ],
                "rewards": {"correct": None if reward is None else {"score": reward, "weight": 1.0}},
            }
            for text, reward in pairs
        ]
        return lines(folder / "traces.jsonl", [{"traces": traces[:2]}, *({"traces": [trace]} for trace in traces[2:])])
    if trainer == "nemo-gym":
        params = {"input": [{"role": "user", "content": QUESTION}]}
        records = [
            {
                "responses_create_params": params,
                "response": {"output": [{"type": "message", "content": [{"type": "output_text", "text": text}]}]},
                "reward": reward or 0.0,
                "judged": reward is not None,
                "expected_answer": "1/2",
                "question": QUESTION,
            }
            for text, reward in pairs
        ]
        return lines(folder / "math_rollouts.jsonl", records)
    columns = {"step": [3] * len(pairs), "prompt": [QUESTION] * len(pairs), "gold": ["1/2"] * len(pairs)}
    pl.DataFrame({**columns, "completion": texts, "score": rewards, "reward_terms": ["{}"] * len(pairs)}).write_parquet(
        folder / "step-000003.parquet"
    )
    return folder


def judge(log: Path, out: Path, data: Path | None = None, **options: Any) -> tuple[Rescored, dict[str, Any]]:
    """Rescore a log and return what came of it."""
    rescored = rescore([log], out, NullProgress(), data=data, workers=1, **options)
    return rescored, write_report(out, rescored, None)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The set that the runs were trained on."""
    return lines(tmp_path / "data" / "set.jsonl", [{"question": QUESTION, "answer": "1/2"}])


@pytest.mark.parametrize("trainer", ["trl", "verl", "verifiers", "nemo-gym", "truegold"])
def test_every_trainers_log_is_read_and_every_wrong_reward_found(trainer: str, data: Path, tmp_path: Path) -> None:
    pairs = [(RIGHT, 1.0), (RIGHT, 0.0), (WRONG, 1.0), (WRONG, 0.0), (RIGHT, None)]
    (tmp_path / "log").mkdir()
    log = log_of(trainer, tmp_path / "log", pairs)
    rescored, summary = judge(log, tmp_path / "out", data)
    assert rescored.rollouts == 5 and rescored.unknown == 0
    assert (summary["wrong_rewards"], summary["wrongly_paid"], summary["wrongly_refused"]) == (2, 1, 1)
    assert (summary["judged_by_both"], summary["unjudged_in_log"]) == (4, 1)
    flips = pl.read_parquet(tmp_path / "out" / "flips.parquet")
    assert sorted(flips.select("reward", "score_a", "extracted_a").rows()) == [(0.0, 1.0, "0.5"), (1.0, 0.0, "5")]
    assert set(flips["between"]) == {"log:0.0 a:1.0", "log:1.0 a:0.0"} and summary["groups"] == 1
    page = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert "Wrong rewards by A" in page and "mismatch" in page


COUNTING = """
from truegold.verifiers import Reason, Verdict

class Counting:
    name, version = "counting", "1"
    def __call__(self, response, gold, *, problem=None, info=()):
        with open({calls!r}, "a") as calls:
            calls.write("judged\\n")
        return Verdict(1.0, Reason.MATCH, response, {{"half": 0.5}})

counting = Counting()
"""
KILLED = """
import os, signal, sys
from pathlib import Path
from truegold.pipeline.rescore import rescore, verdict_parts
from truegold.pipeline.running.progress import NullProgress

class Killing(NullProgress):
    done = 0
    def advance(self, steps=1, detail="", total=None):
        self.done += steps
        if self.done == 10:
            os.kill(os.getpid(), signal.SIGKILL)

verdict_parts.PART_ITEMS = 4
log, out, verifier = sys.argv[1:]
rescore([Path(log)], Path(out), Killing(), verifiers=[verifier], workers=1)
"""


def test_a_kill_costs_the_verdicts_of_the_part_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "log").mkdir()
    log = log_of("truegold", tmp_path / "log", [(f"It is {n}.", n % 2) for n in range(20)])
    (tmp_path / "own.py").write_text(COUNTING.format(calls=str(tmp_path / "calls")))
    own = f"{tmp_path / 'own.py'}:counting"
    command = [sys.executable, "-P", "-c", KILLED, str(log), str(tmp_path / "out"), own]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    before = len((tmp_path / "calls").read_text().splitlines())
    monkeypatch.setattr(verdict_parts, "PART_ITEMS", 4)
    judge(log, tmp_path / "out", verifiers=[own])
    judged_again = len((tmp_path / "calls").read_text().splitlines()) - before
    assert 8 <= 20 - judged_again <= before
    monkeypatch.setattr(verdict_parts, "PART_ITEMS", 5_000)
    judge(log, tmp_path / "calm", verifiers=[own])
    tables = [pl.read_parquet(tmp_path / out / "rollouts.parquet") for out in ("out", "calm")]
    assert tables[0].equals(tables[1])
    assert not (tmp_path / "out" / "verdicts").exists()


def test_logs_with_golds_need_no_set(tmp_path: Path) -> None:
    log = log_of("nemo-gym", tmp_path / "log", [(RIGHT, 0.0)])
    assert judge(log, tmp_path / "out")[1]["wrongly_refused"] == 1


def test_the_columns_of_the_set_may_be_named(tmp_path: Path) -> None:
    log = log_of("truegold", tmp_path, [("\\boxed{1/2}", 1.0), ("\\boxed{3}", 1.0)])
    german = lines(tmp_path / "data" / "set.jsonl", [{"Aufgabe": QUESTION, "Ergebnis": "3"}])
    columns = Columns.model_validate({"prompt": "Aufgabe", "gold": "Ergebnis"})
    judge(log, tmp_path / "out", german, columns=columns)
    assert pl.read_parquet(tmp_path / "out" / "rollouts.parquet")["gold"].unique().to_list() == ["3"]


def test_logs_without_golds_say_what_to_name(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    with pytest.raises(InputError, match="--data SET"):
        judge(log_of("trl", tmp_path / "log", [(RIGHT, 0.0)]), tmp_path / "out")


def test_a_verdict_without_a_score_accuses_nobody(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    data = lines(tmp_path / "set.jsonl", [{"question": QUESTION, "answer": "\\frac{1"}])
    _, summary = judge(log_of("trl", tmp_path / "log", [(RIGHT, 0.0), (WRONG, 1.0)]), tmp_path / "out", data)
    assert (summary["wrong_rewards"], summary["unjudged_by_a"], summary["flips"]) == (0, 2, 0)


def test_rows_of_other_kinds_in_a_mixed_log_are_judged_by_their_tests_or_accuse_nobody(tmp_path: Path) -> None:
    cases = json.dumps({"inputs": ["3\n"], "outputs": ["6\n"]})
    doubles, halves = ("```python\nprint(int(input()) * 2)\n```", "```python\nprint(int(input()) // 2)\n```")
    samples = [(RIGHT, "1/2"), (WRONG, "1/2"), (doubles, cases), (halves, cases), ("fine", '{"func_name": "validate"}')]
    records = [
        {"input": f"user\nQuestion {index}?\nassistant\n", "output": text, "gts": gold, "score": 1.0, "step": 1}
        for index, (text, gold) in enumerate(samples)
    ]
    _, summary = judge(lines(tmp_path / "1.jsonl", records), tmp_path / "out")
    table = pl.read_parquet(tmp_path / "out" / "rollouts.parquet").sort("line")
    assert table["score_a"].to_list() == [1.0, 0.0, 1.0, 0.0, None]
    assert (summary["wrongly_paid"], summary["wrongly_refused"], summary["unjudged_by_a"]) == (2, 0, 1)
    assert "an object (func_name), which truegold has no verifier for" in table["evidence_a"][4]


def test_two_verifiers_on_identical_rollouts(data: Path, tmp_path: Path) -> None:
    log = log_of("truegold", tmp_path, [(RIGHT, 1.0), ("1/2", 1.0), (WRONG, 0.0)])
    _, summary = judge(log, tmp_path / "out", data, verifiers=("row", "exact"))
    flips = pl.read_parquet(tmp_path / "out" / "flips.parquet")
    assert flips["between"].to_list() == ["log:1.0 a:1.0 b:0.0"] and len(summary["verifiers"]) == 2


def test_what_an_error_cost_in_advantage_is_the_distance_of_the_groups_advantages(data: Path, tmp_path: Path) -> None:
    """One wrong completion of four is paid: (1, 1, 0, 0) instead of (1, 0, 0, 0)."""
    log = log_of("truegold", tmp_path, [(RIGHT, 1.0), (WRONG, 1.0), (WRONG, 0.0), (WRONG, 0.0)])
    judge(log, tmp_path / "out", data)
    (flip,) = pl.read_parquet(tmp_path / "out" / "flips.parquet").to_dicts()
    logged = 0.5 / (math.sqrt(1 / 3) + 1e-4)
    corrected = -0.25 / (0.5 + 1e-4)
    assert flip["advantage_logged"] == pytest.approx(logged) and flip["advantage_corrected"] == pytest.approx(corrected)
    assert flip["cost"] == pytest.approx(logged - corrected)


@pytest.mark.parametrize(
    ("answers", "looks"),
    [
        (["7", "7", "7", "8"], "mislabeled"),
        (["6", "7", "8", "9"], "dead"),
        (["0.5"] * 4, "saturated"),
        (["7"] * 3, None),
    ],
)
def test_prompts_that_look_mislabeled_dead_or_saturated(
    answers: list[str], looks: str | None, data: Path, tmp_path: Path
) -> None:
    log = log_of("truegold", tmp_path, [(f"\\boxed{{{answer}}}", 0.0) for answer in answers])
    judge(log, tmp_path / "out", data)
    (prompt,) = pl.read_parquet(tmp_path / "out" / "prompts.parquet").to_dicts()
    assert prompt["looks"] == looks
    if looks == "mislabeled":
        assert (prompt["majority"], prompt["votes"]) == ("7", 3)


def test_j_is_measured_on_settled_responses(data: Path, tmp_path: Path) -> None:
    log = log_of("truegold", tmp_path, [(RIGHT, 1.0), (RIGHT + " ", 0.0), (WRONG, 1.0), (WRONG + " ", 0.0)])
    settled = lines(
        tmp_path / "settled.jsonl",
        [
            {"prompt": QUESTION, "completion": text + pad, "correct": text == RIGHT}
            for text in (RIGHT, WRONG)
            for pad in ("", " ")
        ],
    )
    rescored = rescore([log], tmp_path / "out", NullProgress(), data=data, workers=1)
    separations = {
        entry["judge"]: entry["j"] for entry in write_report(tmp_path / "out", rescored, settled)["separation"]
    }
    assert separations == {"log": 0.0, "a": 1.0}


def test_several_rewards_of_trl_have_to_be_named(data: Path, tmp_path: Path) -> None:
    log = log_of("trl", tmp_path, [(RIGHT, 0.0)])
    (path,) = log.rglob("completions_*.parquet")
    pl.read_parquet(path).with_columns(format=pl.lit(1.0)).write_parquet(path)
    with pytest.raises(InputError, match="--reward COLUMN"):
        judge(log, tmp_path / "out", data)
    assert judge(log, tmp_path / "out", data, reward="faulty")[1]["wrongly_refused"] == 1


@pytest.mark.parametrize(
    "prompt",
    [
        f"<|im_start|>system\nBox it.<|im_end|>\n<|im_start|>user\n{QUESTION}<|im_end|>\n<|im_start|>assistant\n",
        f"system\nBox it.\nuser\n{QUESTION}\nassistant\n",
        f"<s>[INST] {QUESTION} [/INST]",
        QUESTION,
    ],
)
def test_the_question_is_taken_out_of_chat_templates(prompt: str, tmp_path: Path) -> None:
    log = lines(tmp_path / "1.jsonl", [{"input": prompt, "output": RIGHT, "gts": "1/2", "score": 1.0, "step": 1}])
    assert next(iter(read_logs([log]))).prompt == QUESTION


def test_what_is_no_log_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a log of rollouts"):
        list(read_logs([lines(tmp_path / "a.jsonl", [{"question": "x", "answer": "y"}])]))
    with pytest.raises(InputError, match="has no logs of rollouts"):
        list(read_logs([tmp_path]))
    with pytest.raises(InputError, match="does not exist"):
        list(read_logs([tmp_path / "missing"]))


def two_files(folder: Path, name: str = "rollouts", **changes: Any) -> Path:
    """Write rollouts and their inputs as NeMo-Gym 0.5 does: two tasks with two rollouts each."""
    inputs, rollouts = [], []
    for task, (question, gold) in enumerate(((QUESTION, "1/2"), ("How many legs have 3 spiders and 1 ant?", "30"))):
        for rollout in range(2):
            key = {"_ng_task_index": task, "_ng_rollout_index": rollout}
            message = {"role": "user", "content": question}
            asked = {
                "responses_create_params": {"input": [message], "metadata": {"extra_body": f'{{"seed": {rollout}}}'}}
            }
            inputs.append({**key, **asked, "expected_answer": gold, "agent_ref": {"name": "a"}, **changes})
            text = f"\\\\boxed{{{gold if rollout else 7}}}"
            answer = {"type": "message", "content": [{"type": "output_text", "text": text}]}
            rollouts.append({**key, "agent_ref": {"name": "a"}, "response": {"output": [answer]}, "reward": 1.0})
    lines(folder / f"{name}_materialized_inputs.jsonl", inputs)
    lines(folder / f"{name}_failures.jsonl", [{"_ng_task_index": 5, "_ng_rollout_index": 0, "error": "x"}])
    lines(folder / f"{name}_reward_profiling.jsonl", [{"_ng_task_index": 0, "mean": 0.5}])
    # Rollouts come as they end.
    lines(folder / f"{name}.jsonl", rollouts[::-1])
    return folder


@pytest.mark.parametrize("named", ["", "rollouts.jsonl", "rollouts_materialized_inputs.jsonl"])
def test_golds_of_nemo_gym_stand_in_a_file_beside_the_rollouts(named: str, tmp_path: Path) -> None:
    folder = two_files(tmp_path / "log")
    rescored, summary = judge(folder / named, tmp_path / "out")
    assert (rescored.rollouts, rescored.unknown, rescored.files["rollouts.jsonl"]) == (4, 0, 4)
    assert (summary["judged_by_both"], summary["wrongly_paid"], summary["groups"]) == (4, 2, 2)
    golds = dict(pl.read_parquet(tmp_path / "out" / "rollouts.parquet").select("prompt", "gold").rows())
    assert golds == {QUESTION: "1/2", "How many legs have 3 spiders and 1 ant?": "30"}


def test_two_files_of_nemo_gym_may_have_any_name_and_several_lie_side_by_side(tmp_path: Path) -> None:
    two_files(tmp_path / "log", "full")
    two_files(tmp_path / "log", "rollouts", expected_answer="7")
    rescored, summary = judge(tmp_path / "log", tmp_path / "out")
    assert (rescored.rollouts, rescored.unknown, summary["wrongly_paid"]) == (8, 0, 4)


@pytest.mark.parametrize(
    ("changes", "unknown", "wrong"),
    [
        ({"expected_answer": ["7", "8"]}, 0, 2),
        ({"expected_answer": None, "answer": "7"}, 0, 2),
        ({"expected_answer": None, "verifier_metadata": {"expected_answer": "7"}}, 0, 2),
        ({"verifier_metadata": {"verifier": "format", "verifier_args": '{"tags": ["answer"]}'}}, 0, 4),
        ({"expected_answer": None}, 4, None),
        ({"_ng_rollout_index": 9}, 4, None),
    ],
)
def test_what_the_inputs_say_is_what_rollouts_are_judged_by(
    changes: dict[str, Any], unknown: int, wrong: int | None, tmp_path: Path
) -> None:
    folder = two_files(tmp_path / "log", **changes)
    if wrong is None:
        with pytest.raises(InputError, match=f"None of {unknown} rollouts can be judged"):
            judge(folder, tmp_path / "out")
    else:
        rescored, summary = judge(folder, tmp_path / "out")
        assert (rescored.unknown, summary["wrongly_paid"]) == (unknown, wrong)


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[1, 2]",
        '{"_ng_task_index": [0], "_ng_rollout_index": {}}',
        '{"_ng_task_index": 0, "_ng_rollout_index": 7, "responses_create_params": "x", "verifier_metadata": 3}',
        '{"_ng_task_index": 0, "_ng_rollout_index": 7, "verifier_metadata": {"verifier_args": "["}}',
        '{"expected_answer": "9"}',
        '{"_ng_task_index": 0, "_ng_rollout_index": 7, "expected_answer": {"a": 1}}',
        '{"_ng_task_index": 0, "_ng_rollout_index": 0, "expe',
    ],
)
def test_a_broken_line_among_the_inputs_takes_nothing_from_the_others(line: str, tmp_path: Path) -> None:
    folder = two_files(tmp_path / "log")
    inputs = folder / "rollouts_materialized_inputs.jsonl"
    inputs.write_text(inputs.read_text() + line)
    rescored, summary = judge(folder, tmp_path / "out")
    assert (rescored.rollouts, rescored.unknown, summary["wrongly_paid"]) == (4, 0, 2)


def test_a_rollouts_own_gold_counts_before_that_of_its_input(tmp_path: Path) -> None:
    folder = two_files(tmp_path / "log")
    records = [json.loads(line) for line in (folder / "rollouts.jsonl").read_text().splitlines()]
    lines(folder / "rollouts.jsonl", [{**record, "expected_answer": "7"} for record in records])
    assert judge(folder, tmp_path / "out")[1]["wrongly_paid"] == 2


CAUSES: list[tuple[float, str, str, str]] = [
    (0.0, "72", "\\boxed{72\\%}", "percent sign added"),
    (0.0, "\\frac{1}{2}", "\\boxed{0.5}", "fraction -> decimal"),
    (0.0, "0.25", "\\boxed{\\frac{1}{4}}", "decimal -> fraction"),
    (0.0, "\\frac{3}{4}", "\\boxed{3/4}", "fraction spelling"),
    (0.0, "1200", "\\boxed{1,200}", "thousands separator added"),
    (0.0, "5", "\\boxed{5\\text{ cm}}", "units or words added"),
    (0.0, "15", "\\boxed{\\$15}", "currency added"),
    (0.0, "5", "\\boxed{5.00}", "decimal added"),
    (0.0, "7", "\\boxed{x=7}", "equation added"),
    (0.0, "90", "\\boxed{90^\\circ}", "degrees added"),
    (0.0, "1, 2, 3", "\\boxed{3, 1, 2}", "entries in another order"),
    (0.0, "1, 2", "\\boxed{\\{1,2\\}}", "other brackets"),
    (0.0, "(1,2)", "\\boxed{(1, 2)}", "blanks"),
    (0.0, "Even", "\\boxed{even}", "letter case"),
    (0.0, "even", "\\boxed{\\text{even}}", "words as text"),
    (0.0, "7", "\\boxed{seven}", "number words added"),
    (0.0, "42", "\\boxed{４２}", "full-width characters"),
    (0.0, "42", "The answer is 42.", "same text, taken from a closing phrase"),
    (0.0, "42", "First \\boxed{42}. Again: \\boxed{42}", "same text, several boxes"),
    (1.0, "7", "\\boxed{17}", "gold within the answer"),
    (1.0, "5 cm", "\\boxed{5 \\text{ kg}}", "another value, with unit -> with unit"),
    (1.0, "x", "\\boxed{x = 4}", "equation added"),
    (1.0, "17", "\\boxed{7}", "answer within the gold"),
    (1.0, "7", "\\boxed{-7}", "other sign"),
    (1.0, "12", "\\boxed{13}", "off by one"),
    (1.0, "0.5", "\\boxed{50}", "a power of ten more or less"),
    (1.0, "3.14159", "\\boxed{3.14}", "rounded, or nearly equal"),
    (1.0, "4", "\\boxed{\\frac{1}{4}}", "reciprocal"),
    (1.0, "(1,2)", "\\boxed{(2,1)}", "entries in another order"),
    (1.0, "[0,1]", "\\boxed{(0,1)}", "other brackets"),
    (1.0, "7", "\\boxed{7} or \\boxed{8}", "hedged: several boxes"),
    (1.0, "7", "", "no answer: empty response"),
    (1.0, "7", "<think>It is \\boxed{7}.</think> I am not sure.", "no answer: gold within thoughts"),
    (1.0, "7", "<think>It is \\boxed{7}", "no answer: thoughts without an end"),
    (1.0, "7", "We have 7 apples. \\boxed{93}", "another value, gold elsewhere in the text"),
    (1.0, "12", "\\boxed{93}", "another value"),
]


def test_flips_are_grouped_by_what_they_have_in_common(tmp_path: Path) -> None:
    records = [
        {"input": f"Question {number}, in percent?", "output": text, "gts": gold, "score": reward, "step": 1}
        for number, (reward, gold, text, _) in enumerate(CAUSES * 2)
    ]
    _, summary = judge(lines(tmp_path / "1.jsonl", records), tmp_path / "out")
    flips = pl.read_parquet(tmp_path / "out" / "flips.parquet").sort("line")
    assert flips["cause"].to_list() == [cause for *_, cause in CAUSES * 2]
    assert flips["kind"].to_list() == ["paid" if reward else "refused" for reward, *_ in CAUSES * 2]
    kinds = {("paid" if reward else "refused", cause) for reward, _, _, cause in CAUSES}
    assert {(group["kind"], group["cause"]) for group in summary["causes"]} == kinds
    assert all(group["flips"] == 2 for group in summary["causes"])
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    listed = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    groups, flip_lines = listed.split("## Flips")[0], listed.split("## Flips")[1]
    for _, cause in kinds:
        shown = cause.replace("->", "-&gt;")
        assert page.count(shown) >= 2 and cause in groups and cause in flip_lines


def test_hostile_texts_in_flips_are_no_markup_and_take_no_time(tmp_path: Path) -> None:
    texts = ["<script>alert(1)</script>", "a|b|c", "`x`", "(" * 20_000, "1," * 10_000, "\u202e\x00", " " * 10_000]
    records = [
        {"input": f"Q{number}?", "output": f"\\boxed{{{text}}}", "gts": gold, "score": reward, "step": 1}
        for number, (text, gold, reward) in enumerate(
            (t, g, r) for t in texts for g in ("7", texts[0]) for r in (0.0, 1.0)
        )
    ]
    judge(lines(tmp_path / "1.jsonl", records), tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "<script>alert(1)" not in page
    rows = [line for line in (tmp_path / "out" / "report.md").read_text().splitlines() if line.startswith("| paid")]
    assert rows and all(len(re.findall(r"(?<!\\)\|", row)) == 10 for row in rows)
