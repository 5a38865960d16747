"""Checks that verdicts on the same rows are equal in different environments.

A fixed sample of all sets (chosen by a hash, hostile programs included) is judged by this process, and then by child
processes: in each sandbox tier, as a user without privileges, with a seccomp filter that forbids namespaces, next to
four busy processes, in eight threads, in Ray workers, and through `verify_batch`. The sample has only programs that
need no packages, because the unprivileged user's interpreter may have none, and none that try to exhaust the machine.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import code_hostile
import code_rows
from code_judging import judge_all, verifier
from code_rows import Record, Row

from truegold.verifiers.sandbox import Tier, possible_tiers

Say = Callable[[str], None]
Seen = list[tuple[float | None, str, str]]
"""Score, reason and the evidence without the tier, of each row."""

ROWS_OF_SET = 12
HOSTILE_ROWS = 24
BUSY_PROCESSES = 4
CHILD_S = 600.0
ORDINARY_USER = 1000
INSTALLED = re.compile(r"numpy|pandas|scipy|sortedcontainers|SortedList|sympy|networkx|torch")
CHILD = Path(__file__).with_name("code_environments_child.py")


def sample(records: Mapping[str, list[Record]], plus: Mapping[str, list[Row]]) -> list[Row]:
    """About 130 rows, always the same."""
    sets: list[list[Row]] = [rows for name in plus if (rows := list(plus[name]))]
    readers: dict[str, Callable[[list[Record]], list[Row]]] = {
        "humaneval": code_rows.humaneval,
        "mbpp": code_rows.mbpp,
        "codecontests": code_rows.codecontests,
        "leetcode": code_rows.leetcode,
        "quixbugs": lambda quixbugs_records: code_rows.quixbugs(quixbugs_records, "buggy"),
    }
    sets += [read(records[name]) for name, read in readers.items() if name in records]
    if "humaneval" in records:
        tests = {record["task_id"]: code_rows.humaneval_tests(record) for record in records["humaneval"]}
        for name in ("codet", "mutants"):
            sets.append(code_rows.samples(name, records.get(name, []), tests, "base_pass", lambda _: True))
    chosen = [row for rows in sets for row in _first(rows, ROWS_OF_SET)]
    hostile = code_hostile.rows(records.get("hostile", []))
    mild = [row for record, row in hostile if record["category"] != code_hostile.EXHAUSTING]
    return chosen + _first(mild, HOSTILE_ROWS)


def _first(rows: Sequence[Row], count: int) -> list[Row]:
    alone = [row for row in rows if not INSTALLED.search(row.program + str(row.tests.get("prelude", "")))]
    return sorted(alone, key=lambda row: hashlib.sha256(f"{row.set_name}{row.key}".encode()).digest())[:count]


def measure(rows: Sequence[Row], jobs: int, say: Say) -> dict[str, Any]:
    """Return the number of differing verdicts, by environment."""
    possible = possible_tiers()
    by_tier = {tier: None if why else _here(rows, tier, jobs) for tier, why in possible.items() if tier != Tier.WEAK}
    reference = by_tier.get(Tier.FULL) or by_tier.get(Tier.CONTAINER)
    if reference is None:
        return {"not_run": "; ".join(f"{tier}: {why}" for tier, why in possible.items() if why)}
    who = "root" if os.geteuid() == 0 else "this user"
    compared = []
    for here, seen in by_tier.items():
        compared.append(_compared(who, str(here), rows, reference, seen if seen else str(possible[here])))
    for name, tier, options in _environments(who):
        if tier and possible[Tier(tier)] is not None:
            seen_there: Seen | str = str(possible[Tier(tier)])
        else:
            with _busy(BUSY_PROCESSES if "busy" in name else 0):
                seen_there = _child(rows, tier, options)
        compared.append(_compared(name, tier or "container", rows, reference, seen_there))
        say(f"environment {name}, {compared[-1]['tier']}: {compared[-1]}")
    return {"rows": len(rows), "environments": compared}


def _environments(who: str) -> list[tuple[str, str, list[str]]]:
    """Name, tier, and what the child is told."""
    user = [("an ordinary user", str(tier), ["--user"]) for tier in (Tier.FULL, Tier.CONTAINER)]
    return [
        *(user if who == "root" else []),
        ("no namespaces, by a seccomp filter", "", ["--no-namespaces"]),
        (f"{BUSY_PROCESSES} busy processes beside it", "full", []),
        (f"{BUSY_PROCESSES} busy processes beside it", "container", []),
        ("8 threads", "full", ["--threads", "8"]),
        ("8 threads", "container", ["--threads", "8"]),
        ("Ray workers", "full", ["--ray"]),
        ("`verify_batch`, 2 processes", "full", ["--batch"]),
    ]


def seen_of(score: float | None, reason: str, evidence: Mapping[str, Any]) -> tuple[float | None, str, str]:
    """Return the compared fields of a verdict: score, reason, and evidence without the tier."""
    rest = {key: value for key, value in evidence.items() if key != "tier"}
    return score, reason, json.dumps(rest, sort_keys=True, default=str)


def _here(rows: Sequence[Row], tier: Tier, jobs: int) -> Seen:
    return [seen_of(it.score, it.reason, it.evidence) for it in judge_all(rows, verifier(tier), jobs)]


def _compared(name: str, tier: str, rows: Sequence[Row], reference: Seen, seen: Seen | str) -> dict[str, Any]:
    if isinstance(seen, str):
        return {"name": name, "tier": tier, "not_run": seen}
    pairs = list(zip(rows, reference, seen, strict=True))
    differing = [
        {"set": row.set_name, "id": row.key, "first": list(first[:2]), "here": list(second[:2])}
        for row, first, second in pairs
        if first[:2] != second[:2] and (row.may_be_read or row.set_name == "hostile")
    ]
    return {
        "name": name,
        "tier": tier,
        "rows": len(seen),
        "differing": sum(first[:2] != second[:2] for _, first, second in pairs),
        "unjudged": sum(second[0] is None for second in seen),
        "other_evidence": sum(first != second for _, first, second in pairs),
        "which": differing,
    }


def _child(rows: Sequence[Row], tier: str, options: Sequence[str]) -> Seen | str:
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.writelines(json.dumps({"response": row.response, "info": row.info}) + "\n" for row in rows)
        file.flush()
        Path(file.name).chmod(0o644)
        python = _python_for_everybody() if "--user" in options else sys.executable
        if python is None:
            return "no interpreter of this version that an ordinary user may run"
        # `addsitedir` finds truegold for an interpreter that is not the environment's own.
        boot = (
            f"import runpy, site, sys; site.addsitedir({sysconfig.get_path('purelib')!r}); "
            f"sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
        )
        environment = {**os.environ, "TRUEGOLD_SANDBOX": tier, "PYTHONPATH": str(CHILD.parent), "HOME": "/tmp"}
        command = [python, "-c", boot, str(CHILD), file.name, *options]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, env=environment, cwd="/", timeout=CHILD_S, check=False
            )
        except subprocess.TimeoutExpired:
            return f"no end after {CHILD_S:.0f} s"
    if done.returncode:
        return done.stderr.strip().rpartition("\n")[2][:200] or f"exit status {done.returncode}"
    verdicts = json.loads(done.stdout.strip().rpartition("\n")[2])
    return [(score, reason, evidence) for score, reason, evidence in verdicts]


def _python_for_everybody() -> str | None:
    """An interpreter of this version that an ordinary user may run: ours may lie in root's home folder."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        become = f"os.setgroups([]); os.setgid({ORDINARY_USER}); os.setuid({ORDINARY_USER})"
        command = [candidate, "-c", f"import os; {become}; os.execv({candidate!r}, [{candidate!r}, '-c', ''])"]
        with contextlib.suppress(OSError):
            if subprocess.run(command, capture_output=True, check=False, cwd="/").returncode == 0:
                return candidate
    return None


@contextlib.contextmanager
def _busy(processes: int) -> Iterator[None]:
    """So many processes that never wait."""
    loops = [subprocess.Popen([sys.executable, "-P", "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
