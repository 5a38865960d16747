"""Before the first step: token budgets from the profile, evaluation by the model card, tags and BOS."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import polars as pl
import pytest

from truegold.pipeline.config.engines import ChatConfig
from truegold.pipeline.engines.chat import ByteEncoder
from truegold.pipeline.tables.rows import Row
from truegold.train.config.grpo import EvaluationConfig, SamplingConfig
from truegold.train.grpo.start_checks import (
    check_prompts,
    choose_eval_sampling,
    choose_max_tokens,
    find_reworded,
    split_by_leak,
    split_by_room,
    unread_in_profile,
)
from truegold.verifiers import InputError

CONFIG = EvaluationConfig()


def samples(path: Path, right: list[int], wrong: list[int]) -> Path:
    lengths = [*right, *wrong]
    pl.DataFrame(
        {
            "token_ids": [[7] * length for length in lengths],
            "score": [1.0] * len(right) + [0.0] * len(wrong),
            "finish_reason": ["stop"] * len(lengths),
        },
        schema_overrides={"token_ids": pl.List(pl.Int32)},
    ).write_parquet(path)
    return path


def test_the_profile_s_share_of_unread_samples_is_of_those_that_ended_by_themselves(tmp_path: Path) -> None:
    reasons = ["unread", "match", "mismatch", "unread", "unread"]
    finished = ["stop", "stop", "stop", "stop", "length"]
    pl.DataFrame({"reason": reasons, "finish_reason": finished}).write_parquet(tmp_path / "samples.parquet")
    assert unread_in_profile(tmp_path / "samples.parquet") == {"profile_unread": 0.5, "profile_ended": 4.0}
    assert unread_in_profile(None) == {}


def test_held_out_rows_that_are_trained_on_are_not_evaluated() -> None:
    def rows(*prompts: str) -> list[Row]:
        return [cast("Row", {"prompt": prompt}) for prompt in prompts]

    heldout, leaked = split_by_leak(rows("1+1=?", "What is 2+2?"), rows("What is  2+2?\n"), rows("3+3=?"))
    assert [row["prompt"] for row in heldout] == ["1+1=?"]
    assert [row["prompt"] for row in leaked] == ["What is 2+2?"]
    with pytest.raises(InputError, match="All 1 held-out rows"):
        split_by_leak(rows("1+1=?"), rows("1+1=?"))


def test_held_out_rows_that_are_trained_on_in_other_words_are_named(tmp_path: Path) -> None:
    def write(name: str, *prompts: str) -> Path:
        rows = [{"id": f"{name}{index}", "prompt": prompt, "gold": "7"} for index, prompt in enumerate(prompts)]
        schema = {"id": pl.String, "prompt": pl.String, "gold": pl.String}
        pl.DataFrame(rows, schema=schema).write_parquet(tmp_path / f"{name}.parquet")
        return tmp_path / f"{name}.parquet"

    heldout = write(
        "h",
        "Tom, who owned three red cars, buys 4 more. How many cars are his now?",
        "Tom has 5 red cars and buys 9 more. How many cars has he?",  # Other numbers.
        "Solve: Ann reads 12 pages of her blue book a day. How many pages does she read in 6 days? Explain.",
    )
    trained = write("t", "Tom has 3 red cars and buys 4 more. How many cars has he?", "What is 2+2?")
    reserve = write("r", "Ann reads 12 pages of her blue book a day. How many pages does she read in 6 days?")
    reworded = find_reworded(heldout, [trained, reserve])
    assert sorted(reworded) == ["h0", "h2"]
    assert "row t0" in reworded["h0"] and "row r0" in reworded["h2"]
    assert find_reworded(heldout, [write("none")]) == {}


def test_max_tokens_come_from_the_lengths_of_right_completions(tmp_path: Path) -> None:
    path = samples(tmp_path / "samples.parquet", [40] * 399 + [100], [900] * 50)
    max_tokens, why = choose_max_tokens(SamplingConfig(), path, 2048)
    assert max_tokens == 50  # Of the right ones 99.5 % have 40 tokens.
    assert "99.5 % quantile of right completions" in why


def test_a_prompt_that_leaves_less_room_than_right_answers_need_is_set_apart(tmp_path: Path) -> None:
    path = tmp_path / "samples.parquet"
    lengths = {"short": [4, 5, 6], "long": [30, 40, 50]}
    pl.DataFrame(
        [
            {"id": name, "token_ids": [7] * length, "score": 1.0, "finish_reason": "stop"}
            for name, sampled in lengths.items()
            for length in sampled
        ]
    ).write_parquet(path)
    encoder = ByteEncoder(ChatConfig(use_template=False))
    rows: list[Row] = [{"id": name, "prompt": "?" * 80} for name in ("short", "long", "never passed")]
    room = {10: ["short"], 20: ["short", "never passed"], 40: ["short", "long", "never passed"]}
    for tokens, expected in room.items():
        longest = len(encoder.encode(rows[0]["prompt"])) + tokens
        fitting, cramped = split_by_room(rows, path, encoder, longest)
        assert [row["id"] for row in fitting] == expected
        assert len(fitting) + len(cramped) == 3
    assert len(split_by_room(rows, None, encoder, len(encoder.encode(rows[0]["prompt"])) + 1)[0]) == 3


def test_max_tokens_are_bounded_by_the_model_s_room(tmp_path: Path) -> None:
    assert choose_max_tokens(SamplingConfig(), samples(tmp_path / "samples.parquet", [1900], []), 2048)[0] == 2047


def test_max_tokens_that_are_configured_or_cannot_be_known(tmp_path: Path) -> None:
    path = samples(tmp_path / "samples.parquet", [], [50])
    assert choose_max_tokens(SamplingConfig(), path, 2048) == (512, "default: the profile has no right completion")
    assert choose_max_tokens(SamplingConfig(), None, 2048) == (512, "default: there is no profile")
    assert choose_max_tokens(SamplingConfig(max_tokens=64), path, 2048) == (64, "configured")


def test_max_tokens_wildly_above_what_right_answers_need_are_refused_without_a_word(tmp_path: Path) -> None:
    path = samples(tmp_path / "samples.parquet", [100] * 200, [])
    assert choose_max_tokens(SamplingConfig(max_tokens=1000), path, 4096)[0] == 1000
    with pytest.raises(InputError, match=r"max_tokens is 1001, .* end within 100 tokens") as caught:
        choose_max_tokens(SamplingConfig(max_tokens=1001), path, 4096)
    assert "the default is 125" in str(caught.value.hint)
    assert choose_max_tokens(SamplingConfig(max_tokens=1001, allow_long=True), path, 4096)[0] == 1001
    short = samples(tmp_path / "short.parquet", [3] * 200, [])
    assert choose_max_tokens(SamplingConfig(max_tokens=512), short, 4096)[0] == 512
    few = samples(tmp_path / "few.parquet", [40], [900] * 50)
    assert choose_max_tokens(SamplingConfig(max_tokens=2000), few, 4096)[0] == 2000


def card(folder: Path, **settings: object) -> Path:
    (folder / "generation_config.json").write_text(json.dumps(settings))
    return folder


def test_evaluation_samples_as_the_model_card_says(tmp_path: Path) -> None:
    model = card(tmp_path, temperature=0.6, top_p=0.95, top_k=20, do_sample=True)
    sampling = choose_eval_sampling(CONFIG, model)
    assert (sampling.temperature, sampling.top_p, sampling.top_k) == (0.6, 0.95, 20)
    assert sampling.source == "generation_config.json"


def test_configured_evaluation_comes_before_the_card(tmp_path: Path) -> None:
    model = card(tmp_path, temperature=0.6, top_p=0.95)
    sampling = choose_eval_sampling(EvaluationConfig(temperature=0.0, top_p=1.0, top_k=0), model)
    assert (sampling.temperature, sampling.top_p, sampling.top_k, sampling.source) == (0.0, 1.0, 0, "configured")


def test_without_a_card_evaluation_is_plain_and_a_greedy_card_is_greedy(tmp_path: Path) -> None:
    assert choose_eval_sampling(CONFIG, tmp_path).temperature == 1.0
    assert choose_eval_sampling(CONFIG, tmp_path).source == "default"
    greedy = choose_eval_sampling(CONFIG, card(tmp_path, do_sample=False, temperature=0.6, top_p=0.9))
    assert (greedy.temperature, greedy.top_p) == (0.0, 1.0)


def test_a_card_that_is_no_json_is_named(tmp_path: Path) -> None:
    for text, mistake in (("[1]", "has no object"), ('{"top_k": "many"}', "top_k is 'many', not a number")):
        (tmp_path / "generation_config.json").write_text(text)
        with pytest.raises(InputError, match=mistake):
            choose_eval_sampling(CONFIG, tmp_path)
    (tmp_path / "generation_config.json").write_text("{")
    with pytest.raises(InputError, match=r"generation_config\.json is not JSON"):
        choose_eval_sampling(CONFIG, tmp_path)


def test_a_double_bos_is_refused_by_name() -> None:
    check_prompts([[1, 5], [5, 1, 1], [1]], 1)
    check_prompts([[1, 1]], None)
    with pytest.raises(InputError, match="Double BOS: 1 of 2 prompts"):
        check_prompts([[1, 1, 5], [1, 5]], 1)
