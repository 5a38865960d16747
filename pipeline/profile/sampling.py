"""Draws and judges samples, shard by shard, so that a killed profile goes on after its last whole shard.

A shard is one Parquet file, written aside and renamed: it is whole or absent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from truegold.pipeline.config.stages import ProfileConfig
from truegold.pipeline.engines import Engine, PromptEncoder, SamplingParams
from truegold.pipeline.engines.base import sample_seed
from truegold.pipeline.profile.model_judge import Judge
from truegold.pipeline.rows import Row, count_rows, dump_json, read_shards, write_rows
from truegold.pipeline.running.progress import Progress
from truegold.verifiers import Item, verify_batch

SAMPLE_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("source", pa.string()),
        ("source_row", pa.int64()),
        ("split", pa.string()),
        ("sample", pa.int32()),
        ("completion", pa.string()),
        ("prompt_ids", pa.list_(pa.int32())),
        ("token_ids", pa.list_(pa.int32())),
        ("logprobs", pa.list_(pa.float32())),
        ("finish_reason", pa.string()),
        ("temperature", pa.float64()),
        ("top_p", pa.float64()),
        ("max_tokens", pa.int32()),
        ("seed", pa.int64()),
        ("score", pa.float64()),
        ("reason", pa.string()),
        ("extracted", pa.string()),
        ("evidence", pa.string()),
    ]
)


@dataclass(frozen=True)
class Sampler:
    """An engine with its encoder and the settings it samples with."""

    engine: Engine
    encoder: PromptEncoder
    config: ProfileConfig
    judge: Judge | None = None

    def close(self) -> None:
        self.engine.close()
        if self.judge is not None:
            self.judge.close()

    def draw(self, rows: Sequence[Row]) -> list[Row]:
        """`config.samples` judged samples (SAMPLE_SCHEMA) of each row, in order; none for a prompt that leaves the
        model no room to answer."""
        config = self.config
        encoded = [self.encoder.encode(row["prompt"]) for row in rows]
        asked = [
            (row, prompt, number)
            for row, prompt in zip(rows, encoded, strict=True)
            if len(prompt) < self.engine.max_model_len
            for number in range(config.samples)
        ]
        sampling = SamplingParams(config.temperature, config.top_p, config.max_tokens, self.encoder.stop_token_ids)
        seeds = [sample_seed(config.seed, row["id"], row["source_row"], number) for row, _, number in asked]
        completions = self.engine.generate([prompt for _, prompt, _ in asked], sampling, seeds)
        texts = [self.encoder.decode(completion.token_ids) for completion in completions]
        items = [
            Item(text, row["gold"], row["verifier"], row["verifier_args"], row["prompt"])
            for text, (row, _, _) in zip(texts, asked, strict=True)
        ]
        verdicts = list(verify_batch(items, workers=config.workers))
        if self.judge is not None:
            verdicts = self.judge(items, verdicts)
        return [
            {
                "id": row["id"],
                "source": row["source"],
                "source_row": row["source_row"],
                "split": row["split"],
                "sample": number,
                "completion": text,
                "prompt_ids": prompt,
                "token_ids": list(completion.token_ids),
                "logprobs": list(completion.logprobs),
                "finish_reason": completion.finish_reason,
                "temperature": config.temperature,
                "top_p": config.top_p,
                "max_tokens": config.max_tokens,
                "seed": seed,
                "score": verdict.score,
                "reason": str(verdict.reason),
                "extracted": verdict.extracted,
                "evidence": dump_json(dict(verdict.evidence)),
            }
            for (row, prompt, number), seed, completion, text, verdict in zip(
                asked, seeds, completions, texts, verdicts, strict=True
            )
        ]


def draw_shards(
    rows: Path, shard_rows: int, folder: Path, start: Callable[[], Sampler], progress: Progress
) -> list[Path]:
    """One file of samples for each shard of `rows`. `start` makes the sampler, once, where anything is left to draw."""
    folder.mkdir(parents=True, exist_ok=True)
    total = count_rows(rows)
    paths = [folder / f"{number:06d}.parquet" for number in range(-(-total // shard_rows))]
    there = sum(path.exists() for path in paths)
    if there:
        progress.note(f"{there} of {len(paths)} shards were drawn before; going on from there")
    if there == len(paths):
        return paths
    progress.start("loading the model")
    sampler = start()
    progress.start("sampling", total)
    for shard, path in zip(read_shards(rows, shard_rows), paths, strict=True):
        if path.exists():
            progress.advance(len(shard))
            continue
        began = time.monotonic()
        samples = sampler.draw(shard)
        aside = path.with_suffix(".tmp")
        write_rows(aside, samples, SAMPLE_SCHEMA)
        aside.rename(path)
        tokens = sum(len(sample["token_ids"]) for sample in samples)
        rate = tokens / max(time.monotonic() - began, 1e-9)
        progress.advance(len(shard), f"{rate:,.0f} tokens/s")
    sampler.close()
    return paths
