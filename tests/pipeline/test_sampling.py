"""Drawing samples: none is lost or drawn twice, whatever is killed, grown or judged anew."""

from __future__ import annotations

import dataclasses
import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import orjson
import polars as pl
import pytest
from numbered_rows import make_row

from truegold.pipeline.config.engines import ScriptedEngineConfig
from truegold.pipeline.config.stages import ProfileConfig
from truegold.pipeline.engines.base import Completion, Request, SamplingParams, TakeRequests
from truegold.pipeline.engines.scripted import ScriptedEngine
from truegold.pipeline.profile import profiling
from truegold.pipeline.profile.stage import profile
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.running.record_log import RecordLog
from truegold.pipeline.running.stage import StageReport
from truegold.pipeline.tables.rows import write_rows
from truegold.verifiers import InputError

ROWS = 24
COMPLETIONS = 12


def run(
    folder: Path,
    count: int = ROWS,
    gold: str = "5",
    out: str = "profile",
    *,
    last_first: bool = False,
    other_gold: str | None = None,
    **config: Any,
) -> StageReport:
    """Profile problems of which the n-th passes n times of ROWS; the store of `folder` stays.

    other_gold: each problem comes a second time, with this gold.
    """
    rows = [make_row(problem, "train" if problem % 6 else "heldout", gold) for problem in range(1, count + 1)]
    if other_gold is not None:
        rows = [other for row in rows for other in (row, {**row, "gold": other_gold, "id": f"{row['id']}-other"})]
    if last_first:
        rows.reverse()
    write_rows(folder / "rows.parquet", rows)
    script = [
        {
            "prompt": f"<{problem}>",
            "completions": [
                f"\\boxed{{{5 if (sample * 7) % COMPLETIONS < problem / 2 else 6}}}" for sample in range(COMPLETIONS)
            ],
        }
        for problem in range(1, ROWS + 9)
    ]
    (folder / "script.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in script))
    settings = ProfileConfig(
        engine=ScriptedEngineConfig(path=str(folder / "script.jsonl")), **{"samples": 12, "first_samples": 4, **config}
    )
    out_dir = folder / out
    out_dir.mkdir(exist_ok=True)
    inputs = {"rows": folder / "rows.parquet", "store": folder / "store"}
    return profile(inputs, settings, out_dir, NullProgress())


def tables(folder: Path, out: str = "profile") -> list[pl.DataFrame]:
    return [pl.read_parquet(folder / out / f"{name}.parquet") for name in ("samples", "profile", "rows", "flags")]


class Killed(Exception):
    """Stands for a kill: nothing after it is run."""


def kill_after(monkeypatch: pytest.MonkeyPatch, samples: int) -> None:
    """Let the engine die when it has finished so many samples, of which all but the last ones are judged."""
    whole = ScriptedEngine.stream

    def stream(
        self: ScriptedEngine, take: TakeRequests, sampling: SamplingParams
    ) -> Iterator[tuple[Request, Completion]]:
        def take_few(count: int) -> list[Request] | None:
            time.sleep(0.02)  # Until the few before are judged.
            return take(min(count, 8))

        for finished, sample in enumerate(whole(self, take_few, sampling)):
            if finished == samples:
                raise Killed
            yield sample

    monkeypatch.setattr(ScriptedEngine, "stream", stream)


def run_killed(folder: Path, monkeypatch: pytest.MonkeyPatch, *kills: int, **config: Any) -> None:
    """Profile, and be killed after so many samples each time."""
    for samples in kills:
        with monkeypatch.context() as patch:
            kill_after(patch, samples)
            with pytest.raises(Killed):
                run(folder, **config)
    assert list(folder.rglob("verdicts/*/*.jsonl")), "nothing was judged before the kill"


def drawn_in(store: Path) -> list[tuple[str, int]]:
    return [
        (record["prompt"], record["sample"]) for folder in store.iterdir() for _, record in RecordLog(folder).scan()
    ]


def test_further_samples_go_to_open_problems_only(tmp_path: Path) -> None:
    report = run(tmp_path)
    _, summaries, _, _ = tables(tmp_path)
    train = summaries.filter(pl.col("split") == "train")
    assert train["n"].min() == 4
    assert train["n"].max() > 4
    assert set(summaries.filter(pl.col("split") == "heldout")["n"]) == {12}
    assert report.facts["sampling"]["drawn"] == summaries["n"].sum()


def test_what_each_decision_cost_adds_up_and_can_be_written(tmp_path: Path) -> None:
    facts = orjson.loads(orjson.dumps(run(tmp_path).facts))
    samples, summaries, _, _ = tables(tmp_path)
    spent = [cost for split in ("train", "heldout") for cost in facts[split]["spent"].values()]
    assert sum(cost["problems"] for cost in spent) == summaries.height
    assert sum(cost["samples"] for cost in spent) == samples.height
    assert sum(cost["tokens"] for cost in spent) == samples["token_ids"].list.len().sum() == facts["sampling"]["tokens"]


def test_a_profile_killed_again_and_again_ends_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    whole.mkdir()
    cut.mkdir()
    run(whole)
    run_killed(cut, monkeypatch, 0, 1, 7, 30, 3, 11)
    run(cut)
    for left, right in zip(tables(whole), tables(cut), strict=True):
        assert left.equals(right)
    drawn = drawn_in(cut / "store")
    assert len(drawn) == len(set(drawn)) == tables(whole)[0].height


def test_rows_done_in_many_parts_end_as_in_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    whole.mkdir()
    cut.mkdir()
    report = run(whole)
    monkeypatch.setattr(profiling, "PART_ROWS", 5)
    assert run(cut) == dataclasses.replace(report, facts={**report.facts, "seconds": ANY, "sampling": ANY})
    for left, right in zip(tables(whole), tables(cut), strict=True):
        assert left.equals(right)
    assert (cut / "profile" / "rule.json").read_bytes() == (whole / "profile" / "rule.json").read_bytes()
    parts = sorted((cut / "profile" / "scratch").glob("work-*/parts/*"))
    assert [pl.read_parquet(part / "rows.parquet").height for part in parts] == [5, 5, 5, 5, 4]
    assert not list((cut / "profile" / "scratch").glob("work-*/verdicts/0*/*.jsonl"))


@pytest.mark.parametrize("pilot", [0, 6, ROWS])
def test_a_profile_killed_between_parts_ends_the_same_and_keeps_those_that_are_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pilot: int
) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    whole.mkdir()
    cut.mkdir()
    monkeypatch.setattr(profiling, "PART_ROWS", 4)
    monkeypatch.setattr(profiling, "PILOT_ROWS", pilot)
    run(whole)
    done: list[int] = []
    for _ in range(12):
        with monkeypatch.context() as patch:
            kill_after(patch, 14)
            try:
                run(cut)
                break
            except Killed:
                done.append(len(list((cut / "profile" / "scratch").glob("work-*/parts/?????"))))
    else:
        run(cut)
    assert done == sorted(done)
    if pilot < ROWS:  # Else all rows are done at once.
        assert 0 < done[-1] < 6
    for left, right in zip(tables(whole), tables(cut), strict=True):
        assert left.equals(right)
    drawn = drawn_in(cut / "store")
    assert len(drawn) == len(set(drawn)) == tables(whole)[0].height


def remove_all(store: Path) -> None:
    shutil.rmtree(store)


def remove_first_file(store: Path) -> None:
    next(store.glob("*/000000.jsonl")).unlink()


def cut_first_file(store: Path) -> None:
    log = next(store.glob("*/000000.jsonl"))
    log.write_bytes(log.read_bytes()[:3000])


@pytest.mark.parametrize("remove", [remove_all, remove_first_file, cut_first_file])
def test_a_killed_profile_whose_samples_are_gone_starts_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, remove: Callable[[Path], None]
) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    whole.mkdir()
    cut.mkdir()
    run(whole, other_gold="6")
    run_killed(cut, monkeypatch, 60, 30, other_gold="6")
    remove(cut / "store")
    run(cut, other_gold="6")
    for left, right in zip(tables(whole), tables(cut), strict=True):
        assert left.equals(right)


def test_a_sample_that_replaces_a_lost_one_is_judged_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_killed(tmp_path, monkeypatch, 60)
    shutil.rmtree(tmp_path / "store")
    whole = ScriptedEngine.stream

    def sixes(
        self: ScriptedEngine, take: TakeRequests, sampling: SamplingParams
    ) -> Iterator[tuple[Request, Completion]]:
        for request, completion in whole(self, take, sampling):
            ids = tuple(ord("6") if token == ord("5") else token for token in completion.token_ids)
            yield request, dataclasses.replace(completion, token_ids=ids)

    with monkeypatch.context() as patch:
        patch.setattr(ScriptedEngine, "stream", sixes)
        run_killed(tmp_path, monkeypatch, 60)
    run(tmp_path)
    samples = tables(tmp_path)[0]
    assert set(samples["extracted"]) == {"5", "6"}
    assert [bytes(ids[:-1]).decode() for ids in samples["token_ids"]] == samples["completion"].to_list()


def test_samples_that_are_gone_have_cost_a_budget_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_killed(tmp_path, monkeypatch, 39, budget_tokens=400)
    shutil.rmtree(tmp_path / "store")
    report = run(tmp_path, budget_tokens=400)
    # Samples have 10 tokens: 40 reach it, of which 39 were drawn before.
    assert report.facts["sampling"]["drawn"] >= 40


def test_a_line_that_a_kill_cut_short_is_drawn_again(tmp_path: Path) -> None:
    run(tmp_path)
    samples = tables(tmp_path)[0]
    (log,) = (tmp_path / "store").glob("*/000000.jsonl")
    log.write_bytes(log.read_bytes()[:-9])
    report = run(tmp_path, out="again")
    assert report.facts["sampling"]["drawn"] == 1
    assert tables(tmp_path, "again")[0].equals(samples)


@pytest.mark.parametrize("left", [b'{"prompt": "9c0e', b"3", b"[]", b"\0\0"])
def test_a_line_that_is_spoilt_in_the_middle_is_drawn_again(tmp_path: Path, left: bytes) -> None:
    run(tmp_path)
    samples = tables(tmp_path)[0]
    (log,) = (tmp_path / "store").glob("*/000000.jsonl")
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join([*lines[:5], left + b"\n", *lines[6:]]))
    report = run(tmp_path, out="again")
    assert report.facts["sampling"]["drawn"] == 1
    assert tables(tmp_path, "again")[0].equals(samples)


def test_where_no_prompt_leaves_room_the_length_is_named(tmp_path: Path) -> None:
    write_rows(tmp_path / "rows.parquet", [{**make_row(1, "train", "5"), "prompt": "x" * 2_000_000}])
    (tmp_path / "script.jsonl").write_text("")
    settings = ProfileConfig(engine=ScriptedEngineConfig(path=str(tmp_path / "script.jsonl")))
    out = tmp_path / "profile"
    out.mkdir()
    with pytest.raises(InputError, match="None of 1 prompts leaves the model room"):
        profile({"rows": tmp_path / "rows.parquet"}, settings, out, NullProgress())


def test_a_grown_data_set_draws_for_its_new_rows_alone(tmp_path: Path) -> None:
    run(tmp_path, first_samples=None)
    report = run(tmp_path, count=ROWS + 5, out="grown", first_samples=None)
    assert report.facts["sampling"]["drawn"] == 5 * 12
    assert report.facts["sampling"]["kept"] == ROWS * 12


def test_another_gold_is_judged_without_sampling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path, first_samples=None)
    before = tables(tmp_path)[1]["passes"].sum()

    def never(*args: object) -> None:
        raise AssertionError("the engine was started")

    monkeypatch.setattr(ScriptedEngine, "stream", never)
    report = run(tmp_path, gold="6", out="judged", first_samples=None)
    assert report.facts["sampling"]["drawn"] == 0
    assert tables(tmp_path, "judged")[1]["passes"].sum() == ROWS * 12 - before


def test_other_sampling_draws_anew(tmp_path: Path) -> None:
    run(tmp_path, first_samples=None)
    report = run(tmp_path, out="warmer", first_samples=None, temperature=0.7)
    assert report.facts["sampling"]["kept"] == 0


def test_a_spent_budget_keeps_what_was_drawn_and_names_the_rest(tmp_path: Path) -> None:
    report = run(tmp_path, budget_tokens=400)
    samples, summaries, _, _ = tables(tmp_path)
    dropped = pl.read_parquet(tmp_path / "profile" / "dropped.parquet")
    assert samples.height == summaries["n"].sum() > 0
    assert summaries.height + dropped.height == ROWS
    assert report.counts.get("drop:not_sampled", 0) == dropped.height


def test_a_budget_takes_no_row_whose_samples_are_kept(tmp_path: Path) -> None:
    run(tmp_path, first_samples=None)
    report = run(tmp_path, count=ROWS + 8, out="grown", last_first=True, first_samples=None, budget_tokens=1)
    _, summaries, _, _ = tables(tmp_path, "grown")
    old = summaries.filter(pl.col("source_row") <= ROWS)
    assert old.height == ROWS
    assert set(old["n"]) == {12}
    assert report.facts["sampling"]["kept"] == ROWS * 12


def test_a_budget_is_that_of_a_stage_however_often_it_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_killed(tmp_path, monkeypatch, 20, 20, budget_tokens=400)
    report = run(tmp_path, budget_tokens=400)
    # 40 samples of 9 tokens were drawn before: 5 are left, and 64 are on their way when these are finished.
    assert report.facts["sampling"]["drawn"] <= 5 + 64


def test_rows_with_one_prompt_share_its_samples(tmp_path: Path) -> None:
    report = run(tmp_path, other_gold="6", first_samples=None)
    samples, summaries, _, _ = tables(tmp_path)
    assert report.facts["sampling"]["drawn"] == len(drawn_in(tmp_path / "store")) == ROWS * 12
    assert samples.height == 2 * ROWS * 12
    # Every sample says 5 or 6, and is right under one of the two golds.
    by_problem = summaries.group_by("source_row").agg(pl.col("passes").sum())
    assert set(by_problem["passes"]) == {12}
