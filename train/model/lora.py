"""LoRA: a few small matrices are trained in place of the weights (arXiv 2106.09685), through peft.

What leaves the trainer, to vLLM or into a checkpoint, is always the merged weights under their ordinary names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from torch import Tensor, nn

from truegold.train.config.models import LoraConfig
from truegold.verifiers import ConfigError, SetupError

ADAPTER = "default"
BASE = ".base_layer.weight"


def add_lora(causal_lm: Any, config: LoraConfig) -> None:
    """Freeze the model and give its linear layers adapters, in place; their product starts at 0.

    Raises SetupError without peft, ConfigError where no layer has a name of `config.targets`.
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
    """Yield each weight under its ordinary name with what it is made of: (weight,) or (weight, A, B), and the scale of
    BA."""
    for name, parameter in causal_lm.named_parameters():
        if ".lora_" in name:
            continue
        if name.endswith(BASE):
            layer = causal_lm.get_submodule(name.removesuffix(BASE))
            parts = (parameter, layer.lora_A[ADAPTER].weight, layer.lora_B[ADAPTER].weight)
            yield name.removesuffix(BASE) + ".weight", parts, float(layer.scaling[ADAPTER])
        else:
            yield name.replace(".base_layer.", "."), (parameter,), 0.0


def merge(parts: Sequence[Tensor], scale: float) -> Tensor:
    """Return W + scale B A, computed in float32, in W's dtype."""
    weight = parts[0].detach()
    if len(parts) == 1:
        return weight
    down, up = parts[1].detach().float(), parts[2].detach().float()
    return (weight.float() + scale * (up @ down)).to(weight.dtype)


def _linear_names(causal_lm: Any) -> list[str]:
    """Return the last parts of the names of all linear layers but the output head."""
    head = causal_lm.get_output_embeddings()
    return sorted(
        {
            name.rsplit(".", 1)[-1]
            for name, module in causal_lm.named_modules()
            if isinstance(module, nn.Linear) and module is not head
        }
    )
