"""GRPO: sample groups, verify, take advantages within the group, update with the clipped token loss, sync, again.

One step, top to bottom, is `Trainer.step`. Rewards are composed of the terms in the configuration (`rewards.py`), by
default the verifier's score alone; a completion that could not be judged leaves its group and is counted. Groups whose
rewards are all equal carry no gradient and are left out of the batch, so that the token mean is over tokens that teach
(DAPO's dynamic sampling without the refill).
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor

from truegold.pipeline.engines.base import Completion
from truegold.pipeline.engines.chat import load_encoder
from truegold.pipeline.engines.vllm_local import VllmEngine
from truegold.pipeline.progress import Progress
from truegold.pipeline.rows import Row, count_rows, read_rows
from truegold.pipeline.stage import StageReport
from truegold.train.completions import CompletionTable, write_completions
from truegold.train.config import GrpoConfig
from truegold.train.engine import LossFunction, TrainingEngine
from truegold.train.metrics import MetricsLog, read_metrics
from truegold.train.mismatch import mismatch_sums
from truegold.train.objective import advantages as advantages_of
from truegold.train.objective import ppo_clip
from truegold.train.rewards import Metrics, Scored, judge, reward_metrics
from truegold.train.rollout import Rollout
from truegold.train.segment import Batch, Segment
from truegold.train.sft import pad_id
from truegold.verifiers import InputError

CHECKPOINTS = "checkpoints"
"""Stays in the stage's folder: everything needed to go on training from the last step."""

PROBE_POOL = 256
"""Rows whose prompts are looked at when choosing the probe's."""


def grpo(inputs: Mapping[str, Path], config: GrpoConfig, out_dir: Path, progress: Progress) -> StageReport:
    """inputs: `model`, `rows` (selected), `heldout`.

    Writes checkpoint/ (a normal Hugging Face checkpoint), metrics.jsonl, tensorboard/, completions/step-*.parquet and
    checkpoints/, from which a killed run goes on.
    """
    progress.start("loading the trainer")
    encoder = load_encoder(inputs["model"], config.chat)

    def fitting(path: Path) -> list[Row]:
        return [row for row in read_rows(path) if len(encoder.encode(row["prompt"])) < config.engine.max_model_len]

    rows = fitting(inputs["rows"])
    if not rows:
        raise InputError("No selected row leaves the model room to answer.", "Raise train.engine.max_model_len.")
    engine = TrainingEngine(inputs["model"], config.optimizer, pad_id(encoder), config.seed)
    resumed = engine.load(out_dir / CHECKPOINTS)
    first, state = resumed or (0, {"weights_version": 0})
    progress.start("loading vLLM")
    # The longest prompts: only those that fill a block of the prefix cache can show that it went stale.
    candidates = [encoder.encode(row["prompt"]) for row in rows[:PROBE_POOL]]
    probe_prompts = sorted(candidates, key=len)[-config.probe_prompts :]
    rollout = Rollout(VllmEngine(inputs["model"], config.engine), encoder, engine, config, probe_prompts)
    rollout.sync(state["weights_version"])
    heldout = fitting(inputs["heldout"])[: config.eval_problems]
    trainer = Trainer(rows, heldout, config, engine, rollout, out_dir)
    progress.start("GRPO", config.steps)
    progress.advance(first)
    with MetricsLog(out_dir, first) as log:
        for step in range(first, config.steps):
            metrics = trainer.evaluate(step) | trainer.step(step)
            log.write(step, metrics)
            progress.advance(1, f"pass rate {metrics['pass_rate'] or 0:.3f}")
            if (step + 1) % config.checkpoint_every == 0 or step + 1 == config.steps:
                engine.save(out_dir / CHECKPOINTS, step + 1, {"weights_version": rollout.version})
    engine.export(out_dir / "checkpoint", encoder.tokenizer)
    rates = [line["pass_rate"] for line in read_metrics(out_dir / "metrics.jsonl") if line["pass_rate"] is not None]
    facts = {"first_pass_rate": rates[0], "last_pass_rate": rates[-1]} if rates else {}
    rows_in = count_rows(inputs["rows"])
    return StageReport(rows_in, len(rows), {"skip:prompt_too_long_for_model": rows_in - len(rows)}, facts)


@dataclass
class Trainer:
    """What a step needs."""

    rows: Sequence[Row]
    heldout: Sequence[Row]
    config: GrpoConfig
    engine: TrainingEngine
    rollout: Rollout
    out_dir: Path

    def step(self, step: int) -> Metrics:
        """Rollout, verdicts, advantages, update, sync. Returns the step's metrics."""
        config = self.config
        started = time.monotonic()
        rows = rows_for_step(self.rows, config.prompts_per_step, config.seed, step)
        groups = self.rollout.sample(rows, step, config.group_size)
        sampled = time.monotonic()
        scored = judge(rows, groups, self.rollout.encoder, config.terms, config.reward_clip)
        segments = to_segments(rows, groups, scored, self.rollout, config)
        rewards = torch.tensor([float("nan") if s.reward is None else s.reward for s in segments])
        group_of = torch.tensor([segment.group for segment in segments])
        advantages = advantages_of(config.advantage, rewards, group_of)
        trained = advantages != 0
        if config.mask_truncated:
            trained &= ~torch.tensor([segment.truncated for segment in segments])
        judged = time.monotonic()
        chosen = trained.nonzero().flatten().tolist()
        metrics = self._update([segments[i] for i in chosen], advantages[chosen], step) if chosen else {}
        updated = time.monotonic()
        if chosen:
            probe = self.rollout.sync(step + 1)
            metrics |= {"probe_mean_abs": probe.mean_abs}
        kept = CompletionTable(rows, segments, scored, config.terms, advantages, trained)
        write_completions(self.out_dir, step, kept, self.rollout.encoder)
        done = time.monotonic()
        return {
            **reward_metrics(segments, scored, config.terms),
            **metrics,
            "trained_completions": len(chosen),
            "seconds_rollout": sampled - started,
            "seconds_verify": judged - sampled,
            "seconds_update": updated - judged,
            "seconds_sync": done - updated,
        }

    def _update(self, segments: list[Segment], advantages: Tensor, step: int) -> Metrics:
        """`minibatches` optimizer steps on one rollout batch; the mean of their metrics."""
        config = self.config
        # With one optimizer step a batch, the old policy is the current one: its log-probs come with the update.
        old = self.engine.logprobs(segments, config.temperature) if config.minibatches > 1 else None
        order = list(range(len(segments)))
        random.Random(f"{config.seed}-{step}").shuffle(order)
        parts = [order[at :: config.minibatches] for at in range(config.minibatches)]
        collected: list[dict[str, float]] = []
        for number, part in enumerate(part for part in parts if part):
            loss = policy_loss(advantages[part], [old[i] for i in part] if old else None, config)
            own = [segments[i] for i in part]
            collected.append(self.engine.update(own, loss, config.temperature, step * config.minibatches + number))
        return {name: sum(m[name] for m in collected) / len(collected) for name in collected[0]}

    def evaluate(self, step: int) -> Metrics:
        """The held-out pass rate at the rollout temperature, every `eval_every` steps."""
        config = self.config
        if not config.eval_every or step % config.eval_every or not self.heldout:
            return {}
        groups = self.rollout.sample(self.heldout, -1 - step, config.eval_samples)
        verdicts = [scored.correct for scored in judge(self.heldout, groups, self.rollout.encoder)]
        judged = [verdict.passed for verdict in verdicts if verdict.score is not None]
        return {"heldout_pass_rate": sum(judged) / len(judged) if judged else None}


def rows_for_step(rows: Sequence[Row], count: int, seed: int, step: int) -> list[Row]:
    """The step's rows: `count` at a time from a fresh permutation each epoch; a function of its arguments alone."""
    chosen = []
    for position in range(step * count, (step + 1) * count):
        epoch, place = divmod(position, len(rows))
        chosen.append(rows[_epoch_order(len(rows), seed, epoch)[place]])
    return chosen


@lru_cache(maxsize=2)
def _epoch_order(rows: int, seed: int, epoch: int) -> list[int]:
    order = list(range(rows))
    random.Random(f"{seed}-{epoch}").shuffle(order)
    return order


def to_segments(
    rows: Sequence[Row],
    groups: Sequence[Sequence[Completion]],
    scored: Sequence[Scored],
    rollout: Rollout,
    config: GrpoConfig,
) -> list[Segment]:
    """The training records of one rollout batch."""
    flat = [(number, row, done) for number, row in enumerate(rows) for done in groups[number]]
    return [
        Segment(
            prompt_ids=tuple(rollout.encoder.encode(row["prompt"])),
            output_ids=done.token_ids,
            rollout_logprobs=done.logprobs,
            version=rollout.version,
            temperature=config.temperature,
            reward=one.reward.value,
            group=number,
            truncated=done.finish_reason == "length",
        )
        for (number, row, done), one in zip(flat, scored, strict=True)
    ]


def policy_loss(advantages: Tensor, old: Sequence[Tensor] | None, config: GrpoConfig) -> LossFunction:
    """The loss of one optimizer step; `advantages` [N] and `old` (log-probs, None: the current ones) by segment."""

    def loss(logprobs: Tensor, entropy: Tensor, batch: Batch, indices: list[int]) -> tuple[Tensor, dict[str, Tensor]]:
        before = logprobs.detach()
        if old is not None:
            before = torch.zeros_like(before)
            for place, index in enumerate(indices):
                before[place, : len(old[index])] = old[index].to(before.device)
        own = advantages[indices].to(logprobs.device)
        parts = ppo_clip(logprobs, before, own, batch.mask, config.clip_low, config.clip_high)
        positive = ((own > 0).float().unsqueeze(1) * batch.mask).sum()
        return (parts.loss * batch.mask).sum(), {
            "clipped_low": (parts.clipped_low * batch.mask).sum(),
            "clipped_high": (parts.clipped_high * batch.mask).sum(),
            "ratio": (parts.ratio * batch.mask).sum(),
            "entropy": (entropy * batch.mask).sum(),
            "positive_tokens": positive,
            **mismatch_sums(batch.rollout, before, batch.mask),
        }

    return loss
