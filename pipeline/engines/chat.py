"""Encodes problems as the token ids of a prompt, and decodes completions into text.

    "What is 2+3?"  --chat template-->  "<|im_start|>user\\nWhat is 2+3?<|im_end|>\\n<|im_start|>assistant\\n"  -->  ids

The text of the template is encoded without adding special tokens, so that the prompt has only one BOS token.

`ask_model` and `ask_pairs` send encoded prompts to an engine, and return the replies as text.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Protocol

from truegold.pipeline.config.engines import ChatConfig
from truegold.pipeline.config.stages import AskedModelConfig
from truegold.pipeline.engines.base import Completion, Engine, SamplingParams
from truegold.pipeline.sources.hub import quick_hub
from truegold.pipeline.tables.rows import context_of
from truegold.verifiers import SetupError
from truegold.verifiers.conversation import SYSTEM, Message, write_out

BYTES_A_TOKEN = 4
"""The number of bytes per token, to estimate the length of a text without a tokenizer."""
ID_CHARS = 32
"""The number of hexadecimal digits of a prompt's id."""


class PromptEncoder(Protocol):
    """Encodes problems and decodes completions for one model."""

    @property
    def stop_token_ids(self) -> tuple[int, ...]:
        """The tokens that end a completion."""

    @property
    def vocabulary(self) -> int:
        """The size of the vocabulary: every token id is below it."""

    def encode(self, problem: str, context: Sequence[Message] = ()) -> list[int]:
        """Return the ids of the whole prompt, including chat template and special tokens.

        `context` has the messages before the problem. A system message in it replaces the configured one.
        """

    def encode_completion(self, text: str) -> list[int]:
        """Return the ids of a completion to train on, with the end-of-turn token at its end."""

    def decode(self, token_ids: Sequence[int]) -> str:
        """Return a completion's text, without special tokens."""


class ChatEncoder:
    """The encoder of a Hugging Face tokenizer."""

    def __init__(
        self, tokenizer: Any, chat: ChatConfig, stop_token_ids: tuple[int, ...], model_tokens: int = 0
    ) -> None:
        """Make an encoder. `model_tokens` is the size of the model's output head, often above the tokenizer's size."""
        self.tokenizer = tokenizer
        self.vocabulary = max(len(tokenizer), model_tokens)
        self._decodes_plainly = _decodes_plainly(tokenizer)
        self._chat = chat
        self._templated = chat.use_template and tokenizer.chat_template is not None
        self.stop_token_ids = stop_token_ids
        self._check_single_bos()

    def encode(self, problem: str, context: Sequence[Message] = ()) -> list[int]:
        """Return the ids of the prompt: by the tokenizer's template or, without a template, as plain text.

        Raises SetupError if the template rejects the messages.
        """
        messages = _messages(problem, context, self._chat)
        if not self._templated:
            turns = write_out(messages) if any(message["role"] == "assistant" for message in messages) else None
            text = turns or "\n\n".join(message["content"] for message in messages)
            return list(self.tokenizer(text)["input_ids"])
        try:
            text = self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        except Exception as error:
            # A template is code of the model's author. It may raise any exception.
            preposition, change = ("with", "Leave out") if messages[0]["role"] == SYSTEM else ("without", "Set")
            remedy = "Keep the last user message alone (data.last_turn_only)" if context else f"{change} chat.system"
            raise SetupError(
                f"The model's chat template refuses a problem {preposition} a system message: {error}",
                f"{remedy}, if the error names that message, or set chat.use_template: false.",
            ) from error
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def encode_completion(self, text: str) -> list[int]:
        """Return the completion's ids with the first stop token at the end."""
        return [*self.tokenizer(text, add_special_tokens=False)["input_ids"], self.stop_token_ids[0]]

    def decode(self, token_ids: Sequence[int]) -> str:
        """Return the text without special tokens."""
        if self._decodes_plainly:
            # The tokenizer's own `decode` returns the same text, but checks every id and takes four times as long.
            return str(self.tokenizer.backend_tokenizer.decode(token_ids, skip_special_tokens=True))
        return str(self.tokenizer.decode(list(token_ids), skip_special_tokens=True))

    def _check_single_bos(self) -> None:
        bos = self.tokenizer.bos_token_id
        ids = self.encode("1+1=?")
        if bos is not None and ids[:2] == [bos, bos]:
            raise SetupError(
                "The prompt starts with two BOS tokens: the chat template and the tokenizer both add one.",
                "Set chat.use_template: false, or correct the tokenizer's template.",
            )


class ByteEncoder:
    """The encoder of engines without a tokenizer. Tokens are bytes, and token 256 is the end of the text."""

    END = 256

    def __init__(self, chat: ChatConfig) -> None:
        self._chat = chat
        self.stop_token_ids = (self.END,)
        self.vocabulary = self.END + 1

    def encode(self, problem: str, context: Sequence[Message] = ()) -> list[int]:
        """Return the bytes of the context and the user message. The configured system message is left out."""
        user = self._chat.user.replace("{prompt}", problem)
        return list((write_out([*context, Message(role="user", content=user)]) if context else user).encode())

    def encode_completion(self, text: str) -> list[int]:
        """Return the text's bytes and the end token."""
        return [*text.encode(), self.END]

    def decode(self, token_ids: Sequence[int]) -> str:
        """Return the text of the bytes, without the end token."""
        return bytes(token for token in token_ids if token < self.END).decode("utf-8", "replace")


class MessageEncoder(ByteEncoder):
    """The encoder of models behind a chat API: a prompt is the bytes of its messages as JSON."""

    def encode(self, problem: str, context: Sequence[Message] = ()) -> list[int]:
        """Return the bytes of the messages as JSON."""
        return list(json.dumps(_messages(problem, context, self._chat), ensure_ascii=False).encode(errors="replace"))


def prompt_id(text: str) -> str:
    """Return the id of a prompt in files of replies: the first half of the SHA-256 of the user's message, as hex
    digits."""
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:ID_CHARS]


def encode_row(encoder: PromptEncoder, row: Mapping[str, Any]) -> list[int]:
    """Return the ids of a row's prompt, with its context."""
    return encoder.encode(row["prompt"], context_of(row))


def _messages(problem: str, context: Sequence[Message], chat: ChatConfig) -> list[Message]:
    has_system = any(message["role"] == SYSTEM for message in context)
    systems = [Message(role=SYSTEM, content=chat.system)] if chat.system and not has_system else []
    return [*systems, *context, Message(role="user", content=chat.user.replace("{prompt}", problem))]


def load_encoder(model: Path, chat: ChatConfig) -> ChatEncoder:
    """Return the encoder of the checkpoint in folder `model`. Raises SetupError if its tokenizer cannot be loaded."""
    from transformers import AutoTokenizer, GenerationConfig

    try:
        with nullcontext() if model.is_dir() else quick_hub():
            tokenizer = AutoTokenizer.from_pretrained(str(model))
    except (OSError, ValueError) as error:
        reason = str(error).split("\n", 1)[0].rstrip(" .:")
        raise SetupError(
            f"{model} has no tokenizer that can be loaded: {reason}.", "Name a folder that has tokenizer.json."
        ) from error
    stops: list[int] = [] if tokenizer.eos_token_id is None else [int(tokenizer.eos_token_id)]
    if (model / "generation_config.json").exists():
        try:
            generation_stops = GenerationConfig.from_pretrained(str(model)).eos_token_id
        except (OSError, ValueError, TypeError) as error:
            reason = str(error).split("\n", 1)[0]
            raise SetupError(f"{model / 'generation_config.json'} cannot be read: {reason}") from error
        if isinstance(generation_stops, list):
            stops += generation_stops
        elif generation_stops is not None:
            stops.append(generation_stops)
    if not stops:
        raise SetupError(f"The tokenizer in {model} names no end-of-sequence token.", "Set eos_token in its config.")
    return ChatEncoder(tokenizer, chat, tuple(dict.fromkeys(stops)), _model_tokens(model))


def _decodes_plainly(tokenizer: Any) -> bool:
    """Return whether the tokenizer's `decode` adds nothing to its backend's, such as a clean-up of spaces."""
    from transformers import PreTrainedTokenizerFast

    kind = type(tokenizer)
    return (
        isinstance(tokenizer, PreTrainedTokenizerFast)
        and kind.decode is PreTrainedTokenizerFast.decode
        and kind._decode is PreTrainedTokenizerFast._decode
        and not tokenizer.clean_up_tokenization_spaces
    )


def _model_tokens(model: Path) -> int:
    """Return the size of the checkpoint's output head, 0 if its configuration does not name it."""
    config = model / "config.json"
    settings = json.loads(config.read_text(encoding="utf-8")) if config.exists() else {}
    return int(settings.get("vocab_size") or settings.get("text_config", {}).get("vocab_size") or 0)


def ask_model(
    prompts: Sequence[Sequence[int]],
    seeds: Sequence[int],
    engine: Engine,
    encoder: PromptEncoder,
    config: AskedModelConfig,
) -> list[str | None]:
    """Return the reply to each encoded prompt, or None for a reply that was cut off."""
    sampling = SamplingParams(config.temperature, 1.0, config.max_tokens, encoder.stop_token_ids)

    def decode_whole(completion: Completion) -> str | None:
        return encoder.decode(completion.token_ids) if completion.finish_reason == "stop" else None

    return [decode_whole(completion) for completion in engine.generate(prompts, sampling, seeds)]


def ask_pairs(
    questions: Sequence[tuple[str, str] | None],
    seeds: Sequence[tuple[int, int]],
    engine: Engine,
    encoder: PromptEncoder,
    config: AskedModelConfig,
) -> list[tuple[str | None, str | None] | None]:
    """Return the two replies to each question, which is asked in two prompts.

    The result is None for a question that is None, and for a question whose prompts leave no room for a reply.
    """
    encoded = {n: [encoder.encode(text) for text in texts] for n, texts in enumerate(questions) if texts is not None}
    fitting = {n: pair for n, pair in encoded.items() if max(map(len, pair)) < engine.max_model_len}
    prompts = [prompt for pair in fitting.values() for prompt in pair]
    prompt_seeds = [seed for n in fitting for seed in seeds[n]]
    replies = ask_model(prompts, prompt_seeds, engine, encoder, config) if fitting else []
    by_question = dict(zip(fitting, zip(replies[::2], replies[1::2], strict=True), strict=True))
    return [by_question.get(n) for n in range(len(questions))]
