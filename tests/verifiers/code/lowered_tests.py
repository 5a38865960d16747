"""What the tests of lowering share: test code lowered or not, and its outcome by lowering and by running it."""

import warnings

from truegold.verifiers.code.checks.lowering import Lowered, lower
from truegold.verifiers.code.outcomes import Raised
from truegold.verifiers.sandbox.inside.wire.decoding import decode
from truegold.verifiers.sandbox.inside.wire.encoding import encode


def lowered(code, entry_point="f", prelude="", stub=""):
    lowered_tests = lower(code, entry_point, prelude, stub)
    assert isinstance(lowered_tests, Lowered), lowered_tests
    return lowered_tests


def lower_suite(tests):
    return lower(tests.code, tests.entry_point, tests.prelude, tests.stub)


def reason(code, entry_point="f", prelude="", stub=""):
    why = lower(code, entry_point, prelude, stub)
    assert isinstance(why, str)
    return why


def function_in(namespace, name):
    value = namespace
    for index, part in enumerate(name.split(".")):
        value = value[part.removesuffix("()")] if index == 0 else getattr(value, part.removesuffix("()"))
        value = value() if part.endswith("()") else value
    return value


def outcomes_of(tests, solution):
    """Make the calls as another process would: arguments and results cross as data."""
    namespace = {}
    exec(solution, namespace)
    outcomes, functions = [], {}
    for call in tests.calls:
        try:
            if call.function not in functions:
                functions[call.function] = function_in(namespace, call.function)
            value = functions[call.function](*decode(encode(list(call.args))), **decode(encode(dict(call.kwargs))))
            outcomes.append(decode(encode(value)))
        except Exception as error:
            outcomes.append(Raised(type(error).__name__, str(error)))
    return outcomes


def holds(check, outcomes):
    got = outcomes[check.call]
    return not isinstance(got, Raised) and check.holds(got)


def by_lowering(code, solution, entry_point="f"):
    lowered_tests = lower(code, entry_point)
    if isinstance(lowered_tests, str):
        return None
    outcomes = outcomes_of(lowered_tests, solution)
    held = [holds(check, outcomes) for check in lowered_tests.checks]
    return None if None in held else all(held)


def by_running(code, solution, entry_point="f"):
    namespace = {}
    exec(solution, namespace)
    namespace["candidate"] = function_in(namespace, entry_point) if entry_point else None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(code, namespace)
        if "check" in namespace and "check(f)" not in code:
            namespace["check"](namespace["candidate"])
    except Exception:
        return False
    return True
