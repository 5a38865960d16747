"""Rollouts beside the update: bounded staleness, a ledger in which every group ends once, and the same after a stop."""

from __future__ import annotations

import json
import os
import pickle
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from parity_problems import write_parity_problems
from transformers import AutoModelForCausalLM

from truegold.pipeline.config.base import LaunchConfig
from truegold.pipeline.config.engines import VllmEngineConfig
from truegold.pipeline.engines.base import Request, SamplingParams
from truegold.pipeline.running.isolation import call_isolated
from truegold.pipeline.running.progress import NullProgress
from truegold.train.config.grpo import GrpoConfig
from truegold.train.model.distributed import init_distributed
from truegold.train.rollout import sampler as sampler_end
from truegold.train.rollout import samplers
from truegold.train.rollout.sampler import Sampler, Submitted
from truegold.train.rollout.sampler_child import SamplerSetup
from truegold.train.rollout.samplers import SamplerPool
from truegold.train.rollout.weight_transfer import write_weights
from truegold.verifiers import GuardError

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("default")]


WORKER = "tests.real.asynchronous_worker:train"


@pytest.fixture
def inputs(tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    root = str(Path(__file__).parents[2])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([root, os.environ.get("PYTHONPATH", "")]))
    return write_parity_problems(tiny_model, tmp_path, 16, 8)


def train(
    inputs: dict[str, Path],
    out: Path,
    steps: int,
    asynchronous: dict[str, Any],
    ranks: int = 1,
    zero_stage: int = 1,
    sync_every: int = 1,
) -> list[dict[str, float]]:
    config = GrpoConfig.model_validate(
        {
            "steps": steps,
            "prompts_per_step": 4,
            "group_size": 4,
            "asynchronous": asynchronous,
            "sync_every": sync_every,
            "sampling": {"max_tokens": 10, "refills": 1},
            "objective": {"masks": {"truncated": False}, "loss": "ppo"},
            "evaluation": {"every": 3, "samples": 1},
            "checkpoint_every": 2,
            "engine": VllmEngineConfig(dtype="float32", max_model_len=64, cpu_kv_cache_gib=1),
            "optimizer": {"lr": 1e-3, "dtype": "float32", "zero_stage": zero_stage},
        }
    )
    out.mkdir(exist_ok=True)
    launch = LaunchConfig(ranks=ranks)
    call_isolated(WORKER, inputs, config, out, NullProgress(), out.with_suffix(".log"), launch, out / "scratch")
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def ledger(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "groups.jsonl").read_text().splitlines()]


def assert_every_group_ended_once(out: Path, steps: int) -> None:
    """Look into the ledger of a training of so many steps of 4 groups, with one round of refills."""
    records = ledger(out)
    assert set(Counter(record["group"] for record in records).values()) == {1}
    by_step = Counter((record["step"], record["event"]) for record in records)
    for step in range(steps):
        assert 4 <= by_step[step, "trained"] + by_step[step, "idle"] <= 8
    completions = pl.concat(pl.read_parquet(path) for path in sorted((out / "completions").glob("*.parquet")))
    trained = {(record["step"], record["id"]) for record in records if record["event"] == "trained"}
    assert trained == set(completions.filter(pl.col("trained")).select("step", "id").unique().iter_rows())
    # What is neither ended nor asked for again would be lost.
    state = pickle.loads((out / f"state-{steps}-0").read_bytes())
    pending = {key for key, *_ in state["pending_groups"]}
    assert pending | {record["group"] for record in records} == set(range(state["next_group"]))
    assert not pending & {record["group"] for record in records}


@pytest.mark.long_run
def test_every_group_ends_once_and_none_is_too_old_also_after_a_stop(inputs: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    train(inputs, out, 4, {"max_staleness": 2, "order": "fresh"})
    metrics = train(inputs, out, 7, {"max_staleness": 2, "order": "fresh"})
    steps = [step for step in metrics if "staleness_max" in step]
    assert [step["step"] for step in steps] == list(range(7))
    assert max(step["staleness_max"] for step in steps) in (1, 2)
    assert_every_group_ended_once(out, 7)


@pytest.mark.long_run
@pytest.mark.timeout(200)
def test_a_step_that_trains_nothing_makes_no_group_older(inputs: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "left_out.json").write_text("[3]")
    metrics = train(inputs, out, 6, {"max_staleness": 1}, sync_every=2)
    last = pl.read_parquet(next(out.glob("completions/step-000005*.parquet")))
    # Three updates before the last sync, and one after it: were it a version further, all groups would be too old.
    assert last["version"].unique().to_list() == [3]
    assert max(step["staleness_max"] for step in metrics if "staleness_max" in step) <= 1
    assert_every_group_ended_once(out, 6)


@pytest.mark.long_run
@pytest.mark.parametrize(("in_flight", "zero_stage"), [(False, 1), (True, 3)])
def test_two_ranks_share_two_samplers(
    inputs: dict[str, Path], tmp_path: Path, in_flight: bool, zero_stage: int
) -> None:
    out = tmp_path / "out"
    asynchronous = {"max_staleness": 2, "samplers": 2, "in_flight": in_flight}
    train(inputs, out, 2, asynchronous, ranks=2, zero_stage=zero_stage)
    metrics = train(inputs, out, 5, asynchronous, ranks=2, zero_stage=zero_stage)
    steps = [step for step in metrics if "staleness_max" in step]
    assert [step["step"] for step in steps] == list(range(5))
    assert max(step["staleness_max"] for step in steps) in (1, 2)
    assert_every_group_ended_once(out, 5)
    for step in range(5):
        shares = [pl.read_parquet(path) for path in sorted(out.glob(f"completions/step-{step:06d}*.parquet"))]
        assert [set(share["group"] % 2) for share in shares] == [{0}, {1}]
    first, second = (torch.load(out / f"weights-{rank}.pt") for rank in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)
    for step in (0, 2, 4, 5):
        states = [(out / f"state-{step}-{rank}").read_bytes() for rank in range(2)]
        assert repr(pickle.loads(states[0])) == repr(pickle.loads(states[1])), step


CONFIG = VllmEngineConfig(dtype="float32", max_model_len=256, max_num_seqs=4, cpu_kv_cache_gib=1)


NOTES: list[str] = []


@pytest.fixture(scope="module")
def pool(tiny_model: Path) -> Iterator[SamplerPool]:
    init_distributed()
    setups = [SamplerSetup(name, tiny_model, CONFIG) for name in ("0", "1")]
    made = SamplerPool(lambda: setups, note=NOTES.append)
    yield made
    made.close()


def weights(model: Path, factor: float) -> Iterator[tuple[str, torch.Tensor]]:
    causal_lm = AutoModelForCausalLM.from_pretrained(str(model), dtype=torch.float32)
    for name, tensor in causal_lm.state_dict().items():
        yield name, tensor * factor


LONG = SamplingParams(max_tokens=200)


def test_weights_in_flight_leave_each_token_with_its_version(pool: SamplerPool, tiny_model: Path) -> None:
    newer = list(weights(tiny_model, 1.1))
    requests = [Request((5, 6, 7 + index), index, index) for index in range(80)]
    pool.start(LONG, in_flight=True)
    for request in requests:
        pool.submit([request])
    assert [len(sampler.outstanding) for sampler in pool.samplers] == [40, 40]
    done = pool.poll(None)
    # Each samples four at a time, so that others have just begun, and most have not.
    pool.update_weights(iter(newer), 1)
    while len(done) < len(requests):
        done += pool.poll(None)
    assert [sampler.version for sampler in pool.samplers] == [1, 1]
    assert [sampler.outstanding for sampler in pool.samplers] == [{}, {}]
    assert [path.name for path in pool._folder.iterdir()] == ["version-1"]
    for each in done:
        assert sum(tokens for _, tokens in each.versions) == len(each.answer.token_ids)
    counts = Counter(tuple(version for version, _ in each.versions) for each in done)
    assert set(counts) == {(0,), (0, 1), (1,)}
    assert counts[0, 1] <= 8


def test_generate_interrupts_the_background_and_loses_nothing(pool: SamplerPool) -> None:
    alone = pool.generate([(5, 6), (5, 7), (5, 6)], [LONG] * 3, [3, 4, 5])
    pool.submit([Request((8, 9, 10), index, 100 + index) for index in range(5)])
    assert pool.generate([(5, 6), (5, 7), (5, 6)], [LONG] * 3, [3, 4, 5]) == alone
    done = []
    while len(done) < 5:
        done += pool.poll(None)
    assert sorted(each.sample for each in done) == [100, 101, 102, 103, 104]


def test_what_samplers_hold_is_seen_in_one_that_differs(pool: SamplerPool, tiny_model: Path) -> None:
    pool.update_weights(weights(tiny_model, 1.0), 2)
    pool.generate([(5, 6)], [LONG], [3])
    held = dict(weights(tiny_model, 1.0))

    def differing() -> list[str]:
        # The CPU build packs matrices into vectors of its own.
        norms = {name: vector for name, vector in pool.vectors().items() if name.endswith("norm.weight")}
        assert norms
        return [name for name, vector in norms.items() if not torch.equal(vector, held[name])]

    assert not differing()
    stale = pool.samplers[1]
    folder = pool._folder / "other"
    write_weights(weights(tiny_model, 1.5), folder, [stale.name])
    stale.send_weights(folder, 3)
    assert differing()


def kill(sampler: Sampler) -> None:
    assert sampler.process is not None
    os.kill(sampler.process.pid or 0, signal.SIGKILL)


def test_a_sampler_that_dies_starts_again_with_the_weights_in_training(
    pool: SamplerPool, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samplers, "FIRST_PAUSE_S", 0.1)
    requests = [Request((5, 6, 7 + index // 4), index, 200 + index) for index in range(40)]
    prompts, short = [(5, 6), (7, 8), (9, 10), (11, 12)], [SamplingParams(max_tokens=4)] * 4
    pool.update_weights(weights(tiny_model, 1.0), 5)
    expected = pool.generate(prompts, short, [0, 1, 2, 3])
    for start in range(0, 40, 4):
        pool.submit(requests[start : start + 4])
    if not pool.samplers[0].is_streaming:
        pool.start(LONG, in_flight=True)
    done = pool.poll(None)
    kill(pool.samplers[1])
    # The other one takes over what it had begun, in the background and at once.
    assert pool.generate(prompts, short, [0, 1, 2, 3]) == expected
    while len(done) < len(requests):
        done += pool.poll(None)
    assert sorted(each.sample for each in done) == [request.sample for request in requests]
    while len(pool.samplers) < 2:
        pool.poll(1.0)
    assert NOTES[0] == "sampler 1 is lost: The sampling process died (exit code -9)."
    assert NOTES[-1] == "sampler 1 samples, with the weights of version 5"
    again = pool.samplers[1]
    again.pause()
    again.await_pause()
    again.ask("generate", prompts, short, [0, 1, 2, 3])
    assert again.answer() == expected
    again.resume()
    again.submit([Submitted("requests", 300, Request((5, 6, 7), 0, 300))])
    (last,) = pool.poll(None)
    assert [version for version, _ in last.versions] == [5]


def test_a_sampler_that_hangs_is_ended_and_the_other_one_does_its_work(
    pool: SamplerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampler_end, "LONGEST_SILENCE_S", 10.0)
    NOTES.clear()
    requests = [Request((5, 6, 7 + index // 4), index, 400 + index) for index in range(40)]
    hanging = pool.samplers[1].process
    assert hanging is not None
    os.kill(hanging.pid or 0, signal.SIGSTOP)
    for start in range(0, 40, 4):
        pool.submit(requests[start : start + 4])
    done = []
    while len(done) < len(requests):
        done += pool.poll(None)
    assert sorted(each.sample for each in done) == [request.sample for request in requests]
    assert (
        f"is lost: The sampling process {hanging.pid} hangs: it has work, but has sent no message for 10 seconds"
        in NOTES[0]
    )
    assert not hanging.is_alive()
    while len(pool.samplers) < 2:
        pool.poll(1.0)


def test_a_sampler_that_dies_again_and_again_ends_the_training(
    pool: SamplerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The last of this file, since it ends the samplers of the pool.
    monkeypatch.setattr(samplers, "MOST_LOSSES", 1)
    for sampler in pool.samplers:
        kill(sampler)
    with pytest.raises(GuardError, match=r"The sampling process died \(exit code -9\)"):
        pool.generate([(5, 6), (7, 8)], [SamplingParams(max_tokens=4)] * 2, [0, 1])
