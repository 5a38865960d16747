"""Checks the arguments of public functions and classes against their annotations.

    deduplicate(rows, prompt=1)       deduplicate: prompt must be a text or None; this is int 1.
    verify_batch(rows, workers="4")   verify_batch: workers must be a whole number; this is str '4'. Type workers=4.
    compose([{"name": "a"}], ...)     compose: terms[0] must be a Term; this is dict {'name': 'a'}. Type Term(...).
    TruegoldReward(unjudgd=0)         TruegoldReward has no argument 'unjudgd'. Did you mean 'unjudged'? There are: ...

Rows of data are annotated as `Any` and are not checked here. A bad row gets a verdict instead of an error.
"""

from __future__ import annotations

import numbers
import os
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from inspect import Parameter, signature
from itertools import chain
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from truegold.verifiers.sandbox.errors import ConfigError
from truegold.verifiers.user_code import did_you_mean

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)

MAX_CHECKED = 1000
"""Maximum number of entries of a list that are checked."""
_SIMPLE: dict[Any, tuple[tuple[type, ...], str]] = {
    str: ((str,), "a text"),
    bool: ((bool,), "True or False"),
    int: ((numbers.Integral,), "a whole number"),
    float: ((numbers.Real,), "a number"),
    Path: ((os.PathLike, str), "a path"),
    type(None): ((type(None),), "None"),
}
"""Maps a type in an annotation to the types of allowed values, and to its name in errors."""


_ENTRIES = {"Any": "", "str": " of texts", "int": " of whole numbers", "float": " of numbers"}


def _named(kind: type) -> str:
    """Return a class with its article: `a Term`, `an Item`."""
    return f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}"


class _Kind:
    """The values that an annotation allows."""

    def __init__(self, hint: Any) -> None:
        self.words = ""
        self.exact: frozenset[type] = frozenset()
        """Types whose values are right. They are compared first, which is fast."""
        self._types: tuple[type, ...] = ()
        self._entry: _Kind | None = None
        """The values of a list."""
        self._is_list = self.allows_all = False
        self._read(hint)

    def _read(self, hint: Any) -> None:
        origin = get_origin(hint)
        if origin in (Union, types.UnionType):
            for part in sorted(get_args(hint), key=lambda part: part is type(None)):
                self._read(part)
            return
        allowed, words = _SIMPLE.get(hint, ((), ""))
        kind: Any = origin or hint
        if allowed:
            self._types += allowed
            self.exact |= {int, float} if hint is float else {hint}
        elif kind in (Sequence, Iterable, list, tuple):
            entry = next(iter(get_args(hint)), Any)
            self._is_list, self._entry = True, _Kind(entry)
            name = getattr(entry, "__name__", "Any")
            words = f"a list{_ENTRIES.get(name, f' of {name}')}"
        elif kind is Mapping or kind is dict:
            self._types, words = (*self._types, Mapping), "a dict"
        elif isinstance(kind, type) and hint not in (Any, object):
            self._types += (kind,)
            self.exact |= {kind}
            words = "a function" if kind is Callable else _named(kind)
        else:
            self.allows_all = True
        self.words += f" or {words}" if self.words and words else words

    def mistake(self, name: str, value: Any) -> tuple[str, str | None] | None:
        """Return the fault of an argument's value and the remedy, or None for a right value."""
        # A bool is not taken for a number, although bool is a subclass of int.
        is_wrong_bool = isinstance(value, bool) and bool not in self.exact
        if self.allows_all or (isinstance(value, self._types) and not is_wrong_bool):
            return None
        if self._is_list and _is_list_like(value):
            entry = self._entry
            if entry is not None and not entry.allows_all and isinstance(value, Sequence):
                for index, each in enumerate(value[:MAX_CHECKED]):
                    wrong = None if type(each) in entry.exact else entry.mistake(f"{name}[{index}]", each)
                    if wrong is not None:
                        return wrong
            return None
        return f"{name} must be {self.words}; this is {type(value).__name__} {value!r:.60}.", self._remedy(name, value)

    def _remedy(self, name: str, value: Any) -> str | None:
        our_class = next((kind.__name__ for kind in self._types if kind.__module__.startswith("truegold.")), None)
        is_number = isinstance(value, str) and value.strip().replace(".", "", 1).isdigit()
        only_text = self._types == (str,)
        remedies = (
            (
                self._is_list and value is not None and not isinstance(value, Mapping),
                f"Put it into a list: {name}=[...].",
            ),
            (is_number and int in self.exact, f"Type {name}={value}."),
            (our_class == "Verifier" and callable(value), "Make the function a verifier: @verifier."),
            (our_class == "Verifier" and isinstance(value, str), "Type resolve(NAME)."),
            (
                our_class is None and name == "verifier" and callable(value),
                "Pass its import string: my_pkg.module:object.",
            ),
            (our_class is not None and isinstance(value, tuple | Mapping), f"Type {our_class}(...)."),
            (only_text and value is None, "Pass an empty text for a missing one."),
            (only_text and isinstance(value, int | float), f"Type {name}='{value}'."),
            (
                only_text and name in ("response", "answer"),
                f"Pass the text only; for messages, the text of the last one: {name}=messages[-1]['content'].",
            ),
        )
        return next((remedy for applies, remedy in remedies if applies), None)


def _is_list_like(value: Any) -> bool:
    """Return True for a list, a tuple, an iterator or a column of a table, and False for a text or a dict."""
    return hasattr(value, "__iter__") and not isinstance(value, str | bytes | Mapping)


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function with its arguments checked. A mistake raises ConfigError."""
    return _with_checks(function, function.__qualname__.removesuffix(".__call__"))


def checked_class(kind: C) -> C:
    """Check the arguments with which a class is called. A mistake raises ConfigError."""
    kind.__init__ = _with_checks(kind.__init__, kind.__name__)  # type: ignore[misc]
    return kind


def refuse(function: Callable[..., Any], **arguments: Any) -> None:
    """Raise ConfigError for the first of some arguments that does not fit the function's annotation.

    Functions that run for every response test their arguments themselves, and call this only for an error.
    """
    for name, kind in _kinds_of(function).items():
        if name in arguments and (mistake := kind.mistake(name, arguments[name])) is not None:
            raise ConfigError(f"{function.__qualname__}: {mistake[0]}", mistake[1])


def _kinds_of(function: Callable[..., Any]) -> dict[str, _Kind]:
    """Return what each named argument of a function may be."""
    variadic = (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)
    hints = get_type_hints(function)
    named = (each for each in signature(function).parameters.values() if each.kind not in variadic)
    return {each.name: _Kind(hints.get(each.name, Any)) for each in named}


def _with_checks(function: Callable[P, R], label: str) -> Callable[P, R]:
    parameters = list(signature(function).parameters.values())
    by_position = [each.name for each in parameters if each.kind is not Parameter.KEYWORD_ONLY]
    kinds: dict[str, _Kind] = {}

    @wraps(function)
    def call(*args: P.args, **keywords: P.kwargs) -> R:
        if not kinds:
            # Annotations are read at the first call, when all modules are imported.
            kinds.update(_kinds_of(function))
        for name, value in chain(zip(by_position, args, strict=False), keywords.items()):
            kind = kinds.get(name)
            if kind is None or type(value) in kind.exact:
                continue
            if (mistake := kind.mistake(name, value)) is not None:
                raise ConfigError(f"{label}: {mistake[0]}", mistake[1])
        try:
            return function(*args, **keywords)
        except TypeError as error:
            # An error from inside of the function is raised unchanged.
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise
            raise _misfit(parameters, label, args, keywords, error) from None

    return call


def _misfit(
    parameters: Sequence[Parameter], label: str, args: Sequence[Any], keywords: Mapping[str, Any], error: TypeError
) -> ConfigError:
    """Return the error for arguments that do not fit the parameters of a function."""
    variadic = (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)
    known = {each.name: each for each in parameters if each.name != "self" and each.kind not in variadic}
    takes_all = any(each.kind is Parameter.VAR_KEYWORD for each in parameters)
    listed = f"There are: {', '.join(known)}."
    for name in keywords:
        if name not in known and not takes_all:
            near = did_you_mean(name, known)
            return ConfigError(f"{label} has no argument {name!r}.", f"{near} {listed}" if near else listed)
    placeable = [each for each in known.values() if each.kind is not Parameter.KEYWORD_ONLY]
    placed = args[1:] if parameters[0].name == "self" else args
    if len(placed) > len(placeable):
        rest = [
            each.name for each in known.values() if each.kind is Parameter.KEYWORD_ONLY and each.name not in keywords
        ]
        hint = f"Name the next: {rest[0]}={placed[len(placeable)]!r:.40}." if rest else listed
        most = f"{len(placeable)} argument{'s' if len(placeable) > 1 else ''}"
        return ConfigError(f"{label} takes at most {most} by position.", hint)
    for position, each in enumerate(known.values()):
        if position < len(placed) and each.name in keywords:
            return ConfigError(f"{label} got {each.name!r} twice: by position, and by name.", "Leave one of them out.")
        if each.default is Parameter.empty and each.name not in keywords and position >= len(placed):
            return ConfigError(f"{label} needs the argument {each.name!r}.", listed)
    return ConfigError(f"{label}: {error}.", listed)
