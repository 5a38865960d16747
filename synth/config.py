"""Defines the section `synth` of a configuration: how right completions to train on, called positives, are made."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from truegold.pipeline.config.base import StageConfig, VerdictConfig
from truegold.pipeline.config.engines import ChatConfig, EngineConfig, VllmEngineConfig
from truegold.pipeline.config.stages import AskedModelConfig

Language = Literal["en", "zh"]


class LeakConfig(StageConfig):
    """Limits beyond which a positive is dropped, because it repeats guidance that is missing in training.

    Guidance is feedback, a reflection or the gold in the prompt of the positive.
    """

    quote_words: int = Field(default=8, ge=3)
    """An output quotes the guidance if it shares at least this number of consecutive words with it. Numbers and
    formulas are not words. If a sentence of the guidance is shorter and has no numbers, the whole sentence is
    enough."""
    retold_share: float = Field(default=0.33, gt=0, le=1)
    """An output retells the guidance if one of its sentences has at least this share of the new words in a sentence of
    the guidance. New words are neither in the problem nor in the failed attempt."""
    mentions: bool = True
    """Drop outputs that mention an earlier attempt, feedback, a hint, or a person who gave it."""
    answer_first: bool = True
    """Drop outputs that state their answer before they derive it."""
    min_geometric_weight: float = Field(default=0.3, ge=0, le=1)
    """The minimum of exp(mean(log p(output | prompt) - log p(output | prompt, guidance))) over the output's tokens."""
    near_copy: float = Field(default=0.9, gt=0, le=1)
    """Of two positives of a row, one is dropped if they have at least this share of word triples in common."""


class SynthConfig(VerdictConfig):
    """How positives are made for rows that hardly ever pass. They are sampled with additional texts in the prompt."""

    engine: EngineConfig = VllmEngineConfig()
    """The engine that samples. Left out: the run's `engine`."""
    chat: ChatConfig = ChatConfig()
    """The texts around a prompt. Left out: the run's `chat`. The prompt of a strategy takes the place of the
    problem."""
    strategies: tuple[str, ...] = ("reflect", "retry", "approaches", "hotter", "repair")
    """The strategies to try: names, or import strings of your own (`path/to/mine.py:STRATEGY`). `rationalize` shows the
    gold to the model. Its positives are marked, and have less weight in training."""
    reflector: AskedModelConfig | None = None
    """Another, usually stronger model that writes the reflections. It should run on a server, since otherwise this
    process holds two models at once."""
    budget_tokens: int = Field(default=2_000_000, ge=1)
    """No attempt begins after this number of sampled tokens, including those of reflections."""
    attempts: int = Field(default=8, ge=1)
    """Maximum number of attempts at one row."""
    depth: int = Field(default=3, ge=1)
    """Maximum length of a chain of attempts, in which each attempt gets feedback on the one before."""
    positives: int = Field(default=2, ge=1)
    """Maximum number of positives of one row."""
    max_share: dict[str, float] = Field(default_factory=lambda: {"rationalize": 0.2})
    """For a strategy, the maximum share of all positives. If it has more, its least probable positives are dropped."""
    group_size: int = Field(default=8, ge=2)
    """Number of completions of a group in training. Left out: `train.group_size`. Rows come first if their groups
    probably have no right completion."""
    temperature: float = Field(default=1.0, gt=0)
    """The temperature of attempts."""
    hot_temperature: float = Field(default=1.3, gt=0)
    """The temperature of strategies that are marked `hot`."""
    max_tokens: int = Field(default=512, ge=1)
    """Maximum number of tokens of an attempt. Left out: `profile.max_tokens`."""
    reflection_tokens: int = Field(default=192, ge=1)
    """Maximum number of tokens of a reflection."""
    attempt_chars: int = Field(default=2000, ge=1)
    """The prompt shows at most this number of characters at the end of an earlier attempt."""
    language: Language | None = None
    """The language of the prompts. Left out: each row's own language, Chinese or English."""
    round_rows: int = Field(default=256, ge=1)
    """Maximum number of attempts in a round. The results of a round decide about the next one."""
    guards: LeakConfig = LeakConfig()
    """Guards against positives that make no sense without the guidance in their prompt."""
    seed: int = 0
    """The seed from which each sample's own seed is derived."""
    workers: int = Field(default=1, ge=0)
    """Number of processes that verify. 0 takes one per core."""

    def sampling_settings(self, temperature: float, max_tokens: int) -> dict[str, Any]:
        """Return the settings that determine a sample, as `ProfileConfig.sampling_settings`."""
        settings = {"temperature": temperature, "top_p": 1.0, "max_tokens": max_tokens, "seed": self.seed}
        return {**settings, "logprobs": True, "stop_loops": True}
