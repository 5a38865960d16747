"""The stage `synth`: positives for rows that lack them, from what selection lists as hard and the profile saw fail.

    120 hard rows, 400,000 tokens   ->  distilled.parquet   96 positives of 61 rows
                                        attempts.parquet    all 740 attempts, with what became of each
                                        selected.parquet    the selected rows, and behind them 48 that became trainable

A row that selection left out as too hard comes back where it has a positive now; training goes on to sample it on the
bare prompt, and has the positive besides. Held-out rows are never looked at.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any

from truegold.pipeline.profile.sample_store import sample_source
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.running.stage import SCRATCH, STORE, StageReport, stage_function
from truegold.pipeline.select.stage import SELECTED_SCHEMA
from truegold.pipeline.tables.ledger import Ledger
from truegold.pipeline.tables.rows import Row, TableWriter, count_rows, dump_json, read_rows, write_rows
from truegold.synth.budget import Budget
from truegold.synth.config import SynthConfig
from truegold.synth.hard_rows import Attempt, HardRow, read_hard_rows
from truegold.synth.leaks import LeakReason
from truegold.synth.records import (
    ATTEMPT_SCHEMA,
    ATTEMPTS_FILE,
    DISTILLED_FILE,
    DISTILLED_SCHEMA,
    AttemptRow,
    DistilledRow,
)
from truegold.synth.strategies import Strategy, load_strategy
from truegold.synth.synthesis import RoundSampler, Synthesis

BECAME_TRAINABLE = "distilled_positive"
"""The reason in the ledger of a row that selection left out and that has a positive now."""


@stage_function(version=2, isolated=True, judges="hard", store=".samples")
def synth(inputs: Mapping[str, Path], config: SynthConfig, out_dir: Path, progress: Progress) -> StageReport:
    """Make positives.

    inputs: `hard`, `selected` and `reserve` of the selection; `profile`, `suspicion` and `samples` of the profile; the
    checkpoint in the folder `model`, which a scripted engine does without. Samples that lie in `store` are not drawn
    again. Writes distilled.parquet, attempts.parquet, selected.parquet and the ledger.
    """
    started = time.monotonic()
    strategies = [load_strategy(spelling) for spelling in config.strategies]
    progress.start("reading the hard rows")
    rows = read_hard_rows(inputs, config)
    scratch = out_dir / SCRATCH
    folders = (inputs.get(STORE, scratch / "samples"), scratch)
    model = inputs.get("model")
    source = sample_source(config.engine, config.chat, model)
    budget = Budget(config, strategies)
    with closing(RoundSampler(source, config.engine, config, model, folders, progress)) as sampler:
        reflector = sampler
        if config.reflector is not None:
            asked = config.reflector
            path = None if asked.model is None else Path(asked.model)
            other = sample_source(asked.engine, asked.chat, path)
            reflector = RoundSampler(other, asked.engine, config, path, folders, progress)
        try:
            synthesis = Synthesis(rows, config, sampler, reflector, budget)
            synthesis.run(progress)
            _bound_shares(rows, config)
            progress.start("writing the tables")
            _write_tables(rows, {strategy.name: strategy for strategy in strategies}, synthesis, out_dir)
        finally:
            if reflector is not sampler:
                reflector.close()
        sampling = sampler.facts
    rescued = [hard for hard in rows if hard.origin == "hard" and hard.positives]
    selected = map(_selected_record, rescued)
    write_rows(out_dir / "selected.parquet", chain(read_rows(inputs["selected"]), selected), SELECTED_SCHEMA)
    with Ledger(out_dir, "synth") as ledger:
        for hard in rescued:
            ledger.keep(hard.row, BECAME_TRAINABLE, positives=hard.positives, attempts=len(hard.attempts))
    facts = synthesis_facts(rows, budget) | {"sampling": sampling, "seconds": round(time.monotonic() - started, 1)}
    counts = {**ledger.counts, **_counts(rows)}
    return StageReport(len(rows), count_rows(out_dir / DISTILLED_FILE), counts, facts)


def _bound_shares(rows: Sequence[HardRow], config: SynthConfig) -> None:
    """Drop the least plausible positives of a strategy that has brought more than its share."""
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
        TableWriter(out_dir / DISTILLED_FILE, DISTILLED_SCHEMA) as distilled,
        TableWriter(out_dir / ATTEMPTS_FILE, ATTEMPT_SCHEMA) as attempts,
    ):
        for hard in rows:
            for attempt in hard.attempts:
                attempts.write(_attempt_record(hard, attempt))
                if attempt.kept:
                    prompt = synthesis.bare_prompt(hard)
                    distilled.write(_distilled_record(hard, attempt, strategies[attempt.strategy], prompt))


def _attempt_record(hard: HardRow, attempt: Attempt) -> AttemptRow:
    parent = attempt.parent
    assert attempt.ordinal is not None
    return {
        "id": hard.row["id"],
        "source": hard.row["source"],
        "source_row": hard.row["source_row"],
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


def _distilled_record(hard: HardRow, attempt: Attempt, strategy: Strategy, prompt: Sequence[int]) -> DistilledRow:
    token, sequence, geometric = attempt.leaks["weights"]
    assert attempt.ordinal is not None
    return {
        "id": hard.row["id"],
        "source": hard.row["source"],
        "source_row": hard.row["source_row"],
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
    known = hard.known
    return {
        **hard.row,
        "pass_rate": known.mean,
        "posterior_a": known.a,
        "posterior_b": known.b,
        "suspicion": hard.suspicion,
    }


def _counts(rows: Sequence[HardRow]) -> dict[str, int]:
    """Return how many attempts were kept, were wrong, or were dropped though they were right."""
    counts: dict[str, int] = {}
    for key in _outcomes(rows):
        counts[key] = counts.get(key, 0) + 1
    return counts


def _outcomes(rows: Sequence[HardRow]) -> Iterator[str]:
    for hard in rows:
        for attempt in hard.attempts:
            if attempt.kept:
                yield "positive"
            elif attempt.passed:
                yield f"positive_dropped:{attempt.dropped}"
            else:
                yield "attempt_failed"


EXAMPLES = 5
EXAMPLE_CHARS = 600


def synthesis_facts(rows: Sequence[HardRow], budget: Budget) -> dict[str, Any]:
    """Return what the stage's record and the report say of a synthesis."""
    with_positive = [hard for hard in rows if hard.positives]
    return {
        "hard_rows": len(rows),
        "rows_with_positive": len(with_positive),
        "became_trainable": sum(hard.origin == "hard" for hard in with_positive),
        "tokens": budget.spent,
        "budget_tokens": budget.config.budget_tokens,
        "rounds": budget.rounds,
        "strategies": _by_strategy(rows),
        "difficulties": _by_difficulty(rows),
        "dropped": _dropped(rows),
        "examples": _examples(with_positive),
    }


def _by_strategy(rows: Sequence[HardRow]) -> list[dict[str, Any]]:
    sums: dict[tuple[str, str], dict[str, Any]] = {}
    kept = sum(hard.positives for hard in rows)
    for hard in rows:
        for attempt in hard.attempts:
            empty = {"attempts": 0, "right": 0, "positives": 0, "tokens": 0}
            tally = sums.setdefault((attempt.strategy, hard.difficulty), empty)
            tally["attempts"] += 1
            tally["right"] += attempt.passed
            tally["positives"] += attempt.kept
            tally["tokens"] += attempt.tokens
    return [
        {
            "strategy": strategy,
            "difficulty": difficulty,
            **tally,
            "per_thousand_tokens": round(1000 * tally["positives"] / tally["tokens"], 3) if tally["tokens"] else None,
            "share": round(tally["positives"] / kept, 4) if kept else None,
        }
        for (strategy, difficulty), tally in sorted(sums.items())
    ]


def _by_difficulty(rows: Sequence[HardRow]) -> dict[str, dict[str, int]]:
    sums: dict[str, dict[str, int]] = {}
    for hard in rows:
        tally = sums.setdefault(hard.difficulty, {"rows": 0, "with_positive": 0})
        tally["rows"] += 1
        tally["with_positive"] += bool(hard.positives)
    return dict(sorted(sums.items()))


def _dropped(rows: Sequence[HardRow]) -> dict[str, int]:
    reasons: dict[str, int] = {}
    for hard in rows:
        for attempt in hard.attempts:
            if attempt.dropped is not None:
                reasons[str(attempt.dropped)] = reasons.get(str(attempt.dropped), 0) + 1
    return dict(sorted(reasons.items(), key=lambda entry: -entry[1]))


def _examples(rows: Sequence[HardRow]) -> list[dict[str, Any]]:
    """Return a few positives with what led to them, of different strategies first."""
    firsts: dict[str, tuple[HardRow, Attempt]] = {}
    others: list[tuple[HardRow, Attempt]] = []
    for hard in rows:
        for attempt in hard.attempts:
            if attempt.kept and attempt.strategy not in firsts:
                firsts[attempt.strategy] = hard, attempt
            elif attempt.kept:
                others.append((hard, attempt))
    chosen = [*firsts.values(), *others][:EXAMPLES]
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
        for hard, attempt in chosen
    ]
