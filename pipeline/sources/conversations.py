"""Reads conversations: what the last user message asks, and what else a record says that one prompt cannot carry.

    [{"role": "user", "content": "2+2?"}]                                              "2+2?", nothing is lost
    [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}]       the same: an answer asks nothing
    [{"role": "system", "content": "In miles."}, {"role": "user", "content": "..."}]   lost: system_message
    [user "I have 3 apples.", assistant "Yes?", user "And now?"]                       lost: earlier_turns
    {"prompt": "<image> What is this?", "images": [{"path": "a.png"}]}                 lost: pictures
    {"prompt": [...], "tools": [{"name": "search", "parameters": {}}]}                 lost: tools
    {"prompt": "What does he say?", "audio": {"path": "a.wav"}}                        lost: media
    {"problem": "2+2?", "messages": [{"role": "system", "content": "In miles."}, ...]}  lost: system_message

Rows that lose something are rejected by that name, unless `data.last_turn_only` says to keep the last user message
alone. Empty messages, columns and parts lose nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any

from truegold.pipeline.sources.columns import text_of
from truegold.pipeline.sources.jsonl import parse_structure

SYSTEM_ROLES = ("system", "developer")
_ANSWERING = (*SYSTEM_ROLES, "assistant", "tool", "function")
_MESSAGES_TEXT = re.compile(r"\s*\[\s*\{\s*\"(?:role|content)\"\s*:")
"""How the JSON text of a list of messages begins."""
CONVERSATIONS = ("messages", "conversation", "conversations")
"""Columns that may hold, beside the prompt, the conversation that it is taken from."""
_SENDERS = {"human": "user", "gpt": "assistant"}
"""What ShareGPT calls those who speak."""
TEXT_PARTS = ("", "text", "input_text", "output_text")
"""The types of the parts of a message that are text."""
REQUEST = "responses_create_params"
"""The column with all that NeMo-Gym's models see, beside a `question` with the last user message."""
Message = Mapping[str, Any]


def messages_of(value: Any) -> list[Message]:
    """Return the messages that a value holds as a list, or as the JSON text of one; none where it is none."""
    if isinstance(value, str) and _MESSAGES_TEXT.match(value):
        structure = parse_structure(value)
        named = isinstance(structure, list) and all(isinstance(each, Mapping) and "role" in each for each in structure)
        return list(structure) if named else []
    return value if isinstance(value, list) and value and all(isinstance(each, Mapping) for each in value) else []


def read_prompt(value: Any) -> tuple[Any, int]:
    """Return what a prompt column asks, and how many messages it holds: none where the value is no conversation.

    Of a conversation it is the last user message, its parts joined; where no one is called user, the last message that
    is not by a system or an assistant.
    """
    if not (messages := messages_of(value)):
        return value, 0
    asked = _position_of_question(messages)
    return None if asked is None else _text_in(messages[asked].get("content")), len(messages)


def _text_in(content: Any) -> Any:
    """Return the texts of a message's parts, joined; content that is no list of parts as it is."""
    if not isinstance(content, list):
        return content
    parts = [part.get("text") if isinstance(part, Mapping) else part for part in content]
    return "\n".join(part for part in parts if isinstance(part, str))


def read_response(value: Any) -> str | None:
    """Return the text of a response; of a conversation it is the last assistant message. None where there is none."""
    if messages := messages_of(value):
        replies = [message for message in messages if _role(message) == "assistant"]
        value = replies[-1].get("content") if replies else None
    return text_of(value)


def find_lost(prompt: Any, beside: Sequence[Mapping[str, Any]], taken: Set[str] = frozenset()) -> dict[str, str]:
    """Return what `read_prompt` leaves out of a record: each reason, and in words what there is.

    `beside` has the record and structs in it whose keys stand beside the prompt; columns that are `taken` as
    something else lose nothing.
    """
    lost: dict[str, str] = {}
    messages = messages_of(prompt)
    for reason, what in _lost_messages(messages):
        lost.setdefault(reason, what)
    for values in beside:
        for name, reason in _lost_columns(values, bool(messages)):
            if name not in taken:
                lost.setdefault(reason, f"column {name!r}")
        for name in (name for name in CONVERSATIONS if name not in taken):
            for reason, what in _lost_messages(_turns_of(values.get(name))):
                lost.setdefault(reason, f"{what} in column {name!r}")
        if isinstance(request := values.get(REQUEST), Mapping) and REQUEST not in taken:
            lost = {**find_lost(request.get("input"), (request,), {REQUEST}), **lost}
    return lost


def _turns_of(value: Any) -> list[Message]:
    """Return the messages of a column beside the prompt, those of ShareGPT's form as others are."""
    structure = parse_structure(value)
    turns = messages_of(structure if isinstance(structure, list) else None)
    return [
        {**turn, "role": _SENDERS.get(str(turn["from"]).lower(), turn["from"]), "content": turn.get("value")}
        if "from" in turn and "role" not in turn
        else turn
        for turn in turns
    ]


def _role(message: Message) -> str:
    """Return the speaker in lower case, an empty text where there is none."""
    return str(message.get("role") or "").strip().lower()


def _position_of_question(messages: Sequence[Message]) -> int | None:
    if users := [position for position, message in enumerate(messages) if _role(message) == "user"]:
        return users[-1]
    others = [position for position, message in enumerate(messages) if _role(message) not in _ANSWERING]
    return others[-1] if others else None


def _lost_messages(messages: Sequence[Message]) -> Iterator[tuple[str, str]]:
    asked = _position_of_question(messages)
    for position, message in enumerate(messages):
        content = message.get("content")
        if position == asked:
            yield from _lost_parts(content)
        elif _role(message) in SYSTEM_ROLES:
            if (text := text_of(_text_in(content))) is not None:
                yield "system_message", f"a system message ({text!r:.60})"
        elif asked is not None and position < asked and (_holds_something(content) or message.get("tool_calls")):
            yield "earlier_turns", f"{asked} messages before the last question" if asked > 1 else "an earlier message"
        for name, reason in _lost_columns(message, in_conversation=True):
            yield reason, f"{name!r} in a message"


def _lost_parts(content: Any) -> Iterator[tuple[str, str]]:
    for part in content if isinstance(content, list) else ():
        if not isinstance(part, Mapping):
            continue
        kind = str(part.get("type") or "")
        if "image" in kind or any("image" in str(key) and _holds_something(value) for key, value in part.items()):
            yield "pictures", "a picture in the question"
        elif kind not in TEXT_PARTS:
            yield "media", f"a part of type {kind!r:.40} in the question"


def _lost_columns(values: Mapping[str, Any], in_conversation: bool) -> Iterator[tuple[str, str]]:
    for name in sorted(values.keys() & _BESIDE.keys()):
        reason, is_lost = _BESIDE[name]
        if is_lost(values[name]):
            yield name, reason
    if in_conversation and _are_definitions(values.get("functions")):
        yield "functions", "tools"


def _holds_something(value: Any) -> bool:
    """Say whether a value, or a text with JSON, has anything in it but nulls, zeros and blanks."""
    remaining = [parse_structure(value)]
    while remaining:
        part = remaining.pop()
        if isinstance(part, Mapping):
            remaining += part.values()
        elif isinstance(part, list | tuple):
            remaining += part
        elif part.strip() if isinstance(part, str | bytes) else text_of(part) not in (None, "false", "0"):
            return True
    return False


_NAME = re.compile(r"[\w.:/@+-]+", re.ASCII)


def _is_message(value: Any) -> bool:
    """Say whether a column `system` holds a message; one word is the name of a system, such as `gpt-4o`."""
    return isinstance(value, str) and bool(value.strip()) and _NAME.fullmatch(value.strip()) is None


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _are_turns(value: Any) -> bool:
    return isinstance(structure := parse_structure(value), list) and _holds_something(structure)


def _are_definitions(value: Any) -> bool:
    """Say whether a value, or a text with JSON, defines tools; words, such as categories, do not."""
    structure = parse_structure(value)
    parts = [structure, *structure.values()] if isinstance(structure, Mapping) else structure
    return isinstance(parts, list) and any(_is_definition(parse_structure(part)) for part in parts)


def _is_definition(value: Any) -> bool:
    keys = ("function", "name", "type", "description", "parameters", "input_schema", "inputSchema")
    return isinstance(value, Mapping) and any(value.get(key) for key in keys)


_PICTURES = (
    *("images", "image", "image_1", "Image", "picture", "pictures", "Picture", "decoded_image"),
    *("image_path", "image_url", "img"),
)
_BESIDE: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "system": ("system_message", _is_message),
    **dict.fromkeys(("system_prompt", "system_message", "instructions"), ("system_message", _is_text)),
    **dict.fromkeys(("history", "chat_history", "conversation_history"), ("earlier_turns", _are_turns)),
    **dict.fromkeys(_PICTURES, ("pictures", _holds_something)),
    **dict.fromkeys(("audio", "audios", "video", "videos", "multi_modal_data"), ("media", _holds_something)),
    "tools": ("tools", _are_definitions),
}
"""What is lost of a column beside the prompt, and whether its value is such a thing."""
