"""Measures how well a language model finds ill-posed problems, by step (`truegold flag --model`).

    python benchmarks/well_posed.py DATA_DIR --model CHECKPOINT [--url URL] [--rows N] [--json FILE]

DATA_DIR holds valimath.jsonl (people's labels of each step), mathtrap.jsonl (traps of named kinds beside the sound
originals), mip_gsm8k.jsonl (a premise removed, beside the whole problem) and umwp.jsonl (unanswerable edits beside the
originals). Of each, N rows are drawn with a fixed seed. Given are, by corpus and step,

    flagged    problems that fail the step
    right      those of them that are ill-posed by the corpus, with the precision and its 95 % interval
    this step  those of them whose label names this step
    undecided  the share of the asked problems on which the two senses of the question did not agree

and the share of ill-posed problems that any step finds. Choose `flag.model.blocks` by it: a flag that holds rows back
should be right in nine of ten on a corpus like yours.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from truegold.pipeline.config.engines import EngineConfig, ServerEngineConfig, VllmEngineConfig
from truegold.pipeline.config.stages import Step, WellPosedConfig
from truegold.pipeline.engines import build_engine
from truegold.pipeline.engines.base import Engine
from truegold.pipeline.engines.chat import PromptEncoder
from truegold.pipeline.flag.well_posed import Answers, AskedProblem, check_problems
from truegold.verifiers.rates import wilson_interval

ROWS = 200
SEED = 0
STEPS = tuple(step for step in Step if step is not Step.GOLD_KIND)
"""These corpora give no gold that could be of another kind."""


@dataclass(frozen=True)
class Labelled:
    """A problem, and the steps that it should fail: none where it is sound."""

    prompt: str
    faults: frozenset[Step]
    is_sound: bool


def _sound(prompt: str) -> Labelled:
    return Labelled(prompt, frozenset(), is_sound=True)


def _faulty(prompt: str, *faults: Step) -> Labelled:
    return Labelled(prompt, frozenset(faults), is_sound=False)


VALIMATH_STEPS = {
    "question_format": Step.PROBLEM,
    "level_0_check": Step.DEFINED,
    "min_Pi_check": Step.DEFINED,
    "contradiction_check": Step.CONSISTENT,
    "condition_complete_check": Step.COMPLETE,
}
TRAP_STEPS = {
    "Direct Contradiction": Step.CONSISTENT,
    "Indirect Contradiction": Step.CONSISTENT,
    "Concept Undefined": Step.DEFINED,
    "Violating Common Sense": Step.DEFINED,
    "Missing Condition": Step.COMPLETE,
}


def valimath(row: Mapping[str, Any]) -> Iterator[Labelled]:
    """Yield ValiMath's questions and whether people found them valid."""
    faults = [step for column, step in VALIMATH_STEPS.items() if str(row[column]) == "False"]
    yield _sound(row["question"]) if str(row["gt"]) == "True" else _faulty(row["question"], *faults)


def mathtrap(row: Mapping[str, Any]) -> Iterator[Labelled]:
    """Yield MathTrap's questions, sound or with a trap."""
    yield _sound(row["original_problem"])
    yield _faulty(row["trap_problem"], TRAP_STEPS[row["trap_type"]])


def mip(row: Mapping[str, Any]) -> Iterator[Labelled]:
    """Yield questions whole and with a premise removed."""
    yield _sound(row["question"])
    yield _faulty(row["insufficient_question"], Step.COMPLETE)


def umwp(row: Mapping[str, Any]) -> Iterator[Labelled]:
    """Yield questions that can be answered or not."""
    is_sound = str(row["answerable"]) == "True"
    yield _sound(row["question"]) if is_sound else _faulty(row["question"], Step.COMPLETE, Step.CONSISTENT)


CORPORA: dict[str, Callable[[Mapping[str, Any]], Iterator[Labelled]]] = {
    "valimath.jsonl": valimath,
    "mathtrap.jsonl": mathtrap,
    "mip_gsm8k.jsonl": mip,
    "umwp.jsonl": umwp,
}


def load(folder: Path, rows: int) -> dict[str, list[Labelled]]:
    """Return the problems of the corpora that are there, `rows` of each file's rows drawn with a fixed seed."""
    corpora = {}
    for file, read in CORPORA.items():
        if (folder / file).exists():
            lines = (folder / file).read_text("utf-8").splitlines()
            drawn = random.Random(SEED).sample(lines, min(rows, len(lines)))
            corpora[file] = [labelled for line in drawn for labelled in read(json.loads(line))]
    return corpora


def report(problems: Sequence[Labelled], answers: Sequence[Answers]) -> Iterator[str]:
    """Yield the lines on one corpus."""
    ill = sum(not problem.is_sound for problem in problems)
    yield f"  {len(problems)} problems, {ill} ill-posed"
    for step in STEPS:
        asked = [answer.passed[step] for answer in answers if step in answer.passed]
        flagged = [problem for problem, answer in zip(problems, answers, strict=True) if answer.failed is step]
        right = sum(not problem.is_sound for problem in flagged)
        named = sum(step in problem.faults for problem in flagged)
        undecided = sum(passed is None for passed in asked) / max(1, len(asked))
        yield f"  {step:<26} flagged {len(flagged):>4}, right {_share(right, len(flagged))}, this step {named}, " + (
            f"undecided {undecided:.0%} of {len(asked)}"
        )
    kinds = Counter(
        (problem.is_sound, answer.failed is not None) for problem, answer in zip(problems, answers, strict=True)
    )
    yield f"  any step: right {_share(kinds[False, True], kinds[False, True] + kinds[True, True])}," + (
        f" found {_share(kinds[False, True], ill)} of the ill-posed"
    )


def _share(part: int, whole: int) -> str:
    if not whole:
        return "0 of 0"
    low, high = wilson_interval(part, whole)
    return f"{part} of {whole} = {part / whole:.2f} [{low:.2f}, {high:.2f}]"


def measure(
    corpora: Mapping[str, Sequence[Labelled]], engine: Engine, encoder: PromptEncoder, config: WellPosedConfig
) -> Iterator[str]:
    """Ask the model about every problem; yield the lines of the report."""
    for file, problems in corpora.items():
        asked = [AskedProblem(f"{file}:{index}", problem.prompt) for index, problem in enumerate(problems)]
        yield f"{file}:"
        yield from report(problems, list(check_problems(asked, engine, encoder, config)))


def main() -> None:
    """Ask the model about the questions that the command line names, and print what it says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data_dir", type=Path)
    parser.add_argument(
        "--model", type=Path, required=True, help="folder of the checkpoint, or of a served one's tokenizer"
    )
    parser.add_argument("--url", help="a vLLM server that serves the model")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    engine_config: EngineConfig = VllmEngineConfig(max_model_len=8192)
    if arguments.url:
        engine_config = ServerEngineConfig(url=arguments.url)
    config = WellPosedConfig(name=arguments.model.name, engine=engine_config, steps=STEPS)
    engine, encoder = build_engine(config.engine, config.chat, arguments.model)
    lines = list(measure(load(arguments.data_dir, arguments.rows), engine, encoder, config))
    engine.close()
    print("\n".join(lines))
    if arguments.json:
        arguments.json.write_text(json.dumps(lines, indent=1) + "\n")


if __name__ == "__main__":
    main()
