"""The chat template of a tokenizer for dialogues: from messages to token ids, and from sampled text back to a message.

    sampled text                                                message
    <think>two apples</think>It has 2.<|im_end|>                {"reasoning_content": "two apples", "content": ...}
    <tool_call>{"name": "look", "arguments": {}}</tool_call>    {"content": "", "tool_calls": [{"function": ...}]}

Text that does not follow a known format stays in the content unchanged.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from truegold.train.turns.environment import DEEPEST, HALF_PAIR, Message
from truegold.verifiers import ConfigError, SetupError


class TurnTemplate:
    """Renders dialogues with a tokenizer's chat template, and parses sampled turns."""

    def __init__(
        self,
        tokenizer: Any,
        stop_token_ids: Sequence[int],
        system: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Use the chat template of a tokenizer. Raises SetupError if it has none.

        system: the system message with which every dialogue begins. arguments: arguments of the template, such as
        `enable_thinking`. tools: the JSON schemas of the environment's tools.
        """
        if tokenizer.chat_template is None:
            raise SetupError(
                "This model's tokenizer has no chat template, which dialogues need.",
                "Use the instruction-tuned checkpoint, or put chat_template.jinja into the model's folder.",
            )
        self.tokenizer = tokenizer
        self.stop_token_ids = tuple(stop_token_ids)
        self._system = [{"role": "system", "content": system}] if system else []
        self._arguments = dict(arguments or {})
        # Some tokenizers have no table of added tokens.
        added = getattr(tokenizer, "added_tokens_decoder", None) or {}
        special = {token.content: index for index, token in added.items() if token.special}
        special |= {token: tokenizer.convert_tokens_to_ids(token) for token in tokenizer.all_special_tokens}
        longest_first = sorted((token for token in special if len(token) > 1), key=len, reverse=True)
        self._special_ids = frozenset(special[token] for token in longest_first)
        # Without special tokens, `(?!)` matches nothing.
        self._special = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")
        self._tools = self.escape(list(tools)) or None

    def render(self, messages: Sequence[Message], *, add_generation_prompt: bool = True) -> str:
        """Return the text of a dialogue. Raises ConfigError with the template's error if it refuses the messages."""
        from jinja2 import TemplateError

        try:
            return str(
                self.tokenizer.apply_chat_template(
                    [*self._system, *messages],
                    tools=self._tools,
                    tokenize=False,
                    add_generation_prompt=add_generation_prompt,
                    **self._arguments,
                )
            )
        except (TemplateError, TypeError) as error:
            roles = ", ".join(message["role"] for message in messages)
            raise ConfigError(f"The model's chat template refuses a dialogue of {roles}: {error}") from error
        except Exception as error:
            # Templates are programs of model authors and may raise any exception.
            raise _unwritable(messages, error) from error

    def encode(self, messages: Sequence[Message], *, add_generation_prompt: bool = True) -> tuple[int, ...]:
        """Return the token ids of the prompt of the next turn.

        Raises ConfigError if the template or the tokenizer refuses the messages.
        """
        text = self.render(messages, add_generation_prompt=add_generation_prompt)
        try:
            return tuple(self.tokenizer(text, add_special_tokens=False)["input_ids"])
        except Exception as error:
            # An error in these messages must not end the run, so only this dialogue ends.
            raise _unwritable(messages, error) from error

    def escape(self, value: Any) -> Any:
        """Return a value with a space inserted into every special token in its texts: `<|im_end|>` -> `< |im_end|>`.

        An environment may return text from other sources. Special tokens in such a text could end the message, and
        begin one of the user or the model.
        """
        if isinstance(value, str):
            return self._special.sub(lambda match: f"{match[0][0]} {match[0][1:]}", value)
        if isinstance(value, Mapping):
            return {self.escape(name): self.escape(part) for name, part in value.items()}
        if isinstance(value, list | tuple):
            return [self.escape(part) for part in value]
        return value

    def decode(self, token_ids: Sequence[int]) -> str:
        """Return the text of token ids, special tokens included."""
        return str(self.tokenizer.decode(list(token_ids), skip_special_tokens=False))

    def read(self, prompt: Sequence[int], output: Sequence[int]) -> tuple[Message, bool]:
        """Return the sampled token ids `output` as a message, and whether special tokens in its text were escaped."""
        kept = output[:-1] if output and output[-1] in self.stop_token_ids else output
        # Only a tag at the very end of the prompt opens a thought. Other tags are part of the text.
        is_thinking = self.decode(prompt[-16:]).rstrip().endswith(THINK_START)
        text = self._decode_sampled(kept)
        message = read_message(text, is_thinking=is_thinking)
        # JSON may hide a special token, \u003c|im_end|>, so tool calls are escaped after decoding.
        calls = message.get("tool_calls", [])
        plain_calls = self.escape(calls)
        if calls:
            message["tool_calls"] = plain_calls
        return message, text != self.decode(kept) or plain_calls != calls

    def _decode_sampled(self, ids: Sequence[int]) -> str:
        """Return the text of sampled token ids, with special tokens escaped that were sampled as ordinary text. Without
        escaping, such a text becomes a special token in the next prompt."""
        text = self.decode(ids)
        if len(self._special.findall(text)) <= sum(token in self._special_ids for token in ids):
            return text
        runs = groupby(ids, key=lambda token: token in self._special_ids)
        decoded = [(is_special, self.decode(list(run))) for is_special, run in runs]
        return "".join(part if is_special else self.escape(part) for is_special, part in decoded)


def _unwritable(messages: Sequence[Message], error: Exception) -> ConfigError:
    """Return the error for messages that the template or tokenizer cannot render."""
    return ConfigError(
        f"A dialogue of {len(messages)} messages cannot be rendered by the model's chat template: "
        f"{type(error).__name__}: {error}"
    )


THINK_START, THINK_END = "<think>", "</think>"
"""The tags around a thought."""
_CALL_START, _CALL_END = "<tool_call>", "</tool_call>"
"""The tags around a tool call of Qwen and Hermes."""
_SECTION_START, _SECTION_END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
"""The tags around all tool calls of Kimi."""
# A call of Kimi: <|tool_call_begin|>functions.look:0<|tool_call_argument_begin|>{"what": "cup"}<|tool_call_end|>
_CALL_HEAD = re.compile(r"\s*<\|tool_call_begin\|>\s*(?P<id>[^<]*?)\s*<\|tool_call_argument_begin\|>")
_CALL_TAIL = re.compile(r"\s*<\|tool_call_end\|>\s*")
_CALL_NAME = re.compile(r"(?:functions\.)?(?P<name>.+?)(?::\d+)?")
_SPACE = re.compile(r"\s*")
_DECODER = json.JSONDecoder()
_Calls = list[dict[str, Any]]


def describe_action(message: Message) -> str:
    """Return a turn as one line: its content, and its tool calls without ids."""
    parts = [message["content"]]
    for call in message.get("tool_calls") or ():
        function = call.get("function", call)
        arguments = function.get("arguments", {})
        written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        parts.append(f"{function.get('name')} {written}")
    return " ".join(" ".join(parts).split())


def read_message(text: str, *, is_thinking: bool = False) -> Message:
    """Return the text of a completion as a message of the assistant.

    text: with special tokens, without the stop token at the end. is_thinking: whether the prompt ended within a
    thought, because the template opens one.
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
    """Return the text after the first thought, and the thought or None. If the thought has no end, it is the whole
    text."""
    stripped = text.lstrip()
    if stripped.startswith(THINK_START):
        stripped = stripped.removeprefix(THINK_START)
    elif not is_thinking:
        return text, None
    thought, _, rest = stripped.partition(THINK_END)
    return rest.lstrip("\n"), thought.strip("\n")


def _split_calls(text: str) -> tuple[str, _Calls]:
    """Return the text without its tool calls, and the tool calls. If one call is invalid, all of them stay in the text.
    A start tag without an end tag after it does not begin a call."""
    start, end, read = _CALL_START, _CALL_END, _read_tagged_call
    section, call = text.find(_SECTION_START), text.find(_CALL_START)
    if section >= 0 and (call < 0 or section < call):
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


def _read_tagged_call(text: str, position: int) -> tuple[_Calls, int] | None:
    """Return a call, written as JSON between the tags of Qwen and Hermes, and the position after it, or None.

    position: the position after the start tag.
    """
    decoded = _decode_json(text, position)
    if decoded is None:
        return None
    call, end = decoded[0], _skip_space(text, decoded[1])
    if not text.startswith(_CALL_END, end) or not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return None
    arguments = call.get("arguments", {})
    if not isinstance(arguments, dict):
        # Templates and environments need arguments by name.
        return None
    function = {"name": call["name"], "arguments": arguments}
    return [{"type": "function", "function": function}], end + len(_CALL_END)


def _read_section(text: str, position: int) -> tuple[_Calls, int] | None:
    """Return the calls of Kimi's section and the position after it, or None if it contains anything but calls.

    position: the position after the start tag. Each call is `functions.NAME:INDEX` and JSON.
    """
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
        # Arguments are kept as text, as Kimi's template expects.
        function = {"name": name["name"], "arguments": text[begin : decoded[1]]}
        calls.append({"id": head["id"], "type": "function", "function": function})
        position = tail.end()
    if not calls or not text.startswith(_SECTION_END, position):
        return None
    return calls, position + len(_SECTION_END)


def _skip_space(text: str, position: int) -> int:
    """Return the position of the next character that is not white space."""
    match = _SPACE.match(text, position)
    assert match is not None
    return match.end()


def _decode_json(text: str, position: int) -> tuple[Any, int] | None:
    """Return the JSON value at a position and the position after it, or None if messages may not have this value."""
    try:
        value, end = _DECODER.raw_decode(text, _skip_space(text, position))
    except (ValueError, RecursionError):
        # A model may write a long run of brackets, which raises RecursionError.
        return None
    return (value, end) if _is_message_value(value) else None


def _is_message_value(value: Any) -> bool:
    """Return whether a JSON value is allowed in messages. It must be nested at most `DEEPEST` levels deep, with valid
    characters and finite numbers."""
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
