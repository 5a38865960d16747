"""Profiles a chat template: what it does to earlier turns, and how the model thinks.

    truegold template MODEL

No list of known templates is needed: each is tried on small dialogues. Do the thoughts of earlier turns stay? Do they
stay while a tool is called? Does the next prompt begin with the last turn exactly as it was written? Does the prompt
open a thought? The profile also names the think tags that are one token each, and the sampling that the checkpoint
states.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Protocol

from truegold.train.turns.environment import Message
from truegold.train.turns.template import THINK_END, THINK_START, TurnTemplate
from truegold.verifiers import SetupError
from truegold.verifiers.answers.format import KNOWN_PAIRS

ADVICE: Mapping[str, str] = tomllib.loads(
    files("truegold.train.turns").joinpath("template_advice.toml").read_text("utf-8")
)
"""Maps the behaviour of a template to advice on training."""
STATED_SAMPLING = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")
"""The settings of generation_config.json by which a checkpoint's makers say how it is sampled."""
POSITIONS = "max_position_embeddings"
"""The setting of config.json that is the longest context."""
THOUGHT = "quietly so"
"""The thought of the dialogues that a template is tried on: it was kept where a rendered text has these words."""
ANSWER = "It is seven."
"""The answer after that thought."""
QUESTION: list[Message] = [{"role": "user", "content": "What is 3+4?"}]
SYSTEM: Message = {"role": "system", "content": "Be brief."}


class Render(Protocol):
    """Writes messages by a chat template."""

    def __call__(self, messages: Sequence[Message], *, generates: bool = True) -> str | None:
        """Return the text of messages, with the beginning of the next turn where it `generates`, or None if the
        template refuses them."""


@dataclass(frozen=True)
class Thoughts:
    """The treatment of an earlier turn's thought by a template."""

    is_in_content: bool
    """Whether the thought was passed between think tags in the message's content, and not in the field
    `reasoning_content`, which this template does not know."""
    after_question: bool
    """Whether it is still there when another question follows."""
    after_tool: bool | None
    """Whether it is still there when the turn's tool call is answered, or None if the template shows neither the call
    nor its answer."""
    shows_calls: bool
    """Whether the template shows tool calls."""


@dataclass(frozen=True)
class TemplateProfile:
    """The behaviour of a template."""

    has_system: bool
    """Whether it takes a system message."""
    needs_system: bool
    """Whether it refuses a dialogue without one."""
    keeps_turns: bool
    """Whether an answer without a thought stays as it was written when a question follows."""
    keeps_thoughts: bool | None
    """Whether the thought of an answer stays when a question follows, or None if the template does not tell thoughts
    from other content."""
    keeps_thoughts_in_tool_loops: bool | None
    """Whether the thought before a tool call is still there when the tool has answered, or None if the template has no
    tools or no thoughts."""
    opens_thought: bool
    """Whether the prompt itself opens a thought, so that completions begin within one."""
    doubles_bos: bool
    """Whether text of the template gets a second BOS from the tokenizer."""
    think_tags: tuple[str, str] | None
    """The first pair of known think tags that are one token each; a pair that the template itself uses comes first."""
    stated_sampling: dict[str, float]
    """The settings of `STATED_SAMPLING` that generation_config.json has."""
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
    render = none_where_refused(template.render)
    opening = choose_opening(render) or QUESTION
    # Raises ConfigError with the template's own reason where it refuses both openings.
    template.encode(opening)
    prompt = template.render(opening)
    thoughts = find_thoughts(render, opening)
    if thoughts is not None and thoughts.is_in_content and thoughts.after_question:
        # The template copied content, tags and all. It would do so with any text, and knows nothing of thoughts.
        thoughts = None
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
        think_tags=_think_tags(template),
        stated_sampling=_stated_numbers(model / "generation_config.json", STATED_SAMPLING),
        max_positions=None if longest is None else int(longest),
    )


def _think_tags(template: TurnTemplate) -> tuple[str, str] | None:
    """Return the first known pair of think tags that are one token each, a pair that the template uses before others,
    or None if there is no such pair."""
    chat_template = str(template.tokenizer.chat_template)
    counts = {tag: len(template.tokenizer(tag, add_special_tokens=False)["input_ids"]) for tag in chain(*KNOWN_PAIRS)}
    pairs = [pair for pair in KNOWN_PAIRS if all(counts[tag] == 1 for tag in pair)]
    used = [pair for pair in pairs if pair[0] in chat_template or pair[1] in chat_template]
    return next(iter([*used, *pairs]), None)


def none_where_refused(render: Callable[..., str]) -> Render:
    """Return `render`, which writes messages by a template, with None in place of any error."""

    def try_to_render(messages: Sequence[Message], *, generates: bool = True) -> str | None:
        try:
            return render(list(messages), add_generation_prompt=generates)
        except Exception:
            # A template is a program of the model's author: it raises what it likes.
            return None

    return try_to_render


def choose_opening(render: Render) -> list[Message] | None:
    """Return the shortest beginning of a dialogue that a template takes: a question, or a system message and a
    question, or None if it refuses both."""
    for opening in (QUESTION, [SYSTEM, *QUESTION]):
        if render(opening) is not None:
            return list(opening)
    return None


def find_thoughts(render: Render, opening: Sequence[Message]) -> Thoughts | None:
    """Return what a template does to thoughts.

    They are passed in the field `reasoning_content` where the template shows that, and otherwise between think tags in
    the content, which DeepSeek-R1's template cuts out. None if the template does not show answers at all.
    """
    in_field = {"role": "assistant", "content": ANSWER, "reasoning_content": THOUGHT}
    text = render([*opening, in_field], generates=False)
    if text is not None and THOUGHT in text:
        return _follow_thought(render, opening, in_field, is_in_content=False)
    in_content = {"role": "assistant", "content": f"{THINK_START}\n{THOUGHT}\n{THINK_END}\n\n{ANSWER}"}
    return _follow_thought(render, opening, in_content, is_in_content=True)


def _follow_thought(
    render: Render, opening: Sequence[Message], turn: Message, *, is_in_content: bool
) -> Thoughts | None:
    """Return what a template does to the thought of `turn`, or None if thoughts are in the content and the template
    also removes the answer when a question follows."""
    after_question = render([*opening, turn, *QUESTION])
    if is_in_content and (after_question is None or ANSWER not in after_question):
        return None
    after_tool, shows_calls = None, False
    # Some templates take a call's arguments as an object, some as the JSON text of one.
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
    return Thoughts(is_in_content=is_in_content, after_question=is_kept, after_tool=after_tool, shows_calls=shows_calls)


def _stated_numbers(path: Path, names: Sequence[str]) -> dict[str, float]:
    """Return those of the named settings in a JSON file that are numbers; {"top_p": "0.9"} counts as one, too."""
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
