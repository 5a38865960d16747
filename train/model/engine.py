"""The training engine: a policy on DeepSpeed, with one optimizer step as one call.

A step's loss is a sum over tokens with weights that belong to the whole batch over all ranks (`objective.aggregation`),
however it is cut into micro-batches. DeepSpeed averages gradients over ranks, so each rank's sum is multiplied by their
number. Ranks may hold different numbers of segments: those with fewer micro-batches run empty ones, since a rank that
stays away from a collective operation stops all others.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from truegold.pipeline.engines.host_memory import trim
from truegold.train.config.models import OptimizerConfig
from truegold.train.model.distributed import all_max, all_sum, gathered, init_distributed
from truegold.train.model.lora import add_lora, merge, merged_parameters
from truegold.train.model.policy import Policy
from truegold.train.model.prefix_cache import checkpoint_with_cache, keeps_whole_cache
from truegold.train.model.segment import Batch, Segment, collate, micro_batches
from truegold.train.model.shared_prompts import collate_shared, shared_batches
from truegold.train.objective import Totals
from truegold.verifiers import GuardError, SetupError

LATEST = "latest.json"
GENERATION_CONFIG = "generation_config.json"
KEPT_CHECKPOINTS = 2

LossFunction = Callable[[Tensor, Tensor, Batch, list[int]], tuple[Tensor, dict[str, Tensor]]]
"""(log-probs [B, T], entropy [B, T], batch, indices of its segments) -> (its share of the step's loss, sums over tokens
to report)."""


class TrainingEngine:
    """The checkpoint in folder `model`, ready to train.

    packed: whether micro-batches hold several segments a row. shared: whether segments share their prompt's computation
    (`shared_prompts`). At most one of the two.
    """

    packed = False
    shared = False

    def __init__(self, model: Path, config: OptimizerConfig, pad_id: int, seed: int) -> None:
        init_distributed()
        import deepspeed
        from deepspeed.runtime.bf16_optimizer import BF16_Optimizer

        torch.manual_seed(seed)
        causal_lm = load_causal_lm(model, config.dtype)
        if config.gradient_checkpointing:
            causal_lm.gradient_checkpointing_enable()
            # With frozen embeddings no input of a layer has a gradient, which checkpointing would take for none at all.
            causal_lm.enable_input_require_grads()
        if config.lora is not None:
            add_lora(causal_lm, config.lora)
        policy = Policy(causal_lm)
        self._config = config
        self._model = model
        self._pad_id = pad_id
        self._engine, *_ = deepspeed.initialize(
            model=policy,
            model_parameters=[parameter for parameter in policy.parameters() if parameter.requires_grad],
            config=deepspeed_config(config, torch.distributed.get_world_size()),
        )
        if config.zero_stage == 3:
            gather_head_at_once(policy)
        # Without sharding and in float32 DeepSpeed hands on to plain AdamW, and tells no norm of what it clips.
        self._clips_itself = not self._engine.zero_optimization() and config.dtype == "float32"
        sums_apart = self._clips_itself or isinstance(self._engine.optimizer, BF16_Optimizer)
        if torch.distributed.get_world_size() == 1 and sums_apart:
            self._engine.enable_backward_allreduce = False  # it would copy all gradients to add up nothing
        self.device = self._engine.device

    @property
    def causal_lm(self) -> Any:
        return self._engine.module.causal_lm

    def measure(self, segments: Sequence[Segment]) -> list[tuple[Tensor, Tensor]]:
        """For each segment the log-probabilities of its output tokens and the entropies of the distributions they were
        drawn from, both [its length] float32 on the CPU, without gradients."""
        self._engine.eval()
        found = _measure(self._engine, segments, self._batches(segments))
        self._engine.train()
        return found

    def logprobs(self, segments: Sequence[Segment]) -> list[Tensor]:
        """Log-probabilities of each segment's output tokens at its own temperature, as `measure` gives them."""
        return [logprobs for logprobs, _ in self.measure(segments)]

    def pack(self) -> bool:
        """Pack segments from now on, unless this architecture mixes what lies in one row: recurrent layers do. Returns
        whether it does not."""
        probe = [Segment((self._pad_id,) * 2, tuple(range(2, 2 + size))) for size in (9, 4, 3)]
        apart = self.logprobs(probe)
        self.packed = True
        together = self.logprobs(probe)
        self.packed = all(torch.allclose(one, other, atol=0.05) for one, other in zip(apart, together, strict=True))
        return self.packed

    def share_prompts(self) -> bool:
        """Compute prompts once for all their completions from now on, where the architecture allows it: keys and values
        of whole prompts must be all that it remembers. Returns whether it does.

        Not under ZeRO 3, whose ranks would gather weights at different times.
        """
        self._engine.eval()  # in training mode gradient checkpointing would keep the cache from the layers
        if self._config.zero_stage == 3 or not keeps_whole_cache(self.causal_lm):
            return False
        if self._config.gradient_checkpointing and not checkpoint_with_cache(self.causal_lm):
            return False
        probe = [Segment((self._pad_id,) * size, tuple(range(2, 2 + size))) for size in (9, 4)]
        probe += [replace(segment, output_ids=(3, 4, 5)) for segment in probe]
        apart = self.logprobs(probe)
        self.shared = True
        together = self.logprobs(probe)
        self.shared = all(torch.allclose(one, other, atol=0.05) for one, other in zip(apart, together, strict=True))
        return self.shared

    def totals(self, segments: Sequence[Segment]) -> Totals:
        """What the weights of a step's tokens are relative to: over the segments of all ranks."""
        tokens, sequences = all_sum(sum(len(segment.output_ids) for segment in segments), len(segments))
        return Totals(tokens, sequences)

    def update(
        self, segments: Sequence[Segment], loss_function: LossFunction, step: int, steps: int
    ) -> dict[str, float]:
        """One optimizer step on this rank's `segments`. Its number `step`, from 0, of the run's `steps` sets the
        learning rate.

        Returns loss, grad_norm, lr and, divided by the number of tokens, whatever sums the loss function reports; over
        all ranks. Raises GuardError where the loss or the gradient is not finite. The weights may then be spoilt: the
        run has to go on from its last checkpoint.
        """
        self._engine.train()
        world = torch.distributed.get_world_size()
        lr = self._config.lr_at(step, steps)
        for group in self._engine.optimizer.param_groups:
            group["lr"] = lr
        sums: dict[str, Tensor] = {}
        unsharded_norm = 0.0
        batches = list(self._batches(segments))
        for place, (indices, batch) in enumerate(batches):
            logprobs, entropy = self._engine(batch)
            if indices:
                loss, reported = loss_function(logprobs, entropy, batch, indices)
                for name, value in {"loss": loss, **reported}.items():
                    sums[name] = sums.get(name, torch.zeros((), device=self.device)) + value.detach()
            else:
                loss = logprobs.sum() * 0.0
            last = place == len(batches) - 1
            self._engine.set_gradient_accumulation_boundary(last)
            self._engine.backward(loss * world, scale_wrt_gas=False)
            if last and self._clips_itself:
                parameters = self._engine.module.parameters()
                unsharded_norm = float(torch.nn.utils.clip_grad_norm_(parameters, self._config.max_grad_norm))
            self._engine.step()
            if not last and self.device.type == "cpu":
                trim()  # or what this micro-batch freed in pieces lies beside the next one's
        found = self._over_ranks(sums, segments)
        grad_norm = unsharded_norm if self._clips_itself else float(self._engine.get_global_grad_norm() or 0.0)
        for name, number in (("loss", found["loss"]), ("gradient", grad_norm)):
            if not math.isfinite(number):
                raise GuardError(f"The {name} of step {step} is not finite ({number}).", "Lower the learning rate.")
        return {**found, "grad_norm": grad_norm, "lr": lr}

    def _batches(self, segments: Sequence[Segment]) -> Iterator[tuple[list[int], Batch]]:
        """Micro-batches, as many on every rank: where this one has fewer, batches of one token without indices."""
        most = self._config.micro_batch_tokens
        own = (
            [[[i] for i in indices] for indices in shared_batches(segments, most)]
            if self.shared
            else list(micro_batches(segments, most, self.packed))
        )
        for number in range(int(all_max(len(own)))):
            layout = own[number] if number < len(own) else []
            rows = [[segments[i] for i in row] for row in layout] or [[Segment((self._pad_id,), (self._pad_id,))]]
            batch = (
                collate_shared([one for (one,) in rows], self._pad_id) if self.shared else collate(rows, self._pad_id)
            )
            yield [i for row in layout for i in row], batch.to(self.device)

    def _over_ranks(self, sums: Mapping[str, Tensor], segments: Sequence[Segment]) -> dict[str, float]:
        """The loss, and the reported sums per token. Ranks without segments report nothing, and learn the names."""
        names = sorted({name for own in gathered(sorted(sums)) for name in own})
        tokens, *values = all_sum(
            sum(len(segment.output_ids) for segment in segments), *(float(sums.get(name, 0.0)) for name in names)
        )
        return {
            name: value if name == "loss" else value / max(tokens, 1.0)
            for name, value in zip(names, values, strict=True)
        }

    def named_tensors(self) -> Iterator[tuple[str, Tensor]]:
        """The weights by their Hugging Face names, one whole tensor at a time, `lm_head.weight` included where it is
        tied. Every rank must consume all of it: under ZeRO 3 each tensor is gathered from all ranks."""
        names = set()
        for name, parts, scale in merged_parameters(self.causal_lm):
            names.add(name)
            with self.whole(*parts):
                yield name, merge(parts, scale)
        if "lm_head.weight" not in names:
            head = self.causal_lm.get_output_embeddings().weight
            with self.whole(head):
                yield "lm_head.weight", head.detach()

    @contextmanager
    def whole(self, *parameters: Tensor) -> Iterator[None]:
        """While it lasts the parameters hold all their values: under ZeRO 3 they are gathered from all ranks, each of
        which has to ask for them."""
        import deepspeed

        if self._config.zero_stage == 3:
            with deepspeed.zero.GatheredParameters(list(parameters)):
                yield
        else:
            yield

    def export(self, folder: Path, tokenizer: Any) -> None:
        """Write a normal Hugging Face checkpoint with its tokenizer."""
        first = torch.distributed.get_rank() == 0
        state = {}
        for name, tensor in self.named_tensors():
            if first:
                state[name] = tensor.to("cpu", copy=True)
        if self.causal_lm.config.tie_word_embeddings:
            state.pop("lm_head.weight", None)
        if first:
            with _token_ids_alone(self.causal_lm):
                self.causal_lm.save_pretrained(str(folder), state_dict=state)
            tokenizer.save_pretrained(str(folder))
            settings = self._model / GENERATION_CONFIG
            if settings.exists():
                shutil.copyfile(settings, folder / GENERATION_CONFIG)

    def save(self, folder: Path, step: int, state: Mapping[str, Any]) -> None:
        """Checkpoint everything a resumed run needs: weights, optimizer, random states and `state`.

        It counts once `latest.json` names it, so a kill half-way leaves the one before in force.
        """
        tag = f"step-{step:06d}"
        client = {"state": dict(state), "random": gathered(_random_states())}
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
        _restore_random_states(client["random"][torch.distributed.get_rank()])
        return int(latest["step"]), client["state"]


@contextmanager
def _token_ids_alone(causal_lm: Any) -> Iterator[None]:
    """Without its sampling settings: transformers loads many published ones that it then refuses to save."""
    from transformers import GenerationConfig

    known = causal_lm.generation_config
    ids = ("bos_token_id", "eos_token_id", "pad_token_id")
    causal_lm.generation_config = GenerationConfig(**{name: getattr(known, name, None) for name in ids})
    yield
    causal_lm.generation_config = known


def _random_states() -> dict[str, Tensor]:
    """This rank's, on the host and on its GPU."""
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state()
    return states


def _restore_random_states(states: Mapping[str, Tensor]) -> None:
    torch.set_rng_state(states["cpu"])
    if "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"])


def gather_head_at_once(policy: Policy) -> None:
    """Have ZeRO 3 gather the output head when the policy is called, and hold it until that call is over."""
    import deepspeed

    policy.head_apart = True
    head = policy.causal_lm.get_output_embeddings()
    for parameter in head.parameters(recurse=False):
        deepspeed.zero.register_external_parameter(policy, parameter)


class FrozenPolicy:
    """The checkpoint in folder `model`, whole on every rank and never trained: the reference of the KL penalty."""

    def __init__(self, model: Path, config: OptimizerConfig, engine: TrainingEngine) -> None:
        self._policy = Policy(load_causal_lm(model, config.dtype)).to(engine.device).eval()
        self._config = config
        self._device = engine.device

    def logprobs(self, segments: Sequence[Segment]) -> list[Tensor]:
        """As `TrainingEngine.logprobs`; ranks need not call it together."""
        batches = (
            (
                [i for row in layout for i in row],
                collate([[segments[i] for i in row] for row in layout], pad_id=0).to(self._device),
            )
            for layout in micro_batches(segments, self._config.micro_batch_tokens)
        )
        return [logprobs for logprobs, _ in _measure(self._policy, segments, batches)]


def load_causal_lm(model: Path, dtype: str) -> Any:
    """The checkpoint in folder `model`. Raises SetupError where it is none."""
    from transformers import AutoModelForCausalLM

    try:
        return AutoModelForCausalLM.from_pretrained(str(model), dtype=getattr(torch, dtype))
    except (OSError, ValueError) as error:
        reason = str(error).strip().split("\n", 1)[0]
        raise SetupError(f"{model} cannot be loaded as a causal language model: {reason}") from error


@torch.no_grad()
def _measure(
    policy: Callable[[Batch], tuple[Tensor, Tensor]],
    segments: Sequence[Segment],
    batches: Iterable[tuple[list[int], Batch]],
) -> list[tuple[Tensor, Tensor]]:
    """Each segment's log-probabilities and entropies, from micro-batches with the indices of their segments."""
    result: list[tuple[Tensor, Tensor]] = [(torch.empty(0), torch.empty(0))] * len(segments)
    for indices, batch in batches:
        logprobs, entropy = (values.cpu() for values in policy(batch))
        for place, index in enumerate(indices):
            size = len(segments[index].output_ids)
            result[index] = logprobs[place, :size], entropy[place, :size]
    return result


def deepspeed_config(config: OptimizerConfig, ranks: int) -> dict[str, Any]:
    """DeepSpeed's own configuration for these settings.

    One rank has nothing to shard: in float32 it takes stage 0, which keeps no second copy of the weights. In bfloat16
    stage 0 would be another optimizer, which adds gradients up in bfloat16 and counts one step too many: 1 stands in.
    """
    alone = ranks == 1 and config.dtype == "float32" and not config.offload
    zero: dict[str, Any] = {"stage": 0 if alone else max(config.zero_stage, int(config.dtype == "bfloat16"))}
    if config.offload and config.zero_stage >= 2:
        zero["offload_optimizer"] = {"device": "cpu"}
    result: dict[str, Any] = {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 1,
        "gradient_clipping": 0.0 if zero["stage"] == 0 and config.dtype == "float32" else config.max_grad_norm,
        "zero_optimization": zero,
        "zero_allow_untested_optimizer": True,
        "optimizer": {
            "type": "AdamW",
            "params": {
                "lr": config.lr,
                "betas": list(config.betas),
                "weight_decay": config.weight_decay,
                "torch_adam": True,
                "fused": True,  # one pass over memory, and no copies on the way
            },
        },
        "steps_per_print": 2**31 - 1,
    }
    if config.dtype == "bfloat16":
        result["bf16"] = {"enabled": True}
        # In bfloat16 sums over micro-batches and ranks would lose what comes late.
        result["data_types"] = {"grad_accum_dtype": "fp32"}
        result["communication_data_type"] = "fp32"
    return result
