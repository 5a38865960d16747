"""Stage `synth`: makes right completions to train on (positives) for rows that the model hardly ever solves.

    120 hard rows, 400,000 tokens   ->  distilled.parquet   96 positives for 61 rows
                                        attempts.parquet    all 740 attempts and their outcomes
                                        selected.parquet    the selected rows, and 48 more that now have a positive
                                        reserve.parquet     the rows in reserve, without those 48

A row that selection left out as too hard becomes a selected row if it now has a positive. In training, the model gets
the prompt of the row without the hints that were used to make the positive. The positive is added to the model's own
samples. Held-out rows are never used.
"""

from __future__ import annotations

import math
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any, cast

from truegold.pipeline.engines.chat_engine import report_costs
from truegold.pipeline.profile.sample_store import sample_source
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.running.stage import REPLIES, SCRATCH, STORE, StageReport, stage_function
from truegold.pipeline.select.stage import SELECTED_SCHEMA
from truegold.pipeline.tables.ledger import Ledger
from truegold.pipeline.tables.rows import (
    Row,
    TableWriter,
    count_rows,
    dump_json,
    read_rows,
    row_key,
    row_reference,
    write_rows,
)
from truegold.synth import records
from truegold.synth.budget import Tally, TokenBudget
from truegold.synth.config import SynthConfig
from truegold.synth.hard_rows import Attempt, HardRow, read_hard_rows
from truegold.synth.leaks import LeakReason, read_bare_samples
from truegold.synth.round_sampler import RoundSampler
from truegold.synth.strategies import Strategy, load_strategy
from truegold.synth.synthesis import Synthesis

EXAMPLES = 5
"""The maximum number of positives that the report shows."""
EXAMPLE_CHARS = 600
BECAME_TRAINABLE = "distilled_positive"
"""The reason in the ledger for a row that selection left out, and that a positive brings back."""


@stage_function(version=3, isolated=True, judges="hard", store=".samples")
def synth(inputs: Mapping[str, Path], config: SynthConfig, out_dir: Path, progress: Progress) -> StageReport:
    """Make positives.

    The inputs are `hard`, `selected` and `reserve` from the selection, `profile`, `suspicion` and `samples` from the
    profile, and the folder `model` with the checkpoint. A scripted engine needs no checkpoint. Samples in `store` are
    not drawn again. Writes distilled.parquet, attempts.parquet, selected.parquet, reserve.parquet and the ledger.
    """
    started = time.monotonic()
    strategies = [load_strategy(spelling) for spelling in config.strategies]
    progress.start("reading the hard rows")
    rows = read_hard_rows(inputs, config)
    scratch = out_dir / SCRATCH
    folders = (inputs.get(STORE, scratch / "samples"), scratch)
    model = inputs.get("model")
    source = sample_source(config.engine, config.chat, model)
    budget = TokenBudget(config, strategies)
    with ExitStack() as engines:
        sampler = reflector = RoundSampler(source, config.engine, config, model, folders, progress)
        engines.enter_context(closing(sampler))
        if (asked := config.reflector) is not None:
            path = None if asked.model is None else Path(asked.model)
            other = sample_source(asked.engine, asked.chat, path, folders[0] / REPLIES)
            reflector = RoundSampler(other, asked.engine, config, path, folders, progress)
            engines.enter_context(closing(reflector))
        synthesis = Synthesis(rows, config, sampler, reflector, budget, read_bare_samples(inputs))
        synthesis.run(progress)
        no_room = synthesis.describe_no_room()
        for line in no_room:
            progress.note(line)
        _bound_shares(rows, config)
        progress.start("writing the tables")
        _write_tables(rows, {strategy.name: strategy for strategy in strategies}, synthesis, out_dir)
        sampling = sampler.facts
        costs = [] if reflector is sampler else report_costs([reflector.engine_facts], progress)
    rescued = [hard for hard in rows if hard.origin == "hard" and hard.positives]
    selected = map(_selected_record, rescued)
    write_rows(out_dir / "selected.parquet", chain(read_rows(inputs["selected"]), selected), SELECTED_SCHEMA)
    if "reserve" in inputs:
        taken = {row_key(hard.row) for hard in rescued}
        left = (row for row in read_rows(inputs["reserve"]) if row_key(row) not in taken)
        write_rows(out_dir / "reserve.parquet", left, SELECTED_SCHEMA)
    with Ledger(out_dir, "synth") as ledger:
        for hard in rescued:
            ledger.keep(hard.row, BECAME_TRAINABLE, positives=hard.positives, attempts=len(hard.attempts))
    seconds = round(time.monotonic() - started, 1)
    facts = synthesis_facts(rows, budget) | {"sampling": sampling, "costs": costs, "seconds": seconds}
    facts |= {"no_room": no_room, "habits": synthesis.habits.facts()}
    outcomes = Counter(_outcome(attempt) for hard in rows for attempt in hard.attempts)
    return StageReport(len(rows), count_rows(out_dir / records.DISTILLED_FILE), {**ledger.counts, **outcomes}, facts)


def _bound_shares(rows: Sequence[HardRow], config: SynthConfig) -> None:
    """Drop the least probable positives of each strategy that has more than its maximum share."""
    for name, share in sorted(config.max_share.items()):
        kept = [attempt for hard in rows for attempt in hard.attempts if attempt.kept]
        mine = [attempt for attempt in kept if attempt.strategy == name]
        others = len(kept) - len(mine)
        most = len(mine) if share >= 1 else math.floor(share * others / (1 - share) + 1e-9)
        mine.sort(key=lambda attempt: -attempt.leaks["weights"][2])
        for attempt in mine[most:]:
            attempt.kept, attempt.dropped = False, LeakReason.OVER_SHARE


def _write_tables(
    rows: Sequence[HardRow], strategies: Mapping[str, Strategy], synthesis: Synthesis, out_dir: Path
) -> None:
    with (
        TableWriter(out_dir / records.DISTILLED_FILE, records.DISTILLED_SCHEMA) as distilled,
        TableWriter(out_dir / records.ATTEMPTS_FILE, records.ATTEMPT_SCHEMA) as attempts,
    ):
        for hard in rows:
            for attempt in hard.attempts:
                attempts.write(_attempt_record(hard, attempt))
                if attempt.kept:
                    prompt = synthesis.bare_prompt(hard)
                    distilled.write(_distilled_record(hard, attempt, strategies[attempt.strategy], prompt))


def _attempt_record(hard: HardRow, attempt: Attempt) -> records.AttemptRow:
    parent = attempt.parent
    assert attempt.ordinal is not None
    return {
        **row_reference(hard.row),
        "attempt": attempt.ordinal,
        "parent": None if parent is None else parent.ordinal,
        "strategy": attempt.strategy,
        "context": attempt.context,
        "reflection": attempt.reflection,
        "feedback": attempt.feedback,
        "completion": attempt.completion,
        "tokens": attempt.tokens,
        "temperature": attempt.temperature,
        "score": attempt.score,
        "reason": attempt.reason,
        "extracted": attempt.extracted,
        "kept": attempt.kept,
        "dropped": attempt.dropped,
        "difficulty": hard.difficulty,
    }


def _distilled_record(
    hard: HardRow, attempt: Attempt, strategy: Strategy, prompt: Sequence[int]
) -> records.DistilledRow:
    token, sequence, geometric = attempt.leaks["weights"]
    assert attempt.ordinal is not None
    return {
        **row_reference(hard.row),
        "prompt": hard.row["prompt"],
        "prompt_ids": list(prompt),
        "completion": attempt.completion,
        "output_ids": list(attempt.token_ids),
        "temperature": attempt.temperature,
        "context_logprobs": list(attempt.logprobs),
        "bare_logprobs": list(attempt.bare_logprobs),
        "token_weight": token,
        "sequence_weight": sequence,
        "geometric_weight": geometric,
        "strategy": strategy.name,
        "strategy_version": strategy.version,
        "uses_gold": strategy.uses_gold,
        "trust": strategy.trust,
        "attempt": attempt.ordinal,
        "pass_rate": hard.known.mean,
        "leaks": dump_json(attempt.leaks),
        "chain": dump_json(attempt.chain()),
    }


def _selected_record(hard: HardRow) -> Row:
    known = {"pass_rate": hard.known.mean, "posterior": hard.known.components()}
    return cast("Row", {**hard.row, **known, "suspicion": hard.suspicion})


def _outcome(attempt: Attempt) -> str:
    """Return the name under which an attempt is counted."""
    if attempt.kept:
        return "positive"
    return f"positive_dropped:{attempt.dropped}" if attempt.passed else "attempt_failed"


def synthesis_facts(rows: Sequence[HardRow], budget: TokenBudget) -> dict[str, Any]:
    """Return the facts of a synthesis for the stage's record and the report."""
    tried = [(hard, attempt) for hard in rows for attempt in hard.attempts]
    with_positive = [hard for hard in rows if hard.positives]
    known, rescued = (Counter(hard.difficulty for hard in chosen) for chosen in (rows, with_positive))
    dropped = Counter(str(attempt.dropped) for _, attempt in tried if attempt.dropped is not None)
    return {
        "hard_rows": len(rows),
        "rows_with_positive": len(with_positive),
        "became_trainable": sum(hard.origin == "hard" for hard in with_positive),
        "tokens": budget.spent,
        "budget_tokens": budget.config.budget_tokens,
        "rounds": budget.rounds,
        "strategies": _by_strategy(tried),
        "difficulties": {name: {"rows": known[name], "with_positive": rescued[name]} for name in sorted(known)},
        "dropped": dict(dropped.most_common()),
        "examples": _examples([(hard, attempt) for hard, attempt in tried if attempt.kept]),
    }


def _by_strategy(tried: Sequence[tuple[HardRow, Attempt]]) -> list[dict[str, Any]]:
    tallies: defaultdict[tuple[str, str], Tally] = defaultdict(Tally)
    for hard, attempt in tried:
        tallies[attempt.strategy, hard.difficulty].add(hard, attempt)
    kept = sum(tally.positives for tally in tallies.values())
    return [
        {
            "strategy": strategy,
            "difficulty": difficulty,
            **asdict(tally),
            "by_chance": round(tally.by_chance, 2),
            "per_thousand_tokens": round(1000 * tally.positives / tally.tokens, 3) if tally.tokens else None,
            "share": round(tally.positives / kept, 4) if kept else None,
        }
        for (strategy, difficulty), tally in sorted(tallies.items())
    ]


def _examples(kept: Sequence[tuple[HardRow, Attempt]]) -> list[dict[str, Any]]:
    """Return a few positives with the attempts before them, first one of each strategy."""
    firsts: dict[str, tuple[HardRow, Attempt]] = {}
    for pair in kept:
        firsts.setdefault(pair[1].strategy, pair)
    others = [pair for pair in kept if firsts[pair[1].strategy] is not pair]
    return [
        {
            "id": hard.row["id"],
            "prompt": hard.row["prompt"][:EXAMPLE_CHARS],
            "strategy": attempt.strategy,
            "failed": attempt.parent.completion[:EXAMPLE_CHARS] if attempt.parent is not None else None,
            "feedback": attempt.feedback,
            "reflection": attempt.reflection[:EXAMPLE_CHARS] if attempt.reflection else None,
            "completion": attempt.completion[:EXAMPLE_CHARS],
            "geometric_weight": round(attempt.leaks["weights"][2], 4),
        }
        for hard, attempt in [*firsts.values(), *others][:EXAMPLES]
    ]
