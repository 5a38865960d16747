"""`@verifier` makes a verifier of a plain function.

    @verifier
    def longest(response: str, gold: str) -> bool: ...

    @verifier(name="unit_price", version="2", gold_response="The price is {gold}")
    def unit_price(response: str, gold: str, *, problem: str | None, info: Mapping[str, Any]) -> float: ...

The function takes the response and the gold answer by position, and `problem` and `info` by keyword if it has these
parameters. It returns a bool, a score in [0, 1], a `Verdict`, or None if it cannot judge. If it raises, the verdict has
the score None and holds the error. Not covered: deadlines and crashes of the interpreter (see `verify_batch`).
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

from truegold.verifiers.checked import checked
from truegold.verifiers.gold import check_template
from truegold.verifiers.sandbox.errors import ConfigError, SetupError
from truegold.verifiers.verdict import NO_INFO, Reason, Verdict, reason_for_score


class FunctionVerifier:
    """A plain function as a `Verifier`. It is pickled by reference, as functions are."""

    gold_response: Callable[[str, str | None], str] | None = None
    """Makes a right response from a gold and a solution (`verifiers/gold.py`). None: gold itself is a right
    response."""

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        version: str,
        options: Sequence[str] | None = None,
        gold_response: str | Callable[[str], str] | None = None,
        deterministic: bool = True,
    ) -> None:
        self.deterministic = deterministic
        self.function = function
        self.name = name
        self.version = version
        self._keywords = _accepted_keywords(function)
        if options is not None and "info" not in self._keywords:
            raise ConfigError(f"{name}() declares options but does not take info.", "Add the keyword info.")
        # A function without `info` cannot read options.
        self.options = None if options is None and "info" in self._keywords else tuple(options or ())
        self._right_response = gold_response
        if gold_response is not None:
            self.gold_response = _responder(gold_response)
        self.__doc__ = function.__doc__
        self.__name__: str = getattr(function, "__name__", name)
        self.__qualname__: str = getattr(function, "__qualname__", name)
        self.__module__: str = getattr(function, "__module__", __name__)
        self.__wrapped__ = function

    def __call__(
        self, response: str, gold: str | None, *, problem: str | None = None, info: Mapping[str, Any] = NO_INFO
    ) -> Verdict:
        arguments = {"problem": problem, "info": info}
        keywords = {key: arguments[key] for key in self._keywords}
        return guarded(lambda: _as_verdict(self.function(response, gold, **keywords)))

    def __repr__(self) -> str:
        return f"<verifier {self.name}@{self.version}>"

    def __reduce__(self) -> str | tuple[Any, ...]:
        # After decoration the function's name refers to this object, so that pickle finds it by that name.
        name = str(self.__qualname__)
        if getattr(sys.modules.get(self.__module__), name, None) is self:
            return name
        settings = (self.options or None, self._right_response, self.deterministic)
        return FunctionVerifier, (self.function, self.name, self.version, *settings)


@overload
def verifier(function: Callable[..., Any], /) -> FunctionVerifier:
    """Make a verifier of a plain function and name it after the function."""


@overload
def verifier(
    *,
    name: str | None = None,
    version: str = "1",
    options: Sequence[str] | None = None,
    gold_response: str | Callable[[str], str] | None = None,
    deterministic: bool = True,
) -> Callable[[Callable[..., Any]], FunctionVerifier]:
    """Return a decorator that makes a verifier with this name, version and options."""


@checked
def verifier(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    version: str = "1",
    options: Sequence[str] | None = None,
    gold_response: str | Callable[[str], str] | None = None,
    deterministic: bool = True,
) -> FunctionVerifier | Callable[[Callable[..., Any]], FunctionVerifier]:
    """Make a verifier of a plain function.

    `version`: change it whenever a score could change, so that caches are invalidated.
    `options`: the keys of `info` that the function reads. A configuration that sets another key is refused; without
    `options` every key is accepted.
    `gold_response`: a right response for a gold, as a template (`"\\boxed{{{gold}}}"`) or a function of the gold. The
    default is gold itself.
    `deterministic`: False if the same response may get different verdicts, for example from a language model. Training
    stops when a deterministic verifier changes a verdict.

    Raises ConfigError for a template without `{gold}`.
    """

    def wrap(inner: Callable[..., Any]) -> FunctionVerifier:
        label = name or str(getattr(inner, "__name__", type(inner).__name__))
        return FunctionVerifier(inner, label, version, options, gold_response, deterministic)

    return wrap if function is None else wrap(function)


def _responder(gold_response: str | Callable[[str], str]) -> Callable[[str, str | None], str]:
    if not isinstance(gold_response, str):
        return lambda gold, solution: gold_response(gold)
    check_template(gold_response)
    return lambda gold, solution: gold_response.format(gold=gold)


def guarded(call: Callable[[], Verdict]) -> Verdict:
    """Return the verdict of `call`, which runs a user's verifier. If the verifier raises, the verdict has no score.

    A SetupError is raised again: it is a fault of the machine, affects every row and must stop the command.
    """
    try:
        return call()
    except SetupError:
        raise
    except (Exception, SystemExit) as error:
        return Verdict(None, Reason.VERIFIER_ERROR, evidence={"error": f"{type(error).__name__}: {error}"})


def _as_verdict(returned: object) -> Verdict:
    """Return the verdict for the return value of a user's function. Raises TypeError or ValueError for other values."""
    if isinstance(returned, Verdict):
        return returned
    if returned is None:
        return Verdict(None, Reason.DECLINED)
    if callable(as_scalar := getattr(returned, "item", None)):
        # A scalar of numpy or torch becomes a Python number.
        returned = as_scalar()
    if not isinstance(returned, (bool, int, float)):
        raise TypeError(f"returned {type(returned).__name__}, expected a bool, a score in [0, 1], a Verdict or None")
    score = float(returned)
    if not 0.0 <= score <= 1.0:  # NaN fails this comparison too.
        raise ValueError(f"returned {returned!r}, which is not a score in [0, 1]")
    return Verdict(score, reason_for_score(score))


def _accepted_keywords(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the keywords among `problem` and `info` that the function takes.

    Raises ConfigError if the function cannot be called as a verifier.
    """
    label = getattr(function, "__name__", repr(function))
    if inspect.iscoroutinefunction(function):
        raise ConfigError(f"{label}() is async.", "A verifier is an ordinary function: def f(response, gold).")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # Some builtins have no signature; they are called with the response and gold.
        return ()
    takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in signature.parameters.values())
    keywords = tuple(key for key in ("problem", "info") if takes_all or key in signature.parameters)
    try:
        signature.bind("response", "gold", **dict.fromkeys(keywords))
    except TypeError as error:
        raise ConfigError(
            f"{label}{signature} cannot be called as a verifier: {error}.",
            "It takes f(response, gold), and may take problem and info as keywords.",
        ) from error
    return keywords
