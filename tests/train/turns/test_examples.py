"""Dialogues are learned in the contexts that rollouts will have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from turn_templates import CHATML, QWEN3, turn_template

from truegold.pipeline.config.engines import ChatConfig
from truegold.pipeline.engines.chat import ChatEncoder, load_encoder
from truegold.pipeline.running.progress import NullProgress
from truegold.train.config.models import SftConfig
from truegold.train.config.turns import DialoguesConfig, TurnsConfig
from truegold.train.sft import check_examples, dialogues_of, read_examples, sft
from truegold.train.turns.dialogue import dialogue_segments
from truegold.train.turns.episodes import make_runner
from truegold.verifiers import InputError

SHOWS_ALL = (
    "{% if tools %}Tools: {{ tools | tojson }} {% endif %}"
    "{% if enable_thinking is defined and not enable_thinking %}NOTHINK {% endif %}" + CHATML
)
ENVIRONMENT = """
class World:
    tools = [{"type": "function", "function": {"name": "look"}}]

    def reset(self, row):
        return []

    def step(self, completion):
        return None
"""
SPOKEN = [{"role": role, "content": text} for role, text in zip(["user", "assistant"] * 3, "abcdef", strict=True)]


def write(path: Path, *entries: object) -> Path:
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return path


@pytest.fixture
def encoder(tiny_model: Path) -> ChatEncoder:
    return load_encoder(tiny_model, ChatConfig())


@pytest.fixture
def turns(tmp_path: Path) -> TurnsConfig:
    (tmp_path / "world.py").write_text(ENVIRONMENT)
    settings = {"template_args": {"enable_thinking": False}, "reminder": {"goal": True, "actions": 2}}
    return TurnsConfig.model_validate({"environment": f"{tmp_path / 'world.py'}:World", **settings})


def test_examples_have_the_tools_arguments_and_reminder_of_rollouts(
    tmp_path: Path, encoder: ChatEncoder, turns: TurnsConfig
) -> None:
    encoder.tokenizer.chat_template = SHOWS_ALL
    path = write(tmp_path / "sft.jsonl", {"messages": SPOKEN})
    segments = list(read_examples(path, encoder, ChatConfig(), dialogues_of(turns)))
    template = make_runner(None, encoder.tokenizer, encoder.stop_token_ids, None, turns).template  # type: ignore[arg-type]
    # The second prompt extends the first one, and the third has no reminder in front of the second question any more.
    first = {"role": "user", "content": "Goal: a\n\nYour last actions:\n1. b\n\nc"}
    second = {"role": "user", "content": "Goal: a\n\nYour last actions:\n1. b\n2. d\n\ne"}
    last_prompt = template.encode([*SPOKEN[:4], second])
    assert [segment.prompt_ids for segment in segments] == [template.encode(SPOKEN[:1]), last_prompt]
    both_turns = template.decode([*segments[0].prompt_ids, *segments[0].output_ids])
    assert both_turns == f"{template.render([*SPOKEN[:2], first])}d<|im_end|>"
    assert template.decode(segments[1].output_ids) == "f<|im_end|>"
    assert all(part in both_turns for part in ("Tools: [", "NOTHINK"))


def test_single_answers_are_refused_where_rollouts_have_what_they_lack(
    tmp_path: Path, encoder: ChatEncoder, turns: TurnsConfig
) -> None:
    path = write(tmp_path / "sft.jsonl", {"messages": SPOKEN}, {"prompt": "a", "completion": "b"})
    with pytest.raises(
        InputError, match=r"sft\.jsonl, line 2: the prompts of rollouts have tools .* Write examples as dialogues"
    ):
        list(read_examples(path, encoder, ChatConfig(), dialogues_of(turns)))
    # A reminder is not there before the second turn: the dialogue is two segments, and the answer one.
    only_reminder = DialoguesConfig(reminder=turns.reminder)
    assert len(list(read_examples(path, encoder, ChatConfig(), only_reminder))) == 3


def test_worked_solutions_are_refused_there_too(tmp_path: Path, tiny_model: Path) -> None:
    config = SftConfig.model_validate({"dialogues": {"template_args": {"enable_thinking": False}}})
    with pytest.raises(InputError, match="Worked solutions are single answers"):
        sft({"model": tiny_model, "rows": tmp_path / "rows.parquet"}, config, tmp_path, NullProgress())


@pytest.mark.parametrize(
    ("condition", "reason"),
    [("raise_exception('not twice')", "refuses a dialogue of .*: not twice"), ("1 / 0", "ZeroDivisionError")],
)
def test_a_dialogue_that_the_template_refuses_is_named_with_its_line(
    tmp_path: Path, encoder: ChatEncoder, condition: str, reason: str
) -> None:
    encoder.tokenizer.chat_template = f"{{% if messages|length > 2 %}}{{{{ {condition} }}}}{{% endif %}}" + CHATML
    path = write(tmp_path / "sft.jsonl", {"messages": SPOKEN[:2]}, {"messages": SPOKEN})
    with pytest.raises(InputError, match=rf"sft\.jsonl, line 2: .*{reason}"):
        list(read_examples(path, encoder, ChatConfig()))


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (
            '{"question": "1+1?", "answer": "2"}',
            "has no prompt and no completion; it has question, answer. Each line of",
        ),
        ('{"prompt": "1+1?", "answer": "2"}', "has no completion; it has prompt, answer"),
        ('{"prompt": [{"role": "user", "content": "1+1?"}], "completion": "2"}', "prompt is not text, but [{'role'"),
        ('{"prompt": "1+1?", "completion": null}', "completion is not text, but None"),
        ('{"messages": "1+1?"}', "has no prompt and no completion; it has messages"),
        ("[1]", "is not a JSON object"),
        ("question,answer", "is not JSON ("),
    ],
)
def test_an_example_that_cannot_be_learned_is_named_before_a_run(line: str, fault: str, tmp_path: Path) -> None:
    path = tmp_path / "sft.jsonl"
    path.write_text('{"prompt": "1+1?", "completion": "2"}\n\n' + line)
    with pytest.raises(InputError) as caught:
        check_examples(path)
    assert f"sft.jsonl, line 3{'' if fault.startswith(('has', 'is')) else ':'} {fault}" in str(caught.value)


def test_examples_are_cut_where_the_template_drops_thoughts(tiny_model: Path) -> None:
    template = turn_template(tiny_model, QWEN3)
    messages = [
        {"role": "user", "content": "3+4?"},
        {"role": "assistant", "content": "7", "reasoning_content": "3 and 4"},
        {"role": "user", "content": "Sure?"},
        {"role": "assistant", "content": "Yes", "reasoning_content": "again"},
    ]
    first, second = dialogue_segments(messages, template)
    assert template.decode(first.output_ids) == "<think>\n3 and 4\n</think>\n\n7<|im_end|>"
    assert "3 and 4" not in template.decode(second.prompt_ids)
    assert template.decode(second.output_ids) == "<think>\nagain\n</think>\n\nYes<|im_end|>"


def test_examples_of_a_template_that_keeps_all_are_one_segment_of_the_assistant_s_tokens(tiny_model: Path) -> None:
    template = turn_template(tiny_model, CHATML)
    messages = [{"role": role, "content": role[0]} for role in ("user", "assistant", "user", "assistant", "user")]
    (segment,) = dialogue_segments(messages, template)
    trained = [token for token, sampled in zip(segment.output_ids, segment.sampled, strict=True) if sampled]
    assert template.decode(trained) == "a<|im_end|>a<|im_end|>"


@pytest.mark.parametrize(
    ("messages", "error"),
    [
        ([{"role": "user", "content": "x"}], "needs a message with the role assistant"),
        ([{"role": "assistant", "content": "x"}], "and another message before it"),
        ([{"role": "user"}], "the content of a message must be text"),
        ("hello", "messages must be a list"),
    ],
)
def test_what_is_no_dialogue_is_refused(tiny_model: Path, messages: Any, error: str) -> None:
    with pytest.raises(TypeError, match=error):
        dialogue_segments(messages, turn_template(tiny_model, CHATML))
