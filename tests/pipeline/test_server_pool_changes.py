"""A pool that servers leave and join: those that were put out come back when they are sound, and a list is followed."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_server_pool import Start, check, engine_on, facts_of, requests, sample, start
from vllm_servers import FakeServer, Reply, slow, text_of

from truegold.pipeline.config.engines import ChatConfig, ServerEngineConfig
from truegold.pipeline.engines import server_pool
from truegold.pipeline.engines.base import Completion, Request, SamplingParams, sample_seed
from truegold.pipeline.engines.chat import ByteEncoder
from truegold.pipeline.engines.vllm_server import ServerEngine
from truegold.verifiers import ConfigError, SetupError

__all__ = ["start"]

HTML = b"<html>502</html>"


def wait_for(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def engine_of(path: Path, **settings: Any) -> ServerEngine:
    settings = {"concurrency": 8, "timeout_seconds": 10, "outage_seconds": 0.3, "retries": 2, **settings}
    return ServerEngine(ServerEngineConfig(urls_file=str(path), **settings), ByteEncoder(ChatConfig()))


def write(path: Path, *servers: FakeServer) -> Path:
    aside = path.with_suffix(".aside")
    aside.write_text("# servers\n" + "".join(f"{server.url}/  # one\n\n" for server in servers))
    return aside.rename(path)


@pytest.fixture
def short_exile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_pool, "OUT_PAUSE_S", 0.1)


@pytest.mark.usefixtures("short_exile")
def test_a_server_that_answered_garbage_comes_back_when_it_is_sound(start: Start) -> None:
    bad, good = start(lambda fake, reply: HTML if fake.requests > 5 else reply), start(slow(0.005))
    engine = engine_on(bad, good)
    check(sample(engine, 40), 40)
    served, bad.behave = bad.requests, None
    wait_for(lambda: facts_of(engine, bad)["state"] == "up")
    assert all("not JSON" in why for why in facts_of(engine, bad)["put_out_for"])
    check(sample(engine, 40), 40)
    assert bad.requests > served
    engine.close()


@pytest.mark.usefixtures("short_exile")
def test_a_server_of_other_weights_comes_back_with_those_of_the_others_alone(start: Start) -> None:
    good, bad, third = start(), start(weights=7), start()
    engine = engine_on(bad, good, third)
    wait_for(lambda: "put_out_for" in facts_of(engine, bad))
    assert "other weights" in facts_of(engine, bad)["put_out_for"][0]
    assert not bad.requests
    bad.weights = 0
    wait_for(lambda: facts_of(engine, bad)["state"] == "up")
    check(sample(engine, 80), 80)
    assert bad.requests
    engine.close()


@pytest.mark.usefixtures("short_exile")
def test_a_server_that_is_started_again_with_other_weights_gets_no_request(start: Start) -> None:
    turncoat, good = start(slow(0.005)), start(slow(0.005))
    engine = engine_on(turncoat, good)
    check(sample(engine, 20), 20)
    turncoat.die()
    check(sample(engine, 40), 40)
    wait_for(lambda: facts_of(engine, turncoat)["state"] == "down")
    turncoat.weights = 7
    served = turncoat.requests
    turncoat.rise()
    wait_for(lambda: facts_of(engine, turncoat)["state"] == "out")
    check(sample(engine, 40), 40)
    assert turncoat.requests == served
    assert "other weights" in facts_of(engine, turncoat)["why"]
    engine.close()


def test_a_server_that_is_put_out_again_and_again_stays_out(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_pool, "OUT_PAUSE_S", 0.01)
    bad, good = start(lambda *_: HTML), start(slow(0.005))
    engine = engine_on(bad, good)
    server = engine._pool.servers[0]

    def more() -> bool:
        check(sample(engine, 20), 20)
        return len(server.put_out_for) == server_pool.TIMES_OUT

    wait_for(more)
    served = bad.requests
    bad.behave = None
    check(sample(engine, 100), 100)
    assert (bad.requests, server.state) == (served, "out")
    engine.close()


@pytest.mark.usefixtures("short_exile")
def test_when_the_only_server_was_put_out_the_run_waits_for_it(start: Start) -> None:
    only = start(lambda fake, reply: HTML if fake.requests == 6 else reply)
    engine = engine_on(only, outage_seconds=10)
    check(sample(engine, 40), 40)
    engine.close()
    mad = start(lambda *_: HTML)
    engine = engine_on(mad)
    with pytest.raises(SetupError, match=r"No vLLM server can be sampled from: http.* is \w+ \(its reply is not JSON"):
        sample(engine, 3)
    engine.close()


def test_servers_join_and_leave_by_the_list(start: Start, tmp_path: Path) -> None:
    one, two, bad = start(slow(0.005)), start(slow(0.005)), start(weights=7)
    path = write(tmp_path / "servers", one)
    engine = engine_of(path)
    check(sample(engine, 20), 20)
    write(path, one, two, bad)
    wait_for(lambda: len(engine.facts()["servers"]) == 3 and facts_of(engine, bad)["state"] == "out")
    wait_for(lambda: facts_of(engine, two)["state"] == "up")
    check(sample(engine, 100), 100)
    assert one.requests > 20
    assert two.requests
    assert not bad.requests
    path.write_text("http:/")
    time.sleep(0.3)
    assert facts_of(engine, one)["state"] == facts_of(engine, two)["state"] == "up"
    write(path, two)
    wait_for(lambda: facts_of(engine, one)["state"] == "gone")
    served = one.requests
    check(sample(engine, 50), 50)
    assert one.requests == served
    write(path, one, two)
    wait_for(lambda: [facts["state"] for facts in engine.facts()["servers"] if facts["url"] == one.url][1:] == ["up"])
    check(sample(engine, 50), 50)
    assert one.requests > served
    engine.close()


def test_a_request_to_a_server_that_is_mute_goes_to_one_that_joins(start: Start, tmp_path: Path) -> None:
    mute, other = start(slow(30)), start()
    path = write(tmp_path / "servers", mute)
    engine = engine_of(path, late_seconds=0.1)
    drawn: list[tuple[Request, Completion]] = []
    waiting = requests(5)[::-1]

    def take(most: int) -> list[Request] | None:
        if mute.requests and not other.requests:
            write(path, mute, other)
        return [waiting.pop() for _ in range(min(most, len(waiting)))] if waiting else None

    drawn = list(engine.stream(take, SamplingParams(max_tokens=64, stop_token_ids=(256,), logprobs=False)))
    check({request.sample: completion for request, completion in drawn}, 5)
    engine.close()


def test_when_all_have_left_for_one_that_is_not_there_the_run_waits_and_then_ends(start: Start, tmp_path: Path) -> None:
    def leaving(fake: FakeServer, reply: Reply) -> Reply:
        time.sleep(0.01)
        if fake.requests >= 20:
            path.write_text("http://127.0.0.1:9/v1")
        return reply

    path = write(tmp_path / "servers", start(leaving))
    engine = engine_of(path)
    drawn: list[int] = []
    waiting = requests(2000)[::-1]
    with pytest.raises(SetupError, match=r"No vLLM server can be sampled from: http://127.0.0.1:9/v1 is starting"):
        for request, _ in engine.stream(
            lambda most: [waiting.pop() for _draw in range(most)], SamplingParams(1.0, 1.0, 64, (256,))
        ):
            drawn.append(request.sample)
    assert len(drawn) == len(set(drawn)) >= 20
    engine.close()


def test_a_list_that_is_none_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"urls_file: .*absent cannot be read"):
        engine_of(tmp_path / "absent")
    (tmp_path / "list").write_text("http://a:1/v1\nnode-2\n")
    with pytest.raises(ConfigError, match=r"line 2 of .*list is not a URL: 'node-2'"):
        engine_of(tmp_path / "list")


STREAMED = SamplingParams(max_tokens=64, stop_token_ids=(ByteEncoder.END,))


def test_a_completion_whose_server_is_lost_goes_on_from_its_tokens(start: Start) -> None:
    failing, good = start(), start()
    failing.breaks_after = 9
    engine = engine_on(failing, good, resume_tokens=8, retries=10)
    drawn = sample(engine, 40, STREAMED)
    resumed = 0
    for request in requests(40):
        completion = drawn[request.sample]
        assert completion.finish_reason == "stop"
        assert len(completion.logprobs) == len(completion.token_ids)
        # The last token that arrived is drawn again: it may have been meant to end the completion.
        text, prompt, seed = bytes(completion.token_ids[:-1]).decode(), list(request.prompt), request.seed
        while text != (whole := text_of(prompt, seed)):
            assert text[:8] == whole[:8]
            prompt, seed, text = [*prompt, *text[:8].encode()], sample_seed(seed, 8), text[8:]
            resumed += 1
    assert resumed
    assert resumed <= facts_of(engine, failing)["failures"]
    engine.close()


@pytest.mark.parametrize("breaks_after", [None, 6])
def test_a_streamed_completion_is_the_model_s_and_few_tokens_are_not_kept(
    start: Start, breaks_after: int | None
) -> None:
    failing, good = start(), start()
    failing.breaks_after = breaks_after
    engine = engine_on(failing, good, resume_tokens=8, retries=10)
    check(sample(engine, 40, STREAMED), 40)
    assert bool(facts_of(engine, failing)["failures"]) == (breaks_after is not None)
    engine.close()


def test_a_streamed_reply_that_is_nonsense_puts_its_server_out(start: Start) -> None:
    def lies(fake: FakeServer, reply: Reply) -> Reply:
        (choice,) = reply["choices"]
        return {**reply, "choices": [{**choice, "logprobs": {"token_logprobs": [0.3] * len(choice["token_ids"])}}]}

    bad, good = start(lies), start()
    bad.breaks_after = 9
    engine = engine_on(bad, good, resume_tokens=2, retries=10)
    check(sample(engine, 20, STREAMED), 20)
    bad.breaks_after = None

    def is_out() -> bool:
        check(sample(engine, 20, STREAMED), 20)
        return facts_of(engine, bad)["state"] == "out"

    wait_for(is_out)
    assert "not log-probabilities" in facts_of(engine, bad)["why"]
    engine.close()


def test_a_request_goes_back_to_the_server_that_has_failed_it_least(start: Start) -> None:
    """One server fails once, the other always: where both have failed, the idle one is not asked again and again."""
    stumbles = iter([500])

    def stumbling(_: FakeServer, reply: Reply) -> Reply | int:
        return next(stumbles, reply)

    always, once = start(lambda *_: 500), start(stumbling)
    engine = engine_on(always, once, retries=3)
    check(sample(engine, 1), 1)
    assert always.requests + once.requests <= 4
    engine.close()
