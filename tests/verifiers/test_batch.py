"""Batches of rows, judged in several processes."""

import itertools
import os
import re
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from truegold.verifiers import ConfigError, GuardError, Item, Reason, SetupError, verify_batch
from truegold.verifiers.running import batch
from truegold.verifiers.running.batch import BatchVerifier, verify_batch_timed

CHECKS = """
import os, signal, sys, time
from truegold.verifiers import SetupError, verifier

@verifier
def risky(response, gold):
    if response == "exit":
        os._exit(7)
    if response == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if response == "hang":
        while True:
            time.sleep(0.05)
    if response == "raise":
        raise KeyError("oops")
    if response == "print":
        print("noise on stdout")
        sys.stdin.read()
    if response == "setup":
        raise SetupError("no server.", "Start one.")
    return response == gold

@verifier
def is_other_process(response, gold):
    return float(os.getpid() != int(response))

calls = 0

@verifier
def is_nth_call(response, gold):
    global calls
    if response == "exit":
        os._exit(7)
    calls += 1
    return calls == int(response)
"""


@pytest.fixture
def risky(tmp_path):
    path = tmp_path / "checks.py"
    path.write_text(CHECKS)
    return f"{path}:risky"


@pytest.fixture
def batches():
    with closing(BatchVerifier(workers=2)) as verifier:
        yield verifier


def counted(risky, *numbers):
    """Return rows that are right if they are judged as so manieth by their process."""
    return [Item(str(number), "", risky.replace("risky", "is_nth_call")) for number in numbers]


def number_rows(count):
    """Return rows of which every third is answered wrongly."""
    return [Item(f"\\boxed{{{n}}}", str(n if n % 3 else n + 1)) for n in range(count)]


EXPECTED_SCORES = [1.0 if n % 3 else 0.0 for n in range(300)]


@pytest.mark.parametrize(("workers", "chunk"), [(0, 256), (1, 256), (2, 7), (2, 1000), (3, 50)])
def test_verdicts_come_in_order_whatever_the_workers(workers, chunk):
    assert [v.score for v in verify_batch(number_rows(300), workers, chunk)] == EXPECTED_SCORES


def test_workers_do_not_change_a_verdict():
    rows = [
        Item("\\boxed{5 or 6}", "5"),
        Item("\\boxed{(x-1)(x+1)}", "x^2-1"),
        Item("Answer: B", "B", "choice"),
        Item("\\boxed{0.333}", "1/3", verifier_args='{"decimals": 3}'),
        Item("\\boxed{\ud800}", "5"),
        Item("x", None, "exact"),
        Item("x", "x", "exact", "[1]"),
        Item("x", "x", "exact", "{"),
    ]
    assert list(verify_batch(rows, workers=2)) == list(verify_batch(rows, workers=1))


def test_arguments_that_are_no_json_object_cost_their_row_only():
    verdicts = list(verify_batch([Item("x", "x", "exact", "[1]"), Item("x", "x", "exact")]))
    assert [v.reason for v in verdicts] == [Reason.VERIFIER_ERROR, Reason.MATCH]
    assert "not a JSON object" in verdicts[0].evidence["error"]


@pytest.mark.parametrize("row", [Item(None, "5"), Item("\\boxed{5}", b"5"), Item(b"5", "5")])  # type: ignore[arg-type]
def test_a_response_or_gold_that_is_no_text_costs_its_row_only(row):
    verdicts = list(verify_batch([row, Item("\\boxed{5}", "5")]))
    assert [verdict.score for verdict in verdicts] == [None, 1.0]
    assert re.search("must be a text.*this is", verdicts[0].evidence["error"])


def test_a_verifier_that_kills_its_process_loses_no_row(risky):
    responses = ["a", "exit", "b", "raise", "kill", "print", "c"] * 3
    verdicts = list(verify_batch([Item(r, r, risky) for r in responses], workers=2, chunk=4))
    for response, verdict in zip(responses, verdicts, strict=True):
        if response in {"exit", "kill", "raise"}:
            assert (verdict.score, verdict.reason) == (None, Reason.VERIFIER_ERROR)
        else:
            assert verdict.score == 1.0
    assert "exited with status 7" in verdicts[1].evidence["error"]
    assert verdicts[3].evidence["error"] == "KeyError: 'oops'"
    assert "ended by signal 9" in verdicts[4].evidence["error"]


def test_a_row_beyond_its_deadline_is_killed_and_the_others_are_judged(risky):
    responses = ["a", "hang", "b", "c"]
    verdicts = list(verify_batch([Item(r, r, risky) for r in responses], workers=2, item_deadline_s=1.0))
    assert [v.score for v in verdicts] == [1.0, None, 1.0, 1.0]
    assert verdicts[1].reason is Reason.TIMEOUT


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_a_users_verifier_is_never_judged_by_in_the_calling_process(risky, workers):
    row = Item(str(os.getpid()), None, risky.replace(":risky", ":is_other_process"))
    assert [v.score for v in verify_batch([row] * 5, workers=workers)] == [1.0] * 5


@pytest.mark.parametrize("workers", [0, 1])
def test_a_deadline_holds_for_rows_among_those_of_built_in_verifiers(risky, workers):
    rows = [*number_rows(3), Item("hang", "hang", risky), *number_rows(3)]
    verdicts = list(verify_batch(rows, workers=workers, chunk=2, item_deadline_s=0.5))
    assert [v.score for v in verdicts] == [*EXPECTED_SCORES[:3], None, *EXPECTED_SCORES[:3]]
    assert verdicts[3].reason is Reason.TIMEOUT


@pytest.mark.parametrize("workers", [0, 1])
def test_a_verifier_that_always_hangs_stops_the_batch_after_a_few_rows(risky, workers):
    rows = [Item("hang", str(problem), risky) for problem in range(300)]
    began = time.monotonic()
    with pytest.raises(GuardError, match=r"checks\.py:risky hangs: (8 of 8|9 of 9) verdicts took longer than 0\.2 s"):
        list(verify_batch(rows, workers=workers, item_deadline_s=0.2, max_timeouts=0.1))
    assert time.monotonic() - began < 60


def test_a_verifier_that_hangs_on_more_than_the_allowed_share_stops_the_batch(risky):
    rows = [Item("hang" if number % 4 == 3 else "a", str(number), risky) for number in range(64)]
    with pytest.raises(GuardError, match=r"hangs: 7 of 28 verdicts"):
        list(verify_batch(rows, workers=1, item_deadline_s=0.2, max_timeouts=0.1))


def test_one_problem_that_hangs_a_verifier_does_not_stop_the_others(risky):
    rows = [*[Item("hang", "5", risky)] * 8, *[Item("a", "a", risky)] * 100]
    scores = [v.score for v in verify_batch(rows, workers=1, item_deadline_s=0.1, max_timeouts=0.1)]
    assert scores == [None] * 8 + [1.0] * 100


def test_a_deadline_holds_for_a_single_row(risky):
    (verdict,) = verify_batch([Item("hang", "hang", risky)], item_deadline_s=0.5)
    assert (verdict.score, verdict.reason) == (None, Reason.TIMEOUT)


def test_a_few_rows_of_built_in_verifiers_start_no_process(monkeypatch):
    monkeypatch.setattr(batch, "VerifierPool", None)
    assert [v.score for v in verify_batch(number_rows(5))] == EXPECTED_SCORES[:5]


def test_rows_are_read_as_verdicts_are_taken():
    rows_read = 0

    def endless_rows():
        nonlocal rows_read
        for n in itertools.count():
            rows_read += 1
            yield Item(str(n), str(n), "exact")

    verdicts = verify_batch(endless_rows(), workers=2, chunk=10)
    assert all(next(verdicts).score == 1.0 for _ in range(25))
    assert rows_read <= 25 + 10 * 2 * 3
    verdicts.close()


def test_an_abandoned_batch_leaves_no_process_or_thread(risky):
    threads_before = threading.active_count()
    verdicts = verify_batch((Item(str(n), "", risky) for n in itertools.count()), workers=2, chunk=4)
    next(verdicts)
    verdicts.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("truegold-verify")]
    assert threading.active_count() <= threads_before + 1  # The spawner stays.


def test_it_works_from_a_thread():
    with ThreadPoolExecutor(1) as thread:
        scores = thread.submit(lambda: [v.score for v in verify_batch(number_rows(90), workers=2)]).result()
    assert scores == EXPECTED_SCORES[:90]


def test_a_misspelt_verifier_is_an_error_before_work_starts():
    with pytest.raises(ConfigError, match="Did you mean 'math'"):
        list(verify_batch([Item("5", "5", "maths")], workers=2))


def test_a_row_that_is_no_item_is_refused_by_its_number():
    with pytest.raises(ConfigError, match=r"row 2 is not an Item; it is tuple .* Type Item\(response, gold\)"):
        list(verify_batch(iter([Item("7", "7"), ("a", "b")])))


def test_an_error_of_the_machine_stops_the_batch(risky):
    with pytest.raises(SetupError, match=r"no server\. Start one\."):
        list(verify_batch([Item("setup", "x", risky)], workers=2))


def test_an_import_string_means_the_same_in_a_child(monkeypatch, tmp_path):
    (tmp_path / "checks_on_path.py").write_text(CHECKS)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    try:
        rows = [Item("a", "a", "checks_on_path:risky")] * 3
        assert [v.score for v in verify_batch(rows, workers=2)] == [1.0] * 3
    finally:
        sys.modules.pop("checks_on_path", None)


def test_a_process_that_cannot_start_is_a_setup_error(monkeypatch):
    monkeypatch.setattr(batch, "_CHILD_MODULE", "truegold.verifiers.no_such_module")
    with pytest.raises(SetupError, match=r"did not start: .*No module named"):
        list(verify_batch(number_rows(3), workers=2))


@pytest.mark.parametrize("arguments", [{"workers": -1}, {"chunk": 0}, {"item_deadline_s": 0}])
def test_impossible_arguments_are_refused(arguments):
    with pytest.raises(ConfigError, match="verify_batch"):
        verify_batch([], **arguments)


def test_nothing_in_nothing_out():
    assert list(verify_batch([])) == []
    assert list(verify_batch([], workers=2)) == []


@pytest.mark.parametrize("workers", [1, 2])
def test_the_cost_of_a_verdict_stands_beside_it_not_in_it(risky, workers):
    rows = [Item(r, "a", risky) for r in ["a", "b"]]
    timed_verdicts = list(verify_batch_timed(rows, workers=workers))
    assert [timed.verdict for timed in timed_verdicts] == list(verify_batch(rows, workers=workers))
    assert all(timed.cpu_ms >= 0 for timed in timed_verdicts)


def test_a_row_whose_process_died_or_was_killed_has_no_cost(risky):
    rows = [Item(r, r, risky) for r in ["a", "exit", "hang", "b"]]
    costs = [timed.cpu_ms for timed in verify_batch_timed(rows, workers=2, item_deadline_s=1.0)]
    assert [cost is None for cost in costs] == [False, True, True, False]


def test_single_verdicts_have_a_deadline_and_keep_their_process(risky, monkeypatch):
    with closing(BatchVerifier(workers=1, item_deadline_s=0.5)) as verifier:
        monkeypatch.setattr(batch, "_PROCESS", verifier)
        assert batch.verify_one(Item("hang", "hang", risky)).reason is Reason.TIMEOUT
        assert [batch.verify_one(row).score for row in counted(risky, 1, 2, 3)] == [1.0, 1.0, 1.0]
        assert batch.verify_one(Item("\\boxed{5}", "5")).score == 1.0


def test_what_a_verifier_remembers_is_there_for_the_next_batch(risky, batches):
    assert [verdict.score for verdict in batches.verify(counted(risky, 1, 2))] == [1.0, 1.0]
    assert [verdict.score for verdict in batches.verify(counted(risky, 3))] == [1.0]
    batches.close()
    assert [verdict.score for verdict in batches.verify(counted(risky, 1))] == [1.0]


def test_a_process_that_dies_or_is_late_is_replaced_for_the_next_batch(risky):
    with closing(BatchVerifier(workers=1, item_deadline_s=0.5)) as verifier:
        (verdict,) = verifier.verify(counted(risky, "exit"))
        assert verdict.reason is Reason.VERIFIER_ERROR
        (verdict,) = verifier.verify([Item("hang", "hang", risky)])
        assert verdict.reason is Reason.TIMEOUT
        assert [verdict.score for verdict in verifier.verify(counted(risky, 1))] == [1.0]


def test_a_batch_that_nobody_reads_to_its_end_costs_the_next_one_nothing(risky, batches):
    unread = batches.verify(Item(str(number), str(number), risky) for number in range(3000))
    assert next(unread).score == 1.0
    unread.close()
    rows = [Item(text, "b", risky) for text in "abc"]
    assert [verdict.score for verdict in batches.verify(rows)] == [0.0, 1.0, 0.0]


def test_threads_share_the_processes(risky, batches):
    rows = [[Item(str(number), str(shift), risky) for number in range(40)] for shift in range(6)]
    with ThreadPoolExecutor(6) as threads:
        judged = list(threads.map(lambda some: [verdict.score for verdict in batches.verify(some)], rows))
    assert judged == [[float(number == shift) for number in range(40)] for shift in range(6)]


def test_a_forked_process_starts_processes_of_its_own(risky, batches):
    list(batches.verify(counted(risky, 1)))
    kept = batches._pool
    batches._pid += 1
    assert [verdict.score for verdict in batches.verify(counted(risky, 1))] == [1.0]
    kept.close()
