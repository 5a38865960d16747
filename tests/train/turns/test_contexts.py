"""Every turn is trained in the context that it was sampled in, whatever the chat template does to the past."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM
from turn_templates import CHATML, KIMI, QWEN3, turn_template

from truegold.pipeline.engines.base import Completion
from truegold.train.model.segment import Segment, collate
from truegold.train.turns.dialogue import Dialogue
from truegold.train.turns.environment import Message
from truegold.train.turns.template import TurnTemplate

THINKING = (
    "<think>\n3 and 4\n</think>\n\nIt is 7.",
    "<think>\nagain 3 and 4\n</think>\n\nYes, 7.",
    "<think>\ndone\n</think>\n\nBye.",
)
TOOLS = (
    "<think>look first</think><|tool_calls_section_begin|><|tool_call_begin|>functions.look:0"
    '<|tool_call_argument_begin|>{"what": "cup"}<|tool_call_end|><|tool_calls_section_end|>',
    "<think>it is red</think><|tool_calls_section_begin|><|tool_call_begin|>functions.buy:1"
    '<|tool_call_argument_begin|>{"what": "cup 3"}<|tool_call_end|><|tool_calls_section_end|>',
    "<think>bought</think>I have it.",
)


def complete(template: TurnTemplate, text: str) -> Completion:
    ids = (*template.tokenizer(text, add_special_tokens=False)["input_ids"], template.stop_token_ids[0])
    return Completion(ids, tuple(-1.0 for _ in ids), "stop")


def hold_dialogue(template: TurnTemplate, turns: Sequence[str], role: str) -> tuple[Dialogue, list[Segment]]:
    """Return a dialogue, and each of its turns alone as it was sampled."""
    dialogue = Dialogue(template, [{"role": "user", "content": "What is 3+4?"}])
    alone = []
    for index, text in enumerate(turns):
        prompt = dialogue.prompt()
        completion = complete(template, text)
        alone.append(Segment(prompt, completion.token_ids))
        dialogue.add_completion(completion, version=3)
        dialogue.messages.append({"role": role, "content": f"What is 3+{index}?"})
    return dialogue, alone


@torch.no_grad()
def logprobs(model: Path, segment: Segment) -> torch.Tensor:
    """Return the log-probabilities of what the policy sampled, by nothing but the model itself."""
    causal_lm = AutoModelForCausalLM.from_pretrained(str(model), dtype=torch.float32)
    ids = torch.tensor([segment.prompt_ids + segment.output_ids])
    logits = causal_lm(ids).logits[0, len(segment.prompt_ids) - 1 : -1].log_softmax(-1)
    values = logits.gather(1, torch.tensor(segment.output_ids).unsqueeze(1)).squeeze(1)
    return values[torch.tensor(segment.sampled or [True] * len(segment.output_ids))]


@pytest.mark.parametrize(
    ("chat_template", "turns", "role", "segments"),
    [(CHATML, ("It is 7.", "Yes.", "Bye."), "user", 1), (QWEN3, THINKING, "user", 3), (KIMI, TOOLS, "tool", 3)],
    ids=["keeps all", "qwen3", "kimi"],
)
def test_segments_have_the_logprobs_of_each_turn_alone(
    tiny_model: Path, chat_template: str, turns: Sequence[str], role: str, segments: int
) -> None:
    dialogue, alone = hold_dialogue(turn_template(tiny_model, chat_template), turns, role)
    made = [segment.to_segment(1.0) for segment in dialogue.segments]
    assert len(made) == segments
    assert dialogue.breaks == ["edited"] * (segments - 1)
    assert [segment.turn for segment in made] == [0, 1, 2][:segments]
    assert {segment.version for segment in made} == {3}
    expected = torch.cat([logprobs(tiny_model, segment) for segment in alone])
    torch.testing.assert_close(
        torch.cat([logprobs(tiny_model, segment) for segment in made]), expected, atol=1e-5, rtol=0
    )
    assert sum(segment.sampled_tokens for segment in made) == sum(len(segment.output_ids) for segment in alone)


@pytest.mark.parametrize(("chat_template", "turns", "role"), [(QWEN3, THINKING, "user"), (KIMI, TOOLS, "tool")])
def test_one_sequence_of_all_turns_has_other_logprobs(
    tiny_model: Path, chat_template: str, turns: Sequence[str], role: str
) -> None:
    template = turn_template(tiny_model, chat_template)
    _, alone = hold_dialogue(template, turns, role)
    # What is naive: every turn stands behind all that was sampled before it.
    output: list[int] = []
    sampled: list[bool] = []
    for index, segment in enumerate(alone):
        if index:
            between = template.tokenizer(
                f"\n<|im_start|>{role}\nWhat is 3+{index - 1}?<|im_end|>\n<|im_start|>assistant\n",
                add_special_tokens=False,
            )["input_ids"]
            output += between
            sampled += [False] * len(between)
        output += segment.output_ids
        sampled += [True] * len(segment.output_ids)
    naive = logprobs(tiny_model, Segment(alone[0].prompt_ids, tuple(output), sampled=tuple(sampled)))
    expected = torch.cat([logprobs(tiny_model, segment) for segment in alone])
    first = len(alone[0].output_ids)
    torch.testing.assert_close(naive[:first], expected[:first], atol=1e-5, rtol=0)
    assert float((naive[first:] - expected[first:]).abs().mean()) > 1e-3


def test_a_template_that_changes_within_a_dialogue_begins_another_segment(tiny_model: Path) -> None:
    template = turn_template(tiny_model, CHATML)
    dialogue = Dialogue(template, [{"role": "user", "content": "What is 3+4?"}])
    alone = []
    for index, text in enumerate(("It is 7.", "Yes.", "Bye.")):
        if index == 2:
            template.tokenizer.chat_template = CHATML.replace("{{ message.content }}", "says {{ message.content }}")
        completion = complete(template, text)
        alone.append(Segment(dialogue.prompt(), completion.token_ids))
        dialogue.add_completion(completion, version=0)
        dialogue.messages.append({"role": "user", "content": "Sure?"})
    assert dialogue.breaks == ["edited"]
    made = [segment.to_segment(1.0) for segment in dialogue.segments]
    torch.testing.assert_close(
        torch.cat([logprobs(tiny_model, segment) for segment in made]),
        torch.cat([logprobs(tiny_model, segment) for segment in alone]),
        atol=1e-5,
        rtol=0,
    )


def test_what_others_say_between_turns_is_not_trained_on(tiny_model: Path) -> None:
    template = turn_template(tiny_model, CHATML)
    dialogue, alone = hold_dialogue(template, ("It is 7.", "Yes."), "user")
    (segment,) = (held.to_segment(0.8) for held in dialogue.segments)
    batch = collate([[segment]], pad_id=0)
    trained = [token for token, kept in zip(segment.output_ids, batch.mask[0], strict=True) if kept]
    assert trained == [token for turn in alone for token in turn.output_ids]
    assert segment.temperature == 0.8
    assert len(segment.rollout_logprobs) == len(segment.output_ids)


def test_turns_that_are_scored_one_by_one_have_a_segment_each(tiny_model: Path) -> None:
    template = turn_template(tiny_model, CHATML)
    dialogue = Dialogue(template, [{"role": "user", "content": "3+4?"}], turns_apart=True)
    for text in ("7", "8"):
        dialogue.prompt()
        dialogue.add_completion(complete(template, text), version=0)
        dialogue.messages.append({"role": "user", "content": "No."})
    assert len(dialogue.segments) == 2
    assert dialogue.breaks == ["scored"]


def test_tokens_that_the_tokenizer_would_not_choose_are_drift_and_never_trained_on_in_another_context(
    tiny_model: Path,
) -> None:
    template = turn_template(tiny_model, CHATML)
    whole = template.tokenizer("boxed", add_special_tokens=False)["input_ids"]
    letters = [template.tokenizer(letter, add_special_tokens=False)["input_ids"][0] for letter in "boxed"]
    assert len(whole) < len(letters)
    dialogue = Dialogue(template, [{"role": "user", "content": "3+4?"}])
    first = dialogue.prompt()
    ids = (*letters, template.stop_token_ids[0])
    dialogue.add_completion(Completion(ids, (-1.0,) * len(ids), "stop"), version=0)
    dialogue.messages.append({"role": "user", "content": "No."})
    second = dialogue.prompt()
    assert dialogue.breaks == ["drifted"]
    (drift,) = dialogue.drifts
    assert (drift.turn, drift.held[0], drift.rendered[0]) == (1, letters[0], whole[0])
    assert [segment.prompt_ids for segment in dialogue.segments] == [first, second]


def test_a_turn_that_was_cut_goes_on_behind_what_the_template_adds(tiny_model: Path) -> None:
    template = turn_template(tiny_model, CHATML)
    dialogue = Dialogue(template, [{"role": "user", "content": "3+4?"}])
    dialogue.prompt()
    ids = tuple(template.tokenizer("It is", add_special_tokens=False)["input_ids"])
    message: Message = dialogue.add_completion(Completion(ids, (-1.0,) * len(ids), "length"), version=0)
    assert message == {"role": "assistant", "content": "It is"}
    assert dialogue.segments[0].is_truncated
    dialogue.messages.append({"role": "user", "content": "Go on."})
    dialogue.prompt()
    assert dialogue.breaks == []
