"""The profile of a chat template: its treatment of earlier turns and of thoughts.

    truegold template MODEL

The template is tried on small dialogues, so no list of known templates is needed. The profile answers these questions:
Does the template keep the thoughts of earlier turns, also around tool calls? Does the next prompt begin with exactly
the text of the last turn? Does the prompt open a thought? The profile also has the think tags that are one token each,
and the sampling settings of the checkpoint.

Arguments that a template never reads are probably misspelled:

template                                            arguments                    unread
{% if enable_thinking %}<think>{% endif %}...       {"enable_thinkin": True}     enable_thinkin
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
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
"""Advice on training, by the behaviour of a template."""
STATED_SAMPLING = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")
"""The sampling settings that are read from generation_config.json."""
POSITIONS = "max_position_embeddings"
"""The setting of config.json with the longest context."""
THOUGHT = "quietly so"
"""The thought in the dialogues that a template is tried on. It counts as kept if the rendered text contains it."""
ANSWER = "It is seven."
"""The answer after this thought."""
QUESTION: list[Message] = [{"role": "user", "content": "What is 3+4?"}]
"""The question of these dialogues."""
SYSTEM: Message = {"role": "system", "content": "Be brief."}
"""The system message of these dialogues."""


class Render(Protocol):
    """A function that renders messages with a chat template."""

    def __call__(self, messages: Sequence[Message], *, generates: bool = True) -> str | None:
        """Return the text of messages, or None if the template refuses them.

        generates: whether the text ends with the beginning of the next turn.
        """


@dataclass(frozen=True)
class Thoughts:
    """The treatment of an earlier turn's thought by a template."""

    is_in_content: bool
    """Whether the thought was passed in the content, between think tags. This is so if the template does not show the
    field `reasoning_content`."""
    after_question: bool
    """Whether the thought is kept if another question follows."""
    after_tool: bool | None
    """Whether the thought is kept after the answer to the turn's tool call. None if the template does not show the call
    or the turn."""
    shows_calls: bool
    """Whether the template shows tool calls."""


@dataclass(frozen=True)
class TemplateProfile:
    """The behaviour of a template."""

    has_system: bool
    """Whether the template accepts a system message."""
    needs_system: bool
    """Whether the template refuses a dialogue without a system message."""
    keeps_turns: bool
    """Whether an answer without a thought is rendered unchanged if a question follows."""
    keeps_thoughts: bool | None
    """Whether the thought of an answer is kept if a question follows. None if the template treats thoughts as other
    content."""
    keeps_thoughts_in_tool_loops: bool | None
    """Whether the thought before a tool call is kept after the tool's answer. None without tools or thoughts in the
    template."""
    opens_thought: bool
    """Whether the prompt opens a thought, so that completions begin within it."""
    doubles_bos: bool
    """Whether the tokenizer adds a second BOS token to the template's text."""
    think_tags: tuple[str, str] | None
    """The first known pair of think tags that are one token each, preferably a pair that the template uses."""
    stated_sampling: dict[str, float]
    """The settings of `STATED_SAMPLING` in generation_config.json."""
    max_positions: int | None
    """The longest context of the model in tokens, or None if config.json does not have it."""

    def advice(self) -> list[str]:
        """Return advice on training with this template, one sentence each."""
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
    """Return the profile of the chat template of the checkpoint in folder `model`.

    Raises ConfigError if the template refuses even a single question, SetupError if the checkpoint's settings cannot be
    read.
    """
    render = none_where_refused(template.render)
    opening = choose_opening(render) or QUESTION
    # Raises ConfigError with the template's reason, if it refuses both openings.
    template.encode(opening)
    prompt = template.render(opening)
    thoughts = find_thoughts(render, opening)
    if thoughts is not None and thoughts.is_in_content and thoughts.after_question:
        # The template copied the content with its tags. So it treats thoughts as other text.
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
    """Return a known pair of think tags that are one token each, preferably one that the template uses, or None."""
    chat_template = str(template.tokenizer.chat_template)
    counts = {tag: len(template.tokenizer(tag, add_special_tokens=False)["input_ids"]) for tag in chain(*KNOWN_PAIRS)}
    pairs = [pair for pair in KNOWN_PAIRS if all(counts[tag] == 1 for tag in pair)]
    used = [pair for pair in pairs if pair[0] in chat_template or pair[1] in chat_template]
    return next(iter([*used, *pairs]), None)


def none_where_refused(render: Callable[..., str]) -> Render:
    """Return a function like `render` that returns None instead of raising an error."""

    def try_to_render(messages: Sequence[Message], *, generates: bool = True) -> str | None:
        try:
            return render(list(messages), add_generation_prompt=generates)
        except Exception:
            # Templates are programs of model authors and may raise any exception.
            return None

    return try_to_render


def choose_opening(render: Render) -> list[Message] | None:
    """Return the shortest dialogue that a template accepts, or None: a question, else a system message before it."""
    for opening in (QUESTION, [SYSTEM, *QUESTION]):
        if render(opening) is not None:
            return list(opening)
    return None


def find_thoughts(render: Render, opening: Sequence[Message]) -> Thoughts | None:
    """Return the treatment of thoughts by a template, or None if it does not render turns of the assistant.

    Thoughts are passed in the field `reasoning_content` if the template shows this field. Otherwise they are passed in
    the content, between think tags. DeepSeek-R1's template, for example, removes these.
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
    """Return the treatment of the thought of `turn` by a template. Returns None in one case: thoughts are in the
    content, and the template removes the answer, too, if a question follows."""
    after_question = render([*opening, turn, *QUESTION])
    if is_in_content and (after_question is None or ANSWER not in after_question):
        return None
    after_tool, shows_calls = None, False
    # Some templates expect the arguments of a call as an object, others as JSON text.
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
    """Return the named settings in a JSON file that are numbers, or texts of numbers: {"top_p": "0.9"}."""
    try:
        settings = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    except (OSError, ValueError) as error:
        raise SetupError(f"{path} cannot be read: {error}") from error
    if not isinstance(settings, dict):
        raise SetupError(f"{path} is not an object of settings.")
    stated = {name: _as_number(settings.get(name)) for name in names}
    return {name: value for name, value in stated.items() if value is not None}


def _as_number(value: object) -> float | None:
    """Return a setting as a finite number, or None if it is not one."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        parsed = float(value) if isinstance(value, str) else value
    except ValueError:
        return None
    return parsed if math.isfinite(parsed) else None


_GENERATION_TAG = re.compile(r"\{%[-+]?\s*(?:end)?generation\s*[-+]?%\}")
"""`{% generation %}` and `{%- endgeneration -%}`. They mark text of the assistant for transformers. Jinja does not know
them, so they are removed."""


def unread_arguments(tokenizer: Any, arguments: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the arguments that a tokenizer's chat template does not read. Each has all names that the template reads.

    Returns an empty dict if the template cannot be parsed.
    """
    from jinja2 import TemplateError, nodes
    from jinja2.ext import loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    template = tokenizer.chat_template
    sources: Iterable[str] = template.values() if isinstance(template, dict) else [template]
    environment = ImmutableSandboxedEnvironment(extensions=[loopcontrols])
    try:
        trees = [environment.parse(_GENERATION_TAG.sub("", source)) for source in sources]
    except (TemplateError, TypeError):
        # The template has a tag that Jinja does not know, or there is no template.
        return {}
    names = sorted({name.name for tree in trees for name in tree.find_all(nodes.Name) if name.ctx == "load"})
    return {name: names for name in arguments if name not in names}
