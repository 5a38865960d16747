"""The check of the contract: good verifiers keep it, and each way of breaking it is found."""

from __future__ import annotations

import os
import threading
from functools import cache
from pathlib import Path

import pytest

from truegold.verifiers import ConfigError, SetupError, Verdict
from truegold.verifiers.audit import assert_contract, check
from truegold.verifiers.audit.contract import CheckResult
from truegold.verifiers.audit.probe import VerifierProbe
from truegold.verifiers.verdict import Reason

EXAMPLE = Path(__file__).parents[3] / "examples" / "custom_verifier.py"

HEAD = "import subprocess, sys, time\nfrom truegold.verifiers import verifier\n\n@verifier\n"

BROKEN = """
import asyncio, os, random, re, signal, time
from truegold.verifiers import Reason, Verdict, verifier

@verifier
def raises(response, gold):
    raise KeyError("oops")

@verifier
def sleeps(response, gold):
    while len(response) > 200_000:
        time.sleep(0.1)
    return bool(gold) and response == gold

@verifier
def burns(response, gold):
    while len(response) > 200_000:
        pass
    return bool(gold) and response == gold

@verifier
def crashes(response, gold):
    if len(response) > 200_000:
        os._exit(7)
    return bool(gold) and response == gold

@verifier
def eats(response, gold):
    held = bytearray(2**33) if len(response) > 200_000 else b""
    return bool(gold) and response == gold

@verifier
def dice(response, gold):
    return bool(gold) and response == gold and random.random() < 0.5

SEED = random.random()

@verifier
def by_process(response, gold):
    return Verdict(float(bool(gold) and response == gold), Reason.MATCH, str(SEED))

SEEN = [None]

@verifier
def shared(response, gold):
    SEEN[0] = gold
    time.sleep(0.0005)
    return bool(gold) and SEEN[0] == response

@verifier
def alarmed(response, gold):
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    return bool(gold) and response == gold

@verifier
def looping(response, gold):
    async def judge():
        return bool(gold) and response == gold
    task = judge()
    try:
        return asyncio.run(task)
    finally:
        task.close()

@verifier
def sets(response, gold):
    return Verdict(float(bool(gold) and response == gold), Reason.MATCH, evidence={"seen": {1, 2}})

@verifier
def evaluates(response, gold):
    if response == gold:
        return bool(gold)
    try:
        return "__import__" in response and eval(response) == gold
    except Exception:
        return False

@verifier
def pays_no_gold(response, gold):
    return not gold or response == gold

@verifier
def credulous(response, gold):
    return bool(gold) and (response == gold or "^{" in response)

@verifier
def picky(response, gold):
    return bool(gold) and response == gold and gold != "42"

@verifier
def loads_late(response, gold):
    if "\\\\int" in response and not LOADED:
        LOADED.append(sum(n % 7 for n in range(12_000_000)))
    return bool(gold) and response == gold

LOADED = []

@verifier
def says_yes(response, gold):
    return True

class SaysNo:
    name, version = "says_no", "1"
    def __call__(self, response, gold, *, problem=None, info={}):
        return Verdict(0.0, Reason.MISMATCH)
    def gold_response(self, gold, solution):
        return None

def value(text):
    match = re.match(r"\\\\sum_\\{(\\w)=1\\}\\^\\{(\\d+)\\}(.*)", text)
    if match is None:
        return 1
    return sum(value(match[3]) for _ in range(int(match[2])))

@verifier
def sums_naively(response, gold):
    answer = re.sub(r"^The answer is |\\\\boxed{|}?\\.$", "", response)
    return bool(gold) and (answer == gold or str(value(answer)) == gold)

class NotAVerdict:
    name, version = "not_a_verdict", "1"
    def __call__(self, response, gold, *, problem=None, info={}):
        return response == gold
"""

FINDINGS = {
    "raises": ("gold passes itself", "KeyError: 'oops'"),
    "sleeps": ("stands hostile answers", "no verdict within 1 s"),
    "burns": ("stands hostile answers", "beyond 0.5 s of CPU time"),
    "crashes": ("stands hostile answers", "exited with status 7"),
    "eats": ("stands hostile answers", "MemoryError"),
    "dice": ("deterministic", "then"),
    "by_process": ("same in a fresh process", "then"),
    "shared": ("safe in many threads", "then"),
    "alarmed": ("works in a thread", "signal only works in main thread"),
    "looping": ("works in asyncio", "running event loop"),
    "sets": ("evidence is JSON", "not JSON serializable"),
    "evaluates": ("stands hostile answers", "ran the answer as code"),
    "pays_no_gold": ("stands a missing gold", "full score"),
    "credulous": ("stands hostile answers", "full score for a wrong answer"),
    "picky": ("gold passes itself", "'42' got 0.0"),
    "says_yes": ("tells wrong from right", "accepts every response"),
    "SaysNo": ("tells wrong from right", "refuses every response"),
    "sums_naively": ("stands hostile answers", "four nested sums: was stopped after 0.5 s of CPU time"),
    "NotAVerdict": ("gold passes itself", "returned bool"),
}


@pytest.fixture(scope="module")
def broken(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("broken") / "broken.py"
    path.write_text(BROKEN)
    return path


@pytest.mark.parametrize("name", ["math", "choice", "exact"])
def test_a_built_in_keeps_the_contract_on_ordinary_answers(name: str) -> None:
    contract = {result.name: result for result in check(name)}
    hostile = {"stands hostile answers", "stands hostile golds"}  # Their cost has other tests.
    assert [result for result in contract.values() if not result.ok and result.name not in hostile] == []


def test_the_example_keeps_the_contract() -> None:
    assert_contract(f"{EXAMPLE}:unit_price", golds=["2.50 USD/kg", "$3/l"])


@cache
def contract_of(path: Path, name: str) -> dict[str, CheckResult]:
    wall_s = 30.0 if name in ("burns", "sums_naively") else 1.0  # CPU time is to run out first here.
    return {result.name: result for result in check(f"{path}:{name}", cpu_s=0.5, wall_s=wall_s)}


LONG = ("eats", "burns", "credulous", "picky", "NotAVerdict", "SaysNo", "sums_naively")
"""Verifiers that break a line of the contract that another one here breaks too: for `make test-all`."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long_run] * (name in LONG)) for name in FINDINGS]
)
def test_each_way_of_breaking_the_contract_is_found(broken: Path, name: str) -> None:
    line, words = FINDINGS[name]
    contract = contract_of(broken, name)
    assert contract[line].ok is False
    assert any(words in finding for finding in contract[line].findings)


@pytest.mark.parametrize("name", ["sleeps", "crashes", "sets", "by_process", "alarmed"])
def test_a_verifier_is_blamed_for_nothing_else(broken: Path, name: str) -> None:
    line = FINDINGS[name][0]
    also = {
        "alarmed": {"safe in many threads"},
        "sleeps": {"stands hostile golds"},
        "crashes": {"stands hostile golds"},
    }
    failed = {result.name for result in contract_of(broken, name).values() if result.ok is False}
    assert line in failed and failed <= {line} | also.get(name, set())


def test_what_is_loaded_on_first_use_is_no_cost_of_a_verdict(broken: Path) -> None:
    with VerifierProbe(f"{broken}:loads_late") as probe:
        once = probe.judge("\\int", "5").cpu_s
        assert probe.judge("\\int", "5").cpu_s < once / 5
    contract = {result.name: result for result in check(f"{broken}:loads_late", cpu_s=once / 1.3)}
    assert contract["stands hostile answers"].ok


@pytest.mark.long_run
def test_many_hangs_end_the_check_early(broken: Path) -> None:
    path = broken.with_name("always.py")
    path.write_text(HEAD + "def hangs(response, gold):\n    time.sleep(600)\n")
    contract = {result.name: result for result in check(f"{path}:hangs", wall_s=0.2)}
    assert any("too many processes lost" in finding for finding in contract["stands hostile answers"].findings)


class Locked:
    name, version = "locked", "1"

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def __call__(self, response, gold, *, problem=None, info=None) -> Verdict:
        return Verdict(float(response == gold), Reason.MATCH)


def test_an_object_that_cannot_be_pickled_is_a_finding_and_no_crash() -> None:
    contract = check(Locked())
    assert [result.name for result in contract if result.ok is False] == ["picklable"]
    assert "cannot pickle" in contract[0].findings[0]


def test_without_a_gold_that_fits_it_is_said_what_was_not_checked() -> None:
    contract = {result.name: result for result in check(f"{EXAMPLE}:unit_price")}
    assert contract["deterministic"].ok is None and "pass golds" in contract["deterministic"].detail
    with pytest.raises(AssertionError, match=r"deterministic: not checked.*pass golds"):
        assert_contract(f"{EXAMPLE}:unit_price")


def test_a_verifier_that_heeds_no_gold_is_not_blamed_for_paying(broken: Path) -> None:
    path = broken.with_name("form.py")
    path.write_text(HEAD + "def short(response, gold):\n    return len(response) < 10**7\n")
    contract = {result.name: result for result in check(f"{path}:short")}
    assert contract["tells wrong from right"].ok is None
    assert not [result for result in contract.values() if result.ok is False]


def test_the_assertion_lists_every_broken_line(broken: Path) -> None:
    with pytest.raises(AssertionError) as caught:
        assert_contract(f"{broken}:picky")
    assert "breaks 1 of 13 lines" in str(caught.value)
    assert "'42' got 0.0 (mismatch)" in str(caught.value)


def test_arguments_reach_the_verifier() -> None:
    with VerifierProbe("math", info={"decimals": 2}) as probe:
        assert probe.judge("\\boxed{0.333}", "1/3").paid
    with VerifierProbe("math") as probe:
        assert not probe.judge("\\boxed{0.333}", "1/3").paid


def test_a_name_that_spells_no_verifier_is_the_users_mistake() -> None:
    with pytest.raises(ConfigError, match="no verifier 'mat'"):
        check("mat")
    with pytest.raises(ConfigError, match="not a verifier"):
        check(lambda response, gold: True)  # type: ignore[arg-type]


def test_a_probe_that_does_not_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truegold.verifiers.audit.probe._CHILD_MODULE", "truegold.verifiers.audit.no_such_module")
    with pytest.raises(SetupError, match=r"'math' did not start: .*No module named"):
        check("math")


def test_a_verifier_that_cannot_be_imported_again_says_why(tmp_path: Path) -> None:
    path = tmp_path / "once.py"
    path.write_text(
        "import os, sys\nif os.environ.get('IMPORTED'):\n    sys.exit('no server')\nos.environ['IMPORTED'] = '1'\n"
        "def once(response, gold):\n    return response == gold\n"
    )
    try:
        contract = {result.name: result for result in check(f"{path}:once")}
    finally:
        os.environ.pop("IMPORTED", None)
    assert contract["picklable"].ok is False
    assert "SystemExit: no server" in contract["picklable"].findings[0]


def test_work_done_in_a_child_process_counts_as_cost(tmp_path) -> None:
    path = tmp_path / "delegates.py"
    burn = "import time\\nwhile time.process_time() < 0.4: pass"
    run = f"    subprocess.run([sys.executable, '-P', '-c', '{burn}'], check=True)\n"
    path.write_text(HEAD + "def delegates(response, gold):\n" + run + "    return response == gold\n")
    with VerifierProbe(f"{path}:delegates") as probe:
        assert probe.judge("5", "5").cpu_s > 0.3  # The child's time is counted in ticks.


def test_a_lost_process_is_replaced(broken: Path) -> None:
    with VerifierProbe(f"{broken}:crashes") as probe:
        assert probe.judge("5", "5").paid
        lost = probe.judge("x" * 300_000, "5")
        assert lost.process_lost and "exited with status 7" in str(lost.failure)
        assert probe.judge("5", "5").paid
