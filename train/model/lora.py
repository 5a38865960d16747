"""Low-rank adapters (LoRA, arXiv 2106.09685): adds them to a model through peft, and merges them into its weights.

    q_proj.base_layer.weight W
    q_proj.lora_A.default.weight A       merged    q_proj.weight = W + scale B A
    q_proj.lora_B.default.weight B
    norm.weight                                    norm.weight, as it is

What leaves the trainer, to vLLM or into a checkpoint, is always the merged weights under their ordinary names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from torch import Tensor, nn

from truegold.train.config.models import LoraConfig
from truegold.verifiers import ConfigError, SetupError

ADAPTER = "default"
"""The name by which peft knows the adapters."""
BASE_WEIGHT = ".base_layer.weight"
"""How the names of weights end that have an adapter. (A bias has `.base_layer.bias`.)"""


def add_lora(causal_lm: Any, config: LoraConfig) -> None:
    """Freeze the model and give its linear layers adapters, in place; their product starts at 0.

    Only these small matrices are trained.

    Raises SetupError without peft, ConfigError if no layer has a name of `config.targets`.
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
    """Yield each weight's ordinary name, the tensors that it is made of, (W,) or (W, A, B), and the scale of B A.

    `merge` makes the weight of the tensors. It is apart since ZeRO 3 has to gather them first.
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
    """Return W + scale B A, computed in float32, in W's dtype; of (W,) alone W itself."""
    weight = parts[0].detach()
    if len(parts) == 1:
        return weight
    down, up = parts[1].detach().float(), parts[2].detach().float()
    return (weight.float() + scale * (up @ down)).to(weight.dtype)


def _linear_names(causal_lm: Any) -> list[str]:
    """Return the last parts of the names of all linear layers but the output head."""
    head = causal_lm.get_output_embeddings()
    linear = (name for name, layer in causal_lm.named_modules() if isinstance(layer, nn.Linear) and layer is not head)
    return sorted({name.rsplit(".", 1)[-1] for name in linear})
