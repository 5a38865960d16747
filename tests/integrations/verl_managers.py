"""Scores samples by every reward manager of verl, by their own code; a script for an environment that has verl.

python verl_managers.py compute_score.py samples.json
->  {"loop naive": {"scores": [1.0, ...], "logged": [{"judged": 1.0, ...}, ...], "warned": 1}, "legacy prime": ...}
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from omegaconf import OmegaConf
from tensordict import TensorDict
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
from verl import DataProto
from verl.experimental.reward_loop.reward_manager import get_reward_manager_cls
from verl.trainer.ppo.reward import get_custom_reward_fn
from verl.workers.reward_manager import get_reward_manager_cls as get_legacy_manager_cls

from truegold.verifiers.adapters import verl as adapter

LOOP = ("naive", "dapo", "gdpo", "rate_limited", "remote")
LEGACY = ("naive", "dapo", "batch", "prime")

Scored = tuple[list[float], list[dict[str, Any]]]
"""The reward of each sample, and what is logged of it."""


def make_tokenizer() -> PreTrainedTokenizerFast:
    """Return a tokenizer whose tokens are bytes."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({letter: index for index, letter in enumerate(letters)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|pad|>")


def make_batch(samples: list[dict[str, Any]], tokenizer: PreTrainedTokenizerFast) -> DataProto:
    """Return the samples as verl's rollout hands them on."""
    responses = [tokenizer(sample["response"] + "<|im_end|>")["input_ids"] for sample in samples]
    longest = max(map(len, responses))
    tensors = {
        "prompts": torch.ones(len(samples), 4, dtype=torch.long),
        "responses": torch.tensor([ids + [tokenizer.pad_token_id] * (longest - len(ids)) for ids in responses]),
        "attention_mask": torch.tensor([[1] * (4 + len(ids)) + [0] * (longest - len(ids)) for ids in responses]),
    }
    columns = {
        "data_source": [sample["data_source"] for sample in samples],
        "reward_model": [{"style": "rule", "ground_truth": sample["ground_truth"]} for sample in samples],
        "extra_info": [dict(sample["extra_info"]) for sample in samples],
    }
    objects = {name: np.empty(len(samples), dtype=object) for name in columns}
    for name, values in columns.items():
        objects[name][:] = values
    return DataProto(batch=TensorDict(tensors, batch_size=len(samples)), non_tensor_batch=objects)


def by_loop(name: str, config: Any, tokenizer: Any, score: Callable[..., Any], batch: DataProto) -> Scored:
    """Score by a manager of the reward loop, one sample at a time."""

    async def run() -> list[dict[str, Any]]:
        manager = get_reward_manager_cls(name)(config=config, tokenizer=tokenizer, compute_score=score)
        return [await manager.run_single(batch[index : index + 1]) for index in range(len(batch))]

    scored = asyncio.new_event_loop().run_until_complete(run())
    return [entry["reward_score"] for entry in scored], [entry["reward_extra_info"] for entry in scored]


def by_legacy(name: str, config: Any, tokenizer: Any, score: Callable[..., Any], batch: DataProto) -> Scored:
    """Score by a manager of verl's workers, all samples at once."""
    returned = get_legacy_manager_cls(name)(tokenizer=tokenizer, num_examine=0, compute_score=score)(
        batch, return_dict=True
    )
    logged = returned.get("reward_extra_info") or {}
    rows = [{key: values[index] for key, values in logged.items()} for index in range(len(batch))]
    return returned["reward_tensor"].sum(dim=-1).tolist(), rows


def main(compute_score: str, samples_file: str) -> None:
    """Print what every manager makes of the samples, and how often it was said that one could not be judged."""
    reward = {"path": compute_score, "name": "compute_score", "reward_kwargs": {"routes": {"left/*": "trainer"}}}
    reward_settings = {"custom_reward_function": reward, "num_workers": 1, "reward_kwargs": {}}
    config = OmegaConf.create({"reward": reward_settings, "trainer": {"experiment_name": "test"}})
    score, tokenizer = get_custom_reward_fn(config), make_tokenizer()
    samples = json.loads(Path(samples_file).read_text())
    calls = {f"loop {name}": (by_loop, name) for name in LOOP} | {
        f"legacy {name}": (by_legacy, name) for name in LEGACY
    }
    outcomes = {}
    for title, (call, name) in calls.items():
        adapter._scorer.cache_clear()  # Warnings are counted from each manager's first sample.
        with tempfile.TemporaryFile("w+") as log:
            stderr = os.dup(2)
            os.dup2(log.fileno(), 2)
            try:
                scores, logged = call(name, config, tokenizer, score, make_batch(samples, tokenizer))
            finally:
                sys.stderr.flush()
                os.dup2(stderr, 2)
            log.seek(0)
            outcomes[title] = {"scores": scores, "logged": logged, "warned": log.read().count("could not be judged")}
    print(json.dumps(outcomes, default=str))


if __name__ == "__main__":
    main(*sys.argv[1:])
