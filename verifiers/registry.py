"""Turns a name in a configuration into a verifier; the name has one of four spellings.

    math                            built in
    my_plugin                       an installed package's entry point in the group `truegold.verifiers`
    my_pkg.checks:unit_price        an import string
    path/to/checks.py:unit_price    the same, for a file

The object behind the name is a verifier, a verifier class (which is called without arguments) or a plain function, with
`@verifier` or without. `resolve` returns something picklable in each case: it travels by its spelling and is looked up
again on arrival. A mistake is a `ConfigError` of one line.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from truegold.verifiers.answers.choice import ChoiceVerifier
from truegold.verifiers.answers.format import FormatVerifier, LengthVerifier
from truegold.verifiers.answers.numeric import NumericVerifier
from truegold.verifiers.answers.text_match import ExactVerifier, RegexVerifier
from truegold.verifiers.code import CodeVerifier
from truegold.verifiers.decorator import FunctionVerifier, guarded
from truegold.verifiers.gold import OTHER_GOLDS, BadGold, gold_and_arguments, golds_in, judge_any, mistake_in_golds
from truegold.verifiers.math import MathVerifier
from truegold.verifiers.math_verify import MathVerifyVerifier
from truegold.verifiers.sandbox.errors import ConfigError
from truegold.verifiers.user_code import did_you_mean, is_file, load_object, source_digest, split_spelling
from truegold.verifiers.verdict import NO_INFO, Verdict, Verifier

ENTRY_POINT_GROUP = "truegold.verifiers"
"""The group of entry points in which an installed package offers its verifiers."""

BUILT_IN: dict[str, type[Verifier]] = {
    "choice": ChoiceVerifier,
    "code": CodeVerifier,
    "exact": ExactVerifier,
    "format": FormatVerifier,
    "length": LengthVerifier,
    "math": MathVerifier,
    "math_verify": MathVerifyVerifier,
    "numeric": NumericVerifier,
    "regex": RegexVerifier,
}


class _ImportedVerifier:
    """A verifier of a user's code, which is loaded and pickled by its spelling; all else is that of the code's."""

    def __init__(self, spelling: str, inner: Verifier) -> None:
        self.spelling = spelling
        self.inner = inner
        self.name = inner.name
        self.version = inner.version

    def __call__(
        self, response: str, gold: str | None, *, problem: str | None = None, info: Mapping[str, Any] = NO_INFO
    ) -> Verdict:
        def judge_checked() -> Verdict:
            verdict: object = self.inner(response, gold, problem=problem, info=info)
            if not isinstance(verdict, Verdict):
                raise TypeError(f"returned {type(verdict).__name__}, a verifier object returns a Verdict")
            return verdict

        return guarded(judge_checked)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def __repr__(self) -> str:
        return f"<verifier {self.spelling}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return resolve, (self.spelling,)


def verify(
    response: str, gold: Any = None, *, verifier: str | Verifier = "math", problem: str | None = None, **arguments: Any
) -> Verdict:
    r"""Judge one response against its gold answer, or against tests.

        verify("so the total is \boxed{0.5}", gold="1/2")
        verify("so the total is \boxed{0.5}", gold=["1/2", "50%"])
        verify("```python\ndef add(a, b): return a + b\n```", verifier="code", tests=["assert add(1, 2) == 3"])

    `verifier` is a name, an import string or a verifier; `arguments` are those of a row's `verifier_args`. Golds in a
    list are all accepted. For many rows `verify_batch` is faster and has deadlines. Raises ConfigError if there is no
    such verifier, for an unknown argument or an invalid value, and for a response that is not a text.
    """
    _require_text(response)
    try:
        golds = golds_in(gold)
    except BadGold as error:
        raise ConfigError(
            f"{error}.", "Pass the answer itself, of several accepted ones a list, or gold=... with other_golds=[...]."
        ) from error
    resolved = resolve(verifier) if isinstance(verifier, str) else verifier
    check_options(resolved, arguments)
    first, info = gold_and_arguments(golds, resolved.name, arguments)
    return judge_any(resolved, response, first, problem, info)


def resolve(name: str) -> Verifier:
    """Return the verifier that `name` spells. Raises ConfigError if there is none."""
    require_name(name)
    if name in BUILT_IN:
        return BUILT_IN[name]()
    source, attribute = _find_source(name)
    loaded = load_object(source, attribute, _label(name))
    # A relative path means nothing to a child process that was started elsewhere.
    spelling = f"{Path(source).resolve()}:{attribute}" if is_file(source) else name
    return _ImportedVerifier(spelling, _make_verifier(loaded, attribute, name))


def require_name(verifier: object) -> None:
    """Raise ConfigError if a verifier itself stands in place of its name."""
    if not isinstance(verifier, str):
        raise ConfigError(
            f"Here a verifier is named; this is {type(verifier).__name__} {verifier!r:.60}.",
            "Name it as it is imported, since processes import it anew: my_pkg.module:object, path/to/file.py:object. "
            "verify(response, gold, verifier=...) takes the object itself.",
        )


def declared(verifier: Verifier) -> tuple[str, ...] | None:
    """Return the options that a verifier says it reads (its attribute `options`), or None if it says nothing."""
    names = getattr(verifier, "options", None)
    return None if names is None else tuple(names)


def check_value(verifier: Verifier, info: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the values of options, by the verifier's method `check_options`, where it has one."""
    if (check := getattr(verifier, "check_options", None)) is None:
        return None
    try:
        check(info)
    except ValueError as error:  # BadOption is one.
        return str(error)
    return None


def _require_text(response: object) -> None:
    if not isinstance(response, str):
        hint = "Type response=str(...)."
        if response is None:
            hint = "Pass an empty text where there was none."
        elif isinstance(response, list | tuple | Mapping):
            hint = "Pass the text alone; of messages that of the last: response=messages[-1]['content']."
        raise ConfigError(f"response is a text; this is {type(response).__name__} {response!r:.60}.", hint)


def find_option_mistakes(verifier: str | Verifier, info: Mapping[str, Any], *, complete: bool = True) -> list[str]:
    """Return what is wrong with options that a configuration or a call sets for a verifier, in one line each.

    complete: whether rows add nothing to them, so that what the verifier needs has to be there. Raises ConfigError if
    there is no such verifier.
    """
    name, verifier = (verifier, resolve(verifier)) if isinstance(verifier, str) else (verifier.name, verifier)
    mistakes = []
    if (others := info.get(OTHER_GOLDS)) is not None and (mistake := mistake_in_golds(others)) is not None:
        mistakes.append(f"{name}: {mistake}.")
    info = {option: value for option, value in info.items() if option != OTHER_GOLDS}
    if info and (known := declared(verifier)) is not None:
        mistakes += [_no_such_option(name, option, known) for option in info if option not in known]
    missing = [option for option in getattr(verifier, "needed_options", ()) if info.get(option) is None]
    if complete and missing:
        mistakes.append(f"{name} needs the option {missing[0]!r}.")
    if not mistakes and (mistake := check_value(verifier, info)) is not None:
        mistakes.append(f"{name}: {mistake}.")
    return mistakes


def check_options(verifier: str | Verifier, info: Mapping[str, Any]) -> None:
    """Raise ConfigError if options that a call hands to a verifier have a mistake."""
    if mistakes := find_option_mistakes(verifier, info):
        raise ConfigError(" ".join(mistakes))


def unknown_option(verifier: Verifier, info: Mapping[str, Any]) -> str | None:
    """Return a line about an option of a row that no verifier has, or None if there is none.

    A row may hold options of several verifiers, so that those of any built-in one are left alone. A verifier that
    declares nothing is handed anything.
    """
    known = declared(verifier)
    return _first_unknown(verifier.name, known, tuple(info)) if known else None


@lru_cache(maxsize=1024)
def _first_unknown(name: str, known: tuple[str, ...], options: tuple[str, ...]) -> str | None:
    for option in options:
        if option not in known and option != OTHER_GOLDS and not _verifiers_with(option):
            return _no_such_option(name, option, known)
    return None


def _verifiers_with(option: str) -> list[str]:
    return [name for name, kind in BUILT_IN.items() if option in (declared(kind()) or ())]


def _no_such_option(name: str, option: str, known: Sequence[str]) -> str:
    others = _verifiers_with(option)
    meant = did_you_mean(option, known) or (f"The verifier {others[0]} has it." if others else None)
    listed = f"its options are {', '.join(known)}" if known else "it takes none"
    return f"{name} has no option {option!r}; {listed}.{f' {meant}' if meant else ''}"


def fingerprint(name: str) -> str:
    """Return `name@version`, and for imported code `+` a digest of its source file.

    A cache of verdicts must notice when it changes. Raises ConfigError if there is no such verifier.
    """
    verifier = resolve(name)
    label = f"{verifier.name}@{verifier.version}"
    if name in BUILT_IN:
        return label
    digest = source_digest(_find_source(name)[0], _label(name))
    return f"{label}+{digest}" if digest else label


def available() -> dict[str, str]:
    """Return every name that needs no import string, with a text that says where it comes from."""
    names = dict.fromkeys(BUILT_IN, "built in")
    for name, point in _entry_points().items():
        package = f" of {point.dist.name}" if point.dist else ""
        names.setdefault(name, f"entry point{package} ({point.value})")
    return dict(sorted(names.items()))


def _entry_points() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}


def _find_source(name: str) -> tuple[str, str]:
    """Return the module or file of a verifier that is not built in, and the name of the object there."""
    if name in (points := _entry_points()):
        return points[name].module, points[name].attr
    if (parts := split_spelling(name)) is None:
        raise ConfigError(
            f"there is no verifier {name!r}; known are {', '.join(available())}.",
            did_you_mean(name, available()) or "One of your own: my_pkg.module:object or path/to/file.py:object.",
        )
    return parts


def _label(name: str) -> str:
    return f"verifier {name!r}"


def _make_verifier(loaded: object, attribute: str, name: str) -> Verifier:
    """Return `loaded` itself, what its class makes, or the function as a verifier. Raises ConfigError for the rest."""
    try:
        if inspect.isclass(loaded):
            loaded = loaded()
        elif callable(loaded) and not isinstance(loaded, Verifier):
            return FunctionVerifier(loaded, attribute, version="1")
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(
            f"verifier {name!r}: {attribute}() could not be made without arguments: {type(error).__name__}: {error}."
        ) from error
    if not isinstance(loaded, Verifier):
        raise ConfigError(
            f"verifier {name!r} is a {type(loaded).__name__}, not a verifier.",
            "It needs name, version and __call__(response, gold, *, problem, info), or be a function with @verifier.",
        )
    return loaded
