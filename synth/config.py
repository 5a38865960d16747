"""The section `synth`: how positives are made for rows that hardly ever pass."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from truegold.pipeline.config.base import StageConfig, VerdictConfig
from truegold.pipeline.config.engines import ChatConfig, EngineConfig, VllmEngineConfig
from truegold.pipeline.config.stages import AskedModelConfig

Language = Literal["en", "zh"]


class LeakConfig(StageConfig):
    """When a positive is dropped because it owes more to its context than a reader of the bare prompt can see."""

    quote_words: int = Field(default=8, ge=3)
    """Words in a row, numbers and formulas left out, that an output may not share with what it was told."""
    retold_share: float = Field(default=0.33, gt=0, le=1)
    """A sentence of guidance counts as retold where an output's sentence has this share of the words that only the
    guidance could have brought."""
    mentions: bool = True
    """Drop outputs that speak of an earlier attempt, of feedback, of a hint, or of its giver."""
    answer_first: bool = True
    """Drop outputs that state their answer and derive it afterwards."""
    min_geometric_weight: float = Field(default=0.3, ge=0, le=1)
    """The least exp(mean(log p(output | prompt) - log p(output | prompt, context)))."""
    near_copy: float = Field(default=0.9, gt=0, le=1)
    """The share of common word triples from which on one of two positives of a row is dropped."""


class SynthConfig(VerdictConfig):
    """How positives are made for rows that hardly ever pass: attempts with more in the prompt, verified without it."""

    engine: EngineConfig = VllmEngineConfig()
    """The engine that samples; the run's `engine` where it is left out."""
    chat: ChatConfig = ChatConfig()
    """How a prompt is put to the model; the run's `chat` where it is left out. A strategy's text takes the place of the
    problem."""
    strategies: tuple[str, ...] = ("reflect", "retry", "approaches", "hotter", "repair")
    """The strategies to try: their names, or import strings of your own (`path/to/mine.py:STRATEGY`). `rationalize`
    shows the gold to the model; its positives are marked and trusted less."""
    reflector: AskedModelConfig | None = None
    """Another model, usually a stronger one, that writes the reflections. Best a served one: in-process vLLM would hold
    two models at once."""
    budget_tokens: int = Field(default=2_000_000, ge=1)
    """Sampled tokens after which no further attempt is started, reflections included."""
    attempts: int = Field(default=8, ge=1)
    """Attempts at one row, at most."""
    depth: int = Field(default=3, ge=1)
    """How many attempts may follow from each other, each with feedback on the one before."""
    positives: int = Field(default=2, ge=1)
    """Positives of one row, at most."""
    max_share: dict[str, float] = Field(default_factory=lambda: {"rationalize": 0.2})
    """The share of all positives that a strategy may have; the least plausible ones beyond it are dropped."""
    group_size: int = Field(default=8, ge=2)
    """The completions of one group in training; `train.group_size` where it is left out. Rows of which no such group
    has a positive of its own come first."""
    temperature: float = Field(default=1.0, gt=0)
    """The temperature of attempts."""
    hot_temperature: float = Field(default=1.3, gt=0)
    """The temperature of strategies that vary the bare prompt's completions."""
    max_tokens: int = Field(default=512, ge=1)
    """The longest attempt; `profile.max_tokens` where it is left out."""
    reflection_tokens: int = Field(default=192, ge=1)
    """The longest reflection."""
    attempt_chars: int = Field(default=2000, ge=1)
    """Characters of an earlier attempt that are shown at most: its end."""
    language: Language | None = None
    """The language of the prompts; each row's own, Chinese or English, where it is left out."""
    round_rows: int = Field(default=256, ge=1)
    """The attempts that are chosen at a time, from the results of earlier ones."""
    guards: LeakConfig = LeakConfig()
    """The guards against positives that are unfit to be trained on without their context."""
    seed: int = 0
    """Each sample's own seed is made from it."""
    workers: int = Field(default=1, ge=0)
    """Processes that verify; 0 takes one per core."""

    def sampling_settings(self, temperature: float, max_tokens: int) -> dict[str, Any]:
        """Return the settings that decide a sample, as the profile has them."""
        settings = {"temperature": temperature, "top_p": 1.0, "max_tokens": max_tokens, "seed": self.seed}
        return {**settings, "logprobs": True, "stop_loops": True}
