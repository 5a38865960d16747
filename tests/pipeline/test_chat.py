"""Prompts are encoded once, with one BOS, and completions end with the token that ends a turn."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truegold.pipeline.config.engines import ChatConfig
from truegold.pipeline.engines.chat import ByteEncoder, ChatEncoder, load_encoder
from truegold.verifiers import SetupError

pytestmark = pytest.mark.filterwarnings("default")

TEMPLATE = (
    "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}</{{ m['role'] }}>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


def tokenizer(template: str | None, adds_bos: bool) -> Any:
    """Return a byte-level tokenizer with this chat template."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    special = ["<s>", "</s>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    raw.train_from_iterator([], trainers.BpeTrainer(special_tokens=special, initial_alphabet=alphabet))
    if adds_bos:
        raw.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    made = PreTrainedTokenizerFast(tokenizer_object=raw, bos_token="<s>", eos_token="</s>")
    made.chat_template = template
    return made


def encoder(template: str | None, chat: ChatConfig, adds_bos: bool = True) -> ChatEncoder:
    """Return its encoder, whose stop token is 1."""
    return ChatEncoder(tokenizer(template, adds_bos), chat, (1,))


def test_the_template_is_applied_once_and_adds_the_only_bos() -> None:
    made = encoder("<s>" + TEMPLATE, ChatConfig(system="Be brief.", user="{prompt} Answer:"))
    ids = made.encode("What is 1+1?")
    assert ids[0] == 0
    assert ids.count(0) == 1
    assert made.decode(ids) == "<system>Be brief.</system><user>What is 1+1? Answer:</user><assistant>"


def test_without_a_template_the_tokenizer_adds_its_bos() -> None:
    made = encoder(None, ChatConfig(system="Be brief."))
    ids = made.encode("What is 1+1?")
    assert ids.count(0) == 1
    assert made.decode(ids) == "Be brief.\n\nWhat is 1+1?"


def test_a_template_can_be_switched_off() -> None:
    made = encoder(TEMPLATE, ChatConfig(use_template=False))
    assert made.decode(made.encode("1+1?")) == "1+1?"


def test_a_second_bos_is_refused() -> None:
    with pytest.raises(SetupError, match="two BOS tokens"):
        encoder(None, ChatConfig(user="<s>{prompt}"))


@pytest.mark.parametrize(
    ("condition", "chat", "error"),
    [
        ("messages[0].role != 'system'", {}, "a problem without a system message: no! Set chat.system"),
        (
            "messages[0].role == 'system'",
            {"system": "x"},
            "a problem with a system message: no! Leave out chat.system",
        ),
    ],
)
def test_a_template_that_refuses_problems_says_what_to_set(condition: str, chat: dict[str, str], error: str) -> None:
    template = f"{{% if {condition} %}}{{{{ raise_exception('no!') }}}}{{% endif %}}" + TEMPLATE
    with pytest.raises(SetupError, match=error):
        encoder(template, ChatConfig.model_validate(chat), adds_bos=False)
    with pytest.raises(SetupError, match=r"refuses a problem .* division by zero"):
        encoder("{{ 1 / 0 }}", ChatConfig(), adds_bos=False)


def test_a_generation_config_that_is_no_json_is_named(tmp_path: Path) -> None:
    tokenizer(TEMPLATE, adds_bos=False).save_pretrained(tmp_path)
    (tmp_path / "generation_config.json").write_text("{half")
    with pytest.raises(SetupError, match=r"generation_config\.json cannot be read"):
        load_encoder(tmp_path, ChatConfig())


def test_braces_in_a_problem_are_left_alone() -> None:
    made = encoder(TEMPLATE, ChatConfig(user="{prompt} \\boxed{}"))
    assert "{x} {prompt} \\boxed{}" in made.decode(made.encode("{x} {prompt}"))


def test_a_completion_ends_with_the_stop_token() -> None:
    made = encoder(TEMPLATE, ChatConfig())
    ids = made.encode_completion("\\boxed{2}")
    assert ids[-1] == 1
    assert made.decode(ids) == "\\boxed{2}"
    scripted = ByteEncoder(ChatConfig())
    assert scripted.decode(scripted.encode_completion("½ 答案")) == "½ 答案"


@settings(max_examples=30)
@given(st.lists(st.integers(0, 257), max_size=30))
def test_a_completion_decodes_as_its_tokenizer_says(ids: list[int]) -> None:
    made = plain_encoder()
    assert made.decode(ids) == made.tokenizer.decode(ids, skip_special_tokens=True)


@cache
def plain_encoder() -> ChatEncoder:
    """Return one encoder for all examples."""
    return encoder(None, ChatConfig())


def test_a_tokenizer_with_a_decoder_of_its_own_is_asked() -> None:
    raw = tokenizer(None, adds_bos=True)

    class Own(type(raw)):  # type: ignore[misc]
        def decode(self, *_: Any, **__: Any) -> str:
            """Decode in another way."""
            return "its own"

    raw.__class__ = Own
    assert ChatEncoder(raw, ChatConfig(), (1,)).decode([5, 6]) == "its own"
