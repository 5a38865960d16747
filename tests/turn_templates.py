"""Chat templates of the kinds that edit what was before, written for the tests, and a scripted model to speak them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer

from truegold.pipeline.engines.base import Completion, Request, SamplingParams, TakeRequests
from truegold.train.turns.template import TurnTemplate

CHATML = """\
{%- for message in messages -%}
<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor -%}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif -%}"""
"""Keeps everything."""

QWEN3 = """\
{%- set ns = namespace(last_user=-1) -%}
{%- for message in messages -%}
{%- if message.role == 'user' %}{% set ns.last_user = loop.index0 %}{% endif -%}
{%- endfor -%}
{%- for message in messages -%}
<|im_start|>{{ message.role }}
{% if message.role == 'assistant' and message.reasoning_content and loop.index0 > ns.last_user -%}
<think>
{{ message.reasoning_content }}
</think>

{% endif -%}
{{ message.content }}<|im_end|>
{% endfor -%}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif -%}"""
"""Drops the thoughts before the last message of the user's, as Qwen3's does."""

KIMI = """\
{%- for message in messages -%}
<|im_start|>{{ message.role }}
{% if message.role == 'assistant' -%}
<think>{% if loop.last %}{{ message.reasoning_content }}{% endif %}</think>{{ message.content }}
{%- if message.tool_calls %}<|tool_calls_section_begin|>
{%- for call in message.tool_calls -%}
<|tool_call_begin|>{{ call.id }}<|tool_call_argument_begin|>{{ call.function.arguments }}<|tool_call_end|>
{%- endfor -%}
<|tool_calls_section_end|>{% endif -%}
{%- else -%}
{{ message.content }}
{%- endif -%}
<|im_end|>
{% endfor -%}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif -%}"""
"""Calls tools in a section of its own, and drops the thought of every message that another one follows."""


def turn_template(model: Path, chat_template: str, **options: Any) -> TurnTemplate:
    """Return a template of the tiny model's tokenizer."""
    tokenizer = AutoTokenizer.from_pretrained(str(model))
    tokenizer.chat_template = chat_template
    return TurnTemplate(tokenizer, (tokenizer.eos_token_id,), **options)


class ScriptedTurns:
    """An engine that says, turn by turn, what a function of the prompt's text says."""

    def __init__(self, template: TurnTemplate, speak: Any, max_model_len: int = 4096) -> None:
        self.template, self.speak, self.max_model_len = template, speak, max_model_len
        self.prompts: list[tuple[int, ...]] = []
        self.seeds: list[int] = []

    def complete(self, prompt: Sequence[int]) -> Completion:
        text = self.speak(self.template.decode(prompt))
        ids = (*self.template.tokenizer(text, add_special_tokens=False)["input_ids"], self.template.stop_token_ids[0])
        return Completion(ids, tuple(-0.5 for _ in ids), "stop")

    def stream(self, take: TakeRequests, sampling: SamplingParams) -> Iterator[tuple[Request, Completion]]:
        while (requests := take(64)) is not None:
            for request in requests:
                self.prompts.append(request.prompt)
                self.seeds.append(request.seed)
                yield request, self.complete(request.prompt)
