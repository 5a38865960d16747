"""The tokens of an episode, or of a recorded dialogue, as the model saw them: one segment as long as each prompt
extends what is held, another where it does not.

    held       <user> 2+2? <assistant> <think> hm </think> 4 <end>
    rendered   <user> 2+2? <assistant> 4 <end> <user> sure? <assistant>        the template drops earlier thinking

The second turn was sampled after the rendered tokens, so that it is trained after them, in a segment of its own. In one
sequence after the held tokens, as if nothing had been dropped, its log-probabilities would belong to a context that
the model never saw. The same holds where the text is the same and only its tokens differ, since the tokenizer may cut a
text into other tokens than were sampled (re-tokenization drift). That is counted apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from truegold.pipeline.engines.base import Completion
from truegold.train.config.turns import ReminderConfig
from truegold.train.model.segment import Segment, Versions
from truegold.train.turns.environment import Message, check_messages
from truegold.train.turns.template import TurnTemplate, describe_action

Break = Literal["edited", "escaped", "drifted", "scored"]
"""Why a segment ended before the episode: the template has changed what was before, special tokens that the model has
spelled were made plain text, the same text has other tokens, or turns are scored one by one."""

DRIFT_TOKENS = 8
"""Tokens of an example of drift."""


@dataclass
class SegmentTokens:
    """A segment while it grows."""

    prompt_ids: tuple[int, ...]
    turn: int
    """The turn that it begins with."""
    output_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    sampled: list[bool] = field(default_factory=list)
    versions: list[tuple[int, int]] = field(default_factory=list)
    """The stretches that were sampled, as in `Versions`."""
    is_truncated: bool = False
    """Whether its last turn was cut."""
    is_escaped: bool = False
    """Whether a turn of it has spelled special tokens, which were made plain text."""

    @property
    def ids(self) -> tuple[int, ...]:
        """All tokens, as the model saw them."""
        return (*self.prompt_ids, *self.output_ids)

    @property
    def version(self) -> int:
        """The oldest version that sampled any of it."""
        return min((version for version, _ in self.versions), default=0)

    def add_versions(self, versions: Versions) -> None:
        """Add stretches of tokens that were sampled; neighbours of one version become one stretch."""
        for version, tokens in versions:
            before = self.versions.pop()[1] if self.versions and self.versions[-1][0] == version else 0
            self.versions.append((version, before + tokens))

    def add(self, ids: Sequence[int], logprobs: Sequence[float] = (), *, sampled: bool) -> None:
        """Add tokens at the end; without log-probabilities they have 0, which stands for none."""
        self.output_ids += ids
        self.logprobs += logprobs or [0.0] * len(ids)
        self.sampled += [sampled] * len(ids)

    def to_segment(self, temperature: float) -> Segment:
        """Return the training record, without reward and group.

        What follows the last sampled token trains nothing, and may be too long for the model where the episode ended
        by it.
        """
        length = max((end for end, is_sampled in enumerate(self.sampled, 1) if is_sampled), default=0)
        sampled = tuple(self.sampled[:length])
        return Segment(
            self.prompt_ids,
            tuple(self.output_ids[:length]),
            tuple(self.logprobs[:length]),
            () if all(sampled) else sampled,
            self.version,
            temperature,
            turn=self.turn,
            truncated=self.is_truncated,
            versions=tuple(self.versions) if len(self.versions) > 1 else (),
        )


@dataclass(frozen=True)
class Drift:
    """A place where the tokenizer makes other tokens of the same text than were sampled."""

    turn: int
    held: tuple[int, ...]
    """The first tokens that differ, as the model has sampled them."""
    rendered: tuple[int, ...]
    """The tokens of the same stretch in the template's text."""


class Dialogue:
    """One episode's messages and tokens."""

    def __init__(
        self,
        template: TurnTemplate,
        messages: Sequence[Message],
        edit: Callable[[Sequence[Message]], Sequence[Message]] = list,
        *,
        turns_apart: bool = False,
    ) -> None:
        """edit: makes a prompt's messages of all messages so far. turns_apart: whether each turn has a segment of its
        own, because turns are scored one by one."""
        self._template = template
        self._edit = edit
        self._turns_apart = turns_apart
        self.messages: list[Message] = list(messages)
        self.segments: list[SegmentTokens] = []
        self.breaks: list[Break] = []
        """Why each segment but the last ended."""
        self.drifts: list[Drift] = []
        self.turns = 0

    def prompt(self) -> tuple[int, ...]:
        """Return the ids that the next turn is sampled after, as the template makes them of the messages so far.

        The last segment is extended by them where they begin with all its tokens, else a new one is opened. So it is
        to be called once a turn.
        """
        ids = self._template.encode(self._edit(self.messages))
        if not self.segments:
            self.segments.append(SegmentTokens(ids, self.turns))
            return ids
        last = self.segments[-1]
        held = last.ids
        extends = ids[: len(held)] == held
        if extends and not self._turns_apart:
            last.add(ids[len(held) :], sampled=False)
            return ids
        self.breaks.append("scored" if extends else self._name_break(held, ids))
        self.segments.append(SegmentTokens(ids, self.turns))
        return ids

    def can_write_last_turn(self) -> bool:
        """Return whether the template takes the messages up to the model's last turn; True before the first."""
        if not self.turns:
            return True
        last = max(index for index, message in enumerate(self.messages) if message["role"] == "assistant")
        try:
            self._template.encode(self._edit(self.messages[: last + 1]), add_generation_prompt=False)
        except Exception:
            # Templates are code of models' authors: some refuse a message by `raise_exception`, others stumble over it.
            return False
        return True

    def add_completion(self, completion: Completion, version: int, versions: Versions = ()) -> Message:
        """Take up what was sampled after `prompt`; return the message that it is.

        version: of the weights that sampled it, the oldest where there were several. versions: its stretches then.
        """
        segment = self.segments[-1]
        prompt = segment.ids
        segment.add_versions(versions or ((version, len(completion.token_ids)),))
        segment.add(completion.token_ids, completion.logprobs, sampled=True)
        segment.is_truncated = completion.finish_reason == "length"
        self.turns += 1
        message, is_escaped = self._template.read(prompt, completion.token_ids)
        segment.is_escaped |= is_escaped
        self.messages.append(message)
        return message

    def __getstate__(self) -> dict[str, object]:
        """Leave out, on the way to another process, what only a dialogue that goes on needs."""
        kept = {name: value for name, value in vars(self).items() if name not in ("_template", "_edit")}
        return {**kept, "messages": []}

    def _name_break(self, held: tuple[int, ...], ids: tuple[int, ...]) -> Break:
        """Return why a prompt does not extend the tokens held, and keep an example where it is drift."""
        if not self._template.decode(ids).startswith(self._template.decode(held)):
            return "escaped" if self.segments[-1].is_escaped else "edited"
        first = next(
            (index for index, (mine, other) in enumerate(zip(held, ids, strict=False)) if mine != other), len(ids)
        )
        self.drifts.append(Drift(self.turns, held[first : first + DRIFT_TOKENS], ids[first : first + DRIFT_TOKENS]))
        return "drifted"


def remind(messages: Sequence[Message], config: ReminderConfig) -> list[Message]:
    """Return the messages of a prompt: without older turns, and with what is to be repeated in the last message.

    messages                       prompt where goal is true, actions 2 and keep_turns 1
    user       Find the key.       user       Find the key.
    assistant  go north
    user       A wall.
    assistant  go south            assistant  go south
    user       A door.             user       Goal: Find the key. / Your last actions: 1. go north 2. go south / A door.
    """
    turns = [index for index, message in enumerate(messages) if message["role"] == "assistant"]
    kept = [dict(message) for message in messages]
    if not (turns and config.changes_prompts):
        return kept
    if config.keep_turns is not None and len(turns) > config.keep_turns:
        # A turn may be answered by several messages; one that is not answered at all stays itself.
        behind_turns = min(turns[-1] + 1, len(messages) - 1)
        kept_from = turns[-config.keep_turns] if config.keep_turns else behind_turns
        kept = [*kept[: turns[0]], *kept[kept_from:]]
    if kept[-1]["role"] == "assistant":
        return kept
    parts = []
    if config.goal:
        goal = next((message["content"] for message in messages if message["role"] == "user"), "")
        parts.append(f"Goal: {goal}")
    if config.actions:
        actions = [describe_action(messages[index]) for index in turns[-config.actions :]]
        first = len(turns) - len(actions) + 1
        lines = [f"{turn}. {action}" for turn, action in enumerate(actions, first)]
        parts.append("\n".join(["Your last actions:", *lines]))
    parts.append(kept[-1]["content"])
    return [*kept[:-1], {**kept[-1], "content": "\n\n".join(parts)}]


def dialogue_segments(
    messages: Sequence[Message], template: TurnTemplate, reminder: ReminderConfig | None = None
) -> list[Segment]:
    """Return the segments of a dialogue, in which the assistant's tokens alone are trained on.

    Raises TypeError for an invalid dialogue, ConfigError if the template refuses it, and ValueError if the template
    does not end a prompt at the start of the assistant's turn.
    """
    messages = [
        message if message["role"] == "assistant" else template.escape(message) for message in check_messages(messages)
    ]
    turns = [index for index, message in enumerate(messages) if message["role"] == "assistant"]
    if not turns or turns[0] == 0:
        raise TypeError("a dialogue needs a message of the assistant's, and another one before it")
    edit = partial(remind, config=reminder or ReminderConfig())
    dialogue = Dialogue(template, messages[: turns[0]], edit)
    for turn, index in enumerate(turns):
        dialogue.prompt()
        text = _text_to_write(edit(messages[:index]), messages[index], template)
        ids = (*template.tokenizer(text, add_special_tokens=False)["input_ids"], template.stop_token_ids[0])
        dialogue.add_completion(Completion(ids, (), "stop"), version=0)
        following = turns[turn + 1] if turn + 1 < len(turns) else len(messages)
        dialogue.messages[index:] = messages[index:following]
    return [held.to_segment(1.0) for held in dialogue.segments]


def _text_to_write(shown: Sequence[Message], answer: Message, template: TurnTemplate) -> str:
    """Return what the model has to write for an answer after the messages of its prompt, without the token that ends
    it."""
    prompt = template.render(shown)
    whole = template.render([*shown, answer], add_generation_prompt=False)
    if not whole.startswith(prompt):
        raise ValueError(
            f"the chat template writes turn {len(shown) + 1} otherwise than behind its own prompt for it: "
            f"{whole[len(prompt) - 20 : len(prompt) + 20]!r} does not go on from {prompt[-20:]!r}"
        )
    written = whole[len(prompt) :]
    stop = template.decode(template.stop_token_ids[:1])
    return written[: written.rindex(stop)] if stop in written else written
