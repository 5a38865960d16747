"""Puts questions to a model and returns its replies as text.

ask_model(["Is 7 prime? ..."], [17], engine, encoder, AskedModelConfig(name="Qwen3-8B"))  ->  ["... YES"]
"""

from __future__ import annotations

from collections.abc import Sequence

from truegold.pipeline.config.stages import AskedModelConfig
from truegold.pipeline.engines.base import Completion, Engine, SamplingParams
from truegold.pipeline.engines.chat import PromptEncoder


def ask_model(
    prompts: Sequence[Sequence[int]],
    seeds: Sequence[int],
    engine: Engine,
    encoder: PromptEncoder,
    config: AskedModelConfig,
) -> list[str | None]:
    """Return the reply to each encoded prompt; None for one that was cut off before it ended."""
    sampling = SamplingParams(config.temperature, 1.0, config.max_tokens, encoder.stop_token_ids)

    def decode_whole(completion: Completion) -> str | None:
        return encoder.decode(completion.token_ids) if completion.finish_reason == "stop" else None

    return [decode_whole(completion) for completion in engine.generate(prompts, sampling, seeds)]
