"""Parses Python source from responses, repairs it if needed, and finds the names that it defines and needs.

    parse("def f(): pass")               ast.Module
    parse("def f(")                      None
    read_source(">>> x = 1")             text "x = 1"
    read_source("    def f(): pass")     text "def f(): pass"
    read_source("def f(x):\\n    return g(x)")        defines {"f"}, needs {"g"}

A source that does not parse is repaired: common indentation, margins (prompts of a session, line numbers, marks of a
diff) and commands of notebooks are removed. HTML entities, and the spaces and quotes of word processors, become plain
characters. If no repair helps, the source stays unchanged.

A completion-style task has a stub: imports, helpers, and a function without its body:

    stub = "import math\\n\\ndef area(r):\\n    \\"\\"\\"The area of a circle.\\"\\"\\"\\n"
    stub_names(stub, "area")                            "import math"
    continue_stub(stub, "    return math.pi * r ** 2", "area")     the stub with this line as its body

`parse` returns None for a source that does not parse or is longer than MAX_SOURCE_CHARS.
"""

from __future__ import annotations

import ast
import builtins
import html
import re
import textwrap
import threading
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from truegold.verifiers.sandbox.inside.test_code.library_functions import defined_names, loaded_names

MAX_PROGRAM_CHARS = 100_000
"""Maximum length of a source in a response that is parsed and repaired, in characters. In longer sources, definitions
are found line by line."""

MAX_SOURCE_CHARS = 400_000
"""Maximum length of a source that `parse` reads, in characters, since syntax trees take much memory."""

UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError, SystemError)
"""Errors that the parser raises. SystemError is a bug of CPython 3.11 and 3.12 with deeply nested sources."""

CACHED_STUBS = 1_024
_BUILTINS = frozenset(dir(builtins)) | {"__name__", "__file__", "__doc__"}
_DEFINITION = re.compile(r"^(?:async[ \t]+def|def|class)[ \t]+([^\W\d]\w{0,200})", re.MULTILINE)
"""A top-level definition and its name, for sources that do not parse."""

_PROMPT = re.compile(r"[ \t]*(?:>>>|In ?\[\d+\]:|\.\.\.:?)(?: |$)")
"""The prompts of an interactive session: `>>> x = 1`, `... `, `In [1]: x = 1`, `   ...: `."""

_LINE_NUMBER = re.compile(r"[ \t]*[L\[]?(\d{1,5})(?:[ \t]*[|:.)│→\]]|(?=[ \t]|$))")
"""A line number at the start of a line: `12 | x`, `12: x`, `12  x`, `L12: x`, `[12] x`."""

_PATCH_LINE = re.compile(r"^(?:diff --git |index [0-9a-f]+\.\.|(?:new|deleted) file mode |\*\*\* ).*\n", re.MULTILINE)
"""A header line of a patch."""

_CONFLICT = re.compile(r"^<{7}.*\n(?:(?!={7}$|<{7}).*\n)*={7}\n((?:(?![<>]{7}).*\n)*)>{7}.*$", re.MULTILINE)
"""A conflict of two versions, as `git merge` and `SEARCH ... REPLACE` write it. The second version is used."""

_COMMAND = re.compile(
    r"^(?:!|%%?[a-z]|\$ |(?:pip3?|conda) install |(?:In|Out) ?\[[\d ]*\]:)[^\n]*$", re.MULTILINE | re.ASCII
)
"""A line of a notebook that is not Python: `!pip install numpy`, `%matplotlib inline`, `Out[1]: 3`."""

_READS_STDIN = re.compile(r"\binput\s*\(|\bstdin\b|\bopen\s*\(\s*0\b|\bos\.read\s*\(\s*0\b|\bfileinput\b")
_MAY_WARN = re.compile(r"\\|[0-9.](?=[aefino])(?:and|else|for|if|in|is|not|or)\b")
"""Source that the compiler may warn about: escapes, and numbers that touch a keyword (`1if`)."""

_QUIET = threading.Lock()
"""Held while a thread changes the warning filters, since these belong to the whole process."""

_KEPT = (
    *(ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign),
    *(ast.If, ast.Try),
)
"""Statements of a stub that a response may need. `if` and `try` may contain them: `try: import numpy`."""

_OF_WORD_PROCESSORS = str.maketrans(
    {
        **dict.fromkeys([0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000], " "),
        **dict.fromkeys([0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF], ""),
        **dict.fromkeys([0x2018, 0x2019, 0x201A, 0x201B, 0xFF07], "'"),
        **dict.fromkeys([0x201C, 0x201D, 0x201E, 0x201F, 0xFF02], '"'),
    }
)
"""Replaces the spaces and quotes of word processors by plain ones, and removes characters without width."""


@dataclass(frozen=True)
class PythonSource:
    """A piece of Python source with its syntax tree."""

    text: str
    tree: ast.Module | None
    """The syntax tree, or None if the text does not parse; definitions are then found line by line."""

    @cached_property
    def defines(self) -> frozenset[str]:
        """The names that top-level statements bind, and `Class.method` for methods."""
        if self.tree is None:
            return frozenset(_DEFINITION.findall(self.text))
        return frozenset(top_level(self.tree))

    @cached_property
    def needs(self) -> frozenset[str]:
        """The names that the source uses but never binds."""
        if self.tree is None:
            return frozenset()
        return frozenset(loaded_names(self.tree) - set(defined_names(self.tree)) - _BUILTINS)

    @cached_property
    def is_code(self) -> bool:
        """Whether the source is more than an expression, since an output such as `5` or `YES` is valid Python too."""
        if self.tree is None:
            return bool(self.defines)
        return any(not isinstance(each, ast.Expr) or isinstance(each.value, ast.Call) for each in self.tree.body)

    @property
    def reads_stdin(self) -> bool:
        """Whether the source seems to read its input."""
        return _READS_STDIN.search(self.text) is not None

    @cached_property
    def is_body(self) -> bool:
        """Whether the source can only be the body of a function."""
        if self.text[:1] in (" ", "\t"):
            return True
        return self.tree is not None and any(isinstance(each, ast.Return) for each in nodes_in_scope(self.tree.body))

    def binding(self, name: str) -> tuple[int, int] | None:
        """Return the first and last line of the last top-level statement that binds a name, or None."""
        if self.tree is None or name not in self.defines:
            return None
        return next((lines_of(each) for each in reversed(self.tree.body) if name in bound_by(each)), None)


def read_source(text: str) -> PythonSource:
    """Return a text as Python source. A text that does not parse is repaired if this makes it parse."""
    text = text.strip("\n")
    if len(text) > MAX_PROGRAM_CHARS:
        return PythonSource(text, None)
    tree = parse(text)
    if tree is not None:
        return PythonSource(text, tree)
    for repaired in _repairs(text):
        if (tree := parse(repaired)) is not None:
            return PythonSource(repaired.strip("\n"), tree)
    return PythonSource(text, None)


def _repairs(text: str) -> Iterator[str]:
    """Yield the text after the first repair, after the first two repairs, and so on."""
    for repair in (
        textwrap.dedent,
        lambda source: _CONFLICT.sub(r"\1", source),
        lambda source: _without_margin(_PATCH_LINE.sub("", source)),
        textwrap.dedent,
        lambda source: _COMMAND.sub("", source),
        html.unescape,
        lambda source: source if "\n" in source.strip() else source.replace("\\n", "\n"),
        lambda source: source.translate(_OF_WORD_PROCESSORS),
        textwrap.dedent,
    ):
        repaired = repair(text)
        if repaired != text:
            yield (text := repaired)


def _without_margin(text: str) -> str:
    """Return the text without the prompts, line numbers or diff marks before its lines."""
    lines = text.strip("\n").split("\n")
    if (first := _PROMPT.match(lines[0])) and lines[0][first.end() :].strip() and "..." not in first[0]:
        return "\n".join(line[prompt.end() :] for line in lines if (prompt := _PROMPT.match(line)))
    labels = [_LINE_NUMBER.match(line) for line in lines if line.strip()]
    if len({label and int(label[1]) - index for index, label in enumerate(labels)} - {None}) == 1 and all(labels):
        return "\n".join(_LINE_NUMBER.sub("", line, count=1) for line in lines)
    if any(line.startswith("+") for line in lines) and all(line[:1] in " +-@" or not line for line in lines):
        return "\n".join(line[1:] for line in lines if line[:1] not in ("-", "@") and not line.startswith("+++"))
    return text


@lru_cache(maxsize=CACHED_STUBS)
def stub_names(stub: str, entry_point: str) -> str:
    """Return the stub without the entry point: the imports and helpers that a response may need."""
    name = entry_point.partition(".")[0].removesuffix("()")
    lines = stub.split("\n")
    # A stub that ends with the head of a function needs a body to parse.
    tree = parse(stub) or parse(f"{stub.rstrip()}\n{_indent_of_body(stub)}pass\n")
    if tree is None:
        definition = re.compile(rf"(?:async[ \t]+def|def|class)[ \t]+{re.escape(name)}\b|@")
        before = next((index for index, line in enumerate(lines) if definition.match(line)), len(lines))
        text = "\n".join(lines[:before])
        return text.strip("\n") if parse(text) is not None else ""
    kept = [each for each in tree.body if isinstance(each, _KEPT) and getattr(each, "name", None) != name]
    return "\n".join("\n".join(lines[first - 1 : last]) for first, last in map(lines_of, kept))


def continue_stub(stub: str, body: str, entry_point: str) -> str | None:
    """Return the stub continued by `body`, or None if together they do not define the entry point."""
    if len(body) > MAX_PROGRAM_CHARS:
        return None
    lines = stub.rstrip().count("\n") + 1
    return next((text for text in _continuations(stub, body) if _has_body(parse(text), entry_point, lines)), None)


def _continuations(stub: str, body: str) -> Iterator[str]:
    """Yield the stub with the body: unchanged, indented, and up to the first line outside of the function."""
    joint = "" if stub.endswith("\n") or not stub.rpartition("\n")[2].strip() else "\n"
    yield f"{stub}{joint}{body}"
    if joint:  # The stub ends within a line.
        yield stub + body
    lines = body.strip("\n").split("\n")
    indent = _indent_of_body(stub)
    stub = stub.rstrip() + "\n"
    if lines[0][:1] not in (" ", "\t"):
        # The indentation of the first line is often lost, when the response is stripped or the prompt includes it.
        yield stub + "\n".join(f"{indent}{line}" if line.strip() else line for line in lines)
        yield f"{stub}{indent}{body.strip()}"
    elif not lines[0].startswith(indent):
        yield stub + textwrap.indent(textwrap.dedent("\n".join(lines)), indent)
    # A base model often continues with other text after the function.
    outside = (index for index, line in enumerate(lines) if index and line.strip() and line[:1] not in (" ", "\t"))
    end = next(outside, None)
    if end is not None:
        first = lines[0] if lines[0][:1] in (" ", "\t") else f"{indent}{lines[0]}"
        yield stub + "\n".join([first, *lines[1:end]])


def _has_body(tree: ast.Module | None, entry_point: str, stub_lines: int) -> bool:
    """Return whether the function of the entry point has a statement after the stub's lines."""
    if tree is None or any(isinstance(node, ast.Return) for node in nodes_in_scope(tree.body)):
        return False
    body: list[ast.stmt] = tree.body
    for name in entry_point.replace("()", "").split("."):
        definitions = [each for each in body if getattr(each, "name", None) == name]
        if not definitions:
            return False
        body = getattr(definitions[-1], "body", [])
    last = body[-1]
    while isinstance(last, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        last = last.body[-1]
    is_word = isinstance(last, ast.Expr) and isinstance(last.value, ast.Constant | ast.Name)
    return not is_word and (last.end_lineno or 0) >= stub_lines


def _indent_of_body(stub: str) -> str:
    """Return the indentation of the body of the last function, from its docstring if it has one."""
    lines = [line for line in stub.split("\n") if line.strip()]
    start = max((i for i, line in enumerate(lines) if line.lstrip().startswith(("def ", "async def "))), default=None)
    if start is None:
        return "    "
    indent = _indent(lines[start])
    below = next((_indent(line) for line in lines[start + 1 :] if '"""' in line or "'''" in line), "")
    if len(below) > len(indent):
        return below
    return indent + ("\t" if "\t" in indent else "    ")


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def parse(source: str) -> ast.Module | None:
    """Return the syntax tree of a source, or None if it does not parse."""
    try:
        return _tree(source)
    except UNREADABLE:
        return None


def error_line(source: str) -> int | None:
    """Return the number of the line with the syntax error, or None if there is no error or its line is unknown."""
    try:
        _tree(source)
    except SyntaxError as error:
        return error.lineno
    except UNREADABLE:
        pass
    return None


def _tree(source: str) -> ast.Module:
    if len(source) > MAX_SOURCE_CHARS:
        raise ValueError("too long")
    if _MAY_WARN.search(source) is None:
        return ast.parse(source)
    # The compiler warns about odd escapes and numbers. If a user has turned warnings into errors, such a warning would
    # change the verdict.
    with _QUIET, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)


def top_level(tree: ast.Module) -> set[str]:
    """Return the names that top-level statements bind, and `Class.method` for methods."""
    return {name for statement in tree.body for name in bound_by(statement)}


def bound_by(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement binds in its scope."""
    for node in nodes_in_scope([statement]):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name):
                yield name
                yield from (f"{name}.{inner}" for part in node.body for inner in bound_by(part) if "." not in inner)
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from (alias.asname or alias.name.partition(".")[0] for alias in names)
            case ast.Name(id=name, ctx=ast.Store()) | ast.ExceptHandler(name=str(name)):
                yield name


def nodes_in_scope(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield the nodes in the scope of `body`: functions and classes, but not the nodes inside them."""
    pending = list(body)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            pending += ast.iter_child_nodes(node)


def lines_of(statement: ast.stmt) -> tuple[int, int]:
    """Return the numbers of the first and last line of a statement, including its decorators."""
    decorators = getattr(statement, "decorator_list", ())
    first = min([statement.lineno, *(decorator.lineno for decorator in decorators)])
    return first, statement.end_lineno or statement.lineno
