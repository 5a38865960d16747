"""From what the model sampled to the message that its template takes: thinking, tool calls and the rest apart.

    <think>two apples</think>It has 2.<|im_end|>       {"reasoning_content": "two apples", "content": "It has 2."}
    <tool_call>{"name": "look", "arguments": {}}</tool_call>       {"content": "", "tool_calls": [{"function": ...}]}

What is not laid out as the format says stays in the content as it was written.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from truegold.train.turns.environment import DEEPEST, HALF_PAIR, Message

THINK_START, THINK_END = "<think>", "</think>"
_CALL_START, _CALL_END = "<tool_call>", "</tool_call>"
_SECTION_START, _SECTION_END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
_CALL_HEAD = re.compile(r"\s*<\|tool_call_begin\|>\s*(?P<id>[^<]*?)\s*<\|tool_call_argument_begin\|>")
_CALL_TAIL = re.compile(r"\s*<\|tool_call_end\|>\s*")
_CALL_NAME = re.compile(r"(?:functions\.)?(?P<name>.+?)(?::\d+)?")
_SPACE = re.compile(r"\s*")
_DECODER = json.JSONDecoder()
_Calls = list[dict[str, Any]]


def describe_action(message: Message) -> str:
    """Return what a turn did in a line: what it said, and its tool calls without their ids."""
    parts = [message["content"]]
    for call in message.get("tool_calls") or ():
        function = call.get("function", call)
        arguments = function.get("arguments", {})
        written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        parts.append(f"{function.get('name')} {written}")
    return " ".join(" ".join(parts).split())


def read_message(text: str, *, is_thinking: bool = False) -> Message:
    """Return the assistant's message that a completion is; text: with special tokens, without the last stop token.

    is_thinking: whether the prompt ended within a thought, as where the template opens one.
    """
    message: Message = {"role": "assistant"}
    text, thought = _split_thought(text, is_thinking)
    if thought is not None:
        message["reasoning_content"] = thought
    text, calls = _split_calls(text)
    message["content"] = text
    if calls:
        message["tool_calls"] = calls
    return message


def _split_thought(text: str, is_thinking: bool) -> tuple[str, str | None]:
    """Return what follows the first thought, and the thought; an unfinished one is all thought."""
    stripped = text.lstrip()
    if stripped.startswith(THINK_START):
        stripped = stripped.removeprefix(THINK_START)
    elif not is_thinking:
        return text, None
    thought, _, rest = stripped.partition(THINK_END)
    return rest.lstrip("\n"), thought.strip("\n")


def _split_calls(text: str) -> tuple[str, _Calls]:
    """Return the text without its tool calls, and these; all or none are taken.

    A start tag behind which there is no end tag begins no call, as where somebody speaks of it or was cut off.
    """
    start, end, read = _CALL_START, _CALL_END, _read_tagged_call
    if _begins_earlier(text, _SECTION_START, _CALL_START):
        start, end, read = _SECTION_START, _SECTION_END, _read_section
    last_end = text.rfind(end)
    calls: _Calls = []
    rest = []
    position = 0
    while -1 < (begin := text.find(start, position)) < last_end:
        rest.append(text[position:begin])
        taken = read(text, begin + len(start))
        if taken is None:
            return text, []
        calls += taken[0]
        position = taken[1]
    if not calls:
        return text, []
    return "".join([*rest, text[position:]]).strip("\n"), calls


def _begins_earlier(text: str, tag: str, other: str) -> bool:
    position, other_position = text.find(tag), text.find(other)
    return position >= 0 and (other_position < 0 or position < other_position)


def _read_tagged_call(text: str, position: int) -> tuple[_Calls, int] | None:
    """Return the call that stands as JSON between Qwen's and Hermes' tags, and where the text goes on behind it; None
    where that is no call. position: behind the start tag."""
    decoded = _decode_json(text, position)
    if decoded is None:
        return None
    call, end = decoded[0], _skip_space(text, decoded[1])
    if not text.startswith(_CALL_END, end) or not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return None
    arguments = call.get("arguments", {})
    if not isinstance(arguments, dict):
        # Templates and environments go through the arguments by name.
        return None
    function = {"name": call["name"], "arguments": arguments}
    return [{"type": "function", "function": function}], end + len(_CALL_END)


def _read_section(text: str, position: int) -> tuple[_Calls, int] | None:
    """Return the calls of Kimi's section, each `functions.NAME:INDEX` and JSON, and where the text goes on behind it;
    None where it is not calls and nothing else. position: behind the start tag."""
    calls: _Calls = []
    while head := _CALL_HEAD.match(text, position):
        name = _CALL_NAME.fullmatch(head["id"])
        begin = _skip_space(text, head.end())
        decoded = _decode_json(text, begin)
        if name is None or decoded is None or not isinstance(decoded[0], dict):
            return None
        tail = _CALL_TAIL.match(text, decoded[1])
        if tail is None:
            return None
        # Kimi's template writes the arguments as the text that they came as.
        function = {"name": name["name"], "arguments": text[begin : decoded[1]]}
        calls.append({"id": head["id"], "type": "function", "function": function})
        position = tail.end()
    if not calls or not text.startswith(_SECTION_END, position):
        return None
    return calls, position + len(_SECTION_END)


def _skip_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    assert match is not None
    return match.end()


def _decode_json(text: str, position: int) -> tuple[Any, int] | None:
    """Return the JSON value that begins at a position, and where it ends; None where there is none that messages can
    hold."""
    try:
        value, end = _DECODER.raw_decode(text, _skip_space(text, position))
    except (ValueError, RecursionError):
        # A model may well write brackets and nothing else.
        return None
    return (value, end) if _is_message_value(value) else None


def _is_message_value(value: Any) -> bool:
    """Return whether a template can write what was decoded, and copying it ends: how deep it is nested, and whether all
    of its texts are characters and all of its numbers are finite."""
    level = [value]
    for _ in range(DEEPEST):
        texts = [part for part in level if isinstance(part, str)]
        texts += [name for part in level if isinstance(part, dict) for name in part]
        if any(map(HALF_PAIR.search, texts)):
            return False
        if not all(math.isfinite(part) for part in level if isinstance(part, float)):
            return False
        level = [
            inner
            for part in level
            if isinstance(part, dict | list)
            for inner in (part.values() if isinstance(part, dict) else part)
        ]
    return not level
