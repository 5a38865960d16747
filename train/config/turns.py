"""The section `train.turns`: dialogues with an environment in place of single answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from truegold.pipeline.config.base import Filled, StageConfig

RESERVED = frozenset(
    "add_generation_prompt chat_template continue_final_message conversation max_length messages padding "
    "return_assistant_tokens_mask return_dict return_tensors tokenize tokenizer_kwargs tools truncation".split()
)
"""Names of arguments that `apply_chat_template` has itself or that every dialogue sets."""


def _check_template_args(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    if reserved := sorted(RESERVED & arguments.keys()):
        raise ValueError(
            f"{', '.join(reserved)} cannot be set, because every dialogue sets it (tools come from the environment): "
            "name variables of the model's chat template, such as enable_thinking"
        )
    return arguments


TemplateArgs = Annotated[Mapping[str, Any], AfterValidator(_check_template_args)]


class ReminderConfig(StageConfig):
    """Texts that the last message of each prompt repeats, because small models forget them."""

    goal: bool = False
    """Repeat the text of the first message."""
    actions: int = Field(default=0, ge=0)
    """Repeat this number of the model's last turns."""
    keep_turns: int | None = Field(default=None, ge=0)
    """Keep only this number of the last turns in the prompt. By default all turns are kept."""

    @property
    def changes_prompts(self) -> bool:
        """Whether anything is repeated or left out."""
        return self.goal or self.actions > 0 or self.keep_turns is not None


class DialoguesConfig(StageConfig):
    """Additions to the prompts of dialogues (`sft.dialogues`). They should be the same as in the rollouts."""

    template_args: TemplateArgs = Field(default_factory=dict)
    """Arguments of the chat template, as in `train.turns`."""
    tools: tuple[Mapping[str, Any], ...] = ()
    """The JSON schemas of the environment's tools, which the chat template shows."""
    reminder: ReminderConfig = ReminderConfig()
    """Texts that each prompt repeats, as in `train.turns`."""

    @property
    def changes_first_prompts(self) -> bool:
        """Whether the prompt of a first turn differs from the prompt of a single answer."""
        return bool(self.template_args or self.tools)


class TurnsConfig(StageConfig):
    """Dialogues with an environment."""

    environment: Filled
    """The import string of a class or function that returns an environment, such as path/to/shop.py:Shop."""
    args: Mapping[str, Any] = {}
    """Arguments of the environment's class or function, by name."""
    max_turns: int = Field(default=8, ge=1)
    """The largest number of the model's turns in an episode. An unfinished episode is scored 0."""
    deadline_s: float = Field(default=30.0, gt=0, allow_inf_nan=False)
    """The time in seconds that the environment has to answer one turn."""
    max_reply: int = Field(default=20_000, ge=1)
    """The largest number of characters of an environment's answer."""
    template_args: TemplateArgs = Field(default_factory=dict)
    """Arguments of the chat template, such as `enable_thinking`."""
    reminder: ReminderConfig = ReminderConfig()
    """Texts that each prompt repeats."""
    credit: Literal["equal", "turn", "discounted"] = "equal"
    """How the reward of an episode is distributed over its turns. equal: all tokens have the advantage of the episode.
    turn: each turn gets its own score, and the last turn also gets the score of the episode. discounted: each turn gets
    its own score plus the scores of later turns, each multiplied by `discount` per turn of distance. With `turn` and
    `discounted`, a turn is compared with the turns of the same number in the group's other episodes."""
    discount: float = Field(default=1.0, gt=0, le=1)
    """The factor per turn of distance in `credit: discounted`."""
    count: Literal["episodes", "segments"] = "episodes"
    """The unit that counts as a sequence in the aggregations `sequence` and `constant`."""

    @model_validator(mode="after")
    def _check_discount_has_an_effect(self) -> TurnsConfig:
        if self.credit != "discounted" and self.discount != 1.0:
            raise ValueError(f"discount ({self.discount:g}) needs credit: discounted; set it, or leave discount out")
        return self
