"""Where completions come from: one interface, three engines. Token ids go in and token ids come out."""

from truegold.pipeline.engines.base import Completion, Engine, SamplingParams
from truegold.pipeline.engines.build import build_engine
from truegold.pipeline.engines.chat import PromptEncoder, load_encoder

__all__ = ["Completion", "Engine", "PromptEncoder", "SamplingParams", "build_engine", "load_encoder"]
