"""Tiny random models of every architecture that transformers has a configuration for."""

from __future__ import annotations

from typing import Any

import torch

SIZES: dict[str, int] = {
    **dict.fromkeys(("hidden_size", "n_embd", "d_model", "dim", "word_embed_proj_dim", "embed_dim"), 64),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_decoder_layers"), 2),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads"), 4),
    **dict.fromkeys(("num_key_value_heads", "num_kv_heads", "kv_n_heads", "multi_query_group_num"), 2),
    **dict.fromkeys(
        ("intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size", "d_ff", "expert_ffn_hidden_size"), 96
    ),
    **dict.fromkeys(("moe_intermediate_size", "shared_expert_intermediate_size", "expert_hidden_size"), 32),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"), 4),
    **dict.fromkeys(("num_experts_per_tok", "moe_k", "moe_topk", "moe_top_k"), 2),
    **dict.fromkeys(("head_dim", "v_head_dim", "global_head_dim", "kv_channels", "attention_head_dim"), 16),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "max_seq_len"), 128),
    "vocab_size": 211,
    "vocab_size_per_layer_input": 211,
    "hidden_size_per_layer_input": 16,
    "q_lora_rank": 24,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 16,
    "qk_head_dim": 32,
    "n_group": 1,
    "topk_group": 1,
    "rotary_dim": 16,
    "n_ctx": 128,
}
"""What a configuration is shrunk to, under all the names that families have for it."""


TRANSFORMATIONS = {
    "final_logit_softcapping": 0.2,
    "logits_scaling": 8.0,
    "logit_scale": 0.2,
    "lm_head_multiplier": 0.3,
    "logits_mup_width_multiplier": 4.0,
}
"""What families do to logits after the head, as strong as to be felt by random models; many do nothing by default."""

FAMILIES: dict[str, dict[str, Any]] = {
    "bloom": {"n_head": 4},
    "falcon": {"head_dim": None},
    "gemma3n_text": {"num_hidden_layers": 10, "num_kv_shared_layers": 5},
    **{
        kind: {"head_dim": 16, "global_head_dim": 16, "num_kv_shared_layers": 0}
        for kind in ("gemma4", "gemma4_text", "gemma4_unified", "gemma4_unified_text")
    },
    "deepseek_v2": {"num_experts_per_tok": 2},
    "hunyuan_v1_dense": {"head_dim": 16},
    "hunyuan_v1_moe": {"head_dim": 16},
    "minicpm3": {"logits_scaling": None, "dim_model_base": 16},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"]},
    "mamba2": {"num_heads": 8, "head_dim": 16, "n_groups": 1},
    "nemotron": {"num_key_value_heads": 2},
    "zamba2": {"layers_block_type": ["linear_attention", "hybrid"], "attention_head_dim": 32},
}
"""What single families need beside the sizes; None leaves a size at its default."""

CANNOT_BE_BUILT = {
    "dbrx": "transformers 5.19 reads a rope_theta that its own configuration does not have",
    "gemma3n": "its vision tower needs timm",
}
"""Types of which this environment cannot make a model."""


def served_types() -> list[str]:
    """Return the types of configuration whose causal language model vLLM serves with code of its own."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    from vllm.model_executor.models.registry import ModelRegistry

    served = set(ModelRegistry.get_supported_archs())
    architectures = {
        kind: names if isinstance(names, str) else names[0] for kind, names in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.items()
    }
    return sorted(kind for kind, name in architectures.items() if name in served)


def tiny_config(model_type: str, **settings: Any) -> Any:
    """Return a configuration of that type with tiny sizes."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    kind = CONFIG_MAPPING[model_type]
    default = kind()
    text = default.get_text_config()
    kinds = {model_type, text.model_type}
    family = {name: value for kind in kinds for name, value in FAMILIES.get(kind, {}).items()}
    shrunk = {name: size for name, size in SIZES.items() if name not in family and _is_size(text, name)}
    if "kv_lora_rank" in shrunk:
        # Latent attention has keys for every head.
        shrunk["num_key_value_heads"] = shrunk["num_attention_heads"]
    ids = {name: 1 for name in ("pad_token_id", "bos_token_id", "eos_token_id") if hasattr(text, name)}
    after_head = {name: value for name, value in TRANSFORMATIONS.items() if hasattr(text, name) and name not in family}
    values = {**shrunk, **ids, **after_head, **{name: v for name, v in family.items() if v is not None}, **settings}
    if text is default:
        return kind(**values)
    return kind(text_config=type(text)(**values).to_dict())


def _is_size(config: Any, name: str) -> bool:
    try:
        value = getattr(config, name, None)
    except AttributeError:
        return False
    return isinstance(value, int) and not isinstance(value, bool)


def tiny_causal_lm(model_type: str, **settings: Any) -> Any:
    """Return a random float32 model of that type, in eval mode."""
    from transformers import AutoModelForCausalLM

    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(tiny_config(model_type, **settings), dtype=torch.float32).eval()
