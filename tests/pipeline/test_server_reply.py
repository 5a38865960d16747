"""A reply of a server: read as it was sent, or refused for what no sound server would send."""

from __future__ import annotations

import json
from contextlib import nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st
from vllm_servers import MODEL, sound_reply

from truegold.pipeline.config.engines import ChatConfig
from truegold.pipeline.engines.chat import ByteEncoder
from truegold.pipeline.engines.endpoint import Failure, Unsound
from truegold.pipeline.engines.server_replies import CompletionRequest, read_reply


def test_a_server_may_end_a_text_at_a_token_of_its_own_that_it_names() -> None:
    body = {"model": MODEL, "prompt": [1, 2, 3], "max_tokens": 64, "seed": 5}
    reply = sound_reply(body)
    choice = reply["choices"][0]
    request = CompletionRequest((1, 2, 3), 64, logprobs=False, stop_token_ids=(ByteEncoder.END,), model=MODEL)
    choice["token_ids"][-1] = ord("!")
    for reason, is_sound in ((ord("!"), True), (ord("?"), False), (None, False), ("!", False), (True, False)):
        choice["stop_reason"] = reason
        with nullcontext() if is_sound else pytest.raises(Unsound, match="ended by itself"):
            read_reply(json.dumps(reply).encode(), request, ByteEncoder(ChatConfig()))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 300) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["token_logprobs", "x"]), inner),
    max_leaves=5,
)


@given(st.data())
def test_whatever_field_is_changed_a_reply_is_read_as_it_was_or_refused(data: st.DataObject) -> None:
    prompt = (1, 2, 3)
    body = {"model": MODEL, "prompt": list(prompt), "max_tokens": 64, "seed": 5, "logprobs": 0}
    reply = sound_reply(body)
    request, encoder = CompletionRequest(prompt, 64, logprobs=True, model=MODEL), ByteEncoder(ChatConfig())
    sound, _ = read_reply(json.dumps(reply).encode(), request, encoder)
    part = data.draw(st.sampled_from([reply, reply["choices"][0], reply["usage"]]))
    part[data.draw(st.sampled_from(sorted(part)))] = data.draw(VALUES)
    try:
        completion, _ = read_reply(json.dumps(reply).encode(), request, encoder)
    except (Unsound, Failure):
        return
    assert completion.token_ids == sound.token_ids


@given(st.binary(max_size=40) | st.just(b"[" * 100_000))
def test_no_bytes_are_a_reply(content: bytes) -> None:
    with pytest.raises(Unsound):
        read_reply(content, CompletionRequest((1,), 4, logprobs=False, model=MODEL), None)


def test_a_server_without_log_probabilities_of_prompts_is_unsound() -> None:
    request = CompletionRequest((1, 2), 8, logprobs=False, prompt_logprobs=True, model=MODEL)
    body = {"model": MODEL, "prompt": [1, 2], "max_tokens": 8, "seed": 1, "logprobs": None}
    with pytest.raises(Unsound, match="no log-probabilities of the prompt"):
        read_reply(json.dumps(sound_reply(body)).encode(), request, None)
