"""Draws and judges samples, shard by shard, so that a killed profile goes on after its last whole shard.

A shard is one Parquet file, which is whole or absent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from truegold.pipeline.config.stages import ProfileConfig
from truegold.pipeline.engines import Engine, PromptEncoder, SamplingParams
from truegold.pipeline.engines.base import sample_seed
from truegold.pipeline.profile.model_judge import Judge
from truegold.pipeline.rows import (
    Float32List,
    Int32,
    Int32List,
    Row,
    RowReference,
    arrow_schema,
    count_rows,
    dump_json,
    read_shards,
    write_rows,
)
from truegold.pipeline.running.aside import written_aside
from truegold.pipeline.running.progress import Progress
from truegold.verifiers import Item, verify_batch


class SampleRow(RowReference):
    """A row of `samples.parquet`: one judged sample."""

    split: str
    sample: Int32
    """Which of the row's samples this is, from 0."""
    completion: str
    prompt_ids: Int32List
    token_ids: Int32List
    logprobs: Float32List
    finish_reason: str
    temperature: float
    top_p: float
    max_tokens: Int32
    seed: int
    score: float | None
    reason: str
    extracted: str | None
    evidence: str
    """A JSON object."""


SAMPLE_SCHEMA = arrow_schema(SampleRow)


@dataclass(frozen=True)
class Sampler:
    """An engine with its encoder, the settings it samples with, and the judge of what the verifiers leave open."""

    engine: Engine
    encoder: PromptEncoder
    config: ProfileConfig
    judge: Judge | None = None

    def close(self) -> None:
        """Close both engines."""
        self.engine.close()
        if self.judge is not None:
            self.judge.close()

    def draw(self, rows: Sequence[Row]) -> list[SampleRow]:
        """Return `config.samples` judged samples of each row, in order.

        There are none of a prompt that leaves the model no room to answer.
        """
        config = self.config
        encoded = [self.encoder.encode(row["prompt"]) for row in rows]
        draws = [
            (row, prompt, sample_index)
            for row, prompt in zip(rows, encoded, strict=True)
            if len(prompt) < self.engine.max_model_len
            for sample_index in range(config.samples)
        ]
        sampling = SamplingParams(config.temperature, config.top_p, config.max_tokens, self.encoder.stop_token_ids)
        seeds = [sample_seed(config.seed, row["id"], row["source_row"], index) for row, _, index in draws]
        completions = self.engine.generate([prompt for _, prompt, _ in draws], sampling, seeds)
        texts = [self.encoder.decode(completion.token_ids) for completion in completions]
        responses = [
            Item(text, row["gold"], row["verifier"], row["verifier_args"], row["prompt"])
            for text, (row, _, _) in zip(texts, draws, strict=True)
        ]
        verdicts = list(
            verify_batch(responses, config.workers, item_deadline_s=config.deadline_s, max_timeouts=config.max_timeouts)
        )
        if self.judge is not None:
            verdicts = self.judge(responses, verdicts)
        return [
            {
                "id": row["id"],
                "source": row["source"],
                "source_row": row["source_row"],
                "split": row["split"],
                "sample": sample_index,
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
            for (row, prompt, sample_index), seed, completion, text, verdict in zip(
                draws, seeds, completions, texts, verdicts, strict=True
            )
        ]


def draw_shards(
    rows: Path, shard_rows: int, folder: Path, start_sampler: Callable[[], Sampler], progress: Progress
) -> list[Path]:
    """Return one file of samples for each shard of `rows`.

    `start_sampler` is called once, and only where anything is left to draw.
    """
    folder.mkdir(parents=True, exist_ok=True)
    total = count_rows(rows)
    paths = [folder / f"{shard_index:06d}.parquet" for shard_index in range(-(-total // shard_rows))]
    drawn_before = sum(path.exists() for path in paths)
    if drawn_before:
        progress.note(f"{drawn_before} of {len(paths)} shards were drawn before; going on from there")
    if drawn_before == len(paths):
        return paths
    progress.start("loading the model")
    sampler = start_sampler()
    progress.start("sampling", total)
    for shard, path in zip(read_shards(rows, shard_rows), paths, strict=True):
        if path.exists():
            progress.advance(len(shard))
            continue
        began = time.monotonic()
        samples = sampler.draw(shard)
        with written_aside(path) as aside:
            write_rows(aside, samples, SAMPLE_SCHEMA)
        tokens = sum(len(sample["token_ids"]) for sample in samples)
        rate = tokens / max(time.monotonic() - began, 1e-9)
        progress.advance(len(shard), f"{rate:,.0f} tokens/s")
    sampler.close()
    return paths
