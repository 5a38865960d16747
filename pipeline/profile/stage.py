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
from itertools import chain
from pathlib import Path

from truegold.pipeline.config.stages import ProfileConfig
from truegold.pipeline.engines import build_engine
from truegold.pipeline.flag.suspicion import Sample
from truegold.pipeline.flag.suspicion.stage import score_rows
from truegold.pipeline.ledger import FLAG_SCHEMA, FLAGS_FILE, Ledger, flag_record
from truegold.pipeline.profile.model_judge import load_judge
from truegold.pipeline.profile.pass_rates import PROFILE_SCHEMA, PassRateTotals, ProfileRow, is_suspect, summarise
from truegold.pipeline.profile.sampling import SAMPLE_SCHEMA, Sampler, SampleRow, draw_shards
from truegold.pipeline.rows import (
    ROW_SCHEMA,
    Row,
    TableWriter,
    count_rows,
    group_by_row,
    read_shards,
    read_table,
    row_key,
)
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.running.stage import SCRATCH, StageReport, stage_function

SUSPECT_GOLD = "suspect_gold"
TOO_LONG = "prompt_too_long_for_model"


@stage_function(version=4, isolated=True, judges="rows")
def profile(inputs: Mapping[str, Path], config: ProfileConfig, out_dir: Path, progress: Progress) -> StageReport:
    """Profile `rows` with the checkpoint in the folder `model`, which a scripted engine does without.

    `earlier` are samples of the same model before it was trained: with them the suspicion sees which answers have risen
    and which have fallen. Writes samples.parquet, profile.parquet, flags.parquet, suspicion.parquet, rows.parquet (the
    profiled rows), ledger and dropped rows.
    """
    started = time.monotonic()

    def start_sampler() -> Sampler:
        engine, encoder = build_engine(config.engine, config.chat, inputs.get("model"))
        return Sampler(engine, encoder, config, load_judge(config.judge) if config.judge is not None else None)

    sample_files = draw_shards(inputs["rows"], config.shard_rows, out_dir / SCRATCH / "shards", start_sampler, progress)
    totals = {"train": PassRateTotals(), "heldout": PassRateTotals()}
    rows_in = count_rows(inputs["rows"])
    with (
        Ledger(out_dir, "profile") as ledger,
        TableWriter(out_dir / "samples.parquet", SAMPLE_SCHEMA) as samples,
        TableWriter(out_dir / "profile.parquet", PROFILE_SCHEMA) as profiles,
        TableWriter(out_dir / FLAGS_FILE, FLAG_SCHEMA) as flags,
        TableWriter(out_dir / "rows.parquet", ROW_SCHEMA) as profiled_rows,
    ):
        for shard, path in zip(read_shards(inputs["rows"], config.shard_rows), sample_files, strict=True):
            samples_by_row = group_by_row(read_table(path, SampleRow))
            for row in shard:
                row_samples = samples_by_row.get(row_key(row))
                if row_samples is None:
                    ledger.drop(row, TOO_LONG, chars=len(row["prompt"]))
                    continue
                summary = summarise(row, row_samples)
                for sample in row_samples:
                    samples.write(sample)
                profiles.write(summary)
                profiled_rows.write(row)
                totals[row["split"]].add(summary, row_samples)
                if row["split"] != "heldout" and is_suspect(summary, config.suspect_agreement):
                    _flag(row, summary, flags, ledger)
    votes = _read_votes(out_dir / "samples.parquet", step=1)
    if "earlier" in inputs:
        votes = chain(_read_votes(inputs["earlier"], step=0), votes)
    _, suspicion = score_rows(out_dir / "rows.parquet", votes, 1, out_dir)
    facts = {split: split_totals.facts() for split, split_totals in totals.items()}
    facts["suspicion"] = {"expected_faulty": suspicion["expected_faulty"], "rows": suspicion["items_with_samples"]}
    seconds = round(time.monotonic() - started, 1)
    return StageReport(rows_in, rows_in - ledger.drops, dict(ledger.counts), {**facts, "seconds": seconds})


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
