"""What is exported is read by the targets' own loading code, in environments of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integrations.environments import run_in

pytestmark = pytest.mark.long_run

CHECK = """
import json, sys
from pathlib import Path
from truegold.pipeline.export.convert import check
from truegold.pipeline.export.formats import FORMATS
checked = check(Path(sys.argv[1]), FORMATS[sys.argv[2]])
print(json.dumps([checked.rows, checked.readers, checked.mistakes]))
"""
RECORDS = [
    {"question": "What is one half?", "golds": ["1/2", "0.5"]},
    {"question": "How many sides has a hexagon?", "golds": ["6"]},
]


@pytest.mark.parametrize("name", ["verl", "openrlhf", "inspect", "verifiers"])
def test_the_targets_own_code_reads_the_exported_set(name: str, tmp_path: Path) -> None:
    from tests.pipeline.test_export_formats import export, write_lines

    (path,) = export(write_lines(tmp_path / "set.jsonl", RECORDS), name, tmp_path / "out").splits
    rows, readers, mistakes = run_in(name, CHECK, str(path), name, cwd=tmp_path)
    assert rows == len(RECORDS) and mistakes == []
    assert len(readers) == 2, f"{name} was not there to read it: {readers}"


SCORE_BY_INSPECT = """
import asyncio, json, sys
from inspect_ai import Task, eval
from inspect_ai.dataset import json_dataset
from inspect_ai.model import ModelOutput
from inspect_ai.solver import solver
from truegold.verifiers.adapters.inspect import verified

RESPONSES = {"What is one half?": "so \\boxed{0.5}", "How many sides has a hexagon?": "\\boxed{5}"}

@solver
def canned():
    async def solve(state, generate):
        state.output = ModelOutput.from_content("mockllm/model", RESPONSES[state.input_text])
        return state
    return solve

task = Task(dataset=json_dataset(sys.argv[1]), solver=canned(), scorer=verified())
(log,) = eval(task, model="mockllm/model", display="none")
scores = [next(iter(sample.scores.values())) for sample in log.samples]
print(json.dumps([log.status, [score.value for score in scores], [score.explanation for score in scores]]))
"""


def test_inspect_scores_a_batch_by_the_adapter(tmp_path: Path) -> None:
    from tests.pipeline.test_export_formats import export, write_lines

    (path,) = export(write_lines(tmp_path / "set.jsonl", RECORDS), "inspect", tmp_path / "out").splits
    status, scores, reasons = run_in("inspect", SCORE_BY_INSPECT, str(path), cwd=tmp_path)
    assert (status, scores, reasons) == ("success", [1.0, 0.0], ["match", "mismatch"])


SCORE_BY_VERIFIERS = """
import asyncio, json, sys
sys.path.insert(0, sys.argv[1])
import verifiers.v1 as vf
from verifiers.v1.utils.loaders import load_taskset, taskset_config_type
from types import SimpleNamespace

name = sys.argv[2]
tasks = list(load_taskset(taskset_config_type(name)(id=name)))
replies = ["so \\\\boxed{0.5}", "\\\\boxed{5}"]

class Recorded(SimpleNamespace):
    def record_reward(self, key, value, weight=1.0):
        self.rewards[key] = value

async def main():
    traces = []
    for task, reply in zip(tasks, replies):
        trace = Recorded(last_reply=reply, rewards={}, metrics={})
        await task.score(trace)
        traces.append(trace.rewards)
    return traces, [await task.validate(None) for task in tasks]

rewards, valid = asyncio.run(main())
print(json.dumps([rewards, valid]))
"""


def test_verifiers_scores_a_batch_by_the_exported_taskset(tmp_path: Path) -> None:
    from tests.pipeline.test_export_formats import export, write_lines

    (path,) = export(write_lines(tmp_path / "set.jsonl", RECORDS), "verifiers", tmp_path / "out").splits
    rewards, valid = run_in("verifiers", SCORE_BY_VERIFIERS, str(path.parents[1]), path.parent.name, cwd=tmp_path)
    assert [reward["correct"] for reward in rewards] == [1.0, 0.0], json.dumps(rewards)
    assert valid == [True, True]


SCORE_BY_SKYRL = """
import json, sys
import pyarrow.parquet as pq
import skyrl_gym
from skyrl_gym.envs import register
from skyrl_gym.metrics import aggregate_for_environment

register(id="truegold", entry_point="truegold.verifiers.adapters.skyrl:TruegoldEnv")
rewards, metrics = [], []
for row, response in zip(pq.read_table(sys.argv[1]).to_pylist(), ["so \\boxed{0.5}", "\\boxed{5}"]):
    prompt = row.pop("prompt")
    environment = skyrl_gym.make("truegold", env_config={}, extras={**row, "max_turns": 1})
    environment.init(prompt)
    output = environment.step(response)
    rewards.append([output["reward"], output["done"], output["observations"]])
    metrics.append(environment.get_metrics())
    environment.close()
print(json.dumps([rewards, aggregate_for_environment("truegold", metrics)]))
"""


def test_skyrl_scores_a_trajectory_by_the_environment(tmp_path: Path) -> None:
    from tests.pipeline.test_export_formats import export, write_lines

    (path,) = export(write_lines(tmp_path / "set.jsonl", RECORDS), "verl", tmp_path / "out").splits
    rewards, metrics = run_in("skyrl", SCORE_BY_SKYRL, str(path), cwd=tmp_path)
    assert rewards == [[1.0, True, []], [0.0, True, []]]
    assert metrics == {"judged": 1.0, "masked": 0.0}


SCORE_BY_RUBRIC = """
import asyncio, json, sys
import verifiers as vf
from datasets import load_dataset
from truegold.verifiers.adapters.rubric import masked, truegold

rubric = vf.Rubric(funcs=[truegold, masked], weights=[1.0, 0.0])
dataset = load_dataset("parquet", data_files=sys.argv[1], split="train", cache_dir=sys.argv[2])
environment = vf.SingleTurnEnv(dataset=dataset, rubric=rubric)

async def score(replies):
    states = []
    for row, reply in zip(environment.get_dataset().to_list(), replies):
        state = await environment.init_state(row, client=vf.ClientConfig(), model="none")
        state["completion"] = [{"role": "assistant", "content": reply}]
        states.append(state)
    await rubric.score_rollout(states[0])
    await rubric.score_group(states[1:])
    return [[state["reward"], state["metrics"], state["truegold"]["reason"]] for state in states]

print(json.dumps(asyncio.run(score(["so \\boxed{0.5}", "\\boxed{5}"]))))
"""


def test_a_rubric_of_verifiers_before_0_4_scores_rollouts_and_groups(tmp_path: Path) -> None:
    from tests.pipeline.test_export_formats import export, write_lines

    (path,) = export(write_lines(tmp_path / "set.jsonl", RECORDS), "trl", tmp_path / "out").splits
    right, wrong = run_in("rubric", SCORE_BY_RUBRIC, str(path), str(tmp_path / "cache"), cwd=tmp_path)
    assert right == [1.0, {"truegold": 1.0, "masked": 0.0}, "match"]
    assert wrong == [0.0, {"truegold": 0.0, "masked": 0.0}, "mismatch"]
