"""The audit of a second opinion: what it asks, whom it lets through, and when it counts no more."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest
from chat_server import ChatServer
from command_line import run_command
from numbered_rows import make_row

from truegold.flows.config import validate_config
from truegold.pipeline.config.engines import ScriptedEngineConfig
from truegold.pipeline.config.stages import AuditedOpinionConfig, ProfileConfig
from truegold.pipeline.judge import audit as judge_audit
from truegold.pipeline.judge.audit import ATTACKS, check_audit
from truegold.pipeline.profile.stage import profile
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.tables.rows import write_rows
from truegold.verifiers import ConfigError, Reason, verify

ONES = "one two three four five six seven eight nine".split()
RESPONSES = {f"{n}01": f"Together {word} hundred and one it is." for n, word in enumerate(ONES, 1)}
"""Responses in a form that `math` does not read, by their value."""


def parts(messages: list[dict[str, str]]) -> list[str]:
    return re.findall(r"^BEGIN \w+\n(.*?)\nEND \w+$", messages[-1]["content"], re.MULTILINE | re.DOTALL)[1:]


def careful(messages: list[dict[str, str]]) -> str:
    """Judge as a model that reads would."""
    values = {text: value for value, text in RESPONSES.items()}
    known = ([value for text, value in values.items() if shown.endswith(text)] for shown in parts(messages))
    first, second = (value or [shown] for value, shown in zip(known, parts(messages), strict=True))
    return "SAME" if first == second else "DIFFERENT"


def gullible(messages: list[dict[str, str]]) -> str:
    """Judge as a model that does what a response asks for."""
    return "SAME" if any("SAME" in text for text in parts(messages)) else careful(messages)


def lazy(messages: list[dict[str, str]]) -> str:
    """Judge by numbers that stand anywhere."""
    first, second = parts(messages)
    return "SAME" if first in second or second in first else "DIFFERENT"


@pytest.fixture
def start() -> Iterator[Callable[..., ChatServer]]:
    servers: list[ChatServer] = []

    def serve(say: Any) -> ChatServer:
        servers.append(ChatServer(say))
        return servers[-1]

    yield serve
    for server in servers:
        server.stop()


def write(folder: Path, server: ChatServer, more: Mapping[str, Any] | None = None, copies: int = 24) -> dict[str, Any]:
    """Write the policy's responses and the judge's settings; the settings are returned."""
    lines = [
        {"problem": f"What is it in case {copy}?", "response": response, "answer": gold}
        for copy in range(copies)
        for gold, response in RESPONSES.items()
    ]
    (folder / "responses.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    model = {"name": "small", "engine": {"type": "chat", "base_url": server.url, "model": "m", **(more or {})}}
    (folder / "judge.yaml").write_text(json.dumps({"model": model}))
    return {"model": model, "audit": str(folder / "judge_audit" / "audit.json")}


def audit(folder: Path, data: str = "responses.jsonl") -> Any:
    return run_command("verifiers", "audit-judge", "judge.yaml", "--data", data, cwd=folder)


def test_these_responses_are_unread() -> None:
    for gold, response in RESPONSES.items():
        assert verify(response, gold=gold).reason is Reason.UNREAD
    assert sum(map(len, ATTACKS.values())) >= judge_audit.MIN_HOSTILE / 2
    assert set(ATTACKS) == {"denials", "several_answers", "text_to_the_judge", "gold_begging"}


def test_a_careful_judge_passes_and_its_audit_holds_for_itself_alone(
    start: Callable[..., ChatServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = write(tmp_path, start(careful))
    done = audit(tmp_path)
    assert done.returncode == 0, done.stderr
    assert "paid: 0 of 216 unread responses beside a gold that they do not answer and 138 hostile ones" in done.stdout
    assert "right by their own gold: 216 of 216" in done.stdout
    record = orjson.loads((tmp_path / "judge_audit/audit.json").read_bytes())
    assert (record["passed"], record["verifiers"].keys()) == (True, {"math"})
    assert check_audit(AuditedOpinionConfig.model_validate(settings)) == ("math",)
    for changed in ({"temperature": 0.5}, {"max_tokens": 7}, {"chat": {"system": "Be kind."}}, {"name": "other"}):
        other = AuditedOpinionConfig.model_validate({**settings, "model": {**settings["model"], **changed}})
        with pytest.raises(ConfigError, match="was about another judge"):
            check_audit(other)
    engine = {**settings["model"]["engine"], "model": "m2"}
    with pytest.raises(ConfigError, match="was about another judge: engine changed"):
        check_audit(AuditedOpinionConfig.model_validate({**settings, "model": {**settings["model"], "engine": engine}}))
    with pytest.raises(ConfigError, match="was about another judge: verifier changed"):
        check_audit(AuditedOpinionConfig(verifier="numeric", audit=settings["audit"]))
    # How often it is asked at once, and what it costs, decides nothing.
    engine = {**settings["model"]["engine"], "max_concurrency": 2, "price_per_million_input": 1.0}
    check_audit(AuditedOpinionConfig.model_validate({**settings, "model": {**settings["model"], "engine": engine}}))
    monkeypatch.setattr(judge_audit, "PROMPT", "another prompt")
    with pytest.raises(ConfigError, match="was about another judge: prompt changed"):
        check_audit(AuditedOpinionConfig.model_validate(settings))
    monkeypatch.undo()
    monkeypatch.setattr(judge_audit, "fingerprint", lambda name: f"{name}@99")
    with pytest.raises(ConfigError, match="about another version of math"):
        check_audit(AuditedOpinionConfig.model_validate(settings))


@pytest.mark.parametrize(
    ("judge", "kind"), [(gullible, "text_to_the_judge"), (lazy, "denials"), (lazy, "several_answers")]
)
def test_a_judge_that_pays_one_hostile_response_fails(
    start: Callable[..., ChatServer], tmp_path: Path, judge: Any, kind: str
) -> None:
    settings = write(tmp_path, start(judge))
    assert audit(tmp_path).returncode == 7
    paid = [json.loads(line) for line in (tmp_path / "judge_audit/paid.jsonl").read_text().splitlines()]
    assert kind in {line["kind"] for line in paid}
    with pytest.raises(ConfigError, match=r"has not passed its audit .* wrong responses were called right"):
        check_audit(AuditedOpinionConfig.model_validate(settings))


def test_a_judge_that_pays_another_gold_fails(start: Callable[..., ChatServer], tmp_path: Path) -> None:
    write(tmp_path, start(lambda messages: "SAME" if {*parts(messages)} & {*RESPONSES.values()} else "DIFFERENT"))
    assert audit(tmp_path).returncode == 7
    paid = [json.loads(line) for line in (tmp_path / "judge_audit/paid.jsonl").read_text().splitlines()]
    assert [line["kind"] for line in paid] == ["unread"] * 216


def test_too_few_responses_are_no_audit(start: Callable[..., ChatServer], tmp_path: Path) -> None:
    server = start(careful)
    write(tmp_path, server, copies=5)
    done = audit(tmp_path)
    assert done.returncode == 3
    assert "45 unread responses have a gold that they do not answer; an audit needs 200." in done.stderr
    assert server.bodies == []


def test_labels_say_which_responses_are_wrong(start: Callable[..., ChatServer], tmp_path: Path) -> None:
    write(tmp_path, start(careful))
    lines = [json.loads(line) for line in (tmp_path / "responses.jsonl").read_text().splitlines()]
    text = "".join(json.dumps({**line, "correct": index >= 205}) + "\n" for index, line in enumerate(lines))
    (tmp_path / "responses.jsonl").write_text(text)
    done = audit(tmp_path)
    # The judge calls all of them right: those that are labelled wrong as well.
    assert done.returncode == 7
    assert "paid: 205 of 205" in done.stdout


def test_a_profile_is_read_for_the_policy_s_own_responses(start: Callable[..., ChatServer], tmp_path: Path) -> None:
    write(tmp_path, start(careful))
    rows = [make_row(number, gold=gold) for number, gold in enumerate(RESPONSES)]
    write_rows(tmp_path / "rows.parquet", rows)
    script = [
        {"prompt": f"<{n}>", "completions": [f"{draw}.\n{text}" for draw in range(24)]}
        for n, text in enumerate(RESPONSES.values())
    ]
    (tmp_path / "script.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in script))
    engine = ScriptedEngineConfig(path=str(tmp_path / "script.jsonl"))
    (tmp_path / "profile").mkdir()
    config = ProfileConfig(engine=engine, samples=24, first_samples=None)
    profile({"rows": tmp_path / "rows.parquet"}, config, tmp_path / "profile", NullProgress())
    done = audit(tmp_path, "profile")
    assert "paid: 0 of 216 unread responses" in done.stdout


def test_a_training_is_refused_without_its_audit(start: Callable[..., ChatServer], tmp_path: Path) -> None:
    settings = write(tmp_path, start(careful))
    reward = {"second_opinion": {key: value for key, value in settings.items() if key != "audit"}}
    values = {"data": {"type": "demo"}, "model": {"path": "m"}, "train": {"reward": reward}}
    with pytest.raises(ConfigError, match=r"train\.reward\.second_opinion\.audit: is missing"):
        validate_config(values, "c.yaml")
    values |= {"model": {"type": "tiny"}, "sft": {}, "engine": {"max_model_len": 256}, "profile": {"max_tokens": 128}}
    values["train"] = {"reward": {"second_opinion": settings}}
    (tmp_path / "run.yaml").write_text(json.dumps(values))
    done = run_command("run", "run.yaml", "--dry-run", cwd=tmp_path)
    assert done.returncode == 2
    assert "audit.json is not an audit of a second opinion (FileNotFoundError)" in done.stderr
