"""The tokens of an episode or a recorded dialogue, in segments that the model saw exactly as they are trained on.

As long as the prompt of each turn begins with all tokens so far, turns are in one segment. Otherwise a new segment
begins:

    tokens so far    <user> 2+2? <assistant> <think> hm </think> 4 <end>
    next prompt      <user> 2+2? <assistant> 4 <end> <user> sure? <assistant>      the template drops earlier thinking

The second turn was sampled after the next prompt, so it is trained on in a new segment after this prompt. The model
never saw this turn after the tokens so far. A new segment also begins if the prompt has the same text but other tokens.
The tokenizer may split a text into other tokens than the sampled ones (re-tokenization drift). This case is counted
separately.
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
"""The reason why a segment ended before the episode.

    reason    cause
    edited    the template changed the text of earlier turns
    escaped   special tokens that the model wrote as text were replaced by plain text
    drifted   the same text has other tokens
    scored    each turn has a separate segment, because turns have separate scores
"""

DRIFT_TOKENS = 8
"""The number of tokens in an example of drift."""


@dataclass
class SegmentTokens:
    """A segment to which turns are added. The fields are as in `Segment`."""

    prompt_ids: tuple[int, ...]
    turn: int
    """The number of the segment's first turn."""
    output_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    """The log-probability (nats) of each output token, 0 for tokens that were not sampled."""
    sampled: list[bool] = field(default_factory=list)
    versions: list[tuple[int, int]] = field(default_factory=list)
    """Versions of the weights with their numbers of sampled tokens, as in `Versions`."""
    is_truncated: bool = False
    """Whether the last turn was cut at max_tokens."""
    is_escaped: bool = False
    """Whether special tokens that the model wrote as text in a turn were replaced by plain text."""

    @property
    def ids(self) -> tuple[int, ...]:
        """All token ids, of prompt and output."""
        return (*self.prompt_ids, *self.output_ids)

    @property
    def version(self) -> int:
        """The oldest version that sampled tokens of the segment."""
        return min((version for version, _ in self.versions), default=0)

    def add_versions(self, versions: Versions) -> None:
        """Add the versions of further sampled tokens. Adjacent pairs of one version are merged."""
        for version, tokens in versions:
            before = self.versions.pop()[1] if self.versions and self.versions[-1][0] == version else 0
            self.versions.append((version, before + tokens))

    def add(self, ids: Sequence[int], logprobs: Sequence[float] = (), *, sampled: bool) -> None:
        """Append tokens. Without log-probabilities, these are 0."""
        self.output_ids += ids
        self.logprobs += logprobs or [0.0] * len(ids)
        self.sampled += [sampled] * len(ids)

    def to_segment(self, temperature: float) -> Segment:
        """Return the training record, without reward and group.

        Tokens after the last sampled one are removed. They are not trained on, and could exceed the model's context.
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
    """A place where the tokenizer splits a text into other tokens than the sampled ones."""

    turn: int
    """The number of the turn whose prompt differs."""
    held: tuple[int, ...]
    """The sampled tokens from the first difference on."""
    rendered: tuple[int, ...]
    """The tokens of the rendered prompt from the first difference on."""


class Dialogue:
    """The messages and tokens of one episode."""

    def __init__(
        self,
        template: TurnTemplate,
        messages: Sequence[Message],
        edit: Callable[[Sequence[Message]], Sequence[Message]] = list,
        *,
        turns_apart: bool = False,
    ) -> None:
        """Begin with the messages before the model's first turn.

        edit: a function from all messages so far to the messages of a prompt. turns_apart: whether each turn gets a
        separate segment, because turns have separate scores.
        """
        self._template = template
        self._edit = edit
        self._turns_apart = turns_apart
        self.messages: list[Message] = list(messages)
        self.segments: list[SegmentTokens] = []
        self.breaks: list[Break] = []
        """The reason for the end of each segment except the last."""
        self.drifts: list[Drift] = []
        """An example of each drift."""
        self.turns = 0
        """The number of the model's turns so far."""

    def prompt(self) -> tuple[int, ...]:
        """Return the token ids of the next turn's prompt, rendered from the messages so far. Call it once per turn.

        If the prompt begins with all tokens of the last segment, this segment is extended. Otherwise a new one begins.
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
        """Return whether the template accepts the messages up to the model's last turn. Before the first turn, return
        True."""
        if not self.turns:
            return True
        last = max(index for index, message in enumerate(self.messages) if message["role"] == "assistant")
        try:
            self._template.encode(self._edit(self.messages[: last + 1]), add_generation_prompt=False)
        except Exception:
            # Templates raise different exceptions for messages that they do not support.
            return False
        return True

    def add_completion(self, completion: Completion, version: int, versions: Versions = ()) -> Message:
        """Add the completion that was sampled after `prompt`, and return it as a message.

        version: the version of the weights that sampled the turn, the oldest of several. versions: all versions
        with their numbers of tokens, if there are several.
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
        """Return the state for another process. Only a running dialogue needs template and messages, so they are left
        out."""
        kept = {name: value for name, value in vars(self).items() if name not in ("_template", "_edit")}
        return {**kept, "messages": []}

    def _name_break(self, held: tuple[int, ...], ids: tuple[int, ...]) -> Break:
        """Return the reason why a prompt does not begin with the tokens so far, and keep an example of drift."""
        if not self._template.decode(ids).startswith(self._template.decode(held)):
            return "escaped" if self.segments[-1].is_escaped else "edited"
        first = next(
            (index for index, (mine, other) in enumerate(zip(held, ids, strict=False)) if mine != other), len(ids)
        )
        self.drifts.append(Drift(self.turns, held[first : first + DRIFT_TOKENS], ids[first : first + DRIFT_TOKENS]))
        return "drifted"


def remind(messages: Sequence[Message], config: ReminderConfig) -> list[Message]:
    """Return the messages of a prompt: without older turns, and with reminders in the last message.

    messages                       prompt with goal true, actions 2 and keep_turns 1
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
        # A turn may be answered by several messages. A last turn without an answer stays.
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
    """Return the segments of a recorded dialogue, in which only the assistant's tokens are trained on.

    Raises TypeError for an invalid dialogue and ConfigError if the template refuses it. Raises ValueError if an
    assistant turn is rendered differently in the whole dialogue and directly after its prompt.
    """
    messages = [
        message if message["role"] == "assistant" else template.escape(message) for message in check_messages(messages)
    ]
    turns = [index for index, message in enumerate(messages) if message["role"] == "assistant"]
    if not turns or turns[0] == 0:
        raise TypeError("a dialogue needs a message with the role assistant, and another message before it")
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
    """Return the text that the model must write as an answer after the prompt `shown`, without the stop token."""
    prompt = template.render(shown)
    whole = template.render([*shown, answer], add_generation_prompt=False)
    if not whole.startswith(prompt):
        raise ValueError(
            f"the chat template does not render turn {len(shown) + 1} as a continuation of its prompt: "
            f"{whole[len(prompt) - 20 : len(prompt) + 20]!r} does not continue {prompt[-20:]!r}"
        )
    written = whole[len(prompt) :]
    stop = template.decode(template.stop_token_ids[:1])
    return written[: written.rindex(stop)] if stop in written else written
