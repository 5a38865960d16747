"""Trains the tiny model for a few steps in this process: the real trainer and DeepSpeed, and a sampler of plain torch.

    trainer = make_trainer(tiny_model, tmp_path)
    metrics = [trainer.step(step) for step in range(5)]

Completions of an untrained model are noise, so that the reward is one which noise can earn: an even number of letters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM

from truegold.pipeline.engines.base import Completion, Request, SamplingParams, TakeRequests
from truegold.pipeline.engines.chat import load_encoder
from truegold.pipeline.tables.rows import Row
from truegold.train.config.grpo import HELDOUT_SET, GrpoConfig
from truegold.train.grpo.evaluation import EvaluationRows
from truegold.train.grpo.feed import Feed
from truegold.train.grpo.step import Trainer, make_group_source
from truegold.train.grpo.update import Updater
from truegold.train.model.engine import TrainingEngine
from truegold.train.model.policy import pad_id
from truegold.train.rollout.rollout import Probe, RolloutSampler

VERIFIER = """
def even(response, gold):
    return float(len(response) % 2 == 0)
"""
SETTINGS: dict[str, Any] = {
    "steps": 5,
    "prompts_per_step": 4,
    "group_size": 4,
    "sampling": {"max_tokens": 8, "refills": 1},
    "objective": {"loss": "ppo", "masks": {"truncated": False}, "minibatches": 2},
    "optimizer": {"lr": 1e-3, "dtype": "float32"},
    "evaluation": {"every": 2, "samples": 2},
}


class TorchSampler:
    """A rollout engine on one copy of the model, which samples one token after another by each request's seed."""

    max_model_len = 128

    def __init__(self, model: Path) -> None:
        self._model = AutoModelForCausalLM.from_pretrained(str(model), dtype=torch.float32).eval()

    @torch.no_grad()
    def _complete(self, prompt: Sequence[int], sampling: SamplingParams, seed: int) -> Completion:
        generator = torch.Generator().manual_seed(seed)
        ids, logprobs = list(prompt), []
        for _ in range(min(sampling.max_tokens, self.max_model_len - len(prompt))):
            logits = self._model(torch.tensor([ids])).logits[0, -1].float() / sampling.temperature
            distribution = logits.log_softmax(-1)
            token = int(torch.multinomial(distribution.exp(), 1, generator=generator))
            ids.append(token)
            logprobs.append(float(distribution[token]))
            if token in sampling.stop_token_ids:
                break
        is_over = ids[-1] in sampling.stop_token_ids
        return Completion(tuple(ids[len(prompt) :]), tuple(logprobs), "stop" if is_over else "length")

    def generate(
        self, prompts: Sequence[Sequence[int]], sampling: Sequence[SamplingParams], seeds: Sequence[int]
    ) -> list[Completion]:
        return [self._complete(*request) for request in zip(prompts, sampling, seeds, strict=True)]

    def stream(self, take: TakeRequests, sampling: SamplingParams) -> Iterator[tuple[Request, Completion]]:
        while (requests := take(64)) is not None:
            for request in requests:
                yield request, self._complete(request.prompt, sampling, request.seed)

    def update_weights(self, named_tensors: Iterator[tuple[str, Tensor]], version: int) -> None:
        self._model.load_state_dict(dict(named_tensors))

    def sleep(self, weights_follow: bool = True) -> None:
        pass

    def forget_prefixes(self) -> None:
        pass

    def head_logits(self, hidden: Tensor) -> Tensor | None:
        return None

    def vectors(self) -> dict[str, Tensor]:
        return {}


def make_rows(folder: Path, count: int) -> list[Row]:
    """Return problems whose verifier is written into the folder."""
    path = folder / "parity.py"
    path.write_text(VERIFIER)
    rows = [
        {
            "id": f"p{index}",
            "prompt": f"What is {index}+{index + 1}?",
            "gold": str(2 * index + 1),
            "domain": ("math", "code")[index % 2],
            "verifier": f"{path}:even",
            "verifier_args": "{}",
            "solution": None,
            "source": "made",
            "source_row": index,
            "split": "train",
            "meta": "{}",
            "context": None,
            "pass_rate": 0.5 if index % 3 else 0.1,
            "posterior": [{"weight": 1.0, "a": 3.0, "b": 3.0}],
        }
        for index in range(count)
    ]
    return cast("list[Row]", rows)


def make_trainer(model: Path, folder: Path, **settings: Any) -> Trainer:
    """Return a trainer of the tiny model, with the settings of this file and what is given beside them."""
    config = GrpoConfig.model_validate(SETTINGS | settings).resolve_masks()
    rows = make_rows(folder, 16)
    encoder = load_encoder(model, config.chat)
    engine = TrainingEngine(model, config.optimizer, pad_id(encoder), config.seed)
    engine.share_prompts()
    sampler = TorchSampler(model)
    probe = Probe(sampler, engine, config, [encoder.encode(row["prompt"]) for row in rows[:2]])
    rollout = RolloutSampler(sampler, encoder, engine, config.seed, probe)
    rollout.sync(0)
    feed = Feed(rows[:8], rows[8:12], config.feed, group_size=config.group_size, steps=config.steps, seed=config.seed)
    updater = Updater(engine, config.objective, 8, config.steps * config.objective.updates)
    evaluation = SamplingParams(1.0, 1.0, 8, encoder.stop_token_ids)
    groups = make_group_source(feed, config, rollout, 8, folder)
    return Trainer(
        feed, EvaluationRows.from_sets({HELDOUT_SET: rows[12:]}), config, updater, rollout, groups, evaluation, folder
    )
