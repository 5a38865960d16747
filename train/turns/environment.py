"""What an environment is: it opens a dialogue about a row, and answers each turn of the model's.

    class Guess:
        def reset(self, row):
            self.secret = int(row["gold"])
            return [{"role": "user", "content": "Guess a whole number from 1 to 9."}]

        def step(self, completion):
            if completion["content"].strip() == str(self.secret):
                return Done(1.0)
            return Reply([{"role": "user", "content": "No. Again."}])

Both may be coroutines (`async def`). An environment serves one episode; a new one is made for each. Where it has a
method `close`, that is called when the episodes of the step are over, however this one ended.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from truegold.pipeline.rows import Row

Message = dict[str, Any]
"""`role` and `content` as a chat template takes them; of the model's also `reasoning_content` and `tool_calls`, where
its format has any."""


@dataclass(frozen=True)
class Reply:
    """What an environment answers to a turn; the dialogue goes on."""

    messages: Sequence[Message]
    score: float | None = None
    """What the turn earned, where turns are scored one by one."""


@dataclass(frozen=True)
class Done:
    """The end of the dialogue."""

    score: float | None = None
    """What the episode earned, in [0, 1]; None: the row's verifier judges the last completion."""
    turn_score: float | None = None
    """What the last turn earned beside it, where turns are scored one by one."""


class Environment(Protocol):
    """One episode's counterpart of the model."""

    def reset(self, row: Row) -> Sequence[Message] | Awaitable[Sequence[Message]]:
        """Return the first messages of the dialogue about a row."""
        ...

    def step(self, completion: Message) -> Reply | Done | Awaitable[Reply | Done]:
        """Return what follows the model's turn."""
        ...


MakeEnvironment = Callable[[], Environment]


def check_messages(messages: object) -> list[Message]:
    """Return a copy of an environment's messages, which it may change later.

    Raises TypeError, with what is wrong, for anything else.
    """
    if not isinstance(messages, Sequence) or isinstance(messages, str):
        raise TypeError(f"messages must be a list of dicts, and are a {type(messages).__name__}")
    for message in messages:
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise TypeError(f"a message must be a dict with a role, and is {str(message)[:80]!r}")
        if not isinstance(message.get("content"), str):
            raise TypeError(f"the content of a message must be text, and is {str(message.get('content'))[:80]!r}")
        if _HALF_PAIR.search(message["content"]):
            raise TypeError("the content of a message holds half of a surrogate pair, which stands for no character")
    return [copy.deepcopy(dict(message)) for message in messages]


def count_characters(messages: Sequence[Message]) -> int:
    """Return how long messages are together, all of their fields, so that nothing passes by a limit."""
    return sum(
        len(value) if isinstance(value, str) else len(repr(value))
        for message in messages
        for name, value in message.items()
        if name != "role" or len(value) > LONGEST_ROLE
    ) + sum(not message["content"] for message in messages)


LONGEST_ROLE = 32
"""The characters of a role that are not counted."""
_HALF_PAIR = re.compile("[\ud800-\udfff]")
