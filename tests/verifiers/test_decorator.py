"""A plain function as a verifier."""

import functools
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tables import rows

from truegold.verifiers import ConfigError, Reason, SetupError, Verdict, Verifier, verifier


@verifier
def same(response, gold):
    """Plain equality."""
    return response == gold


@verifier(name="scaled", version="3")
def scaled(response, gold, *, info):
    return info.get("scale", 1) * float(response)


def undecorated(response, gold):
    return len(response) == len(gold)


wrapped_later = verifier(undecorated)


def test_it_is_a_verifier_with_a_name_and_a_version():
    assert isinstance(same, Verifier)
    assert (same.name, same.version, same.__doc__) == ("same", "1", "Plain equality.")
    assert (scaled.name, scaled.version) == ("scaled", "3")


@rows(
    "returned, score, reason",
    [
        (True, 1.0, Reason.MATCH),
        (False, 0.0, Reason.MISMATCH),
        (1, 1.0, Reason.MATCH),
        (0.25, 0.25, Reason.PARTIAL),
        (0.0, 0.0, Reason.MISMATCH),
        (np.float32(0.5), 0.5, Reason.PARTIAL),
        (np.bool_(True), 1.0, Reason.MATCH),
        (None, None, Reason.DECLINED),
        (1.5, None, Reason.VERIFIER_ERROR),
        (float("nan"), None, Reason.VERIFIER_ERROR),
        ("yes", None, Reason.VERIFIER_ERROR),
        (Verdict(0.5, Reason.HEDGED, "x"), 0.5, Reason.HEDGED),
    ],
)
def test_what_a_function_returns_becomes_a_verdict(returned, score, reason):
    verdict = verifier(lambda response, gold: returned)("a", "b")
    assert (verdict.score, verdict.reason) == (score, reason)


@pytest.mark.parametrize(
    ("returned", "message"),
    [(1.5, "returned 1.5, which is not a score in [0, 1]"), ("yes", "returned str, expected a bool")],
)
def test_an_impossible_score_is_explained(returned, message):
    assert message in verifier(lambda response, gold: returned)("a", "b").evidence["error"]


def test_an_exception_becomes_a_verdict_that_names_it():
    verdict = scaled("seven", None)
    assert (verdict.score, verdict.reason) == (None, Reason.VERIFIER_ERROR)
    assert verdict.evidence["error"].startswith("ValueError: could not convert")


def test_an_exit_becomes_a_verdict_too():
    def exits(response, gold):
        raise SystemExit(3)

    assert verifier(exits)("a", "b").evidence == {"error": "SystemExit: 3"}


def test_a_broken_machine_is_not_hidden_in_a_verdict():
    def needs_server(response, gold):
        raise SetupError("the server is down")

    with pytest.raises(SetupError):
        verifier(needs_server)("a", "b")


def test_problem_and_info_are_passed_to_those_who_ask():
    assert verifier(lambda r, g, *, problem: problem == "p")("", "", problem="p").passed
    assert verifier(lambda r, g, **rest: rest == {"problem": "p", "info": {"k": 1}})(
        "", "", problem="p", info={"k": 1}
    ).passed
    assert scaled("0.25", None, info={"scale": 2}).score == 0.5


def test_a_partial_can_be_a_verifier():
    assert verifier(functools.partial(lambda r, g, limit: len(r) < limit, limit=3), name="short")("ab", None).passed


async def asynchronous(response, gold):
    return True


@pytest.mark.parametrize("function", [lambda response: True, lambda a, b, c: True, asynchronous])
def test_a_function_of_the_wrong_shape_is_refused_at_once(function):
    with pytest.raises(ConfigError, match=r"f\(response, gold\)"):
        verifier(function)


@pytest.mark.parametrize("original", [same, scaled, wrapped_later], ids=lambda v: v.name)
def test_it_survives_pickling(original):
    copy = pickle.loads(pickle.dumps(original))
    assert (copy.name, copy.version) == (original.name, original.version)
    assert copy("1", "1").score == original("1", "1").score


def test_it_is_correct_in_threads():
    with ThreadPoolExecutor(8) as threads:
        scores = list(threads.map(lambda n: scaled(str(n / 200), None).score, range(200)))
    assert scores == [n / 200 for n in range(200)]
