"""A piece of Python as a model wrote it: what it defines, what it needs, and how it can be made to parse.

    read_source(">>> x = 1")             text "x = 1"
    read_source("    def f(): pass")     text "def f(): pass"
    read_source("def f(x):\\n    return g(x)")        defines {"f"}, needs {"g"}

A source that does not parse is tried without the indentation that all of it has, without the prompts of an interactive
session, and with plain spaces and quotes for those of word processors; where nothing helps it stays as it was.
"""

from __future__ import annotations

import ast
import builtins
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from truegold.verifiers.code.syntax import bound_by, lines_of, nodes_in_scope, parse, top_level

MAX_PROGRAM_CHARS = 100_000
"""A longer source is taken as it is, and its definitions are found line by line. Stops a response whose reading takes
seconds; what programs are this long hold tables."""

_BUILTINS = frozenset(dir(builtins)) | {"__name__", "__file__", "__doc__"}
_DEFINITION = re.compile(r"^(?:async[ \t]+def|def|class)[ \t]+([^\W\d]\w{0,200})", re.MULTILINE)
_PROMPT = re.compile(r"(?:>>>|\.\.\.)(?: |$)")
_READS_STDIN = re.compile(r"\binput\s*\(|\bstdin\b|\bopen\s*\(\s*0\b|\bos\.read\s*\(\s*0\b|\bfileinput\b")
_PLAIN = str.maketrans(
    {
        **dict.fromkeys([0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000], " "),
        **dict.fromkeys([0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF], ""),
        **dict.fromkeys([0x2018, 0x2019, 0x201A, 0x201B, 0xFF07], "'"),
        **dict.fromkeys([0x201C, 0x201D, 0x201E, 0x201F, 0xFF02], '"'),
    }
)


@dataclass(frozen=True)
class PythonSource:
    """A piece of Python."""

    text: str
    tree: ast.Module | None
    """None where the text does not parse; its definitions are then found line by line."""

    @cached_property
    def defines(self) -> frozenset[str]:
        """Top-level names, and `Class.method`."""
        if self.tree is None:
            return frozenset(_DEFINITION.findall(self.text))
        return frozenset(top_level(self.tree))

    @cached_property
    def needs(self) -> frozenset[str]:
        """Names that are used and bound nowhere in the source."""
        if self.tree is None:
            return frozenset()
        used, bound = set(), set(self.defines)
        for node in ast.walk(self.tree):
            match node:
                case ast.Name(id=name, ctx=ast.Load()):
                    used.add(name)
                case ast.Name(id=name) | ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                    bound.add(name)
                case ast.AsyncFunctionDef(name=name) | ast.ExceptHandler(name=str(name)):
                    bound.add(name)
                case ast.Import() | ast.ImportFrom():
                    bound.update(bound_by(node))
        return frozenset(used - bound - _BUILTINS)

    @cached_property
    def is_code(self) -> bool:
        """Whether it does anything: the output `5` and the word `YES` are Python too."""
        if self.tree is None:
            return bool(self.defines)
        return any(not isinstance(each, ast.Expr) or isinstance(each.value, ast.Call) for each in self.tree.body)

    @property
    def reads_stdin(self) -> bool:
        """Whether it looks as if it read its input."""
        return _READS_STDIN.search(self.text) is not None

    @cached_property
    def is_body(self) -> bool:
        """Whether it can only be the inside of a function."""
        if self.text[:1] in (" ", "\t"):
            return True
        return self.tree is not None and any(isinstance(each, ast.Return) for each in nodes_in_scope(self.tree.body))

    def binding(self, name: str) -> tuple[int, int] | None:
        """Return the first and the last line of the last top-level statement that binds a name."""
        if self.tree is None or name not in self.defines:
            return None
        return next((lines_of(each) for each in reversed(self.tree.body) if name in bound_by(each)), None)


def read_source(text: str) -> PythonSource:
    """Parse a text, repaired where it does not parse and that helps."""
    text = text.strip("\n")
    if len(text) > MAX_PROGRAM_CHARS:
        return PythonSource(text, None)
    tree = parse(text)
    if tree is not None:
        return PythonSource(text, tree)
    for repaired in _repairs(text):
        if repaired != text and (tree := parse(repaired)) is not None:
            return PythonSource(repaired.strip("\n"), tree)
    return PythonSource(text, None)


def _repairs(text: str) -> Iterator[str]:
    dedented = textwrap.dedent(text)
    yield dedented
    if text.lstrip().startswith(">>>"):
        yield _without_prompts(dedented)
    plain = dedented.translate(_PLAIN)
    if plain != dedented:
        yield plain
        yield textwrap.dedent(plain)


def _without_prompts(text: str) -> str:
    lines = (line.strip() if line.strip() in (">>>", "...") else line for line in text.split("\n"))
    return "\n".join(line[4:] for line in lines if _PROMPT.match(line))
