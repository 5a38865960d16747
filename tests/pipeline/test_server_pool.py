"""A pool of servers: whatever they do, each sample is the model's, none is missing, and who failed is named."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from vllm_servers import MODEL, FakeServer, Reply, slow, text_of

from truegold.pipeline.config.engines import ChatConfig, ServerEngineConfig
from truegold.pipeline.engines import endpoint, server_pool
from truegold.pipeline.engines.base import Completion, Request, SamplingParams, score
from truegold.pipeline.engines.chat import ByteEncoder
from truegold.pipeline.engines.vllm_server import ServerEngine
from truegold.verifiers import SetupError

SAMPLING = SamplingParams(max_tokens=64, stop_token_ids=(ByteEncoder.END,), logprobs=False)

Start = Callable[..., FakeServer]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Start servers that end with the test; pauses are short."""
    monkeypatch.setattr(server_pool, "FIRST_PAUSE_S", 0.02)
    monkeypatch.setattr(server_pool, "LONGEST_PAUSE_S", 0.1)
    monkeypatch.setattr(server_pool, "LOOK_EVERY_S", 0.1)
    monkeypatch.setattr(server_pool, "LATE_AT_LEAST_S", 0.15)
    monkeypatch.setattr(endpoint, "CONNECT_S", 1.0)
    servers: list[FakeServer] = []

    def start_one(*arguments: Any, **options: Any) -> FakeServer:
        servers.append(FakeServer(*arguments, **options))
        return servers[-1]

    yield start_one
    for one_server in servers:
        one_server.stop()


def engine_on(*servers: FakeServer, **settings: Any) -> ServerEngine:
    settings = {"concurrency": 8, "timeout_seconds": 10, "outage_seconds": 0.3, "retries": 2, **settings}
    config = ServerEngineConfig(urls=tuple(fake.url for fake in servers), **settings)
    return ServerEngine(config, ByteEncoder(ChatConfig()))


def requests(count: int) -> list[Request]:
    return [Request((1, 2, index % 50), 1000 + index, index) for index in range(count)]


def sample(engine: ServerEngine, count: int, sampling: SamplingParams = SAMPLING) -> dict[int, Completion]:
    """Stream so many requests; check that each comes once."""
    waiting = requests(count)[::-1]

    def take(most: int) -> list[Request] | None:
        return [waiting.pop() for _ in range(min(most, len(waiting)))] if waiting else None

    completions: dict[int, Completion] = {}
    for request, completion in engine.stream(take, sampling):
        assert request.sample not in completions
        completions[request.sample] = completion
    return completions


def check(completions: dict[int, Completion], count: int) -> None:
    """Check that all samples are there, and that each is the model's."""
    assert sorted(completions) == list(range(count))
    for request in requests(count):
        text = text_of(list(request.prompt), request.seed)
        assert completions[request.sample].token_ids == (*text.encode(), ByteEncoder.END)


def facts_of(engine: ServerEngine, fake: FakeServer) -> dict[str, Any]:
    return next(facts for facts in engine.facts()["servers"] if facts["url"] == fake.url)


def test_samples_are_the_same_whatever_servers_answer(start: Start) -> None:
    one, two, three = start(), start(), start(slow(0.01))
    for servers in ((one,), (one, two), (two, three, one)):
        engine = engine_on(*servers)
        check(sample(engine, 100), 100)
        assert all(facts_of(engine, fake)["completions"] for fake in servers)
        engine.close()


def test_generate_keeps_the_order(start: Start) -> None:
    engine = engine_on(start(), start(slow(0.02)))
    drawn = engine.generate([r.prompt for r in requests(30)], SAMPLING, [r.seed for r in requests(30)])
    check(dict(enumerate(drawn)), 30)
    engine.close()


def test_a_server_that_dies_is_done_without_and_comes_back(start: Start) -> None:
    mortal, other = start(slow(0.005)), start(slow(0.005))

    def dying(fake: FakeServer, reply: Reply) -> Reply | None:
        if fake.requests > 30:
            fake.die()
            return None
        return reply

    mortal.behave = dying
    engine = engine_on(mortal, other)
    check(sample(engine, 200), 200)
    dead = facts_of(engine, mortal)
    assert dead["state"] == "down"
    assert "does not answer" in dead["why"]
    assert dead["failures"]
    mortal.rise()
    served = mortal.requests
    deadline = time.monotonic() + 20
    while facts_of(engine, mortal)["state"] != "up":
        assert time.monotonic() < deadline
        time.sleep(0.02)
    check(sample(engine, 100), 100)
    assert mortal.requests > served
    engine.close()


def test_a_server_that_is_slow_gets_less_and_its_late_requests_go_elsewhere(start: Start) -> None:
    sluggish, brisk = start(slow(1.0)), start(slow(0.005))
    engine = engine_on(sluggish, brisk)
    began = time.monotonic()
    check(sample(engine, 300), 300)
    assert time.monotonic() - began < 6
    facts = facts_of(engine, sluggish)
    assert facts["late"]
    assert facts["completions"] < facts_of(engine, brisk)["completions"] / 10
    assert facts["in_flight_at_most"] < 8
    engine.close()


def test_a_server_that_helps_out_is_not_late_where_the_first_one_answers_after_all(start: Start) -> None:
    first, helper = start(slow(0.3)), start(slow(2.0))
    engine = engine_on(first, helper, late_seconds=0.05, concurrency=1)
    check(sample(engine, 4), 4)
    # What was sent to the helper first is late; what it took over is answered by the other one, and is not.
    facts = facts_of(engine, helper)
    assert facts["requests"] > facts["late"]
    assert facts["state"] == "up"
    engine.close()


def test_a_server_that_never_answers_holds_nothing_up(start: Start) -> None:
    mute, other = start(slow(30)), start()
    engine = engine_on(mute, other)
    began = time.monotonic()
    check(sample(engine, 100), 100)
    assert time.monotonic() - began < 8
    assert facts_of(engine, mute)["late"]
    engine.close()


def test_an_overloaded_server_is_sent_no_more_than_it_takes(start: Start) -> None:
    def busy(fake: FakeServer, reply: Reply) -> Reply | int:
        if fake.in_flight > 3:
            return 429
        time.sleep(0.01)
        return reply

    fake = start(busy)
    engine = engine_on(fake, concurrency=64)
    check(sample(engine, 300), 300)
    facts = facts_of(engine, fake)
    assert facts["failures"] < 150
    assert facts["in_flight_at_most"] <= 16
    engine.close()


def test_no_more_requests_are_on_the_way_than_configured(start: Start) -> None:
    fake = start(slow(0.002))
    engine = engine_on(fake, concurrency=5)
    check(sample(engine, 100), 100)
    assert fake.most_in_flight <= 5
    engine.close()


def changed(**fields: Any) -> Callable[[FakeServer, Reply], Reply]:
    """Return what answers with other fields of the choice."""
    return lambda _, reply: {**reply, "choices": [{**reply["choices"][0], **fields}]}


def without(name: str) -> Callable[[FakeServer, Reply], Reply]:
    """Return what leaves a field of the reply or of its choice out."""

    def behave(_: FakeServer, reply: Reply) -> Reply:
        choices = [{key: value for key, value in choice.items() if key != name} for choice in reply["choices"]]
        return {key: value for key, value in {**reply, "choices": choices}.items() if key != name}

    return behave


GARBAGE: dict[str, tuple[Callable[[FakeServer, Reply], Any], str]] = {
    "no JSON": (lambda _, reply: b"<html>502</html>", "not JSON"),
    "half a reply": (lambda _, reply: json.dumps(reply).encode()[:-30], "not JSON"),
    "no text at all": (lambda _, reply: b"\xff\xfe\x00garbage", "not JSON"),
    "an empty reply": (lambda _, reply: b"", "not JSON"),
    "a list": (lambda _, reply: [reply], "not an object"),
    "an error as a success": (lambda _, reply: {"error": {"message": "CUDA error"}}, "CUDA error"),
    "an old error": (lambda _, reply: {"object": "error", "message": "OOM", "code": 500}, "reports an error"),
    "another model": (lambda _, reply: {**reply, "model": "other"}, "answers as the model 'other'"),
    "no choice": (lambda _, reply: {**reply, "choices": []}, "not have exactly one choice"),
    "two choices": (lambda _, reply: {**reply, "choices": reply["choices"] * 2}, "not have exactly one choice"),
    "choices null": (lambda _, reply: {**reply, "choices": None}, "not have exactly one choice"),
    "no token ids": (without("token_ids"), "no token ids"),
    "no text": (without("text"), "no text"),
    "no finish reason": (without("finish_reason"), "for the reason None"),
    "a new finish reason": (changed(finish_reason="tool_calls"), "tool_calls"),
    "no token": (changed(token_ids=[]), "not a list of integers"),
    "tokens as text": (changed(token_ids=["a", "b"]), "not a list of integers"),
    "tokens as truth values": (changed(token_ids=[True, False]), "not a list of integers"),
    "a token outside": (changed(token_ids=[105, 70_000]), "token id 70000"),
    "a negative token": (changed(token_ids=[105, -1]), "token id -1"),
    "tokens of another text": (changed(token_ids=[*b"lorem ipsum dolor", 256]), "returns 18"),
    "another text": (changed(text="lorem ipsum dolor sit"), "do not decode"),
    "another prompt": (changed(prompt_token_ids=[1, 2]), "another prompt"),
    "a prompt cut short": (
        lambda _, reply: {**without("prompt_token_ids")(_, reply), "usage": {"prompt_tokens": 1}},
        "has read 1 tokens",
    ),
    "cut short": (changed(finish_reason="length"), "'length' after"),
    "log-probabilities NaN": (changed(logprobs={"token_logprobs": [math.nan] * 16}), "not log-probabilities"),
    "log-probabilities above 0": (changed(logprobs={"token_logprobs": [0.3] * 16}), "not log-probabilities"),
    "too few log-probabilities": (changed(logprobs={"token_logprobs": [-0.1]}), "does not have a log-probability"),
    "no log-probabilities": (changed(logprobs=None), "does not have a log-probability"),
    "log-probabilities of 400 digits": (changed(logprobs={"token_logprobs": [-(10**400)] * 16}), "not log-prob"),
    "log-probabilities beyond 32 bits": (changed(logprobs={"token_logprobs": [-1e300] * 16}), "not log-probabilities"),
    "log-probabilities as truth values": (changed(logprobs={"token_logprobs": [False] * 16}), "not log-probabilities"),
    "a count that is half a character": (
        lambda _, reply: {**reply, "usage": {"completion_tokens": "\ud800"}},
        r"usage has '\ud800' for completion_tokens",
    ),
    "a count of a megabyte": (lambda _, reply: {**reply, "usage": {"prompt_tokens": "9" * 2**20}}, "usage has '999"),
    "an end in the middle of a word": (
        lambda fake, reply: changed(token_ids=reply["choices"][0]["token_ids"][:-4], text="it is \\boxed")(
            fake, {**reply, "usage": None}
        ),
        "ended by itself, after the token",
    ),
}


@pytest.mark.parametrize("kind", GARBAGE)
def test_a_server_that_answers_garbage_is_put_out_and_named(kind: str, start: Start) -> None:
    behave, why = GARBAGE[kind]

    def later(fake: FakeServer, reply: Reply) -> Any:
        return behave(fake, reply) if fake.requests > 5 else reply

    bad, good = start(later), start(slow(0.002))
    engine = engine_on(bad, good)
    check(sample(engine, 40, SamplingParams(max_tokens=64, stop_token_ids=(256,), logprobs=True)), 40)
    facts = facts_of(engine, bad)
    assert facts["state"] == "out"
    assert why in facts["why"]
    assert len(json.dumps(facts)) < 2000
    assert facts_of(engine, good)["state"] == "up"
    engine.close()


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        *(("max_model_len", length, "max_model_len") for length in (True, 10**30, 1, "4096", None)),
        *(("model", name, "no list of models with names") for name in ("\ud800", "x" * 5_000_000, "", "a\nb", 7)),
    ],
    ids=[*"true huge short text none".split(), *"half long empty lines number".split()],
)
def test_a_server_that_says_what_no_model_is_is_put_out_and_named(
    field: str, value: object, why: str, start: Start
) -> None:
    bad, good = start(), start(slow(0.002))
    setattr(bad, field, value)
    engine = engine_on(bad, good)
    check(sample(engine, 20), 20)
    assert why in facts_of(engine, bad)["why"]
    engine.close()


def test_servers_of_different_lengths_are_refused_with_their_lengths(start: Start) -> None:
    short, long = start(), start()
    short.max_model_len = 64
    with pytest.raises(SetupError, match=r"different max_model_len: .* 64, .* 4096\."):
        check(sample(engine_on(short, long), 20), 20)


def test_a_name_that_is_half_a_character_can_be_reported(start: Start) -> None:
    bad, good = start(), start(slow(0.002))
    bad.model = "\ud800"
    engine = engine_on(bad, good, model=MODEL)
    check(sample(engine, 20), 20)
    assert facts_of(engine, bad)["why"].encode()
    engine.close()


def test_a_server_that_has_another_length_later_is_put_out(start: Start) -> None:
    turncoat, good = start(), start(slow(0.01))
    engine = engine_on(turncoat, good)
    turncoat.max_model_len = 2048
    turncoat.behave = slow(0.05)
    check(sample(engine, 200), 200)
    assert facts_of(engine, turncoat)["why"] == "its max_model_len is 2048, and was 4096 at the start"
    engine.close()


def test_servers_of_other_weights_are_put_out_by_the_majority(start: Start) -> None:
    good, bad, slow_one = start(), start(weights=7), start()
    engine = engine_on(bad, good, slow_one)
    check(sample(engine, 40), 40)
    assert facts_of(engine, bad)["state"] == "out"
    assert "other weights" in facts_of(engine, bad)["why"]
    assert not bad.requests
    engine.close()


def test_two_servers_of_different_weights_are_refused(start: Start) -> None:
    with pytest.raises(SetupError, match="do not have the same weights"):
        engine_on(start(), start(weights=7))


def test_a_server_that_is_dead_from_the_start_is_named(start: Start) -> None:
    dead, good = start(), start()
    dead.die()
    engine = engine_on(dead, good)
    check(sample(engine, 40), 40)
    assert facts_of(engine, dead)["state"] != "up"
    assert "does not answer" in facts_of(engine, dead)["why"]
    engine.close()


def test_a_server_that_serves_another_model_later_is_put_out(start: Start) -> None:
    turncoat, good = start(), start(slow(0.01))
    engine = engine_on(turncoat, good)
    turncoat.model = "other"
    turncoat.behave = slow(0.05)
    check(sample(engine, 200), 200)
    assert "serves 'other', not m" in facts_of(engine, turncoat)["why"]
    engine.close()


def test_when_all_die_the_error_names_each_and_what_is_finished_was_yielded(start: Start) -> None:
    def dying(fake: FakeServer, reply: Reply) -> Reply | None:
        if fake.requests > 20:
            fake.die()
            return None
        return reply

    servers = [start(dying), start(dying)]
    engine = engine_on(*servers, retries=20)
    waiting = requests(200)[::-1]
    drawn = []
    with pytest.raises(SetupError, match=r"No vLLM server .*: http.* is down .*; http.* is down") as caught:
        for request, _ in engine.stream(lambda most: [waiting.pop() for _draw in range(most)], SAMPLING):
            drawn.append(request.sample)
    assert "\n" not in str(caught.value)
    assert len(drawn) == len(set(drawn)) == sum(facts["completions"] for facts in engine.facts()["servers"])
    engine.close()


def test_a_request_that_fails_everywhere_ends_the_run(start: Start) -> None:
    def poisoned(_: FakeServer, reply: Reply) -> Reply | int:
        return 500 if reply["choices"][0]["prompt_token_ids"][2] == 17 else reply

    engine = engine_on(start(poisoned), start(poisoned))
    with pytest.raises(SetupError, match=r"A request failed 3 times, last at http.*HTTP 500"):
        sample(engine, 40)
    engine.close()


def test_a_refused_request_is_one_line_at_once(start: Start) -> None:
    engine = engine_on(start(lambda *_: 401))
    with pytest.raises(SetupError, match=r"is out \(it refuses /completions with HTTP 401"):
        sample(engine, 3)
    engine.close()


def test_outputs_are_scored_by_the_log_probabilities_of_a_longer_prompt(start: Start) -> None:
    engine = engine_on(start())
    scored = score(engine, [(1, 2), (1, 2, 3)], [(7, 8, 9), (4,)])
    assert [len(logprobs) for logprobs in scored] == [3, 1]
    engine.close()
