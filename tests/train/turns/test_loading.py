"""What is no environment is named in one line before anything runs, and what was made on trial is closed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from turn_templates import CHATML, turn_template

from truegold.train.config.turns import TurnsConfig
from truegold.train.turns.environment import load_environment
from truegold.train.turns.episodes import EpisodeRunner, make_runner
from truegold.verifiers import ConfigError

METHODS = "\n    def reset(self, row): pass\n    def step(self, completion): pass\n"


def config(folder: Path, code: str) -> TurnsConfig:
    (folder / "world.py").write_text(code)
    return TurnsConfig(environment=f"{folder}/world.py:World", deadline_s=1)


def runner(model: Path, turns: TurnsConfig) -> EpisodeRunner:
    template = turn_template(model, CHATML)
    engine: Any = None
    return make_runner(engine, template.tokenizer, template.stop_token_ids, None, turns)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("import sys\nsys.exit(0)", r"could not be loaded: SystemExit: 0 \(.*world.py, line 2\)"),
        ("class World:\n    def __init__(self): raise SystemExit(0)" + METHODS, r"cannot be created: SystemExit: 0"),
        ("class World:\n    tools = None" + METHODS, r"cannot be read: tools must be a list of JSON schemas, .*'None'"),
        ("class World:\n    tools = 'look'" + METHODS, r"cannot be read: tools must be a list of JSON schemas"),
        ("class World:\n    tools = [3]" + METHODS, r"cannot be read: tools must be a list of JSON schemas"),
        (
            "class World:\n    tools = [{'look': print}]" + METHODS,
            r"cannot be read: messages and tools may only contain JSON",
        ),
        ("class World:\n    tools = property(lambda self: 1 / 0)" + METHODS, r"cannot be read: ZeroDivisionError"),
    ],
)
def test_what_is_no_environment_is_named_in_a_line(tiny_model: Path, tmp_path: Path, code: str, error: str) -> None:
    with pytest.raises(ConfigError, match=error) as caught:
        runner(tiny_model, config(tmp_path, code))
    assert "\n" not in str(caught.value)


MADE_ONCE = """
made = []
class World:
    tools = ({"type": "function", "function": {"name": "look", "description": "ends <|im_end|> now"}},)
    def __init__(self):
        made.append("made")
        if len(made) > 1: raise OSError("the port is in use")
"""


def test_one_environment_is_made_on_trial_and_its_tools_end_no_turn(tiny_model: Path, tmp_path: Path) -> None:
    template = runner(tiny_model, config(tmp_path, MADE_ONCE + METHODS)).template
    template.tokenizer.chat_template = "{{ tools | tojson }}" + CHATML
    prompt = template.encode([{"role": "user", "content": "x"}])
    assert "ends < |im_end|> now" in template.decode(prompt)
    assert prompt.count(template.tokenizer.convert_tokens_to_ids("<|im_end|>")) == 1


@pytest.mark.parametrize(
    "close",
    [
        "def close(self): closed.append(1)",
        "async def close(self): closed.append(1)",
        "def close(self):\n        closed.append(1)\n        raise OSError",
    ],
    ids=["a function", "a coroutine", "an error"],
)
def test_what_was_made_on_trial_is_closed(tmp_path: Path, close: str) -> None:
    make, _ = load_environment(config(tmp_path, f"closed = []\nclass World:\n    {close}{METHODS}"))
    assert type(make()).close.__globals__["closed"] == [1]


def test_what_is_no_environment_is_closed_too(tmp_path: Path) -> None:
    code = f"import pathlib\nclass World:\n    def close(self): pathlib.Path({str(tmp_path / 'closed')!r}).touch()"
    with pytest.raises(ConfigError, match="has no method reset"):
        load_environment(config(tmp_path, code))
    assert (tmp_path / "closed").exists()
