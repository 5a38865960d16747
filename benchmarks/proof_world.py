"""The small world of the proof: word problems of ten stories in three sources, and the tiny models that answer them.

    source A    what a person has                 four stories
    source B    a box, a shop, points in a game   three
    source C    a bus, birds, children in a class three

The policy is the demo's after its cold start, which knows all stories and is careless: nearly a third of its samples
are right. The labeller is a weaker checkpoint with a cold start of its own, of other examples and 57 % as many.
Witnesses for `truegold flag --samples` are the policy, a third cold start of 20,000 examples, and the demo's model
after its training.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synthesis import run_stage

from truegold.pipeline.config.engines import VllmEngineConfig
from truegold.pipeline.demo.problems import STORIES, StoryTemplate, make_pools, pick_telling, tell, wrong_by_a_little
from truegold.train.config.models import OptimizerConfig, SftConfig, TinyModel

ENGINE = VllmEngineConfig(dtype="float32", max_model_len=256, cpu_kv_cache_gib=1)
SOURCES = {"A": (0, 1, 2, 3), "B": (4, 5, 8), "C": (6, 7, 9)}
"""The stories of each source, by their place in the demo's."""
CARELESS = 0.1
"""The share of a careless cold start, at its end, half of whose final values are wrong by 1 to 3."""


@dataclass(frozen=True)
class Maker:
    """A tiny model, and what its cold start was."""

    name: str
    sources: str
    examples: int
    seed: int
    careless: bool = True


LABELLER = Maker("labeller", "AB", 40_000, 0)
JUDGE = Maker("judge", "ABC", 20_000, 1, careless=False)


def stories_of(sources: str) -> tuple[StoryTemplate, ...]:
    """Return the stories of the sources."""
    return tuple(STORIES[index] for source in sources for index in SOURCES[source])


def policy(run: Path) -> Path:
    """Return the checkpoint that all trainings start from: the demo's after its cold start."""
    return run / "sft" / "checkpoint"


def model(maker: Maker, run: Path) -> Path:
    """Return the checkpoint of a tiny model after its cold start, which is made where it is not there yet."""
    folder = run / "proof" / "models" / maker.name
    folder.mkdir(parents=True, exist_ok=True)
    texts = folder / "sft.jsonl"
    if not texts.exists():
        texts.write_text("".join(f"{json.dumps(example)}\n" for example in _examples(maker)))
    config = TinyModel(seed=maker.seed)
    empty = run_stage(folder, "model", "truegold.train.model.checkpoints:build_tiny", {"texts": texts}, config)
    optimizer = OptimizerConfig(lr=3e-3, warmup_steps=20, dtype="float32")
    section = SftConfig(batch_size=64, optimizer=optimizer, seed=maker.seed)
    inputs = {"model": empty / "checkpoint", "data": texts}
    return run_stage(folder, "sft", "truegold.train.sft:sft", inputs, section) / "checkpoint"


def _examples(maker: Maker) -> Iterator[dict[str, str]]:
    rng = random.Random(f"cold start {maker.seed}")
    stories = stories_of(maker.sources)
    first_careless = round(maker.examples * (1 - CARELESS))
    for index, problem in zip(range(maker.examples), make_pools(held_out=False).draw(rng), strict=False):
        is_wrong = maker.careless and index >= first_careless and rng.random() < 0.5
        final = wrong_by_a_little(problem.answer, rng) if is_wrong else None
        yield {"prompt": tell(problem, pick_telling(rng, stories)), "completion": problem.working(final)}


def draw_records(count: int, sources: str, rng: random.Random, *, held_out: bool) -> list[dict[str, Any]]:
    """Return so many problems of each source with their true golds; no text comes twice."""
    records: dict[str, dict[str, Any]] = {}
    for source in sources:
        last = len(records) + count
        for problem in make_pools(held_out=held_out).draw(rng):
            question = tell(problem, pick_telling(rng, stories_of(source)))
            record = {"question": question, "answer": str(problem.answer), "truth": str(problem.answer)}
            records.setdefault(question, {**record, "source": source})
            if len(records) == last:
                break
    rows = list(records.values())
    rng.shuffle(rows)
    return [{"id": f"{index}", **row} for index, row in enumerate(rows)]
