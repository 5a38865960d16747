"""The training engine: a policy on DeepSpeed that takes one optimizer step per call.

A step's loss is a weighted sum over tokens. The weights are computed over the whole batch of all ranks
(`objective.token_weights`). So the loss does not depend on the split into micro-batches. DeepSpeed averages gradients
over ranks, so each rank's loss is multiplied by the number of ranks. A segment is a completion with its prompt. A rank
with fewer segments runs empty micro-batches, because all ranks must take part in collective operations.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from safetensors import SafetensorError
from torch import Tensor

from truegold.pipeline.engines.cpu_memory import trim
from truegold.pipeline.running.disk import write_whole
from truegold.train.config.models import OptimizerConfig
from truegold.train.model import distributed
from truegold.train.model.distributed import (
    Note,
    all_max,
    all_sum,
    barrier,
    from_first_rank,
    gathered,
    maxima,
    print_note,
    rank,
    world_size,
)
from truegold.train.model.ending import EndAsked, is_end_asked
from truegold.train.model.export_check import check_export
from truegold.train.model.optimizer_states import OptimizerStates
from truegold.train.model.policy import (
    PolicyModel,
    add_lora,
    checkpoint_with_cache,
    gather_experts_together,
    gather_head_at_once,
    is_sharded,
    keeps_whole_cache,
    load_causal_lm,
    measure,
    merge,
    merged_parameters,
)
from truegold.train.model.saved_states import (
    ASIDE,
    CARD,
    DEEPSPEED,
    ROOM,
    TRAINER_STATE,
    generator_states,
    in_mb,
    is_cut_short,
    latest_step,
    make_room,
    no_room,
    point_to,
    put_in_place,
    read_client,
    restore_random_states,
    step_folder,
    take_weights,
)
from truegold.train.model.segment import Segment, SegmentBatch, collate, collate_shared, micro_batches, shared_batches
from truegold.train.model.step_effects import WeightsState, add_push, examine_weights, with_push_gap
from truegold.train.objective import PerToken, Totals
from truegold.verifiers import GuardError, SetupError

MICRO_BATCH = "micro_batch.json"
"""A file next to the checkpoints. It has the micro-batch size that did not fit on a GPU, and the size to use."""
GENERATION_CONFIG = "generation_config.json"
"""The file with the model's sampling settings, which is copied to every export."""

LossFunction = Callable[[PerToken, PerToken, SegmentBatch, list[int]], tuple[Tensor, dict[str, Tensor]]]
"""A function that computes the loss of a micro-batch. It takes log-probabilities and entropies (nats, [B, T]), the
batch, and the indices of the batch's segments. It returns the micro-batch's part of the step's loss (a scalar), and
sums over tokens to report, by name."""
Sums = dict[str, Tensor]
"""The reported sums of a step over its micro-batches, by name."""
SAME_LOGPROBS = 0.05
"""The largest difference, in nats, between log-probabilities from two equivalent computations in bfloat16."""


class NotFiniteError(GuardError):
    """The loss or a gradient is NaN or infinite on some rank. The weights were not changed."""


class NoRoomError(SetupError):
    """A GPU has no memory left for an update."""


class TrainingEngine:
    """A model and its optimizer on DeepSpeed, loaded from the checkpoint in folder `model`.

    At most one of `packed` and `shared` is true. pad_id: the token id of padding. seed: the seed of torch's random
    generator. note: a function that shows a line to the user. tokenizer: with it, checkpoints also have weights in
    Hugging Face's format. Raises SetupError if DeepSpeed is missing.
    """

    packed = False
    """Whether rows of micro-batches have several segments."""
    shared = False
    """Whether completions of one prompt share the computation of the prompt (`shared_batches`)."""
    may_end = False
    """Whether a signal may end the process during a computation. The trainer makes it true in parts of a step that do
    not change weights."""
    rate_factor = 1.0
    """The learning rate of the schedule is multiplied by this factor. Guards lower it."""
    make_room: Callable[[], None] = staticmethod(lambda: None)
    """A function that frees memory of the GPU. It is called before the optimizer states come back from host memory."""

    def __init__(
        self,
        model: Path,
        config: OptimizerConfig,
        pad_id: int,
        seed: int,
        note: Note = print_note,
        tokenizer: Any = None,
    ) -> None:
        distributed.init_distributed(note)
        import deepspeed
        from deepspeed.runtime.bf16_optimizer import BF16_Optimizer

        torch.manual_seed(seed)
        settings = distributed.deepspeed_config(config, world_size())
        causal_lm = load_causal_lm(model, config.dtype, settings)
        if config.gradient_checkpointing:
            causal_lm.gradient_checkpointing_enable()
            # If embeddings are frozen, the inputs of layers have no gradient, and checkpointing would drop all
            # gradients.
            causal_lm.enable_input_require_grads()
        if config.lora is not None:
            add_lora(causal_lm, config.lora)
        policy = PolicyModel(causal_lm).to(distributed.local_device())
        if not is_sharded(settings):
            policy.match_logits()
        gather_experts_together(policy)
        self._config = config
        self._note = note
        self._folder: Path | None = None
        """The folder of this training's checkpoints."""
        self._model = model
        self.tokenizer = tokenizer
        """The tokenizer that is saved with weights; None for checkpoints without weights in Hugging Face's format."""
        self._pad_id = pad_id
        self._engine, *_ = deepspeed.initialize(
            model=policy,
            model_parameters=[parameter for parameter in policy.parameters() if parameter.requires_grad],
            config=settings,
        )
        if config.zero_stage == 3:
            gather_head_at_once(policy)
        if is_sharded(settings):
            policy.match_logits()
        # Without sharding and in float32, DeepSpeed uses plain AdamW and does not report the gradient norm.
        self._clips_itself = not self._engine.zero_optimization() and config.dtype == "float32"
        sums_apart = self._clips_itself or isinstance(self._engine.optimizer, BF16_Optimizer)
        if world_size() == 1 and sums_apart:
            # With one rank, the reduction has no effect, but DeepSpeed would copy all gradients for it.
            self._engine.enable_backward_allreduce = False
        self.device = self._engine.device
        self._states = OptimizerStates(self._engine)

    @property
    def causal_lm(self) -> Any:
        """The trained Hugging Face model."""
        return self._engine.module.causal_lm

    @torch.no_grad()
    def logits(self, hidden: Float[Tensor, "states hidden"]) -> Float[Tensor, "states vocabulary"]:
        """Return the logits of hidden states, [states, vocabulary]. Under ZeRO 3, call it within `whole`."""
        logits: Tensor = self._engine.module.head(apart=True)(hidden)
        return logits

    def release_states(self) -> None:
        """Move the optimizer states to host memory until an update or a checkpoint needs them."""
        self._states.leave()

    def _take_states_back(self) -> None:
        if self._states.are_away:
            self.make_room()
            self._states.come_back()

    def measure(self, segments: Sequence[Segment]) -> list[tuple[Tensor, Tensor]]:
        """Return the log-probabilities of each segment's output tokens, and the entropies of their distributions.

        Both are [T] for T output tokens, float32 on the CPU, in nats, without gradients. All ranks call this together.
        """
        self._engine.eval()
        with self._lack_of_room_told(segments):
            measured = measure(self._engine, segments, self._batches(segments))
        self._engine.train()
        return measured

    def logprobs(self, segments: Sequence[Segment]) -> list[Tensor]:
        """Return the log-probabilities of each segment's output tokens at the segment's temperature (`measure`)."""
        return [logprobs for logprobs, _ in self.measure(segments)]

    def weights_state(self) -> WeightsState:
        """Return a summary of the trained weights on this rank, to compare before and after an update."""
        return examine_weights(parameter for parameter in self._engine.module.parameters() if parameter.requires_grad)

    @property
    def is_whole(self) -> bool:
        """Whether every rank has all weights, which is false under ZeRO 3."""
        return self._config.zero_stage < 3

    def pack(self) -> bool:
        """Put several segments into one row of a micro-batch from now on, if the architecture keeps them apart.

        Recurrent layers, for example, mix the segments of a row. Returns whether segments are packed.
        """
        probe = [Segment((self._pad_id,) * 2, tuple(range(2, 2 + size))) for size in (9, 4, 3)]
        padded = self.logprobs(probe)
        self.packed = True
        self.packed = _are_close(padded, self.logprobs(probe))
        return self.packed

    def share_or_pack(self) -> None:
        """Compute each prompt once from now on (`share_prompts`); if that is not possible, `pack` segments."""
        if not self.share_prompts():
            self.pack()

    def share_prompts(self) -> bool:
        """Compute each prompt once for all its completions from now on, if the architecture allows it.

        The architecture must keep no other state of a prompt than the keys and values of all its tokens. Sharing is not
        possible under ZeRO 3, whose ranks would gather weights at different times. Returns whether prompts are shared.
        """
        # In training mode, layers with gradient checkpointing do not get the cache.
        self._engine.eval()
        if self._config.zero_stage == 3 or not keeps_whole_cache(self.causal_lm):
            return False
        if self._config.gradient_checkpointing and not checkpoint_with_cache(self.causal_lm):
            return False
        probe = [Segment((self._pad_id,) * size, tuple(range(2, 2 + size))) for size in (9, 4)]
        probe += [replace(segment, output_ids=(3, 4, 5)) for segment in probe]
        unshared = self.logprobs(probe)
        self.shared = True
        self.shared = _are_close(unshared, self.logprobs(probe))
        return self.shared

    def totals(self, segments: Sequence[Segment]) -> Totals:
        """Return the counts by which a step's losses are divided. They cover the segments of all ranks."""
        tokens, sequences = all_sum(sum(segment.sampled_tokens for segment in segments), len(segments))
        return Totals(tokens, sequences)

    def update(
        self, segments: Sequence[Segment], loss_function: LossFunction, step: int, steps: int
    ) -> dict[str, float]:
        """Take one optimizer step on this rank's segments. All ranks call this together, also ranks without segments.

        step: the number of the optimizer step, from 0. steps: the number of optimizer steps of the run. The learning
        rate depends on both.

        Returns metrics over all ranks: loss, grad_norm, lr, the loss function's sums as means over tokens, and
        push_gap: how much more the loss favours right completions than wrong ones (`step_effects`). Raises
        NotFiniteError on all ranks if the loss or the gradient of any rank is not finite. Weights and optimizer are
        then unchanged. Raises NoRoomError if a GPU has not enough memory.
        """
        with self._lack_of_room_told(segments):
            return self._update(segments, loss_function, step, steps)

    def _update(
        self, segments: Sequence[Segment], loss_function: LossFunction, step: int, steps: int
    ) -> dict[str, float]:
        self._take_states_back()
        self._engine.train()
        lr = self._config.learning_rate(step, steps) * self.rate_factor
        for group in self._engine.optimizer.param_groups:
            group["lr"] = lr
        sums: Sums = {}
        *earlier, last = self._batches(segments)
        for indices, batch in earlier:
            self._backward(self._batch_loss(segments, indices, batch, loss_function, sums), sums, is_last=False)
            # Ends a micro-batch in DeepSpeed, without an optimizer step.
            self._engine.step()
            if self.device.type == "cpu":
                # Return freed memory to the system. Otherwise the process grows with each micro-batch.
                trim()
        self._backward(self._batch_loss(segments, *last, loss_function, sums), sums, is_last=True)
        grad_norm, is_taken = self._clip_and_step()
        metrics = with_push_gap(self._sum_over_ranks(sums, segments))
        if not is_taken:
            self._forget_gradients()
            spoilt = "gradient" if math.isfinite(metrics["loss"]) else "loss"
            raise NotFiniteError(
                f"The {spoilt} of optimizer step {step} is not finite; the step was not taken.",
                "Lower the learning rate, or look for a reward or a weight that is not finite.",
                "not_finite",
            )
        return {**metrics, "grad_norm": grad_norm, "lr": lr}

    @contextmanager
    def _lack_of_room_told(self, segments: Sequence[Segment]) -> Iterator[None]:
        """Turn torch's error of a full GPU into NoRoomError, and halve the micro-batch for the next start."""
        try:
            yield
        except torch.OutOfMemoryError as error:
            # Frames of the traceback would keep tensors in memory.
            raise self._note_no_room(max(segment.length for segment in segments)) from error.with_traceback(None)

    def _note_no_room(self, longest: int) -> NoRoomError:
        """Return the error of a full GPU. If a smaller micro-batch may help, write its size for the next start.
        longest: the number of tokens of the longest segment. No micro-batch can be smaller."""
        tokens = self._config.micro_batch_tokens
        advice = "optimizer.gradient_checkpointing: true, a higher zero_stage, or less memory for vLLM"
        message = f"The GPU of rank {rank()} has no memory left for an update in micro-batches of {tokens:,} tokens."
        if self._folder is not None and longest < tokens:
            write_whole(self._folder / MICRO_BATCH, json.dumps({"too_large": tokens, "tokens": tokens // 2}).encode())
            return NoRoomError(message, f"The same command continues with {tokens // 2:,}; or set {advice}.")
        return NoRoomError(message, f"A single completion has {longest:,} tokens, which cannot be split: set {advice}.")

    def _batch_loss(
        self, segments: Sequence[Segment], indices: list[int], batch: SegmentBatch, function: LossFunction, sums: Sums
    ) -> Tensor:
        """Return a micro-batch's part of the step's loss, and add its reported values to `sums`."""
        logprobs, entropy = self._engine(batch)
        if not indices:
            no_loss: Tensor = logprobs.sum() * 0.0
            return no_loss
        right = torch.tensor([segments[index].right for index in indices], device=self.device)
        logprobs.register_hook(partial(add_push, sums, batch.mask, right))
        loss, reported = function(logprobs, entropy, batch, indices)
        for name, value in {"loss": loss, **reported}.items():
            sums[name] = sums.get(name, torch.zeros((), device=self.device)) + value.detach()
        return loss

    def _backward(self, loss: Tensor, sums: Sums, *, is_last: bool) -> None:
        """Add a micro-batch's gradients to the step's gradients. After the last micro-batch, reduce them over all
        ranks.

        sums: the reported sums of the step so far. They include the loss.
        """
        self._engine.set_gradient_accumulation_boundary(is_last)
        if is_last and _any_not_finite(float(sums.get("loss", 0.0))):
            # A NaN gradient makes DeepSpeed discard the step and clear the gradients on every rank.
            loss = loss * float("nan")
        self._engine.backward(loss * world_size(), scale_wrt_gas=False)

    def _clip_and_step(self) -> tuple[float, bool]:
        """Clip the gradients and take the optimizer step, unless they are not finite.

        Returns the gradient norm before clipping, and whether the step was taken.
        """
        if not self._clips_itself:
            self._engine.step()
            return float(self._engine.get_global_grad_norm() or 0.0), self._engine.was_step_applied()
        parameters = self._engine.module.parameters()
        grad_norm = float(torch.nn.utils.clip_grad_norm_(parameters, self._config.max_grad_norm))
        if _any_not_finite(grad_norm):
            # Plain AdamW would take a step with NaN.
            self._engine.zero_grad()
            return grad_norm, False
        self._engine.step()
        return grad_norm, self._engine.was_step_applied()

    def _forget_gradients(self) -> None:
        """Drop the gradients of a step that was not taken. Otherwise ZeRO 2 with offload adds them to those of the next
        step."""
        if self._config.offload and self._config.zero_stage == 2:
            sums = self._engine.optimizer.averaged_gradients
            sums.update(dict.fromkeys(sums))

    def _batches(self, segments: Sequence[Segment]) -> Iterator[tuple[list[int], SegmentBatch]]:
        """Yield the micro-batches of this rank with the indices of their segments. All ranks yield the same number. A
        rank that has fewer yields batches of one token without indices at the end. Raises EndAsked after a signal,
        while `may_end` is true."""
        max_tokens = self._config.micro_batch_tokens
        if self.shared:
            layouts = [[[index] for index in indices] for indices in shared_batches(segments, max_tokens)]
        else:
            layouts = list(micro_batches(segments, max_tokens, self.packed))
        filler = [[Segment((self._pad_id,), (self._pad_id,))]]
        batches, is_asked = maxima(len(layouts), is_end_asked())
        for batch_index in range(int(batches)):
            if self.may_end and (is_asked or (world_size() == 1 and is_end_asked())):
                raise EndAsked
            layout = layouts[batch_index] if batch_index < len(layouts) else []
            rows = [[segments[index] for index in row] for row in layout] or filler
            batch = collate_shared(list(chain(*rows)), self._pad_id) if self.shared else collate(rows, self._pad_id)
            yield list(chain(*layout)), batch.to(self.device)

    def _sum_over_ranks(self, sums: Mapping[str, Tensor], segments: Sequence[Segment]) -> dict[str, float]:
        """Return the loss and the reported sums, divided by tokens, over all ranks. Ranks without segments call it,
        too."""
        names = sorted({name for names_of_rank in gathered(sorted(sums)) for name in names_of_rank})
        tokens, *values = all_sum(
            sum(segment.sampled_tokens for segment in segments), *(float(sums.get(name, 0.0)) for name in names)
        )
        return {
            name: value if name == "loss" else value / max(tokens, 1.0)
            for name, value in zip(names, values, strict=True)
        }

    def named_tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Yield the Hugging Face names and the whole tensors of the weights. LoRA adapters are merged.

        `lm_head.weight` is included also if it is tied to the embeddings. All ranks must exhaust the iterator, because
        under ZeRO 3 each tensor is gathered from all ranks.
        """
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
        """Make parameters whole within the context. Under ZeRO 3 they are gathered, so all ranks call this together."""
        import deepspeed

        with deepspeed.zero.GatheredParameters(list(parameters), enabled=self._config.zero_stage == 3):
            yield

    def export(self, folder: Path, tokenizer: Any) -> None:
        """Write a normal Hugging Face checkpoint with its tokenizer. All ranks call this together."""
        is_first_rank = rank() == 0
        state = {}
        for name, tensor in self.named_tensors():
            if is_first_rank:
                state[name] = tensor.to("cpu", copy=True)
        if self.causal_lm.config.tie_word_embeddings:
            state.pop("lm_head.weight", None)
        if is_first_rank:
            with _without_sampling_settings(self.causal_lm):
                self.causal_lm.save_pretrained(str(folder), state_dict=state)
            tokenizer.save_pretrained(str(folder))
            settings = self._model / GENERATION_CONFIG
            if settings.exists():
                shutil.copyfile(settings, folder / GENERATION_CONFIG)

    def check_export(self, folder: Path) -> None:
        """Raise GuardError if an exported checkpoint differs from the weights in training. All ranks call this."""
        check_export(folder, self.named_tensors(), self._config.dtype)

    def save(
        self,
        folder: Path,
        step: int,
        state: Mapping[str, Any],
        kept: Collection[int] = (),
        random_states: Mapping[str, Tensor] | None = None,
        *,
        counts: bool = True,
        optimizer: bool = True,
        card: str | None = None,
    ) -> None:
        """Write a checkpoint with everything that a resumed run needs: weights, optimizer, random states and `state`.

        kept: the steps of other checkpoints that are not removed. random_states: this rank's random states; by default
        the current ones. counts: whether a killed run can continue from this checkpoint. optimizer: whether to write
        the optimizer state. card: the model card, if the user has asked for weights of this step. Raises SetupError if
        the disk is full, and removes the partial checkpoint.
        """
        client = {"state": dict(state), "random": gathered(random_states or generator_states())}
        # At step 0, the model's folder has the weights. Adapters are always written, because they are small.
        is_trained, has_adapters = step > 0, self._config.lora is not None
        with_optimizer = has_adapters or (optimizer and is_trained)
        with_weights = self.tokenizer is not None and is_trained and (card is not None or not has_adapters)
        needed = with_optimizer * self.checkpoint_bytes() + with_weights * self.weights_bytes() + ROOM
        free = from_first_rank(make_room(folder, needed, self._note) if rank() == 0 else 0)
        if free < needed:
            raise no_room(folder, step, needed, f"{in_mb(free)} of its disk are free")
        try:
            self._write(folder / ASIDE, with_optimizer, with_weights)
            if rank() == 0:
                (folder / ASIDE).mkdir(exist_ok=True)
                torch.save(client, folder / ASIDE / TRAINER_STATE)
                if card is not None:
                    (folder / ASIDE / CARD).write_text(card)
        except (OSError, RuntimeError, SafetensorError) as error:
            shutil.rmtree(folder / ASIDE, ignore_errors=True)
            if not is_cut_short(error):
                raise
            raise no_room(folder, step, needed, "its disk became full") from error
        if rank() == 0:
            put_in_place(folder, step, kept, counts=counts, keeps_optimizer=has_adapters)
        barrier()

    def _write(self, folder: Path, with_optimizer: bool, with_weights: bool) -> None:
        """Write weights and optimizer in DeepSpeed's format, and weights in Hugging Face's format."""
        if with_optimizer:
            self._take_states_back()
            frozen = {"exclude_frozen_parameters": self._config.lora is not None}
            self._engine.save_checkpoint(str(folder), tag=DEEPSPEED, save_latest=False, **frozen)
        if with_weights:
            self.export(folder, self.tokenizer)

    def _take_smaller_batches(self, path: Path) -> None:
        """Use a smaller micro-batch if an earlier start found the configured one too large for a GPU."""
        smaller = json.loads(path.read_text()) if path.exists() else {"too_large": math.inf}
        if self._config.micro_batch_tokens >= smaller["too_large"]:
            self._config = self._config.model_copy(update={"micro_batch_tokens": smaller["tokens"]})
            self._note(
                "the GPU had no room for {too_large:,} tokens; a micro-batch now has {tokens:,}".format(**smaller)
            )

    def checkpoint_bytes(self) -> int:
        """Return the size in bytes of DeepSpeed's part of a checkpoint, over all ranks.

        This part has the weights. For each trained weight it also has two moments and, if one is kept, a float32 copy.
        """
        trained = sum(size for size, parameter in self._sizes() if parameter.requires_grad)
        return self.weights_bytes(trained_alone=self._config.lora is not None) + trained * (
            12 if self._engine.zero_optimization() else 8
        )

    def weights_bytes(self, trained_alone: bool = False) -> int:
        """Return the size in bytes of the weights. trained_alone: count only trained weights."""
        sizes = [size * each.element_size() for size, each in self._sizes() if each.requires_grad or not trained_alone]
        return sum(sizes)

    def _sizes(self) -> list[tuple[int, Tensor]]:
        """Return the number of elements of each parameter, over all ranks, with the parameter."""
        parameters = self._engine.module.parameters()
        return [(int(getattr(parameter, "ds_numel", parameter.numel())), parameter) for parameter in parameters]

    def return_to(self, folder: Path, step: int) -> Mapping[str, Any]:
        """Load weights and optimizer of the checkpoint of a step, and return its state. The guards roll back by it.

        Later checkpoints are removed. Random states stay as they are, so the next steps differ from the failed ones.
        (`load` restores random states, so a resumed run gives the same result as an uninterrupted one.)
        """
        self._take_states_back()
        self._engine.zero_grad()
        if not self._take_optimizer(step_folder(folder, step)):
            take_weights(self._engine, self.causal_lm, self._model if step == 0 else step_folder(folder, step))
        state: Mapping[str, Any] = read_client(folder, step)["state"]
        barrier()
        if rank() == 0:
            point_to(folder, step)
        return state

    def _take_optimizer(self, taken: Path) -> bool:
        """Load weights and optimizer from DeepSpeed's part of a checkpoint. Return False if the checkpoint has none."""
        has_optimizer = (taken / DEEPSPEED).exists()
        if has_optimizer:
            strict = {"load_module_strict": self._config.lora is None}
            self._engine.load_checkpoint(str(taken), tag=DEEPSPEED, **strict)
        return has_optimizer

    def load(self, folder: Path) -> tuple[int, Mapping[str, Any]] | None:
        """Load the latest checkpoint in `folder`, and return its step and state, or None if there is none."""
        self._folder = folder
        self._take_states_back()
        folder.mkdir(parents=True, exist_ok=True)
        self._take_smaller_batches(folder / MICRO_BATCH)
        step = latest_step(folder)
        if step is None:
            return None
        barrier()
        if rank() == 0:
            # Remove later checkpoints. They have only weights, and their steps are taken again.
            point_to(folder, step)
        # At step 0, a new engine already has the weights of the checkpoint.
        if not self._take_optimizer(step_folder(folder, step)) and step > 0:
            take_weights(self._engine, self.causal_lm, step_folder(folder, step))
        client = read_client(folder, step)
        restore_random_states(client["random"][rank()])
        return step, client["state"]


def _any_not_finite(value: float) -> bool:
    """Return whether the value is NaN or infinite on any rank."""
    return bool(all_max(float(not math.isfinite(value))))


def _are_close(logprobs: Sequence[Tensor], others: Sequence[Tensor]) -> bool:
    """Return whether two lists of log-probabilities are equal up to rounding in bfloat16."""
    return all(torch.allclose(left, right, atol=SAME_LOGPROBS) for left, right in zip(logprobs, others, strict=True))


@contextmanager
def _without_sampling_settings(causal_lm: Any) -> Iterator[None]:
    """Remove a model's sampling settings within the context, because Transformers refuses to save some of them."""
    from transformers import GenerationConfig

    known = causal_lm.generation_config
    ids = ("bos_token_id", "eos_token_id", "pad_token_id")
    causal_lm.generation_config = GenerationConfig(**{name: getattr(known, name, None) for name in ids})
    yield
    causal_lm.generation_config = known
