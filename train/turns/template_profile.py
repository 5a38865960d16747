"""Profiles a chat template: what it does to earlier turns, and how the model thinks.

    truegold template MODEL

tries the template on small dialogues, so that it need not be known: whether earlier thoughts stay, whether they survive
a tool call, whether a turn is, as it was held, the beginning of the next prompt, whether the prompt opens a thought.
It looks into the vocabulary for think tags of one token, and at the sampling that the checkpoint states.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

from truegold.train.turns.environment import Message
from truegold.train.turns.template import THINK_END, THINK_START, TurnTemplate
from truegold.verifiers import SetupError
from truegold.verifiers.answers.format import KNOWN_PAIRS

ADVICE: Mapping[str, str] = tomllib.loads(
    files("truegold.train.turns").joinpath("template_advice.toml").read_text("utf-8")
)
"""What training has to respect, by what a template does."""
STATED = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")
"""What of generation_config.json tells how its makers sample."""
POSITIONS = "max_position_embeddings"
THOUGHT, ANSWER = "quietly so", "It is seven."
QUESTION: list[Message] = [{"role": "user", "content": "What is 3+4?"}]
SYSTEM: Message = {"role": "system", "content": "Be brief."}
_GENERATION_TAG = re.compile(r"\{%[-+]?\s*(?:end)?generation\s*[-+]?%\}")
"""Tags of transformers' own, which mark what the assistant wrote and show nothing."""


class Render(Protocol):
    """Writes messages by a chat template."""

    def __call__(self, messages: Sequence[Message], *, generates: bool = True) -> str | None:
        """Return the text of messages, with the beginning of the next turn where it `generates`; None where the
        template refuses them."""


@dataclass(frozen=True)
class Thoughts:
    """What becomes of a thought, in the spelling that a template knows."""

    is_in_content: bool
    """Whether it stands between tags in the content, and not in a field of its own (`reasoning_content`)."""
    after_question: bool
    """Whether it is still there when another question follows."""
    after_tool: bool | None
    """Whether it is still there when its own tool call is answered; None where the template shows neither the call nor
    what was said beside it."""
    shows_calls: bool
    """Whether the template shows tool calls."""


@dataclass(frozen=True)
class TemplateProfile:
    """What a template does."""

    has_system: bool
    """Whether it takes a system message."""
    needs_system: bool
    """Whether it refuses a dialogue without one."""
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
    stated_sampling: dict[str, float]
    """How the checkpoint's makers say that it is sampled."""
    max_positions: int | None
    """The longest context that the model was made for."""

    def advice(self) -> list[str]:
        """Return what training has to respect, a sentence each."""
        temperature = self.stated_sampling.get("temperature", 1.0)
        conditions = {
            "needs_system": self.needs_system,
            "drops_thoughts": self.keeps_thoughts is False,
            "drops_thoughts_in_tool_loops": self.keeps_thoughts_in_tool_loops is False,
            "rewrites_turns": not self.keeps_turns,
            "opens_thought": self.opens_thought,
            "doubles_bos": self.doubles_bos,
            "has_no_think_tags": self.think_tags is None,
            "other_temperature": temperature != 1.0,
        }
        return [ADVICE[name].format(temperature=temperature) for name, applies in conditions.items() if applies]


def profile_template(template: TurnTemplate, model: Path) -> TemplateProfile:
    """Return what the template of the checkpoint in folder `model` does. Raises ConfigError for one that refuses even
    a question, and SetupError for settings of the checkpoint that cannot be read."""

    def render(messages: Sequence[Message], *, generates: bool = True) -> str | None:
        try:
            return template.render(messages, add_generation_prompt=generates)
        except Exception:
            # A template is a program of the model's author: it raises what it likes.
            return None

    opening = choose_opening(render) or QUESTION
    # Where the template refuses both openings, this says why.
    template.encode(opening)
    prompt = template.render(opening)
    chat_template = str(template.tokenizer.chat_template)
    thoughts = find_thoughts(render, opening)
    if thoughts is not None and thoughts.is_in_content and thoughts.after_question:
        # It shows content as it is, and has no room of its own for thoughts.
        thoughts = None
    counts = {tag: len(template.tokenizer(tag, add_special_tokens=False)["input_ids"]) for tag in chain(*KNOWN_PAIRS)}
    tags = [pair for pair in KNOWN_PAIRS if all(counts[tag] == 1 for tag in pair)]
    used = [pair for pair in tags if pair[0] in chat_template or pair[1] in chat_template]
    following = render([*opening, {"role": "assistant", "content": ANSWER}, *QUESTION])
    stop, bos = template.decode(template.stop_token_ids[:1]), template.tokenizer.bos_token_id
    longest = _stated_numbers(model / "config.json", (POSITIONS,)).get(POSITIONS)
    return TemplateProfile(
        has_system=render([SYSTEM, *QUESTION]) is not None,
        needs_system=len(opening) > len(QUESTION),
        keeps_turns=following is not None and following.startswith(f"{prompt}{ANSWER}{stop}"),
        keeps_thoughts=thoughts.after_question if thoughts is not None else None,
        keeps_thoughts_in_tool_loops=thoughts.after_tool if thoughts is not None and thoughts.shows_calls else None,
        opens_thought=prompt.rstrip().endswith(tuple(start for start, _ in KNOWN_PAIRS)),
        doubles_bos=bos is not None and list(template.tokenizer(prompt)["input_ids"][:2]) == [bos, bos],
        think_tags=next(iter([*used, *tags]), None),
        stated_sampling=_stated_numbers(model / "generation_config.json", STATED),
        max_positions=None if longest is None else int(longest),
    )


def choose_opening(render: Render) -> list[Message] | None:
    """Return the shortest beginning of a dialogue that a template takes: a question, or one behind a system message;
    None where it refuses both."""
    for opening in (QUESTION, [SYSTEM, *QUESTION]):
        if render(opening) is not None:
            return list(opening)
    return None


def find_thoughts(render: Render, opening: Sequence[Message]) -> Thoughts | None:
    """Return what a template does to thoughts: those in a field of their own, or else those between tags in the
    content, as DeepSeek-R1's knows them. None where it shows no answer at all."""
    in_field = {"role": "assistant", "content": ANSWER, "reasoning_content": THOUGHT}
    text = render([*opening, in_field], generates=False)
    if text is not None and THOUGHT in text:
        return _follow_thought(render, opening, in_field, is_in_content=False)
    in_content = {"role": "assistant", "content": f"{THINK_START}\n{THOUGHT}\n{THINK_END}\n\n{ANSWER}"}
    return _follow_thought(render, opening, in_content, is_in_content=True)


def _follow_thought(
    render: Render, opening: Sequence[Message], turn: Message, *, is_in_content: bool
) -> Thoughts | None:
    """Return what becomes of a turn's thought, None where the turn itself is not there when a question follows."""
    after_question = render([*opening, turn, *QUESTION])
    if is_in_content and (after_question is None or ANSWER not in after_question):
        return None
    after_tool, shows_calls = None, False
    # Some templates take arguments as an object, some as its text.
    for arguments in ({"what": "cup"}, '{"what": "cup"}'):
        call = {"id": "functions.look:0", "type": "function", "function": {"name": "look", "arguments": arguments}}
        answer = {"role": "tool", "content": "red", "tool_call_id": call["id"], "name": "look"}
        text = render([*opening, {**turn, "tool_calls": [call]}, answer])
        if text is None or ("look" not in text and ANSWER not in text):
            continue
        after_tool, shows_calls = THOUGHT in text, "look" in text
        if shows_calls:
            break
    is_kept = after_question is not None and THOUGHT in after_question
    return Thoughts(is_in_content, is_kept, after_tool, shows_calls)


def unread_arguments(tokenizer: Any, arguments: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return those arguments that a tokenizer's chat template reads nowhere, each with the names that it does read;
    nothing where it cannot be told."""
    from jinja2 import TemplateError, nodes
    from jinja2.ext import loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    template = tokenizer.chat_template
    sources: Iterable[str] = template.values() if isinstance(template, dict) else [template]
    environment = ImmutableSandboxedEnvironment(extensions=[loopcontrols])
    try:
        trees = [environment.parse(_GENERATION_TAG.sub("", source)) for source in sources]
    except (TemplateError, TypeError):
        # A tag of somebody's own, or no template.
        return {}
    names = sorted({name.name for tree in trees for name in tree.find_all(nodes.Name) if name.ctx == "load"})
    return {name: names for name in arguments if name not in names}


def _stated_numbers(path: Path, names: Sequence[str]) -> dict[str, float]:
    """Return those of a file's settings that are numbers, also where they are written as text."""
    try:
        settings = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    except (OSError, ValueError) as error:
        raise SetupError(f"{path} cannot be read: {error}") from error
    if not isinstance(settings, dict):
        raise SetupError(f"{path} holds no settings by name.")
    stated = {name: _as_number(settings.get(name)) for name in names}
    return {name: value for name, value in stated.items() if value is not None}


def _as_number(value: object) -> float | None:
    """Return a setting's number, None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        parsed = float(value) if isinstance(value, str) else value
    except ValueError:
        return None
    return parsed if math.isfinite(parsed) else None
