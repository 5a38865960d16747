"""Measures the cases that vetting proposes for weak tests: right programs that they reject, wrong ones that they catch.

    python benchmarks/code_vet_mends.py DATA_DIR [--json FILE] [--write PAGE.md] [--limit N] [--only SET ...]

DATA_DIR holds EvalPlus' humanevalplus.jsonl and mbppplus.jsonl, model programs for HumanEval with their verdicts by
HumanEval+ (codet_labelled.jsonl) and planted faults (humaneval_mutants.jsonl), and MBPP's solutions (mbpp.jsonl). A
weak suite has only the first `WEAK` cases of a suite; the worked solution is that of EvalPlus. Reported are

    outside         proposed cases whose input violates EvalPlus' contract of the problem
    false refusals  programs that pass HumanEval+ or MBPP+, but fail a proposed case
    caught          programs that fail HumanEval+ or MBPP+ and pass the weak suite, but fail a proposed case; for MBPP,
                    faults planted in MBPP's solution
"""

from __future__ import annotations

import argparse
import ast
import textwrap
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import code_evalplus
import code_rows
from code_rows import Record
from code_vet import some
from math_tables import table
from math_verifier import machine
from publishing import publish, say

from truegold.verifiers.audit.suites import PROPOSED, SuiteFinding, VetOptions, Vetting, add_cases, vet
from truegold.verifiers.audit.suites.mutants import mutants_of
from truegold.verifiers.audit.suites.trials import Bench
from truegold.verifiers.code.suite.reading import read_suite
from truegold.verifiers.sandbox import close_all

WEAK = 2
"""The cases that a weak suite has."""
PROGRAMS = 20
"""Programs of each worth for one problem."""
STRICT = VetOptions(min_kill_rate=1.0)
"""Cases are proposed for every suite that lets a fault through that shows on an input."""
SETS = ("mbppplus", "humanevalplus")


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem with its whole suite, and other programs whose worth that suite says."""

    key: str
    record: Record
    whole: dict[str, Any]
    others: Sequence[str]


@dataclass(slots=True)
class Outcome:
    """The result for one problem."""

    key: str
    counts: Counter[str] = field(default_factory=Counter)
    refused: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)


def problems(name: str, records: dict[str, list[Record]], limit: int | None, jobs: int) -> list[Problem]:
    """Return the problems of a set, with the answers of EvalPlus' solutions."""
    chosen = some(records[name], limit)
    rows, lost = code_evalplus.rows(name, chosen, jobs)
    say(f"{name}: {len(rows)} problems, {len(lost)} without answers")
    others: defaultdict[str, list[str]] = defaultdict(list)
    for record in [*records.get("codet", []), *records.get("mutants", [])]:
        others[record["task_id"]].append(record["code"])
    for record in records.get("mbpp", []):
        source = record["code"].replace("\r\n", "\n")
        others[f"Mbpp/{record['task_id']}"] = [source, *(mutant.source for mutant in mutants_of(source, PROGRAMS, 1))]
    by_key = {record["task_id"]: record for record in chosen}
    # Problems with a rule of their own are judged by code, whose cases cannot be taken apart.
    made = [(row, dict(row.tests)) for row in rows if row.tests["type"] == "calls"]
    return [Problem(row.key, by_key[row.key], tests, others[row.key]) for row, tests in made]


def measure_problem(problem: Problem) -> Outcome:
    """Vet the weak suite of a problem, and judge the proposed cases."""
    outcome = Outcome(problem.key)
    weak = {**problem.whole, "cases": problem.whole["cases"][:WEAK]}
    reference = code_evalplus.program(problem.record)
    vetting = vet({"tests": weak}, prompt=problem.record["prompt"], references=[reference], options=STRICT)
    outcome.counts["suites"] += 1
    cases = proposed(vetting)
    if not cases:
        return outcome
    outcome.counts.update({"mended": 1, "cases": len(cases)})
    contract = problem.record.get("contract") or ""
    alone = [Bench(read_suite(add_cases({"tests": {**weak, "cases": []}}, [case]))) for case in cases]
    if contract:
        checked = _with_contract(reference, problem.record["entry_point"], contract)
        broken = [case for case, bench in zip(cases, alone, strict=True) if not bench.run(checked).passed]
        outcome.counts["contracts"] += len(cases)
        outcome.counts["outside"] += len(broken)
        outcome.outside += broken
    whole, before = Bench(read_suite({"tests": problem.whole})), Bench(read_suite({"tests": weak}))
    taken: Counter[bool] = Counter()
    for program in dict.fromkeys(problem.others):
        if not before.run(program).passed:
            continue
        is_right = whole.run(program).passed
        if taken[is_right] == PROGRAMS:
            continue
        taken[is_right] += 1
        failed = [case for case, bench in zip(cases, alone, strict=True) if not bench.run(program).passed]
        outcome.counts["right" if is_right else "wrong"] += 1
        outcome.counts["refused" if is_right else "caught"] += bool(failed)
        outcome.refused += failed if is_right else []
    outcome.counts["problems with right"] += bool(taken[True])
    outcome.counts["problems that refuse"] += bool(outcome.refused)
    outcome.counts["wrong cases"] += len(set(outcome.refused))
    return outcome


def proposed(vetting: Vetting) -> list[str]:
    """Return the cases that a vetting proposes."""
    findings: list[SuiteFinding] = [finding for finding in vetting.findings if PROPOSED in finding.evidence]
    return next((list(each.evidence[PROPOSED]) for each in findings), [])


def _with_contract(program: str, name: str, contract: str) -> str:
    """Return a program whose function checks its arguments first, and not those of its calls of itself."""
    functions = [node for node in ast.parse(program).body if isinstance(node, ast.FunctionDef) and node.name == name]
    arguments = functions[-1].args
    passed_on = ", ".join(argument.arg for argument in arguments.args)
    lines = "\n".join(line for line in contract.expandtabs().splitlines() if line.strip())
    checks = textwrap.indent(textwrap.dedent(lines), "    ")
    head = f"_space = {{}}\nexec({program!r}, _space)\n\ndef {name}({ast.unparse(arguments)}):"
    return f"{head}\n{checks}\n    return _space[{name!r}]({passed_on})\n"


def _report(measured: Mapping[str, Any]) -> str:
    names = ("suites", "mended", "cases", "contracts", "outside", "right", "refused", "wrong", "caught")
    rows = [[name, *(f"{counts.get(each, 0):,}" for each in names)] for name, counts in measured["sets"].items()]
    names_of_columns = (
        "weak suites",
        "with a proposal",
        "cases",
        "of a contract",
        "outside",
        "right programs",
        "refused",
    )
    text = table(["set", *names_of_columns, "wrong programs that pass", "caught"], rows)
    head = f"Measured on {measured['machine']}; {WEAK} cases a suite, at most {measured['limit']} problems, by a hash."
    return f"{head}\n\n{text}"


def main() -> None:
    """Measure the sets that the command line names, and write it down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="DATA_DIR")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--only", nargs="+", default=list(SETS), choices=SETS, metavar="SET")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    records, _ = code_rows.load(arguments.data)
    measured: dict[str, Any] = {"machine": machine(), "limit": arguments.limit, "sets": {}}
    for name in arguments.only:
        began = time.monotonic()
        total: Counter[str] = Counter()
        shown: list[str] = []
        chosen = problems(name, records, arguments.limit, arguments.jobs)
        with ThreadPoolExecutor(arguments.jobs) as pool:
            for done, outcome in enumerate(pool.map(measure_problem, chosen), 1):
                total += outcome.counts
                shown += [f"{outcome.key}: a right program fails {case}" for case in dict.fromkeys(outcome.refused)]
                shown += [f"{outcome.key}: outside of the contract {case}" for case in outcome.outside]
                say(f"{name}, {done} of {len(chosen)}: {dict(total)}")
        measured["sets"][name] = {**total, "seconds": round(time.monotonic() - began), "shown": shown}
        close_all()
    publish(measured, _report(measured), arguments.json, arguments.write, "Cases proposed for weak tests")


if __name__ == "__main__":
    main()
