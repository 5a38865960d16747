"""Measures pass rates: samples every problem several times, verifies each sample, and keeps all of it.

A problem sampled eight times with three right answers becomes eight rows in `samples.parquet` (token ids, log-probs,
finish reason, sampling parameters, verdict) and one in `profile.parquet` (`pass_rates`).

A pass rate of 0 drops nothing; where the samples agree on one other answer the row is flagged `suspect_gold`, with that
answer as the suggestion. What the samples say of each label, and how little one model can know, is in
`suspicion.parquet` (`suspicion`). One shard of rows and samples is held in memory; for the suspicion also each row's
texts and 16 bytes of each sample.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any

from truegold.pipeline.config.stages import ProfileConfig
from truegold.pipeline.profile.drawing import SamplingCost
from truegold.pipeline.profile.model_judge import load_judge
from truegold.pipeline.profile.pass_rates import PassRateTotals, is_suspect, summarise
from truegold.pipeline.profile.sampling import SAMPLE_SCHEMA, SampleRow, Sampling
from truegold.pipeline.profile.schedule import Schedule
from truegold.pipeline.profile.source import sample_source, sampling_identity
from truegold.pipeline.profile.store import RecordLog, SampleStore
from truegold.pipeline.rates.prior import Prior, fit_prior
from truegold.pipeline.running.progress import Progress, paced
from truegold.pipeline.running.stage import SCRATCH, STORE, StageReport, stage_function
from truegold.pipeline.suspicion import Sample
from truegold.pipeline.suspicion.stage import score_rows
from truegold.pipeline.tables.ledger import FLAG_SCHEMA, FLAGS_FILE, Ledger, flag_record
from truegold.pipeline.tables.profile import PROFILE_SCHEMA, ProfileRow
from truegold.pipeline.tables.reasons import SUSPECT_GOLD
from truegold.pipeline.tables.rows import ROW_SCHEMA, Row, TableWriter, count_rows, read_rows, read_table
from truegold.verifiers import InputError

TOO_LONG = "prompt_too_long_for_model"
NOT_SAMPLED = "not_sampled"
"""The budget was spent before the row had a sample."""


@stage_function(version=9, isolated=True, judges="rows", store=".samples")
def profile(inputs: Mapping[str, Path], config: ProfileConfig, out_dir: Path, progress: Progress) -> StageReport:
    """Profile `rows` with the checkpoint in the folder `model`, which a scripted engine does without.

    `earlier` are samples of the same model before it was trained: with them the suspicion sees which answers have risen
    and which have fallen. Samples that lie in `store` are not drawn again. Writes samples.parquet, profile.parquet,
    flags.parquet, suspicion.parquet, rows.parquet (the profiled rows), ledger and dropped rows.
    """
    started = time.monotonic()
    scratch = out_dir / SCRATCH
    source = sample_source(config.engine, config.chat, inputs.get("model"))
    identity = sampling_identity(config.sampling_settings(), config.engine, source, inputs.get("model"), scratch)
    same_samples = (config.first_samples or config.samples) >= config.samples
    totals = {"train": PassRateTotals(same_samples), "heldout": PassRateTotals()}
    rows_in = count_rows(inputs["rows"])
    with (
        closing(SampleStore(inputs.get(STORE, scratch / "samples"), identity)) as store,
        closing(RecordLog(scratch / "verdicts")) as verdicts,
        closing(RecordLog(scratch / "spent")) as spent,
        Ledger(out_dir, "profile") as ledger,
        TableWriter(out_dir / "samples.parquet", SAMPLE_SCHEMA) as samples,
        TableWriter(out_dir / "profile.parquet", PROFILE_SCHEMA) as profiles,
        TableWriter(out_dir / FLAGS_FILE, FLAG_SCHEMA) as flags,
        TableWriter(out_dir / "rows.parquet", ROW_SCHEMA) as profiled_rows,
    ):
        sampling = Sampling(inputs["rows"], config, source, store, verdicts, spent, progress)
        schedule = sampling.draw(load_judge(config.judge) if config.judge is not None else None)
        prior = fit_prior(schedule.counts)
        for index, row in enumerate(paced(read_rows(inputs["rows"]), progress, "writing the tables", rows_in)):
            row_samples = sampling.samples(index, row)
            if row_samples is None:
                ledger.drop(row, TOO_LONG, chars=len(row["prompt"]))
                continue
            if not row_samples:
                ledger.drop(row, NOT_SAMPLED, budget_tokens=config.budget_tokens)
                continue
            summary = summarise(row, row_samples, prior)
            for sample in row_samples:
                samples.write(sample)
            profiles.write(summary)
            profiled_rows.write(row)
            totals[row["split"]].add(summary, row_samples)
            if row["split"] != "heldout" and is_suspect(summary, config.suspect_agreement):
                _flag(row, summary, flags, ledger)
    if rows_in and ledger.counts.get(f"drop:{TOO_LONG}") == rows_in:
        raise InputError(
            f"None of {rows_in} prompts leaves the model room for an answer: prompt and answer may have "
            f"{source.max_model_len} tokens.",
            "Raise engine.max_model_len, or start the servers with a larger --max-model-len.",
        )
    votes = _read_votes(out_dir / "samples.parquet", step=1)
    if "earlier" in inputs:
        votes = chain(_read_votes(inputs["earlier"], step=0), votes)
    _, suspicion = score_rows(out_dir / "rows.parquet", votes, 1, out_dir, by_source_id=False)
    facts = {split: split_totals.facts() for split, split_totals in totals.items()}
    facts["suspicion"] = {"expected_faulty": suspicion["expected_faulty"], "rows": suspicion["items_with_samples"]}
    facts["sampling"] = _sampling_facts(schedule, sampling.cost, prior)
    seconds = round(time.monotonic() - started, 1)
    return StageReport(rows_in, rows_in - ledger.drops, dict(ledger.counts), {**facts, "seconds": seconds})


def _sampling_facts(schedule: Schedule, cost: SamplingCost, prior: Prior | None) -> dict[str, Any]:
    """Return what the samples cost, and by which rule rows got further ones."""
    alike = prior.after(0, 0) if prior is not None else None
    facts: dict[str, Any] = {
        "drawn": cost.drawn,
        "kept": cost.kept,
        "tokens": cost.tokens,
        "seconds": round(cost.seconds, 1),
        "tokens_per_s": round(cost.tokens / cost.seconds, 1) if cost.seconds else None,
        "prior": [round(end, 3) for end in (alike.a, alike.b)] if alike is not None else None,
        **cost.engine,
    }
    if schedule.allocation is not None:
        facts["expected_samples"] = round(schedule.allocation.expected_samples, 2)
        facts["expected_agreement"] = round(schedule.allocation.expected_agreement, 4)
    return facts


def _read_votes(path: Path, step: int) -> Iterator[Sample]:
    """Yield the samples of a profile as those of one model, at a step of its training."""
    for sample in read_table(path, SampleRow, ["id", "extracted", "score"]):
        yield Sample(
            sample["id"], "profiled", answer=sample["extracted"], score=sample["score"], judged=True, step=step
        )


def _flag(row: Row, summary: ProfileRow, flags: TableWriter, ledger: Ledger) -> None:
    evidence = {name: summary[name] for name in ("n", "judged", "passes", "majority_answer", "majority_agreement")}
    flags.write(
        flag_record(
            row,
            SUSPECT_GOLD,
            detector="profile",
            evidence={**evidence, "gold": row["gold"]},
            confidence=summary["majority_agreement"],
            suggestion=summary["majority_answer"],
        )
    )
    ledger.flag(row, SUSPECT_GOLD, **evidence)
