"""A run that trains on dialogues: no profile, every curated row, and an environment that is looked up first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from truegold.flows.config import load_config
from truegold.flows.plan import plan
from truegold.pipeline.running.stage_table import Phase
from truegold.verifiers import ConfigError

ENVIRONMENT = """
class World:
    def reset(self, row):
        return []

    def step(self, completion):
        return None
"""


@pytest.fixture
def config_path(tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "world.py").write_text(ENVIRONMENT)
    (tmp_path / "rows.jsonl").write_text(json.dumps({"question": "What is 1+1?", "answer": "2"}) + "\n")
    path = tmp_path / "run.yaml"
    path.write_text(
        f"data: {{path: rows.jsonl, verifier: exact}}\nmodel: {{path: {tiny_model}}}\n"
        "engine: {max_model_len: 256}\nprofile: {max_tokens: 128}\n"
        "train: {turns: {environment: world.py:World}}\n"
    )
    return path


def test_rows_go_to_training_as_curation_left_them(config_path: Path) -> None:
    names = [stage.name for stage in plan(load_config(config_path))]
    assert names[names.index("settle") :] == ["settle", "take_rows", "export", "train", "report"]


def test_a_training_may_begin_without_a_profile(config_path: Path) -> None:
    stages = {stage.name: stage for stage in plan(load_config(config_path, ["train.turns=null", "profile=null"]))}
    names = list(stages)
    assert names[names.index("settle") :] == ["settle", "take_rows", "export", "train", "report"]
    assert "samples" not in stages["train"].inputs
    for phase in (Phase.PROFILE, Phase.SELECT):
        with pytest.raises(ConfigError, match="needs a profile"):
            plan(load_config(config_path, ["profile=null"]), phase)
    with pytest.raises(ConfigError, match="synth needs to know which rows"):
        load_config(config_path, ["profile=null", "synth={}", "train.turns=null"])


def test_the_profile_is_told_what_will_be_selected_and_the_one_after_training_is_not(config_path: Path) -> None:
    changes = ["train.turns=null", "select.max_rows=10", "select.quotas={domain:math: 0.5}", "train.group_size=6"]
    changes.append("select.zero_share=0.2")
    stages = {stage.name: stage for stage in plan(load_config(config_path, changes))}
    before, after = stages["profile"].config, stages["profile_after"].config
    assert (before.rows_to_select, before.quotas, before.group_size) == (10, {"domain:math": 0.5}, 6)
    assert (before.zero_share, after.zero_share) == (0.2, 1.0)
    assert (after.rows_to_select, after.quotas, after.group_size) == (None, {}, 6)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ("train.turns.environment=world.py:Word", r"no attribute|has no"),
        ("train.turns.environment=word.py:World", r"word\.py"),
        ("train.turns.args={size: 3}", "cannot be created: TypeError"),
        ("train.turns.discount=0.5", r"discount \(0\.5\) needs credit: discounted"),
        ("train.objective.masks.top_entropy=0.2", r"with turns.*objective\.masks\.top_entropy cannot be set"),
        ("synth={}", "synth makes single answers"),
    ],
)
def test_what_does_not_fit_is_said_before_anything_runs(config_path: Path, change: str, error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        plan(load_config(config_path, [change]))


def test_examples_of_dialogues_are_learned_in_the_contexts_that_rollouts_have(config_path: Path) -> None:
    examples = {"messages": [{"role": "user", "content": "1+1?"}, {"role": "assistant", "content": "2"}]}
    Path("examples.jsonl").write_text(json.dumps(examples) + "\n")
    changes = ["sft={data: examples.jsonl}", "train.turns.template_args={enable_thinking: false}"]
    stages = {stage.name: stage for stage in plan(load_config(config_path, changes))}
    assert stages["sft"].config.dialogues.template_args == {"enable_thinking": False}


def test_another_recording_trains_again(config_path: Path) -> None:
    recording = Path("recorded.jsonl")
    environment = "truegold.train.turns.mock:MockEnvironment"
    changes = [f"train.turns.environment={environment}", "train.turns.args={path: recorded.jsonl}"]
    keys = []
    for opening in ("Hello", "Good day"):
        episode = {"row": "a", "opening": [{"role": "user", "content": opening}], "steps": []}
        recording.write_text(json.dumps(episode) + "\n")
        stages = {stage.name: stage for stage in plan(load_config(config_path, changes))}
        keys.append(stages["train"].extra)
    assert keys[0] != keys[1]
