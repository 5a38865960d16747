"""What is told before the first step: family, think tags, chat template, length, sampling."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from turn_templates import KIMI

from truegold.pipeline.config.engines import ChatConfig
from truegold.pipeline.engines.chat import load_encoder
from truegold.train.config.grpo import GrpoConfig
from truegold.train.grpo.start_checks import EvalSampling, advise, family_advice, overlong_advice, template_advice

CARD = EvalSampling(0.6, 0.95, 20, "generation_config.json")
LENGTH = {"name": "brief", "verifier": "length", "offset": -1, "args": {"max": 100}}


def advice_on(tiny_model: Path, chat: ChatConfig | None = None, template: str = "", **settings: Any) -> str:
    encoder = load_encoder(tiny_model, chat or ChatConfig())
    encoder.tokenizer.chat_template += template
    return "\n".join(advise(GrpoConfig.model_validate(settings), encoder, "llama", CARD))


def test_think_tags_of_several_tokens_are_told_with_an_alternative(tiny_model: Path) -> None:
    asking = ChatConfig(system="Reason inside <think></think>.")
    assert "<think> is " in advice_on(tiny_model, asking)
    assert "The tokenizer has no think tags of one token" in advice_on(tiny_model, asking)
    assert "<think>" not in advice_on(tiny_model)
    encoder = load_encoder(tiny_model, asking)
    encoder.tokenizer.add_special_tokens({"additional_special_tokens": ["[THINK]", "[/THINK]"]})
    lines = advise(GrpoConfig(), encoder, "llama", CARD)
    assert any("Tags of one token are [THINK] and [/THINK]." in line for line in lines)


def test_a_template_that_opens_the_tag_itself_is_told(tiny_model: Path) -> None:
    terms = [{"name": "correct"}, {"name": "format", "verifier": "regex", "args": {"pattern": "^<think>"}}]
    lines = advice_on(tiny_model, template="<think>\n", reward={"terms": terms})
    assert "The chat template writes <think> at the end of the prompt" in lines


DROPS = "{% set text = message['content'].split('</think>')[-1] %}"
TURNS = "{% for message in messages %}[{{ message['role'] }}]STRIP{{ text }}{% endfor %}"
QWEN3 = """{% set seen = namespace(last=0) %}{% for message in messages %}{% if message['role'] == 'user' %}
{% set seen.last = loop.index0 %}{% endif %}{% endfor %}{% for message in messages %}
{% if loop.index0 > seen.last %}{{ message['content'] }}{% else %}
{{ message['content'].split('</think>')[-1] }}{% endif %}
{% endfor %}"""


SYSTEM_FIRST = "{% if messages[0].role != 'system' %}{{ raise_exception('system first') }}{% endif %}"


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        (TURNS.replace("STRIP", "{% set text = message['content'] %}"), "keeps the thinking of earlier turns"),
        (TURNS.replace("STRIP", DROPS), "drops the thinking of earlier turns, also between tool calls"),
        (QWEN3, "drops the thinking of earlier turns: in dialogues"),
        ("{{ raise_exception('no') }}", None),
        (SYSTEM_FIRST + QWEN3, "drops the thinking of earlier turns: in dialogues"),
        (KIMI, "drops the thinking of earlier turns, also between tool calls"),
    ],
)
def test_the_chat_template_is_asked_what_it_does_to_earlier_turns(
    tiny_model: Path, template: str, expected: str | None
) -> None:
    tokenizer = load_encoder(tiny_model, ChatConfig()).tokenizer
    tokenizer.chat_template = template
    assert [expected in line for line in template_advice(tokenizer) if expected] == ([True] if expected else [])


def test_arguments_that_the_chat_template_never_reads_are_told(tiny_model: Path) -> None:
    template = "{% if enable_thinking %}{% endif %}"
    arguments = {"enable_thinkin": False, "enable_thinking": False}
    turns = {"environment": "shop.py:Shop", "template_args": arguments}
    lines = advice_on(tiny_model, template=template, turns=turns)
    assert "turns.template_args.enable_thinkin changes nothing" in lines
    assert "did you mean enable_thinking?" in lines
    assert "template_args.enable_thinking changes" not in lines


def test_a_punishment_of_length_turns_the_mask_of_cut_completions_off(tiny_model: Path) -> None:
    terms = {"reward": {"terms": [{"name": "correct"}, LENGTH]}}
    plain, punishing = (GrpoConfig.model_validate(values).resolve_masks() for values in ({}, terms))
    assert (plain.objective.masks.truncated, punishing.objective.masks.truncated) == (True, False)
    assert overlong_advice(plain) == []
    assert "are trained on, because the term brief punishes them" in overlong_advice(punishing)[0]
    asked = GrpoConfig.model_validate({**terms, "objective": {"masks": {"truncated": True}}}).resolve_masks()
    assert asked.objective.masks.truncated is True
    assert "the policy does not learn from the punishment" in overlong_advice(asked)[0]


def test_a_length_that_is_only_measured_leaves_the_mask_on() -> None:
    measured = {"reward": {"terms": [{"name": "correct"}, {**LENGTH, "weight": 0}]}}
    assert GrpoConfig.model_validate(measured).resolve_masks().objective.masks.truncated is True


def test_sampling_is_told_for_evaluation_and_for_training(tiny_model: Path) -> None:
    lines = advice_on(tiny_model)
    assert "temperature 0.6, top_p 0.95, top_k 20 (generation_config.json); rollouts at temperature 1" in lines
    assert "explore less" in advice_on(tiny_model, sampling={"temperature": 0.7})


def test_families_without_a_report_get_no_advice() -> None:
    assert "arXiv 2503.01307" in family_advice("llama")[0]
    assert family_advice("some_new_family") == []
