"""A module of a user's that ends itself does not end the command that loads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from truegold.verifiers import ConfigError
from truegold.verifiers.user_code import load_object, source_digest


@pytest.mark.parametrize("spelling", ["file", "module"])
def test_a_module_that_exits_could_not_be_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spelling: str
) -> None:
    path = tmp_path / "exits_at_once.py"
    path.write_text("import sys\nsys.exit(0)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    source = str(path) if spelling == "file" else "exits_at_once"
    for _ in range(2):
        with pytest.raises(ConfigError, match=r"^thing could not be loaded: SystemExit: 0 \(.*, line 2\)"):
            load_object(source, "check", "thing")
    with pytest.raises(ConfigError):
        source_digest(source, "thing")
