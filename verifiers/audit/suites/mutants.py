"""Makes wrong programs, to measure whether tests notice them: small faults planted in a program, and null programs.

    mutants_of("def low(a, b):\\n    return a < b\\n", 2)
        Mutant(operator="comparison", line=2, before="return a < b", after="return (a <= b)", ...)
        Mutant(operator="return", line=2, before="return a < b", after="return True", ...)

    part of the program          possible faults
    if a < b:                ->  if (a <= b):      if (a >= b):      pass
    x + 1                    ->  (x - 1)           x + 2             x + 0
    a and b, not c           ->  (a or b)          c
    for i in range(n):       ->  range(n - 1)      range(n + 1)
    items[1:]                ->  items[2:]         items[0:]
    total += x               ->  total -= x        pass
    return found             ->  return None       return True (if a truth value is returned)
    max(a, b)                ->  min(a, b)         a                 b
    abs(x), sorted(x)        ->  x
    text.strip()             ->  text
    a - b                    ->  (a + b)           (b - a)           abs(a - b)
    if a: ... else: ...      ->  the first branch alone, the other alone
    for ...:                 ->  the loop ends after its first iteration

A mutant is the program's text with one change, so that comments and layout stay. The seed chooses the changes. Kinds of
faults take turns, so that a program with many numbers also gets other faults. The choice is the same on every machine.
All mutants are different programs.

Some parts are never changed, since tests need not notice faults there: docstrings, imports, annotations, decorators,
f-strings, the guard `if __name__ == "__main__"`, unused functions and classes, and classes for fast input (`FastIO`).

Some mutants do the same as the program: their change is in a bound that is never reached, for example. Tests cannot
notice such mutants, so the share of noticed mutants (the kill rate) may stay below 1. Only Python is covered.

Null programs solve nothing and must fail the tests:

    Programs that read stdin    print nothing, the input, its first line, or success messages
                                print a constant for every input: 0, 1, YES, NO, or one of the expected outputs
                                exit before they print
    Functions                   return their first argument, or an object that claims to equal everything
                                return a constant: None, 0, 1, "", [], True, False, nan, infinity, one of the expected
                                values, or an empty array if the suite uses numpy
                                exit, or print success messages

All null programs are in Python, even if the solutions that read stdin are in another language. For test code in another
language, the only null program is empty.
"""

from __future__ import annotations

import ast
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

from truegold.verifiers.audit.suites.known_cases import known_cases, tested_names
from truegold.verifiers.audit.suites.text_checks import leaked_cases
from truegold.verifiers.code.python_source import parse
from truegold.verifiers.code.suite.reading import Inserted, Stdio, Suite

MAX_SHOWN = 160
"""Maximum number of characters of a changed line that are shown."""

_LINE_END = re.compile(rb"\r\n|\r|\n")
_BOUNDARY: dict[type[ast.cmpop], tuple[str, ...]] = {  # Operators that replace a comparison.
    ast.Lt: ("<=", ">="), ast.LtE: ("<", ">"), ast.Gt: (">=", "<="), ast.GtE: (">", "<"), ast.Eq: ("!=",),
    ast.NotEq: ("==",), ast.In: ("not in",), ast.NotIn: ("in",), ast.Is: ("is not",), ast.IsNot: ("is",),
}  # fmt: skip
_ARITHMETIC: dict[type[ast.operator], str] = {  # The operator that replaces an arithmetic one.
    ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.Div: "*", ast.FloorDiv: "*", ast.Mod: "//", ast.Pow: "*",
    ast.BitAnd: "|", ast.BitOr: "&", ast.BitXor: "|", ast.LShift: ">>", ast.RShift: "<<",
}  # fmt: skip
_TWINS = {"min": "max", "max": "min", "any": "all", "all": "any"}
"""Functions that programmers confuse."""
_CHOICES = {"min", "max"}
"""Functions that are replaced by one of their arguments."""
_DROPPED = {"abs", "sorted", "reversed", "set", "round"}
"""Functions that are replaced by their argument."""
_DROPPED_METHODS = {"strip", "lstrip", "rstrip", "lower", "upper", "casefold"}
"""Methods whose call is replaced by its object."""
_ORDERED: dict[type[ast.operator], str] = {
    ast.Sub: "-", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
}  # fmt: skip
"""Operators whose sides are swapped."""
_BOILERPLATE = {"FastIO", "IOWrapper"}
"""Classes for fast input."""
_ATOMS = (ast.Name, ast.Constant, ast.Call, ast.Attribute, ast.Subscript, ast.List, ast.Dict, ast.Set, ast.ListComp)
"""Expressions that need no brackets as operands."""
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True, slots=True)
class Mutant:
    """A program with one planted fault."""

    operator: str
    """The kind of the fault."""
    line: int
    """The line with the fault, counted from 1."""
    before: str
    """The line before the change."""
    after: str
    """The line after the change, or a description of the change."""
    source: str
    """The whole program with the fault."""
    is_fallback: bool = False
    """Whether the fault only changes the value for a missing answer, such as -1."""

    @property
    def description(self) -> str:
        """The line before and after, for reports."""
        return f"line {self.line}: {self.before}  ->  {self.after}"


def mutants_of(source: str, count: int, seed: int = 0, entry_points: Sequence[str] = ()) -> list[Mutant]:
    """Return up to `count` mutants, or an empty list if the source does not parse.

    entry_points: names that the tests use. They count as used.
    """
    if (tree := parse(source)) is None or count <= 0:
        return []
    mutants: list[Mutant] = []
    seen = {source}
    data = source.encode("utf-8", "surrogatepass")
    for change in _in_turn(changes_of(tree, data, entry_points), seed):
        text = change.text.encode("utf-8", "surrogatepass")
        changed = (data[: change.start] + text + data[change.end :]).decode("utf-8", "surrogatepass")
        if changed in seen or parse(changed) is None:
            continue
        seen.add(changed)
        mutants.append(_make_mutant(source, changed, change))
        if len(mutants) == count:
            break
    return mutants


def _in_turn(changes: Iterable[Change], seed: int) -> Iterator[Change]:
    """Yield the changes in an order decided by the seed, taking the kinds in turn."""
    kinds: dict[str, list[Change]] = {}
    for change in changes:
        kinds.setdefault(change.operator, []).append(change)
    choice = random.Random(seed)
    for kind in kinds.values():
        choice.shuffle(kind)
    waiting = list(kinds.values())
    choice.shuffle(waiting)
    while waiting:
        for kind in waiting:
            yield kind.pop()
        waiting = [kind for kind in waiting if kind]


def _make_mutant(source: str, changed: str, change: Change) -> Mutant:
    old, new = source.split("\n"), changed.split("\n")
    index = min(change.line, len(old)) - 1
    if change.description is None:
        index = next((n for n in range(index, min(len(old), len(new))) if old[n] != new[n]), index)
    after = change.description or _cut(new[index])
    return Mutant(change.operator, index + 1, _cut(old[index]), after, changed, change.is_fallback)


def _cut(line: str) -> str:
    text = line.strip()
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


@dataclass(frozen=True, slots=True)
class Change:
    """A possible fault: the bytes `start` to `end` of the source become `text`."""

    operator: str
    start: int
    end: int
    text: str
    line: int
    description: str | None = None
    """A description of the change, if the text of the line does not show it."""
    is_fallback: bool = False


def changes_of(tree: ast.Module, source: bytes, entry_points: Sequence[str] = ()) -> Iterator[Change]:
    """Yield every possible fault, in the order of the source."""
    finder = _Finder(source)
    fallbacks = {id(part) for node in ast.walk(tree) for value in _fallbacks(node) for part in ast.walk(value)}
    unused = _unused_definitions(tree, entry_points)
    pending: list[ast.AST] = list(reversed(tree.body))
    while pending:
        node = pending.pop()
        if id(node) in unused or _is_left_alone(node):
            continue
        is_fallback = id(node) in fallbacks
        yield from (replace(change, is_fallback=is_fallback) for change in finder.changes(node))
        pending.extend(reversed(list(_children(node))))


def _children(node: ast.AST) -> Iterator[ast.AST]:
    for name, value in ast.iter_fields(node):
        if name in ("decorator_list", "annotation", "returns"):
            continue
        if isinstance(value, ast.AST):
            yield value
        elif isinstance(value, list):
            yield from (child for child in value if isinstance(child, ast.AST))


def _is_left_alone(node: ast.AST) -> bool:
    match node:
        case ast.Import() | ast.ImportFrom() | ast.JoinedStr() | ast.Global() | ast.Nonlocal():
            return True
        # A docstring is a constant as a statement.
        case ast.Expr(value=ast.Constant() | ast.Call(func=ast.Attribute(attr="setrecursionlimit"))):
            return True
        case ast.Assign(targets=[ast.Name(id="BUFSIZE")]):
            return True
        case ast.ClassDef(name=name):
            return name in _BOILERPLATE
    return isinstance(node, ast.Compare) and _is_guard(node)


def _unused_definitions(tree: ast.Module, entry_points: Sequence[str]) -> set[int]:
    """Return the `id`s of the module's functions and classes that no other code names."""
    defined = {node.name: node for node in tree.body if isinstance(node, _DEFINITIONS)}
    used = {name for name in entry_points if name in defined}
    statements: list[ast.AST] = [node for node in tree.body if not isinstance(node, _DEFINITIONS)]
    statements += [defined[name] for name in used]
    while statements:
        for node in ast.walk(statements.pop()):
            name = getattr(node, "id", None)
            if name in defined and name not in used:
                used.add(name)
                statements.append(defined[name])
    # If nothing is used, the file does not show which definitions the tests use.
    return {id(node) for name, node in defined.items() if name not in used} if used else set()


def _fallbacks(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the values for a missing answer at this node: a default, or a returned text or negative number."""
    match node:
        case (
            ast.Call(func=ast.Name(id="next"), args=[_, default])
            | ast.Call(func=ast.Attribute(attr="get" | "pop"), args=[_, default])
        ):
            if isinstance(default, ast.Constant | ast.UnaryOp):
                yield default
        case ast.Call(keywords=keywords):
            yield from (keyword.value for keyword in keywords if keyword.arg == "default")
        case ast.Return(value=value) if _is_negative(value):
            yield value
        case ast.Return(value=ast.Constant(value=str()) as value) if " " in str(value.value):
            yield value
        case ast.IfExp(body=body, orelse=orelse):
            yield from filter(_is_negative, (body, orelse))
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield from _negative_starts(node)


def _negative_starts(function: ast.AST) -> Iterator[ast.expr]:
    """Yield the negative initial values of returned variables: `-1` in `place = -1 ... return place`."""
    nodes = list(ast.walk(function))
    returned = {node.value.id for node in nodes if isinstance(node, ast.Return) and isinstance(node.value, ast.Name)}
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in returned and _is_negative(value):
                yield value


def _is_negative(node: ast.expr | None) -> TypeGuard[ast.expr]:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant)


class _Finder:
    """Finds the possible faults at a node."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._starts = [0, *(end.end() for end in _LINE_END.finditer(source))]
        """The position of the first byte of each line, with line ends as `ast` counts them."""

    def changes(self, node: ast.AST) -> Iterator[Change]:
        """Yield the possible faults at this node, without those of its children."""
        match node:
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
                yield from () if _is_guard(test) else self._branches(node, test)
            case ast.Compare():
                yield from self._comparisons(node)
            case ast.BinOp(left=left, op=op, right=right):
                if not (_is_text(left) or _is_text(right)):
                    yield from self._arithmetic(node, left, op, right)
            case ast.BoolOp(op=op, values=values):
                word = " or " if isinstance(op, ast.And) else " and "
                yield self._put("and, or", node, f"({word.join(map(self._operand, values))})")
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield self._put("dropped not", node, self._operand(operand))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                yield self._put("dropped minus", node, self._operand(operand))
            case ast.Constant(value=value):
                yield from self._constants(node, value)
            case ast.Call():
                yield from self._calls(node)
            case ast.Slice():
                yield from self._bounds("slice", [bound for bound in (node.lower, node.upper) if bound is not None])
        yield from self._statements(node)

    def _branches(self, node: ast.If | ast.IfExp | ast.While, test: ast.expr) -> Iterator[Change]:
        if not _is_changed_itself(test):
            yield self._put("condition", test, f"(not {self._operand(test)})")
        if isinstance(node, ast.If) and not node.orelse:
            yield self._put("dropped statement", node, "pass")
        elif not isinstance(node, ast.While) and not isinstance(test, ast.Constant):
            yield from (self._put("dropped branch", test, constant) for constant in ("True", "False"))

    def _arithmetic(self, node: ast.expr, left: ast.expr, op: ast.operator, right: ast.expr) -> Iterator[Change]:
        if (sign := _ARITHMETIC.get(type(op))) is not None:
            yield self._between("arithmetic", node, left, sign, right)
        if (sign := _ORDERED.get(type(op))) is not None:
            yield self._between("swapped", node, right, sign, left)
        if isinstance(op, ast.Sub):
            yield self._put("added call", node, f"abs({self._text(node)})")

    def _statements(self, node: ast.AST) -> Iterator[Change]:
        match node:
            case ast.Return(value=ast.expr() as value):
                for constant in _other_results(value):
                    yield self._put("return", value, constant)
            case ast.AugAssign(target=target, op=op, value=value):
                if (sign := _ARITHMETIC.get(type(op))) is not None and not _is_text(value):
                    yield self._put("arithmetic", node, f"{self._text(target)} {sign}= {self._text(value)}")
                yield self._put("dropped statement", node, "pass")
            case ast.Expr(value=ast.Call()) | ast.Continue() | ast.Break() | ast.Delete() | ast.Raise():
                yield self._put("dropped statement", node, "pass")
            case ast.Assign(targets=[ast.Subscript() | ast.Attribute()]):
                yield self._put("dropped statement", node, "pass")
            case ast.For(body=body) | ast.While(body=body):
                yield from self._one_turn(node, body)

    def _comparisons(self, node: ast.Compare) -> Iterator[Change]:
        sides = [node.left, *node.comparators]
        for left, op, right in zip(sides, node.ops, sides[1:], strict=False):
            for sign in _BOUNDARY.get(type(op), ()):
                if len(node.ops) == 1:
                    yield self._between("comparison", node, left, sign, right)
                else:
                    start, end = self._end(left), self._start(right)
                    yield Change("comparison", start, end, f" {sign} ", node.lineno)

    def _constants(self, node: ast.Constant, value: object) -> Iterator[Change]:
        if isinstance(value, bool):
            yield self._put("constant", node, str(not value))
        elif isinstance(value, int):
            yield self._put("constant", node, str(value + 1))
            yield self._put("constant", node, str(value - 1) if value > 0 else f"({value - 1})")
        elif isinstance(value, float):
            yield self._put("constant", node, repr(value + 1.0))
        elif isinstance(value, str) and value:
            yield self._put("text", node, "''")

    def _calls(self, node: ast.Call) -> Iterator[Change]:
        match node:
            case ast.Call(func=ast.Name(id=name), args=[ast.expr() as first, *rest]):
                if name in _DROPPED and not isinstance(first, ast.Starred):
                    yield self._put("dropped call", node, self._operand(first))
                if name in _CHOICES and rest and not any(isinstance(each, ast.Starred) for each in node.args):
                    yield from (self._put("one choice", node, self._operand(each)) for each in node.args)
            case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in _DROPPED_METHODS:
                yield self._put("dropped call", node, self._operand(value))
        if not isinstance(node.func, ast.Name):
            return
        if (twin := _TWINS.get(node.func.id)) is not None:
            yield self._put("twin function", node.func, twin)
        if node.func.id == "range":
            yield from self._bounds("range", [arg for arg in node.args[:2] if not isinstance(arg, ast.Starred)])

    def _bounds(self, operator: str, bounds: Sequence[ast.expr]) -> Iterator[Change]:
        for bound in bounds:
            if not isinstance(bound, ast.Constant):  # Constants get faults of their own.
                yield self._put(operator, bound, f"{self._operand(bound)} - 1")
                yield self._put(operator, bound, f"{self._operand(bound)} + 1")

    def _one_turn(self, loop: ast.For | ast.While, body: Sequence[ast.stmt]) -> Iterator[Change]:
        last = body[-1]
        line = self._source[self._starts[last.lineno - 1] : self._start(last)]
        # The indentation can be copied only if the statement is the first on its line.
        if not line.strip() and not isinstance(last, ast.Break | ast.Return | ast.Raise | ast.Continue):
            end, text = self._end(last), f"\n{line.decode()}break"
            yield Change("loop", end, end, text, loop.lineno, "the loop ends after its first iteration")

    def _between(self, operator: str, node: ast.expr, left: ast.expr, sign: str, right: ast.expr) -> Change:
        return self._put(operator, node, f"({self._operand(left)} {sign} {self._operand(right)})")

    def _put(self, operator: str, node: ast.expr | ast.stmt, text: str) -> Change:
        return Change(operator, self._start(node), self._end(node), text, node.lineno)

    def _operand(self, node: ast.expr) -> str:
        """Return the text of a node, in brackets if it needs them as an operand."""
        text = self._text(node)
        return text if isinstance(node, _ATOMS) and "\n" not in text else f"({text})"

    def _text(self, node: ast.expr) -> str:
        return self._source[self._start(node) : self._end(node)].decode("utf-8", "surrogatepass")

    def _start(self, node: ast.expr | ast.stmt) -> int:
        return self._starts[node.lineno - 1] + node.col_offset

    def _end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None and node.end_col_offset is not None  # `ast.parse` sets them.
        return self._starts[node.end_lineno - 1] + node.end_col_offset


def _is_guard(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"


def _is_changed_itself(test: ast.expr) -> bool:
    """Return whether a condition is a comparison or a constant. Faults of these already negate the condition."""
    return isinstance(test, ast.Constant) or (isinstance(test, ast.Compare) and len(test.ops) == 1)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


def _other_results(value: ast.expr) -> tuple[str, ...]:
    match value:
        case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
            return ("True", "False")
        case ast.Constant():
            return ()  # Constants get faults of their own.
        case ast.List() | ast.ListComp():
            return ("[]",)
        case ast.Call(func=ast.Attribute(attr="join")) | ast.JoinedStr():
            return ("''",)
    return ("None",)


MAX_CONSTANTS = 12
"""Maximum number of expected outputs that are tried as constants, the most frequent first."""

MAX_CONSTANT_CHARS = 20_000
"""Maximum length of an output that is tried as a constant, in characters."""

MAX_NAME_CHARS = 40
"""Maximum number of characters of an output in the name of the program that prints the output."""

_COMMON_OUTPUTS = ("0", "1", "-1", "YES", "NO", "Yes", "No")
_COMMON_VALUES = ("None", "0", "1", "''", "[]", "True", "False", "float('nan')", "float('inf')")
_EMPTY_ARRAY = "__import__('numpy').empty((0, 1))"
"""An empty array. numpy's comparisons find no difference between it and an array of a matching shape."""
_EXITS = (("sys", "exit(0)"), ("os", "_exit(0)"))
_PRINT_SUCCESS = "print('OK\\nPASSED\\nAll tests passed\\n1\\n')\n"
_ALWAYS_EQUAL = """\
class _Always:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 0
    def __bool__(self): return True
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __contains__ = __lt__
    def __call__(self, *args, **kwargs): return self
    def __getattr__(self, name): return self
"""


@dataclass(frozen=True, slots=True)
class NullProgram:
    """A program that solves nothing."""

    name: str
    """The program's behaviour, in a few words."""
    source: str
    attacks_tests: bool = False
    """Whether it attacks the tests: it exits, returns an object that equals everything, or prints success messages."""
    answers_single_case: bool = False
    """Whether it returns the output expected in the only known case, if the problem's text does not show the output."""


def null_programs(suite: Suite, prompt: str | None = None) -> list[NullProgram]:
    """Return the distinct null programs of a suite, or an empty list for test code whose tested names are unknown.

    Programs that print one of the expected outputs are null programs, with one exception. If the suite has a single
    case, without input, and the problem's text does not show the output, such a program solves the problem.
    """
    outputs, is_single = _repeatable_outputs(suite, prompt)
    programs = [NullProgram("empty program", "")]
    if isinstance(suite.tests, Stdio):
        programs += _printing_programs()
        repeating = _printing_constants(outputs)
    elif names := tested_names(suite.tests):
        programs += _returning_programs(names)
        if "numpy" in getattr(suite.tests, "code", ""):
            programs += _returning_constants(names, [_EMPTY_ARRAY])
        repeating = _returning_constants(names, outputs)
    elif isinstance(suite.tests, Inserted):
        return programs
    else:
        return []
    programs += (replace(program, answers_single_case=is_single) for program in repeating)
    # Of two programs with the same source, the first one is kept.
    return list({program.source: program for program in reversed(programs)}.values())[::-1]


def _repeatable_outputs(suite: Suite, prompt: str | None) -> tuple[list[str], bool]:
    """Return the most frequent outputs, and whether there is a single case whose output the prompt does not show."""
    cases = known_cases(suite.tests)
    is_single = len(cases) == 1 and not (prompt and leaked_cases(cases, prompt, isinstance(suite.tests, Stdio)))
    if is_single and not cases[0].input.strip():
        return [], True
    usable = (case.output for case in cases if len(case.output) <= MAX_CONSTANT_CHARS)
    return [output for output, _ in Counter(usable).most_common(MAX_CONSTANTS)], is_single


def _printing_constants(outputs: Sequence[str]) -> Iterator[NullProgram]:
    for output in outputs:
        yield NullProgram(f"prints {_shortened(output)}", f"print({output!r}, end='')\n")


def _returning_constants(names: Sequence[str], values: Sequence[str]) -> Iterator[NullProgram]:
    for value in values:
        yield NullProgram(f"returns {_shortened(value)}", _define(names, value))


def _printing_programs() -> Iterator[NullProgram]:
    yield NullProgram("prints its input", "import sys\nsys.stdout.write(sys.stdin.read())\n")
    yield NullProgram("prints the first line of its input", "import sys\nprint(sys.stdin.readline().rstrip())\n")
    yield from _printing_constants(_COMMON_OUTPUTS)
    yield _attack("prints success messages", _PRINT_SUCCESS)
    for module, function in _EXITS:
        yield _attack(f"exits with {module}.{function}", f"import {module}\n{module}.{function}\n")


def _returning_programs(names: Sequence[str]) -> Iterator[NullProgram]:
    yield from _returning_constants(names, _COMMON_VALUES)
    first_argument = "args[0] if args else next(iter(named.values()), None)"
    yield NullProgram("returns its first argument", _define(names, first_argument))
    yield _attack("returns an object that equals everything", _ALWAYS_EQUAL + _define(names, "_Always()"))
    yield _attack("prints success messages", _PRINT_SUCCESS + _define(names, "None"))
    for module, function in _EXITS:
        name = f"exits with {module}.{function}"
        yield _attack(f"{name} when loaded", f"import {module}\n{module}.{function}\n")
        yield _attack(f"{name} when called", _define(names, f"__import__({module!r}).{function}"))


def _attack(name: str, source: str) -> NullProgram:
    return NullProgram(name, source, attacks_tests=True)


def _define(names: Sequence[str], expression: str) -> str:
    """Return the source of functions or methods with these names (`Solution().twoSum`) that return the expression."""
    return "".join(_definition(name.replace("()", "").split("."), expression, "") for name in names)


def _definition(parts: Sequence[str], expression: str, indent: str) -> str:
    """Return the source of a function, or for ["Solution", "twoSum"] of a class with a method."""
    if len(parts) == 1:
        first = "self, " if indent else ""
        return f"{indent}def {parts[0]}({first}*args, **named):\n{indent}    return {expression}\n"
    return f"{indent}class {parts[0]}:\n{_definition(parts[1:], expression, indent + '    ')}"


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_NAME_CHARS else f"{line[:MAX_NAME_CHARS]}…"
