"""Writes a conversation as one text, which verifiers get as `problem` if a prompt has several messages.

write_out([{"role": "system", "content": "In miles."}, {"role": "user", "content": "How far?"}])
->  "System: In miles.\\n\\nUser: How far?"
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypedDict

SYSTEM = "system"
"""The role of a system prompt."""


class Message(TypedDict):
    """One message of a conversation."""

    role: str
    """system, user or assistant."""
    content: str


def write_out(messages: Iterable[Message]) -> str:
    """Return the messages as one text, each after the name of its role."""
    return "\n\n".join(f"{message['role'].capitalize()}: {message['content']}" for message in messages)
