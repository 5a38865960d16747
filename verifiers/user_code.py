"""Loads objects from users' code by import string: verifiers, detectors and other plug-ins.

    load_object("my_pkg.checks", "unit_price", "verifier 'my_pkg.checks:unit_price'")
    load_object("path/to/checks.py", "unit_price", "verifier 'path/to/checks.py:unit_price'")

A mistake raises a ConfigError of one line that begins with the label (the last argument) and names what is available.
"""

from __future__ import annotations

import difflib
import hashlib
import importlib
import importlib.util
import sys
import threading
import traceback
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from truegold.verifiers.sandbox.errors import ConfigError

_DIGEST_CHARS = 12
_NAMES_SHOWN = 10
_FILE_LOCK = threading.Lock()


def split_spelling(spelling: str) -> tuple[str, str] | None:
    """Return the module (or file) and the object of an import string, or None if `spelling` is not one."""
    source, colon, attribute = spelling.rpartition(":")
    return (source, attribute) if colon and source and attribute else None


def load_object(source: str, attribute: str, label: str) -> object:
    """Return the object `attribute` of the module or file `source`; a dotted attribute reaches into objects.

    Raises ConfigError if the module, file or object does not exist, or if loading fails.
    """
    module = _load_module(source, label)
    loaded: object = module
    for part in attribute.split("."):
        if not hasattr(loaded, part):
            public = sorted(name for name, value in vars(module).items() if _is_public(name, value))
            hint = did_you_mean(attribute, public) or f"It has {', '.join(public[:_NAMES_SHOWN]) or 'no functions'}."
            raise ConfigError(f"{label}: {module.__file__ or module.__name__} has no {attribute!r}.", hint)
        loaded = getattr(loaded, part)
    return loaded


def _load_module(source: str, label: str) -> ModuleType:
    """Import a module by its name or by its file's path; raises ConfigError if that fails."""
    return _load_file(Path(source), label) if is_file(source) else _import_module(source, label)


def is_file(source: str) -> bool:
    """Return whether the first part of an import string is the path of a file."""
    return source.endswith(".py")


def source_digest(source: str, label: str) -> str:
    """Return a digest (12 hex digits) of a module's source file, or an empty text if the module has no file.

    Raises ConfigError if the module cannot be loaded.
    """
    file = _load_module(source, label).__file__
    return _digest(Path(file).read_bytes()) if file else ""


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """Return the hint "Did you mean ...?" with the most similar known word, or None if no word is similar."""
    close = close_match(word, known)
    return f"Did you mean {close!r}?" if close is not None else None


def close_match(word: str, known: Iterable[str]) -> str | None:
    """Return the most similar known word, or None if no word is similar. Upper and lower case are the same here."""
    words = {name.lower(): name for name in known}
    return next((words[name] for name in difflib.get_close_matches(word.lower(), list(words), n=1)), None)


def near_path(path: Path) -> str | None:
    """Return the hint "Did you mean ...?" with the most similar name in the folder of a missing path, or None.

    Upper and lower case are the same here, and so is a name without its suffix. A common suffix alone does not make two
    names similar.
    """
    typed = path.name.lower()
    beside = sorted(other.name for other in path.parent.iterdir()) if path.parent.is_dir() else []
    names = {name.lower(): name for name in beside if name != path.name}
    whole = next((name for name in names if _stem(name) == typed), None)
    alike = [name for name in names if close_match(_stem(typed), [_stem(name)]) is not None]
    near = whole or close_match(typed, alike)
    return f"Did you mean {str(path.parent / names[near])!r}?" if near is not None else None


def _stem(name: str) -> str:
    return name.partition(".")[0]


def _is_public(name: str, value: object) -> bool:
    return not name.startswith("_") and not isinstance(value, ModuleType | type(annotations))


def _import_module(module: str, label: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and (module == error.name or module.startswith(f"{error.name}.")):
            raise ConfigError(
                f"{label}: there is no module {error.name!r} to import.",
                "Install its package, or name a file: path/to/file.py:object.",
            ) from error
        raise _broken(label, error) from error
    except (Exception, SystemExit) as error:
        # Without SystemExit here, a script that calls sys.exit() would end the command.
        raise _broken(label, error) from error


def _load_file(path: Path, label: str) -> ModuleType:
    """Load a file as a module. An edited file is loaded again; an unchanged one is taken from `sys.modules`."""
    if not path.is_file():
        nearby = sorted(p.name for p in path.parent.glob("*.py")) if path.parent.is_dir() else []
        raise ConfigError(f"{label}: there is no file {path.resolve()}.", did_you_mean(path.name, nearby))
    code, full_path = path.read_bytes(), path.resolve()
    module_name = f"truegold_file_{path.stem}_{_digest(str(full_path).encode() + code)}"
    with _FILE_LOCK:
        if module_name in sys.modules:
            return sys.modules[module_name]
        spec = importlib.util.spec_from_file_location(module_name, full_path)
        assert spec is not None and spec.loader is not None  # True for every path that ends in .py.
        module = importlib.util.module_from_spec(spec)
        # The module is registered before it runs, because dataclasses look it up.
        sys.modules[module_name] = module
        try:
            # Compiling the digested bytes avoids a bytecode cache, which may be stale.
            exec(compile(code, str(full_path), "exec"), module.__dict__)
        except (Exception, SystemExit) as error:
            del sys.modules[module_name]
            raise _broken(label, error) from error
    return module


def _broken(label: str, error: BaseException) -> ConfigError:
    location = ""
    if not isinstance(error, SyntaxError):  # The text of a syntax error already names the line.
        frame = traceback.extract_tb(error.__traceback__)[-1]
        location = f" ({frame.filename}, line {frame.lineno})"
    return ConfigError(f"{label} could not be loaded: {type(error).__name__}: {error}{location}.")


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_DIGEST_CHARS]
