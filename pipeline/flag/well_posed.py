r"""Stage `well_posed`: asks a language model, step by step, whether each problem can be answered, and flags those that
cannot.

The row `{"prompt": "A square has sides 3 and 4 ...", ...}` gets a row in `flags.parquet`, beside those of `flag`

    {"reason": "model_contradiction", "detector": "well_posed", "confidence": 0.5, "blocks": false,
     "evidence": "{\"model\": \"Qwen3-8B\", \"replies\": [\"... NO\", \"... YES\"]}", ...}

The steps are those of MathQ-Verify (arXiv 2505.13903): is it a problem at all, is everything defined, do the conditions
agree, do they suffice. A last one asks whether the gold is of the kind that is asked for, as Big-Math does (arXiv
2502.17387). Each step is asked in two opposite senses, and decided only where both replies say the same of the problem:

    Step.CONSISTENT   "Can all conditions of the problem hold together?"        YES   }  passes
                      "Do two conditions of the problem contradict each other?"  NO    }
    the same, YES and YES: a model that agrees with everything says nothing       ->  undecided
    the same, ":" or an empty reply (arXiv 2507.08794)                            ->  undecided

A row that fails a step is not asked further, as its later answers would be about a problem that has none; one on which
a step is undecided goes on. Rows that are too long for the model are not asked. The problem stands between marks that
it cannot know.

The confidence is a half because it is not known: models differ, and yours is to be measured
(`benchmarks/well_posed.py`). So flags hold a row back only where `blocks` names their step. Rows are neither changed
nor dropped. Held-out rows are asked about like others. One batch of rows is held in memory; a killed stage begins
again.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from truegold.pipeline.config.stages import Step, WellPosedConfig
from truegold.pipeline.engines import build_engine
from truegold.pipeline.engines.base import Engine, sample_seed
from truegold.pipeline.engines.chat import PromptEncoder, ask_pairs
from truegold.pipeline.engines.chat_engine import report_costs
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.running.stage import REPLIES, SCRATCH, STORE, StageReport, stage_function
from truegold.pipeline.tables.ledger import FLAG_SCHEMA, FLAGS_FILE, FlagRecord, Ledger, flag_record
from truegold.pipeline.tables.rows import TableWriter, count_rows, problem_of, read_shards, read_table
from truegold.verifiers.model_judge import MAX_PROBLEM_CHARS, last_line, neutralise

MAX_GOLD_CHARS = 300
"""A prompt shows the gold up to this length."""

_NONCE_CHARS = 12

TEXTS: Mapping[str, Any] = tomllib.loads(files(__package__).joinpath("well_posed.toml").read_text("utf-8"))
"""The prompts, and the questions of each step."""

SHOWN_CHARS = 500
"""The evidence keeps the end of a reply, where the answer stands."""
DETECTOR = "well_posed"
UNKNOWN_CONFIDENCE = 0.5


def make_prompts(step: Step, problem: str, gold: str | None) -> tuple[str, str] | None:
    """Return the prompts in both senses; None where there is nothing to ask.

    The step on the gold needs one; the others do not show it. A problem that is longer than a prompt shows is not asked
    about, since what is cut off may be what seems to be missing.
    """
    if not problem.strip() or len(problem) > MAX_PROBLEM_CHARS:
        return None
    shown_gold = neutralise((gold or "")[:MAX_GOLD_CHARS]) if step is Step.GOLD_KIND else ""
    if step is Step.GOLD_KIND and not shown_gold:
        return None
    shown = "\n".join(map(neutralise, problem.splitlines()))
    nonce = hashlib.sha256(json.dumps([problem, shown_gold]).encode()).hexdigest()[:_NONCE_CHARS].upper()
    gold_part = TEXTS["gold"].format(nonce=nonce, gold=shown_gold) if shown_gold else ""
    sound, faulty = (
        TEXTS["prompt"].format(nonce=nonce, problem=shown, gold=gold_part, question=TEXTS["questions"][step][sense])
        for sense in ("sound", "faulty")
    )
    return sound, faulty


def read_answer(reply: str | None) -> bool | None:
    """Return True for a last line YES, False for NO; None for anything else, and for a reply that was cut off."""
    line = None if reply is None else last_line(reply)
    return {"yes": True, "no": False}.get((line or "").strip("*_` .").casefold())


def decide(sound: bool | None, faulty: bool | None) -> bool | None:
    """Return whether the problem passes a step, from the replies in both senses; None where they do not agree."""
    return None if sound is None or faulty is None or sound == faulty else sound


@dataclass(frozen=True, slots=True)
class AskedProblem:
    """A problem that the model is asked about."""

    key: str
    """Seeds are made from it."""
    prompt: str
    gold: str | None = None


@dataclass(slots=True)
class Answers:
    """The model's answers on one problem."""

    passed: dict[Step, bool | None] = field(default_factory=dict)
    """Of each step that was asked whether the problem passes it; None where the model did not decide."""
    replies: dict[Step, tuple[str | None, str | None]] = field(default_factory=dict)
    """The ends of the replies in both senses; None for one that was cut off."""

    @property
    def failed(self) -> Step | None:
        """The step that the problem fails, if any."""
        return next((step for step, passed in self.passed.items() if passed is False), None)


def check_problems(
    problems: Sequence[AskedProblem], engine: Engine, encoder: PromptEncoder, config: WellPosedConfig
) -> Iterator[Answers]:
    """Yield the answers on each problem, in order; a batch of problems is asked at a time."""
    for start in range(0, len(problems), config.batch_size):
        batch = problems[start : start + config.batch_size]
        answers = [Answers() for _ in batch]
        for step in config.steps:
            open_problems = {index: batch[index] for index, answer in enumerate(answers) if answer.failed is None}
            _ask_step(step, open_problems, answers, engine, encoder, config)
        yield from answers


def _ask_step(
    step: Step,
    problems: Mapping[int, AskedProblem],
    answers: Sequence[Answers],
    engine: Engine,
    encoder: PromptEncoder,
    config: WellPosedConfig,
) -> None:
    """Ask one step of the problems, which are given by their places among `answers`."""
    questions = [make_prompts(step, problem.prompt, problem.gold) for problem in problems.values()]
    seeds = [
        (sample_seed(config.seed, step, problem.key, 0), sample_seed(config.seed, step, problem.key, 1))
        for problem in problems.values()
    ]
    for index, replies in zip(problems, ask_pairs(questions, seeds, engine, encoder, config), strict=True):
        if replies is not None:
            sound, faulty = replies
            answers[index].passed[step] = decide(read_answer(sound), read_answer(faulty))
            answers[index].replies[step] = (sound and sound[-SHOWN_CHARS:], faulty and faulty[-SHOWN_CHARS:])


@stage_function(version=1, isolated=True, store=".samples")
def well_posed(inputs: Mapping[str, Path], config: WellPosedConfig, out_dir: Path, progress: Progress) -> StageReport:
    """Ask the checkpoint in the folder `model`, which a scripted engine or one of the type chat does without, about
    `rows`. What lies in `store` is not paid for again.

    Writes `rows.parquet` as it was, `flags.parquet` with the flags of the input `flags` first, and the ledger.
    """
    total = count_rows(inputs["rows"])
    counts: Counter[str] = Counter()
    progress.start("loading the model")
    engine, encoder = build_engine(
        config.engine, config.chat, inputs.get("model"), inputs.get(STORE, out_dir / SCRATCH) / REPLIES
    )
    progress.start("asking", total)
    with Ledger(out_dir, "well_posed") as ledger, TableWriter(out_dir / FLAGS_FILE, FLAG_SCHEMA) as flags:
        for record in read_table(inputs["flags"], FlagRecord):
            flags.write(record)
        for shard in read_shards(inputs["rows"], config.batch_size):
            problems = [
                AskedProblem(f"{row['source']}:{row['source_row']}", problem_of(row), row["gold"]) for row in shard
            ]
            for row, answers in zip(shard, check_problems(problems, engine, encoder, config), strict=True):
                counts["not asked"] += not answers.passed
                for step, passed in answers.passed.items():
                    counts[f"{step}: {'undecided' if passed is None else 'decided'}"] += 1
                if (failed := answers.failed) is not None:
                    evidence = {"model": config.name, "replies": list(answers.replies[failed])}
                    blocks, sureness = failed in config.blocks, UNKNOWN_CONFIDENCE
                    flags.write(
                        flag_record(
                            row, failed, detector=DETECTOR, evidence=evidence, confidence=sureness, blocks=blocks
                        )
                    )
                    ledger.flag(row, failed, detector=DETECTOR, model=config.name)
            progress.advance(len(shard))
    costs = report_costs([engine.facts()], progress)
    engine.close()
    shutil.copyfile(inputs["rows"], out_dir / "rows.parquet")
    facts = {"model": config.name, "asked": dict(sorted(counts.items())), "costs": costs}
    return StageReport(total, total, dict(ledger.counts), facts)
