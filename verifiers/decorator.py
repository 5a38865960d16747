"""`@verifier`: a plain function becomes a verifier.

    @verifier
    def longest(response: str, gold: str) -> bool: ...

    @verifier(name="unit_price", version="2")
    def unit_price(response: str, gold: str, *, problem: str | None, info: Mapping[str, Any]) -> float: ...

The function takes the response and the gold answer by position, and `problem` and `info` by keyword if it names them.
It returns a bool, a score in [0, 1], a whole `Verdict`, or None where it cannot judge. What it raises becomes a verdict
with score None that says so. Not covered: deadlines and crashes of the interpreter (`verify_batch` has them).
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any, overload

from truegold.verifiers.errors import ConfigError, SetupError
from truegold.verifiers.verdict import Reason, Verdict, reason_for_score

_NO_INFO: Mapping[str, Any] = {}


class FunctionVerifier:
    """A plain function in the shape of a `Verifier`. Pickled by reference, as functions are."""

    def __init__(self, function: Callable[..., Any], name: str, version: str) -> None:
        self.function = function
        self.name = name
        self.version = version
        self._keywords = _optional_keywords(function)
        self.__doc__ = function.__doc__
        self.__name__: str = getattr(function, "__name__", name)
        self.__qualname__: str = getattr(function, "__qualname__", name)
        self.__module__: str = getattr(function, "__module__", __name__)
        self.__wrapped__ = function

    def __call__(
        self,
        response: str,
        gold: str | None,
        *,
        problem: str | None = None,
        info: Mapping[str, Any] = _NO_INFO,
    ) -> Verdict:
        offered = {"problem": problem, "info": info}
        keywords = {key: offered[key] for key in self._keywords}
        return guarded(lambda: as_verdict(self.function(response, gold, **keywords)))

    def __repr__(self) -> str:
        return f"<verifier {self.name}@{self.version}>"

    def __reduce__(self) -> str | tuple[Any, ...]:
        # A decorated function hides behind its own name, so the name leads to this object, not to the function.
        name = str(self.__qualname__)
        if getattr(sys.modules.get(self.__module__), name, None) is self:
            return name
        return FunctionVerifier, (self.function, self.name, self.version)


@overload
def verifier(function: Callable[..., Any], /) -> FunctionVerifier: ...
@overload
def verifier(*, name: str | None = None, version: str = "1") -> Callable[[Callable[..., Any]], FunctionVerifier]: ...
def verifier(
    function: Callable[..., Any] | None = None, /, *, name: str | None = None, version: str = "1"
) -> FunctionVerifier | Callable[[Callable[..., Any]], FunctionVerifier]:
    """Make a verifier of a plain function. Change `version` whenever a score could change, so that caches notice."""

    def wrap(inner: Callable[..., Any]) -> FunctionVerifier:
        return FunctionVerifier(inner, name or str(getattr(inner, "__name__", type(inner).__name__)), version)

    return wrap if function is None else wrap(function)


def as_verdict(value: object) -> Verdict:
    """Read what a user's function returned. Raises TypeError or ValueError with a line meant for its author."""
    if isinstance(value, Verdict):
        return value
    if value is None:
        return Verdict(None, Reason.DECLINED)
    if callable(item := getattr(value, "item", None)):
        value = item()  # numpy and torch scalars become Python's own
    if not isinstance(value, (bool, int, float)):
        raise TypeError(f"returned {type(value).__name__}, expected a bool, a score in [0, 1], a Verdict or None")
    score = float(value)
    if not 0.0 <= score <= 1.0:  # also catches NaN
        raise ValueError(f"returned {value!r}, which is not a score in [0, 1]")
    return Verdict(score, reason_for_score(score))


def guarded(judge: Callable[[], Verdict]) -> Verdict:
    """Run a user's verifier: whatever it raises is a row that could not be judged."""
    try:
        return judge()
    except SetupError:  # the machine is at fault, for every row alike: that must stop the command
        raise
    except (Exception, SystemExit) as error:
        return Verdict(None, Reason.VERIFIER_ERROR, evidence={"error": f"{type(error).__name__}: {error}"})


def _optional_keywords(function: Callable[..., Any]) -> tuple[str, ...]:
    """Which of `problem` and `info` the function takes; ConfigError where it cannot be a verifier at all."""
    label = getattr(function, "__name__", repr(function))
    if inspect.iscoroutinefunction(function):
        raise ConfigError(f"{label}() is async.", "A verifier is an ordinary function: def f(response, gold).")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some builtins have none: they get the two answers only
        return ()
    takes_any = any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())
    keywords = tuple(key for key in ("problem", "info") if takes_any or key in signature.parameters)
    try:
        signature.bind("response", "gold", **dict.fromkeys(keywords))
    except TypeError as error:
        raise ConfigError(
            f"{label}{signature} cannot be called as a verifier: {error}.",
            "It takes f(response, gold), and may take problem and info as keywords.",
        ) from error
    return keywords
