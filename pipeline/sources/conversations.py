"""Reads conversations: the question, the messages before it, and parts that a row cannot carry.

    [{"role": "user", "content": "2+2?"}]                                              question "2+2?", no context
    [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}]       the same: the answer is ignored
    [{"role": "system", "content": "In miles."}, {"role": "user", "content": "..."}]   context: the system message
    [user "I have 3 apples.", assistant "Yes?", user "And now?"]                       context: the first two messages
    {"prompt": "2+2?", "system_prompt": "In miles."}                                   context: a system message
    {"problem": "2+2?", "messages": [{"role": "system", "content": "In miles."}, ...]}  the same
    {"prompt": "And now?", "history": [["I have 3 apples.", "Yes?"]]}                  context: two messages

A row cannot keep pictures, media and tools:

    {"prompt": "<image> What is this?", "images": [{"path": "a.png"}]}                 lost: pictures
    {"prompt": [...], "tools": [{"name": "search", "parameters": {}}]}                 lost: tools
    {"prompt": "What does he say?", "audio": {"path": "a.wav"}}                        lost: media

Rows with such parts are rejected, unless `data.last_turn_only` keeps only the last user message. Empty messages,
columns and parts are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from truegold.pipeline.tables.rows import dump_json, normalise_for_id
from truegold.verifiers.columns import MISSING, text_of
from truegold.verifiers.conversation import SYSTEM, Message
from truegold.verifiers.strict_json import parse_literal, parse_structure

SYSTEM_ROLES = (SYSTEM, "developer")
_CARRIED = (*SYSTEM_ROLES, "user", "assistant")
_ANSWERING = (*SYSTEM_ROLES, "assistant", "tool", "function")
_MESSAGES_TEXT = re.compile(r"\s*\[\s*\{\s*(?:\"|')(?:role|content|from|value)(?:\"|')\s*:")
"""The beginning of a list of messages as text, in the syntax of JSON or Python."""
SYSTEM_COLUMNS = ("system", "system_prompt", "system_message", "instructions")
"""Columns that may hold a system message."""
_HISTORIES = ("history", "chat_history", "conversation_history")
CONVERSATIONS = ("messages", "conversation", "conversations")
"""Columns that may hold the conversation that the prompt is taken from."""
_ROLES = {
    **dict.fromkeys(("human", "prompter", "用户", "人类", "问", "提问"), "user"),
    **dict.fromkeys(("gpt", "chatgpt", "bot", "model", "ai", "助手", "助理", "模型", "答", "回答"), "assistant"),
    "系统": SYSTEM,
}
TEXT_PARTS = ("", "text", "input_text", "output_text")
"""The types of message parts that have text."""
REQUEST = "responses_create_params"
"""NeMo-Gym's column with the whole request to the model. The column `question` has only the last user message."""
RawMessage = Mapping[str, Any]
"""A message in the form of its source."""


@dataclass(frozen=True, slots=True)
class AskedConversation:
    """The question of a record, and the messages before it."""

    question: Any
    """The content of the question, normally a text."""
    is_chat: bool = False
    """Whether the prompt's column holds messages."""
    is_answered: bool = False
    """Whether the conversation goes on after the question."""
    context: tuple[Message, ...] = ()
    """The messages before the question, a system message first."""
    lost: Mapping[str, str] | None = None
    """The parts that a row cannot carry: a reason for a reject -> a description of the part."""


def context_text(conversation: AskedConversation) -> str | None:
    """Return the context as JSON text for the row, or None without context."""
    return dump_json(conversation.context) if conversation.context else None


def messages_of(value: Any) -> list[RawMessage]:
    """Return the messages in a value, which is a list or its JSON text; empty for other values.

    Messages in the form of ShareGPT (`from`, `value`) are converted.
    """
    if isinstance(value, str) and _MESSAGES_TEXT.match(value):
        structure = parse_literal(value)
        named = isinstance(structure, list) and all(
            isinstance(each, Mapping) and ("role" in each or "from" in each) for each in structure
        )
        value = structure if named else None
    if not (isinstance(value, list) and value and all(isinstance(each, Mapping) for each in value)):
        return []
    return [
        {**each, "role": each["from"], "content": each.get("value")} if "from" in each and "role" not in each else each
        for each in value
    ]


def is_unread_conversation(value: Any) -> bool:
    """Return whether a text begins like a list of messages, but cannot be read as one."""
    return isinstance(value, str) and _MESSAGES_TEXT.match(value) is not None and not messages_of(value)


def read_prompt(value: Any) -> tuple[Any, bool]:
    """Return the question in the value of a prompt column, and whether the value is a list of messages.

    The question is the last user message, with its parts joined. Without a user message, it is the last message with a
    role other than system and assistant.
    """
    messages = messages_of(value)
    if not messages:
        return value, False
    asked = _position_of_question(messages)
    return None if asked is None else _text_in(messages[asked].get("content")), True


def read_conversation(
    value: Any, beside: Sequence[Mapping[str, Any]], taken: Set[str] = frozenset(), *, carry: bool = True
) -> AskedConversation:
    """Return the question of a record, its context, and the parts that a row cannot carry.

    - `value`: the value of the prompt's column
    - `beside`: the record, and the structs in it that have the prompt
    - `taken`: columns with another role
    - `carry`: whether rows carry the context
    """
    question, is_chat = read_prompt(value)
    messages = messages_of(value)
    asked = _position_of_question(messages)
    systems, turns = _context(messages, asked)
    lost = dict(_lost_messages(messages))
    for values in beside:
        for name, reason in _lost_columns(values, is_chat):
            if name not in taken:
                lost.setdefault(reason, f"column {name!r}")
        free = [name for name in values if name not in taken]
        systems += [
            text for name in free if name in SYSTEM_COLUMNS and (text := _system_text(name, values[name])) is not None
        ]
        for name in free:
            if name in _HISTORIES or (name == "context" and messages_of(parse_structure(values[name]))):
                around = _in_history(values[name])
            elif name in CONVERSATIONS:
                around = _around(values[name], question)
            elif name == REQUEST and isinstance(request := values[name], Mapping):
                around = _in_request(request, question)
            else:
                continue
            systems += [message["content"] for message in around.context if message["role"] == SYSTEM]
            turns = turns or [message for message in around.context if message["role"] != SYSTEM]
            for reason, what in (around.lost or {}).items():
                lost.setdefault(reason, f"{what} in column {name!r}")
    system = "\n\n".join(dict.fromkeys(systems))
    context: list[Message] = [*([Message(role=SYSTEM, content=system)] if system else []), *turns]
    if not carry:
        if system:
            lost.setdefault("system_message", f"a system message ({system!r:.60})")
        if turns:
            lost.setdefault("earlier_turns", f"{len(turns)} messages before the last question")
        context = []
    is_answered = asked is not None and asked + 1 < len(messages)
    return AskedConversation(question, is_chat, is_answered, tuple(context), lost)


def _context(messages: Sequence[RawMessage], asked: int | None) -> tuple[list[str], list[Message]]:
    """Return the texts of the system messages, and the turns before the question."""
    texts = [
        (position, _role(message), text_of(_text_in(message.get("content"))))
        for position, message in enumerate(messages)
    ]
    systems = [
        text for position, role, text in texts if role in SYSTEM_ROLES and text is not None and position != asked
    ]
    turns: list[Message] = [
        {"role": role, "content": text}
        for position, role, text in texts
        if role in ("user", "assistant") and text is not None and asked is not None and position < asked
    ]
    return systems, turns


def _around(value: Any, question: Any) -> AskedConversation:
    """Return the context from a conversation in another column than the prompt's.

    The prompt is the user message with the same text, or the only user message.
    """
    structure = parse_structure(value)
    messages = messages_of(structure if isinstance(structure, list) else None)
    users = [position for position, message in enumerate(messages) if _role(message) == "user"]
    asked_for = normalise_for_id(question) if isinstance(question, str) else None
    same = [position for position in users if _normalised(messages[position]) == asked_for]
    if len(users) > 1 and not same:
        return AskedConversation(None, lost={"earlier_turns": "messages that do not include the prompt"})
    asked = same[-1] if same else _position_of_question(messages)
    systems, turns = _context(messages, asked)
    lost = dict(_lost_messages(messages if asked is None else messages[: asked + 1]))
    messages_before = (*(Message(role=SYSTEM, content=text) for text in systems), *turns)
    return AskedConversation(None, context=messages_before, lost=lost)


def _in_request(request: Mapping[str, Any], question: Any) -> AskedConversation:
    around = _around(request.get("input"), question)
    lost = {reason: repr(name) for name, reason in _lost_columns(request, True)} | dict(around.lost or {})
    system = _system_text("instructions", request.get("instructions"))
    first = (Message(role=SYSTEM, content=system),) if system is not None else ()
    return AskedConversation(None, context=(*first, *around.context), lost=lost)


def _in_history(value: Any) -> AskedConversation:
    """Return the messages of a history, and the parts that a row cannot carry."""
    messages = messages_of(parse_structure(value))
    systems, turns = _context(messages, len(messages))
    context = (*(Message(role=SYSTEM, content=text) for text in systems), *(turns or _history(value)))
    question: RawMessage = {"role": "user", "content": "?"}
    return AskedConversation(None, context=context, lost=dict(_lost_messages([*messages, question])))


def _normalised(message: RawMessage) -> str | None:
    text = _text_in(message.get("content"))
    return normalise_for_id(text) if isinstance(text, str) else None


def _history(value: Any) -> list[Message]:
    """Return the turns of a history: messages, or pairs of a message and its answer."""
    structure = parse_structure(value)
    if messages := messages_of(structure):
        return _context(messages, len(messages))[1]
    pairs = structure if isinstance(structure, list) else []
    if not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
        return []
    return [
        {"role": role, "content": text}
        for pair in pairs
        for role, content in zip(("user", "assistant"), pair, strict=True)
        if (text := text_of(content)) is not None
    ]


def _text_in(content: Any) -> Any:
    """Return the joined texts of a message's parts. Content without parts is returned unchanged."""
    if not isinstance(content, list):
        return content
    parts = [part.get("text") if isinstance(part, Mapping) else part for part in content]
    return "\n".join(part for part in parts if isinstance(part, str))


def read_samples(value: Any) -> list[str | None]:
    """Return the texts of a row's responses, with None for missing ones.

    "x" -> ["x"], "" -> [""], ["x", "y"] -> ["x", "y"], ["x", null] -> ["x", None], null -> []. The response in a
    conversation is its last message by the assistant. A list of conversations has one response for each. Parts of a
    message (`type`, `text`) are joined.
    """
    if value is None or value is MISSING:
        return []
    if not isinstance(value, list | tuple):
        return [read_response(value)]
    is_one = any(name in message for message in messages_of(value) for name in ("role", "from", "type"))
    return [read_response(value)] if is_one else [read_response(sample) for sample in value]


def read_response(value: Any) -> str | None:
    """Return the text of a response, or of the last assistant message of a conversation; None without a text."""
    messages = messages_of([value] if isinstance(value, Mapping) else value)
    if not messages:
        return value if isinstance(value, str) else text_of(value)
    if not any(_role(message) for message in messages):
        return text_of(_text_in([{"text": message.get("content"), **message} for message in messages]))
    replies = [message for message in messages if _role(message) == "assistant"]
    return (text_of(_text_in(replies[-1].get("content"))) or "") if replies else None


def _role(message: RawMessage) -> str:
    """Return the role of a message in lower case, by its name in chat templates; empty without a role."""
    role = str(message.get("role") or "").strip().lower()
    return _ROLES.get(role, role)


def _position_of_question(messages: Sequence[RawMessage]) -> int | None:
    users = [position for position, message in enumerate(messages) if _role(message) == "user"]
    if users:
        asking = [position for position in users if _holds_something(messages[position].get("content"))]
        return (asking or users)[-1]
    others = [position for position, message in enumerate(messages) if _role(message) not in _ANSWERING]
    return others[-1] if others else None


def _lost_messages(messages: Sequence[RawMessage]) -> Iterator[tuple[str, str]]:
    """Yield the parts of messages, up to the question, that a row cannot carry."""
    asked = _position_of_question(messages)
    for position, message in enumerate(messages):
        before = asked is not None and position < asked
        if position == asked or before:
            yield from _lost_parts(
                message.get("content"), "the question" if position == asked else "an earlier message"
            )
        if before and (message.get("tool_calls") or _role(message) in ("tool", "function")):
            yield "tools", "a call of a tool in an earlier message"
        elif before and _role(message) not in _CARRIED and _holds_something(message.get("content")):
            yield "earlier_turns", f"an earlier message by {_role(message)!r:.40}"
        for name, reason in _lost_columns(message, in_conversation=True):
            yield reason, f"{name!r} in a message"


def _lost_parts(content: Any, where: str) -> Iterator[tuple[str, str]]:
    for part in content if isinstance(content, list) else ():
        if not isinstance(part, Mapping):
            continue
        kind = str(part.get("type") or "")
        if "image" in kind or any("image" in str(key) and _holds_something(value) for key, value in part.items()):
            yield "pictures", f"a picture in {where}"
        elif kind not in TEXT_PARTS:
            yield "media", f"a part of type {kind!r:.40} in {where}"


def _lost_columns(values: Mapping[str, Any], in_conversation: bool) -> Iterator[tuple[str, str]]:
    for name in sorted(values.keys() & _BESIDE.keys()):
        reason, is_lost = _BESIDE[name]
        if is_lost(values[name]):
            yield name, reason
    if in_conversation and _are_definitions(values.get("functions")):
        yield "functions", "tools"


def _holds_something(value: Any) -> bool:
    """Return whether a value, or a JSON text, contains anything other than nulls, zeros and spaces."""
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
"""A name without spaces, such as `gpt-4o`."""


def _system_text(column: str, value: Any) -> str | None:
    """Return the system message in a column, or None. The columns `system` and `instructions` may also have names. `Be
    brief.` and `Answer in French` are messages; `gpt-4o`, `GPT 4 turbo` and `metric system` are names."""
    if not isinstance(value, str) or not (text := value.strip()):
        return None
    if column in _STATED:
        return value
    is_message = _ENDS_SENTENCE.search(text) or _ASKS.match(text) or len(_WORDS.findall(text)) >= MESSAGE_WORDS
    return value if is_message else None


_STATED = ("system_prompt", "system_message")
"""Columns whose texts are always messages."""
_ENDS_SENTENCE = re.compile(r"[.!?:。！？：…]['\"”’)]*\Z|\n")
"""The end of a sentence, or a line end, as in a message."""
_ASKS = re.compile(
    r"(?:you|your|be|act|answer|reply|respond|return|give|use|think|reason|solve|show|work|write|put|explain|please|let"
    r"|keep|follow|always|never|only|do|don't|output|format|finish|end|box|请|你|用|回答|在)(?![a-z])",
    re.IGNORECASE,
)
"""The beginning of an instruction."""
_WORDS = re.compile(r"[^\W\d_]+")
MESSAGE_WORDS = 5
"""The minimum number of words of a message. Shorter texts are names."""


def _is_unread_history(value: Any) -> bool:
    structure = parse_structure(value)
    is_text = isinstance(structure, str) and re.search(r"^\s*\w+:", structure, re.MULTILINE) is not None
    if not (is_text or (isinstance(structure, list) and _holds_something(structure))):
        return False
    return is_text or not (_history(value) or messages_of(structure))


def _are_definitions(value: Any) -> bool:
    """Return whether a value, or a JSON text, defines tools. Plain words, such as categories, define none."""
    structure = parse_structure(value)
    parts = [structure, *structure.values()] if isinstance(structure, Mapping) else structure
    return isinstance(parts, list) and any(_is_definition(parse_structure(part)) for part in parts)


def _is_definition(value: Any) -> bool:
    keys = ("function", "name", "type", "description", "parameters", "input_schema", "inputSchema")
    return isinstance(value, Mapping) and any(value.get(key) for key in keys)


PICTURES = (
    *("images", "image", "image_1", "Image", "picture", "pictures", "Picture", "decoded_image"),
    *("image_path", "image_url", "img"),
)
"""Columns of pictures."""
_BESIDE: dict[str, tuple[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(_HISTORIES, ("earlier_turns", _is_unread_history)),
    **dict.fromkeys(PICTURES, ("pictures", _holds_something)),
    **dict.fromkeys(("audio", "audios", "video", "videos", "multi_modal_data"), ("media", _holds_something)),
    "tools": ("tools", _are_definitions),
}
"""Columns that a row cannot carry: the reason for a reject, and a function that tests a value of the column."""
