"""A tokenizer's chat template as dialogues need it: messages to token ids, and a sampled turn back to a message."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from truegold.train.turns.environment import Message
from truegold.train.turns.messages import THINK_START, read_message
from truegold.verifiers import ConfigError, SetupError


class TurnTemplate:
    """Renders dialogues by the tokenizer's own template."""

    def __init__(
        self,
        tokenizer: Any,
        stop_token_ids: Sequence[int],
        system: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """system: the message that every dialogue begins with. arguments: the template's own, such as
        `enable_thinking`. tools: the environment's schemas. Raises SetupError for a tokenizer without a template."""
        if tokenizer.chat_template is None:
            raise SetupError(
                "This model's tokenizer has no chat template, so that nobody knows what a dialogue looks like to it.",
                "Take the instruction-tuned checkpoint, or put chat_template.jinja into the model's folder.",
            )
        self.tokenizer = tokenizer
        self.stop_token_ids = tuple(stop_token_ids)
        self._system = [{"role": "system", "content": system}] if system else []
        self._arguments = dict(arguments or {})
        special = {token.content: index for index, token in _added_tokens(tokenizer).items() if token.special}
        special |= {token: tokenizer.convert_tokens_to_ids(token) for token in tokenizer.all_special_tokens}
        longest_first = sorted((token for token in special if len(token) > 1), key=len, reverse=True)
        self._special_ids = frozenset(special[token] for token in longest_first)
        # Without any token the pattern matches nothing.
        self._special = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")
        self._tools = self.escape(list(tools)) or None

    def render(self, messages: Sequence[Message], *, add_generation_prompt: bool = True) -> str:
        """Return the text of a dialogue. Raises ConfigError with what the template says against the messages."""
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

    def encode(self, messages: Sequence[Message], *, add_generation_prompt: bool = True) -> tuple[int, ...]:
        """Return the ids of the prompt of the next turn. Raises ConfigError for messages that template or tokenizer
        cannot take."""
        try:
            text = self.render(messages, add_generation_prompt=add_generation_prompt)
            return tuple(self.tokenizer(text, add_special_tokens=False)["input_ids"])
        except ConfigError:
            raise
        except Exception as error:
            # Whatever a template stumbles over is in these messages, and must not end the run with all others.
            raise ConfigError(
                f"A dialogue of {len(messages)} messages cannot be written by the model's chat template: "
                f"{type(error).__name__}: {error}"
            ) from error

    def escape(self, value: Any) -> Any:
        """Return a value with a space behind the first character of every special token that its texts spell.

        An environment passes on what it has read somewhere. As the template's own tokens such a text would end its
        message, and speak for the user or the model.
        """
        if isinstance(value, str):
            return self._special.sub(lambda match: f"{match[0][0]} {match[0][1:]}", value)
        if isinstance(value, Mapping):
            return {self.escape(name): self.escape(part) for name, part in value.items()}
        if isinstance(value, list | tuple):
            return [self.escape(part) for part in value]
        return value

    def decode(self, token_ids: Sequence[int]) -> str:
        """Return the text of ids, special tokens included."""
        return str(self.tokenizer.decode(list(token_ids), skip_special_tokens=False))

    def read(self, prompt: Sequence[int], output: Sequence[int]) -> tuple[Message, bool]:
        """Return the message that was sampled behind a prompt, and whether it spelled special tokens, which were made
        plain text."""
        kept = output[:-1] if output and output[-1] in self.stop_token_ids else output
        # A tag that somebody has spoken of is not at the very end.
        is_thinking = self.decode(prompt[-16:]).rstrip().endswith(THINK_START)
        text = self._decode_sampled(kept)
        message = read_message(text, is_thinking=is_thinking)
        # JSON can spell a token so that no token is seen before it is decoded: \u003c|im_end|>.
        calls = message.get("tool_calls", [])
        plain_calls = self.escape(calls)
        if calls:
            message["tool_calls"] = plain_calls
        return message, text != self.decode(kept) or plain_calls != calls

    def _decode_sampled(self, ids: Sequence[int]) -> str:
        """Return the text of sampled ids; a special token that was spelled letter by letter stays such a text, and does
        not become the token in the next prompt."""
        text = self.decode(ids)
        if len(self._special.findall(text)) <= sum(token in self._special_ids for token in ids):
            return text
        runs = groupby(ids, key=lambda token: token in self._special_ids)
        decoded = [(is_special, self.decode(list(run))) for is_special, run in runs]
        return "".join(part if is_special else self.escape(part) for is_special, part in decoded)


def _added_tokens(tokenizer: Any) -> Mapping[int, Any]:
    """Return the tokens beside the vocabulary by their ids; none for a tokenizer that does not tell."""
    return getattr(tokenizer, "added_tokens_decoder", None) or {}
