"""The pages of docs/integrations do what they say: their blocks are run from top to bottom in an empty folder."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from house import ROOT

from tests.integrations.environments import run_in

PAGES = sorted((ROOT / "docs" / "integrations").glob("*.md"))
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def script_of(page: Path) -> str:
    """Return the blocks of a page as one Python program: those in Python, and commands as calls."""
    parts = ["import subprocess, sys"]
    for language, text in _BLOCK.findall(page.read_text(encoding="utf-8")):
        if language == "python":
            parts.append(text)
        elif language == "sh":
            for line in text.splitlines():
                command = line.replace("truegold ", f"{sys.executable} -P -m truegold.flows.cli ", 1)
                parts.append(f"subprocess.run({command!r}, shell=True, check=True)")
        else:
            assert language == "console", f"{page.name}: what is to become of a block in {language}?"
    return "\n".join(parts)


@pytest.mark.parametrize(
    "page",
    # TRL alone takes as long as all others together.
    [pytest.param(page, id=page.stem, marks=[pytest.mark.long_run] if page.stem == "trl" else []) for page in PAGES],
)
def test_a_page_does_what_it_says(page: Path, tmp_path: Path) -> None:
    pytest.importorskip("datasets", reason="needs truegold[hub]")
    command = [sys.executable, "-P", "-c", script_of(page)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, done.stderr[-3000:]


def test_there_is_a_page_for_each_integration() -> None:
    assert [page.stem for page in PAGES] == ["datasets", "trl", "verl"]


COMPOSE = """
import json, sys
from pathlib import Path
import verl
from hydra import compose, initialize_config_dir
with initialize_config_dir(str(Path(verl.__file__).parent / "trainer" / "config"), version_base=None):
    config = compose("ppo_trainer", overrides=json.loads(sys.argv[1]))
print(json.dumps([config.reward.custom_reward_function.path, config.algorithm.adv_estimator]))
"""


@pytest.mark.long_run
def test_verl_knows_every_setting_of_its_example(tmp_path: Path) -> None:
    import json
    import shlex

    text = (ROOT / "examples" / "verl_grpo.sh").read_text(encoding="utf-8")
    command = text.partition("main_ppo ")[2].replace("\\\n", " ").replace("$SET", "set").replace("$MODEL", "model")
    overrides = [word for word in shlex.split(command) if word != "$@"]
    assert len(overrides) > 10
    assert run_in("verl", COMPOSE, json.dumps(overrides), cwd=tmp_path) == ["set/compute_score.py", "grpo"]


def test_every_command_of_the_skill_exists() -> None:
    from typer.main import get_command

    from truegold.flows.cli.app import app

    text = (ROOT / "flows" / "SKILL.md").read_text(encoding="utf-8")
    assert text.startswith("---\nname: truegold\ndescription: ")
    commands = get_command(app).commands  # type: ignore[attr-defined]
    named = set(re.findall(r"`truegold ([a-z-]+)", text))
    assert len(named) > 10 and named <= set(commands), named - set(commands)
    for command in re.findall(r"`truegold ([a-z][^`|]+)`", text):
        name, *words = command.split()
        options = {option for parameter in commands[name].params for option in parameter.opts}
        used = {word for word in words if word.startswith("--")}
        assert name == "verifiers" or used <= options | {"--help"}, (command, used - options)
