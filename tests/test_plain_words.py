"""Words of docstrings, comments and pages that a reader would have to read twice."""

from __future__ import annotations

import ast
import inspect
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BANNED = re.compile(
    r"\b(?:whoever|nobody|whatever|whichever|what becomes of|beside|at the (?:most|least)"
    r"|(?<!there )is no(?! longer))\b",
    re.IGNORECASE,
)
"""Turns that stand for plainer ones, such as `is no number` for `is not a number`."""
RIDDLES = re.compile(r"(?<![Tt]here\s)\b(?:are no(?! longer)|(?:is|are) none)\b|\bof what is\b|\b[Ss]o many\b")
"""Further turns that docstrings and comments avoid."""
OPENINGS = re.compile(r"(?:What|Which|Who|Where|From|Those that|That which)\b")
"""First words of a docstring that names its subject last."""
MODULE_OPENINGS = re.compile(r"(?:What|Which|Who|Where|From|Those|Whether|How|If|When)\b")
EXAMPLES = re.compile(r"`[^`]*`|\n {4,}.*")
"""Code and indented examples of a docstring."""
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.S)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str, bool]]:
    """Yield the line of each docstring, its text, and whether it is the module's; those of attributes too."""
    for node in ast.walk(tree):
        if not isinstance(node, DOCUMENTED):
            continue
        for index, child in enumerate(node.body):
            match child:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    yield child.lineno, text, isinstance(node, ast.Module) and index == 0


def comments(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and text of each comment."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def mistakes(source: str) -> Iterator[str]:
    """Yield a line for each banned turn of a module."""
    for line, written, opens_module in docstrings(ast.parse(source)):
        text = EXAMPLES.sub(" ", inspect.cleandoc(written))
        opening = (MODULE_OPENINGS if opens_module else OPENINGS).match(text)
        found = BANNED.search(text) or RIDDLES.search(text) or opening
        if found is not None:
            yield f"{line}: {found[0]!r} in {' '.join(text.split())[:90]!r}"
    for line, text in comments(source):
        if (found := BANNED.search(text) or RIDDLES.search(text)) is not None:
            yield f"{line}: {found[0]!r} in {text!r}"


@pytest.mark.parametrize("folder", ["verifiers", "pipeline", "synth", "train", "flows"])
def test_docstrings_and_comments_use_plain_words(folder: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{mistake}"
        for path in sorted((ROOT / "src" / "truegold" / folder).rglob("*.py"))
        for mistake in mistakes(path.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join([f"{len(found)} turns that a reader reads twice:", *found])


def test_pages_use_plain_words() -> None:
    pages = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
    found = []
    for page in pages:
        text = CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), page.read_text(encoding="utf-8"))
        for number, line in enumerate(text.splitlines(), 1):
            if (turn := BANNED.search(line)) is not None:
                found.append(f"{page.relative_to(ROOT)}:{number}: {turn[0]!r} in {line.strip()[:90]!r}")
    assert not found, "\n".join([f"{len(found)} turns that a reader reads twice:", *found])


def test_the_check_finds_banned_turns() -> None:
    assert len(list(mistakes('"""What is done here."""\nx = 1\n"""Whoever reads it."""\n# it is no number\n'))) == 3
    assert not list(mistakes('"""Reads numbers."""\nx = 1\n"""Whether there is no `whatever`."""\n'))
