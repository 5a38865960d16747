"""A name becomes a verifier, whichever way it is spelled."""

import multiprocessing
import pickle
import sys
from importlib.metadata import EntryPoint

import pytest

from truegold.verifiers import (
    ConfigError,
    MathVerifier,
    Reason,
    Verdict,
    available,
    fingerprint,
    gold_response,
    registry,
    resolve,
    verifier,
    verify,
)


@pytest.mark.parametrize(
    ("response", "gold", "says"),
    [
        (None, "1", "response must be a text"),
        (1, "1", "response must be a text"),
        ("1", b"1", "gold must be a text.*this is bytes"),
    ],
)
def test_one_verdict_needs_texts(response: object, gold: object, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        verify(response, gold)


CHECKS = """
from __future__ import annotations
from dataclasses import dataclass
from truegold.verifiers import Reason, Verdict, verifier

@verifier(version="7")
def decorated(response, gold):
    return response == gold

def plain(response, gold):
    return response.startswith(gold)

@dataclass
class Longer:
    name: str = "longer"
    version: str = "2"
    def __call__(self, response, gold, *, problem=None, info={}):
        return Verdict(float(len(response) > len(gold)), Reason.MATCH)
    def gold_response(self, gold, solution):
        return gold + "!"

class Needy:
    def __init__(self, model):
        pass

class Broken(Longer):
    def __call__(self, response, gold, *, problem=None, info={}):
        return 1.0

instance = Longer()
holds_a_lambda = verifier(lambda response, gold: True, )
limit = 5
"""


@pytest.fixture
def checks(tmp_path):
    path = tmp_path / "checks.py"
    path.write_text(CHECKS)
    return path


@pytest.fixture
def on_path(checks, monkeypatch):
    """The same file, as a module that can be imported."""
    module = f"checks_{checks.parent.name}"
    checks.rename(checks.with_name(f"{module}.py"))
    monkeypatch.syspath_prepend(str(checks.parent))
    yield module
    sys.modules.pop(module, None)


def resolve_error(name: str) -> str:
    """Return the error text for a name that cannot be resolved, which is one line."""
    with pytest.raises(ConfigError) as caught:
        resolve(name)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_built_in_names():
    assert isinstance(resolve("math"), MathVerifier)
    for name in ("math", "choice", "exact"):
        assert resolve(name).name == name
        assert available()[name] == "built in"
        assert pickle.loads(pickle.dumps(resolve(name))) == resolve(name)


@pytest.mark.parametrize("attribute", ["decorated", "plain", "Longer", "instance", "holds_a_lambda"])
def test_a_file_is_named_by_its_path(checks, attribute):
    resolved = resolve(f"{checks}:{attribute}")
    assert resolved("gold!", "gold").score == (0.0 if attribute == "decorated" else 1.0)


def test_a_relative_path_is_pickled_as_an_absolute_one(checks, monkeypatch):
    monkeypatch.chdir(checks.parent)
    pickled = pickle.dumps(resolve("checks.py:plain"))
    monkeypatch.chdir("/")
    assert pickle.loads(pickled)("gold!", "gold").passed


def test_a_verifier_from_a_file_travels_to_a_spawned_process(checks):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        verdict = pool.apply(resolve(f"{checks}:holds_a_lambda"), ("a", "b"))
    assert verdict == Verdict(1.0, Reason.MATCH)


def test_a_module_is_named_by_its_import_path(on_path):
    copy = pickle.loads(pickle.dumps(resolve(f"{on_path}:decorated")))
    assert (copy.name, copy.version, copy("a", "a").score) == ("decorated", "7", 1.0)


def test_an_entry_point_of_an_installed_package(on_path, monkeypatch):
    point = EntryPoint("starts", f"{on_path}:plain", registry.ENTRY_POINT_GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [point])
    assert resolve("starts")("gold!", "gold").passed
    assert available()["starts"] == f"entry point ({on_path}:plain)"
    assert fingerprint("starts").startswith("plain@1+")


def test_an_edited_file_has_another_fingerprint_and_another_behaviour(checks):
    name = f"{checks}:plain"
    before = fingerprint(name)
    assert before.startswith("plain@1+")
    assert fingerprint(name) == before
    checks.write_text(CHECKS.replace("startswith", "endswith"))
    assert fingerprint(name) != before
    assert not resolve(name)("gold!", "gold").passed


def test_a_built_in_has_its_version_for_a_fingerprint():
    assert fingerprint("exact") == "exact@9"


def test_errors_say_what_was_tried_and_what_exists(checks, tmp_path):
    assert (
        "choice, code, exact, format, length, math, math_verify, numeric, regex. Did you mean 'math'?"
        in resolve_error("maths")
    )
    assert "path/to/file.py:object" in resolve_error("zzzzzz")
    assert "Did you mean 'checks.py'?" in resolve_error(f"{tmp_path}/cheks.py:plain")
    assert "Did you mean 'plain'?" in resolve_error(f"{checks}:plein")
    assert "is a int, not a verifier" in resolve_error(f"{checks}:limit")
    assert "without arguments" in resolve_error(f"{checks}:Needy")
    assert "no module 'no_such_package'" in resolve_error("no_such_package.checks:f")


def test_a_file_that_does_not_load_says_where(tmp_path):
    (tmp_path / "bad.py").write_text("x = 1\ny = x / 0\n")
    assert "ZeroDivisionError: division by zero" in (message := resolve_error(f"{tmp_path}/bad.py:f"))
    assert "line 2" in message
    (tmp_path / "worse.py").write_text("def f(:\n")
    assert "SyntaxError" in resolve_error(f"{tmp_path}/worse.py:f")
    (tmp_path / "needs.py").write_text("import no_such_package\n")
    assert "No module named 'no_such_package'" in resolve_error(f"{tmp_path}/needs.py:f")


def test_a_verifier_object_that_returns_no_verdict_is_reported(checks):
    verdict = resolve(f"{checks}:Broken")("a", "b")
    assert (verdict.score, verdict.reason) == (None, Reason.VERIFIER_ERROR)
    assert "returned float" in verdict.evidence["error"]


@pytest.mark.parametrize(
    ("name", "gold", "expected"),
    [("math", "\\frac12", "\\boxed{\\frac12}"), ("choice", "(B) red", "\\boxed{B}"), ("exact", "red", "red")],
)
def test_gold_passes_its_own_verifier(name, gold, expected):
    built_in = resolve(name)
    assert gold_response(built_in, gold, "because") == expected
    assert built_in(expected, gold).passed


def test_gold_response_of_verifiers_that_are_not_built_in(checks):
    assert gold_response(resolve(f"{checks}:Longer"), "gold", None) == "gold!"
    assert gold_response(resolve(f"{checks}:plain"), "gold", None) == "gold"
    assert gold_response(verifier(lambda r, g: True), "gold") == "gold"
    assert gold_response(resolve("math"), None) is None
