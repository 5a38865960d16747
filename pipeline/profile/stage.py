"""Measures pass rates: samples every problem several times, verifies each sample, and keeps all of it.

A problem sampled eight times with three right answers becomes eight rows in `samples.parquet` (token ids, log-probs,
finish reason, sampling parameters, verdict) and one in `profile.parquet`:

    n=8  judged=8  passes=3  pass_rate=0.375  low=0.137  high=0.694  pass_at={"1":0.375,"2":0.643,...}
    tokens_mean=41.2  tokens_max=77  truncated=0.0  majority_answer="18"  majority_agreement=0.375

Samples that could not be judged are left out of the pass rate and counted. A pass rate of 0 drops nothing; where the
samples agree on one other answer the row is flagged `suspect_gold`, with that answer as the suggestion. What the
samples say of each label, and how little one model can know, is in `suspicion.parquet` (`suspicion`). One shard of rows
and samples is held in memory; for the suspicion also each row's texts and 16 bytes of each sample.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from truegold.pipeline.config.stages import ProfileConfig
from truegold.pipeline.engines import build_engine
from truegold.pipeline.flag.suspicion import Sample
from truegold.pipeline.flag.suspicion.stage import score_rows
from truegold.pipeline.ledger import FLAG_SCHEMA, FLAGS_FILE, Ledger
from truegold.pipeline.profile.model_judge import load_judge
from truegold.pipeline.profile.pass_rates import largest_cluster, pass_at_k, powers_up_to
from truegold.pipeline.profile.sampling import SAMPLE_SCHEMA, Sampler, draw_shards
from truegold.pipeline.rows import ROW_SCHEMA, Row, TableWriter, count_rows, dump_json, read_rows, read_shards
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.running.stage import SCRATCH, StageReport, stage_function
from truegold.verifiers import gold_response, judges_solutions, resolve
from truegold.verifiers.rates import wilson_interval

PROFILE_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("source", pa.string()),
        ("source_row", pa.int64()),
        ("split", pa.string()),
        ("n", pa.int32()),
        ("judged", pa.int32()),
        ("passes", pa.int32()),
        ("pass_rate", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("pass_at", pa.string()),
        ("tokens_mean", pa.float64()),
        ("tokens_max", pa.int32()),
        ("truncated", pa.float64()),
        ("majority_answer", pa.string()),
        ("majority_agreement", pa.float64()),
    ]
)

SUSPECT_GOLD = "suspect_gold"
TOO_LONG = "prompt_too_long_for_model"


@stage_function(version=2, isolated=True, judges="rows")
def profile(inputs: Mapping[str, Path], config: ProfileConfig, out_dir: Path, progress: Progress) -> StageReport:
    """inputs: `rows`, and `model`, the checkpoint's folder (a scripted engine needs none).

    Writes samples.parquet, profile.parquet, flags.parquet, rows.parquet (the profiled rows), ledger and dropped rows.
    """
    started = time.monotonic()

    def start() -> Sampler:
        engine, encoder = build_engine(config.engine, config.chat, inputs.get("model"))
        return Sampler(engine, encoder, config, load_judge(config.judge) if config.judge is not None else None)

    drawn = draw_shards(inputs["rows"], config.shard_rows, out_dir / SCRATCH / "shards", start, progress)
    tallies = {"train": Tally(), "heldout": Tally()}
    rows_in = count_rows(inputs["rows"])
    with (
        Ledger(out_dir, "profile") as ledger,
        TableWriter(out_dir / "samples.parquet", SAMPLE_SCHEMA) as samples,
        TableWriter(out_dir / "profile.parquet", PROFILE_SCHEMA) as profiles,
        TableWriter(out_dir / FLAGS_FILE, FLAG_SCHEMA) as flags,
        TableWriter(out_dir / "rows.parquet", ROW_SCHEMA) as kept,
    ):
        for shard, path in zip(read_shards(inputs["rows"], config.shard_rows), drawn, strict=True):
            by_row = _group(read_rows(path))
            for row in shard:
                own = by_row.get((row["id"], row["source"], row["source_row"]))
                if own is None:
                    ledger.drop(row, TOO_LONG, chars=len(row["prompt"]))
                    continue
                summary = summarise(row, own)
                for sample in own:
                    samples.write(sample)
                profiles.write(summary)
                kept.write(row)
                tallies[row["split"]].add(summary)
                if row["split"] != "heldout" and is_suspect(summary, config.suspect_agreement):
                    _flag(row, summary, flags, ledger)
    _, suspicion = score_rows(out_dir / "rows.parquet", _judged(out_dir / "samples.parquet"), 1, out_dir)
    facts = {split: tally.facts() for split, tally in tallies.items()}
    facts["suspicion"] = {"expected_faulty": suspicion["expected_faulty"], "rows": suspicion["items_with_samples"]}
    seconds = round(time.monotonic() - started, 1)
    return StageReport(rows_in, rows_in - ledger.drops, dict(ledger.counts), {**facts, "seconds": seconds})


def _judged(path: Path) -> Iterator[Sample]:
    """The samples of this profile, as one system's."""
    for sample in read_rows(path, ["id", "extracted", "score"]):
        yield Sample(sample["id"], "profiled", answer=sample["extracted"], score=sample["score"], judged=True)


def summarise(row: Row, samples: Sequence[Row]) -> Row:
    """One row of PROFILE_SCHEMA from a problem's judged samples."""
    scores = [sample["score"] for sample in samples if sample["score"] is not None]
    passes = sum(score == 1.0 for score in scores)
    low, high = wilson_interval(passes, len(scores))
    lengths = [len(sample["token_ids"]) for sample in samples]
    answer, votes = _majority(row, samples)
    return {
        "id": row["id"],
        "source": row["source"],
        "source_row": row["source_row"],
        "split": row["split"],
        "n": len(samples),
        "judged": len(scores),
        "passes": passes,
        "pass_rate": passes / len(scores) if scores else None,
        "low": low,
        "high": high,
        "pass_at": dump_json({str(k): round(pass_at_k(passes, len(scores), k), 6) for k in powers_up_to(len(scores))}),
        "tokens_mean": sum(lengths) / len(lengths),
        "tokens_max": max(lengths),
        "truncated": sum(sample["finish_reason"] == "length" for sample in samples) / len(samples),
        "majority_answer": answer,
        "majority_agreement": votes / len(samples),
    }


def _majority(row: Row, samples: Sequence[Row]) -> tuple[str | None, int]:
    """The answer most samples give and its votes; two forms are one answer where the row's verifier says so."""
    verifier = resolve(row["verifier"])

    def same(one: str, other: str) -> bool:
        if judges_solutions(verifier):
            return one == other  # programs are alike when they are the same text
        response = gold_response(verifier, other, None)
        return response is not None and verifier(response, one).passed

    return largest_cluster([s["extracted"] for s in samples if s["extracted"] is not None], same)


def is_suspect(summary: Row, agreement: float) -> bool:
    """No sample passes and at least `agreement` of all samples give one and the same other answer."""
    return bool(summary["judged"] and not summary["passes"] and summary["majority_agreement"] >= agreement)


def _flag(row: Row, summary: Row, flags: TableWriter, ledger: Ledger) -> None:
    evidence = {name: summary[name] for name in ("n", "judged", "passes", "majority_answer", "majority_agreement")}
    flags.write(
        {
            "id": row["id"],
            "source": row["source"],
            "source_row": row["source_row"],
            "reason": SUSPECT_GOLD,
            "detector": "profile",
            "confidence": summary["majority_agreement"],
            "blocks": True,
            "evidence": dump_json({**evidence, "gold": row["gold"]}),
            "suggestion": summary["majority_answer"],
        }
    )
    ledger.flag(row, SUSPECT_GOLD, **evidence)


def _group(samples: Iterable[Row]) -> dict[tuple[str, str, int], list[Row]]:
    groups: dict[tuple[str, str, int], list[Row]] = {}
    for sample in samples:
        groups.setdefault((sample["id"], sample["source"], sample["source_row"]), []).append(sample)
    return groups


@dataclass
class Tally:
    """Running totals over the problems of one split."""

    problems: int = 0
    judged: int = 0
    rates: float = 0.0
    never: int = 0
    always: int = 0
    unjudged_samples: int = 0
    truncated: float = 0.0

    def add(self, summary: Row) -> None:
        self.problems += 1
        self.unjudged_samples += summary["n"] - summary["judged"]
        self.truncated += summary["truncated"]
        rate = summary["pass_rate"]
        if rate is not None:
            self.judged += 1
            self.rates += rate
            self.never += rate == 0
            self.always += rate == 1

    def facts(self) -> dict[str, object]:
        return {
            "problems": self.problems,
            "mean_pass_rate": round(self.rates / self.judged, 4) if self.judged else None,
            "never_passed": self.never,
            "always_passed": self.always,
            "unjudged_samples": self.unjudged_samples,
            "truncated": round(self.truncated / self.problems, 4) if self.problems else None,
        }
