"""Go's library is compiled once on a machine, for whoever may write there, and read by all."""

import stat
from pathlib import Path

import pytest

from truegold.verifiers.sandbox import toolchains

TOOL = """#!/bin/sh
echo "$1 $2" >> {log}
if [ "$1" = list ]; then shift 4; for name in "$@"; do [ $name = maps ] || echo $name; done; exit; fi
shift; for name in "$@"; do [ $name != maps ] || exit 1; done
(umask 077; mkdir -p "$GOCACHE/00"; for name in "$@"; do echo "$CGO_ENABLED" > "$GOCACHE/00/$(basename $name)"; done)
"""


def make_tool(folder: Path) -> tuple[Path, Path]:
    log, tool = folder / "log", folder / "go"
    tool.write_text(TOOL.format(log=log))
    tool.chmod(0o755)
    return tool, log


def test_the_library_is_compiled_once_and_everybody_can_read_it(tmp_path: Path) -> None:
    tool, log = make_tool(tmp_path)
    cache = tmp_path / "cache"
    cache.mkdir()
    for _ in range(2):
        toolchains.fill_go_cache(cache, str(tool), {"CGO_ENABLED": "0"})
    assert log.read_text() == "list -e\nbuild bufio\n"
    assert not (cache / "00" / "maps").exists()  # This version lacks it.
    assert (cache / "00" / "bufio").read_text() == "0\n"
    assert stat.S_IMODE((cache / "00").stat().st_mode) == 0o755
    assert stat.S_IMODE((cache / "00" / "bufio").stat().st_mode) == 0o644


def test_each_version_has_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchains, "FOLDER_FOR_ALL", tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = toolchains.go_cache_folder("1.22")
    assert folder == tmp_path / "truegold" / "go-1.22"
    assert folder.is_dir()
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(toolchains, "FOLDER_FOR_ALL", tmp_path / "file")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert toolchains.go_cache_folder("1.22") is None


def test_a_broken_toolchain_is_tried_again_and_a_slow_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool, log = tmp_path / "go", tmp_path / "log"
    tool.write_text(f"#!/bin/sh\necho run >> {log}\nexit 1\n")
    tool.chmod(0o755)
    cache = tmp_path / "cache"
    cache.mkdir()
    for times in (1, 2):
        toolchains.fill_go_cache(cache, str(tool), {})
        assert len(log.read_text().splitlines()) == 2 * times
    tool.write_text(f"#!/bin/sh\necho run >> {log}\nexec sleep 60\n")
    log.write_text("")
    monkeypatch.setattr(toolchains, "BUILD_S", 0.5)
    for _ in range(2):
        toolchains.fill_go_cache(cache, str(tool), {})
    assert log.read_text() == "run\n"
