"""From what the model sampled to the message that its template takes: thinking, tool calls and the rest apart.

    <think>two apples</think>It has 2.<|im_end|>       {"reasoning_content": "two apples", "content": "It has 2."}
    <tool_call>{"name": "look", "arguments": {}}</tool_call>       {"content": "", "tool_calls": [{"function": ...}]}

What is not laid out as the format says stays in the content as it was written.
"""

from __future__ import annotations

import json
import re
from typing import Any

from truegold.train.turns.environment import Message

THINK_START, THINK_END = "<think>", "</think>"
_CALL_END = "</tool_call>"
_CALL_IN_TAGS = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)
_CALL_SECTION = re.compile(r"<\|tool_calls_section_begin\|>(.*?)<\|tool_calls_section_end\|>", re.DOTALL)
_CALL_IN_SECTION = re.compile(
    r"<\|tool_call_begin\|>\s*(?P<id>[^<]*?)\s*<\|tool_call_argument_begin\|>(?P<arguments>.*?)<\|tool_call_end\|>",
    re.DOTALL,
)
_CALL_NAME = re.compile(r"(?:functions\.)?(?P<name>.+?)(?::\d+)?")


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


def _split_calls(text: str) -> tuple[str, list[dict[str, Any]]]:
    """Return the text without its tool calls, and these; all or none are taken."""
    section = _CALL_SECTION.search(text)
    if section is not None:
        calls = [_named_call(match["id"], match["arguments"]) for match in _CALL_IN_SECTION.finditer(section[1])]
        rest = text[: section.start()] + text[section.end() :]
    else:
        # Behind the last end tag there is no call, and a text of nothing but start tags would take squared time.
        end = text.rfind(_CALL_END) + len(_CALL_END) if _CALL_END in text else 0
        calls = [_json_call(match[1]) for match in _CALL_IN_TAGS.finditer(text, 0, end)]
        rest = _CALL_IN_TAGS.sub("", text[:end]) + text[end:]
    read = [call for call in calls if call is not None]
    if not read or len(read) < len(calls):
        return text, []
    return rest.strip("\n"), read


def _json_call(text: str) -> dict[str, Any] | None:
    """Return the call that stands as JSON between Qwen's and Hermes' tags."""
    call = _read_json(text)
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return None
    arguments = call.get("arguments", {})
    if not isinstance(arguments, dict):
        # Templates and environments go through the arguments by name.
        return None
    return {"type": "function", "function": {"name": call["name"], "arguments": arguments}}


def _read_json(text: str) -> Any:
    """Return the value of a JSON text, None where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        # A model may well write brackets and nothing else.
        return None


def _named_call(call_id: str, arguments: str) -> dict[str, Any] | None:
    """Return the call that Kimi writes as `functions.NAME:INDEX` and JSON."""
    match = _CALL_NAME.fullmatch(call_id)
    if match is None or not isinstance(_read_json(arguments), dict):
        return None
    # Kimi's template writes the arguments as the text that they came as.
    return {"id": call_id, "type": "function", "function": {"name": match["name"], "arguments": arguments.strip()}}
