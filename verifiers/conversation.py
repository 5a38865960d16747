"""Conversations as one text: what verifiers get as `problem` where the prompt is more than a question.

write_out([{"role": "system", "content": "In miles."}, {"role": "user", "content": "How far?"}])
->  "System: In miles.\\n\\nUser: How far?"
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypedDict

SYSTEM = "system"


class Message(TypedDict):
    """One message of a conversation."""

    role: str
    """system, user or assistant."""
    content: str


def write_out(messages: Iterable[Message]) -> str:
    """Return messages as one text, each after its speaker."""
    return "\n\n".join(f"{message['role'].capitalize()}: {message['content']}" for message in messages)
