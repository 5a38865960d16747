"""What a template does to the past is found out by trying it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer
from turn_templates import CHATML, KIMI, QWEN3, turn_template
from typer.testing import CliRunner

from truegold.flows.cli.app import app
from truegold.train.turns.examples import dialogue_segments
from truegold.train.turns.template import TurnTemplate
from truegold.train.turns.thinking import profile_template
from truegold.verifiers import ConfigError, SetupError

OPENS = CHATML.replace("assistant\n{% endif", "assistant\n<think>\n{% endif")
NO_SYSTEM = "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}" + CHATML


@pytest.mark.parametrize(
    ("chat_template", "expected"),
    [
        (CHATML, {"keeps_turns": True, "keeps_thoughts": None, "keeps_thoughts_in_tool_loops": None}),
        (QWEN3, {"keeps_turns": True, "keeps_thoughts": False, "keeps_thoughts_in_tool_loops": None}),
        (KIMI, {"keeps_turns": False, "keeps_thoughts": False, "keeps_thoughts_in_tool_loops": False}),
        (OPENS, {"opens_thought": True}),
        (NO_SYSTEM, {"has_system": False, "keeps_turns": True}),
    ],
    ids=["keeps all", "qwen3", "kimi", "opens a thought", "no system message"],
)
def test_a_template_is_known_by_what_it_does(tiny_model: Path, chat_template: str, expected: dict[str, Any]) -> None:
    profile = profile_template(turn_template(tiny_model, chat_template), tiny_model)
    assert {name: getattr(profile, name) for name in expected} == expected


def test_think_tags_of_one_token_and_stated_sampling_are_looked_up(tiny_model: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(tiny_model, model)
    tokenizer = AutoTokenizer.from_pretrained(str(model))
    tokenizer.add_tokens(["[THINK]", "[/THINK]"])
    tokenizer.save_pretrained(str(model))
    (model / "generation_config.json").write_text(json.dumps({"temperature": 0.6, "top_k": 20, "eos_token_id": 2}))
    done = CliRunner().invoke(app, ["template", str(model), "--json"])
    assert done.exit_code == 0, done.output
    profile = json.loads(done.output)
    assert profile["think_tags"] == ["[THINK]", "[/THINK]"]
    assert profile["stated_sampling"] == {"temperature": 0.6, "top_k": 20}
    assert any("temperature 0.6" in line for line in profile["advice"])
    shown = CliRunner().invoke(app, ["template", str(model)]).output
    assert "keeps earlier answers as they were written       yes" in shown


def test_a_dialogue_that_its_template_refuses_says_why(tiny_model: Path) -> None:
    template = turn_template(tiny_model, NO_SYSTEM)
    with pytest.raises(ConfigError, match="refuses a dialogue of system, user: no system"):
        template.render([{"role": "system", "content": "x"}, {"role": "user", "content": "y"}])


def test_a_tokenizer_without_a_template_is_refused(tiny_model: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(str(tiny_model))
    tokenizer.chat_template = None
    with pytest.raises(SetupError, match="has no chat template"):
        TurnTemplate(tokenizer, (2,))


# Dialogues to learn from.


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
        ([{"role": "user", "content": "x"}], "needs a message of the assistant's"),
        ([{"role": "assistant", "content": "x"}], "and another one before it"),
        ([{"role": "user"}], "the content of a message must be text"),
        ("hello", "messages must be a list"),
    ],
)
def test_what_is_no_dialogue_is_refused(tiny_model: Path, messages: Any, error: str) -> None:
    with pytest.raises(TypeError, match=error):
        dialogue_segments(messages, turn_template(tiny_model, CHATML))
