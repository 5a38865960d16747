"""The work of others: its files are the ones that were taken, and it goes nowhere without its licence."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from truegold.pipeline.report import ReviewSettings, open_page
from truegold.pipeline.report.render import THIRD_PARTY
from truegold.pipeline.report.run_diff import diff_page
from truegold.pipeline.report.sharing import SharedTexts, shared_page
from truegold.pipeline.rescore import rescore
from truegold.pipeline.rescore.rollout_report import write_report
from truegold.pipeline.running.progress import NullProgress

ROOT = Path(__file__).parents[2]
LIBRARIES = sorted(path.name for path in THIRD_PARTY.iterdir())
COPYRIGHT = {"katex": "Khan Academy and other contributors", "tabulator": "Oli Folkerd"}
GRANT = "Permission is hereby granted, free of charge"

PAGES: dict[str, Callable[[Path], str]] = {
    "report": open_page,
    "review": lambda run: open_page(run, ReviewSettings("ann", "secret")),
    "report --share": lambda run: shared_page(run, SharedTexts.REDACTED),
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_file_is_the_one_that_was_taken(library: str) -> None:
    folder = THIRD_PARTY / library
    origin = tomllib.loads((folder / "ORIGIN.toml").read_text())
    digests = {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "ORIGIN.toml"
    }
    assert digests == origin["sha256"]
    assert origin["version"] in origin["source"] and origin["licence"] == "MIT"
    notice = (ROOT / "NOTICE").read_text()
    assert f"{origin['name']} {origin['version']}" in notice and COPYRIGHT[library] in notice
    assert COPYRIGHT[library] in (folder / "LICENSE").read_text()


@pytest.mark.parametrize("page", PAGES)
def test_every_page_with_rows_has_both_licences(page: str, full: tuple[Path, str, dict[str, Any]]) -> None:
    assert_licensed(PAGES[page](full[0]), LIBRARIES)


def test_the_page_of_two_runs_embeds_nothing(full: tuple[Path, str, dict[str, Any]]) -> None:
    assert_licensed(diff_page(full[0], full[0]), [])


def assert_licensed(html: str, libraries: list[str]) -> None:
    """Check that a page carries the licences of these libraries, which it embeds."""
    assert ("KaTeX_Main" in html) == ("katex" in libraries)
    assert ("Tabulator v" in html) == ("tabulator" in libraries)
    comments = [part.partition("-->")[0] for part in html.split("<!--")[1:]]
    for library in LIBRARIES:
        licences = [comment for comment in comments if COPYRIGHT[library] in comment]
        assert len(licences) == (library in libraries)
        assert all(GRANT in licence and "--" not in licence for licence in licences)


def test_the_page_of_rescored_rollouts_has_the_licence_of_what_draws_its_formulas(tmp_path: Path) -> None:
    for name, question in (("plain", "Half of 1?"), ("formula", r"What is \(\frac{1}{2}\)?")):
        log = tmp_path / f"{name}_rollouts.jsonl"
        record = {"input": question, "output": r"It is \boxed{5}.", "gts": "1/2", "score": 1.0, "step": 1}
        log.write_bytes(orjson.dumps(record) + b"\n")
        out = tmp_path / name
        write_report(out, rescore([log], out, NullProgress(), workers=1), None)
        assert_licensed((out / "report.html").read_text(), ["katex"] if name == "formula" else [])
