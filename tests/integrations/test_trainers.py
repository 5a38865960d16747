"""Rewards in the trainers' own code: a right answer is paid once, a wrong one 0, and one that is not judged is seen."""

from __future__ import annotations

import json
import logging
import math
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.environments import run_in
from tests.real_data import real_data

pytestmark = pytest.mark.long_run

RIGHT, WRONG = "so it is \\boxed{0.5}", "so it is \\boxed{5}"
TESTS = json.dumps({"inputs": ["3\n"], "outputs": ["6\n"]})
DOUBLES, HALVES = "```python\nprint(int(input()) * 2)\n```", "```python\nprint(int(input()) // 2)\n```"
PARIS = {"target": ["Paris"]}
"""The ground truth of verl's own search tasks, which its own scorer judges by the last `<answer>`."""


def sample(source: str, response: str, ground_truth: Any, **extra_info: Any) -> dict[str, Any]:
    return {"data_source": source, "response": response, "ground_truth": ground_truth, "extra_info": extra_info}


def test_every_reward_manager_of_verl(tmp_path: Path) -> None:
    from tests.pipeline.test_export_formats import export, write_lines

    out = export(
        write_lines(tmp_path / "set.jsonl", [{"question": "Half?", "golds": ["1/2"]}]), "verl", tmp_path / "out"
    )
    compute_score = next(iter(out.splits)).with_name("compute_score.py")
    carried = json.dumps({"gold": "1/2", "verifier": "math", "verifier_args": "{}"})
    cases = [
        (1.0, "match", sample("mine", RIGHT, "1/2", gold="9", answer="9")),
        (0.0, "mismatch", sample("mine", WRONG, "1/2")),
        (1.0, "match", sample("mine", RIGHT, ["7", "1/2"])),
        (1.0, "match", sample("mine", RIGHT, "9", truegold=carried)),
        (0.0, "gold_unparsed", sample("mine", RIGHT, {"instruction_id_list": ["a"]})),
        (1.0, "match", sample("taco", DOUBLES, TESTS)),
        (0.0, "mismatch", sample("taco", HALVES, TESTS)),
        (1.0, "trainer", sample("searchR1_nq", "<answer>Lima</answer> <answer>Paris</answer>", PARIS)),
        (0.0, "trainer", sample("searchR1_nq", "<answer>Paris</answer> <answer>Lima</answer>", PARIS)),
        (0.0, "gold_unparsed", sample("left/out", RIGHT, "1/2")),
    ]
    samples = tmp_path / "samples.json"
    samples.write_text(json.dumps([entry for _, _, entry in cases]))
    script = Path(__file__).with_name("verl_managers.py").read_text()
    managers = run_in("verl", script, str(compute_score), str(samples), cwd=tmp_path)
    assert len(managers) == 9
    for name, scored in managers.items():
        assert scored["scores"] == [score for score, _, _ in cases], name
        assert scored["warned"] >= 1, name
        if name != "legacy prime":  # It keeps nothing but the score.
            assert len({tuple(sorted(entry)) for entry in scored["logged"]}) == 1, name
            assert [entry["reason"] for entry in scored["logged"]] == [reason for _, reason, _ in cases], name
            assert [entry["masked"] for entry in scored["logged"]].count(1.0) == 2, name


SCORE_BY_OPENRLHF = r"""
import asyncio, json, sys
from types import SimpleNamespace
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
from openrlhf.utils.agent import SingleTurnAgentExecutor

letters = sorted(pre_tokenizers.ByteLevel.alphabet())
by_bytes = Tokenizer(models.BPE({letter: index for index, letter in enumerate(letters)}, []))
by_bytes.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
by_bytes.decoder = decoders.ByteLevel()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=by_bytes, eos_token="<|im_end|>")
prompt = "<|im_start|>user\nWhat is one half?<|im_end|>\n<|im_start|>assistant\n"

class Recorded:
    def __init__(self, response):
        self.ids = tokenizer(response + "<|im_end|>", add_special_tokens=False)["input_ids"]

    async def generate(self, prompt_ids, params, multi_modal_data=None):
        return SimpleNamespace(outputs=[SimpleNamespace(token_ids=self.ids, finish_reason="stop", logprobs=None)])

async def main():
    executor = SingleTurnAgentExecutor(sys.argv[1])
    params = SimpleNamespace(max_tokens=100, logprobs=None)
    scored = []
    for response, label in json.load(open(sys.argv[2])):
        output = await executor.execute(prompt, label, params, 10_000, tokenizer, Recorded(response))
        scored.append([output["reward"].item(), output["scores"].item(), output["extra_logs"]["judged"].item()])
    return scored

print(json.dumps(asyncio.run(main())))
"""


def test_openrlhf_calls_the_exported_reward_function(tmp_path: Path) -> None:
    from tests.pipeline.test_export_formats import export, write_lines

    written = export(
        write_lines(tmp_path / "set.jsonl", [{"question": "Half?", "golds": ["1/2"]}]), "openrlhf", tmp_path / "out"
    )
    label = json.loads(next(iter(written.splits)).read_text())["label"]
    in_html = "In HTML <s>x</s> is struck, <pad> and [INST] are tokens. "
    cases = [
        ([RIGHT, label], [1.0, 1.0, 1.0]),
        ([WRONG, label], [0.0, 0.0, 1.0]),
        ([in_html + RIGHT, label], [1.0, 1.0, 1.0]),
        ([RIGHT, "working\n#### 1/2"], [1.0, 1.0, 1.0]),
        ([RIGHT, 0.5], [1.0, 1.0, 1.0]),
        ([RIGHT, ["7", "1/2"]], [1.0, 1.0, 1.0]),
        ([DOUBLES, TESTS], [1.0, 1.0, 1.0]),
        ([RIGHT, None], [0.0, 0.0, 0.0]),
        ([RIGHT, '{"func_name": "validate"}'], [0.0, 0.0, 0.0]),
    ]
    (tmp_path / "cases.json").write_text(json.dumps([case for case, _ in cases]))
    function = next(iter(written.splits)).with_name("reward_func.py")
    scored = run_in("openrlhf", SCORE_BY_OPENRLHF, str(function), str(tmp_path / "cases.json"), cwd=tmp_path)
    assert scored == [expected for _, expected in cases]


def make_trl_trainer(tmp_path: Path) -> Any:
    """Return TRL's own trainer with the adapter, a tiny model and a tokenizer of bytes."""
    if find_spec("trl") is None:
        pytest.skip("needs the package trl")
    import torch
    from datasets import Dataset
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
    from trl import GRPOConfig, GRPOTrainer

    from truegold.verifiers.adapters.trl import TruegoldReward

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    by_bytes = Tokenizer(models.BPE({letter: index for index, letter in enumerate(letters)}, []))
    by_bytes.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=by_bytes, eos_token="<|im_end|>", pad_token="<|pad|>")
    torch.manual_seed(0)
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), **sizes))
    settings = GRPOConfig(output_dir=str(tmp_path), use_cpu=True, per_device_train_batch_size=2, num_generations=2)
    rows = Dataset.from_list([{"prompt": "What is one half?", "answer": "1/2"}])
    return GRPOTrainer(model, [TruegoldReward()], args=settings, train_dataset=rows, processing_class=tokenizer)


def rewards_of(trainer: Any, rows: list[dict[str, Any]], completions: list[str]) -> list[float | None]:
    """Return what TRL's own code makes of the rewards; None is its not-a-number, which it leaves out of the group."""
    conversations = [[{"role": "assistant", "content": text}] for text in completions]
    inputs = [{**row, "prompt": [{"role": "user", "content": "?"}]} for row in rows]
    ids = [[1]] * len(rows)
    (paid,) = trainer._calculate_rewards(inputs, [row["prompt"] for row in inputs], conversations, ids).T.tolist()
    return [None if math.isnan(reward) else reward for reward in paid]


@pytest.mark.filterwarnings("ignore")  # TRL warns of vLLM's version.
def test_trl_pays_gsm8k_and_math_as_they_lie_on_the_hub(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    trainer = make_trl_trainer(tmp_path)
    with real_data("curation/gsm8k_train.jsonl").open() as lines:
        gsm8k = [json.loads(line) for line, _ in zip(lines, range(60), strict=False)]
    with real_data("curation/math_test_5000.jsonl").open() as lines:
        maths = [json.loads(line) for line, _ in zip(lines, range(60), strict=False)]
    # GSM8K's column `answer` on the hub is what this file calls its solution.
    rows = [{"answer": row["solution"]} for row in gsm8k]
    assert rewards_of(trainer, rows, [f"It is \\boxed{{{row['answer']}}}." for row in gsm8k]) == [1.0] * 60
    assert rewards_of(trainer, rows, [f"It is \\boxed{{{row['answer']}1}}." for row in gsm8k]) == [0.0] * 60
    solutions = [row["solution"] for row in maths]
    rows = [{"solution": solution, "level": "Level 3"} for solution in solutions]
    assert rewards_of(trainer, rows, solutions) == [1.0] * 60
    assert 1.0 not in rewards_of(trainer, rows, solutions[1:] + solutions[:1])
    with caplog.at_level(logging.WARNING):
        assert rewards_of(trainer, [{"answer": {"a": 1}}, {"answer": "1/2"}], [RIGHT, RIGHT]) == [None, 1.0]
    assert "could not be judged (gold_unparsed)" in caplog.text
    assert trainer._pending_metrics["truegold/masked_share"][-1] == 0.5


SCORE_BY_INSPECT = r"""
import json
from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput
from inspect_ai.solver import solver
from truegold.verifiers.adapters.inspect import verified

@solver
def canned():
    async def solve(state, generate):
        state.output = ModelOutput.from_content("mockllm/model", state.metadata["response"])
        return state
    return solve

R, W = "so \\boxed{0.5}", "so \\boxed{5}"
cases = [(R, "1/2"), (W, "1/2"), (R, ["7", "1/2"]), (R, "working\n#### 1/2"), (R, '{"func_name": "validate"}')]
samples = [Sample(input="Half?", target=target, metadata={"response": response}) for response, target in cases]
(log,) = eval(Task(dataset=MemoryDataset(samples), solver=canned(), scorer=verified()), model="mockllm/model",
              display="none")
scores = [next(iter(sample.scores.values())) for sample in log.samples]
metrics = log.results.scores[0]
values = [score.value if isinstance(score.value, (int, float)) and score.value == score.value else None
          for score in scores]
print(json.dumps([values, [score.explanation for score in scores],
                  metrics.metrics["accuracy"].value, metrics.scored_samples, metrics.unscored_samples]))
"""


def test_inspect_leaves_out_what_could_not_be_judged(tmp_path: Path) -> None:
    values, reasons, accuracy, scored, unscored = run_in("inspect", SCORE_BY_INSPECT, cwd=tmp_path)
    assert values == [1.0, 0.0, 1.0, 1.0, None]
    assert reasons == ["match", "mismatch", "match", "match", "gold_unparsed"]
    assert (accuracy, scored, unscored) == (0.75, 4, 1)


SCORE_BY_VERIFIERS = r"""
import asyncio, json, sys
from types import SimpleNamespace
sys.path.insert(0, sys.argv[1])
from verifiers.v1.utils.loaders import load_taskset, taskset_config_type

name = sys.argv[2]
tasks = list(load_taskset(taskset_config_type(name)(id=name)))

class Recorded(SimpleNamespace):
    def record_reward(self, key, value, weight=1.0):
        self.rewards[key] = value

async def score(task, reply):
    trace = Recorded(last_reply=reply, rewards={}, metrics={})
    try:
        await task.score(trace)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return trace.rewards

print(json.dumps([[asyncio.run(score(task, reply)) for reply in sys.argv[3:]] for task in tasks]))
"""


def test_verifiers_fails_the_rollout_that_could_not_be_judged(tmp_path: Path) -> None:
    from tests.pipeline.test_export_formats import export, write_lines

    records = [{"question": "Half?", "golds": ["7", "1/2"]}, {"question": "A quarter?", "gold": "\\frac{1"}]
    (path,) = export(write_lines(tmp_path / "set.jsonl", records), "verifiers", tmp_path / "out").splits
    script_arguments = (str(path.parents[1]), path.parent.name, RIGHT, WRONG)
    scored, unreadable = run_in("verifiers", SCORE_BY_VERIFIERS, *script_arguments, cwd=tmp_path)
    assert [reward["correct"] for reward in scored] == [1.0, 0.0]
    assert all("RolloutNotJudged: math: gold_unparsed" in str(outcome) for outcome in unreadable), unreadable
