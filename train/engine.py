"""The training engine: a policy on DeepSpeed, with one optimizer step as one call.

A step's loss is a sum over tokens divided once by the token count of the whole batch over all ranks, however it is cut
into micro-batches. DeepSpeed averages gradients over ranks, so each rank's sum is multiplied by their number.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from truegold.train.config import OptimizerConfig
from truegold.train.distributed import init_distributed
from truegold.train.policy import Policy
from truegold.train.segment import Batch, Segment, collate, micro_batches
from truegold.verifiers import GuardError, SetupError

LATEST = "latest.json"
KEPT_CHECKPOINTS = 2

LossFunction = Callable[[Tensor, Tensor, Batch, list[int]], tuple[Tensor, dict[str, Tensor]]]
"""(log-probs [B, T], entropy [B, T], batch, indices of its segments) -> (loss summed over tokens, sums to report)."""


class TrainingEngine:
    """The checkpoint in folder `model`, ready to train."""

    def __init__(self, model: Path, config: OptimizerConfig, pad_id: int, seed: int) -> None:
        init_distributed()
        import deepspeed
        from transformers import AutoModelForCausalLM

        torch.manual_seed(seed)
        dtype = getattr(torch, config.dtype)
        try:
            causal_lm = AutoModelForCausalLM.from_pretrained(str(model), dtype=dtype)
        except (OSError, ValueError) as error:
            reason = str(error).strip().split("\n", 1)[0]
            raise SetupError(f"{model} cannot be loaded as a causal language model: {reason}") from error
        if config.gradient_checkpointing:
            causal_lm.gradient_checkpointing_enable()
        policy = Policy(causal_lm)
        self._config = config
        self._pad_id = pad_id
        self._engine, *_ = deepspeed.initialize(
            model=policy, model_parameters=policy.parameters(), config=deepspeed_config(config)
        )
        self.device = self._engine.device

    @property
    def causal_lm(self) -> Any:
        return self._engine.module.causal_lm

    def logprobs(self, segments: Sequence[Segment], temperature: float) -> list[Tensor]:
        """Log-probabilities of each segment's output tokens, [its length] float32 on the CPU, without gradients."""
        result: list[Tensor] = [torch.empty(0)] * len(segments)
        self._engine.eval()
        with torch.no_grad():
            for indices in micro_batches(segments, self._config.micro_batch_tokens):
                batch = collate([segments[i] for i in indices], self._pad_id).to(self.device)
                logprobs, _ = self._engine(batch, temperature)
                for place, index in enumerate(indices):
                    result[index] = logprobs[place, : len(segments[index].output_ids)].cpu()
        self._engine.train()
        return result

    def update(
        self, segments: Sequence[Segment], loss_function: LossFunction, temperature: float, step: int
    ) -> dict[str, float]:
        """One optimizer step on `segments`; `step` counts from 0 and sets the learning rate.

        Returns loss, grad_norm, lr and, divided by the number of tokens, whatever sums the loss function reports.
        Raises GuardError where the loss or the gradient is not finite. The weights may then be spoilt: the run has to
        go on from its last checkpoint.
        """
        self._engine.train()
        tokens = self._global_sum(sum(len(segment.output_ids) for segment in segments))
        world = torch.distributed.get_world_size()
        lr = self._set_lr(step)
        sums: dict[str, Tensor] = {}
        batches = list(micro_batches(segments, self._config.micro_batch_tokens))
        for number, indices in enumerate(batches):
            batch = collate([segments[i] for i in indices], self._pad_id).to(self.device)
            logprobs, entropy = self._engine(batch, temperature)
            loss, reported = loss_function(logprobs, entropy, batch, indices)
            if not torch.isfinite(loss):
                raise GuardError(f"The loss of step {step} is not finite ({float(loss)}).", "Lower the learning rate.")
            for name, value in {"loss": loss.detach(), **reported}.items():
                sums[name] = sums.get(name, torch.zeros((), device=self.device)) + value
            self._engine.set_gradient_accumulation_boundary(number == len(batches) - 1)
            self._engine.backward(loss * (world / tokens), scale_wrt_gas=False)
            self._engine.step()
        grad_norm = float(self._engine.get_global_grad_norm() or 0.0)
        if not math.isfinite(grad_norm):
            raise GuardError(f"The gradient of step {step} is not finite.", "Lower the learning rate.")
        means = {name: self._global_sum(float(value)) / tokens for name, value in sums.items()}
        return {**means, "grad_norm": grad_norm, "lr": lr}

    def _set_lr(self, step: int) -> float:
        warmup = self._config.warmup_steps
        lr = self._config.lr * min(1.0, (step + 1) / warmup) if warmup else self._config.lr
        for group in self._engine.optimizer.param_groups:
            group["lr"] = lr
        return lr

    def _global_sum(self, value: float) -> float:
        total = torch.tensor(value, dtype=torch.float64)
        if torch.distributed.get_world_size() > 1:
            torch.distributed.all_reduce(total)
        return float(total)

    def named_tensors(self) -> Iterator[tuple[str, Tensor]]:
        """The weights by their Hugging Face names, one whole tensor at a time, `lm_head.weight` included where it is
        tied. Every rank must consume all of it: under ZeRO 3 each tensor is gathered from all ranks."""
        import deepspeed

        def whole(parameter: Tensor) -> Iterator[Tensor]:
            if self._config.zero_stage == 3:
                with deepspeed.zero.GatheredParameters([parameter]):
                    yield parameter.detach()
            else:
                yield parameter.detach()

        names = set()
        for name, parameter in self.causal_lm.named_parameters():
            names.add(name)
            for tensor in whole(parameter):
                yield name, tensor
        if "lm_head.weight" not in names:
            for tensor in whole(self.causal_lm.get_output_embeddings().weight):
                yield "lm_head.weight", tensor

    def export(self, folder: Path, tokenizer: Any) -> None:
        """Write a normal Hugging Face checkpoint with its tokenizer."""
        state = {name: tensor.clone().cpu() for name, tensor in self.named_tensors()}
        if self.causal_lm.config.tie_word_embeddings:
            state.pop("lm_head.weight", None)
        if torch.distributed.get_rank() == 0:
            self.causal_lm.save_pretrained(str(folder), state_dict=state)
            tokenizer.save_pretrained(str(folder))

    def save(self, folder: Path, step: int, state: Mapping[str, Any]) -> None:
        """Checkpoint everything a resumed run needs: weights, optimizer, random states and `state`.

        It counts once `latest.json` names it, so a kill half-way leaves the one before in force.
        """
        tag = f"step-{step:06d}"
        client = {"state": dict(state), "rng": torch.get_rng_state()}
        self._engine.save_checkpoint(str(folder), tag=tag, client_state=client, save_latest=False)
        if torch.distributed.get_rank() == 0:
            aside = folder / (LATEST + ".tmp")
            aside.write_text(json.dumps({"tag": tag, "step": step}))
            aside.replace(folder / LATEST)
            for old in sorted(path for path in folder.glob("step-*") if path.is_dir())[:-KEPT_CHECKPOINTS]:
                shutil.rmtree(old)

    def load(self, folder: Path) -> tuple[int, Mapping[str, Any]] | None:
        """Take up the latest checkpoint in `folder`: its step and state, or None where there is none."""
        pointer = folder / LATEST
        if not pointer.exists():
            return None
        latest = json.loads(pointer.read_text())
        _, client = self._engine.load_checkpoint(str(folder), tag=latest["tag"])
        torch.set_rng_state(client["rng"])
        return int(latest["step"]), client["state"]


def deepspeed_config(config: OptimizerConfig) -> dict[str, Any]:
    """DeepSpeed's own configuration for these settings."""
    zero: dict[str, Any] = {"stage": config.zero_stage}
    if config.offload and config.zero_stage >= 2:
        zero["offload_optimizer"] = {"device": "cpu"}
    result: dict[str, Any] = {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 1,
        "gradient_clipping": config.max_grad_norm,
        "zero_optimization": zero,
        "zero_allow_untested_optimizer": True,
        "optimizer": {
            "type": "AdamW",
            "params": {
                "lr": config.lr,
                "betas": list(config.betas),
                "weight_decay": config.weight_decay,
                "torch_adam": True,
            },
        },
        "steps_per_print": 2**31 - 1,
    }
    if config.dtype == "bfloat16":
        result["bf16"] = {"enabled": True}
    return result
