"""Compares losses, gradients, log-probabilities and advantages on the GPU with float64 on the CPU.

Everything takes the way that the trainer takes: `StepLoss` with advantages and old log-probabilities on the CPU and
log-probabilities on the GPU, `collate`, `collate_shared`, packing, `PolicyModel.forward`. bfloat16 of an objective
rounds its inputs too; the trainer never does that, since its log-probabilities are float32 for every model.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any, get_args

import torch
from loss_fixture import SECTIONS, Fixture
from torch import Tensor
from transformers import AutoModelForCausalLM

from truegold.train.config.objective import Correction, DistillationWeight, ObjectiveConfig
from truegold.train.grpo.update import PreparedBatch, StepLoss
from truegold.train.model import policy as policy_module
from truegold.train.model.policy import PolicyModel
from truegold.train.model.segment import Segment, SegmentBatch, collate, collate_shared
from truegold.train.objective import (
    ADVANTAGES,
    PASS_AT_K,
    Totals,
    advantages,
    choose_covariant,
    covariances,
    entropy_threshold,
    length_outliers,
)

from .figures import Figures, device, machine, qwen_config

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
ARCHITECTURES = (
    "llama qwen2 qwen3 qwen3_moe mistral mixtral gemma gemma2 gemma3_text gemma4_text granite cohere cohere2 phi phi3 "
    "olmo2 smollm3 glm4 stablelm starcoder2 gpt_neox gpt2 opt nemotron deepseek_v2 lfm2 ernie4_5"
).split()
"""Types of configuration whose `match_logits` is run on the GPU."""


def run(figures: Figures, fixture: Path | None) -> None:
    """Write all figures of this part."""
    figures.write("machine", **machine())
    for dtype in DTYPES:
        if fixture is not None:
            with figures.attempt("fixture", dtype=dtype):
                _compare_fixture(figures, fixture, dtype)
        with figures.attempt("advantages", dtype=dtype):
            _compare_advantages(figures, dtype)
    _compare_step_losses(figures)
    with figures.attempt("batch_choices"):
        _compare_choices(figures)
    for dtype in DTYPES:
        for layout in ("padded", "packed", "shared"):
            with figures.attempt("policy", dtype=dtype, layout=layout):
                _compare_policy(figures, dtype, layout)
    _match_architectures(figures)


def _compare_fixture(figures: Figures, path: Path, dtype: str) -> None:
    fixture = Fixture(json.loads(path.read_text()))
    for name, value in vars(fixture).items():
        if isinstance(value, Tensor):
            setattr(fixture, name, value.to(device(), DTYPES[dtype]))
    deviations: dict[str, float] = {}
    for section, values in fixture.expected.items():
        if section not in SECTIONS:
            continue
        for name, value in values.items():
            with figures.attempt("fixture", dtype=dtype, name=f"{section}.{name}"):
                computed = SECTIONS[section](fixture, name).double().cpu()
                expected = torch.tensor(value, dtype=torch.float64)
                deviations[f"{section}.{name}"] = float((computed - expected).abs().max())
    worst = max(deviations, key=lambda name: deviations[name])
    figures.write("fixture", dtype=dtype, values=len(deviations), largest=deviations[worst], name=worst)


def _compare_advantages(figures: Figures, dtype: str) -> None:
    generator = torch.Generator().manual_seed(1)
    rewards = torch.rand(48, generator=generator, dtype=torch.float64).to(DTYPES[dtype]).double()
    rewards[::7] = float("nan")
    groups = torch.arange(6).repeat_interleave(8)
    deviations = {}
    for kind in (*ADVANTAGES, *PASS_AT_K):
        expected = advantages(kind, rewards, groups, 3)
        computed = advantages(kind, rewards.to(device(), DTYPES[dtype]), groups.to(device()), 3)
        deviations[kind] = float((computed.double().cpu() - expected).abs().max())
    worst = max(deviations, key=lambda kind: deviations[kind])
    figures.write("advantages", dtype=dtype, kinds=len(deviations), largest=deviations[worst], name=worst)


def _settings() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Yield (name, `train.objective`, what the step's batch has beside it) of every combination that is compared."""
    losses: dict[str, dict[str, Any]] = {
        name: {"loss": name} for name in ("ppo", "gspo", "gspo_token", "cispo", "topr")
    }
    losses["ppo dual"] = {"loss": "ppo", "clip": {"dual": 3.0}}
    corrections: dict[str, list[dict[str, Any]]] = {"none": []}
    for kind in get_args(Correction):
        low, high = (0.9, 1.1) if kind == "geometric_mask" else (0.5, 2.0)
        bounds = {"high": high} if kind in ("tis", "sequence_tis") else {"low": low, "high": high}
        corrections[kind] = [{"kind": kind, **bounds}]
    corrections["both"] = corrections["tis"] + corrections["geometric_mask"]
    choices = itertools.product(losses, ("token", "sequence", "constant"), corrections, ("recomputed", "interpolated"))
    for loss, aggregation, correction, proximal in choices:
        yield (
            f"{loss} {aggregation} {correction} {proximal}",
            losses[loss] | {"aggregation": aggregation, "corrections": corrections[correction], "proximal": proximal},
            {"old": True},
        )
    single: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "off_policy": ({"masks": {"off_policy": 0.05}}, {"old": True}),
        "top_entropy": ({"masks": {"top_entropy": 0.3}}, {"entropy": True}),
        "covariance clip": ({"covariance": {"kind": "clip", "share": 0.2, "low": 0.01}}, {"covariant": True}),
        "covariance kl": (
            {"covariance": {"kind": "kl", "share": 0.2}, "minibatches": 2},
            {"covariant": True, "old": True},
        ),
        "kl k1": ({"kl": {"weight": 0.1, "estimator": "k1"}}, {"reference": True}),
        "kl k3": ({"kl": {"weight": 0.1, "estimator": "k3"}}, {"reference": True}),
        "self_distillation": ({"self_distillation": {"weight": 0.5}}, {"teacher": True, "old": True}),
        "episodes": ({"aggregation": "sequence"}, {"episodes": True}),
        "versions in flight": ({"proximal": "interpolated"}, {"versions": True}),
        "no old policy": ({}, {}),
    }
    for weight in (*get_args(DistillationWeight), "shaped"):
        single[f"distilled {weight}"] = ({"distilled": {"weight": weight}}, {"distilled": True})
    for name, (settings, beside) in single.items():
        for loss in ("ppo", "gspo", "cispo"):
            yield f"{loss} {name}", {"loss": loss, **settings}, beside


class _Step:
    """A made-up optimizer step of 7 segments: random log-probabilities, old and rollout ones near them."""

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(0)
        self.lengths = [23, 17, 12, 9, 5, 2, 1]
        self.segments = [
            Segment(
                tuple(range(5, 9 + index)),
                tuple(range(10, 10 + length)),
                tuple((-torch.rand(length, generator=generator, dtype=torch.float64) * 3 - 0.01).tolist()),
                group=index // 2,
                right=index % 2 == 0,
            )
            for index, length in enumerate(self.lengths)
        ]
        # Without the first and a token within, as in a dialogue.
        sampled = (False, *([True] * 10), False, *([True] * 5))
        self.segments[1] = Segment(
            self.segments[1].prompt_ids, self.segments[1].output_ids, self.segments[1].rollout_logprobs, sampled
        )
        self.batch = collate([[segment] for segment in self.segments], 0)
        shape = self.batch.mask.shape

        def near(scale: float) -> Tensor:
            noise = torch.randn(shape, generator=generator, dtype=torch.float64) * scale
            return self.batch.rollout_logprobs.double() + noise

        self.old, self.current, self.reference, self.teacher = near(0.1), near(0.4), near(0.3), near(0.5)
        self.entropy = torch.rand(shape, generator=generator, dtype=torch.float64) * 2
        self.advantages = torch.tensor([1.5, -0.5, -2.0, 0.7, -1.1, 0.3, -0.2], dtype=torch.float64)
        self.teacher[3] = float("nan")

    def loss(self, config: ObjectiveConfig, beside: dict[str, Any]) -> StepLoss:
        """Return the step's loss as `Updater` makes it, with everything but the batch on the CPU."""

        def rows(values: Tensor) -> list[Tensor]:
            return [row[:length] for row, length in zip(values, self.lengths, strict=True)]

        covariant = None
        if beside.get("covariant"):
            tokens = torch.cat(rows(self.old))
            spread = self.advantages.repeat_interleave(torch.tensor(self.lengths))
            chosen = choose_covariant(covariances(tokens, spread), config.covariance, 0)
            covariant = list(torch.split(chosen, self.lengths))
        threshold = -1.0
        if beside.get("entropy"):
            threshold = entropy_threshold(self.entropy[self.batch.mask > 0], config.masks.top_entropy or 1.0)
        prepared = PreparedBatch(
            threshold,
            rows(self.old) if beside.get("old") else None,
            rows(self.reference) if beside.get("reference") else None,
            covariant,
            rows(self.teacher) if beside.get("teacher") else None,
        )
        versions = {0: torch.tensor([2.0] * 10 + [1.0] * 8 + [0.0] * 5)} if beside.get("versions") else {}
        return StepLoss(
            config,
            24,
            Totals(70.0, 8.0),
            self.advantages,
            prepared,
            torch.tensor([0.0, 1.0, 2.0, 0.0, 4.0, 0.0, 1.0]),
            0.02,
            torch.tensor([False, False, True, False, False, True, False]) if beside.get("distilled") else None,
            torch.tensor([40.0, 40.0, 12.0, 9.0, 8.0, 8.0, 8.0]) if beside.get("episodes") else None,
            versions,
        )

    def compute(
        self, loss: StepLoss, where: torch.device, dtype: torch.dtype
    ) -> tuple[float, Tensor, dict[str, float]]:
        """Return the loss, its gradient at the log-probabilities, and the sums that it reports."""
        batch = self.batch.to(where)
        fields = {name: getattr(batch, name).to(dtype) for name in ("mask", "rollout_logprobs", "temperature")}
        batch = SegmentBatch(**{**vars(batch), **fields})
        current = self.current.to(where, dtype, copy=True).requires_grad_()
        value, reported = loss(current, self.entropy.to(where, dtype), batch, list(range(len(self.segments))))
        value.backward()
        assert current.grad is not None
        sums = {name: float(each) for name, each in reported.items()}
        return float(value.detach()), current.grad.double().cpu(), sums


def _compare_step_losses(figures: Figures) -> None:
    """Compare the step's loss of every setting; a setting that raises is a figure of its own."""
    step = _Step()
    errors: dict[str, list[tuple[float, float, float, str]]] = {dtype: [] for dtype in DTYPES}
    for name, settings, beside in _settings():
        loss = step.loss(ObjectiveConfig.model_validate(settings), beside)
        value, gradient, sums = step.compute(loss, torch.device("cpu"), torch.float64)
        for dtype, kind in DTYPES.items():
            with figures.attempt("step_loss", dtype=dtype, name=name):
                other_value, other_gradient, other_sums = step.compute(loss, device(), kind)
                scale = float(gradient.abs().max()) or 1.0
                of_sums = max(abs(sums[key] - other_sums[key]) / max(1.0, abs(sums[key])) for key in sums)
                difference = float((gradient - other_gradient).abs().max()) / scale
                errors[dtype].append((difference, abs(value - other_value), of_sums, name))
    for dtype, errors_of_dtype in errors.items():
        if not errors_of_dtype:
            continue
        worst_gradient, worst_value, worst_sum = (max(errors_of_dtype, key=itemgetter(column)) for column in range(3))
        middle = sorted(error[0] for error in errors_of_dtype)[len(errors_of_dtype) // 2]
        figures.write(
            "step_loss",
            dtype=dtype,
            settings=len(errors_of_dtype),
            gradient=worst_gradient[0],
            gradient_of=worst_gradient[3],
            gradient_median=middle,
            loss=worst_value[1],
            loss_of=worst_value[3],
            reported=worst_sum[2],
            reported_of=worst_sum[3],
        )


def _compare_choices(figures: Figures) -> None:
    """Run what chooses tokens and completions of a whole batch on tensors of the GPU."""
    from truegold.train.config.objective import CovarianceConfig

    generator = torch.Generator().manual_seed(2)
    values = torch.randn(5000, generator=generator)
    spread = torch.randn(5000, generator=generator)
    same = {}
    for kind in ("clip", "kl"):
        config = CovarianceConfig(kind=kind)
        expected = choose_covariant(covariances(values, spread), config, 3)
        computed = choose_covariant(covariances(values.to(device()), spread.to(device())), config, 3)
        same[f"covariant {kind}"] = bool(torch.equal(expected, computed.cpu()))
    lengths = torch.rand(64, generator=generator) * 100
    lengths[5] = 9000.0
    same["length_outliers"] = bool(torch.equal(length_outliers(lengths), length_outliers(lengths.to(device())).cpu()))
    same["entropy_threshold"] = entropy_threshold(values, 0.2) == entropy_threshold(values.to(device()), 0.2)
    figures.write("batch_choices", **same)


def _some_segments(vocabulary: int) -> list[Segment]:
    generator = torch.Generator().manual_seed(4)

    def ids(count: int) -> tuple[int, ...]:
        return tuple(torch.randint(3, vocabulary, (count,), generator=generator).tolist())

    segments = []
    for group, prompt_length in enumerate((31, 12)):
        prompt = ids(prompt_length)
        for index, length in enumerate((40, 23, 7)):
            sampled = tuple(position % 5 != 3 for position in range(length)) if index == 1 else ()
            segments.append(Segment(prompt, ids(length), (), sampled, temperature=(1.0, 0.7)[group], group=group))
    return segments


def _batch_of(layout: str, segments: list[Segment]) -> SegmentBatch:
    if layout == "shared":
        return collate_shared(segments, 0)
    if layout == "packed":
        return collate([segments[:2], segments[2:4], segments[4:]], 0)
    return collate([[segment] for segment in segments], 0)


def _compare_policy(figures: Figures, dtype: str, layout: str) -> None:
    """Compare log-probabilities, entropies and the gradient at the weights with a float64 model on the CPU."""
    config = qwen_config("tiny")
    torch.manual_seed(0)
    exact = PolicyModel(AutoModelForCausalLM.from_config(config, dtype=torch.float32).to(DTYPES[dtype]).double())
    model = PolicyModel(AutoModelForCausalLM.from_config(config, dtype=torch.float32)).to(device(), DTYPES[dtype])
    model.load_state_dict(exact.state_dict())
    segments = _some_segments(config.vocab_size)
    weights = torch.rand(len(segments), 40, generator=torch.Generator().manual_seed(5))
    measured = []
    # Several chunks, of which the last is a part of one.
    chunks, policy_module.LOGIT_CHUNK = policy_module.LOGIT_CHUNK, dict.fromkeys(("cuda", "cpu"), 11 * 512)
    try:
        for policy, where in ((exact, torch.device("cpu")), (model, device())):
            logprobs, entropy = policy(_batch_of(layout, segments).to(where))
            (logprobs * weights.to(where)).sum().backward()
            gradient = torch.cat([each.grad.double().cpu().flatten() for each in policy.parameters()])
            measured.append((logprobs.detach().double().cpu(), entropy.double().cpu(), gradient))
    finally:
        policy_module.LOGIT_CHUNK = chunks
    (logprobs, entropy, gradient), (other_logprobs, other_entropy, other_gradient) = measured
    figures.write(
        "policy",
        dtype=dtype,
        layout=layout,
        logprobs=float((logprobs - other_logprobs).abs().max()),
        logprobs_mean=float((logprobs - other_logprobs).abs().sum() / (logprobs != 0).sum()),
        entropy=float((entropy - other_entropy).abs().max()),
        gradient=float((gradient - other_gradient).norm() / gradient.norm()),
    )


def _match_architectures(figures: Figures) -> None:
    """Let tiny models of many architectures find their way from hidden states to logits on the GPU."""
    from architectures import tiny_causal_lm

    attempted: dict[str, Callable[[Any], Any]] = {
        "float32": lambda model: model,
        "bfloat16": lambda model: model.bfloat16(),
    }
    for dtype, convert in attempted.items():
        done = []
        for name in ARCHITECTURES:
            with figures.attempt("architecture", dtype=dtype, name=name):
                model = PolicyModel(convert(tiny_causal_lm(name))).to(device())
                model.match_logits()
                done.append(f"{name}:{type(model._path).__name__}")
        figures.write("architectures", dtype=dtype, matched=len(done), names=" ".join(done))
