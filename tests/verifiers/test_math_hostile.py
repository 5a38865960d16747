"""Hostile strings against the math verifier: nothing escapes, and no wrong verdict, wherever it runs.

What each costs is measured by `benchmarks/math_verifier.py`: a time in a test would only say how busy the machine is.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from tables import rows

from truegold.verifiers import MathVerifier, Verdict, equivalent
from truegold.verifiers.audit import HOSTILE, HostileCase

LIMITED = ("limit", "timeout")


def is_right(case: HostileCase, verdict: Verdict) -> bool:
    """Tell whether a verdict is the expected one, or a limit."""
    if case.expected == "any" or verdict.reason in LIMITED:
        return True
    return (verdict.score == 1.0) == (case.expected == "match")


@rows("case", HOSTILE)
def test_a_hostile_answer_gets_the_right_verdict_or_a_limit(case: HostileCase) -> None:
    verdict = equivalent(case.answer, gold=case.gold)
    assert is_right(case, verdict), verdict
    MathVerifier()(case.answer, case.gold)
    MathVerifier()(f"So it is $\\boxed{{{case.answer}}}$.", case.gold)


def test_several_threads_give_the_verdicts_of_one() -> None:
    alone = [equivalent(case.answer, gold=case.gold) for case in HOSTILE]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda case: equivalent(case.answer, gold=case.gold), HOSTILE)) == alone


def test_an_asyncio_task_gives_the_same_verdicts() -> None:
    async def verdicts() -> list[Verdict]:
        return [equivalent(case.answer, gold=case.gold) for case in HOSTILE]

    assert asyncio.run(verdicts()) == [equivalent(case.answer, gold=case.gold) for case in HOSTILE]
    assert threading.current_thread() is threading.main_thread()


@pytest.mark.real
@pytest.mark.filterwarnings("ignore")
def test_a_ray_worker_gives_the_same_verdicts() -> None:
    ray = pytest.importorskip("ray", reason="the extra `ray` is not installed")
    ray.init(num_cpus=1, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    try:

        @ray.remote
        def remote_verdicts(verifier: MathVerifier) -> list[tuple[float | None, str]]:
            from truegold.verifiers.audit import HOSTILE

            verdicts = [verifier(f"\\boxed{{{case.answer}}}", case.gold) for case in HOSTILE]
            return [(verdict.score, str(verdict.reason)) for verdict in verdicts]

        in_worker = ray.get(remote_verdicts.remote(MathVerifier()), timeout=300)
    finally:
        ray.shutdown()
    in_process = [MathVerifier()(f"\\boxed{{{case.answer}}}", case.gold) for case in HOSTILE]
    assert in_worker == [(verdict.score, str(verdict.reason)) for verdict in in_process]
