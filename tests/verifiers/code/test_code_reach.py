"""Toolchains that lie where the programs of a tier cannot read them are the machine's fault, not the program's."""

import os
from pathlib import Path

import pytest
from sandboxes import box_of

from truegold.verifiers import Reason
from truegold.verifiers.code import CodeVerifier
from truegold.verifiers.sandbox import Tier, toolchains
from truegold.verifiers.sandbox.local import closed_folder, closed_languages

STDIO = {"type": "stdio", "cases": [{"input": "", "output": "7"}]}


@pytest.fixture
def closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A language whose toolchain only root can enter."""
    home = tmp_path / "closed" / "toolchain"
    home.mkdir(parents=True)
    (tmp_path / "closed").chmod(0o700)
    toolchain = toolchains.Toolchain(None, ["/bin/true"], expose=[str(home)])
    language = toolchains.Language("lua", "main.lua", lambda: toolchain)
    monkeypatch.setitem(toolchains.LANGUAGES, "lua", language)
    return str(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's programs run as another user")
def test_a_toolchain_that_programs_cannot_read_is_said_and_not_held_against_them(closed: str) -> None:
    box_of(Tier.CONTAINER)
    verdict = CodeVerifier(tier=Tier.CONTAINER)("```lua\nprint(7)\n```", info={"tests": STDIO, "language": "lua"})
    assert (verdict.score, verdict.reason) == (None, Reason.SANDBOX_ERROR)
    assert "toolchain for 'lua'" in verdict.evidence["error"]
    assert any("'lua'" in trouble for trouble in closed_languages(Tier.CONTAINER))
    assert not any("'lua'" in trouble for trouble in closed_languages(Tier.FULL))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's programs run as another user")
def test_open_folders_are_open(tmp_path: Path) -> None:
    assert closed_folder(["/usr/bin", "/usr/lib"], Tier.CONTAINER) is None
    (tmp_path / "inner").mkdir(mode=0o700)
    assert closed_folder([str(tmp_path / "inner")], Tier.FULL) is None
    assert closed_folder([str(tmp_path / "inner")], Tier.CONTAINER) is not None
