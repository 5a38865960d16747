"""The card of a trained model, and what is sent to the hub with it."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import pytest
import yaml
from pydantic import ValidationError

from truegold.pipeline.sources.hub import transport_errors
from truegold.train.config.grpo import GrpoConfig
from truegold.train.config.models import PushConfig
from truegold.train.model import hub
from truegold.train.model.hub import ModelCard, check_push, push_model, render_model_card, render_weights_card
from truegold.verifiers import InputError, SetupError

RealHub = huggingface_hub.HfApi

CARD = ModelCard(
    name="gsm8k",
    base="Qwen/Qwen3-0.6B",
    base_model="Qwen/Qwen3-0.6B",
    truegold="0.1.0",
    rows=1319,
    records_in=1400,
    configuration="c9ace2",
    counts=(("sources", "gsm8k|train.jsonl 1,319"),),
    removed=(("dedup", "exact_duplicate", 81),),
    skipped=(("skip:heldout_is_trained_on", 2),),
    rates=(("Held-out problems", 100, "0.310 (0.250 to 0.380)", "0.520 (0.450 to 0.590)"),),
    is_measured_after=True,
    evaluations=(("hard", "0.110", "0.190"),),
    settings=(("optimizer.lr", "1e-06"), ("reward: correct", "the row's own verifier, weight 1, offset 0")),
    alarms=(("truncation", "roll_back", 40),),
)


def test_the_card_says_what_a_reader_asks() -> None:
    text = render_model_card(CARD, "apache-2.0")
    _, head, body = text.split("---\n", 2)
    assert yaml.safe_load(head) == {
        "library_name": "transformers",
        "pipeline_tag": "text-generation",
        "tags": ["truegold", "grpo", "reinforcement-learning", "verifiable-rewards"],
        "base_model": "Qwen/Qwen3-0.6B",
        "license": "apache-2.0",
    }
    for line in (
        "| Held-out problems | 100 | 0.310 (0.250 to 0.380) | 0.520 (0.450 to 0.590) |",
        "| hard | 0.110 | 0.190 |",
        "| dedup | exact_duplicate | 81 |",
        "| skip:heldout_is_trained_on | 2 |",
        "| optimizer.lr | 1e-06 |",
        "| truncation | roll_back | 40 |",
        "| sources | gsm8k\\|train.jsonl 1,319 |",
    ):
        assert line in body.splitlines()


def test_settings_that_may_name_servers_and_folders_are_not_told() -> None:
    config = GrpoConfig.model_validate(
        {
            "engine": {"type": "server", "url": "http://secret:8000/v1", "weights_dir": "/home/me/weights"},
            "evaluation": {"every": 2, "sets": {"mine": "/home/me/mine.jsonl"}},
            "reward": {
                "terms": [
                    {"name": "correct"},
                    {
                        "name": "clear",
                        "gate": "correct",
                        "judge": {
                            "rubric": "Clear.",
                            "model": {"name": "small", "engine": {"base_url": "http://secret/v1", "model": "m"}},
                        },
                    },
                ]
            },
        }
    ).model_dump(mode="json")
    told = dict(hub._settings(config, {"sampling": {"rollout": {"max_tokens": 300}}}))
    assert "secret" not in json.dumps(told)
    assert "/home" not in json.dumps(told)
    assert told["reward: clear"] == "graded by small, weight 1, offset 0, behind correct"
    assert (told["steps"], told["sampling.max_tokens"], told["objective.advantage"]) == ("100", "300", "grpo")


@pytest.mark.parametrize(
    ("model", "base"),
    [
        ({"type": "path", "path": "Qwen/Qwen3-0.6B"}, ("Qwen/Qwen3-0.6B", "Qwen/Qwen3-0.6B")),
        ({"type": "path", "path": "/home/me/base"}, ("base", None)),
        ({"type": "tiny"}, ("A tiny model with random initial weights", None)),
        ({"type": "smollm2"}, (hub.SMOLLM2, hub.SMOLLM2)),
    ],
)
def test_the_base_is_named_as_the_hub_knows_it(model: dict[str, Any], base: tuple[str, str | None]) -> None:
    assert hub._describe_base(model) == base


class Hub:
    """Takes what the hub's interface would take."""

    sent: tuple[str, bool, dict[str, bytes]] | None = None
    account: Any = {"name": "me", "orgs": [{"name": "team"}]}  # noqa: RUF012

    def whoami(self) -> Any:
        if isinstance(self.account, Exception):
            raise self.account
        return self.account

    def create_repo(self, repo: str, *, private: bool, exist_ok: bool) -> None:
        assert exist_ok
        self.private = private

    def create_commit(self, repo: str, operations: list[Any], commit_message: str) -> Any:
        files = {
            operation.path_in_repo: operation.path_or_fileobj
            if isinstance(operation.path_or_fileobj, bytes)
            else Path(operation.path_or_fileobj).read_bytes()
            for operation in operations
        }
        Hub.sent = (repo, self.private, files)
        return SimpleNamespace(repo_url=f"https://huggingface.co/{repo}")


@pytest.fixture(autouse=True)
def the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub, "HfApi", Hub)
    monkeypatch.setattr(Hub, "sent", None)


def test_the_checkpoint_and_its_card_are_one_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = tmp_path / "train" / "checkpoint"
    checkpoint.mkdir(parents=True)
    (checkpoint / "config.json").write_text("{}")
    (checkpoint / "model.safetensors").write_bytes(b"weights")
    monkeypatch.setattr(hub, "gather_model_card", lambda run_dir: CARD)
    address = push_model(tmp_path, PushConfig.model_validate("me/gsm8k"))
    assert address == "https://huggingface.co/me/gsm8k"
    assert Hub.sent is not None
    repo, private, files = Hub.sent
    assert (repo, private) == ("me/gsm8k", True)
    assert set(files) == {"README.md", "config.json", "model.safetensors"}
    assert files["README.md"].decode().startswith("---\nbase_model: Qwen/Qwen3-0.6B\n")


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a run"):
        push_model(tmp_path, PushConfig(repo="me/gsm8k"))
    assert Hub.sent is None


@pytest.mark.parametrize(
    ("repo", "account", "message"),
    [
        ("me/a", Hub.account, None),
        ("team/a", Hub.account, None),
        ("other/a", Hub.account, "cannot write to other"),
        ("me/a", ConnectionError("no route"), "no route"),
        *(("me/a", error("no name"), "no name") for error in transport_errors()),
    ],
)
def test_who_may_not_write_is_told_before_anything_is_trained(
    repo: str, account: Any, message: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Hub, "account", account)
    if message is None:
        check_push(PushConfig(repo=repo))
        return
    with pytest.raises(SetupError, match=message):
        check_push(PushConfig(repo=repo))


@pytest.mark.parametrize("repo", ["gsm8k", "a/b/c", "me/", "../me"])
def test_a_name_that_the_hub_cannot_have_is_refused(repo: str) -> None:
    with pytest.raises(ValidationError):
        PushConfig(repo=repo)


def test_a_hub_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "HUB_TIMEOUT_S", 0.2)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "127.0.0.1")
    monkeypatch.setenv("HF_TOKEN", "hf_nobody")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    huggingface_hub.close_session()
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        monkeypatch.setattr(huggingface_hub, "HfApi", lambda: RealHub(endpoint=address))
        with pytest.raises(SetupError, match=r"cannot be written to: .*timed out"):
            check_push(PushConfig(repo="me/gsm8k"))
    huggingface_hub.close_session()


def test_weights_on_the_way_have_a_card() -> None:
    _, head, body = render_weights_card(GrpoConfig(steps=100), 60).split("---\n", 2)
    assert yaml.safe_load(head)["library_name"] == "transformers"
    assert "# Step 60 of 100" in body
    assert "| optimizer.lr | 1e-6 |" in body.splitlines()
