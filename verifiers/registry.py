"""Finds a verifier by its name, which has one of four spellings.

    math                            built in
    my_plugin                       an installed package's entry point in the group `truegold.verifiers`
    my_pkg.checks:unit_price        an import string
    path/to/checks.py:unit_price    an import string with a file

The name refers to a verifier, to a verifier class (which is called without arguments) or to a plain function, with
`@verifier` or without. `resolve` always returns a picklable object: a verifier from a user's code is pickled as its
name and resolved again in the other process. A mistake raises a `ConfigError` of one line.
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
from truegold.verifiers.checked import refuse
from truegold.verifiers.code import CodeVerifier
from truegold.verifiers.decorator import FunctionVerifier, guarded
from truegold.verifiers.gold import OTHER_GOLDS, BadGold, gold_and_arguments, golds_in, judge_any, mistake_in_golds
from truegold.verifiers.math import MathVerifier
from truegold.verifiers.math_verify import MathVerifyVerifier
from truegold.verifiers.sandbox.errors import ConfigError
from truegold.verifiers.user_code import did_you_mean, is_file, load_object, source_digest, split_spelling
from truegold.verifiers.verdict import NO_INFO, Verdict, Verifier

ENTRY_POINT_GROUP = "truegold.verifiers"
"""The group of entry points that other packages register their verifiers in."""

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
    """A verifier from a user's code that is pickled as its import string. It forwards attributes to that verifier."""

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
                raise TypeError(f"returned {type(verdict).__name__}; a verifier object must return a Verdict")
            return verdict

        return guarded(judge_checked)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def __repr__(self) -> str:
        return f"<verifier {self.spelling}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return resolve, (self.spelling,)


def verify(
    response: str, gold: Any = None, verifier: str | Verifier = "math", problem: str | None = None, **arguments: Any
) -> Verdict:
    r"""Return the verdict on one response, judged against its gold answer or against tests.

        verify("so the total is \boxed{0.5}", gold="1/2")
        verify("so the total is \boxed{0.5}", gold=["1/2", "50%"])
        verify("```python\ndef add(a, b): return a + b\n```", verifier="code", tests=["assert add(1, 2) == 3"])

    `verifier` is a name, an import string or a verifier object; `arguments` are the keys of a row's `verifier_args`. If
    gold is a list, each entry is accepted. For many rows `verify_batch` is faster and has deadlines. Raises ConfigError
    for an unknown verifier, an unknown argument, an invalid value, or a response that is not a text.
    """
    is_known = isinstance(verifier, str) or isinstance(getattr(verifier, "name", None), str)
    if not (is_known and isinstance(response, str) and (problem is None or isinstance(problem, str))):
        refuse(verify, response=response, verifier=verifier, problem=problem)
    try:
        golds = golds_in(gold)
    except BadGold as error:
        raise ConfigError(
            f"{error}.", "Pass one answer, a list of accepted answers, or gold=... with other_golds=[...]."
        ) from error
    resolved = resolve(verifier) if isinstance(verifier, str) else verifier
    check_options(resolved, arguments)
    first, info = gold_and_arguments(golds, resolved.name, arguments)
    return judge_any(resolved, response, first, problem, info)


def resolve(name: str) -> Verifier:
    """Return the verifier with this name or import string. Raises ConfigError if there is none."""
    require_name(name)
    if name in BUILT_IN:
        return BUILT_IN[name]()
    source, attribute = _find_source(name)
    loaded = load_object(source, attribute, _label(name))
    # A child process may run in another directory, so a relative path is made absolute.
    spelling = f"{Path(source).resolve()}:{attribute}" if is_file(source) else name
    return _ImportedVerifier(spelling, _make_verifier(loaded, attribute, name))


def require_name(verifier: object) -> None:
    """Raise ConfigError if `verifier` is an object instead of a name."""
    if not isinstance(verifier, str):
        raise ConfigError(
            f"The name of a verifier is needed; this is {type(verifier).__name__} {verifier!r:.60}.",
            "Pass its import string, since each process imports it: my_pkg.module:object, path/to/file.py:object. "
            "verify(response, gold, verifier=...) takes the object itself.",
        )


def declared(verifier: Verifier) -> tuple[str, ...] | None:
    """Return the options that a verifier declares (its attribute `options`), or None if it declares none."""
    names = getattr(verifier, "options", None)
    return None if names is None else tuple(names)


def check_value(verifier: Verifier, info: Mapping[str, Any]) -> str | None:
    """Return the mistake that the verifier's own `check_options` finds in the values of options, or None."""
    if (check := getattr(verifier, "check_options", None)) is None:
        return None
    try:
        check(info)
    except ValueError as error:  # BadOption is one.
        return str(error)
    return None


def find_option_mistakes(verifier: str | Verifier, info: Mapping[str, Any], *, complete: bool = True) -> list[str]:
    """Return one line for each mistake in the options that a configuration or a call sets for a verifier.

    complete: True if rows add no options, so a missing required option is a mistake; False if rows may add options.
    Raises ConfigError if there is no such verifier.
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
    """Raise ConfigError if the options of a call have a mistake."""
    if mistakes := find_option_mistakes(verifier, info):
        raise ConfigError(" ".join(mistakes))


def unknown_option(verifier: Verifier, info: Mapping[str, Any]) -> str | None:
    """Return a line about the first unknown option of a row, or None if all are known.

    A row may hold options of several verifiers, so the options of every built-in verifier are known. If `verifier` does
    not declare its options, every option is allowed.
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
    """Return `name@version`, and for imported code also `+` and a digest of its source file.

    Caches of verdicts use it as a key. Raises ConfigError if there is no such verifier.
    """
    verifier = resolve(name)
    label = f"{verifier.name}@{verifier.version}"
    if name in BUILT_IN:
        return label
    digest = source_digest(_find_source(name)[0], _label(name))
    return f"{label}+{digest}" if digest else label


def available() -> dict[str, str]:
    """Return the names of built-in and installed verifiers, each with its origin as a text."""
    names = dict.fromkeys(BUILT_IN, "built in")
    for name, point in _entry_points().items():
        package = f" of {point.dist.name}" if point.dist else ""
        names.setdefault(name, f"entry point{package} ({point.value})")
    return dict(sorted(names.items()))


def _entry_points() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}


def _find_source(name: str) -> tuple[str, str]:
    """Return the module or file of a verifier that is not built in, and the name of the object there."""
    # Entry points come last, because listing those of all installed packages is slow.
    if (parts := split_spelling(name)) is not None:
        return parts
    if name in (points := _entry_points()):
        return points[name].module, points[name].attr
    raise ConfigError(
        f"there is no verifier {name!r}; known are {', '.join(available())}.",
        did_you_mean(name, available()) or "Name your own as my_pkg.module:object or path/to/file.py:object.",
    )


def _label(name: str) -> str:
    return f"verifier {name!r}"


def _make_verifier(loaded: object, attribute: str, name: str) -> Verifier:
    """Return the verifier for a loaded object: the object, an instance of the class, or the wrapped function.

    Raises ConfigError for any other object.
    """
    try:
        if inspect.isclass(loaded):
            loaded = loaded()
        elif callable(loaded) and not isinstance(loaded, Verifier):
            return FunctionVerifier(loaded, attribute, version="1")
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(
            f"verifier {name!r}: calling {attribute}() without arguments failed: {type(error).__name__}: {error}."
        ) from error
    if not isinstance(loaded, Verifier):
        raise ConfigError(
            f"verifier {name!r} is a {type(loaded).__name__}, not a verifier.",
            "It must have name, version and __call__(response, gold, *, problem, info), or be a function.",
        )
    return loaded
