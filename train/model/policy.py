"""The policy as the trainer sees it: a causal language model whose forward gives log-probabilities of output tokens.

    log-probabilities, entropies = PolicyModel(load_causal_lm(folder, "bfloat16"))(batch)      both [B, T]

The full [B, L, V] logits are never held: hidden states of the output positions alone go through the output head, a
chunk of tokens at a time, recomputed in the backward pass. The step from hidden states to logits is different in every
family, and there will be others, so that no list of configuration fields is kept here:

    Llama, Qwen, Mistral         head(hidden)
    Gemma 2, 3n, 4               c tanh(head(hidden) / c), c the configuration's final_logit_softcapping
    Granite, Cohere, Falcon H1   head(hidden) times or divided by a constant of the configuration

`OwnPath` runs the model's own forward pass on a chunk of hidden states: its decoder is replaced by one that returns
the given states. `choose_path` compares the result with the whole model before training begins.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import linear
from torch.utils.checkpoint import checkpoint
from transformers.cache_utils import DynamicCache, DynamicLayer
from transformers.modeling_layers import GradientCheckpointingLayer

from truegold.pipeline.engines.chat import ChatEncoder
from truegold.train.config.models import OptimizerConfig
from truegold.train.model.distributed import all_max, deepspeed_config, world_size
from truegold.train.model.segment import Prefix, Segment, SegmentBatch, collate, micro_batches
from truegold.train.objective import AllTokens, PerToken
from truegold.verifiers import SetupError

LOGIT_CHUNK = {"cuda": 8192 * 8192, "cpu": 2048 * 2048}
"""Logits computed at a time (tokens x vocabulary): 256 MiB in float32, or 16, of which some five copies are held. A GPU
needs many tokens at a time to be busy, a CPU few. Each chunk adds to the gradient of all of the head's weights, which
holds more memory than its logits."""


def load_causal_lm(model: Path, dtype: str, settings: Mapping[str, Any] | None = None) -> Any:
    """Load the checkpoint in folder `model`. Raises SetupError if it is not a checkpoint.

    settings: DeepSpeed's configuration. Where `is_sharded` holds of it, every rank calls this, and keeps its share of
    each layer as that is read: none holds the whole model.
    """
    from transformers import AutoModelForCausalLM
    from transformers.integrations.deepspeed import HfDeepSpeedConfig

    # transformers looks for it as long as it is alive.
    sharding = HfDeepSpeedConfig(dict(settings)) if settings is not None and is_sharded(settings) else None
    try:
        return AutoModelForCausalLM.from_pretrained(str(model), dtype=getattr(torch, dtype))
    except (OSError, ValueError) as error:
        reason = str(error).strip().split("\n", 1)[0]
        raise SetupError(f"{model} cannot be loaded as a causal language model: {reason}") from error
    finally:
        del sharding


def is_sharded(settings: Mapping[str, Any]) -> bool:
    """Return whether weights are sharded over several ranks as they are loaded."""
    return bool(settings["zero_optimization"]["stage"] == 3 and world_size() > 1)


def pad_id(encoder: ChatEncoder) -> int:
    """Return a token id to pad with. Any valid one will do: masks come from lengths."""
    padding = encoder.tokenizer.pad_token_id
    return int(encoder.stop_token_ids[0] if padding is None else padding)


class PolicyModel(nn.Module):
    """Wraps a Hugging Face causal language model with a base `model` and an `lm_head`."""

    head_apart = False
    """Whether to compute with the head's weights instead of calling it. Under ZeRO 3 every call of a module is a
    collective operation, and ranks have different numbers of chunks."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.causal_lm = model
        self._path: LogitPath = PlainPath(model)

    def match_logits(self) -> None:
        """Choose how logits are computed from hidden states, so that they equal the model's own (`choose_path`).

        Raises SetupError if its architecture is one whose log-probabilities would be wrong. Where weights are sharded
        every rank calls it.
        """

        def logprobs(path: LogitPath, sequences: Sequence[Sequence[int]]) -> list[Tensor]:
            self._path = path
            segments = [Segment((ids[0],), tuple(ids[1:])) for ids in sequences]
            values, _ = self(collate([[segment] for segment in segments], pad_id=0).to(self.causal_lm.device))
            return [row[: len(segment.output_ids)] for row, segment in zip(values, segments, strict=True)]

        self._path = choose_path(self.causal_lm, logprobs)

    def head(self, apart: bool = False) -> Head:
        """Return what computes logits from hidden states, before any temperature.

        apart: whether to multiply by the output head's weights instead of calling it.
        """
        return self._path.head(apart or self.head_apart)

    def forward(self, batch: SegmentBatch) -> tuple[PerToken, PerToken]:
        """Return the log-probability of each output token given all before it, and the entropy of that distribution.

        Both are float32, 0 where the mask is 0; both of the softmax at each segment's own temperature. The entropy
        carries no gradient.
        """
        is_output = batch.mask.bool()
        hidden = self._hidden(batch) if batch.prefix is None else self._hidden_shared(batch, batch.prefix)
        # The states of other positions are let go before the logits take their memory.
        hidden = hidden[is_output]
        temperature = batch.temperature.unsqueeze(1).expand_as(batch.mask)
        flat_inputs = (hidden, batch.targets[is_output], temperature[is_output])
        head = self.head()
        chunk = max(1, LOGIT_CHUNK[hidden.device.type] // self.causal_lm.get_output_embeddings().weight.shape[0])
        # The backward pass begins with the last chunk, whose logits it would only compute once more.
        pieces = [
            self._chunk(
                head, *(flat[start : start + chunk] for flat in flat_inputs), keeps=start + chunk >= len(hidden)
            )
            for start in range(0, len(hidden), chunk)
        ]
        logprobs = torch.zeros_like(batch.mask)
        entropy = torch.zeros_like(logprobs)
        logprobs[is_output] = torch.cat([piece[0] for piece in pieces])
        entropy[is_output] = torch.cat([piece[1] for piece in pieces])
        return logprobs, entropy

    def _hidden(self, batch: SegmentBatch) -> Float[Tensor, "batch seq hidden"]:
        """Return the hidden state that each output token is drawn from; anything where the mask is 0."""
        hidden: Tensor = decoder_of(self.causal_lm)(
            input_ids=batch.input_ids,
            attention_mask=batch.attention_mask,
            position_ids=batch.position_ids,
            use_cache=False,
        ).last_hidden_state
        steps = torch.arange(batch.targets.shape[1], device=hidden.device)
        positions = (batch.starts + batch.prompt_lengths).unsqueeze(1) - 1 + steps
        drawn_from: Tensor = hidden[batch.rows.unsqueeze(1), positions.clamp(max=hidden.shape[1] - 1)]
        return drawn_from

    def _hidden_shared(self, batch: SegmentBatch, prefix: Prefix) -> Float[Tensor, "batch seq hidden"]:
        """Return the same, with each prompt computed once. Gradients reach it through its keys and values."""
        decoder = decoder_of(self.causal_lm)
        prompt_cache = PromptCache()
        prompts = decoder(
            input_ids=prefix.input_ids,
            attention_mask=prefix.attention_mask,
            past_key_values=prompt_cache,
            use_cache=True,
        )
        outputs = decoder(
            input_ids=batch.input_ids,
            attention_mask=batch.attention_mask,
            position_ids=batch.position_ids,
            past_key_values=PrefixCache(prompt_cache, prefix.prompt_index),
            use_cache=True,
        ).last_hidden_state
        first = prompts.last_hidden_state[prefix.prompt_index, batch.prompt_lengths - 1]
        return torch.cat([first.unsqueeze(1), outputs[:, :-1]], dim=1)

    def _chunk(
        self, head: Head, hidden: Tensor, targets: Tensor, temperature: Tensor, *, keeps: bool
    ) -> tuple[Tensor, Tensor]:
        """keeps: whether to hold the logits until the backward pass instead of computing them again."""
        if keeps or not torch.is_grad_enabled():
            return _token_logprobs(head, hidden, targets, temperature)
        logprobs, entropy = checkpoint(_token_logprobs, head, hidden, targets, temperature, use_reentrant=False)
        return logprobs, entropy


def _token_logprobs(
    head: Head, hidden: Float[Tensor, "tokens hidden"], targets: Int[Tensor, " tokens"], temperature: AllTokens
) -> tuple[AllTokens, AllTokens]:
    """Return log-probabilities of `targets` and entropies, in float32, from hidden states at temperatures."""
    logits = head(hidden).float() / temperature.unsqueeze(1)
    logsumexp = torch.logsumexp(logits, dim=-1)
    logprobs = logits.gather(1, targets.unsqueeze(1)).squeeze(1) - logsumexp
    with torch.no_grad():
        entropy = logsumexp - (torch.softmax(logits, dim=-1) * logits).sum(dim=-1)
    return logprobs, entropy


@torch.no_grad()
def measure(
    policy: Callable[[SegmentBatch], tuple[Tensor, Tensor]],
    segments: Sequence[Segment],
    batches: Iterable[tuple[list[int], SegmentBatch]],
) -> list[tuple[Tensor, Tensor]]:
    """Return each segment's log-probabilities and entropies, [its length] float32 on the CPU, without gradients.

    batches: micro-batches with the indices of their segments.
    """
    measured: list[tuple[Tensor, Tensor]] = [(torch.empty(0), torch.empty(0))] * len(segments)
    for indices, batch in batches:
        logprobs, entropy = (values.cpu() for values in policy(batch))
        for row, index in enumerate(indices):
            length = len(segments[index].output_ids)
            measured[index] = logprobs[row, :length], entropy[row, :length]
    return measured


class FrozenPolicy:
    """The checkpoint in folder `model`, never trained: the reference of the KL penalty. At ZeRO 3 it is sharded as the
    policy is, else whole on every rank."""

    def __init__(self, model: Path, config: OptimizerConfig, device: torch.device) -> None:
        settings = deepspeed_config(config.model_copy(update={"offload": False}), world_size())
        self._is_sharded = is_sharded(settings)
        policy = PolicyModel(load_causal_lm(model, config.dtype, settings)).to(device).eval()
        self._policy: Callable[[SegmentBatch], tuple[Tensor, Tensor]] = policy
        if self._is_sharded:
            import deepspeed

            gather_experts_together(policy)
            del settings["optimizer"]
            self._policy, *_ = deepspeed.initialize(model=policy.requires_grad_(False), config=settings)
            gather_head_at_once(policy)
        policy.match_logits()
        self._max_tokens = config.micro_batch_tokens
        self._device = device

    def logprobs(self, segments: Sequence[Segment]) -> list[Tensor]:
        """Return log-probabilities as `TrainingEngine.logprobs` does; every rank calls it."""
        layouts = [list(chain(*rows)) for rows in micro_batches(segments, self._max_tokens)]
        if self._is_sharded:
            layouts += [[]] * (int(all_max(len(layouts))) - len(layouts))
        filler = [[Segment((0,), (0,))]]
        batches = (
            (layout, collate([[segments[index]] for index in layout] or filler, pad_id=0).to(self._device))
            for layout in layouts
        )
        return [logprobs for logprobs, _ in measure(self._policy, segments, batches)]


Head = Callable[[Float[Tensor, "tokens hidden"]], Float[Tensor, "tokens vocabulary"]]
"""The function that makes logits of hidden states."""

MAX_ERROR = {torch.float32: 1e-3, torch.bfloat16: 0.3, torch.float16: 0.05}
"""How far log-probabilities may be from the model's own on average: the same sums are added up in another order, and
random tokens have log-probabilities of -15, of which bfloat16 keeps two digits. A forgotten factor costs nats."""
MAX_LOGIT_ERROR = {torch.float32: 1e-3, torch.bfloat16: 0.02, torch.float16: 0.005}
"""How far two logits of the same hidden state may be apart, relative to the largest one."""
LENGTHS = (12, 7, 3)
"""The tokens of the sequences that are compared; side by side the shorter ones are padded."""
LARGE_LOGIT = 50.0
"""Two paths are compared at logits up to this, as trained models have them: a cap at 30 does nothing to small ones."""


class _Replacement:
    """The slots in which a model holds one of its modules, to put another one there for a while."""

    def __init__(self, root: nn.Module, module: nn.Module) -> None:
        self.module = module
        self._slots = [
            (parent, name) for parent in root.modules() for name, child in parent._modules.items() if child is module
        ]

    @contextmanager
    def by(self, other: nn.Module) -> Iterator[None]:
        """Let the model hold `other` instead while it lasts."""
        for parent, name in self._slots:
            parent._modules[name] = other
        try:
            yield
        finally:
            for parent, name in self._slots:
                parent._modules[name] = self.module


class _DecoderOutput(tuple[Tensor]):
    """The output of a decoder, with None for everything but the hidden states."""

    @property
    def last_hidden_state(self) -> Tensor:
        return self[0]

    def __getattr__(self, name: str) -> None:
        if name.startswith("__"):
            raise AttributeError(name)


class _HandOver(nn.Module):
    """Stands in for the decoder: it returns the hidden states that it was made with. Its attributes are the decoder's,
    since some models keep what they multiply logits by in there."""

    def __init__(self, decoder: nn.Module, hidden: Tensor) -> None:
        super().__init__()
        self._output = _DecoderOutput((hidden,))
        # In a tuple, it is not taken for a part of this module.
        self._stands_for = (decoder,)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.__dict__["_stands_for"][0], name)

    def forward(self, *_: Any, **__: Any) -> _DecoderOutput:
        return self._output


class _Linear(nn.Module):
    """Stands in for the output head: it multiplies by weights that are there already."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self._multiply = partial(linear, weight=weight, bias=bias)

    def forward(self, hidden: Tensor) -> Tensor:
        return self._multiply(hidden)


class PlainPath:
    """The output head alone."""

    def __init__(self, causal_lm: Any) -> None:
        self._causal_lm = causal_lm

    def head(self, apart: bool) -> Head:
        """Return the head. apart: whether to multiply by its weights instead of calling it."""
        head = self._causal_lm.get_output_embeddings()
        if not apart:
            project: Head = head
            return project
        weight, bias = head.weight, getattr(head, "bias", None)
        return lambda hidden: linear(hidden, weight, bias)


class OwnPath:
    """Computes logits from hidden states by the model's own forward pass, whose decoder is replaced for the call."""

    def __init__(self, causal_lm: Any) -> None:
        self._causal_lm = causal_lm
        self._decoder = _Replacement(causal_lm, decoder_of(causal_lm))
        self._head = _Replacement(causal_lm, causal_lm.get_output_embeddings())

    def head(self, apart: bool) -> Head:
        """Return the path. apart: whether to multiply by the head's weights instead of calling it."""
        head = self._causal_lm.get_output_embeddings()
        weight, bias = head.weight, getattr(head, "bias", None)

        def project(hidden: Tensor) -> Tensor:
            # Each hidden state is a sequence of its own, so that no mask over all of them is made.
            ids = torch.zeros((len(hidden), 1), dtype=torch.int64, device=hidden.device)
            with ExitStack() as stack:
                stack.enter_context(self._decoder.by(_HandOver(self._decoder.module, hidden.unsqueeze(1))))
                if apart:
                    stack.enter_context(self._head.by(_Linear(weight, bias)))
                logits: Tensor = self._causal_lm(input_ids=ids, use_cache=False).logits
            return logits.squeeze(1)

        return project


LogitPath = PlainPath | OwnPath
TokenLogprobs = Callable[[LogitPath, Sequence[Sequence[int]]], Sequence[Tensor]]
"""How the trainer computes, along a path, the log-probability of each token but the first of sequences of ids."""


@torch.no_grad()
def choose_path(causal_lm: Any, logprobs: TokenLogprobs) -> LogitPath:
    """Return the path whose log-probabilities are the model's own, on a few tokens.

    Raises SetupError, with the architecture's name, if none is.
    """
    name = type(causal_lm).__name__
    was_training = causal_lm.training
    causal_lm.eval()
    try:
        vocabulary = _shape(causal_lm.get_input_embeddings().weight)[0]
        generator = torch.Generator().manual_seed(0)
        sequences = [torch.randint(vocabulary, (length,), generator=generator).tolist() for length in LENGTHS]
        reference = [_own_logprobs(causal_lm, ids) for ids in sequences]
        plain, full = PlainPath(causal_lm), OwnPath(causal_lm)
        smallest = math.inf
        paths: list[LogitPath] = [plain, full] if _agree_on_large_logits(plain, full, causal_lm) else [full]
        for path in paths:
            pairs = zip(logprobs(path, sequences), reference, strict=True)
            distance = float(torch.cat([row.cpu() - reference_row for row, reference_row in pairs]).abs().mean())
            if distance <= MAX_ERROR[causal_lm.dtype]:
                return path
            smallest = min(smallest, distance)
        reason = f"log-probabilities from its hidden states are {smallest:.2g} nats from those of its own forward pass"
    except (RuntimeError, TypeError, AttributeError, KeyError, IndexError) as error:
        reason = f"its decoder and output head cannot be called apart ({str(error).strip().splitlines()[0]})"
    finally:
        causal_lm.train(was_training)
    raise SetupError(
        f"{name} cannot be trained: {reason}.", "Take a model of another architecture, or report this one."
    )


def decoder_of(causal_lm: Any) -> nn.Module:
    """Return the module that computes hidden states. Some architectures name themselves as their own decoder."""
    decoder = causal_lm.get_decoder()
    module: nn.Module = causal_lm.model if decoder is causal_lm else decoder
    return module


def _own_logprobs(causal_lm: Any, ids: Sequence[int]) -> Tensor:
    """Return the log-probability of each token but the first by the model's own forward pass, on the CPU."""
    sequence = torch.tensor([ids], device=causal_lm.device)
    logprobs: Tensor = causal_lm(input_ids=sequence, use_cache=False).logits[0, :-1].float().log_softmax(-1)
    return logprobs.gather(1, sequence[0, 1:].unsqueeze(1)).squeeze(1).cpu()


def _agree_on_large_logits(plain: PlainPath, full: OwnPath, causal_lm: Any) -> bool:
    """Return whether the output head alone gives the logits of the model's own code, for hidden states that lead to
    logits of up to `LARGE_LOGIT`."""
    head = causal_lm.get_output_embeddings()
    hidden = torch.randn(4, _shape(head.weight)[1], generator=torch.Generator().manual_seed(0)).to(head.weight)
    try:
        hidden *= LARGE_LOGIT / plain.head(False)(hidden).abs().max()
        logits, expected = plain.head(False)(hidden).float(), full.head(False)(hidden).float()
    except (RuntimeError, TypeError, AttributeError, KeyError, IndexError):
        # The code around the decoder needs more than hidden states; the comparison with the whole model decides.
        return True
    tolerance = MAX_LOGIT_ERROR[causal_lm.dtype] * LARGE_LOGIT
    return logits.shape == expected.shape and torch.allclose(logits, expected, atol=tolerance)


def gather_experts_together(model: torch.nn.Module) -> None:
    """Have ZeRO 3 gather all experts of a layer at once.

    Gathering is collective: if each expert were gathered when a rank runs it, that rank would wait for ranks that do
    not run this expert. Experts whose weights are one tensor are already one module.
    """
    from deepspeed.utils import set_z3_leaf_modules

    layers = [
        type(module)
        for module in model.modules()
        for name, child in module.named_children()
        if "experts" in name and isinstance(child, torch.nn.ModuleList)
    ]
    if layers:
        set_z3_leaf_modules(model, sorted(set(layers), key=lambda layer: layer.__name__))


def gather_head_at_once(policy: PolicyModel) -> None:
    """Have ZeRO 3 gather the output head when the policy is called, and hold it until that call is over."""
    import deepspeed

    policy.head_apart = True
    head = policy.causal_lm.get_output_embeddings()
    for parameter in head.parameters(recurse=False):
        deepspeed.zero.register_external_parameter(policy, parameter)


def _shape(weight: Tensor) -> Sequence[int]:
    """Return the shape of a weight, which is empty here where ZeRO 3 has sharded it."""
    shape: Sequence[int] = getattr(weight, "ds_shape", weight.shape)
    return shape


class PromptCache(DynamicCache):  # type: ignore[misc]
    """Keeps each layer's keys and values [Q, heads, P, head size] of its first run. No token comes before them.

    Neither this cache nor `PrefixCache` changes when a layer runs a second time, so both go through gradient
    checkpointing, which Hugging Face otherwise refuses to a cache.
    """

    def __init__(self) -> None:
        super().__init__()
        self.layers_held: dict[int, tuple[Tensor, Tensor]] = {}

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        """Keep a layer's keys and values where it has none yet, and return those given."""
        self.layers_held.setdefault(layer_idx, (key_states, value_states))
        return key_states, value_states


class PrefixCache(DynamicCache):  # type: ignore[misc]
    """Puts the keys and values of each row's prompt before the row's own; keeps none."""

    def __init__(self, prompts: PromptCache, prompt_index: Tensor) -> None:
        """prompt_index: [B], the position of each row's prompt among those that ran with `prompts`."""
        super().__init__()
        self._layers_held = prompts.layers_held
        self._prompt_index = prompt_index
        self._length = prompts.layers_held[0][0].shape[-2]

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        """Return a layer's keys and values after those of the prompts."""
        keys, values = (held[self._prompt_index] for held in self._layers_held[layer_idx])
        return torch.cat([keys, key_states], dim=-2), torch.cat([values, value_states], dim=-2)

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Return the length of the prompts, padding included."""
        return self._length

    def get_mask_sizes(self, query_length: int, layer_idx: int) -> tuple[int, int]:
        """Return how many keys a query meets, and where they begin."""
        return self._length + query_length, 0


@torch.no_grad()
def keeps_whole_cache(causal_lm: Any) -> bool:
    """Return whether all that the model keeps of a prompt are keys and values of each of its tokens.

    A sliding window and recurrent layers keep less.
    """
    decoder = decoder_of(causal_lm)
    ids = torch.ones((1, 2), dtype=torch.int64, device=causal_lm.device)
    cache = getattr(decoder(input_ids=ids, use_cache=True), "past_key_values", None)
    return all(type(layer) is DynamicLayer for layer in getattr(cache, "layers", [None]))


def checkpoint_with_cache(causal_lm: Any) -> bool:
    """Let gradient checkpointing hand these caches to the layers. Returns whether the architecture can."""
    layers = [module for module in causal_lm.modules() if isinstance(module, GradientCheckpointingLayer)]
    for layer in layers:
        layer._can_checkpoint_with_cache = True
    return bool(layers) and hasattr(GradientCheckpointingLayer, "_can_checkpoint_with_cache")
