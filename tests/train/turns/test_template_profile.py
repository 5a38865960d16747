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
from truegold.train.turns.template import TurnTemplate
from truegold.train.turns.template_profile import profile_template, unread_arguments
from truegold.verifiers import ConfigError, SetupError

OPENS = CHATML.replace("assistant\n{% endif", "assistant\n<think>\n{% endif")
SYSTEM_FIRST = "{% if messages[0].role != 'system' %}{{ raise_exception('system first') }}{% endif %}" + CHATML
LIKE_DEEPSEEK = CHATML.replace(
    "{{ message.content }}",
    "{% if message.role == 'assistant' and not loop.last %}{{ message.content.split('</think>')[-1] }}"
    "{% else %}{{ message.content }}{% endif %}",
)
"""Knows thoughts that stand in the content, and drops them."""
WANTS_THOUGHTS = CHATML.replace(
    "{{ message.content }}",
    "{{ message.content }}{% if message.role == 'assistant' and message.content.index('</think>') %}{% endif %}",
)
"""Fails with Python's own error at an answer without a thought."""
NO_SYSTEM = "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}" + CHATML


@pytest.mark.parametrize(
    ("chat_template", "expected"),
    [
        (CHATML, {"keeps_turns": True, "keeps_thoughts": None, "keeps_thoughts_in_tool_loops": None}),
        (QWEN3, {"keeps_turns": True, "keeps_thoughts": False, "keeps_thoughts_in_tool_loops": None}),
        (KIMI, {"keeps_turns": False, "keeps_thoughts": False, "keeps_thoughts_in_tool_loops": False}),
        (OPENS, {"opens_thought": True}),
        (NO_SYSTEM, {"has_system": False, "needs_system": False, "keeps_turns": True}),
        (SYSTEM_FIRST, {"has_system": True, "needs_system": True, "keeps_turns": True}),
        (LIKE_DEEPSEEK, {"keeps_turns": True, "keeps_thoughts": False, "keeps_thoughts_in_tool_loops": None}),
        (WANTS_THOUGHTS, {"has_system": True, "keeps_turns": False, "keeps_thoughts": None}),
    ],
    ids=[
        *("keeps all", "qwen3", "kimi", "opens a thought", "no system message", "system message first"),
        *("deepseek", "fails by itself"),
    ],
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


@pytest.fixture
def model_copy(tiny_model: Path, tmp_path: Path) -> Path:
    model = tmp_path / "model"
    shutil.copytree(tiny_model, model)
    return model


@pytest.mark.parametrize(
    ("chat_template", "shown"),
    [
        (SYSTEM_FIRST, "refuses a dialogue without one                   yes"),
        (LIKE_DEEPSEEK, "keeps earlier thoughts                           no"),
        (WANTS_THOUGHTS, "keeps earlier answers as they were written       no"),
    ],
)
def test_the_command_knows_templates_that_refuse_some_of_what_it_tries(
    model_copy: Path, chat_template: str, shown: str
) -> None:
    (model_copy / "chat_template.jinja").write_text(chat_template)
    done = CliRunner().invoke(app, ["template", str(model_copy)])
    assert (done.exit_code, shown in done.output) == (0, True), done.output


@pytest.mark.parametrize(
    ("stated", "shown"), [('"0.6"', "temperature 0.6"), ('"hot"', "not stated"), ("[1]", "not stated")]
)
def test_the_command_reads_numbers_that_are_written_as_text(model_copy: Path, stated: str, shown: str) -> None:
    (model_copy / "generation_config.json").write_text(f'{{"temperature": {stated}, "eos_token_id": 2}}')
    done = CliRunner().invoke(app, ["template", str(model_copy)])
    assert (done.exit_code, shown in done.output) == (0, True), done.output


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("generation_config.json", "{half", "generation_config.json cannot be read"),
        ("chat_template.jinja", CHATML + "{% if %}", "refuses a dialogue of user: Expected an expression"),
    ],
)
def test_the_command_says_what_of_a_checkpoint_cannot_be_read(
    model_copy: Path, name: str, text: str, error: str
) -> None:
    (model_copy / name).write_text(text)
    with pytest.raises((ConfigError, SetupError), match=error):
        CliRunner().invoke(app, ["template", str(model_copy)], catch_exceptions=False)


def test_arguments_that_a_template_never_reads_are_named(tiny_model: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(str(tiny_model))
    tokenizer.chat_template = (
        "{% if enable_thinking is defined and enable_thinking %}think{% endif %}{% generation %}x{% endgeneration %}"
        "{% if not date is defined %}{% set date = 'today' %}{% endif %}{% for m in messages %}{% break %}{% endfor %}"
    )
    arguments = {"enable_thinkin": False, "enable_thinking": False, "date": "now"}
    assert list(unread_arguments(tokenizer, arguments)) == ["enable_thinkin"]
    tokenizer.chat_template = {"default": "{{ one }}", "tool_use": "{{ other }}"}
    assert list(unread_arguments(tokenizer, {"one": 1, "other": 2, "third": 3})) == ["third"]
    # Nothing is claimed of a template that cannot be read.
    tokenizer.chat_template = "{% unknown %}"
    assert unread_arguments(tokenizer, {"one": 1}) == {}


def test_a_dialogue_that_its_template_refuses_says_why(tiny_model: Path) -> None:
    template = turn_template(tiny_model, NO_SYSTEM)
    with pytest.raises(ConfigError, match="refuses a dialogue of system, user: no system"):
        template.render([{"role": "system", "content": "x"}, {"role": "user", "content": "y"}])


def test_a_tokenizer_without_a_template_is_refused(tiny_model: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(str(tiny_model))
    tokenizer.chat_template = None
    with pytest.raises(SetupError, match="has no chat template"):
        TurnTemplate(tokenizer, (2,))
