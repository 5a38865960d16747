"""Text over an OpenAI-compatible API: bad days, what is kept, what it costs, and that the key is nowhere."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer, Said
from command_line import run_command

from truegold.flows.config import validate_config
from truegold.pipeline.config.engines import ChatConfig, ChatEngineConfig
from truegold.pipeline.config.stages import AskedModelConfig, Fault, WellPosedConfig
from truegold.pipeline.engines import build_engine, chat_engine
from truegold.pipeline.engines.base import SamplingParams
from truegold.pipeline.engines.chat import ask_model
from truegold.pipeline.engines.chat_engine import report_costs
from truegold.pipeline.flag.well_posed import AskedProblem, check_problems
from truegold.pipeline.running.progress import Progress
from truegold.verifiers import ConfigError, SetupError

KEY = "sk-secret-4711"
ECHO = "You said: {}"


def last(messages: list[dict[str, str]]) -> str:
    return messages[-1]["content"]


def echo(messages: list[dict[str, str]]) -> str:
    return ECHO.format(last(messages))


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., ChatServer]]:
    monkeypatch.setattr(chat_engine, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setenv("CHAT_KEY", KEY)
    servers: list[ChatServer] = []

    def start(say: Said = echo, *arguments: Any, **options: Any) -> ChatServer:
        servers.append(ChatServer(say, *arguments, **options))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


def settings(server: ChatServer, **further: Any) -> ChatEngineConfig:
    return ChatEngineConfig(base_url=server.url, model="some-model", api_key_env="CHAT_KEY", **further)


def ask(config: ChatEngineConfig, questions: list[str], replies: Path | None = None, **further: Any) -> Any:
    """Return the replies to questions, and what the engine says of its work."""
    asked = AskedModelConfig(name="judge", engine=config, **further)
    engine, encoder = build_engine(config, ChatConfig(system="Be brief."), None, replies)
    try:
        prompts = [encoder.encode(question) for question in questions]
        return ask_model(prompts, list(range(len(questions))), engine, encoder, asked), engine.facts()
    finally:
        engine.close()


def test_messages_go_out_and_text_comes_back(serve: Callable[..., ChatServer]) -> None:
    server = serve()
    answers, facts = ask(settings(server), ["1+1?", "¿Qué? 多少 \ud800"], max_tokens=64, temperature=0.5)
    assert answers == ["You said: 1+1?", "You said: ¿Qué? 多少 ?"]
    body = next(body for body in server.bodies if last(body["messages"]) == "1+1?")
    assert body == {
        "model": "some-model",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "1+1?"}],
        "max_tokens": 64,
        "temperature": 0.5,
    }
    assert set(server.keys) == {f"Bearer {KEY}"}
    assert (facts["requests"], facts["input_tokens"], facts["output_tokens"]) == (2, 200, 20)


def test_fields_of_the_request_can_be_added_and_taken_away(serve: Callable[..., ChatServer]) -> None:
    server = serve()
    ask(settings(server, body={"temperature": None, "max_tokens": None, "max_completion_tokens": 9}), ["?"])
    assert server.bodies[0].keys() == {"model", "messages", "max_completion_tokens"}


@pytest.mark.parametrize(
    "bad",
    [
        429,
        500,
        503,
        (429, {"Retry-After": "0"}, b"slow down"),
        None,
        b'{"choices": [{"mess',
        b'{"choices": []}',
        b'{"error": {"message": "overloaded"}}',
        (200, {"Content-Length": "500"}, b'{"choices": [{"message"'),
    ],
)
def test_a_bad_day_is_survived(serve: Callable[..., ChatServer], bad: Any) -> None:
    server = serve(echo, [bad, bad])
    answers, facts = ask(settings(server, timeout_seconds=1), ["1+1?"])
    assert answers == ["You said: 1+1?"]
    assert (facts["requests"], facts["repeated"]) == (1, 2)


def test_too_many_bad_days_are_one_line_and_replies_are_kept(serve: Callable[..., ChatServer], tmp_path: Path) -> None:
    server = serve(lambda messages: 500 if "bad" in last(messages) else echo(messages))
    with pytest.raises(SetupError, match=r"does not answer for some-model: HTTP 500: .*\(3 times\)"):
        ask(settings(server, retries=2, max_concurrency=1), ["a", "b", "bad"], tmp_path)
    server.say = echo
    sent = len(server.bodies)
    answers, facts = ask(settings(server), ["a", "b", "bad"], tmp_path)
    assert answers == ["You said: a", "You said: b", "You said: bad"]
    assert (len(server.bodies) - sent, facts["kept"]) == (1, 2)


def test_a_reply_is_paid_once(serve: Callable[..., ChatServer], tmp_path: Path) -> None:
    server = serve(slow_s=0.05)
    answers, facts = ask(settings(server), ["same"] * 4 + ["other"], tmp_path)
    assert answers == ["You said: same"] * 4 + ["You said: other"]
    assert len(server.bodies) == facts["requests"] == 2
    assert ask(settings(server), ["other", "same"], tmp_path)[1]["requests"] == 0
    # Another temperature, another length and another model are other questions; with a temperature so is each seed.
    assert ask(settings(server), ["same", "same"], tmp_path, temperature=1.0)[1]["requests"] == 2
    assert ask(settings(server), ["same", "same"], tmp_path, temperature=1.0)[1]["requests"] == 0
    assert ask(settings(server), ["same"], tmp_path, max_tokens=7)[1]["requests"] == 1


def test_a_line_that_a_kill_has_cut_is_asked_again(serve: Callable[..., ChatServer], tmp_path: Path) -> None:
    server = serve()
    ask(settings(server, max_concurrency=1), ["a", "b"], tmp_path)
    (log,) = tmp_path.glob("*.jsonl")
    log.write_bytes(log.read_bytes()[:-5])
    answers, facts = ask(settings(server), ["a", "b"], tmp_path)
    assert answers == ["You said: a", "You said: b"]
    assert (facts["requests"], facts["kept"]) == (1, 1)


def test_no_more_requests_are_on_the_way_than_allowed(serve: Callable[..., ChatServer]) -> None:
    server = serve(slow_s=0.03)
    ask(settings(server, max_concurrency=3), [str(n) for n in range(12)])
    assert server.most_in_flight == 3


def test_a_refused_question_has_no_answer_and_others_have(serve: Callable[..., ChatServer]) -> None:
    server = serve(lambda messages: 400 if last(messages) == "bad" else echo(messages))
    answers, facts = ask(settings(server), ["a", "bad", "b"])
    assert answers == ["You said: a", None, "You said: b"]
    assert (facts["requests"], facts["refused"]) == (2, 1)
    server.say = lambda messages: 400
    with pytest.raises(SetupError, match=r"HTTP 400.*no"):
        ask(settings(server), [str(n) for n in range(20)])


@pytest.mark.parametrize(
    ("choice", "answer"),
    [
        ({"message": {"content": "cut"}, "finish_reason": "length"}, None),
        ({"message": {"content": None}, "finish_reason": "content_filter"}, None),
        ({"message": {"content": None, "reasoning_content": "hm"}, "finish_reason": "stop"}, ""),
        ({"message": {"content": "half \ud800 pair"}, "finish_reason": "stop"}, "half ? pair"),
    ],
)
def test_replies_that_do_not_end_are_none(serve: Callable[..., ChatServer], choice: Any, answer: str | None) -> None:
    server = serve(lambda _: json.dumps({"choices": [choice]}).encode())
    assert ask(settings(server), ["?"])[0] == [answer]


class Notes(Progress):
    """Keeps what is noted."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def start(self, label: str, total: int | None = None) -> None:
        """Do nothing."""

    def advance(self, steps: int = 1, detail: str = "", total: int | None = None) -> None:
        """Do nothing."""

    def note(self, text: str) -> None:
        """Keep the line."""
        self.lines.append(text)


def test_costs_are_counted(serve: Callable[..., ChatServer]) -> None:
    server, notes = serve(), Notes()
    _, facts = ask(settings(server, price_per_million_input=2.5, price_per_million_output=10), ["a", "b"])
    assert facts["cost"] == pytest.approx(2 * (100 * 2.5 + 10 * 10) / 1e6)
    assert report_costs([facts, {"idle_share": 0.5}], notes) == [facts]
    assert notes.lines == [
        "some-model: 2 requests, 0 replies kept from before, 200 tokens in, 20 out, 0.0007 by the prices set"
    ]
    _, unpriced = ask(settings(serve(usage=False)), ["a"])
    assert "cost" not in unpriced
    assert (unpriced["input_tokens"], unpriced["output_tokens"]) == (0, len("You said: a") // 4)


@pytest.mark.parametrize("say", [lambda _: (401, {}, f"Incorrect API key {KEY} given".encode()), lambda _: KEY])
def test_the_key_is_nowhere(
    serve: Callable[..., ChatServer], say: Said, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    config = settings(serve(say))
    shown = [repr(config), config.model_dump_json()]
    try:
        answers, facts = ask(config, ["1+1?"], tmp_path)
        shown += [repr(answers), repr(facts)]
    except SetupError as error:
        shown += [str(error), "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())]
        assert "Incorrect API key [key] given" in shown[-1]
    shown += [caplog.text, *(file.read_text() for file in tmp_path.rglob("*") if file.is_file())]
    assert [text for text in shown if KEY in text] == []


@pytest.mark.parametrize("value", ["sk-1\n2", "sk 1", "sk-ключ"])
def test_a_value_that_no_header_carries_is_told_without_it(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("CHAT_KEY", value)
    config = ChatEngineConfig(base_url="http://localhost:1/v1", model="m", api_key_env="CHAT_KEY")
    with pytest.raises(ConfigError, match="CHAT_KEY is not a key") as caught:
        build_engine(config, ChatConfig(), None)
    assert value not in str(caught.value)


@pytest.mark.parametrize(
    "engine",
    [
        {"base_url": "https://api.example.com/v1", "api_key_env": KEY},
        {"base_url": f"https://user:{KEY}@api.example.com/v1"},
        {"base_url": f"https://api.example.com/v1?key={KEY}"},
        {"base_url": "https://api.example.com/v1", "api_key": KEY},
    ],
)
def test_a_key_in_a_configuration_is_refused_and_not_shown(engine: dict[str, str]) -> None:
    asked = {"name": "judge", "engine": {"type": "chat", "model": "m", **engine}}
    with pytest.raises(ConfigError, match=r"flag\.model\.engine\.(api_key|base_url)") as caught:
        validate_config({"data": {"type": "demo"}, "flag": {"model": asked}}, "c.yaml")
    assert KEY not in f"{caught.value} {caught.value.message}"


@pytest.mark.parametrize("section", ["engine", "profile.engine", "synth.engine", "train.engine"])
def test_samples_need_an_engine_that_gives_token_ids(section: str) -> None:
    settings: dict[str, Any] = {"type": "chat", "base_url": "http://localhost:1/v1", "model": "m"}
    for name in reversed(section.split(".")):
        settings = {name: settings}
    with pytest.raises(ConfigError, match=rf"{section}: an engine of the type chat gives text alone") as caught:
        validate_config({"data": {"type": "demo"}, "model": {"path": "m"}, **settings}, "c.yaml")
    assert caught.value.message.count("\n") == 1


def test_log_probabilities_are_refused(serve: Callable[..., ChatServer]) -> None:
    engine, encoder = build_engine(settings(serve()), ChatConfig(), None)
    with pytest.raises(ConfigError, match="gives no log-probabilities"):
        engine.generate([encoder.encode("?")], SamplingParams(prompt_logprobs=True), [0])
    engine.close()


def test_problems_are_checked_by_a_chat_model(serve: Callable[..., ChatServer]) -> None:
    finding = 'contradiction: "sides 3 and 4" | not equal'
    server = serve(lambda messages: "FAULTY" if "A reader says" in last(messages) else finding)
    config = WellPosedConfig(name="some-model", engine=settings(server))
    engine, encoder = build_engine(config.engine, config.chat, None)
    (asked,) = check_problems([AskedProblem("0", "A square has sides 3 and 4.")], engine, encoder, config)
    engine.close()
    assert asked.verdict == Fault.CONTRADICTION


def test_a_run_of_the_check_tells_costs_and_pays_once(serve: Callable[..., ChatServer], tmp_path: Path) -> None:
    server = serve(lambda messages: "NONE")
    data = tmp_path / "rows.jsonl"
    data.write_text('{"problem": "What is 2+3, and what is 4+4?", "answer": "5"}\n')
    engine = f"{{type: chat, base_url: {server.url}, model: m, api_key_env: CHAT_KEY, price_per_million_input: 1}}"
    asked = f"flag.model={{name: m, engine: {engine}, kinds: [model_contradiction]"
    command = ["flag", "--data", str(data), "--out", str(tmp_path / "out"), "--set"]
    done = run_command(*command, f"{asked}}}", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "m: 1 requests, 0 replies kept from before, 100 tokens in, 10 out, 0.0001 by the prices set" in done.stderr
    done = run_command(*command, f"{asked}, batch_size: 7}}", cwd=tmp_path)
    assert "m: 0 requests, 1 replies kept from before" in done.stderr
    kept = next((tmp_path / "out").rglob("replies"))
    done = run_command(
        "flag",
        "--data",
        str(data),
        "--out",
        str(tmp_path / "replayed"),
        "--replies",
        str(kept),
        "--set",
        "flag.model.kinds=[model_contradiction]",
        cwd=tmp_path,
    )
    assert "well_posed" in done.stdout + done.stderr, done.stderr
    assert not (tmp_path / "replayed" / "unanswered_prompts.jsonl").exists()
    assert len(server.bodies) == 1
    page = next((tmp_path / "out").rglob("report/index.html")).read_text()
    assert "Models that well posed has asked" in page
    texts = [path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert not [text for text in texts if KEY.encode() in text]
