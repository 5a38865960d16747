"""`@verifier` makes a verifier of a plain function.

    @verifier
    def longest(response: str, gold: str) -> bool: ...

    @verifier(name="unit_price", version="2", gold_response="The price is {gold}")
    def unit_price(response: str, gold: str, *, problem: str | None, info: Mapping[str, Any]) -> float: ...

The function takes the response and the gold answer by position, and `problem` and `info` by keyword if it names them.
It returns a bool, a score in [0, 1], a whole `Verdict`, or None if it cannot judge. What it raises becomes a verdict
with score None that says so. Not covered: deadlines and crashes of the interpreter (`verify_batch` has them).
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

from truegold.verifiers.gold import check_template
from truegold.verifiers.sandbox.errors import ConfigError, SetupError
from truegold.verifiers.verdict import NO_INFO, Reason, Verdict, reason_for_score


class FunctionVerifier:
    """A plain function in the shape of a `Verifier`. It is pickled by reference, as functions are."""

    gold_response: Callable[[str, str | None], str] | None = None
    """Makes the response that is right for a gold (`verifiers/gold.py`); gold itself is one if there is none."""

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
            raise ConfigError(f"{name}() declares options and does not take info.", "Add the keyword info.")
        # A function that takes no `info` can read no option.
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
        # A decorated function hides behind its own name, so the name leads to this object, not to the function.
        name = str(self.__qualname__)
        if getattr(sys.modules.get(self.__module__), name, None) is self:
            return name
        settings = (self.options or None, self._right_response, self.deterministic)
        return FunctionVerifier, (self.function, self.name, self.version, *settings)


@overload
def verifier(function: Callable[..., Any], /) -> FunctionVerifier:
    """Make a verifier of a plain function, called what it is called."""


@overload
def verifier(
    *,
    name: str | None = None,
    version: str = "1",
    options: Sequence[str] | None = None,
    gold_response: str | Callable[[str], str] | None = None,
    deterministic: bool = True,
) -> Callable[[Callable[..., Any]], FunctionVerifier]:
    """Return what makes a verifier of this name, version and options out of a plain function."""


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
    """Make a verifier of a plain function. Change `version` whenever a score could change, so that caches notice.

    `options`: the names that it reads of `info`; a configuration that sets another one is refused. Any is accepted
    where it is left out. `gold_response`: how a response looks that is right for a gold, as a template
    (`"\\boxed{{{gold}}}"`) or a function of the gold; without it gold itself is taken for one.
    `deterministic`: False where the same response may get another verdict, as from a model that is asked; a training
    stops where one that is true to its verdicts changes one. Raises ConfigError for a template without `{gold}`.
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
    """Return the verdict of `call`, which runs a user's verifier. If that raises, the row has no score.

    Raises SetupError as it came: the machine is at fault, for every row alike, and that must stop the command.
    """
    try:
        return call()
    except SetupError:
        raise
    except (Exception, SystemExit) as error:
        return Verdict(None, Reason.VERIFIER_ERROR, evidence={"error": f"{type(error).__name__}: {error}"})


def _as_verdict(returned: object) -> Verdict:
    """Read what a user's function returned. Raises TypeError or ValueError with a line meant for its author."""
    if isinstance(returned, Verdict):
        return returned
    if returned is None:
        return Verdict(None, Reason.DECLINED)
    if callable(as_scalar := getattr(returned, "item", None)):
        # Scalars of numpy and torch become Python's.
        returned = as_scalar()
    if not isinstance(returned, (bool, int, float)):
        raise TypeError(f"returned {type(returned).__name__}, expected a bool, a score in [0, 1], a Verdict or None")
    score = float(returned)
    if not 0.0 <= score <= 1.0:  # NaN fails this comparison too.
        raise ValueError(f"returned {returned!r}, which is not a score in [0, 1]")
    return Verdict(score, reason_for_score(score))


def _accepted_keywords(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return which of `problem` and `info` the function takes. Raises ConfigError if it cannot be a verifier."""
    label = getattr(function, "__name__", repr(function))
    if inspect.iscoroutinefunction(function):
        raise ConfigError(f"{label}() is async.", "A verifier is an ordinary function: def f(response, gold).")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # Some builtins have no signature: they get the response and gold only.
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
