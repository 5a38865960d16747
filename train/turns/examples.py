"""Dialogues to learn from: each turn of the assistant's in the context that the model will see it in.

    {"messages": [{"role": "user", "content": "red cup"}, {"role": "assistant", "content": "search cup"}, ...]}

The template is asked for the prompt of every turn, as in a rollout: with its arguments, the environment's tools and the
reminder. Where it drops what was before, such as earlier thinking, a new segment begins: one text with all turns in it
would teach contexts that never come.
"""

from __future__ import annotations

from collections.abc import Sequence

from truegold.pipeline.engines.base import Completion
from truegold.train.config.turns import ReminderConfig
from truegold.train.model.segment import Segment
from truegold.train.turns.dialogue import Dialogue
from truegold.train.turns.environment import Message, check_messages
from truegold.train.turns.reminder import remind
from truegold.train.turns.template import TurnTemplate
from truegold.verifiers import ConfigError


def dialogue_segments(
    messages: Sequence[Message], template: TurnTemplate, reminder: ReminderConfig | None = None
) -> list[Segment]:
    """Return the segments of a dialogue, in which the assistant's tokens alone are trained on.

    Raises TypeError for what is no dialogue, ConfigError where the template refuses it, and ValueError where the
    template does not end a prompt where the assistant's turn begins.
    """
    messages = [
        message if message["role"] == "assistant" else template.escape(message) for message in check_messages(messages)
    ]
    turns = [index for index, message in enumerate(messages) if message["role"] == "assistant"]
    if not turns or turns[0] == 0:
        raise TypeError("a dialogue needs a message of the assistant's, and another one before it")
    config = reminder or ReminderConfig()

    def edit(shown: Sequence[Message]) -> list[Message]:
        return remind([dict(message) for message in shown], config)

    dialogue = Dialogue(template, messages[: turns[0]], edit)
    for turn, index in enumerate(turns):
        dialogue.prompt()
        text = _written(edit(messages[:index]), messages[index], template)
        ids = (*template.tokenizer(text, add_special_tokens=False)["input_ids"], template.stop_token_ids[0])
        dialogue.add_completion(Completion(ids, (), "stop"), version=0)
        following = turns[turn + 1] if turn + 1 < len(turns) else len(messages)
        dialogue.messages[index:] = messages[index:following]
    return [held.to_segment(1.0) for held in dialogue.segments]


def _written(shown: Sequence[Message], answer: Message, template: TurnTemplate) -> str:
    """Return what the model has to write for an answer behind the messages of its prompt, without the token that ends
    it."""
    prompt = _render(template, shown, is_prompt=True)
    whole = _render(template, [*shown, answer], is_prompt=False)
    if not whole.startswith(prompt):
        raise ValueError(
            f"the chat template writes turn {len(shown) + 1} otherwise than behind its own prompt for it: "
            f"{whole[len(prompt) - 20 : len(prompt) + 20]!r} does not go on from {prompt[-20:]!r}"
        )
    written = whole[len(prompt) :]
    stop = template.decode(template.stop_token_ids[:1])
    return written[: written.rindex(stop)] if stop in written else written


def _render(template: TurnTemplate, messages: Sequence[Message], *, is_prompt: bool) -> str:
    """Return the text of messages. Raises ConfigError for whatever the template stumbles over."""
    try:
        return template.render(messages, add_generation_prompt=is_prompt)
    except ConfigError:
        raise
    except Exception as error:
        # A template is a program of the model's author: it raises what it likes.
        raise ConfigError(
            f"A dialogue of {len(messages)} messages cannot be written by the model's chat template: "
            f"{type(error).__name__}: {error}"
        ) from error
