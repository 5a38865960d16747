"""Checks the RL objective against a file with inputs and the float64 results of each formula.

    python benchmarks/loss_fixture.py FILE

Goes through the public functions of `truegold.train.objective` (and the verifier `length`) and prints, for each value
of the file, the largest deviation; infinity for a name that is not known here or another shape. Exit code 1 where
anything deviates by more than 1e-6.

The file: inputs {rewards_prompts_x_group [P, G], logp, old_logp, rollout_logp, entropy, mask [B, T],
advantage_per_sequence [B, 1]} and expected {advantage, loss, dapo_with_correction, mask, context_distillation_weight,
"soft_overlong(L=..,Lmax=..,Lcache=..)"}. Numbers in a name are the parameters: `tis_2`, `icepop_.5_5`,
`grpo_seq_mean_clip_.2_.2`, `pass_at_k_chen_k2`.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from truegold.train.config.objective import Aggregation
from truegold.train.objective import (
    Totals,
    advantages,
    cispo,
    distillation_weights,
    engine_weights,
    entropy_threshold,
    gspo,
    gspo_token,
    kl_estimate,
    off_policy_sequence_mask,
    ppo_clip,
    shaped_imitation,
    token_weights,
    top_entropy_mask,
    topr,
    walder_rewards,
)
from truegold.verifiers.answers.format import punishment

TOLERANCE = 1e-6
CLIP_LOW, CLIP_HIGH = 0.2, 0.28
"""Where a name says none: DAPO's in the section of corrections, else PPO's 0.2 on both sides."""


class Fixture:
    """One file: its inputs as float64 tensors, and its expected values by name."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        tensors = {name: torch.tensor(value, dtype=torch.float64) for name, value in content["inputs"].items()}
        self.rewards = tensors["rewards_prompts_x_group"]
        self.current, self.old, self.rollout = tensors["logp"], tensors["old_logp"], tensors["rollout_logp"]
        self.entropy, self.mask = tensors["entropy"], tensors["mask"]
        self.advantage = tensors["advantage_per_sequence"].flatten()
        self.expected: Mapping[str, Any] = content["expected"]

    @property
    def policy(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Current and old log-probabilities, advantages and mask, as the losses take them."""
        return self.current, self.old, self.advantage, self.mask

    def deviations(self) -> Iterator[tuple[str, float]]:
        """Yield (name, largest absolute deviation) of every expected value."""
        for section, values in self.expected.items():
            if section.startswith("soft_overlong"):
                yield section, _deviation(self._overlong(section), values)
                continue
            for name, value in values.items():
                yield f"{section}.{name}", self._deviation_from(section, name, value)

    def _deviation_from(self, section: str, name: str, value: Any) -> float:
        try:
            return _deviation(SECTIONS[section](self, name), value)
        except (KeyError, ValueError) as error:
            print(f"{section}.{name}: {error!r}", file=sys.stderr)
            return math.inf

    def _overlong(self, name: str) -> Tensor:
        length, longest, cache = _numbers(name)
        return torch.tensor(punishment(int(length), int(longest), int(cache)), dtype=torch.float64)

    def compute_advantages(self, name: str) -> Tensor:
        """Return the advantages of that name."""
        prompts, size = self.rewards.shape
        kind, k = _name_and_k(name)
        if kind == "pkpo_reward":
            right = self.rewards > 0.5
            pairs = [walder_rewards(size, int(row.sum()), k) for row in right]
            return torch.where(right, *torch.tensor(pairs, dtype=torch.float64).to(self.rewards).T.unsqueeze(-1))
        groups = torch.arange(prompts, device=self.rewards.device).repeat_interleave(size)
        return advantages(kind, self.rewards.flatten(), groups, k).view(prompts, size)

    def compute_loss(self, name: str) -> Tensor:
        """Return the aggregated loss of that name."""
        stem, *numbers = _stem_and_numbers(name)
        values, kind = LOSSES[stem](self, numbers)
        return self.aggregate(values, kind, int(numbers[-1]) if kind == "constant" else None)

    def compute_corrected_loss(self, name: str) -> Tensor:
        """Return PPO's loss with the correction of that name."""
        stem, *numbers = _stem_and_numbers(name)
        kind = {"seq_tis": "sequence_tis", "seq_mis": "sequence_mask"}.get(stem, stem)
        low, high = (0.0, *numbers) if len(numbers) == 1 else numbers
        weights = engine_weights(self.old, self.rollout, self.mask, kind, high, low)  # type: ignore[arg-type]
        return self.aggregate(ppo_clip(*self.policy, CLIP_LOW, CLIP_HIGH).loss * weights, "token")

    def aggregate(self, values: Tensor, kind: Aggregation, constant: int | None = None) -> Tensor:
        """Return the token losses of the batch, which is in one piece, as a scalar."""
        totals = Totals(float(self.mask.sum()), float((self.mask.sum(1) > 0).sum()))
        return (values.where(self.mask > 0, 0) * token_weights(self.mask, kind, totals, constant)).sum()

    def compute_mask(self, name: str) -> Tensor:
        """Return the mask of that name."""
        stem, parameter = _stem_and_numbers(name)
        if stem == "opsm_delta":
            return off_policy_sequence_mask(self.current, self.rollout, self.advantage, self.mask, parameter).unsqueeze(
                1
            )
        if stem == "top_entropy":
            threshold = entropy_threshold(self.entropy[self.mask > 0], parameter)
            return top_entropy_mask(self.entropy, self.mask, threshold)
        raise KeyError(name)

    def compute_distillation_weights(self, name: str) -> Tensor:
        """Return the weights of context distillation of that name."""
        stem, cap = _stem_and_numbers(name)
        kind = stem.removesuffix("_cap")
        return distillation_weights(self.old, self.rollout, self.mask, kind, cap)  # type: ignore[arg-type]


LOSSES: Mapping[str, Callable[[Fixture, list[float]], tuple[Tensor, Aggregation]]] = {
    "grpo_seq_mean_clip": lambda f, parameters: (ppo_clip(*f.policy, *parameters).loss, "sequence"),
    "dapo_token_mean_clip": lambda f, parameters: (ppo_clip(*f.policy, *parameters).loss, "token"),
    "dr_grpo_const": lambda f, parameters: (ppo_clip(*f.policy, CLIP_LOW, CLIP_LOW).loss, "constant"),
    "dual_clip_token_mean": lambda f, parameters: (
        ppo_clip(*f.policy, CLIP_LOW, CLIP_LOW, parameters[0]).loss,
        "token",
    ),
    "gspo_token_seq_mean": lambda f, parameters: (gspo_token(*f.policy, *parameters).loss, "sequence"),
    "gspo_seq_mean": lambda f, parameters: (gspo(*f.policy, *parameters).loss, "sequence"),
    "cispo_hi_token_mean": lambda f, parameters: (cispo(*f.policy, *parameters).loss, "token"),
    "topr_token_mean": lambda f, parameters: (topr(*f.policy).loss, "token"),
    "k1_kl_to_rollout_token_mean": lambda f, parameters: (kl_estimate(f.current, f.rollout, "k1"), "token"),
    "k3_kl_to_rollout_token_mean": lambda f, parameters: (kl_estimate(f.current, f.rollout), "token"),
    "luffy_gamma_positive_part_token_mean": lambda f, parameters: (
        shaped_imitation(f.current, f.advantage.clamp(min=0), *parameters),
        "token",
    ),
}
"""By the name without its numbers: token losses and how they are aggregated."""

SECTIONS: Mapping[str, Callable[[Fixture, str], Tensor]] = {
    "advantage": Fixture.compute_advantages,
    "loss": Fixture.compute_loss,
    "dapo_with_correction": Fixture.compute_corrected_loss,
    "mask": Fixture.compute_mask,
    "context_distillation_weight": Fixture.compute_distillation_weights,
}


def _numbers(text: str) -> list[float]:
    return [float(is_parameter) for is_parameter in re.findall(r"(?<![\d.a-z])\d*\.?\d+", text)]


def _stem_and_numbers(name: str) -> list[Any]:
    """`gspo_.1_.1_seq_mean` -> ["gspo_seq_mean", 0.1, 0.1]."""
    parts = name.split("_")
    is_number = [re.fullmatch(r"\d*\.?\d+", part) is not None for part in parts]
    stem = "_".join(part for part, is_parameter in zip(parts, is_number, strict=True) if not is_parameter)
    return [stem, *(float(part) for part, is_parameter in zip(parts, is_number, strict=True) if is_parameter)]


def _name_and_k(name: str) -> tuple[str, int]:
    match = re.fullmatch(r"(.+)_k(\d+)", name)
    return (match[1], int(match[2])) if match else (name, 1)


def _deviation(computed: Tensor, fixture_value: Any) -> float:
    expected = torch.tensor(fixture_value, dtype=torch.float64)
    if computed.shape != expected.shape:
        raise ValueError(f"a value of shape {tuple(computed.shape)} where {tuple(expected.shape)} is expected")
    deviation = float((computed - expected).abs().max())
    return math.inf if math.isnan(deviation) else deviation


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    fixture = Fixture(json.loads(parser.parse_args().file.read_text()))
    deviations = dict(fixture.deviations())
    for name, deviation in deviations.items():
        print(f"{deviation:9.2e}  {name}")
    worst = max(deviations, key=lambda name: deviations[name])
    print(f"{len(deviations)} values; the largest deviation is {deviations[worst]:.2e} ({worst})")
    sys.exit(0 if deviations[worst] <= TOLERANCE else 1)


if __name__ == "__main__":
    _main()
