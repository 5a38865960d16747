"""What a chat template does to the past, and how a model thinks: what multi-turn training has to respect.

    truegold template MODEL

tries the template on small dialogues, so that it need not be known: whether earlier thoughts stay, whether they survive
a tool call, whether a turn is, as it was held, the beginning of the next prompt, whether the prompt opens a thought.
It looks into the vocabulary for think tags of one token, and at the sampling that the checkpoint states.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from truegold.train.turns.environment import Message
from truegold.train.turns.messages import THINK_END, THINK_START
from truegold.train.turns.template import TurnTemplate
from truegold.verifiers import ConfigError

TAG_PAIRS = (
    (THINK_START, THINK_END),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("[THINK]", "[/THINK]"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
)
"""Pairs of tags that models think between."""
STATED = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")
"""What of generation_config.json tells how its makers sample."""
THOUGHT, ANSWER = "quietly so", "It is seven."


@dataclass(frozen=True)
class TemplateProfile:
    """What a template does."""

    has_system: bool
    """Whether it takes a system message."""
    keeps_turns: bool
    """Whether an answer without a thought stays as it was written when a question follows."""
    keeps_thoughts: bool | None
    """Whether its thought does too; None where the template has no room for thoughts."""
    keeps_thoughts_in_tool_loops: bool | None
    """Whether the thought before a tool call is still there when the tool has answered; None where the template has no
    tools or no thoughts."""
    opens_thought: bool
    """Whether the prompt itself opens a thought, so that completions begin within one."""
    doubles_bos: bool
    """Whether text of the template gets a second BOS from the tokenizer."""
    think_tags: tuple[str, str] | None
    """The pair of tags that are a token each, the model's own before others."""
    stated_sampling: dict[str, Any]
    """How the checkpoint's makers say that it is sampled."""
    max_positions: int | None
    """The longest context that the model was made for."""

    def advice(self) -> list[str]:
        """Return what training has to respect, a sentence each."""
        lines = []
        if self.keeps_thoughts is False:
            lines.append(
                "Earlier thoughts are dropped from the prompt: every turn is a segment of its own, as train.turns has "
                "it; a text with all thoughts in one sequence teaches contexts that never come."
            )
        if self.keeps_thoughts_in_tool_loops is False:
            lines.append("Thoughts are dropped at each tool call too, so that segments are as short as a call.")
        if not self.keeps_turns:
            lines.append("Even a plain answer is written otherwise once a question follows: no turn extends another.")
        if self.opens_thought:
            lines.append("Completions begin within a thought: examples must not open it again.")
        if self.doubles_bos:
            lines.append("Encode the template's text without special tokens; truegold does.")
        if self.think_tags is None:
            lines.append("No pair of think tags is a token each: a new pair has to be learned letter by letter.")
        if self.stated_sampling.get("temperature") not in (None, 1.0):
            lines.append(
                f"It is sampled at temperature {self.stated_sampling['temperature']:g}; rollouts are at 1 all the same "
                "(train.sampling), and evaluation as stated (train.evaluation)."
            )
        return lines


def profile_template(template: TurnTemplate, model: Path) -> TemplateProfile:
    """Return what the template of the checkpoint in folder `model` does."""
    question: list[Message] = [{"role": "user", "content": "What is 3+4?"}]
    prompt = template.render(question)
    thought = {"role": "assistant", "content": ANSWER, "reasoning_content": THOUGHT}
    last_thought = _renders(template, [*question, thought], generates=False)
    takes_thoughts = last_thought is not None and THOUGHT in last_thought
    after_thought = _renders(template, [*question, thought, *question])
    tags = [pair for pair in TAG_PAIRS if all(_is_token(template, tag) for tag in pair)]
    chat_template = str(template.tokenizer.chat_template)
    used = [pair for pair in tags if pair[0] in chat_template or pair[1] in chat_template]
    return TemplateProfile(
        has_system=_renders(template, [{"role": "system", "content": "Be brief."}, *question]) is not None,
        keeps_turns=_keeps_turns(template, question),
        keeps_thoughts=(after_thought is not None and THOUGHT in after_thought) if takes_thoughts else None,
        keeps_thoughts_in_tool_loops=_keeps_in_tool_loops(template, question) if takes_thoughts else None,
        opens_thought=prompt.rstrip().endswith(tuple(start for start, _ in TAG_PAIRS)),
        doubles_bos=_doubles_bos(template, prompt),
        think_tags=next(iter([*used, *tags]), None),
        stated_sampling=_stated(model / "generation_config.json", STATED),
        max_positions=_stated(model / "config.json", ("max_position_embeddings",)).get("max_position_embeddings"),
    )


def _renders(template: TurnTemplate, messages: Sequence[Message], *, generates: bool = True) -> str | None:
    """Return the text of messages, None where the template refuses them."""
    try:
        return template.render(messages, add_generation_prompt=generates)
    except ConfigError:
        return None


def _keeps_turns(template: TurnTemplate, question: Sequence[Message]) -> bool:
    """Return whether prompt and answer, with the token that ends it, are the beginning of the next prompt."""
    answer = {"role": "assistant", "content": ANSWER}
    following = _renders(template, [*question, answer, *question])
    stop = template.decode(template.stop_token_ids[:1])
    return following is not None and following.startswith(f"{template.render(question)}{ANSWER}{stop}")


def _keeps_in_tool_loops(template: TurnTemplate, question: Sequence[Message]) -> bool | None:
    """Return whether a thought survives its own tool call; None where the template shows no calls."""
    for arguments in ({"what": "cup"}, '{"what": "cup"}'):
        call = {"id": "functions.look:0", "type": "function", "function": {"name": "look", "arguments": arguments}}
        turn = {"role": "assistant", "content": "", "reasoning_content": THOUGHT, "tool_calls": [call]}
        answer = {"role": "tool", "content": "red", "tool_call_id": call["id"], "name": "look"}
        text = _renders(template, [*question, turn, answer])
        if text is not None and "look" in text:
            return THOUGHT in text
    return None


def _doubles_bos(template: TurnTemplate, prompt: str) -> bool:
    bos = template.tokenizer.bos_token_id
    return bos is not None and list(template.tokenizer(prompt)["input_ids"][:2]) == [bos, bos]


def _is_token(template: TurnTemplate, tag: str) -> bool:
    return len(template.tokenizer(tag, add_special_tokens=False)["input_ids"]) == 1


def _stated(path: Path, names: Sequence[str]) -> dict[str, Any]:
    settings = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {name: settings[name] for name in names if settings.get(name) is not None}
