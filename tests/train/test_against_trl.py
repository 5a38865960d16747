"""A step's loss is TRL's own, from TRL's own code, wherever the two define the same thing.

Both get the same log-probabilities of a random batch; only the model's forward pass is taken out of TRL's trainer.
"""

from __future__ import annotations

from collections import defaultdict
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from truegold.train.config.objective import ObjectiveConfig
from truegold.train.grpo.update import PreparedBatch, StepLoss
from truegold.train.model.segment import Segment, collate
from truegold.train.objective import Totals, entropy_threshold

# It is imported where it is used: three seconds, which every process that collects the tests would spend.
pytestmark = [
    pytest.mark.filterwarnings("default"),
    pytest.mark.skipif(find_spec("trl") is None, reason="TRL is not installed (extra `dev`)"),
]

LENGTHS = [5, 1, 9, 7, 3, 9]
LONGEST = 9
MAX_TOKENS = 12
CLIP = {"low": 0.2, "high": 0.28}
EPSILON = {"clip": CLIP}

draw = torch.Generator().manual_seed(7)


def random(scale: float, around: torch.Tensor | float = 0.0) -> torch.Tensor:
    return around + torch.randn(len(LENGTHS), LONGEST, generator=draw, dtype=torch.float64) * scale


OLD = -random(1.0).abs()
CURRENT = random(0.3, OLD)
ROLLOUT = random(0.2, OLD)
REFERENCE = random(0.5, OLD)
ENTROPY = random(1.0).abs()
ADVANTAGES = torch.tensor([1.2, -0.7, 0.4, -1.5, 0.9, -0.3], dtype=torch.float64)
MASK = torch.tensor(
    [[float(position < length) for position in range(LONGEST)] for length in LENGTHS], dtype=torch.float64
)


def truegold_loss(settings: dict[str, Any]) -> float:
    config = ObjectiveConfig.model_validate({"loss": "ppo", "corrections": [], **settings})
    segments = [Segment((1,), (2,) * length, tuple(ROLLOUT[i, :length].tolist())) for i, length in enumerate(LENGTHS)]
    batch = collate([[segment] for segment in segments], pad_id=0)
    batch = type(batch)(**{**vars(batch), "mask": MASK, "rollout_logprobs": ROLLOUT * MASK})
    threshold = (
        entropy_threshold(ENTROPY[MASK.bool()], config.masks.top_entropy) if config.masks.top_entropy else float("-inf")
    )

    def rows(values: torch.Tensor) -> list[torch.Tensor]:
        return [values[i, :length] for i, length in enumerate(LENGTHS)]

    prepared = PreparedBatch(threshold, rows(OLD), rows(REFERENCE) if config.kl.weight else None)
    loss = StepLoss(config, MAX_TOKENS, Totals(float(MASK.sum()), len(MASK)), ADVANTAGES, prepared)
    # Whatever stands on padding must not count.
    junk = torch.where(MASK > 0, CURRENT, 123.0)
    return float(loss(junk, ENTROPY, batch, list(range(len(LENGTHS))))[0])


def trl_loss(**settings: Any) -> float:
    from trl.trainer import grpo_trainer

    trainer = grpo_trainer.GRPOTrainer.__new__(grpo_trainer.GRPOTrainer)
    same = lambda values, **_: values  # noqa: E731
    arguments = {"delta": settings.pop("delta", None), "use_bias_correction_kl": False, "steps_per_generation": 1}
    attributes = {
        "accelerator": SimpleNamespace(num_processes=1, gather=same, reduce=same, pad_across_processes=same),
        "model": SimpleNamespace(training=True),
        "args": SimpleNamespace(**arguments),
        "current_gradient_accumulation_steps": 1,
        "aux_loss_enabled": False,
        "_entropy_bonus_enabled": False,
        "top_entropy_quantile": 1.0,
        "off_policy_mask_threshold": None,
        "importance_sampling_level": "token",
        "beta": 0.0,
        "loss_type": "dapo",
        "epsilon_low": 0.2,
        "epsilon_high": 0.28,
        "use_vllm": False,
        "vllm_importance_sampling_correction": False,
        "max_completion_length": MAX_TOKENS,
        "_metrics": defaultdict(lambda: defaultdict(list)),
        "_get_per_token_logps_and_entropies": lambda *_, **__: (CURRENT, ENTROPY, None),
        **settings,
    }
    for name, value in attributes.items():
        object.__setattr__(trainer, name, value)
    ids = torch.zeros(len(LENGTHS), 1, dtype=torch.long)
    inputs = {
        "prompt_ids": ids,
        "prompt_mask": ids,
        "completion_ids": torch.zeros(len(LENGTHS), LONGEST, dtype=torch.long),
        "completion_mask": MASK,
        "advantages": ADVANTAGES,
        "old_per_token_logps": OLD,
        "sampling_per_token_logps": ROLLOUT,
        "ref_per_token_logps": REFERENCE,
        "importance_sampling_ratio": torch.exp(OLD - ROLLOUT).clamp(max=2.0),
        "num_items_in_batch": MASK.sum(),
    }
    return float(trainer._compute_loss(None, inputs))


@pytest.mark.parametrize(
    ("settings", "peer"),
    [
        pytest.param(EPSILON, {"loss_type": "dapo"}, id="dapo"),
        pytest.param(EPSILON, {"loss_type": "bnpo"}, id="bnpo"),
        pytest.param({**EPSILON, "aggregation": "sequence"}, {"loss_type": "grpo"}, id="grpo"),
        pytest.param({**EPSILON, "aggregation": "constant"}, {"loss_type": "dr_grpo"}, id="dr_grpo"),
        pytest.param({"clip": {**CLIP, "dual": 1.3}}, {"delta": 1.3}, id="dual clip"),
        pytest.param(
            {"loss": "cispo", "clip": {"is_max": 1.1}}, {"loss_type": "cispo", "epsilon_high": 1.1}, id="cispo"
        ),
        pytest.param(
            {"loss": "gspo", "clip": {"low": 3e-2, "high": 4e-2}},
            {
                "loss_type": "grpo",
                "importance_sampling_level": "sequence",
                "epsilon_low": 3e-2,
                "epsilon_high": 4e-2,
            },
            id="gspo",
        ),
        pytest.param({**EPSILON, "kl": {"weight": 0.1}}, {"loss_type": "bnpo", "beta": 0.1}, id="kl, k3"),
        pytest.param(
            {**EPSILON, "kl": {"weight": 0.1}, "aggregation": "sequence"},
            {"loss_type": "grpo", "beta": 0.1},
            id="kl, per sequence",
        ),
        pytest.param(
            {**EPSILON, "kl": {"weight": 0.1}, "aggregation": "constant"},
            {"loss_type": "dr_grpo", "beta": 0.1},
            id="kl, constant",
        ),
        pytest.param(
            {**EPSILON, "corrections": [{"kind": "tis", "high": 2.0}]},
            {"use_vllm": True, "vllm_importance_sampling_correction": True},
            id="truncated importance sampling",
        ),
        pytest.param({**EPSILON, "masks": {"top_entropy": 0.2}}, {"top_entropy_quantile": 0.2}, id="top entropy"),
        pytest.param(
            {**EPSILON, "masks": {"off_policy": 0.05}}, {"off_policy_mask_threshold": 0.05}, id="off-policy mask"
        ),
    ],
)
def test_the_loss_is_trl_s(settings: dict[str, Any], peer: dict[str, Any]) -> None:
    assert truegold_loss(settings) == pytest.approx(trl_loss(**peer), rel=1e-6, abs=1e-9)


def test_each_setting_changes_the_number() -> None:
    """So that the equalities above are of different numbers."""
    plain = truegold_loss(EPSILON)
    others = [
        truegold_loss({**EPSILON, **change})
        for change in (
            {"aggregation": "sequence"},
            {"aggregation": "constant"},
            {"clip": {**CLIP, "dual": 1.3}},
            {"kl": {"weight": 0.1}},
            {"corrections": [{"kind": "tis", "high": 2.0}]},
            {"masks": {"top_entropy": 0.2}},
            {"masks": {"off_policy": 0.05}},
        )
    ]
    assert len({round(value, 9) for value in (plain, *others)}) == 8
