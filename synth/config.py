"""The section `synth`: how positives (right completions to train on) are made for rows that hardly ever pass."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from truegold.pipeline.config.base import StageConfig, VerdictConfig
from truegold.pipeline.config.engines import ChatConfig, EngineConfig, VllmEngineConfig
from truegold.pipeline.config.stages import AskedModelConfig

Language = Literal["en", "zh"]


class LeakConfig(StageConfig):
    """Limits beyond which a positive is dropped, because it depends on a context that its bare prompt lacks."""

    quote_words: int = Field(default=8, ge=3)
    """Smallest number of consecutive words shared with the guidance (feedback, reflection or gold in the prompt) that
    counts as a quotation. Numbers and formulas are not counted as words. A shorter sentence of the guidance, without
    numbers, counts as a whole."""
    retold_share: float = Field(default=0.33, gt=0, le=1)
    """The smallest share of a guidance sentence's new words that makes an output's sentence a retelling. New words are
    in neither the problem nor the failed attempt."""
    mentions: bool = True
    """Drop outputs that mention an earlier attempt, feedback, a hint, or a person who gave it."""
    answer_first: bool = True
    """Drop outputs that state their answer before they derive it."""
    min_geometric_weight: float = Field(default=0.3, ge=0, le=1)
    """The lowest exp(mean(log p(output | prompt) - log p(output | prompt, context))) of a positive."""
    near_copy: float = Field(default=0.9, gt=0, le=1)
    """The smallest share of common word triples for which one of two positives of a row is dropped."""


class SynthConfig(VerdictConfig):
    """How positives are made for rows that hardly ever pass: sampled with more in the prompt, verified without it."""

    engine: EngineConfig = VllmEngineConfig()
    """The engine that samples. Left out: the run's `engine`."""
    chat: ChatConfig = ChatConfig()
    """How a prompt is put to the model. Left out: the run's `chat`. The text of a strategy replaces the problem."""
    strategies: tuple[str, ...] = ("reflect", "retry", "approaches", "hotter", "repair")
    """Strategies to try: names, or import strings of your own (`path/to/mine.py:STRATEGY`). `rationalize` shows the
    gold to the model; its positives are marked and weigh less."""
    reflector: AskedModelConfig | None = None
    """Another, usually stronger model that writes the reflections. A served model is best: vLLM in the process would
    hold two models at once."""
    budget_tokens: int = Field(default=2_000_000, ge=1)
    """Number of sampled tokens, including those of reflections, after which no further attempt begins."""
    attempts: int = Field(default=8, ge=1)
    """Maximum number of attempts at one row."""
    depth: int = Field(default=3, ge=1)
    """Maximum length of a chain of attempts, each with feedback on the one before."""
    positives: int = Field(default=2, ge=1)
    """Maximum number of positives of one row."""
    max_share: dict[str, float] = Field(default_factory=lambda: {"rationalize": 0.2})
    """Maximum share of all positives by strategy. Above it, the strategy's least plausible positives are dropped."""
    group_size: int = Field(default=8, ge=2)
    """Number of completions of a group in training. Left out: `train.group_size`. Rows whose groups would be all wrong
    come first."""
    temperature: float = Field(default=1.0, gt=0)
    """The temperature of attempts."""
    hot_temperature: float = Field(default=1.3, gt=0)
    """The temperature of strategies that are marked `hot`."""
    max_tokens: int = Field(default=512, ge=1)
    """Maximum number of tokens of an attempt. Left out: `profile.max_tokens`."""
    reflection_tokens: int = Field(default=192, ge=1)
    """Maximum number of tokens of a reflection."""
    attempt_chars: int = Field(default=2000, ge=1)
    """Maximum number of characters, from the end of an earlier attempt, that the prompt shows."""
    language: Language | None = None
    """The language of the prompts. Left out: each row's own language, Chinese or English."""
    round_rows: int = Field(default=256, ge=1)
    """Maximum number of attempts in a round. Their results decide about the next round."""
    guards: LeakConfig = LeakConfig()
    """Guards against positives that make no sense without their context."""
    seed: int = 0
    """The seed from which each sample's own seed is derived."""
    workers: int = Field(default=1, ge=0)
    """Number of processes that verify. 0 takes one per core."""

    def sampling_settings(self, temperature: float, max_tokens: int) -> dict[str, Any]:
        """Return the settings that determine a sample, in the profile's form."""
        settings = {"temperature": temperature, "top_p": 1.0, "max_tokens": max_tokens, "seed": self.seed}
        return {**settings, "logprobs": True, "stop_loops": True}
