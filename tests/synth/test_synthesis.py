"""Synthesis on a scripted model: what it tries, what it is told, what it keeps, and that a kill changes nothing."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest
from chat_server import ChatServer
from synth_world import HARD, World, select_rows

from truegold.pipeline.config.stages import SelectConfig
from truegold.pipeline.engines.base import SamplingParams, TakeRequests
from truegold.pipeline.engines.chat_engine import ChatEngine
from truegold.pipeline.engines.scripted import ScriptedEngine
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.running.record_log import RecordLog
from truegold.synth.synthesis import is_improbable

RETRY = "Here is a solution that is not right"
REFLECTION = "which step went wrong"
KEEP = "Keep in mind"
RIGHT = "We add: 2+3=5, so \\boxed{5}"


def tables(world: World, out: str = "synth") -> dict[str, pl.DataFrame]:
    return {
        name: pl.read_parquet(world.folder / out / f"{name}.parquet") for name in ("distilled", "attempts", "selected")
    }


def test_a_hard_row_gets_a_positive_by_feedback_and_becomes_trainable(world: World) -> None:
    before = pl.read_parquet(world.folder / "select" / "selected.parquet")
    report = world.synthesise({RETRY: [RIGHT]}, strategies=["retry"])
    made = tables(world)
    assert report.rows_in == HARD
    assert made["distilled"].height == HARD == report.rows_out
    assert set(made["distilled"]["completion"]) == {RIGHT}
    assert set(made["distilled"]["strategy"]) == {"retry"}
    trainable = made["selected"].height - before.height
    hard = pl.read_parquet(world.folder / "select" / "hard.parquet")
    assert trainable == hard.height == report.facts["became_trainable"]
    assert report.counts["keep:distilled_positive"] == trainable


def test_a_row_that_becomes_trainable_leaves_the_reserve(world: World) -> None:
    select_rows(world.folder, SelectConfig(min_teaching=0))
    waiting, hard = (
        set(pl.read_parquet(world.folder / "select" / f"{name}.parquet")["id"]) for name in ("reserve", "hard")
    )
    assert waiting == hard != set()
    world.synthesise({RETRY: [RIGHT]}, strategies=["retry"])
    assert pl.read_parquet(world.folder / "synth" / "reserve.parquet").height == 0
    selected = pl.read_parquet(world.folder / "synth" / "selected.parquet")["id"].to_list()
    assert waiting < set(selected)
    assert len(selected) == len(set(selected))


def test_the_record_has_the_bare_prompt_and_no_token_of_the_context(world: World) -> None:
    world.synthesise({RETRY: [RIGHT]}, strategies=["retry"])
    for record in tables(world)["distilled"].iter_rows(named=True):
        assert bytes(record["prompt_ids"]).decode() == record["prompt"]
        assert "not right" not in record["prompt"]
        assert len(record["output_ids"]) == len(record["context_logprobs"]) == len(record["bare_logprobs"])
        # The scripted engine finds everything as likely with the context as without it.
        assert record["geometric_weight"] == record["sequence_weight"] == record["token_weight"] == 1.0


def test_feedback_tells_what_was_read_and_never_the_gold(world: World) -> None:
    world.synthesise({RETRY: ["I think \\boxed{11}"]}, strategies=["retry"], attempts=3)
    told = tables(world)["attempts"]
    first = told.filter(pl.col("attempt") == 0)
    assert all("was read as" in context for context in first["context"])
    for context, row_id in zip(told["context"], told["id"], strict=True):
        prompt = pl.read_parquet(world.folder / "rows.parquet").filter(pl.col("id") == row_id)["prompt"][0]
        assert "5" not in context.replace(prompt, "")


def test_an_attempt_that_fails_is_gone_on_from_with_its_own_feedback(world: World) -> None:
    world.synthesise({RETRY: ["I think \\boxed{11}"]}, strategies=["retry"], attempts=8, depth=3)
    attempts = tables(world)["attempts"]
    later = attempts.filter(pl.col("parent").is_not_null())
    assert later.height > 0
    assert all("read as 11" in context for context in later["context"])
    assert attempts.group_by("id").len()["len"].max() == 8


def test_a_reflection_is_asked_for_first_and_put_into_the_prompt(world: World) -> None:
    world.synthesise({REFLECTION: ["The sum went astray."], KEEP: [RIGHT]}, strategies=["reflect"])
    made = tables(world)
    assert set(made["attempts"]["reflection"]) == {"The sum went astray."}
    assert all("The sum went astray." in context for context in made["attempts"]["context"])
    chain = orjson.loads(made["distilled"]["chain"][0])
    assert [link["strategy"] for link in chain] == ["profile", "reflect"]
    assert chain[1]["reflection"] == "The sum went astray."
    # What the reflection cost is counted.
    answer_tokens = made["distilled"]["output_ids"].list.len()[0]
    assert made["attempts"]["tokens"][0] == answer_tokens + len("The sum went astray.") + 1


def test_another_model_writes_the_reflections_by_name(world: World, tmp_path: Path) -> None:
    script = tmp_path / "stronger.jsonl"
    script.write_bytes(orjson.dumps({"prompt": REFLECTION, "completions": ["Look at the sum."]}) + b"\n")
    reflector = {"name": "stronger", "engine": {"type": "scripted", "path": str(script)}}
    world.synthesise({REFLECTION: ["no idea"], KEEP: [RIGHT]}, strategies=["reflect"], reflector=reflector)
    assert set(tables(world)["attempts"]["reflection"]) == {"Look at the sum."}


def test_a_chat_model_writes_the_reflections_and_is_paid_once(world: World) -> None:
    server = ChatServer(lambda messages: "Look at the sum." if REFLECTION in messages[-1]["content"] else 500)
    engine = {"type": "chat", "base_url": server.url, "model": "m", "price_per_million_output": 1e5}
    settings = {"strategies": ["reflect"], "reflector": {"name": "stronger", "engine": engine}, "max_tokens": 200}
    report = world.synthesise({KEEP: [RIGHT]}, **settings)
    again = world.synthesise({}, "again", **settings)
    server.stop()
    made, (costs,) = tables(world), report.facts["costs"]
    assert set(made["attempts"]["reflection"]) == {"Look at the sum."}
    assert costs["requests"] == costs["cost"] == len(server.bodies) == made["attempts"].height
    # Its tokens are those that the server has counted.
    assert made["attempts"]["tokens"][0] == made["distilled"]["output_ids"].list.len()[0] + 10
    assert again.facts["costs"][0]["requests"] == 0
    assert tables(world, "again")["attempts"].equals(made["attempts"])


def test_the_gold_is_shown_last_and_marked(world: World) -> None:
    answers = {RETRY: ["I think \\boxed{11}"], "For checking only": ["First 2+3=5. \\boxed{5}"]}
    world.synthesise(answers, strategies=["retry", "rationalize"], attempts=3, max_share={})
    made = tables(world)
    assert set(made["attempts"].filter(pl.col("strategy") == "rationalize")["attempt"]) == {2}
    assert set(made["distilled"]["uses_gold"]) == {True}
    assert set(made["distilled"]["trust"]) == {0.3}


def test_a_strategy_has_no_larger_share_than_it_may(world: World) -> None:
    answers: dict[str, list[str]] = {"For checking only": ["First 2+3=5. \\boxed{5}"]}
    answers |= {f"<{n}>\n\nHere is a solution that is not right": [RIGHT] for n in range(1, 9)}
    answers[RETRY] = ["I think \\boxed{11}"]
    report = world.synthesise(answers, strategies=["retry", "rationalize"], attempts=2, positives=1)
    made = tables(world)["distilled"]
    assert made["uses_gold"].sum() == 2
    assert made.height == 10
    assert report.counts["positive_dropped:over_share"] == 2


def test_the_hotter_strategy_samples_the_bare_prompt_at_its_temperature(world: World) -> None:
    # Of the wrong completions none is right, so nothing comes of it but attempts.
    world.synthesise({}, strategies=["hotter"], attempts=2)
    attempts = tables(world)["attempts"]
    assert set(attempts["context"]) == {""}
    assert set(attempts["temperature"]) == {1.3}


def hot_answers(*completions: str) -> dict[str, Any]:
    """What the model says to each hard row's bare prompt: sample 10,000, the first one here, is the first of four."""
    return {f"<{number}>": list(completions) for number in range(1, HARD + 1)}


def test_where_the_answer_can_be_guessed_a_bare_prompt_needs_a_second_right_sample(world: World) -> None:
    wrong = "I think \\boxed{7}"
    answers = hot_answers(wrong, RIGHT, wrong, "2 and 3 make 2+3=5. \\boxed{5}")
    report = world.synthesise(answers, strategies=["hotter"], attempts=4, positives=1)
    attempts, made = tables(world)["attempts"], tables(world)["distilled"]
    assert set(attempts.filter(pl.col("attempt") == 1)["dropped"]) == {"unconfirmed"}
    assert set(made["attempt"]) == {3}
    assert made.height == HARD == report.counts["positive_dropped:unconfirmed"]
    (tally,) = report.facts["strategies"]
    profile = pl.read_parquet(world.folder / "profile" / "profile.parquet")
    rates = attempts.join(profile, on=["id", "source", "source_row"])["expected_rate"]
    assert tally["by_chance"] == pytest.approx(rates.sum(), abs=0.01)
    assert tally["right"] == 2 * HARD


def test_a_positive_of_the_bare_prompt_has_its_logprobs_at_temperature_1(world: World) -> None:
    world.synthesise(hot_answers(RIGHT), strategies=["hotter"], attempts=2)
    made = tables(world)["distilled"]
    assert made.height == HARD
    for record in made.iter_rows(named=True):
        assert record["bare_logprobs"] == record["context_logprobs"] == [-1.0] * len(record["output_ids"])
        assert orjson.loads(record["leaks"])["bare_probability"] == 0.3679
        assert record["geometric_weight"] == 1.0


def test_a_sample_of_the_bare_prompt_that_the_policy_finds_improbable_is_dropped(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("truegold.pipeline.engines.scripted.SCRIPTED_LOGPROB", -3.0)
    settings: dict[str, Any] = {"strategies": ["hotter"], "attempts": 2}
    # All that the policy says is so improbable: 1 in 100 of its own samples is the measure.
    assert world.synthesise(hot_answers(RIGHT), **settings).counts["positive"] == HARD
    monkeypatch.setattr("truegold.synth.synthesis.FEWEST_SAMPLES", 1000)
    report = world.synthesise(hot_answers(RIGHT), "again", **settings)
    # Of 28 tokens: 28 * -3 is below 28 * log(.1) + log(.001) = -71.4.
    assert report.counts["positive_dropped:implausible"] == 2 * HARD


def test_a_rare_answer_is_not_improbable_and_gibberish_is() -> None:
    own = -0.05
    # Of ten tokens one decides, and the policy takes it once in 200 times.
    assert not is_improbable([math.log(0.005), *[own] * 9], own)
    assert is_improbable([-8.5, -3.1, -2.4, *[own] * 5], own)
    assert is_improbable([-0.12] * 200, own)
    assert not is_improbable([], own)


def test_a_strategy_without_room_says_so(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ScriptedEngine.__init__, "__defaults__", (150,))
    notes: list[str] = []
    monkeypatch.setattr(NullProgress, "note", lambda self, text: notes.append(text))
    report = world.synthesise({}, strategies=["retry", "reflect", "hotter"], attempts=3, max_tokens=50)
    assert set(tables(world)["attempts"]["strategy"]) == {"hotter"}
    length = len(f"Problem number <1>\n\n{RETRY}") + 200
    for line, strategy in zip(sorted(notes), ("reflect", "retry"), strict=True):
        match = re.fullmatch(
            rf"{strategy}: the prompt is too long in (\d+) of \1 rows: it has at least (\d+) tokens, "
            "and the model takes 150.",
            line,
        )
        assert match and 150 <= int(match[2]) <= 2 * length
    assert report.facts["no_room"] == sorted(notes)


def test_a_leak_is_dropped_with_its_reason(world: World) -> None:
    told = "My previous attempt forgot the 3: 2+3=5, so \\boxed{5}"
    report = world.synthesise({RETRY: [told]}, strategies=["retry"], attempts=1)
    assert report.counts["positive_dropped:mentions_attempt"] == HARD
    assert tables(world)["distilled"].height == 0
    assert set(tables(world)["attempts"]["dropped"]) == {"mentions_attempt"}


def test_the_same_positive_is_kept_once(world: World) -> None:
    report = world.synthesise({RETRY: [RIGHT]}, strategies=["retry"], attempts=3, positives=2)
    assert tables(world)["distilled"].height == HARD
    assert report.counts["positive_dropped:near_copy"] == 2 * HARD


def test_tokens_stay_within_the_budget_and_facts_add_up(world: World) -> None:
    report = world.synthesise({RETRY: ["I think \\boxed{11}"]}, strategies=["retry"], budget_tokens=600, round_rows=4)
    attempts = tables(world)["attempts"]
    assert 0 < attempts["tokens"].sum() == report.facts["tokens"] <= 600
    by_strategy = report.facts["strategies"]
    assert sum(line["attempts"] for line in by_strategy) == attempts.height
    assert sum(line["tokens"] for line in by_strategy) == attempts["tokens"].sum()
    orjson.dumps(report.facts)


def test_a_chat_model_that_is_killed_is_asked_nothing_twice(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reflections come from a server that has neither token ids nor log-probabilities; those are the policy's."""
    answers: dict[str, Any] = {KEEP: ["\\boxed{9}", RIGHT]}
    server = ChatServer(lambda messages: f"Look at the {len(messages[-1]['content'])} characters.")
    engine = {"type": "chat", "base_url": server.url, "model": "m", "max_concurrency": 2}
    settings: dict[str, Any] = {"strategies": ["reflect"], "attempts": 3, "round_rows": 5, "max_tokens": 200}
    settings["reflector"] = {"name": "other", "engine": engine}
    world.synthesise(answers, out="whole", **settings)
    asked = sorted(map(orjson.dumps, server.bodies))
    (world.folder / "store").rename(world.folder / "first-store")
    server.bodies.clear()
    for engine_class, replies in ((ChatEngine, 0), (ChatEngine, 3), (ScriptedEngine, 2), (ChatEngine, 1)):
        with monkeypatch.context() as patch, pytest.raises(Killed):
            patch.setattr(engine_class, "stream", dying_after(engine_class.stream, replies))
            world.synthesise(answers, out="cut", **settings)
    world.synthesise(answers, out="cut", **settings)
    server.stop()
    for name, table in tables(world, "whole").items():
        assert table.equals(tables(world, "cut")[name])
    # What was on its way at a kill is asked again; what had come is not.
    bodies = sorted(map(orjson.dumps, server.bodies))
    assert set(bodies) == set(asked)
    assert len(asked) <= len(bodies) <= len(asked) + 3 * 2
    positives = tables(world, "cut")["distilled"]
    assert positives.height > 0
    assert all(len(ids) == len(bare) for ids, bare in positives.select("output_ids", "bare_logprobs").iter_rows())


class Killed(Exception):
    """Stands for a kill."""


def test_a_killed_synthesis_goes_on_and_repeats_no_sample(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    answers: dict[str, Any] = {
        RETRY: ["I think \\boxed{11}", RIGHT],
        REFLECTION: ["Look."],
        KEEP: ["\\boxed{9}", RIGHT],
    }
    settings: dict[str, Any] = {"strategies": ["retry", "reflect"], "attempts": 6, "round_rows": 5}
    world.synthesise(answers, out="whole", **settings)
    whole = drawn_in(world.folder / "store")
    (world.folder / "store").rename(world.folder / "first-store")
    stream = ScriptedEngine.stream
    for samples in (0, 3, 11, 6):
        with monkeypatch.context() as patch:
            patch.setattr(ScriptedEngine, "stream", dying_after(stream, samples))
            with pytest.raises(Killed):
                world.synthesise(answers, out="cut", **settings)
    world.synthesise(answers, out="cut", **settings)
    for name, table in tables(world, "whole").items():
        assert table.equals(tables(world, "cut")[name])
    drawn = drawn_in(world.folder / "store")
    assert sorted(drawn) == sorted(set(drawn)) == sorted(whole)


def dying_after(stream: Callable[..., Iterator[Any]], samples: int) -> Callable[..., Iterator[Any]]:
    """Return a stream that dies when it has handed out so many completions."""
    left = [None] * samples

    def dying(engine: Any, take: TakeRequests, sampling: SamplingParams) -> Iterator[Any]:
        for sample in stream(engine, take, sampling):
            if not left:
                raise Killed
            left.pop()
            yield sample

    return dying


def drawn_in(store: Path) -> list[tuple[str, str, int]]:
    return [
        (folder.name, record["prompt"], record["sample"])
        for folder in store.iterdir()
        for _, record in RecordLog(folder).scan()
    ]
