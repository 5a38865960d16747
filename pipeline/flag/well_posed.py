r"""Stage `well_posed`: asks a language model whether each problem can be answered, and flags those that cannot.

The row `{"prompt": "A square has sides 3 and 4 ...", ...}` gets a row in `flags.parquet`, next to those of `flag`:

    {"reason": "model_contradiction", "detector": "well_posed", "confidence": null, "blocks": false,
     "evidence": "{\"model\": \"Qwen3-8B\", \"measured\": null, \"quotation\": \"sides 3 and 4\", ...}", ...}

The first call for each row asks for faults, with words of the problem as evidence. If there are any, a second call
tries to defend the problem. A fault counts if the defence fails.

    first reply                              second reply     outcome
    NONE                                                      sound
    contradiction: "sides 3 and 4" | ...     SOUND: 12        refuted
    contradiction: "sides 3 and 4" | ...     FAULTY           faulty: flagged model_contradiction
    contradiction: "sides 5 and 6" | ...                      undecided: the quotation is not in the problem
    ":" or "I cannot help with that."                         undecided: the reply cannot be read
    (the row is too long, or has no stored reply)             not asked

The kinds of faults cover the steps of MathQ-Verify (arXiv 2505.13903), and golds of another kind than the question asks
for, as in Big-Math (arXiv 2502.17387). A fault needs a quotation. This rules out models that give the same reply to
everything (arXiv 2507.08794).

Models differ in precision. So a flag has a confidence, and can hold its row back, only if the model was measured
(`fault_likelihood`). Rows are neither changed nor dropped. Held-out rows are included. One batch of rows is in memory
at a time. A stage that was killed continues with the unfinished parts.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from time import time_ns

from truegold.pipeline.config.stages import Fault, WellPosedConfig
from truegold.pipeline.engines import build_engine
from truegold.pipeline.engines.base import Engine, SamplingParams, sample_seed
from truegold.pipeline.engines.chat import PromptEncoder
from truegold.pipeline.engines.chat_engine import report_costs
from truegold.pipeline.engines.scripted import RepliesEngine
from truegold.pipeline.flag.fault_likelihood import (
    FAULTY,
    MEASURED_FILE,
    MeasuredModel,
    count_verdicts,
    load_measured,
    read_known,
)
from truegold.pipeline.flag.fault_questions import (
    FaultReply,
    QuotedFault,
    defence_prompt,
    find_prompt,
    read_defence,
    read_faults,
)
from truegold.pipeline.running.parts import Part, PartWork, run_here, run_parts, split_inputs, sum_reports
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.running.stage import REPLIES, SCRATCH, STORE, StageReport, stage_function
from truegold.pipeline.tables.ledger import FLAG_SCHEMA, FLAGS_FILE, FlagRecord, Ledger, flag_record
from truegold.pipeline.tables.measured_flags import BLOCKING_PRECISION
from truegold.pipeline.tables.reasons import ASKED_FILE, AskedModel, AskedRecord, asked_schema
from truegold.pipeline.tables.rows import (
    RowReference,
    TableWriter,
    group_by_row,
    problem_of,
    read_shards,
    read_table,
    row_key,
    row_reference,
)

SHOWN_CHARS = 500
"""The number of characters of a reply that the evidence keeps. They are taken from the end, which has the findings."""
DETECTOR = "well_posed"
UNANSWERED_FILE = "unanswered_prompts.jsonl"
"""The file with the prompts that have no stored reply."""
NOT_ASKED = "abort"
"""The finish reason of a prompt without a completion: it has no stored reply, or the server refused it."""


class Outcome(StrEnum):
    """The outcome for a problem."""

    FAULTY = FAULTY
    REFUTED = "refuted"
    """Faults were found, and the second call defended the problem."""
    SOUND = "sound"
    UNDECIDED = "undecided"
    NOT_ASKED = "not asked"


@dataclass(frozen=True, slots=True)
class AskedProblem:
    """A problem to ask the model about."""

    key: str
    """The key from which seeds are derived."""
    prompt: str
    gold: str | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """The model's verdict on one problem, with its replies."""

    outcome: Outcome
    faults: tuple[QuotedFault, ...] = ()
    """The faults found in the first call."""
    answer: str | None = None
    """The model's own answer. If the second call defends the problem, it comes from this call, else from the first."""
    replies: tuple[str, ...] = ()
    """The ends of the model's replies."""

    @property
    def verdict(self) -> str:
        """The outcome. For a faulty problem, the reason of its first fault."""
        return str(self.first_fault.kind if self.outcome is Outcome.FAULTY else self.outcome)

    @property
    def first_fault(self) -> QuotedFault:
        """The first fault of the problem itself. Without one, the first fault of the gold."""
        return next((fault for fault in self.faults if fault.kind is not Fault.GOLD_OF_OTHER_KIND), self.faults[0])


def check_problems(
    problems: Sequence[AskedProblem], engine: Engine, encoder: PromptEncoder, config: WellPosedConfig
) -> Iterator[Asked]:
    """Yield the model's verdict on each problem, in order; problems are asked in batches."""
    for start in range(0, len(problems), config.batch_size):
        batch = problems[start : start + config.batch_size]
        prompts = {n: find_prompt(asked.prompt, asked.gold, config.kinds) for n, asked in enumerate(batch)}
        first = _ask("find", prompts, batch, engine, encoder, config)
        read = {n: read_faults(reply, batch[n].prompt) for n, reply in first.items()}
        defended = {
            n: defence_prompt(batch[n].prompt, batch[n].gold, reply.faults)
            for n, reply in read.items()
            if reply and reply.faults
        }
        second = _ask("defend", defended, batch, engine, encoder, config)
        for n in range(len(batch)):
            yield _conclude(n, read, first, second)


def _ask(
    question: str,
    prompts: Mapping[int, str | None],
    problems: Sequence[AskedProblem],
    engine: Engine,
    encoder: PromptEncoder,
    config: WellPosedConfig,
) -> dict[int, str | None]:
    """Return the replies by the problems' indices.

    A reply that was cut off is None. A prompt that is too long or was not answered has no entry.
    """
    encoded = {n: encoder.encode(text) for n, text in prompts.items() if text is not None}
    fitting = {n: prompt for n, prompt in encoded.items() if len(prompt) < engine.max_model_len}
    if not fitting:
        return {}
    sampling = SamplingParams(config.temperature, 1.0, config.max_tokens, encoder.stop_token_ids)
    seeds = [sample_seed(config.seed, question, problems[n].key) for n in fitting]
    completions = zip(fitting, engine.generate(list(fitting.values()), sampling, seeds), strict=True)
    return {
        n: encoder.decode(done.token_ids) if done.finish_reason == "stop" else None
        for n, done in completions
        if done.finish_reason != NOT_ASKED
    }


def _conclude(
    n: int,
    read: Mapping[int, FaultReply | None],
    first: Mapping[int, str | None],
    second: Mapping[int, str | None],
) -> Asked:
    """Return the verdict of both calls on problem `n`."""
    if n not in first:
        return Asked(Outcome.NOT_ASKED)
    replies = tuple((by_place[n] or "")[-SHOWN_CHARS:] for by_place in (first, second) if n in by_place)
    reply = read[n]
    if reply is None:
        return Asked(Outcome.UNDECIDED, replies=replies)
    if not reply.faults:
        return Asked(Outcome.UNDECIDED if reply.unquoted else Outcome.SOUND, (), reply.answer, replies)
    if n not in second:
        return Asked(Outcome.NOT_ASKED, reply.faults, reply.answer, replies)
    defence = read_defence(second[n])
    outcomes = {None: Outcome.UNDECIDED, "": Outcome.FAULTY}
    return Asked(outcomes.get(defence, Outcome.REFUTED), reply.faults, defence or reply.answer, replies)


@stage_function(version=4, isolated=True, store=".samples")
def well_posed(inputs: Mapping[str, Path], config: WellPosedConfig, out_dir: Path, progress: Progress) -> StageReport:
    """Ask the model about all `rows`, and before that about the problems of `known`.

    The folder `model` has the checkpoint; engines of the types scripted, chat and replies need no checkpoint. Replies
    in `store` are not paid for again. Writes `rows.parquet` unchanged, `flags.parquet` with the new flags and those of
    the input `flags`, the ledger, `asked.parquet`, the model's measurement, and the prompts without a stored reply.
    Parts are processed one after the other.
    """
    progress.start("loading the model")
    engine, encoder = build_engine(
        config.engine, config.chat, inputs.get("model"), inputs.get(STORE, out_dir / SCRATCH) / REPLIES
    )
    measured = _measure(inputs.get("known"), engine, encoder, config, progress)
    if measured is not None:
        measured.save(out_dir / MEASURED_FILE)
    # Missing replies are listed for all rows, so every part is processed again. Stored replies cost nothing.
    shared = time_ns() if isinstance(engine, RepliesEngine) else None
    work = PartWork(f"{__name__}:ask_part", config, shared)
    runner = partial(run_here, engine=engine, encoder=encoder, measured=measured)
    reports = run_parts(work, split_inputs(inputs, out_dir, "flags"), progress, "asking", runner)
    costs = report_costs([engine.facts()], progress)
    if isinstance(engine, RepliesEngine) and engine.missing:
        engine.write_missing(out_dir / UNANSWERED_FILE)
        progress.note(f"{len(engine.missing):,} prompts have no stored reply: {UNANSWERED_FILE}")
    engine.close()
    outcomes: Counter[str] = Counter()
    for report in reports:
        outcomes.update(report.facts["asked"])
    facts = {
        "model": config.name,
        "measured": measured is not None,
        "asked": dict(sorted(outcomes.items())),
        "costs": costs,
    }
    return sum_reports(reports, facts)


def ask_part(
    part: Part,
    config: WellPosedConfig,
    shared: int | None,
    progress: Progress,
    engine: Engine,
    encoder: PromptEncoder,
    measured: MeasuredModel | None,
) -> StageReport:
    """Ask about the rows of one part, and write its tables."""
    outcomes: Counter[str] = Counter()
    earlier = group_by_row(read_table(part.inputs["flags"], FlagRecord))
    schema = asked_schema(AskedModel(config.prior, *(measured.outcomes() if measured else ({}, {}))))
    with (
        Ledger(part.output, "well_posed") as ledger,
        TableWriter(part.output(FLAGS_FILE), FLAG_SCHEMA) as flags,
        TableWriter(part.output(ASKED_FILE), schema) as table,
    ):
        for shard in read_shards(part.inputs["rows"], config.batch_size):
            problems = [
                AskedProblem(f"{row['source']}:{row['source_row']}", problem_of(row), row["gold"]) for row in shard
            ]
            for row, asked in zip(shard, check_problems(problems, engine, encoder, config), strict=True):
                outcomes[str(asked.outcome)] += 1
                table.write(_record(row, asked, measured))
                for record in earlier.get(row_key(row), ()):
                    flags.write(record)
                if asked.outcome is Outcome.FAULTY:
                    flags.write(_flag(row, asked, config, measured))
                    ledger.flag(row, asked.verdict, detector=DETECTOR, model=config.name)
            progress.advance(len(shard))
    shutil.copyfile(part.inputs["rows"], part.output("rows.parquet"))
    rows = outcomes.total()
    return StageReport(rows, rows, ledger.counts, {"asked": outcomes})


def _measure(
    known: Path | None, engine: Engine, encoder: PromptEncoder, config: WellPosedConfig, progress: Progress
) -> MeasuredModel | None:
    """Return the model's measurement: an earlier one, or a new one on known problems (written with or without a fault).
    Returns None without `known`."""
    if known is None:
        return None
    if known.suffix == ".json":
        return load_measured(known, config.name)
    problems = list(read_known(known))
    progress.start("asking about known problems", len(problems))
    asked = [AskedProblem(f"known:{n}", prompt, gold) for n, (prompt, gold, _) in enumerate(problems)]
    pairs = zip(problems, check_problems(asked, engine, encoder, config), strict=True)
    verdicts = [(truth, answer.verdict) for (*_, truth), answer in pairs if answer.outcome is not Outcome.NOT_ASKED]
    return count_verdicts(config.name, verdicts)


def _record(row: RowReference, asked: Asked, measured: MeasuredModel | None) -> AskedRecord:
    """Return a row's record for `asked.parquet`."""
    known = measured if asked.outcome is not Outcome.NOT_ASKED else None
    return {
        **row_reference(row),
        "outcome": str(asked.outcome),
        "verdict": asked.verdict,
        "answer": asked.answer,
        "ratio": known.ratio(asked.verdict)[0] if known else None,
    }


def _flag(row: RowReference, asked: Asked, config: WellPosedConfig, measured: MeasuredModel | None) -> FlagRecord:
    """Return the flag of a faulty problem, with its confidence if the model was measured."""
    first = asked.first_fault
    evidence = {
        "model": config.name,
        "quotation": first.quotation,
        "why": first.why,
        "others": [str(fault.kind) for fault in asked.faults if fault is not first],
        "replies": list(asked.replies),
        "measured": None if measured is None else measured.shown(asked.verdict),
    }
    confidence = None if measured is None else round(measured.confidence(asked.verdict, config.prior), 3)
    blocks = first.kind in config.blocks and (confidence or 0) >= BLOCKING_PRECISION
    return flag_record(row, asked.verdict, detector=DETECTOR, evidence=evidence, confidence=confidence, blocks=blocks)
