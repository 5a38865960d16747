"""The section `train.turns`: dialogues with an environment in place of single answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from truegold.pipeline.config.base import StageConfig

RESERVED = frozenset(
    "add_generation_prompt chat_template continue_final_message conversation max_length messages padding "
    "return_assistant_tokens_mask return_dict return_tensors tokenize tokenizer_kwargs tools truncation".split()
)
"""Names that `apply_chat_template` takes for itself, or that every dialogue sets."""


def _check_template_args(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    if reserved := sorted(RESERVED & arguments.keys()):
        raise ValueError(
            f"{', '.join(reserved)} cannot be set: every dialogue sets them itself, tools from the environment; name "
            "variables of the model's chat template, such as enable_thinking"
        )
    return arguments


TemplateArgs = Annotated[Mapping[str, Any], AfterValidator(_check_template_args)]


class ReminderConfig(StageConfig):
    """Texts that the last message of each prompt repeats, since small models lose sight of them."""

    goal: bool = False
    """The first message's text."""
    actions: int = Field(default=0, ge=0)
    """The number of the model's last turns."""
    keep_turns: int | None = Field(default=None, ge=0)
    """Older turns than these leave the prompt; left out: none does."""

    @property
    def changes_prompts(self) -> bool:
        """Whether anything is repeated or left out."""
        return self.goal or self.actions > 0 or self.keep_turns is not None


class DialoguesConfig(StageConfig):
    """Additions to the prompts of dialogues, besides their messages (`sft.dialogues`); they should match the
    rollouts'."""

    template_args: TemplateArgs = Field(default_factory=dict)
    """Arguments of the chat template, as in `train.turns`."""
    tools: tuple[Mapping[str, Any], ...] = ()
    """The JSON schemas of tools that the template shows: those of the environment."""
    reminder: ReminderConfig = ReminderConfig()
    """Texts that each prompt repeats, as in `train.turns`."""

    @property
    def changes_first_prompts(self) -> bool:
        """Whether already the prompt of a first turn is another one than that of a single answer."""
        return bool(self.template_args or self.tools)


class TurnsConfig(StageConfig):
    """Dialogues with an environment."""

    environment: str
    """The import string of a class or a function that makes an environment, such as path/to/shop.py:Shop."""
    args: Mapping[str, Any] = {}
    """Arguments of the environment's class or function, by name."""
    max_turns: int = Field(default=8, ge=1)
    """Turns of the model's in an episode; one that is not over then has earned 0."""
    deadline_s: float = Field(default=30.0, gt=0, allow_inf_nan=False)
    """Seconds that an environment has for one answer."""
    max_reply: int = Field(default=20_000, ge=1)
    """Characters of an answer at most."""
    template_args: TemplateArgs = Field(default_factory=dict)
    """Arguments of the chat template, such as `enable_thinking`."""
    reminder: ReminderConfig = ReminderConfig()
    """Texts that each prompt repeats."""
    credit: Literal["equal", "turn", "discounted"] = "equal"
    """The turns that the reward of an episode goes to. equal: the advantage of the episode, for all of its tokens.
    turn: each turn earns its own score, the last one also the episode's. discounted: each turn earns its own score and
    those of later turns, times `discount` for each turn in between. Turns of the same number are compared with each
    other."""
    discount: float = Field(default=1.0, gt=0, le=1)
    """The factor by which a reward shrinks with each turn that it is away."""
    count: Literal["episodes", "segments"] = "episodes"
    """The unit that counts as a sequence in the aggregations `sequence` and `constant`."""

    @model_validator(mode="after")
    def _check_discount_has_an_effect(self) -> TurnsConfig:
        if self.credit != "discounted" and self.discount != 1.0:
            raise ValueError(f"discount ({self.discount:g}) is that of credit: discounted")
        return self
