"""Measures the doctor on simulated logs of faulty and clean runs of many kinds, in the formats of five trainers.

python benchmarks/doctor_logs.py --seeds 20 --write benchmarks/results/doctor_logs.md
python benchmarks/doctor_logs.py --keep FOLDER          # one log of each kind, to be looked at
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from doctor_formats import WRITERS, formats_for
from doctor_runs import CLEAN, FAULTY, POWER, POWER_PROMPTS, POWER_STEPS, Kind
from publishing import publish, say

from truegold.train.guards.log_faults import find_faults
from truegold.train.guards.run_log import read_log

FIRST = 850
"""The first seed: those below it were looked at while the doctor was written."""


def ask(kind: Kind, seed: int, folder: Path) -> list[str]:
    """Write one simulated log and return the faults that the doctor names, in its order."""
    forms = formats_for(kind.names)
    file, write = WRITERS[forms[seed % len(forms)]]
    path = folder / file
    write(path, kind.make(np.random.default_rng(seed)).rows())
    return [fault.name for fault in find_faults(read_log(path))]


def ask_all(kinds: Mapping[str, Kind], seeds: int) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield each kind's title and the names that the doctor finds for every seed."""
    with tempfile.TemporaryDirectory() as folder:
        for index, (title, kind) in enumerate(kinds.items()):
            say(title)
            yield title, [ask(kind, 1000 * index + FIRST + seed, Path(folder)) for seed in range(seeds)]


def clean_table(seeds: int) -> str:
    """The clean kinds, with what they are accused of."""
    lines = ["| clean run | logs | accused | of |", "|---|---|---|---|"]
    accused = 0
    for title, answers in ask_all(CLEAN, seeds):
        names = Counter(name for answer in answers for name in answer)
        accused += sum(map(bool, answers))
        lines.append(f"| {title} | {seeds} | {sum(map(bool, answers))} | {', '.join(names)} |")
    return "\n".join(lines) + f"\n\n{accused} of {seeds * len(CLEAN)} are accused.\n"


def fault_table(seeds: int) -> str:
    """The faults, with how often they are named, and named first."""
    lines = ["| fault | logs | named | named first | as | beside it |", "|---|---|---|---|---|---|"]
    named = 0
    for title, answers in ask_all(FAULTY, seeds):
        names = FAULTY[title].names
        right = [answer for answer in answers if set(names) & set(answer)]
        first = sum(answer[0] in names for answer in right)
        others = Counter(name for answer in answers for name in answer if name not in names)
        beside = ", ".join(f"{name} ({count})" for name, count in others.items())
        lines.append(f"| {title} | {seeds} | {len(right)} | {first} | {', '.join(names)} | {beside} |")
        named += len(right)
    return "\n".join(lines) + f"\n\n{named} of {seeds * len(FAULTY)} are named.\n"


def power_table(seeds: int) -> str:
    """Return the table of how often a fault is named, by the length of the run and the prompts per step."""
    columns = [(steps, prompts) for prompts in POWER_PROMPTS for steps in POWER_STEPS]
    header = " | ".join(f"{steps} steps of {prompts}" for steps, prompts in columns)
    lines = [f"| move over the run | {header} |", "|---|" + "---|" * len(columns)]
    with tempfile.TemporaryDirectory() as folder:
        for title, (names, maker) in POWER.items():
            say(title)
            cells = []
            for steps, prompts in columns:
                kind = Kind(names, maker(steps, prompts))
                answers = [ask(kind, FIRST + seed, Path(folder)) for seed in range(seeds)]
                right = sum(bool(set(names) & set(answer)) if names else bool(answer) for answer in answers)
                cells.append(f"{right / seeds:.2f}")
            lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def keep(folder: Path) -> None:
    """Write one log of each kind in each of its formats."""
    for kinds in (CLEAN, FAULTY):
        for title, kind in kinds.items():
            for form in formats_for(kind.names):
                file, write = WRITERS[form]
                name = re.sub(r"\W+", "_", f"{title} {form}") + Path(file).suffix
                write(folder / name, kind.make(np.random.default_rng(0)).rows())


INTRODUCTION = """\
Simulated trainings in the files of TRL (trainer_state.json, console, wandb's CSV), verl (file logger, console),
prime-rl, OpenRLHF and open-instruct, asked about as `truegold doctor LOG` does: `python benchmarks/doctor_logs.py`.
A step draws 4 to 128 prompts with pass rates of their own and eight completions of each, so that the noise is that of
real batches; runs have 60 to 300 steps where the kind does not say otherwise. The kinds were made by the author of the
doctor, and these seeds were drawn when it was finished; logs that were planted by somebody who had not seen it are in
[doors](../plants/doors/README.md).
"""


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--keep", type=Path)
    chosen = parser.parse_args()
    if chosen.keep:
        keep(chosen.keep)
        return
    text = f"{INTRODUCTION}\n## Clean runs\n\n{clean_table(chosen.seeds)}\n## Faults\n\n{fault_table(chosen.seeds)}"
    power = f"The share of {chosen.seeds} runs each in which the move is named, by steps and prompts a step."
    text += f"\n## Power\n\n{power}\n\n{power_table(chosen.seeds)}"
    publish(None, text, None, chosen.write, "The doctor of logs")


if __name__ == "__main__":
    main()
