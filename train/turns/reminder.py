"""Prompts that repeat the goal and the last actions: small models lose sight of both after a few turns.

<user> Goal: buy the cheapest red cup.
Your last actions:
1. search[cup]
2. look[cup 3]

It costs 4 yuan and is blue.
<assistant>
"""

from __future__ import annotations

from collections.abc import Sequence

from truegold.train.config.turns import ReminderConfig
from truegold.train.turns.environment import Message
from truegold.train.turns.messages import describe_action


def remind(messages: Sequence[Message], config: ReminderConfig) -> list[Message]:
    """Return the messages of a prompt, with what is to be repeated in front of the last one."""
    if not config.changes_prompts:
        return list(messages)
    turns = [index for index, message in enumerate(messages) if message["role"] == "assistant"]
    if not turns:
        return list(messages)
    kept = list(messages)
    if config.keep_turns is not None and len(turns) > config.keep_turns:
        first_reply = turns[0]
        # A turn may be answered by several messages; one that is not answered at all stays itself.
        behind_turns = min(turns[-1] + 1, len(messages) - 1)
        kept_from = turns[-config.keep_turns] if config.keep_turns else behind_turns
        kept = [*messages[:first_reply], *messages[kept_from:]]
    if kept[-1]["role"] == "assistant":
        return kept
    parts = []
    if config.goal:
        goal = next((message["content"] for message in messages if message["role"] == "user"), "")
        parts.append(f"Goal: {goal}")
    if config.actions:
        actions = [describe_action(messages[index]) for index in turns[-config.actions :]]
        first = len(turns) - len(actions) + 1
        lines = [f"{turn}. {action}" for turn, action in enumerate(actions, first)]
        parts.append("\n".join(["Your last actions:", *lines]))
    parts.append(kept[-1]["content"])
    return [*kept[:-1], {**kept[-1], "content": "\n\n".join(parts)}]
