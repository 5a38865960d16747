"""Faults that are planted into a training of the tiny model, from step `PLANTED` on unless their names say otherwise.

A fault is a context manager that patches code or data like a mistake of a user, a machine or a bug would change it.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import torch

from truegold.train.grpo import update
from truegold.train.grpo.feed import Feed
from truegold.train.grpo.groups import CompletionScorer
from truegold.train.grpo.step import Trainer
from truegold.train.model import distributed, segment
from truegold.train.model import engine as engines
from truegold.train.model.segment import Segment
from truegold.train.rollout.rollout import RolloutSampler
from truegold.verifiers import Reward, Verdict

PLANTED = 12
"""The step at which a fault sets in."""

HANGING = f"{Path(__file__).with_name('guard_hanging.py')}:hang"
QUICK_DEADLINE = {"reward.deadline_s": 1.0}
NO_DEADLINE = {"reward.deadline_s": 1e6, "reward.max_timeouts": 1.0}

RUSSIAN = "\u041e\u0442\u0432\u0435\u0442 "


@dataclass(frozen=True)
class Fault:
    """One planted fault."""

    name: str
    plant: Callable[[], AbstractContextManager[Any]] = nullcontext
    settings: Mapping[str, Any] = field(default_factory=dict)
    start: int = PLANTED
    """The step at which it sets in."""
    unguarded: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the run without guards besides."""


class Clock:
    """Knows which step is being taken."""

    step = -1


@contextmanager
def clock() -> Iterator[None]:
    """Let `Clock` know the step."""
    step = Trainer.step

    def timed(self: Trainer, count: int) -> Any:
        Clock.step = count
        return step(self, count)

    with mock.patch.object(Trainer, "step", timed):
        yield
    Clock.step = -1


def _rewards(change: Callable[[float, int], float | None], start: int = PLANTED) -> Callable[[], Any]:
    """Plant another reward: `change` has the true one and the number of tokens."""

    def plant() -> Any:
        score = CompletionScorer.score

        def scored(self: Any, rows: Any, groups: Any, **others: Any) -> Any:
            scores = score(self, rows, groups, **others)
            lengths = [len(completion.token_ids) for group in groups for completion in group]
            if Clock.step < start or others.get("correctness_only"):
                return scores
            return [
                replace(
                    judged,
                    reward=Reward(
                        None if judged.reward.value is None else change(judged.reward.value, length),
                        judged.reward.parts,
                    ),
                )
                for judged, length in zip(scores, lengths, strict=True)
            ]

        return mock.patch.object(CompletionScorer, "score", scored)

    return plant


def _verdicts(change: Callable[[float | None], float | None], start: int = PLANTED) -> Callable[[], Any]:
    """Plant another verifier, for the rollouts; held-out rows keep the true one."""

    def plant() -> Any:
        score = CompletionScorer.score

        def scored(self: Any, rows: Any, groups: Any, **others: Any) -> Any:
            scores = score(self, rows, groups, **others)
            if Clock.step < start or others.get("correctness_only"):
                return scores
            changed = []
            for judged in scores:
                value = change(judged.correct.score)
                verdict = Verdict(value, judged.correct.reason)
                changed.append(replace(judged, reward=Reward(value, {"correct": value}), correct=verdict))
            return changed

        return mock.patch.object(CompletionScorer, "score", scored)

    return plant


def _stale_head() -> Any:
    """The sync hands over the output head of the planted step for ever."""
    tensors = engines.TrainingEngine.named_tensors
    held: dict[str, torch.Tensor] = {}

    def with_old_head(self: Any) -> Any:
        for name, tensor in tensors(self):
            if name == "lm_head.weight":
                if Clock.step < PLANTED or not held:
                    held[name] = tensor.clone()
                yield name, held[name]
            else:
                yield name, tensor

    return mock.patch.object(engines.TrainingEngine, "named_tensors", with_old_head)


@contextmanager
def _wrong_temperature() -> Iterator[None]:
    """The trainer forgets to divide by the temperature."""
    with mock.patch.object(engines, "collate_shared", _at_one(segment.collate_shared)):
        yield


def _at_one(collate: Callable[..., Any]) -> Callable[..., Any]:
    def collated(*arguments: Any) -> Any:
        batch = collate(*arguments)
        return replace(batch, temperature=torch.ones_like(batch.temperature)) if Clock.step >= PLANTED else batch

    return collated


def _dead_engine() -> Any:
    """The sampling engine raises from then on."""
    sample = RolloutSampler.sample

    def sampled(self: Any, *arguments: Any) -> Any:
        if Clock.step < PLANTED:
            return sample(self, *arguments)
        with mock.patch.object(self.engine, "generate", side_effect=RuntimeError("EngineCore died")):
            return sample(self, *arguments)

    return mock.patch.object(RolloutSampler, "sample", sampled)


def _nan_loss(last: int | None = None) -> Callable[[], Any]:
    """The loss is NaN from then on, or up to a step."""

    def plant() -> Any:
        loss = update.StepLoss.__call__

        def spoilt(self: Any, *arguments: Any) -> Any:
            value, reported = loss(self, *arguments)
            is_planted = Clock.step >= PLANTED and (last is None or Clock.step <= last)
            return (value * float("nan") if is_planted else value), reported

        return mock.patch.object(update.StepLoss, "__call__", spoilt)

    return plant


def _language() -> Any:
    """A bad update teaches the policy to write wrong answers in another script."""
    step = Trainer.step

    def poisoned(self: Trainer, count: int) -> Any:
        if count == PLANTED:
            encoder = self.rollout.encoder
            prefix = tuple(encoder.tokenizer(RUSSIAN, add_special_tokens=False)["input_ids"])
            end = (encoder.tokenizer.eos_token_id,)
            segments = [Segment(tuple(encoder.encode(row["prompt"])), prefix * 2 + end) for row in self.heldout[:64]]
            sampled = self.updater.engine.logprobs(segments)
            segments = [
                replace(segment, rollout_logprobs=tuple(logprobs.tolist()))
                for segment, logprobs in zip(segments, sampled, strict=True)
            ]
            weighed = update.WeighedBatch(torch.ones(64), torch.ones(64, dtype=torch.bool), {})
            for index in range(25):
                self.updater.train_on(segments, weighed, f"poison-{index}")
            # Another version than the one that sampled before, as a trainer would give it.
            self.rollout.sync(1000 + count)
        return step(self, count)

    return mock.patch.object(Trainer, "step", poisoned)


def _hanging(every: int) -> Callable[[], Any]:
    """From the planted step on the verifier of every so many-th problem never answers."""

    def plant() -> Any:
        take = Feed.take

        def taken(self: Feed, count: int) -> Any:
            rows = take(self, count)
            if Clock.step < PLANTED:
                return rows
            return [{**row, "verifier": HANGING} if not index % every else row for index, row in enumerate(rows)]

        return mock.patch.object(Feed, "take", taken)

    return plant


@contextmanager
def _locked_operator() -> Iterator[None]:
    """Another process holds the lock on DeepSpeed's operator and does not give it back."""
    with (
        TemporaryDirectory() as folder,
        mock.patch.dict(os.environ, {"TORCH_EXTENSIONS_DIR": folder}),
        mock.patch.object(distributed, "PATIENCE_S", 20.0),
        (Path(folder) / "truegold.lock").open("w") as lock,
    ):
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


FAULTS = (
    Fault("rate x 10", settings={"optimizer.lr": 4e-3}, start=0),
    Fault("rate x 100", settings={"optimizer.lr": 4e-2}, start=0),
    Fault("stale output head", _stale_head),
    Fault("temperature forgotten in the log-probabilities", _wrong_temperature, {"sampling.temperature": 0.6}),
    Fault("verdicts turn around", _verdicts(lambda score: None if score is None else 1.0 - score)),
    Fault("reward of the other sign, from the start", _rewards(lambda reward, _: -reward, 0), start=0),
    Fault("verifier raises", _verdicts(lambda score: None)),
    Fault("verifier raises, from the start", _verdicts(lambda score: None, 0), start=0),
    Fault("reward is NaN", _rewards(lambda reward, _: float("nan"))),
    Fault("reward is NaN, from the start", _rewards(lambda reward, _: float("nan"), 0), start=0),
    Fault("reward is constant", _rewards(lambda reward, _: 0.5)),
    Fault("reward is constant, from the start", _rewards(lambda reward, _: 0.5, 0), start=0),
    Fault("verdict is always right, from the start", _verdicts(lambda score: 1.0, 0), start=0),
    Fault("reward pays for length", _rewards(lambda reward, tokens: tokens / 32)),
    Fault("reward pays for length, from the start", _rewards(lambda reward, tokens: tokens / 32, 0), start=0),
    Fault("policy switches to another script", _language),
    Fault("verifier hangs", _hanging(1), QUICK_DEADLINE, unguarded=NO_DEADLINE),
    Fault("verifier hangs on every fourth problem", _hanging(4), QUICK_DEADLINE, unguarded=NO_DEADLINE),
    Fault("sampling engine dies", _dead_engine),
    Fault("operator build is locked", _locked_operator, start=0),
    Fault("loss is NaN", _nan_loss()),
    Fault("loss is NaN in a single step", _nan_loss(PLANTED)),
    Fault("rate x 2", settings={"optimizer.lr": 8e-4}, start=0),
    Fault("temperature 1.2", settings={"sampling.temperature": 1.2}, start=0),
)
"""All of them, and three that do no harm."""
