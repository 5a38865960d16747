"""Low-rank adapters (LoRA, arXiv 2106.09685), which peft adds to a model, and their merge into the weights.

    q_proj.base_layer.weight W
    q_proj.lora_A.default.weight A       merged    q_proj.weight = W + scale B A
    q_proj.lora_B.default.weight B
    norm.weight                                    norm.weight, unchanged

vLLM and exported checkpoints always get the merged weights under their ordinary names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from torch import Tensor, nn

from truegold.train.config.models import LoraConfig
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
