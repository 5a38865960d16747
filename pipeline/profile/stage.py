"""Stage `profile`: samples every problem several times, verifies each sample, and measures pass rates.

A problem gets eight samples, and three are right. Then `samples.parquet` has eight rows for it (token ids,
log-probabilities, finish reason, sampling parameters, verdict), and `profile.parquet` has one:

    n=8  judged=8  passes=3  pass_rate=0.375  low=0.137  high=0.694  pass_at={"1":0.375,"2":0.643,...}
    posterior=[{"weight": 0.4, "a": 9.1, "b": 13.2}, ...]  expected_rate=0.39  expected_deviation=0.13
    likely_low=0.18  likely_high=0.6  decision="useful"  decision_probability=0.83
    tokens_mean=41.2  tokens_max=77  truncated=0.0  repeating=0.0
    answers=4  majority_answer="18"  majority_agreement=0.375

Samples that could not be judged count in `n`, but not in the pass rate. Rows with a pass rate of 0 are kept. If no
sample passes and most samples agree on one answer, the row is flagged `suspect_gold`, and that answer is suggested as
its gold. `suspicion.parquet` has the evidence on each gold, from samples, rules and a model that was asked about it.
`rule.json` has the rule that chose the number of samples of each row.

Memory holds a few parts of 5,000 rows at a time (`profiling`). For `suspicion.parquet`, it holds the texts of all rows
and 16 bytes of each sample.

Verifiers that are not built in are audited before they judge samples:

    verifier           right answers accepted   wrong ones accepted   Youden's J (95 % interval)   result
    checks.py:loose    37 of 40                 33 of 41              .12 (-.05 to .29)            warning
    checks.py:swapped  2 of 40                  39 of 41              -.90 (-.96 to -.77)          error

Youden's J is the share of right answers that are accepted, minus the share of wrong ones that are accepted. The audit
works like `truegold verifiers audit`, on a few golds of the rows. Verifiers of programs are not audited here, but by
their test suites (`vet_tests`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pyarrow.parquet as pq

from truegold.pipeline.config.stages import ProfileConfig
from truegold.pipeline.judge.model import load_judge
from truegold.pipeline.judge.opinions import OPINION, open_opinion
from truegold.pipeline.profile.drawing import SAMPLE_SCHEMA, SampleRow, SamplingCost
from truegold.pipeline.profile.profiling import NOT_SAMPLED, TOO_LONG, DroppedRow, ProfileParts, ProfileSamples
from truegold.pipeline.profile.sample_store import SampleStore, sample_source, sampling_identity
from truegold.pipeline.profile.schedule import Schedule
from truegold.pipeline.profile.stopping_rule import PassRateBand
from truegold.pipeline.profile.summary import describe, is_suspect
from truegold.pipeline.rates import Priors, fit_priors, propose_max_tokens, quantile_length
from truegold.pipeline.running.progress import Progress, paced
from truegold.pipeline.running.record_log import RecordLog
from truegold.pipeline.running.stage import REPLIES, SCRATCH, STORE, StageReport, stage_function
from truegold.pipeline.suspicion.answer_classes import Sample
from truegold.pipeline.suspicion.doubts import finds_lacking
from truegold.pipeline.suspicion.stage import read_others, score_rows
from truegold.pipeline.tables.ledger import FLAG_SCHEMA, FLAGS_FILE, Ledger, flag_record
from truegold.pipeline.tables.reasons import SUSPECT_GOLD
from truegold.pipeline.tables.rows import (
    PROFILE_SCHEMA,
    ROW_SCHEMA,
    ProfileRow,
    Row,
    TableWriter,
    count_rows,
    read_batches,
    read_table,
)
from truegold.verifiers import ConfigError, InputError, Reason, judges_solutions, resolve
from truegold.verifiers.audit.audit_report import NEAR_ZERO_J, AuditReport, audit
from truegold.verifiers.registry import BUILT_IN

GOLDS = 20
"""The maximum number of golds in an audit."""
SECONDS = 30.0
"""The time limit of an audit, which is enough for about 1,500 quick verdicts."""
MOST_GAMED = 0.05
"""A verifier may accept at most this share of responses without an answer. Otherwise a policy learns to write such
responses."""


def audit_own_verifiers(rows: Path, progress: Progress) -> dict[str, float | None]:
    """Return Youden's J of each verifier that is not built in, and print what is wrong with it.

    J is None if it could not be measured, because no right and wrong answers can be made from the golds. Raises
    ConfigError if a verifier prefers wrong answers, or accepts no gold.
    """
    known = pl.scan_parquet(rows).filter(pl.col("gold").is_not_null()).select("verifier", "verifier_args", "gold")
    names = known.select("verifier").unique().collect(engine="streaming")["verifier"].to_list()
    measured: dict[str, float | None] = {}
    for name in sorted(set(names) - BUILT_IN.keys()):
        if judges_solutions(resolve(name)):
            continue
        progress.start(f"auditing {name}")
        its_golds = known.filter(pl.col("verifier") == name).collect(engine="streaming")
        arguments = its_golds["verifier_args"].value_counts(sort=True)["verifier_args"][0]
        chosen = its_golds.filter(pl.col("verifier_args") == arguments)["gold"].to_list()
        report = audit(name, chosen, info=orjson.loads(arguments), limit=GOLDS, seconds=SECONDS)
        youden = report.youden
        measured[name] = None if youden is None else round(youden.j, 4)
        if (refused := _why_refused(report)) is not None:
            raise ConfigError(
                f"The verifier {name} fails its audit: {refused}",
                f"Its pass rates would mean nothing. See its errors: truegold verifiers audit {name} --data DATA",
            )
        if youden is not None and youden.low < NEAR_ZERO_J:
            progress.note(
                f"the verifier {name} fails its audit: it accepts {_share(1 - (report.false_negatives.share or 0.0))} "
                f"of the right answers and {_share(report.false_positives.share)} of the wrong ones that are made of "
                f"{report.audited} golds; truegold verifiers audit {name} --data DATA shows them"
            )
        if report.gamed.share is not None and report.gamed.share > MOST_GAMED:
            progress.note(
                f"the verifier {name} fails its audit: it accepts {_share(report.gamed.share)} of the responses that "
                "commit to nothing"
            )
    return measured


def _why_refused(report: AuditReport) -> str | None:
    refused = report.identity.rate
    if refused.share == 1.0:
        return f"it accepts none of {refused.judged} golds."
    youden = report.youden
    return youden.meaning if youden is not None and youden.high < 0 else None


def _share(share: float | None) -> str:
    return "none" if share is None else f"{share:.0%}"


@stage_function(
    version=12,
    isolated=True,
    judges="rows",
    aims=("group_size", "rows_to_select", "quotas", "zero_share"),
    store=".samples",
)
def profile(inputs: Mapping[str, Path], config: ProfileConfig, out_dir: Path, progress: Progress) -> StageReport:
    """Profile the table `rows` with the checkpoint in the folder `model`. A scripted engine needs no checkpoint.

    Optional inputs: `earlier` has samples of the same model before its training, which show how often it gave each
    answer then. `flags` and `asked` have the findings of curation. Samples in `store` are not drawn again. Writes
    samples.parquet, profile.parquet, flags.parquet, suspicion.parquet, rows.parquet (the profiled rows), the ledger and
    the dropped rows.
    """
    started = time.monotonic()
    audits = audit_own_verifiers(inputs["rows"], progress)
    scratch = out_dir / SCRATCH
    source = sample_source(config.engine, config.chat, inputs.get("model"))
    identity = sampling_identity(config.sampling_settings(), config.engine, source, inputs.get("model"), scratch)
    rows_in = count_rows(inputs["rows"])
    kept = inputs.get(STORE, scratch / "samples")
    judge = load_judge(config.judge, kept / REPLIES) if config.judge is not None else None
    opinion = open_opinion(config.second_opinion, kept)
    with (
        closing(SampleStore(kept, identity)) as store,
        closing(ProfileParts(scratch / f"work-{store.name}")) as work,
        closing(RecordLog(scratch / f"spent-{store.name}")) as spent,
    ):
        sampling = ProfileSamples(inputs["rows"], config, source, store, work, spent, progress)
        schedule = sampling.draw(judge, opinion)
    priors = fit_priors(sampling.counts())
    ledger = _write_tables(sampling, priors, config, out_dir, paced(sampling.parts(), progress, "writing the tables"))
    if rows_in and ledger.counts.get(f"drop:{TOO_LONG}") == rows_in:
        raise InputError(
            f"None of {rows_in} prompts leaves the model room for an answer: prompt and answer together are limited to "
            f"{source.max_model_len} tokens.",
            "Raise engine.max_model_len, or start the servers with a larger --max-model-len.",
        )
    if schedule.rule is not None:
        schedule.rule.write(out_dir / "rule.json")
    if opinion is not None:
        opinion.counts.clear()  # The opinions are counted in the table, which also has those of killed processes.
        for sample in read_table(out_dir / "samples.parquet", SampleRow, ["reason", "evidence"]):
            if heard := orjson.loads(sample["evidence"]).get(OPINION):
                opinion.count(sample["reason"], heard["score"])
    votes = _read_votes(out_dir / "samples.parquet", step=1)
    if "earlier" in inputs:
        votes = chain(_read_votes(inputs["earlier"], step=0), votes)
    known = read_others(inputs.get("flags"), inputs.get("asked"))
    _, suspicion = score_rows(out_dir / "rows.parquet", votes, known, 1, out_dir, by_source_id=False)
    same_samples = (config.first_samples or config.samples) >= config.samples
    facts = {
        split: _split_facts(out_dir, split, same_samples=same_samples or split == "heldout")
        for split in ("train", "heldout")
    }
    facts["suspicion"] = {"expected_faulty": suspicion["expected_faulty"], "rows": suspicion["items_with_samples"]}
    facts["audits"] = audits
    facts["sampling"] = _sampling_facts(schedule, sampling.cost, priors)
    costs = judge.report_costs(progress) if judge is not None else []
    if opinion is not None:
        facts[OPINION], opinion_costs = opinion.facts(progress)
        costs += opinion_costs
    seconds = round(time.monotonic() - started, 1)
    facts_of_all = {**facts, "costs": costs, "seconds": seconds}
    return StageReport(rows_in, rows_in - ledger.drops, dict(ledger.counts), facts_of_all)


def _write_tables(
    sampling: ProfileSamples, priors: Priors | None, config: ProfileConfig, out_dir: Path, parts: Iterable[Path]
) -> Ledger:
    with (
        Ledger(out_dir, "profile") as ledger,
        pq.ParquetWriter(out_dir / "samples.parquet", SAMPLE_SCHEMA, compression="zstd") as samples,
        TableWriter(out_dir / "profile.parquet", PROFILE_SCHEMA) as profiles,
        TableWriter(out_dir / FLAGS_FILE, FLAG_SCHEMA) as flags,
        TableWriter(out_dir / "rows.parquet", ROW_SCHEMA) as profiled_rows,
    ):
        for part in parts:
            for batch in read_batches(part / "samples.parquet"):
                samples.write_batch(batch)
            summaries = read_table(part / "profile.parquet", ProfileRow)
            for row in read_table(part / "rows.parquet", DroppedRow):
                reason = row.pop("drop_reason")  # type: ignore[misc]
                if reason is not None:
                    why: dict[str, dict[str, Any]] = {
                        TOO_LONG: {"chars": len(row["prompt"])},
                        NOT_SAMPLED: {"budget_tokens": config.budget_tokens},
                    }
                    ledger.drop(row, reason, **why[reason])
                    continue
                summary = describe(next(summaries), row["domain"], priors)
                profiles.write(summary)
                profiled_rows.write(row)
                if row["split"] != "heldout" and is_suspect(summary, config.suspect_agreement):
                    _flag(row, summary, flags, ledger)
    return ledger


def _sampling_facts(schedule: Schedule, cost: SamplingCost, priors: Priors | None) -> dict[str, Any]:
    """Return the cost of the samples, and the expected results of the stopping rule."""
    facts: dict[str, Any] = {
        "drawn": cost.drawn,
        "kept": cost.kept,
        "tokens": cost.tokens,
        "seconds": round(cost.seconds, 1),
        "tokens_per_s": round(cost.tokens / cost.seconds, 1) if cost.seconds else None,
        "expected_pass_rate": round(priors.whole.mean, 4) if priors is not None else None,
        **cost.engine,
    }
    if schedule.allocation is not None:
        facts["expected_samples"] = round(schedule.allocation.expected_samples, 2)
        facts["expected_teaching"] = round(schedule.allocation.expected_teaching, 4)
        facts["teaching_by_all_samples"] = round(schedule.allocation.teaching_by_all, 4)
    return facts


def _read_votes(path: Path, step: int) -> Iterator[Sample]:
    """Yield the samples of a profile as samples of one model at a training step."""
    for sample in read_table(path, SampleRow, ["id", "extracted", "score", "completion"]):
        yield Sample(
            sample["id"],
            "profiled",
            answer=sample["extracted"],
            score=sample["score"],
            judged=True,
            step=step,
            doubts=finds_lacking(sample["completion"]),
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


def _split_facts(out_dir: Path, split: str, *, same_samples: bool) -> dict[str, Any]:
    """Return facts about the problems of one split, from the tables in `out_dir`. `same_samples`: whether all problems
    have the same number of samples. If not, the observed pass rates are biased, and the means of the posteriors are
    used."""
    numbers = pl.exclude("id", "source", "pass_at", "posterior", "majority_answer")
    problems = pl.scan_parquet(out_dir / "profile.parquet").filter(split=split).select(numbers).collect()
    judged = problems.filter(pl.col("pass_rate").is_not_null())
    observed, known = judged["pass_rate"], judged["expected_rate"]
    decided = dict(judged["decision"].drop_nulls().value_counts().iter_rows())
    is_right = (pl.col("score") == 1.0) & (pl.col("finish_reason") == "stop")
    columns = {"length": pl.col("token_ids").list.len(), "is_right": is_right.fill_null(value=False)}
    scan = pl.scan_parquet(out_dir / "samples.parquet").filter(split=split)
    samples = scan.select("reason", **columns).collect(engine="streaming")
    lengths = samples["length"].cast(pl.Int64)
    right_lengths = dict(lengths.filter(samples["is_right"]).value_counts().iter_rows())
    limit = propose_max_tokens(right_lengths)
    beyond = None if limit is None or not lengths.sum() else int((lengths - limit).clip(0).sum()) / int(lengths.sum())
    return {
        "problems": problems.height,
        "mean_pass_rate": _rounded(observed if same_samples else known.fill_null(observed)),
        "never_passed": int((observed == 0).sum()),
        "always_passed": int((observed == 1).sum()),
        "unjudged_samples": int((problems["n"] - problems["judged"]).sum()),
        "unread_samples": int(problems["unread"].sum()),
        "timeouts": int((samples["reason"] == str(Reason.TIMEOUT)).sum()),
        "truncated": _rounded(problems["truncated"]),
        "repeating": _rounded(problems["repeating"]),
        "decisions": {str(band): decided[band] for band in PassRateBand if band in decided},
        "spent": _spent_by_decision(problems),
        "right_tokens": quantile_length(right_lengths),
        "proposed_max_tokens": limit,
        "tokens_beyond": None if beyond is None else round(beyond, 4),
    }


def _spent_by_decision(problems: pl.DataFrame) -> dict[str, dict[str, int]]:
    tokens = (pl.col("tokens_mean") * pl.col("n")).round().cast(pl.Int64)
    spent = problems.group_by(decided=pl.col("decision").fill_null("undecided")).agg(
        problems=pl.len(), samples=pl.col("n").sum().cast(pl.Int64), tokens=tokens.sum()
    )
    by_decision = {record.pop("decided"): record for record in spent.to_dicts()}
    return {str(name): by_decision[name] for name in (*PassRateBand, "undecided") if name in by_decision}


def _rounded(values: pl.Series) -> float | None:
    """Return the mean of the values, or None if there are none."""
    return round(math.fsum(values) / len(values), 4) if len(values) else None
