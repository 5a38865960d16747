"""A tokenizer's chat template as dialogues need it: messages to token ids, and a sampled turn back to a message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from truegold.train.turns.environment import Message
from truegold.train.turns.messages import THINK_END, THINK_START, read_message
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
        `enable_thinking`. Raises SetupError for a tokenizer without a template."""
        if tokenizer.chat_template is None:
            raise SetupError(
                "This model's tokenizer has no chat template, so that nobody knows what a dialogue looks like to it.",
                "Take the instruction-tuned checkpoint, or put chat_template.jinja into the model's folder.",
            )
        self.tokenizer = tokenizer
        self.stop_token_ids = tuple(stop_token_ids)
        self._system = [{"role": "system", "content": system}] if system else []
        self._arguments = dict(arguments or {})
        self._tools = list(tools) or None

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

    def encode(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Return the ids of the prompt of the next turn."""
        text = self.render(messages)
        return tuple(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def decode(self, token_ids: Sequence[int]) -> str:
        """Return the text of ids, special tokens included."""
        return str(self.tokenizer.decode(list(token_ids), skip_special_tokens=False))

    def read(self, prompt: Sequence[int], output: Sequence[int]) -> Message:
        """Return the message that was sampled behind a prompt."""
        kept = output[:-1] if output and output[-1] in self.stop_token_ids else output
        tail = self.decode(prompt[-16:])
        is_thinking = tail.rfind(THINK_START) > tail.rfind(THINK_END)
        return read_message(self.decode(kept), is_thinking=is_thinking)
