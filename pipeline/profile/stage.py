"""Measures pass rates: samples every problem several times, verifies each sample, and keeps all of it.

A problem sampled eight times with three right answers becomes eight rows in `samples.parquet` (token ids, log-probs,
finish reason, sampling parameters, verdict) and one in `profile.parquet`:

    n=8  judged=8  passes=3  pass_rate=0.375  low=0.137  high=0.694  pass_at={"1":0.375,"2":0.643,...}
    posterior=[{"weight": 0.4, "a": 9.1, "b": 13.2}, ...]  expected_rate=0.39  expected_deviation=0.13
    likely_low=0.18  likely_high=0.6  decision="useful"  decision_probability=0.83
    tokens_mean=41.2  tokens_max=77  truncated=0.0  repeating=0.0
    answers=4  majority_answer="18"  majority_agreement=0.375

Samples that could not be judged are left out of the pass rate and counted.

A pass rate of 0 drops nothing; where the samples agree on one other answer the row is flagged `suspect_gold`, with that
answer as the suggestion. What samples, rules and an asked model say of each row, and how little one model can know, is
in `suspicion.parquet` (`suspicion`). One shard of rows and samples is held in memory; for the suspicion also each row's
texts and 16 bytes of each sample.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, TypedDict

import orjson
import polars as pl

from truegold.pipeline.config.stages import ProfileConfig
from truegold.pipeline.judge.model import load_judge
from truegold.pipeline.judge.opinions import OPINION, open_opinion
from truegold.pipeline.profile.drawing import SAMPLE_SCHEMA, ProfileSamples, SampleRow, SamplingCost
from truegold.pipeline.profile.own_verifiers import audit_own_verifiers
from truegold.pipeline.profile.sample_store import SampleStore, sample_source, sampling_identity
from truegold.pipeline.profile.schedule import Schedule
from truegold.pipeline.profile.stopping_rule import PassRateBand, decide
from truegold.pipeline.rates.lengths import propose_max_tokens, quantile_length
from truegold.pipeline.rates.posterior import Component, Mixture, Priors, fit_priors
from truegold.pipeline.running.progress import Progress, paced
from truegold.pipeline.running.record_log import RecordLog
from truegold.pipeline.running.stage import REPLIES, SCRATCH, STORE, StageReport, stage_function
from truegold.pipeline.suspicion.answer_classes import Sample, differ_for_certain, key_of
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
    dump_json,
    read_rows,
    read_table,
    row_reference,
)
from truegold.verifiers import InputError, Item, Reason, gold_response, judges_solutions, resolve
from truegold.verifiers.rates import wilson_interval
from truegold.verifiers.running.batch import verify_one

TOO_LONG = "prompt_too_long_for_model"
NOT_SAMPLED = "not_sampled"
"""The budget was spent before the row had a sample."""

LOOP_TOKENS = 32
LOOP_ROUNDS = 4
LONGEST_LOOP = 64
"""A completion ends in a loop where its last tokens repeat a stretch of at most LONGEST_LOOP tokens at least
LOOP_ROUNDS times, LOOP_TOKENS tokens or more in all."""


@stage_function(
    version=11,
    isolated=True,
    judges="rows",
    aims=("group_size", "rows_to_select", "quotas", "zero_share"),
    store=".samples",
)
def profile(inputs: Mapping[str, Path], config: ProfileConfig, out_dir: Path, progress: Progress) -> StageReport:
    """Profile `rows` with the checkpoint in the folder `model`, which a scripted engine does without.

    `earlier` are samples of the same model before it was trained: with them the suspicion sees which answers have risen
    and which have fallen. From `flags` and `asked` it takes what curation has said of the rows. Samples that lie in
    `store` are not drawn again. Writes samples.parquet, profile.parquet, flags.parquet, suspicion.parquet, rows.parquet
    (the profiled rows), ledger and dropped rows.
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
        closing(RecordLog(scratch / f"verdicts-{store.name}")) as verdicts,
        closing(RecordLog(scratch / f"spent-{store.name}")) as spent,
        Ledger(out_dir, "profile") as ledger,
        TableWriter(out_dir / "samples.parquet", SAMPLE_SCHEMA) as samples,
        TableWriter(out_dir / "profile.parquet", PROFILE_SCHEMA) as profiles,
        TableWriter(out_dir / FLAGS_FILE, FLAG_SCHEMA) as flags,
        TableWriter(out_dir / "rows.parquet", ROW_SCHEMA) as profiled_rows,
    ):
        sampling = ProfileSamples(inputs["rows"], config, source, store, verdicts, spent, progress)
        schedule = sampling.draw(judge, opinion)
        if opinion is not None:
            opinion.counts.clear()  # Those of a killed process are missing: the table has all.
        priors = fit_priors(schedule.counts)
        for index, row in enumerate(paced(read_rows(inputs["rows"]), progress, "writing the tables", rows_in)):
            if (row_samples := sampling.samples(index, row)) is None:
                ledger.drop(row, TOO_LONG, chars=len(row["prompt"]))
                continue
            if not row_samples:
                ledger.drop(row, NOT_SAMPLED, budget_tokens=config.budget_tokens)
                continue
            summary = summarise(row, row_samples, priors)
            for sample in row_samples:
                samples.write(sample)
                if opinion is not None and (heard := orjson.loads(sample["evidence"]).get(OPINION)):
                    opinion.count(sample["reason"], heard["score"])
            profiles.write(summary)
            profiled_rows.write(row)
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


def _sampling_facts(schedule: Schedule, cost: SamplingCost, priors: Priors | None) -> dict[str, Any]:
    """Return what the samples cost, and by which rule rows got further ones."""
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
    """Yield the samples of a profile as those of one model, at a step of its training."""
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


def summarise(row: Row, samples: Sequence[SampleRow], priors: Priors | None) -> ProfileRow:
    """Return the pass rates of one problem from its judged samples, with the priors of all problems."""
    scores = [sample["score"] for sample in samples if sample["score"] is not None]
    passes = sum(score == 1.0 for score in scores)
    low, high = wilson_interval(passes, len(scores))
    known = priors.after(row["source"], row["domain"], len(scores), passes) if priors is not None and scores else None
    lengths = [len(sample["token_ids"]) for sample in samples]
    cut = [sample["token_ids"] for sample in samples if sample["finish_reason"] == "length"]
    loops = sum(sample["finish_reason"] == "repetition" for sample in samples)
    clusters = _answer_clusters(row, samples)
    answer, votes = max(clusters, key=lambda cluster: cluster[1], default=(None, 0))
    return {
        **row_reference(row),
        "split": row["split"],
        "n": len(samples),
        "judged": len(scores),
        "passes": passes,
        "unread": sum(map(_is_unread, samples)),
        "pass_rate": passes / len(scores) if scores else None,
        "low": low,
        "high": high,
        "pass_at": dump_json({str(k): round(pass_at_k(passes, len(scores), k), 6) for k in powers_up_to(len(scores))}),
        **_describe(known),
        "tokens_mean": sum(lengths) / len(lengths),
        "tokens_max": max(lengths),
        "truncated": len(cut) / len(samples),
        "repeating": (loops + sum(map(ends_in_a_loop, cut))) / len(samples),
        "answers": len(clusters),
        "majority_answer": answer,
        "majority_agreement": votes / len(samples),
    }


class _Known(TypedDict):
    """The columns with what is known of a pass rate."""

    posterior: list[Component]
    expected_rate: float | None
    expected_deviation: float | None
    likely_low: float | None
    likely_high: float | None
    decision: str | None
    decision_probability: float | None


@cache
def _describe(known: Mixture | None) -> _Known:
    """Return what is known of a pass rate, for the table. It is asked for once for all rows with the same counts."""
    if known is None:
        return {**dict.fromkeys(_Known.__annotations__), "posterior": []}  # type: ignore[typeddict-item]
    low, high = known.interval()
    decision, probability = decide(known)
    return {
        "posterior": known.components(),
        "expected_rate": known.mean,
        "expected_deviation": math.sqrt(known.variance),
        "likely_low": low,
        "likely_high": high,
        "decision": decision,
        "decision_probability": probability,
    }


def _is_unread(sample: SampleRow) -> bool:
    return sample["finish_reason"] == "stop" and sample["reason"] == str(Reason.UNREAD)


def is_suspect(summary: ProfileRow, agreement: float) -> bool:
    """Return whether no sample passes and at least `agreement` of all samples give one and the same other answer."""
    return bool(summary["judged"] and not summary["passes"] and summary["majority_agreement"] >= agreement)


def pass_at_k(passes: int, n: int, k: int) -> float:
    """Return the unbiased estimate 1 - C(n-c, k) / C(n, k) (Chen et al. 2021, arXiv 2107.03374, eq. 1)."""
    if not 1 <= k <= n:
        raise ValueError(f"k must lie in 1..n, got k={k}, n={n}")
    return 1.0 - math.comb(n - passes, k) / math.comb(n, k)


def powers_up_to(n: int) -> list[int]:
    """Return 1, 2, 4, ... up to n: the k that pass@k is reported at."""
    return [2**exponent for exponent in range(n.bit_length()) if 2**exponent <= n]


def ends_in_a_loop(token_ids: Sequence[int]) -> bool:
    """Return whether the last tokens repeat a stretch again and again."""
    for period in range(1, LONGEST_LOOP + 1):
        span = max(LOOP_ROUNDS * period, LOOP_TOKENS)
        if len(token_ids) < span:
            continue
        if token_ids[-span + period :] == token_ids[-span:-period]:
            return True
    return False


def answer_clusters(answers: Sequence[str], same: Callable[[str, str], bool]) -> list[tuple[str, int]]:
    """Return each distinct answer and how many samples give it; `same` decides whether two forms are one answer.

    Equal strings vote together before `same` is asked, so that it is asked once for each pair of distinct forms at
    most. An answer stands as the form and at the rank that was seen first.
    """
    counts: dict[str, int] = {}
    for answer in answers:
        counts[answer] = counts.get(answer, 0) + 1
    clusters: list[tuple[str, int]] = []
    for answer, count in counts.items():
        for cluster_index, (representative, votes) in enumerate(clusters):
            if same(representative, answer):
                clusters[cluster_index] = (representative, votes + count)
                break
        else:
            clusters.append((answer, count))
    return clusters


def _answer_clusters(row: Row, samples: Sequence[SampleRow]) -> list[tuple[str, int]]:
    """Return the samples' answers with their votes; the row's verifier says which forms are one answer."""
    verifier = resolve(row["verifier"])

    def same(representative: str, answer: str) -> bool:
        if judges_solutions(verifier) or differ_for_certain(representative, answer):
            # Programs are alike when they are the same text, and equal texts are one already.
            return False
        if key_of(representative) == key_of(answer):
            return True
        response = gold_response(verifier, answer, None)
        return response is not None and verify_one(Item(response, representative, row["verifier"])).passed

    return answer_clusters([s["extracted"] for s in samples if s["extracted"] is not None], same)


def _split_facts(out_dir: Path, split: str, *, same_samples: bool) -> dict[str, Any]:
    """Return what is known of the problems of one split, by the tables in `out_dir`.

    same_samples: whether all problems got as many samples; else observed pass rates are biased, and the means of the
    posteriors are taken.
    """
    problems = pl.read_parquet(out_dir / "profile.parquet").filter(split=split)
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
    """Return how many problems came to each decision, and what their samples cost."""
    tokens = (pl.col("tokens_mean") * pl.col("n")).round().cast(pl.Int64)
    spent = problems.group_by(decided=pl.col("decision").fill_null("undecided")).agg(
        problems=pl.len(), samples=pl.col("n").sum().cast(pl.Int64), tokens=tokens.sum()
    )
    by_decision = {record.pop("decided"): record for record in spent.to_dicts()}
    return {str(name): by_decision[name] for name in (*PassRateBand, "undecided") if name in by_decision}


def _rounded(values: pl.Series) -> float | None:
    """Return the mean of the values, None where there are none."""
    return round(math.fsum(values) / len(values), 4) if len(values) else None
