"""The documentation holds: links lead somewhere, pages are short and can be reached, commands and code run."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import tomllib
from functools import cache
from math import ceil
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from house import ROOT
from tables import rows
from typer.core import TyperGroup
from typer.main import get_command

DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"))])
MADE = {"docs/reference/commands.md", "docs/reference/settings.md", "docs/reference/objects.md"}
"""Pages that `docs/build_site.py` writes."""
RUN = [
    *sorted((DOCS / "start").glob("*.md")),
    *(
        DOCS / "how-to" / f"{name}.md"
        for name in ("find-duplicates", "judge-responses", "name-columns", "write-a-verifier")
    ),
]
"""Pages whose blocks in `sh` and `python` are run from top to bottom in an empty folder."""
SCREENS = 120
"""Lines of 100 characters that a page has at most: three screens. References are looked up, not read."""
REFERENCES = {"architecture.md", "flagging.md"}
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def load_builder() -> ModuleType:
    """Return the module `docs/build_site.py`."""
    spec = importlib.util.spec_from_file_location("build_site", DOCS / "build_site.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


BUILDER = load_builder()


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", _BLOCK.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def screen_lines(page: Path) -> int:
    """Return how many lines of 100 characters a page takes; a line of code is one, since it does not wrap."""
    text = page.read_text(encoding="utf-8")
    code = sum(block.count("\n") for _, block in _BLOCK.findall(text))
    return code + sum(max(1, ceil(len(line) / 100)) for line in _BLOCK.sub("", text).splitlines())


@rows("page", PAGES)
def test_every_link_leads_somewhere(page: Path) -> None:
    dead = [
        f"{target}#{anchor}"
        for target, anchor in BUILDER.local_links(page)
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target))
    ]
    assert dead == []


def test_every_page_is_in_the_navigation_once() -> None:
    config = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))
    listed = [path for _, path in BUILDER.nav_pages(config["project"]["nav"])]
    assert len(listed) == len(set(listed))
    assert set(listed) - MADE == {str(page.relative_to(ROOT)) for page in PAGES}


def test_pages_to_read_are_three_screens_at_most() -> None:
    read = [page for page in DOCS.rglob("*.md") if page.parent.name != "reference" and page.name not in REFERENCES]
    assert {str(page): screen_lines(page) for page in read if screen_lines(page) > SCREENS} == {}
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 900


def run(command: list[str], folder: Path) -> None:
    """Run a command in a folder; fail with what it printed."""
    paths = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=500
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.stem)
def test_a_page_does_what_it_says(page: Path, tmp_path: Path) -> None:
    script = [f'set -e\ntruegold() {{ {sys.executable} -P -m truegold.flows.cli "$@"; }}']
    for language, text in _BLOCK.findall(page.read_text(encoding="utf-8")):
        if language == "sh":
            script.append(text)
        elif language == "python":
            script.append(f"{sys.executable} -P - <<'PYTHON'\n{text}PYTHON")
    run(["bash", "-c", "\n".join(script)], tmp_path)


def test_the_python_of_the_readme_runs(tmp_path: Path) -> None:
    (block,) = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    run([sys.executable, "-P", "-c", block], tmp_path)


def test_the_notebook_runs(tmp_path: Path) -> None:
    cells = json.loads((ROOT / "examples" / "first_set.ipynb").read_text(encoding="utf-8"))["cells"]
    assert all(cell["outputs"] == [] for cell in cells if cell["cell_type"] == "code")
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    run([sys.executable, "-P", "-c", "\n".join(code)], tmp_path)


def command_lines(page: Path) -> list[list[str]]:
    """Return the words of every command `truegold ...` on a page, in blocks and in lines."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    blocks = [line.strip().removeprefix("$ ") for _, block in _BLOCK.findall(text) for line in block.splitlines()]
    inline = re.findall(r"`(truegold [^`]+)`", _BLOCK.sub("", text))
    return [line.split("#")[0].split()[1:] for line in (*blocks, *inline) if re.match(r"truegold [a-z]", line)]


@cache
def all_commands() -> Any:
    """Return the command line, which Typer makes anew on each call."""
    from truegold.flows.cli.app import app

    return get_command(app)


@rows("page", PAGES)
def test_every_command_exists_with_its_options(page: Path) -> None:
    unknown = []
    whole = all_commands()
    for words in command_lines(page):
        command = whole
        for word in words:
            if isinstance(command, TyperGroup):
                name = word.strip(",.")
                if name not in command.commands:
                    unknown.append(" ".join(words))
                    break
                command = command.commands[name]
        options = {option for parameter in command.params for option in parameter.opts} | {"--help"}
        used = {word.partition("=")[0].strip("[],") for word in words if word.startswith("--") and len(word) > 2}
        if used - options:
            unknown.append(f"{' '.join(words)}: {sorted(used - options)}")
    assert unknown == []


def test_the_reference_has_every_setting_and_command() -> None:
    from truegold.flows.config import RunConfig

    settings, commands = BUILDER.settings_page(), BUILDER.commands_page()
    assert [name for name in RunConfig.model_fields if f"| `{name}` |" not in settings] == []
    assert "## train.reward.terms" in settings and "](#trainrewardterms)" in settings
    assert "Also as `train.optimizer`" in settings
    named = all_commands().commands
    assert [name for name in named if f"## `truegold {name}`" not in commands] == []


def test_the_site_is_built_without_a_warning() -> None:
    pytest.importorskip("zensical", reason="needs truegold[docs]")
    pytest.importorskip("mkdocstrings", reason="needs truegold[docs]")
    run([sys.executable, "-P", str(DOCS / "build_site.py")], ROOT)
    site = ROOT / "build" / "site"
    formulas = (site / "docs" / "explain" / "pass-rates.html").read_text(encoding="utf-8")
    assert "arithmatex" in formulas and (site / "katex" / "katex.min.js").is_file()
    assert "verify_batch" in (site / "docs" / "reference" / "objects.html").read_text(encoding="utf-8")
    assert "posterior" in (site / "search.json").read_text(encoding="utf-8")
    listed = BUILDER.LINK.findall((site / "llms.txt").read_text(encoding="utf-8"))
    assert "docs/faq.md" in listed and [path for path in listed if not (site / path).is_file()] == []
    outside = re.compile(r"""<(?:script|link|img)[^>]+(?:src|href)=["']https?://""")
    assert [str(page) for page in site.rglob("*.html") if outside.search(page.read_text(encoding="utf-8"))] == []
