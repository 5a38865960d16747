"""Plants faults into trainings of the tiny model, with and without guards, and runs healthy ones.

    truegold select examples/demo.yaml
    python benchmarks/guards.py faults runs/demo OUT [--only NAME ...] [--steps 30]
    python benchmarks/guards.py healthy runs/demo OUT --seeds 100 101 ... [--steps 200]
    python benchmarks/guards.py healthy runs/demo OUT --seeds 40 41 ... --prompts 4 8 16 --rate 1e-7 --steps 60
    python benchmarks/guards.py table OUT [--write PAGE.md]

A fault counts if the run without guards ends at least 10 points below the healthy run, or with a broken policy. `OUT`
has one JSON file for each run, so that an interrupted benchmark continues.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

from guard_faults import FAULTS, Fault, clock
from guard_runs import train
from guard_unforeseen import UNFORESEEN
from publishing import publish

from truegold.pipeline.running.disk import read_whole_lines
from truegold.train.guards.doctor import replay
from truegold.train.guards.run_log import ALARMS, read_log
from truegold.train.model import distributed

HARM = 0.10
"""Points of held-out pass rate by which a fault has to hurt to count."""
SIDES = ("guarded", "unguarded")
HEALTHY = Fault("healthy")
PROMPTS = 32
"""The demo's problems a step."""

LIMIT_S = 600
"""A run that takes longer, of about a minute, hangs."""


class HangsError(Exception):
    """A run that would not end."""


@contextmanager
def _time_limit() -> Iterator[None]:
    """Raise HangsError if the code within the context takes longer than any run."""

    def stop(*_: object) -> None:
        raise HangsError(f"still waiting after {LIMIT_S} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(LIMIT_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _without_patience() -> AbstractContextManager[Any]:
    """Wait for a locked operator as torch does, for ever."""
    return mock.patch.object(distributed, "PATIENCE_S", math.inf)


def run_fault(run: Path, out: Path, fault: Fault, guarded: bool, steps: int) -> None:
    """Train once with a fault and write the ending. Runs that are already written are not repeated."""
    slug = "-".join(fault.name.replace(",", "").split())
    record = out / f"{slug}{'' if guarded else '-unguarded'}.json"
    if record.exists():
        return
    folder = out / "runs" / record.stem
    shutil.rmtree(folder, ignore_errors=True)
    changes = {
        "evaluation.every": 10,
        "optimizer.schedule": "constant",
        "sampling.refills": 0,
        **fault.settings,
    }
    if not guarded:
        changes |= {"guards.off": ["all"], **fault.unguarded}
    outcome: dict[str, Any]
    with clock(), fault.plant(), nullcontext() if guarded else _without_patience(), _time_limit():
        try:
            outcome = train(run, folder, steps, changes)
        except Exception as error:
            outcome = {"error": {"exit_code": 1, "line": f"{type(error).__name__}: {error}"}, "exported": False}
    alarms = read_whole_lines(folder / ALARMS)
    outcome |= {"fault": fault.name, "start": fault.start, "guarded": guarded}
    record.write_text(json.dumps({**outcome, "alarms": alarms}, indent=1))
    shutil.rmtree(folder, ignore_errors=True)
    if outcome["error"] and HangsError.__name__ in outcome["error"]["line"]:
        # The sampling engine was interrupted, and would hand what is left over to the next run.
        os.execv(sys.executable, [sys.executable, *sys.argv])


def run_healthy(run: Path, out: Path, name: str, steps: int, changes: Mapping[str, Any]) -> None:
    """Train once without any fault, and keep the metrics."""
    record = out / f"{name}.json"
    if record.exists():
        return
    folder = out / "runs" / record.stem
    shutil.rmtree(folder, ignore_errors=True)
    outcome = train(run, folder, steps, {"checkpoint_every": 50, **changes})
    shutil.copyfile(folder / "metrics.jsonl", record.with_suffix(".jsonl"))
    record.write_text(json.dumps({**outcome, "alarms": read_whole_lines(folder / ALARMS)}, indent=1))
    shutil.rmtree(folder, ignore_errors=True)


def table(out: Path) -> str:
    """Return the table of all runs as Markdown."""
    records = [json.loads(path.read_text()) for path in sorted(out.glob("*.json"))]
    runs = {(record["fault"], record["guarded"]): record for record in records if "fault" in record}
    lines: list[str] = []
    if runs:
        lines += [*_fault_lines(runs, (HEALTHY, *FAULTS)), "", "Faults that no guard was written for:", ""]
        lines += _fault_lines(runs, UNFORESEEN)
    return "\n".join([*lines, "", *_healthy_lines(out)])


def _healthy_lines(out: Path) -> Iterator[str]:
    """Yield the table of the healthy runs, by problems a step."""
    yield "| healthy, problems a step | runs | steps | acted on | with a warning | by the table of now: any alarm |"
    yield "|---|---|---|---|---|---|"
    outcomes = {path: json.loads(path.read_text()) for path in sorted(out.glob("seed-*.json"))}
    for prompts in sorted({record["changes"].get("prompts_per_step", PROMPTS) for record in outcomes.values()}):
        chosen = {
            path: record
            for path, record in outcomes.items()
            if record["changes"].get("prompts_per_step", PROMPTS) == prompts
        }
        actions = [{alarm["action"] for alarm in record["alarms"]} for record in chosen.values()]
        columns = (
            prompts,
            len(chosen),
            sum(record["steps"] for record in chosen.values()),
            sum(bool(taken - {"warn"}) for taken in actions),
            sum("warn" in taken for taken in actions),
            sum(bool(replay(read_log(path.with_suffix(".jsonl")))) for path in chosen),
        )
        yield f"| {' | '.join(map(str, columns))} |"


def _fault_lines(runs: Mapping[tuple[str, bool], dict[str, Any]], faults: Sequence[Fault]) -> list[str]:
    reference = _last_heldout(runs[("healthy", True)])
    lines = [
        "| fault | without guards: held-out, exported | noticed (steps after) | by | ends | held-out, exported |",
        "|---|---|---|---|---|---|",
    ]
    for fault in faults:
        guarded, unguarded = runs.get((fault.name, True)), runs.get((fault.name, False))
        if guarded is None:
            continue
        without = "" if unguarded is None else _ending(unguarded, reference)
        first = next((alarm for alarm in guarded["alarms"] if alarm["action"] != "warn"), None)
        delay, by = ("", "") if first is None else (str(first["step"] - fault.start + 1), first["guard"])
        lines.append(f"| {fault.name} | {without} | {delay} | {by} | {_end(guarded)} | {_ending(guarded, None)} |")
    return lines


def _end(record: dict[str, Any]) -> str:
    if record["error"]:
        return f"stops, exit code {record['error']['exit_code']}"
    returned = sum(alarm["action"] == "roll_back" for alarm in record["alarms"])
    return f"recovers, {returned} return{'s' * (returned > 1)}" if returned else "goes on"


def _ending(record: dict[str, Any], reference: float | None) -> str:
    rate = _last_heldout(record)
    exported = "yes" if record["exported"] else "no"
    shown = "none" if rate is None else f"{rate:.3f}"
    if reference is None:
        return f"{shown}, {exported}"
    if record["error"]:
        return f"{'hangs' if HangsError.__name__ in record['error']['line'] else 'dies'}, {exported} (harm)"
    harm = "" if rate is not None and rate > reference - HARM else " (harm)"
    return f"{shown}, {exported}{harm}"


def _last_heldout(record: dict[str, Any]) -> float | None:
    rates = record.get("heldout") or {}
    return rates[max(rates, key=int)] if rates else None


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["faults", "healthy", "table"])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--only", nargs="*", default=())
    parser.add_argument("--sides", nargs="*", choices=SIDES, default=SIDES)
    parser.add_argument("--seeds", nargs="*", type=int, default=())
    parser.add_argument("--prompts", nargs="*", type=int, default=(PROMPTS,))
    parser.add_argument("--rate", type=float)
    parser.add_argument("--refills", type=int, default=0)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--write", type=Path)
    arguments = parser.parse_args()
    *runs, out = arguments.folders
    out.mkdir(parents=True, exist_ok=True)
    if arguments.what == "faults":
        known = (HEALTHY, *FAULTS, *UNFORESEEN)
        chosen = [fault for fault in known if not arguments.only or fault.name in arguments.only]
        for guarded in [side == "guarded" for side in arguments.sides]:
            for fault in chosen:
                run_fault(runs[0], out, fault, guarded, arguments.steps)
    elif arguments.what == "healthy":
        rate = {} if arguments.rate is None else {"optimizer.lr": arguments.rate}
        for prompts in arguments.prompts:
            for seed in arguments.seeds:
                changes = {"seed": seed, "sampling.refills": arguments.refills, "prompts_per_step": prompts, **rate}
                name = f"seed-{seed}" if prompts == PROMPTS else f"seed-{seed}-prompts-{prompts}"
                run_healthy(runs[0], out, name, arguments.steps, changes)
    else:
        publish(None, table(out), None, arguments.write, "Guards")


if __name__ == "__main__":
    main()
