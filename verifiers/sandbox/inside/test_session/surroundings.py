"""Keeps the surroundings of test code and solution alike: replaced names, streams, folder, environment, seeds.

    with patch("requests.get") as get: f()     the solution's `requests.get` is a stand-in, whose calls are sent here
    with redirect_stdout(text): f()            text that the solution prints is written here
    os.environ["LANG"] = "C"                   is set in the solution's process too

The solution's process gets changes before its next call. A solution could cheat by changing a stand-in. So three kinds
of its names are protected: methods of its class, names that begin with an underscore, and names by which tests read a
mock of `unittest.mock`, such as `assert_called`. Attributes of a mock can be set only to plain values.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import inspect
import io
import operator
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from types import ModuleType

from ..wire.value_types import Json, Value

TEST_MODULE = "suite"
"""The name of the module that holds the test code and its classes."""

_METHODS: Mapping[str, Callable[..., Value]] = {
    **{f"__{name}__": getattr(operator, name) for name in "eq ne lt le gt ge add sub mul truediv neg contains".split()},
    **{f"__{name}__": getattr(operator, name) for name in "getitem setitem delitem".split()},
    **{f"__{kind.__name__}__": kind for kind in (hash, bool, len, str, repr, int, float, iter, next)},
    "__enter__": lambda value: type(value).__enter__(value),
    "__exit__": lambda value, *error: type(value).__exit__(value, *error),
}
"""Special methods by which the solution may use an object of the tests."""

_USED_BY_MESSAGE = frozenset({"argparse", "queue", "_queue", "re", "sqlite3"})
"""Modules whose objects stay in the tests' process, because they hold locks, files or functions."""

_FIGURE_NAMES = frozenset({"gcf", "gca", "figure", "_pylab_helpers"})
"""Names by which the code of a function of matplotlib.pyplot uses figures."""

_getcwd, _chdir = os.getcwd, os.chdir
"""The functions of `os` before tests replace them."""

_MISSING = object()
"""Stands for an attribute that does not exist."""


class StandIn:
    """An object of the tests that the solution may use: `stand_in("get", "name")`, `stand_in("call", 1)`."""

    def __init__(self, value: Value) -> None:
        self.value = value

    def __call__(self, use: str, *args: Value, **kwargs: Value) -> Value:
        if use == "call":
            return self.value(*args, **kwargs)
        if use in _METHODS:
            return _METHODS[use](self.value, *args)
        name = str(args[0])
        if name[:1] == "_" or (is_mock(self.value) and name in mock_names()):
            raise AttributeError(name)
        if use == "get":
            return getattr(self.value, name)
        present = self.value if is_mock(self.value) else getattr(self.value, "__dict__", {}).get(name)
        new = args[1]
        is_own = hasattr(type(new), "_truegold_handle") or (callable(new) and not may_stand_in(new))
        if callable(getattr(type(self.value), name, None)) or (may_stand_in(present) and is_own):
            raise TypeError(f"{name} belongs to the tests")
        return setattr(self.value, name, args[1])


@functools.cache
def _names_of_mocks(mock: Value) -> frozenset[str]:
    return frozenset({"mock_calls", "method_calls", *(name for name in dir(mock.AsyncMock) if name[:1] != "_")})


def mock_names() -> frozenset[str]:
    """Return the names by which tests read a mock. The set is empty if they use no mocks."""
    mock = sys.modules.get("unittest.mock")
    return frozenset() if mock is None else _names_of_mocks(mock)


def is_mock(value: Value) -> bool:
    """Return whether a value is a mock."""
    mock = sys.modules.get("unittest.mock")
    return mock is not None and isinstance(value, mock.NonCallableMock)


def may_stand_in(value: Value) -> bool:
    """Tell whether the solution gets a stand-in for an object: a mock, a file, or an object of a class of the tests."""
    kind = type(value)
    if kind.__module__ == TEST_MODULE:
        unittest = sys.modules.get("unittest")
        return not isinstance(value, type) and not (unittest and isinstance(value, unittest.TestCase))
    return issubclass(kind, io.IOBase) or kind.__module__ in _USED_BY_MESSAGE or is_mock(value)


class Surroundings:
    """Collects changes by the tests until they are sent to the solution.

    tree: the test code. encode: returns the JSON of a value for the solution.
    """

    def __init__(self, tree: ast.Module, encode: Callable[[Value], Json]) -> None:
        self._encode = encode
        self._streams = sys.stdout, sys.stderr
        self._replaceable: dict[tuple[str, str, str], list[Value]] = {}
        self._seeds: list[Json] = []
        self._sent: dict[str, Json] = self._state()
        self._stdin = sys.stdin
        nodes = list(ast.walk(tree))
        targets = [target for node in nodes if isinstance(node, ast.Assign) for target in node.targets]
        targets += [node.target for node in nodes if isinstance(node, ast.AugAssign)]
        for owner, attribute in import_parts(tree, targets):
            if owner is not sys:
                self.watch(owner, attribute)
        text = ast.dump(tree)
        if "mock" in text or "'patch'" in text:
            self._watch_patches()
        if "'monkeypatch'" in text or "'MonkeyPatch'" in text:
            self._watch_monkeypatch()
        if _only_seeds(tree):
            for module in ("random", "numpy.random"):
                self._watch_seeds(module)

    @property
    def captures(self) -> bool:
        """Whether the tests capture printed text."""
        return (sys.stdout, sys.stderr) != self._streams

    def watch(self, owner: Value, attribute: str) -> None:
        """Watch an attribute of a module or a class, which tests may replace."""
        path = _path_of(owner)
        if path is not None:
            present = vars(owner).get(attribute, _MISSING)
            self._replaceable.setdefault((*path, attribute), [owner, present, present])

    def changes(self) -> dict[str, Json]:
        """Return the changes since the last call."""
        state = self._state()
        changed = {name: value for name, value in state.items() if self._sent.get(name) != value}
        self._sent = state
        if sys.stdin is not self._stdin:
            self._stdin = sys.stdin
            changed["stdin"] = sys.stdin.read() if isinstance(sys.stdin, io.StringIO) else ""
        if self._seeds:
            changed["seeds"], self._seeds = self._seeds, []
        replaced = []
        for (module, name, attribute), known in self._replaceable.items():
            owner, original, sent = known
            present = vars(owner).get(attribute, _MISSING)
            if present is not sent:
                known[2] = present
                value: Json = None
                if present is not original:
                    value = [] if present is _MISSING else [self._encode(present)]
                replaced.append([module, name, attribute, value])
        return {**changed, "replaced": replaced} if replaced else changed

    def _state(self) -> dict[str, Json]:
        return {
            "folder": _getcwd(),
            "environment": dict(os.environ) if isinstance(os.environ, os._Environ) else None,
            "arguments": list(map(str, sys.argv)),
            "captures": self.captures,
        }

    def _watch_patches(self) -> None:
        mock: Value = import_module("unittest.mock")
        enter, leave = mock._patch.__enter__, mock._patch.__exit__
        names = vars(sys.modules[TEST_MODULE])

        def watched(patcher: Value, *error: Value) -> Value:
            owner = patcher.getter()
            if not error:
                self.watch(owner, patcher.attribute)
            done = leave(patcher, *error) if error else enter(patcher)
            if owner is builtins and patcher.attribute in vars(builtins):
                names["__builtins__"][patcher.attribute] = vars(builtins)[patcher.attribute]
            return done

        mock._patch.__enter__ = mock._patch.__exit__ = watched

    def _watch_monkeypatch(self) -> None:
        module: Value = import_module("_pytest.monkeypatch")
        for name in ("setattr", "delattr"):
            change = getattr(module.MonkeyPatch, name)

            def watched(patcher: Value, target: Value, *args: Value, _change: Value = change, **kwargs: Value) -> None:
                path = module.derive_importpath(target, False) if isinstance(target, str) else (*args[:1], target)
                if len(path) == 2:
                    self.watch(path[1], path[0])
                _change(patcher, target, *args, **kwargs)

            setattr(module.MonkeyPatch, name, watched)

    def _watch_seeds(self, module: str) -> None:
        generator = sys.modules.get(module)
        if generator is None:
            return
        seed = generator.seed

        def watched(*args: Value, **kwargs: Value) -> Value:
            self._seeds.append([module, self._encode((*args, *kwargs.values()))])
            return seed(*args, **kwargs)

        generator.seed = watched  # type: ignore[attr-defined]


def _path_of(owner: Value) -> tuple[str, str] | None:
    """Return the names of a module and of a class in it. "" stands for no class, and for the solution's module."""
    if isinstance(owner, ModuleType):
        is_solution = "_truegold" in vars(owner) or owner is sys.modules.get(TEST_MODULE)
        return "" if is_solution else owner.__name__, ""
    if not isinstance(owner, type):
        return None
    module = "" if owner.__module__ == "solution" else owner.__module__
    return module, type.__getattribute__(owner, "__qualname__")


def _imported_modules(tree: ast.Module) -> Mapping[str, str]:
    modules: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                modules[alias.asname or first] = alias.name if alias.asname else first
        elif isinstance(node, ast.ImportFrom) and not node.level:
            modules |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return modules


def _only_seeds(tree: ast.Module) -> bool:
    """Return whether the code seeds random numbers and leaves all draws to the solution."""
    names = [ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    drawn = [name for name in names if "random" in name]
    return bool(drawn) and all(name.endswith(".seed") for name in drawn)


def import_parts(tree: ast.Module, attributes: Iterable[ast.AST]) -> Iterator[tuple[Value, str]]:
    """Yield the owner and the name of each attribute that test code reaches through its imports.

    Submodules on the way are imported: for `import http` and `http.server.HTTPServer`, the module `http.server`.
    """
    modules = _imported_modules(tree)
    for node in attributes:
        first, *names = _dotted_names(node)
        with contextlib.suppress(Exception):  # A module that fails to import is left to the test code.
            owner: Value = import_module(modules[first])
            for name in names[:-1]:
                import_part(owner, name)
                owner = getattr(owner, name)
            import_part(owner, names[-1])
            yield owner, names[-1]


def _dotted_names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Attribute):
        return [*_dotted_names(node.value), node.attr]
    return [node.id] if isinstance(node, ast.Name) else [""]


def import_part(package: Value, name: str) -> None:
    """Import a submodule of a package, unless the package has another object of that name."""
    if not hasattr(package, name) and hasattr(package, "__path__"):
        with contextlib.suppress(ImportError):
            import_module(f"{package.__name__}.{name}")


def use_figures_of_solution(code: str, find: Callable[[str, str], Value]) -> None:
    """Let functions of matplotlib.pyplot that use figures run in the solution's process, which has the figures.

    Only test code that mentions pyplot is affected. find: returns a function of a module in the solution's process.
    """
    if "pyplot" not in code:
        return
    pyplot: Value = import_module("matplotlib.pyplot")

    def use(name: str, *args: Value, **kwargs: Value) -> Value:
        return find("matplotlib.pyplot", name)(*args, **kwargs)

    for name, function in list(vars(pyplot).items()):
        code_of = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
        if code_of is not None and not _FIGURE_NAMES.isdisjoint(code_of.co_names):
            setattr(pyplot, name, functools.partial(use, name))


class Followed:
    """The solution's side of the surroundings: repeats the tests' changes. decode: returns the value of JSON."""

    def __init__(self, namespace: ModuleType, decode: Callable[[Json], Value]) -> None:
        self._namespace = namespace
        self._decode = decode
        self._originals: dict[tuple[str, str, str], Value] = {}
        self._streams = sys.stdout, sys.stderr

    def follow(self, changed: Mapping[str, Json]) -> None:
        """Make the changes in this process."""
        if "folder" in changed:
            _chdir(changed["folder"])
        if changed.get("environment") is not None:
            os.environ.clear()
            os.environ.update(changed["environment"])
        if "arguments" in changed:
            sys.argv[:] = changed["arguments"]
        if "stdin" in changed:
            sys.stdin = io.StringIO(changed["stdin"])
        if "captures" in changed:
            sys.stdout, sys.stderr = (io.StringIO(), io.StringIO()) if changed["captures"] else self._streams
        for module, args in changed.get("seeds", ()):
            import_module(module).seed(*self._decode(args))
        for replacement in changed.get("replaced", ()):
            self._replace(*replacement)

    def printed(self) -> list[str]:
        """Return the text that was printed to stdout and stderr since the last call."""
        texts = []
        for stream in (sys.stdout, sys.stderr):
            text = stream.getvalue() if isinstance(stream, io.StringIO) else ""
            if text:
                stream.seek(0)
                stream.truncate()
            texts.append(text)
        return texts

    def _replace(self, module: str, name: str, attribute: str, value: list[Json] | None) -> None:
        owner: Value = import_module(module) if module else self._namespace
        for part in filter(None, name.split(".")):
            owner = getattr(owner, part)
        key = module, name, attribute
        self._originals.setdefault(key, vars(owner).get(attribute, _MISSING))
        new = self._originals[key] if value is None else _MISSING
        if value:
            new = self._decode(value[0])
        if new is not _MISSING:
            setattr(owner, attribute, new)
        elif attribute in vars(owner):
            delattr(owner, attribute)


class Used:
    """The solution's proxy for an object of the tests. ask: calls its `StandIn`."""

    def __init__(self, ask: Callable[..., Value]) -> None:
        object.__setattr__(self, "_truegold_ask", ask)

    def __getattr__(self, name: str) -> Value:
        if name[:1] == "_":
            raise AttributeError(name)
        return _ask(self, "get", name)

    def __setattr__(self, name: str, value: Value) -> None:
        if name[:1] == "_":
            object.__setattr__(self, name, value)  # For example, a library that wraps a function stores its signature.
        else:
            _ask(self, "set", name, value)

    def __call__(self, *args: Value, **kwargs: Value) -> Value:
        return _ask(self, "call", *args, **kwargs)


def _ask(used: Used, use: str, *args: Value, **kwargs: Value) -> Value:
    return object.__getattribute__(used, "_truegold_ask")(use, *args, **kwargs)


for _name in _METHODS:
    setattr(Used, _name, lambda self, *args, _name=_name: _ask(self, _name, *args))
