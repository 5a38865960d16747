"""Times the update of one size of Qwen2.5 with random weights, alone on the GPU: whole, and its output head by itself.

`update` has several micro-batches in one optimizer step, with cuDNN's attention and without; `head` the logits of
output tokens forward and backward by chunk size, with and without the entropy; `attention` which of torch's kernels is
taken; `kernel` each kernel by itself, the first time that a shape comes and the third time.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from truegold.train.model import policy as policy_module
from truegold.train.model.engine import TrainingEngine
from truegold.train.model.policy import _token_logprobs

from .figures import QWEN, Figures, allocated, device, give_back, machine, peak, reset_peak, synchronize
from .memory import Phases, close, make_engine, make_segments, set_checkpointing, step_loss

MILLION = 1 << 20
CHUNKS = (1 * MILLION, 4 * MILLION, 16 * MILLION, 64 * MILLION, 256 * MILLION)
"""Logits at a time."""
KERNELS = {-1: "error", 0: "math", 1: "flash", 2: "mem-efficient", 3: "cudnn", 4: "overrideable"}
"""What `torch._fused_sdp_choice` returns."""


def run(figures: Figures, size: str) -> None:
    """Write all figures of one size."""
    figures.write("machine", **machine())
    with figures.attempt("kernel", size=size):
        _time_kernels(figures, size)
    with figures.attempt("head", size=size):
        _time_head(figures, size)
    give_back()
    with figures.attempt("engine", size=size):
        engine = make_engine(size, zero_stage=1)
        _time_updates(figures, size, engine)
        close(engine)


def _time_updates(figures: Figures, size: str, engine: TrainingEngine) -> None:
    is_tiny = size == "tiny"
    prompt, output = (16, 32) if is_tiny else (256, 768)
    rows = 8 if is_tiny else 32
    layouts = (
        *((layout, False, 8192) for layout in ("even", "uneven", "shared", "shared uneven")),
        ("even", True, 16_384),
    )
    for cudnn in (True, False):
        torch.backends.cuda.enable_cudnn_sdp(cudnn)
        for layout, checkpointing, micro in layouts:
            setting: dict[str, Any] = {"cudnn": cudnn, "checkpointing": checkpointing, "layout": layout, "micro": micro}
            with figures.attempt("update", size=size, **setting):
                set_checkpointing(engine, checkpointing)
                engine._config = engine._config.model_copy(
                    update={"micro_batch_tokens": micro, "gradient_checkpointing": checkpointing}
                )
                engine.shared = False
                if layout.startswith("shared"):
                    setting["shares"] = engine.share_prompts()
                segments = make_segments(size, rows, prompt, output, group=8, uneven=layout.endswith("uneven"))
                setting["output_tokens"] = sum(len(segment.output_ids) for segment in segments)
                with _Attention() as attention:
                    # The first one loads kernels.
                    engine.update(segments[:8], step_loss(segments[:8]), 0, 1)
                measured = Phases(engine).measure(segments)
                figures.write("update", size=size, **setting, attention=attention.seen, **measured)
                if layout.endswith("uneven"):
                    # All shapes have come once.
                    figures.write("update", size=size, **setting, again=True, **Phases(engine).measure(segments))
            give_back()
    engine.shared = False
    long_prompts = make_segments(size, 16, 4 * prompt, output // 3, group=8)
    for shared in (False, True):
        with figures.attempt("long_prompts", size=size, shared=shared):
            engine.shared = shared and engine.share_prompts()
            engine.update(long_prompts, step_loss(long_prompts), 0, 1)
            figures.write("long_prompts", size=size, shared=engine.shared, **Phases(engine).measure(long_prompts))
    engine.shared = False
    with figures.attempt("attention", size=size):
        engine.packed = True
        segments = make_segments(size, 8, prompt // 2, output // 4, uneven=True)
        with _Attention() as attention:
            engine.measure(segments)
        figures.write("attention", size=size, layout="packed", attention=attention.seen)
        engine.packed = False
    chunks = policy_module.LOGIT_CHUNK
    for chunk in (16 * MILLION, 64 * MILLION, 256 * MILLION):
        with figures.attempt("update_by_chunk", size=size, chunk=chunk):
            policy_module.LOGIT_CHUNK = dict.fromkeys(("cuda", "cpu"), chunk)
            segments = make_segments(size, rows, prompt, output, group=8)
            figures.write("update_by_chunk", size=size, chunk=chunk, **Phases(engine).measure(segments))
    policy_module.LOGIT_CHUNK = chunks
    torch.backends.cuda.enable_cudnn_sdp(False)


class _Attention:
    """Notes which kernel torch's attention chooses for each call while it is entered."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def __enter__(self) -> _Attention:
        self._original = functional.scaled_dot_product_attention

        def noting(query: Tensor, key: Tensor, value: Tensor, *arguments: Any, **options: Any) -> Tensor:
            mask = options.get("attn_mask", arguments[0] if arguments else None)
            is_causal = bool(options.get("is_causal", False))
            choice = torch._fused_sdp_choice(
                query, key, value, mask, 0.0, is_causal, enable_gqa=bool(options.get("enable_gqa", False))
            )
            shape = "no mask" if mask is None else f"mask {tuple(mask.shape)} {mask.dtype}"
            kind = f"{KERNELS.get(int(choice), choice)}, {shape}, causal {is_causal}, keys {tuple(key.shape)}"
            self.seen[kind] += 1
            return self._original(query, key, value, *arguments, **options)

        functional.scaled_dot_product_attention = noting
        return self

    def __exit__(self, *_: object) -> None:
        functional.scaled_dot_product_attention = self._original


def _time_kernels(figures: Figures, size: str) -> None:
    """Time torch's attention kernels forward and backward on rows of a few lengths, none of which comes twice."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    shape = QWEN[size]
    heads, kv = int(shape["heads"]), int(shape["kv"])
    width = int(shape["hidden"]) // heads
    base = 64 if size == "tiny" else 1000
    backends = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}
    backends |= {"mem-efficient": SDPBackend.EFFICIENT_ATTENTION}
    for backend_index, (name, backend) in enumerate(backends.items()):
        for masked in (False, True):
            if name == "flash" and masked:
                continue
            with figures.attempt("kernel", size=size, kernel=name, masked=masked), sdpa_kernel([backend]):
                first, second = [], []
                for extra in range(4):
                    length = base + 31 * backend_index + 17 * masked + 4 * extra
                    times = [_time_attention(8, heads, kv, width, length, masked, name) for _ in range(3)]
                    # The very first call loads the library.
                    first.append(times[0])
                    second.append(times[2])
                figures.write("kernel", size=size, kernel=name, masked=masked, first_s=first, third_s=second)


def _time_attention(batch: int, heads: int, kv: int, width: int, length: int, masked: bool, kernel: str) -> float:
    """Return the seconds of one call forward and backward. With a mask, or for a kernel that cannot share them, keys
    are repeated for each head, as transformers does it."""
    shared = kv if not masked and kernel != "mem-efficient" else heads
    shapes = ((heads, length), (shared, length), (shared, length))
    query, key, value = (
        torch.randn(batch, count, size, width, device=device(), dtype=torch.bfloat16, requires_grad=True)
        for count, size in shapes
    )
    mask = None
    if masked:
        mask = torch.ones(length, length, dtype=torch.bool, device=device()).tril()[None, None].repeat(batch, 1, 1, 1)
        mask[0, :, :, length // 2 :] = False
        mask[:, :, :, 0] = True
    synchronize()
    started = time.perf_counter()
    functional.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, is_causal=not masked, enable_gqa=shared != heads
    ).sum().backward()
    synchronize()
    return round(time.perf_counter() - started, 5)


def _without_entropy(
    head: Callable[[Tensor], Tensor], hidden: Tensor, targets: Tensor, temperature: Tensor
) -> tuple[Tensor, Tensor]:
    logits = head(hidden).float() / temperature.unsqueeze(1)
    logsumexp = torch.logsumexp(logits, dim=-1)
    return logits.gather(1, targets.unsqueeze(1)).squeeze(1) - logsumexp, logsumexp


def _time_head(figures: Figures, size: str) -> None:
    """Time the way from hidden states to log-probabilities and back, as `PolicyModel` takes it, by chunk size."""
    shape = QWEN[size]
    vocabulary, width = int(shape["vocabulary"]), int(shape["hidden"])
    tokens = 64 if size == "tiny" else 6144
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(tokens, width, generator=generator).to(device(), torch.bfloat16)
    targets = torch.randint(vocabulary, (tokens,), generator=generator).to(device())
    temperature = torch.ones(tokens, device=device())
    head = nn.Linear(width, vocabulary, bias=False, device=device(), dtype=torch.bfloat16)
    with torch.no_grad():
        head.weight.normal_(0.0, 0.02)
    exact = _head_gradient(head, hidden, targets, temperature)
    for chunk in CHUNKS:
        for name, function in (("with", _token_logprobs), ("without", _without_entropy)):
            with figures.attempt("head", size=size, chunk=chunk, entropy=name):
                step = max(1, chunk // vocabulary)
                # Very small chunks are timed on fewer tokens.
                count = min(tokens, step * 64)
                seconds = []
                for _ in range(2):
                    head.weight.grad = None
                    states = hidden[:count].clone().requires_grad_()
                    give_back()
                    reset_peak()
                    synchronize()
                    held, started = allocated(), time.perf_counter()
                    pieces = [
                        checkpoint(
                            function,
                            head,
                            states[start : start + step],
                            targets[start : start + step],
                            temperature[start : start + step],
                            use_reentrant=False,
                        )[0]
                        for start in range(0, count, step)
                    ]
                    logprobs = torch.cat(pieces)
                    synchronize()
                    middle = time.perf_counter()
                    logprobs.sum().backward()
                    synchronize()
                    seconds.append((middle - started, time.perf_counter() - middle))
                forward, backward = seconds[1]
                error = None
                if count == tokens and head.weight.grad is not None:
                    difference = head.weight.grad.float() - exact
                    error = float(difference.norm() / exact.norm())
                    del difference
                figures.write(
                    "head",
                    size=size,
                    chunk=chunk,
                    tokens_at_a_time=step,
                    entropy=name,
                    tokens=count,
                    microseconds_a_token_forward=round(forward / count * 1e6, 3),
                    microseconds_a_token_backward=round(backward / count * 1e6, 3),
                    peak=peak() - held,
                    gradient_error=error,
                )


def _head_gradient(head: nn.Linear, hidden: Tensor, targets: Tensor, temperature: Tensor) -> Tensor:
    """Return the gradient of the same sum at the head's weights, in float32."""
    weight = head.weight.detach().float().requires_grad_()
    for start in range(0, len(hidden), 1024):
        part = slice(start, start + 1024)
        logits = functional.linear(hidden[part].float(), weight)
        (logits.gather(1, targets[part].unsqueeze(1)).squeeze(1) - torch.logsumexp(logits, -1)).sum().backward()
    assert weight.grad is not None
    return weight.grad
