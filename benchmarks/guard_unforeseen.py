"""Faults that no guard was written for, of the kinds that the table of guards is meant for.

They were written after the guards, to measure the guards on unexpected faults. Runs without guards show which of the
faults do harm.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

import torch
from guard_faults import PLANTED, Clock, Fault

from truegold.pipeline.engines.chat import ChatEncoder
from truegold.pipeline.engines.vllm_local import VllmEngine
from truegold.train.grpo import start_checks, update
from truegold.train.grpo.batch_metrics import repeated_share
from truegold.train.grpo.feed import Feed
from truegold.train.grpo.groups import CompletionScorer, SampledGroups
from truegold.train.model.engine import TrainingEngine
from truegold.train.model.policy import FrozenPolicy
from truegold.train.rollout import rollout
from truegold.train.rollout.rollout import RolloutSampler
from truegold.verifiers import Reward

TOKEN_PAYS = 0.05
REPETITION_PAYS = 2.0


def is_in_second_domain(row: Any) -> bool:
    """Return whether a row belongs to the half of the problems that counts as a second domain."""
    return bool(zlib.crc32(row["id"].encode()) % 2)


def _is_planted(start: int) -> bool:
    return Clock.step >= start


def _completions(change: Callable[[Any, Any, float], float], start: int) -> Callable[[], Any]:
    """Plant another reward: `change` has the row, the completion and the true reward."""

    def plant() -> Any:
        score = CompletionScorer.score

        def scored(self: Any, rows: Any, groups: Any, **others: Any) -> Any:
            scores = score(self, rows, groups, **others)
            if not _is_planted(start) or others.get("correctness_only"):
                return scores
            answered = [(row, done) for row, group in zip(rows, groups, strict=True) for done in group]
            return [
                judged
                if judged.reward.value is None
                else replace(judged, reward=Reward(change(row, done, judged.reward.value), judged.reward.parts))
                for (row, done), judged in zip(answered, scores, strict=True)
            ]

        return mock.patch.object(CompletionScorer, "score", scored)

    return plant


@contextmanager
def _constant_in_one_domain() -> Iterator[None]:
    """Half of the problems belong to another domain, and there the reward is the same for everything."""
    take = Feed.take

    def taken(self: Feed, count: int) -> Any:
        return [{**row, "domain": "other"} if is_in_second_domain(row) else row for row in take(self, count)]

    def change(row: Any, done: Any, reward: float) -> float:
        del done
        return 0.5 if is_in_second_domain(row) else reward

    with mock.patch.object(Feed, "take", taken), _completions(change, PLANTED)():
        yield


def _advantages(change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[], Any]:
    """Plant other advantages."""

    def plant() -> Any:
        weigh = update.weigh_segments

        def weighed(*arguments: Any) -> Any:
            batch = weigh(*arguments)
            return replace(batch, advantages=change(batch.advantages)) if _is_planted(PLANTED) else batch

        return mock.patch("truegold.train.grpo.step.weigh_segments", weighed)

    return plant


def _loss_of_the_other_sign() -> Any:
    """The optimizer climbs where it should descend."""
    loss = update.StepLoss.__call__

    def turned(self: Any, *arguments: Any) -> Any:
        value, reported = loss(self, *arguments)
        return (-value if _is_planted(PLANTED) else value), reported

    return mock.patch.object(update.StepLoss, "__call__", turned)


def _stale_weights() -> Any:
    """The sampling engine is sent the weights of the planted step for ever."""
    update_weights = VllmEngine.update_weights
    held: dict[str, torch.Tensor] = {}

    def with_old_weights(self: Any, named_tensors: Any, version: int) -> None:
        for name, tensor in named_tensors:
            if not _is_planted(PLANTED) or name not in held:
                held[name] = tensor.clone()
        update_weights(self, iter(held.items()), version)

    return mock.patch.object(VllmEngine, "update_weights", with_old_weights)


def _rollouts(change: Callable[[list[Any]], list[Any]]) -> Callable[[], Any]:
    """Plant other completions than were sampled, as the groups of each row."""

    def plant() -> Any:
        sample = RolloutSampler.sample

        def sampled(self: Any, *arguments: Any) -> Any:
            prompts, groups = sample(self, *arguments)
            return prompts, (change(groups) if _is_planted(PLANTED) else groups)

        return mock.patch.object(RolloutSampler, "sample", sampled)

    return plant


def _without_last_token(groups: Sequence[Any]) -> list[Any]:
    def cut(done: Any) -> Any:
        return replace(done, token_ids=done.token_ids[:-1], logprobs=done.logprobs[:-1])

    return [[cut(done) if len(done.token_ids) > 1 else done for done in group] for group in groups]


def _prompts_without_last_token() -> Any:
    encode = ChatEncoder.encode
    return mock.patch.object(ChatEncoder, "encode", lambda self, prompt: encode(self, prompt)[:-1])


def _slow_row() -> Any:
    """The verifier takes two seconds for every hundredth problem."""
    score = CompletionScorer.score

    def scored(self: Any, rows: Any, *arguments: Any, **others: Any) -> Any:
        if _is_planted(PLANTED):
            time.sleep(2.0 * sum(zlib.crc32(row["id"].encode()) % 100 == 0 for row in rows))
        return score(self, rows, *arguments, **others)

    return mock.patch.object(CompletionScorer, "score", scored)


@contextmanager
def _nan_in_one_parameter() -> Iterator[None]:
    """The gradient of the last norm's weights, 128 of 400,000, is NaN."""
    made = TrainingEngine.__init__

    def init(self: Any, *arguments: Any, **others: Any) -> None:
        made(self, *arguments, **others)
        norm = self.causal_lm.model.norm.weight
        norm.register_hook(lambda gradient: gradient * float("nan") if _is_planted(PLANTED) else gradient)

    with mock.patch.object(TrainingEngine, "__init__", init):
        yield


def _shuffled_golds() -> Any:
    """Every row gets the gold of the next one."""
    take = Feed.take

    def taken(self: Feed, count: int) -> Any:
        rows = take(self, count)
        if not _is_planted(PLANTED):
            return rows
        return [{**row, "gold": other["gold"]} for row, other in zip(rows, rows[1:] + rows[:1], strict=True)]

    return mock.patch.object(Feed, "take", taken)


def _broken_layer() -> Any:
    """One matrix is a hundred times itself, once, as after a bit that flipped."""
    sync = RolloutSampler.sync

    def synced(self: Any, version: int) -> Any:
        if Clock.step == PLANTED and version == PLANTED + 1:
            with torch.no_grad():
                self.trainer.causal_lm.model.layers[0].mlp.down_proj.weight.mul_(100.0)
        return sync(self, version)

    return mock.patch.object(RolloutSampler, "sync", synced)


def _heldout_is_trained_on() -> Any:
    """The held-out rows are also trained on."""
    read = start_checks.read_rows

    def rows(path: Any) -> Any:
        yield from read(path)
        if path.name == "selected.parquet":
            for row in read(path.with_name("heldout.parquet")):
                yield {**row, "pass_rate": None}

    return mock.patch.object(start_checks, "read_rows", rows)


@contextmanager
def _patched(owner: Any, name: str, change: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Iterator[None]:
    """Replace a function by what `change` makes of it."""
    with mock.patch.object(owner, name, change(getattr(owner, name))):
        yield


def _advantages_by_length(train_on: Callable[..., Any]) -> Callable[..., Any]:
    def trained(self: Any, batch: Sequence[Any], weighed: Any, *arguments: Any) -> Any:
        order = sorted(range(len(batch)), key=lambda index: len(batch[index].output_ids))
        if _is_planted(PLANTED):
            weighed = replace(weighed, advantages=weighed.advantages[order])
        return train_on(self, batch, weighed, *arguments)

    return trained


def _cut_prompts(encode: Callable[..., Any]) -> Callable[..., Any]:
    return lambda encoder, row: list(encode(encoder, row))[-6 if _is_planted(PLANTED) else 0 :]


def _first_verdict(score: Callable[..., Any]) -> Callable[..., Any]:
    """The verdict on a problem is kept, and given to every completion of its group."""

    def scored(self: Any, rows: Any, groups: Any, **others: Any) -> Any:
        first: dict[str, Any] = {}
        scores = score(self, rows, groups, **others)
        ids = [row["id"] for row, group in zip(rows, groups, strict=True) for _ in group]
        if others.get("correctness_only") or not _is_planted(PLANTED):
            return scores
        return [first.setdefault(row_id, judged) for row_id, judged in zip(ids, scores, strict=True)]

    return scored


def _evaluated(value: float) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Every verdict of an evaluation is the same."""

    def change(score: Callable[..., Any]) -> Callable[..., Any]:
        def scored(self: Any, rows: Any, groups: Any, **others: Any) -> Any:
            scores = score(self, rows, groups, **others)
            if not others.get("correctness_only") or not _is_planted(PLANTED):
                return scores
            return [replace(judged, correct=replace(judged.correct, score=value)) for judged in scores]

        return scored

    return change


def _mixed_heldout_rows(evaluate: Callable[..., Any]) -> Callable[..., Any]:
    def evaluated(self: Any, rows: Any, *arguments: Any) -> Any:
        others = rows[1:] + rows[:1] if _is_planted(PLANTED) else rows
        mixed = [{**row, "prompt": other["prompt"]} for row, other in zip(rows, others, strict=True)]
        return evaluate(self, mixed, *arguments)

    return evaluated


def _old_of_the_segment_before(measure: Callable[..., Any]) -> Callable[..., Any]:
    def measured(self: Any, segments: Any) -> Any:
        values = measure(self, segments)
        if not _is_planted(PLANTED):
            return values
        means = [float(logprobs.mean()) for logprobs, _ in values]
        return [
            (torch.full_like(logprobs, mean), entropy)
            for (logprobs, entropy), mean in zip(values, means[-1:] + means[:-1], strict=True)
        ]

    return measured


def _zero_matrix(export: Callable[..., Any]) -> Callable[..., Any]:
    def exported(self: Any, *arguments: Any) -> None:
        weight = self.causal_lm.model.layers[1].mlp.down_proj.weight
        kept = weight.detach().clone()
        with torch.no_grad():
            weight.zero_()
            export(self, *arguments)
            weight.copy_(kept)

    return exported


def _other_reference(init: Callable[..., Any]) -> Callable[..., Any]:
    def made(self: Any, *arguments: Any) -> None:
        init(self, *arguments)
        with torch.no_grad():
            for parameter in self._policy.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.05)

    return made


def _in_pairs(seed: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *keys: seed(*keys[:-1], keys[-1] // 2) if len(keys) == 5 else seed(*keys)


def _change(owner: Any, name: str, change: Callable[..., Any]) -> Callable[[], Any]:
    return lambda: _patched(owner, name, change)


BETWEEN = (
    Fault("advantages sorted by length in the update", _change(update.Updater, "train_on", _advantages_by_length)),
    Fault("prompts lose their beginning", _change(rollout, "encode_row", _cut_prompts)),
    Fault("one verdict for a whole group", _change(CompletionScorer, "score", _first_verdict)),
    Fault("evaluations find all wrong", _change(CompletionScorer, "score", _evaluated(0.0))),
    Fault("evaluations find all right", _change(CompletionScorer, "score", _evaluated(1.0))),
    Fault("held-out prompts of the next row", _change(SampledGroups, "evaluate", _mixed_heldout_rows)),
    Fault("old log-probs of the segment before", _change(TrainingEngine, "measure", _old_of_the_segment_before)),
    Fault("a matrix of zeros is exported", _change(TrainingEngine, "export", _zero_matrix), start=29),
    Fault(
        "another model is the reference, from the start",
        _change(FrozenPolicy, "__init__", _other_reference),
        {"objective.kl.weight": 0.1},
        start=0,
    ),
    Fault("members alike in pairs, from the start", _change(rollout, "sample_seed", _in_pairs), start=0),
    Fault("gradients below AdamW's epsilon", settings={"optimizer.max_grad_norm": 1e-9}, start=0),
    Fault("weight decay of 1,000", settings={"optimizer.weight_decay": 1000.0}, start=0),
)
"""Faults that lie between two parts: what one hands over is not what the other takes."""

UNFORESEEN = (
    Fault("reward is constant in one domain", _constant_in_one_domain),
    Fault("advantages of the other sign", _advantages(torch.neg)),
    Fault("loss of the other sign", _loss_of_the_other_sign),
    Fault("only what is wrong has an advantage", _advantages(lambda advantages: advantages.clamp(max=0))),
    Fault(
        "a token pays, from the start",
        _completions(lambda _, done, reward: reward + TOKEN_PAYS * len(done.token_ids), 0),
        start=0,
    ),
    Fault(
        "repeated text pays, from the start",
        _completions(lambda _, done, reward: reward + REPETITION_PAYS * (repeated_share(done.token_ids) or 0.0), 0),
        start=0,
    ),
    Fault("weights of an earlier step are sent", _stale_weights),
    Fault("completions lose their last token", _rollouts(_without_last_token)),
    Fault("completions of the problem before", _rollouts(lambda groups: groups[-1:] + groups[:-1])),
    Fault("prompts lose their last token, from the start", _prompts_without_last_token, start=0),
    Fault("golds of the next row", _shuffled_golds),
    Fault("one matrix a hundred times itself, once", _broken_layer),
    Fault("NaN in the gradient of one parameter", _nan_in_one_parameter),
    Fault("rate x 30 after a warm-up", settings={"optimizer.lr": 1.2e-2, "optimizer.warmup_steps": 10}, start=0),
    Fault("held-out rows are trained on", _heldout_is_trained_on, start=0),
    Fault("verifier is slow on some rows", _slow_row),
    *BETWEEN,
)
"""All of them."""
