"""RL on dialogues with the real sampler and trainer: every turn's log-probabilities are the sampler's own."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from truegold.pipeline.config.base import LaunchConfig
from truegold.pipeline.config.engines import VllmEngineConfig
from truegold.pipeline.running.isolation import call_isolated
from truegold.pipeline.running.progress import NullProgress
from truegold.train.config.grpo import GrpoConfig
from truegold.train.config.models import OptimizerConfig
from truegold.verifiers import GuardError

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("default")]

FAULTS = {0: "raises", 2: "hangs", 4: "megabyte"}
ENVIRONMENT = '''
import threading

from truegold.train.turns.environment import Done, Reply


class Parity:
    """Three turns; an untrained model's words are as good as any. Some rows' episodes go wrong."""

    def __init__(self):
        self.turn = 0

    def reset(self, row):
        self.fault = row["gold"]
        return [{"role": "user", "content": f"What is {row['prompt']}?"}]

    def step(self, completion):
        self.turn += 1
        if self.fault == "raises":
            raise RuntimeError("closed")
        if self.fault == "hangs":
            threading.Event().wait()
        if self.fault == "megabyte":
            return Reply([{"role": "user", "content": "x" * 2**20}])
        if self.turn < 3:
            return Reply([{"role": "user", "content": f"And {self.turn}+1?"}], score=float(self.turn == 2))
        return Done(float(sum(map(ord, completion["content"])) % 2 == 0))
'''


def write_inputs(model: Path, folder: Path) -> dict[str, Path]:
    """Write an environment and problems for it, and return the inputs of a training."""
    (folder / "parity.py").write_text(ENVIRONMENT)
    problems = [
        {
            "id": f"p{index}",
            "source": "made",
            "source_row": index,
            "prompt": f"{index}+{index + 1}",
            "gold": FAULTS.get(index, "1"),
            "verifier": "exact",
            "verifier_args": "{}",
            "split": "train",
            "pass_rate": None,
        }
        for index in range(12)
    ]
    rows, heldout = folder / "rows.parquet", folder / "heldout.parquet"
    pl.DataFrame(problems[:8], schema_overrides={"pass_rate": pl.Float64}).write_parquet(rows)
    pl.DataFrame(problems[8:], schema_overrides={"pass_rate": pl.Float64}).write_parquet(heldout)
    return {"model": model, "rows": rows, "heldout": heldout, "reserve": rows}


def train(inputs: dict[str, Path], out: Path, **settings: Any) -> None:
    """Train for some steps, in a process of its own; a folder that has a training in it goes on."""
    turns = {"environment": f"{inputs['rows'].parent}/parity.py:Parity", "deadline_s": 1, **settings.pop("turns", {})}
    config = GrpoConfig.model_validate(
        {
            "steps": 3,
            "prompts_per_step": 8,
            "group_size": 4,
            "sampling": {"max_tokens": 8, "refills": 0},
            "turns": turns,
            "objective": {"masks": {"truncated": False}, "aggregation": "sequence", "loss": "ppo"},
            "engine": VllmEngineConfig(dtype="float32", max_model_len=128, cpu_kv_cache_gib=1),
            "optimizer": OptimizerConfig(lr=1e-3, dtype="float32"),
            **settings,
        }
    )
    out.mkdir(exist_ok=True)
    fn = "truegold.train.grpo:grpo"
    call_isolated(fn, inputs, config, out, NullProgress(), out.with_suffix(".log"), LaunchConfig(), out / "scratch")


@pytest.mark.long_run
def test_a_training_that_finds_another_template_does_not_go_on(tiny_model: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(tiny_model, model)
    inputs, out = write_inputs(model, tmp_path), tmp_path / "out"
    train(inputs, out, steps=1)
    template = model / "chat_template.jinja"
    template.write_text(template.read_text() + "{# #}")
    # What is written in the same way is the same template.
    train(inputs, out, steps=2)
    template.write_text("Answer in a word. " + template.read_text())
    with pytest.raises(GuardError, match="prompts of this training have changed since it was stopped") as stopped:
        train(inputs, out, steps=3)
    assert stopped.value.guard == "prompts"
    steps = [json.loads(line)["step"] for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert max(steps) < 2


@pytest.mark.parametrize("credit", ["equal", pytest.param("discounted", marks=pytest.mark.long_run)])
def test_dialogues_are_trained_on_as_they_were_sampled(tiny_model: Path, tmp_path: Path, credit: str) -> None:
    inputs, out = write_inputs(tiny_model, tmp_path), tmp_path / "out"
    train(inputs, out, sync_every=3, turns={"credit": credit}, evaluation={"every": 2, "samples": 1})
    steps = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    trained = [step for step in steps if step.get("trained_completions")]
    assert trained
    for step in trained:
        assert step["ending/error"] == step["ending/deadline"] == step["ending/reply"] == 0.125
        assert (step["unjudged"], step["ending/done"]) == (0.375, 0.625)
        assert step["lost_threads"] >= 4
        assert (step["mismatch_abs"] < 1e-3) == (step["staleness"] == 0)
    # The evaluation before the third step needs the weights in training, and brings them.
    assert [step["staleness"] for step in steps[:3]] == [0, 1, 0]
    completions = pl.concat(pl.read_parquet(path) for path in sorted((out / "completions").glob("*.parquet")))
    assert completions.group_by("step").agg(pl.col("version").max()).sort("step")["version"].to_list() == [0, 0, 2]
    assert completions.filter(pl.col("trained"))["turn"].n_unique() == 3
    # Untrained bytes are seldom the tokens of their text, so that nearly every turn is a segment of its own.
    assert credit != "equal" or trained[0]["drifted_turns"] > 0.3
    assert credit != "equal" or json.loads((out / "drift.jsonl").read_text().splitlines()[0])["sampled"]
    reasons = {"raises": "verifier_error", "hangs": "timeout", "megabyte": "limit"}
    for fault, reason in reasons.items():
        broken = completions.filter(pl.col("gold") == fault)
        assert set(broken["reason"]) == {reason}
        assert not broken["trained"].any()
        assert broken["reward"].is_null().all()


@pytest.mark.long_run
@pytest.mark.parametrize("in_flight", [False, True])
def test_dialogues_are_played_beside_the_update_and_every_group_ends_once(
    tiny_model: Path, tmp_path: Path, in_flight: bool
) -> None:
    inputs, out = write_inputs(tiny_model, tmp_path), tmp_path / "out"
    asynchronous = {"max_staleness": 2, "in_flight": in_flight}
    # Steps are short: with the usual deadline, episodes that hang would end after the last one.
    settings = {
        "asynchronous": asynchronous,
        "checkpoint_every": 2,
        "evaluation": {"every": 2, "samples": 1},
        "turns": {"deadline_s": 0.2},
        # The first groups that end are those whose episodes fail, which may fill two steps.
        "guards": {"off": ["unjudged"]},
    }
    train(inputs, out, steps=3, **settings)
    train(inputs, out, steps=6, **settings)
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    steps = [line for line in lines if "staleness_max" in line]
    assert [step["step"] for step in steps] == list(range(6))
    assert 1 <= max(step["staleness_max"] for step in steps) <= 2
    endings = ("done", "error", "deadline", "reply")
    assert all(sum(step[f"ending/{ending}"] for ending in endings) == 1 for step in steps)
    assert all(sum(step[f"ending/{ending}"] for step in steps) for ending in endings)
    assert next(step["mismatch_abs"] for step in steps if step["trained_completions"]) < 1e-3
    assert all(0 <= step["environment_wait"] <= 1 for step in steps)
    records = [json.loads(line) for line in (out / "groups.jsonl").read_text().splitlines()]
    assert set(Counter(record["group"] for record in records).values()) == {1}
    assert sum(record["event"] != "stale" for record in records) == 6 * 8
    completions = pl.concat(pl.read_parquet(path) for path in sorted((out / "completions").glob("*.parquet")))
    assert completions.filter(pl.col("trained"))["turn"].n_unique() == 3
    assert not completions.filter(pl.col("gold") != "1")["trained"].any()
    sampled = completions.filter(pl.col("token_ids").list.len() > 0)
    stretches = sampled["versions"].list.eval(pl.element().struct.field("version"))
    assert (stretches.list.min() == sampled["version"]).all()
    assert max(record["staleness"] for record in records if record["event"] != "stale") <= 2
    assert completions["version"].n_unique() > 1
