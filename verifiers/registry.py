"""From a name in a config to a verifier: one resolver, three spellings.

    math                            built in
    my_plugin                       an installed package's entry point in the group `truegold.verifiers`
    my_pkg.checks:unit_price        an import string
    path/to/checks.py:unit_price    the same, for a file

The object named is a verifier, a verifier class (made without arguments) or a plain function, with `@verifier` or
without. What comes back is picklable whatever it was: it travels by its spelling and is looked up again on arrival.
A mistake is a `ConfigError` of one line.
"""

from __future__ import annotations

import difflib
import hashlib
import importlib
import importlib.util
import inspect
import sys
import threading
import traceback
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from truegold.verifiers.answers.choice import ChoiceVerifier
from truegold.verifiers.answers.exact import ExactVerifier
from truegold.verifiers.answers.format import FormatVerifier
from truegold.verifiers.answers.length import LengthVerifier
from truegold.verifiers.answers.numeric import NumericVerifier
from truegold.verifiers.answers.regex import RegexVerifier
from truegold.verifiers.code import CodeVerifier
from truegold.verifiers.decorator import FunctionVerifier, guarded
from truegold.verifiers.errors import ConfigError
from truegold.verifiers.gold import gold_response, judges_solutions
from truegold.verifiers.math import MathVerifier
from truegold.verifiers.verdict import Verdict, Verifier

ENTRY_POINT_GROUP = "truegold.verifiers"
BUILT_IN: dict[str, type[Verifier]] = {
    "choice": ChoiceVerifier,
    "code": CodeVerifier,
    "exact": ExactVerifier,
    "format": FormatVerifier,
    "length": LengthVerifier,
    "math": MathVerifier,
    "numeric": NumericVerifier,
    "regex": RegexVerifier,
}

_DIGEST_CHARS = 12
_NAMES_SHOWN = 10
_NO_INFO: Mapping[str, Any] = {}
_FILE_LOCK = threading.Lock()


class ImportedVerifier:
    """A verifier that was found by its spelling, and is pickled by it."""

    def __init__(self, spelling: str, inner: Verifier) -> None:
        self.spelling = spelling
        self.inner = inner

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def version(self) -> str:
        return self.inner.version

    def __call__(
        self,
        response: str,
        gold: str | None,
        *,
        problem: str | None = None,
        info: Mapping[str, Any] = _NO_INFO,
    ) -> Verdict:
        def judge() -> Verdict:
            verdict: object = self.inner(response, gold, problem=problem, info=info)
            if not isinstance(verdict, Verdict):
                raise TypeError(f"returned {type(verdict).__name__}, a verifier object returns a Verdict")
            return verdict

        return guarded(judge)

    @property
    def judges_solutions(self) -> bool:
        return judges_solutions(self.inner)

    def gold_response(self, gold: str | None, solution: str | None) -> str | None:
        return gold_response(self.inner, gold, solution)

    def __repr__(self) -> str:
        return f"<verifier {self.spelling}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return resolve, (self.spelling,)


def resolve(name: str) -> Verifier:
    """The verifier that `name` spells; ConfigError where there is none."""
    if name in BUILT_IN:
        return BUILT_IN[name]()
    if name in (points := _entry_points()):
        module = _import_module(points[name].module, name)
        return ImportedVerifier(name, _as_verifier(_member(module, points[name].attr, name), points[name].attr, name))
    place, colon, attribute = name.rpartition(":")
    if not colon or not place or not attribute:
        raise _unknown(name)
    module = _module_of(place, name)
    # A relative path means nothing to a child process that was started elsewhere.
    spelling = f"{Path(place).resolve()}:{attribute}" if _is_file(place) else name
    return ImportedVerifier(spelling, _as_verifier(_member(module, attribute, name), attribute, name))


def fingerprint(name: str) -> str:
    """`name@version`, and for imported code `+` a digest of its source file: what a cache must notice."""
    found = resolve(name)
    label = f"{found.name}@{found.version}"
    source = _source_file(name)
    return label if source is None else f"{label}+{_digest(source.read_bytes())}"


def available() -> dict[str, str]:
    """Every name that needs no import string, and where it comes from."""
    names = dict.fromkeys(BUILT_IN, "built in")
    for name, point in _entry_points().items():
        package = f" of {point.dist.name}" if point.dist else ""
        names.setdefault(name, f"entry point{package} ({point.value})")
    return dict(sorted(names.items()))


def _entry_points() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}


def _is_file(place: str) -> bool:
    return place.endswith(".py")


def _source_file(name: str) -> Path | None:
    if name in BUILT_IN:
        return None
    points = _entry_points()
    place = points[name].module if name in points else name.rpartition(":")[0]
    source = _module_of(place, name).__file__
    return Path(source) if source else None


def _module_of(place: str, name: str) -> ModuleType:
    return _load_file(Path(place), name) if _is_file(place) else _import_module(place, name)


def _import_module(module: str, name: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and (module == error.name or module.startswith(f"{error.name}.")):
            raise ConfigError(
                f"verifier {name!r}: there is no module {error.name!r} to import.",
                "Install its package, or name a file: path/to/file.py:object.",
            ) from error
        raise _broken(name, error) from error
    except Exception as error:
        raise _broken(name, error) from error


def _load_file(path: Path, name: str) -> ModuleType:
    """Run a file as a module, once for each content: an edited file is loaded anew."""
    if not path.is_file():
        nearby = sorted(p.name for p in path.parent.glob("*.py")) if path.parent.is_dir() else []
        raise ConfigError(f"verifier {name!r}: there is no file {path.resolve()}.", _did_you_mean(path.name, nearby))
    source, full_path = path.read_bytes(), path.resolve()
    module_name = f"truegold_file_{path.stem}_{_digest(str(full_path).encode() + source)}"
    with _FILE_LOCK:
        if module_name in sys.modules:
            return sys.modules[module_name]
        spec = importlib.util.spec_from_file_location(module_name, full_path)
        assert spec is not None and spec.loader is not None  # a path that ends in .py always has a loader
        module = importlib.util.module_from_spec(spec)
        sys.modules[module_name] = module  # before it runs: dataclasses look their own module up
        try:
            # Compiled from the bytes that were digested: a bytecode cache may be as old as its time stamp allows.
            exec(compile(source, str(full_path), "exec"), module.__dict__)
        except Exception as error:
            del sys.modules[module_name]
            raise _broken(name, error) from error
    return module


def _member(module: ModuleType, attribute: str, name: str) -> object:
    found: object = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            place = module.__file__ or module.__name__
            public = sorted(n for n, o in vars(module).items() if callable(o) and not n.startswith("_"))
            hint = _did_you_mean(attribute, public) or f"It has {', '.join(public[:_NAMES_SHOWN]) or 'no functions'}."
            raise ConfigError(f"verifier {name!r}: {place} has no {attribute!r}.", hint)
        found = getattr(found, part)
    return found


def _as_verifier(found: object, attribute: str, name: str) -> Verifier:
    try:
        if inspect.isclass(found):
            found = found()
        elif callable(found) and not isinstance(found, Verifier):
            return FunctionVerifier(found, attribute, version="1")
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(
            f"verifier {name!r}: {attribute}() could not be made without arguments: {type(error).__name__}: {error}."
        ) from error
    if not isinstance(found, Verifier):
        raise ConfigError(
            f"verifier {name!r} is a {type(found).__name__}, not a verifier.",
            "It needs name, version and __call__(response, gold, *, problem, info), or be a function with @verifier.",
        )
    return found


def _broken(name: str, error: Exception) -> ConfigError:
    at = ""
    if not isinstance(error, SyntaxError):  # which says its line itself
        frame = traceback.extract_tb(error.__traceback__)[-1]
        at = f" ({frame.filename}, line {frame.lineno})"
    return ConfigError(f"verifier {name!r} could not be loaded: {type(error).__name__}: {error}{at}.")


def _unknown(name: str) -> ConfigError:
    return ConfigError(
        f"there is no verifier {name!r}; known are {', '.join(available())}.",
        _did_you_mean(name, list(available())) or "One of your own: my_pkg.module:object or path/to/file.py:object.",
    )


def _did_you_mean(word: str, known: list[str]) -> str | None:
    close = difflib.get_close_matches(word, known, n=1)
    return f"Did you mean {close[0]!r}?" if close else None


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:_DIGEST_CHARS]
