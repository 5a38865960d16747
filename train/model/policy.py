"""The policy in training: a causal language model whose forward pass returns log-probabilities of output tokens.

    log-probabilities, entropies = PolicyModel(load_causal_lm(folder, "bfloat16"))(batch)      both [B, T]

The full logits [B, L, V] are never in memory. Only hidden states of output positions go through the output head, one
chunk of tokens at a time. Each chunk's logits are recomputed in the backward pass. Model families compute logits from
hidden states in different ways:

    Llama, Qwen, Mistral         head(hidden)
    Gemma 2, 3n, 4               c tanh(head(hidden) / c), c the configuration's final_logit_softcapping
    Granite, Cohere, Falcon H1   head(hidden) times or divided by a constant of the configuration

A path is a way from hidden states to logits. `PlainPath` is the head alone. `OwnPath` works for all families: it runs
the model's own forward pass with a decoder that returns a given chunk of hidden states. Before training begins,
`choose_path` compares the resulting log-probabilities with the whole model's.

Low-rank adapters (LoRA, arXiv 2106.09685), which peft adds to a model, are merged into the weights:

    q_proj.base_layer.weight W
    q_proj.lora_A.default.weight A       merged    q_proj.weight = W + scale B A
    q_proj.lora_B.default.weight B
    norm.weight                                    norm.weight, unchanged

vLLM and exported checkpoints always get the merged weights under their ordinary names.
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
from truegold.train.config.models import LoraConfig, OptimizerConfig
from truegold.train.model.distributed import all_max, deepspeed_config, world_size
from truegold.train.model.segment import Prefix, Segment, SegmentBatch, collate, micro_batches
from truegold.train.objective import AllTokens, PerToken
from truegold.verifiers import ConfigError, SetupError

ADAPTER = "default"
"""The name of the adapters in peft."""
BASE_WEIGHT = ".base_layer.weight"
"""The end of the name of a weight with an adapter. (The name of its bias ends in `.base_layer.bias`.)"""


def add_lora(causal_lm: Any, config: LoraConfig) -> None:
    """Freeze the model and add trainable adapters to its linear layers, in place. Their product B A starts at 0.

    Raises SetupError if peft is not installed, ConfigError if no layer has a name in `config.targets`.
    """
    try:
        import peft
    except ImportError as error:
        raise SetupError(f"LoRA needs peft, which cannot be imported ({error}).", "pip install peft") from error
    settings = peft.LoraConfig(
        r=config.rank,
        lora_alpha=config.alpha,
        lora_dropout=config.dropout,
        target_modules=list(config.targets) or _linear_names(causal_lm),
        task_type="CAUSAL_LM",
    )
    try:
        peft.inject_adapter_in_model(settings, causal_lm, adapter_name=ADAPTER)
    except ValueError as error:
        raise ConfigError(f"optimizer.lora: {str(error).splitlines()[0]}") from error


def merged_parameters(causal_lm: Any) -> Iterator[tuple[str, Sequence[Tensor], float]]:
    """Yield the ordinary name of each weight, its tensors (W,) or (W, A, B), and the scale of B A.

    Shapes: W [out, in], A [rank, in], B [out, rank]. `merge` computes the weight from the tensors. The two functions
    are separate because ZeRO 3 has to gather the tensors in between.
    """
    for name, parameter in causal_lm.named_parameters():
        if ".lora_" in name:
            continue
        if name.endswith(BASE_WEIGHT):
            layer = causal_lm.get_submodule(name.removesuffix(BASE_WEIGHT))
            parts = (parameter, layer.lora_A[ADAPTER].weight, layer.lora_B[ADAPTER].weight)
            yield name.removesuffix(BASE_WEIGHT) + ".weight", parts, float(layer.scaling[ADAPTER])
        else:
            yield name.replace(".base_layer.", "."), (parameter,), 0.0


def merge(parts: Sequence[Tensor], scale: float) -> Tensor:
    """Return W + scale B A, computed in float32, in the dtype of W, without gradient. For (W,) alone, return W."""
    weight = parts[0].detach()
    if len(parts) == 1:
        return weight
    down, up = parts[1].detach().float(), parts[2].detach().float()
    return (weight.float() + scale * (up @ down)).to(weight.dtype)


def _linear_names(causal_lm: Any) -> list[str]:
    """Return the last parts of the names of all linear layers except the output head: `q_proj`, `down_proj`."""
    head = causal_lm.get_output_embeddings()
    linear = (name for name, layer in causal_lm.named_modules() if isinstance(layer, nn.Linear) and layer is not head)
    return sorted({name.rsplit(".", 1)[-1] for name in linear})


LOGIT_CHUNK = {"cuda": 8192 * 8192, "cpu": 2048 * 2048}
"""The number of logits (tokens x vocabulary) in a chunk, by device. In float32, a chunk is 256 MiB on a GPU and 16 MiB
on a CPU, and about five copies exist at a time. A GPU needs many tokens per chunk for full use, a CPU few."""


def load_causal_lm(model: Path, dtype: str, settings: Mapping[str, Any] | None = None) -> Any:
    """Return the model of the checkpoint in folder `model`, in `dtype`. Raises SetupError if it cannot be loaded.

    settings: DeepSpeed's configuration. If it shards weights over ranks (`is_sharded`), all ranks call this together,
    and each rank keeps only its share of each layer.
    """
    from transformers import AutoModelForCausalLM
    from transformers.integrations.deepspeed import HfDeepSpeedConfig

    # transformers shards weights while this object exists.
    sharding = HfDeepSpeedConfig(dict(settings)) if settings is not None and is_sharded(settings) else None
    try:
        return AutoModelForCausalLM.from_pretrained(str(model), dtype=getattr(torch, dtype))
    except (OSError, ValueError) as error:
        reason = str(error).strip().split("\n", 1)[0]
        raise SetupError(f"{model} cannot be loaded as a causal language model: {reason}") from error
    finally:
        del sharding


def is_sharded(settings: Mapping[str, Any]) -> bool:
    """Return whether several ranks share the weights while they are loaded, as at ZeRO 3."""
    return bool(settings["zero_optimization"]["stage"] == 3 and world_size() > 1)


def pad_id(encoder: ChatEncoder) -> int:
    """Return a token id for padding. Any valid id works, because masks are computed from lengths."""
    padding = encoder.tokenizer.pad_token_id
    return int(encoder.stop_token_ids[0] if padding is None else padding)


class PolicyModel(nn.Module):
    """A Hugging Face causal language model whose forward pass returns log-probabilities and entropies."""

    head_apart = False
    """Whether to multiply by the output head's weights instead of calling the head. ZeRO 3 needs this. There, each call
    of a module is a collective operation, but ranks have different numbers of chunks."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.causal_lm = model
        self._path: LogitPath = PlainPath(model)

    def match_logits(self) -> None:
        """Choose a computation of logits from hidden states that gives the model's own logits (`choose_path`).

        Raises SetupError if there is none for the architecture. If weights are sharded, all ranks call this together.
        """

        def logprobs(path: LogitPath, sequences: Sequence[Sequence[int]]) -> list[Tensor]:
            self._path = path
            segments = [Segment((ids[0],), tuple(ids[1:])) for ids in sequences]
            values, _ = self(collate([[segment] for segment in segments], pad_id=0).to(self.causal_lm.device))
            return [row[: len(segment.output_ids)] for row, segment in zip(values, segments, strict=True)]

        self._path = choose_path(self.causal_lm, logprobs)

    def head(self, apart: bool = False) -> Head:
        """Return a function from hidden states [tokens, hidden] to logits [tokens, vocabulary], before temperature.

        apart: whether to multiply by the output head's weights instead of calling the head.
        """
        return self._path.head(apart or self.head_apart)

    def forward(self, batch: SegmentBatch) -> tuple[PerToken, PerToken]:
        """Return the log-probability of each output token given all tokens before it, and the entropy there.

        Both are [B, T], float32, in nats, 0 where the mask is 0, at each segment's temperature. Entropy has no
        gradient.
        """
        is_output = batch.mask.bool()
        hidden = self._hidden(batch) if batch.prefix is None else self._hidden_shared(batch, batch.prefix)
        # Frees the states of other positions before logits need memory.
        hidden = hidden[is_output]
        temperature = batch.temperature.unsqueeze(1).expand_as(batch.mask)
        flat_inputs = (hidden, batch.targets[is_output], temperature[is_output])
        head = self.head()
        chunk = max(1, LOGIT_CHUNK[hidden.device.type] // self.causal_lm.get_output_embeddings().weight.shape[0])
        # The logits of the last chunk are kept. The backward pass begins with them, and would recompute them at once.
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
        """Return the hidden state before each output token, [B, T, hidden]; undefined where the mask is 0."""
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
        """Return the same as `_hidden`, with each prompt computed once for all its outputs.

        Gradients reach the prompt through its keys and values.
        """
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
        """Return log-probabilities and entropies of a chunk of tokens, each [tokens].

        keeps: whether to keep the logits for the backward pass instead of recomputing them.
        """
        if keeps or not torch.is_grad_enabled():
            return _token_logprobs(head, hidden, targets, temperature)
        logprobs, entropy = checkpoint(_token_logprobs, head, hidden, targets, temperature, use_reentrant=False)
        return logprobs, entropy


def _token_logprobs(
    head: Head, hidden: Float[Tensor, "tokens hidden"], targets: Int[Tensor, " tokens"], temperature: AllTokens
) -> tuple[AllTokens, AllTokens]:
    """Return the log-probabilities of `targets` and the entropies, both [tokens], float32, in nats."""
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
    """Return each segment's log-probabilities and entropies: [T] for T output tokens, float32 on the CPU, without
    gradient.

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
    """The checkpoint in folder `model` without training. It is the reference of the KL penalty.

    At ZeRO 3 the weights are sharded like those of the policy. Otherwise every rank has all weights.
    """

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
        """Return the log-probabilities of each segment's output tokens, [T], like `TrainingEngine.logprobs`.

        All ranks call this together.
        """
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
"""A function from hidden states to logits."""

MAX_ERROR = {torch.float32: 1e-3, torch.bfloat16: 0.3, torch.float16: 0.05}
"""The largest mean difference, in nats, from the model's own log-probabilities, by dtype. Sums in another order differ
by rounding: log-probabilities of random tokens are about -15, and bfloat16 has two digits. If a factor of logits is
missing, the difference is several nats."""
MAX_LOGIT_ERROR = {torch.float32: 1e-3, torch.bfloat16: 0.02, torch.float16: 0.005}
"""The largest difference between two logits of the same hidden state, as a share of the largest logit, by dtype."""
LENGTHS = (12, 7, 3)
"""The lengths, in tokens, of the compared sequences. They differ so that padding is tested too."""
LARGE_LOGIT = 50.0
"""The largest logit in the comparison of two paths. It is as large as in trained models. A cap at 30, for example, does
not change smaller logits."""


class _Replacement:
    """The attributes of a model that hold one of its modules, to replace the module temporarily."""

    def __init__(self, root: nn.Module, module: nn.Module) -> None:
        self.module = module
        self._slots = [
            (parent, name) for parent in root.modules() for name, child in parent._modules.items() if child is module
        ]

    @contextmanager
    def by(self, other: nn.Module) -> Iterator[None]:
        """Replace the module by `other` within the context."""
        for parent, name in self._slots:
            parent._modules[name] = other
        try:
            yield
        finally:
            for parent, name in self._slots:
                parent._modules[name] = self.module


class _DecoderOutput(tuple[Tensor]):
    """The output of a decoder. All its attributes except the hidden states are None."""

    @property
    def last_hidden_state(self) -> Tensor:
        return self[0]

    def __getattr__(self, name: str) -> None:
        if name.startswith("__"):
            raise AttributeError(name)


class _HandOver(nn.Module):
    """A replacement of the decoder that returns given hidden states.

    It has the attributes of the decoder, because some models read a factor of logits from there.
    """

    def __init__(self, decoder: nn.Module, hidden: Tensor) -> None:
        super().__init__()
        self._output = _DecoderOutput((hidden,))
        # In a tuple, so that torch does not register it as a submodule.
        self._stands_for = (decoder,)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.__dict__["_stands_for"][0], name)

    def forward(self, *_: Any, **__: Any) -> _DecoderOutput:
        return self._output


class _Linear(nn.Module):
    """A replacement of the output head. It multiplies by given weights."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self._multiply = partial(linear, weight=weight, bias=bias)

    def forward(self, hidden: Tensor) -> Tensor:
        return self._multiply(hidden)


class PlainPath:
    """Computes logits from hidden states by the output head alone."""

    def __init__(self, causal_lm: Any) -> None:
        self._causal_lm = causal_lm

    def head(self, apart: bool) -> Head:
        """Return the output head. apart: whether to multiply by its weights instead of calling it."""
        head = self._causal_lm.get_output_embeddings()
        if not apart:
            project: Head = head
            return project
        weight, bias = head.weight, getattr(head, "bias", None)
        return lambda hidden: linear(hidden, weight, bias)


class OwnPath:
    """Computes logits from hidden states by the model's forward pass, with a decoder that returns the hidden states."""

    def __init__(self, causal_lm: Any) -> None:
        self._causal_lm = causal_lm
        self._decoder = _Replacement(causal_lm, decoder_of(causal_lm))
        self._head = _Replacement(causal_lm, causal_lm.get_output_embeddings())

    def head(self, apart: bool) -> Head:
        """Return the function from hidden states to logits. apart: whether to multiply by the output head's weights
        instead of calling the head."""
        head = self._causal_lm.get_output_embeddings()
        weight, bias = head.weight, getattr(head, "bias", None)

        def project(hidden: Tensor) -> Tensor:
            # Each hidden state is passed as a sequence of length 1, so that the attention mask stays small.
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
"""A function from a path and sequences of token ids to the log-probabilities of all tokens but the first, by the
trainer's computation."""


@torch.no_grad()
def choose_path(causal_lm: Any, logprobs: TokenLogprobs) -> LogitPath:
    """Return a path that gives the model's own log-probabilities on a few tokens, preferably the plain head.

    Raises SetupError with the architecture's name if there is none.
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
        reason = f"log-probabilities from its hidden states differ by {smallest:.2g} nats from its own forward pass"
    except (RuntimeError, TypeError, AttributeError, KeyError, IndexError) as error:
        reason = f"its decoder and output head cannot be called separately ({str(error).strip().splitlines()[0]})"
    finally:
        causal_lm.train(was_training)
    raise SetupError(f"{name} cannot be trained: {reason}.", "Use a model of another architecture, or report this one.")


def decoder_of(causal_lm: Any) -> nn.Module:
    """Return the module that computes hidden states. In some architectures `get_decoder` returns the whole model."""
    decoder = causal_lm.get_decoder()
    module: nn.Module = causal_lm.model if decoder is causal_lm else decoder
    return module


def _own_logprobs(causal_lm: Any, ids: Sequence[int]) -> Tensor:
    """Return the log-probabilities of all tokens but the first by the model's own forward pass, [T - 1] on the CPU."""
    sequence = torch.tensor([ids], device=causal_lm.device)
    logprobs: Tensor = causal_lm(input_ids=sequence, use_cache=False).logits[0, :-1].float().log_softmax(-1)
    return logprobs.gather(1, sequence[0, 1:].unsqueeze(1)).squeeze(1).cpu()


def _agree_on_large_logits(plain: PlainPath, full: OwnPath, causal_lm: Any) -> bool:
    """Return whether the output head alone gives the model's own logits, for logits up to `LARGE_LOGIT`."""
    head = causal_lm.get_output_embeddings()
    hidden = torch.randn(4, _shape(head.weight)[1], generator=torch.Generator().manual_seed(0)).to(head.weight)
    try:
        hidden *= LARGE_LOGIT / plain.head(False)(hidden).abs().max()
        logits, expected = plain.head(False)(hidden).float(), full.head(False)(hidden).float()
    except (RuntimeError, TypeError, AttributeError, KeyError, IndexError):
        # The code around the decoder needs more than hidden states. The comparison with the whole model decides.
        return True
    tolerance = MAX_LOGIT_ERROR[causal_lm.dtype] * LARGE_LOGIT
    return logits.shape == expected.shape and torch.allclose(logits, expected, atol=tolerance)


def gather_experts_together(model: torch.nn.Module) -> None:
    """Make ZeRO 3 gather all experts of a layer at once.

    Gathering is a collective operation. By default, ZeRO 3 gathers an expert when it runs. A rank that runs an expert
    then waits forever for ranks that do not run the same expert. Experts whose weights are in one tensor are already
    one module.
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
    """Make ZeRO 3 gather the output head when the policy is called, and keep it until the call returns."""
    import deepspeed

    policy.head_apart = True
    head = policy.causal_lm.get_output_embeddings()
    for parameter in head.parameters(recurse=False):
        deepspeed.zero.register_external_parameter(policy, parameter)


def _shape(weight: Tensor) -> Sequence[int]:
    """Return the full shape of a weight. Under ZeRO 3, the weight itself may be empty on this rank."""
    shape: Sequence[int] = getattr(weight, "ds_shape", weight.shape)
    return shape


class PromptCache(DynamicCache):  # type: ignore[misc]
    """The keys and values of Q prompts, each [Q, heads, P, head size] for a layer, P the longest prompt.

    If a layer runs a second time, this cache and `PrefixCache` do not change. So both work with gradient checkpointing.
    Transformers disables other caches there.
    """

    def __init__(self) -> None:
        super().__init__()
        self.layers_held: dict[int, tuple[Tensor, Tensor]] = {}

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        """Return the given keys and values of a layer, and keep them if the layer runs for the first time."""
        self.layers_held.setdefault(layer_idx, (key_states, value_states))
        return key_states, value_states


class PrefixCache(DynamicCache):  # type: ignore[misc]
    """A cache that puts the keys and values of a row's prompt before the row's own keys and values. It stores only the
    prompt's."""

    def __init__(self, prompts: PromptCache, prompt_index: Tensor) -> None:
        """prompt_index: int [B], the position of each row's prompt in `prompts`."""
        super().__init__()
        self._layers_held = prompts.layers_held
        self._prompt_index = prompt_index
        self._length = prompts.layers_held[0][0].shape[-2]

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        """Return a layer's keys and values, after the keys and values of the prompts."""
        keys, values = (held[self._prompt_index] for held in self._layers_held[layer_idx])
        return torch.cat([keys, key_states], dim=-2), torch.cat([values, value_states], dim=-2)

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Return the length of the prompts, padding included."""
        return self._length

    def get_mask_sizes(self, query_length: int, layer_idx: int) -> tuple[int, int]:
        """Return the number of keys for a query of this length, and their offset, which is 0."""
        return self._length + query_length, 0


@torch.no_grad()
def keeps_whole_cache(causal_lm: Any) -> bool:
    """Return whether the model's cache has the keys and values of all tokens of a prompt, and nothing else.

    Returns False for sliding windows and recurrent layers.
    """
    decoder = decoder_of(causal_lm)
    ids = torch.ones((1, 2), dtype=torch.int64, device=causal_lm.device)
    cache = getattr(decoder(input_ids=ids, use_cache=True), "past_key_values", None)
    return all(type(layer) is DynamicLayer for layer in getattr(cache, "layers", [None]))


def checkpoint_with_cache(causal_lm: Any) -> bool:
    """Make gradient checkpointing pass caches to the layers. Returns whether the architecture supports this."""
    layers = [module for module in causal_lm.modules() if isinstance(module, GradientCheckpointingLayer)]
    for layer in layers:
        layer._can_checkpoint_with_cache = True
    return bool(layers) and hasattr(GradientCheckpointingLayer, "_can_checkpoint_with_cache")
