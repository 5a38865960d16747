"""From hidden states to logits, as the model itself computes them.

    Llama, Qwen, Mistral     head(hidden)
    Gemma 2, 3n, 4           c tanh(head(hidden) / c), c the configuration's final_logit_softcapping
    Granite, Cohere, Falcon H1   head(hidden) times or divided by a constant of the configuration

The trainer never holds all logits of a batch, so it cannot take them from the model's own forward pass. What stands
between the decoder and the logits is different in every family, and there will be others: no list of configuration
fields is kept here. `OwnPath` runs the model's own code on a chunk of hidden states, with a decoder that hands these
over in place of computing any; `choose_path` compares with the whole model before anything is trained.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from truegold.verifiers import SetupError

Head = Callable[[Tensor], Tensor]
"""From hidden states [N, H] to logits [N, V]."""

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
    """What a decoder returns, with None for everything but the hidden states."""

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
    """The model's own code, from its decoder's hidden states on."""

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
def choose_path(
    causal_lm: Any, logprobs: Callable[[LogitPath, Sequence[Sequence[int]]], Sequence[Tensor]]
) -> LogitPath:
    """Return the path whose log-probabilities are the model's own, on a few tokens.

    Raises SetupError, with the architecture's name, where none is.
    """
    name = type(causal_lm).__name__
    was_training = causal_lm.training
    causal_lm.eval()
    try:
        return _choose(causal_lm, logprobs)
    except (RuntimeError, TypeError, AttributeError, KeyError, IndexError) as error:
        reason = f"its decoder and output head cannot be called apart ({str(error).strip().splitlines()[0]})"
    except _Differ as error:
        reason = f"log-probabilities from its hidden states are {error} from those of its own forward pass"
    finally:
        causal_lm.train(was_training)
    raise SetupError(
        f"{name} cannot be trained: {reason}.", "Take a model of another architecture, or report this one."
    )


class _Differ(Exception):
    """No path leads to the model's own log-probabilities; it says by how much."""


def _choose(causal_lm: Any, logprobs: TokenLogprobs) -> LogitPath:
    vocabulary = causal_lm.get_input_embeddings().weight.shape[0]
    generator = torch.Generator().manual_seed(0)
    sequences = [torch.randint(vocabulary, (length,), generator=generator).tolist() for length in LENGTHS]
    reference = [_own_logprobs(causal_lm, ids) for ids in sequences]
    plain, full = PlainPath(causal_lm), OwnPath(causal_lm)
    smallest = math.inf
    paths: list[LogitPath] = [plain, full] if _agree_on_large_logits(plain, full, causal_lm) else [full]
    for path in paths:
        measured = logprobs(path, sequences)
        pairs = zip(measured, reference, strict=True)
        error = float(torch.cat([row.cpu() - reference_row for row, reference_row in pairs]).abs().mean())
        if error <= MAX_ERROR[causal_lm.dtype]:
            return path
        smallest = min(smallest, error)
    raise _Differ(f"{smallest:.2g} nats")


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
    hidden = torch.randn(4, head.weight.shape[1], generator=torch.Generator().manual_seed(0)).to(head.weight)
    try:
        hidden *= LARGE_LOGIT / plain.head(False)(hidden).abs().max()
        logits, expected = plain.head(False)(hidden).float(), full.head(False)(hidden).float()
    except (RuntimeError, TypeError, AttributeError, KeyError, IndexError):
        # The code around the decoder needs more than hidden states; the comparison with the whole model decides.
        return True
    tolerance = MAX_LOGIT_ERROR[causal_lm.dtype] * LARGE_LOGIT
    return logits.shape == expected.shape and torch.allclose(logits, expected, atol=tolerance)
